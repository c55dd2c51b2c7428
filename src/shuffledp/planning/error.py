"""The standard error an estimate will have, before a record is collected.

Every estimator of `shuffledp.questions` is linear. With value_i the reading of report i, and E(value_i | t) =
offset_i + slope_i t for a record t in [0, 1] (a number scaled to its range, or whether the record is category j),

    estimate = sum_i a_i (value_i - offset_i),   sum_i a_i slope_i = 1,   w_i = a_i slope_i                       (E)

so that, the records fixed, and budgets assigned to them at random where the w_i differ (formula (V) of
`shuffledp.questions.frequency` is the case of a category),

    variance = sum_i a_i^2 E v_i(t) + (sum_i w_i^2 - 1/n) n/(n-1) Var(t),   v_i(t) = c0_i + c1_i t + c2_i t^2     (P)

where mean and variance of t are over the population. They are unknown before the records are seen: they are taken
as stated, or at their worst. (P) is linear in E(t^2) between E(t)^2 (all records alike) and E(t) (all at an end of
the range), and quadratic in E(t), so its maximum is found exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray
from shuffledp.questions.task import Weights
from shuffledp.randomizers.base import FrequencyOracle, NumberLaw, NumberRandomizer


@dataclass(frozen=True)
class Moments:
    """What is known of the records t in [0, 1].

    Parameters
    ----------
    mean : float or None
        Their mean; None if unknown.
    square : float or None
        The mean of their squares, from mean^2 to mean; None if unknown.
    binary : bool
        Whether every t is 0 or 1 (a category), so that both moments are the same.
    """

    mean: float | None = None
    square: float | None = None
    binary: bool = False


@dataclass(frozen=True)
class Prediction:
    """A standard error expected of an estimate, and what was assumed of the records.

    Parameters
    ----------
    standard_error : float
        In the unit of the answer (of a frequency: its share).
    mean, square : float
        First and second moment of the scaled records at which it holds: as stated, or the worst ones.
    variance_of_one : float
        standard_error^2 times the number of users: at the same mix of budgets, what one user is worth.
    """

    standard_error: float
    mean: float
    square: float
    variance_of_one: float


@dataclass(frozen=True)
class UserTerms:
    """Additive parts of (P) for a user at each budget: variance = sum noise / (sum weight)^2 - Var(t)/(n-1).

    Parameters
    ----------
    weight : ndarray, shape (levels,)
        r slope, with a_i = r_i / sum weight.
    noise : ndarray, shape (levels,)
        r^2 (E v(t) + slope^2 Var(t) n/(n-1)).
    """

    weight: FloatArray
    noise: FloatArray


@dataclass(frozen=True)
class Reading:
    """What a report says about t, and the variance by which precision weights go.

    Parameters
    ----------
    law : NumberLaw
        Of a number in its range, or of whether a report supports one category.
    spread : ndarray, shape (levels,)
        Variance at the reference record: the middle of the range, or a fair draw over the categories.
    """

    law: NumberLaw
    spread: FloatArray


def reading(randomizer: FrequencyOracle | NumberRandomizer, epsilons: FloatArray, deltas: FloatArray) -> Reading:
    """State what a report says about t.

    Parameters
    ----------
    randomizer : FrequencyOracle or NumberRandomizer
        The family.
    epsilons, deltas : ndarray, shape (levels,)
        Local budgets, nats and probability.
    """
    if isinstance(randomizer, FrequencyOracle):
        own, other = (np.asarray(chance, dtype=np.float64) for chance in randomizer.support_law(epsilons))
        noise, apart = other * (1.0 - other), np.maximum(own - other, 0.0)
        share = other + apart / randomizer.k
        variance = np.stack([noise, apart * (1.0 - own - other), np.zeros_like(noise)])
        return Reading(NumberLaw(other, apart, variance, np.ones_like(noise)), share * (1.0 - share))
    law = randomizer.number_law(epsilons, deltas)
    return Reading(law, law.variance[0] + 0.5 * law.variance[1] + 0.25 * law.variance[2])


def weight_of_reports(known: Reading, weights: Weights | None) -> FloatArray:
    """Give the a_i of (E) up to their common factor, as the analyzers do.

    Parameters
    ----------
    known : Reading
        Of each level's reports.
    weights : {"population", "precision"} or None
        How visible levels are combined, as in `shuffledp.questions.task`; None: levels are withheld, and all weights
        are the same.
    """
    slope = known.law.slope
    if weights is None:
        return np.ones_like(slope)
    above, below = (slope, known.spread) if weights == "precision" else (np.ones_like(slope), slope)
    return np.divide(above, below, out=np.zeros_like(slope), where=(slope > 0.0) & (below > 0.0))


def predict(
    randomizer: FrequencyOracle | NumberRandomizer,
    budgets: Budgets,
    weights: Weights | None,
    moments: Moments,
    width: float = 1.0,
) -> Prediction:
    """Predict the standard error of an estimate.

    Parameters
    ----------
    randomizer : FrequencyOracle or NumberRandomizer
        The family that will draw the reports.
    budgets : Budgets
        Everybody's local budget.
    weights : {"population", "precision"} or None
        As in `weight_of_reports`.
    moments : Moments
        What is known of the records; the rest is taken at its worst.
    width : float
        Width of the range of the answer, positive; 1 for a frequency.

    Raises
    ------
    InvalidInput
        If no report carries information.
    """
    known = reading(randomizer, budgets.epsilons, budgets.deltas)
    law, relative, counts = known.law, weight_of_reports(known, weights), budgets.counts.astype(np.float64)
    total = math.fsum(counts * relative * law.slope)
    if not total > 0.0:
        raise InvalidInput("no report carries information (every epsilon0 is 0); give some users a budget above 0")
    a = relative / total
    n = float(budgets.n)
    squares = counts * a**2
    c0, c1, c2 = (math.fsum(squares * part) for part in law.variance)
    uneven = max(math.fsum(squares * law.slope**2) - 1.0 / n, 0.0) * n / max(n - 1.0, 1.0)
    mean, square = _worst(c1, c2, uneven, moments)
    variance = c0 + c1 * mean + c2 * square + uneven * (square - mean**2)
    error = width * math.sqrt(max(variance, 0.0))
    return Prediction(error, mean, square, error**2 * n)


def user_terms(
    randomizer: FrequencyOracle | NumberRandomizer,
    epsilons: FloatArray,
    delta0: float,
    weights: Weights | None,
    at: Prediction,
) -> UserTerms:
    """Split (P) into what each user adds, with the records' moments held where a prediction found them.

    Parameters
    ----------
    randomizer, weights
        As in `predict`.
    epsilons : ndarray, shape (levels,)
        Local budgets.
    delta0 : float
        Approximate part of every budget.
    at : Prediction
        Whose moments are used.
    """
    known = reading(randomizer, epsilons, np.full_like(epsilons, delta0))
    law, relative = known.law, weight_of_reports(known, weights)
    own = law.variance[0] + law.variance[1] * at.mean + law.variance[2] * at.square
    spread = max(at.square - at.mean**2, 0.0)
    return UserTerms(relative * law.slope, relative**2 * (own + law.slope**2 * spread))


def _worst(c1: float, c2: float, uneven: float, moments: Moments) -> tuple[float, float]:
    """Mean and mean square of the records with the largest variance (P) among those that are possible."""
    found: list[tuple[float, float, float]] = []
    for share in (1.0,) if moments.binary else (0.0, 1.0):
        # E(t^2) = share mean + (1 - share) mean^2
        line, curve = c1 + share * (c2 + uneven), (1.0 - share) * c2 - share * uneven
        means = [0.0, 1.0] if moments.mean is None else [moments.mean]
        if moments.mean is None and curve < 0.0:
            means.append(min(max(-line / (2.0 * curve), 0.0), 1.0))
        for mean in means:
            square = share * mean + (1.0 - share) * mean**2
            if moments.square is not None:
                square = moments.square
            found.append((c1 * mean + c2 * square + uneven * (square - mean**2), mean, square))
    return max(found)[1:]


# The best few public levels: a dynamic programme over the sorted budgets.
#
# Everybody is rounded down to the largest level not above her budget, so that levels v_1 < v_2 < ... cut the sorted
# budgets into intervals. The variance of an estimate is noise/weight^2 (see `UserTerms`), both sums over intervals of
# (users in it) x (a user's part at its level). Its inverse is not additive, but (quadratic transform: Shen and Yu
# 2018, "Fractional programming for communication systems", section II)
#
#     weight^2/noise = max over y of 2 y weight - y^2 noise
#
# is additive for each y, and only one number y is to be searched: over a coarse geometric grid, and from the best
# point of it in turns with y = weight/noise, which never gets worse.

_TURNS = 40
_SPREAD = np.geomspace(0.125, 8.0, 13)


@dataclass(frozen=True)
class Candidates:
    """Candidate levels (public budgets to round down to) from which `best_levels` chooses.

    Parameters
    ----------
    values : ndarray, shape (m,)
        Ascending, different; the first is at most the smallest budget.
    below : ndarray of int, shape (m + 1,)
        Users with a budget below each value; at the end all users.
    fewest : ndarray, shape (m,)
        How many users a level of that value needs; inf if it is not allowed.
    terms : UserTerms
        A user's parts at each value.
    """

    values: FloatArray
    below: NDArray[np.int64]
    fewest: FloatArray
    terms: UserTerms


def best_levels(candidates: Candidates, most: int) -> list[int] | None:
    """Choose at most so many levels with the smallest variance; None if no choice is allowed.

    Parameters
    ----------
    candidates : Candidates
        What to choose from.
    most : int
        At least 1.

    Returns
    -------
    list of int or None
        Positions in ``candidates.values``, ascending.
    """
    users = candidates.below[None, 1:] - candidates.below[:-1, None]  # level at row, next level at column + 1
    allowed = (users >= candidates.fewest[:, None]) & (users > 0)
    users = users.astype(np.float64)
    middle = _middle(candidates)
    if not middle > 0.0:
        return None
    found: list[tuple[float, list[int]]] = []
    for y in middle * _SPREAD:
        chosen = _cut(users, allowed, candidates, float(y), most)
        if chosen is not None:
            found.append((_precision(candidates, chosen)[0], chosen))
    if not found:
        return None
    best, chosen = max(found)
    for _ in range(_TURNS):
        weight, noise = _sums(candidates, chosen)
        again = _cut(users, allowed, candidates, weight / noise if noise > 0.0 else middle, most)
        if again is None or (value := _precision(candidates, again)[0]) <= best:
            break
        best, chosen = value, again
    return chosen


def _cut(
    users: FloatArray, allowed: NDArray[np.bool_], candidates: Candidates, y: float, most: int
) -> list[int] | None:
    """Best cut for one y: value[j] is the best for all users below value j, level by level."""
    m = candidates.values.size
    own = 2.0 * y * candidates.terms.weight - y**2 * candidates.terms.noise
    gain = np.where(allowed, users * own[:, None], -np.inf)
    value = np.where(candidates.below == 0, 0.0, -np.inf)
    steps: list[NDArray[np.intp]] = []
    best, levels = -np.inf, 0
    for level in range(1, most + 1):
        total = value[:m, None] + gain
        origin = np.argmax(total, axis=0)
        value = np.concatenate([[-np.inf], total[origin, np.arange(m)]])
        steps.append(origin)
        if value[m] > best:
            best, levels = float(value[m]), level
        if not np.isfinite(value).any():
            break
    if levels == 0:
        return None
    chosen: list[int] = []
    at = m
    for origin in reversed(steps[:levels]):
        at = int(origin[at - 1])
        chosen.append(at)
    return chosen[::-1]


def _sums(candidates: Candidates, chosen: list[int]) -> tuple[float, float]:
    ends = [*chosen[1:], candidates.values.size]
    users = (candidates.below[ends] - candidates.below[chosen]).astype(np.float64)
    return float(users @ candidates.terms.weight[chosen]), float(users @ candidates.terms.noise[chosen])


def _precision(candidates: Candidates, chosen: list[int]) -> tuple[float, float]:
    weight, noise = _sums(candidates, chosen)
    precision = weight**2 / noise if noise > 0.0 else (np.inf if weight > 0.0 else 0.0)
    return precision, weight


def _middle(candidates: Candidates) -> float:
    """weight/noise if everybody had the largest candidate not above her budget."""
    users = np.diff(candidates.below).astype(np.float64)
    noise = float(users @ candidates.terms.noise)
    return float(users @ candidates.terms.weight) / noise if noise > 0.0 else 1.0
