"""The released sum of noisy reports as an upper bound (docs/theorems/sum.md)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import MANY_LEVELS, AmplificationBound
from shuffledp.accounting.engines.noise_sum import SummedNoise
from shuffledp.accounting.profiles.profile import PrivacyProfile, check_delta
from shuffledp.errors import OutOfRegime
from shuffledp.guarantee import Kind
from shuffledp.numerics.interval import Enclosure
from shuffledp.setting import Setting


class SumBound(AmplificationBound):
    """Only the sum of the reports is released, and the reports carry additive noise.

    See docs/theorems/sum.md.
    """

    key = "sum"
    kind = Kind.CERTIFIED_UPPER
    reference = "the noises add: Gaussian profile (Balle and Wang 2018), best threshold of the summed Laplace noise"

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """The same profile for every victim: her own noise is in the sum; see `AmplificationBound.one_round`."""
        return self.profile(setting, epsilon0)

    def profile(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Profile of all changed reports and rounds; see `AmplificationBound.profile`.

        m changed reports move the sum by at most m, so groups need no chain of neighbours; independent Gaussian
        rounds are one.
        """
        noises, exposed = self._noises(setting), float(setting.exposed * setting.reports_per_user)
        level = setting.budgets.index_of(epsilon0)
        left = noises.without_widest(exposed, level, float(setting.reports_per_user))
        return left.profile(self._shift(setting), setting.rounds)

    def level_epsilons(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """One evaluation for all levels, unless exposed users make a difference among a few levels."""
        target, exposed = check_delta(delta), setting.exposed * setting.reports_per_user
        if exposed and setting.budgets.levels <= MANY_LEVELS:
            return super().level_epsilons(setting, target, levels)
        noises = self._noises(setting)
        # a victim who would be among the exposed keeps her noise, and another one's narrower noise goes instead
        left = noises.without_widest(exposed, 0, 0.0)
        found = left.profile(self._shift(setting), setting.rounds).epsilon(target)
        lower = np.full(levels.size, found.lower)
        gone = left.counts[levels] == 0.0
        if gone.any():  # a witness with nobody exposed is one with some
            lower[gone] = noises.profile(self._shift(setting), setting.rounds).epsilon(target).lower
        return Enclosure(lower, np.full(levels.size, found.upper))

    def _shift(self, setting: Setting) -> float:
        """How far the replaced records move the sum, at most: one width of the range per report."""
        return float(setting.changed_reports)

    def _noises(self, setting: Setting) -> SummedNoise:
        if setting.seen != "sum":
            raise OutOfRegime(f"{self.key} is for released sums; got seen = {setting.seen}")
        law, budgets = setting.adds_noise, setting.budgets
        if law is None:
            raise OutOfRegime(
                f"{self.key} needs additive noise (laplace, gaussian); got {setting.randomizer_name}: the sum of "
                "two-outcome reports is their count, which the bounds for reports cover"
            )
        counts = budgets.counts.astype(np.float64) * setting.reports_per_user
        return SummedNoise(law.noise, law.scale(budgets.epsilons, budgets.deltas), counts)
