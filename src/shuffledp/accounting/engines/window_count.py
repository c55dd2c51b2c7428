"""The count of reports in a window: how (W) of `theorems.window` is estimated and enclosed, for one victim or many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp.accounting.engines.window_choice import WindowFamily
from shuffledp.numerics import binomial
from shuffledp.numerics.floats import inflated, roundoff
from shuffledp.numerics.interval import Enclosure, FloatArray
from shuffledp.numerics.poisson_binomial import SuccessCount, SuccessRange

_NEGLIGIBLE = 1e-4
_THRESHOLDS = 120
_BISECTIONS = 32


def gain(p0: Enclosure, p1: Enclosure, epsilon: float | FloatArray, *, outside: bool) -> Enclosure:
    """Enclose A of (W), elementwise.

    Parameters
    ----------
    p0, p1 : Enclosure
        The victim's chances of the window under x0 and x1.
    epsilon : float or ndarray
        Nats, at least 0.
    outside : bool
        Whether reports outside are counted, for H(Q, P).
    """
    grow = np.expm1(np.minimum(epsilon, 700.0))
    low = p0 if outside else Enclosure(1.0 - p1.upper, 1.0 - p1.lower)
    doubt = roundoff(4, 1.0 + grow)
    return Enclosure(
        p1.lower - p0.upper - grow * low.upper - doubt,
        p1.upper - p0.lower - grow * low.lower + doubt,
    )


def likely_values(family: WindowFamily, epsilon: float, *, outside: bool) -> tuple[FloatArray, FloatArray]:
    """Estimate (W) for every window, and its best threshold, N taken for a binomial of the same two moments.

    That binomial may have another number of trials: those outside are everybody less those inside.
    """
    a, grow = gain(family.p0, family.p1, epsilon, outside=outside).lower, math.expm1(min(epsilon, 700.0))
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
class CountedReports:
    """A count of independent successes whose chances are known between bounds.

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
        """Cut what lies outside [0, 1] off the chances."""
        return cls(np.clip(chances.lower, 0.0, 1.0), np.clip(chances.upper, 0.0, 1.0), counts)

    @cached_property
    def highest(self) -> SuccessCount:
        """The count with all chances at their upper ends."""
        return SuccessCount.of(self.most, self.counts)

    @cached_property
    def law(self) -> SuccessRange:
        """The count with all chances at their lower, and at their upper ends."""
        return SuccessRange(SuccessCount.of(self.least, self.counts), self.highest)

    @cached_property
    def doubt(self) -> float:
        """At least P(fewest <= x)/P(most <= x) - 1 for every x.

        Raising chances from l to u divides P(at most x successes) by at most prod (1 - l)/(1 - u).
        """
        with np.errstate(divide="ignore"):
            logs = float((self.most - self.least) / (1.0 - self.most) @ self.counts)
        return 2.0 * logs if logs < 0.5 else math.inf

    @classmethod
    def of_window(cls, family: WindowFamily, index: int, *, outside: bool) -> CountedReports:
        """The law of N of (W), or of N'; the others' chances are known between bounds."""
        chances = family.chances(index)
        if outside:
            chances = chances.complement()
        return cls.of(chances, family.counts)

    def cdf(self, x: FloatArray) -> Enclosure:
        """Enclose P(count <= x); where the doubt is next to nothing, one evaluation serves both ends."""
        if self.doubt * (1.0 + self.highest.deviation) > _NEGLIGIBLE:
            return self.law.cdf(x)
        found = self.highest.cdf(x)
        return Enclosure(found.lower, np.minimum(found.upper * (1.0 + self.doubt), 1.0))


@dataclass(frozen=True, eq=False)
class SharedCount:
    """One window's count at many thresholds, and many victims' chances of that window.

    Parameters
    ----------
    through, before : Enclosure, shape (thresholds,)
        F(k) and F(k-1) of (W).
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
    def of(cls, count: CountedReports, p0: Enclosure, p1: Enclosure, delta: float, *, outside: bool) -> SharedCount:
        """Tabulate thresholds that may show delta, a hundred or so: leaving some out only lowers what is shown."""
        mean, deviation = count.highest.mean, count.highest.deviation
        deep = 1.0 + math.sqrt(2.0 * -math.log(delta))  # F(k) <= exp(-(mean - k)^2/(2 variance)), about
        low, high = max(0.0, math.floor(mean - deep * deviation)), math.ceil(mean + 2.0 * deviation) + 1.0
        k = np.unique(np.floor(np.linspace(low, high, min(_THRESHOLDS, int(high - low) + 1))))
        tails = count.cdf(np.concatenate((k, k - 1.0)))
        return cls(
            Enclosure(tails.lower[: k.size], tails.upper[: k.size]),
            Enclosure(tails.lower[k.size :], tails.upper[k.size :]),
            p0,
            p1,
            outside,
        )

    def shown(self, epsilon: FloatArray) -> FloatArray:
        """Lower bound on (W) at the best tabled threshold, for each victim at an epsilon of its own."""
        a = np.maximum(gain(self.p0, self.p1, epsilon, outside=self.outside).lower, 0.0)
        grow = np.expm1(np.minimum(epsilon, 700.0))
        # (W) increases in A, since F(k) >= F(k-1); at A = 0 no threshold shows anything
        price = inflated(a + grow, 8)
        values = a[:, None] * self.through.lower - price[:, None] * self.before.upper
        return np.where(a > 0.0, np.maximum(values.max(axis=1) - roundoff(8, a), 0.0), 0.0)


def shown_epsilons(tests: Sequence[SharedCount], delta: float, victims: int, top: float) -> FloatArray:
    """For each victim the largest epsilon found at which some test certainly shows more than delta; 0 if none.

    Parameters
    ----------
    tests : sequence of SharedCount
        Tests of the same victims.
    delta : float
        Central delta.
    victims : int
        How many there are.
    top : float
        Where to begin, nats: no victim's epsilon is expected beyond.
    """
    found = np.zeros(victims)
    for test in tests:
        low, high = found, np.full(victims, top)
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            more = test.shown(middle) > delta
            low, high = np.where(more, middle, low), np.where(more, high, middle)
        found = low
    return found
