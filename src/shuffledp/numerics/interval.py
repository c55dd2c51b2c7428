"""The shapes in which certified numbers may leave the library, and their arithmetic, rounded outward.

**Rounding.** `+ - * /` are correctly rounded (IEEE 754), so the neighbouring doubles of a result enclose the exact
one; an exact 0 stays 0. The products and quotients of intervals take their ends from the four corners, 0 times
infinity being 0: the exact set of products of finite numbers. `exp`, `log`, `expm1` and `log1p` are monotone and good
to 2 units in the last place (the C library's stated error, and NumPy's), so ends moved by 4 enclose them; what is
certain beforehand is kept: exp >= 0, expm1 >= -1, and f(0) exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shuffledp.numerics.floats import (
    FloatArray,
    Lower,
    Upper,
    deflated,
    few_digits_down,
    few_digits_up,
    inflated,
    next_above,
    next_below,
    round_down,
    round_up,
)

__all__ = ["Enclosure", "FloatArray", "Interval"]

_FUNCTION_ULPS = 4


class Enclosure(NamedTuple):
    """Element-wise certified bounds: ``lower <= truth <= upper``, two arrays of one shape."""

    lower: FloatArray
    upper: FloatArray

    def times(self, other: Enclosure) -> Enclosure:
        """Return the products of numbers that are not negative, rounded outward; 0 times infinity is 0."""
        with np.errstate(invalid="ignore"):
            lower = np.nan_to_num(self.lower * other.lower, nan=0.0, posinf=math.inf)
            upper = np.nan_to_num(self.upper * other.upper, nan=0.0, posinf=math.inf)
        return Enclosure(_array_down(lower), _array_up(upper))

    def plus(self, other: Enclosure) -> Enclosure:
        """Return the sums, rounded outward."""
        return Enclosure(_array_down(self.lower + other.lower), _array_up(self.upper + other.upper))

    def complement(self) -> Enclosure:
        """Return 1 minus the numbers, rounded outward."""
        return Enclosure(round_down(1.0 - self.upper, 1), round_up(1.0 - self.lower, 1))

    def inflated(self, operations: float) -> Enclosure:
        """Return bounds that are not negative, moved outward by the relative error of so many operations."""
        return Enclosure(deflated(self.lower, operations), inflated(self.upper, operations))


@dataclass(frozen=True, slots=True)
class Interval:
    """Certified bounds on one number: ``lower <= truth <= upper``.

    Arithmetic encloses the exact result of every pair of numbers between the ends; a float counts as exact.

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
    >>> third = Interval(1.0, 1.0) / 3.0
    >>> third.lower < third.upper, 1.0 in third * 3.0
    (True, True)
    """

    lower: Lower
    upper: Upper

    if TYPE_CHECKING:

        def __init__(self, lower: float, upper: float) -> None: ...  # whoever makes an Interval states its proof

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

    def __neg__(self) -> Interval:
        return Interval(-self.upper, -self.lower)

    def __add__(self, other: Interval | float) -> Interval:
        """Return the sum; infinite ends of opposite signs leave everything open."""
        low, high = _ends(other)
        if low == high == 0.0:
            return self
        least, most = self.lower + low, self.upper + high
        return Interval(
            -math.inf if math.isnan(least) else _before(least), math.inf if math.isnan(most) else _after(most)
        )

    def __radd__(self, other: float) -> Interval:
        return self + other

    def __sub__(self, other: Interval | float) -> Interval:
        low, high = _ends(other)
        return self + Interval(-high, -low)

    def __rsub__(self, other: float) -> Interval:
        return -self + other

    def __mul__(self, other: Interval | float) -> Interval:
        low, high = _ends(other)
        if self.lower >= 0.0 and low >= 0.0:  # what is needed most
            return Interval(_product(self.lower, low)[0], _product(self.upper, high)[1])
        return _hull([_product(a, b) for a in (self.lower, self.upper) for b in (low, high)])

    def __rmul__(self, other: float) -> Interval:
        return self * other

    def __truediv__(self, other: Interval | float) -> Interval:
        """Return the quotient; everything is left open if the divisor may be 0."""
        low, high = _ends(other)
        if low <= 0.0 <= high:
            return Interval(-math.inf, math.inf)
        return _hull([_quotient(a, b) for a in (self.lower, self.upper) for b in (low, high)])

    def __rtruediv__(self, other: float) -> Interval:
        return Interval(other, other) / self

    def exp(self) -> Interval:
        """Return e to the power of the number; an end beyond double range is infinite, or 0 below."""
        low, high = (_applied(math.exp, end) for end in (self.lower, self.upper))
        return Interval(
            1.0 if self.lower == 0.0 else max(_down(low), 0.0), 1.0 if self.upper == 0.0 else _up(high, self.upper)
        )

    def log(self) -> Interval:
        """Return the natural logarithm; a lower end at or below 0 gives -inf.

        Raises
        ------
        ValueError
            If the number is certainly negative, or 0.
        """
        if not self.upper > 0.0:
            raise ValueError(f"only positive numbers have a logarithm; got [{self.lower}, {self.upper}]")
        low = math.log(self.lower) if self.lower > 0.0 else -math.inf
        return Interval(
            0.0 if self.lower == 1.0 else _down(low), 0.0 if self.upper == 1.0 else _up(math.log(self.upper), 1.0)
        )

    def expm1(self) -> Interval:
        """Return e to the power of the number, less 1, without cancellation."""
        low, high = (_applied(math.expm1, end) for end in (self.lower, self.upper))
        return Interval(
            0.0 if self.lower == 0.0 else max(_down(low), -1.0), 0.0 if self.upper == 0.0 else _up(high, self.upper)
        )

    def log1p(self) -> Interval:
        """Return log(1 + x) without cancellation; a lower end at or below -1 gives -inf.

        Raises
        ------
        ValueError
            If 1 + x is certainly negative, or 0.
        """
        if not self.upper > -1.0:
            raise ValueError(f"only numbers above -1 have a log1p; got [{self.lower}, {self.upper}]")
        low = math.log1p(self.lower) if self.lower > -1.0 else -math.inf
        return Interval(
            0.0 if self.lower == 0.0 else _down(low), 0.0 if self.upper == 0.0 else _up(math.log1p(self.upper), 1.0)
        )

    def inflated(self, operations: float) -> Interval:
        """Return a number that is not negative, moved outward by the relative error of so many operations.

        For ends that a few plain operations made from certified ones; see `shuffledp.numerics.floats.inflated`.
        """
        return Interval(deflated(self.lower, operations), inflated(self.upper, operations))

    def published(self) -> Interval:
        """Return the interval as it may leave the library, rounded outward to 10 significant digits.

        See `shuffledp.numerics.floats.few_digits_up`.
        """
        return Interval(few_digits_down(self.lower), few_digits_up(self.upper))

    def clipped(self, lower: float, upper: float) -> Interval:
        """Return what is known of a number that lies between two doubles as well, ``lower <= upper``."""
        return Interval(min(max(self.lower, lower), upper), max(min(self.upper, upper), lower))


def _ends(value: Interval | float) -> tuple[float, float]:
    """Both ends; a float is exact."""
    return (value.lower, value.upper) if isinstance(value, Interval) else (value, value)


def _product(a: float, b: float) -> tuple[float, float]:
    """Enclose a b, with 0 times infinity 0: an end is a limit of finite numbers, and 0 times each of them is 0."""
    if a == 0.0 or b == 0.0:
        return 0.0, 0.0
    return _before(a * b), _after(a * b)


def _quotient(a: float, b: float) -> tuple[float, float]:
    """Enclose a/b for b != 0; infinity over infinity may be as small as 0, and the other corners say how large."""
    if a == 0.0 or (math.isinf(a) and math.isinf(b)):
        return 0.0, 0.0
    return _before(a / b), _after(a / b)


def _hull(corners: list[tuple[float, float]]) -> Interval:
    return Interval(min(low for low, _ in corners), max(high for _, high in corners))


def _before(value: float) -> float:
    """Below what was rounded to the value; an infinity may be an overflow, which is above the largest double."""
    return value if value == -math.inf else next_below(value)


def _after(value: float) -> float:
    """Above what was rounded to the value."""
    return value if value == math.inf else next_above(value)


def _applied(function: Callable[[float], float], value: float) -> float:
    """Return the function, infinite where it leaves double range."""
    try:
        return function(value)
    except OverflowError:
        return math.inf


def _down(value: float) -> float:
    """Move a function's value down; an overflow is above the largest double, and -inf is exact."""
    return _before(value) if math.isinf(value) else round_down(value, _FUNCTION_ULPS)


def _up(value: float, argument: float) -> float:
    """Move a function's value up; the limit at minus infinity (0 or -1) is exact."""
    return value if math.isinf(value) or argument == -math.inf else round_up(value, _FUNCTION_ULPS)


def _array_down(value: FloatArray) -> FloatArray:
    """Return the doubles before; 0 and infinities stay: callers' numbers are not negative."""
    return np.where((value > 0.0) & np.isfinite(value), next_below(value), value)


def _array_up(value: FloatArray) -> FloatArray:
    """Return the doubles after; infinities stay."""
    return next_above(value)
