"""What a question says of its answer: words, numbers and labels, for every renderer alike.

A `Shape` is what all answers of a question have in common: words and names, known before anything is asked. A `View` is
one answer: its numbers, computed once, what names each of them, and sentences. Terminal, page, JSON, tables and groups
render views and know no question; a question makes its view in its own file (`Question.view`).
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
"""Level of the confidence intervals that are shown."""


@dataclass(frozen=True)
class Picture:
    """How an answer is drawn.

    Parameters
    ----------
    kind : {"point", "bars", "bins", "distribution"}
        One number on a stretch of its range; a bar for each entry; bars of neighbouring bins; a curve with quantiles.
    legend : tuple of (str, str)
        Style of a sign, and what it stands for; ``{confidence}`` stands for the level, ``{each}`` for the next entry.
    truth : str
        What the sign of the true values stands for, where these are known; "" where they are not drawn.
    each : tuple of (str, str)
        What is said of the intervals if each holds by itself, and if all hold together.
    said : str
        A sentence before the legend, which is then a list.
    most : int or None
        Entries that are drawn at most; None for all.
    """

    kind: Literal["point", "bars", "bins", "distribution"]
    legend: tuple[tuple[str, str], ...]
    truth: str = ""
    each: tuple[str, str] = ("", "")
    said: str = ""
    most: int | None = None


@dataclass(frozen=True)
class Shape:
    """What all answers of a question have in common.

    Parameters
    ----------
    title : str
        What the answer is, such as "Frequencies" or "Mean".
    asked : str
        The question in words; ``{0}`` stands for the column, ``{1}`` for a word on values moved into the range.
    heading : str
        What each number is, such as "share".
    scale : {"share", "number", "place"}
        How numbers are written: in percent, to the digit of their error, or to a hundredth of a bin.
    label : str
        What names an entry, such as "category"; "" if the answer is one number.
    keys : tuple of str
        What a program calls the parts of a label, such as ("low", "high").
    key : str
        What a program calls the number.
    amount : {"count", "sum", ""}
        What the number of records times the estimate is, if anything.
    picture : Picture or None
        How it is drawn.
    excerpt : {"all", "largest", "first", "spread"}
        Which entries a terminal shows of very many.
    noun : str
        What the entries are together, such as "coordinates".
    folded : bool
        Whether a page keeps its table behind a picture.
    read : tuple of (str, str)
        How to read the intervals on a page: each by itself, and all together.
    chosen : bool
        Whether the data choose the entries, so that their intervals can only hold together.
    short : tuple of str
        Headings of number and error on a terminal, where they are not `heading` and "standard error".
    nothing : str
        What is said where there is no entry.
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
    """Estimates with their errors and intervals, one of each an entry.

    Parameters
    ----------
    value : ndarray, shape (k,)
        Estimates, unbiased, so they may leave the possible range.
    error : ndarray, shape (k,), or None
        Standard errors; None where an interval tells it all.
    low, high : ndarray, shape (k,)
        Ends of the confidence intervals.
    """

    value: FloatArray
    error: FloatArray | None
    low: FloatArray
    high: FloatArray

    @staticmethod
    def of(found: Any, level: float, *, simultaneous: bool) -> Numbers:
        """Take the numbers of an estimate, with intervals of that level.

        Parameters
        ----------
        found : Estimate
            Any.
        level : float
            Confidence level, in (0, 1).
        simultaneous : bool
            Whether the intervals hold together.
        """
        low, high = found.confidence_interval(level, simultaneous=simultaneous)
        return Numbers(*(np.atleast_1d(column) for column in (found.value, found.standard_error, low, high)))

    def times(self, records: int) -> Numbers:
        """Multiply by a public number of records: counts of shares, sums of means."""
        error = None if self.error is None else self.error * records
        return Numbers(self.value * records, error, self.low * records, self.high * records)


@dataclass(frozen=True)
class Entry:
    """One number of an answer.

    Parameters
    ----------
    name : str
        What it is about, as people read it; "" for an answer of one number.
    value : float
        Estimate.
    error : float
        Standard error; 0 where there is none.
    low, high : float
        Ends of the confidence interval.
    projected : float or None
        Entry of the nearest shares that could be, where they were asked for: biased, without an error of its own.
    label : tuple
        What it is about, as a program reads it: a category, the edges of a bin, the place of a coordinate from 0, the
        probability of a quantile.
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
    """A distribution function at the edges of bins, from the lowest to the highest.

    Parameters
    ----------
    value : ndarray, shape (edges,)
        The edges.
    below, standard_error : ndarray, shape (edges,)
        Estimated fraction of the people below each, unbiased, so not always rising; and its standard error.
    low, high : ndarray, shape (edges,)
        Ends of its confidence interval, for each edge by itself.
    rising : ndarray, shape (edges,)
        The rising distribution function closest to the estimates, off which quantiles are read.
    """

    value: FloatArray
    below: FloatArray
    standard_error: FloatArray
    low: FloatArray
    high: FloatArray
    rising: FloatArray

    def some(self, most: int) -> Curve:
        """Return all edges, or `most` spread evenly, both ends among them."""
        size = self.value.size
        picked = np.unique(np.linspace(0, size - 1, min(most, size)).round().astype(np.int64))
        return Curve(*(np.asarray(column)[picked] for column in vars(self).values()))


@dataclass(frozen=True, eq=False)
class View:
    """What a question says of its answer.

    Parameters
    ----------
    shape : Shape
        What all answers of the question have in common.
    numbers : Numbers
        The answer.
    labels : sequence of tuple
        What each number is about, in the order of `Shape.keys`; one empty tuple for a single number.
    name : callable
        Says a label as people read it.
    simultaneous : bool
        Whether the intervals hold together.
    support : tuple of float or None
        Range of what can be, where an estimate may leave it.
    records : int
        How many records there are: of what counts and sums are.
    range : tuple of float or None
        The range into which values may have been moved.
    width : float
        Of a bin, where numbers are places in bins.
    told : str
        What the page says of how people were asked, after their number.
    more : str
        A sentence that follows a number.
    sentences : tuple of str
        What a reader must know of this answer.
    before, after : mapping
        What a program is told besides, before the estimates and after them.
    projected : ndarray or None
        The nearest shares that could be, where they were asked for.
    curve : Curve or None
        The distribution function that quantiles are read off.
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
        """How many entries there are."""
        return self.numbers.value.size

    @property
    def amounts(self) -> Numbers | None:
        """Counts or sums; None where the question has neither."""
        return self.numbers.times(self.records) if self.shape.amount else None

    def entries(self, places: Iterable[int] | None = None) -> list[Entry]:
        """List the entries, or those at some places.

        Parameters
        ----------
        places : iterable of int, optional
            From 0; all by default.
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
        """Return which entries are shown of very many, as the shape says.

        Parameters
        ----------
        most : int
            Entries that are shown at most.
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
    """Return what the interval of a difference needs besides: the largest step of a report, and the range.

    Parameters
    ----------
    found : Estimate
        Any.
    """
    return {"step": found.step, "long_tailed": found.long_tailed, "range": list(found.support)}


def in_bins(value: float, width: float) -> str:
    """Show a value to a hundredth of the width of its bin.

    Examples
    --------
    >>> in_bins(36.3794, 1.0), in_bins(1e6 + 0.125, 0.125), in_bins(-7.0, 2e9)
    ('36.38', '1.000000125e6', '0')
    """
    rounded = round(value, 2 - math.floor(math.log10(width)))
    return near(rounded, next(digits for digits in range(1, 18) if float(f"{rounded:.{digits}g}") == rounded))
