"""Uniformly random subsets of a given size: drawn by ranking random keys, written as bits or as a list."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.randomizers.bits import PackedBits, bytes_for, column_counts, weighted_column_counts
from shuffledp.randomizers.checks import counted, report_rows
from shuffledp.randomizers.wire import check_padding, possible_padding


def draw_subsets(
    records: NDArray[np.int64], kept: NDArray[np.bool_], k: int, size: int, random: Randomness
) -> NDArray[np.bool_]:
    """Draw subsets of `size` of k categories, exactly uniform, or uniform among those with the record.

    Every category gets a random 32-bit key, and the smallest keys are in; a kept record has the key 0. Where the
    last one in ties with the first one out, all the row's keys are drawn again: what is accepted is invariant under
    exchanging the (other) categories, hence uniform.

    Parameters
    ----------
    records : ndarray of int64, shape (n,)
        Categories, 0..k-1.
    kept : ndarray of bool, shape (n,)
        Which subsets must have their record.
    k, size : int
        1 <= size < k.
    random : Randomness
        Source of the keys.

    Returns
    -------
    ndarray of bool, shape (n, k)
        Membership.
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
    """Subsets as arrays: packed bits, or a list of the members in ascending order, whichever needs fewer bits.

    Parameters
    ----------
    k, size : int
        Categories, and members of each subset.
    listed : bool
        Whether reports are lists.
    """

    k: int
    size: int
    listed: bool

    @classmethod
    def of(cls, k: int, size: int) -> SubsetReports:
        """Return the shorter way of writing."""
        return cls(counted(k), size, size * (k - 1).bit_length() < k)

    @property
    def bits(self) -> int:
        """Bits of a report on the wire."""
        return self.size * self._each if self.listed else self.k

    @property
    def _each(self) -> int:
        return (self.k - 1).bit_length()

    @property
    def _columns(self) -> int:
        return self.size if self.listed else bytes_for(self.k)

    def empty(self, n: int) -> NDArray[Any]:
        """Return room for n reports."""
        return np.empty((n, self._columns), dtype=np.uint32 if self.listed else np.uint8)

    def write(self, members: NDArray[np.bool_]) -> NDArray[Any]:
        """Return the reports of given memberships, shape (n, k)."""
        if self.listed:
            return (np.flatnonzero(members) % self.k).astype(np.uint32).reshape(members.shape[0], self.size)
        return np.packbits(members, axis=1, bitorder="little")

    def support_counts(self, reports: NDArray[Any], weights: FloatArray | None) -> FloatArray:
        """Sum of the weights of the subsets with each category, shape (k,); exact without weights."""
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
        """Rows of bytes; each member of a list takes ceil(log2 k) bits."""
        self._check(reports)
        if not self.listed:
            return np.ascontiguousarray(reports)
        wide = np.ascontiguousarray(reports, dtype="<u4").view(np.uint8).reshape(*reports.shape, 4)
        bits = np.unpackbits(wide, axis=2, bitorder="little")[:, :, : self._each]
        return np.packbits(bits.reshape(reports.shape[0], self.bits), axis=1, bitorder="little")

    def unpack(self, rows: PackedBits) -> NDArray[Any]:
        """Return the reports `pack` was given; InvalidInput names the first row that is no subset of that size."""
        check_padding(rows, self.bits)
        reports, right = self._read(rows)
        if not right.all():
            are = f"is no ascending list of {self.size} categories below {self.k}"
            what = are if self.listed else f"has not {self.size} members"
            raise InvalidInput(f"the report in row {int(np.argmin(right)) + 1} {what}; are these reports of this task?")
        return reports

    def possible(self, rows: PackedBits) -> NDArray[np.bool_]:
        """Whether each row is a subset of that size; see `WireFormat`."""
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
