"""The planner keeps its promises: certified target, smallest batch, remedies that work."""

from __future__ import annotations

import dataclasses
import importlib
import math

import numpy as np
import pytest

from shuffledp import Frequency, Mean
from shuffledp.accounting import apportioned, certify
from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import simulation_random
from shuffledp.planning import plan
from shuffledp.planning.question import predict
from shuffledp.planning.target import scaled
from shuffledp.randomizers.wire import encode

THREE = Budgets((0.1, 0.5, 2.0), (5400, 3700, 900))
VOTE = Frequency(range(2))


def make(budgets=THREE, question=VOTE, **kwargs):
    return plan(budgets, question, **({"target_epsilon": 0.05, "delta": 1e-6, "mechanisms": ["krr"]} | kwargs))


@pytest.fixture(scope="module")
def tight():
    return make(target_error=0.015)


@pytest.mark.costly
def test_the_chosen_way_is_certified_and_the_best(tight):
    assert tight.guarantee.epsilon.upper <= 0.05
    assert tight.guarantee.setting.budgets == tight.bucketing.budgets
    assert tight.standard_error == min(row.error for row in tight.alternatives)
    assert {row.mechanism for row in tight.alternatives} == {"krr"}
    for row in tight.alternatives:
        assert row.bucketing is None or row.bucketing.certified_epsilon <= 0.05
        assert (row.bucketing is None) == (row.refused is not None)


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_batch_is_certified_and_one_user_fewer_is_not():
    made = make(target_epsilon=0.2, seen="reports", mechanisms=["krr"])
    setting = dataclasses.replace(made.guarantee.setting, budgets=made.batch)
    assert certify(setting, 1e-6).epsilon.upper <= 0.2
    fewer = dataclasses.replace(setting, budgets=apportioned(made.bucketing.budgets, made.batch.n - 1))
    assert certify(fewer, 1e-6).epsilon.upper > 0.2


@pytest.fixture(scope="module")
def met():
    """48,842 people at a budget of 1: the error is met with room, by several mechanisms."""
    one = Budgets((1.0,), (48_842,))
    return plan(one, Frequency(range(10)), target_epsilon=0.5, delta=1e-6, target_error=0.02)


@pytest.mark.costly
def test_a_wanted_error_is_met_with_the_smallest_epsilon(met):
    """Version 0.1.0 spent all of the target and said in its last line how little was needed."""
    assert (met.met, met.limit) == (True, "nothing")
    assert 0.02 * 0.999 < met.standard_error <= 0.02
    epsilon = met.guarantee.epsilon.upper
    assert met.guarantee.setting.budgets == met.bucketing.budgets
    for row in met.alternatives:  # no number that the plan shows is smaller at an error as small
        assert row.given is None or row.given.standard_error > 0.02 or row.given_epsilon >= epsilon
        assert row.least_epsilon >= epsilon
        for rule in (row.bucketing, row.least):
            assert rule is None or rule.prediction.standard_error > 0.02 or rule.certified_epsilon >= epsilon
    assert met.chosen is met.alternatives[0]
    lowered = scaled(met.bucketing.budgets, 0.999)
    family = met.question.family(met.chosen.mechanism, lowered, "reports")
    assert predict(family, lowered, None, met.question.moments).standard_error > 0.02


@pytest.mark.costly
def test_the_smallest_error_within_the_target_stands_beside(met):
    accurate = met.most_accurate
    assert accurate.error == min(row.error for row in met.alternatives)
    assert accurate.error < 0.5 * met.standard_error
    assert met.guarantee.epsilon.upper < accurate.bucketing.certified_epsilon <= 0.5


@pytest.mark.costly
def test_without_a_wanted_error_the_plan_is_the_most_accurate():
    made = make(Budgets((1.0,), (10_000,)))
    assert made.chosen is made.most_accurate
    assert made.chosen.least is None
    assert made.met


def test_the_curve_passes_through_the_plan_and_falls(met):
    errors = [point.standard_error for point in met.curve]
    epsilons = [point.epsilon for point in met.curve]
    assert errors == sorted(errors, reverse=True)
    assert epsilons == sorted(epsilons)
    (at,) = [point for point in met.curve if point.factor == pytest.approx(1.0)]
    assert at.standard_error == pytest.approx(met.standard_error, rel=1e-9)
    assert at.epsilon == pytest.approx(met.guarantee.epsilon.upper, rel=1e-6)


@pytest.mark.costly
def test_the_curve_is_certified_when_it_is_read(monkeypatch):
    """A terminal shows none, and it cost more than the rest of a plan."""
    asked = list[Budgets]()
    module = importlib.import_module("shuffledp.planning.plan")
    curve = module.error_curve
    monkeypatch.setattr(module, "error_curve", lambda rule, *rest: asked.append(rule.budgets) or curve(rule, *rest))
    made = make(Budgets((0.04,), (10,)))
    assert not asked
    assert made.curve is made.curve
    assert asked == [made.bucketing.budgets]


@pytest.mark.costly
def test_correlated_budgets_leave_only_what_is_right_then():
    made = make(correlated=True)
    assert {(row.seen, row.weights) for row in made.alternatives} == {("levels", "population")}
    assert not made.chosen.needs_independence
    with pytest.raises(InvalidInput, match="no way"):
        make(correlated=True, seen="reports")


@pytest.mark.costly
def test_one_budget_has_no_levels_to_show():
    made = make(Budgets((1.0,), (10_000,)))
    assert {row.seen for row in made.alternatives} == {"reports"}
    assert not made.chosen.needs_independence


@pytest.mark.costly
def test_every_mechanism_is_compared_and_refusals_are_told():
    made = plan(Budgets((1.0,), (2000,)), Mean(0, 10), target_epsilon=0.5, delta=1e-6)
    assert {row.mechanism for row in made.alternatives} == {"one-bit", "laplace", "gaussian", "piecewise", "hybrid"}
    (gaussian,) = [row for row in made.alternatives if row.mechanism == "gaussian"]
    assert gaussian.given is None
    assert gaussian.refused


@pytest.mark.costly
def test_reports_are_as_long_as_the_plan_says():
    made = make(Budgets((1.0,), (20_000,)), Frequency(range(100)), mechanisms=["krr", "oue", "olh", "subset"])
    for row in made.alternatives:
        rule = row.bucketing
        if rule is None:
            continue
        records = np.arange(100)
        reports = rule.family.randomize(records, rule.budgets.epsilons[0], simulation_random(1))
        header = len(encode(reports[:0], rule.family))
        assert len(encode(reports, rule.family)) - header == 100 * row.report_bytes
    assert {row.mechanism: row.report_bytes for row in made.alternatives}["oue"] == 13


@pytest.mark.costly
def test_a_report_may_be_limited_to_so_many_bytes():
    one, question, names = Budgets((1.0,), (20_000,)), Frequency(range(100)), ["krr", "oue", "olh", "subset"]
    free = make(one, question, mechanisms=names)
    assert free.bucketing.report_bytes > 2
    made = make(one, question, mechanisms=names, max_bytes=2)
    assert made.bucketing.report_bytes <= 2
    assert made.standard_error >= free.standard_error
    refused = {row.mechanism: row.refused for row in made.alternatives if row.bucketing is None}
    assert refused["oue"] == "a report of oue has 13 bytes, more than the 2 allowed"
    with pytest.raises(InvalidInput, match="a report of oue has 13 bytes, more than the 12 allowed"):
        make(one, question, mechanisms=["oue"], max_bytes=12)


@pytest.mark.costly
@pytest.mark.parametrize("n", [1, 2])
def test_nobody_to_hide_among(n):
    made = make(Budgets((1.0,), (n,)), target_error=0.01)
    assert made.guarantee.epsilon.upper <= 0.05
    assert made.batch.n <= n
    assert not made.met
    assert made.remedies.users is not None


@pytest.mark.costly
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
        {"max_bytes": 0},
        {"max_bytes": 1.5},
        {"max_bytes": True},
    ],
)
def test_bad_input_is_refused(kwargs):
    with pytest.raises(InvalidInput):
        make(**kwargs)
