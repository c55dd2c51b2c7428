"""Privacy losses of finite pairs of laws, and hockey-stick divergences of their sums and products, enclosed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from shuffledp.numerics.floats import EPS, FloatArray, Interval
from shuffledp.numerics.sums import ComplexArray, characteristic

# ------------------------------------------------------------------ loss laws
# Laws of losses with finitely many atoms, and what tilting by exp(t loss) makes of them, in logarithms.


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
    """Return ``log(sum(exp(logs)))`` over the last axis; -inf where all terms are 0."""
    top = np.max(logs, axis=-1, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(logs - top).sum(axis=-1)) + top[..., 0]


@dataclass(frozen=True, eq=False)
class LossLaw:
    """A distribution of privacy losses, not necessarily of total mass 1.

    It has mass ``exp(log_masses[k])`` at ``losses[k]`` and mass ``infinite`` at +inf.

    Parameters
    ----------
    losses, log_masses : ndarray, shape (atoms,)
        Losses in nats, and logarithms of their masses; finite, in any order, taken as exact.
    infinite : float
        In [0, 1].
    """

    losses: FloatArray
    log_masses: FloatArray
    infinite: float

    def log_mgf(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log sum_k mass_k exp(t loss_k) over the finite losses, shape of t, and a bound on its error."""
        tilted = Tilted(self, t)
        return tilted.value, tilted.error

    def tilted_moments(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return estimated mean and variance of the finite losses tilted by exp(t loss), used only to choose lines."""
        return Tilted(self, t).moments


@dataclass(frozen=True, eq=False)
class Tilted:
    """The finite part of a loss distribution tilted by exp(t loss), whose properties share one set of exponentials.

    Parameters
    ----------
    law : LossLaw
        The distribution of losses.
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
        """Logarithm of sum_k mass_k exp(t loss_k), shape of t."""
        return log_sum(self._logs)

    @property
    def error(self) -> FloatArray:
        """Upper bound on the absolute error of `value`, shape of t."""
        size = np.abs(self.law.log_masses) + 2.0 * np.abs(self.t[..., None] * self.law.losses)
        doubt = (self._weights * size).sum(axis=-1)
        return EPS * (4.0 * doubt + 2.0 * np.abs(self.value) + self.law.losses.size + 16.0)

    @property
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Estimates of the tilted mean and variance, each of the shape of t."""
        losses, weights = self.law.losses, self._weights
        mean = (weights * losses).sum(axis=-1)  # as a matrix product it would start threads
        return mean, ((losses - mean[..., None]) ** 2 * weights).sum(axis=-1)


# ------------------------------------------------------------------ losses
# Hockey-stick sums of independent losses, at any depth, through one tilted line per saddle point.
#
# For independent losses S = S_1 + ... + S_T and an exponent e >= 0 this module encloses
#
#     H(e) = E (1 - exp(e - S))_+ ,                                                                        (H)
#
# where (.)_+ is 1 at S = inf. With U ~ N(s^2/2, s^2) independent of S, E exp(-U) = 1, so by Jensen
#
#   H(e) <= E (1 - exp(e - S - U))_+ = (1/P) sum_j M(z_j) exp(s^2 z_j (z_j + 1)/2 - z_j e) / (z_j (z_j + 1)) - aliases,
#
# z_j = theta + 2 pi i j / P, theta > 0, M(z) = E exp(z S): the trapezoidal rule of a Bromwich integral, exact up to
# aliases that are not negative (Poisson summation). The other way round, d/ds E(1 - e^(t-U))_+ is the standard
# normal density at t/s - s/2 (the "vega" of the same expression in finance), at most exp(s^2/8) s times the density
# of U at t for every smaller s, so that
#
#     H(e) >= E (1 - exp(e - S - U))_+  -  s^2 exp(s^2/8) * (density of S + U at e).
#
# No grid is laid over the losses: atoms stay where they are, and the work does not grow with T.

SMALLEST = 1e-300
"""A divergence below this is enclosed by [0, SMALLEST]."""
_FALL = 46.0
_SMOOTHING = 0.01
_WIDEST = 0.25
_MOST_POINTS = 1 << 16


@dataclass(frozen=True, eq=False)
class LossSum:
    """The sum S of independent privacy losses: ``counts[i]`` copies of a loss with the distribution ``laws[i]``.

    Parameters
    ----------
    laws : tuple of LossLaw
        At least one.
    counts : tuple of int
        Number of copies of each, from 1 to 2^53.
    smoothing : float
        Standard deviation of the normal variable U that (H) adds to S, times the tilt. The relative width of the
        enclosure is about its square for losses with a density; at an atom, about it times the atom's share.
    """

    laws: tuple[LossLaw, ...]
    counts: tuple[int, ...]
    smoothing: float = _SMOOTHING
    _lines: list[_Line] = field(default_factory=list["_Line"], repr=False)
    _grid: list[FloatArray] = field(default_factory=list[FloatArray], repr=False)

    def log_mgf(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log E exp(t S) over finite S, shape of t, and a bound on its absolute error."""
        return self._log_mgf([Tilted(law, t) for law in self.laws])

    def _log_mgf(self, tilted: list[Tilted]) -> tuple[FloatArray, FloatArray]:
        """Return `log_mgf`, given the laws tilted by the same t."""
        value, error = np.zeros_like(tilted[0].t), np.zeros_like(tilted[0].t)
        for one, count in zip(tilted, self.counts, strict=True):
            value, error = value + count * one.value, error + count * (one.error + 2.0 * EPS * np.abs(one.value))
        return value, error + EPS * len(self.laws) * np.abs(value)

    def _moments(self, tilted: list[Tilted]) -> tuple[FloatArray, FloatArray]:
        """Return estimates of the tilted sum's mean and standard deviation, given the laws tilted by the same t."""
        every = [one.moments for one in tilted]
        means = np.sum([n * mean for (mean, _), n in zip(every, self.counts, strict=True)], axis=0)
        return means, np.sqrt(
            np.sum([n * variance for (_, variance), n in zip(every, self.counts, strict=True)], axis=0)
        )

    def spread(self, t: FloatArray) -> FloatArray:
        """Return an estimate of the standard deviation of the sum tilted by exp(t S), shape of t."""
        return self._moments([Tilted(law, t) for law in self.laws])[1]

    def mean(self, t: float) -> float:
        """Return an estimate of the mean of the sum tilted by exp(t S)."""
        means = [n * law.tilted_moments(np.array([t]))[0][0] for law, n in zip(self.laws, self.counts, strict=True)]
        return float(math.fsum(means))

    @property
    def infinite(self) -> Interval:
        """Bounds on the probability that some loss is infinite, 1 - prod (1 - d_i)^T_i."""
        if any(law.infinite >= 1.0 for law in self.laws):
            return Interval(1.0, 1.0)
        logs = (n * math.log1p(-law.infinite) for law, n in zip(self.laws, self.counts, strict=True))
        value = abs(math.expm1(math.fsum(logs)))
        return Interval(value * (1 - 16 * EPS), min(value * (1 + 16 * EPS), 1.0))

    def best_tilt(self, epsilon: float) -> float:
        """Return the tilt near the saddle point of (H) at epsilon."""
        if not any(np.any(law.losses > 0.0) for law in self.laws):
            return 1.0
        t, log_m, _, _ = self._real_grid()
        return float(t[np.argmin(log_m - t * epsilon - np.log(t) - np.log1p(t))])

    def guess(self, log_value: float) -> float:
        """Estimate the epsilon, at least 0, at which (H) is exp(log_value), by the saddle-point approximation."""
        if not any(np.any(law.losses > 0.0) for law in self.laws):
            return 0.0
        t, log_m, spread, at = self._real_grid()
        with np.errstate(divide="ignore"):
            width = np.log(np.sqrt(2.0 * math.pi) * np.maximum(spread, 1e-3 / t) + 1.0 / (t * (t + 1.0)))
        logs = log_m - t * at - np.log(t) - np.log1p(t) - width
        return max(float(np.interp(-log_value, -logs, at)), 0.0)

    def divergence(self, epsilon: float) -> Interval:
        """Enclose (H) at ``epsilon >= 0`` nats; the upper end exceeds 1 by at most the rounding of the masses."""
        extra = self.infinite
        if not any(np.any(law.losses > 0.0) for law in self.laws):
            return extra
        t, log_m, _, _ = self._real_grid()
        rounding = 8.0 * EPS * (np.abs(log_m) + t * epsilon + 8.0)
        chernoff = float(np.min(log_m + _log_reach(t) - t * epsilon + rounding))
        if chernoff < math.log(SMALLEST):
            return Interval(extra.lower, extra.upper + SMALLEST)
        interval = self._line(epsilon).value(epsilon, t, log_m)
        upper = min(interval.upper, math.exp(min(chernoff, 1.0)) * (1 + 1e-12))
        interval = Interval(min(max(interval.lower, self._complement(epsilon)), interval.upper), interval.upper)
        return Interval(min(interval.lower, upper) + extra.lower, (upper + extra.upper) * (1 + 4 * EPS))

    def _complement(self, epsilon: float) -> float:
        """Return a lower bound on (H) that is sharp near 1.

        By 1 - (1 - e^-u)_+ = min(1, e^-u) <= e^(-t u) for 0 <= t <= 1.
        """
        t = np.concatenate(([0.0], np.geomspace(1e-9, 1.0, 100)))
        log_m, error = self.log_mgf(-t)
        missing = float(np.min(log_m + error + t * epsilon + 4.0 * EPS * t * epsilon))
        return math.exp(float(log_m[0] - error[0])) - math.exp(min(missing, 1.0)) * (1 + 4 * EPS)

    def _real_grid(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Tilts t > 0, log M(t) raised by its error bound, and the tilted sum's spread and mean there."""
        if not self._grid:
            # without any spread, losses themselves set the scale
            largest = max(float(np.max(np.abs(law.losses))) for law in self.laws)
            t = np.geomspace(0.02, 1e5, 400) / max(float(self.spread(np.zeros(1))[0]), 1e-3 * largest)
            tilted = [Tilted(law, t) for law in self.laws]
            value, error = self._log_mgf(tilted)
            mean, spread = self._moments(tilted)
            self._grid.extend((t, value + error, spread, mean))
        return self._grid[0], self._grid[1], self._grid[2], self._grid[3]

    def _line(self, epsilon: float) -> _Line:
        """Return a line whose tilt is near the saddle point for ``epsilon``, from the cache if one is near enough."""
        theta = self.best_tilt(epsilon)
        for line in self._lines:
            if 0.67 < line.theta / theta < 1.5 and abs(line.theta - theta) * line.spread <= 1.0:
                return line
        self._lines.append(_Line.through(self, theta, *self._real_grid()[:3]))
        return self._lines[-1]


def _log_reach(t: FloatArray) -> FloatArray:
    """Return the log of the smallest c with (1 - e^-w)_+ <= c e^(t w) for all w: (t/(1+t))^t / (1+t)."""
    return -t * np.log1p(1.0 / t) - np.log1p(t)


@dataclass(frozen=True, eq=False)
class _Line:
    """The points z_j = theta + i y_j of (H) with M(z_j)/M(theta) at each of them, and a bound on its absolute error."""

    theta: float
    spread: float
    s: float
    period: float
    y: FloatArray
    log_m: float
    power: ComplexArray
    doubt: FloatArray

    @classmethod
    def through(cls, total: LossSum, theta: float, t: FloatArray, log_m: FloatArray, spreads: FloatArray) -> _Line:
        """Return the line at tilt theta with suitable smoothing, period and points; any choice gives valid bounds."""
        spread = max(float(np.interp(theta, t, spreads)), 1e-3 / theta)
        s = min(total.smoothing / theta * min(max(spread * theta, 0.1), 1.0), _WIDEST)
        period = max(12.0 * spread, 30.0 / theta)
        # the typical e of this line is the tilted mean; whatever aliases are left are charged to the lower end
        smooth = log_m + 0.5 * s * s * t * (t + 1.0) - t * max(total.mean(theta), 0.0)
        size = float(np.interp(theta, t, smooth)) - math.log1p(theta) - math.log1p(theta * spread)
        while period < 1e3 * max(spread, 1.0 / theta):
            if _alias(theta, period, t, smooth) <= size + math.log(1e-7):
                break
            period *= 1.5
        points = math.ceil(math.sqrt(2.0 * _FALL) / s * period / (2.0 * math.pi)) + 1
        if points > _MOST_POINTS:
            s, points = s * points / (_MOST_POINTS - 1), _MOST_POINTS
        step = 2.0 * math.pi / period
        points = needed_points(total, theta, step, points, s)
        y = np.asarray(step * np.arange(points), dtype=np.float64)
        return cls(theta, spread, s, period, y, *_powers(total, theta, y))

    def value(self, epsilon: float, t: FloatArray, log_m: FloatArray) -> Interval:
        """Enclose the part of (H) at ``epsilon`` that comes from finite losses."""
        y, s, theta = self.y, self.s, self.theta
        scale = self.log_m + 0.5 * s * s * theta * (theta + 1.0) - theta * epsilon
        turn = y * (s * s * (theta + 0.5) - epsilon)
        weight = np.full(y.size, 2.0 / self.period)
        weight[0] /= 2.0
        weight *= np.exp(-0.5 * (s * y) ** 2)
        terms = weight * self.power * np.exp(1j * turn)
        unsure = weight * (self.doubt + EPS * np.abs(self.power) * (8.0 + 4.0 * y * (epsilon + s * s * (theta + 0.5))))
        z = theta + 1j * y
        kernel = 1.0 / (z * (z + 1.0))
        value = float(np.sum((terms * kernel).real))
        # beyond the last point |M(theta + iy)/M(theta)| exp(-s^2 y^2/2) is below e^-FALL
        cut = float(y[-1])
        missing = 1.01 * math.exp(-_FALL) * (1.0 / (math.pi * cut) + 2.0 / (self.period * cut**2))
        size = np.abs(kernel)
        slack = float(np.sum(unsure * size)) + missing + 1e-14 * float(np.sum(np.abs(terms) * size))
        density = float(np.sum(terms.real + unsure + 1e-14 * np.abs(terms))) + 6.0 * math.exp(-_FALL) / s
        rounding = 8.0 * EPS * (abs(scale) + theta * epsilon + 8.0)
        upper = (value + slack) * math.exp(min(scale + rounding, 700.0)) + SMALLEST
        smooth = log_m + 0.5 * s * s * t * (t + 1.0) - t * epsilon
        alias = math.exp(min(_alias(theta, self.period, t, smooth), 700.0)) * (1 + 1e-9)
        bias = s * s * math.exp(min(s * s / 8.0, 700.0)) * max(density, 0.0)
        lower = (value - slack - bias) * math.exp(min(scale - rounding, 700.0)) - alias
        upper = max(upper, 0.0)
        return Interval(min(max(lower, 0.0), upper), upper)


def needed_points(total: LossSum, theta: float, step: float, points: int, s: float) -> int:
    """Return a number of points y_j = j step beyond which |M(theta + iy)/M(theta)| e^(-s^2 y^2/2) is below e^-FALL.

    |chi(y)| of one loss changes by at most E|l - E l| per unit of y, E being tilted. So its value in the middle of a
    cell bounds it in the whole cell; cells are as wide as the fall of |chi| around them allows.

    Parameters
    ----------
    total : LossSum
        The sum, with mgf M.
    theta, step, s : float
        Tilt, distance of the points and standard deviation of U, positive.
    points : int
        Number of available points, returned if no smaller number is proven to suffice.
    """
    laws, slope, moving, variance = [], 0.0, 0.0, 0.0
    for law, count in zip(total.laws, total.counts, strict=True):
        exponent = law.log_masses + theta * law.losses
        weight = np.exp(exponent - log_sum(exponent))
        apart = np.abs(law.losses - float(weight @ law.losses))
        doubt = EPS * float(weight @ (np.abs(law.log_masses) + (2.0 * theta + step * points) * np.abs(law.losses)))
        if not doubt * 16.0 + EPS * 16.0 * law.losses.size < 1e-10:
            return points
        laws.append((law.losses, weight, float(weight @ apart), count))
        slope, moving = slope + count * laws[-1][2], moving + count * float(1.0 - weight.max())
        variance += count * float(weight @ apart**2)
    end = step * points
    while end > step and 0.5 * variance * end**2 > _FALL:  # closer to 0 the sum has not fallen yet
        start = 0.5 * end
        wanted = 2.0 * slope * (end - start) / min(moving, 0.25 * variance * start**2)
        if not wanted < 0.25 * points:
            break
        cells = math.ceil(wanted)
        width = (end - start) / cells
        fall, at = np.full(cells, 0.5 * (s * start) ** 2), np.asarray(width * np.arange(cells), dtype=np.float64)
        for losses, weight, drift, count in laws:
            chi = np.abs(characteristic(losses, weight, at, start + 0.5 * width))
            # 1e-9 is far above all rounding
            fall -= count * np.log(np.minimum(chi + 0.5 * width * drift + 1e-9, 1.0))
        standing = np.flatnonzero(fall < _FALL * (1 + 1e-9))
        if standing.size:
            end = start + width * float(standing[-1] + 1)
            break
        end = start
    return min(points, math.ceil(end / step) + 2)


def _powers(total: LossSum, theta: float, y: FloatArray) -> tuple[float, ComplexArray, FloatArray]:
    """Return log M(theta), M(theta + iy)/M(theta), and a bound on the absolute error of the latter.

    Per law the normalised sum chi(y) = sum_k w_k exp(i y l_k), sum w = 1, is one matrix product over giant and
    baby steps of y. Its error: (atoms + 8) 2 sqrt(2) EPS for the product, 4 EPS y E|l| for the phases, and the
    weights' own. A power n costs at most (|chi| + err)^n - |chi|^n.
    """
    log_m, angle = 0.0, np.zeros_like(y)
    low, high, steps = np.zeros_like(y), np.zeros_like(y), 0.0
    for law, count in zip(total.laws, total.counts, strict=True):
        shift = float(law.log_mgf(np.array([theta]))[0][0])
        exponent = law.log_masses + theta * law.losses - shift
        weight = np.exp(exponent)
        own = EPS * float(weight @ (4.0 * (np.abs(law.log_masses) + 2.0 * np.abs(theta * law.losses) + abs(shift) + 2)))
        chi = characteristic(law.losses, weight, y)
        error = own + EPS * ((law.losses.size + 8.0) * 3.0 + 4.0 * y * float(weight @ np.abs(law.losses)))
        with np.errstate(divide="ignore"):
            low += count * np.log(np.abs(chi))
        high += count * np.log(np.abs(chi) + error)
        angle += count * np.angle(chi)
        log_m += count * shift
        steps += count * (abs(shift) + 8.0)
    power = np.exp(low) * np.exp(1j * angle)
    top = np.exp(np.minimum(high, 700.0))
    return log_m, power, top - np.exp(low) + top * (4.0 * EPS * (steps + np.abs(high)))


def _alias(theta: float, period: float, t: FloatArray, log_m: FloatArray) -> float:
    """Return the log of an upper bound on the aliases, sum over k != 0 of E (1 - e^(e - S - U - k P))_+ e^(-theta k P).

    ``log_m`` is log M(t) of S + U, less t e; (1 - e^-w)_+ <= c(t) e^(t w) for every t > 0.
    """
    bounds: list[float] = []
    for side in (t < theta * (1 - 1e-9), t > theta * (1 + 1e-9)):
        gap = np.abs(t[side] - theta) * period
        rounding = 8.0 * EPS * (np.abs(log_m[side]) + gap + 8.0)
        logs = log_m[side] + _log_reach(t[side]) - gap - np.log(-np.expm1(-gap)) + rounding
        bounds.append(float(np.min(logs, initial=700.0)))
    return float(np.logaddexp(bounds[0], bounds[1]))


# ------------------------------------------------------------------ weighted pair
# A finite pair of laws given atom by atom: its hockey-stick divergence, the inverse, and its law of losses.
#
# P has mass w_t a_t and Q mass w_t b_t at atom t. Whoever computes the weights w_t may err by the same factor in both;
# the ratios a_t, b_t are good to a few ulps. So with x = e^eps
#
#     F(eps) = sum_t w_t (a_t - x b_t)_+                                                                    (F)
#
# keeps its relative accuracy as long as a_t - x b_t does, whatever a weight's own error is: each difference is moved
# up, and down, by its rounding error ulps EPS (a_t + x b_t), and the sum by the weights' relative doubt. Sums are
# numpy's pairwise ones, good to (16 + log2 atoms) EPS; 256 EPS is charged.

CELLS = 2000
"""Number of cells into which the losses of a large pair are gathered before they are added to others."""
_REACH = 14.0
"""Number of standard deviations of the loss within which all cells have the same width."""
_GROWTH = 1.05
"""Factor by which each cell farther out is wider than the one before it."""
_SUM_ULPS = 256.0
_PADS = (1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6)


@dataclass(frozen=True, eq=False)
class WeightedPair:
    """A pair of distributions (P, Q) on finitely many atoms: P = weights * first and Q = weights * second.

    Parameters
    ----------
    weights : ndarray, shape (atoms,)
        Positive, each with a relative error of at most `doubt`, the same error for P and Q.
    first, second : ndarray, shape (atoms,)
        Not negative, each with a relative error of at most `ulps` EPS.
    doubt : float
        Relative error of a weight, far below 1.
    ulps : float
        Relative error of a ratio in units of EPS.
    lost : float
        Upper bound on P's mass, and on Q's, of the outcomes that no atom represents.
    """

    weights: FloatArray
    first: FloatArray
    second: FloatArray
    doubt: float
    ulps: float
    lost: float

    def divergence(self, epsilon: float) -> Interval:
        """Enclose (F) at one epsilon from 0 to 709 nats.

        exp costs 1 ulp, the product and the difference one each.
        """
        cost = math.exp(epsilon) * self.second
        gap, room = self.first - cost, (self.ulps + 4.0) * EPS * (self.first + cost)
        upper = float((self.weights * np.maximum(gap + room, 0.0)).sum())
        lower = float((self.weights * np.maximum(gap - room, 0.0)).sum())
        slack = self.doubt + _SUM_ULPS * EPS
        return Interval(lower * (1.0 - slack), upper * (1.0 + slack) + self.lost)

    def epsilon(self, delta: float) -> Interval:
        """Enclose the smallest epsilon (nats) at which (F) is at most delta.

        An end without a finite bound is 0 or infinite. (F) is convex and piecewise linear in x = e^epsilon, so Newton's
        steps from the left find its root. (F) is then enclosed on both sides of the root, at growing distances, until
        it is certainly above delta on one side and below on the other.
        """
        if self.divergence(0.0).upper <= delta:
            return Interval(0.0, 0.0)
        root = self._root(delta)
        lower, upper = 0.0, math.inf
        for pad in _PADS:
            if math.isinf(upper) and root < 700.0 and self.divergence(root * (1.0 + pad)).upper <= delta:
                upper = root * (1.0 + pad)
            if lower == 0.0 and self.divergence(min(root, 700.0) * (1.0 - pad)).lower > delta:
                lower = min(root, 700.0) * (1.0 - pad)
            if lower > 0.0 and math.isfinite(upper):
                break
        return Interval(lower, upper)

    def _root(self, delta: float) -> float:
        """Estimate the epsilon at which (F) equals delta; inf if it lies above 709. Nothing is certified here."""
        goal, x = max(delta - self.lost, 0.5 * delta), 1.0
        p, q = self.weights * self.first, self.weights * self.second
        for _ in range(200):
            above = self.first > x * self.second
            mass, slope = float(p[above].sum()), float(q[above].sum())
            if not slope > 0.0:
                return math.inf
            following = (mass - goal) / slope
            if not following > x * (1.0 + 4.0 * EPS):
                break
            x = following
        return math.log(x) if x < 1e300 else math.inf

    @cached_property
    def dominating(self) -> LossLaw:
        """A law of losses whose divergence is nowhere below (F), for eps >= 0 and after adding any other losses.

        An atom (p, q) is replaced by two atoms at the ends of its cell with the same sums of p and of q: that pair
        dominates it. E (1 - e^(eps - S))_+ rises when mass is added or moved to larger losses: so masses are rounded
        up, and to the right.
        """
        p, q, loss, certain = self._losses()
        infinite = self.lost + certain * (1.0 + self.doubt + _SUM_ULPS * EPS)
        room = (2.0 * self.ulps + 16.0) * EPS * (1.0 + np.abs(loss))
        scale = math.log1p(self.doubt + _SUM_ULPS * EPS)
        if loss.size <= CELLS:
            return LossLaw(loss + room, _logs(p, scale), min(infinite, 1.0))
        edges = _edges(p, loss)
        mass, counter, most = _gathered(edges, loss, p, q)
        left, width = edges[:-1], np.diff(edges)
        # mass that goes to the right end: (p - q e^left)/(1 - e^-width), exactly linear in (p, q)
        shrink = -np.expm1(-width)
        off = (2.0 * most + 4.0 * self.ulps + 32.0) * EPS * (1.0 + float(np.abs(edges).max()))
        right = np.clip((mass - counter * np.exp(left)) / shrink + mass * off / shrink, 0.0, mass)
        total = np.zeros(edges.size)
        total[:-1] += mass - right
        total[1:] += right
        kept = total > 0.0
        return LossLaw(edges[kept], _logs(total[kept], scale + most * EPS), min(infinite, 1.0))

    @cached_property
    def dominated(self) -> LossLaw:
        """The distribution of a loss whose divergence is at most (F) at every eps >= 0, with other losses added or not.

        The atoms of a cell become one atom, and masses are rounded down.
        """
        p, q, loss, certain = self._losses()
        infinite, most = certain * (1.0 - self.doubt - _SUM_ULPS * EPS), 1.0
        if loss.size > CELLS:
            p, q, most = _gathered(_edges(p, loss), loss, p, q)
            p, q = p[q > 0.0], q[q > 0.0]
            loss = np.log(p / q)
        off = (2.0 * most + 4.0 * self.ulps + 32.0) * EPS
        scale = math.log1p(-self.doubt - (_SUM_ULPS + most) * EPS)
        return LossLaw(loss - off * (1.0 + np.abs(loss)), _logs(p, scale, -1.0), max(infinite, 0.0))

    def _losses(self) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """Return masses under P and Q, and losses, of atoms where both are positive; and P's mass where Q is 0."""
        p, q = self.weights * self.first, self.weights * self.second
        both = (p > 0.0) & (q > 0.0)
        loss = np.log(self.first[both] / self.second[both])
        return p[both], q[both], loss, float(p[q == 0.0].sum())


def _logs(masses: FloatArray, scale: float, sign: float = 1.0) -> FloatArray:
    """Return log(masses e^scale) element-wise, rounded up (sign 1) or down (sign -1)."""
    with np.errstate(divide="ignore"):
        logs = np.log(masses) + scale
    return logs + sign * 8.0 * EPS * (np.where(np.isfinite(logs), np.abs(logs), 0.0) + 1.0)


def _edges(masses: FloatArray, loss: FloatArray) -> FloatArray:
    """Return edges of cells that cover all losses: equal widths around the mean, growing widths farther out."""
    share = masses / masses.sum()
    mean = float(share @ loss)
    deviation = math.sqrt(float(share @ (loss - mean) ** 2))
    low, high = float(loss.min()), float(loss.max())
    start, end = max(low, mean - _REACH * deviation), min(high, mean + _REACH * deviation)
    room = 1e-9 * (high - low) + 1e-300
    core = np.linspace(start - room, end + room, CELLS + 1)
    step = float(core[1] - core[0])
    beyond = [_widening(core[0] - low, step), _widening(high - core[-1], step)]
    return np.concatenate((core[0] - beyond[0][::-1], core, core[-1] + beyond[1]))


def _widening(reach: float, step: float) -> FloatArray:
    """Return distances of edges beyond the core, up to at least ``reach``; empty if the core reaches that far."""
    if not reach > -0.5 * step:
        return np.zeros(0)
    count = math.ceil(math.log1p(max(reach + step, step) / step * (_GROWTH - 1.0)) / math.log(_GROWTH)) + 1
    return np.asarray(step * np.expm1(math.log(_GROWTH) * np.arange(1, count + 1)) / (_GROWTH - 1.0), dtype=np.float64)


def _gathered(
    edges: FloatArray, loss: FloatArray, p: FloatArray, q: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Return the sums of p and q over each cell, and the largest number of atoms in one cell.

    That number bounds the rounding error of the sums in units of EPS.
    """
    cells = edges.size - 1
    at = np.clip(np.searchsorted(edges, loss, side="right") - 1, 0, cells - 1)
    most = float(np.bincount(at, minlength=cells).max())
    sums = [np.bincount(at, part, minlength=cells).astype(np.float64) for part in (p, q)]
    return sums[0], sums[1], most


# ------------------------------------------------------------------ product pair
# Two independent finite pairs together: the hockey-stick divergence of their product, without a grid.
#
# With atoms (p_i, q_i) of the first pair and (p_j, q_j) of the second, x = e^eps and l = log(p/q),
#
#     F(eps) = sum_i sum_j (p_i p_j - x q_i q_j)_+ = sum_i [ p_i P(eps - l_i) - x q_i Q(eps - l_i) ],             (FF)
#
# where P(y), Q(y) sum the second pair's masses over l_j > y: sums from the end of the sorted losses.

_LEAST = 1e-290


@dataclass(frozen=True, eq=False)
class ProductPair:
    """The product of two independent pairs of distributions.

    Parameters
    ----------
    long, short : WeightedPair
        The two factors in any order; each evaluation looks up every atom of `long` among those of `short`.
    """

    long: WeightedPair
    short: WeightedPair

    def divergence(self, epsilon: float) -> Interval:
        """Enclose (FF) at one epsilon from 0 to 709 nats.

        Lower bound: every event's P - x Q is at most F, so any set of atoms may be summed. Upper bound: all atoms whose
        loss may be large enough are included; one that should be excluded adds at most its mass times the error of its
        loss. The weights' errors are factors of p_i p_j - x q_i q_j, hence of the whole; the cumulative sums err by as
        many EPS as they have terms.
        """
        losses, tail_p, tail_q = self._tails
        p, q, loss = self._long
        doubt = 2.0 * (self.long.ulps + self.short.ulps) + 64.0
        near = doubt * EPS * (2.0 + epsilon + self._largest)
        with np.errstate(invalid="ignore"):
            at = np.searchsorted(losses, epsilon - loss - near, side="right")
        mass, counter = float((p * tail_p[at]).sum()), math.exp(epsilon) * float((q * tail_q[at]).sum())
        room = (losses.size + 512.0 + doubt) * EPS * (mass + counter) + near * mass
        slack = (1.0 + self.long.doubt) * (1.0 + self.short.doubt) * (1.0 + 16.0 * EPS)
        lost = self.long.lost + self.short.lost
        upper = max(mass - counter + room, 0.0) * slack + lost
        return Interval(min(max(mass - counter - room, 0.0) / slack, upper), upper)

    @cached_property
    def _long(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return _masses(self.long)

    @cached_property
    def _tails(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        p, q, loss = _masses(self.short)
        order = np.argsort(loss, kind="stable")
        ends = [np.append(np.cumsum(part[order][::-1])[::-1], 0.0) for part in (p, q)]
        return loss[order], ends[0], ends[1]

    @cached_property
    def _largest(self) -> float:
        """Twice the largest absolute value of a finite loss of either factor."""
        largest = [np.abs(loss[np.isfinite(loss)]).max(initial=0.0) for loss in (self._long[2], self._tails[0])]
        return 2.0 * float(max(largest))


def multiplied(one: WeightedPair, two: WeightedPair) -> WeightedPair:
    """Return the product of two pairs, atom by atom; atoms of a weight below 1e-290 are added to ``lost`` instead."""
    weights, first, second = (
        np.outer(left, right).ravel()
        for left, right in ((one.weights, two.weights), (one.first, two.first), (one.second, two.second))
    )
    kept = weights >= _LEAST
    largest = max(float(one.first.max()) * float(two.first.max()), float(one.second.max()) * float(two.second.max()))
    doubt = (one.doubt + two.doubt) * (1.0 + one.doubt) + 2.0 * EPS
    lost = one.lost + two.lost + 2.0 * _LEAST * largest * float((~kept).sum())
    return WeightedPair(weights[kept], first[kept], second[kept], doubt, one.ulps + two.ulps + 2.0, lost)


def _masses(pair: WeightedPair) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return masses under P and Q, and losses, of the atoms with P positive; the loss is inf where Q is 0."""
    some = pair.first > 0.0
    first, second, weights = pair.first[some], pair.second[some], pair.weights[some]
    with np.errstate(divide="ignore"):
        loss = np.log(first) - np.log(second)
    return weights * first, weights * second, loss
