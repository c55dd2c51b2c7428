"""Privacy profiles: delta as a function of epsilon and back, always as certified intervals."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import Interval
from shuffledp.numerics.search import crossing


def check_delta(delta: float) -> float:
    """Return delta as a float in (0, 1), or raise InvalidInput."""
    try:
        value = float(delta)
    except (TypeError, ValueError):
        raise InvalidInput(f"delta must be a number in (0, 1); got {delta!r}") from None
    if not 0.0 < value < 1.0:
        raise InvalidInput(f"delta must be in (0, 1); got {delta}; a common choice is 1e-6, far below 1/n")
    return value


def check_epsilon(epsilon: float) -> float:
    """Return epsilon as a float in [0, inf], or raise InvalidInput."""
    try:
        value = float(epsilon)
    except (TypeError, ValueError):
        raise InvalidInput(f"epsilon must be a number >= 0; got {epsilon!r}") from None
    if math.isnan(value) or value < 0.0:
        raise InvalidInput(f"epsilon must be >= 0 (nats); got {epsilon}")
    return value


def _next_guess(seen: dict[float, Interval], near: float, target: float) -> float:
    """Where the lower curve meets the target, by the slope of the upper one around ``near``."""
    value = seen.get(near, Interval(0.0, 0.0))
    others = sorted((e for e in seen if e != near and seen[e].upper > 0.0), key=lambda e: abs(e - near))
    if not others or value.lower <= 0.0:
        return near * (1 - 1e-6)
    fall = (math.log(value.upper) - math.log(seen[others[0]].upper)) / (others[0] - near)  # per nat, positive
    return near - math.log(target / value.lower) / fall if fall > 0.0 else near * (1 - 1e-6)


class PrivacyProfile(ABC):
    """The privacy profile of one pair of neighbours, or of the worst pair: delta(epsilon), non-increasing.

    Subclasses state `delta_at`; inversion is derived from it once, on the safe sides.
    """

    tolerance: ClassVar[float] = 1e-6
    """Relative distance of the two verified points between which epsilon(delta) is found."""

    @property
    @abstractmethod
    def vanishes_at(self) -> float:
        """A central epsilon (nats, possibly inf) from which on delta is exactly zero."""

    @abstractmethod
    def delta_at(self, epsilon: float) -> Interval:
        """Enclose delta(epsilon) for 0 <= epsilon < vanishes_at."""

    def guess_epsilon(self, delta: float) -> float | None:
        """Where epsilon(delta) is expected; it only saves time."""
        del delta
        return None

    def delta(self, epsilon: float) -> Interval:
        """Enclose the hockey-stick divergence at e^epsilon.

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
        if value >= self.vanishes_at:
            return Interval(0.0, 0.0)
        found = self.delta_at(value)
        return Interval(max(found.lower, 0.0), max(min(found.upper, 1.0), 0.0))

    def epsilon(self, delta: float) -> Interval:
        """Enclose the smallest epsilon with delta(epsilon) <= delta.

        Parameters
        ----------
        delta : float
            In (0, 1).

        Returns
        -------
        Interval
            At the upper end the certified delta is at most `delta`; below the lower end it is certainly more.

        Raises
        ------
        InvalidInput
            If delta is not in (0, 1).
        """
        target = check_delta(delta)
        seen: dict[float, Interval] = {}

        def at(epsilon: float) -> Interval:
            if epsilon not in seen:
                seen[epsilon] = self.delta(epsilon)
            return seen[epsilon]

        if at(0.0).upper <= target:
            return Interval(0.0, 0.0)
        top = self._top(target)
        guess = self.guess_epsilon(target)
        above, upper = crossing(lambda e: at(e).upper, target, 0.0, top, guess, self.tolerance)
        if not math.isfinite(upper):
            return Interval(0.0, math.inf)
        if at(0.0).lower <= target:
            return Interval(0.0, upper)
        # the lower curve crosses at or before `above`; usually within the search tolerance of it
        if above > 0.0 and at(above).lower > target:
            return Interval(above, upper)
        near = _next_guess(seen, above, target)
        lower, _ = crossing(lambda e: at(e).lower, target, 0.0, upper, near, self.tolerance)
        return Interval(min(lower, upper), upper)

    def _top(self, target: float) -> float:
        """An epsilon at which delta is certainly at most the target; inf if none up to 1e6 is found.

        A profile that vanishes at v post-processes a v-LDP report, so it is below randomized response's own,
        (e^v - e^eps)/(1 + e^v), which meets the target in closed form.
        """
        top = self.vanishes_at
        if math.isfinite(top):
            room = target * (1.0 + math.exp(-top)) * (1.0 - 1e-12)
            return min(top, max(top + math.log1p(-min(room, 0.5)) + 1e-12 * top, 1e-300))
        top = 1.0
        while self.delta(top).upper > target:
            top *= 2.0
            if top > 1e6:
                return math.inf
        return top
