"""Affine hashes over the field of two elements, drawn with their report in one word, and counted by one transform."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Words
from shuffledp.randomizers.walsh import walsh_hadamard

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
