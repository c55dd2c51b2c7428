"""Normal dummies: each answer of a question gets an about normal number of dummies, given their fixed total.

A dummy is a fake report that the shuffler adds. Normal dummies serve questionnaires of many questions better than one
ball law: their floors (the guarantees of the dummies alone) compose like normal noise. A cell is the number of dummies
of one answer. Given the total, which is fixed and public, cells are independent with weights about proportional to
e^(-t^2/(2 s^2)) at distance t from their middle. Weights are whole numbers, so the law that is drawn is the one that is
certified (docs/theorems/normal.md).
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
        Number k of answers, hence of cells; at least 2.
    side : tuple of int
        Weights of a cell that holds h +- t dummies, t = 0, 1, ..., h; whole numbers.
    """

    answers: int
    side: tuple[int, ...]

    @property
    def middle(self) -> int:
        """Mean number h of dummies in a cell; a cell holds 0 to 2h dummies."""
        return len(self.side) - 1

    @property
    def count(self) -> int:
        """Total number of dummies of the question, k h, which is fixed and public."""
        return self.answers * self.middle

    @property
    def weights(self) -> tuple[int, ...]:
        """Weights of 0, 1, ..., 2h dummies in a cell: whole numbers, symmetric around h."""
        return (*self.side[:0:-1], *self.side)

    def sums(self, cells: int) -> tuple[FloatArray, float]:
        """Return the law of the total of several independent cells, and its relative error.

        Parameters
        ----------
        cells : int
            Number of cells, at least 0.

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
        """The chances P(M = j) that a cell holds j = 0, ..., 2h dummies, given the fixed total; each to about 1e-12."""
        own, others, every = (self.sums(cells)[0] for cells in (1, self.answers - 1, self.answers))
        left = self.count - np.arange(own.size)
        chances = np.where(left < others.size, others[np.minimum(left, others.size - 1)], 0.0)
        return tuple((own * chances / every[self.count]).tolist())

    @property
    def cell_variance(self) -> float:
        """Variance of the number of dummies in one cell, given the fixed total."""
        return math.fsum(chance * (j - self.middle) ** 2 for j, chance in enumerate(self.cell_law))

    def draw(self, below: Below) -> NDArray[np.int64]:
        """Draw the number of dummies of every answer.

        All cells but the last are drawn from the weights; the fixed total determines the last one. The draw is accepted
        with a chance proportional to the last cell's weight, about once in sqrt(k) tries, and else repeated.

        Parameters
        ----------
        below : callable
            Draws a whole number uniformly from 0..n - 1 for a given n, such as `ball.below_of(random)`.

        Returns
        -------
        ndarray of int64, shape (answers,)
            Numbers of dummies, at least 0, with the sum `count`.
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
        Number k of answers, from 2 to 64.
    spread : float
        s, positive and finite: about the standard deviation of a cell, whose variance is about (1 - 1/k) s^2.
    centre : int
        h, from 0 to 1,024: a cell holds 0 to 2h dummies, with mean h.

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
        """Return the dummies of a given spread with the least middle h such that P(a cell is empty) <= `ends`.

        h is searched in steps of a tenth of the spread; the search stops at 1,024, whose law may miss `ends`.

        Parameters
        ----------
        answers : int
            Number k of answers, from 2 to 64.
        spread : float
            The spread s, positive.
        ends : float
            Largest allowed chance that a given cell is empty, in (0, 1).

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
        """The dummies as the command line spells them: ``normal:SPREAD:CENTRE``."""
        return f"normal:{self.spread!r}:{self.centre}"

    @cached_property
    def side(self) -> tuple[int, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Weights of a cell that holds h +- t dummies, t = 0, 1, ..., h: whole numbers, the same on every machine."""
        return normal_side(self.spread, self.centre)


@dataclass(frozen=True)
class StatedCells(CellDummies):
    """Dummies of one question of k answers whose weights are given as numbers, as a collection's task lists them.

    Parameters
    ----------
    answers : int
        Number k of answers, from 2 to 64.
    side : tuple of int
        Weights of a cell that holds h +- t dummies, t = 0, 1, ..., h: positive whole numbers below 2^64 that do not
        increase; h from 1 to 1,024.

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
    """Return the weights 2^60 e^(-t^2/(2 s^2)), t = 0, ..., h, rounded down to whole numbers, alike on every machine.

    Parameters
    ----------
    spread : float
        The spread s, positive: about the standard deviation of a cell.
    centre : int
        The middle h of a cell, at least 0.
    """
    distance = np.arange(centre + 1.0)
    weights = np.ldexp(exp_rounded(-((distance / spread) ** 2) / 2.0), _FINE)
    return tuple(int(weight) for weight in weights.tolist())


@lru_cache(maxsize=64)
def _sums(weights: tuple[int, ...], cells: int) -> tuple[FloatArray, float]:
    return law_of_sum(np.array([weight / sum(weights) for weight in weights]), cells)
