"""Linked rounds of a channel with many types: chances of all types at once, and types of like chances as one cell.

The chance of a type is a multinomial coefficient times a product of chances; its logarithm is summed in two parts
(`numerics.long_logs`), so that chances, ratios and losses are good to a few units. Types whose loss and ratio fall into
the same small cell are handed over as one, with the range of both (`CellSpread`): above by its ends, which is larger in
convex order, below by its mean, which is what an attacker sees who merges them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from shuffledp.numerics.floats import LEAST_MASS, TINY, round_down, round_up
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.long_logs import LongLogs, log_factorials, long_logs, summed
from shuffledp.randomizers.base import CellSpread, PairBlanket
from shuffledp.randomizers.chances import LOSS_ULPS, Chance

_LOSSES, _RATIOS = 300, 40
"""Into so many parts the ranges of losses and of logarithms of ratios are cut."""
_CELLS = 4000
"""Fewer types are cells of their own."""
_LEFT = 64
"""Cells of types that the blanket lacks."""
_PLAIN = 400
"""So few types are handed over without a range, which the engine would put on a lattice."""
_ULPS = 16
_LOST = 2.0**-66
"""Absolute doubt of a loss, besides its units in the last place."""


@dataclass(frozen=True, eq=False)
class ManyTypes:
    """The types of ``rounds`` outputs of a channel, with their chances for each record.

    Parameters
    ----------
    columns : sequence of list of (int, int)
        Exact chance of each output for each record.
    rounds : int
        Number of rounds, from 1 to 1,000.
    """

    columns: Sequence[list[Chance]]
    rounds: int

    @cached_property
    def logs(self) -> list[LongLogs]:
        """Logarithms of the chances of all types, per record."""
        counts = compositions(self.rounds, len(self.columns))
        table = log_factorials(self.rounds)
        at = counts.astype(np.int64)
        high = table.high[self.rounds] - table.high[at].sum(axis=1)
        low = table.low[self.rounds] - table.low[at].sum(axis=1)
        found: list[LongLogs] = []
        for record in range(len(self.columns[0])):
            with localcontext(prec=60):
                chances = [Decimal(column[record][0]) / Decimal(column[record][1]) for column in self.columns]
            own = summed(counts, long_logs(chances))
            found.append(LongLogs(high + own.high, low + own.low))
        return found

    @cached_property
    def _least(self) -> LongLogs:
        """Logarithms of the smallest chance of each type."""
        least = self.logs[0]
        for other in self.logs[1:]:
            with np.errstate(invalid="ignore"):  # impossible for both: not smaller
                smaller = (other.high - least.high) + (other.low - least.low) < 0.0
            least = LongLogs(np.where(smaller, other.high, least.high), np.where(smaller, other.low, least.low))
        return least

    @cached_property
    def gamma(self) -> float:
        """Sum of the smallest chances, to a few units."""
        least = self._least.exp()
        return min(math.fsum(least[least >= LEAST_MASS]), 1.0)

    def pairs(self) -> tuple[PairBlanket, ...]:
        """Return all ordered pairs of records against the blanket of the smallest chances."""
        found: list[PairBlanket] = []
        for first, second in combinations(range(len(self.logs)), 2):
            found += _against(self._least, self.gamma, self.logs[first], self.logs[second])
        return tuple(found)

    def attack(self, first: int, second: int, third: int) -> tuple[PairBlanket, PairBlanket]:
        """Return two records against each other, both ways, everybody else on a third one that may give every type.

        Parameters
        ----------
        first, second, third : int
            Records.
        """
        one, two = _against(self.logs[third], 1.0, self.logs[first], self.logs[second])
        return one, two


def _against(omega: LongLogs, gamma: float, one: LongLogs, two: LongLogs) -> list[PairBlanket]:
    """Two records against omega = exp(``omega``)/gamma, both ways; rarer types are left out and listed as such."""
    held = omega.exp()
    known = held >= LEAST_MASS
    mass = held[known] / gamma
    base, *both = _kept(known, omega, one, two)
    sides = [LongLogs(each.high - base.high, each.low - base.low) for each in both]
    ratio0, ratio1 = (gamma * side.exp() for side in sides)
    loss = (sides[0].high - sides[1].high) + (sides[0].low - sides[1].low)
    label = _labels(loss, ratio0)
    rest = _kept(~known, one, two)
    left = _left_out(rest[0], rest[1]), _left_out(rest[1], rest[0])
    return [
        _merged(gamma, (mass, ratio0, ratio1, loss), label, left[0]),
        _merged(gamma, (mass, ratio1, ratio0, -loss), label, left[1]),
    ]


def _left_out(one: LongLogs, two: LongLogs) -> tuple[FloatArray, FloatArray]:
    """Chances under a record of types that omega lacks, summed by losses against the other one, rounded up."""
    with np.errstate(invalid="ignore"):
        loss = np.where(np.isfinite(two.high), (one.high - two.high) + (one.low - two.low), math.inf)
    loss = np.where(np.isfinite(one.high), np.maximum(loss, 0.0), 0.0)
    chance = round_up(one.exp(), _ULPS) + TINY  # what has left double range is below
    order = np.argsort(loss, kind="stable")
    groups = [group for group in np.array_split(order, _LEFT) if group.size]
    masses = np.array([math.fsum(chance[group]) for group in groups])
    return round_up(masses), np.array([_loss_above(float(loss[group[-1]])) for group in groups])


def _loss_above(loss: float) -> float:
    return round_up(loss, LOSS_ULPS) + _LOST if math.isfinite(loss) else math.inf


def _labels(loss: FloatArray, ratio: FloatArray) -> NDArray[np.int64]:
    """Say which cell each type belongs to, counted from 0."""
    if loss.size <= _CELLS:
        return np.arange(loss.size, dtype=np.int64)
    logs = np.log(ratio)
    across, up = (
        np.floor((x - x.min()) / max(float(np.ptp(x)), TINY) * parts)
        for x, parts in ((loss, _LOSSES - 0.5), (logs, _RATIOS - 0.5))
    )
    return np.unique(across * _RATIOS + up, return_inverse=True)[1].astype(np.int64)


def _merged(
    gamma: float,
    parts: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    label: NDArray[np.int64],
    left: tuple[FloatArray, FloatArray],
) -> PairBlanket:
    """Return the cells of a pair: means of the ratios under omega, and the ranges they and the losses have."""
    mass, ratio0, ratio1, loss = parts
    order = np.argsort(label, kind="stable")
    starts = np.flatnonzero(np.diff(label[order], prepend=-1))
    total, first, second = (np.add.reduceat(part[order], starts) for part in (mass, mass * ratio0, mass * ratio1))
    low, high = ([ends.reduceat(part[order], starts) for part in (ratio0, loss)] for ends in (np.minimum, np.maximum))
    with np.errstate(divide="ignore"):
        means = np.clip(np.log(first) - np.log(second), low[1], high[1])
    means = np.where(low[1] == high[1], low[1], means)
    if total.size <= _PLAIN and total.size == mass.size and not left[0].size:
        return PairBlanket(gamma, total, first / total, second / total, means, None, LOSS_ULPS)
    spread = CellSpread(
        *(round_down(low[0], _ULPS), round_up(high[0], _ULPS)),
        *(round_down(low[1], LOSS_ULPS) - _LOST, round_up(high[1], LOSS_ULPS) + _LOST),
        *left,
    )
    return PairBlanket(gamma, total, first / total, second / total, means, spread, LOSS_ULPS)


def _kept(which: NDArray[np.bool_], *logs: LongLogs) -> list[LongLogs]:
    return [LongLogs(each.high[which], each.low[which]) for each in logs]


def compositions(total: int, parts: int) -> FloatArray:
    """Return all ways to put so many things into so many boxes, shape (ways, parts).

    Parameters
    ----------
    total, parts : int
        At least 1.
    """
    left, columns = np.array([total]), list[NDArray[np.int64]]()
    for _ in range(parts - 1):
        ways = left + 1
        which = np.repeat(np.arange(left.size), ways)
        taken = np.arange(which.size) - np.repeat(np.cumsum(ways) - ways, ways)
        columns = [column[which] for column in columns]
        columns.append(taken)
        left = left[which] - taken
    return np.stack([*columns, left], axis=1).astype(np.float64)
