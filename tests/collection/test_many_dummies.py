"""Dummies without number: other tasks go on while they are sealed, and only whole sets of them are used."""

from __future__ import annotations

import pytest

from shuffledp.collection import closing, laws
from shuffledp.collection.closing import batch_path, close_task
from shuffledp.collection.ingest import hold, open_reports
from shuffledp.collection.sealing import Opener
from shuffledp.collection.store import Store
from shuffledp.errors import InvalidInput
from tests.collection.service import FLOOR, NOON, Reports, Time, task_of
from tests.collection.tasks import SHUFFLER
from tests.collection.test_closing import TASK, N, counts_in, filled, rows_of


def test_another_task_is_answered_while_one_with_many_dummies_closes(tmp_path, monkeypatch):
    """400,000 dummies were sealed in one transaction of 39 s, and another task's report was answered after 10 s."""
    monkeypatch.setattr("shuffledp.collection.store.PATIENCE", 0.0)  # whoever has to wait is refused
    monkeypatch.setattr(closing, "PIECE", 8)
    other = task_of(title={"en": "Another task"})
    store, _ = filled(tmp_path)
    store.post(other, SHUFFLER, FLOOR, NOON)
    second, answers, stored, seal = Store(tmp_path / "store.db"), [], [], laws.seal_inner

    def sealing(*arguments):
        answers.extend(hold(second, [open_reports(Reports(other).one(), other, Opener(SHUFFLER))]))
        stored.append(sum(len(second.dummies(TASK.digest, question)) for question in range(2)))
        return seal(*arguments)

    monkeypatch.setattr(laws, "seal_inner", sealing)
    path = close_task(store, TASK.digest, clock=Time())
    assert answers == [b"\0"] * 31
    assert sorted(set(stored)) == [0, 8, 16, 20, 28], "no transaction stores more than a piece"
    assert [len(column) for column in rows_of(path)] == [N + 20, N + 11]
    assert second.held(other.digest) == 31
    for opened in (store, second):
        opened.close()


def test_dummies_of_a_closing_that_died_are_drawn_alike_and_never_added_to(tmp_path, monkeypatch):
    """They follow from two keys: a second draw that differed would tell dummies from people."""
    monkeypatch.setattr(closing, "PIECE", 8)
    store, _ = filled(tmp_path)
    for died_after in (0, 3, 25):
        monkeypatch.setattr(laws, "seal_inner", dying_after(died_after))
        with pytest.raises(SystemExit):
            close_task(store, TASK.digest, clock=Time())
        monkeypatch.undo()
        monkeypatch.setattr(closing, "PIECE", 8)
        row = store.task(TASK.digest)
        assert row is not None
        assert row.state == "open"
    assert counts_in(store)[1] == 20
    left = set(store.dummies(TASK.digest, 0))
    columns = rows_of(close_task(store, TASK.digest, clock=Time()))
    assert [len(column) for column in columns] == [N + 20, N + 11]
    assert left <= set(columns[0])
    store.close()


def dying_after(calls: int):
    """Sealing that ends the process after so many calls."""
    left, seal = iter(range(calls)), laws.seal_inner

    def sealing(*arguments):
        if next(left, None) is None:
            raise SystemExit
        return seal(*arguments)

    return sealing


def test_a_task_without_all_of_its_dummies_is_not_closed(tmp_path, monkeypatch):
    """Whatever has taken them away: without them no promise holds."""
    store, _ = filled(tmp_path)
    monkeypatch.setattr(closing, "seal_dummies", lambda *_: iter([(0, [b"x"] * 19), (1, [b"x"] * 11)]))
    with pytest.raises(InvalidInput, match="other dummies"):
        close_task(store, TASK.digest, clock=Time())
    row = store.task(TASK.digest)
    assert row is not None
    assert (row.state, batch_path(store, TASK).exists()) == ("open", False)
    store.close()
