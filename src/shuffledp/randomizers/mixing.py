"""How mixture families are drawn: the blanket, or the record's own part, by one comparison of integers.

A report of R(x) = gamma omega + (1 - gamma) omega(. | A_x) is a draw of omega, which with probability 1 - gamma is
made to lie in A_x. What is drawn has blanket mass g >= gamma, rounded to the private side, so it is the stated law
at some budget of at most epsilon0 (docs/theorems/randomizers.md, "As drawn").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness, Words
from shuffledp.randomizers.base import SupportLaw
from shuffledp.randomizers.checks import MAX_BUDGET

CHUNK = 1 << 14
"""Rows at a time: temporaries stay in cache, and small enough for the allocator to use their memory again."""
BITS = 36
"""Significant bits of a threshold. Doubles decide all but about one in 600, and exact arithmetic those."""
_DOUBT = 2.0**-46
"""Relative; far above the few ulps (2^-53 each) by which exp, expm1 and a handful of operations can err."""

_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)


class SampledLaw(NamedTuple):
    """The law that is drawn, element by element; the two masses add to 1 up to one rounding.

    Parameters
    ----------
    keep : ndarray
        Probability of a report from the record's own part: an integer over 2^64.
    blanket : ndarray
        Probability of a draw from omega, which does not depend on the record.
    """

    keep: FloatArray
    blanket: FloatArray


def keep_masses(epsilon0: FloatArray, share: FloatArray | float) -> tuple[FloatArray, FloatArray]:
    """1 - gamma and gamma, each to a few ulps of itself.

    Parameters
    ----------
    epsilon0 : ndarray
        Checked local budgets, nats; above 700 as 700.
    share : ndarray or float
        f = omega(A_x) in (0, 1), of every record; gamma = 1/(e^epsilon0 f + 1 - f) = 1/(1 + f (e^epsilon0 - 1)).
    """
    odds = np.expm1(np.minimum(epsilon0, MAX_BUDGET)) * share
    blanket = 1.0 / (1.0 + odds)
    return odds * blanket, blanket


def keep_thresholds(epsilon0: FloatArray, own: ArrayLike, every: ArrayLike) -> Words:
    """Integers K: the record's own part is drawn with chance K / 2^64, never above 1 - gamma.

    The smaller of gamma, rounded up, and 1 - gamma, rounded down, has `BITS` significant bits over 2^64, and the other
    is its complement. So the blanket mass g = 1 - K/2^64 is at least gamma, and K is the same whole number on every
    machine: where doubles do not tell which number of `BITS` bits is next, exact arithmetic does. As K is at most
    2^64 - 1, g is at least 2^-64 even where gamma is smaller. At epsilon0 = 0 K is 0.

    Parameters
    ----------
    epsilon0 : ndarray, shape () or (n,)
        Checked local budgets, nats; above 700 as 700.
    own, every : int or array_like of int, shape () or (n,)
        f = omega(A_x) = own / every in (0, 1), of every record; gamma = 1/(1 + f (e^epsilon0 - 1)).
    """
    budgets = np.minimum(epsilon0, MAX_BUDGET)
    keep, blanket = keep_masses(budgets, np.asarray(own) / np.asarray(every))
    mostly, less = keep > blanket, np.minimum(keep, blanket)
    drop = np.maximum(np.frexp(less)[1] + (64 - BITS), 0)
    units = np.ldexp(less, 64 - drop)  # exact, and below 2^BITS
    whole = np.floor(units)
    over = units - whole
    doubt = units * _DOUBT
    unsure = (over < doubt) | (over > 1.0 - doubt) | (np.abs(keep - blanket) < _DOUBT)
    minus = mostly.astype(np.uint64)
    rounded = (whole + mostly).astype(np.uint64) << drop.astype(np.uint64)
    count = np.asarray((rounded - minus) ^ (minus * np.uint64(2**64 - 1)))  # the complement where gamma is the smaller
    settle(count, unsure, exact_threshold, budgets, own, every)
    return count


def settle(
    found: NDArray[Any], unsure: NDArray[np.bool_], exact: Callable[[float, int, int], int], *parts: ArrayLike
) -> None:
    """Replace the whole numbers that doubles leave open by exact ones, each different case once.

    Parameters
    ----------
    found : ndarray, shape () or (n,)
        Written to.
    unsure : ndarray of bool, shape of found
        Which are open.
    exact : callable
        Tells the number of one case: a budget and two whole numbers.
    parts : array_like
        The budgets and whole numbers of each place.
    """
    if not unsure.any():
        return
    open_ = [part[unsure].astype(np.float64) for part in np.broadcast_arrays(*parts)]
    cases, places = np.unique(np.stack(open_), axis=1, return_inverse=True)
    whole = [exact(budget, int(first), int(second)) for budget, first, second in cases.T.tolist()]
    found[unsure] = np.array(whole, dtype=found.dtype)[places.ravel()]


@lru_cache(maxsize=1 << 16)
def exact_threshold(epsilon0: float, own: int, every: int) -> int:
    """Return `keep_thresholds` of one budget, from exact arithmetic.

    Parameters
    ----------
    epsilon0 : float
        Local budget, nats, from 0 to 700.
    own, every : int
        f = own / every in (0, 1).
    """
    return decided(epsilon0, lambda power: _rounded(1 / (1 + Fraction(own, every) * (power - 1))))


def decided(exponent: float, whole: Callable[[Fraction], int]) -> int:
    """Return whole(e^exponent) of a monotone function, by bounds on the power that tighten until both ends agree.

    Parameters
    ----------
    exponent : float
        From 0 to 700. Of any but 0 the power is no quotient, so the ends agree at last.
    whole : callable
        Monotone, constant between its jumps, which are at quotients.
    """
    if exponent == 0.0:
        return whole(Fraction(1))
    digits = 60
    while True:
        power = Fraction(Context(prec=digits).exp(Decimal(exponent)))  # correctly rounded, of an exact number
        doubt = power / 10 ** (digits - 1)
        low, high = whole(max(power - doubt, Fraction(1))), whole(power + doubt)
        if low == high:
            return low
        digits *= 2


def _rounded(blanket: Fraction) -> int:
    """Return K for a blanket mass gamma: the smaller part on `BITS` significant bits, to the private side."""
    mostly = 2 * blanket < 1
    units = math.floor((blanket if mostly else 1 - blanket) * 2**64)
    drop = max(units.bit_length() - BITS, 0)
    whole = ((units >> drop) + mostly) << drop
    return 2**64 - whole if mostly else whole


def complement(count: Words) -> Words:
    """2^64 - count for count >= 1, without leaving 64 bits."""
    return ~count + np.uint64(1)


def sampled_law(thresholds: Words) -> SampledLaw:
    """Keep and blanket probabilities of given thresholds, each integer over 2^64, to 2^-52 of itself."""
    # the complement less 1 fits into 64 bits whatever the threshold
    return SampledLaw(thresholds.astype(np.float64) * 2.0**-64, ((~thresholds).astype(np.float64) + 1.0) * 2.0**-64)


def support_of(law: SampledLaw, share: FloatArray | float, overlap: FloatArray | float) -> SupportLaw:
    """Chances of support of a mixture family.

    Parameters
    ----------
    law : SampledLaw
        As drawn.
    share : ndarray or float
        f = omega(A_x): chance that a draw of the blanket supports a given category.
    overlap : ndarray or float
        omega(A_x' | A_x): chance that a report from x's own part supports another category x'.
    """
    hidden = law.blanket * share
    return SupportLaw(law.keep + hidden, law.keep * overlap + hidden)


def draw(bits: int, thresholds: Words | int, n: int, random: Randomness) -> tuple[Words, NDArray[np.bool_]]:
    """Uniform words of so many bits, and independent of them, True with probability exactly thresholds / 2^64.

    Up to 32 bits one 64-bit word serves both: its upper half is compared with the threshold's upper half, and a
    tie is decided by 32 fresh bits against the lower half.

    Parameters
    ----------
    bits : int
        From 1 to 64.
    thresholds : int, or ndarray of uint64, shape (n,)
        In [0, 2^64).
    n : int
        How many.
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
    """Exactly uniform integers on [0, bound) from uniform 32-bit ones (Lemire 2019: multiply, reject, shift).

    Parameters
    ----------
    bound : int
        From 1 to 2^32.
    halves : ndarray of uint64, shape (n,)
        Uniform on [0, 2^32).
    random : Randomness
        For the rejected ones.
    """
    scaled = halves * np.uint64(bound)
    values = (scaled >> _HALF).astype(np.int64)
    excess = 2**32 % bound
    if excess:
        redraw = np.flatnonzero((scaled & _LOW) < np.uint64(excess))
        values[redraw] = random.integers(bound, redraw.size)
    return values
