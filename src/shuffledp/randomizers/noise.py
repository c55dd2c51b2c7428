"""Noise added to a number in a known range: the scale that a budget needs, and reports drawn exactly.

The law is stated for real-valued noise. What is drawn is a function of it: the record is put on a grid of 2^bits steps
by unbiased random rounding, and the continuous noise, in steps, is rounded to a whole number, exactly
(`numerics.discrete_noise`). So every guarantee for the stated law holds for the reports, among any other users
(docs/theorems/randomizers.md, "Noise, as drawn").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.discrete_noise import Integers, rounded_gaussian, rounded_laplace
from shuffledp.numerics.floats import next_above
from shuffledp.numerics.gaussian_tail import largest_shift, normal_divergence
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.randomizers.checks import local_budgets, local_deltas
from shuffledp.randomizers.grid_noise import GridNoise, laplace_variance, normal_variance


@dataclass(frozen=True)
class Laplace(GridNoise):
    """Laplace noise: the report of x is x + (high - low) b Z, Z of density exp(-|z|)/2, b = 1/epsilon0.

    Exactly epsilon0-LDP (Dwork, McSherry, Nissim, Smith 2006). The noise tells the budget: no mixture family.

    Parameters
    ----------
    low, high : float
        The range of the values, finite, low < high. It is public: choose it without looking at the records.
    bits : int
        Reports lie on a grid of 2^bits steps over the range; from 1 to 24, default 16. Public.

    Raises
    ------
    InvalidInput
        If an end is not finite, low >= high, the width overflows, or bits is out of range.

    Examples
    --------
    >>> Laplace(0, 10).scale(0.5, 0.0).round(12).tolist()
    2.0
    """

    low: float
    high: float
    bits: int = 16

    @property
    def name(self) -> str:
        """``"laplace"``."""
        return "laplace"

    @property
    def noise(self) -> str:
        """``"laplace"``."""
        return "laplace"

    def check_budgets(self, epsilon0: ArrayLike, delta0: ArrayLike) -> None:
        """Any pure budget is served, and an approximate one by its pure part."""
        del epsilon0, delta0

    def scale(self, epsilon0: ArrayLike, delta0: ArrayLike) -> FloatArray:
        """Scale b = 1/epsilon0 of each budget, rounded up, so that no double exceeds its budget.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        delta0 : array_like
            Local delta0, in [0, 1); not needed, and not used.

        Returns
        -------
        ndarray
            In units of the range's width; inf where epsilon0 is 0.
        """
        budgets, deltas = local_budgets(epsilon0), local_deltas(delta0)
        return np.broadcast_to(_one_over(budgets), np.broadcast_shapes(budgets.shape, deltas.shape)).copy()

    def draw_noise(self, scale: FloatArray, n: int, random: Randomness) -> Integers:
        """Continuous Laplace noise, rounded."""
        return rounded_laplace(scale, n, random)

    def noise_variance(self, scale: FloatArray) -> FloatArray:
        """Variance of `draw_noise`."""
        return laplace_variance(scale)


@dataclass(frozen=True)
class Gaussian(GridNoise):
    """Gaussian noise: the report of x is x + (high - low) sigma Z, Z standard normal.

    (epsilon0, delta0)-LDP exactly if Phi(1/(2 sigma) - epsilon0 sigma) - e^epsilon0 Phi(-1/(2 sigma) - epsilon0
    sigma) <= delta0 (Balle and Wang 2018, Theorem 8), and never with delta0 = 0. The noise tells the budget: no
    mixture family.

    Parameters
    ----------
    low, high : float
        The range of the values, finite, low < high. It is public: choose it without looking at the records.
    sigma : float, optional
        One standard deviation for every budget, in units of the range's width, positive and finite; the budgets
        must then allow it. By default each budget gets the smallest that serves it.

    Raises
    ------
    InvalidInput
        If an end is not finite, low >= high, the width overflows, or sigma is not positive and finite.

    Examples
    --------
    >>> Gaussian(0, 10).scale(1.0, 1e-6).round(6).tolist()
    4.224679
    """

    low: float
    high: float
    sigma: float | None = None
    bits: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sigma is None:
            return
        try:
            sigma = float(self.sigma)
        except (TypeError, ValueError):
            sigma = math.nan
        if not (math.isfinite(sigma) and sigma > 0.0):
            raise InvalidInput(
                f"sigma must be a positive, finite number, in units of the range's width; got {shown(self.sigma)}"
            )
        object.__setattr__(self, "sigma", sigma)

    @property
    def name(self) -> str:
        """``"gaussian"``."""
        return "gaussian"

    @property
    def noise(self) -> str:
        """``"gaussian"``."""
        return "gaussian"

    def check_budgets(self, epsilon0: ArrayLike, delta0: ArrayLike) -> None:
        """Refuse pure budgets, and those that a stated sigma exceeds.

        Parameters
        ----------
        epsilon0, delta0 : array_like
            The local budgets, nats from 0 to 700, and delta0 in [0, 1); broadcast with each other.

        Raises
        ------
        InvalidInput
            Naming the first such budget.
        """
        budgets, deltas = np.broadcast_arrays(local_budgets(epsilon0), local_deltas(delta0))
        budgets, deltas = budgets.ravel(), deltas.ravel()
        if not deltas.all():
            at = float(budgets[int(np.argmin(deltas))])
            raise InvalidInput(
                f"Gaussian noise is never pure: give delta0 > 0 with epsilon0 = {at:g}, or use Laplace noise"
            )
        if self.sigma is None:
            return
        needed = normal_divergence(budgets, next_above(1.0 / self.sigma)).upper
        if (needed > deltas).any():
            worst = int(np.argmax(needed > deltas))
            raise InvalidInput(
                f"Gaussian noise of sigma = {self.sigma:g} ranges needs delta0 of at least {needed[worst]:g} at "
                f"epsilon0 = {budgets[worst]:g}; got {deltas[worst]:g}; state a larger budget, or more noise"
            )

    def scale(self, epsilon0: ArrayLike, delta0: ArrayLike) -> FloatArray:
        """Smallest sigma for which the budget certainly holds, or the stated one.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        delta0 : array_like
            Local delta0, in [0, 1); broadcast with epsilon0.

        Returns
        -------
        ndarray
            In units of the range's width; above the exact solution by about 1e-12 relative. inf where delta0 is
            0, which no finite noise serves.
        """
        budgets, deltas = np.broadcast_arrays(local_budgets(epsilon0), local_deltas(delta0))
        if self.sigma is not None:
            return np.full(budgets.shape, self.sigma)
        # each different budget once: populations repeat them; complex numbers are sorted as pairs
        pairs, place = np.unique(budgets.ravel() + 1j * deltas.ravel(), return_inverse=True)
        return np.frombuffer(_needed_sigmas(pairs.tobytes()))[place].reshape(budgets.shape)

    def draw_noise(self, scale: FloatArray, n: int, random: Randomness) -> Integers:
        """Continuous normal noise, rounded."""
        return rounded_gaussian(scale, n, random)

    def noise_variance(self, scale: FloatArray) -> FloatArray:
        """Variance of `draw_noise`."""
        return normal_variance(scale)


def _one_over(values: FloatArray) -> FloatArray:
    """1/values rounded up; inf at 0."""
    with np.errstate(divide="ignore", over="ignore"):
        return next_above(1.0 / values)


@lru_cache(maxsize=64)
def _needed_sigmas(pairs: bytes) -> bytes:
    """Sigmas of budgets epsilon0 + i delta0: chunk after chunk of a collection asks for the same ones."""
    budgets = np.frombuffer(pairs, dtype=np.complex128)
    return _one_over(largest_shift(budgets.real.copy(), budgets.imag.copy())).tobytes()
