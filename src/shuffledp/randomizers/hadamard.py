"""Hadamard response: one random entry (a sign) of the record's row of a Hadamard matrix, by randomized response."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness, Words
from shuffledp.randomizers.base import ReportSets, SupportLaw, Triples
from shuffledp.randomizers.checks import (
    MAX_SIZE,
    counted,
    local_budgets,
    matching,
    record_codes,
    report_rows,
    whole_number,
)
from shuffledp.randomizers.mixing import CHUNK, draw, keep_masses, keep_thresholds, sampled_law, support_of
from shuffledp.randomizers.two_level import TwoLevelFamily, TwoLevelLaw
from shuffledp.randomizers.walsh import walsh_hadamard
from shuffledp.randomizers.wire import PackedBits, checked_reports, pack_integers, possible_integers, unpack_integers


@dataclass(frozen=True)
class HadamardResponse(TwoLevelFamily):
    """Hadamard response over k categories: a random column j, and the sign there of the record's row.

    H is Sylvester's matrix of order K, the next power of two above k: H[a, j] = (-1)^(number of ones in a AND j). A
    record x has row x + 1 (row 0 is constant). The report is (j, b): j uniform on 0..K-1, and b the sign H[x+1, j] kept
    with chance e^epsilon0/(1 + e^epsilon0), else turned. Exactly epsilon0-LDP.

    The blanket omega is uniform on the 2K reports, and the same for every budget: a mixture family. The reports that x
    makes likely are A_x = {(j, H[x+1, j])}. Rows are orthogonal, so two records agree on exactly half of the columns:
    the law of local hashing to g = 2 values.

    Parameters
    ----------
    k : int
        Number of categories, from 2 to 1e9.

    Raises
    ------
    InvalidInput
        If k is not a whole number in that range.

    Examples
    --------
    >>> HadamardResponse(4).order
    8
    """

    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole_number(self.k, "Hadamard response takes a whole number k", 2, MAX_SIZE))

    @property
    def name(self) -> str:
        """Name of the family on the command line: ``"hadamard:K"`` with the number of categories."""
        return f"hadamard:{self.k}"

    @property
    def mixture(self) -> bool:
        """Whether one privacy blanket serves every budget: True, it is uniform on columns and signs."""
        return True

    @property
    def order(self) -> int:
        """Number K of columns and rows of the Hadamard matrix: the smallest power of two above k."""
        return 1 << self.k.bit_length()

    @property
    def report_sets(self) -> ReportSets:
        """The sets A_x of likely reports: half of all reports; the sets of two records are independent."""
        return ReportSets(2, disjoint=False)

    def law(self, epsilon0: ArrayLike) -> TwoLevelLaw:
        """Return the law of the reports of any two records, at each budget.

        Rows form a group, so for a third record x2 the products H[x0] H[x1] and H[x0] H[x2] are two more rows,
        orthogonal: on the columns that separate x0 and x1, x2 agrees with either on half of them.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return TwoLevelLaw.of(local_budgets(epsilon0), 1.0, 1.0, 1.0)

    @property
    def triples(self) -> Triples:
        """Overlap of any three records' sets of likely reports, one of `Triples`: "alike".

        The eight sign patterns of three rows are equally frequent.
        """
        return "alike"

    def triple_weights(self, epsilon0: float) -> tuple[float, float, float, float]:
        """Return the relative masses of the reports in none, one, two or three of three records' sets: all equal.

        With the sign of the report all eight patterns of three rows are equally frequent, even if one row is the
        product of the others.
        """
        del epsilon0
        return 1.0, 1.0, 1.0, 1.0

    def keep_thresholds(self, epsilon0: ArrayLike) -> Words:
        """Return integers K: the sampler keeps the true sign with probability K/2^64, else draws a fair one.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return keep_thresholds(*keep_masses(local_budgets(epsilon0), 0.5))

    def support_law(self, epsilon0: ArrayLike) -> SupportLaw:
        """Return the chances, as drawn, that a report agrees with its record's row, and with another row (1/2).

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return support_of(sampled_law(self.keep_thresholds(epsilon0)), 0.5, 0.5)

    def randomize(self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness) -> NDArray[np.int64]:
        """Return one report per record, a column and a sign, each drawn with its own budget.

        Parameters
        ----------
        records : array_like of int, shape (n,)
            Categories, 0..k-1.
        epsilon0 : float or array_like, shape (n,)
            Local budgets, nats, from 0 to 700; one for all, or one each.
        random : Randomness
            `secure_random()`, or `simulation_random(seed)` where no privacy is wanted.

        Returns
        -------
        ndarray of int64, shape (n,)
            2 j + b for column j, with b = 0 for the sign 1 and b = 1 for the sign -1.

        Raises
        ------
        InvalidInput
            If a record is not one of the categories (the first such row is named, counting from 1), a budget is
            bad, or the lengths differ.
        """
        codes = record_codes(records, self.k)
        budgets = matching(local_budgets(epsilon0), codes.size)
        everyone = None if budgets.ndim else int(self.keep_thresholds(budgets))
        for start in range(0, codes.size, CHUNK):
            chunk = codes[start : start + CHUNK]
            keep = self.keep_thresholds(budgets[start : start + CHUNK]) if everyone is None else everyone
            words, kept = draw(self.report_bits, keep, chunk.size, random)
            drawn = words.view(np.int64)
            wrong = np.bitwise_count((drawn >> 1) & (chunk + 1)).astype(np.int64) ^ drawn
            chunk[:] = drawn ^ (wrong & kept)
        return codes

    def support_counts(self, reports: NDArray[np.int64], weights: FloatArray | None = None) -> FloatArray:
        """Return the number (or sum of `weights`) of the reports that agree with each category's row, shape (k,).

        One count per column and sign, and one transform: (n + sum of sign H[x+1, j])/2, exact without weights.
        """
        report_rows(reports, "iu", None, f"whole numbers from 0 to {2 * self.order - 1}, one each")
        checked_reports(reports, 2 * self.order)
        counted(self.k)
        tallied = np.bincount(reports, weights=weights, minlength=2 * self.order).reshape(self.order, 2)
        agree = walsh_hadamard(tallied[:, 0] - tallied[:, 1])[1 : self.k + 1]
        return (agree + tallied.sum()) / 2.0

    def for_budgets(self, epsilon0: ArrayLike, counts: ArrayLike) -> HadamardResponse:
        """Return the family itself, as the shape of its reports is the same at every budget."""
        del epsilon0, counts
        return self

    @property
    def report_bits(self) -> int:
        """Size of an encoded report, in bits: log2 K for the column, and one for the sign."""
        return self.k.bit_length() + 1

    def pack(self, reports: NDArray[np.int64]) -> PackedBits:
        """Encode reports as rows of bytes for transport, the inverse of `unpack`: shape (n, ceil(report_bits/8))."""
        return pack_integers(reports, self.report_bits)

    def unpack(self, rows: PackedBits) -> NDArray[np.int64]:
        """Return the reports encoded in rows of bytes; InvalidInput names the first row that is no report."""
        return unpack_integers(rows, self.report_bits).view(np.int64)

    def possible(self, rows: PackedBits) -> NDArray[np.bool_]:
        """Return for each row of bytes whether it is a possible encoded report of this family: bool, shape (n,)."""
        return possible_integers(rows, self.report_bits, 2**self.report_bits)
