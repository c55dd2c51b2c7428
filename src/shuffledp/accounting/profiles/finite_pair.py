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
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shuffledp.errors import NotConverged
from shuffledp.numerics.floats import deflated, inflated, roundoff
from shuffledp.numerics.interval import Enclosure, FloatArray
from shuffledp.numerics.losses import LossLaw, log_exp_gap, log_sum

_CLOSEST = 1e-6
_NEIGHBOURS = 8
"""How many knots to either side a tangent may lean on."""


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
    eps = np.concatenate((-backward.eps[:0:-1], [0.0], forward.eps[1:])).tolist()
    log = np.concatenate((backward.log[:0:-1], [start], forward.log[1:])).tolist()
    kept: list[tuple[float, float]] = []
    for point in zip(eps, log, strict=True):
        while len(kept) > 1 and _above_chord(kept[-2], kept[-1], point):
            kept.pop()
        kept.append(point)
    split = next(i for i, point in enumerate(kept) if point[0] >= 0.0)
    if kept[split][0] > 0.0:
        kept.insert(split, (0.0, _chord_at_one(kept[split - 1], kept[split])))
    right, left = np.array(kept[split:]), np.array(kept[split::-1])
    return (
        Points(right[:, 0], right[:, 1], forward.log_infinite),
        Points(-left[:, 0] + 0.0, left[:, 1], backward.log_infinite),
    )


def _as_forward(point: tuple[float, float]) -> float:
    """Log of f(e^eps) for a point of f (eps >= 0) or of g at -eps (eps < 0): f(x) = 1 - x + x g(1/x)."""
    eps, log = point
    return log if eps >= 0.0 else math.log(-math.expm1(eps) + math.exp(eps + log))


def _above_chord(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Whether b is on or above the chord from a to c, seen from the side of x = 1 on which b lies."""
    if b[0] < 0.0:
        a, b, c = (-c[0], c[1]), (-b[0], b[1]), (-a[0], a[1])
    first, middle, last = _as_forward(a), b[1], c[1]
    if first == -math.inf:
        return True
    whole = -math.expm1(a[0] - c[0])
    share_a = -math.expm1(b[0] - c[0]) / whole
    share_c = math.exp(b[0] - c[0]) * -math.expm1(a[0] - b[0]) / whole
    return math.exp(min(middle - first, 700.0)) >= share_a + share_c * math.exp(min(last - first, 700.0))


def _chord_at_one(a: tuple[float, float], c: tuple[float, float]) -> float:
    """Log of the chord's value at x = 1, between a point of g and one of f."""
    whole = -math.expm1(a[0] - c[0])
    share_a, share_c = -math.expm1(-c[0]) / whole, math.exp(-c[0]) * -math.expm1(a[0]) / whole
    value = share_a * math.exp(_as_forward(a)) + share_c * math.exp(c[1])
    return math.log(value) if value > 0.0 else -math.inf


def _masses(hull: Points) -> FloatArray:
    """Log of x times the change of slope at each vertex, from values alone: no x can overflow."""
    log, d = hull.log, np.diff(hull.eps)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        drop = np.nan_to_num(-np.expm1(log[1:] - log[:-1]))  # of each piece, in units of its left value
        into = drop / -np.expm1(-d)
        out = np.exp(log[1:-1] - log[:-2]) * drop[1:] / np.expm1(d[1:])
        change = into - np.append(out, 0.0)
        found = log[:-1] + np.log(np.where(change > 0.0, change, 0.0))
    return np.concatenate(([-np.inf], np.where(np.isnan(found), -np.inf, found)))


def _at(points: Points, hull: Points, log_masses: FloatArray) -> FloatArray:
    """Return the hull's masses at all points, of which its vertices are some."""
    found = np.full_like(points.eps, -np.inf)
    found[np.searchsorted(points.eps, hull.eps)] = log_masses
    return found


def _curve(points: Points, log_masses: FloatArray) -> FloatArray:
    """Log of sum_k mass_k (1 - e^(eps - eps_k))_+ + infinite at every point, summed from the right."""
    eps, weights = points.eps.tolist(), log_masses.tolist()
    value, slope = points.log_infinite, weights[-1]
    found = [value]
    for k in range(len(eps) - 1, 0, -1):
        d = eps[k] - eps[k - 1]
        value = _log_add(value, slope + math.log(-math.expm1(-d)))
        slope = _log_add(weights[k - 1], slope - d)
        found.append(value)
    return np.array(found[::-1])


def _log_add(a: float, b: float) -> float:
    high, low = (a, b) if a > b else (b, a)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))


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
    found = float(extreme(gap)) if gap.size else 0.0
    if math.isinf(found):
        raise NotConverged("a privacy profile has a jump that a finite pair of laws cannot follow")
    return found


def _over(a: FloatArray, b: FloatArray) -> float:
    """Log of a(0)/b(0); 0 if one of them is 0, when both curves are."""
    return float(a[0] - b[0]) if np.isfinite(a[0]) and np.isfinite(b[0]) else 0.0
