"""Added noise under the common blanket theorem: the best core, and the worst pair of records (`location`)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri_exp

from shuffledp.accounting.blanket_profile import SMOOTHING, OneBudgetProfile, OwnBudgetsProfile
from shuffledp.accounting.chernoff import chernoff_values, fewest_blankets
from shuffledp.accounting.gaussian import gaussian_delta, gaussian_epsilon
from shuffledp.accounting.location import Core, Noise, VictimGrid, record_grid
from shuffledp.accounting.loss_law import left_out, loss_law, loss_range
from shuffledp.accounting.profile import PrivacyProfile, check_delta
from shuffledp.budgets import Budgets
from shuffledp.errors import OutOfRegime
from shuffledp.numerics.blocks import BlockedCount
from shuffledp.numerics.interval import FloatArray, Interval
from shuffledp.numerics.poisson_binomial import SuccessRange
from shuffledp.randomizers.base import NoiseLaw, PairBlanket

_LEAST_SCALE = {"laplace": 1.0 / 200.0, "gaussian": 0.06}
"""Smaller noise hides nothing worth a transform, and its densities underflow."""
_LARGEST_SCALE = 1e6
"""Larger noise scatters reports so widely that they hide nobody; without end where the budget is 0."""
_HOPELESS = 30.0
"""Where so large an epsilon is expected, the blanket hides nothing and the answer is the trivial one."""
_ROUGH = 0.3
_DEEPEST = 1e-40
"""No core is made for smaller deltas: its cells would be too wide."""
_LEAST_GAMMA = 1e-200
"""Users with a smaller blanket hide nobody."""
_MOST_RIVALS = 150
_FARTHEST = 200.0
"""Largest logarithm of a density ratio at the edge of a core worth trying."""
_SHARES = (2e-3, 0.1)
"""Parts of delta that the outputs beyond the core's edge may cost."""


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
    useful = (scales >= _LEAST_SCALE[law.noise]) & (scales <= _LARGEST_SCALE)
    if not useful[level]:
        raise OutOfRegime(
            f"blanket needs {law.noise} noise of {_LEAST_SCALE[law.noise]:g} to {_LARGEST_SCALE:g} times the range; "
            f"this level has {scales[level]:g}"
        )
    counts = budgets.counts.astype(np.float64)
    counts[level] -= 1.0
    keep = (counts > 0) & useful
    top = float(budgets.epsilons[level]) if law.noise == "laplace" else math.inf
    return NoiseProfile(Noise(law.noise, float(scales[level])), top, scales[keep], counts[keep])


@dataclass(frozen=True, eq=False)
class NoiseProfile(PrivacyProfile):
    """(I) for the worst pair of records, with the core that suits the question.

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
    top: float
    scales: FloatArray
    counts: FloatArray
    _known: dict[float, list[_Choice]] = field(default_factory=dict[float, "list[_Choice]"], repr=False)
    _views: dict[tuple[Core, int], _View] = field(default_factory=dict[tuple[Core, int], "_View"], repr=False)

    @property
    def vanishes_at(self) -> float:
        """The victim's pure budget."""
        return self.top

    @property
    def coarseness(self) -> float:
        """Every value costs a search over pairs of records."""
        return 10.0

    @property
    def mass_at_infinity(self) -> Interval:
        """None: either noise, by itself, has a local profile that tends to 0."""
        return Interval(0.0, 0.0)

    def delta_at(self, epsilon: float) -> Interval:
        """The core that suits the delta expected at this epsilon, the worst pair of records."""
        expected = 1e-6
        for _ in range(2):
            mu = min(choice.mu for choice in self._choices(10.0 ** round(math.log10(expected))))
            expected = min(max(gaussian_delta(epsilon, mu), _DEEPEST), 0.1)
        # a few cores serve all epsilons of a curve
        choices = self._choices(10.0 ** (-3.0 * math.ceil(-math.log10(expected) / 3.0)))
        best = min(choices, key=lambda c: c.mu)
        return self._view(best.core, max(epsilon, best.mu)).delta(epsilon)

    def epsilon(self, delta: float) -> Interval:
        """The core that suits this delta, the worst pair of records."""
        target = check_delta(delta)
        best = min(self._choices(target), key=lambda c: c.expected_epsilon(target))
        if best.expected_epsilon(target) > min(self.top, _HOPELESS):
            return Interval(0.0, self.top)
        found = self._view(best.core, best.expected_epsilon(target)).epsilon(target)
        return Interval(min(found.lower, self.top), min(found.upper, self.top))

    def guess_epsilon(self, delta: float) -> float | None:
        """Gaussian limit of the best core."""
        return min(choice.expected_epsilon(delta) for choice in self._choices(delta))

    def _view(self, core: Core, expected: float) -> _View:
        records = record_grid(self.victim.scale, expected)
        key = (core, records.size)
        if key not in self._views:
            self._views[key] = _View(self, VictimGrid(core, self.victim, records))
        return self._views[key]

    def _choices(self, delta: float) -> list[_Choice]:
        """Cores worth trying for this delta, with their Gaussian limits; only a choice among bounds."""
        if delta not in self._known:
            self._known[delta] = self._choices_for(delta)
        return self._known[delta]

    def _choices_for(self, delta: float) -> list[_Choice]:
        own = self.victim.scale
        everyone = np.append(self.scales, own)
        spread = np.geomspace(everyone.min(), everyone.max(), 5) if everyone.min() < everyone.max() else np.zeros(0)
        cores = [
            Core(Noise(self.victim.kind, float(scale)), round(1.0 + self._reach(share * delta), 6))
            for scale in np.unique(np.append(spread, own))
            for share in _SHARES
        ]
        return [_Choice.of(self, core) for core in cores if core.noise.scale == own or self._comparable(core)]

    def _comparable(self, core: Core) -> bool:
        """Whether R(x)/omega stays within double range up to the edge (with the victim's own scale it does)."""
        end = np.array([core.edge, core.edge - 1.0])
        gap = core.noise.log_density(end)[:, None] - self.victim.log_density(end)[None]
        return bool(np.abs(gap).max() < _FARTHEST)

    def _reach(self, mass: float) -> float:
        """How far beyond the range the victim's noise has so little mass."""
        if self.victim.kind == "laplace":
            return self.victim.scale * math.log(0.5 / mass)
        return -self.victim.scale * float(ndtri_exp(math.log(mass)))


@dataclass(frozen=True, eq=False)
class _Choice:
    """A core, with the Gaussian limit of the end points' pair seen against it."""

    core: Core
    mu: float
    outside: float

    @classmethod
    def of(cls, profile: NoiseProfile, core: Core) -> _Choice:
        pair = VictimGrid(core, profile.victim, np.array([0.0, 1.0])).pair(0, 1, exact=True)
        found = loss_law(pair, 0.0)
        if not found.finite:
            return cls(core, math.inf, 1.0)
        law = found.one
        blankets = float(np.exp(core.log_gammas(profile.scales)) @ profile.counts) + 1.0
        second = float(law.probabilities[0] @ law.values[0] ** 2)
        # a value that moves the sum by more than its deviation is no Gaussian matter
        heavy = max(float(law.values.max()) / math.sqrt(second * blankets) - 0.5, 0.0) if second > 0.0 else 0.0
        outside = 0.0 if pair.spread is None else float(pair.spread.left_out_mass[0])
        return cls(core, math.sqrt(second / blankets) * (1.0 + heavy), outside)

    def expected_epsilon(self, delta: float) -> float:
        """Where the Gaussian limit and the charge reach delta, roughly."""
        return gaussian_epsilon(delta - self.outside, self.mu) if self.outside < delta else math.inf


class _OneNoise(OneBudgetProfile):
    """(Z) of a continuous law, whose discretisation does not deserve a finer search."""

    tolerance = 1e-4


class _OwnNoise(OwnBudgetsProfile):
    """(I) of a continuous law, likewise."""

    tolerance = 1e-4


class _View:
    """One victim among the others, against one core."""

    def __init__(self, profile: NoiseProfile, grid: VictimGrid) -> None:
        self.top = profile.top
        self.grid = grid
        gammas = np.exp(grid.core.log_gammas(profile.scales)) * (1 - 1e-12)
        some = gammas > _LEAST_GAMMA
        self.others = SuccessRange.of(gammas[some], profile.counts[some], ulps=4)
        alike = profile.scales.size == 1 and profile.scales[0] == profile.victim.scale
        self.common = float(gammas[0]) if alike else None
        self.n = int(profile.counts.sum()) + 1
        self.last = self.grid.records.size - 1
        self._blocks: dict[float, BlockedCount] = {}
        self._pairs: dict[tuple[int, int], PairBlanket] = {}

    def pair(self, first: int, second: int) -> PairBlanket:
        """The corrected pair of two grid records."""
        if (first, second) not in self._pairs:
            self._pairs[first, second] = self.grid.pair(first, second)
        return self._pairs[first, second]

    def profile(self, pair: PairBlanket, *, above: bool = True, smoothing: float = SMOOTHING) -> PrivacyProfile:
        """(I), or (Z) if everybody has the victim's noise."""
        if self.common is None:
            return _OwnNoise(self.top, pair, self.others, above, smoothing, self._blocks)
        return _OneNoise(self.top, replace(pair, gamma=self.common), self.n, above, smoothing)

    def delta(self, epsilon: float) -> Interval:
        """The worst pair of records; the lower end is the end points'."""
        worst = self.profile(self.pair(0, self.last)).delta(epsilon).upper
        bounds, pairs = self._quick_rivals(epsilon, worst)
        if len(pairs) > _MOST_RIVALS:  # the others keep their quick bounds
            worst = max(worst, float(bounds[_MOST_RIVALS]))
        for first, second in pairs[:_MOST_RIVALS]:
            if self._rough(first, second, epsilon) > worst:
                worst = max(worst, self.profile(self.pair(first, second)).delta(epsilon).upper)
        lower = self.profile(self.grid.pair(0, self.last, exact=True), above=False).delta(epsilon).lower
        return Interval(min(lower, worst), min(worst, 1.0))

    def epsilon(self, delta: float) -> Interval:
        """The end points' epsilon, raised to that of any pair of records that still exceeds delta there."""
        worst = self.profile(self.pair(0, self.last)).epsilon(delta).upper
        _, pairs = self._quick_rivals(worst, delta) if math.isfinite(worst) else (None, [])
        growth = 1.05
        while len(pairs) > _MOST_RIVALS:  # too coarse a grid for so small an epsilon: a larger one is safe
            worst, growth = max(worst * growth, 1e-6 * min(self.top, 1.0)), min(growth**1.5, 2.0)
            if not worst < min(self.top, _HOPELESS):
                return Interval(0.0, self.top)
            _, pairs = self._quick_rivals(worst, delta)
        for first, second in pairs:
            if self._rough(first, second, worst) > delta:
                rival = self.profile(self.pair(first, second))
                if rival.delta(worst).upper > delta:
                    worst = max(worst, rival.epsilon(delta).upper)
        lower = self.profile(self.grid.pair(0, self.last, exact=True), above=False).epsilon(delta).lower
        return Interval(min(lower, worst), worst)

    def _rough(self, first: int, second: int, epsilon: float) -> float:
        """The transform with much smoothing, an upper bound for a fraction of the time."""
        return self.profile(self.pair(first, second), smoothing=_ROUGH).delta(epsilon).upper

    def _quick_rivals(self, epsilon: float, delta: float) -> tuple[FloatArray, list[tuple[int, int]]]:
        """Pairs of records, besides the end points, that no Chernoff bound keeps below delta; the largest first.

        Reflection maps a pair x0 > x1 to one with x0 < x1, so ascending pairs are all.
        """
        reports, rare = fewest_blankets(self.others, delta)
        bounds: list[FloatArray] = []
        pairs: list[tuple[int, int]] = []
        for first in range(self.last + 1):
            seconds = np.arange(first, self.last + (first > 0))
            bound = self._quick(first, seconds, epsilon, reports, rare)
            bounds.append(bound[bound > delta])
            pairs += [(first, int(second)) for second in seconds[bound > delta]]
        found = np.concatenate(bounds)
        order = np.argsort(-found)
        return found[order], [pairs[index] for index in order]

    def _quick(self, first: int, seconds: NDArray[np.int64], epsilon: float, reports: float, rare: float) -> FloatArray:
        """Chernoff bounds of (I) for one grid record against several others; h(0) <= E r_0 where blankets are rare."""
        row = self.grid.row(first, seconds)
        assert row.spread is not None
        low, high = loss_range(row.spread, epsilon)
        with np.errstate(over="ignore", invalid="ignore"):  # what leaves double range gets the trivial bound
            mean = -row.ratios0 * np.expm1(epsilon - row.losses)
            mean += 1e-12 * (np.abs(mean) + row.ratios0 + math.exp(min(epsilon, 600.0)) * row.ratios1)
            low, high = np.minimum(low, mean), np.maximum(high, mean) + 1e-300
            share = (mean - low) / (high - low)
        values = np.concatenate((low, high), axis=1)
        weights = np.concatenate((row.masses * (1.0 - share), row.masses * share), axis=1)
        alone = np.maximum(row.ratios0 @ row.masses, 1.0)
        return chernoff_values(values, weights, reports) + rare * alone + left_out(row.spread, epsilon)
