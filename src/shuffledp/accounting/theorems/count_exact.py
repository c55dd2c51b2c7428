"""The count theorem as a witness: record vectors that are attained (docs/theorems/count-exact.md)."""

from __future__ import annotations

from shuffledp.accounting.bound import AmplificationBound, level_alone, require_one_pure_round, shows_levels
from shuffledp.accounting.engines.count import LEAST_BUDGET, VectorProfile, likely_worst_vectors
from shuffledp.accounting.engines.count_channel import channel_count, two_outcomes
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.theorems.count import sends_bits
from shuffledp.accounting.theorems.local import LocalProfile
from shuffledp.errors import OutOfRegime
from shuffledp.guarantee import Kind
from shuffledp.setting import Setting


class CountWitness(AmplificationBound):
    """Binary randomized response, the others on the worst of many record vectors: attained by real neighbours.

    See docs/theorems/count-exact.md.
    """

    key = "count-exact"
    kind = Kind.CERTIFIED_LOWER
    reference = "exact count of shuffled bits, the others on the worst record vector found"

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Profile of the witness for one victim; see `AmplificationBound.one_round`."""
        require_one_pure_round(setting, self.key)
        channel = two_outcomes(setting.law)
        if channel is None and setting.seen == "users" and setting.budgets.levels > 1:
            raise OutOfRegime("count-exact with several budgets is stated for unordered reports; got seen = users")
        if setting.law is not None and channel is None and not sends_bits(setting):
            raise OutOfRegime(f"count-exact attacks reports of one bit; got {setting.randomizer_name}")
        if shows_levels(setting):
            setting = level_alone(setting, epsilon0)
        if channel is not None:
            return channel_count(channel, setting.budgets.n, above=False)
        if setting.budgets.n == 1 or epsilon0 < LEAST_BUDGET:
            return LocalProfile(epsilon0, 0.0)
        return VectorProfile(epsilon0, likely_worst_vectors(setting.budgets, setting.budgets.index_of(epsilon0)))
