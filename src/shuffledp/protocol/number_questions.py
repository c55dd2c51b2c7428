"""The questions about a number in a known range."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.protocol.bins import Bins, read_probabilities
from shuffledp.protocol.choices import check_choice
from shuffledp.protocol.columns import Recode, bounded_numbers
from shuffledp.protocol.mechanisms import FREQUENCY_MECHANISMS, frequency_oracle
from shuffledp.protocol.numbers import ADDED_NOISE, NUMBER_MECHANISMS, NUMBER_SEEN, check_seen, number_randomizer
from shuffledp.protocol.questions import SHARES_SEEN, Question
from shuffledp.randomizers.checks import real_range
from shuffledp.randomizers.moments import TwoMoments
from shuffledp.randomizers.tree import RangeTree
from shuffledp.setting import Seen


@dataclass(frozen=True)
class Number(Question):
    """Base of the questions about a number in a known range.

    Parameters
    ----------
    low, high : float
        The range, finite, low < high. It is public: reading it off the values would leak.

    Raises
    ------
    InvalidInput
        If the range is none.
    """

    low: float
    high: float

    reads: ClassVar[Literal["texts", "numbers"]] = "numbers"

    def __post_init__(self) -> None:
        low, high = real_range(self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def settled(self, recode: Recode) -> Recode:
        """See `Question.settled`: the number for missing records must lie in the range."""
        if recode.other is not None:
            raise InvalidInput(
                f"`other` maps unlisted categories, and a {self.name} has none; `clip` moves numbers into the range"
            )
        if recode.missing_as is None:
            return recode
        try:
            value = float(recode.missing_as)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            value = np.nan
        if not self.low <= value <= self.high:
            raise InvalidInput(
                f"`missing_as` must be a number of the range [{self.low}, {self.high}]; got {recode.missing_as}"
            )
        return Recode(value, None, recode.clip)

    def numbers(self, columns: Sequence[Any], recode: Recode, before: int) -> FloatArray:
        """Return the values, all of them in the range."""
        return bounded_numbers(columns[0], self.low, self.high, recode, before)


@dataclass(frozen=True)
class Mean(Number):
    """The mean of a number in a known range.

    Parameters
    ----------
    low, high : float
        The range, finite, low < high. It is public: reading it off the values would leak.

    Examples
    --------
    >>> Mean(0, 100)
    Mean(low=0.0, high=100.0)
    """

    name: ClassVar[str] = "mean"
    views: ClassVar[tuple[Seen, ...]] = NUMBER_SEEN
    mechanisms: ClassVar[tuple[str, ...]] = tuple(NUMBER_MECHANISMS)

    def views_of(self, mechanism: str) -> tuple[Seen, ...]:
        """See `Question.views_of`; a sum of rounded noise is not certified."""
        return SHARES_SEEN if mechanism in ADDED_NOISE else self.views

    def randomizer(self, mechanism: str, budgets: Budgets, seen: Seen) -> Any:
        """See `Question.randomizer`; where levels are withheld all reports have one shape."""
        check_seen(mechanism, seen)
        return number_randomizer(mechanism, self.low, self.high, budgets, seen)

    def records(self, columns: Sequence[Any], recode: Recode, before: int) -> FloatArray:
        """See `Question.records`: the numbers themselves."""
        return self.numbers(columns, recode, before)

    def draw(
        self, randomizer: Any, records: NDArray[Any], epsilons: ArrayLike, deltas: ArrayLike, random: Randomness
    ) -> NDArray[Any]:
        """See `Question.draw`; Gaussian noise needs the deltas."""
        return randomizer.randomize(records, epsilons, random, delta0=deltas)


@dataclass(frozen=True)
class Variance(Number):
    """The variance of a number in a known range: its mean squared distance from its mean.

    Parameters
    ----------
    low, high : float
        The range, finite, low < high. It is public: reading it off the values would leak.

    Examples
    --------
    >>> Variance(0, 100).mechanisms
    ('two-moments',)
    """

    name: ClassVar[str] = "variance"
    mechanisms: ClassVar[tuple[str, ...]] = ("two-moments",)

    def randomizer(self, mechanism: str, budgets: Budgets, seen: Seen) -> TwoMoments:
        """See `Question.randomizer`."""
        del budgets, seen
        check_choice("mechanism", mechanism, self.mechanisms)
        return TwoMoments(self.low, self.high)

    def records(self, columns: Sequence[Any], recode: Recode, before: int) -> FloatArray:
        """See `Question.records`: the numbers themselves."""
        return self.numbers(columns, recode, before)


@dataclass(frozen=True)
class Histogram(Number):
    """The share of people in each bin of a known range.

    Parameters
    ----------
    low, high : float
        The range, finite, low < high. It is public: reading it off the values would leak.
    bins : int
        Number of bins of equal width, from 2 to 2^24. The last bin holds both its edges, the others the lower one.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range, or the bins are too narrow to be told apart in double precision.

    Examples
    --------
    >>> Histogram(0, 100, bins=4).labels[-1]
    (75.0, 100.0)
    """

    bins: int

    name: ClassVar[str] = "histogram"
    mechanisms: ClassVar[tuple[str, ...]] = ("subset", *(m for m in FREQUENCY_MECHANISMS if m != "subset"))

    def __post_init__(self) -> None:
        super().__post_init__()
        grid = Bins(self.low, self.high, self.bins)
        object.__setattr__(self, "bins", grid.count)

    @property
    def grid(self) -> Bins:
        """The bins."""
        return Bins(self.low, self.high, self.bins)

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """Edges (lower, upper) of each bin."""
        return tuple(pairwise(self.grid.edges.tolist()))

    def randomizer(self, mechanism: str, budgets: Budgets, seen: Seen) -> Any:
        """See `Question.randomizer`; the bins are categories."""
        del seen
        return frequency_oracle(mechanism, self.bins).for_budgets(budgets.epsilons, budgets.counts)

    def records(self, columns: Sequence[Any], recode: Recode, before: int) -> NDArray[np.int64]:
        """See `Question.records`: the bin of each number."""
        return self.grid.codes(self.numbers(columns, recode, before))


@dataclass(frozen=True)
class Quantiles(Number):
    """Quantiles of a number in a known range, and its whole distribution function.

    Parameters
    ----------
    low, high : float
        The range, finite, low < high. It is public: reading it off the values would leak.
    at : sequence of float
        Which quantiles, each in (0, 1): 0.5 is the median.
    bins : int
        Number of bins of equal width, from 2 to 2^22: quantiles are told to a bin.
    branching : int
        Children of a node of the tree of ranges, from 2 to bins.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> Quantiles(0, 100, at=[0.25, 0.5, 0.75]).bins
    256
    """

    at: tuple[float, ...] = (0.25, 0.5, 0.75)
    bins: int = 256
    branching: int = 4

    name: ClassVar[str] = "quantiles"
    mechanisms: ClassVar[tuple[str, ...]] = ("tree",)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "at", tuple(read_probabilities(self.at).tolist()))
        grid = Bins(self.low, self.high, self.bins)
        tree = RangeTree(grid.count, self.branching)
        object.__setattr__(self, "bins", tree.bins)
        object.__setattr__(self, "branching", tree.branching)

    @property
    def grid(self) -> Bins:
        """The bins, which are the leaves of the tree."""
        return Bins(self.low, self.high, self.bins)

    def randomizer(self, mechanism: str, budgets: Budgets, seen: Seen) -> RangeTree:
        """See `Question.randomizer`."""
        del budgets, seen
        check_choice("mechanism", mechanism, self.mechanisms)
        return RangeTree(self.bins, self.branching)

    def records(self, columns: Sequence[Any], recode: Recode, before: int) -> NDArray[np.int64]:
        """See `Question.records`: the bin of each number."""
        return self.grid.codes(self.numbers(columns, recode, before))
