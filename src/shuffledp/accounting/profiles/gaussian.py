"""Gaussian differential privacy (GSPA Fact 3): used for the published formulas, and as a first guess elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.errors import NotConverged
from shuffledp.numerics.floats import TINY, UNBOUNDED, Upper, log_ndtr
from shuffledp.numerics.interval import Interval


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


def gaussian_epsilon(delta: float, mu: float) -> float:
    """Return the epsilon (nats) at which mu-GDP has this delta, by bisection to double precision; inf for mu = inf."""
    if math.isinf(mu):
        return math.inf
    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    low, high = 0.0, mu
    while gaussian_delta(high, mu) > delta:
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if gaussian_delta(middle, mu) > delta else (low, middle)
    return high


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
"""After so many evaluations the function is no Gaussian's, and every other one halves the bracket."""
_HALVINGS = 50


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
        if search.told(point, value):
            return search.low if above else search.high
        point = search.proposal(point)
    raise NotConverged(f"a search did not converge in {_MOST} steps; nothing can be certified")


class _Search:
    """What the evaluations have told so far."""

    def __init__(self, target: float, top: float, tolerance: float, above: bool) -> None:
        self.target, self.tolerance, self.above = target, tolerance, above
        self.low, self.high = -1.0, top
        self.root: float | None = None
        self._last: tuple[float, float] | None = None
        self._steps = 0

    def told(self, point: float, value: float) -> bool:
        """Take in one evaluation; whether the search is over."""
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
        here = _mu_of(point, value)
        if here is None:
            self._last = None
            return None
        slope = 0.0
        if self._last is not None and self._last[0] != point:
            slope = (here - self._last[1]) / (point - self._last[0])
        self._last = point, here
        low, high = 0.0, 2.0 * max(point, gaussian_epsilon(self.target, here))
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            mu = max(here + slope * (middle - point), 0.1 * here)
            low, high = (middle, high) if gaussian_delta(middle, mu) > self.target else (low, middle)
        return high

    def proposal(self, point: float) -> float:
        """Just on the side asked for of the modelled root if that is new, else the middle."""
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


def _mu_of(epsilon: float, delta: float) -> float | None:
    """Return the mu whose Gaussian profile passes through a point; None outside what a Gaussian can do well."""
    if not TINY < delta < 0.9:
        return None
    low, high = 1e-6 * max(epsilon, delta), 2.0 * (math.sqrt(2.0 * epsilon) + 10.0)
    if not gaussian_delta(epsilon, low) < delta < gaussian_delta(epsilon, high):
        return None
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if gaussian_delta(epsilon, middle) < delta else (low, middle)
    return high
