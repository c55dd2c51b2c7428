"""How far a long work is: one share from 0 to 1, told by its steps in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Progress = Callable[[float], None]
"""Takes the share of a work that is done, from 0 to 1; it never falls."""


def steps(progress: Progress | None, costs: Sequence[float], start: float = 0.0) -> list[Progress | None]:
    """Divide a work among its steps.

    Parameters
    ----------
    progress : callable, optional
        Takes the share of the whole work.
    costs : sequence of float
        What each step costs about, positive; only their ratios matter.
    start : float
        The share that was done before the first of them.

    Returns
    -------
    list of callable
        For each step one that takes the share of that step; None for each if nobody listens.

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
    total, before, told = sum(costs), 0.0, list[Progress | None]()
    for cost in costs:
        told.append(_step(progress, start, (1.0 - start) * before / total, (1.0 - start) * cost / total))
        before += cost
    return told


def _step(progress: Progress, start: float, before: float, width: float) -> Progress:
    return lambda share: progress(min(start + before + width * share, 1.0))
