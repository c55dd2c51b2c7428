"""Few features of handwriting, made from no data: the directions in which pictures of random strokes vary most.

Noise has to cover every number of a message, so fewer numbers mean less noise in all. Principal components of private
pictures are not free, and those of public ones need public pictures. But what scattering features of handwriting vary
in is mostly what those of any strokes vary in: 400 components of random strokes hold 98 % of the variance of digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput, shown
from shuffledp.learning.pca import Projection, check_components, public_projection
from shuffledp.learning.scattering import Scattering

PICTURES = 4000
"""Random pictures whose principal components are taken."""
_MOST_STROKES = 3
_POINTS = 48
"""Points along a stroke; they are at most a point of the picture or two apart."""
_KEY = 2014
"""Of a fixed stream of numbers: everybody's features are the same."""


@dataclass(frozen=True)
class StrokeScattering:
    """Scattering features, projected on the principal components of those of random strokes.

    Each component is divided by a power of its standard deviation among the strokes, and each picture is then brought
    to Euclidean length 1. A map of each record alone, made from no data; the first use in a process draws the strokes,
    which takes some seconds.

    Parameters
    ----------
    side : int
        Pictures have side * side points, row by row.
    components : int
        How many numbers a picture gets, from 1 to what `Scattering` gives.
    whitening : float
        The power, from 0 (components as they are) to 1 (all as wide as each other).
    cell : int
        As for `Scattering`.

    Raises
    ------
    InvalidInput
        If the numbers do not fit.

    Examples
    --------
    >>> features = StrokeScattering(8, components=20, cell=4)
    >>> features(np.ones((2, 64), dtype=np.uint8)).shape
    (2, 20)
    """

    side: int
    components: int = 128
    whitening: float = 0.6
    cell: int = 7

    def __post_init__(self) -> None:
        most = self.scattering.channels * (self.side // self.cell) ** 2
        check_components(self.components, most)
        if not (isinstance(self.whitening, int | float) and 0.0 <= self.whitening <= 1.0):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"`whitening` must be a number from 0 to 1; got {shown(self.whitening)}")

    @property
    def origin(self) -> str:
        """What they were made from, for the guarantee."""
        return f"{self.components} principal components of scattering features of random strokes, from no data"

    @cached_property
    def scattering(self) -> Scattering:
        """The scattering that is projected."""
        return Scattering(self.side, cell=self.cell)

    def __call__(self, rows: NDArray[np.generic]) -> NDArray[Any]:
        """Features of pictures, shape (n, side * side), as shape (n, components).

        Raises
        ------
        InvalidInput
            If the rows have another number of points.
        """
        found = _projection(self)(self.scattering(rows))
        norms = np.linalg.norm(found, axis=1, keepdims=True)
        return (found / np.where(norms > 0.0, norms, 1.0)).astype(np.float32)


@lru_cache(maxsize=4)
def _projection(features: StrokeScattering) -> Projection:
    drawn = features.scattering(random_strokes(features.side, PICTURES))
    found = public_projection(drawn, features.components, public=True)
    spread = found(drawn).std(axis=0)
    widths = np.maximum(spread, 1e-9 * spread.max()) ** features.whitening
    return Projection(found.matrix / widths, found.mean, features.origin)


def random_strokes(side: int, count: int) -> NDArray[np.uint8]:
    """Draw pictures of one to three random curves, placed and sized as MNIST places and sizes its digits.

    Parameters
    ----------
    side : int
        Pictures have side * side points.
    count : int
        How many pictures; the same call draws the same ones.

    Returns
    -------
    ndarray of uint8, shape (count, side * side)
        Row by row.
    """
    stream = np.random.Generator(np.random.Philox(key=_KEY))
    corners, shown = stream.random((count, _MOST_STROKES, 4, 2)), stream.random((count, _MOST_STROKES))
    thick = side / 28.0 * (1.1 + 0.8 * stream.random(count))
    # Bezier curves of degree 3, each stroke after the first with its chance
    t = np.linspace(0.0, 1.0, _POINTS)[:, None]
    weights = np.hstack(((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3))
    at = (weights @ corners).reshape(count, -1, 2)
    drawn = np.repeat(shown < np.array([1.0, 0.6, 0.3]), _POINTS, axis=1)[:, :, None]
    low, high = (end(np.where(drawn, at, other), axis=1, keepdims=True) for end, other in ((np.min, 2), (np.max, -1)))
    at = (at - low) * (side * 18.0 / 28.0 / (high - low).max(axis=2, keepdims=True))
    at += (side - 1) / 2.0 - (at * drawn).sum(axis=1, keepdims=True) / drawn.sum(axis=1, keepdims=True)
    return _inked(np.where(drawn, at, np.inf).astype(np.float32), thick.astype(np.float32), side)


def _inked(at: NDArray[np.float32], thick: NDArray[np.float32], side: int) -> NDArray[np.uint8]:
    """Ink every point of the pictures by its distance from the nearest point of a stroke."""
    grid, out = np.arange(side, dtype=np.float32), np.empty((at.shape[0], side * side), np.uint8)
    for row, (points, width) in enumerate(zip(at, thick, strict=True)):
        kept = points[np.isfinite(points[:, 0])]
        across, down = ((grid - kept[:, axis, None]) ** 2 for axis in (0, 1))
        squares = (down[:, :, None] + across[:, None, :]).min(axis=0)
        out[row] = (255.0 / (1.0 + np.exp(3.0 * (np.sqrt(squares) - width)))).ravel()
    return out
