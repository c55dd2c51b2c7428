"""Chances that users send a common blanket when a victim's noise is known up to a range of scales.

With k_s the density of Laplace or normal noise of scale s, K_s(u) its mass above u, and a <= s <= b, every other user
of scale t has the chance

    gamma_t = 2 [K_a(1/2) - K_a(m) - K_b(far)]_+ min_{M = 1/2, far} k_t(M) / max_{a <= s <= b} k_s(M)           (T)

of docs/theorems/blanket.md. As a function of s, k_s(M) rises up to s = M and then falls, for either noise.
"""

from __future__ import annotations

import math

import numpy as np

from shuffledp.numerics.floats import EPS
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.special import ndtr

_MARGIN = 1e-12
"""Relative doubt of tails and exponentials: closed forms in double precision, far above their rounding."""
_LEAST = 1e-200
"""Users with a smaller chance hide nobody."""


def log_density(kind: str, scale: float | FloatArray, u: float | FloatArray) -> FloatArray:
    """Return log k_s(u), broadcast; absolute error 4 EPS (1 + |log k_s|).

    Parameters
    ----------
    kind : {"laplace", "gaussian"}
        Shape of the noise.
    scale : float or ndarray
        Positive.
    u : float or ndarray
        Any reals.
    """
    v = np.abs(u) / np.asarray(scale)
    if kind == "laplace":
        return -v - np.log(2.0 * np.asarray(scale))
    return -0.5 * v * v - np.log(np.asarray(scale) * math.sqrt(2.0 * math.pi))


def tail_above(kind: str, scale: float, u: float) -> float:
    """Return the noise mass above u >= 0; relative error below 1e-13.

    Parameters
    ----------
    kind : {"laplace", "gaussian"}
        Shape of the noise.
    scale : float
        Positive.
    u : float
        At least 0.
    """
    return 0.5 * math.exp(-u / scale) if kind == "laplace" else float(ndtr(-u / scale))


def shared_chances(
    kind: str, narrowest: float, widest: float, edges: tuple[float, float], scales: FloatArray
) -> FloatArray:
    """Bound (T) from below for each other user, shape of ``scales``; 0 where it says nothing.

    Parameters
    ----------
    kind : {"laplace", "gaussian"}
        Shape of everybody's noise.
    narrowest, widest : float
        a and b, the range of the victim's scale.
    edges : tuple of float
        m and the farther edge, each at least 1.
    scales : ndarray, shape (users,)
        The others' scales, positive.
    """
    near, far = edges
    mass = tail_above(kind, narrowest, 0.5) * (1.0 - _MARGIN)
    mass -= (tail_above(kind, narrowest, near) + tail_above(kind, widest, far)) * (1.0 + _MARGIN)
    if mass <= 0.0:
        return np.zeros_like(scales)
    logs = np.full(scales.shape, math.inf)
    for distance in (0.5, far):
        own = log_density(kind, scales, distance)
        most = float(log_density(kind, min(max(distance, narrowest), widest), distance))
        logs = np.minimum(logs, own - most - 16.0 * EPS * (2.0 + np.abs(own) + abs(most)))
    return np.minimum(2.0 * mass * np.exp(np.minimum(logs, 100.0)) * (1.0 - _MARGIN), 1.0)


def outside_mass(kind: str, widest: float, far: float) -> float:
    """Bound from above the chance that noise of at most that scale, added to a record in [0, 1], passes an edge.

    Parameters
    ----------
    kind : {"laplace", "gaussian"}
        Shape of the noise.
    widest : float
        The largest scale.
    far : float
        At least 1: reports outside [1 - far, far] have passed. The end points pass most often.
    """
    return (tail_above(kind, widest, far - 1.0) + tail_above(kind, widest, far)) * (1.0 + _MARGIN)


def charged(value: float, epsilon: float, outside: float) -> float:
    """Bound value + e^epsilon outside from above, at most 1.

    Parameters
    ----------
    value : float
        At least 0.
    epsilon : float
        Nats.
    outside : float
        At least 0.
    """
    return min((value + math.exp(min(epsilon, 700.0)) * outside) * (1.0 + _MARGIN), 1.0)


def rounded_groups(chances: FloatArray, counts: FloatArray, most: int, without: int) -> tuple[FloatArray, FloatArray]:
    """Leave out the users with the largest chances, and round the others' down to those of at most so many users.

    Parameters
    ----------
    chances, counts : ndarray, shape (groups,)
        What users have, and how many have it, whole numbers as floats.
    most : int
        How many different chances are left.
    without : int
        How many users are left out.

    Returns
    -------
    chances, counts : ndarray, shape (at most ``most``,)
        Ascending chances, none of them next to 0.
    """
    order = np.argsort(chances, kind="stable")
    p, n = chances[order], counts[order]
    after = np.cumsum(n[::-1])[::-1] - n
    n = n - np.clip(without - after, 0.0, n)
    keep = (n > 0.0) & (p > _LEAST)
    p, n = p[keep], n[keep]
    if p.size <= most:
        return p, n
    # runs of equal loss: the chance lost by rounding a run of users down is about users times spread
    weight = np.sqrt(np.diff(p, prepend=p[0]) * n)
    run = np.floor(np.cumsum(weight) * (most / max(float(weight.sum()), 1e-300)) * 0.999999)
    first = np.flatnonzero(np.diff(run, prepend=-1.0))
    return p[first], np.add.reduceat(n, first)
