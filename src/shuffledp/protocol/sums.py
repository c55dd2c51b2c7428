"""Exact sums over reports, by level: the whole numbers that a tally holds.

A sum over doubles depends on the order of its terms, and the order of rows is not released (docs/theorems/README.md,
"What is released"). So reports enter sums of whole numbers only. Wanted are, for public coefficients c of the levels,

    sum_i c_g(i) phi(report_i),    phi(report) a vector of whole numbers, g(i) the level of report i.               (S)

- Levels withheld, or one level: sum_i phi(report_i).
- Up to 64 levels: one such sum for each level; they are multiplied by c, levels ascending, when they are read.
- More levels: c_g is rounded once, to A_g 2^u with a whole number A_g below 2^28, and sum_i A_g phi is kept. As budgets
  of 1e-9 and of 5 may stand side by side, the unit 2^u is one of several: c_g/c_max selects one for every 2^8, so that
  A_g has at least 20 significant bits. The rounded c_g *are* the coefficients (`LevelSums.coefficients`): whatever else
  is computed from coefficients uses them, so nothing is inconsistent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray

Whole = NDArray[np.int64]
Count = Callable[[NDArray[Any], Whole | None], NDArray[Any]]
"""Sum over reports of weight (1 without weights) times phi, shape (size,): whole numbers, exact."""

FEW = 64
MOST_CELLS = 1 << 24
"""At most so many levels, and so many sums, have each level apart."""
_BITS, _OCTAVES, _LEAST = 28, 8, 12
_ROWS = 1 << 16
"""Weighted reports at a time: 2^16 of weight 2^28, even 2^9 times over (a transform of hashes), stay below 2^53."""
_LIMB = 26


class _Scales(NamedTuple):
    """One row of coefficients in whole numbers: coefficient = whole * unit[slot]."""

    slot: NDArray[np.intp]
    whole: Whole
    units: FloatArray
    first: int


class LevelSums:
    """How (S) is kept for several rows of coefficients and one phi.

    Parameters
    ----------
    coefficients : ndarray, shape (rows, levels)
        c, finite; one column where levels are withheld.
    size : int
        Length of phi.
    n : int
        Reports at most.
    bits : int
        |phi| is at most 2^bits.

    Raises
    ------
    InvalidInput
        If the sums of so many reports could leave 63 bits.

    Attributes
    ----------
    coefficients : ndarray, shape (rows, levels)
        As they enter: those given, or, of more than 64 levels, those rounded.
    shape : tuple of int
        Of the sums that are kept.
    """

    def __init__(self, coefficients: FloatArray, size: int, n: int, bits: int = 0) -> None:
        levels = coefficients.shape[1]
        self._scales: list[_Scales] | None = None
        self.coefficients, self.shape = coefficients, (levels, size)
        spare = 62 - bits - n.bit_length()
        self.levels = levels
        if levels <= FEW and levels * size <= max(MOST_CELLS, size) and spare >= 0:
            return
        if spare < _LEAST:
            raise InvalidInput(
                f"exact sums of {n} reports at {levels} different budgets do not fit into 63 bits; take fewer reports, "
                f"or round budgets down to at most {FEW} levels"
            )
        self._scales, first = [], 0
        for row in coefficients:
            self._scales.append(_scales(row, min(spare, _BITS), first))
            first += self._scales[-1].units.size
        self.coefficients = np.stack([s.whole * s.units[s.slot] for s in self._scales])
        self.shape = (first, size)

    def add(self, reports: NDArray[Any], levels: Whole | None, count: Count) -> Whole:
        """Return the sums over more reports, in `shape`; `levels` is None where there is one column."""
        out = np.zeros(self.shape, dtype=np.int64)
        if self._scales is None:
            if levels is None:
                out[0] = count(reports, None)
                return out
            small = levels.astype(np.uint8)
            order = np.argsort(small, kind="stable")
            ends = np.cumsum(np.bincount(small, minlength=self.levels))
            for level, part in enumerate(np.split(order, ends[:-1])):
                if part.size:
                    out[level] = count(reports[part], None)
            return out
        for start in range(0, reports.shape[0], _ROWS):
            chunk, at = reports[start : start + _ROWS], np.asarray(levels)[start : start + _ROWS]
            for scales in self._scales:
                slot, whole = scales.slot[at], scales.whole[at]
                for place in np.unique(slot):
                    mine = np.flatnonzero(slot == place)
                    out[scales.first + place] += count(chunk[mine], whole[mine]).astype(np.int64)
        return out

    def add_codes(self, codes: NDArray[Any], levels: Whole | None) -> Whole:
        """Return the sums over more reports that are themselves whole numbers below `size`: phi marks the number."""
        rows, size = self.shape
        if self._scales is None:
            joint = codes if levels is None else levels * size + codes
            return np.bincount(joint, minlength=rows * size).reshape(rows, size)
        out = np.zeros(self.shape, dtype=np.int64)
        for start in range(0, codes.size, _ROWS):
            chunk, at = codes[start : start + _ROWS], np.asarray(levels)[start : start + _ROWS]
            for scales in self._scales:
                slots = scales.units.size
                found = np.bincount(scales.slot[at] * size + chunk, scales.whole[at], slots * size)
                out[scales.first : scales.first + slots] += found.astype(np.int64).reshape(slots, size)
        return out

    def add_numbers(self, values: Whole, levels: Whole | None) -> NDArray[np.object_]:
        """Return the sums over more reports of phi = values, one whole number each below 2^62, of any size."""
        out = np.zeros(self.shape, dtype=object)
        if levels is None:
            out[0, 0] = whole_sum(values)
            return out
        for start in range(0, values.size, _ROWS):
            chunk, at = values[start : start + _ROWS], levels[start : start + _ROWS]
            if self._scales is None:
                out[:, 0] += _limb_sums(chunk, at, None, self.levels)
                continue
            for scales in self._scales:
                rows = slice(scales.first, scales.first + scales.units.size)
                out[rows, 0] += _limb_sums(chunk, scales.slot[at], scales.whole[at], scales.units.size)
        return out

    def read(self, sums: NDArray[Any], row: int) -> FloatArray:
        """Return (S) for one row of coefficients, shape (size,): float work, in one order."""
        if self._scales is None:
            parts, factors = sums, self.coefficients[row]
        else:
            factors = self._scales[row].units
            parts = sums[self._scales[row].first :][: factors.size]
        total = np.zeros(sums.shape[1])
        for part, factor in zip(parts, factors.tolist(), strict=True):
            total += part.astype(np.float64) * factor
        return total


def whole_sum(values: Whole) -> int:
    """Sum of whole numbers below 2^62, exactly."""
    if values.size and max(-int(values.min()), int(values.max())) < 2**62 // values.size:
        return int(values.sum())
    return (int(np.sum(values >> _LIMB)) << _LIMB) + int(np.sum(values & ((1 << _LIMB) - 1)))


def _scales(row: FloatArray, bits: int, first: int) -> _Scales:
    """Whole numbers below 2^bits in absolute value, and a unit for every 2^8 in the size of coefficients."""
    some, exponents = row != 0.0, np.frexp(row)[1].astype(np.int64)
    top = int(exponents[some].max(initial=-(1 << 20)))
    below = np.where(some, (top - exponents) // _OCTAVES, 0)
    used, slot = np.unique(below, return_inverse=True)
    powers = top - _OCTAVES * used - bits
    whole = np.rint(np.ldexp(row, -powers[slot].astype(np.intc))).astype(np.int64)
    return _Scales(slot, whole, np.ldexp(1.0, powers.astype(np.intc)), first)


def _limb_sums(values: Whole, slot: Whole, whole: Whole | None, slots: int) -> NDArray[np.object_]:
    """Sums of whole * values in each slot, through limbs whose weighted sums are exact doubles."""
    limb = 53 - _ROWS.bit_length() - (0 if whole is None else _BITS)
    total = np.zeros(slots, dtype=object)
    rest, shift = values, 0
    while rest.any():
        last = bool((np.abs(rest) < 1 << limb).all())
        part = rest if last else rest & ((1 << limb) - 1)
        found = np.bincount(slot, part if whole is None else part * whole, slots)
        total += np.array([int(one) << shift for one in found.tolist()], dtype=object)
        rest, shift = (rest - part) >> limb, shift + limb
    return total
