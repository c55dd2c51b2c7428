"""Crowds under Laplace noise, seen from the two ends of an interval: mixtures, mean laws, tails.

f_x is the law of a record x in [0, 1] under noise of rate r. Brownian motion from x, stopped at an exponential time or
where it meets 0 or 1, gives f_x >= a(x) f_0 + b(x) f_1, and f_x >= exp(-r |x-c|) f_c for every c:

    a(x) = sinh(r (1-x))/sinh(r),    b(x) = sinh(r x)/sinh(r).                                                       (H)

A crowd is told by the mean of its records' point masses, a law nu. Where nu is known to satisfy int g_k dnu <= t_k for
some functions g_k >= 0, linear programming bounds its mean b from below by its mean a: for all y >= 0,

    int b dnu >= min_x [ b(x) + y_0 a(x) + sum_k y_k g_k(x) ] - y_0 int a dnu - sum_k y_k t_k.                       (D)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from shuffledp.numerics.floats import EPS
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.poisson_binomial import SuccessCount

_DOWN = 1.0 - 2.0**-40
_ELASTIC = 50.0
_CORNERS, _NEAR_ENDS = 300, 60


@dataclass(frozen=True, eq=False)
class RecordGrid:
    """Records of [0, 1] at equal steps, which stand for all others.

    a, b and exp(-r |x-c|) solve u'' = r^2 u, the last one but for a concave kink at c. So between two records s < t of
    the grid each of them is at least a mixture of its values at s and t, with the weights sinh(r (t-x))/sinh(r (t-s))
    and sinh(r (x-s))/sinh(r (t-s)), whose sum is at least 1/cosh(r (t-s)/2).

    Parameters
    ----------
    rate : float
        r, positive.
    steps : int
        How many.
    """

    rate: float
    steps: int

    @property
    def records(self) -> FloatArray:
        """The grid, shape (steps + 1,)."""
        return np.arange(self.steps + 1.0) / self.steps

    @property
    def share(self) -> float:
        """Lower bound of the sum of the weights."""
        return _DOWN / math.cosh(0.5 * self.rate / self.steps)

    def mixtures(self) -> tuple[FloatArray, FloatArray]:
        """Return a and b of (H) times the share, from below, shape (steps + 1,); a falls and b rises."""
        x, whole = self.records, math.sinh(self.rate)
        a, b = np.sinh(self.rate * (1.0 - x)) / whole, np.sinh(self.rate * x) / whole
        return a * (_DOWN * self.share), b * (_DOWN * self.share)

    def reach(self, centre: float) -> FloatArray:
        """Return exp(-r |x - centre|) times the share, from below, shape (steps + 1,)."""
        return np.exp(-self.rate * np.abs(self.records - centre)) * (_DOWN * self.share)


@dataclass(frozen=True, eq=False)
class MeanRegion:
    """Where the means of a and b of a crowd may lie: below each corner (a_m, b_m) there is none.

    Parameters
    ----------
    a, b : ndarray, shape (corners,)
        For every crowd there is a corner with a_m <= mean of a and b_m <= mean of b.
    """

    a: FloatArray
    b: FloatArray

    @classmethod
    def of(cls, grid: RecordGrid, reached: FloatArray, most: FloatArray, steps: int, there: float = 1.0) -> MeanRegion:
        """Of the crowds whose mean of each row of ``reached`` is at most ``most``: below no line (D) there is a crowd.

        Parameters
        ----------
        grid : RecordGrid
            The records.
        reached : ndarray, shape (functions, records)
            Lower bounds of functions g_k >= 0, as those of `RecordGrid.reach`.
        most : ndarray, shape (functions,)
            t_k.
        steps : int
            Number of lines.
        there : float
            Users may also be beyond 0 or beyond 1: they count as users on 0, or on 1, with this chance at least.
        """
        a, b = grid.mixtures()
        outside = there * _DOWN
        a, b = np.append(a, (outside, 0.0)), np.append(b, (0.0, outside))
        reached = np.hstack((reached, outside * reached[:, :1], outside * reached[:, -1:]))
        lines = [_line(a, b, reached, most, float(top)) for top in _tops(steps)]
        start, fall = (np.array([line[i] for line in lines]) for i in (0, 1))
        near = np.geomspace(1e-4, 0.05, _NEAR_ENDS)
        ends = np.unique(np.concatenate((np.arange(_CORNERS + 1.0) / _CORNERS, near, 1.0 - near)))
        low, high = ends[:-1], ends[1:]
        least = np.max(start - fall * high[:, None], axis=1) - 64.0 * EPS * (1.0 + float(np.abs(start).max()))
        some = least <= 1.0
        return cls(low[some], np.maximum(least[some], 0.0))


def _tops(steps: int) -> FloatArray:
    """Means of a at which lines touch the region: denser at both ends."""
    return 0.5 - 0.5 * np.cos(math.pi * (np.arange(steps) + 0.5) / steps)


def _line(a: FloatArray, b: FloatArray, reached: FloatArray, most: FloatArray, top: float) -> tuple[float, float]:
    """Return s and y_0 of (D), mean of b >= s - y_0 mean of a for every crowd, best where the mean of a is ``top``.

    The program may violate its conditions at a price, so that it always has a solution; any y >= 0 is a proof.
    """
    functions = np.vstack((a[None], reached))
    limits = np.concatenate(([top], most))
    found = linprog(
        np.append(b, _ELASTIC),
        A_ub=np.hstack((functions, -np.ones((limits.size, 1)))),
        b_ub=limits,
        A_eq=np.append(np.ones(a.size), 0.0)[None],
        b_eq=np.ones(1),
        bounds=(0, None),
        method="highs",
    )
    if found.status != 0:
        return 0.0, 0.0
    y = np.maximum(-np.asarray(found.ineqlin.marginals, dtype=np.float64), 0.0)
    size = 1.0 + float(y.sum())
    start = float(np.min(b + y @ functions)) - float(y[1:] @ most)
    return start - size * EPS * (16.0 * limits.size + 64.0), float(y[0])


def mean_of_convex(nodes: FloatArray, values: FloatArray, count: int, mean: float) -> float:
    """Bound E h(C) from above for every sum C of independent bits of this mean, h non-increasing and known at nodes.

    Hoeffding 1956: of all such sums the binomial one has the largest E g(C), if g is convex. Here g is convex, linear
    between nodes, constant from the last one on, and at each node at least h at the node before: so g >= h from the
    first node on. g(c) = g_last + sum_k kappa_k (c_k - c)_+, kappa_k >= 0, and E (c - C)_+ is two binomial tails.

    Parameters
    ----------
    nodes : ndarray, shape (nodes,)
        Ascending whole numbers, the first one 0.
    values : ndarray, shape (nodes,)
        Upper bounds of h there.
    count : int
        Number of bits, at least 2.
    mean : float
        Mean of their chances, in (0, 1).
    """
    g = np.append(values[0], values[:-1])
    slopes = np.zeros(nodes.size)  # to the right of each node; 0 from the last one on
    for k in range(nodes.size - 2, -1, -1):
        width = nodes[k + 1] - nodes[k]
        g[k] = max(g[k], g[k + 1] - slopes[k + 1] * width)
        slopes[k] = (g[k + 1] - g[k]) / width
    bends = np.maximum(slopes[1:] - slopes[:-1], 0.0) * (1.0 + 8.0 * EPS)
    bends += 8.0 * EPS * (np.abs(slopes[1:]) + np.abs(slopes[:-1]))
    at, p = nodes[1:], np.array([mean * (1.0 - 4.0 * EPS)])
    here = SuccessCount.of(p, np.array([float(count)])).cdf(at).upper
    less = SuccessCount.of(p, np.array([count - 1.0])).cdf(at - 1.0).lower
    short = np.maximum(at * here * (1.0 + 4.0 * EPS) - count * p[0] * less * (1.0 - 4.0 * EPS), 0.0)
    total = float(bends @ short) * (1.0 + 4.0 * EPS * nodes.size)
    return float(g[-1]) * (1.0 + 4.0 * EPS) + total
