"""The count theorem: reports of two outcomes, exactly (docs/theorems/count.md)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import (
    AmplificationBound,
    level_alone,
    require_one_pure_round,
)
from shuffledp.accounting.profiles.composition import ComposedProfile, FromAbove
from shuffledp.accounting.profiles.knots import ProfileTable
from shuffledp.accounting.profiles.profile import PrivacyProfile, gaussian_epsilon, remembered_by_thread
from shuffledp.accounting.theorems.clones.pair import CloneCurve, victim_line
from shuffledp.accounting.theorems.count.channel import RecordVectors, channel_count, two_outcomes
from shuffledp.accounting.theorems.count.cover import CountCover, Cover, Groups, cover_of
from shuffledp.accounting.theorems.local import LocalProfile
from shuffledp.budgets import Budgets
from shuffledp.errors import OutOfRegime
from shuffledp.numerics.floats import (
    JUST_BELOW,
    LEAST_MASS,
    Enclosure,
    FloatArray,
    Interval,
    Upper,
    deflated,
    round_down,
    round_up,
)
from shuffledp.numerics.functions import crossing
from shuffledp.randomizers.base import HiddenByFakes, ReportSets
from shuffledp.setting import Kind, Setting

# ------------------------------------------------------------------ count refine
# Covers of all record vectors whose boxes are small only where the worst one may be.


@dataclass(frozen=True, eq=False)
class RefinedCover:
    """A cover of all record vectors by boxes of several sizes, small where the worst record vector may lie.

    Parameters
    ----------
    parts : tuple of CountCover
        At least one, each of boxes of one shape; together they cover all record vectors.
    """

    parts: tuple[CountCover, ...]

    @property
    def groups(self) -> Groups:
        """The users that the cover is about, grouped by the smaller chance s of their bit."""
        return self.parts[0].groups

    def towards(self, excess: float, goal: float, most: int) -> tuple[RefinedCover, float]:
        """Cut boxes whose bound exceeds `goal` into halves, until none exceeds it or `most` new boxes were evaluated.

        Parameters
        ----------
        excess : float
            The argument r >= 0 of psi, the value of the best threshold test on the number of ones.
        goal : float
            Natural logarithm of psi(excess) that the bounds shall not exceed.
        most : int
            Largest number of new boxes to evaluate.

        Returns
        -------
        refined, value
            The refined cover, and its upper bound on log psi(excess) over all record vectors.
        """
        done, todo, value, seen = list[CountCover](), list(self.parts[::-1]), -math.inf, 0
        while todo:
            now = todo.pop()
            logs = now.box_logs(excess)
            above = logs > goal
            cut = now.only(above).halved() if above.any() else None
            if cut is None or (seen := seen + cut.first.shape[0]) > most:
                done.append(now)
                value = max(value, float(logs.max()))
                continue
            if not above.all():
                done.append(now.only(~above))
                value = max(value, float(logs[~above].max()))
            todo.append(cut)
        return RefinedCover(tuple(done)), value

    def log_psi_above(self, excess: float) -> Upper:
        """Return an upper bound on log psi(excess) over all record vectors; psi is the best threshold test's value."""
        return max(part.log_psi_above(excess) for part in self.parts)


# ------------------------------------------------------------------ count
# The count theorem (C), evaluated: the worst record vector from above, and record vectors by themselves.
#
# With A and r = s - 1 of `clone_pair.victim_line`, a victim's divergence is A psi(r) of `numerics.bit_counts`, ones
# counted for one direction and zeros for the other. The set of record vectors is closed under exchanging the two, so
# the maximum is the same in both directions.

LEAST_BUDGET = LEAST_MASS
"""Smallest budget of a victim for which line (C) is evaluated; below it the local bound is as good."""
BOXES = 2048
ROUGH_BOXES = 256
CURVE_BOXES = 600
MORE_BOXES = 10_000
"""Number of boxes added for each of the ratios of upper to lower end, in `_CLOSE`, that are aimed at."""
_CLOSE = (1.002, 1.005, 1.01, 1.015, 1.02, 1.03, 1.05)
_CLOSE_DELTA = 1.05
_ROOM = 1e-9
_CURVE_STEP = 0.12
_CURVE_RATIO = 0.03
_CURVE_POINTS = 400
_MOST_TRIED = 256
_TYPICAL = 1e-6


def lie_probability(epsilon0: FloatArray) -> FloatArray:
    """Return s = 1/(1 + e^epsilon0), the chance that randomized response flips a bit; relative error 4 roundoffs."""
    low = np.exp(-epsilon0)
    return low / (1.0 + low)


def scaled_logs(logs: Interval, scale: float) -> Interval:
    """Add the logarithm of ``scale`` to an enclosure of log psi, rounded outward; ``scale`` is good to 8 roundoffs."""
    scaled = logs + Interval(scale, scale).inflated(10).log()
    return Interval(min(scaled.lower, 0.0), min(scaled.upper, 0.0))


def exp_interval(logs: Interval) -> Interval:
    """Enclose the exponentials of both ends of an interval of logarithms, capped at 1."""
    return logs.exp().clipped(0.0, 1.0)


@dataclass(frozen=True, eq=False)
class VectorProfile(PrivacyProfile):
    """The count theorem's profile delta(epsilon) for given record vectors of the other users.

    Each vector gives a real pair of neighbours; `delta` is the largest of their hockey-stick divergences, and a
    composition of rounds takes a single vector (`strongest`).

    Parameters
    ----------
    epsilon0 : float
        Local budget of the victim (the user whose privacy is analysed), in nats.
    vectors : RecordVectors
        The record vectors of the other users to evaluate.
    """

    epsilon0: float
    vectors: RecordVectors

    @property
    def vanishes_at(self) -> Upper:
        """The epsilon, in nats, from which delta is 0: the victim's own local budget."""
        return Upper(self.epsilon0)

    @property
    def directed(self) -> bool:
        """True: the two directions of the divergence differ, as ones speak for one neighbour, zeros for the other."""
        return True

    @property
    def coarseness(self) -> float:
        """Factor by which a table of this profile may be less accurate, as each knot costs a transform."""
        return 2.0

    @property
    def _size(self) -> int:
        return int(self.vectors.ones.shape[0])

    def delta_at(self, epsilon: float) -> Interval:
        """Return bounds on delta at one epsilon (nats): the largest over the record vectors and both directions."""
        scale, excess = victim_line(epsilon, self.epsilon0)
        ends = [self.vectors.log_psi(excess)]
        if not self.vectors.mirrored:
            ends.append(self.vectors.log_psi(excess, zeros=True))
        lower, upper = (max(float(end[side].max()) for end in ends) for side in (0, 1))
        return exp_interval(scaled_logs(Interval(lower, upper), scale))

    def _inverse(self, target: float) -> Interval:
        """Return the epsilon of one vector, which is the worst of all at about that place; from above that of all."""
        if self._size == 1:
            return super()._inverse(target)
        near = self._sampled.epsilon(target).lower
        lower = self._one(self.vectors.climbed(self._excess(near))).epsilon(target).lower
        return Interval(lower, self.epsilon0)

    @cached_property
    def _sampled(self) -> VectorProfile:
        """The worst of a few vectors."""
        return self._one(self.vectors.sample())

    def _one(self, vectors: RecordVectors) -> VectorProfile:
        """Return the profile of the worst of some vectors where their delta is typical."""
        if vectors.ones.shape[0] == 1:
            return VectorProfile(self.epsilon0, vectors)
        epsilon = VectorProfile(self.epsilon0, vectors.worst(self._excess(0.0))).epsilon(_TYPICAL).lower
        return VectorProfile(self.epsilon0, vectors.worst(self._excess(epsilon)))

    def _excess(self, epsilon: float) -> float:
        return victim_line(min(epsilon, self.epsilon0 * JUST_BELOW), self.epsilon0)[1]

    @cached_property
    def strongest(self) -> VectorProfile:
        """The record vector with the largest delta where that is about 1e-6; it is the one composed over rounds."""
        if self._size == 1:
            return self
        near = self._sampled.epsilon(_TYPICAL).lower
        return VectorProfile(self.epsilon0, self.vectors.worst(self._excess(near)))

    def log_delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """Return bounds on log delta of the vector `strongest` at one epsilon, in both directions."""
        scale, excess = victim_line(epsilon, self.epsilon0)
        ends = self.strongest.vectors.log_psi_pair(excess)
        first, second = (scaled_logs(Interval(float(low[0]), float(high[0])), scale) for low, high in ends)
        return first, second

    @cached_property
    def table(self) -> ProfileTable:
        """Return a table of delta over epsilon for the vector `strongest`."""
        return ProfileTable(self) if self.strongest is self else self.strongest.table

    def delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """Return bounds on delta of the vector `strongest` at one epsilon, in both directions."""
        first, second = self.log_delta_pair(epsilon)
        return exp_interval(first), exp_interval(second)

    def guess_epsilon(self, delta: float) -> float | None:
        """Guess the epsilon (nats) of a given delta by the Gaussian limit.

        The victim's report shifts the expected count by tanh(epsilon0/2). The guess only starts a search.
        """
        variance = self.vectors.groups.variance
        return gaussian_epsilon(delta, math.tanh(self.epsilon0 / 2.0) / math.sqrt(variance)) if variance else None


@dataclass(frozen=True, eq=False)
class CoverProfile(PrivacyProfile):
    """Upper bound on the profile delta(epsilon) over all record vectors, from a cover of them.

    Parameters
    ----------
    epsilon0 : float
        Local budget of the victim (the user whose privacy is analysed), in nats.
    cover : CountCover, SpreadCover or RefinedCover
        The cover of the other users' record vectors, their flip chances s rounded down.
    """

    epsilon0: float
    cover: Cover | RefinedCover

    @property
    def vanishes_at(self) -> Upper:
        """The epsilon, in nats, from which delta is 0: the victim's own local budget."""
        return Upper(self.epsilon0)

    def log_above(self, epsilon: float) -> Upper:
        """Return an upper bound on log delta(epsilon) that holds for every record vector."""
        scale, excess = victim_line(epsilon, self.epsilon0)
        return scaled_logs(Interval(-math.inf, self.cover.log_psi_above(excess)), scale).upper

    def delta_at(self, epsilon: float) -> Interval:
        """Return bounds on delta at one epsilon (nats); the lower end is trivial, the cover only bounds from above."""
        return Interval(0.0, exp_interval(Interval(-math.inf, self.log_above(epsilon))).upper)

    def guess_epsilon(self, delta: float) -> float | None:
        """Guess the epsilon (nats) of a given delta by the Gaussian limit; the guess only starts a search."""
        variance = self.cover.groups.variance
        return gaussian_epsilon(delta, math.tanh(self.epsilon0 / 2.0) / math.sqrt(variance)) if variance else None

    def upper_epsilon(self, target: float, guess: float | None) -> Upper:
        """Return an epsilon, in nats, at which delta is certainly at most the target; it is near the smallest such.

        Parameters
        ----------
        target : float
            The delta to reach, in (0, 1).
        guess : float or None
            Where the result is expected, in nats; None: the Gaussian limit.
        """
        top, deltas = self._top(target), dict[float, float]()

        def most(epsilon: float) -> float:
            if epsilon not in deltas:
                deltas[epsilon] = self.delta_above(epsilon)
            return deltas[epsilon]

        if guess is not None and 0.0 < guess < top:
            upper = self._fast_crossing(most, target, guess, top)
            if upper is not None:
                return Upper(upper)
        if most(0.0) <= target:
            return Upper(0.0)
        return Upper(crossing(most, target, 0.0, top, guess, self.tolerance)[1])


@dataclass(frozen=True, eq=False)
class WorstCountProfile(PrivacyProfile):
    """The count theorem's profile (C): the largest divergence over all record vectors of the other users.

    Upper bounds come from covers of all vectors, lower bounds from some vectors.

    Composition over rounds, divergences and trade-off curves use the rough cover from above and one vector from below.

    Parameters
    ----------
    epsilon0 : float
        Local budget of the victim (the user whose privacy is analysed), in nats.
    fine, rough : CountCover or SpreadCover
        Covers of the other users' record vectors, flip chances s rounded down; the rough one has fewer boxes.
    below : RecordVectors
        Some of the others' record vectors, s rounded up.
    """

    epsilon0: float
    fine: Cover
    rough: Cover
    below: RecordVectors

    @property
    def vanishes_at(self) -> Upper:
        """The epsilon, in nats, from which delta is 0: the victim's own local budget."""
        return Upper(self.epsilon0)

    @property
    def coarseness(self) -> float:
        """Factor by which a table of this profile may be less accurate, to save knots.

        It is larger for several budgets, where the boxes of the cover are less exact than the knots; for one budget
        they are exact.
        """
        return 2.0 if self.rough.groups.chances.size == 1 else 3.0

    @cached_property
    def _witness(self) -> VectorProfile:
        return vector_profile(self.epsilon0, self.below)

    def _above(self, cover: Cover | RefinedCover) -> CoverProfile:
        return CoverProfile(self.epsilon0, cover)

    def delta_at(self, epsilon: float) -> Interval:
        """Enclose delta at one epsilon (nats) by (C), or by its relaxation (B) if there are too many record vectors.

        With several budgets, boxes whose bound matters are cut further.
        """
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
        """Return an upper end near the lower one, of several budgets whose boxes alone are too coarse for it.

        Return None where the boxes are fine enough.
        """
        fine = self.fine
        if not isinstance(fine, CountCover) or fine.moving < 2:
            return None
        cover, hoped = RefinedCover((fine,)), lower
        for factor in _CLOSE:
            hoped = lower * factor
            if not 0.0 < hoped < self.epsilon0:
                return None
            cover, delta = self._cut(cover, hoped, target)
            if delta <= target:
                return None if cover.parts == (fine,) else hoped
        return self._above(cover).upper_epsilon(target, hoped)

    def repeated(self, rounds: int) -> PrivacyProfile:
        """Return the profile of several rounds from upper ends alone.

        Lower ends would belong to one record vector, cost as much again, and certify nothing.
        """
        return ComposedProfile.of(self._from_above, rounds)

    @cached_property
    def _from_above(self) -> FromAbove:
        return FromAbove((self,))

    def log_above(self, epsilon: float) -> Upper:
        """Return an upper bound on log delta(epsilon) over all record vectors, from the rough cover."""
        return self._above(self.rough).log_above(epsilon)

    def log_roughly(self, epsilon: float) -> float:
        """Return an upper bound on log delta at one epsilon (nats), from the rough cover as at a table's knots."""
        return self.log_above(epsilon)

    def log_delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """Enclose log delta at one epsilon (nats), with the same interval for both directions.

        The upper end comes from the rough cover. The lower end is the smaller direction of one record vector.
        """
        upper = self.log_above(epsilon)
        low = min(end.lower for end in self._witness.log_delta_pair(epsilon))
        both = Interval(min(low, upper), upper)
        return both, both


@remembered_by_thread(16)
def vector_profile(epsilon0: float, vectors: RecordVectors) -> VectorProfile:
    """Return the profile of given record vectors, remembered with the values that it has evaluated.

    Parameters
    ----------
    epsilon0 : float
        Local budget of the victim, nats.
    vectors : RecordVectors
        The record vectors of the other users.
    """
    return VectorProfile(epsilon0, vectors)


def worst_count(budgets: Budgets, left_out: int) -> WorstCountProfile:
    """Return the count theorem's profile for a victim whose budget is level number ``left_out`` of `budgets`.

    Parameters
    ----------
    budgets : Budgets
        All users' local budgets, the victim's included; at least two users.
    left_out : int
        Index of the victim's level.
    """
    above = others(budgets, left_out, outwards=True)
    boxes = ROUGH_BOXES if above.chances.size > 1 else BOXES
    fine, rough = cover_of(above, BOXES), cover_of(above, boxes, exact=False)
    return WorstCountProfile(float(budgets.epsilons[left_out]), fine, rough, likely_worst_vectors(budgets, left_out))


@remembered_by_thread(16)
def likely_worst_vectors(budgets: Budgets, left_out: int | None) -> RecordVectors:
    """Return record vectors among which the worst one usually lies, of all users but one of level `left_out`.

    With None, of all users. Remembered, since the bound and the witness ask for the same ones.
    """
    return RecordVectors.likely_worst(others(budgets, left_out, outwards=False).merged(_MOST_TRIED, outwards=False))


def others(budgets: Budgets, left_out: int | None, *, outwards: bool) -> Groups:
    """Return the users other than one of level `left_out`, grouped by the flip chance s of their bit.

    s is rounded down if `outwards` (for an upper bound), else up (for a lower bound).
    """
    counts = budgets.counts.astype(np.float64)
    if left_out is not None:
        counts[left_out] -= 1.0
    s, keep = lie_probability(budgets.epsilons), counts > 0.0
    rounded = round_down(s, 8) if outwards else np.minimum(round_up(s, 8), 0.5)
    # a budget of 0 is no rounding's matter
    return Groups(np.where(budgets.epsilons == 0.0, 0.5, rounded)[keep], counts[keep])


def worst_curve(budgets: Budgets, delta: float) -> CloneCurve:
    """Return a table of psi, as a `CloneCurve`, that serves victims of every budget.

    A user of the smallest budget, who hides the victim best, is left out whoever the victim is.

    Parameters
    ----------
    budgets : Budgets
        All users' local budgets.
    delta : float
        psi is tabulated until it is below delta/10.
    """
    cover = cover_of(others(budgets, 0, outwards=True), CURVE_BOXES)
    step = _CURVE_STEP / math.sqrt(cover.groups.variance + 1.0)
    grid, psi = [0.0], [exp_interval(Interval(-math.inf, min(cover.log_psi_above(0.0), 0.0))).upper]
    while psi[-1] > 0.1 * delta and len(grid) < _CURVE_POINTS and grid[-1] < 1e290:
        grid.append(grid[-1] + max(step, _CURVE_RATIO * grid[-1]))
        log_psi = cover.log_psi_above(deflated(grid[-1], 4))
        psi.append(min(psi[-1], exp_interval(Interval(-math.inf, min(log_psi, 0.0))).upper))
    return CloneCurve(np.array(grid), Enclosure(np.zeros(len(psi)), np.array(psi)))


def sends_bits(setting: Setting) -> bool:
    """Return whether every report is one bit, drawn by randomized response of the record or of a fair coin."""
    law = setting.law
    return isinstance(law, HiddenByFakes) and law.report_sets == ReportSets(2, disjoint=True)


class CountBound(AmplificationBound):
    """The upper bound `count`: the largest divergence of the count of ones over all record vectors.

    It applies if each user sends one bit, or if records take two values and one randomizer serves everybody. The proof
    is in docs/theorems/count.md.
    """

    key = "count"
    kind = Kind.CERTIFIED_UPPER
    reference = "count theorem (own proof): the largest divergence of the count of bits over all record vectors"

    def company(self, setting: Setting, budgets: Budgets, level: int, exposed: int) -> Budgets:
        """Return the population left when ``exposed`` users, chosen in the worst way, do not hide the victim.

        These are the users of the smallest budgets, who hide best; with visible levels, users of the victim's level.
        See `AmplificationBound.company`.
        """
        if setting.seen != "levels":
            return super().company(setting, budgets, level, exposed)
        counts = budgets.counts.copy()
        counts[level] = max(int(counts[level]) - exposed, 1)
        return Budgets(budgets.epsilons, counts, budgets.deltas)

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the certified profile (C) of a victim of local budget `epsilon0` (nats), for one round.

        See `AmplificationBound.one_round`.
        """
        self._check(setting)
        if setting.seen == "levels":
            setting = level_alone(setting, epsilon0)
        channel = two_outcomes(setting.law)
        if channel is not None:
            return channel_count(channel, setting.budgets.n, above=True)
        if setting.budgets.n == 1 or epsilon0 < LEAST_BUDGET:
            return LocalProfile(epsilon0, 0.0)  # nobody to hide among, or nothing to hide
        return worst_count(setting.budgets, setting.budgets.index_of(epsilon0))

    def many_levels(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """Return bounds on epsilon at `delta` for the victims of many levels, all read off one tabulated curve.

        See `AmplificationBound.many_levels`.
        """
        self._check(setting)
        if setting.seen == "levels":
            raise OutOfRegime("count is not evaluated level by level for more than 32 levels; see 'clones'")
        channel = two_outcomes(setting.law)
        if channel is not None:  # everybody has the same chances, whatever the stated budget
            epsilon = channel_count(channel, setting.budgets.n, above=True).epsilon(delta)
            return Enclosure(np.full(levels.size, epsilon.lower), np.full(levels.size, epsilon.upper))
        return worst_curve(setting.budgets, delta).epsilons(setting.budgets.epsilons[levels], delta)

    def any_victim(self, setting: Setting) -> Callable[[float], PrivacyProfile]:
        """Return a function from a victim's budget (nats) to a profile; all victims share one population.

        That population lacks a user of the smallest budget, who hides best, whoever the victim is. See
        `AmplificationBound.any_victim`.
        """
        self._check(setting)
        if setting.seen == "levels":
            raise OutOfRegime("count over rounds or groups stops at 32 visible levels; see 'clones'")
        channel = two_outcomes(setting.law)
        if channel is not None:
            alike = channel_count(channel, setting.budgets.n, above=True)
            return lambda _: alike
        shared = replace(worst_count(setting.budgets, 0), below=likely_worst_vectors(setting.budgets, None))
        return lambda epsilon0: (
            LocalProfile(epsilon0, 0.0) if epsilon0 < LEAST_BUDGET else replace(shared, epsilon0=epsilon0)
        )

    def _check(self, setting: Setting) -> None:
        require_one_pure_round(setting, self.key)
        if two_outcomes(setting.law) is not None:
            return  # everybody has the same chances, whatever the stated budgets
        several = setting.budgets.levels > 1 and setting.seen != "levels"
        if several and setting.seen == "users":
            raise OutOfRegime("count with several budgets is stated for unordered reports; got seen = users")
        if sends_bits(setting):
            return
        if setting.records != 2:
            raise OutOfRegime(
                "count needs reports of two outcomes (rr, one-bit, a channel), or records that take two values "
                f"(records = 2); got {setting.randomizer_name}"
            )
        if several:
            raise OutOfRegime(
                "count of two-valued records with several budgets needs reports of one bit: otherwise one "
                f"randomizer of one budget must serve everybody; got {setting.randomizer_name}"
            )
        if setting.law is None and setting.seen == "users":
            raise OutOfRegime("count needs the same randomizer at every step; 'any' with seen = users may be adaptive")
