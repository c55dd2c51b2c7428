"""What Laplace and Gaussian noise share: records on a grid, exact noise in whole steps, reports of a fixed size."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InvalidInput
from shuffledp.numerics.discrete_noise import LARGEST_SCALE, Integers
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.numerics.special import ndtr
from shuffledp.randomizers.base import NumberLaw
from shuffledp.randomizers.bits import PackedBits
from shuffledp.randomizers.checks import local_budgets, local_deltas, matching, real_range, whole_number
from shuffledp.randomizers.grid import ROUNDING_VARIANCE, round_at_random, unit_fractions
from shuffledp.randomizers.wire import pack_integers, possible_integers, unpack_integers

FARTHEST = 1 << 51
"""Reports are cut to -2^51 and 2^51 - 1 steps: 52 bits. Noise of the largest scale exceeds them with chance e^-127."""
REPORT_BITS = 52
_FINE = 3.0
"""From so many steps on, rounding adds 1/12 to a normal variance, up to 5 sigma^2 exp(-2 pi^2 sigma^2) < 1e-75."""


class GridNoise(ABC):
    """A number plus noise, drawn on a grid; a subclass is a frozen dataclass that gives scale and noise.

    Attributes
    ----------
    low, high : float
        The range of the values, finite, low < high.
    bits : int
        The grid has 2^bits steps over the range; from 1 to 24.
    """

    low: float
    high: float
    bits: int

    def __post_init__(self) -> None:
        low, high = real_range(self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        object.__setattr__(self, "bits", whole_number(self.bits, "a grid takes a whole number of bits", 1, 24))

    @abstractmethod
    def check_budgets(self, epsilon0: ArrayLike, delta0: ArrayLike) -> None:
        """Raise InvalidInput if the family cannot serve one of these budgets."""

    @abstractmethod
    def scale(self, epsilon0: ArrayLike, delta0: ArrayLike) -> FloatArray:
        """Noise scale of each budget, in units of the range's width; inf where no finite noise serves."""

    @abstractmethod
    def draw_noise(self, scale: FloatArray, n: int, random: Randomness) -> Integers:
        """Draw continuous noise of the scale in steps, shape () or (n,), rounded to whole steps."""

    @abstractmethod
    def noise_variance(self, scale: FloatArray) -> FloatArray:
        """Variance of `draw_noise`, in squared steps."""

    @property
    def steps(self) -> int:
        """Steps of the grid over the range, a power of two: the scale in steps is exact."""
        return 1 << self.bits

    @property
    def report_bits(self) -> int:
        """Bits of a report on the wire."""
        return REPORT_BITS

    def randomize(
        self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness, *, delta0: ArrayLike = 0.0
    ) -> NDArray[np.int64]:
        """One report per value, each under its own budget.

        Parameters
        ----------
        records : array_like of float, shape (n,)
            Values in [low, high].
        epsilon0, delta0 : float or array_like, shape (n,)
            Local budgets, nats from 0 to 700, and delta0 in [0, 1); one for all, or one each.
        random : Randomness
            `secure_random()`, or `simulation_random(seed)` where no privacy is wanted.

        Returns
        -------
        ndarray of int64, shape (n,)
            The value in steps from low, plus noise; within -2^51 and 2^51 - 1. Where no finite noise serves the
            budget, the middle of the range, whatever the value is.

        Raises
        ------
        InvalidInput
            If a value is outside the range or NaN, a budget is bad, not served, or needs noise of more than 2^44
            steps (the first such row is named, counting from 1).

        Examples
        --------
        >>> from shuffledp.numerics.randomness import secure_random
        >>> from shuffledp.randomizers import Laplace
        >>> Laplace(0, 10, bits=4).randomize([0.0, 10.0], 700.0, secure_random()).tolist()
        [0, 16]
        """
        fractions = unit_fractions(records, self.low, self.high)
        n = fractions.size
        scale = self._served_scale(epsilon0, delta0, n)
        silent = ~np.isfinite(scale)
        reports = round_at_random(fractions * self.steps, random)
        reports += self.draw_noise(np.where(silent, 1.0, scale), n, random)
        np.clip(reports, -FARTHEST, FARTHEST - 1, out=reports)
        np.copyto(reports, self.steps // 2, where=silent)
        return reports

    def report_values(self, reports: NDArray[np.int64]) -> FloatArray:
        """Reports as they are, in steps."""
        return reports.astype(np.float64)

    def number_law(self, epsilon0: ArrayLike, delta0: ArrayLike = 0.0) -> NumberLaw:
        """Mean and variance of a report in steps.

        The variance is an upper bound, above the true one by at most 1/4: where the value falls between two grid
        points is not known.

        Parameters
        ----------
        epsilon0, delta0 : array_like
            Local budgets, nats from 0 to 700, and delta0 in [0, 1); broadcast with each other.
        """
        scale = self._grid_scale(epsilon0, delta0)
        silent = ~np.isfinite(scale)
        spread = self.noise_variance(np.where(silent, 1.0, scale)) + ROUNDING_VARIANCE
        zero = np.zeros(scale.shape)
        return NumberLaw(
            offset=np.where(silent, self.steps / 2.0, 0.0),
            slope=np.where(silent, 0.0, float(self.steps)),
            variance=np.stack((np.where(silent, 0.0, spread), zero, zero)),
            largest=np.where(silent, 0.0, np.inf),
        )

    def pack(self, reports: NDArray[np.int64]) -> PackedBits:
        """Reports as they travel; see `shuffledp.randomizers.wire.WireFormat`."""
        return pack_integers(reports + FARTHEST, REPORT_BITS)

    def unpack(self, rows: PackedBits) -> NDArray[np.int64]:
        """Reports as they were before `pack`."""
        return unpack_integers(rows, REPORT_BITS).view(np.int64) - FARTHEST

    def possible(self, rows: PackedBits) -> NDArray[np.bool_]:
        """Whether each row is a report of this family; see `WireFormat`."""
        return possible_integers(rows, REPORT_BITS, 2**REPORT_BITS)

    def _grid_scale(self, epsilon0: ArrayLike, delta0: ArrayLike) -> FloatArray:
        return self.scale(epsilon0, delta0) * self.steps

    def _served_scale(self, epsilon0: ArrayLike, delta0: ArrayLike, n: int) -> FloatArray:
        budgets, deltas = matching(local_budgets(epsilon0), n), matching(local_deltas(delta0), n)
        self.check_budgets(budgets, deltas)
        scale = self._grid_scale(budgets, deltas)
        wide = np.isfinite(scale) & (scale > LARGEST_SCALE)
        if wide.any():
            row = int(np.argmax(wide))
            small = np.broadcast_to(budgets, scale.shape).ravel()[row]
            raise InvalidInput(
                f"epsilon0 in row {row + 1} is {small:g}, which needs noise beyond the reports' range; "
                "give 0 (no information), or a larger budget"
            )
        return scale


def laplace_variance(scale: FloatArray) -> FloatArray:
    """Variance of Laplace noise rounded to whole numbers.

    With r = exp(-1/(2 scale)), P(|X| >= k) = r^(2k-1), and sum (2k-1) r^(2k-1) = r (1 + r^2)/(1 - r^2)^2.

    Parameters
    ----------
    scale : ndarray
        Of the continuous noise, positive.
    """
    r = np.exp(-0.5 / scale)
    with np.errstate(divide="ignore"):  # of a scale beyond 1e162 the variance leaves double precision: inf
        return r * (1.0 + r * r) / np.expm1(-1.0 / scale) ** 2


def normal_variance(sigma: FloatArray) -> FloatArray:
    """Variance of normal noise rounded to whole numbers.

    sum over k >= 1 of 2 (2k-1) P(Z > (k - 1/2)/sigma); from 3 on, sigma^2 + 1/12 (Poisson's sum formula).

    Parameters
    ----------
    sigma : ndarray
        Of the continuous noise, positive.
    """
    k = np.arange(1.0, 40.0 * _FINE)
    fine = sigma >= _FINE
    coarse = np.where(fine, 1.0, sigma)
    terms = 2.0 * (2.0 * k - 1.0) * ndtr(-(k - 0.5) / coarse[..., None]) if not fine.all() else np.zeros(1)
    return np.where(fine, sigma * sigma + 1.0 / 12.0, terms.sum(axis=-1))
