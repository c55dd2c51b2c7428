"""The equal crowd as a witness: added noise, ordered outputs of several budgets (docs/theorems/equal-crowd.md)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import MANY_LEVELS, AmplificationBound, level_alone, require_plain, shows_levels
from shuffledp.accounting.engines.blanket import LargestProfile
from shuffledp.accounting.engines.crowd import CrowdProfile, gaussian_pair, laplace_pair
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.theorems.reports_exact import RecordsProfile
from shuffledp.budgets import Budgets
from shuffledp.errors import OutOfRegime
from shuffledp.guarantee import Kind
from shuffledp.numerics.interval import Enclosure
from shuffledp.randomizers.base import NoiseLaw, PairBlanket
from shuffledp.randomizers.linked import SameRecord
from shuffledp.setting import Setting

_Both = tuple[PairBlanket, PairBlanket]


class EqualCrowdWitness(AmplificationBound):
    """All others on one record; the exact divergence of what is seen, or of the windows that it falls into.

    See docs/theorems/equal-crowd.md.
    """

    key = "equal-crowd"
    kind = Kind.CERTIFIED_LOWER
    reference = "exact divergence of the reports, the others all on one record (own computation)"

    def company(self, setting: Setting, budgets: Budgets, level: int, exposed: int) -> Budgets:
        """With budgets that belong to steps nobody knows whose steps are exposed: the attack does without."""
        if setting.seen == "users" and budgets.levels > 1:
            return budgets
        return super().company(setting, budgets, level, exposed)

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Profile of the worst attack tried; see `AmplificationBound.one_round`."""
        require_plain(setting, self.key)
        if setting.seen == "sum":
            raise OutOfRegime("equal-crowd needs the reports themselves; only their sum is seen")
        steps = setting.seen == "users" and setting.budgets.levels > 1
        if setting.adds_noise is None and not steps:
            raise OutOfRegime("equal-crowd of discrete reports with one budget is 'count-exact' or 'reports-exact'")
        if shows_levels(setting) and not steps:
            setting = level_alone(setting, epsilon0)
        budgets = setting.budgets
        if budgets.levels > 1 and not steps:
            raise OutOfRegime(f"equal-crowd needs others with one budget; got {budgets.levels} that do not show")
        if budgets.levels > MANY_LEVELS:
            raise OutOfRegime(f"equal-crowd is not evaluated for more than {MANY_LEVELS} levels")
        counts = budgets.counts.astype(np.float64)
        found: list[PrivacyProfile] = []
        for attack in _attacks(setting):
            forward, backward = (CrowdProfile(tuple(both[way] for both in attack), counts) for way in (0, 1))
            found.append(RecordsProfile(forward, backward))
        return found[0] if len(found) == 1 else LargestProfile(tuple(found))

    def level_epsilons(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """Of each listed level; where budgets belong to steps, one number for everybody."""
        if setting.seen != "users" or setting.budgets.levels == 1:
            return super().level_epsilons(setting, delta, levels)
        one = super().level_epsilons(setting, delta, levels[-1:])
        return Enclosure(np.repeat(one.lower, levels.size), np.repeat(one.upper, levels.size))


def _attacks(setting: Setting) -> list[list[_Both]]:
    """Per attack the pair of records of each level, in both orders."""
    noise, budgets = setting.adds_noise, setting.budgets
    if noise is not None:
        return [[_noisy(noise, scale) for scale in noise.scale(budgets.epsilons, budgets.deltas).tolist()]]
    if not budgets.is_pure:
        raise OutOfRegime(f"equal-crowd needs pure local budgets (delta0 = 0); got delta0 = {budgets.deltas.max():g}")
    known, law = budgets.epsilons.tolist(), setting.discrete
    if law is None or law.two_point:
        ks = (2,) if law is not None or setting.records == 2 else (2, 3)
        attacks = [[SameRecord(k, 1, each).witness_pairs(each) for each in known] for k in ks]
    elif setting.records is not None:
        raise OutOfRegime(f"equal-crowd needs a third record for the others; records take {setting.records} values")
    else:
        attacks = [[law.witness_pairs(each) for each in known]]
    told = [[both for both in attack if both is not None] for attack in attacks]
    if any(len(attack) < len(known) for attack in told):
        raise OutOfRegime(f"equal-crowd finds no record of {setting.randomizer_name} that may give every report")
    return told


def _noisy(noise: NoiseLaw, scale: float) -> _Both:
    narrow, wide = (0.01, 1e9) if noise.noise == "laplace" else (0.04, 100.0)
    if not narrow <= scale <= wide:
        raise OutOfRegime(f"equal-crowd is evaluated for noise of {narrow:g} to {wide:g} widths; got {scale:g}")
    return laplace_pair(scale) if noise.noise == "laplace" else gaussian_pair(scale)
