"""What an answer will be worth, before anybody is invited: half-widths, people needed, the cost of dummies and junk."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shuffledp.budgets import Budgets
from shuffledp.collection.dummies import ones_moments
from shuffledp.collection.estimates import (
    FALSE_LEVELS,
    JUNK,
    scaled_counts,
    shift_of_future_junk,
    shift_of_levels,
    slopes_of,
    width_of,
)
from shuffledp.collection.task import Draft
from shuffledp.planning.error import Moments, predict
from shuffledp.randomizers.numeric import OneBit

Z95 = 1.959963984540054
"""Half-width of a 95 % interval in standard errors."""
POINTS = 0.05
"""The half-width for which the people needed are told, as a share of the range."""
MOST = 10**9


@dataclass(frozen=True)
class Price:
    """What the answer to one question will be worth, at the worst answers.

    Parameters
    ----------
    planned : float
        Half-width of a 95 % interval if as many people as planned answer, in the answer's unit.
    at_least : float
        The same for the fewest people for whom the batch is handed over.
    for_five_points : int or None
        People, mixed as planned, for a half-width of 5 % of the range; None beyond 10^9.
    widening : float
        By which factor the dummies widen the interval at the planned number.
    junk_shift : float
        The most by which 5 % of junk can shift the answer, in its unit, whichever level the junk chooses.
    level_shift : tuple of float
        The most by which the answer shifts if 1, 5 and 10 % of the people are counted at another level than theirs.
    """

    planned: float
    at_least: float
    for_five_points: int | None
    widening: float
    junk_shift: float
    level_shift: tuple[float, ...]


def prices(draft: Draft) -> tuple[Price, ...]:
    """Tell what the answers to a draft's questions will be worth.

    Parameters
    ----------
    draft : Draft
        What is asked; the mix of levels is the planned one.
    """
    mix = [level.planned for level in draft.levels]
    if not sum(mix):
        mix = [1] * len(draft.levels)
    return tuple(_price(draft, place, mix) for place in range(len(draft.questions)))


def half_width(draft: Draft, place: int, counts: Sequence[int], *, dummies: bool = True) -> float:
    """Return the expected half-width of a 95 % interval, in the answer's unit, at the worst answers.

    Parameters
    ----------
    draft : Draft
        What is asked.
    place : int
        The question, from 0.
    counts : sequence of int
        People per level.
    dummies : bool
        Whether the dummies' variance is counted.

    Returns
    -------
    float
        inf if nobody answers.
    """
    question, known = draft.questions[place], slopes_of(draft, place)
    present = [(budget, n) for budget, n in zip(known.budgets, counts, strict=True) if n]
    if not present:
        return math.inf
    family, width = question.family.library(question.low, question.high), width_of(question)
    people = Budgets(tuple(budget for budget, _ in present), tuple(n for _, n in present))
    moments = Moments() if isinstance(family, OneBit) else Moments(binary=True)
    variance = predict(family, people, None, moments, width).standard_error ** 2
    if dummies:
        total = known.mean(counts) * sum(counts)
        variance += width**2 * _variance(draft, place) / total**2
    return Z95 * math.sqrt(variance)


def _variance(draft: Draft, place: int) -> float:
    """Variance of the number of dummies that support one answer."""
    question = draft.questions[place]
    if question.family.reports == 2:
        return float(ones_moments(question.dummies)[1])
    share = float(question.family.own_share)
    return question.dummies.count * share * (1.0 - share)


def _price(draft: Draft, place: int, mix: Sequence[int]) -> Price:
    question = draft.questions[place]
    planned = half_width(draft, place, mix)
    return Price(
        planned=planned,
        at_least=half_width(draft, place, scaled_counts(mix, draft.at_least)),
        for_five_points=_people_for(draft, place, mix, POINTS * width_of(question)),
        widening=planned / half_width(draft, place, mix, dummies=False),
        junk_shift=shift_of_future_junk(slopes_of(draft, place), mix, JUNK, width_of(question)),
        level_shift=tuple(shift_of_levels(draft, place, mix, share, told=False) for share in FALSE_LEVELS),
    )


def _people_for(draft: Draft, place: int, mix: Sequence[int], wanted: float) -> int | None:
    """Return the least number of people, mixed as planned, whose half-width is as wanted; by bisection."""
    if half_width(draft, place, scaled_counts(mix, MOST)) > wanted:
        return None
    low, high = 0, MOST
    while high - low > max(1, high // 1000):
        middle = (low + high) // 2 if low else int(np.sqrt(high))
        if half_width(draft, place, scaled_counts(mix, middle)) <= wanted:
            high = middle
        else:
            low = middle
    return high
