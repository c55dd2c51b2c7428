"""When the service may trust the machine's clock, and what is due at a time (docs/collection, States).

Deadlines are points in time, and a clock can be wrong. The last tick is stored with every task; when the clock stands
before that tick or more than a day after it, the task's timers wait until an operator confirms the clock. While the
service runs it also compares the clock with steady time, which nobody can set: where they part by more than two
minutes, the clock was set, and the timers of all tasks wait (`IN_DOUBT`). Reports are taken meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

from shuffledp.collection.task import Draft

Clock = Callable[[], int]
"""Returns seconds since 1970."""

DAY = 86_400
GRACE = 7 * DAY
"""Seconds of running time between `expires` and the destruction of a collection with too few people."""

Steady = Callable[[], float]
"""Returns seconds since some point, and is never set."""
STEP = 120
"""Seconds by which clock and steady time may part: more than a correction over the network, less than any harm."""
IN_DOUBT = -DAY - 1
"""Stored as the last tick, this makes timers wait whatever the clock says, and whichever process looks at it."""

Action = Literal["close", "destroy", "delete"]


def system_clock() -> int:
    """Read the machine's clock: whole seconds since 1970."""
    return int(time.time())


def system_steady() -> float:
    """Read seconds since the machine started; where the system counts them, those asleep are among them."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Watch:
    """Notices that a clock was set.

    Parameters
    ----------
    clock : callable
        Returns seconds since 1970.
    steady : callable, optional
        What it is compared with; the system's steady time for the system's clock, and nothing for any other clock.
    """

    def __init__(self, clock: Clock, steady: Steady | None = None) -> None:
        self._steady = steady or (system_steady if clock is system_clock else None)
        self._apart = 0.0
        self.accept(clock())

    def jumped(self, now: int) -> bool:
        """Tell whether the clock, which says `now`, was set since the last `accept`."""
        return self._steady is not None and abs(now - self._steady() - self._apart) > STEP

    def accept(self, now: int) -> None:
        """Compare with the clock as it is now; the caller has noted the jump."""
        if self._steady is not None:
            self._apart = now - self._steady()


def is_trusted(now: int, tick: int) -> bool:
    """Tell whether timers may act: the clock stands at the last tick or at most a day after it."""
    return 0 <= now - tick <= DAY


def due(state: str, draft: Draft, held: int, now: int, since: int, ran: int) -> Action | None:
    """Say what a trusted clock asks for.

    Parameters
    ----------
    state : str
        State of the task.
    draft : Draft
        Its times and `at_least`.
    held : int
        Reports held.
    now : int
        Seconds since 1970, from a trusted clock.
    since : int
        When the state was entered, seconds since 1970.
    ran : int
        Seconds that the service has run since `expires`.

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
