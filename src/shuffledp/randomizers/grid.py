"""Numbers of a public range put on a grid: checked, scaled to [0, 1], and rounded at random without bias."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import VALUE, BadEntry, InvalidInput
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness, Words

ROUNDING_VARIANCE = 0.25
"""The most that `round_at_random` adds to a variance, in squared steps."""


def unit_fractions(records: ArrayLike, low: float, high: float) -> FloatArray:
    """Return (x - low)/(high - low) of each value, in [0, 1], exactly 0 and 1 at the ends.

    Parameters
    ----------
    records : array_like of float, shape (n,)
        Values in [low, high].
    low, high : float
        The range.

    Raises
    ------
    InvalidInput
        If a value is outside the range or NaN; the first such row is named, counting from 1.
    """
    try:
        values = np.asarray(records, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"records must be numbers from {low} to {high}") from None
    if values.ndim != 1:
        raise InvalidInput(f"records must be one-dimensional; got shape {values.shape}")
    inside = (values >= low) & (values <= high)
    if not inside.all():
        row = int(np.argmin(inside))
        raise BadEntry(
            f"value in row {row + 1} is {VALUE}, outside the range [{low}, {high}]; widen the range, or clip",
            values[row],
        )
    fractions = values - low
    fractions /= high - low
    return np.minimum(fractions, 1.0, out=fractions)


def round_at_random(positions: FloatArray, random: Randomness) -> NDArray[np.int64]:
    """Round each position to one of the two whole numbers around it, so that its mean is the position.

    Parameters
    ----------
    positions : ndarray, shape (n,)
        At least 0, below 2^52.
    random : Randomness
        Source of the bits.

    Returns
    -------
    ndarray of int64, shape (n,)
        floor(p), or one more with probability floor(2^64 (p - floor(p)))/2^64; p itself where it is whole.
    """
    whole = np.floor(positions)
    up = random.bernoulli(((positions - whole) * 2.0**64).astype(np.uint64), positions.size)
    return whole.astype(np.int64) + up


def uniform_below_each(bounds: Words, random: Randomness) -> Words:
    """Independent integers, entry i exactly uniform on [0, bounds[i]).

    Parameters
    ----------
    bounds : ndarray of uint64, shape (n,)
        From 1 to 2^63.
    random : Randomness
        Source of the words; one that would bias the remainder is drawn again.
    """
    words = random.words(bounds.size)
    highest = ~((~bounds + np.uint64(1)) % bounds)  # 2^64 - 1 less 2^64 modulo the bound
    redraw = np.flatnonzero(words > highest)
    while redraw.size:
        words[redraw] = random.words(redraw.size)
        redraw = redraw[words[redraw] > highest[redraw]]
    return words % bounds
