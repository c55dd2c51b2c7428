"""Frequency estimates from every mechanism: unbiased, covered, and the same however the reports are divided."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import secure_random, simulation_random
from shuffledp.questions.frequency import FREQUENCY_MECHANISMS, frequency, frequency_oracle, project_to_simplex
from shuffledp.questions.tally import ShuffledReports, shuffle_reports
from shuffledp.randomizers import LocalHashing, RandomizedResponse, UnaryEncoding

MECHANISMS = [name for name in FREQUENCY_MECHANISMS if name != "rr"]
LEVELS = (0.9, 0.99)
CASES = {
    "rare": (600, 6, np.full(600, 2.0)),
    "mixed": (500, 4, np.repeat([0.4, 1.0, 4.0], (200, 200, 100))),
    "plain": (150, 3, np.full(150, 9.0)),
    "few": (6, 3, np.full(6, 1.5)),
    "zeros": (300, 3, np.repeat([0.0, 2.0], (80, 220))),
}
LARGE = {
    "large": (20_000, 50, np.full(20_000, 1.0)),
    "own": (5_000, 12, np.random.default_rng(5).uniform(0.1, 3.0, 5_000)),
    "one-of-a-level": (1_000, 5, np.repeat([1.0, 6.0], (999, 1))),
    **CASES,
}


def tail(n, k):
    """Records from common to absent: half, a quarter, ..., and the last category empty."""
    records = np.minimum(np.random.default_rng(0).geometric(0.5, n) - 1, k - 2)
    return records, np.bincount(records, minlength=k) / n


def member(mechanism, k, epsilons):
    return frequency_oracle(mechanism, k).for_budgets(*np.unique(epsilons, return_counts=True))


def simulate(mechanism, case, seen, repeats, weights="population", seed=1):
    """Independent runs; budgets are dealt anew each time, the records stay."""
    n, k, epsilons = case
    records, target = tail(n, k)
    random, dealer, family = simulation_random(seed), np.random.default_rng(seed), member(mechanism, k, epsilons)
    runs = []
    for _ in range(repeats):
        budgets = dealer.permutation(epsilons)
        reports = family.randomize(records, budgets, random)
        runs.append(frequency(shuffle_reports(reports, budgets, seen=seen, random=random), family, weights=weights))
    return runs, target


def check(runs, target):
    """Seeded. Bias within the normal quantile of 1e-6 a category; misses as chance allows once in 1e5, each level.

    A true miss rate equal to the nominal one exceeds the allowance with probability 1e-5.
    """
    values = np.array([run.value for run in runs])
    errors = np.sqrt(np.mean([run.standard_error**2 for run in runs], axis=0) / len(runs))
    assert np.abs(values.mean(axis=0) - target).max() <= (norm.isf(1e-6) * errors).max()
    assert (np.abs(values.mean(axis=0) - target) <= norm.isf(1e-6) * errors * 1.1).all()
    for level in LEVELS:
        ends = [run.confidence_interval(level) for run in runs]
        missed = np.sum([(target < low) | (target > high) for low, high in ends], axis=0)
        assert missed.max() <= binom.isf(1e-5, len(runs), 1 - level), (level, missed)


@pytest.mark.costly(
    "krr-rare-reports",
    "olh-rare-levels",
    "subset-mixed-reports",
    "sue-mixed-levels",
    "sue-rare-reports",
    "sue-zeros-reports",
)
@pytest.mark.one_in(5)
@pytest.mark.parametrize("seen", ["reports", "levels"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_unbiased_and_covered(mechanism, case, seen):
    check(*simulate(mechanism, CASES[case], seen, 150))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seen", "weights"), [("reports", "population"), ("levels", "population"), ("levels", "precision")]
)
@pytest.mark.parametrize("case", LARGE)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_unbiased_and_covered_at_length(mechanism, case, seen, weights):
    check(*simulate(mechanism, LARGE[case], seen, 200 if case == "large" else 1000, weights, seed=2))


@pytest.mark.costly(but=("reports-population-krr",))
@pytest.mark.one_in(4)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    ("seen", "weights"), [("reports", "population"), ("levels", "population"), ("levels", "precision")]
)
def test_standard_error_is_the_standard_deviation(mechanism, seen, weights):
    # Seeded; a standard deviation from 400 runs is off by 16 % with probability 4e-6.
    n, k, epsilons = CASES["mixed"]
    if weights == "precision":  # a hundred people decide: an estimate of so few is shrunk before it enters its variance
        n, epsilons = 10 * n, np.repeat(epsilons, 10)
    runs, _ = simulate(mechanism, (n, k, epsilons), seen, 400, weights, seed=4)
    stated = np.sqrt(np.mean([run.standard_error**2 for run in runs], axis=0))
    assert stated == pytest.approx(np.std([run.value for run in runs], axis=0), rel=0.16)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_precision_is_the_least_noisy_for_records_drawn_evenly(mechanism):
    n, k = 4000, 4
    epsilons = np.repeat([0.4, 1.0, 3.0], (1500, 1500, 1000))
    family, random = member(mechanism, k, epsilons), simulation_random(3)
    reports = family.randomize(np.arange(n) % k, epsilons, random)
    shown = {
        weights: frequency(ShuffledReports(reports, epsilons, "levels"), family, weights=weights).standard_error
        for weights in ("population", "precision")
    }
    withheld = frequency(ShuffledReports(reports, epsilons, "reports"), family).standard_error
    assert (shown["precision"] < shown["population"]).all()
    assert (shown["precision"] < withheld * 1.001).all()


@pytest.mark.costly(but=("krr",))
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_levels_are_right_where_budgets_depend_on_records(mechanism):
    records, epsilons = np.repeat([0, 1, 2], (400, 300, 300)), np.repeat([2.0, 0.5], (400, 600))
    family, random = member(mechanism, 3, epsilons), simulation_random(7)
    truth = np.bincount(records) / 1000
    apart = family.support_law(epsilons).own - family.support_law(epsilons).other
    weighted = np.bincount(records, apart) / apart.sum()
    assert abs(weighted[0] - truth[0]) > 0.15
    for seen, target in (("levels", truth), ("reports", weighted)):
        runs = [
            frequency(ShuffledReports(family.randomize(records, epsilons, random), epsilons, seen), family)
            for _ in range(150)
        ]
        values = np.array([run.value for run in runs])
        # seeded: 1e-6 a category
        assert (np.abs(values.mean(axis=0) - target) < norm.isf(5e-7) * values.std(axis=0) / np.sqrt(149)).all()


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("weights", ["population", "precision"])
def test_estimate_is_the_formula(mechanism, weights):
    k, random = 5, np.random.default_rng(2)
    epsilons = random.choice([0.3, 1.0, 2.5], 200)
    family = member(mechanism, k, epsilons)
    reports = family.randomize(random.integers(k, size=200), epsilons, secure_random())
    p, q = family.support_law(epsilons)
    supports = np.array([family.support_counts(reports[i : i + 1]) for i in range(200)])
    share = q + (p - q) / k
    b = 1 / (p - q) if weights == "population" else (p - q) / (share * (1 - share))
    for seen, a in (("reports", np.ones(200)), ("levels", b)):
        a = a / np.sum(a * (p - q))
        estimate = frequency(ShuffledReports(reports, epsilons, seen), family, weights=weights)
        assert estimate.value == pytest.approx(a @ (supports - q[:, None]), rel=1e-10, abs=1e-12)
        assert estimate.step == pytest.approx(a.max())


def pieces(data, n):
    """Contiguous pieces of 0..n-1, some of them empty."""
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=6)))
    return list(zip([0, *cuts], [*cuts, n], strict=True))


@pytest.mark.parametrize("seen", ["reports", "levels"])
def test_one_budget_is_that_budget_for_everybody(seen):
    family = UnaryEncoding(9)
    reports = family.randomize(np.arange(3000) % 9, 1.2, simulation_random(3))
    one = frequency(ShuffledReports(reports, np.broadcast_to(1.2, 3000), seen), family)
    each = frequency(ShuffledReports(reports, np.full(3000, 1.2), "reports"), family)
    assert one.value.tolist() == each.value.tolist()
    assert one.standard_error.tolist() == each.standard_error.tolist()


@pytest.mark.costly
@given(st.sampled_from(MECHANISMS), st.lists(st.floats(0, 700), min_size=1, max_size=20), st.floats(0.01, 0.999))
@settings(deadline=None)
def test_finite_at_every_budget(mechanism, budgets, level):
    epsilons = np.array([*budgets, 1.0])
    family = member(mechanism, 4, epsilons)
    reports = family.randomize(np.zeros(epsilons.size, dtype=np.int64), epsilons, secure_random())
    for seen in ("reports", "levels"):
        estimate = frequency(ShuffledReports(reports, epsilons, seen), family)
        low, high = estimate.confidence_interval(level)
        assert np.isfinite(estimate.value).all()
        assert np.isfinite(estimate.standard_error).all()
        assert (estimate.standard_error > 0).all()
        assert ((low <= high) & (low >= 0) & (high <= 1)).all()


def test_what_the_family_does_not_serve():
    with pytest.raises(InvalidInput, match="for_budgets"):
        frequency(ShuffledReports(np.zeros(2, dtype=np.uint64), np.ones(2), "reports"), LocalHashing(9))
    with pytest.raises(InvalidInput, match="up to 16777216 categories can be counted"):
        frequency(ShuffledReports(np.zeros(2, dtype=np.int64), np.ones(2), "reports"), RandomizedResponse(10**9))


def test_unknown_mechanisms():
    with pytest.raises(
        InvalidInput, match="mechanism must be one of krr, rr, sue, oue, olh, hadamard, subset; got 'x'"
    ):
        frequency_oracle("x", 3)
    with pytest.raises(InvalidInput, match="exactly two categories; got 3"):
        frequency_oracle("rr", 3)


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_projection_is_the_nearest_point_of_the_simplex(values):
    found = project_to_simplex(values)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1.0, rel=1e-12)
    # the nearest point: equal differences where it is positive, and none larger where it is 0
    gap = np.array(values) - found
    size = 1e-9 * (1 + np.abs(values).max())
    inside = gap[found > 0]
    assert np.ptp(inside) <= size
    assert (gap[found == 0] <= inside.max() + size).all()


def test_projection_keeps_what_is_possible_and_refuses_what_is_no_list():
    assert project_to_simplex([0.25, 0.0, 0.75]).tolist() == [0.25, 0.0, 0.75]
    for bad in ([], [[0.5, 0.5]], [0.5, np.nan], [np.inf, 0.0], 0.5):
        with pytest.raises(InvalidInput, match="list of finite numbers"):
            project_to_simplex(bad)
