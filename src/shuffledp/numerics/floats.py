"""Functions that keep their relative accuracy where the textbook form cancels, and outward rounding.

Accuracy contracts are relative, in units of EPS = 2^-53, and hold for real arguments unless said.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.numerics.interval import FloatArray

EPS = 2.0**-53


def round_up(value: Any, ulps: int = 4) -> Any:
    """Return ``value`` moved towards +inf by more than ``ulps`` units in the last place."""
    return value + abs(value) * (2.0 * ulps * EPS) + 5e-324


def round_down(value: Any, ulps: int = 4) -> Any:
    """Return ``value`` moved towards -inf by more than ``ulps`` units in the last place."""
    return value - abs(value) * (2.0 * ulps * EPS) - 5e-324


def two_product(a: Any, b: Any) -> tuple[FloatArray, FloatArray]:
    """Return the exact product as an unevaluated sum ``high + low`` (Dekker and Veltkamp).

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
    """Return ``a - b*c`` with a relative error of a few EPS whatever cancels."""
    high, low = two_product(b, c)
    return (np.asarray(a, dtype=np.float64) - high) - low


def _atanh_tail(v: Any) -> Any:
    """Return ``atanh(v)/v - 1 = v^2/3 + v^4/5 + ...`` for |v| <= 0.2, relative error a few EPS."""
    v2 = v * v
    # 13 terms: the first one left out is below 0.04^13/27 < 3e-20 of the leading one
    total = np.full_like(v2, 1.0 / 27.0)
    for denominator in range(25, 1, -2):
        total = total * v2 + 1.0 / denominator
    return total * v2


def log1p_minus(x: FloatArray) -> FloatArray:
    """Return ``log(1 + x) - x`` for x > -1, relative error below 16 EPS."""
    x = np.asarray(x, dtype=np.float64)
    near = (x > -1 / 3) & (x < 0.5)
    safe = np.where(near, x, 0.0)
    v = safe / (2.0 + safe)
    series = v * (2.0 * _atanh_tail(v) - safe)
    with np.errstate(divide="ignore"):
        return np.where(near, series, np.log1p(np.where(near, 0.0, x)) - x)


def entropy_gap(y: FloatArray) -> FloatArray:
    """Return ``(1+y) log(1+y) - y >= 0`` for y >= -1, relative error below 16 EPS (Loader's bd0 kernel)."""
    y = np.asarray(y, dtype=np.float64)
    near = (y > -1 / 3) & (y < 0.5)
    safe = np.where(near, y, 0.0)
    v = safe / (2.0 + safe)
    series = safe * (v + (1.0 + v) * _atanh_tail(v))
    far = np.where(near, 0.0, y)
    with np.errstate(divide="ignore", invalid="ignore"):
        direct = np.where(far <= -1.0, 1.0, (1.0 + far) * np.log1p(far) - far)
    return np.where(near, series, direct)


def expm1_minus(z: NDArray[np.complex128], exp_z: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Return ``exp(z) - 1 - z`` for complex z, given ``exp(z)``, which the caller needs as well.

    Relative error below 32 EPS where |z| < 0.25, absolute error below 4 EPS (|exp(z)| + 1 + |z|) beyond, where
    the function has zeros.
    """
    out = exp_z - 1.0 - z
    near = np.flatnonzero((z.real * z.real + z.imag * z.imag).ravel() < 0.0625)
    if near.size:
        small = z.ravel()[near]
        total = np.full_like(small, 1.0 / 13.0)
        for k in range(12, 2, -1):  # nested Taylor series; 2 * 0.25^12/14! < 1e-18 is left out
            total = (1.0 + total * small) / k
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
    """Return ``log(n!) - log(sqrt(2 pi n) (n/e)^n)`` for whole n >= 1; absolute error below 1e-14 (n = 0: 0)."""
    n = np.asarray(n, dtype=np.float64)
    table = _TABLE[np.minimum(n, 15.0).astype(np.int64)]
    big = np.maximum(n, 16.0)
    r = 1.0 / (big * big)
    # DLMF 5.11.1; the terms alternate, the first left out is below 5e-15 at n = 16
    series = (1 / 12 - r * (1 / 360 - r * (1 / 1260 - r * (1 / 1680 - r * (1 / 1188 - r * (691 / 360360)))))) / big
    return np.where(n < 16, table, series)
