"""Fixed maps from a table's columns or a picture's points to features, and how a model file names them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput, shown
from shuffledp.learning.features import OrientedGradients
from shuffledp.learning.pca import cosine_projection
from shuffledp.learning.scattering import Scattering
from shuffledp.learning.strokes import StrokeScattering
from shuffledp.numerics.interval import FloatArray

PICTURES = ("edges", "coarse-edges", "scattering", "strokes", "cosine", "pixels")
COSINES = 60


class Map(Protocol):
    """A fixed map from rows to features that tells what it was made from."""

    @property
    def origin(self) -> str:
        """What the guarantee says of the features."""
        ...

    def __call__(self, rows: NDArray[np.generic]) -> FloatArray:
        """Features of rows."""
        ...


@dataclass(frozen=True, eq=False)
class Scaled:
    """Columns clipped to ranges and brought to [0, 1]; a column without a range stays as it is.

    A missing entry counts as `missing_as`, before it is clipped; None: it is refused by `rows`.
    """

    names: tuple[str, ...]
    low: FloatArray
    high: FloatArray
    missing_as: float | None = None

    def rows(self, columns: Mapping[str, FloatArray]) -> FloatArray:
        """Put columns side by side, shape (n, columns), what is missing (NaN) filled in.

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
        """What it was made from."""
        ranged = int(np.isfinite(self.low).sum())
        return f"columns {', '.join(self.names)}" + (
            f", {ranged} of them scaled by ranges given beforehand" * (ranged > 0)
        )

    def __call__(self, rows: NDArray[np.generic]) -> FloatArray:
        """Scale rows, shape (n, columns)."""
        known = np.isfinite(self.low)
        low, width = np.where(known, self.low, 0.0), np.where(known, self.high - self.low, 1.0)
        return (np.clip(rows.astype(np.float64), self.low, self.high) - low) / width


@dataclass(frozen=True)
class Pixels:
    """Points of a picture, brought to [0, 1]."""

    @property
    def origin(self) -> str:
        """What it was made from."""
        return "points of the picture over 255"

    def __call__(self, rows: NDArray[np.generic]) -> FloatArray:
        """Scale rows, shape (n, points)."""
        return rows.astype(np.float64) / 255.0


def picture_features(kind: str, side: int) -> Map:
    """Return the features of square pictures by their name.

    Parameters
    ----------
    kind : {"edges", "coarse-edges", "scattering", "strokes", "cosine", "pixels"}
        Which.
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
    if kind not in makers:
        raise InvalidInput(f"features of pictures must be one of {', '.join(PICTURES)}; got {shown(kind)}")
    return makers[kind]()


def features_of(about: dict[str, Any]) -> Map:
    """Return the map that a model file describes.

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
