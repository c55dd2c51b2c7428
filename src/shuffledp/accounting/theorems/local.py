"""The victim's own local budget as a central bound (docs/theorems/local.md)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import (
    AmplificationBound,
    epsilons_by_anchors,
)
from shuffledp.accounting.profiles.composition import SmallestProfile, composed
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.theorems.sum import GaussianSumProfile
from shuffledp.budgets import Budgets
from shuffledp.errors import check_delta
from shuffledp.numerics.counts import log_pmf, log_pmf_error
from shuffledp.numerics.floats import UNBOUNDED, Enclosure, FloatArray, Interval, Upper, inflated, roundoff
from shuffledp.numerics.tails import noise_epsilons
from shuffledp.randomizers.base import MadeFromMemo
from shuffledp.setting import Kind, Setting


@dataclass(frozen=True)
class LocalProfile(PrivacyProfile):
    """The worst profile of an (epsilon0, delta0)-LDP report seen by itself (Kairouz, Oh, Viswanath 2015).

    delta(eps) = delta0 + (1 - delta0) (e^epsilon0 - e^eps)/(1 + e^epsilon0) for eps < epsilon0, then delta0.

    Parameters
    ----------
    epsilon0 : float
        Local budget, nats, at least 0.
    delta0 : float
        Approximate part of the local budget, in [0, 1].
    """

    epsilon0: float
    delta0: float

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats) from which on delta is 0: the local budget if delta0 is 0, else infinite."""
        return Upper(self.epsilon0) if self.delta0 == 0.0 else UNBOUNDED

    @property
    def mass_at_infinity(self) -> Interval:
        """Interval [delta0, delta0]: the probability that no finite epsilon covers."""
        return Interval(self.delta0, self.delta0)

    def delta_at(self, epsilon: float) -> Interval:
        """Enclose delta(epsilon) of the class docstring, rounded outward."""
        part = max(-math.expm1(min(epsilon - self.epsilon0, 0.0)), 0.0) / (1.0 + math.exp(-self.epsilon0))
        value = self.delta0 + (1.0 - self.delta0) * part
        return Interval(value, value).inflated(16)

    def repeated(self, rounds: int) -> PrivacyProfile | None:
        """Return the profile of ``rounds`` independent reports in closed form; None beyond MOST_TERMS (4096) rounds."""
        return LocalRounds(self, rounds) if rounds <= MOST_TERMS else None

    def epsilon(self, delta: float) -> Interval:
        """Enclose epsilon0 + log(1 - pure (1 + e^-epsilon0)), nats, with pure = (delta - delta0)/(1 - delta0).

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


MOST_TERMS = 4096
"""Largest number of rounds for which the closed form is summed; beyond it `ComposedProfile` is used."""


@dataclass(frozen=True, eq=False)
class LocalRounds(PrivacyProfile):
    """Independent rounds of one `LocalProfile`, in closed form (Kairouz, Oh, Viswanath 2015, theorem 3.3).

    With chance m = 1 - (1 - delta0)^T some round reveals the record outright. Otherwise the loss of T rounds is (T - 2
    l) epsilon0 with l ~ Bin(T, s), s = 1/(1 + e^epsilon0), and delta(eps) = m + (1 - m) E (1 - e^(eps - loss))_+.

    Parameters
    ----------
    one : LocalProfile
        The profile of a single round.
    count : int
        T, the number of rounds, from 1 to MOST_TERMS (4096).
    """

    one: LocalProfile
    count: int

    @property
    def rounds(self) -> tuple[tuple[PrivacyProfile, int], ...]:
        """The profile of a single round, and the number of rounds."""
        return ((self.one, self.count),)

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats) from which on delta is 0: the sum of the budgets if delta0 is 0, else infinite."""
        return Upper(inflated(self.count * self.one.vanishes_at, 2))

    @property
    def mass_at_infinity(self) -> Interval:
        """Interval that encloses the chance 1 - (1 - delta0)^T that some round reveals the record outright."""
        leak = -math.expm1(self.count * math.log1p(-self.one.delta0)) if self.one.delta0 < 1.0 else 1.0
        return Interval(leak, leak).inflated(8).clipped(0.0, 1.0)

    @cached_property
    def _law(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Positive losses, and their chances from below and from above."""
        lies = np.arange(0.0, (self.count + 1) // 2)
        low = math.exp(-self.one.epsilon0)
        logs = log_pmf(lies, self.count, low / (1.0 + low))
        # s is good to 4 roundoffs, which a binomial of T trials feels 2 T times
        doubt = log_pmf_error(logs) + roundoff(16, self.count)
        return (self.count - 2.0 * lies) * self.one.epsilon0, np.exp(logs - doubt), np.exp(logs + doubt)

    def delta_at(self, epsilon: float) -> Interval:
        """Enclose delta(epsilon) of the class docstring; each exponent has an error of 4 roundoffs of its two terms."""
        losses, low, high = self._law
        gap, room = epsilon - losses, roundoff(4, epsilon + self.count * self.one.epsilon0)
        below = float(low @ -np.expm1(np.minimum(gap + room, 0.0)))
        above = float(high @ -np.expm1(np.minimum(gap - room, 0.0)))
        hidden = Interval(below, above).inflated(64 + self.count).clipped(0.0, 1.0)
        leak = self.mass_at_infinity
        ends = (m + (1.0 - m) * h for m, h in ((leak.lower, hidden.lower), (leak.upper, hidden.upper)))
        return Interval(*ends).inflated(8)


class LocalBound(AmplificationBound):
    """Upper bound by the victim's own local budget: shuffling is post-processing, so central privacy is never worse.

    See docs/theorems/local.md.
    """

    key = "local"
    kind = Kind.CERTIFIED_UPPER
    reference = "post-processing of the victim's own (epsilon0, delta0)-LDP report"

    def company(self, setting: Setting, budgets: Budgets, level: int, exposed: int) -> Budgets:
        """Return all budgets, whoever is exposed: the bound does not use other users.

        See `AmplificationBound.company`.
        """
        return budgets

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the profile of the victim's report by itself; for Gaussian noise the smaller of two such profiles.

        See `AmplificationBound.one_round`.
        """
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
        """Return whether reports are linked because a user makes them from a memo: a noisy answer stored once.

        Plain composition over the rounds covers all other links.
        """
        return isinstance(setting.law, MadeFromMemo) and super().links_matter(setting)

    def over_rounds(self, setting: Setting, one: PrivacyProfile) -> PrivacyProfile:
        """Return the composition of all changed reports of all rounds, as if each were seen by itself.

        See `AmplificationBound.over_rounds`.
        """
        return composed(one, setting.changed_reports * setting.rounds)

    def many_levels(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """Enclose each listed level's epsilon (nats), from at most a thousand levels if delta0 is 0 for all.

        Levels between those computed are rounded up to the next one. See `AmplificationBound.many_levels`.
        """
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
        """Return a function from a victim's budget to the local profile with the population's largest delta0.

        See `AmplificationBound.any_victim`.
        """
        delta0 = float(setting.budgets.deltas.max())
        if setting.seen == "users":
            return lambda _: LocalProfile(float(setting.budgets.epsilons[-1]), delta0)
        return lambda epsilon0: LocalProfile(epsilon0, delta0)
