"""The ledger's file: made by one command, guarded by a chain of hashes, and never read where it is damaged."""

from __future__ import annotations

import os
import random
import sqlite3
import threading
from pathlib import Path

import pytest

import shuffledp as sdp
from shuffledp.errors import InvalidInput
from shuffledp.ledger import Ledger, NewEntry, Spending, Turn, Use, store

VOTES = {"vote": ["yes", "no"] * 500}


def stated(epsilon: float, **more: str) -> NewEntry:
    return NewEntry("mean of x", "00", "rr", Spending.stated([(1.0, epsilon)], 0.0, 100), **more)


def release(ledger) -> None:
    ask = {"value": "vote", "budgets": 1.0, "seen": "reports", "delta": 1e-4}
    sdp.release(sdp.Frequency(["yes", "no"]), VOTES, **ask, ledger=ledger)


@pytest.fixture
def path(tmp_path) -> Path:
    """A ledger with a limit, two entries, disjoint populations, and a training run."""
    with Ledger(tmp_path / "p.ledger", make=True) as book:
        book.set_limit(1.0, 1e-5)
        book.enter([stated(0.1), stated(0.05)], Use())
        turn = Turn.first()
        book.enter([stated(0.01, training=turn.run, rounds="[[[8], 3]]")], Use("north"), turn)
        book.state_disjoint(["north", "south"])
    return tmp_path / "p.ledger"


def of_version_1(path: Path) -> None:
    """Make a ledger as 0.2.0 wrote it, with a limit and one entry."""
    with Ledger(path.with_name("new"), make=True) as new:
        new.set_limit(1.0, 1e-5)
        new.enter([stated(0.1)], Use())
    db = sqlite3.connect(path, isolation_level=None)
    for statement in store._SCHEMA:
        db.execute(statement)
    db.execute("ATTACH ? AS new", (str(path.with_name("new")),))
    for table in ("entry", "allowance"):
        db.execute(f"INSERT INTO {table} SELECT * FROM new.{table}")
    db.execute(f"PRAGMA application_id={store.APPLICATION}")
    db.execute("PRAGMA user_version=1")
    db.close()


# ------------------------------------------------------------------ what is no ledger


@pytest.mark.parametrize("content", [b"", b"x", b"SQLite format 3\0", b"SQLite format 3\0" + bytes(4080), None])
def test_a_file_that_is_none_is_refused_and_stays(tmp_path, content):
    """A file of 0 bytes, of 1 byte, or a mistyped name became a new ledger without a limit."""
    path = tmp_path / "p.ledger"
    if content is not None:
        path.write_bytes(content)
    for ask in (lambda: Ledger(path), lambda: release(path), lambda: release(str(path))):
        with pytest.raises(InvalidInput, match=r"name another file|there is no ledger .*--new"):
            ask()
    assert (path.read_bytes() if path.exists() else None) == content
    if content is not None:
        with pytest.raises(InvalidInput, match="name another file"):
            Ledger(path, make=True)


@pytest.mark.parametrize("name", [":memory:", "file:x?mode=memory", "file:x", "FILE:x", Path("file:x")])
def test_a_name_that_keeps_nothing_is_refused(tmp_path, monkeypatch, name):
    """These released, and kept nothing."""
    monkeypatch.chdir(tmp_path)
    for make in (False, True):
        with pytest.raises(InvalidInput, match="a ledger is a file that stays"):
            Ledger(name, make=make)
    with pytest.raises(InvalidInput, match="a ledger is a file that stays"):
        release(name)
    assert list(tmp_path.iterdir()) == []


def test_other_things_are_no_ledger(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/null")):
        for make in (False, True):
            with pytest.raises(InvalidInput, match="is no file, so no ledger"):
                Ledger(path, make=make)


def test_names_that_sqlite_would_read_otherwise(tmp_path):
    for name in ("a?mode=memory", "b#c", "50%25", "ä b"):
        with Ledger(tmp_path / name, make=True) as book:
            book.enter([stated(0.1)], Use())
        with Ledger(tmp_path / name) as book:
            assert len(book.entries()) == 1
        assert (tmp_path / name).stat().st_size > 4096


def test_a_ledger_is_made_whole_or_not_at_all(tmp_path, monkeypatch):
    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fails)
        with pytest.raises(InvalidInput, match="cannot be written"):
            Ledger(tmp_path / "p.ledger", make=True)
    assert list(tmp_path.iterdir()) == []
    Ledger(tmp_path / "p.ledger", make=True).close()
    with Ledger(tmp_path / "p.ledger", make=True) as book:  # there already: opened
        assert book.entries() == []


# ------------------------------------------------------------------ the chain


def outside(path: Path, *statements: str) -> None:
    """Change the file with SQLite alone."""
    db = sqlite3.connect(path, isolation_level=None)
    try:
        for statement in statements:
            db.execute(statement)
    finally:
        db.close()


REPLACED = {
    "limit": "REPLACE INTO allowance VALUES (1, 9.0, 1e-5)",
    "entry": "REPLACE INTO entry SELECT id, run, date, title, question, population, plan, task, setting, 0.0, delta, "
    "n, levels_total, profile, levels, 0.0, outside FROM entry WHERE id = 2",
    "rounds": "REPLACE INTO rounds SELECT entry, training, '[[[8], 99]]' FROM rounds",
    "link": "REPLACE INTO link SELECT number, kind, row, 'x' FROM link",
}


@pytest.mark.parametrize("what", REPLACED)
def test_replace_is_refused_by_the_file_itself(path, what):
    """REPLACE does not ask the triggers against DELETE: limit and entries could be changed."""
    with pytest.raises(sqlite3.IntegrityError, match="what is in a ledger stays"):
        outside(path, REPLACED[what])
    with Ledger(path) as book:
        assert (book.limit.epsilon, len(book.entries())) == (1.0, 3)


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        (REPLACED["limit"], "its limit is not what was entered"),
        (REPLACED["entry"], "its entry 2 is not what was entered"),
        (REPLACED["rounds"], "its record is not what was entered"),
        (REPLACED["link"], "is not what was entered"),
        ("DELETE FROM entry WHERE id = 2", "its entry 2 is not what was entered"),
        ("DELETE FROM entry WHERE id = 3", "its entry 3 is not what was entered"),
        ("DELETE FROM allowance", "its limit is not what was entered"),
        ("DELETE FROM apart", "its record is not what was entered"),
        ("INSERT INTO apart VALUES ('everybody', 'north')", "its record was not entered by shuffledp"),
        ("DELETE FROM link", "its chain of hashes is gone"),
        ("UPDATE entry SET epsilon = 'x' WHERE id = 1", "the epsilon of its entry 1 is damaged"),
    ],
)
def test_what_was_changed_without_the_triggers_is_noticed(path, statement, told):
    """By `ledger`, by every release, and by a ledger that is open."""
    with sqlite3.connect(path) as db:
        triggers = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    db.close()
    with Ledger(path) as before:
        outside(path, *(f"DROP TRIGGER {name}" for name, _ in triggers), statement, *(sql for _, sql in triggers))
        with pytest.raises(InvalidInput, match=f"was changed from outside: .*{told}"):
            before.enter([stated(0.1)], Use())
    for ask in (lambda: Ledger(path), lambda: release(path)):
        with pytest.raises(InvalidInput, match=f"changed from outside: .*{told}.*; nothing may be claimed"):
            ask()


def test_entries_taken_off_the_end_with_their_links_are_noticed(path):
    with sqlite3.connect(path) as db:
        triggers = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    db.close()
    last = "SELECT number FROM link WHERE kind = 'entry' AND row = '[3]'"
    outside(
        path, *(f"DROP TRIGGER {name}" for name, _ in triggers), "DELETE FROM apart", "DELETE FROM rounds",
        f"DELETE FROM link WHERE number >= ({last})", "DELETE FROM entry WHERE id = 3", *(sql for _, sql in triggers),
    )  # fmt: skip
    with pytest.raises(InvalidInput, match="entries at its end are gone"):
        Ledger(path)


def test_dropped_triggers_are_noticed(path):
    outside(path, "DROP TRIGGER entered_for_good")
    with pytest.raises(InvalidInput, match="its tables, or what protects them, were changed"):
        Ledger(path)


def test_one_that_reads_while_another_enters_sees_no_change(path):
    """Rows and links are read as of one moment."""
    told: list[str] = []

    def opens() -> None:
        for _ in range(20):
            try:
                Ledger(path).close()
            except InvalidInput as error:
                told.append(str(error))

    reader = threading.Thread(target=opens)
    reader.start()
    with Ledger(path) as book:
        for _ in range(10):
            book.enter([stated(0.001)], Use())
    reader.join()
    assert told == []


# ------------------------------------------------------------------ version 1


def test_a_ledger_of_version_1_is_read_and_migrates_when_something_is_entered(tmp_path):
    path = tmp_path / "old.ledger"
    of_version_1(path)
    before = path.read_bytes()
    with Ledger(path) as book:
        assert (book.limit.epsilon, len(book.entries()), book.unchained) == (1.0, 1, 1)
        assert (book.kept("x"), book.rounds_of("x")) == (None, [])
    assert path.read_bytes() == before
    with Ledger(path) as book:
        book.enter([stated(0.1)], Use())
        assert (store.version(book._db), book.unchained, len(book.entries())) == (2, 1, 2)
    with Ledger(path) as book:
        assert [entry.number for entry in book.entries()] == [1, 2]
    with pytest.raises(sqlite3.IntegrityError, match="stays"):
        outside(path, REPLACED["limit"])


def test_two_that_migrate_at_once(tmp_path):
    of_version_1(tmp_path / "old.ledger")
    with Ledger(tmp_path / "old.ledger") as one, Ledger(tmp_path / "old.ledger") as other:
        one.enter([stated(0.1)], Use())
        other.enter([stated(0.1)], Use())
        assert len(one.entries()) == len(other.entries()) == 3


def test_a_newer_version_is_named(path):
    outside(path, "PRAGMA user_version=3")
    with pytest.raises(InvalidInput, match="is of version 3; this shuffledp reads up to 2: install the newer one"):
        Ledger(path)


# ------------------------------------------------------------------ damage


def used(path: Path) -> tuple[object, ...]:
    """All that a ledger says, and whether it enters."""
    with Ledger(path) as book:
        entries = [(e.number, e.date, e.population, e.mu, e.spending.epsilon) for e in book.entries()]
        said = (book.limit, entries, book.disjoint, book.total().epsilon)
        book.enter([stated(0.01)], Use())
        assert len(book.entries()) == len(entries) + 1
    return said


@pytest.mark.costly
@pytest.mark.parametrize("version", [1, 2])
def test_a_flipped_bit_gives_the_same_ledger_or_one_clear_error(tmp_path, path, version):
    """JSONDecodeError and UnicodeDecodeError came out bare, 13 of 300 times."""
    if version == 1:
        path = tmp_path / "old.ledger"
        of_version_1(path)
    whole, found = path.read_bytes(), tmp_path / "flipped.ledger"
    found.write_bytes(whole)
    true, chance = used(found), random.Random(version)
    used_pages = [at for at in range(len(whole)) if whole[at]]  # most of the rest is no page's content
    refused: list[str] = []
    for at in [*chance.sample(used_pages, 250), *chance.sample(range(len(whole)), 50)]:
        flipped = bytearray(whole)
        flipped[at] ^= 1 << chance.randrange(8)
        found.write_bytes(flipped)
        try:
            said = used(found)
        except InvalidInput as error:
            refused.append(str(error))
        else:
            assert version == 1 or said == true, at
    assert len(refused) > 100
    assert all(error.isprintable() and len(error) < 600 for error in refused)


def test_what_the_chain_covers_is_every_column():
    """A column that is added to the file must be added to the chain."""
    empty = sqlite3.connect(":memory:")
    for statement in (*store._SCHEMA, *store.TABLES):
        empty.execute(statement)
    for kind in store._KINDS.values():
        columns = {row[1] for row in empty.execute(f"PRAGMA table_info({kind.table})")}
        assert columns == {*kind.key, *(name for name, _ in kind.columns)}
    empty.close()
