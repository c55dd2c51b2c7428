"""The chain theorem: (Ch) in exact fractions, (H) against attacks, its numbers, and who uses it."""

import itertools
import math
import warnings
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from shuffledp import Budgets, Gaussian, InvalidInput, Laplace, OutOfRegime, Setting, bounds, certify
from shuffledp.accounting import GaussianSumProfile, chain_or_alone, chain_profile, composed
from shuffledp.accounting.theorems.chain.normal import Links
from shuffledp.accounting.theorems.equal_crowd import CrowdProfile, gaussian_pair
from tests.work import calls_of


def random_law(rng, outcomes):
    """Positive fractions that sum to 1, some of them small."""
    parts = [Fraction(int(x)) for x in rng.integers(1, 12, outcomes)]
    return [x / sum(parts) for x in parts]


def shuffled_divergence(first, second, others, e):
    """sup_S P(S) - e Q(S) for the multiset of everybody's reports."""
    gap: Counter[tuple[int, ...]] = Counter()
    for reports in itertools.product(range(len(first)), repeat=len(others) + 1):
        rest = math.prod((law[y] for law, y in zip(others, reports[1:], strict=True)), start=Fraction(1))
        gap[tuple(sorted(reports))] += (first[reports[0]] - e * second[reports[0]]) * rest
    return sum(value for value in gap.values() if value > 0)


def chained(first, second, groups, e):
    """The right side of (Ch) by summing over the seats of all groups and the hub."""
    outcomes, flat = range(len(first)), [law for group in groups for law in group]
    total = Fraction(0)
    for seats in itertools.product(outcomes, repeat=len(flat)):
        chance = math.prod((law[y] for law, y in zip(flat, seats, strict=True)), start=Fraction(1))
        at, where = [], iter(seats)
        for group in groups:
            at.append([next(where) for _ in group])
        for hub in outcomes:
            u = [law[hub] for law in groups[-1]]
            for j in range(len(groups) - 2, -1, -1):
                following = list(zip(groups[j + 1], at[j + 1], u, strict=True))
                u = [sum(law[y] / k[y] * weight for k, y, weight in following) for law in groups[j]]
            value = sum(
                weight * (first[y] - e * second[y]) / law[y] for law, y, weight in zip(groups[0], at[0], u, strict=True)
            )
            total += chance * max(value, Fraction(0))
    return total / math.prod(len(group) for group in groups)


CHAINS = ([1], [2], [1, 1], [2, 1], [1, 2], [1, 1, 1])


@pytest.mark.parametrize("sizes", CHAINS, ids=str)
@pytest.mark.parametrize("outcomes", [2, 3])
def test_no_crowd_leaks_more_than_its_chain(sizes, outcomes):
    rng = np.random.default_rng(100 * outcomes + sum(sizes) + len(sizes))
    for e in (Fraction(1), Fraction(11, 10), Fraction(3, 2)):
        first, second = random_law(rng, outcomes), random_law(rng, outcomes)
        others = [random_law(rng, outcomes) for _ in range(sum(sizes))]
        groups, where = [], iter(others)
        for size in sizes:
            groups.append([next(where) for _ in range(size)])
        alone = [random_law(rng, outcomes)] if sum(sizes) < 3 else []  # in no group
        for p, q in ((first, second), (second, first)):
            assert shuffled_divergence(p, q, others + alone, e) <= chained(p, q, groups, e)


def test_with_the_own_seat_an_equal_crowd_is_exact():
    rng = np.random.default_rng(5)
    for outcomes, company, e in itertools.product((2, 3), (1, 2, 3), (Fraction(1), Fraction(6, 5))):
        first, second, law = (random_law(rng, outcomes) for _ in range(3))
        total = Fraction(0)
        for seats in itertools.product(range(outcomes), repeat=company):
            chance = math.prod((law[y] for y in seats), start=Fraction(1))
            for hub in range(outcomes):
                value = first[hub] - e * second[hub]
                value += law[hub] * sum((first[y] - e * second[y]) / law[y] for y in seats)
                total += chance * max(value, Fraction(0))
        exact = shuffled_divergence(first, second, [law] * company, e)
        assert exact == total / (company + 1)


def equal_crowd(mu, n, epsilon):
    """Exact but for windows: everybody else sends one end of the range, the victim that one or the other."""
    found = []
    for way in (0, 1):
        profile = CrowdProfile((gaussian_pair(1.0 / mu)[way],), np.array([float(n)]))
        found.append(profile.delta(epsilon).lower)
    return max(found)


@pytest.mark.costly("0.8-60000-6.0", "1.1-1000000-3.0", "1.1-1000000-4.5", "1.1-1000000-6.0")
@pytest.mark.parametrize("z", [0.0, 0.5, 1.5, 3.0, 4.5, 6.0])
@pytest.mark.parametrize(("mu", "n"), [(0.25, 1_000), (0.25, 60_000), (0.5, 10_000), (0.8, 60_000), (1.1, 10**6)])
def test_never_below_the_equal_crowd(mu, n, z):
    epsilon = z * math.sqrt(math.expm1(mu**2) / n)
    assert equal_crowd(mu, n, epsilon) <= chain_profile(mu, n).delta(epsilon).upper


def test_the_equal_crowd_is_what_many_users_leave():
    """The bracket closes: 5 % at 60,000 users, where `approximate` is 10 times as large."""
    epsilon = chain_profile(0.25, 60_000).epsilon(1e-6).upper
    assert equal_crowd(0.25, 60_000, 0.94 * epsilon) > 1e-6


PROMISED = [(0.5, 60_000, 64, 0.0680), (0.25, 60_000, 64, 0.0300), (0.8, 60_000, 16, 0.0650), (0.25, 10_000, 1, 0.0081)]


@pytest.mark.parametrize(("mu", "n", "rounds", "most"), PROMISED)
def test_numbers_promised(mu, n, rounds, most, monkeypatch):
    """Asked for were 0.075, 0.032, 0.080 and 0.0101, each in five seconds: a divergence takes milliseconds."""
    made = calls_of(monkeypatch, Links, "divergence")
    found = composed(chain_profile(mu, n), rounds).epsilon(1e-6).upper
    assert 0.9 * most < found <= most
    assert len(made) <= 60


@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-14])
def test_a_crowd_never_costs_more_than_the_message_alone(delta):
    for mu, n in ((0.02, 50), (0.5, 100), (0.9, 1_000), (0.001, 100)):
        alone = GaussianSumProfile(mu).epsilon(delta).upper
        assert chain_profile(mu, n).epsilon(delta).upper <= alone * (1 + 1e-5)


def test_the_inverse_is_not_led_astray_by_a_plateau():
    """(H) does not fall below its charge: by the slope of that plateau 0.0506 was taken, 19 times the message alone."""
    alone = GaussianSumProfile(0.001).epsilon(1e-6).upper
    assert chain_profile(0.001, 100).epsilon(1e-6).upper <= alone * (1 + 1e-5)


@pytest.mark.parametrize("tiny", [5e-324, 1e-300, 1e-160])
def test_an_epsilon_of_next_to_nothing_raises_no_warning(tiny):
    profile = chain_profile(0.001, 10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert profile.delta(tiny).upper == profile.delta(0.0).upper


@pytest.mark.parametrize(("mu", "n"), [(math.nan, 100), (-0.5, 100), (0.5, 0)])
def test_what_is_no_shift_or_no_user_costs_no_epsilon_but_an_error(mu, n):
    """The message alone was told to cost 0.0 at a shift of NaN."""
    for answer in (chain_or_alone, chain_profile):
        with pytest.raises(InvalidInput, match="mu >= 0"):
            answer(mu, n)
    if not mu >= 0.0:
        assert GaussianSumProfile(mu).delta(1.0).upper == 1.0


def setting_of(mu, n, **more):
    """One level of normal noise with about this mu; its epsilon0 at delta0 = 1e-9."""
    law = Gaussian(0, 1)
    low, high = 1e-3, 20.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if float(law.scale(middle, 1e-9)) > 1.0 / mu else (low, middle)
    more = {"seen": "reports", **more}
    return Setting(Budgets([high], [n], [1e-9]), law, neighboring="replace-one", **more)


def test_certify_takes_it_where_it_is_smallest():
    guarantee = certify(setting_of(0.25, 10_000), 1e-6)
    told = {e.key: e.epsilon for e in guarantee.evidence if e.epsilon is not None}
    assert guarantee.epsilon.upper == min(told[key].upper for key in ("local", "blanket", "chain"))
    assert guarantee.epsilon.upper == told["chain"].upper < 0.0082
    assert guarantee.epsilon.lower > 0.0074  # the equal crowd


def noisy(epsilons, counts, deltas=None, randomizer=None, **more):
    """Users of several levels who add normal noise."""
    budgets = Budgets(epsilons, counts, [1e-9] * len(counts) if deltas is None else deltas)
    return Setting(budgets, randomizer or Gaussian(0, 1), **{"seen": "reports", "neighboring": "replace-one", **more})


def upper(setting, epsilon0):
    return bounds["chain"].profile(setting, epsilon0).epsilon(1e-6).upper


def test_what_it_refuses():
    for setting, reason in (
        (noisy([1.0], [200], [1e-9], Laplace(0, 1)), "pure budgets or normal noise"),
        (noisy([1.0, 1.0], [50, 50], [1e-9, 1e-8]), "delta0 alone"),
        (noisy([1.0, 2.0], [50, 50], seen="users"), "belong to users"),
        (noisy([1.0], [1]), "enough users to form its groups"),
        (noisy([30.0], [1000]), "apart"),
    ):
        with pytest.raises(OutOfRegime, match=reason):
            bounds["chain"].profile(setting, float(setting.budgets.epsilons[0]))
    with pytest.raises(OutOfRegime, match="apart"):
        chain_profile(1.3, 1000)


def test_a_level_that_nothing_hides_keeps_its_message_alone():
    setting = noisy([0.5, 1.0, 30.0], [2000, 1, 500])
    assert upper(setting, 0.5) < 0.05
    for epsilon0 in (1.0, 30.0):
        local = bounds["local"].profile(setting, epsilon0).epsilon(1e-6).upper
        assert upper(setting, epsilon0) == pytest.approx(local, rel=1e-3)


def test_only_the_own_level_hides():
    """People of another noise level neither help nor hurt; colluding users are taken from the own level."""
    own = upper(noisy([0.5], [700]), 0.5)
    assert upper(noisy([0.5, 1.0], [700, 2000]), 0.5) == own
    assert upper(noisy([0.5], [700], colluding=100), 0.5) == upper(noisy([0.5], [600]), 0.5) > own
