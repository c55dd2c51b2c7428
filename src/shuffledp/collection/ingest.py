"""The single writing thread: it opens reports, stores them, and answers after the commit.

Requests that wait are processed together, so that one commit, and one wait for the disk, serves many.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from shuffledp.collection.batch import Verdict, name_of, open_outer
from shuffledp.collection.closing import place_of
from shuffledp.collection.codes import code_hash
from shuffledp.collection.sealing import Opener
from shuffledp.collection.store import Store, Tidying
from shuffledp.collection.task import PostedTask

# What a report must be to be held, and how the reports of several requests are held in one transaction.

_log = logging.getLogger(__name__)


class Refused(Enum):
    """The reason why no report of a request was stored."""

    CLOSED = "the task takes no more reports"
    FULL = "the task holds as many reports as it may"
    FAILED = "the store cannot be written"


Answer = bytes | Refused


class Row(NamedTuple):
    """A report whose outer layer was opened.

    Parameters
    ----------
    place : int
        Its position in the request.
    values : tuple
        The row of table `report`: the task's digest, the report's name (`name_of`), the index of the level, and the
        messages to the analyzer, one after the other.
    code : bytes or None
        Hash of the one-time code, where the task asks for one.
    """

    place: int
    values: tuple[bytes, bytes, int, bytes]
    code: bytes | None

    @property
    def digest(self) -> bytes:
        """The report's name in the store, a hash of its content."""
        return self.values[1]


@dataclass
class Offer:
    """The opened reports of one request.

    Parameters
    ----------
    task : bytes
        The task's digest.
    stop_at : int
        Largest number of reports that the task may hold.
    verdicts : bytearray
        The answer, one byte (`Verdict`) a report; HELD for those of `rows` until a reason against it is found.
    rows : list of Row
        The reports that could be opened.
    """

    task: bytes
    stop_at: int
    verdicts: bytearray
    rows: list[Row] = field(default_factory=list)


def open_reports(body: bytes, task: PostedTask, opener: Opener) -> Offer:
    """Open the outer layer of the reports of one request, and return what could be opened.

    Parameters
    ----------
    body : bytes
        One or more reports of `task.size` bytes each.
    task : PostedTask
        The task that they answer.
    opener : Opener
        The opener with the task's private key.
    """
    offer = Offer(task.digest, task.draft.stop_at, bytearray(len(body) // task.size))
    for place in range(len(offer.verdicts)):
        sealed = body[place * task.size : (place + 1) * task.size]
        opened = open_outer(task, sealed, opener)
        if isinstance(opened, Verdict):
            offer.verdicts[place] = opened
        else:
            code = None if opened.code is None else code_hash(opened.code)
            values = (task.digest, name_of(opened.inners), opened.level, opened.inners)
            offer.rows.append(Row(place, values, code))
    return offer


def hold(store: Store, offers: list[Offer]) -> list[Answer]:
    """Store the reports of several requests in one transaction.

    A report that is already held is answered like a new one and kept once, whatever code it brings: its name is its
    content. A one-time code admits the first report that brings it, and is spent also if that report is a copy of a
    held one. So a relay that forged an answer, and whoever gave out the codes, learn nothing by trying a code
    afterwards: it is spent exactly if its report was said to be held. Were the code of a copy left unspent, trying it
    would tell that its owner's report is a copy.

    Parameters
    ----------
    store : Store
        The caller's connection.
    offers : list of Offer
        Requests; their verdicts are completed.

    Returns
    -------
    list of bytes or Refused, one an offer
        The answers; every report answered as held is on disk.
    """
    answers: list[Answer] = [Refused.FAILED] * len(offers)
    by_task: dict[bytes, list[int]] = defaultdict(list)
    for number, offer in enumerate(offers):
        by_task[offer.task].append(number)
    try:
        with store.writing() as db:
            for task, numbers in by_task.items():
                for number, answer in zip(numbers, _hold_task(db, task, [offers[i] for i in numbers]), strict=True):
                    answers[number] = answer
    except sqlite3.Error as error:
        _log.warning("reports were not held: %s", getattr(error, "sqlite_errorname", type(error).__name__))
        return [Refused.FAILED] * len(offers)
    return answers


def _hold_task(db: sqlite3.Connection, task: bytes, offers: list[Offer]) -> list[Answer]:
    row = db.execute("SELECT state FROM task WHERE id = ?", (task,)).fetchone()
    if row is None or row[0] != "open":
        return [Refused.CLOSED] * len(offers)
    held = db.execute("SELECT coalesce(sum(number), 0) FROM tally WHERE task = ? AND kind >= 0", (task,)).fetchone()[0]
    room = offers[0].stop_at - held
    together = sum(len(offer.rows) for offer in offers) <= room
    changes: Counter[int] = Counter()
    refused: set[int] = set()
    for number, group in enumerate([offers] if together else [[offer] for offer in offers]):
        # Codes before room: else whoever has none would learn from the answer how many people have answered.
        spent: set[bytes] = set()
        rows = [row for offer in group for row in _admitted(db, task, offer, spent)]
        if together or _news(db, task, rows) <= room - sum(n for kind, n in changes.items() if kind >= 0):
            changes.update(_insert(db, rows))
        else:
            refused.add(number)
            _give_back(db, task, rows)
    for number, offer in enumerate(offers):
        if number not in refused:
            changes.update(-verdict for verdict in offer.verdicts if verdict != Verdict.HELD)
    db.executemany(
        "INSERT INTO tally VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET number = number + excluded.number",
        [(task, kind, number) for kind, number in changes.items() if number],
    )
    return [Refused.FULL if number in refused else bytes(offer.verdicts) for number, offer in enumerate(offers)]


def _admitted(db: sqlite3.Connection, task: bytes, offer: Offer, spent: set[bytes]) -> list[Row]:
    """Mark the codes of a request as used; return the rows to insert, and add their digests to `spent`."""
    if not any(row.code for row in offer.rows):
        return offer.rows
    admitted: list[Row] = []
    spend = "UPDATE code SET spent = 1 WHERE task = ? AND hash = ? AND spent = 0"
    for row in offer.rows:
        if db.execute(spend, (task, row.code)).rowcount:
            spent.add(row.digest)
            admitted.append(row)
        elif row.digest not in spent and not _is_held(db, task, row.digest):
            offer.verdicts[row.place] = Verdict.CODE_REFUSED
    return admitted


def _give_back(db: sqlite3.Connection, task: bytes, rows: list[Row]) -> None:
    """Mark the codes of rows as unused again, since no report of their request is stored."""
    codes = [(task, row.code) for row in rows if row.code]
    db.executemany("UPDATE code SET spent = 0 WHERE task = ? AND hash = ?", codes)


def _is_held(db: sqlite3.Connection, task: bytes, digest: bytes) -> bool:
    return db.execute("SELECT 1 FROM report WHERE task = ? AND digest = ?", (task, digest)).fetchone() is not None


def _news(db: sqlite3.Connection, task: bytes, rows: list[Row]) -> int:
    """Return the number of different reports that are not stored yet."""
    return sum(not _is_held(db, task, digest) for digest in {row.digest for row in rows})


def _insert(db: sqlite3.Connection, rows: list[Row]) -> dict[int, int]:
    """Insert reports that are not stored yet, in the order of their digests (not of arrival).

    Return counts by level.
    """
    by_level: dict[int, list[tuple[bytes, bytes, int, bytes]]] = defaultdict(list)
    for _, values, _ in rows:
        by_level[values[2]].append(values)
    return {
        level: db.executemany("INSERT OR IGNORE INTO report VALUES (?, ?, ?, ?)", sorted(news)).rowcount
        for level, news in by_level.items()
    }


# Bodies of requests: read as they arrive, within a bounded number of bytes, some of which are kept for one report.
#
# A byte is booked when it is here, never when it is announced: a connection that announces a body and sends nothing
# takes no room from anybody.

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

MOST_BYTES = 64 << 20
"""Largest number of bytes of request bodies held at one time."""
KEPT_BYTES = 16 << 20
"""Part of these bytes reserved for requests with a single report, as a person's own device sends."""
BODY_SECONDS = 30.0
"""Number of seconds within which a body must arrive."""


class Gone(Exception):
    """Error: the client has disconnected before its request was complete."""


class Unread(Enum):
    """The reason why a body was not read to its end."""

    WRONG = "the body is longer or shorter than announced, or late"
    NO_ROOM = "too many bytes of other bodies are held"


class Room:
    """The memory for all bodies held at one time, including complete ones that wait for their answer.

    Parameters
    ----------
    most : int
        Bytes of all bodies together.
    kept : int
        Part of them reserved for requests with a single report.
    """

    def __init__(self, most: int = MOST_BYTES, kept: int = KEPT_BYTES) -> None:
        self._most, self._kept = most, kept
        self.held = 0

    def take(self, size: int, *, single: bool) -> bool:
        """Reserve memory for ``size`` bytes that have arrived; return False, and reserve nothing, if there is no room.

        A request with a ``single`` report may use the part that is kept for such requests.
        """
        if self.held + size > self._most - (0 if single else self._kept):
            return False
        self.held += size
        return True


class Body:
    """One request's body; the memory it uses is released at the end of the `with` block.

    Parameters
    ----------
    room : Room
        The memory in which its bytes are reserved.
    length : int
        Number of bytes that were announced.
    single : bool
        Whether it is a single report.
    """

    def __init__(self, room: Room, length: int, *, single: bool) -> None:
        self._room, self._length, self._single = room, length, single
        self._booked = 0

    def __enter__(self) -> Body:
        return self

    def __exit__(self, *_: object) -> None:
        self._room.held -= self._booked
        self._booked = 0

    async def read(self, receive: Receive) -> bytes | Unread:
        """Return the whole body, or the reason why it was not read.

        Parameters
        ----------
        receive : callable
            The ASGI function that receives messages.

        Raises
        ------
        Gone
            If the client disconnects before the end.
        """
        data = bytearray()  # a list of parts would hold fifty bytes for each byte that comes alone
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Gone
                    part = message.get("body", b"")
                    if len(data) + len(part) > self._length:
                        return Unread.WRONG
                    if not self._room.take(len(part), single=self._single):
                        return Unread.NO_ROOM
                    self._booked += len(part)
                    data += part
                    if not message.get("more_body", False):
                        return bytes(data) if len(data) == self._length else Unread.WRONG
        except TimeoutError:
            return Unread.WRONG


GROUP = 1000
"""Largest number of reports opened for one commit, unless the last request brings more."""
IDLE = 60.0
"""Number of seconds without a request after which the store is compacted."""
REST = 20.0
"""Shortest pause between two rebuilds of the store, in durations of the last one, so that junk cannot fill the time."""

_Request = tuple[bytes, PostedTask, Opener, "asyncio.Future[Answer]"]


class Ingest:
    """A thread that stores the requests of an event loop and answers them.

    Parameters
    ----------
    path : Path
        The store.
    idle : float
        Number of seconds without a request after which the store is compacted.
    """

    def __init__(self, path: Path, *, idle: float = IDLE) -> None:
        self._store, self._idle = Store(path), idle
        self._queue: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="ingest", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tidying, self._rest_until = Tidying(self._store), 0.0

    def start(self) -> None:
        """Start the thread, with answers going to the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def stop(self) -> None:
        """Answer the submitted requests, then end the thread."""
        self._queue.put(None)
        self._thread.join()
        self._store.close()

    @property
    def is_alive(self) -> bool:
        """Return whether the thread is running."""
        return self._thread.is_alive()

    async def submit(self, body: bytes, task: PostedTask, opener: Opener) -> Answer:
        """Open and store the reports of one request; return the answer after the commit.

        Parameters
        ----------
        body : bytes
            One or more reports of `task.size` bytes each.
        task : PostedTask
            The task that they answer.
        opener : Opener
            The opener with the task's private key.
        """
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._queue.put((body, task, opener, future))
        return await future

    def _run(self) -> None:
        running = True
        while running:
            group: list[_Request] = []
            running = self._gather(group)
            if group:
                answers = self._answer(group)
                assert self._loop is not None
                self._loop.call_soon_threadsafe(_resolve, group, answers)
            elif running:
                self._tidy()

    def _gather(self, group: list[_Request]) -> bool:
        """Wait for requests and collect all that have arrived, up to a group; return False after the last one."""
        reports = 0
        wait = max(self._idle, self._rest_until - time.monotonic()) if self._tidying.is_due else None
        try:
            while reports < GROUP:
                request = self._queue.get(timeout=wait) if not group else self._queue.get_nowait()
                if request is None:
                    return False
                group.append(request)
                reports += len(request[0]) // request[1].size
        except queue.Empty:
            pass
        return True

    def _answer(self, group: list[_Request]) -> list[Answer]:
        try:
            offers = [open_reports(body, task, opener) for body, task, opener, _ in group]
            if any(offer.rows for offer in offers):
                self._tidying.again()
            return hold(self._store, offers)
        except Exception as error:  # nobody else would answer these requests
            _log.error("reports were not held: %s", place_of(error))
            return [Refused.FAILED] * len(group)

    def _tidy(self) -> None:
        start = time.monotonic()
        self._tidying.step()
        end = time.monotonic()
        self._rest_until = end + REST * (end - start)


def _resolve(group: list[_Request], answers: list[Answer]) -> None:
    for (_, _, _, future), answer in zip(group, answers, strict=True):
        if not future.done():
            future.set_result(answer)
