"""The exact witness: whole reports of a stated discrete randomizer, all others on one record x2, one budget.

The others' reports are iid R(x2), so with r_b = R(x_b)/R(x2) and Y_j iid ~ R(x2) the divergence is exactly

    H(eps) = 1/n E( sum_{j <= n} r_0(Y_j) - e^eps r_1(Y_j) )_+,

which is (Z) with omega = R(x2) and gamma = 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

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
from shuffledp.guarantee import Kind
from shuffledp.numerics.floats import Upper
from shuffledp.numerics.interval import Interval
from shuffledp.setting import Setting


@dataclass(frozen=True, eq=False)
class RecordsProfile(PrivacyProfile):
    """Exact profile of one real pair of neighbours.

    Parameters
    ----------
    forward, backward : PrivacyProfile
        H(P, Q) and H(Q, P); the same object if they are equal.
    most : int
        As `PrivacyProfile.most_knots`.
    """

    tolerance: ClassVar[float] = 1e-5

    forward: PrivacyProfile
    backward: PrivacyProfile
    most: int = MOST_KNOTS

    @property
    def most_knots(self) -> int:
        """The largest number of knots, as stated."""
        return self.most

    @property
    def vanishes_at(self) -> Upper:
        """Where both directions have vanished."""
        return max(self.forward.vanishes_at, self.backward.vanishes_at)

    @property
    def directed(self) -> bool:
        """Whether the two directions differ."""
        return self.forward is not self.backward

    def delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """Return delta in both directions."""
        first = self.forward.delta(epsilon)
        return first, self.backward.delta(epsilon) if self.directed else first

    def delta_at(self, epsilon: float) -> Interval:
        """Return the larger direction."""
        first, second = self.delta_pair(epsilon)
        return Interval(max(first.lower, second.lower), max(first.upper, second.upper))

    def guess_epsilon(self, delta: float) -> float | None:
        """Gaussian limit, a first guess."""
        return self.forward.guess_epsilon(delta)


class ReportsWitness(AmplificationBound):
    """Whole reports of the stated randomizer, the others on one record.

    See docs/theorems/reports-exact.md.
    """

    key = "reports-exact"
    kind = Kind.CERTIFIED_LOWER
    reference = "exact shuffled reports of the stated randomizer, the others on one record"

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Profile of the witness for one victim; see `AmplificationBound.one_round`."""
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
        forward = OneBudgetProfile(pairs[0].largest_loss, pairs[0], n, enclosed=True)
        if pairs[1] is pairs[0]:
            return RecordsProfile(forward, forward)
        return RecordsProfile(forward, OneBudgetProfile(pairs[1].largest_loss, pairs[1], n, enclosed=True))
