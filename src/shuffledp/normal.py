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
from itertools import accumulate

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


@dataclass(frozen=True)
class NormalDummies:
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

    @property
    def name(self) -> str:
        """The dummies as the command line spells them."""
        return f"normal:{self.spread!r}:{self.centre}"

    @property
    def count(self) -> int:
        """Number of dummies, a fixed total."""
        return self.answers * self.centre

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """Weight of 0, 1, ..., 2h dummies in a cell, whole numbers, the same on every machine."""
        distance = np.arange(self.centre + 1.0)
        side = [int(weight) for weight in np.ldexp(exp_rounded(-((distance / self.spread) ** 2) / 2.0), _FINE).tolist()]
        return (*side[:0:-1], *side)

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
        return math.fsum(chance * (j - self.centre) ** 2 for j, chance in enumerate(self.cell_law))

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
            if 0 <= last < len(ends) and below(self.weights[self.centre]) < self.weights[last]:
                return np.array([*found, last], dtype=np.int64)


@lru_cache(maxsize=64)
def _sums(weights: tuple[int, ...], cells: int) -> tuple[FloatArray, float]:
    return law_of_sum(np.array([weight / sum(weights) for weight in weights]), cells)
