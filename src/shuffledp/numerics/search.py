"""Inversion of monotone functions that returns both sides of the crossing, each verified."""

from __future__ import annotations

import math
from collections.abc import Callable

from shuffledp.errors import NotConverged


def crossing(
    function: Callable[[float], float],
    target: float,
    low: float,
    high: float,
    guess: float | None = None,
    tolerance: float = 1e-6,
) -> tuple[float, float]:
    """Bracket where a non-increasing non-negative function falls to the target.

    Parameters
    ----------
    function : callable
        Non-increasing on [low, high]; values in [0, inf), never NaN.
    target : float
        Positive.
    low, high : float
        ``function(low) > target >= function(high)`` is known to the caller.
    guess : float, optional
        Where the crossing is expected; any value is correct, a good one is fast.
    tolerance : float
        Relative width of the returned bracket (of its upper end).

    Returns
    -------
    above, below : float
        ``low <= above <= below <= high`` with ``function(above) > target`` (or above == low) and
        ``function(below) <= target`` (or below == high), each evaluated: the caller picks the safe side.

    Raises
    ------
    NotConverged
        If the function returns NaN, or 200 evaluations do not suffice.

    Notes
    -----
    Regula falsi on log(function) with the Illinois correction, guarded by bisection: a handful of
    evaluations for privacy profiles, whose logarithm is smooth.
    """
    goal = math.log(target)
    gap_low = gap_high = math.inf  # |log f - goal| at the two ends, halved when an end lingers (Illinois)
    point = 0.5 * (low + high) if guess is None else min(max(guess, low), high - 0.9 * tolerance * high)
    stride, last = 0.01, 0
    for step in range(200):
        value = function(point)
        if math.isnan(value):
            raise NotConverged(f"a search met an undefined value at {point}; nothing can be certified")
        gap = abs(math.log(value) - goal) if value > 0 else math.inf
        if value > target:
            low, gap_low, gap_high = point, gap, gap_high * (0.5 if last == 1 else 1.0)
            last = 1
        else:
            high, gap_high, gap_low = point, gap, gap_low * (0.5 if last == -1 else 1.0)
            last = -1
        if high - low <= tolerance * high:
            return low, high
        if math.isfinite(gap_low) and math.isfinite(gap_high) and step % 12 != 11:
            point = low + (high - low) * gap_low / max(gap_low + gap_high, 1e-300)
        elif step == 0 and gap > 1.0 and last == 1:
            point = high  # far above the target: the crossing may hug the upper end
        elif guess is not None and stride < 1.0 and step % 12 != 11:
            point, stride = (point * (1 + stride) if last == 1 else point * (1 - stride)), stride * 5
        else:
            point = 0.5 * (low + high)
        margin = 0.4 * tolerance * high  # step past the root, so that the bracket closes from both sides
        point = min(max(point + (margin if last == 1 else -margin), low + margin), high - margin)
    raise NotConverged("a search did not converge in 200 steps; nothing can be certified")
