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
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from shuffledp.accounting.engines.clone_pair_logs import log_expectation
from shuffledp.accounting.profiles.gaussian import gaussian_epsilon
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.profiles.remembering import remembered_by_thread
from shuffledp.budgets import Budgets
from shuffledp.numerics import binomial
from shuffledp.numerics.blocks import BlockedCount
from shuffledp.numerics.floats import LOG_DEEP, TINY, Upper
from shuffledp.numerics.interval import Enclosure, FloatArray, Interval
from shuffledp.numerics.poisson_binomial import SuccessRange

_SLACK = binomial.COMBINED_ERROR
_DEPTHS = (11.0, 40.0)


def noiseless_divergence(clones: FloatArray, excess: FloatArray | float) -> Enclosure:
    """Enclose psi_c(1 + excess) of (C), element-wise.

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
    pmf = np.exp(binomial.log_pmf(m - failures - 1.0, clones, 0.5))
    ratio = binomial.fair_tail_ratio(failures, clones)
    loss = np.where(failures >= 1, np.where(failures >= 1, excess, 0.0) * ratio, 0.0)
    upper = pmf * np.maximum((1.0 + _SLACK) - loss * (1.0 - _SLACK), 0.0) + TINY
    lower = pmf * np.maximum((1.0 - _SLACK) - loss * (1.0 + _SLACK), 0.0)
    return Enclosure(lower, upper)


def victim_line(epsilon: float, epsilon0: float) -> tuple[float, float]:
    """Return A and s - 1 of (C) for a victim of budget epsilon0 at 0 <= epsilon < epsilon0, both to 8 roundoffs."""
    room = -math.expm1(epsilon - epsilon0)
    damp = 1.0 + math.exp(-epsilon0)
    growth = math.expm1(epsilon) if epsilon < 709.0 else math.inf
    return room / damp, growth * damp / room


def clone_probability(epsilon0: FloatArray) -> FloatArray:
    """Return p = 2/(1 + e^epsilon0), the chance that a user of that budget is a clone; relative error 4 roundoffs."""
    low = np.exp(-epsilon0)
    return 2.0 * low / (1.0 + low)


def clone_count(budgets: Budgets, without: int) -> SuccessRange:
    """Return the law of C, the clones among all users but one of level ``without``."""
    others = budgets.counts.astype(np.float64)
    others[without] -= 1.0
    return SuccessRange.of(clone_probability(budgets.epsilons), others, ulps=8)


@dataclass(frozen=True, eq=False)
class ClonePairProfile(PrivacyProfile):
    """Profile of the clone pair (C) for one victim.

    Parameters
    ----------
    epsilon0 : float
        The victim's budget, nats.
    clones : SuccessRange
        Number of clones among the other users.
    per_deviation : float
        Resolution of the clone count: blocks per standard deviation.
    """

    epsilon0: float
    clones: SuccessRange
    per_deviation: float = 75.0
    _blocks: dict[float, BlockedCount] = field(default_factory=dict[float, BlockedCount], repr=False)
    _known: dict[float, Interval] = field(default_factory=dict[float, Interval], repr=False)

    @property
    def vanishes_at(self) -> Upper:
        """The victim's own budget: no post-processing can cost more."""
        return Upper(self.epsilon0)

    def delta_at(self, epsilon: float) -> Interval:
        """(C); the far lower tail of the clone count is resolved only if it matters."""
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
        """Logarithms of delta, also where it is far below the smallest double."""
        found, _ = super().log_delta_pair(epsilon)
        loose = found.upper - found.lower > 1e-2  # little resolved of the far tail of the clones
        if (found.lower < LOG_DEEP or loose) and epsilon < self.epsilon0:
            scale, excess = victim_line(epsilon, self.epsilon0)
            if math.isfinite(excess):
                deep = log_expectation(self.clones, excess) + Interval(scale, scale).inflated(10).log()
                upper = min(found.upper, deep.upper)
                found = Interval(min(max(found.lower, deep.lower), upper), upper)
        return found, found

    def _resolved(self, depth: float) -> BlockedCount:
        if depth not in self._blocks:
            # psi changes by about (1 + z^2)/2c per clone: beyond a million clones fewer blocks do
            relief = min(math.sqrt(1e6 / max(self.clones.most.mean, 1.0)), 1.0)
            per_deviation = max(self.per_deviation * relief, min(self.per_deviation, 8.0))
            self._blocks[depth] = BlockedCount.of(self.clones, depth, per_deviation)
        return self._blocks[depth]

    def guess_epsilon(self, delta: float) -> float | None:
        """Gaussian limit, mu = tanh(eps_v/2) sqrt(4/E C)."""
        if self.clones.most.mean <= 0.0:
            return None
        return gaussian_epsilon(delta, math.tanh(self.epsilon0 / 2.0) * 2.0 / math.sqrt(self.clones.most.mean))


class CoarseClonePairProfile(ClonePairProfile):
    """The clone pair where thousands of levels each have one: still certified, looser by up to 1e-3."""

    tolerance: ClassVar[float] = 1e-4


@remembered_by_thread(64)
def one_budget_profile(epsilon0: float, n: int, *, coarse: bool) -> ClonePairProfile:
    """Return the clone pair of n users with one budget (2b); remembered, since several bounds ask for it.

    Parameters
    ----------
    epsilon0 : float
        The common budget, nats.
    n : int
        Number of users.
    coarse : bool
        Resolve the clone count less finely: faster, still certified, looser by up to 1e-3.
    """
    count = clone_count(Budgets([epsilon0], [n]), 0)
    return CoarseClonePairProfile(epsilon0, count, per_deviation=10.0) if coarse else ClonePairProfile(epsilon0, count)
