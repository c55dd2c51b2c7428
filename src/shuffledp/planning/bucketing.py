"""Few public levels for many budgets: everybody is rounded down, so that a level is company enough.

Where the analyzer sees levels (``seen="levels"``), only users of the own level hide a user, so a lonely budget is
hardly amplified. Where levels are withheld, all users hide each other, and a central target needs only a cap on the
largest budgets. Rounding down is always allowed: a user's report then uses less than the user's budget. Levels are
chosen from public budgets alone; a choice that looked at records would leak.

The reports of unary encoding, subset selection and local hashing have one shape for all levels of a question, which
follows the rounded budgets; and how many users a level needs depends on the shape. So where levels are shown they are
chosen for a shape, the shape for these levels, and so on until it stays the same; the choice that counts is certified
in the shape it will run in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from shuffledp.budgets import Budgets
from shuffledp.errors import MAX_EPSILON0, InvalidInput, NotConverged, check_delta, choice, shown, whole_number
from shuffledp.numerics.floats import FloatArray
from shuffledp.planning import target as caps
from shuffledp.planning.question import (
    NO_GUESS,
    Family,
    Guess,
    PlannedQuestion,
    capped,
    common_delta,
    level_of,
    rounded_down,
    some_values,
)
from shuffledp.planning.target import (
    DEFAULT_LEVELS,
    ONCE,
    Bucketing,
    Caps,
    Circumstances,
    Task,
    Wish,
    error_unreachable,
    fewest_of,
    needs_more_epsilon,
    steps_of,
    unreachable,
)
from shuffledp.questions.frequency import Frequency
from shuffledp.questions.mean import Mean
from shuffledp.questions.question import WEIGHTS, Weights
from shuffledp.randomizers.base import RandomizerLaw
from shuffledp.setting import Seen

_STEPS = 40
_TURNS = 5
"""Largest number of alternations between choosing shapes and levels, from each start."""
_MOST_STARTS = 6
_SLACKS = (0.0, 1e-6, 1e-4, 1e-2, 0.05, 0.2, 0.5)
"""Fractions by which the target epsilon is lowered in search of levels that stay certified in their own shape."""
_GUARANTEE_TOLERANCE = 1.01
_FIT_TOLERANCE = 1.005


def smallest_error(task: Task, wish: Wish) -> Bucketing:
    """Return the levels of local budgets with the smallest predicted error among those that meet the target.

    Parameters
    ----------
    task : Task
        A task whose levels are seen, or are revealed by the reports.
    wish : Wish
        The central epsilon and delta that every level must keep.

    Raises
    ------
    InvalidInput
        If no levels meet the target, or every report is longer than the task allows.
    NotConverged
        If the search found levels, but the certificate of each exceeds the target.
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
    """Return roundings from alternating choices of levels and shapes, started at several caps."""
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
    """Return the caps to start from: none and, if shapes depend on budgets, changes of shape below a common budget."""
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
    """Return the levels chosen for one shape; None if none is allowed."""
    own = task.budgets
    if wish.epsilon < math.inf:
        values = np.union1d(values, steps_of(wish, float(values[-1])))
    fewest = fewest_of(wish, family, common_delta(own), values, own.epsilons, own.n)
    chosen = task.levels_for(values, fewest, own, family)
    return None if chosen is None else _fitted(task, chosen, wish, family)


def _fitted(task: Task, levels: FloatArray, wish: Wish, family: Family) -> FloatArray:
    """Return the levels, each moved up while its users stay in it and it is certified, else down until it is."""
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
    """Return levels with the smallest certified epsilon among those with a predicted error of at most `error`.

    Parameters
    ----------
    task : Task
        A task whose levels are seen, or are revealed by the reports.
    error : float
        The wanted standard error.
    within : float
        Largest central epsilon that is accepted, nats; inf: any.

    Returns
    -------
    Bucketing
        Its epsilon is within about 1 % of the smallest target for which `smallest_error` reaches the error.

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


Goal = Literal["error", "guarantee"]
PLANNED_SEEN: tuple[Seen, ...] = ("reports", "levels", "sum")
MOST_LEVELS = 64
_TARGET_SLACKS = (0.0, 1e-6, 1e-4, 1e-2)
"""Parts of the wanted epsilon given up where a search saw fewer different budgets than there are."""


def bucket_budgets(
    budgets: Budgets,
    question: Frequency | Mean,
    *,
    guess: Guess = NO_GUESS,
    mechanism: str,
    seen: Seen,
    delta: float,
    goal: Goal = "error",
    target: float = math.inf,
    levels: int | None = None,
    weights: Weights = "population",
    drop_below: float = 0.0,
    around: Circumstances = ONCE,
    max_bytes: int | None = None,
    within: float = math.inf,
) -> Bucketing:
    """Choose public levels, and return the rule that rounds budgets down to them.

    Parameters
    ----------
    budgets : Budgets
        Everybody's own budget, public; one delta0 for all.
    question : Frequency or Mean
        The question, as for `release`.
    guess : Guess
        Guess about the records, for the predicted error; default: the records with the largest error.
    mechanism : str
        One of ``question.mechanisms`` but ``"rr"``: ``"krr"`` of two categories is the same.
    seen : {"reports", "levels", "sum"}
        What the analyzer will see.
    delta : float
        Central delta, in (0, 1).
    goal : {"error", "guarantee"}
        "error": the smallest predicted error with a certified central epsilon of at most `target`.
        "guarantee": the smallest certified central epsilon with a predicted error of at most `target`.
    target : float
        Target of the other quantity, positive; with goal "error" it may be inf.
    levels : int, optional
        Largest number of levels, from 1 to 64. Default: 8 where levels are visible; where they are withheld, budgets
        are only capped.
    weights : {"population", "precision"}
        How visible levels are combined.
    drop_below : float
        Users with a smaller budget take no part (and hide nobody). Default 0: everybody takes part.
    around : Circumstances
        Rounds, and the users that the guarantee relies on; the error is that of one round in which all report, the
        dummies' variance included.
    max_bytes : int, optional
        Largest size of a report in bytes, at least 1; default: any.
    within : float
        With goal "guarantee": largest certified central epsilon. Default: any.

    Returns
    -------
    Bucketing
        Its guarantee is certified for the rounded population. Of the error, the choice is the best among levels
        at up to about 200 of the budgets (see `shuffledp.planning.question`), each with its certified company.

    Raises
    ------
    InvalidInput
        If a value is out of range, or the target cannot be met.

    Examples
    --------
    >>> own = Budgets.of([0.5] * 5000 + [0.9, 1.1, 4.0])
    >>> found = bucket_budgets(own, Mean(0, 1), mechanism="one-bit", seen="levels", delta=1e-6, target=0.3)
    >>> found.certified_epsilon <= 0.3
    True
    """
    _check(goal, target, levels, weights, seen, drop_below)
    check_bytes(max_bytes)
    asked = PlannedQuestion(question, guess)
    choice(mechanism, "mechanism", asked.mechanisms)
    staying = who_stays(budgets, drop_below)
    common_delta(budgets)
    most = levels if levels is not None or seen != "levels" else DEFAULT_LEVELS
    shown = weights if seen == "levels" else None
    dropped = budgets.n - staying.n
    task = Task(
        staying, asked, mechanism, seen, shown, most, check_delta(delta), around, drop_below, dropped, max_bytes
    )
    found: list[Bucketing] = []
    refusals: list[Exception] = []
    for search in _searches(task):
        try:
            found.append(search(task, goal, float(target), float(within)))
        except (InvalidInput, NotConverged) as refusal:
            refusals.append(refusal)
    if not found:
        raise refusals[0]
    by_error = goal == "error"
    return min(found, key=lambda one: one.prediction.standard_error if by_error else one.certified_epsilon)


def _searches(task: Task) -> list[Callable[[Task, Goal, float, float], Bucketing]]:
    """Return the searches, of whose results the best is chosen.

    With one level there is nothing to cut: only a cap is searched for, also where it is shown. Where reports reveal
    their sender's budget although levels are withheld (no mixture family), a level with few users needs others as if
    levels were shown, so both searches are used.
    """
    if task.budgets.levels == 1:
        return [_cap]
    if task.seen == "levels":
        return [_cut]
    family = task.family(task.budgets)
    alone = isinstance(family, RandomizerLaw) and not family.mixture
    return [_cap, _cut] if alone and task.seen == "reports" else [_cap]


def _cut(task: Task, goal: Goal, target: float, within: float) -> Bucketing:
    """Return the best rounding to levels each of which is certified by itself."""
    if goal == "error":
        return smallest_error(task, task.wish(target))
    return smallest_guarantee(task, target, within)


def _cap(task: Task, goal: Goal, target: float, within: float) -> Bucketing:
    """Return the best cap, lowered further where the certificate of the whole population requires it."""
    if goal == "guarantee":
        found = caps.smallest_guarantee(task, target, within)
        if found.certified_epsilon > within:
            raise needs_more_epsilon(target, within)
        return found
    tried: list[float] = []
    for slack in _TARGET_SLACKS:
        found = caps.smallest_error(task, task.wish(target * (1.0 - slack)))
        if found.certified_epsilon <= target:
            return found
        tried.append(found.certified_epsilon)
    raise NotConverged(f"no cap was found that is certified at epsilon = {target:g}; the best has {min(tried):g}")


def _check(goal: str, target: float, levels: int | None, weights: str, seen: str, drop_below: float) -> None:
    for what, value, known in (
        ("goal", goal, ("error", "guarantee")),
        ("weights", weights, WEIGHTS),
        ("seen", seen, PLANNED_SEEN),
    ):
        choice(value, what, known)
    if not target > 0.0 or (goal == "guarantee" and target == math.inf):
        raise InvalidInput(f"target must be a positive number; got {shown(target)}")
    check_rounding(levels, drop_below)


def check_bytes(max_bytes: int | None) -> None:
    """Refuse a largest size of reports that is not a positive whole number of bytes."""
    if max_bytes is not None:
        whole_number(max_bytes, "max_bytes must be a whole number of bytes", 1)


def check_rounding(levels: int | None, drop_below: float) -> None:
    """Refuse a number of levels, or a smallest budget, outside its range."""
    if levels is not None:
        whole_number(levels, "levels", 1, MOST_LEVELS)
    if not 0.0 <= drop_below <= MAX_EPSILON0:
        raise InvalidInput(f"drop_below must be a budget from 0 to 700; got {shown(drop_below)}")


def who_stays(budgets: Budgets, drop_below: float) -> Budgets:
    """Return the population without the users whose budget is below ``drop_below``, or refuse if nobody is left."""
    kept = budgets.epsilons >= drop_below
    if not kept.any():
        raise InvalidInput(
            f"drop_below must be at most the largest budget, {budgets.epsilons[-1]:g}, or nobody would take part; "
            f"got {drop_below:g}"
        )
    return Budgets(budgets.epsilons[kept], budgets.counts[kept], budgets.deltas[kept])
