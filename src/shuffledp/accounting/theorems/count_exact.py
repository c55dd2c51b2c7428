"""The count theorem as a witness: record vectors that are attained (docs/theorems/count-exact.md)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import (
    MANY_LEVELS,
    AmplificationBound,
    level_alone,
    require_one_pure_round,
    shows_levels,
)
from shuffledp.accounting.engines.count import LEAST_BUDGET, VectorProfile, likely_worst_vectors
from shuffledp.accounting.engines.count_attack import (
    epsilons_among_all,
    epsilons_among_equals,
    rr_count_profile,
    victims_among_all,
)
from shuffledp.accounting.engines.count_channel import channel_count, two_outcomes
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.theorems.count import sends_bits
from shuffledp.accounting.theorems.local import LocalProfile
from shuffledp.errors import OutOfRegime
from shuffledp.guarantee import Kind
from shuffledp.numerics.interval import Enclosure
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
        self._check(setting)
        channel = two_outcomes(setting.law)
        if shows_levels(setting):
            setting = level_alone(setting, epsilon0)
        if channel is not None:
            return channel_count(channel, setting.budgets.n, above=False)
        if setting.budgets.n == 1 or epsilon0 < LEAST_BUDGET:
            return LocalProfile(epsilon0, 0.0)
        if setting.law is not None and not sends_bits(setting):  # two outcomes, drawn some other way: others on x0
            return rr_count_profile(setting.budgets, epsilon0)
        return VectorProfile(epsilon0, likely_worst_vectors(setting.budgets, setting.budgets.index_of(epsilon0)))

    def many_levels(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """With many levels, one count of all users serves every victim, the others on x0."""
        self._check(setting)
        budgets = setting.budgets
        if two_outcomes(setting.law) is not None:  # everybody has the same chances, whatever the stated budgets
            raise OutOfRegime(f"count-exact of a channel is not evaluated for more than {MANY_LEVELS} levels")
        epsilons = budgets.epsilons[levels]
        if shows_levels(setting):
            found = epsilons_among_equals(epsilons, budgets.counts[levels].astype(np.float64) - 1.0, delta)
        else:
            found = epsilons_among_all(budgets, epsilons, delta)
        return Enclosure(found, found)

    def any_victim(self, setting: Setting) -> Callable[[float], PrivacyProfile]:
        """The same count of all users for every victim, the others on x0."""
        self._check(setting)
        if shows_levels(setting) or two_outcomes(setting.law) is not None:
            raise OutOfRegime(
                f"count-exact over rounds or groups stops at {MANY_LEVELS} levels that show, or of a channel"
            )
        return victims_among_all(setting.budgets)

    def _check(self, setting: Setting) -> None:
        require_one_pure_round(setting, self.key)
        if two_outcomes(setting.law) is not None:
            return
        if setting.seen == "users" and setting.budgets.levels > 1:
            raise OutOfRegime("count-exact with several budgets is stated for unordered reports; got seen = users")
        two_point = setting.discrete is not None and setting.discrete.two_point
        if setting.law is not None and not (two_point or sends_bits(setting)):
            raise OutOfRegime(f"count-exact attacks reports of two outcomes; got {setting.randomizer_name}")
