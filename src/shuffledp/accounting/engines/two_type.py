"""Crowds of two laws: the worst number of others on either record (docs/theorems/two-type.md).

With i others of law A and j = n-1-i of law B, the divergence H(i, j) falls in i and in j (further users only hide), so
a block of numbers i_1..i_2 is below H(i_1, n-1-i_2). At both ends of the range, where nearly all others hold one
record, blocks are compared with an equal crowd, whose divergence is a single sum (`engines.blanket`); in between with
the bound of `numerics.two_type`, whose error is large at the ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.engines.blanket import OneBudgetProfile
from shuffledp.accounting.profiles.gaussian import gaussian_epsilon
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.numerics.floats import TINY, Upper
from shuffledp.numerics.interval import FloatArray, Interval
from shuffledp.numerics.two_laws import TwoLaws
from shuffledp.numerics.two_type import told_apart
from shuffledp.randomizers.base import CellSpread, PairBlanket

LARGEST = 600.0
"""Epsilons beyond are answered as this one: delta does not increase."""
_FINEST = 0.002
"""Blocks are not split below this share of the users."""
_MOST_BLOCKS = 600
_LOSS_ULPS = 4
_MOST_SPARE, _USUAL_SPARE, _LEAST_SPARE = -4, -10, -18
"""Decimal exponents of the victim's mass that an equal crowd of unbounded losses may leave out."""


@dataclass(frozen=True, eq=False)
class TwoTypeProfile(PrivacyProfile):
    """The largest divergence of a victim on A from one on B over all crowds of A and B, from above.

    Parameters
    ----------
    pairs : tuple of TwoLaws
        Pairs of records, in both orders unless a pair is its own mirror image; the one expected to be worst first.
    n : int
        Number of users, at least 2.
    top : float
        An epsilon (nats, possibly inf) from which on a single report has no divergence.
    """

    tolerance: ClassVar[float] = 1e-4

    pairs: tuple[TwoLaws, ...]
    n: int
    top: Upper
    _known: dict[float, Interval] = field(init=False, default_factory=dict[float, Interval], repr=False)
    _covers: dict[int, _Cover] = field(init=False, default_factory=dict[int, "_Cover"], repr=False)

    @property
    def vanishes_at(self) -> Upper:
        """Where the victim's own report's divergence vanishes."""
        return self.top

    @property
    def coarseness(self) -> float:
        """Fewer knots, as each needs the worst crowd."""
        return 3.0

    def delta_at(self, epsilon: float) -> Interval:
        """The largest over the pairs; nothing is said from below."""
        if epsilon not in self._known:
            at, worst = min(epsilon, LARGEST), 0.0
            for index in range(len(self.pairs)):
                worst = self._cover(index).worst(at, worst)
            self._known[epsilon] = Interval(0.0, min(worst, 1.0))
        return self._known[epsilon]

    def _cover(self, index: int) -> _Cover:
        if index not in self._covers:
            self._covers[index] = _Cover(self.pairs[index], self.n)
        return self._covers[index]

    def guess_epsilon(self, delta: float) -> float | None:
        """Gaussian limit of the equal crowds."""
        distance = max(pair.likely_distance(self.n) for pair in self.pairs)
        return gaussian_epsilon(delta, math.sqrt(distance / self.n))


class _Cover:
    """One pair of laws: blocks of the number of others on A."""

    def __init__(self, laws: TwoLaws, n: int) -> None:
        self.laws, self.n = laws, n
        self._equal = {all_a: EqualCrowd(laws, all_a=all_a) for all_a in (False, True)}

    def worst(self, epsilon: float, so_far: float) -> float:
        """The largest bound of all blocks, or ``so_far`` if that is larger."""
        few, rest = self._cut(epsilon, all_a=False), self._cut(epsilon, all_a=True)
        rest = min(rest, self.n - 1 - few)
        ends = self._equal[False].most(self.n - few, epsilon), self._equal[True].most(self.n - rest, epsilon)
        middle = few + 1, self.n - 2 - rest
        return worst_block(self.laws, lambda low, high: (low, self.n - 1 - high), middle, epsilon, max(so_far, *ends))

    def _cut(self, epsilon: float, *, all_a: bool) -> int:
        """How many others of the rarer law an equal crowd stands for: where both bounds are about the same."""
        equal, low, high = self._equal[all_a], 0, (self.n - 1) // 2
        if high == 0:
            return 0
        some = max(self.n // 32, 1)
        whole = math.log(max(equal.searched(self.n, epsilon), TINY))
        less = math.log(max(equal.most(self.n - some, epsilon), TINY))
        while high - low > max(1, low // 16):
            middle = max(math.isqrt(low * high), low + 1) if low > 0 else max(high // 32, 1)
            held = (self.n - 2 - middle, middle + 1) if all_a else (middle + 1, self.n - 2 - middle)
            beyond = math.log(max(told_apart(self.laws, *held, epsilon), TINY))
            expected = whole + (less - whole) * middle / some
            low, high = (middle, high) if beyond > expected else (low, middle)
        return high


def worst_block(
    laws: TwoLaws, corner: Callable[[int, int], tuple[int, int]], span: tuple[int, int], epsilon: float, so_far: float
) -> float:
    """Return the largest bound over a range of numbers of others on A, split where it matters.

    Parameters
    ----------
    laws : TwoLaws
        A and B.
    corner : callable
        From the ends of a block of numbers to how many others are on A and on B at least, there.
    span : tuple of int
        First and last number.
    epsilon : float
        Nats.
    so_far : float
        What is below this need not be known any better.
    """
    worst, blocks, tried = so_far, [span], 0
    while blocks:
        low, high = blocks.pop()
        if low > high:
            continue
        value = told_apart(laws, *corner(low, high), epsilon)
        tried += 1
        if value <= worst:
            continue
        if high - low <= _FINEST * (span[1] - span[0]) or tried > _MOST_BLOCKS:
            worst = value
            continue
        middle = (low + high) // 2
        blocks += [(low, middle), (middle + 1, high)]
    return worst


class EqualCrowd:
    """All others on A, or all on B: one sum of independent losses.

    Atoms of infinite loss, and those of a loss so large or small that a transform would have to be about them alone,
    are left out: where A has more than B the victim's mass is charged; where it has less, L < 0 is raised to 0.
    """

    def __init__(self, laws: TwoLaws, *, all_a: bool) -> None:
        self.laws, self.all_a = laws, all_a
        self.finite = bool(np.isfinite(laws.losses).all())
        self._profiles: dict[tuple[int, int], OneBudgetProfile] = {}
        self._spare = _USUAL_SPARE

    def most(self, reports: int, epsilon: float) -> float:
        """Upper end of H among so many reports, the victim's included."""
        return self._at(reports, epsilon, self._spare)

    def searched(self, reports: int, epsilon: float) -> float:
        """`most`, after a walk to the mass that is best left out, from what was best before; valid with any."""
        if self.finite:
            return self.most(reports, epsilon)
        best, value = self._spare, self._at(reports, epsilon, self._spare)
        for step in (-1, 1):
            while _LEAST_SPARE <= best + step <= _MOST_SPARE:
                tried = self._at(reports, epsilon, best + step)
                if tried > 0.999 * value:
                    break
                best, value = best + step, tried
            if best != self._spare:
                break
        self._spare = best
        return value

    def _at(self, reports: int, epsilon: float, spare: int) -> float:
        if (reports, spare) not in self._profiles:
            pair = self._pair() if self.finite else self._left_out(10.0**spare, reports)
            self._profiles[reports, spare] = OneBudgetProfile(pair.largest_loss, pair, reports)
        return self._profiles[reports, spare].delta(epsilon).upper

    def _ratios(self, keep: NDArray[Any]) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Masses of the crowd, both ratios, and losses of the atoms kept."""
        laws, losses = self.laws, self.laws.losses[keep]
        ratio, one = np.exp(-losses if self.all_a else losses), np.ones_like(losses)
        first, second = (one, ratio) if self.all_a else (ratio, one)
        return (laws.masses_a if self.all_a else laws.masses_b)[keep], first, second, losses

    def _pair(self) -> PairBlanket:
        every = np.ones(self.laws.losses.size, dtype=np.bool_)
        return PairBlanket(1.0, *self._ratios(every), None, _LOSS_ULPS)

    def _left_out(self, spare: float, reports: int) -> PairBlanket:
        """Leave out the largest losses, as many as cost ``spare``, and small ones that no report is likely to have."""
        laws = self.laws
        order = np.argsort(laws.losses)
        from_top = np.cumsum(laws.masses_a[order][::-1])[::-1]
        to_bottom = np.cumsum(laws.masses_a[order])
        keep = (from_top > spare) & (to_bottom * reports > spare) & np.isfinite(laws.losses[order])
        masses, first, second, losses = self._ratios(order[keep])
        top = order[(from_top <= spare) | (laws.losses[order] == math.inf)]
        charged = np.array([float(laws.masses_a[top].sum()) * (1.0 + 2.0**-30)])
        same = CellSpread(first, first, losses, losses, charged, np.array([math.inf]))
        return PairBlanket(1.0, masses, first, second, losses, same)
