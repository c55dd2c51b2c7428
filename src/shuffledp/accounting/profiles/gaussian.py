"""Gaussian differential privacy (GSPA Fact 3): used for the published formulas, and as a first guess elsewhere."""

from __future__ import annotations

import math
from dataclasses import dataclass

from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.numerics.floats import UNBOUNDED, Upper
from shuffledp.numerics.interval import Interval
from shuffledp.numerics.special import log_ndtr


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Return delta(epsilon) of mu-GDP: Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2) (GSPA Fact 3).

    Parameters
    ----------
    epsilon : float
        Nats, at least 0.
    mu : float
        In [0, inf]; 0 is perfect privacy, inf none.
    """
    if mu == 0.0:
        return 0.0
    if math.isinf(mu):
        return 1.0
    first = float(log_ndtr(-epsilon / mu + mu / 2.0))
    second = epsilon + float(log_ndtr(-epsilon / mu - mu / 2.0))
    return max(-math.exp(first) * math.expm1(min(second - first, 0.0)), 0.0)


def gaussian_epsilon(delta: float, mu: float) -> float:
    """Return the epsilon at which mu-GDP has this delta (bisection to double precision; inf for mu = inf)."""
    if math.isinf(mu):
        return math.inf
    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    low, high = 0.0, mu
    while gaussian_delta(high, mu) > delta:
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if gaussian_delta(middle, mu) > delta else (low, middle)
    return high


@dataclass(frozen=True)
class GaussianProfile(PrivacyProfile):
    """Profile of mu-GDP, evaluated in double precision as published; no certificate is attached.

    Parameters
    ----------
    mu : float
        In [0, inf].
    """

    mu: float

    @property
    def vanishes_at(self) -> Upper:
        """Zero if mu is zero; a Gaussian profile is positive everywhere otherwise."""
        return Upper(0.0) if self.mu == 0.0 else UNBOUNDED

    def delta_at(self, epsilon: float) -> Interval:
        """Fact 3."""
        value = gaussian_delta(epsilon, self.mu)
        return Interval(value, value)

    def epsilon(self, delta: float) -> Interval:
        """Fact 3, inverted."""
        value = gaussian_epsilon(delta, self.mu)
        return Interval(value, value)
