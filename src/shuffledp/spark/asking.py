"""The questions, asked of a dataframe of Spark: the same flow as in one process, with another engine."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Required, TypedDict, Unpack

from numpy.typing import ArrayLike

from shuffledp.ledger import Ledger
from shuffledp.numerics.randomness import Randomness
from shuffledp.questions.frequency import Frequency
from shuffledp.questions.items import FrequentItems
from shuffledp.questions.mean import Mean
from shuffledp.questions.question import Question
from shuffledp.questions.ranges import Histogram, Quantiles
from shuffledp.questions.task import Weights
from shuffledp.questions.variance import Variance
from shuffledp.randomizers.checks import check_options
from shuffledp.records.owners import RowsPerPerson
from shuffledp.records.people import RowBudgets
from shuffledp.releases import verb
from shuffledp.releases.release import ItemsRelease, RangeRelease, Release
from shuffledp.releases.run import Ask
from shuffledp.releases.verb import JointRelease
from shuffledp.releases.wrappers import as_kind
from shuffledp.setting import Seen
from shuffledp.spark.engine import SparkEngine


class RunOptions(TypedDict, total=False):
    """What holds for all questions of a run; see `shuffledp.release`."""

    seen: Seen | None
    delta: Required[float]
    person: str | None
    rows_per_person: RowsPerPerson
    missing_budget: float | None
    target_epsilon: float | None
    any_delta: bool
    consent: Mapping[str, float] | None
    weights: Weights
    random: Randomness | None
    ledger: Ledger | str | Path | None
    population: str
    fixed_in_advance: str | None
    title: str


class SparkOptions(RunOptions, total=False):
    """What every question takes besides the question itself; see `shuffledp.release`."""

    mechanism: str | None
    missing_as: Hashable | None
    other: Hashable | None
    clip: bool


def release(
    question: Question,
    frame: Any,
    *,
    value: str | Sequence[str],
    budgets: float | str | RowBudgets | None = None,
    **options: Unpack[SparkOptions],
) -> Release:
    """Ask one question of the rows of a dataframe of Spark, and release a private estimate with its guarantee.

    Spark counts the budgets; the driver certifies the guarantee; then every task reads its partition, randomizes the
    records with secure randomness of its own, and returns a tally. Records never come to the driver.

    Parameters
    ----------
    question : Question
        `Frequency`, `FrequentItems`, `Mean`, `Histogram`, `Quantiles`, `Variance` or `VectorMean`.
    frame : pyspark.sql.DataFrame
        Classic or Connect. It is evaluated several times and must have the same rows each time: a plan that draws at
        random, or takes rows by their order, is refused.
    value : str or sequence of str
        The column with the records; one column for each coordinate of a vector.
    budgets : float, str or RowBudgets
        As for `shuffledp.release`.
    **options
        `delta` (needed), `seen`, `mechanism`, `person`, `rows_per_person` (without "one"), `missing_as`,
        `other`, `missing_budget`, `any_delta`, `clip`, `consent`, `weights`, `random`, `ledger`, `population`,
        `fixed_in_advance`, `title`, each as for `shuffledp.release`. Of a `simulation_random` one word is drawn, and
        partition p draws from the seed (word, p); see `simulate_partitions`.

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
    return verb.release(question, SparkEngine(frame), value=value, budgets=budgets, **options)


def release_together(
    asked: Sequence[Ask], frame: Any, *, budgets: float | str | RowBudgets | None = None, **options: Unpack[RunOptions]
) -> JointRelease:
    """Ask several questions in one pass over the records of a dataframe of Spark.

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
    return verb.release_together(asked, SparkEngine(frame), budgets=budgets, **options)


def frequency(
    frame: Any,
    value: str,
    categories: Iterable[Hashable],
    epsilon0: float | str | RowBudgets | None = None,
    **options: Unpack[SparkOptions],
) -> Release:
    """Estimate how frequent each category is in a column; see `release` and `shuffledp.frequency_of_table`."""
    return _of_frame(Frequency(categories), frame, value, epsilon0, options)


def mean(
    frame: Any,
    value: str,
    low: float,
    high: float,
    epsilon0: float | str | RowBudgets | None = None,
    **options: Unpack[SparkOptions],
) -> Release:
    """Estimate the mean of a column; see `release` and `shuffledp.mean_of_table`."""
    return _of_frame(Mean(low, high), frame, value, epsilon0, options)


def histogram(
    frame: Any,
    value: str,
    low: float,
    high: float,
    bins: int,
    epsilon0: float | str | RowBudgets | None = None,
    **options: Unpack[SparkOptions],
) -> Release:
    """Estimate the histogram of a column; see `release` and `shuffledp.histogram_of_table`."""
    return _of_frame(Histogram(low, high, bins), frame, value, epsilon0, options)


def quantiles(
    frame: Any,
    value: str,
    low: float,
    high: float,
    probabilities: ArrayLike,
    epsilon0: float | str | RowBudgets | None = None,
    *,
    bins: int,
    branching: int = 4,
    **options: Unpack[SparkOptions],
) -> RangeRelease:
    """Estimate quantiles of a column; see `release` and `shuffledp.quantiles_of_table`."""
    question = Quantiles(low, high, probabilities, bins, branching)  # type: ignore[arg-type]
    return as_kind(RangeRelease, _of_frame(question, frame, value, epsilon0, options))


def variance(
    frame: Any,
    value: str,
    low: float,
    high: float,
    epsilon0: float | str | RowBudgets | None = None,
    **options: Unpack[SparkOptions],
) -> Release:
    """Estimate the variance of a column; see `release` and `shuffledp.variance_of_table`."""
    return _of_frame(Variance(low, high), frame, value, epsilon0, options)


def frequent_items(
    frame: Any,
    value: str,
    epsilon0: float | str | RowBudgets | None = None,
    *,
    candidates: Iterable[Hashable] | None = None,
    max_length: int = 16,
    alphabet: str = "ascii",
    cut: bool = False,
    false_positives: float = 0.05,
    **options: Unpack[SparkOptions],
) -> ItemsRelease:
    """Find the frequent items of a column; see `release` and `shuffledp.frequent_items_of_table`."""
    words: dict[str, Any] = {"max_length": max_length, "alphabet": alphabet, "cut": cut}
    question = FrequentItems(candidates, false_positives=false_positives, **words)
    return as_kind(ItemsRelease, _of_frame(question, frame, value, epsilon0, options))


def _of_frame(
    question: Question, frame: Any, value: str, epsilon0: float | str | RowBudgets | None, options: SparkOptions
) -> Release:
    check_options(options, SparkOptions, question.name)
    return release(question, frame, value=value, budgets=epsilon0, **options)
