"""Counts of independent successes: binomial probabilities and tails, different probabilities, and expectations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from shuffledp.numerics.floats import (
    EPS,
    Enclosure,
    FloatArray,
    Interval,
    round_down,
    round_up,
    subtract_product,
    two_product,
)
from shuffledp.numerics.functions import entropy_gap, log1p_minus, stirling_error
from shuffledp.numerics.sums import ComplexArray, IndependentSum, bromwich_line, weighted

# ------------------------------------------------------------------ binomial
# Binomial probabilities and tails to ten digits and more: any n up to 1e12 and beyond, down to 1e-300.
#
# The pmf is Loader's saddle-point form. A tail is the pmf at its end times a ratio that the incomplete beta
# integral gives without cancellation:
#
#     P(X >= a) = pmf(a) * a * int_0^1 (1-s)^(a-1) (1 + rho s)^(n-a) ds,      rho = p/(1-p),              (T)
#
# whose log-integrand is concave and, for a at or above the mean, decreasing; it is written as a sum of three
# non-positive terms, cut where it has fallen by e^-40, and integrated by 24-point Gauss-Legendre quadrature.
#
# Rounding: the pmf's exponent is a sum of terms of one sign, each good to 16 EPS, so its absolute error is below
# 1e-14 + 3e-15 * |log pmf|, under 3e-12 down to 1e-300; the quadrature's terms are positive, each good to
# 40 * 40 EPS (as power series the log-integrands are products of matrices, whose 24 terms fall at least fivefold from
# the second on and hardly cancel); the integrand is a polynomial, bounded on the Bernstein ellipse of radius 3.5 around
# the interval, which makes the quadrature error below 1e-13 of the integral; the part cut off is below e^-40.
# `RELATIVE_ERROR` is a generous total; tests compare with ball arithmetic.

RELATIVE_ERROR = 2e-11
"""Relative error of every probability below 1 that this module returns, for probabilities of at least 1e-300."""

COMBINED_ERROR = 2.0 * RELATIVE_ERROR + 1e-13
"""Relative error of a product or quotient of two such probabilities, including the rounding of the operation itself."""

_LEGENDRE = np.polynomial.legendre.leggauss(24)
_NODES, _WEIGHTS = (_LEGENDRE[0] + 1.0) / 2.0, _LEGENDRE[1] / 2.0
_DROP = 40.0
_SHORT = 0.2
"""Longest interval on which log-integrands are power series: the terms left out are below 1e-17 of the sum."""
_ORDERS = np.arange(1.0, 25.0)
_SIGNS = np.where(_ORDERS % 2.0 == 1.0, 1.0, -1.0)
_LADDER = _NODES ** _ORDERS[:, None]


def log_pmf(k: Any, n: Any, p: Any) -> FloatArray:
    """Return log P(X = k) for X ~ Bin(n, p), element-wise; -inf outside the support.

    Parameters
    ----------
    k, n : array_like of float
        Whole numbers: the number of successes k, of any size or sign, and the number of trials n, 0 <= n <= 2^53.
    p : array_like
        Success probability in [0, 1]; the double given is taken as exact.
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
        if regular.all():
            return np.asarray(core)
        # q^n and p^n: n log1p(-p) and n log p, the empty binomial (n = 0) being certain
        none = np.where(n == 0, 0.0, n * np.log1p(-p))
        all_ = np.where(n == 0, 0.0, n * np.log(p))
    ends = np.where(k == 0, none, all_)
    edge_p = np.where((p == 0) & (k == 0) | (p == 1) & (k == n), 0.0, -np.inf)
    out = np.where(regular, core, np.where((p > 0) & (p < 1), ends, edge_p))
    return np.where(inside, out, -np.inf)


def log_pmf_error(logs: FloatArray) -> FloatArray:
    """Bound the absolute error of log-probabilities returned by `log_pmf`.

    ``logs`` are such values, at most 0. The bound is at least the error 1e-14 + 3e-15 |log| stated for this module.
    """
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
    """Return P(X <= k) for X ~ Bin(n, p), element-wise, relative error below `RELATIVE_ERROR`.

    Arguments as for `sf`, with any whole k.
    """
    return tail(np.asarray(n, dtype=np.float64) - k, n, p, True)


def tail(a: Any, n: Any, p: Any, failures: Any) -> FloatArray:
    """Return the probability of at least ``a`` successes (or failures) among n independent trials of probability p.

    Parameters
    ----------
    a, n, p : array_like
        As for `log_pmf`; any whole a.
    failures : array_like of bool
        True to count failures instead of successes.
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
    """Return P(X >= a) by (T) where a is above the mean, and 1 where it is certain.

    Where ``mirrored`` is True failures are counted: p is replaced by 1 - p.
    """
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
    end = _cut(a, n, rho, slope)
    short = end * np.maximum(rho, 1.0) <= _SHORT
    exponent = np.empty((*end.shape, _NODES.size))
    if short.any():
        own, other = _powers(end[short]), _powers(rho[short] * end[short]) * _SIGNS
        terms = (own * (1.0 - a[short])[:, None] + other * (n - a)[short][:, None]) / _ORDERS
        terms[:, 0] = -slope[short] * end[short]
        exponent[short] = terms @ _LADDER
    if not short.all():
        far = ~short
        parts = (part[far][:, None] for part in (a, n, rho, slope))
        exponent[far] = _log_integrand(end[far][:, None] * _NODES, *parts)
    return a * end * (np.exp(exponent) @ _WEIGHTS)


def _powers(x: FloatArray) -> FloatArray:
    """Return x, x^2, ... up to the highest of `_ORDERS`, shape (x.size, orders)."""
    return np.multiply.accumulate(np.broadcast_to(x[:, None], (x.size, _ORDERS.size)), axis=1)


def _log_integrand(s: FloatArray, a: FloatArray, n: FloatArray, rho: FloatArray, slope: FloatArray) -> FloatArray:
    return (a - 1.0) * log1p_minus(-s) + (n - a) * log1p_minus(rho * s) - slope * s


def _cut(a: FloatArray, n: FloatArray, rho: FloatArray, slope: FloatArray) -> FloatArray:
    """Return the point in (0, 1] beyond which the integrand of (T) is below e^-40; 1 if there is none.

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
    short = end <= _SHORT
    exponent = np.empty((*end.shape, _NODES.size))
    if short.any():
        terms = _powers(end[short])
        terms[:, 0::2] *= -slope[short][:, None] / _ORDERS[0::2]
        terms[:, 1::2] *= -2.0 * half[short][:, None] / _ORDERS[1::2]
        exponent[short] = terms @ _LADDER
    if not short.all():
        s = end[~short][:, None] * _NODES
        exponent[~short] = half[~short][:, None] * np.log1p(-s * s) - slope[~short][:, None] * np.arctanh(s)
    return np.where(some, left * end * (np.exp(exponent) @ _WEIGHTS), 0.0)


# ------------------------------------------------------------------ poisson binomial
# Counts of independent successes with different probabilities: certified lower tails.
#
# Three routes, chosen by size: one probability (binomial tails), few trials (exact convolution, all terms
# positive), and everything else (the transform (L) of `sums`, tilted to each tail, at a cost that does not
# grow with the number of trials).

CONVOLVE_UP_TO = 4096
MAX_GROUPS = 256
_TINY = 1e-300
_ALIKE = 1e-10
"""Two counts whose lower tails differ by less than this, relatively, share one evaluation of the tail."""


@dataclass(frozen=True, eq=False)
class SuccessCount:
    """The number C of successes in independent trials, ``counts[g]`` of them with probability ``probabilities[g]``.

    Parameters
    ----------
    probabilities : ndarray, shape (groups,)
        In [0, 1]; the doubles given are taken as exact.
    counts : ndarray, shape (groups,)
        Whole numbers >= 0, as floats.
    """

    probabilities: FloatArray
    counts: FloatArray

    @classmethod
    def of(cls, probabilities: FloatArray, counts: FloatArray) -> SuccessCount:
        """Return the count sorted by probability, without empty groups and groups of probability 0.

        Arguments are as for the class.
        """
        p, c = probabilities, counts.astype(np.float64, copy=False)
        keep = (c > 0) & (p > 0)
        if not keep.all():
            p, c = p[keep], c[keep]
        if p.size and p[0] > p[-1]:  # reversing is cheaper than sorting, and often enough
            p, c = p[::-1], c[::-1]
        if not (p[1:] >= p[:-1]).all():
            order = np.argsort(p, kind="stable")
            p, c = p[order], c[order]
        return cls(p, c)

    @cached_property
    def n(self) -> float:
        """The number of trials with a positive success probability."""
        return float(self.counts.sum())

    @cached_property
    def mean(self) -> float:
        """The expectation E C in plain double precision, to place grids; nothing is certified from it."""
        return float((self.counts * self.probabilities).sum())

    @cached_property
    def deviation(self) -> float:
        """The standard deviation of C in plain double precision, to place grids; nothing is certified from it."""
        return math.sqrt(float((self.counts * self.probabilities * (1.0 - self.probabilities)).sum()))

    @cached_property
    def tilts(self) -> tuple[FloatArray, FloatArray]:
        """Tilts t >= 0, shape (401,), and log E exp(-t C) at each, for Chernoff bounds.

        The logarithms have an absolute error of at most 8 EPS per group.
        """
        t = np.concatenate(([0.0], np.geomspace(1e-3 / (self.deviation + 1.0), 60.0, 400)))
        return t, weighted(np.log1p(self.probabilities * np.expm1(-t)[:, None]), self.counts)

    @cached_property
    def failures(self) -> SuccessCount:
        """The number of failures; each complement 1 - p is off by at most one EPS and is never rounded to 1."""
        return SuccessCount.of(np.minimum(1.0 - self.probabilities, 1.0 - EPS), self.counts)

    @cached_property
    def groups(self) -> _Groups:
        """The trials in at most MAX_GROUPS groups of neighbouring probabilities, each group represented by its mean."""
        p, c = self.probabilities, self.counts
        if p.size <= MAX_GROUPS:
            return _Groups(p, c, p, p, np.zeros_like(p))
        cumulative = np.cumsum(c)
        label = np.minimum((cumulative - c) / cumulative[-1] * MAX_GROUPS, MAX_GROUPS - 1).astype(np.int64)
        starts = np.flatnonzero(np.concatenate(([True], label[1:] != label[:-1])))
        sizes = np.add.reduceat(c, starts)
        mean = np.add.reduceat(c * p, starts) / sizes
        ends = np.concatenate((starts[1:], [p.size])) - 1
        centre = np.repeat(mean, np.diff(np.concatenate((starts, [p.size]))))
        scatter = np.add.reduceat(c * (p - centre) ** 2, starts)
        return _Groups(mean, sizes, p[starts], p[ends], scatter)

    def cdf(self, x: FloatArray) -> Enclosure:
        """Enclose P(C <= x) for whole x, shape (points,)."""
        x = np.asarray(x, dtype=np.float64)
        if self.counts.size == 0:
            certain = (x >= 0).astype(np.float64)
            return Enclosure(certain, certain)
        if self.counts.size == 1:
            value, error = cdf(x, self.counts[0], self.probabilities[0]), RELATIVE_ERROR
        elif self.n <= CONVOLVE_UP_TO:
            value, error = self._convolved_cdf(x)
        else:
            return self._transformed_cdf(x)
        outside = (x < 0) | (x >= self.n)
        lower = np.where(outside, value, np.maximum(value * (1.0 - error) - _TINY, 0.0))
        upper = np.where(outside, value, np.minimum(value * (1.0 + error) + _TINY, 1.0))
        return Enclosure(lower, upper)

    def pmf(self, x: FloatArray) -> Enclosure:
        """Enclose P(C = x) for whole x, shape (points,)."""
        x = np.asarray(x, dtype=np.float64)
        if self.counts.size == 0:
            certain = (x == 0).astype(np.float64)
            return Enclosure(certain, certain)
        inside = (x >= 0) & (x <= self.n)
        if self.counts.size == 1:
            value, error = (
                np.exp(log_pmf(x, self.counts[0], self.probabilities[0])),
                RELATIVE_ERROR,
            )
        elif self.n <= CONVOLVE_UP_TO:
            table, error = self.pmf_convolved()
            value = np.where(inside, table[np.clip(x, 0, self.n).astype(np.int64)], 0.0)
        else:
            return self._transformed_pmf(x)
        tiny = np.where(inside, _TINY, 0.0)
        return Enclosure(np.maximum(value * (1.0 - error) - tiny, 0.0), value * (1.0 + error) + tiny)

    def pmf_convolved(self) -> tuple[FloatArray, float]:
        """Return the probability mass function on 0..n by convolution, and its relative error above 1e-300."""
        pmf, error = np.ones(1), 0.0
        for p, count in zip(self.probabilities, self.counts, strict=True):
            if count == 1:
                factor, own = np.array([1.0 - p, p]), EPS
            else:
                factor = np.exp(log_pmf(np.arange(count + 1), count, p))
                own = RELATIVE_ERROR
            pmf = np.convolve(pmf, factor)
            error += own + 2.0 * (min(count + 1, pmf.size) + 1) * EPS
        return pmf, error

    def _convolved_cdf(self, x: FloatArray) -> tuple[FloatArray, float]:
        pmf, error = self.pmf_convolved()
        below = np.cumsum(pmf)
        above = np.concatenate((np.cumsum(pmf[::-1])[::-1][1:], [0.0]))
        values = np.where(below < 0.5, below, 1.0 - above)
        at = np.clip(x, -1, self.n).astype(np.int64)
        return np.where(at < 0, 0.0, np.where(at >= self.n, 1.0, values[at])), error + 2.0 * pmf.size * EPS

    def _transformed_cdf(self, x: FloatArray) -> Enclosure:
        lower, upper = (x >= self.n).astype(np.float64), (x >= 0).astype(np.float64)
        inside = (x >= 0) & (x < self.n)
        # each tail from its own side: P(C <= x) below the mean, 1 - P(n - C <= n - x - 1) above
        below, above = inside & (x <= self.mean), inside & (x > self.mean)
        if below.any():
            lower[below], upper[below] = self.groups.lower_tails(x[below])
        if above.any():
            tail = self.failures.groups.lower_tails(self.n - x[above] - 1.0)
            lower[above], upper[above] = round_down(1.0 - tail.upper), round_up(1.0 - tail.lower)
        return Enclosure(np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0))

    def _transformed_pmf(self, x: FloatArray) -> Enclosure:
        """Enclose P(C = x) by differences of neighbouring tails.

        Each tail is taken from its own side of the mean, so that far tails keep their relative accuracy.
        """
        lower, upper = np.zeros_like(x), np.zeros_like(x)
        failures = self.failures
        for side, count, at in ((x <= self.mean, self, x), (x > self.mean, failures, self.n - x)):
            if side.any():
                reached, before = _lower_bounds(count, at[side]), _lower_bounds(count, at[side] - 1.0)
                lower[side] = round_down(reached.lower - before.upper)
                upper[side] = round_up(reached.upper - before.lower)
        return Enclosure(np.maximum(lower, 0.0), np.maximum(upper, 0.0))


def _lower_bounds(count: SuccessCount, x: FloatArray) -> Enclosure:
    """Enclose P(C <= x) for x up to about the mean; 0 where x is negative."""
    tails = count.groups.lower_tails(np.maximum(x, 0.0))
    return Enclosure(np.where(x < 0, 0.0, np.maximum(tails.lower, 0.0)), np.where(x < 0, 0.0, tails.upper))


@dataclass(frozen=True, eq=False)
class SuccessRange:
    """A count of successes whose probabilities are known only between two bounds.

    Parameters
    ----------
    fewest, most : SuccessCount
        Counts that are stochastically smaller and larger: all probabilities rounded down, and rounded up.
    """

    fewest: SuccessCount
    most: SuccessCount

    @classmethod
    def of(cls, probabilities: FloatArray, counts: FloatArray, ulps: int) -> SuccessRange:
        """Return the range of counts whose ``probabilities`` are each known within ``ulps`` units in the last place."""
        return cls(
            SuccessCount.of(np.clip(round_down(probabilities, ulps), 0.0, 1.0), counts),
            SuccessCount.of(np.clip(round_up(probabilities, ulps), 0.0, 1.0), counts),
        )

    def cdf(self, x: FloatArray) -> Enclosure:
        """Enclose P(C <= x) for whole x, shape (points,)."""
        x = np.asarray(x, dtype=np.float64)
        low, high = self.fewest, self.most
        if low.counts.size == high.counts.size == 1 and low.n == high.n and high.probabilities[0] < 1.0:
            enclosure = high.cdf(x)
            slack = self._binomial_slack(x, enclosure.lower)
            if slack.max(initial=0.0) < 0.1:  # not so if a tail underflows (NaN)
                return Enclosure(enclosure.lower, np.minimum(enclosure.upper * (1.0 + slack), 1.0))
        enclosure, apart = high.cdf(x), self._apart
        if apart < _ALIKE:
            return Enclosure(enclosure.lower, np.minimum(enclosure.upper * (1.0 + 2.0 * apart), 1.0))
        return Enclosure(enclosure.lower, low.cdf(x).upper)

    @property
    def _apart(self) -> float:
        """Upper bound on log P(C <= x) for the fewest successes minus that for the most, for all x; inf if not bounded.

        Its derivative in p_i is -P(the others = x)/P(C <= x), and P(C <= x) >= P(C = x) >= (1 - p_i) P(the others = x).
        """
        low, high = self.fewest, self.most
        if low.counts.size != high.counts.size or low.n != high.n or not high.probabilities.max(initial=0.0) < 1.0:
            return math.inf
        gaps = (high.probabilities - low.probabilities) / (1.0 - high.probabilities)
        return float(gaps @ high.counts) if bool((low.counts == high.counts).all()) else math.inf

    def _binomial_slack(self, x: FloatArray, tail: FloatArray) -> FloatArray:
        """Bound the relative difference of P(C <= x) between the two ends of a range that has a single probability.

        By the mean value theorem with -d/dp log P(C <= x) = (n-x)/(1-p) pmf(x)/P(C <= x), so that one binomial is
        evaluated instead of two. ``tail`` is P(C <= x) at the largest p, where the derivative is taken; it is doubled,
        because pmf and tail hardly change between the ends wherever the slack is small.
        """
        n, low, high = self.most.n, float(self.fewest.probabilities[0]), float(self.most.probabilities[0])
        with np.errstate(divide="ignore", invalid="ignore"):
            hazard = np.exp(log_pmf(x, n, high)) / tail
        return np.where((x < 0) | (x >= n), 0.0, 2.0 * (high - low) * (n - x) / (1.0 - high) * hazard)


@dataclass(frozen=True, eq=False)
class _Groups:
    """Groups of Bernoulli variables.

    Fields of each group: mean probability, size, smallest and largest probability, sum of squared distances to the
    mean.
    """

    p: FloatArray
    size: FloatArray
    smallest: FloatArray
    largest: FloatArray
    scatter: FloatArray

    def lower_tails(self, x: FloatArray) -> Enclosure:
        """Enclose P(C <= x) for any x up to the mean; a new tilt is chosen every few standard deviations."""
        lower, upper = np.zeros_like(x), np.zeros_like(x)
        if x.size:
            reach = 3.0 * max(math.sqrt(self._least_variance(0.0)), 1.0)
            few = math.ceil((x.max() - x.min()) / reach)  # one tilt serves values that are closer than that
            ends = np.linspace(x.min(), x.max(), 1 + few) if few > 1 else np.array([0.5 * (x.min() + x.max())])
            anchors = np.maximum(ends, 0.5)
            nearest = np.argmin(np.abs(x[:, None] - anchors), axis=1)
            for index in np.unique(nearest):
                mine = nearest == index
                lower[mine], upper[mine] = self.lower_tail(x[mine], float(anchors[index]))
        return Enclosure(lower, upper)

    def lower_tail(self, x: FloatArray, anchor: float) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper bounds on P(C <= x) by (L) with one tilt theta > 0, sharp for x near ``anchor``."""
        sums = IndependentSum(self.size, np.ones((self.p.size, 1)), self.p[:, None], self.p)
        theta = self._tilt(anchor)
        variance = self._least_variance(theta)
        deviation = math.sqrt(variance)
        offset = _exact_offset(x, self.size, self.p)
        tilts = theta + np.minimum(theta * _FARTHER, 60.0)
        real, doubt_real = sums.log_mgf_centered(-tilts.astype(np.complex128))
        size = float(real.real[0]) + theta * float(offset.min())
        # odd, so that the points at +-t pair up; the aliases at x + k period are below exp(-theta period)
        period = 2.0 * math.ceil(8.0 * deviation + (20.0 + 0.5 * max(-size, 0.0)) / theta + 8.0) + 1.0
        points = self._points(variance, period)
        z = bromwich_line(theta, period, points)
        centered, error = sums.log_mgf_centered(-z)
        error = error + self._scatter_error(z) + self._complement_error(z)
        kernel = -np.expm1(-z)
        weight = np.where(np.arange(points) == 0, 1.0, 2.0) / period
        base = centered.real[0]
        log_scale = base + theta * offset
        phase = np.exp((centered - base)[None] + 1j * z.imag[None] * offset[:, None])
        amplitude = weight * np.abs(phase[0]) / np.abs(kernel)
        value = weighted((phase / kernel).real, weight)
        doubt = float(amplitude @ np.expm1(np.minimum(error + 64 * EPS, 50.0)))
        doubt_phase = 16.0 * EPS * np.abs(offset) * float(amplitude @ np.abs(z))
        missing = 0.0
        if 2 * points - 1 < period:
            missing = math.exp(-2.0 * variance * math.sin(0.5 * z.imag[-1]) ** 2) / abs(kernel[-1])
        slack = doubt + doubt_phase + missing + 1e-14 * np.abs(value)
        scale = np.exp(np.minimum(log_scale, 700.0)) * (1 + 16 * EPS * np.abs(log_scale))
        with np.errstate(over="ignore"):  # far from the tilt a bound says nothing: infinite above, or below 0
            upper = (value + slack) * scale + _TINY
            lower = (value - slack) * scale * (1 - 1e-13)
        alias = math.exp(-theta * period) / -math.expm1(-theta * period) + _far_alias(
            np.where(x < period, np.inf, offset), period, tilts, real.real + doubt_real
        )
        return lower - alias - _TINY, np.maximum(upper, 0.0)

    def _tilt(self, anchor: float) -> float:
        """Return a tilt theta > 0 whose tilted mean is near ``anchor``.

        It is at least 1.5/deviation; any positive tilt gives valid bounds. Newton's steps are taken for the log-odds
        of the mean, which are nearly linear in theta; halves where a step leaves the bracket.
        """
        low, high, theta, trials = -60.0, 60.0, 0.0, float(self.size.sum())
        wanted = math.log(anchor / (trials - anchor)) if anchor < trials else math.inf
        for _ in range(60):
            tilted = self.p / (self.p + (1.0 - self.p) * math.exp(theta))
            mean, variance = float(tilted @ self.size), float((tilted * (1.0 - tilted)) @ self.size)
            low, high = (theta, high) if mean > anchor else (low, theta)
            if not (0.0 < mean < trials and variance > 0.0 and wanted < math.inf):
                theta = 0.5 * (low + high)
                continue
            off = math.log(mean / (trials - mean)) - wanted
            step = off * mean * (trials - mean) / (trials * variance)
            if abs(step) < 1e-9:
                break
            theta = theta + step if low < theta + step < high else 0.5 * (low + high)
        return max(theta, 1.5 / max(math.sqrt(self._least_variance(0.0)), 0.3))

    def _least_variance(self, theta: float) -> float:
        """Return a lower bound on the variance of C tilted by exp(-theta C).

        The tilted p(1 - p) is unimodal in p, so within a group it is smallest at one of the extremes.
        """

        def variance(p: FloatArray) -> FloatArray:
            down = math.exp(-theta)
            return p * (1.0 - p) * down / (1.0 - p + p * down) ** 2

        return float(np.minimum(variance(self.smallest), variance(self.largest)) @ self.size) * (1 - 1e-12)

    @staticmethod
    def _points(variance: float, period: float) -> int:
        """Return the number of points z = theta + it after which |M(-z)| has fallen by the factor e^-45.

        By |M(-theta-it)| <= M(-theta) exp(-variance (1 - cos t)).
        """
        whole = int(period + 1) // 2
        if variance <= 22.5:
            return whole
        return min(whole, math.ceil(2.0 * math.asin(math.sqrt(22.5 / variance)) * period / (2.0 * math.pi)) + 1)

    def _scatter_error(self, z: ComplexArray) -> FloatArray:
        """Bound the error of log M(-z) from replacing each group's probabilities p_i by their mean, shape of z.

        |sum log(1+p_i y) - size log(1+mean y)| <= sum (p_i - mean)^2 max|y/(1+py)|^2 / 2 along the segment.
        """
        if not self.scatter.any():
            return np.zeros(z.size)
        y = np.expm1(-z)[:, None]
        low, high = _bernoulli_mgf(z, self.smallest), _bernoulli_mgf(z, self.largest)
        # the segment from low to high has direction y; its distance to 0 is |Im(conj(y) low)|/|y| inside
        inside = (np.conj(y) * low).real * (np.conj(y) * high).real < 0
        across = np.abs((np.conj(y) * low).imag) / np.abs(y)
        distance = np.where(inside, across, np.minimum(np.abs(low), np.abs(high)))
        with np.errstate(divide="ignore"):
            return weighted(0.51 * (np.abs(y) ** 2 / distance**2), self.scatter)

    def _complement_error(self, z: ComplexArray) -> FloatArray:
        """Bound the error of log M(-z) if probabilities are complements that are off by one EPS, shape of z.

        Twice the derivative |d log(1 + p y)/dp| = |y/(1 + p y)|.
        """
        return 2.0 * EPS * weighted(np.abs(np.expm1(-z))[:, None] / np.abs(_bernoulli_mgf(z, self.p)), self.size)


_FARTHER = np.array([0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 7.0, 11.0])
"""Tilts that bound far aliases, relative to that of the line and beyond it."""


def _far_alias(offset: FloatArray, period: float, tilts: FloatArray, logs: FloatArray) -> FloatArray:
    """Bound the sum of the aliases at x - k period, k >= 1, by Chernoff bounds with larger tilts t.

    The sum is at most sum_k exp(theta k P) M(-t) exp(t (x - k P)), P being the period.

    Parameters
    ----------
    offset : ndarray, shape (points,)
        x less the mean; inf where there is no such alias, as x is below the period.
    period : float
        P.
    tilts, logs : ndarray, shape (tilts,)
        theta and larger tilts t, and upper bounds of log M(-t) of the centred count. By Jensen's inequality the mgf of
        grouped trials is such a bound, for real arguments.
    """
    gap = (tilts[1:] - tilts[0]) * period
    logs = logs[1:] - gap - np.log(-np.expm1(-gap))
    some = np.isfinite(offset)
    moved = tilts[1:] * np.where(some, offset, 0.0)[:, None]
    best = np.min(logs[None] + moved + 1e-12 * np.abs(moved), axis=1)
    return np.where(some, np.exp(np.minimum(best, 700.0)), 0.0)


def _bernoulli_mgf(z: ComplexArray, p: FloatArray) -> ComplexArray:
    """Return 1 - p + p exp(-z), shape (points, groups), without cancellation."""
    return np.asarray((1.0 - p) + np.multiply.outer(np.exp(-z), p), dtype=np.complex128)


def _exact_offset(x: FloatArray, size: FloatArray, p: FloatArray) -> FloatArray:
    """Return x - sum size*p without cancellation, shape of x."""
    high, low = two_product(size, p)
    parts = [*(-high).tolist(), *(-low).tolist()]
    total = math.fsum(parts)
    rest = math.fsum([*parts, -total])
    return (x + total) + rest


# ------------------------------------------------------------------ blocks
# Expectations of non-increasing functions of a count, bracketed from a few hundred values.
#
# If h does not increase, then for any partition of the range of C into blocks
#
#     sum_j P(C in block j) h(right end of j)  <=  E h(C)  <=  sum_j P(C in block j) h(left end of j).
#
# Summed by parts, only lower tails P(C <= x) appear, with non-negative factors, so one-sided bounds on tails and
# on h give one-sided bounds on the expectation.


@dataclass(frozen=True, eq=False)
class BlockedCount:
    """A partition of 0, 1, ..., n into blocks of neighbouring integers, with bounds on the distribution of a count C.

    Attributes
    ----------
    left : ndarray, shape (blocks,)
        First integer of each block, ascending; ``left[0] == 0``.
    single : ndarray of bool, shape (blocks,)
        Whether the block is one integer.
    through : Enclosure, shape (blocks,)
        P(C <= last integer of the block).
    """

    left: FloatArray
    single: np.ndarray
    through: Enclosure

    @classmethod
    def of(cls, count: SuccessRange, depth: float, per_deviation: float) -> BlockedCount:
        """Partition the range of a count into blocks that are narrow near its mean.

        Parameters
        ----------
        count : SuccessRange
            The count C.
        depth : float
            Number of standard deviations below the mean down to which blocks are narrow; all lower values form one
            block.
        per_deviation : float
            Blocks per standard deviation near the mean; every integer is a block if that gives fewer blocks.
        """
        most = count.most
        mean, deviation = most.mean, max(most.deviation, 0.5)
        near = np.arange(-7.0, 6.0, 1.0 / per_deviation)
        deep = np.arange(-depth, -7.0, 4.0 / per_deviation)
        left = np.unique(np.floor(mean + np.concatenate((deep, near)) * deviation))
        left = np.unique(np.concatenate(([0.0], left[(left > 0) & (left <= most.n)])))
        last = np.append(left[1:] - 1.0, most.n)
        return cls(left, last == left, count.cdf(last))

    def expectation(self, values: Enclosure) -> Interval:
        """Enclose E h(C) for a non-negative, non-increasing h, from bounds on h at the left ends of the blocks."""
        upper = np.maximum.accumulate(values.upper[::-1])[::-1]
        # the value at the right end of a block is at least the value at the next left end
        following = np.append(values.lower[1:], 0.0)
        lower = np.maximum.accumulate(np.where(self.single, values.lower, following)[::-1])[::-1]
        return Interval(
            _by_parts(lower, self.through.lower) * (1.0 - 1e-13),
            _by_parts(upper, self.through.upper) * (1.0 + 1e-13),
        )


def _by_parts(values: FloatArray, through: FloatArray) -> float:
    drops = values - np.append(values[1:], 0.0)
    return float(drops @ through)
