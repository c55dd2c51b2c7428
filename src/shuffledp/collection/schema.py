"""The schema of the shuffler's store, its versions, and connections to it."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Generator
from pathlib import Path

from shuffledp.collection.report import name_of
from shuffledp.errors import InvalidInput

APPLICATION = 0x53484654
"""SQLite's application_id of our files: the letters SHFT."""
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE task (id BLOB PRIMARY KEY, posted BLOB NOT NULL, state TEXT NOT NULL, key BLOB, reason TEXT,
           tick INTEGER NOT NULL, since INTEGER NOT NULL, ran INTEGER NOT NULL DEFAULT 0, floor TEXT NOT NULL,
           release BLOB) WITHOUT ROWID""",
        """CREATE TABLE report (task BLOB, digest BLOB, level INTEGER NOT NULL, inners BLOB NOT NULL,
           PRIMARY KEY (task, digest)) WITHOUT ROWID""",
        """CREATE TABLE code (task BLOB, hash BLOB, spent INTEGER NOT NULL,
           PRIMARY KEY (task, hash)) WITHOUT ROWID""",
        "CREATE TABLE dummy (task BLOB NOT NULL, question INTEGER NOT NULL, sealed BLOB NOT NULL)",
        """CREATE TABLE tally (task BLOB, kind INTEGER, number INTEGER NOT NULL,
           PRIMARY KEY (task, kind)) WITHOUT ROWID""",
    ),
    (  # 0.2.0 named a report by its sealed bytes, so one content could be held under several names
        """CREATE TABLE named (task BLOB, digest BLOB, level INTEGER NOT NULL, inners BLOB NOT NULL,
           PRIMARY KEY (task, digest)) WITHOUT ROWID""",
        "INSERT OR IGNORE INTO named SELECT task, name_of(inners), level, inners FROM report",
        "DROP TABLE report",
        "ALTER TABLE named RENAME TO report",
        "DELETE FROM tally WHERE kind >= 0 AND task IN (SELECT id FROM task WHERE state IN ('open', 'closing'))",
        "INSERT INTO tally SELECT task, level, count(*) FROM report GROUP BY task, level",
    ),
)
"""Statements that lead from one version of the schema to the next; a released entry never changes. They may call
`report.name_of`.

`tally` holds, beside the rows and in the same transactions, how many there are: kind >= 0 is a level and counts its
reports, kind -a counts reports that were refused with the answer byte a. So `stop_at` is exact, also with two servers.
"""
PATIENCE = 10.0
"""Seconds to wait for another writer."""


def connect(path: Path) -> sqlite3.Connection:
    """Open a store that is there, or make one of an empty file; an older version is led to the present one.

    Parameters
    ----------
    path : Path
        The SQLite file.

    Raises
    ------
    InvalidInput
        If the file is a database of something else, or of a newer version.
    sqlite3.Error
        If it cannot be read and written.
    """
    db = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        version = _version(db, path)
        _until_free(lambda: db.execute("PRAGMA journal_mode=WAL").fetchone())
        for pragma in ("synchronous=FULL", "secure_delete=ON", "trusted_schema=OFF"):
            db.execute(f"PRAGMA {pragma}").fetchone()
        if version < len(MIGRATIONS):
            _migrate(db, path)
    except BaseException:
        db.close()
        raise
    return db


def _version(db: sqlite3.Connection, path: Path) -> int:
    # the tables first: another process may make them between two looks, and then the second look knows whose they are
    tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    ours = db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
    if not ours and tables:
        raise InvalidInput(f"{path} is a database of something else; name another file for the store")
    if version > len(MIGRATIONS):
        raise InvalidInput(
            f"the store {path} is of version {version}; this shuffledp reads up to {len(MIGRATIONS)}: install the "
            "newer shuffledp again"
        )
    return version


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    db.create_function("name_of", 1, name_of, deterministic=True)
    with transaction(db):
        for number in range(_version(db, path), len(MIGRATIONS)):  # read again: another process may have been first
            for statement in MIGRATIONS[number]:
                db.execute(statement)
        db.execute(f"PRAGMA application_id={APPLICATION}")
        db.execute(f"PRAGMA user_version={len(MIGRATIONS)}")


@contextlib.contextmanager
def transaction(db: sqlite3.Connection) -> Generator[sqlite3.Connection]:
    """Open one transaction that writes: committed when the block ends well, else undone.

    Parameters
    ----------
    db : Connection
        From `connect`.
    """
    db.execute("BEGIN IMMEDIATE")
    try:
        yield db
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk has rolled back already
            db.execute("ROLLBACK")
        raise


def _until_free(action: Callable[[], object]) -> None:
    """Repeat what SQLite refuses at once, without waiting, while another process has the file locked."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            action()
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.02)
