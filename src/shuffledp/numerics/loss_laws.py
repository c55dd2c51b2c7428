"""Laws of losses with finitely many atoms, and what tilting by exp(t loss) makes of them, in logarithms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp.numerics.floats import EPS
from shuffledp.numerics.interval import FloatArray


def log_exp_gap(u: FloatArray) -> FloatArray:
    """Return ``log(exp(u) - 1 - u)`` for real u, absolute error below 64 EPS (1 + |value|); -inf at 0."""
    u = np.asarray(u, dtype=np.float64)
    near, large = np.abs(u) < 0.25, u > 1.0
    inner = np.where(near, u, 0.0)
    series = np.ones_like(inner)
    for k in range(13, 2, -1):  # 2 (1/4)^12 / 14! is left out
        series = 1.0 + series * inner / k
    with np.errstate(divide="ignore"):
        small = 2.0 * np.log(np.abs(inner)) - math.log(2.0) + np.log(series)
    top = np.where(large, u, 1.0)
    far = top + np.log1p(-(1.0 + top) * np.exp(-top))
    mid = np.where(near | large, 1.0, u)
    return np.where(near, small, np.where(large, far, np.log(np.expm1(mid) - mid)))


def log_sum(logs: FloatArray) -> FloatArray:
    """Return ``log(sum(exp(logs)))`` over the last axis; -inf for nothing but -inf."""
    top = np.max(logs, axis=-1, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(logs - top).sum(axis=-1)) + top[..., 0]


@dataclass(frozen=True, eq=False)
class LossLaw:
    """A measure on the extended line: mass ``exp(log_masses[k])`` at ``losses[k]``, and ``infinite`` at +inf.

    Parameters
    ----------
    losses, log_masses : ndarray, shape (atoms,)
        Finite, in any order; taken as exact.
    infinite : float
        In [0, 1].
    """

    losses: FloatArray
    log_masses: FloatArray
    infinite: float

    def log_mgf(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log of the finite part's sum exp(t loss), shape of t, and a bound on its absolute error."""
        tilted = Tilted(self, t)
        return tilted.value, tilted.error

    def tilted_moments(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the finite part tilted by exp(t loss); estimates, used only to choose lines."""
        return Tilted(self, t).moments


@dataclass(frozen=True, eq=False)
class Tilted:
    """A law's finite part tilted by exp(t loss): what is asked of it shares its exponentials.

    Parameters
    ----------
    law : LossLaw
        The law.
    t : ndarray
        Tilts.
    """

    law: LossLaw
    t: FloatArray

    @cached_property
    def _logs(self) -> FloatArray:
        return self.law.log_masses + self.t[..., None] * self.law.losses

    @cached_property
    def _weights(self) -> FloatArray:
        return np.exp(self._logs - self.value[..., None])

    @cached_property
    def value(self) -> FloatArray:
        """Log of the sum of exp(t loss)."""
        return log_sum(self._logs)

    @property
    def error(self) -> FloatArray:
        """Bound on the absolute error of `value`."""
        size = np.abs(self.law.log_masses) + 2.0 * np.abs(self.t[..., None] * self.law.losses)
        doubt = (self._weights * size).sum(axis=-1)
        return EPS * (4.0 * doubt + 2.0 * np.abs(self.value) + self.law.losses.size + 16.0)

    @property
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and variance; estimates."""
        losses, weights = self.law.losses, self._weights
        mean = (weights * losses).sum(axis=-1)  # as a matrix product it would start threads
        return mean, ((losses - mean[..., None]) ** 2 * weights).sum(axis=-1)
