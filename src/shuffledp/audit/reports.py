"""Reports of any kind made comparable: a key that tells equal reports, and columns of numbers where there are any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput

Words = NDArray[np.uint64]

MOST_COLUMNS = 4096
"""Columns (bits, of packed reports) that the attack looks at; further ones only count for equality."""
_LARGEST = 1e100  # so that squares of columns stay finite
_ODD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


@dataclass(frozen=True, eq=False)
class Reports:
    """Reports as the attacker reads them.

    Parameters
    ----------
    raw : ndarray, first axis n
        As they came.
    keys : ndarray of uint64, shape (n,)
        Equal for reports of the same bytes; different for others, such as 0.0 and -0.0, but for collisions of a 64-bit
        hash.
    columns : ndarray, shape (n, columns)
        The numbers in each report; the bits of unsigned integers, which may be packed, after their value if a report is
        one number. No columns for words.
    read : dict
        What scores made of them, see `shuffledp.audit.scores.Score.read`.
    """

    raw: NDArray[Any]
    keys: Words
    columns: NDArray[Any]
    read: dict[Any, NDArray[Any]] = field(default_factory=dict[Any, NDArray[Any]])

    @property
    def n(self) -> int:
        """The number of reports."""
        return int(self.keys.size)

    def take(self, which: NDArray[Any]) -> Reports:
        """Select some of the reports, by index or mask."""
        return Reports(self.raw[which], self.keys[which], self.columns[which])


@dataclass(frozen=True, eq=False)
class Printed:
    """What a program printed: one line a report.

    Parameters
    ----------
    lines : list of str, length n
        The lines, which tell reports apart even where they are the same number: 1 and 1.0.
    values : ndarray, first axis n
        The same as numbers or rows of numbers; as words if they are none.
    """

    lines: list[str]
    values: NDArray[Any]


def join(parts: Sequence[Reports]) -> Reports:
    """Put the reports of several calls behind each other."""
    return Reports(
        np.concatenate([part.raw for part in parts]),
        np.concatenate([part.keys for part in parts]),
        np.concatenate([part.columns for part in parts]),
    )


def read_reports(raw: Any, n: int, name: str, like: Reports | None = None) -> Reports:
    """Read what a randomizer returned.

    Parameters
    ----------
    raw : array_like or Printed
        Whole numbers, floats, bools or words, or rows of numbers; the first axis runs over users.
    n : int
        How many records were handed in.
    name : str
        The randomizer, for messages.
    like : Reports, optional
        Reports of an earlier call, with which these will be compared: whole numbers become floats, and numbers become
        words, where those were.

    Raises
    ------
    InvalidInput
        If there is not one report per record, the reports are neither numbers nor words, or they are of another kind
        than those of the earlier call.
    """
    if isinstance(raw, Printed):
        found = read_reports(raw.values, n, name, like)
        return Reports(found.raw, _word_keys(np.array(raw.lines)), found.columns)
    try:
        array = np.asarray(raw)
    except ValueError:
        raise InvalidInput(f"{name} returned rows of different lengths; return one report of fixed size each") from None
    if array.ndim == 0 or array.shape[0] != n:
        got = "a single value" if array.ndim == 0 else f"{array.shape[0]} report{'' if array.shape[0] == 1 else 's'}"
        raise InvalidInput(
            f"{name} returned {got} for {n} record{'' if n == 1 else 's'}; return one report for each record"
        )
    array = _alike(array.reshape(n, -1) if array.ndim > 2 else array, name, like)
    if array.dtype.names is not None:
        fields = [read_reports(array[field], n, name) for field in array.dtype.names]
        keys = _mixed(np.stack([field.keys for field in fields], axis=1))
        return Reports(array, keys, np.concatenate([field.columns for field in fields], axis=1))
    if array.dtype.kind in "US":
        return Reports(array, _word_keys(array), np.empty((n, 0)))
    return Reports(array, _number_keys(array), _columns(array))


def _alike(array: NDArray[Any], name: str, like: Reports | None) -> NDArray[Any]:
    """Numbers, words or records of both; of the kind and shape of an earlier call's, where there was one."""
    if array.dtype.kind == "O":
        array = _from_objects(array)
    if array.dtype.kind not in "biufUS" and array.dtype.names is None:
        raise InvalidInput(f"{name} returned reports of type {array.dtype}; return numbers, rows of numbers, or words")
    if like is None:
        return array
    known = like.raw.dtype
    if known.kind in "US" and array.dtype.kind in "biuf":
        array = _as_words(array)
    elif known.kind == "f" and array.dtype.kind in "bi":
        array = array.astype(known)
    if (array.dtype.kind, array.dtype.names, array.shape[1:]) == (known.kind, known.names, like.raw.shape[1:]):
        return array
    raise InvalidInput(
        f"{name} returned {_kind(array)} from a call with {array.shape[0]} record{'' if array.shape[0] == 1 else 's'}, "
        f"and {_kind(like.raw)} before; return reports of one kind and size"
    )


def _kind(array: NDArray[Any]) -> str:
    if array.dtype.names is not None:
        return "records"
    one = {"b": "bools", "u": "unsigned whole numbers", "i": "whole numbers", "f": "floats"}.get(
        array.dtype.kind, "words"
    )
    return f"rows of {array.shape[1]} {one}" if array.ndim > 1 else one


def _from_objects(array: NDArray[Any]) -> NDArray[Any]:
    """Python objects as numbers if all are, else as words."""
    try:
        if all(isinstance(entry, Number) for entry in array.ravel()):
            return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    return _as_words(array)


def _as_words(array: NDArray[Any]) -> NDArray[Any]:
    return np.array([" ".join(map(str, np.atleast_1d(entry))) for entry in array])


def _columns(array: NDArray[Any]) -> NDArray[Any]:
    flat = array[:, None] if array.ndim == 1 else array
    if array.dtype.kind == "u":
        packed = np.ascontiguousarray(flat).view(np.uint8)[:, : MOST_COLUMNS // 8]
        bits = np.unpackbits(packed, axis=1, bitorder="little")
        return np.concatenate((flat.astype(np.float64), bits), axis=1) if flat.shape[1] == 1 else bits
    flat = flat[:, :MOST_COLUMNS]
    if array.dtype.kind != "f":
        return flat
    return np.clip(np.nan_to_num(flat.astype(np.float64)), -_LARGEST, _LARGEST)


def _number_keys(array: NDArray[Any]) -> Words:
    flat = np.ascontiguousarray(array[:, None] if array.ndim == 1 else array)
    packed = flat.view(np.uint8)
    width = -packed.shape[1] % 8
    padded = np.pad(packed, ((0, 0), (0, width))) if width else packed
    return _mixed(np.ascontiguousarray(padded).view(np.uint64))


def _mixed(words: Words) -> Words:
    """One word per row; a single word stays different from every other."""
    keys = np.zeros(words.shape[0], dtype=np.uint64)
    for column in words.T:
        keys = (keys ^ column) * _ODD
        keys ^= keys >> _SHIFT
    return keys


def _word_keys(array: NDArray[Any]) -> Words:
    texts, place = np.unique(array.reshape(array.shape[0], -1), return_inverse=True)
    digests = [int.from_bytes(blake2b(str(text).encode(), digest_size=8).digest(), "little") for text in texts]
    return _mixed(np.array(digests, dtype=np.uint64)[place.reshape(array.shape[0], -1)])
