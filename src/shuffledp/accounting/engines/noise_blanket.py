"""Added noise under the common blanket theorem: the best core, and the end points, the worst pair (`noise_core`)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.engines.blanket import OneBudgetProfile, OwnBudgetsProfile
from shuffledp.accounting.engines.core_choice import CoreChoice, promising_cores
from shuffledp.accounting.engines.noise_core import Core, Noise, RecordPair
from shuffledp.accounting.profiles.gaussian import gaussian_delta, gaussian_epsilon
from shuffledp.accounting.profiles.gaussian_search import safe_side
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.budgets import Budgets
from shuffledp.errors import OutOfRegime
from shuffledp.numerics.blocks import BlockedCount
from shuffledp.numerics.floats import UNBOUNDED, Upper, roundoff
from shuffledp.numerics.interval import FloatArray, Interval
from shuffledp.numerics.poisson_binomial import SuccessRange
from shuffledp.randomizers.base import NoiseLaw, PairBlanket

_LEAST_SCALE = {"laplace": 1.0 / 200.0, "gaussian": 0.06}
"""Smaller noise hides nothing worth a transform, and its densities underflow."""
_LARGEST_SCALE = 1e6
"""Larger noise scatters reports so widely that they hide nobody; without end where the budget is 0."""
_FEW = 0.1
"""Delta expected where there is hardly any company."""
_HOPELESS = 30.0
"""Where so large an epsilon is expected, the blanket hides nothing and the answer is the trivial one."""
_ROOM = 0.5
"""Part of the range of epsilon for which a core is proved that an epsilon expected there may use."""
_DEEPEST = 1e-40
"""No core is made for smaller deltas: its cells would be too wide."""
_TOLERANCE = 1e-4
"""Relative; the discretisation of a continuous law does not deserve a finer search."""
_LEAST_GAMMA = 1e-200
"""Users with a smaller blanket hide nobody."""
_TRIED = 4
"""So many of the most promising cores, and of the victim's own scale, are tried in earnest."""
_OFTEN = 9.0
"""Deltas of so many decades below 1 choose a core for each decade, smaller ones for every third."""
_UNLIKELY = 1.6
"""Cores from which so many times the best epsilon is expected are not."""
_FINENESS = 4.0
"""Blocks of the count of blanket reports, relative to the usual number."""


def is_usual(law: NoiseLaw, scales: FloatArray) -> NDArray[np.bool_]:
    """Whether noise of each scale is neither too small for the transform to be worth it nor too large for it."""
    return (scales >= _LEAST_SCALE[law.noise]) & (scales <= _LARGEST_SCALE)


def noise_profile(law: NoiseLaw, budgets: Budgets, level: int) -> PrivacyProfile:
    """Return the profile of (I) for a victim of one level among users of added noise.

    Parameters
    ----------
    law : NoiseLaw
        The family.
    budgets : Budgets
        The population, the victim included.
    level : int
        The victim's level.

    Raises
    ------
    OutOfRegime
        If the victim's noise is too small for the transform to be worth it, or too large.
    """
    scales = law.scale(budgets.epsilons, budgets.deltas)
    useful = is_usual(law, scales)
    if not useful[level]:
        raise OutOfRegime(
            f"blanket needs {law.noise} noise of {_LEAST_SCALE[law.noise]:g} to {_LARGEST_SCALE:g} times the range; "
            f"this level has {scales[level]:g}"
        )
    counts = budgets.counts.astype(np.float64)
    counts[level] -= 1.0
    keep = (counts > 0) & useful
    top = Upper(float(budgets.epsilons[level])) if law.noise == "laplace" else UNBOUNDED  # scales are rounded up
    return NoiseProfile(Noise(law.noise, float(scales[level])), top, scales[keep], counts[keep])


@dataclass(frozen=True, eq=False)
class NoiseProfile(PrivacyProfile):
    """(I) for the end points, the worst pair of records, with the core that suits the question.

    Parameters
    ----------
    victim : Noise
        The victim's noise.
    top : float
        The victim's pure local budget, or inf.
    scales, counts : ndarray, shape (groups,)
        The others' noise scales, and how many have each.
    """

    victim: Noise
    top: Upper
    scales: FloatArray
    counts: FloatArray
    _known: dict[float, list[CoreChoice]] = field(default_factory=dict[float, "list[CoreChoice]"], repr=False)
    _cores: dict[float, tuple[Core, float]] = field(default_factory=dict[float, "tuple[Core, float]"], repr=False)
    _serving: dict[int, Core] = field(default_factory=dict[int, Core], repr=False)
    _views: dict[Core, _View] = field(default_factory=dict[Core, "_View"], repr=False)

    @property
    def vanishes_at(self) -> Upper:
        """The victim's pure budget."""
        return self.top

    @property
    def coarseness(self) -> float:
        """Values of a continuous law put on a lattice are not known so well that more knots would help."""
        return 3.0

    @property
    def mass_at_infinity(self) -> Interval:
        """None: either noise, by itself, has a local profile that tends to 0."""
        return Interval(0.0, 0.0)

    def delta_at(self, epsilon: float) -> Interval:
        """(I) with the core that suits the delta expected at this epsilon."""
        return self._view(self.best_core(epsilon)).delta(epsilon)

    def best_core(self, epsilon: float) -> Core:
        """Return the core with which `delta_at` answers: public, so that it can be checked."""
        expected = 1e-6
        for _ in range(2):
            mu = min(choice.mu for choice in self._choices(10.0 ** round(math.log10(expected))))
            expected = min(max(gaussian_delta(epsilon, mu), _DEEPEST), _FEW)
        if expected == _FEW:  # so few users that the normal limit says nothing: compare, a few times per unit
            at = -1 - math.floor(4.0 * epsilon)
            if at not in self._serving:
                cores = [core for _, core in self._promising(_FEW)]
                self._serving[at] = min(cores, key=lambda core: self._view(core).most(epsilon))
            return self._proved(self._serving[at], epsilon)
        depth = -math.log10(expected)
        key = math.ceil(depth) if depth <= _OFTEN else 3 * math.ceil(depth / 3.0)  # few cores serve a curve
        if key not in self._serving:
            self._serving[key] = self._smallest(10.0**-key)
        return self._proved(self._serving[key], epsilon)

    def _proved(self, core: Core, epsilon: float) -> Core:
        """The core, or the victim's own noise where the theorem stops."""
        return core if epsilon <= core.proved_up_to(self.victim) else replace(core, noise=self.victim)

    def _smallest(self, delta: float) -> Core:
        """The promising core with the smallest bound where about three times this delta is expected."""
        epsilon = gaussian_epsilon(min(3.0 * delta, 0.5), min(choice.mu for choice in self._choices(delta)))
        cores = [core for _, core in self._promising(delta)]
        if not epsilon < min(self.top, _HOPELESS):
            return cores[0]
        return min(cores, key=lambda core: self._view(core).most(epsilon))

    def _inverse(self, target: float) -> Interval:
        """The core that suits this delta; each end by a search of its own."""
        core, upper = self._best(target)
        if not upper < min(self.top, _HOPELESS):
            return Interval(0.0, self.top)
        return Interval(self._view(core).lower_epsilon(target, upper), upper)

    def guess_epsilon(self, delta: float) -> float | None:
        """Gaussian limit of the best core."""
        return min(choice.expected_epsilon(delta) for choice in self._choices(delta))

    def _best(self, delta: float) -> tuple[Core, float]:
        """The best of a few promising cores, and a certified epsilon for it (inf if none of them helps)."""
        if delta not in self._cores:
            self._cores[delta] = self._searched(delta)
        return self._cores[delta]

    def _searched(self, delta: float) -> tuple[Core, float]:
        top, promising = min(self.top, _HOPELESS), self._promising(delta)
        best, least = promising[0][1], math.inf
        for guess, core in promising:
            if guess > min(top, _UNLIKELY * least):
                continue
            view = self._view(core)
            if math.isinf(least) or view.most(least * (1.0 - 10.0 * _TOLERANCE)) <= delta:
                found = view.upper_epsilon(delta, min(guess, least))
                best, least = (core, found) if found < min(top, least) else (best, least)
        return best, least

    def _promising(self, delta: float) -> list[tuple[float, Core]]:
        """The few cores to try in earnest, with the epsilon expected of each; the most promising one first."""
        guesses = [(choice.expected_epsilon(delta), choice.core) for choice in self._choices(delta)]
        fit = [(guess, core) for guess, core in guesses if guess <= _ROOM * core.proved_up_to(self.victim)]
        fit.sort(key=lambda both: both[0])
        own = [(guess, core) for guess, core in fit if core.noise == self.victim]
        return list(dict.fromkeys(fit[:_TRIED] + own[:_TRIED]))

    def _view(self, core: Core) -> _View:
        if core not in self._views:
            self._views[core] = _View(self, core)
        return self._views[core]

    def _choices(self, delta: float) -> list[CoreChoice]:
        """Cores worth trying for this delta."""
        if delta not in self._known:
            self._known[delta] = promising_cores(self.victim, self.scales, self.counts, delta)
        return self._known[delta]


class _View:
    """One victim among the others, against one core."""

    def __init__(self, profile: NoiseProfile, core: Core) -> None:
        self.top = profile.top
        self.records = RecordPair(core, profile.victim)
        self.proved = core.proved_up_to(profile.victim)
        gammas = np.exp(core.log_gammas(profile.scales)) * (1.0 - roundoff(8192))
        some = gammas > _LEAST_GAMMA
        self.others = SuccessRange.of(gammas[some], profile.counts[some], ulps=4)
        alike = profile.scales.size == 1 and profile.scales[0] == profile.victim.scale
        self.common = float(gammas[0]) if alike else None
        self.n = int(profile.counts.sum()) + 1
        self._blocks: dict[float, BlockedCount] = {}

    def _profile(self, pair: PairBlanket, *, above: bool) -> PrivacyProfile:
        """(I), or (Z) if everybody has the victim's noise."""
        if self.common is None:
            return OwnBudgetsProfile(self.top, pair, self.others, above, fineness=_FINENESS, _blocks=self._blocks)
        return OneBudgetProfile(self.top, replace(pair, gamma=self.common), self.n, above)

    @cached_property
    def above(self) -> PrivacyProfile:
        """With a discrete law above the continuous one."""
        return self._profile(self.records.blanket, above=True)

    @cached_property
    def below(self) -> PrivacyProfile:
        """With a discrete law below it."""
        return self._profile(self.records.below, above=False)

    def most(self, epsilon: float) -> float:
        """Upper end; where the end points are not proved the worst pair, that of the last epsilon where they are."""
        return self.above.delta(min(epsilon, self.proved)).upper

    def least(self, epsilon: float) -> float:
        """Lower end of the end points' functional."""
        return self.below.delta(epsilon).lower

    def delta(self, epsilon: float) -> Interval:
        """Both ends."""
        most = self.most(epsilon)
        return Interval(min(self.least(epsilon), most), most)

    def upper_epsilon(self, delta: float, guess: float) -> float:
        """An epsilon near the guess with at most this delta; the largest one worth a search if there is none."""
        return safe_side(self.most, delta, min(self.top, _HOPELESS), guess, _TOLERANCE, above=False)

    def lower_epsilon(self, delta: float, upper: float) -> float:
        """An epsilon near and below ``upper`` at which (I) is certainly above delta, or 0."""
        return safe_side(self.least, delta, upper, upper, _TOLERANCE, above=True) if upper > 0.0 else 0.0
