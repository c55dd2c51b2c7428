"""Privacy profiles: delta as a function of epsilon and back, always as certified intervals.

Gaussian differential privacy (GSPA Fact 3) has the profile of two shifted normal laws: used for the published formulas,
and as a first guess elsewhere.
"""

from __future__ import annotations

import html
import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, update_wrapper
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.accounting.profiles.knots import (
    MOST_KNOTS,
    Known,
    ProfileTable,
    check_alpha,
    check_order,
    renyi_divergences,
    tradeoff,
)
from shuffledp.errors import NotConverged, check_delta, check_epsilon
from shuffledp.numerics.floats import TINY, UNBOUNDED, Enclosure, FloatArray, Interval, Lower, Upper, deflated, roundoff
from shuffledp.numerics.functions import crossing, log_ndtr

_FAR = 700.0
"""Epsilon (nats) at which delta is used as its limit; e^epsilon is still a double."""
_FAST_STEPS, _NEAR, _ONE_SIDED = 9, 1.0, 1e-6
_SLOWEST, _SETTLED = 100, 1e-12
_JAGGED = 1e-4
"""Relative precision of the search on a lower curve that does not follow the upper one."""


def _slope(tops: dict[float, float], near: float) -> float:
    """Return d log(upper end)/d eps around a known point, from the one nearest to it; 0 if there is none."""
    value = tops[near]
    others = [e for e, top in tops.items() if e != near and top > 0.0]
    if not others or value <= 0.0:
        return 0.0
    other = min(others, key=lambda e: abs(e - near))
    return (math.log(value) - math.log(tops[other])) / (near - other)


class _Seen:
    """Ends of one profile's delta, by epsilon, that a search has asked for."""

    def __init__(self, profile: PrivacyProfile) -> None:
        self._profile, self._apart = profile, profile.ends_apart
        self.tops: dict[float, float] = {}
        self.bottoms: dict[float, float] = {}

    def top(self, epsilon: float) -> float:
        """Return the upper end at epsilon."""
        if epsilon not in self.tops:
            if self._apart:
                self.tops[epsilon] = self._profile.delta_above(epsilon)
            else:
                self._look(epsilon)
        return self.tops[epsilon]

    def bottom(self, epsilon: float) -> float:
        """Return the lower end at epsilon."""
        if epsilon not in self.bottoms:
            if self._apart:
                self.bottoms[epsilon] = self._profile.delta_below(epsilon)
            else:
                self._look(epsilon)
        return self.bottoms[epsilon]

    def _look(self, epsilon: float) -> None:
        delta = self._profile.delta(epsilon)
        self.tops[epsilon], self.bottoms[epsilon] = delta.upper, delta.lower

    def largest_above(self, target: float, upper: float) -> float:
        """Return the largest epsilon up to ``upper`` whose lower end is known to be above the target; else 0."""
        return max((e for e, bottom in self.bottoms.items() if bottom > target and e <= upper), default=0.0)


def _root(points: list[tuple[float, float]]) -> float:
    """Where a function is 0 by inverse interpolation through the three known points of smallest value."""
    (a, fa), (b, fb), *more = sorted(points, key=lambda point: abs(point[1]))[:3]
    if fa == fb:
        return math.nan
    straight = (a * fb - b * fa) / (fb - fa)
    if not more or more[0][1] in (fa, fb):
        return straight
    c, fc = more[0]
    # 1e-3 of curvature at most, or else the points are too noisy, or too far apart, for a parabola
    bend = (fa * fb / (fa - fc)) * ((c - b) / (fc - fb) - (b - a) / (fb - fa))
    return straight - bend if abs(bend) < 0.5 * abs(straight - a) + 1e-3 * abs(straight) else straight


def log_end(upper: float) -> Upper:
    """Return the logarithm of an upper end of delta, rounded up; -inf for 0."""
    if upper <= 0.0:
        return Upper(-math.inf)
    log = math.log(upper)
    return Upper(log + roundoff(4, abs(log)))


def _log_interval(value: Interval) -> Interval:
    """Logarithms of both ends, rounded outward; -inf for 0."""
    lower = math.log(value.lower) if value.lower > 0.0 else -math.inf
    return Interval(lower - roundoff(4, abs(lower)) if lower > -math.inf else lower, log_end(value.upper))


class PrivacyProfile(ABC):
    """The privacy profile delta(epsilon) of one pair of neighbours, or of the worst pair; it does not increase.

    delta(epsilon) is the larger of the two hockey-stick divergences H(P, Q) and H(Q, P) at e^epsilon, P and Q the laws
    of what is released for two neighbouring inputs. Subclasses state `delta_at`; everything else is derived from it, on
    the safe sides. As a function of x = e^epsilon, with 1 - x + x delta(1/x) below x = 1, the larger curve of a family
    of pairs closed under exchange is convex, and it is the curve of one symmetric pair; Renyi divergences, trade-off
    functions and composition are that pair's (docs/theorems/renyi.md).

    A profile keeps the values that it evaluated, so one object may be used by one thread at a time.
    """

    tolerance: ClassVar[float] = 1e-6
    """Relative distance of the two verified points that enclose epsilon(delta)."""

    def __init_subclass__(cls, **given: Any) -> None:
        """Keep a dataclass from writing a `repr` of all its tables."""
        super().__init_subclass__(**given)
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = PrivacyProfile.__repr__

    def __repr__(self) -> str:
        """Name the profile and its numbers; nothing is computed."""
        values = ((name, getattr(self, name)) for name in getattr(self, "__dataclass_fields__", {}))
        fields = [f"{name}={value!r}" for name, value in values if isinstance(value, int | float | str)]
        rounds = sum(count for _, count in self.rounds)
        name = type(self).__name__ + (f"({', '.join(fields)})" if fields else "")
        return f"<{name} of {rounds} round{'' if rounds == 1 else 's'}: ask .epsilon(delta) or .delta(epsilon)>"

    def _repr_html_(self) -> str:
        """Return the same for a notebook."""
        return f"<p>{html.escape(repr(self))}</p>"

    @property
    def coarseness(self) -> float:
        """Factor by which `table` may be less accurate: 1, or more for profiles that are slow to evaluate."""
        return 1.0

    @property
    def most_knots(self) -> int:
        """Largest number of knots of `table`: fewer for profiles that are slow to evaluate, so that work is bounded."""
        return MOST_KNOTS

    @property
    @abstractmethod
    def vanishes_at(self) -> Upper:
        """An epsilon (nats, possibly inf) from which on delta is exactly zero."""

    @abstractmethod
    def delta_at(self, epsilon: float) -> Interval:
        """Enclose delta(epsilon), epsilon in nats with 0 <= epsilon < vanishes_at."""

    @property
    def mass_at_infinity(self) -> Interval:
        """Enclose the limit of delta for large epsilon: what no finite epsilon covers."""
        return Interval(0.0, 0.0 if math.isfinite(self.vanishes_at) else self.delta(_FAR).upper)

    @property
    def rounds(self) -> tuple[tuple[PrivacyProfile, int], ...]:
        """The single rounds of which this profile is composed, each with how often it occurs."""
        return ((self, 1),)

    def repeated(self, rounds: int) -> PrivacyProfile | None:
        """Return the profile of ``rounds`` independent rounds with this profile if a formula states it, else None."""
        del rounds
        return None

    @property
    def directed(self) -> bool:
        """Whether this is one real pair of laws (P, Q) whose two directions `delta_pair` returns separately.

        An upper bound over many pairs must leave this False: neighbours may be (P, Q) in one round and (Q, P) in the
        next.
        """
        return False

    def delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """Enclose H(P, Q) and H(Q, P), the hockey-stick divergences at e^epsilon; both equal `delta` unless `directed`.

        As functions of e^epsilon both are convex, and values between two enclosures are inferred from that. A witness
        (lower bound by an attack) whose upper ends do not enclose the real pair's curve must define `test_masses`.
        """
        both = self.delta(epsilon)
        return both, both

    @property
    def sided(self) -> bool:
        """Whether each direction is an upper bound by itself, so that each is composed by itself."""
        return False

    @property
    def known_below(self) -> bool:
        """Whether `log_delta_pair` may have lower ends above log 0; False for profiles that are only known from above.

        Compositions use these lower ends.
        """
        return True

    def test_masses(self, epsilon: float) -> tuple[Interval, Interval] | None:
        """Enclose, per direction, the chance Q(S) of a witness's test S under the second law; None without tests.

        A witness is a lower bound by an attack. Where lower ends are values P(S) - e^epsilon Q(S) of tests S, the upper
        ends do not limit the real pair's curve between two epsilons; but every test gives a line below that curve, with
        slope -Q(S) in e^epsilon. None, the default, states that the enclosures of `delta_pair` are those of one convex
        curve.
        """
        del epsilon
        return None

    def log_delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """Enclose log H(P, Q) and log H(Q, P) at e^epsilon; some profiles know them below double range."""
        first, second = self.delta_pair(epsilon)
        log_first = _log_interval(first)
        return log_first, log_first if second is first else _log_interval(second)

    def delta_above(self, epsilon: float) -> Upper:
        """Return the upper end of `delta` at epsilon (nats, at least 0), for callers who need no lower end."""
        return self.delta(epsilon).upper

    def deltas_quickly(self, epsilons: list[float]) -> list[Upper]:
        """Return upper bounds on delta at epsilons (nats), near `delta_above` but found sooner where that is slow."""
        self.prepare(epsilons)
        return [self.delta_above(epsilon) for epsilon in epsilons]

    def delta_below(self, epsilon: float) -> Lower:
        """Return the lower end of `delta` at epsilon (nats, at least 0), for callers who need no upper end."""
        return self.delta(epsilon).lower

    @property
    def ends_apart(self) -> bool:
        """Whether each end of `delta` costs an evaluation of its own, so that a search asks for one at a time."""
        return False

    def log_above(self, epsilon: float) -> Upper:
        """Return the upper end of log delta(epsilon), of the larger direction, for epsilon below `vanishes_at`."""
        return max(end.upper for end in self.log_delta_pair(epsilon))

    @cached_property
    def table(self) -> ProfileTable:
        """Certified values at knots, which are added as divergences, trade-offs and compositions are asked for."""
        return ProfileTable(self, self._tabulated)

    @cached_property
    def _tabulated(self) -> Known:
        """Values at knots of any table of this profile."""
        return {}

    def table_apart(self) -> ProfileTable | None:
        """Return a new table with few knots, for a rough answer; None for a profile with a `table` of its own kind."""
        return ProfileTable(self, self._tabulated) if type(self).table is PrivacyProfile.table else None

    def prepare(self, epsilons: list[float]) -> None:
        """Evaluate at several epsilons (nats) at once, where that is faster: a table asks for values there next."""
        del epsilons

    def log_roughly(self, epsilon: float) -> float:
        """Return about log delta(epsilon), not certified; it decides where the first knots are placed."""
        value = self.delta(epsilon).upper
        return math.log(value) if value > 0.0 else -math.inf

    @cached_property
    def compositions(self) -> dict[int, PrivacyProfile]:
        """Cache of compositions of this profile with itself, by number of rounds; several bounds use the same one."""
        return {}

    def guess_epsilon(self, delta: float) -> float | None:
        """Return about epsilon(delta), nats, where a search may start, or None; it affects only the time."""
        del delta
        return None

    def delta(self, epsilon: float) -> Interval:
        """Enclose delta(epsilon), the hockey-stick divergence at e^epsilon in the worse direction, in [0, 1].

        Parameters
        ----------
        epsilon : float
            Nats, at least 0.

        Raises
        ------
        InvalidInput
            If epsilon is negative or NaN.
        """
        value = check_epsilon(epsilon)
        if math.isinf(value):
            return self.mass_at_infinity
        if value >= self.vanishes_at:
            return Interval(0.0, 0.0)
        interval = self.delta_at(value)
        return Interval(max(interval.lower, 0.0), max(min(interval.upper, 1.0), 0.0))

    def epsilon(self, delta: float) -> Interval:
        """Enclose the smallest epsilon (nats) with delta(epsilon) <= delta.

        Parameters
        ----------
        delta : float
            In (0, 1).

        Returns
        -------
        Interval
            At the upper end the true delta is at most `delta`; below the lower end it is certainly more. For
            populations with several budgets, the method `delta` may return slightly more than `delta` at the upper end,
            because it evaluates less accurately than this search.

        Raises
        ------
        InvalidInput
            If delta is not in (0, 1).
        """
        target = check_delta(delta)
        if target not in self._inverses:
            self._inverses[target] = self._inverse(target)
        return self._inverses[target]

    def epsilon_below(self, delta: float, ceiling: float) -> Interval:
        """Enclose epsilon(delta), nats; if it is above the ceiling, the interval may be wider, to save time.

        Parameters
        ----------
        delta : float
            In (0, 1).
        ceiling : float
            An upper bound on epsilon that is known already, nats, possibly inf.
        """
        del ceiling
        return self.epsilon(delta)

    def shown_epsilon(self, delta: float) -> float:
        """Return the lower end of `epsilon`, nats: all that is asked of an attack; some profiles find it sooner alone.

        Parameters
        ----------
        delta : float
            In (0, 1).
        """
        return self.epsilon(delta).lower

    def rough_epsilon(self, delta: float) -> float:
        """Return an epsilon (nats) at which delta is at most ``delta``: `epsilon`'s, or one a little above, sooner."""
        return self.epsilon(delta).upper

    @cached_property
    def _inverses(self) -> dict[float, Interval]:
        """Known values of `epsilon`: several bounds, and the levels of a population, may share a profile."""
        return {}

    def _inverse(self, target: float) -> Interval:
        """`epsilon` at a delta not yet asked for."""
        seen = _Seen(self)
        top, guess = self._top(target), self.guess_epsilon(target)
        if math.isinf(top):
            return Interval(math.inf if self.mass_at_infinity.lower > target else 0.0, math.inf)
        upper = self._fast_crossing(seen.top, target, guess, top) if guess is not None and 0.0 < guess < top else None
        if upper is None:
            if seen.top(0.0) <= target:
                return Interval(0.0, 0.0)
            _, upper = crossing(seen.top, target, 0.0, top, guess, self.tolerance)
        if not math.isfinite(upper):
            return Interval(0.0, math.inf)
        return Interval(self._below(seen, target, upper) if self.known_below else 0.0, upper)

    def _fast_crossing(self, most: Callable[[float], float], target: float, guess: float, top: float) -> float | None:
        """Where the upper curve is at most the target, and by its slope within the tolerance of the crossing.

        A few steps of inverse interpolation, the last ones aimed a little beyond the crossing; None if they do not
        settle, as where the computed curve is jagged.
        """
        points: list[tuple[float, float]] = []
        low, high, at_next = 0.0, top, guess
        for _ in range(_FAST_STEPS):
            value = most(at_next)
            if not 0.0 < value < math.inf:
                return None
            points.append((at_next, math.log(value / target)))
            if value > target:
                low = max(low, at_next)
            else:
                high = min(high, at_next)
            root = at_next * (1.0 + points[0][1] / (2.0 - math.log(target))) if len(points) == 1 else _root(points)
            near = points[-1][1] > -_NEAR  # else the slope is that of a plateau before the crossing
            sloped = low > 0.0 or len(points) > 2  # on one side of the crossing, three points tell its slope
            room = self.tolerance if low > 0.0 else min(self.tolerance, _ONE_SIDED)
            if value <= target and near and sloped and abs(root - at_next) <= room * at_next:
                return at_next
            at_next = root * (1.0 + 0.3 * room)
            if not low * (1.0 + 0.1 * room) < at_next < high * (1.0 - 0.1 * room):
                return None
        return None

    def _below(self, seen: _Seen, target: float, upper: float) -> float:
        """Largest epsilon with a lower end above the target, to about a hundredth of what the enclosure leaves open.

        The upper curve's slope tells about where that is; where it does not, the lower curve is searched.
        """
        near, slope = upper, _slope(seen.tops, upper) if upper in seen.tops else 0.0
        for _ in range(3):
            value = seen.bottom(near) if near in seen.tops or near in seen.bottoms else 0.0
            if not (slope < 0.0 < value):
                break
            short = max(math.log(value / target) / slope, 0.0)  # how far to go by the slope
            last, near = near, near - 1.01 * short - 0.5 * self.tolerance * upper
            if near <= 0.0 or (bottom := seen.bottom(near)) <= 0.0:
                break
            if bottom > target:
                return seen.largest_above(target, upper)
            slope = math.log(value / bottom) / (last - near)
        low = seen.largest_above(target, upper)
        if low == 0.0 and seen.bottom(0.0) <= target:
            return 0.0
        lower, _ = crossing(seen.bottom, target, low, upper, near, max(self.tolerance, _JAGGED))
        return min(lower, upper)

    def total_variation(self) -> Interval:
        """Enclose the total variation distance of the two laws, which is delta(0), in [0, 1]."""
        return self.delta(0.0)

    def tradeoff(self, alpha: float) -> Interval:
        """Enclose the trade-off function: the smallest type II error of any test at type I error alpha.

        Parameters
        ----------
        alpha : float
            Type I error, in [0, 1].

        Returns
        -------
        Interval
            Encloses sup_{x >= 0} 1 - f(x) - x alpha, f the symmetric curve of the class docstring. The lower end is
            certified for every test of either neighbour against the other.

        Raises
        ------
        InvalidInput
            If alpha is not in [0, 1].
        """
        return tradeoff(self.table, check_alpha(alpha))

    def renyi(self, order: float) -> Interval:
        """Enclose the Renyi divergence of one order (nats), the larger of its two directions.

        Parameters
        ----------
        order : float
            Real, above 1, finite.

        Returns
        -------
        Interval
            The upper end is infinite if some mass is not covered by any finite epsilon; it never exceeds
            `vanishes_at`.

        Raises
        ------
        InvalidInput
            If the order is not above 1 and finite.
        """
        curve = self.renyi_curve([check_order(order)])
        return Interval(float(curve.lower[0]), float(curve.upper[0]))

    def renyi_curve(self, orders: ArrayLike) -> Enclosure:
        """Enclose the Renyi divergences (nats) of many orders above 1, in the shape of ``orders``; see `renyi`."""
        given = np.asarray(orders, dtype=np.float64)
        t = np.array([check_order(order) for order in given.ravel().tolist()]) - 1.0
        directions = self.renyi_directions(t)
        lower = np.maximum(directions[0].lower, directions[1].lower)
        upper = np.minimum(np.maximum(directions[0].upper, directions[1].upper), self.vanishes_at)
        return Enclosure(np.minimum(lower, upper).reshape(given.shape), upper.reshape(given.shape))

    def renyi_directions(self, t: FloatArray) -> tuple[Enclosure, Enclosure]:
        """Enclose the Renyi divergences D_{t+1}(P || Q) and D_{t+1}(Q || P), nats, for an array of t > 0."""
        forward = renyi_divergences(self.table, t, "forward")
        return forward, renyi_divergences(self.table, t, "reverse") if self.directed else forward

    def _top(self, target: float) -> Upper:
        """Return an epsilon at which delta is certainly at most the target; inf if none up to 1e6 is found.

        A profile that vanishes at v post-processes a v-LDP report, so it is below randomized response's own,
        (e^v - e^eps)/(1 + e^v), which meets the target in closed form.
        """
        top = self.vanishes_at
        if math.isfinite(top):
            room = deflated(target * (1.0 + math.exp(-top)), 16)
            return min(top, Upper(max(top + math.log1p(-min(room, 0.5)) + roundoff(16, top), TINY)))
        at = 1.0
        while self.delta(at).upper > target:
            at *= 2.0
            if at > 1e6:
                return UNBOUNDED
        return Upper(at)


# Profiles are remembered by the thread that made them: their tables grow while they are asked.

P = ParamSpec("P")
T = TypeVar("T")


class RememberedByThread(Generic[P, T]):
    """A cached function with a separate cache for each thread.

    A privacy profile keeps values that it was asked for, in several arrays that must fit together. Two threads that
    share one profile could read half of what the other writes; so each thread has its own.

    Parameters
    ----------
    function : callable
        The function; its arguments must be hashable.
    most : int
        Number of calls that each thread remembers.
    """

    def __init__(self, function: Callable[P, T], most: int) -> None:
        self._function, self._most, self._own = function, most, threading.local()
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what this thread remembers, or call the function."""
        if not hasattr(self._own, "known"):
            self._own.known = lru_cache(maxsize=self._most)(self._function)
        return self._own.known(*args, **kwargs)

    def cache_clear(self) -> None:
        """Clear the cache of the calling thread."""
        self._own.known = lru_cache(maxsize=self._most)(self._function)


def remembered_by_thread(most: int) -> Callable[[Callable[P, T]], RememberedByThread[P, T]]:
    """Return a decorator like `functools.lru_cache`, with a separate cache for each thread.

    Parameters
    ----------
    most : int
        Number of calls that each thread remembers.

    Examples
    --------
    >>> made = []
    >>> double = remembered_by_thread(2)(lambda x: made.append(x) or 2 * x)
    >>> double(3), double(3), made
    (6, 6, [3])
    """
    return lambda function: RememberedByThread(function, most)


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Return delta(epsilon) of mu-GDP: Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2) (GSPA Fact 3).

    Parameters
    ----------
    epsilon : float
        Nats, at least 0.
    mu : float
        Gaussian shift, in [0, inf]; 0 is perfect privacy, inf none.
    """
    if mu == 0.0:
        return 0.0
    if math.isinf(mu):
        return 1.0
    first = float(log_ndtr(-epsilon / mu + mu / 2.0))
    second = epsilon + float(log_ndtr(-epsilon / mu - mu / 2.0))
    return max(-math.exp(first) * math.expm1(min(second - first, 0.0)), 0.0)


@lru_cache(maxsize=1024)  # bounds of one setting have the same limit, and each asks a few times
def gaussian_epsilon(delta: float, mu: float) -> float:
    """Return the epsilon (nats) at which mu-GDP has this delta, to double precision; inf for mu = inf."""
    if math.isinf(mu):
        return math.inf
    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    low, high = 0.0, mu
    while gaussian_delta(high, mu) > delta:
        low, high = high, 2.0 * high
    return _falling_to(lambda epsilon: gaussian_delta(epsilon, mu), delta, low, high)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return about the mu at which mu-GDP has this delta at epsilon (nats, finite); inf if it is above 100."""
    low, high = 0.0, 1.0
    while gaussian_delta(epsilon, high) < delta:
        low, high = high, 2.0 * high
        if high > 100.0:
            return math.inf
    return -_falling_to(lambda less: gaussian_delta(epsilon, -less), delta, -high, -low)


def _falling_to(function: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Where a function that falls from above the target to at most the target meets it, to about 1e-13 of itself.

    Regula falsi on the function's logarithm with the Illinois correction: nothing is certified.

    Parameters
    ----------
    function : callable
        Not increasing on [low, high], at least 0.
    target : float
        Positive.
    low, high : float
        Points at which the function is above the target, and at most the target.
    """

    def gap(point: float) -> float:
        value = function(point)
        return math.log(value / target) if value > 0.0 else -_FAR

    above, below, last, point = gap(low), gap(high), 0, high
    for step in range(_SLOWEST):
        share = above / (above - below) if step % 8 != 7 and above > below else 0.5
        before, point = point, low + share * (high - low)
        if abs(point - before) <= _SETTLED * abs(point) or not low < point < high:
            break
        at_point = gap(point)
        if at_point > 0.0:
            low, above, below = point, at_point, below * (0.5 if last == 1 else 1.0)
            last = 1
        else:
            high, below, above = point, at_point, above * (0.5 if last == -1 else 1.0)
            last = -1
    return point


@dataclass(frozen=True)
class GaussianProfile(PrivacyProfile):
    """Profile of mu-GDP (Gaussian differential privacy), in double precision as published; nothing is certified.

    Parameters
    ----------
    mu : float
        Gaussian shift, in [0, inf].
    """

    mu: float

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon from which on delta is 0: 0 if mu is 0, else infinite."""
        return Upper(0.0) if self.mu == 0.0 else UNBOUNDED

    def delta_at(self, epsilon: float) -> Interval:
        """Return delta(epsilon) of mu-GDP (GSPA Fact 3) as an interval of one point, not certified."""
        value = gaussian_delta(epsilon, self.mu)
        return Interval(value, value)

    def epsilon(self, delta: float) -> Interval:
        """Return epsilon(delta) of mu-GDP, nats (GSPA Fact 3, inverted), as an interval of one point, not certified."""
        value = gaussian_epsilon(delta, self.mu)
        return Interval(value, value)


# ------------------------------------------------------------------ gaussian search
# Where a privacy profile meets a delta, to one certified side, in few evaluations.
#
# A profile of many reports is close to a Gaussian one whose mu moves slowly with epsilon: each evaluation tells mu
# there, and the line through the last two tells where the Gaussian profile of that mu meets delta. What is returned has
# been evaluated; the model only says where to look.

_MOST = 200
_USUAL = 12
"""Number of evaluations after which the function is not treated as Gaussian, and every other one halves the bracket."""


def safe_side(
    function: Callable[[float], float], target: float, top: float, guess: float, tolerance: float, *, above: bool
) -> float:
    """Return a point near where a non-increasing function falls to the target, on the side asked for.

    Parameters
    ----------
    function : callable
        From epsilon (nats) in [0, top] to delta; non-increasing up to small errors, never NaN.
    target : float
        The wanted delta, in (0, 1).
    top : float
        Right end of the search, positive.
    guess : float
        Where the crossing is expected; any number is correct, a good one is fast.
    tolerance : float
        Distance to the crossing that is good enough, relative.
    above : bool
        If True, a point with ``function(point) > target`` is returned (0 if there is none); if False, one with
        ``function(point) <= target`` (``top`` if there is none).

    Returns
    -------
    float
        The point: 0, ``top``, or a point that was evaluated and is on the side asked for.

    Raises
    ------
    NotConverged
        If the function returns NaN, or too many evaluations do not suffice.
    """
    search = _Search(target, top, tolerance, above)
    point = min(max(guess, 0.0), top)
    for _ in range(_MOST):
        value = function(point)
        if math.isnan(value):
            raise NotConverged(f"a search met an undefined value at {point}; nothing can be certified")
        if search.add(point, value):
            return search.low if above else search.high
        point = search.proposal(point)
    raise NotConverged(f"a search did not converge in {_MOST} steps; nothing can be certified")


class _Search:
    """The bracket and the model of a search, from its evaluations so far."""

    def __init__(self, target: float, top: float, tolerance: float, above: bool) -> None:
        self.target, self.tolerance, self.above = target, tolerance, above
        self.low, self.high = -1.0, top
        self.root: float | None = None
        self._last: tuple[float, float] | None = None
        self._steps = 0

    def add(self, point: float, value: float) -> bool:
        """Add one evaluation; return whether the search is over."""
        self._steps += 1
        if value > self.target:
            self.low = max(self.low, point)
        else:
            self.high = min(self.high, point)
        self.root = self._modelled(point, value)
        if self.low < 0.0 and self.high == 0.0:  # already 0 is on the far side
            self.low = 0.0
            return True
        if self.high - self.low <= self.tolerance * self.high and self.low >= 0.0:
            return True
        near = 0.5 * self.target < value < 2.0 * self.target  # beyond a jump no model is to be trusted
        mine = (value > self.target) == self.above
        return mine and near and self.root is not None and abs(self.root - point) <= self.tolerance * point

    def _modelled(self, point: float, value: float) -> float | None:
        """Where the Gaussian profile through the last evaluations meets the target; None if there is none."""
        here = shift_through(point, value)
        if here is None:
            self._last = None
            return None
        slope = 0.0
        if self._last is not None and self._last[0] != point:
            slope = (here - self._last[1]) / (point - self._last[0])
        self._last = point, here
        high = 2.0 * max(point, gaussian_epsilon(self.target, here))

        def modelled(epsilon: float) -> float:
            return gaussian_delta(epsilon, max(here + slope * (epsilon - point), 0.1 * here))

        if not modelled(high) <= self.target < modelled(0.0):
            return high if modelled(high) > self.target else 0.0
        return _falling_to(modelled, self.target, 0.0, high)

    def proposal(self, point: float) -> float:
        """Return the next point to evaluate.

        It lies just on the requested side of the root that the Gaussian model predicts, unless `point` is that already
        or the bracket is to be halved: then it is the middle of the bracket.
        """
        low, high = max(self.low, 0.0), self.high
        if self.low < 0.0 and self._steps >= 3:
            return 0.0
        often = 4 if self._steps < _USUAL else 2
        if self.root is not None and self._steps % often != 0:
            nudge = 0.25 * self.tolerance * self.root
            aim = self.root - nudge if self.above else self.root + nudge
            if low < aim < high and aim != point:
                return aim
        return math.sqrt(low) * math.sqrt(high) if low > 0.0 else 0.5 * high


def shift_through(epsilon: float, delta: float) -> float | None:
    """Return the mu whose Gaussian profile passes through a point; None outside what a Gaussian can do well.

    Parameters
    ----------
    epsilon, delta : float
        The point: nats, at least 0, and a probability.
    """
    if not TINY < delta < 0.9:
        return None
    low, high = 1e-6 * max(epsilon, delta), 2.0 * (math.sqrt(2.0 * epsilon) + 10.0)
    if not gaussian_delta(epsilon, low) < delta < gaussian_delta(epsilon, high):
        return None
    return -_falling_to(lambda less: gaussian_delta(epsilon, -less), delta, -high, -low)
