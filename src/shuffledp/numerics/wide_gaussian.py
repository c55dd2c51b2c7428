"""Discrete normal noise of large scale, from one table: a weighted sum of draws of one fixed, narrow law.

If X and Y are discrete normal of scales sB and B on the whole numbers, X + aY has probabilities proportional to
exp(-k^2/(2 B^2 (s^2 + a^2))) times the sum of a normal curve of scale B s/sqrt(s^2 + a^2) over a shifted lattice of
step 1. Where that scale is at least 3, Poisson summation makes the sum constant up to a factor within 1e-76 of 1
(Micciancio and Peikert 2013, Theorem 3.3, with the error written out). So a_1 = 1, a_2, a_3, ... give any large scale
B sqrt(a_1^2 + a_2^2 + ...), each addend by one look into a table of the law of scale B = 256.

**The table is exact.** With F the distribution function, U uniform and v its first 64 bits, the draw is the least x
with U < F(x), and v decides it unless v = floor(2^64 F(x)) for some x. The first 16 bits of v decide 97 draws in 100.
The about 2^-52 of all draws that v leaves open are decided by as many further bits as it takes.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.discrete_noise import LARGEST_SCALE
from shuffledp.numerics.lazy_uniform import LazyUniform, exp_bounds
from shuffledp.numerics.randomness import Randomness, Words

BASE = 256
"""Scale of the law in the table."""
SMALLEST_WIDE = 2.0**15
"""Scales that whole numbers a_2, a_3 can make lie too far apart below."""
WIDENING = 1e-3
"""A scale is exceeded by less than this, relatively."""

_REACH = (BASE * BASE - 9) // 9
"""Largest (a/s)^2: 3^2 (s^2 + a^2) <= B^2 s^2."""
_GUARD = 64  # bits beyond those asked for, which absorb all roundings
_OPEN = np.int16(-(2**15))
_CHUNK = 1 << 15  # draws at a time: temporaries stay in cache
_CANDIDATES = 64


class Cumulative(NamedTuple):
    """Bounds on a distribution function: lower[i] <= 2^bits F(first + i) < upper[i].

    Parameters
    ----------
    first : int
        Least number listed.
    lower, upper : list of int
        Non-decreasing.
    """

    first: int
    lower: list[int]
    upper: list[int]


@lru_cache(maxsize=8)
def cumulative(bits: int) -> Cumulative:
    """Enclose the distribution function of the discrete normal law of scale `BASE`, to so many bits.

    Parameters
    ----------
    bits : int
        At least 1.

    Returns
    -------
    Cumulative
        From the first number whose chance is above 2^-(bits + 64) to its negative.
    """
    work = bits + _GUARD
    down, up = _weights(work)
    # the weights that are not listed: a geometric series, as their ratio is below 1 - 1/BASE from BASE + 1 on
    tail = BASE * up[-1]
    least = 2 * sum(down) - down[0]
    most = 2 * (sum(up) + tail) - up[0]
    lower: list[int] = []
    upper: list[int] = []
    below, above = 0, tail
    for x in range(1 - len(down), len(down)):
        below, above = below + down[abs(x)], above + up[abs(x)]
        lower.append((below << bits) // most)
        upper.append(min(-(-(above << bits) // least), 1 << bits))
    return Cumulative(1 - len(down), lower, upper)


def _weights(work: int) -> tuple[list[int], list[int]]:
    """Whole numbers around 2^work exp(-x^2/(2 BASE^2)), x = 0, 1, ..., up to where the lower ones vanish."""
    one = 1 << work
    low, high = exp_bounds(Fraction(1, 2 * BASE * BASE), work)
    down, up = [one], [one]
    ratio = [low, high]  # exp(-(2 x + 1)/(2 BASE^2)) at x = 0
    factor = [low * low >> work, -(-high * high >> work)]
    while down[-1]:
        down.append(down[-1] * ratio[0] >> work)
        up.append(-(-up[-1] * ratio[1] >> work))
        ratio = [ratio[0] * factor[0] >> work, -(-ratio[1] * factor[1] >> work)]
    return down, up


class _Table(NamedTuple):
    """What the first bits of a uniform number decide.

    Parameters
    ----------
    first : int
        The number that stands at place 0 of ``ends``.
    ends : ndarray of uint64
        floor(2^64 F(x)), x from ``first`` on.
    guide : ndarray of int16, shape (2^16,)
        The number drawn, by the first 16 bits; `_OPEN` where they leave it open.
    """

    first: int
    ends: Words
    guide: NDArray[np.int16]


@lru_cache(maxsize=1)
def _table() -> _Table:
    first, lower, upper = cumulative(64 + _GUARD)
    ends = [low >> _GUARD for low in lower]
    if ends != [(high - 1) >> _GUARD for high in upper]:  # pragma: no cover
        raise AssertionError("64 guard bits do not settle the table")
    words = np.array(ends, dtype=np.uint64)
    starts = np.arange(2**16, dtype=np.uint64) << np.uint64(48)
    guide = (first + np.searchsorted(words, starts)).astype(np.int16)
    guide[words >> np.uint64(48)] = _OPEN
    return _Table(first, words, guide)


def _base(n: int, random: Randomness) -> NDArray[np.int16]:
    """Draw from the law of scale `BASE`."""
    first, ends, guide = _table()
    leading = random.words(-(-n // 4)).view(np.uint16)[:n]
    drawn = guide[leading]
    unsettled = np.flatnonzero(drawn == _OPEN)
    words = (leading[unsettled].astype(np.uint64) << np.uint64(48)) | (random.words(unsettled.size) >> np.uint64(16))
    places = np.searchsorted(ends, words)
    drawn[unsettled] = first + places
    for at in np.flatnonzero(ends[places] == words):
        drawn[unsettled[at]] = _settled(LazyUniform(int(words[at]), 64, lambda: int(random.words(1)[0])))
    return drawn


def _settled(uniform: LazyUniform) -> int:
    """Return the least x with U < F(x), drawing bits until it is certain."""
    while True:
        uniform.extend()
        first, lower, upper = cumulative(uniform.bits)
        place = bisect_left(lower, uniform.value + 1)  # the least with value + 1 <= lower: U < F there
        if 0 < place < len(lower) and uniform.value >= upper[place - 1]:
            return first + place


@lru_cache(maxsize=4096)
def layers(scale: float) -> tuple[int, ...]:
    """Factors a_1 = 1, a_2, ... of the least found scale BASE sqrt(a_1^2 + a_2^2 + ...) that is at least ``scale``.

    Parameters
    ----------
    scale : float
        From `SMALLEST_WIDE` to 2^44.

    Raises
    ------
    InvalidInput
        If the scale is out of range.

    Examples
    --------
    >>> layers(1e6)
    (1, 46, 3906)
    """
    if not SMALLEST_WIDE <= scale <= LARGEST_SCALE:
        raise InvalidInput(
            f"the scale of wide noise must lie in [{SMALLEST_WIDE:g}, {LARGEST_SCALE:g}]; got {shown(scale)}"
        )
    asked = math.ceil(Fraction(scale) ** 2 / BASE**2)
    chain, squares = [1], 1
    while True:  # inner layers as wide as can be, until two more are enough
        widest = math.isqrt(_REACH * squares)
        found = [
            (inner, outer)
            for inner in range(min(widest, math.isqrt(asked)), 0, -1)[:_CANDIDATES]
            for rest in (asked - squares - inner**2,)
            for outer in (math.isqrt(max(rest - 1, 0)) + 1,)
            if outer**2 <= _REACH * (squares + inner**2)
        ]
        if found:
            inner, outer = min(found, key=lambda pair: pair[0] ** 2 + pair[1] ** 2)
            return (*chain, inner, outer)
        chain.append(widest)
        squares += widest**2


def wide_gaussian(scale: float, n: int, random: Randomness) -> NDArray[np.int64]:
    """Discrete normal noise of at least this scale, less than one part in a thousand above it.

    Parameters
    ----------
    scale : float
        From `SMALLEST_WIDE` to 2^44.
    n : int
        How many draws, at least 0.
    random : Randomness
        Source of the bits.

    Returns
    -------
    ndarray of int64, shape (n,)
        Independent; every probability within a relative 1e-75 of the discrete normal law of scale
        BASE sqrt(a_1^2 + a_2^2 + ...), the factors being those of `layers`.

    Raises
    ------
    InvalidInput
        If the scale is out of range.
    """
    factors = layers(float(scale))
    out = np.empty(n, dtype=np.int64)
    for start in range(0, n, _CHUNK):
        part = out[start : start + _CHUNK]
        part[:] = _base(part.size, random)
        for factor in factors[1:]:
            part += np.multiply(_base(part.size, random), factor, dtype=np.int64)
    return out
