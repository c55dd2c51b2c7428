"""The certified upper bounds: clones (2a, 2b), levels visible, and the victim's own budget."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.blanket import BlanketBound
from shuffledp.accounting.bound import (
    MANY_LEVELS,
    AmplificationBound,
    SmallestProfile,
    composed,
    epsilons_by_anchors,
    level_alone,
    remembered,
    require_one_pure_round,
    require_plain,
)
from shuffledp.accounting.clones import ClonePairProfile, clone_count, one_budget_profile
from shuffledp.accounting.curve import CloneCurve
from shuffledp.accounting.noise_sum import GaussianSumProfile
from shuffledp.accounting.profile import PrivacyProfile, check_delta
from shuffledp.budgets import Budgets
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


class LevelsBound(AmplificationBound):
    """Levels visible: users hide only among those of their own level; valid whenever levels are withheld too.

    See docs/theorems/levels.md.
    """

    key = "levels"
    kind = Kind.CERTIFIED_UPPER
    reference = "clone theorem within the victim's own level, n = n_g"

    def company(self, setting: Setting, budgets: Budgets, level: int, exposed: int) -> Budgets:
        """The exposed users may all be of the victim's own level."""
        counts = budgets.counts.copy()
        counts[level] = max(int(counts[level]) - exposed, 1)
        return Budgets(budgets.epsilons, counts, budgets.deltas)

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
        try:
            return SmallestProfile((clones, remembered(BlanketBound, level_alone(setting, epsilon0), epsilon0)))
        except OutOfRegime:  # hardly any noise
            return clones

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

    @property
    def mass_at_infinity(self) -> Interval:
        """What a delta0-event reveals, whatever epsilon is."""
        return Interval(self.delta0, self.delta0)

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
        """Plain composition does not ask who hides whom."""
        del setting
        return False

    def over_rounds(self, setting: Setting, one: PrivacyProfile) -> PrivacyProfile:
        """Changed reports and rounds are seen together: plain composition of so many reports."""
        return composed(one, setting.changed_reports * setting.rounds)

    def many_levels(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """Pure levels from a thousand of them; those between are rounded up to the next one computed."""
        if setting.budgets.is_pure:
            anchors = min(levels.size, 1000)
            victim, capped = self.any_victim(setting), setting.seen != "users"
            return epsilons_by_anchors(setting.budgets.epsilons[levels], delta, victim, anchors, capped=capped)
        found = [self.one_round(setting, float(setting.budgets.epsilons[level])).epsilon(delta) for level in levels]
        return Enclosure(np.array([f.lower for f in found]), np.array([f.upper for f in found]))

    def any_victim(self, setting: Setting) -> Callable[[float], PrivacyProfile]:
        """The largest delta0 for everybody."""
        delta0 = float(setting.budgets.deltas.max())
        if setting.seen == "users":
            return lambda _: LocalProfile(float(setting.budgets.epsilons[-1]), delta0)
        return lambda epsilon0: LocalProfile(epsilon0, delta0)
