"""One rounding of budgets to be chosen: what is asked, of whom, and what every search over roundings needs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray
from shuffledp.planning.cells import common_delta
from shuffledp.planning.error import Prediction, predict, user_terms
from shuffledp.planning.partition import Candidates, best_levels
from shuffledp.planning.question import Family, PlannedQuestion
from shuffledp.planning.rule import Bucketing, report_bytes
from shuffledp.planning.target import Circumstances, Wish
from shuffledp.questions.task import Weights
from shuffledp.setting import Seen

DEFAULT_LEVELS = 8
"""Visible levels, if not stated."""


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
    delta : float
        Central delta.
    around : Circumstances
        What the guarantee must hold for.
    max_bytes : int or None
        A report may have at most so many bytes; None: any number.
    """

    budgets: Budgets
    question: PlannedQuestion
    mechanism: str
    seen: Seen
    weights: Weights | None
    most: int | None
    delta: float
    around: Circumstances
    drop_below: float
    dropped: int
    max_bytes: int | None = None

    def wish(self, epsilon: float) -> Wish:
        """Return the wanted guarantee with this epsilon; inf: no wish."""
        return Wish(epsilon, self.delta, self.around)

    def family(self, budgets: Budgets) -> Family:
        """Return the randomizer that the pipeline runs for these budgets: its shape follows them."""
        return self.question.family(self.mechanism, budgets, self.seen)

    def predict(self, rounded: Budgets, family: Family) -> Prediction:
        """Predict the standard error for a rounded population."""
        return self.question.predict(family, rounded, self.weights, self.around.dummies)

    def fits(self, family: Family) -> bool:
        """Tell whether a report is short enough."""
        return self.max_bytes is None or report_bytes(family) <= self.max_bytes

    def too_long(self, family: Family) -> InvalidInput:
        """Return the refusal where no rounding makes reports short enough; the family is one that was tried."""
        return InvalidInput(
            f"a report of {self.mechanism} has {report_bytes(family)} bytes, more than the {self.max_bytes} allowed"
        )

    def levels_for(self, values: FloatArray, fewest: FloatArray, own: Budgets, family: Family) -> FloatArray | None:
        """Choose the levels of the smallest error among `values` (dynamic programme); None if none is allowed.

        Parameters
        ----------
        values : ndarray
            Ascending candidates.
        fewest : ndarray
            How many users a level at each candidate needs; inf: it is not allowed.
        own : Budgets
            The population to be rounded.
        family : Family
            The randomizer.
        """
        at = predict(family, own, self.weights, self.question.moments)
        terms = user_terms(family, values, common_delta(own), self.weights, at)
        through = np.concatenate([[0], np.cumsum(own.counts)])
        below = through[np.append(np.searchsorted(own.epsilons, values, side="left"), own.levels)]
        chosen = best_levels(Candidates(values, below, fewest, terms), self.most or DEFAULT_LEVELS)
        return None if chosen is None else values[chosen]

    def finish(self, levels: FloatArray | None, cap: float, rounded: Budgets) -> Bucketing:
        """Predict and certify the population as it will be.

        Parameters
        ----------
        levels, cap
            As in `Bucketing`.
        rounded : Budgets
            The population after rounding.
        """
        family = self.family(rounded)
        return Bucketing(
            levels, cap, self.drop_below, self.dropped, rounded, self.mechanism, family, self.seen, self.weights,
            self.predict(rounded, family), self.wish(math.inf).certified(rounded, family, self.seen), self.delta,
            self.around,
        )  # fmt: skip


def unreachable(wish: Wish) -> InvalidInput:
    """Return the refusal where even the smallest budgets are not certified."""
    return InvalidInput(
        f"no rounding of the budgets is certified at epsilon = {wish.epsilon:g}, delta = {wish.delta:g}; raise epsilon "
        "or delta, or lower delta0"
    )


def needs_more_epsilon(error: float, within: float) -> InvalidInput:
    """Return the refusal of a standard error that needs a larger central epsilon than allowed."""
    return InvalidInput(f"a standard error of {error:g} needs a central epsilon above {within:g} this way")


def error_unreachable(error: float, best: float) -> InvalidInput:
    """Return the refusal of a standard error that all of everybody's budget does not reach."""
    return InvalidInput(
        f"the standard error cannot be brought to {error:g}: without any central target it is {best:g}; ask more "
        "users, larger budgets, or accept a larger error"
    )
