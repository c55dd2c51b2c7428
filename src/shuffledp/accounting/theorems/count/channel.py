"""The count theorem for a channel of two outcomes, which everybody uses: extension 1 of docs/theorems/count.md.

The chance of outcome 1 lies in [a, b] whatever the record, and both ends are attained; so a record vector says how many
others have chance b. Either outcome may be counted, with chances in [a, b] or in [1-b, 1-a].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from shuffledp.accounting.profiles.gaussian import gaussian_epsilon
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.theorems.count.cover import EXACT_UP_TO
from shuffledp.accounting.theorems.count.two_outcomes import Outcome, exponentials
from shuffledp.numerics.floats import Upper
from shuffledp.numerics.interval import FloatArray, Interval
from shuffledp.numerics.search import crossing
from shuffledp.randomizers.base import StatesChances

_BOXES, _TRIED, _SAMPLE = 2048, 129, 33
_TYPICAL = 1e-6


@dataclass(frozen=True, eq=False)
class ChannelCountProfile(PrivacyProfile):
    """What record vectors prove or show: how many of the others may hold the record of the larger chance.

    Parameters
    ----------
    outcome : Outcome
        Outcome 1.
    others : int
        How many others there are.
    first, last : ndarray, shape (vectors,)
        So many at least, and at most, hold the record of the larger chance; the others between are told.
    above : bool
        Whether this is an upper bound, or a witness: then first and last are the same.
    """

    outcome: Outcome
    others: int
    first: FloatArray
    last: FloatArray
    above: bool

    @property
    def vanishes_at(self) -> Upper:
        """The victim's own largest loss."""
        return Upper(max(side.loss.upper for side in (self.outcome, self.outcome.other())))

    @property
    def coarseness(self) -> float:
        """Fewer knots, as each needs a transform."""
        return 2.0

    @property
    def directed(self) -> bool:
        """Whether the two directions differ: they do for a witness, which is one real pair of neighbours."""
        return not self.above

    def guess_epsilon(self, delta: float) -> float | None:
        """Gaussian limit for the record vector that hides least."""
        a, b = float(self.outcome.p), float(self.outcome.q)
        variance = self.others * min(a * (1.0 - a), b * (1.0 - b))
        return gaussian_epsilon(delta, (b - a) / math.sqrt(variance)) if variance > 0.0 and b > a else None

    def _logs(self, epsilon: float) -> tuple[FloatArray, FloatArray]:
        """Bounds on the logarithm of both directions, per vector."""
        at, n = min(epsilon, 700.0), float(self.others)
        ones = self.outcome.log_values(self.first, n - self.last, at, above=self.above)
        return ones, self.outcome.other().log_values(n - self.last, self.first, at, above=self.above)

    def delta_at(self, epsilon: float) -> Interval:
        """Return the largest of all vectors and both directions, from one side."""
        found = exponentials(max(float(logs.max()) for logs in self._logs(epsilon)))
        return Interval(0.0, found.upper) if self.above else Interval(found.lower, 1.0)

    def delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """Both directions: of a witness those of one vector."""
        if self.above:
            return super().delta_pair(epsilon)
        first, second = (exponentials(float(logs.max())) for logs in self.strongest._logs(epsilon))
        return Interval(first.lower, 1.0), Interval(second.lower, 1.0)

    def _inverse(self, target: float) -> Interval:
        """Of a witness the epsilon of one vector, which is the worst of all at about that place."""
        if self.above:
            return super()._inverse(target)
        worst = self if self.first.size == 1 else self._worst(self._near(target))
        top = self.vanishes_at
        if worst.delta(0.0).lower <= target:
            return Interval(0.0, top)
        guess = self.guess_epsilon(target)
        found, _ = crossing(lambda e: worst.delta(e).lower, target, 0.0, top, guess, self.tolerance)
        return Interval(found, top)

    def _near(self, target: float) -> float:
        """About where a few of the vectors reach a delta."""
        some = np.unique(np.rint(np.linspace(0.0, self.first.size - 1.0, _SAMPLE)).astype(np.int64))
        few = ChannelCountProfile(self.outcome, self.others, self.first[some], self.last[some], self.above)
        epsilon = 0.0
        for _ in range(2):
            epsilon = few._worst(epsilon).epsilon(target).lower
        return epsilon

    @cached_property
    def strongest(self) -> ChannelCountProfile:
        """The vector with the largest delta where the largest is about 1e-6."""
        return self if self.first.size == 1 else self._worst(self._near(_TYPICAL))

    def _worst(self, epsilon: float) -> ChannelCountProfile:
        ones, zeros = self._logs(epsilon)
        at = int(np.maximum(ones, zeros).argmax())
        return ChannelCountProfile(self.outcome, self.others, self.first[[at]], self.last[[at]], self.above)


def two_outcomes(law: object) -> Outcome | None:
    """Return the first outcome of a channel of two, whatever the record possible; None for any other law.

    Parameters
    ----------
    law : object
        A randomizer.
    """
    if not isinstance(law, StatesChances):
        return None
    columns = law.exact_columns()
    if len(columns) != 2:
        return None
    chances = [Fraction(*chance) for chance in columns[0]]
    low, high = min(chances), max(chances)
    return Outcome(low, high) if 0 < low < high < 1 else None


def channel_count(outcome: Outcome, n: int, *, above: bool) -> ChannelCountProfile:
    """Return what the count theorem says of n users of one channel, from above, or its record vectors from below.

    Parameters
    ----------
    outcome : Outcome
        The channel.
    n : int
        Users, the victim included, at least 1.
    above : bool
        Which.
    """
    others = n - 1
    if others <= EXACT_UP_TO:
        first = last = np.arange(others + 1.0)
    elif above:
        edges = np.unique(np.floor(np.linspace(0.0, others + 1.0, _BOXES + 1)))
        first, last = edges[:-1], edges[1:] - 1.0
    else:
        first = last = np.unique(np.rint(np.linspace(0.0, float(others), _TRIED)))
    return ChannelCountProfile(outcome, others, first, last, above)
