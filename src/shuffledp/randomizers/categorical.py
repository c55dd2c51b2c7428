"""Randomized response over k categories: keep the record, or report a uniformly random category."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.randomizers.base import PairBlanket, PairCounts, ReportSets, SupportLaw
from shuffledp.randomizers.checks import counted, matching, record_codes, report_rows
from shuffledp.randomizers.mixing import (
    CHUNK,
    SampledLaw,
    draw,
    keep_masses,
    keep_thresholds,
    sampled_law,
    support_of,
    uniform_below,
)
from shuffledp.randomizers.two_level import third_record
from shuffledp.randomizers.wire import PackedBits, checked_reports, pack_integers, possible_integers, unpack_integers

MAX_CATEGORIES = 10**9
MAX_CHANNEL = 4096
"""Most categories for which `channel` writes the k by k matrix out (128 MiB)."""


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
