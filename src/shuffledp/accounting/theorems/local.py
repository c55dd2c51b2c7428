"""The victim's own local budget as a central bound (docs/theorems/local.md)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import (
    AmplificationBound,
    epsilons_by_anchors,
)
from shuffledp.accounting.profiles.composition import SmallestProfile, composed
from shuffledp.accounting.profiles.profile import PrivacyProfile, check_delta
from shuffledp.accounting.theorems.sum import GaussianSumProfile
from shuffledp.budgets import Budgets
from shuffledp.guarantee import Kind
from shuffledp.numerics.floats import UNBOUNDED, Upper, roundoff
from shuffledp.numerics.gaussian_tail import noise_epsilons
from shuffledp.numerics.interval import Enclosure, Interval
from shuffledp.randomizers.base import MadeFromMemo
from shuffledp.setting import Setting


@dataclass(frozen=True)
class LocalProfile(PrivacyProfile):
    """The worst profile of an (epsilon0, delta0)-LDP report seen by itself (Kairouz, Oh, Viswanath 2015).

    delta(eps) = delta0 + (1 - delta0) (e^epsilon0 - e^eps)/(1 + e^epsilon0) for eps < epsilon0, then delta0.
    """

    epsilon0: float
    delta0: float

    @property
    def vanishes_at(self) -> Upper:
        """The local budget, if it is pure."""
        return Upper(self.epsilon0) if self.delta0 == 0.0 else UNBOUNDED

    @property
    def mass_at_infinity(self) -> Interval:
        """What a delta0-event reveals, whatever epsilon is."""
        return Interval(self.delta0, self.delta0)

    def delta_at(self, epsilon: float) -> Interval:
        """As in the class docstring, rounded outward."""
        part = max(-math.expm1(min(epsilon - self.epsilon0, 0.0)), 0.0) / (1.0 + math.exp(-self.epsilon0))
        value = self.delta0 + (1.0 - self.delta0) * part
        return Interval(value, value).inflated(16)

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
        value, doubt = self.epsilon0 + math.log1p(-room), roundoff(16, self.epsilon0 + 1.0 / (1.0 - room))
        return Interval(max(value - doubt, 0.0), min(max(value + doubt, 0.0), self.epsilon0))


class LocalBound(AmplificationBound):
    """Central privacy is never worse than the victim's own local budget: shuffling is post-processing.

    See docs/theorems/local.md.
    """

    key = "local"
    kind = Kind.CERTIFIED_UPPER
    reference = "post-processing of the victim's own (epsilon0, delta0)-LDP report"

    def company(self, setting: Setting, budgets: Budgets, level: int, exposed: int) -> Budgets:
        """Nobody's company is counted on."""
        return budgets

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """The local profile itself, whoever else takes part; of Gaussian noise also its own."""
        level = setting.budgets.index_of(epsilon0)
        delta0 = float(setting.budgets.deltas[level])
        if setting.seen == "users":  # budgets belong to steps: the victim may get any
            return LocalProfile(float(setting.budgets.epsilons[-1]), float(setting.budgets.deltas.max()))
        budget, law = LocalProfile(epsilon0, delta0), setting.adds_noise
        if law is None or law.noise != "gaussian":
            return budget
        scale = float(law.scale(np.array([epsilon0]), np.array([delta0]))[0])
        return SmallestProfile((budget, GaussianSumProfile(1.0 / scale))) if math.isfinite(scale) else budget

    def links_matter(self, setting: Setting) -> bool:
        """Plain composition does not ask who hides whom; reports made from one memo are one report."""
        return isinstance(setting.law, MadeFromMemo) and super().links_matter(setting)

    def over_rounds(self, setting: Setting, one: PrivacyProfile) -> PrivacyProfile:
        """Changed reports and rounds are seen together: plain composition of so many reports."""
        return composed(one, setting.changed_reports * setting.rounds)

    def many_levels(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """Pure levels from a thousand of them; those between are rounded up to the next one computed."""
        if setting.budgets.is_pure:
            anchors = min(levels.size, 1000)
            victim, capped = self.any_victim(setting), setting.seen != "users"
            return epsilons_by_anchors(setting.budgets.epsilons[levels], delta, victim, anchors, capped=capped)
        if setting.seen == "users":
            shared = self.one_round(setting, float(setting.budgets.epsilons[-1])).epsilon(delta)
            return Enclosure(np.full(levels.size, shared.lower), np.full(levels.size, shared.upper))
        epsilons, deltas, law = setting.budgets.epsilons[levels], setting.budgets.deltas[levels], setting.adds_noise
        pairs = zip(epsilons.tolist(), deltas.tolist(), strict=True)
        upper = np.array([LocalProfile(*pair).epsilon(delta).upper for pair in pairs])
        if law is not None and law.noise == "gaussian":
            upper = np.minimum(upper, noise_epsilons(law.scale(epsilons, deltas), delta))
        return Enclosure(np.zeros(levels.size), upper)

    def any_victim(self, setting: Setting) -> Callable[[float], PrivacyProfile]:
        """The largest delta0 for everybody."""
        delta0 = float(setting.budgets.deltas.max())
        if setting.seen == "users":
            return lambda _: LocalProfile(float(setting.budgets.epsilons[-1]), delta0)
        return lambda epsilon0: LocalProfile(epsilon0, delta0)
