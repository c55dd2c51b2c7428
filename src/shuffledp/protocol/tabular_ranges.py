"""Histograms, quantiles and variances from tables of any length, read in batches as in `shuffledp.protocol.tabular`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from numpy.typing import ArrayLike

from shuffledp.numerics.randomness import Randomness
from shuffledp.protocol.collect import guarantee_for, make_release
from shuffledp.protocol.columns import bounded_numbers
from shuffledp.protocol.histogram import HISTOGRAM_SEEN, Bins
from shuffledp.protocol.mechanisms import frequency_oracle
from shuffledp.protocol.quantiles import QUANTILE_SEEN, RangeRelease, read_probabilities
from shuffledp.protocol.release import Release
from shuffledp.protocol.tabular import RowBudgets, plan_table, row_budgets, settle_seen
from shuffledp.protocol.tally import Task, tally_for
from shuffledp.protocol.variances import VARIANCE_SEEN
from shuffledp.protocol.weights import Weights
from shuffledp.randomizers.moments import TwoMoments
from shuffledp.randomizers.tree import RangeTree
from shuffledp.setting import Seen
from shuffledp.tables import BATCH


def histogram_of_table(
    table: Any,
    value: str,
    low: float,
    high: float,
    bins: int,
    epsilon0: float | str | RowBudgets,
    *,
    seen: Seen | None,
    delta: float,
    mechanism: str = "subset",
    clip: bool = False,
    weights: Weights = "population",
    random: Randomness | None = None,
    rows: int = BATCH,
) -> Release:
    """Estimate the histogram of a column of a table, in memory that does not grow with the table.

    Parameters
    ----------
    table : str, Path or dataframe
        A CSV, TSV or Parquet file, or any dataframe (see `shuffledp.tables.Table.of`).
    value : str
        The column, a number in every row.
    low, high : float
        The range, public.
    bins : int
        Number of bins of equal width, from 2 on; the last one is closed. Public.
    epsilon0 : float, str or RowBudgets
        One local budget for all (nats), the name of a column of budgets, or a column of words with their meaning.
    seen : {"reports", "levels"} or None
        As for `estimate_histogram`; None is allowed where there is one budget.
    delta : float
        Central delta of the guarantee, in (0, 1).
    mechanism : str
        As for `estimate_histogram`. The default, subset selection of the size that the budgets make best, has the
        smallest error of all of them or nearly so, at few and many bins, small and large budgets.
    clip, weights, random
        As for `estimate_histogram`.
    rows : int
        About how many rows are held at a time.

    Returns
    -------
    Release
        ``.estimate`` has shape (bins,), ``.categories`` are the bins' edges (lower, upper).

    Raises
    ------
    InvalidInput
        On any bad argument, and for the first bad row, counting from 1.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"hours": [20.0, 40.0] * 500})
    >>> release = histogram_of_table(people, "hours", 0, 100, 4, 1.0, seen="reports", delta=1e-6)
    >>> release.categories[0], release.estimate.shape
    ((0.0, 25.0), (4,))
    """
    grid = Bins(low, high, bins)
    family = frequency_oracle(mechanism, grid.count)
    plan = plan_table(table, row_budgets(epsilon0), weights, random, rows)
    view = settle_seen(seen, plan.population, HISTOGRAM_SEEN)
    randomizer = family.for_budgets(plan.population.epsilons, plan.population.counts)
    guarantee = guarantee_for(plan.population, randomizer, view, delta)
    tally = tally_for(Task(randomizer, plan.population, view, weights))
    for batch, budgets, before in plan.batches(numbers=[value]):
        codes = grid.codes(bounded_numbers(batch.numbers[value], grid, clip=clip, before=before))
        tally.add(randomizer.randomize(codes, budgets, plan.source), plan.levels(budgets, view))
    edges = tuple(pairwise(grid.edges.tolist()))
    return make_release(tally.estimate(), guarantee, plan.source, weights, edges)


def quantiles_of_table(
    table: Any,
    value: str,
    low: float,
    high: float,
    probabilities: ArrayLike,
    epsilon0: float | str | RowBudgets,
    *,
    bins: int,
    seen: Seen | None,
    delta: float,
    branching: int = 4,
    clip: bool = False,
    weights: Weights = "population",
    random: Randomness | None = None,
    rows: int = BATCH,
) -> RangeRelease:
    """Estimate quantiles of a column of a table, in memory that does not grow with the table.

    Parameters
    ----------
    table : str, Path or dataframe
        A CSV, TSV or Parquet file, or any dataframe (see `shuffledp.tables.Table.of`).
    value : str
        The column, a number in every row.
    low, high : float
        The range, public.
    probabilities : float or array_like
        Which quantiles, in (0, 1): 0.5 is the median.
    epsilon0 : float, str or RowBudgets
        One local budget for all (nats), the name of a column of budgets, or a column of words with their meaning.
    bins : int
        Number of bins of equal width, from 2 to 2^22: quantiles are told to a bin. Public.
    seen : {"reports", "levels"} or None
        As for `estimate_quantiles`; None is allowed where there is one budget.
    delta : float
        Central delta of the guarantee, in (0, 1).
    branching : int
        Children of a node of the tree.
    clip, weights, random
        As for `estimate_quantiles`.
    rows : int
        About how many rows are held at a time.

    Returns
    -------
    RangeRelease
        ``.estimate`` and ``.confidence_interval()`` for the quantiles; ``.distribution`` for ranges.

    Raises
    ------
    InvalidInput
        On any bad argument, and for the first bad row, counting from 1.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"hours": [20.0, 40.0] * 500})
    >>> quantiles_of_table(people, "hours", 0, 100, 0.5, 2.0, bins=50, seen="reports", delta=1e-6).estimate.shape
    (1,)
    """
    wanted = read_probabilities(probabilities)
    grid, tree = Bins(low, high, bins), RangeTree(bins, branching)
    plan = plan_table(table, row_budgets(epsilon0), weights, random, rows)
    view = settle_seen(seen, plan.population, QUANTILE_SEEN)
    guarantee = guarantee_for(plan.population, tree, view, delta)
    tally = tally_for(Task(tree, plan.population, view, weights))
    for batch, budgets, before in plan.batches(numbers=[value]):
        codes = grid.codes(bounded_numbers(batch.numbers[value], grid, clip=clip, before=before))
        tally.add(tree.randomize(codes, budgets, plan.source), plan.levels(budgets, view))
    shown = weights if view == "levels" else None
    n, private = plan.population.n, plan.source.private
    return RangeRelease(tally.estimate(), grid.edges, wanted, guarantee, n, tree.name, private, shown)


def variance_of_table(
    table: Any,
    value: str,
    low: float,
    high: float,
    epsilon0: float | str | RowBudgets,
    *,
    seen: Seen | None,
    delta: float,
    clip: bool = False,
    weights: Weights = "population",
    random: Randomness | None = None,
    rows: int = BATCH,
) -> Release:
    """Estimate the variance of a column of a table, in memory that does not grow with the table.

    Parameters
    ----------
    table : str, Path or dataframe
        A CSV, TSV or Parquet file, or any dataframe (see `shuffledp.tables.Table.of`).
    value : str
        The column, a number in every row.
    low, high : float
        The range, public.
    epsilon0 : float, str or RowBudgets
        One local budget for all (nats), the name of a column of budgets, or a column of words with their meaning.
    seen : {"reports", "levels"} or None
        As for `estimate_variance`; None is allowed where there is one budget.
    delta : float
        Central delta of the guarantee, in (0, 1).
    clip, weights, random
        As for `estimate_variance`.
    rows : int
        About how many rows are held at a time.

    Returns
    -------
    Release
        ``.estimate`` is a float: the mean squared distance of the values from their mean.

    Raises
    ------
    InvalidInput
        On any bad argument, and for the first bad row, counting from 1.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"hours": [20.0, 40.0] * 500})
    >>> variance_of_table(people, "hours", 0.0, 100.0, 1.0, seen="reports", delta=1e-6).n
    1000
    """
    randomizer = TwoMoments(low, high)
    plan = plan_table(table, row_budgets(epsilon0), weights, random, rows)
    view = settle_seen(seen, plan.population, VARIANCE_SEEN)
    guarantee = guarantee_for(plan.population, randomizer, view, delta)
    tally = tally_for(Task(randomizer, plan.population, view, weights))
    for batch, budgets, before in plan.batches(numbers=[value]):
        numbers = bounded_numbers(batch.numbers[value], randomizer, clip=clip, before=before)
        tally.add(randomizer.randomize(numbers, budgets, plan.source), plan.levels(budgets, view))
    return make_release(tally.estimate(), guarantee, plan.source, weights)
