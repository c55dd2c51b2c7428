"""A profile's certified upper curve as a few numbers that can be kept, written down and read again.

Between two knots the curve is the chord in x = e^epsilon, beyond the last one it is constant. A privacy profile is
convex in x and does not increase, so a chord between points on or above it is nowhere below it.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from shuffledp.accounting.profiles.composition import SmallestProfile
from shuffledp.accounting.profiles.knots import Points, ProfileTable, dominating_pair
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.errors import InvalidInput, check_delta, check_epsilon
from shuffledp.numerics.floats import UNBOUNDED, Interval, Upper, inflated, roundoff

_DEPTH = 1e-11
_SAMPLES = 32
TOLERANCE = 2e-3
"""Error of the logarithm of a moment that the choice of knots may leave."""
TILTS = (0.05, 0.3, 1.0, 4.0)
"""Knots are placed for these tilts, in units of one over the loss's standard deviation: a tail of z deviations of T
rounds is decided at the tilt z / sqrt(T), so these serve one round and tens of thousands."""


@dataclass(frozen=True, eq=False)
class StoredProfile(PrivacyProfile):
    """A certified upper bound on a privacy profile, given by values at knots; the lower end of delta is always 0.

    Parameters
    ----------
    knots : tuple of float
        Epsilons (nats), ascending from 0, at least one.
    log_delta : tuple of float, same length as ``knots``
        Logarithm of the upper bound on delta at each knot, at most 0, not increasing (-inf for delta 0); the last one
        holds for all larger epsilons.

    Raises
    ------
    InvalidInput
        If the knots do not ascend from 0, or the values increase or exceed 0.
    """

    knots: tuple[float, ...]
    log_delta: tuple[float, ...]

    def __post_init__(self) -> None:
        eps, log = self.knots, self.log_delta
        ascending = all(a < b for a, b in pairwise(eps))
        falling = all(a >= b for a, b in pairwise(log))  # NaN is neither
        if not (eps and len(eps) == len(log) and eps[0] == 0.0 and math.isfinite(eps[-1]) and ascending and falling):
            raise InvalidInput("a stored profile needs epsilons ascending from 0 and deltas that do not increase")
        if not log[0] <= 0.0:
            raise InvalidInput(f"a stored profile needs deltas of at most 1; got the logarithm {log[0]}")

    @staticmethod
    def of(profile: PrivacyProfile) -> StoredProfile:
        """Return the certified upper bound of a profile at knots, which can be written to a file.

        Values of delta below 1e-270 become mass that no finite epsilon covers.

        Parameters
        ----------
        profile : PrivacyProfile
            The profile whose upper ends are kept.
        """
        if isinstance(profile, StoredProfile):
            return profile
        if isinstance(profile, SmallestProfile) and any(part.coarseness > 1.0 for part in profile.parts):
            fast = tuple(part for part in profile.parts if part.coarseness <= 1.0)
            slow = [_sampled(part) for part in profile.parts if part.coarseness > 1.0]
            return StoredProfile.smallest([*([StoredProfile.of(SmallestProfile(fast))] if fast else []), *slow])
        table = profile.table
        for z in TILTS:
            table.refine(z / table.capped("worst").deviation, capped=True, tolerance=TOLERANCE)
        return _read(table.capped("worst").forward)

    @staticmethod
    def stated(epsilon: float, delta: float) -> StoredProfile:
        """Return the largest profile that an (epsilon, delta)-DP mechanism can have, the same for both directions.

        It is delta + (1 - delta) (e^epsilon - x)_+ / (1 + e^epsilon) at x = e^eps: with chance delta the record is
        shown, else randomized response of budget epsilon is applied (Kairouz, Oh, Viswanath 2015).

        Parameters
        ----------
        epsilon : float
            Nats, at least 0; infinite for no guarantee.
        delta : float
            In [0, 1).

        Examples
        --------
        >>> StoredProfile.stated(1.0, 1e-6).epsilon(2e-6).upper < 1.0
        True
        """
        value = check_epsilon(epsilon)
        if delta != 0.0:
            check_delta(delta)
        if math.isinf(value):
            return StoredProfile((0.0,), (0.0,))
        top = math.log(delta) + roundoff(4, abs(math.log(delta))) if delta > 0.0 else -math.inf
        start = min(math.log(delta + (1.0 - delta) * math.tanh(value / 2.0)) + roundoff(16), 0.0) if value else top
        if value == 0.0:
            return StoredProfile((0.0,), (top,))
        return StoredProfile((0.0, value), (start, min(top, start)))

    @staticmethod
    def largest(profiles: Sequence[StoredProfile]) -> StoredProfile:
        """Return a curve that is nowhere below any of several stored profiles: their maximum at all knots.

        Parameters
        ----------
        profiles : sequence of StoredProfile
            At least one.
        """
        if len(profiles) == 1:
            return profiles[0]
        knots = sorted({eps for profile in profiles for eps in profile.knots})
        return StoredProfile(tuple(knots), tuple(max(profile.log_at(eps) for profile in profiles) for eps in knots))

    @staticmethod
    def smallest(profiles: Sequence[StoredProfile]) -> StoredProfile:
        """Return an upper bound on a profile from several upper bounds: the convex hull of their smallest values.

        Parameters
        ----------
        profiles : sequence of StoredProfile
            Upper curves of one profile, at least one.
        """
        if len(profiles) == 1:
            return profiles[0]
        knots = sorted({eps for profile in profiles for eps in profile.knots})
        logs = [min(profile.log_at(eps) for profile in profiles) for eps in knots]
        end = next((k for k, log in enumerate(logs) if log == -math.inf), len(logs) - 1) + 1
        points = Points(np.array(knots[:end]), np.array(logs[:end]), logs[end - 1])
        return _read(dominating_pair(points, points).forward)

    def to_json(self) -> dict[str, list[float | None]]:
        """Return a dict for `from_json` of the lists ``epsilon`` (nats) and ``log_delta`` (None for -inf)."""
        return {"epsilon": list(self.knots), "log_delta": [None if math.isinf(log) else log for log in self.log_delta]}

    @staticmethod
    def from_json(fields: Mapping[str, Any]) -> StoredProfile:
        """Return the profile of a dict that `to_json` has written.

        Raises
        ------
        InvalidInput
            If the lists ``epsilon`` and ``log_delta`` are missing, or are no profile.
        """
        try:
            eps = tuple(float(entry) for entry in fields["epsilon"])
            log = tuple(-math.inf if entry is None else float(entry) for entry in fields["log_delta"])
        except (KeyError, TypeError, ValueError):
            raise InvalidInput("a stored profile needs the lists epsilon and log_delta, of numbers") from None
        return StoredProfile(eps, log)

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats) from which on delta is 0: the last knot, or infinite if the curve is positive there."""
        return Upper(self.knots[-1]) if self.log_delta[-1] == -math.inf else UNBOUNDED

    @property
    def known_below(self) -> bool:
        """Whether lower ends of delta are more than 0: always False."""
        return False

    @property
    def mass_at_infinity(self) -> Interval:
        """Interval from 0 to the curve's value at the last knot: the mass that no finite epsilon covers."""
        return Interval(0.0, min(inflated(math.exp(self.log_delta[-1]), 8), 1.0))

    def log_at(self, epsilon: float) -> float:
        """Return log delta of the stored curve at epsilon (nats), rounded up.

        Both weights of the chord are quotients of differences of exponentials, so each is right to a few units of
        rounding, and their sum has no negative term.
        """
        if epsilon >= self.knots[-1]:
            return self.log_delta[-1]
        k = bisect.bisect_right(self.knots, epsilon) - 1
        left, right = self.log_delta[k], self.log_delta[k + 1]
        if epsilon == self.knots[k] or left == -math.inf:
            return left
        a, c = self.knots[k], self.knots[k + 1]
        whole = math.expm1(a - c)
        share = math.expm1(epsilon - c) / whole
        other = math.exp(epsilon - c) * math.expm1(a - epsilon) / whole
        log = left + math.log(share + other * math.exp(right - left))
        return min(log + roundoff(64, 1.0 + abs(log) + abs(left)), left)

    def delta_at(self, epsilon: float) -> Interval:
        """Return the interval from 0 to the stored curve at epsilon."""
        log = self.log_at(epsilon)
        return Interval(0.0, min(inflated(math.exp(log), 8), 1.0) if log > -math.inf else 0.0)

    def log_delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """Return, for both directions alike, the interval from -inf to log delta of the stored curve."""
        both = Interval(-math.inf, self.log_at(epsilon))
        return both, both

    @cached_property
    def table(self) -> ProfileTable:
        """Table of the stored knots, to which no value can be added."""
        return _Knots(self)


def _read(points: Points) -> StoredProfile:
    """Return the points of a finite pair's curve.

    It is summed up from the right, so nothing but rounding is evened out.
    """
    logs = np.minimum.accumulate(np.minimum(points.log, 0.0))
    return StoredProfile(tuple(points.eps.tolist()), tuple(logs.tolist()))


def _sampled(profile: PrivacyProfile) -> StoredProfile:
    """Return a profile that is slow to evaluate, at few knots and not beyond the depth that a limit could use."""
    uncovered = profile.mass_at_infinity.upper
    top = profile.epsilon(max(_DEPTH, 4.0 * uncovered)).upper if uncovered < 0.1 else math.inf
    if not math.isfinite(top):
        return StoredProfile((0.0,), (0.0,))
    knots = np.linspace(0.0, top, _SAMPLES).tolist() if top > 0.0 else [0.0]
    logs = [max(end.upper for end in profile.log_delta_pair(eps)) for eps in knots]
    logs = np.minimum.accumulate(np.minimum(logs, 0.0))
    return StoredProfile(tuple(knots), tuple(logs.tolist()))


class _Knots(ProfileTable):
    """A table of all that is known."""

    def __init__(self, profile: StoredProfile) -> None:
        self._own = list(profile.knots)
        super().__init__(profile)

    def _first_knots(self) -> list[float]:
        return self._own

    def refine(self, t: float, *, capped: bool = False, tolerance: float = 0.0) -> None:
        """Do nothing: between knots the curve is a straight line in e^epsilon."""
