"""Progress of a long computation: one share from 0 to 1, reported by its steps in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Progress = Callable[[float], None]
"""Function called with the share of the work that is done, from 0 to 1, which never falls."""


def steps(progress: Progress | None, costs: Sequence[float], start: float = 0.0) -> list[Progress | None]:
    """Return for each step of a computation a callable that reports the progress of that step.

    Parameters
    ----------
    progress : callable, optional
        Is called with the finished share of the whole computation, from 0 to 1; None if nobody listens.
    costs : sequence of float
        Approximate cost of each step, positive; only their ratios matter.
    start : float
        Share that is finished before the first step, from 0 to 1.

    Returns
    -------
    list of callable
        One for each step, to be called with the finished share of that step, from 0 to 1; all None if `progress` is
        None.

    Examples
    --------
    >>> heard = []
    >>> first, second = steps(heard.append, [1.0, 3.0])
    >>> first(1.0), second(0.5)
    (None, None)
    >>> heard
    [0.25, 0.625]
    """
    if progress is None:
        return [None] * len(costs)
    total, before, reporters = sum(costs), 0.0, list[Progress | None]()
    for cost in costs:
        reporters.append(_step(progress, start, (1.0 - start) * before / total, (1.0 - start) * cost / total))
        before += cost
    return reporters


def _step(progress: Progress, start: float, before: float, width: float) -> Progress:
    return lambda share: progress(min(start + before + width * share, 1.0))
