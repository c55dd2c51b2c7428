"""The upper tail of a sum of many independent steps of -1, 0 or 1, and linear forms of it.

S is the sum. With weights a and b, with c >= 0, and a threshold t,

    a P(S = t - 1) + b P(S = t) - c P(S > t)                                                             (F)

is what a threshold test on S plus one step is worth. S is tilted by e^{theta S}, theta >= 0 (P~ its law, M its moment
generating function): P(S = s) = M e^{-theta s} P~(s), so (F) is M e^{-theta t} times a sum of P~(t + d), d >= -1, with
weights that do not grow with d, cut at D.

Rounding. The chances of a step are doubles, off by a stated relative error r each, which moves every probability of S
by at most the sum of those errors over all steps, relatively. (F) = E W(S), W with three jumps, is moved by less. Let
u_i, d_i, z_i be the chances of 1, -1 and 0, and S_i the sum without step i. On the line from the given chances to the
true ones the derivative is

    sum_i u_i' E[W(S_i + 1) - W(S_i)] + d_i' E[W(S_i - 1) - W(S_i)],   |u_i'| <= r u_i, |d_i'| <= r d_i.

W changes by one jump at most, and only where t - 2 <= S_i <= t + 1, and P(S_i = s) <= P(S = s)/z_i.

In the window of N values, with y = 2 pi j/N,

    sum_{d = -1}^{D} w_d P~(t + d) = 1/N sum_y M~(y) e^{-iyt} kappa(y) + aliases,   kappa(y) = sum_d w_d e^{-iyd}.

A tilted step has |M~(y)|^2 = 1 - 2 z m (1 - cos y) - 2 u d (1 - cos 2y), m = u + d, so |M~(y)| <= exp(-V (1 - cos y)),
V the sum of z m. Points beyond exp(-`_FALL`) are left out and charged. Aliases, and what is cut, weigh at most
P~(|S - mean| >= D), which Bernstein's inequality bounds by 2 exp(-D^2/(2 (v + 2D/3))), v the variance: a step strays
from its mean by at most 2. Exponents and angles are sums of terms known to a few EPS each, whose absolute values are
summed and charged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp.errors import NotConverged
from shuffledp.numerics.floats import EPS, roundoff
from shuffledp.numerics.interval import Enclosure, FloatArray

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
            raise NotConverged("steps that are hardly ever 0 are not summed for so many; state fewer users")
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
