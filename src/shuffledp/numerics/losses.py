"""Hockey-stick sums of independent losses, at any depth, through one tilted line per saddle point.

For independent losses S = S_1 + ... + S_T and an exponent e >= 0 this module encloses

    H(e) = E (1 - exp(e - S))_+ ,                                                                        (H)

where (.)_+ is 1 at S = inf. With U ~ N(s^2/2, s^2) independent of S, E exp(-U) = 1, so by Jensen

    H(e) <= E (1 - exp(e - S - U))_+ = (1/P) sum_j M(z_j) exp(s^2 z_j (z_j + 1)/2 - z_j e) / (z_j (z_j + 1)) - aliases,

z_j = theta + 2 pi i j / P, theta > 0, M(z) = E exp(z S): the trapezoidal rule of a Bromwich integral, exact up to
aliases that are not negative (Poisson summation). The other way round, d/ds E(1 - e^(t-U))_+ is the standard
normal density at t/s - s/2 (the "vega" of the same expression in finance), at most exp(s^2/8) s times the density
of U at t for every smaller s, so that

    H(e) >= E (1 - exp(e - S - U))_+  -  s^2 exp(s^2/8) * (density of S + U at e).

No grid is laid over the losses: atoms stay where they are, and the work does not grow with T.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shuffledp.numerics.floats import EPS
from shuffledp.numerics.interval import FloatArray, Interval
from shuffledp.numerics.loss_laws import LossLaw, Tilted, log_sum

ComplexArray = NDArray[np.complex128]
SMALLEST = 1e-300
"""A divergence below this is reported as [0, SMALLEST]."""
_FALL = 46.0
_SMOOTHING = 0.01
_WIDEST = 0.25
_MOST_POINTS = 1 << 16
_ONE_THREAD = 1 << 18
"""Multiplications of one real matrix product."""


@dataclass(frozen=True, eq=False)
class LossSum:
    """The sum of ``counts[i]`` independent losses of ``laws[i]``, all independent.

    Parameters
    ----------
    laws : tuple of LossLaw
        At least one.
    counts : tuple of int
        How often each occurs, at least once, at most 2^53.
    smoothing : float
        Standard deviation of U times the tilt: about the square of it is the relative width of the enclosure
        for losses with a density; at an atom, about it times the atom's share.
    """

    laws: tuple[LossLaw, ...]
    counts: tuple[int, ...]
    smoothing: float = _SMOOTHING
    _lines: list[_Line] = field(default_factory=list["_Line"], repr=False)
    _grid: list[FloatArray] = field(default_factory=list[FloatArray], repr=False)

    def log_mgf(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """As `LossLaw.log_mgf`, for the sum."""
        return self._log_mgf([Tilted(law, t) for law in self.laws])

    def _log_mgf(self, tilted: list[Tilted]) -> tuple[FloatArray, FloatArray]:
        """`log_mgf`, from the laws tilted alike."""
        value, error = np.zeros_like(tilted[0].t), np.zeros_like(tilted[0].t)
        for one, count in zip(tilted, self.counts, strict=True):
            value, error = value + count * one.value, error + count * (one.error + 2.0 * EPS * np.abs(one.value))
        return value, error + EPS * len(self.laws) * np.abs(value)

    def _moments(self, tilted: list[Tilted]) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of the sum, from the laws tilted alike; estimates."""
        every = [one.moments for one in tilted]
        means = np.sum([n * mean for (mean, _), n in zip(every, self.counts, strict=True)], axis=0)
        return means, np.sqrt(
            np.sum([n * variance for (_, variance), n in zip(every, self.counts, strict=True)], axis=0)
        )

    def spread(self, t: FloatArray) -> FloatArray:
        """Standard deviation of the tilted sum; an estimate."""
        return self._moments([Tilted(law, t) for law in self.laws])[1]

    def mean(self, t: float) -> float:
        """Mean of the tilted sum; an estimate."""
        means = [n * law.tilted_moments(np.array([t]))[0][0] for law, n in zip(self.laws, self.counts, strict=True)]
        return float(math.fsum(means))

    @property
    def infinite(self) -> Interval:
        """Enclose the chance that some loss is infinite, 1 - prod (1 - d_i)^T_i."""
        if any(law.infinite >= 1.0 for law in self.laws):
            return Interval(1.0, 1.0)
        logs = (n * math.log1p(-law.infinite) for law, n in zip(self.laws, self.counts, strict=True))
        value = abs(math.expm1(math.fsum(logs)))
        return Interval(value * (1 - 16 * EPS), min(value * (1 + 16 * EPS), 1.0))

    def best_tilt(self, epsilon: float) -> float:
        """The tilt near the saddle point of (H) at epsilon."""
        if not any(np.any(law.losses > 0.0) for law in self.laws):
            return 1.0
        t, log_m, _, _ = self._real_grid()
        return float(t[np.argmin(log_m - t * epsilon - np.log(t) - np.log1p(t))])

    def guess(self, log_value: float) -> float:
        """Exponent at which (H) is about exp(log_value), by the saddle-point approximation; at least 0."""
        if not any(np.any(law.losses > 0.0) for law in self.laws):
            return 0.0
        t, log_m, spread, at = self._real_grid()
        with np.errstate(divide="ignore"):
            width = np.log(np.sqrt(2.0 * math.pi) * np.maximum(spread, 1e-3 / t) + 1.0 / (t * (t + 1.0)))
        logs = log_m - t * at - np.log(t) - np.log1p(t) - width
        return max(float(np.interp(-log_value, -logs, at)), 0.0)

    def divergence(self, epsilon: float) -> Interval:
        """Enclose (H) at ``epsilon >= 0``; up to mass rounding the upper end is at most 1."""
        extra = self.infinite
        if not any(np.any(law.losses > 0.0) for law in self.laws):
            return extra
        t, log_m, _, _ = self._real_grid()
        rounding = 8.0 * EPS * (np.abs(log_m) + t * epsilon + 8.0)
        chernoff = float(np.min(log_m + _log_reach(t) - t * epsilon + rounding))
        if chernoff < math.log(SMALLEST):
            return Interval(extra.lower, extra.upper + SMALLEST)
        found = self._line(epsilon).value(epsilon, t, log_m)
        upper = min(found.upper, math.exp(min(chernoff, 1.0)) * (1 + 1e-12))
        found = Interval(min(max(found.lower, self._complement(epsilon)), found.upper), found.upper)
        return Interval(min(found.lower, upper) + extra.lower, (upper + extra.upper) * (1 + 4 * EPS))

    def _complement(self, epsilon: float) -> float:
        """A lower bound that is sharp near 1: 1 - (1 - e^-u)_+ = min(1, e^-u) <= e^(-t u) for 0 <= t <= 1."""
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
        """A line whose tilt is near the saddle point's, on its own scale and on that of the spread."""
        theta = self.best_tilt(epsilon)
        for line in self._lines:
            if 0.67 < line.theta / theta < 1.5 and abs(line.theta - theta) * line.spread <= 1.0:
                return line
        self._lines.append(_Line.through(self, theta, *self._real_grid()[:3]))
        return self._lines[-1]


def _log_reach(t: FloatArray) -> FloatArray:
    """Log of the smallest c with (1 - e^-w)_+ <= c e^(t w) for all w: (t/(1+t))^t / (1+t)."""
    return -t * np.log1p(1.0 / t) - np.log1p(t)


@dataclass(frozen=True, eq=False)
class _Line:
    """The points z_j, with the normalised mgf of the sum on them: M(z_j)/M(theta) and its absolute error."""

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
        """Choose smoothing, period and length; every choice is valid."""
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
        """Enclose (H) without the infinite part."""
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
    """How many points y_j = j step are needed: beyond them |M(theta + iy)/M(theta)| e^(-s^2 y^2/2) is below e^-FALL.

    |chi(y)| of one loss changes by at most E|l - E l| per unit of y, E being tilted. So its value in the middle of a
    cell bounds it in the whole cell; cells are as wide as the fall of |chi| around them allows.

    Parameters
    ----------
    total : LossSum
        The sum, with mgf M.
    theta, step, s : float
        Tilt, distance of the points and standard deviation of U, positive.
    points : int
        How many there are; that many are returned where nothing better can be said.
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
            chi = np.abs(_characteristic(losses, weight, at, start + 0.5 * width))
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
        chi = _characteristic(law.losses, weight, y)
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


def _characteristic(losses: FloatArray, weight: FloatArray, y: FloatArray, first: float = 0.0) -> ComplexArray:
    """Return sum_k weight_k exp(i (first + y_j) loss_k) for y_j = j y_1."""
    width = math.ceil(math.sqrt(y.size))
    step = y[1] if y.size > 1 else 0.0
    baby = np.exp(1j * np.outer(losses, step * np.arange(width)))
    turns = np.outer(first + step * width * np.arange(math.ceil(y.size / width)), losses)
    giant = np.asarray(weight * np.exp(1j * turns), dtype=np.complex128)
    return _product(giant, baby).ravel()[: y.size]


def _product(left: ComplexArray, right: ComplexArray) -> ComplexArray:
    """Matrix product by real products of a few rows: larger ones start threads, which wait longer than they compute."""
    real, imaginary = np.ascontiguousarray(right.real), np.ascontiguousarray(right.imag)
    rows, found = max(1, _ONE_THREAD // right.size), list[ComplexArray]()
    for start in range(0, left.shape[0], rows):
        part = left[start : start + rows]
        a, b = np.ascontiguousarray(part.real), np.ascontiguousarray(part.imag)
        found.append((a @ real - b @ imaginary) + 1j * (a @ imaginary + b @ real))
    return np.concatenate(found)


def _alias(theta: float, period: float, t: FloatArray, log_m: FloatArray) -> float:
    """Log of a bound on the aliases, sum over k != 0 of E (1 - e^(e - S - U - k P))_+ e^(-theta k P).

    ``log_m`` is log M(t) of S + U, less t e; (1 - e^-w)_+ <= c(t) e^(t w) for every t > 0.
    """
    found: list[float] = []
    for side in (t < theta * (1 - 1e-9), t > theta * (1 + 1e-9)):
        gap = np.abs(t[side] - theta) * period
        rounding = 8.0 * EPS * (np.abs(log_m[side]) + gap + 8.0)
        logs = log_m[side] + _log_reach(t[side]) - gap - np.log(-np.expm1(-gap)) + rounding
        found.append(float(np.min(logs, initial=700.0)))
    return float(np.logaddexp(found[0], found[1]))
