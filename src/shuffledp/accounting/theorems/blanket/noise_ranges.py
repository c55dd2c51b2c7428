"""Added noise of many different scales: victims by ranges of scales, others by their chance of one blanket (T).

A victim of scale s sends what one of the smallest scale a of its range would, and more noise of its own; so do the
blanket reports of a core of scale a. Whoever sees the wider ones knows no more than whoever sees the narrower ones, up
to what falls outside an edge (docs/theorems/blanket.md). One pair of laws serves a range; each other user counts with
the chance of its own scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.profiles.composition import SmallestProfile
from shuffledp.accounting.profiles.gaussian import gaussian_delta, gaussian_epsilon, safe_side
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.profiles.remembering import remembered_by_thread
from shuffledp.accounting.theorems.blanket.noise import Core, Noise, RecordPair, is_usual
from shuffledp.accounting.theorems.blanket.pairs import OwnBudgetsProfile, limit_epsilon
from shuffledp.accounting.theorems.blanket.wider_noise import charged, outside_mass, rounded_groups, shared_chances
from shuffledp.accounting.theorems.sum import GaussianSumProfile
from shuffledp.budgets import Budgets
from shuffledp.numerics.counts import SuccessRange
from shuffledp.numerics.floats import Upper
from shuffledp.numerics.interval import FloatArray, Interval
from shuffledp.randomizers.base import NoiseLaw, PairBlanket

_SHARES = (1e-3, 0.02, 0.15)
"""Parts of delta that what falls outside the edges may cost."""
_DEPTHS = (2, 4, 6, 8, 11, 16, 24, 40)
"""Decades of delta for which edges are chosen."""
_DEEPEST = 1e-41
"""Of smaller deltas nothing is proved: edges so far out cost minutes."""
_GROUPS = 64
_FINENESS = 4.0
_TOLERANCE = 1e-3
_HOPELESS = 30.0
_GROWTH = 1.5
"""Logarithms of the scales at which ranges end grow like this power."""


@dataclass(frozen=True, eq=False)
class _Edges:
    """One choice of edges for one range: the pair of laws, who hides it, and what is charged."""

    profile: OwnBudgetsProfile
    blankets: float
    outside: float
    beyond: float

    def most(self, epsilon: float) -> float:
        """Upper bound on delta of every victim of the range."""
        at = min(epsilon, _HOPELESS)
        return charged(self.profile.delta(at).upper, at, self.outside)

    def expected_epsilon(self, delta: float) -> float:
        """Where the Gaussian limit meets what is left of a delta, roughly."""
        left = delta - self.beyond - 2.0 * self.outside
        found = limit_epsilon(self.profile.pair, self.blankets, left) if left > 0.0 else None
        return math.inf if found is None else found


@dataclass(frozen=True, eq=False)
class RangeProfile(PrivacyProfile):
    """What (T) proves of every victim whose noise lies in a range of scales.

    Parameters
    ----------
    victim : Noise
        The narrowest noise of the range.
    widest : float
        The largest scale of the range.
    top : float
        The largest pure local budget in the range (nats), or inf.
    scales, counts : ndarray, shape (groups,)
        Everybody's noise scales, the victim's among them, and how many have each.
    exposed : int
        How many others hide nobody, whoever they are.
    """

    victim: Noise
    widest: float
    top: float
    scales: FloatArray
    counts: FloatArray
    exposed: int = 0
    _chosen: dict[int, _Edges | None] = field(init=False, default_factory=dict[int, "_Edges | None"], repr=False)

    @property
    def vanishes_at(self) -> Upper:
        """The largest pure budget of the range."""
        return Upper(self.top)

    @property
    def coarseness(self) -> float:
        """Values of a continuous law put on a lattice are not known so well that more knots would help."""
        return 3.0

    def delta_at(self, epsilon: float) -> Interval:
        """(T) with edges that suit the delta expected at this epsilon."""
        guess = self._for(6)
        mu = math.inf if guess is None else self._mu
        expected = gaussian_delta(epsilon, mu) if math.isfinite(mu) else 1.0
        depth = -math.log10(expected) if expected > 0.0 else math.inf
        edges = self._for(next((each for each in _DEPTHS if each >= depth), _DEPTHS[-1]))
        return Interval(0.0, 1.0 if edges is None else edges.most(epsilon))

    def guess_epsilon(self, delta: float) -> float | None:
        """Guess epsilon by the Gaussian limit."""
        return gaussian_epsilon(delta, self._mu) if math.isfinite(self._mu) else None

    def upper_epsilon(self, delta: float) -> float:
        """Return an epsilon with at most this delta, near the smallest that (T) proves.

        Return ``top`` if it proves none below.

        Parameters
        ----------
        delta : float
            In (0, 1).
        """
        top = min(self.top, _HOPELESS)
        edges = self._best(delta)
        guess = math.inf if edges is None else edges.expected_epsilon(delta)
        if edges is None or not guess < top:
            return self.top
        found = safe_side(edges.most, delta, top, guess, _TOLERANCE, above=False)
        return found if found < top else self.top

    def _inverse(self, target: float) -> Interval:
        return Interval(0.0, self.upper_epsilon(target))

    @property
    def _most_charged(self) -> float:
        """About the largest epsilon that matters: what falls outside is charged e^epsilon times."""
        return min(self.top, _HOPELESS) if math.isfinite(self.top) else 1.0

    @cached_property
    def _mu(self) -> float:
        """Of the Gaussian limit at a typical delta; a guess."""
        edges = self._for(6)
        if edges is None:
            return math.inf
        pair = edges.profile.pair
        second = float(pair.masses @ (pair.ratios0 - pair.ratios1) ** 2)
        return math.sqrt(second / edges.blankets)

    def _for(self, depth: int) -> _Edges | None:
        if depth not in self._chosen:
            self._chosen[depth] = self._best(10.0**-depth)
        return self._chosen[depth]

    def _best(self, delta: float) -> _Edges | None:
        """Return the edges with the smallest epsilon expected at this delta; none for deltas below 1e-41."""
        if not delta >= _DEEPEST:
            return None
        found = [edges for share in _SHARES for edges in self._edged(share, delta)]
        return min(found, key=lambda edges: edges.expected_epsilon(delta), default=None)

    def _edged(self, share: float, delta: float) -> list[_Edges]:
        """Return the edges at which so much of delta is charged; none where nobody hides anybody."""
        reach = _reach(self.victim.kind, share * delta * math.exp(-self._most_charged))
        near, far = (round(1.0 + scale * reach, 6) for scale in (self.victim.scale, self.widest))
        chances = shared_chances(self.victim.kind, self.victim.scale, self.widest, (near, far), self.scales)
        p, n = rounded_groups(chances, self.counts, _GROUPS, self.exposed + 1)
        if p.size == 0:
            return []
        records = RecordPair(Core(self.victim, near), self.victim)
        pair: PairBlanket = records.blanket
        beyond = 0.0 if pair.spread is None else float(pair.spread.left_out_mass[0])
        others = SuccessRange.of(p, n, ulps=4)
        profile = OwnBudgetsProfile(self.vanishes_at, pair, others, fineness=_FINENESS)
        outside = outside_mass(self.victim.kind, self.widest, far)
        return [_Edges(profile, float(p @ n) + 1.0, outside, beyond)]


def _reach(kind: str, mass: float) -> float:
    """How many scales beyond the range the noise has about so little mass."""
    if kind == "laplace":
        return math.log(0.5 / mass)
    return math.sqrt(-2.0 * math.log(mass))


@remembered_by_thread(4)
def range_profiles(
    law: NoiseLaw, budgets: Budgets, exposed: int, most: int
) -> tuple[tuple[NDArray[np.int64], PrivacyProfile], ...]:
    """Return ranges of levels, each with what (T) proves of its victims.

    Remembered, because the worst level is looked for before the listed ones are answered.

    Parameters
    ----------
    law : NoiseLaw
        The family.
    budgets : Budgets
        Everybody, in reports. Levels of unusual noise are in no range.
    exposed : int
        How many reports of others hide nobody.
    most : int
        At most so many ranges, at least 2.
    """
    scales, counts = law.scale(budgets.epsilons, budgets.deltas), budgets.counts.astype(np.float64)
    usual = np.flatnonzero(is_usual(law, scales))
    if usual.size == 0:
        return ()
    belongs, known = ranges(scales[usual], most), list[tuple[NDArray[np.int64], PrivacyProfile]]()
    for index in np.unique(belongs):
        members = usual[belongs == index]
        victim, widest = Noise(law.noise, float(scales[members].min())), float(scales[members].max())
        top = float(budgets.epsilons[members].max()) if law.noise == "laplace" else math.inf
        found: PrivacyProfile = RangeProfile(victim, widest, top, scales[usual], counts[usual], exposed)
        if law.noise == "gaussian":
            found = SmallestProfile((GaussianSumProfile(1.0 / victim.scale), found))
        known.append((members, found))
    return tuple(known)


def ranges(scales: FloatArray, most: int) -> NDArray[np.int64]:
    """Return for each victim the range of scales it belongs to.

    The narrowest noise is a range by itself; ratios grow from there, because a large budget is usually the worst off.

    Parameters
    ----------
    scales : ndarray, shape (victims,)
        Positive.
    most : int
        At least 2: how many ranges.
    """
    logs = np.log(scales / scales.min())
    span = float(logs.max())
    if span == 0.0:
        return np.zeros(scales.size, dtype=np.int64)
    return np.minimum(np.ceil((most - 1.0) * (logs / span) ** (1.0 / _GROWTH)), most - 1.0).astype(np.int64)
