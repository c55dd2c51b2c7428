"""Exact laws of counts: against convolutions, and the coverage of the intervals that invert them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom

from shuffledp.numerics.randomness import simulation_random
from shuffledp.questions.estimate import Added, CountEstimate, CountLaw
from shuffledp.questions.frequency import frequency
from shuffledp.questions.mean import mean
from shuffledp.questions.tally import ShuffledReports
from shuffledp.randomizers import HadamardResponse, OneBit, RandomizedResponse


def binomials(*parts):
    """Convolve the laws of n indicators for each (n, chance)."""
    law = np.ones(1)
    for n, chance in parts:
        for _ in range(n):
            law = np.convolve(law, [1.0 - chance, chance])
    return law


def on_counts(law, step, size):
    """P(C = 0), ..., P(C = size - 1)."""
    start, chances = law.chances(step)
    return np.array([chances[c - start] if 0 <= c - start < chances.size else 0.0 for c in range(size)])


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 40), st.integers(0, 40), st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.data())
def test_the_law_of_two_levels_is_the_sum_over_all_dealings(one, two, kept, other, data):
    h = data.draw(st.integers(0, one + two))
    own = other + (1.0 - other) * kept
    added = Added((0.25, 0.5, 0.25), 7, 0.3)
    law = CountLaw((one, two), (own, 0.9), (other, 0.2), added)
    expected = np.zeros(one + two + 10)
    for have in range(max(0, h - two), min(one, h) + 1):
        dealt = hypergeom.pmf(have, one + two, h, one)
        parts = ((have, own), (one - have, other), (h - have, 0.9), (two - h + have, 0.2), (7, 0.3))
        expected += dealt * np.convolve(binomials(*parts), [0.25, 0.5, 0.25])
    assert on_counts(law, h, expected.size) == pytest.approx(expected, abs=1e-12)
    places = np.arange(expected.size)
    middle = expected @ places
    assert law.mean(h / law.n) == pytest.approx(middle, abs=1e-9)
    assert law.variance(h / law.n) == pytest.approx(expected @ (places - middle) ** 2, abs=1e-9)


LAWS_OF_FEW = [
    CountLaw((45,), (0.953,), (0.047,)),
    CountLaw((60,), (0.8,), (0.3,)),
    CountLaw((30,), (0.88,), (0.12,), Added((0.1, 0.2, 0.4, 0.2, 0.1), 9, 0.5)),
    CountLaw((20, 15, 5), (0.62, 0.73, 0.98), (0.38, 0.27, 0.02)),
    CountLaw((150,), (0.52,), (0.48,)),
]


@pytest.mark.parametrize("law", LAWS_OF_FEW)
def test_the_interval_is_blakers(law):
    """All h at which counts of no larger smaller tail have a chance above 5 %, one after the other, and those between.

    It covers every h, lies in the interval of equal tails, and in that of a larger level.
    """
    size = law.n + law.added.count + len(law.added.chances)
    rows = np.array([on_counts(law, h, size) for h in range(law.n + 1)])
    above, below = np.cumsum(rows[:, ::-1], axis=1)[:, ::-1], np.cumsum(rows, axis=1)
    smaller = np.minimum(above, below)
    covered = np.zeros(law.n + 1)
    for count in range(size):
        low, high = (round(end * law.n) for end in law.interval(count, 0.05))
        covered[low : high + 1] += rows[low : high + 1, count]
        less, more = law.interval(count, 0.01)
        assert less * law.n <= low + 1e-9 <= high + 2e-9 <= more * law.n + 3e-9
        chance = [row[own <= own[count] + 2e-8].sum() for row, own in zip(rows, smaller, strict=True)]
        kept = np.flatnonzero(np.array(chance) > 0.05)
        if law._median(0) <= count <= law._median(law.n):
            equal = np.flatnonzero(smaller[:, count] > 0.025)
            assert (low, high) == (kept[0], kept[-1])
            assert equal[0] <= low <= high <= equal[-1]
        elif kept.size:
            assert low <= kept[0] <= kept[-1] <= high
    assert covered.min() >= 0.95 - 1e-7


@pytest.mark.parametrize(("n", "own"), [(30, 0.95), (45, 0.95), (45, 0.88)])
def test_intervals_of_few_people_cover_little_more_than_they_should(n, own):
    """Of equal tails they covered .974 to .980 in the mean over all shares, and were 5 to 10 % wider."""
    law = CountLaw((n,), (own,), (1.0 - own,))
    rows = np.array([on_counts(law, h, n + 1) for h in range(n + 1)])
    ends = np.array([law.interval(count, 0.05) for count in range(n + 1)])
    shares = np.arange(n + 1)[:, None] / n
    covered = (rows * ((ends[:, 0] <= shares) & (shares <= ends[:, 1]))).sum(axis=1)
    assert covered.min() >= 0.95
    assert covered.mean() <= 0.969


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 60), st.floats(0.5, 5.0), st.integers(0, 20), st.floats(0.0, 1.0), st.sampled_from((0.05, 0.2)))
def test_intervals_of_a_mean_cover_it(n, epsilon0, dummies, share, miss):
    """By the law of equal numbers, which has the largest tails; ends lie on a grid, which the mean does too."""
    own = float(1.0 / (1.0 + np.exp(-epsilon0)))
    law = CountLaw((n,), (own,), (1.0 - own,), Added(count=dummies, share=0.5), "mean")
    step = round(share * law.steps)
    start, chances = law.chances(step)
    likely = np.flatnonzero(chances > 1e-9)
    ends = np.array([law.interval(start + int(place), miss) for place in likely]) * law.steps
    assert chances[likely] @ ((ends[:, 0] <= step) & (step <= ends[:, 1])) >= 1.0 - miss - 1e-6


def test_coverage_of_one_category_is_exact():
    """P(the interval covers h) from the law itself: no simulation. At least .95; not far above inside the range."""
    for law, shares in (
        (CountLaw((30,), (0.88,), (0.12,)), (0.4, 0.5, 0.6)),
        (CountLaw((300,), (0.93,), (0.018,), Added(count=85, share=0.2)), (0.2, 0.35, 0.5)),
        (CountLaw((100, 60, 20), (0.62, 0.73, 0.98), (0.38, 0.27, 0.02)), (0.3, 0.5, 0.6)),
        (CountLaw((400,), (0.98,), (0.02,), target="mean"), (0.1, 0.5, 0.8)),
    ):
        found: list[float] = []
        for share in shares:
            step = round(share * law.steps)
            start, chances = law.chances(step)
            covered = 0.0
            for place in np.flatnonzero(chances > 1e-7):
                low, high = law.interval(start + int(place), 0.05)
                covered += chances[place] if low <= step / law.steps <= high else 0.0
            assert covered >= 0.95 - 1e-4
            found.append(covered)
        assert np.mean(found) <= 0.975


@pytest.mark.parametrize("b", [0.02, 0.1, 0.5])
def test_a_table_of_dummies_is_in_the_window_whole(b):
    """Dummies of tails e^-b|k| alone wrapped around: at b = .02 a tail was 1.3e-5 off, where 1e-10 was promised."""
    places = np.arange(-int(17 / b), int(17 / b) + 1)
    chances = np.exp(-b * np.abs(places))
    chances /= chances.sum()
    law = CountLaw((200,), (0.98,), (0.02,), Added(tuple(chances.tolist())))
    expected = np.convolve(binomials((100, 0.98), (100, 0.02)), chances)
    assert np.cumsum(on_counts(law, 100, expected.size)) == pytest.approx(np.cumsum(expected), abs=1e-10)


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 60), st.floats(0.2, 8.0), st.integers(0, 40), st.data())
def test_no_data_set_of_one_mean_has_larger_tails_than_equal_numbers(n, epsilon0, dummies, data):
    """What the interval of a mean rests on: every count whose tail is compared."""
    own = float(1.0 / (1.0 + np.exp(-epsilon0)))
    numbers = data.draw(st.lists(st.sampled_from((0.0, 0.1, 0.5, 0.9, 1.0)), min_size=n, max_size=n))
    step = round(float(np.mean(numbers)) * (1 << 20))
    law = CountLaw((n,), (own,), (1.0 - own,), Added(count=dummies, share=0.5), "mean")
    assert law.affordable
    actual = binomials(*((1, 1.0 - own + (2.0 * own - 1.0) * t) for t in numbers), (dummies, 0.5))
    for count in range(actual.size):
        assert actual[: count + 1].sum() <= law.at_most(count, step) + 1e-5  # the step is rounded
        assert actual[count:].sum() <= law.at_least(count, step) + 1e-5


def test_a_mean_without_a_proof_keeps_the_inequality():
    """Several budgets were inverted, too, though only their variance is compared with that of equal numbers."""
    assert not CountLaw((30, 30), (0.6, 0.9), (0.4, 0.1), target="mean").affordable
    assert not CountLaw((60,), (0.9,), (0.1,), Added((0.25, 0.5, 0.25)), "mean").affordable
    reports, epsilons = np.tile([0, 1], 10), np.repeat([1.0, 4.0], 10)
    found = mean(ShuffledReports(reports, epsilons, seen="reports"), OneBit(0.0, 1.0))
    plain = mean(ShuffledReports(reports, epsilons, seen="levels"), OneBit(0.0, 1.0))
    assert isinstance(found, CountEstimate)
    assert not found.law.affordable
    assert not isinstance(plain, CountEstimate)
    assert found.confidence_interval() == super(CountEstimate, found).confidence_interval()


MECHANISMS = [
    (30, (1.0,), RandomizedResponse(2)),
    (68, (2.0,), RandomizedResponse(3)),
    (300, (0.5, 1.0, 4.0), RandomizedResponse(5)),
    (300, (2.0,), HadamardResponse(6)),
    (3000, (1.5,), RandomizedResponse(2)),
    (3000, (1.0,), OneBit(0.0, 10.0)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("n", "budgets", "family"), MECHANISMS)
def test_coverage_in_simulation(n, budgets, family):
    """.945 to .975 over 4,000 intervals: at a coverage of .95 to .97 a false alarm has a chance below 5 % in all."""
    random, runs, inside, total = simulation_random(26), 4000, 0, 0
    rng = np.random.default_rng(26)
    numeric = isinstance(family, OneBit)
    while total < runs:
        records = rng.uniform(2.0, 6.0, n) if numeric else rng.choice(2, n)
        epsilons = rng.permutation(np.resize(budgets, n)).astype(float)
        reports = family.randomize(records, epsilons, random)
        shuffled = ShuffledReports(reports, np.sort(epsilons), seen="reports")
        if numeric:
            found, true = mean(shuffled, family), records.mean()
        else:
            found, true = frequency(shuffled, family), np.mean(records == 0)
        assert isinstance(found, CountEstimate)
        low, high = found.confidence_interval()
        inside += int(np.ravel(low)[0] <= true <= np.ravel(high)[0])
        total += 1
    assert 0.945 <= inside / total <= 0.975


def test_large_laws_keep_the_inequality_and_levels_that_are_seen_do_too():
    reports, epsilons = np.zeros(20, dtype=np.int64), np.linspace(0.5, 2.0, 20)
    seen = frequency(ShuffledReports(reports, epsilons, seen="levels"), RandomizedResponse(3))
    assert not isinstance(seen, CountEstimate)
    law = CountLaw((10**6 + 1,), (0.9,), (0.1,))
    assert not law.affordable
    error = np.sqrt(law.variance(0.5)) / law.slope
    assert law.half_width() == pytest.approx(1.96 * error, rel=1e-3)
