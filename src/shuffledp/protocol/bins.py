"""Bins of equal width over a public range, and which quantiles are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.edges import even_edges
from shuffledp.numerics.interval import FloatArray
from shuffledp.randomizers.checks import MAX_COUNTED, real_range, whole_number


@dataclass(frozen=True)
class Bins:
    """Bins of equal width over a public range; the last one is closed, the others hold their lower edge only.

    Edges are the exact quotients, correctly rounded (`shuffledp.numerics.edges`), so a value that is an edge is in the
    bin that begins there. Whatever puts values into bins asks here.

    Parameters
    ----------
    low, high : float
        The range, finite, low < high.
    count : int
        How many bins, from 2 to 2^24.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range, or the bins are too narrow to be told apart in double precision.

    Examples
    --------
    >>> Bins(0.0, 10.0, 4).codes(np.array([0.0, 2.5, 9.9, 10.0])).tolist()
    [0, 1, 3, 3]
    """

    low: float
    high: float
    count: int

    def __post_init__(self) -> None:
        low, high = real_range(self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        object.__setattr__(
            self, "count", whole_number(self.count, "bins must be a whole number, such as 20,", 2, MAX_COUNTED)
        )
        _edges(low, high, self.count)

    @property
    def edges(self) -> FloatArray:
        """The public edges, shape (count + 1,)."""
        return _edges(self.low, self.high, self.count)

    def codes(self, numbers: FloatArray) -> NDArray[np.int64]:
        """Bin of each number of the range, 0..count-1."""
        return np.searchsorted(self.edges[1:-1], numbers, side="right").astype(np.int64)


@lru_cache(maxsize=4)
def _edges(low: float, high: float, count: int) -> FloatArray:
    edges = even_edges(low, high, count)
    if not (np.diff(edges) > 0.0).all():
        raise InvalidInput(f"{count} bins over [{low}, {high}] are too narrow for double precision; take fewer")
    edges.flags.writeable = False
    return edges


def read_probabilities(probabilities: Any) -> FloatArray:
    """Check which quantiles are asked for: numbers in (0, 1), at least one."""
    try:
        wanted = np.atleast_1d(np.asarray(probabilities, dtype=np.float64))
    except (TypeError, ValueError):
        raise InvalidInput(
            f"probabilities of quantiles must be numbers in (0, 1); got {shown(probabilities)}"
        ) from None
    inside = (wanted > 0.0) & (wanted < 1.0)
    if wanted.ndim != 1 or wanted.size == 0 or not inside.all():
        raise InvalidInput(f"probabilities of quantiles must be numbers in (0, 1); got {shown(probabilities)}")
    return wanted
