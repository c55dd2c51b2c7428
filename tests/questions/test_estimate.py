"""Intervals: in the range and never empty, covering, without jumps, one by one and all at once."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from shuffledp.errors import InvalidInput
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.randomness import simulation_random
from shuffledp.questions.estimate import CountEstimate, CountLaw, Estimate
from shuffledp.questions.frequency import FREQUENCY_MECHANISMS, frequency, frequency_oracle
from shuffledp.questions.mean import LongTailedEstimate
from shuffledp.questions.ranges import RangeEstimate
from shuffledp.questions.tally import ShuffledReports
from shuffledp.questions.variance import VarianceEstimate
from shuffledp.randomizers import OneBit, RandomizedResponse
from shuffledp.releases.difference import of_counts

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


@pytest.mark.costly(but=("4000-2500",))
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


def known_law(mechanism: str, n: int, epsilon0: float = 2.0) -> CountLaw:
    """The law of n reports of one budget about yes or no, or of one bit about a number."""
    if mechanism == "one-bit":
        stated = OneBit(0, 1).number_law(np.array([epsilon0]))
        return CountLaw((n,), (float((stated.offset + stated.slope)[0]),), (float(stated.offset[0]),), target="mean")
    stated = frequency_oracle(mechanism, 2).for_budgets((epsilon0,), (n,)).support_law(np.array([epsilon0]))
    return CountLaw((n,), (float(stated.own[0]),), (float(stated.other[0]),))


def of_count(law: CountLaw, count: int) -> CountEstimate:
    value = (count - law.mean(0.0)) / law.slope
    error = np.sqrt(law.variance(min(max(value, 0.0), 1.0))) / law.slope
    return CountEstimate(np.array([value]), np.array([error]), 1.0 / law.slope, (0.0, 1.0), 0, np.array([count]), law)


def drawn(law: CountLaw, share: float, rng: np.random.Generator) -> int:
    (n,), (own,), (other,) = law.people, law.own, law.other
    if law.target == "mean":  # everybody has the mean
        return int(rng.binomial(n, other + (own - other) * share))
    yes = round(share * n)
    return int(rng.binomial(yes, own) + rng.binomial(n - yes, other))


@pytest.mark.costly(but=("rr-34-34",))
@pytest.mark.parametrize(("n", "m"), [(10, 10), (34, 34), (200, 200), (34, 60)])
@pytest.mark.parametrize("mechanism", [*FREQUENCY_MECHANISMS, "one-bit"])
def test_a_difference_inverts_the_joint_law_of_two_counts(mechanism, n, m):
    """Two groups of 34 had 3.1 standard errors to each side, by Bennett's inequality, which nothing said.

    Where the noise of yes and no differs much (oue, olh, hadamard) the worst share plausible for both widens intervals;
    so does the bound for means of two groups of different sizes.
    """
    rng, laws = np.random.default_rng(25), (known_law(mechanism, n), known_law(mechanism, m))
    one_bit = mechanism == "one-bit"
    shares = (0.3, 0.45) if one_bit else (round(0.3 * n) / n, round(0.45 * m) / m)
    known: dict[tuple[int, int], tuple[float, float]] = {}
    runs, hits, widths = 400 if one_bit and n < 200 else 1000, 0, []
    for _ in range(runs):
        counts = (drawn(laws[0], shares[0], rng), drawn(laws[1], shares[1], rng))
        if counts not in known:
            found = of_counts(of_count(laws[0], counts[0]), of_count(laws[1], counts[1]), shared=False)
            low, high = found.confidence_interval()
            assert found.inequality() == ""
            assert -1.0 <= low[0] <= found.value[0] <= high[0] <= 1.0 or abs(found.value[0]) > 1.0
            known[counts] = low[0], high[0]
        low, high = known[counts]
        hits += low - 1e-12 <= shares[1] - shares[0] <= high + 1e-12
        widths.append((high - low) / 2.0)
    error = np.sqrt(sum(law.variance(share) / law.slope**2 for law, share in zip(laws, shares, strict=True)))
    symmetric = one_bit or laws[0].own[0] + laws[0].other[0] == pytest.approx(1.0)
    assert 0.945 <= hits / runs <= (0.99 if symmetric or min(n, m) >= 34 else 1.0)
    equal = 2.2 if symmetric or n == 200 else 2.35
    assert np.mean(widths) / error < (2.5 if one_bit and n != m else equal)


def test_the_joint_law_needs_independent_counts():
    """Levels are dealt to the same records once: two waves of the same people are then not independent."""
    law = CountLaw((20, 14), (0.9, 0.7), (0.1, 0.3))
    sides = of_count(law, 14), of_count(law, 20)
    assert of_counts(*sides, shared=True) is None
    assert of_counts(*sides, shared=False).confidence_interval()[1][0] > 0.17
    plain = sides[1].minus(sides[0])
    assert plain.inequality() == "Bennett's"
    assert of_counts(plain, sides[1], shared=False) is None


def test_a_difference_turns_its_sign_with_its_sides():
    one, two = of_count(known_law("rr", 34), 12), of_count(known_law("rr", 50), 31)
    (low, high), (under, over) = (
        of_counts(*sides, shared=False).confidence_interval() for sides in ((one, two), (two, one))
    )
    assert (low, high) == (-over, -under)


@settings(deadline=None, max_examples=20)
@given(st.integers(4, 12), st.integers(4, 12), st.integers(0, 12), st.integers(0, 12), st.floats(0.6, 0.98))
def test_the_interval_of_a_difference_holds_what_two_exact_tails_allow(n, m, first, second, own):
    """Against sums over all counts: every pair of shares within both intervals whose two tails are above the chance."""
    one, two = CountLaw((n,), (own,), (1.0 - own,)), CountLaw((m,), (own,), (0.3,))
    counts = min(first, n), min(second, m)
    found = of_counts(of_count(one, counts[0]), of_count(two, counts[1]), shared=False)
    low, high = found.confidence_interval()
    t = counts[1] / two.slope - counts[0] / one.slope
    for h, k in itertools.product(range(n + 1), range(m + 1)):
        table = np.outer(*(binomials(law, has) for law, has in ((one, h), (two, k))))
        far = np.arange(m + 1)[None, :] / two.slope - np.arange(n + 1)[:, None] / one.slope
        tails = table[far >= t - 1e-9].sum(), table[far <= t + 1e-9].sum()
        ends = one.interval(counts[0], 0.00125), two.interval(counts[1], 0.00125)
        inside = ends[0][0] <= h / n <= ends[0][1] and ends[1][0] <= k / m <= ends[1][1]
        if inside and min(tails) > 0.02375 and found.few(0.05)[0]:
            assert low[0] - 1e-12 <= k / m - h / n <= high[0] + 1e-12


def binomials(law: CountLaw, yes: int) -> FloatArray:
    chances = np.ones(1)
    for chance in [law.own[0]] * yes + [law.other[0]] * (law.n - yes):
        chances = np.convolve(chances, [1.0 - chance, chance])
    return chances
