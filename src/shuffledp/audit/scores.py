"""Scores of reports that distinguish one record from another, learned from reports of both.

A score may be anything: the confidence of an audit does not depend on how good it is, only its power does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.audit.result import Cut
from shuffledp.errors import InvalidInput
from shuffledp.numerics.floats import TINY, FloatArray

# Reports of any kind made comparable: a key that tells equal reports, and columns of numbers where there are any.

Words = NDArray[np.uint64]

MOST_COLUMNS = 4096
"""Largest number of columns (bits, for packed reports) used in scores; others count only for equality."""
_LARGEST = 1e100  # so that squares of columns stay finite
_ODD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


@dataclass(frozen=True, eq=False)
class Reports:
    """Reports in the forms that the attacker uses.

    Parameters
    ----------
    raw : ndarray, first axis n
        The reports as returned.
    keys : ndarray of uint64, shape (n,)
        Equal for reports of the same bytes; different for others, such as 0.0 and -0.0, but for collisions of a 64-bit
        hash.
    columns : ndarray, shape (n, columns)
        The numbers in each report; the bits of unsigned integers, which may be packed, after their value if a report is
        one number. No columns for words.
    read : dict
        Cached scores of these reports, see `shuffledp.audit.scores.Score.read`.
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
        """Return some of the reports, selected by index or mask."""
        return Reports(self.raw[which], self.keys[which], self.columns[which])


@dataclass(frozen=True, eq=False)
class Printed:
    """The output of a program, one line for each report.

    Parameters
    ----------
    lines : list of str, length n
        The lines, which distinguish reports even where they are the same number: 1 and 1.0.
    values : ndarray, first axis n
        The same as numbers or rows of numbers; as words if they are none.
    """

    lines: list[str]
    values: NDArray[Any]


def join(parts: Sequence[Reports]) -> Reports:
    """Return the reports of several calls joined in order."""
    return Reports(
        np.concatenate([part.raw for part in parts]),
        np.concatenate([part.keys for part in parts]),
        np.concatenate([part.columns for part in parts]),
    )


def read_reports(raw: Any, n: int, name: str, like: Reports | None = None) -> Reports:
    """Return the reports that a randomizer returned, checked, in the forms that the attacker uses.

    Parameters
    ----------
    raw : array_like or Printed
        Whole numbers, floats, bools or words, or rows of numbers; the first axis runs over users.
    n : int
        Number of records passed to it.
    name : str
        Name of the randomizer, for messages.
    like : Reports, optional
        Reports of an earlier call, to whose type these are converted: whole numbers become floats, and numbers become
        words, where those were.

    Raises
    ------
    InvalidInput
        If there is not one report per record, the reports are neither numbers nor words, or they are of another kind
        than those of the earlier call.
    """
    if isinstance(raw, Printed):
        parsed = read_reports(raw.values, n, name, like)
        return Reports(parsed.raw, _word_keys(np.array(raw.lines)), parsed.columns)
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
    """Return an array of numbers, words or rows, converted to the type and shape of an earlier call's reports."""
    if array.dtype.kind == "O":
        array = _from_objects(array)
    if array.dtype.kind not in "biufUS" and array.dtype.names is None:
        raise InvalidInput(f"{name} returned reports of type {array.dtype}; return numbers, rows of numbers, or words")
    if like is None:
        return array
    expected = like.raw.dtype
    if expected.kind in "US" and array.dtype.kind in "biuf":
        array = _as_words(array)
    elif expected.kind == "f" and array.dtype.kind in "bi":
        array = array.astype(expected)
    if (array.dtype.kind, array.dtype.names, array.shape[1:]) == (expected.kind, expected.names, like.raw.shape[1:]):
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
    """Return Python objects as numbers if all are, else as words."""
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
    """Return one 64-bit word per row, a hash of its words; a single word keeps its identity."""
    keys = np.zeros(words.shape[0], dtype=np.uint64)
    for column in words.T:
        keys = (keys ^ column) * _ODD
        keys ^= keys >> _SHIFT
    return keys


def _word_keys(array: NDArray[Any]) -> Words:
    texts, place = np.unique(array.reshape(array.shape[0], -1), return_inverse=True)
    digests = [int.from_bytes(blake2b(str(text).encode(), digest_size=8).digest(), "little") for text in texts]
    return _mixed(np.array(digests, dtype=np.uint64)[place.reshape(array.shape[0], -1)])


Reading = Callable[[NDArray[Any], Any], FloatArray]
"""Function of (reports, record) that returns one number per report, larger for stronger evidence of the record."""

MOST_VALUES = 4096
"""Largest number of different reports for each of which a likelihood ratio is estimated."""
_BINS = 32
SHOWN = 6
"""Number of parts of an event that are named in words; the others are counted."""


@dataclass(frozen=True, eq=False)
class Score:
    """A function that assigns a number to each report.

    Parameters
    ----------
    attack : str
        Words for what the score looks at.
    values : callable
        Function of `Reports` that returns an ndarray of shape (n,), finite.
    words : callable
        Function of a `Cut` that returns the event in words.
    """

    attack: str
    values: Callable[[Reports], FloatArray]
    words: Callable[[Cut], str]

    def read(self, reports: Reports) -> FloatArray:
        """Return `values` of these reports; cached, because several events of one score may be judged."""
        if self not in reports.read:
            reports.read[self] = self.values(reports)
        return reports.read[self]


def reading_score(reading: Reading, records: tuple[Any, Any]) -> Score:
    """Return a score from a known reading: its value for the first record minus that for the second.

    Parameters
    ----------
    reading : callable
        See `Reading`.
    records : tuple
        The two records.
    """

    def values(reports: Reports) -> FloatArray:
        return np.nan_to_num(reading(reports.raw, records[0]) - reading(reports.raw, records[1]))

    name = f"how much more the report speaks for {show(records[0])} than for {show(records[1])}"
    return Score("what the report says of each record", values, lambda cut: f"{name} {cut.words}")


def counted_score(first: Reports, second: Reports) -> list[Score]:
    """Return a list of one score: the estimated log-likelihood ratio of each value that a report takes.

    The list is empty if reports take too many different values to be counted.

    Parameters
    ----------
    first, second : Reports
        Reports of the first and of the second record, to learn from.
    """
    keys = np.concatenate((first.keys, second.keys))
    distinct, index, place = np.unique(keys, return_index=True, return_inverse=True)
    if distinct.size > min(MOST_VALUES, keys.size // 4):
        return []
    counts = [np.bincount(part, minlength=distinct.size) for part in (place[: first.n], place[first.n :])]
    ratio = np.log((counts[0] + 0.5) / first.n) - np.log((counts[1] + 0.5) / second.n)
    examples = [first.raw[i] if i < first.n else second.raw[i - first.n] for i in index[:MOST_VALUES]]

    def values(reports: Reports) -> FloatArray:
        at = np.minimum(np.searchsorted(distinct, reports.keys), distinct.size - 1)
        return np.where(distinct[at] == reports.keys, ratio[at], 0.0)

    def words(cut: Cut) -> str:
        inside = np.flatnonzero(cut.hits(ratio))
        listed = ", ".join(sorted(show(examples[i]) for i in inside[:SHOWN]))
        more = f" or one of {inside.size - SHOWN} others" if inside.size > SHOWN else ""
        return f"the report is {listed}{more}" if inside.size == 1 else f"the report is one of: {listed}{more}"

    return [Score("the value of the report", values, words)]


def show(report: Any) -> str:
    """Return a report as a text of at most 60 characters."""
    text = " ".join(str(np.asarray(report).tolist()).split())
    return text if len(text) <= 60 else text[:57] + "..."


def value_score() -> Score:
    """Return the score of a report by its first number."""

    def values(reports: Reports) -> FloatArray:
        return reports.columns[:, 0].astype(np.float64)

    return Score("the first number of the report", values, lambda cut: f"the first number of the report {cut.words}")


def binned_score(first: Reports, second: Reports) -> Score:
    """Return a score of numbers: the estimated log-likelihood ratio of the interval in which a report lies.

    The intervals hold about equally many reports.

    Parameters
    ----------
    first, second : Reports
        Reports of the first and of the second record, to learn from.
    """
    edges, table = bin_column(first.columns[:, 0], second.columns[:, 0], _BINS)

    def values(reports: Reports) -> FloatArray:
        return table[np.searchsorted(edges, reports.columns[:, 0], side="right")]

    def words(cut: Cut) -> str:
        ends = np.concatenate(([-np.inf], edges, [np.inf]))
        parts = [f"[{ends[i]:.5g}, {ends[j]:.5g})" for i, j in stretches(cut.hits(table))]
        more = f" or one of {len(parts) - SHOWN} more intervals" if len(parts) > SHOWN else ""
        return f"the report lies in {', '.join(parts[:SHOWN])}{more}"

    return Score("intervals of the report", values, words)


def stretches(inside: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return start and end (exclusive) of each unbroken run of True entries."""
    turns = np.diff(inside.astype(np.int8), prepend=0, append=0)
    return list(zip(np.flatnonzero(turns > 0).tolist(), np.flatnonzero(turns < 0).tolist(), strict=True))


def bin_column(first: NDArray[Any], second: NDArray[Any], bins: int) -> tuple[FloatArray, FloatArray]:
    """Return the edges of intervals, and the logarithm of the ratio of the two samples' smoothed shares in each.

    Parameters
    ----------
    first, second : ndarray, shape (n,)
        The two samples of one column.
    bins : int
        Largest number of intervals.
    """
    both = np.concatenate((first, second)).astype(np.float64)
    distinct = np.unique(both)
    if distinct.size <= bins:
        edges = distinct[1:]
    else:
        edges = np.unique(np.quantile(both, np.linspace(0.0, 1.0, bins + 1)[1:-1]))
    counts = [
        np.bincount(np.searchsorted(edges, part.astype(np.float64), side="right"), minlength=edges.size + 1)
        for part in (first, second)
    ]
    return edges, np.log((counts[0] + 0.5) / first.size) - np.log((counts[1] + 0.5) / second.size)


def rank_columns(means: tuple[FloatArray, FloatArray], variances: tuple[FloatArray, FloatArray]) -> NDArray[np.int64]:
    """Return the columns that are not constant, ordered by how much their means differ, in standard errors.

    Parameters
    ----------
    means, variances : (ndarray, ndarray), each of shape (columns,)
        Mean of each column under the first and the second record, and that mean's own variance.
    """
    spread = variances[0] + variances[1]
    varied = (spread > 0) | (means[0] != means[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.where(varied, np.abs(means[0] - means[1]) / np.sqrt(spread), -1.0)
    order = np.argsort(-gap, kind="stable")
    return order[varied[order]]


def naive_score(first: Reports, second: Reports, chosen: NDArray[np.int64]) -> Score:
    """Return a score of rows of numbers: the sum of the log-likelihood ratios of the chosen columns.

    Parameters
    ----------
    first, second : Reports
        Reports of the first and of the second record, to learn from.
    chosen : ndarray of int
        Indices of the columns.
    """
    tables = [bin_column(first.columns[:, j], second.columns[:, j], 8) for j in chosen]

    def values(reports: Reports) -> FloatArray:
        total = np.zeros(reports.n)
        for j, (edges, table) in zip(chosen, tables, strict=True):
            total += table[np.searchsorted(edges, reports.columns[:, j].astype(np.float64), side="right")]
        return total

    named = f"column{'s' if chosen.size > 1 else ''} {', '.join(map(str, np.sort(chosen)[:SHOWN]))}"
    named += ", ..." if chosen.size > SHOWN else ""
    return Score(f"{named} of the report", values, lambda cut: f"the log-likelihood ratio of {named} {cut.words}")


def linear_score(first: Reports, second: Reports, chosen: NDArray[np.int64]) -> Score:
    """Return a score of rows of numbers: Fisher's linear discriminant of the chosen columns.

    Parameters
    ----------
    first, second : Reports
        Reports of the first and of the second record, to learn from.
    chosen : ndarray of int
        Indices of the columns.
    """
    parts = [part.columns[:, chosen].astype(np.float64) for part in (first, second)]
    scale = np.maximum(np.concatenate(parts).std(axis=0), TINY)
    parts = [part / scale for part in parts]
    inside = sum(np.cov(part, rowvar=False) for part in parts) + 1e-3 * np.eye(chosen.size)
    weights = np.linalg.solve(inside, parts[0].mean(axis=0) - parts[1].mean(axis=0)) / scale

    def values(reports: Reports) -> FloatArray:
        return reports.columns[:, chosen].astype(np.float64) @ weights

    named = f"a linear score of {chosen.size} columns"
    return Score(named, values, lambda cut: f"{named} {cut.words}")


# Scores of how a float is written: its single bits, and its last one that is not 0.
#
# Two floats that compare as equal may differ (0.0 and -0.0), and noise added in floating point leaves in the last
# digits which record it was added to (Mironov 2012). The attacker sees the bytes, so these scores read the bytes.

MOST_NUMBERS = 8
"""Largest number of numbers in a report whose digits are used."""
_TOP_BITS = (1, 8)
_NO_LAST_BIT = 4096.0
"""Value of `last_bits` for 0 and for what is not finite; above every other value."""


def digit_scores(first: Reports, second: Reports) -> list[Score]:
    """Return learned scores of the bytes of reports that are floats; none for other reports.

    Parameters
    ----------
    first, second : Reports
        Reports of the first and of the second record, at least one each.
    """
    words = [_words(part) for part in (first, second)]
    if words[0] is None or words[1] is None:
        return []
    places = [last_bits(part) for part in (first, second)]
    scores = [_place_score(places[0], places[1], column) for column in range(places[0].shape[1])]
    means = [_means(part) for part in words if part is not None]
    spreads = [mean * (1.0 - mean) / part.n for mean, part in zip(means, (first, second), strict=True)]
    ranked = rank_columns((means[0], means[1]), (spreads[0], spreads[1]))
    return scores + [_bit_score(means, ranked[:most]) for most in _TOP_BITS if most <= ranked.size]


def last_bits(reports: Reports) -> FloatArray:
    """Return the exponent of the last non-zero bit of the first numbers of each report: -2 for 0.75 = 2^-1 + 2^-2.

    Parameters
    ----------
    reports : Reports
        Reports that are floats.

    Returns
    -------
    ndarray, shape (n, numbers)
        The exponents; 4096 for 0, infinities and NaN.
    """
    numbers = _numbers(reports).astype(np.float64)
    finite = np.isfinite(numbers) & (numbers != 0.0)
    fraction, exponent = np.frexp(np.where(finite, np.abs(numbers), 1.0))
    whole = np.ldexp(fraction, 53).astype(np.int64)
    last = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.where(finite, (exponent - 53 + last).astype(np.float64), _NO_LAST_BIT)


def _numbers(reports: Reports) -> NDArray[np.floating]:
    return reports.raw.reshape(reports.n, -1)[:, :MOST_NUMBERS]


def _words(reports: Reports) -> NDArray[np.unsignedinteger] | None:
    """Return the bytes of floats as unsigned integers of their size; None for other reports."""
    if reports.raw.dtype.kind != "f" or reports.raw.dtype.itemsize > 8:
        return None
    numbers = np.ascontiguousarray(_numbers(reports))
    return numbers.view(f"u{numbers.dtype.itemsize}")


def _bit(words: NDArray[np.unsignedinteger], column: int) -> NDArray[np.bool_]:
    """Return bit `column` of each row, the lowest bit of the first number first."""
    number, bit = divmod(column, 8 * words.dtype.itemsize)
    return (words[:, number] >> words.dtype.type(bit)) & words.dtype.type(1) != 0


def _means(words: NDArray[np.unsignedinteger]) -> FloatArray:
    """Return the share of ones of each bit."""
    columns = words.shape[1] * 8 * words.dtype.itemsize
    return np.array([np.count_nonzero(_bit(words, column)) / max(words.shape[0], 1) for column in range(columns)])


def _bit_score(means: list[FloatArray], chosen: NDArray[np.int64]) -> Score:
    """Return a score, the sum of log-likelihood ratios of single bits, their probabilities kept away from 0 and 1."""
    chances = [np.clip(mean[chosen], 1e-4, 1.0 - 1e-4) for mean in means]
    ones = np.log(chances[0]) - np.log(chances[1])
    zeros = np.log1p(-chances[0]) - np.log1p(-chances[1])

    def values(reports: Reports) -> FloatArray:
        words = _words(reports)
        total = np.zeros(reports.n)
        if words is not None:
            for j, one, zero in zip(chosen.tolist(), ones, zeros, strict=True):
                total += np.where(_bit(words, j), one, zero)
        return total

    named = f"bit{'s' if chosen.size > 1 else ''} {', '.join(map(str, np.sort(chosen)))} of the report's bytes"
    return Score(named, values, lambda cut: f"the log-likelihood ratio of {named} {cut.words}")


def _place_score(first: FloatArray, second: FloatArray, column: int) -> Score:
    """Return a score, the likelihood ratio of the position of the last bit of one number."""
    positions = np.unique(np.concatenate((first[:, column], second[:, column])))
    edges, table = bin_column(first[:, column], second[:, column], positions.size)

    def values(reports: Reports) -> FloatArray:
        return table[np.searchsorted(edges, last_bits(reports)[:, column], side="right")]

    def words(cut: Cut) -> str:
        parts = [_stretch(positions[i], positions[j - 1]) for i, j in stretches(cut.hits(table))]
        more = f" or at one of {len(parts) - SHOWN} more places" if len(parts) > SHOWN else ""
        return f"the last binary digit of {which} is {', or '.join(parts[:SHOWN])}{more}"

    which = "the report" if first.shape[1] == 1 else f"number {column} of the report"
    return Score(f"the last binary digit of {which}", values, words)


def _stretch(low: float, high: float) -> str:
    ends = [f"2^{end:.0f}" if end < _NO_LAST_BIT else "none (zero, or no number)" for end in (low, high)]
    return ends[0] if low == high else f"{ends[0]} to {ends[1]}"


# Every score of a report that is learned from two samples: of its value, of its numbers, of its digits.

_TOP_COLUMNS = (1, 2, 4, 16)
_MOST_LINEAR = 64


def fit_scores(first: Reports, second: Reports) -> list[Score]:
    """Return learned scores that separate two samples of reports.

    Parameters
    ----------
    first, second : Reports
        Reports of the first and of the second record, at least one each.
    """
    scores = counted_score(first, second)
    width = first.columns.shape[1]
    if width == 0:
        return scores
    scores.append(value_score())
    if width == 1:
        return [*scores, binned_score(first, second), *digit_scores(first, second)]
    means = [part.columns.mean(axis=0, dtype=np.float64) for part in (first, second)]
    variances = [part.columns.var(axis=0, dtype=np.float64) / part.n for part in (first, second)]
    ranked = rank_columns((means[0], means[1]), (variances[0], variances[1]))
    scores += [naive_score(first, second, ranked[:most]) for most in _TOP_COLUMNS if most <= ranked.size]
    if 2 <= ranked.size <= _MOST_LINEAR:
        scores.append(linear_score(first, second, ranked))
    return scores + digit_scores(first, second)
