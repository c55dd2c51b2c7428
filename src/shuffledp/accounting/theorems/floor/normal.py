"""The floor of normal dummies of several questions together, in whole numbers (docs/theorems/normal.md, (C3)).

The loss of an atom of one question is nearly a multiple of log(rho), the same for all questions of one spread. So all
losses are moved up to the next two multiples, and a composition is a product of polynomials with whole coefficients.
Every step rounds so that the result is no smaller, and every machine finds the same whole numbers; so does the survey
page (collection/page/normal.js).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.theorems.floor.bound import double_above
from shuffledp.accounting.theorems.floor.doubles import FARTHEST, FINE, Ratios, Rough, Shape, shape_of
from shuffledp.ball import WHOLE
from shuffledp.dummies import StatedCells
from shuffledp.numerics.floats import FloatArray, Interval, Upper
from shuffledp.numerics.functions import exp_lower

MASS = 96
"""Number of binary digits after the point of probabilities."""
_KEPT = 64
"""Number of binary digits of the largest probability of a sum of cells."""
_LOST = 1 << (MASS - 60)
"""Probability, at either end of a product, that is moved up: to an infinite loss, and to the lowest loss kept."""
_MOST_TERMS = 1 << 10
_FARTHEST = 1000
_SPLIT = 1 << (FINE - MASS)
"""Amount by which the mass of an atom at its lower loss is raised: far more than the rounding of powers of rho."""


@dataclass(frozen=True)
class Losses:
    """Upper bound of a law of privacy losses that are whole multiples of log(rho), with chances over 2^96.

    Parameters
    ----------
    start : int
        The lowest multiple.
    chances : tuple of int
        Chances, times 2^96, of the multiples start, start + 1, ...
    infinite : int
        Chance of an infinite loss, times 2^96.
    """

    start: int
    chances: tuple[int, ...]
    infinite: int

    def times(self, other: Losses) -> Losses:
        """Return the law of the sum of two independent losses, without unlikely losses at either end.

        Unlikely losses are moved up: to infinity, or to the lowest loss kept.
        """
        mine, theirs = sum(self.chances), sum(other.chances)
        lost = self.infinite * (theirs + other.infinite) + mine * other.infinite
        chances = [-(-each >> MASS) for each in _product(self.chances, other.chances)]
        return _window(self.start + other.start, chances, -(-lost >> MASS))


def _window(start: int, chances: list[int], infinite: int) -> Losses:
    top, moved = len(chances), 0
    while top > 1 and moved + chances[top - 1] <= _LOST:
        top -= 1
        moved += chances[top]
    low, below = 0, 0
    while low < top - 1 and below + chances[low] <= _LOST:
        below += chances[low]
        low += 1
    kept = chances[low:top]
    kept[0] += below
    return Losses(start + low, tuple(kept), infinite + moved)


def _product(one: Sequence[int], two: Sequence[int]) -> list[int]:
    """Return the coefficients of the product of two polynomials with coefficients of at least 0.

    One product of two long numbers gives them all.
    """
    width = -(-(max(one).bit_length() + max(two).bit_length() + min(len(one), len(two)).bit_length()) // 8)
    packed = int.from_bytes(b"".join([each.to_bytes(width, "little") for each in one]), "little")
    other = packed  # a square takes half the time of a product
    if two is not one:
        other = int.from_bytes(b"".join([each.to_bytes(width, "little") for each in two]), "little")
    size = width * (len(one) + len(two) - 1)
    digits = (packed * other).to_bytes(size, "little")
    return [int.from_bytes(digits[place : place + width], "little") for place in range(0, size, width)]


@lru_cache(maxsize=256)
def _unhidden(cells: StatedCells, shape: Shape) -> tuple[list[int], int]:
    """Return the law of i - j under (C1), from above, over 2^160.

    Returns
    -------
    tuple of list of int, int
        The chances of 1 - 2 h, 2 - 2 h, ..., where q is not 0; and that q is 0.
    """
    h, side, power = cells.middle, cells.side, shape.power
    others, doubt = _other_cells(cells)
    weights = (shape.squares, shape.pairs)
    sums = [_sums_to([each * side[1 - parity] for each in weights[parity]], others, doubt, parity) for parity in (0, 1)]
    masses, total, ends = [0] * (4 * h + 1), 0, 0
    for apart in range(2 * h + 1):  # |x - y|, x and y from the middle in the two cells: i - j = x - y + 1
        half, parity = divmod(apart, 2)
        last = h - half - parity  # |x + y| = 2 last + parity at most
        lower, upper = sums[parity]
        weight = weights[parity][half]
        every, inside = weight * upper[last + 1], weight * upper[last]
        total += weight * lower[last + 1] << (apart > 0)
        masses[2 * h - apart] = every
        masses[2 * h + apart] = inside  # x = h or y = -h is left out: then q is 0
        ends += every - inside
    return [-(-(mass * power) // total) for mass in masses], -(-(ends * power) // total)


def _sums_to(shape: list[int], others: list[int], doubt: int, parity: int) -> tuple[list[int], list[int]]:
    """Add up weights of x + y, of one parity and absolute value: the first 0, 1, ... of them, from below and above."""
    lower, upper = [0], [0]
    for v, each in enumerate(shape):
        s = 2 * v + parity
        rest = others[s] if s < len(others) else 0
        twice = each << (s > 0)
        lower.append(lower[-1] + twice * rest)
        upper.append(upper[-1] + twice * (rest + doubt))
    return lower, upper


def _other_cells(cells: StatedCells) -> tuple[list[int], int]:
    """Return the weights of all other cells' total, from its mean to 2 h + 1 above it, up to a factor.

    They are rounded down, by at most the second number. As much below the mean they are the same.
    """
    reach = 2 * cells.middle + 1
    if cells.answers == 2:
        return [1] + [0] * reach, 0
    return _total(cells.weights, cells.answers - 2, reach)


def _total(weights: tuple[int, ...], cells: int, reach: int) -> tuple[list[int], int]:
    """Return the weights of the total of so many cells, as `_other_cells`.

    All weights are symmetric and do not increase away from the middle, so the middle one is the largest.
    """
    if cells == 1:
        middle = len(weights) // 2
        return [*weights[middle:], *[0] * reach][: reach + 1], 0
    (mine, own), (theirs, other) = (_cells_together(weights, part) for part in (cells // 2, cells - cells // 2))
    half = _upper_half(mine, theirs, reach)
    doubt = own * sum(theirs) + other * sum(mine) + own * other * cells * len(weights)
    shift = max(half[0].bit_length() - _KEPT, 0)
    return [each >> shift for each in half], (doubt >> shift) + 2 if shift else doubt


@lru_cache(maxsize=128)
def _cells_together(weights: tuple[int, ...], cells: int) -> tuple[tuple[int, ...], int]:
    """Return the weights of the total of so many cells, as `_total`, on both sides of the middle.

    What becomes 0 at the ends is left out.
    """
    if cells == 1:
        return weights, 0
    half, doubt = _total(weights, cells, cells * (len(weights) // 2))
    while not half[-1]:
        half.pop()
    return (*half[:0:-1], *half), doubt


def _upper_half(one: tuple[int, ...], two: tuple[int, ...], reach: int) -> list[int]:
    """Return coefficients of the product of two palindromes, from the middle one to `reach` beyond it.

    Short palindromes are multiplied as three polynomials of doubles each, by their digits in base 2^22, from -2^21 to
    2^21: at most 2^10 products of two digits are added up, so every number on the way is a whole one below 2^53, which
    a double holds exactly.

    Parameters
    ----------
    one, two : tuple of int
        Coefficients from 0 to 2^64 - 1; their number is odd.
    reach : int
        How many coefficients follow the middle one; beyond the end they are 0.
    """
    middle = (len(one) + len(two)) // 2 - 1
    if max(len(one), len(two)) > _MOST_TERMS:
        coefficients = _product(one, two)[middle : middle + reach + 1]
        return coefficients + [0] * (reach + 1 - len(coefficients))
    first = middle - len(one) + 1  # the coefficient m + t of the product takes m + t - len(one) + 1, ..., m + t of two
    before, after = max(-first, 0), max(middle + reach + 1 - len(two), 0)
    sums = [np.zeros(reach + 1, dtype=np.int64) for _ in range(5)]
    mine = _digits(one)
    for j, theirs in enumerate(mine if two is one else _digits(two)):
        padded = np.pad(theirs[max(first, 0) : middle + reach + 1], (before, after))
        for i, own in enumerate(mine):
            sums[i + j] += np.correlate(padded, own, "valid").astype(np.int64)
    places = zip(*(each.tolist() for each in sums), strict=True)
    return [a + (b << 22) + (c << 44) + (d << 66) + (e << 88) for a, b, c, d, e in places]


def _digits(numbers: tuple[int, ...]) -> list[FloatArray]:
    """Return the digits of numbers below 2^64 in base 2^22, from the last; each from -2^21 to 2^21."""
    left, by_place = np.array(numbers, dtype=np.uint64), list[FloatArray]()
    for _ in range(3):
        carried = left >> np.uint64(21) & np.uint64(1)
        digits = (left & np.uint64((1 << 22) - 1)).astype(np.int64) - (carried << np.uint64(22)).astype(np.int64)
        by_place.append(digits.astype(np.float64))
        left = (left >> np.uint64(22)) + carried
    return by_place


@lru_cache(maxsize=256)
def losses_of(cells: StatedCells, ratios: Ratios, keep: int) -> Losses:
    """Return an upper law of losses of one report that is the record's own with chance keep/2^64: (C2), (C3).

    Parameters
    ----------
    cells : StatedCells
        The dummies of its question.
    ratios : Ratios
        The powers of rho, whose logarithm is the step of losses.
    keep : int
        K, from 0 to 2^64.
    """
    shape = shape_of(cells.side, ratios)
    hidden, infinite = _unhidden(cells, shape)
    low, high = ratios.beyond(shape.likely[-1][0])
    one, hide = 1 << FINE, WHOLE - keep
    masses = Counter[int]()
    level, lost = infinite, keep * infinite  # level: of the loss 0, to be hidden
    for mass, (ratio, share) in zip(hidden, shape.likely, strict=True):
        if not mass:
            continue
        if share:  # p' = kappa p + (1 - kappa) q, and p'/q = 1 + kappa (p/q - 1)
            own = -(-mass * (keep * one + hide * share) >> FINE + 64)
            level += -(-mass * (ratio - one) // ratio)
            n, up = _split_above(one + -(-keep * (ratio - one) >> 64), low, ratios.rho)
        else:  # p' = p, and q/p = 1 + kappa (q/p - 1)
            own = mass
            n, up = _split_below(one + (keep * (ratio - one) >> 64), high, ratios.rho)
        if n is None:
            lost += own << 64
            continue
        higher = -(-own * up >> FINE)
        masses[n + 1] += higher
        masses[n] += max(own - higher, 0) + _SPLIT
    masses[0] += -(-hide * level >> 64)
    start, end = min(masses), max(masses)
    chances = [-(-masses[n] >> FINE - MASS) for n in range(start, end + 1)]
    return _window(start, chances, -(-lost >> 64 + FINE - MASS))


def _split_above(ratio: int, low: tuple[int, ...], rho: int) -> tuple[int | None, int]:
    """Return n with rho^n about below a ratio of at least 1, and the part that goes to n + 1, from above."""
    n = bisect_right(low, ratio) - 1
    if n + 1 >= len(low):
        return None, 0
    return n, _part((1 << FINE) - (low[n] << FINE) // ratio, rho)


def _split_below(inverse: int, high: tuple[int, ...], rho: int) -> tuple[int | None, int]:
    """Return the same for a ratio below 1, whose inverse is given, from below."""
    n = bisect_left(high, inverse)  # inverse <= rho^n
    if n >= len(high):
        return 1 - n, 0
    return -n, _part((1 << FINE) - (inverse << FINE) // high[n], rho)


def _part(gap: int, rho: int) -> int:
    """Return gap/(1 - 1/rho), at most 1, rounded up."""
    return min(-(-gap * rho // (rho - (1 << FINE))), 1 << FINE)


@dataclass(frozen=True, eq=False)
class NormalFloor(PrivacyProfile):
    """Certified profile of one person's reports to questions with normal dummies of one spread, from dummies alone.

    Parameters
    ----------
    columns : tuple of StatedCells
        The dummies of each column (question).
    kept : tuple of int
        K of each column: with chance K/2^64 a report is the record's own.
    reports : {1, 2}
        Number of reports of the person, each to all questions.
    top : float
        Sum of the local budgets of all reports (nats): from there on delta is 0.
    """

    tolerance: ClassVar[float] = 1e-9

    columns: tuple[StatedCells, ...]
    kept: tuple[int, ...]
    reports: int
    top: Upper

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats) from which on delta is 0: the sum of the local budgets, since the rest is post-processing."""
        return self.top

    @property
    def known_below(self) -> bool:
        """Whether lower ends of delta are more than 0: always False, since losses are rounded up."""
        return False

    @cached_property
    def _ratios(self) -> Ratios:
        return Ratios.of(self.columns[0].side)

    @cached_property
    def losses(self) -> Losses:
        """Upper law of the privacy loss of all columns together."""
        laws = list[Losses]()
        for (cells, keep), times in Counter(zip(self.columns, self.kept, strict=True)).items():
            power = losses_of(cells, self._ratios, keep)
            while times:
                if times & 1:
                    laws.append(power)
                times >>= 1
                if times:
                    power = power.times(power)
        while len(laws) > 1:  # two by two, so that most products are short
            laws = [one.times(two) for one, two in zip(laws[::2], laws[1::2], strict=False)] + laws[len(laws) & ~1 :]
        return laws[0]

    def delta_rational(self, epsilon: float) -> Fraction:
        """Return the certified delta at epsilon (nats), at most 1, as a fraction: the same on every machine."""
        factor = exp_lower(min(Fraction(epsilon) / self.reports, Fraction(_FARTHEST)))
        least = int(factor * (1 << FINE))
        law = self.losses
        _, high = self._ratios.up_to(max(law.start + len(law.chances), 0))
        total = law.infinite
        for n, chance in enumerate(law.chances, law.start):
            if n >= len(high):
                total += chance
            elif n >= 0 and high[n] > least:
                total += -(-chance * (high[n] - least) // high[n])
        once = Fraction(total, 1 << MASS)
        return min(once * sum(factor**i for i in range(self.reports)), Fraction(1))

    def _in_doubles(self, epsilon: float) -> Interval:
        """Return an interval that holds `delta_rational` where that is below 1, found by doubles."""
        shared = epsilon / self.reports
        rough = self._rough if 0.0 <= shared <= FARTHEST else None
        if rough is None:
            return Interval(0.0, math.inf)
        factor = float(exp_lower(Fraction(epsilon) / self.reports))
        once = rough.delta(factor)
        return once if self.reports == 1 else once * (1.0 + Interval(factor, factor) * Interval(1 - 2**-50, 1 + 2**-50))

    @cached_property
    def _rough(self) -> Rough | None:
        return Rough.of(Counter(zip(self.columns, self.kept, strict=True)), self._ratios)

    def delta_at(self, epsilon: float) -> Interval:
        """Return the interval from 0 to the certified delta at epsilon by (C3), rounded up to a double."""
        return Interval(0.0, double_above(self.delta_rational(epsilon)))

    def keeps(self, epsilon: float, delta: float) -> bool:
        """Return whether the person's reports are certified to be (epsilon, delta)-private, by comparing whole numbers.

        Parameters
        ----------
        epsilon : float
            Nats, at least 0.
        delta : float
            In (0, 1).
        """
        if epsilon >= self.top:
            return True
        rough = self._in_doubles(epsilon)
        if not rough.lower <= delta < rough.upper:
            return bool(rough.upper <= delta)
        return self.delta_rational(epsilon) <= Fraction(delta)
