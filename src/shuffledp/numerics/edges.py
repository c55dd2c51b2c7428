"""Edges of bins of equal width: each the double nearest to the exact quotient, for ends as they are written."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from shuffledp.numerics.floats import two_product
from shuffledp.numerics.interval import FloatArray

_SLACK = 2.0**-98
"""Relative error of the sums below: fewer than 2^6 roundings of 2^-53 of terms of 2^-53."""
_LEAST, _MOST = 2.0**-900, 2.0**960
"""Between these nothing over- or underflows."""


def even_edges(low: float, high: float, count: int) -> FloatArray:
    """Return low + (high - low) i / count for i = 0..count, each correctly rounded.

    The ends are taken as the shortest decimals that are these doubles: whoever writes -0.3 means three tenths, and of
    the bins from -0.3 to 0.1 by 0.1 one begins at 0. So a value that is written like an edge is that edge.

    Parameters
    ----------
    low, high : float
        The ends, finite, low < high.
    count : int
        How many bins, at least 1.

    Returns
    -------
    ndarray, shape (count + 1,)
        Ascending, from low to high.

    Examples
    --------
    >>> even_edges(-0.3, 0.1, 4).tolist()
    [-0.3, -0.2, -0.1, 0.0, 0.1]
    """
    start = Fraction(repr(float(low)))
    step = (Fraction(repr(float(high))) - start) / count
    places = np.arange(count + 1)
    if not (step >= Fraction(_LEAST) and max(abs(low), abs(high)) <= _MOST):
        return np.array([float(start + step * place) for place in places.tolist()])
    a, b = _pair(start), _pair(step)
    # start + i step = s + low, both sums of two doubles; `low` misses what is below _SLACK of the largest term
    product, rest = two_product(places.astype(np.float64), b[0])
    s = a[0] + product
    back = s - a[0]
    small = ((a[0] - (s - back)) + (product - back)) + rest + (a[1] + places * b[1])
    slack = _SLACK * (abs(a[0]) + product)
    edges, other = s + (small - slack), s + (small + slack)
    for place in np.flatnonzero(edges != other).tolist():
        edges[place] = float(start + step * place)
    return edges


def _pair(value: Fraction) -> tuple[float, float]:
    """Return the nearest double, and the one nearest to what it misses."""
    high = float(value)
    return high, float(value - Fraction(high))
