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
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import (
    AmplificationBound,
    epsilons_by_anchors,
    level_alone,
    require_plain,
    shows_levels,
)
from shuffledp.accounting.engines.window_choice import WindowFamily, discrete_windows, noise_windows
from shuffledp.accounting.profiles.gaussian import gaussian_epsilon
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.errors import OutOfRegime
from shuffledp.guarantee import Kind
from shuffledp.numerics import binomial
from shuffledp.numerics.floats import EPS, round_down, round_up
from shuffledp.numerics.interval import Enclosure, FloatArray, Interval
from shuffledp.numerics.poisson_binomial import SuccessCount, SuccessRange
from shuffledp.setting import Setting

_TYPICAL = 1e-6
_NEGLIGIBLE = 1e-4
_SPREAD = np.array([-6.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 6.0])


def gain(family: WindowFamily, epsilon: float, *, outside: bool) -> Enclosure:
    """Enclose A of (W) for every window.

    Parameters
    ----------
    family : WindowFamily
        The windows.
    epsilon : float
        Nats, at least 0.
    outside : bool
        Whether reports outside are counted, for H(Q, P).
    """
    grow = math.expm1(min(epsilon, 700.0))
    low = family.p0 if outside else Enclosure(1.0 - family.p1.upper, 1.0 - family.p1.lower)
    doubt = 4.0 * EPS * (1.0 + grow)
    return Enclosure(
        family.p1.lower - family.p0.upper - grow * low.upper - doubt,
        family.p1.upper - family.p0.lower - grow * low.lower + doubt,
    )


def likely_values(family: WindowFamily, epsilon: float, *, outside: bool) -> tuple[FloatArray, FloatArray]:
    """Estimate (W) for every window, and its best threshold, N taken for a binomial of the same two moments.

    That binomial may have another number of trials: those outside are everybody less those inside.
    """
    a, grow = gain(family, epsilon, outside=outside).lower, math.expm1(min(epsilon, 700.0))
    useful = a > 0.0
    excess = np.where(useful, grow / np.where(useful, a, 1.0), 1e300)
    n, p = family.trials, family.chance
    q = 1.0 - p
    one, other = (q, p) if outside else (p, q)
    s = np.minimum(1.0 + excess, 1e300)
    k = np.floor((n + 1.0) * one / (one + s * other))
    inside = n - k if outside else k
    top = np.exp(binomial.log_pmf(inside, n, p))
    below = binomial.tail(n + 1.0 - k, n, p, np.full(k.shape, not outside))
    everybody = float(family.counts.sum())
    return np.where(useful, a * (top - excess * below), 0.0), everybody - inside if outside else k


@dataclass(frozen=True, eq=False)
class _Counted:
    """A count of independent successes whose chances are known between bounds.

    Parameters
    ----------
    law : SuccessRange
        The count with all chances at their lower, and at their upper ends.
    doubt : float
        P(fewest <= x)/P(most <= x) - 1 is at most this, for every x.
    """

    law: SuccessRange
    doubt: float

    @classmethod
    def of(cls, chances: Enclosure, counts: FloatArray) -> _Counted:
        """Raising chances from l to u divides P(at most x successes) by at most prod (1 - l)/(1 - u)."""
        least, most = np.clip(chances.lower, 0.0, 1.0), np.clip(chances.upper, 0.0, 1.0)
        with np.errstate(divide="ignore"):
            logs = float((most - least) / (1.0 - most) @ counts)
        law = SuccessRange(SuccessCount.of(least, counts), SuccessCount.of(most, counts))
        return cls(law, 2.0 * logs if logs < 0.5 else math.inf)

    def cdf(self, x: FloatArray) -> Enclosure:
        """Enclose P(count <= x); where the doubt is next to nothing, one evaluation serves both ends."""
        if self.doubt * (1.0 + self.law.most.deviation) > _NEGLIGIBLE:
            return self.law.cdf(x)
        found = self.law.most.cdf(x)
        return Enclosure(found.lower, np.minimum(found.upper * (1.0 + self.doubt), 1.0))


@dataclass(frozen=True, eq=False)
class WindowProfile(PrivacyProfile):
    """(W) for one pair of the victim's records and one record of the others.

    Parameters
    ----------
    family : WindowFamily
        The windows to choose from.
    largest_loss : float
        Nats, possibly inf: the victim's own report already vanishes there.
    """

    tolerance: ClassVar[float] = 2e-5

    family: WindowFamily
    largest_loss: float
    _counts: dict[tuple[int, bool], _Counted] = field(default_factory=dict[tuple[int, bool], _Counted])
    _known: dict[tuple[float, bool], tuple[Interval, Interval]] = field(
        default_factory=dict[tuple[float, bool], tuple[Interval, Interval]]
    )

    @property
    def vanishes_at(self) -> float:
        """Where A of (W) is negative for every window, in both directions."""
        p0, p1 = self.family.p0, self.family.p1
        least = np.minimum(p0.lower, 1.0 - p1.upper - EPS)
        if not (least > 0.0).all():
            return self.largest_loss
        top = float(np.log1p((p1.upper - p0.lower) / least).max()) * (1.0 + 16.0 * EPS)
        return min(top, self.largest_loss)

    @property
    def coarseness(self) -> float:
        """A search over windows at every knot of a table: fewer knots, which a witness may have."""
        return 10.0

    @property
    def mass_at_infinity(self) -> Interval:
        """None is shown."""
        return Interval(0.0, 0.0)

    @property
    def directed(self) -> bool:
        """One real pair."""
        return True

    def delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """(W) in both directions."""
        if epsilon >= self.vanishes_at:
            return Interval(0.0, 0.0), Interval(0.0, 0.0)
        return self._best(epsilon, False), self._best(epsilon, True)

    def delta_at(self, epsilon: float) -> Interval:
        """(W) in the direction that is likely to be the larger one: the other could only add to it."""
        likely = [float(likely_values(self.family, epsilon, outside=side)[0].max()) for side in (False, True)]
        return self._best(epsilon, likely[1] > likely[0])

    def test_masses(self, epsilon: float) -> tuple[Interval, Interval]:
        """Q(S) of the chosen tests: slopes of lines below the real curve, which need not be the best tests'."""
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
        values, thresholds = likely_values(self.family, epsilon, outside=outside)
        index = int(np.argmax(values))
        a, grow = gain(self.family, epsilon, outside=outside), math.expm1(min(epsilon, 700.0))
        low, high = float(a.lower[index]), float(a.upper[index])
        if low <= 0.0:
            return Interval(0.0, max(high, 0.0)), Interval(0.0, 0.0)
        count, estimated = self._counted(index, outside), float(self.family.mean[index])
        moved = count.law.most.mean - (float(self.family.counts.sum()) - estimated if outside else estimated)
        stride = max(1.0, math.floor(self.family.deviation[index] / 30.0))
        k = np.unique(np.maximum(float(thresholds[index]) + round(moved) + stride * _SPREAD, 0.0))
        tails = count.cdf(np.concatenate((k, k - 1.0)))
        through = Enclosure(tails.lower[: k.size], tails.upper[: k.size])
        before = Enclosure(tails.lower[k.size :], tails.upper[k.size :])
        # (W) increases in A, since F(k) >= F(k-1)
        least = low * through.lower - (low + grow) * before.upper * (1.0 + 8.0 * EPS)
        most = high * through.upper - (high + grow) * before.lower * (1.0 - 8.0 * EPS)
        lower = max(float(least.max()) - 8.0 * EPS * low, 0.0)
        best, p0, p1 = int(np.argmax(least)), self.family.p0, self.family.p1
        if outside:
            own = (float(p0.lower[index]), float(p0.upper[index]))
        else:
            own = (1.0 - float(p1.upper[index]), 1.0 - float(p1.lower[index]))
        mass = Interval(
            (own[0] * through.lower[best] + (1.0 - own[1]) * before.lower[best]) * (1.0 - 16.0 * EPS),
            (own[1] * through.upper[best] + (1.0 - own[0]) * before.upper[best]) * (1.0 + 16.0 * EPS),
        )
        return Interval(lower, max(float(most.max()) + 8.0 * EPS * high, lower)), mass

    def _counted(self, index: int, outside: bool) -> _Counted:
        """The law of N, or of N'; the others' chances are known between bounds."""
        key = (index, outside)
        if key not in self._counts:
            chances, counts = self.family.chances(index), self.family.counts
            if outside:
                chances = Enclosure(round_down(1.0 - chances.upper, 1), round_up(1.0 - chances.lower, 1))
            self._counts[key] = _Counted.of(chances, counts)
        return self._counts[key]

    def guess_epsilon(self, delta: float) -> float | None:
        """Where the estimate of the best window meets delta."""
        low, high = 0.0, min(2.0 * gaussian_epsilon(delta, self.family.signal) + 1e-9, self.vanishes_at)
        for _ in range(14):
            middle = 0.5 * (low + high)
            value = max(float(likely_values(self.family, middle, outside=side)[0].max()) for side in (False, True))
            low, high = (middle, high) if value > delta else (low, middle)
        return 0.5 * (low + high)


def best_family(families: list[WindowFamily]) -> WindowFamily:
    """Return the one that shows most at a typical delta: a pair of records, and a record of the others.

    Raises
    ------
    OutOfRegime
        If no family has a window.
    """
    families = [family for family in families if family.p0.lower.size]
    if not families:
        raise OutOfRegime("window found no outputs that certainly tell two records apart")
    usual = gaussian_epsilon(_TYPICAL, max(family.signal for family in families))
    shown = [0.0]
    for _ in range(40):  # of few users the Gaussian guess may lie where nothing is shown any more
        shown = [
            max(float(likely_values(family, usual, outside=side)[0].max()) for side in (False, True))
            for family in families
        ]
        if max(shown) > 0.01 * _TYPICAL or usual == 0.0:
            break
        usual *= 0.7
    return families[int(np.argmax(shown))]


class WindowWitness(AmplificationBound):
    """The count of reports in a window of outputs, for a stated randomizer: attained by real neighbours.

    See docs/theorems/window.md.
    """

    key = "window"
    kind = Kind.CERTIFIED_LOWER
    reference = "count of shuffled reports in a window of outputs, the others on one record"

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Profile of the best window of one victim; see `AmplificationBound.one_round`."""
        self._check(setting)
        if shows_levels(setting):
            setting = level_alone(setting, epsilon0)
        others = setting.budgets.counts.astype(np.float64)
        others[setting.budgets.index_of(epsilon0)] -= 1.0
        return self._profile(setting, setting.budgets.index_of(epsilon0), others)

    def many_levels(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """A few victims, hidden among all users; each of the rest takes the next smaller one's lower end."""
        victim = self.any_victim(setting)
        found = epsilons_by_anchors(setting.budgets.epsilons[levels], delta, victim, anchors=4)
        return Enclosure(found.lower, found.lower)

    def any_victim(self, setting: Setting) -> Callable[[float], PrivacyProfile]:
        """All users count as others: one report more only hides more. A smaller budget's report post-processes."""
        self._check(setting)
        budgets, noise = setting.budgets, setting.adds_noise
        if shows_levels(setting):
            raise OutOfRegime("window is not evaluated level by level for more than 32 visible levels")
        if noise is not None and np.any(np.diff(noise.scale(budgets.epsilons, budgets.deltas)) > 0.0):
            raise OutOfRegime("window with many levels needs noise that falls from level to level; delta0 upsets it")
        others = budgets.counts.astype(np.float64)
        return lambda epsilon0: self._profile(setting, budgets.index_of(epsilon0), others)

    def _profile(self, setting: Setting, level: int, others: FloatArray) -> WindowProfile:
        budgets = setting.budgets
        epsilon0 = float(budgets.epsilons[level])
        if setting.adds_noise is not None:
            scales = setting.adds_noise.scale(budgets.epsilons, budgets.deltas)
            families = noise_windows(setting.adds_noise.noise, scales, level, others)
            pure = setting.adds_noise.noise == "laplace"
            return WindowProfile(best_family(families), epsilon0 * (1.0 + 16.0 * EPS) if pure else math.inf)
        if setting.discrete is None:
            raise OutOfRegime("window attacks a stated randomizer; got 'any'")
        families = discrete_windows(setting.discrete, budgets.epsilons, level, others)
        return WindowProfile(best_family(families), math.inf)

    def _check(self, setting: Setting) -> None:
        require_plain(setting, self.key)
        law, budgets = setting.law, setting.budgets
        if law is None:
            raise OutOfRegime("window attacks a stated randomizer; got 'any'")
        if setting.seen == "sum":
            raise OutOfRegime("window counts reports; the sum of reports does not show them (see 'sum-exact')")
        if setting.seen == "users" and budgets.levels > 1:
            raise OutOfRegime("window with several budgets is stated for unordered reports; got seen = users")
        if setting.discrete is not None and setting.discrete.two_point:
            raise OutOfRegime("window is 'rr-exact' for two outcomes; see there")
        noise = setting.adds_noise
        if noise is not None and not np.isfinite(noise.scale(budgets.epsilons, budgets.deltas)).all():
            raise OutOfRegime("window needs finite noise of everybody; a budget of 0 has none: leave those users out")
        several = budgets.levels > 1 and not shows_levels(setting)
        if several and setting.discrete is not None and not setting.discrete.mixture:
            raise OutOfRegime(
                f"window with several budgets needs one blanket for all of them; {law.name} has its own per budget"
            )
