"""What the planner knows of a question: how `release` asks it, guesses about the records, and the standard error.

**The standard error an estimate will have**, before a record is collected.

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
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shuffledp.ball import BallDummies
from shuffledp.budgets import Budgets
from shuffledp.dummies import WHOLE, Dummies, NormalDummies, Uniform, check_dummies
from shuffledp.errors import InvalidInput, Told, choice, shown
from shuffledp.numerics.floats import JUST_BELOW, FloatArray
from shuffledp.questions.frequency import Frequency
from shuffledp.questions.mean import Mean
from shuffledp.questions.question import Weights
from shuffledp.randomizers.base import FrequencyOracle, NumberLaw, NumberRandomizer
from shuffledp.setting import Seen


@dataclass(frozen=True)
class Moments:
    """The known moments of the records t in [0, 1].

    Parameters
    ----------
    mean : float or None
        Their mean; None if unknown.
    square : float or None
        The mean of their squares, from mean^2 to mean; None if unknown.
    binary : bool
        Whether every t is 0 or 1 (a category), so that both moments are equal.
    """

    mean: float | None = None
    square: float | None = None
    binary: bool = False


@dataclass(frozen=True)
class Prediction:
    """A predicted standard error, and the moments of the records for which it holds.

    Parameters
    ----------
    standard_error : float
        In the unit of the answer (of a frequency: its share).
    mean, square : float
        First and second moment of the scaled records for which it holds: those stated, or the worst ones.
    variance_of_one : float
        standard_error^2 times the number of users: the variance per user at the same mix of budgets.
    """

    standard_error: float
    mean: float
    square: float
    variance_of_one: float


@dataclass(frozen=True)
class UserTerms:
    """The two sums in (P) of the module, as parts that a user at each budget adds.

    (P) is variance = sum noise / (sum weight)^2 - Var(t)/(n-1). The analyzer weighs a report by a_i = r_i / sum weight.

    Parameters
    ----------
    weight : ndarray, shape (levels,)
        r slope: the weight r before scaling, times the slope of the report's mean in t.
    noise : ndarray, shape (levels,)
        r^2 (E v(t) + slope^2 Var(t) n/(n-1)), with v(t) the variance of a report given t.
    """

    weight: FloatArray
    noise: FloatArray


@dataclass(frozen=True)
class Reading:
    """The distribution of a report given t, and the variance that precision weights use.

    Parameters
    ----------
    law : NumberLaw
        Law of a number in its range, or of whether a report supports one category.
    spread : ndarray, shape (levels,)
        Variance at the reference record: the middle of the range, or a fair draw over the categories.
    """

    law: NumberLaw
    spread: FloatArray


def reading(randomizer: FrequencyOracle | NumberRandomizer, epsilons: FloatArray, deltas: FloatArray) -> Reading:
    """Return the mean and variance of a report as functions of the scaled record t in [0, 1], for each budget.

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


def weight_of_reports(reports: Reading, weights: Weights | None) -> FloatArray:
    """Return the a_i of (E), up to a common factor, as the analyzers choose them, shape (levels,).

    Parameters
    ----------
    reports : Reading
        The distribution of each level's reports.
    weights : {"population", "precision"} or None
        How visible levels are combined, as in `shuffledp.questions.question`; None: levels are withheld, all weights
        are the same.
    """
    slope = reports.law.slope
    if weights is None:
        return np.ones_like(slope)
    above, below = (slope, reports.spread) if weights == "precision" else (np.ones_like(slope), slope)
    return np.divide(above, below, out=np.zeros_like(slope), where=(slope > 0.0) & (below > 0.0))


def predict(
    randomizer: FrequencyOracle | NumberRandomizer,
    budgets: Budgets,
    weights: Weights | None,
    moments: Moments,
    width: float = 1.0,
) -> Prediction:
    """Return the predicted standard error of an estimate.

    Parameters
    ----------
    randomizer : FrequencyOracle or NumberRandomizer
        The family that will draw the reports.
    budgets : Budgets
        Everybody's local budget.
    weights : {"population", "precision"} or None
        As for `weight_of_reports`.
    moments : Moments
        Known moments of the records; unknown ones are taken at their worst.
    width : float
        Width of the range of the answer, positive; 1 for a frequency.

    Raises
    ------
    InvalidInput
        If no report carries information.
    """
    reports = reading(randomizer, budgets.epsilons, budgets.deltas)
    law, relative, counts = reports.law, weight_of_reports(reports, weights), budgets.counts.astype(np.float64)
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
    """Return the parts of (P) that a user at each budget adds, at the moments of a prediction.

    Parameters
    ----------
    randomizer, weights
        As for `predict`.
    epsilons : ndarray, shape (levels,)
        Local budgets.
    delta0 : float
        Approximate part of every budget.
    at : Prediction
        The prediction whose moments are used.
    """
    reports = reading(randomizer, epsilons, np.full_like(epsilons, delta0))
    law, relative = reports.law, weight_of_reports(reports, weights)
    own = law.variance[0] + law.variance[1] * at.mean + law.variance[2] * at.square
    spread = max(at.square - at.mean**2, 0.0)
    return UserTerms(relative * law.slope, relative**2 * (own + law.slope**2 * spread))


def _worst(c1: float, c2: float, uneven: float, moments: Moments) -> tuple[float, float]:
    """Return mean and mean square of the possible records with the largest variance (P)."""
    candidates: list[tuple[float, float, float]] = []
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
            candidates.append((c1 * mean + c2 * square + uneven * (square - mean**2), mean, square))
    return max(candidates)[1:]


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
        Number of users with a budget below each value, and at the end of all users.
    fewest : ndarray, shape (m,)
        Number of users that a level of that value needs; inf if it is not allowed.
    terms : UserTerms
        Parts of (P) that a user adds at each value.
    """

    values: FloatArray
    below: NDArray[np.int64]
    fewest: FloatArray
    terms: UserTerms


def best_levels(candidates: Candidates, most: int) -> list[int] | None:
    """Return at most ``most`` levels with the smallest variance; None if no choice is allowed.

    Parameters
    ----------
    candidates : Candidates
        The candidates.
    most : int
        Largest number of levels, at least 1.

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
    cuts: list[tuple[float, list[int]]] = []
    for y in middle * _SPREAD:
        chosen = _cut(users, allowed, candidates, float(y), most)
        if chosen is not None:
            cuts.append((_precision(candidates, chosen)[0], chosen))
    if not cuts:
        return None
    best, chosen = max(cuts)
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
    """Return the best cut for one y: value[j] is the best for all users below value j, level by level."""
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
    """Return weight/noise if everybody had the largest candidate at or below the own budget."""
    users = np.diff(candidates.below).astype(np.float64)
    noise = float(users @ candidates.terms.noise)
    return float(users @ candidates.terms.weight) / noise if noise > 0.0 else 1.0


# What dummies cost an estimate: their own variance, which is known, on top of that of people's reports.
#
# The estimator subtracts the dummies' mean and divides by what people's reports say, so that the dummies add their
# variance divided by the square of the same sum. A uniform dummy has the variance of a report at budget 0; of bits
# the number of ones counts, which a discrete Laplace law keeps near its middle.

NOBODY = Moments(0.0, 0.0)
"""Moments of records all at the low end, or of other categories: reports vary least, so dummies cost the most."""


@dataclass(frozen=True, repr=False)
class DummiesPrice(Told):
    """The standard errors of an estimate without and with dummies.

    Parameters
    ----------
    without, total : float
        Standard error with the same people, without and with the dummies, in the unit of the answer.
    """

    without: float
    total: float

    @property
    def factor(self) -> float:
        """Factor by which dummies increase the standard error; at least 1."""
        return self.total / self.without

    def _told(self) -> str:
        return f"DummiesPrice: standard error {self.total!r} with dummies, {self.without!r} without"


def dummies_price(
    randomizer: FrequencyOracle | NumberRandomizer,
    budgets: Budgets,
    dummies: Dummies,
    moments: Moments = NOBODY,
    width: float = 1.0,
) -> DummiesPrice:
    """Return the predicted standard errors, without and with dummies, of a share or mean with withheld levels.

    Parameters
    ----------
    randomizer : RandomizedResponse, OneBit or HadamardResponse
        The question's family.
    budgets : Budgets
        Everybody's local budget; some budget is above 0.
    dummies : Uniform, DiscreteLaplace, OnesLaw, NormalDummies or BallDummies
        The dummies that the shuffler adds to this question.
    moments : Moments
        Known moments of the records, scaled to [0, 1]; by default those for which dummies cost the most.
    width : float
        Width of the range of the answer, positive; 1 for a share.

    Raises
    ------
    InvalidInput
        If the dummies do not fit the family, or no report carries information.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> people = sdp.Budgets([0.5, 1.0, 4.0], [540, 370, 90])
    >>> round(sdp.dummies_price(sdp.RandomizedResponse(5), people, sdp.Uniform(172)).factor, 2)
    1.1
    """
    check_dummies(randomizer, dummies)
    without = predict(randomizer, budgets, None, moments, width).standard_error
    law = reading(randomizer, budgets.epsilons, budgets.deltas).law
    total_slope = math.fsum(budgets.counts * law.slope)
    of_one = float(reading(randomizer, np.zeros(1), np.zeros(1)).law.variance[0][0])
    added = width**2 * of_one * _in_dummies(dummies) / total_slope**2
    return DummiesPrice(without, math.hypot(without, math.sqrt(added)))


def _in_dummies(dummies: Dummies) -> float:
    """Return the variance of the dummies' sum in units of the variance of one uniform dummy (1/4 for a fair bit)."""
    if isinstance(dummies, Uniform):
        return float(dummies.count)
    if isinstance(dummies, BallDummies):
        share = 1.0 / dummies.columns[0].cells
        return dummies.cell_variance(0) / (share * (1.0 - share))
    if isinstance(dummies, NormalDummies):
        share = 1.0 / dummies.answers
        return dummies.cell_variance / (share * (1.0 - share))
    spread = sum((2 * ones - dummies.count) ** 2 * weight for ones, weight in enumerate(dummies.weights))
    return spread / WHOLE


# Many different budgets, brought down to a few hundred for searches; only public budgets are read.

MOST_VALUES = 192
"""Largest number of different budgets in a search."""
MOST_HIDING = 64
"""Largest number of levels of the population that replaces the whole one in certificates during a search."""


def common_delta(budgets: Budgets) -> float:
    """Return the delta0 that all budgets share.

    Raises
    ------
    InvalidInput
        If they differ: which of two budgets is the smaller one would not be clear.
    """
    if not (budgets.deltas == budgets.deltas[0]).all():
        raise InvalidInput(
            f"rounding budgets to levels needs one delta0 for everybody; got {budgets.deltas.min():g} to "
            f"{budgets.deltas.max():g}; give all the same, or plan those of each delta0 by themselves"
        )
    return float(budgets.deltas[0])


def some_values(budgets: Budgets, most: int = MOST_VALUES) -> FloatArray:
    """Return budgets that represent all: half of them evenly spread over users, half over log(budget).

    Parameters
    ----------
    budgets : Budgets
        The population.
    most : int
        Approximate largest number, at least 4; smallest and largest budget are among them.

    Returns
    -------
    ndarray
        Ascending budgets that users have.
    """
    values = budgets.epsilons
    if values.size <= most:
        return values.copy()
    through = np.cumsum(budgets.counts)
    quantiles = np.searchsorted(through, np.linspace(0.0, float(through[-1]), most // 2))
    positive = values[values > 0.0]
    spread = np.searchsorted(values, np.geomspace(positive[0], positive[-1], most // 2) * JUST_BELOW)
    ends = np.array([0, values.size - 1])
    picked = np.unique(np.concatenate([quantiles, spread, ends]))
    return values[picked[picked < values.size]]


def rounded_up(budgets: Budgets, most: int = MOST_HIDING) -> Budgets:
    """Return a population with budgets rounded up to few levels, which hides a user no better.

    Parameters
    ----------
    budgets : Budgets
        The population, of one delta0.
    most : int
        Approximate largest number of levels, at least 4.
    """
    if budgets.levels <= most:
        return budgets
    values = some_values(budgets, most)
    at = np.searchsorted(values, budgets.epsilons, side="left")
    counts = np.bincount(at, weights=budgets.counts, minlength=values.size).astype(np.int64)
    kept = counts > 0
    return Budgets(values[kept], counts[kept], np.full(int(kept.sum()), common_delta(budgets)))


def rounded_down(budgets: Budgets, levels: FloatArray) -> Budgets:
    """Return the population with each budget rounded down to the largest level that does not exceed it.

    Parameters
    ----------
    budgets : Budgets
        The population, of one delta0.
    levels : ndarray
        Ascending; the first is at most the smallest budget.
    """
    at = level_of(budgets.epsilons, levels)
    counts = np.bincount(at, weights=budgets.counts, minlength=levels.size).astype(np.int64)
    kept = counts > 0
    return Budgets(levels[kept], counts[kept], np.full(int(kept.sum()), common_delta(budgets)))


def capped(budgets: Budgets, most: float) -> Budgets:
    """Return the population with every budget above `most` lowered to it."""
    return Budgets(np.minimum(budgets.epsilons, most), budgets.counts, budgets.deltas)


def level_of(epsilons: FloatArray, levels: FloatArray) -> NDArray[np.intp]:
    """Return for each budget the index of the largest of the ascending ``levels`` not above it; -1 if none is."""
    return np.searchsorted(levels, epsilons, side="right") - 1


Family = FrequencyOracle | NumberRandomizer
MOST_CATEGORIES = 10**6


@dataclass(frozen=True)
class Guess:
    """A guess about the records before anybody is asked, on which only the predicted error depends.

    Parameters
    ----------
    share : float, optional
        For a frequency: the share, in [0, 1], of the category whose standard error matters; default: the share with
        the largest error.
    mean, deviation : float, optional
        For a mean: the values' mean and standard deviation; default: those with the largest standard error.

    Raises
    ------
    InvalidInput
        If a share is not in [0, 1], or a deviation is given without a mean.

    Examples
    --------
    >>> Guess(share=0.1).share
    0.1
    """

    share: float | None = None
    mean: float | None = None
    deviation: float | None = None

    def __post_init__(self) -> None:
        if self.share is not None and not 0.0 <= self.share <= 1.0:
            raise InvalidInput(f"the share of a category must lie in [0, 1]; got {shown(self.share)}")
        if self.deviation is not None and self.mean is None:
            raise InvalidInput("a guessed deviation needs a guessed mean; give both")


NO_GUESS = Guess()


@dataclass(frozen=True)
class PlannedQuestion:
    """A question with a guess about the records.

    Parameters
    ----------
    question : Frequency or Mean
        The question, as for `release`.
    guess : Guess
        The guess about the records.

    Raises
    ------
    InvalidInput
        If the question is of another kind, the guess belongs to another kind, or no values have that mean and
        deviation.
    """

    question: Frequency | Mean
    guess: Guess = NO_GUESS

    def __post_init__(self) -> None:
        question, guess = self.question, self.guess
        if isinstance(question, Frequency):
            if len(question.categories) > MOST_CATEGORIES:
                raise InvalidInput(f"a plan is for at most 1e6 categories; got {len(question.categories)}")
            if guess.mean is not None:
                raise InvalidInput("a guessed mean belongs to the question Mean; guess a share")
        elif isinstance(question, Mean):  # pyright: ignore[reportUnnecessaryIsInstance]
            if guess.share is not None:
                raise InvalidInput("a guessed share belongs to the question Frequency; guess a mean")
            _check_moments(question, guess)
        else:
            raise InvalidInput(f"a plan is for Frequency(categories) or Mean(low, high); got {shown(question)}")

    @property
    def kind(self) -> str:
        """``"mean"`` or ``"frequency"``."""
        return self.question.name

    @property
    def width(self) -> float:
        """Width of the range of the answer; 1 for shares."""
        return 1.0 if isinstance(self.question, Frequency) else self.question.high - self.question.low

    @property
    def moments(self) -> Moments:
        """Known moments of the records as t in [0, 1]: 1 for the category and 0 for others, or a number scaled."""
        question, guess = self.question, self.guess
        if isinstance(question, Frequency):
            return Moments(guess.share, guess.share, binary=True)
        if guess.mean is None:
            return Moments()
        mean = min((guess.mean - question.low) / self.width, 1.0)
        if guess.deviation is None:
            return Moments(mean)
        return Moments(mean, min(mean**2 + (guess.deviation / self.width) ** 2, mean))

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Names of the randomizers that are compared, without "rr", which equals "krr" for two categories."""
        return tuple(name for name in self.question.mechanisms if name != "rr")

    def predict(
        self, family: Family, budgets: Budgets, weights: Weights | None, dummies: Dummies | None = None
    ) -> Prediction:
        """Return the predicted standard error of the answer.

        Parameters
        ----------
        family : Family
            The randomizer.
        budgets : Budgets
            The population; everybody reports.
        weights : {"population", "precision"} or None
            How visible levels are combined; None where they are withheld.
        dummies : Dummies, optional
            The dummies that the shuffler adds.
        """
        prediction = predict(family, budgets, weights, self.moments, self.width)
        if dummies is None:
            return prediction
        at = Moments(prediction.mean, prediction.square, binary=self.moments.binary)
        error = dummies_price(family, budgets, dummies, at, self.width).total
        return replace(prediction, standard_error=error, variance_of_one=error**2 * budgets.n)

    def family(self, mechanism: str, budgets: Budgets, seen: Seen) -> Family:
        """Return the randomizer of that name as `release` would run it for these budgets.

        Parameters
        ----------
        mechanism : str
            One of `mechanisms`.
        budgets : Budgets
            The population.
        seen : str
            As in `Setting`.
        """
        family = self.question.randomizer(choice(mechanism, "mechanism", self.mechanisms), budgets, seen)
        if isinstance(self.question, Mean):
            family.check_budgets(budgets.epsilons, budgets.deltas)
        return family


def _check_moments(question: Mean, guess: Guess) -> None:
    low, high, mean = question.low, question.high, guess.mean
    if mean is None:
        return
    if not low <= mean <= high:
        raise InvalidInput(f"the guessed mean must lie in [{low}, {high}]; got {shown(mean)}")
    most = math.sqrt((mean - low) * (high - mean))
    if guess.deviation is not None and not 0.0 <= guess.deviation <= most:
        raise InvalidInput(
            f"values in [{low}, {high}] with mean {mean} have a standard deviation from 0 to {most:g}; "
            f"got {shown(guess.deviation)}"
        )
