"""Linked rounds of a channel matrix with the same record in every round: how often each output was reported."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import OutOfRegime
from shuffledp.numerics.floats import LEAST_MASS, TINY
from shuffledp.numerics.interval import FloatArray
from shuffledp.randomizers.base import PairBlanket, PairCounts
from shuffledp.randomizers.chances import LOSS_ULPS, Chance, SmallestBlanket, log_ratio
from shuffledp.randomizers.linked_types import ManyTypes

MOST_EXACT = 100_000
"""Most types times pairs of records times rounds with chances in whole numbers, of as many digits as rounds."""
MOST_TYPES, MOST_ROUNDS = 1_000_000, 1000
MOST_WORK = 25_000_000
"""Most types times pairs of records, or times outputs, in doubles."""


class ExactChannel(Protocol):
    """What is asked of a channel matrix."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def rows(self) -> FloatArray:
        """Chances of the outputs, a row per record."""
        ...

    def check_budgets(self, epsilon0: ArrayLike, delta0: ArrayLike) -> None:
        """Raise InvalidInput if it exceeds one of these budgets."""
        ...

    def exact_columns(self) -> list[list[Chance]]:
        """Return the exact chance of each output for each record."""
        ...


@dataclass(frozen=True, eq=False)
class LinkedChannel:
    """The types of ``rounds`` outputs of a channel, as a channel of its own.

    Parameters
    ----------
    law : ExactChannel
        A single round.
    rounds : int
        Number of rounds, at least 1.
    """

    law: ExactChannel
    rounds: int

    mixture = True
    two_point = False

    @property
    def name(self) -> str:
        """As that of a single round."""
        return self.law.name

    def check_budgets(self, epsilon0: ArrayLike, delta0: ArrayLike) -> None:
        """As of a single round."""
        self.law.check_budgets(epsilon0, delta0)

    def pair_blankets(self, epsilon0: float) -> tuple[PairBlanket, ...]:
        """Return all ordered pairs of records, those with the same cells once."""
        del epsilon0
        return self._pairs

    def blanket_mass(self, epsilon0: ArrayLike) -> FloatArray:
        """Sum of the smallest chance of each type, the same at every budget."""
        return np.full(np.shape(epsilon0), self._blanket.gamma)

    def pair_counts(self, epsilon0: ArrayLike) -> PairCounts | None:
        """None: two records of a channel need not be mirror images of each other."""
        del epsilon0

    def witness_pairs(self, epsilon0: float) -> tuple[PairBlanket, PairBlanket] | None:
        """Return the records x0, x1, x2 with the largest E_{x2} (r_0 - r_1)^2; None if some type is too rare."""
        del epsilon0
        return self._witness

    @cached_property
    def _columns(self) -> list[list[Chance]]:
        """Exact chance of every type for each record."""
        rows = [[chance[0] for chance in row] for row in zip(*self.law.exact_columns(), strict=True)]
        totals = [self.law.exact_columns()[0][record][1] ** self.rounds for record in range(len(rows))]
        columns: list[list[Chance]] = []
        for counts in _compositions(self.rounds, len(rows[0])):
            ways = math.factorial(self.rounds)
            for count in counts:
                ways //= math.factorial(count)
            column: list[Chance] = []
            for row, total in zip(rows, totals, strict=True):
                above = ways
                for entry, count in zip(row, counts, strict=True):
                    above *= entry**count
                column.append((above, total))
            columns.append(column)
        return columns

    @cached_property
    def _blanket(self) -> SmallestBlanket:
        return SmallestBlanket.of(self._columns)

    @cached_property
    def _pairs(self) -> tuple[PairBlanket, ...]:
        found: dict[object, PairBlanket] = {}
        for first, second in combinations(range(self.law.rows.shape[0]), 2):
            for key, pair in self._blanket.both_ways(first, second):
                found.setdefault(key, pair)
        return tuple(found.values())

    @cached_property
    def _worst_records(self) -> tuple[int, int, int] | None:
        rows = self.law.rows
        best, chosen = 0.0, None
        for third in range(rows.shape[0]):
            if not bool((rows[third] > 0.0).all()):
                continue
            # E_{x2} r_a r_b of all rounds is the product over rounds
            products = np.log((rows / rows[third]) @ rows.T) * self.rounds
            for first, second in combinations(range(rows.shape[0]), 2):
                top = max(products[first, first], products[second, second])
                parts = np.exp([products[first, first] - top, products[second, second] - top])
                value = top + math.log(max(parts.sum() - 2.0 * math.exp(products[first, second] - top), TINY))
                if chosen is None or value > best:
                    best, chosen = value, (first, second, third)
        return chosen

    @cached_property
    def _witness(self) -> tuple[PairBlanket, PairBlanket] | None:
        chosen = self._worst_records
        if chosen is None:
            return None
        first, second, third = chosen
        known = [(column[third], column[first], column[second]) for column in self._columns if column[third][0]]
        masses = np.array([held[0] / held[1] for held, _, _ in known])
        if float(masses.min()) < LEAST_MASS:
            return None
        one = np.array([chance[0] * held[1] / (chance[1] * held[0]) for held, chance, _ in known])
        two = np.array([chance[0] * held[1] / (chance[1] * held[0]) for held, _, chance in known])
        losses = np.array([log_ratio(chance0, chance1) for _, chance0, chance1 in known])
        return (
            PairBlanket(1.0, masses, one, two, losses, None, LOSS_ULPS),
            PairBlanket(1.0, masses, two, one, -losses, None, LOSS_ULPS),
        )


@dataclass(frozen=True, eq=False)
class LinkedTypes(LinkedChannel):
    """As `LinkedChannel`, of so many types that like ones are handed over as one (`linked_types`)."""

    @cached_property
    def _types(self) -> ManyTypes:
        return ManyTypes(self.law.exact_columns(), self.rounds)

    def blanket_mass(self, epsilon0: ArrayLike) -> FloatArray:
        """Sum of the smallest chance of each type, the same at every budget."""
        return np.full(np.shape(epsilon0), self._types.gamma)

    @cached_property
    def _pairs(self) -> tuple[PairBlanket, ...]:
        return self._types.pairs()

    @cached_property
    def _witness(self) -> tuple[PairBlanket, PairBlanket] | None:
        chosen = self._worst_records
        return None if chosen is None else self._types.attack(*chosen)


@lru_cache(maxsize=8)
def linked_channel(law: ExactChannel, rounds: int) -> LinkedChannel:
    """Return the types of so many outputs of a channel, remembered.

    Parameters
    ----------
    law : ExactChannel
        A single round.
    rounds : int
        Number of rounds, at least 1.

    Raises
    ------
    OutOfRegime
        If there are too many types, or more than a thousand rounds.
    """
    records, outputs = law.rows.shape
    types = math.comb(rounds + outputs - 1, outputs - 1)
    if types * records**2 * rounds <= MOST_EXACT:
        return LinkedChannel(law, rounds)
    if types > MOST_TYPES or types * max(records**2, outputs) > MOST_WORK or rounds > MOST_ROUNDS:
        raise OutOfRegime(
            f"linked compares at most {MOST_TYPES:,} types of reports over at most {MOST_ROUNDS:,} rounds, and "
            f"{MOST_WORK:,} types x records^2 or types x outputs; {rounds} rounds of a channel with {records} records "
            f"and {outputs} outputs have {types:,} types"
        )
    return LinkedTypes(law, rounds)


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(total - first, parts - 1):
            yield (first, *rest)
