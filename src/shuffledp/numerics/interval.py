"""The one shape in which a certified number may leave the library."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class Enclosure(NamedTuple):
    """Element-wise certified bounds: ``lower <= truth <= upper``, two arrays of one shape."""

    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, slots=True)
class Interval:
    """Certified bounds on one number: ``lower <= truth <= upper``.

    Parameters
    ----------
    lower, upper : float
        Finite or infinite, never NaN, ``lower <= upper``.

    Raises
    ------
    ValueError
        If an end is NaN or the ends are out of order.

    Examples
    --------
    >>> Interval(0.1, 0.2).width
    0.1
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        if math.isnan(self.lower) or math.isnan(self.upper):
            raise ValueError(f"an Interval has no NaN end; got [{self.lower}, {self.upper}]")
        if self.lower > self.upper:
            raise ValueError(f"an Interval needs lower <= upper; got [{self.lower}, {self.upper}]")

    @property
    def width(self) -> float:
        """``upper - lower``; 0 when both ends are the same infinity."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper
