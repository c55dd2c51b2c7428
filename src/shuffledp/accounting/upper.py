"""The certified upper bounds: clones (2a, 2b), levels visible, and the victim's own budget."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.blanket import BlanketBound
from shuffledp.accounting.bound import (
    MANY_LEVELS,
    AmplificationBound,
    SmallestProfile,
    epsilons_by_anchors,
    level_alone,
    require_one_pure_round,
)
from shuffledp.accounting.clones import ClonePairProfile, clone_count, one_budget_profile
from shuffledp.accounting.curve import CloneCurve
from shuffledp.accounting.profile import PrivacyProfile, check_delta
from shuffledp.errors import OutOfRegime
from shuffledp.guarantee import Kind
from shuffledp.numerics.floats import EPS
from shuffledp.numerics.interval import Enclosure, Interval
from shuffledp.setting import Setting


class ClonesBound(AmplificationBound):
    """The clone pair: any randomizer at one budget (2b), two-outcome randomizers at own budgets (2c).

    See docs/theorems/clones.md.
    """

    key = "clones"
    kind = Kind.CERTIFIED_UPPER
    reference = "clone theorem (own proof; the number of Feldman, McMillan, Talwar 2023), p = 2/(1+e^epsilon0)"

    def profile(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Profile of the clone pair of one victim; see `AmplificationBound.profile`."""
        self._check(setting)
        level = setting.budgets.index_of(epsilon0)
        if setting.budgets.levels == 1:
            return one_budget_profile(epsilon0, setting.budgets.n, coarse=False)
        return ClonePairProfile(epsilon0, clone_count(setting.budgets, level))

    def level_epsilons(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """With many levels, all victims are read off one curve (see `CloneCurve`)."""
        if setting.budgets.levels <= MANY_LEVELS:
            return super().level_epsilons(setting, delta, levels)
        self._check(setting)
        return CloneCurve.of(setting.budgets, delta).epsilons(setting.budgets.epsilons[levels], delta)

    def _check(self, setting: Setting) -> None:
        require_one_pure_round(setting, self.key)
        if setting.budgets.levels == 1:
            return
        if setting.seen == "levels":
            raise OutOfRegime("clones lets users of different levels hide each other; with levels visible use 'levels'")
        if setting.seen == "users":
            raise OutOfRegime("clones with several budgets is not a bound for ordered outputs")
        if isinstance(setting.randomizer, str):
            raise OutOfRegime(
                "clones with several budgets needs a stated two-outcome randomizer; got 'any', whose reports may "
                "give their sender's level away"
            )
        if not setting.randomizer.pair_blanket(1.0).two_point:
            raise OutOfRegime(
                f"clones with several budgets needs a two-outcome randomizer; got {setting.randomizer.name}"
            )


class LevelsBound(AmplificationBound):
    """Levels visible: users hide only among those of their own level; valid whenever levels are withheld too.

    See docs/theorems/levels.md.
    """

    key = "levels"
    kind = Kind.CERTIFIED_UPPER
    reference = "clone theorem within the victim's own level, n = n_g"

    def profile(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """The better of the clone pair and the common blanket inside the level."""
        require_one_pure_round(setting, self.key)
        budgets = setting.budgets
        if setting.seen == "users" and budgets.levels > 1:
            raise OutOfRegime("levels needs budgets attached to users; with seen = users they belong to steps")
        n = int(budgets.counts[budgets.index_of(epsilon0)])
        if n == 1:
            return LocalProfile(epsilon0, 0.0)  # nobody to hide among
        clones = one_budget_profile(epsilon0, n, coarse=budgets.levels > MANY_LEVELS)
        if isinstance(setting.randomizer, str) or setting.randomizer.pair_blanket(1.0).two_point:
            return clones
        return SmallestProfile((clones, BlanketBound().profile(level_alone(setting, epsilon0), epsilon0)))

    def level_epsilons(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """Level by level; left out where another bound is certainly smaller and levels are many."""
        family, budgets = setting.randomizer, setting.budgets
        withheld = setting.seen in ("reports", "sum")
        if budgets.levels > MANY_LEVELS and withheld and not isinstance(family, str):
            raise OutOfRegime(
                f"levels is never below 'blanket', which counts the users of every level; "
                f"not evaluated for more than {MANY_LEVELS} levels"
            )
        return super().level_epsilons(setting, delta, levels)


@dataclass(frozen=True)
class LocalProfile(PrivacyProfile):
    """The worst profile of an (epsilon0, delta0)-LDP report seen by itself (Kairouz, Oh, Viswanath 2015).

    delta(eps) = delta0 + (1 - delta0) (e^epsilon0 - e^eps)/(1 + e^epsilon0) for eps < epsilon0, then delta0.
    """

    epsilon0: float
    delta0: float

    @property
    def vanishes_at(self) -> float:
        """The local budget, if it is pure."""
        return self.epsilon0 if self.delta0 == 0.0 else math.inf

    def delta_at(self, epsilon: float) -> Interval:
        """As in the class docstring, rounded outward."""
        part = max(-math.expm1(min(epsilon - self.epsilon0, 0.0)), 0.0) / (1.0 + math.exp(-self.epsilon0))
        value = self.delta0 + (1.0 - self.delta0) * part
        return Interval(value * (1 - 16 * EPS), value * (1 + 16 * EPS))

    def epsilon(self, delta: float) -> Interval:
        """Closed form epsilon0 + log(1 - pure (1 + e^-epsilon0)), pure = (delta - delta0)/(1 - delta0).

        Infinite below delta0; epsilon0 at delta0 exactly.
        """
        target = check_delta(delta)
        if target < self.delta0:
            return Interval(math.inf, math.inf)
        pure = (target - self.delta0) / (1.0 - self.delta0)
        room = pure * (1.0 + math.exp(-self.epsilon0))
        if room >= 1.0:
            return Interval(0.0, 0.0)
        value, doubt = self.epsilon0 + math.log1p(-room), 16.0 * EPS * (self.epsilon0 + 1.0 / (1.0 - room))
        return Interval(max(value - doubt, 0.0), min(max(value + doubt, 0.0), self.epsilon0))


class LocalBound(AmplificationBound):
    """Central privacy is never worse than the victim's own local budget: shuffling is post-processing.

    See docs/theorems/local.md.
    """

    key = "local"
    kind = Kind.CERTIFIED_UPPER
    reference = "post-processing of the victim's own (epsilon0, delta0)-LDP report"

    def profile(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """The local profile itself, whoever else takes part."""
        if setting.rounds != 1:
            raise OutOfRegime(f"local covers one round; got rounds = {setting.rounds}")
        level = setting.budgets.index_of(epsilon0)
        return LocalProfile(epsilon0, float(setting.budgets.deltas[level]))

    def level_epsilons(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """Level by level; of more than a thousand, those between are rounded up to the next one computed."""
        if levels.size <= 1000 or not setting.budgets.is_pure or setting.rounds != 1:
            return super().level_epsilons(setting, delta, levels)
        return epsilons_by_anchors(setting.budgets.epsilons[levels], delta, lambda e: LocalProfile(e, 0.0), 1000)
