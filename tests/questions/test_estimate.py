"""Intervals: in the range and never empty, covering, without jumps, one by one and all at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import simulation_random
from shuffledp.questions.estimate import Estimate
from shuffledp.questions.frequency import frequency
from shuffledp.questions.mean import LongTailedEstimate
from shuffledp.questions.ranges import RangeEstimate
from shuffledp.questions.tally import ShuffledReports
from shuffledp.questions.variance import VarianceEstimate
from shuffledp.randomizers import RandomizedResponse

LEVELS = (0.5, 0.9, 0.99)


def estimate(value, error, step, kind=Estimate, support=(0.0, 1.0), **more):
    value = np.asarray(value, dtype=np.float64)
    return kind(value, np.broadcast_to(error, value.shape), step, support, 0, **more)


def test_a_share_below_0_is_at_most_something():
    """The table of 0.1.0 showed 0.00 % to 0.00 % at a share of -8.69 %."""
    low, high = estimate([-0.0869, -3.0, 0.0, 1.2], 0.03, 1e-4).confidence_interval(0.95)
    half = norm.isf(0.025) * 0.03 + 5e-5
    assert low == pytest.approx([0.0, 0.0, 0.0, 1.0 - half])
    assert high == pytest.approx([half, half, half, 1.0])


KINDS = {
    "bounded": (Estimate, {}),
    "long-tailed": (LongTailedEstimate, {}),
    "variance": (VarianceEstimate, {"moment": 1.2, "flat": 0.01, "tilt": 0.3}),
}


@settings(deadline=None)
@given(
    st.sampled_from(sorted(KINDS)),
    st.floats(-5.0, 6.0),
    st.floats(1e-3, 3.0),
    st.floats(1e-4, 3.0),
    st.sampled_from([1e-9, 0.1, 0.5, 0.95, 1 - 1e-9]),
)
def test_intervals_lie_in_the_range_and_hold_the_nearest_value(kind, value, error, step, level):
    family, more = KINDS[kind]
    found = estimate(value, error, step, family, **more)
    low, high = found.confidence_interval(level)
    nearest = np.clip(value, 0.0, 1.0)
    assert 0.0 <= low <= nearest <= high <= 1.0
    assert low < high
    moved = estimate(value + 1e-9, error, step, family, **more).confidence_interval(level)
    assert moved == pytest.approx((low, high), abs=3e-9)
    if kind != "variance":  # inside the range as ever: symmetric
        wide = estimate(value, error, step, family, support=(-1e9, 1e9)).confidence_interval(level)
        assert wide[1] - value == pytest.approx(value - wide[0])
        covered = (wide[0] <= nearest) & (nearest <= wide[1])
        assert low <= max(wide[0], 0.0) + 1e-12 or not covered
        assert high >= min(wide[1], 1.0) - 1e-12


@pytest.mark.parametrize("kind", ["bounded", "long-tailed"])
@pytest.mark.parametrize("level", LEVELS)
def test_half_widths_do_not_jump_from_few_to_many(kind, level):
    """Over errors from 0.1 to 30 steps, 0.02 % apart: neighbours differ by less than 0.5 %."""
    errors = np.geomspace(0.1, 30.0, 30_000)
    low, high = estimate(np.zeros(errors.size), errors, 1.0, KINDS[kind][0], (-1e9, 1e9)).confidence_interval(level)
    half = (high - low) / 2.0
    assert np.abs(np.diff(np.log(half))).max() < 0.005
    assert (half >= norm.isf((1 - level) / 2) * errors * (1 - 1e-12)).all()


@pytest.mark.parametrize("true", [0.0, 0.003, 0.02, 0.05, 0.5, 1.0])
@pytest.mark.parametrize("level", LEVELS)
def test_normal_noise_at_the_ends_of_the_range_is_covered(true, level):
    """20,000 draws, seeded: a true miss rate at the nominal one exceeds the allowance with probability 1e-5."""
    values = true + 0.03 * np.random.default_rng(1).standard_normal(20_000)
    low, high = estimate(values, 0.03, 1e-5).confidence_interval(level)
    missed = np.count_nonzero((true < low) | (true > high))
    assert missed <= binom.isf(1e-5, values.size, 1 - level)
    if true == 0.5:  # and no wider than it must be
        assert missed >= binom.ppf(1e-5, values.size, 1 - level)


@pytest.mark.costly(but=("30-0.5",))
@pytest.mark.parametrize(("n", "epsilon0"), [(4, 1.0), (30, 0.5), (400, 1.0), (3000, 2.0)])
def test_shares_at_the_ends_of_the_range_are_covered_one_by_one_and_at_once(n, epsilon0):
    """500 runs, seeded; 1e-5 for each of five categories and for all at once. One category is empty."""
    family, random, runs = RandomizedResponse(5), simulation_random(6), 500
    records = np.minimum(np.arange(n) % 7, 3)
    true = np.bincount(records, minlength=5) / n
    alone, joint, shortest = np.zeros(5), 0, np.inf
    for _ in range(runs):
        reports = family.randomize(records, epsilon0, random)
        found = frequency(ShuffledReports(reports, np.broadcast_to(epsilon0, n), "reports"), family)
        low, high = found.confidence_interval(0.9)
        alone += (true < low) | (true > high)
        shortest = min(shortest, float((high - low).min()))
        low, high = found.confidence_interval(0.9, simultaneous=True)
        joint += bool(((true < low) | (true > high)).any())
    assert alone.max() <= binom.isf(1e-5, runs, 0.1)
    assert joint <= binom.isf(1e-5, runs, 0.1)
    assert shortest > 0.5 * found.standard_error.min()


def test_simultaneous_intervals_are_bonferronis():
    found = estimate(np.linspace(0.2, 0.8, 10), 0.01, 1e-4)
    joint, single = found.confidence_interval(0.95, simultaneous=True), found.confidence_interval(0.995)
    assert np.array(joint) == pytest.approx(np.array(single), rel=1e-12)
    many = estimate(np.full(100_000, 0.5), 0.01, 1e-4).confidence_interval(1 - 1e-9, simultaneous=True)
    assert many[1][0] - 0.5 == pytest.approx(norm.isf(0.5e-14) * 0.01 + 5e-5, rel=1e-6)
    ranges = RangeEstimate((np.full(4, 0.25),), (np.full(4, 1e-4),), 4, 1000, 0)
    assert ranges.factor(0.95, 10) == pytest.approx(ranges.factor(0.995))
    edges = np.arange(5.0)
    one, all_ = (ranges.quantile_interval([0.2, 0.6], edges, 0.9, simultaneous=s) for s in (False, True))
    assert np.array_equal(all_, ranges.quantile_interval([0.2, 0.6], edges, 0.95))
    assert (all_[0] <= one[0]).all()


def test_bands_around_a_distribution_are_never_empty():
    found = RangeEstimate((np.array([-0.4, 0.9, 0.7, -0.2]),), (np.full(4, 1e-3),), 4, 1000, 0)
    low, high = found.below_interval(0.95)
    assert (found.below[1], found.below[3]) == pytest.approx((-0.4, 1.2))
    assert (low[1], high[3]) == (0.0, 1.0)
    assert high[1] == pytest.approx(1.96 * found.below_error[1], rel=1e-3)
    assert low[3] == pytest.approx(1.0 - 1.96 * found.below_error[3], rel=1e-3)
    assert (high[1:-1] > low[1:-1]).all()


@pytest.mark.parametrize("level", [0.0, 1.0, np.nan, -1.0])
def test_levels_are_chances(level):
    for kind, (family, more) in KINDS.items():
        with pytest.raises(InvalidInput, match=r"a confidence level must lie in \(0, 1\); got"):
            estimate(0.5, 0.1, 0.1, family, **more).confidence_interval(level), kind


@pytest.mark.parametrize(("n", "m"), [(40, 40), (30, 3000), (4000, 2500)])
def test_the_interval_of_a_difference_covers(n, m):
    # Randomized response at ln 3 of shares .2 and .25; an exact binomial law of 95 % misses more than 6.5 % of 4,000
    # times with a chance of 1e-5 (normal tail: 1.5 % of 4,000 is 4.35 standard deviations).
    rng = np.random.default_rng(14)
    p, q = 0.75, 0.25

    def one_wave(size, share):  # an interval covers the share of these people, who are the same every time
        yes = round(share * size)
        ones = rng.binomial(yes, p) + rng.binomial(size - yes, q)
        return estimate((ones / size - q) / (p - q), np.sqrt(p * q / size) / (p - q), 1.0 / (size * (p - q)))

    missed = 0
    for _ in range(4000):
        found = one_wave(m, 0.25).minus(one_wave(n, 0.2))
        low, high = found.confidence_interval()
        missed += not low <= round(0.25 * m) / m - 0.2 <= high
    assert missed <= 0.065 * 4000
    assert found.support == (-1.0, 1.0)
