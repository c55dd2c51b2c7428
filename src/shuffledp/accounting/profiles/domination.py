"""The smallest mu at which a Gaussian shift dominates a privacy profile, all but a share (docs/theorems/mu.md).

With g_mu the profile of N(0, 1) against N(mu, 1) and t the share that may be revealed outright,

    delta(eps) <= t + (1 - t) g_mu(eps)   for every eps >= 0                                                 (M)

is proved from certified upper ends u_k >= delta(eps_k) at knots 0 = eps_0 < ... < eps_K: as functions of x = e^eps both
delta and g are convex, so between two knots delta is below its chord, and g above every tangent. The inequality is one
between two lines there, checked at both ends. From the last knot on delta is at most t.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.errors import InvalidInput, NotConverged, OutOfRegime, shown
from shuffledp.numerics.floats import LEAST_MASS, Upper, roundoff
from shuffledp.numerics.gaussian_tail import normal_divergence, normal_tail_mass
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.special import ndtri

_FIRST = 8
"""Gaps between the first knots."""
_MOST = 600
"""Knots are added until the answer is settled, or there are so many."""
_FARTHEST = 700.0
"""Nats: beyond, e^epsilon is no double."""
"""No mu below is looked for."""
_STEPS = 44
"""Of bisection over the bit patterns of doubles: to about 1e-10 relative."""
_STEP = 1.01
"""How far the last knot is moved at a time while delta is not seen to be small enough there."""
_LARGEST = 80.0
"""No mu beyond is looked for: there the divergence is 1 - 1e-300 for all epsilon up to _FARTHEST."""


def check_outside(outside: float) -> float:
    """Return what may be revealed beyond mu as a float in [0, 1), or raise InvalidInput."""
    number = isinstance(outside, int | float) and not isinstance(outside, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not (number and 0.0 <= float(outside) < 1.0):
        raise InvalidInput(f"outside must be a probability in [0, 1); got {shown(outside)}; try 1e-3 of your delta")
    return float(outside)


def dominating_mu(profile: PrivacyProfile, outside: float, *, at_least: float = 0.0, tolerance: float = 2e-4) -> Upper:
    """Return a mu, about the smallest one, for which (M) holds.

    Parameters
    ----------
    profile : PrivacyProfile
        Its upper ends are used.
    outside : float
        The share t, in [0, 1).
    at_least : float
        A smaller answer is not looked for; default 0.
    tolerance : float
        Relative, by which chords may raise the answer above what the knots alone ask for; default 2e-4.

    Returns
    -------
    float
        Above the smallest that the upper ends allow (or ``at_least``) by at most about the tolerance, never below it;
        inf if delta(0) is too close to 1 for any mu up to 80.

    Raises
    ------
    InvalidInput
        If ``outside`` is out of range.
    OutOfRegime
        If delta does not fall to ``outside``, as for a local delta0 that is larger.
    """
    share = check_outside(outside)
    known = _Knots(profile, share, _reach(profile, share))
    while known.refine(at_least, tolerance):
        pass
    return Upper(max(known.mu, at_least))


def _reach(profile: PrivacyProfile, share: float) -> float:
    """Return an epsilon at which the certified delta is at most the share."""
    end = profile.vanishes_at
    if share > 0.0 and profile.mass_at_infinity.upper <= share:
        end = min(profile.epsilon(share).upper, end)
    if not math.isfinite(end):
        least = profile.mass_at_infinity.upper
        raise OutOfRegime(
            f"no mu covers all but outside = {share:g}: delta falls no further than {least:g} at any epsilon; "
            "state a larger outside"
        )
    if end > _FARTHEST:
        raise OutOfRegime(f"mu is computed where delta falls to outside before epsilon = {_FARTHEST:g}; got {end:g}")
    while end < profile.vanishes_at and profile.delta(end).upper > share:  # the computed curve may be jagged
        end *= _STEP
        if end > _FARTHEST:
            raise NotConverged(f"delta was not seen to be at most {share:g} at any epsilon up to {_FARTHEST:g}")
    return min(end, profile.vanishes_at)


class _Knots:
    """Knots, the mu that each gap between them needs, and the mu that the knots alone need.

    Parameters
    ----------
    profile : PrivacyProfile
        Evaluated at the knots.
    share : float
        t of (M).
    end : float
        The last knot, where delta is at most the share.
    """

    def __init__(self, profile: PrivacyProfile, share: float, end: float) -> None:
        self._profile, self._share = profile, share
        self._eps = np.linspace(0.0, end, _FIRST + 1) if end > 0.0 else np.zeros(1)
        self._upper = self._evaluated(self._eps)
        self._needs = self._gaps(self._eps, self._upper)

    @property
    def mu(self) -> float:
        """What the whole curve needs."""
        return float(self._needs.max(initial=0.0))

    def refine(self, at_least: float, tolerance: float) -> bool:
        """Halve the gaps that need more than the knots do; False if there are none, or too many knots."""
        least = max(float(self._least(self._eps, self._upper).max()), at_least)
        wide = np.flatnonzero(self._needs > least * (1.0 + tolerance))
        wide = wide[np.argsort(-self._needs[wide])][: max(_MOST - self._eps.size, 0)]
        new = 0.5 * (self._eps[wide] + self._eps[wide + 1])
        new = np.setdiff1d(new, self._eps)  # a gap between neighbouring doubles has no middle
        if not new.size:
            return False
        self._eps = np.append(self._eps, new)
        order = np.argsort(self._eps)
        self._upper = np.append(self._upper, self._evaluated(new))[order]
        self._eps = self._eps[order]
        self._needs = self._gaps(self._eps, self._upper)
        return True

    def _evaluated(self, eps: FloatArray) -> FloatArray:
        found = np.empty(eps.size)
        for at in _ends_first(eps.size):
            found[at] = self._profile.delta(float(eps[at])).upper
        return found

    def _least(self, eps: FloatArray, upper: FloatArray) -> FloatArray:
        """Return the mu that each knot by itself needs."""
        return _smallest(lambda mu: self._above(normal_divergence(eps, mu).lower, upper), eps.size)

    def _gaps(self, eps: FloatArray, upper: FloatArray) -> FloatArray:
        """Return the mu with which a tangent of g lies above the chord of each gap."""
        if eps.size < 2:
            return np.zeros(0)
        left, right, high, low = eps[:-1], eps[1:], upper[:-1], upper[1:]
        # of the chord in x = e^eps, in units of 1 - t; the tangent of the same slope is the best one
        fall = np.maximum(high - low, 0.0) / (np.exp(left) * np.expm1(right - left)) / (1.0 - self._share)
        quantile = -ndtri(np.minimum(fall, 1.0))
        slack = roundoff(32.0 + 4.0 * (right - left))  # of the products below; the difference is rounded before expm1

        def holds(mu: FloatArray) -> NDArray[np.bool_]:
            at = np.clip(mu * (quantile - 0.5 * mu), left, right)
            value, mass = normal_divergence(at, mu).lower, normal_tail_mass(at, mu)
            gained = np.exp(left) * np.expm1(at - left) * mass.lower * (1.0 - slack)
            lost = np.exp(at) * np.expm1(right - at) * mass.upper * (1.0 + slack)
            return self._above(value + gained, high) & self._above(value - lost, low)

        return _smallest(holds, left.size)

    def _above(self, value: FloatArray, upper: FloatArray) -> NDArray[np.bool_]:
        """Whether t + (1 - t) value is surely at least the upper end."""
        whole = self._share + (1.0 - self._share) * value
        return upper <= whole - roundoff(8, self._share + np.abs(value))


def _ends_first(size: int) -> list[int]:
    """Positions 0 to size - 1, ends before middles: between two known points `FromAbove` looks at few bounds."""
    known = dict.fromkeys((0, size - 1)) if size else {}
    gaps = [(0, size - 1)]
    while gaps:
        low, high = gaps.pop(0)
        middle = (low + high) // 2
        if low < middle:
            known[middle] = None
            gaps += [(low, middle), (middle, high)]
    return list(known)


def _smallest(holds: Callable[[FloatArray], NDArray[np.bool_]], size: int) -> FloatArray:
    """Return the smallest mu of each of several conditions that was seen to hold; inf where none up to _LARGEST did.

    Bisection over the doubles, which are ordered like their bit patterns.
    """
    low, high = np.zeros(size, dtype=np.int64), np.full(size, _LARGEST).view(np.int64).copy()
    found = np.where(holds(high.view(np.float64)), high.view(np.float64), np.inf)
    for _ in range(_STEPS):
        middle = low + (high - low) // 2
        mu = np.maximum(middle.view(np.float64), LEAST_MASS)
        good = holds(mu)
        found = np.where(good & (mu < found), mu, found)
        low, high = np.where(good, low, middle), np.where(good, middle, high)
    return found
