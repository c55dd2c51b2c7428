"""The privacy blanket with Hoeffding's and Bennett's inequality, as published for one budget.

With W ~ omega, L = r_0(W) - e^eps r_1(W), a = e^eps - 1 = -E L, and M ~ Bin(n, gamma) blanket reports,

    delta(eps) <= 1/(gamma n) E[ (L_1 + ... + L_M)_+ ; M >= 1 ].

Hoeffding, with b the length of an interval that contains L, and all M counted:

    delta(eps) <= 1/(gamma n) * b^2/(4 a) * (1 - gamma (1 - e^{-2 a^2/b^2}))^n.                                (H)

Bennett, with top >= max L and square >= E L^2, beta = a top/square, phi(u) = (1+u) log(1+u) - u:

    delta(eps) <= 1/(gamma n) * top/log(1+beta) * E[ e^{-M s} ; M >= 1 ],   s = square/top^2 * phi(beta),    (B)

whose expectation is (1 - gamma + gamma e^{-s})^n - (1 - gamma)^n, so that nothing is truncated.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.published.closed import CODE, PublishedBound, require_one_budget, require_unordered
from shuffledp.accounting.theorems.blanket.loss_laws import loss_law
from shuffledp.errors import OutOfRegime
from shuffledp.numerics.floats import TINY, Interval, Upper, roundoff
from shuffledp.numerics.functions import entropy_gap
from shuffledp.randomizers.base import PairBlanket
from shuffledp.setting import Kind, Setting

_SLACK = roundoff(8192)
"""Relative error of exponents and factors: some twenty operations without cancellation, far above their rounding."""
_LARGEST = 300.0
"""Largest loss, as squares of e to a larger one may overflow."""


class LossBounds(NamedTuple):
    """Bounds on the loss variable L = r_0(W) - e^eps r_1(W) that the inequalities use, at one epsilon.

    r_0 and r_1 are the ratios of the two neighbouring reports' laws to the blanket's law, W a report of the blanket.

    Parameters
    ----------
    top : float
        At least max L; the divergence is 0 where it is not positive.
    width : float
        Length of an interval that contains L.
    square : float
        At least E L^2.
    """

    top: float
    width: float
    square: float


Losses = Callable[[float], tuple[LossBounds, ...]]
"""Function of epsilon (nats, positive) that returns a `LossBounds` for each pair of inputs that may be the worst."""


def generic_losses(epsilon0: float) -> Losses:
    """Return a function from epsilon (nats) to bounds on L for every epsilon0-LDP randomizer.

    Its blanket mass g is in [e^{-epsilon0}, 1]. Both ratios r_0, r_1 are in [g, g e^epsilon0] and have mean 1. From
    (r - g)(g e^epsilon0 - r) >= 0 and (r_0 - g)(r_1 - g) >= 0, with x = e^eps, E = e^epsilon0, a = x - 1 and
    K = (E-1)(1+x^2) + a^2,

        L in g [1 - x E, E - x],    E L^2 <= g (a^2 + (1-g) K),    largest at 1 - g = (E-1)(1+x^2)/(2K).
    """
    spread = math.expm1(epsilon0)

    def at(epsilon: float) -> tuple[LossBounds, ...]:
        x, a = math.exp(epsilon), math.expm1(epsilon)
        curve = spread * (1.0 + x * x) + a * a
        rest = min(0.5 * spread * (1.0 + x * x) / curve, -math.expm1(-epsilon0))  # 1 - g, without cancellation
        square = (1.0 - rest) * (a * a + rest * curve)
        return (LossBounds(x * math.expm1(epsilon0 - epsilon), (x + 1.0) * spread, square),)

    return at


def laplace_losses(epsilon0: float) -> Losses:
    """Return a function from epsilon (nats) to bounds on L for Laplace noise of scale 1/epsilon0 on [0, 1].

    The records 0 and 1 are the worst pair. With u = e^{epsilon0/2}, gamma = 1/u: E r^2 = 1 + (u-1)^2 (2u+1)/(3u^2),
    E r_0 r_1 = 1 - (u-1)^2/u^2, and L in gamma [1 - x u^2, u^2 - x], x = e^eps.
    """
    u, rise = math.exp(epsilon0 / 2.0), math.expm1(epsilon0 / 2.0)

    def at(epsilon: float) -> tuple[LossBounds, ...]:
        x, a = math.exp(epsilon), math.expm1(epsilon)
        apart = (rise / u) ** 2
        square = a * a + apart * ((1.0 + x * x) * (2.0 * u + 1.0) / 3.0 + 2.0 * x)
        return (LossBounds(x * math.expm1(epsilon0 - epsilon) / u, (x + 1.0) * math.expm1(epsilon0) / u, square),)

    return at


def pair_losses(pairs: tuple[PairBlanket, ...]) -> Losses:
    """Return a function from epsilon (nats) to the maximum, range and second moment of L for each pair of inputs.

    The pairs are those of a discrete randomizer; the values are exact but for rounding.
    """

    def at(epsilon: float) -> tuple[LossBounds, ...]:
        bounds: list[LossBounds] = []
        for pair in pairs:
            law = loss_law(pair, epsilon).one
            values, masses = law.values[0], law.probabilities[0]
            top, bottom = float(values.max()), float(values.min())
            bounds.append(LossBounds(top, top - bottom, float(masses @ values**2)))
        return tuple(bounds)

    return at


@dataclass(frozen=True, eq=False)
class BlanketInequalityProfile(PrivacyProfile):
    """Profile by Hoeffding's or Bennett's inequality for the privacy blanket, for the worst pair of inputs.

    Parameters
    ----------
    epsilon0 : float
        The common local budget, nats; for larger epsilon L is never positive.
    gamma : float
        Blanket mass: the probability, in (0, 1], that a report is drawn independently of its record; good to 32 ulps.
    n : int
        Number of users.
    losses : callable
        Bounds on the loss variable L at each epsilon, good to 1e-14 relative.
    """

    epsilon0: float
    gamma: float
    n: int
    losses: Losses

    @abstractmethod
    def log_parts(self, a: float, loss: LossBounds) -> tuple[float, float]:
        """Return log(gamma n delta) as two summands: the logarithm of its factors, and the exponent that grows with n.

        Parameters
        ----------
        a : float
            e^epsilon - 1, positive.
        loss : LossBounds
            Bounds on the loss variable at that epsilon.
        """

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats) from which on delta is 0: the local budget that all users share."""
        return Upper(self.epsilon0)

    def delta_at(self, epsilon: float) -> Interval:
        """Enclose the inequality's bound on delta, the largest over all pairs of inputs; 1 on overflow."""
        if epsilon + self.epsilon0 > _LARGEST:
            return Interval(0.0, 1.0)
        if epsilon == 0.0:
            return Interval(1.0, 1.0)
        deltas = [self._of(math.expm1(epsilon), loss) for loss in self.losses(epsilon) if loss.top > 0.0]
        return Interval(max((f.lower for f in deltas), default=0.0), max((f.upper for f in deltas), default=0.0))

    def _of(self, a: float, loss: LossBounds) -> Interval:
        factor, exponent = self.log_parts(a, loss)
        factor -= math.log(self.gamma) + math.log(self.n)
        doubt = _SLACK * (1.0 + abs(factor) + abs(exponent))
        low, high = factor + exponent - doubt, factor + exponent + doubt
        return Interval(min(max(math.exp(min(low, 1.0)) - TINY, 0.0), 1.0), min(math.exp(min(high, 1.0)) + TINY, 1.0))

    def _top(self, target: float) -> Upper:
        """Return the budget itself: the inequality may be above randomized response's own profile below it."""
        del target
        return Upper(self.epsilon0)

    def _mixture(self, decay: float) -> float:
        """Log(1 - gamma (1 - e^{-decay})); as decay < 2, log1p keeps its relative accuracy."""
        return math.log1p(self.gamma * math.expm1(-decay))


class HoeffdingProfile(BlanketInequalityProfile):
    """Profile by Hoeffding's inequality, (H) of the module."""

    def log_parts(self, a: float, loss: LossBounds) -> tuple[float, float]:
        """Return log(b^2/(4a)) and n log(1 - gamma (1 - e^{-2 a^2/b^2})), b the width of L; see the base class."""
        ratio = a / loss.width
        return 2.0 * math.log(loss.width) - math.log(4.0 * a), self.n * self._mixture(2.0 * ratio * ratio)


class BennettProfile(BlanketInequalityProfile):
    """Profile by Bennett's inequality, (B) of the module."""

    def log_parts(self, a: float, loss: LossBounds) -> tuple[float, float]:
        """Return the logarithm of the factors of (B) times gamma n, and n log(1 - gamma (1 - e^{-s})).

        The factors are (square/a) (beta/log(1+beta)) P', where P' removes the case that no report is of the blanket (M
        = 0).
        """
        beta = a / loss.square * loss.top
        if beta < 1e-5:  # two terms of the series; the next are below 1e-10 of a factor near 1
            curve, slope = 0.5 - beta / 6.0 + beta * beta / 12.0, 1.0 + beta / 2.0 - beta * beta / 12.0
        else:
            curve, slope = float(entropy_gap(np.array(beta))) / beta / beta, beta / math.log1p(beta)
        decay = a / loss.square * a * curve
        none = 1.0 - self.gamma
        some = -math.expm1(-self.n * math.log1p(self.gamma * math.exp(-decay) / none)) if none > 0.0 else 1.0
        return math.log(loss.square / a * slope * some), self.n * self._mixture(decay)


class BalleBound(PublishedBound):
    """Base of the two bounds by the privacy blanket of Balle et al.; finds the constants of the randomizer."""

    kind = Kind.CERTIFIED_UPPER
    source = CODE

    def blanket(self, setting: Setting, epsilon0: float) -> tuple[float, Losses]:
        """Return the blanket mass gamma and the bounds on the loss variable L, for the setting's randomizer.

        The randomizer is discrete, adds Laplace noise, or is any pure one; other randomizers, several budgets and
        ordered outputs of "any" are refused.
        """
        require_one_budget(setting, self.key)
        require_unordered(setting, self.key)
        noise, family = setting.adds_noise, setting.discrete
        if noise is not None:
            if noise.noise != "laplace":
                raise OutOfRegime(f"{self.key} needs a pure randomizer; got {noise.name}")
            return math.exp(-epsilon0 / 2.0), laplace_losses(epsilon0)
        pairs = () if family is None else family.pair_blankets(epsilon0)
        if family is None or any(pair.spread is not None for pair in pairs):
            return math.exp(-epsilon0), generic_losses(epsilon0)
        gamma = min(pair.gamma for pair in pairs)
        if not gamma > 0.0:
            raise OutOfRegime(f"{self.key} needs an output that every record may give; {family.name} has none")
        return gamma, pair_losses(pairs)


class HoeffdingBound(BalleBound):
    """Upper bound by the privacy blanket with Hoeffding's inequality. See docs/theorems/balle19-hoeffding.md."""

    key = "balle19-hoeffding"
    reference = "Balle, Bell, Gascón, Nissim (CRYPTO 2019), privacy blanket with Hoeffding's inequality"

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the profile by Hoeffding's inequality (H); refuse several budgets, or no blanket.

        See `AmplificationBound.one_round`.
        """
        gamma, losses = self.blanket(setting, epsilon0)
        return HoeffdingProfile(epsilon0, gamma, setting.budgets.n, losses)


class BennettBound(BalleBound):
    """Upper bound by the privacy blanket with Bennett's inequality. See docs/theorems/balle19-bennett.md."""

    key = "balle19-bennett"
    reference = "Balle, Bell, Gascón, Nissim (CRYPTO 2019), privacy blanket with Bennett's inequality"

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the profile by Bennett's inequality (B); refuse several budgets, or no blanket.

        See `AmplificationBound.one_round`.
        """
        gamma, losses = self.blanket(setting, epsilon0)
        return BennettProfile(epsilon0, gamma, setting.budgets.n, losses)
