"""The k-ary witness: counts of the two symbols a victim may hold, the others on third symbols.

With pC the law of how many others report one of the two symbols, m = a + b reports on them, and the victim
reporting them with masses (A0, B0) under x0, swapped under x1, u = 1 - A0 - B0,

    P(a, b) - e^eps Q(a, b)
        = Bin(a; m, 1/2) [ -u (e^eps - 1) pC(m) + pC(m-1)(2/m)((A0 - e^eps B0) a - (e^eps A0 - B0) b) ],

whose positive part over a is one evaluation of psi_{m-1} of (C) per m. Exact for k = 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.bound import (
    MANY_LEVELS,
    AmplificationBound,
    epsilons_by_anchors,
    level_alone,
    refuse_third_records,
    require_one_pure_round,
    shows_levels,
)
from shuffledp.accounting.profiles.profile import PrivacyProfile, gaussian_epsilon
from shuffledp.accounting.theorems.clones.pair import noiseless_divergence
from shuffledp.errors import OutOfRegime
from shuffledp.numerics.counts import SuccessCount
from shuffledp.numerics.floats import Enclosure, FloatArray, Interval, Upper, deflated, inflated, roundoff
from shuffledp.numerics.sums import IndependentSum, positive_part
from shuffledp.randomizers.base import PairCounts
from shuffledp.setting import Kind, Setting

_SUM_UP_TO = 4096
_SUM_DEVIATIONS = 30.0
_WIDEST = 30_000
_SMOOTHING = 0.08
_Windows = dict[float, tuple[FloatArray, Enclosure, float]]


@dataclass(frozen=True, eq=False)
class PairCountProfile(PrivacyProfile):
    """Exact hockey-stick divergence of the counts of the two symbols that the victim may hold.

    Parameters
    ----------
    epsilon0 : float
        The victim's budget, nats.
    right, wrong, neither : float
        A0, B0 and u: chances that the victim reports her own outcome, the other one, or neither; each to a few
        ulps, A0 = e^epsilon0 B0.
    others : SuccessCount
        How many others report one of the two symbols.
    """

    tolerance: ClassVar[float] = 2e-5

    epsilon0: float
    right: float
    wrong: float
    neither: float
    others: SuccessCount
    _pmf: _Windows

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats) from which on delta is 0: the victim's local budget."""
        return Upper(self.epsilon0)

    @property
    def coarseness(self) -> float:
        """Factor by which a table may be less accurate: 10 with several budgets (slow to evaluate), else 1."""
        return 10.0 if self.others.counts.size > 1 else 1.0

    def delta_at(self, epsilon: float) -> Interval:
        """Enclose delta(epsilon): a sum over counts, or for one budget and many users the equal sum (Z) over users."""
        if self.others.counts.size == 1 and self.others.deviation > _SUM_DEVIATIONS:
            return self._by_users(epsilon)
        return self._by_counts(epsilon)

    def _by_counts(self, epsilon: float) -> Interval:
        delta = Interval(0.0, 1.0)
        for reach in (10.0, 40.0):
            delta, outside = self._summed(epsilon, reach)
            if outside <= 1e-6 * delta.lower or 80.0 * self.others.deviation > _SUM_UP_TO:
                break
        return delta

    def _summed(self, epsilon: float, reach: float) -> tuple[Interval, float]:
        """Return the sum over likely counts, and the probability of the others, charged to the upper end."""
        if reach not in self._pmf:
            self._pmf[reach] = self._window(reach)
        x, pmf, outside = self._pmf[reach]  # others' counts from one below the first m on
        grow, room = math.expm1(epsilon), -math.expm1(epsilon - self.epsilon0)
        u = self.neither

        def value(before: FloatArray, here: FloatArray) -> Enclosure:
            slope = self.right * room * before - 0.5 * u * grow * here
            rise = ((self.right + self.wrong) * before + u * here) * grow
            keep = slope > 0
            with np.errstate(divide="ignore", over="ignore"):
                excess = np.where(keep, rise / np.where(keep, slope, 1.0), 0.0)
            psi = noiseless_divergence(x[:-1], excess)
            return Enclosure(np.where(keep, slope * psi.lower, 0.0), np.where(keep, slope * psi.upper, 0.0))

        # increasing in pC(m-1), decreasing in pC(m)
        low = value(pmf.lower[:-1], pmf.upper[1:]).lower
        high = value(pmf.upper[:-1], pmf.lower[1:]).upper
        lower = deflated(float(low.sum()), 65536)
        return Interval(lower, max(inflated(float(high.sum()), 65536) + outside, lower)), outside

    def _window(self, reach: float) -> tuple[FloatArray, Enclosure, float]:
        mean, deviation, n = self.others.mean, self.others.deviation, self.others.n
        low, high = (
            max(0.0, math.floor(mean - reach * deviation)),
            min(n, math.ceil(mean + reach * deviation)),
        )
        if high - low > _WIDEST:
            raise OutOfRegime(f"krr-exact with several budgets stops at {_WIDEST} likely counts; got {high - low:.0f}")
        x = np.arange(low, high + 2.0)
        pmf = self.others.pmf(x)
        slack = roundoff(640, deviation + 1.0)  # success probabilities off by 4 roundoffs
        below = float(self.others.cdf(np.array([low - 1.0])).upper[0])
        above = float(self.others.failures.cdf(np.array([n - high - 1.0])).upper[0])
        return x, Enclosure(pmf.lower * (1 - slack), pmf.upper * (1 + slack)), (below + above) * (1 + slack)

    def _by_users(self, epsilon: float) -> Interval:
        n = self.others.n + 1.0
        # the others hold a third record: each reports either of the two outcomes with the same chance
        each = 0.5 * float(self.others.probabilities[0])
        rest = 1.0 - 2.0 * each
        values = [
            self.right / each * -math.expm1(epsilon - self.epsilon0),
            self.wrong / each * -math.expm1(epsilon + self.epsilon0),
            -math.expm1(epsilon) * self.neither / rest,
        ]
        masses = np.array([[each, each, rest]])
        doubt = 16.0 + 2.0 * (epsilon + self.epsilon0)  # a rounded exponent x costs |x| roundoffs
        total = IndependentSum(np.array([n]), np.array([values]), masses, np.array([-math.expm1(epsilon)]), doubt)
        expectation = positive_part(total, _SMOOTHING)
        return expectation / n

    def guess_epsilon(self, delta: float) -> float | None:
        """Return the epsilon (nats) of the Gaussian limit; None if no other user reports either symbol."""
        if self.others.mean == 0.0:
            return None
        return gaussian_epsilon(delta, 2.0 * (self.right - self.wrong) / math.sqrt(self.others.mean))


def pair_count_profile(setting: Setting, epsilon0: float) -> PairCountProfile:
    """Return the profile of the attack on a victim of budget ``epsilon0``; "any" is attacked with three symbols."""
    budgets = setting.budgets
    others = budgets.counts.astype(np.float64)
    others[budgets.index_of(epsilon0)] -= 1.0
    return PairCountProfile(epsilon0, *_masses(setting, epsilon0), _others(setting, others), {})


def _counts(setting: Setting, epsilon0: ArrayLike) -> PairCounts:
    """Chances of the separating outcomes; "any" is attacked through three symbols."""
    if setting.discrete is not None:
        chances = setting.discrete.pair_counts(epsilon0)
        if chances is None:
            raise OutOfRegime(f"krr-exact needs a third record for the others; {setting.randomizer_name} has none")
        return chances
    low = np.exp(-np.asarray(epsilon0, dtype=np.float64))
    wrong = low / (1.0 + 2.0 * low)
    return PairCounts(1.0 / (1.0 + 2.0 * low), wrong, wrong, wrong)


def _others(setting: Setting, counts: FloatArray) -> SuccessCount:
    """How many users on a third record report one of the two outcomes."""
    third = _counts(setting, setting.budgets.epsilons).third
    return SuccessCount.of(np.minimum(2.0 * third, 1.0), counts)


def _masses(setting: Setting, epsilon0: float) -> tuple[float, float, float]:
    """Chances of the own outcome, of the other one, and of neither."""
    chances = _counts(setting, epsilon0)
    return float(chances.right), float(chances.wrong), float(chances.neither)


class KaryWitness(AmplificationBound):
    """Lower bound by counting two symbols of k-ary randomized response, the other users on third symbols.

    For the randomizer "any", k = 3 is used. See docs/theorems/krr-exact.md.
    """

    key = "krr-exact"
    kind = Kind.CERTIFIED_LOWER
    reference = "counts of two symbols of shuffled k-ary randomized response, the others on third symbols"

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the profile of the attack on a victim of budget ``epsilon0``; see `AmplificationBound.one_round`."""
        self._check(setting)
        if shows_levels(setting):
            setting = level_alone(setting, epsilon0)
        return pair_count_profile(setting, epsilon0)

    def many_levels(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """Return each listed level's lower bound on epsilon (nats), from a few victims, as intervals of one point.

        All users count as others, because one report more only hides more. See `AmplificationBound.many_levels`.
        """
        victim = self.any_victim(setting)
        enclosure = epsilons_by_anchors(setting.budgets.epsilons[levels], delta, victim, anchors=9)
        return Enclosure(enclosure.lower, enclosure.lower)

    def any_victim(self, setting: Setting) -> Callable[[float], PrivacyProfile]:
        """Return a function from a victim's budget to the attack's profile, with one count of others for all victims.

        In a mixture family a smaller budget only hides more, so the shared count is safe. See
        `AmplificationBound.any_victim`.
        """
        if setting.discrete is not None and not setting.discrete.mixture:
            raise OutOfRegime(
                f"krr-exact over more than {MANY_LEVELS} levels needs one blanket for all of them; "
                f"{setting.randomizer_name} has not"
            )
        if shows_levels(setting):
            raise OutOfRegime(f"krr-exact is not evaluated level by level for more than {MANY_LEVELS} levels")
        self._check(setting)
        others = _others(setting, setting.budgets.counts.astype(np.float64))
        shared: _Windows = {}
        return lambda epsilon0: PairCountProfile(epsilon0, *_masses(setting, epsilon0), others, shared)

    def _check(self, setting: Setting) -> None:
        require_one_pure_round(setting, self.key)
        refuse_third_records(setting, self.key)
        if setting.budgets.levels > 1 and setting.seen == "users":
            raise OutOfRegime("krr-exact with several budgets is stated for unordered reports; got seen = users")
        if setting.seen == "sum":
            raise OutOfRegime("krr-exact needs the counts of symbols; the sum of reports does not show them")
        if setting.law is not None and setting.discrete is None:
            raise OutOfRegime(f"krr-exact attacks discrete reports; got {setting.randomizer_name}")
        _counts(setting, setting.budgets.epsilons[:1])
