"""Vectors in a cube: one random coordinate, as one bit by randomized response."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import OutOfRegime
from shuffledp.numerics.floats import LARGEST_BELOW_ONE
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness, Words
from shuffledp.randomizers.balls import checked_vectors, positive_number
from shuffledp.randomizers.base import PairBlanket, PairCounts
from shuffledp.randomizers.bits import PackedBits
from shuffledp.randomizers.checks import local_budgets, matching, report_rows, whole_number
from shuffledp.randomizers.mixing import SampledLaw, keep_masses, keep_thresholds, sampled_law
from shuffledp.randomizers.two_level import TwoLevelFamily, TwoLevelLaw
from shuffledp.randomizers.wire import checked_reports, pack_integers, possible_integers, unpack_integers

MAX_DIMENSION = 10**7


@dataclass(frozen=True)
class CoordinateSampling(TwoLevelFamily):
    """One random coordinate of a vector whose entries lie in [-bound, bound], as one bit by randomized response.

    The report is (j, b): j uniform, b = 1 with chance (1 + x_j/bound)/2 and then binary randomized response. The j
    tells nothing, so of two opposite sign vectors it is exactly binary randomized response. No pair is worse: the law
    of x is linear in every x_j, hence a mixture of those of sign vectors; of these A_x = {(j, b) with b the sign of
    x_j} has omega-mass 1/2, and any but opposite ones share some of it.

    Parameters
    ----------
    dimension : int
        Length d of the vectors, from 1 to 1e7.
    bound : float
        Largest absolute entry, positive; public. Default 1.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> CoordinateSampling(3).report_slope(700.0).round(6).tolist()
    0.333333
    """

    dimension: int
    bound: float = 1.0

    def __post_init__(self) -> None:
        what = "coordinate sampling takes a whole dimension"
        object.__setattr__(self, "dimension", whole_number(self.dimension, what, 1, MAX_DIMENSION))
        object.__setattr__(self, "bound", positive_number(self.bound, "bound"))

    @property
    def name(self) -> str:
        """``"coordinates:D"``."""
        return f"coordinates:{self.dimension}"

    @property
    def norm(self) -> str:
        """The norm that bounds records, ``"linf"``."""
        return "linf"

    @property
    def mixture(self) -> bool:
        """One blanket, a random coordinate and a fair bit, for every budget."""
        return True

    @property
    def two_point(self) -> bool:
        """Opposite sign vectors have just two outcomes."""
        return True

    def law(self, epsilon0: ArrayLike) -> TwoLevelLaw:
        """Return the law of opposite sign vectors: binary randomized response.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return TwoLevelLaw.of(local_budgets(epsilon0), 1.0, 0.0, 0.0)

    def pair_counts(self, epsilon0: ArrayLike) -> PairCounts | None:
        """None: the two outcomes are all there is."""
        del epsilon0

    def witness_pairs(self, epsilon0: float) -> tuple[PairBlanket, PairBlanket] | None:
        """None: counting is all an attacker can do."""
        del epsilon0

    def triple_weights(self, epsilon0: float) -> tuple[float, float, float, float]:
        """Refused: a third vector sides with one of two opposite ones at every coordinate."""
        raise OutOfRegime(f"{self.name} states no third record; got epsilon0 = {epsilon0}; see two_point")

    def keep_thresholds(self, epsilon0: ArrayLike) -> Words:
        """Integers K: the bit is reported with probability K/2^64, else a fair one (`mixing`).

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return keep_thresholds(*keep_masses(local_budgets(epsilon0), 0.5))

    def sampled_law(self, epsilon0: ArrayLike) -> SampledLaw:
        """Chances of the true bit and of a fair one, as drawn.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return sampled_law(self.keep_thresholds(epsilon0))

    def report_slope(self, epsilon0: ArrayLike) -> FloatArray:
        """Return c with E(value of a report | x) = c x/bound, as drawn: (1 - gamma)/d.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return self.sampled_law(epsilon0).keep / self.dimension

    def randomize(self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness) -> NDArray[np.int64]:
        """One coordinate and bit per vector, each under its own budget.

        Parameters
        ----------
        records : array_like of float, shape (n, dimension)
            Vectors with entries in [-bound, bound].
        epsilon0 : float or array_like, shape (n,)
            Local budgets, nats, from 0 to 700; one for all, or one each.
        random : Randomness
            `secure_random()`, or `simulation_random(seed)` where no privacy is wanted.

        Returns
        -------
        ndarray of int64, shape (n,)
            2 j + b.

        Raises
        ------
        InvalidInput
            If a record is outside the cube or not finite (the first such row is named, counting from 1), a budget
            is bad, or the lengths differ.
        """
        vectors = checked_vectors(records, self.dimension, self.norm, self.bound)
        n = vectors.shape[0]
        budgets = matching(local_budgets(epsilon0), n)
        chosen = random.integers(self.dimension, n)
        level = (1.0 + vectors[np.arange(n), chosen] / self.bound) / 2.0
        within = np.clip(level, 0.0, LARGEST_BELOW_ONE) * 2.0**64
        true = random.bernoulli(within.astype(np.uint64), n) | (level >= 1.0)
        kept = random.bernoulli(np.broadcast_to(self.keep_thresholds(budgets), (n,)), n)
        return 2 * chosen + np.where(kept, true, random.integers(2, n))

    @property
    def value_energy(self) -> float:
        """Mean squared length of a report's value: 1."""
        return 1.0

    @property
    def largest(self) -> float:
        """Largest entry of a value: 1."""
        return 1.0

    def checked(self, reports: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return reports if each is a coordinate and bit (the first other one is refused, with its row).

        The value of 2 j + b is -1 or 1 at the coordinate j, and 0 elsewhere.
        """
        report_rows(reports, "iu", None, f"whole numbers from 0 to {2 * self.dimension - 1}, one each")
        return checked_reports(reports, 2 * self.dimension)

    @property
    def report_bits(self) -> int:
        """Bits of a report on the wire."""
        return (2 * self.dimension - 1).bit_length()

    def pack(self, reports: NDArray[np.int64]) -> PackedBits:
        """Encode reports as they travel; see `shuffledp.randomizers.wire.WireFormat`."""
        return pack_integers(reports, self.report_bits)

    def unpack(self, rows: PackedBits) -> NDArray[np.int64]:
        """Undo `pack`; those that are none are refused."""
        return checked_reports(unpack_integers(rows, self.report_bits).view(np.int64), 2 * self.dimension)

    def possible(self, rows: PackedBits) -> NDArray[np.bool_]:
        """Whether each row is a report of this family; see `WireFormat`."""
        return possible_integers(rows, self.report_bits, 2 * self.dimension)
