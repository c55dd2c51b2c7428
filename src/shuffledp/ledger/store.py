"""The ledger's file: one SQLite database, in which an entry is whole and durable, or not there."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Generator
from pathlib import Path

from shuffledp.errors import InvalidInput, path_shown
from shuffledp.whole_files import way_out

APPLICATION = 0x5344504C
"""SQLite's application_id of our files: the letters SDPL."""
VERSION = 1
PATIENCE = 20.0
"""Seconds to wait for another process that enters."""
_SCHEMA = (
    """CREATE TABLE entry (id INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL, date TEXT NOT NULL,
       title TEXT NOT NULL, question TEXT NOT NULL, population TEXT NOT NULL, plan TEXT, task TEXT NOT NULL,
       setting TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, n INTEGER NOT NULL,
       levels_total INTEGER NOT NULL, profile TEXT NOT NULL, levels TEXT NOT NULL, mu REAL NOT NULL,
       outside REAL NOT NULL)""",
    "CREATE TABLE allowance (id INTEGER PRIMARY KEY CHECK (id = 1), epsilon REAL NOT NULL, delta REAL NOT NULL)",
    "CREATE TABLE apart (first TEXT NOT NULL, second TEXT NOT NULL, PRIMARY KEY (first, second)) WITHOUT ROWID",
    """CREATE TRIGGER entered_for_good BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'entries stay'); END""",
    """CREATE TRIGGER entered_as_it_was BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'entries stay'); END""",
    """CREATE TRIGGER limit_for_good BEFORE UPDATE ON allowance BEGIN SELECT RAISE(ABORT, 'the limit stays'); END""",
    """CREATE TRIGGER limit_stays BEFORE DELETE ON allowance BEGIN SELECT RAISE(ABORT, 'the limit stays'); END""",
)


def connect(path: Path, *, make: bool) -> sqlite3.Connection:
    """Open a ledger.

    The journal is SQLite's own rollback journal, so that a ledger at rest is a single file that can be copied.

    Parameters
    ----------
    path : Path
        The file.
    make : bool
        Whether a file that is missing, or empty, becomes a ledger without entries.

    Raises
    ------
    InvalidInput
        If it is missing and not to be made, is something else, is of a newer version, or cannot be read and written.
    """
    shown = path_shown(path)
    if not make and not path.is_file():
        raise InvalidInput(f"there is no ledger {shown}; the first release with `ledger` makes it")
    try:
        db = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    except sqlite3.Error as error:
        raise InvalidInput(
            f"the ledger {shown} cannot be opened ({error}); {way_out(error, 'name another file')}"
        ) from None
    try:
        for pragma in ("synchronous=EXTRA", "trusted_schema=OFF"):
            db.execute(f"PRAGMA {pragma}").fetchone()
        if _version(db, shown) < VERSION:
            with writing(db, shown):
                if _version(db, shown) < VERSION:  # another process may have been first
                    for statement in _SCHEMA:
                        db.execute(statement)
                    db.execute(f"PRAGMA application_id={APPLICATION}")
                    db.execute(f"PRAGMA user_version={VERSION}")
    except sqlite3.Error as error:
        db.close()
        raise InvalidInput(
            f"the ledger {shown} cannot be used ({error}); {way_out(error, 'name another file')}"
        ) from None
    except BaseException:
        db.close()
        raise
    return db


@contextlib.contextmanager
def writing(db: sqlite3.Connection, shown: str) -> Generator[sqlite3.Connection]:
    """Open one transaction that writes, alone: committed to disk when the block ends well, else undone.

    Parameters
    ----------
    db : Connection
        From `connect`.
    shown : str
        The file's name, for an error.

    Raises
    ------
    InvalidInput
        If it cannot be committed: nothing of it was kept.
    """
    try:
        db.execute("BEGIN IMMEDIATE")
        yield db
        db.execute("COMMIT")
    except BaseException as error:
        with contextlib.suppress(sqlite3.Error):
            if db.in_transaction:  # a full disk has rolled back already
                db.execute("ROLLBACK")
        if isinstance(error, sqlite3.Error):
            raise InvalidInput(
                f"the ledger {shown} cannot be written ({error}), so nothing is released; make it writable, or wait "
                "until nobody else uses it"
            ) from None
        raise


def _version(db: sqlite3.Connection, shown: str) -> int:
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    ours = db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
    if not ours and db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise InvalidInput(f"{shown} is a database of something else; name another file for the ledger")
    if version > VERSION:
        raise InvalidInput(
            f"the ledger {shown} is of version {version}; this shuffledp reads up to {VERSION}: install the newer one"
        )
    return version
