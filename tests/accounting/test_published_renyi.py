"""Published Rényi bounds: curves, conversion, what a lower curve implies, regimes."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import exp, floor, log, mpf

from shuffledp.accounting.published.renyi import (
    GirgisBound,
    GirgisLowerBound,
    GirgisLowerProfile,
    GirgisUpperProfile,
    LinearRenyiProfile,
    RdpRenyiBound,
    least_over_orders,
)
from shuffledp.accounting.theorems.count.exact import rr_count_profile
from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput, OutOfRegime
from shuffledp.randomizers import RandomizedResponse
from shuffledp.setting import Setting
from tests import oracles

DELTA = 1e-6


def one_budget(e0: float, n: int, randomizer: object = "any", rounds: int = 1) -> Setting:
    return Setting(Budgets([e0], [n]), randomizer, seen="reports", neighboring="replace-one", rounds=rounds)  # type: ignore[arg-type]


# ------------------------------------------------------------------ curves

PRINTED = {2: (0.002956, 0.000552, 0.2412), 4: (0.005912, 0.001103, 0.3216), 8: (0.011824, 0.002193, 0.5513)}
PRINTED[32] = (0.047295, 0.007812, 1.9917)


@pytest.mark.parametrize("order", PRINTED)
def test_curves_as_printed(order):
    """Budget 2, 10,000 users: Corollary 2, and the lower and upper bound of Girgis et al."""
    setting = one_budget(2.0, 10_000)
    linear, lower, upper = PRINTED[order]
    found = RdpRenyiBound().one_round(setting, 2.0).renyi(order)
    assert found.upper == pytest.approx(linear, abs=6e-7)
    assert GirgisLowerBound().one_round(setting, 2.0).renyi(order).lower == pytest.approx(lower, abs=6e-7)
    assert GirgisBound().one_round(setting, 2.0).renyi(order).upper == pytest.approx(upper, abs=6e-5)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 12.0), st.integers(1, 10**7), st.integers(2, 3000))
def test_the_curves_enclose_their_formulas(e0, n, order):
    E, m, k = exp(mpf(e0)), floor((n - 1) / (2 * exp(mpf(e0)))) + 1, mpf(order)
    upper = log(exp(k**2 * (E - 1) ** 2 / m) + exp(e0 * k - (n - 1) / (8 * E))) / (k - 1)
    found = GirgisUpperProfile(e0, n).renyi(order)
    assert found.lower <= upper <= found.upper
    assert found.upper - found.lower <= 1e-9 * found.upper or m < 100  # the floor may be on a whole number
    lower = log(1 + k * (k - 1) / 2 * (E - 1) ** 2 / (n * E)) / (k - 1)
    found = GirgisLowerProfile(e0, n).renyi(order)
    assert found.lower <= lower <= found.upper
    assert found.upper - found.lower <= 1e-12 * found.upper


def renyi_of_randomized_response(e0: float, n: int, order: int) -> mpf:
    """Of the count of ones when the others hold x0: the divergence of the victim's x1 from x0, by its definition."""
    s = 1 / (1 + exp(mpf(e0)))
    others = [*oracles.binomial_pmf(n - 1, s), mpf(0)]
    before = [mpf(0), *others[:-1]]
    p0 = [(1 - s) * b + s * a for a, b in zip(before, others, strict=True)]
    p1 = [s * b + (1 - s) * a for a, b in zip(before, others, strict=True)]
    moment = sum(p**order * q ** (1 - order) for p, q in zip(p1, p0, strict=True))
    return log(moment) / (order - 1)


@pytest.mark.parametrize(("e0", "n"), [(0.5, 1), (0.5, 40), (2.0, 40), (1.0, 200)])
def test_randomized_response_is_between_the_two_curves(e0, n):
    for order in (2, 3, 8):
        truth = renyi_of_randomized_response(e0, n, order)
        assert GirgisLowerProfile(e0, n).renyi(order).lower <= truth
        assert truth <= GirgisUpperProfile(e0, n).renyi(order).upper
    # at order 2 the lower bound is randomized response's own divergence
    exact = GirgisLowerProfile(e0, n).renyi(2)
    assert float(renyi_of_randomized_response(e0, n, 2)) == pytest.approx(exact.upper, rel=1e-12)


@pytest.mark.parametrize("order", [1, 0.5, 2.5, -2, math.inf, math.nan])
def test_orders_for_which_nothing_is_stated_are_refused(order):
    for profile in (GirgisUpperProfile(1.0, 1000), GirgisLowerProfile(1.0, 1000)):
        with pytest.raises(InvalidInput, match="whole orders"):
            profile.renyi(order)
    linear = LinearRenyiProfile(0.01)
    if 1 < order < math.inf:
        assert linear.renyi(order).upper == 0.01 * order
    else:
        with pytest.raises(InvalidInput, match="above 1"):
            linear.renyi(order)


# ------------------------------------------------------------------ conversion


@settings(max_examples=40, deadline=None)
@given(st.floats(0.0, 1.0), st.floats(-9, 20))
def test_the_search_over_orders_finds_the_best_integer(shift, scale):
    """(order - best)^2 has its valley anywhere from 2 to half a million."""
    best = min(max(2.0 + shift + 2.0 ** max(scale, 0.0), 2.0), 2.0**19)
    assert least_over_orders(lambda orders: (orders - best) ** 2) in {math.floor(best), math.ceil(best)}


@pytest.mark.parametrize(("e0", "n"), [(0.1, 1000), (1.0, 10_000), (2.0, 200_000), (3.0, 10**6)])
def test_conversion_by_brute_force_over_orders(e0, n):
    profile = GirgisUpperProfile(e0, n)
    orders = np.arange(2.0, 20_000.0)
    brute = float(np.min(profile.curve(orders).upper + math.log(1 / DELTA) / (orders - 1)))
    found = profile.epsilon(DELTA)
    assert found.upper == pytest.approx(brute, rel=1e-12)
    assert found.lower <= brute * (1 + 1e-12)
    # and back: the delta of that epsilon is the delta asked for, from the same order
    assert profile.delta(found.upper).lower <= DELTA * (1 + 1e-9)
    assert profile.delta(found.upper * (1 - 1e-6)).upper > DELTA


@settings(max_examples=40, deadline=None)
@given(st.floats(-8, 2).map(lambda t: 10.0**t), st.floats(1e-12, 0.9))
def test_the_linear_curve_has_its_best_order_in_closed_form(slope, delta):
    profile = LinearRenyiProfile(slope)
    epsilon = profile.epsilon(delta).upper
    best = 1 + math.sqrt(math.log(1 / delta) / slope)
    assert epsilon == pytest.approx(slope * best + math.log(1 / delta) / (best - 1), rel=1e-12)
    for order in (best * 1.01, 1 + (best - 1) * 0.99):
        assert slope * order + math.log(1 / delta) / (order - 1) >= epsilon * (1 - 1e-14)
    assert profile.delta(epsilon).upper == pytest.approx(delta, rel=1e-6)


def test_rounds_add_up():
    one, four = (RdpRenyiBound().profile(one_budget(1.0, 10_000, rounds=r), 1.0) for r in (1, 4))
    assert four.renyi(8).upper == pytest.approx(4 * one.renyi(8).upper)
    with pytest.raises(OutOfRegime, match="rounds"):
        GirgisBound().profile(one_budget(1.0, 10_000, rounds=4), 1.0)


# ------------------------------------------------------------------ what the lower curve implies


@settings(max_examples=60, deadline=None)
@given(st.floats(0.02, 6.0), st.integers(1, 20_000), st.floats(0.0, 0.99))
def test_the_implied_delta_is_never_above_what_randomized_response_leaks(e0, n, share):
    leaked = rr_count_profile(Budgets([e0], [n]), e0).delta(share * e0).upper
    implied = GirgisLowerProfile(e0, n).delta(share * e0)
    assert implied.lower <= leaked
    assert implied.upper - implied.lower <= 1e-6 * implied.upper + 1e-12


def test_for_one_user_the_lower_bound_is_exact():
    for eps in (0.0, 0.3, 0.9):
        truth = rr_count_profile(Budgets([1.0], [1]), 1.0).delta(eps)
        assert GirgisLowerProfile(1.0, 1).delta(eps).lower == pytest.approx(truth.upper, rel=1e-9)


def test_the_implied_epsilon_is_a_real_lower_bound_of_the_expected_size():
    """About the Gaussian mu = sqrt(8) sinh(e0/2)/sqrt(2 n): a fifth of what an attack shows at this delta."""
    for e0, n in ((1.0, 1000), (2.0, 10_000)):
        implied = GirgisLowerBound().profile(one_budget(e0, n), e0).epsilon(DELTA).lower
        attack = rr_count_profile(Budgets([e0], [n]), e0).epsilon(DELTA).lower
        mu = 2 * math.sinh(e0 / 2) / math.sqrt(n)
        assert 0.9 * mu < implied < attack
    by_n = [GirgisLowerBound().profile(one_budget(1.0, n), 1.0).epsilon(DELTA).lower for n in (10, 100, 1000, 10_000)]
    assert all(a > b > 0 for a, b in pairwise(by_n))


def test_the_lower_bound_belongs_to_two_outcomes():
    with pytest.raises(OutOfRegime, match="two-outcome randomizers; got krr:3"):
        GirgisLowerBound().profile(one_budget(1.0, 1000, RandomizedResponse(3)), 1.0)
    same = [GirgisLowerBound().profile(one_budget(1.0, 1000, r), 1.0) for r in ("any", RandomizedResponse(2))]
    assert same[0] == same[1]


def test_huge_budgets_are_refused():
    for bound in (GirgisBound(), GirgisLowerBound()):
        with pytest.raises(OutOfRegime, match=f"{bound.key} is evaluated up to epsilon0 = 300; got 301"):
            bound.profile(one_budget(301.0, 10), 301.0)
        assert bound.profile(one_budget(300.0, 10), 300.0).epsilon(DELTA).upper >= 0.0
