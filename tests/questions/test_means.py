"""Means and variances of numbers: unbiased, covered, mergeable, and certified for what is drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from shuffledp.accounting import certify
from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import secure_random, simulation_random
from shuffledp.questions.mean import NUMBER_MECHANISMS, LongTailedEstimate, MeanTally, mean, number_randomizer
from shuffledp.questions.question import Task
from shuffledp.questions.tally import ShuffledReports, shuffle_reports
from shuffledp.questions.variance import variance
from shuffledp.randomizers import Gaussian, Laplace, OneBit
from shuffledp.randomizers.base import NumberLaw
from shuffledp.randomizers.numeric import Hybrid, TwoMoments
from shuffledp.releases.wrappers import estimate_mean, estimate_variance

LEVELS = (0.9, 0.95, 0.99)
DELTA0 = 1e-5
BUDGETS = {
    "one": np.full(300, 1.0),
    "three": np.repeat([0.1, 0.5, 1.0], (270, 185, 45)),
    "far-apart": np.repeat([0.3, 4.0], (150, 150)),
    "almost-plain": np.full(100, 8.0),
    "tiny": np.full(5, 1.5),
    "alone": np.array([1.0]),
    "with-zeros": np.repeat([0.0, 2.0], (50, 150)),
    "all-different": np.linspace(0.5, 3.0, 200),
}
VALUES = {
    "ends": lambda n: 20 + 60 * np.random.default_rng(2).beta(0.02, 0.04, n),
    "middle": lambda n: np.full(n, 50.0),
    "skewed": lambda n: np.where(np.random.default_rng(3).random(n) < 0.02, 80.0, 22.0),
}


def delta_of(name):
    return DELTA0 if name == "gaussian" else 0.0


def simulate(name, epsilons, values, seen, repeats, weights="population", seed=1):
    """Independent runs, drawn at once; budgets are dealt anew each time, the records stay."""
    dealer, n = np.random.default_rng(seed), values.size
    family = number_randomizer(name, 20.0, 80.0, Budgets.of(epsilons, delta_of(name)), seen)
    budgets = np.concatenate([dealer.permutation(epsilons) for _ in range(repeats)])
    reports = family.randomize(np.tile(values, repeats), budgets, simulation_random(seed), delta0=delta_of(name))
    runs = []
    for start in range(0, n * repeats, n):
        deltas = np.full(n, delta_of(name))
        runs.append(
            mean(
                ShuffledReports(reports[start : start + n], budgets[start : start + n], seen, deltas),
                family,
                weights=weights,
            )
        )
    return runs


def check(runs, target):
    """Unbiased within 4.5 standard errors (false alarm 7e-6), and no more misses than chance allows (1e-5 a level)."""
    values = np.array([float(run.value) for run in runs])
    errors = np.array([float(run.standard_error) for run in runs])
    assert abs(values.mean() - target) <= 4.5 * np.sqrt(np.mean(errors**2) / len(runs))
    for level in LEVELS:
        ends = [run.confidence_interval(level) for run in runs]
        missed = sum(not low <= target <= high for low, high in ends)
        assert missed <= binom.isf(1e-5, len(runs), 1 - level), (level, missed)


@pytest.mark.costly(
    "gaussian-almost-plain-levels",
    "gaussian-far-apart-reports",
    "hybrid-all-different-reports",
    "hybrid-far-apart-reports",
    "hybrid-one-levels",
    "laplace-almost-plain-levels",
    "one-bit-far-apart-levels",
    "one-bit-one-reports",
    "piecewise-far-apart-reports",
    "piecewise-tiny-levels",
)
@pytest.mark.one_in(4)
@pytest.mark.parametrize("seen", ["reports", "levels"])
@pytest.mark.parametrize("case", BUDGETS)
@pytest.mark.parametrize("name", NUMBER_MECHANISMS)
def test_mean_is_unbiased_and_covered(name, case, seen):
    for shape in ("skewed", "middle") if case in ("one", "far-apart", "almost-plain") else ("ends",):
        values = VALUES[shape](BUDGETS[case].size)
        check(simulate(name, BUDGETS[case], values, seen, 150), values.mean())


@pytest.mark.slow
@pytest.mark.parametrize("seen", ["reports", "levels", "sum"])
@pytest.mark.parametrize("shape", VALUES)
@pytest.mark.parametrize("case", BUDGETS)
@pytest.mark.parametrize("name", NUMBER_MECHANISMS)
def test_mean_is_unbiased_and_covered_everywhere(name, case, shape, seen):
    if seen == "sum" and name in ("laplace", "gaussian"):
        return
    values = VALUES[shape](BUDGETS[case].size)
    check(simulate(name, BUDGETS[case], values, seen, 400, seed=5), values.mean())


@pytest.mark.costly(but=("one-bit-reports",))
@pytest.mark.one_in(4)
@pytest.mark.parametrize("seen", ["reports", "levels"])
@pytest.mark.parametrize("name", NUMBER_MECHANISMS)
def test_standard_error_is_the_standard_deviation(name, seen):
    # Seeded; a standard deviation from 500 runs is off by 14 % with probability below 1e-5. Values in the middle, where
    # the largest variance over records would be far above.
    values = VALUES["middle"](100)
    runs = simulate(name, np.repeat([3.0, 6.0], 50), values, seen, 500)
    stated = np.sqrt(np.mean([float(run.standard_error) ** 2 for run in runs]))
    assert stated == pytest.approx(np.std([run.value for run in runs]), rel=0.14)


@pytest.mark.costly("hybrid", "piecewise")
@pytest.mark.parametrize("name", NUMBER_MECHANISMS)
def test_precision_weights_are_covered_and_less_noisy(name):
    values = VALUES["ends"](300)
    precise = simulate(name, BUDGETS["far-apart"], values, "levels", 150, weights="precision")
    check(precise, values.mean())
    plain = simulate(name, BUDGETS["far-apart"], values, "levels", 5)
    assert precise[0].standard_error < 0.6 * plain[0].standard_error


@pytest.mark.costly(but=("one-bit",))
@pytest.mark.parametrize("name", ["one-bit", "laplace", "hybrid"])
def test_levels_are_right_where_budgets_depend_on_values(name):
    values, epsilons = np.repeat([25.0, 75.0], 200), np.repeat([2.0, 0.7], 200)
    family = number_randomizer(name, 20.0, 80.0, Budgets.of(epsilons), "levels")
    random = simulation_random(8)
    runs = []
    for _ in range(150):
        reports = family.randomize(values, epsilons, random)
        runs.append(mean(shuffle_reports(reports, epsilons, seen="levels", random=random), family))
    check(runs, 50.0)


def test_whole_sums_are_exact_however_large():
    tally = MeanTally(Task(Laplace(0, 1), Budgets((1.0,), (200_000,)), "reports"))
    tally.add(np.full(100_000, 2**51 - 1))
    tally.add(np.full(100_000, -(2**51)))
    steps = 2**16
    squares = (2**52 - 2 - steps) ** 2 + (2**52 + steps) ** 2
    assert [int(sums[0, 0]) for sums in tally._sums] == [-100_000, 100_000 * squares]


def test_reports_of_numbers_are_whole_and_one_dimensional():
    task = Task(OneBit(0, 1), Budgets((1.0,), (2,)), "reports")
    with pytest.raises(InvalidInput, match="one-dimensional"):
        MeanTally(task).add(np.zeros((2, 2), dtype=np.int64))
    with pytest.raises(InvalidInput, match="must be whole numbers, so that sums are exact"):
        MeanTally(task).add(np.array([0.5, 1.0]))
    assert MeanTally(task).n == 0


class Tilted:
    """Any number randomizer will do: a fair coin's noise grows with t, and centres differ."""

    name, low, high = "tilted", 0.0, 2.0

    def randomize(self, records, epsilon0, random, *, delta0=0.0):
        values = np.asarray(records)
        signs = 2 * random.integers(2, values.size) - 1
        loud = random.bernoulli((values / 2.0 * (2.0**64 - 2048)).astype(np.uint64), values.size)
        return np.asarray(1000 * values + 100 + 400 * signs * loud, dtype=np.int64)

    def report_values(self, reports):
        return reports.astype(float)

    def number_law(self, epsilon0, delta0=0.0):
        one = np.ones(np.shape(epsilon0))
        return NumberLaw(100 * one, 2000 * one, np.stack((0 * one, 160_000 * one, 0 * one)), 400 * one)


def test_any_number_randomizer_is_served():
    values, family, random = np.linspace(0.0, 1.0, 150), Tilted(), simulation_random(6)
    runs = []
    for _ in range(400):
        reports = family.randomize(values, 1.0, random)
        runs.append(mean(ShuffledReports(reports, np.ones(150), "reports"), family))
    check(runs, values.mean())
    stated = np.mean([float(run.standard_error) for run in runs])
    assert stated == pytest.approx(np.std([run.value for run in runs]), rel=0.17)


def test_intervals_of_long_tails_know_few_from_many():
    few = LongTailedEstimate(np.array(0.0), np.array(1.5), 1.0, (-99.0, 99.0), 0)
    x = np.log(40.0)
    assert few.confidence_interval(0.95)[1] == pytest.approx(1.5 * np.sqrt(2 * x) + x)
    many = LongTailedEstimate(np.array(0.0), np.array(1.5), 0.01, (-99.0, 99.0), 0)
    assert many.confidence_interval(0.95)[1] == pytest.approx(1.959964 * 1.5)
    with pytest.raises(InvalidInput, match="confidence level"):
        few.confidence_interval(0.0)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 700)), min_size=1, max_size=8),
    st.sampled_from(sorted(NUMBER_MECHANISMS)),
    st.sampled_from(["reports", "levels"]),
    st.sampled_from(["population", "precision"]),
)
def test_estimates_are_finite_and_inside_their_intervals(epsilons, name, seen, weights):
    budgets, delta0 = np.array(epsilons), delta_of(name)
    family = number_randomizer(name, 20.0, 80.0, Budgets.of(budgets, delta0), seen)
    reports = family.randomize(np.full(budgets.size, 33.0), budgets, secure_random(), delta0=delta0)
    shuffled = shuffle_reports(reports, budgets, seen=seen, random=secure_random(), deltas=delta0)
    if not (family.number_law(budgets, delta0).slope > 0.0).any():
        with pytest.raises(InvalidInput, match="no report carries information"):
            mean(shuffled, family, weights=weights)
        return
    estimate = mean(shuffled, family, weights=weights)
    low, high = estimate.confidence_interval(0.95)
    assert np.isfinite(estimate.value)
    assert 0.0 < estimate.standard_error < np.inf
    assert low <= np.clip(estimate.value, 20.0, 80.0) <= high


@pytest.mark.costly(but=("one-bit-reports",))
@pytest.mark.one_in(4)
@pytest.mark.parametrize("seen", ["reports", "levels"])
@pytest.mark.parametrize("name", NUMBER_MECHANISMS)
def test_release_is_certified_for_what_is_drawn(name, seen):
    epsilons = np.repeat([1.0, 2.0], (100, 100))
    release = estimate_mean(
        np.linspace(0, 10, 200), 0, 10, epsilons, mechanism=name, seen=seen, delta=1e-5, delta0=delta_of(name)
    )
    setting = release.guarantee.setting
    assert setting.randomizer_name == release.mechanism
    assert setting.budgets.deltas.tolist() == [delta_of(name)] * 2
    assert release.private
    low, high = release.confidence_interval(0.999)
    assert low <= high
    if name in ("piecewise", "hybrid"):  # one shape for all where levels are withheld: users hide each other
        assert setting.randomizer.mixture == (seen == "reports")
    if name != "gaussian":
        assert release.guarantee.epsilon.upper < 2.0


def test_own_deltas_reach_the_noise():
    deltas = np.array([1e-3, 1e-9] * 20)
    release = estimate_mean(
        np.zeros(40), 0, 1, 1.0, mechanism="gaussian", seen="levels", delta=0.01, delta0=deltas, weights="precision"
    )
    assert release.guarantee.setting.budgets.counts.tolist() == [20, 20]
    sigma = Gaussian(0, 1).scale(1.0, deltas)
    best = 1 / np.sqrt((1 / sigma**2).sum())
    assert best < release.standard_error < 1.005 * best  # a little for rounding, and for unequal weights


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mechanism": "gaussian"}, "never pure: give delta0 > 0"),
        ({"mechanism": "laplace", "seen": "sum"}, "'sum'` is not certified for laplace noise as it is drawn"),
        ({"mechanism": "normal"}, "mechanism must be one of one-bit, laplace, gaussian, piecewise, hybrid"),
        ({"mechanism": "gaussian", "delta0": [1e-6]}, "2 records need 2 delta0"),
        ({"mechanism": "gaussian", "delta0": 1.0}, "delta0 must be a probability"),
        ({"mechanism": "gaussian", "delta0": [0.1, np.nan]}, "delta0"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InvalidInput, match=message):
        estimate_mean([1.0, 2.0], 0, 10, 1.0, **{"seen": "reports", "delta": 1e-6, **options})


def variance_runs(epsilons, values, seen, repeats, weights="population"):
    dealer, family, n = np.random.default_rng(2), TwoMoments(20, 80), values.size
    budgets = np.concatenate([dealer.permutation(epsilons) for _ in range(repeats)])
    reports = family.randomize(np.tile(values, repeats), budgets, simulation_random(9))
    places = [slice(start, start + n) for start in range(0, n * repeats, n)]
    return [variance(ShuffledReports(reports[p], budgets[p], seen), family, weights=weights) for p in places]


@pytest.mark.costly
@pytest.mark.one_in(4)
@pytest.mark.parametrize("seen", ["reports", "levels"])
@pytest.mark.parametrize("shape", [*VALUES, "top"])
@pytest.mark.parametrize("case", ["one", "three", "far-apart", "almost-plain", "with-zeros"])
def test_variance_is_unbiased_and_covered(case, shape, seen):
    n = BUDGETS[case].size
    values = np.full(n, 80.0) if shape == "top" else VALUES[shape](n)
    check(variance_runs(BUDGETS[case], values, seen, 200), values.var())


@pytest.mark.costly
def test_standard_error_of_the_variance():
    # Seeded; a standard deviation from 400 runs is off by 16 % with probability below 1e-5.
    values = np.random.default_rng(4).uniform(20, 80, 3000)
    for weights in ("population", "precision"):
        runs = variance_runs(np.full(3000, 1.0), values, "levels", 400, weights)
        stated = np.sqrt(np.mean([float(run.standard_error) ** 2 for run in runs]))
        found = np.std([float(run.value) for run in runs])
        assert 0.84 * found < stated < 1.25 * found


@pytest.mark.costly("reports")
@pytest.mark.parametrize("seen", ["reports", "levels"])
def test_variance_released(seen):
    values = np.tile([0.0, 10.0, 10.0, 0.0], 1500)  # budgets below do not go along with them
    release = estimate_variance(values, 0, 10, np.tile([1.0, 3.0], 3000), seen=seen, delta=1e-6)
    assert release.mechanism == "two-moments"
    assert release.private
    assert abs(release.estimate - 25.0) < 6 * release.standard_error
    low, high = release.confidence_interval(0.99)
    assert 0.0 <= low < high <= 25.0
    one_bit = estimate_mean(values, 0, 10, np.tile([1.0, 3.0], 3000), seen=seen, delta=1e-6)
    anything = certify(replace(release.guarantee.setting, randomizer="any"), 1e-6)
    assert one_bit.guarantee.epsilon.upper <= release.guarantee.epsilon.upper <= anything.epsilon.upper


def test_moments_follow_their_law():
    # Seeded; 4.5 standard errors each (7e-6).
    family, n = TwoMoments(0, 1), 40_000
    keep = float(family.sampled_law(1.3).keep)
    reports = family.randomize(np.full(n, 0.8), 1.3, simulation_random(3))
    counts = np.bincount(reports, minlength=4) / n
    for place, chance in enumerate((0.2, 0.8, 0.64, 0.36)):
        wanted = 0.5 * ((1 - keep) / 2 + keep * chance)
        assert abs(counts[place] - wanted) < 4.5 * np.sqrt(wanted / n)
    assert np.array_equal(family.unpack(family.pack(reports)), reports)


def test_variance_of_too_few():
    with pytest.raises(InvalidInput, match="from at least three of the users"):
        variance(ShuffledReports(np.array([1]), np.array([1.0]), "reports"), TwoMoments(0, 1))
    with pytest.raises(InvalidInput, match="seen must be one of reports, levels"):
        estimate_variance([1.0], 0, 1, 1.0, seen="sum", delta=1e-6)
    with pytest.raises(InvalidInput, match="value in row 2"):
        estimate_variance([1.0, 3.0, 0.5], 0, 1, 1.0, seen="reports", delta=1e-6)


def test_hybrid_is_the_most_precise():
    spread = {
        name: float(simulate(name, np.full(400, 2.0), VALUES["ends"](400), "reports", 1)[0].standard_error)
        for name in ("one-bit", "laplace", "piecewise", "hybrid")
    }
    assert spread["hybrid"] < min(spread["one-bit"], spread["laplace"])
    assert Hybrid(0, 1).name == "hybrid:4096"
