"""E(S)_+ of a weighted sum of independent variables known by their moments, from above.

S = sum_j w_j L_j, w_j >= 0, sum w_j = 1, sum w_j^2 <= q, w_j <= w; the L_j are independent, all with mean m <= 0, not
necessarily of one law; with D_j = L_j - m: E D^2 <= v2, E D^3 <= k3 (k3 >= 0), E|D|^3 <= b3, E D^4 <= b4.

**Padding.** Adding an independent normal variable of mean 0 only raises E(S)_+ (Jensen). So every term may be given
the variance w_j^2 v2, and S the variance v = v2 q, exactly: no lower bound of a variance is ever needed. Normal
variables are sums of arbitrarily many small ones, and add nothing to the third moments of the theorems used below.

**The centre.** T ~ N(m, v). The distance of distribution functions is W1(S, T) <= sum_j w_j^3 b3/v <= w q b3/v (the
mean central limit theorem with constant 1: I. Tyurin 2009; L. Goldstein 2010; proofs in Tyurin, arXiv:0912.0726), and
as the means agree, E S_+ - E T_+ = int_0^inf (F_T - F_S) is at most half of it:

    E S_+ <= sqrt(v) phi(z) k(z) + w q b3/(2 v),    z = -m/sqrt(v),  k(z) = 1 - z (1 - Phi(z))/phi(z).           (N)

**The tail.** L_j is cut at a height c > 0 first: E S_+ <= E( sum w_j min(L_j, c) )_+ + E(L - c)_+, the last term at
most h for all j. With D' = min(L, c) - E min(L, c): Var D' <= v2 (a cut is a contraction), |min(L, c) - m| <= |L -
m|, and means differ by at most h; hence |D'|_p <= |D|_p + h, E D'^3 <= k3 + 3 h v2 + h^3, and D' <= c - m + h =: a.
For theta > 0, x = theta w_j D' <= y := theta w a, and with the remainders of the exponential series, r_i(y) = (e^y -
sum_{l<i} y^l/l!)/y^i, increasing in y,

    e^x <= 1 + x + x^2/2 + x^3/6 + x^4 r_4(y),   x e^x <= x + x^2 + x^3/2 + x^4 r_3(y),
    x^2 e^x <= x^2 + x^3 + x^4 r_2(y),   |x|^3 e^x <= |x|^3 + x^4 r_1(y),   x^2 e^x >= x^2 + x^3.

So the padded sum S' has, under the law tilted by e^(theta S'), of total mass Z,

    log Z <= theta m + theta^2 v/2 + theta^3 w q k3/6 + theta^4 w^2 q b4 r_4,
    mean <= m + theta v + theta^2 w q k3/2 + theta^3 w^2 q b4 r_3 =: m1,
    variance >= v - theta w q b3 - q (v2 g + u^2) =: v_lo,
    variance <= v + theta w q k3 + theta^2 w^2 q b4 r_2 =: v_hi,
    sum of third absolute central moments <= w q ( (b3 + theta w b4 r_1)^(1/3) + u )^3 =: r,

where u = theta w v2 + (theta w)^2 k3/2 + (theta w)^3 b4 r_3 bounds one term's tilted mean, which is not negative, and
g = (theta w)^2 v2/2 + (theta w)^3 k3/6 + (theta w)^4 b4 r_4 is what one term's mass exceeds 1 by, at most (it is at
least 1 by Jensen). Then E S'_+ = Z E~ s_+ e^(-theta s); that function has total variation 2/(e theta), so by the
Berry-Esseen theorem (constant 0.5606 for terms of different laws: Tyurin, arXiv:0912.0726; Shevtsova 2010 has 0.5600)

    E S_+ <= h + Z ( G + 0.5606 (2/(e theta)) r/v_lo^(3/2) ),                                                     (B)
    G = sup over the mean <= m1 and the variance in [v_lo, v_hi] of E s_+ e^(-theta s), s normal:
        at most 1/(theta^2 sqrt(2 pi v_lo)), the largest density; and if m1 <= 0, at most
        sqrt(v_hi/v_lo) sqrt(v_hi) phi(0) k(theta sqrt(v_hi)), since on s > 0 the density grows with the mean up to 0.

Also E S_+ <= h + Z/(e theta), Chernoff's bound. Every theta is valid; the smallest of a grid is taken.

**Rounding.** The terms of log Z are good to 64 units of 2^-53 each. Only theta m is negative, and where log Z is below
600 the others are at most theta |m| + 600; so log Z is raised by 2e-14 theta |m|. Results are raised by 1e-9 relative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shuffledp.numerics.gaussian_tail import mills_slope
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.ratio_moments import RatioMoments

BERRY_ESSEEN = 0.5606
"""Terms of different laws: Tyurin, arXiv:0912.0726, Theorem 4."""
_GRID = np.linspace(0.6, 1.25, 27)
_DOUBT, _LOG_DOUBT = 1e-9, 2e-14
_FLAT = 1e-100
_DEEPEST, _LARGEST_EXPONENT = 40.0, 600.0
"""Remainders are given up beyond the first exponent, log Z beyond the second."""


@dataclass(frozen=True)
class Weights:
    """What is known of the weights, each an array of one shape: one entry for every way to bound the sum.

    Parameters
    ----------
    squares, largest : ndarray, shape (ways,)
        q and w, rounded up.
    cut, lost : ndarray, shape (ways,)
        c and h of the tail.
    """

    squares: FloatArray
    largest: FloatArray
    cut: FloatArray
    lost: FloatArray


def positive_part(growth: float, weights: Weights, moments: RatioMoments) -> FloatArray:
    """Return upper bounds of E(S)_+ for terms of mean m = -growth, shape (ways,).

    Parameters
    ----------
    growth : float
        At least 0, rounded down.
    weights : Weights
        Of the sum.
    moments : RatioMoments
        v2, k3, b3, b4 of one term.
    """
    v = weights.squares * moments.second
    return np.minimum(_centre(growth, v, weights, moments), _tail(growth, v, weights, moments)) * (1.0 + _DOUBT)


def _centre(growth: float, v: FloatArray, weights: Weights, moments: RatioMoments) -> FloatArray:
    """(N)."""
    z = growth / np.sqrt(v)
    height = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return np.sqrt(v) * height * mills_slope(z) + 0.5 * weights.largest * moments.absolute / moments.second


def _tail(growth: float, v: FloatArray, weights: Weights, moments: RatioMoments) -> FloatArray:
    """(B), and Chernoff's bound, at the best theta of a grid around the Gaussian one."""
    if growth <= _FLAT:  # the centre says as much, and 1/theta stays a double
        return np.full_like(v, math.inf)
    w, q, lost = weights.largest[:, None], weights.squares[:, None], weights.lost[:, None]
    above, v, v2 = weights.cut[:, None] + growth + lost, v[:, None], moments.second
    theta = np.minimum(growth / v, 0.7 * _DEEPEST / (w * above)) * _GRID
    k3 = moments.third + 3.0 * lost * v2 + lost**3
    b3 = (moments.absolute ** (1.0 / 3.0) + lost) ** 3
    b4 = (moments.fourth**0.25 + lost) ** 4
    y = theta * w * above
    usable = y < _DEEPEST
    r1, r2, r3, r4 = remainders(np.where(usable, y, 1.0))
    one = theta * w
    log_z = 0.5 * theta**2 * v + one**3 / w * q / w * k3 / 6.0 + one**4 / w * q / w * b4 * r4
    log_z -= theta * growth * (1.0 - _LOG_DOUBT)
    mean = -growth + theta * v + one**2 * q / w * k3 / 2.0 + one**3 * q / w * b4 * r3
    u = one * v2 + one**2 * k3 / 2.0 + one**3 * b4 * r3
    more = one**2 * v2 / 2.0 + one**3 * k3 / 6.0 + one**4 * b4 * r4
    low = v - one * q * b3 - q * (v2 * more + u * u)
    high = v + one * q * k3 + one**2 * q * b4 * r2
    third = w * q * (np.cbrt(b3 + one * b4 * r1) + u) ** 3
    usable &= (low > 1e-3 * v) & (log_z < _LARGEST_EXPONENT)
    low = np.where(usable, low, v)
    inner = np.sqrt(high / low * high) * mills_slope(theta * np.sqrt(high)) / math.sqrt(2.0 * math.pi)
    outer = 1.0 / (theta**2 * np.sqrt(2.0 * math.pi * low))
    body = np.where(mean <= 0.0, np.minimum(inner, outer), outer)
    tilted = body + BERRY_ESSEEN * 2.0 / (math.e * theta) * third / low**1.5
    found = np.exp(np.where(usable, log_z, 0.0)) * np.minimum(tilted, 1.0 / (math.e * theta)) + lost
    return np.where(usable, found, math.inf).min(axis=1)


def remainders(y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """r_1 to r_4 of the exponential series for y > 0, each from the next: no term cancels."""
    small = np.minimum(y, 1.0)
    series = np.full_like(y, 1.0 / math.factorial(24))
    for order in range(23, 3, -1):
        series = 1.0 / math.factorial(order) + small * series
    series *= 1.0 + 1e-15  # what is left out is below 1/25!
    large = np.maximum(y, 1.0)
    r4 = np.where(y <= 1.0, series, (np.expm1(large) - large - large**2 / 2.0 - large**3 / 6.0) / large**4)
    r3 = 1.0 / 6.0 + y * r4
    r2 = 0.5 + y * r3
    return 1.0 + y * r2, r2, r3, r4
