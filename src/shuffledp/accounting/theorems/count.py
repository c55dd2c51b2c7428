"""The count theorem: reports of two outcomes, exactly (docs/theorems/count.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import (
    AmplificationBound,
    level_alone,
    require_one_pure_round,
)
from shuffledp.accounting.engines.count import LEAST_BUDGET, likely_worst_vectors, worst_count, worst_curve
from shuffledp.accounting.engines.count_channel import channel_count, two_outcomes
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.theorems.local import LocalProfile
from shuffledp.budgets import Budgets
from shuffledp.errors import OutOfRegime
from shuffledp.guarantee import Kind
from shuffledp.numerics.interval import Enclosure
from shuffledp.randomizers.base import HiddenByFakes, ReportSets
from shuffledp.setting import Setting


def sends_bits(setting: Setting) -> bool:
    """Whether the stated randomizer's report is one bit, drawn by randomized response of the record or of a coin."""
    law = setting.law
    return isinstance(law, HiddenByFakes) and law.report_sets == ReportSets(2, disjoint=True)


class CountBound(AmplificationBound):
    """The worst divergence over all record vectors of users who send one bit each; of any report if records are bits.

    See docs/theorems/count.md.
    """

    key = "count"
    kind = Kind.CERTIFIED_UPPER
    reference = "count theorem (own proof): the largest divergence of the count of bits over all record vectors"

    def company(self, setting: Setting, budgets: Budgets, level: int, exposed: int) -> Budgets:
        """Those of the smallest budgets hide best, so they are missed most; of visible levels those of the own one."""
        if setting.seen != "levels":
            return super().company(setting, budgets, level, exposed)
        counts = budgets.counts.copy()
        counts[level] = max(int(counts[level]) - exposed, 1)
        return Budgets(budgets.epsilons, counts, budgets.deltas)

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Profile (C) of one victim; see `AmplificationBound.one_round`."""
        self._check(setting)
        if setting.seen == "levels":
            setting = level_alone(setting, epsilon0)
        channel = two_outcomes(setting.law)
        if channel is not None:
            return channel_count(channel, setting.budgets.n, above=True)
        if setting.budgets.n == 1 or epsilon0 < LEAST_BUDGET:
            return LocalProfile(epsilon0, 0.0)  # nobody to hide among, or nothing to hide
        return worst_count(setting.budgets, setting.budgets.index_of(epsilon0))

    def many_levels(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """With many levels, all victims are read off one curve."""
        self._check(setting)
        if setting.seen == "levels":
            raise OutOfRegime("count is not evaluated level by level for more than 32 levels; see 'clones'")
        channel = two_outcomes(setting.law)
        if channel is not None:  # everybody has the same chances, whatever the stated budget
            found = channel_count(channel, setting.budgets.n, above=True).epsilon(delta)
            return Enclosure(np.full(levels.size, found.lower), np.full(levels.size, found.upper))
        return worst_curve(setting.budgets, delta).epsilons(setting.budgets.epsilons[levels], delta)

    def any_victim(self, setting: Setting) -> Callable[[float], PrivacyProfile]:
        """The best company is left out, whoever the victim is."""
        self._check(setting)
        if setting.seen == "levels":
            raise OutOfRegime("count over rounds or groups stops at 32 visible levels; see 'clones'")
        channel = two_outcomes(setting.law)
        if channel is not None:
            alike = channel_count(channel, setting.budgets.n, above=True)
            return lambda _: alike
        shared = replace(worst_count(setting.budgets, 0), below=likely_worst_vectors(setting.budgets, None))
        return lambda epsilon0: (
            LocalProfile(epsilon0, 0.0) if epsilon0 < LEAST_BUDGET else replace(shared, epsilon0=epsilon0)
        )

    def _check(self, setting: Setting) -> None:
        require_one_pure_round(setting, self.key)
        if two_outcomes(setting.law) is not None:
            return  # everybody has the same chances, whatever the stated budgets
        several = setting.budgets.levels > 1 and setting.seen != "levels"
        if several and setting.seen == "users":
            raise OutOfRegime("count with several budgets is stated for unordered reports; got seen = users")
        if sends_bits(setting):
            return
        if setting.records != 2:
            raise OutOfRegime(
                "count needs reports of two outcomes (rr, one-bit, a channel), or records that take two values "
                f"(records = 2); got {setting.randomizer_name}"
            )
        if several:
            raise OutOfRegime(
                "count of two-valued records with several budgets needs reports of one bit: otherwise one "
                f"randomizer of one budget must serve everybody; got {setting.randomizer_name}"
            )
        if setting.law is None and setting.seen == "users":
            raise OutOfRegime("count needs the same randomizer at every step; 'any' with seen = users may be adaptive")
