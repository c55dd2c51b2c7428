"""The filter against enumeration: rounds chosen by what earlier ones released, in exact fractions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import pytest

import shuffledp as sdp
from shuffledp.accounting import largest_pure
from shuffledp.errors import InvalidInput, OutOfRegime
from tests import oracles
from tests.accounting.test_brute_force import log_down, log_up

ROUNDS = [
    # outcomes, ratio e^epsilon0, people
    (2, Fraction(3, 2), 1),
    (2, Fraction(2), 3),
    (2, Fraction(4), 5),
    (3, Fraction(3), 2),
]


def certified(k, ratio, n):
    family = sdp.RandomizedResponse(k)
    return sdp.certify(sdp.Setting(sdp.Budgets([log_up(ratio)], [n]), family, "reports", "replace-one"), 1e-6)


def laws(k, ratio, n):
    """Both worlds' laws of the released multiset, for all records of the others and all pairs of the victim."""
    protocol = oracles.ShuffledProtocol([oracles.krr_channel(k, ratio)] * n)
    for others in itertools.combinations_with_replacement(range(k), n - 1):
        for x0, x1 in itertools.permutations(range(k), 2):
            yield protocol.law([x0, *others]), protocol.law([x1, *others])


def hockey_stick(first, second, a, b):
    return sum((max(a * first.get(y, 0) - b * second.get(y, 0), Fraction(0)) for y in first), Fraction(0))


def worst_adaptive(first, options, ratio):
    """Largest P - ratio Q over both rounds: for each release of the first round the worst second one, or none."""
    pairs = [pair for option in options for pair in laws(*option)]
    best = Fraction(0)
    for P, Q in laws(*first):
        total = Fraction(0)
        for h, p in P.items():
            a, b = p, ratio * Q[h]
            stop = max(a - b, Fraction(0))
            total += max([stop, *(hockey_stick(*pair, a, b) for pair in pairs)])
        best = max(best, total)
    return best


@pytest.mark.costly(but=("(2, Fraction(2, 1), 3)-outside0",))
@pytest.mark.one_in(3)
@pytest.mark.parametrize("outside", [Fraction(0), Fraction(1, 100)])
@pytest.mark.parametrize("first", ROUNDS, ids=str)
def test_two_adaptive_rounds_never_exceed_the_limit(first, outside):
    """The second round, its size, randomizer and records are chosen by what the first one released."""
    share = float(outside)
    mus = {each: certified(*each).mu(share) for each in ROUNDS}
    allowed = sorted(mus, key=lambda each: mus[each])[:3]
    limit = math.hypot(mus[first], mus[allowed[-1]]) * (1 + 1e-12)
    total = max(2 * share, 1e-9)

    def opened():
        found = sdp.PrivacyFilter(limit, total)
        assert found.admit(certified(*first), share)
        return found

    options = [each for each in ROUNDS if opened().admit(certified(*each), share)]
    assert set(options) == {each for each in ROUNDS if mus[each] <= mus[allowed[-1]] * (1 + 1e-9)}
    limits, smaller, exceeded = opened(), sdp.PrivacyFilter(0.8 * limit, total), False
    for step in range(12):
        ratio = 1 + Fraction(step, 2)
        exact = worst_adaptive(first, options, ratio)
        assert exact <= limits.delta(log_down(ratio)), str(ratio)
        exceeded |= exact > smaller.delta(log_up(ratio))
    assert exceeded or outside > 0  # without shares, a limit of four fifths is too small for what was admitted


@pytest.mark.parametrize("n", [2, 4])
def test_adaptivity_gains_nothing_over_two_worst_rounds(n):
    """The fixed composition of the worst pair twice is within the same limit, and close to it."""
    mu = certified(2, Fraction(2), n).mu(0.0)
    filter_ = sdp.PrivacyFilter(mu * math.sqrt(2) * (1 + 1e-12), 1e-12)
    assert filter_.admit_round(mu, 0.0)
    assert filter_.admit_round(mu, 0.0)
    assert not filter_.admit_round(0.01 * mu, 0.0)
    exact = worst_adaptive((2, Fraction(2), n), [(2, Fraction(2), n)], Fraction(5, 4))
    assert exact <= filter_.delta(log_down(Fraction(5, 4))) <= 3 * float(exact)


def test_a_year_of_days():
    """Rounds at mu = .0126 within (1, 1e-6): as many as fixed composition allows, less the price of shares."""
    day = sdp.certify(sdp.Setting(sdp.Budgets([1.0], [10_000]), "any", "reports", "replace-one"), 1e-6)
    year = sdp.PrivacyFilter.within(1.0, 1e-6)
    mu = day.mu(year.limit.outside / 128)
    fits = math.floor((year.limit.mu / mu) ** 2)
    assert fits > 300
    fixed = sdp.PrivacyFilter.within(1.0, 1e-6)
    admitted = [fixed.admit(day) for _ in range(101)]
    assert admitted == [True] * 100 + [False]  # a hundredth of the share each: then the shares are spent
    assert sum(year.admit_round(mu, year.limit.outside / 1000) for _ in range(fits + 3)) == fits
    assert year.spent.mu <= year.limit.mu
    assert year.left.mu < mu
    assert year.spent.outside + year.left.outside == pytest.approx(year.limit.outside, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (8.0, 1e-5), (1e-3, 1e-2)])
def test_a_target_is_kept_and_used_up(epsilon, delta):
    found = sdp.PrivacyFilter.within(epsilon, delta)
    assert found.limit.outside == 0.01 * delta
    assert found.delta(epsilon) <= delta
    assert epsilon * (1 - 1e-6) < found.epsilon(delta) <= epsilon
    with mpmath.workdps(40):
        m, e, t = mpmath.mpf(found.limit.mu), mpmath.mpf(epsilon), mpmath.mpf(found.limit.outside)
        exact = t + (1 - t) * (mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m))
        assert mpmath.mpf(delta) * (1 - mpmath.mpf("1e-6")) < exact <= mpmath.mpf(delta)


def test_sums_are_exact():
    """Ten tenths are a whole, and not a bit more: limits are compared as fractions."""
    found = sdp.PrivacyFilter(1.0, 1e-3)
    assert [found.admit_round(0.5, 2.0**-12) for _ in range(5)] == [True] * 4 + [False]
    assert found.spent == type(found.spent)(1.0, 2.0**-10)
    assert found.left.mu == 0.0
    tenth = sdp.PrivacyFilter(1.0, 0.5)
    count = sum(tenth.admit_round(0.1, 0.0) for _ in range(101))
    assert count == (100 if 100 * Fraction(0.1) ** 2 <= 1 else 99)
    assert tenth.spent.mu <= 1.0
    assert Fraction(tenth.spent.mu) ** 2 >= count * Fraction(0.1) ** 2
    assert Fraction(tenth.left.mu) ** 2 <= 1 - count * Fraction(0.1) ** 2
    small = sdp.PrivacyFilter(1e-160, 1e-300)
    assert small.admit_round(1e-170, 1e-310)
    assert small.spent.mu > 0.0


def test_what_is_refused_costs_nothing():
    found = sdp.PrivacyFilter(0.5, 1e-8)
    revealing = sdp.certify(sdp.Setting(sdp.Budgets([1.0], [50], [1e-6]), "any", "reports", "replace-one"), 1e-3)
    with pytest.raises(OutOfRegime, match="falls no further"):
        found.admit(revealing)
    assert not found.admit_round(0.5000001, 0.0)
    assert not found.admit_round(0.1, 2e-8)
    assert not found.admit_round(math.inf, 0.0)
    assert found.spent == type(found.spent)(0.0, 0.0)
    assert found.left == found.limit
    assert found.admit_round(0.5, 1e-8)


@pytest.mark.parametrize("mu", [0.0, -1.0, math.nan, math.inf, 1001.0, "1", None, True])
def test_limits_must_be_numbers(mu):
    with pytest.raises(InvalidInput, match="mu must be"):
        sdp.PrivacyFilter(mu, 1e-8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: sdp.PrivacyFilter(1.0, 0.0), r"in \(0, 1\)"),
        (lambda f: sdp.PrivacyFilter(1.0, 1.0), "outside must be"),
        (lambda f: sdp.PrivacyFilter.within(0.0, 1e-6), "epsilon must be a positive"),
        (lambda f: sdp.PrivacyFilter.within(1.0, 1.0), "delta must be"),
        (lambda f: f.admit_round(-0.1, 0.0), "mu must be a number"),
        (lambda f: f.admit_round(0.1, -1e-9), "outside must be"),
        (lambda f: f.epsilon(1e-9), "above the filter's outside"),
        (lambda f: f.delta(-1.0), "epsilon must be"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InvalidInput, match=message):
        call(sdp.PrivacyFilter(0.5, 1e-8))


@pytest.mark.parametrize("limit", [0.3, 1.0, 6.5])
def test_the_largest_pure_release_that_a_limit_has_room_for(limit):
    """Just below it is admitted, just above it is not; a limit of 1 has no room for one release of 1."""
    room = sdp.PrivacyFilter.within(limit, 1e-6).limit.mu
    largest = largest_pure(room)
    exact = mpmath.log(mpmath.ncdf(mpmath.mpf(room) / 2) / mpmath.ncdf(-mpmath.mpf(room) / 2))
    assert exact * (1 - mpmath.mpf(10) ** -8) <= largest <= exact

    def admitted(epsilon):
        alone = sdp.Setting(sdp.Budgets([epsilon], [1]), sdp.RandomizedResponse(2), "reports", "replace-one")
        return sdp.PrivacyFilter.within(limit, 1e-6).admit(sdp.certify(alone, 1e-6), outside=0.0)

    assert admitted(largest * 0.999)
    assert not admitted(largest * 1.001)
    assert admitted(1.0) == (limit == 6.5)
