"""How mixture families are drawn: the blanket, or the record's own part, by one comparison of integers.

A report of R(x) = gamma omega + (1 - gamma) omega(. | A_x) is a draw of omega, which with probability 1 - gamma is
made to lie in A_x. What is drawn has blanket mass g >= gamma, rounded to the private side, so it is the stated law
at some budget of at most epsilon0 (docs/theorems/randomizers.md, "As drawn").
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness, Words
from shuffledp.numerics.rounded import expm1_rounded
from shuffledp.randomizers.base import SupportLaw
from shuffledp.randomizers.checks import MAX_BUDGET

CHUNK = 1 << 14
"""Rows at a time: temporaries stay in cache, and small enough for the allocator to use their memory again."""
MARGIN = 2.0**-46
"""Relative; far above the 2^-50 by which exp or expm1, rounded correctly, and a handful of operations err."""

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
    """1 - gamma and gamma, each to a few ulps of itself, and the same doubles everywhere.

    e^epsilon0 - 1 is rounded correctly, and so is each operation below, in the order in which they stand: thresholds
    made of them are stated in tasks, and a seed repeats what is drawn by them (docs/theorems/randomizers.md).

    Parameters
    ----------
    epsilon0 : ndarray
        Checked local budgets, nats; above 700 as 700.
    share : ndarray or float
        f = omega(A_x) in (0, 1), of every record; gamma = 1/(e^epsilon0 f + 1 - f) = 1/(1 + f (e^epsilon0 - 1)).
    """
    odds = expm1_rounded(np.minimum(epsilon0, MAX_BUDGET)) * share
    blanket = 1.0 / (1.0 + odds)
    return odds * blanket, blanket


def keep_thresholds(keep: FloatArray, blanket: FloatArray) -> Words:
    """Integers K, at most 2^64 keep whatever the rounding errors: the record's own part has chance K / 2^64.

    From the smaller of blanket (up) and keep (down), with a relative margin of 2^-46, so that the blanket mass g =
    1 - K/2^64 is at least gamma. As K is at most 2^64 - 1, g is at least 2^-64 even where gamma is smaller. At epsilon0
    = 0 K is 0. The whole numbers are the same everywhere.

    Parameters
    ----------
    keep, blanket : ndarray
        From `keep_masses`.
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
