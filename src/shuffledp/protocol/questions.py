"""The questions: what is asked of the records, which randomizers can answer it, and what a record becomes.

A question is a public value. It never holds a record. `shuffledp.protocol.asking.release` asks it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.protocol.choices import check_choice
from shuffledp.protocol.columns import Recode, bounded_vectors, category_codes, read_labels
from shuffledp.protocol.mechanisms import FREQUENCY_MECHANISMS, frequency_oracle
from shuffledp.protocol.vector_families import NORMS, vector_family
from shuffledp.randomizers.balls import positive_number
from shuffledp.randomizers.checks import MAX_COUNTED, WIDEST, whole_number
from shuffledp.setting import Seen

SHARES_SEEN: tuple[Seen, ...] = ("reports", "levels")


@dataclass(frozen=True)
class Question(ABC):
    """Base of the questions."""

    name: ClassVar[str]
    """What the command that asks it is called, such as ``"mean"``."""
    reads: ClassVar[Literal["texts", "numbers"]]
    """Whether the records are words or numbers."""
    views: ClassVar[tuple[Seen, ...]] = SHARES_SEEN
    """What the analyzer may see of the reports."""
    mechanisms: ClassVar[tuple[str, ...]]
    """Names of the randomizers that can answer it; the first is the default."""

    @abstractmethod
    def randomizer(self, mechanism: str, budgets: Budgets, seen: Seen) -> Any:
        """Return the randomizer of that name as it is run for these public budgets.

        Parameters
        ----------
        mechanism : str
            One of `mechanisms`.
        budgets : Budgets
            The population.
        seen : str
            One of `views`.

        Raises
        ------
        InvalidInput
            If there is no such mechanism, or it cannot serve these budgets or this view.
        """

    @abstractmethod
    def records(self, columns: Sequence[Any], recode: Recode, before: int) -> NDArray[Any]:
        """Turn the columns of the records into what the randomizer takes, one entry or row per record.

        Parameters
        ----------
        columns : sequence of columns
            As read from the data, all of one length; one column for every question but the mean of vectors.
        recode : Recode
            What happens to a missing record and to one outside the question's domain.
        before : int
            Rows that came before these, for the row number in an error.

        Raises
        ------
        InvalidInput
            For the first record that the question does not cover and `recode` does not map.
        """

    def settled(self, recode: Recode) -> Recode:
        """Check that `recode` maps into this question's domain, before any record is read."""
        return recode

    def views_of(self, mechanism: str) -> tuple[Seen, ...]:
        """Return those of `views` that a mechanism serves."""
        del mechanism
        return self.views

    def draw(
        self, randomizer: Any, records: NDArray[Any], epsilons: ArrayLike, deltas: ArrayLike, random: Randomness
    ) -> NDArray[Any]:
        """Randomize the records, each under its own budget (scalar or shape (n,))."""
        del deltas
        return randomizer.randomize(records, epsilons, random)

    @property
    def labels(self) -> tuple[Hashable, ...] | None:
        """What each entry of the estimate is about: categories, or bins as (low, high); None for a single number."""
        return None

    @property
    def columns(self) -> int:
        """How many columns hold one record."""
        return 1


@dataclass(frozen=True)
class Frequency(Question):
    """How frequent each of some public categories is among the people.

    Parameters
    ----------
    categories : iterable of hashable, length k
        All possible labels, at least two, all different. They are public: reading them off the records would leak.

    Raises
    ------
    InvalidInput
        If there are fewer than two categories, or one of them is missing or given twice.

    Examples
    --------
    >>> Frequency(["yes", "no"]).labels
    ('yes', 'no')
    """

    categories: tuple[Hashable, ...]

    name: ClassVar[str] = "frequency"
    reads: ClassVar[Literal["texts", "numbers"]] = "texts"
    mechanisms: ClassVar[tuple[str, ...]] = tuple(FREQUENCY_MECHANISMS)

    def __init__(self, categories: Iterable[Hashable]) -> None:
        object.__setattr__(self, "categories", read_labels(categories))

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """The categories, in the order of the estimate."""
        return self.categories

    def randomizer(self, mechanism: str, budgets: Budgets, seen: Seen) -> Any:
        """See `Question.randomizer`; all reports have one shape, which the budgets make best."""
        del seen
        return frequency_oracle(mechanism, len(self.categories)).for_budgets(budgets.epsilons, budgets.counts)

    def settled(self, recode: Recode) -> Recode:
        """See `Question.settled`: words for missing and unlisted records must be categories."""
        for parameter, label in (("missing_as", recode.missing_as), ("other", recode.other)):
            if label is not None and label not in self.categories:
                known = ", ".join(repr(category) for category in self.categories[:5])
                more = ", ..." if len(self.categories) > 5 else ""
                raise InvalidInput(f"`{parameter}` must be one of the categories ({known}{more}); got {shown(label)}")
        return recode

    def records(self, columns: Sequence[Any], recode: Recode, before: int) -> NDArray[np.int64]:
        """See `Question.records`: the place of each record among the categories."""
        return category_codes(columns[0], self.categories, before, recode)


@dataclass(frozen=True)
class VectorMean(Question):
    """The mean of vectors of bounded norm.

    Parameters
    ----------
    dimension : int
        Length of a vector, at least 1.
    norm : float
        Largest norm of a vector, positive. It is public: reading it off the vectors would leak.
    kind : {"l2", "linf", "l1"}
        Which norm is bounded. The randomizer of least predicted error is chosen by it, see `vector_family`.
    slack : float
        How much the error may exceed the best codebook's; more is faster. Default 0.03.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> VectorMean(dimension=8, norm=1.0).columns
    8
    """

    dimension: int
    norm: float
    kind: str = "l2"
    slack: float = 0.03

    name: ClassVar[str] = "vector-mean"
    reads: ClassVar[Literal["texts", "numbers"]] = "numbers"
    mechanisms: ClassVar[tuple[str, ...]] = ("least-error",)

    def __post_init__(self) -> None:
        size = whole_number(self.dimension, "dimension, the length of a vector, must be a whole number", 1, MAX_COUNTED)
        object.__setattr__(self, "dimension", size)
        object.__setattr__(self, "norm", float(positive_number(self.norm, "norm")))
        if not 1.0 / WIDEST <= self.norm <= WIDEST:
            raise InvalidInput(
                f"norm must lie between {1.0 / WIDEST:g} and {WIDEST:g}: count in other units; got {self.norm}"
            )
        check_choice("kind", self.kind, NORMS)

    @property
    def columns(self) -> int:
        """One column for each coordinate."""
        return self.dimension

    def settled(self, recode: Recode) -> Recode:
        """See `Question.settled`: a missing vector is the zero vector, if anything."""
        if recode.other is not None:
            raise InvalidInput("`other` maps unlisted categories, and a mean of vectors has none")
        if recode.missing_as is not None and recode.missing_as not in (0, "0"):
            raise InvalidInput(
                f"`missing_as` must be 0 for vectors (a missing coordinate counts as 0); got {shown(recode.missing_as)}"
            )
        return Recode(None if recode.missing_as is None else 0.0, None, recode.clip)

    def randomizer(self, mechanism: str, budgets: Budgets, seen: Seen) -> Any:
        """See `Question.randomizer`; see `vector_family`."""
        del seen
        check_choice("mechanism", mechanism, self.mechanisms)
        epsilons, counts = budgets.epsilons, budgets.counts
        return vector_family(self.dimension, self.kind, self.norm, epsilons, counts, slack=self.slack)

    def records(self, columns: Sequence[Any], recode: Recode, before: int) -> FloatArray:
        """See `Question.records`: shape (n, dimension)."""
        return bounded_vectors(columns, self.dimension, self.kind, self.norm, recode, before)
