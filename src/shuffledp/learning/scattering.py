"""Scattering features of pictures: moduli of fixed wavelets, made from no data (Bruna and Mallat 2013)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from shuffledp.errors import InvalidInput, shown
from shuffledp.learning.features import by_chunks
from shuffledp.numerics.interval import FloatArray

_CHUNK = 64


@dataclass(frozen=True)
class Scattering:
    """Local averages of a square picture and of the moduli of its wavelet transform, of orders 0, 1 and 2.

    Morlet wavelets of two scales (1 and 2 points) and ``angles`` directions; the modulus of each, and the coarser
    modulus of each finer one, are averaged over cells. In every picture by itself, each channel is then brought to mean
    0 and Euclidean length 1, and all together to length ``length``: a map of each record alone, made from no data.
    Linear models on such features learn well under noise (Tramer and Boneh 2021).

    Parameters
    ----------
    side : int
        Pictures have side * side points, row by row.
    cell : int
        Points along a cell; must divide ``side`` and be less: a single cell of mean 0 tells nothing.
    angles : int
        Directions of the wavelets, at least 2.
    length : float
        Euclidean length of a picture's features; positive.

    Raises
    ------
    InvalidInput
        If the numbers do not fit.

    Examples
    --------
    >>> Scattering(28, cell=7, angles=4)(np.zeros((2, 784), dtype=np.uint8)).shape
    (2, 400)
    """

    side: int
    cell: int = 7
    angles: int = 8
    length: float = 1.0

    def __post_init__(self) -> None:
        for name, given in (("side", self.side), ("cell", self.cell), ("angles", self.angles)):
            if isinstance(given, bool) or not isinstance(given, int | np.integer):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InvalidInput(f"`{name}` must be a whole number; got {shown(given)}")
        fits = 1 <= self.cell < self.side and self.side % self.cell == 0
        if self.side < 8 or not fits or self.angles < 2 or not self.length > 0.0:
            raise InvalidInput(
                "scattering features need cells that divide a side of 8 or more in several, 2 angles or more, and a "
                f"positive length; got side {self.side}, cell {self.cell}, angles {self.angles}, length {self.length}"
            )

    @property
    def channels(self) -> int:
        """Averages of each cell: the picture, two scales of each angle, and each pair of angles."""
        return 1 + 2 * self.angles + self.angles**2

    @property
    def origin(self) -> str:
        """What they were made from, for the guarantee."""
        return f"{self.channels * (self.side // self.cell) ** 2} scattering features, from no data"

    def __call__(self, rows: NDArray[np.generic]) -> NDArray[Any]:
        """Features of pictures, shape (n, side * side), as shape (n, channels * cells^2).

        Raises
        ------
        InvalidInput
            If the rows have another number of points.
        """
        size = self.channels * (self.side // self.cell) ** 2
        return by_chunks(rows, self.side, np.empty((rows.shape[0], size), np.float32), self._one_chunk, _CHUNK)

    def _one_chunk(self, pictures: NDArray[np.float32]) -> NDArray[np.float32]:
        fine, coarse = self._wavelets
        seen = np.asarray(fft.fft2(pictures))[:, None]
        first = np.abs(np.asarray(fft.ifft2(seen * np.concatenate((fine, coarse)))))
        again = np.asarray(fft.fft2(first[:, : self.angles]))[:, :, None]
        second = np.abs(np.asarray(fft.ifft2(again * coarse))).reshape(len(pictures), -1, self.side, self.side)
        cells = self.side // self.cell
        whole = np.concatenate((pictures[:, None], first, second), axis=1)
        found = whole.reshape(*whole.shape[:2], cells, self.cell, cells, self.cell).mean(axis=(3, 5))
        return self._normalised(found.reshape(len(pictures), self.channels, -1))

    def _normalised(self, found: NDArray[np.float32]) -> NDArray[np.float32]:
        """Each channel to mean 0 and length 1, then each picture to the asked length; what is zero stays zero."""
        found = found - found.mean(axis=2, keepdims=True)
        norms = np.linalg.norm(found, axis=2, keepdims=True)
        flat = (found / np.where(norms > 0.0, norms, 1.0)).reshape(len(found), -1)
        whole = np.linalg.norm(flat, axis=1, keepdims=True)
        return (flat * (self.length / np.where(whole > 0.0, whole, 1.0))).astype(np.float32)

    @cached_property
    def _wavelets(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Fourier transforms of the wavelets of both scales, shape (angles, side, side) each: real, zero at zero."""
        frequency = 2.0 * math.pi * np.fft.fftfreq(self.side)
        # a function sampled on the grid of points has a spectrum that is wrapped around the torus of frequencies
        wrapped = np.add.outer(2.0 * math.pi * np.arange(-1, 2), frequency)
        down, across = wrapped[:, None, :, None], wrapped[None, :, None, :]
        made: list[NDArray[np.float32]] = []
        for scale in (1.0, 2.0):
            centre, width, rows = 0.75 * math.pi / scale, 0.8 * scale, list[FloatArray]()
            for turn in np.arange(self.angles) * (math.pi / self.angles):
                along = math.cos(turn) * across + math.sin(turn) * down
                aside = 2.0 * (math.cos(turn) * down - math.sin(turn) * across)
                bump, flat = (
                    np.exp(-0.5 * width**2 * ((along - at) ** 2 + aside**2)).sum(axis=(0, 1)) for at in (centre, 0.0)
                )
                rows.append(bump - flat * (bump[0, 0] / flat[0, 0]))
            made.append(np.stack(rows).astype(np.float32))
        return made[0], made[1]
