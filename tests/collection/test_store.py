"""The store's file: durable, private, ours, and of a version we know."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading

import pytest

from shuffledp.collection import store as schema
from shuffledp.collection.fields import from_base64
from shuffledp.collection.sealing import new_private
from shuffledp.collection.store import Store
from shuffledp.errors import InvalidInput
from tests.collection.service import FLOOR, NOON, codes_of, hash_of, store_at, task_of


def test_what_is_committed_is_on_disk_and_what_is_deleted_is_overwritten(tmp_path):
    store = store_at(tmp_path)
    with store.writing() as db:
        assert db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert db.execute("PRAGMA synchronous").fetchone()[0] == 2  # FULL
        assert db.execute("PRAGMA secure_delete").fetchone()[0] == 1
    store.close()


def test_only_the_owner_can_read_store_identity_and_outbox(tmp_path):
    before = os.umask(0)
    try:
        store = Store(tmp_path / "store.db")
        store.identity()
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (*tmp_path.iterdir(), store.outbox)}
        store.close()
    finally:
        os.umask(before)
    assert modes.pop("outbox") == 0o700
    assert {"store.db", "shuffler.key"} <= set(modes)
    assert set(modes.values()) == {0o600}


def test_the_identity_is_made_once_and_kept(tmp_path):
    one, two = Store(tmp_path / "store.db"), Store(tmp_path / "store.db")
    assert one.identity() == two.identity() == from_base64((tmp_path / "shuffler.key").read_text().strip())
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".shuffler")) == []
    (tmp_path / "shuffler.key").write_text("lost")
    with pytest.raises(InvalidInput, match="holds no key"):
        one.identity()
    one.close()
    two.close()


def test_two_threads_make_one_identity(tmp_path):
    store, found = Store(tmp_path / "store.db"), set()
    threads = [threading.Thread(target=lambda: found.add(store.identity())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 1
    store.close()


def test_a_newer_store_is_refused(tmp_path):
    store_at(tmp_path).close()
    with sqlite3.connect(tmp_path / "store.db") as db:
        db.execute(f"PRAGMA user_version={len(schema.MIGRATIONS) + 1}")
    db.close()
    with pytest.raises(InvalidInput, match="install the newer shuffledp"):
        Store(tmp_path / "store.db")


def test_an_older_store_with_an_open_task_is_led_on(tmp_path, monkeypatch):
    task = task_of()
    store_at(tmp_path, task).close()
    added = (*schema.MIGRATIONS, ("CREATE TABLE later (a INTEGER)", "INSERT INTO later VALUES (7)"))
    monkeypatch.setattr(schema, "MIGRATIONS", added)
    for _ in range(2):
        store = Store(tmp_path / "store.db")
        with store.writing() as db:
            assert db.execute("PRAGMA user_version").fetchone()[0] == len(added)
            assert db.execute("SELECT a FROM later").fetchall() == [(7,)]
        row = store.task(task.digest)
        assert row is not None
        assert (row.posted, row.state, row.floor) == (task.data, "open", FLOOR)
        store.close()


def test_a_migration_that_fails_changes_nothing(tmp_path, monkeypatch):
    store_at(tmp_path).close()
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, ("CREATE TABLE later (a INTEGER)", "NONSENSE")))
    with pytest.raises(InvalidInput, match="cannot be used"):
        Store(tmp_path / "store.db")
    monkeypatch.undo()
    Store(tmp_path / "store.db").close()


def test_other_files_are_refused(tmp_path):
    (tmp_path / "text.db").write_text("no database at all, but long enough to be read as one" * 20)
    with pytest.raises(InvalidInput, match="cannot be used"):
        Store(tmp_path / "text.db")
    with sqlite3.connect(tmp_path / "other.db") as db:
        db.execute("CREATE TABLE task (id INTEGER)")
    db.close()
    with pytest.raises(InvalidInput, match="database of something else"):
        Store(tmp_path / "other.db")
    with pytest.raises(InvalidInput, match=r"cannot be (opened|used)"):
        Store(tmp_path / "no such folder" / "store.db")
    with pytest.raises(InvalidInput, match=r"cannot be (opened|used)"):
        Store(tmp_path)


def test_many_may_make_the_store_at_once(tmp_path):
    failures: list[Exception] = []

    def make() -> None:
        try:
            Store(tmp_path / "store.db").close()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=make) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_posting_needs_the_task_s_own_key_and_happens_once(tmp_path):
    task = task_of()
    store = store_at(tmp_path, task)
    with pytest.raises(InvalidInput, match="does not belong"):
        store.post(task, new_private(), FLOOR, NOON)
    key = store.key(task.digest)
    with store.writing() as db:
        db.execute("UPDATE task SET state = 'destroyed', key = NULL")
    assert key is not None
    store.post(task, key, FLOOR, NOON + 1)  # posted again, a task that has ended stays as it is
    assert store.key(task.digest) is None
    assert [row.state for row in store.tasks()] == ["destroyed"]
    store.close()


def test_codes_are_for_open_tasks(tmp_path):
    task = task_of(admission="codes")
    store = store_at(tmp_path, task)
    hashes = [hash_of(code) for code in codes_of(5)]
    store.add_codes(task.digest, hashes)
    store.add_codes(task.digest, hashes[:2])
    with store.writing() as db:
        assert db.execute("SELECT count(*), sum(spent) FROM code").fetchall() == [(5, 0)]
        db.execute("UPDATE code SET spent = 1")
    store.add_codes(task.digest, hashes)
    with store.writing() as db:
        assert db.execute("SELECT sum(spent) FROM code").fetchall() == [(5,)], "adding codes again revives none"
        db.execute("UPDATE task SET state = 'closing'")
    with pytest.raises(InvalidInput, match="closing"):
        store.add_codes(task.digest, hashes)
    with pytest.raises(InvalidInput, match="unknown"):
        store.add_codes(b"\0" * 32, hashes)
    store.close()


def test_reports_are_read_in_pieces_and_no_statement_stays_open(tmp_path, monkeypatch):
    monkeypatch.setattr("shuffledp.collection.store.CHUNK", 7)
    task = task_of()
    store, other = store_at(tmp_path, task), Store(tmp_path / "store.db")
    rows = [(task.digest, bytes([place]) * 16, place % 3, b"inner %d" % place) for place in range(40)]
    with store.writing() as db:
        db.executemany("INSERT INTO report VALUES (?, ?, ?, ?)", rows)
    read = []
    for row in store.reports(task.digest):
        read.append(row)
        assert other.checkpoint(), "a reader between two pieces would hold up the deletion"
    assert read == [(digest, level, inners) for _, digest, level, inners in rows]
    store.close()
    other.close()


def test_a_store_behind_a_link_has_one_identity_and_one_outbox(tmp_path):
    """Else two commands could close one task under two locks and sign with two keys."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link.db").symlink_to("real/store.db")
    behind, itself = Store(tmp_path / "link.db"), Store(tmp_path / "real" / "store.db")
    assert behind.identity() == itself.identity()
    assert behind.outbox == itself.outbox == tmp_path / "real" / "outbox"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.db", "real"]
    behind.close()
    itself.close()


def test_a_link_to_itself_is_no_store(tmp_path):
    (tmp_path / "loop.db").symlink_to("loop.db")
    with pytest.raises(InvalidInput, match="cannot be"):
        Store(tmp_path / "loop.db")
    assert [path.name for path in tmp_path.iterdir()] == ["loop.db"]
