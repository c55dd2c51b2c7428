"""Features of pictures that are made from no data, so that they cost no privacy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray

_CHUNK = 2048
F = TypeVar("F", np.float32, np.float64)


def by_chunks(
    rows: NDArray[np.generic], side: int, out: NDArray[F], features: Callable[[NDArray[F]], NDArray[F]], chunk: int
) -> NDArray[F]:
    """Write the features of square pictures into ``out``, ``chunk`` pictures at a time, each computed as out's type.

    Raises
    ------
    InvalidInput
        If the rows have another number of points.
    """
    if rows.ndim != 2 or rows.shape[1] != side * side:
        raise InvalidInput(f"these features take {side * side} points a picture; got shape {rows.shape}")
    for start in range(0, rows.shape[0], chunk):
        part = rows[start : start + chunk].astype(out.dtype).reshape(-1, side, side)
        out[start : start + chunk] = features(part)
    return out


@dataclass(frozen=True)
class OrientedGradients:
    """How much of which edge direction each cell of a square picture has (Dalal and Triggs 2005), normalised.

    Differences of neighbouring points give a direction, shared between the two nearest of ``directions`` bins and
    summed, with its length, over cells; then square roots, and each picture is brought to Euclidean length ``length``.
    Under noise such features learn with fewer, larger steps than raw points do (Tramer and Boneh 2021).

    Parameters
    ----------
    side : int
        Pictures have side * side points, row by row.
    cell : int
        Points along a cell; must divide ``side``.
    directions : int
        Bins around the circle, at least 2.
    length : float
        Euclidean length of a picture's features; positive.

    Raises
    ------
    InvalidInput
        If the numbers do not fit.

    Examples
    --------
    >>> OrientedGradients(28)(np.zeros((2, 784), dtype=np.uint8)).shape
    (2, 392)
    """

    side: int
    cell: int = 4
    directions: int = 8
    length: float = 3.0

    def __post_init__(self) -> None:
        if self.side < 3 or self.cell < 1 or self.side % self.cell or self.directions < 2 or not self.length > 0.0:
            raise InvalidInput(
                f"oriented gradients need cells that divide a side of 3 or more, 2 directions or more, and a positive "
                f"length; got side {self.side}, cell {self.cell}, directions {self.directions}, length {self.length}"
            )

    @property
    def origin(self) -> str:
        """What they were made from, for the guarantee."""
        cells = self.side // self.cell
        return f"{cells * cells * self.directions} oriented gradients, from no data"

    def __call__(self, rows: NDArray[np.generic]) -> FloatArray:
        """Features of pictures, shape (n, side * side), as shape (n, cells^2 * directions).

        Raises
        ------
        InvalidInput
            If the rows have another number of points.
        """
        size = (self.side // self.cell) ** 2 * self.directions
        return by_chunks(rows, self.side, np.empty((rows.shape[0], size)), self._one_chunk, _CHUNK)

    def _one_chunk(self, pictures: FloatArray) -> FloatArray:
        across, down = np.zeros_like(pictures), np.zeros_like(pictures)
        across[:, :, 1:-1] = pictures[:, :, 2:] - pictures[:, :, :-2]
        down[:, 1:-1] = pictures[:, 2:] - pictures[:, :-2]
        size = np.hypot(across, down)
        place = np.arctan2(down, across) * (self.directions / (2.0 * math.pi)) % self.directions
        low = np.floor(place)
        share = place - low
        first = low.astype(np.int64) % self.directions
        cells = self.side // self.cell
        found = np.empty((pictures.shape[0], cells, cells, self.directions))
        for bin_ in range(self.directions):
            before = (bin_ - 1) % self.directions
            part = size * np.where(first == bin_, 1.0 - share, np.where(first == before, share, 0.0))
            found[..., bin_] = part.reshape(-1, cells, self.cell, cells, self.cell).sum(axis=(2, 4))
        flat = np.sqrt(found.reshape(pictures.shape[0], -1))
        norms = np.sqrt(np.einsum("ij,ij->i", flat, flat))[:, None]
        return flat * np.where(norms > 0.0, self.length / np.maximum(norms, 1e-150), 0.0)
