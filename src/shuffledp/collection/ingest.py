"""The one thread that writes: it opens reports, holds them, and answers after the commit.

Requests that wait are taken together, so that one commit, and one wait for the disk, serves many.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from pathlib import Path

from shuffledp.collection.holding import Answer, Refused, hold, open_reports
from shuffledp.collection.logs import place_of
from shuffledp.collection.sealing import Opener
from shuffledp.collection.store import Store, Tidying
from shuffledp.collection.task import PostedTask

GROUP = 1000
"""Reports opened for one commit, unless the last request brings more."""
IDLE = 60.0
"""Seconds without a request after which the store is tidied."""
REST = 20.0
"""Least pause between two rebuilds of the store, in durations of the last one: junk cannot make it the main job."""

_log = logging.getLogger(__name__)
_Request = tuple[bytes, PostedTask, Opener, "asyncio.Future[Answer]"]


class Ingest:
    """Takes requests from an event loop and answers them from its own thread.

    Parameters
    ----------
    path : Path
        The store.
    idle : float
        Seconds without a request after which the store is tidied.
    """

    def __init__(self, path: Path, *, idle: float = IDLE) -> None:
        self._store, self._idle = Store(path), idle
        self._queue: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="ingest", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tidying, self._rest_until = Tidying(self._store), 0.0

    def start(self) -> None:
        """Begin to take requests from the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def stop(self) -> None:
        """Answer what was submitted, then end."""
        self._queue.put(None)
        self._thread.join()
        self._store.close()

    @property
    def is_alive(self) -> bool:
        """Whether requests are answered."""
        return self._thread.is_alive()

    async def submit(self, body: bytes, task: PostedTask, opener: Opener) -> Answer:
        """Open and hold the reports of one request; the answer comes after the commit.

        Parameters
        ----------
        body : bytes
            One or more reports of `task.size` bytes each.
        task : PostedTask
            What they answer.
        opener : Opener
            Of the task's private key.
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
        """Wait for requests and take all that are there, up to a group; False after the last one."""
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
