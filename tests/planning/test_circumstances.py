"""Plans for rounds, colluders, people who stay away, groups and dummies; and what is left without the shuffle."""

from __future__ import annotations

import dataclasses
import importlib
import math
from decimal import Decimal

import pytest

import shuffledp as sdp
from shuffledp.errors import InvalidInput
from shuffledp.planning import plan, target
from shuffledp.planning.bucketing import bucket_budgets
from tests.work import calls_of

_guarantee = importlib.import_module("shuffledp.planning.plan")._guarantee
PEOPLE, QUESTION, DELTA = sdp.Budgets([4.0], [2_000]), sdp.Mean(0, 1), 1e-6
AROUND = {"colluding": 200, "missing": 0.2, "group_size": 2}


@pytest.mark.costly
def test_a_plan_is_certified_for_what_it_was_asked_for():
    made = plan(PEOPLE, QUESTION, mechanisms=["one-bit"], target_epsilon=1.0, delta=DELTA, **AROUND)
    setting = made.guarantee.setting
    assert {name: getattr(setting, name) for name in AROUND} == AROUND
    assert made.guarantee.epsilon.upper <= 1.0
    assert sdp.certify(setting, DELTA).epsilon.upper == made.guarantee.epsilon.upper
    plain = plan(PEOPLE, QUESTION, mechanisms=["one-bit"], target_epsilon=1.0, delta=DELTA)
    assert made.bucketing.budgets.epsilons[0] < plain.bucketing.budgets.epsilons[0]
    assert made.standard_error > plain.standard_error


SMALL = {"mechanisms": ["one-bit"], "target_epsilon": 0.3, "delta": DELTA}


@pytest.fixture(scope="module")
def plain():
    return plan(PEOPLE, QUESTION, **SMALL)


@pytest.mark.costly
@pytest.mark.parametrize(("name", "value"), [("colluding", 1_000), ("missing", 0.5), ("group_size", 3)])
def test_each_of_them_costs_budget(plain, name, value):
    made = plan(PEOPLE, QUESTION, **SMALL, **{name: value})
    assert made.bucketing.budgets.epsilons[0] < plain.bucketing.budgets.epsilons[0]
    assert all(point.epsilon > 0.0 for point in made.curve)


def test_so_many_rounds_that_nothing_is_told_are_refused_before_a_search():
    people, ask = sdp.Budgets([0.5, 2.0], [9_000, 1_000]), {"target_epsilon": 0.1, "delta": DELTA}
    with pytest.raises(InvalidInput, match=r"^over 1,000,000,000 rounds no way of asking tells anything at"):
        plan(people, sdp.Frequency(range(10)), rounds=10**9, **ask)
    with pytest.raises(InvalidInput, match="of a round is above 8, the whole range; ask in fewer rounds"):
        plan(people, sdp.Mean(2, 10), rounds=10**9, mechanisms=["one-bit"], **ask)


@pytest.mark.slow
def test_over_rounds_no_way_that_cannot_come_near_the_best_is_searched():
    people, ask = sdp.Budgets([2.0], [9_000]), {"target_epsilon": 0.05, "delta": DELTA, "rounds": 3}
    made, alone = (
        plan(people, sdp.Frequency(range(10)), mechanisms=named, **ask) for named in (["subset", "krr"], ["krr"])
    )
    assert made.guarantee.epsilon.upper <= made.bucketing.certified_epsilon <= 0.05
    assert made.chosen.mechanism == "subset"
    assert alone.standard_error > 1.05 * made.standard_error, "krr is no rival"
    assert "within the central target comes near the best plan's error" in str(made.alternatives[-1].refused)


def test_what_has_a_larger_error_than_is_searched_for_is_refused_at_once(monkeypatch):
    people, wanted = sdp.Budgets([1.0], [900]), {"mechanism": "one-bit", "delta": DELTA, "target": 0.2}
    for seen in ("reports", "levels"):
        found = bucket_budgets(people, QUESTION, seen=seen, **wanted)
        error = found.prediction.standard_error
        same = bucket_budgets(people, QUESTION, seen=seen, at_most=1.01 * error, **wanted)
        assert (same.cap, same.certified_epsilon) == (found.cap, found.certified_epsilon)
    calls = calls_of(monkeypatch, target.Target, "excess")
    with pytest.raises(InvalidInput, match="within the central target comes near the best plan's error"):
        bucket_budgets(people, QUESTION, seen="reports", at_most=0.9 * error, **wanted)
    assert len(calls) <= 2


def test_a_certificate_is_made_once_for_ways_that_differ_in_their_weights(monkeypatch):
    calls = calls_of(monkeypatch, target.Target, "excess")
    family, wish = sdp.RandomizedResponse(3), target.Wish(0.3, DELTA, target.Circumstances(2))
    people = sdp.Budgets([0.5], [917])
    first, again = (wish.excess(wish.setting(people, family, "levels")) for _ in range(2))
    assert first == again
    assert len(calls) == 1


def test_a_plan_states_no_more_than_its_rule_is_certified_at():
    twice, people = target.Circumstances(2, group_size=2), sdp.Budgets([1.0], [900])
    asked = {"mechanism": "krr", "seen": "reports", "delta": DELTA, "target": 0.3, "around": twice}
    found = bucket_budgets(people, sdp.Frequency(range(5)), **asked)
    assert _guarantee(found).epsilon.lower < 0.99 * found.certified_epsilon
    least = found.certified_epsilon * 0.9999
    assert _guarantee(dataclasses.replace(found, certified_epsilon=least)).epsilon.upper == least


def test_dummies_stand_in_the_guarantee_and_in_the_error():
    people, dummies = sdp.Budgets([2.0], [1_000]), sdp.Uniform(500)
    ask = {"target_epsilon": 2.0, "delta": 1e-5, "mechanisms": ["krr", "subset"]}
    made, plain = (plan(people, sdp.Frequency(range(4)), dummies=each, **ask) for each in (dummies, None))
    assert made.chosen.mechanism == "krr"
    assert made.guarantee.setting.dummies == dummies
    assert made.guarantee.epsilon.upper < plain.guarantee.epsilon.upper
    price = sdp.dummies_price(sdp.RandomizedResponse(4), people, dummies)
    assert made.standard_error > plain.standard_error
    assert made.standard_error <= math.hypot(plain.standard_error, math.sqrt(price.total**2 - price.without**2))
    refused = {row.mechanism: row.refused for row in made.alternatives}
    assert "dummies serve the families rr, krr:K, one-bit and hadamard:K" in str(refused["subset"])


def test_more_colluders_than_people_are_refused():
    with pytest.raises(InvalidInput, match="colluding must be a whole number from 0 to 1,999; got 2000"):
        plan(PEOPLE, QUESTION, target_epsilon=1.0, delta=DELTA, colluding=2_000)


@pytest.mark.parametrize(
    ("budget", "more", "expected"),
    [
        (7.23, {"rounds": 12}, (7.23, 86.76)),
        (0.1, {"rounds": 3}, (0.1, 0.3)),  # the sum of doubles is 0.30000000000000004
        (0.5, {"rounds": 2, "group_size": 3, "reports_per_user": 2}, (3.0, 6.0)),
        (1.0, {}, (1.0, 1.0)),
    ],
)
def test_what_is_left_without_the_shuffle(budget, more, expected):
    setting = sdp.Setting(sdp.Budgets([budget / 2, budget], [50, 50]), "any", "reports", "replace-one", **more)
    assert setting.unshuffled() == expected


def test_a_sum_without_the_shuffle_is_never_too_small():
    for budget in (0.1234567890123456, 0.7, 1.1, 3.3333333333333335):
        for rounds in (3, 7, 11, 365):
            setting = sdp.Setting(sdp.Budgets([budget], [9]), "any", "reports", "replace-one", rounds=rounds)
            assert Decimal(repr(setting.unshuffled()[1])) >= Decimal(repr(budget)) * rounds


def test_a_memo_has_one_budget_for_all_rounds():
    memo = sdp.Memoised(2.0, fresh=1.0)
    setting = sdp.Setting(
        sdp.Budgets([2.0], [100]), memo, "reports", "replace-one", rounds=5, linked=True, same_record=True
    )
    assert setting.unshuffled() == (2.0, 2.0)
