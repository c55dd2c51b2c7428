"""A public grid that budgets are rounded down to, so that any number of different ones become a few thousand.

The grid cuts each octave [2^k, 2^(k+1)) from 2^-10 to 2^10 into `steps` equal steps, a power of two; below 2^-10 stands
0 alone. A budget x of the octave k becomes floor(x 2^-k steps) 2^k / steps. All operations but floor are products with
powers of two, so they are exact in any arithmetic of doubles: every engine rounds alike, to the bit, and never up.
"""

from __future__ import annotations

import numpy as np

from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.interval import FloatArray

LOWEST, HIGHEST = -10, 9
"""Exponents of the lowest and of the highest octave; the largest budget is 700."""
_OCTAVES = HIGHEST - LOWEST + 1
_MOST = 1 << 20


def checked_levels(levels: object) -> int:
    """Return the number of levels asked for.

    Raises
    ------
    InvalidInput
        Unless it is a whole number from 21 to 2^20.
    """
    if isinstance(levels, bool) or not isinstance(levels, int) or not _OCTAVES < levels <= _MOST:
        raise InvalidInput(
            f"`levels` of budgets must be a whole number from {_OCTAVES + 1} to {_MOST:,}; got {shown(levels)}"
        )
    return levels


def steps_of(levels: int) -> int:
    """Return into how many steps each octave is cut: the largest power of two with which the grid has `levels` values.

    Parameters
    ----------
    levels : int
        Most values of the grid, at least 21.

    Examples
    --------
    >>> steps_of(4096)
    128
    """
    return 1 << (((levels - 1) // _OCTAVES).bit_length() - 1)


def rounded_down(epsilons: FloatArray, levels: int) -> FloatArray:
    """Round budgets down to the grid.

    Parameters
    ----------
    epsilons : ndarray, shape (n,)
        Budgets, nats, in [0, 700].
    levels : int
        Most values of the grid, at least 21.

    Returns
    -------
    ndarray, shape (n,)
        Each at most the budget, and from 2^-10 on at least 1 - 1/steps of it.

    Examples
    --------
    >>> rounded_down(np.array([0.0, 0.0001, 0.7, 1.0, 700.0]), 4096).tolist()
    [0.0, 0.0, 0.69921875, 1.0, 700.0]
    """
    octaves = np.frexp(epsilons)[1] - 1  # x = m 2^e with m in [1/2, 1)
    unit = np.ldexp(1.0 / steps_of(levels), np.maximum(octaves, LOWEST))
    return np.where(octaves < LOWEST, 0.0, np.floor(epsilons / unit) * unit)
