"""Profiles of the common blanket theorem for one pair of inputs, and for the worst of several.

With W_j iid ~ omega, L = r_0(W) - e^eps r_1(W), and C the number of blanket reports among the others,

    H(eps) <= E_C [ h(C) ],    h(c) = 1/(c+1) E( sum_{j <= c+1} L_j )_+,  non-increasing in c.              (I)

With one budget for all, P(C = c)/(c+1) = P(Bin(n, gamma) = c+1)/(n gamma) turns (I) into one sum over users,

    H(eps) <= 1/n E( sum_{i <= n} Z_i )_+,    Z = L/gamma with probability gamma, else 0.                    (Z)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from scipy.special import gammaln

from shuffledp.accounting.chernoff import chernoff_values, fewest_blankets
from shuffledp.accounting.gaussian import gaussian_epsilon
from shuffledp.accounting.loss_law import LossLaw, loss_law
from shuffledp.accounting.profile import PrivacyProfile, check_delta
from shuffledp.numerics.blocks import BlockedCount
from shuffledp.numerics.floats import EPS
from shuffledp.numerics.interval import Enclosure, FloatArray, Interval
from shuffledp.numerics.poisson_binomial import SuccessRange
from shuffledp.numerics.sums import IndependentSum, positive_part, positive_parts
from shuffledp.randomizers.base import PairBlanket

EXACT_UP_TO = 48
"""Up to this many reports of few cells, h is a finite sum over all compositions."""
_MOST_COMPOSITIONS = 30_000
_PER_DEVIATION = 6.0
_RESOLUTION = 5000.0
SMOOTHING = 0.04
_SLACK = 1e-12
_ULPS = 32
_LARGEST = 600.0
"""Epsilons beyond are answered as this one: delta does not increase, and e^epsilon stays within range."""


@dataclass(frozen=True, eq=False)
class OneBudgetProfile(PrivacyProfile):
    """(Z): all n users share one budget.

    Parameters
    ----------
    top : float
        An epsilon (nats, possibly inf) from which on the victim's own report has no divergence.
    pair : PairBlanket
        A pair of inputs at the common budget, gamma > 0.
    n : int
        Number of users.
    above : bool
        Whether a continuous law is rounded up (the upper end is certified) or down (the lower end is).
    smoothing : float
        Relative smoothing of the transform; the enclosure's relative width is about its square.
    """

    top: float
    pair: PairBlanket
    n: int
    above: bool = True
    smoothing: float = SMOOTHING

    @property
    def vanishes_at(self) -> float:
        """Where the victim's own report's divergence vanishes."""
        return self.top

    def delta_at(self, epsilon: float) -> Interval:
        """(Z) by the tilted transform, or (I) by all compositions for few users."""
        if epsilon > _LARGEST:
            return Interval(0.0, self.delta(_LARGEST).upper)
        law = loss_law(self.pair, epsilon, above=self.above)
        if not law.finite:
            return Interval(0.0, law.alone)
        if self.n <= exact_reports(self.pair):
            gamma = np.array([self.pair.gamma])
            count = SuccessRange.of(gamma, np.array([self.n - 1.0]), ulps=_ULPS)
            blocks = BlockedCount.of(count, 40.0, 75.0)
            found = blocks.expectation(composition_values(law.one, blocks.left.astype(np.int64) + 1))
        else:
            sums = law.diluted(self.pair.gamma)
            if not sums.finite:
                return Interval(0.0, law.alone)
            users = replace(sums.one, counts=np.array([float(self.n)]))
            whole = positive_part(users, self.smoothing)
            found = Interval(whole.lower / self.n * (1 - _SLACK), whole.upper / self.n * (1 + _SLACK))
        return _capped(found, law)

    def guess_epsilon(self, delta: float) -> float | None:
        """Gaussian limit, a first guess."""
        return limit_epsilon(self.pair, self.n * self.pair.gamma, delta)


@dataclass(frozen=True, eq=False)
class OwnBudgetsProfile(PrivacyProfile):
    """(I): own budgets.

    Parameters
    ----------
    top : float
        An epsilon (nats, possibly inf) from which on the victim's own report has no divergence.
    pair : PairBlanket
        A pair of inputs at the victim's budget.
    blankets : SuccessRange
        Number of blanket reports among the other users.
    above : bool
        Whether a continuous law is rounded up (the upper end is certified) or down (the lower end is).
    smoothing : float
        Relative smoothing of the transform; the enclosure's relative width is about its square.
    """

    top: float
    pair: PairBlanket
    blankets: SuccessRange
    above: bool = True
    smoothing: float = SMOOTHING
    _blocks: dict[float, BlockedCount] = field(default_factory=dict[float, BlockedCount], repr=False)

    @property
    def vanishes_at(self) -> float:
        """Where the victim's own report's divergence vanishes."""
        return self.top

    def delta_at(self, epsilon: float) -> Interval:
        """(I): h at the ends of blocks of the blanket count; its far lower tail only if it matters."""
        if epsilon > _LARGEST:
            return Interval(0.0, self.delta(_LARGEST).upper)
        law = loss_law(self.pair, epsilon, above=self.above)
        if not law.finite:
            return Interval(0.0, law.alone)
        value = Interval(0.0, 1.0)
        for depth in (11.0, 40.0):
            blocks = self._resolved(depth)
            value = blocks.expectation(self._values(blocks.left + 1.0, law))
            if blocks.left.size < 2 or blocks.through.upper[0] <= 1e-7 * value.lower:
                break
        return _capped(value, law)

    def _resolved(self, depth: float) -> BlockedCount:
        if depth not in self._blocks:
            # h changes by about z^2/2c per user: large counts need fewer blocks for the same accuracy
            count = self.blankets.most
            needed = _RESOLUTION * count.deviation / max(count.mean, 1.0)
            per_deviation = min(max(needed, 1.5), _PER_DEVIATION)
            self._blocks[depth] = BlockedCount.of(self.blankets, depth, per_deviation)
        return self._blocks[depth]

    def _values(self, m: FloatArray, law: LossLaw) -> Enclosure:
        """h(m - 1), exactly for few reports and by the tilted transform for many."""
        lower, upper = np.zeros(m.size), np.full(m.size, law.alone)
        few = m <= exact_reports(self.pair)
        if few.any():
            lower[few], upper[few] = composition_values(law.one, m[few].astype(np.int64))
        if not few.all():
            many = positive_parts(law.one, m[~few], self.smoothing)
            lower[~few] = many.lower / m[~few] * (1 - _SLACK)
            upper[~few] = many.upper / m[~few] * (1 + _SLACK)
        upper = np.minimum(upper, law.alone)
        return Enclosure(np.minimum(lower, upper), upper)  # a law above L may exceed 1

    def guess_epsilon(self, delta: float) -> float | None:
        """Gaussian limit, a first guess."""
        return limit_epsilon(self.pair, self.blankets.most.mean + 1.0, delta)


@dataclass(frozen=True, eq=False)
class LargestProfile(PrivacyProfile):
    """Pointwise maximum: the worst of several pairs of inputs of a discrete randomizer.

    Parameters
    ----------
    parts : tuple of PrivacyProfile
        One per pair, at least one; the one expected to be the largest first.
    pairs : tuple of PairBlanket
        Their pairs; if given, pairs that a quick bound keeps below are left alone.
    blankets : SuccessRange, optional
        Number of blanket reports among the other users, likewise.
    """

    parts: tuple[PrivacyProfile, ...]
    pairs: tuple[PairBlanket, ...] = ()
    blankets: SuccessRange | None = None

    @property
    def vanishes_at(self) -> float:
        """Where all parts have vanished."""
        return max(part.vanishes_at for part in self.parts)

    def delta_at(self, epsilon: float) -> Interval:
        """The largest of the parts' deltas."""
        worst = self.parts[0].delta(epsilon)
        for part in self._rivals(epsilon, worst.lower):
            found = part.delta(epsilon)
            worst = Interval(max(worst.lower, found.lower), max(worst.upper, found.upper))
        return worst

    def epsilon(self, delta: float) -> Interval:
        """The largest of the parts' epsilons; a part already below delta at the largest so far is left alone."""
        target = check_delta(delta)
        worst = self.parts[0].epsilon(target)
        if not math.isfinite(worst.upper):
            return worst
        for part in self._rivals(worst.upper, target):
            if part.delta(worst.upper).upper > target:
                found = part.epsilon(target)
                worst = Interval(max(worst.lower, found.lower), max(worst.upper, found.upper))
        return worst

    def _rivals(self, epsilon: float, delta: float) -> list[PrivacyProfile]:
        """Parts besides the first that may exceed delta at this epsilon."""
        others = self.parts[1:]
        if self.blankets is None or not 0.0 < delta < 1.0 or epsilon > _LARGEST:
            return list(others)
        laws = [loss_law(pair, epsilon) for pair in self.pairs[1:]]
        width = max(law.one.values.size for law in laws)
        values, weights = np.zeros((len(laws), width)), np.zeros((len(laws), width))
        for row, law in enumerate(laws):
            size = law.one.values.size
            values[row, :size], weights[row, :size] = law.one.values[0], law.one.probabilities[0]
        reports, rare = fewest_blankets(self.blankets, delta)
        quick = chernoff_values(values, weights, reports) + rare + np.array([law.charge for law in laws])
        return [part for part, bound in zip(others, quick, strict=True) if bound > delta]


def _capped(found: Interval, law: LossLaw) -> Interval:
    """Add the charge; nobody is worse off than alone."""
    upper = min(found.upper + law.charge, law.alone)
    return Interval(min(found.lower, upper), upper)


def limit_epsilon(pair: PairBlanket, blankets: float, delta: float) -> float | None:
    """Epsilon of the Gaussian limit mu_v^2 = E_omega (r_0 - r_1)^2 / (number of blanket reports); a first guess."""
    with np.errstate(over="ignore"):
        second = float(pair.masses @ (pair.ratios0 - pair.ratios1) ** 2)
    if blankets <= 0.0 or not math.isfinite(second):
        return None
    return gaussian_epsilon(delta, math.sqrt(second / blankets))


def exact_reports(pair: PairBlanket) -> int:
    """Up to how many reports all compositions of the cells are summed."""
    return 0 if pair.spread is not None else _exact_reports(pair.masses.size)


@lru_cache(maxsize=64)
def _exact_reports(cells: int) -> int:
    most = EXACT_UP_TO
    while most > 1 and math.comb(most + cells - 1, cells - 1) > _MOST_COMPOSITIONS:
        most -= 1
    return most


@lru_cache(maxsize=128)
def _compositions(m: int, cells: int) -> FloatArray:
    """All ways to split m reports over the cells, shape (ways, cells)."""
    if cells == 1:
        return np.array([[float(m)]])
    parts = [
        np.column_stack((np.full(len(rest), float(first)), rest))
        for first in range(m + 1)
        for rest in (_compositions(m - first, cells - 1),)
    ]
    return np.concatenate(parts)


def composition_values(law: IndependentSum, reports: np.ndarray) -> Enclosure:
    """Enclose h(m - 1) for each number of reports m by summing over all compositions.

    Weights are good to 1e-12 relative (log-factorials below 48!, exponents below 48 * 21). A sum of atoms may
    cancel; its rounding, 8 EPS per cell of the sum of magnitudes and the doubt of each atom, is added and subtracted
    before the positive part. Values are counted in units of the largest atom, so that what underflows is below 1e-300.
    """
    masses, unit = law.probabilities[0], max(float(np.abs(law.values).max()), 1e-300)
    atoms = law.values[0] / unit
    lower, upper = np.empty(reports.size), np.empty(reports.size)
    logs = np.log(masses)
    for index, m in enumerate(reports.tolist()):
        counts = _compositions(m, masses.size)
        total, size = counts @ atoms, counts @ np.abs(atoms)
        doubt = (8.0 * (masses.size + 1) + 2.0 * law.doubt) * EPS * size
        log_p = gammaln(m + 1.0) - gammaln(counts + 1.0).sum(axis=1) + counts @ logs
        weight = np.exp(log_p + math.log(unit)) / m
        lower[index] = float(weight @ np.maximum(total - doubt, 0.0)) * (1 - 1e-11)
        upper[index] = float(weight @ np.maximum(total + doubt, 0.0)) * (1 + 1e-11) + 1e-300
    return Enclosure(lower, upper)
