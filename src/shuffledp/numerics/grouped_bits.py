"""Several changed bits among many: (C) for groups and for several bits of one user, by sums of positive terms.

m bits change from chance s to chance 1 - s, and N others are known to send 1 with chance s or 1 - s, j of them the
latter. The counts are sums of independent bits, their laws convolutions of binomial laws, and every convolution here
adds positive terms only, so that a relative error is enough. A chance of 1 - s is a reversed binomial law of s.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp.numerics import binomial
from shuffledp.numerics.floats import EPS, TINY
from shuffledp.numerics.interval import Enclosure, FloatArray


@dataclass(frozen=True, eq=False)
class GroupedBits:
    """Crowds of bits, and bits that change.

    Parameters
    ----------
    chance : float
        s, in (0, 1/2], taken as exact.
    others : int
        N, at least 0.
    changed : int
        m, at least 1.
    ones : ndarray of int, shape (crowds,)
        j of each crowd, from 0 to N.
    """

    chance: float
    others: int
    changed: int
    ones: np.ndarray

    def _law(self, bits: int) -> FloatArray:
        """Binomial law of so many bits of chance s."""
        if bits == 0:
            return np.ones(1)
        return np.exp(binomial.log_pmf(np.arange(bits + 1.0), float(bits), self.chance))

    @cached_property
    def laws(self) -> tuple[FloatArray, FloatArray]:
        """The count's laws with the changed bits at 1 - s, and at s, shape (crowds, N + m + 1)."""
        own = self._law(self.changed)
        first, second = (np.empty((self.ones.size, self.others + self.changed + 1)) for _ in range(2))
        for row, j in enumerate(self.ones.tolist()):
            crowd = np.convolve(self._law(j)[::-1], self._law(self.others - j))
            first[row], second[row] = np.convolve(crowd, own[::-1]), np.convolve(crowd, own)
        return first, second

    @property
    def relative(self) -> float:
        """Bound on the relative error of each chance, besides what leaves double range."""
        return 3.0 * binomial.RELATIVE_ERROR + 4.0 * (self.others + self.changed + 4.0) * EPS

    def deltas(self, growth: float) -> Enclosure:
        """Enclose the largest of P_1(A) - e^eps P_0(A) over events, for each crowd, shape (crowds,).

        Parameters
        ----------
        growth : float
            e^eps, good to 4 EPS.
        """
        first, second = self.laws
        room = self.relative + 16.0 * EPS * (self.others + self.changed + 1.0)
        upper = np.maximum(first * (1.0 + room) - growth * (1.0 - room) * second, 0.0).sum(axis=1)
        lower = np.maximum(first * (1.0 - room) - growth * (1.0 + room) * second - TINY * growth, 0.0).sum(axis=1)
        size = first.shape[1]
        return Enclosure(lower * (1.0 - room), np.minimum(upper * (1.0 + room) + TINY * (1.0 + growth) * size, 1.0))
