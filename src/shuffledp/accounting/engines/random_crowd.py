"""A victim on A or on B among a random number of others on each: averages of H(i, j), layer by layer.

K_A and K_B, the numbers of others on A and on B, are sums of independent bits of given mean chances, and told; H(i, j)
falls in both. With numbers i_1 >= i_2 >= ... and j_1 >= j_2 >= ..., f_1 <= f_2 <= ... with H(i_k, j_k) <= f_k, and
p_k >= P(K_A < i_k) + P(K_B < j_k), k = 1, ..., m,

    E H(K_A, K_B) <= f_1 + sum_{k < m} p_k (f_{k+1} - f_k) + p_m.                                                   (A)

Of all sums of independent bits with one mean the binomial one has the largest P(K <= c) for whole c <= E K - 1
(Hoeffding 1956, theorem 4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, norm

from shuffledp.accounting.engines.two_type import EqualCrowd
from shuffledp.numerics import binomial
from shuffledp.numerics.floats import deflated, inflated
from shuffledp.numerics.hitting import MeanRegion
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.two_laws import TwoLaws
from shuffledp.numerics.two_type import told_apart

_CHANCES = (0.36, 0.18, 0.07, 0.02, 3e-3, 1e-4, 1e-9)
"""About the chances that a number of others is below its threshold of a layer: how thresholds are chosen."""
_REST = 0.01
"""Part of delta that the crowds below all thresholds may take."""
_RARE, _FEW = 0.004, 8
"""Below this share of the users on the rarer record an equal crowd is tried first; below so many, alone."""

_BEND = 0.1
_STEADY, _SIDE = 0.7, 0.15
"""The sum of both numbers has a threshold where its variance is less than this share of either one's; then each number
has one for this share of the chance."""
_NOT_REACHED = 1 << 60


class MixedCrowd:
    """Others on two records: bounds of H(i, j) at one epsilon.

    Parameters
    ----------
    laws : TwoLaws
        A and B.
    epsilon : float
        Nats.
    """

    def __init__(self, laws: TwoLaws, epsilon: float) -> None:
        self.laws, self.epsilon = laws, epsilon
        self._equal = {all_a: EqualCrowd(laws, all_a=all_a) for all_a in (False, True)}

    def is_below(self, on_a: int, on_b: int, limit: float) -> bool:
        """Whether H among so many others on A and on B is at most ``limit``, by the two-type bound or an equal crowd.

        An equal crowd leaves out the users on the rarer record.
        """
        few, many = min(on_a, on_b), max(on_a, on_b)
        if few < _FEW:
            return self.equal_crowd(on_a, on_b) <= limit
        if few < _RARE * many:
            return self.equal_crowd(on_a, on_b) <= limit or self.two_type(on_a, on_b) <= limit
        return self.two_type(on_a, on_b) <= limit or (
            few < 10.0 * _RARE * many and self.equal_crowd(on_a, on_b) <= limit
        )

    def two_type(self, on_a: int, on_b: int) -> float:
        """Upper bound of H among so many others."""
        return told_apart(self.laws, on_a, on_b, self.epsilon)

    def equal_crowd(self, on_a: int, on_b: int) -> float:
        """Upper bound of H, without the others on the rarer record."""
        return self._equal[on_a >= on_b].most(max(on_a, on_b) + 1, self.epsilon)

    def hides(self, region: MeanRegion, others: int, delta: float, steepness: float) -> bool:
        """Whether E H(K_A, K_B) <= delta for all crowds whose mean chances lie in a region.

        Parameters
        ----------
        region : MeanRegion
            The mean chances, by corners.
        others : int
            Number of others.
        delta : float
            The target.
        steepness : float
            About how much log H grows where a number of others falls by a standard deviation: a guess, at least 0.
        """
        layers = list[tuple[_Layer, float]]()
        for chance in _CHANCES:
            layers.append(_Layer.of(region, others, chance))
            if layers[-1][1] <= _REST * delta:
                break
        else:
            return False
        missed = np.array([each for _, each in layers])
        deviations = norm.isf(_CHANCES[: len(layers)])
        growth = np.exp(steepness * (deviations - deviations[0]) + _BEND * (deviations**2 - deviations[0] ** 2))
        first = delta * (1.0 - _REST) / (1.0 + float(missed[:-1] @ np.diff(growth))) * (1.0 - 2.0**-40)
        return all(
            self._all_below(layer, first * grown) for (layer, _), grown in zip(layers, growth.tolist(), strict=True)
        )

    def _all_below(self, layer: _Layer, limit: float) -> bool:
        """Whether H is at most ``limit`` for all numbers of a layer, many at once where their smallest numbers do."""
        left = [layer.span]
        while left:
            low, high = left.pop()
            if self.is_below(*layer.fewest(low, high), limit):
                continue
            if low == high:
                return False
            middle = (low + high) // 2
            left += [(low, middle), (middle + 1, high)]
        return True


@dataclass(frozen=True, eq=False)
class _Layer:
    """Numbers of others: if i are on A, at least ``least[i]`` are on B."""

    least: NDArray[np.int64]

    @classmethod
    def of(cls, region: MeanRegion, others: int, chance: float) -> tuple[_Layer, float]:
        """Return a layer, and a bound of the chance that a crowd is not in it.

        Where hardly anybody is told, K_A + K_B varies less than either number: there it has a threshold, too.
        """
        vary_a, vary_b = (others * mean * (1.0 - mean) for mean in (region.a, region.b))
        both = np.minimum(region.a + region.b, 1.0)
        steady = others * both * (1.0 - both) < _STEADY * np.minimum(vary_a, vary_b)
        side = np.where(steady, chance * _SIDE, chance)
        on_a, below_a = least_number(others, region.a, side)
        on_b, below_b = least_number(others, region.b, side)
        total, below = on_a + on_b, np.zeros_like(both)
        if steady.any():
            found, below[steady] = least_number(others, both[steady], np.full(int(steady.sum()), chance))
            total[steady] = np.maximum(total[steady], found)
        least = np.full(others + 2, _NOT_REACHED, dtype=np.int64)
        for i, j, all_ in np.stack((on_a, on_b, total), axis=1).astype(np.int64).tolist():
            last = min(all_ - j, others)
            least[i : last + 1] = np.minimum(least[i : last + 1], np.maximum(all_ - np.arange(i, last + 1), j))
        return cls(least), float(np.max(below_a + below_b + below)) * (1.0 + 2.0**-40)

    @property
    def span(self) -> tuple[int, int]:
        """First and last number on A."""
        reached = np.flatnonzero(self.least < _NOT_REACHED)
        return int(reached[0]), int(reached[-1])

    def fewest(self, low: int, high: int) -> tuple[int, int]:
        """How many are on A and on B at least, if between ``low`` and ``high`` are on A."""
        return low, min(int(self.least[low : high + 1].min()), self.least.size)  # numbers not reached need no proof


def least_number(count: int, means: FloatArray, chances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return numbers that sums of independent bits reach but for about a small chance, and bounds of that chance.

    Parameters
    ----------
    count : int
        Number of bits.
    means : ndarray, shape (sums,)
        Means of their chances, in [0, 1].
    chances : ndarray, shape (sums,)
        Below 1/2.
    """
    whole = np.floor(deflated(count * means, 4))
    least = np.clip(np.nan_to_num(binom.ppf(chances, count, means)), 0.0, whole)
    below = binomial.cdf(least - 1.0, float(count), means)
    return least, np.where(least > 0.0, inflated(below * (1.0 + binomial.COMBINED_ERROR), 4), 0.0)
