"""What the planner knows of a question: the question as `release` asks it, and guesses about the records."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shuffledp.ball import BallDummies
from shuffledp.budgets import Budgets
from shuffledp.dummies import WHOLE, Dummies, Uniform, check_dummies
from shuffledp.errors import InvalidInput, shown
from shuffledp.normal import NormalDummies
from shuffledp.numerics.floats import JUST_BELOW
from shuffledp.numerics.interval import FloatArray
from shuffledp.planning.error import Moments, Prediction, predict, reading
from shuffledp.questions.frequency import Frequency
from shuffledp.questions.mean import Mean
from shuffledp.questions.task import Weights
from shuffledp.randomizers.base import FrequencyOracle, NumberRandomizer
from shuffledp.setting import Seen

# What dummies cost an estimate: their own variance, which is known, on top of that of people's reports.
#
# The estimator subtracts the dummies' mean and divides by what people's reports say, so that the dummies add their
# variance divided by the square of the same sum. A uniform dummy has the variance of a report at budget 0; of bits
# the number of ones counts, which a discrete Laplace law keeps near its middle.

NOBODY = Moments(0.0, 0.0)
"""Records that are all at the low end, or of other categories: reports vary least, so dummies cost the most."""


@dataclass(frozen=True)
class DummiesPrice:
    """The standard error of an estimate without and with dummies.

    Parameters
    ----------
    without, total : float
        In the unit of the answer: with the same people and no dummies, and with them.
    """

    without: float
    total: float

    @property
    def factor(self) -> float:
        """By how much dummies widen the standard error; at least 1."""
        return self.total / self.without


def dummies_price(
    randomizer: FrequencyOracle | NumberRandomizer,
    budgets: Budgets,
    dummies: Dummies,
    moments: Moments = NOBODY,
    width: float = 1.0,
) -> DummiesPrice:
    """Predict what dummies cost the estimate of a share or of a mean whose reports do not show their budgets.

    Parameters
    ----------
    randomizer : RandomizedResponse, OneBit or HadamardResponse
        The question's family.
    budgets : Budgets
        Everybody's local budget; some budget is above 0.
    dummies : Uniform, DiscreteLaplace, OnesLaw, NormalDummies or BallDummies
        What the shuffler adds to this question.
    moments : Moments
        What is known of the records, scaled to [0, 1]; by default the ones at which dummies cost the most.
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
    told = math.fsum(budgets.counts * law.slope)
    of_one = float(reading(randomizer, np.zeros(1), np.zeros(1)).law.variance[0][0])
    added = width**2 * of_one * _in_dummies(dummies) / told**2
    return DummiesPrice(without, math.hypot(without, math.sqrt(added)))


def _in_dummies(dummies: Dummies) -> float:
    """Return the variance of the dummies' sum, in units of that of one uniform dummy: of a fair bit this is 1/4."""
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
"""Different budgets that a search looks at."""
MOST_HIDING = 64
"""Levels of the population that stands for everybody while a search certifies."""


def common_delta(budgets: Budgets) -> float:
    """Approximate part that all budgets share.

    Raises
    ------
    InvalidInput
        If they differ: which of two budgets is the smaller one would not be clear.
    """
    if not (budgets.deltas == budgets.deltas[0]).all():
        raise InvalidInput(
            f"rounding budgets to levels needs one delta0 for everybody; got {budgets.deltas.min():g} to "
            f"{budgets.deltas.max():g}"
        )
    return float(budgets.deltas[0])


def some_values(budgets: Budgets, most: int = MOST_VALUES) -> FloatArray:
    """Choose budgets that stand for all: half of them evenly spread over users, half over log(budget).

    Parameters
    ----------
    budgets : Budgets
        The population.
    most : int
        At most about so many, at least 4; smallest and largest are among them.

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
    """Return a population of few levels that hides a user no better: budgets are rounded up.

    Parameters
    ----------
    budgets : Budgets
        The population, of one delta0.
    most : int
        At most about so many levels, at least 4.
    """
    if budgets.levels <= most:
        return budgets
    values = some_values(budgets, most)
    at = np.searchsorted(values, budgets.epsilons, side="left")
    counts = np.bincount(at, weights=budgets.counts, minlength=values.size).astype(np.int64)
    kept = counts > 0
    return Budgets(values[kept], counts[kept], np.full(int(kept.sum()), common_delta(budgets)))


def rounded_down(budgets: Budgets, levels: FloatArray) -> Budgets:
    """Round everybody down to the largest level not above her budget.

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
    """Lower every budget above `most` to it."""
    return Budgets(np.minimum(budgets.epsilons, most), budgets.counts, budgets.deltas)


def level_of(epsilons: FloatArray, levels: FloatArray) -> NDArray[np.intp]:
    """Position of the largest level not above each budget; -1 if there is none."""
    return np.searchsorted(levels, epsilons, side="right") - 1


Family = FrequencyOracle | NumberRandomizer
MOST_CATEGORIES = 10**6


@dataclass(frozen=True)
class Guess:
    """What is guessed of the records before anybody is asked; only the predicted error depends on it.

    Parameters
    ----------
    share : float, optional
        Of a frequency: the share, in [0, 1], of the category whose standard error matters; default: the share with
        the largest.
    mean, deviation : float, optional
        Of a mean: the values' mean and standard deviation; default: those with the largest standard error.

    Raises
    ------
    InvalidInput
        If a guessed share is none, or a deviation is guessed without a mean.

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
    """A question, and what is guessed of the records.

    Parameters
    ----------
    question : Frequency or Mean
        What is asked, as `release` takes it.
    guess : Guess
        About the records.

    Raises
    ------
    InvalidInput
        If the question is another one, a guess belongs to another question, or no values have that mean and deviation.
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
        """Width of the range of the answer; shares lie in [0, 1]."""
        return 1.0 if isinstance(self.question, Frequency) else self.question.high - self.question.low

    @property
    def moments(self) -> Moments:
        """What is known of the records: a record is in the category or not; a number is scaled to [0, 1]."""
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
        """Names of the randomizers that are compared; for two categories ``"krr"`` is what ``"rr"`` is."""
        return tuple(name for name in self.question.mechanisms if name != "rr")

    def predict(
        self, family: Family, budgets: Budgets, weights: Weights | None, dummies: Dummies | None = None
    ) -> Prediction:
        """Predict the standard error of the answer.

        Parameters
        ----------
        family : Family
            The randomizer.
        budgets : Budgets
            The population; everybody reports.
        weights : {"population", "precision"} or None
            How visible levels are combined; None where they are withheld.
        dummies : Dummies, optional
            What the shuffler adds.
        """
        found = predict(family, budgets, weights, self.moments, self.width)
        if dummies is None:
            return found
        at = Moments(found.mean, found.square, binary=self.moments.binary)
        error = dummies_price(family, budgets, dummies, at, self.width).total
        return replace(found, standard_error=error, variance_of_one=error**2 * budgets.n)

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
        family = self.question.randomizer(check_mechanism(mechanism, self.mechanisms), budgets, seen)
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


def check_mechanism(mechanism: str, known: tuple[str, ...]) -> str:
    """Refuse a name that is not among the known ones."""
    if mechanism not in known:
        raise InvalidInput(f"mechanism must be one of {', '.join(known)}; got {shown(mechanism)}")
    return mechanism
