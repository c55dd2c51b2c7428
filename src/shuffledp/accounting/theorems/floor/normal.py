"""The floor of normal dummies of several questions together, in whole numbers (docs/theorems/normal.md, (C3)).

The loss of an atom of one question is nearly a multiple of log(rho), the same for all questions of one spread. So all
losses are moved up to the next two multiples, and a composition is a product of polynomials with whole coefficients.
Every step rounds so that the result is no smaller, and every machine finds the same whole numbers; so does the survey
page (collection/page/normal.js).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import ClassVar

from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.theorems.floor.bound import double_above
from shuffledp.ball import WHOLE
from shuffledp.dummies import StatedCells
from shuffledp.errors import InvalidInput
from shuffledp.numerics.floats import Upper
from shuffledp.numerics.interval import Interval, exp_lower

FINE = 160
"""Number of binary digits after the point of ratios and of their powers."""
MASS = 96
"""Number of binary digits after the point of probabilities."""
_KEPT = 64
"""Number of binary digits of the largest probability of a sum of cells."""
_LOST = 1 << (MASS - 60)
"""Probability, at either end of a product, that is moved up: to an infinite loss, and to the lowest loss kept."""
_MOST_BEND = (1 << FINE) + (1 << FINE - 6)
MOST_POWER = 1 << 14
"""Largest multiple of log(rho) that is kept; larger losses are taken as infinite."""
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
        found = [-(-each >> MASS) for each in _product(self.chances, other.chances)]
        return _window(self.start + other.start, found, -(-lost >> MASS))


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
    packed = [
        int.from_bytes(b"".join(each.to_bytes(width, "little") for each in side), "little") for side in (one, two)
    ]
    size = len(one) + len(two) - 1
    digits = (packed[0] * packed[1]).to_bytes(width * size, "little")
    return [int.from_bytes(digits[width * place : width * (place + 1)], "little") for place in range(size)]


@dataclass(frozen=True)
class Ratios:
    """Powers, from below and above, of rho = (W_0/W_1)^2: the factor between neighbouring likelihood ratios.

    W_0 and W_1 are the weights of the middle count of the dummies' law and of the next count.
    """

    rho: int

    @classmethod
    def of(cls, side: tuple[int, ...]) -> Ratios:
        """Return the powers for the given weights of the dummies' law; any rho above 1 would be valid."""
        return cls(max((side[0] ** 2 << FINE) // side[1] ** 2, (1 << FINE) + (1 << FINE - 40)))

    @cached_property
    def powers(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Lower and upper bounds on rho^n times 2^160, n = 0, 1, ..., up to e^64 or 2^14 of them."""
        low, high = [1 << FINE], [1 << FINE]
        while len(low) <= MOST_POWER and low[-1] >> FINE < 1 << 92:
            low.append(low[-1] * self.rho >> FINE)
            high.append(-(-high[-1] * self.rho >> FINE))
        return tuple(low), tuple(high)


@lru_cache(maxsize=256)
def _unhidden(cells: StatedCells, ratios: Ratios) -> tuple[int, dict[int, int], int]:
    """Return the law of i - j under (C1), from above, over 2^160.

    Returns
    -------
    tuple of int, dict of int to int, int
        c, with p/q at most c rho^(i - j); the chance of each i - j where q is not 0; and that q is 0.
    """
    bend, h, side = _bend(cells, ratios), cells.middle, cells.side
    others, doubt = _other_cells(cells)
    squares = [each * each for each in side]  # for even x - y and x + y, over W_0^2
    pairs = [one * two for one, two in zip(side, (*side[1:], 0), strict=True)]  # for odd ones, over W_0 W_1
    shapes = (squares, pairs)
    sums = (
        _sums_to([each * side[1] for each in squares], others, doubt, 0),
        _sums_to([each * side[0] for each in pairs], others, doubt, 1),
    )
    found, total, ends = dict[int, int](), 0, 0
    for d in range(1 - 2 * h, 2 * h + 2):  # x and y from the middle in the two cells: i - j = x - y + 1
        half, parity = divmod(abs(d - 1), 2)
        last = (2 * h - abs(d - 1)) // 2  # |x + y| = 2 last + parity at most
        lower, upper = sums[parity]
        shape = shapes[parity][half]
        total += shape * lower[last + 1]
        inside = last if d > 0 else last + 1  # else x = h or y = -h is left out: then q is 0
        found[d] = shape * upper[inside]
        ends += shape * (upper[last + 1] - upper[inside])
    power = _power_up(bend, 4 * h + 2)
    return (
        bend,
        {d: -(-(mass * power) // total) for d, mass in found.items() if mass},
        -(-(ends * power) // total),
    )


def _bend(cells: StatedCells, ratios: Ratios) -> int:
    """Return by how much neighbouring weights differ from those of a normal law at most, squared, over 2^160."""
    low, high = ratios.powers
    largest, least = 1 << FINE, 1 << FINE  # of (W_(t-1)/W_t)^2 / rho^(2 t - 1)
    if 2 * cells.middle + 1 < len(low):
        for t, (one, two) in enumerate(pairwise(cells.side), 1):
            square, under = one * one << 2 * FINE, two * two
            largest = max(largest, -(-square // (under * low[2 * t - 1])))
            least = min(least, square // (under * high[2 * t - 1]))
        bend = max(largest, -(-(1 << 2 * FINE) // max(least, 1)))
        if bend <= _MOST_BEND:
            return bend
    raise InvalidInput("the weights of these dummies are not nearly those of a normal law, so no promise is certified")


def _sums_to(shape: list[int], others: list[int], doubt: int, parity: int) -> tuple[list[int], list[int]]:
    """Add up weights of x + y, of one parity and absolute value: the first 0, 1, ... of them, from below and above."""
    lower, upper, middle = [0], [0], len(others) // 2
    for v, each in enumerate(shape):
        s = 2 * v + parity
        rest = others[middle + s] if middle + s < len(others) else 0
        twice = each << (s > 0)
        lower.append(lower[-1] + twice * rest)
        upper.append(upper[-1] + twice * (rest + doubt))
    return lower, upper


def _power_up(base: int, times: int) -> int:
    """Return a power of a number over 2^160, rounded up."""
    found = 1 << FINE
    for bit in f"{times:b}":
        found = -(-found * found >> FINE)
        if bit == "1":
            found = -(-found * base >> FINE)
    return found


def _other_cells(cells: StatedCells) -> tuple[list[int], int]:
    """Return the weights of all other cells' total, from 2 h + 1 below its mean to as much above, up to a factor.

    They are rounded down, by at most the second number.
    """
    numbers, doubt = _cells_together(cells.weights, cells.answers - 2) if cells.answers > 2 else ((1,), 0)
    reach = 2 * cells.middle + 1
    padded = [0] * reach + list(numbers) + [0] * reach
    middle = len(padded) // 2
    return padded[middle - reach : middle + reach + 1], doubt


@lru_cache(maxsize=128)
def _cells_together(weights: tuple[int, ...], cells: int) -> tuple[tuple[int, ...], int]:
    """Return the weights of the total of so many cells, as `_other_cells`; what becomes 0 at the ends is left out."""
    if cells == 1:
        return weights, 0
    (mine, own), (theirs, other) = (_cells_together(weights, part) for part in (cells // 2, cells - cells // 2))
    found = _product(mine, theirs)
    doubt = own * sum(theirs) + other * sum(mine) + own * other * cells * len(weights)
    shift = max(max(found).bit_length() - _KEPT, 0)
    kept = [each >> shift for each in found]
    zeros = next(place for place, each in enumerate(kept) if each)
    return tuple(kept[zeros : len(kept) - zeros]), (doubt >> shift) + 2 if shift else doubt


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
    bend, hidden, infinite = _unhidden(cells, ratios)
    low, high = ratios.powers
    one, hide = 1 << FINE, WHOLE - keep
    found = Counter[int]()
    level = hide * infinite  # of the loss 0, over 2^64
    lost = keep * infinite
    for d, mass in hidden.items():
        power, under = (high[d], low[d]) if d >= 0 else (-(-(one << FINE) // low[-d]), (one << FINE) // high[-d])
        ratio = -(-bend * power >> FINE)  # p/q is at most this
        if ratio > one:  # p' = kappa p + (1 - kappa) q, and p'/q = 1 + kappa (p/q - 1)
            share = min(one, -(-(bend << FINE) // under))
            own = -(-mass * (keep * one + hide * share) >> FINE + 64)
            level += hide * -(-mass * (ratio - one) // ratio)
            n, up = _split_above(one + -(-keep * (ratio - one) >> 64), ratios)
        else:  # p' = p, and q/p = 1 + kappa (q/p - 1)
            own = mass
            n, up = _split_below(one + (keep * ((one << FINE) // ratio - one) >> 64), ratios)
        if n is None:
            lost += own << 64
            continue
        higher = -(-own * up >> FINE)
        found[n + 1] += higher
        found[n] += max(own - higher, 0) + _SPLIT
    found[0] += -(-level >> 64)
    start, end = min(found), max(found)
    chances = [-(-found[n] >> FINE - MASS) for n in range(start, end + 1)]
    return _window(start, chances, -(-lost >> 64 + FINE - MASS))


def _split_above(ratio: int, ratios: Ratios) -> tuple[int | None, int]:
    """Return n with rho^n about below a ratio of at least 1, and the part that goes to n + 1, from above."""
    low, _ = ratios.powers
    n = bisect_right(low, ratio) - 1
    if n + 1 >= len(low):
        return None, 0
    return n, _part((1 << FINE) - (low[n] << FINE) // ratio, ratios)


def _split_below(inverse: int, ratios: Ratios) -> tuple[int | None, int]:
    """Return the same for a ratio below 1, whose inverse is given, from below."""
    _, high = ratios.powers
    n = bisect_left(high, inverse)  # inverse <= rho^n
    if n >= len(high):
        return 1 - n, 0
    return -n, _part((1 << FINE) - (inverse << FINE) // high[n], ratios)


def _part(gap: int, ratios: Ratios) -> int:
    """Return gap/(1 - 1/rho), at most 1, rounded up."""
    return min(-(-gap * ratios.rho // (ratios.rho - (1 << FINE))), 1 << FINE)


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
        law, (_, high) = self.losses, self._ratios.powers
        found = law.infinite
        for n, chance in enumerate(law.chances, law.start):
            if n >= len(high):
                found += chance
            elif n >= 0 and high[n] > least:
                found += -(-chance * (high[n] - least) // high[n])
        once = Fraction(found, 1 << MASS)
        return min(once * sum(factor**i for i in range(self.reports)), Fraction(1))

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
        return epsilon >= self.top or self.delta_rational(epsilon) <= Fraction(delta)
