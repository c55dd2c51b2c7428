"""Two independent finite pairs together: the hockey-stick divergence of their product, without a grid.

With atoms (p_i, q_i) of the first pair and (p_j, q_j) of the second, x = e^eps and l = log(p/q),

    F(eps) = sum_i sum_j (p_i p_j - x q_i q_j)_+ = sum_i [ p_i P(eps - l_i) - x q_i Q(eps - l_i) ],             (FF)

where P(y), Q(y) sum the second pair's masses over l_j > y: sums from the end of the sorted losses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp.numerics.floats import EPS
from shuffledp.numerics.interval import FloatArray, Interval
from shuffledp.numerics.weighted_pair import WeightedPair

_LEAST = 1e-290


@dataclass(frozen=True, eq=False)
class ProductPair:
    """The product of two pairs.

    Parameters
    ----------
    long, short : WeightedPair
        In any order; the work for one epsilon is that of looking up `long`'s atoms among `short`'s.
    """

    long: WeightedPair
    short: WeightedPair

    def divergence(self, epsilon: float) -> Interval:
        """Enclose (FF) at one epsilon from 0 to 709.

        Which atoms are summed needs no care from below: every event's P - x Q is a lower bound of F. From above, atoms
        are let in as long as their loss may be large enough; one that should be out costs at most its mass times the
        doubt about its loss. The weights' doubts are factors of p_i p_j - x q_i q_j, hence of the whole; the sums from
        the end err by as many EPS as they have terms.
        """
        losses, tail_p, tail_q = self._tails
        p, q, loss = self._long
        doubt = 2.0 * (self.long.ulps + self.short.ulps) + 64.0
        near = doubt * EPS * (2.0 + epsilon + self._largest)
        with np.errstate(invalid="ignore"):
            at = np.searchsorted(losses, epsilon - loss - near, side="right")
        mass, counter = float((p * tail_p[at]).sum()), math.exp(epsilon) * float((q * tail_q[at]).sum())
        room = (losses.size + 512.0 + doubt) * EPS * (mass + counter) + near * mass
        slack = (1.0 + self.long.doubt) * (1.0 + self.short.doubt) * (1.0 + 16.0 * EPS)
        lost = self.long.lost + self.short.lost
        upper = max(mass - counter + room, 0.0) * slack + lost
        return Interval(min(max(mass - counter - room, 0.0) / slack, upper), upper)

    @cached_property
    def _long(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return _masses(self.long)

    @cached_property
    def _tails(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        p, q, loss = _masses(self.short)
        order = np.argsort(loss, kind="stable")
        ends = [np.append(np.cumsum(part[order][::-1])[::-1], 0.0) for part in (p, q)]
        return loss[order], ends[0], ends[1]

    @cached_property
    def _largest(self) -> float:
        """The largest finite loss of either, in absolute value, twice."""
        found = [np.abs(loss[np.isfinite(loss)]).max(initial=0.0) for loss in (self._long[2], self._tails[0])]
        return 2.0 * float(max(found))


def multiplied(one: WeightedPair, two: WeightedPair) -> WeightedPair:
    """Return the product of two pairs, atom by atom; atoms of a weight below 1e-290 are charged instead."""
    weights, first, second = (
        np.outer(left, right).ravel()
        for left, right in ((one.weights, two.weights), (one.first, two.first), (one.second, two.second))
    )
    kept = weights >= _LEAST
    largest = max(float(one.first.max()) * float(two.first.max()), float(one.second.max()) * float(two.second.max()))
    doubt = (one.doubt + two.doubt) * (1.0 + one.doubt) + 2.0 * EPS
    lost = one.lost + two.lost + 2.0 * _LEAST * largest * float((~kept).sum())
    return WeightedPair(weights[kept], first[kept], second[kept], doubt, one.ulps + two.ulps + 2.0, lost)


def _masses(pair: WeightedPair) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Masses under P and Q of the atoms that P may take, and their losses, infinite where Q has none."""
    some = pair.first > 0.0
    first, second, weights = pair.first[some], pair.second[some], pair.weights[some]
    with np.errstate(divide="ignore"):
        loss = np.log(first) - np.log(second)
    return weights * first, weights * second, loss
