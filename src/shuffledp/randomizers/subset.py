"""Subset selection: report a random subset of the categories, which likely contains the record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import (
    MAX_SIZE,
    InvalidInput,
    counted,
    local_budgets,
    matching,
    one_shape,
    population,
    record_codes,
    report_rows,
    whole_number,
)
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.functions import exp_rounded, steps_between
from shuffledp.numerics.randomness import Randomness, Words
from shuffledp.randomizers.base import SupportLaw, Triples
from shuffledp.randomizers.mixing import (
    TwoLevelFamily,
    TwoLevelLaw,
    keep_masses,
    keep_thresholds,
    sampled_law,
    support_of,
)
from shuffledp.randomizers.wire import (
    PackedBits,
    bytes_for,
    check_padding,
    column_counts,
    possible_padding,
    weighted_column_counts,
)

# Uniformly random subsets of a given size: drawn by ranking random keys, written as bits or as a list.


def draw_subsets(
    records: NDArray[np.int64], kept: NDArray[np.bool_], k: int, size: int, random: Randomness
) -> NDArray[np.bool_]:
    """Draw subsets of `size` of k categories, exactly uniform, or uniform among those with the record.

    Every category gets a random 32-bit key, and the smallest keys are members; a kept record has the key 0. Where the
    last member ties with the first non-member, all the row's keys are drawn again: what is accepted is invariant under
    exchanging the (other) categories, hence uniform.

    Parameters
    ----------
    records : ndarray of int64, shape (n,)
        Categories, 0..k-1.
    kept : ndarray of bool, shape (n,)
        Which subsets must contain their record.
    k, size : int
        Numbers of categories and of members, 1 <= size < k.
    random : Randomness
        Source of the keys.

    Returns
    -------
    ndarray of bool, shape (n, k)
        Whether the category (column) is in the subset (row).
    """
    members = np.empty((records.size, k), dtype=np.bool_)
    rows = np.arange(records.size)
    while rows.size:
        keys = random.words(-(-rows.size * k // 2)).view(np.uint32)[: rows.size * k].reshape(rows.size, k)
        forced = np.flatnonzero(kept[rows])
        keys[forced, records[rows[forced]]] = 0
        last = np.partition(keys, size - 1, axis=1)[:, size - 1]
        drawn = keys <= last[:, None]
        members[rows] = drawn
        rows = rows[np.count_nonzero(drawn, axis=1) != size]
    return members


class SubsetReports(NamedTuple):
    """Encoding of subsets as arrays: packed bits, or ascending lists of members, whichever needs fewer bits.

    Parameters
    ----------
    k, size : int
        Number of categories, and of members of each subset.
    listed : bool
        Whether reports are lists of members.
    """

    k: int
    size: int
    listed: bool

    @classmethod
    def of(cls, k: int, size: int) -> SubsetReports:
        """Return the shorter of the two encodings, for subsets of `size` of k categories."""
        return cls(counted(k), size, size * (k - 1).bit_length() < k)

    @property
    def bits(self) -> int:
        """Size of an encoded report, in bits."""
        return self.size * self._each if self.listed else self.k

    @property
    def _each(self) -> int:
        return (self.k - 1).bit_length()

    @property
    def _columns(self) -> int:
        return self.size if self.listed else bytes_for(self.k)

    def empty(self, n: int) -> NDArray[Any]:
        """Return an uninitialised array for n reports, of the encoding's shape and type."""
        return np.empty((n, self._columns), dtype=np.uint32 if self.listed else np.uint8)

    def write(self, members: NDArray[np.bool_]) -> NDArray[Any]:
        """Return the encoded reports of subsets, given as membership of categories: bool, shape (n, k)."""
        if self.listed:
            return (np.flatnonzero(members) % self.k).astype(np.uint32).reshape(members.shape[0], self.size)
        return np.packbits(members, axis=1, bitorder="little")

    def support_counts(self, reports: NDArray[Any], weights: FloatArray | None) -> FloatArray:
        """Return for each category the sum of the weights (None: 1 each, exact) of subsets with it, shape (k,)."""
        self._check(reports)
        if self.listed:
            repeated = None if weights is None else np.repeat(weights, self.size)
            counts = np.bincount(reports.ravel(), weights=repeated, minlength=self.k)
            if counts.size > self.k:
                raise InvalidInput(f"a report names category {counts.size - 1}; there are {self.k}, from 0 on")
            return counts.astype(np.float64)
        if weights is None:
            return column_counts(reports, self.k).astype(np.float64)
        return weighted_column_counts(reports, self.k, weights)

    def pack(self, reports: NDArray[Any]) -> PackedBits:
        """Return reports as rows of bytes for transport; each member of a list takes ceil(log2 k) bits."""
        self._check(reports)
        if not self.listed:
            return np.ascontiguousarray(reports)
        wide = np.ascontiguousarray(reports, dtype="<u4").view(np.uint8).reshape(*reports.shape, 4)
        bits = np.unpackbits(wide, axis=2, bitorder="little")[:, :, : self._each]
        return np.packbits(bits.reshape(reports.shape[0], self.bits), axis=1, bitorder="little")

    def unpack(self, rows: PackedBits) -> NDArray[Any]:
        """Return the reports encoded in rows of bytes; InvalidInput names the first row that is no such subset."""
        check_padding(rows, self.bits)
        reports, right = self._read(rows)
        if not right.all():
            are = f"is no ascending list of {self.size} categories below {self.k}"
            what = are if self.listed else f"has not {self.size} members"
            raise InvalidInput(f"the report in row {int(np.argmin(right)) + 1} {what}; are these reports of this task?")
        return reports

    def possible(self, rows: PackedBits) -> NDArray[np.bool_]:
        """Return for each row of bytes whether it encodes a subset of `size` categories: bool, shape (n,)."""
        return possible_padding(rows, self.bits) & self._read(rows)[1]

    def _read(self, rows: PackedBits) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return what the rows say, the bits beyond the last overlooked, and whether each is a subset of that size."""
        if not self.listed:
            return rows.copy(), np.bitwise_count(rows).sum(axis=1, dtype=np.int64) == self.size
        bits = np.unpackbits(rows, axis=1, count=self.bits, bitorder="little")
        each = np.packbits(bits.reshape(-1, self._each), axis=1, bitorder="little")
        wide = np.zeros((each.shape[0], 4), dtype=np.uint8)
        wide[:, : each.shape[1]] = each
        members = wide.view("<u4").reshape(rows.shape[0], self.size).astype(np.uint32)
        return members, (members[:, -1] < self.k) & (members[:, 1:] > members[:, :-1]).all(axis=1)

    def _check(self, reports: NDArray[Any]) -> None:
        what = f"rows of {self._columns} " + ("categories" if self.listed else f"bytes, {self.k} bits each")
        report_rows(reports, "iu", self._columns, what)


_CHUNK_KEYS = 1 << 17
"""Number of random keys per chunk, which keeps temporary arrays in cache."""


@dataclass(frozen=True)
class SubsetSelection(TwoLevelFamily):
    """Subset selection over k categories: a subset of d categories, e^epsilon0 times likelier if it has the record.

    The record is in the subset with chance d e^epsilon0/(d e^epsilon0 + k - d); the other members are a uniformly
    random choice. Exactly epsilon0-LDP (Ye and Barg 2018). The blanket omega is uniform on the subsets of d categories,
    and the reports that x makes likely, A_x, are those that contain x: gamma omega is the least likely law of every
    subset, so this blanket is the largest one. d = 1 is k-ary randomized response.

    Parameters
    ----------
    k : int
        Number of categories, from 2 to 1e9.
    size : int, optional
        The size d of the subset, from 1 to k - 1, one for every budget: a mixture family. By default it is the
        best one for each budget, k/(e^epsilon0 + 1) rounded, at least 1; then the size reveals the
        budget, so this is not a mixture family (unless k is 2 or 3, when it is always 1).

    Raises
    ------
    InvalidInput
        If a parameter is not a whole number in its range.

    Examples
    --------
    >>> SubsetSelection(100).subset_size([0.0, 1.0, 5.0]).tolist()
    [50, 27, 1]
    """

    k: int
    size: int | None = None

    def __post_init__(self) -> None:
        k = whole_number(self.k, "subset selection takes a whole number k", 2, MAX_SIZE)
        object.__setattr__(self, "k", k)
        if self.size is not None:
            what = "subset selection takes a whole size"
            object.__setattr__(self, "size", whole_number(self.size, what, 1, k - 1))

    @property
    def name(self) -> str:
        """Name on the command line: ``"subset:K"``, or ``"subset:K:D"`` with a fixed size."""
        return f"subset:{self.k}" if self.size is None else f"subset:{self.k}:{self.size}"

    @property
    def mixture(self) -> bool:
        """Whether one privacy blanket serves every budget: True if the subset's size is the same at all budgets."""
        return self.size is not None or int(self.subset_size(0.0)) == 1

    @property
    def two_point(self) -> bool:
        """Whether two records differ on two outcomes only: True for k = 2, binary randomized response."""
        return self.k == 2

    def subset_size(self, epsilon0: ArrayLike) -> NDArray[np.int64]:
        """Return the size d of the subset at each budget, int64 in the shape of epsilon0.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        budgets = local_budgets(epsilon0)
        if self.size is not None:
            return np.full(budgets.shape, self.size, dtype=np.int64)
        decay = exp_rounded(-budgets)  # the same everywhere: the size is a shape of reports
        best = np.rint(self.k * (decay / (1.0 + decay)))
        return np.clip(best, 1, self.k // 2).astype(np.int64)

    def law(self, epsilon0: ArrayLike) -> TwoLevelLaw:
        """Return the report laws of any two records (a permutation of categories maps each pair onto every other).

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        # numbers of subsets, over C(k, d)/(k (k-1))
        d = self.subset_size(epsilon0).astype(np.float64)
        rest = self.k - d
        return TwoLevelLaw.of(local_budgets(epsilon0), d * rest, d * (d - 1.0), rest * (rest - 1.0))

    @property
    def triples(self) -> Triples:
        """How the sets of likely reports of three records overlap, as a word of `Triples`: "alike", whichever they are.

        Categories may be renamed without a change of the law.
        """
        return "alike"

    def triple_weights(self, epsilon0: float) -> tuple[float, float, float, float]:
        """Return the relative numbers of subsets that contain none, one, two, and all of three categories.

        The unit is C(k, d)/(k (k-1) (k-2)), with d the size. Of one or two categories, given ones are meant; see
        `TwoLevelFamily.triple_weights`.
        """
        d = float(self.subset_size(epsilon0))
        rest = self.k - d
        return (
            rest * (rest - 1.0) * (rest - 2.0),
            d * rest * (rest - 1.0),
            d * (d - 1.0) * rest,
            d * (d - 1.0) * (d - 2.0),
        )

    def third(self, law: TwoLevelLaw, epsilon0: ArrayLike) -> FloatArray:
        """Return the chance, for a record x2, that the subset contains x0 but not x1, at each budget.

        Under omega, x2 takes one of the d - 1 other places in the subset, or one of k - d - 1 places outside it, of k -
        2. See `TwoLevelFamily.third`.
        """
        d = self.subset_size(epsilon0)
        return law.only * (law.top * ((d - 1) / (self.k - 2)) + law.gamma * ((self.k - d - 1) / (self.k - 2)))

    def keep_thresholds(self, epsilon0: ArrayLike) -> Words:
        """Return 64-bit whole numbers K, one per budget: with probability K/2^64 the record is kept.

        If it is kept, the subset is drawn uniformly from those that contain the record; else from all subsets.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.

        Returns
        -------
        ndarray of uint64
            K, in the shape of `epsilon0`.
        """
        return keep_thresholds(*keep_masses(local_budgets(epsilon0), self.subset_size(epsilon0) / self.k))

    def support_law(self, epsilon0: ArrayLike) -> SupportLaw:
        """Return the chances, as drawn, that the subset has the record, and that it has a given other category.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        size = self.subset_size(epsilon0)
        return support_of(sampled_law(self.keep_thresholds(epsilon0)), size / self.k, (size - 1) / (self.k - 1))

    def for_budgets(self, epsilon0: ArrayLike, counts: ArrayLike) -> SubsetSelection:
        """Return the family with the size fixed to that of least predicted variance for these users.

        The family itself is returned if its size is fixed already. epsilon0 are budgets in nats, counts the numbers of
        users with each. The variance of a rare category's estimate is sum q (1-q)/(sum (p-q))^2 with equal
        coefficients, p and q the chances that a subset has its record and another category. The least is taken over 512
        sizes evenly spread in their logarithm between the best ones of the smallest and the largest budget, and these
        two.
        """
        if self.size is not None:
            return self
        budgets, users = population(epsilon0, counts)
        least, most = int(self.subset_size(budgets.max())), int(self.subset_size(budgets.min()))
        sizes = np.array([least])
        if least < most:
            sizes = np.unique(np.rint(steps_between(least, most, 512)).astype(np.int64))
        return replace(self, size=min((self._variance(int(d), budgets, users), int(d)) for d in sizes)[1])

    def _variance(self, size: int, budgets: FloatArray, users: FloatArray) -> float:
        """Predicted variance of a rare category's estimate with equal coefficients; inf without information."""
        keep, blanket = keep_masses(budgets, size / self.k)
        other = keep * ((size - 1) / (self.k - 1)) + blanket * (size / self.k)
        apart = float(np.sum(users * keep)) * ((self.k - size) / (self.k - 1))
        return float(np.sum(users * other * (1.0 - other))) / apart**2 if apart > 1e-150 else np.inf

    def randomize(self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness) -> NDArray[Any]:
        """Return one subset per record, each drawn with its own budget.

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
        ndarray
            Where k bits are no more than d numbers of ceil(log2 k) bits: uint8 of shape (n, ceil(k/8)), a 1 for each
            member as in `UnaryEncoding`. Else uint32 of shape (n, d), the members in ascending order.

        Raises
        ------
        InvalidInput
            If a record is not one of the categories (the first such row is named, counting from 1), a budget is
            bad, the lengths differ, k is above 2^24, or no size is fixed and the budgets would choose different ones.
        """
        codes = record_codes(records, self.k)
        budgets = matching(local_budgets(epsilon0), codes.size)
        if self.size is None and budgets.size:
            fixed = replace(self, size=one_shape(self.subset_size(budgets), "a size d of the subset"))
            return fixed.randomize(codes, budgets, random)
        reports = self._reports()
        everyone = None if budgets.ndim else int(self.keep_thresholds(budgets))
        out = reports.empty(codes.size)
        rows = max(_CHUNK_KEYS // self.k, 1)
        for start in range(0, codes.size, rows):
            chunk = codes[start : start + rows]
            keep = self.keep_thresholds(budgets[start : start + rows]) if everyone is None else everyone
            kept = random.bernoulli(keep, chunk.size)
            out[start : start + rows] = reports.write(draw_subsets(chunk, kept, self.k, reports.size, random))
        return out

    def support_counts(self, reports: NDArray[Any], weights: FloatArray | None = None) -> FloatArray:
        """Return the number (or sum of `weights`) of the subsets that have each category, shape (k,)."""
        return self._reports().support_counts(reports, weights)

    @property
    def report_bits(self) -> int:
        """Size of an encoded report, in bits: the smaller of k and d ceil(log2 k); the size must be fixed."""
        return self._reports().bits

    def pack(self, reports: NDArray[Any]) -> PackedBits:
        """Encode reports as rows of bytes for transport, the inverse of `unpack`: shape (n, ceil(report_bits/8))."""
        return self._reports().pack(reports)

    def unpack(self, rows: PackedBits) -> NDArray[Any]:
        """Return the reports encoded in rows of bytes; InvalidInput names the first row that is no report."""
        return self._reports().unpack(rows)

    def possible(self, rows: PackedBits) -> NDArray[np.bool_]:
        """Return for each row of bytes whether it is a possible encoded report of this family: bool, shape (n,)."""
        return self._reports().possible(rows)

    def _reports(self) -> SubsetReports:
        """How subsets of the fixed size are written."""
        if self.size is None and not self.mixture:
            raise InvalidInput(
                "reports of subset selection have a shape only where the size d is fixed; "
                "take for_budgets(epsilon0, counts), or give the size"
            )
        return SubsetReports.of(self.k, int(self.subset_size(0.0)))
