"""A privacy profile at well-chosen knots: what Renyi divergences, trade-off functions and composition start from.

Knots are placed where they matter for a question. The question is a tilt t: the moment E_P exp(t log P/Q) - 1, which
is the Renyi divergence of order t + 1 and, for composition, the saddle point. With f and g as in
`profiles.finite_pair`,

    E_P exp(t log P/Q) - 1 = t (t+1) int_1^inf ( x^(t-1) f(x) + x^(-t-2) g(x) ) dx,                      (R)

so what a gap between two knots leaves open is weighed, and the heaviest gaps are halved, until the logarithm of the
moment is known to the tolerance, or only the noise of the enclosures is left, or the knots run out.
"""

from __future__ import annotations

import math
from typing import Literal, Protocol

import numpy as np

from shuffledp.accounting.profiles.finite_pair import (
    FinitePair,
    Points,
    dominated_pair,
    dominating_pair,
    valleys,
)
from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.floats import LOG_DEEP, TINY, Upper, inflated, roundoff
from shuffledp.numerics.interval import Enclosure, FloatArray, Interval
from shuffledp.numerics.losses import LossLaw, log_sum

# ------------------------------------------------------------------ curve
# What a table of knots asks of a privacy profile.


class Curve(Protocol):
    """The members of a privacy profile that a table of its values uses; `PrivacyProfile` defines them."""

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats, possibly inf) from which on delta is 0."""
        ...

    @property
    def mass_at_infinity(self) -> Interval:
        """Interval that encloses the limit of delta for large epsilon."""
        ...

    @property
    def directed(self) -> bool:
        """Whether the two directions H(P, Q) and H(Q, P) are known apart and may differ."""
        ...

    @property
    def coarseness(self) -> float:
        """Factor, at least 1, on the width that a table may leave open; larger for slowly evaluated profiles."""
        ...

    @property
    def most_knots(self) -> int:
        """Largest number of values that a table of this profile may hold."""
        ...

    def log_roughly(self, epsilon: float) -> float:
        """Return about log delta(epsilon), of the larger direction; not certified."""
        ...

    def log_delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """Enclose log H(P, Q) and log H(Q, P), the hockey-stick divergences at e^epsilon in both directions."""
        ...

    def test_masses(self, epsilon: float) -> tuple[Interval, Interval] | None:
        """Enclose, per direction, the chance of a witness's test under the second law; None for other profiles."""
        ...


Known = dict[float, tuple[list[float], list[float]]]
"""By exponent, the logarithms of the lower ends and of the upper ends of each direction."""
View = Literal["forward", "reverse", "worst"]
"""Which pair: (P, Q), (Q, P), or the symmetric one whose curve is the larger of the two at every x."""
TOLERANCE = 2e-4
"""Relative width of log E exp(t log P/Q) left open by the knots, where it is of order 1 or below."""
MOST_KNOTS = 1500
_EASE = 30.0
_MOST_EASE = 50.0
_CAP = _DEEP = LOG_DEEP
_PASSES = 40
_NOISE_SHARE = 4.0
_CUTS = 30


class ProfileTable:
    """Certified values of one privacy profile at knots (values of epsilon), which are added as questions are asked.

    Parameters
    ----------
    profile : Curve
        The profile whose values are kept: of one direction if both are alike, else of both.
    known : dict, optional
        Values by epsilon, to look up and to add to: several tables of one profile share them.
    """

    def __init__(self, profile: Curve, known: Known | None = None) -> None:
        self._profile, self._known = profile, {} if known is None else known
        self._directions = 2 if profile.directed else 1
        self._eps: FloatArray = np.empty(0)
        self._lower: FloatArray = np.empty((self._directions, 0))
        self._upper: FloatArray = np.empty((self._directions, 0))
        self._masses: FloatArray = np.empty((2, self._directions, 0))  # of a witness's tests, both ends; else NaN
        self._pairs: dict[tuple[str, str], FinitePair] = {}
        self._refined: set[tuple[float, bool, float]] = set()
        self.insert(self._first_knots())

    @property
    def most(self) -> int:
        """Largest number of values the table may hold; when it is reached, `refine` adds no more."""
        return self._profile.most_knots

    @property
    def knots(self) -> int:
        """Number of values the table holds."""
        return self._eps.size

    def insert(self, epsilons: list[float]) -> None:
        """Evaluate the profile at further epsilons (nats, from 0 to where delta vanishes), and keep the values."""
        fresh = sorted(set(epsilons) - set(self._eps.tolist()))
        if not fresh:
            return
        found = [self._values(eps) for eps in fresh]
        eps = np.concatenate((self._eps, fresh))
        order = np.argsort(eps)
        self._eps = eps[order]
        self._lower = np.concatenate((self._lower, np.array([v[0] for v in found]).T), axis=1)[:, order]
        self._upper = np.concatenate((self._upper, np.array([v[1] for v in found]).T), axis=1)[:, order]
        masses = np.array([self._test_masses(at) for at in fresh])
        self._masses = np.concatenate((self._masses, masses.transpose(1, 2, 0)), axis=2)[:, :, order]
        self._pairs.clear()

    def _values(self, eps: float) -> tuple[list[float], list[float]]:
        """Log of the lower and upper ends of each direction at one exponent."""
        if eps >= self._profile.vanishes_at:
            return [-math.inf] * self._directions, [-math.inf] * self._directions
        if eps not in self._known:
            ends = self._profile.log_delta_pair(eps)[: self._directions]
            self._known[eps] = [end.lower for end in ends], [end.upper for end in ends]
        return self._known[eps]

    def _test_masses(self, eps: float) -> list[list[float]]:
        """Lower and upper ends of each direction's test mass; NaN if the profile states none."""
        found = self._profile.test_masses(eps) if eps < self._profile.vanishes_at else None
        if found is None:
            inside = eps < self._profile.vanishes_at  # beyond, the test that never rejects
            return [[math.nan if inside else 0.0] * self._directions] * 2
        return [[end.lower for end in found[: self._directions]], [end.upper for end in found[: self._directions]]]

    def _first_knots(self) -> list[float]:
        """0, the top, and the top halved until the profile is within a factor 2 of its value at 0.

        Of those below the range of doubles only the smallest is kept; `refine` finds back if it must.
        """
        rough = self._profile.log_roughly
        start, top = rough(0.0), self._profile.vanishes_at
        if start == -math.inf or top == 0.0:
            return [0.0]
        if math.isinf(top):
            top = self._finite_top()
        knots, at = [0.0, top], top
        for _ in range(70):
            at *= 0.5
            value = rough(at)
            if value < _DEEP and rough(0.5 * at) < _DEEP:
                continue
            knots.append(at)
            if value > start - math.log(2.0):
                break
        return [*knots, 0.5 * at]

    def _finite_top(self) -> float:
        """Where a profile that never vanishes has fallen below double range, or no longer falls."""
        top, last = 1.0, self._profile.log_roughly(1.0)
        while last > _DEEP and top < 1e6:
            following = self._profile.log_roughly(2.0 * top)
            if following >= last - 1e-9:
                break
            top, last = 2.0 * top, following
        return top

    def upper(self, view: View) -> FinitePair:
        """Return a finite pair of laws that dominates the profile's pair in the given view."""
        return self._pair("upper", view)

    def capped(self, view: View) -> FinitePair:
        """Return `upper`, with the part of the curve below about 1e-270 moved to infinite loss.

        Values that doubles do not resolve are bounded by about 1e-300 up to where the profile vanishes, possibly at a
        huge loss; as a finite mass there they would dominate every tilted sum.
        """
        return self._pair("capped", view)

    def lower(self, view: View) -> FinitePair:
        """Return a finite pair of laws that the profile's pair in the given view dominates."""
        return self._pair("lower", view)

    def law(self, view: View, *, above: bool) -> LossLaw:
        """Return the privacy-loss law of a round to compose: of `capped` if ``above``, else of the `lower` pair."""
        return (self.capped(view) if above else self.lower(view)).law

    def _pair(self, kind: Literal["upper", "capped", "lower"], view: View) -> FinitePair:
        key = kind, view if self._directions == 2 else "worst"
        if key not in self._pairs:
            sides: dict[str, tuple[int | None, int | None]] = {"forward": (0, 1), "reverse": (1, 0)}
            first, second = sides.get(key[1], (None, None))
            if kind == "lower":
                self._pairs[key] = dominated_pair(self._below(first), self._below(second))
            else:
                depth = _CAP if kind == "capped" else -math.inf
                self._pairs[key] = dominating_pair(self._above(first, depth), self._above(second, depth))
        return self._pairs[key]

    def _bounds(self, direction: int | None) -> tuple[FloatArray, FloatArray]:
        """Log of bounds at the knots of one direction, or of the larger of both (None).

        Tightened by monotonicity, and by the total variation that both directions share.
        """
        chosen = slice(None) if direction is None else slice(direction, direction + 1)
        lower, upper = self._lower[chosen].max(axis=0), self._upper[chosen].max(axis=0)
        lower = np.maximum.accumulate(lower[::-1])[::-1]
        lower[0] = max(lower[0], float(self._lower.max()))
        upper[0] = self._upper[:, 0].min()
        return lower, np.maximum(np.minimum.accumulate(upper), lower)

    def _above(self, direction: int | None, depth: float) -> Points:
        """Points on or above one direction's curve, up to the first one below the depth."""
        upper = self._bounds(direction)[1]
        end = min(int(np.searchsorted(-upper, -depth)) + 1, upper.size)
        return Points(self._eps[:end], upper[:end], float(upper[end - 1]))

    def _below(self, direction: int | None) -> Points:
        """Points whose broken line is on or below one direction's curve: lower ends at knots, and valleys."""
        lower, upper = self._bounds(direction)
        limit = self._profile.mass_at_infinity
        least = inflated(math.log(limit.lower), 4) if limit.lower > 0.0 else -math.inf
        if self._eps.size == 1:
            return Points(self._eps, lower, min(least, float(lower[0])))
        if np.isnan(self._masses).any():
            between, height = valleys(self._eps, lower, upper)
        else:
            lower, masses = self._tests(direction)
            between, height = valleys(self._eps, lower, upper, masses)
        eps, log = np.concatenate((self._eps, between)), np.concatenate((lower, height))
        order = np.lexsort((log, eps))  # of two values at one place the lower comes first
        eps, first = np.unique(eps[order], return_index=True)
        return Points(eps, log[order][first], min(least, float(lower[-1])))

    def _tests(self, direction: int | None) -> tuple[FloatArray, Enclosure]:
        """Return a witness's values in logs, and the masses that go with them; of the better direction for None."""
        better = np.full(self._eps.size, direction) if direction is not None else self._lower.argmax(axis=0)
        lower = np.take_along_axis(self._lower, better[None], axis=0)[0]
        masses = np.take_along_axis(self._masses, better[None, None], axis=1)[:, 0]
        return lower, Enclosure(masses[0], masses[1])

    def refine(self, t: float, *, capped: bool = False, tolerance: float = TOLERANCE) -> None:
        """Add knots until chords between them cost little in (R) at tilt t, or the noise of the values is reached.

        Parameters
        ----------
        t : float
            The tilt, that is the Renyi order less one; positive.
        capped : bool
            Whether the `capped` pair is what matters: then knots where the curve is below its end are not added.
        tolerance : float
            Relative width of the logarithm of the moment (R) that may be left open, times the profile's coarseness.
        """
        if (t, capped, tolerance) in self._refined or self._eps.size == 1:
            return
        self._refined.add((t, capped, tolerance))
        allowed = tolerance * self._profile.coarseness
        for _ in range(_PASSES):
            weight, curable = self._open(t)
            if capped:
                curable &= self._bounds(None)[1][:-1] > _CAP
            moment = self._log_moment(t)
            # d log M = dM/M, wanted below tolerance * log M
            size = _log1p_exp(moment)
            goal = math.log(allowed * size * (1.0 + min(size / _EASE, _MOST_EASE))) + size
            left = weight[curable]
            if left.size == 0 or self.knots >= self.most:
                return
            top = float(left.max())
            if top + math.log(float(np.exp(left - top).sum())) <= goal:
                return
            chosen = np.flatnonzero(curable & (weight > max(goal - math.log(weight.size), top - 7.0)))
            chosen = chosen[np.argsort(-weight[chosen])][: self.most - self.knots]
            self.insert((0.5 * (self._eps[chosen] + self._eps[chosen + 1])).tolist())

    def _log_moment(self, t: float) -> float:
        """Rough log of (R) of the symmetric pair, its upper curve taken as log-linear; used only to choose knots."""
        upper = np.maximum(self._bounds(None)[1], -1e7)
        found: list[float] = []
        for rate in (t, -t - 1.0):  # x^(t-1) dx and x^(-t-2) dx
            logs = upper + rate * self._eps
            high, fall = np.maximum(logs[1:], logs[:-1]), np.abs(np.diff(logs))
            mean = np.where(fall < 1e-6, 1.0, -np.expm1(-fall) / np.where(fall < 1e-6, 1.0, fall))
            found.append(float(log_sum(high + np.log(mean * np.diff(self._eps)))))
        return math.log(t) + math.log1p(t) + float(np.logaddexp(found[0], found[1]))

    def _open(self, t: float) -> tuple[FloatArray, np.ndarray]:
        """Log of what each gap of the upper curves leaves open in (R), and whether halving it can help."""
        d = np.diff(self._eps)
        base = math.log(t) + math.log1p(t) - math.log(2.0) + self._eps[:-1] + np.log(np.expm1(np.minimum(d, 700.0)))
        total, curable = np.full(d.size, -np.inf), np.zeros(d.size, dtype=bool)
        for direction in range(self._directions):
            height, jagged = _heights(self._eps, self._bounds(direction)[1])
            here = base + height
            tilted = here + np.maximum((t - 1.0) * self._eps[1:], (t - 1.0) * self._eps[:-1])
            total = np.logaddexp(total, np.logaddexp(tilted, here - (t + 2.0) * self._eps[:-1]))
            curable |= height > jagged + math.log(_NOISE_SHARE)
        return total, curable & (d > 1e-6 * self._eps[1:])


def _heights(eps: FloatArray, log: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log of how far chord and valley of a curve are apart in each gap, and of the noise in it.

    The noise is how far the gap's ends lie above the chord of their neighbours, which a convex curve never does.
    """
    at, valley = valleys(eps, log, log)
    scale = np.where(np.isfinite(log[:-1]), log[:-1], 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        chord = _chord(eps[:-1], eps[1:], at, np.exp(log[:-1] - scale), np.exp(log[1:] - scale))
        height = chord - np.exp(valley - scale)
        own = np.exp(log[1:-1] - scale[:-1])
        above = own - _chord(eps[:-2], eps[2:], eps[1:-1], np.exp(log[:-2] - scale[:-1]), np.exp(log[2:] - scale[:-1]))
        noise = np.log(np.maximum(above, roundoff(4, own))) + scale[:-1]
        found = np.log(np.maximum(height, 0.0)) + scale
    noise = np.concatenate(([-np.inf], noise, [-np.inf]))
    return np.where(np.isfinite(log[:-1]), found, -np.inf), np.maximum(noise[:-1], noise[1:])


def _chord(a: FloatArray, c: FloatArray, at: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
    """Value at e^at of the line through (e^a, left) and (e^c, right)."""
    share = np.exp(at - c) * np.expm1(a - at) / np.expm1(a - c)
    return (1.0 - share) * left + share * right


def _log1p_exp(value: float) -> float:
    """log(1 + e^v), positive."""
    return max(value, 0.0) + max(math.log1p(math.exp(-abs(value))), TINY)


def check_order(order: float) -> float:
    """Return a Renyi order as a float in (1, inf), or raise InvalidInput."""
    try:
        value = float(order)
    except (TypeError, ValueError):
        raise InvalidInput(f"a Renyi order must be a number above 1; got {shown(order)}") from None
    if not 1.0 < value < math.inf:
        raise InvalidInput(f"a Renyi order must be finite and above 1; got {order}")
    return value


def check_alpha(alpha: float) -> float:
    """Return a type I error as a float in [0, 1], or raise InvalidInput."""
    try:
        value = float(alpha)
    except (TypeError, ValueError):
        raise InvalidInput(f"a type I error must be a number in [0, 1]; got {shown(alpha)}") from None
    if not 0.0 <= value <= 1.0:
        raise InvalidInput(f"a type I error must be in [0, 1]; got {alpha}")
    return value


def renyi_divergences(table: ProfileTable, t: FloatArray, view: View) -> Enclosure:
    """Enclose the Renyi divergences of order t + 1 of the pair viewed, in nats: log(1 + moment)/t by (R).

    Parameters
    ----------
    table : ProfileTable
        Values of the profile; refined here as far as each order needs.
    t : ndarray
        Orders less one, positive.
    view : "forward", "reverse" or "worst"
        The pair: (P, Q), (Q, P), or the symmetric one whose curve is the larger of the two.

    Returns
    -------
    Enclosure, shape of ``t``
        Certified lower and upper ends of each divergence.
    """
    for tolerance in (50.0 * TOLERANCE, TOLERANCE):  # first all of them roughly, in case the knots run out
        for tilt in t.tolist():
            table.refine(tilt, tolerance=tolerance)
    ends: list[FloatArray] = []
    for pair, sign in ((table.lower(view), -1.0), (table.upper(view), 1.0)):
        value = np.logaddexp(0.0, pair.log_moment(t)) / t
        ends.append(value * np.exp(sign * np.minimum(2.0 * pair.moment_doubt(t), 700.0)))
    return Enclosure(np.minimum(ends[0], ends[1]), ends[1])


def tradeoff(table: ProfileTable, alpha: float) -> Interval:
    """Enclose the smallest type II error of any test at type I error alpha in [0, 1], over both orders of the pair.

    T(alpha) = sup_{x >= 0} 1 - F(x) - x alpha with F the larger of the two directions' curves. An upper curve gives a
    lower bound at every x, a lower curve an upper bound at the kink where its supremum is attained. Knots are
    added to the table there until the two agree to the tolerance.
    """
    found = Interval(0.0, 1.0 - alpha)
    for _ in range(_CUTS):
        (lower, at), (upper, cut) = _best(table.upper("worst"), alpha, -1.0), _best(table.lower("worst"), alpha, 1.0)
        upper = min(max(upper, 0.0), 1.0 - alpha)
        found = Interval(min(max(lower, found.lower), upper), min(upper, found.upper))
        known = table.knots
        if found.width <= TOLERANCE * found.upper or known >= table.most:
            break
        table.insert([at, cut])
        if table.knots == known:
            break
    return found


def _best(pair: FinitePair, alpha: float, sign: float) -> tuple[float, float]:
    """Return sup over the kinks of 1 - f(x) - x alpha, rounded up (sign 1) or down (sign -1), and |log x| there.

    Below x = 1 it is x (1 - alpha - g(1/x)), which keeps its digits where it is small.
    """
    ahead, back = pair.forward, pair.backward
    with np.errstate(over="ignore"):
        cost = np.exp(ahead.eps) * alpha if alpha > 0.0 else np.zeros_like(ahead.eps)
    above = -np.expm1(ahead.log) - cost + sign * roundoff(8, 1.0 + np.minimum(cost, 2.0))
    x, g = np.exp(-back.eps), np.exp(back.log)
    below = x * (1.0 - alpha - g) + sign * roundoff(8, x) * (1.0 - alpha + g)
    i, j = int(np.argmax(above)), int(np.argmax(below))
    return (float(above[i]), float(ahead.eps[i])) if above[i] > below[j] else (float(below[j]), float(back.eps[j]))
