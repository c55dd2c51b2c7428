"""The questions: what is asked of the records, which randomizers can answer it, and what a record becomes.

A question is a public value. It never holds a record. `shuffledp.releases.verb.release` asks it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from numpy.typing import ArrayLike, NDArray

from shuffledp.budgets import Budgets
from shuffledp.numerics.randomness import Randomness
from shuffledp.questions.view import CONFIDENCE, Shape, View
from shuffledp.records.columns import Recode
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
    shape: ClassVar[Shape]
    """What all its answers have in common, for whoever renders them."""

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

    @abstractmethod
    def view(
        self,
        found: Any,
        records: int,
        *,
        level: float = CONFIDENCE,
        simultaneous: bool = False,
        simplex: bool = False,
    ) -> View:
        """Return what is said of an answer; see `shuffledp.questions.view`.

        Parameters
        ----------
        found : Estimate or RangeEstimate
            The analyzer's answer.
        records : int
            Number of records used; public.
        level : float
            Confidence level of the intervals, in (0, 1).
        simultaneous : bool
            Whether the intervals hold together; else each holds by itself.
        simplex : bool
            Whether the nearest shares that could be stand beside the unbiased ones, where the answer is shares.

        Raises
        ------
        InvalidInput
            If level is not in (0, 1).
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
