"""Groups, and several bits of one user, by the count theorem: extension 2 of docs/theorems/count.md."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from shuffledp.accounting.engines.count import lie_probability
from shuffledp.accounting.profiles.gaussian import gaussian_epsilon
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.numerics.floats import Upper, inflated, round_down, round_up
from shuffledp.numerics.grouped_bits import GroupedBits
from shuffledp.numerics.interval import Interval
from shuffledp.numerics.search import crossing

MOST_BITS = 1000
"""Up to so many bits of one budget the chain of neighbours is not needed."""


@dataclass(frozen=True, eq=False)
class GroupCountProfile(PrivacyProfile):
    """The largest divergence over record vectors of the others if several bits change: from above, or attained.

    Parameters
    ----------
    epsilon0 : float
        Everybody's budget.
    bits : GroupedBits
        All numbers of ones, or those that are attacked; s rounded down for an upper bound, up for a witness.
    above : bool
        Whether this is an upper bound.
    """

    epsilon0: float
    bits: GroupedBits
    above: bool

    @property
    def vanishes_at(self) -> Upper:
        """All changed bits seen by themselves."""
        return Upper(inflated(self.epsilon0 * self.bits.changed, 4))

    @property
    def directed(self) -> bool:
        """A witness over rounds is one real pair."""
        return not self.above

    def guess_epsilon(self, delta: float) -> float | None:
        """Gaussian limit."""
        s, n = self.bits.chance, self.bits.others
        if n == 0 or s >= 0.5:
            return None
        return gaussian_epsilon(delta, self.bits.changed * (1.0 - 2.0 * s) / math.sqrt(n * s * (1.0 - s)))

    def delta_at(self, epsilon: float) -> Interval:
        """The largest of the crowds'."""
        found = self.bits.deltas(math.exp(min(epsilon, 700.0)))
        return Interval(0.0, float(found.upper.max())) if self.above else Interval(float(found.lower.max()), 1.0)

    def delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """Both directions; a witness's are those of one crowd, and of the mirrored one."""
        if self.above:
            return super().delta_pair(epsilon)
        j = int(self.bits.ones[self._worst(self._typical)])
        both = [replace(self.bits, ones=np.array([at])) for at in (j, self.bits.others - j)]
        growth = math.exp(min(epsilon, 700.0))
        first, second = (Interval(float(one.deltas(growth).lower[0]), 1.0) for one in both)
        return first, second

    @property
    def _typical(self) -> float:
        return min(self.guess_epsilon(1e-6) or 0.0, 0.5 * self.vanishes_at)

    def _worst(self, epsilon: float) -> int:
        return int(self.bits.deltas(math.exp(min(epsilon, 700.0))).lower.argmax())

    def _inverse(self, target: float) -> Interval:
        if self.above:
            return super()._inverse(target)
        top = self.vanishes_at
        if self.delta(0.0).lower <= target:
            return Interval(0.0, top)
        guess = self.guess_epsilon(target)
        return Interval(crossing(lambda e: self.delta(e).lower, target, 0.0, top, guess, self.tolerance)[0], top)


def group_count(epsilon0: float, bits: int, changed: int, each: int, *, above: bool) -> GroupCountProfile:
    """Return what the count theorem says of several changed bits of one budget.

    Parameters
    ----------
    epsilon0 : float
        Everybody's budget.
    bits : int
        All bits that count, the changed ones included.
    changed : int
        How many change, at most ``bits``.
    each : int
        Bits of one user, who may hold one record: a witness gives her others the same one.
    above : bool
        From above, or from below.
    """
    others = bits - changed
    s = float(lie_probability(np.array([epsilon0]))[0])
    chance = min(float((round_down if above else round_up)(s, 8)), 0.5)
    ones = np.arange(others + 1) if above else np.arange(0, others + 1, each)
    return GroupCountProfile(epsilon0, GroupedBits(chance, others, changed, ones), above)
