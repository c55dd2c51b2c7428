"""The normal tail, and the divergence of two shifted normal laws, enclosed without cancellation.

With Mills' ratio m(t) = (1 - Phi(t))/phi(t) and k = -m' = 1 - t m(t) > 0,

    Phi(-u) - e^eps Phi(-v) = phi(u) (m(u) - m(v)) = phi(u) int_u^v k(t) dt,    u = eps/mu - mu/2,  v = u + mu,  (G)

because v^2 - u^2 = 2 eps. The integral serves small mu, where the difference would lose its digits.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.numerics.floats import EPS, erfcx, ndtr
from shuffledp.numerics.interval import Enclosure, FloatArray

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
    found = high.view(np.float64)
    certain = normal_divergence(found, shift).upper <= delta
    return np.where(done, 0.0, np.where(certain, found, math.inf))


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
