"""Plans for rounds, colluders, people who stay away, groups and dummies; and what is left without the shuffle."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

import shuffledp as sdp
from shuffledp.errors import InvalidInput
from shuffledp.planning import plan

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
