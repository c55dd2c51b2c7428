"""A hierarchy of ranges: a random level of a tree over ordered bins, and Hadamard response on that level's nodes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import local_budgets, matching, record_codes, report_rows, whole_number
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.randomness import Randomness, Words
from shuffledp.randomizers.base import Triples
from shuffledp.randomizers.mixing import (
    CHUNK,
    SampledLaw,
    TwoLevelFamily,
    TwoLevelLaw,
    keep_masses,
    keep_thresholds,
    sampled_law,
)
from shuffledp.randomizers.walsh import walsh_hadamard
from shuffledp.randomizers.wire import PackedBits, checked_reports, pack_integers, possible_integers, unpack_integers

MAX_BINS = 1 << 22


@dataclass(frozen=True)
class RangeTree(TwoLevelFamily):
    """A tree over ordered bins, for range queries and quantiles: a random level's node, by Hadamard response.

    Level l = 1..h of the tree has a node for every branching^(h-l) neighbouring bins, h the smallest depth with
    branching^h >= bins. The user draws a level, uniformly, then a column j of Sylvester's Hadamard matrix of that
    level's order (the smallest power of two that has a row for every node, at least 2), and reports level, column and
    the sign there of the row of the record's ancestor, kept with chance e^epsilon0/(1 + e^epsilon0), else turned.

    The blanket omega is uniform on levels, then columns, then signs, and the same for every budget: a mixture family.
    The reports that x makes likely, A_x, are those with the true sign, of omega-mass 1/2. On a level where the
    ancestors of two records differ their rows are orthogonal, so the records share half of the columns; where they have
    one ancestor they share all. So pairs that differ at every level have the smallest overlap, 1/4, and are the worst:
    the pair of Hadamard response (docs/theorems/randomizers.md).

    Parameters
    ----------
    bins : int
        Number of bins, from 2 to 2^22; records are 0..bins-1.
    branching : int
        Children of a node, from 2 to bins; default 4, about the best for most ranges (Kulkarni, Cormode, Srivastava
        2019). From `bins` on there is one level: a flat histogram.

    Raises
    ------
    InvalidInput
        If a parameter is not a whole number in its range.

    Examples
    --------
    >>> RangeTree(100).nodes
    (2, 7, 25, 100)
    """

    bins: int
    branching: int = 4
    k: int = field(init=False, repr=False)
    """Nodes of the topmost level: records below different ones differ at every level."""

    def __post_init__(self) -> None:
        bins = whole_number(self.bins, "a tree of ranges takes a whole number of bins", 2, MAX_BINS)
        object.__setattr__(self, "bins", bins)
        what = "a tree of ranges takes a whole branching"
        object.__setattr__(self, "branching", whole_number(self.branching, what, 2, MAX_BINS))
        object.__setattr__(self, "k", self.nodes[0])

    @property
    def name(self) -> str:
        """Name of the family on the command line: ``"tree:BINS:BRANCHING"``."""
        return f"tree:{self.bins}:{self.branching}"

    @property
    def mixture(self) -> bool:
        """Whether one privacy blanket serves every budget: True, it is uniform on levels, columns and signs."""
        return True

    @property
    def nodes(self) -> tuple[int, ...]:
        """Number of nodes with bins below them, from the topmost level down; the last is the number of bins."""
        counts = [self.bins]
        while counts[-1] > self.branching:
            counts.append(-(-counts[-1] // self.branching))
        return tuple(reversed(counts))

    @property
    def orders(self) -> tuple[int, ...]:
        """Number of columns of the Hadamard matrix of each level, from the topmost level down."""
        return tuple(1 << max((count - 1).bit_length(), 1) for count in self.nodes)

    @property
    def depth(self) -> int:
        """Number h of levels of the tree."""
        return len(self.nodes)

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Number of the first report of each level, then the number of all reports: shape (depth + 1,)."""
        return np.concatenate(([0], 2 * np.cumsum(self.orders))).astype(np.int64)

    def law(self, epsilon0: ArrayLike) -> TwoLevelLaw:
        """Return the report laws of two records that differ at every level, the worst pair, at each budget.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return TwoLevelLaw.of(local_budgets(epsilon0), 1.0, 1.0, 1.0)

    @property
    def sums_supports(self) -> str:
        """What the released sum counts, as words for a message; the support of every node follows from it."""
        return "signs by level and column"

    @property
    def triples(self) -> Triples:
        """How the sets of likely reports of three records overlap, as a word of `Triples`: "alike by parts".

        Given the level of a report, the sets of any three records below different nodes of that level overlap in the
        same way.
        """
        return "alike by parts"

    def triple_weights(self, epsilon0: float) -> tuple[float, float, float, float]:
        """Return the relative masses of reports by which of three records make them likely; all are equal.

        For three records below different topmost nodes: at every level the eight sign patterns of three rows, with the
        sign of the report, are equally frequent. See `TwoLevelFamily.triple_weights`.
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

    def sampled_law(self, epsilon0: ArrayLike) -> SampledLaw:
        """Return the chances, as drawn, that the true sign is kept, and that a fair one replaces it, at each budget.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return sampled_law(self.keep_thresholds(epsilon0))

    def randomize(self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness) -> NDArray[np.int64]:
        """Return one report per record, a level, a column and a sign, each drawn with its own budget.

        Parameters
        ----------
        records : array_like of int, shape (n,)
            Bins, 0..bins-1.
        epsilon0 : float or array_like, shape (n,)
            Local budgets, nats, from 0 to 700; one for all, or one each.
        random : Randomness
            `secure_random()`, or `simulation_random(seed)` where no privacy is wanted.

        Returns
        -------
        ndarray of int64, shape (n,)
            The level's offset + 2 j + b for column j, with b = 0 for the sign 1 and b = 1 for the sign -1.

        Raises
        ------
        InvalidInput
            If a record is not one of the bins (the first such row is named, counting from 1), a budget is bad, or the
            lengths differ.
        """
        codes = record_codes(records, self.bins)
        thresholds = np.broadcast_to(self.keep_thresholds(matching(local_budgets(epsilon0), codes.size)), codes.shape)
        offsets, orders = self.offsets[:-1], np.array(self.orders)
        widths = self.branching ** np.arange(self.depth - 1, -1, -1)
        for start in range(0, codes.size, CHUNK):
            chunk = codes[start : start + CHUNK]
            level = random.integers(self.depth, chunk.size)
            words = random.words(chunk.size)
            column = (words >> np.uint64(1)).view(np.int64) & (orders[level] - 1)
            fair = (words & np.uint64(1)).view(np.int64)
            true = np.bitwise_count(column & (chunk // widths[level])).astype(np.int64) & 1
            kept = random.bernoulli(thresholds[start : start + CHUNK], chunk.size)
            chunk[:] = offsets[level] + 2 * column + np.where(kept, true, fair)
        return codes

    def checked(self, reports: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return reports unchanged if all are of this tree; InvalidInput names the first row that is not."""
        size = int(self.offsets[-1])
        report_rows(reports, "iu", None, f"whole numbers from 0 to {size - 1}, one each")
        return checked_reports(reports, size)

    def node_sums(self, counts: FloatArray) -> tuple[FloatArray, ...]:
        """Return for each level an array of shape (nodes,): the sum over its reports of weight sign H[node, column].

        H is the level's Hadamard matrix. A report of a record below the node adds 1 - gamma in the mean, any other one
        0.

        Parameters
        ----------
        counts : ndarray, shape (offsets[-1],)
            How often each report came, or the sum of its weights.
        """
        sums: list[FloatArray] = []
        for first, order, count in zip(self.offsets, self.orders, self.nodes, strict=False):
            tallied = counts[first : first + 2 * order].reshape(order, 2)
            sums.append(walsh_hadamard(tallied[:, 0] - tallied[:, 1])[:count])
        return tuple(sums)

    @property
    def report_bits(self) -> int:
        """Size of an encoded report, in bits: enough to number all reports of the tree."""
        return (int(self.offsets[-1]) - 1).bit_length()

    def pack(self, reports: NDArray[np.int64]) -> PackedBits:
        """Encode reports as rows of bytes for transport, the inverse of `unpack`: shape (n, ceil(report_bits/8))."""
        return pack_integers(reports, self.report_bits)

    def unpack(self, rows: PackedBits) -> NDArray[np.int64]:
        """Return the reports encoded in rows of bytes; InvalidInput names the first row that is no report."""
        reports = unpack_integers(rows, self.report_bits).view(np.int64)
        return checked_reports(reports, int(self.offsets[-1]))

    def possible(self, rows: PackedBits) -> NDArray[np.bool_]:
        """Return for each row of bytes whether it is a possible encoded report of this family: bool, shape (n,)."""
        return possible_integers(rows, self.report_bits, int(self.offsets[-1]))
