"""A store that is put back from a copy: no task is handed over twice, and no report of people is told from dummies."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest

from shuffledp.collection import closing
from shuffledp.collection.batch import Batch
from shuffledp.collection.closing import Keeper, close_task, destroy_task, expire_task, finish_removals
from shuffledp.collection.ingest import Refused, hold, open_reports
from shuffledp.collection.laws import chance_of, seal_dummies
from shuffledp.collection.sealing import Opener, new_private
from shuffledp.collection.store import Store, marks_of, set_marks
from shuffledp.collection.task import PostedTask
from shuffledp.errors import InvalidInput
from tests.collection.service import Reports, Time, store_at, task_of
from tests.collection.tasks import ANALYZER, IDENTITY, SHUFFLER, choice, number
from tests.collection.test_closing import rows_of

TASK = task_of(choice(5, 20), number(dummies=11))
N, MORE = 30, 25


def answers(store: Store, n: int) -> bytes | Refused:
    body = b"".join(Reports(TASK).many(n))
    return hold(store, [open_reports(body, TASK, Opener(SHUFFLER))])[0]


@pytest.fixture
def copied(tmp_path: Path) -> tuple[Path, Path]:
    """A shuffler's folder with 30 people, and a copy of it."""
    folder = tmp_path / "shuffler"
    folder.mkdir()
    store = store_at(folder, TASK)
    assert answers(store, N) == bytes(N)
    assert store.checkpoint()
    store.close()
    return folder, Path(shutil.copytree(folder, tmp_path / "copy"))


def closed(folder: Path) -> Path:
    """Close the task, as `shuffledp task close` does."""
    store = Store(folder / "store.db")
    try:
        return close_task(store, TASK.digest, clock=Time())
    finally:
        store.close()


def files_in(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix not in ("", ".db")}


@pytest.mark.parametrize("left", ["both", "ended", "outbox", "batch", "batch of 0.2.0"])
def test_a_store_put_back_after_closing_is_not_closed_again(copied, left):
    """0.2.0 signed a second batch with fresh dummies: the rows in both were exactly the people's."""
    folder, copy = copied
    path = closed(folder)
    first, second = marks_of(folder / "store.db", TASK.id)
    assert first.read_text() == second.read_text() == "closed 2030-03-17\n"
    if left == "batch of 0.2.0":  # which named it by the id alone
        path = path.rename(path.with_name(f"{TASK.id}.batch"))
    handed_over = path if left.startswith("batch") else path.rename(folder.parent / path.name)
    for mark, name in ((first, "ended"), (second, "outbox")):
        if left not in ("both", name):
            mark.unlink()
    shutil.copy(copy / "store.db", folder / "store.db")
    before = files_in(folder)
    with pytest.raises(InvalidInput, match=r"has ended before, .*put back from a copy.*shuffledp task destroy") as told:
        closed(folder)
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 600
    assert files_in(folder) == before, "nothing is written, nothing deleted"
    store = Store(folder / "store.db")
    assert store.state(TASK.digest)[0] == "restored"
    assert store.held(TASK.digest) == N
    assert answers(store, 1) is Refused.CLOSED, "nobody is told that a report is held which never leaves"
    assert store.key(TASK.digest) is None
    store.close()
    assert Batch.parse(handed_over.read_bytes()).manifest.n == N


def test_a_machine_put_back_as_a_whole_hands_the_same_bytes_over(copied):
    """Neither mark nor batch is left, as after a snapshot of a virtual machine."""
    folder, copy = copied
    assert closed(folder).read_bytes() == closed(copy).read_bytes()


def test_two_batches_of_one_task_share_the_dummies(copied):
    """25 more people answer on the machine put back: what only one batch holds are these, and no dummy of the first."""
    folder, copy = copied
    store = Store(copy / "store.db")
    assert answers(store, MORE) == bytes(MORE)
    store.close()
    one, two = rows_of(closed(folder)), rows_of(closed(copy))
    for first, second in zip(one, two, strict=True):
        assert set(first) < set(second)
        assert len(second) - len(first) == MORE
        common = set(first)
        assert [row for row in second if row in common] != first, "another order, which tells nothing of the first"


def test_the_dummies_need_both_keys():
    """A thief of shuffler.key without the task's deleted key, or of a store without shuffler.key, learns none."""
    one = [rows for _, rows in seal_dummies(TASK, chance_of(IDENTITY, TASK, SHUFFLER, b"dummies"))]
    in_pieces = seal_dummies(TASK, chance_of(IDENTITY, TASK, SHUFFLER, b"dummies"), 7)
    assert [row for column in one for row in column] == [row for _, rows in in_pieces for row in rows]
    others = [(new_private(), TASK, SHUFFLER, b"dummies"), (IDENTITY, TASK, new_private(), b"dummies")]
    others += [(IDENTITY, task_of(title={"en": "Another"}), SHUFFLER, b"dummies"), (IDENTITY, TASK, SHUFFLER, b"order")]
    for other in others:
        assert not {row for column in one for row in column} & {
            row for _, column in seal_dummies(TASK, chance_of(*other)) for row in column
        }
    for question, column in enumerate(one):
        assert len({row[:32] for row in column}) == len(column), "an ephemeral key each"
        assert all(Opener(ANALYZER).open(row, TASK.inner_info(question)) is not None for row in column)


def test_the_dummies_of_given_keys_are_frozen():
    """A machine that was rolled back may close the task with a newer version: it must draw and seal the same."""
    frozen = Path(__file__).with_name("vectors.json").read_text(encoding="utf-8")
    task = PostedTask.parse(bytes.fromhex(json.loads(frozen)["task"]["posted"]))
    dummies = [rows for _, rows in seal_dummies(task, chance_of(IDENTITY, task, SHUFFLER, b"dummies"))]
    assert [len(column) for column in dummies] == [question.dummies.count for question in task.draft.questions]
    data = b"".join(row for column in dummies for row in column)
    assert hashlib.sha256(data).hexdigest() == "fc2cc252667aba1d3b65e9508eee57688d43ad164c30fb47b57df95260eefe19"
    order = chance_of(IDENTITY, task, SHUFFLER, b"order", bytes(2), bytes(32)).permutation(8)
    assert order.tolist() == [6, 3, 4, 2, 5, 0, 1, 7]


@pytest.mark.parametrize("state", ["open", "closing"])
def test_a_batch_that_holds_other_people_than_the_store_is_refused(copied, state):
    """The batch of 30 lay in outbox/; 25 more were told "held"; closing exited 0 and deleted the 25."""
    folder, copy = copied
    path = closed(folder)
    shutil.copy(copy / "store.db", folder / "store.db")
    for mark in marks_of(folder / "store.db", TASK.id):
        mark.unlink()
    aside = path.rename(folder / "aside")  # else the store itself would take no reports
    store = Store(folder / "store.db")
    assert answers(store, MORE) == bytes(MORE)
    aside.rename(path)
    with store.writing() as db:
        db.execute("UPDATE task SET state = ?", (state,))
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match=r"the batch holds 30 people, the store 55.*nothing deleted"):
        close_task(store, TASK.digest, clock=Time())
    assert store.held(TASK.digest) == len(list(store.reports(TASK.digest))) == N + MORE
    assert path.read_bytes() == before
    store.close()


def test_a_copy_of_a_half_closed_store_is_finished_and_not_after_it_was_destroyed(copied, monkeypatch):
    """Until it is handed over, closing goes on from the copy with the same bytes; what was destroyed stays so."""
    folder, copy = copied
    store = Store(folder / "store.db")
    monkeypatch.setattr(closing, "_delete", lambda *_: None)  # the process dies before the last step
    first = close_task(store, TASK.digest, clock=Time()).read_bytes()
    monkeypatch.undo()
    assert store.checkpoint()
    shutil.copy(folder / "store.db", copy / "half.db")
    path = close_task(store, TASK.digest, clock=Time())
    store.close()
    path.unlink()
    shutil.copy(copy / "half.db", folder / "store.db")
    assert closed(folder).read_bytes() == first
    store = Store(folder / "store.db")
    destroy_task(store, TASK.digest, clock=Time())
    store.close()
    shutil.copy(copy / "half.db", folder / "store.db")
    with pytest.raises(InvalidInput, match="has ended before"):
        closed(folder)
    assert not path.exists()


def test_a_running_service_sees_the_marks_at_its_next_look(copied):
    folder, _ = copied
    store, keeper = Store(folder / "store.db"), Keeper(folder / "store.db", Time(), ended=lambda _: None)
    keeper.look()
    assert store.state(TASK.digest)[0] == "open"
    set_marks(store.path, TASK.id, "closed", "2030-03-17")
    keeper.look()
    assert store.state(TASK.digest)[0] == "restored"
    assert answers(store, 1) is Refused.CLOSED
    store.close()
    keeper._store.close()


def test_a_batch_of_as_many_other_people_is_refused(copied):
    """Equal numbers are not the same people: those whom the batch lacks would be deleted."""
    folder, copy = copied
    path = closed(folder)
    others = copy.parent / "others"
    others.mkdir()
    store = store_at(others, TASK)
    assert answers(store, N) == bytes(N)
    with store.writing() as db:
        db.execute("UPDATE task SET state = 'closing'")
    shutil.copytree(path.parent, others / "outbox")
    with pytest.raises(InvalidInput, match="the batch holds 30 people, the store 30, of whom it lacks 30"):
        close_task(store, TASK.digest, clock=Time())
    assert store.held(TASK.digest) == len(list(store.reports(TASK.digest))) == N
    store.close()


@pytest.mark.parametrize("end", [destroy_task, expire_task])
def test_what_was_destroyed_is_not_opened_again_from_a_copy(copied, end):
    folder, copy = copied
    store = Store(folder / "store.db")
    end(store, TASK.digest, clock=Time())
    store.close()
    shutil.copy(copy / "store.db", folder / "store.db")
    with pytest.raises(InvalidInput, match="has ended before"):
        closed(folder)
    store = Store(folder / "store.db")
    destroy_task(store, TASK.digest, clock=Time())
    assert store.state(TASK.digest)[0] == "destroyed"
    assert all(mark.read_text() == "destroyed 2030-03-17\n" for mark in marks_of(store.path, TASK.id))
    assert list(store.reports(TASK.digest)) == []
    store.close()


def test_the_service_marks_what_an_older_version_has_ended(copied):
    folder, copy = copied
    closed(folder)
    for mark in marks_of(folder / "store.db", TASK.id):
        mark.unlink()
    store = Store(folder / "store.db")
    finish_removals(store, clock=Time())
    store.close()
    assert all(mark.exists() for mark in marks_of(folder / "store.db", TASK.id))
    shutil.copy(copy / "store.db", folder / "store.db")
    with pytest.raises(InvalidInput, match="has ended before"):
        closed(folder)


def test_the_timers_leave_a_restored_task_alone_and_say_so_once(copied, caplog):
    folder, copy = copied
    closed(folder)
    shutil.copy(copy / "store.db", folder / "store.db")
    keeper = Keeper(folder / "store.db", Time(2_000_000_000), ended=lambda _: None)
    keeper.look()
    keeper.look()
    assert caplog.text.count("was put back from a copy") == 1
    store = Store(folder / "store.db")
    assert store.held(TASK.digest) == N
    store.close()
    keeper._store.close()


def test_marks_are_for_their_owner_alone(copied):
    folder, _ = copied
    old = os.umask(0)
    try:
        closed(folder)
    finally:
        os.umask(old)
    for mark in marks_of(folder / "store.db", TASK.id):
        assert mark.stat().st_mode & 0o777 == 0o600
        assert mark.parent.stat().st_mode & 0o777 == 0o700
