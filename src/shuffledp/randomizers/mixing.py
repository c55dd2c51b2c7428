"""How reports of mixture families are drawn: one integer comparison selects the blanket or the record's own part.

A report of R(x) = gamma omega + (1 - gamma) omega(. | A_x) is a draw of the blanket omega, which with probability 1 -
gamma is made to lie in the record's set A_x. What is drawn has blanket mass g >= gamma, rounded to the private side, so
it is the stated law at some budget of at most epsilon0 (docs/theorems/randomizers.md, "As drawn").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.numerics.floats import LEAST_MASS, round_down, round_up
from shuffledp.numerics.interval import FloatArray, expm1_rounded
from shuffledp.numerics.randomness import Randomness, Words
from shuffledp.randomizers.base import CellSpread, PairBlanket, SupportLaw
from shuffledp.randomizers.checks import MAX_BUDGET

CHUNK = 1 << 14
"""Rows at a time: temporaries stay in cache, and small enough for the allocator to use their memory again."""
MARGIN = 2.0**-46
"""Relative; far above the 2^-50 by which exp or expm1, rounded correctly, and a handful of operations err."""

_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)


class SampledLaw(NamedTuple):
    """The chances of the record's own part and of the blanket, as drawn, at each budget; they add to 1.

    Parameters
    ----------
    keep : ndarray
        Probability of a report from the record's own part, an integer over 2^64; rounded once.
    blanket : ndarray
        Probability of a draw from the blanket omega, which does not depend on the record.
    """

    keep: FloatArray
    blanket: FloatArray


def keep_masses(epsilon0: FloatArray, share: FloatArray | float) -> tuple[FloatArray, FloatArray]:
    """Return 1 - gamma and gamma, the chances of the record's own part and of the blanket, at each budget.

    Each is good to a few ulps and the same double on every machine: e^epsilon0 - 1 is rounded correctly, and so is each
    operation below, in the order in which they stand. Thresholds made of them are stated in tasks, and a seed repeats
    what is drawn by them (docs/theorems/randomizers.md).

    Parameters
    ----------
    epsilon0 : ndarray
        Checked local budgets, nats; above 700 as 700.
    share : ndarray or float
        f = omega(A_x) in (0, 1), the blanket's mass on the record's likely reports, the same for every record; gamma =
        1/(e^epsilon0 f + 1 - f) = 1/(1 + f (e^epsilon0 - 1)).
    """
    odds = expm1_rounded(np.minimum(epsilon0, MAX_BUDGET)) * share
    blanket = 1.0 / (1.0 + odds)
    return odds * blanket, blanket


def keep_thresholds(keep: FloatArray, blanket: FloatArray) -> Words:
    """Return integers K such that a report is from the record's own part with chance K / 2^64 <= `keep`.

    From the smaller of blanket (up) and keep (down), with a relative margin of 2^-46, so that the blanket mass g = 1 -
    K/2^64 is at least gamma whatever the rounding errors. As K is at most 2^64 - 1, g is at least 2^-64 even where
    gamma is smaller. At epsilon0 = 0 K is 0. The whole numbers are the same on every machine.

    Parameters
    ----------
    keep, blanket : ndarray
        The masses 1 - gamma and gamma from `keep_masses`.
    """
    # By arithmetic on 0 and 1, three times as fast as numpy.where. All products with 0, 1, 2^64 are exact.
    mostly = np.asarray(keep > 0.5)
    if not mostly.any():
        return np.asarray(keep * ((1.0 - MARGIN) * 2.0**64)).astype(np.uint64)
    down = keep * ((1.0 - MARGIN) * 2.0**64) * ~mostly
    up = blanket * ((1.0 + MARGIN) * 2.0**64) * mostly
    negative = mostly.astype(np.uint64)
    whole = np.asarray(down + up).astype(np.uint64) + negative  # down is rounded down, up to more than itself
    return np.asarray(whole ^ (negative * np.uint64(2**64 - 1))) + negative


def complement(count: Words) -> Words:
    """Return 2^64 - count for count >= 1, computed within 64 bits."""
    return ~count + np.uint64(1)


def sampled_law(thresholds: Words) -> SampledLaw:
    """Return the chances of keep and blanket for thresholds K: K/2^64 and 1 - K/2^64, each to a relative 2^-52."""
    # the complement less 1 fits into 64 bits whatever the threshold
    return SampledLaw(thresholds.astype(np.float64) * 2.0**-64, ((~thresholds).astype(np.float64) + 1.0) * 2.0**-64)


def support_of(law: SampledLaw, share: FloatArray | float, overlap: FloatArray | float) -> SupportLaw:
    """Return the chances that a report of a mixture family supports its record's category, and another one.

    Parameters
    ----------
    law : SampledLaw
        Chances of the record's own part and of the blanket, as drawn.
    share : ndarray or float
        f = omega(A_x): the chance that a draw of the blanket supports a given category.
    overlap : ndarray or float
        omega(A_x' | A_x): the chance that a report from x's own part supports another category x'.
    """
    hidden = law.blanket * share
    return SupportLaw(law.keep + hidden, law.keep * overlap + hidden)


def draw(bits: int, thresholds: Words | int, n: int, random: Randomness) -> tuple[Words, NDArray[np.bool_]]:
    """Return n uniform words of `bits` bits, and n independent booleans, True with chance exactly thresholds / 2^64.

    Up to 32 bits one 64-bit word serves both: its upper half is compared with the threshold's upper half, and a tie is
    decided by 32 fresh bits against the lower half.

    Parameters
    ----------
    bits : int
        Number of bits of a word, from 1 to 64.
    thresholds : int, or ndarray of uint64, shape (n,)
        Whole numbers in [0, 2^64).
    n : int
        Number of words and of booleans.
    random : Randomness
        Source of the words.
    """
    words = random.words(n)
    if bits > 32:
        return words & np.uint64(2**bits - 1), random.bernoulli(thresholds, n)
    level = np.asarray(thresholds, dtype=np.uint64)
    upper, top = words >> _HALF, level >> _HALF
    below = upper < top
    tied = np.flatnonzero(upper == top)
    if tied.size:
        below[tied] = (random.words(tied.size) >> _HALF) < (np.broadcast_to(level, (n,))[tied] & _LOW)
    return words & np.uint64(2**bits - 1), below


def uniform_below(bound: int, halves: Words, random: Randomness) -> NDArray[np.int64]:
    """Return exactly uniform integers on [0, bound), made from 32-bit ones (Lemire 2019: multiply, reject, shift).

    Parameters
    ----------
    bound : int
        Number of possible values, from 1 to 2^32.
    halves : ndarray of uint64, shape (n,)
        Uniform on [0, 2^32).
    random : Randomness
        Source of new integers for rejected ones.
    """
    scaled = halves * np.uint64(bound)
    values = (scaled >> _HALF).astype(np.int64)
    excess = 2**32 % bound
    if excess:
        redraw = np.flatnonzero((scaled & _LOW) < np.uint64(excess))
        values[redraw] = random.integers(bound, redraw.size)
    return values


# Exact chances of a channel's outputs: quotients of whole numbers, compared exactly and rounded once.

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
    """The largest blanket omega of a channel, proportional to its columns' minima, with all chances relative to it.

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
        """Return the blanket of a channel from the exact chances of each output (column), one for each record."""
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
        """Return the pair of records `first`, `second` relative to the blanket, and its mirror image, with keys.

        The key of a pair is equal for pairs with the same cells.
        """
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
    """Return the indices of the largest and of the smallest of some exact chances, compared exactly."""
    high = low = 0
    for index, (above, below) in enumerate(chances):
        if above * chances[high][1] > chances[high][0] * below:
            high = index
        if above * chances[low][1] < chances[low][0] * below:
            low = index
    return high, low


def log_ratio(one: Chance, two: Chance) -> float:
    """Return log(one/two) of exact chances, to `LOSS_ULPS` ulps, odd in its arguments; 0 for 0/0, inf for two = 0."""
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
