"""The floor of normal dummies in doubles, with what they may err: docs/theorems/normal.md, "First in doubles".

It encloses the number that `normal` finds by whole numbers, in a tenth of the time. So a promise that is kept or broken
by more than the width is decided here as there, and whole numbers decide the others. The survey page does the same
(collection/page/doubles.js). The error of a chance is counted as that page does: in roundoffs, 2^-53, as parts of the
chance that come from leaving out unlikely sums of cells, and as probability that is in a wrong place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from shuffledp.ball import WHOLE
from shuffledp.dummies import StatedCells
from shuffledp.errors import InvalidInput
from shuffledp.numerics.floats import EPS, FloatArray, Interval

# Whole multiples of log(rho), among which all losses of normal dummies lie: docs/theorems/normal.md, (C3).
#
# Powers of rho and likelihood ratios as whole numbers, the same on every machine and on the survey page
# (collection/page/normal.js).


FINE = 160
"""Number of binary digits after the point of ratios and of their powers."""
_MOST_BEND = (1 << FINE) + (1 << FINE - 6)
MOST_POWER = 1 << 14
"""Largest multiple of log(rho) that is kept; larger losses are taken as infinite."""
_FIRST_POWERS = 512


@dataclass(frozen=True)
class Ratios:
    """Powers, from below and above, of rho = (W_0/W_1)^2: the factor between neighbouring likelihood ratios.

    W_0 and W_1 are the weights of the middle count of the dummies' law and of the next count. A table of powers holds
    lower and upper bounds on rho^n times 2^160, n = 0, 1, ..., up to e^64 or 2^14 of them.
    """

    rho: int

    @classmethod
    def of(cls, side: tuple[int, ...]) -> Ratios:
        """Return the powers of rho for the dummies' law with the weights ``side``: W_0, W_1, ...

        Any rho above 1 would be valid.
        """
        return cls(max((side[0] ** 2 << FINE) // side[1] ** 2, (1 << FINE) + (1 << FINE - 40)))

    def up_to(self, last: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the table of powers up to at least rho^last, or the whole one if it ends before."""
        return _powers(self.rho, max(_FIRST_POWERS, 1 << last.bit_length()))

    def beyond(self, ratio: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the table of powers up to one above ``ratio`` over 2^160, or the whole one if it ends before."""
        many = _FIRST_POWERS
        while (table := _powers(self.rho, many))[0][-1] <= ratio and len(table[0]) == many:
            many *= 2
        return table


@lru_cache(maxsize=64)
def _powers(rho: int, many: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the first so many powers of rho, as `Ratios` describes them; fewer where these are all."""
    low, high = [1 << FINE], [1 << FINE]
    while len(low) < min(many, MOST_POWER + 1) and low[-1] >> FINE < 1 << 92:
        low.append(low[-1] * rho >> FINE)
        high.append(-(-high[-1] * rho >> FINE))
    return tuple(low), tuple(high)


@dataclass(frozen=True)
class Shape:
    """What all questions have in common whose cells have the same weights, however many answers there are."""

    side: tuple[int, ...]
    ratios: Ratios

    @cached_property
    def bend(self) -> int:
        """By how much neighbouring weights differ from those of a normal law at most, squared, over 2^160."""
        low, high = self.ratios.up_to(2 * self.middle + 1)
        largest, least = 1 << FINE, 1 << FINE  # of (W_(t-1)/W_t)^2 / rho^(2 t - 1)
        if 2 * self.middle + 1 < len(low):
            for t, (one, two) in enumerate(pairwise(self.side), 1):
                square, under = one * one << 2 * FINE, two * two
                largest = max(largest, -(-square // (under * low[2 * t - 1])))
                least = min(least, square // (under * high[2 * t - 1]))
            bend = max(largest, -(-(1 << 2 * FINE) // max(least, 1)))
            if bend <= _MOST_BEND:
                return bend
        raise InvalidInput(
            "the weights of these dummies are not nearly those of a normal law, so no promise is certified"
        )

    @property
    def middle(self) -> int:
        """Mean number h of dummies in a cell."""
        return len(self.side) - 1

    @cached_property
    def power(self) -> int:
        """bend^(4 h + 2) over 2^160, rounded up."""
        bend_power = 1 << FINE
        for bit in f"{4 * self.middle + 2:b}":
            bend_power = -(-bend_power * bend_power >> FINE)
            if bit == "1":
                bend_power = -(-bend_power * self.bend >> FINE)
        return bend_power

    @cached_property
    def squares(self) -> list[int]:
        """W_t^2: weights of even x - y and x + y, over W_0^2."""
        return [each * each for each in self.side]

    @cached_property
    def pairs(self) -> list[int]:
        """W_t W_(t+1): weights of odd ones, over W_0 W_1."""
        return [one * two for one, two in zip(self.side, (*self.side[1:], 0), strict=True)]

    @cached_property
    def likely(self) -> list[tuple[int, int]]:
        """Bounds, over 2^160, for each i - j from 1 - 2 h on, as (r, s).

        Where p/q may exceed 1 they are upper bounds on p/q and q/p, else s is 0 and r a lower bound on q/p.
        """
        bend, one, bounds = self.bend, 1 << FINE, list[tuple[int, int]]()
        low, high = self.ratios.up_to(2 * self.middle + 1)
        for d in range(1 - 2 * self.middle, 2 * self.middle + 2):
            power, under = (high[d], low[d]) if d >= 0 else (-(-(one << FINE) // low[-d]), (one << FINE) // high[-d])
            ratio = -(-bend * power >> FINE)
            share = min(one, -(-(bend << FINE) // under))
            bounds.append((ratio, share) if ratio > one else ((one << FINE) // ratio, 0))
        return bounds


@lru_cache(maxsize=256)
def shape_of(side: tuple[int, ...], ratios: Ratios) -> Shape:
    """Return the shape of a side of weights; the last ones are remembered."""
    return Shape(side, ratios)


_ONE = 1 << FINE
_LEAST = 2.0**-66
"""Sums of cells below this part of the likeliest are left out, and so much probability at either end of a law."""
_DOUBT = 2.0**-61
"""What a product of sums of cells loses, here or by whole numbers, as a part of its middle."""
_MOVED = 2.0**-58
"""What one law of losses loses or moves, here and by whole numbers together."""
_MOST_PRODUCTS = 1 << 30
"""Two laws with more pairs of losses are left to the whole numbers."""
_MOST_APART = 1e-3
_MOST_MASS = 2.0
FARTHEST = 40.0
"""Largest epsilon (nats) that is served: powers of rho end at e^64."""


@dataclass(frozen=True, eq=False)
class _Sum:
    """Weights of the total of some cells, up to a factor.

    Attributes
    ----------
    weights : ndarray
        From the middle one to the last that is not left out; as much below the middle they are the same.
    roundoffs : float
        Bound on their relative error, in roundoffs, but for `doubt`.
    doubt : float
        Bound on what else one of them may miss, here or in `normal`, as a part of the middle one.
    """

    weights: FloatArray
    roundoffs: float
    doubt: float

    @property
    def both(self) -> FloatArray:
        """Weights on both sides of the middle."""
        return np.concatenate((self.weights[:0:-1], self.weights))

    def times(self, other: _Sum, terms: int, reach: int) -> _Sum:
        """Return the total of both up to `reach` above its middle; `normal` counts so many terms of a product."""
        short, long = sorted((self.both, other.both), key=len)
        edge, middle = short.size // 2, long.size // 2
        part = long[middle - edge : middle + edge + reach + 1]
        padded = np.pad(part, (0, 2 * edge + reach + 1 - part.size))
        weights = np.convolve(padded, short, "valid")
        mine, theirs = self.doubt * self.weights[0], other.doubt * other.weights[0]
        lost = mine * other.both.sum() + theirs * self.both.sum() + mine * theirs * terms
        roundoffs = self.roundoffs + other.roundoffs + short.size + 2.0
        return _Sum(weights, roundoffs, 1.01 * lost / weights[0] + _DOUBT)


@lru_cache(maxsize=128)
def _sum_of(side: tuple[int, ...], cells: int) -> _Sum:
    """Return the law of the total of so many cells, without unlikely totals."""
    if cells == 1:
        return _Sum(np.array(side, dtype=np.float64) / float(side[0]), 3.0, 0.0)
    reach = sum(_sum_of(side, part).weights.size - 1 for part in (cells // 2, cells - cells // 2))
    whole = _total(side, cells, reach)
    kept = int(np.flatnonzero(whole.weights >= _LEAST * whole.weights[0])[-1]) + 1
    return _Sum(whole.weights[:kept], whole.roundoffs, whole.doubt)


def _total(side: tuple[int, ...], cells: int, reach: int) -> _Sum:
    """Return the weights of the total of so many cells up to `reach` above its mean."""
    if cells == 0:
        return _Sum(np.eye(1, reach + 1)[0], 0.0, 0.0)
    if cells == 1:
        own = _sum_of(side, 1)
        return _Sum(np.pad(own.weights, (0, max(reach + 1 - len(side), 0)))[: reach + 1], own.roundoffs, 0.0)
    one, two = _sum_of(side, cells // 2), _sum_of(side, cells - cells // 2)
    return one.times(two, cells * (2 * len(side) - 1), reach)


@dataclass(frozen=True, eq=False)
class _Unhidden:
    """The law of i - j under (C1).

    Attributes
    ----------
    chances : ndarray
        Of i - j = 1 - 2 h, 2 - 2 h, ...
    ends : float
        The chance that q is 0.
    roundoffs, doubt : float
        Bounds on relative errors: in roundoffs, and from the sums of cells.
    moved : float
        Bound on what else `ends` may miss.
    """

    chances: FloatArray
    ends: float
    roundoffs: float
    doubt: float
    moved: float


@lru_cache(maxsize=256)
def _unhidden(cells: StatedCells, shape: Shape) -> _Unhidden:
    h = cells.middle
    others = _total(cells.side, cells.answers - 2, 2 * h + 1)
    side, doubt = _sum_of(cells.side, 1).weights, others.doubt * others.weights[0]
    weights = (side * side, np.append(side[1:] * side[:-1], 0.0))  # of even and of odd x - y, and x + y
    every, inside, ends, missed, share = np.empty(2 * h + 1), np.empty(2 * h + 1), 0.0, 0.0, 0.0
    for parity, each in enumerate(weights):
        twice = each * side[1 - parity] * np.where(np.arange(h + 1) + parity > 0, 2.0, 1.0)
        terms = twice * others.weights[parity::2]
        upto, last = np.concatenate(([0.0], np.cumsum(terms))), h + 1 - parity
        own = each[:last]
        every[parity::2] = own * upto[last:0:-1]
        inside[parity::2] = own * upto[last - 1 :: -1]
        ends += float(own @ terms[last - 1 :: -1])
        missed += float(own @ twice[last - 1 :: -1]) * doubt
        if doubt:
            share = max(share, doubt * float(twice.sum()) / float(upto[-1]))
    scale = shape.power / _ONE / float(every[0] + 2.0 * every[1:].sum())
    chances = np.concatenate((every[:0:-1], inside)) * scale
    return _Unhidden(chances, ends * scale, 2.0 * others.roundoffs + 8.0 * h + 64.0, 5.0 * share, 2.0 * missed * scale)


@dataclass(frozen=True, eq=False)
class _Lattice:
    """Powers of rho, and bounds on likelihood ratios, of one shape.

    Attributes
    ----------
    powers : ndarray
        rho^0, rho^1, ..., beyond all ratios.
    steep : float
        1/(1 - 1/rho).
    excess : ndarray
        For each i - j, the bound on p/q less 1, or on q/p less 1.
    share : ndarray
        In the first case the bound on q/p, else 0.
    """

    powers: FloatArray
    steep: float
    excess: FloatArray
    share: FloatArray


@lru_cache(maxsize=64)
def _lattice(shape: Shape) -> _Lattice | None:
    """Return the lattice of a shape, or None where the table of powers ends too early."""
    low, _ = shape.ratios.beyond(2 * shape.likely[-1][0])
    if low[-1] <= 2 * shape.likely[-1][0]:
        return None
    rho = shape.ratios.rho
    excess = np.array([(ratio - _ONE) / _ONE for ratio, _ in shape.likely])
    share = np.array([share / _ONE for _, share in shape.likely])
    return _Lattice(np.array([power / _ONE for power in low]), rho / (rho - _ONE), excess, share)


@dataclass(frozen=True, eq=False)
class _Losses:
    """A law of losses that are whole multiples of log(rho), as `normal.Losses`, with its errors as in `_Unhidden`."""

    start: int
    chances: FloatArray
    infinite: float
    roundoffs: float
    doubt: float

    def times(self, other: _Losses) -> _Losses:
        """Return the law of the sum of two independent losses."""
        mine, theirs = float(self.chances.sum()), float(other.chances.sum())
        infinite = self.infinite * (theirs + other.infinite) + mine * other.infinite
        start, chances = _likely(self.start + other.start, np.convolve(self.chances, other.chances))
        roundoffs = self.roundoffs + other.roundoffs + 2.0 * max(self.chances.size, other.chances.size) + 4.0
        return _Losses(start, chances, infinite, roundoffs, self.doubt + other.doubt)


def _likely(start: int, chances: FloatArray) -> tuple[int, FloatArray]:
    """Leave out what is hardly possible at either end; one loss stays, even if an infinite one is nearly certain."""
    low = min(int(np.searchsorted(np.cumsum(chances), _LEAST)), chances.size - 1)
    top = max(chances.size - int(np.searchsorted(np.cumsum(chances[::-1]), _LEAST)), low + 1)
    return start + low, chances[low:top]


def _losses(pair: _Unhidden, lattice: _Lattice, keep: int) -> _Losses:
    """Return the law of losses of a report that is the record's own with chance keep/2^64."""
    kappa, hide = keep / WHOLE, (WHOLE - keep) / WHOLE
    above = lattice.share > 0.0
    own = pair.chances * np.where(above, kappa + hide * lattice.share, 1.0)
    level = pair.ends + float((pair.chances * lattice.excess / (1.0 + lattice.excess))[above].sum())
    ratio = 1.0 + kappa * lattice.excess
    n = np.where(above, lattice.powers.searchsorted(ratio, "right") - 1, lattice.powers.searchsorted(ratio))
    power = lattice.powers[n]
    part = np.clip((1.0 - np.where(above, power / ratio, ratio / power)) * lattice.steep, 0.0, 1.0)
    places = np.where(above, n, -n)
    start = min(int(places.min()), 0)
    many = max(int(places.max()), 0) - start + 2
    masses = np.zeros(many)
    masses += np.bincount(places - start, own * (1.0 - part), many)
    masses += np.bincount(places - start + 1, own * part, many)
    masses[-start] += hide * level
    begin, chances = _likely(start, masses)
    return _Losses(begin, chances, kappa * pair.ends, pair.roundoffs + 2.0 * own.size + 32.0, pair.doubt)


def _together(laws: Sequence[tuple[_Losses, int]]) -> _Losses | None:
    """Return the law of the sum of independent losses, each so many times; None where that would take long."""
    terms = list[_Losses]()
    for law, times in laws:
        power, left = law, times
        while left:
            if left & 1:
                terms.append(power)
            left >>= 1
            if left:
                if power.chances.size**2 > _MOST_PRODUCTS:
                    return None
                power = power.times(power)
    while len(terms) > 1:
        pairs = list(zip(terms[::2], terms[1::2], strict=False))
        if any(one.chances.size * two.chances.size > _MOST_PRODUCTS for one, two in pairs):
            return None
        terms = [one.times(two) for one, two in pairs] + terms[len(terms) & ~1 :]
    return terms[0]


@dataclass(frozen=True, eq=False)
class Rough:
    """All columns' losses together in doubles.

    Attributes
    ----------
    total : _Losses
        The law of their sum.
    ratios : Ratios
        The powers of rho.
    apart : float
        Bound on the part of a column's chances that is at neighbouring multiples of log(rho), in roundoffs, summed
        over columns.
    moved : float
        Bound on the probability that is anywhere else.
    """

    total: _Losses
    ratios: Ratios
    apart: float
    moved: float

    @classmethod
    def of(cls, columns: dict[tuple[StatedCells, int], int], ratios: Ratios) -> Rough | None:
        """Return the law for columns given by their dummies and K, each so many times; None where it is not served."""
        laws, moved, mass, steep = list[tuple[_Losses, int]](), 0.0, 1.0, 0.0
        for (cells, keep), times in columns.items():
            shape = shape_of(cells.side, ratios)
            pair, lattice = _unhidden(cells, shape), _lattice(shape)
            if lattice is None:
                return None
            law = _losses(pair, lattice, keep)
            laws.append((law, times))
            moved += times * (pair.moved + 2.0 * _MOVED)
            mass *= max(1.0, float(law.chances.sum()) + law.infinite) ** times
            steep = lattice.steep
        together = _together(laws)
        questions = sum(columns.values())
        if together is None or mass > _MOST_MASS:
            return None
        return cls(together, ratios, 32.0 * (3.0 * questions + 1.0) * steep, 2.0 * mass * moved)

    def delta(self, factor: float) -> Interval:
        """Return an interval that holds the delta of one report to each column by whole numbers, at e^epsilon = factor.

        Parameters
        ----------
        factor : float
            The nearest double, from 1 to e^40.
        """
        law = self.total
        low, _ = self.ratios.up_to(max(law.start + law.chances.size + 1, 0))
        n = np.arange(law.start, law.start + law.chances.size + 1)
        first = max(-law.start, 0)
        listed = np.array([power / _ONE for power in low[max(law.start, 0) : law.start + n.size]])
        gains = np.zeros(n.size)
        gains[first : first + listed.size] = np.maximum(1.0 - factor / listed, 0.0)
        gains[first + listed.size :] = 1.0
        middle, beyond = (law.infinite + float(law.chances @ each) for each in (gains[:-1], gains[1:]))
        apart = self.apart * EPS
        relative = (law.roundoffs + law.chances.size + 16.0) * EPS + law.doubt
        if apart > _MOST_APART or relative > _MOST_APART:
            return Interval(0.0, math.inf)
        width = 2.0 * (relative * middle + apart * beyond + 4.0 * apart * apart + self.moved)
        return Interval(max(middle - width, 0.0), middle + width)
