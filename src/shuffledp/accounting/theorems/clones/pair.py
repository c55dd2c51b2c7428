"""The clone pair, from which every two-outcome bound follows.

The victim's report is one of two outcomes, "like x0" or "like x1"; each of C other users is a clone, that is,
reports a fair coin over the same two. A victim with budget eps_v names her true outcome with probability
e^{eps_v}/(1+e^{eps_v}): randomized response applied to a noiseless victim. So for every eps < eps_v

    H(eps) = A * E_C psi_C(s),
    A = (e^{eps_v} - e^eps)/(1 + e^{eps_v}),    s = (e^{eps + eps_v} - 1)/(e^{eps_v} - e^eps),
    psi_c(s) = P(X >= a - 1) - s P(X >= a),   X ~ Bin(c, 1/2),   a = ceil((c+1) s/(1+s)),                      (C)

and H = 0 from eps_v on. psi is one convex, decreasing function of s, common to all budgets and epsilons.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np

from shuffledp.accounting.profiles.profile import PrivacyProfile, gaussian_epsilon, remembered_by_thread
from shuffledp.budgets import Budgets
from shuffledp.errors import NotConverged
from shuffledp.numerics import counts
from shuffledp.numerics.counts import BlockedCount, SuccessCount, SuccessRange
from shuffledp.numerics.floats import (
    LARGEST_BELOW_ONE,
    LOG_DEEP,
    TINY,
    Enclosure,
    FloatArray,
    Interval,
    Upper,
    deflated,
    inflated,
    roundoff,
)
from shuffledp.numerics.losses import log_sum

# ------------------------------------------------------------------ clone pair logs
# The clone pair where its delta leaves double range: logarithms of E_C psi_C(s), see (C) of `clone_pair`.
#
# With psi non-increasing in the number of clones, and blocks 0 = l_1 < l_2 < ... of that number,
#
#     E psi_C <= sum_j P(C < l_{j+1}) psi(l_j),        E psi_C >= sum_c P(C = c) psi(c),
#
# the second sum over any numbers c; P(C <= x) <= E exp(t (x - C)) for every t >= 0 (Chernoff), and P(C = c) is known
# for one budget. Blocks are divided where the first sum is made up, until their width no longer matters.

_CLOSE = 1e-3
_MOST_BLOCKS = 2000
_WINDOW = 200.0
_LOG_SLACK = counts.COMBINED_ERROR


def log_noiseless_divergence(clones: FloatArray, excess: float) -> Enclosure:
    """Enclose log psi_c(1 + excess), psi_c of (C): the logarithm of `noiseless_divergence`, for one excess.

    Parameters
    ----------
    clones : ndarray
        Whole numbers c >= 0.
    excess : float
        s - 1 >= 0, finite, good to 8 roundoffs relative.
    """
    failures = np.floor((clones + 1.0) / (2.0 + excess))
    log_pmf = counts.log_pmf(clones - failures, clones, 0.5)
    loss = np.where(failures >= 1, excess * counts.fair_tail_ratio(failures, clones), 0.0)
    doubt = counts.log_pmf_error(log_pmf)
    with np.errstate(divide="ignore"):
        upper = np.log(np.maximum((1.0 + _LOG_SLACK) - loss * (1.0 - _LOG_SLACK), _LOG_SLACK))
        lower = np.log(np.maximum((1.0 - _LOG_SLACK) - loss * (1.0 + _LOG_SLACK), 0.0))
    return Enclosure(log_pmf - doubt + lower, log_pmf + doubt + upper)


def log_expectation(clones: SuccessRange, excess: float) -> Interval:
    """Enclose log E psi_C(1 + excess), C the number of clones; the lower end is -inf for several budgets.

    Parameters
    ----------
    clones : SuccessRange
        The law of the number of clones C.
    excess : float
        s - 1 >= 0, finite, good to 8 roundoffs relative.
    """
    most = clones.most.n
    left = np.unique(np.floor(np.linspace(0.0, most, 65)))
    while True:
        psi = log_noiseless_divergence(left, excess)
        last = np.append(left[1:] - 1.0, most)
        above = _log_cdf(clones.fewest, last) + np.maximum.accumulate(psi.upper[::-1])[::-1]
        upper = float(log_sum(above))
        # what the width of the blocks costs: the same sum with P(C <= l_j) instead
        tight = float(np.max(_log_cdf(clones.fewest, left) + psi.lower))
        wide = (last > left) & (above > upper - 3.0)
        if upper - tight <= max(_CLOSE * abs(upper), 3.0) or not wide.any() or left.size > _MOST_BLOCKS:
            break
        fresh = [np.floor(left[wide] + part * (last[wide] - left[wide] + 1.0)) for part in (0.25, 0.5, 0.75)]
        left = np.unique(np.concatenate((left, *fresh)))
    lower = _log_lower(clones, excess, left[int(np.argmax(_log_pmf(clones, left) + psi.lower))])
    room = roundoff(8192, 1.0 + abs(upper))  # sums of some thousand positive terms
    return Interval(min(lower - room, upper), upper + room)


def _log_lower(clones: SuccessRange, excess: float, near: float) -> float:
    """Return the sum over numbers of clones around the largest term of a coarse search."""
    if not np.isfinite(_log_pmf(clones, np.array([near]))[0]):
        return -np.inf
    for step in (64.0, 8.0, 1.0):
        around = near + step * np.arange(-_WINDOW, _WINDOW + 1.0)
        around = around[(around >= 0.0) & (around <= clones.most.n)]
        logs = _log_pmf(clones, around) + log_noiseless_divergence(around, excess).lower
        near = float(around[int(np.argmax(logs))])
    return float(log_sum(logs))


def _log_cdf(count: SuccessCount, x: FloatArray) -> FloatArray:
    """Upper bound on log P(C <= x) below the mean, and 0 from there on: the best of many tilts."""
    if count.counts.size == 0:
        return np.zeros_like(x)
    t, log_mgf = count.tilts
    logs = log_mgf + t * np.minimum(x, count.mean)[:, None]
    best = np.argmin(logs, axis=1)
    doubt = roundoff(8, np.abs(log_mgf[best]) * count.counts.size + t[best] * x + 1.0)
    bound = np.where(x >= count.mean, 0.0, logs[np.arange(x.size), best] + doubt)
    # at x = 0 the best tilt is infinite
    none = float(np.log1p(-np.minimum(count.probabilities, LARGEST_BELOW_ONE)) @ count.counts) if count.n else 0.0
    return np.where(x == 0.0, np.minimum(bound, deflated(none, 2.0 * count.counts.size + 16.0)), np.minimum(bound, 0.0))


def _log_pmf(clones: SuccessRange, x: FloatArray) -> FloatArray:
    """Lower bound on log P(C = x): unimodal in the one success probability, so smallest at an end of its range."""
    low, high = clones.fewest, clones.most
    if not low.counts.size == high.counts.size == 1:
        return np.full_like(x, -np.inf)
    logs = np.minimum(counts.log_pmf(x, low.n, low.probabilities[0]), counts.log_pmf(x, high.n, high.probabilities[0]))
    return logs - counts.log_pmf_error(logs)


_SLACK = counts.COMBINED_ERROR
_DEPTHS = (11.0, 40.0)


def noiseless_divergence(clones: FloatArray, excess: FloatArray | float) -> Enclosure:
    """Enclose psi_c(1 + excess) of (C), element-wise, for each number of clones c.

    Parameters
    ----------
    clones : ndarray
        Whole numbers c >= 0.
    excess : ndarray or float
        s - 1 >= 0, good to 8 roundoffs relative; may be inf.

    Notes
    -----
    psi = pmf(a-1) - excess P(X >= a) = pmf(a-1) (1 - excess * ratio). A threshold a that rounding moves by
    one, because (c+1) s/(1+s) is within 8 roundoffs of a whole number, changes psi by at most 16 roundoffs pmf(a-1).
    """
    m = clones + 1.0
    failures = np.floor(m / (2.0 + excess))  # m - a
    pmf = np.exp(counts.log_pmf(m - failures - 1.0, clones, 0.5))
    ratio = counts.fair_tail_ratio(failures, clones)
    loss = np.where(failures >= 1, np.where(failures >= 1, excess, 0.0) * ratio, 0.0)
    upper = pmf * np.maximum((1.0 + _SLACK) - loss * (1.0 - _SLACK), 0.0) + TINY
    lower = pmf * np.maximum((1.0 - _SLACK) - loss * (1.0 + _SLACK), 0.0)
    return Enclosure(lower, upper)


def victim_line(epsilon: float, epsilon0: float) -> tuple[float, float]:
    """Return A and s - 1 of (C) for a victim of budget ``epsilon0`` at 0 <= epsilon < epsilon0, to 8 roundoffs."""
    room = -math.expm1(epsilon - epsilon0)
    damp = 1.0 + math.exp(-epsilon0)
    growth = math.expm1(epsilon) if epsilon < 709.0 else math.inf
    return room / damp, growth * damp / room


def clone_probability(epsilon0: FloatArray) -> FloatArray:
    """Return p = 2/(1 + e^epsilon0), the chance that a user of that budget is a clone; relative error 4 roundoffs."""
    low = np.exp(-epsilon0)
    return 2.0 * low / (1.0 + low)


def clone_count(budgets: Budgets, without: int) -> SuccessRange:
    """Return the law of C, the number of clones among all users but one of level ``without``."""
    others = budgets.counts.astype(np.float64)
    others[without] -= 1.0
    return SuccessRange.of(clone_probability(budgets.epsilons), others, ulps=8)


@dataclass(frozen=True, eq=False)
class ClonePairProfile(PrivacyProfile):
    """Profile of the clone pair (C) for one victim among users who may each be a clone.

    Parameters
    ----------
    epsilon0 : float
        The victim's local budget, nats.
    clones : SuccessRange
        The law of the number of clones among the other users.
    per_deviation : float
        Resolution of the number of clones: blocks per standard deviation.
    """

    epsilon0: float
    clones: SuccessRange
    per_deviation: float = 75.0
    _blocks: dict[float, BlockedCount] = field(default_factory=dict[float, BlockedCount], repr=False)
    _known: dict[float, Interval] = field(default_factory=dict[float, Interval], repr=False)

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats) from which on delta is 0: the victim's local budget."""
        return Upper(self.epsilon0)

    def delta_at(self, epsilon: float) -> Interval:
        """Enclose delta(epsilon) by (C); the far lower tail of the number of clones is resolved only if it matters."""
        if epsilon not in self._known:
            self._known[epsilon] = self._evaluated(epsilon)
        return self._known[epsilon]

    def _evaluated(self, epsilon: float) -> Interval:
        scale, excess = victim_line(epsilon, self.epsilon0)
        value = Interval(0.0, 1.0)
        for depth in _DEPTHS:
            blocks = self._resolved(depth)
            value = blocks.expectation(noiseless_divergence(blocks.left, excess))
            # the first block holds everything deeper: it was charged in full, at psi(0) <= 1
            if blocks.left.size < 2 or blocks.through.upper[0] <= 1e-7 * value.lower:
                break
        return value * Interval(scale, scale).inflated(10)

    def log_delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """Enclose log delta(epsilon), for both directions alike, also where delta is far below the smallest double."""
        log_delta, _ = super().log_delta_pair(epsilon)
        loose = log_delta.upper - log_delta.lower > 1e-2  # little resolved of the far tail of the clones
        if (log_delta.lower < LOG_DEEP or loose) and epsilon < self.epsilon0:
            scale, excess = victim_line(epsilon, self.epsilon0)
            if math.isfinite(excess):
                deep = log_expectation(self.clones, excess) + Interval(scale, scale).inflated(10).log()
                upper = min(log_delta.upper, deep.upper)
                log_delta = Interval(min(max(log_delta.lower, deep.lower), upper), upper)
        return log_delta, log_delta

    def _resolved(self, depth: float) -> BlockedCount:
        if depth not in self._blocks:
            # psi changes by about (1 + z^2)/2c per clone: beyond a million clones fewer blocks do
            relief = min(math.sqrt(1e6 / max(self.clones.most.mean, 1.0)), 1.0)
            per_deviation = max(self.per_deviation * relief, min(self.per_deviation, 8.0))
            self._blocks[depth] = BlockedCount.of(self.clones, depth, per_deviation)
        return self._blocks[depth]

    def guess_epsilon(self, delta: float) -> float | None:
        """Return the epsilon (nats) of the Gaussian limit, mu = tanh(eps_v/2) sqrt(4/E C); None without clones."""
        if self.clones.most.mean <= 0.0:
            return None
        return gaussian_epsilon(delta, math.tanh(self.epsilon0 / 2.0) * 2.0 / math.sqrt(self.clones.most.mean))


@remembered_by_thread(64)
def clone_pair(budgets: Budgets, level: int) -> ClonePairProfile:
    """Return the clone pair's profile for a victim of one level; cached, since several bounds ask for it.

    Parameters
    ----------
    budgets : Budgets
        The whole population, the victim included.
    level : int
        The victim's level, by its position among the budgets.
    """
    epsilon0 = float(budgets.epsilons[level])
    if budgets.levels == 1:
        return one_budget_profile(epsilon0, budgets.n, coarse=False)
    return ClonePairProfile(epsilon0, clone_count(budgets, level))


class SharedClonePairs:
    """Clone pairs of victims with the same other users: all users but one of the smallest budget, the likeliest clone.

    Parameters
    ----------
    budgets : Budgets
        The whole population.
    """

    def __init__(self, budgets: Budgets) -> None:
        self._shared = ClonePairProfile(1.0, clone_count(budgets, 0), per_deviation=10.0)
        self._victims: dict[float, ClonePairProfile] = {}

    def __call__(self, epsilon0: float) -> ClonePairProfile:
        """Return the pair of a victim of that budget (nats)."""
        if epsilon0 not in self._victims:
            self._victims[epsilon0] = replace(self._shared, epsilon0=epsilon0, _known={})
        return self._victims[epsilon0]


@remembered_by_thread(4)
def shared_clone_pairs(budgets: Budgets) -> SharedClonePairs:
    """Return the population's `SharedClonePairs`, cached, since several bounds ask for them."""
    return SharedClonePairs(budgets)


class CoarseClonePairProfile(ClonePairProfile):
    """Profile of the clone pair with lower resolution, for populations with thousands of levels.

    Still certified, and looser by up to 1e-3.
    """

    tolerance: ClassVar[float] = 1e-4


@remembered_by_thread(64)
def one_budget_profile(epsilon0: float, n: int, *, coarse: bool) -> ClonePairProfile:
    """Return the clone pair's profile for n users with one budget (2b); cached, since several bounds ask for it.

    Parameters
    ----------
    epsilon0 : float
        The common local budget, nats.
    n : int
        Number of users.
    coarse : bool
        Whether the number of clones is resolved less finely: faster, still certified, looser by up to 1e-3.
    """
    count = clone_count(Budgets([epsilon0], [n]), 0)
    return CoarseClonePairProfile(epsilon0, count, per_deviation=10.0) if coarse else ClonePairProfile(epsilon0, count)


# ------------------------------------------------------------------ clone curve
# One curve for all victims: the clone pair of populations with many different budgets.
#
# delta_v(eps) = A psi(s) of (C) depends on the victim only through A and s, up to which user is left out of the
# clones. Leaving out the user most likely to be a clone, instead of the victim, can only raise psi (fewer clones
# are never more private); leaving out nobody can only lower it. psi is convex in s (a supremum of affine
# functions), so chords over a grid bound it from above, and values at the next grid point from below.

_PER_DEVIATION = 16.0
_RATIO = 1.004
_STEP = 0.06
_BISECTIONS = 52


@dataclass(frozen=True, eq=False)
class CloneCurve:
    """Bounds on psi(1 + excess) of (C) over an ascending grid of excesses, shared by all victims.

    Attributes
    ----------
    excess : ndarray, shape (points,)
        Values of s - 1, from 0 up to where psi is far below the smallest delta asked for.
    psi : Enclosure, shape (points,)
        Bounds at the grid points.
    """

    excess: FloatArray
    psi: Enclosure

    @classmethod
    @lru_cache(maxsize=2)
    def of(cls, budgets: Budgets, delta: float) -> CloneCurve:
        """Return the population's curve, on a grid that ends where psi is below delta/10, or constant."""
        p = clone_probability(budgets.epsilons)
        counts = budgets.counts.astype(np.float64)
        fewer = counts.copy()
        fewer[0] -= 1.0  # the smallest budget is the likeliest clone
        fewest, most = SuccessRange.of(p, fewer, ulps=8).fewest, SuccessRange.of(p, counts, ulps=8).most
        clones = SuccessRange(fewest, most)
        blocks = BlockedCount.of(clones, 11.0, _PER_DEVIATION)
        if blocks.left.size > 1 and blocks.through.upper[0] > 1e-6 * delta:
            blocks = BlockedCount.of(clones, 40.0, _PER_DEVIATION)
        step = _STEP / np.sqrt(most.mean + 1.0)
        grid = np.zeros(1)
        lower, upper = cls._values(blocks, grid)
        # with more than n + 1 clones' worth of excess every threshold is at its end, and psi is constant
        while upper[-1] > 0.1 * delta and grid[-1] <= most.n + 1.0:
            if grid.size > 20_000:
                raise NotConverged("the profile does not fall to the delta asked for within double precision")
            # even steps of the test's standard score, then geometric ones
            if grid[-1] * (_RATIO - 1.0) < step:
                more = grid[-1] + step * np.arange(1.0, 33.0)
            else:
                more = grid[-1] * _RATIO ** np.arange(1.0, 33.0)
            values = cls._values(blocks, more)
            grid = np.concatenate((grid, more))
            lower, upper = np.concatenate((lower, values[0])), np.concatenate((upper, values[1]))
        return cls(grid, Enclosure(lower, upper))

    @staticmethod
    def _values(blocks: BlockedCount, excess: FloatArray) -> tuple[FloatArray, FloatArray]:
        psi = noiseless_divergence(np.broadcast_to(blocks.left, (excess.size, blocks.left.size)), excess[:, None])
        expectations = [blocks.expectation(Enclosure(*row)) for row in zip(psi.lower, psi.upper, strict=True)]
        return np.array([f.lower for f in expectations]), np.array([f.upper for f in expectations])

    def epsilons(self, epsilon0: FloatArray, delta: float) -> Enclosure:
        """Enclose each victim's central epsilon at delta, shape (victims,), by bisection to the safe side."""
        ends = []
        for side in (self._below, self._above):
            low, high = np.zeros_like(epsilon0), epsilon0.copy()
            done = self._deltas(low, epsilon0, side) <= delta
            high = np.where(done, 0.0, high)
            for _ in range(_BISECTIONS):
                middle = 0.5 * (low + high)
                more = self._deltas(middle, epsilon0, side) > delta
                low, high = np.where(more & ~done, middle, low), np.where(more | done, high, middle)
            ends.append((low, high))
        return Enclosure(np.minimum(ends[0][0], ends[1][1]), ends[1][1])

    def _deltas(self, epsilon: FloatArray, epsilon0: FloatArray, side: object) -> FloatArray:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            room, damp = -np.expm1(epsilon - epsilon0), 1.0 + np.exp(-epsilon0)
            excess = np.expm1(epsilon) * damp / room
        excess = np.where(room > 0, excess, np.inf)
        return inflated(room / damp * side(excess), 32)  # type: ignore[operator]

    def _above(self, excess: FloatArray) -> FloatArray:
        """Chord over the grid; beyond it, the last value (psi decreases)."""
        return inflated(np.interp(deflated(excess, 16), self.excess, self.psi.upper), 16)

    def _below(self, excess: FloatArray) -> FloatArray:
        """Value at the next grid point; beyond the grid, 0."""
        after = np.searchsorted(self.excess, inflated(excess, 16), side="left")
        return deflated(np.append(self.psi.lower, 0.0)[after], 64)
