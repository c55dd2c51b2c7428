"""What a hostile task can make others compute is bounded before anything is computed."""

from __future__ import annotations

import pytest

from shuffledp.accounting import floor_profile
from shuffledp.collection import promise
from shuffledp.collection.client import Client, certify_task
from shuffledp.collection.promise import (
    MOST_WORK,
    check_floor,
    cost_of_answer,
    floor_of,
    law_of,
    promised_profiles,
    work_of,
)
from shuffledp.errors import InvalidInput
from tests.collection.tasks import choice, draft, number, posted

EIGHT = tuple((0.5 + 0.3 * i, 100, 900.0) for i in range(8))
HOSTILE = [choice(3, 2000 + i) for i in range(32)]
"""14 kB that made a client of 0.2.0 compute for over a minute, in 2.7 GB: 32 different laws at 8 levels."""


def work(*questions, **changed) -> int:  # type: ignore[no-untyped-def]
    asked = draft(*questions, **changed)
    parts = [each.family for each in asked.questions], [each.dummies for each in asked.questions]
    return work_of([level.draw for level in asked.levels], *parts, promise.reports_of(asked))


@pytest.mark.parametrize("admission", ["codes", "open"])
def test_a_small_task_of_many_laws_is_refused_before_anything_is_computed(admission, monkeypatch):
    task = posted(*HOSTILE, levels=EIGHT, admission=admission)
    assert len(task.data) < 20_000

    def computed(*_: object, **__: object) -> None:
        raise AssertionError("this is the work that must not be done")

    monkeypatch.setattr(promise, "floor_profile", computed)
    attempts = [
        lambda: certify_task(task),
        lambda: Client(task),
        lambda: check_floor(task.draft),  # of task draft, and task post
        lambda: floor_of(task.draft),  # of open, and task verify
        lambda: promised_profiles(task.draft),  # of a ledger
    ]
    for attempt in attempts:
        with pytest.raises(InvalidInput, match="ask fewer different questions, or with fewer levels or dummies"):
            attempt()


HONEST = {
    "one of five, 172 dummies": ([choice()], {}),
    "32 equal questions with many dummies": ([choice(5, 5500)] * 32, {}),
    "32 different questions": ([choice(3 + i, 300) for i in range(32)], {}),
    "two answers of one person": ([choice(5, 700), number(dummies=1300)], {"admission": "open"}),
    "as many dummies as are summed over, at 8 levels": ([choice(5, 10_000, "hadamard:5")], {"levels": EIGHT}),
    "ten million dummies of a bit": ([number(dummies=10**7)], {"levels": EIGHT}),
}


@pytest.mark.parametrize("honest", HONEST)
def test_an_honest_task_is_far_within(honest):
    questions, changed = HONEST[honest]
    assert work(*questions, **changed) < MOST_WORK


@pytest.mark.parametrize("question", [choice(2, 900), choice(5, 40), choice(5, 900), choice(40, 900),
                                      choice(5, 900, "hadamard:5"), number(dummies=50)])  # fmt: skip
def test_no_fewer_atoms_are_counted_than_there_are(question):
    asked = draft(question, question)
    (one, _), level = asked.questions, asked.levels[0]
    pair = floor_profile(one.family.library(), None, law_of(one.dummies), draw=level.draw[0])
    assert sum(each.weights.size for each in pair.above) <= work(question, question, levels=((0.5, 1, 0.1),))


def test_equal_questions_are_one_law():
    assert work(choice(), choice()) < 1.5 * work(choice(), choice(5, 173))
    assert work(*[choice()] * 32) == work(choice(), choice())
    assert cost_of_answer(draft(), 0) == floor_of(draft())
