"""The best few public levels: a dynamic programme over the sorted budgets.

Everybody is rounded down to the largest level not above her budget, so that levels v_1 < v_2 < ... cut the sorted
budgets into intervals. The variance of an estimate is noise/weight^2 (see `UserTerms`), both sums over intervals of
(users in it) x (a user's part at its level). Its inverse is not additive, but (quadratic transform: Shen and Yu
2018, "Fractional programming for communication systems", section II)

    weight^2/noise = max over y of 2 y weight - y^2 noise

is additive for each y, and only one number y is to be searched: over a coarse geometric grid, and from the best
point of it in turns with y = weight/noise, which never gets worse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.numerics.interval import FloatArray
from shuffledp.planning.error import UserTerms

_TURNS = 40
_SPREAD = np.geomspace(0.125, 8.0, 13)


@dataclass(frozen=True)
class Candidates:
    """Levels to choose from.

    Parameters
    ----------
    values : ndarray, shape (m,)
        Ascending, different; the first is at most the smallest budget.
    below : ndarray of int, shape (m + 1,)
        Users with a budget below each value; at the end all users.
    fewest : ndarray, shape (m,)
        How many users a level of that value needs; inf if it is not allowed.
    terms : UserTerms
        A user's parts at each value.
    """

    values: FloatArray
    below: NDArray[np.int64]
    fewest: FloatArray
    terms: UserTerms


def best_levels(candidates: Candidates, most: int) -> list[int] | None:
    """Choose at most so many levels with the smallest variance; None if no choice is allowed.

    Parameters
    ----------
    candidates : Candidates
        What to choose from.
    most : int
        At least 1.

    Returns
    -------
    list of int or None
        Positions in ``candidates.values``, ascending.
    """
    users = candidates.below[None, 1:] - candidates.below[:-1, None]  # level at row, next level at column + 1
    allowed = (users >= candidates.fewest[:, None]) & (users > 0)
    users = users.astype(np.float64)
    middle = _middle(candidates)
    if not middle > 0.0:
        return None
    found: list[tuple[float, list[int]]] = []
    for y in middle * _SPREAD:
        chosen = _cut(users, allowed, candidates, float(y), most)
        if chosen is not None:
            found.append((_precision(candidates, chosen)[0], chosen))
    if not found:
        return None
    best, chosen = max(found)
    for _ in range(_TURNS):
        weight, noise = _sums(candidates, chosen)
        again = _cut(users, allowed, candidates, weight / noise if noise > 0.0 else middle, most)
        if again is None or (value := _precision(candidates, again)[0]) <= best:
            break
        best, chosen = value, again
    return chosen


def _cut(
    users: FloatArray, allowed: NDArray[np.bool_], candidates: Candidates, y: float, most: int
) -> list[int] | None:
    """Best cut for one y: value[j] is the best for all users below value j, level by level."""
    m = candidates.values.size
    own = 2.0 * y * candidates.terms.weight - y**2 * candidates.terms.noise
    gain = np.where(allowed, users * own[:, None], -np.inf)
    value = np.where(candidates.below == 0, 0.0, -np.inf)
    steps: list[NDArray[np.intp]] = []
    best, levels = -np.inf, 0
    for level in range(1, most + 1):
        total = value[:m, None] + gain
        origin = np.argmax(total, axis=0)
        value = np.concatenate([[-np.inf], total[origin, np.arange(m)]])
        steps.append(origin)
        if value[m] > best:
            best, levels = float(value[m]), level
        if not np.isfinite(value).any():
            break
    if levels == 0:
        return None
    chosen: list[int] = []
    at = m
    for origin in reversed(steps[:levels]):
        at = int(origin[at - 1])
        chosen.append(at)
    return chosen[::-1]


def _sums(candidates: Candidates, chosen: list[int]) -> tuple[float, float]:
    ends = [*chosen[1:], candidates.values.size]
    users = (candidates.below[ends] - candidates.below[chosen]).astype(np.float64)
    return float(users @ candidates.terms.weight[chosen]), float(users @ candidates.terms.noise[chosen])


def _precision(candidates: Candidates, chosen: list[int]) -> tuple[float, float]:
    weight, noise = _sums(candidates, chosen)
    precision = weight**2 / noise if noise > 0.0 else (np.inf if weight > 0.0 else 0.0)
    return precision, weight


def _middle(candidates: Candidates) -> float:
    """weight/noise if everybody had the largest candidate not above her budget."""
    users = np.diff(candidates.below).astype(np.float64)
    noise = float(users @ candidates.terms.noise)
    return float(users @ candidates.terms.weight) / noise if noise > 0.0 else 1.0
