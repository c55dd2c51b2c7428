"""The clone pair as a bound (docs/theorems/clones.md)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import (
    MANY_LEVELS,
    AmplificationBound,
    level_alone,
    remembered,
    require_one_pure_round,
    require_plain,
)
from shuffledp.accounting.profiles.composition import SmallestProfile
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.theorems.blanket.bound import BlanketBound, has_blanket
from shuffledp.accounting.theorems.clones.pair import CloneCurve, clone_pair, one_budget_profile, shared_clone_pairs
from shuffledp.accounting.theorems.local import LocalProfile
from shuffledp.budgets import Budgets
from shuffledp.errors import OutOfRegime
from shuffledp.numerics.floats import Enclosure, FloatArray
from shuffledp.setting import Kind, Setting


class AmongEquals(AmplificationBound):
    """Base of bounds in which a user is hidden only by the users of the same epsilon0, whatever their delta0."""

    def company(self, setting: Setting, budgets: Budgets, level: int, exposed: int) -> Budgets:
        """Remove ``exposed`` users from the victim's own level, the worst case; return the remaining population.

        At least one user of each of its budgets is kept. See `AmplificationBound.company`.
        """
        counts = budgets.counts.copy()
        same = budgets.epsilons == budgets.epsilons[level]
        counts[same] = np.maximum(counts[same] - exposed, 1)
        return Budgets(budgets.epsilons, counts, budgets.deltas)


class ClonesBound(AmongEquals):
    """Upper bound by the clone pair, from all users if they hide each other, else from the victim's own level.

    All users hide each other if there is one budget, whatever the randomizer (2b), or if a two-outcome randomizer is
    stated (2c). Otherwise each level is treated as if it were visible; for a stated randomizer its common blanket is
    used as well. See docs/theorems/clones.md.
    """

    key = "clones"
    kind = Kind.CERTIFIED_UPPER
    reference = "clone theorem (own proof; the number of Feldman, McMillan, Talwar 2023), p = 2/(1+e^epsilon0)"

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the clone pair's profile for a victim of budget ``epsilon0``; see `AmplificationBound.one_round`."""
        if not self._together(setting):
            return self._in_level(setting, epsilon0)
        require_one_pure_round(setting, self.key)
        return clone_pair(setting.budgets, setting.budgets.index_of(epsilon0))

    def company(self, setting: Setting, budgets: Budgets, level: int, exposed: int) -> Budgets:
        """Remove the exposed users in the worst way: those of the smallest budgets, or of the victim's own level.

        The latter where only the users of one level hide each other. See `AmplificationBound.company`.
        """
        if self._together(setting):
            return AmplificationBound.company(self, setting, budgets, level, exposed)
        return super().company(setting, budgets, level, exposed)

    def level_epsilons(
        self, setting: Setting, delta: float, levels: NDArray[np.int64], ceilings: FloatArray | None = None
    ) -> Enclosure:
        """Enclose each listed level's epsilon (nats); refuse many levels if 'blanket' is known to be smaller.

        'blanket' counts the users of all levels, a clone pair of one level only its own. See
        `AmplificationBound.level_epsilons`.
        """
        if self._together(setting):
            return super().level_epsilons(setting, delta, levels, ceilings)
        withheld = setting.seen in ("reports", "sum")
        common = setting.discrete is not None and setting.discrete.mixture
        many = MANY_LEVELS if setting.rounds == 1 else 1
        if setting.budgets.levels > many and withheld and common:
            raise OutOfRegime(
                f"clones of one level is never below 'blanket', which counts the users of every level; not evaluated "
                f"for more than {MANY_LEVELS} levels, nor for several rounds"
            )
        return self.level_by_level(setting, delta, levels, ceilings)

    def many_levels(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """Enclose each listed level's epsilon (nats) from one curve for all victims, who hide each other.

        See `AmplificationBound.many_levels`.
        """
        require_one_pure_round(setting, self.key)
        return CloneCurve.of(setting.budgets, delta).epsilons(setting.budgets.epsilons[levels], delta)

    def rises_with_budget(self, setting: Setting) -> bool:
        """Return whether all users hide each other: only then is a larger budget's epsilon at least as large.

        A level by itself may have few users.
        """
        return self._together(setting)

    def any_victim(self, setting: Setting) -> Callable[[float], PrivacyProfile]:
        """Return a function from a victim's budget to a clone pair's profile; all victims share one count of clones.

        That count leaves out the user who is most likely to be a clone, so it holds whoever the victim is. See
        `AmplificationBound.any_victim`.
        """
        if not self._together(setting):
            raise OutOfRegime("clones of one level has no victim that stands for the other levels")
        require_one_pure_round(setting, self.key)
        return shared_clone_pairs(setting.budgets)

    def _together(self, setting: Setting) -> bool:
        """Whether users hide each other whatever their level: there is one, or reports of two outcomes do not show it.

        Linked rounds of one user are one report with more outcomes.
        """
        if setting.budgets.levels == 1:
            return True
        two_point = setting.discrete is not None and setting.discrete.two_point
        return two_point and setting.seen in ("reports", "sum") and not self.links_matter(setting)

    def _in_level(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the better of the clone pair and the common blanket inside the victim's level."""
        require_plain(setting, self.key)
        budgets = setting.budgets
        if setting.seen == "users":
            raise OutOfRegime("clones with several budgets is not a bound for ordered outputs")
        level = budgets.index_of(epsilon0)
        n, delta0 = int(budgets.counts[level]), float(budgets.deltas[level])
        if n == 1:
            return LocalProfile(epsilon0, delta0)  # nobody to hide among
        if delta0 > 0.0:
            if setting.law is None:
                raise OutOfRegime(f"clones needs a stated randomizer, or delta0 = 0; got any with delta0 = {delta0:g}")
            return remembered(BlanketBound, level_alone(setting, epsilon0), epsilon0)
        clones = one_budget_profile(epsilon0, n, coarse=budgets.levels > MANY_LEVELS)
        if setting.law is None or (setting.discrete is not None and setting.discrete.two_point):
            return clones
        alone = level_alone(setting, epsilon0)
        if not has_blanket(alone, epsilon0):
            return clones
        return SmallestProfile((clones, remembered(BlanketBound, alone, epsilon0)))
