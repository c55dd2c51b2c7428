"""Profiles are remembered by the thread that made them: their tables grow while they are asked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def remembered_by_thread(most: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator like `functools.lru_cache`, with a memory for each thread.

    A profile is no plain value: it keeps knots, boxes and pairs that it was asked for, in several arrays that must fit
    together. Two threads that share one could read half of what the other writes.

    Parameters
    ----------
    most : int
        Calls that each thread remembers.

    Examples
    --------
    >>> made = []
    >>> double = remembered_by_thread(2)(lambda x: made.append(x) or 2 * x)
    >>> double(3), double(3), made
    (6, 6, [3])
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        own = threading.local()

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            if not hasattr(own, "known"):
                own.known = lru_cache(maxsize=most)(function)
            return own.known(*args, **kwargs)

        return call

    return decorate
