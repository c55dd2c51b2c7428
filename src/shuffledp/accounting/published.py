"""The papers' formulas, exactly as published: shown beside the certified numbers, never instead of them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import AmplificationBound
from shuffledp.accounting.gaussian import GaussianProfile
from shuffledp.accounting.profile import PrivacyProfile
from shuffledp.budgets import Budgets
from shuffledp.errors import OutOfRegime
from shuffledp.guarantee import Kind
from shuffledp.numerics.interval import Enclosure
from shuffledp.setting import Setting


def gspa_mu(budgets: Budgets) -> float:
    """Return the mu of GSPA Theorem 2: sqrt(2/(sum_i a_i - max_i a_i)), a_i = (1 - delta_i)/(1 + e^epsilon_i).

    Parameters
    ----------
    budgets : Budgets
        Every user's budget; the formula makes no difference between victims.
    """
    low = np.exp(-budgets.epsilons)
    shares = (1.0 - budgets.deltas) * low / (1.0 + low)
    rest = float(shares @ budgets.counts) - float(shares.max())
    return math.sqrt(2.0 / rest) if budgets.n > 1 and rest > 0.0 else math.inf


class GspaBound(AmplificationBound):
    """GSPA Theorem 2 with its error term dropped, as the paper uses it; asymptotic, and wrong in places.

    See docs/theorems/gspa.md.
    """

    key = "gspa"
    kind = Kind.ASYMPTOTIC
    reference = "Chen, Cao, Ge (AAAI 2024), Theorem 2 and Fact 3, as published"

    def profile(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """The same Gaussian profile for every victim; see `AmplificationBound.profile`."""
        if setting.rounds != 1:
            raise OutOfRegime(f"gspa covers one round; got rounds = {setting.rounds}")
        if setting.seen == "levels" and setting.budgets.levels > 1:
            raise OutOfRegime("gspa lets users of different levels hide each other; levels are visible here")
        setting.budgets.index_of(epsilon0)
        return GaussianProfile(gspa_mu(setting.budgets))

    def level_epsilons(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """One number for all."""
        found = self.profile(setting, float(setting.budgets.epsilons[0])).epsilon(delta)
        return Enclosure(np.full(levels.size, found.lower), np.full(levels.size, found.upper))
