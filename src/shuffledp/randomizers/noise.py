"""Laplace and Gaussian noise added to a number in a public range: drawn on a grid, by exact integer sampling."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import (
    VALUE,
    BadEntry,
    InvalidInput,
    local_budgets,
    local_deltas,
    matching,
    real_range,
    shown,
    whole_number,
)
from shuffledp.numerics.discrete_noise import LARGEST_SCALE, Integers, rounded_gaussian, rounded_laplace
from shuffledp.numerics.floats import FloatArray, next_above
from shuffledp.numerics.functions import ndtr
from shuffledp.numerics.randomness import Randomness, Words
from shuffledp.numerics.tails import largest_shift, normal_divergence
from shuffledp.randomizers.base import NumberLaw
from shuffledp.randomizers.wire import PackedBits, pack_integers, possible_integers, unpack_integers

# Numbers of a public range put on a grid: checked, scaled to [0, 1], and rounded at random without bias.

ROUNDING_VARIANCE = 0.25
"""Largest increase of a variance by `round_at_random`, in squared steps."""


def unit_fractions(records: ArrayLike, low: float, high: float) -> FloatArray:
    """Return the position (x - low)/(high - low) of each value in its range: in [0, 1], exact at both ends.

    Parameters
    ----------
    records : array_like of float, shape (n,)
        Values in [low, high].
    low, high : float
        Ends of the range.

    Raises
    ------
    InvalidInput
        If a value is outside the range or NaN; the first such row is named, counting from 1.
    """
    try:
        values = np.asarray(records, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"records must be numbers from {low} to {high}") from None
    if values.ndim != 1:
        raise InvalidInput(f"records must be one-dimensional; got shape {values.shape}")
    inside = (values >= low) & (values <= high)
    if not inside.all():
        row = int(np.argmin(inside))
        raise BadEntry(
            f"value in row {row + 1} is {VALUE}, outside the range [{low}, {high}]; widen the range, or clip",
            values[row],
        )
    fractions = values - low
    fractions /= high - low
    return np.minimum(fractions, 1.0, out=fractions)


def round_at_random(positions: FloatArray, random: Randomness) -> NDArray[np.int64]:
    """Round each position to one of the two whole numbers around it, so that its mean is the position.

    Parameters
    ----------
    positions : ndarray, shape (n,)
        Positions p, at least 0, below 2^52.
    random : Randomness
        Source of the bits.

    Returns
    -------
    ndarray of int64, shape (n,)
        floor(p), or one more with probability floor(2^64 (p - floor(p)))/2^64; p itself where it is whole.
    """
    whole = np.floor(positions)
    up = random.bernoulli(((positions - whole) * 2.0**64).astype(np.uint64), positions.size)
    return whole.astype(np.int64) + up


def uniform_below_each(bounds: Words, random: Randomness) -> Words:
    """Return independent integers of which entry i is exactly uniform on [0, bounds[i]).

    Parameters
    ----------
    bounds : ndarray of uint64, shape (n,)
        Numbers of possible values, from 1 to 2^63.
    random : Randomness
        Source of 64-bit words; a word that would bias the remainder is drawn again.
    """
    words = random.words(bounds.size)
    highest = ~((~bounds + np.uint64(1)) % bounds)  # 2^64 - 1 less 2^64 modulo the bound
    redraw = np.flatnonzero(words > highest)
    while redraw.size:
        words[redraw] = random.words(redraw.size)
        redraw = redraw[words[redraw] > highest[redraw]]
    return words % bounds


# What Laplace and Gaussian noise share: records on a grid, exact noise in whole steps, reports of a fixed size.

FARTHEST = 1 << 51
"""Reports are cut to -2^51 and 2^51 - 1 steps: 52 bits. Noise of the largest scale exceeds them with chance e^-127."""


REPORT_BITS = 52


_FINE = 3.0
"""Scale in steps from which on rounding adds 1/12 to a normal variance, up to 5 sigma^2 exp(-2 pi^2 sigma^2)."""


class GridNoise(ABC):
    """A number in a public range plus noise, reported on a grid; a subclass states scale and kind of the noise.

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
        """Raise InvalidInput if the family cannot serve one of the budgets (epsilon0 in nats, delta0 in [0, 1))."""

    @abstractmethod
    def scale(self, epsilon0: ArrayLike, delta0: ArrayLike) -> FloatArray:
        """Return the noise scale of each budget, in units of the range's width; inf where no finite noise serves."""

    @abstractmethod
    def draw_noise(self, scale: FloatArray, n: int, random: Randomness) -> Integers:
        """Draw n values of continuous noise, rounded to whole grid steps; `scale`, in steps, has shape () or (n,)."""

    @abstractmethod
    def noise_variance(self, scale: FloatArray) -> FloatArray:
        """Return the variance of `draw_noise` for each scale (in grid steps), in squared steps."""

    @property
    def steps(self) -> int:
        """Number of grid steps over the range, 2^bits: as a power of two it keeps the scale in steps exact."""
        return 1 << self.bits

    @property
    def report_bits(self) -> int:
        """Size of an encoded report, in bits: 52."""
        return REPORT_BITS

    def randomize(
        self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness, *, delta0: ArrayLike = 0.0
    ) -> NDArray[np.int64]:
        """Return one report per value, value plus noise in grid steps, each drawn with its own budget.

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
            The value in steps from low, plus noise; from -2^51 to 2^51 - 1. For a budget that no finite noise serves,
            the report is the middle of the range, whatever the value is.

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
        """Return the reports as floats: positions in grid steps from the lower end of the range."""
        return reports.astype(np.float64)

    def number_law(self, epsilon0: ArrayLike, delta0: ArrayLike = 0.0) -> NumberLaw:
        """Return mean and variance of a report in grid steps, given the value's position t in [0, 1], at each budget.

        The variance is an upper bound, above the true one by at most 1/4, as the position of the value between two grid
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
        """Encode reports as rows of bytes for transport, the inverse of `unpack`: shape (n, ceil(report_bits/8))."""
        return pack_integers(reports + FARTHEST, REPORT_BITS)

    def unpack(self, rows: PackedBits) -> NDArray[np.int64]:
        """Return the reports encoded in rows of bytes; InvalidInput names the first row that is no report."""
        return unpack_integers(rows, REPORT_BITS).view(np.int64) - FARTHEST

    def possible(self, rows: PackedBits) -> NDArray[np.bool_]:
        """Return for each row of bytes whether it is a possible encoded report of this family: bool, shape (n,)."""
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
    """Return the variance of Laplace noise rounded to whole numbers, for each scale.

    With r = exp(-1/(2 scale)), P(|X| >= k) = r^(2k-1), and sum (2k-1) r^(2k-1) = r (1 + r^2)/(1 - r^2)^2.

    Parameters
    ----------
    scale : ndarray
        Scale of the continuous noise, positive.
    """
    r = np.exp(-0.5 / scale)
    with np.errstate(divide="ignore"):  # of a scale beyond 1e162 the variance leaves double precision: inf
        return r * (1.0 + r * r) / np.expm1(-1.0 / scale) ** 2


def normal_variance(sigma: FloatArray) -> FloatArray:
    """Return the variance of normal noise rounded to whole numbers, for each sigma.

    It is the sum over k >= 1 of 2 (2k-1) P(Z > (k - 1/2)/sigma); for sigma >= 3, sigma^2 + 1/12 (Poisson's sum
    formula).

    Parameters
    ----------
    sigma : ndarray
        Standard deviation of the continuous noise, positive.
    """
    k = np.arange(1.0, 40.0 * _FINE)
    fine = sigma >= _FINE
    coarse = np.where(fine, 1.0, sigma)
    terms = 2.0 * (2.0 * k - 1.0) * ndtr(-(k - 0.5) / coarse[..., None]) if not fine.all() else np.zeros(1)
    return np.where(fine, sigma * sigma + 1.0 / 12.0, terms.sum(axis=-1))


# Noise added to a number in a known range: the scale that a budget needs, and reports drawn exactly.
#
# The law is stated for real-valued noise. What is drawn is a function of it: the record is put on a grid of 2^bits
# steps by unbiased random rounding, and the continuous noise, in steps, is rounded to a whole number, exactly
# (`numerics.discrete_noise`). So every guarantee for the stated law holds for the reports, among any other users
# (docs/theorems/randomizers.md, "Noise, as drawn").


@dataclass(frozen=True)
class Laplace(GridNoise):
    """Laplace noise: the report of x is x + (high - low) b Z, Z of density exp(-|z|)/2, b = 1/epsilon0.

    Exactly epsilon0-LDP (Dwork, McSherry, Nissim, Smith 2006). The noise scale reveals the budget, so this is not a
    mixture family.

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
        """Name of the family on the command line: ``"laplace"``."""
        return "laplace"

    @property
    def noise(self) -> str:
        """Kind of the noise: ``"laplace"``."""
        return "laplace"

    def check_budgets(self, epsilon0: ArrayLike, delta0: ArrayLike) -> None:
        """Accept every local budget: reports are (epsilon0, 0)-LDP, which satisfies any delta0 as well."""
        del epsilon0, delta0

    def scale(self, epsilon0: ArrayLike, delta0: ArrayLike) -> FloatArray:
        """Return the scale b = 1/epsilon0 of each budget, rounded up, so that the noise never exceeds its budget.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        delta0 : array_like
            Local delta0, in [0, 1); not needed, and not used.

        Returns
        -------
        ndarray
            Scales, in units of the range's width; inf where epsilon0 is 0.
        """
        budgets, deltas = local_budgets(epsilon0), local_deltas(delta0)
        return np.broadcast_to(_one_over(budgets), np.broadcast_shapes(budgets.shape, deltas.shape)).copy()

    def draw_noise(self, scale: FloatArray, n: int, random: Randomness) -> Integers:
        """Draw n values of continuous Laplace noise, rounded to whole steps; `scale`, in steps, is one or n numbers."""
        return rounded_laplace(scale, n, random)

    def noise_variance(self, scale: FloatArray) -> FloatArray:
        """Return the variance of `draw_noise` for each scale (in grid steps), in squared steps."""
        return laplace_variance(scale)


@dataclass(frozen=True)
class Gaussian(GridNoise):
    """Gaussian noise: the report of x is x + (high - low) sigma Z, Z standard normal.

    (epsilon0, delta0)-LDP exactly if Phi(1/(2 sigma) - epsilon0 sigma) - e^epsilon0 Phi(-1/(2 sigma) - epsilon0 sigma)
    <= delta0 (Balle and Wang 2018, Theorem 8), and never with delta0 = 0. The noise scale reveals the budget, so this
    is not a mixture family.

    Parameters
    ----------
    low, high : float
        The range of the values, finite, low < high. It is public: choose it without looking at the records.
    sigma : float, optional
        One standard deviation for every budget, in units of the range's width, positive and finite; the budgets
        must then allow it. By default each budget gets the smallest sigma that keeps it.
    bits : int
        Reports lie on a grid of 2^bits steps over the range; from 1 to 24, default 16. Public.

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
        """Name of the family on the command line: ``"gaussian"``."""
        return "gaussian"

    @property
    def noise(self) -> str:
        """Kind of the noise: ``"gaussian"``."""
        return "gaussian"

    def check_budgets(self, epsilon0: ArrayLike, delta0: ArrayLike) -> None:
        """Raise InvalidInput for a pure budget (delta0 = 0), and for one that a stated sigma does not keep.

        Parameters
        ----------
        epsilon0, delta0 : array_like
            The local budgets, nats from 0 to 700, and delta0 in [0, 1); broadcast with each other.

        Raises
        ------
        InvalidInput
            If a budget cannot be served; the message names the first one.
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
        """Return for each budget the smallest sigma that certainly keeps it, or the stated sigma.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        delta0 : array_like
            Local delta0, in [0, 1); broadcast with epsilon0.

        Returns
        -------
        ndarray
            Standard deviations, in units of the range's width; above the exact solution by about 1e-12 relative. inf
            where delta0 is 0, which no finite noise serves.
        """
        budgets, deltas = np.broadcast_arrays(local_budgets(epsilon0), local_deltas(delta0))
        if self.sigma is not None:
            return np.full(budgets.shape, self.sigma)
        # each different budget once: populations repeat them; complex numbers are sorted as pairs
        pairs, place = np.unique(budgets.ravel() + 1j * deltas.ravel(), return_inverse=True)
        return np.frombuffer(_needed_sigmas(pairs.tobytes()))[place].reshape(budgets.shape)

    def draw_noise(self, scale: FloatArray, n: int, random: Randomness) -> Integers:
        """Draw n values of continuous normal noise, rounded to whole steps; `scale`, in steps, is one or n numbers."""
        return rounded_gaussian(scale, n, random)

    def noise_variance(self, scale: FloatArray) -> FloatArray:
        """Return the variance of `draw_noise` for each sigma (in grid steps), in squared steps."""
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
