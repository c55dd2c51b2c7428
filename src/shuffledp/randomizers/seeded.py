"""Families whose report is a random seed and one of the M codewords that it stands for.

The user draws a seed; of the seed's M codewords exactly `likely` are close to the record, and each of these is
e^epsilon0 times as likely to be reported as each other one. Which ones they are is a matter of geometry, computed in
floating point; that they are `likely` out of M is counted. So the law is

    R(x)(seed, index)/omega = e^epsilon0 gamma on A_x, gamma elsewhere,   omega uniform,   omega(A_x) = likely/M = f,

two levels of likelihood (`shuffledp.randomizers.two_level`), exactly, whatever the codewords are and however they were
computed: neither privacy nor its accounting asks whether the seed's codewords look random. Only the estimate does.

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

from shuffledp.errors import OutOfRegime
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness, Words
from shuffledp.randomizers.balls import checked_vectors
from shuffledp.randomizers.base import PairBlanket, PairCounts
from shuffledp.randomizers.checks import local_budgets, matching, one_budget, report_rows
from shuffledp.randomizers.mixing import SampledLaw, keep_masses, keep_thresholds, sampled_law
from shuffledp.randomizers.two_level import TwoLevelFamily, TwoLevelLaw
from shuffledp.randomizers.walsh import walsh_hadamard
from shuffledp.randomizers.wire import PackedBits, checked_reports, pack_integers, possible_integers, unpack_integers

REPORT_BITS = 63
"""Seed and index together fill one non-negative 64-bit integer."""


class SeededFamily(TwoLevelFamily):
    """A family of this kind over vectors: a subclass gives the geometry, the rest is here.

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
        """M, even: how many codewords a seed stands for."""

    @property
    @abstractmethod
    def likely(self) -> int:
        """How many of them are close to a record: at most M/2."""

    @property
    @abstractmethod
    def norm(self) -> str:
        """``"l1"`` or ``"l2"``: in which norm records are bounded."""

    @abstractmethod
    def close_codewords(self, vectors: FloatArray, seeds: Words, random: Randomness) -> NDArray[np.int64]:
        """Return the indices of the close codewords of each record, shape (n, likely), all different.

        Parameters
        ----------
        vectors : ndarray, shape (n, dimension)
            Records over `bound`, of norm at most 1.
        seeds : ndarray of uint64, shape (n,)
            One a record.
        random : Randomness
            For records inside the ball, which are first moved to its surface at random.
        """

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many records are worked on at a time, so that temporaries stay small."""

    @property
    @abstractmethod
    def value_rows(self) -> int:
        """How many reports are read at a time."""

    @abstractmethod
    def values(self, reports: NDArray[np.int64]) -> NDArray[Any]:
        """Return the vector that each report stands for, shape (n, dimension).

        Parameters
        ----------
        reports : ndarray of int64, shape (n,)
            As `randomize` returned them.
        """

    @property
    @abstractmethod
    def typical_square(self) -> float:
        """Mean square of an entry of a value."""

    @property
    def mixture(self) -> bool:
        """One blanket, a random seed and a random index, for every budget."""
        return True

    @property
    def two_point(self) -> bool:
        """Whether a codeword is either close to x or to -x: then opposite records have just two outcomes."""
        return 2 * self.likely == self.codewords

    def law(self, epsilon0: ArrayLike) -> TwoLevelLaw:
        """Return the law of opposite records, whose sets are disjoint.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return TwoLevelLaw.of(local_budgets(epsilon0), float(self.likely), 0.0, float(self.codewords - 2 * self.likely))

    def pair_counts(self, epsilon0: ArrayLike) -> PairCounts | None:
        """None: of no third record it is certain how its codewords lie to those of two others."""
        del epsilon0

    def triple_weights(self, epsilon0: float) -> tuple[float, float, float, float]:
        """Refused: how three sets overlap depends on the codewords, of which nothing is supposed."""
        raise OutOfRegime(f"{self.name} states no third record; got epsilon0 = {epsilon0}; use witness_pairs")

    def witness_pairs(self, epsilon0: float) -> tuple[PairBlanket, PairBlanket] | None:
        """Return opposite records x0, x1 (and x1, x0) against others who hold x1; None for two outcomes.

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
        """Integers K: with probability K/2^64 the index is a random close one, else any one.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return keep_thresholds(*keep_masses(local_budgets(epsilon0), self.likely / self.codewords))

    def sampled_law(self, epsilon0: ArrayLike) -> SampledLaw:
        """Chances of a random close index and of any index, as drawn.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return sampled_law(self.keep_thresholds(epsilon0))

    @property
    def index_bits(self) -> int:
        """Lowest bits of a report, which hold the index; the others hold the seed."""
        return (self.codewords - 1).bit_length()

    def randomize(self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness) -> NDArray[np.int64]:
        """One seed and index per vector, each under its own budget.

        Every report has a seed of its own, drawn from `random`: one made from a public task seed and the user's number
        would tell who sent the report, and undo the shuffle.

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
            2^index_bits seed + index.

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
        """Return seed and index of each report.

        Raises
        ------
        InvalidInput
            If a report is no such pair (the first such row is named).
        """
        report_rows(reports, "iu", None, "one whole number below 2^63 each")
        checked_reports(reports, 2**REPORT_BITS)
        words = reports.astype(np.uint64)
        index = (words & np.uint64(2**self.index_bits - 1)).astype(np.int64)
        checked_reports(index, self.codewords)
        return words >> np.uint64(self.index_bits), index

    @property
    def unit(self) -> float:
        """What values are whole multiples of in `whole_values`: 1, where they are whole."""
        return 1.0

    @property
    def square_unit(self) -> float:
        """What their squares are whole multiples of in `whole_squares`."""
        return 1.0

    @property
    def bits(self) -> tuple[int, int]:
        """`whole_values` are at most 2 to the first in absolute value, and `whole_squares` 2 to the second."""
        return 0, 0

    def whole_values(self, reports: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return `values` in whole multiples of `unit`, shape (n, dimension): what is added up.

        A function of each report alone, to the last bit, whatever its place among the others.

        Parameters
        ----------
        reports : ndarray of int64, shape (n,)
            As `randomize` returned them.
        """
        return self.values(reports).astype(np.int64)

    def whole_squares(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the squares of `whole_values` in whole multiples of `square_unit`."""
        return values * values

    @property
    def report_bits(self) -> int:
        """Bits of a report on the wire."""
        return REPORT_BITS

    def pack(self, reports: NDArray[np.int64]) -> PackedBits:
        """Encode reports as they travel; see `shuffledp.randomizers.wire.WireFormat`."""
        return pack_integers(reports, REPORT_BITS)

    def unpack(self, rows: PackedBits) -> NDArray[np.int64]:
        """Undo `pack`; an index that is no codeword is refused."""
        reports = unpack_integers(rows, REPORT_BITS).view(np.int64)
        self.read(reports)
        return reports

    def possible(self, rows: PackedBits) -> NDArray[np.bool_]:
        """Whether each row is a report of this family; see `WireFormat`."""
        own = rows.copy()
        own[:, -1] &= 0x7F  # the index is in the low bits, and the seed above them may be anything
        index = unpack_integers(own, REPORT_BITS) & np.uint64(2**self.index_bits - 1)
        return possible_integers(rows, REPORT_BITS, 2**REPORT_BITS) & (index < np.uint64(self.codewords))


# Affine hashes over the field of two elements, drawn with their report in one word, and counted by one transform.

_CHUNK = 1 << 16
"""Reports at a time: temporaries stay in cache."""


class AffineHash(NamedTuple):
    """All h(x) = A x xor b from u bits to r bits, with a uniformly random matrix A and uniformly random b.

    Three different records are affinely independent over the field of two elements (x1 xor x0 and x2 xor x0 are
    different and not 0, hence linearly independent), so their hashes are independent and uniform on r bits; four may
    not be.

    With y the reported value, (A, c = b xor y) says as much as (A, b, y): it supports x if A x = c. It is stored row
    by row, u bits of A and above them one bit of c, from the lowest bit of a word on.

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
        """The number of bits of a report."""
        return self.r * (self.u + 1)

    def include(self, words: Words, records: NDArray[np.int64], kept: NDArray[np.bool_]) -> Words:
        """Return reports, changed in c where `kept` so that they support their records.

        Parameters
        ----------
        words : ndarray of uint64, shape (n,)
            Uniform reports: draws of the blanket.
        records : ndarray of int64, shape (n,)
            Below 2^u.
        kept : ndarray of bool, shape (n,)
            Which are to support their record.
        """
        point = records.view(np.uint64) | np.uint64(1 << self.u)
        out = words.copy()
        for row in range(self.r):
            low = row * (self.u + 1)
            wrong = np.bitwise_count((words >> np.uint64(low)) & point) & kept  # its last bit: A x xor c
            out ^= (wrong & np.uint8(1)).astype(np.uint64) << np.uint64(low + self.u)
        return out

    def support_counts(self, reports: Words, k: int, weights: FloatArray | None) -> FloatArray:
        """Sum of the weights of the reports that support each of the records 0..k-1; exact without weights.

        With rows a_i of A,  1[A x = c] = 2^-r sum_s (-1)^(s.c) (-1)^((xor_(i in s) a_i).x)  over all s of r bits: for
        each s one count of signed cells, then one Walsh-Hadamard transform. Where r k is smaller than 2^r, every
        record is tried instead.

        Parameters
        ----------
        reports : ndarray of uint64, shape (n,)
            Each below 2^bits.
        k : int
            At most 2^u.
        weights : ndarray, shape (n,), or None
            None: 1 each.
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
