"""Levels visible: users hide only among those of their own level (docs/theorems/levels.md)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import (
    MANY_LEVELS,
    AmplificationBound,
    level_alone,
    remembered,
    require_plain,
)
from shuffledp.accounting.engines.clone_pair import one_budget_profile
from shuffledp.accounting.profiles.combined import SmallestProfile
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.theorems.blanket import BlanketBound, has_blanket
from shuffledp.accounting.theorems.local import LocalProfile
from shuffledp.budgets import Budgets
from shuffledp.errors import OutOfRegime
from shuffledp.guarantee import Kind
from shuffledp.numerics.interval import Enclosure
from shuffledp.setting import Setting


class AmongEquals(AmplificationBound):
    """A bound of a user who hides among the users of the same epsilon0 only, whatever their delta0."""

    def company(self, setting: Setting, budgets: Budgets, level: int, exposed: int) -> Budgets:
        """The exposed users may all be of the victim's own level."""
        counts = budgets.counts.copy()
        same = budgets.epsilons == budgets.epsilons[level]
        counts[same] = np.maximum(counts[same] - exposed, 1)
        return Budgets(budgets.epsilons, counts, budgets.deltas)


class LevelsBound(AmongEquals):
    """Levels visible: users hide only among those of their own level; valid whenever levels are withheld too.

    See docs/theorems/levels.md.
    """

    key = "levels"
    kind = Kind.CERTIFIED_UPPER
    reference = "clone theorem within the victim's own level, n = n_g"

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """The better of the clone pair and the common blanket inside the level."""
        require_plain(setting, self.key)
        budgets = setting.budgets
        if setting.seen == "users" and budgets.levels > 1:
            raise OutOfRegime("levels needs budgets attached to users; with seen = users they belong to steps")
        level = budgets.index_of(epsilon0)
        n, delta0 = int(budgets.counts[level]), float(budgets.deltas[level])
        if n == 1:
            return LocalProfile(epsilon0, delta0)  # nobody to hide among
        if delta0 > 0.0:
            if setting.law is None:
                raise OutOfRegime(f"levels needs a stated randomizer, or delta0 = 0; got any with delta0 = {delta0:g}")
            return remembered(BlanketBound, level_alone(setting, epsilon0), epsilon0)
        clones = one_budget_profile(epsilon0, n, coarse=budgets.levels > MANY_LEVELS)
        if setting.law is None or (setting.discrete is not None and setting.discrete.two_point):
            return clones
        alone = level_alone(setting, epsilon0)
        if not has_blanket(alone, epsilon0):
            return clones
        return SmallestProfile((clones, remembered(BlanketBound, alone, epsilon0)))

    def level_epsilons(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """Level by level; left out where another bound is certainly smaller and levels are many."""
        withheld = setting.seen in ("reports", "sum")
        common = setting.discrete is not None and setting.discrete.mixture
        many = MANY_LEVELS if setting.rounds == 1 else 1
        if setting.budgets.levels > many and withheld and common:
            raise OutOfRegime(
                f"levels is never below 'blanket', which counts the users of every level; not evaluated for more than "
                f"{MANY_LEVELS} levels, nor for several rounds"
            )
        found = [self.profile(setting, float(setting.budgets.epsilons[level])).epsilon(delta) for level in levels]
        return Enclosure(np.array([f.lower for f in found]), np.array([f.upper for f in found]))
