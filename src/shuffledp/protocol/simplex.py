"""Post-processing on request: the nearest frequencies that could be."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray


def project_to_simplex(frequencies: ArrayLike) -> FloatArray:
    """Return the nearest vector of numbers of at least 0 that add to 1 (in the Euclidean distance).

    Costs no privacy. The result is nearer to the true frequencies than the estimate was, all together, but no longer
    unbiased: small categories come out too large on average, and the estimate's standard errors do not apply.

    Parameters
    ----------
    frequencies : array_like, shape (k,)
        An unbiased estimate; finite.

    Returns
    -------
    ndarray, shape (k,)
        max(frequencies - t, 0) for the t that makes them add to 1 (Held, Wolfe, Crowder 1974).

    Raises
    ------
    InvalidInput
        If they are no list of finite numbers.

    Examples
    --------
    >>> project_to_simplex([0.7, 0.5, -0.1]).round(6).tolist()
    [0.6, 0.4, 0.0]
    """
    values = np.asarray(frequencies, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise InvalidInput(f"frequencies must be a list of finite numbers; got shape {values.shape}")
    centred = values - values.max()  # no overflow, and no cancellation where all are large
    descending = np.sort(centred)[::-1]
    shifts = (np.cumsum(descending) - 1.0) / np.arange(1, values.size + 1)
    kept = int(np.flatnonzero(descending > shifts)[-1])  # the largest one is always kept
    out = np.maximum(centred - shifts[kept], 0.0)
    return out / out.sum()
