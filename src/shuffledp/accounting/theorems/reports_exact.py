"""The exact witness: whole reports of a stated discrete randomizer, all others on one record x2, one budget.

The others' reports are iid R(x2), so with r_b = R(x_b)/R(x2) and Y_j iid ~ R(x2) the divergence is exactly

    H(eps) = 1/n E( sum_{j <= n} r_0(Y_j) - e^eps r_1(Y_j) )_+,

which is (Z) with omega = R(x2) and gamma = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shuffledp.accounting.bound import (
    AmplificationBound,
    level_alone,
    refuse_third_records,
    require_plain,
    shows_levels,
)
from shuffledp.accounting.profiles.knots import MOST_KNOTS
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.theorems.blanket.pairs import OneBudgetProfile
from shuffledp.errors import OutOfRegime
from shuffledp.numerics.floats import FloatArray, Interval, Upper
from shuffledp.randomizers.base import PairBlanket
from shuffledp.setting import Kind, Setting


class OneRecordProfile(OneBudgetProfile):
    """One direction of the divergence of whole reports, the others all on one record."""

    tolerance: ClassVar[float] = 1e-5


Crowd = tuple[tuple[PairBlanket, ...], FloatArray]
"""The forward pairs of a crowd's laws, one for each level, and how many reports each level has."""


_NO_SPREAD = 1e-180
"""Least variance of a sum that is told from 0; its power 3/2 is a double above 0."""


def forward_is_larger(crowd: Crowd, epsilon: float) -> bool:
    """Return whether H(P, Q) is probably larger than H(Q, P) at e^epsilon, from three moments; nothing is certified.

    Parameters
    ----------
    crowd : tuple
        The forward pairs of the levels' laws, and the numbers of reports, shape (levels,).
    epsilon : float
        Nats, at least 0, finite.
    """
    grow, tails = math.exp(min(epsilon, 100.0)), list[float]()
    for swapped in (False, True):
        sums = np.zeros(3)
        for pair, count in zip(*crowd, strict=True):
            own, other = (pair.ratios1, pair.ratios0) if swapped else (pair.ratios0, pair.ratios1)
            step = np.clip(own - grow * other, -1e100, 1e100)
            mean = float(pair.masses @ step)
            sums += count * np.array([mean, pair.masses @ (step - mean) ** 2, pair.masses @ (step - mean) ** 3])
        variance = max(float(sums[1]), _NO_SPREAD)
        z = -float(sums[0]) / math.sqrt(variance)
        tails.append(-0.5 * z * z + float(sums[2]) / variance**1.5 * (z * z * z) / 6.0)
    return not tails[1] > tails[0]


@dataclass(frozen=True, eq=False)
class RecordsProfile(PrivacyProfile):
    """Exact profile of one real pair of neighbours, from its two directions.

    Parameters
    ----------
    forward, backward : PrivacyProfile
        H(P, Q) and H(Q, P), P and Q what is released for the two neighbours; the same object if they are equal.
    most : int
        Largest number of knots of its table.
    crowd : tuple, optional
        The forward pairs of the levels' laws, and the numbers of reports; it tells which direction to search first.
    """

    tolerance: ClassVar[float] = 1e-5

    forward: PrivacyProfile
    backward: PrivacyProfile
    most: int = MOST_KNOTS
    crowd: Crowd | None = None

    @property
    def most_knots(self) -> int:
        """Largest number of knots of its table, as given."""
        return self.most

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats) from which on both directions' deltas are 0."""
        return max(self.forward.vanishes_at, self.backward.vanishes_at)

    @property
    def directed(self) -> bool:
        """Whether the two directions H(P, Q) and H(Q, P) are different profiles."""
        return self.forward is not self.backward

    def delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """Enclose H(P, Q) and H(Q, P) at e^epsilon."""
        first = self.forward.delta(epsilon)
        return first, self.backward.delta(epsilon) if self.directed else first

    def delta_at(self, epsilon: float) -> Interval:
        """Enclose the larger of H(P, Q) and H(Q, P) at e^epsilon."""
        first, second = self.delta_pair(epsilon)
        return Interval(max(first.lower, second.lower), max(first.upper, second.upper))

    def guess_epsilon(self, delta: float) -> float | None:
        """Return the first guess of epsilon(delta), nats, of the forward direction; None if it has none."""
        return self.forward.guess_epsilon(delta)

    def _inverse(self, target: float) -> Interval:
        """Return the larger of both directions' epsilons; the second one is searched only if it may be the larger."""
        guess = self.guess_epsilon(target)
        ahead = self.crowd is None or guess is None or forward_is_larger(self.crowd, guess)
        likely, other = (self.forward, self.backward) if ahead else (self.backward, self.forward)
        first = likely.epsilon(target)
        if other is likely or not math.isfinite(first.upper) or other.delta_above(first.upper) <= target:
            return first
        second = other.epsilon(target)
        return Interval(max(first.lower, second.lower), max(first.upper, second.upper))


class ReportsWitness(AmplificationBound):
    """Lower bound by the exact divergence of whole reports of the stated randomizer, the other users on one record.

    See docs/theorems/reports-exact.md.
    """

    key = "reports-exact"
    kind = Kind.CERTIFIED_LOWER
    reference = "exact shuffled reports of the stated randomizer, the others on one record"

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the profile of the attack on a victim of budget ``epsilon0``; see `AmplificationBound.one_round`."""
        require_plain(setting, self.key)
        refuse_third_records(setting, self.key)
        family = setting.discrete
        if family is None:
            raise OutOfRegime(f"reports-exact needs a stated discrete randomizer; got {setting.randomizer_name}")
        if setting.seen == "sum":
            raise OutOfRegime("reports-exact needs the reports themselves; only their sum is seen")
        if shows_levels(setting):
            setting = level_alone(setting, epsilon0)
        if setting.budgets.levels > 1:
            raise OutOfRegime(
                f"reports-exact needs others with one budget; got {setting.budgets.levels} levels that do not show"
            )
        pairs = family.witness_pairs(epsilon0)
        if pairs is None:
            raise OutOfRegime(f"reports-exact has nothing to add to counting reports of {setting.randomizer_name}")
        n = setting.budgets.n
        forward = OneRecordProfile(pairs[0].largest_loss, pairs[0], n, enclosed=True)
        if pairs[1] is pairs[0]:
            return RecordsProfile(forward, forward)
        backward = OneRecordProfile(pairs[1].largest_loss, pairs[1], n, enclosed=True)
        return RecordsProfile(forward, backward, crowd=((pairs[0],), np.array([float(n)])))
