"""Vectors of bounded norm: what a family of them states, and what it asks of its records."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import VALUE, BadEntry, InvalidInput, Written, shown
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.randomizers.base import RandomizerLaw

_ENTRIES = 1 << 18  # of vectors, checked at a time


class VectorRandomizer(RandomizerLaw, Protocol):
    """A family that randomizes a vector of bounded norm, can be run, and whose reports have an unbiased reading."""

    @property
    def dimension(self) -> int:
        """Length d of a record."""
        ...

    @property
    def bound(self) -> float:
        """Largest norm of a record, public."""
        ...

    @property
    def norm(self) -> str:
        """Which norm: ``"l1"``, ``"l2"`` or ``"linf"``."""
        ...

    @property
    def largest(self) -> float:
        """Largest absolute entry of a report's value."""
        ...

    def randomize(self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness) -> NDArray[np.int64]:
        """One integer report per vector, shape (n,), each with its own budget (scalar or shape (n,))."""
        ...

    def report_slope(self, epsilon0: ArrayLike) -> FloatArray:
        """Return c with E(value of a report | x) = c x/bound, as drawn, at each budget."""
        ...


def checked_vectors(records: ArrayLike, dimension: int, norm: str, bound: float) -> FloatArray:
    """Return records as floating-point numbers, shape (n, dimension): not copied if they are.

    Parameters
    ----------
    records : array_like of float, shape (n, dimension)
        The vectors.
    dimension : int
        Their length.
    norm : {"l1", "l2", "linf"}
        In which norm they are bounded.
    bound : float
        By how much; 2^-40 of it is granted for the rounding of whoever normalised them.

    Raises
    ------
    InvalidInput
        If the shape is another one, or a vector is too long or not finite (the first such row is named).
    """
    try:
        vectors = np.asarray(records)
        vectors = vectors if vectors.dtype.kind == "f" else vectors.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"vectors must be numbers in an array of shape (n, {dimension})") from None
    if vectors.ndim != 2 or vectors.shape[1] != dimension:
        raise InvalidInput(f"vectors must have shape (n, {dimension}), one row a user; got {vectors.shape}")
    block = max(_ENTRIES // dimension, 1)
    for start in range(0, vectors.shape[0], block):
        lengths = norms(vectors[start : start + block].astype(np.float64) / bound, norm)
        inside = lengths <= 1.0 + 2.0**-40  # NaN is not
        if not inside.all():
            _refuse(vectors[start : start + block], start, lengths * bound, int(np.argmin(inside)), norm, bound)
    return vectors


def _refuse(vectors: FloatArray, start: int, lengths: FloatArray, row: int, norm: str, bound: float) -> None:
    if not np.isfinite(vectors[row]).all():
        raise InvalidInput(f"the vector in row {start + row + 1} has an entry that is missing or infinite")
    raise BadEntry(
        f"the vector in row {start + row + 1} has {norm} norm {VALUE}, above the bound {bound:g}; "
        "clip, or widen the bound without looking at the vectors",
        Written(f"{lengths[row]:.6g}"),
    )


def norms(vectors: FloatArray, norm: str) -> FloatArray:
    """Return the norm of each row.

    Parameters
    ----------
    vectors : ndarray, shape (n, dimension)
        Rows.
    norm : {"l1", "l2", "linf"}
        Which norm.
    """
    if norm == "l2":
        return np.sqrt(np.sum(vectors * vectors, axis=1))
    sizes = np.abs(vectors)
    return np.sum(sizes, axis=1) if norm == "l1" else np.max(sizes, axis=1)


def positive_number(value: object, what: str) -> float:
    """Return a number as a float: finite and above 0.

    Raises
    ------
    InvalidInput
        If it is not.
    """
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidInput(f"{what} must be a positive number; got {shown(value)}") from None
    if not (math.isfinite(number) and number > 0.0):
        raise InvalidInput(f"{what} must be a positive number; got {shown(value)}")
    return number
