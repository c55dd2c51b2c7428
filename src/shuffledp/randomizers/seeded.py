"""Families whose report is a random seed and the index of one of the M codewords that the seed stands for.

The user draws a seed; of the seed's M codewords exactly `likely` are close to the record, and each of these is
e^epsilon0 times as likely to be reported as each other one. Which codewords are close is a matter of geometry, computed
in floating point; that they are `likely` out of M is counted. With A_x the reports of close codewords the law is

    R(x)(seed, index)/omega = e^epsilon0 gamma on A_x, gamma elsewhere,   omega uniform,   omega(A_x) = likely/M = f,

two levels of likelihood (`shuffledp.randomizers.mixing`), exactly, whatever the codewords are and however they were
computed: neither privacy nor its accounting depends on whether the seed's codewords look random. Only the estimate
does.

**Worst pair.** Of all pairs of sets with omega-mass f <= 1/2 disjoint ones are the worst
(docs/theorems/randomizers.md), and opposite records have disjoint sets: codewords come in opposite pairs, at most one
of which is close.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import OutOfRegime, local_budgets, matching, one_budget, report_rows
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.randomness import Randomness, Words
from shuffledp.randomizers.balls import checked_vectors
from shuffledp.randomizers.base import PairBlanket, PairCounts
from shuffledp.randomizers.mixing import (
    SampledLaw,
    TwoLevelFamily,
    TwoLevelLaw,
    keep_masses,
    keep_thresholds,
    sampled_law,
)
from shuffledp.randomizers.walsh import walsh_hadamard
from shuffledp.randomizers.wire import PackedBits, checked_reports, pack_integers, possible_integers, unpack_integers

REPORT_BITS = 63
"""Number of bits of seed and index together, which fill one non-negative 64-bit integer."""


class SeededFamily(TwoLevelFamily):
    """A family over vectors whose report is a seed and one of its codewords; a subclass states the geometry.

    Attributes
    ----------
    dimension : int
        Length d of a record.
    bound : float
        Largest norm of a record, positive.
    """

    dimension: int
    bound: float

    @property
    @abstractmethod
    def codewords(self) -> int:
        """Number M of codewords that a seed stands for; even."""

    @property
    @abstractmethod
    def likely(self) -> int:
        """Number of codewords that are close to a record, and so likelier: at most M/2."""

    @property
    @abstractmethod
    def norm(self) -> str:
        """The norm that bounds records: ``"l1"`` or ``"l2"``."""

    @abstractmethod
    def close_codewords(self, vectors: FloatArray, seeds: Words, random: Randomness) -> NDArray[np.int64]:
        """Return the indices of the codewords close to each record, shape (n, likely), different within a row.

        Parameters
        ----------
        vectors : ndarray, shape (n, dimension)
            Records divided by `bound`, of norm at most 1.
        seeds : ndarray of uint64, shape (n,)
            One seed per record.
        random : Randomness
            Source of randomness for records inside the ball, which are first moved to its surface at random.
        """

    @property
    @abstractmethod
    def rows(self) -> int:
        """Number of records processed at a time, so that temporary arrays stay small."""

    @property
    @abstractmethod
    def value_rows(self) -> int:
        """Number of reports read at a time, so that temporary arrays stay small."""

    @abstractmethod
    def values(self, reports: NDArray[np.int64]) -> NDArray[Any]:
        """Return the codeword that each report stands for, its value, shape (n, dimension).

        Parameters
        ----------
        reports : ndarray of int64, shape (n,)
            As `randomize` returned them.
        """

    @property
    @abstractmethod
    def typical_square(self) -> float:
        """Mean square of an entry of a report's value, in units in which `bound` is 1."""

    @property
    def mixture(self) -> bool:
        """Whether one privacy blanket serves every budget: True, it is a random seed and a random index."""
        return True

    @property
    def two_point(self) -> bool:
        """Whether opposite records x, -x differ on two outcomes only: True if half of the codewords are close to x."""
        return 2 * self.likely == self.codewords

    def law(self, epsilon0: ArrayLike) -> TwoLevelLaw:
        """Return the report laws of two opposite records, the worst pair, whose sets of likely reports are disjoint.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return TwoLevelLaw.of(local_budgets(epsilon0), float(self.likely), 0.0, float(self.codewords - 2 * self.likely))

    def pair_counts(self, epsilon0: ArrayLike) -> PairCounts | None:
        """Return None: the overlap of a third record's codewords with those of two others is not certain."""
        del epsilon0

    def triple_weights(self, epsilon0: float) -> tuple[float, float, float, float]:
        """Raise OutOfRegime: how the report sets of three records overlap depends on unspecified codewords."""
        raise OutOfRegime(f"{self.name} states no third record; got epsilon0 = {epsilon0}; use witness_pairs")

    def witness_pairs(self, epsilon0: float) -> tuple[PairBlanket, PairBlanket] | None:
        """Return the attack on opposite records x0, x1 among users who hold x1, then with x0 and x1 exchanged.

        None if half of the codewords are close, as there are two outcomes only.

        Parameters
        ----------
        epsilon0 : float
            Local budget, nats, from 0 to 700.
        """
        if self.two_point:
            return None
        budget = one_budget(epsilon0)
        law = self.law(budget)
        # R(x1)-masses of A_x0, A_x1 and the rest, and R(x0)/R(x1) there
        masses = np.array([float(law.only * law.gamma), float(law.only * law.top), float(law.neither * law.gamma)])
        keep = masses > 0.0
        steps = np.array([1.0, -1.0, 0.0])[keep]
        masses = masses[keep] / math.fsum(masses.tolist())
        ratios, losses, same = np.exp(budget * steps), budget * steps, np.ones(steps.size)
        return PairBlanket(1.0, masses, ratios, same, losses), PairBlanket(1.0, masses, same, ratios, -losses)

    def keep_thresholds(self, epsilon0: ArrayLike) -> Words:
        """Return integers K: the sampler draws a random close index with probability K/2^64, else any index.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return keep_thresholds(*keep_masses(local_budgets(epsilon0), self.likely / self.codewords))

    def sampled_law(self, epsilon0: ArrayLike) -> SampledLaw:
        """Return the chances, as drawn, of a random close index and of any random index, at each budget.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return sampled_law(self.keep_thresholds(epsilon0))

    @property
    def index_bits(self) -> int:
        """Number of a report's lowest bits, which hold the index of a codeword; the bits above hold the seed."""
        return (self.codewords - 1).bit_length()

    def randomize(self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness) -> NDArray[np.int64]:
        """Return one report per vector, a seed and an index, each drawn with its own budget.

        Every report has a seed of its own, drawn from `random`: a seed made from a public task seed and the user's
        number would reveal who sent the report, and undo the shuffle.

        Parameters
        ----------
        records : array_like of float, shape (n, dimension)
            Vectors of norm at most `bound`.
        epsilon0 : float or array_like, shape (n,)
            Local budgets, nats, from 0 to 700; one for all, or one each.
        random : Randomness
            `secure_random()`, or `simulation_random(seed)` where no privacy is wanted.

        Returns
        -------
        ndarray of int64, shape (n,)
            Reports 2^index_bits seed + index, below 2^63.

        Raises
        ------
        InvalidInput
            If a record is too long or not finite (the first such row is named, counting from 1), a budget is bad,
            or the lengths differ.
        """
        vectors = checked_vectors(records, self.dimension, self.norm, self.bound)
        budgets = matching(local_budgets(epsilon0), vectors.shape[0])
        thresholds = self.keep_thresholds(np.broadcast_to(budgets, vectors.shape[:1]))
        reports = np.empty(vectors.shape[0], dtype=np.int64)
        for start in range(0, reports.size, self.rows):
            stop = min(start + self.rows, reports.size)
            size = stop - start
            seeds = random.words(size) >> np.uint64(64 - REPORT_BITS + self.index_bits)
            scaled = vectors[start:stop].astype(np.float64) / self.bound
            close = self.close_codewords(scaled, seeds, random)
            kept = random.bernoulli(thresholds[start:stop], size)
            rank, anything = random.integers(self.likely, size), random.integers(self.codewords, size)
            index = np.where(kept, close[np.arange(size), rank], anything)
            reports[start:stop] = (seeds << np.uint64(self.index_bits)).view(np.int64) | index
        return reports

    def read(self, reports: NDArray[np.int64]) -> tuple[Words, NDArray[np.int64]]:
        """Return the seeds (uint64) and the indices (int64) of reports, each of shape (n,).

        Raises
        ------
        InvalidInput
            If a report is no seed and index of a codeword (the first such row is named).
        """
        report_rows(reports, "iu", None, "one whole number below 2^63 each")
        checked_reports(reports, 2**REPORT_BITS)
        words = reports.astype(np.uint64)
        index = (words & np.uint64(2**self.index_bits - 1)).astype(np.int64)
        checked_reports(index, self.codewords)
        return words >> np.uint64(self.index_bits), index

    @property
    def unit(self) -> float:
        """Unit of the whole numbers that `whole_values` returns: a value is that number times this unit.

        1 unless a subclass needs a finer one.
        """
        return 1.0

    @property
    def square_unit(self) -> float:
        """Unit of the whole numbers that `whole_squares` returns: a square is that number times this unit.

        1 unless a subclass needs a finer one.
        """
        return 1.0

    @property
    def bits(self) -> tuple[int, int]:
        """Bounds (a, b): |`whole_values`| is at most 2^a, and `whole_squares` at most 2^b."""
        return 0, 0

    def whole_values(self, reports: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the values of reports in whole multiples of `unit`, shape (n, dimension), for exact sums.

        The result for a report is the same to the last bit whatever its place among the others.

        Parameters
        ----------
        reports : ndarray of int64, shape (n,)
            As `randomize` returned them.
        """
        return self.values(reports).astype(np.int64)

    def whole_squares(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the squares of given `whole_values` in whole multiples of `square_unit`, in the same shape."""
        return values * values

    @property
    def report_bits(self) -> int:
        """Size of an encoded report, in bits: 63."""
        return REPORT_BITS

    def pack(self, reports: NDArray[np.int64]) -> PackedBits:
        """Encode reports as rows of bytes for transport, the inverse of `unpack`: shape (n, ceil(report_bits/8))."""
        return pack_integers(reports, REPORT_BITS)

    def unpack(self, rows: PackedBits) -> NDArray[np.int64]:
        """Return the reports encoded in rows of bytes; InvalidInput names the first row that is no report."""
        reports = unpack_integers(rows, REPORT_BITS).view(np.int64)
        self.read(reports)
        return reports

    def possible(self, rows: PackedBits) -> NDArray[np.bool_]:
        """Return for each row of bytes whether it is a possible encoded report of this family: bool, shape (n,)."""
        own = rows.copy()
        own[:, -1] &= 0x7F  # the index is in the low bits, and the seed above them may be anything
        index = unpack_integers(own, REPORT_BITS) & np.uint64(2**self.index_bits - 1)
        return possible_integers(rows, REPORT_BITS, 2**REPORT_BITS) & (index < np.uint64(self.codewords))


# Affine hashes over the field of two elements, drawn with their report in one word, and counted by one transform.

_CHUNK = 1 << 16
"""Number of reports per chunk, which keeps temporary arrays in cache."""


class AffineHash(NamedTuple):
    """The hashes h(x) = A x xor b from u bits to r bits, with a uniformly random matrix A and uniformly random b.

    Three different records are affinely independent over the field of two elements (x1 xor x0 and x2 xor x0 are
    different and not 0, hence linearly independent), so their hashes are independent and uniform on r bits; four may
    not be.

    A report is (A, c) with c = b xor y, y the reported value; it supports x if A x = c, and says as much as (A, b, y).
    It is stored row by row, u bits of A and above them one bit of c, from the lowest bit of a word on.

    Parameters
    ----------
    r : int
        Bits of a hash, at least 1.
    u : int
        Bits of a record, at least 1; r (u + 1) <= 64.
    """

    r: int
    u: int

    @property
    def bits(self) -> int:
        """Size of a report (A, c), in bits: r (u + 1)."""
        return self.r * (self.u + 1)

    def include(self, words: Words, records: NDArray[np.int64], kept: NDArray[np.bool_]) -> Words:
        """Return reports with c changed where `kept` is true, so that these reports support their records.

        Parameters
        ----------
        words : ndarray of uint64, shape (n,)
            Uniform reports: draws of the blanket.
        records : ndarray of int64, shape (n,)
            The records, below 2^u.
        kept : ndarray of bool, shape (n,)
            Which reports are to support their record.
        """
        point = records.view(np.uint64) | np.uint64(1 << self.u)
        out = words.copy()
        for row in range(self.r):
            low = row * (self.u + 1)
            wrong = np.bitwise_count((words >> np.uint64(low)) & point) & kept  # its last bit: A x xor c
            out ^= (wrong & np.uint8(1)).astype(np.uint64) << np.uint64(low + self.u)
        return out

    def support_counts(self, reports: Words, k: int, weights: FloatArray | None) -> FloatArray:
        """Return for each record 0..k-1 the sum of the weights of the reports that support it, shape (k,).

        The sums are exact without weights. With rows a_i of A, 1[A x = c] = 2^-r sum_s (-1)^(s.c) (-1)^((xor_(i in s)
        a_i).x) over all s of r bits: for each s one count of signed cells, then one Walsh-Hadamard transform. Where r k
        is smaller than 2^r, every record is tried instead.

        Parameters
        ----------
        reports : ndarray of uint64, shape (n,)
            Reports (A, c), each below 2^bits.
        k : int
            Number of records, at most 2^u.
        weights : ndarray, shape (n,), or None
            Weight of each report; None: 1 each.
        """
        count = self._by_trial if k * self.r < 2**self.r else self._by_transform
        total = np.zeros(k)
        cells = np.zeros(2 ** (self.u + 1))
        for start in range(0, reports.size, _CHUNK):
            part = None if weights is None else weights[start : start + _CHUNK]
            count(reports[start : start + _CHUNK], part, total, cells)
        signed = cells[: 2**self.u] - cells[2**self.u :]
        return total + walsh_hadamard(signed)[:k] * 2.0**-self.r

    def _by_transform(self, reports: Words, weights: FloatArray | None, _: FloatArray, cells: FloatArray) -> None:
        """Add the signed cells of all s, in Gray code order: one row is added to or taken from s at a time."""
        mask = np.uint64(2 ** (self.u + 1) - 1)
        combined = np.zeros(reports.size, dtype=np.uint64)
        cells[0] += reports.size if weights is None else weights.sum()  # s = 0
        for step in range(1, 2**self.r):
            row = (step & -step).bit_length() - 1
            combined ^= (reports >> np.uint64(row * (self.u + 1))) & mask
            cells += np.bincount(combined.view(np.int64), weights=weights, minlength=cells.size)

    def _by_trial(self, reports: Words, weights: FloatArray | None, total: FloatArray, _: FloatArray) -> None:
        """Add the reports that support each record, one record after the other."""
        rows = [reports >> np.uint64(row * (self.u + 1)) for row in range(self.r)]
        for record in range(total.size):
            point = np.uint64(record | 1 << self.u)
            wrong = np.zeros(reports.size, dtype=np.uint8)
            for row in rows:
                wrong |= np.bitwise_count(row & point)  # its last bit: A x xor c
            supports = wrong & np.uint8(1) == 0
            total[record] += np.count_nonzero(supports) if weights is None else weights[supports].sum()
