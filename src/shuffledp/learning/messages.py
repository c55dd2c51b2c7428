"""The messages of training: what is clipped, and the noise on whole numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NoReturn, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InvalidInput, choice, shown
from shuffledp.learning.network import Network
from shuffledp.numerics.discrete_noise import SMALLEST_WIDE, discrete_gaussian, discrete_laplace, wide_gaussian
from shuffledp.numerics.floats import FloatArray, inflated, round_down, round_up, roundoff
from shuffledp.numerics.randomness import Randomness
from shuffledp.randomizers.noise import Gaussian, Laplace

# What is clipped decides what a message can change by: sensitivity is derived here, and typed in nowhere.
#
# A client with m examples sends one message, an average of gradients. Neighbours replace one unit:
#
#     unit "example", every example's gradient clipped to C:   |message - message'| <= 2 C/m
#     unit "client",  the message (or every example) clipped:  |message - message'| <= 2 C
#
# Clipping only the average to C and claiming 2 C/m is refused: see `refuse_clipped_average`. Norms are Euclidean for
# Gaussian noise, sums of absolute values for Laplace noise.

Unit = Literal["client", "example"]
Clipped = Literal["examples", "message"]
UNITS: tuple[Unit, ...] = ("client", "example")
CLIPPED: tuple[Clipped, ...] = ("examples", "message")
UNIT_MEANING: dict[str, str] = {
    "client": "all examples of one client are replaced",
    "example": "one example of one client is replaced; how many it has is public",
}
_NUMBERS = 1 << 18  # of one layer in one pass: bounds the memory of large clients, and stays in cache
_EXAMPLES = 64, 1024  # in one pass, at least and at most


@dataclass(frozen=True)
class Clipping:
    """Rule by which messages are clipped, and the unit (client or example) that it protects.

    Parameters
    ----------
    unit : {"client", "example"}
        What neighbouring data sets replace: all data of one client, or one example.
    clipped : {"examples", "message"}
        What is clipped: every example's gradient before averaging, or the average as a whole.
    bound : float
        C, positive and finite: the largest norm.
    order : {1, 2}
        Norm: 1 sums absolute values, 2 is Euclidean.

    Raises
    ------
    InvalidInput
        On an unknown choice or a bad bound, and on unit "example" with only the message clipped.

    Examples
    --------
    >>> bool(Clipping("example", "examples", 2.0, 2).sensitivity(600, 128) < 4.0 / 600 * (1 + 1e-9))
    True
    """

    unit: Unit
    clipped: Clipped
    bound: float
    order: Literal[1, 2]

    def __post_init__(self) -> None:
        choice(self.unit, "unit", UNITS)
        choice(self.clipped, "clipped", CLIPPED)
        try:
            bound = float(self.bound)
        except (TypeError, ValueError):
            bound = math.nan
        if not (0.0 < bound < 1e100):
            raise InvalidInput(f"clip must be a positive, finite number; got {shown(self.bound)}")
        if self.unit == "example" and self.clipped == "message":
            refuse_clipped_average(bound)

    def sensitivity(self, examples: int | NDArray[np.int64], numbers: int) -> FloatArray:
        """Return the largest distance that a message can move when one unit is replaced, rounding included.

        Parameters
        ----------
        examples : int or ndarray of int, at least 1
            m, examples of the client; public.
        numbers : int
            Numbers in a message.

        Returns
        -------
        ndarray, shape of examples
            2 C/m or 2 C, plus rounding. Norms of vectors of up to ``numbers`` entries are good to (numbers + 16)
            roundoffs, and a sum of m vectors of norm C to m roundoffs m C, in either world (docs/learning.md).
        """
        m = np.asarray(examples, dtype=np.float64)
        whole = 2.0 * self.bound * (1.0 / m if self.unit == "example" else np.ones_like(m))
        # an average of m terms of norm C is off by (m + 4) roundoffs C at most, in each world
        return inflated(whole, 2.0 * (numbers + 16.0)) + roundoff(2.0 * (m + 4.0), 2.0 * self.bound)

    def message(
        self, network: Network, weights: FloatArray, features: FloatArray, labels: NDArray[np.int64]
    ) -> FloatArray:
        """Return the clipped average gradient of one client's examples, shape (network.size,); always finite.

        An example whose gradient is not finite contributes zero, and so does a message that is clipped as a whole and
        is not finite: nothing that can be seen outside tells of it.

        Parameters
        ----------
        network : Network
            The model.
        weights : ndarray, shape (network.size,)
            Its current weights.
        features : ndarray, shape (m, inputs)
            The client's examples, m >= 1.
        labels : ndarray of int64, shape (m,)
            Labels of these examples, in 0..classes-1.
        """
        m = labels.size
        total: FloatArray | None = None
        at_once = min(max(_NUMBERS // max(network.widths), _EXAMPLES[0]), _EXAMPLES[1])
        for start in range(0, m, at_once):
            passed = network.backward(weights, features[start : start + at_once], labels[start : start + at_once])
            factors = None
            if self.clipped == "examples":
                factors = shrink(network.gradient_norms(passed, self.order), self.bound)
            part = network.weighted_sum(passed, factors)
            total = part if total is None else np.add(total, part, out=total)
        if total is None:
            raise InvalidInput("a client without examples has no message; leave it out")
        total /= m
        return shortened(total, self.bound, self.order) if self.clipped == "message" else total


def shrink(norms: FloatArray, bound: float) -> FloatArray:
    """Return factors min(1, bound/norm) that bring vectors of these norms to the bound; 0 for a norm not finite."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(np.isfinite(norms), np.minimum(1.0, bound / norms), 0.0)


def shortened(vector: FloatArray, bound: float, order: int) -> FloatArray:
    """Clip one vector in place to the norm ``bound``, and return it; a vector of no finite norm becomes zero.

    Parameters
    ----------
    vector : ndarray, shape (numbers,)
        Any numbers.
    bound : float
        Largest norm, positive.
    order : {1, 2}
        1 sums absolute values, 2 is Euclidean.
    """
    factor = float(shrink(np.array([float(np.linalg.norm(vector, ord=order))]), bound)[0])
    if factor > 0.0:
        vector *= factor
    else:
        vector[:] = 0.0
    return vector


def refuse_clipped_average(bound: float) -> NoReturn:
    """Raise the error that clipping an average to ``bound`` does not bound the influence of a single example.

    Raises
    ------
    InvalidInput
        Always.
    """
    raise InvalidInput(
        f"clipping the average to {bound:g} does not bound one example's part in it: the message may move by "
        f"{2 * bound:g} when one example is replaced, not by {2 * bound:g}/m. Clip examples (clipped='examples'), "
        "or protect whole clients (unit='client')"
    )


# Noise of the messages: whole numbers on a grid, drawn from secure words.
#
# A message is a vector of whole numbers (the clipped gradient over a public grid step, rounded), and so is its noise.

Name = Literal["gaussian", "laplace"]


class Mechanism(Protocol):
    """Interface of a noise mechanism: its norm, its scale for a budget, and its draws."""

    @property
    def name(self) -> Name:
        """Name of the mechanism in options and arguments."""
        ...

    @property
    def order(self) -> Literal[1, 2]:
        """Order of the norm in which sensitivity is measured: 1 (absolute values) or 2 (Euclidean)."""
        ...

    def multiples(self, epsilon0: ArrayLike, delta0: ArrayLike) -> FloatArray:
        """Return noise scales in units of the sensitivity for these local budgets; inf where epsilon0 = 0."""
        ...

    def drawn_scale(self, sensitivity: FloatArray, multiple: FloatArray) -> FloatArray:
        """Return the scale of the drawn noise, in grid steps.

        Parameters
        ----------
        sensitivity : ndarray
            Sensitivity of a message, in grid steps.
        multiple : ndarray
            Noise scale in units of the sensitivity, from `multiples`.
        """
        ...

    def counted_scale(self, drawn: FloatArray) -> FloatArray:
        """Return the noise scale that accounting may rely on, in grid steps: at most ``drawn``."""
        ...

    def draw(self, scale: float, n: int, random: Randomness) -> NDArray[np.int64]:
        """Return n independent whole-number draws of noise of at least this scale, shape (n,)."""
        ...


@dataclass(frozen=True)
class GaussianMechanism:
    """Discrete Gaussian noise, calibrated analytically (Balle and Wang 2018); sensitivity is Euclidean."""

    @property
    def name(self) -> Name:
        """Name of the mechanism in options and arguments, ``"gaussian"``."""
        return "gaussian"

    @property
    def order(self) -> Literal[1, 2]:
        """Order of the norm of the sensitivity, 2 (Euclidean)."""
        return 2

    def multiples(self, epsilon0: ArrayLike, delta0: ArrayLike) -> FloatArray:
        """Return the least sigma/sensitivity for (epsilon0, delta0)-DP (Balle and Wang 2018); inf at epsilon0 = 0."""
        law = Gaussian(0.0, 1.0)
        law.check_budgets(epsilon0, delta0)
        budgets, deltas = np.broadcast_arrays(np.asarray(epsilon0, dtype=np.float64), np.asarray(delta0))
        return np.where(budgets > 0.0, law.scale(budgets, deltas), math.inf)

    def drawn_scale(self, sensitivity: FloatArray, multiple: FloatArray) -> FloatArray:
        """Return the standard deviation to draw, in grid steps; see `Mechanism.drawn_scale`.

        It is the inverse of `counted_scale`, rounded up.
        """
        return np.maximum(round_up(np.hypot(sensitivity * multiple, _SMOOTHING), 16), SMALLEST_DRAWN)

    def counted_scale(self, drawn: FloatArray) -> FloatArray:
        """Return the standard deviation that accounting may use for noise drawn with standard deviation ``drawn``.

        It is sqrt(drawn^2 - 9), rounded down; both are in grid steps. The difference covers the discrete law's distance
        from a Gaussian one (`UNEVENNESS`).
        """
        return round_down(np.sqrt((drawn - _SMOOTHING) * (drawn + _SMOOTHING)), 8)

    def draw(self, scale: float, n: int, random: Randomness) -> NDArray[np.int64]:
        """Return n whole numbers drawn from exp(-k^2/(2 s^2)), s the scale; a large s may be up to 1e-3 larger."""
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
"""Smallest scale of a discrete normal law that is accepted: two of them make a lattice of scale 3."""


@dataclass(frozen=True)
class LaplaceMechanism:
    """Discrete Laplace noise, P(k) proportional to exp(-|k|/b): pure, sensitivity in the norm of absolute values."""

    @property
    def name(self) -> Name:
        """Name of the mechanism in options and arguments, ``"laplace"``."""
        return "laplace"

    @property
    def order(self) -> Literal[1, 2]:
        """Order of the norm of the sensitivity, 1 (sum of absolute values)."""
        return 1

    def multiples(self, epsilon0: ArrayLike, delta0: ArrayLike) -> FloatArray:
        """Return the Laplace scale in units of the sensitivity, 1/epsilon0, rounded up; delta0 is not used."""
        return Laplace(0.0, 1.0).scale(epsilon0, delta0)

    def drawn_scale(self, sensitivity: FloatArray, multiple: FloatArray) -> FloatArray:
        """Return the Laplace scale to draw, in grid steps: sensitivity times multiple, rounded up.

        See `Mechanism.drawn_scale`.
        """
        return round_up(sensitivity * multiple, 8)

    def counted_scale(self, drawn: FloatArray) -> FloatArray:
        """Return the scale that accounting relies on, which is the drawn one: the discrete law is as private."""
        return drawn

    def draw(self, scale: float, n: int, random: Randomness) -> NDArray[np.int64]:
        """Return n whole numbers drawn with chances proportional to exp(-|k|/scale), shape (n,)."""
        return discrete_laplace(scale, n, random)


MECHANISMS: dict[str, Mechanism] = {"gaussian": GaussianMechanism(), "laplace": LaplaceMechanism()}


def mechanism_of(name: str) -> Mechanism:
    """Return the noise mechanism of this name, or raise InvalidInput."""
    return MECHANISMS[choice(name, "mechanism", MECHANISMS)]
