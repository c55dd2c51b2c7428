"""Error against central epsilon: one way of asking, at smaller and larger budgets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shuffledp.errors import Refused, attempt
from shuffledp.planning.question import PlannedQuestion
from shuffledp.planning.rule import Bucketing
from shuffledp.planning.target import Wish, scaled, stand_in

FACTORS = tuple(float(factor) for factor in np.geomspace(1.0 / 8.0, 8.0, 13))


@dataclass(frozen=True)
class Point:
    """A point of the curve.

    Parameters
    ----------
    factor : float
        On every budget of the plan.
    epsilon : float
        Certified central epsilon of the worst level (of more than 64 levels: with budgets rounded up to 64).
    standard_error : float
        Predicted.
    """

    factor: float
    epsilon: float
    standard_error: float


def error_curve(
    rule: Bucketing, question: PlannedQuestion, wish: Wish, factors: tuple[float, ...] = FACTORS
) -> tuple[Point, ...]:
    """Predict and certify the rule's budgets times each factor, up to budgets of 700.

    Parameters
    ----------
    rule : Bucketing
        The chosen way.
    question : PlannedQuestion
        What is asked.
    wish : Wish
        Its delta and circumstances.
    factors : tuple of float
        Positive, ascending.
    """
    found: list[Point] = []
    few = rule.budgets if rule.seen == "levels" else stand_in(rule.budgets, rule.family)

    def at(factor: float) -> Point:
        population = scaled(rule.budgets, factor)
        family = question.family(rule.mechanism, population, rule.seen)
        error = question.predict(family, population, rule.weights, wish.around.dummies).standard_error
        return Point(factor, wish.certified(scaled(few, factor), family, rule.seen), error)

    for factor in factors:
        point = attempt(lambda factor=factor: at(factor))
        if not isinstance(point, Refused):
            found.append(point)
    return tuple(found)
