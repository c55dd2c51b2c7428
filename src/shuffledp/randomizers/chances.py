"""Exact chances of a channel's outputs: quotients of whole numbers, compared exactly and rounded once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shuffledp.numerics.floats import LEAST_MASS, round_down, round_up
from shuffledp.randomizers.base import CellSpread, PairBlanket

"""A rarer output counts as one that the blanket lacks: its masses would be subnormal."""
LOSS_ULPS = 8
"""Units in the last place to which `log_ratio` is good: at most 4 of them, doubled."""
_Cell = tuple[float, float, float]
"""Ratio under x0, ratio under x1, loss."""
_Parts = dict[float, list[float]]
"""Chances under x0 of the outputs left out, by their losses."""
Chance = tuple[int, int]
"""An exact chance, numerator over denominator."""


@dataclass(frozen=True, eq=False)
class SmallestBlanket:
    """omega ∝ column minima, and every chance against it.

    Parameters
    ----------
    gamma : float
        Sum of the minima, at most 1.
    columns : list of list of (int, int)
        Exact chances of each output, per record.
    masses : list of float
        omega of each output; 0 where it is left out.
    ratios : list of list of float
        R(x)(y)/omega(y), per output and record; empty where the output is left out.
    """

    gamma: float
    columns: list[list[Chance]]
    masses: list[float]
    ratios: list[list[float]]

    @classmethod
    def of(cls, columns: list[list[Chance]]) -> SmallestBlanket:
        """Return the blanket of a channel given column by column."""
        least = [chances[extremes(chances)[1]] for chances in columns]
        minima = [above / below for above, below in least]
        minima = [value if value >= LEAST_MASS else 0.0 for value in minima]
        gamma = min(math.fsum(minima), 1.0)
        masses = [value / gamma if value else 0.0 for value in minima]
        ratios = [
            [gamma * ((above * low[1]) / (below * low[0])) for above, below in chances] if value else []
            for chances, low, value in zip(columns, least, minima, strict=True)
        ]
        return cls(gamma, columns, masses, ratios)

    def both_ways(self, first: int, second: int) -> tuple[tuple[object, PairBlanket], tuple[object, PairBlanket]]:
        """Return a pair of records and its mirror image, each with a key that equal pairs share."""
        cells: dict[_Cell, list[float]] = {}
        left: tuple[_Parts, _Parts] = ({}, {})
        for chances, mass, ratios in zip(self.columns, self.masses, self.ratios, strict=True):
            one, two = chances[first], chances[second]
            loss = log_ratio(one, two)
            if mass > 0.0:
                cells.setdefault((ratios[first], ratios[second], loss), []).append(mass)
                continue
            if one[0] > 0 or two[0] > 0:  # a negative loss costs nothing; it is listed all the same, as a loss of 0
                left[0].setdefault(max(loss, 0.0), []).append(one[0] / one[1])
                left[1].setdefault(max(-loss, 0.0), []).append(two[0] / two[1])
        summed = {cell: math.fsum(masses) for cell, masses in cells.items()}
        mirrored = {(two, one, -loss): mass for (one, two, loss), mass in summed.items()}
        return self._keyed(summed, left[0]), self._keyed(mirrored, left[1])

    def _keyed(self, cells: dict[_Cell, float], left: _Parts) -> tuple[object, PairBlanket]:
        order = sorted((*cell, mass) for cell, mass in cells.items())
        ratios0, ratios1, losses, masses = np.array(order).reshape(len(order), 4).T.copy()
        if not left:
            return tuple(order), PairBlanket(self.gamma, masses, ratios0, ratios1, losses, None, LOSS_ULPS)
        parts = sorted((loss, math.fsum(chances)) for loss, chances in left.items())
        left_loss, left_mass = np.array(parts).T.copy()
        spread = CellSpread(
            *(round_down(ratios0, 8), round_up(ratios0, 8)),
            *(round_down(losses, LOSS_ULPS), round_up(losses, LOSS_ULPS)),
            *(round_up(left_mass), np.where(np.isfinite(left_loss), round_up(left_loss), math.inf)),
        )
        pair = PairBlanket(self.gamma, masses, ratios0, ratios1, losses, spread, LOSS_ULPS)
        return (tuple(order), tuple(parts)), pair


def extremes(chances: list[Chance]) -> tuple[int, int]:
    """Return the positions of the largest and of the smallest chance, compared exactly."""
    high = low = 0
    for index, (above, below) in enumerate(chances):
        if above * chances[high][1] > chances[high][0] * below:
            high = index
        if above * chances[low][1] < chances[low][0] * below:
            low = index
    return high, low


def log_ratio(one: Chance, two: Chance) -> float:
    """Log of the ratio of two chances to LOSS_ULPS, odd in its arguments; 0 for 0/0, inf at 0."""
    above, below = one[0] * two[1], two[0] * one[1]
    if above == below:
        return 0.0
    if above < below:
        return -log_ratio(two, one)
    if below == 0:
        return math.inf
    if above < 2 * below:
        return math.log1p((above - below) / below)  # a quotient of whole numbers is rounded once
    if above.bit_length() - below.bit_length() > 1000:  # the quotient would overflow
        return math.log(above) - math.log(below)
    return math.log(above / below)
