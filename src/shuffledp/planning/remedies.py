"""What would meet a wanted error that is out of reach."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shuffledp.budgets import MAX_EPSILON0, Budgets
from shuffledp.errors import Refused, attempt
from shuffledp.planning.bucketing import Goal, bucket_budgets, who_stays
from shuffledp.planning.cells import rounded_down, some_values
from shuffledp.planning.question import PlannedQuestion
from shuffledp.planning.rule import Bucketing
from shuffledp.planning.target import Wish, scaled
from shuffledp.questions.task import Weights
from shuffledp.setting import Seen

MOST_USERS = 10**12
MOST_FACTOR = 2**12
"""Factors on the budgets that are tried; none brings a budget beyond the largest there is."""
_FEW = 24
_STEPS = 7
_CLOSE = 1.02


@dataclass(frozen=True)
class Way:
    """One way to ask.

    Parameters
    ----------
    mechanism : str
        The randomizer.
    seen : {"reports", "levels"}
        Levels withheld or shown.
    weights : {"population", "precision"} or None
        How visible levels are combined; None where they are withheld.
    """

    mechanism: str
    seen: Seen
    weights: Weights | None


@dataclass(frozen=True)
class Ask:
    """The parts of a plan that stay the same whichever way it is asked.

    Parameters
    ----------
    question : PlannedQuestion
        What is asked.
    wish : Wish
        The central target.
    levels : int or None
        As in `bucket_budgets`.
    drop_below : float
        As in `bucket_budgets`.
    max_bytes : int or None
        As in `bucket_budgets`.
    """

    question: PlannedQuestion
    wish: Wish
    levels: int | None
    drop_below: float
    max_bytes: int | None = None

    def bucket(self, budgets: Budgets, way: Way) -> Bucketing:
        """Round the budgets for the smallest error within the target."""
        return self._bucket(budgets, way, "error", self.wish.epsilon, math.inf)

    def least(self, budgets: Budgets, way: Way, error: float, within: float) -> Bucketing:
        """Round the budgets for the smallest certified epsilon, at most `within`, with that error."""
        return self._bucket(budgets, way, "guarantee", error, within)

    def _bucket(self, budgets: Budgets, way: Way, goal: Goal, target: float, within: float) -> Bucketing:
        return bucket_budgets(
            budgets,
            self.question.question,
            guess=self.question.guess,
            mechanism=way.mechanism,
            seen=way.seen,
            delta=self.wish.delta,
            goal=goal,
            target=target,
            levels=self.levels,
            weights=way.weights or "population",
            drop_below=self.drop_below,
            around=self.wish.around,
            max_bytes=self.max_bytes,
            within=within,
        )

    def staying(self, budgets: Budgets) -> Budgets:
        """Return those who take part."""
        return who_stays(budgets, self.drop_below)


@dataclass(frozen=True)
class Remedies:
    """Ways to the wanted error within the same central target, each predicted and certified.

    Of more than 24 different budgets, a first rounding down to about 24 is part of them.

    Parameters
    ----------
    users : int or None
        So many users in the same proportions meet the error, rounded for the larger population; found within 2 %
        of the fewest. None if the error is met, or 1e12 do not suffice.
    budget_factor : float or None
        Multiplying every budget by this meets the error, within 2 % of the smallest such factor. None if the error
        is met, or no factor up to 4,096 does: then the central target itself is in the way.
    """

    users: int | None = None
    budget_factor: float | None = None


def find_remedies(rule: Bucketing, budgets: Budgets, ask: Ask, error: float | None) -> Remedies:
    """Find what would meet the error.

    Parameters
    ----------
    rule : Bucketing
        The chosen way.
    budgets : Budgets
        The population as given.
    ask : Ask
        The question and its target.
    error : float or None
        The wanted standard error; None if none was stated.
    """
    if error is None or rule.prediction.standard_error <= error:
        return Remedies()
    small = budgets  # of very many budgets, a first rounding down is part of the remedy
    if budgets.levels > _FEW:
        small = rounded_down(ask.staying(budgets), some_values(ask.staying(budgets), _FEW))
    return Remedies(_users(rule, budgets, small, ask, error), _factor(rule, small, ask, error))


def _error_of(rule: Bucketing, budgets: Budgets, ask: Ask) -> float:
    """Error of the same way for another population, inf if it cannot be asked."""
    way = Way(rule.mechanism, rule.seen, rule.weights)
    found = attempt(lambda: ask.bucket(budgets, way).prediction.standard_error)
    return math.inf if isinstance(found, Refused) else found


def _users(rule: Bucketing, budgets: Budgets, small: Budgets, ask: Ask, error: float) -> int | None:
    """So many users meet the error: as many as at the present levels, or fewer with levels of their own."""
    high = (rule.prediction.standard_error / error) ** 2 * (1.0 + 1e-9)
    if high * budgets.n > MOST_USERS:
        return None
    low = 1.0
    if rule.rounds_budgets:
        for _ in range(_STEPS):
            if high <= low * _CLOSE:
                break
            middle = math.sqrt(low * high)
            low, high = (low, middle) if _error_of(rule, _more(small, middle), ask) <= error else (middle, high)
    return math.ceil(high * budgets.n)


def _more(budgets: Budgets, factor: float) -> Budgets:
    return Budgets(budgets.epsilons, np.ceil(budgets.counts * factor).astype(np.int64), budgets.deltas)


def _factor(rule: Bucketing, small: Budgets, ask: Ask, error: float) -> float | None:
    """Smallest factor on the given budgets that meets the error, or None."""
    positive = small.epsilons[small.epsilons > 0.0]
    low, high = 1.0, 2.0
    top = MAX_EPSILON0 / float(positive[0])
    while _error_of(rule, scaled(small, high), ask) > error:
        if high >= min(top, MOST_FACTOR):
            return None
        low, high = high, min(high * 4.0, top)
    for _ in range(_STEPS):
        if high <= low * _CLOSE:
            break
        middle = math.sqrt(low * high)
        low, high = (low, middle) if _error_of(rule, scaled(small, middle), ask) <= error else (middle, high)
    return high
