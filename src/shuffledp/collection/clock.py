"""When the service may trust the machine's clock, and what is due at a time (docs/collection, States).

Deadlines are points in time, and a clock can be wrong. The last tick is stored with every task; when the clock stands
before that tick or more than a day after it, the task's timers wait until an operator confirms the clock. Reports are
taken meanwhile.
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

Action = Literal["close", "destroy", "delete"]


def system_clock() -> int:
    """Read the machine's clock: whole seconds since 1970."""
    return int(time.time())


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
