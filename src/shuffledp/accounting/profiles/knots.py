"""Finite pairs of laws above and below a privacy profile.

Write x = e^eps and f(x) = H_x(P, Q) = sup_S P(S) - x Q(S) for x > 0. f is convex and non-increasing, f(0+) = 1,
f(x) >= 1 - x, and f(x) = 1 - x + x g(1/x) where g is the curve of (Q, P). So a pair is known from two curves over
eps >= 0, the *forward* one f and the *backward* one g, with f(1) = g(1).

A piecewise-linear convex curve is the curve of a finite pair: Q has at a kink x the mass by which the slope changes,
P has x times that, and f(inf) is mass of P at infinite loss log P/Q. Hence

- chords between points on or above f, thinned to their lower convex hull, give a pair that dominates (P, Q);
- the lower convex hull of points on or below f, with the valleys that tangents from both sides leave between them,
  gives a pair that (P, Q) dominates.

Convexity of the points is never assumed, and no rounding error in the hull can hurt: after the masses are
chosen, the finite pair's curve is summed up again at the points, its rounding error is bounded, and the
masses are scaled until the curve lies on the right side of every point. See docs/theorems/composition.md.

A privacy profile at well-chosen knots: what Renyi divergences, trade-off functions and composition start from.

Knots are placed where they matter for a question. The question is a tilt t: the moment E_P exp(t log P/Q) - 1, which
is the Renyi divergence of order t + 1 and, for composition, the saddle point. With f and g as in
`profiles.finite_pair`,

    E_P exp(t log P/Q) - 1 = t (t+1) int_1^inf ( x^(t-1) f(x) + x^(-t-2) g(x) ) dx,                      (R)

so what a gap between two knots leaves open is weighed, and the heaviest gaps are halved, until the logarithm of the
moment is known to the tolerance, or only the noise of the enclosures is left, or the knots run out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput, NotConverged, shown
from shuffledp.numerics.floats import (
    LOG_DEEP,
    TINY,
    Enclosure,
    FloatArray,
    Interval,
    Upper,
    deflated,
    inflated,
    roundoff,
)
from shuffledp.numerics.losses import LossLaw, log_exp_gap, log_sum

_CLOSEST = 1e-6
_NEIGHBOURS = 8
"""Number of knots on either side that a tangent may use."""


@dataclass(frozen=True, eq=False)
class Points:
    """Logarithms of a curve in one direction, at exponents eps_0 = 0 < eps_1 < ..., and of its limit at infinity.

    Parameters
    ----------
    eps, log : ndarray, shape (points,)
        The exponents, nats, and the logarithm of the curve's value at each (-inf for 0).
    log_infinite : float
        Logarithm of the curve's limit for eps to infinity; an upper bound if the values are, a lower bound if they are.
    """

    eps: FloatArray
    log: FloatArray
    log_infinite: float


@dataclass(frozen=True, eq=False)
class FinitePair:
    """A pair of laws (P, Q) with finitely many privacy losses, given by its masses at the kinks of its two curves.

    Parameters
    ----------
    forward, backward : Points
        The pair's own hockey-stick divergences H(P, Q) and H(Q, P) at its kinks, and possibly at more points.
    log_p, log_q : ndarray, shapes of ``forward.eps`` and ``backward.eps``
        Log of P's mass at loss eps > 0, and of Q's mass at loss -eps < 0; the first entry of each is -inf.
    log_tie : float
        Log of the mass that P and Q have in common at loss 0.
    """

    forward: Points
    backward: Points
    log_p: FloatArray
    log_q: FloatArray
    log_tie: float

    @property
    def law(self) -> LossLaw:
        """The law of the privacy loss log P/Q (nats) under P."""
        losses, log_masses = self._nonzero()
        tied = [self.log_tie] if self.log_tie > -math.inf else []
        return LossLaw(
            np.concatenate((losses, np.zeros(len(tied)))),
            np.concatenate((log_masses, tied)),
            math.exp(self.forward.log_infinite),
        )

    @property
    def deviation(self) -> float:
        """Standard deviation of the privacy loss under P (nats), not certified; 1 if the loss is constant."""
        return math.sqrt(float(self.law.tilted_moments(np.zeros(1))[1][0])) or 1.0

    def log_moment(self, t: FloatArray) -> FloatArray:
        """Return log of E_P exp(t log P/Q) - 1 for t > 0, in the shape of t: all terms positive, nothing cancels.

        With no P-mass at infinite loss l, and Q-mass b where P has none, it is the log of
        E_P [ (e^(t l) - 1 - t l) + t (e^-l - 1 + l) ] + t b; infinite if P has mass at infinite loss.
        """
        if self.forward.log_infinite > -math.inf:
            return np.full_like(t, math.inf)
        losses, log_masses = self._nonzero()
        log_t = np.log(t)[..., None]
        kernel = np.logaddexp(log_exp_gap(t[..., None] * losses), log_t + log_exp_gap(-losses))
        return log_sum(np.concatenate((log_masses + kernel, log_t + self.backward.log_infinite), axis=-1))

    def moment_doubt(self, t: FloatArray) -> FloatArray:
        """Return an upper bound on the absolute error of `log_moment`, in the shape of t."""
        losses, log_masses = self._nonzero()
        largest = float(np.max(np.abs(losses), initial=0.0))
        deepest = float(np.max(np.abs(log_masses), initial=0.0))
        return roundoff(16, deepest + (t + 2.0) * largest + np.abs(np.log(t)) + losses.size + 128.0)

    def _nonzero(self) -> tuple[FloatArray, FloatArray]:
        """Losses other than 0, and log of P's mass there."""
        up, down = np.isfinite(self.log_p), np.isfinite(self.log_q)
        back = self.log_q[down] - self.backward.eps[down]
        return (
            np.concatenate((self.forward.eps[up], -self.backward.eps[down])),
            np.concatenate((self.log_p[up], back)),
        )


def dominating_pair(forward: Points, backward: Points) -> FinitePair:
    """Return a finite pair of laws whose curves are nowhere below curves that are on or below the given points.

    Parameters
    ----------
    forward, backward : Points
        Values on or above H(P, Q) and H(Q, P), the same at eps = 0; beyond the last ones the limits hold.
    """
    right, left = _hull(forward, backward)
    log_p, log_q = _masses(right), _masses(left)
    p_curve, q_curve = _curve(right, log_p), _curve(left, log_q)
    doubt = _doubt(right, log_p) + _doubt(left, log_q)
    lift_q = max(_gap(left, q_curve, np.max) + doubt, 0.0)
    # at x = 1 the masses of P must make up for those of Q, or else f would be too small below x = 1
    lift_p = max(_gap(right, p_curve, np.max) + doubt, _over(q_curve, p_curve) + lift_q + doubt, 0.0)
    return _assembled((right, left), (p_curve + lift_p, q_curve + lift_q), (log_p + lift_p, log_q + lift_q), 1.0)


def dominated_pair(forward: Points, backward: Points) -> FinitePair:
    """Return a finite pair of laws whose curves are nowhere above the broken lines through the given points.

    Parameters
    ----------
    forward, backward : Points
        Values, the same at eps = 0, such that the broken lines through them, linear in x = e^eps, are on or below
        H(P, Q) and H(Q, P); see `valleys`.
    """
    right, left = _hull(forward, backward)
    log_p, log_q = _at(forward, right, _masses(right)), _at(backward, left, _masses(left))
    p_curve, q_curve = _curve(forward, log_p), _curve(backward, log_q)
    doubt = _doubt(forward, log_p) + _doubt(backward, log_q)
    drop_q = min(_gap(backward, q_curve, np.min) - doubt, 0.0)
    drop_p = min(_gap(forward, p_curve, np.min) - doubt, _over(q_curve, p_curve) + drop_q - doubt, 0.0)
    total = math.fsum(np.exp(log_p + drop_p)) + math.fsum(np.exp(log_q + drop_q - backward.eps))
    total += math.exp(forward.log_infinite + drop_p)
    if inflated(total, 16) > 1.0:  # by rounding
        excess = math.log(total) + roundoff(32)
        drop_p, drop_q = drop_p - excess, drop_q - excess
    return _assembled((forward, backward), (p_curve + drop_p, q_curve + drop_q), (log_p + drop_p, log_q + drop_q), -1.0)


def _assembled(
    points: tuple[Points, Points],
    curves: tuple[FloatArray, FloatArray],
    masses: tuple[FloatArray, FloatArray],
    sign: float,
) -> FinitePair:
    """Return the pair of given masses; what P lacks to total mass 1 ties, rounded up (sign 1) or down (sign -1)."""
    (right, left), (p_curve, q_curve), (log_p, log_q) = points, curves, masses
    total = math.fsum(np.exp(log_p)) + math.fsum(np.exp(log_q - left.eps)) + math.exp(float(p_curve[-1]))
    tie = 1.0 - deflated(total, sign * 16.0)
    return FinitePair(
        Points(right.eps, p_curve, float(p_curve[-1])),
        Points(left.eps, q_curve, float(q_curve[-1])),
        log_p,
        log_q,
        math.log(tie) + sign * roundoff(8) if tie > 0.0 else -math.inf,
    )


def valleys(
    eps: FloatArray, lower: FloatArray, upper: FloatArray, masses: Enclosure | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return, between every two knots, a point below which a convex curve within the bounds cannot fall.

    Parameters
    ----------
    eps : ndarray, shape (knots,)
        Nats, ascending from 0.
    lower, upper : ndarray, shape (knots,)
        Log of bounds on the curve at the knots; both non-increasing unless masses are given.
    masses : Enclosure, shape (knots,), optional
        Minus the slope of a line through the lower bound that is nowhere above the curve; then ``upper`` is not used.

    Returns
    -------
    eps, log : ndarray, shape (knots - 1,)
        Position (nats) and log of the value of each valley. The broken line through knots (at their lower bounds) and
        valleys is on or below the curve.

    Notes
    -----
    By convexity the curve is above any line through (x_k, lower_k) with a slope that is certainly a subgradient
    side: from the left, slope at least max_i (lower_k - upper_i)/(x_k - x_i) over i < k and at least lower_0 - 1 at
    k = 0 (since f(0) = 1); from the right, at most min_j (upper_j - lower_k)/(x_j - x_k) over j > k, and at most 0.
    The valley is where the two lines of a gap meet; at the place chosen in floating point the lower of the two is
    taken, which keeps both halves of the broken line below a line that is below the curve.
    """
    falling, rising = _slopes(eps, lower, upper) if masses is None else _given_slopes(eps, lower, masses)
    d = np.diff(eps)
    grow, shrink = np.expm1(np.minimum(d, 700.0)), -np.expm1(-d)
    first, second = falling[:-1], rising[1:]  # each scaled by its knot's own value; not positive
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        ratio = np.exp(lower[1:] - lower[:-1])
        u = (1.0 - ratio * (1.0 - second * shrink)) / (-first + ratio * second * (1.0 - shrink)) * (1.0 - 1e-9)
    u = np.where(np.isfinite(u), np.clip(u, 0.0, grow), 0.0)
    at = np.minimum(eps[:-1] + np.log1p(u), eps[1:])
    # a valley next to a knot would make a slope of rounding errors
    at = np.where(at - eps[:-1] < _CLOSEST * d, eps[:-1], at)
    at = np.where((eps[1:] - at < _CLOSEST * d) & (ratio > 0.0), eps[1:], at)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        rise = np.where(at > eps[:-1], first * np.expm1(at - eps[:-1]), 0.0)
        left = 1.0 + rise - roundoff(16, 1.0 + np.abs(rise))
        at = np.where(left > 0.0, at, eps[:-1])  # the line is below 0 by rounding: take the left knot itself
        from_left = lower[:-1] + np.where(left > 0.0, np.log(np.where(left > 0.0, left, 1.0)), 0.0)
        from_right = lower[1:] + np.log1p(deflated(second * np.expm1(at - eps[1:]), 16))
    log = np.fmin(from_left, np.where(np.isnan(from_right), -np.inf, from_right))
    return at, log - roundoff(16, np.abs(np.where(np.isfinite(log), log, 0.0)) + 1.0)


def _slopes(eps: FloatArray, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Safe one-sided slopes at each knot, times x_k/value_k: lower bounds from the left, upper ones from the right."""
    falling, rising = np.full_like(eps, -np.inf), np.zeros_like(eps)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        falling[0] = inflated(-math.expm1(-lower[0]), 32) if lower[0] > -700.0 else -math.inf
        for step in range(1, min(_NEIGHBOURS, eps.size - 1) + 1):
            gap = eps[step:] - eps[:-step]
            down = np.expm1(upper[:-step] - lower[step:]) / np.expm1(-gap)
            falling[step:] = np.fmax(falling[step:], down - roundoff(32, np.abs(down)))
            flat = np.expm1(upper[step:] - lower[:-step]) / np.expm1(gap)
            rising[:-step] = np.fmin(rising[:-step], flat + roundoff(32, np.abs(flat)))
    return falling, rising


def _given_slopes(eps: FloatArray, lower: FloatArray, masses: Enclosure) -> tuple[FloatArray, FloatArray]:
    """As `_slopes`, from lines whose slope is known: the line itself to both sides, at its safe end."""
    with np.errstate(over="ignore", invalid="ignore"):
        scale = np.exp(eps - lower)  # x_k/value_k
        falling = np.where(np.isfinite(lower), inflated(-masses.upper * scale, 64), -np.inf)
        rising = np.where(np.isfinite(lower), deflated(-masses.lower * scale, 64), 0.0)
    return falling, rising


def _hull(forward: Points, backward: Points) -> tuple[Points, Points]:
    """Lower convex hull of f's points, taken over all x > 0 at once; it is split again at x = 1."""
    start = min(forward.log[0], backward.log[0])
    eps = np.concatenate((-backward.eps[:0:-1], [0.0], forward.eps[1:]))
    log = np.concatenate((backward.log[:0:-1], [start], forward.log[1:]))
    while (above := _above_chord(eps, log)).any():  # a point above a chord of others is no vertex, whatever those are
        eps, log = eps[~above], log[~above]
    split = int(np.searchsorted(eps, 0.0))
    if eps[split] > 0.0:
        at_one = _chord_at_one((float(eps[split - 1]), float(log[split - 1])), (float(eps[split]), float(log[split])))
        eps, log = np.insert(eps, split, 0.0), np.insert(log, split, at_one)
    return (
        Points(eps[split:], log[split:], forward.log_infinite),
        Points(-eps[split::-1] + 0.0, log[split::-1], backward.log_infinite),
    )


def _above_chord(eps: FloatArray, log: FloatArray) -> NDArray[np.bool_]:
    """Whether each point is on or above the chord between its neighbours, seen from the side of x = 1 on which it is.

    Points are of f at eps >= 0, and of g at -eps elsewhere: f(x) = 1 - x + x g(1/x). False for the first and last one.
    """
    above, back = np.zeros(eps.size, dtype=bool), eps[1:-1] < 0.0
    a, c = np.where(back, -eps[2:], eps[:-2]), np.where(back, -eps[:-2], eps[2:])
    b, last = np.abs(eps[1:-1]), np.where(back, log[:-2], log[2:])
    first, beyond = np.where(back, log[2:], log[:-2]), np.minimum(a, 0.0)
    whole = -np.expm1(a - c)
    share_a, share_c = -np.expm1(b - c) / whole, np.exp(b - c) * -np.expm1(a - b) / whole
    with np.errstate(invalid="ignore", divide="ignore"):
        first = np.where(a < 0.0, np.log(-np.expm1(beyond) + np.exp(beyond + first)), first)
        chord = share_a + share_c * np.exp(np.minimum(last - first, 700.0))
        above[1:-1] = (first == -np.inf) | (np.exp(np.minimum(log[1:-1] - first, 700.0)) >= chord)
    return above


def _chord_at_one(a: tuple[float, float], c: tuple[float, float]) -> float:
    """Log of the chord's value at x = 1, between a point of g and one of f."""
    whole = -math.expm1(a[0] - c[0])
    share_a, share_c = -math.expm1(-c[0]) / whole, math.exp(-c[0]) * -math.expm1(a[0]) / whole
    value = share_a * (-math.expm1(a[0]) + math.exp(sum(a))) + share_c * math.exp(c[1])
    return math.log(value) if value > 0.0 else -math.inf


def _masses(hull: Points) -> FloatArray:
    """Log of x times the change of slope at each vertex, from values alone: no x can overflow."""
    log, d = hull.log, np.diff(hull.eps)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        drop = np.nan_to_num(-np.expm1(log[1:] - log[:-1]))  # of each piece, in units of its left value
        into = drop / -np.expm1(-d)
        out = np.exp(log[1:-1] - log[:-2]) * drop[1:] / np.expm1(d[1:])
        change = into - np.append(out, 0.0)
        log_masses = log[:-1] + np.log(np.where(change > 0.0, change, 0.0))
    return np.concatenate(([-np.inf], np.where(np.isnan(log_masses), -np.inf, log_masses)))


def _at(points: Points, hull: Points, log_masses: FloatArray) -> FloatArray:
    """Return the hull's masses at all points, of which its vertices are some."""
    at_points = np.full_like(points.eps, -np.inf)
    at_points[np.searchsorted(points.eps, hull.eps)] = log_masses
    return at_points


def _curve(points: Points, log_masses: FloatArray) -> FloatArray:
    """Log of sum_k mass_k (1 - e^(eps - eps_k))_+ + infinite at every point, summed from the right."""
    eps = points.eps
    # between two points the curve falls by the masses beyond, each times e^(eps - eps_k), times 1 - e^-d
    beyond = eps + np.logaddexp.accumulate((log_masses - eps)[::-1])[::-1]
    falls = beyond[1:] + np.log(-np.expm1(-np.diff(eps)))
    return np.logaddexp.accumulate(np.append(falls, points.log_infinite)[::-1])[::-1]


def _doubt(points: Points, log_masses: FloatArray) -> float:
    """Bound on the absolute error of `_curve`: a few units of the largest logarithm per step."""
    finite = np.abs(np.concatenate((points.log, log_masses)))
    largest = float(np.max(finite[np.isfinite(finite)], initial=0.0)) + float(points.eps[-1])
    return roundoff(8, points.eps.size) * (largest + 40.0)


def _gap(points: Points, curve: FloatArray, extreme: Callable[[FloatArray], float]) -> float:
    """Return the largest or smallest factor, in logs, by which the curve misses the points."""
    with np.errstate(invalid="ignore"):
        gap = points.log - curve
    gap = gap[~np.isnan(gap)]  # both are 0
    gap = gap[np.isfinite(gap) | (gap == (np.inf if extreme is np.max else -np.inf))]  # the others are safe
    log_factor = float(extreme(gap)) if gap.size else 0.0
    if math.isinf(log_factor):
        raise NotConverged("a privacy profile has a jump that a finite pair of laws cannot follow")
    return log_factor


def _over(a: FloatArray, b: FloatArray) -> float:
    """Log of a(0)/b(0); 0 if one of them is 0, when both curves are."""
    return float(a[0] - b[0]) if np.isfinite(a[0]) and np.isfinite(b[0]) else 0.0


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
        """Factor, at least 1, by which a table of this profile may be less accurate, if it is slow to evaluate."""
        ...

    @property
    def most_knots(self) -> int:
        """Largest number of values that a table of this profile may hold."""
        ...

    def prepare(self, epsilons: list[float]) -> None:
        """Evaluate at several epsilons (nats) at once, where that is faster: values there are asked for next."""
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
"""Logarithms of the lower ends and of the upper ends in each direction, by exponent."""
View = Literal["forward", "reverse", "worst"]
"""Direction of a pair: (P, Q), (Q, P), or the symmetric one whose curve is the larger of the two at every x."""
TOLERANCE = 2e-4
"""Relative width of log E exp(t log P/Q) left open by the knots, where it is of order 1 or below."""
MOST_KNOTS = 1500
_EASE = 30.0
_MOST_EASE = 50.0
_CAP = _DEEP = LOG_DEEP
_PASSES = 40
_NOISE_SHARE = 4.0
_CUTS = 30
_HALVINGS = 8
"""Number of candidates for first knots that are evaluated together."""


class ProfileTable:
    """Certified values of one privacy profile at knots (values of epsilon), which are added as questions are asked.

    Parameters
    ----------
    profile : Curve
        The profile whose values are kept: of one direction if both are alike, else of both.
    known : dict, optional
        Values by epsilon, to look up and to add to: several tables of one profile share them.
    """

    def __init__(self, profile: Curve, cache: Known | None = None) -> None:
        self._profile, self._known = profile, {} if cache is None else cache
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
        self._profile.prepare(fresh)
        values = [self._values(eps) for eps in fresh]
        eps = np.concatenate((self._eps, fresh))
        order = np.argsort(eps)
        self._eps = eps[order]
        self._lower = np.concatenate((self._lower, np.array([v[0] for v in values]).T), axis=1)[:, order]
        self._upper = np.concatenate((self._upper, np.array([v[1] for v in values]).T), axis=1)[:, order]
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
        masses = self._profile.test_masses(eps) if eps < self._profile.vanishes_at else None
        if masses is None:
            inside = eps < self._profile.vanishes_at  # beyond, the test that never rejects
            return [[math.nan if inside else 0.0] * self._directions] * 2
        return [[end.lower for end in masses[: self._directions]], [end.upper for end in masses[: self._directions]]]

    def _first_knots(self) -> list[float]:
        """0, the top, and the top halved until the profile is within a factor 2 of its value at 0.

        Of those below the range of doubles only the smallest is kept; `refine` finds back if it must.
        """
        rough = self._profile.log_roughly
        self._profile.prepare([0.0])
        start, top = rough(0.0), self._profile.vanishes_at
        if start == -math.inf or top == 0.0:
            return [0.0]
        if math.isinf(top):
            top = self._finite_top()
        knots, at = [0.0, top], top
        for halved in range(70):
            if halved % _HALVINGS == 0:
                self._profile.prepare([at * 0.5**k for k in range(1, _HALVINGS + 1)])
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
        """Return a finite pair of laws that dominates the profile's pair (P, Q), so that its delta is never smaller.

        Parameters
        ----------
        view : {"forward", "reverse", "worst"}
            The pair: (P, Q), (Q, P), or the symmetric pair whose delta is the larger of the two.
        """
        return self._pair("upper", view)

    def capped(self, view: View) -> FinitePair:
        """Return `upper`, with the part of the curve below about 1e-270 moved to infinite loss.

        Values that doubles do not resolve are bounded by about 1e-300 up to where the profile vanishes, possibly at a
        huge loss; as a finite mass there they would dominate every tilted sum.
        """
        return self._pair("capped", view)

    def lower(self, view: View) -> FinitePair:
        """Return a finite pair whose delta is never larger than that of the profile's pair; ``view`` as for `upper`."""
        return self._pair("lower", view)

    def law(self, view: View, *, above: bool) -> LossLaw:
        """Return the law of the privacy loss that rounds are composed of, in a view as for `upper`.

        It is that of `capped`, for upper bounds, if ``above``, else that of the `lower` pair.
        """
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
        """Add knots until straight lines between them change the moment (R) at tilt t by little.

        It ends earlier if the errors of the profile's own values are as large.

        Parameters
        ----------
        t : float
            The tilt, that is the Renyi order less one; positive.
        capped : bool
            Whether the pair of `capped` will be used: then no knots are added beyond its end.
        tolerance : float
            Relative error of the logarithm of the moment (R) that is allowed, times the profile's coarseness.
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
        log_integrals: list[float] = []
        for rate in (t, -t - 1.0):  # x^(t-1) dx and x^(-t-2) dx
            logs = upper + rate * self._eps
            high, fall = np.maximum(logs[1:], logs[:-1]), np.abs(np.diff(logs))
            mean = np.where(fall < 1e-6, 1.0, -np.expm1(-fall) / np.where(fall < 1e-6, 1.0, fall))
            log_integrals.append(float(log_sum(high + np.log(mean * np.diff(self._eps)))))
        return math.log(t) + math.log1p(t) + float(np.logaddexp(log_integrals[0], log_integrals[1]))

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
        log_height = np.log(np.maximum(height, 0.0)) + scale
    noise = np.concatenate(([-np.inf], noise, [-np.inf]))
    return np.where(np.isfinite(log[:-1]), log_height, -np.inf), np.maximum(noise[:-1], noise[1:])


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
    interval = Interval(0.0, 1.0 - alpha)
    for _ in range(_CUTS):
        (lower, at), (upper, cut) = _best(table.upper("worst"), alpha, -1.0), _best(table.lower("worst"), alpha, 1.0)
        upper = min(max(upper, 0.0), 1.0 - alpha)
        interval = Interval(min(max(lower, interval.lower), upper), min(upper, interval.upper))
        knots = table.knots
        if interval.width <= TOLERANCE * interval.upper or knots >= table.most:
            break
        table.insert([at, cut])
        if table.knots == knots:
            break
    return interval


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
