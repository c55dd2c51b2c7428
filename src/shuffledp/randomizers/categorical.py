"""Families for one of k categories whose reports are a category, bits, or a sign.

Randomized response keeps the record, or reports a uniformly random category. Unary encoding reports one bit per
category, each with noise of its own. Hadamard response reports one random entry (a sign) of the record's row of a
Hadamard matrix, by randomized response.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import (
    MAX_SIZE,
    InvalidInput,
    counted,
    local_budgets,
    matching,
    record_codes,
    report_rows,
    shown,
    whole_number,
)
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.functions import exp_rounded
from shuffledp.numerics.randomness import Randomness, Words
from shuffledp.randomizers.base import PairBlanket, PairCounts, ReportSets, SupportLaw, Triples
from shuffledp.randomizers.mixing import (
    CHUNK,
    MARGIN,
    SampledLaw,
    TwoLevelFamily,
    TwoLevelLaw,
    complement,
    draw,
    keep_masses,
    keep_thresholds,
    sampled_law,
    support_of,
    third_record,
    uniform_below,
)
from shuffledp.randomizers.walsh import walsh_hadamard
from shuffledp.randomizers.wire import (
    PackedBits,
    bernoulli_bytes,
    bytes_for,
    check_padding,
    checked_reports,
    column_counts,
    fair_bits,
    pack_integers,
    possible_integers,
    possible_padding,
    unpack_integers,
    weighted_column_counts,
)

MAX_CATEGORIES = 10**9
MAX_CHANNEL = 4096
MOST_CELLS = 64
"""Largest number of cells of a two-way table that people are asked for: of many cells a report says little of each."""
"""Largest number of categories for which `channel` returns the k by k matrix (128 MiB)."""


@dataclass(frozen=True)
class RandomizedResponse:
    """k-ary randomized response, a family over personal budgets (a mixture family).

    With probability 1 - gamma the report is the record, with probability gamma = k/(e^epsilon0 + k - 1) it is
    uniform on the k categories. So each wrong category is reported with probability s = 1/(e^epsilon0 + k -
    1) and the right one with e^epsilon0 s.

    Parameters
    ----------
    k : int
        Number of categories, from 2 to 1e9; records and reports are 0..k-1.

    Raises
    ------
    InvalidInput
        If k is not a whole number in that range.

    Examples
    --------
    >>> RandomizedResponse(3).channel(0.0).round(3).tolist()
    [[0.333, 0.333, 0.333], [0.333, 0.333, 0.333], [0.333, 0.333, 0.333]]
    """

    k: int

    def __post_init__(self) -> None:
        whole = isinstance(self.k, int | np.integer) and not isinstance(self.k, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not (whole and 2 <= self.k <= MAX_CATEGORIES):
            raise InvalidInput(
                f"randomized response takes a whole number k from 2 to {MAX_CATEGORIES}; got {shown(self.k)}"
            )
        object.__setattr__(self, "k", int(self.k))

    @property
    def name(self) -> str:
        """Name of the family on the command line: ``"rr"`` for two categories, ``"krr:K"`` otherwise."""
        return "rr" if self.k == 2 else f"krr:{self.k}"

    def channel(self, epsilon0: float) -> FloatArray:
        """Return the matrix of chances P(report | record) at one budget.

        Parameters
        ----------
        epsilon0 : float
            Local budget, nats, at least 0.

        Returns
        -------
        ndarray, shape (k, k)
            Row x is the law of the report of record x; correct to a few ulp of each entry.

        Raises
        ------
        InvalidInput
            On a bad budget, or more than 4096 categories (the matrix would not fit; its entries are in the
            class's formula).
        """
        if self.k > MAX_CHANNEL:
            raise InvalidInput(
                f"a channel matrix of {self.k} categories is too large; up to {MAX_CHANNEL} are written out"
            )
        _, blanket = self._masses(_budget(epsilon0))
        matrix = np.full((self.k, self.k), float(blanket) / self.k)
        np.fill_diagonal(matrix, 1.0 / (1.0 + (self.k - 1) * np.exp(-float(epsilon0))))
        return matrix

    @property
    def mixture(self) -> bool:
        """Whether one privacy blanket serves every budget: True, it is uniform on the categories."""
        return True

    @property
    def two_point(self) -> bool:
        """Whether two records differ on two outcomes only: True for k = 2."""
        return self.k == 2

    @property
    def report_sets(self) -> ReportSets:
        """The sets A_x of likely reports: A_x holds the category x alone, so the sets of two records are disjoint."""
        return ReportSets(self.k, disjoint=True)

    def check_budgets(self, epsilon0: ArrayLike, delta0: ArrayLike) -> None:
        """Accept every local budget: reports are (epsilon0, 0)-LDP, which satisfies any delta0 as well."""
        del epsilon0, delta0

    def pair_blankets(self, epsilon0: float) -> tuple[PairBlanket, ...]:
        """Return the pair of any two categories x0, x1, relative to the blanket uniform on the k categories.

        The cells are x0, x1 and, for k > 2, the categories that tell nothing about x0 against x1: masses (1/k, 1/k,
        (k-2)/k), ratios of x0's report k s (e^epsilon0, 1, 1), of x1's k s (1, e^epsilon0, 1), with s = 1/(e^epsilon0 +
        k - 1).

        Parameters
        ----------
        epsilon0 : float
            Local budget, nats, at least 0.
        """
        _, blanket = self._masses(_budget(epsilon0))
        wrong = float(blanket)  # k s
        right = self.k / (1.0 + (self.k - 1) * float(np.exp(-float(epsilon0))))  # k e^epsilon0 s
        cells = 2 if self.k == 2 else 3
        masses = np.array([1.0, 1.0, self.k - 2.0])[:cells] / self.k
        ratios0 = np.array([right, wrong, wrong])[:cells]
        ratios1 = np.array([wrong, right, wrong])[:cells]
        losses = np.array([1.0, -1.0, 0.0])[:cells] * float(epsilon0)
        return (PairBlanket(gamma=wrong, masses=masses, ratios0=ratios0, ratios1=ratios1, losses=losses),)

    def pair_counts(self, epsilon0: ArrayLike) -> PairCounts | None:
        """Return the chances of the two categories x0 and x1 themselves, at each budget; None for k = 2.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, at least 0.
        """
        if self.k == 2:
            return None
        budgets = _budget(epsilon0)
        wrong = self._masses(budgets)[1] / self.k
        return PairCounts(1.0 / (1.0 + (self.k - 1) * np.exp(-budgets)), wrong, (self.k - 2) * wrong, wrong)

    def blanket_mass(self, epsilon0: ArrayLike) -> FloatArray:
        """Return gamma = k/(e^epsilon0 + k - 1), the chance of a uniformly random report, at each budget.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, at least 0.

        Returns
        -------
        ndarray, shape of epsilon0
            Gamma, each entry to a few units in the last place.
        """
        return self._masses(_budget(epsilon0))[1]

    def witness_pairs(self, epsilon0: float) -> tuple[PairBlanket, PairBlanket] | None:
        """Return the attack on two categories among users who hold a third one, which certifies a lower bound.

        The pair is the same in both orders; None for k = 2.

        Parameters
        ----------
        epsilon0 : float
            Local budget, nats, at least 0.
        """
        if self.k == 2:
            return None
        pair = third_record(float(_budget(epsilon0)), (self.k - 3.0, 1.0, 0.0, 0.0))
        return pair, pair

    def keep_thresholds(self, epsilon0: ArrayLike) -> NDArray[np.uint64]:
        """Return integers K such that the sampler keeps the record with probability exactly K / 2^64.

        The mechanism that is drawn, not its formula, is epsilon0-LDP. With blanket mass g = 1 - K/2^64 the likelihood
        ratio of two records at any report is at most 1 + k (1-g)/g, which is at most e^epsilon0 if and only if g >=
        gamma. K is therefore rounded so that g >= gamma holds whatever the rounding errors: from the smaller of gamma
        (up) and 1 - gamma (down), with a relative margin of 2^-46. It is the same whole number on every machine. As K
        is at most 2^64 - 1, g is at least 2^-64 even where gamma is smaller (epsilon0 beyond about 44): more private.
        At epsilon0 = 0 K is 0, and the report is exactly uniform.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, at least 0.

        Returns
        -------
        ndarray of uint64, shape of epsilon0
            The thresholds K.
        """
        return keep_thresholds(*keep_masses(_budget(epsilon0), 1.0 / self.k))

    def sampled_law(self, epsilon0: ArrayLike) -> SampledLaw:
        """Return the chances, as actually drawn, of the record and of a uniform category, which estimators invert.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, at least 0.

        Returns
        -------
        SampledLaw
            Each chance is its integer over 2^64, rounded once. It differs from the formula by at most
            2^-46 min(gamma, 1 - gamma) + 2^-64.
        """
        return sampled_law(self.keep_thresholds(epsilon0))

    def randomize(self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness) -> NDArray[np.int64]:
        """Return one report per record, each drawn with its own budget.

        Parameters
        ----------
        records : array_like of int, shape (n,)
            Categories, 0..k-1.
        epsilon0 : float or array_like, shape (n,)
            Local budgets, nats, at least 0; one for all, or one each.
        random : Randomness
            `secure_random()`, or `simulation_random(seed)` where no privacy is wanted.

        Returns
        -------
        ndarray of int64, shape (n,)
            Categories, 0..k-1, independent of each other given the records.

        Raises
        ------
        InvalidInput
            If a record is not one of the categories (the first such row is named, counting from 1), a budget
            is negative or not finite, or the lengths differ.

        Examples
        --------
        >>> from shuffledp.numerics.randomness import secure_random
        >>> RandomizedResponse(4).randomize([0, 3, 2], 700.0, secure_random()).tolist()
        [0, 3, 2]
        """
        codes = record_codes(records, self.k)
        budgets = matching(_budget(epsilon0), codes.size)
        everyone = None if budgets.ndim else int(self.keep_thresholds(budgets))
        for start in range(0, codes.size, CHUNK):
            chunk = codes[start : start + CHUNK]
            keep = self.keep_thresholds(budgets[start : start + CHUNK]) if everyone is None else everyone
            halves, kept = draw(32, keep, chunk.size, random)
            np.copyto(chunk, uniform_below(self.k, halves, random), where=~kept)
        return codes

    def support_law(self, epsilon0: ArrayLike) -> SupportLaw:
        """Return the chances that a report is the record, and that it is a given other category, as drawn.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, at least 0.
        """
        return support_of(self.sampled_law(epsilon0), 1.0 / self.k, 0.0)

    def support_counts(self, reports: NDArray[np.int64], weights: FloatArray | None = None) -> FloatArray:
        """Return the number, or the sum of `weights`, of the reports of each category: floats, shape (k,)."""
        return np.bincount(self.checked(reports), weights=weights, minlength=counted(self.k)).astype(np.float64)

    def checked(self, reports: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return reports unchanged if all are categories; InvalidInput names the first row that is not."""
        report_rows(reports, "iu", None, f"whole numbers from 0 to {self.k - 1}, one each")
        return checked_reports(reports, self.k)

    def for_budgets(self, epsilon0: ArrayLike, counts: ArrayLike) -> RandomizedResponse:
        """Return the family itself, as the shape of its reports is the same at every budget."""
        del epsilon0, counts
        return self

    @property
    def report_bits(self) -> int:
        """Size of an encoded report, in bits: enough for the numbers 0, ..., k - 1."""
        return (self.k - 1).bit_length()

    def pack(self, reports: NDArray[np.int64]) -> PackedBits:
        """Encode reports as rows of bytes for transport, the inverse of `unpack`: shape (n, ceil(report_bits/8))."""
        return pack_integers(reports, self.report_bits)

    def unpack(self, rows: PackedBits) -> NDArray[np.int64]:
        """Return the reports encoded in rows of bytes; InvalidInput names the first row that is no report."""
        return checked_reports(unpack_integers(rows, self.report_bits).view(np.int64), self.k)

    def possible(self, rows: PackedBits) -> NDArray[np.bool_]:
        """Return for each row of bytes whether it is a possible encoded report of this family: bool, shape (n,)."""
        return possible_integers(rows, self.report_bits, self.k)

    def _masses(self, epsilon0: FloatArray) -> tuple[FloatArray, FloatArray]:
        """1 - gamma and gamma, each to a few ulp of itself; written in e^-epsilon0, so nothing overflows."""
        decay = np.exp(-epsilon0)
        whole = 1.0 + (self.k - 1) * decay
        return -np.expm1(-epsilon0) / whole, self.k * decay / whole


def _budget(epsilon0: ArrayLike) -> FloatArray:
    budgets = np.asarray(epsilon0, dtype=np.float64)
    valid = (budgets >= 0.0) & np.isfinite(budgets)
    if not valid.all():
        flat = budgets.ravel()
        row = int(np.argmin(valid.ravel()))
        where = f" in row {row + 1}" if budgets.ndim else ""
        raise InvalidInput(f"epsilon0{where} must be a finite number of nats of at least 0; got {flat[row]}")
    return budgets


_CHUNK_BYTES = 1 << 18
"""Number of bytes of reports per chunk, which keeps temporary arrays in cache."""


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
        """How the sets of likely reports of three records overlap, as a word of `Triples`: "alike", whichever they are.

        Bits are independent and look the same for every record.
        """
        return "alike"

    def triple_weights(self, epsilon0: float) -> tuple[float, float, float, float]:
        """Return the relative masses of the reports with a 1 in none, one, two, and all of three records' bits.

        The second number is for one fixed record alone, the third for two fixed records alone; by symmetry it does not
        matter which. See `TwoLevelFamily.triple_weights`.
        """
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
        """How the sets of likely reports of three records overlap, as a word of `Triples`: "alike", whichever they are.

        The eight sign patterns of three rows are equally frequent.
        """
        return "alike"

    def triple_weights(self, epsilon0: float) -> tuple[float, float, float, float]:
        """Return the relative masses of the reports that none, one, two, and all of three records make likely.

        They are equal: with the sign of the report all eight patterns of three rows are equally frequent, even if one
        row is the product of the others. See `TwoLevelFamily.triple_weights`.
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
