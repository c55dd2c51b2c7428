"""What the planner knows of a question: the question as `release` asks it, and guesses about the records."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from shuffledp.budgets import Budgets
from shuffledp.dummies import Dummies
from shuffledp.errors import InvalidInput, shown
from shuffledp.planning.dummies_price import dummies_price
from shuffledp.planning.error import Moments, Prediction, predict
from shuffledp.questions.frequency import Frequency
from shuffledp.questions.mean import Mean
from shuffledp.questions.task import Weights
from shuffledp.randomizers.base import FrequencyOracle, NumberRandomizer
from shuffledp.setting import Seen

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
