"""Functions that keep their relative accuracy where the textbook form cancels, and outward rounding.

Accuracy contracts are relative, in units of EPS = 2^-53, and hold for real arguments unless said.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from importlib import import_module
from typing import Any, NewType, overload

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import NotConverged

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
    found = float(value)
    return Upper(found if Fraction(found) >= value else next_above(found))


def fraction_down(value: Fraction) -> Lower:
    """Return the largest double that is at or below a fraction."""
    found = float(value)
    return Lower(found if Fraction(found) <= value else next_below(found))


def root_up(square: Fraction) -> Upper:
    """Return a double at or above the square root of ``square``: the root itself where it is a double.

    `math.sqrt` is correctly rounded, so the next double is always enough.
    """
    found = math.sqrt(fraction_up(square))
    return Upper(found if Fraction(found) ** 2 >= square else next_above(found))


def root_down(square: Fraction) -> Lower:
    """Return a double at or below the square root of ``square``: the root itself if it is a double; see `root_up`."""
    found = math.sqrt(fraction_down(square))
    return Lower(found if Fraction(found) ** 2 <= square else next_below(found))


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
# Loading it takes as long as a fifth of an answer of `shuffledp amplify`, and much of the library, a participant's
# client among it, never calls one. Each is SciPy's function of the same name: arguments and results are its own.


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
