"""Fixed features in front of a network: free where they are made from no data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft

from shuffledp.errors import InvalidInput, choice, shown, whole_number
from shuffledp.learning.inputs import checked_features
from shuffledp.numerics.floats import FloatArray

# Features of pictures that are made from no data, so that they cost no privacy.

_CHUNK = 2048
F = TypeVar("F", np.float32, np.float64)


def by_chunks(
    rows: NDArray[np.generic], side: int, out: NDArray[F], features: Callable[[NDArray[F]], NDArray[F]], chunk: int
) -> NDArray[F]:
    """Compute the features of square pictures into the array ``out``, ``chunk`` pictures at a time.

    Parameters
    ----------
    rows : ndarray, shape (n, side * side)
        The pictures, one per row.
    side : int
        Points along a side.
    out : ndarray, first axis n
        Where the features are written; it is returned.
    features : callable
        Function of pictures, shape (m, side, side), that returns their features.
    chunk : int
        Number of pictures at a time.

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
    """Features of square pictures: edge strength by direction in each cell (Dalal and Triggs 2005), normalised.

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
        """Description of the features for the guarantee, which says that no data were used to make them."""
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
        histograms = np.empty((pictures.shape[0], cells, cells, self.directions))
        for bin_ in range(self.directions):
            before = (bin_ - 1) % self.directions
            part = size * np.where(first == bin_, 1.0 - share, np.where(first == before, share, 0.0))
            histograms[..., bin_] = part.reshape(-1, cells, self.cell, cells, self.cell).sum(axis=(2, 4))
        flat = np.sqrt(histograms.reshape(pictures.shape[0], -1))
        norms = np.sqrt(np.einsum("ij,ij->i", flat, flat))[:, None]
        return flat * np.where(norms > 0.0, self.length / np.maximum(norms, 1e-150), 0.0)


# Fixed linear features in front of a network: what they were made from decides whether they are free.
#
# Principal components of the private records depend on those records, and nobody counts what they tell. So a
# projection is made either from nothing (`cosine_projection`), or from data that its maker declares public
# (`public_projection`).

Features = Callable[[NDArray[np.generic]], FloatArray]
"""A fixed map from rows, shape (n, inputs), to features, shape (n, outputs)."""
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class Projection:
    """Linear features (x - mean) @ matrix of rows x.

    Parameters
    ----------
    matrix : ndarray, shape (inputs, outputs)
        Directions, as columns.
    mean : ndarray, shape (inputs,)
        Vector subtracted from each row before the product.
    origin : str
        Description of the data that the projection was made from; every guarantee quotes it.
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
    """Return the projection on the principal components of public data (not of the protected people).

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
    """Return the projection of square pictures on their lowest spatial frequencies (cosine transform).

    It is made from no data.

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
    whole_number(components, "`components`", 1, most)


# Scattering features of pictures: moduli of fixed wavelets, made from no data (Bruna and Mallat 2013).

_AT_ONCE = 64


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
            whole_number(given, f"`{name}`", 1)
        fits = 1 <= self.cell < self.side and self.side % self.cell == 0
        if self.side < 8 or not fits or self.angles < 2 or not self.length > 0.0:
            raise InvalidInput(
                "scattering features need cells that divide a side of 8 or more in several, 2 angles or more, and a "
                f"positive length; got side {self.side}, cell {self.cell}, angles {self.angles}, length {self.length}"
            )

    @property
    def channels(self) -> int:
        """Number of averages in each cell: the picture, two scales of each angle, and each pair of angles."""
        return 1 + 2 * self.angles + self.angles**2

    @property
    def origin(self) -> str:
        """Description of the features for the guarantee, which says that no data were used to make them."""
        return f"{self.channels * (self.side // self.cell) ** 2} scattering features, from no data"

    def __call__(self, rows: NDArray[np.generic]) -> NDArray[Any]:
        """Features of pictures, shape (n, side * side), as shape (n, channels * cells^2).

        Raises
        ------
        InvalidInput
            If the rows have another number of points.
        """
        size = self.channels * (self.side // self.cell) ** 2
        return by_chunks(rows, self.side, np.empty((rows.shape[0], size), np.float32), self._one_chunk, _AT_ONCE)

    def _one_chunk(self, pictures: NDArray[np.float32]) -> NDArray[np.float32]:
        fine, coarse = self._wavelets
        seen = np.asarray(fft.fft2(pictures))[:, None]
        first = np.abs(np.asarray(fft.ifft2(seen * np.concatenate((fine, coarse)))))
        again = np.asarray(fft.fft2(first[:, : self.angles]))[:, :, None]
        second = np.abs(np.asarray(fft.ifft2(again * coarse))).reshape(len(pictures), -1, self.side, self.side)
        cells = self.side // self.cell
        whole = np.concatenate((pictures[:, None], first, second), axis=1)
        means = whole.reshape(*whole.shape[:2], cells, self.cell, cells, self.cell).mean(axis=(3, 5))
        return self._normalised(means.reshape(len(pictures), self.channels, -1))

    def _normalised(self, channels: NDArray[np.float32]) -> NDArray[np.float32]:
        """Each channel to mean 0 and length 1, then each picture to the asked length; what is zero stays zero."""
        channels = channels - channels.mean(axis=2, keepdims=True)
        norms = np.linalg.norm(channels, axis=2, keepdims=True)
        flat = (channels / np.where(norms > 0.0, norms, 1.0)).reshape(len(channels), -1)
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


# Few features of handwriting, made from no data: the directions in which pictures of random strokes vary most.
#
# Noise has to cover every number of a message, so fewer numbers mean less noise in all. Principal components of
# private pictures are not free, and those of public ones need public pictures. But what scattering features of
# handwriting vary in is mostly what those of any strokes vary in: 400 components of random strokes hold 98 % of the
# variance of digits.

PICTURES = 4000
"""Number of random pictures whose principal components are used."""
_MOST_STROKES = 3
_POINTS = 48
"""Number of points along a stroke, which are at most one or two pixels apart."""
_KEY = 2014
"""Key of a fixed stream of random numbers, so that everybody's features are the same."""


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
        Power of the standard deviation, from 0 (components unchanged) to 1 (all components have deviation 1).
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
        """Description of the features for the guarantee, which says that no data were used to make them."""
        return f"{self.components} principal components of scattering features of random strokes, from no data"

    @cached_property
    def scattering(self) -> Scattering:
        """Scattering features before the projection on principal components."""
        return Scattering(self.side, cell=self.cell)

    def __call__(self, rows: NDArray[np.generic]) -> NDArray[Any]:
        """Features of pictures, shape (n, side * side), as shape (n, components).

        Raises
        ------
        InvalidInput
            If the rows have another number of points.
        """
        components = _projection(self)(self.scattering(rows))
        norms = np.linalg.norm(components, axis=1, keepdims=True)
        return (components / np.where(norms > 0.0, norms, 1.0)).astype(np.float32)


@lru_cache(maxsize=4)
def _projection(features: StrokeScattering) -> Projection:
    drawn = features.scattering(random_strokes(features.side, PICTURES))
    projection = public_projection(drawn, features.components, public=True)
    spread = projection(drawn).std(axis=0)
    widths = np.maximum(spread, 1e-9 * spread.max()) ** features.whitening
    return Projection(projection.matrix / widths, projection.mean, features.origin)


def random_strokes(side: int, count: int) -> NDArray[np.uint8]:
    """Return pictures of one to three random curves, placed and sized as MNIST places and sizes its digits.

    Parameters
    ----------
    side : int
        Pictures have side * side points.
    count : int
        Number of pictures; the same arguments always give the same pictures.

    Returns
    -------
    ndarray of uint8, shape (count, side * side)
        Grey values of each picture, row by row.
    """
    stream = np.random.Generator(np.random.Philox(key=_KEY))
    corners, uniform = stream.random((count, _MOST_STROKES, 4, 2)), stream.random((count, _MOST_STROKES))
    thick = side / 28.0 * (1.1 + 0.8 * stream.random(count))
    # Bezier curves of degree 3, each stroke after the first with its chance
    t = np.linspace(0.0, 1.0, _POINTS)[:, None]
    weights = np.hstack(((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3))
    at = (weights @ corners).reshape(count, -1, 2)
    drawn = np.repeat(uniform < np.array([1.0, 0.6, 0.3]), _POINTS, axis=1)[:, :, None]
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


# Fixed maps from a table's columns or a picture's points to features, and how a model file names them.

PICTURE_MAPS = ("edges", "coarse-edges", "scattering", "strokes", "cosine", "pixels")
COSINES = 60


class Map(Protocol):
    """Interface of a fixed map from rows to features that states the data it was made from."""

    @property
    def origin(self) -> str:
        """Description of the data that the features were made from; the guarantee quotes it."""
        ...

    def __call__(self, rows: NDArray[np.generic]) -> FloatArray:
        """Features of rows."""
        ...


@dataclass(frozen=True, eq=False)
class Scaled:
    """Columns clipped to ranges and brought to [0, 1]; a column without a range stays as it is.

    Parameters
    ----------
    names : tuple of str
        Names of the columns.
    low, high : ndarray, shape (columns,)
        Ranges of the columns; infinite ends: no range.
    missing_as : float or None
        What a missing entry counts as, before it is clipped; None: `rows` refuses it.
    """

    names: tuple[str, ...]
    low: FloatArray
    high: FloatArray
    missing_as: float | None = None

    def rows(self, columns: Mapping[str, FloatArray]) -> FloatArray:
        """Return the columns side by side as an array of shape (n, columns), with missing entries (NaN) filled in.

        Raises
        ------
        InvalidInput
            For the first entry that is missing, if there is no number for it.
        """
        rows = np.stack([columns[name] for name in self.names], axis=1)
        missing = np.isnan(rows)
        if self.missing_as is None and missing.any():
            row, column = divmod(int(np.argmax(missing)), rows.shape[1])
            raise InvalidInput(
                f"{self.names[column]} in row {row + 1} is missing; give every row a number, or say in training with "
                "`missing_as` which number it counts as"
            )
        return np.where(missing, self.missing_as or 0.0, rows)

    @property
    def origin(self) -> str:
        """Description of the features for the guarantee: columns and the ranges that they are scaled from."""
        ranged = int(np.isfinite(self.low).sum())
        return f"columns {', '.join(self.names)}" + (
            f", {ranged} of them scaled by ranges given beforehand" * (ranged > 0)
        )

    def __call__(self, rows: NDArray[np.generic]) -> FloatArray:
        """Scale rows, shape (n, columns)."""
        has_range = np.isfinite(self.low)
        low, width = np.where(has_range, self.low, 0.0), np.where(has_range, self.high - self.low, 1.0)
        return (np.clip(rows.astype(np.float64), self.low, self.high) - low) / width


@dataclass(frozen=True)
class Pixels:
    """Features of a picture: its grey values divided by 255, in [0, 1]."""

    @property
    def origin(self) -> str:
        """Description of the features for the guarantee: grey values, made from no data."""
        return "points of the picture over 255"

    def __call__(self, rows: NDArray[np.generic]) -> FloatArray:
        """Scale rows, shape (n, points)."""
        return rows.astype(np.float64) / 255.0


def picture_features(kind: str, side: int) -> Map:
    """Return the features of square pictures that the name ``kind`` stands for.

    Parameters
    ----------
    kind : {"edges", "coarse-edges", "scattering", "strokes", "cosine", "pixels"}
        Name of the features.
    side : int
        Pictures have side * side points.

    Raises
    ------
    InvalidInput
        On an unknown name, or a side that does not fit.
    """
    makers: dict[str, Callable[[], Map]] = {
        "edges": lambda: OrientedGradients(side),
        "coarse-edges": lambda: OrientedGradients(side, cell=max(side // 4, 1), length=1.0),
        "scattering": lambda: Scattering(side, cell=max(side // 4, 1)),
        "strokes": lambda: StrokeScattering(side, cell=max(side // 4, 1)),
        "cosine": lambda: cosine_projection(side, min(COSINES, side * side), scale=1.0 / 255.0),
        "pixels": Pixels,
    }
    return makers[choice(kind, "features of pictures", PICTURE_MAPS)]()


def features_of(about: dict[str, Any]) -> Map:
    """Return the feature map that a model file describes.

    Parameters
    ----------
    about : dict
        ``features_of_a_row`` of the file: {"kind": "columns", "columns", "low", "high", "missing_as"}, infinite ends as
        null or infinity, the last one only where missing entries count as a number; or the kind of picture features and
        their side.

    Raises
    ------
    InvalidInput
        If the kind is unknown.
    KeyError, TypeError, ValueError
        If the description is damaged.
    """
    if about["kind"] != "columns":
        return picture_features(str(about["kind"]), int(about["side"]))
    low = [-math.inf if end is None else float(end) for end in about["low"]]
    high = [math.inf if end is None else float(end) for end in about["high"]]
    missing_as = None if about.get("missing_as") is None else float(about["missing_as"])
    return Scaled(tuple(str(name) for name in about["columns"]), np.array(low), np.array(high), missing_as)
