"""The questions: what is asked of the records, which randomizers can answer it, and how an answer is viewed.

A question is a public value. It never holds a record. `shuffledp.releases.run.release` asks it. A `Task` is what a
tally needs to know before the first report: all of it public.
"""

from __future__ import annotations

import hashlib
import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput, choice, cut_at_commas, shown
from shuffledp.in_words import near
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.records.columns import Recode
from shuffledp.setting import Seen
from shuffledp.whole_files import read_lines

# The view of an answer: its words, numbers and labels, the same for every renderer.
#
# A `Shape` is what all answers of a question have in common: words and names, known before anything is asked. A `View`
# is one answer: its numbers, computed once, their labels, and sentences. Terminal, page, JSON, tables and groups render
# views without knowing the question; a question makes its view in its own file (`Question.view`).


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
    def of(estimate: Any, level: float, *, simultaneous: bool) -> Numbers:
        """Return the numbers of an estimate, with intervals of a given level.

        Parameters
        ----------
        estimate : Estimate
            An estimate of any kind.
        level : float
            Confidence level, in (0, 1).
        simultaneous : bool
            Whether the intervals hold together.
        """
        low, high = estimate.confidence_interval(level, simultaneous=simultaneous)
        return Numbers(*(np.atleast_1d(column) for column in (estimate.value, estimate.standard_error, low, high)))

    def times(self, records: int) -> Numbers:
        """Return the numbers multiplied by a public number of records: counts of shares, sums of means."""
        error = None if self.error is None else self.error * records
        return Numbers(self.value * records, error, self.low * records, self.high * records)


@dataclass(frozen=True)
class AnswerLine:
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

    def entries(self, places: Iterable[int] | None = None) -> list[AnswerLine]:
        """Return all entries, or those at some indices.

        Parameters
        ----------
        places : iterable of int, optional
            Indices from 0; all by default.
        """
        numbers = self.numbers
        error = np.zeros(self.size) if numbers.error is None else numbers.error
        columns: list[tuple[float, float, float, float]] = np.column_stack(
            (numbers.value, error, numbers.low, numbers.high)
        ).tolist()
        projected = None if self.projected is None else self.projected.tolist()
        entries: list[AnswerLine] = []
        for place in range(self.size) if places is None else places:
            label = tuple(self.labels[place])
            own = None if projected is None else projected[place]
            value, deviation, low, high = columns[place]
            entries.append(AnswerLine(self.name(*label), value, deviation, low, high, own, label))
        return entries

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


def reach(estimate: Any) -> dict[str, Any]:
    """Return what the interval of a difference needs: the largest step of a report, its tails, and the range.

    Parameters
    ----------
    estimate : Estimate
        An estimate of any kind.
    """
    return {"step": estimate.step, "long_tailed": estimate.long_tailed, "range": list(estimate.support)}


def in_bins(value: float, width: float) -> str:
    """Return a value as a text, rounded to a hundredth of the width of its bin.

    Examples
    --------
    >>> in_bins(36.3794, 1.0), in_bins(1e6 + 0.125, 0.125), in_bins(-7.0, 2e9)
    ('36.38', '1.000000125e6', '0')
    """
    rounded = round(value, 2 - math.floor(math.log10(width)))
    return near(rounded, next(digits for digits in range(1, 18) if float(f"{rounded:.{digits}g}") == rounded))


SHUFFLED: tuple[Seen, ...] = ("reports", "levels", "sum")
"""The views of shuffled reports that an analyzer may have."""


SHARES = ("frequency", "histogram")
"""Names of the questions whose answers are shares of public entries, the same entries in every release."""


MEANS = ("mean", "vector-mean")
"""Names of the questions whose answers are means."""


@dataclass(frozen=True)
class Task:
    """The public description of reports, fixed beforehand: their randomizer, the senders' budgets, and what is seen.

    Parameters
    ----------
    randomizer : FrequencyOracle, NumberRandomizer, TwoMoments, RangeTree or VectorRandomizer
        The member of the family that draws the reports; their shape is fixed (`for_budgets`). Its `repr` names all
        its parameters.
    budgets : Budgets
        The local budgets of everybody whose report is tallied.
    seen : {"reports", "levels", "sum"}
        What the tally receives: the reports alone, each report with its level, or the sum alone.
    weights : {"population", "precision"}
        How levels are combined where they are seen; see `shuffledp.questions.frequency.frequency`.

    Raises
    ------
    InvalidInput
        If `seen` or `weights` is unknown.

    Examples
    --------
    >>> from shuffledp.randomizers import RandomizedResponse
    >>> task = Task(RandomizedResponse(3), Budgets((0.5, 2.0), (900, 100)), "levels")
    >>> len(task.fingerprint())
    32
    """

    randomizer: Any
    budgets: Budgets
    seen: Seen
    weights: Weights = "population"

    def __post_init__(self) -> None:
        if self.seen not in SHUFFLED:
            raise InvalidInput(f"reports are tallied as one of {', '.join(SHUFFLED)}; got {shown(self.seen)}")
        choice(self.weights, "weights", WEIGHTS)

    @property
    def by_level(self) -> bool:
        """Whether reports come with their levels, and there is more than one level."""
        return self.seen == "levels" and self.budgets.levels > 1

    def fingerprint(self) -> bytes:
        """Return the SHA-256 (32 bytes) of everything that defines the task.

        Hashed are the lines "shuffledp task 1", the randomizer's class and `repr`, `seen`, the weights if levels are
        seen (else an empty line), the number of levels, and then epsilon0, delta0 (doubles) and counts (64-bit whole
        numbers) of all levels, ascending, in little-endian order.
        """
        return self._digest

    @cached_property
    def _digest(self) -> bytes:
        kind = type(self.randomizer)
        weights = self.weights if self.seen == "levels" else ""
        lines = ("shuffledp task 1", kind.__qualname__, repr(self.randomizer), self.seen, weights, self.budgets.levels)
        digest = hashlib.sha256("".join(f"{line}\n" for line in lines).encode())
        for column, form in (
            (self.budgets.epsilons, "<f8"),
            (self.budgets.deltas, "<f8"),
            (self.budgets.counts, "<i8"),
        ):
            digest.update(np.ascontiguousarray(column, dtype=form).tobytes())
        return digest.digest()


# How reports of different budgets are weighted, and for how many people of equal weight they stand then.
#
# **A few people may carry an estimate.** With weights w_i of the people, which add up to 1, an estimate tells of the
# people what a sample of 1/sum w_i^2 of them would (Kish 1965). Two loud people among a thousand quiet ones are a
# sample of two, and what such a sample says of its own variance is worth little: where both are alike it says that
# there is none. So before a share, a mean or a mean square of the people enters a variance, it is shrunk as if
# `SMOOTHING` more people had come, half from each end of its range (Agresti and Coull 1998). For two people that is
# nearly the largest variance there can be; for a thousand it is nothing.

Weights = Literal["population", "precision"]


WEIGHTS: tuple[Weights, ...] = ("population", "precision")


SMOOTHING = 4.0
"""Number of fictitious people added before an estimate is put into its own variance."""


def effective_number(total: float, squares: float) -> float:
    """Return the effective number of people, (sum w)^2 / sum w^2: from 1 to the number of weights.

    Parameters
    ----------
    total, squares : float
        Sum of non-negative weights w, and the sum of their squares, positive.

    Examples
    --------
    >>> effective_number(3.0, 3.0), effective_number(1.0, 1.0)
    (3.0, 1.0)
    """
    return total**2 / squares


LONGEST_LIST = 1 << 26
"""Largest size, in bytes, of a file of categories or groups."""

Answers = Literal["number", "shares", "cells", "vector", "ranges", "items"]
"""Kind of a question's answer: a number, shares, cells of a table, a vector, quantiles and ranges, or items found."""

SHARES_SEEN: tuple[Seen, ...] = ("reports", "levels")


@dataclass(frozen=True)
class Question(ABC):
    """Base of the questions."""

    name: ClassVar[str]
    """Name of the command that asks the question, such as ``"mean"``."""
    reads: ClassVar[Literal["texts", "numbers"]]
    """Whether records are read as words or as numbers."""
    views: ClassVar[tuple[Seen, ...]] = SHARES_SEEN
    """The views of the reports that the analyzer may have, see `Setting.seen`."""
    mechanisms: ClassVar[tuple[str, ...]]
    """Names of the randomizers that can answer the question; the first is the default."""
    shape: ClassVar[Shape]
    """Titles, headings and names that all answers of the question share, for renderers."""
    answers: ClassVar[Answers]
    """Kind of the answer."""
    words: ClassVar[tuple[tuple[str, ...], tuple[str, ...]] | None] = None
    """Names of the required and of the optional words after the column, in order.

    None if it cannot be asked in words.
    """

    @classmethod
    def typed(cls, parameters: Mapping[str, Any]) -> Self:
        """Build the question from parameters that were typed or read from a file.

        Parameters
        ----------
        parameters : mapping of str to object
            The question's parameters by name, as texts or as values. Other keys are ignored. A parameter that is None
            or absent gets its default.

        Raises
        ------
        InvalidInput
            If a required parameter is absent, or a value is not allowed.
        ValueError
            If a text is no number where one is needed.
        """
        read: dict[str, Any] = {}
        for name, parameter in inspect.signature(cls).parameters.items():
            given = parameters.get(name)
            if given is not None:
                read[name] = _READ.get(name, lambda name, given: given)(name, given)
            elif parameter.default is parameter.empty:
                raise InvalidInput(_NEEDED.get(name, f"`{name}` is needed"), name)
        return cls(**read)

    @classmethod
    def told(cls, words: Sequence[str]) -> Self:
        """Build the question from the words after its column, whose names and order are in `words`.

        Raises
        ------
        InvalidInput, ValueError
            As for `typed`; and ValueError if there are too few or too many words.
        """
        needed, more = cls.words or ((), ())
        if cls.words is None or not len(needed) <= len(words) <= len(needed) + len(more):
            raise ValueError(f"{cls.name} takes other words")
        return cls.typed(dict(zip((*needed, *more), words, strict=False)))

    @abstractmethod
    def randomizer(self, mechanism: str, budgets: Budgets, seen: Seen) -> Any:
        """Return the randomizer of a name with the parameters that fit these public budgets.

        Parameters
        ----------
        mechanism : str
            One of `mechanisms`.
        budgets : Budgets
            The population.
        seen : str
            One of `views`.

        Raises
        ------
        InvalidInput
            If there is no such mechanism, or it cannot serve these budgets or this view.
        """

    @abstractmethod
    def records(self, columns: Sequence[Any], recode: Recode, before: int) -> NDArray[Any]:
        """Convert the columns of the records to the randomizer's input, one entry or row per record.

        Parameters
        ----------
        columns : sequence of columns
            As read from the data, all of one length; one column for every question but the mean of vectors.
        recode : Recode
            How missing records and records outside the question's domain are replaced.
        before : int
            Number of rows before these, for the row number in an error.

        Raises
        ------
        InvalidInput
            For the first record that the question does not cover and `recode` does not map.
        """

    @abstractmethod
    def view(
        self,
        estimate: Any,
        records: int,
        *,
        level: float = CONFIDENCE,
        simultaneous: bool = False,
        simplex: bool = False,
    ) -> View:
        """Return the words, numbers and labels of an answer for renderers; see `shuffledp.questions.question`.

        Parameters
        ----------
        estimate : Estimate or RangeEstimate
            The analyzer's answer.
        records : int
            Number of records used; public.
        level : float
            Confidence level of the intervals, in (0, 1).
        simultaneous : bool
            True: all intervals hold together with `level`. False: each holds by itself.
        simplex : bool
            Whether the view also has the shares projected to the simplex (`project_to_simplex`), if the answer is
            shares.

        Raises
        ------
        InvalidInput
            If level is not in (0, 1).
        """

    def settled(self, recode: Recode) -> Recode:
        """Return ``recode`` after checking, before any record is read, that it maps into this question's domain."""
        return recode

    def views_of(self, mechanism: str) -> tuple[Seen, ...]:
        """Return the views among `views` that a mechanism serves."""
        del mechanism
        return self.views

    def draw(
        self, randomizer: Any, records: NDArray[Any], epsilons: ArrayLike, deltas: ArrayLike, random: Randomness
    ) -> NDArray[Any]:
        """Draw a report for each record under its own budget.

        Parameters
        ----------
        randomizer : object
            From `randomizer`.
        records : ndarray, first axis n
            From `records`.
        epsilons, deltas : float or ndarray, shape (n,)
            Local budgets: epsilon0 in nats, and delta0.
        random : Randomness
            Source of the noise.
        """
        del deltas
        return randomizer.randomize(records, epsilons, random)

    @property
    def labels(self) -> tuple[Hashable, ...] | None:
        """The label of each entry of the estimate: a category, or a bin as (low, high); None for a single number."""
        return None

    @property
    def column_count(self) -> int:
        """Number of columns that hold one record."""
        return 1

    def named_by(self, columns: Sequence[str]) -> Question:
        """Return this question with the columns that hold its records as names, where its answer has one for each."""
        del columns
        return self

    def answer(self, estimate: Any, task: Task) -> Any:
        """Return the answer that a release holds, from what the tally estimated.

        Parameters
        ----------
        estimate : Estimate or RangeEstimate
            The tally's estimate.
        task : Task
            The task of the tally.
        """
        del task
        return estimate


HOMES: Mapping[str, str] = {
    "mean": "mean.Mean",
    "frequency": "frequency.Frequency",
    "crosstab": "crosstab.Crosstab",
    "frequent-items": "items.FrequentItems",
    "histogram": "ranges.Histogram",
    "quantiles": "ranges.Quantiles",
    "variance": "variance.Variance",
    "vector-mean": "vectors.VectorMean",
}
"""Module and class of each question, by name; only the question in use is imported."""


def question_type(name: str) -> type[Question]:
    """Return the class of the question of a name.

    Raises
    ------
    InvalidInput
        If there is none.
    """
    module, _, kind = HOMES[choice(name, "kind", HOMES)].partition(".")
    return getattr(import_module(f"shuffledp.questions.{module}"), kind)


# What is typed, read: a text as a number or as a list; what is no text stays as it is.


def read_list(name: str, given: Any) -> Any:
    """Return categories or candidates, from a text or from any other value, which is returned unchanged.

    Parameters
    ----------
    name : str
        Name of the option, for messages.
    given : object
        A comma-separated list (quotes as in CSV), or the name of a file with one entry per line.
    """
    if not isinstance(given, str):
        return given
    option = f"`{name}`"
    if "," in given and not Path(given).exists():
        words = cut_at_commas(given)
        if not words:
            raise InvalidInput(f"{option} {shown(given)} is no line of names with a comma between them")
        if not all(words):
            raise InvalidInput(f"{option} {shown(given)} holds an empty name; take out the comma that is too many")
        return list(words)
    try:
        lines = read_lines(Path(given), f"--{name}", LONGEST_LIST)
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(
            f"{option} {shown(given)} is neither a list of two or more (A,B,C) nor a file with one per line"
        ) from None
    names = [line.strip() for line in lines if line.strip()]
    if len(names) < 2:
        raise InvalidInput(f"{option} {given} holds {len(names)} of the {name}; write two or more, one per line")
    return names


def read_groups(text: str) -> tuple[str, ...]:
    """Return group names from a comma-separated text (quotes as in CSV), or from a file with one per line."""
    if Path(text).is_file():
        try:
            lines = read_lines(Path(text), "--groups", LONGEST_LIST)
        except (OSError, UnicodeDecodeError):
            raise InvalidInput(f"`groups` {shown(text)} cannot be read as a text file in UTF-8") from None
        names = tuple(line.strip() for line in lines if line.strip())
    else:
        names = cut_at_commas(text)
    if not names or not all(names):
        raise InvalidInput(f"`groups` needs names with a comma between them; got {shown(text)}")
    return names


def _read_at(name: str, given: Any) -> Any:
    """Return probabilities of quantiles from a comma-separated text: numbers strictly between 0 and 1, each once."""
    if not isinstance(given, str):
        return given
    wanted: list[float] = []
    for word in given.split(","):
        try:
            value = float(word)
        except ValueError:
            value = -1.0
        if not 0.0 < value < 1.0:
            raise InvalidInput(
                f"`{name}` needs numbers strictly between 0 and 1 with a comma between them, such as 0.25,0.5,0.75; "
                f"got {shown(given)}"
            )
        if value in wanted:
            raise InvalidInput(f"`{name}` names {word.strip()} twice; name each quantile once")
        wanted.append(value)
    return tuple(wanted)


def _number(name: str, given: Any) -> Any:
    del name
    return float(given) if isinstance(given, str) else given


def _whole(name: str, given: Any) -> Any:
    del name
    return int(given) if isinstance(given, str) else given


_READ: Mapping[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(("low", "high", "norm", "false_positives"), _number),
    **dict.fromkeys(("bins", "branching", "max_length", "dimension"), _whole),
    **dict.fromkeys(("categories", "candidates", "rows", "columns"), read_list),
    "at": _read_at,
}
_RANGE = "is needed: the range must be known beforehand, as reading it off the data would leak"
_NEEDED: Mapping[str, str] = {
    **{
        name: f"`{name}` is needed: all categories of the {which} column must be known beforehand, as reading them off "
        f"the data would leak; write --{name} A,B,C or name a text file with one per line"
        for name, which in (("rows", "first"), ("columns", "second"))
    },
    "low": f"`low` {_RANGE}",
    "high": f"`high` {_RANGE}",
    "categories": "`categories` is needed: they must be known beforehand, as reading them off the data would leak; "
    "write --categories A,B,C or name a text file with one per line",
}
"""Error message for each parameter that is required and absent."""
