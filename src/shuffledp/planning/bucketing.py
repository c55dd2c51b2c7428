"""Few public levels for many budgets: everybody is rounded down, so that a level is company enough.

Where the analyzer sees levels (``seen="levels"``), only users of the own level hide a user, so a lonely budget is
hardly amplified. Where levels are withheld, all users hide each other, and what a central target asks for is a cap
on the largest budgets. Rounding down is always allowed: a user's report then keeps less than her budget. Levels are
chosen from public budgets alone; a choice that looked at records would leak.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from shuffledp.accounting import check_delta
from shuffledp.budgets import MAX_EPSILON0, Budgets
from shuffledp.errors import InvalidInput, NotConverged
from shuffledp.numerics.interval import FloatArray
from shuffledp.planning.cells import capped, common_delta, level_of, rounded_down, some_values
from shuffledp.planning.error import Prediction, predict, user_terms
from shuffledp.planning.partition import Candidates, best_levels
from shuffledp.planning.question import Family, Question, check_mechanism
from shuffledp.planning.rule import Bucketing
from shuffledp.planning.target import Wish, fewest_of, knots_of, largest_cap, ratio_of
from shuffledp.protocol.weights import WEIGHTS, Weights
from shuffledp.setting import Seen

Goal = Literal["error", "guarantee"]
PLANNED_SEEN: tuple[Seen, ...] = ("reports", "levels", "sum")
MOST_LEVELS = 64
DEFAULT_LEVELS = 8
"""Visible levels, if not stated."""
_STEPS = 40
_GUARANTEE_TOLERANCE = 1.01
_CAP_TOLERANCE = 1e-3
_RAISE_TOLERANCE = 1.005


def bucket_budgets(
    budgets: Budgets,
    question: Question,
    *,
    mechanism: str,
    seen: Seen,
    delta: float,
    goal: Goal = "error",
    target: float = math.inf,
    levels: int | None = None,
    weights: Weights = "population",
    drop_below: float = 0.0,
    rounds: int = 1,
) -> Bucketing:
    """Choose public levels to which budgets are rounded down.

    Parameters
    ----------
    budgets : Budgets
        Everybody's own budget, public; one delta0 for all.
    question : FrequencyQuestion or MeanQuestion
        What is asked.
    mechanism : str
        One of ``question.mechanisms``.
    seen : {"reports", "levels", "sum"}
        What the analyzer will see.
    delta : float
        Central delta, in (0, 1).
    goal : {"error", "guarantee"}
        "error": the smallest predicted error with a certified central epsilon of at most `target`.
        "guarantee": the smallest certified central epsilon with a predicted error of at most `target`.
    target : float
        Positive; of goal "error" it may be inf.
    levels : int, optional
        At most so many, from 1 to 64. Default: 8 where levels are visible; where they are withheld, budgets are
        only capped.
    weights : {"population", "precision"}
        How visible levels are combined.
    drop_below : float
        Users with a smaller budget take no part (and hide nobody). Default 0: everybody does.
    rounds : int
        As in `Setting`; the error is that of one round.

    Returns
    -------
    Bucketing
        Its guarantee is certified for the rounded population. Of the error, the choice is the best among levels
        at up to about 200 of the budgets (see `shuffledp.planning.partition`), each with its certified company.

    Raises
    ------
    InvalidInput
        If a value is out of range, or the target cannot be met.

    Examples
    --------
    >>> from shuffledp.planning.question import MeanQuestion
    >>> own = Budgets.of([0.5] * 5000 + [0.9, 1.1, 4.0])
    >>> found = bucket_budgets(own, MeanQuestion(0, 1), mechanism="one-bit", seen="levels", delta=1e-6, target=0.3)
    >>> found.certified_epsilon <= 0.3
    True
    """
    _check(goal, target, levels, weights, seen, drop_below)
    check_mechanism(mechanism, question.mechanisms)
    staying = who_stays(budgets, drop_below)
    common_delta(budgets)
    most = levels if levels is not None or seen != "levels" else DEFAULT_LEVELS
    shown = weights if seen == "levels" else None
    wish = Wish(math.inf, check_delta(delta), rounds)
    task = Task(staying, question, mechanism, seen, shown, most, wish, drop_below, budgets.n - staying.n)
    return task.smallest_error(float(target)) if goal == "error" else task.smallest_guarantee(float(target))


@dataclass(frozen=True, eq=False)
class Task:
    """One choice of levels; the parameters are those of `bucket_budgets`, checked.

    Parameters
    ----------
    budgets : Budgets
        Of those who take part.
    question, mechanism, seen, weights, drop_below, dropped
        As in `Bucketing`.
    most : int or None
        Levels at most; None: cap only.
    wish : Wish
        Its delta and rounds.
    """

    budgets: Budgets
    question: Question
    mechanism: str
    seen: Seen
    weights: Weights | None
    most: int | None
    wish: Wish
    drop_below: float
    dropped: int

    def smallest_error(self, epsilon: float) -> Bucketing:
        """Find the smallest predicted error at a certified central epsilon; see `bucket_budgets`."""
        tried: list[float] = []
        for slack in (0.0, 1e-6, 1e-4, 1e-2):  # a shape of report that follows the rounded budgets may cost a little
            wish = replace(self.wish, epsilon=epsilon * (1.0 - slack))
            found = self._visible(wish) if self.seen == "levels" else self._withheld(wish)
            if found.certified_epsilon <= epsilon:
                return found
            tried.append(found.certified_epsilon)
        raise NotConverged(
            f"no levels were found that are certified at epsilon = {epsilon:g}; the best have {min(tried):g}"
        )

    def smallest_guarantee(self, error: float) -> Bucketing:
        """Find the smallest certified central epsilon at a predicted error; see `bucket_budgets`."""
        best = self.smallest_error(math.inf)
        if not best.prediction.standard_error <= error:
            raise InvalidInput(
                f"the standard error cannot be brought to {error:g}: without any central target it is "
                f"{best.prediction.standard_error:g}; ask more users, larger budgets, or accept a larger error"
            )
        return self._least_epsilon(best, error) if self.seen == "levels" else self._least_cap(best, error)

    def _least_epsilon(self, best: Bucketing, error: float) -> Bucketing:
        """Bisect the central target of visible levels."""
        low, high = 0.0, best.certified_epsilon
        for _ in range(_STEPS):
            if high <= low * _GUARANTEE_TOLERANCE or high < 1e-12:
                break
            middle = math.sqrt(low * high) if low > 0.0 else high / 4.0
            try:
                found = self.smallest_error(middle)
            except InvalidInput:
                low = middle
                continue
            if found.prediction.standard_error <= error:
                best, high = found, min(found.certified_epsilon, middle)
            else:
                low = middle
        return best

    def _least_cap(self, best: Bucketing, error: float) -> Bucketing:
        """Bisect the cap of withheld levels; what they leak falls with it."""
        low, high = 0.0, float(self.budgets.epsilons[-1])
        for _ in range(_STEPS):
            if high <= low * (1.0 + _CAP_TOLERANCE) or high < 1e-12:
                break
            middle = math.sqrt(low * high) if low > 0.0 else high / 4.0
            _, rounded = self._cut(middle)
            good = self._predict(rounded).standard_error <= error
            low, high = (low, middle) if good else (middle, high)
        if high >= float(self.budgets.epsilons[-1]):
            return best
        levels, rounded = self._cut(high)
        return self._finish(levels, high, rounded)

    def _withheld(self, wish: Wish) -> Bucketing:
        """Cap the largest budgets, and then cut what is left into levels if levels are wanted."""
        cap, family = math.inf, self._family(self.budgets)
        for _ in range(2):  # the shape of reports may follow the capped budgets
            cap = largest_cap(wish, self.budgets, family, self.seen)
            if cap == 0.0:
                raise _unreachable(wish)
            before, family = family, self._family(capped(self.budgets, cap))
            if family == before:
                break
        levels, rounded = self._cut(cap)
        return self._finish(levels, cap, rounded)

    def _cut(self, cap: float) -> tuple[FloatArray | None, Budgets]:
        """Levels (None: all that there are), and the population, of withheld budgets up to the cap."""
        lowered = capped(self.budgets, cap)
        if self.most is None or lowered.levels <= self.most:
            return None, lowered
        values = some_values(lowered)
        levels = self._choose(values, np.ones_like(values), lowered, self._family(lowered))
        if levels is None:
            raise InvalidInput("no level carries information; give some users a budget above 0")
        return levels, rounded_down(lowered, levels)

    def _visible(self, wish: Wish) -> Bucketing:
        """Choose levels of which each is certified by itself."""
        own, family = self.budgets, self._family(self.budgets)
        if own.levels <= (self.most or DEFAULT_LEVELS) and wish.holds(wish.setting(own, family, "levels")):
            return self._finish(None, math.inf, own)
        values = some_values(own)
        if wish.epsilon < math.inf:
            values = np.union1d(values, knots_of(wish, float(values[-1]), ratio_of(family)))
        levels = values
        for _ in range(2):  # the shape of reports may follow the rounded budgets
            fewest = fewest_of(wish, family, common_delta(own), values, own.epsilons, own.n)
            chosen = self._choose(values, fewest, own, family)
            if chosen is None:
                raise _unreachable(wish)
            levels, before = self._raised(chosen, wish, family), family
            family = self._family(rounded_down(own, levels))
            if family == before:
                break
        return self._finish(levels, math.inf, rounded_down(own, levels))

    def _choose(self, values: FloatArray, fewest: FloatArray, own: Budgets, family: Family) -> FloatArray | None:
        """Ask the dynamic programme."""
        at = predict(family, own, self.weights, self.question.moments)
        terms = user_terms(family, values, common_delta(own), self.weights, at)
        through = np.concatenate([[0], np.cumsum(own.counts)])
        below = through[np.append(np.searchsorted(own.epsilons, values, side="left"), own.levels)]
        chosen = best_levels(Candidates(values, below, fewest, terms), self.most or DEFAULT_LEVELS)
        return None if chosen is None else values[chosen]

    def _raised(self, levels: FloatArray, wish: Wish, family: Family) -> FloatArray:
        """Raise each level as far as nobody leaves it and it stays certified."""
        own, delta0 = self.budgets, common_delta(self.budgets)
        found = levels.copy()
        at = level_of(own.epsilons, levels)
        for g in range(levels.size):
            members = at == g
            low, high, users = float(levels[g]), float(own.epsilons[members][0]), int(own.counts[members].sum())

            def holds(value: float, users: int = users) -> bool:
                return wish.holds(wish.setting(Budgets([value], [users], [delta0]), family, "levels"))

            if high > low and holds(high):
                low = high
            while high > low * _RAISE_TOLERANCE:
                middle = math.sqrt(low * high) if low > 0.0 else high / 2.0
                if middle < 1e-9:
                    break
                low, high = (middle, high) if holds(middle) else (low, middle)
            found[g] = low
        return found

    def _family(self, budgets: Budgets) -> Family:
        return self.question.family(self.mechanism, budgets, self.seen)

    def _predict(self, rounded: Budgets) -> Prediction:
        question = self.question
        return predict(self._family(rounded), rounded, self.weights, question.moments, question.width)

    def _finish(self, levels: FloatArray | None, cap: float, rounded: Budgets) -> Bucketing:
        """Predict and certify the population as it will be."""
        family = self._family(rounded)
        prediction = self._predict(rounded)
        epsilon = self.wish.certified(rounded, family, self.seen)
        return Bucketing(
            levels, cap, self.drop_below, self.dropped, rounded, self.mechanism, family, self.seen, self.weights,
            prediction, epsilon, self.wish.delta, self.wish.rounds,
        )  # fmt: skip


def _unreachable(wish: Wish) -> InvalidInput:
    return InvalidInput(
        f"no rounding of the budgets is certified at epsilon = {wish.epsilon:g}, delta = {wish.delta:g}; raise epsilon "
        "or delta, or lower delta0"
    )


def _check(goal: str, target: float, levels: int | None, weights: str, seen: str, drop_below: float) -> None:
    for what, value, known in (
        ("goal", goal, ("error", "guarantee")),
        ("weights", weights, WEIGHTS),
        ("seen", seen, PLANNED_SEEN),
    ):
        if value not in known:
            raise InvalidInput(f"{what} must be one of {', '.join(known)}; got {value!r}")
    if not target > 0.0 or (goal == "guarantee" and target == math.inf):
        raise InvalidInput(f"target must be a positive number; got {target!r}")
    check_rounding(levels, drop_below)


def check_rounding(levels: int | None, drop_below: float) -> None:
    """Refuse a number of levels, or a smallest budget, outside its range."""
    if levels is not None and not 1 <= levels <= MOST_LEVELS:
        raise InvalidInput(f"levels must be from 1 to {MOST_LEVELS}; got {levels!r}")
    if not 0.0 <= drop_below <= MAX_EPSILON0:
        raise InvalidInput(f"drop_below must be a budget from 0 to 700; got {drop_below!r}")


def who_stays(budgets: Budgets, drop_below: float) -> Budgets:
    """Return those who take part, or raise InvalidInput if nobody does."""
    kept = budgets.epsilons >= drop_below
    if not kept.any():
        raise InvalidInput(
            f"drop_below must be at most the largest budget, {budgets.epsilons[-1]:g}, or nobody would take part; "
            f"got {drop_below:g}"
        )
    return Budgets(budgets.epsilons[kept], budgets.counts[kept], budgets.deltas[kept])
