"""The Gaussian, clone-pair and closed-form publications: numbers, regimes, refusals."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import exp, log, mpf, sqrt

from shuffledp.accounting.bound import AmplificationBound
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.published import PUBLISHED
from shuffledp.accounting.theorems.clones.pair import one_budget_profile
from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput, OutOfRegime
from shuffledp.randomizers import RandomizedResponse
from shuffledp.setting import Kind, Setting
from tests import oracles

BY_KEY: dict[str, AmplificationBound] = {bound.key: bound for bound in PUBLISHED}
DELTA = 1e-6


def one_budget(e0: float, n: int, randomizer: object = "any", seen: str = "reports", **more: object) -> Setting:
    return Setting(Budgets([e0], [n]), randomizer, seen=seen, neighboring="replace-one", **more)  # type: ignore[arg-type]


def upper(key: str, e0: float, n: int, delta: float = DELTA) -> float:
    return BY_KEY[key].profile(one_budget(e0, n), e0).epsilon(delta).upper


def refusal(key: str, setting: Setting, delta: float | None = None) -> str:
    """The message with which a bound refuses a setting, or, if delta is given, that delta."""
    top = float(setting.budgets.epsilons[-1])
    profile = BY_KEY[key].profile(setting, top) if delta is not None else None
    with pytest.raises(OutOfRegime) as caught:
        profile.epsilon(delta) if profile is not None else BY_KEY[key].profile(setting, top)
    return str(caught.value)


# ------------------------------------------------------------------ printed numbers

# (epsilon0, n): clones-2022, fmt22 as its authors' code has it, fmt23-closed, GSPA, the RDP paper's Theorem 2
PRINTED = {
    (0.1, 10**4): (0.002871, 0.01844, 0.0159, 0.07294, 0.07487),
    (0.5, 10**5): (0.005813, 0.03191, 0.02745, 0.02389, 0.0269),
    (1.0, 10**3): (0.1824, 0.6495, 0.4876, 0.3389, 0.4152),
    (1.0, 10**4): (0.05301, 0.2333, 0.18, 0.09894, 0.1212),
    (1.0, 10**6): (0.004335, 0.02381, 0.01947, 0.008216, 0.01011),
    (2.0, 10**4): (0.155, 0.5236, 0.3982, 0.1529, 0.2069),
    (4.0, 10**4): (0.6009, None, 0.9581, 0.42, 0.6028),
    (4.0, 10**6): (0.04931, 0.2016, 0.1473, 0.03566, 0.05127),
}


def four_digits(value: float) -> object:
    return pytest.approx(value, rel=6e-4)


@pytest.mark.parametrize(("e0", "n"), PRINTED)
def test_numbers_printed_elsewhere_come_out(e0, n):
    clones, _, closed, gspa, rdp = PRINTED[e0, n]
    assert upper("clones-2022", e0, n) == four_digits(clones)
    assert upper("fmt23-closed", e0, n) == four_digits(closed)
    assert upper("gspa", e0, n) == four_digits(gspa)
    assert upper("rdp-gdp", e0, n) == four_digits(rdp)


def fmt22_as_coded(e0: float, n: int, delta: float) -> float:
    """The 2022 closed form with the two-step denominator of its authors' public program."""
    rise = 8 * math.sqrt(math.exp(e0) * math.log(4 / delta) / n) + 8 * math.exp(e0) / n
    first = math.log1p(rise)
    return math.log1p(-math.expm1(-e0) / (1 + math.exp(-e0 - first)) * rise)


@pytest.mark.parametrize(("e0", "n"), [point for point, row in PRINTED.items() if row[1] is not None])
def test_the_2022_theorem_is_between_the_exact_pair_and_the_authors_code(e0, n):
    coded = fmt22_as_coded(e0, n, DELTA)
    assert coded == four_digits(PRINTED[e0, n][1])
    assert upper("clones-2022", e0, n) < upper("fmt22-closed", e0, n) < coded


def test_the_2022_theorem_in_high_precision():
    E, n, d = exp(mpf(1)), mpf(10**4), mpf(DELTA)
    right = log(1 + (E - 1) / (E + 1) * (8 * sqrt(E * log(4 / d) / n) + 8 * E / n))
    found = BY_KEY["fmt22-closed"].profile(one_budget(1.0, 10**4), 1.0).epsilon(DELTA)
    assert found.lower <= right <= found.upper
    assert found.upper == pytest.approx(0.2140, abs=5e-5)


def test_erlingsson_as_printed():
    for n, printed in ((10**4, 0.0446), (10**5, 0.0141), (10**6, 0.00446)):
        assert upper("erlingsson19", 0.1, n) == pytest.approx(printed, rel=2e-3)


@pytest.mark.parametrize(("e0", "n"), [(0.1, 10**4), (1.0, 10**4), (2.0, 10**4), (4.0, 10**6)])
def test_our_closed_form_is_within_one_per_cent_given_a_thousand_clones(e0, n):
    assert n * 2 / (1 + math.exp(e0)) > 1000
    assert upper("clones-closed", e0, n) == pytest.approx(
        one_budget_profile(e0, n, coarse=False).epsilon(DELTA).upper, rel=0.01
    )


# ------------------------------------------------------------------ soundness of what is called an upper bound

CERTIFIED = sorted(key for key, bound in BY_KEY.items() if bound.kind is Kind.CERTIFIED_UPPER)


@pytest.mark.costly
@settings(max_examples=40, deadline=None)
@given(st.floats(0.01, 6.0), st.integers(1, 200_000), st.floats(1e-10, 0.3))
def test_no_published_upper_bound_is_below_the_clone_pair(e0, n, delta):
    pair = one_budget_profile(e0, n, coarse=True).epsilon(delta).lower
    for key in CERTIFIED:
        try:
            found = BY_KEY[key].profile(one_budget(e0, n), e0).epsilon(delta)
        except OutOfRegime:
            continue
        assert found.upper >= pair, key


@settings(max_examples=25, deadline=None)
@given(st.floats(0.05, 3.0), st.integers(2000, 200_000), st.floats(0.02, 0.9))
def test_closed_forms_and_their_deltas_agree(e0, n, share):
    """delta(epsilon) is the smallest delta of the regime whose epsilon is at most the one asked for."""
    for key in ("fmt22-closed", "fmt23-closed", "erlingsson19"):
        try:
            profile = BY_KEY[key].profile(one_budget(e0, n), e0)
        except OutOfRegime:
            continue
        epsilon = share * e0
        found = profile.delta(epsilon)
        assert found.upper >= one_budget_profile(e0, n, coarse=True).delta(epsilon).lower
        if 1e-290 < found.upper < 1:
            assert profile.epsilon(found.upper).lower <= epsilon
            assert found.upper - found.lower <= 1e-6 * found.upper
            assert not serves(profile, found.lower * (1 - 1e-6), epsilon)


def serves(profile: PrivacyProfile, delta: float, epsilon: float) -> bool:
    try:
        return profile.epsilon(delta).upper <= epsilon
    except OutOfRegime:
        return False


@pytest.mark.parametrize("key", CERTIFIED)
def test_a_published_number_falls_in_delta_and_n_and_rises_with_the_budget(key):
    e0 = 0.4
    by_delta = [upper(key, e0, 50_000, delta) for delta in (1e-9, 1e-7, 1e-5, 1e-3)]
    assert all(a > b for a, b in pairwise(by_delta))
    by_n = [upper(key, e0, n) for n in (3_000, 30_000, 300_000)]
    assert all(a > b for a, b in pairwise(by_n))
    by_budget = [upper(key, e0, 50_000) for e0 in (0.1, 0.2, 0.4, 0.49)]
    assert all(a < b for a, b in pairwise(by_budget))


def test_none_may_enter_the_certified_interval():
    assert not any(bound.enters_bracket for bound in PUBLISHED)
    assert len(BY_KEY) == len(PUBLISHED) == 13
    assert {bound.source for bound in PUBLISHED} == {"paper", "code", "second", "own"}


def test_the_2022_pair_is_the_clone_pair_with_fewer_clones():
    """By direct sums, 40 digits: C ~ Bin(n-1, e^-eps0)."""
    e0, n, eps = 1.0, 12, 0.3
    p = exp(-mpf(e0))
    w = exp(mpf(e0)) / (1 + exp(mpf(e0)))
    total = mpf(0)
    for c, weight in enumerate(oracles.binomial_pmf(n - 1, p)):
        coins = oracles.binomial_pmf(c, mpf(1) / 2)
        for a in range(c + 2):
            first = coins[a - 1] if a else mpf(0)
            second = coins[a] if a <= c else mpf(0)
            total += weight * max(mpf(0), w * first + (1 - w) * second - exp(mpf(eps)) * ((1 - w) * first + w * second))
    found = BY_KEY["clones-2022"].profile(one_budget(e0, n), e0).delta(eps)
    assert found.lower <= total <= found.upper
    assert found.upper - found.lower < 1e-9


@pytest.mark.parametrize("e0", [0.01, 0.5, 2.0, 6.0])
@pytest.mark.parametrize("n", [2, 100, 10**5])
def test_clones_is_below_clones_2022(e0, n):
    """Why `certify` leaves the proof of 2022 out unless every published bound is asked for."""
    setting = one_budget(e0, n)
    for delta in (1e-3, 1e-9):
        newer = one_budget_profile(e0, n, coarse=False).epsilon(delta)
        assert newer.lower <= BY_KEY["clones-2022"].profile(setting, e0).epsilon(delta).lower * (1.0 + 1e-5)


# ------------------------------------------------------------------ rounds


def test_gspa_rounds_multiply_mu_by_a_square_root():
    one = BY_KEY["gspa"].profile(one_budget(1.0, 1000), 1.0)
    four = BY_KEY["gspa"].profile(one_budget(1.0, 1000, rounds=4), 1.0)
    assert four.mu == pytest.approx(2 * one.mu, rel=1e-14)
    assert four.epsilon(1e-5).upper > one.epsilon(1e-5).upper


@pytest.mark.parametrize("key", sorted(set(BY_KEY) - {"gspa", "rdp-renyi", "clones-2022"}))
def test_rounds_are_refused_where_the_publication_does_not_compose(key):
    assert "rounds" in refusal(key, one_budget(0.3, 5000, rounds=2))


@pytest.mark.parametrize("key", sorted(set(BY_KEY) - {"clones-2022"}))
@pytest.mark.parametrize(
    ("more", "got"),
    [
        ({"colluding": 3}, "colluding users"),
        ({"missing": 0.1}, "missing reports"),
        ({"group_size": 2}, "groups"),
        ({"reports_per_user": 2}, "several reports per user"),
    ],
)
def test_situations_the_publication_does_not_cover_are_refused(key, more, got):
    assert got in refusal(key, one_budget(0.3, 5000, RandomizedResponse(2), **more))


# ------------------------------------------------------------------ refusals, one by one

ONE_BUDGET = sorted(set(BY_KEY) - {"gspa", "liu23"})
TWO_LEVELS = Setting(
    Budgets([0.2, 0.4], [4000, 4000]), RandomizedResponse(2), seen="reports", neighboring="replace-one"
)
MANY = Setting(
    Budgets(np.linspace(0.1, 0.4, 50), [100] * 50), RandomizedResponse(2), seen="reports", neighboring="replace-one"
)
APPROXIMATE = Setting(Budgets([0.3], [5000], [1e-9]), "any", seen="reports", neighboring="replace-one")


@pytest.mark.parametrize("key", ONE_BUDGET)
def test_several_budgets_are_refused(key):
    message = refusal(key, TWO_LEVELS)
    assert message.startswith(key)
    assert "2 levels" in message
    with pytest.raises(OutOfRegime, match="50 levels"):
        BY_KEY[key].level_epsilons(MANY, DELTA, np.arange(50))


@pytest.mark.parametrize("key", [*ONE_BUDGET, "liu23"])
def test_local_delta_is_refused(key):
    assert "delta0 = 1e-09" in refusal(key, APPROXIMATE)


@pytest.mark.parametrize("key", ["gspa", "liu23"])
def test_visible_levels_are_refused(key):
    levels = Setting(TWO_LEVELS.budgets, RandomizedResponse(2), seen="levels", neighboring="replace-one")
    assert "level" in refusal(key, levels)


@pytest.mark.parametrize("key", sorted(BY_KEY))
def test_an_unknown_victim_is_refused(key):
    with pytest.raises(InvalidInput, match="no user has epsilon0"):
        BY_KEY[key].profile(one_budget(0.3, 5000), 0.2)


@pytest.mark.parametrize("key", ["balle19-hoeffding", "balle19-bennett", "girgis21"])
def test_ordered_outputs_of_any_randomizer_are_refused(key):
    assert "seen = users" in refusal(key, one_budget(0.3, 5000, seen="users"))
    stated = one_budget(0.3, 5000, RandomizedResponse(2), seen="users")
    assert BY_KEY[key].profile(stated, 0.3).epsilon(DELTA).upper > 0


@pytest.mark.parametrize("key", sorted(set(BY_KEY) - {"balle19-hoeffding", "balle19-bennett", "girgis21"}))
@pytest.mark.parametrize("seen", ["users", "levels", "sum"])
def test_with_one_budget_it_does_not_matter_who_sees_what(key, seen):
    found = BY_KEY[key].profile(one_budget(0.3, 5000, seen=seen), 0.3).epsilon(DELTA)
    assert found == BY_KEY[key].profile(one_budget(0.3, 5000), 0.3).epsilon(DELTA)


@pytest.mark.parametrize("key", ["rdp-gdp", "rdp-renyi", "clones-closed", "liu23"])
def test_a_single_user_is_refused(key):
    assert refusal(key, one_budget(0.3, 1)).startswith(f"{key} needs n >= 2")


def test_erlingsson_refuses_outside_its_regime():
    assert refusal("erlingsson19", one_budget(0.5, 5000)) == "erlingsson19 needs epsilon0 < 1/2; got 0.5"
    assert refusal("erlingsson19", one_budget(0.4, 999)) == "erlingsson19 needs n >= 1000 users; got n = 999"
    assert refusal("erlingsson19", one_budget(0.4, 1000), 0.01) == "erlingsson19 needs delta < 1/100; got 0.01"
    assert upper("erlingsson19", 0.4999, 1000, 0.00999) > 0


@pytest.mark.parametrize(
    ("key", "edge"),
    [
        ("fmt22-closed", lambda n, d: math.log(n / (16 * math.log(2 / d)))),
        ("fmt23-closed", lambda n, d: math.log(n / (8 * math.log(2 / d)) - 1)),
    ],
)
def test_closed_forms_refuse_beyond_their_guard(key, edge):
    n, delta = 10_000, 1e-6
    assert upper(key, edge(n, delta) - 1e-9, n, delta) > 0
    message = refusal(key, one_budget(edge(n, delta) + 1e-9, n), delta)
    assert message.startswith(f"{key} needs epsilon0 <= log(n/(")
    assert "n = 10000" in message
    assert "delta = 1e-06" in message
    assert "no delta" in refusal(key, one_budget(9.0, 1000))


def test_closed_forms_say_nothing_where_no_delta_serves():
    for key in ("fmt22-closed", "fmt23-closed", "erlingsson19"):
        profile = BY_KEY[key].profile(one_budget(0.4, 1000), 0.4)
        assert profile.delta(0.0).upper == 1.0
        assert profile.delta(1e-6).upper == 1.0
        assert profile.delta(50.0).upper < 1e-3
        with pytest.raises(InvalidInput):
            profile.epsilon(0.0)


@pytest.mark.parametrize("key", sorted(BY_KEY))
def test_reports_that_say_nothing(key):
    """Budget 0: formulas that know it answer 0, none answers NaN."""
    try:
        profile = BY_KEY[key].profile(one_budget(0.0, 5000), 0.0)
    except OutOfRegime:
        assert key == "liu23"
        return
    found = profile.epsilon(DELTA).upper
    assert math.isfinite(found)
    if key not in ("gspa", "rdp-gdp", "rdp-renyi", "girgis21"):
        assert found == 0.0
