"""How reports of mixture families are drawn: one integer comparison selects the blanket or the record's own part.

A report of R(x) = gamma omega + (1 - gamma) omega(. | A_x) is a draw of the blanket omega, which with probability 1 -
gamma is made to lie in the record's set A_x. What is drawn has blanket mass g >= gamma, rounded to the private side, so
it is the stated law at some budget of at most epsilon0 (docs/theorems/randomizers.md, "As drawn").

**Two-level families**, whose report has two levels of likelihood: y is in the record's set A_x, or it is not.

    R(x)(y)/omega(y) = e^epsilon0 gamma on A_x, gamma elsewhere;  gamma = 1/(e^epsilon0 f + 1 - f),  f = omega(A_x).

R(x) is the law of the report y of record x, omega the blanket. f is the same for every record, so R(x) >= gamma omega
for every x whatever the sets are. A pair (x0, x1) has four cells: in A_x0 only, in A_x1 only (equal masses, as f is
common), in both, in neither. Randomized response, unary encoding, hashing, Hadamard response and subset selection are
of this kind (docs/theorems/randomizers.md).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import MAX_EPSILON0, one_budget
from shuffledp.numerics.floats import LEAST_MASS, FloatArray, round_down, round_up
from shuffledp.numerics.functions import expm1_rounded
from shuffledp.numerics.randomness import Randomness, Words
from shuffledp.randomizers.base import CellSpread, PairBlanket, PairCounts, SupportLaw, Triples

CHUNK = 1 << 14
"""Number of rows per chunk: temporary arrays stay in cache, and small enough for the allocator to reuse them."""
MARGIN = 2.0**-46
"""Relative error allowed, far above the 2^-50 of exp or expm1, rounded correctly, and a handful of operations."""

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
    """Return the chances of a report's two parts at each budget: 1 - gamma of the record's own, gamma of the blanket.

    A report is drawn from the blanket omega with chance gamma, else from omega restricted to the reports A_x that the
    record x makes likely (docs/theorems/randomizers.md). Each chance is correct to a few ulps and the same double on
    every machine: e^epsilon0 - 1 is rounded correctly, and so is each operation, in a fixed order. So a task can state
    thresholds made from them, and a seed repeats the draws.

    Parameters
    ----------
    epsilon0 : ndarray
        Checked local budgets, nats; larger ones than 700 are treated as 700.
    share : ndarray or float
        f = omega(A_x) in (0, 1), the blanket's mass on the record's likely reports, the same for every record; gamma =
        1/(1 + f (e^epsilon0 - 1)).
    """
    odds = expm1_rounded(np.minimum(epsilon0, MAX_EPSILON0)) * share
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
"""Relative error of `log_ratio`, in units in the last place: at most 4, doubled."""
_Cell = tuple[float, float, float]
"""A cell's ratio under x0, ratio under x1, and loss."""
_Parts = dict[float, list[float]]
"""Probabilities under x0 of the outputs left out, by their losses."""
Chance = tuple[int, int]
"""An exact chance, numerator over denominator."""


@dataclass(frozen=True, eq=False)
class SmallestBlanket:
    """The blanket of a channel matrix with the largest mass gamma, and all chances relative to it.

    omega(y) is proportional to the smallest chance of the output y over all records.

    Parameters
    ----------
    gamma : float
        Mass of the blanket: the sum of the smallest chances, at most 1.
    columns : list of list of (int, int)
        For each output, its exact chance for every record, as (numerator, denominator).
    masses : list of float
        omega of each output; 0 where it is left out because its smallest chance is 0 or tiny.
    ratios : list of list of float
        For each output, R(x)(y)/omega(y) for every record x; empty where the output is left out.
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
        """Return the pair of records `first`, `second` relative to the blanket, and the pair `second`, `first`.

        Each is a tuple of a key and a `PairBlanket`; keys are equal for pairs with the same cells.
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
    """Return the indices of the largest and the smallest of exact chances, each (numerator, denominator)."""
    high = low = 0
    for index, (above, below) in enumerate(chances):
        if above * chances[high][1] > chances[high][0] * below:
            high = index
        if above * chances[low][1] < chances[low][0] * below:
            low = index
    return high, low


def log_ratio(one: Chance, two: Chance) -> float:
    """Return log(one/two) of two exact chances (numerator, denominator), to `LOSS_ULPS` ulps.

    It is odd in its arguments, 0 for 0/0, and inf for two = 0.
    """
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


@dataclass(frozen=True, eq=False)
class TwoLevelLaw:
    """The report laws R(x0), R(x1) of a pair of inputs at each budget; every entry to a few ulps of itself.

    A_x is the set of reports that input x makes likely, omega the blanket.

    Parameters
    ----------
    gamma : ndarray
        Blanket mass; also R(x)/omega outside A_x.
    top : ndarray
        R(x)/omega on A_x: e^epsilon0 gamma.
    only, both, neither : ndarray
        omega-masses of the outputs in A_x0 but not in A_x1 (and of those in A_x1 but not in A_x0), in both, in
        neither: 2 only + both + neither = 1.
    """

    gamma: FloatArray
    top: FloatArray
    only: FloatArray
    both: FloatArray
    neither: FloatArray

    @classmethod
    def of(cls, epsilon0: FloatArray, only: ArrayLike, both: ArrayLike, neither: ArrayLike) -> TwoLevelLaw:
        """Return the law of a pair of inputs from the masses of its cells, in any common unit.

        Parameters
        ----------
        epsilon0 : ndarray
            Checked local budgets, nats.
        only, both, neither : array_like
            The cells' omega-masses in any common unit, each to a few ulps, at least 0; broadcast with epsilon0.
        """
        weights = (np.asarray(weight, dtype=np.float64) for weight in (only, both, neither))
        decay, one, two, none = np.broadcast_arrays(np.exp(-epsilon0), *weights)
        inside, outside = one + two, one + none
        # in e^-epsilon0, so that nothing overflows; sums of positive terms, so that nothing cancels
        whole = inside + outside
        top = whole / (inside + outside * decay)
        return cls(np.minimum(top * decay, 1.0), top, one / whole, two / whole, none / whole)


def _pair(law: TwoLevelLaw, epsilon0: float) -> PairBlanket:
    """Return the pair at one budget; cells without mass are left out.

    A mass that underflows is of a cell with loss 0, on which R0 - e^eps R1 <= 0: leaving it out costs nothing.
    """
    top, low = float(law.top), float(law.gamma)
    cells = np.array(
        [
            (float(law.only), top, low, epsilon0),
            (float(law.only), low, top, -epsilon0),
            (float(law.both), top, top, 0.0),
            (float(law.neither), low, low, 0.0),
        ]
    )
    masses, ratios0, ratios1, losses = cells[cells[:, 0] > 0.0].T.copy()
    return PairBlanket(low, masses, ratios0, ratios1, losses)


def third_record(epsilon0: float, weights: tuple[float, float, float, float]) -> PairBlanket:
    """Return the laws of two records x0, x1 relative to the report of a third record x2, with gamma = 1.

    R(x0)/R(x2) = e^(epsilon0 (1_A0 - 1_A2)), cell by cell, where 1_Ab says whether the report is in the set of x_b.

    Parameters
    ----------
    epsilon0 : float
        Local budget, nats, from 0 to 700.
    weights : tuple of float
        Masses of outputs in none, in a given one, two, all of three records' sets (`TwoLevelFamily.triple_weights`).
    """
    cells: dict[tuple[int, int], float] = {}
    for a0, a1, a2 in product((0, 1), repeat=3):
        mass = weights[a0 + a1 + a2] * math.exp(epsilon0 * (a2 - 1))  # R(x2), in units of e^epsilon0 gamma omega
        cells[a0 - a2, a1 - a2] = cells.get((a0 - a2, a1 - a2), 0.0) + mass
    steps = np.array([cell for cell, mass in cells.items() if mass > 0.0], dtype=np.float64)
    masses = np.array([mass for mass in cells.values() if mass > 0.0])
    with np.errstate(over="ignore"):
        ratios = np.exp(epsilon0 * steps)
    losses = epsilon0 * (steps[:, 0] - steps[:, 1])
    return PairBlanket(1.0, masses / math.fsum(masses.tolist()), ratios[:, 0], ratios[:, 1], losses)


class TwoLevelFamily(ABC):
    """A family with two levels of likelihood over k categories; a subclass states how the records' sets overlap."""

    k: int

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the family as the command line spells it."""

    @property
    @abstractmethod
    def mixture(self) -> bool:
        """Whether one privacy blanket serves every budget, that is, the sets A_x are the same at all budgets."""

    @property
    def two_point(self) -> bool:
        """Whether two records differ on two outcomes and no other exists: False unless a subclass states it."""
        return False

    @property
    def triples(self) -> Triples | None:
        """How the sets of likely reports of three records overlap: a word of `Triples`, or None by default.

        If it is stated, an upper bound may be derived from triples, not only an attack.
        """
        return None

    @abstractmethod
    def law(self, epsilon0: ArrayLike) -> TwoLevelLaw:
        """Return the report laws of the worst pair of inputs, at each budget.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """

    def check_budgets(self, epsilon0: ArrayLike, delta0: ArrayLike) -> None:
        """Accept every local budget: reports are (epsilon0, 0)-LDP, which satisfies any delta0 as well."""
        del epsilon0, delta0

    def pair_blankets(self, epsilon0: float) -> tuple[PairBlanket, ...]:
        """Return the worst pair of inputs, which is its own mirror image, relative to the blanket omega.

        Parameters
        ----------
        epsilon0 : float
            Local budget, nats, from 0 to 700.

        Raises
        ------
        InvalidInput
            If the budget is not from 0 to 700.
        """
        budget = one_budget(epsilon0)
        return (_pair(self.law(budget), budget),)

    def blanket_mass(self, epsilon0: ArrayLike) -> FloatArray:
        """Return the blanket mass gamma at each budget: the chance of a report that is a draw of omega.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.

        Returns
        -------
        ndarray, shape of epsilon0
            Gamma, each entry to a few ulps.
        """
        return self.law(epsilon0).gamma

    def pair_counts(self, epsilon0: ArrayLike) -> PairCounts | None:
        """Return the chances of the two cells that separate x0 from x1, in A_x0 only and in A_x1 only.

        None for k = 2, as there is no third record.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        if self.k == 2:
            return None
        law = self.law(epsilon0)
        neither = law.both * law.top + law.neither * law.gamma
        return PairCounts(law.only * law.top, law.only * law.gamma, neither, self.third(law, epsilon0))

    @abstractmethod
    def triple_weights(self, epsilon0: float) -> tuple[float, float, float, float]:
        """Return four relative masses of reports under the blanket omega, for three different records.

        They are the masses of the reports that none of the three records makes likely; that a given one alone does;
        that a given two alone do; and that all three do. The unit is common and arbitrary. Which record or pair is
        given does not matter.

        Parameters
        ----------
        epsilon0 : float
            Local budget, nats.
        """

    def witness_pairs(self, epsilon0: float) -> tuple[PairBlanket, PairBlanket] | None:
        """Return the attack on x0 and x1 among users who hold a third record, which certifies a lower bound.

        The pair is the same in both orders, by symmetry; None for k = 2.

        Parameters
        ----------
        epsilon0 : float
            Local budget, nats, from 0 to 700.
        """
        if self.k == 2:
            return None
        pair = self.triple(epsilon0)
        return pair, pair

    def triple(self, epsilon0: float) -> PairBlanket:
        """Return the laws of two records relative to the report of a third one, from `triple_weights`.

        Parameters
        ----------
        epsilon0 : float
            Local budget, nats, from 0 to 700.
        """
        budget = one_budget(epsilon0)
        return third_record(budget, self.triple_weights(budget))

    def share(self, epsilon0: float) -> float:
        """Return f = omega(A_x), the chance under the blanket of the reports that a record makes likely; in (0, 1).

        Parameters
        ----------
        epsilon0 : float
            Local budget, nats, from 0 to 700.
        """
        law = self.law(one_budget(epsilon0))
        return float(law.only + law.both)

    def third(self, law: TwoLevelLaw, epsilon0: ArrayLike) -> FloatArray:
        """Return, at each budget, the chance that a report of record x2 is likely for x0 but not for x1.

        The three records are different. The chance is that under omega, since A_x2 is independent of that set of
        reports; a subclass where it is not overrides this.

        Parameters
        ----------
        law : TwoLevelLaw
            The law at these budgets.
        epsilon0 : array_like
            Local budgets, nats.
        """
        del epsilon0
        return law.only
