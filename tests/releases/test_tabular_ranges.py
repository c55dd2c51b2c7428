"""Histograms, quantiles and variances from tables: the same however they are cut, and as in memory."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import simulation_random
from shuffledp.questions.ranges import Bins
from shuffledp.records.people import RowBudgets
from shuffledp.releases.estimators import HistogramEstimator, QuantileEstimator
from shuffledp.releases.wrappers import (
    estimate_histogram,
    estimate_quantiles,
    estimate_variance,
    histogram_of_table,
    quantiles_of_table,
    variance_of_table,
)

N = 3000
DELTA = 1e-6


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    random = np.random.default_rng(8)
    return pl.DataFrame(
        {
            "hours": random.normal(40.0, 12.0, N).clip(0.0, 99.0).round(1),
            "budget": random.choice([0.5, 1.0, 3.0], N),
            "consent": random.choice(["strict", "open"], N),
        }
    )


def test_one_batch_is_the_estimate_in_memory(people):
    hours, budget = people["hours"], people["budget"].to_numpy()
    shared = {"seen": "levels", "delta": DELTA}
    in_table = histogram_of_table(people, "hours", 0, 99, 9, "budget", **shared, random=simulation_random(3), rows=N)
    plain = estimate_histogram(hours, 0, 99, 9, budget, mechanism="subset", **shared, random=simulation_random(3))
    assert in_table.estimate == pytest.approx(plain.estimate, rel=1e-12)
    assert in_table.standard_error == pytest.approx(plain.standard_error, rel=1e-12)
    assert (in_table.categories, in_table.guarantee.epsilon) == (plain.categories, plain.guarantee.epsilon)
    asked = ([0.5, 0.9], "budget")
    ranges = quantiles_of_table(people, "hours", 0, 99, *asked, bins=33, **shared, random=simulation_random(3), rows=N)
    other = estimate_quantiles(hours, 0, 99, [0.5, 0.9], budget, bins=33, **shared, random=simulation_random(3))
    assert ranges.estimate == pytest.approx(other.estimate, rel=1e-9)
    assert np.array_equal(ranges.confidence_interval(), other.confidence_interval())
    assert (ranges.mechanism, ranges.n, ranges.weights) == (other.mechanism, N, "population")
    assert ranges.guarantee.epsilon == other.guarantee.epsilon
    spread = variance_of_table(people, "hours", 0, 99, "budget", **shared, random=simulation_random(3), rows=N)
    same = estimate_variance(hours, 0, 99, budget, **shared, random=simulation_random(3))
    assert spread.estimate == pytest.approx(same.estimate, rel=1e-12)
    assert spread.standard_error == pytest.approx(same.standard_error, rel=1e-12)


@pytest.mark.costly
@pytest.mark.one_in(3)
@pytest.mark.parametrize("rows", [1, 7, 1000])
@pytest.mark.parametrize("seen", ["reports", "levels"])
def test_batches_of_any_size_find_the_truth(people, rows, seen):
    """Budgets of 699 and 700, where randomized response tells the bin: exact, whatever the batches."""
    some = people.head(200) if rows == 1 else people
    asked = RowBudgets("consent", {"strict": 699.0, "open": 700.0})
    codes = Bins(0, 99, 9).codes(some["hours"].to_numpy())
    found = histogram_of_table(some, "hours", 0, 99, 9, asked, seen=seen, delta=DELTA, mechanism="krr", rows=rows)
    assert found.estimate == pytest.approx(np.bincount(codes, minlength=9) / codes.size, abs=1e-12)
    assert found.private


@pytest.mark.costly("reports-population")
@pytest.mark.parametrize(("seen", "weights"), [("reports", "population"), ("levels", "precision")])
def test_estimates_are_near_the_truth(people, seen, weights):
    """Within six standard errors each (seeded); the quantiles in bins that their 99.9999% intervals hold."""
    hours = people["hours"].to_numpy()
    way = {"seen": seen, "delta": DELTA, "weights": weights, "rows": 500}
    shares = histogram_of_table(people, "hours", 0, 99, 9, "budget", **way, random=simulation_random(4))
    truth = np.bincount(Bins(0, 99, 9).codes(hours), minlength=9) / N
    assert (np.abs(shares.estimate - truth) < 6 * np.asarray(shares.standard_error)).all()
    spread = variance_of_table(people, "hours", 0, 99, "budget", **way, random=simulation_random(5))
    assert abs(float(spread.estimate) - hours.var()) < 6 * float(spread.standard_error)
    ranges = quantiles_of_table(people, "hours", 0, 99, [0.25, 0.5], "budget", bins=99, **way,
                                random=simulation_random(6))  # fmt: skip
    low, high = ranges.confidence_interval(1 - 1e-6)
    quantiles = np.quantile(hours, [0.25, 0.5], method="inverted_cdf")
    assert ((low <= quantiles) & (quantiles <= high)).all()
    assert ranges.uninformative == 0


@pytest.mark.costly(
    "options2-^the value in row \\\\d+ is outside \\\\[0.0, 30.0\\\\]; say `clip`",
    "options5-^consent in row 1 is not a number",
)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bins": 1}, r"^bins must be a whole number"),
        ({"low": 99.0}, r"low < high"),
        ({"high": 30.0}, r"^the value in row \d+ is outside \[0.0, 30.0\]; say `clip`"),
        ({"seen": None}, r"^there are 3 different budgets, so `seen` is needed"),
        ({"seen": "sum"}, r"^seen must be one of reports, levels; got 'sum'$"),
        ({"value": "consent"}, r"^consent in row 1 is not a number"),
        ({"budgets": 0.0}, r"^every epsilon0 is 0"),
        ({"weights": "best"}, r"^weights must be one of population, precision"),
        ({"rows": 0}, r"^a batch needs at least one row; got 0$"),
    ],
)
def test_bad_arguments_are_refused_by_all(people, options, message):
    asked = {"value": "hours", "low": 0.0, "high": 99.0, "budgets": "budget", "seen": "reports", "delta": DELTA}
    wanted = {**asked, **options}
    with pytest.raises(InvalidInput, match=message):
        histogram_of_table(people, **{"bins": 9, **wanted})
    with pytest.raises(InvalidInput, match=message):
        quantiles_of_table(people, **{"bins": 9, "at": 0.5, **wanted})
    if "bins" not in options:
        with pytest.raises(InvalidInput, match=message):
            variance_of_table(people, **wanted)


def test_rows_count_over_batches(people):
    table = people.with_columns(pl.when(pl.int_range(N) == 1700).then(150.0).otherwise("hours").alias("hours"))
    for ask in (
        lambda: histogram_of_table(table, "hours", 0, 99, 9, 1.0, seen=None, delta=DELTA, rows=300),
        lambda: quantiles_of_table(table, "hours", 0, 99, 0.5, 1.0, bins=9, seen=None, delta=DELTA, rows=300),
        lambda: variance_of_table(table, "hours", 0, 99, 1.0, seen=None, delta=DELTA, rows=300),
    ):
        with pytest.raises(InvalidInput, match=r"^the value in row 1701 is outside"):
            ask()
    clipped = histogram_of_table(table, "hours", 0, 99, 9, 700.0, seen=None, delta=DELTA, clip=True, mechanism="krr")
    assert float(np.sum(clipped.estimate)) == pytest.approx(1.0)


def test_the_sklearn_shape(people):
    values = people["hours"].to_numpy()[:, None]
    fitted = HistogramEstimator(0, 99, bins=9, delta=DELTA, random=simulation_random(4))
    with pytest.raises(InvalidInput, match=r"^this HistogramEstimator is not fitted yet"):
        _ = fitted.bin_edges_
    other = estimate_histogram(
        people["hours"], 0, 99, 9, 2.0, mechanism="subset", seen="reports", delta=DELTA, random=simulation_random(4)
    )
    assert fitted.fit(values, budgets=2.0) is fitted
    assert np.array_equal(fitted.frequencies_, np.asarray(other.estimate))
    assert np.array_equal(fitted.standard_error_, np.asarray(other.standard_error))
    assert fitted.bin_edges_.tolist() == pytest.approx(np.linspace(0, 99, 10))
    assert (fitted.private_, fitted.n_users_) == (False, N)
    assert fitted.guarantee_.epsilon == other.guarantee.epsilon
    median = QuantileEstimator(0, 99, [0.5], bins=33, delta=DELTA, seen="levels", random=simulation_random(4))
    median.fit_table(people, "hours", budgets="budget")
    low, high = median.confidence_interval(0.99)
    assert low[0] < median.quantiles_[0] < high[0]
    assert repr(QuantileEstimator(0, 1, np.array([0.5]), bins=8, delta=DELTA)) == (
        "QuantileEstimator(low=0, high=1, at=array([0.5]), bins=8, delta=1e-06)"
    )
    assert HistogramEstimator(0, 99, bins=9, delta=DELTA).fit_table(people, "hours", budgets=1.0).n_users_ == N
    assert QuantileEstimator(0, 99, bins=9, delta=DELTA).fit(values, budgets=1.0).quantiles_.shape == (3,)


@pytest.mark.parametrize(("low", "high"), [(0.0, 5e199), (-1e154, 1e154), (0.0, 5e-99)])
def test_squares_of_the_range_must_be_numbers(people, low, high):
    with pytest.raises(
        InvalidInput, match=r"^the range is .* wide; for a variance its width must lie between 1e-70 and"
    ):
        variance_of_table(people, "hours", low, high, 1.0, seen=None, delta=DELTA, clip=True)


def test_units_without_squares_are_refused():
    """A mean over 0 to 5e-324 had the interval "nan to nan", a norm of 1e200 was an internal failure."""
    with pytest.raises(InvalidInput, match=r"^the range is 5e-324 wide, below 1e-150: count in other units"):
        sdp.Mean(0, 5e-324)
    with pytest.raises(InvalidInput, match="norm must lie between 1e-150 and 1e"):
        sdp.VectorMean(dimension=2, norm=1e200)
