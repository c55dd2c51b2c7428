"""Doubles: outward rounding, counted rounding errors, and intervals, whose arithmetic rounds outward.

Accuracy contracts are relative, in units of EPS = 2^-53, and hold for real arguments unless said.

**Rounding.** `+ - * /` are correctly rounded (IEEE 754), so the neighbouring doubles of a result enclose the exact
one; an exact 0 stays 0. The products and quotients of intervals take their ends from the four corners, 0 times
infinity being 0: the exact set of products of finite numbers. `exp`, `log`, `expm1` and `log1p` are monotone and good
to 2 units in the last place (the C library's stated error, and NumPy's), so ends moved by 4 enclose them; bounds that
hold exactly are kept: exp >= 0, expm1 >= -1, and f(0).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, NewType, overload

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

Upper = NewType("Upper", float)
"""A double proven to be at or above a real number. Arithmetic on it gives a plain float: the proof is lost."""

Lower = NewType("Lower", float)
"""A double proven to be at or below a real number. Arithmetic on it gives a plain float: the proof is lost."""

EPS = 2.0**-53
"""Unit roundoff of double precision: the largest relative error of one correctly rounded operation.

Used only inside this package. Elsewhere docstrings call it a roundoff: "good to 8 roundoffs" is a relative error of at
most 8 EPS.
"""

LARGEST_BELOW_ONE = 1.0 - EPS
"""The largest double below 1."""

TINY = 1e-300
"""Replaces 0 in a divisor or a logarithm; as an absolute rounding allowance it exceeds what underflow can lose."""

SMALLEST = 5e-324
"""The smallest positive double."""

LEAST_MASS = 1e-290
"""Probabilities below this are replaced by 0 on the safe side; quotients of larger ones keep full precision."""

LOG_DEEP = math.log(1e-270)
"""Log-probability below which the probability itself is close to underflow."""

JUST_BELOW = 1.0 - 1e-12
"""Factor that keeps a search strictly below an end of its range; nothing is proved by it."""

DIGITS = 10
"""Number of significant digits of the certified bounds that are published."""

UNBOUNDED = Upper(math.inf)
"""The trivial upper bound, infinity."""


@overload
def round_up(value: float, ulps: float = 4) -> Upper: ...
@overload
def round_up(value: FloatArray, ulps: float = 4) -> FloatArray: ...
def round_up(value: Any, ulps: float = 4) -> Any:
    """Return ``value`` moved towards +inf by at least ``ulps`` units in the last place (of normal numbers); 0 moves."""
    return value + abs(value) * (2.0 * ulps * EPS) + SMALLEST


@overload
def round_down(value: float, ulps: float = 4) -> Lower: ...
@overload
def round_down(value: FloatArray, ulps: float = 4) -> FloatArray: ...
def round_down(value: Any, ulps: float = 4) -> Any:
    """Return ``value`` moved towards -inf by at least ``ulps`` units in the last place (of normal numbers); 0 moves."""
    return value - abs(value) * (2.0 * ulps * EPS) - SMALLEST


@overload
def inflated(value: float, operations: float) -> float: ...
@overload
def inflated(value: FloatArray, operations: float | FloatArray) -> FloatArray: ...
def inflated(value: Any, operations: Any) -> Any:
    """Return ``value`` moved away from 0 by the relative error of ``operations`` rounded operations; 0 stays 0.

    If x is computed by k operations, each within EPS of its result and none of them a cancellation or an underflow,
    then |x| <= |exact| (1 + EPS)^k and |exact| <= |x| (1 + EPS)^k. Callers state 2 k or more; the factor 1 + 2 k EPS,
    itself exact for whole k, and the final product cover (1 + EPS)^(k + 1) for 1 <= k < 2^50.

    Parameters
    ----------
    value : float or ndarray
        A computed number that is not the result of an underflow.
    operations : float
        Bound on the relative error of ``value`` in units of EPS, including the product that is formed here.
    """
    return value * (1.0 + operations * EPS)


@overload
def deflated(value: float, operations: float) -> float: ...
@overload
def deflated(value: FloatArray, operations: float | FloatArray) -> FloatArray: ...
def deflated(value: Any, operations: Any) -> Any:
    """Return ``value`` moved towards 0 by the relative error of ``operations`` rounded operations; see `inflated`."""
    return value * (1.0 - operations * EPS)


@overload
def roundoff(operations: float, size: float = 1.0) -> float: ...
@overload
def roundoff(operations: float | FloatArray, size: FloatArray) -> FloatArray: ...
@overload
def roundoff(operations: FloatArray, size: float = 1.0) -> FloatArray: ...
def roundoff(operations: Any, size: Any = 1.0) -> Any:
    """Bound the absolute error of ``operations`` rounded operations whose results are at most ``size``.

    Returns ``operations * EPS * size``, at least 0. Use it as well for an exponent or logarithm of size at most
    ``size`` with a relative error of EPS, because exponentiating turns its absolute error into a relative one.
    """
    return operations * EPS * size


@overload
def next_above(value: float) -> Upper: ...
@overload
def next_above(value: FloatArray) -> FloatArray: ...
def next_above(value: Any) -> Any:
    """Return the next double towards +inf: at or above what one correctly rounded operation rounded to ``value``."""
    if isinstance(value, np.ndarray):
        return np.nextafter(value, np.inf)
    return math.nextafter(value, math.inf)


@overload
def next_below(value: float) -> Lower: ...
@overload
def next_below(value: FloatArray) -> FloatArray: ...
def next_below(value: Any) -> Any:
    """Return the next double towards -inf: at or below what one correctly rounded operation rounded to ``value``."""
    if isinstance(value, np.ndarray):
        return np.nextafter(value, -np.inf)
    return math.nextafter(value, -math.inf)


def largest_below_one(precision: type[np.float32] | type[np.float64]) -> float:
    """Return the largest number below 1 in a NumPy precision."""
    return float(np.nextafter(precision(1.0), precision(0.0)))


def fraction_up(value: Fraction) -> Upper:
    """Return the smallest double that is at or above a fraction."""
    nearest = float(value)
    return Upper(nearest if Fraction(nearest) >= value else next_above(nearest))


def fraction_down(value: Fraction) -> Lower:
    """Return the largest double that is at or below a fraction."""
    nearest = float(value)
    return Lower(nearest if Fraction(nearest) <= value else next_below(nearest))


def root_up(square: Fraction) -> Upper:
    """Return a double at or above the square root of ``square``: the root itself where it is a double.

    `math.sqrt` is correctly rounded, so the next double is always enough.
    """
    root = math.sqrt(fraction_up(square))
    return Upper(root if Fraction(root) ** 2 >= square else next_above(root))


def root_down(square: Fraction) -> Lower:
    """Return a double at or below the square root of ``square``: the root itself if it is a double; see `root_up`."""
    root = math.sqrt(fraction_down(square))
    return Lower(root if Fraction(root) ** 2 <= square else next_below(root))


def decimal_up(value: Decimal) -> Upper:
    """Return the nearest double, or the next one above, such that its shortest decimal form is at or above ``value``.

    Examples
    --------
    >>> decimal_up(Decimal("0.1") * 3), decimal_up(Decimal("0.1234567890123456789"))
    (0.3, 0.12345678901234568)
    """
    near = float(value)
    return Upper(near if Decimal(repr(near)) >= value else next_above(near))


def few_digits_up(value: float, digits: int = DIGITS) -> Upper:
    """Return the smallest number of ``digits`` significant digits at or above ``value``.

    The last digits of exp and log differ between processors. A certified bound that leaves the library is rounded
    outward to few digits, so that all machines publish the same number unless the bound lies within those last digits
    of a multiple of the last published digit.

    Parameters
    ----------
    value : float
        Finite or infinite, never NaN.
    digits : int
        Number of significant digits, at least 1; by default `DIGITS`.

    Examples
    --------
    >>> few_digits_up(0.1234561, 6)
    0.123457
    >>> few_digits_up(0.1), few_digits_up(0.14867283457719), few_digits_up(-0.14867283457719)
    (0.1, 0.1486728346, -0.1486728345)
    """
    near = f"{value:.{digits - 1}e}"  # correctly rounded; infinities are themselves
    if float(near) >= value:  # the double next to a decimal at or above a double is at or above it
        return Upper(float(near))
    return Upper(float(Context(prec=digits).next_plus(Decimal(near))))


def few_digits_down(value: float) -> Lower:
    """Return the largest number of `DIGITS` significant digits at or below ``value``; see `few_digits_up`."""
    return Lower(-few_digits_up(-value))


def two_product(a: Any, b: Any) -> tuple[FloatArray, FloatArray]:
    """Return the exact product a*b as an unevaluated sum ``high + low`` of two doubles (Dekker and Veltkamp).

    Exact for |a|, |b| below 2^970 and no underflow of the low part.
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    high = a * b
    a1, a2 = _split(a)
    b1, b2 = _split(b)
    return high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2


def _split(a: FloatArray) -> tuple[FloatArray, FloatArray]:
    t = a * 134217729.0  # 2^27 + 1
    top = t - (t - a)
    return top, a - top


def subtract_product(a: Any, b: Any, c: Any) -> FloatArray:
    """Return ``a - b*c`` with a relative error of a few EPS, even where the two terms nearly cancel."""
    high, low = two_product(b, c)
    return (np.asarray(a, dtype=np.float64) - high) - low


_FUNCTION_ULPS = 4


class Enclosure(NamedTuple):
    """Element-wise certified bounds: ``lower <= truth <= upper``, two arrays of one shape."""

    lower: FloatArray
    upper: FloatArray

    def times(self, other: Enclosure) -> Enclosure:
        """Return bounds on the products of non-negative numbers, rounded outward; 0 times infinity is 0."""
        with np.errstate(invalid="ignore"):
            lower = np.nan_to_num(self.lower * other.lower, nan=0.0, posinf=math.inf)
            upper = np.nan_to_num(self.upper * other.upper, nan=0.0, posinf=math.inf)
        return Enclosure(_array_down(lower), _array_up(upper))

    def plus(self, other: Enclosure) -> Enclosure:
        """Return bounds on the sums, rounded outward."""
        return Enclosure(_array_down(self.lower + other.lower), _array_up(self.upper + other.upper))

    def complement(self) -> Enclosure:
        """Return bounds on 1 minus the numbers, rounded outward."""
        return Enclosure(round_down(1.0 - self.upper, 1), round_up(1.0 - self.lower, 1))

    def inflated(self, operations: float) -> Enclosure:
        """Return the non-negative bounds moved outward by the relative error of ``operations`` rounded operations."""
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
        """Return bounds on the sum; infinite ends of opposite signs give (-inf, inf)."""
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
        """Return bounds on the quotient; (-inf, inf) if the divisor may be 0."""
        low, high = _ends(other)
        if low <= 0.0 <= high:
            return Interval(-math.inf, math.inf)
        return _hull([_quotient(a, b) for a in (self.lower, self.upper) for b in (low, high)])

    def __rtruediv__(self, other: float) -> Interval:
        return Interval(other, other) / self

    def exp(self) -> Interval:
        """Return bounds on e^x; an end beyond double range becomes infinite (upper end) or 0 (lower end)."""
        low, high = (_applied(math.exp, end) for end in (self.lower, self.upper))
        return Interval(
            1.0 if self.lower == 0.0 else max(_down(low), 0.0), 1.0 if self.upper == 0.0 else _up(high, self.upper)
        )

    def log(self) -> Interval:
        """Return bounds on log(x); a lower end at or below 0 gives -inf.

        Raises
        ------
        ValueError
            If the upper end is not positive.
        """
        if not self.upper > 0.0:
            raise ValueError(f"only positive numbers have a logarithm; got [{self.lower}, {self.upper}]")
        low = math.log(self.lower) if self.lower > 0.0 else -math.inf
        return Interval(
            0.0 if self.lower == 1.0 else _down(low), 0.0 if self.upper == 1.0 else _up(math.log(self.upper), 1.0)
        )

    def expm1(self) -> Interval:
        """Return bounds on e^x - 1, without cancellation."""
        low, high = (_applied(math.expm1, end) for end in (self.lower, self.upper))
        return Interval(
            0.0 if self.lower == 0.0 else max(_down(low), -1.0), 0.0 if self.upper == 0.0 else _up(high, self.upper)
        )

    def log1p(self) -> Interval:
        """Return bounds on log(1 + x), without cancellation; a lower end at or below -1 gives -inf.

        Raises
        ------
        ValueError
            If the upper end is not above -1.
        """
        if not self.upper > -1.0:
            raise ValueError(f"only numbers above -1 have a log1p; got [{self.lower}, {self.upper}]")
        low = math.log1p(self.lower) if self.lower > -1.0 else -math.inf
        return Interval(
            0.0 if self.lower == 0.0 else _down(low), 0.0 if self.upper == 0.0 else _up(math.log1p(self.upper), 1.0)
        )

    def inflated(self, operations: float) -> Interval:
        """Return the non-negative interval moved outward by the relative error of ``operations`` rounded operations.

        Use it for ends that were computed from certified ones by a few plain operations; see
        `shuffledp.numerics.floats.inflated`.
        """
        return Interval(deflated(self.lower, operations), inflated(self.upper, operations))

    def published(self) -> Interval:
        """Return the interval rounded outward to 10 significant digits, the form in which results leave the library.

        See `shuffledp.numerics.floats.few_digits_up`.
        """
        return Interval(few_digits_down(self.lower), few_digits_up(self.upper))

    def clipped(self, lower: float, upper: float) -> Interval:
        """Return the bounds clipped to [``lower``, ``upper``], in which the number is known to lie."""
        return Interval(min(max(self.lower, lower), upper), max(min(self.upper, upper), lower))


def _ends(value: Interval | float) -> tuple[float, float]:
    """Return the two ends of an interval, or a float as both ends."""
    return (value.lower, value.upper) if isinstance(value, Interval) else (value, value)


def _product(a: float, b: float) -> tuple[float, float]:
    """Enclose a b; 0 times infinity is 0, because an infinite end is a limit of finite numbers."""
    if a == 0.0 or b == 0.0:
        return 0.0, 0.0
    return _before(a * b), _after(a * b)


def _quotient(a: float, b: float) -> tuple[float, float]:
    """Return bounds on a/b for b != 0.

    Infinity over infinity gives 0, its smallest limit; the largest comes from the other corners of the interval.
    """
    if a == 0.0 or (math.isinf(a) and math.isinf(b)):
        return 0.0, 0.0
    return _before(a / b), _after(a / b)


def _hull(corners: list[tuple[float, float]]) -> Interval:
    return Interval(min(low for low, _ in corners), max(high for _, high in corners))


def _before(value: float) -> float:
    """Return a lower bound on the exact result that rounded to ``value``; inf may be an overflow of a finite result."""
    return value if value == -math.inf else next_below(value)


def _after(value: float) -> float:
    """Return an upper bound on the exact result that rounded to ``value``."""
    return value if value == math.inf else next_above(value)


def _applied(function: Callable[[float], float], value: float) -> float:
    """Return ``function(value)``, or inf if it overflows."""
    try:
        return function(value)
    except OverflowError:
        return math.inf


def _down(value: float) -> float:
    """Return a lower bound on a function whose computed value is ``value``; -inf is exact, inf may be an overflow."""
    return _before(value) if math.isinf(value) else round_down(value, _FUNCTION_ULPS)


def _up(value: float, argument: float) -> float:
    """Return an upper bound on a function whose computed value is ``value``; its limit at -inf (0 or -1) is exact."""
    return value if math.isinf(value) or argument == -math.inf else round_up(value, _FUNCTION_ULPS)


def _array_down(value: FloatArray) -> FloatArray:
    """Return the previous doubles of non-negative numbers; 0 and infinity stay."""
    return np.where((value > 0.0) & np.isfinite(value), next_below(value), value)


def _array_up(value: FloatArray) -> FloatArray:
    """Return the next doubles; infinity stays."""
    return next_above(value)
