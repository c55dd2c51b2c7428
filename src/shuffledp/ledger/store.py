"""The ledger's SQLite file, its chain of hashes, and the turns of training runs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import sqlite3
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from shuffledp.errors import InvalidInput, named, path_shown
from shuffledp.whole_files import replaced, way_out

# The ledger's chain of hashes: what was changed past `shuffledp` is noticed.
#
# Every row that is kept for good (entries, the limit, what is stated to be disjoint, the rounds of training runs) has
# a link: the SHA-256 of the link before it and of the row. A row that was replaced, added or taken out in SQL breaks
# the chain. Whoever computes all later links anew, or puts back an old copy of the whole file, is not noticed.

TABLES = (
    """CREATE TABLE link (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, row TEXT NOT NULL, hash TEXT NOT NULL)""",
    """CREATE TABLE rounds (entry INTEGER PRIMARY KEY, training TEXT NOT NULL, counts TEXT NOT NULL)""",
    """CREATE TABLE turn (training TEXT PRIMARY KEY, number INTEGER NOT NULL, name TEXT NOT NULL) WITHOUT ROWID""",
)
"""Statements for the tables that version 2 adds; rows of `turn` are replaced as runs go on and have no links."""


class _Kind(NamedTuple):
    """The rows of one table: the query that reads them, in the order of their keys, and the types of their columns."""

    table: str
    key: tuple[str, ...]
    columns: tuple[tuple[str, type], ...]


_KINDS = {
    "limit": _Kind("allowance", ("id",), (("epsilon", float), ("delta", float))),
    "disjoint": _Kind("apart", ("first", "second"), (("first", str), ("second", str))),
    "entry": _Kind(
        "entry",
        ("id",),
        (
            ("run", str), ("date", str), ("title", str), ("question", str), ("population", str), ("plan", str),
            ("task", str), ("setting", str), ("epsilon", float), ("delta", float), ("n", int), ("levels_total", int),
            ("profile", str), ("levels", str), ("mu", float), ("outside", float),
        ),
    ),
    "rounds": _Kind("rounds", ("entry",), (("training", str), ("counts", str))),
}  # fmt: skip
_MAY_BE_NULL = {"plan"}
STAYS = tuple(
    f"CREATE TRIGGER {kind.table}_is_not_replaced BEFORE INSERT ON {kind.table} WHEN EXISTS (SELECT 1 FROM "
    f"{kind.table} WHERE {' AND '.join(f'{name} = NEW.{name}' for name in kind.key)}) BEGIN SELECT RAISE(ABORT, "
    f"'what is in a ledger stays'); END"
    for kind in (*_KINDS.values(), _Kind("link", ("number",), ()))
) + tuple(
    f"CREATE TRIGGER {table}_is_not_{done} BEFORE {verb} ON {table} BEGIN SELECT RAISE(ABORT, 'what is in a ledger "
    f"stays'); END"
    for table in ("apart", "rounds", "link")
    for verb, done in (("DELETE", "deleted"), ("UPDATE", "changed"))
)
"""Statements for the triggers that version 2 adds, because REPLACE does not fire those against DELETE."""


def rows(db: sqlite3.Connection, *, rounds: bool) -> dict[tuple[str, str], list[Any]]:
    """Return all permanent rows, by kind and key, after checking the types of their columns.

    Parameters
    ----------
    db : Connection
        The ledger, in a transaction.
    rounds : bool
        Whether the file has the tables of version 2.

    Raises
    ------
    InvalidInput
        If a value is not of its column's type; the message lacks the file's name.
    """
    return {
        (name, json.dumps(row[: len(kind.key)])): row[len(kind.key) :]
        for name, kind in _KINDS.items()
        if rounds or name != "rounds"
        for row in _read(db, name, kind)
    }


def extend(db: sqlite3.Connection, *, begin: bool = False) -> None:
    """Add to the chain of hashes the links of all rows that have none.

    Parameters
    ----------
    db : Connection
        The ledger, in the transaction that wrote the rows.
    begin : bool
        Whether this is the chain's first link, which holds the number of earlier entries.
    """
    linked = {(kind, row) for kind, row in db.execute("SELECT kind, row FROM link")}
    last_link = db.execute("SELECT number, hash FROM link ORDER BY number DESC LIMIT 1").fetchone()
    number, last = last_link or (0, "")
    new: list[tuple[str, str, list[Any]]] = []
    if begin:
        new.append(("begin", json.dumps(db.execute("SELECT count(*) FROM entry").fetchone()), []))
    new += [(*key, row) for key, row in rows(db, rounds=True).items() if key not in linked]
    for kind, key, row in new:
        number, last = number + 1, _hash(last, kind, key, row)
        db.execute("INSERT INTO link VALUES (?, ?, ?, ?)", (number, kind, key, last))


def check(db: sqlite3.Connection) -> None:
    """Check every link of the chain of hashes, and that every row has one.

    Parameters
    ----------
    db : Connection
        The ledger, of version 2, in a transaction.

    Raises
    ------
    InvalidInput
        If the chain is broken; the message says where first, and lacks the file's name.
    """
    left, last = rows(db, rounds=True), ""
    sequence = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'entry'").fetchone()
    entries = sum(kind == "entry" for kind, _ in left)
    for place, (number, kind, key, kept) in enumerate(
        db.execute("SELECT number, kind, row, hash FROM link ORDER BY number").fetchall(), start=1
    ):
        row = [] if kind == "begin" and place == 1 else left.pop((kind, key), None)
        last = "" if row is None else _hash(last, kind, key, row)
        if row is None or number != place or last != kept:
            raise InvalidInput(f"its {_called(kind, key)} is not what was entered")
    if not last:
        raise InvalidInput("its chain of hashes is gone")
    if left:
        raise InvalidInput(f"its {_called(*next(iter(left)))} was not entered by shuffledp")
    if entries != (0 if sequence is None else sequence[0]):
        raise InvalidInput("entries at its end are gone")


def unchained(db: sqlite3.Connection) -> int:
    """Return the number of entries made before the chain began.

    Parameters
    ----------
    db : Connection
        The ledger, of version 2.
    """
    first_link = db.execute("SELECT row FROM link WHERE kind = 'begin'").fetchone()
    return int(json.loads(first_link[0])[0])


def _read(db: sqlite3.Connection, name: str, kind: _Kind) -> Iterator[list[Any]]:
    key, columns = ", ".join(kind.key), ", ".join(column for column, _ in kind.columns)
    for row in db.execute(f"SELECT {key}, {columns} FROM {kind.table} ORDER BY {key}"):
        for (column, wanted), value in zip(kind.columns, row[len(kind.key) :], strict=True):
            if type(value) is not wanted and not (value is None and column in _MAY_BE_NULL):
                raise InvalidInput(f"the {column} of its {_called(name, json.dumps(row[: len(kind.key)]))} is damaged")
        yield list(row)


def _called(kind: str, key: str) -> str:
    """Return the name of a row in messages; kind and key may come from a damaged link."""
    return f"entry {key[1:-1]}" if kind == "entry" and key[1:-1].isdigit() else "limit" if kind == "limit" else "record"


def _hash(last: str, kind: str, key: str, row: list[Any]) -> str:
    return hashlib.sha256(json.dumps([last, kind, key, row]).encode("ascii")).hexdigest()


@dataclass(frozen=True)
class Turn:
    """A state that a training run has reached, from which it may be continued once.

    A checkpoint names its turn, and so does the keeper: the ledger, or the lock file beside the checkpoint. The
    checkpoint is written first. So the keeper stands at the checkpoint's turn, or at the one before it, in which case
    no message of this turn has left. A checkpoint of any other turn is an old copy: its run has gone on.

    Parameters
    ----------
    run : str
        Random name of the run.
    number : int
        Number of the turn, from 1.
    name : str
        Random name, so that two processes that continue from one state take different turns.
    before : str
        Name of the turn that the keeper must stand at when this one is taken; "" for the first.
    """

    run: str
    number: int
    name: str
    before: str = ""

    @staticmethod
    def first() -> Turn:
        """Return the first turn of a new run."""
        return Turn(secrets.token_hex(8), 1, secrets.token_hex(8))

    def next(self, before: str) -> Turn:
        """Return a turn that follows this one, while the keeper stands at the turn named ``before``."""
        return Turn(self.run, self.number + 1, secrets.token_hex(8), before)

    def check_taken_from(self, kept: str | None, keeper: str) -> None:
        """Refuse a turn that does not follow the one at which the keeper stands.

        Parameters
        ----------
        kept : str or None
            The name of the turn that the keeper stands at; None if it knows nothing of the run.
        keeper : str
            Name of the keeper in the message.
        """
        if (kept or "") != self.before:
            raise InvalidInput(
                f"another process has gone on with this run: {keeper} holds a later turn; let that one go on, as "
                "messages of both would leave and only one is counted"
            )


# The ledger's file: one SQLite database, in which an entry is whole and durable, or not there.
#
# Version 2 adds the chain of hashes and the turns of training runs. A file of version 1 is read as it is, and becomes
# one of version 2 when something is entered.

APPLICATION = 0x5344504C
"""SQLite's application_id of our files: the letters SDPL."""


VERSION = 2


PATIENCE = 20.0
"""Number of seconds to wait for another process that writes."""


_MAGIC, _APPLICATION_AT, _HEADER = b"SQLite format 3\0", 68, 100


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


_CHANGED = "; nothing may be claimed from it: go back to the file as shuffledp wrote it, or start another ledger"


def connect(path: Path, *, make: bool) -> sqlite3.Connection:
    """Open a ledger, and check that nothing in it was changed by other means.

    The journal is SQLite's own rollback journal, so that a ledger at rest is a single file that can be copied.

    Parameters
    ----------
    path : Path
        The file.
    make : bool
        Whether a missing file is created, as a ledger without entries.

    Raises
    ------
    InvalidInput
        If the file is missing and not to be created, is no ledger, is of a newer version, was changed or damaged, or
        cannot be read and written.
    """
    name = path_shown(path)
    if str(path) == ":memory:" or str(path).lower().startswith("file:"):
        raise InvalidInput(f"a ledger is a file that stays, and {name} names none to SQLite; name a file on a disk")
    if make and not path.exists():
        _make(path, name)
    _check_kind(path, name)
    try:
        # by its whole name, as an address: SQLite neither makes the file nor takes its name for something else
        db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=PATIENCE, isolation_level=None)
    except (sqlite3.Error, OSError) as error:
        raise InvalidInput(
            f"the ledger {name} cannot be opened ({_error_text(error)}); {way_out(error, 'name another file')}"
        ) from None
    try:
        with damage_explained(name):
            for pragma in ("synchronous=EXTRA", "trusted_schema=OFF"):
                db.execute(f"PRAGMA {pragma}").fetchone()
            db.execute("BEGIN")  # one state of the file, whatever others enter meanwhile
            _check(db, name)
            db.execute("COMMIT")
    except BaseException:
        db.close()
        raise
    return db


@contextlib.contextmanager
def damage_explained(name: str) -> Generator[None]:
    """Convert errors of SQLite, or of readers of rows, that a damaged file causes into one clear error.

    Parameters
    ----------
    name : str
        The file's name, for the error.

    Raises
    ------
    InvalidInput
        Instead of any error that is no InvalidInput.
    """
    try:
        yield
    except InvalidInput:
        raise
    except sqlite3.OperationalError as error:  # locked, unreadable, or damaged: SQLite tells which
        what = f"cannot be used ({_error_text(error)}); {way_out(error, 'make it readable, or name another')}"
        raise InvalidInput(f"the ledger {name} {what}") from None
    except Exception as error:
        raise InvalidInput(f"the ledger {name} is damaged ({_error_text(error)}){_CHANGED}") from None


@contextlib.contextmanager
def writing(db: sqlite3.Connection, name: str, *, for_good: bool = True) -> Generator[sqlite3.Connection]:
    """Open one exclusive writing transaction: committed to disk if the block ends without an error, else undone.

    Parameters
    ----------
    db : Connection
        From `connect`.
    name : str
        The file's name, for an error.
    for_good : bool
        Whether the block writes permanent rows: then the chain is checked before, and extended to them.

    Raises
    ------
    InvalidInput
        If the ledger was changed by other means, or the transaction cannot be committed: nothing is stored.
    """
    try:
        db.execute("BEGIN IMMEDIATE")
        with damage_explained(name):
            if version(db) < VERSION:
                _migrate(db)
            elif for_good:
                _check(db, name)
        yield db
        if for_good:
            extend(db)
        db.execute("COMMIT")
    except BaseException as error:
        with contextlib.suppress(sqlite3.Error):
            if db.in_transaction:  # a full disk has rolled back already
                db.execute("ROLLBACK")
        if isinstance(error, sqlite3.Error):
            raise InvalidInput(
                f"the ledger {name} cannot be written ({_error_text(error)}), so nothing is released; make it "
                "writable, or wait until nobody else uses it"
            ) from None
        raise


def _error_text(error: Exception) -> str:
    """Return an error's text, safe to show although the file may hold anything."""
    return named(" ".join(str(error).split())) or type(error).__name__


def version(db: sqlite3.Connection) -> int:
    """Return the version number of a ledger file's format."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _make(path: Path, name: str) -> None:
    """Create a ledger without entries, as a whole or not at all."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as empty:
        for statement in _SCHEMA:
            empty.execute(statement)
        empty.execute(f"PRAGMA application_id={APPLICATION}")
        _migrate(empty)
        content = empty.serialize()
    with replaced(path, f"the ledger {name}", fresh=True) as file:
        file.write(content)


def _check_kind(path: Path, name: str) -> None:
    """Refuse a file whose first bytes are not those of a ledger; SQLite would accept an empty file."""
    try:
        if path.exists() and not path.is_file():
            raise InvalidInput(f"{name} is no file, so no ledger; name another")
        with path.open("rb") as file:
            head = file.read(_HEADER)
    except FileNotFoundError:
        raise InvalidInput(
            f"there is no ledger {name}; check the name, or make one with `shuffledp ledger {name} --new` (with "
            "--limit EPSILON,DELTA for a limit; in Python: Ledger(path, make=True))"
        ) from None
    except OSError as error:
        raise InvalidInput(
            f"the ledger {name} cannot be opened ({error.strerror or error}); name another file"
        ) from None
    if not head.startswith(_MAGIC):
        what = "is empty" if not head else "is no ledger"
        raise InvalidInput(f"{name} {what}: nothing that was entered is in it; name another file")
    if int.from_bytes(head[_APPLICATION_AT : _APPLICATION_AT + 4]) != APPLICATION:
        raise InvalidInput(f"{name} is a database of something else; name another file for the ledger")


def _check(db: sqlite3.Connection, name: str) -> None:
    """Check, in a transaction, that a ledger is as this library wrote it."""
    of = version(db)
    if of > VERSION:
        raise InvalidInput(
            f"the ledger {name} is of version {of}; this shuffledp reads up to {VERSION}: install the newer one"
        )
    try:
        if _schema(db) != _expected(of):
            raise InvalidInput("its tables, or what protects them, were changed")
        if of < VERSION:
            if db.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise InvalidInput("its pages are damaged")
            rows(db, rounds=False)
        else:
            check(db)
    except InvalidInput as broken:
        raise InvalidInput(f"the ledger {name} was changed from outside: {broken}{_CHANGED}") from None


def _migrate(db: sqlite3.Connection) -> None:
    """Convert a ledger to version 2, with a chain that begins after the existing rows."""
    for statement in (*TABLES, *STAYS):
        db.execute(statement)
    extend(db, begin=True)
    db.execute(f"PRAGMA user_version={VERSION}")


@cache
def _expected(of: int) -> frozenset[str]:
    with contextlib.closing(sqlite3.connect(":memory:")) as empty:
        for statement in (*_SCHEMA, *(() if of < VERSION else (*TABLES, *STAYS))):
            empty.execute(statement)
        return _schema(empty)


def _schema(db: sqlite3.Connection) -> frozenset[str]:
    """Return the statements of all tables and triggers in the file, with blanks normalised."""
    statements = db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'")
    return frozenset(" ".join(str(sql).split()) for (sql,) in statements)
