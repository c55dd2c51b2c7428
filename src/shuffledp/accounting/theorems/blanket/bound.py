"""The common blanket theorem (I) as a bound: which blanket hides whom (docs/theorems/blanket.md).

Each other user draws from omega with probability gamma_i, and then looks like anybody. In a mixture family
R_eps = gamma(eps) omega + (1 - gamma(eps)) mu_x one omega serves every budget; other discrete families hide
users of one budget only; added noise has blankets of its own (`engines.noise_core`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import (
    MANY_LEVELS,
    AmplificationBound,
    epsilons_by_anchors,
    require_plain,
    several_reports,
)
from shuffledp.accounting.profiles.composition import SmallestProfile
from shuffledp.accounting.profiles.profile import (
    PrivacyProfile,
    gaussian_delta,
    gaussian_epsilon,
    remembered_by_thread,
    safe_side,
)
from shuffledp.accounting.theorems.blanket.noise import (
    LARGEST_SCALE,
    LEAST_SCALE,
    Core,
    Noise,
    NoiseProfile,
    RecordPair,
    charged,
    is_usual,
    outside_mass,
    rounded_groups,
    shared_chances,
)
from shuffledp.accounting.theorems.blanket.pairs import (
    LargestProfile,
    OneBudgetProfile,
    OwnBudgetsProfile,
    limit_epsilon,
    worst_first,
)
from shuffledp.accounting.theorems.clones.pair import CloneCurve, clone_pair, shared_clone_pairs
from shuffledp.accounting.theorems.sum import GaussianSumProfile
from shuffledp.budgets import Budgets
from shuffledp.errors import OutOfRegime
from shuffledp.numerics.counts import BlockedCount, SuccessRange
from shuffledp.numerics.floats import UNBOUNDED, Enclosure, FloatArray, Interval, Upper
from shuffledp.randomizers.base import NoiseLaw, PairBlanket, RandomizerLaw
from shuffledp.setting import Kind, Setting

# Added noise of many different scales: victims by ranges of scales, others by their chance of one blanket (T).
#
# A victim of scale s sends what one of the smallest scale a of its range would, and more noise of its own; so do the
# blanket reports of a core of scale a. Whoever sees the wider ones knows no more than whoever sees the narrower ones,
# up to what falls outside an edge (docs/theorems/blanket.md). One pair of laws serves a range; each other user counts
# with the chance of its own scale.

_SHARES = (1e-3, 0.02, 0.15)
"""Shares of delta that may be charged for what falls outside the edges."""
_DEPTHS = (2, 4, 6, 8, 11, 16, 24, 40)
"""Depths, in decades of delta, for which edges are chosen."""
_DEEPEST = 1e-41
"""Smallest delta for which the bound is proved; edges farther out would take minutes."""
_GROUPS = 64
_FINENESS = 4.0
_TOLERANCE = 1e-3
_HOPELESS = 30.0
_GROWTH = 1.5
"""Exponent by which logarithms of the scales at which ranges end grow."""


@dataclass(frozen=True, eq=False)
class _Edges:
    """One choice of edges for one range: the pair of laws, who hides it, and what is charged."""

    profile: OwnBudgetsProfile
    blankets: float
    outside: float
    beyond: float

    def most(self, epsilon: float) -> Upper:
        """Upper bound on delta of every victim of the range."""
        at = min(epsilon, _HOPELESS)
        return charged(self.profile.delta(at).upper, at, self.outside)

    def expected_epsilon(self, delta: float) -> float:
        """Where the Gaussian limit meets what is left of a delta, roughly."""
        left = delta - self.beyond - 2.0 * self.outside
        limit = limit_epsilon(self.profile.pair, self.blankets, left) if left > 0.0 else None
        return math.inf if limit is None else limit


@dataclass(frozen=True, eq=False)
class RangeProfile(PrivacyProfile):
    """Upper bound by (T) on the profile of every victim whose noise scale lies in a given range.

    Parameters
    ----------
    victim : Noise
        The narrowest noise of the range.
    widest : float
        The largest scale of the range.
    top : float
        The largest pure local budget in the range (nats), or inf.
    scales, counts : ndarray, shape (groups,)
        Noise scales of all users, the victim's among them, and how many have each.
    exposed : int
        How many other users do not hide the victim, whoever they are.
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
        """Epsilon (nats) from which on delta is 0: the largest pure local budget of the range, or infinite."""
        return Upper(self.top)

    @property
    def coarseness(self) -> float:
        """Factor 3 by which a table may be less accurate: the values come from a lattice and are no better."""
        return 3.0

    def delta_at(self, epsilon: float) -> Interval:
        """Return the interval from 0 to the bound (T) on delta(epsilon).

        The two edges in (T) are chosen for the delta that is expected at this epsilon; any edges give a bound.
        """
        edges = self._suited(epsilon)
        return Interval(0.0, 1.0 if edges is None else edges.most(epsilon))

    def prepare(self, epsilons: list[float]) -> None:
        """Evaluate at several epsilons (nats) in one pass for each choice of edges."""
        by_edges: dict[_Edges, list[float]] = {}
        for epsilon in epsilons:
            if epsilon < min(self.top, _HOPELESS) and (edges := self._suited(epsilon)) is not None:
                by_edges.setdefault(edges, []).append(epsilon)
        for edges, mine in by_edges.items():
            edges.profile.prepare(mine)

    def _suited(self, epsilon: float) -> _Edges | None:
        """Return the edges chosen for the delta that is expected at this epsilon."""
        guess = self._for(6)
        mu = math.inf if guess is None else self._mu
        expected = gaussian_delta(epsilon, mu) if math.isfinite(mu) else 1.0
        depth = -math.log10(expected) if expected > 0.0 else math.inf
        return self._for(next((each for each in _DEPTHS if each >= depth), _DEPTHS[-1]))

    def guess_epsilon(self, delta: float) -> float | None:
        """Return the epsilon (nats) of the Gaussian limit, a first guess; None if it has none."""
        return gaussian_epsilon(delta, self._mu) if math.isfinite(self._mu) else None

    def upper_epsilon(self, delta: float) -> float:
        """Return an epsilon (nats) with at most this delta, near the smallest that (T) proves; at most ``top``.

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
        epsilon = safe_side(edges.most, delta, top, guess, _TOLERANCE, above=False)
        return epsilon if epsilon < top else self.top

    def rough_epsilon(self, delta: float) -> float:
        """Return `upper_epsilon`, which costs few evaluations."""
        return self.upper_epsilon(delta)

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
        candidates = [edges for share in _SHARES for edges in self._edged(share, delta)]
        return min(candidates, key=lambda edges: edges.expected_epsilon(delta), default=None)

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
    """Return ranges of levels, each with the profile that (T) proves for all its victims; cached.

    Parameters
    ----------
    law : NoiseLaw
        The family of the noise.
    budgets : Budgets
        The whole population, counted in reports. Levels of unusual noise are in no range.
    exposed : int
        How many reports of others do not hide the victim.
    most : int
        Largest number of ranges, at least 2.

    Returns
    -------
    tuple of (ndarray of int, PrivacyProfile)
        Positions of the levels of each range, and their common upper bound.
    """
    scales, counts = law.scale(budgets.epsilons, budgets.deltas), budgets.counts.astype(np.float64)
    usual = np.flatnonzero(is_usual(law, scales))
    if usual.size == 0:
        return ()
    belongs, profiles = ranges(scales[usual], most), list[tuple[NDArray[np.int64], PrivacyProfile]]()
    for index in np.unique(belongs):
        members = usual[belongs == index]
        victim, widest = Noise(law.noise, float(scales[members].min())), float(scales[members].max())
        top = float(budgets.epsilons[members].max()) if law.noise == "laplace" else math.inf
        profile: PrivacyProfile = RangeProfile(victim, widest, top, scales[usual], counts[usual], exposed)
        if law.noise == "gaussian":
            profile = SmallestProfile((GaussianSumProfile(1.0 / victim.scale), profile))
        profiles.append((members, profile))
    return tuple(profiles)


def ranges(scales: FloatArray, most: int) -> NDArray[np.int64]:
    """Return for each victim the number, from 0, of the range of noise scales to which the victim is assigned.

    The narrowest noise is a range by itself. The other ranges get wider (in the ratio of their ends) towards larger
    scales, because a large budget usually has the largest central epsilon.

    Parameters
    ----------
    scales : ndarray, shape (victims,)
        The victims' noise scales, positive.
    most : int
        Largest number of ranges, at least 2.
    """
    logs = np.log(scales / scales.min())
    span = float(logs.max())
    if span == 0.0:
        return np.zeros(scales.size, dtype=np.int64)
    return np.minimum(np.ceil((most - 1.0) * (logs / span) ** (1.0 / _GROWTH)), most - 1.0).astype(np.int64)


def noise_profile(law: NoiseLaw, budgets: Budgets, level: int) -> PrivacyProfile:
    """Return the blanket theorem's profile (I) for a victim of one level among users whose reports carry added noise.

    Parameters
    ----------
    law : NoiseLaw
        The family of the noise.
    budgets : Budgets
        The population, the victim included.
    level : int
        The victim's level, by its position among the budgets.

    Returns
    -------
    PrivacyProfile
        Encloses the right side of (I), an upper bound on the victim's delta(epsilon).

    Raises
    ------
    OutOfRegime
        If the victim's noise is too small for the transform to be worth it, or too large.
    """
    scales = law.scale(budgets.epsilons, budgets.deltas)
    useful = is_usual(law, scales)
    if not useful[level]:
        raise OutOfRegime(
            f"blanket needs {law.noise} noise of {LEAST_SCALE[law.noise]:g} to {LARGEST_SCALE:g} times the range; "
            f"this level has {scales[level]:g}"
        )
    counts = budgets.counts.astype(np.float64)
    counts[level] -= 1.0
    keep = (counts > 0) & useful
    top = Upper(float(budgets.epsilons[level])) if law.noise == "laplace" else UNBOUNDED  # scales are rounded up
    return NoiseProfile(Noise(law.noise, float(scales[level])), top, scales[keep], counts[keep])


_RANGES, _FEW_RANGES = 24, 6
"""Number of ranges of scales of victims who add noise, in one round and over several."""


class BlanketBound(AmplificationBound):
    """Upper bound by the randomizer's common blanket, theorem (I), with a local budget for each user.

    See docs/theorems/blanket.md.
    """

    key = "blanket"
    kind = Kind.CERTIFIED_UPPER
    reference = "common blanket theorem (own proof; privacy blanket of Balle, Bell, Gascon, Nissim 2019)"

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the common blanket theorem's profile (I) for a victim of budget ``epsilon0``.

        See `AmplificationBound.one_round`.
        """
        budgets = setting.budgets
        level = budgets.index_of(epsilon0)
        if setting.adds_noise is not None:
            self._check(setting)
            # levels that differ in delta0 alone are named by one epsilon0: the worst of them is answered for
            same = np.flatnonzero(budgets.epsilons == budgets.epsilons[level]).tolist()
            victims = tuple(noise_profile(setting.adds_noise, budgets, each) for each in same)
            return victims[0] if len(victims) == 1 else LargestProfile(victims)
        family = self._family(setting)
        if family.two_point:  # two outcomes: (I) is the clone pair
            return clone_pair(budgets, level)
        return _worst_pair(family, epsilon0, _Others(family, budgets, level))

    def company(self, setting: Setting, budgets: Budgets, level: int, exposed: int) -> Budgets:
        """Remove ``exposed`` users in the worst way; see `AmplificationBound.company`.

        With added noise it is not known which users hide the victim best, so ``exposed`` users are removed from every
        level. Fewer users can only hide the victim less.
        """
        if setting.adds_noise is None or budgets.levels == 1:
            return super().company(setting, budgets, level, exposed)
        others = budgets.counts.copy()
        others[level] -= 1
        left = np.maximum(others - exposed, 0)
        left[level] += 1
        keep = left > 0
        return Budgets(budgets.epsilons[keep], left[keep], budgets.deltas[keep])

    def level_epsilons(
        self, setting: Setting, delta: float, levels: NDArray[np.int64], ceilings: FloatArray | None = None
    ) -> Enclosure:
        """Enclose each listed level's epsilon (nats); for added noise and many levels by ranges of noise scales.

        See `AmplificationBound.level_epsilons`.
        """
        law, budgets = setting.adds_noise, setting.budgets
        if law is None or budgets.levels <= MANY_LEVELS or self.links_matter(setting):
            return super().level_epsilons(setting, delta, levels, ceilings)
        self._check(setting.plain(budgets))
        once = setting.changed_reports == setting.rounds == 1
        exposed = setting.exposed * setting.reports_per_user
        every = np.full(budgets.levels, math.inf)
        most = _RANGES if once else _FEW_RANGES
        for members, profile in range_profiles(law, several_reports(setting), exposed, most):
            mine = np.isin(levels, members)
            if mine.any():
                most = math.inf if ceilings is None else float(ceilings[mine].max())
                every[members] = self.over_rounds(setting, profile).epsilon_below(delta, most).upper
        upper = every[levels]
        if once and budgets.is_pure:
            upper = np.minimum(upper, budgets.epsilons[levels])
        return Enclosure(np.zeros(levels.size), upper)

    def many_levels(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """Bound each level's epsilon when levels are many: from one clone curve, or from profiles of a few victims.

        See `AmplificationBound.many_levels`.
        """
        epsilons = setting.budgets.epsilons[levels]
        if setting.discrete is not None and self._family(setting).two_point:
            return CloneCurve.of(setting.budgets, delta).epsilons(epsilons, delta)
        # what a channel gives away with chance delta0 may cost more than epsilon0
        enclosure = epsilons_by_anchors(epsilons, delta, self.any_victim(setting), capped=setting.budgets.is_pure)
        return Enclosure(np.zeros_like(enclosure.lower), enclosure.upper)

    def any_victim(self, setting: Setting) -> Callable[[float], PrivacyProfile]:
        """Return a function from a victim's budget to a profile; all victims share one count of the other users.

        That count leaves out the user who is most likely to report from the blanket, which can only raise h of (I). A
        smaller budget mixes the victim's report with omega, L' = (1-t) L + t (1-e^eps), so h does not grow. See
        `AmplificationBound.any_victim`.
        """
        family = self._family(setting)
        if family.two_point:
            return shared_clone_pairs(setting.budgets)
        others = _Others(family, setting.budgets, 0)
        return lambda epsilon0: _worst_pair(family, epsilon0, others)

    def _check(self, setting: Setting) -> None:
        require_plain(setting, self.key)  # a stated law is used as it is: it need not be pure
        if setting.law is None:
            raise OutOfRegime("blanket needs a stated randomizer; got 'any'")
        if setting.seen == "sum" and setting.adds_noise is not None:
            raise OutOfRegime("blanket is about reports; of the sum of added noises 'sum' knows the exact profile")
        if setting.budgets.levels > 1 and setting.seen in ("levels", "users"):
            raise OutOfRegime(
                f"blanket with several budgets needs unordered reports without levels; got seen = {setting.seen}"
            )

    def _family(self, setting: Setting) -> RandomizerLaw:
        self._check(setting)
        family = setting.discrete
        if family is None:
            raise OutOfRegime(f"blanket over more than 32 levels needs discrete reports; got {setting.randomizer_name}")
        if setting.budgets.levels > 1 and not family.mixture:
            raise OutOfRegime(
                f"blanket with several budgets needs one blanket for all of them; the reports of {family.name} "
                "give their sender's budget away: use 'clones'"
            )
        return family


def has_blanket(setting: Setting, epsilon0: float) -> bool:
    """Return whether the stated randomizer has a blanket for a victim of that budget: it adds enough noise.

    Parameters
    ----------
    setting : Setting
        The collection, with a stated randomizer.
    epsilon0 : float
        Local budget of some user of the setting, nats.
    """
    law, level = setting.adds_noise, setting.budgets.index_of(epsilon0)
    if law is not None:
        scales = law.scale(setting.budgets.epsilons, setting.budgets.deltas)
        return bool(is_usual(law, scales)[level])
    return setting.discrete is not None and float(setting.discrete.blanket_mass(epsilon0)) > 0.0


def blanket_count(budgets: Budgets, family: RandomizerLaw, without: int) -> SuccessRange:
    """Return the law of C of (I): the number of blanket reports of all users but one of level ``without``."""
    others = budgets.counts.astype(np.float64)
    others[without] -= 1.0
    return SuccessRange.of(family.blanket_mass(budgets.epsilons), others, ulps=32)


class _Others:
    """The users among whom a victim hides: all but one of level ``without``; victims may share them.

    Parameters
    ----------
    family : RandomizerLaw
        Everybody's.
    budgets : Budgets
        The population.
    without : int
        A level.
    """

    def __init__(self, family: RandomizerLaw, budgets: Budgets, without: int) -> None:
        self.family, self.budgets, self.without = family, budgets, without
        self.blocks: dict[float, BlockedCount] = {}

    @cached_property
    def one_mass(self) -> float | None:
        """The blanket mass, if all users have the same."""
        masses = self.family.blanket_mass(self.budgets.epsilons)
        return float(masses[0]) if bool((masses == masses[0]).all()) else None

    @cached_property
    def count(self) -> SuccessRange:
        """Their blanket reports, C of (I)."""
        return blanket_count(self.budgets, self.family, self.without)


def _worst_pair(family: RandomizerLaw, epsilon0: float, others: _Others) -> PrivacyProfile:
    """Profile of the worst pair of inputs of a victim."""
    pairs = worst_first(family.pair_blankets(epsilon0))
    if pairs[0].gamma <= 0.0:
        raise OutOfRegime(f"blanket needs an output that every record may give; {family.name} has none")
    if others.one_mass == pairs[0].gamma:
        return _alike(pairs, others.budgets.n)
    parts = tuple(OwnBudgetsProfile(pair.largest_loss, pair, others.count, _blocks=others.blocks) for pair in pairs)
    return parts[0] if len(parts) == 1 else LargestProfile(parts, pairs, others.count)


@remembered_by_thread(16)
def _alike(pairs: tuple[PairBlanket, ...], n: int) -> PrivacyProfile:
    """Profile of the worst pair if all n users have the blanket mass of the pairs: one budget, or one channel for all.

    Remembered, because the levels of a population with one channel share it.
    """
    parts = tuple(OneBudgetProfile(pair.largest_loss, pair, n) for pair in pairs)
    if len(parts) == 1:
        return parts[0]
    others = SuccessRange.of(np.array([pairs[0].gamma]), np.array([n - 1.0]), ulps=32)
    return LargestProfile(parts, pairs, others, n)
