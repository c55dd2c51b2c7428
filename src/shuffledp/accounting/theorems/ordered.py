"""Ordered outputs of permuted users (theorem (II)): step t has its own budget, the analyst sees every step.

For pure LDP steps, adaptive or not, and every eps >= 0 (docs/theorems/clones.md has the proof)

    H(eps) <= 1/n E( sum_t Z_t )_+,    Z_t independent,
    Z_t = e^{eps_t} - e^eps,  1 - e^{eps_t + eps},  0    with probabilities s_t, s_t, 1 - 2 s_t,
    s_t = 1/(1 + e^{eps_t}).

Budgets belong to steps, a user gets a random one, so there is one guarantee for everybody.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import AmplificationBound, require_one_pure_round, without_smallest
from shuffledp.accounting.profiles.composition import SmallestProfile
from shuffledp.accounting.profiles.profile import PrivacyProfile, gaussian_epsilon
from shuffledp.accounting.theorems.blanket.loss_laws import loss_law, stacked
from shuffledp.accounting.theorems.blanket.pairs import LargestProfile, worst_first
from shuffledp.accounting.theorems.clones.pair import clone_probability, victim_line
from shuffledp.budgets import Budgets
from shuffledp.errors import OutOfRegime
from shuffledp.numerics.floats import Enclosure, FloatArray, Interval, Upper, inflated
from shuffledp.numerics.sums import IndependentSum, positive_part
from shuffledp.randomizers.base import PairBlanket
from shuffledp.setting import Kind, Setting

MOST_LEVELS = 250
"""Largest number of levels; more are rounded up to this many, as a larger budget at a step is still an upper bound."""
_SMOOTHING = 0.03


@dataclass(frozen=True, eq=False)
class OrderedProfile(PrivacyProfile):
    """Upper bound by the clone theorem for ordered outputs (II), for steps with any pure randomizers.

    Parameters
    ----------
    budgets : Budgets
        The local budgets of the steps; each user gets a random step.
    """

    budgets: Budgets

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats) from which on delta is 0: the largest budget of any step."""
        return Upper(float(self.budgets.epsilons[-1]))

    def delta_at(self, epsilon: float) -> Interval:
        """Enclose the theorem's bound (II) on delta(epsilon), by the tilted transform."""
        trivial = inflated(victim_line(epsilon, self.vanishes_at)[0], 16)
        steps, counts = self.budgets.epsilons, self.budgets.counts.astype(np.float64)
        with np.errstate(over="ignore"):
            # e^{eps_t} - e^eps = -e^eps expm1(...) either way round, without cancellation
            high = np.exp(np.maximum(steps, epsilon)) * -np.expm1(-np.abs(steps - epsilon)) * np.sign(steps - epsilon)
            values = np.stack((high, -np.expm1(steps + epsilon)), axis=1)
        if not np.abs(values).max() < 1e150:
            return Interval(0.0, trivial)
        half = 0.5 * clone_probability(steps)
        means = np.full(steps.size, -math.expm1(epsilon))
        # a rounded exponent x costs |x| roundoffs
        doubt = 8.0 + 2.0 * (epsilon + float(steps[-1]))
        total = IndependentSum(counts, values, np.stack((half, half), axis=1), means, doubt)
        return (positive_part(total, _SMOOTHING) / self.budgets.n).clipped(0.0, trivial)

    def guess_epsilon(self, delta: float) -> float | None:
        """Return the epsilon (nats) of the Gaussian limit, mu^2 = (2/n^2) sum_t (e^{eps_t} - 1)^2/(1 + e^{eps_t})."""
        low = np.exp(-self.budgets.epsilons)
        spread = np.expm1(self.budgets.epsilons) * -np.expm1(-self.budgets.epsilons) / (1.0 + low)
        with np.errstate(over="ignore"):
            total = 2.0 * float(spread @ self.budgets.counts)
        return gaussian_epsilon(delta, math.sqrt(total) / self.budgets.n) if math.isfinite(total) else None


@dataclass(frozen=True, eq=False)
class KnownStepsProfile(PrivacyProfile):
    """Upper bound (II) for a stated discrete randomizer: Z_t = L_t/gamma_t with probability gamma_t, else 0.

    L_t is the loss variable of step t against its blanket, and gamma_t the blanket's mass.

    Parameters
    ----------
    budgets : Budgets
        The local budgets of the steps.
    pairs : tuple of PairBlanket
        One pair of inputs, as the randomizer of each level sees it; gamma > 0.
    """

    budgets: Budgets
    pairs: tuple[PairBlanket, ...]

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats) from which on delta is 0: the largest privacy loss at any step."""
        return max(pair.largest_loss for pair in self.pairs)

    def delta_at(self, epsilon: float) -> Interval:
        """Enclose the bound (II) on delta(epsilon); the probability of outputs outside a step's blanket is added."""
        laws = [loss_law(pair, epsilon) for pair in self.pairs]
        sums = [law.diluted(pair.gamma) for law, pair in zip(laws, self.pairs, strict=True)]
        if not all(law.finite for law in sums):
            return Interval(0.0, 1.0)
        counts, n = self.budgets.counts.astype(np.float64), self.budgets.n
        total = stacked([law.one for law in sums])  # a budget may leave some cell without mass
        expectation = positive_part(replace(total, counts=counts), _SMOOTHING)
        charge = float(np.array([law.charge for law in laws]) @ counts)
        charged = expectation + Interval(0.0, inflated(charge, 2 * len(laws) + 4))
        return (charged / n).clipped(0.0, 1.0)

    def guess_epsilon(self, delta: float) -> float | None:
        """Return the epsilon (nats) of the Gaussian limit, mu^2 = (1/n^2) sum_t E_omega (r_0 - r_1)^2/gamma_t."""
        with np.errstate(over="ignore"):
            spread = np.array([float(p.masses @ (p.ratios0 - p.ratios1) ** 2) / p.gamma for p in self.pairs])
            total = float(spread @ self.budgets.counts)
        return gaussian_epsilon(delta, math.sqrt(total) / self.budgets.n) if math.isfinite(total) else None


class OrderedBound(AmplificationBound):
    """Upper bound for ordered, possibly adaptive outputs of randomly permuted users, with a budget for each step.

    See docs/theorems/ordered.md.
    """

    key = "ordered"
    kind = Kind.CERTIFIED_UPPER
    reference = "clone theorem for ordered, adaptive outputs (own proof), one budget per step"

    def company(self, setting: Setting, budgets: Budgets, level: int, exposed: int) -> Budgets:
        """Remove the ``exposed`` steps with the smallest budgets, the worst choice: steps belong to no user.

        See `AmplificationBound.company`.
        """
        return without_smallest(budgets, budgets.levels - 1, exposed)

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the profile by the ordered clone theorem (II), the same for every user.

        See `AmplificationBound.one_round`.
        """
        require_one_pure_round(setting, self.key)
        if setting.seen != "users":
            raise OutOfRegime(f"ordered needs budgets attached to steps (seen = users); got seen = {setting.seen}")
        steps = _at_most(setting.budgets, MOST_LEVELS)
        family = setting.discrete
        if family is None or family.two_point:
            return OrderedProfile(steps)
        by_level = [worst_first(family.pair_blankets(float(budget))) for budget in steps.epsilons]
        if min(pairs[0].gamma for pairs in by_level) <= 0.0 or len({len(pairs) for pairs in by_level}) > 1:
            return OrderedProfile(steps)
        parts = tuple(KnownStepsProfile(steps, pairs) for pairs in zip(*by_level, strict=True))
        return SmallestProfile((OrderedProfile(steps), parts[0] if len(parts) == 1 else LargestProfile(parts)))

    def level_epsilons(
        self, setting: Setting, delta: float, levels: NDArray[np.int64], ceilings: FloatArray | None = None
    ) -> Enclosure:
        """Enclose the epsilon at ``delta`` (nats), the same for all listed levels; shape (listed,).

        See `AmplificationBound.level_epsilons`.
        """
        epsilon = self.profile(setting, float(setting.budgets.epsilons[0])).epsilon(delta)
        return Enclosure(np.full(levels.size, epsilon.lower), np.full(levels.size, epsilon.upper))


def _at_most(budgets: Budgets, most: int) -> Budgets:
    """Round budgets up to at most so many levels, each holding about the same number of steps."""
    if budgets.levels <= most:
        return budgets
    through = np.cumsum(budgets.counts)
    ends = np.unique(np.searchsorted(through, np.linspace(0.0, float(through[-1]), most + 1)[1:], side="left"))
    ends = np.minimum(ends, budgets.levels - 1)
    reached = through[ends]
    return Budgets(budgets.epsilons[ends], np.diff(np.concatenate(([0], reached))))
