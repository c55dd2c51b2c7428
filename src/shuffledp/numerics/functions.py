"""Functions of doubles that keep their accuracy, and give the same double on every machine where that is said.

Accuracy contracts are relative, in units of EPS = 2^-53, and hold for real arguments unless said.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import NotConverged
from shuffledp.numerics.floats import FloatArray, two_product

_WHOLE = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
"""Arithmetic of long whole numbers."""

# Functions without the cancellation of their textbook form.


def _atanh_tail(v: Any) -> Any:
    """Return ``atanh(v)/v - 1 = v^2/3 + v^4/5 + ...`` for |v| <= 0.2, relative error a few EPS."""
    v2 = v * v
    # 13 terms: the first one left out is below 0.04^13/27 < 3e-20 of the leading one
    total = v2 * (1.0 / 27.0) + 1.0 / 25.0
    for denominator in range(23, 1, -2):
        total *= v2
        total += 1.0 / denominator
    return total * v2


def log1p_minus(x: FloatArray) -> FloatArray:
    """Return ``log(1 + x) - x`` for x > -1, relative error below 16 EPS."""
    x = np.asarray(x, dtype=np.float64)
    near = (x > -1 / 3) & (x < 0.5)
    safe = np.where(near, x, 0.0)
    v = safe / (2.0 + safe)
    series = v * (2.0 * _atanh_tail(v) - safe)
    if near.all():
        return np.asarray(series)
    with np.errstate(divide="ignore"):
        return np.where(near, series, np.log1p(np.where(near, 0.0, x)) - x)


def entropy_gap(y: FloatArray) -> FloatArray:
    """Return ``(1+y) log(1+y) - y >= 0`` for y >= -1, relative error below 16 EPS (Loader's bd0 kernel)."""
    y = np.asarray(y, dtype=np.float64)
    near = (y > -1 / 3) & (y < 0.5)
    safe = np.where(near, y, 0.0)
    v = safe / (2.0 + safe)
    series = safe * (v + (1.0 + v) * _atanh_tail(v))
    if near.all():
        return np.asarray(series)
    far = np.where(near, 0.0, y)
    with np.errstate(divide="ignore", invalid="ignore"):
        direct = np.where(far <= -1.0, 1.0, (1.0 + far) * np.log1p(far) - far)
    return np.where(near, series, direct)


def expm1_minus(z: NDArray[np.complex128], exp_z: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Return ``exp(z) - 1 - z`` for complex z, given ``exp_z = exp(z)``.

    Relative error below 32 EPS where |z| < 0.25; absolute error below 4 EPS (|exp(z)| + 1 + |z|) elsewhere, where the
    function has zeros.
    """
    out = exp_z - 1.0 - z
    near = np.flatnonzero((z.real * z.real + z.imag * z.imag).ravel() < 0.0625)
    if near.size:
        small = z.ravel()[near]
        total = (1.0 + small * (1.0 / 13.0)) / 12
        for k in range(11, 2, -1):  # nested Taylor series; 2 * 0.25^12/14! < 1e-18 is left out
            total *= small
            total += 1.0
            total /= k
        out.ravel()[near] = small * small * (0.5 + 0.5 * small * total)
    return out


def log1p_minus_small(w: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Return ``log(1 + w) - w`` for complex |w| < 0.3, relative error below 32 EPS."""
    v = w / (2.0 + w)
    return np.asarray(v * (2.0 * _atanh_tail(v) - w), dtype=np.complex128)


def _stirling_error_table(size: int) -> FloatArray:
    values = [0.0]
    for n in range(1, size):
        head = (n + 0.5) * math.log(n) - n + 0.5 * math.log(2.0 * math.pi)
        values.append(math.lgamma(n + 1.0) - head)
    return np.array(values)


_TABLE = _stirling_error_table(16)


def stirling_error(n: FloatArray) -> FloatArray:
    """Return ``log(n!) - log(sqrt(2 pi n) (n/e)^n)`` for whole n >= 1, absolute error below 1e-14; 0 for n = 0."""
    n = np.asarray(n, dtype=np.float64)
    big = np.maximum(n, 16.0)
    r = 1.0 / (big * big)
    # DLMF 5.11.1; the terms alternate, the first left out is below 5e-15 at n = 16
    series = (1 / 12 - r * (1 / 360 - r * (1 / 1260 - r * (1 / 1680 - r * (1 / 1188 - r * (691 / 360360)))))) / big
    few = n < 16
    return np.where(few, _TABLE[np.minimum(n, 15.0).astype(np.int64)], series) if few.any() else np.asarray(series)


# Functions of `scipy.special`, which is loaded at the first call of one of them.
#
# Loading it takes as long as a fifth of an answer of `shuffledp amplify`, and much of the library never calls
# one. Each is SciPy's function of the same name: arguments and results are its own.


@cache
def _scipys(name: str) -> Callable[..., Any]:
    return getattr(import_module("scipy.special"), name)


def _late(name: str) -> Callable[..., Any]:
    """Return a function that imports `scipy.special` on its first call and applies the SciPy function ``name``."""

    def call(*arguments: Any) -> Any:
        return _scipys(name)(*arguments)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`scipy.special.{name}`."
    return call


bdtr = _late("bdtr")
bdtrc = _late("bdtrc")
betainc = _late("betainc")
betainccinv = _late("betainccinv")
betaincinv = _late("betaincinv")
betaln = _late("betaln")
erfcx = _late("erfcx")
gammaln = _late("gammaln")
lambertw = _late("lambertw")
log_ndtr = _late("log_ndtr")
ndtr = _late("ndtr")
ndtri = _late("ndtri")
ndtri_exp = _late("ndtri_exp")
roots_legendre = _late("roots_legendre")


# Inversion of monotone functions that returns both sides of the crossing, each verified.


def crossing(
    function: Callable[[float], float],
    target: float,
    low: float,
    high: float,
    guess: float | None = None,
    tolerance: float = 1e-6,
) -> tuple[float, float]:
    """Bracket the point at which a non-increasing, non-negative function falls to ``target``.

    Parameters
    ----------
    function : callable
        Non-increasing on [low, high]; values in [0, inf), never NaN.
    target : float
        Positive.
    low, high : float
        Ends of the search; the caller knows that ``function(low) > target >= function(high)``.
    guess : float, optional
        Expected crossing; it changes the number of evaluations only.
    tolerance : float
        Relative width of the returned bracket (of its upper end).

    Returns
    -------
    above, below : float
        ``low <= above <= below <= high`` with ``function(above) > target`` (or above == low) and
        ``function(below) <= target`` (or below == high), each evaluated: the caller picks the safe side.

    Raises
    ------
    NotConverged
        If the function returns NaN, or 200 evaluations do not suffice.

    Notes
    -----
    Regula falsi on log(function) with the Illinois correction, guarded by bisection: a handful of
    evaluations for privacy profiles, whose logarithm is smooth.
    """
    goal = math.log(target)
    gap_low = gap_high = math.inf  # |log f - goal| at the two ends, halved when an end lingers (Illinois)
    point = 0.5 * (low + high) if guess is None else min(max(guess, low), high - 0.9 * tolerance * high)
    stride, last = 0.01, 0
    for step in range(200):
        value = function(point)
        if math.isnan(value):
            raise NotConverged(f"a search met an undefined value at {point}; nothing can be certified")
        gap = abs(math.log(value) - goal) if value > 0 else math.inf
        if value > target:
            low, gap_low, gap_high = point, gap, gap_high * (0.5 if last == 1 else 1.0)
            last = 1
        else:
            high, gap_high, gap_low = point, gap, gap_low * (0.5 if last == -1 else 1.0)
            last = -1
        if high - low <= tolerance * high:
            return low, high
        if math.isfinite(gap_low) and math.isfinite(gap_high) and step % 12 != 11:
            point = low + (high - low) * gap_low / max(gap_low + gap_high, 1e-300)
        elif step == 0 and gap > 1.0 and last == 1:
            point = high  # far above the target: the crossing may hug the upper end
        elif guess is not None and stride < 1.0 and step % 12 != 11:
            point, stride = (point * (1 + stride) if last == 1 else point * (1 - stride)), stride * 5
        else:
            point = 0.5 * (low + high)
        margin = 0.4 * tolerance * high  # step past the root, so that the bracket closes from both sides
        point = min(max(point + (margin if last == 1 else -margin), low + margin), high - margin)
    raise NotConverged("a search did not converge in 200 steps; nothing can be certified")


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
    steps = exp_rounded(low + (high - low) / (number - 1) * np.arange(number))
    steps[0], steps[-1] = least, most
    return steps


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
    rounded = high + (low + doubt)
    sure = rounded == high + (low - doubt)
    if not every:
        small, large = x < _NOTHING, x > _TOO_MUCH
        rounded[small], rounded[large] = -float(less_one), np.inf
        sure = (sure & inside) | small | large
    for i in np.flatnonzero(~sure).tolist():
        rounded[i] = _exactly(float(x[i]), less_one)
    return rounded


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
        decimal = value(context)  # correctly rounded; one unit of the last digit is left on either side
        ends = context.next_minus(decimal), context.next_plus(decimal)
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


def correlated(ways: list[int], weighted: list[int]) -> list[int]:
    """Return the sums of ways[s] weighted[s + v] over s, for v = 0, 1, ..., which must not be negative; exact.

    One product of two long decimal numbers gives them all: `decimal` multiplies by a number-theoretic transform.

    Parameters
    ----------
    ways, weighted : list of int
        As many numbers of either, of any sign.

    Examples
    --------
    >>> correlated([1, 2, 3], [4, -1, 5])
    [17, 9, 5]
    """
    size = len(ways)
    width = (max(map(abs, ways)) * max(map(abs, weighted)) * size).bit_length() * 30103 // 100_000 + 3
    moved = Decimal(("5" + "0" * (width - 1)) * (2 * size - 1))  # other lags may be negative: all go up, and back
    product = _WHOLE.multiply(_packed(ways[::-1], width), _packed(weighted, width))
    digits = str(_WHOLE.add(product, moved)).zfill(width * (2 * size - 1))
    half, end = 5 * 10 ** (width - 1), len(digits)
    return [
        int(Decimal(digits[end - width * (place + 1) : end - width * place])) - half
        for place in range(size - 1, 2 * size - 1)
    ]


def _packed(numbers: list[int], width: int) -> Decimal:
    """Sum of numbers[i] 10^(width i), for numbers of any sign."""
    above, below = (
        Decimal("".join(str(Decimal(max(sign * number, 0))).zfill(width) for number in reversed(numbers)))
        for sign in (1, -1)
    )
    return _WHOLE.subtract(above, below)
