"""Whole multiples of log(rho), among which all losses of normal dummies lie: docs/theorems/normal.md, (C3).

Powers of rho and likelihood ratios as whole numbers, the same on every machine and on the survey page
(collection/page/normal.js).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

from shuffledp.errors import InvalidInput

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
        found = 1 << FINE
        for bit in f"{4 * self.middle + 2:b}":
            found = -(-found * found >> FINE)
            if bit == "1":
                found = -(-found * self.bend >> FINE)
        return found

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
        bend, one, found = self.bend, 1 << FINE, list[tuple[int, int]]()
        low, high = self.ratios.up_to(2 * self.middle + 1)
        for d in range(1 - 2 * self.middle, 2 * self.middle + 2):
            power, under = (high[d], low[d]) if d >= 0 else (-(-(one << FINE) // low[-d]), (one << FINE) // high[-d])
            ratio = -(-bend * power >> FINE)
            share = min(one, -(-(bend << FINE) // under))
            found.append((ratio, share) if ratio > one else ((one << FINE) // ratio, 0))
        return found


@lru_cache(maxsize=256)
def shape_of(side: tuple[int, ...], ratios: Ratios) -> Shape:
    """Return the shape of a side of weights; the last ones are remembered."""
    return Shape(side, ratios)
