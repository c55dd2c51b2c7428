"""What is released: an estimate together with its guarantee, never one without the other."""

from __future__ import annotations

import html
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from shuffledp.errors import InvalidInput
from shuffledp.guarantee import Guarantee
from shuffledp.numerics.interval import FloatArray
from shuffledp.protocol.amounts import Amounts
from shuffledp.protocol.questions import Question
from shuffledp.protocol.weights import Weights
from shuffledp.tables.frames import handed_over

if TYPE_CHECKING:
    import polars as pl

SHARES = ("frequency", "histogram")
"""Questions whose answers are the shares of public entries, the same in every release."""
COUNTED = (*SHARES, "frequent-items")
"""Questions whose answers are shares, hence have counts."""
MEANS = ("mean", "vector-mean")
"""Questions whose answers are means, hence have sums."""


@dataclass(frozen=True, eq=False, repr=False)
class Release:
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

    @property
    def categories(self) -> tuple[Hashable, ...] | None:
        """Categories, or bins as (low, high), in the order of `estimate`; None for a single number."""
        return self.question.labels

    @property
    def estimate(self) -> float | FloatArray:
        """The number, a float, or the shares, shape (k,); unbiased, so it may leave the possible range."""
        return _plain(self.analysis.value)

    @property
    def standard_error(self) -> float | FloatArray:
        """Standard error of `estimate`, in its shape, from the reports alone."""
        return _plain(self.analysis.standard_error)

    @property
    def uninformative(self) -> int:
        """Users whose report carries no information (epsilon0 = 0); they are taken to be like the others."""
        return self.analysis.uninformative

    def confidence_interval(
        self, level: float = 0.95, *, simultaneous: bool = False
    ) -> tuple[float | FloatArray, float | FloatArray]:
        """Lower and upper end, each in the shape of `estimate`.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).
        simultaneous : bool
            Whether all entries hold together with that confidence; else each holds by itself.

        Raises
        ------
        InvalidInput
            If level is not in (0, 1).
        """
        lower, upper = self.analysis.confidence_interval(level, simultaneous=simultaneous)
        return _plain(lower), _plain(upper)

    def counts(self, level: float = 0.95, *, simultaneous: bool = False) -> Amounts:
        """How many records fall into each category or bin: `rows` times the shares.

        The number of records is public, so nothing else is released. What weighs people in the shares weighs them here.

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
        if self.question.name not in COUNTED:
            raise InvalidInput(f"only shares have counts; the question was a {self.question.name}")
        return self._amounts(level, simultaneous=simultaneous)

    def sum(self, level: float = 0.95, *, simultaneous: bool = False) -> Amounts:
        """The sum of the records: `rows` times the mean; of vectors, coordinate by coordinate.

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
        if self.question.name not in MEANS:
            raise InvalidInput(f"only means have sums; the question was a {self.question.name}")
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
            Whose dataframe.
        level, simultaneous
            As for `confidence_interval`.
        amounts : bool
            Whether counts stand beside shares, and sums beside means.

        Returns
        -------
        DataFrame
            Columns ``label`` (where there are labels; of bins ``low`` and ``high``), ``estimate``, ``standard_error``,
            ``interval_low``, ``interval_high``; with `amounts` also ``count`` or ``sum`` and the same three of it, such
            as ``count_interval_low``.

        Raises
        ------
        InvalidInput
            If `kind` is neither, or pandas is not installed.
        """
        import polars as pl

        lower, upper = self.confidence_interval(level, simultaneous=simultaneous)
        columns: dict[str, Any] = self._index()
        for name, column in (
            ("estimate", self.estimate),
            ("standard_error", self.standard_error),
            ("interval_low", lower),
            ("interval_high", upper),
        ):
            if column is not None:  # pyright: ignore[reportUnnecessaryComparison]
                columns[name] = np.atleast_1d(np.asarray(column)).ravel()
        asked = self.question.name
        if amounts and asked in COUNTED + MEANS:
            found, name = self._amounts(level, simultaneous=simultaneous), "count" if asked in COUNTED else "sum"
            columns |= {
                name: np.atleast_1d(found.estimate),
                f"{name}_standard_error": np.atleast_1d(found.standard_error),
                f"{name}_interval_low": np.atleast_1d(found.low),
                f"{name}_interval_high": np.atleast_1d(found.high),
            }
        return handed_over(pl.DataFrame(columns), kind)

    def _index(self) -> dict[str, Any]:
        labels = self.categories
        if labels is None:
            size = np.asarray(self.estimate).size
            return {} if size == 1 else {"coordinate": list(range(size))}
        if isinstance(labels[0], tuple):
            return {"low": [low for low, _ in labels], "high": [high for _, high in labels]}  # type: ignore[misc]
        return {"label": [str(label) for label in labels]}

    def __repr__(self) -> str:
        """The answer, its interval and its guarantee."""
        return f"<{self._told()}>"

    def _repr_html_(self) -> str:
        """The same for a notebook: a sentence and the table."""
        return f"<p>{html.escape(self._told())}</p>{self.to_frame()._repr_html_()}"  # pyright: ignore[reportPrivateUsage]

    def _told(self) -> str:
        lower, upper = self.confidence_interval()
        values = np.atleast_1d(np.asarray(self.estimate)).ravel()
        ends = zip(values[:3], np.atleast_1d(lower)[:3], np.atleast_1d(upper)[:3], strict=True)
        answer = ", ".join(f"{value:.4g} ({low:.4g} to {high:.4g})" for value, low, high in ends)
        more = f", ... ({values.size} in all)" if values.size > 3 else ""
        worth = "" if self.private else "; NOT PRIVATE, a simulation"
        return (
            f"{self.question.name}: {answer}{more}; 95% intervals; central epsilon at most "
            f"{self.guarantee.epsilon.upper:.4g} at delta = {self.guarantee.delta:g}; {counted_people(self)}{worth}"
        )


def counted_people(release: Release) -> str:
    """Say how many people answered, and whether rows were taken as people.

    Parameters
    ----------
    release : Release
        Any.
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
