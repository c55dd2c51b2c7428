"""Logarithms in two parts, so that sums of hundreds of multiples keep the last digit of what they are the log of.

A logarithm x is kept as high + low, high the nearest multiple of 2^-28. Whole multiples of high parts, and their sums,
are exact doubles up to 2^24; low parts are below 2^-29, so that what is lost of a thousand multiples is below 2^-70.
`exp` of an exact double is good to a unit, however large its argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from shuffledp.numerics.floats import round_down, round_up
from shuffledp.numerics.interval import Enclosure, FloatArray

_DIGITS = 60
_UNIT = Decimal(2) ** -28
_LOST = 2.0**-68
"""Absolute error of the low parts' sum, with room."""


class LongLogs(NamedTuple):
    """Logarithms as unevaluated sums, two arrays of one shape; -inf has high = -inf and low = 0."""

    high: FloatArray
    low: FloatArray

    def minus(self, other: LongLogs) -> Enclosure:
        """Enclose the differences of finite logarithms, elementwise."""
        value = (self.high - other.high) + (self.low - other.low)
        return Enclosure(round_down(value, 2) - _LOST, round_up(value, 2) + _LOST)

    def exp(self) -> FloatArray:
        """Exponentials, good to 8 EPS relative unless they leave double range; 0 where they do."""
        with np.errstate(under="ignore"):
            return np.exp(self.high) * np.exp(self.low)


def long_logs(values: Sequence[Decimal]) -> LongLogs:
    """Return logarithms of decimals >= 0, shape (values,).

    Parameters
    ----------
    values : sequence of Decimal
        Good to 50 digits.
    """
    high, low = np.full(len(values), -np.inf), np.zeros(len(values))
    with localcontext(prec=_DIGITS):
        for index, value in enumerate(values):
            if value > 0:
                log = value.ln()
                near = (log / _UNIT).to_integral_value() * _UNIT
                high[index], low[index] = float(near), float(log - near)
    return LongLogs(high, low)


@lru_cache(maxsize=8)
def log_factorials(most: int) -> LongLogs:
    """Return log 0!, ..., log most!.

    Parameters
    ----------
    most : int
        From 0 to 100,000.
    """
    with localcontext(prec=_DIGITS):
        product, values = Decimal(1), [Decimal(1)]
        for factor in range(1, most + 1):
            product *= factor
            values.append(product)
        return long_logs(values)


def summed(counts: FloatArray, logs: LongLogs) -> LongLogs:
    """Return counts @ logs; a count of 0 takes nothing, not even of log 0.

    Parameters
    ----------
    counts : ndarray, shape (rows, parts)
        Whole numbers >= 0 as floats, of at most 1,000 in a row.
    logs : LongLogs, shape (parts,)
        Of at most 2^13 in absolute value.
    """
    known = np.isfinite(logs.high)
    high = counts[:, known] @ logs.high[known]
    low = counts[:, known] @ logs.low[known]
    impossible = counts[:, ~known].any(axis=1)
    return LongLogs(np.where(impossible, -np.inf, high), np.where(impossible, 0.0, low))
