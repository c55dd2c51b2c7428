"""What is asked of the records, and which randomizers can answer it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput, shown
from shuffledp.planning.error import Moments
from shuffledp.protocol.mechanisms import FREQUENCY_MECHANISMS
from shuffledp.protocol.numbers import NUMBER_MECHANISMS, check_seen, number_randomizer
from shuffledp.randomizers import OneBit
from shuffledp.randomizers.base import FrequencyOracle, NumberRandomizer
from shuffledp.setting import Seen

Family = FrequencyOracle | NumberRandomizer
MOST_CATEGORIES = 10**6


class Question(Protocol):
    """A question of the planner."""

    @property
    def kind(self) -> str:
        """``"mean"`` or ``"frequency"``."""
        ...

    @property
    def width(self) -> float:
        """Width of the range of the answer."""
        ...

    @property
    def moments(self) -> Moments:
        """What is known of the records."""
        ...

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Names of the randomizers that can answer it."""
        ...

    def family(self, mechanism: str, budgets: Budgets, seen: Seen) -> Family:
        """Return the randomizer of that name as it would be run for these budgets."""
        ...


@dataclass(frozen=True)
class FrequencyQuestion:
    """The question of how often each of k categories occurs.

    Parameters
    ----------
    k : int
        Number of categories, from 2 to 1e6.
    share : float, optional
        Share, in [0, 1], of the category whose standard error matters; default: the share with the largest.

    Raises
    ------
    InvalidInput
        If a number is out of range.
    """

    k: int
    share: float | None = None

    def __post_init__(self) -> None:
        whole = isinstance(self.k, int) and not isinstance(self.k, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not whole or not 2 <= self.k <= MOST_CATEGORIES:
            raise InvalidInput(
                f"k, the number of categories, must be a whole number from 2 to 1e6; got {shown(self.k)}"
            )
        if self.share is not None and not 0.0 <= self.share <= 1.0:
            raise InvalidInput(f"the share of a category must lie in [0, 1]; got {shown(self.share)}")

    @property
    def kind(self) -> str:
        """``"frequency"``."""
        return "frequency"

    @property
    def width(self) -> float:
        """Shares lie in [0, 1]."""
        return 1.0

    @property
    def moments(self) -> Moments:
        """A record is in the category, or not."""
        return Moments(self.share, self.share, binary=True)

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Of two categories, k-ary randomized response is the binary one."""
        return tuple(name for name in FREQUENCY_MECHANISMS if name != "rr")

    def family(self, mechanism: str, budgets: Budgets, seen: Seen) -> FrequencyOracle:
        """Return the family with one shape of report for all budgets, as the pipeline runs it.

        Parameters
        ----------
        mechanism : str
            One of `mechanisms`.
        budgets : Budgets
            The population.
        seen : str
            As in `Setting`.
        """
        del seen
        family = FREQUENCY_MECHANISMS[check_mechanism(mechanism, self.mechanisms)](self.k)
        return family.for_budgets(budgets.epsilons, budgets.counts)


@dataclass(frozen=True)
class MeanQuestion:
    """The question of the mean of a number in [low, high].

    Parameters
    ----------
    low, high : float
        The range, finite, low < high; public.
    mean, deviation : float, optional
        Guesses of the values' mean and standard deviation; default: those with the largest standard error.

    Raises
    ------
    InvalidInput
        If the range is none, or no values in it have that mean and deviation.
    """

    low: float
    high: float
    mean: float | None = None
    deviation: float | None = None

    def __post_init__(self) -> None:
        OneBit(self.low, self.high)  # checks the range
        if self.mean is not None and not self.low <= self.mean <= self.high:
            raise InvalidInput(f"the guessed mean must lie in [{self.low}, {self.high}]; got {shown(self.mean)}")
        if self.deviation is None:
            return
        if self.mean is None:
            raise InvalidInput("a guessed deviation needs a guessed mean; give both")
        most = math.sqrt((self.mean - self.low) * (self.high - self.mean))
        if not 0.0 <= self.deviation <= most:
            raise InvalidInput(
                f"values in [{self.low}, {self.high}] with mean {self.mean} have a standard deviation from 0 to "
                f"{most:g}; got {shown(self.deviation)}"
            )

    @property
    def kind(self) -> str:
        """``"mean"``."""
        return "mean"

    @property
    def width(self) -> float:
        """Of the range."""
        return self.high - self.low

    @property
    def moments(self) -> Moments:
        """As guessed, scaled to [0, 1]."""
        if self.mean is None:
            return Moments()
        mean = min((self.mean - self.low) / self.width, 1.0)
        if self.deviation is None:
            return Moments(mean)
        return Moments(mean, min(mean**2 + (self.deviation / self.width) ** 2, mean))

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Randomizers of a number."""
        return tuple(NUMBER_MECHANISMS)

    def family(self, mechanism: str, budgets: Budgets, seen: Seen) -> NumberRandomizer:
        """Return the family as the pipeline runs it; withheld levels need one shape of report for all budgets.

        Parameters
        ----------
        mechanism : str
            One of `mechanisms`.
        budgets, seen
            As in `FrequencyQuestion.family`.
        """
        check_seen(check_mechanism(mechanism, self.mechanisms), seen)
        family = number_randomizer(mechanism, self.low, self.high, budgets, seen)
        family.check_budgets(budgets.epsilons, budgets.deltas)
        return family


def check_mechanism(mechanism: str, known: tuple[str, ...]) -> str:
    """Refuse a name that is not among the known ones."""
    if mechanism not in known:
        raise InvalidInput(f"mechanism must be one of {', '.join(known)}; got {shown(mechanism)}")
    return mechanism
