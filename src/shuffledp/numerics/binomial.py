"""Binomial probabilities and tails to ten digits and more: any n up to 1e12 and beyond, down to 1e-300.

The pmf is Loader's saddle-point form. A tail is the pmf at its end times a ratio that the incomplete beta
integral gives without cancellation:

    P(X >= a) = pmf(a) * a * int_0^1 (1-s)^(a-1) (1 + rho s)^(n-a) ds,      rho = p/(1-p),              (T)

whose log-integrand is concave and, for a at or above the mean, decreasing; it is written as a sum of three
non-positive terms, cut where it has fallen by e^-40, and integrated by 24-point Gauss-Legendre quadrature.

Rounding: the pmf's exponent is a sum of terms of one sign, each good to 16 EPS, so its absolute error is below
1e-14 + 3e-15 * |log pmf|, under 3e-12 down to 1e-300; the quadrature's terms are positive, each good to
40 * 40 EPS; the integrand is a polynomial, bounded on the Bernstein ellipse of radius 3.5 around the
interval, which makes the quadrature error below 1e-13 of the integral; the part cut off is below e^-40.
`RELATIVE_ERROR` is a generous total; tests compare with ball arithmetic.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shuffledp.numerics.floats import (
    entropy_gap,
    log1p_minus,
    stirling_error,
    subtract_product,
)
from shuffledp.numerics.interval import FloatArray

RELATIVE_ERROR = 2e-11
"""Relative error of every probability below 1 returned here, for values of at least 1e-300."""

COMBINED_ERROR = 2.0 * RELATIVE_ERROR + 1e-13
"""Relative error of a product or a quotient of two of them, its own roundings and those of its arguments included."""

_LEGENDRE = np.polynomial.legendre.leggauss(24)
_NODES, _WEIGHTS = (_LEGENDRE[0] + 1.0) / 2.0, _LEGENDRE[1] / 2.0
_DROP = 40.0


def log_pmf(k: Any, n: Any, p: Any) -> FloatArray:
    """Return log P(X = k) for X ~ Bin(n, p), element-wise; -inf outside the support.

    Parameters
    ----------
    k, n : array_like of whole numbers
        As floats, 0 <= n <= 2^53; any k.
    p : array_like
        In [0, 1]; the double given is taken as exact.
    """
    k, n, p = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (k, n, p)))
    inside = (k >= 0) & (k <= n)
    at_end = (k == 0) | (k == n)
    regular = inside & ~at_end & (p > 0) & (p < 1)
    kk, nn, pp = np.where(regular, k, 1.0), np.where(regular, n, 2.0), np.where(regular, p, 0.5)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        gap = subtract_product(kk, nn, pp)  # k - n p, fully accurate
        mean, rest = nn * pp, nn * (1.0 - pp)
        deviance = mean * entropy_gap(gap / mean) + rest * entropy_gap(-gap / rest)
        core = stirling_error(nn) - stirling_error(kk) - stirling_error(nn - kk) - deviance
        core += 0.5 * (np.log(nn) - np.log(2.0 * np.pi * kk) - np.log(nn - kk))
        # q^n and p^n: n log1p(-p) and n log p, the empty binomial (n = 0) being certain
        none = np.where(n == 0, 0.0, n * np.log1p(-p))
        all_ = np.where(n == 0, 0.0, n * np.log(p))
    ends = np.where(k == 0, none, all_)
    edge_p = np.where((p == 0) & (k == 0) | (p == 1) & (k == n), 0.0, -np.inf)
    out = np.where(regular, core, np.where((p > 0) & (p < 1), ends, edge_p))
    return np.where(inside, out, -np.inf)


def log_pmf_error(logs: FloatArray) -> FloatArray:
    """Bound the absolute error of values of `log_pmf`, which are at most 0: above the module's 1e-14 + 3e-15 |log|."""
    return 1e-13 + 1e-14 * np.abs(logs)


def sf(a: Any, n: Any, p: Any) -> FloatArray:
    """Return P(X >= a) for X ~ Bin(n, p), element-wise, relative error below `RELATIVE_ERROR`.

    Parameters
    ----------
    a, n, p : array_like
        As for `log_pmf`; any whole a.

    Examples
    --------
    >>> round(float(sf(2, 3, 0.5)), 9)
    0.5
    """
    return tail(a, n, p, False)


def cdf(k: Any, n: Any, p: Any) -> FloatArray:
    """Return P(X <= k) for X ~ Bin(n, p), element-wise, relative error below `RELATIVE_ERROR`."""
    return tail(np.asarray(n, dtype=np.float64) - k, n, p, True)


def tail(a: Any, n: Any, p: Any, failures: Any) -> FloatArray:
    """Return the chance of at least ``a`` successes, or failures where asked, among n trials of chance p.

    Parameters
    ----------
    a, n, p : array_like
        As for `log_pmf`; any whole a.
    failures : array_like of bool
        Whether failures are counted.
    """
    a, n, p, failures = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (a, n, p, failures)))
    failures = failures.astype(bool)
    # far: the integrand of (T) does not increase, a - 1 >= (n-1) p, or n - a <= (n-1) p for failures
    gap = np.where(failures, 1.0, -1.0) * subtract_product(np.where(failures, n - a, a - 1.0), n - 1.0, p)
    far = gap <= 0
    near = _small_tail(np.where(far, a, n - a + 1.0), n, p, failures == far)
    with np.errstate(divide="ignore", invalid="ignore"):
        # at least one: small although not far from the mean
        some = -np.expm1(n * np.where(failures, np.log(p), np.log1p(-p)))
    out = np.where(far, near, np.where(a == 1, some, 1.0 - near))
    return np.where(a <= 0, 1.0, np.where(a > n, 0.0, out))


def _small_tail(a: FloatArray, n: FloatArray, p: FloatArray, mirrored: Any) -> FloatArray:
    """P(X >= a) by (T) where a is on the far side of the mean; `mirrored` counts failures, so p becomes 1 - p."""
    valid = (a >= 1) & (a <= n) & (p > 0) & (p < 1)
    aa, nn, pp = np.where(valid, a, 1.0), np.where(valid, n, 1.0), np.where(valid, p, 0.5)
    q = 1.0 - pp
    # (a - 1 - (n-1) p)/q, or with p and q exchanged: n-1 - (a-1) successes against (n-1) p
    gap = np.where(mirrored, -subtract_product(nn - aa, nn - 1.0, pp), subtract_product(aa - 1.0, nn - 1.0, pp))
    slope = np.maximum(gap / np.where(mirrored, pp, q), 0.0)
    rho = np.where(mirrored, q / pp, pp / q)
    successes = np.where(mirrored, nn - aa, aa)
    value = np.exp(log_pmf(successes, nn, pp)) * tail_ratio(aa, nn, rho, slope)
    certain = np.where(mirrored, p == 0, p == 1) & (a <= n)
    return np.where(valid, np.minimum(value, 1.0), np.where(certain, 1.0, 0.0))


def tail_ratio(a: FloatArray, n: FloatArray, rho: FloatArray, slope: FloatArray) -> FloatArray:
    """Return P(X >= a)/pmf(a) by (T) for 1 <= a <= n, odds rho and slope = (a-1) - (n-a) rho >= 0."""
    end = _cut(a, n, rho, slope)[..., None]
    s = end * _NODES
    exponent = _log_integrand(s, a[..., None], n[..., None], rho[..., None], slope[..., None])
    return a * end[..., 0] * np.einsum("...j,j->...", np.exp(exponent), _WEIGHTS)


def _log_integrand(s: FloatArray, a: FloatArray, n: FloatArray, rho: FloatArray, slope: FloatArray) -> FloatArray:
    return (a - 1.0) * log1p_minus(-s) + (n - a) * log1p_minus(rho * s) - slope * s


def _cut(a: FloatArray, n: FloatArray, rho: FloatArray, slope: FloatArray) -> FloatArray:
    """Point in (0, 1] beyond which the integrand is below e^-40 (1 if there is none).

    Newton from the right on a convex increasing function stays right of the root, so stopping early is safe.
    """
    # each term alone: slope s + (a-1) s^2/2, and x - log(1+x) >= 3 x^2/(6+4x) at x = rho s
    with np.errstate(divide="ignore"):
        start = 2.0 * _DROP / (slope + np.sqrt(slope * slope + 2.0 * (a - 1.0) * _DROP))
        start = np.minimum(
            start, (4.0 * _DROP + np.sqrt(16.0 * _DROP**2 + 72.0 * _DROP * (n - a))) / (6.0 * (n - a) * rho)
        )
    top = np.minimum(start, 1.0 - 1e-12)
    for _ in range(80):
        excess = -_log_integrand(top, a, n, rho, slope) - _DROP
        if np.max(excess, initial=0.0) < 5.0:
            break
        steep = (a - 1.0) * top / (1.0 - top) + (n - a) * rho * rho * top / (1.0 + rho * top) + slope
        step = np.where((excess > 0) & (steep > 0), excess / np.maximum(steep, 1e-300), 0.0)
        top = top - step
    return np.where(start >= 1.0, np.where(top >= 1.0 - 1e-11, 1.0, top), top)


def fair_tail_ratio(failures: FloatArray, n: FloatArray) -> FloatArray:
    """Return P(X >= a)/pmf(a - 1) for X ~ Bin(n, 1/2), where a = n + 1 - failures is at least (n + 1)/2.

    The case rho = 1 of (T): the integrand is (1-s^2)^((n-1)/2) ((1-s)/(1+s))^(slope/2), slope = 2a - n - 1, again
    without cancellation, and pmf(a)/pmf(a-1) = failures/a. Zero when no failure is left (a > n).
    """
    some = failures >= 1
    left = np.where(some, failures, 1.0)
    half, slope = 0.5 * (np.where(some, n, 1.0) - 1.0), np.where(some, n + 1.0 - 2.0 * left, 0.0)
    with np.errstate(divide="ignore"):
        end = 2.0 * _DROP / (slope + np.sqrt(slope * slope + 4.0 * half * _DROP))
    whole = end >= 1.0
    end = np.minimum(end, 1.0 - 1e-12)
    for _ in range(2):
        excess = slope * np.arctanh(end) - half * np.log1p(-end * end) - _DROP
        end -= np.maximum(excess, 0.0) * (1.0 - end * end) / np.maximum(2.0 * half * end + slope, 1e-300)
    end = np.where(whole & (end >= 1.0 - 1e-11), 1.0, end)
    s = end[..., None] * _NODES
    exponent = half[..., None] * np.log1p(-s * s) - slope[..., None] * np.arctanh(s)
    return np.where(some, left * end * np.einsum("...j,j->...", np.exp(exponent), _WEIGHTS), 0.0)
