"""The ball dummies of a task (docs/theorems/ball.md): one joint law for all columns, found, certified and read.

A promise is kept or not by one comparison of rational numbers, with the slack of `agreement`; so every machine decides
alike, and the survey page too (page/ball.js).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from shuffledp.accounting import BallFloor
from shuffledp.ball import BallDummies, Column
from shuffledp.collection.agreement import FLOOR_SLACK
from shuffledp.collection.asked import Dummies
from shuffledp.collection.draw import WHOLE, Family
from shuffledp.collection.task import Draft
from shuffledp.errors import InvalidInput

NEAR = 1e-9
"""Relative distance to which a certified epsilon is searched."""
FARTHEST = 700.0


def column_of(family: Family) -> Column:
    """Return a column of a task as the law of its dummies knows it."""
    if family.kind == "hadamard":
        raise InvalidInput(f"ball dummies are for choices and bits; {family.name} has neither: leave the family out")
    return Column("bits", family.pieces) if family.kind == "bits" else Column("choice", family.reports)


def ball_of(draft: Draft) -> BallDummies:
    """Return the law of a task's dummies.

    Parameters
    ----------
    draft : Draft
        Of version 2.
    """
    dummies = draft.columns[0].dummies
    columns = tuple(column_of(column.family) for column in draft.columns)
    centres = tuple(column.dummies.count // column.family.cells for column in draft.columns)
    return _ball(columns, dummies.draw, centres)


@lru_cache(maxsize=64)
def _ball(columns: tuple[Column, ...], radius: tuple[int, ...], centre: tuple[int, ...]) -> BallDummies:
    return BallDummies(columns, radius, centre)


def certified_epsilon(floor: BallFloor, delta: float, promise: float) -> float:
    """Return the least epsilon that is certified at a delta, up to `NEAR`; infinite beyond 700.

    Whether it is at most a promise, and whether at most `FLOOR_SLACK` above it, are comparisons of whole numbers, made
    first: so both agree with what another machine finds.

    Parameters
    ----------
    floor : BallFloor
        Of one level.
    delta : float
        In (0, 1).
    promise : float
        What the level is promised.
    """
    low, high, edge = 0.0, promise, promise * (1.0 + FLOOR_SLACK)
    while not floor.keeps(high, delta):
        low, high = high, edge if high < edge else 2.0 * high
        if high > FARTHEST:
            return math.inf
    while high - low > NEAR * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if floor.keeps(middle, delta) else (middle, high)
    return high


def needed_ball(
    levels: Sequence[tuple[float, float]], families: Sequence[Family], delta: float, reports: int = 1
) -> BallDummies:
    """Find the law that keeps every level's promise with the least variance, and few dummies.

    Parameters
    ----------
    levels : sequence of (float, float)
        Local budget of each report, and promise over all columns, of each level.
    families : sequence of Family
        One a column.
    delta : float
        Central delta of the promises.
    reports : {1, 2}
        Reports that one person may send to each column.

    Raises
    ------
    InvalidInput
        If a promise is too small.
    """
    columns = tuple(column_of(family) for family in families)
    wanted = [
        (promise * (1.0 - FLOOR_SLACK), tuple(Fraction(f.threshold(epsilon0), WHOLE) for f in families))
        for epsilon0, promise in levels
        if promise < epsilon0 * len(families) * reports
    ]
    if not wanted:
        return BallDummies(columns, (WHOLE,), (0,) * len(columns))
    return BallDummies.of_promise(columns, wanted, delta, reports)


def part_of(law: BallDummies, place: int) -> Dummies:
    """Return one column's dummies as a task knows them."""
    return Dummies("ball", law.rows[place], law.radius)


def single_ball(family: Family, dummies: Dummies) -> BallDummies:
    """Return the law of one column's dummies whatever the others': the same weights, and balls of its own."""
    return _ball((column_of(family),), dummies.draw, (dummies.count // family.cells,))
