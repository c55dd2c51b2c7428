"""Releases: an estimate together with its guarantee, never one without the other."""

from __future__ import annotations

import html
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import Brief, InvalidInput, Told
from shuffledp.numerics.floats import FloatArray
from shuffledp.questions.question import Question, Weights
from shuffledp.setting import Guarantee
from shuffledp.tables.table import handed_over

if TYPE_CHECKING:
    import polars as pl
    import typing_extensions

    from shuffledp.ledger import LevelTotal
    from shuffledp.questions.crosstab import Independence
    from shuffledp.questions.estimate import CountEstimate
    from shuffledp.questions.items import ItemsEstimate
    from shuffledp.questions.ranges import RangeEstimate
    from shuffledp.releases.margins import Margins, Weighted

    R = typing_extensions.TypeVar("R", bound="Release", default="Release", covariant=True)
else:  # before Python 3.13 a type variable has no default
    R = TypeVar("R")


# Counts and sums: shares and means times the number of records, which is public.


@dataclass(frozen=True, eq=False, repr=False)
class Amounts(Brief):
    """Counts of records, or sums over them, with their intervals.

    Parameters
    ----------
    estimate : float or ndarray
        Unbiased where the share or mean is, so it may leave the possible range.
    standard_error : float or ndarray
        In the shape of `estimate`.
    low, high : float or ndarray
        Ends of the confidence interval, in the shape of `estimate`.
    records : int
        Number of records that are counted or summed.

    Examples
    --------
    >>> Amounts.scaled(0.25, 0.05, (0.15, 0.35), 200).estimate
    50.0
    """

    estimate: float | FloatArray
    standard_error: float | FloatArray
    low: float | FloatArray
    high: float | FloatArray
    records: int

    @classmethod
    def scaled(
        cls,
        estimate: float | FloatArray,
        standard_error: float | FloatArray,
        interval: tuple[float | FloatArray, float | FloatArray],
        records: int,
    ) -> Amounts:
        """Return a share or a mean, with its error and interval, multiplied by the number of records.

        Parameters
        ----------
        estimate, standard_error : float or ndarray
            The share or mean, and its standard error.
        interval : tuple of float or ndarray
            Both ends of its interval.
        records : int
            Number of records; public, so it adds no error, and the level of the interval stays.
        """
        low, high = interval
        return cls(estimate * records, standard_error * records, low * records, high * records, records)


@dataclass(frozen=True, eq=False, repr=False)
class Release(Told):
    """A released estimate together with its guarantee.

    Parameters
    ----------
    question : Question
        What was asked.
    analysis : Estimate or RangeEstimate
        The analyzer's answer.
    guarantee : Guarantee
        The certified central guarantee, computed before a record was touched.
    n : int
        Number of people: of owners where `unit` is "people", else of rows.
    rows : int
        Number of records used; above n where people own several.
    mechanism : str
        The randomizer's name, such as ``"krr:5"`` or ``"one-bit"``.
    private : bool
        False if the noise came from `simulation_random`: then nothing here is private.
    weights : {"population", "precision"} or None
        How levels were combined; None where they were withheld (budget-weighted).
    unit : {"rows", "people", "reports"}
        "people": a person column told whose row each is, or everybody had one code. "rows", "reports": each row of a
        table, or each report of an open collection, was taken as a person.
    clipped : bool
        Whether values outside the range were moved to its nearer end.
    fingerprint : str
        SHA-256, in hexadecimal, of all that was public beforehand: randomizer, budgets, view and weights; never of
        records.
    where : mapping of str to tuple of hashable
        Public values of the rows that were asked, by column; empty: all rows were.
    lowered : float
        Factor, in (0, 1], by which every budget of a column was multiplied to meet a target; 1: none was lowered.
    """

    question: Question
    analysis: Any = field(repr=False)
    guarantee: Guarantee = field(repr=False)
    n: int
    rows: int
    mechanism: str
    private: bool
    weights: Weights | None = None
    unit: Literal["rows", "people", "reports"] = "rows"
    clipped: bool = False
    fingerprint: str = ""
    where: Mapping[str, tuple[Hashable, ...]] = field(default_factory=dict[str, tuple[Hashable, ...]])
    lowered: float = 1.0

    @property
    def categories(self) -> tuple[Hashable, ...] | None:
        """The categories, or bins as (low, high), in the order of `estimate`; None for a single number."""
        return self.question.labels

    @property
    def estimate(self) -> float | FloatArray:
        """The estimate: a float, or shares of shape (k,); unbiased, so it may leave the possible range."""
        return _plain(self.analysis.value)

    @property
    def standard_error(self) -> float | FloatArray:
        """Standard error of `estimate`, in its shape, from the reports alone."""
        return _plain(self.analysis.standard_error)

    @property
    def uninformative(self) -> int:
        """Number of users whose report carries no information (epsilon0 = 0).

        They are assumed to be like the others.
        """
        return self.analysis.uninformative

    def confidence_interval(
        self, level: float = 0.95, *, simultaneous: bool = False
    ) -> tuple[float | FloatArray, float | FloatArray]:
        """Return the lower and upper end of a confidence interval, each in the shape of `estimate`.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).
        simultaneous : bool
            True: the intervals of all entries hold together with that confidence. False: each holds by itself.

        Raises
        ------
        InvalidInput
            If level is not in (0, 1).
        """
        lower, upper = self.analysis.confidence_interval(level, simultaneous=simultaneous)
        return _plain(lower), _plain(upper)

    def counts(self, level: float = 0.95, *, simultaneous: bool = False) -> Amounts:
        """Return the estimated number of records in each category or bin: `rows` times the shares.

        The number of records is public, so this costs no privacy. People have the same weights as in the shares.

        Parameters
        ----------
        level, simultaneous
            As for `confidence_interval`.

        Raises
        ------
        InvalidInput
            If the question is not about shares, or level is not in (0, 1).

        Examples
        --------
        >>> import shuffledp as sdp
        >>> votes = ["yes"] * 300 + ["no"] * 700
        >>> release = sdp.estimate_frequency(votes, ["yes", "no"], 2.0, seen="reports", delta=1e-6)
        >>> release.counts().records
        1000
        """
        if self.question.shape.amount != "count":
            raise InvalidInput(f"only shares have counts; the question was a {self.question.name}")
        return self._amounts(level, simultaneous=simultaneous)

    def sum(self, level: float = 0.95, *, simultaneous: bool = False) -> Amounts:
        """Return the sum of the records: `rows` times the mean; of vectors, coordinate by coordinate.

        Parameters
        ----------
        level, simultaneous
            As for `confidence_interval`.

        Raises
        ------
        InvalidInput
            If the question is not about a mean, or level is not in (0, 1).

        Examples
        --------
        >>> import shuffledp as sdp
        >>> release = sdp.estimate_mean([2.0] * 500, 0.0, 4.0, 2.0, seen="reports", delta=1e-6)
        >>> release.sum().estimate == 500 * release.estimate
        True
        """
        if self.question.shape.amount != "sum":
            title = self.question.shape.title.lower()
            raise InvalidInput(f"only means have sums, and of all records; the question was a {title}")
        return self._amounts(level, simultaneous=simultaneous)

    def _amounts(self, level: float, *, simultaneous: bool) -> Amounts:
        interval = self.confidence_interval(level, simultaneous=simultaneous)
        return Amounts.scaled(self.estimate, self.standard_error, interval, self.rows)

    @overload
    def to_frame(
        self, kind: Literal["polars"] = ..., *, level: float = ..., simultaneous: bool = ..., amounts: bool = ...
    ) -> pl.DataFrame: ...

    @overload
    def to_frame(
        self, kind: Literal["pandas"], *, level: float = ..., simultaneous: bool = ..., amounts: bool = ...
    ) -> Any: ...

    def to_frame(
        self, kind: str = "polars", *, level: float = 0.95, simultaneous: bool = False, amounts: bool = False
    ) -> Any:
        """Return the estimate as a dataframe, one row per entry.

        Parameters
        ----------
        kind : {"polars", "pandas"}
            The library of the dataframe.
        level, simultaneous
            As for `confidence_interval`.
        amounts : bool
            Whether to add columns of counts (for shares) or sums (for means).

        Returns
        -------
        DataFrame
            Columns ``label`` (where there are labels; of bins ``low`` and ``high``), ``estimate``, ``standard_error``,
            ``interval_low``, ``interval_high``; with `amounts` also ``count`` or ``sum`` and the same three columns of
            it, such as ``count_interval_low``.

        Raises
        ------
        InvalidInput
            If `kind` is neither, or pandas is not installed.
        """
        import polars as pl

        columns: dict[str, Any] = self._index()
        numbers = self._listed(level, simultaneous=simultaneous)
        for name, column in zip(("estimate", "standard_error", "interval_low", "interval_high"), numbers, strict=True):
            if column is not None:
                columns[name] = np.atleast_1d(np.asarray(column)).ravel()
        amount = self.question.shape.amount
        if amounts and amount:
            names = (amount, *(f"{amount}_{part}" for part in ("standard_error", "interval_low", "interval_high")))
            columns |= {name: np.atleast_1d(part * self.rows) for name, part in zip(names, numbers, strict=True)}
        return handed_over(pl.DataFrame(columns), kind)

    def _listed(self, level: float, *, simultaneous: bool) -> tuple[Any, Any, Any, Any]:
        """Return the estimates that `to_frame` lists, with their errors and both ends of their intervals."""
        interval = self.confidence_interval(level, simultaneous=simultaneous)
        return self.estimate, self.standard_error, *interval

    def _index(self) -> dict[str, Any]:
        labels = self.categories
        if labels is None:
            from shuffledp.questions.vectors import coordinates  # which few releases need

            return {} if (size := np.asarray(self.estimate).size) == 1 else coordinates(self.question, size)
        if isinstance(labels[0], tuple):
            return {"low": [low for low, _ in labels], "high": [high for _, high in labels]}  # type: ignore[misc]
        return {"label": [str(label) for label in labels]}

    def _repr_html_(self) -> str:
        """Return the answer and its guarantee for a notebook: a sentence and the table."""
        return f"<p>{html.escape(self._told())}</p>{self.to_frame()._repr_html_()}"  # pyright: ignore[reportPrivateUsage]

    def _told(self) -> str:
        lower, upper = self.confidence_interval()
        values = np.atleast_1d(np.asarray(self.estimate)).ravel()
        ends = zip(values[:3], np.atleast_1d(lower)[:3], np.atleast_1d(upper)[:3], strict=True)
        answer = ", ".join(f"{value:.4g} ({low:.4g} to {high:.4g})" for value, low, high in ends)
        answer = answer or self.question.shape.nothing.rstrip(".")
        more = f", ... ({values.size} in all)" if values.size > 3 else ""
        worth = "" if self.private else "; NOT PRIVATE, a simulation"
        return (
            f"{self.question.name}: {answer}{more}; 95% intervals; central epsilon at most "
            f"{self.guarantee.epsilon.upper!r} at delta = {self.guarantee.delta!r}; {counted_people(self)}{worth}"
        )


def counted_people(release: Release) -> str:
    """Return words for the number of people who answered, and for whether rows were taken as people.

    Parameters
    ----------
    release : Release
        Any release.
    """
    one = release.n == 1
    if release.unit != "people":
        return f"{release.n:,} {release.unit.removesuffix('s') if one else release.unit}, taken as people"
    people = f"{release.n:,} {'person' if one else 'people'}"
    if release.guarantee.setting.group_size > 1:
        return f"{people} with {release.rows:,} rows, at most {release.guarantee.setting.group_size} each"
    return people


def _plain(value: FloatArray) -> float | FloatArray:
    return float(value) if value.ndim == 0 else value


# Releases by the kind of their answer: what each has is one type, for those who check types.


class NumberRelease(Release):
    """A private number, a mean or a variance, with its central guarantee; see `Release`.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> release = sdp.estimate_mean([2.0] * 500, 0.0, 4.0, 2.0, delta=1e-6)
    >>> type(release).__name__, isinstance(release.estimate, float), release.categories
    ('NumberRelease', True, None)
    """

    if TYPE_CHECKING:

        @property
        def categories(self) -> None:
            """None: a single number has no categories."""
            ...

        @property
        def estimate(self) -> float:
            """The estimated number; see `Release.estimate`."""
            ...

        @property
        def standard_error(self) -> float:
            """Standard error of the number; see `Release.standard_error`."""
            ...

        def confidence_interval(self, level: float = 0.95, *, simultaneous: bool = False) -> tuple[float, float]:
            """Return the two ends of a confidence interval; see `Release.confidence_interval`."""
            ...


class VectorRelease(Release):
    """The private mean of vectors, shape (d,), with its central guarantee; see `Release`."""

    if TYPE_CHECKING:

        @property
        def estimate(self) -> FloatArray:
            """The estimated mean vector, shape (d,); see `Release.estimate`."""
            ...

        @property
        def standard_error(self) -> FloatArray:
            """Standard errors of the coordinates, shape (d,); see `Release.standard_error`."""
            ...

        def confidence_interval(
            self, level: float = 0.95, *, simultaneous: bool = False
        ) -> tuple[FloatArray, FloatArray]:
            """Return lower and upper ends, each of shape (d,); see `Release.confidence_interval`."""
            ...


class SharesRelease(VectorRelease):
    """Private shares of categories or bins, shape (k,), with their central guarantee; see `Release`."""

    if TYPE_CHECKING:

        @property
        def categories(self) -> tuple[Any, ...]:
            """The categories, or bins as (low, high), in the order of `estimate`."""
            ...


class CrosstabRelease(SharesRelease):
    """Private shares of the cells of a two-way table, with margins, a test, and their central guarantee; see `Release`.

    `estimate`, `standard_error` and `confidence_interval` are of the cells, in the order of `categories`: row by row.
    """

    @property
    def table(self) -> FloatArray:
        """The estimated shares of the cells, shape (rows, columns)."""
        return self.analysis.value.reshape(self.analysis.responses.shape)

    @property
    def row_shares(self) -> CountEstimate:
        """The estimated share of each row, over all columns, with its ``confidence_interval()``."""
        return self.analysis.rows

    @property
    def column_shares(self) -> CountEstimate:
        """The estimated share of each column, over all rows, with its ``confidence_interval()``."""
        return self.analysis.columns

    @property
    def independence(self) -> Independence:
        """The test that rows and columns are independent, with all noise counted."""
        return self.analysis.independence

    def _listed(self, level: float, *, simultaneous: bool) -> tuple[Any, Any, Any, Any]:
        return tuple(vars(self.analysis.numbers(level, simultaneous=simultaneous)).values())  # type: ignore[return-value]

    def _index(self) -> dict[str, Any]:
        rows, columns = zip(*self.question.entries, strict=True)  # type: ignore[attr-defined]
        return {"row": list(rows), "column": list(columns)}


# Releases of questions whose answer is more than one number an entry: quantiles, and items that were searched for.


@dataclass(frozen=True, eq=False, repr=False)
class RangeRelease(Release):
    """Private quantiles, and the fractions of all ranges of bins, with their central guarantee.

    Parameters
    ----------
    question, analysis, guarantee, n, rows, mechanism, private, weights, unit, clipped, fingerprint, where, lowered
        As for `Release`; the question is `Quantiles`.
    """

    @property
    def distribution(self) -> RangeEstimate:
        """The estimated fractions of all ranges of bins."""
        return self.analysis

    @property
    def edges(self) -> FloatArray:
        """The public edges of the bins, shape (bins + 1,)."""
        return self._question.grid.edges

    @property
    def probabilities(self) -> FloatArray:
        """Probabilities of the quantiles that were asked for, shape (quantiles,)."""
        return np.array(self._question.at)

    @property
    def estimate(self) -> FloatArray:
        """The estimated quantiles, in the order of `probabilities`."""
        return self.distribution.quantiles(self.probabilities, self.edges)

    @property
    def standard_error(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """None: the error of a quantile is stated by its interval."""
        return None

    def confidence_interval(self, level: float = 0.95, *, simultaneous: bool = False) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends, which are edges of bins; see `RangeEstimate.quantile_interval`.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).
        simultaneous : bool
            True: the intervals of all quantiles hold together with that confidence (each has the level
            1 - (1 - level)/quantiles). False: each holds by itself.

        Raises
        ------
        InvalidInput
            If level is not in (0, 1).
        """
        if not 0.0 < level < 1.0:
            raise InvalidInput(f"a confidence level must lie in (0, 1); got {level}")
        each = 1.0 - (1.0 - level) / self.probabilities.size if simultaneous else level
        return self.distribution.quantile_interval(self.probabilities, self.edges, each)

    @property
    def _question(self) -> Any:
        return self.question

    def _index(self) -> dict[str, Any]:
        return {"probability": self.probabilities}


@dataclass(frozen=True, eq=False, repr=False)
class ItemsRelease(Release):
    """The items that are frequent, the most frequent first, with their central guarantee.

    Parameters
    ----------
    question, analysis, guarantee, n, rows, mechanism, private, weights, unit, clipped, fingerprint, where, lowered
        As for `Release`; the question is the one that searches for items.
    """

    @property
    def tried(self) -> ItemsEstimate:
        """The estimates of all items that were tested at the last level, named or not."""
        return self.analysis

    @property
    def categories(self) -> tuple[Hashable, ...]:
        """The items that are named, in the order of `estimate`; empty if there are none."""
        items, listed = self.tried.items, self._question.candidates
        return tuple(items[place] if listed is None else listed[place] for place in self._named)

    @property
    def estimate(self) -> FloatArray:
        """The shares of the named items, shape (items,), in descending order."""
        return self.tried.value[self._named]

    @property
    def standard_error(self) -> FloatArray:
        """Standard errors of `estimate`, shape (items,)."""
        return self.tried.standard_error[self._named]

    def confidence_interval(self, level: float = 0.95, *, simultaneous: bool = True) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends, shape (items,), which hold together although the data selected the items.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).
        simultaneous : bool
            Ignored: the intervals always hold together.

        Raises
        ------
        InvalidInput
            If level is not in (0, 1).
        """
        return self.tried.at(self._named).confidence_interval(level, simultaneous)

    @cached_property
    def threshold(self) -> float:
        """The estimated share above which an item is named."""
        return self.tried.threshold(self._question.false_positives)

    @cached_property
    def finds(self) -> float:
        """The smallest share of an item that is found with probability 95 %; above 1 if there are too few people."""
        return self.tried.finds(self._question.false_positives)

    @cached_property
    def _named(self) -> NDArray[np.intp]:
        return self.tried.named(self._question.false_positives)

    @property
    def _question(self) -> Any:
        return self.question

    def _index(self) -> dict[str, Any]:
        return {"label": [str(label) for label in self.categories]}


RELEASES: Mapping[str, type[Release]] = {
    "number": NumberRelease,
    "shares": SharesRelease,
    "cells": CrosstabRelease,
    "vector": VectorRelease,
    "ranges": RangeRelease,
    "items": ItemsRelease,
}
"""Class of the release for each kind of answer, see `Question.answers`."""


def release_type(question: Question) -> type[Release]:
    """Return the class of the release that answers a question."""
    return RELEASES.get(question.answers, Release)


# Several releases: one of each public group, or several questions of the same people.


@dataclass(frozen=True, eq=False, repr=False)
class GroupedRelease(Told, Generic[R]):
    """Releases of one question, one a group.

    Parameters
    ----------
    by : str
        The column with the groups.
    releases : mapping of hashable to Release
        Release of each group by its name, in the order in which the groups were given.
    """

    by: str
    releases: Mapping[Hashable, R] = field(repr=False)

    def _told(self) -> str:
        return (
            f"{len(self.releases)} groups by {self.by}: central epsilon at most {self.guarantee.epsilon.upper!r} at "
            f"delta = {self.guarantee.delta!r}, the number of {self.worst}"
        )

    def _rows(self) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        return (self.by, "answer"), ([str(name), repr(each)[1:-1]] for name, each in self.releases.items())

    @property
    def worst(self) -> Hashable:
        """The group with the weakest guarantee: as a rule the smallest."""
        return max(self.releases, key=lambda name: self.releases[name].guarantee.epsilon.upper)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee that holds for everybody: that of the group `worst`."""
        return self.releases[self.worst].guarantee

    @property
    def n(self) -> int:
        """Number of people in all groups."""
        return sum(release.n for release in self.releases.values())

    @property
    def private(self) -> bool:
        """False if the noise came from `simulation_random`."""
        return all(release.private for release in self.releases.values())

    def weighted(self, margins: Margins) -> Weighted:
        """Return the groups' answers weighted to public shares of the population.

        By one column that is post-stratification, by several raking.

        Parameters
        ----------
        margins : Margins
            Margins with the columns `by` as variables, and with the words of these groups and no others.

        Returns
        -------
        Weighted
            Its variance is that of the noise and of sampling each group's people from the whole group.

        Raises
        ------
        InvalidInput
            If the question has neither shares nor a mean, the margins do not fit, or a group has one person.

        Notes
        -----
        For a mean the variance of the people's numbers is not known; its largest value, (mean - low)(high - mean), is
        used, except for one-bit, the distribution of whose reports depends on the mean only, so that its error includes
        sampling.
        """
        from shuffledp.records.people import Groups
        from shuffledp.releases.margins import group_shares, weighted_groups

        first = next(iter(self.releases.values()))
        answered = [release.n for release in self.releases.values()]
        weights = group_shares(margins, first.question, Groups(self.by, tuple(self.releases)), answered)
        values: list[FloatArray] = []
        variances: list[FloatArray] = []
        for release in self.releases.values():
            low, high = release.analysis.support
            inside = np.clip(release.estimate, low, high)
            sampling = (inside - low) * (high - inside) / (release.n - 1.0) * (release.mechanism != "one-bit")
            values.append(np.asarray(release.estimate))
            variances.append(np.asarray(release.standard_error) ** 2 + sampling)
        weighted = weighted_groups(values, variances, weights)
        return replace(weighted, support=first.analysis.support)

    @overload
    def to_frame(
        self, kind: Literal["polars"] = ..., *, level: float = ..., simultaneous: bool = ..., amounts: bool = ...
    ) -> pl.DataFrame: ...

    @overload
    def to_frame(
        self, kind: Literal["pandas"], *, level: float = ..., simultaneous: bool = ..., amounts: bool = ...
    ) -> Any: ...

    def to_frame(
        self, kind: str = "polars", *, level: float = 0.95, simultaneous: bool = False, amounts: bool = False
    ) -> Any:
        """Return all groups as one dataframe: ``group``, ``n``, and the columns of `Release.to_frame`.

        Parameters
        ----------
        kind, level, simultaneous, amounts
            As for `Release.to_frame`; intervals hold together within a group.
        """
        import polars as pl

        parts: list[pl.DataFrame] = []
        for name, release in self.releases.items():
            frame = release.to_frame(level=level, simultaneous=simultaneous, amounts=amounts)
            own = [pl.lit(str(name)).alias("group"), pl.lit(release.n).alias("n")]
            epsilon = pl.lit(release.guarantee.epsilon.upper).alias("central_epsilon")
            parts.append(frame.select(*own, pl.all(), epsilon))
        return handed_over(pl.concat(parts), kind)


@dataclass(frozen=True, repr=False)
class JointRelease(Told):
    """Several releases about the same people, with the joint guarantee of all of them.

    Parameters
    ----------
    releases : tuple of Release
        One for each question, in order; each has its own guarantee.
    epsilon, delta : float
        Central guarantee (epsilon in nats) of all of them together, certified from above before a record was read.
    levels : tuple of LevelTotal
        The joint guarantee for the people of each budget; empty for more than 8 budgets.
    """

    releases: tuple[Release, ...]
    epsilon: float
    delta: float
    levels: tuple[LevelTotal, ...]

    def _told(self) -> str:
        several = "answer" if len(self.releases) == 1 else "answers together"
        return f"{len(self.releases)} {several}: central epsilon at most {self.epsilon!r} at delta = {self.delta!r}"

    def _rows(self) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        return ("answer",), ([repr(release)[1:-1]] for release in self.releases)


@dataclass(frozen=True, repr=False)
class JointByGroup(Told):
    """Several questions asked of each public group, with their joint guarantees; nobody is in two groups.

    Parameters
    ----------
    by : str
        The column with the groups.
    releases : mapping of hashable to JointRelease
        Releases of each group by its name, in the order in which the groups were given.
    """

    by: str
    releases: Mapping[Hashable, JointRelease]

    @property
    def questions(self) -> tuple[GroupedRelease, ...]:
        """The answers of all groups, one a question."""
        each = zip(*(joint.releases for joint in self.releases.values()), strict=True)
        return tuple(GroupedRelease(self.by, dict(zip(self.releases, answers, strict=True))) for answers in each)

    @property
    def levels(self) -> tuple[LevelTotal, ...]:
        """The joint guarantee for the people of each budget, in the group where it is largest; see `JointRelease`."""
        from shuffledp.ledger import LevelTotal

        if not all(each.levels for each in self.releases.values()):
            return ()
        largest: dict[float, float] = {}
        for level in (level for each in self.releases.values() for level in each.levels):
            largest[level.epsilon0] = max(level.epsilon, largest.get(level.epsilon0, 0.0))
        return tuple(LevelTotal(epsilon0, largest[epsilon0]) for epsilon0 in sorted(largest))

    @property
    def worst(self) -> Hashable:
        """The group to which all questions together cost most: as a rule the smallest."""
        return max(self.releases, key=lambda name: self.releases[name].epsilon)

    @property
    def epsilon(self) -> float:
        """Central epsilon (nats) of all questions together that holds for everybody: that of the weakest group."""
        return self.releases[self.worst].epsilon

    @property
    def delta(self) -> float:
        """Central delta of all questions together."""
        return next(iter(self.releases.values())).delta

    def _told(self) -> str:
        return (
            f"{len(self.releases)} groups by {self.by}: all answers of a group together cost a central epsilon of at "
            f"most {self.epsilon!r} at delta = {self.delta!r}"
        )

    def _rows(self) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        return (self.by, "answers"), ([str(name), repr(each)[1:-1]] for name, each in self.releases.items())
