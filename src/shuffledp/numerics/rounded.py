"""exp, expm1 and log rounded correctly: the same double on every processor, with every NumPy and every C library.

NumPy's own differ in their last digit between processors. What is computed from these functions by sums, products,
quotients and square roots of doubles, which IEEE 754 rounds correctly, is the same everywhere; so whole numbers and
decisions that leave this machine, or that a seed repeats, are computed from these.

**How.** x = N log(2)/64 + r with |r| < 0.0055, so e^x = 2^floor(N/64) 2^((N mod 64)/64) e^r: the second factor from a
table of pairs of doubles, the third by its series, both summed as pairs ``high + low``. Parts and their errors, next
to the last step's result:

- log(2)/64 in two parts of 36 bits, whose products with N (below 2^17) are exact, and one of 53: r to 2^-110.
- the square of r exactly; r^3/6 + ... + r^8/8! in doubles, below 2^-25 and so good to 2^-76, and to 2^-68 of r where
  N = 0; the terms left out are below 2^-85.
- the product with the table's entry to 2^-76 of it.

So e^x is good to 2^-74. Where N is not 0, |e^x - 1| > 2^-8.6, so taking 1 away leaves 2^-65. `_DOUBT` = 2^-62 is
charged. Where that leaves open which double is nearest (one in about 2^8 cases), `decimal` decides with as many digits
as needed; it always does, since e^x and log(x) are irrational for every double x but 0 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.numerics.floats import FloatArray, two_product

_CHUNK = 1 << 13  # temporaries stay in cache
_STEPS = 64
_PER_STEP = 92.33248261689366  # 64/log(2), near enough: another N next to it would do
_DOUBT = 2.0**-62
"""Relative; see above."""
_LEAST, _MOST = -600.0, 709.0
"""Beyond, e^x or its low part may leave the range of normal doubles: decided in decimal."""
_NOTHING, _TOO_MUCH = -746.0, 710.0
"""Beyond, e^x is nearest to 0, and to infinity."""
_FEW = 4
"""So few numbers, often the same ones again, are looked up sooner than computed."""
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
    """Return `log_rounded` of each number of a small table."""
    values = np.asarray(x, dtype=np.float64)
    return np.array([log_rounded(value) for value in values.ravel().tolist()]).reshape(values.shape)


def exp_lower(x: Fraction) -> Fraction:
    """Return a number of at most e^x, less than it by at most 2^-200 of itself, by whole-number arithmetic.

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
    """Return a number of at least e^x, more than it by at most 2^-198 of itself; see `exp_lower`."""
    return exp_lower(x) * (1 + Fraction(1, 1 << 199))


def steps_between(least: float, most: float, number: int) -> FloatArray:
    """Return so many numbers whose logarithms are evenly spread, the ends exactly; the same everywhere.

    Parameters
    ----------
    least, most : float
        Positive and finite, least < most.
    number : int
        At least 2.
    """
    low, high = log_rounded(float(least)), log_rounded(float(most))
    found = exp_rounded(low + (high - low) / (number - 1) * np.arange(number))
    found[0], found[-1] = least, most
    return found


def interpolated(x: FloatArray, at: FloatArray, values: FloatArray) -> FloatArray:
    """Return the piecewise linear function through given points, constant beyond them; the same everywhere.

    `numpy.interp` may contract a product and a sum into one operation, or not, as its compiler chose.

    Parameters
    ----------
    x : ndarray
        Where.
    at, values : ndarray, shape (m,)
        The points, ``at`` increasing, m at least 2.
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
    """Return the nearest doubles of one chunk."""
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
    """Return e^x, or e^x - 1, as high + low, to 2^-62 of itself; x from -600 to 709."""
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
    """2^(j/64) as pairs, and log(2)/64 in three parts, the first two of 36 bits."""
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
    """Return the double nearest to an irrational number less a whole one, from as many digits as that takes."""
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
    """Return the nearest double, which Python's division of whole numbers gives, or inf."""
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return math.inf
