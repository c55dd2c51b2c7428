"""Local hashing of one level: a random level of a search, and the hash of the record's code there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import Randomness, Words
from shuffledp.randomizers.base import SupportLaw, Triples
from shuffledp.randomizers.bits import PackedBits, bytes_for
from shuffledp.randomizers.checks import local_budgets, matching, report_rows, whole_number
from shuffledp.randomizers.hashing import LocalHashing
from shuffledp.randomizers.item_domain import Codes, ItemDomain
from shuffledp.randomizers.mixing import CHUNK
from shuffledp.randomizers.two_level import TwoLevelFamily, TwoLevelLaw
from shuffledp.randomizers.wire import check_padding, possible_padding

LARGEST_RANGE = 64
"""Of the hash: counting takes as many steps a report."""
Reports = NDArray[np.uint32]


@dataclass(frozen=True)
class LeveledHashing(TwoLevelFamily):
    """Local hashing of a record that has one code at each of several levels: the report is about one level.

    The user draws a level, uniformly, and an affine hash (`LocalHashing`), and reports level, hash and the hashed code
    of that level through g-ary randomized response.

    omega is uniform on levels, hashes and values, A_x the reports whose hash sends the record's code to the value,
    f = 1/g: a mixture family. On a level where two records have different codes they share 1/g of that, on one where
    they have the same code all of it; so records that differ at every level overlap least and are the worst pair, that
    of local hashing (docs/theorems/randomizers.md). How a record's codes are made does not matter.

    Parameters
    ----------
    size : int
        Bits of a code, from 2 to 24.
    levels : int
        Number of levels, from 1 to 32.
    g : int
        Range of the hash: a power of two from 2 to 64, one for every budget.
    domain : ItemDomain, optional
        What the codes stand for, for the search of an analyzer; it has as many bits and levels.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range, or the domain has other bits or levels.

    Examples
    --------
    >>> LeveledHashing(20, 4, 8).name
    'items:20:4:8'
    """

    size: int
    levels: int
    g: int
    domain: ItemDomain | None = None

    def __post_init__(self) -> None:
        for name, low, high in (("size", 2, 24), ("levels", 1, 32), ("g", 2, LARGEST_RANGE)):
            what = f"hashing of levels takes a whole {name}"
            object.__setattr__(self, name, whole_number(getattr(self, name), what, low, high))
        if self.g & (self.g - 1):
            raise InvalidInput(
                f"a hash can be drawn if its range g is a power of two from 2 to {LARGEST_RANGE}; got {self.g}"
            )
        if self.domain is not None and (self.domain.bits, self.domain.levels) != (self.size, self.levels):
            raise InvalidInput(
                f"the domain has codes of {self.domain.bits} bits at {self.domain.levels} levels; got {self.size} bits "
                f"and {self.levels} levels"
            )

    @property
    def name(self) -> str:
        """``"items:BITS:LEVELS:G"``."""
        return f"items:{self.size}:{self.levels}:{self.g}"

    @property
    def k(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Number of codes of a level."""
        return 1 << self.size

    @property
    def rows(self) -> int:
        """Rows of a hash's matrix: log2 g."""
        return self.g.bit_length() - 1

    @property
    def mixture(self) -> bool:
        """One blanket, uniform on levels, hashes and values, for every budget."""
        return True

    @property
    def _flat(self) -> LocalHashing:
        """The law of one level."""
        return LocalHashing(self.k, self.g)

    def law(self, epsilon0: ArrayLike) -> TwoLevelLaw:
        """Return the law of two records that differ at every level: that of local hashing.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return self._flat.law(epsilon0)

    @property
    def triples(self) -> Triples:
        """State "alike by parts": on each level, records with different codes are alike."""
        return "alike by parts"

    def triple_weights(self, epsilon0: float) -> tuple[float, float, float, float]:
        """Three records that differ at every level: each has the reported value with chance 1/g, independently."""
        return self._flat.triple_weights(epsilon0)

    def keep_thresholds(self, epsilon0: ArrayLike) -> Words:
        """Integers K: the value is the record's with probability K/2^64, else uniform (`mixing`).

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return self._flat.keep_thresholds(epsilon0)

    def support_law(self, epsilon0: ArrayLike) -> SupportLaw:
        """Chances that a report supports its record's code, and any other code, of its level: as drawn.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return self._flat.support_law(epsilon0)

    def randomize(self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness) -> Reports:
        """One level, hash and value per record, each under its own budget.

        Parameters
        ----------
        records : array_like of int, shape (n, levels) or (n,)
            Codes below 2^size, one for each level; or one for all levels.
        epsilon0 : float or array_like, shape (n,)
            Local budgets, nats, from 0 to 700; one for all, or one each.
        random : Randomness
            `secure_random()`, or `simulation_random(seed)` where no privacy is wanted.

        Returns
        -------
        ndarray of uint32, shape (n, 1 + log2 g)
            The level, then row after row of the hash's matrix A, each with its bit of c above it: the report supports
            the codes x of its level with A x = c.

        Raises
        ------
        InvalidInput
            If a code is none (the first such row is named, counting from 1), a budget is bad, or the lengths differ.
        """
        codes = self._checked_codes(records)
        n = codes.shape[0]
        budgets = np.broadcast_to(matching(local_budgets(epsilon0), n), (n,))
        everyone = self.keep_thresholds(budgets[:1]) if n and np.ndim(epsilon0) == 0 else None
        reports = np.empty((n, 1 + self.rows), dtype=np.uint32)
        mask, top = np.uint32((1 << (self.size + 1)) - 1), np.uint32(1 << self.size)
        for start in range(0, n, CHUNK):
            stop = min(start + CHUNK, n)
            out, size = reports[start:stop], stop - start
            level = random.integers(self.levels, size)
            keep = self.keep_thresholds(budgets[start:stop]) if everyone is None else np.repeat(everyone, size)
            kept = random.bernoulli(keep, size)
            drawn = random.words((self.rows * size + 1) // 2).view(np.uint32)[: self.rows * size]
            out[:, 0] = level
            out[:, 1:] = drawn.reshape(size, self.rows) & mask
            own = codes[np.arange(start, stop), level if codes.shape[1] > 1 else 0] | top
            # the last bit of the count is A x xor c: 0 in every row where the report supports x
            wrong = (np.bitwise_count(out[:, 1:] & own[:, None]) & np.uint8(1)) * kept[:, None]
            out[:, 1:] ^= wrong.astype(np.uint32) << np.uint32(self.size)
        return reports

    def _checked_codes(self, records: ArrayLike) -> Codes:
        raw = np.asarray(records)
        if raw.ndim == 1:
            raw = raw[:, None]
        if raw.ndim != 2 or raw.shape[1] not in (1, self.levels) or (raw.size and raw.dtype.kind not in "iu"):
            raise InvalidInput(
                f"records must be whole numbers, one for each of {self.levels} levels; got {raw.dtype} of shape "
                f"{np.shape(records)}"
            )
        bad = ((raw < 0) | (raw >= self.k)).any(axis=1)
        if bad.any():
            raise InvalidInput(f"the record in row {int(np.argmax(bad)) + 1} has a code that is not below {self.k}")
        return raw.astype(np.uint32)

    def checked(self, reports: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return the reports unchanged; raise InvalidInput, naming the row, if one cannot come from this family."""
        report_rows(reports, "iu", 1 + self.rows, f"{1 + self.rows} whole numbers each: level and hash")
        tops = np.array([self.levels] + [2 << self.size] * self.rows)
        bad = ((reports < 0) | (reports >= tops)).any(axis=1)
        if bad.any():
            row = int(np.argmax(bad))
            raise InvalidInput(
                f"the report in row {row + 1} is {reports[row].tolist()}; a level is below {self.levels}, and a row of "
                f"a hash below {2 << self.size}"
            )
        return reports

    def add_signs(self, reports: NDArray[np.integer], total: NDArray[np.int64], weights: Words | None = None) -> None:
        """Add the signs from which `support` follows, over more reports, to `total`, in whole numbers.

        With rows a_i of A,  1[A x = c] = 2^-r sum_s (-1)^(s.c) (-1)^((xor_(i in s) a_i).x)  over all s of r bits. For
        each s but 0 the sign (-1)^(s.c) is added to the cell xor_(i in s) a_i of the report's level.

        Parameters
        ----------
        reports : ndarray of int, shape (n, 1 + log2 g)
            As `randomize` returned them.
        total : ndarray of int64, shape (levels 2^size,)
            Changed.
        weights : ndarray of whole numbers, shape (n,), or None
            None: 1 each.
        """
        low = np.int64((1 << self.size) - 1)
        for start in range(0, reports.shape[0], CHUNK):
            part = reports[start : start + CHUNK].astype(np.int64)
            first = part[:, 0] << self.size
            weight = 1 if weights is None else weights[start : start + CHUNK].astype(np.int64)
            combined = np.zeros(part.shape[0], dtype=np.int64)
            for step in range(1, self.g):  # Gray code: one row is added to or taken from s at a time
                combined ^= part[:, (step & -step).bit_length()]
                sign = 1 - 2 * (combined >> self.size)
                np.add.at(total, first + (combined & low), sign * weight)

    @property
    def report_bits(self) -> int:
        """Bits of a report on the wire: 8 for the level, and those of the hash and its value."""
        return 8 + self.rows * (self.size + 1)

    def pack(self, reports: Reports) -> PackedBits:
        """Encode reports as they travel; see `shuffledp.randomizers.wire.WireFormat`."""
        wide = self.checked(reports).astype("<u4")
        bits = np.unpackbits(wide.view(np.uint8), axis=1, bitorder="little").reshape(len(wide), -1, 32)
        rows = bits[:, 1:, : self.size + 1].reshape(len(wide), -1)
        return np.packbits(np.hstack((bits[:, 0, :8], rows)), axis=1, bitorder="little")

    def unpack(self, rows: PackedBits) -> Reports:
        """Undo `pack`; a level that there is not is refused."""
        return self.checked(self._read(check_padding(rows, self.report_bits)))  # type: ignore[return-value]

    def possible(self, rows: PackedBits) -> NDArray[np.bool_]:
        """Whether each row is a report of this family; see `WireFormat`."""
        return possible_padding(rows, self.report_bits) & (rows[:, 0] < self.levels)

    def _read(self, rows: PackedBits) -> Reports:
        bits = np.unpackbits(rows, axis=1, count=self.report_bits, bitorder="little")[:, 8:]
        wide = np.zeros((len(rows), self.rows, 32), dtype=np.uint8)
        wide[:, :, : self.size + 1] = bits.reshape(len(rows), self.rows, self.size + 1)
        hashes = np.packbits(wide.reshape(len(rows), -1), axis=1, bitorder="little").view("<u4")
        assert rows.shape[1] == bytes_for(self.report_bits)
        return np.hstack((rows[:, :1].astype(np.uint32), hashes.astype(np.uint32)))
