"""The clone pair as a bound (docs/theorems/clones.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import (
    AmplificationBound,
    require_one_pure_round,
)
from shuffledp.accounting.engines.clone_curve import CloneCurve
from shuffledp.accounting.engines.clone_pair import ClonePairProfile, clone_count, one_budget_profile
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.errors import OutOfRegime
from shuffledp.guarantee import Kind
from shuffledp.numerics.interval import Enclosure
from shuffledp.setting import Setting


class ClonesBound(AmplificationBound):
    """The clone pair: any randomizer at one budget (2b), two-outcome randomizers at own budgets (2c).

    See docs/theorems/clones.md.
    """

    key = "clones"
    kind = Kind.CERTIFIED_UPPER
    reference = "clone theorem (own proof; the number of Feldman, McMillan, Talwar 2023), p = 2/(1+e^epsilon0)"

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Profile of the clone pair of one victim; see `AmplificationBound.one_round`."""
        self._check(setting)
        level = setting.budgets.index_of(epsilon0)
        if setting.budgets.levels == 1:
            return one_budget_profile(epsilon0, setting.budgets.n, coarse=False)
        return ClonePairProfile(epsilon0, clone_count(setting.budgets, level))

    def many_levels(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """With many levels, all victims are read off one curve (see `CloneCurve`)."""
        self._check(setting)
        return CloneCurve.of(setting.budgets, delta).epsilons(setting.budgets.epsilons[levels], delta)

    def any_victim(self, setting: Setting) -> Callable[[float], PrivacyProfile]:
        """The likeliest clone is left out of the count, whoever the victim is."""
        self._check(setting)
        shared = ClonePairProfile(1.0, clone_count(setting.budgets, 0), per_deviation=10.0)
        return lambda epsilon0: replace(shared, epsilon0=epsilon0, _known={})

    def _check(self, setting: Setting) -> None:
        require_one_pure_round(setting, self.key)
        if setting.budgets.levels == 1:
            return
        if setting.seen == "levels":
            raise OutOfRegime("clones lets users of different levels hide each other; with levels visible use 'levels'")
        if setting.seen == "users":
            raise OutOfRegime("clones with several budgets is not a bound for ordered outputs")
        if setting.law is None:
            raise OutOfRegime(
                "clones with several budgets needs a stated two-outcome randomizer; got 'any', whose reports may "
                "give their sender's level away"
            )
        if setting.discrete is None or not setting.discrete.two_point:
            raise OutOfRegime(
                f"clones with several budgets needs a two-outcome randomizer; got {setting.randomizer_name}"
            )
