"""The floor of dummies (D3) as a bound: what holds whatever all other participants do (docs/theorems/floor.md).

Colluding, missing and malicious users never touch it, nor does the number of users: it counts on nobody but the
shuffler. Several reports of one user and groups are hidden by the same dummies; rounds have dummies of their own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import MANY_LEVELS, AmplificationBound, epsilons_by_anchors
from shuffledp.accounting.engines.floor import MOST_REPORTS, floor_profile
from shuffledp.accounting.profiles.combined import composed
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.errors import OutOfRegime
from shuffledp.guarantee import Kind
from shuffledp.numerics.interval import Enclosure
from shuffledp.setting import Setting


class FloorBound(AmplificationBound):
    """Dummies alone, everybody else being the adversary's.

    See docs/theorems/floor.md.
    """

    key = "floor"
    kind = Kind.CERTIFIED_UPPER
    reference = "dummies of the shuffler alone, whatever everybody else sends (own proof)"

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Profile of (D3) for all reports that differ between neighbours; see `AmplificationBound.one_round`."""
        if setting.dummies is None:
            raise OutOfRegime("floor needs dummies; the setting has none")
        if setting.changed_reports > MOST_REPORTS:
            raise OutOfRegime(
                f"floor is computed for at most {MOST_REPORTS} reports of a group; got {setting.changed_reports}"
            )
        return floor_profile(setting.law, epsilon0, setting.dummies, reports=setting.changed_reports)

    def profile(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """The floor over all rounds; see `AmplificationBound.profile`."""
        setting.budgets.index_of(epsilon0)
        return composed(self.one_round(setting, epsilon0), setting.rounds)

    def level_epsilons(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """Level by level; of many levels a few are computed, because the floor rises with the budget."""
        epsilons = setting.budgets.epsilons[levels]
        if levels.size > MANY_LEVELS:
            capped = setting.changed_reports == setting.rounds == 1
            return epsilons_by_anchors(epsilons, delta, lambda e: composed(self.one_round(setting, e), setting.rounds),
                                       capped=capped)  # fmt: skip
        found = [self.profile(setting, float(epsilon0)).epsilon(delta) for epsilon0 in epsilons]
        return Enclosure(np.array([f.lower for f in found]), np.array([f.upper for f in found]))
