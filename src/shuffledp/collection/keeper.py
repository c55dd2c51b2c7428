"""The thread that keeps time: it closes, destroys and deletes what is due, and finishes what a dead process began."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from shuffledp.collection.clock import DAY, Clock, Steady, Watch, due, is_trusted
from shuffledp.collection.closing import close_task, delete_task, expire_task, finish_removals
from shuffledp.collection.fields import to_base64
from shuffledp.collection.logs import place_of
from shuffledp.collection.marks import GONE
from shuffledp.collection.store import Store, TaskRow, Tidying
from shuffledp.collection.task import Draft, PostedTask

PERIOD = 5.0
"""Seconds between two looks at the clock."""
TICK = 60
"""Seconds after which a look is stored."""

_log = logging.getLogger(__name__)


class Keeper:
    """Watches the tasks of a store from its own thread.

    Parameters
    ----------
    path : Path
        The store.
    clock : callable
        Returns seconds since 1970.
    ended : callable
        Is told the digest of a task that is no longer open.
    period : float
        Seconds between two looks at the clock.
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
        self._drafts: dict[bytes, Draft] = {}
        self._warned: set[bytes] = set()
        self._states: dict[bytes, str] = {}
        self._tidying = Tidying(self._store)

    def start(self) -> None:
        """Begin to watch the store."""
        self._thread.start()

    def stop(self) -> None:
        """End, once what is under way is done."""
        self._stop.set()
        self._thread.join()
        self._store.close()

    @property
    def is_alive(self) -> bool:
        """Whether somebody watches."""
        return self._thread.is_alive()

    def look(self) -> None:
        """Look at the clock once and do what is due; a task that fails does not keep the others waiting."""
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
                _log.error("task %s waits: %s", to_base64(row.digest), place_of(error))
        if self._tidying.is_due:
            self._tidying.step()

    def trusts(self, now: int, tick: int) -> bool:
        """Tell whether timers may act at a time, after the last tick that a task has stored."""
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

    def _look_at(self, row: TaskRow, now: int) -> None:
        if row.state in GONE:
            return
        if row.state == "restored":
            if row.digest not in self._warned:
                self._warned.add(row.digest)
                _log.warning("the store was put back from a copy: task %s has ended before", to_base64(row.digest))
            return
        if row.state == "closing":
            close_task(self._store, row.digest, clock=self._clock)
            return
        if row.digest not in self._drafts:
            self._drafts[row.digest] = PostedTask.parse(row.posted).draft
        draft = self._drafts[row.digest]
        if not self.trusts(now, row.tick):
            if row.digest not in self._warned:
                self._warned.add(row.digest)
                _log.warning("the clock has jumped: timers wait for `shuffledp task clock-ok`; reports are taken")
            return
        self._warned.discard(row.digest)
        action = due(row.state, draft, self._store.held(row.digest), now, row.since, row.ran)
        if action == "close":
            close_task(self._store, row.digest, clock=self._clock)
        elif action == "destroy":
            expire_task(self._store, row.digest, clock=self._clock)
        elif action == "delete":
            delete_task(self._store, row.digest, clock=self._clock)
        elif now - row.tick >= TICK:
            expired = row.state == "open" and now >= draft.expires
            self._store.tick(row.digest, now, day=DAY, expired=expired, longest=2 * TICK)
