"""The published personalised formula of Liu et al. ("Echo of neighbors"), with its authors' evaluation.

With p_ij = (eps_i/eps_j) (1 - e^{-eps_j})/(1 - e^{-eps_i}) e^{-max(eps_i, eps_j)} and user 1 the one of largest budget,

    S = sum_{i != 1} 1/n sum_j p_ij                                                                           (S)

stands for the expected number of clones of user 1, whose pair is then evaluated with a normal clone count. Averaging
over j is not sound: the target of the average is a user whom i need not resemble.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shuffledp.accounting.profiles.profile import PrivacyProfile, check_delta
from shuffledp.accounting.published.base import CODE, PublishedBound
from shuffledp.accounting.theorems.clones.pair import noiseless_divergence, victim_line
from shuffledp.budgets import Budgets
from shuffledp.errors import OutOfRegime
from shuffledp.guarantee import Kind
from shuffledp.numerics.floats import TINY, Upper
from shuffledp.numerics.interval import FloatArray, Interval
from shuffledp.numerics.special import ndtr
from shuffledp.setting import Setting

STEP = 100
"""Clone counts to a block, as in the published runs."""
HALVINGS = 10
"""Halvings of the published search, which starts from the closed form."""
_REACH = 15.0
_MOST_BLOCKS = 1000.0
"""On either side; beyond (some 10^7 users), blocks are wider, which the normal count does not notice."""


def echoes(budgets: Budgets, power: int) -> float:
    """Return sum_{i != 1} sum_j (p_ij/n)^power, with one of the users of largest budget left out of i.

    p_ij is a function of eps_i times one of eps_j on either side of eps_i = eps_j, so two cumulative sums do.

    Parameters
    ----------
    budgets : Budgets
        Positive budgets.
    power : {1, 2}
        1 for S of (S), 2 for what its variance needs.
    """
    epsilons = budgets.epsilons
    weights = budgets.counts.astype(np.float64)
    steep = (epsilons / -np.expm1(-epsilons)) ** power  # eps/(1 - e^-eps)
    decay = np.exp(-power * epsilons)
    below = np.cumsum(weights / steep)  # j up to i: e^{-eps_i}
    above = np.sum(weights * decay / steep) - np.cumsum(weights * decay / steep)  # j beyond i: e^{-eps_j}
    each = steep * (decay * below + np.maximum(above, 0.0)) / float(budgets.n) ** power
    weights[-1] -= 1.0
    return float(weights @ each)


@dataclass(frozen=True)
class EchoProfile(PrivacyProfile):
    """The clone pair of the largest budget with a normal count N(S - 1/2, sigma^2), in blocks, as published.

    Evaluated in double precision with the published quirks (each block takes the divergence of its left end, and the
    chance of one count in `STEP` falls between two blocks), so that the published numbers come out. No certificate.

    Parameters
    ----------
    epsilon0 : float
        The largest budget, nats.
    n : int
        Number of users.
    expected : float
        S.
    deviation : float
        Sigma.
    """

    epsilon0: float
    n: int
    expected: float
    deviation: float

    @property
    def vanishes_at(self) -> Upper:
        """The largest budget of all."""
        return Upper(self.epsilon0)

    def closed_form(self, delta: float) -> float:
        """Return log(1 + tanh(eps_1/2) (8 sqrt(log(4/delta)/S) + 8/S)), the source's theorem.

        Parameters
        ----------
        delta : float
            In (0, 1).

        Raises
        ------
        OutOfRegime
            If S < 16 log(4/delta).
        """
        need = math.log(4.0) - math.log(check_delta(delta))
        if self.expected < 16.0 * need:
            raise OutOfRegime(
                f"liu23 needs S >= 16 log(4/delta) = {16.0 * need:.4g} expected clones at delta = {delta:g}; "
                f"got S = {self.expected:.4g}"
            )
        rise = 8.0 * math.sqrt(need / self.expected) + 8.0 / self.expected
        return math.log1p(math.tanh(self.epsilon0 / 2.0) * rise)

    def delta_at(self, epsilon: float) -> Interval:
        """Sum over blocks of their chance times the divergence at their left end."""
        left, chance = self._blocks()
        scale, excess = victim_line(epsilon, self.epsilon0)
        psi = noiseless_divergence(left, excess)
        value = scale * float(chance @ (0.5 * (psi.lower + psi.upper)))
        return Interval(value, value)

    def epsilon(self, delta: float) -> Interval:
        """Ten halvings from the closed form, the upper end of the last one.

        Raises
        ------
        OutOfRegime
            If S < 16 log(4/delta).
        """
        low, high = 0.0, self.closed_form(delta)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.delta(middle).upper < delta else (middle, high)
        return Interval(high, high)

    def _blocks(self) -> tuple[FloatArray, FloatArray]:
        """Left ends and chances of the blocks within reach of the expected count, which starts a block."""
        centre, wide = math.ceil(self.expected), math.ceil(_REACH * self.deviation / (STEP * _MOST_BLOCKS))
        reach = math.ceil(_REACH * self.deviation / (STEP * wide)) + 1
        steps = np.arange(-reach, reach + 1.0)
        left = centre + wide * (STEP * steps + (steps > 0))  # the block that starts at the centre has one count more
        right = centre + wide * (STEP * (steps + 1.0) - (steps < 0))
        inside = (left <= self.n - 1.0) & (right >= 0.0)
        left, right = np.maximum(left[inside], 0.0), np.minimum(right[inside], self.n - 1.0)
        mean = self.expected - 0.5
        return left, ndtr((right - mean) / self.deviation) - ndtr((left - mean) / self.deviation)


class LiuBound(PublishedBound):
    """The personalised bound of Liu et al., as their code evaluates it; asymptotic, and unsound in places.

    See docs/theorems/liu23.md.
    """

    key = "liu23"
    kind = Kind.ASYMPTOTIC
    reference = "Liu, Zhao, Xiong, Liu, Chen (AAAI 2023), personalised clones, as its code evaluates them"
    source = CODE

    def one_round(self, setting: Setting, epsilon0: float) -> EchoProfile:
        """Return the victim of the largest budget, whose number serves all; see `AmplificationBound.one_round`."""
        budgets = setting.budgets
        if not budgets.is_pure:
            raise OutOfRegime(f"liu23 needs pure local budgets (delta0 = 0); got delta0 = {budgets.deltas.max():g}")
        if not budgets.epsilons[0] > 0.0:
            raise OutOfRegime(f"liu23 needs every epsilon0 > 0; got {budgets.epsilons[0]:g}")
        if budgets.n < 2:
            raise OutOfRegime(f"liu23 needs n >= 2 users; got n = {budgets.n}")
        if budgets.levels > 1 and setting.seen in ("levels", "users"):
            raise OutOfRegime(
                f"liu23 with several budgets is stated for unordered reports without levels; got seen = {setting.seen}"
            )
        expected = echoes(budgets, 1)
        deviation = math.sqrt(max(expected - echoes(budgets, 2), TINY))
        return EchoProfile(float(budgets.epsilons[-1]), budgets.n, expected, deviation)
