"""The crowd programme: Laplace noise, one budget, every crowd of records (docs/theorems/crowd-programme.md).

For a target (epsilon, delta): blankets f_c prove all crowds with enough mass near c; the other crowds have means of (H)
of `numerics.hitting` in a region, and each corner of it is proved by the two-type theorem. Pairs of records at distance
d are one problem of rate epsilon0 d at distance 1, among others who are there with chance exp(-epsilon0 (1-d)) or
more; a finite list of cells of d proves all pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.engines.crowd import laplace_seen_from
from shuffledp.accounting.engines.loss_law import loss_law
from shuffledp.accounting.engines.two_type import EqualCrowd, worst_block
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.profiles.remembering import remembered_by_thread
from shuffledp.numerics.floats import Upper, round_down, round_up
from shuffledp.numerics.hitting import MeanRegion, RecordCells, mean_of_convex, usual_range
from shuffledp.numerics.interval import FloatArray, Interval
from shuffledp.numerics.search import crossing
from shuffledp.numerics.sums import IndependentSum, positive_parts
from shuffledp.numerics.two_laws import laplace_laws

_PER_RATE = 5.0
_CELLS, _FINE_CELLS = 240, 400
_STEPS = 40
_COMMON, _SIDE, _RARE = 0.01, 0.002, 1e-4
"""Chances of a crowd, or of a part of it, smaller than the one counted: usually, and as a part of delta."""
_PART = 2.0
"""How many times larger a smaller crowd's divergence may be."""
_RISE, _ROOM = 1.004, 1.001
_NEAR = 1.004
_MOST_CELLS, _MOST_FAILURES = 12, 12
_SHARES = (0.002, 0.003, 0.004, 0.006, 0.008, 0.012, 0.016, 0.024, 0.032, 0.05, 0.08)
_NOT_REACHED = 1 << 60
_BELOW, _AROUND = np.array([0.1, 0.4, 0.6, 0.8]), np.linspace(-5.5, 4.5, 56)
"""Where h is evaluated: in units of a count that is enough, and around it in standard deviations."""


@dataclass(frozen=True, eq=False)
class ProgrammeProfile(PrivacyProfile):
    """Epsilon of a delta by the programme; delta of an epsilon by the common blanket.

    Parameters
    ----------
    blanket : PrivacyProfile
        A certified profile of the same victim.
    rate : float
        1/scale of the noise, in units of the range; the victim's budget.
    n : int
        Number of users.
    """

    blanket: PrivacyProfile
    rate: float
    n: int

    @property
    def vanishes_at(self) -> Upper:
        """The victim's budget."""
        return self.blanket.vanishes_at

    @property
    def coarseness(self) -> float:
        """That of the blanket."""
        return self.blanket.coarseness

    def delta_at(self, epsilon: float) -> Interval:
        """The blanket's upper end."""
        return Interval(0.0, self.blanket.delta(epsilon).upper)

    def _inverse(self, target: float) -> Interval:
        """The least epsilon found for which all cells of distances are proved; the blanket's if that is smaller."""
        known = self.blanket.epsilon(target).upper
        if not 0.0 < known < math.inf:
            return Interval(0.0, known)
        cells = self._plan()
        low, high = 0.75 * known, known
        while high > _NEAR * low:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self._proved(1.0, cells[0], middle, target) else (middle, high)
        return Interval(0.0, self._all_pairs(high * _ROOM, known, cells, target) if high < known else known)

    def _all_pairs(self, epsilon: float, known: float, cells: list[float], target: float) -> float:
        """Go through the distances from 1 down; where a cell cannot be proved, halve it, or raise epsilon."""
        top, failed = 1.0 - cells[0], 0
        left = cells[:0:-1]
        while left and top * self.rate > epsilon:
            width = left.pop()
            if self._proved(top, width, epsilon, target):
                top -= width
                continue
            failed += 1
            if failed > _MOST_FAILURES or epsilon >= known:
                return known
            if width > cells[0]:
                left += [width / 2.0, width / 2.0]
            else:
                epsilon *= _RISE
                left.append(width)
        return known if top * self.rate > epsilon else min(epsilon, known)

    def _plan(self) -> list[float]:
        """Widths of few cells of distances, from 1 down, that cost about the same: a guess.

        mu^2 of an equal crowd at a distance, if the others are there as rarely as they may be, leaves some room.
        """
        grid = np.linspace(0.0, 1.0, 201)[1:]
        logs = [0.5 * math.log(laplace_laws(1.0 / (self.rate * d), 24).likely_distance(self.n)) for d in grid.tolist()]
        room = logs[-1] - np.array(logs) - 0.5 * self.rate * (1.0 - grid)
        cells = list[float]()
        for share in _SHARES:
            cells, top = [2.0 * share / self.rate], 1.0 - 2.0 * share / self.rate
            while top > 0.0:
                spare = share + 0.6 * max(float(np.interp(top, grid, room)), 0.0)
                cells.append(min(2.0 * spare / self.rate, top))
                top -= cells[-1]
            if len(cells) <= _MOST_CELLS:
                break
        return cells

    def _proved(self, top: float, width: float, epsilon: float, target: float) -> bool:
        """Whether all crowds are proved for all pairs at a distance in [top - width, top]."""
        there = round_down(math.exp(-self.rate * (1.0 - top + width)), 32)
        rate = round_up(self.rate * top, 4)
        if epsilon >= rate:
            return True
        return _Distance.known(rate, self.n).proved(there, epsilon, target)


@dataclass(frozen=True, eq=False)
class _Distance:
    """Pairs at distance 1 under noise of some rate, which stand for pairs of the range at some distances."""

    rate: float
    n: int

    @staticmethod
    @remembered_by_thread(8)
    def known(rate: float, n: int) -> _Distance:
        """One for each rate and number of users."""
        return _Distance(rate, n)

    def proved(self, there: float, epsilon: float, delta: float) -> bool:
        """Whether every crowd keeps (epsilon, delta), if each of the others is there with this chance at least."""
        fine = RecordCells(self.rate, _FINE_CELLS)
        if math.cosh(0.5 * self.rate) < 1.2 and self._corners(MeanRegion.hit(fine), there, epsilon, delta):
            return True
        cells = RecordCells(self.rate, _CELLS)
        steps = min(max(math.ceil(_PER_RATE * self.rate), 8), 20)
        centres = np.round(np.arange(steps + 1.0) / steps, 10)
        needed = self._least_masses(centres, epsilon, delta)
        useful = [(float(c), need) for c, need in zip(centres, needed, strict=True) if need is not None]
        if not useful:
            return False
        reached = np.stack([cells.reach(c) for c, _ in useful])
        most = np.array([round_up(need / there, 8) for _, need in useful])
        region = MeanRegion.of(cells, reached, most, _STEPS)
        return region.a.size == 0 or self._corners(region, there, epsilon, delta)

    def _least_masses(self, centres: FloatArray, epsilon: float, delta: float) -> list[float | None]:
        """Per centre c a mean of gamma that proves delta against the blanket f_c; None if everybody on c does not."""
        found: list[float | None] = []
        guess = 0.7 * self.n
        for centre in centres.tolist():
            law = loss_law(laplace_seen_from(1.0 / self.rate, centre), epsilon).one
            found.append(None)
            if float(_hidden(law, np.array([self.n - 1.0]))[0]) > delta:
                continue

            def alone(others: float, law: IndependentSum = law) -> float:
                return float(_hidden(law, np.array([float(math.floor(others))]))[0])

            guess = math.floor(crossing(alone, delta, 0.0, self.n - 1.0, guess, max(2e-3, 3.0 / self.n))[1])
            spread = math.sqrt(guess * (1.0 - guess / self.n) + 1.0)
            grid = np.floor(np.concatenate(([0.0], guess * _BELOW, guess + spread * _AROUND)))
            grid = np.unique(grid[(grid >= 0.0) & (grid < self.n)])
            values = _hidden(law, grid)
            most = 1.0 - 0.125 / self.n

            def expected(gamma: float, grid: FloatArray = grid, values: FloatArray = values) -> float:
                return mean_of_convex(grid, values, self.n - 1, gamma)

            if expected(most) <= delta:
                least = 0.5 * guess / self.n
                found[-1] = crossing(expected, delta, least, most, 1.002 * guess / self.n, 3e-4)[1]
        return found

    def _corners(self, region: MeanRegion, there: float, epsilon: float, delta: float) -> bool:
        """Whether E H(K_A, K_B) <= delta at every corner: the usual crowds, and the rarely smaller ones."""
        rare = _RARE * delta
        usual = _Totals.of(region, there, self.n, _COMMON, _SIDE)
        fewest = _Totals.of(region, there, self.n, rare, rare)
        spare = delta - 4.0 * rare
        unusual = _PART * (_COMMON + 3.0 * _SIDE)
        return self._below(usual, epsilon, spare * (1.0 - unusual)) and self._below(fewest, epsilon, spare * _PART)

    def _below(self, totals: _Totals, epsilon: float, delta: float) -> bool:
        """Whether H(i, j) <= delta for all numbers of a crowd."""
        laws = laplace_laws(1.0 / self.rate, min(max(40, math.ceil(20.0 * self.rate)), 120))
        first, last = totals.span
        few = self._end(EqualCrowd(laws, all_a=False), totals.reports_on_b, (first, last), epsilon, delta)
        many = self._end(EqualCrowd(laws, all_a=True), lambda c: last + first - c + 1, (first, last), epsilon, delta)
        if few is None or many is None:
            return False
        span = few + 1, last + first - many - 1
        middle = worst_block(laws, totals.corner, span, epsilon, delta) if span[0] <= span[1] else 0.0
        return middle <= delta

    @staticmethod
    def _end(
        crowd: EqualCrowd, reports: Callable[[int], int], span: tuple[int, int], epsilon: float, delta: float
    ) -> int | None:
        """The farthest number from the end up to which an equal crowd proves delta; None if not even the end."""
        low, high = span
        if crowd.most(max(int(reports(low)), 1), epsilon) > delta:
            return None
        while high - low > max(2, (low - span[0]) // 8):
            middle = (low + high) // 2
            low, high = (middle, high) if crowd.most(max(int(reports(middle)), 1), epsilon) <= delta else (low, middle)
        return low


def _hidden(law: IndependentSum, others: FloatArray) -> FloatArray:
    """Upper ends of h(c) for some numbers of others, ascending: non-increasing."""
    reports = others + 1.0
    found = round_up(positive_parts(law, reports).upper / reports, 8192)
    return np.minimum.accumulate(np.minimum(found, 1.0))


@dataclass(frozen=True, eq=False)
class _Totals:
    """Which numbers (i, j) of a crowd are usual: i in a span, and at least ``least[i]`` others on B."""

    least: NDArray[np.int64]

    @classmethod
    def of(cls, region: MeanRegion, there: float, n: int, chance: float, side: float) -> _Totals:
        """For each corner, a crowd thinned to exactly these means: total, and either number, by Hoeffding."""
        least = np.full(n + 1, _NOT_REACHED, dtype=np.int64)
        a, b = region.a * there, region.b * there
        for mean_a, mean_b in zip(a.tolist(), b.tolist(), strict=True):
            low, high = usual_range(n - 1, mean_a, side)
            total = usual_range(n - 1, mean_a + mean_b, chance)[0]
            on_b = usual_range(n - 1, mean_b, side)[0]
            held = np.arange(low, high + 1)
            least[low : high + 1] = np.minimum(least[low : high + 1], np.maximum(total - held, on_b))
        return cls(least)

    @property
    def span(self) -> tuple[int, int]:
        """First and last number on A."""
        reached = np.flatnonzero(self.least < _NOT_REACHED)
        return int(reached[0]), int(reached[-1])

    def reports_on_b(self, most: int) -> int:
        """Reports if all but those on B are left out, of the crowds with up to so many on A."""
        return 1 + int(self.least[: most + 1].min())

    def corner(self, low: int, high: int) -> tuple[int, int]:
        """How many are on A and on B at least, if between ``low`` and ``high`` are on A."""
        least = int(self.least[low : high + 1].min())
        return low, min(least, self.least.size)  # numbers that are not reached need no proof
