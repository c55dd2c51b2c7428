"""Tails of the normal law, the divergence of two shifted ones, and tails of sums of steps; without cancellation.

With Mills' ratio m(t) = (1 - Phi(t))/phi(t) and k = -m' = 1 - t m(t) > 0,

    Phi(-u) - e^eps Phi(-v) = phi(u) (m(u) - m(v)) = phi(u) int_u^v k(t) dt,    u = eps/mu - mu/2,  v = u + mu,  (G)

because v^2 - u^2 = 2 eps. The integral serves small mu, where the difference would lose its digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import NotConverged
from shuffledp.numerics.floats import EPS, Enclosure, FloatArray, roundoff
from shuffledp.numerics.functions import erfcx, ndtr

_NODES, _WEIGHTS = (0.5 * x for x in np.polynomial.legendre.leggauss(8))
_SHORT = 0.5  # shift below which the integral is used; eight nodes are exact to 1e-18 there
_FAR = 12.0  # from here on k is its asymptotic series: fourteen terms leave 4e-15 out
_ULPS = 40.0  # of scipy's erfcx on [-1, inf), measured below 8 against Arb balls, and of a few operations
_STEPS, _APART = 30, 1e-11  # of Newton's method, and how far around its result a shift is searched for
_SMALLEST = 1e-320  # above the absolute error where the result is subnormal


def mills_ratio(t: ArrayLike) -> FloatArray:
    """Return (1 - Phi(t))/phi(t) for t >= -1, relative error below 40 EPS."""
    return math.sqrt(math.pi / 2.0) * erfcx(np.asarray(t, dtype=np.float64) / math.sqrt(2.0))


def mills_slope(t: ArrayLike) -> FloatArray:
    """Return an upper bound on 1 - t m(t) for t >= -1, m being Mills' ratio; too large by at most 1e-13 (1 + |t|)."""
    value, doubt = _mills_slope(np.asarray(t, dtype=np.float64))
    return value + doubt


def normal_divergence(epsilon: ArrayLike, mu: ArrayLike) -> Enclosure:
    """Enclose Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu), the hockey-stick divergence of N(mu, 1) and N(0, 1).

    Non-decreasing in mu, non-increasing in epsilon (Balle and Wang 2018, Theorem 8).

    Parameters
    ----------
    epsilon : array_like
        Nats, finite, at least 0.
    mu : array_like
        Distance of the means in standard deviations, in [0, inf]; broadcast with epsilon.

    Returns
    -------
    Enclosure
        In [0, 1]. Relative width about 1e-12, and 1e-320 where the value is smaller than that.
    """
    eps, shift = np.broadcast_arrays(np.asarray(epsilon, dtype=np.float64), np.asarray(mu, dtype=np.float64))
    plain = (shift > 0.0) & np.isfinite(shift)
    h = np.where(plain, shift, 1.0)
    with np.errstate(over="ignore"):
        centre = np.minimum(eps / h, 1e150)  # phi has vanished long before
        u = centre - 0.5 * h
        height = np.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
        # an error of 2 EPS (centre + h) in u shifts the interval (relative change below 2) and enters phi (|u|)
        relative = EPS * (16.0 + 4.0 * (np.abs(u) + 2.0) * (centre + h))
    area, doubt = _area(u, h, height)
    lower = np.maximum((area - doubt) * (1.0 - relative) - _SMALLEST, 0.0)
    upper = np.minimum((area + doubt) * (1.0 + relative) + _SMALLEST, 1.0)
    # at mu = 0 it is 0, at inf 1; of what is no distance nothing is known
    least, most = np.where(shift == math.inf, 1.0, 0.0), np.where(shift == 0.0, 0.0, 1.0)
    return Enclosure(np.where(plain, lower, least), np.where(plain, upper, most))


def largest_shift(epsilon: ArrayLike, delta: ArrayLike) -> FloatArray:
    """Return a certified lower bound on the largest mu at which `normal_divergence` is at most delta.

    Bisection down to neighbouring doubles; the result is short of the true value by about 1e-12 relative.

    Parameters
    ----------
    epsilon : array_like
        Nats, finite, at least 0.
    delta : array_like
        In [0, 1); broadcast with epsilon. Where it is 0, the result is 0.
    """
    eps, target = np.broadcast_arrays(np.asarray(epsilon, dtype=np.float64), np.asarray(delta, dtype=np.float64))
    # doubles of one sign are ordered like their bit patterns
    low = np.zeros(eps.shape, dtype=np.int64)
    high = np.asarray(80.0 + np.sqrt(2.0 * eps)).view(np.int64).copy()  # there u < -38: the divergence rounds to 1
    fitting, failing = _around_shift(eps, target)
    for _ in range(63):
        middle = low + (high - low) // 2
        at = middle.view(np.float64)
        fits = at <= fitting
        if not (fits | (at >= failing)).all():
            fits = np.where(fits | (at >= failing), fits, normal_divergence(eps, at).upper <= target)
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return low.view(np.float64)


def _around_shift(epsilon: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return shifts close together at which the divergence is at most the target, and above it; else 0 and inf.

    By Newton's method for the logarithm of the divergence, whose derivative in mu is phi(eps/mu - mu/2).
    """
    mu = np.full(epsilon.shape, 1.0)
    with np.errstate(all="ignore"):
        for _ in range(_STEPS):
            value, u = normal_divergence(epsilon, mu).upper, epsilon / mu - 0.5 * mu
            step = np.log(value / target) * value * np.exp(0.5 * u * u) * math.sqrt(2.0 * math.pi)
            following = np.clip(mu - step, 0.5 * mu, 2.0 * mu)
            settled = np.abs(following - mu) <= 0.01 * _APART * mu
            mu = np.where(np.isfinite(following), following, mu)
            if settled.all():
                break
    low, high = mu * (1.0 - _APART), mu * (1.0 + _APART)
    fits, fails = normal_divergence(epsilon, low).upper <= target, normal_divergence(epsilon, high).upper > target
    return np.where(fits, low, 0.0), np.where(fails, high, np.inf)


def noise_epsilons(sigma: ArrayLike, delta: float) -> FloatArray:
    """Return epsilons (nats) at which normal noise, added to a number in [0, 1], certainly has at most the given delta.

    Parameters
    ----------
    sigma : array_like
        Standard deviations of the noise, positive, possibly inf, with a relative error of at most 16 EPS.
    delta : float
        In (0, 1).

    Returns
    -------
    ndarray
        Shape of ``sigma``; barely above the smallest such epsilon.
    """
    shift = np.minimum((1.0 + 32.0 * EPS) / np.asarray(sigma, dtype=np.float64), 1e150)
    # P(loss > eps) <= delta from mu^2/2 + mu z on, z the quantile; doubles of one sign are ordered like their patterns
    high = np.asarray(0.5 * shift * shift + shift * (math.sqrt(-2.0 * math.log(delta)) + 2.0) + 1e-300)
    high, low = high.view(np.int64).copy(), np.zeros(shift.shape, dtype=np.int64)
    done = normal_divergence(0.0, shift).upper <= delta
    for _ in range(63):
        middle = low + (high - low) // 2
        fits = normal_divergence(middle.view(np.float64), shift).upper <= delta
        low, high = np.where(fits, low, middle), np.where(fits, middle, high)
    epsilons = high.view(np.float64)
    certain = normal_divergence(epsilons, shift).upper <= delta
    return np.where(done, 0.0, np.where(certain, epsilons, math.inf))


def _area(u: FloatArray, h: FloatArray, height: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return phi(u) (m(u) - m(u + h)) and a bound on its absolute error; u and h are taken as exact."""
    near = np.maximum(u, -1.0)  # below, Phi(-u) is taken as it is: phi(u) would underflow
    first = np.where(u < -1.0, ndtr(-u), height * mills_ratio(near))
    second = height * mills_ratio(np.maximum(u + h, -1.0))
    short = (h < _SHORT) & (u >= -1.0)
    t = np.where(short, near, 0.0)[..., None] + np.where(short, h, 0.0)[..., None] * (0.5 + _NODES)
    slope, doubt = _mills_slope(t)
    weight = height * h
    area = np.where(short, weight * (slope @ _WEIGHTS), first - second)
    return area, np.where(short, weight * (doubt @ _WEIGHTS), _ULPS * EPS * (first + second))


def _mills_slope(t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return k(t) = 1 - t m(t) for t >= -1, and a bound on its absolute error."""
    far = t > _FAR
    near = np.where(far, 1.0, t)
    direct = near * mills_ratio(near)
    inverse = 1.0 / np.where(far, t, _FAR) ** 2
    series = np.zeros_like(t)
    for odd in range(27, 0, -2):  # t^-2 - 3 t^-4 + 15 t^-6 - ... (DLMF 7.12.1), alternating
        series = odd * inverse * (1.0 - series)
    return np.where(far, series, 1.0 - direct), EPS * _ULPS * np.where(far, series, 1.0 + np.abs(direct))


def normal_tail_mass(epsilon: ArrayLike, mu: ArrayLike) -> Enclosure:
    """Enclose Phi(-mu/2 - eps/mu), the probability of the best test's event: minus d/d(e^eps) of `normal_divergence`.

    Parameters
    ----------
    epsilon : array_like
        Nats, finite, at least 0.
    mu : array_like
        Positive and finite; broadcast with epsilon.
    """
    eps, shift = np.broadcast_arrays(np.asarray(epsilon, dtype=np.float64), np.asarray(mu, dtype=np.float64))
    with np.errstate(over="ignore"):
        v = np.minimum(eps / shift, 1e8) + 0.5 * np.minimum(shift, 1e8)  # the tail has vanished long before
        value = np.exp(-0.5 * v * v) / math.sqrt(2.0 * math.pi) * mills_ratio(v)
    # v is off by 2 EPS v, which enters the tail by at most v (v + 1); its square is rounded once more
    relative = EPS * (_ULPS + 16.0 + 4.0 * v * (v + 1.0))
    lower = np.maximum(value * (1.0 - relative) - _SMALLEST, 0.0)
    return Enclosure(lower, np.minimum(value * (1.0 + relative) + _SMALLEST, 1.0))


# The upper tail of a sum of many independent steps of -1, 0 or 1, and linear forms of it.
#
# S is the sum. With weights a and b, with c >= 0, and a threshold t,
#
#     a P(S = t - 1) + b P(S = t) - c P(S > t)                                                             (F)
#
# is what a threshold test on S plus one step is worth. S is tilted by e^{theta S}, theta >= 0 (P~ its law, M its moment
# generating function): P(S = s) = M e^{-theta s} P~(s), so (F) is M e^{-theta t} times a sum of P~(t + d), d >= -1,
# with weights that do not grow with d, cut at D.
#
# Rounding. The chances of a step are doubles, off by a stated relative error r each, which moves every probability of S
# by at most the sum of those errors over all steps, relatively. (F) = E W(S), W with three jumps, is moved by less. Let
# u_i, d_i, z_i be the chances of 1, -1 and 0, and S_i the sum without step i. On the line from the given chances to the
# true ones the derivative is
#
#     sum_i u_i' E[W(S_i + 1) - W(S_i)] + d_i' E[W(S_i - 1) - W(S_i)],   |u_i'| <= r u_i, |d_i'| <= r d_i.
#
# W changes by one jump at most, and only where t - 2 <= S_i <= t + 1, and P(S_i = s) <= P(S = s)/z_i.
#
# In the window of N values, with y = 2 pi j/N,
#
#     sum_{d = -1}^{D} w_d P~(t + d) = 1/N sum_y M~(y) e^{-iyt} kappa(y) + aliases,   kappa(y) = sum_d w_d e^{-iyd}.
#
# A tilted step has |M~(y)|^2 = 1 - 2 z m (1 - cos y) - 2 u d (1 - cos 2y), m = u + d, so |M~(y)| <= exp(-V (1 - cos
# y)), V the sum of z m. Points beyond exp(-`_FALL`) are left out and charged. Aliases, and what is cut, weigh at most
# P~(|S - mean| >= D), which Bernstein's inequality bounds by 2 exp(-D^2/(2 (v + 2D/3))), v the variance: a step strays
# from its mean by at most 2. Exponents and angles are sums of terms known to a few EPS each, whose absolute values are
# summed and charged.


_FALL = 52.0
_MOST_POINTS = 1 << 20
_SMALL = 1e-6
"""Factors |M~(y)| below this are bounded instead of evaluated."""


@dataclass(frozen=True, eq=False)
class StepSum:
    """A sum S of independent steps of -1, 0 or 1; group g has ``counts[g]`` of them with the same probabilities.

    Parameters
    ----------
    up, down, stay : ndarray, shape (groups,)
        Probabilities of 1, -1 and 0, each with a relative error of at most ``ulps`` roundoffs.
    counts : ndarray, shape (groups,)
        Whole numbers >= 0, as floats.
    ulps : float
        In units of 2^-53.
    """

    up: FloatArray
    down: FloatArray
    stay: FloatArray
    counts: FloatArray
    ulps: float

    @cached_property
    def doubt(self) -> float:
        """Upper bound on the relative error of any probability of S, due to errors of the step probabilities."""
        exponent = 2.0 * roundoff(self.ulps, 1.0) * float(self.counts.sum())
        return math.expm1(exponent) if exponent < 700.0 else math.inf

    def moved(self, around: FloatArray, tail: FloatArray) -> FloatArray:
        """Bound the error of E W(S), W of (F) with jumps of at most 1, from the errors of the step probabilities.

        The smaller of two bounds, shape (thresholds,).

        Parameters
        ----------
        around : ndarray, shape (thresholds,)
            Upper bounds on P(t - 2 <= S <= t + 1).
        tail : ndarray, shape (thresholds,)
            Upper bounds on P(S >= t - 1).
        """
        with np.errstate(divide="ignore"):
            slope = float(((self.up + self.down) / self.stay) @ self.counts)
        return np.minimum(self.doubt * tail, 4.0 * roundoff(self.ulps, slope) * (1.0 + self.doubt) * around)

    @property
    def mirrored(self) -> StepSum:
        """The sum of the negated steps: the probabilities of 1 and -1 exchanged."""
        return StepSum(self.down, self.up, self.stay, self.counts, self.ulps)

    @property
    def variance(self) -> float:
        """Variance of S, in plain double precision."""
        both, drift = self.up + self.down, self.up - self.down
        return float((both - drift * drift) @ self.counts)

    def tilted(self, theta: float) -> TiltedSteps:
        """Return the sum tilted by exp(theta S).

        Parameters
        ----------
        theta : float
            In [0, 700].
        """
        more, less = math.exp(theta), math.exp(-theta)
        whole = self.up * more + self.stay + self.down * less
        up, down, stay = self.up * more / whole, self.down * less / whole, self.stay / whole
        rise = self.up * math.expm1(theta) + self.down * math.expm1(-theta)
        size = np.abs(self.up * math.expm1(theta)) + np.abs(self.down * math.expm1(-theta))
        # chances of one step may not add up to 1 to the last digit: within `doubt`
        return TiltedSteps(theta, up, down, stay, self.counts, np.log1p(rise), size / (1.0 + rise))


@dataclass(frozen=True, eq=False)
class TiltedSteps:
    """A tilted sum of steps: probabilities, counts, and the log of each step's moment generating function.

    Parameters
    ----------
    theta : float
        The tilt.
    up, down, stay : ndarray, shape (groups,)
        Tilted probabilities of 1, -1 and 0.
    counts : ndarray, shape (groups,)
        Number of steps in each group.
    logs, sizes : ndarray, shape (groups,)
        Logs of the moment generating functions at theta, and factors of the roundoff in their errors.
    """

    theta: float
    up: FloatArray
    down: FloatArray
    stay: FloatArray
    counts: FloatArray
    logs: FloatArray
    sizes: FloatArray

    @property
    def mean(self) -> float:
        """Mean of the tilted sum, in plain double precision."""
        return float((self.up - self.down) @ self.counts)

    def forms(self, weights: FloatArray, thresholds: FloatArray) -> Enclosure:
        """Enclose (F), treating the given doubles as exact, shape (forms, thresholds).

        Parameters
        ----------
        weights : ndarray, shape (forms, 3)
            a, b and -c of (F): the values of S = t - 1, of S = t and of every S > t.
        thresholds : ndarray, shape (thresholds,)
            Whole numbers near the mean of the tilted sum.
        """
        both, drift = self.up + self.down, self.up - self.down
        variance = float((both - drift * drift) @ self.counts) + 1.0
        third = 2.0 * _FALL / 3.0
        apart = float(np.abs(thresholds - self.mean).max(initial=0.0))
        cut = math.ceil((third + math.sqrt(third * third + 2.0 * _FALL * variance)) * (1.0 + 1e-9) + apart) + 8
        period = 2 * cut + 9
        y = self._points(period)
        size, angle, doubt, lost = self._powers(y)
        z = self.theta + 1j * y
        turned = np.exp(1j * (angle[None, :] - np.multiply.outer(thresholds, y)))
        doubt = doubt + 8.0 * EPS * (np.abs(thresholds)[:, None] * y + 8.0)
        weight = np.where(y == 0.0, 1.0, 2.0) / period
        steep = np.where(z == 0.0, 1.0, -np.expm1(-z))
        ahead = np.where(z == 0.0, cut, -np.expm1(-cut * z) / steep)
        rows = np.stack((np.exp(z), np.ones_like(z), np.exp(-z) * ahead))
        kernel = weights @ rows  # shape (forms, points)
        value = np.real((turned * (size * weight)) @ kernel.T).T
        absolute = np.abs(weights) @ np.abs(rows)
        error = (absolute * weight * size) @ np.expm1(np.minimum(doubt + 64.0 * EPS, 50.0)).T
        error += ((absolute * weight) @ lost)[:, None]
        blurred = 8.0 * EPS * (cut * np.abs(z) + 8.0) / np.abs(steep)  # of the cut geometric sum
        error += np.abs(weights[:, 2:]) * float((weight * size) @ blurred)
        heaviest = (np.abs(weights) * np.array([math.exp(self.theta), 1.0, 1.0])).max(axis=1)
        # aliases and the cut: twice 2 e^-_FALL; points left out: at most e^-_FALL each, of weight 1 in all
        error += (heaviest * (8.0 + cut) * math.exp(-_FALL))[:, None]
        terms = self.counts @ (np.abs(self.logs) + self.sizes) + self.theta * np.abs(thresholds) + 2.0
        scale = float(self.counts @ self.logs) - self.theta * thresholds
        unsure = (16.0 + self.counts.size) * EPS * terms
        factor = np.exp(np.minimum(scale, 700.0))  # at most 1 where the threshold is at the mean
        low, high = value - error, value + error
        down, up = factor * np.exp(-unsure) * (1.0 - 1e-14), factor * np.exp(unsure) * (1.0 + 1e-14)
        return Enclosure(
            np.where(low > 0.0, low * down, low * up) - 1e-300, np.where(high > 0.0, high * up, high * down) + 1e-300
        )

    def _points(self, period: int) -> FloatArray:
        """Return the points y >= 0 at which the transform is not negligible; period is odd."""
        most, spread = period // 2, float((self.stay * (self.up + self.down)) @ self.counts) * (1.0 - 1e-12)
        if spread > 0.5 * _FALL:
            reach = 2.0 * math.asin(math.sqrt(0.5 * _FALL / spread))
            most = min(most, math.ceil(reach * period / (2.0 * math.pi)) + 1)
        if most > _MOST_POINTS:
            raise NotConverged("steps that are hardly ever 0 are not summed for so many; sum fewer steps")
        return np.arange(most + 1.0) * (2.0 * math.pi / period)

    def _powers(self, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return |M~(y)|, its angle, a bound on its relative error, and a bound on the terms that are not evaluated."""
        turn, sine = 2.0 * np.sin(0.5 * y) ** 2, np.sin(y)
        both, drift = (self.up + self.down)[:, None], (self.up - self.down)[:, None]
        fall = 2.0 * self.stay[:, None] * both * turn + 4.0 * (self.up * self.down)[:, None] * sine * sine
        left = np.maximum(1.0 - fall, 0.0)  # |M~|^2 of one step
        small = left < _SMALL**2
        logs = 0.5 * np.log1p(-np.where(small, 1.0 - _SMALL**2, fall))
        angles = np.where(small, 0.0, np.arctan2(drift * sine, 1.0 - both * turn))
        size = np.exp(np.minimum(self.counts @ logs, 0.0))
        # a fall is good to 16 EPS, its log and the angle to that over |M~|^2
        own = np.where(small, 0.0, (fall + np.abs(angles)) / np.maximum(left, _SMALL**2))
        doubt = (32.0 + self.counts.size) * EPS * (self.counts @ (own + np.abs(logs)))
        bounded = small.any(axis=0)
        return np.where(bounded, 0.0, size), self.counts @ angles, doubt, np.where(bounded, 2.0 * size, 0.0)
