"""Certified bounds on numbers, and their arithmetic, rounded outward.

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
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

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
    two_product,
)

__all__ = ["Enclosure", "FloatArray", "Interval"]

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


# exp, expm1 and log rounded correctly: the same double on every processor, with every NumPy and every C library.
#
# NumPy's own differ in their last digit between processors. What is computed from these functions by sums, products,
# quotients and square roots of doubles, which IEEE 754 rounds correctly, is the same everywhere; so whole numbers and
# decisions that leave this machine, or that a seed repeats, are computed from these.
#
# **How.** x = N log(2)/64 + r with |r| < 0.0055, so e^x = 2^floor(N/64) 2^((N mod 64)/64) e^r: the second factor from
# a table of pairs of doubles, the third by its series, both summed as pairs ``high + low``. Parts and their errors,
# next to the last step's result:
#
# - log(2)/64 in two parts of 36 bits, whose products with N (below 2^17) are exact, and one of 53: r to 2^-110.
# - the square of r exactly; r^3/6 + ... + r^8/8! in doubles, below 2^-25 and so good to 2^-76, and to 2^-68 of r where
#   N = 0; the terms left out are below 2^-85.
# - the product with the table's entry to 2^-76 of it.
#
# So e^x is good to 2^-74. Where N is not 0, |e^x - 1| > 2^-8.6, so taking 1 away leaves 2^-65. `_DOUBT` = 2^-62 is
# charged. Where that leaves open which double is nearest (one in about 2^8 cases), `decimal` decides with as many
# digits as needed; it always does, since e^x and log(x) are irrational for every double x but 0 and 1.

_CHUNK = 1 << 13  # temporaries stay in cache
_STEPS = 64
_PER_STEP = 92.33248261689366  # 64/log(2), near enough: another N next to it would do
_DOUBT = 2.0**-62
"""Relative error of the double-double evaluation of e^x and e^x - 1; derived in the comment above."""
_LEAST, _MOST = -600.0, 709.0
"""Range of x outside which e^x or its low part may be subnormal or overflow, so that decimal arithmetic is used."""
_NOTHING, _TOO_MUCH = -746.0, 710.0
"""Bounds on x beyond which the double nearest to e^x is 0, and inf."""
_FEW = 4
"""Arrays of at most this many numbers are evaluated one by one through a cache instead of vectorised."""
_FIRST_DIGITS = 40


def exp_rounded(x: ArrayLike) -> FloatArray:
    """Return the doubles nearest to e^x.

    Parameters
    ----------
    x : array_like of float
        Finite; below 709.78, or the result is inf.

    Returns
    -------
    ndarray of float64, shape of x

    Examples
    --------
    >>> float(exp_rounded(1.0)).hex()
    '0x1.5bf0a8b145769p+1'
    """
    return _in_chunks(x, False)


def expm1_rounded(x: ArrayLike) -> FloatArray:
    """Return the doubles nearest to e^x - 1.

    Parameters
    ----------
    x : array_like of float
        Finite; below 709.78, or the result is inf.

    Returns
    -------
    ndarray of float64, shape of x

    Examples
    --------
    >>> float(expm1_rounded(1.0)).hex()
    '0x1.b7e151628aed3p+0'
    """
    return _in_chunks(x, True)


@lru_cache(maxsize=1 << 14)
def log_rounded(x: float) -> float:
    """Return the double nearest to log(x), for a positive and finite x.

    Examples
    --------
    >>> log_rounded(2.0).hex()
    '0x1.62e42fefa39efp-1'
    """
    if x == 1.0:
        return 0.0
    return _nearest(lambda context: context.ln(Decimal(x)), 0)


def logs_rounded(x: ArrayLike) -> FloatArray:
    """Return `log_rounded` of each number of a small array, in the shape of ``x``."""
    values = np.asarray(x, dtype=np.float64)
    return np.array([log_rounded(value) for value in values.ravel().tolist()]).reshape(values.shape)


def exp_lower(x: Fraction) -> Fraction:
    """Return a lower bound on e^x with a relative error of at most 2^-200, by whole-number arithmetic.

    Parameters
    ----------
    x : Fraction
        From 0 to 1,000.

    Examples
    --------
    >>> float(exp_lower(Fraction(1)))
    2.718281828459045
    """
    one, halvings = 1 << 256, 8 + int(x).bit_length()
    small = int(x * one) >> halvings  # every step rounds down
    total, term, place = 0, one, 0
    while term:
        total, place = total + term, place + 1
        term = (term * small >> 256) // place
    for _ in range(halvings):
        total = total * total >> 256
    return Fraction(total, one)


def exp_upper(x: Fraction) -> Fraction:
    """Return an upper bound on e^x with a relative error of at most 2^-198, for x from 0 to 1,000; see `exp_lower`."""
    return exp_lower(x) * (1 + Fraction(1, 1 << 199))


def steps_between(least: float, most: float, number: int) -> FloatArray:
    """Return ``number`` logarithmically spaced values from ``least`` to ``most``, bit-identical on every machine.

    Parameters
    ----------
    least, most : float
        Positive and finite, least < most; both are returned exactly.
    number : int
        At least 2.
    """
    low, high = log_rounded(float(least)), log_rounded(float(most))
    found = exp_rounded(low + (high - low) / (number - 1) * np.arange(number))
    found[0], found[-1] = least, most
    return found


def interpolated(x: FloatArray, at: FloatArray, values: FloatArray) -> FloatArray:
    """Return the piecewise linear function through given points, constant beyond them, bit-identical on every machine.

    `numpy.interp` may contract a product and a sum into one operation, or not, as its compiler chose.

    Parameters
    ----------
    x : ndarray
        Where to evaluate the function.
    at, values : ndarray, shape (m,)
        Coordinates of the points, ``at`` increasing, m at least 2.
    """
    place = np.clip(np.searchsorted(at, x, side="right") - 1, 0, at.size - 2)
    slope = (values[1:] - values[:-1]) / (at[1:] - at[:-1])
    inner = slope[place] * (x - at[place])
    inner += values[place]
    return np.where(x <= at[0], values[0], np.where(x >= at[-1], values[-1], inner))


def _in_chunks(x: ArrayLike, less_one: bool) -> FloatArray:
    values = np.asarray(x, dtype=np.float64)
    if values.size <= _FEW:
        return np.array([_exactly(one, less_one) for one in values.ravel().tolist()]).reshape(values.shape)
    flat, out = values.ravel(), np.empty(values.size)
    for start in range(0, flat.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        out[part] = _chunk(flat[part], less_one)
    return out.reshape(values.shape)


def _chunk(x: FloatArray, less_one: bool) -> FloatArray:
    """Return the doubles nearest to e^x, or to e^x - 1 if ``less_one``, for one chunk of x."""
    inside = (x >= _LEAST) & (x <= _MOST)
    every = bool(inside.all())
    high, low = _pair(x if every else np.where(inside, x, 0.0), less_one)
    doubt = np.abs(high)
    doubt *= _DOUBT
    found = high + (low + doubt)
    sure = found == high + (low - doubt)
    if not every:
        small, large = x < _NOTHING, x > _TOO_MUCH
        found[small], found[large] = -float(less_one), np.inf
        sure = (sure & inside) | small | large
    for i in np.flatnonzero(~sure).tolist():
        found[i] = _exactly(float(x[i]), less_one)
    return found


def _pair(x: FloatArray, less_one: bool) -> tuple[FloatArray, FloatArray]:
    """Return e^x, or e^x - 1 if ``less_one``, as an unevaluated sum high + low with relative error 2^-62.

    x is from -600 to 709.
    """
    table_high, table_low, first, second, third = _constants()
    whole = np.rint(x * _PER_STEP)
    r = x - whole * first  # exact, as is the next product
    r, r_low = _two_sum(r, -(whole * second))
    r_low -= whole * third
    square, square_low = two_product(r, r)
    cube = 1.0 / 40320.0
    for divisor in (5040.0, 720.0, 120.0, 24.0, 6.0):
        cube = cube * r + 1.0 / divisor
    cube = cube * r * square
    grown, grown_low = _two_sum(r, 0.5 * square)
    grown_low += r_low + r_low * r
    grown_low += 0.5 * square_low
    grown_low += cube
    grown, grown_low = _two_sum(grown, grown_low)  # e^r - 1
    place = whole.astype(np.int64)
    power, place = place >> 6, place & (_STEPS - 1)
    top, top_low = table_high[place], table_low[place]
    product, product_low = two_product(top, grown)
    product_low += top * grown_low
    product_low += top_low * grown
    product_low += top_low
    high, low = _two_sum(top, product)
    low += product_low
    if less_one:
        high, more = _two_sum(high, -np.ldexp(1.0, -power))
        low += more
        near = whole == 0.0  # here the table's entry is 1, and e^r - 1 is the answer with all its digits
        high, low = np.where(near, grown, high), np.where(near, grown_low, low)
    high, low = _two_sum(high, low)
    return np.ldexp(high, power), np.ldexp(low, power)


def _two_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the exact sum as an unevaluated sum ``high + low`` (Knuth)."""
    high = a + b
    part = high - a
    return high, (a - (high - part)) + (b - part)


@lru_cache(maxsize=1)
def _constants() -> tuple[FloatArray, FloatArray, float, float, float]:
    """Return 2^(j/64) as high and low parts, and log(2)/64 in three parts, of which the first two have 36 bits."""
    context = Context(prec=80)
    step = context.divide(context.ln(Decimal(2)), Decimal(_STEPS))
    powers = [Fraction(context.exp(context.multiply(step, Decimal(j)))) for j in range(_STEPS)]
    high = [float(power) for power in powers]
    low = [float(power - Fraction(top)) for power, top in zip(powers, high, strict=True)]
    left = Fraction(step)
    first = float(Fraction(int(left * 2**42), 2**42))
    second = float(Fraction(int((left - Fraction(first)) * 2**78), 2**78))
    return np.array(high), np.array(low), first, second, float(left - Fraction(first) - Fraction(second))


@lru_cache(maxsize=1 << 14)
def _exactly(x: float, less_one: bool) -> float:
    if x == 0.0 or x < _NOTHING:
        return float(x == 0.0) - less_one
    if x > _TOO_MUCH:
        return math.inf
    return _nearest(lambda context: context.exp(Decimal(x)), int(less_one))


def _nearest(value: Callable[[Context], Decimal], less: int) -> float:
    """Return the double nearest to ``value - less`` for an irrational value, using as many digits as that needs."""
    digits = _FIRST_DIGITS
    while True:
        context = Context(prec=digits, rounding=ROUND_FLOOR, Emin=-(10**9), Emax=10**9, traps=[])
        found = value(context)  # correctly rounded; one unit of the last digit is left on either side
        ends = context.next_minus(found), context.next_plus(found)
        least, most = (_as_double(Fraction(end) - less) for end in ends)
        if least == most:
            return least
        digits *= 2


def _as_double(value: Fraction) -> float:
    """Return the double nearest to a fraction, by Python's exact division of integers; inf if it overflows."""
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return math.inf


# Edges of bins of equal width: each the double nearest to the exact quotient, for ends as they are written.

_SLACK = 2.0**-98
"""Relative error of the sums below: fewer than 2^6 roundings of 2^-53 in terms that are 2^-53 of the whole."""
_LEAST_EDGE, _MOST_EDGE = 2.0**-900, 2.0**960
"""Magnitudes between which no operation below underflows or overflows."""


def even_edges(low: float, high: float, count: int) -> FloatArray:
    """Return low + (high - low) i / count for i = 0..count, each correctly rounded.

    Each end is read as the shortest decimal that rounds to it: -0.3 means exactly three tenths, so one of the bins of
    width 0.1 from -0.3 to 0.1 begins at exactly 0. Hence a value that is typed like an edge equals that edge.

    Parameters
    ----------
    low, high : float
        The ends, finite, low < high.
    count : int
        Number of bins, at least 1.

    Returns
    -------
    ndarray, shape (count + 1,)
        Ascending, from low to high.

    Examples
    --------
    >>> even_edges(-0.3, 0.1, 4).tolist()
    [-0.3, -0.2, -0.1, 0.0, 0.1]
    """
    start = Fraction(repr(float(low)))
    step = (Fraction(repr(float(high))) - start) / count
    places = np.arange(count + 1)
    if not (step >= Fraction(_LEAST_EDGE) and max(abs(low), abs(high)) <= _MOST_EDGE):
        return np.array([float(start + step * place) for place in places.tolist()])
    a, b = _edge_pair(start), _edge_pair(step)
    # start + i step = s + low, both sums of two doubles; `low` misses what is below _SLACK of the largest term
    product, rest = two_product(places.astype(np.float64), b[0])
    s = a[0] + product
    back = s - a[0]
    small = ((a[0] - (s - back)) + (product - back)) + rest + (a[1] + places * b[1])
    slack = _SLACK * (abs(a[0]) + product)
    edges, other = s + (small - slack), s + (small + slack)
    for place in np.flatnonzero(edges != other).tolist():
        edges[place] = float(start + step * place)
    return edges


def _edge_pair(value: Fraction) -> tuple[float, float]:
    """Return the double nearest to ``value``, and the double nearest to the remainder."""
    high = float(value)
    return high, float(value - Fraction(high))
