"""Closing: one set of dummies and one batch, wherever the process dies; and what destroys or deletes a collection."""

from __future__ import annotations

import os
import signal
import sys
import threading

import pytest
from scipy.stats import chi2

from shuffledp.collection import closing
from shuffledp.collection.batch import Batch
from shuffledp.collection.closing import TOO_FEW, batch_path, close_task, delete_task, destroy_task, expire_task
from shuffledp.collection.ingest import hold, open_reports
from shuffledp.collection.sealing import Opener, new_private
from shuffledp.collection.store import Store
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import secure_random
from tests.collection.service import FLOOR, NOON, Reports, Time, codes_of, digest_of, hash_of, store_at, task_of
from tests.collection.tasks import ANALYZER, SHUFFLER, choice, number

TASK = task_of(choice(5, 20), number(dummies=11), admission="codes")
N = 7
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def filled(folder, task=TASK, n: int = N) -> tuple[Store, list[bytes]]:
    """A store that holds n reports, one of them unreadable, and one with an unknown code."""
    store, codes, reports = store_at(folder, task), codes_of(n + 1), Reports(task)
    store.add_codes(task.digest, [hash_of(code) for code in codes[:n]])
    sent = [reports.one(place % 3, place % 2, codes[place] if task.has_codes else None) for place in range(n)]
    junk = [bytes(task.size), reports.one(code=codes[n])] if task.has_codes else []
    hold(store, [open_reports(b"".join(sent + junk), task, Opener(SHUFFLER))])
    return store, sent


def rows_of(path) -> list[list[bytes]]:
    """The rows of every column of a batch, in their order."""
    batch = Batch.parse(path.read_bytes())
    return [
        [bytes(column[at : at + size]) for at in range(0, len(column), size)]
        for column, size in zip(batch.columns, batch.task.inner_sizes, strict=True)
    ]


def inners_of(sent: list[bytes]) -> list[set[bytes]]:
    """The inner messages of sent reports, by question."""
    opened = [Opener(SHUFFLER).open(report, TASK.outer_info) for report in sent]
    first, second = TASK.inner_sizes
    found = [content[17:] for content in opened if content is not None]
    return [{inner[:first] for inner in found}, {inner[first : first + second] for inner in found}]


def counts_in(store: Store) -> tuple[int, ...]:
    """Rows of reports, dummies and codes."""
    with store.writing() as db:
        return tuple(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("report", "dummy", "code"))


def test_a_title_without_plain_letters_leaves_the_id():
    for title, name in (("昼食", ""), ("../../Käse & Brot", "kase-brot-"), ("-" * 50, ""), ("x" * 50, "x" * 40 + "-")):
        task = task_of(title={"en": title})
        assert task.file_name == f"{name}{task.id}"


def test_a_batch_that_0_2_0_has_written_is_the_batch(tmp_path, monkeypatch):
    """It was named by the id alone; the process died before the reports were deleted, and was then updated."""
    store, _ = filled(tmp_path)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("shuffledp.collection.closing._delete", killed)
        with pytest.raises(KeyboardInterrupt):
            close_task(store, TASK.digest, clock=Time())
    old = batch_path(store, TASK).rename(store.outbox / f"{TASK.id}.batch")
    before = old.read_bytes()
    assert close_task(store, TASK.digest, clock=Time()) == batch_path(store, TASK) == old
    assert old.read_bytes() == before
    assert [path.name for path in store.outbox.glob("*.batch")] == [old.name]
    destroy_task(store, TASK.digest, clock=Time())
    assert not list(store.outbox.glob("*.batch"))
    store.close()


def test_the_batch_holds_all_reports_and_all_dummies_and_the_store_nothing(tmp_path):
    store, sent = filled(tmp_path)
    path = close_task(store, TASK.digest, clock=Time())
    assert path == tmp_path / "outbox" / f"lunch-{TASK.id}.batch"
    manifest, columns, people = Batch.parse(path.read_bytes()).manifest, rows_of(path), inners_of(sent)
    assert manifest.counts == (3, 2, 2)
    assert manifest.refusals == {"unreadable": 1, "unfit": 0, "code": 1}
    assert (manifest.dummies, manifest.rows) == ((20, 11), (27, 18))
    assert (manifest.day, manifest.floor) == ("2030-03-17", FLOOR)
    for question, (column, of_people) in enumerate(zip(columns, people, strict=True)):
        assert of_people < set(column)
        opener = Opener(ANALYZER)
        assert all(opener.open(row, TASK.inner_info(question)) is not None for row in column)
        assert len(set(column)) == len(column), "no two rows are alike"
    row = store.task(TASK.digest)
    assert row is not None
    assert (row.state, store.key(TASK.digest), counts_in(store)) == (
        "released",
        None,
        (0, 0, 0),
    )
    assert close_task(store, TASK.digest, clock=Time()) == path, "closing again only says where it is"
    store.close()


def test_nothing_of_an_outer_message_stands_in_the_batch(tmp_path):
    store, sent = filled(tmp_path)
    data = close_task(store, TASK.digest, clock=Time()).read_bytes()
    codes = codes_of(N)
    for report, code in zip(sent, codes, strict=True):
        for secret in (report[:32], report[32:60], report[-16:], digest_of(TASK, report)[:8], code, hash_of(code)[:8]):
            assert secret not in data
    store.close()


@pytest.mark.costly
def test_columns_are_permuted_uniformly_and_each_by_itself(tmp_path, monkeypatch):
    """Three people and one dummy: 24 orders of four rows, 240 batches. Chi-square; alarm by chance 1 in 1e6."""
    monkeypatch.setattr("os.fsync", lambda _: None)
    orders: list[tuple[int, ...]] = []
    joint: list[bool] = []
    task = task_of(choice(5, 1), number(dummies=1))
    store, _ = filled(tmp_path, task, 3)
    with store.writing() as db:  # step 1 once; step 2 is what is repeated here
        db.execute("UPDATE task SET state = 'closing'")
        for question, sealed in closing.seal_dummies(task, secure_random()):
            db.executemany("INSERT INTO dummy VALUES (?, ?, ?)", [(task.digest, question, s) for s in sealed])
    row = store.task(task.digest)
    assert row is not None
    path = batch_path(store, task)
    reference: list[list[bytes]] = []
    for _ in range(240):  # the order follows from the keys and the rows: with the same, the same bytes
        with store.writing() as db:
            db.execute("UPDATE task SET key = ?", (new_private(),))
        closing._write(store, task, row, path, Time())
        columns = rows_of(path)
        reference = reference or [sorted(column) for column in columns]
        places = [
            tuple(known.index(entry) for entry in column) for column, known in zip(columns, reference, strict=True)
        ]
        orders += places
        joint.append(places[0] == places[1])
    seen = [orders.count(order) for order in set(orders)]
    assert len(seen) == 24
    assert sum((count - 20) ** 2 / 20 for count in seen) < chi2.isf(1e-6, 23)
    assert sum(joint) < 40, "equal orders of both columns: 10 expected, 40 by chance less than 1 in 1e9"
    store.close()


def test_with_fewer_than_at_least_the_batch_is_not_handed_over(tmp_path):
    task = task_of(at_least=8)
    store, _ = filled(tmp_path, task, 7)
    with pytest.raises(InvalidInput, match=r"7 people have answered.*fewer than 8"):
        close_task(store, task.digest, clock=Time())
    row = store.task(task.digest)
    assert row is not None
    assert row.state == "open"
    assert store.dummies(task.digest, 0) == []
    store.close()


def test_a_finished_file_is_used_and_a_broken_one_is_not(tmp_path, monkeypatch):
    store, _ = filled(tmp_path)
    monkeypatch.setattr(closing, "_delete", lambda *_: None)  # the process dies before step 3
    path = close_task(store, TASK.digest, clock=Time())
    first, rows = path.read_bytes(), [sorted(column) for column in rows_of(path)]
    assert close_task(store, TASK.digest, clock=Time()).read_bytes() == first
    for broken in (first[:-1], first[:-70] + bytes([first[-70] ^ 1]) + first[-69:], b"", b"SHFB"):
        path.write_bytes(broken)
        again = close_task(store, TASK.digest, clock=Time())
        assert [sorted(column) for column in rows_of(again)] == rows
        assert again.read_bytes() == first, "the same input, the same bytes"
    store.close()


def test_a_disk_that_lies_is_noticed(tmp_path, monkeypatch):
    store, _ = filled(tmp_path)
    read = type(tmp_path).read_bytes
    monkeypatch.setattr(
        type(tmp_path), "read_bytes", lambda path: read(path)[:-1] if path.suffix == ".tmp" else read(path)
    )
    with pytest.raises(OSError, match="check the disk"):
        close_task(store, TASK.digest, clock=Time())
    monkeypatch.undo()
    assert counts_in(store)[0] == N
    assert not batch_path(store, TASK).exists()
    close_task(store, TASK.digest, clock=Time())
    store.close()


def test_a_full_disk_makes_closing_wait(tmp_path):
    store, _ = filled(tmp_path)
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count={pages}").fetchone()
    with pytest.raises(Exception, match="full"):
        close_task(store, TASK.digest, clock=Time())
    row = store.task(TASK.digest)
    assert row is not None
    assert (row.state, counts_in(store)[0], counts_in(store)[2]) == ("open", N, N)
    store._db.execute("PRAGMA max_page_count=100000").fetchone()
    assert [len(column) for column in rows_of(close_task(store, TASK.digest, clock=Time()))] == [N + 20, N + 11]
    store.close()


def test_several_processes_close_at_once_and_there_is_one_batch(tmp_path):
    filled(tmp_path)[0].close()
    paths: list[bytes] = []

    def work() -> None:
        store = Store(tmp_path / "store.db")
        paths.append(close_task(store, TASK.digest, clock=Time()).read_bytes())
        store.close()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(paths) == 6
    assert len(set(paths)) == 1


def die_at(folder, line: int) -> bool:
    """Close the task in a process of its own that is killed at the n-th line it runs of the closing code.

    Returns False if it came to its end before.
    """
    child = os.fork()
    if child == 0:
        try:
            ran = 0

            def trace(frame, event, _argument):
                nonlocal ran
                if not frame.f_code.co_filename.endswith(("closing.py", "marks.py", "store.py", "schema.py")):
                    return None
                if event == "line":
                    ran += 1
                    if ran == line:
                        os.kill(os.getpid(), signal.SIGKILL)
                return trace

            store = Store(folder / "store.db")
            sys.settrace(trace)
            close_task(store, TASK.digest, clock=Time())
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def dummies_seen(folder, people: list[set[bytes]]) -> tuple[frozenset[bytes], ...] | None:
    """The dummies that anybody could see now: rows of a readable batch that no person sent."""
    path = folder / "outbox" / f"{TASK.file_name}.batch"
    if not path.exists():
        return None
    return tuple(frozenset(set(column) - sent) for column, sent in zip(rows_of(path), people, strict=True))


def run_deaths(folder, lines: list[int]) -> int:
    deaths = 0
    for line in lines:
        place = folder / str(line)
        place.mkdir()
        store, sent = filled(place)
        people = inners_of(sent)
        store.close()
        if not die_at(place, line):
            break
        deaths += 1
        before = dummies_seen(place, people)
        store = Store(place / "store.db")
        row = store.task(TASK.digest)
        assert row is not None
        stored = [set(store.dummies(TASK.digest, question)) for question in range(2)] if row.state != "open" else []
        path = close_task(store, TASK.digest, clock=Time())
        after = dummies_seen(place, people)
        assert after is not None
        assert [len(found) for found in after] == [20, 11], "one set of dummies"
        assert before in (None, after), "the same set in every batch that could be read"
        assert all(not kept or kept == found for kept, found in zip(stored, after, strict=False))
        for column, of_people in zip(rows_of(path), people, strict=True):
            assert of_people < set(column), "nothing acknowledged is lost"
            assert len(column) == len(set(column)), "nothing is counted twice"
        assert counts_in(store) == (0, 0, 0)
        assert store.key(TASK.digest) is None
        assert {file.name for file in path.parent.iterdir()} == {".lock", path.name, f"{TASK.id}.ended"}
        store.close()
    return deaths


@pytest.mark.costly
def test_death_at_some_lines_of_closing(tmp_path):
    assert run_deaths(tmp_path, list(range(3, 240, 29))) >= 5


@pytest.mark.slow
def test_death_at_every_line_of_closing(tmp_path):
    deaths = run_deaths(tmp_path, list(range(1, 2000)))
    assert 60 < deaths < 1999, "the last run came to its end"


def test_destroying_leaves_nothing_but_the_task(tmp_path):
    store, _ = filled(tmp_path)
    path = close_task(store, TASK.digest, clock=Time())
    store.publish(TASK.digest, b"a release")
    names = (f".{TASK.id}.release.x.part", f".{TASK.file_name}.release.x.part", f"{TASK.id}.release")
    opened_there = [path.with_suffix(".release"), *map(path.with_name, names)]
    other = path.with_name("another.release")
    for file in (*opened_there, other):
        file.write_bytes(b"a release")
    destroy_task(store, TASK.digest, clock=Time())
    assert [file.name for file in (*opened_there, other) if file.exists()] == [other.name]
    row = store.task(TASK.digest)
    assert row is not None
    assert (row.state, row.reason, store.release(TASK.digest)) == ("destroyed", "destroyed by the operator", None)
    assert not path.exists()
    for action in (close_task, destroy_task, delete_task, expire_task):
        with pytest.raises(InvalidInput, match="destroyed"):
            action(store, TASK.digest, clock=Time())
    with pytest.raises(InvalidInput, match="has no task"):
        close_task(store, b"\0" * 32, clock=Time())
    store.close()


def test_a_collection_that_was_handed_over_does_not_expire(tmp_path):
    store, _ = filled(tmp_path)
    path = close_task(store, TASK.digest, clock=Time())
    with pytest.raises(InvalidInput, match="is released"):
        expire_task(store, TASK.digest, clock=Time())
    assert path.exists()
    delete_task(store, TASK.digest, clock=Time(NOON + 1))
    row = store.task(TASK.digest)
    assert row is not None
    assert (row.state, path.exists()) == ("deleted", False)
    store.close()


def test_files_of_a_destroyed_task_go_also_if_the_process_died_before(tmp_path, monkeypatch):
    store, _ = filled(tmp_path)
    path = close_task(store, TASK.digest, clock=Time())
    monkeypatch.setattr(closing, "_remove_files", lambda *_: None)
    destroy_task(store, TASK.digest, clock=Time())
    assert path.exists()
    monkeypatch.undo()
    closing.finish_removals(store)
    assert not path.exists()
    assert TOO_FEW
    store.close()
