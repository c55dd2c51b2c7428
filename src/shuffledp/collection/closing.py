"""The end of a collection, which happens only once: its batch is handed over, or its reports are deleted or destroyed.

Closing takes three steps, and the death of the process between or within them changes nothing:

1. The dummies are drawn, sealed and stored piece by piece, while reports are still taken. Then one transaction: all
   dummies are there, and no more reports are taken. They follow from two keys (`dummies.chance_of`), so what a process
   that died before this transaction has stored is deleted and drawn again alike: two batches of one task with different
   dummies would expose all of them by intersection.
2. Marks outside the store say that the task has ended (`marks`): a store put back from a copy is not closed again.
   Then the batch is written from the stored reports and dummies into ``outbox/``, under its name only when it is whole.
3. One transaction: reports, dummies, codes and the task's private key are deleted. The deletion has happened once the
   write-ahead log is empty (`Store.checkpoint`), which a reader can delay.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import platform
import sqlite3
import threading
import traceback
from collections.abc import Callable, Generator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from shuffledp import __version__
from shuffledp.collection.batch import REFUSALS, Batch, permuted_column, read_batch, split_inners, write_batch
from shuffledp.collection.fields import to_base64
from shuffledp.collection.laws import PIECE, chance_of, seal_dummies
from shuffledp.collection.store import (
    DAY,
    GONE,
    SUFFIX,
    Clock,
    Steady,
    Store,
    TaskRow,
    Tidying,
    Watch,
    batches_of,
    due,
    is_trusted,
    set_marks,
    system_clock,
)
from shuffledp.collection.task import PostedTask, draft_now
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import Randomness
from shuffledp.whole_files import hold, sync_folder

TOO_FEW = "too few people took part for a useful answer"
BY_OPERATOR = "destroyed by the operator"


def close_task(store: Store, task: bytes, *, clock: Clock = system_clock) -> Path:
    """Close a task and write its batch, or finish an interrupted closing.

    Parameters
    ----------
    store : Store
        The caller's connection; a server may run on the same file.
    task : bytes
        The task's digest.
    clock : callable
        Function that returns seconds since 1970.

    Returns
    -------
    Path
        The batch. `Store.checkpoint` returns whether the deletion is complete.

    Raises
    ------
    InvalidInput
        If the task is unknown, has ended without a batch, or holds fewer reports than `at_least`; if the store was put
        back from a copy that knows nothing of the task's end, or the batch in ``outbox/`` holds other people. Nothing
        is written or deleted then.
    """
    with _one_at_a_time(store):
        store.set_aside()
        row = _task_row(store, task)
        posted = PostedTask.parse(row.posted)
        path = batch_path(store, posted)
        if row.state == "restored":
            raise InvalidInput(_put_back(store, posted, path))
        if row.state == "open":
            _store_dummies(store, posted)
            _take_no_more(store, posted, clock)
        elif row.state == "released":
            return path
        elif row.state != "closing":
            raise InvalidInput(f"task {posted.called} is {row.state}; it has no batch any more")
        whole = _is_whole(store, path, posted)
        _mark(store, task, "closed", clock)
        if not whole:
            _write(store, posted, row, path, clock)
        _delete(store, task, "released", None, clock)
        return path


def destroy_task(store: Store, task: bytes, *, clock: Clock = system_clock) -> None:
    """Destroy all data of a task, unopened: reports, dummies, codes, keys, batch and release.

    Parameters
    ----------
    store : Store
        The caller's connection.
    task : bytes
        The task's digest.
    clock : callable
        Function that returns seconds since 1970.

    Raises
    ------
    InvalidInput
        If the task is unknown, or was destroyed or deleted before.
    """
    _end(store, task, "destroyed", BY_OPERATOR, clock, only_from=("open", "closing", "released", "restored"))


def expire_task(store: Store, task: bytes, *, clock: Clock = system_clock) -> None:
    """Destroy an open task with too few people when `clock.due` says so; parameters as for `destroy_task`."""
    _end(store, task, "destroyed", TOO_FEW, clock, only_from=("open",))


def delete_task(store: Store, task: bytes, *, clock: Clock = system_clock) -> None:
    """Delete batch and release of a released task when `clock.due` says so; parameters as for `destroy_task`."""
    _end(store, task, "deleted", None, clock, only_from=("released",))


def finish_removals(store: Store, *, clock: Clock = system_clock) -> None:
    """Remove files of tasks that have ended, and mark their end, in case the process died before doing so.

    Parameters
    ----------
    store : Store
        The caller's connection.
    clock : callable
        Function that returns seconds since 1970.
    """
    with _one_at_a_time(store):
        for row in store.tasks():
            if row.state == "released":
                _mark(store, row.digest, "closed", clock)
            elif row.state in GONE:
                _mark(store, row.digest, row.state, clock)
                _remove_files(store, row.digest)


def batch_path(store: Store, posted: PostedTask) -> Path:
    """Return the path of the batch of a task: the one that is there, or else one that bears the task's title."""
    return next(iter(batches_of(store.outbox, posted.id)), store.outbox / f"{posted.file_name}.batch")


@contextlib.contextmanager
def _one_at_a_time(store: Store) -> Generator[None]:
    """Hold the outbox's lock, which the operating system releases when the process dies."""
    with open(store.outbox / ".lock", "w") as file:
        hold(file.fileno())
        yield


def _task_row(store: Store, task: bytes) -> TaskRow:
    row = store.task(task)
    if row is None:
        raise InvalidInput(f"the store {store.path} has no task {to_base64(task)}; see shuffledp task status")
    return row


def _store_dummies(store: Store, posted: PostedTask) -> None:
    """Draw, seal and store the dummies: step 1, first half.

    It may take long, but each of its transactions is short, so that other tasks are answered meanwhile.
    """
    _check_enough(store, posted)
    while store.drop_dummies(posted.digest, PIECE):
        pass
    for column, sealed in seal_dummies(posted, _chance(store, posted, b"dummies"), PIECE):
        with store.writing() as db:
            db.executemany("INSERT INTO dummy VALUES (?, ?, ?)", [(posted.digest, column, each) for each in sealed])


def _take_no_more(store: Store, posted: PostedTask, clock: Clock) -> None:
    """Stop taking reports, in one transaction: step 1, second half."""
    wanted = {place: column.dummies.count for place, column in enumerate(posted.draft.columns)}
    with store.writing() as db:
        _check_enough(store, posted)
        sql = "SELECT question, count(*) FROM dummy WHERE task = ? GROUP BY question"
        stored = dict(db.execute(sql, (posted.digest,)).fetchall())
        if any(stored.get(place, 0) != count for place, count in wanted.items()):  # without them no promise holds
            raise InvalidInput(f"the store holds other dummies than task {posted.called} asks for; close it again")
        sql = "UPDATE task SET state = 'closing', since = ? WHERE id = ? AND state = 'open'"
        db.execute(sql, (clock(), posted.digest))


def _check_enough(store: Store, posted: PostedTask) -> None:
    held = store.held(posted.digest)
    if held < posted.draft.at_least:
        who = "person has" if held == 1 else "people have"
        raise InvalidInput(
            f"{held} {who} answered, and with fewer than {posted.draft.at_least} the answer would mislead: "
            "the batch is not handed over; wait, or use: shuffledp task destroy"
        )


def _write(store: Store, posted: PostedTask, row: TaskRow, path: Path, clock: Clock) -> None:
    """Write the batch: step 2."""
    counts = [0] * len(posted.draft.levels)
    rows: list[list[bytes]] = [[] for _ in posted.draft.columns]
    for _, level, inners in store.reports(posted.digest):
        counts[level] += 1
        for column, sealed in zip(rows, split_inners(posted, inners), strict=True):
            column += sealed
    columns: list[bytes] = []
    for place, column in enumerate(rows):
        column += store.dummies(posted.digest, place)
        content = hashlib.sha256(b"".join(column)).digest()  # other rows, another order that tells nothing of this one
        random = _chance(store, posted, b"order", place.to_bytes(2), content)
        columns.append(permuted_column(column, random))
        column.clear()
    tally = store.tally(posted.digest)
    data = write_batch(
        posted,
        columns,
        counts,
        refusals={kind: tally.get(-byte, 0) for byte, kind in enumerate(REFUSALS, 1)},
        floor=row.floor,
        day=_day(clock),
        software=_software(),
        identity=store.identity(),
        codes=_codes_made(store, posted, sum(counts)),
    )
    temporary = path.with_suffix(".batch.tmp")
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if temporary.read_bytes() != data:
        raise OSError(f"{temporary} does not hold what was written to it; check the disk")
    os.rename(temporary, path)
    sync_folder(path.parent)


def _codes_made(store: Store, posted: PostedTask, people: int) -> int | None:
    """Return the number of codes made; None if the manifest has no place for it, or the store was never told."""
    made = store.invited(posted.digest) if posted.has_codes and posted.draft.version > 1 else 0
    return made if made >= max(people, 1) else None


def _end(
    store: Store, task: bytes, state: str, reason: str | None, clock: Clock, *, only_from: tuple[str, ...]
) -> None:
    with _one_at_a_time(store):
        row = _task_row(store, task)
        if row.state not in only_from:
            if row.state in GONE:  # perhaps the process died before its files were removed
                _remove_files(store, task)
            called = PostedTask.parse(row.posted).called
            raise InvalidInput(f"task {called} is {row.state}; there is nothing left to delete")
        _delete(store, task, state, reason, clock)
        _mark(store, task, state, clock)
        _remove_files(store, task)


def _delete(store: Store, task: bytes, state: str, reason: str | None, clock: Clock) -> None:
    """Change a task to a state in which the store holds no data of people; the caller holds the outbox's lock."""
    with store.writing() as db:
        db.execute(
            "UPDATE task SET state = ?, reason = ?, since = ?, key = NULL, release = NULL WHERE id = ?",
            (state, reason, clock(), task),
        )
        for table in ("report", "dummy", "code"):
            db.execute(f"DELETE FROM {table} WHERE task = ?", (task,))
    store.checkpoint()


def _is_whole(store: Store, path: Path, posted: PostedTask) -> bool:
    """Return whether a finished batch of this task exists, signed and with the right hash.

    Raises
    ------
    InvalidInput
        If it exists, and holds other people than the store, whose reports are deleted next.
    """
    batch = _batch_at(path, posted)
    if batch is None:
        return False
    tally = store.tally(posted.digest)
    same = batch.manifest.counts == tuple(tally.get(level, 0) for level in range(len(posted.draft.levels)))
    if not same or _lacking(store, batch):
        raise InvalidInput(_put_back(store, posted, path))
    return True


def _batch_at(path: Path, posted: PostedTask) -> Batch | None:
    """Return the finished batch of this task; None if there is none."""
    try:
        batch = read_batch(path)
    except InvalidInput:
        return None
    return batch if batch.task.data == posted.data else None


def _lacking(store: Store, batch: Batch) -> int:
    """Return the number of the store's reports that a batch does not hold."""
    columns = [
        {bytes(column[start : start + size]) for start in range(0, len(column), size)}
        for column, size in zip(batch.columns, batch.task.inner_sizes, strict=True)
    ]
    return sum(
        not all(rows.issuperset(own) for own, rows in zip(split_inners(batch.task, inners), columns, strict=True))
        for _, _, inners in store.reports(batch.task.digest)
    )


def _put_back(store: Store, posted: PostedTask, path: Path) -> str:
    """Return the reason why a task is not closed again from a store that does not know that it has ended."""
    evidence = f"say the marks beside {store.path}"
    if (batch := _batch_at(path, posted)) is not None:
        evidence = (
            f"the batch holds {batch.manifest.n} people, the store {store.held(posted.digest)}, of whom it lacks "
        )
        evidence += f"{_lacking(store, batch)}"
    return (
        f"task {posted.called} has ended before, {evidence}: this store was put back from a copy. A second batch would "
        "tell people from dummies, so nothing is written and nothing deleted; keep the first batch elsewhere, then "
        f"use: shuffledp task destroy {posted.id}"
    )


def _mark(store: Store, task: bytes, state: str, clock: Clock) -> None:
    set_marks(store.path, to_base64(task), state, _day(clock))


def _day(clock: Clock) -> str:
    return datetime.fromtimestamp(clock(), UTC).strftime("%Y-%m-%d")


def _chance(store: Store, posted: PostedTask, *use: bytes) -> Randomness:
    """Return the randomness for one use, which is the same after the store was put back to a state before closing."""
    key = store.key(posted.digest, "open", "closing")
    if key is None:
        raise InvalidInput(f"the store {store.path} has lost the key of task {posted.called}; it cannot be closed")
    return chance_of(store.identity(), posted, key, *use)


def _remove_files(store: Store, task: bytes) -> None:
    """Remove the files of a task from the outbox, except the mark of its end.

    A release that `shuffledp open` put beside the batch is removed too.
    """
    name = to_base64(task)
    for file in store.outbox.glob(f"*{name}.*"):
        if file.suffix != SUFFIX:
            file.unlink(missing_ok=True)
    sync_folder(store.outbox)


def _software() -> dict[str, str]:
    return {
        "shuffledp": __version__,
        "cryptography": version("cryptography"),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


# What the service writes to its log: never a request, an address, or the text of an exception.

OWN = ("shuffledp", "uvicorn")
"""Loggers whose messages never hold input; for others only name and level are written."""


def place_of(error: BaseException) -> str:
    """Return SQLite's error code or the type of an exception, and the line that raised it, without its message."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{getattr(error, 'sqlite_errorname', type(error).__name__)}{where}"


def is_worth_a_line(record: logging.LogRecord) -> bool:
    """Return False for uvicorn's warnings about malformed requests, by which a stranger could fill the disk."""
    return not (record.name == "uvicorn.error" and record.levelno == logging.WARNING)


class Discreet(logging.Formatter):
    """Log formatter that omits input: time, level and message of our own loggers, type and line of exceptions."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line of the log."""
        if record.exc_info and record.exc_info[1] is not None:
            message = place_of(record.exc_info[1])
        elif record.name.split(".")[0] in OWN:
            message = " ".join(record.getMessage().split())
        else:
            message = "a message of another library, left out"
        return f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S')} {record.levelname.lower()}: {message}"


def log_config() -> dict[str, Any]:
    """Return the logging configuration of the service, for `logging.config.dictConfig`."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"discreet": {"()": Discreet}},
        "filters": {"worth": {"()": lambda: is_worth_a_line}},
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "discreet",
                "filters": ["worth"],
                "stream": "ext://sys.stderr",
            }
        },
        "root": {"handlers": ["stderr"], "level": "INFO"},
    }


# The thread that keeps time: it closes, destroys and deletes what is due, and finishes what a dead process began.

PERIOD = 5.0
"""Number of seconds between two looks at the clock."""
TICK = 60
"""Number of seconds after which the time of a look is stored."""

_log = logging.getLogger(__name__)


class Keeper:
    """A thread that closes, expires and deletes the tasks of a store when their time has come.

    Parameters
    ----------
    path : Path
        The store.
    clock : callable
        Function that returns seconds since 1970.
    ended : callable
        Called with the digest of a task that has closed.
    period : float
        Number of seconds between two looks at the clock.
    steady : callable, optional
        As for `Watch`.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        *,
        ended: Callable[[bytes], None],
        period: float = PERIOD,
        steady: Steady | None = None,
    ) -> None:
        self._watch = Watch(clock, steady)
        self._store, self._clock, self._ended, self._period = Store(path), clock, ended, period
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="keeper", daemon=True)
        self._tasks: dict[bytes, PostedTask] = {}
        self._warned: set[bytes] = set()
        self._states: dict[bytes, str] = {}
        self._tidying = Tidying(self._store)

    def start(self) -> None:
        """Start the thread that watches the store."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, once the operation in progress is done."""
        self._stop.set()
        self._thread.join()
        self._store.close()

    @property
    def is_alive(self) -> bool:
        """Return whether the thread is running."""
        return self._thread.is_alive()

    def look(self) -> None:
        """Look at the clock once and do what is due; an error in one task does not delay the others."""
        now = self._clock()
        self._store.set_aside()
        if self._watch.jumped(now):  # stored first: then also a process that starts later knows of it
            self._store.doubt_clock()
            self._watch.accept(now)
        for row in self._store.tasks():
            if self._states.get(row.digest) != row.state:  # perhaps a command of another process has deleted rows
                self._states[row.digest] = row.state
                self._tidying.again()
            if row.state != "open":
                self._ended(row.digest)
            try:
                self._look_at(row, now)
            except Exception as error:  # for instance a full disk: it is tried again at the next look
                _log.error("task %s waits: %s", self._called(row), place_of(error))
        if self._tidying.is_due:
            self._tidying.step()

    def trusts(self, now: int, tick: int) -> bool:
        """Return whether the time ``now`` may trigger timers, given ``tick``, the last time that a task has stored."""
        return is_trusted(now, tick) and not self._watch.jumped(now)

    def _run(self) -> None:
        try:
            finish_removals(self._store, clock=self._clock)
        except Exception as error:
            _log.error("files of ended tasks are left: %s", place_of(error))
        while not self._stop.is_set():
            try:
                self.look()
            except Exception as error:
                _log.error("the store cannot be read: %s", place_of(error))
            self._stop.wait(self._period)

    def _called(self, row: TaskRow) -> str:
        """Return how the log calls a task: by its name alone where it could not be read."""
        task = self._tasks.get(row.digest)
        return to_base64(row.digest) if task is None else task.called

    def _look_at(self, row: TaskRow, now: int) -> None:
        if row.state in GONE:
            return
        if row.digest not in self._tasks:
            self._tasks[row.digest] = PostedTask.parse(row.posted)
        if row.state == "restored":
            if row.digest not in self._warned:
                self._warned.add(row.digest)
                _log.warning("the store was put back from a copy: task %s has ended before", self._called(row))
            return
        if row.state == "closing":
            close_task(self._store, row.digest, clock=self._clock)
            return
        draft = draft_now(self._tasks[row.digest], row.notice)
        if not self.trusts(now, row.tick):
            if row.digest not in self._warned:
                self._warned.add(row.digest)
                _log.warning("the clock has jumped: timers wait for `shuffledp task clock-ok`; reports are taken")
            return
        self._warned.discard(row.digest)
        action = due(row.state, draft, self._store.held(row.digest), now, row.since, row.ran)
        if action == "close":
            close_task(self._store, row.digest, clock=self._clock)
            _log.info("task %s has closed by itself: its batch is in the outbox", self._called(row))
        elif action == "destroy":
            expire_task(self._store, row.digest, clock=self._clock)
            _log.info("task %s has expired with too few answers: all is destroyed", self._called(row))
        elif action == "delete":
            delete_task(self._store, row.digest, clock=self._clock)
            _log.info("task %s has come to the end of its retention: batch and release are deleted", self._called(row))
        elif now - row.tick >= TICK:
            expired = row.state == "open" and now >= draft.expires
            self._store.tick(row.digest, now, day=DAY, expired=expired, longest=2 * TICK)
