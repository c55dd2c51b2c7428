"""What an answer will be worth, before anybody is invited: half-widths, people needed, the cost of dummies and junk."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shuffledp.collection.estimates import (
    FALSE_LEVELS,
    JUNK,
    predicted_half_width,
    predicted_variance,
    scaled_counts,
    shift_of_future_junk,
    shift_of_levels,
    slopes_of,
    width_of,
)
from shuffledp.collection.task import Draft

MISS = 0.05
"""The chance that an interval misses: 95 % intervals are promised and printed."""
Z95 = 1.959963984540054
"""Half-width of a normal 95 % interval in standard errors; what is promised starts its search there."""
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
    """Return half the length of the 95 % interval that will be printed, in the answer's unit, at the worst answers.

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
        At most half the range, which says nothing; inf if nobody answers.
    """
    if not sum(counts):
        return math.inf
    question, known = draft.questions[place], slopes_of(draft, place)
    return width_of(question) * predicted_half_width(question, known, counts, MISS, dummies=dummies)


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
    """Return the least number of people, mixed as planned, whose half-width is as wanted, up to half a per cent.

    The normal law says about how many; laws themselves are inverted around that number.
    """
    question, known = draft.questions[place], slopes_of(draft, place)
    share = wanted / width_of(question)

    def normal(people: int) -> bool:
        return Z95 * math.sqrt(predicted_variance(question, known, scaled_counts(mix, people))) <= share

    def printed(people: int) -> bool:
        return half_width(draft, place, scaled_counts(mix, people)) <= wanted

    if not normal(MOST):
        return None
    about = least_number(normal, 0, MOST)
    low, high = about - about // 20 - 1, about + about // 20 + 1
    while not printed(high):
        low, high = high, high + high // 5 + 1
    return least_number(printed, max(low, 0), high)


def least_number(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return about the least whole number for which a condition holds; it holds at `high`."""
    while high - low > max(1, high // 200):
        middle = (low + high) // 2 if low else math.isqrt(high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
