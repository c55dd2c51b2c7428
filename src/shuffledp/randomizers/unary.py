"""Unary encoding: one bit per category, each reported with noise of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.interval import FloatArray, exp_rounded
from shuffledp.numerics.randomness import Randomness, Words
from shuffledp.randomizers.base import SupportLaw, Triples
from shuffledp.randomizers.checks import (
    MAX_SIZE,
    counted,
    local_budgets,
    matching,
    record_codes,
    report_rows,
    whole_number,
)
from shuffledp.randomizers.mixing import MARGIN, complement
from shuffledp.randomizers.two_level import TwoLevelFamily, TwoLevelLaw
from shuffledp.randomizers.wire import (
    PackedBits,
    bernoulli_bytes,
    bytes_for,
    check_padding,
    column_counts,
    fair_bits,
    possible_padding,
    weighted_column_counts,
)

_CHUNK_BYTES = 1 << 18
"""Bytes of reports at a time: temporaries stay in cache."""


class BitChances(NamedTuple):
    """The chances of a 1 in the record's own bit and in any other bit, in the shape of the budgets, to a few ulps.

    Parameters
    ----------
    own : ndarray
        p, for the record's own bit.
    other : ndarray
        q < p, for every other bit; e^epsilon0 = p (1-q) / (q (1-p)).
    """

    own: FloatArray
    other: FloatArray


@dataclass(frozen=True)
class UnaryEncoding(TwoLevelFamily):
    """Unary encoding over k categories: k independent bits, 1 with chance p on the record's place, else q.

    Symmetric (SUE, Google's basic RAPPOR): p = 1/(1 + e^{-epsilon0/2}), q = 1 - p. Optimized (OUE): p = 1/2, q =
    1/(e^epsilon0 + 1), the least variance for frequencies (Wang, Blocki, Li, Jha 2017). Both are exactly epsilon0-LDP.
    The chances depend on the budget, so reports reveal their sender's level: this is not a mixture family.

    The blanket omega is k independent bits of chance q, and the reports that x makes likely, A_x, are the vectors with
    a 1 on the place of x: gamma omega is the least likely law of every vector but the all-ones one, on which the
    blanket is smaller than it could be. For k = 2 it is the largest blanket: omega is the smaller of the two laws, and
    A_x the vector with that bit only.

    Parameters
    ----------
    k : int
        Number of categories, from 2 to 1e9.
    optimized : bool
        True (default) for OUE, False for SUE.

    Raises
    ------
    InvalidInput
        If k is not a whole number in that range, or ``optimized`` not a bool.

    Examples
    --------
    >>> UnaryEncoding(10).name, UnaryEncoding(10, optimized=False).name
    ('oue:10', 'sue:10')
    >>> UnaryEncoding(10, optimized=False).chances(0.0).own.tolist()
    0.5
    """

    k: int
    optimized: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole_number(self.k, "unary encoding takes a whole number k", 2, MAX_SIZE))
        if self.optimized is not True and self.optimized is not False:
            raise InvalidInput(f"optimized must be True (OUE) or False (SUE); got {shown(self.optimized)}")

    @property
    def name(self) -> str:
        """Name of the family on the command line: ``"oue:K"`` (optimized) or ``"sue:K"`` (symmetric)."""
        return f"{'oue' if self.optimized else 'sue'}:{self.k}"

    @property
    def mixture(self) -> bool:
        """Whether one privacy blanket serves every budget: False, as the chances of other bits depend on the budget."""
        return False

    def chances(self, epsilon0: ArrayLike) -> BitChances:
        """Return the chances p and q of a 1 in the record's own bit and in any other bit, at each budget.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        odds = self._odds(local_budgets(epsilon0))
        other = odds / (1.0 + odds)
        return BitChances(np.full_like(other, 0.5) if self.optimized else 1.0 / (1.0 + odds), other)

    def law(self, epsilon0: ArrayLike) -> TwoLevelLaw:
        """Return the report laws of any two records (a permutation of places maps each pair onto every other).

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        budgets = local_budgets(epsilon0)
        odds = self._odds(budgets)
        if self.k == 2:
            # min(R0, R1) of the vectors 10, 01, and 11 and 00 together, over that of 00: odds, odds, E odds^2 + 1
            both = np.exp(-budgets) if self.optimized else np.ones_like(budgets)
            return TwoLevelLaw.of(budgets, odds, 0.0, 1.0 + both)
        return TwoLevelLaw.of(budgets, odds, odds * odds, 1.0)

    @property
    def triples(self) -> Triples:
        """Overlap of any three records' sets of likely reports, one of `Triples`: "alike".

        Bits are independent and look the same for every record.
        """
        return "alike"

    def triple_weights(self, epsilon0: float) -> tuple[float, float, float, float]:
        """Return the relative masses of reports with a 1 in none, a given one, two, all of three records' bits."""
        odds = float(self._odds(np.asarray(epsilon0)))
        return 1.0, odds, odds**2, odds**3

    def flip_thresholds(self, epsilon0: ArrayLike) -> Words:
        """Return integers Q, uint64: the sampler sets every other bit to 1 with probability exactly q' = Q / 2^64.

        Rounded up with a relative margin of 2^-46, never above 1/2 and never 0, so that q' >= q. SUE flips each bit
        with chance q', its own bit too; OUE reports its own bit as a fair one. The drawn e^epsilon0, (1/q' - 1)^2 or
        1/q' - 1, is then never above the stated one. At epsilon0 = 0 all bits are fair.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        odds = self._odds(local_budgets(epsilon0))
        lifted = np.ceil(odds / (1.0 + odds) * (1.0 + MARGIN) * 2.0**64)  # the product with 2^64 is exact
        return np.maximum(np.minimum(lifted, 2.0**63), 1.0).astype(np.uint64)

    def support_law(self, epsilon0: ArrayLike) -> SupportLaw:
        """Return the chances, as drawn, of a 1 on the record's place and on any other place.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        flips = self.flip_thresholds(epsilon0)
        other = flips.astype(np.float64) * 2.0**-64
        own = np.full_like(other, 0.5) if self.optimized else complement(flips).astype(np.float64) * 2.0**-64
        return SupportLaw(own, other)

    def randomize(self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness) -> PackedBits:
        """Return one vector of k bits per record, packed into bytes, each drawn with its own budget.

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
        ndarray of uint8, shape (n, ceil(k/8))
            The bit of category x is bit x mod 8, from the lowest, of byte floor(x/8); bits beyond k are 0.

        Raises
        ------
        InvalidInput
            If a record is not one of the categories (the first such row is named, counting from 1), a budget is bad,
            the lengths differ, or k is above 2^24.

        Examples
        --------
        >>> from shuffledp.numerics.randomness import secure_random
        >>> UnaryEncoding(10, optimized=False).randomize([1, 9], 700.0, secure_random()).tolist()
        [[2, 0], [0, 2]]
        """
        width = bytes_for(counted(self.k))
        codes = record_codes(records, self.k)
        budgets = matching(local_budgets(epsilon0), codes.size)
        reports = np.empty((codes.size, width), dtype=np.uint8)
        rows = max(_CHUNK_BYTES // width, 1)
        for start in range(0, codes.size, rows):
            chunk = reports[start : start + rows]
            part = budgets if not budgets.ndim else budgets[start : start + rows]
            self._fill(chunk, codes[start : start + rows], part, random)
        return reports

    def _fill(self, chunk: PackedBits, codes: NDArray[np.int64], budgets: FloatArray, random: Randomness) -> None:
        """Draw reports into their place."""
        flips = self.flip_thresholds(budgets)
        if flips.ndim:
            chunk[:] = bernoulli_bytes(flips, chunk.shape[1], random).T
        else:
            chunk[:] = bernoulli_bytes(flips, chunk.size, random).reshape(chunk.shape)
        if self.k % 8:
            chunk[:, -1] &= np.uint8(2 ** (self.k % 8) - 1)
        own = np.left_shift(np.uint8(1), codes.astype(np.uint8) & np.uint8(7))
        width, flat = chunk.shape[1], chunk.reshape(-1)
        place = slice(None) if width == 1 else np.arange(0, flat.size, width) + (codes >> 3)
        if self.optimized:
            flat[place] = (flat[place] & ~own) | (own * fair_bits(codes.size, random))
        else:
            flat[place] ^= own

    def support_counts(self, reports: PackedBits, weights: FloatArray | None = None) -> FloatArray:
        """Return for each category the number (or sum of `weights`) of the reports with a 1 in its bit, shape (k,)."""
        self._check(reports)
        if weights is None:
            return column_counts(reports, self.k).astype(np.float64)
        return weighted_column_counts(reports, self.k, weights)

    def for_budgets(self, epsilon0: ArrayLike, counts: ArrayLike) -> UnaryEncoding:
        """Return the family itself, as reports have k bits at every budget (their ones still reveal the budget)."""
        del epsilon0, counts
        return self

    @property
    def report_bits(self) -> int:
        """Size of an encoded report, in bits: k."""
        return self.k

    def pack(self, reports: PackedBits) -> PackedBits:
        """Encode reports as rows of bytes for transport, the inverse of `unpack`: shape (n, ceil(report_bits/8))."""
        self._check(reports)
        return np.ascontiguousarray(reports)

    def unpack(self, rows: PackedBits) -> PackedBits:
        """Return the reports encoded in rows of bytes; InvalidInput names the first row that is no report."""
        return check_padding(rows, self.k).copy()

    def possible(self, rows: PackedBits) -> NDArray[np.bool_]:
        """Return for each row of bytes whether it is a possible encoded report of this family: bool, shape (n,)."""
        return possible_padding(rows, self.k)

    def _check(self, reports: PackedBits) -> None:
        width = bytes_for(counted(self.k))
        report_rows(reports, "u", width, f"rows of {width} bytes, {self.k} bits each")

    def _odds(self, budgets: FloatArray) -> FloatArray:
        """q/(1 - q), the same double everywhere: thresholds are made of it."""
        return exp_rounded(-budgets if self.optimized else -0.5 * budgets)
