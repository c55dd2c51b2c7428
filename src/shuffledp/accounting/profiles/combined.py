"""Profiles made of others: the smallest of several bounds, several rounds, several changed reports."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.errors import InconsistentBounds
from shuffledp.numerics.floats import EPS
from shuffledp.numerics.interval import Interval


@dataclass(frozen=True, eq=False)
class SmallestProfile(PrivacyProfile):
    """Pointwise minimum of several upper bounds on one profile.

    Parameters
    ----------
    parts : tuple of PrivacyProfile
        At least one.
    """

    parts: tuple[PrivacyProfile, ...]

    @property
    def vanishes_at(self) -> float:
        """From the first point on at which a part vanishes."""
        return min(part.vanishes_at for part in self.parts)

    def delta_at(self, epsilon: float) -> Interval:
        """The smallest of the parts' deltas."""
        found = [part.delta(epsilon) for part in self.parts]
        return Interval(min(f.lower for f in found), min(f.upper for f in found))

    @property
    def mass_at_infinity(self) -> Interval:
        """The smallest of the parts'."""
        found = [part.mass_at_infinity for part in self.parts]
        return Interval(min(f.lower for f in found), min(f.upper for f in found))

    def log_delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """The smallest of the parts' logs; the same both ways round."""
        found = [part.log_delta_pair(epsilon) for part in self.parts]
        both = Interval(
            min(max(ends[0].lower, ends[1].lower) for ends in found),
            min(max(ends[0].upper, ends[1].upper) for ends in found),
        )
        return both, both

    def _inverse(self, target: float) -> Interval:
        """The smallest of the parts' epsilons, which is the inverse of their minimum."""
        found = [part.epsilon(target) for part in self.parts]
        return Interval(min(f.lower for f in found), min(f.upper for f in found))


@dataclass(frozen=True, eq=False)
class GroupProfile(PrivacyProfile):
    """From one changed report to several: delta_m(m eps) <= delta_1(eps) (e^{m eps} - 1)/(e^eps - 1).

    The triangle inequality of the hockey-stick divergence along a chain of m neighbours (docs/theorems/situations.md).

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
    def vanishes_at(self) -> float:
        """So many times as far."""
        return self.one.vanishes_at * self.size * (1 + 4 * EPS)

    def delta_at(self, epsilon: float) -> Interval:
        """As in the class docstring; the factor's lower end is 1 (one changed report is among several)."""
        share = epsilon / self.size
        found = self.one.delta(share * (1 - 2 * EPS))
        growth = math.expm1(min(epsilon, 700.0)) / math.expm1(min(share, 700.0)) if share > 0.0 else float(self.size)
        if epsilon >= 700.0:
            return Interval(0.0, 1.0 if found.upper > 0.0 else 0.0)
        return Interval(0.0, found.upper * growth * (1 + 64 * EPS * (1.0 + epsilon)))


def composed(one: PrivacyProfile, rounds: int) -> PrivacyProfile:
    """Compose rounds with fresh randomness (docs/theorems/composition.md); of several bounds, each by itself."""
    if rounds == 1:
        return one
    if isinstance(one, SmallestProfile):
        return SmallestProfile(tuple(composed(part, rounds) for part in one.parts))
    from shuffledp.accounting.profiles.composition import ComposedProfile

    if rounds not in one.compositions:
        one.compositions[rounds] = ComposedProfile.of(one, rounds)
    return one.compositions[rounds]


@dataclass(frozen=True, eq=False)
class BracketProfile(PrivacyProfile):
    """Upper ends from a certified upper bound, lower ends from witnesses.

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
    def vanishes_at(self) -> float:
        """Where the upper bound vanishes."""
        return self.upper.vanishes_at

    def delta_at(self, epsilon: float) -> Interval:
        """Largest witness and upper bound."""
        return self._bracket(self.upper.delta(epsilon), [w.delta(epsilon) for w in self.witnesses])

    def epsilon(self, delta: float) -> Interval:
        """Largest witness and upper bound, each inverted by itself."""
        return self._bracket(self.upper.epsilon(delta), [w.epsilon(delta) for w in self.witnesses])

    @property
    def mass_at_infinity(self) -> Interval:
        """The upper bound's; no witness is certain of any."""
        return Interval(0.0, self.upper.mass_at_infinity.upper)

    def log_delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """As `delta`, in logs, with one witness: only one real pair has divergences, trade-offs and rounds."""
        high = max(end.upper for end in self.upper.log_delta_pair(epsilon))
        low = -math.inf
        if self.strongest is not None:
            # the smaller direction both ways round is the curve of a symmetric pair that the witness dominates
            low = min(end.lower for end in self.strongest.log_delta_pair(epsilon))
        both = Interval(min(low, high), high)
        return both, both

    @cached_property
    def strongest(self) -> PrivacyProfile | None:
        """The witness with the largest epsilon at delta = 1e-6; None without witnesses."""
        return max(self.witnesses, key=lambda witness: witness.epsilon(1e-6).lower, default=None)

    @staticmethod
    def _bracket(upper: Interval, witnesses: list[Interval]) -> Interval:
        lower = max((w.lower for w in witnesses), default=0.0)
        if lower > upper.upper:
            raise InconsistentBounds(f"a witness at {lower} exceeds the certified bound {upper.upper}; please report")
        return Interval(lower, upper.upper)
