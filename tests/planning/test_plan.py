"""The planner keeps its promises: certified target, smallest batch, remedies that work."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from shuffledp.accounting import apportioned, certify
from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.planning import FrequencyQuestion, MeanQuestion, plan
from shuffledp.planning.target import scaled

THREE = Budgets((0.1, 0.5, 2.0), (5400, 3700, 900))
VOTE = FrequencyQuestion(2)


def make(budgets=THREE, question=VOTE, **kwargs):
    return plan(budgets, question, **({"target_epsilon": 0.05, "delta": 1e-6, "mechanisms": ["krr"]} | kwargs))


@pytest.fixture(scope="module")
def tight():
    return make(target_error=0.015)


def test_the_chosen_way_is_certified_and_the_best(tight):
    assert tight.guarantee.epsilon.upper <= 0.05
    assert tight.guarantee.setting.budgets == tight.bucketing.budgets
    assert tight.standard_error == min(row.error for row in tight.alternatives)
    assert {row.mechanism for row in tight.alternatives} == {"krr"}
    for row in tight.alternatives:
        assert row.bucketing is None or row.bucketing.certified_epsilon <= 0.05
        assert (row.bucketing is None) == (row.refused is not None)


def test_an_error_out_of_reach_is_said_with_what_would_meet_it(tight):
    assert not tight.met
    assert tight.limit == "budgets"
    users, factor = tight.remedies.users, tight.remedies.budget_factor
    assert users is not None
    assert factor is not None
    grown = Budgets(THREE.epsilons, np.ceil(THREE.counts * users / THREE.n).astype(int))
    way = {"mechanisms": [tight.chosen.mechanism], "seen": tight.chosen.seen, "target_error": 0.015}
    assert make(grown, **way).met
    assert make(scaled(THREE, factor), **way).met
    fewer = Budgets(THREE.epsilons, np.floor(THREE.counts * users / THREE.n * 0.95).astype(int))
    assert not make(fewer, **way).met


@pytest.mark.slow
def test_privacy_can_be_what_is_in_the_way():
    """The error would be met with all budgets, but not within the target."""
    given = make(seen="reports").chosen.given
    assert given is not None
    made = make(seen="reports", target_error=given.standard_error * 1.01)
    assert (made.met, made.limit) == (False, "privacy")


def test_the_batch_is_certified_and_one_user_fewer_is_not():
    made = make(target_epsilon=0.2, seen="reports", mechanisms=["krr"])
    setting = dataclasses.replace(made.guarantee.setting, budgets=made.batch)
    assert certify(setting, 1e-6).epsilon.upper <= 0.2
    fewer = dataclasses.replace(setting, budgets=apportioned(made.bucketing.budgets, made.batch.n - 1))
    assert certify(fewer, 1e-6).epsilon.upper > 0.2


def test_a_met_error_tells_what_it_spares():
    made = make(target_epsilon=1.0, target_error=0.2)
    assert (made.met, made.limit) == (True, "nothing")
    factor, epsilon = made.remedies.spare_factor, made.remedies.spare_epsilon
    assert factor is not None
    assert factor < 1.0
    assert epsilon is not None
    assert epsilon < made.guarantee.epsilon.upper


def test_the_curve_passes_through_the_plan_and_falls(tight):
    errors = [point.standard_error for point in tight.curve]
    epsilons = [point.epsilon for point in tight.curve]
    assert errors == sorted(errors, reverse=True)
    assert epsilons == sorted(epsilons)
    (at,) = [point for point in tight.curve if point.factor == pytest.approx(1.0)]
    assert at.standard_error == pytest.approx(tight.standard_error, rel=1e-9)
    assert at.epsilon == pytest.approx(tight.guarantee.epsilon.upper, rel=1e-6)


def test_correlated_budgets_leave_only_what_is_right_then():
    made = make(correlated=True)
    assert {(row.seen, row.weights) for row in made.alternatives} == {("levels", "population")}
    assert not made.chosen.needs_independence
    with pytest.raises(InvalidInput, match="no way"):
        make(correlated=True, seen="reports")


def test_one_budget_has_no_levels_to_show():
    made = make(Budgets((1.0,), (10_000,)))
    assert {row.seen for row in made.alternatives} == {"reports"}
    assert not made.chosen.needs_independence


def test_every_mechanism_is_compared_and_refusals_are_told():
    made = plan(Budgets((1.0,), (2000,)), MeanQuestion(0, 10), target_epsilon=0.5, delta=1e-6)
    assert {row.mechanism for row in made.alternatives} == {"one-bit", "laplace", "gaussian", "piecewise", "hybrid"}
    (gaussian,) = [row for row in made.alternatives if row.mechanism == "gaussian"]
    assert gaussian.given is None
    assert gaussian.refused


@pytest.mark.parametrize("n", [1, 2])
def test_nobody_to_hide_among(n):
    made = make(Budgets((1.0,), (n,)), target_error=0.01)
    assert made.guarantee.epsilon.upper <= 0.05
    assert made.batch.n <= n
    assert not made.met
    assert made.remedies.users is not None


def test_some_budgets_are_0():
    made = make(Budgets((0.0, 1.0), (500, 2000)))
    assert made.guarantee.epsilon.upper <= 0.05
    with pytest.raises(InvalidInput, match="no report carries information"):
        make(Budgets((0.0,), (500,)))


@pytest.mark.parametrize(
    "kwargs",
    [
        {"target_epsilon": math.nan},
        {"target_epsilon": 0.0},
        {"target_epsilon": math.inf},
        {"delta": 1.0},
        {"target_error": math.nan},
        {"target_error": -1.0},
        {"seen": "users"},
        {"mechanisms": ["laplace"]},
        {"mechanisms": []},
        {"levels": 65},
        {"rounds": 0},
    ],
)
def test_bad_input_is_refused(kwargs):
    with pytest.raises(InvalidInput):
        make(**kwargs)
