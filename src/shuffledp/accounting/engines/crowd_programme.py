"""The crowd programme: Laplace noise, one budget, every crowd of records (docs/theorems/crowd-programme.md).

For a target (epsilon, delta): blankets f_c prove all crowds with enough mass near c; the other crowds have means of (H)
of `numerics.hitting` in a region, and each corner of it is proved by the two-type theorem. Pairs of records at distance
d are one problem of rate epsilon0 d at distance 1, among others who are there with chance exp(-epsilon0 (1-d)) or
more; a finite list of cells of d proves all pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from shuffledp.accounting.engines.crowd import laplace_seen_from
from shuffledp.accounting.engines.loss_law import loss_law
from shuffledp.accounting.engines.random_crowd import MixedCrowd
from shuffledp.accounting.engines.two_type import EqualCrowd
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.numerics.floats import TINY, Upper, round_down, round_up
from shuffledp.numerics.hitting import MeanRegion, RecordGrid, mean_of_convex
from shuffledp.numerics.interval import FloatArray, Interval
from shuffledp.numerics.search import crossing
from shuffledp.numerics.sums import IndependentSum, positive_parts
from shuffledp.numerics.two_laws import laplace_laws

_CENTRES = tuple(round(0.5 - 0.5 * math.cos(math.pi * k / 8.0), 6) for k in range(9))
"""Centres of blankets, denser near both ends."""
_RECORDS, _LINES = 64, 18
"""Steps of the grid of records, and lines below which there is no crowd."""
_ALONE, _ALONE_FAR, _FAR_THERE = 1.2, 2.1, 0.9
"""Largest rates at which (H) is tried without blankets: near distance 1, and where users beyond may be missing."""
_SMOOTHING = 0.08
_BELOW, _AROUND = np.array([0.3, 0.6, 0.8]), np.linspace(-5.5, 5.5, 60)
"""Where h is evaluated: in units of a count that is enough, and around it in standard deviations."""
_USUALLY_ENOUGH = 20.0
"""A first guess of the count that is enough, in units of E L^2/epsilon^2."""
_FAR, _TRIES = 2.0, 8
"""A table of h must be centred on the count that is enough, to so many standard deviations."""
_FALL, _CLOSE = 12.0, 0.03
"""How fast E h(C) falls with the mean, in logarithms; how much below delta it may end."""
_LEAST_STEEP, _STEEP = 0.05, 6.0
"""How log H grows with a deviation of the number of others; with that of those who are there, in relative units."""
_ROUGH = 40
_STEP, _FIRST_STEP, _NEXT_STEPS, _MOST_STEPS = 1.002, 18, 6, 162
"""How the epsilon of the end points is sought."""
_SHARES = (
    *(0.0015, 0.0025, 0.0035, 0.005, 0.007, 0.009, 0.011, 0.013, 0.015, 0.0165),
    *(0.019, 0.022, 0.027, 0.033, 0.04, 0.05, 0.065, 0.08),
)
_MOST_CELLS, _MOST_TRIED = 38, 120
_ALIKE, _SPARE, _MIXED = 0.6, 0.035, 2.0
"""Of a guess of the width of cells, fitted to those that were proved."""
_WIDER, _WIDEST, _NARROWER, _NARROWEST, _RISE = 1.06, 2.5, 0.7, 0.3, 1.004


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
    _enough: dict[float, float] = field(init=False, default_factory=dict[float, float])

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
        ends = self._end_points(known, target)
        return Interval(0.0, self._all_pairs(ends, known, target) if ends < known else known)

    def _end_points(self, known: float, target: float) -> float:
        """An epsilon, near the least one, for which the pair (0, 1) is proved; ``known`` if there is none below.

        It is sought upwards from that of everybody else on one record, in steps.
        """
        crowd = EqualCrowd(laplace_laws(1.0 / self.rate, _ROUGH), all_a=True)
        if crowd.most(self.n, known) > target:
            return known
        least = crossing(lambda epsilon: crowd.most(self.n, epsilon), target, 0.0, known, 0.8 * known, 2e-3)[1]
        low, high = 0, _MOST_STEPS
        step = _FIRST_STEP
        while high - low > 1:
            epsilon = least * _STEP**step
            proved = epsilon >= known or self._proved(1.0, 0.0, epsilon, target)
            low, high = (low, step) if proved else (step, high)
            step = min(step + _NEXT_STEPS, high - 1) if high == _MOST_STEPS else max(high - 4, (low + high) // 2)
        return least * _STEP**high

    def _all_pairs(self, ends: float, known: float, target: float) -> float:
        """Go through the distances from 1 down; where a cell cannot be proved, narrow it, or raise epsilon."""
        share = self._share()
        epsilon, top, scale, tried = ends * (1.0 + share), 1.0, 1.0, 0
        while top * self.rate > epsilon:
            tried += 1
            if epsilon >= known or tried > _MOST_TRIED:
                return known
            usual = self._width(share, top)
            width = min(scale * usual, top)
            if self._proved(top, width, epsilon, target):
                top, scale = top - width, min(_WIDER * scale, _WIDEST)
            elif scale < _NARROWEST:
                epsilon, share, scale = epsilon * _RISE, share + (_RISE - 1.0), 1.0
            else:
                scale *= _NARROWER
        return min(epsilon, known)

    def _share(self) -> float:
        """The smallest part by which to raise epsilon so that few cells of distances are expected to do."""
        for share in _SHARES:
            top, cells = 1.0, 0
            while top * self.rate > 0.02 and cells <= _MOST_CELLS:
                top, cells = top - self._width(share, top), cells + 1
            if cells <= _MOST_CELLS:
                return share
        return _SHARES[-1]

    def _width(self, share: float, top: float) -> float:
        """A guess of how wide a cell of distances may be, if epsilon is larger than for the end points by a share.

        A cell costs half its width times the rate. mu^2 of an equal crowd at a distance, if the others are there as
        rarely as they may be, leaves some room; mixed crowds leave less near distance 1.
        """
        gain = 0.5 * (self._log_distance(1.0) - self._log_distance(top) - self.rate * (1.0 - top))
        alike = _ALIKE * (share + _SPARE + max(gain, 0.0))
        return 2.0 / self.rate * min(alike, 0.9 * share + _MIXED / self.rate**2 * (1.0 - top))

    def _log_distance(self, distance: float) -> float:
        """Log of the chi-square distance of f_0 and f_d for somebody on d."""
        rate = self.rate * distance
        return math.log(max((2.0 * math.expm1(rate) + math.expm1(-2.0 * rate)) / 3.0, 0.5 * rate**2))

    def _proved(self, top: float, width: float, epsilon: float, target: float) -> bool:
        """Whether all crowds are proved for all pairs at a distance in [top - width, top]."""
        there = round_down(math.exp(-self.rate * (1.0 - top + width)), 32)
        rate = round_up(self.rate * top, 4)
        if epsilon >= rate:
            return True
        return _Distance(rate, self.n, self._enough).proved(there, epsilon, target)


@dataclass(frozen=True, eq=False)
class _Distance:
    """Pairs at distance 1 under noise of some rate, which stand for pairs of the range at some distances."""

    rate: float
    n: int
    _enough: dict[float, float] = field(default_factory=dict[float, float])

    def proved(self, there: float, epsilon: float, delta: float) -> bool:
        """Whether every crowd keeps (epsilon, delta), if each of the others is there with this chance at least."""
        grid = RecordGrid(self.rate, _RECORDS)
        if self.rate < (_ALONE if there > _FAR_THERE else _ALONE_FAR):
            every = MeanRegion.of(grid, np.zeros((0, _RECORDS + 1)), np.zeros(0), _LINES, there)
            if self._corners(every, there, epsilon, delta):
                return True
        needed = [(centre, self._least_mass(centre, epsilon, delta)) for centre in _CENTRES]
        useful = [(centre, need) for centre, need in needed if need is not None]
        if not useful:
            return False
        reached = np.stack([grid.reach(c) for c, _ in useful])
        region = MeanRegion.of(grid, reached, np.array([need for _, need in useful]), _LINES, there)
        return region.a.size == 0 or self._corners(region, there, epsilon, delta)

    def _least_mass(self, centre: float, epsilon: float, delta: float) -> float | None:
        """Return a mean of gamma that proves delta against the blanket f_c; None if everybody on c does not."""
        law = loss_law(laplace_seen_from(1.0 / self.rate, centre), epsilon).one
        table = self._table(law, centre, epsilon, delta)
        if table is None:
            return None
        guess, counts, values = table
        most = 1.0 - 0.125 / self.n

        def expected(gamma: float) -> float:
            return mean_of_convex(counts, values, self.n - 1, gamma)

        mass, fall = min(1.002 * guess / self.n, most), _FALL
        for _ in range(_TRIES):
            found = expected(mass)
            gap = math.log(max(found, TINY) / delta)
            if found <= delta and gap > -_CLOSE:
                return mass
            if found > delta and mass == most:
                return None
            mass = min(mass * math.exp((gap + 0.4 * _CLOSE) / fall), most)
        return crossing(expected, delta, 0.0, most, mass, 8e-4)[1] if expected(most) <= delta else None

    def _table(
        self, law: IndependentSum, centre: float, epsilon: float, delta: float
    ) -> tuple[float, FloatArray, FloatArray] | None:
        """Return about how many others on c are enough, and h at some numbers around; None if all are not enough.

        Enough users are expected where their number times eps^2/E L^2 is what it was before.
        """
        unit = float(law.probabilities[0] @ law.values[0] ** 2) / epsilon**2
        guess = min(self._enough.get(centre, _USUALLY_ENOUGH) * unit, self.n - 1.0)
        for _ in range(_TRIES):
            spread = math.sqrt(guess * max(1.0 - guess / self.n, 0.0) + 1.0)
            below = _BELOW[1:] if _AROUND.max() * spread < 0.3 * guess else _BELOW
            counts = np.unique(np.floor(np.concatenate((guess * below, guess + spread * _AROUND))))
            counts = counts[(counts >= 1.0) & (counts < self.n)]
            values = _hidden(law, counts)
            found = _crossed(counts, values, delta)
            if found > self.n - 1.0 and counts[-1] == self.n - 1.0:
                return None
            if abs(found - guess) <= _FAR * spread:
                self._enough[centre] = found / unit
                return found, np.append(0.0, counts), np.append(1.0, values)
            guess = min(max(found, 2.0), self.n - 1.0)
        return None

    def _corners(self, region: MeanRegion, there: float, epsilon: float, delta: float) -> bool:
        """Whether E H(K_A, K_B) <= delta for every crowd whose means lie in the region."""
        laws = laplace_laws(1.0 / self.rate, min(max(40, math.ceil(12.0 * self.rate)), 80))
        told = (1.0 - there) / (there * self.n)
        steepness = math.hypot(_LEAST_STEEP, _STEEP * math.sqrt(told))
        return MixedCrowd(laws, epsilon).hides(region, self.n - 1, delta, steepness)


def _crossed(counts: FloatArray, values: FloatArray, delta: float) -> float:
    """About where values fall to delta: their logarithm is nearly linear."""
    logs = np.log(np.maximum(values, TINY)) - math.log(delta)
    at = min(max(int(np.searchsorted(-logs, 0.0)), 1), counts.size - 1)
    if values[at] >= 1.0:  # far too few
        return 2.0 * float(counts[-1])
    fall = (logs[at - 1] - logs[at]) / (counts[at] - counts[at - 1])
    return float(counts[at] + logs[at] / fall) if fall > 0.0 else 2.0 * float(counts[-1])


def _hidden(law: IndependentSum, others: FloatArray) -> FloatArray:
    """Upper ends of h(c) for some numbers of others, ascending: non-increasing."""
    reports = others + 1.0
    found = round_up(positive_parts(law, reports, _SMOOTHING).upper / reports, 8192)
    return np.minimum.accumulate(np.minimum(found, 1.0))
