"""The questions, asked of a dataframe of Spark: the same flow as in one process, with another engine."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar, Unpack

from numpy.typing import ArrayLike

from shuffledp.params import renamed
from shuffledp.questions.question import Question
from shuffledp.records.people import RowBudgets
from shuffledp.releases import keywords, wrappers
from shuffledp.releases.keywords import Options, RunOptions
from shuffledp.releases.release import ItemsRelease, JointRelease, RangeRelease, Release
from shuffledp.releases.terms import Ask, told_apart
from shuffledp.spark.engine import SparkEngine

Kind = TypeVar("Kind", bound=Release)


def release(
    question: Question,
    frame: Any,
    *,
    value: str | Sequence[str],
    budgets: float | str | RowBudgets | None = None,
    **options: Unpack[Options],
) -> Release:
    """Return a private estimate, with its guarantee, that answers one question on the rows of a Spark dataframe.

    Spark counts the budgets; the driver certifies the guarantee; then every task reads its partition, randomizes the
    records with secure randomness of its own, and returns a tally. Records never come to the driver.

    Parameters
    ----------
    question : Question
        One of the questions, such as ``Mean(0, 100)``.
    frame : pyspark.sql.DataFrame
        Classic or Connect. It is evaluated several times and must have the same rows each time: a plan that draws at
        random, or takes rows by their order, is refused.
    value : str or sequence of str
        The column with the records; one column for each coordinate of a vector.
    budgets : float, str or RowBudgets
        As for `shuffledp.release`.
    **options
        As for `shuffledp.release`, but that no row of a person is chosen at random (the rule "one"). Of a
        `simulation_random` one word is drawn, and partition p draws from the seed (word, p); see `spark.testing`.

    Returns
    -------
    Release
        A `RangeRelease` for quantiles, an `ItemsRelease` for frequent items.

    Raises
    ------
    InvalidInput
        As `shuffledp.release`; bad rows are told by their number alone. If the dataframe changed between its passes;
        if pyspark is missing, or a worker does not have this package in this version.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> import shuffledp.spark as sps
    >>> people = getfixture("spark").createDataFrame([("yes", 0.5), ("no", 2.0)] * 500, "vote string, budget double")
    >>> question = sdp.Frequency(["yes", "no"])
    >>> sps.release(question, people, value="vote", budgets="budget", seen="reports", delta=1e-6).n
    1000
    """
    return keywords.release(question, SparkEngine(frame), value=value, budgets=budgets, **options)


def release_together(
    asked: Sequence[Ask], frame: Any, *, budgets: float | str | RowBudgets | None = None, **options: Unpack[RunOptions]
) -> JointRelease:
    """Return private estimates for several questions on a Spark dataframe, from one pass over its records.

    Parameters
    ----------
    asked : sequence of Ask
        The questions, at least one.
    frame, budgets, **options
        As for `release`; they hold for every question.

    Returns
    -------
    JointRelease
        The releases, and the guarantee of all of them together.

    Raises
    ------
    InvalidInput
        As `release`.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> people = getfixture("spark").createDataFrame([("yes", 20.0), ("no", 40.0)] * 500, "vote string, hours double")
    >>> asked = [sdp.Ask(sdp.Frequency(["yes", "no"]), "vote"), sdp.Ask(sdp.Mean(0, 80), "hours")]
    >>> len(release_together(asked, people, budgets=1.0, seen="reports", delta=1e-6).releases)
    2
    """
    return keywords.release_together(asked, SparkEngine(frame), budgets=budgets, **options)


@renamed(wrappers.RENAMED)
def frequency(
    frame: Any,
    value: str,
    categories: Iterable[Hashable],
    budgets: float | str | RowBudgets | None = None,
    **options: Unpack[Options],
) -> Release:
    """Return a private estimate of the frequency of each category in a column of a Spark dataframe.

    Parameters are those of `release` and `shuffledp.frequency_of_table`.
    """
    return _of_frame("frequency", wrappers.frequency_of_table, frame, options, value, categories, budgets)


@renamed(wrappers.RENAMED)
def mean(
    frame: Any,
    value: str,
    low: float,
    high: float,
    budgets: float | str | RowBudgets | None = None,
    **options: Unpack[Options],
) -> Release:
    """Return a private estimate of the mean of a column of a Spark dataframe.

    Parameters are those of `release` and `shuffledp.mean_of_table`.
    """
    return _of_frame("mean", wrappers.mean_of_table, frame, options, value, low, high, budgets)


@renamed(wrappers.RENAMED)
def histogram(
    frame: Any,
    value: str,
    low: float,
    high: float,
    bins: int,
    budgets: float | str | RowBudgets | None = None,
    **options: Unpack[Options],
) -> Release:
    """Return a private estimate of the histogram of a column of a Spark dataframe.

    Parameters are those of `release` and `shuffledp.histogram_of_table`.
    """
    return _of_frame("histogram", wrappers.histogram_of_table, frame, options, value, low, high, bins, budgets)


@renamed(wrappers.RENAMED)
def quantiles(
    frame: Any,
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
    """Return private estimates of quantiles of a column of a Spark dataframe.

    Parameters are those of `release` and `shuffledp.quantiles_of_table`.
    """
    own = value, low, high, at, budgets
    return _of_frame("quantiles", wrappers.quantiles_of_table, frame, options, *own, bins=bins, branching=branching)


@renamed(wrappers.RENAMED)
def variance(
    frame: Any,
    value: str,
    low: float,
    high: float,
    budgets: float | str | RowBudgets | None = None,
    **options: Unpack[Options],
) -> Release:
    """Return a private estimate of the variance of a column of a Spark dataframe.

    Parameters are those of `release` and `shuffledp.variance_of_table`.
    """
    return _of_frame("variance", wrappers.variance_of_table, frame, options, value, low, high, budgets)


@renamed(wrappers.RENAMED)
def frequent_items(
    frame: Any,
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
    """Return the frequent items of a column of a Spark dataframe, with private estimates of their frequencies.

    Parameters are those of `release` and `shuffledp.frequent_items_of_table`.
    """
    words: dict[str, Any] = {"max_length": max_length, "alphabet": alphabet, "cut": cut}
    words |= {"candidates": candidates, "false_positives": false_positives}
    return _of_frame("frequent_items", wrappers.frequent_items_of_table, frame, options, value, budgets, **words)


def _of_frame(
    name: str, function: Callable[..., Kind], frame: Any, options: Options, *own: Any, **besides: Any
) -> Kind:
    """Call the function of a table on a dataframe; a TypeError names the short form, and comes before Spark."""
    told_apart(options, name, wrappers.OWN)
    return function(SparkEngine(frame), *own, **besides, **options)
