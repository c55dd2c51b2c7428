"""The count theorem (C), evaluated: the worst record vector from above, and record vectors by themselves.

With A and r = s - 1 of `clone_pair.victim_line`, a victim's divergence is A psi(r) of `numerics.bit_counts`, ones
counted for one direction and zeros for the other. The set of record vectors is closed under exchanging the two, so the
maximum is the same in both directions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp.accounting.engines.clone_curve import CloneCurve
from shuffledp.accounting.engines.clone_pair import victim_line
from shuffledp.accounting.engines.count_cover import CountCover, Cover, Groups, cover_of
from shuffledp.accounting.engines.count_refine import RefinedCover
from shuffledp.accounting.engines.count_vectors import RecordVectors
from shuffledp.accounting.profiles.gaussian import gaussian_epsilon
from shuffledp.accounting.profiles.knots import ProfileTable
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.budgets import Budgets
from shuffledp.numerics.floats import JUST_BELOW, LEAST_MASS, Upper, deflated, round_down, round_up
from shuffledp.numerics.interval import Enclosure, FloatArray, Interval
from shuffledp.numerics.search import crossing

LEAST_BUDGET = LEAST_MASS
"""A victim of a smaller budget has no line (C) in doubles; the local bound is as good."""
BOXES = 2048
ROUGH_BOXES = 256
CURVE_BOXES = 600
MORE_BOXES = 10_000
"""So many boxes are added for each of these factors between upper and lower end that are hoped for."""
_CLOSE = (1.002, 1.005, 1.01, 1.015, 1.02, 1.03, 1.05)
_CLOSE_DELTA = 1.05
_ROOM = 1e-9
_CURVE_STEP = 0.12
_CURVE_RATIO = 0.03
_CURVE_POINTS = 400
_MOST_TRIED = 256
_TYPICAL = 1e-6


def lie_probability(epsilon0: FloatArray) -> FloatArray:
    """Return s = 1/(1 + e^epsilon0); relative error 4 roundoffs."""
    low = np.exp(-epsilon0)
    return low / (1.0 + low)


def scaled_logs(logs: Interval, scale: float) -> Interval:
    """Add log A, A good to 8 roundoffs, to an enclosure of log psi."""
    found = logs + Interval(scale, scale).inflated(10).log()
    return Interval(min(found.lower, 0.0), min(found.upper, 0.0))


def exp_interval(logs: Interval) -> Interval:
    """Exponentials of both ends, at most 1."""
    return logs.exp().clipped(0.0, 1.0)


@dataclass(frozen=True, eq=False)
class VectorProfile(PrivacyProfile):
    """Divergences of real pairs of neighbours, one per record vector: `delta` is the largest, rounds take one of them.

    Parameters
    ----------
    epsilon0 : float
        The victim's budget.
    vectors : RecordVectors
        What the others may hold.
    """

    epsilon0: float
    vectors: RecordVectors

    @property
    def vanishes_at(self) -> Upper:
        """The victim's own budget."""
        return Upper(self.epsilon0)

    @property
    def directed(self) -> bool:
        """One real pair: ones are evidence for one neighbour, zeros for the other."""
        return True

    @property
    def coarseness(self) -> float:
        """Fewer knots, as each needs a transform."""
        return 2.0

    @property
    def _size(self) -> int:
        return int(self.vectors.ones.shape[0])

    def delta_at(self, epsilon: float) -> Interval:
        """The largest over the vectors, and over both directions."""
        scale, excess = victim_line(epsilon, self.epsilon0)
        ends = [self.vectors.log_psi(excess)]
        if not self.vectors.mirrored:
            ends.append(self.vectors.log_psi(excess, zeros=True))
        lower, upper = (max(float(end[side].max()) for end in ends) for side in (0, 1))
        return exp_interval(scaled_logs(Interval(lower, upper), scale))

    def _inverse(self, target: float) -> Interval:
        """The epsilon of one vector, which is the worst of all at about that place; from above that of all."""
        if self._size == 1:
            return super()._inverse(target)
        near = self._sampled.epsilon(target).lower
        found = self._one(self.vectors.climbed(self._excess(near))).epsilon(target).lower
        return Interval(found, self.epsilon0)

    @cached_property
    def _sampled(self) -> VectorProfile:
        """The worst of a few vectors."""
        return self._one(self.vectors.sample())

    def _one(self, vectors: RecordVectors) -> VectorProfile:
        """The profile of the worst of some vectors where their delta is typical."""
        if vectors.ones.shape[0] == 1:
            return VectorProfile(self.epsilon0, vectors)
        epsilon = VectorProfile(self.epsilon0, vectors.worst(self._excess(0.0))).epsilon(_TYPICAL).lower
        return VectorProfile(self.epsilon0, vectors.worst(self._excess(epsilon)))

    def _excess(self, epsilon: float) -> float:
        return victim_line(min(epsilon, self.epsilon0 * JUST_BELOW), self.epsilon0)[1]

    @cached_property
    def strongest(self) -> VectorProfile:
        """The vector with the largest delta where the largest is about 1e-6: rounds are attacked with it."""
        if self._size == 1:
            return self
        near = self._sampled.epsilon(_TYPICAL).lower
        return VectorProfile(self.epsilon0, self.vectors.worst(self._excess(near)))

    def log_delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """Logarithms of both directions of `strongest`."""
        scale, excess = victim_line(epsilon, self.epsilon0)
        ends = self.strongest.vectors.log_psi_pair(excess)
        first, second = (scaled_logs(Interval(float(low[0]), float(high[0])), scale) for low, high in ends)
        return first, second

    @cached_property
    def table(self) -> ProfileTable:
        """Knots of `strongest`."""
        return ProfileTable(self) if self.strongest is self else self.strongest.table

    def delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """Both directions of `strongest`."""
        first, second = self.log_delta_pair(epsilon)
        return exp_interval(first), exp_interval(second)

    def guess_epsilon(self, delta: float) -> float | None:
        """Gaussian limit: the count moves by tanh(eps_v/2) of one user."""
        variance = self.vectors.groups.variance
        return gaussian_epsilon(delta, math.tanh(self.epsilon0 / 2.0) / math.sqrt(variance)) if variance else None


@dataclass(frozen=True, eq=False)
class CoverProfile(PrivacyProfile):
    """What a cover of all record vectors proves.

    Parameters
    ----------
    epsilon0 : float
        The victim's budget.
    cover : CountCover, SpreadCover or RefinedCover
        Of the others, s rounded down.
    """

    epsilon0: float
    cover: Cover | RefinedCover

    @property
    def vanishes_at(self) -> Upper:
        """The victim's own budget."""
        return Upper(self.epsilon0)

    def log_above(self, epsilon: float) -> float:
        """Upper bound on log delta of every record vector."""
        scale, excess = victim_line(epsilon, self.epsilon0)
        return scaled_logs(Interval(-math.inf, self.cover.log_psi_above(excess)), scale).upper

    def delta_at(self, epsilon: float) -> Interval:
        """From above alone."""
        return Interval(0.0, exp_interval(Interval(-math.inf, self.log_above(epsilon))).upper)

    def guess_epsilon(self, delta: float) -> float | None:
        """Gaussian limit."""
        variance = self.cover.groups.variance
        return gaussian_epsilon(delta, math.tanh(self.epsilon0 / 2.0) / math.sqrt(variance)) if variance else None

    def upper_epsilon(self, target: float, guess: float | None) -> float:
        """An epsilon at which delta is at most the target, near the smallest.

        Parameters
        ----------
        target : float
            In (0, 1).
        guess : float or None
            Where it is expected.
        """
        top, known = self._top(target), dict[float, Interval]()

        def at(epsilon: float) -> Interval:
            if epsilon not in known:
                known[epsilon] = self.delta(epsilon)
            return known[epsilon]

        if guess is not None and 0.0 < guess < top:
            found = self._fast_crossing(at, target, guess, top)
            if found is not None:
                return found
        if at(0.0).upper <= target:
            return 0.0
        return crossing(lambda e: at(e).upper, target, 0.0, top, guess, self.tolerance)[1]


@dataclass(frozen=True, eq=False)
class WorstCountProfile(PrivacyProfile):
    """The largest divergence over all record vectors (C), from above by covers, from below by some vectors.

    Rounds, divergences and trade-offs take a rough cover, and one record vector from below.

    Parameters
    ----------
    epsilon0 : float
        The victim's budget.
    fine, rough : CountCover or SpreadCover
        Of the others, s rounded down; the rough one has fewer boxes.
    below : RecordVectors
        Some of the others' record vectors, s rounded up.
    """

    epsilon0: float
    fine: Cover
    rough: Cover
    below: RecordVectors

    @property
    def vanishes_at(self) -> Upper:
        """The victim's own budget."""
        return Upper(self.epsilon0)

    @property
    def coarseness(self) -> float:
        """Boxes leave more open than knots do."""
        return 3.0

    @cached_property
    def _witness(self) -> VectorProfile:
        return VectorProfile(self.epsilon0, self.below)

    def _above(self, cover: Cover | RefinedCover) -> CoverProfile:
        return CoverProfile(self.epsilon0, cover)

    def delta_at(self, epsilon: float) -> Interval:
        """(C), or (B) where there are too many record vectors; of several budgets boxes are cut where they matter."""
        lower, upper = self._witness.delta(epsilon).lower, self._above(self.fine).delta(epsilon).upper
        hoped = lower * _CLOSE_DELTA
        if isinstance(self.fine, CountCover) and self.fine.moving > 1 and 0.0 < hoped < upper:
            upper = min(upper, self._cut(RefinedCover((self.fine,)), epsilon, hoped)[1])
        return Interval(min(lower, upper), upper)

    def _cut(self, cover: RefinedCover, epsilon: float, hoped: float) -> tuple[RefinedCover, float]:
        """Cut boxes until delta at epsilon is proved to be within what is hoped for, or as many as may be were cut."""
        scale, excess = victim_line(epsilon, self.epsilon0)
        goal = math.log(hoped) - math.log(scale)
        cover, value = cover.towards(excess, goal - _ROOM * (1.0 + abs(goal)), MORE_BOXES)
        return cover, exp_interval(scaled_logs(Interval(-math.inf, value), scale)).upper

    def _inverse(self, target: float) -> Interval:
        """Each end by its own search; of several budgets the upper end by boxes that are cut where they matter."""
        lower = self._witness.epsilon(target).lower
        upper = self._refined(target, lower)
        if upper is None and lower > 0.0 and isinstance(self.fine, CountCover) and self.fine.exact:
            hoped = lower * (1.0 + 0.75 * self.tolerance)  # one look at all record vectors
            upper = hoped if self._above(self.fine).delta(hoped).upper <= target else None
        if upper is None:
            rough = self._above(self.rough)
            near = rough.upper_epsilon(target, rough.guess_epsilon(target))
            upper = self._above(self.fine).upper_epsilon(target, near)
        return Interval(min(lower, upper), upper)

    def _refined(self, target: float, lower: float) -> float | None:
        """An upper end near the lower one, of several budgets whose boxes alone are too coarse for it; else None."""
        fine = self.fine
        if not isinstance(fine, CountCover) or fine.moving < 2:
            return None
        cover, hoped = RefinedCover((fine,)), lower
        for factor in _CLOSE:
            hoped = lower * factor
            if not 0.0 < hoped < self.epsilon0:
                return None
            cover, found = self._cut(cover, hoped, target)
            if found <= target:
                return None if cover.parts == (fine,) else hoped
        return self._above(cover).upper_epsilon(target, hoped)

    def log_above(self, epsilon: float) -> float:
        """By the rough cover."""
        return self._above(self.rough).log_above(epsilon)

    def log_delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """The same curve in both directions, by the rough cover; from below one record vector."""
        upper = self.log_above(epsilon)
        low = min(end.lower for end in self._witness.log_delta_pair(epsilon))
        both = Interval(min(low, upper), upper)
        return both, both


def worst_count(budgets: Budgets, left_out: int) -> WorstCountProfile:
    """Return the profile of the count theorem for a victim of budget level ``left_out``.

    Parameters
    ----------
    budgets : Budgets
        Everybody, the victim included; at least two users.
    left_out : int
        The victim's level.
    """
    above = others(budgets, left_out, outwards=True)
    fine, rough = cover_of(above, BOXES), cover_of(above, ROUGH_BOXES, exact=False)
    return WorstCountProfile(float(budgets.epsilons[left_out]), fine, rough, likely_worst_vectors(budgets, left_out))


def likely_worst_vectors(budgets: Budgets, left_out: int | None) -> RecordVectors:
    """Record vectors among which the worst usually lies; of everybody if nobody is left out."""
    return RecordVectors.likely_worst(others(budgets, left_out, outwards=False).merged(_MOST_TRIED, outwards=False))


def others(budgets: Budgets, left_out: int | None, *, outwards: bool) -> Groups:
    """Everybody but one user of a level, s rounded down for an upper bound, up for a lower one."""
    counts = budgets.counts.astype(np.float64)
    if left_out is not None:
        counts[left_out] -= 1.0
    s, keep = lie_probability(budgets.epsilons), counts > 0.0
    rounded = round_down(s, 8) if outwards else np.minimum(round_up(s, 8), 0.5)
    # a budget of 0 is no rounding's matter
    return Groups(np.where(budgets.epsilons == 0.0, 0.5, rounded)[keep], counts[keep])


def worst_curve(budgets: Budgets, delta: float) -> CloneCurve:
    """Tabulate psi, as `CloneCurve` does, for victims of all budgets: the best company is left out of all of theirs.

    Parameters
    ----------
    budgets : Budgets
        Everybody.
    delta : float
        psi is tabulated until it is below delta/10.
    """
    cover = cover_of(others(budgets, 0, outwards=True), CURVE_BOXES)
    step = _CURVE_STEP / math.sqrt(cover.groups.variance + 1.0)
    grid, psi = [0.0], [exp_interval(Interval(-math.inf, min(cover.log_psi_above(0.0), 0.0))).upper]
    while psi[-1] > 0.1 * delta and len(grid) < _CURVE_POINTS and grid[-1] < 1e290:
        grid.append(grid[-1] + max(step, _CURVE_RATIO * grid[-1]))
        found = cover.log_psi_above(deflated(grid[-1], 4))
        psi.append(min(psi[-1], exp_interval(Interval(-math.inf, min(found, 0.0))).upper))
    return CloneCurve(np.array(grid), Enclosure(np.zeros(len(psi)), np.array(psi)))
