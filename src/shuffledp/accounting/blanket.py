"""The common blanket (theorem (I)) for families R_eps = gamma(eps) omega + (1 - gamma(eps)) mu_x.

Each other user draws from omega with probability gamma_i, and then looks like anybody; C counts them. With W_j
iid ~ omega and L = r_0(W) - e^eps r_1(W) taken from the victim's own channel,

    H(eps) <= E_C [ h(C) ],    h(c) = 1/(c+1) E( sum_{j <= c+1} L_j )_+,  non-increasing in c.              (I)

With one budget for all, P(C = c)/(c+1) = P(Bin(n, gamma) = c+1)/(n gamma) turns (I) into one sum over users,

    H(eps) <= 1/n E( sum_{i <= n} Z_i )_+,    Z = L/gamma with probability gamma, else 0.                    (Z)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from shuffledp.accounting.bound import (
    MANY_LEVELS,
    AmplificationBound,
    epsilons_by_anchors,
    require_one_pure_round,
)
from shuffledp.accounting.clones import ClonePairProfile, clone_count, victim_line
from shuffledp.accounting.curve import CloneCurve
from shuffledp.accounting.gaussian import gaussian_epsilon
from shuffledp.accounting.profile import PrivacyProfile
from shuffledp.budgets import Budgets
from shuffledp.errors import OutOfRegime
from shuffledp.guarantee import Kind
from shuffledp.numerics.blocks import BlockedCount
from shuffledp.numerics.floats import EPS
from shuffledp.numerics.interval import Enclosure, FloatArray, Interval
from shuffledp.numerics.poisson_binomial import SuccessRange
from shuffledp.numerics.sums import IndependentSum, positive_part, positive_parts
from shuffledp.randomizers.base import LocalRandomizer, PairBlanket
from shuffledp.setting import Setting

EXACT_UP_TO = 48
"""Up to this many reports, h is a finite sum over all compositions."""
_PER_DEVIATION = 6.0
_RESOLUTION = 5000.0
_SMOOTHING = 0.04
_SLACK = 1e-12


class BlanketBound(AmplificationBound):
    """Theorem (I) with the family's common blanket, own budgets.

    See docs/theorems/blanket.md.
    """

    key = "blanket"
    kind = Kind.CERTIFIED_UPPER
    reference = "common blanket theorem (own proof; privacy blanket of Balle, Bell, Gascon, Nissim 2019)"

    def profile(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Profile of (I) for one victim; see `AmplificationBound.profile`."""
        family = self._family(setting)
        level = setting.budgets.index_of(epsilon0)
        pair = family.pair_blanket(epsilon0)
        if pair.two_point:  # two outcomes: (I) is the clone pair
            return ClonePairProfile(epsilon0, clone_count(setting.budgets, level))
        if setting.budgets.levels == 1:
            return OneBudgetBlanketProfile(epsilon0, pair, setting.budgets.n)
        return BlanketProfile(epsilon0, pair, blanket_count(setting.budgets, family, level))

    def level_epsilons(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """With many levels, one blanket count serves every victim, and a few victims the rest.

        Leaving the likeliest blanket user out of the count, whoever the victim is, can only raise h. A smaller
        budget mixes the victim's report with omega, L' = (1-t) L + t (1-e^eps), so h does not grow.
        """
        family = self._family(setting)
        budgets = setting.budgets
        if budgets.levels <= MANY_LEVELS:
            return super().level_epsilons(setting, delta, levels)
        if family.pair_blanket(1.0).two_point:
            return CloneCurve.of(budgets, delta).epsilons(budgets.epsilons[levels], delta)
        count = blanket_count(budgets, family, 0)

        def profile(epsilon0: float) -> PrivacyProfile:
            return BlanketProfile(epsilon0, family.pair_blanket(epsilon0), count)

        found = epsilons_by_anchors(budgets.epsilons[levels], delta, profile)
        return Enclosure(np.zeros_like(found.lower), found.upper)

    def _family(self, setting: Setting) -> LocalRandomizer:
        require_one_pure_round(setting, self.key)
        if isinstance(setting.randomizer, str):
            raise OutOfRegime("blanket needs a stated randomizer; got 'any'")
        if setting.budgets.levels > 1 and setting.seen in ("levels", "users"):
            raise OutOfRegime(
                f"blanket with several budgets needs unordered reports without levels; got seen = {setting.seen}"
            )
        return setting.randomizer


def blanket_count(budgets: Budgets, family: LocalRandomizer, without: int) -> SuccessRange:
    """Return the law of C of (I): the others, all but one of level ``without``, whose report is a blanket one."""
    others = budgets.counts.astype(np.float64)
    others[without] -= 1.0
    return SuccessRange.of(family.blanket_mass(budgets.epsilons), others, ulps=32)


def _loss_atoms(pair: PairBlanket, epsilon: float) -> FloatArray:
    """L = r_0 - e^eps r_1 = r_0 (1 - e^(eps - loss)) on each cell, to a few ulps; infinite where it overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        return -pair.ratios0 * np.expm1(epsilon - pair.losses)


@dataclass(frozen=True, eq=False)
class OneBudgetBlanketProfile(PrivacyProfile):
    """(Z): all n users share one budget.

    Parameters
    ----------
    epsilon0 : float
        The common budget, nats.
    pair : PairBlanket
        The randomizer's worst pair at that budget.
    n : int
        Number of users.
    """

    epsilon0: float
    pair: PairBlanket
    n: int

    @property
    def vanishes_at(self) -> float:
        """The victim's own budget."""
        return self.epsilon0

    def delta_at(self, epsilon: float) -> Interval:
        """(Z) by the tilted transform, or (I) by all compositions for few users."""
        trivial = victim_line(epsilon, self.epsilon0)[0] * (1 + 1e-12)  # the local profile
        atoms = _loss_atoms(self.pair, epsilon)
        gamma = self.pair.gamma
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            scaled = atoms / gamma
        if not np.isfinite(scaled).all():
            return Interval(0.0, trivial)
        if self.n <= EXACT_UP_TO:
            count = SuccessRange.of(np.array([gamma]), np.array([self.n - 1.0]), ulps=32)
            blocks = BlockedCount.of(count, 40.0, 75.0)
            h = _composition_values(self.pair.masses, atoms, self.n)
            at = blocks.left.astype(np.int64)
            found = blocks.expectation(Enclosure(h.lower[at], h.upper[at]))
        else:
            total = IndependentSum(
                np.array([float(self.n)]),
                scaled[None],
                (self.pair.masses * gamma)[None],
                np.array([-math.expm1(epsilon)]),  # E Z = E L = 1 - e^eps exactly
            )
            whole = positive_part(total)
            found = Interval(whole.lower / self.n * (1 - _SLACK), whole.upper / self.n * (1 + _SLACK))
        return Interval(min(found.lower, trivial), min(found.upper, trivial))

    def guess_epsilon(self, delta: float) -> float | None:
        """Gaussian limit, a first guess."""
        return _guess(self.pair, self.n * self.pair.gamma, delta)


@dataclass(frozen=True, eq=False)
class BlanketProfile(PrivacyProfile):
    """(I): own budgets.

    Parameters
    ----------
    epsilon0 : float
        The victim's budget, nats.
    pair : PairBlanket
        The randomizer's worst pair at that budget.
    blankets : SuccessRange
        Number of blanket reports among the other users.
    """

    epsilon0: float
    pair: PairBlanket
    blankets: SuccessRange
    _blocks: dict[float, BlockedCount] = field(default_factory=dict[float, BlockedCount], repr=False)

    @property
    def vanishes_at(self) -> float:
        """The victim's own budget."""
        return self.epsilon0

    def delta_at(self, epsilon: float) -> Interval:
        """(I): h at the ends of blocks of the blanket count; its far lower tail only if it matters."""
        atoms = _loss_atoms(self.pair, epsilon)
        trivial = victim_line(epsilon, self.epsilon0)[0] * (1 + 1e-12)  # h(c) <= h(0), the local profile
        value = Interval(0.0, 1.0)
        for depth in (11.0, 40.0):
            blocks = self._resolved(depth)
            value = blocks.expectation(self._values(blocks.left + 1.0, atoms, epsilon, trivial))
            if blocks.left.size < 2 or blocks.through.upper[0] <= 1e-7 * value.lower:
                break
        return value

    def _resolved(self, depth: float) -> BlockedCount:
        if depth not in self._blocks:
            # h changes by about z^2/2c per user: large counts need fewer blocks for the same accuracy
            count = self.blankets.most
            needed = _RESOLUTION * count.deviation / max(count.mean, 1.0)
            per_deviation = min(max(needed, 1.5), _PER_DEVIATION)
            self._blocks[depth] = BlockedCount.of(self.blankets, depth, per_deviation)
        return self._blocks[depth]

    def _values(self, m: FloatArray, atoms: FloatArray, epsilon: float, trivial: float) -> Enclosure:
        """h(m - 1), exactly for few reports and by the tilted transform for many."""
        lower, upper = np.zeros(m.size), np.full(m.size, trivial)
        if not np.isfinite(atoms).all():
            return Enclosure(lower, upper)
        few = m <= EXACT_UP_TO
        if few.any():
            h = _composition_values(self.pair.masses, atoms, int(m[few][-1]))
            at = m[few].astype(np.int64) - 1
            lower[few], upper[few] = h.lower[at], h.upper[at]
        if not few.all():
            law = IndependentSum(np.ones(1), atoms[None], self.pair.masses[None], np.array([-math.expm1(epsilon)]))
            many = positive_parts(law, m[~few], _SMOOTHING)
            lower[~few] = many.lower / m[~few] * (1 - _SLACK)
            upper[~few] = many.upper / m[~few] * (1 + _SLACK)
        return Enclosure(lower, np.minimum(upper, trivial))

    def guess_epsilon(self, delta: float) -> float | None:
        """Gaussian limit, a first guess."""
        return _guess(self.pair, self.blankets.most.mean + 1.0, delta)


def _guess(pair: PairBlanket, blankets: float, delta: float) -> float | None:
    """mu_v^2 = E_omega (r_0 - r_1)^2 / sum gamma_i."""
    second = float(pair.masses @ (pair.ratios0 - pair.ratios1) ** 2)
    return gaussian_epsilon(delta, math.sqrt(second / blankets)) if blankets > 0 else None


def _composition_values(masses: FloatArray, atoms: FloatArray, largest: int) -> Enclosure:
    """Enclose h(c) for c = 0, ..., largest - 1 by summing over all compositions of m = c + 1 reports.

    Weights are good to 1e-12 relative (log-factorials below 48!, exponents below 48 * 21). A sum of atoms may
    cancel; its rounding, 16 EPS of the sum of magnitudes, is added and subtracted before the positive part.
    """
    lower, upper = np.empty(largest), np.empty(largest)
    logs, three = np.log(masses), atoms
    for m in range(1, largest + 1):
        a, b = np.meshgrid(np.arange(m + 1.0), np.arange(m + 1.0), indexing="ij")
        rest = m - a - b
        keep = rest >= 0
        a, b, rest = a[keep], b[keep], rest[keep]
        total = a * three[0] + b * three[1] + rest * three[2]
        doubt = 16.0 * EPS * (a * abs(three[0]) + b * abs(three[1]) + rest * abs(three[2]))
        log_p = gammaln(m + 1.0) - gammaln(a + 1) - gammaln(b + 1) - gammaln(rest + 1)
        weight = np.exp(log_p + a * logs[0] + b * logs[1] + rest * logs[2]) / m
        lower[m - 1] = float(weight @ np.maximum(total - doubt, 0.0)) * (1 - 1e-11)
        upper[m - 1] = float(weight @ np.maximum(total + doubt, 0.0)) * (1 + 1e-11)
    return Enclosure(lower, upper)
