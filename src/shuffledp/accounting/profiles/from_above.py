"""The smallest of several bounds from above alone, with few looks at those that are not the smallest."""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass, field

from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.numerics.floats import Upper, inflated
from shuffledp.numerics.interval import Interval

_CLOSE = 0.01
"""A bound within this of the smallest, in logs, may be the smallest a little further on."""


@dataclass(frozen=True, eq=False)
class FromAbove(PrivacyProfile):
    """Upper ends of the pointwise minimum of several upper bounds; nothing is known from below.

    Every bound is an upper bound at every epsilon, so which of them are evaluated is a free choice. Between two
    epsilons already asked for it is those that were the smallest at one of the two.

    Parameters
    ----------
    parts : tuple of PrivacyProfile
        At least one.
    """

    parts: tuple[PrivacyProfile, ...]
    _known: dict[float, tuple[float, frozenset[int]]] = field(
        default_factory=dict[float, tuple[float, frozenset[int]]], repr=False
    )
    _order: list[float] = field(default_factory=list[float], repr=False)

    @property
    def vanishes_at(self) -> Upper:
        """From the first point on at which a part vanishes."""
        return min(part.vanishes_at for part in self.parts)

    @property
    def mass_at_infinity(self) -> Interval:
        """The smallest of the parts', from above."""
        return Interval(0.0, min(part.mass_at_infinity.upper for part in self.parts))

    @property
    def known_below(self) -> bool:
        """No."""
        return False

    def delta_at(self, epsilon: float) -> Interval:
        """The exponential of `log_above`."""
        log = self.log_above(epsilon)
        return Interval(0.0, min(inflated(math.exp(log), 8), 1.0) if log > -math.inf else 0.0)

    def log_delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """The same both ways round."""
        both = Interval(-math.inf, self.log_above(epsilon))
        return both, both

    def log_above(self, epsilon: float) -> float:
        """The smallest logarithm of the parts looked at."""
        if epsilon not in self._known:
            found = {i: self.parts[i].log_above(epsilon) for i in self._candidates(epsilon)}
            least = min(found.values())
            close = frozenset(i for i, log in found.items() if log <= least + _CLOSE)
            self._known[epsilon] = least, close
            bisect.insort(self._order, epsilon)
        return self._known[epsilon][0]

    def _candidates(self, epsilon: float) -> frozenset[int]:
        """Parts that are, or nearly are, the smallest at a neighbour; all of them beyond the last neighbour."""
        at = bisect.bisect(self._order, epsilon)
        if not 0 < at < len(self._order):
            return frozenset(range(len(self.parts)))
        left, right = self._order[at - 1], self._order[at]
        return self._known[left][1] | self._known[right][1]
