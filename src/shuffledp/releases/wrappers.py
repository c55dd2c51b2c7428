"""The questions as functions: on arrays in memory, and on files and dataframes.

Each calls `shuffledp.releases.keywords.release` with its question, and refuses the same arguments.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import InvalidInput
from shuffledp.params import renamed
from shuffledp.questions.frequency import Frequency
from shuffledp.questions.items import FrequentItems
from shuffledp.questions.mean import Mean
from shuffledp.questions.question import Question
from shuffledp.questions.ranges import Histogram, Quantiles
from shuffledp.questions.variance import Variance
from shuffledp.questions.vectors import VectorMean
from shuffledp.records.columns import as_array
from shuffledp.records.people import RowBudgets
from shuffledp.releases.keywords import OF_GROUPS, InMemory, Options, asked_by_keyword
from shuffledp.releases.release import (
    ItemsRelease,
    NumberRelease,
    RangeRelease,
    Release,
    SharesRelease,
    VectorRelease,
)
from shuffledp.releases.terms import told_apart

Kind = TypeVar("Kind", bound=Release)
RENAMED = {"epsilon0": "budgets", "probabilities": "at"}
"""Keywords of version 0.2.0 and their present names; the old ones are still accepted for one version."""

# The questions as functions on arrays in memory.


@renamed(RENAMED)
def estimate_frequency(
    records: Sequence[Hashable] | ArrayLike,
    categories: Iterable[Hashable],
    budgets: ArrayLike | None = None,
    **options: Unpack[InMemory],
) -> SharesRelease:
    """Estimate how frequent each category is among records in memory.

    Parameters
    ----------
    records : sequence, array or polars Series, length n
        One category label per user: text, numbers or any hashable.
    categories : iterable, length k
        As for `Frequency`.
    budgets : float or array_like, shape (n,)
        Local budgets (nats, 0 to 700); one for all or one per user; None with
        `target_epsilon`. Public, and independent of the records.
    **options
        As for `release`: `delta` is needed, and `seen` as soon as there are two budgets; `person` is an array here.

    Returns
    -------
    Release
        ``.estimate`` has shape (k,), in the order of the categories.

    Raises
    ------
    InvalidInput
        As `release`.

    Examples
    --------
    >>> release = estimate_frequency(["a", "b"] * 500, ["a", "b"], 2.0, seen="reports", delta=1e-6)
    >>> release.private, release.estimate.shape
    (True, (2,))
    """
    return as_kind(SharesRelease, in_memory(Frequency(categories), records, budgets, options))


@renamed(RENAMED)
def estimate_mean(
    values: Sequence[float] | ArrayLike,
    low: float,
    high: float,
    budgets: ArrayLike | None = None,
    *,
    delta0: ArrayLike = 0.0,
    **options: Unpack[InMemory],
) -> NumberRelease:
    """Estimate the mean of numbers in memory.

    Parameters
    ----------
    values : sequence, array or polars Series of numbers, length n
        One number per user, in [low, high].
    low, high : float
        As for `Mean`.
    budgets : float or array_like, shape (n,)
        Local budgets (nats, 0 to 700); one for all or one per user; None with
        `target_epsilon`. Public, and independent of the values.
    delta0 : float or array_like, shape (n,)
        Local delta0 in [0, 1), one for all or one per user; Gaussian noise needs it above 0, the others do not use it.
    **options
        As for `release`: `delta` is needed, and `seen` as soon as there are two budgets; `person` is an array here.

    Returns
    -------
    Release
        ``.estimate`` is a float.

    Raises
    ------
    InvalidInput
        As `release`.

    Examples
    --------
    >>> release = estimate_mean([20.0, 40.0] * 500, 0.0, 100.0, 1.0, seen="reports", delta=1e-6)
    >>> release.private, release.n
    (True, 1000)
    """
    return as_kind(NumberRelease, in_memory(Mean(low, high), values, budgets, options, delta0))


@renamed(RENAMED)
def estimate_histogram(
    values: Sequence[float] | ArrayLike,
    low: float,
    high: float,
    bins: int,
    budgets: ArrayLike | None = None,
    **options: Unpack[InMemory],
) -> SharesRelease:
    """Estimate the share of the values in each bin of a known range, from numbers in memory.

    Parameters
    ----------
    values : sequence, array or polars Series of numbers, length n
        One number per user, in [low, high].
    low, high, bins
        As for `Histogram`.
    budgets : float or array_like, shape (n,)
        Local budgets (nats, 0 to 700); one for all or one per user; None with
        `target_epsilon`. Public, and independent of the values.
    **options
        As for `release`: `delta` is needed, and `seen` as soon as there are two budgets; `person` is an array here.

    Returns
    -------
    Release
        ``.estimate`` has shape (bins,), ``.categories`` are the bins' edges (lower, upper). For long ranges and
        quantiles use `estimate_quantiles`, whose error does not grow with their length.

    Raises
    ------
    InvalidInput
        As `release`.

    Examples
    --------
    >>> ages = [20.0, 40.0, 65.0] * 500
    >>> release = estimate_histogram(ages, 0, 100, 4, 2.0, mechanism="oue", seen="levels", delta=1e-6)
    >>> release.categories[-1], release.estimate.shape
    ((75.0, 100.0), (4,))
    """
    return as_kind(SharesRelease, in_memory(Histogram(low, high, bins), values, budgets, options))


@renamed(RENAMED)
def estimate_quantiles(
    values: Sequence[float] | ArrayLike,
    low: float,
    high: float,
    at: ArrayLike,
    budgets: ArrayLike | None = None,
    *,
    bins: int,
    branching: int = 4,
    **options: Unpack[InMemory],
) -> RangeRelease:
    """Estimate quantiles of numbers in memory, and the fractions of all ranges.

    Parameters
    ----------
    values : sequence, array or polars Series of numbers, length n
        One number per user, in [low, high].
    low, high, bins, branching
        As for `Quantiles`.
    at : float or array_like
        Which quantiles, in (0, 1): 0.5 is the median.
    budgets : float or array_like, shape (n,)
        Local budgets (nats, 0 to 700); one for all or one per user; None with
        `target_epsilon`. Public, and independent of the values.
    **options
        As for `release`: `delta` is needed, and `seen` as soon as there are two budgets; `person` is an array here.

    Returns
    -------
    RangeRelease
        ``.estimate`` and ``.confidence_interval()`` for the quantiles; ``.distribution`` for ranges.

    Raises
    ------
    InvalidInput
        As `release`.

    Examples
    --------
    >>> ages = [20.0, 40.0, 65.0] * 500
    >>> release = estimate_quantiles(ages, 0, 100, [0.5, 0.9], 2.0, bins=50, seen="reports", delta=1e-6)
    >>> release.mechanism, release.estimate.shape
    ('tree:50:4', (2,))
    """
    question = Quantiles(low, high, at, bins, branching)  # type: ignore[arg-type]
    return as_kind(RangeRelease, in_memory(question, values, budgets, options))


@renamed(RENAMED)
def estimate_variance(
    values: Sequence[float] | ArrayLike,
    low: float,
    high: float,
    budgets: ArrayLike | None = None,
    **options: Unpack[InMemory],
) -> NumberRelease:
    """Estimate the variance of numbers in memory, with one randomized bit per user.

    Parameters
    ----------
    values : sequence, array or polars Series of numbers, length n
        One number per user, in [low, high].
    low, high : float
        As for `Variance`.
    budgets : float or array_like, shape (n,)
        Local budgets (nats, 0 to 700); one for all or one per user; None with
        `target_epsilon`. Public, and independent of the values.
    **options
        As for `release`: `delta` is needed, and `seen` as soon as there are two budgets; `person` is an array here.

    Returns
    -------
    Release
        ``.estimate`` is a float: the mean squared distance of the n values from their mean.

    Raises
    ------
    InvalidInput
        As `release`.

    Examples
    --------
    >>> release = estimate_variance([20.0, 40.0] * 500, 0.0, 100.0, 1.0, seen="reports", delta=1e-6)
    >>> release.private, release.mechanism
    (True, 'two-moments')
    """
    return as_kind(NumberRelease, in_memory(Variance(low, high), values, budgets, options))


@renamed({"norm": "kind", "bound": "norm"}, when="bound")
@renamed(RENAMED)
def estimate_vector_mean(
    vectors: Any,
    budgets: ArrayLike | None = None,
    *,
    norm: float,
    kind: str = "l2",
    slack: float = 0.03,
    **options: Unpack[InMemory],
) -> VectorRelease:
    """Estimate the mean of vectors in memory.

    Parameters
    ----------
    vectors : array_like, shape (n, d)
        One vector per user.
    budgets : float or array_like, shape (n,)
        Local budgets (nats, 0 to 700); one for all or one per user; None with
        `target_epsilon`. Public, and independent of the vectors.
    norm, kind, slack
        As for `VectorMean`: the largest norm of a vector, and which norm is meant.
    **options
        As for `release`: `delta` is needed, and `seen` as soon as there are two budgets; `person` is an array here.

    Returns
    -------
    Release
        ``.estimate`` has shape (d,), ``.analysis`` is a `VectorEstimate`.

    Raises
    ------
    InvalidInput
        As `release`.

    Examples
    --------
    >>> release = estimate_vector_mean(np.eye(3)[[0, 1] * 500], 1.0, norm=1, seen="reports", delta=1e-6)
    >>> release.private, release.estimate.shape
    (True, (3,))
    """
    table = as_array(vectors)
    if table.ndim != 2 or 0 in table.shape:
        raise InvalidInput(f"vectors must have shape (n, d), n and d at least 1; got {table.shape}")
    return as_kind(VectorRelease, in_memory(VectorMean(table.shape[1], norm, kind, slack), table, budgets, options))


@renamed(RENAMED)
def estimate_frequent_items(
    records: Sequence[Hashable] | ArrayLike,
    budgets: ArrayLike | None = None,
    *,
    candidates: Iterable[Hashable] | None = None,
    max_length: int = 16,
    alphabet: str = "ascii",
    cut: bool = False,
    false_positives: float = 0.05,
    **options: Unpack[InMemory],
) -> ItemsRelease:
    """Find the frequent items among records in memory, and estimate their shares.

    Parameters
    ----------
    records : sequence, array or polars Series, length n
        One item per user.
    budgets : float or array_like, shape (n,)
        Local budgets (nats, 0 to 700); one for all or one per user; None with
        `target_epsilon`. Public, and independent of the records.
    candidates, max_length, alphabet, cut, false_positives
        As for `FrequentItems`.
    **options
        As for `release`: `delta` is needed, and `seen` as soon as there are two budgets; `person` is an array here.

    Returns
    -------
    ItemsRelease
        ``.categories`` are the items that are named, ``.estimate`` their shares.

    Raises
    ------
    InvalidInput
        As `release`.

    Examples
    --------
    >>> planes = ["N328AA"] * 600 + ["N725MQ"] * 400
    >>> items = estimate_frequent_items(
    ...     planes, 8.0, max_length=6, alphabet="upper+digits", seen="reports", delta=1e-6
    ... )
    >>> items.categories[:2]
    ('N328AA', 'N725MQ')
    """
    words: dict[str, Any] = {"max_length": max_length, "alphabet": alphabet, "cut": cut}
    question = FrequentItems(candidates, false_positives=false_positives, **words)
    return as_kind(ItemsRelease, in_memory(question, records, budgets, options))


def in_memory(
    question: Question,
    records: Any,
    epsilon0: ArrayLike | None,
    options: Mapping[str, Any],
    delta0: ArrayLike = 0.0,
) -> Release:
    """Release an answer from records in memory: put records, budgets and owners side by side as a table, and ask it.

    Parameters
    ----------
    question : Question
        The question.
    records : sequence, array or polars Series
        One record per user.
    epsilon0, delta0 : float or array_like, shape (n,)
        Local budgets; epsilon0 in nats, or None with a target.
    options : mapping
        Keyword options, as for `release`; `person` is an array.
    """
    function = f"estimate_{question.name.replace('-', '_')}"
    told_apart(options, function, OWN)  # before the records are looked at
    if options.get("where"):
        raise InvalidInput(
            "`where` chooses rows by a column, and records in memory have none; choose the records, or ask a table"
        )
    data: dict[str, Any] = {"record": records}
    given: dict[str, Any] = {**options}
    if epsilon0 is not None:
        own = _one_or_each(data, "epsilon0", epsilon0)
        given["budgets"] = RowBudgets(own, delta0=_one_or_each(data, "delta0", delta0))
    if (person := given.get("person")) is not None:
        given["person"] = _one_for_each(data, "person", "names of persons", person)
    return asked_by_keyword(function, question, data, {**given, "value": "record"})


OWN = ("question", "value", "data", "budgets", *OF_GROUPS)
"""Fields that the functions of one question set themselves, or do not accept."""


def _one_or_each(data: dict[str, Any], name: str, budgets: ArrayLike) -> float | str:
    """Return a single budget as a number; put several into the table as a column, and return its name."""
    if np.ndim(budgets) == 0:
        return float(budgets)  # type: ignore[arg-type]
    return _one_for_each(data, name, "budgets" if name == "epsilon0" else name, budgets, ", or one number for all")


def _one_for_each(data: dict[str, Any], name: str, what: str, column: Any, otherwise: str = "") -> str:
    """Put a column of the records' length into the table, and return its name."""
    rows = len(data["record"])
    if np.shape(column) != (rows,):
        raise InvalidInput(f"{rows} records need {rows} {what}{otherwise}; got {np.size(column)}")
    data[name] = column
    return name


def as_kind(kind: type[Kind], release: Release) -> Kind:
    """Return the release typed as its class, see `release_type`."""
    assert isinstance(release, kind)
    return release


# The questions as functions on files and dataframes.


@renamed(RENAMED)
def frequency_of_table(
    table: Any,
    value: str,
    categories: Iterable[Hashable],
    budgets: float | str | RowBudgets | None = None,
    **options: Unpack[Options],
) -> SharesRelease:
    """Estimate how frequent each category is in a column of a table; see `release` and `estimate_frequency`.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"answer": ["yes", "no"] * 500, "consent": ["strict", "open"] * 500})
    >>> budgets = RowBudgets("consent", {"strict": 0.5, "open": 2.0})
    >>> release = frequency_of_table(people, "answer", ["yes", "no"], budgets, seen="reports", delta=1e-6)
    >>> release.n, release.estimate.shape
    (1000, (2,))
    """
    return as_kind(SharesRelease, _of_table(Frequency(categories), table, value, budgets, options))


@renamed(RENAMED)
def mean_of_table(
    table: Any,
    value: str,
    low: float,
    high: float,
    budgets: float | str | RowBudgets | None = None,
    **options: Unpack[Options],
) -> NumberRelease:
    """Estimate the mean of a column of a table; see `release` and `estimate_mean`.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"hours": [20.0, 40.0] * 500})
    >>> mean_of_table(people, "hours", 0.0, 100.0, 1.0, seen="reports", delta=1e-6).n
    1000
    """
    return as_kind(NumberRelease, _of_table(Mean(low, high), table, value, budgets, options))


@renamed(RENAMED)
def histogram_of_table(
    table: Any,
    value: str,
    low: float,
    high: float,
    bins: int,
    budgets: float | str | RowBudgets | None = None,
    **options: Unpack[Options],
) -> SharesRelease:
    """Estimate the histogram of a column of a table; see `release` and `estimate_histogram`.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"hours": [20.0, 40.0] * 500})
    >>> release = histogram_of_table(people, "hours", 0, 100, 4, 1.0, seen="reports", delta=1e-6)
    >>> release.categories[0], release.estimate.shape
    ((0.0, 25.0), (4,))
    """
    return as_kind(SharesRelease, _of_table(Histogram(low, high, bins), table, value, budgets, options))


@renamed(RENAMED)
def quantiles_of_table(
    table: Any,
    value: str,
    low: float,
    high: float,
    at: ArrayLike,
    budgets: float | str | RowBudgets | None = None,
    *,
    bins: int,
    branching: int = 4,
    **options: Unpack[Options],
) -> RangeRelease:
    """Estimate quantiles of a column of a table; see `release` and `estimate_quantiles`.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"hours": [20.0, 40.0] * 500})
    >>> release = quantiles_of_table(people, "hours", 0, 100, 0.5, 1.0, bins=50, seen="reports", delta=1e-6)
    >>> release.estimate.shape
    (1,)
    """
    question = Quantiles(low, high, at, bins, branching)  # type: ignore[arg-type]
    return as_kind(RangeRelease, _of_table(question, table, value, budgets, options))


@renamed(RENAMED)
def variance_of_table(
    table: Any,
    value: str,
    low: float,
    high: float,
    budgets: float | str | RowBudgets | None = None,
    **options: Unpack[Options],
) -> NumberRelease:
    """Estimate the variance of a column of a table; see `release` and `estimate_variance`.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"hours": [20.0, 40.0] * 500})
    >>> variance_of_table(people, "hours", 0, 100, 1.0, seen="reports", delta=1e-6).n
    1000
    """
    return as_kind(NumberRelease, _of_table(Variance(low, high), table, value, budgets, options))


@renamed(RENAMED)
def vector_mean_of_table(
    table: Any,
    value: Sequence[str],
    norm: float,
    budgets: float | str | RowBudgets | None = None,
    *,
    kind: str = "l2",
    slack: float = 0.03,
    **options: Unpack[Options],
) -> VectorRelease:
    """Estimate the mean of vectors whose coordinates are columns of a table; see `release` and `estimate_vector_mean`.

    Examples
    --------
    >>> import polars as pl
    >>> trips = pl.DataFrame({"walk": [0.2, 0.4] * 500, "bike": [0.6, 0.1] * 500})
    >>> release = vector_mean_of_table(trips, ["walk", "bike"], 1.0, 4.0, seen="reports", delta=1e-6)
    >>> release.to_frame()["column"].to_list()
    ['walk', 'bike']
    """
    columns = [value] if isinstance(value, str) else list(value)
    question = VectorMean(len(columns), norm, kind, slack)
    return as_kind(VectorRelease, _of_table(question, table, columns, budgets, options))


@renamed(RENAMED)
def frequent_items_of_table(
    table: Any,
    value: str,
    budgets: float | str | RowBudgets | None = None,
    *,
    candidates: Iterable[Hashable] | None = None,
    max_length: int = 16,
    alphabet: str = "ascii",
    cut: bool = False,
    false_positives: float = 0.05,
    **options: Unpack[Options],
) -> ItemsRelease:
    """Find the frequent items of a column of a table; see `release` and `estimate_frequent_items`.

    Examples
    --------
    >>> import polars as pl
    >>> flights = pl.DataFrame({"dest": ["ORD"] * 600 + ["ATL"] * 400})
    >>> items = frequent_items_of_table(
    ...     flights, "dest", 8.0, candidates=["ATL", "BOS", "ORD"], seen="reports", delta=1e-6
    ... )
    >>> items.categories[:2]
    ('ORD', 'ATL')
    """
    words: dict[str, Any] = {"max_length": max_length, "alphabet": alphabet, "cut": cut}
    question = FrequentItems(candidates, false_positives=false_positives, **words)
    return as_kind(ItemsRelease, _of_table(question, table, value, budgets, options))


def _of_table(
    question: Question,
    table: Any,
    value: str | Sequence[str],
    budgets: float | str | RowBudgets | None,
    options: Options,
) -> Release:
    function = f"{question.name.replace('-', '_')}_of_table"
    told_apart(options, function, OWN)
    return asked_by_keyword(function, question, table, {**options, "value": value, "budgets": budgets})
