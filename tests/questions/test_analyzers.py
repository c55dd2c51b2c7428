from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import simulation_random
from shuffledp.questions.estimate import Estimate
from shuffledp.questions.frequency import frequency
from shuffledp.questions.mean import mean
from shuffledp.questions.tally import ShuffledReports, shuffle_reports
from shuffledp.randomizers import OneBit, RandomizedResponse

REPEATS = 1000
LEVELS = (0.9, 0.95, 0.99)


def simulate(records, epsilons, randomizer, seen, weights="population", seed=1, assign=True):
    """REPEATS independent runs; budgets are dealt anew each time, the records stay."""
    random, dealer = simulation_random(seed), np.random.default_rng(seed)
    analyze = mean if isinstance(randomizer, OneBit) else frequency
    runs = []
    for _ in range(REPEATS):
        budgets = dealer.permutation(epsilons) if assign else epsilons
        reports = randomizer.randomize(records, budgets, random)
        runs.append(analyze(shuffle_reports(reports, budgets, seen=seen, random=random), randomizer, weights=weights))
    return runs


def check_coverage(runs, target):
    """Misses at each level, per target, are no more than chance allows.

    Seeded. A true miss rate equal to the nominal one would exceed the allowance with probability 1e-5.
    """
    for level in LEVELS:
        ends = [run.confidence_interval(level) for run in runs]
        missed = np.sum([(target < low) | (target > high) for low, high in ends], axis=0)
        assert np.max(missed) <= binom.isf(1e-5, REPEATS, 1 - level), (level, missed)


def check_unbiased(runs, target):
    """Seeded: the average of the runs lies within 4.5 standard errors (false alarm 7e-6 per target)."""
    values = np.array([run.value for run in runs])
    errors = np.mean([run.standard_error for run in runs], axis=0)
    assert np.all(np.abs(values.mean(axis=0) - target) <= 4.5 * errors / np.sqrt(REPEATS))


def skewed(n, k):
    """Categories from common to absent."""
    records = np.minimum(np.random.default_rng(0).geometric(0.5, n) - 1, k - 2)
    return records, np.bincount(records, minlength=k) / n


THREE = np.array([0.1, 0.5, 1.0])
CASES = {
    "one-budget": (800, 2, np.full(800, 1.0)),
    "paper-fractions": (2000, 2, np.repeat(THREE, (1080, 740, 180))),
    "rare": (1000, 6, np.full(1000, 2.0)),
    "far-apart": (600, 5, np.repeat([0.3, 4.0], (300, 300))),
    "almost-plain": (300, 4, np.full(300, 8.0)),
    "tiny": (5, 3, np.full(5, 1.5)),
    "alone": (1, 2, np.array([1.0])),
    "with-zeros": (400, 3, np.repeat([0.0, 2.0], (100, 300))),
}


@pytest.mark.costly
@pytest.mark.one_in(4)
@pytest.mark.parametrize("seen", ["reports", "levels"])
@pytest.mark.parametrize("case", CASES)
def test_frequency_is_unbiased_and_covered(case, seen):
    n, k, epsilons = CASES[case]
    records, target = skewed(n, k)
    runs = simulate(records, epsilons, RandomizedResponse(k), seen)
    check_unbiased(runs, target)
    check_coverage(runs, target)


@pytest.mark.costly
@pytest.mark.one_in(4)
@pytest.mark.parametrize("seen", ["reports", "levels", "sum"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("shape", [0.02, 1.0])  # Beta(shape, shape): nearly all at the ends, or spread out
def test_mean_is_unbiased_and_covered(case, seen, shape):
    n, _, epsilons = CASES[case]
    values = 20 + 60 * np.random.default_rng(2).beta(shape, 2 * shape, n)
    runs = simulate(values, epsilons, OneBit(20, 80), seen)
    check_unbiased(runs, values.mean())
    check_coverage(runs, values.mean())


@pytest.mark.costly
def test_precision_weights_are_covered_and_less_noisy():
    n, k, epsilons = CASES["far-apart"]
    records, target = skewed(n, k)
    runs = simulate(records, epsilons, RandomizedResponse(k), "levels", weights="precision")
    check_unbiased(runs, target)
    check_coverage(runs, target)
    population = simulate(records, epsilons, RandomizedResponse(k), "levels")
    assert np.all(runs[0].standard_error < 0.3 * population[0].standard_error)


@pytest.mark.costly
def test_levels_are_right_where_budgets_depend_on_records():
    # Theory part 7 item 9: without levels the estimate is for the keep-weighted frequency instead.
    records = np.repeat([0, 1], (500, 500))
    epsilons = np.repeat([2.0, 0.5], (500, 500))
    rr = RandomizedResponse(2)
    shown = simulate(records, epsilons, rr, "levels", assign=False)
    check_unbiased(shown, np.array([0.5, 0.5]))
    check_coverage(shown, np.array([0.5, 0.5]))
    keep = rr.sampled_law(epsilons).keep
    weighted = keep[records == 1].sum() / keep.sum()
    assert weighted < 0.3
    withheld = simulate(records, epsilons, rr, "reports", assign=False)
    check_unbiased(withheld, np.array([1 - weighted, weighted]))


@pytest.mark.costly
@pytest.mark.one_in(4)
@pytest.mark.parametrize("case", ["one-budget", "rare", "paper-fractions", "far-apart"])
@pytest.mark.parametrize("seen", ["reports", "levels"])
def test_standard_error_is_the_standard_deviation(case, seen):
    # Seeded; a standard deviation from 1000 runs is off by 10 % with probability below 1e-5.
    n, k, epsilons = CASES[case]
    records, _ = skewed(n, k)
    runs = simulate(records, epsilons, RandomizedResponse(k), seen, seed=4)
    observed = np.std([run.value for run in runs], axis=0)
    stated = np.mean([run.standard_error for run in runs], axis=0)
    assert stated == pytest.approx(observed, rel=0.1)


def test_published_algorithm_2():
    epsilons = np.array([0.1, 0.1, 0.5, 1.0, 1.0])
    reports = np.array([1, 0, 1, 1, 0])
    s = 1 / (1 + np.exp(epsilons))
    expected = (reports.sum() - s.sum()) / (5 - 2 * s.sum())
    shuffled = ShuffledReports(reports, epsilons, "reports")
    assert frequency(shuffled, RandomizedResponse(2)).value[1] == pytest.approx(expected, rel=1e-9)
    assert mean(shuffled, OneBit(0, 1)).value == pytest.approx(expected, rel=1e-9)


def test_population_weights_are_the_stratified_estimate():
    random = np.random.default_rng(3)
    epsilons = random.choice(THREE, 500)
    reports = random.integers(4, size=500)
    rr = RandomizedResponse(4)
    expected = np.zeros(4)
    for epsilon0 in THREE:
        inside = reports[epsilons == epsilon0]
        wrong, right = rr.channel(epsilon0)[0, 1], rr.channel(epsilon0)[0, 0]
        shares = np.bincount(inside, minlength=4) / inside.size
        expected += inside.size / 500 * (shares - wrong) / (right - wrong)
    value = frequency(ShuffledReports(reports, epsilons, "levels"), rr).value
    assert value == pytest.approx(expected, rel=1e-9)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.floats(0, 700)), min_size=1, max_size=30),
    st.sampled_from(["reports", "levels"]),
    st.sampled_from(["population", "precision"]),
    st.floats(0.01, 0.999),
)
def test_estimates_are_finite_and_inside_their_intervals(pairs, seen, weights, level):
    reports, epsilons = (np.array(column) for column in zip(*pairs, strict=True))
    rr = RandomizedResponse(4)
    shuffled = ShuffledReports(reports, epsilons.astype(float), seen)
    if not rr.sampled_law(epsilons).keep.any():
        with pytest.raises(InvalidInput, match="no report carries information"):
            frequency(shuffled, rr, weights=weights)
        return
    estimate = frequency(shuffled, rr, weights=weights)
    low, high = estimate.confidence_interval(level)
    assert np.isfinite(estimate.value).all()
    assert (estimate.standard_error > 0).all()
    assert np.isfinite(estimate.standard_error).all()
    inside = np.clip(estimate.value, *estimate.support)
    assert ((low <= inside) & (inside <= high)).all()
    assert estimate.value.sum() == pytest.approx(1.0, abs=1e-6 * (1 + np.abs(estimate.value).max()))


def test_interval_grows_with_the_level_and_knows_the_range():
    estimate = Estimate(np.array([-0.01, 0.5]), np.array([0.02, 0.02]), 0.001, (0.0, 1.0), 0)
    low, high = estimate.confidence_interval(0.95)
    assert low[0] == 0.0  # cut to the range
    assert high[1] - 0.5 == pytest.approx(1.959964 * 0.02 + 0.0005)
    assert estimate.confidence_interval(0.99)[1][1] > high[1]
    with pytest.raises(InvalidInput, match="confidence level"):
        estimate.confidence_interval(1.0)


def test_bennett_half_width_solves_its_equation():
    error, step = 0.01, 0.01
    estimate = Estimate(np.array(0.5), np.array(error), step, (-9.0, 9.0), 0)
    half = estimate.confidence_interval(0.95)[1] - 0.5
    spread = (error / step) ** 2
    u = half / step / spread
    assert spread * ((1 + u) * np.log1p(u) - u) == pytest.approx(np.log(40))


def test_users_without_budget_are_counted_out():
    shuffled = ShuffledReports(np.array([0, 1, 1]), np.array([0.0, 1.0, 1.0]), "levels")
    assert frequency(shuffled, RandomizedResponse(2)).uninformative == 1


def test_unknown_weights():
    shuffled = ShuffledReports(np.array([0]), np.array([1.0]), "levels")
    with pytest.raises(InvalidInput, match="weights must be one of population, precision"):
        frequency(shuffled, RandomizedResponse(2), weights="equal")
