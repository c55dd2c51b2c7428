# pyright: reportMissingImports=false, reportUnknownParameterType=false
"""Flower's named arrays as one vector of doubles, and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from flwr.app import Array, ArrayRecord
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray

BIT_KEY = "bit"
"""Name of the only array of a message of one bit: its seed's 64 bits as a whole number, and the bit."""


@dataclass(frozen=True)
class Layout:
    """Names, shapes and types of a model's arrays, in order.

    Parameters
    ----------
    names : tuple of str
        Keys of the record.
    shapes : tuple of tuple of int
        Of each array.
    kinds : tuple of str
        Floating types.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    kinds: tuple[str, ...]

    @staticmethod
    def of(record: ArrayRecord) -> Layout:
        """Read the layout off a model; only floating numbers can carry noise."""
        arrays = {name: array.numpy() for name, array in record.items()}
        if not arrays:
            raise InvalidInput("the model has no array")
        for name, array in arrays.items():
            if array.dtype.kind != "f":
                raise InvalidInput(f"array {name} holds {array.dtype}, which cannot carry noise; send only floats")
        shapes = tuple(array.shape for array in arrays.values())
        return Layout(tuple(arrays), shapes, tuple(array.dtype.str for array in arrays.values()))

    @property
    def numbers(self) -> int:
        """How many numbers a message has."""
        return sum(int(np.prod(shape, dtype=np.int64)) for shape in self.shapes)

    def flat(self, record: ArrayRecord) -> NDArray[np.generic]:
        """All numbers of a record with these names and shapes, shape (numbers,)."""
        if tuple(record.keys()) != self.names:
            raise InvalidInput(f"a model with the arrays {', '.join(self.names)} is needed")
        parts = [array.numpy() for array in record.values()]
        if tuple(part.shape for part in parts) != self.shapes:
            raise InvalidInput("the arrays have other shapes than the model's")
        return np.concatenate([part.ravel() for part in parts])

    def model(self, numbers: FloatArray) -> ArrayRecord:
        """Return a record of the model's own types."""
        return self._record(numbers, self.kinds)

    def message(self, whole: NDArray[np.int64]) -> ArrayRecord:
        """Return a record of whole numbers under the model's names."""
        return self._record(whole, ("<i8",) * len(self.names))

    def _record(self, numbers: NDArray[np.generic], kinds: tuple[str, ...]) -> ArrayRecord:
        sizes = [int(np.prod(shape, dtype=np.int64)) for shape in self.shapes]
        parts = np.split(numbers, np.cumsum(sizes)[:-1])
        rows = zip(self.names, parts, self.shapes, kinds, strict=True)
        return ArrayRecord({name: Array(part.reshape(shape).astype(kind)) for name, part, shape, kind in rows})


def bit_record(message: NDArray[np.int64]) -> ArrayRecord:
    """Return a record of a seed and its bit, shape (2,)."""
    return ArrayRecord({BIT_KEY: Array(message.astype("<i8"))})


def bit_of(record: ArrayRecord) -> NDArray[np.int64]:
    """Seed and bit of a record, shape (2,), or raise ValueError."""
    if tuple(record.keys()) != (BIT_KEY,):
        raise ValueError("no bit")
    found = record[BIT_KEY].numpy()
    if found.dtype != np.int64 or found.shape != (2,) or found[1] not in (0, 1):
        raise ValueError("no bit")
    return found.astype(np.int64)
