"""A finite pair of laws given atom by atom: its hockey-stick divergence, the inverse, and its law of losses.

P has mass w_t a_t and Q mass w_t b_t at atom t. Whoever computes the weights w_t may err by the same factor in both;
the ratios a_t, b_t are good to a few ulps. So with x = e^eps

    F(eps) = sum_t w_t (a_t - x b_t)_+                                                                    (F)

keeps its relative accuracy as long as a_t - x b_t does, whatever a weight's own error is: each difference is moved
up, and down, by its rounding error ulps EPS (a_t + x b_t), and the sum by the weights' relative doubt. Sums are
numpy's pairwise ones, good to (16 + log2 atoms) EPS; 256 EPS is charged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp.numerics.floats import EPS
from shuffledp.numerics.interval import FloatArray, Interval
from shuffledp.numerics.loss_laws import LossLaw

CELLS = 2000
"""Losses of many atoms are gathered into so many cells before they are added to others."""
_REACH = 14.0
"""Standard deviations of the loss within which cells have equal width."""
_GROWTH = 1.05
"""Farther out each cell is wider than the one before by this factor."""
_SUM_ULPS = 256.0
_PADS = (1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6)


@dataclass(frozen=True, eq=False)
class WeightedPair:
    """A finite pair (P, Q), P = weights * first and Q = weights * second, atom by atom.

    Parameters
    ----------
    weights : ndarray, shape (atoms,)
        Positive, each good to `doubt` relative, with one error for P and Q.
    first, second : ndarray, shape (atoms,)
        Not negative, each good to `ulps` EPS relative.
    doubt : float
        Relative error of a weight, far below 1.
    ulps : float
        Relative error of a ratio in units of EPS.
    lost : float
        Upper bound on P's mass, and on Q's, of the outcomes that no atom stands for.
    """

    weights: FloatArray
    first: FloatArray
    second: FloatArray
    doubt: float
    ulps: float
    lost: float

    def divergence(self, epsilon: float) -> Interval:
        """Enclose (F) at one epsilon from 0 to 709.

        exp costs 1 ulp, the product and the difference one each.
        """
        cost = math.exp(epsilon) * self.second
        gap, room = self.first - cost, (self.ulps + 4.0) * EPS * (self.first + cost)
        upper = float((self.weights * np.maximum(gap + room, 0.0)).sum())
        lower = float((self.weights * np.maximum(gap - room, 0.0)).sum())
        slack = self.doubt + _SUM_ULPS * EPS
        return Interval(lower * (1.0 - slack), upper * (1.0 + slack) + self.lost)

    def epsilon(self, delta: float) -> Interval:
        """Enclose the smallest epsilon at which (F) is at most delta; an end that cannot be told is 0 or infinite.

        (F) is convex and piecewise linear in x: Newton's steps from the left end at its root. Both sides of the root
        are then evaluated, at distances that grow until the enclosure of (F) decides.
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
        """Where (F) is about delta; inf if nowhere below 709. Nothing is certified here."""
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

        Replacing an atom (p, q) by two atoms at the ends of its cell with the same p and q in all dominates it. E (1 -
        e^(eps - S))_+ rises when mass is added or moved to larger losses: so masses are rounded up, and to the right.
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
        """A law of losses whose divergence is nowhere above (F): a cell's atoms become one, masses rounded down."""
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
        """Masses under P and Q, and losses, of the atoms with both; and P's mass where Q has none."""
        p, q = self.weights * self.first, self.weights * self.second
        both = (p > 0.0) & (q > 0.0)
        loss = np.log(self.first[both] / self.second[both])
        return p[both], q[both], loss, float(p[q == 0.0].sum())


def _logs(masses: FloatArray, scale: float, sign: float = 1.0) -> FloatArray:
    """Log of masses times e^scale, rounded up (sign 1) or down (sign -1)."""
    with np.errstate(divide="ignore"):
        logs = np.log(masses) + scale
    return logs + sign * 8.0 * EPS * (np.where(np.isfinite(logs), np.abs(logs), 0.0) + 1.0)


def _edges(masses: FloatArray, loss: FloatArray) -> FloatArray:
    """Ends of cells that cover all losses: of equal width around the mean, wider and wider beyond."""
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
    """Distances of ends beyond the core up to at least ``reach``; none if the core reaches that far."""
    if not reach > -0.5 * step:
        return np.zeros(0)
    count = math.ceil(math.log1p(max(reach + step, step) / step * (_GROWTH - 1.0)) / math.log(_GROWTH)) + 1
    return np.asarray(step * np.expm1(math.log(_GROWTH) * np.arange(1, count + 1)) / (_GROWTH - 1.0), dtype=np.float64)


def _gathered(
    edges: FloatArray, loss: FloatArray, p: FloatArray, q: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Sums of p and q over each cell, and the largest number of atoms in one, which bounds their rounding in EPS."""
    cells = edges.size - 1
    at = np.clip(np.searchsorted(edges, loss, side="right") - 1, 0, cells - 1)
    most = float(np.bincount(at, minlength=cells).max())
    sums = [np.bincount(at, part, minlength=cells).astype(np.float64) for part in (p, q)]
    return sums[0], sums[1], most
