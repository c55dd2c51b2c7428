"""Blankets for noise added to a number in [0, 1]: Laplace and Gaussian, own budgets (docs/theorems/blanket.md).

With M(y) = max(|y|, |1-y|), the distance to the farther end of the range, every record's report has density at
least k_s(M(y)), k_s the noise density of scale s. So for every core scale s* and edge m >= 1

    omega(y) ∝ k_{s*}(M(y)) on M(y) <= m,    gamma_i = inf_{1/2 <= M <= m} k_{s_i}(M)/omega(M)                (O)

is a common blanket of all budgets; the victim's mass where M > m is charged. s* and m are chosen per question,
from budgets alone; each choice is a bound. Of all pairs of records in the range the end points have the largest
bound (docs/theorems/end-points.md), with any core for Laplace noise, and up to `Core.proved_up_to` for normal noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp.numerics.floats import LEAST_MASS, deflated, inflated, roundoff
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.special import log_ndtr, ndtr
from shuffledp.numerics.wider_noise import log_density
from shuffledp.randomizers.base import CellSpread, PairBlanket

_FINE, _TAIL = 120, 120
_DIGITS = 10  # cell ends are rounded to so many decimals, so that no two differ by rounding alone
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)


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
        """Log k_s(u); absolute error 4 roundoffs (1 + |log k_s|)."""
        return log_density(self.kind, self.scale, u)

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

    def loss(self, x0: float, x1: float, y: FloatArray) -> FloatArray:
        """Log k(y - x0) - log k(y - x1), without cancellation; monotone in y."""
        s = self.scale
        if self.kind == "gaussian":
            return (x0 - x1) * (2.0 * y - x0 - x1) / (2.0 * s * s)
        return np.sign(x0 - x1) * (np.clip(y, min(x0, x1), max(x0, x1)) * 2.0 - x0 - x1) / s


@dataclass(frozen=True)
class Core:
    """The blanket omega of (O).

    Parameters
    ----------
    noise : Noise
        Shape and core scale s*.
    edge : float
        The edge m >= 1 of its support, a decimal number of at most 10 digits after the point.
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
        ends = np.array([0.5, self.edge])
        core = self.noise.log_density(ends) + self.log_weight
        out = np.min(log_density(self.noise.kind, scales[:, None], ends) - core, axis=1)
        return np.minimum(out, 0.0)

    def proved_up_to(self, victim: Noise) -> float:
        """Largest epsilon (nats, possibly inf) at which the end points are proved to be the worst pair of records.

        Theorem 1 of docs/theorems/end-points.md: normal noise needs s* >= s, or 8 s^2 epsilon <= 1.
        """
        if victim.kind == "laplace" or self.noise.scale >= victim.scale:
            return math.inf
        return deflated(1.0, 8) / (8.0 * victim.scale**2)


@dataclass(frozen=True, eq=False)
class RecordPair:
    """A victim's noise around two records, over cells of one core.

    Parameters
    ----------
    core : Core
        The blanket.
    victim : Noise
        The victim's noise.
    x0, x1 : float
        The records, in [0, 1], decimal numbers of at most 10 digits; by default the end points, the worst pair.
    """

    core: Core
    victim: Noise
    x0: float = 0.0
    x1: float = 1.0

    @cached_property
    def ends(self) -> FloatArray:
        """Cell ends over the support, ascending: at the records, at 1/2, and fine where densities change fast."""
        low, high = 1.0 - self.core.edge, self.core.edge
        inner = np.linspace(0.0, 1.0, _FINE + 1)
        tail = 1.0 + np.linspace(0.0, high - 1.0, _TAIL + 1)[1:]
        special = np.array([low, 0.5, high, self.x0, self.x1])
        ends: FloatArray = np.round(np.concatenate((special, inner, tail, 1.0 - tail)), _DIGITS)
        return np.unique(ends)

    @cached_property
    def omega(self) -> FloatArray:
        """omega-mass of each cell."""
        left, right = self.ends[:-1], self.ends[1:]
        upper = left >= 0.5
        near, far = np.where(upper, left, 1.0 - right), np.where(upper, right, 1.0 - left)
        return self.core.noise.mass(near, far) * math.exp(self.core.log_weight)

    @cached_property
    def blanket(self) -> PairBlanket:
        """The pair against the core; gamma is left at 0: what others contribute is not a matter of the victim.

        Where a mass has left double range, ratio and loss are taken at their largest, and `below` at their smallest.
        """
        return self._seen(above=True)

    @cached_property
    def below(self) -> PairBlanket:
        """As `blanket`, for a law below the pair's."""
        return self._seen(above=False)

    def _seen(self, *, above: bool) -> PairBlanket:
        x0, x1 = self.x0, self.x1
        left, right = self.ends[:-1], self.ends[1:]
        mass0, mass1 = self.victim.mass(left - x0, right - x0), self.victim.mass(left - x1, right - x1)
        # where a mass has left double range, the mean over the cell is not known better than its bounds
        known0 = np.minimum(mass0, self.omega) > LEAST_MASS
        at_left, at_right = self.victim.loss(x0, x1, left), self.victim.loss(x0, x1, right)
        low, high = np.minimum(at_left, at_right), np.maximum(at_left, at_right)
        ratio_low, ratio_high = self._ratios()
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            losses, ratio = np.clip(np.log(mass0) - np.log(mass1), low, high), mass0 / self.omega
        losses = np.where(known0 & (mass1 > LEAST_MASS), losses, high if above else low)
        ratios0 = np.where(known0, np.clip(ratio, ratio_low, ratio_high), ratio_high if above else ratio_low)
        with np.errstate(over="ignore", invalid="ignore"):
            ratios1 = ratios0 * np.exp(-losses)
        spread = CellSpread(ratio_low, ratio_high, low, high, *self._left_out())
        return PairBlanket(0.0, self.omega, ratios0, ratios1, losses, spread)

    def _ratios(self) -> tuple[FloatArray, FloatArray]:
        """Bounds of R(x0)/omega on each cell: its logarithm is linear or quadratic in y there."""
        y, x0 = self.ends, self.x0
        core = self.core.noise

        def log_ratio(points: FloatArray) -> tuple[FloatArray, FloatArray]:
            """Enclose log R(x0)/omega: densities are good to 4 roundoffs (1 + |log|), their arguments to two more."""
            farther = np.maximum(np.abs(points), np.abs(1.0 - points))
            own, core_log = self.victim.log_density(points - x0), core.log_density(farther)
            value = own - core_log - self.core.log_weight
            doubt = roundoff(8, 2.0 + np.abs(own) + np.abs(core_log) + abs(self.core.log_weight))
            return value - doubt, value + doubt

        least, most = log_ratio(y)
        low, high = np.minimum(least[:-1], least[1:]), np.maximum(most[:-1], most[1:])
        if core.kind == "gaussian" and core.scale != self.victim.scale:
            for far in (0.0, 1.0):  # the farther end; the vertex of the quadratic may lie inside a cell
                a, b = 1.0 / self.victim.scale**2, 1.0 / core.scale**2
                vertex = np.clip((x0 * a - far * b) / (a - b), y[:-1], y[1:])
                least, most = log_ratio(vertex)
                low, high = np.minimum(low, least), np.maximum(high, most)
        with np.errstate(over="ignore"):
            return deflated(np.exp(low), 8), inflated(np.exp(high), 8)

    def _left_out(self) -> tuple[FloatArray, FloatArray]:
        """R(x0)-mass and largest loss beyond the support, on both sides."""
        low, high = 1.0 - self.core.edge, self.core.edge
        mass = np.array([self.victim.below(low - self.x0), self.victim.below(self.x0 - high)]) * (1.0 + roundoff(8192))
        most = inflated(abs(self.x1 - self.x0) / self.victim.scale, 16) if self.victim.kind == "laplace" else math.inf
        # beyond all records, the farther one's density is the smaller
        gains = (self.x0 < self.x1, self.x0 > self.x1)
        return mass, np.array([most if gain else 0.0 for gain in gains])
