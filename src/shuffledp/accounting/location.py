"""Blankets for noise added to a number in [0, 1]: Laplace and Gaussian, own budgets (docs/theorems/blanket.md).

With M(y) = max(|y|, |1-y|), the distance to the farther end of the range, every record's report has density at
least k_s(M(y)), k_s the noise density of scale s. So for every core scale s* and edge m > 1/2

    omega(y) ∝ k_{s*}(M(y)) on M(y) <= m,    gamma_i = inf_{1/2 <= M <= m} k_{s_i}(M)/omega(M)                (O)

is a common blanket of all budgets; the victim's mass where M > m is charged. s* and m are chosen per question,
from budgets alone; each choice is a bound.

The victim's pair (x0, x1) may lie anywhere in the range. Records are cut into intervals; for x between grid
points a < b, with lambda = (x-a)/(b-a),

    R(x) <= (1 + excess) [(1-lambda) R(a) + lambda R(b)],    R(x) >= e^{-drop} [(1-lambda) R(a) + lambda R(b)],

excess and drop of second order in b - a. The right side of (I) is convex in (R(x0), R(x1)) together, grows with
R(x0) and falls with R(x1), so the worst pair is bounded by the worst pair of grid points with both corrections
applied: proved for the whole range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from shuffledp.numerics.floats import EPS
from shuffledp.numerics.interval import FloatArray
from shuffledp.randomizers.base import CellSpread, PairBlanket

_HALVES = (6, 9, 13, 18, 26, 40, 60, 90)
"""Record intervals in one half of the range: few different grids, so that they are shared."""
_FINE, _TAIL = 120, 120
_LEAST_MASS = 1e-290
_DIGITS = 10  # grid points are rounded to so many decimals, so that no two differ by rounding alone
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)


def record_grid(scale: float, epsilon: float) -> FloatArray:
    """Grid points of records on [0, 1], symmetric, spaced quadratically near the ends, where the worst pairs are.

    Fine enough that the corrections, of the order of (width/scale)^2, are small beside the central epsilon
    expected: near the ends a five-hundredth of it, in the middle, where pairs leak little, a sixth.
    """
    ends = (2.4 / (scale**2 * 2e-3 * max(epsilon, 1e-12))) ** 0.25
    middle = 0.5 * math.pi / (scale * math.sqrt(0.6 * max(epsilon, 1e-12)))
    half = next((half for half in _HALVES if 2 * half >= max(ends, middle)), _HALVES[-1])
    quarter = np.sin(np.pi * np.arange(half + 1) / (4 * half)) ** 2
    return np.round(np.concatenate((quarter, 1.0 - quarter[-2::-1])), _DIGITS)


@dataclass(frozen=True)
class Noise:
    """Density k_s(u) of the noise: Laplace exp(-|u|/s)/(2s), or normal of standard deviation s.

    Parameters
    ----------
    kind : {"laplace", "gaussian"}
        The shape.
    scale : float
        The scale s, positive.
    """

    kind: str
    scale: float

    def log_density(self, u: FloatArray) -> FloatArray:
        """Log k_s(u); absolute error 4 EPS (1 + |log k_s|)."""
        v = np.abs(u) / self.scale
        if self.kind == "laplace":
            return -v - math.log(2.0 * self.scale)
        return -0.5 * v * v - math.log(self.scale * math.sqrt(2.0 * math.pi))

    def mass(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Noise mass of [low, high], elementwise, where low and high have one sign; relative error 1e-13."""
        flip = low < 0.0
        near, far = np.where(flip, -high, low) / self.scale, np.where(flip, -low, high) / self.scale
        near = np.maximum(near, 0.0)
        if self.kind == "laplace":
            return 0.5 * np.exp(-near) * -np.expm1(near - far)
        width = far - near
        # a difference of tails loses digits on short intervals; there, Gauss-Legendre is exact to 1e-15
        nodes = near[..., None] + width[..., None] * (0.5 + 0.5 * _NODES)
        short = 0.5 * width * (np.exp(-0.5 * nodes**2) @ _WEIGHTS) / math.sqrt(2.0 * math.pi)
        return np.where((near + 1.0) * width < 0.5, short, ndtr(-near) - ndtr(-far))

    def below(self, y: float) -> float:
        """Noise mass of (-inf, y]."""
        v = y / self.scale
        if self.kind == "gaussian":
            return math.exp(float(log_ndtr(v)))
        return 0.5 * math.exp(v) if v < 0.0 else 1.0 - 0.5 * math.exp(-v)

    def loss(self, x0: float, x1: FloatArray, y: FloatArray) -> FloatArray:
        """Log k(y - x0) - log k(y - x1), without cancellation; monotone in y."""
        s = self.scale
        if self.kind == "gaussian":
            return (x0 - x1) * (2.0 * y - x0 - x1) / (2.0 * s * s)
        return np.sign(x0 - x1) * (np.clip(y, np.minimum(x0, x1), np.maximum(x0, x1)) * 2.0 - x0 - x1) / s


@dataclass(frozen=True)
class Core:
    """The blanket omega of (O).

    Parameters
    ----------
    noise : Noise
        Shape and core scale s*.
    edge : float
        The edge m > 1/2 of its support, a decimal number of at most 10 digits after the point.
    """

    noise: Noise
    edge: float

    @cached_property
    def log_weight(self) -> float:
        """Log of the factor that makes omega a density."""
        half = float(self.noise.mass(np.array([0.5]), np.array([self.edge]))[0])
        return -math.log(2.0 * half)

    def log_gammas(self, scales: FloatArray) -> FloatArray:
        """Log gamma_i for each noise scale: log k_s - log k_{s*} is monotone in M, so an end has the infimum."""
        kind, out = self.noise.kind, np.empty_like(scales)
        ends = np.array([0.5, self.edge])
        core = self.noise.log_density(ends) + self.log_weight
        for index, scale in enumerate(scales):
            out[index] = float(np.min(Noise(kind, float(scale)).log_density(ends) - core))
        return np.minimum(out, 0.0)


def y_cells(core: Core, records: FloatArray) -> FloatArray:
    """Cell ends over the support: at all records, at 1/2, and fine where densities change fast."""
    low, high = 1.0 - core.edge, core.edge
    fixed = np.concatenate(([low, 0.5, high], records))
    fixed = np.unique(fixed[(fixed >= low) & (fixed <= high)])
    inner = np.linspace(max(low, 0.0), min(high, 1.0), _FINE + 1)
    tail = 1.0 + np.linspace(0.0, max(high - 1.0, 0.0), _TAIL + 1)[1:]
    return np.unique(np.round(np.concatenate((fixed, inner, tail, 1.0 - tail)), _DIGITS))


@dataclass(frozen=True, eq=False)
class VictimGrid:
    """A victim's noise seen from every grid record, over the cells of one core.

    Parameters
    ----------
    core : Core
        The blanket.
    victim : Noise
        The victim's noise.
    records : ndarray, shape (records,)
        Ascending grid on [0, 1].
    """

    core: Core
    victim: Noise
    records: FloatArray

    @cached_property
    def ends(self) -> FloatArray:
        """Cell ends, ascending."""
        return y_cells(self.core, self.records)

    @cached_property
    def omega(self) -> FloatArray:
        """omega-mass of each cell."""
        left, right = self.ends[:-1], self.ends[1:]
        upper = left >= 0.5
        near, far = np.where(upper, left, 1.0 - right), np.where(upper, right, 1.0 - left)
        return self.core.noise.mass(near, far) * math.exp(self.core.log_weight)

    @cached_property
    def spacing(self) -> tuple[FloatArray, FloatArray]:
        """Widths of the record intervals to the left and to the right of each record (0 outside the range)."""
        widths = np.diff(self.records)
        return np.concatenate(([0.0], widths)), np.concatenate((widths, [0.0]))

    def pair(self, first: int, second: int, *, exact: bool = False) -> PairBlanket:
        """The pair of grid records against the core, with both corrections unless it is to be ``exact``."""
        row = self.row(first, np.array([second]), exact=exact)
        spread = row.spread
        assert spread is not None
        flat = CellSpread(
            spread.ratio_low[0],
            spread.ratio_high[0],
            spread.loss_low[0],
            spread.loss_high[0],
            spread.left_out_mass[0],
            spread.left_out_loss[0],
        )
        return PairBlanket(0.0, self.omega, row.ratios0[0], row.ratios1[0], row.losses[0], flat)

    def row(self, first: int, seconds: NDArray[np.int64], *, exact: bool = False) -> PairBlanket:
        """Pairs of one grid record with several others: every array but ``masses`` has shape (others, cells).

        Gamma is left at 0: what others contribute is not a matter of the victim.
        """
        x0, x1 = float(self.records[first]), self.records[seconds][:, None]
        left, right = self.ends[:-1], self.ends[1:]
        none = np.zeros((seconds.size, left.size))
        excess, drop = (none[0], none) if exact else (self._excess(first), self._drop(seconds))
        shift = np.log1p(excess) + drop
        mass0, mass1 = self.victim.mass(left - x0, right - x0), self.victim.mass(left - x1, right - x1)
        # where a mass has left double range, the mean over the cell is not known better than its bounds
        known0 = np.minimum(mass0, self.omega) > _LEAST_MASS
        at_left, at_right = self.victim.loss(x0, x1, left), self.victim.loss(x0, x1, right)
        low, high = np.minimum(at_left, at_right), np.maximum(at_left, at_right)
        ratio_low, ratio_high = self._ratios(x0)
        lift = 1.0 + excess
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            losses, ratio = np.clip(np.log(mass0) - np.log(mass1), low, high), mass0 / self.omega
        losses = np.where(known0 & (mass1 > _LEAST_MASS), losses, low if exact else high) + shift
        ratio = np.where(known0, np.clip(ratio, ratio_low, ratio_high), ratio_low if exact else ratio_high)
        ratios0 = np.broadcast_to(ratio * lift, losses.shape)
        spread = CellSpread(
            np.broadcast_to(ratio_low * lift, losses.shape),
            np.broadcast_to(ratio_high * lift, losses.shape),
            low + shift,
            high + shift,
            *self._left_out(first, seconds, exact=exact),
        )
        with np.errstate(over="ignore", invalid="ignore"):
            ratios1 = ratios0 * np.exp(-losses)
        return PairBlanket(0.0, self.omega, ratios0, ratios1, losses, spread)

    def _ratios(self, x0: float) -> tuple[FloatArray, FloatArray]:
        """Bounds of R(x0)/omega on each cell: its logarithm is linear or quadratic in y there."""
        y = self.ends
        core = self.core.noise

        def log_ratio(points: FloatArray) -> FloatArray:
            farther = np.maximum(np.abs(points), np.abs(1.0 - points))
            return self.victim.log_density(points - x0) - core.log_density(farther) - self.core.log_weight

        values = log_ratio(y)
        low, high = np.minimum(values[:-1], values[1:]), np.maximum(values[:-1], values[1:])
        if core.kind == "gaussian" and core.scale != self.victim.scale:
            for far in (0.0, 1.0):  # the farther end; the vertex of the quadratic may lie inside a cell
                a, b = 1.0 / self.victim.scale**2, 1.0 / core.scale**2
                vertex = np.clip((x0 * a - far * b) / (a - b), y[:-1], y[1:])
                inside = log_ratio(vertex)
                low, high = np.minimum(low, inside), np.maximum(high, inside)
        doubt = 1e-13
        with np.errstate(over="ignore"):
            return np.exp(low - doubt), np.exp(high + doubt)

    def _excess(self, index: int) -> FloatArray:
        """Bound of R(x)/chord - 1 on each cell, for x in the record intervals next to the record a.

        Laplace: R is convex in x on both sides of y, so above the chord at most inside the interval, most at x = y,
        where by Jensen chord >= R(y) exp(-2 t (w-t)/(w s)), t the distance of y from one end. Gaussian: -R'' is at
        most R/s^2, and 0 beyond one s; R - chord <= w^2/8 max(-R''), and R <= e^{2 rho} times the smaller end's value.
        """
        left, right = self.ends[:-1], self.ends[1:]
        a, s = self.records[index], self.victim.scale
        before, after = (float(w[index]) for w in self.spacing)
        out = np.zeros(left.size)
        for width, start in ((before, a - before), (after, a)):
            if width == 0.0:
                continue
            if self.victim.kind == "laplace":
                t0, t1 = np.clip(left - start, 0.0, width), np.clip(right - start, 0.0, width)
                top = np.clip(width / 2.0, t0, t1)
                out = np.maximum(out, np.where(t1 > t0, np.expm1(2.0 * top * (width - top) / (width * s)), 0.0))
            else:
                near = np.where((left - a) * (right - a) < 0, 0.0, np.minimum(np.abs(left - a), np.abs(right - a)))
                size = width**2 / (8.0 * s * s) * np.exp(np.minimum(2.0 * self._rho(a, width), 700.0))
                out = np.maximum(out, np.where(near <= s + width, size, 0.0))
        return out * (1 + 64 * EPS)

    def _drop(self, indices: NDArray[np.int64]) -> FloatArray:
        """Bound of log(chord/R(x)) on each cell, for x in the record intervals next to the records c.

        R is log-concave in x, so R(x) >= R(a)^{1-lambda} R(b)^lambda, and the chord is at most e^{rho^2/8} times that
        (Hoeffding's lemma). Gaussian: chord - R <= w^2/8 max R'' as well, R'' = R ((y-x)^2/s^2 - 1)/s^2.
        """
        c, s = self.records[indices][:, None], self.victim.scale
        width = np.maximum(*self.spacing)[indices][:, None]
        rho = self._rho(c, width)
        out = rho**2 / 8.0
        if self.victim.kind == "gaussian":
            left, right = self.ends[:-1], self.ends[1:]
            far = np.maximum(np.abs(left - c), np.abs(right - c))
            bend = np.maximum(((far + width) / s) ** 2 - 1.0, 0.0)
            size = width**2 / (8.0 * s * s) * bend * np.exp(2.0 * np.minimum(rho, 1.0))
            small = (rho < 1.0) & (size < 0.5)
            out = np.where(small, np.minimum(out, -np.log1p(-np.where(small, size, 0.0))), out)
        return out * (1 + 64 * EPS)

    def _rho(self, c: FloatArray, width: FloatArray | float) -> FloatArray:
        """Bound of |log R(x)(y) - log R(c)(y)| for y in each cell and |x - c| <= width."""
        s = self.victim.scale
        if self.victim.kind == "laplace":
            return np.broadcast_to(width / s, np.broadcast_shapes(np.shape(c), self.omega.shape))
        far = np.maximum(np.abs(self.ends[:-1] - c), np.abs(self.ends[1:] - c))
        return width * (2.0 * far + width) / (2.0 * s * s)

    def _left_out(self, first: int, seconds: NDArray[np.int64], *, exact: bool) -> tuple[FloatArray, FloatArray]:
        """R(x0)-mass and largest loss beyond the support, on both sides, for all records next to the grid's."""
        low, high = 1.0 - self.core.edge, self.core.edge
        x0, x1 = float(self.records[first]), self.records[seconds]
        reach = np.zeros(self.records.size) if exact else np.maximum(*self.spacing)
        before, after = self.victim.below(low - x0 + reach[first]), self.victim.below(x0 + reach[first] - high)
        mass = np.tile(np.array([before, after]) * (1 + 1e-12), (seconds.size, 1))
        loss = np.full((seconds.size, 2), math.inf)
        apart = np.abs(x1 - x0) + reach[first] + reach[seconds]
        if self.victim.kind == "laplace":
            loss[:] = (np.minimum(apart, 1.0) / self.victim.scale * (1 + 16 * EPS))[:, None]
        if high >= 1.0:  # to the right of all records, x0 < x1 makes the loss negative
            loss[x0 + reach[first] <= x1 - reach[seconds], 1] = 0.0
        return mass, loss
