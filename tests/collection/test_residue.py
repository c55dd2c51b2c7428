"""What a thief of the files finds: no deleted byte, and no order of arrival, in store, log and outbox."""

from __future__ import annotations

import asyncio
import sqlite3
from itertools import pairwise
from pathlib import Path

import pytest

from shuffledp.collection.closing import close_task, destroy_task
from shuffledp.collection.ingest import Ingest, hold, open_reports
from shuffledp.collection.sealing import Opener
from shuffledp.collection.store import Store, Tidying
from tests.collection.service import Reports, Time, codes_of, digest_of, hash_of, store_at, task_of
from tests.collection.tasks import SHUFFLER

OPENER = Opener(SHUFFLER)
N = 100


def bytes_of(folder: Path) -> bytes:
    """Everything on disk of store, write-ahead log, shared memory and outbox."""
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def one_by_one(store: Store, task, reports: list[bytes]) -> None:
    for report in reports:
        assert hold(store, [open_reports(report, task, OPENER)]) == [b"\0"]


def inverted(names: list[bytes], data: bytes) -> float:
    """The share of neighbours in arrival that stand the other way round in the file: 0 or 1 tells the order."""
    places = [data.rfind(name) for name in names]
    assert min(places) >= 0
    return sum(two < one for one, two in pairwise(places)) / (len(places) - 1)


def traces(task, reports: list[bytes], data: bytes, codes: list[bytes] | None = None) -> int:
    """How many of the reports have left anything of themselves."""
    found = 0
    for place, report in enumerate(reports):
        opened = OPENER.open(report, task.outer_info)
        assert opened is not None
        inner = opened[17:] if task.has_codes else opened[1:]
        pieces = [digest_of(task, report), inner[:24], inner[-24:], inner[30:54]]
        if codes is not None:
            pieces += [codes[place], hash_of(codes[place])[:16]]
        found += any(piece in data for piece in pieces)
    return found


@pytest.fixture
def filled(tmp_path):
    """A store with two tasks, whose reports came in turn."""
    task, other = task_of(admission="codes"), task_of(title={"en": "Another task"})
    store, codes = store_at(tmp_path, task, other), codes_of(N)
    store.add_codes(task.digest, [hash_of(code) for code in codes])
    reports = [Reports(task).one(place % 3, code=code) for place, code in enumerate(codes)]
    others = Reports(other).many(N)
    for one, two in zip(reports, others, strict=True):
        one_by_one(store, task, [one])
        one_by_one(store, other, [two])
    yield store, task, reports, codes, other, others
    store.close()


def test_order_is_told_by_the_log_and_not_after_tidying(tmp_path):
    """The control: before tidying the log tells the order exactly. After it: 99 coins, nearly fair; 1 in 1e9 beyond."""
    task = task_of()
    store, reports = store_at(tmp_path, task), Reports(task).many(N)
    one_by_one(store, task, reports)
    log = (tmp_path / "store.db-wal").read_bytes()
    first = [log.find(digest_of(task, report)) for report in reports]
    assert first == sorted(first), "else this test could not find an order"
    assert Tidying(store).step()
    assert (tmp_path / "store.db-wal").stat().st_size == 0
    assert 0.15 < inverted([digest_of(task, report) for report in reports], bytes_of(tmp_path)) < 0.85
    store.close()


def test_the_writer_tidies_by_itself_when_nobody_writes(tmp_path):
    task = task_of()
    store_at(tmp_path, task).close()
    reports, ingest = Reports(task).many(60), Ingest(tmp_path / "store.db", idle=0.05)

    async def send() -> None:
        ingest.start()
        for report in reports:
            assert await ingest.submit(report, task, OPENER) == b"\0"
        for _ in range(600):
            if (tmp_path / "store.db-wal").stat().st_size == 0:
                return
            await asyncio.sleep(0.05)

    asyncio.run(send())
    assert (tmp_path / "store.db-wal").stat().st_size == 0
    data = bytes_of(tmp_path)
    names = [digest_of(task, report) for report in reports]
    assert [name for name in names if data.count(name) != 1] == []
    assert 0.1 < inverted(names, data) < 0.9
    ingest.stop()


@pytest.mark.costly("destroy_task")
@pytest.mark.parametrize("how", [close_task, destroy_task])
def test_what_is_deleted_is_gone_from_the_files(tmp_path, filled, how):
    store, task, reports, codes, other, others = filled
    key = store.key(task.digest)
    assert key is not None
    assert traces(task, reports, bytes_of(tmp_path), codes) == N, "else this test could not find a trace"
    how(store, task.digest, clock=Time())
    assert Tidying(store).step()
    batch = tmp_path / "outbox" / f"{task.file_name}.batch"
    assert batch.exists() == (how is close_task)
    inside = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert traces(task, reports, inside, codes) == 0
    assert traces(other, others, inside) == N, "the other task's reports stay"
    if how is close_task:  # the batch holds the inner messages, and must; nothing of names, codes and envelopes
        data = batch.read_bytes()
        for report, code in zip(reports, codes, strict=True):
            assert not any(piece in data for piece in (digest_of(task, report), code, hash_of(code)[:16], report[:24]))
    assert store._db.execute("SELECT key FROM task WHERE id = ?", (other.digest,)).fetchone()[0] == key, "of the tests"


def test_the_key_of_a_task_is_gone_with_its_reports(tmp_path):
    task = task_of()
    store = store_at(tmp_path, task)
    one_by_one(store, task, Reports(task).many(3))
    assert SHUFFLER in bytes_of(tmp_path)
    close_task(store, task.digest, clock=Time())
    assert Tidying(store).step()
    assert SHUFFLER not in bytes_of(tmp_path)
    store.close()


def test_a_reader_delays_the_deletion_and_that_is_noticed(tmp_path, filled):
    store, task, reports, codes, _, _ = filled
    reader = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM report").fetchall()
    close_task(store, task.digest, clock=Time())
    tidying = Tidying(store)
    for _ in range(3):
        assert not tidying.step(), "SQLite raises nothing here; only the pragma's first column tells"
    (tmp_path / "outbox" / f"{task.file_name}.batch").unlink()
    assert traces(task, reports, bytes_of(tmp_path), codes) > 0
    reader.execute("COMMIT")
    assert tidying.step()
    assert not tidying.is_due
    reader.close()
    assert traces(task, reports, bytes_of(tmp_path), codes) == 0


def test_a_writer_in_the_way_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setattr("shuffledp.collection.store.PATIENCE", 0.1)
    task = task_of()
    store, other = store_at(tmp_path, task), sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert not Tidying(store).step()
    other.execute("ROLLBACK")
    other.close()
    assert Tidying(store).step()
    store.close()
