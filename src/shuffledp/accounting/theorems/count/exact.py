"""The count theorem as a witness: record vectors that are attained (docs/theorems/count-exact.md)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import (
    MANY_LEVELS,
    AmplificationBound,
    level_alone,
    require_one_pure_round,
    shows_levels,
)
from shuffledp.accounting.profiles.profile import PrivacyProfile, gaussian_epsilon
from shuffledp.accounting.theorems.clones.pair import victim_line
from shuffledp.accounting.theorems.count.bound import (
    LEAST_BUDGET,
    lie_probability,
    likely_worst_vectors,
    sends_bits,
    vector_profile,
)
from shuffledp.accounting.theorems.count.channel import channel_count, two_outcomes
from shuffledp.accounting.theorems.local import LocalProfile
from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput, OutOfRegime
from shuffledp.numerics import counts
from shuffledp.numerics.counts import CONVOLVE_UP_TO, SuccessCount
from shuffledp.numerics.floats import TINY, Enclosure, FloatArray, Interval, Upper, deflated, inflated, roundoff
from shuffledp.setting import Kind, Setting

# ------------------------------------------------------------------ count attack
# Binary randomized response seen as its count N of other users' ones, the others all on one record: real attacks.
#
# With A and s of (C), and any threshold k,
#
#     H(eps) >= A (P(N <= k) - s P(N <= k - 1)),                                                                (N)
#
# and the same with zeros counted, which is the other direction. Any threshold is a test, so any is sound; for one
# budget the best one is explicit. See docs/theorems/count-exact.md.

_THRESHOLDS = 400


@dataclass(frozen=True)
class BinomialTest:
    """The best threshold test (N) when the other n users share one budget and all hold record x0.

    The number of ones among them is then N ~ Bin(n, p).

    Parameters
    ----------
    n : float
        Number of other users.
    p : float
        Chance that such a user's bit differs from the record; good to 4 roundoffs.
    """

    n: float
    p: float

    def psi(self, excess: float) -> tuple[Interval, Interval]:
        """Enclose max_k P(N <= k) - s P(N <= k-1), s = 1 + excess, for counted ones and for counted zeros.

        pmf(k) >= s pmf(k-1) holds up to k = (n+1) p/(p + s (1-p)); with zeros counted, p becomes 1-p.
        """
        if not math.isfinite(excess):
            excess = 1e300
        s, p, q = 1.0 + excess, self.p, 1.0 - self.p
        ones = math.floor((self.n + 1.0) * p / (p + s * q))
        zeros = math.floor((self.n + 1.0) * q / (q + s * p))
        counted = np.array([ones, self.n - zeros])
        top = np.exp(counts.log_pmf(counted, self.n, p))
        # fewer ones than k are more than n - k failures; fewer zeros are more ones
        below = counts.tail(self.n + 1.0 - np.array([ones, zeros]), self.n, p, [True, False])
        # p off by 4 roundoffs moves log-probabilities by 4 roundoffs (|k - np| + deviation)/(1-p) at most; doubled
        reach = np.abs(counted - self.n * p) + math.sqrt(self.n * p) + 2.0
        slack = 2.0 * counts.RELATIVE_ERROR + roundoff(8, reach) / q
        lower = np.maximum(top * (1.0 - slack) - excess * below * (1.0 + slack) - TINY, 0.0)
        upper = np.maximum(top * (1.0 + slack) - excess * below * (1.0 - slack) + TINY, 0.0)
        first, second = (Interval(float(low), float(high)) for low, high in zip(lower, upper, strict=True))
        return first, second


@dataclass(frozen=True, eq=False)
class TabledTest:
    """The threshold tests (N) at tabled thresholds, for other users with different budgets or records.

    Parameters
    ----------
    through, before : Enclosure, shape (thresholds,)
        Bounds on P(N <= k) and P(N <= k-1), first for ones, then for zeros.
    ones : int
        How many of the thresholds are for ones.
    """

    through: Enclosure
    before: Enclosure
    ones: int

    @classmethod
    def of(cls, ones: SuccessCount, deviations: float = 12.0) -> TabledTest:
        """Tabulate P(N <= k) at all thresholds k of a small population, at some hundreds of a large one.

        Parameters
        ----------
        ones : SuccessCount
            The number N of ones among the other users.
        deviations : float
            How many standard deviations around the mean the thresholds of a large population cover.
        """
        through, before = zip(cls._side(ones, deviations), cls._side(ones.failures, deviations), strict=True)
        return cls(
            Enclosure(*(np.concatenate(ends) for ends in zip(*through, strict=True))),
            Enclosure(*(np.concatenate(ends) for ends in zip(*before, strict=True))),
            through[0].lower.size,
        )

    @staticmethod
    def _side(count: SuccessCount, deviations: float) -> tuple[Enclosure, Enclosure]:
        low = max(0.0, math.floor(count.mean - deviations * count.deviation))
        high = min(count.n, math.ceil(count.mean + 0.5 * deviations * count.deviation))
        if count.n <= CONVOLVE_UP_TO:
            k = np.arange(count.n + 1.0)
        elif high - low <= CONVOLVE_UP_TO:
            k = np.arange(low, high + 1.0)
        else:
            k = np.unique(np.floor(np.linspace(low, high, _THRESHOLDS)))
        # probabilities off by 4 roundoffs, 40 deviations from the mean at most
        slack = roundoff(640, count.deviation + 1.0)
        both = _widened(count.cdf(np.concatenate((k, k - 1.0))), slack)
        return Enclosure(both.lower[: k.size], both.upper[: k.size]), Enclosure(
            both.lower[k.size :], both.upper[k.size :]
        )

    def psi(self, excess: float) -> tuple[Interval, Interval]:
        """Enclose max over tabled k of P(N <= k) - (1 + excess) P(N <= k-1), for ones and for zeros."""
        s = 1.0 + min(excess, 1e300)
        lower = self.through.lower - s * self.before.upper
        upper = self.through.upper - s * self.before.lower
        first, second = (
            Interval(float(lower[side].max(initial=0.0)), float(upper[side].max(initial=0.0)))
            for side in (slice(self.ones), slice(self.ones, None))
        )
        return first, second


def _widened(bounds: Enclosure, slack: float) -> Enclosure:
    return Enclosure(bounds.lower * (1.0 - slack), bounds.upper * (1.0 + slack))


@dataclass(frozen=True)
class CountProfile(PrivacyProfile):
    """Profile delta(epsilon) of the shuffled count of binary randomized response, the larger of both directions.

    Parameters
    ----------
    epsilon0 : float
        Local budget of the victim (the user whose privacy is analysed), in nats.
    test : BinomialTest or TabledTest
        The threshold tests on the other users' count of ones.
    others_deviation : float
        Standard deviation of the other users' count; it only serves a first guess.
    """

    epsilon0: float
    test: BinomialTest | TabledTest
    others_deviation: float

    @property
    def vanishes_at(self) -> Upper:
        """The epsilon, in nats, from which delta is 0: the victim's own local budget."""
        return Upper(self.epsilon0)

    @property
    def directed(self) -> bool:
        """True: the two directions of the divergence differ, as ones speak for one neighbour, zeros for the other."""
        return True

    def delta_at(self, epsilon: float) -> Interval:
        """Return bounds on delta at one epsilon (nats): the best test (N) in the larger of the two directions."""
        first, second = self.delta_pair(epsilon)
        return Interval(max(first.lower, second.lower), max(first.upper, second.upper))

    def delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """Return bounds on delta at one epsilon (nats) in both directions.

        The first counts ones: the neighbour holding x0 against the other. The second counts zeros.
        """
        if epsilon >= self.epsilon0:
            return Interval(0.0, 0.0), Interval(0.0, 0.0)
        scale, excess = victim_line(epsilon, self.epsilon0)
        first, second = (psi * Interval(scale, scale).inflated(10) for psi in self.test.psi(excess))
        return first, second

    def guess_epsilon(self, delta: float) -> float | None:
        """Guess the epsilon (nats) of a given delta by the Gaussian limit.

        The victim's report shifts the expected count by tanh(epsilon0/2). The guess only starts a search.
        """
        if self.others_deviation == 0.0:
            return None
        return gaussian_epsilon(delta, math.tanh(self.epsilon0 / 2.0) / self.others_deviation)


def rr_count_profile(budgets: Budgets, epsilon0: float, ones: int = 0) -> CountProfile:
    """Return the profile delta(epsilon) of the count of ones under shuffled binary randomized response.

    Exact for one budget with all others on x0, and while the likely counts are at most 4096; beyond, the best of
    some hundred thresholds, which is a valid witness a little below it.

    Parameters
    ----------
    budgets : Budgets
        All users' local budgets, the victim's included.
    epsilon0 : float
        Local budget of the victim (the user whose privacy is analysed), in nats; one of `budgets`.
    ones : int
        How many of the others hold x1, from 0 to n-1, in ascending order of budget; the rest hold x0.

    Raises
    ------
    InvalidInput
        If no user has that budget, or ones is out of range.

    Examples
    --------
    >>> rr_count_profile(Budgets([1.0], [3]), 1.0).delta(0.5).lower > 0.1
    True
    """
    if not 0 <= ones < budgets.n:
        raise InvalidInput(f"ones must be from 0 to n-1 = {budgets.n - 1}; got {ones}")
    others = budgets.counts.astype(np.float64)
    others[budgets.index_of(epsilon0)] -= 1.0
    s = lie_probability(budgets.epsilons)
    deviation = math.sqrt(float(s * (1.0 - s) @ others))
    if budgets.levels == 1 and ones == 0:
        return CountProfile(epsilon0, BinomialTest(float(others[0]), float(s[0])), deviation)
    holding = np.clip(ones - (np.cumsum(others) - others), 0.0, others)
    count = SuccessCount.of(np.concatenate((s, 1.0 - s)), np.concatenate((others - holding, holding)))
    return CountProfile(epsilon0, TabledTest.of(count), deviation)


def victims_among_all(budgets: Budgets) -> Callable[[float], CountProfile]:
    """Return a function from a victim's budget (nats) to the profile of the count of all users.

    The other users' count is replaced by that of all users: the victim's report counts once more, which hides more, so
    the profile stays a lower bound.

    Parameters
    ----------
    budgets : Budgets
        All users' local budgets, the victims' included.
    """
    count = SuccessCount.of(lie_probability(budgets.epsilons), budgets.counts.astype(np.float64))
    test = TabledTest.of(count)
    return lambda epsilon0: CountProfile(epsilon0, test, count.deviation)


def epsilons_among_all(budgets: Budgets, epsilon0: FloatArray, delta: float) -> FloatArray:
    """Return lower ends of each victim's epsilon at `delta` (nats), attained by the count of all users.

    It is 0 for a victim for whom no test exceeds delta.

    Parameters
    ----------
    budgets : Budgets
        All users' local budgets, the victims' included; counting the victim's report once more only hides more.
    epsilon0 : ndarray, shape (victims,)
        Local budgets of the victims in nats, ascending.
    delta : float
        Central delta.
    """
    test = TabledTest.of(SuccessCount.of(lie_probability(budgets.epsilons), budgets.counts.astype(np.float64)))
    return _bisect_many(test, epsilon0, delta)


def _bisect_many(test: TabledTest, epsilon0: FloatArray, delta: float) -> FloatArray:
    if epsilon0.size > 2000:  # the others take the next smaller victim's: a smaller budget leaks no more
        chosen = np.unique(np.linspace(0, epsilon0.size - 1, 2000).astype(np.int64))
        epsilons = _bisect_many(test, epsilon0[chosen], delta)
        return epsilons[np.searchsorted(chosen, np.arange(epsilon0.size), side="right") - 1]
    useful = test.through.lower > 1e-3 * delta
    through, before = test.through.lower[useful], test.before.upper[useful]

    def psi(excess: FloatArray) -> FloatArray:
        s = np.minimum(1.0 + excess, 1e300)
        return np.max(through - s[:, None] * before, axis=1, initial=0.0)

    return _bisect(psi, epsilon0, delta)


def epsilons_among_equals(epsilon0: FloatArray, others: FloatArray, delta: float) -> FloatArray:
    """Return lower ends of each victim's epsilon at `delta` (nats), hidden among users of the same budget only.

    Parameters
    ----------
    epsilon0, others : ndarray, shape (victims,)
        Local budgets of the victims in nats, and how many other users have the same: their count is N ~ Bin(others, s).
    delta : float
        Central delta.
    """
    p = lie_probability(epsilon0)

    def psi(excess: FloatArray) -> FloatArray:
        s = np.minimum(1.0 + excess, 1e300)
        k = np.floor((others + 1.0) * p / (p + s * (1.0 - p)))
        reach = np.abs(k - others * p) + np.sqrt(others * p) + 2.0
        slack = 2.0 * counts.RELATIVE_ERROR + roundoff(8, reach) / (1.0 - p)
        top = np.exp(counts.log_pmf(k, others, p)) * (1.0 - slack)
        return np.maximum(top - excess * counts.cdf(k - 1.0, others, p) * (1.0 + slack), 0.0)

    return _bisect(psi, epsilon0, delta)


def _bisect(psi: Callable[[FloatArray], FloatArray], epsilon0: FloatArray, delta: float) -> FloatArray:
    low, high = np.zeros_like(epsilon0), epsilon0.copy()
    for _ in range(36):
        middle = 0.5 * (low + high)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            room, damp = -np.expm1(middle - epsilon0), 1.0 + np.exp(-epsilon0)
            excess = np.where(room > 0, np.minimum(inflated(np.expm1(middle) * damp / room, 32), 1e300), 1e300)
            more = (room > 0) & (deflated(room / damp * psi(excess), 32) > delta)
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return low


class CountWitness(AmplificationBound):
    """The lower bound `count-exact`: binary randomized response with the worst of many tried record vectors.

    Its value is attained by real neighbouring inputs. The proof is in docs/theorems/count-exact.md.
    """

    key = "count-exact"
    kind = Kind.CERTIFIED_LOWER
    reference = "exact count of shuffled bits, the others on the worst record vector found"

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the attained profile delta(epsilon) of a victim of local budget `epsilon0` (nats), for one round.

        See `AmplificationBound.one_round`.
        """
        self._check(setting)
        channel = two_outcomes(setting.law)
        if shows_levels(setting):
            setting = level_alone(setting, epsilon0)
        if channel is not None:
            return channel_count(channel, setting.budgets.n, above=False)
        if setting.budgets.n == 1 or epsilon0 < LEAST_BUDGET:
            return LocalProfile(epsilon0, 0.0)
        if setting.law is not None and not sends_bits(setting):  # two outcomes, drawn some other way: others on x0
            return rr_count_profile(setting.budgets, epsilon0)
        return vector_profile(epsilon0, likely_worst_vectors(setting.budgets, setting.budgets.index_of(epsilon0)))

    def many_levels(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """Return lower ends of epsilon for the victims of many levels, from one count of all users, others on x0.

        See `AmplificationBound.many_levels`.
        """
        self._check(setting)
        budgets = setting.budgets
        if two_outcomes(setting.law) is not None:  # everybody has the same chances, whatever the stated budgets
            raise OutOfRegime(f"count-exact of a channel is not evaluated for more than {MANY_LEVELS} levels")
        epsilons = budgets.epsilons[levels]
        if shows_levels(setting):
            lower = epsilons_among_equals(epsilons, budgets.counts[levels].astype(np.float64) - 1.0, delta)
        else:
            lower = epsilons_among_all(budgets, epsilons, delta)
        return Enclosure(lower, lower)

    def any_victim(self, setting: Setting) -> Callable[[float], PrivacyProfile]:
        """Return a function from a victim's budget to a profile: the count of all users, the others on record x0.

        See `AmplificationBound.any_victim`.
        """
        self._check(setting)
        if shows_levels(setting) or two_outcomes(setting.law) is not None:
            raise OutOfRegime(
                f"count-exact over rounds or groups stops at {MANY_LEVELS} levels that show, or of a channel"
            )
        return victims_among_all(setting.budgets)

    def _check(self, setting: Setting) -> None:
        require_one_pure_round(setting, self.key)
        if two_outcomes(setting.law) is not None:
            return
        if setting.seen == "users" and setting.budgets.levels > 1:
            raise OutOfRegime("count-exact with several budgets is stated for unordered reports; got seen = users")
        two_point = setting.discrete is not None and setting.discrete.two_point
        if setting.law is not None and not (two_point or sends_bits(setting)):
            raise OutOfRegime(f"count-exact attacks reports of two outcomes; got {setting.randomizer_name}")
