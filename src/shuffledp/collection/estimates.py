"""Estimates from the rows of people and dummies together.

A uniform dummy is a report of budget 0, so the library's analyzer subtracts the dummies' mean and adds their variance
when they are counted as people of that level. Two things differ. The population whose share is estimated has n people,
not n + m, which enters the variance where the weights of people differ; and the number of ones among dummies of another
law has another variance than m/4. Both are put right here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.asked import StatedDummies, SurveyQuestion
from shuffledp.collection.dictionary import words_estimate
from shuffledp.collection.draw import MOST_BITS, WHOLE, Family
from shuffledp.collection.laws import (
    cell_law_of,
    cell_variance_of,
    cells_of,
    chance_of_a_point,
    ones_law,
    ones_moments,
    single_ball,
    sum_of_cells,
)
from shuffledp.collection.task import Draft
from shuffledp.dummies import StatedCells
from shuffledp.errors import InvalidInput
from shuffledp.numerics.floats import TINY, FloatArray
from shuffledp.numerics.functions import ndtr, ndtri
from shuffledp.questions.estimate import Added, CountEstimate, CountLaw, Estimate, around, chance_of_a_miss
from shuffledp.questions.frequency import frequency
from shuffledp.questions.mean import mean
from shuffledp.questions.tally import ShuffledReports
from shuffledp.randomizers.numeric import OneBit

# Estimates whose error is people's noise, a sum of bounded terms, and that of dummies, whose law is known.
#
# **The ball dummies' law.** Of a choice among k, z = (z_1..z_k) has whole cells that add up to 0, and its law given
# its gauge r (the sum of its positive cells) is uniform. For whole numbers v_j the law of sum_j v_j z_j is therefore
# sum_r a_r times the coefficient of x^r y^r in
#
#     prod_j ( 1/(1 - y w^-v_j) + x w^v_j / (1 - x w^v_j) ),    w on the unit circle,
#
# where x counts what is positive and y what is negative: each cell is positive, or is not. It is summed on the circle
# and transformed back; chances are good to 1e-12. Where every v is 0 or 1, points are counted (`laws.sum_of_cells`).
#
# **The normal dummies' law.** With f(t) = sum_x w_x e^(i t x), w the weights of a cell, x its distance from the mean,
# the law of sum_j v_j z_j has the transform at t
#
#     mean over u of prod_j f(v_j t + u), divided by its value at t = 0,    t and u on a grid of N points of the circle,
#
# since the mean over u picks the total 0. N is more than 20 standard deviations of the sum and of the total.
#
# **The interval.** With D the dummies' part and X the people's, P(|X + D| > t) is the mean over D of the chance that
# X lies beyond t - D. From (error of X / step)^2 = 8 z^2 on X is taken as normal (as in `protocol.estimate`), and the
# mean is summed over the law of D: no normal law is put in the place of D's, whose tails are longer. Up to 4 z^2 the
# chance is at most min_s 2 exp(-s t + L_X(s) + L_D(s)) (Chernoff 1952) with Bennett's L_X(s) = v (e^{s step} - 1 - s
# step)/step^2 and the logarithm L_D of the dummies' own generating function; in between their mixture, but no wider
# than the interval at 8 z^2, which holds for smaller errors as well: less noise never makes an interval wider.

_AT_ONCE = 1 << 21
"""Largest number of complex numbers held at a time."""
_REACH = 10.0
"""Number of standard deviations of a sum of normal dummies beyond which its probability is set to 0."""
_NEGLIGIBLE = 1e-8
"""Factors of a transform below this are set to 0, which is about the accuracy of the law of a sum of normal dummies."""
_TRIED = 160
_HALVINGS = 60


@dataclass(frozen=True, eq=False)
class Spread:
    """The distribution of the dummies' contribution to an estimate, symmetric around 0.

    Parameters
    ----------
    chances : tuple of float
        P(contribution = (j - reach) unit), j = 0..2 reach.
    unit : float
        Distance of neighbouring values.
    """

    chances: tuple[float, ...]
    unit: float

    @cached_property
    def values(self) -> FloatArray:
        """The possible values, ascending."""
        reach = len(self.chances) // 2
        return np.arange(-reach, len(self.chances) - reach, dtype=np.float64) * self.unit

    @property
    def variance(self) -> float:
        """The variance of this law."""
        return float(np.array(self.chances) @ self.values**2)


@dataclass(frozen=True, eq=False, repr=False)
class SpreadEstimate(Estimate):
    """An estimate with people's noise and the dummies' contribution; see the module.

    Parameters
    ----------
    added : Spread
        The dummies' contribution; its variance is a part of the squared standard error.
    """

    added: Spread

    def confidence_interval(self, level: float = 0.95, simultaneous: bool = False) -> tuple[FloatArray, FloatArray]:
        """Return both ends of a two-sided confidence interval, in the range; see the module.

        Parameters
        ----------
        level, simultaneous
            As for `Estimate.confidence_interval`.
        """
        half = self.half_width(chance_of_a_miss(level, self.value.size if simultaneous else 1), self.standard_error)
        return around(self.value, half, half, self.support)

    def half_width(self, miss: float | FloatArray, standard_error: FloatArray) -> FloatArray:
        """Return the half width of an interval that misses with probability ``miss``, given a standard error.

        Parameters
        ----------
        miss : float
            Probability over both sides, in (0, 1).
        standard_error : ndarray
            Positive, dummies included.
        """
        own = np.sqrt(np.maximum(np.asarray(standard_error) ** 2 - self.added.variance, 0.0))
        widths = [self._half_width(float(miss), float(each)) for each in own.ravel()]  # type: ignore[arg-type]
        return np.array(widths).reshape(own.shape)

    def _half_width(self, miss: float, own: float) -> float:
        if len(self.added.chances) == 1 and own == 0.0:
            return 0.0
        normal, few = self._normal(miss, max(own, TINY)), self.enough * float(ndtri(miss / 2.0)) ** 2
        share = float(np.clip((own / self.step) ** 2 / few - 1.0, 0.0, 1.0))
        if share == 1.0:
            return normal
        mixed = share * normal + (1.0 - share) * max(self._safe(miss, own), normal)
        return min(mixed, self._normal(miss, self.step * math.sqrt(2.0 * few)))  # a smaller error has no wider interval

    def _normal(self, miss: float, own: float) -> float:
        """Return t with P(X + D > t - step/2) = miss/2, for a normal X and the dummies' contribution D."""
        chances, values = np.array(self.added.chances), self.added.values
        low, high = 0.0, float(values[-1]) + own * 40.0
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            beyond = float(chances @ ndtr((values - middle) / own))
            low, high = (low, middle) if beyond <= miss / 2.0 else (middle, high)
        return high + self.step / 2.0

    def _safe(self, miss: float, own: float) -> float:
        """Return the smallest t for which Chernoff's bound is at most ``miss``, over many s, each of which is valid."""
        chances, values = np.array(self.added.chances), self.added.values
        scale = max(own, float(np.sqrt(self.added.variance)), self.step)
        s = np.geomspace(0.05, 50.0, _TRIED)[:, None] / scale
        largest = (s * values[-1])[:, 0]
        dummies = largest + np.log(np.exp(s * values - largest[:, None]) @ chances)
        rise = s[:, 0] * self.step
        people = (own / self.step) ** 2 * (np.expm1(rise) - rise)
        return float(((np.log(2.0 / miss) + people + dummies) / s[:, 0]).min())


@lru_cache(maxsize=256)
def dummies_along(family: Family, dummies: StatedDummies, values: tuple[int, ...]) -> tuple[float, ...]:
    """Return the law of sum_j v_j z_j of ball or normal dummies around their mean.

    Parameters
    ----------
    family : Family
        Family of the column.
    dummies : StatedDummies
        Dummies of law "ball" or "normal", or none.
    values : tuple of int
        v_j of each cell; for bits (0, 1).

    Returns
    -------
    tuple of float
        P(sum = j - reach), j = 0..2 reach, with reach the largest radius times the range of the values, or ten
        standard deviations.
    """
    if dummies.count == 0:
        return (1.0,)
    if dummies.law == "normal":
        return _along_normal(cells_of(family, dummies), values)
    law = single_ball(family, dummies)
    if len(values) != family.cells:
        raise InvalidInput(f"{family.name} has {family.cells} cells; got {len(values)} values")
    if set(values) == {0, 1}:
        side = sum_of_cells(law, values.count(1))
        return (*side[:0:-1], *side)
    chance = chance_of_a_point(law)
    reach = law.largest * (max(values) - min(values))
    turns = np.arange(reach + 1)
    whole = np.concatenate([
        _on_circle(values, chance, 2.0 * np.pi * some / (2 * reach + 1))
        for some in np.array_split(turns, 1 + turns.size * chance.size**2 // _AT_ONCE)
    ])  # fmt: skip
    return tuple(np.maximum(np.roll(np.fft.irfft(whole, 2 * reach + 1), reach), 0.0).tolist())


def _along_normal(cells: StatedCells, values: tuple[int, ...]) -> tuple[float, ...]:
    v = np.array(values) - min(values)  # the z add up to 0
    spread = math.sqrt(max(float(v @ v), cells.answers) * cells.cell_variance * cells.answers / (cells.answers - 1))
    points = max(int(2 * _REACH * spread) | 1, 2 * cells.middle + 1)
    weights = np.zeros(points)
    weights[np.arange(-cells.middle, cells.middle + 1)] = np.array(cells.weights, dtype=np.float64)
    f = np.fft.fft(weights / weights.sum()).real
    likely = np.flatnonzero(np.abs(f) > _NEGLIGIBLE)  # one of the v is 0, and its factor is f(u)
    transform, turns = np.zeros(points // 2 + 1), np.arange(points // 2 + 1)
    reach = 2 * int(np.minimum(likely, points - likely).max())  # of v t, or its factor is negligible at every such u
    for value in set(v.tolist()):
        turned = turns * value % points
        turns = turns[np.minimum(turned, points - turned) <= reach]
    for some in np.array_split(turns, 1 + turns.size * likely.size // _AT_ONCE):
        product = np.ones((some.size, likely.size))
        for value in v.tolist():
            product *= f[(some[:, None] * value + likely) % points]
        transform[some] = product.sum(axis=1)
    return tuple(np.maximum(np.roll(np.fft.irfft(transform / transform[0], points), points // 2), 0.0).tolist())


def dummies_between(dummies: StatedDummies) -> tuple[float, ...]:
    """Return the law of the difference between the numbers of ones in two columns of bits with dummies of one law.

    Normal dummies of two columns are independent, and symmetric. Those of a ball share one radius: given the radius R
    both are uniform on -R..R, independently, so the difference d has the chance (2 R + 1 - |d|)/(2 R + 1)^2.

    Parameters
    ----------
    dummies : StatedDummies
        Dummies of either column.

    Returns
    -------
    tuple of float
        P(difference = j - reach), j = 0..2 reach, with reach twice the largest radius, or the largest z.
    """
    if dummies.count == 0:
        return (1.0,)
    if dummies.law == "normal":
        law = StatedCells(2, dummies.draw).cell_law
        return tuple(np.convolve(law, law).tolist())
    reach = 2 * (len(dummies.draw) - 1)
    apart, chances = np.abs(np.arange(-reach, reach + 1)), np.zeros(2 * reach + 1)
    for radius, weight in enumerate(dummies.draw):
        values = 2 * radius + 1
        chances += weight / WHOLE * np.maximum(values - apart, 0) / values**2
    return tuple(chances.tolist())


def _on_circle(values: Sequence[int], chance: FloatArray, angles: FloatArray) -> NDArray[np.complex128]:
    """Return E[w^-(sum v z)] at w = e^(i angle), the transform that `irfft` inverts, since the law is symmetric."""
    radii = chance.size
    coefficients: NDArray[Any] = np.zeros((1, radii, radii))
    coefficients[0, 0, 0] = 1.0
    for value in sorted(values, key=abs):  # cells of value 0 first: their factor is the same at every angle
        turn = np.exp(1j * angles * value)[:, None] if value else np.ones((1, 1))
        rest, positive = np.empty_like(coefficients * turn[:, :, None]), np.zeros_like(coefficients * turn[:, :, None])
        rest[:, :, 0] = coefficients[:, :, 0]
        for n in range(1, radii):
            rest[:, :, n] = coefficients[:, :, n] + rest[:, :, n - 1] / turn
            positive[:, n, :] = turn * (coefficients[:, n - 1, :] + positive[:, n - 1, :])
        coefficients = rest + positive
    shells = np.diagonal(coefficients, axis1=1, axis2=2)
    return np.broadcast_to(shells @ chance, angles.shape).astype(np.complex128)


JUNK = 0.05
"""Share of invalid reports whose effect is stated in advance."""


@dataclass(frozen=True)
class Slopes:
    """The slope p - q of each level: how strongly reports depend on the answers, as drawn.

    Parameters
    ----------
    budgets : tuple of float
        The budget (nats) at which the library draws as the task states.
    slopes : tuple of float
        Probability that a report supports an answer if it is the person's, minus the probability if it is not.
    """

    budgets: tuple[float, ...]
    slopes: tuple[float, ...]

    def mean(self, counts: Sequence[int]) -> float:
        """Return the mean slope over people, with `counts` people at each level."""
        return sum(n * slope for n, slope in zip(counts, self.slopes, strict=True)) / max(sum(counts), 1)


def slopes_of(draft: Draft, place: int) -> Slopes:
    """Return, for each level, the slope of the question with index `place`: the p - q of its randomizer."""
    family = draft.questions[place].family
    budgets = tuple(effective_budget(family, level.draw[place], level.epsilon0) for level in draft.levels)
    return Slopes(budgets, tuple(slope_of(family, level.draw[place]) for level in draft.levels))


def slope_of(family: Family, keep: int) -> float:
    """Return p - q of a randomizer that draws by ``keep``/2^64."""
    return keep / WHOLE * (0.5 if family.kind == "hadamard" else 1.0)


def effective_budget(family: Family, keep: int, epsilon0: float) -> float:
    """Return the budget (nats) at which the library's threshold is `keep`: epsilon0 itself if the task used it.

    Otherwise log(1 + K/(f (2^64 - K))), at which the library's threshold is K up to a relative 2^-45.
    """
    if family.threshold(epsilon0) == keep:
        return epsilon0
    return float(np.log1p(float(Fraction(keep, WHOLE - keep) / family.own_share)))


def estimate_question(draft: Draft, place: int, columns: Sequence[Tallied]) -> Estimate:
    """Estimate shares of the choices or of the options, scores of a dictionary's words, or the mean of a number.

    Parameters
    ----------
    draft : Draft
        The task's draft.
    place : int
        Index of the question, from 0.
    columns : sequence of Tallied
        The usable rows of each of its columns.

    Raises
    ------
    InvalidInput
        If the lengths differ, or no report carries information.
    """
    question, slopes = draft.questions[place], slopes_of(draft, place)
    for tallied in columns:
        if sum(tallied.counts) <= 0:
            raise InvalidInput(
                f"question {place + 1} has {tallied.reports.size} rows to be used, {question.dummies.count} of them "
                "dummies: too few to estimate"
            )
    if question.family.kind == "bits":
        return _mean_of_bits(question, slopes, columns[0])
    estimates = [_one_column(question, slopes, tallied) for tallied in columns]
    if question.kind == "dictionary":
        return words_estimate(estimates, len(question.choices))
    return estimates[0] if question.kind != "several" else joined([_second(each) for each in estimates])


@dataclass(frozen=True, eq=False)
class Tallied:
    """The usable reports of one column of a batch, and how many people sent them.

    A question has one column, or one for each of its options.

    Parameters
    ----------
    reports : ndarray of int64, shape (rows,)
        The pieces in which people's reports were sent (most reports are one piece), and the dummies, in random order.
    counts : tuple of int
        Number of people at each level who sent a usable report.
    """

    reports: NDArray[np.int64]
    counts: tuple[int, ...]


def _one_column(question: SurveyQuestion, slopes: Slopes, tallied: Tallied) -> Estimate:
    """Return the estimated shares of a column's answers, or the mean of one bit."""
    counts, dummies = tallied.counts, question.dummies.count
    if sum(counts) + dummies != tallied.reports.size:
        raise InvalidInput(
            f"the batch has {tallied.reports.size} usable rows, not {sum(counts)} of people and {dummies} of dummies"
        )
    epsilons = np.repeat(np.array([0.0, *slopes.budgets]), [dummies, *counts])
    shuffled = ShuffledReports(tallied.reports, epsilons, seen="reports")
    family = question.family.library(question.low, question.high)
    if isinstance(family, OneBit):
        return _without_dummies(mean(shuffled, family), question, slopes, counts)
    return _without_dummies(frequency(shuffled, family), question, slopes, counts)


@dataclass(frozen=True, eq=False, repr=False)
class JoinedEstimate(Estimate):
    """Estimates of several targets, each with an interval by its own law.

    Parameters
    ----------
    parts : tuple of Estimate
        One for each target, of shape (1,).
    """

    parts: tuple[Estimate, ...]

    def confidence_interval(self, level: float = 0.95, simultaneous: bool = False) -> tuple[FloatArray, FloatArray]:
        """Return both ends of two-sided confidence intervals, in the range.

        Parameters
        ----------
        level, simultaneous
            As for `Estimate.confidence_interval`.
        """
        own = 1.0 - chance_of_a_miss(level, len(self.parts) if simultaneous else 1)
        ends = [part.confidence_interval(own) for part in self.parts]
        low, high = (np.concatenate([np.ravel(each[side]) for each in ends]) for side in (0, 1))
        return low, high


def joined(parts: Sequence[Estimate]) -> JoinedEstimate:
    """Return estimates of one range as a single joint estimate."""
    return JoinedEstimate(
        value=np.concatenate([np.ravel(part.value) for part in parts]),
        standard_error=np.concatenate([np.ravel(part.standard_error) for part in parts]),
        step=max(part.step for part in parts),
        support=parts[0].support,
        uninformative=parts[0].uninformative,
        parts=tuple(parts),
    )


def _second(shares: Estimate) -> Estimate:
    """Return the second of two shares, no and yes."""
    only = {"value": shares.value[1:], "standard_error": shares.standard_error[1:]}
    return replace(shares, **only, **({"counts": shares.counts[1:]} if isinstance(shares, CountEstimate) else {}))


def _mean_of_bits(question: SurveyQuestion, slopes: Slopes, tallied: Tallied) -> Estimate:
    """Return an estimated mean from the number of ones among the pieces of all reports, B a person, and dummies.

    A person's v/B has the mean 1/2 + s (x - 1/2) with the share x of the range and the slope s of the level, so that
    mean = 1/2 + (ones - m/2 - P/2)/(B S), P the pieces of people's reports and S the sum of the slopes. With q = (x -
    1/2)^2 its variance is s (1 - s) q + s r + (1 - s) (B + 2)/(12 B), r <= 1/(4 B^2) that of rounding; and dealing the
    levels to the records adds at most q times (sum of w^2 - 1/n) n/(n - 1) in the share (protocol.means). The number of
    ones says nothing about q: its largest value 1/4 is taken.
    """
    m, counts = question.dummies.count, tallied.counts
    pieces, ones = tallied.reports.size - m, int(tallied.reports.sum())
    plain, width = bits_law(question.family, question.dummies, slopes.slopes, counts), width_of(question)
    value = 0.5 + (ones - (m + pieces) / 2.0) * sum(counts) / max(pieces, 1) * plain.step
    return replace(
        plain,
        value=np.asarray(question.low + width * value),
        standard_error=width * plain.standard_error,
        step=width * plain.step,
        support=(question.low, question.high),
        added=replace(plain.added, unit=width * plain.added.unit),
    )


@lru_cache(maxsize=64)
def bits_law(
    family: Family, dummies: StatedDummies, slopes: tuple[float, ...], counts: tuple[int, ...], shufflers: int = 1
) -> SpreadEstimate:
    """Return the error of a mean of ``bits:B`` as a share of the range, at a value in its middle; see `_mean_of_bits`.

    Parameters
    ----------
    family, dummies, slopes, counts, shufflers
        As for `law_of_count`.

    Raises
    ------
    InvalidInput
        If no report carries information.
    """
    size, people = family.pieces, list(zip(counts, slopes, strict=True))
    total = sum(count * s for count, s in people)
    if not total > 0.0:
        raise InvalidInput("no report carries information: every level draws without the answer")
    noise = sum(
        count * (s * (1.0 - s) / 4.0 + s / (4.0 * size**2) + (1.0 - s) * (size + 2.0) / (12.0 * size))
        for count, s in people
    )
    squares = sum(count * s * s for count, s in people) / total**2
    own = noise / total**2 + _uneven(squares, sum(counts)) / 4.0
    chances = each = np.array(dummies_along(family, dummies, (0, 1)))
    for _ in range(shufflers - 1):
        chances = np.convolve(chances, each)
    added = Spread(tuple(chances.tolist()), 1.0 / (size * total))
    error = np.asarray(np.sqrt(own + added.variance))
    return SpreadEstimate(np.asarray(0.5), error, 1.0 / total, (0.0, 1.0), 0, added)


@lru_cache(maxsize=256)
def best_bits(number: Family, people: tuple[tuple[float, int], ...]) -> Family:
    """Return the family ``bits:B`` with the least noise of people, with B at most the number of steps of a number.

    Parameters
    ----------
    number : Family
        A family with the number's answers.
    people : tuple of (float, int)
        Budget and planned number of people of each level; evenly spread people if nobody is planned.
    """
    counts = tuple(count for _, count in people)
    counts = counts if sum(counts) else (1,) * len(counts)

    def noise(family: Family) -> float:
        slopes = tuple(slope_of(family, family.threshold(epsilon0)) for epsilon0, _ in people)
        return float(bits_law(family, NO_DUMMIES, slopes, counts).standard_error)

    sizes = range(1, min(number.records - 1, MOST_BITS) + 1)
    return min((Family(f"bits:{size}", number.records) for size in sizes), key=noise)


def count_law(question: SurveyQuestion, slopes: Slopes, counts: Sequence[int]) -> CountLaw:
    """Return the law of the number of reports, dummies included, that support one answer, or that are ones.

    Parameters
    ----------
    question : SurveyQuestion
        The question, with its family and its dummies.
    slopes : Slopes
        Slopes of the question.
    counts : sequence of int
        Number of people at each level.
    """
    return law_of_count(question.family, question.dummies, slopes.slopes, tuple(counts))


@lru_cache(maxsize=64)
def law_of_count(
    family: Family,
    dummies: StatedDummies,
    slopes: tuple[float, ...],
    counts: tuple[int, ...],
    shufflers: int = 1,
    cells: int = 1,
) -> CountLaw:
    """Return the law of the number of reports that support one answer, given everything on which it depends.

    Cached, so that equal questions and repeated calls for a task share the computation.

    Parameters
    ----------
    family : Family
        The randomizer.
    dummies : StatedDummies
        Dummies that each shuffler adds.
    slopes : tuple of float
        p - q of each level; 1 is a report without noise.
    counts : tuple of int
        Number of people at each level.
    shufflers : int
        Number of shufflers that add dummies, independently.
    cells : int
        Number of cells that make up the answer: more than 1 of a row or a column of a table, of dummies of law "ball"
        or "normal".
    """
    share = cells * float(family.own_share)
    # a report of no use supports an answer with chance f, and one of slope s with f + s (1 - f) or f (1 - s); of
    # hadamard with chance (1 + 2 s)/2 or 1/2, s = p - q
    lifts = [slope * (0.0 if family.kind == "hadamard" else share) for slope in slopes]
    other = tuple(share - lift for lift in lifts)
    own = tuple(low + slope for low, slope in zip(other, slopes, strict=True))
    added = Added(count=dummies.count * shufflers, share=share)
    if dummies.law != "uniform":
        chances = each = np.array(cell_law(family, dummies, cells))
        for _ in range(shufflers - 1):
            chances = np.convolve(chances, each)
        added = Added(tuple(chances.tolist()))
    return CountLaw(counts, own, other, added, "mean" if family.kind == "one-bit" else "share")


def predicted_half_width(
    family: Family,
    dummies: StatedDummies,
    slopes: tuple[float, ...],
    counts: tuple[int, ...],
    miss: float,
    shufflers: int = 1,
    cells: int = 1,
) -> float:
    """Return half the length of the interval that will be printed, at the worst answers, as a share of the range.

    Parameters
    ----------
    family, dummies, slopes, counts, shufflers, cells
        As for `law_of_count`; with `NO_DUMMIES`, the dummies' noise is left out.
    miss : float
        Probability that the interval misses, from `kinds.miss_of`.
    """
    if family.kind != "bits":
        return law_of_count(family, dummies, slopes, counts, shufflers, cells).half_width(miss)
    if not any(n * slope for n, slope in zip(counts, slopes, strict=True)):
        return 0.5
    estimate = bits_law(family, dummies, slopes, counts, shufflers)
    return min(float(estimate.half_width(miss, estimate.standard_error)), 0.5)


def predicted_variance(question: SurveyQuestion, slopes: Slopes, counts: Sequence[int]) -> float:
    """Return the variance of an estimate at the worst answers, as a share of the squared range; inf without slope.

    Parameters
    ----------
    question : SurveyQuestion
        The question.
    slopes : Slopes
        Slope of each level.
    counts : sequence of int
        Number of people at each level.
    """
    if slopes.mean(counts) <= 0.0:
        return float("inf")
    if question.family.kind == "bits":
        return float(bits_law(question.family, question.dummies, slopes.slopes, tuple(counts)).standard_error ** 2)
    law = count_law(question, slopes, counts)
    return max(law.variance(law.worst), law.variance(0.5)) / law.slope**2


NO_DUMMIES = StatedDummies("uniform", 0)


def cell_law(family: Family, dummies: StatedDummies, cells: int = 1) -> tuple[float, ...]:
    """Return the law of the number of dummies that support one answer: ones of a bit, or some cells of a choice.

    Parameters
    ----------
    family : Family
        Family of the column.
    dummies : StatedDummies
        Dummies of law "laplace", "ball" or "normal".
    cells : int
        Number of cells that make up the answer; 1 of law "laplace".
    """
    if dummies.law == "laplace":
        return tuple(float(chance) for chance in ones_law(dummies))
    if cells == 1:
        return cell_law_of(family, dummies) if dummies.count else (1.0,)
    mean = cells * dummies.count // family.cells
    around = dummies_along(family, dummies, (1,) * cells + (0,) * (family.cells - cells))
    reach = len(around) // 2
    return (0.0,) * (mean - reach) + around[max(reach - mean, 0) :]


def scaled_counts(counts: Sequence[int], kept: int) -> list[int]:
    """Return people per level scaled to a total of `kept`, in whole numbers by largest remainders.

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


def shift_of_junk(slopes: Slopes, counts: Sequence[int], share: float, width: float = 1.0) -> float:
    """Return the largest shift of an estimate that a share of invalid reports can cause: share/(p - q) times the width.

    Parameters
    ----------
    slopes : Slopes
        Slope p - q of each level.
    counts : sequence of int
        Number of people at each level in the collection; an invalid report is counted at the level that it states.
    share : float
        Share of invalid reports among all, in [0, 1].
    width : float
        Width of the answer's range; 1 for a share.
    """
    slope = slopes.mean(counts)
    return share / slope * width if slope > 0.0 else float("inf")


def shift_of_future_junk(slopes: Slopes, planned: Sequence[int], share: float, width: float = 1.0) -> float:
    """Return the largest shift of a future estimate by a share of invalid reports, whichever level they state.

    Invalid reports that state the level with the smallest slope lower the mean slope below the planned one: share/((1 -
    share) slope + share x smallest slope), times the range's width.

    Parameters
    ----------
    slopes : Slopes
        Slopes of the question.
    planned : sequence of int
        Honest people per level, in any proportion.
    share : float
        Share of invalid reports among all reports.
    width : float
        Width of the range.
    """
    slope = (1.0 - share) * slopes.mean(planned) + share * min(slopes.slopes)
    return share / slope * width if slope > 0.0 else float("inf")


FALSE_LEVELS = (0.01, 0.05, 0.1)
"""Shares of people counted at a wrong level whose effect is stated."""


def shift_of_levels(draft: Draft, place: int, counts: Sequence[int], share: float, *, stated: bool) -> float:
    """Return the largest error of an answer if people are counted at another level than they chose.

    The manifest's counts are statements of the shuffler. A report supports an answer with chance c' + s (x - c), where
    s is the slope of its level and x the share of the answer, so an estimate with a wrong mean slope is c + r (x - c),
    where r is the right mean slope over the wrong one. c is 1/k of k answers, 1/2 of a number or two answers, and 0 for
    hadamard, where c' is 1/2.

    Parameters
    ----------
    draft : Draft
        The task's draft.
    place : int
        Index of the question, from 0.
    counts : sequence of int
        Number of people at each level.
    share : float
        Share of the people counted wrongly, at the pair of levels with the largest effect.
    stated : bool
        True: `counts` are the stated ones, which may be false. False: they are true, and false ones will be stated.

    Returns
    -------
    float
        In the answer's unit; 0 if there is one level.
    """
    question, slopes = draft.questions[place], slopes_of(draft, place)
    mean = slopes.mean(counts)
    others = _moved(slopes.slopes, counts, share)
    if min(mean, *others) <= 0.0:
        return float("inf")
    ratios = [other / mean if stated else mean / other for other in others]
    center = 0.5 if question.kind == "number" else float(question.family.own_share)
    center = 0.0 if question.family.kind == "hadamard" else center
    return max(center, 1.0 - center) * max(abs(ratio - 1.0) for ratio in ratios) * width_of(question)


def _moved(slopes: Sequence[float], counts: Sequence[int], share: float) -> tuple[float, float]:
    """Return the smallest and the largest mean slope after moving a share of the people to another level."""
    total = sum(counts)

    def mean(order: Sequence[int]) -> float:
        """Return the mean slope after moving people from the first levels of an order to its last one."""
        left, changed = share * total, sum(n * slope for n, slope in zip(counts, slopes, strict=True))
        for level in order[:-1]:
            moving = min(left, counts[level])
            changed += moving * (slopes[order[-1]] - slopes[level])
            left -= moving
        return changed / total

    rising = sorted(range(len(slopes)), key=lambda level: slopes[level])
    return mean(rising[::-1]), mean(rising)


def width_of(question: SurveyQuestion) -> float:
    """Return the width of the range of an estimate: 1 for a share."""
    return question.high - question.low if question.kind == "number" else 1.0


def _without_dummies(estimate: Estimate, question: SurveyQuestion, slopes: Slopes, counts: Sequence[int]) -> Estimate:
    """Return an estimate corrected to n people instead of n + m, and to the variance of the dummies' own law.

    With W the sum of the squared weights, (V) of `questions.frequency` has the term f (1 - f) (W - 1/N) N/(N - 1), and
    (M) of `questions.mean` the term -u^2/N with u = (m - 1/2) N/(N + 4): N is n here, not n + m.
    """
    n, m = sum(counts), question.dummies.count
    if m == 0 or not isinstance(estimate, CountEstimate):
        return estimate
    total = sum(count * slope for count, slope in zip(counts, slopes.slopes, strict=True))
    squares = sum(count * slope * slope for count, slope in zip(counts, slopes.slopes, strict=True)) / total**2
    width = width_of(question)
    law = 0.0
    if question.dummies.law == "laplace":
        law = float(ones_moments(question.dummies)[1] - Fraction(m, 4)) / total**2
    elif question.dummies.law != "uniform":
        share = float(question.family.own_share)
        law = (cell_variance_of(question.family, question.dummies) - m * share * (1.0 - share)) / total**2
    if question.kind == "number":
        fraction = np.clip((estimate.value - question.low) / width, 0.0, 1.0)
        change = _relief(fraction, n + m) - _relief(fraction, n)
    else:
        shares = np.clip(estimate.value, 0.0, 1.0)
        change = shares * (1.0 - shares) * (_uneven(squares, n) - _uneven(squares, n + m))
    variance = (estimate.standard_error / width) ** 2 + change + law
    error = width * np.sqrt(variance)
    left = replace(estimate, standard_error=np.asarray(error), uninformative=estimate.uninformative - m)
    return replace(left, law=count_law(question, slopes, counts))


def _uneven(squares: float, n: int) -> float:
    return max(squares - 1.0 / n, 0.0) * n / max(n - 1, 1)


def _relief(fraction: FloatArray, n: int) -> FloatArray:
    return ((fraction - 0.5) * n / (n + 4.0)) ** 2 / n
