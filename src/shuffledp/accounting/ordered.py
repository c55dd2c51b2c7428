"""Ordered outputs of permuted users (theorem (II)): step t has its own budget, the analyst sees every step.

For pure LDP steps, adaptive or not, and every eps >= 0 (docs/theorems/clones.md has the proof)

    H(eps) <= 1/n E( sum_t Z_t )_+,    Z_t independent,
    Z_t = e^{eps_t} - e^eps,  1 - e^{eps_t + eps},  0    with probabilities s_t, s_t, 1 - 2 s_t,
    s_t = 1/(1 + e^{eps_t}).

Budgets belong to steps, a user gets a random one, so there is one guarantee for everybody.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import AmplificationBound, require_one_pure_round
from shuffledp.accounting.clones import clone_probability, victim_line
from shuffledp.accounting.gaussian import gaussian_epsilon
from shuffledp.accounting.profile import PrivacyProfile
from shuffledp.budgets import Budgets
from shuffledp.errors import OutOfRegime
from shuffledp.guarantee import Kind
from shuffledp.numerics.interval import Enclosure, Interval
from shuffledp.numerics.sums import IndependentSum, positive_part
from shuffledp.setting import Setting

MOST_LEVELS = 250
"""More levels are rounded up to this many: a larger budget at a step is still an upper bound."""
_SMOOTHING = 0.04


@dataclass(frozen=True, eq=False)
class OrderedProfile(PrivacyProfile):
    """(II) for one population of steps.

    Parameters
    ----------
    budgets : Budgets
        The steps' budgets.
    """

    budgets: Budgets

    @property
    def vanishes_at(self) -> float:
        """The largest budget of any step."""
        return float(self.budgets.epsilons[-1])

    def delta_at(self, epsilon: float) -> Interval:
        """(II) by the tilted transform."""
        trivial = victim_line(epsilon, self.vanishes_at)[0] * (1 + 1e-12)
        steps, counts = self.budgets.epsilons, self.budgets.counts.astype(np.float64)
        with np.errstate(over="ignore"):
            # e^{eps_t} - e^eps = -e^eps expm1(...) either way round, without cancellation
            high = np.exp(np.maximum(steps, epsilon)) * -np.expm1(-np.abs(steps - epsilon)) * np.sign(steps - epsilon)
            values = np.stack((high, -np.expm1(steps + epsilon)), axis=1)
        if not np.abs(values).max() < 1e150:
            return Interval(0.0, trivial)
        half = 0.5 * clone_probability(steps)
        means = np.full(steps.size, -math.expm1(epsilon))
        found = positive_part(IndependentSum(counts, values, np.stack((half, half), axis=1), means), _SMOOTHING)
        n = self.budgets.n
        return Interval(min(found.lower / n * (1 - 1e-12), trivial), min(found.upper / n * (1 + 1e-12), trivial))

    def guess_epsilon(self, delta: float) -> float | None:
        """Gaussian limit, mu^2 = (2/n^2) sum_t (e^{eps_t} - 1)^2/(1 + e^{eps_t})."""
        low = np.exp(-self.budgets.epsilons)
        spread = np.expm1(self.budgets.epsilons) * -np.expm1(-self.budgets.epsilons) / (1.0 + low)
        return gaussian_epsilon(delta, math.sqrt(2.0 * float(spread @ self.budgets.counts)) / self.budgets.n)


class OrderedBound(AmplificationBound):
    """Permuted users, ordered and possibly adaptive outputs, own budget per step.

    See docs/theorems/ordered.md.
    """

    key = "ordered"
    kind = Kind.CERTIFIED_UPPER
    reference = "clone theorem for ordered, adaptive outputs (own proof), one budget per step"

    def profile(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """The same profile for every user; see `AmplificationBound.profile`."""
        require_one_pure_round(setting, self.key)
        if setting.seen != "users":
            raise OutOfRegime(f"ordered needs budgets attached to steps (seen = users); got seen = {setting.seen}")
        setting.budgets.index_of(epsilon0)
        return OrderedProfile(_at_most(setting.budgets, MOST_LEVELS))

    def level_epsilons(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """One number for all."""
        found = self.profile(setting, float(setting.budgets.epsilons[0])).epsilon(delta)
        return Enclosure(np.full(levels.size, found.lower), np.full(levels.size, found.upper))


def _at_most(budgets: Budgets, most: int) -> Budgets:
    """Round budgets up to at most so many levels, each holding about the same number of steps."""
    if budgets.levels <= most:
        return budgets
    through = np.cumsum(budgets.counts)
    ends = np.unique(np.searchsorted(through, np.linspace(0.0, float(through[-1]), most + 1)[1:], side="left"))
    ends = np.minimum(ends, budgets.levels - 1)
    reached = through[ends]
    return Budgets(budgets.epsilons[ends], np.diff(np.concatenate(([0], reached))))
