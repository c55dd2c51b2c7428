"""The questions as functions on files and dataframes.

Each is `shuffledp.protocol.asking.release` with its question filled in. They allow any delta, and note it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Unpack

from numpy.typing import ArrayLike

from shuffledp.protocol.asking import release
from shuffledp.protocol.choices import check_options
from shuffledp.protocol.item_questions import FrequentItems
from shuffledp.protocol.number_questions import Histogram, Mean, Quantiles, Variance
from shuffledp.protocol.people import RowBudgets
from shuffledp.protocol.questions import Frequency, Question
from shuffledp.protocol.release_kinds import ItemsRelease, RangeRelease
from shuffledp.protocol.released import Release
from shuffledp.protocol.wrappers import Options, as_items, as_ranges


def frequency_of_table(
    table: Any,
    value: str,
    categories: Iterable[Hashable],
    epsilon0: float | str | RowBudgets,
    **options: Unpack[Options],
) -> Release:
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
    return _of_table(Frequency(categories), table, value, epsilon0, options)


def mean_of_table(
    table: Any, value: str, low: float, high: float, epsilon0: float | str | RowBudgets, **options: Unpack[Options]
) -> Release:
    """Estimate the mean of a column of a table; see `release` and `estimate_mean`.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"hours": [20.0, 40.0] * 500})
    >>> mean_of_table(people, "hours", 0.0, 100.0, 1.0, seen="reports", delta=1e-6).n
    1000
    """
    return _of_table(Mean(low, high), table, value, epsilon0, options)


def histogram_of_table(
    table: Any,
    value: str,
    low: float,
    high: float,
    bins: int,
    epsilon0: float | str | RowBudgets,
    **options: Unpack[Options],
) -> Release:
    """Estimate the histogram of a column of a table; see `release` and `estimate_histogram`.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"hours": [20.0, 40.0] * 500})
    >>> release = histogram_of_table(people, "hours", 0, 100, 4, 1.0, seen="reports", delta=1e-6)
    >>> release.categories[0], release.estimate.shape
    ((0.0, 25.0), (4,))
    """
    return _of_table(Histogram(low, high, bins), table, value, epsilon0, options)


def quantiles_of_table(
    table: Any,
    value: str,
    low: float,
    high: float,
    probabilities: ArrayLike,
    epsilon0: float | str | RowBudgets,
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
    question = Quantiles(low, high, probabilities, bins, branching)  # type: ignore[arg-type]
    return as_ranges(_of_table(question, table, value, epsilon0, options))


def variance_of_table(
    table: Any, value: str, low: float, high: float, epsilon0: float | str | RowBudgets, **options: Unpack[Options]
) -> Release:
    """Estimate the variance of a column of a table; see `release` and `estimate_variance`.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"hours": [20.0, 40.0] * 500})
    >>> variance_of_table(people, "hours", 0, 100, 1.0, seen="reports", delta=1e-6).n
    1000
    """
    return _of_table(Variance(low, high), table, value, epsilon0, options)


def frequent_items_of_table(
    table: Any,
    value: str,
    epsilon0: float | str | RowBudgets,
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
    >>> found = frequent_items_of_table(
    ...     flights, "dest", 8.0, candidates=["ATL", "BOS", "ORD"], seen="reports", delta=1e-6
    ... )
    >>> found.categories
    ('ORD', 'ATL')
    """
    words: dict[str, Any] = {"max_length": max_length, "alphabet": alphabet, "cut": cut}
    question = FrequentItems(candidates, false_positives=false_positives, **words)
    return as_items(_of_table(question, table, value, epsilon0, options))


def _of_table(
    question: Question, table: Any, value: str, epsilon0: float | str | RowBudgets, options: Options
) -> Release:
    check_options(options, Options, f"{question.name}_of_table")
    return release(question, table, value=value, budgets=epsilon0, any_delta=True, **options)
