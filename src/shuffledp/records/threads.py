"""Batches shared among threads: NumPy and Polars let go of the interpreter where the time is spent."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

_MOST = 8


Item = TypeVar("Item")


Result = TypeVar("Result")


def workers() -> int:
    """Return how many threads are worth starting: one a core that this process may use, at most 8."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(_MOST, cores)


def in_order(job: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Apply a job to each item, several at a time; results, and the first error, come in the order of the items.

    Parameters
    ----------
    job : callable
        Takes an item; runs in a thread.
    items : iterable
        Read as the results are asked for, at most twice the number of threads ahead.

    Yields
    ------
    object
        What the job returned.

    Examples
    --------
    >>> list(in_order(len, ["a", "bc", ""]))
    [1, 2, 0]
    """
    several = workers()
    if several == 1:
        yield from map(job, items)
        return
    waiting: deque[Future[Result]] = deque()
    reading, failure = iter(items), None
    with ThreadPoolExecutor(several) as pool:
        while True:
            try:
                waiting.append(pool.submit(job, next(reading)))
            except StopIteration:
                break
            except Exception as error:  # an item before it may fail, and comes first
                failure = error
                break
            if len(waiting) > 2 * several:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    if failure is not None:
        raise failure
