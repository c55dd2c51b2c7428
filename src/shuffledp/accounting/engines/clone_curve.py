"""One curve for all victims: the clone pair of populations with many different budgets.

delta_v(eps) = A psi(s) of (C) depends on the victim only through A and s, up to which user is left out of the
clones. Leaving out the user most likely to be a clone, instead of the victim, can only raise psi (fewer clones
are never more private); leaving out nobody can only lower it. psi is convex in s (a supremum of affine
functions), so chords over a grid bound it from above, and values at the next grid point from below.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from shuffledp.accounting.engines.clone_pair import clone_probability, noiseless_divergence
from shuffledp.budgets import Budgets
from shuffledp.errors import NotConverged
from shuffledp.numerics.blocks import BlockedCount
from shuffledp.numerics.floats import deflated, inflated
from shuffledp.numerics.interval import Enclosure, FloatArray
from shuffledp.numerics.poisson_binomial import SuccessRange

_PER_DEVIATION = 16.0
_RATIO = 1.004
_STEP = 0.06
_BISECTIONS = 52


@dataclass(frozen=True, eq=False)
class CloneCurve:
    """Bounds on psi(1 + excess) over an ascending grid of excesses, shared by all victims.

    Attributes
    ----------
    excess : ndarray, shape (points,)
        From 0 up to where psi is far below the smallest delta asked for.
    psi : Enclosure, shape (points,)
        Bounds at the grid points.
    """

    excess: FloatArray
    psi: Enclosure

    @classmethod
    @lru_cache(maxsize=2)
    def of(cls, budgets: Budgets, delta: float) -> CloneCurve:
        """Tabulate psi until it is below delta/10, or constant."""
        p = clone_probability(budgets.epsilons)
        counts = budgets.counts.astype(np.float64)
        fewer = counts.copy()
        fewer[0] -= 1.0  # the smallest budget is the likeliest clone
        fewest, most = SuccessRange.of(p, fewer, ulps=8).fewest, SuccessRange.of(p, counts, ulps=8).most
        clones = SuccessRange(fewest, most)
        blocks = BlockedCount.of(clones, 11.0, _PER_DEVIATION)
        if blocks.left.size > 1 and blocks.through.upper[0] > 1e-6 * delta:
            blocks = BlockedCount.of(clones, 40.0, _PER_DEVIATION)
        step = _STEP / np.sqrt(most.mean + 1.0)
        grid = np.zeros(1)
        lower, upper = cls._values(blocks, grid)
        # with more than n + 1 clones' worth of excess every threshold is at its end, and psi is constant
        while upper[-1] > 0.1 * delta and grid[-1] <= most.n + 1.0:
            if grid.size > 20_000:
                raise NotConverged("the profile does not fall to the delta asked for within double precision")
            # even steps of the test's standard score, then geometric ones
            if grid[-1] * (_RATIO - 1.0) < step:
                more = grid[-1] + step * np.arange(1.0, 33.0)
            else:
                more = grid[-1] * _RATIO ** np.arange(1.0, 33.0)
            values = cls._values(blocks, more)
            grid = np.concatenate((grid, more))
            lower, upper = np.concatenate((lower, values[0])), np.concatenate((upper, values[1]))
        return cls(grid, Enclosure(lower, upper))

    @staticmethod
    def _values(blocks: BlockedCount, excess: FloatArray) -> tuple[FloatArray, FloatArray]:
        psi = noiseless_divergence(np.broadcast_to(blocks.left, (excess.size, blocks.left.size)), excess[:, None])
        found = [blocks.expectation(Enclosure(*row)) for row in zip(psi.lower, psi.upper, strict=True)]
        return np.array([f.lower for f in found]), np.array([f.upper for f in found])

    def epsilons(self, epsilon0: FloatArray, delta: float) -> Enclosure:
        """Enclose each victim's central epsilon at delta, shape (victims,), by bisection to the safe side."""
        ends = []
        for side in (self._below, self._above):
            low, high = np.zeros_like(epsilon0), epsilon0.copy()
            done = self._deltas(low, epsilon0, side) <= delta
            high = np.where(done, 0.0, high)
            for _ in range(_BISECTIONS):
                middle = 0.5 * (low + high)
                more = self._deltas(middle, epsilon0, side) > delta
                low, high = np.where(more & ~done, middle, low), np.where(more | done, high, middle)
            ends.append((low, high))
        return Enclosure(np.minimum(ends[0][0], ends[1][1]), ends[1][1])

    def _deltas(self, epsilon: FloatArray, epsilon0: FloatArray, side: object) -> FloatArray:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            room, damp = -np.expm1(epsilon - epsilon0), 1.0 + np.exp(-epsilon0)
            excess = np.expm1(epsilon) * damp / room
        excess = np.where(room > 0, excess, np.inf)
        return inflated(room / damp * side(excess), 32)  # type: ignore[operator]

    def _above(self, excess: FloatArray) -> FloatArray:
        """Chord over the grid; beyond it, the last value (psi decreases)."""
        return inflated(np.interp(deflated(excess, 16), self.excess, self.psi.upper), 16)

    def _below(self, excess: FloatArray) -> FloatArray:
        """Value at the next grid point; beyond the grid, 0."""
        after = np.searchsorted(self.excess, inflated(excess, 16), side="left")
        return deflated(np.append(self.psi.lower, 0.0)[after], 64)
