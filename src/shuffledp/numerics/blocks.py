"""Expectations of non-increasing functions of a count, bracketed from a few hundred values.

If h does not increase, then for any partition of the range of C into blocks

    sum_j P(C in block j) h(right end of j)  <=  E h(C)  <=  sum_j P(C in block j) h(left end of j).

Summed by parts, only lower tails P(C <= x) appear, with non-negative factors, so one-sided bounds on tails and
on h give one-sided bounds on the expectation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shuffledp.numerics.interval import Enclosure, FloatArray, Interval
from shuffledp.numerics.poisson_binomial import SuccessRange


@dataclass(frozen=True, eq=False)
class BlockedCount:
    """A partition of 0, 1, ..., n into blocks, with bounds on the law of C over it.

    Attributes
    ----------
    left : ndarray, shape (blocks,)
        First integer of each block, ascending; ``left[0] == 0``.
    single : ndarray of bool, shape (blocks,)
        Whether the block is one integer.
    through : Enclosure, shape (blocks,)
        P(C <= last integer of the block).
    """

    left: FloatArray
    single: np.ndarray
    through: Enclosure

    @classmethod
    def of(cls, count: SuccessRange, depth: float, per_deviation: float) -> BlockedCount:
        """Partition the range of a count.

        Parameters
        ----------
        count : SuccessRange
            The count.
        depth : float
            Standard deviations below the mean that are resolved; what lies lower is one block.
        per_deviation : float
            Blocks per standard deviation near the mean (every integer, if that is coarser).
        """
        most = count.most
        mean, deviation = most.mean, max(most.deviation, 0.5)
        near = np.arange(-7.0, 6.0, 1.0 / per_deviation)
        deep = np.arange(-depth, -7.0, 4.0 / per_deviation)
        left = np.unique(np.floor(mean + np.concatenate((deep, near)) * deviation))
        left = np.unique(np.concatenate(([0.0], left[(left > 0) & (left <= most.n)])))
        last = np.append(left[1:] - 1.0, most.n)
        return cls(left, last == left, count.cdf(last))

    def expectation(self, values: Enclosure) -> Interval:
        """Bracket E h(C) for a non-negative, non-increasing h from bounds on h at the left ends."""
        upper = np.maximum.accumulate(values.upper[::-1])[::-1]
        # the value at the right end of a block is at least the value at the next left end
        following = np.append(values.lower[1:], 0.0)
        lower = np.maximum.accumulate(np.where(self.single, values.lower, following)[::-1])[::-1]
        return Interval(
            _by_parts(lower, self.through.lower) * (1.0 - 1e-13),
            _by_parts(upper, self.through.upper) * (1.0 + 1e-13),
        )


def _by_parts(values: FloatArray, through: FloatArray) -> float:
    drops = values - np.append(values[1:], 0.0)
    return float(drops @ through)
