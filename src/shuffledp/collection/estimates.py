"""Estimates from the rows of people and dummies together.

A uniform dummy is a report of budget 0, so the library's analyzer subtracts the dummies' mean and adds their variance
when they are counted as people of that level. Two things differ. The population whose share is estimated has n people,
not n + m, which enters the variance where the weights of people differ; and the number of ones among dummies of another
law has another variance than m/4. Both are put right here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.asked import Dummies, Question
from shuffledp.collection.draw import WHOLE, Family
from shuffledp.collection.dummies import ones_law, ones_moments
from shuffledp.collection.task import Draft
from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray
from shuffledp.questions.count_laws import Added, CountEstimate, CountLaw
from shuffledp.questions.estimate import Estimate
from shuffledp.questions.frequency import frequency
from shuffledp.questions.mean import mean
from shuffledp.questions.shuffler import ShuffledReports
from shuffledp.randomizers.numeric import OneBit

JUNK = 0.05
"""Share of junk whose effect is told beforehand."""


@dataclass(frozen=True)
class Slopes:
    """How strongly reports follow the answers: p - q of each level, as drawn.

    Parameters
    ----------
    budgets : tuple of float
        The budget at which the library draws as the task states.
    slopes : tuple of float
        Difference of the chances that a report supports an answer if it is the person's and if it is not.
    """

    budgets: tuple[float, ...]
    slopes: tuple[float, ...]

    def mean(self, counts: Sequence[int]) -> float:
        """Return the mean slope over people, `counts` of each level."""
        return sum(n * slope for n, slope in zip(counts, self.slopes, strict=True)) / max(sum(counts), 1)


def slopes_of(draft: Draft, place: int) -> Slopes:
    """Return the slopes of question `place` at each level."""
    family = draft.questions[place].family
    budgets = tuple(effective_budget(family, level.draw[place], level.epsilon0) for level in draft.levels)
    share = 0.5 if family.kind == "hadamard" else 1.0
    return Slopes(budgets, tuple(level.draw[place] / WHOLE * share for level in draft.levels))


def effective_budget(family: Family, keep: int, epsilon0: float) -> float:
    """Return the budget at which the library's threshold is `keep`: epsilon0 itself where the task took it from there.

    Else log(1 + K/(f (2^64 - K))), at which the library's threshold is K up to 2^-45 of itself.
    """
    if family.threshold(epsilon0) == keep:
        return epsilon0
    return float(np.log1p(float(Fraction(keep, WHOLE - keep) / family.own_share)))


def estimate_question(draft: Draft, place: int, reports: NDArray[np.int64], counts: Sequence[int]) -> Estimate:
    """Estimate shares of the choices, or the mean of a number.

    Parameters
    ----------
    draft : Draft
        The task's draft.
    place : int
        The question, from 0.
    reports : ndarray of int64, shape (people + dummies,)
        The rows kept.
    counts : sequence of int
        People per level; with the dummies as many as there are rows.

    Raises
    ------
    InvalidInput
        If the lengths differ, or no report carries information.
    """
    question = draft.questions[place]
    dummies, n = question.dummies.count, sum(counts)
    if n <= 0 or n + dummies != reports.size:
        raise InvalidInput(
            f"question {place + 1} has {reports.size} rows to be used, {dummies} of them dummies: too few to estimate"
        )
    known = slopes_of(draft, place)
    epsilons = np.repeat(np.array([0.0, *known.budgets]), [dummies, *counts])
    shuffled = ShuffledReports(reports, epsilons, seen="reports")
    family = question.family.library(question.low, question.high)
    if isinstance(family, OneBit):
        return _without_dummies(mean(shuffled, family), question, known, counts)
    return _without_dummies(frequency(shuffled, family), question, known, counts)


def count_law(question: Question, known: Slopes, counts: Sequence[int]) -> CountLaw:
    """Return the law of the number of reports, dummies among them, that support one answer, or that are ones.

    Parameters
    ----------
    question : Question
        Its family and its dummies.
    known : Slopes
        Of the question.
    counts : sequence of int
        People per level.
    """
    return law_of_count(question.family, question.dummies, known.slopes, tuple(counts))


@lru_cache(maxsize=64)
def law_of_count(
    family: Family, dummies: Dummies, slopes: tuple[float, ...], counts: tuple[int, ...], shufflers: int = 1
) -> CountLaw:
    """Return the law of the number of reports that support one answer, from all that it depends on.

    Remembered: equal questions, and a task that is looked at again, share what was computed.

    Parameters
    ----------
    family : Family
        The randomizer.
    dummies : Dummies
        What each shuffler adds.
    slopes : tuple of float
        p - q of each level; 1 is a report without noise.
    counts : tuple of int
        People of each level.
    shufflers : int
        How many shufflers add dummies, independently.
    """
    share = float(family.own_share)
    # a report of no use supports an answer with chance f, and one of slope s with f + s (1 - f) or f (1 - s); of
    # hadamard with chance (1 + 2 s)/2 or 1/2, s = p - q
    lifts = [slope * (0.0 if family.kind == "hadamard" else share) for slope in slopes]
    other = tuple(share - lift for lift in lifts)
    own = tuple(low + slope for low, slope in zip(other, slopes, strict=True))
    added = Added(count=dummies.count * shufflers, share=share)
    if dummies.law == "laplace":
        chances = each = np.array([float(chance) for chance in ones_law(dummies)])
        for _ in range(shufflers - 1):
            chances = np.convolve(chances, each)
        added = Added(tuple(chances.tolist()))
    return CountLaw(counts, own, other, added, "mean" if family.kind == "one-bit" else "share")


def scaled_counts(counts: Sequence[int], kept: int) -> list[int]:
    """Scale people per level to `kept` people: largest remainders, so that whole people remain.

    Examples
    --------
    >>> scaled_counts([54, 37, 9], 99)
    [53, 37, 9]
    """
    total = sum(counts)
    exact = [Fraction(kept * count, total) for count in counts]
    whole = [int(share) for share in exact]
    order = sorted(range(len(counts)), key=lambda place: whole[place] - exact[place])
    for place in order[: kept - sum(whole)]:
        whole[place] += 1
    return whole


def shift_of_junk(known: Slopes, counts: Sequence[int], share: float, width: float = 1.0) -> float:
    """Return by how much a share of junk can shift an estimate at most: share/(p - q), times the range's width.

    `counts` are those of the collection: junk is counted at the level it has chosen.
    """
    slope = known.mean(counts)
    return share / slope * width if slope > 0.0 else float("inf")


def shift_of_future_junk(known: Slopes, planned: Sequence[int], share: float, width: float = 1.0) -> float:
    """Return by how much a share of junk will shift an estimate at most, whichever level it chooses.

    Junk at the level with the smallest slope is counted there, which makes the mean slope smaller than planned:
    share/((1 - share) slope + share x smallest slope), times the range's width.

    Parameters
    ----------
    known : Slopes
        Of the question.
    planned : sequence of int
        Honest people per level, in any proportion.
    share : float
        Of junk among all reports.
    width : float
        Of the range.
    """
    slope = (1.0 - share) * known.mean(planned) + share * min(known.slopes)
    return share / slope * width if slope > 0.0 else float("inf")


FALSE_LEVELS = (0.01, 0.05, 0.1)
"""Shares of people counted at another level than theirs whose effect is told."""


def shift_of_levels(draft: Draft, place: int, counts: Sequence[int], share: float, *, told: bool) -> float:
    """Return by how much an answer can be wrong at most because people are counted at another level than they chose.

    The manifest's counts are the shuffler's word. A report supports an answer with chance c' + s (x - c), where s is
    the slope of its level and x the share of the answer, so an estimate with a wrong mean slope is c + r (x - c), where
    r is the right mean slope over the wrong one. c is 1/k of k answers, 1/2 of a number or two answers, and 0 for
    hadamard, where c' is 1/2.

    Parameters
    ----------
    draft : Draft
        The task's draft.
    place : int
        The question, from 0.
    counts : sequence of int
        People per level.
    share : float
        Of the people, counted falsely, from whichever level to whichever other one does most.
    told : bool
        Whether `counts` are the ones told, that may be false; else they are true, and will be told falsely.

    Returns
    -------
    float
        In the answer's unit; 0 where all levels are one.
    """
    question, known = draft.questions[place], slopes_of(draft, place)
    mean = known.mean(counts)
    others = _moved(known.slopes, counts, share)
    if min(mean, *others) <= 0.0:
        return float("inf")
    ratios = [other / mean if told else mean / other for other in others]
    center = 0.0 if question.family.kind == "hadamard" else float(question.family.own_share)
    return max(center, 1.0 - center) * max(abs(ratio - 1.0) for ratio in ratios) * width_of(question)


def _moved(slopes: Sequence[float], counts: Sequence[int], share: float) -> tuple[float, float]:
    """The smallest and the largest mean slope once a share of the people has moved to another level."""
    total = sum(counts)

    def mean(order: Sequence[int]) -> float:
        """Move people from the first levels of an order to its last one."""
        left, changed = share * total, sum(n * slope for n, slope in zip(counts, slopes, strict=True))
        for level in order[:-1]:
            moving = min(left, counts[level])
            changed += moving * (slopes[order[-1]] - slopes[level])
            left -= moving
        return changed / total

    rising = sorted(range(len(slopes)), key=lambda level: slopes[level])
    return mean(rising[::-1]), mean(rising)


def width_of(question: Question) -> float:
    """Width of the range of an estimate: 1 for a share."""
    return question.high - question.low if question.kind == "number" else 1.0


def _without_dummies(found: Estimate, question: Question, known: Slopes, counts: Sequence[int]) -> Estimate:
    """Put n people in the place of n + m, and the variance of the dummies' own law.

    With W the sum of the squared weights, (V) of `questions.frequency` has the term f (1 - f) (W - 1/N) N/(N - 1), and
    (M) of `questions.mean` the term -u^2/N with u = (m - 1/2) N/(N + 4): N is n here, not n + m.
    """
    n, m = sum(counts), question.dummies.count
    if m == 0 or not isinstance(found, CountEstimate):
        return found
    total = sum(count * slope for count, slope in zip(counts, known.slopes, strict=True))
    squares = sum(count * slope * slope for count, slope in zip(counts, known.slopes, strict=True)) / total**2
    width = width_of(question)
    law = 0.0
    if question.dummies.law == "laplace":
        law = float(ones_moments(question.dummies)[1] - Fraction(m, 4)) / total**2
    if question.kind == "number":
        fraction = np.clip((found.value - question.low) / width, 0.0, 1.0)
        change = _relief(fraction, n + m) - _relief(fraction, n)
    else:
        shares = np.clip(found.value, 0.0, 1.0)
        change = shares * (1.0 - shares) * (_uneven(squares, n) - _uneven(squares, n + m))
    variance = (found.standard_error / width) ** 2 + change + law
    error = width * np.sqrt(variance)
    left = replace(found, standard_error=np.asarray(error), uninformative=found.uninformative - m)
    return replace(left, law=count_law(question, known, counts))


def _uneven(squares: float, n: int) -> float:
    return max(squares - 1.0 / n, 0.0) * n / max(n - 1, 1)


def _relief(fraction: FloatArray, n: int) -> FloatArray:
    return ((fraction - 0.5) * n / (n + 4.0)) ** 2 / n
