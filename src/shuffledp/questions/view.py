"""The view of an answer: its words, numbers and labels, the same for every renderer.

A `Shape` is what all answers of a question have in common: words and names, known before anything is asked. A `View` is
one answer: its numbers, computed once, their labels, and sentences. Terminal, page, JSON, tables and groups render
views without knowing the question; a question makes its view in its own file (`Question.view`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from shuffledp.in_words import near
from shuffledp.numerics.interval import FloatArray

CONFIDENCE = 0.95
"""Default confidence level of the intervals that are shown."""


@dataclass(frozen=True)
class Picture:
    """How an answer is drawn as a figure.

    Parameters
    ----------
    kind : {"point", "bars", "bins", "distribution"}
        One number on a stretch of its range; a bar for each entry; bars of neighbouring bins; a curve with quantiles.
    legend : tuple of (str, str)
        Style of a mark and its meaning; ``{confidence}`` is replaced by the level, ``{each}`` by an entry of `each`.
    truth : str
        Meaning of the mark of the true values, where these are known; "" where they are not drawn.
    each : tuple of (str, str)
        Words on the intervals if each holds by itself, and if all hold together.
    said : str
        A sentence before the legend, which is then a list.
    most : int or None
        Largest number of entries drawn; None for all.
    """

    kind: Literal["point", "bars", "bins", "distribution"]
    legend: tuple[tuple[str, str], ...]
    truth: str = ""
    each: tuple[str, str] = ("", "")
    said: str = ""
    most: int | None = None


@dataclass(frozen=True)
class Shape:
    """The words and names that all answers of a question have in common.

    Parameters
    ----------
    title : str
        Name of the answer, such as "Frequencies" or "Mean".
    asked : str
        The question in words; ``{0}`` is replaced by the column, ``{1}`` by a word on values moved into the range.
    heading : str
        Name of the numbers, such as "share".
    scale : {"share", "number", "place"}
        How numbers are written: in percent, to the digit of their error, or to a hundredth of a bin.
    label : str
        Name of the labels, such as "category"; "" if the answer is one number.
    keys : tuple of str
        Keys of the parts of a label in machine-readable output, such as ("low", "high").
    key : str
        Key of the number in machine-readable output.
    amount : {"count", "sum", ""}
        Name of the number of records times the estimate; "" if it has no meaning.
    picture : Picture or None
        How the answer is drawn.
    excerpt : {"all", "largest", "first", "spread"}
        Which entries a terminal shows if there are very many.
    noun : str
        Name of all entries together, such as "coordinates".
    folded : bool
        Whether a page hides its table behind a picture until it is opened.
    read : tuple of (str, str)
        How to read the intervals on a page: each by itself, and all together.
    chosen : bool
        Whether the data select the entries, so that their intervals can only hold together.
    short : tuple of str
        Headings of number and error on a terminal, where they are not `heading` and "standard error".
    nothing : str
        Sentence that replaces the table if there is no entry.
    """

    title: str
    asked: str
    heading: str
    scale: Literal["share", "number", "place"]
    label: str = ""
    keys: tuple[str, ...] = ()
    key: str = "estimate"
    amount: Literal["count", "sum", ""] = ""
    picture: Picture | None = None
    excerpt: Literal["all", "largest", "first", "spread"] = "all"
    noun: str = ""
    folded: bool = False
    read: tuple[str, str] = ("", "")
    chosen: bool = False
    short: tuple[str, ...] = ()
    nothing: str = ""


@dataclass(frozen=True, eq=False)
class Numbers:
    """Estimates with their errors and intervals, one entry each.

    Parameters
    ----------
    value : ndarray, shape (k,)
        Estimates, unbiased, so they may leave the possible range.
    error : ndarray, shape (k,), or None
        Standard errors; None where only an interval is stated.
    low, high : ndarray, shape (k,)
        Ends of the confidence intervals.
    """

    value: FloatArray
    error: FloatArray | None
    low: FloatArray
    high: FloatArray

    @staticmethod
    def of(found: Any, level: float, *, simultaneous: bool) -> Numbers:
        """Return the numbers of an estimate, with intervals of a given level.

        Parameters
        ----------
        found : Estimate
            An estimate of any kind.
        level : float
            Confidence level, in (0, 1).
        simultaneous : bool
            Whether the intervals hold together.
        """
        low, high = found.confidence_interval(level, simultaneous=simultaneous)
        return Numbers(*(np.atleast_1d(column) for column in (found.value, found.standard_error, low, high)))

    def times(self, records: int) -> Numbers:
        """Return the numbers multiplied by a public number of records: counts of shares, sums of means."""
        error = None if self.error is None else self.error * records
        return Numbers(self.value * records, error, self.low * records, self.high * records)


@dataclass(frozen=True)
class Entry:
    """One number of an answer, with its label and interval.

    Parameters
    ----------
    name : str
        The label for people; "" for an answer of one number.
    value : float
        Estimate.
    error : float
        Standard error; 0 where there is none.
    low, high : float
        Ends of the confidence interval.
    projected : float or None
        The share after projection to the simplex, where it was asked for: biased, without an error of its own.
    label : tuple
        The label for programs: a category, the edges of a bin, the index of a coordinate from 0, the probability of a
        quantile.
    """

    name: str
    value: float
    error: float
    low: float
    high: float
    projected: float | None = None
    label: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False)
class Curve:
    """An estimated distribution function at the edges of bins, in ascending order.

    Parameters
    ----------
    value : ndarray, shape (edges,)
        The edges.
    below, standard_error : ndarray, shape (edges,)
        Estimated fraction of the people below each edge, unbiased, so not always increasing; and its standard error.
    low, high : ndarray, shape (edges,)
        Ends of its confidence interval, for each edge by itself.
    rising : ndarray, shape (edges,)
        The non-decreasing distribution function closest to the estimates, from which quantiles are read.
    """

    value: FloatArray
    below: FloatArray
    standard_error: FloatArray
    low: FloatArray
    high: FloatArray
    rising: FloatArray

    def some(self, most: int) -> Curve:
        """Return the curve at up to `most` evenly spread edges, including both ends."""
        size = self.value.size
        picked = np.unique(np.linspace(0, size - 1, min(most, size)).round().astype(np.int64))
        return Curve(*(np.asarray(column)[picked] for column in vars(self).values()))


@dataclass(frozen=True, eq=False)
class View:
    """One answer of a question: its numbers, their labels, and sentences.

    Parameters
    ----------
    shape : Shape
        Words and names that all answers of the question have in common.
    numbers : Numbers
        The answer.
    labels : sequence of tuple
        Label of each number, in the order of `Shape.keys`; one empty tuple for a single number.
    name : callable
        Function of the parts of a label that returns it as a text for people.
    simultaneous : bool
        Whether the intervals hold together.
    support : tuple of float or None
        Range of possible values, where an estimate may leave it.
    records : int
        Number of records, which counts and sums are multiples of.
    range : tuple of float or None
        The range into which values may have been moved.
    width : float
        Width of a bin, where numbers are places in bins.
    told : str
        Words for the page on how people were asked, after their number.
    more : str
        A sentence that follows the numbers, with a further result.
    sentences : tuple of str
        What a reader must know of this answer.
    before, after : mapping
        Further fields of machine-readable output, before the estimates and after them.
    projected : ndarray or None
        The shares projected to the simplex, where they were asked for.
    curve : Curve or None
        The distribution function from which quantiles are read.
    """

    shape: Shape
    numbers: Numbers
    labels: Sequence[tuple[Any, ...]] = ((),)
    name: Callable[..., str] = str
    simultaneous: bool = False
    support: tuple[float, float] | None = None
    records: int = 0
    range: tuple[float, float] | None = None
    width: float = 1.0
    told: str = ""
    more: str = ""
    sentences: tuple[str, ...] = ()
    before: Mapping[str, Any] = field(default_factory=dict[str, Any])
    after: Mapping[str, Any] = field(default_factory=dict[str, Any])
    projected: FloatArray | None = None
    curve: Curve | None = None

    @property
    def size(self) -> int:
        """Number of entries of the answer."""
        return self.numbers.value.size

    @property
    def amounts(self) -> Numbers | None:
        """Counts or sums: the numbers times the number of records; None where the question has neither."""
        return self.numbers.times(self.records) if self.shape.amount else None

    def entries(self, places: Iterable[int] | None = None) -> list[Entry]:
        """Return all entries, or those at some indices.

        Parameters
        ----------
        places : iterable of int, optional
            Indices from 0; all by default.
        """
        known = self.numbers
        error = np.zeros(self.size) if known.error is None else known.error
        columns: list[tuple[float, float, float, float]] = np.column_stack(
            (known.value, error, known.low, known.high)
        ).tolist()
        projected = None if self.projected is None else self.projected.tolist()
        found: list[Entry] = []
        for place in range(self.size) if places is None else places:
            label = tuple(self.labels[place])
            own = None if projected is None else projected[place]
            value, deviation, low, high = columns[place]
            found.append(Entry(self.name(*label), value, deviation, low, high, own, label))
        return found

    def places(self, most: int) -> list[int]:
        """Return the indices of the entries that are shown if there are very many, as the shape states.

        Parameters
        ----------
        most : int
            Largest number of entries shown.
        """
        size, excerpt = self.size, self.shape.excerpt
        if size <= most or excerpt == "all":
            return list(range(size))
        if excerpt == "spread":  # the first and the last among them
            return [round(i * (size - 1) / (most - 1)) for i in range(most)]
        if excerpt == "largest":
            return np.argsort(-self.numbers.value, kind="stable")[:most].tolist()
        return list(range(most))


def reach(found: Any) -> dict[str, Any]:
    """Return what the interval of a difference needs: the largest step of a report, its tails, and the range.

    Parameters
    ----------
    found : Estimate
        An estimate of any kind.
    """
    return {"step": found.step, "long_tailed": found.long_tailed, "range": list(found.support)}


def in_bins(value: float, width: float) -> str:
    """Return a value as a text, rounded to a hundredth of the width of its bin.

    Examples
    --------
    >>> in_bins(36.3794, 1.0), in_bins(1e6 + 0.125, 0.125), in_bins(-7.0, 2e9)
    ('36.38', '1.000000125e6', '0')
    """
    rounded = round(value, 2 - math.floor(math.log10(width)))
    return near(rounded, next(digits for digits in range(1, 18) if float(f"{rounded:.{digits}g}") == rounded))
