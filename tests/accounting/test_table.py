"""Finite pairs, Renyi divergences and trade-off functions against exact small laws, closed forms and golden values."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import exp, log, mp, mpf

from shuffledp.accounting.profiles.knots import Points, dominated_pair, dominating_pair, valleys
from shuffledp.accounting.profiles.profile import GaussianProfile, PrivacyProfile
from shuffledp.accounting.theorems.clones.pair import ClonePairProfile, clone_count, log_expectation, one_budget_profile
from shuffledp.accounting.theorems.count.exact import rr_count_profile
from shuffledp.accounting.theorems.local import LocalProfile
from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.numerics.floats import Interval
from tests.accounting.exact_pairs import ExactProfile, random_pair

GOLDEN = json.loads((Path(__file__).parents[1] / "reference" / "clone_pair.json").read_text(encoding="utf-8"))
ROUNDED = 2e-16


def symmetric_curve(profile: ExactProfile, epsilon: float) -> float:
    """f(e^eps) of the symmetric pair, any sign of eps."""
    if epsilon < 0.0:
        return -math.expm1(epsilon) + math.exp(epsilon) * symmetric_curve(profile, -epsilon)
    return max(profile.exact(epsilon), profile.exact(epsilon, True))


def law_curve(law: object, epsilon: float) -> float:
    """E (1 - e^(eps - L))_+ of a finite law of losses."""
    rise = np.maximum(-np.expm1(np.minimum(epsilon - law.losses, 0.0)), 0.0)
    return float(rise @ np.exp(law.log_masses)) + law.infinite


@given(seed=st.integers(0, 2**32 - 1), slack=st.sampled_from([0.0, 1e-9, 1e-3, 0.1]))
@settings(deadline=None, max_examples=30)
def test_finite_pairs_lie_on_their_sides_at_every_x(seed, slack):
    rng = np.random.default_rng(seed)
    profile = ExactProfile(*random_pair(rng, int(rng.integers(2, 9))), slack=slack)
    for t in (0.3, 5.0):
        profile.table.refine(t)
    upper, lower = profile.table.upper("forward").law, profile.table.lower("forward").law
    for law, sign in ((upper, 1.0), (lower, -1.0)):
        assert float(np.exp(law.log_masses).sum()) + law.infinite == pytest.approx(1.0, abs=1e-7)
        assert sign * (float(np.exp(law.log_masses).sum()) + law.infinite - 1.0) > -1e-13
    for epsilon in rng.normal(0.0, 1.5, 40).tolist():
        truth = symmetric_curve(profile, epsilon)
        assert law_curve(upper, epsilon) >= truth - 1e-15
        assert law_curve(lower, epsilon) <= truth + 1e-15


@example(seed=1508, order=1.0001)  # where an oracle of 15 digits was off by 2e-10
@given(seed=st.integers(0, 2**32 - 1), order=st.floats(1.0001, 60.0))
@settings(deadline=None, max_examples=30)
def test_renyi_of_random_pairs(seed, order):
    rng = np.random.default_rng(seed)
    profile = ExactProfile(*random_pair(rng, int(rng.integers(2, 9))), two_way=True)
    found = profile.renyi(order)
    truth = max(profile.renyi_exact(order), profile.renyi_exact(order, True))
    assert found.lower <= truth * (1 + 1e-13)
    assert truth <= found.upper * (1 + 1e-13)
    assert found.width <= 1e-2 * truth
    one_way = profile.renyi_directions(np.array([order - 1.0]))
    for ends, reverse in zip(one_way, (False, True), strict=True):
        assert ends.lower[0] <= profile.renyi_exact(order, reverse) * (1 + 1e-13)
        assert ends.upper[0] >= profile.renyi_exact(order, reverse) * (1 - 1e-13)


def tradeoff_exact(p: np.ndarray, q: np.ndarray, alpha: float) -> float:
    """Type II error of the best randomised test of p against q with type I error alpha (Neyman and Pearson)."""
    order = np.argsort(p / q)
    size, power = 0.0, 0.0
    for i in order:
        take = min(1.0, (alpha - size) / p[i])
        size, power = size + take * p[i], power + take * q[i]
        if take < 1.0:
            break
    return 1.0 - power


@given(seed=st.integers(0, 2**32 - 1), alpha=st.floats(0.001, 0.999))
@settings(deadline=None, max_examples=25)
def test_tradeoff_of_symmetric_pairs(seed, alpha):
    rng = np.random.default_rng(seed)
    p, q = random_pair(rng, 4)
    both, other = np.concatenate((p, q)) / 2.0, np.concatenate((q, p)) / 2.0
    found = ExactProfile(both, other).tradeoff(alpha)
    truth = tradeoff_exact(both, other, alpha)
    assert found.lower <= truth + 1e-14
    assert truth - 1e-14 <= found.upper
    assert found.width <= 2e-3 * truth + 1e-12


@given(seed=st.integers(0, 2**32 - 1), alpha=st.floats(0.001, 0.999))
@settings(deadline=None, max_examples=15)
def test_tradeoff_is_never_above_either_order_of_the_pair(seed, alpha):
    rng = np.random.default_rng(seed)
    p, q = random_pair(rng, 5)
    found = ExactProfile(p, q, two_way=True).tradeoff(alpha)
    assert found.lower <= min(tradeoff_exact(p, q, alpha), tradeoff_exact(q, p, alpha)) + 1e-14


def test_tradeoff_ends_and_gaussian():
    profile = GaussianProfile(1.0)
    assert profile.tradeoff(0.0).upper == pytest.approx(1.0)
    assert profile.tradeoff(1.0) == Interval(0.0, 0.0)
    for alpha in (0.01, 0.3, 0.9):
        truth = float(mp.ncdf(mp.sqrt(2) * mp.erfinv(2 * (1 - mpf(alpha)) - 1) - 1))
        found = profile.tradeoff(alpha)
        assert found.lower <= truth * (1 + 1e-9)
        assert found.upper >= truth * (1 - 1e-9)
        assert found.width <= 3e-4 * truth
    # very large alpha: T keeps its digits
    tiny = one_budget_profile(1.0, 1000, coarse=False).tradeoff(1.0 - 2.0**-30)
    assert tiny.lower > 0.0
    assert tiny.width <= 1e-3 * tiny.upper


def golden_cases(prefix: str) -> list[object]:
    chosen = [case for case in GOLDEN if case["kind"].startswith(prefix) and "renyi" in case]
    assert chosen
    names = [f"n={c.get('n', len(c.get('epsilons', [])))},v={c.get('victim')}" for c in chosen]
    return [pytest.param(case, id=name) for case, name in zip(chosen, names, strict=True)]


def check_golden(profile: PrivacyProfile, case: dict[str, object]) -> None:
    orders = [order for order, _ in case["renyi"]]
    curve = profile.renyi_curve(orders)
    for i, (order, golden) in enumerate(case["renyi"]):
        one = Interval(float(curve.lower[i]), float(curve.upper[i]))
        assert one.lower <= golden * (1 + ROUNDED), (order, one, golden)
        assert one.upper >= golden * (1 - ROUNDED), (order, one, golden)
        assert one.width <= 5e-4 * golden, (order, one, golden)


@pytest.mark.costly("n=400,v=None", "n=50,v=None")
@pytest.mark.parametrize("case", golden_cases("uniform clone pair"))
def test_golden_uniform(case):
    check_golden(one_budget_profile(case["epsilon0"], case["n"], coarse=False), case)


@pytest.mark.costly("n=60,v=34")
@pytest.mark.parametrize("case", golden_cases("personalized clone pair"))
def test_golden_personal(case):
    budgets = Budgets.of(case["epsilons"])
    epsilon0 = case["epsilons"][case["victim"]]
    level = int(np.searchsorted(budgets.epsilons, epsilon0))
    check_golden(ClonePairProfile(epsilon0, clone_count(budgets, level)), case)


def rr_renyi(epsilon0: float, order: float) -> mpf:
    """Randomized response: log(w^l (1-w)^(1-l) + (1-w)^l w^(1-l))/(l-1)."""
    with mp.workdps(600):
        w, order = 1 / (1 + exp(-mpf(epsilon0))), mpf(order)
        v = w * exp(-mpf(epsilon0))
        return log(w**order * v ** (1 - order) + v**order * w ** (1 - order)) / (order - 1)


@pytest.mark.parametrize("epsilon0", [1e-7, 0.01, 1.0, 20.0, 600.0])
def test_randomized_response_closed_form(epsilon0):
    orders = [1 + 2.0**-40, 1.001, 1.5, 2.0, 33.0, 1000.0, 1e4]
    found = LocalProfile(epsilon0, 0.0).renyi_curve(orders)
    for i, order in enumerate(orders):
        truth = rr_renyi(epsilon0, order)
        assert found.lower[i] <= truth <= found.upper[i], order
        assert found.upper[i] - found.lower[i] <= 1e-6 * truth
        assert found.upper[i] <= epsilon0


def test_reference_points():
    profile = one_budget_profile(2.0, 10_000, coarse=False)
    for order, printed in ((2, 0.000973), (4, 0.001947), (8, 0.003894), (32, 0.015577)):
        found = profile.renyi(order)
        assert found.lower - 5e-7 <= printed <= found.upper + 5e-7
        assert found.width <= 3e-4 * found.upper


@pytest.mark.costly
def test_a_curve_is_the_same_as_its_points_and_does_not_decrease():
    profile = one_budget_profile(1.0, 1000, coarse=False)
    orders = np.geomspace(1.05, 3000.0, 20).reshape(4, 5)
    curve = profile.renyi_curve(orders)
    assert curve.lower.shape == (4, 5)
    assert np.all(np.diff(curve.upper.ravel()) > -1e-3 * curve.upper.ravel()[1:])
    one = profile.renyi(float(orders[2, 2]))
    assert one.lower <= curve.upper[2, 2]
    assert curve.lower[2, 2] <= one.upper


@pytest.mark.costly
def test_deep_orders_stay_narrow_and_below_the_budget():
    found = one_budget_profile(1.0, 10_000, coarse=False).renyi(1e4)
    assert found.upper <= 1.0
    assert found.width <= 0.01 * found.upper
    # the likeliest single outcome of both laws is a lower bound: no clones but k, all on one side
    truth = _clone_renyi_by_maximum(1.0, 10_000, 1e4)
    assert found.lower - 1e-2 * found.upper <= truth <= found.upper


def _clone_renyi_by_maximum(epsilon0: float, n: int, order: float) -> float:
    """Largest term of sum P^l Q^(1-l) over the counts (a, m) of the clone pair."""
    c = np.arange(0.0, n, 10.0)[:, None]
    a = np.linspace(0.0, 1.0, 1001)[None, :] * (c + 1)
    m, w = c + 1.0, 1 / (1 + math.exp(-epsilon0))
    from scipy.special import gammaln

    p = 2.0 / (1.0 + math.exp(epsilon0))
    log_c = gammaln(n) - gammaln(c + 1) - gammaln(n - c) + c * math.log(p) + (n - 1 - c) * math.log1p(-p)
    log_fair = gammaln(m + 1) - gammaln(a + 1) - gammaln(m - a + 1) - m * math.log(2.0)
    up, down = 2 * (w * a + (1 - w) * (m - a)) / m, 2 * ((1 - w) * a + w * (m - a)) / m
    logs = log_c + log_fair + order * np.log(up) - (order - 1) * np.log(down)
    return float(logs.max()) / (order - 1)


@pytest.mark.costly("0.05", "0.4")
@pytest.mark.parametrize("share", [0.05, 0.4, 0.8, 0.999])
def test_deep_logarithms_of_the_clone_pair(share):
    """E psi_C summed over every number of clones, in logarithms of 40 digits."""
    n, epsilon0 = 150, 2.0
    profile = one_budget_profile(epsilon0, n, coarse=False)
    from shuffledp.accounting.theorems.clones.pair import victim_line

    excess = victim_line(share * epsilon0, epsilon0)[1]
    p, s, total = 2 / (1 + exp(mpf(epsilon0))), 1 + mpf(excess), mpf(0)
    for c in range(n):
        a = int(mp.ceil((c + 1) * s / (1 + s)))
        tails = [mp.fsum(mp.binomial(c, k) for k in range(max(low, 0), c + 1)) / mpf(2) ** c for low in (a - 1, a)]
        total += mp.binomial(n - 1, c) * p**c * (1 - p) ** (n - 1 - c) * (tails[0] - s * tails[1])
    found = log_expectation(profile.clones, excess)
    assert found.lower <= log(total) <= found.upper
    assert found.width <= 12.0


def test_mass_at_infinity_has_no_divergence_but_a_tradeoff():
    profile = LocalProfile(1.0, 0.01)
    assert profile.renyi(2.0).upper == math.inf
    assert profile.tradeoff(0.0).upper <= 1.0
    assert profile.total_variation().lower > 0.4


def test_nothing_to_tell_apart():
    profile = LocalProfile(0.0, 0.0)
    assert profile.renyi(5.0) == Interval(0.0, 0.0)
    assert profile.total_variation() == Interval(0.0, 0.0)
    assert profile.tradeoff(0.3).lower == pytest.approx(0.7)


def test_directions_of_a_real_pair_differ():
    profile = rr_count_profile(Budgets([1.0], [8]), 1.0)
    forward, backward = profile.delta_pair(0.3)
    assert profile.directed
    assert forward.upper < backward.lower or backward.upper < forward.lower
    assert profile.delta(0.3).upper == max(forward.upper, backward.upper)
    first, second = profile.renyi_directions(np.array([7.0]))
    assert abs(first.upper[0] - second.upper[0]) > 0.01 * first.upper[0]
    assert profile.renyi(8.0).upper == max(first.upper[0], second.upper[0])


@pytest.mark.parametrize("order", [1.0, 0.5, -2.0, math.nan, math.inf, "two"])
def test_bad_orders(order):
    with pytest.raises(InvalidInput, match="order"):
        LocalProfile(1.0, 0.0).renyi(order)


@pytest.mark.parametrize("alpha", [-0.1, 1.1, math.nan, None])
def test_bad_type_one_errors(alpha):
    with pytest.raises(InvalidInput, match="type I"):
        LocalProfile(1.0, 0.0).tradeoff(alpha)


def test_valleys_are_below_a_convex_curve():
    eps = np.array([0.0, 0.3, 0.7, 1.5, 4.0])
    values = np.log(np.exp(-2.0 * np.exp(eps)))  # exp(-2x) is convex in x, and below 1 at x = 0
    at, low = valleys(eps, values - 1e-6, values + 1e-6)
    assert np.all(low <= -2.0 * np.exp(at))
    assert np.all(at >= eps[:-1])
    assert np.all(at <= eps[1:])


def test_jagged_points_make_one_convex_curve():
    rng = np.random.default_rng(5)
    eps = np.sort(np.concatenate(([0.0], rng.uniform(0.0, 3.0, 60))))
    log_values = -1.0 - np.exp(eps) + rng.uniform(0.0, 1e-3, eps.size)
    points = Points(eps, np.minimum.accumulate(log_values), float(np.min(log_values)))
    pair = dominating_pair(points, points)
    # masses of kinks are positive by construction; the curve must still pass above every true value
    x = np.exp(eps)
    assert np.all(np.interp(x, np.exp(pair.forward.eps), np.exp(pair.forward.log)) >= np.exp(-1 - x))
    below = dominated_pair(points, points)
    assert np.all(np.interp(x, np.exp(below.forward.eps), np.exp(below.forward.log)) <= np.exp(log_values))


def test_no_warning_at_the_edges_of_double_range():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for epsilon0, n in ((30.0, 100), (700.0, 50), (1e-9, 10**6), (8.0, 2)):
            profile = one_budget_profile(epsilon0, n, coarse=False)
            found = profile.renyi_curve([1.01, 2.0, 50.0, 9000.0])
            assert np.all(found.lower <= found.upper)
            assert np.all(found.upper <= epsilon0)
            assert found.lower[2] > 0.0
            assert profile.tradeoff(0.3).width < 1e-2
