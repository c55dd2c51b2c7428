"""The shuffler's store: one SQLite file, in which a committed report survives the death of process and machine.

Rows hold no time. Pages and write-ahead log still tell in which order reports came, so the writer rebuilds the file and
empties the log when nobody writes, and after every deletion (`Tidying`). The private HPKE key of
an open task lies in the file; the identity that signs lies beside it in ``shuffler.key``, finished batches in
``outbox/``, and the marks of tasks that have ended in both folders (`marks`).
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from shuffledp.collection import sealing
from shuffledp.collection.batch import name_of
from shuffledp.collection.fields import from_base64, to_base64, write_time
from shuffledp.collection.task import Draft, Notice, PostedTask, draft_now
from shuffledp.errors import InvalidInput
from shuffledp.whole_files import check_can_hold, read_bytes, sync_folder, way_out

# The schema of the shuffler's store, its versions, and connections to it.

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
    ("INSERT INTO tally SELECT task, -4, count(*) FROM code GROUP BY task",),  # their number outlives the codes
    ("ALTER TABLE task ADD COLUMN notice BLOB",),  # of a later deadline
)
"""Statements that lead from one version of the schema to the next; a released entry never changes. They may call
`report.name_of`.

`tally` holds, beside the rows and in the same transactions, how many there are: kind >= 0 is a level and counts its
reports, kind -a counts reports that were refused with the answer byte a (1 to 3), kind -4 the codes that were made. So
`stop_at` is exact, also with two servers.
"""
CODES_MADE = -4
"""Kind, in the table `tally`, of the number of codes that were made."""
PATIENCE = 10.0
"""Number of seconds to wait for another writer."""


def connect(path: Path) -> sqlite3.Connection:
    """Open an existing store, or make one in an empty file; an older version is migrated.

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
    """Repeat an action that SQLite refuses at once, without waiting, while another process holds a lock."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            action()
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.02)


# Marks that a task has ended, kept outside the store's file: a store put back from a copy opens no task again.
#
# A copy of the store that was made while a task was open knows nothing of its end. Closed from the copy, the task
# would be handed over a second time, and the rows that only one of the two batches holds are people without dummies.
# So the end of a task stands beside the store in two folders, ``ended/`` (beside ``shuffler.key``) and ``outbox/``,
# of which one may be put back or emptied too. The batch in ``outbox/`` is a mark itself, which covers what 0.2.0
# closed.

SUFFIX = ".ended"
GONE = ("deleted", "destroyed")
"""States of a task without any data left."""


def marks_of(store: Path, name: str) -> tuple[Path, Path]:
    """Return the paths of a task's two marks, which say that it has ended.

    Parameters
    ----------
    store : Path
        The store's file.
    name : str
        The task's name, 43 characters.
    """
    return store.parent / "ended" / name, store.parent / "outbox" / (name + SUFFIX)


def found_mark(store: Path, name: str, state: str) -> Path | None:
    """Return the file that marks a task as ended although the store says otherwise; None if there is none.

    Parameters
    ----------
    store, name
        As for `marks_of`.
    state : str
        State in the store: an ``"open"`` task has no mark and no batch, and one that is ``"closing"`` was not destroyed
        or deleted. Any other state contradicts no mark.
    """
    marks = [place for place in marks_of(store, name) if place.exists()]
    if state == "closing":
        return next((mark for mark in marks if _says(mark).startswith(GONE)), None)
    return next(iter([*marks, *batches_of(store.parent / "outbox", name)]), None) if state == "open" else None


def batches_of(outbox: Path, name: str) -> list[Path]:
    """Return the files with the batch of a task, whose names end in the task's; 0.2.0 had no title before it."""
    return sorted(outbox.glob(f"*{name}.batch"))


def set_marks(store: Path, name: str, state: str, day: str) -> None:
    """Write the marks of a task to disk.

    Parameters
    ----------
    store, name
        As for `marks_of`.
    state : str
        How the task ended: ``"closed"``, ``"deleted"`` or ``"destroyed"``.
    day : str
        Such as ``"2030-01-31"``.
    """
    for place in marks_of(store, name):
        if place.exists() and _says(place).startswith(state):
            continue
        place.parent.mkdir(mode=0o700, exist_ok=True)
        with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(f"{state} {day}\n")
            file.flush()
            os.fsync(file.fileno())
        sync_folder(place.parent)
        sync_folder(place.parent.parent)


def _says(mark: Path) -> str:
    """Return the first 64 characters of a mark."""
    with open(mark, encoding="utf-8", errors="replace") as file:
        return file.read(64)


# When the service may trust the machine's clock, and what is due at a time (docs/collection, States).
#
# Deadlines are points in time, and a clock can be wrong. The last tick is stored with every task; when the clock
# stands before that tick or more than a day after it, the task's timers wait until an operator confirms the clock.
# While the service runs it also compares the clock with steady time, which nobody can set: where they part by more
# than two minutes, the clock was set, and the timers of all tasks wait (`IN_DOUBT`). Reports are taken meanwhile.

Clock = Callable[[], int]
"""Function that returns seconds since 1970."""

DAY = 86_400
GRACE = 7 * DAY
"""Running time, in seconds, between `expires` and the destruction of a collection with too few people."""

Steady = Callable[[], float]
"""Function that returns seconds since some fixed point, from a clock that is never set."""
STEP = 120
"""Tolerance, in seconds, between clock and steady time: more than a correction over the network, less than any harm."""
IN_DOUBT = -DAY - 1
"""Last tick that makes timers wait in every process, whatever the clock says."""

Action = Literal["close", "destroy", "delete"]


def system_clock() -> int:
    """Return the time of the machine's clock, in whole seconds since 1970."""
    return int(time.time())


def system_steady() -> float:
    """Return the seconds since the machine started, including those asleep if the system counts them."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Watch:
    """A detector of changes of the clock.

    Parameters
    ----------
    clock : callable
        Function that returns seconds since 1970.
    steady : callable, optional
        Steady time to compare it with; by default the system's for the system's clock, and none for any other clock.
    """

    def __init__(self, clock: Clock, steady: Steady | None = None) -> None:
        self._steady = steady or (system_steady if clock is system_clock else None)
        self._apart = 0.0
        self.accept(clock())

    def jumped(self, now: int) -> bool:
        """Return whether the clock, which says `now`, was set since the last `accept`."""
        return self._steady is not None and abs(now - self._steady() - self._apart) > STEP

    def accept(self, now: int) -> None:
        """Take the clock's time `now` as right from here on; the caller has noted the jump."""
        if self._steady is not None:
            self._apart = now - self._steady()


def is_trusted(now: int, tick: int) -> bool:
    """Return whether timers may act at the time ``now``: at the last tick or at most a day after it.

    Both are seconds since 1970; the tick is the last time that a task has stored.
    """
    return 0 <= now - tick <= DAY


def due(state: str, draft: Draft, held: int, now: int, since: int, ran: int) -> Action | None:
    """Return the action that is due at a time.

    Parameters
    ----------
    state : str
        State of the task.
    draft : Draft
        Draft of the task, with its times and `at_least`.
    held : int
        Number of reports held.
    now : int
        Seconds since 1970, from a trusted clock.
    since : int
        Time at which the state was entered, seconds since 1970.
    ran : int
        Number of seconds that the service has run since `expires`.

    Returns
    -------
    "close", "destroy", "delete" or None
        None: nothing is due. A task in state ``"closing"`` is finished without asking any clock.
    """
    if state == "open" and now >= draft.closes and held >= draft.at_least:
        return "close"
    if state == "open" and now >= draft.expires and ran >= GRACE:
        return "destroy"
    if state == "released" and now - since >= draft.retention_days * DAY:
        return "delete"
    return None


SHORT_PATIENCE = 0.2
"""Number of seconds that a checkpoint waits for readers, during which it blocks writers."""
CHUNK = 10_000
_COLUMNS = "id, posted, state, reason, tick, since, ran, notice, floor"


@dataclass(frozen=True)
class TaskRow:
    """The store's record of a task, without its reports.

    Parameters
    ----------
    digest : bytes
        SHA-256 of the posted task.
    posted : bytes
        The posted task.
    state : str
        "open", "closing", "released", "deleted", "destroyed", or "restored": open or closing by the store, which was
        put back from a copy, and ended by a mark outside it.
    reason : str or None
        Reason of its destruction.
    tick, since : int
        Times at which its timers last looked at the clock, and at which it entered its state: seconds since 1970.
    ran : int
        Number of seconds that the service has run since the task expired.
    notice : bytes or None
        Signed notice of a later deadline (`notice.Notice`).
    floor : tuple of float
        Certified central epsilon per level, as of posting.
    """

    digest: bytes
    posted: bytes
    state: str
    reason: str | None
    tick: int
    since: int
    ran: int
    notice: bytes | None
    floor: tuple[float, ...]


def state_words(state: str) -> str:
    """Return a task's state in words; "released" becomes "handed over", as the analyzer has not published yet."""
    return "handed over" if state == "released" else state


class Store:
    """One connection to the store's file, which it makes if there is none.

    A connection serves one thread at a time; open another `Store` of the same path for another thread. Several
    processes may do the same.

    Parameters
    ----------
    path : Path or str
        The SQLite file.

    Raises
    ------
    InvalidInput
        If the file is no store, is of a newer version, or cannot be read and written; on Windows, where what the
        shuffler promises of the end of a task would not survive a power cut.
    """

    def __init__(self, path: Path | str) -> None:
        check_can_hold()
        self.path = Path(os.path.realpath(path))  # a store behind a link has one identity and one outbox, beside itself
        os.environ.setdefault("SQLITE_TMPDIR", str(self.path.parent))  # a rebuilt copy shall not lie on another disk
        try:
            _make(self.path)
            self._db = connect(self.path)
            self.set_aside()
        except OSError as error:
            advice = way_out(error, "name another")
            raise InvalidInput(f"the store {self.path} cannot be opened ({error.strerror}); {advice}") from None
        except sqlite3.Error as error:
            advice = way_out(error, "name another")
            raise InvalidInput(f"the store {self.path} cannot be used ({error}); {advice}") from None

    def set_aside(self) -> None:
        """Stop taking reports for every task that has ended by a mark outside this file, and never close it again."""
        for task, state in self._db.execute("SELECT id, state FROM task").fetchall():
            if self.found_mark(task, state) is not None:
                with self.writing() as db:  # another process may have gone on: then the state is another one
                    db.execute("UPDATE task SET state = 'restored' WHERE id = ? AND state = ?", (task, state))

    def found_mark(self, task: bytes, state: str) -> Path | None:
        """Return the file outside the store that marks a task in this state as ended, or None."""
        return found_mark(self.path, to_base64(task), state)

    def writing(self) -> contextlib.AbstractContextManager[sqlite3.Connection]:
        """Open one writing transaction: committed to disk if the block ends without an error, else undone.

        Raises
        ------
        sqlite3.Error
            If it cannot be committed: nothing of it was stored.
        """
        return transaction(self._db)

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    @property
    def outbox(self) -> Path:
        """The folder of finished batches, created at first use."""
        folder = self.path.parent / "outbox"
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def identity(self) -> bytes:
        """Return this shuffler's private signing key, 32 bytes; drawn and written to ``shuffler.key`` at first use.

        Raises
        ------
        InvalidInput
            If the file exists and holds no key.
        """
        path = self.path.with_name("shuffler.key")
        if not path.exists():
            with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".shuffler.", delete=False) as file:
                file.write(to_base64(sealing.new_identity()) + "\n")  # a temporary file has mode 0600
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileExistsError):  # another process may have been first
                os.link(file.name, path)
            os.unlink(file.name)
            sync_folder(path.parent)
        key = from_base64(read_bytes(path, "the shuffler's key", 100).decode("ascii", "replace").strip())
        if key is None or len(key) != sealing.KEY:
            raise InvalidInput(f"{path} holds no key; put the file back that was made with this store")
        return key

    def post(self, task: PostedTask, key: bytes, floor: Sequence[float], now: int) -> None:
        """Store a task and open it.

        Parameters
        ----------
        task : PostedTask
            Task signed by this shuffler.
        key : bytes
            Private HPKE key that belongs to `task.shuffler_key`, 32 bytes.
        floor : sequence of float
            Certified central epsilon per level (`promise.floor_of`), which the manifest repeats.
        now : int
            Seconds since 1970.

        Raises
        ------
        InvalidInput
            If the key is another one.
        """
        if sealing.Opener(key).public != task.shuffler_key:
            raise InvalidInput("this private key does not belong to the posted task; post the draft again")
        with self.writing() as db:
            db.execute(
                "INSERT OR IGNORE INTO task (id, posted, state, key, tick, since, floor) "
                "VALUES (?, ?, 'open', ?, ?, ?, ?)",
                (task.digest, task.data, key, now, now, json.dumps(list(floor))),
            )

    def add_codes(self, task: bytes, hashes: Iterable[bytes]) -> None:
        """Add one-time codes to an open task.

        Parameters
        ----------
        task : bytes
            The task's digest.
        hashes : iterable of bytes
            SHA-256 of each code.

        Raises
        ------
        InvalidInput
            If the task is unknown or no longer open.
        """
        with self.writing() as db:
            row = self.task(task)
            if row is None:
                raise InvalidInput(f"codes are for an open task; {to_base64(task)} is unknown")
            if row.state != "open":
                called = PostedTask.parse(row.posted).called
                raise InvalidInput(f"codes are for an open task; {called} is {state_words(row.state)}")
            new = [(task, entry) for entry in sorted(hashes)]
            made = db.executemany("INSERT OR IGNORE INTO code VALUES (?, ?, 0)", new).rowcount
            sql = "INSERT INTO tally VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET number = number + excluded.number"
            db.execute(sql, (task, CODES_MADE, made))

    def extend(self, task: PostedTask, closes: int, expires: int | None, now: int) -> Notice:
        """Move a task's end later by a signed notice, and return the notice; the task's bytes stay.

        Parameters
        ----------
        task : PostedTask
            An open task of this store.
        closes : int
            New closing time, seconds since 1970; later than the present one.
        expires : int, optional
            New time of expiry; by default the present one, or the closing time if that is later.
        now : int
            Seconds since 1970.

        Raises
        ------
        InvalidInput
            If the task is not open, has closed by the clock, or an end would not move later.
        """
        with self.writing() as db:
            row = self.task(task.digest)
            if row is None or row.state != "open":
                state = row.state if row else "unknown"
                raise InvalidInput(f"only an open task can be extended; {task.called} is {state_words(state)}")
            draft = draft_now(task, row.notice)
            if now >= draft.closes:
                raise InvalidInput(
                    f"the task closed {write_time(draft.closes)}, and people were told so: only before can it be "
                    "extended"
                )
            until = max(draft.expires, closes) if expires is None else expires
            if closes <= draft.closes or until < draft.expires:
                raise InvalidInput(
                    f"a deadline is never shortened: the task closes {write_time(draft.closes)} and expires "
                    f"{write_time(draft.expires)}; name a later time"
                )
            notice = Notice.sign(task, closes, until, self.identity())
            db.execute("UPDATE task SET notice = ? WHERE id = ?", (notice.data, task.digest))
        return notice

    def notice(self, task: bytes) -> bytes | None:
        """Return the notice of a later deadline, or None."""
        rows = self._db.execute("SELECT notice FROM task WHERE id = ?", (task,)).fetchall()
        return rows[0][0] if rows else None

    def task(self, digest: bytes) -> TaskRow | None:
        """Return the record of a task, or None."""
        row = self._db.execute(f"SELECT {_COLUMNS} FROM task WHERE id = ?", (digest,)).fetchall()
        return _row(row[0]) if row else None

    def tasks(self) -> list[TaskRow]:
        """Return the records of all tasks of the store."""
        return [_row(row) for row in self._db.execute(f"SELECT {_COLUMNS} FROM task ORDER BY id").fetchall()]

    def state(self, task: bytes) -> tuple[str, int]:
        """Return state and tick of a known task, which every request needs."""
        return self._db.execute("SELECT state, tick FROM task WHERE id = ?", (task,)).fetchall()[0]

    def key(self, task: bytes, *states: str) -> bytes | None:
        """Return the private HPKE key of a task in one of these states, by default an open one; None for any other."""
        rows = self._db.execute("SELECT key, state FROM task WHERE id = ?", (task,)).fetchall()
        return rows[0][0] if rows and rows[0][1] in (states or ("open",)) else None

    def release(self, task: bytes) -> bytes | None:
        """Return the published release, or None."""
        rows = self._db.execute("SELECT release FROM task WHERE id = ?", (task,)).fetchall()
        return rows[0][0] if rows else None

    def tally(self, task: bytes) -> dict[int, int]:
        """Return counts by kind: held reports by level (0, 1, ...), refused ones by answer byte (-1, -2, -3)."""
        sql = "SELECT kind, number FROM tally WHERE task = ? AND kind != ?"
        return dict(self._db.execute(sql, (task, CODES_MADE)).fetchall())

    def held(self, task: bytes) -> int:
        """Return the number of held reports."""
        return sum(number for kind, number in self.tally(task).items() if kind >= 0)

    def invited(self, task: bytes) -> int:
        """Return the number of codes made for a task, including used ones and those deleted with it."""
        sql = "SELECT number FROM tally WHERE task = ? AND kind = ?"
        rows = self._db.execute(sql, (task, CODES_MADE)).fetchall()
        return rows[0][0] if rows else 0

    def reports(self, task: bytes) -> Iterator[tuple[bytes, int, bytes]]:
        """Yield digest, level and inner messages of every report, ordered by digest.

        No statement stays open in between.
        """
        after = b""
        while rows := self._db.execute(
            "SELECT digest, level, inners FROM report WHERE task = ? AND digest > ? ORDER BY digest LIMIT ?",
            (task, after, CHUNK),
        ).fetchall():
            yield from rows
            after = rows[-1][0]

    def dummies(self, task: bytes, question: int) -> list[bytes]:
        """Return the sealed dummies of a question: all of them while the task is closing, perhaps some before."""
        rows = self._db.execute("SELECT sealed FROM dummy WHERE task = ? AND question = ?", (task, question)).fetchall()
        return [sealed for (sealed,) in rows]

    def drop_dummies(self, task: bytes, most: int) -> int:
        """Delete up to `most` dummies of a task that is still open; return the number deleted.

        Dummies of a task that is closing stay: a batch with them may already have been read.
        """
        sql = (
            "DELETE FROM dummy WHERE rowid IN (SELECT dummy.rowid FROM dummy JOIN task ON task.id = dummy.task "
            "WHERE task.id = ? AND task.state = 'open' LIMIT ?)"
        )
        with self.writing() as db:
            return db.execute(sql, (task, most)).rowcount

    def publish(self, task: bytes, release: bytes) -> None:
        """Store a release to be served from now on; the caller has checked its signature.

        Raises
        ------
        InvalidInput
            If the task's batch was not handed over, or is deleted.
        """
        with self.writing() as db:
            sql = "UPDATE task SET release = ? WHERE id = ? AND state = 'released'"
            if not db.execute(sql, (release, task)).rowcount:
                row = self.task(task)
                raise InvalidInput(
                    f"a release is published while its task is released; {to_base64(task)} is "
                    f"{row.state if row else 'unknown'}"
                )

    def tick(self, task: bytes, now: int, *, day: int, expired: bool, longest: int) -> bool:
        """Store the time of the timers' look at the clock; return False, and store nothing, if the clock has jumped.

        Parameters
        ----------
        task : bytes
            The task's digest.
        now : int
            Seconds since 1970.
        day : int
            Number of seconds beyond which a step of the clock is a jump.
        expired : bool
            Whether running time is to be counted.
        longest : int
            Largest number of seconds of running time that one tick can count.
        """
        with self.writing() as db:
            done = db.execute(
                "UPDATE task SET tick = :now, "
                "ran = ran + CASE WHEN :expired THEN min(:now - tick, :longest) ELSE 0 END "
                "WHERE id = :task AND :now - tick BETWEEN 0 AND :day",
                {"now": now, "expired": expired, "longest": longest, "task": task, "day": day},
            )
            return done.rowcount == 1

    def doubt_clock(self) -> None:
        """Make the timers of all tasks wait for `confirm_clock`, because the clock was set."""
        with self.writing() as db:
            db.execute("UPDATE task SET tick = ?", (IN_DOUBT,))

    def confirm_clock(self, now: int) -> None:
        """Set the last tick of all tasks to `now`, because an operator says that the clock is right."""
        with self.writing() as db:
            db.execute("UPDATE task SET tick = ?", (now,))

    def checkpoint(self) -> bool:
        """Empty the write-ahead log; return False if a reader or writer prevents it, so that deleted bytes remain."""
        self._db.execute(f"PRAGMA busy_timeout={int(SHORT_PATIENCE * 1000)}").fetchone()
        try:
            return self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
        except sqlite3.OperationalError:  # a lock; or no room to write, and then it is no more done
            return False
        finally:
            self._db.execute(f"PRAGMA busy_timeout={int(PATIENCE * 1000)}").fetchone()

    def rebuild(self) -> bool:
        """Rewrite the file in the order of the keys and without stale copies of rows; return False if it must wait."""
        try:
            self._db.execute("VACUUM")
        except sqlite3.OperationalError:  # another writer, or no room for a second copy
            return False
        return True


class Tidying:
    """Removes deleted rows and the order of arrival from the disk: rebuilds the file once, then empties its log.

    Emptying the log may fail while others read it, and is tried again until it succeeds.

    Parameters
    ----------
    store : Store
        The caller's connection.
    """

    def __init__(self, store: Store) -> None:
        self._store, self._rebuilt = store, False
        self.is_due = True

    def again(self) -> None:
        """Record that rows were added or deleted, so that tidying is due again."""
        self._rebuilt, self.is_due = False, True

    def step(self) -> bool:
        """Do what is left; return True when it is done, False if it must be tried again."""
        self._rebuilt = self._rebuilt or self._store.rebuild()
        self.is_due = not (self._store.checkpoint() and self._rebuilt)
        return not self.is_due


def _make(path: Path) -> None:
    """Make an empty file that only its owner reads, for it will hold private keys; leave one that is there alone.

    Opening and closing a file by other means than SQLite drops every lock this process holds on it (POSIX). Another
    process would then take itself for the last reader and delete the write-ahead log under a running service. So the
    file is closed before it gets its name, which nobody can open earlier.
    """
    if path.exists():
        return
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".store.")  # mode 0600
    os.close(handle)
    with contextlib.suppress(FileExistsError):  # another process or thread may have been first
        os.link(name, path)
    os.unlink(name)


def _row(values: Sequence[Any]) -> TaskRow:
    return TaskRow(*values[:-1], floor=tuple(json.loads(values[-1])))
