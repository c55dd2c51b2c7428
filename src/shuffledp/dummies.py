"""Dummies: fake reports that the shuffler adds from a public law, so that a guarantee holds whatever others do.

Their law does not depend on a record, on a report or on who takes part, and their number is public. The observer does
not know which of the released reports are dummies. See docs/theorems/floor.md.

**Normal dummies**: each answer of a question gets an about normal number of them, given their fixed total. They serve
questionnaires of many questions better than one ball law: their floors (the guarantees of the dummies alone) compose
like normal noise. A cell is the number of dummies of one answer. Given the total, which is fixed and public, cells are
independent with weights about proportional to e^(-t^2/(2 s^2)) at distance t from their middle. Weights are whole
numbers, so the law that is drawn is the one that is certified (docs/theorems/normal.md).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from shuffledp.ball import BallDummies, Below, Column
from shuffledp.errors import InvalidInput, NotConverged, shown, whole_number
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.functions import exp_rounded, log_rounded
from shuffledp.numerics.sums import law_of_sum
from shuffledp.randomizers.base import HiddenByFakes

MOST_ANSWERS = 64
LARGEST_CENTRE = 1024
_FINE = 60
"""The weight of the middle of a cell is 2 to this power."""


class CellDummies:
    """Dummies of one question whose cells have symmetric weights, independently, given their total.

    Attributes
    ----------
    answers : int
        Number k of answers, hence of cells; at least 2.
    side : tuple of int
        Weights of a cell that holds h +- t dummies, t = 0, 1, ..., h; whole numbers.
    """

    answers: int
    side: tuple[int, ...]

    @property
    def middle(self) -> int:
        """Mean number h of dummies in a cell; a cell holds 0 to 2h dummies."""
        return len(self.side) - 1

    @property
    def count(self) -> int:
        """Total number of dummies of the question, k h, which is fixed and public."""
        return self.answers * self.middle

    @property
    def weights(self) -> tuple[int, ...]:
        """Weights of 0, 1, ..., 2h dummies in a cell: whole numbers, symmetric around h."""
        return (*self.side[:0:-1], *self.side)

    def sums(self, cells: int) -> tuple[FloatArray, float]:
        """Return the law of the total of several independent cells, and its relative error.

        Parameters
        ----------
        cells : int
            Number of cells, at least 0.

        Returns
        -------
        chances : ndarray, shape (2h cells + 1,)
            P(total = 0), P(total = 1), ...; those above 1e-300 are good to the relative error.
        doubt : float
            The relative error.
        """
        return _sums(self.weights, cells)

    @cached_property
    def cell_law(self) -> tuple[float, ...]:
        """The chances P(M = j) that a cell holds j = 0, ..., 2h dummies, given the fixed total; each to about 1e-12."""
        own, others, every = (self.sums(cells)[0] for cells in (1, self.answers - 1, self.answers))
        left = self.count - np.arange(own.size)
        chances = np.where(left < others.size, others[np.minimum(left, others.size - 1)], 0.0)
        return tuple((own * chances / every[self.count]).tolist())

    @property
    def cell_variance(self) -> float:
        """Variance of the number of dummies in one cell, given the fixed total."""
        return math.fsum(chance * (j - self.middle) ** 2 for j, chance in enumerate(self.cell_law))

    def draw(self, below: Below) -> NDArray[np.int64]:
        """Draw the number of dummies of every answer.

        All cells but the last are drawn from the weights; the fixed total determines the last one. The draw is accepted
        with a chance proportional to the last cell's weight, about once in sqrt(k) tries, and else repeated.

        Parameters
        ----------
        below : callable
            Draws a whole number uniformly from 0..n - 1 for a given n, such as `ball.below_of(random)`.

        Returns
        -------
        ndarray of int64, shape (answers,)
            Numbers of dummies, at least 0, with the sum `count`.
        """
        ends = list(accumulate(self.weights))
        while True:
            counts = [bisect_right(ends, below(ends[-1])) for _ in range(self.answers - 1)]
            last = self.count - sum(counts)
            if 0 <= last < len(ends) and below(self.side[0]) < self.weights[last]:
                return np.array([*counts, last], dtype=np.int64)


@dataclass(frozen=True)
class NormalDummies(CellDummies):
    """Dummies of one question of k answers: cells with normal weights, given their total k h.

    Parameters
    ----------
    answers : int
        Number k of answers, from 2 to 64.
    spread : float
        s, positive and finite: about the standard deviation of a cell, whose variance is about (1 - 1/k) s^2.
    centre : int
        h, from 0 to 1,024: a cell holds 0 to 2h dummies, with mean h.

    Raises
    ------
    InvalidInput
        If a number is out of range.

    Examples
    --------
    >>> law = NormalDummies(5, 6.0, 30)
    >>> law.count, round(law.cell_variance, 2)
    (150, 28.8)
    """

    answers: int
    spread: float
    centre: int

    def __post_init__(self) -> None:
        for name, value, least, most in (
            ("answers", self.answers, 2, MOST_ANSWERS),
            ("centre", self.centre, 0, LARGEST_CENTRE),
        ):
            what = f"{name} of normal dummies must be a whole number"
            object.__setattr__(self, name, whole_number(value, what, least, most))
        if isinstance(self.spread, bool) or not 0.0 < self.spread < math.inf:
            raise InvalidInput(
                f"the spread of normal dummies must be a positive number of dummies; got {shown(self.spread)}"
            )
        object.__setattr__(self, "spread", float(self.spread))

    @classmethod
    def reaching(cls, answers: int, spread: float, ends: float) -> NormalDummies:
        """Return the dummies of a given spread with the least middle h such that P(a cell is empty) <= `ends`.

        h is searched in steps of a tenth of the spread; the search stops at 1,024, whose law may miss `ends`.

        Parameters
        ----------
        answers : int
            Number k of answers, from 2 to 64.
        spread : float
            The spread s, positive.
        ends : float
            Largest allowed chance that a given cell is empty, in (0, 1).

        Examples
        --------
        >>> NormalDummies.reaching(5, 6.0, 1e-8).centre
        31
        """
        least, step = math.ceil(2.0 * spread), max(1, math.ceil(0.1 * spread))

        def law(steps: int) -> NormalDummies:
            return cls(answers, spread, min(least + steps * step, LARGEST_CENTRE))

        low, high = -1, 64
        while high - low > 1:
            middle = (low + high) // 2
            serves = law(middle).centre == LARGEST_CENTRE or law(middle).cell_law[0] <= ends
            low, high = (low, middle) if serves else (middle, high)
        return law(high)

    @property
    def name(self) -> str:
        """The dummies as the command line spells them: ``normal:SPREAD:CENTRE``."""
        return f"normal:{self.spread!r}:{self.centre}"

    @cached_property
    def side(self) -> tuple[int, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Weights of a cell that holds h +- t dummies, t = 0, 1, ..., h: whole numbers, the same on every machine."""
        return normal_side(self.spread, self.centre)


@dataclass(frozen=True)
class StatedCells(CellDummies):
    """Dummies of one question of k answers whose weights are given as numbers, as a collection's task lists them.

    Parameters
    ----------
    answers : int
        Number k of answers, from 2 to 64.
    side : tuple of int
        Weights of a cell that holds h +- t dummies, t = 0, 1, ..., h: positive whole numbers below 2^64 that do not
        increase; h from 1 to 1,024.

    Raises
    ------
    InvalidInput
        If a number is out of range.

    Examples
    --------
    >>> StatedCells(2, (4, 2, 1)).count
    4
    """

    answers: int
    side: tuple[int, ...]

    def __post_init__(self) -> None:
        whole = all(isinstance(weight, int) and not isinstance(weight, bool) for weight in self.side)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not (2 <= self.answers <= MOST_ANSWERS and whole and 2 <= len(self.side) <= LARGEST_CENTRE + 1):
            raise InvalidInput(
                f"normal dummies have 2 to {MOST_ANSWERS} answers and 2 to {LARGEST_CENTRE + 1} whole weights; got "
                f"{shown(self.answers)} and {len(self.side)} weights"
            )
        if not (self.side[0] < 1 << 64 and self.side[-1] > 0 and all(a >= b for a, b in pairwise(self.side))):
            raise InvalidInput("the weights of normal dummies must be positive, below 2^64, and not increase")


def normal_side(spread: float, centre: int) -> tuple[int, ...]:
    """Return the weights 2^60 e^(-t^2/(2 s^2)), t = 0, ..., h, rounded down to whole numbers, alike on every machine.

    Parameters
    ----------
    spread : float
        The spread s, positive: about the standard deviation of a cell.
    centre : int
        The middle h of a cell, at least 0.
    """
    distance = np.arange(centre + 1.0)
    weights = np.ldexp(exp_rounded(-((distance / spread) ** 2) / 2.0), _FINE)
    return tuple(int(weight) for weight in weights.tolist())


@lru_cache(maxsize=64)
def _sums(weights: tuple[int, ...], cells: int) -> tuple[FloatArray, float]:
    return law_of_sum(np.array([weight / sum(weights) for weight in weights]), cells)


MOST_DUMMIES = 10**7
"""Largest number of dummies of one question."""
MOST_BITS = 20_000
"""Largest number of dummies whose number of ones has a law stated in whole numbers."""
WHOLE = 1 << 64
"""Laws are stated in whole numbers over 2^64."""


@dataclass(frozen=True)
class Uniform:
    """Dummies that are reports of local budget 0: independent, each uniform on all possible reports.

    Parameters
    ----------
    count : int
        Number m of dummies, from 0 to 1e7.

    Raises
    ------
    InvalidInput
        If the number is out of range.

    Examples
    --------
    >>> Uniform(172).name
    '172'
    """

    count: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", _count(self.count))

    @property
    def name(self) -> str:
        """The dummies as the command line spells them: their number, ``"172"``."""
        return str(self.count)

    @property
    def weights(self) -> None:
        """None: no law of the number of ones is stated; among uniform bits it is binomial."""


@dataclass(frozen=True)
class DiscreteLaplace:
    """Dummies of one bit each, whose number of ones D has a discrete Laplace law on 0..m around m/2.

    P(D = j) is about proportional to ratio^-|j - m/2|. It is rounded to whole numbers over 2^64, a little more sharply
    peaked, so that the law is exactly symmetric and exactly log-concave; far chances (below about 10^-12) are 0. This
    law of whole numbers is the one that is drawn, and the one that is certified.

    Parameters
    ----------
    count : int
        Number m of dummies, from 0 to 20,000.
    ratio : float
        Quotient of the chances of neighbouring numbers of ones, finite, at least 1. A ratio near 1 spreads D widely; a
        large one holds D near m/2.

    Raises
    ------
    InvalidInput
        If a number is out of range.

    Examples
    --------
    >>> law = DiscreteLaplace(2, 3.0)
    >>> [round(weight / 2**64, 4) for weight in law.weights]
    [0.2, 0.6, 0.2]
    """

    count: int
    ratio: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", _count(self.count, MOST_BITS))
        value = self.ratio
        real = isinstance(value, int | float) and not isinstance(value, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not (real and 1.0 <= value < math.inf):
            raise InvalidInput(f"the ratio of a discrete Laplace law must be finite and at least 1; got {shown(value)}")
        object.__setattr__(self, "ratio", float(value))

    @classmethod
    def reaching(cls, count: int, delta: float) -> DiscreteLaplace:
        """Return the flattest law (least ratio) whose chance of either end, 0 or m ones, is at most `delta`.

        The flatter the law, the less one report changes the chances of D; but a result at an end reveals a report.

        Parameters
        ----------
        count : int
            Number m of dummies, from 2 to 20,000.
        delta : float
            Largest allowed chance P(D = 0) = P(D = m), in (0, 1).

        Raises
        ------
        InvalidInput
            If a number is out of range, or the law would have to be steeper than a ratio of e^30.

        Examples
        --------
        >>> law = DiscreteLaplace.reaching(60, 1e-6)
        >>> law.weights[0] <= 1e-6 * 2**64, round(law.ratio, 2)
        (True, 1.5)
        """
        low, high = 0.0, 30.0
        if not (count >= 2 and 0.0 < delta < 1.0 and cls(count, _ratio(high)).weights[0] <= delta * WHOLE):
            raise InvalidInput(f"{count} dummies cannot keep the ends of their law below {delta}; take more of them")
        for _ in range(40):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if cls(count, _ratio(middle)).weights[0] <= delta * WHOLE else (middle, high)
        return cls(count, _ratio(high))

    @property
    def name(self) -> str:
        """The dummies as the command line spells them: ``laplace:COUNT:RATIO``."""
        return f"laplace:{self.count}:{self.ratio!r}"

    @property
    def weights(self) -> tuple[int, ...]:
        """The chances P(D = j) times 2^64 of j = 0, ..., m ones: whole numbers that add up to 2^64."""
        return _laplace_weights(self.count, self.ratio)

    @property
    def thresholds(self) -> tuple[int, ...]:
        """The values P(D <= j) times 2^64, j = 0, ..., m - 1, whole numbers, for sampling D.

        D is the number of thresholds that are at most a uniform 64-bit word.
        """
        return thresholds_of(self.weights)


@dataclass(frozen=True)
class OnesLaw:
    """Dummies of one bit each, whose number of ones D has a given law in whole numbers over 2^64.

    Parameters
    ----------
    thresholds : tuple of int
        P(D <= j) times 2^64 for j = 0..m - 1, not decreasing, from 0 to 2^64. Their number m, at most 20,000, is the
        number of dummies. The law must be symmetric, P(D = j) = P(D = m - j): then both bits are protected alike.

    Raises
    ------
    InvalidInput
        If a threshold is out of range or out of order, or the law is not symmetric.

    Examples
    --------
    >>> OnesLaw((1 << 62, 3 << 62)).count
    2
    """

    thresholds: tuple[int, ...]

    def __post_init__(self) -> None:
        _count(len(self.thresholds), MOST_BITS)
        steps = (0, *self.thresholds, WHOLE)
        if not all(isinstance(step, int) and not isinstance(step, bool) for step in steps):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput("the thresholds of a law of ones must be whole numbers over 2^64")
        if any(one > two for one, two in pairwise(steps)):
            raise InvalidInput("the thresholds of a law of ones must not decrease, and lie between 0 and 2^64")
        if self.weights != self.weights[::-1]:
            raise InvalidInput("the law of the number of ones must be symmetric, P(D = j) = P(D = m - j)")

    @property
    def count(self) -> int:
        """Number m of dummies, which is that of the thresholds."""
        return len(self.thresholds)

    @property
    def name(self) -> str:
        """A label for messages, ``ones:COUNT``; the command line cannot spell a law of this kind."""
        return f"ones:{self.count}"

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """The chances P(D = j) times 2^64 of j = 0, ..., m ones: whole numbers that add up to 2^64."""
        return tuple(two - one for one, two in pairwise((0, *self.thresholds, WHOLE)))


OwnDummies = Uniform | DiscreteLaplace | OnesLaw | NormalDummies
"""Dummies that the shuffler may add to one question alone."""
Dummies = OwnDummies | BallDummies
"""Dummies that the shuffler may add: to one question, or by one joint law to several."""


def check_dummies(randomizer: object, dummies: object) -> tuple[HiddenByFakes, Dummies]:
    """Return a randomizer and its dummies unchanged, or raise InvalidInput if they do not fit together.

    Parameters
    ----------
    randomizer : RandomizedResponse, OneBit or HadamardResponse
        The local randomizer whose reports the dummies imitate.
    dummies : Dummies
        What the shuffler adds to the reports.
    """
    family = check_family(randomizer)
    if not isinstance(dummies, Dummies):
        raise InvalidInput(
            f"dummies must be Uniform, DiscreteLaplace, OnesLaw, NormalDummies or BallDummies; got {shown(dummies)}"
        )
    if isinstance(dummies, BallDummies):
        if dummies.columns != (column_of(family),):
            listed = ", ".join(column.name for column in dummies.columns)
            raise InvalidInput(
                f"one question of {family.name} needs ball dummies of the column {column_of(family).name}; got {listed}"
            )
    elif isinstance(dummies, NormalDummies):
        if dummies.answers != column_of(family).size:
            raise InvalidInput(
                f"{family.name} needs normal dummies of {column_of(family).size} answers; got {dummies.answers}"
            )
    elif not isinstance(dummies, Uniform) and not is_one_bit(family):
        raise InvalidInput(
            f"a law of the number of ones is for families of one bit, rr and one-bit; got {family.name}: take uniform "
            "or ball dummies"
        )
    return family, dummies


def column_of(family: HiddenByFakes) -> Column:
    """Return the column (a choice of k answers) that ball or normal dummies of a randomizer have.

    Parameters
    ----------
    family : RandomizedResponse or OneBit
        A local randomizer whose report is one of k answers.

    Raises
    ------
    InvalidInput
        If a report of the family is no single answer, as for Hadamard response.
    """
    if not family.report_sets.disjoint:
        raise InvalidInput(
            "ball and normal dummies serve families whose report is an answer, rr, krr:K and one-bit; got "
            f"{family.name}: take krr:K, or uniform dummies"
        )
    return Column("choice", family.report_sets.one_in)


def check_family(randomizer: object) -> HiddenByFakes:
    """Return a randomizer that dummies can serve, unchanged, or raise InvalidInput.

    Parameters
    ----------
    randomizer : RandomizedResponse, OneBit or HadamardResponse
        A local randomizer whose report without information is uniform on all possible reports.
    """
    if not isinstance(randomizer, HiddenByFakes):
        raise InvalidInput(
            "dummies serve the families rr, krr:K, one-bit and hadamard:K, whose reports without information are "
            f"uniform on all possible reports; got {shown(getattr(randomizer, 'name', randomizer))}"
        )
    return randomizer


def is_one_bit(family: HiddenByFakes) -> bool:
    """Whether a randomizer's report is one bit, so that many reports are fully described by their number of ones."""
    return family.report_sets.one_in == 2 and family.report_sets.disjoint


def is_log_concave(weights: tuple[int, ...]) -> bool:
    """Whether integer weights are log-concave: w_j^2 >= w_(j-1) w_(j+1), no 0 between positive ones; exact."""
    positive = [j for j, weight in enumerate(weights) if weight]
    if positive and positive[-1] - positive[0] + 1 != len(positive):
        return False
    return all(weights[j] ** 2 >= weights[j - 1] * weights[j + 1] for j in range(1, len(weights) - 1))


def thresholds_of(weights: tuple[int, ...]) -> tuple[int, ...]:
    """Return the sums of the first 1, 2, ..., m of m + 1 weights: cumulative weights, without the total."""
    thresholds, total = list[int](), 0
    for weight in weights[:-1]:
        total += weight
        thresholds.append(total)
    return tuple(thresholds)


@lru_cache(maxsize=64)
def _laplace_weights(count: int, ratio: float) -> tuple[int, ...]:
    """Whole numbers near c ratio^-d e^(-bend d^2), d = |j - m/2| less that of the middle, symmetric, of sum 2^64.

    bend = 1/(10^6 + m^2) makes the logarithms strictly concave, by 2 bend. Rounding a weight w down costs it less than
    1/w + 2^-50 of itself; weights below 8/bend are put to 0. So rounding keeps the law log-concave, and so does what
    is left over for the middle, at most m + 1 + 2^16 units. The caller's law is checked all the same.

    A task states these numbers: the logarithm, the exponentials, the sum and every operation are rounded correctly, so
    they are the same everywhere.
    """
    bend = 1.0 / (1e6 + float(count) ** 2)
    half, middle = count // 2, 2 if count % 2 else 1
    distance = np.arange(half + 1.0)
    shape = exp_rounded(-distance * log_rounded(ratio) - bend * distance**2)
    for least in (8.0 / bend, 0.0):  # the second time without the weights that are 0
        scaled = shape * (2.0**64 / (middle * shape[0] + 2.0 * math.fsum(shape[1:].tolist())))
        shape = np.where(scaled >= least, scaled, 0.0)
    side = [int(weight) for weight in shape.tolist()]
    rest = WHOLE - 2 * sum(side[1:])
    centre = [rest] if middle == 1 else [rest // 2, rest // 2]
    weights = (*side[:0:-1], *centre, *side[1:])
    if not is_log_concave(weights):
        raise NotConverged(
            f"rounding spoilt the discrete Laplace law of {count} dummies at ratio {ratio}; take another"
        )
    return weights


def _ratio(steepness: float) -> float:
    return float(exp_rounded(steepness))


def _count(value: object, most: int = MOST_DUMMIES) -> int:
    return whole_number(value, "the number of dummies must be a whole number", 0, most)
