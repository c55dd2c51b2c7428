"""Fixed linear features in front of a network: what they were made from decides whether they are free.

Principal components of the private records depend on those records, and nobody counts what they tell. So a projection
is made either from nothing (`cosine_projection`), or from data that its maker declares public (`public_projection`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InvalidInput, shown
from shuffledp.learning.inputs import checked_features
from shuffledp.numerics.interval import FloatArray

Features = Callable[[NDArray[np.generic]], FloatArray]
"""A fixed map from rows, shape (n, inputs), to features, shape (n, outputs)."""
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class Projection:
    """Features (x - mean) @ matrix.

    Parameters
    ----------
    matrix : ndarray, shape (inputs, outputs)
        Directions, as columns.
    mean : ndarray, shape (inputs,)
        Subtracted first.
    origin : str
        What the projection was made from, for the record: it goes into every guarantee.
    """

    matrix: FloatArray
    mean: FloatArray
    origin: str

    def __call__(self, rows: NDArray[np.generic]) -> FloatArray:
        """Project rows, shape (n, inputs), a few thousand at a time.

        Raises
        ------
        InvalidInput
            If the rows have another number of columns.
        """
        if rows.ndim != 2 or rows.shape[1] != self.mean.size:
            raise InvalidInput(f"the projection takes rows of {self.mean.size} numbers; got shape {rows.shape}")
        out = np.empty((rows.shape[0], self.matrix.shape[1]))
        shift = self.mean @ self.matrix
        for start in range(0, rows.shape[0], _ROWS_AT_ONCE):
            part = rows[start : start + _ROWS_AT_ONCE].astype(np.float64)
            np.subtract(part @ self.matrix, shift, out=out[start : start + _ROWS_AT_ONCE])
        return out


def public_projection(rows: ArrayLike, components: int, *, public: bool, scale: float = 1.0) -> Projection:
    """Principal components of data that are public, or of people whom the guarantee does not cover.

    Parameters
    ----------
    rows : array_like, shape (n, inputs)
        The public data, finite.
    components : int
        How many directions to keep, from 1 to ``inputs``.
    public : bool
        Must be True: your statement that ``rows`` are not the private training data, or are public anyway.
    scale : float
        The features are multiplied by it; positive. 1/255 for bytes.

    Raises
    ------
    InvalidInput
        If the data are not declared public, not finite, or have fewer columns than components.
    """
    if public is not True:
        raise InvalidInput(
            "principal components of private records reveal them, and no budget here pays for that; fit them on other "
            "data and say public=True, or use cosine_projection, which needs no data"
        )
    data = checked_features(rows)
    inputs = data.shape[1]
    check_components(components, inputs)
    mean = data.mean(axis=0, dtype=np.float64)
    scatter = np.zeros((inputs, inputs))
    for start in range(0, data.shape[0], _ROWS_AT_ONCE):
        part = data[start : start + _ROWS_AT_ONCE].astype(np.float64) - mean
        scatter += part.T @ part
    directions = np.linalg.eigh(scatter)[1][:, ::-1][:, :components]
    largest = np.abs(directions).argmax(axis=0)
    signs = np.sign(directions[largest, np.arange(components)])  # eigenvectors come with either sign
    origin = f"{components} principal components of {data.shape[0]} rows declared public"
    return Projection(np.ascontiguousarray(directions * signs * scale), mean, origin)


def cosine_projection(side: int, components: int, *, scale: float = 1.0) -> Projection:
    """Lowest spatial frequencies of square pictures (cosine transform): features made from no data at all.

    Parameters
    ----------
    side : int
        Pictures have side * side points, row by row.
    components : int
        How many of the lowest frequencies to keep, by i^2 + j^2, from 1 to side^2.
    scale : float
        The features are multiplied by it; positive. 1/255 for bytes.

    Raises
    ------
    InvalidInput
        If the numbers do not fit.

    Examples
    --------
    >>> cosine_projection(28, 60).matrix.shape
    (784, 60)
    """
    if isinstance(side, bool) or not isinstance(side, int) or side < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"side must be a positive whole number; got {shown(side)}")
    check_components(components, side * side)
    at = np.arange(side)
    waves = np.cos(math.pi / side * (at[:, None] + 0.5) * at) * math.sqrt(2.0 / side)
    waves[:, 0] *= math.sqrt(0.5)
    order = sorted((i * i + j * j, i, j) for i in range(side) for j in range(side))[:components]
    matrix = np.stack([np.outer(waves[:, i], waves[:, j]).ravel() for _, i, j in order], axis=1)
    origin = f"{components} lowest cosine frequencies, from no data"
    return Projection(matrix * scale, np.zeros(side * side), origin)


def check_components(components: int, most: int) -> None:
    """Raise InvalidInput unless ``components`` is a whole number from 1 to ``most``."""
    if isinstance(components, bool) or not isinstance(components, int | np.integer) or not 1 <= components <= most:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"`components` must be a whole number from 1 to {most}; got {shown(components)}")
