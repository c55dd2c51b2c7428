"""The ledger's chain of hashes: what was changed past `shuffledp` is noticed.

Every row that is kept for good (entries, the limit, what is stated to be disjoint, the rounds of training runs) has a
link: the SHA-256 of the link before it and of the row. A row that was replaced, added or taken out in SQL breaks the
chain. Whoever computes all later links anew, or puts back an old copy of the whole file, is not noticed.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from typing import Any, NamedTuple

from shuffledp.errors import InvalidInput

TABLES = (
    """CREATE TABLE link (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, row TEXT NOT NULL, hash TEXT NOT NULL)""",
    """CREATE TABLE rounds (entry INTEGER PRIMARY KEY, training TEXT NOT NULL, counts TEXT NOT NULL)""",
    """CREATE TABLE turn (training TEXT PRIMARY KEY, number INTEGER NOT NULL, name TEXT NOT NULL) WITHOUT ROWID""",
)
"""What version 2 of the file adds. Of `turn` rows are replaced as runs go on, so they have no links."""


class _Kind(NamedTuple):
    """Rows of one table: how they are read, in the order of their keys, and the types of their columns."""

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
"""Triggers that version 2 adds: REPLACE does not ask those against DELETE."""


def rows(db: sqlite3.Connection, *, rounds: bool) -> dict[tuple[str, str], list[Any]]:
    """Read all rows that are kept for good, by kind and key, and check the types of their columns.

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
    """Add the links of all rows that have none.

    Parameters
    ----------
    db : Connection
        The ledger, in the transaction that wrote the rows.
    begin : bool
        Whether this is the chain's first link, which says how many entries there were before it.
    """
    known = {(kind, row) for kind, row in db.execute("SELECT kind, row FROM link")}
    found = db.execute("SELECT number, hash FROM link ORDER BY number DESC LIMIT 1").fetchone()
    number, last = found or (0, "")
    new: list[tuple[str, str, list[Any]]] = []
    if begin:
        new.append(("begin", json.dumps(db.execute("SELECT count(*) FROM entry").fetchone()), []))
    new += [(*key, row) for key, row in rows(db, rounds=True).items() if key not in known]
    for kind, key, row in new:
        number, last = number + 1, _hash(last, kind, key, row)
        db.execute("INSERT INTO link VALUES (?, ?, ?, ?)", (number, kind, key, last))


def check(db: sqlite3.Connection) -> None:
    """Check every link, and that every row has one.

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
    """Return how many entries there were before the chain began.

    Parameters
    ----------
    db : Connection
        The ledger, of version 2.
    """
    found = db.execute("SELECT row FROM link WHERE kind = 'begin'").fetchone()
    return int(json.loads(found[0])[0])


def _read(db: sqlite3.Connection, name: str, kind: _Kind) -> Iterator[list[Any]]:
    key, columns = ", ".join(kind.key), ", ".join(column for column, _ in kind.columns)
    for row in db.execute(f"SELECT {key}, {columns} FROM {kind.table} ORDER BY {key}"):
        for (column, wanted), value in zip(kind.columns, row[len(kind.key) :], strict=True):
            if type(value) is not wanted and not (value is None and column in _MAY_BE_NULL):
                raise InvalidInput(f"the {column} of its {_called(name, json.dumps(row[: len(kind.key)]))} is damaged")
        yield list(row)


def _called(kind: str, key: str) -> str:
    """Return what a message calls a row; kind and key may come from a damaged link."""
    return f"entry {key[1:-1]}" if kind == "entry" and key[1:-1].isdigit() else "limit" if kind == "limit" else "record"


def _hash(last: str, kind: str, key: str, row: list[Any]) -> str:
    return hashlib.sha256(json.dumps([last, kind, key, row]).encode("ascii")).hexdigest()
