"""The best threshold test on a count of independent bits, for many crowds at once.

S is a sum of independent bits; for an excess r >= 0 the best threshold test has the value

    psi(r) = max_m [ P(S = m) - r P(S > m) ].                                                             (psi)

With r = e^theta - 1 and S tilted by e^{theta S} (P~ its law, M its moment generating function at theta),

    P(S = m) - r P(S > m) = M e^{-theta m} sum_{d >= 0} c_d P~(m + d),    c_0 = 1,  c_d = -r e^{-theta d},   (T)
    P(S = m+1) - r P(S > m+1) - [P(S = m) - r P(S > m)] = M e^{-theta m} [P~(m + 1) - P~(m)].

So the best m is a mode of P~, and a mode of a sum of independent bits lies at the floor or the ceiling of its mean
(Darroch 1964): three candidates next to the mean are enough. All crowds share the tilt, and the transform of a
crowd is a product of powers of the same few functions of y: crowds cost one matrix product and one exponential.

Rounding. With d cut at D and the window of N values around the mean,

    sum_{d <= D} c_d P~(m + d) = 1/N sum_y M~(y) e^{-iym} kappa(y) + aliases,    y = 2 pi j/N,
    kappa(y) = (1 - e^{-iy})/(1 - q) + r q^(D+1)/(1 - q),    q = e^{-theta - iy}.

|c_d| <= 1, so aliases and what is cut weigh at most P~(|S - mean| >= t), which Bernstein's inequality bounds by
2 exp(-t^2/(2 (v + t/3))), v the variance. Each bit gives |1 + p (e^{iy} - 1)|^2 = 1 - 2p(1-p)(1 - cos y), so that
|M~(y)| <= exp(-v (1 - cos y)): points beyond exp(-`_FALL`) are left out and charged. Exponents are sums of terms
known to a few EPS each, whose absolute values are summed and charged. psi falls in r: theta is rounded down for the
upper end, and for the lower end what that adds is taken off again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shuffledp.errors import NotConverged
from shuffledp.numerics.floats import EPS
from shuffledp.numerics.interval import Enclosure, FloatArray

_FALL = 46.0
_AT_ONCE = 1 << 15
_NEGLIGIBLE = 1e-150
"""An excess below is taken for 0: e^theta - 1 would leave double range."""
_OFFSETS = np.array([-1.0, 0.0, 1.0])


@dataclass(frozen=True, eq=False)
class BitCrowds:
    """Crowds of independent bits; the columns say what bits there are, each row how many a crowd has of them.

    Parameters
    ----------
    chances : ndarray, shape (groups,)
        In (0, 1); the doubles given are taken as exact.
    flipped : ndarray of bool, shape (groups,)
        Whether a bit of the group is 1 with chance 1 - chance, exactly, instead.
    counts : ndarray, shape (crowds, groups)
        Whole numbers >= 0, as floats.
    """

    chances: FloatArray
    flipped: np.ndarray
    counts: FloatArray

    def best_thresholds(self, excess: float) -> Enclosure:
        """Enclose log psi(excess) of (psi) for each crowd, shape (crowds,); -inf below means nothing is certain.

        Parameters
        ----------
        excess : float
            r >= 0, good to 8 EPS relative; inf counts as 1e300.

        Raises
        ------
        NotConverged
            If there are so many bits that doubles do not tell their mean to a quarter.
        """
        tilt = _Tilt.of(self, min(excess, 1e300))
        mean = self.counts @ tilt.chances
        if 16.0 * EPS * float(mean.max(initial=0.0)) > 0.2:
            raise NotConverged("the mean of so many bits is not known to a quarter; state fewer users")
        order = np.argsort(self.counts @ tilt.variances, kind="stable")
        lower, upper = np.empty(order.size), np.empty(order.size)
        start = 0
        while start < order.size:
            step = self._chunk(tilt, order[start:])
            mine = order[start : start + step]
            lower[mine], upper[mine] = tilt.evaluate(self.counts[mine], mean[mine])
            start += step
        return Enclosure(lower, upper)

    def _chunk(self, tilt: _Tilt, order: np.ndarray) -> int:
        """How many crowds, ascending by variance, are evaluated together: alike ones, and not more than fit."""
        least = float(self.counts[order[0]] @ tilt.variances)
        alike = order[: _AT_ONCE // 4]
        spread = self.counts[alike] @ tilt.variances
        step = max(1, int(np.searchsorted(spread, 1.5 * least + 10.0, side="right")))
        return max(1, min(step, _AT_ONCE // _points(least, _window(float(spread[step - 1])))[1].size))


def _window(variance: float) -> int:
    """Distance t from the mean beyond which Bernstein's inequality leaves 2 e^-_FALL."""
    third = _FALL / 3.0
    return math.ceil((third + math.sqrt(third * third + 2.0 * _FALL * variance)) * (1.0 + 1e-9)) + 1


def _points(variance: float, window: int) -> tuple[int, FloatArray]:
    """N, odd, and the points y >= 0 at which a crowd of at least that variance is not negligible."""
    period = 2 * window + 9
    most = period // 2
    if variance > 0.5 * _FALL:
        reach = 2.0 * math.asin(math.sqrt(0.5 * _FALL / variance))
        most = min(most, math.ceil(reach * period / (2.0 * math.pi)) + 1)
    return period, np.arange(most + 1.0) * (2.0 * math.pi / period)


@dataclass(frozen=True, eq=False)
class _Tilt:
    """One tilt theta, and what it makes of one bit of each group.

    ``theta`` is a double with e^theta - 1 <= r, ``missing`` bounds (r - (e^theta - 1))/r, ``logs`` are the logs of the
    moment generating functions, ``chances`` and ``variances`` those of the tilted bits.
    """

    theta: float
    missing: float
    logs: FloatArray
    chances: FloatArray
    variances: FloatArray

    @classmethod
    def of(cls, crowds: BitCrowds, excess: float) -> _Tilt:
        """Tilt so that the best threshold lies at the mean."""
        negligible = excess < _NEGLIGIBLE
        theta = 0.0 if negligible else math.log1p(excess * (1.0 - 16.0 * EPS)) * (1.0 - 8.0 * EPS)
        s, odds = crowds.chances, crowds.chances / (1.0 - crowds.chances)
        plain, mirrored = odds * math.exp(theta), odds * math.exp(-theta)
        p = np.where(crowds.flipped, 1.0 / (1.0 + mirrored), plain / (1.0 + plain))
        q = np.where(crowds.flipped, mirrored / (1.0 + mirrored), 1.0 / (1.0 + plain))
        logs = np.where(crowds.flipped, theta + np.log1p(s * math.expm1(-theta)), np.log1p(s * math.expm1(theta)))
        # of a negligible r all is missing: r P(S > m) <= r, and P~ is bounded by 2 e^-_FALL at least
        return cls(theta, 1e-100 if negligible else (32.0 + 16.0 * theta) * EPS, logs, p, p * q)

    def evaluate(self, counts: FloatArray, mean: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds on log psi for crowds of like variance."""
        variance = counts @ self.variances
        window = _window(float(variance.max()))
        period, y = _points(float(variance.min()) * (1.0 - 1e-12), window)
        centre = np.rint(mean)
        size, angle, doubt = self._powers(counts, mean - centre, y)
        kernel = self._kernel(y, window + 2)
        weights = np.where(y == 0.0, 1.0, 2.0) / period
        factor = weights[:, None] * kernel[:, None] * np.exp(-1j * np.outer(y, _OFFSETS))
        value = (size * np.cos(angle)) @ factor.real - (size * np.sin(angle)) @ factor.imag
        most = size @ weights + 2.0 * math.exp(-_FALL)  # at least every P~
        around = (size @ (weights * np.abs(kernel))) * np.expm1(doubt) + 8.0 * math.exp(-_FALL)
        scale = counts @ self.logs - self.theta * centre
        parts = counts @ (np.abs(self.logs) + self.theta * self.chances) + self.theta + 2.0
        unsure = 32.0 * EPS * parts
        shift = scale[:, None] - self.theta * _OFFSETS
        with np.errstate(divide="ignore"):
            low = np.log(np.maximum(value - around[:, None] - (self.missing * most)[:, None], 0.0)) + shift
            high = np.log(np.maximum(value + around[:, None], 0.0)) + shift
        high = np.where(self._possible(counts, mean, centre), high, -np.inf)
        return low.max(axis=1) - unsure, high.max(axis=1) + unsure

    def _possible(self, counts: FloatArray, mean: FloatArray, centre: FloatArray) -> np.ndarray:
        """Which of the three candidates next to the mean may be a mode (Darroch 1964); the mean may be off."""
        doubt = 16.0 * EPS * (mean + 1.0) + 1e-12
        n = counts.sum(axis=1)
        # with m = floor(mean): m alone below m + 1/(m+2), m + 1 alone above m + 1 - 1/(n - m + 1)
        below = centre - mean >= 1.0 / (n - centre + 2.0) - doubt
        above = mean - centre >= 1.0 / (centre + 2.0) - doubt
        return np.stack((below, np.ones_like(below), above), axis=1)

    def _powers(
        self, counts: FloatArray, offset: FloatArray, y: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Size and angle of M~(y) e^{-iy centre}, shape (crowds, points), and bounds on relative errors, (crowds,)."""
        turn = 2.0 * np.sin(0.5 * y) ** 2  # 1 - cos y
        p = self.chances[:, None]
        real = 0.5 * np.log1p(-2.0 * self.variances[:, None] * turn)
        angle = np.arctan2(p * np.sin(y), 1.0 - p * turn)
        part = np.abs(real).max(axis=1) + np.abs(angle).max(axis=1) + 2.0 * self.chances * y[-1]
        turned = counts @ (angle - p * y) + np.multiply.outer(offset, y)
        return np.exp(counts @ real), turned, 16.0 * EPS * (2.0 * (counts @ part) + y[-1] + 8.0)

    def _kernel(self, y: FloatArray, cut: int) -> np.ndarray:
        """Kappa(y)."""
        if self.theta == 0.0:
            return np.ones(y.size, dtype=np.complex128)
        z = self.theta + 1j * y
        rest = math.expm1(self.theta) * np.exp(-(cut + 1.0) * z)
        return (-np.expm1(-1j * y) + rest) / -np.expm1(-z)
