"""The sklearn-shaped classes: parameters in, fitted attributes out, and nothing of scikit-learn inside."""

from __future__ import annotations

import sys

import numpy as np
import polars as pl
import pytest

from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import simulation_random
from shuffledp.records.people import RowBudgets
from shuffledp.releases.estimators import FrequencyEstimator, MeanEstimator
from shuffledp.releases.wrappers import estimate_frequency, estimate_mean

RECORDS = ["a", "b", "b", "c"] * 100
VALUES = [1.0, 2.0, 3.0, 6.0] * 100


def copied(estimator):
    """What scikit-learn's clone does."""
    fresh = type(estimator)(**estimator.get_params(deep=False))
    for name, value in estimator.get_params(deep=False).items():
        assert fresh.get_params(deep=False)[name] is value
    return fresh


def test_parameters_are_the_constructor_s():
    estimator = FrequencyEstimator(["a", "b"], delta=1e-6, mechanism="oue")
    assert sorted(estimator.get_params()) == sorted([
        "categories", "delta", "seen", "mechanism", "clip", "missing_as", "missing_person", "other", "weights", "where",
        "random", "any_delta",
        "rows_per_person", "missing_budget", "ledger", "population", "fixed_in_advance", "title",
        "consent", "table_options", "target_epsilon", "rows", "progress",
    ])  # fmt: skip
    assert copied(estimator).mechanism == "oue"
    assert estimator.set_params(mechanism="olh", delta=1e-8) is estimator
    assert (estimator.mechanism, estimator.delta) == ("olh", 1e-8)
    assert repr(estimator) == "FrequencyEstimator(categories=['a', 'b'], delta=1e-08, mechanism='olh')"
    with pytest.raises(InvalidInput, match=r"^FrequencyEstimator has no parameter 'epsilon'; it has categories, "):
        estimator.set_params(delta=0.5, epsilon=1)
    assert estimator.delta == 1e-8
    assert copied(MeanEstimator(0, 1, delta=1e-6)).high == 1
    assert "sklearn" not in sys.modules


def test_fitting_is_the_function():
    budgets = np.array([0.5, 2.0] * 200)
    fitted = FrequencyEstimator("abc", delta=1e-6)
    with pytest.raises(InvalidInput, match=r"^this FrequencyEstimator is not fitted yet; call fit or fit_table first$"):
        _ = fitted.frequencies_
    fitted = FrequencyEstimator(list("abc"), delta=1e-6, seen="levels", random=simulation_random(1))
    assert fitted.fit(RECORDS, budgets=budgets) is fitted
    other = estimate_frequency(RECORDS, list("abc"), budgets, seen="levels", delta=1e-6, random=simulation_random(1))
    assert np.array_equal(fitted.frequencies_, np.asarray(other.estimate))
    assert np.array_equal(fitted.standard_error_, np.asarray(other.standard_error))
    assert fitted.guarantee_.epsilon == other.guarantee.epsilon
    assert (fitted.private_, fitted.n_users_) == (False, 400)
    assert np.array_equal(fitted.confidence_interval(0.9)[0], other.confidence_interval(0.9)[0])


def test_columns_of_one_are_columns():
    two_d = np.array(VALUES)[:, None]
    fitted = MeanEstimator(0, 10, delta=1e-6, random=simulation_random(4)).fit(two_d, budgets=1.0)
    other = estimate_mean(VALUES, 0, 10, 1.0, seen="reports", delta=1e-6, random=simulation_random(4))
    assert (fitted.mean_, fitted.standard_error_) == (other.estimate, other.standard_error)
    with pytest.raises(InvalidInput, match=r"^X must have one column; got 2; "):
        MeanEstimator(0, 10, delta=1e-6).fit(np.zeros((5, 2)), budgets=1.0)
    with pytest.raises(InvalidInput, match=r"^there are 2 different budgets, so `seen` is needed"):
        MeanEstimator(0, 10, delta=1e-6).fit([1.0, 2.0], budgets=[1.0, 2.0])


def test_tables():
    people = pl.DataFrame({"answer": RECORDS, "hours": VALUES, "consent": ["open", "strict"] * 200})
    asked = RowBudgets("consent", {"open": 3.0, "strict": 0.5})
    fitted = FrequencyEstimator(list("abc"), delta=1e-6, seen="reports").fit_table(people, "answer", budgets=asked)
    assert fitted.guarantee_.setting.budgets.epsilons.tolist() == [0.5, 3.0]
    assert MeanEstimator(0, 10, delta=1e-6).fit_table(people, "hours", budgets=1.0).n_users_ == 400
