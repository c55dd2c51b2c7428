"""Sums of independent discrete variables, through their moment generating function on a tilted line.

Everything here evaluates a Bromwich integral by the trapezoidal rule. By Poisson summation the rule returns the
wanted value plus *non-negative* aliases, so it errs upwards by itself; aliases, the truncated part of the line
and every rounding error are bounded and counted in the returned enclosure.

    P(C <= x)  + aliases = (1/P) sum_j exp(z_j x) M(-z_j) / (1 - exp(-z_j)),   z_j = theta + 2 pi i j / P       (L)
    E (S+U)_+  + aliases = (1/P) sum_j M(z_j) exp(s^2 z_j^2 / 2) / z_j^2                                        (B)

In (B), U ~ N(0, s^2) is independent of S: by Jensen E(S)_+ <= E(S+U)_+, and since
E(x+U)_+ - x_+ <= s^2 * (density of U at -x), also E(S)_+ >= E(S+U)_+ - s^2 * (density of S+U at 0).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import NotConverged
from shuffledp.numerics.floats import EPS, expm1_minus, log1p_minus_small
from shuffledp.numerics.interval import Enclosure, FloatArray, Interval

ComplexArray = NDArray[np.complex128]
_MAX_POINTS = 1 << 17
_FALL = 46.0


@dataclass(frozen=True, eq=False)
class IndependentSum:
    """S = sum of independent variables, ``counts[g]`` copies of the law with atoms ``values[g]`` and a rest at 0.

    Parameters
    ----------
    counts : ndarray, shape (groups,)
    values, probabilities : ndarray, shape (groups, atoms)
        Each good to ``doubt`` EPS relative; the probabilities of a group sum to at most 1, the rest, which they may
        cancel to nearly nothing, to ``doubt`` EPS absolute.
    means : ndarray, shape (groups,)
        Mean of one copy, good to a few EPS relative (given, because summing atoms could cancel).
    doubt : float
        Relative error of values and probabilities, in units of EPS, at least 4.
    """

    counts: FloatArray
    values: FloatArray
    probabilities: FloatArray
    means: FloatArray
    doubt: float = 4.0

    @property
    def mean(self) -> float:
        """E S."""
        return math.fsum((self.counts * self.means).tolist())

    def log_mgf_centered(self, z: ComplexArray) -> tuple[ComplexArray, FloatArray]:
        """Return log E exp(z (S - E S)), shape of z, and a bound on its absolute error.

        Written as sum_g n_g [ (log(1+w) - w) + sum_j q_j (exp(z l_j) - 1 - z l_j) ], w = E exp(z L) - 1, so that
        nothing cancels when |z| is small and n large.
        """
        z = np.atleast_1d(z)
        flat = z.ravel()
        total = np.zeros(flat.size, dtype=np.complex128)
        error = np.zeros(flat.size)
        step = max(1, 2_000_000 // max(1, self.values.size))
        for start in range(0, flat.size, step):
            part = slice(start, start + step)
            total[part], error[part] = self._log_mgf_block(flat[part])
        return total.reshape(z.shape), error.reshape(z.shape)

    def _log_mgf_block(self, z: ComplexArray) -> tuple[ComplexArray, FloatArray]:
        arg = z[:, None, None] * self.values[None]
        size = np.abs(arg)
        grown = np.exp(arg)
        terms = self.probabilities * expm1_minus(arg, grown)
        second = terms.sum(axis=2)
        shift = z[:, None] * self.means
        w = second + shift
        # away from 1 the mgf is summed as it stands, so that a tiny value keeps its digits
        parts = self.probabilities * grown
        rest = np.maximum(1.0 - self.probabilities.sum(axis=1), 0.0)
        mgf = rest + parts.sum(axis=2)
        off = self.doubt
        doubt_mgf = (np.abs(parts) * (4.0 + off + 0.5 * off * size)).sum(axis=2) + off
        mgf = np.where(mgf == 0.0, EPS * doubt_mgf, mgf)  # a zero has no logarithm; its error has
        near = np.abs(w) < 0.3
        log_rest = np.where(near, log1p_minus_small(np.where(near, w, 0.0)), np.log(np.where(near, 1.0, mgf)) - w)
        total = (log_rest + second) @ self.counts.astype(np.complex128)
        # relative where the series is used; absolute beyond, where exp(z) - 1 - z has zeros
        far = (np.abs(parts) + self.probabilities * (1.0 + size)) * (4.0 + off + 0.5 * off * size)
        doubt_second = np.where(size < 0.25, np.abs(terms) * (30.0 + 3.0 * off), far).sum(axis=2)
        doubt_log = np.where(near, 2.0 * (doubt_second + 4.0 * np.abs(shift)) * np.abs(w), doubt_mgf / np.abs(mgf))
        error = EPS * (34.0 * np.abs(log_rest) + 4.0 * np.abs(w) + doubt_log + doubt_second)
        return total, 2.0 * (error @ self.counts)

    def tilted_variance(self, theta: FloatArray) -> FloatArray:
        """Variance of S under the law tilted by exp(theta S); an estimate, used only to choose grids."""
        if not np.abs(self.values).max(initial=0.0) < 1e150:
            return np.full(theta.size, np.inf)
        weights = self.probabilities * np.exp(np.minimum(theta[:, None, None] * self.values, 700.0))
        rest = np.maximum(1.0 - self.probabilities.sum(axis=1), 0.0)
        norm = np.maximum(weights.sum(axis=2) + rest, 1e-300)  # all weights may underflow
        first = (weights * self.values).sum(axis=2) / norm
        second = (weights * self.values**2).sum(axis=2) / norm
        return np.maximum(second - first**2, 0.0) @ self.counts


def positive_part(total: IndependentSum, smoothing: float = 0.02) -> Interval:
    """Enclose E (S)_+ by (B).

    Parameters
    ----------
    total : IndependentSum
        The sum S.
    smoothing : float
        Standard deviation of U times the tilt; the enclosure's relative width is about its square.

    Returns
    -------
    Interval
        The upper end is inf if the moment generating function overflows everywhere.
    """
    found = positive_parts(total, np.ones(1), smoothing)
    return Interval(float(found.lower[0]), float(found.upper[0]))


def positive_parts(total: IndependentSum, copies: FloatArray, smoothing: float = 0.02) -> Enclosure:
    """Enclose E (S_1 + ... + S_m)_+ for independent copies of S, one entry per m in ``copies``.

    Parameters
    ----------
    total : IndependentSum
        One copy of S.
    copies : ndarray, shape (entries,)
        Whole numbers m >= 1. Entries within 20 % of each other share one tilted line, where the mgf of S is
        computed once.
    smoothing : float
        As in `positive_part`.
    """
    lower, upper = np.empty_like(copies), np.empty_like(copies)
    chunk = np.floor(np.log(copies) / math.log(1.2))
    for label in np.unique(chunk):
        mine = chunk == label
        try:
            line = _Line.through(total, float(np.median(copies[mine])), smoothing)
            lower[mine], upper[mine] = line.values(copies[mine]) if line else _crude(total, copies[mine])
        except NotConverged:  # the mgf overflows: say only what Jensen says
            lower[mine], upper[mine] = np.maximum(copies[mine] * total.mean, 0.0) * (1 - 16 * EPS), np.inf
    return Enclosure(lower, upper)


def _crude(total: IndependentSum, copies: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Jensen from below and Chernoff from above, where the transform would not fit into memory or range."""
    mean = total.mean
    sigma = math.sqrt(float(copies.max()) * float(total.tilted_variance(np.zeros(1))[0]))
    grid, grid_log = _real_grid(total, sigma, mean)
    logs = np.min(copies[:, None] * grid_log - 1.0 - np.log(grid), axis=1, initial=709.0)
    return np.maximum(copies * mean, 0.0) * (1 - 16 * EPS), np.exp(logs) * (1 + 1e-12) + 1e-300


@dataclass(frozen=True, eq=False)
class _Line:
    """The points z_j of (B), with the log-mgf of one copy of S on them."""

    mean: float
    theta: float
    s: float
    period: float
    z: ComplexArray
    centered: ComplexArray
    error: FloatArray
    grid: FloatArray
    grid_log: FloatArray

    @classmethod
    def through(cls, total: IndependentSum, m: float, smoothing: float) -> _Line | None:
        """Choose tilt, smoothing, period and length for m copies; every choice is valid for every m.

        None if the value is below 1e-300, or the line would be too long.
        """
        mean = total.mean
        sigma = math.sqrt(m * float(total.tilted_variance(np.zeros(1))[0]))
        if not 0.0 < sigma < math.inf:
            raise NotConverged("a sum without finite positive variance has no transform")
        grid, grid_log = _real_grid(total, sigma, mean)
        if np.min(m * grid_log - np.log(grid)) < -690.0:
            return None
        best = int(np.argmin(m * grid_log - 2.0 * np.log(grid)))
        theta = float(grid[best])
        spread = math.sqrt(max(m * float(total.tilted_variance(np.array([theta]))[0]), sigma**2 * 1e-6))
        s = smoothing / theta * min(max(spread * theta, 0.1), 1.0)
        size = m * float(grid_log[best]) - 2.0 * math.log(theta * spread)
        smooth_log = m * grid_log + 0.5 * (s * grid) ** 2
        period = max(12.0 * spread, 30.0 / theta)
        while _alias(theta, period, grid, smooth_log) > 1e-7 * math.exp(min(max(size, -700.0), 700.0)):
            if period > 1e4 * max(spread, 1.0 / theta):
                break  # whatever is left is charged to the lower end
            period *= 1.5
        points = math.ceil(math.sqrt(2.0 * _FALL) / s * period / (2.0 * math.pi)) + 1
        if points > _MAX_POINTS:
            return None
        z = bromwich_line(theta, period, points)
        return cls(mean, theta, s, period, z, *total.log_mgf_centered(z), grid, grid_log)

    def values(self, copies: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends of E (S_1 + ... + S_m)_+ for each m."""
        step = max(1, 400_000 // self.z.size)
        found = [self._values(copies[start : start + step]) for start in range(0, copies.size, step)]
        return np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found])

    def _values(self, copies: FloatArray) -> tuple[FloatArray, FloatArray]:
        s = self.s
        # |M| only falls along the line: where even the fewest copies bring it below e^-FALL, it is charged as that
        fall = float(copies.min()) * self.centered.real + 0.5 * s * s * (self.z**2).real
        keep = fall - fall[0] > -_FALL
        m, z, centered = copies[:, None], self.z[keep], self.centered[keep]
        whole = np.full(self.z.size, 2.0 / self.period)
        whole[0] /= 2.0
        weight, left = whole[keep], math.exp(-_FALL + 1.0)
        mean = m * self.mean
        log_terms = m * centered + z * mean + 0.5 * (s * z) ** 2
        error = m * self.error[keep] + 8.0 * EPS * (np.abs(z * mean) + np.abs(log_terms) + 1.0)
        scale = log_terms[:, :1].real
        if not (scale < 700.0).all():
            raise NotConverged("the moment generating function overflows; the sum could not be certified")
        terms = np.exp(log_terms - scale)
        doubt = weight * np.abs(terms) * np.expm1(np.minimum(error, 50.0))
        kernel = 1.0 / z**2
        # beyond the last point |exp(s^2 z^2/2)| is e^-FALL of its value at the first
        cut = abs(self.z[-1])
        missing = math.exp(-_FALL) * (1.0 / (math.pi * cut) + 2.0 / (self.period * cut**2))
        missing += left * float(whole[~keep] @ np.abs(self.z[~keep]) ** -2.0)
        value = np.real(terms * kernel) @ weight
        slack = doubt @ np.abs(kernel) + missing + np.abs(value) * 1e-13
        density = np.real(terms) @ weight + doubt.sum(axis=1) + 2.0 * math.exp(-_FALL) / s
        density += left * float(whole[~keep].sum())
        size = np.where(scale[:, 0] > -740.0, np.exp(scale[:, 0]), 0.0)
        upper = (value + slack) * size * (1 + 1e-13) + 1e-300
        logs = m * self.grid_log + 0.5 * (s * self.grid) ** 2
        alias = _alias(self.theta, self.period, self.grid, logs)
        lower = (value - slack - s * s * np.maximum(density, 0.0)) * size * (1 - 1e-13) - alias
        lower = np.maximum(np.maximum(lower, mean[:, 0] * (1 - 8 * EPS)), 0.0)  # Jensen: E(S)_+ >= (E S)_+
        return np.minimum(lower, upper), np.maximum(upper, 0.0)


def bromwich_line(theta: float, period: float, points: int) -> ComplexArray:
    """Return z_j = theta + 2 pi i j / period for j = 0, ..., points - 1."""
    return np.asarray(theta + 1j * (2.0 * math.pi / period) * np.arange(points), dtype=np.complex128)


def _real_grid(total: IndependentSum, sigma: float, mean: float) -> tuple[FloatArray, FloatArray]:
    """Tilts theta > 0, and log E exp(theta S) on them raised by its error bound, where it does not overflow."""
    grid = np.geomspace(0.02, 400.0, 170) / sigma
    with np.errstate(over="ignore", invalid="ignore"):
        value, error = total.log_mgf_centered(grid.astype(np.complex128))
        logs = value.real + grid * mean + error + 8 * EPS * np.abs(grid * mean)
    finite = np.isfinite(logs)
    if not finite.any():
        raise NotConverged("the moment generating function overflows; the sum could not be certified")
    return grid[finite], logs[finite]


def _alias(theta: float, period: float, grid: FloatArray, log_m: FloatArray) -> FloatArray:
    """Bound on the aliases E(S + k period)_+ exp(-theta k period), k != 0, by (y)_+ <= exp(t y)/(e t), any t > 0.

    Shape of ``log_m`` without its last axis, which runs over the grid.
    """
    total = np.zeros(log_m.shape[:-1])
    for side in (grid < theta * (1 - 1e-9), grid > theta * (1 + 1e-9)):
        gap = np.abs(grid[side] - theta) * period
        with np.errstate(over="ignore", divide="ignore"):
            logs = log_m[..., side] - 1.0 - np.log(grid[side]) - gap - np.log(-np.expm1(-gap))
        total += np.exp(np.minimum(np.min(logs, axis=-1, initial=700.0), 700.0))
    return total
