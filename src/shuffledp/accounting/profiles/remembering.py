"""Profiles are remembered by the thread that made them: their tables grow while they are asked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache, update_wrapper
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class RememberedByThread(Generic[P, T]):
    """A function with a memory for each thread.

    A profile is no plain value: it keeps knots, boxes and pairs that it was asked for, in several arrays that must fit
    together. Two threads that share one could read half of what the other writes.

    Parameters
    ----------
    function : callable
        Of hashable arguments.
    most : int
        Calls that each thread remembers.
    """

    def __init__(self, function: Callable[P, T], most: int) -> None:
        self._function, self._most, self._own = function, most, threading.local()
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what this thread remembers, or call the function."""
        if not hasattr(self._own, "known"):
            self._own.known = lru_cache(maxsize=self._most)(self._function)
        return self._own.known(*args, **kwargs)

    def cache_clear(self) -> None:
        """Forget what this thread remembers."""
        self._own.known = lru_cache(maxsize=self._most)(self._function)


def remembered_by_thread(most: int) -> Callable[[Callable[P, T]], RememberedByThread[P, T]]:
    """Return a decorator like `functools.lru_cache`, with a memory for each thread.

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
    return lambda function: RememberedByThread(function, most)
