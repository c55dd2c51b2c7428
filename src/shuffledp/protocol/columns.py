"""The records as users hold them, turned into codes and numbers; the first bad row is named."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import repeat
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shuffledp.budgets import column_to_floats
from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray

if TYPE_CHECKING:
    import polars as pl

_CHUNK = 1 << 18  # rows at a time, so that temporaries stay small


class Range(Protocol):
    """Whatever has a lowest and a highest value."""

    @property
    def low(self) -> float:
        """Lowest value."""
        ...

    @property
    def high(self) -> float:
        """Highest value."""
        ...


def read_labels(categories: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Check the public categories: at least two, none missing, none twice."""
    if isinstance(categories, str):
        raise InvalidInput(f"categories must be a list of labels, not the text {categories!r}")
    labels = tuple(label.item() if isinstance(label, np.generic) else label for label in categories)
    if len(labels) < 2:
        raise InvalidInput(f"a frequency needs at least two categories; got {len(labels)}: {list(labels)}")
    seen_before: set[Hashable] = set()
    for label in labels:
        if _missing(label):
            raise InvalidInput(f"a category cannot be missing ({label!r}); write a word for it")
        if label in seen_before:
            raise InvalidInput(f"category {label!r} is given twice; name each category once")
        seen_before.add(label)
    return labels


def category_codes(records: Any, labels: tuple[Hashable, ...], before: int = 0) -> NDArray[np.int64]:
    """Positions of the records among the labels; the first record that is none of them is named.

    Parameters
    ----------
    records : sequence, array or polars Series, length n
        One label per user.
    labels : tuple, length k
        The public categories.
    before : int
        Rows that came before these, for the row in the error.
    """
    column: Any = records if _texts(records, labels) or isinstance(records, list | tuple) else as_array(records)
    if _texts(column, labels):
        codes = _text_codes(column, labels)
    elif isinstance(column, np.ndarray) and _comparable(column, labels):
        codes = _number_codes(column, labels)
    else:
        codes = _label_codes(column, labels)
    bad = codes < 0
    if bad.any():
        row = int(np.argmax(bad))
        record = column[row].item() if isinstance(column[row], np.generic) else column[row]
        what = "is missing" if _missing(record) else f"is {record!r}, which is none of the categories"
        known = ", ".join(repr(label) for label in labels[:5]) + (", ..." if len(labels) > 5 else "")
        raise InvalidInput(f"the record in row {before + row + 1} {what} ({known}); add a category, or drop the row")
    return codes


def _comparable(column: NDArray[Any], labels: tuple[Hashable, ...]) -> bool:
    """Whether numpy compares these numbers with these labels as exactly as Python would."""
    whole = all(isinstance(label, int) and abs(label) < 2**53 for label in labels)
    number = all(isinstance(label, int | float) and abs(label) < 2**53 for label in labels)
    return (whole and column.dtype.kind in "bi") or (number and column.dtype.kind == "f")


def _texts(column: Any, labels: tuple[Hashable, ...]) -> bool:
    """Whether this is a polars column of text, and every label a text: then polars looks them up itself."""
    return (
        type(column).__module__.startswith("polars")
        and str(column.dtype) == "String"
        and all(isinstance(label, str) for label in labels)
    )


def _text_codes(column: pl.Series, labels: tuple[Hashable, ...]) -> NDArray[np.int64]:
    import polars as pl

    codes = column.cast(pl.Enum([str(label) for label in labels]), strict=False).to_physical()
    return codes.cast(pl.Int64).fill_null(-1).to_numpy()


def _number_codes(column: NDArray[Any], labels: tuple[Hashable, ...]) -> NDArray[np.int64]:
    values = np.asarray(labels)
    order = np.argsort(values)
    codes = np.empty(len(column), dtype=np.int64)
    for start in range(0, len(column), _CHUNK):
        chunk = column[start : start + _CHUNK]
        near = order[np.minimum(np.searchsorted(values, chunk, sorter=order), len(labels) - 1)]
        codes[start : start + _CHUNK] = np.where(values[near] == chunk, near, -1)
    return codes


def _label_codes(column: Any, labels: tuple[Hashable, ...]) -> NDArray[np.int64]:
    place: dict[Hashable, int] = {label: code for code, label in enumerate(labels)}
    codes = np.empty(len(column), dtype=np.int64)
    for start in range(0, len(column), _CHUNK):
        chunk = column[start : start + _CHUNK]
        entries = chunk.tolist() if isinstance(chunk, np.ndarray) else chunk
        try:
            found = np.fromiter(map(place.get, entries, repeat(-1)), dtype=np.int64, count=len(entries))
        except TypeError:
            raise InvalidInput("a record is not a label but a container; give one label per user") from None
        codes[start : start + _CHUNK] = found
    return codes


def bounded_numbers(values: Any, bounds: Range, *, clip: bool, before: int = 0) -> FloatArray:
    """Numbers in the public range; the first one outside is named by its row, unless clipped."""
    column = as_array(values)
    try:
        numbers = np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = as_floats(column, "value")
    if numbers.ndim != 1:
        raise InvalidInput(f"values must be one-dimensional; got shape {numbers.shape}")
    missing = np.isnan(numbers)
    if missing.any():
        row = int(np.argmax(missing))
        raise InvalidInput(f"the value in row {before + row + 1} is missing (NaN); give a number, or drop the row")
    low, high = bounds.low, bounds.high
    if clip:
        return np.clip(numbers, low, high)
    outside = (numbers < low) | (numbers > high)
    if outside.any():
        row = int(np.argmax(outside))
        raise InvalidInput(
            f"the value in row {before + row + 1} is {numbers[row]}, outside [{low}, {high}]; "
            "clip, or widen the range without looking at the values"
        )
    return numbers


def as_floats(column: NDArray[Any], name: str) -> FloatArray:
    """Numbers as they are; of anything else the first entry that is no number is named by its row."""
    return column_to_floats(column if column.dtype.kind in "iuf" else column.tolist(), name)


def as_array(values: Any) -> NDArray[Any]:
    """One entry per user, whatever the column is."""
    try:
        return np.asarray(values)
    except ValueError:
        raise InvalidInput("a column must hold one entry per user; got rows of different lengths") from None


def _missing(label: object) -> bool:
    return label is None or (isinstance(label, float) and label != label)
