"""Vectors of bounded norm: the interface of their randomizers, and the checks of their records."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import VALUE, BadEntry, InvalidInput, Written, shown
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.randomizers.base import RandomizerLaw

_ENTRIES = 1 << 18  # of vectors, checked at a time


class VectorRandomizer(RandomizerLaw, Protocol):
    """A family that randomizes a vector of bounded norm, and whose reports have values of mean proportional to it."""

    @property
    def dimension(self) -> int:
        """Length d of a record (a vector)."""
        ...

    @property
    def bound(self) -> float:
        """Largest norm of a record, positive and public."""
        ...

    @property
    def norm(self) -> str:
        """The norm that bounds records: ``"l1"``, ``"l2"`` or ``"linf"``."""
        ...

    @property
    def largest(self) -> float:
        """Largest absolute entry of the vector that a report stands for (its value)."""
        ...

    def randomize(self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness) -> NDArray[np.int64]:
        """Return one integer report per vector, shape (n,), each drawn with its own budget.

        Parameters
        ----------
        records : array_like, shape (n, dimension)
            Vectors of norm at most `bound`.
        epsilon0 : float or array_like, shape (n,)
            Local budgets, nats.
        random : Randomness
            Source of the noise.
        """
        ...

    def report_slope(self, epsilon0: ArrayLike) -> FloatArray:
        """Return c with E(value of a report | x) = c x/bound, as drawn, at each budget (nats); shape of epsilon0."""
        ...


def checked_vectors(records: ArrayLike, dimension: int, norm: str, bound: float) -> FloatArray:
    """Return vectors as an array of floats, shape (n, dimension), after checking shape, finiteness and norm.

    Parameters
    ----------
    records : array_like of float, shape (n, dimension)
        The vectors; an array of floats is not copied.
    dimension : int
        Length of each vector.
    norm : {"l1", "l2", "linf"}
        The norm that is bounded.
    bound : float
        Largest norm allowed, with a relative tolerance of 2^-40 for rounding in the caller's normalisation.

    Raises
    ------
    InvalidInput
        If the shape differs, or a vector exceeds the bound or is not finite (the first such row is named).
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
    """Return the norm of each row of a matrix, shape (n,).

    Parameters
    ----------
    vectors : ndarray, shape (n, dimension)
        The vectors, one per row.
    norm : {"l1", "l2", "linf"}
        Sum of absolute entries, Euclidean length, or largest absolute entry.
    """
    if norm == "l2":
        return np.sqrt(np.sum(vectors * vectors, axis=1))
    sizes = np.abs(vectors)
    return np.sum(sizes, axis=1) if norm == "l1" else np.max(sizes, axis=1)


def positive_number(value: object, what: str) -> float:
    """Return `value` as a float if it is finite and above 0; `what` names it in the error message.

    Raises
    ------
    InvalidInput
        If the value is not a finite number above 0.
    """
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidInput(f"{what} must be a positive number; got {shown(value)}") from None
    if not (math.isfinite(number) and number > 0.0):
        raise InvalidInput(f"{what} must be a positive number; got {shown(value)}")
    return number
