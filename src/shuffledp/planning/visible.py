"""Where levels are shown: few public levels, each with enough users to be certified by itself.

The reports of unary encoding, subset selection and local hashing have one shape for all levels of a question, which
follows the rounded budgets; and how many users a level needs depends on the shape. So levels are chosen for a shape,
the shape for these levels, and so on until it stays the same; the choice that counts is certified in the shape it
will run in.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput, NotConverged
from shuffledp.numerics.interval import FloatArray
from shuffledp.planning.question import Family, capped, common_delta, level_of, rounded_down, some_values
from shuffledp.planning.target import Bucketing, Wish, fewest_of, steps_of
from shuffledp.planning.task import DEFAULT_LEVELS, Caps, Task, error_unreachable, needs_more_epsilon, unreachable

_STEPS = 40
_TURNS = 5
"""Shapes and levels are chosen in turns, at most so often from each start."""
_MOST_STARTS = 6
_SLACKS = (0.0, 1e-6, 1e-4, 1e-2, 0.05, 0.2, 0.5)
"""Parts of the wanted epsilon given up in search of levels that stay certified in their own shape."""
_GUARANTEE_TOLERANCE = 1.01
_FIT_TOLERANCE = 1.005


def smallest_error(task: Task, wish: Wish) -> Bucketing:
    """Find levels of the smallest predicted error, each certified by itself.

    Parameters
    ----------
    task : Task
        Levels are shown, or reports tell them.
    wish : Wish
        What must hold of every level.

    Raises
    ------
    InvalidInput
        If no levels are certified, or no report is short enough.
    NotConverged
        If levels were found for every shape, but none that is certified in its own.
    """
    own = task.budgets
    if own.levels <= (task.most or DEFAULT_LEVELS):
        family = task.family(own)
        if task.fits(family) and wish.holds(wish.setting(own, family, "levels")):
            return task.finish(None, math.inf, own)
    tried: list[Bucketing] = []
    for slack in _SLACKS:
        narrower = Wish(wish.epsilon * (1.0 - slack), wish.delta, wish.around)
        tried.extend(_in_turns(task, narrower))
        good = [one for one in tried if one.certified_epsilon <= wish.epsilon and task.fits(one.family)]
        if good:
            return min(good, key=lambda one: one.prediction.standard_error)
    if not any(task.fits(one.family) for one in tried):
        raise task.too_long(tried[0].family)
    least = min(one.certified_epsilon for one in tried)
    raise NotConverged(
        f"no levels were found that are certified at epsilon = {wish.epsilon:g}; the best have {least:g}"
    )


def _in_turns(task: Task, wish: Wish) -> list[Bucketing]:
    """Choose levels and shapes in turns, from all of everybody's budget and from what is left below some caps."""
    found: list[Bucketing] = []
    tried: list[tuple[Family, float]] = []
    for cap in _starts(task, wish):
        own = capped(task.budgets, cap)
        family, values = task.family(own), some_values(own)
        for _ in range(_TURNS):
            if (family, cap) in tried:
                break
            tried.append((family, cap))
            levels = _levels(replace(task, budgets=own), wish, family, values)
            if levels is None:
                break
            found.append(task.finish(levels, math.inf, rounded_down(own, levels)))
            family = found[-1].family
    if not found:
        raise unreachable(wish)
    return found


def _starts(task: Task, wish: Wish) -> list[float]:
    """Return no cap and, where shapes follow budgets, the ends of shapes below the budget of the largest crowd."""
    own = task.budgets
    top = float(own.epsilons[-1])
    if wish.epsilon == math.inf or task.family(capped(own, min(wish.safe, top))) == task.family(own):
        return [top]
    together = Budgets(own.epsilons[-1:], [own.n], own.deltas[-1:])
    try:
        most, _ = Caps.of(task, together).edge(wish)
    except InvalidInput:
        return [top]
    ends: dict[Family, float] = {}
    for one in Caps.of(task, own).around(most, min(wish.safe, most)):
        ends[one.family] = one.cap
    below = sorted(ends.values(), reverse=True)
    some = np.unique(np.rint(np.linspace(0, len(below) - 1, _MOST_STARTS)).astype(int))
    return [top, *(below[i] for i in some)]


def _levels(task: Task, wish: Wish, family: Family, values: FloatArray) -> FloatArray | None:
    """Choose levels for one shape; None if none is allowed."""
    own = task.budgets
    if wish.epsilon < math.inf:
        values = np.union1d(values, steps_of(wish, float(values[-1])))
    fewest = fewest_of(wish, family, common_delta(own), values, own.epsilons, own.n)
    chosen = task.levels_for(values, fewest, own, family)
    return None if chosen is None else _fitted(task, chosen, wish, family)


def _fitted(task: Task, levels: FloatArray, wish: Wish, family: Family) -> FloatArray:
    """Move each level as far up as its users stay in it and it is certified; down, if it is not certified."""
    own, delta0 = task.budgets, common_delta(task.budgets)
    found = levels.copy()
    at = level_of(own.epsilons, levels)
    for g in range(levels.size):
        members = at == g
        users = int(own.counts[members].sum())

        def holds(value: float, users: int = users) -> bool:
            return wish.holds(wish.setting(Budgets([value], [users], [delta0]), family, "levels"))

        others = float(own.epsilons[at < g].max(initial=0.0))  # who is below must stay there
        low, high = float(levels[g]), float(own.epsilons[members][0])
        if not holds(low):
            low, high = max(min(wish.safe, low), others * (1.0 + 1e-9)), low
            if not holds(low):
                continue  # the whole choice is certified again, and refused
        if high > low and holds(high):
            low = high
        while high > low * _FIT_TOLERANCE:
            middle = math.sqrt(low * high) if low > 0.0 else high / 2.0
            if middle < 1e-9:
                break
            low, high = (middle, high) if holds(middle) else (low, middle)
        found[g] = low
    return found


def smallest_guarantee(task: Task, error: float, within: float) -> Bucketing:
    """Find levels of the smallest certified epsilon among those with a predicted error of at most `error`.

    Parameters
    ----------
    task : Task
        Levels are shown.
    error : float
        The wanted standard error.
    within : float
        Epsilon at most; inf: any.

    Returns
    -------
    Bucketing
        Its epsilon is within about 1 % of the smallest for which `smallest_error` has the error.

    Raises
    ------
    InvalidInput
        If no levels have that error within that epsilon.
    """
    best = smallest_error(task, task.wish(within))
    if not best.prediction.standard_error <= error:
        if within < math.inf:
            raise needs_more_epsilon(error, within)
        raise error_unreachable(error, best.prediction.standard_error)
    low, high = 0.0, best.certified_epsilon
    for _ in range(_STEPS):
        if high <= low * _GUARANTEE_TOLERANCE or high < 1e-12:
            break
        middle = math.sqrt(low * high) if low > 0.0 else high / 4.0
        try:
            found = smallest_error(task, task.wish(middle))
        except (InvalidInput, NotConverged):
            low = middle
            continue
        if found.prediction.standard_error <= error:
            best, high = found, min(found.certified_epsilon, middle)
        else:
            low = middle
    return best
