"""Many different budgets, brought down to a few hundred for searches; only public budgets are read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.numerics.floats import JUST_BELOW
from shuffledp.numerics.interval import FloatArray

MOST_VALUES = 192
"""Different budgets that a search looks at."""
MOST_HIDING = 64
"""Levels of the population that stands for everybody while a search certifies."""


def common_delta(budgets: Budgets) -> float:
    """Approximate part that all budgets share.

    Raises
    ------
    InvalidInput
        If they differ: which of two budgets is the smaller one would not be clear.
    """
    if not (budgets.deltas == budgets.deltas[0]).all():
        raise InvalidInput(
            f"rounding budgets to levels needs one delta0 for everybody; got {budgets.deltas.min():g} to "
            f"{budgets.deltas.max():g}"
        )
    return float(budgets.deltas[0])


def some_values(budgets: Budgets, most: int = MOST_VALUES) -> FloatArray:
    """Choose budgets that stand for all: half of them evenly spread over users, half over log(budget).

    Parameters
    ----------
    budgets : Budgets
        The population.
    most : int
        At most about so many, at least 4; smallest and largest are among them.

    Returns
    -------
    ndarray
        Ascending budgets that users have.
    """
    values = budgets.epsilons
    if values.size <= most:
        return values.copy()
    through = np.cumsum(budgets.counts)
    quantiles = np.searchsorted(through, np.linspace(0.0, float(through[-1]), most // 2))
    positive = values[values > 0.0]
    spread = np.searchsorted(values, np.geomspace(positive[0], positive[-1], most // 2) * JUST_BELOW)
    ends = np.array([0, values.size - 1])
    picked = np.unique(np.concatenate([quantiles, spread, ends]))
    return values[picked[picked < values.size]]


def rounded_up(budgets: Budgets, most: int = MOST_HIDING) -> Budgets:
    """Return a population of few levels that hides a user no better: budgets are rounded up.

    Parameters
    ----------
    budgets : Budgets
        The population, of one delta0.
    most : int
        At most about so many levels, at least 4.
    """
    if budgets.levels <= most:
        return budgets
    values = some_values(budgets, most)
    at = np.searchsorted(values, budgets.epsilons, side="left")
    counts = np.bincount(at, weights=budgets.counts, minlength=values.size).astype(np.int64)
    kept = counts > 0
    return Budgets(values[kept], counts[kept], np.full(int(kept.sum()), common_delta(budgets)))


def rounded_down(budgets: Budgets, levels: FloatArray) -> Budgets:
    """Round everybody down to the largest level not above her budget.

    Parameters
    ----------
    budgets : Budgets
        The population, of one delta0.
    levels : ndarray
        Ascending; the first is at most the smallest budget.
    """
    at = level_of(budgets.epsilons, levels)
    counts = np.bincount(at, weights=budgets.counts, minlength=levels.size).astype(np.int64)
    kept = counts > 0
    return Budgets(levels[kept], counts[kept], np.full(int(kept.sum()), common_delta(budgets)))


def capped(budgets: Budgets, most: float) -> Budgets:
    """Lower every budget above `most` to it."""
    return Budgets(np.minimum(budgets.epsilons, most), budgets.counts, budgets.deltas)


def level_of(epsilons: FloatArray, levels: FloatArray) -> NDArray[np.intp]:
    """Position of the largest level not above each budget; -1 if there is none."""
    return np.searchsorted(levels, epsilons, side="right") - 1
