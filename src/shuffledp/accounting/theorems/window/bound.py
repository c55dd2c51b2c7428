"""Counting the reports that fall into a window W of outputs: a witness for any stated randomizer.

The victim's report lies in W with chance p0 or p1 > p0, that of another user, all of whom hold one record, with chance
q_i. With N = sum of Bern(q_i) and N' the number of others outside W, for every threshold k,

    H(P, Q) >= A F(k) - (A + e^eps - 1) F(k-1),      A = p1 - p0 - (e^eps - 1)(1 - p1),   F(k) = P(N <= k),
    H(Q, P) >= the same with N' for N,               A = p1 - p0 - (e^eps - 1) p0,                                 (W)

P the law of all reports under x0, Q under x1. The pair and the others' record are chosen once, so that all values
belong to one real pair of laws; window and threshold are chosen per epsilon. Choices are made in plain arithmetic;
whatever is chosen is a test, and its value is enclosed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import (
    AmplificationBound,
    epsilons_by_anchors,
    level_alone,
    refuse_third_records,
    require_plain,
    shows_levels,
)
from shuffledp.accounting.profiles.composition import ComposedProfile
from shuffledp.accounting.profiles.profile import PrivacyProfile, gaussian_epsilon, shift_through
from shuffledp.accounting.theorems.window.choice import Company, WindowFamily, discrete_windows, noise_windows
from shuffledp.errors import OutOfRegime
from shuffledp.numerics import counts
from shuffledp.numerics.counts import SuccessCount, SuccessRange
from shuffledp.numerics.floats import (
    UNBOUNDED,
    Enclosure,
    FloatArray,
    Interval,
    Upper,
    deflated,
    inflated,
    next_below,
    roundoff,
)
from shuffledp.setting import Kind, Setting

# ------------------------------------------------------------------ window count
# The count of reports in a window: how (W) of `theorems.window` is estimated and enclosed, for one victim or many.

_NEGLIGIBLE = 1e-4
_THRESHOLDS = 120
_BISECTIONS = 32


def gain(p0: Enclosure, p1: Enclosure, epsilon: float | FloatArray, *, outside: bool) -> Enclosure:
    """Enclose A of (W), the factor of F(k) in the test's value, elementwise.

    Parameters
    ----------
    p0, p1 : Enclosure
        The victim's chances of the window under x0 and x1.
    epsilon : float or ndarray
        Epsilon of the divergence, nats, at least 0.
    outside : bool
        Whether reports outside the window are counted, for H(Q, P), instead of those inside, for H(P, Q).
    """
    grow = np.expm1(np.minimum(epsilon, 700.0))
    low = p0 if outside else Enclosure(1.0 - p1.upper, 1.0 - p1.lower)
    doubt = roundoff(4, 1.0 + grow)
    return Enclosure(
        p1.lower - p0.upper - grow * low.upper - doubt,
        p1.upper - p0.lower - grow * low.lower + doubt,
    )


def likely_values(family: WindowFamily, epsilon: float, *, outside: bool) -> tuple[FloatArray, FloatArray]:
    """Estimate the value of (W) and the best threshold for the promising windows; nothing is certified.

    The count N is replaced by a binomial of the same mean and variance, which may have another number of trials than
    there are users; the count outside is the number of users minus the count inside. Windows that are not promising get
    the value 0.

    Parameters
    ----------
    family : WindowFamily
        The windows.
    epsilon : float
        Nats.
    outside : bool
        Whether reports outside the window are counted.
    """
    at = family.promising
    a, grow = gain(family.p0, family.p1, epsilon, outside=outside).lower[at], math.expm1(min(epsilon, 700.0))
    useful = a > 0.0
    excess = np.where(useful, grow / np.where(useful, a, 1.0), 1e300)
    n, p = family.trials[at], family.chance[at]
    q = 1.0 - p
    one, other = (q, p) if outside else (p, q)
    s = np.minimum(1.0 + excess, 1e300)
    k = np.floor((n + 1.0) * one / (one + s * other))
    inside = n - k if outside else k
    top = np.exp(counts.log_pmf(inside, n, p))
    below = counts.tail(n + 1.0 - k, n, p, np.full(k.shape, not outside))
    values, thresholds = np.zeros(family.mean.shape), np.zeros(family.mean.shape)
    values[at] = np.where(useful, a * (top - excess * below), 0.0)
    thresholds[at] = float(family.counts.sum()) - inside if outside else k
    return values, thresholds


@dataclass(frozen=True, eq=False)
class CountedReports:
    """A count of independent successes whose chances are known only between lower and upper bounds.

    Parameters
    ----------
    least, most : ndarray, shape (groups,)
        Ends of the chances, in [0, 1].
    counts : ndarray, shape (groups,)
        Users by group.
    """

    least: FloatArray
    most: FloatArray
    counts: FloatArray

    @classmethod
    def of(cls, chances: Enclosure, counts: FloatArray) -> CountedReports:
        """Return the count of successes whose chances lie in the given bounds, cut to [0, 1]; ``counts`` users each."""
        return cls(np.clip(chances.lower, 0.0, 1.0), np.clip(chances.upper, 0.0, 1.0), counts)

    @cached_property
    def highest(self) -> SuccessCount:
        """The count with every success chance at its upper bound."""
        return SuccessCount.of(self.most, self.counts)

    @cached_property
    def law(self) -> SuccessRange:
        """The counts with every chance at its lower bound and at its upper bound, as one range."""
        return SuccessRange(SuccessCount.of(self.least, self.counts), self.highest)

    @cached_property
    def doubt(self) -> Upper:
        """Upper bound on P(fewest <= x)/P(most <= x) - 1 over all x, with `fewest` and `most` the counts of `law`.

        Raising chances from l to u divides P(at most x successes) by at most prod (1 - l)/(1 - u).
        """
        with np.errstate(divide="ignore"):
            logs = float((self.most - self.least) / (1.0 - self.most) @ self.counts)
        return Upper(2.0 * logs) if logs < 0.5 else UNBOUNDED

    @classmethod
    def of_window(cls, family: WindowFamily, index: int, *, outside: bool) -> CountedReports:
        """Return the count N of (W), other users' reports in the window, or N', those outside it."""
        chances = family.chances(index)
        if outside:
            chances = chances.complement()
        return cls.of(chances, family.counts)

    def cdf(self, x: FloatArray) -> Enclosure:
        """Enclose P(count <= x) elementwise; where `doubt` is negligible, one evaluation serves both ends."""
        if self.doubt * (1.0 + self.highest.deviation) > _NEGLIGIBLE:
            return self.law.cdf(x)
        enclosure = self.highest.cdf(x)
        return Enclosure(enclosure.lower, np.minimum(enclosure.upper * (1.0 + self.doubt), 1.0))


@dataclass(frozen=True, eq=False)
class SharedCount:
    """The other users' count for one window at many thresholds, with many victims' chances of that window.

    A victim is a user whose privacy is analysed.

    Parameters
    ----------
    through, before : Enclosure, shape (thresholds,)
        F(k) = P(N <= k) and F(k-1) of (W), N the count of other users' reports.
    p0, p1 : Enclosure, shape (victims,)
        The victims' chances of the window under x0 and x1.
    outside : bool
        Whether reports outside the window are counted.
    """

    through: Enclosure
    before: Enclosure
    p0: Enclosure
    p1: Enclosure
    outside: bool

    @classmethod
    def of(
        cls,
        count: CountedReports,
        p0: Enclosure,
        p1: Enclosure,
        delta: float,
        *,
        outside: bool,
        thresholds: int = _THRESHOLDS,
    ) -> SharedCount:
        """Tabulate the count's distribution at about so many thresholds near which delta is attained.

        Fewer thresholds can only lower the bound.

        Parameters
        ----------
        count : CountedReports
            Number of other users' reports in the window.
        p0, p1 : Enclosure, shape (victims,)
            The victims' chances of the window under x0 and x1.
        delta : float
            The delta at which epsilon is wanted, in (0, 1); it determines how far the thresholds reach.
        outside : bool
            Whether reports outside the window are counted.
        """
        mean, deviation = count.highest.mean, count.highest.deviation
        deep = 1.0 + math.sqrt(2.0 * -math.log(delta))  # F(k) <= exp(-(mean - k)^2/(2 variance)), about
        low, high = max(0.0, math.floor(mean - deep * deviation)), math.ceil(mean + 2.0 * deviation) + 1.0
        k = np.unique(np.floor(np.linspace(low, high, min(thresholds, int(high - low) + 1))))
        every = np.union1d(k, k - 1.0)
        tails = count.cdf(every)
        at, before = np.searchsorted(every, k), np.searchsorted(every, k - 1.0)
        return cls(
            Enclosure(tails.lower[at], tails.upper[at]),
            Enclosure(tails.lower[before], tails.upper[before]),
            p0,
            p1,
            outside,
        )

    def lower_bounds(self, epsilon: FloatArray) -> FloatArray:
        """Return, for each victim, a lower bound on (W) at the best tabled threshold, shape (victims,).

        ``epsilon`` holds one epsilon (nats) for each victim.
        """
        a = np.maximum(gain(self.p0, self.p1, epsilon, outside=self.outside).lower, 0.0)
        grow = np.expm1(np.minimum(epsilon, 700.0))
        # (W) increases in A, since F(k) >= F(k-1); at A = 0 no threshold shows anything
        price = inflated(a + grow, 8)
        values = a[:, None] * self.through.lower - price[:, None] * self.before.upper
        return np.where(a > 0.0, np.maximum(values.max(axis=1) - roundoff(8, a), 0.0), 0.0)

    def best(self, epsilon: FloatArray) -> tuple[FloatArray, Enclosure]:
        """Return, for one victim, the best tabled test's lower bound on (W), and its mass under the second law.

        ``epsilon`` (nats) and both results have the shape (points,). Where no test shows anything, the results are
        those of the test that never rejects.
        """
        a = gain(self.p0, self.p1, epsilon, outside=self.outside).lower
        price = inflated(a + np.expm1(np.minimum(epsilon, 700.0)), 8)
        values = a[:, None] * self.through.lower - price[:, None] * self.before.upper
        at = np.argmax(values, axis=1)
        lower = values[np.arange(at.size), at] - roundoff(8, a)
        positive = (a > 0.0) & (lower > 0.0)
        p0, p1 = (Interval(float(p.lower[0]), float(p.upper[0])) for p in (self.p0, self.p1))
        through, before = (Enclosure(f.lower[at], f.upper[at]) for f in (self.through, self.before))
        mass = test_mass(needless(p0, p1, outside=self.outside), through, before)
        lower, *ends = (np.where(positive, each, 0.0) for each in (lower, *mass))
        return lower, Enclosure(*ends)


def needless(p0: Interval, p1: Interval, *, outside: bool) -> Interval:
    """Enclose p0, or 1 - p1 for reports inside: the victim's chance under its second law that its report is counted.

    Parameters
    ----------
    p0, p1 : Interval
        The victim's chances of the window under x0 and x1.
    outside : bool
        Whether reports outside the window are counted.
    """
    return p0 if outside else Interval(1.0 - p1.upper, 1.0 - p1.lower)


def test_mass(own: Interval, through: Enclosure, before: Enclosure) -> Enclosure:
    """Enclose the probability under the second law of each test's event: that at most k reports are counted.

    Parameters
    ----------
    own : Interval
        The victim's chance `needless`.
    through, before : Enclosure
        F(k) and F(k-1) of (W), in the shape of the result.
    """
    return Enclosure(
        deflated(own.lower * through.lower + (1.0 - own.upper) * before.lower, 16),
        inflated(own.upper * through.upper + (1.0 - own.lower) * before.upper, 16),
    )


def shown_epsilons(tests: Sequence[SharedCount], delta: float, victims: int, top: float) -> FloatArray:
    """Return, per victim, the largest epsilon found (nats) at which a test certainly exceeds delta; 0 if none.

    Parameters
    ----------
    tests : sequence of SharedCount
        Tests of the same victims.
    delta : float
        Central delta.
    victims : int
        Number of victims.
    top : float
        Where the search begins, in nats: above every expected epsilon.
    """
    epsilons = np.zeros(victims)
    for test in tests:
        low, high = epsilons, np.full(victims, top)
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            more = test.lower_bounds(middle) > delta
            low, high = np.where(more, middle, low), np.where(more, high, middle)
        epsilons = low
    return epsilons


_TYPICAL = 1e-6
_ANCHORS = 4
"""Largest number of victims who choose windows; the other victims are tested with the same windows."""
_GENTLE = 0.25
"""Largest signal of one round for which several rounds are attacked by a few windows."""
_WEIGHED = np.array([-1.5, 0.0, 1.5, 3.0])
"""Places around the saddle point of one round's curve, in multiples of the signal, each with a window of its own."""
_FAR_DELTA, _FINELY = _TYPICAL**2, 400
"""Delta to which those windows' counts are tabled, and at how many thresholds."""
_SPREAD = np.array([-6.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 6.0])
_LOOKS, _NEAR_ENOUGH = 30, 2e-3
"""How often the epsilon of a delta is guessed anew, and the relative change from which on it is not."""
_SHORT_OF = (1e-9, 1e-8, 1e-6, 1e-4)
"""How far, relatively, below the quotient of its doubles a certain epsilon is tried."""


@dataclass(frozen=True, eq=False)
class WindowProfile(PrivacyProfile):
    """Lower bound (W) on delta(epsilon) for one pair of the victim's records and one record of the other users.

    Parameters
    ----------
    family : WindowFamily
        The windows to choose from.
    largest_loss : float
        Largest privacy loss of the victim's own report, in nats, possibly inf; delta is 0 from there on.
    """

    tolerance: ClassVar[float] = 2e-5

    family: WindowFamily
    largest_loss: Upper
    _counts: dict[tuple[int, bool], CountedReports] = field(default_factory=dict[tuple[int, bool], CountedReports])
    _known: dict[tuple[float, bool], tuple[Interval, Interval]] = field(
        default_factory=dict[tuple[float, bool], tuple[Interval, Interval]]
    )
    _estimates: dict[tuple[float, bool], tuple[FloatArray, FloatArray]] = field(
        init=False, default_factory=dict[tuple[float, bool], tuple[FloatArray, FloatArray]], repr=False
    )

    @property
    def vanishes_at(self) -> Upper:
        """The epsilon, in nats, from which every window's bound is 0: A of (W) is negative in both directions."""
        p0, p1 = self.family.p0, self.family.p1
        least = np.minimum(p0.lower, next_below(1.0 - p1.upper))
        if not (least > 0.0).all():
            return self.largest_loss
        top = Upper(inflated(float(np.log1p((p1.upper - p0.lower) / least).max()), 16))
        return min(top, self.largest_loss)

    @property
    def coarseness(self) -> float:
        """Factor by which a table of this profile may be less accurate, as a knot needs a search over windows."""
        return 10.0

    @property
    def mass_at_infinity(self) -> Interval:
        """0: this test shows no outcome of infinite privacy loss."""
        return Interval(0.0, 0.0)

    @property
    def directed(self) -> bool:
        """True: the profile belongs to one pair of neighbours, whose two directions differ."""
        return True

    def delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """Return lower bounds (W) on delta at one epsilon (nats) in both directions."""
        if epsilon >= self.vanishes_at:
            return Interval(0.0, 0.0), Interval(0.0, 0.0)
        return self._best(epsilon, False), self._best(epsilon, True)

    def delta_at(self, epsilon: float) -> Interval:
        """Return the bound (W) on delta at one epsilon (nats), in the direction that is likely the larger one."""
        likely = [float(self._likely(epsilon, side)[0].max()) for side in (False, True)]
        return self._best(epsilon, likely[1] > likely[0])

    def test_masses(self, epsilon: float) -> tuple[Interval, Interval]:
        """Return Q(S), the probability of the chosen tests' events S, in both directions.

        Each is the slope of a line below the true curve; the chosen tests need not be the best ones.
        """
        if epsilon >= self.vanishes_at:
            return Interval(0.0, 0.0), Interval(0.0, 0.0)
        return self._both(epsilon, False)[1], self._both(epsilon, True)[1]

    def _best(self, epsilon: float, outside: bool) -> Interval:
        return self._both(epsilon, outside)[0]

    def _both(self, epsilon: float, outside: bool) -> tuple[Interval, Interval]:
        key = (epsilon, outside)
        if key not in self._known:
            self._known[key] = self._enclosed(epsilon, outside)
        return self._known[key]

    def _enclosed(self, epsilon: float, outside: bool) -> tuple[Interval, Interval]:
        """Enclose the best test's divergence, and its mass under the second law."""
        values, thresholds = self._likely(epsilon, outside)
        index = int(np.argmax(values))
        a, grow = gain(self.family.p0, self.family.p1, epsilon, outside=outside), math.expm1(min(epsilon, 700.0))
        low, high = float(a.lower[index]), float(a.upper[index])
        if low <= 0.0:
            return Interval(0.0, max(high, 0.0)), Interval(0.0, 0.0)
        through, before = self._tails(index, outside, float(thresholds[index]))
        # (W) increases in A, since F(k) >= F(k-1)
        least = low * through.lower - inflated((low + grow) * before.upper, 8)
        most = high * through.upper - deflated((high + grow) * before.lower, 8)
        lower = max(float(least.max()) - roundoff(8, low), 0.0)
        best, own = int(np.argmax(least)), self._needless(index, outside)
        mass = test_mass(own, *(Enclosure(tail.lower[[best]], tail.upper[[best]]) for tail in (through, before)))
        value = Interval(lower, max(float(most.max()) + roundoff(8, high), lower))
        return value, Interval(float(mass.lower[0]), float(mass.upper[0]))

    def _tails(self, index: int, outside: bool, threshold: float) -> tuple[Enclosure, Enclosure]:
        """F(k) and F(k-1) of (W) at thresholds k around the one that is best by the estimate."""
        count, estimated = self._counted(index, outside), float(self.family.mean[index])
        moved = count.highest.mean - (float(self.family.counts.sum()) - estimated if outside else estimated)
        stride = max(1.0, math.floor(self.family.deviation[index] / 30.0))
        k = np.unique(np.maximum(threshold + round(moved) + stride * _SPREAD, 0.0))
        tails = count.cdf(np.concatenate((k, k - 1.0)))
        return (
            Enclosure(tails.lower[: k.size], tails.upper[: k.size]),
            Enclosure(tails.lower[k.size :], tails.upper[k.size :]),
        )

    def _needless(self, index: int, outside: bool) -> Interval:
        p0, p1 = (Interval(float(p.lower[index]), float(p.upper[index])) for p in (self.family.p0, self.family.p1))
        return needless(p0, p1, outside=outside)

    def _inverse(self, target: float) -> Interval:
        """Enclose where the test of the best window falls to the target; nobody has to search for it.

        For one window and threshold (W) is linear in e^epsilon, so both ends are quotients. The estimate tells the
        window and the thresholds, at the epsilon where the estimate meets the target.
        """
        best, epsilon = Interval(0.0, 0.0), self._expected(target)
        last: tuple[int, bool] | None = None
        for _ in range(_LOOKS):
            side = max((False, True), key=lambda side: float(self._likely(epsilon, side)[0].max()))
            values, thresholds = self._likely(epsilon, side)
            index = int(np.argmax(values))
            interval = self._meets(index, side, float(thresholds[index]), target)
            best = max(best, interval, key=lambda one: one.lower)
            if values[index] <= 0.0:
                break
            # a window whose value drops there may leave another one above the target: then choose anew behind the drop
            smooth = abs(math.log(values[index] / target)) < 1.0 or (index, side) == last
            if smooth and abs(interval.lower - epsilon) <= _NEAR_ENOUGH * epsilon:
                break
            last = index, side
            # window and thresholds suit another epsilon
            epsilon = interval.lower if interval.lower > 0.0 else 0.5 * epsilon
        return best

    def _expected(self, target: float) -> float:
        """About the epsilon at which the best window's estimate meets the target."""
        epsilon = min(gaussian_epsilon(target, self.family.signal), 0.9 * min(self.vanishes_at, 700.0))
        for _ in range(_LOOKS):
            value = max(float(self._likely(epsilon, side)[0].max()) for side in (False, True))
            shift = shift_through(epsilon, value) if value > 0.0 else None
            following = 0.7 * epsilon if shift is None else gaussian_epsilon(target, shift)
            following = min(following, 0.5 * (epsilon + min(self.vanishes_at, 700.0)))
            close = abs(following - epsilon) <= _NEAR_ENOUGH * epsilon
            epsilon = following
            if close:
                break
        return epsilon

    def _meets(self, index: int, outside: bool, threshold: float, target: float) -> Interval:
        """Enclose the epsilon at which (W) of one window, at its best threshold of a few, falls to the target."""
        through, before = self._tails(index, outside, threshold)
        own, p0, p1 = self._needless(index, outside), self.family.p0, self.family.p1
        apart = Interval(float(p1.lower[index] - p0.upper[index]), float(p1.upper[index] - p0.lower[index]))
        # (W) is apart (F(k) - F(k-1)) - (e^eps - 1) (own F(k) + (1 - own) F(k-1))
        jump = np.maximum(through.lower - before.upper, 0.0), through.upper - before.lower
        with np.errstate(divide="ignore"):
            least = (deflated(apart.lower, 4) * jump[0] - target) / (own.upper * jump[0] + before.upper)
            most = (inflated(apart.upper, 4) * jump[1] - target) / (own.lower * jump[1] + before.lower)
        low, high = (math.log1p(max(float(np.nanmax(ends, initial=0.0)), 0.0)) for ends in (least, most))
        return Interval(self._certain(index, outside, (through, before), target, min(low, self.vanishes_at)), high)

    def _certain(
        self, index: int, outside: bool, tails: tuple[Enclosure, Enclosure], target: float, epsilon: float
    ) -> float:
        """Return an epsilon, next to the given one, at which (W) is certainly above the target; 0 if there is none."""
        p0, p1 = (Enclosure(p.lower[[index]], p.upper[[index]]) for p in (self.family.p0, self.family.p1))
        test = SharedCount(*tails, p0, p1, outside)
        for less in _SHORT_OF:
            at = min(epsilon, 700.0) * (1.0 - less)
            if at > 0.0 and test.lower_bounds(np.array([at]))[0] > target:
                return at
        return 0.0

    def _likely(self, epsilon: float, outside: bool) -> tuple[FloatArray, FloatArray]:
        """`likely_values` of one side, kept for a moment: choosing the side and enclosing it both ask."""
        key = (epsilon, outside)
        if key not in self._estimates:
            if len(self._estimates) >= 2:
                self._estimates.clear()
            self._estimates[key] = likely_values(self.family, epsilon, outside=outside)
        return self._estimates[key]

    def _counted(self, index: int, outside: bool) -> CountedReports:
        key = (index, outside)
        if key not in self._counts:
            self._counts[key] = CountedReports.of_window(self.family, index, outside=outside)
        return self._counts[key]

    def shared(self, epsilon: float, delta: float, scales: FloatArray) -> list[SharedCount]:
        """Return the best windows inside and outside at one epsilon, as tests of victims with other noise scales.

        Parameters
        ----------
        epsilon : float
            Nats, at least 0.
        delta : float
            The delta that the tests are to exceed, in (0, 1).
        scales : ndarray, shape (victims,)
            The victims' noise scales.
        """
        tests: list[SharedCount] = []
        for outside in (False, True):
            index = int(np.argmax(likely_values(self.family, epsilon, outside=outside)[0]))
            p0, p1 = self.family.victims(index, scales)
            tests.append(SharedCount.of(self._counted(index, outside), p0, p1, delta, outside=outside))
        return tests

    def repeated(self, rounds: int) -> PrivacyProfile | None:
        """Return the profile of several rounds by a few windows each way, or None if one round shows too much for that.

        The windows are those that seem best where the saddle point of a typical delta weighs one round's curve.
        """
        mu = self.family.signal
        if not 0.0 < mu <= _GENTLE:
            return None
        tilt = gaussian_epsilon(_TYPICAL, math.sqrt(rounds) * mu) / (rounds * mu * mu) - 0.5
        at = np.unique(np.maximum(max(tilt, 0.0) * mu * mu + _WEIGHED * mu, 0.0)).tolist()
        tables: list[list[SharedCount]] = []
        for outside in (False, True):
            best = {int(np.argmax(likely_values(self.family, epsilon, outside=outside)[0])) for epsilon in at}
            tables.append([self._tabled(index, outside) for index in sorted(best)])
        return ComposedProfile.of(TabledWindows(tables[0], tables[1], self.vanishes_at), rounds)

    def _tabled(self, index: int, outside: bool) -> SharedCount:
        p0, p1 = (Enclosure(p.lower[[index]], p.upper[[index]]) for p in (self.family.p0, self.family.p1))
        count = self._counted(index, outside)
        return SharedCount.of(count, p0, p1, _FAR_DELTA, outside=outside, thresholds=_FINELY)

    def guess_epsilon(self, delta: float) -> float | None:
        """Guess the epsilon (nats) of a given delta: where the estimate of the best window meets delta."""
        return self._expected(delta)


@dataclass(frozen=True, eq=False)
class TabledWindows(PrivacyProfile):
    """Lower bound (W) on delta(epsilon) by few windows whose counts are tabled: values at knots cost next to nothing.

    All tests are of the same pair of laws, that of a `WindowProfile`.

    Parameters
    ----------
    inside, outside : list of SharedCount
        Tests of one victim that count reports inside windows, and outside.
    top : float
        Epsilon (nats, possibly inf) from which on delta is 0.
    """

    inside: list[SharedCount]
    outside: list[SharedCount]
    top: Upper
    _known: dict[float, tuple[tuple[float, Interval], tuple[float, Interval]]] = field(
        default_factory=dict[float, tuple[tuple[float, Interval], tuple[float, Interval]]], repr=False
    )

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats, possibly inf) from which on delta is 0."""
        return self.top

    @property
    def mass_at_infinity(self) -> Interval:
        """0: this test shows no outcome of infinite privacy loss."""
        return Interval(0.0, 0.0)

    @property
    def directed(self) -> bool:
        """True: the profile belongs to one pair of neighbours, whose two directions differ."""
        return True

    def delta_at(self, epsilon: float) -> Interval:
        """Return the larger of both directions' lower bounds."""
        first, second = self.delta_pair(epsilon)
        return max(first, second, key=lambda one: one.lower)

    def delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """Return lower bounds (W) on delta at one epsilon (nats) in both directions, each as an interval of a point."""
        (first, _), (second, _) = self._best(epsilon)
        return Interval(first, first), Interval(second, second)

    def test_masses(self, epsilon: float) -> tuple[Interval, Interval]:
        """Return Q(S), the probability of the best tests' events S, in both directions; see `WindowProfile`."""
        (_, first), (_, second) = self._best(epsilon)
        return first, second

    def prepare(self, epsilons: list[float]) -> None:
        """Look at every test for several epsilons at once."""
        fresh = [epsilon for epsilon in epsilons if epsilon not in self._known]
        if fresh:
            sides = [_best_of(tests, np.array(fresh)) for tests in (self.inside, self.outside)]
            self._known.update(zip(fresh, zip(*sides, strict=True), strict=True))

    def _best(self, epsilon: float) -> tuple[tuple[float, Interval], tuple[float, Interval]]:
        self.prepare([epsilon])
        return self._known[epsilon]


def _best_of(tests: list[SharedCount], epsilon: FloatArray) -> list[tuple[float, Interval]]:
    """Return, at each epsilon, the largest of one victim's tests' lower bounds on (W), and that test's mass."""
    by_test = [test.best(epsilon) for test in tests]
    best = np.argmax([lower for lower, _ in by_test], axis=0).tolist()
    ends = [(lower.tolist(), mass.lower.tolist(), mass.upper.tolist()) for lower, mass in by_test]
    return [(ends[test][0][at], Interval(ends[test][1][at], ends[test][2][at])) for at, test in enumerate(best)]


def best_family(families: list[WindowFamily]) -> WindowFamily:
    """Return the windows (for one pair of records and one record of the others) that show the largest delta.

    Raises
    ------
    OutOfRegime
        If no family has a window.
    """
    families = [family for family in families if family.p0.lower.size]
    if not families:
        raise OutOfRegime("window found no outputs that certainly tell two records apart")
    usual = gaussian_epsilon(_TYPICAL, max(family.signal for family in families))
    deltas = [0.0]
    for _ in range(40):  # of few users the Gaussian guess may lie where nothing is shown any more
        deltas = [
            max(float(likely_values(family, usual, outside=side)[0].max()) for side in (False, True))
            for family in families
        ]
        if max(deltas) > 0.01 * _TYPICAL or usual == 0.0:
            break
        usual *= 0.7
    return families[int(np.argmax(deltas))]


class WindowWitness(AmplificationBound):
    """The lower bound `window`: the count of reports in a window of outputs, for a stated randomizer.

    Its value is attained by real neighbouring inputs. The proof is in docs/theorems/window.md.
    """

    key = "window"
    kind = Kind.CERTIFIED_LOWER
    reference = "count of shuffled reports in a window of outputs, the others on one record"

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the attained profile delta(epsilon) of a victim of local budget `epsilon0` (nats), for one round.

        See `AmplificationBound.one_round`.
        """
        self._check(setting)
        if shows_levels(setting):
            setting = level_alone(setting, epsilon0)
        others = setting.budgets.counts.astype(np.float64)
        others[setting.budgets.index_of(epsilon0)] -= 1.0
        return self._profile(setting, setting.budgets.index_of(epsilon0), others)

    def many_levels(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """Return lower ends of epsilon for the victims of many levels.

        A few victims are evaluated, with all users counted as the others. In a mixture family the ends of the other
        victims follow, for a smaller budget leaks no more. With added noise they do not, so (W) is evaluated for every
        victim, in the windows of the few. See `AmplificationBound.many_levels`.
        """
        budgets, noise = setting.budgets, setting.adds_noise
        victim, everybody = self.any_victim(setting), budgets.counts.astype(np.float64)
        if noise is None:
            enclosure = epsilons_by_anchors(budgets.epsilons[levels], delta, victim, anchors=_ANCHORS)
            return Enclosure(enclosure.lower, enclosure.lower)
        chosen = np.unique(np.round(np.linspace(0, levels.size - 1, min(_ANCHORS, levels.size))).astype(np.int64))
        scales = noise.scale(budgets.epsilons, budgets.deltas)[levels]
        lower, tests = np.zeros(levels.size), list[SharedCount]()
        for place in chosen.tolist():
            level = int(levels[place])
            own = victim(float(budgets.epsilons[level])).epsilon(delta).lower
            lower[place] = own
            tests += self._profile(setting, level, everybody).shared(own, delta, scales)
        top = gaussian_epsilon(delta, 1.0 / float(scales.min())) if noise.noise == "gaussian" else budgets.epsilons[-1]
        lower = np.maximum(lower, shown_epsilons(tests, delta, levels.size, float(top)))
        return Enclosure(lower, lower)

    def rises_with_budget(self, setting: Setting) -> bool:
        """Return whether a victim's epsilon never falls as the local budget rises.

        That may fail for added noise, where a user of a smaller budget may stand out.
        """
        return setting.adds_noise is None

    def any_victim(self, setting: Setting) -> Callable[[float], PrivacyProfile]:
        """Return a function from a victim's budget to a profile, in a mixture family, with all users counted as others.

        Counting one report more only hides more. See `AmplificationBound.any_victim`.
        """
        self._check(setting)
        if shows_levels(setting):
            raise OutOfRegime("window is not evaluated level by level for more than 32 visible levels")
        if setting.adds_noise is not None:
            return lambda epsilon0: self.one_round(setting, epsilon0)
        company = _company(setting, setting.budgets.counts.astype(np.float64))
        return lambda epsilon0: _discrete_profile(setting.budgets.index_of(epsilon0), company)

    def _profile(self, setting: Setting, level: int, others: FloatArray) -> WindowProfile:
        budgets = setting.budgets
        epsilon0 = float(budgets.epsilons[level])
        if setting.adds_noise is not None:
            scales = setting.adds_noise.scale(budgets.epsilons, budgets.deltas)
            families = noise_windows(setting.adds_noise.noise, scales, level, others, third=setting.records is None)
            pure = setting.adds_noise.noise == "laplace"
            return WindowProfile(best_family(families), Upper(inflated(epsilon0, 16)) if pure else UNBOUNDED)
        return _discrete_profile(level, _company(setting, others))

    def _check(self, setting: Setting) -> None:
        require_plain(setting, self.key)
        law, budgets = setting.law, setting.budgets
        if law is None:
            raise OutOfRegime("window attacks a stated randomizer; got 'any'")
        if setting.seen == "sum":
            raise OutOfRegime("window counts reports; the sum of reports does not show them (see 'sum-exact')")
        if setting.seen == "users" and budgets.levels > 1:
            raise OutOfRegime("window with several budgets is stated for unordered reports; got seen = users")
        if setting.discrete is not None:
            refuse_third_records(setting, self.key)
        if setting.discrete is not None and setting.discrete.two_point:
            raise OutOfRegime("window is 'count-exact' for two outcomes; see there")
        noise = setting.adds_noise
        if noise is not None and not np.isfinite(noise.scale(budgets.epsilons, budgets.deltas)).all():
            raise OutOfRegime("window needs finite noise of everybody; a budget of 0 has none: leave those users out")
        several = budgets.levels > 1 and not shows_levels(setting)
        if several and setting.discrete is not None and not setting.discrete.mixture:
            raise OutOfRegime(
                f"window with several budgets needs one blanket for all of them; {law.name} has its own per budget"
            )


def _company(setting: Setting, others: FloatArray) -> Company:
    """Count the others of a discrete family, level by level."""
    assert setting.discrete is not None  # whoever asks has checked that a randomizer is stated
    return Company(setting.discrete, setting.budgets.epsilons, others)


def _discrete_profile(level: int, company: Company) -> WindowProfile:
    """Profile of a victim of a discrete family."""
    return WindowProfile(best_family(discrete_windows(level, company)), UNBOUNDED)
