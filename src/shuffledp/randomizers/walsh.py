"""The Walsh-Hadamard transform: all sums of the values with the signs of a Hadamard matrix's rows, in one pass."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Number = TypeVar("_Number", np.int64, np.float64)


def walsh_hadamard(values: NDArray[_Number]) -> NDArray[_Number]:
    """Return the Walsh-Hadamard transform F of an array, in natural order.

    F[x] = sum_z (-1)^(number of ones in x AND z) values[z].

    Parameters
    ----------
    values : ndarray of int64 or float64, shape (2^m,)
        Integers are transformed exactly as long as the sum of their magnitudes stays below 2^63.

    Returns
    -------
    ndarray, same shape and type
        The transform F, a new array.

    Raises
    ------
    ValueError
        If the length of `values` is no power of two.

    Examples
    --------
    >>> walsh_hadamard(np.array([1, 0, 2, 0])).tolist()
    [3, 3, -1, -1]
    """
    size = values.size
    if values.ndim != 1 or size == 0 or size & (size - 1):
        raise ValueError(f"a Walsh-Hadamard transform needs a power of two of values; got shape {values.shape}")
    out = values.copy()
    half = 1
    while half < size:
        pairs = out.reshape(-1, 2, half)
        upper = pairs[:, 0] - pairs[:, 1]
        pairs[:, 0] += pairs[:, 1]
        pairs[:, 1] = upper
        half *= 2
    return out
