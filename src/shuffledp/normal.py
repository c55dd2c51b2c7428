"""Normal dummies: for each answer of a question about a normal number of dummies, given their total.

They serve questionnaires of many questions better than one ball law: their floors compose like normal noise. Cells are
independent with weights about proportional to e^(-t^2/(2 s^2)) at distance t from their middle, given the total, which
is fixed and public. Weights are whole numbers, so the law that is drawn is the one that is certified
(docs/theorems/normal.md).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from shuffledp.ball import Below
from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.interval import FloatArray, exp_rounded
from shuffledp.numerics.sums import law_of_sum

MOST_ANSWERS = 64
LARGEST_CENTRE = 1024
_FINE = 60
"""The middle of a cell has the weight 2^60."""


class CellDummies:
    """Dummies of one question whose cells have symmetric weights, independently, given their total.

    Attributes
    ----------
    answers : int
        k, at least 2: the cells.
    side : tuple of int
        Weight of a cell that lies 0, 1, ..., h from its middle h, whole numbers.
    """

    answers: int
    side: tuple[int, ...]

    @property
    def middle(self) -> int:
        """h: dummies of a cell in the mean."""
        return len(self.side) - 1

    @property
    def count(self) -> int:
        """Number of dummies, a fixed total."""
        return self.answers * self.middle

    @property
    def weights(self) -> tuple[int, ...]:
        """Weight of 0, 1, ..., 2h dummies in a cell, whole numbers."""
        return (*self.side[:0:-1], *self.side)

    def sums(self, cells: int) -> tuple[FloatArray, float]:
        """Return the law of the total of so many independent cells, and its relative error.

        Parameters
        ----------
        cells : int
            At least 0.

        Returns
        -------
        chances : ndarray, shape (2h cells + 1,)
            P(total = 0), P(total = 1), ...; those above 1e-300 are good to the relative error.
        doubt : float
            The relative error.
        """
        return _sums(self.weights, cells)

    @cached_property
    def cell_law(self) -> tuple[float, ...]:
        """P(M = j) of one cell, j = 0..2h, to about 1e-12 of each."""
        own, others, every = (self.sums(cells)[0] for cells in (1, self.answers - 1, self.answers))
        left = self.count - np.arange(own.size)
        chances = np.where(left < others.size, others[np.minimum(left, others.size - 1)], 0.0)
        return tuple((own * chances / every[self.count]).tolist())

    @property
    def cell_variance(self) -> float:
        """Variance of the number of dummies in one cell."""
        return math.fsum(chance * (j - self.middle) ** 2 for j, chance in enumerate(self.cell_law))

    def draw(self, below: Below) -> NDArray[np.int64]:
        """Draw the number of dummies of every answer.

        All cells but the last are drawn from the weights; the last one follows, and all are kept with its weight as
        their chance, one in about sqrt(k) times.

        Parameters
        ----------
        below : callable
            As for `BallDummies.draw`.

        Returns
        -------
        ndarray of int64, shape (answers,)
        """
        ends = list(accumulate(self.weights))
        while True:
            found = [bisect_right(ends, below(ends[-1])) for _ in range(self.answers - 1)]
            last = self.count - sum(found)
            if 0 <= last < len(ends) and below(self.side[0]) < self.weights[last]:
                return np.array([*found, last], dtype=np.int64)


@dataclass(frozen=True)
class NormalDummies(CellDummies):
    """Dummies of one question of k answers: cells with normal weights, given their total k h.

    Parameters
    ----------
    answers : int
        k, from 2 to 64.
    spread : float
        s, positive and finite: about the standard deviation of a cell. Its variance is (1 - 1/k) s^2.
    centre : int
        h, from 0 to 1,024: a cell has 0 to 2h dummies, h in the mean.

    Raises
    ------
    InvalidInput
        If a number is out of range.

    Examples
    --------
    >>> law = NormalDummies(5, 6.0, 30)
    >>> law.count, round(law.cell_variance, 2)
    (150, 28.8)
    """

    answers: int
    spread: float
    centre: int

    def __post_init__(self) -> None:
        for name, value, least, most in (
            ("answers", self.answers, 2, MOST_ANSWERS),
            ("centre", self.centre, 0, LARGEST_CENTRE),
        ):
            whole = isinstance(value, int) and not isinstance(value, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
            if not (whole and least <= value <= most):
                raise InvalidInput(
                    f"{name} of normal dummies must be a whole number from {least} to {most}; got {shown(value)}"
                )
        if isinstance(self.spread, bool) or not 0.0 < self.spread < math.inf:
            raise InvalidInput(
                f"the spread of normal dummies must be a positive number of dummies; got {shown(self.spread)}"
            )
        object.__setattr__(self, "spread", float(self.spread))

    @classmethod
    def reaching(cls, answers: int, spread: float, ends: float) -> NormalDummies:
        """Return the law of a spread with the fewest dummies whose cells are empty with a chance of at most `ends`.

        The middle h is searched in steps of a tenth of the spread, up to 1,024, where the search ends.

        Parameters
        ----------
        answers : int
            k, from 2 to 64.
        spread : float
            s, positive.
        ends : float
            In (0, 1).

        Examples
        --------
        >>> NormalDummies.reaching(5, 6.0, 1e-8).centre
        31
        """
        least, step = math.ceil(2.0 * spread), max(1, math.ceil(0.1 * spread))

        def law(steps: int) -> NormalDummies:
            return cls(answers, spread, min(least + steps * step, LARGEST_CENTRE))

        low, high = -1, 64
        while high - low > 1:
            middle = (low + high) // 2
            serves = law(middle).centre == LARGEST_CENTRE or law(middle).cell_law[0] <= ends
            low, high = (low, middle) if serves else (middle, high)
        return law(high)

    @property
    def name(self) -> str:
        """The dummies as the command line spells them."""
        return f"normal:{self.spread!r}:{self.centre}"

    @cached_property
    def side(self) -> tuple[int, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Weight of a cell at distance 0, 1, ..., h from its middle: the same on every machine."""
        return normal_side(self.spread, self.centre)


@dataclass(frozen=True)
class StatedCells(CellDummies):
    """Dummies of one question of k answers with stated weights, as a collection's task states them.

    Parameters
    ----------
    answers : int
        k, from 2 to 64.
    side : tuple of int
        Weight of a cell at distance 0, 1, ..., h from its middle: positive, not increasing, below 2^64; h from 1 to
        1,024.

    Raises
    ------
    InvalidInput
        If a number is out of range.

    Examples
    --------
    >>> StatedCells(2, (4, 2, 1)).count
    4
    """

    answers: int
    side: tuple[int, ...]

    def __post_init__(self) -> None:
        whole = all(isinstance(weight, int) and not isinstance(weight, bool) for weight in self.side)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not (2 <= self.answers <= MOST_ANSWERS and whole and 2 <= len(self.side) <= LARGEST_CENTRE + 1):
            raise InvalidInput(
                f"normal dummies have 2 to {MOST_ANSWERS} answers and 2 to {LARGEST_CENTRE + 1} whole weights; got "
                f"{shown(self.answers)} and {len(self.side)} weights"
            )
        if not (self.side[0] < 1 << 64 and self.side[-1] > 0 and all(a >= b for a, b in pairwise(self.side))):
            raise InvalidInput("the weights of normal dummies must be positive, below 2^64, and not increase")


def normal_side(spread: float, centre: int) -> tuple[int, ...]:
    """Return the weights 2^60 e^(-t^2/(2 s^2)), t = 0..h, rounded down to whole numbers, the same on every machine.

    Parameters
    ----------
    spread : float
        s, positive.
    centre : int
        h, at least 0.
    """
    distance = np.arange(centre + 1.0)
    weights = np.ldexp(exp_rounded(-((distance / spread) ** 2) / 2.0), _FINE)
    return tuple(int(weight) for weight in weights.tolist())


@lru_cache(maxsize=64)
def _sums(weights: tuple[int, ...], cells: int) -> tuple[FloatArray, float]:
    return law_of_sum(np.array([weight / sum(weights) for weight in weights]), cells)
