"""A randomizer of the user's own, given as a matrix of chances.

The doubles of the matrix are exact rationals, and its rows, divided by their exact sums, are the law that is certified.
Ratios of two chances are quotients of whole numbers, rounded once; so no budget is too small for them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import InvalidInput, local_budgets, local_deltas, one_budget, shown
from shuffledp.numerics.floats import LEAST_MASS, FloatArray, Upper, deflated, inflated, round_up
from shuffledp.randomizers.base import PairBlanket, PairCounts
from shuffledp.randomizers.mixing import LOSS_ULPS, Chance, SmallestBlanket, extremes, log_ratio

MAX_COMPARISONS = 2_000_000
"""Largest number of comparisons: pairs of records times outputs."""
_SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Channel:
    """A randomizer given by the caller as a matrix: row x holds the chances of the reports of record x.

    Everybody uses the same matrix, whatever their budget; the matrix's own local epsilon must not exceed anybody's
    budget. The blanket omega (a law of reports that is part of every record's law) is proportional to the smallest
    entry of each column, the largest blanket there is.

    Parameters
    ----------
    matrix : array_like, shape (records, outputs)
        Chances, finite and not negative, at least two rows. Each row sums to 1 within 1e-9; the certificate is for
        the rows divided by their exact sums. Entries that are meant to be equal should be equal doubles: then
        outputs and pairs of records that are alike are counted once.

    Raises
    ------
    InvalidInput
        If it is no such matrix (the row is named, counting from 1), or larger than 2,000,000 comparisons: records
        times records times outputs.

    Examples
    --------
    >>> channel = Channel([[0.75, 0.25], [0.25, 0.75]])
    >>> round(channel.epsilon0, 6), len(channel.pair_blankets(2.0))
    (1.098612, 1)
    """

    matrix: FloatArray

    def __init__(self, matrix: ArrayLike) -> None:
        object.__setattr__(self, "matrix", _checked(matrix))

    @classmethod
    def from_csv(cls, path: str | Path) -> Channel:
        """Return the channel whose matrix stands in a file: comma-separated numbers, one record per line, no header.

        Parameters
        ----------
        path : str or Path
            The file, UTF-8.

        Raises
        ------
        InvalidInput
            If it cannot be read, an entry is no number (the line is named), or the matrix is not a channel; row r is
            line r.
        """
        try:
            lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"the channel matrix {path} cannot be read: {error}") from None
        while lines and not lines[-1].strip():
            lines.pop()
        rows = [_parsed(line, f"{path}, line {number}") for number, line in enumerate(lines, 1)]
        for number, row in enumerate(rows, 1):
            if len(row) != len(rows[0]):
                raise InvalidInput(f"{path}, line {number} has {len(row)} numbers; line 1 has {len(rows[0])}")
        try:
            return cls(np.array(rows, dtype=np.float64).reshape(len(rows), -1 if rows else 0))
        except InvalidInput as error:
            raise InvalidInput(f"{path}: {error}") from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Channel):
            return NotImplemented
        return np.array_equal(self.matrix, other.matrix)

    def __hash__(self) -> int:
        return hash((self.matrix.shape, self.matrix.tobytes()))

    @property
    def name(self) -> str:
        """Name of the family on the command line: ``"channel"``."""
        return "channel"

    @property
    def mixture(self) -> bool:
        """Whether one privacy blanket serves every budget: True, as the law is the same at every budget."""
        return True

    @property
    def two_point(self) -> bool:
        """Whether records differ on two outcomes with the chances of the stated budget: False for any matrix."""
        return False

    @cached_property
    def rows(self) -> FloatArray:
        """The matrix with rows divided by their sums, shape (records, outputs), read-only; each entry to one ulp."""
        rows = self.matrix / np.array([[math.fsum(row)] for row in self.matrix.tolist()])
        rows.setflags(write=False)
        return rows

    @cached_property
    def epsilon0(self) -> Upper:
        """The channel's own local epsilon in nats: the largest log-ratio of two chances in a column, rounded up.

        inf if an output is possible for one record and impossible for another.
        """
        worst = 0.0
        for column in range(self.matrix.shape[1]):
            chances = self._exact(column)
            high, low = extremes(chances)
            if chances[high][0] > 0:
                worst = max(worst, log_ratio(chances[high], chances[low]))
        return round_up(worst) if worst > 0.0 else Upper(0.0)

    def divergence(self, epsilon: float) -> Upper:
        """Return the least delta0, rounded up, for which the channel certainly is (epsilon, delta0)-LDP, in [0, 1].

        Parameters
        ----------
        epsilon : float
            Nats, from 0 to 700.
        """
        likely = inflated(self.rows, 4)
        rare = self.rows * deflated(math.exp(one_budget(epsilon)), 16)
        worst = max(float(np.maximum(row - rare, 0.0).sum(axis=1).max()) for row in likely)
        return Upper(min(inflated(worst, 4 * self.rows.shape[1]), 1.0))

    def check_budgets(self, epsilon0: ArrayLike, delta0: ArrayLike) -> None:
        """Raise InvalidInput unless the channel keeps each of the local budgets.

        Parameters
        ----------
        epsilon0, delta0 : array_like
            The local budgets, nats from 0 to 700, and delta0 in [0, 1); broadcast with each other.

        Raises
        ------
        InvalidInput
            If the channel exceeds a budget; the message names the first one, and what the channel needs.
        """
        budgets, deltas = np.broadcast_arrays(local_budgets(epsilon0), local_deltas(delta0))
        small = budgets < self.epsilon0
        needed = {epsilon: self.divergence(epsilon) for epsilon in np.unique(budgets[small & (deltas > 0)]).tolist()}
        for epsilon, delta in zip(budgets[small].tolist(), deltas[small].tolist(), strict=True):
            if delta == 0.0:
                way_out = "state at least that, or a delta0 > 0"
                if math.isinf(self.epsilon0):
                    way_out = "an output that is possible for some records only needs a delta0 > 0"
                raise InvalidInput(
                    f"the channel's own epsilon is {shown(self.epsilon0)}, above a stated epsilon0 of "
                    f"{shown(epsilon)}; {way_out}"
                )
            if needed[epsilon] > delta:
                raise InvalidInput(
                    f"the channel needs delta0 of at least {shown(needed[epsilon])} at epsilon0 = "
                    f"{shown(epsilon)}, above the "
                    f"stated {shown(delta)}; state at least that"
                )

    def pair_blankets(self, epsilon0: float) -> tuple[PairBlanket, ...]:
        """Return the blanket description of every ordered pair of different records; see `PairBlanket`.

        Pairs whose cells are equal are listed once. An output that some record never gives has no blanket mass, and so
        no cell; if a record of the pair gives it, it stands in the pair's `spread`, where a negative loss is replaced
        by 0. The blanket mass gamma is 0 if no output is possible for every record.

        Parameters
        ----------
        epsilon0 : float
            Local budget, nats, from 0 to 700. It is only checked: a channel has one law.
        """
        one_budget(epsilon0)
        return self._pairs

    def blanket_mass(self, epsilon0: ArrayLike) -> FloatArray:
        """Return the blanket mass gamma, the sum of the columns' smallest entries, in the shape of epsilon0.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return np.full(local_budgets(epsilon0).shape, self._blanket.gamma)

    def pair_counts(self, epsilon0: ArrayLike) -> PairCounts | None:
        """Return None: two records of a channel need not be mirror images, so that no such counts exist."""
        del epsilon0

    def witness_pairs(self, epsilon0: float) -> tuple[PairBlanket, PairBlanket] | None:
        """Return the strongest attack: records x0, x1 relative to users who hold x2, then with x0 and x1 exchanged.

        The three records have the largest sum of (R(x0) - R(x1))^2/R(x2), R(x) the law of the reports of x. None if
        every record has an output that x0 or x1 may give and x2 never gives.

        Parameters
        ----------
        epsilon0 : float
            Local budget, nats, from 0 to 700; the law does not depend on it.
        """
        one_budget(epsilon0)
        return self._witness

    @cached_property
    def _witness(self) -> tuple[PairBlanket, PairBlanket] | None:
        best, chosen = 0.0, None
        rows = self.rows
        for first, second in combinations(range(rows.shape[0]), 2):
            used = (rows[first] > 0.0) | (rows[second] > 0.0)
            possible = np.flatnonzero((rows[:, used] >= LEAST_MASS).all(axis=1))
            if possible.size:
                apart = (rows[first, used] - rows[second, used]) ** 2
                values = (apart / rows[possible][:, used]).sum(axis=1)
                if values.max() > best:
                    best, chosen = float(values.max()), (first, second, int(possible[values.argmax()]), used)
        if chosen is None:
            return None
        first, second, third, used = chosen
        masses, places = rows[third], np.flatnonzero(used)
        losses = [log_ratio(self._exact(int(y))[first], self._exact(int(y))[second]) for y in places]
        one, two = rows[first][places] / masses[places], rows[second][places] / masses[places]
        log_ratios = np.array(losses)
        return (
            PairBlanket(1.0, masses[places], one, two, log_ratios, None, LOSS_ULPS),
            PairBlanket(1.0, masses[places], two, one, -log_ratios, None, LOSS_ULPS),
        )

    @cached_property
    def _whole(self) -> list[tuple[list[int], int]]:
        """Each row as whole numbers in a common unit, and their sum."""
        rows: list[tuple[list[int], int]] = []
        for row in self.matrix.tolist():
            parts = [float(entry).as_integer_ratio() for entry in row]
            unit = max(below for _, below in parts)  # denominators are powers of two
            entries = [above * (unit // below) for above, below in parts]
            rows.append((entries, sum(entries)))
        return rows

    def exact_columns(self) -> list[list[Chance]]:
        """Return the exact chances as (numerator, denominator): a list per output, with an entry per record."""
        return [self._exact(column) for column in range(self.matrix.shape[1])]

    def _exact(self, column: int) -> list[Chance]:
        return [(entries[column], total) for entries, total in self._whole]

    @cached_property
    def _blanket(self) -> SmallestBlanket:
        return SmallestBlanket.of(self.exact_columns())

    @cached_property
    def _pairs(self) -> tuple[PairBlanket, ...]:
        pairs: dict[object, PairBlanket] = {}
        for first, second in combinations(range(self.matrix.shape[0]), 2):
            for key, pair in self._blanket.both_ways(first, second):
                pairs.setdefault(key, pair)
        return tuple(pairs.values())


def _checked(matrix: ArrayLike) -> FloatArray:
    """Return the matrix as read-only doubles, or say what is wrong with it."""
    try:
        raw = np.asarray(matrix)
    except ValueError:
        raise InvalidInput("a channel needs rows of one length; they differ") from None
    if raw.ndim != 2 or raw.dtype.kind not in "fiu":
        raise InvalidInput(f"a channel is a two-dimensional matrix of numbers; got shape {raw.shape} of {raw.dtype}")
    if raw.shape[0] < 2 or raw.shape[1] < 1:
        raise InvalidInput(f"a channel needs at least two rows (records) and a column (output); got shape {raw.shape}")
    if raw.shape[0] ** 2 * raw.shape[1] > MAX_COMPARISONS:
        raise InvalidInput(
            f"a channel of {raw.shape[0]} records and {raw.shape[1]} outputs needs more than {MAX_COMPARISONS} "
            "comparisons; use a named family, or merge records"
        )
    law = raw.astype(np.float64)
    for number, row in enumerate(law.tolist(), 1):
        bad = [entry for entry in row if not (math.isfinite(entry) and entry >= 0.0)]
        if bad:
            raise InvalidInput(f"row {number} of the channel has the entry {bad[0]}; a chance is a number from 0 to 1")
        total = math.fsum(row)
        if abs(total - 1.0) > _SUM_TOLERANCE:
            raise InvalidInput(f"row {number} of the channel sums to {shown(total)}; it must sum to 1 (within 1e-9)")
    law.setflags(write=False)
    return law


def _parsed(line: str, where: str) -> list[float]:
    """Return the numbers of one line of a file."""
    numbers: list[float] = []
    for entry in line.split(","):
        try:
            numbers.append(float(entry))
        except ValueError:
            raise InvalidInput(
                f"{where}: {shown(entry.strip())} is not a number; a channel file holds numbers and commas, no header"
            ) from None
    return numbers
