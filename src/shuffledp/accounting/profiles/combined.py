"""Profiles made of others: the smallest of several bounds, several rounds, several changed reports."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from shuffledp.accounting.profiles.composition import CHORDS, ComposedProfile, Parts, merged_rounds
from shuffledp.accounting.profiles.from_above import FromAbove
from shuffledp.accounting.profiles.knots import ProfileTable
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.errors import InconsistentBounds
from shuffledp.numerics.floats import Upper, deflated, inflated
from shuffledp.numerics.interval import Enclosure, FloatArray, Interval

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
        At least one.
    """

    parts: tuple[PrivacyProfile, ...]

    @property
    def vanishes_at(self) -> Upper:
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

    @cached_property
    def from_above(self) -> FromAbove:
        """Upper ends alone, found with fewer looks at the parts."""
        return FromAbove(tuple(_leaves(self)))

    def log_delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """The smallest of the parts' logs; the same both ways round."""
        found = [part.log_delta_pair(epsilon) for part in self.parts]
        both = Interval(
            min(max(ends[0].lower, ends[1].lower) for ends in found),
            min(max(ends[0].upper, ends[1].upper) for ends in found),
        )
        return both, both

    def _inverse(self, target: float) -> Interval:
        """The smallest of the parts' epsilons, which is the inverse of their minimum.

        The last part, of the theorem that knows most, is usually the smallest; one look at each other curve there
        tells that it is not below.
        """
        found = [self.parts[-1].epsilon(target)]
        for part in reversed(self.parts[:-1]):
            least = min(f.upper for f in found)
            if not (math.isfinite(least) and part.delta(least).lower > target):
                found.append(part.epsilon(target))
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
    def vanishes_at(self) -> Upper:
        """So many times as far."""
        return Upper(inflated(self.one.vanishes_at * self.size, 4))

    def delta_at(self, epsilon: float) -> Interval:
        """As in the class docstring; the factor's lower end is 1 (one changed report is among several)."""
        share = epsilon / self.size
        found = self.one.delta(deflated(share, 2))
        growth = math.expm1(min(epsilon, 700.0)) / math.expm1(min(share, 700.0)) if share > 0.0 else float(self.size)
        if epsilon >= 700.0:
            return Interval(0.0, 1.0 if found.upper > 0.0 else 0.0)
        return Interval(0.0, inflated(found.upper * growth, 64 * (1.0 + epsilon)))


def composed(one: PrivacyProfile, rounds: int) -> PrivacyProfile:
    """Compose rounds with fresh randomness (docs/theorems/composition.md); of several bounds, each by itself."""
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
    def vanishes_at(self) -> Upper:
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
        return max(self.witnesses, key=lambda witness: witness.epsilon(_TYPICAL).lower, default=None)

    @staticmethod
    def _bracket(upper: Interval, witnesses: list[Interval]) -> Interval:
        lower = max((w.lower for w in witnesses), default=0.0)
        if lower > upper.upper:
            raise InconsistentBounds(f"a witness at {lower} exceeds the certified bound {upper.upper}; please report")
        return Interval(lower, upper.upper)


@dataclass(frozen=True, eq=False)
class ComposedBracket(BracketProfile):
    """Several rounds of which some are brackets: upper ends compose by themselves, and so does every witness.

    Use `compose` to make one.

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
        """Compose each bound and each witness by itself if all rounds are alike, as `certify` does.

        Among different rounds the smallest of the bounds is composed, and the strongest witness of each round: together
        they are one real pair.
        """
        if len(parts) == 1:
            ((one, rounds),) = parts
            uppers, witnesses = _ends(one)
            return cls(composed(uppers, rounds), tuple(composed(each, rounds) for each in witnesses), parts)
        upper = ComposedProfile(tuple((_from_above(_ends(one)[0]), rounds) for one, rounds in parts), _CHORDS_ABOVE)
        chosen = [(one.strongest if isinstance(one, BracketProfile) else one, rounds) for one, rounds in parts]
        shown = tuple((each, rounds) for each, rounds in chosen if each is not None)
        if not shown:
            return cls(upper, (), parts)
        # rounds without a witness are not looked at, which an attacker may do
        witness = shown[0][0] if len(shown) == 1 and shown[0][1] == 1 else ComposedProfile(shown, _CHORDS_BELOW)
        return cls(upper, (witness,), parts)

    @property
    def rounds(self) -> Parts:
        """The single rounds."""
        return self.parts

    @cached_property
    def _whole(self) -> ComposedProfile:
        """The rounds as they are, each between its two ends: one law above and one below, as divergences need them."""
        return ComposedProfile(self.parts)

    @cached_property
    def table(self) -> ProfileTable:
        """Knots of the rounds as they are."""
        return self._whole.table

    def renyi_directions(self, t: FloatArray) -> tuple[Enclosure, Enclosure]:
        """Sums over the rounds."""
        return self._whole.renyi_directions(t)


def compose(parts: Sequence[tuple[PrivacyProfile, int]], *, chords: float = CHORDS) -> PrivacyProfile:
    """Return the profile of several rounds together.

    Parameters
    ----------
    parts : sequence of (PrivacyProfile, int)
        Profiles of single rounds, and how many rounds have each. The order does not matter, equal profiles are
        counted together, and rounds that are compositions themselves are taken apart.
    chords : float
        As for `ComposedProfile`; default 5e-4. Rounds with different brackets have 5e-3 from above and 1e-3 from
        below whatever it is.

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
    """The bounds of which a profile is the smallest, each once; smallest ones of smallest ones are taken apart."""
    if not isinstance(one, SmallestProfile):
        return [one]
    return list({id(leaf): leaf for part in one.parts for leaf in _leaves(part)}.values())


def _from_above(one: PrivacyProfile) -> PrivacyProfile:
    """What stands for a round where only upper ends are asked for."""
    return one.from_above if isinstance(one, SmallestProfile) else one


def _ends(one: PrivacyProfile) -> tuple[PrivacyProfile, tuple[PrivacyProfile, ...]]:
    """What stands for a round from above, and from below; a profile that is no bracket stands for itself."""
    return (one.upper, one.witnesses) if isinstance(one, BracketProfile) else (one, (one,))
