"""The released sum of noisy reports as a witness (docs/theorems/sum-exact.md)."""

from __future__ import annotations

from shuffledp.accounting.theorems.sum import SumBound
from shuffledp.guarantee import Kind
from shuffledp.setting import Setting


class SumWitness(SumBound):
    """The same pair read as a witness: the victim holds one end of the range or the other.

    See docs/theorems/sum-exact.md.
    """

    key = "sum-exact"
    kind = Kind.CERTIFIED_LOWER
    reference = "sum of noisy reports, the victim at one end of the range or at the other"

    def _shift(self, setting: Setting) -> float:
        """The reports of a group's exposed members are known, so they are no part of an attack on the sum."""
        changed = min(setting.group_size, setting.budgets.n - setting.exposed)
        return float(changed * setting.reports_per_user)
