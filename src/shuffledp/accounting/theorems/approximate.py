"""Budgets with delta0 > 0 and any randomizer: the clone pair, and a charge for what is not pure.

One randomizer R for all n users of a level, (epsilon0, delta0)-LDP, E = e^epsilon0. With d = 2 delta0/E and
A_n(eps) the divergence of the clone pair, for every 0 <= eps < epsilon0

    H(eps) <= A_n(eps) + (1 + e^eps) delta0/(1 + E) + (n - 1) d (e^eps - 1 + 2 h),                                (D)
    h = min( (E - e^eps)/(1 + E),  (n A_n(eps) + e^eps - 1)/(n - 1) + (n - 1) d (1 + e^eps) ),

and H(eps) <= delta0 from epsilon0 on. Proof: docs/theorems/approximate.md. The true profile does not increase, so the
smallest value of (D) up to eps is a bound at eps too. Gaussian noise has a whole curve of points (epsilon', delta'),
and each of them may be used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import require_plain
from shuffledp.accounting.profiles.profile import PrivacyProfile, gaussian_epsilon
from shuffledp.accounting.theorems.clones.bound import AmongEquals
from shuffledp.accounting.theorems.clones.pair import ClonePairProfile, one_budget_profile
from shuffledp.accounting.theorems.local import LocalProfile
from shuffledp.errors import MAX_EPSILON0, OutOfRegime, check_delta
from shuffledp.numerics.floats import TINY, UNBOUNDED, Enclosure, Interval, Upper, deflated, inflated
from shuffledp.numerics.functions import crossing
from shuffledp.numerics.tails import normal_divergence
from shuffledp.setting import Kind, Setting

MAX_SHARED_LEVELS = 100
"""Largest number of levels with several users that are evaluated one by one."""
_LATTICE = 512
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
_SLACK = 64


@dataclass(frozen=True)
class LocalPoint:
    """The bound (D) of the module, for one point (epsilon0, delta0) of the randomizer's own profile.

    Parameters
    ----------
    epsilon0 : float
        Local budget of one report, nats, at least 0.
    delta0 : float
        In [0, 1): the randomizer is (epsilon0, delta0)-LDP.
    n : int
        Users of the level, at least 2.
    coarse : bool
        Whether the clone count is resolved less finely: faster, still certified, looser by up to 1e-3.
    """

    epsilon0: float
    delta0: float
    n: int
    coarse: bool = False

    @cached_property
    def pair(self) -> ClonePairProfile:
        """Profile of the clone pair of n users with budget epsilon0, A_n of (D)."""
        return one_budget_profile(self.epsilon0, self.n, coarse=self.coarse)

    def total(self, epsilon: float) -> Interval:
        """Enclose the right side of (D), an upper bound on delta(epsilon); delta0 from epsilon0 on.

        Parameters
        ----------
        epsilon : float
            Nats, at least 0.
        """
        if epsilon >= self.epsilon0:
            return Interval(self.delta0, self.delta0)
        delta = self.pair.delta(epsilon)
        low, high = self._charged(epsilon, delta.lower), self._charged(epsilon, delta.upper)
        return Interval(deflated(low, _SLACK), inflated(high, _SLACK))

    def _charged(self, epsilon: float, pair: float) -> float:
        """(D), increasing in A_n; every term is positive, so nothing cancels."""
        small, growth = math.exp(-self.epsilon0), math.expm1(epsilon)
        others = (self.n - 1.0) * 2.0 * self.delta0 * small
        alone = -math.expm1(epsilon - self.epsilon0) / (1.0 + small)
        hidden = min(alone, (self.n * pair + growth) / (self.n - 1.0) + others * (2.0 + growth))
        own = (2.0 + growth) * self.delta0 * small / (1.0 + small)
        return pair + own + others * (growth + 2.0 * hidden)


@dataclass(frozen=True, eq=False)
class ApproximateProfile(PrivacyProfile):
    """Upper bound (D) on the profile for a stated (epsilon0, delta0), and never above the local profile.

    Parameters
    ----------
    point : LocalPoint
        The budget and the number of users of its level.
    """

    point: LocalPoint

    @property
    def vanishes_at(self) -> Upper:
        """Infinite: delta stays positive at every epsilon, because delta0 may reveal the record outright."""
        return UNBOUNDED

    @property
    def mass_at_infinity(self) -> Interval:
        """Interval from 0 to an upper bound on the limit of delta for large epsilon, at most delta0."""
        return Interval(0.0, min(self._lowest[1].upper, self.point.delta0))

    @cached_property
    def _lowest(self) -> tuple[float, Interval]:
        """Where (D) is about smallest: its charge grows with epsilon. By golden sections; any point is valid."""
        low, high = 0.0, self.point.epsilon0
        for _ in range(40):
            left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
            falls = self.point.total(left).upper > self.point.total(right).upper
            low, high = (left, high) if falls else (low, right)
        return low, self.point.total(low)

    def delta_at(self, epsilon: float) -> Interval:
        """Enclose the smallest of the bound (D) at epsilon, (D) at a smaller epsilon, and the local profile."""
        parts = [self.point.total(epsilon)]
        parts.append(LocalProfile(self.point.epsilon0, self.point.delta0).delta_at(epsilon))
        where, value = self._lowest
        if epsilon >= where:
            parts.append(value)
        return Interval(min(part.lower for part in parts), min(part.upper for part in parts))

    def epsilon(self, delta: float) -> Interval:
        """Enclose the smaller of the local profile's epsilon and of the epsilon at which (D) falls to delta, nats."""
        target = check_delta(delta)
        local = LocalProfile(self.point.epsilon0, self.point.delta0).epsilon(target)
        where, value = self._lowest
        if value.upper >= target:
            return local
        if self.point.total(0.0).upper <= target:
            return Interval(0.0, 0.0)
        guess = self.point.pair.guess_epsilon(target)
        above, below = crossing(
            lambda epsilon: self.point.total(epsilon).upper, target, 0.0, where, guess, self.tolerance
        )
        lower = above if self.point.total(above).lower > target else 0.0
        return Interval(min(lower, local.lower), min(below, local.upper))


@dataclass(frozen=True, eq=False)
class GaussianPointsProfile(PrivacyProfile):
    """Upper bound (D) for Gaussian noise, at the best point (epsilon', delta') of its own profile for every epsilon.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise, in widths of the range of records, positive and finite; good to 4 roundoffs.
    n : int
        Users of the level, at least 2.
    """

    sigma: float
    n: int
    _points: dict[int, LocalPoint] = field(default_factory=dict[int, LocalPoint], repr=False)
    _last: list[int] = field(default_factory=list[int], repr=False)

    @property
    def vanishes_at(self) -> Upper:
        """Infinite: delta stays positive at every epsilon."""
        return UNBOUNDED

    @property
    def mass_at_infinity(self) -> Interval:
        """Interval [0, 0]: delta tends to 0 for large epsilon, because the density ratio is finite everywhere."""
        return Interval(0.0, 0.0)

    @cached_property
    def _reach(self) -> float:
        """The largest epsilon' worth trying: beyond, delta' has left the doubles."""
        return min(gaussian_epsilon(TINY, 1.0 / self.sigma), MAX_EPSILON0)

    def _point(self, index: int) -> LocalPoint:
        if index not in self._points:
            epsilon = self._reach * index / _LATTICE
            self._points[index] = LocalPoint(epsilon, self._local(epsilon).upper, self.n, coarse=True)
        return self._points[index]

    def _local(self, epsilon: float) -> Interval:
        """Return the noise's own profile: two records are at most one width apart."""
        low = normal_divergence(epsilon, deflated(1.0, 8) / self.sigma)
        high = normal_divergence(epsilon, inflated(1.0, 8) / self.sigma)
        return Interval(float(low.lower), float(high.upper))

    def delta_at(self, epsilon: float) -> Interval:
        """Enclose (D) at the best of several points (epsilon', delta'), or the noise's own profile where it is smaller.

        The points are searched downhill over a lattice from the last best one; every point gives a bound.
        """
        cost: dict[int, float] = {}

        def at(index: int) -> float:
            if index not in cost:
                cost[index] = self._point(index).total(epsilon).upper
            return cost[index]

        best, stride = (self._last[0], 8) if self._last else (_start(at), _LATTICE // 32)
        while stride:
            nearby = [i for i in (best - stride, best + stride) if 1 <= i <= _LATTICE]
            better = min(nearby, key=at)
            best, stride = (better, stride) if at(better) < at(best) else (best, stride // 2)
        self._last[:] = [best]
        total, local = self._point(best).total(epsilon), self._local(epsilon)
        return Interval(min(total.lower, local.lower), min(total.upper, local.upper))


def _start(cost: Callable[[int], float]) -> int:
    """Return a first point, from a coarse walk over all."""
    return min(range(_LATTICE // 16, _LATTICE + 1, _LATTICE // 16), key=cost)


class ApproximateBound(AmongEquals):
    """Upper bound for users of one level with delta0 > 0, whatever their common randomizer, by the clone pair.

    See docs/theorems/approximate.md.
    """

    key = "approximate"
    kind = Kind.CERTIFIED_UPPER
    reference = "clone theorem within the victim's level, delta0 charged by coupling (own proof), n = n_g"

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the upper bound (D) on the profile of a victim of budget ``epsilon0``.

        Levels that differ only in delta0 share one epsilon0: the profile holds for the worst of them. See
        `AmplificationBound.one_round`.
        """
        require_plain(setting, self.key)
        budgets = setting.budgets
        if setting.seen == "users" and budgets.levels > 1:
            raise OutOfRegime("approximate needs budgets that belong to users; got seen = users with several budgets")
        delta0 = float(budgets.deltas[budgets.index_of(epsilon0)])
        if delta0 == 0.0:
            raise OutOfRegime("approximate is for delta0 > 0; a pure budget is served by 'clones', 'blanket'")
        same = budgets.epsilons == epsilon0
        n = int(budgets.counts[same].min())
        if n == 1:
            return LocalProfile(epsilon0, delta0)  # nobody to hide among
        if setting.adds_noise is not None and setting.adds_noise.noise == "gaussian":
            return GaussianPointsProfile(float(setting.adds_noise.scale(epsilon0, budgets.deltas[same]).min()), n)
        return ApproximateProfile(LocalPoint(epsilon0, delta0, n))

    def many_levels(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """Enclose the epsilon of each listed level (nats); a user alone in a level has the local profile.

        See `AmplificationBound.many_levels`.
        """
        shared = int((setting.budgets.counts[levels] > 1).sum())
        if shared > MAX_SHARED_LEVELS:
            raise OutOfRegime(f"approximate is evaluated for up to {MAX_SHARED_LEVELS} levels of several users each")
        intervals = [self.one_round(setting, float(setting.budgets.epsilons[level])).epsilon(delta) for level in levels]
        return Enclosure(np.array([f.lower for f in intervals]), np.array([f.upper for f in intervals]))
