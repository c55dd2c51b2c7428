"""Randomizers of vectors bounded in the l1 norm (a signed sketch) or the l-infinity norm (one coordinate).

The l1 ball is the convex hull of the unit vectors and their opposites. A record is moved to one of these at random with
its mean kept, and that vector is randomized; so every law is a mixture of theirs, and no pair of records is worse than
two of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import OutOfRegime, local_budgets, matching, population, report_rows, whole_number
from shuffledp.numerics.floats import LARGEST_BELOW_ONE, FloatArray
from shuffledp.numerics.randomness import Randomness, Words
from shuffledp.randomizers.balls import checked_vectors, positive_number
from shuffledp.randomizers.base import PairBlanket, PairCounts
from shuffledp.randomizers.mixing import (
    SampledLaw,
    TwoLevelFamily,
    TwoLevelLaw,
    keep_masses,
    keep_thresholds,
    sampled_law,
)
from shuffledp.randomizers.seeded import SeededFamily
from shuffledp.randomizers.vector import seeded_words
from shuffledp.randomizers.wire import PackedBits, checked_reports, pack_integers, possible_integers, unpack_integers

MAX_DIMENSION = 10**7
MAX_BUCKETS = 1 << 13
_WORK = 1 << 17  # hashes at a time: temporaries stay in cache


@dataclass(frozen=True)
class SignedSketch(SeededFamily):
    """A vector of l1 norm at most `bound`: one signed coordinate, hashed to few signed buckets.

    The record becomes a coordinate j, with the sign of x_j, with chance |x_j|/bound; with what is left of the chance, a
    random j and sign. The seed gives every coordinate a bucket h(j) < g and a sign s(j); (h(j), sign s(j)) is one of
    the M = 2 g signed buckets, reported by randomized response. The value of a report (b, r) is s(i) r at the
    coordinates with h(i) = b and 0 elsewhere: its mean is (1 - gamma) x/bound, gamma the blanket mass, as signs of
    different coordinates are independent. This is local hashing of signed coordinates, and a count sketch; g = 1 is one
    Hadamard-like bit, the best for epsilon0 below log 3.

    Parameters
    ----------
    dimension : int
        Length d of the vectors, from 1 to 1e7.
    buckets : int
        Number g of buckets, from 1 to 8192.
    bound : float
        Largest l1 norm of a vector, positive; public. Default 1.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> SignedSketch.design(100, 4.0)
    SignedSketch(dimension=100, buckets=24, bound=1.0)
    """

    dimension: int
    buckets: int
    bound: float = 1.0

    def __post_init__(self) -> None:
        what = "a signed sketch takes a whole "
        object.__setattr__(self, "dimension", whole_number(self.dimension, what + "dimension", 1, MAX_DIMENSION))
        buckets = whole_number(self.buckets, what + "number of buckets", 1, MAX_BUCKETS)
        object.__setattr__(self, "buckets", buckets)
        object.__setattr__(self, "bound", positive_number(self.bound, "bound"))

    @classmethod
    def design(cls, dimension: int, epsilon0: ArrayLike, counts: ArrayLike = 1, *, bound: float = 1.0) -> SignedSketch:
        """Return the sketch whose number of buckets has the least predicted error for the given users.

        Parameters
        ----------
        dimension : int
            Length of the vectors, from 1 to 1e7.
        epsilon0, counts : array_like, shape () or (levels,)
            Budgets (nats, 0 to 700), and how many users hold each: one sketch for all of them, a mixture family.
        bound : float
            Largest l1 norm of a vector, positive.
        """
        budgets, users = population(epsilon0, counts)
        single = cls(dimension, 1, bound)
        if budgets.max() == 0.0:
            return single
        buckets = np.arange(1.0, MAX_BUCKETS + 1.0)
        keep = sum(u * keep_masses(np.asarray(e), 0.5 / buckets)[0] for e, u in zip(budgets, users, strict=True))
        best = np.argmin(_sketch_error(single.dimension, buckets, np.asarray(keep) / users.sum()))
        return cls(dimension, int(buckets[best]), bound)

    @property
    def name(self) -> str:
        """Name of the family on the command line: ``"sketch:D:G"``, dimension and number of buckets."""
        return f"sketch:{self.dimension}:{self.buckets}"

    @property
    def norm(self) -> str:
        """The norm that bounds records, ``"l1"``."""
        return "l1"

    @property
    def codewords(self) -> int:
        """Number M = 2 g of codewords of a seed, the signed buckets."""
        return 2 * self.buckets

    @property
    def likely(self) -> int:
        """Number of codewords close to a record: 1, its own signed bucket."""
        return 1

    @property
    def rows(self) -> int:
        """Number of records processed at a time, so that temporary arrays stay small."""
        return max(_WORK // self.dimension, 1)

    @property
    def value_rows(self) -> int:
        """Number of reports read at a time, so that temporary arrays stay small."""
        return self.rows

    def report_slope(self, epsilon0: ArrayLike) -> FloatArray:
        """Return c with E(value of a report | x) = c x/bound, as drawn, at each budget: 1 - gamma.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return self.sampled_law(epsilon0).keep

    def close_codewords(self, vectors: FloatArray, seeds: Words, random: Randomness) -> NDArray[np.int64]:
        """Return the index of the signed bucket of each record, shape (n, 1) (`SeededFamily.close_codewords`)."""
        n = seeds.size
        reach = np.cumsum(np.abs(vectors), axis=1)
        aim = (random.words(n) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        chosen = np.sum(reach <= aim[:, None], axis=1)
        inside = chosen == self.dimension
        chosen[inside] = random.integers(self.dimension, int(np.count_nonzero(inside)))
        negative = vectors[np.arange(n), chosen] < 0.0
        negative[inside] = random.integers(2, int(np.count_nonzero(inside))) == 1
        bucket, minus = self._hash(seeds, chosen.astype(np.uint64)[:, None])
        return 2 * bucket + (minus ^ negative[:, None])

    def _hash(self, seeds: Words, coordinates: Words) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Bucket of each coordinate of each seed, and whether its sign is minus."""
        words = seeded_words(seeds, coordinates)
        bucket = ((words >> np.uint64(32)) * np.uint64(self.buckets)) >> np.uint64(32)
        return bucket.astype(np.int64), (words & np.uint64(1)) == 1

    def values(self, reports: NDArray[np.int64]) -> NDArray[np.int8]:
        """Return the value of each report: -1, 0 or 1 at each coordinate, shape (n, dimension).

        Parameters
        ----------
        reports : ndarray of int64, shape (n,)
            As `randomize` returned them.

        Raises
        ------
        InvalidInput
            If a report is no seed and index.
        """
        seeds, index = self.read(reports)
        bucket, minus = self._hash(seeds, np.arange(self.dimension, dtype=np.uint64)[None])
        sign = np.where(minus ^ ((index & 1) == 1)[:, None], -1, 1)
        return np.where(bucket == (index >> 1)[:, None], sign, 0).astype(np.int8)

    @property
    def typical_square(self) -> float:
        """Mean square of an entry of a report's value, apart from the record's own coordinate: 1/g."""
        return 1.0 / self.buckets

    @property
    def value_energy(self) -> float:
        """Upper bound on the mean squared length of a report's value: own coordinate, and others in its bucket."""
        return 1.0 + (self.dimension - 1) / self.buckets

    @property
    def largest(self) -> float:
        """Largest absolute entry of a report's value: 1."""
        return 1.0


def _sketch_error(dimension: int, buckets: FloatArray | int, keep: FloatArray) -> FloatArray:
    """((d-1)/g + keep + (1-keep)/g)/keep^2 - 1: other coordinates share the bucket by chance, the own one is in it."""
    return ((dimension - keep) / buckets + keep) / keep**2 - 1.0


# Vectors in a cube: one random coordinate, as one bit by randomized response.


@dataclass(frozen=True)
class CoordinateSampling(TwoLevelFamily):
    """One random coordinate of a vector whose entries lie in [-bound, bound], as one bit by randomized response.

    The report is (j, b): j uniform, b = 1 with chance (1 + x_j/bound)/2 and then binary randomized response. j is
    independent of the record, so for two opposite sign vectors this is exactly binary randomized response. No pair is
    worse: the law of x is linear in every x_j, hence a mixture of those of sign vectors; of these the set of likely
    reports A_x = {(j, b) with b the sign of x_j} has mass 1/2 under the blanket omega, and any two but opposite ones
    share some of it.

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
        """Name of the family on the command line: ``"coordinates:D"``, with the dimension."""
        return f"coordinates:{self.dimension}"

    @property
    def norm(self) -> str:
        """The norm that bounds records, ``"linf"``."""
        return "linf"

    @property
    def mixture(self) -> bool:
        """Whether one privacy blanket serves every budget: True, it is a random coordinate and a fair bit."""
        return True

    @property
    def two_point(self) -> bool:
        """Whether the worst pair differs on two outcomes only: True, for opposite sign vectors."""
        return True

    def law(self, epsilon0: ArrayLike) -> TwoLevelLaw:
        """Return the report laws of two opposite sign vectors, the worst pair: binary randomized response.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return TwoLevelLaw.of(local_budgets(epsilon0), 1.0, 0.0, 0.0)

    def pair_counts(self, epsilon0: ArrayLike) -> PairCounts | None:
        """Return None: the worst pair has two outcomes only, so that no third record is considered."""
        del epsilon0

    def witness_pairs(self, epsilon0: float) -> tuple[PairBlanket, PairBlanket] | None:
        """Return None: with two outcomes no attack is stronger than counting."""
        del epsilon0

    def triple_weights(self, epsilon0: float) -> tuple[float, float, float, float]:
        """Raise OutOfRegime: at every coordinate a third vector agrees with one of two opposite ones."""
        raise OutOfRegime(f"{self.name} states no third record; got epsilon0 = {epsilon0}; see two_point")

    def keep_thresholds(self, epsilon0: ArrayLike) -> Words:
        """Return integers K: the sampler keeps the bit with probability K/2^64, else draws a fair one.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return keep_thresholds(*keep_masses(local_budgets(epsilon0), 0.5))

    def sampled_law(self, epsilon0: ArrayLike) -> SampledLaw:
        """Return the chances, as drawn, that the true bit is kept, and that a fair bit replaces it, at each budget.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return sampled_law(self.keep_thresholds(epsilon0))

    def report_slope(self, epsilon0: ArrayLike) -> FloatArray:
        """Return c with E(value of a report | x) = c x/bound, as drawn, at each budget: (1 - gamma)/d.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return self.sampled_law(epsilon0).keep / self.dimension

    def randomize(self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness) -> NDArray[np.int64]:
        """Return one report per vector, a coordinate and a bit, each drawn with its own budget.

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
            2 j + b, with coordinate j and bit b.

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
        """Mean squared length of a report's value, the vector it stands for: 1."""
        return 1.0

    @property
    def largest(self) -> float:
        """Largest absolute entry of a report's value: 1."""
        return 1.0

    def checked(self, reports: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return reports unchanged if each is a coordinate j and bit b; InvalidInput names the first row that is not.

        The value of a report 2 j + b is -1 (b = 0) or 1 (b = 1) at the coordinate j, and 0 elsewhere.
        """
        report_rows(reports, "iu", None, f"whole numbers from 0 to {2 * self.dimension - 1}, one each")
        return checked_reports(reports, 2 * self.dimension)

    @property
    def report_bits(self) -> int:
        """Size of an encoded report, in bits: enough for the numbers 0, ..., 2d - 1."""
        return (2 * self.dimension - 1).bit_length()

    def pack(self, reports: NDArray[np.int64]) -> PackedBits:
        """Encode reports as rows of bytes for transport, the inverse of `unpack`: shape (n, ceil(report_bits/8))."""
        return pack_integers(reports, self.report_bits)

    def unpack(self, rows: PackedBits) -> NDArray[np.int64]:
        """Return the reports encoded in rows of bytes; InvalidInput names the first row that is no report."""
        return checked_reports(unpack_integers(rows, self.report_bits).view(np.int64), 2 * self.dimension)

    def possible(self, rows: PackedBits) -> NDArray[np.bool_]:
        """Return for each row of bytes whether it is a possible encoded report of this family: bool, shape (n,)."""
        return possible_integers(rows, self.report_bits, 2 * self.dimension)
