"""Several rounds: the profile of independent rounds, each with its own dominating pair.

Rounds are fixed in advance and use fresh randomness and a fresh shuffle each. Then the pairs of the rounds multiply,
privacy losses add, and delta(eps) = E (1 - e^(eps - S))_+ for the sum S of the losses. Every round is put between
two finite pairs (`profiles.finite_pair`); the upper ones compose to an upper end, the lower ones to a
lower end, both through `shuffledp.numerics.losses.LossSum`, at any depth. See docs/theorems/composition.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from shuffledp.accounting.profiles.knots import View
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.floats import Upper, inflated, roundoff
from shuffledp.numerics.interval import Enclosure, FloatArray, Interval
from shuffledp.numerics.losses import LossSum

MOST_ROUNDS = 2**53
_TILT_STEP = math.log(1.5)
_REPEATS = 12
CHORDS = 5e-4
"""Relative width of the composed epsilon that chords may cost, about."""

Parts = tuple[tuple[PrivacyProfile, int], ...]


def check_rounds(rounds: int) -> int:
    """Return a number of rounds from 1 to 2^53, or raise InvalidInput."""
    if isinstance(rounds, bool) or not isinstance(rounds, int | np.integer) or not 1 <= rounds <= MOST_ROUNDS:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"rounds must be a whole number from 1 to 2^53; got {shown(rounds)}")
    return int(rounds)


def merged_rounds(parts: Sequence[tuple[PrivacyProfile, int]]) -> Parts:
    """Return single rounds with how often each occurs: compositions taken apart, equal profiles counted together.

    Parameters
    ----------
    parts : sequence of (PrivacyProfile, int)
        Profiles, and how many rounds have each.

    Raises
    ------
    InvalidInput
        If there is no round, or a number of rounds is not a whole number from 1 to 2^53.
    """
    rounds: dict[int, tuple[PrivacyProfile, int]] = {}
    for profile, count in parts:
        for part, times in profile.rounds:
            known = rounds.get(id(part), (part, 0))[1]
            rounds[id(part)] = part, check_rounds(known + check_rounds(count) * times)
    if not rounds:
        raise InvalidInput("a composition needs at least one round; got none")
    return tuple(rounds.values())


@dataclass(frozen=True, eq=False)
class ComposedProfile(PrivacyProfile):
    """Profile of independent rounds. Use `combined.compose`, or `ComposedProfile.of`, to make one.

    Parameters
    ----------
    parts : tuple of (PrivacyProfile, int)
        Profiles of single rounds, not themselves composed, and how many rounds have each.
    chords : float
        Relative width of the composed epsilon that chords between known values may cost, about. The bracket is
        certified whatever it is; with a larger one it is found sooner, and is wider.
    """

    tolerance: ClassVar[float] = 1e-5

    parts: Parts
    chords: float = CHORDS
    _sums: dict[tuple[bool, View], tuple[int, LossSum]] = field(
        default_factory=dict[tuple[bool, View], tuple[int, LossSum]], repr=False
    )

    @staticmethod
    def of(profile: PrivacyProfile, rounds: int) -> PrivacyProfile:
        """Return the profile of ``rounds`` rounds that all have the given one."""
        parts = merged_rounds([(profile, rounds)])
        return profile if parts == ((profile, 1),) else ComposedProfile(parts)

    @property
    def rounds(self) -> Parts:
        """The single rounds."""
        return self.parts

    @property
    def vanishes_at(self) -> Upper:
        """The sum over rounds."""
        total = math.fsum(count * part.vanishes_at for part, count in self.parts)
        return Upper(inflated(total, 4))  # products and their sum, each rounded once; 0 is exact

    @property
    def directed(self) -> bool:
        """Whether some round is."""
        return any(part.directed for part, _ in self.parts)

    @property
    def _both(self) -> bool:
        """Whether both directions have to be summed up."""
        return any(part.directed or part.sided for part, _ in self.parts)

    @property
    def known_below(self) -> bool:
        """Whether some round is: of the others an attacker may forget what he sees."""
        return any(part.known_below for part, _ in self.parts)

    @property
    def mass_at_infinity(self) -> Interval:
        """1 - prod (1 - d) over rounds."""
        logs = [
            math.fsum(n * math.log1p(-end) if end < 1.0 else -math.inf for end, n in ends)
            for ends in (
                [(part.mass_at_infinity.lower, n) for part, n in self.parts],
                [(part.mass_at_infinity.upper, n) for part, n in self.parts],
            )
        ]
        lower, upper = (abs(math.expm1(log)) for log in logs)
        return Interval(lower, upper).inflated(16).clipped(0.0, 1.0)

    def delta_at(self, epsilon: float) -> Interval:
        """The larger of the two directions."""
        first, second = self.delta_pair(epsilon)
        return Interval(max(first.lower, second.lower), max(first.upper, second.upper))

    def delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """Both directions; the same rounds lie the same way round."""
        if epsilon >= self.vanishes_at or math.isinf(epsilon):
            return self.mass_at_infinity, self.mass_at_infinity
        first = self._direction(epsilon, "forward")
        if not self._both:
            return first, first
        second = self._direction(epsilon, "reverse")
        if self.directed:
            return first, second
        larger = Interval(max(first.lower, second.lower), max(first.upper, second.upper))
        return larger, larger

    def _direction(self, epsilon: float, view: View) -> Interval:
        self._refine(epsilon, view)
        upper = self._sum(True, view).divergence(epsilon).upper
        lower = self._sum(False, view).divergence(epsilon).lower if self.known_below else 0.0
        return Interval(min(lower, upper, self._local(epsilon)), min(upper, self._local(epsilon)))

    def _local(self, epsilon: float) -> float:
        """Randomized response with the sum of all budgets: no pure composition costs more."""
        top = self.vanishes_at
        return inflated(-math.expm1(epsilon - top) / (1.0 + math.exp(-top)), 16) if math.isfinite(top) else 1.0

    def _refine(self, epsilon: float, view: View) -> None:
        """Knots where the saddle point of this epsilon needs them; tilts are rounded to a grid, both ways.

        Where chords are long the upper law's tail is too heavy and holds the saddle point down: repeat until it rests.
        """
        for _ in range(_REPEATS):
            at = math.log(self._sum(True, view).best_tilt(epsilon)) / _TILT_STEP
            known = self._knots
            for tilt in (math.floor(at), math.ceil(at)):
                for part, _ in self.parts:
                    part.table.refine(math.exp(_TILT_STEP * tilt), capped=True, tolerance=self.chords)
            if self._knots == known:
                return

    @property
    def _knots(self) -> int:
        return sum(part.table.knots for part, _ in self.parts)

    def _sum(self, above: bool, view: View) -> LossSum:
        """The rounds' finite pairs, as the tables are now."""
        key: tuple[bool, View] = (above, view if self._both else "forward")
        if key not in self._sums or self._sums[key][0] != self._knots:
            laws = tuple(part.table.law(key[1], above=above) for part, _ in self.parts)
            self._sums[key] = self._knots, LossSum(laws, tuple(count for _, count in self.parts))
        return self._sums[key][1]

    def guess_epsilon(self, delta: float) -> float | None:
        """The saddle-point approximation; it only saves time."""
        view: View = "forward"
        guess = self._sum(True, view).guess(math.log(delta))
        self._refine(guess, view)
        return self._sum(True, view).guess(math.log(delta))

    def renyi_directions(self, t: FloatArray) -> tuple[Enclosure, Enclosure]:
        """Renyi divergences of a product are the sums of the rounds'."""
        found = [(part.renyi_directions(t), count) for part, count in self.parts]
        room = roundoff(4, len(found) + 1)
        ends = [
            Enclosure(
                sum((n * two[i].lower for two, n in found), start=np.zeros_like(t)) * (1 - room),
                sum((n * two[i].upper for two, n in found), start=np.zeros_like(t)) * (1 + room),
            )
            for i in (0, 1)
        ]
        return ends[0], ends[1]
