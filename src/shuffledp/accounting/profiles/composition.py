"""Profiles made of others: several rounds, the smallest of several bounds, several changed reports."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from shuffledp.accounting.profiles.knots import Points, ProfileTable, View, dominating_pair
from shuffledp.accounting.profiles.profile import PrivacyProfile, gaussian_epsilon, gaussian_mu, log_end, safe_side
from shuffledp.errors import InconsistentBounds, InvalidInput, check_delta, whole_number
from shuffledp.numerics.floats import TINY, Enclosure, FloatArray, Interval, Upper, deflated, inflated, roundoff
from shuffledp.numerics.losses import LossLaw, LossSum

# ------------------------------------------------------------------ composition
# Several rounds: the profile of independent rounds, each with its own dominating pair.
#
# Rounds are fixed in advance and use fresh randomness and a fresh shuffle each. Then the pairs of the rounds multiply,
# privacy losses add, and delta(eps) = E (1 - e^(eps - S))_+ for the sum S of the losses. Every round is put between
# two finite pairs (`profiles.finite_pair`); the upper ones compose to an upper end, the lower ones to a
# lower end, both through `shuffledp.numerics.losses.LossSum`, at any depth. See docs/theorems/composition.md.

MOST_ROUNDS = 2**53
_TILT_STEP = math.log(1.5)
_REPEATS = 12
CHORDS = 5e-4
"""Approximate relative width of the composed epsilon that is allowed to chords."""
_HOPEFUL = 0.9
"""Share of the sum of all budgets below which a ceiling is worth evaluating."""
_FAR, _LIMIT, _PART = 1.5, 0.25, 0.25
"""A ceiling is far above a known bound at `_FAR` times it. For rounds whose mu is at most `_LIMIT`, and for an epsilon
of at most the share `_PART` of the sum of all budgets, the Gaussian limit gives epsilon to a few percent."""
_WIDER_LIMIT, _NEAR, _CLEARLY, _SURELY = 1.0, 0.9, 1.05, 1.01
"""Largest mu of a round for which a few interpolated values are a guess, how large the Gaussian limit must be, as a
multiple of the ceiling, for them to be looked at, and how far above the ceiling their own guess must be: of values that
are found quickly, and of upper ends."""
_LOOKS, _REACH, _BETWEEN = 8, 4.0, 24
"""Number of those values, how many mu beyond the saddle point they reach, and points interpolated between two."""
_ROUGHLY = (64.0, 8.0)
"""Multiples of `CHORDS` with which a rival of the smallest bound is first composed roughly."""
_QUICKLY = 32.0
"""The same multiple for a value of delta that need only be near: it is up to about a sixth larger, and found sooner."""

Parts = tuple[tuple[PrivacyProfile, int], ...]


def check_rounds(rounds: int) -> int:
    """Return a number of rounds from 1 to 2^53, or raise InvalidInput."""
    return whole_number(rounds, "rounds", 1, MOST_ROUNDS)


def merged_rounds(parts: Sequence[tuple[PrivacyProfile, int]]) -> Parts:
    """Return the distinct single rounds of several profiles, and how often each occurs.

    Compositions are taken apart into their rounds, and equal profiles are counted together.

    Parameters
    ----------
    parts : sequence of (PrivacyProfile, int)
        Profiles, and how many rounds have each.

    Raises
    ------
    InvalidInput
        If there is no round, or a number of rounds is not a whole number from 1 to 2^53.
    """
    rounds: dict[int, tuple[PrivacyProfile, int]] = {}
    for profile, count in parts:
        for part, times in profile.rounds:
            earlier = rounds.get(id(part), (part, 0))[1]
            rounds[id(part)] = part, check_rounds(earlier + check_rounds(count) * times)
    if not rounds:
        raise InvalidInput("a composition needs at least one round; got none")
    return tuple(rounds.values())


@dataclass(frozen=True, eq=False)
class ComposedProfile(PrivacyProfile):
    """Privacy profile of several independent rounds together. Use `compose`, or `ComposedProfile.of`, to make one.

    Parameters
    ----------
    parts : tuple of (PrivacyProfile, int)
        Profiles of single rounds, not themselves composed, and how many rounds have each.
    chords : float
        Approximate relative error of the composed epsilon that is allowed where straight lines (chords) replace values
        between knots. The interval is certified in any case; with a larger error it is wider and found sooner.
    apart : tuple of ProfileTable, optional
        Tables of the rounds' values to use in place of their own.
    """

    tolerance: ClassVar[float] = 1e-5

    parts: Parts
    chords: float = CHORDS
    apart: tuple[ProfileTable, ...] | None = None
    _sums: dict[tuple[bool, View], tuple[int, LossSum]] = field(
        default_factory=dict[tuple[bool, View], tuple[int, LossSum]], repr=False
    )

    @staticmethod
    def of(profile: PrivacyProfile, rounds: int) -> PrivacyProfile:
        """Return the profile of ``rounds`` independent rounds that each have the given profile."""
        parts = merged_rounds([(profile, rounds)])
        return profile if parts == ((profile, 1),) else ComposedProfile(parts)

    @property
    def rounds(self) -> Parts:
        """The profiles of the single rounds, and how often each occurs."""
        return self.parts

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats) from which on delta is 0: the sum of that number over all rounds, rounded up."""
        total = math.fsum(count * part.vanishes_at for part, count in self.parts)
        return Upper(inflated(total, 4))  # products and their sum, each rounded once; 0 is exact

    @property
    def directed(self) -> bool:
        """Whether some round is directed: a real pair whose two directions H(P, Q) and H(Q, P) are known apart."""
        return any(part.directed for part, _ in self.parts)

    @property
    def _both(self) -> bool:
        """Whether both directions have to be summed up."""
        return any(part.directed or part.sided for part, _ in self.parts)

    @property
    def known_below(self) -> bool:
        """Whether lower ends are more than 0: if some round's are, since an attacker may ignore the other rounds."""
        return any(part.known_below for part, _ in self.parts)

    @property
    def mass_at_infinity(self) -> Interval:
        """Interval that encloses the limit of delta for large epsilon: 1 - prod (1 - d), d the limit of each round."""
        logs = [
            math.fsum(n * math.log1p(-end) if end < 1.0 else -math.inf for end, n in ends)
            for ends in (
                [(part.mass_at_infinity.lower, n) for part, n in self.parts],
                [(part.mass_at_infinity.upper, n) for part, n in self.parts],
            )
        ]
        lower, upper = (abs(math.expm1(log)) for log in logs)
        return Interval(lower, upper).inflated(16).clipped(0.0, 1.0)

    def delta_at(self, epsilon: float) -> Interval:
        """Enclose delta(epsilon) of all rounds together: the larger of the two directions."""
        first, second = self.delta_pair(epsilon)
        return Interval(max(first.lower, second.lower), max(first.upper, second.upper))

    def delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """Enclose both directions' hockey-stick divergences H(P, Q) and H(Q, P) of all rounds together.

        P is the product of the rounds' first laws and Q that of their second laws; without directed rounds both
        intervals are the same.
        """
        if epsilon >= self.vanishes_at or math.isinf(epsilon):
            return self.mass_at_infinity, self.mass_at_infinity
        first = self._direction(epsilon, "forward")
        if not self._both:
            return first, first
        second = self._direction(epsilon, "reverse")
        if self.directed:
            return first, second
        larger = Interval(max(first.lower, second.lower), max(first.upper, second.upper))
        return larger, larger

    def _direction(self, epsilon: float, view: View) -> Interval:
        self._refine(epsilon, view)
        upper = self._sum(True, view).divergence(epsilon).upper
        lower = self._sum(False, view).divergence(epsilon).lower if self.known_below else 0.0
        return Interval(min(lower, upper, self._local(epsilon)), min(upper, self._local(epsilon)))

    def deltas_quickly(self, epsilons: list[float]) -> list[Upper]:
        """Return upper bounds on delta at epsilons (nats), composed from few values of each round."""
        source = self._rough or self
        return [source.delta_above(epsilon) for epsilon in epsilons]

    @cached_property
    def _rough(self) -> ComposedProfile | None:
        """The same rounds composed from few values of their own; None where there are none, or this is it."""
        if self.apart is not None:
            return None
        apart = [table for part, _ in self.parts if (table := part.table_apart()) is not None]
        return (
            ComposedProfile(self.parts, _QUICKLY * self.chords, tuple(apart)) if len(apart) == len(self.parts) else None
        )

    def _local(self, epsilon: float) -> float:
        """Randomized response with the sum of all budgets: no pure composition costs more."""
        top = self.vanishes_at
        return inflated(-math.expm1(epsilon - top) / (1.0 + math.exp(-top)), 16) if math.isfinite(top) else 1.0

    def _refine(self, epsilon: float, view: View) -> None:
        """Knots where the saddle point of this epsilon needs them; tilts are rounded to a grid, both ways.

        Where chords are long the upper law's tail is too heavy and holds the saddle point down: repeat until it rests.
        """
        for _ in range(_REPEATS):
            at = math.log(self._sum(True, view).best_tilt(epsilon)) / _TILT_STEP
            before = self._knots
            for tilt in (math.floor(at), math.ceil(at)):
                for table in self._tables:
                    table.refine(math.exp(_TILT_STEP * tilt), capped=True, tolerance=self.chords)
            if self._knots == before:
                return

    @property
    def _knots(self) -> int:
        return sum(table.knots for table in self._tables)

    @cached_property
    def _tables(self) -> tuple[ProfileTable, ...]:
        return tuple(part.table for part, _ in self.parts) if self.apart is None else self.apart

    def _sum(self, above: bool, view: View) -> LossSum:
        """Return the rounds' finite pairs, as the tables are now."""
        key: tuple[bool, View] = (above, view if self._both else "forward")
        if key not in self._sums or self._sums[key][0] != self._knots:
            laws = tuple(table.law(key[1], above=above) for table in self._tables)
            self._sums[key] = self._knots, LossSum(laws, tuple(count for _, count in self.parts))
        return self._sums[key][1]

    def guess_epsilon(self, delta: float) -> float | None:
        """Return an approximation of epsilon(delta), nats, by a saddle point; it is only where a search starts."""
        view: View = "forward"
        guess = self._sum(True, view).guess(math.log(delta))
        self._refine(guess, view)
        return self._sum(True, view).guess(math.log(delta))

    def shown_epsilon(self, delta: float) -> float:
        """Return the lower end of `epsilon`, nats, from the lower laws of the direction that seems to show more.

        Every value that is returned was evaluated: at it the lower end of delta exceeds ``delta``.
        """
        target = check_delta(delta)
        if target in self._inverses or not self.known_below:
            return self.epsilon(target).lower
        views: tuple[View, ...] = ("forward", "reverse") if self.directed else ("forward",)
        self.guess_epsilon(target)  # knots where the saddle point needs them
        guesses = {view: self._sum(False, view).guess(math.log(target)) for view in views}
        view = max(views, key=lambda one: guesses[one])
        if guesses[view] <= 0.0:  # nothing to see, or less than a saddle point tells
            return self.epsilon(target).lower
        self._refine(guesses[view], view)
        lower = self._sum(False, view)
        top = min(self.vanishes_at, 2.0 * guesses[view])
        return safe_side(lambda e: lower.divergence(e).lower, target, top, guesses[view], self.tolerance, above=True)

    def epsilon_below(self, delta: float, ceiling: float) -> Interval:
        """Enclose epsilon(delta), nats; the interval may be wide if epsilon is certainly above the ceiling.

        If a guess is above the ceiling, the rounds are not composed: their epsilons are added up. If there is no guess,
        the rounds are first composed from few values, and that interval is returned if it is above the ceiling.
        Every interval is certified. (For profiles without lower ends, a margin of twice the width that chords
        may cost is allowed in this decision.)

        Parameters
        ----------
        delta : float
            Central delta, in (0, 1).
        ceiling : float
            An upper bound on epsilon that is known already, nats.
        """
        if check_delta(delta) in self._inverses or not 0.0 < ceiling < _HOPEFUL * self.vanishes_at:
            return self.epsilon(delta)
        expected = self._expected_side(delta, ceiling)
        if expected > 0:
            return Interval(0.0, self._added_up(delta))
        for factor in _ROUGHLY if expected == 0 else ():
            apart = [table for part, _ in self.parts if (table := part.table_apart()) is not None]
            if len(apart) < len(self.parts):
                break
            rough = ComposedProfile(self.parts, factor * self.chords, tuple(apart))
            epsilon = rough.epsilon(delta)
            room = 2.0 * rough.chords * max(part.coarseness for part, _ in self.parts)
            if max(epsilon.lower, epsilon.upper * (1.0 - min(room, 1.0))) > ceiling:
                return epsilon
            if epsilon.upper <= ceiling:
                break
        return self.epsilon(delta)

    def seems_above(self, delta: float, ceiling: float) -> bool:
        """Return whether epsilon(delta) is guessed above the ceiling (nats); False also where no guess is good."""
        return 0.0 < ceiling < _HOPEFUL * self.vanishes_at and self._expected_side(check_delta(delta), ceiling) > 0

    def _expected_side(self, delta: float, ceiling: float) -> int:
        """Return 1 if epsilon is guessed above the ceiling, -1 if below or so near that only all values tell, else 0.

        No certified values are composed. By the Gaussian limit, if it is far above or below. Else each round's curve is
        interpolated between a few values where the saddle point of the ceiling weighs it: those say to a fraction of a
        percent what is composed of them. 0 where the Gaussian limit is no good guess of where that is.
        """
        share, mus = self._share(delta), list[float]()
        for part, _ in self.parts:
            guess = part.guess_epsilon(share)
            mus.append(gaussian_mu(part.epsilon(share).upper if guess is None else guess, share))
        squares = math.fsum(count * mu * mu for mu, (_, count) in zip(mus, self.parts, strict=True))
        if not 0.0 < squares < math.inf:
            return 0
        limit = gaussian_epsilon(delta, math.sqrt(squares))
        if max(mus) <= _LIMIT and _FAR * ceiling < limit < _PART * self.vanishes_at:
            return 1
        if max(mus) > _WIDER_LIMIT or limit < _NEAR * ceiling:
            return -1 if max(mus) <= _LIMIT else 0
        for sure, finely in ((_CLEARLY, False), (_SURELY, True)):
            laws: list[LossLaw] = []
            for (part, _), mu in zip(self.parts, mus, strict=True):
                law = _interpolated(part, max(ceiling / squares - 0.5, 0.0) * mu * mu + _REACH * mu, finely=finely)
                if law is None:
                    return 0
                laws.append(law)
            total = LossSum(tuple(laws), tuple(count for _, count in self.parts))
            if total.divergence(sure * ceiling).lower > delta:
                return 1
            if total.divergence(ceiling / _SURELY).upper < delta:
                break
        return -1

    def _share(self, delta: float) -> float:
        """Return an equal share of delta for each round, rounded down."""
        return deflated(delta / sum(count for _, count in self.parts), 4)

    def _added_up(self, delta: float) -> Upper:
        """Upper bound on epsilon(delta): that of each round, at an equal share of delta, added over all rounds."""
        share = self._share(delta)
        return Upper(inflated(math.fsum(count * part.rough_epsilon(share) for part, count in self.parts), 4))

    def renyi_directions(self, t: FloatArray) -> tuple[Enclosure, Enclosure]:
        """Enclose the Renyi divergences (nats) of order t + 1 in both directions: the sums over the rounds."""
        divergences = [(part.renyi_directions(t), count) for part, count in self.parts]
        room = roundoff(4, len(divergences) + 1)
        ends = [
            Enclosure(
                sum((n * two[i].lower for two, n in divergences), start=np.zeros_like(t)) * (1 - room),
                sum((n * two[i].upper for two, n in divergences), start=np.zeros_like(t)) * (1 + room),
            )
            for i in (0, 1)
        ]
        return ends[0], ends[1]


def _interpolated(part: PrivacyProfile, reach: float, *, finely: bool = True) -> LossLaw | None:
    """Return about the law of one round's privacy loss, from a few upper ends of delta up to ``reach`` (nats).

    Quicker ones, `PrivacyProfile.deltas_quickly`, unless ``finely``.

    The logarithm of delta is taken as piecewise cubic, with the slopes of parabolas through three values, and what lies
    beyond is left out. Nothing is certified by it. None if some value is 0, or the round has no room for losses.
    """
    reach = min(reach, 0.98 * part.vanishes_at)
    at = np.linspace(0.0, reach, _LOOKS).tolist()
    if finely:
        part.prepare(at)
    values = np.array([part.delta_above(epsilon) for epsilon in at] if finely else part.deltas_quickly(at))
    if not (reach > 0.0 and bool((values > TINY).all())):
        return None
    logs = np.log(values)
    slopes = np.gradient(logs, edge_order=2)
    u = np.linspace(0.0, 1.0, _BETWEEN, endpoint=False)
    rise, first, second = np.diff(logs)[:, None], slopes[:-1, None], slopes[1:, None]
    curve = logs[:-1, None] + u * (first + u * (3.0 * rise - 2.0 * first - second + u * (first + second - 2.0 * rise)))
    eps = np.linspace(0.0, reach, (_LOOKS - 1) * _BETWEEN + 1)
    points = Points(np.append(eps, eps[-1] + eps[1]), np.concatenate((curve.ravel(), [logs[-1], -math.inf])), -math.inf)
    return dominating_pair(points, points).law


# ------------------------------------------------------------------ from above
# The smallest of several bounds from above alone, with few looks at those that are not the smallest.

_CLOSE = 0.01
"""Distance in logarithms within which a bound may become the smallest at a nearby epsilon."""


@dataclass(frozen=True, eq=False)
class FromAbove(PrivacyProfile):
    """Upper ends of the pointwise minimum of several upper bounds; the lower end of delta is always 0.

    Every bound is an upper bound at every epsilon, so which of them are evaluated is a free choice. Between two
    epsilons already evaluated only the bounds that were the smallest at one of the two are evaluated.

    Parameters
    ----------
    parts : tuple of PrivacyProfile
        Upper bounds on one profile, at least one.
    finely : bool
        Whether parts are evaluated by `delta`, which for some of them is more accurate than the values at their knots.
    """

    parts: tuple[PrivacyProfile, ...]
    finely: bool = False
    _known: dict[float, tuple[Upper, frozenset[int]]] = field(
        default_factory=dict[float, tuple[Upper, frozenset[int]]], repr=False
    )
    _order: list[float] = field(default_factory=list[float], repr=False)

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats) from which on delta is 0: the smallest such number of the parts."""
        return min(part.vanishes_at for part in self.parts)

    @property
    def mass_at_infinity(self) -> Interval:
        """Interval from 0 to the smallest upper bound on the limit of delta for large epsilon."""
        return Interval(0.0, min(part.mass_at_infinity.upper for part in self.parts))

    @property
    def known_below(self) -> bool:
        """Whether lower ends of delta are more than 0: always False."""
        return False

    @property
    def coarseness(self) -> float:
        """The factor of the only part; 1 for the smallest of several."""
        return self.parts[0].coarseness if len(self.parts) == 1 else 1.0

    def delta_at(self, epsilon: float) -> Interval:
        """Return the interval from 0 to the smallest upper bound on delta(epsilon)."""
        log = self.log_above(epsilon)
        return Interval(0.0, min(inflated(math.exp(log), 8), 1.0) if log > -math.inf else 0.0)

    def log_delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """Return, for both directions alike, the interval from -inf to the least upper bound on log delta."""
        both = Interval(-math.inf, self.log_above(epsilon))
        return both, both

    def log_above(self, epsilon: float) -> Upper:
        """Return the smallest upper bound on log delta(epsilon) among the parts that are evaluated there."""
        if epsilon not in self._known:
            logs = {i: self._look(self.parts[i], epsilon) for i in self._candidates(epsilon)}
            least = min(logs.values())
            close = frozenset(i for i, log in logs.items() if log <= least + _CLOSE)
            self._known[epsilon] = least, close
            bisect.insort(self._order, epsilon)
        return self._known[epsilon][0]

    @classmethod
    def of(cls, bounds: tuple[PrivacyProfile, ...]) -> FromAbove:
        """Return the upper ends of the smallest of several bounds, each evaluated by its `delta`.

        A bound that is itself the smallest of several is replaced by its parts.
        """
        return cls(tuple(_leaves(SmallestProfile(bounds))), finely=True)

    def _look(self, part: PrivacyProfile, epsilon: float) -> Upper:
        return log_end(part.delta_above(epsilon)) if self.finely else part.log_above(epsilon)

    def _inverse(self, target: float) -> Interval:
        """Return the smallest of the parts' epsilons; see `SmallestProfile`."""
        return Interval(0.0, SmallestProfile(self.parts).epsilon(target).upper)

    def _candidates(self, epsilon: float) -> frozenset[int]:
        """Parts that are, or nearly are, the smallest at a neighbour; all of them beyond the last neighbour."""
        at = bisect.bisect(self._order, epsilon)
        if not 0 < at < len(self._order):
            return frozenset(range(len(self.parts)))
        left, right = self._order[at - 1], self._order[at]
        return self._known[left][1] | self._known[right][1]


# ------------------------------------------------------------------ combined
# Profiles made of others: the smallest of several bounds, several rounds, several changed reports.

_TYPICAL = 1e-6
_CHORDS_ABOVE, _CHORDS_BELOW = 5e-3, 1e-3
"""`chords` of the two ends of rounds with different brackets. Against 5e-4 the upper end rises by about 4e-4 of itself,
and the lower one falls by 1e-3; the bracket is wider anyway, and most of the computing time goes into knots."""


@dataclass(frozen=True, eq=False)
class SmallestProfile(PrivacyProfile):
    """Pointwise minimum of several upper bounds on one profile.

    Parameters
    ----------
    parts : tuple of PrivacyProfile
        The upper bounds, at least one.
    """

    parts: tuple[PrivacyProfile, ...]

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats) from which on delta is 0: the smallest such number of the parts."""
        return min(part.vanishes_at for part in self.parts)

    def delta_at(self, epsilon: float) -> Interval:
        """Enclose the smallest of the parts' deltas at epsilon."""
        deltas = [part.delta(epsilon) for part in self.parts]
        return Interval(min(f.lower for f in deltas), min(f.upper for f in deltas))

    def deltas_quickly(self, epsilons: list[float]) -> list[Upper]:
        """Return the smallest of the parts' quick upper bounds on delta at epsilons (nats)."""
        return [min(deltas) for deltas in zip(*(part.deltas_quickly(epsilons) for part in self.parts), strict=True)]

    @property
    def mass_at_infinity(self) -> Interval:
        """Interval that encloses the smallest of the parts' limits of delta for large epsilon."""
        masses = [part.mass_at_infinity for part in self.parts]
        return Interval(min(f.lower for f in masses), min(f.upper for f in masses))

    @cached_property
    def from_above(self) -> FromAbove:
        """The same minimum without lower ends, found with fewer evaluations of the parts."""
        return FromAbove(tuple(_leaves(self)))

    def log_delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """Enclose, for both directions alike, the smallest of the parts' log delta(epsilon)."""
        pairs = [part.log_delta_pair(epsilon) for part in self.parts]
        both = Interval(
            min(max(ends[0].lower, ends[1].lower) for ends in pairs),
            min(max(ends[0].upper, ends[1].upper) for ends in pairs),
        )
        return both, both

    def _inverse(self, target: float) -> Interval:
        """Return the smallest of the parts' epsilons, which is the inverse of their minimum.

        The last part, of the theorem that knows most, is usually the smallest; one look at each other curve there
        tells that it is not below.
        """
        return self._smallest(target, math.inf)

    def epsilon_below(self, delta: float, ceiling: float) -> Interval:
        """Enclose the smallest of the parts' epsilons at delta, nats; more widely where it is above the ceiling."""
        target = check_delta(delta)
        return self._inverses[target] if target in self._inverses else self._smallest(target, ceiling)

    def _smallest(self, target: float, ceiling: float) -> Interval:
        epsilons = [self.parts[-1].epsilon_below(target, ceiling)]
        for part in reversed(self.parts[:-1]):
            least = min(f.upper for f in epsilons)
            if len(part.rounds) == 1 == part.rounds[0][1] and math.isfinite(least):
                if part.delta(least).lower <= target:
                    epsilons.append(part.epsilon(target))
            else:
                epsilons.append(part.epsilon_below(target, min(least, ceiling)))
        return Interval(min(f.lower for f in epsilons), min(f.upper for f in epsilons))


@dataclass(frozen=True, eq=False)
class GroupProfile(PrivacyProfile):
    """Upper bound for m changed reports: delta_m(m eps) <= delta_1(eps) (e^{m eps} - 1)/(e^eps - 1).

    It follows from that for one report, delta_1, by the triangle inequality of the hockey-stick divergence along a
    chain of m neighbours (docs/theorems/situations.md).

    Parameters
    ----------
    one : PrivacyProfile
        An upper bound for one changed report.
    size : int
        Number m of changed reports.
    """

    one: PrivacyProfile
    size: int

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats) from which on delta is 0: ``size`` times that number for one changed report, rounded up."""
        return Upper(inflated(self.one.vanishes_at * self.size, 4))

    def delta_at(self, epsilon: float) -> Interval:
        """Return the interval from 0 to the upper bound of the class docstring on delta(epsilon)."""
        return Interval(0.0, self._grown(epsilon, self.one.delta_above(self._share(epsilon))))

    def deltas_quickly(self, epsilons: list[float]) -> list[Upper]:
        """Return the same upper bounds at epsilons (nats) from quick ones for one changed report."""
        quick = self.one.deltas_quickly([self._share(epsilon) for epsilon in epsilons])
        return [min(self._grown(epsilon, delta), Upper(1.0)) for epsilon, delta in zip(epsilons, quick, strict=True)]

    def _share(self, epsilon: float) -> float:
        return deflated(epsilon / self.size, 2)

    def _grown(self, epsilon: float, delta: Upper) -> Upper:
        """Return the upper bound at epsilon from one on the delta of one changed report at its share."""
        share = epsilon / self.size
        growth = math.expm1(min(epsilon, 700.0)) / math.expm1(min(share, 700.0)) if share > 0.0 else float(self.size)
        if epsilon >= 700.0:
            return Upper(1.0 if delta > 0.0 else 0.0)
        return Upper(inflated(delta * growth, 64 * (1.0 + epsilon)))


def composed(one: PrivacyProfile, rounds: int) -> PrivacyProfile:
    """Return the profile of ``rounds`` rounds with fresh randomness, each with the profile ``one``.

    If ``one`` is the smallest of several bounds, each bound is composed by itself (docs/theorems/composition.md).
    """
    if rounds == 1:
        return one
    if isinstance(one, SmallestProfile):
        return SmallestProfile(tuple(composed(part, rounds) for part in one.parts))
    if isinstance(one, BracketProfile):
        return ComposedBracket.of(merged_rounds([(one, rounds)]))
    if rounds not in one.compositions:
        one.compositions[rounds] = one.repeated(rounds) or ComposedProfile.of(one, rounds)
    return one.compositions[rounds]


@dataclass(frozen=True, eq=False)
class BracketProfile(PrivacyProfile):
    """Privacy profile between a certified upper bound and certified lower bounds (witnesses, attained by attacks).

    Parameters
    ----------
    upper : PrivacyProfile
        A certified upper bound.
    witnesses : tuple of PrivacyProfile
        Certified lower bounds, possibly none.
    """

    upper: PrivacyProfile
    witnesses: tuple[PrivacyProfile, ...]

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats) from which on the upper bound on delta is 0."""
        return self.upper.vanishes_at

    def delta_at(self, epsilon: float) -> Interval:
        """Return the interval from the largest witness to the upper bound on delta(epsilon)."""
        return self._bracket(self.upper.delta(epsilon), [w.delta(epsilon) for w in self.witnesses])

    def epsilon(self, delta: float) -> Interval:
        """Return the interval from the largest witness to the upper bound on epsilon(delta), nats."""
        lower_ends = [witness.shown_epsilon(delta) for witness in self.witnesses]
        return self._bracket(self.upper.epsilon(delta), [Interval(low, low) for low in lower_ends])

    @property
    def mass_at_infinity(self) -> Interval:
        """Interval from 0 to the upper bound's limit of delta for large epsilon."""
        return Interval(0.0, self.upper.mass_at_infinity.upper)

    def log_delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """Enclose log delta(epsilon), for both directions alike, between the strongest witness and the upper bound.

        One witness is used for all epsilons, because divergences, trade-offs and rounds belong to one real pair of
        laws.
        """
        high = max(end.upper for end in self.upper.log_delta_pair(epsilon))
        low = -math.inf
        if self.strongest is not None:
            # the smaller direction both ways round is the curve of a symmetric pair that the witness dominates
            low = min(end.lower for end in self.strongest.log_delta_pair(epsilon))
        both = Interval(min(low, high), high)
        return both, both

    @cached_property
    def strongest(self) -> PrivacyProfile | None:
        """The witness (certified lower bound) with the largest epsilon at delta = 1e-6; None without witnesses."""
        return max(self.witnesses, key=lambda witness: witness.epsilon(_TYPICAL).lower, default=None)

    @staticmethod
    def _bracket(upper: Interval, witnesses: list[Interval]) -> Interval:
        lower = max((w.lower for w in witnesses), default=0.0)
        if lower > upper.upper:
            raise InconsistentBounds(f"a witness at {lower} exceeds the certified bound {upper.upper}; please report")
        return Interval(lower, upper.upper)


@dataclass(frozen=True, eq=False)
class ComposedBracket(BracketProfile):
    """Several rounds of which some are enclosed by different upper and lower bounds (`BracketProfile`).

    Upper bounds are composed by themselves, and so is every witness (certified lower bound). Use `compose` to make one.

    Parameters
    ----------
    upper, witnesses
        As for `BracketProfile`, of all rounds together.
    parts : tuple of (PrivacyProfile, int)
        The single rounds, and how often each occurs.
    """

    parts: Parts

    @classmethod
    def of(cls, parts: Parts) -> ComposedBracket:
        """Return the composition of the given rounds, each a profile with how often it occurs.

        If all rounds are alike, each bound and each witness is composed by itself, as `certify` does. Of different
        rounds, the smallest of each round's upper bounds is composed, and each round's strongest witness: together
        these witnesses are one real pair.
        """
        if len(parts) == 1:
            ((one, rounds),) = parts
            uppers, witnesses = _ends(one)
            return cls(composed(uppers, rounds), tuple(composed(each, rounds) for each in witnesses), parts)
        upper = ComposedProfile(tuple((_from_above(_ends(one)[0]), rounds) for one, rounds in parts), _CHORDS_ABOVE)
        chosen = [(one.strongest if isinstance(one, BracketProfile) else one, rounds) for one, rounds in parts]
        witnessed = tuple((each, rounds) for each, rounds in chosen if each is not None)
        if not witnessed:
            return cls(upper, (), parts)
        # rounds without a witness are not looked at, which an attacker may do
        witness = (
            witnessed[0][0]
            if len(witnessed) == 1 and witnessed[0][1] == 1
            else ComposedProfile(witnessed, _CHORDS_BELOW)
        )
        return cls(upper, (witness,), parts)

    @property
    def rounds(self) -> Parts:
        """The profiles of the single rounds, and how often each occurs."""
        return self.parts

    @cached_property
    def _whole(self) -> ComposedProfile:
        """The rounds as they are, each between its two ends: one law above and one below, as divergences need them."""
        return ComposedProfile(self.parts)

    @cached_property
    def table(self) -> ProfileTable:
        """Certified values of the composed profile at knots, each round taken between its upper and lower bound."""
        return self._whole.table

    def renyi_directions(self, t: FloatArray) -> tuple[Enclosure, Enclosure]:
        """Enclose the Renyi divergences (nats) of order t + 1 in both directions: the sums over the rounds."""
        return self._whole.renyi_directions(t)


def compose(parts: Sequence[tuple[PrivacyProfile, int]], *, chords: float = CHORDS) -> PrivacyProfile:
    """Return the privacy profile of several independent rounds together.

    Parameters
    ----------
    parts : sequence of (PrivacyProfile, int)
        Profiles of single rounds, and how many rounds have each. The order does not matter. Equal profiles are counted
        together, and a profile that is itself a composition is replaced by its rounds.
    chords : float
        Approximate relative error of the composed epsilon that is allowed for speed; default 5e-4. If a round has
        different upper and lower bounds, it is 5e-3 for the upper end and 1e-3 for the lower end instead.

    Raises
    ------
    InvalidInput
        If there is no round, or a number of rounds is not a whole number from 1 to 2^53.

    Examples
    --------
    >>> from shuffledp.accounting import one_budget_profile
    >>> day = one_budget_profile(1.0, 1000, coarse=False)
    >>> round(compose([(day, 16)]).epsilon(1e-6).upper, 3)
    0.654
    """
    rounds = merged_rounds(parts)
    if len(rounds) == 1 and rounds[0][1] == 1:
        return rounds[0][0]
    if any(isinstance(one, BracketProfile) for one, _ in rounds):
        return ComposedBracket.of(rounds)
    return ComposedProfile(rounds, chords)


def _leaves(one: PrivacyProfile) -> list[PrivacyProfile]:
    """Return the bounds of which a profile is the smallest, each once.

    A bound that is itself the smallest of several is taken apart.
    """
    if not isinstance(one, SmallestProfile):
        return [one]
    return list({id(leaf): leaf for part in one.parts for leaf in _leaves(part)}.values())


def _from_above(one: PrivacyProfile) -> PrivacyProfile:
    """Return what stands for a round where only upper ends are asked for."""
    return one.from_above if isinstance(one, SmallestProfile) else one


def _ends(one: PrivacyProfile) -> tuple[PrivacyProfile, tuple[PrivacyProfile, ...]]:
    """Return what stands for a round from above, and from below; a profile that is no bracket stands for itself."""
    return (one.upper, one.witnesses) if isinstance(one, BracketProfile) else (one, (one,))
