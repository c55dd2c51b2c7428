"""A certified mu: the numbers that must be reached, and (M) against other routes to both of its sides."""

from __future__ import annotations

import math
import pickle
import re
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.accounting import bounds, gaussian_epsilon, privacy_profile
from shuffledp.accounting.certify import worst_mu
from shuffledp.accounting.profiles.domination import dominating_mu
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.theorems.local import LocalProfile
from shuffledp.errors import InvalidInput, OutOfRegime
from shuffledp.numerics.floats import Interval
from shuffledp.numerics.tails import normal_divergence, normal_tail_mass
from tests import oracles
from tests.accounting.test_brute_force import log_up

OUTSIDE = 1e-9


def setting(epsilon0, n, randomizer="any", seen="reports", **situation):
    return sdp.Setting(sdp.Budgets([epsilon0], [n]), randomizer, seen, "replace-one", **situation)


def gaussian(epsilon, mu):
    """Balle and Wang's formula with 60 digits."""
    with mpmath.workdps(60):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


def dominated(delta, epsilon, mu, outside):
    """Whether (M) holds at one epsilon, in 60 digits."""
    with mpmath.workdps(60):
        t = mpmath.mpf(outside)
        exact = mpmath.mpf(delta.numerator) / delta.denominator if isinstance(delta, Fraction) else mpmath.mpf(delta)
        return exact <= t + (1 - t) * gaussian(epsilon, mu)


def rows_of_the_page():
    """Numbers of each row of the table in docs/theorems/mu.md."""
    page = (Path(__file__).parents[2] / "docs" / "theorems" / "mu.md").read_text(encoding="utf-8")
    lines = [
        line.replace(",000", "000").replace(",", " ") for line in page.splitlines() if re.match(r"\| [\d.]+ \|", line)
    ]
    return [[float(number) for number in line.replace("|", " ").split()] for line in lines]


MOST = {(0.5, 10**4): 0.00565, (1, 10**4): 0.01261, (2, 10**4): 0.03125, (4, 10**4): 0.1040, (1, 10**3): 0.0400}
"""What mu must not exceed, all but 1e-9."""


@pytest.mark.costly(but=("4-10000",))
@pytest.mark.parametrize("row", rows_of_the_page(), ids=lambda row: f"{row[0]:g}-{row[1]:g}")
def test_the_headline_with_a_number(row):
    """A shuffled round is mu-GDP, all but 1e-9, as the page says beside GSPA's Theorem 2."""
    epsilon0, n, mu, published = row[:4]
    one = sdp.certify(setting(epsilon0, int(n)), 1e-6)
    assert one.mu(OUTSIDE) <= MOST.get((epsilon0, n), math.inf)
    assert one.mu(OUTSIDE) == pytest.approx(mu, rel=5e-4)
    assert bounds["gspa"].profile(one.setting, epsilon0).mu == pytest.approx(published, rel=5e-4)


@pytest.mark.slow
@pytest.mark.parametrize("row", rows_of_the_page(), ids=lambda row: f"{row[0]:g}-{row[1]:g}")
def test_sixteen_rounds_through_mu(row):
    """Within 0.5 % of exact composition, 1.6 % where `chain` certifies, 2.5 % at epsilon0 = 4; as the page says."""
    epsilon0, n, _, _, attained, composed, through, through_published = row
    delta, outside = 1e-6, 1.6e-8
    one, several = (sdp.certify(setting(epsilon0, int(n), rounds=rounds), delta) for rounds in (1, 16))
    mu, left = one.mu(outside / 16), (delta - outside) / (1 - outside)
    assert several.epsilon.lower == pytest.approx(attained, abs=6e-5)
    assert several.epsilon.upper == pytest.approx(composed, abs=6e-5)
    assert gaussian_epsilon(left, 4 * mu) == pytest.approx(through, abs=6e-5)
    published = bounds["gspa"].profile(one.setting, epsilon0).mu
    assert gaussian_epsilon(delta, 4 * published) == pytest.approx(through_published, abs=6e-5)
    assert several.epsilon.upper < gaussian_epsilon(left, 4 * mu)
    assert gaussian_epsilon(left, 4 * mu) < several.epsilon.upper * (
        1.025 if epsilon0 == 4 else 1.016 if epsilon0 <= 1 and n == 10**4 else 1.005
    )


def test_the_page_has_all_rows_that_must_be_reached():
    assert MOST.keys() <= {(row[0], row[1]) for row in rows_of_the_page()}


@pytest.mark.costly(
    but=(
        "ratio0-1-0.0",
        "ratio0-1-0.01",
        "ratio1-1-1e-06",
    )
)
@pytest.mark.one_in(4)
@pytest.mark.parametrize("outside", [0.0, 1e-6, 1e-2])
@pytest.mark.parametrize("n", [1, 2, 4, 6])
@pytest.mark.parametrize("ratio", [Fraction(3, 2), Fraction(5)])
def test_mu_dominates_every_enumerated_event(ratio, n, outside):
    """Randomized response: the exact divergence of n people, all records, at 60 epsilons below the local budget."""
    mu = sdp.certify(setting(log_up(ratio), n, sdp.RandomizedResponse(2)), 1e-6).mu(outside)
    protocol = oracles.ShuffledProtocol([oracles.krr_channel(2, ratio)] * n)
    for step in range(60):
        at = 1 + (ratio - 1) * Fraction(step, 59)
        exact = protocol.worst(0, at, [(0, 1), (1, 0)])
        with mpmath.workdps(60):
            epsilon = mpmath.log(mpmath.mpf(at.numerator) / at.denominator)
        assert dominated(exact, epsilon, mu, outside), (step, exact)


@pytest.mark.costly
@pytest.mark.one_in(4)
@pytest.mark.parametrize("outside", [0.0, 1e-6, 1e-3])
@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 4.0, 12.0])
def test_mu_of_one_report_is_the_smallest_one(epsilon0, outside):
    """Randomized response by itself is one straight line in e^epsilon: (M) holds everywhere, just."""
    mu = dominating_mu(LocalProfile(epsilon0, 0.0), outside)
    with mpmath.workdps(60):
        top = mpmath.exp(mpmath.mpf(epsilon0))
        points = [(top - 1) * k / 2000 for k in range(2000)]
        exact = [(mpmath.log1p(x), (top - 1 - x) / (1 + top)) for x in points]
        assert all(dominated(delta, epsilon, mu, outside) for epsilon, delta in exact)
        assert not all(dominated(delta, epsilon, mu * 0.9995, outside) for epsilon, delta in exact)


@pytest.mark.costly
@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    "case",
    [
        setting(1.0, 1000),
        setting(2.0, 300, sdp.RandomizedResponse(5)),
        setting(1.0, 50, rounds=4),
        setting(1.0, 400, sdp.RandomizedResponse(3), dummies=sdp.Uniform(60)),
        sdp.Setting(sdp.Budgets([0.5, 2.0], [900, 100]), "any", "levels", "replace-one"),
        sdp.Setting(sdp.Budgets([0.5, 2.0], [900, 100]), sdp.RandomizedResponse(2), "reports", "replace-one"),
        sdp.Setting(sdp.Budgets([0.5, 2.0], [900, 100]), "any", "users", "replace-one"),
        pytest.param(
            sdp.Setting(sdp.Budgets([0.5, 2.0], [9, 3]), sdp.Laplace(0, 1), "sum", "replace-one"),
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda s: f"{s.randomizer_name}-{s.seen}-{s.rounds}",
)
def test_every_level_lies_below_and_some_level_needs_it(case):
    """By the brackets of `privacy_profile`, at epsilons that are no knots."""
    mu, needed = worst_mu(case, 1e-7), 0.0
    points = 42 if case.adds_noise or case.rounds > 1 else 83
    for epsilon0 in case.budgets.epsilons.tolist():
        profile = privacy_profile(case, epsilon0)
        for epsilon in np.linspace(0.0, 1.2 * profile.epsilon(1e-7).upper, points).tolist():
            delta = profile.delta(epsilon)
            below = 1e-7 + (1 - 1e-7) * float(normal_divergence(epsilon, 0.99 * mu).upper)
            needed = max(needed, delta.upper - below)
            assert delta.lower <= 1e-7 + (1 - 1e-7) * float(normal_divergence(epsilon, mu).upper)
    assert needed > 0.0


@pytest.mark.slow
def test_many_levels():
    """Of levels hidden alike the top one stands for all; of visible ones, those with fewest users besides."""
    spread = sdp.Budgets(np.linspace(0.1, 1.0, 40), np.full(40, 100))
    together = sdp.Setting(spread, sdp.RandomizedResponse(2), "reports", "replace-one")
    top = privacy_profile(together, 1.0)
    assert worst_mu(together, 1e-9) == pytest.approx(dominating_mu(top, 1e-9), rel=1e-3)
    counts = np.full(40, 1000)
    counts[20] = 20
    visible = sdp.Setting(sdp.Budgets(spread.epsilons, counts), "any", "levels", "replace-one")
    each = [dominating_mu(privacy_profile(visible, e), 1e-9) for e in spread.epsilons[[20, 39]].tolist()]
    assert each[0] > each[1]
    assert worst_mu(visible, 1e-9) == pytest.approx(max(each), rel=1e-3)
    with pytest.raises(OutOfRegime, match="up to 32 budget levels"):
        worst_mu(sdp.Setting(spread, sdp.Laplace(0, 1), "reports", "replace-one"), 1e-9)


@pytest.mark.slow
def test_a_sum_hides_everybody_alike():
    """Of many levels only the top one is evaluated."""
    spread = sdp.Budgets(np.linspace(0.1, 1.0, 40), np.full(40, 2))
    summed = sdp.Setting(spread, sdp.Laplace(0, 1), "sum", "replace-one")
    by_hand = dominating_mu(privacy_profile(summed, 1.0), 1e-9)
    assert worst_mu(summed, 1e-9) == pytest.approx(by_hand, rel=3e-3)


def test_what_no_mu_covers_is_refused():
    """Delta0 reveals more than `outside`, or an epsilon too large for doubles."""
    revealing = sdp.certify(sdp.Setting(sdp.Budgets([1.0], [50], [1e-6]), "any", "reports", "replace-one"), 1e-3)
    with pytest.raises(OutOfRegime, match="falls no further than 1e-06"):
        revealing.mu(1e-9)
    assert 0.0 < revealing.mu(1e-4) < 2.0
    with pytest.raises(OutOfRegime, match="before epsilon = 700"):
        dominating_mu(LocalProfile(700.5, 0.0), 0.0)
    assert dominating_mu(LocalProfile(200.0, 0.0), 0.0) == math.inf


@pytest.mark.parametrize("outside", [-0.1, 1.0, math.nan, math.inf, "1e-9", None, True])
def test_outside_must_be_a_probability(outside):
    with pytest.raises(InvalidInput, match="outside must be a probability"):
        sdp.certify(setting(1.0, 10), 1e-6).mu(outside)


def test_a_guarantee_without_a_profile_has_no_mu():
    known = sdp.certify(setting(1.0, 10), 1e-6)
    bare = sdp.Guarantee(known.setting, known.delta, known.levels, known.levels_total, known.evidence)
    assert bare == known
    with pytest.raises(InvalidInput, match="without a privacy profile"):
        bare.mu(1e-9)


def test_a_guarantee_travels_with_its_mu():
    known = sdp.certify(setting(1.0, 100), 1e-6)
    assert pickle.loads(pickle.dumps(known)).mu(1e-9) == known.mu(1e-9)


class Jagged(PrivacyProfile):
    """The profile of a Gaussian shift of 0.1 whose computed upper ends jump by up to a part in a thousand."""

    vanishes_at = math.inf
    mass_at_infinity = Interval(0.0, 0.0)

    def delta_at(self, epsilon):
        found = normal_divergence(epsilon, 0.1)
        jump = 1.0 + 1e-3 * (hash(epsilon) % 1000) / 1000
        return Interval(float(found.lower), float(found.upper) * jump)


def test_a_jagged_curve_costs_little():
    assert 0.1 < dominating_mu(Jagged(), 1e-9) < 0.1003


def test_a_gaussian_shift_dominates_itself_and_nothing_smaller_does():
    smooth = dominating_mu(sdp.accounting.GaussianSumProfile(0.1), 1e-12)
    assert 0.1 * (1 - 1e-6) < smooth < 0.1 * (1 + 3e-4)


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.1, 1.0, 9.0, 60.0])
@pytest.mark.parametrize("times", [0.0, 0.3, 2.0, 7.0, 30.0])
def test_the_tail_mass_against_mpmath(mu, times):
    epsilon = mu * times
    found = normal_tail_mass(epsilon, mu)
    with mpmath.workdps(60):
        exact = mpmath.ncdf(-mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mpmath.mpf(mu))
        assert mpmath.mpf(float(found.lower)) <= exact <= mpmath.mpf(float(found.upper))
        assert float(found.upper) - float(found.lower) <= 1e-11 * float(exact) + 1e-319
