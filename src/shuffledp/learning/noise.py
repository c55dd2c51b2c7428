"""Noise of the messages: whole numbers on a grid, drawn from secure words.

A message is a vector of whole numbers (the clipped gradient over a public grid step, rounded), and so is its noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.discrete_noise import SMALLEST_WIDE, discrete_gaussian, discrete_laplace, wide_gaussian
from shuffledp.numerics.floats import round_down, round_up
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.randomizers.noise import Gaussian, Laplace

Name = Literal["gaussian", "laplace"]


class Mechanism(Protocol):
    """A kind of noise: which norm it answers, how wide it must be, how it is drawn."""

    @property
    def name(self) -> Name:
        """What the caller calls it."""
        ...

    @property
    def order(self) -> Literal[1, 2]:
        """The norm in which sensitivity is measured."""
        ...

    def multiples(self, epsilon0: ArrayLike, delta0: ArrayLike) -> FloatArray:
        """Scale of the noise in units of the sensitivity; inf where nothing may be told."""
        ...

    def drawn_scale(self, sensitivity: FloatArray, multiple: FloatArray) -> FloatArray:
        """Scale that is drawn, in grid steps, for a sensitivity in grid steps."""
        ...

    def counted_scale(self, drawn: FloatArray) -> FloatArray:
        """Scale that may be counted on in accounting, in grid steps: at most ``drawn``."""
        ...

    def draw(self, scale: float, n: int, random: Randomness) -> NDArray[np.int64]:
        """Independent draws of at least this scale, shape (n,)."""
        ...


@dataclass(frozen=True)
class GaussianMechanism:
    """Discrete normal noise, calibrated analytically (Balle and Wang 2018), Euclidean norm."""

    @property
    def name(self) -> Name:
        """The spelling ``"gaussian"``."""
        return "gaussian"

    @property
    def order(self) -> Literal[1, 2]:
        """The order of the norm, 2."""
        return 2

    def multiples(self, epsilon0: ArrayLike, delta0: ArrayLike) -> FloatArray:
        """Smallest sigma/sensitivity with Balle and Wang's condition; inf where epsilon0 = 0."""
        law = Gaussian(0.0, 1.0)
        law.check_budgets(epsilon0, delta0)
        budgets, deltas = np.broadcast_arrays(np.asarray(epsilon0, dtype=np.float64), np.asarray(delta0))
        return np.where(budgets > 0.0, law.scale(budgets, deltas), math.inf)

    def drawn_scale(self, sensitivity: FloatArray, multiple: FloatArray) -> FloatArray:
        """`counted_scale`, inverted and rounded up."""
        return np.maximum(round_up(np.hypot(sensitivity * multiple, _SMOOTHING), 16), SMALLEST_DRAWN)

    def counted_scale(self, drawn: FloatArray) -> FloatArray:
        """sqrt(drawn^2 - 9): see `UNEVENNESS`."""
        return round_down(np.sqrt((drawn - _SMOOTHING) * (drawn + _SMOOTHING)), 8)

    def draw(self, scale: float, n: int, random: Randomness) -> NDArray[np.int64]:
        """Draw from exp(-k^2/(2 s^2)) on the whole numbers, s the scale; if that is wide, s is up to 1e-3 larger."""
        return (wide_gaussian if scale >= SMALLEST_WIDE else discrete_gaussian)(scale, n, random)


_SMOOTHING = 3.0
UNEVENNESS = 1e-76
"""Relative error of every probability of one discrete normal law, or of one sum of two, as seen below.

Let Z be normal with mean m, a whole number, and variance t^2, and K given Z = z have probabilities proportional to
exp(-(k - z)^2/18) on the whole numbers: post-processing of m + t N(0, 1). By Poisson summation the sum over k of the
weights is sqrt(18 pi) (1 + r(z)), |r| <= 2.1 exp(-18 pi^2) < 1.5e-77. So K has probabilities within that factor of
exp(-(k - m)^2/(2 (t^2 + 9))) up to one constant, which are those of the discrete normal law of scale^2 = t^2 + 9
centred at m: both are within 1e-76 of each other, relatively. Each number of each message is one such K. Sums: the
convolution of discrete normal laws of scales a and b has probabilities exp(-k^2/(2 (a^2 + b^2))) times a sum over a
shifted lattice of scale ab/sqrt(a^2 + b^2), again constant up to 1e-76 if that scale is at least 3. Wide noise is such
a sum, of up to eight terms (`wide_gaussian`). With fewer than 1e20 numbers in all rounds together, every probability is
within 1e-54 of what is accounted, far inside the rounding that the Gaussian profile counts.
"""
SMALLEST_DRAWN = 5.0
"""Scales of a discrete normal law below this are refused: two of them make a lattice of scale 3."""


@dataclass(frozen=True)
class LaplaceMechanism:
    """Discrete Laplace noise, P(k) proportional to exp(-|k|/b): pure, norm of absolute values."""

    @property
    def name(self) -> Name:
        """The spelling ``"laplace"``."""
        return "laplace"

    @property
    def order(self) -> Literal[1, 2]:
        """The order of the norm, 1."""
        return 1

    def multiples(self, epsilon0: ArrayLike, delta0: ArrayLike) -> FloatArray:
        """1/epsilon0, rounded up."""
        return Laplace(0.0, 1.0).scale(epsilon0, delta0)

    def drawn_scale(self, sensitivity: FloatArray, multiple: FloatArray) -> FloatArray:
        """Return the product, rounded up."""
        return round_up(sensitivity * multiple, 8)

    def counted_scale(self, drawn: FloatArray) -> FloatArray:
        """Return the same: the law on the whole numbers is exactly as private as the one on the line."""
        return drawn

    def draw(self, scale: float, n: int, random: Randomness) -> NDArray[np.int64]:
        """Draw from exp(-|k|/scale) on the whole numbers."""
        return discrete_laplace(scale, n, random)


MECHANISMS: dict[str, Mechanism] = {"gaussian": GaussianMechanism(), "laplace": LaplaceMechanism()}


def mechanism_of(name: str) -> Mechanism:
    """Return the mechanism of that name, or raise InvalidInput."""
    if name not in MECHANISMS:
        raise InvalidInput(f"mechanism must be one of {', '.join(MECHANISMS)}; got {shown(name)}")
    return MECHANISMS[name]
