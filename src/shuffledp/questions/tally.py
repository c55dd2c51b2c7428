"""Tallies: exact sums over reports, in any order and in any pieces, from which every estimate is made.

The trusted shuffler takes away who sent what, and, if levels are withheld, at which budget. A `Task` says what is
public. `tally_for` gives its tally; reports are added, tallies merged, and written as bytes.

>>> import numpy as np
>>> from shuffledp.budgets import Budgets
>>> from shuffledp.randomizers import RandomizedResponse
>>> task = Task(RandomizedResponse(2), Budgets((700.0,), (4,)), "reports")
>>> monday, tuesday = tally_for(task), tally_for(task)
>>> monday.add(np.array([0, 1]))
>>> tuesday.add(np.array([1, 1]))
>>> monday.merge(tally_from_state(task, tuesday.state()))
>>> monday.estimate().value.round(6).tolist()
[0.25, 0.75]
"""

from __future__ import annotations

import math
import struct
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.budgets import Budgets, level_indices
from shuffledp.errors import InvalidInput, choice, shown
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.questions.question import SHUFFLED, Task, Weights
from shuffledp.randomizers.vector import mix
from shuffledp.setting import Seen


@dataclass(frozen=True, eq=False)
class ShuffledReports:
    """The shuffled reports with their public budgets: everything that the analyzer receives.

    Parameters
    ----------
    reports : ndarray of whole numbers or floats, first axis n
        In uniformly random order; read-only. One number a report, or one row (packed bits, a list, a vector).
    epsilons : ndarray, shape (n,)
        Local budgets (nats); read-only. Seen "levels": entry i is the budget of report i. Otherwise the budgets are in
        an independent random order, so that they do not show whose budget is which.
    seen : {"reports", "levels", "sum"}
        What the analyzer sees. Under "sum" an analyzer uses nothing but the counts of the reports.
    deltas : ndarray, shape (n,), optional
        Local delta0, in the order of `epsilons`; None where all are 0.
    """

    reports: NDArray[Any]
    epsilons: FloatArray
    seen: Seen
    deltas: FloatArray | None = None

    def __post_init__(self) -> None:
        if self.seen not in SHUFFLED:
            raise InvalidInput(f"shuffled reports are seen as one of {', '.join(SHUFFLED)}; got {shown(self.seen)}")
        if self.reports.ndim == 0 or self.reports.shape[:1] != self.epsilons.shape:
            raise InvalidInput(
                f"reports need one budget each; got shapes {self.reports.shape} and {self.epsilons.shape}"
            )
        if self.deltas is not None and self.deltas.shape != self.epsilons.shape:
            raise InvalidInput(f"budgets need one delta0 each; got shapes {self.deltas.shape}, {self.epsilons.shape}")
        for name in ("reports", "epsilons") if self.deltas is None else ("reports", "epsilons", "deltas"):
            locked = getattr(self, name).view()  # a view, so that the caller's own array stays writable
            locked.setflags(write=False)
            object.__setattr__(self, name, locked)

    @property
    def n(self) -> int:
        """The number of reports."""
        return self.reports.shape[0]

    @cached_property
    def budgets(self) -> Budgets:
        """The budgets as levels with their numbers of users."""
        if self.n and not self.epsilons.strides[0] and (self.deltas is None or not self.deltas.strides[0]):
            return Budgets(self.epsilons[:1], (self.n,), None if self.deltas is None else self.deltas[:1])
        return Budgets.of(self.epsilons, self.deltas)

    @property
    def levels(self) -> NDArray[np.int64] | None:
        """The index in `budgets` of each report's level, shape (n,); None where levels are not seen."""
        return level_indices(self.budgets, self.epsilons, self.deltas) if self.seen == "levels" else None

    def task(self, randomizer: Any, weights: Weights = "population") -> Task:
        """Return the task of which these reports are all the reports.

        Parameters
        ----------
        randomizer : FrequencyOracle, NumberRandomizer, TwoMoments, RangeTree or VectorRandomizer
            The member of the family that drew the reports.
        weights : {"population", "precision"}
            As for `frequency`.

        Raises
        ------
        InvalidInput
            If there are no reports, a budget is not allowed, or `weights` is unknown.
        """
        return Task(randomizer, self.budgets, self.seen, weights)


def shuffle_reports(
    reports: ArrayLike, epsilons: ArrayLike, *, seen: Seen, random: Randomness, deltas: ArrayLike | None = None
) -> ShuffledReports:
    """Return the reports in uniformly random order, with the budgets in the same or in an independent order.

    Parameters
    ----------
    reports : array_like, first axis n
        One report per user: a number or a row, of any numeric type, which is kept.
    epsilons : float or array_like, shape (n,)
        Local budgets, nats; one for all, or one each in the order of the reports.
    seen : {"reports", "levels", "sum"}
        "levels": budgets travel with their reports. "reports", "sum": budgets are permuted independently of the reports
        (GSPA Figure 1).
    random : Randomness
        Source of the permutations.
    deltas : float or array_like, shape (n,), optional
        Local delta0, which stay with their epsilon0; None: all are 0.

    Raises
    ------
    InvalidInput
        On an unknown `seen`, or different lengths.

    Examples
    --------
    >>> from shuffledp.numerics.randomness import secure_random
    >>> shuffled = shuffle_reports([0, 1, 1], [0.5, 1.0, 1.0], seen="reports", random=secure_random())
    >>> sorted(shuffled.reports.tolist()), sorted(shuffled.epsilons.tolist())
    ([0, 1, 1], [0.5, 1.0, 1.0])
    """
    sent = np.asarray(reports)
    budgets = np.asarray(epsilons, dtype=np.float64)
    if sent.ndim == 0 or (budgets.ndim and budgets.shape != sent.shape[:1]):
        n = sent.shape[0] if sent.ndim else 1
        raise InvalidInput(f"each of {n} reports needs a budget, or all the same; got {budgets.size} budgets")
    slack = None if deltas is None else np.broadcast_to(np.asarray(deltas, dtype=np.float64), sent.shape[:1])
    order = random.permutation(sent.shape[0])
    shuffled = sent[order]
    if not budgets.ndim:
        budgets = np.broadcast_to(budgets, sent.shape[:1])
        if slack is None or slack.strides == (0,):
            return ShuffledReports(shuffled, budgets, seen, slack)
    if seen != "levels":
        order = random.permutation(sent.shape[0])
    return ShuffledReports(shuffled, budgets[order], seen, None if slack is None else slack[order])


# Exact sums over reports, by level: the whole numbers that a tally holds.
#
# A sum over doubles depends on the order of its terms, and the order of rows is not released (docs/theorems/README.md,
# "What is released"). So reports enter sums of whole numbers only. Wanted are, for public coefficients c of the levels,
#
#     sum_i c_g(i) phi(report_i),    phi(report) a vector of whole numbers, g(i) the level of report i.              (S)
#
# - Levels withheld, or one level: sum_i phi(report_i).
# - Up to 64 levels: one such sum for each level; they are multiplied by c, levels ascending, when they are read.
# - More levels: c_g is rounded once, to A_g 2^u with a whole number A_g below 2^28, and sum_i A_g phi is kept. As
#   budgets of 1e-9 and of 5 may stand side by side, the unit 2^u is one of several: c_g/c_max selects one for every
#   2^8, so that A_g has at least 20 significant bits. The rounded c_g *are* the coefficients
#   (`LevelSums.coefficients`): whatever else is computed from coefficients uses them, so nothing is inconsistent.

Whole = NDArray[np.int64]


Count = Callable[[NDArray[Any], Whole | None], NDArray[Any]]
"""Function of reports and weights (None: all 1) that returns the sum of weight phi(report), shape (size,).

The result consists of exact integers.
"""


FEW = 64


MOST_CELLS = 1 << 24
"""Largest number of levels times length of phi for which sums are kept for each level separately."""


_BITS, _OCTAVES, _LEAST = 28, 8, 12


_ROWS = 1 << 16
"""Number of weighted reports per chunk.

2^16 reports of weight 2^28, even 2^9 times over (a transform of hashes), sum to less than 2^53.
"""


_LIMB = 26


class _Scales(NamedTuple):
    """One row of coefficients as integers: coefficient = whole * unit[slot]."""

    slot: NDArray[np.intp]
    whole: Whole
    units: FloatArray
    first: int


class LevelSums:
    """The layout in which (S) is kept, for several rows of coefficients and one function phi.

    Parameters
    ----------
    coefficients : ndarray, shape (rows, levels)
        c, finite; one column where levels are withheld.
    size : int
        Length of phi.
    n : int
        Largest number of reports.
    bits : int
        |phi| is at most 2^bits.

    Raises
    ------
    InvalidInput
        If the sums of so many reports could exceed 63 bits.

    Attributes
    ----------
    coefficients : ndarray, shape (rows, levels)
        The coefficients in use: those given or, for more than 64 levels, those rounded.
    shape : tuple of int
        Shape of the sums that are kept.
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
        """Return the sums (S) of further reports, of shape `shape`.

        Parameters
        ----------
        reports : ndarray
            The reports, one per row.
        levels : ndarray of int or None
            Level of each report, shape (m,); None where there is one column of coefficients.
        count : callable
            Function of reports and weights (None: 1 each) that returns the weighted sum of phi, shape (size,).
        """
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
        """Return the sums over further reports that are whole numbers, with phi the indicator of the number.

        Parameters
        ----------
        codes : ndarray of int, shape (m,)
            The reports, below `size`.
        levels : ndarray of int or None
            Level of each report, shape (m,); None where there is one column of coefficients.
        """
        rows, size = self.shape
        if self._scales is None:
            joint = codes if levels is None else levels * size + codes
            return np.bincount(joint, minlength=rows * size).reshape(rows, size)
        out = np.zeros(self.shape, dtype=np.int64)
        for start in range(0, codes.size, _ROWS):
            chunk, at = codes[start : start + _ROWS], np.asarray(levels)[start : start + _ROWS]
            for scales in self._scales:
                slots = scales.units.size
                counts = np.bincount(scales.slot[at] * size + chunk, scales.whole[at], slots * size)
                out[scales.first : scales.first + slots] += counts.astype(np.int64).reshape(slots, size)
        return out

    def add_numbers(self, values: Whole, levels: Whole | None) -> NDArray[np.object_]:
        """Return the sums over further reports that are whole numbers, with phi the number itself.

        Parameters
        ----------
        values : ndarray of int, shape (m,)
            The reports, below 2^62; the sums may be of any size.
        levels : ndarray of int or None
            Level of each report, shape (m,); None where there is one column of coefficients.
        """
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
        """Return (S) as floats, shape (size,), computed in a fixed order of operations.

        Parameters
        ----------
        sums : ndarray
            Sums from `add`, of shape `shape`.
        row : int
            Index of the row of coefficients.
        """
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
    """Return the exact sum of integers whose absolute values are below 2^62."""
    if values.size and max(-int(values.min()), int(values.max())) < 2**62 // values.size:
        return int(values.sum())
    return (int(np.sum(values >> _LIMB)) << _LIMB) + int(np.sum(values & ((1 << _LIMB) - 1)))


def _scales(row: FloatArray, bits: int, first: int) -> _Scales:
    """Return a row of coefficients as integers below 2^bits in absolute value, one unit per factor of 2^8 in size."""
    some, exponents = row != 0.0, np.frexp(row)[1].astype(np.int64)
    top = int(exponents[some].max(initial=-(1 << 20)))
    below = np.where(some, (top - exponents) // _OCTAVES, 0)
    used, slot = np.unique(below, return_inverse=True)
    powers = top - _OCTAVES * used - bits
    whole = np.rint(np.ldexp(row, -powers[slot].astype(np.intc))).astype(np.int64)
    return _Scales(slot, whole, np.ldexp(1.0, powers.astype(np.intc)), first)


def _limb_sums(values: Whole, slot: Whole, whole: Whole | None, slots: int) -> NDArray[np.object_]:
    """Return the sums of whole * values in each slot, through limbs whose weighted sums are exact doubles."""
    limb = 53 - _ROWS.bit_length() - (0 if whole is None else _BITS)
    total = np.zeros(slots, dtype=object)
    rest, shift = values, 0
    while rest.any():
        last = bool((np.abs(rest) < 1 << limb).all())
        part = rest if last else rest & ((1 << limb) - 1)
        sums = np.bincount(slot, part if whole is None else part * whole, slots)
        total += np.array([int(one) << shift for one in sums.tolist()], dtype=object)
        rest, shift = (rest - part) >> limb, shift + limb
    return total


# What all tallies share: who may be added, merged and read, and how little depends on the order of reports.

MAGIC, FORMAT = b"SHTL", 1


_HEADER = struct.Struct("<4sB3x32sQQ")  # magic, format, fingerprint of the task, reports, sum of the levels' keys


_LONG = 24


_LEVELS = 1 << 18
"""Number of levels per chunk, which keeps temporary arrays small where all budgets are different."""


Terms = Callable[[slice], tuple[FloatArray | NDArray[np.bool_] | float, ...]]


Made = Callable[[FloatArray, Any], tuple[FloatArray, ...]]
"""Function of the first row of coefficients and the law that returns further rows of coefficients."""


class Tally(ABC):
    """The exact sums over reports that an estimate needs, of a size that does not depend on the number of reports.

    **What it is a function of.** All that a tally holds, and every bit of its estimate, is a function of what the
    setting releases (the multiset of reports, or of pairs of report and level, or the sum alone) and of the task,
    which is public. Reports may come in any order and in any pieces, on any number of machines: the state of the
    merged tally is the same, byte for byte. So the certificate, which covers the multiset, covers the tally.

    Parameters
    ----------
    task : Task
        The public description of the reports.

    Raises
    ------
    InvalidInput
        If this tally does not serve the task's `seen`.
    """

    serves: ClassVar[tuple[Seen, ...]] = ("reports", "levels")

    def __init__(self, task: Task) -> None:
        choice(task.seen, "seen", self.serves)
        self.task = task
        self._n = self._key = 0
        self._only: Any = None
        self._tables = self._layout()
        self._sums = [self._empty(table) for table in self._tables]

    @property
    def n(self) -> int:
        """Number of reports added so far."""
        return self._n

    def add(self, reports: NDArray[Any], levels: NDArray[np.integer[Any]] | None = None) -> None:
        """Add reports to the sums.

        Parameters
        ----------
        reports : ndarray, first axis n
            As the randomizer drew them.
        levels : ndarray of int, shape (n,), optional
            Index in ``task.budgets`` of each report's level, 0 for the lowest (`level_indices`). Required where levels
            are seen and there are several; otherwise ignored.

        Raises
        ------
        InvalidInput
            If a report is not the randomizer's, a level is none of the task's, the lengths differ, or there are more
            reports than the task has users. The tally is then unchanged.
        """
        taken = np.asarray(reports)
        if taken.ndim == 0:
            raise InvalidInput("reports must be an array whose first axis counts them; got a single number")
        n = taken.shape[0]
        at = self._checked_levels(levels, n) if self.task.by_level else None
        self._room_for(n)
        if n == 0:
            return
        more = self._take(taken, at)
        self._sums = [mine + new for mine, new in zip(self._sums, more, strict=True)]
        self._n += n
        if at is not None:
            self._key = (self._key + self._keys(at)) % 2**64

    def merge(self, other: Tally) -> None:
        """Add the sums of another tally of the same task.

        Raises
        ------
        InvalidInput
            If the other tally is of another task, or both together hold more reports than the task has users.
        """
        if type(other) is not type(self) or other.task.fingerprint() != self.task.fingerprint():
            raise InvalidInput(
                f"tallies of different tasks cannot be merged: {_named(self.task)}, and {_named(other.task)}"
            )
        self._room_for(other.n)
        self._sums = [mine + theirs for mine, theirs in zip(self._sums, other._sums, strict=True)]
        self._n += other._n
        self._key = (self._key + other._key) % 2**64

    def state(self) -> bytes:
        """Return the contents of the tally as bytes, for `from_state`.

        Two tallies of one task have the same bytes if and only if they hold the same sums. All numbers are little
        endian:

        - 4 bytes ``SHTL``; 1 byte, the format number, 1; 3 bytes 0;
        - 32 bytes, ``task.fingerprint()``;
        - 8 bytes, the number of reports, unsigned;
        - 8 bytes, unsigned: the sum modulo 2^64 of the key of every report's level, key(level) =
          ``randomizers.codebook.mix(level + 1)``; 0 where levels are withheld or there is one;
        - the sums, whole numbers in two's complement, of 8 bytes each, or, for numbers (`MeanTally`), of 24. Their
          number and meaning follow from the task.

        The bytes hold no name, position or time, and no checksum.
        """
        head = _HEADER.pack(MAGIC, FORMAT, self.task.fingerprint(), self._n, self._key)
        return head + b"".join(_encode(sums) for sums in self._sums)

    @classmethod
    def from_state(cls, task: Task, data: bytes) -> Self:
        """Return the tally from the bytes that `state` returned.

        Parameters
        ----------
        task : Task
            The task of that tally.
        data : bytes
            The complete bytes from `state`.

        Raises
        ------
        InvalidInput
            If the bytes are no state, of another format or task, or cut short or too long.
        """
        tally = cls(task)
        if len(data) < _HEADER.size or data[:4] != MAGIC:
            raise InvalidInput(f"these {len(data)} bytes are no state of a tally; give the bytes that state() returned")
        _, form, digest, n, key = _HEADER.unpack_from(data)
        if form != FORMAT:
            raise InvalidInput(f"this state of a tally has format {form}; this library reads format {FORMAT}")
        if any(data[5:8]):
            raise InvalidInput("this state of a tally is damaged: its reserved bytes are not 0")
        if digest != task.fingerprint():
            raise InvalidInput(
                f"this state is of another task than {_named(task)}; randomizer, budgets, seen and weights must be "
                "those it was tallied with"
            )
        sizes = [sums.size * _width(sums) for sums in tally._sums]
        if len(data) != _HEADER.size + sum(sizes):
            raise InvalidInput(f"this state of a tally should have {_HEADER.size + sum(sizes)} bytes; got {len(data)}")
        tally._room_for(n)
        start = _HEADER.size
        for place, (sums, size) in enumerate(zip(tally._sums, sizes, strict=True)):
            tally._sums[place] = _decode(data[start : start + size], sums)
            start += size
        tally._n, tally._key = n, key
        return tally

    def estimate(self) -> Any:
        """Return the estimate, from the sums and from what is public about the task.

        Raises
        ------
        InvalidInput
            If the number of reports differs from the task's number of users (at some level, where levels are seen); or
            if no report carries information.
        """
        budgets = self.task.budgets
        if self._n != budgets.n:
            raise InvalidInput(
                f"the task has {budgets.n} users, and {self._n} reports were taken; add the others, or make a task of "
                "the budgets of those who reported"
            )
        if self.task.by_level and _key_sum(budgets.counts) != self._key:
            raise InvalidInput(
                f"{self._n} reports were taken, as many as the task has users, but with other budgets; make a task of "
                "the budgets of those who reported"
            )
        uninformative = int(self._public(lambda rows: (self._information(self._law(rows))[0] <= 0.0,))[0])
        if uninformative == self._n:
            raise InvalidInput(
                "no report carries information (every epsilon0 is 0 or too small; give some users a larger one); "
                "nothing can be estimated"
            )
        return self._estimate(uninformative)

    def with_law(self, plain: Any) -> Any:
        """Return an estimate from all reports with the known law of its counts, which intervals invert.

        The estimate itself where that law is not known. No report is needed: the counts follow from the value.

        Parameters
        ----------
        plain : Estimate
            As `estimate` returns it, or read from a file.
        """
        return plain

    @abstractmethod
    def _layout(self) -> list[LevelSums]:
        """Return the layouts of the sums that are kept."""

    @abstractmethod
    def _take(self, reports: NDArray[Any], levels: Whole | None) -> list[NDArray[Any]]:
        """Return the sums over further reports, one array per layout; refuse reports that are not the randomizer's."""

    @abstractmethod
    def _stated(self, rows: slice) -> Any:
        """Return the output distribution of reports at these levels, as the randomizer states it."""

    @abstractmethod
    def _information(self, law: Any) -> tuple[FloatArray, FloatArray | float]:
        """Return, for each level, the information of a report on its record, and its noise variance up to a factor."""

    @abstractmethod
    def _estimate(self, uninformative: int) -> Any:
        """Return the estimate, given the number of users whose reports carry no information."""

    def _empty(self, table: LevelSums) -> NDArray[Any]:
        """Return the sums over no reports, for one layout."""
        return np.zeros(table.shape, dtype=np.int64)

    def _law(self, rows: slice) -> Any:
        """Return `_stated` of these levels; cached where all levels fit in one chunk."""
        if self.task.budgets.levels > _LEVELS:
            return self._stated(rows)
        if self._only is None:
            self._only = self._stated(rows)
        return self._only

    def _coefficients(self, count: int, more: Made | None = None) -> FloatArray:
        """Return `count` rows of coefficients per level: a, up to its factor, and those that `more` makes of a.

        Equal weight for every user: a = 1/information; smallest variance: a = information/noise; 0 without information.
        Where levels are withheld all are 1.
        """
        if not self.task.by_level:
            return np.ones((count, 1))
        parts: list[FloatArray] = []
        for rows in self._chunks():
            law = self._law(rows)
            information, noise = self._information(law)
            above, below = (information, noise) if self.task.weights == "precision" else (1.0, information)
            a = np.divide(above, below, out=np.zeros_like(information), where=information > 0.0)
            parts.append(np.stack((a, *(more(a, law) if more else ()))))
        return np.concatenate(parts, axis=1)

    def _at(self, table: LevelSums, row: int, rows: slice) -> FloatArray:
        """Return one row of coefficients of these levels; the single coefficient where levels are withheld."""
        return table.coefficients[row, rows] if self.task.by_level else table.coefficients[row, :1]

    def _public(self, terms: Terms) -> list[float]:
        """Return the sums over all users of terms that depend on the level only, with the levels in ascending order."""
        counts = self.task.budgets.counts.astype(np.float64)
        sums = [[float(np.sum(counts[rows] * term)) for term in terms(rows)] for rows in self._chunks()]
        return [math.fsum(column) for column in zip(*sums, strict=True)]

    def _chunks(self) -> list[slice]:
        levels = self.task.budgets.levels
        return [slice(start, min(start + _LEVELS, levels)) for start in range(0, levels, _LEVELS)]

    def _keys(self, at: Whole) -> int:
        """Return the sum, modulo 2^64, of the keys of the given levels."""
        if self.task.budgets.levels <= at.size:
            return _key_sum(np.bincount(at, minlength=self.task.budgets.levels))
        return int(np.sum(mix((at + 1).view(np.uint64))))

    def _room_for(self, n: int) -> None:
        if self._n + n > self.task.budgets.n:
            raise InvalidInput(
                f"the task has {self.task.budgets.n} users; {self._n + n} reports are more than that; every user "
                "sends one, and none is added twice"
            )

    def _checked_levels(self, levels: NDArray[np.integer[Any]] | None, n: int) -> Whole:
        count = self.task.budgets.levels
        if levels is None:
            raise InvalidInput(f"levels are seen, and there are {count}: say which one each report has")
        at = np.asarray(levels)
        if at.shape != (n,) or at.dtype.kind not in "iu":
            raise InvalidInput(f"{n} reports need as many levels, whole numbers; got {at.dtype} of shape {at.shape}")
        if n and (at.min() < 0 or at.max() >= count):
            row = int(np.argmax((at < 0) | (at >= count)))
            raise InvalidInput(f"the level in row {row + 1} is {at[row]}; the task has levels 0 to {count - 1}")
        return at.astype(np.int64, copy=False)


def _key_sum(counts: Whole) -> int:
    """Return the sum over levels of count times key, modulo 2^64, by unsigned arithmetic."""
    return int(np.sum(mix(np.arange(1, counts.size + 1, dtype=np.uint64)) * counts.astype(np.uint64)))


def _named(task: Task) -> str:
    weights = f", weights {task.weights}" if task.seen == "levels" else ""
    return f"{task.randomizer!r} of {task.budgets!r}, seen {task.seen}{weights}"


def _width(sums: NDArray[Any]) -> int:
    return 8 if sums.dtype == np.int64 else _LONG


def _encode(sums: NDArray[Any]) -> bytes:
    if sums.dtype == np.int64:
        return sums.astype("<i8").tobytes()
    return b"".join(int(value).to_bytes(_LONG, "little", signed=True) for value in sums.ravel())


def _decode(data: bytes, like: NDArray[Any]) -> NDArray[Any]:
    if like.dtype == np.int64:
        return np.frombuffer(data, dtype="<i8").astype(np.int64).reshape(like.shape)
    whole = [int.from_bytes(data[i : i + _LONG], "little", signed=True) for i in range(0, len(data), _LONG)]
    return np.array(whole, dtype=object).reshape(like.shape)


_KINDS = (
    ("hashing.LeveledHashing", "items.ItemTally"),
    ("tree.RangeTree", "ranges.TreeTally"),
    ("numeric.TwoMoments", "variance.VarianceTally"),
    ("sketch.CoordinateSampling", "vectors.VectorTally"),
    ("seeded.SeededFamily", "vectors.VectorTally"),
    ("base.FrequencyOracle", "frequency.FrequencyTally"),
    ("base.NumberRandomizer", "mean.MeanTally"),
)
"""Randomizer families with the module and class of their tally; the first match counts, and only it is imported."""


def tally_for(task: Task) -> Tally:
    """Return an empty tally of a task.

    Parameters
    ----------
    task : Task
        The public description of the reports; its randomizer determines the kind of the tally.

    Returns
    -------
    Tally
        `FrequencyTally`, `MeanTally`, `VarianceTally`, `TreeTally`, `VectorTally` or `ItemTally`.

    Raises
    ------
    InvalidInput
        If no tally serves the randomizer, or its tally does not serve the task's `seen`.
    """
    return _kind(task)(task)


def tally_from_state(task: Task, data: bytes) -> Tally:
    """Return the tally of a task from the bytes that `Tally.state` returned.

    Parameters
    ----------
    task : Task
        The task of that tally.
    data : bytes
        The complete bytes from `Tally.state`.

    Raises
    ------
    InvalidInput
        As for `tally_for` and `Tally.from_state`.
    """
    return _kind(task).from_state(task, data)


def _kind(task: Task) -> type[Tally]:
    for family, tally in _KINDS:
        home, _, name = family.partition(".")
        loaded = sys.modules.get(f"shuffledp.randomizers.{home}")  # nothing is of a family that is not loaded
        if loaded is not None and isinstance(task.randomizer, getattr(loaded, name)):
            home, _, name = tally.partition(".")
            return getattr(import_module(f"shuffledp.questions.{home}"), name)
    raise InvalidInput(
        f"no tally serves {shown(task.randomizer)}: it must be a FrequencyOracle, a NumberRandomizer, TwoMoments, a "
        "RangeTree, a VectorRandomizer or a LeveledHashing"
    )
