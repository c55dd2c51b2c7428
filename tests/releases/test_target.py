"""A central epsilon that must hold: the local budget is found for it, certified, and asked with."""

from __future__ import annotations

import pytest

import shuffledp as sdp
from shuffledp.errors import InvalidInput

N, DELTA = 2_000, 1e-5
PEOPLE = {
    "vote": ["yes", "no"] * (N // 2),
    "hours": [10.0, 40.0] * (N // 2),
    "side": ["north"] * 1_500 + ["south"] * 500,
    "who": [f"p{row // 2}" for row in range(N)],
}
QUESTIONS = {
    "frequency": (sdp.Frequency(["yes", "no"]), "vote", None),
    "subset": (sdp.Histogram(0, 50, 20), "hours", "subset"),
    "mean": (sdp.Mean(0, 50), "hours", None),
    "piecewise": (sdp.Mean(0, 50), "hours", "piecewise"),
    "variance": (sdp.Variance(0, 50), "hours", None),
}


def asked(question: str, target: float, **more: object) -> sdp.Release:
    what, value, mechanism = QUESTIONS[question]
    return sdp.release(what, PEOPLE, value=value, mechanism=mechanism, target_epsilon=target, delta=DELTA, **more)


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_target_is_certified_and_nearly_used_up(question):
    found = asked(question, 0.4)
    epsilon, (budget,) = found.guarantee.epsilon.upper, found.guarantee.setting.budgets.epsilons
    assert 0.36 <= epsilon <= 0.4
    assert budget > 0.4
    assert sdp.certify(found.guarantee.setting, DELTA).epsilon.upper == epsilon
    what, value, mechanism = QUESTIONS[question]
    again = sdp.release(what, PEOPLE, value=value, mechanism=mechanism, budgets=float(budget), delta=DELTA)
    assert again.guarantee.epsilon.upper == epsilon  # whoever states that budget gets the same


def test_people_with_several_rows_are_protected_with_all_of_them():
    found = asked("mean", 0.4, person="who", rows_per_person=2)
    assert found.guarantee.setting.group_size == 2
    assert found.guarantee.epsilon.upper <= 0.4
    assert found.guarantee.setting.budgets.epsilons[0] < asked("mean", 0.4).guarantee.setting.budgets.epsilons[0]


def test_of_groups_the_smallest_decides():
    ask = {"value": "hours", "by": "side", "groups": ["north", "south"], "delta": DELTA}
    found = sdp.release_by(sdp.Mean(0, 50), PEOPLE, target_epsilon=0.4, **ask)
    assert found.worst == "south"
    assert 0.36 <= found.guarantee.epsilon.upper <= 0.4
    assert len({release.guarantee.setting.budgets.epsilons[0] for release in found.releases.values()}) == 1


def test_of_several_questions_the_target_is_that_of_all():
    asked = [sdp.Ask(sdp.Mean(0, 50), "hours"), sdp.Ask(sdp.Frequency(["yes", "no"]), "vote")]
    found = sdp.release_together(asked, PEOPLE, target_epsilon=0.4, delta=DELTA)
    assert 0.38 <= found.epsilon <= 0.4
    assert all(release.guarantee.epsilon.upper < 0.4 for release in found.releases)


def test_the_short_forms_take_it():
    in_memory = sdp.estimate_mean(PEOPLE["hours"], 0, 50, target_epsilon=0.4, delta=DELTA)
    table = sdp.mean_of_table({"hours": PEOPLE["hours"]}, "hours", 0, 50, target_epsilon=0.4, delta=DELTA)
    assert in_memory.guarantee.epsilon.upper == table.guarantee.epsilon.upper <= 0.4


def test_a_target_that_no_crowd_is_needed_for():
    found = sdp.release(sdp.Mean(0, 1), {"x": [1.0]}, value="x", target_epsilon=2.0, delta=1e-9)
    assert 1.99 < found.guarantee.setting.budgets.epsilons[0] <= 2.0
    assert found.guarantee.epsilon.upper <= 2.0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, r"say either the local budgets \(`epsilon0`\), or the central epsilon .*; got neither$"),
        ({"budgets": 1.0, "target_epsilon": 1.0}, "; got both$"),
        ({"target_epsilon": 0.0}, r"^`target_epsilon` must be a positive number of nats; got 0.0$"),
        ({"target_epsilon": True}, r"^`target_epsilon` must be a positive number of nats; got True$"),
        ({"target_epsilon": float("inf")}, "got inf$"),
        (
            {"target_epsilon": 1.0, "missing_budget": 0.0},
            "`consent` and `missing_budget` have no column; leave them out$",
        ),
    ],
)
def test_what_does_not_go_together(more, message):
    with pytest.raises(InvalidInput, match=message):
        sdp.release(sdp.Mean(0, 50), PEOPLE, value="hours", delta=DELTA, **more)
