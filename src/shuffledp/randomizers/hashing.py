"""Local hashing: hash the record to a small range, then randomized response on the range."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

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
    shown,
    whole_number,
)
from shuffledp.numerics.floats import TINY, FloatArray
from shuffledp.numerics.functions import logs_rounded
from shuffledp.numerics.randomness import Randomness, Words
from shuffledp.randomizers.base import PairBlanket, PairCounts, SupportLaw, Triples
from shuffledp.randomizers.item_domain import Codes, ItemDomain
from shuffledp.randomizers.mixing import (
    CHUNK,
    TwoLevelFamily,
    TwoLevelLaw,
    draw,
    keep_masses,
    keep_thresholds,
    sampled_law,
    support_of,
)
from shuffledp.randomizers.seeded import AffineHash
from shuffledp.randomizers.wire import (
    PackedBits,
    bytes_for,
    check_padding,
    checked_reports,
    pack_integers,
    possible_integers,
    possible_padding,
    unpack_integers,
)


def best_range(epsilon0: ArrayLike, counts: ArrayLike, largest: int) -> int:
    """Return the range of a hash, a power of two up to `largest`, with the least variance if all users share it.

    The variance of a rare category's estimate is sum q (1-q)/(sum (p-q))^2 with equal coefficients, p and q the chances
    that a report supports its record's category and another one.

    Parameters
    ----------
    epsilon0, counts : array_like, shape () or (levels,)
        Local budgets, nats, from 0 to 700, and how many users have each.
    largest : int
        Largest range allowed, a power of two of at least 2.

    Examples
    --------
    >>> best_range([1.0, 3.0], [500, 500], 64)
    16
    """
    budgets, users = population(epsilon0, counts)
    best: list[tuple[float, int]] = []
    for r in range(1, largest.bit_length()):
        share = 2.0**-r
        kept = float(np.sum(users * keep_masses(budgets, share)[0])) * (1.0 - share)
        best.append((share * (1.0 - share) / max(kept, TINY) ** 2 if kept else np.inf, 2**r))
    return min(best)[1]


@dataclass(frozen=True)
class LocalHashing(TwoLevelFamily):
    """Local hashing over k categories: each user draws a hash h to g values, and reports (h, y).

    y is h(record) with chance e^epsilon0 s, and each other value with chance s = 1/(e^epsilon0 + g - 1): g-ary
    randomized response of the hashed record. The blanket omega is a random hash and a uniform value, its mass is
    gamma = g s, and the reports that x makes likely are A_x = {(h, h(x))}. Exactly epsilon0-LDP if some hash separates
    two records.

    How private the shuffled reports are depends on how often two records collide. *The fewer collisions, the less
    private*: a "universal" family, whose collision probability is at most 1/g, is on the wrong side.

    The hash that is drawn is affine over the field of two elements, h(x) = A x xor b, with a uniformly random matrix
    A of log2(g) by u bits and uniformly random b, where the bits of a record are u = ceil(log2 k). Hashes of any
    three different records are exactly independent and uniform, which is all that the law and its bounds use. A
    report says (A, c), c = b xor y: it supports the records x with A x = c. It is a whole number of (u + 1) log2(g)
    bits, at most 64, which bounds g.

    Parameters
    ----------
    k : int
        Number of categories, from 2 to 1e9.
    g : int, optional
        Range of the hash, from 2 to 1e9, one for every budget: a mixture family. To be run it must be a power of
        two of at most `largest_range`. By default it is the one of these with the least variance at each budget: at
        most 7.7 % above that of the best real number e^epsilon0 + 1 (OLH: Wang, Blocki, Li, Jha 2017), which is
        reached at epsilon0 = 0.55, and at most 4.6 % from 0.68 on, as long as largest_range is above e^epsilon0. Then
        the range reveals the budget, so this is not a mixture family.
    collision : {"exact", "unknown"}
        "exact" (default): hashes of any three different records are independent and uniform, as for the hashes
        drawn here; any two collide with probability exactly 1/g. "unknown": any family of hashes whatever, drawn
        independently of the records; counted as if records never collided.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> LocalHashing(1000).hash_range([0.0, 1.0, 3.0]).tolist()
    [2, 4, 16]
    """

    k: int
    g: int | None = None
    collision: Literal["exact", "unknown"] = "exact"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole_number(self.k, "local hashing takes a whole number k", 2, MAX_SIZE))
        if self.g is not None:
            object.__setattr__(self, "g", whole_number(self.g, "local hashing takes a whole range g", 2, MAX_SIZE))
        if self.collision not in ("exact", "unknown"):
            raise InvalidInput(f"collision must be 'exact' or 'unknown'; got {shown(self.collision)}")

    @property
    def name(self) -> str:
        """Name on the command line: ``"olh:K"``, or ``"olh:K:G"`` with a fixed range.

        ``":unknown"`` is appended for unknown collisions.
        """
        fixed = "" if self.g is None else f":{self.g}"
        return f"olh:{self.k}{fixed}{':unknown' if self.collision == 'unknown' else ''}"

    @property
    def mixture(self) -> bool:
        """Whether one privacy blanket serves every budget: True if the range g of the hash is fixed."""
        return self.g is not None

    def hash_range(self, epsilon0: ArrayLike) -> NDArray[np.int64]:
        """Return the range g of the hash at each budget, int64 in the shape of epsilon0.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        budgets = local_budgets(epsilon0)
        if self.g is not None:
            return np.full(budgets.shape, self.g, dtype=np.int64)
        # (E + m)^2/m, m = g - 1, is as large at m1 as at m2 where E^2 = m1 m2
        inner = 2.0 ** np.arange(1, self.largest_range.bit_length()) - 1.0
        bounds = 0.5 * logs_rounded(inner[:-1] * inner[1:])
        return np.asarray(2 << np.searchsorted(bounds, budgets), dtype=np.int64)

    @property
    def largest_range(self) -> int:
        """Largest range g that can be drawn: 2^24, or less so that a report of (u + 1) log2(g) bits fits into 64."""
        return 1 << min(64 // ((self.k - 1).bit_length() + 1), 24)

    def law(self, epsilon0: ArrayLike) -> TwoLevelLaw:
        """Return the report laws of any two inputs; for unknown collisions, of two that never collide.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        others = self.hash_range(epsilon0) - 1.0
        if self.collision == "unknown":
            return TwoLevelLaw.of(local_budgets(epsilon0), 1.0, 0.0, others - 1.0)
        # per hash and value, times g^2: (h0, h1) differ with chance (g-1)/g, and y is h0 with chance 1/g
        return TwoLevelLaw.of(local_budgets(epsilon0), others, 1.0, others * others)

    @property
    def triples(self) -> Triples:
        """How the sets of likely reports of three records overlap, as a word of `Triples`: "alike" or "free".

        "alike" for exact collisions, as hashes of three records are independent and uniform; "free" (any overlap) for
        unknown collisions.
        """
        return "alike" if self.collision == "exact" else "free"

    def triple_weights(self, epsilon0: float) -> tuple[float, float, float, float]:
        """Return the relative masses of the reports that none, one, two, and all of three records make likely.

        Each of three records has the reported value with chance 1/g, independently. The second number is for one fixed
        record alone, the third for two fixed records alone; by symmetry it does not matter which. See
        `TwoLevelFamily.triple_weights`.
        """
        others = float(self.hash_range(epsilon0)) - 1.0
        return others**3, others**2, others, 1.0

    def witness_pairs(self, epsilon0: float) -> tuple[PairBlanket, PairBlanket] | None:
        """Return the attack on two records among users who hold a third one; None if collisions are unknown."""
        return None if self.collision == "unknown" else super().witness_pairs(epsilon0)

    def pair_counts(self, epsilon0: ArrayLike) -> PairCounts | None:
        """Return the chances of the outcomes that separate two records; None if collisions are unknown."""
        return None if self.collision == "unknown" else super().pair_counts(epsilon0)

    def keep_thresholds(self, epsilon0: ArrayLike) -> Words:
        """Return integers K: the sampler reports h(record) with probability K/2^64, else a uniform value.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return keep_thresholds(*keep_masses(local_budgets(epsilon0), 1.0 / self.hash_range(epsilon0)))

    def support_law(self, epsilon0: ArrayLike) -> SupportLaw:
        """Return the chances, as drawn, that a report supports its record, and another category (1/g).

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        share = 1.0 / self.hash_range(epsilon0)
        return support_of(sampled_law(self.keep_thresholds(epsilon0)), share, share)

    def for_budgets(self, epsilon0: ArrayLike, counts: ArrayLike) -> LocalHashing:
        """Return the family with the range fixed to that of least predicted variance for these users.

        The family itself is returned if its range is fixed already. epsilon0 are budgets in nats, counts the numbers of
        users with each; see `best_range`.
        """
        if self.g is not None:
            return self
        return replace(self, g=best_range(epsilon0, counts, self.largest_range))

    def randomize(self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness) -> NDArray[np.uint64]:
        """Return one report per record, a hash and a value, each drawn with its own budget.

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
        ndarray of uint64, shape (n,)
            (A, c), row after row of A from the lowest bit on, each row followed by its bit of c.

        Raises
        ------
        InvalidInput
            If a record is not one of the categories (the first such row is named, counting from 1), a budget is
            bad, the lengths differ, g cannot be drawn, or no g is fixed and the budgets would choose different ones.
        """
        codes = record_codes(records, self.k)
        budgets = matching(local_budgets(epsilon0), codes.size)
        if self.g is None and budgets.size:
            fixed = replace(self, g=one_shape(self.hash_range(budgets), "a range g of the hash"))
            return fixed.randomize(codes, budgets, random)
        hashes = self._hashes()
        everyone = None if budgets.ndim else int(self.keep_thresholds(budgets))
        reports = np.empty(codes.size, dtype=np.uint64)
        for start in range(0, codes.size, CHUNK):
            chunk = codes[start : start + CHUNK]
            keep = self.keep_thresholds(budgets[start : start + CHUNK]) if everyone is None else everyone
            words, kept = draw(hashes.bits, keep, chunk.size, random)
            reports[start : start + CHUNK] = hashes.include(words, chunk, kept)
        return reports

    def support_counts(self, reports: NDArray[np.uint64], weights: FloatArray | None = None) -> FloatArray:
        """Return the number (or sum of `weights`) of the reports that support each category, shape (k,).

        A report supports the categories that its hash sends to its value.
        """
        hashes = self._hashes()
        report_rows(reports, "u", None, f"one whole number each, below 2^{hashes.bits}")
        checked_reports(reports, 2**hashes.bits)
        return hashes.support_counts(reports, counted(self.k), weights)

    @property
    def report_bits(self) -> int:
        """Size of an encoded report, (u + 1) log2(g) bits; InvalidInput if the range is not fixed."""
        return self._hashes().bits

    def pack(self, reports: NDArray[np.uint64]) -> PackedBits:
        """Encode reports as rows of bytes for transport, the inverse of `unpack`: shape (n, ceil(report_bits/8))."""
        return pack_integers(reports, self.report_bits)

    def unpack(self, rows: PackedBits) -> NDArray[np.uint64]:
        """Return the reports encoded in rows of bytes; InvalidInput names the first row that is no report."""
        return unpack_integers(rows, self.report_bits)

    def possible(self, rows: PackedBits) -> NDArray[np.bool_]:
        """Return for each row of bytes whether it is a possible encoded report of this family: bool, shape (n,)."""
        return possible_integers(rows, self.report_bits, 2**self.report_bits)

    def _hashes(self) -> AffineHash:
        """Return the hashes of the fixed range, which must be one that can be drawn."""
        if self.g is None:
            raise InvalidInput(
                "reports of local hashing have a shape only where the range g is fixed; "
                "take for_budgets(epsilon0, counts), or give g"
            )
        if self.g & (self.g - 1) or self.g > self.largest_range:
            raise InvalidInput(
                f"a hash of {self.k} categories can be drawn if its range g is a power of two from 2 to "
                f"{self.largest_range}; got {self.g}; leave g out to have the best one chosen"
            )
        return AffineHash(self.g.bit_length() - 1, (self.k - 1).bit_length())


# Local hashing of one level: a random level of a search, and the hash of the record's code there.

LARGEST_RANGE = 64
"""Largest range of the hash, as counting takes that many steps per report."""
Reports = NDArray[np.uint32]


@dataclass(frozen=True)
class LeveledHashing(TwoLevelFamily):
    """Local hashing of a record that has one code at each of several levels: the report is about one level.

    The user draws a level, uniformly, and an affine hash (`LocalHashing`), and reports level, hash and the hashed code
    of that level through g-ary randomized response.

    The blanket omega is uniform on levels, hashes and values: a mixture family. The reports A_x that x makes likely are
    those whose hash sends the record's code to the value, a share f = 1/g. On a level where two records have different
    codes they share 1/g of these reports, on one where they have the same code all of them; so records that differ at
    every level overlap least and are the worst pair, that of local hashing (docs/theorems/randomizers.md). How a
    record's codes are made does not matter.

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
        """Name of the family on the command line: ``"items:BITS:LEVELS:G"``."""
        return f"items:{self.size}:{self.levels}:{self.g}"

    @property
    def k(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Number of different codes of a level, 2^size."""
        return 1 << self.size

    @property
    def rows(self) -> int:
        """Number of rows of a hash's matrix: log2 g, the bits of a hash."""
        return self.g.bit_length() - 1

    @property
    def mixture(self) -> bool:
        """Whether one privacy blanket serves every budget: True, it is uniform on levels, hashes and values."""
        return True

    @property
    def _flat(self) -> LocalHashing:
        """The law of one level."""
        return LocalHashing(self.k, self.g)

    def law(self, epsilon0: ArrayLike) -> TwoLevelLaw:
        """Return the report laws of two records that differ at every level, the worst pair: those of local hashing.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return self._flat.law(epsilon0)

    @property
    def sums_supports(self) -> str:
        """What a released sum counts: the reports of each level that support each code."""
        return "reports by level that support a code"

    @property
    def triples(self) -> Triples:
        """How the sets of likely reports of three records overlap, as a word of `Triples`: "alike by parts".

        Given the level of a report, the sets of any three records with different codes at that level overlap in the
        same way.
        """
        return "alike by parts"

    def triple_weights(self, epsilon0: float) -> tuple[float, float, float, float]:
        """Return the relative masses of the reports that none, one, two, and all of three records make likely.

        The records' codes differ at every level, so each has the reported value with chance 1/g, independently. The
        second number is for one fixed record alone, the third for two fixed records alone; by symmetry it does not
        matter which. See `TwoLevelFamily.triple_weights`.
        """
        return self._flat.triple_weights(epsilon0)

    def keep_thresholds(self, epsilon0: ArrayLike) -> Words:
        """Return integers K: the sampler reports the record's hash with probability K/2^64, else a uniform value.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return self._flat.keep_thresholds(epsilon0)

    def support_law(self, epsilon0: ArrayLike) -> SupportLaw:
        """Return the chances, as drawn, that a report supports its record's code of its level, and any other code.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return self._flat.support_law(epsilon0)

    def randomize(self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness) -> Reports:
        """Return one report per record, a level, a hash and a value, each drawn with its own budget.

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
            If a code is too large (the first such row is named, from 1), a budget is bad, or the lengths differ.
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
        """Return reports unchanged if all can come from this family; InvalidInput names the first row that cannot."""
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
        """Add reports to `total`, the sums of signs by level and cell from which support counts follow; whole numbers.

        With rows a_i of A, 1[A x = c] = 2^-r sum_s (-1)^(s.c) (-1)^((xor_(i in s) a_i).x) over all s of r bits. For
        each s but 0 the sign (-1)^(s.c) is added to the cell xor_(i in s) a_i of the report's level.

        Parameters
        ----------
        reports : ndarray of int, shape (n, 1 + log2 g)
            As `randomize` returned them.
        total : ndarray of int64, shape (levels 2^size,)
            Sums of signs, changed in place.
        weights : ndarray of whole numbers, shape (n,), or None
            Weight of each report; None: 1 each.
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
        """Size of an encoded report, in bits: 8 for the level, and those of the hash and its value."""
        return 8 + self.rows * (self.size + 1)

    def pack(self, reports: Reports) -> PackedBits:
        """Encode reports as rows of bytes for transport, the inverse of `unpack`: shape (n, ceil(report_bits/8))."""
        wide = self.checked(reports).astype("<u4")
        bits = np.unpackbits(wide.view(np.uint8), axis=1, bitorder="little").reshape(len(wide), -1, 32)
        rows = bits[:, 1:, : self.size + 1].reshape(len(wide), -1)
        return np.packbits(np.hstack((bits[:, 0, :8], rows)), axis=1, bitorder="little")

    def unpack(self, rows: PackedBits) -> Reports:
        """Return the reports encoded in rows of bytes; InvalidInput names the first row that is no report."""
        return self.checked(self._read(check_padding(rows, self.report_bits)))  # type: ignore[return-value]

    def possible(self, rows: PackedBits) -> NDArray[np.bool_]:
        """Return for each row of bytes whether it is a possible encoded report of this family: bool, shape (n,)."""
        return possible_padding(rows, self.report_bits) & (rows[:, 0] < self.levels)

    def _read(self, rows: PackedBits) -> Reports:
        bits = np.unpackbits(rows, axis=1, count=self.report_bits, bitorder="little")[:, 8:]
        wide = np.zeros((len(rows), self.rows, 32), dtype=np.uint8)
        wide[:, :, : self.size + 1] = bits.reshape(len(rows), self.rows, self.size + 1)
        hashes = np.packbits(wide.reshape(len(rows), -1), axis=1, bitorder="little").view("<u4")
        assert rows.shape[1] == bytes_for(self.report_bits)
        return np.hstack((rows[:, :1].astype(np.uint32), hashes.astype(np.uint32)))
