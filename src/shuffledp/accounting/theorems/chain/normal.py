"""The chain theorem for normal vectors: groups of users, what they leave open, and (H) of docs/theorems/chain.md.

All messages are N(g, I) with |g - g'| <= mu, up to scale. The groups A_k, ..., A_1 are disjoint sets of the victim's
company. D(x) is the divergence of two normal laws mu apart at e^eps = e^x. With p the charge of one step, the *hub*
leaves A_k weights that sum to 1 and are at most 1/N, N = floor(0.9 |A_k|/b), where 11 D(ln b) <= p; what is cut off
is paid. From weights at most 1/N, the weights one group on are averages of log-normal variables that stray no more,
in convex order, than the average of N independent ones; they are cut at 1 + s and lifted to 1 - l (`LognormalMeans`),
and after that lie within a ratio r = (1 + s)/(1 - l) of each other, so that the largest of |A_j| normalised ones is
at most r/|A_j|: N_j = floor(|A_j|/r). In the last group A_1, weights with sum 1 within a ratio r of each other have

    sum w^2 <= (1 + (r - 1)^2/(4 r))/|A_1|,     max w <= r/|A_1|                                                  (W)

(w |A_1| has mean 1 and lies in [x, r x]: its variance is at most (r x - 1)(1 - x)). All in all, with P = k p,

    H(eps) <= e^P ( Psi(eps) + P D(eps) ) + (e^eps - 1)(e^P - 1),                                                 (H)

Psi = `positive_part` of such weights. The sizes of the groups belong to the proof: every choice is a bound, and a
search may be as crude as it likes.

**Rounding.** Counts are rounded down, ratios, (W) and (H) up by 1e-9 relative; D comes rounded up, and mu is rounded
up by 64 units of 2^-53, which covers how far discrete noise as drawn is from the law it is accounted as.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from shuffledp.numerics.floats import FloatArray, Upper
from shuffledp.numerics.functions import ndtr
from shuffledp.numerics.tails import mills_slope, normal_divergence

# Moments of a link's privacy loss, and what the positive part of a weighted sum is at most, given them.

# ------------------------------------------------------------------ ratio moments
# Moments of L = (R_0 - e^eps R_1)/R_K under R_K, normal laws whose centres lie in one ball, at most.
#
# R_0, R_1, R_K are N(g, I) with centres in a ball of radius mu/2, in any dimension. Under R_K put X = R_0/R_K, Y =
# R_1/R_K, A = |g_0 - g_K|^2, B = |g_1 - g_K|^2, c = (g_0 - g_K).(g_1 - g_K), s2 = |g_0 - g_1|^2 = A + B - 2c, M = mu^2.
# Then E X^i Y^j = exp( i(i-1) A/2 + j(j-1) B/2 + i j c ), and with E = e^eps, L - E L = (X - Y) - (E - 1)(Y - 1).
#
# **Second moment**, mu <= 1.2: E(X - Y)^2 <= e^M - 1, with equality for g_0, g_1 antipodal and g_K = g_1.
#
# 1. *g_K may stand on the sphere.* E|X - Y|^k = int |R_0 - R_1|^k R_K^(1-k), and R_K(x)^(1-k) is a positive multiple of
#    exp((k-1) |x - g_K|^2/2), convex in g_K: the largest value is at an extreme point of the ball. (k = 2 and 4.)
# 2. *All three may stand on one circle.* E(X - Y)^2 = e^A + e^B - 2 e^c falls as c grows with A, B fixed. Seen from g_K
#    on the sphere, a point of the ball at distance a lies at most at the angle arccos(a/mu) from the direction of the
#    centre; so c >= a b cos(arccos(a/mu) + arccos(b/mu)), which two points of one great circle attain, on either side.
# 3. On the circle, with directions phi, psi, d = phi - psi and sigma = phi + psi: A + B = M (1 + y), A - B = -M x, s2 =
#    M S, y = cos(sigma) cos d, x = sin(sigma) sin d, S = sin^2 d. Write C = 1 - S, |y| = w sqrt(C), so x^2 = S (1 -
#    w^2), t = M/2:
#        E(X - Y)^2 = 2 e^t e^(ty) ( cosh(tx) - e^(-tS) ),     e^M - 1 = 2 e^t sinh t.
#    Only y > 0 can matter. cosh(tx) <= 1 + x^2 k, k = cosh t - 1 (convex in x^2); 1 - e^(-tS) <= 1 - e^-t - C t e^-t
#    (concave in C). As e^(-ty) >= 1 - ty and k + 1 - e^-t = sinh t, it is enough that
#        t y sinh t <= k ( C + w^2 - C w^2 ) + C t e^-t,   y = w sqrt(C).
#    The right side is at least k w^2 + C t e^-t >= 2 w sqrt(C) sqrt(k t e^-t), so 4 k >= t e^t sinh^2 t is enough,
#    which is 4 >= t e^t (1 + cosh t): true up to t = 0.78, that is mu = 1.249.
#
# **Third moment**, signed: E(X - Y)^3 = e^3A - 3 e^(A+2c) + 3 e^(B+2c) - e^3B <= e^3M - 3 e^M + 2. With 2c = A + B - s2
# it is e^3A - e^3B - 3 e^(-s2) e^(A+B) (e^A - e^B); it has the sign of A - B, and for A > B it grows with s2 <= M. At
# s2 = M its slope in B is -3 e^B ( (e^B - e^(A-M))^2 + e^2A (e^-M - e^-2M) ) <= 0, so B = 0; then its slope in A is 3
# e^A ( e^2A - e^-M (2 e^A - 1) ) >= 0, so A = M.
#
# **Fourth moment**: E(X - Y)^4 = e^6A - 4 e^(3A+3c) + 6 e^(A+B+4c) - 4 e^(3B+3c) + e^6B falls as c grows, since e^3A +
# e^3B >= 2 e^(3(A+B)/2) >= 2 e^(A+B+c). So steps 1 and 2 hold, and with q = e^(-MS), on the circle,
#
#     E(X - Y)^4 = e^(3M(1+y)) [ 4 ( cosh(3Mx/2) - e^(-3MS/2) )^2 - 2 (1 - q)^2 (1 + 2q) ].                      (F)
#
# In a cell S in [S0, S1], w in [w0, w1] every factor is monotone: y <= w1 sqrt(1 - S0), x^2 <= S1 (1 - w0^2), and the
# subtracted term is at least 2 (1 - e^(-M S0))^2 (1 + 2 e^(-M S1)). The largest cell is the bound.
#
# **With eps.** |L - E L|_p <= |X - Y|_p + (E - 1)|Y - 1|_p <= E b_p for p = 2, 4, where b_p^p bounds E|X - Y|^p in all
# places (g_0 = g_K is one of them); E|X - Y|^3 <= (E(X-Y)^2 E(X-Y)^4)^(1/2); E(L - E L)^3 <= k_3 + (E^3 - 1) b_3^3
# (expand, and Hoelder).
#
# **Rounding.** expm1 and sinh of half the argument keep relative accuracy; in the largest cell what is subtracted in
# (F) is at most 0.7 of what it is subtracted from. Values are raised by 1e-9 relative.

LARGEST_MU = 1.2
"""Largest mu for which the bound on the second moment is proved."""
_CELLS, _LAPLACE_CELLS = 160, 1000
_DOUBT = 1e-9


@dataclass(frozen=True)
class RatioMoments:
    """Upper bounds of central moments of the loss variable L, wherever its three centres lie.

    X and Y are the ratios of two of the centres' densities to the third's, so that L - E L = X - Y at epsilon 0.

    Parameters
    ----------
    second, fourth : float, or ndarray with one entry for each epsilon
        Bounds of E(X - Y)^2 and E(X - Y)^4.
    third : float or ndarray
        Bound of the signed E(X - Y)^3.
    absolute : float or ndarray
        Bound of E|X - Y|^3.
    """

    second: float | FloatArray
    third: float | FloatArray
    absolute: float | FloatArray
    fourth: float | FloatArray

    def at(self, growth: float | FloatArray) -> RatioMoments:
        """Return the bounds on the moments of L at another epsilon, from those at epsilon 0.

        ``growth`` is e^epsilon - 1, at least 0, rounded up, or an array of such numbers.
        """
        e = (1.0 + growth) * (1.0 + _DOUBT)
        third = self.third + (e * e * e - 1.0) * self.absolute
        return RatioMoments(self.second * e**2, third, self.absolute * e**3, self.fourth * e**4)


@lru_cache(maxsize=64)
def ratio_moments(mu: float) -> RatioMoments:
    """Return bounds of the moments of L at eps = 0, for normal laws with centres in a ball of diameter mu.

    Parameters
    ----------
    mu : float
        Diameter in standard deviations, in [1e-4, 1.2].

    Raises
    ------
    ValueError
        If mu is out of range.

    Examples
    --------
    >>> bool(abs(ratio_moments(0.5).second - np.expm1(0.25)) < 1e-8)
    True
    """
    if not 1e-4 <= mu <= LARGEST_MU:
        raise ValueError(f"the second moment is proved for mu in [1e-4, {LARGEST_MU}]; got {mu}")
    m = mu * mu
    second = float(np.expm1(m)) * (1.0 + _DOUBT)
    third = float(np.expm1(m) ** 2 * (np.exp(m) + 2.0)) * (1.0 + _DOUBT)  # e^3M - 3 e^M + 2, factored
    fourth = _fourth(m) * (1.0 + _DOUBT)
    return RatioMoments(second, third, float(np.sqrt(second * fourth)) * (1.0 + _DOUBT), fourth)


def _fourth(m: float) -> float:
    """Return the largest cell of (F)."""
    ends = np.linspace(0.0, 1.0, _CELLS + 1)
    s0, s1 = ends[:-1, None], ends[1:, None]
    w0, w1 = ends[None, :-1], ends[None, 1:]
    y, x = w1 * np.sqrt(1.0 - s0), np.sqrt(s1 * (1.0 - w0 * w0))
    gap = 2.0 * np.sinh(0.75 * m * x) ** 2 - np.expm1(-1.5 * m * s1)
    less = np.expm1(-m * s0) ** 2 * (1.0 + 2.0 * np.exp(-m * s1))
    return float((np.exp(3.0 * m * (1.0 + y)) * (4.0 * gap * gap - 2.0 * less)).max())


def laplace_moments(epsilon0: float) -> RatioMoments:
    """Return bounds of the moments of L at eps = 0, for Laplace noise on a range of width epsilon0 scales.

    In units of the scale records are in [0, e], e = epsilon0. int |f_a - f_b|^k f_K^(1-k), k >= 2, is convex in K, as
    f_K^(1-k) is: K is an end, say 0. There let a <= b; X - Y is e^-a - e^-b below 0, e^2y times that up to a, e^a -
    e^(2y-b) from a to b, e^a - e^b beyond. *a = 0*: as a falls, |X - Y| falls only for y = m - s from a to m = (a+b)/2,
    and there the slope of the integral is made up for at m + s, by the factor e^(2s(k-2)) >= 1 over. *b = e*: as b
    grows, |1 - Y| falls only for y from b/2 to b, which costs k/2 times int (e^z - 1)^(k-1) e^((z-b)/2) dz/2 over [0,
    b], at most (e^b - 1)^(k-1): what y > b gains. So with Y = e^-e of chance 1/2, e^e of chance e^-e/2 and e^(2y-e) of
    density e^-y/2 between, E|X - Y|^k <= E|1 - Y|^k: (2/3) e^e + e^(-2e)/3 - 1 for k = 2. For k = 3 and 4 the largest
    value in a cell of y is at one of its ends.

    Parameters
    ----------
    epsilon0 : float
        In (0, 8], rounded up.
    """
    second = (2.0 * math.expm1(epsilon0) - -math.expm1(-2.0 * epsilon0)) / 3.0 * (1.0 + _DOUBT)
    ends = np.linspace(0.0, epsilon0, _LAPLACE_CELLS + 1)
    size = np.abs(np.expm1(2.0 * ends - epsilon0))
    masses = -0.5 * np.exp(-ends[:-1]) * np.expm1(-np.diff(ends))
    sizes = np.concatenate((size[:1], np.maximum(size[:-1], size[1:]), size[-1:]))
    masses = np.concatenate(([0.5], masses, [0.5 * math.exp(-epsilon0)]))
    third, fourth = (float(masses @ sizes**power) * (1.0 + _DOUBT) for power in (3, 4))
    return RatioMoments(second, third, third, fourth)


# ------------------------------------------------------------------ positive part
# E(S)_+ of a weighted sum of independent variables known by their moments, from above.
#
# S = sum_j w_j L_j, w_j >= 0, sum w_j = 1, sum w_j^2 <= q, w_j <= w; the L_j are independent, all with mean m <= 0, not
# necessarily of one law; with D_j = L_j - m: E D^2 <= v2, E D^3 <= k3 (k3 >= 0), E|D|^3 <= b3, E D^4 <= b4.
#
# **Padding.** Adding an independent normal variable of mean 0 only raises E(S)_+ (Jensen). So every term may be given
# the variance w_j^2 v2, and S the variance v = v2 q, exactly: no lower bound of a variance is ever needed. Normal
# variables are sums of arbitrarily many small ones, and add nothing to the third moments of the theorems used below.
#
# **The centre.** T ~ N(m, v). The distance of distribution functions is W1(S, T) <= sum_j w_j^3 b3/v <= w q b3/v (the
# mean central limit theorem with constant 1: I. Tyurin 2009; L. Goldstein 2010; proofs in Tyurin, arXiv:0912.0726), and
# as the means agree, E S_+ - E T_+ = int_0^inf (F_T - F_S) is at most half of it:
#
#     E S_+ <= sqrt(v) phi(z) k(z) + w q b3/(2 v),    z = -m/sqrt(v),  k(z) = 1 - z (1 - Phi(z))/phi(z).           (N)
#
# **The tail.** L_j is cut at a height c > 0 first: E S_+ <= E( sum w_j min(L_j, c) )_+ + E(L - c)_+, the last term at
# most h for all j. With D' = min(L, c) - E min(L, c): Var D' <= v2 (a cut is a contraction), |min(L, c) - m| <= |L -
# m|, and means differ by at most h; hence |D'|_p <= |D|_p + h, E D'^3 <= k3 + 3 h v2 + h^3, and D' <= c - m + h =: a.
# For theta > 0, x = theta w_j D' <= y := theta w a, and with the remainders of the exponential series, r_i(y) = (e^y -
# sum_{l<i} y^l/l!)/y^i, increasing in y,
#
#     e^x <= 1 + x + x^2/2 + x^3/6 + x^4 r_4(y),   x e^x <= x + x^2 + x^3/2 + x^4 r_3(y),
#     x^2 e^x <= x^2 + x^3 + x^4 r_2(y),   |x|^3 e^x <= |x|^3 + x^4 r_1(y),   x^2 e^x >= x^2 + x^3.
#
# So the padded sum S' has, under the law tilted by e^(theta S'), of total mass Z,
#
#     log Z <= theta m + theta^2 v/2 + theta^3 w q k3/6 + theta^4 w^2 q b4 r_4,
#     mean <= m + theta v + theta^2 w q k3/2 + theta^3 w^2 q b4 r_3 =: m1,
#     variance >= v - theta w q b3 - q (v2 g + u^2) =: v_lo,
#     variance <= v + theta w q k3 + theta^2 w^2 q b4 r_2 =: v_hi,
#     sum of third absolute central moments <= w q ( (b3 + theta w b4 r_1)^(1/3) + u )^3 =: r,
#
# where u = theta w v2 + (theta w)^2 k3/2 + (theta w)^3 b4 r_3 bounds one term's tilted mean, which is not negative, and
# g = (theta w)^2 v2/2 + (theta w)^3 k3/6 + (theta w)^4 b4 r_4 is what one term's mass exceeds 1 by, at most (it is at
# least 1 by Jensen). Then E S'_+ = Z E~ s_+ e^(-theta s); that function has total variation 2/(e theta), so by the
# Berry-Esseen theorem (constant 0.5606 for terms of different laws: Tyurin, arXiv:0912.0726; Shevtsova 2010 has 0.5600)
#
#     E S_+ <= h + Z ( G + 0.5606 (2/(e theta)) r/v_lo^(3/2) ),                                                     (B)
#     G = sup over the mean <= m1 and the variance in [v_lo, v_hi] of E s_+ e^(-theta s), s normal:
#         at most 1/(theta^2 sqrt(2 pi v_lo)), the largest density; and if m1 <= 0, at most
#         sqrt(v_hi/v_lo) sqrt(v_hi) phi(0) k(theta sqrt(v_hi)), since on s > 0 the density grows with the mean up to 0.
#
# Also E S_+ <= h + Z/(e theta), Chernoff's bound. Every theta is valid; the smallest of a grid is taken.
#
# **Rounding.** The terms of log Z are good to 64 units of 2^-53 each. Only theta m is negative, and where log Z is
# below 600 the others are at most theta |m| + 600; so log Z is raised by 2e-14 theta |m|. Results are raised by 1e-9
# relative.

BERRY_ESSEEN = 0.5606
"""The constant of Berry and Esseen for terms of different laws: Tyurin, arXiv:0912.0726, Theorem 4."""
_GRID = np.linspace(0.6, 1.25, 27)
_PART_DOUBT, _LOG_DOUBT = 1e-9, 2e-14
_FLAT = 1e-100
_DEEPEST, _LARGEST_EXPONENT = 40.0, 600.0
"""Remainders are given up beyond the first exponent, log Z beyond the second."""


@dataclass(frozen=True)
class Weights:
    """Bounds on the weights of a sum, each an array with one entry for every way to bound the sum.

    Parameters
    ----------
    squares, largest : ndarray, shape (ways,)
        Bounds q of the sum of squared weights and w of the largest weight, rounded up.
    cut, lost : ndarray, shape (ways,)
        c and h of the tail: where a term is cut, and what that costs.
    """

    squares: FloatArray
    largest: FloatArray
    cut: FloatArray
    lost: FloatArray


def positive_part(growth: float | FloatArray, weights: Weights, moments: RatioMoments) -> FloatArray:
    """Return upper bounds of E(S)_+ for a weighted sum S of terms of mean m = -growth.

    Parameters
    ----------
    growth : float, or ndarray of shape (epsilons, 1)
        e^eps - 1, at least 0, rounded down.
    weights : Weights
        Bounds on the weights of the sum.
    moments : RatioMoments
        Bounds v2, k3, b3, b4 of the moments of one term, in the shape of ``growth``.

    Returns
    -------
    ndarray, shape (ways,) or (epsilons, ways)
        One bound for every way.
    """
    v = weights.squares * moments.second
    return np.minimum(_centre(growth, v, weights, moments), _tail(growth, v, weights, moments)) * (1.0 + _PART_DOUBT)


def _centre(growth: float | FloatArray, v: FloatArray, weights: Weights, moments: RatioMoments) -> FloatArray:
    """(N)."""
    z = growth / np.sqrt(v)
    height = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return np.sqrt(v) * height * mills_slope(z) + 0.5 * weights.largest * moments.absolute / moments.second


def _tail(at: float | FloatArray, spread: FloatArray, weights: Weights, bounds: RatioMoments) -> FloatArray:
    """(B), and Chernoff's bound, at the best theta of a grid around the Gaussian one."""
    w, q, lost = weights.largest[:, None], weights.squares[:, None], weights.lost[:, None]
    flat = np.asarray(at) <= _FLAT  # there the centre says as much, and 1/theta would not stay a double
    growth, v, v2, third, absolute, fourth = (
        np.asarray(each)[..., None]
        for each in (np.where(flat, 1.0, at), spread, bounds.second, bounds.third, bounds.absolute, bounds.fourth)
    )
    moments = RatioMoments(v2, third, absolute, fourth)
    above = weights.cut[:, None] + growth + lost
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
    bound = np.exp(np.where(usable, log_z, 0.0)) * np.minimum(tilted, 1.0 / (math.e * theta)) + lost
    return np.where(flat, math.inf, np.where(usable, bound, math.inf).min(axis=-1))


def remainders(y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the remainders r_1 to r_4 of the exponential series at y > 0, each in the shape of y.

    r_k is (e^y - sum_(j<k) y^j/j!)/y^k. Each is computed from the next one, so that no terms cancel.
    """
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


# ------------------------------------------------------------------ lognormal means
# How far an average of independent log-normal weights strays from its mean 1, certified.
#
# rho = exp(mu Z - mu^2/2), Z standard normal, so E rho = 1. For N independent copies and a charge p this module finds
#
#     s with E( avg_N rho - (1 + s) )_+ <= p      and      l with E( (1 - l) - avg_N rho )_+ <= p.
#
# **Derivation.** x_+ <= e^(tx)/(e t) for t > 0 (the exponential touches the line at x = 1/t). With tau = t/N,
#
#     E( avg - (1 + s) )_+ <= exp( N log E e^(tau (rho - 1)) - N tau s ) / (e N tau),                              (E)
#
# so for given tau the smallest s is one division, and the smallest over a grid of tau is taken; likewise with -tau for
# l. E e^(tau rho) is infinite: rho is cut at c = rho(z_top) first, and E( avg - avg min(rho, c) ) = E(rho - c)_+, which
# is the divergence of two normal laws at e^eps = c, is at most p/2; (E) gets the other half.
#
# **The moments.** The line of z is cut into cells. In a cell rho has a known mass P = Phi(z') - Phi(z) and a known
# part of the mean Q = Phi(z' - mu) - Phi(z - mu); e^(tau rho) is convex, hence at most its chord at Q/P. Below the
# first cell and above the last one the value at the end is taken.
#
# **Rounding.** Masses are differences of tails on their own side of 0, good to 1e-12 relative: cells are 1/16 wide,
# so that a difference cancels at most five bits, and no tail is below 1e-300. A share Q/P within its cell is then off
# by at most 1e-11/mu, and is moved by that to the unsafe side's opposite; every moment is raised by 1e-10 relative,
# the few hundred exponentials of arguments below 700 among them.

_CELLS_PER_UNIT = 16
_LOWEST, _HIGHEST = -10.0, 20.0
"""Ends of the cells in z. For mu <= 2, E(rho - c)_+ at the upper end is below Phi(-18), 1e-71."""
_TILTS = np.geomspace(2e-3, 40.0, 72)  # in units of 1/mu
_SHARE_DOUBT = 1e-11
_MOMENT_DOUBT = 1e-10
_MOST_OF_NORMAL = 600.0


@dataclass(frozen=True, eq=False)
class LognormalMeans:
    """Averages of N independent copies of exp(mu Z - mu^2/2), Z standard normal, and how far they stray from 1.

    Parameters
    ----------
    mu : float
        In [1e-4, 2]. Averages for a larger mu stray more in convex order, so mu may be rounded up.
    charge : float
        The allowed mean excess p beyond the bounds, in [1e-60, 0.1].

    Examples
    --------
    >>> means = LognormalMeans(0.5, 1e-10)
    >>> bool(0.0 < means.shortfall(np.array([100]))[0] < means.excess(np.array([100]))[0] < 1.0)
    True
    """

    mu: float
    charge: float

    def excess(self, copies: FloatArray) -> FloatArray:
        """Return s such that the mean of (average - (1 + s))_+ is at most the charge.

        Parameters
        ----------
        copies : ndarray, shape (any,)
            N, whole numbers; where N < 1 the answer is inf.

        Returns
        -------
        ndarray, shape (any,)
            s for each N, positive.
        """
        return self._smallest(copies, self._log_moments[0], 0.5 * self.charge)

    def shortfall(self, copies: FloatArray) -> FloatArray:
        """Return l such that the mean of (1 - l - average)_+ is at most the charge; 1 where no smaller l is found.

        ``copies`` is as for `excess`.
        """
        return np.minimum(self._smallest(copies, self._log_moments[1], self.charge), 1.0)

    def _smallest(self, copies: FloatArray, log_moments: FloatArray, charge: float) -> FloatArray:
        """Return the smallest s that satisfies (E) with the given charge over the grid of tilts; inf without copies.

        log M/tau - (1 + log N + log tau + log charge)/(N tau) is a sum of three products of what depends on N and of
        what depends on tau: one product of matrices serves all N.
        """
        there, usable = copies >= 1.0, np.isfinite(log_moments)
        if not usable.any():
            return np.full(copies.shape, math.inf)
        each, tau = np.where(there, copies, 1.0), _TILTS[usable] / self.mu
        by_copies = np.stack((np.ones_like(each), (1.0 + np.log(each) + math.log(charge)) / each, 1.0 / each), axis=1)
        by_tilt = np.stack((log_moments[usable] / tau, -1.0 / tau, -np.log(tau) / tau))
        smallest = (by_copies @ by_tilt).min(axis=1)
        return np.where(there, np.maximum(smallest, 0.0) * (1.0 + _MOMENT_DOUBT) + _MOMENT_DOUBT, math.inf)

    @cached_property
    def _log_moments(self) -> tuple[FloatArray, FloatArray]:
        """Upper bounds of log E exp(tau (min(rho, c) - 1)) and of log E exp(-tau (rho - 1)), shape (tilts,)."""
        return _cells(self.mu).log_moments(0.49 * self.charge)


@dataclass(frozen=True, eq=False)
class _Cells:
    """Cells in z from -10 on, and running sums over them of the moments of exp(mu Z - mu^2/2).

    Parameters
    ----------
    lost : ndarray, shape (edges,)
        Upper bounds of E(rho - c)_+ where c is rho at the upper end of a cell; inf up to z = 1.
    rho : ndarray, shape (cells + 1,)
        The log-normal variable at the ends of the cells.
    tau : ndarray, shape (tilts,)
        The tilts.
    risen, fallen : ndarray, shape (tilts, cells)
        Upper bounds of E exp(tau (rho - 1)) and of E exp(-tau (rho - 1)) over all cells up to each, what lies below
        the first one included.
    above : ndarray, shape (cells,)
        The mass above each cell.
    """

    lost: FloatArray
    rho: FloatArray
    tau: FloatArray
    risen: FloatArray
    fallen: FloatArray
    above: FloatArray

    def log_moments(self, charge: float) -> tuple[FloatArray, FloatArray]:
        """Return both logarithms where rho is cut at the first end of a cell that loses at most the charge."""
        at = int(np.argmax(self.lost <= charge))
        top = float(self.rho[at + 1])
        usable = (self.tau * (top + 1.0) < _MOST_OF_NORMAL) & bool(self.lost[at] <= charge)
        logs: list[FloatArray] = []
        for sums, sign in ((self.risen, 1.0), (self.fallen, -1.0)):
            with np.errstate(over="ignore"):
                moment = sums[:, at] + self.above[at] * np.exp(sign * self.tau * (top - 1.0))
            logs.append(np.where(usable, np.log1p(np.where(usable, moment - 1.0, 0.0)) + 2.0 * _MOMENT_DOUBT, np.inf))
        return logs[0], logs[1]


@lru_cache(maxsize=16)
def _cells(mu: float) -> _Cells:
    """Return the cells for one mu; all charges share them."""
    z = np.arange(_LOWEST, _HIGHEST + 0.5 / _CELLS_PER_UNIT, 1.0 / _CELLS_PER_UNIT)
    tau, rho = _TILTS / mu, np.exp(mu * z - 0.5 * mu**2)
    lost = np.full(z.size - 1, math.inf)
    cut = z[1:] >= 1.0
    lost[cut] = normal_divergence(mu * z[1:][cut] - 0.5 * mu**2, mu * (1.0 + _SHARE_DOUBT)).upper
    mass, part = _masses(z), _masses(z - mu)
    inside = np.divide(part, mass, out=rho[1:].copy(), where=mass > 0.0)
    share, below = (inside - rho[:-1]) / np.diff(rho), float(ndtr(z[0]))
    partial_sums: list[FloatArray] = []
    for sign, least in ((1.0, float(rho[0])), (-1.0, 0.0)):
        safe = np.clip(share + sign * _SHARE_DOUBT / mu, 0.0, 1.0)
        # beyond 700 the tilts are not used: `log_moments`
        value = np.exp(np.minimum(sign * tau[:, None] * (rho - 1.0), 700.0))
        sums = np.cumsum(value[:, :-1] * ((1.0 - safe) * mass) + value[:, 1:] * (safe * mass), axis=1)
        partial_sums.append(sums + below * np.exp(np.minimum(sign * tau * (least - 1.0), 700.0))[:, None])
    return _Cells(lost, rho, tau, partial_sums[0], partial_sums[1], ndtr(-z[1:]))


def _masses(z: FloatArray) -> FloatArray:
    """Return the normal masses of the cells between ascending points, from the tail on the cell's own side of 0."""
    low, high = ndtr(z), ndtr(-z)
    return np.where(z[:-1] > 0.0, high[:-1] - high[1:], np.diff(low))


SMALLEST_SHIFT, LARGEST_SHIFT = 1e-3, LARGEST_MU - 1e-6
"""Range of mu for which the theorem is evaluated."""
CHARGES = tuple(10.0**-power for power in (5, 7, 9, 11, 13, 16, 20, 27, 40))
"""Total charges P for which groups are chosen; at every eps the best of the resulting bounds is used."""
_STEPS = 4
_KEPT = 0.9
_SIZES, _NODES = 30, 250
_ULPS = 2.0**-47


@dataclass(frozen=True, eq=False)
class Links:
    """The groups of users chosen for several charges, and what their weights allow.

    Parameters
    ----------
    mu : float
        Diameter of the ball of messages in standard deviations of their noise, rounded up.
    charges : ndarray, shape (ways,)
        P of the chain theorem (H), the total charge.
    weights : Weights
        Bounds on the weights in the last group, with the cut of the tail.
    sizes : tuple of tuple of int
        For each way the sizes of the groups, from the hub on, the last one included.
    """

    mu: float
    charges: FloatArray
    weights: Weights
    sizes: tuple[tuple[int, ...], ...]

    def divergence(self, epsilon: float) -> Upper:
        """Return an upper bound on delta(epsilon): the least of (H) there, (H) before, and one message's own.

        The true divergence does not increase, so what (H) says at a smaller epsilon holds here.

        Parameters
        ----------
        epsilon : float
            Nats, at least 0, finite.
        """
        own = float(normal_divergence(epsilon, self.mu).upper)
        if not self.sizes:
            return Upper(own)
        at, least = self._ladder
        before = int(np.searchsorted(at, epsilon, side="right")) - 1
        here = float(self._here(np.array([epsilon]), np.array([own]))[0])
        return Upper(min(here, float(least[before]) if before >= 0 else own, own))

    @cached_property
    def _ladder(self) -> tuple[FloatArray, FloatArray]:
        """Epsilons, and the smallest value of (H) up to each."""
        at = np.concatenate(([0.0], np.geomspace(0.5, 40.0, 24) * self.mu * math.sqrt(self.weights.squares.min())))
        return at, np.minimum.accumulate(self._here(at, np.asarray(normal_divergence(at, self.mu).upper)))

    def _here(self, epsilons: FloatArray, own: FloatArray) -> FloatArray:
        """(H) at each epsilon with the best of the charges; ``own`` is one message's divergence there."""
        growth = np.expm1(np.minimum(epsilons, 30.0))[:, None] * (1.0 + _ULPS)
        moments = ratio_moments(self.mu).at(growth)
        psi = positive_part(growth * (1.0 - 4.0 * _ULPS), self.weights, moments)
        total = np.exp(self.charges) * (psi + self.charges * own[:, None]) + growth * np.expm1(self.charges)
        return total.min(axis=1) * (1.0 + _DOUBT)


@lru_cache(maxsize=64)
def links(mu: float, others: int) -> Links:
    """Return groups chosen among the users besides the victim, for several charges.

    Parameters
    ----------
    mu : float
        Diameter of the ball of messages in standard deviations of their noise, in [1e-3, 1.199999].
    others : int
        Users besides the victim, at least 1.

    Raises
    ------
    ValueError
        If mu is out of range.

    Examples
    --------
    >>> links(0.5, 59_999).divergence(0.01) < 1e-7
    True
    """
    if not SMALLEST_SHIFT <= mu <= LARGEST_SHIFT:
        raise ValueError(f"the chain theorem is evaluated for mu in [{SMALLEST_SHIFT}, {LARGEST_SHIFT}]; got {mu}")
    raised = mu * (1.0 + _ULPS)
    chosen = [(charge, *best) for charge in CHARGES if (best := _groups(raised, others, charge)) is not None]
    logs = np.arange(1.0, 40.0, 0.125) * raised
    lost = np.asarray(normal_divergence(logs, raised).upper)
    cuts = np.array([int(np.argmax(lost <= 0.01 * charge)) for charge, _, _ in chosen], dtype=np.int64)
    last = np.array([groups[-1] for _, groups, _ in chosen], dtype=np.float64)
    ratio = np.array([r for _, _, r in chosen])
    weights = Weights(
        (1.0 + (ratio - 1.0) ** 2 / (4.0 * ratio)) / last * (1.0 + _DOUBT),
        ratio / last * (1.0 + _DOUBT),
        np.exp(logs[cuts]) * (1.0 + _DOUBT),
        lost[cuts] * (1.0 + _DOUBT),
    )
    return Links(
        raised, np.array([charge for charge, _, _ in chosen]), weights, tuple(groups for _, groups, _ in chosen)
    )


def _groups(mu: float, others: int, charge: float) -> tuple[tuple[int, ...], float] | None:
    """Sizes of two to four groups with the smallest sum of squared weights found, and the last ratio."""
    means = LognormalMeans(mu, charge / _STEPS)
    table = _RatioTable.of(means, others)
    sizes = np.unique(np.floor(np.geomspace(4.0, max(others / 2.0, 5.0), _SIZES)))
    chains, used = sizes[:, None], sizes  # shape (chains, groups but the last one), and how many users they take
    copies = np.floor(_KEPT * sizes / _hub_height(mu, charge / _STEPS) * (1.0 - _DOUBT))
    best: tuple[float, tuple[int, ...], float] | None = None
    for step in range(_STEPS - 1):
        left, (low, high) = others - used, table.between(copies)
        most = min(float(_mean_square(high, left).min()), math.inf if best is None else best[0])
        promising = np.flatnonzero(_mean_square(low, left) <= most)  # the others are not looked at any closer
        ratio = _ratio(means, copies[promising])
        value = _mean_square(ratio, left[promising])
        if value.size and math.isfinite(value.min()) and (best is None or value.min() < best[0]):
            at = int(np.argmin(value))
            place = promising[at]
            best = float(value[at]), (*map(int, chains[place]), int(left[place])), float(ratio[at])
        front, ratio = _front(means, used, copies, (low, high))
        if step == _STEPS - 2 or front.size == 0:
            break
        copies = np.floor(sizes[None, :] / ratio[:, None] * (1.0 - _DOUBT)).ravel()
        chains = np.column_stack((np.repeat(chains[front], sizes.size, axis=0), np.tile(sizes, front.size)))
        used = (used[front][:, None] + sizes[None, :]).ravel()
    return None if best is None else best[1:]


def _mean_square(ratio: FloatArray, left: FloatArray) -> FloatArray:
    """(W) for the sum of squares of so many weights; inf where none are left."""
    there = (left >= 1.0) & np.isfinite(ratio)
    safe = np.where(there, ratio, 1.0)
    return np.where(there, (1.0 + (safe - 1.0) ** 2 / (4.0 * safe)) / np.maximum(left, 1.0), math.inf)


def _hub_height(mu: float, charge: float) -> float:
    """Return b, at most so many times as likely as the hub's law another message's is, up to what the charge pays."""
    logs, costs = _hub_costs(mu)
    return math.exp(float(logs[int(np.argmax(costs <= charge))]))


@lru_cache(maxsize=16)
def _hub_costs(mu: float) -> tuple[FloatArray, FloatArray]:
    """Heights ln b, and what the hub costs at each; all charges share them."""
    logs = np.arange(0.5, 40.0, 0.05) * mu
    return logs, np.asarray(normal_divergence(logs, mu).upper) * (1.0 + 1.0 / (1.0 - _KEPT)) * (1.0 + _DOUBT)


def _ratio(means: LognormalMeans, copies: FloatArray) -> FloatArray:
    """(1 + s)/(1 - l) after averages of so many, rounded up; inf where nothing is left."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (1.0 + means.excess(copies)) / (1.0 - means.shortfall(copies)) * (1.0 + _DOUBT)
    return np.where(np.isfinite(ratio) & (ratio >= 1.0), ratio, math.inf)


@dataclass(frozen=True, eq=False)
class _RatioTable:
    """`_ratio` at some numbers of copies; in between it falls, so that most choices need no value of their own.

    Parameters
    ----------
    copies, values : ndarray, shape (nodes,)
        Ascending whole numbers from 1 on, and the ratio at each.
    """

    copies: FloatArray
    values: FloatArray

    @classmethod
    def of(cls, means: LognormalMeans, most: int) -> _RatioTable:
        """Tabulate the ratio up to ``most`` copies."""
        copies = np.unique(np.floor(np.geomspace(1.0, max(float(most), 2.0), _NODES)))
        return cls(copies, _ratio(means, copies))

    def between(self, copies: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return about the least and the largest that the ratio may be; they only say which values to look at."""
        after = np.searchsorted(self.copies, copies, side="right")
        return np.append(self.values, 1.0)[after], np.append(math.inf, self.values)[after]


def _front(
    means: LognormalMeans, used: FloatArray, copies: FloatArray, ratio: tuple[FloatArray, FloatArray]
) -> tuple[NDArray[np.int64], FloatArray]:
    """Chains that no other beats in both users and ratio, and their ratios; from what the ratios are between."""
    order = np.argsort(used, kind="stable")
    low, high = ratio[0][order], ratio[1][order]
    order = order[low < _before(high)]
    ratios = _ratio(means, copies[order])
    kept = ratios < _before(ratios)
    return order[kept], ratios[kept]


def _before(values: FloatArray) -> FloatArray:
    """Return the least of all earlier values, inf at the first."""
    return np.minimum.accumulate(np.append(math.inf, values[:-1]))
