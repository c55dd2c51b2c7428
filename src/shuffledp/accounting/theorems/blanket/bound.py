"""The common blanket theorem (I) as a bound: which blanket hides whom (docs/theorems/blanket.md).

Each other user draws from omega with probability gamma_i, and then looks like anybody. In a mixture family
R_eps = gamma(eps) omega + (1 - gamma(eps)) mu_x one omega serves every budget; other discrete families hide
users of one budget only; added noise has blankets of its own (`engines.noise_core`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import (
    MANY_LEVELS,
    AmplificationBound,
    epsilons_by_anchors,
    require_plain,
    several_reports,
)
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.profiles.remembering import remembered_by_thread
from shuffledp.accounting.theorems.blanket.noise import is_usual, noise_profile
from shuffledp.accounting.theorems.blanket.noise_ranges import range_profiles
from shuffledp.accounting.theorems.blanket.pairs import LargestProfile, OneBudgetProfile, OwnBudgetsProfile, worst_first
from shuffledp.accounting.theorems.clones.pair import CloneCurve, clone_pair, shared_clone_pairs
from shuffledp.budgets import Budgets
from shuffledp.errors import OutOfRegime
from shuffledp.guarantee import Kind
from shuffledp.numerics.counts import BlockedCount, SuccessRange
from shuffledp.numerics.interval import Enclosure, FloatArray
from shuffledp.randomizers.base import PairBlanket, RandomizerLaw
from shuffledp.setting import Setting

_RANGES, _FEW_RANGES = 24, 6
"""Ranges of scales of victims who add noise, in one round and over several."""


class BlanketBound(AmplificationBound):
    """Theorem (I) with the randomizer's common blanket, own budgets.

    See docs/theorems/blanket.md.
    """

    key = "blanket"
    kind = Kind.CERTIFIED_UPPER
    reference = "common blanket theorem (own proof; privacy blanket of Balle, Bell, Gascon, Nissim 2019)"

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Profile of (I) for one victim; see `AmplificationBound.one_round`."""
        budgets = setting.budgets
        level = budgets.index_of(epsilon0)
        if setting.adds_noise is not None:
            self._check(setting)
            # levels that differ in delta0 alone are named by one epsilon0: the worst of them is answered for
            same = np.flatnonzero(budgets.epsilons == budgets.epsilons[level]).tolist()
            victims = tuple(noise_profile(setting.adds_noise, budgets, each) for each in same)
            return victims[0] if len(victims) == 1 else LargestProfile(victims)
        family = self._family(setting)
        if family.two_point:  # two outcomes: (I) is the clone pair
            return clone_pair(budgets, level)
        return _worst_pair(family, epsilon0, _Others(family, budgets, level))

    def company(self, setting: Setting, budgets: Budgets, level: int, exposed: int) -> Budgets:
        """Of added noise nobody knows who is missed most: every level loses as many (fewer users only hide less)."""
        if setting.adds_noise is None or budgets.levels == 1:
            return super().company(setting, budgets, level, exposed)
        others = budgets.counts.copy()
        others[level] -= 1
        left = np.maximum(others - exposed, 0)
        left[level] += 1
        keep = left > 0
        return Budgets(budgets.epsilons[keep], left[keep], budgets.deltas[keep])

    def level_epsilons(
        self, setting: Setting, delta: float, levels: NDArray[np.int64], ceilings: FloatArray | None = None
    ) -> Enclosure:
        """Of added noise with many levels, victims by ranges of scales; see `AmplificationBound.level_epsilons`."""
        law, budgets = setting.adds_noise, setting.budgets
        if law is None or budgets.levels <= MANY_LEVELS or self.links_matter(setting):
            return super().level_epsilons(setting, delta, levels, ceilings)
        self._check(setting.plain(budgets))
        once = setting.changed_reports == setting.rounds == 1
        exposed = setting.exposed * setting.reports_per_user
        every = np.full(budgets.levels, math.inf)
        most = _RANGES if once else _FEW_RANGES
        for members, profile in range_profiles(law, several_reports(setting), exposed, most):
            mine = np.isin(levels, members)
            if mine.any():
                most = math.inf if ceilings is None else float(ceilings[mine].max())
                every[members] = self.over_rounds(setting, profile).epsilon_below(delta, most).upper
        upper = every[levels]
        if once and budgets.is_pure:
            upper = np.minimum(upper, budgets.epsilons[levels])
        return Enclosure(np.zeros(levels.size), upper)

    def many_levels(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """Bound each level's epsilon when levels are many: from one clone curve, or from profiles of a few victims."""
        epsilons = setting.budgets.epsilons[levels]
        if setting.discrete is not None and self._family(setting).two_point:
            return CloneCurve.of(setting.budgets, delta).epsilons(epsilons, delta)
        # what a channel gives away with chance delta0 may cost more than epsilon0
        found = epsilons_by_anchors(epsilons, delta, self.any_victim(setting), capped=setting.budgets.is_pure)
        return Enclosure(np.zeros_like(found.lower), found.upper)

    def any_victim(self, setting: Setting) -> Callable[[float], PrivacyProfile]:
        """Leaving the likeliest blanket user out of the count, whoever the victim is, can only raise h.

        A smaller budget mixes the victim's report with omega, L' = (1-t) L + t (1-e^eps), so h does not grow.
        """
        family = self._family(setting)
        if family.two_point:
            return shared_clone_pairs(setting.budgets)
        others = _Others(family, setting.budgets, 0)
        return lambda epsilon0: _worst_pair(family, epsilon0, others)

    def _check(self, setting: Setting) -> None:
        require_plain(setting, self.key)  # a stated law is used as it is: it need not be pure
        if setting.law is None:
            raise OutOfRegime("blanket needs a stated randomizer; got 'any'")
        if setting.seen == "sum" and setting.adds_noise is not None:
            raise OutOfRegime("blanket is about reports; of the sum of added noises 'sum' knows the exact profile")
        if setting.budgets.levels > 1 and setting.seen in ("levels", "users"):
            raise OutOfRegime(
                f"blanket with several budgets needs unordered reports without levels; got seen = {setting.seen}"
            )

    def _family(self, setting: Setting) -> RandomizerLaw:
        self._check(setting)
        family = setting.discrete
        if family is None:
            raise OutOfRegime(f"blanket over more than 32 levels needs discrete reports; got {setting.randomizer_name}")
        if setting.budgets.levels > 1 and not family.mixture:
            raise OutOfRegime(
                f"blanket with several budgets needs one blanket for all of them; the reports of {family.name} "
                "give their sender's budget away: use 'clones'"
            )
        return family


def has_blanket(setting: Setting, epsilon0: float) -> bool:
    """Whether the stated randomizer has a blanket for a victim of that budget: it may lack one for want of noise.

    Parameters
    ----------
    setting : Setting
        With a stated randomizer.
    epsilon0 : float
        A budget that some user of the setting has (nats).
    """
    law, level = setting.adds_noise, setting.budgets.index_of(epsilon0)
    if law is not None:
        scales = law.scale(setting.budgets.epsilons, setting.budgets.deltas)
        return bool(is_usual(law, scales)[level])
    return setting.discrete is not None and float(setting.discrete.blanket_mass(epsilon0)) > 0.0


def blanket_count(budgets: Budgets, family: RandomizerLaw, without: int) -> SuccessRange:
    """Return the law of C of (I): the others, all but one of level ``without``, whose report is a blanket one."""
    others = budgets.counts.astype(np.float64)
    others[without] -= 1.0
    return SuccessRange.of(family.blanket_mass(budgets.epsilons), others, ulps=32)


class _Others:
    """The users among whom a victim hides: all but one of level ``without``; victims may share them.

    Parameters
    ----------
    family : RandomizerLaw
        Everybody's.
    budgets : Budgets
        The population.
    without : int
        A level.
    """

    def __init__(self, family: RandomizerLaw, budgets: Budgets, without: int) -> None:
        self.family, self.budgets, self.without = family, budgets, without
        self.blocks: dict[float, BlockedCount] = {}

    @cached_property
    def one_mass(self) -> float | None:
        """The blanket mass, if all users have the same."""
        masses = self.family.blanket_mass(self.budgets.epsilons)
        return float(masses[0]) if bool((masses == masses[0]).all()) else None

    @cached_property
    def count(self) -> SuccessRange:
        """Their blanket reports, C of (I)."""
        return blanket_count(self.budgets, self.family, self.without)


def _worst_pair(family: RandomizerLaw, epsilon0: float, others: _Others) -> PrivacyProfile:
    """Profile of the worst pair of inputs of a victim."""
    pairs = worst_first(family.pair_blankets(epsilon0))
    if pairs[0].gamma <= 0.0:
        raise OutOfRegime(f"blanket needs an output that every record may give; {family.name} has none")
    if others.one_mass == pairs[0].gamma:
        return _alike(pairs, others.budgets.n)
    parts = tuple(OwnBudgetsProfile(pair.largest_loss, pair, others.count, _blocks=others.blocks) for pair in pairs)
    return parts[0] if len(parts) == 1 else LargestProfile(parts, pairs, others.count)


@remembered_by_thread(16)
def _alike(pairs: tuple[PairBlanket, ...], n: int) -> PrivacyProfile:
    """Profile of the worst pair if all n users have the blanket mass of the pairs: one budget, or one channel for all.

    Remembered, because the levels of a population with one channel share it.
    """
    parts = tuple(OneBudgetProfile(pair.largest_loss, pair, n) for pair in pairs)
    if len(parts) == 1:
        return parts[0]
    others = SuccessRange.of(np.array([pairs[0].gamma]), np.array([n - 1.0]), ulps=32)
    return LargestProfile(parts, pairs, others, n)
