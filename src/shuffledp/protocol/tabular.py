"""Estimates from tables of any length: read in batches, randomized and counted batch by batch, never held whole.

Two passes: the first counts the budgets, for the guarantee comes before the records; the second draws reports and
tallies them. The estimate is a function of the multiset of reports (a sum over them), so it is the same whether
the reports were permuted, and however they were cut into batches.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.budgets import MAX_EPSILON0, Budgets
from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness, secure_random
from shuffledp.protocol.collect import check_choice, guarantee_for, make_release
from shuffledp.protocol.columns import bounded_numbers, category_codes, read_labels
from shuffledp.protocol.mechanisms import frequency_oracle
from shuffledp.protocol.numbers import check_seen, number_randomizer
from shuffledp.protocol.pipeline import FREQUENCY_SEEN
from shuffledp.protocol.release import Release
from shuffledp.protocol.tally import Task, level_indices, tally_for
from shuffledp.protocol.weights import WEIGHTS, Weights
from shuffledp.randomizers.checks import real_range
from shuffledp.setting import Seen
from shuffledp.tables import BATCH, Columns, Table

MOST_BUDGETS = 5_000_000
"""Different budgets that are counted; more would need memory that grows with the table."""


@dataclass(frozen=True)
class RowBudgets:
    """Where the budget of each row comes from.

    Parameters
    ----------
    epsilon0 : float or str
        One local budget for all (nats, 0 to 700), or the name of a column.
    consent : mapping of str to float, optional
        What each word of that column stands for, such as ``{"strict": 0.1, "open": 1.0}``; without it the column
        holds the budgets themselves.
    delta0 : float
        Local delta0 of everybody, in [0, 1).

    Raises
    ------
    InvalidInput
        If `consent` is given without a column, or is empty.

    Examples
    --------
    >>> RowBudgets("consent", {"strict": 0.1, "open": 1.0}).columns
    {'texts': ['consent']}
    """

    epsilon0: float | str
    consent: Mapping[str, float] | None = None
    delta0: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.epsilon0, str | int | float | np.number):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(
                "epsilon0 must be one number, or the name of the column with each row's budget; got "
                f"{type(self.epsilon0).__name__}: put the budgets into a column of the table"
            )
        if self.consent is None:
            return
        if not isinstance(self.epsilon0, str):
            raise InvalidInput(f"consent needs the name of a column as epsilon0; got {self.epsilon0!r}")
        if not self.consent:
            raise InvalidInput("consent names no word; say what each word of the column stands for, as strict: 0.1")

    @property
    def columns(self) -> dict[str, list[str]]:
        """What `Table.batches` must read for it."""
        if not isinstance(self.epsilon0, str):
            return {}
        return {"numbers" if self.consent is None else "texts": [self.epsilon0]}

    def of(self, batch: Columns, before: int) -> FloatArray:
        """Budgets of a batch, shape () or (rows,); a word nobody explained is named with its row."""
        if not isinstance(self.epsilon0, str):
            return np.asarray(self.epsilon0, dtype=np.float64)
        if self.consent is None:
            return self._checked(batch.numbers[self.epsilon0], before)
        words, column = tuple(self.consent), batch.texts[self.epsilon0]
        unknown = ~column.is_in(words)
        if unknown.any():
            row = int(unknown.arg_max() or 0)
            raise InvalidInput(
                f"{self.epsilon0} in row {before + row + 1} is {column[row]!r}, which consent does not explain; "
                f"add {column[row]!r} to consent, or drop the row"
            )
        return np.array([float(self.consent[word]) for word in words])[category_codes(column, words, before)]

    def _checked(self, budgets: FloatArray, before: int) -> FloatArray:
        bad = ~((budgets >= 0.0) & (budgets <= MAX_EPSILON0))
        if bad.any():
            row = int(np.argmax(bad))
            raise InvalidInput(
                f"{self.epsilon0} in row {before + row + 1} is {budgets[row]}; a local budget is a number of nats "
                f"from 0 to {MAX_EPSILON0:g}"
            )
        return budgets

    def population(self, table: Table, rows: int = BATCH) -> Budgets:
        """Count the budgets of a whole table: the first pass."""
        counts: dict[float, int] = {}
        read = 0
        for batch in table.batches(**self.columns, rows=rows):
            found = np.broadcast_to(self.of(batch, read), (batch.rows,)) if self.columns else None
            if found is None:
                counts[float(self.epsilon0)] = counts.get(float(self.epsilon0), 0) + batch.rows
            else:
                for budget, count in zip(*_counted(found), strict=True):
                    counts[budget] = counts.get(budget, 0) + count
            read += batch.rows
            if len(counts) > MOST_BUDGETS:
                raise InvalidInput(
                    f"{table.name} holds more than {MOST_BUDGETS:,} different budgets; "
                    "round them down to few public levels"
                )
        return Budgets(list(counts), list(counts.values()), [self.delta0] * len(counts))


def _counted(budgets: FloatArray) -> tuple[list[float], list[int]]:
    values, counts = np.unique(budgets, return_counts=True)
    return values.tolist(), counts.tolist()


@dataclass(frozen=True)
class TablePlan:
    """What is fixed before a record is read: table, budgets and their number, source of noise, rows of a batch."""

    table: Table
    who: RowBudgets
    population: Budgets
    source: Randomness
    rows: int

    def levels(self, budgets: FloatArray, view: Seen) -> NDArray[np.int64] | None:
        """Which level each row of a batch has, where that is seen and there are several."""
        if view != "levels" or self.population.levels == 1:
            return None
        return level_indices(self.population, budgets, self.who.delta0)

    def batches(self, **columns: list[str]) -> Iterator[tuple[Columns, FloatArray, int]]:
        """Read again, with the value: batch, budgets, rows before."""
        wanted = {kind: [*names, *self.who.columns.get(kind, [])] for kind, names in columns.items()}
        wanted |= {kind: names for kind, names in self.who.columns.items() if kind not in wanted}
        read = 0
        for batch in self.table.batches(**wanted, rows=self.rows):
            yield batch, self.who.of(batch, read), read
            read += batch.rows
        if read != self.population.n:
            raise InvalidInput(
                f"{self.table.name} had {self.population.n} rows when its budgets were counted and {read} afterwards; "
                "leave it unchanged until the command ends"
            )


def plan_table(table: Any, who: RowBudgets, weights: str, random: Randomness | None, rows: int) -> TablePlan:
    """Check everything that can be without the records, and count the budgets: the first pass."""
    check_choice("weights", weights, WEIGHTS)
    if rows < 1:
        raise InvalidInput(f"a batch needs at least one row; got {rows}")
    source = secure_random() if random is None else random
    opened = Table.of(table)
    population = who.population(opened, rows)
    if population.epsilons[-1] == 0.0:
        raise InvalidInput("every epsilon0 is 0, so no report carries information; give some users a budget above 0")
    return TablePlan(opened, who, population, source, rows)


def frequency_of_table(
    table: Any,
    value: str,
    categories: Iterable[Hashable],
    epsilon0: float | str | RowBudgets,
    *,
    seen: Seen | None,
    delta: float,
    mechanism: str = "krr",
    weights: Weights = "population",
    random: Randomness | None = None,
    rows: int = BATCH,
) -> Release:
    """Estimate how frequent each category is in a column of a table, in memory that does not grow with the table.

    Parameters
    ----------
    table : str, Path or dataframe
        A CSV, TSV or Parquet file, or any dataframe (see `shuffledp.tables.Table.of`).
    value : str
        The column, read as text.
    categories : iterable of str, length k
        All possible entries; public.
    epsilon0 : float, str or RowBudgets
        One local budget for all (nats), the name of a column of budgets, or a column of words with their meaning.
    seen : {"reports", "levels"} or None
        As for `estimate_frequency`; None is allowed where there is one budget.
    delta : float
        Central delta of the guarantee, in (0, 1).
    mechanism, weights, random
        As for `estimate_frequency`.
    rows : int
        About how many rows are held at a time.

    Returns
    -------
    Release
        ``.estimate`` has shape (k,), in the order of the categories.

    Raises
    ------
    InvalidInput
        On any bad argument, and for the first bad row, counting from 1.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"answer": ["yes", "no"] * 500, "consent": ["strict", "open"] * 500})
    >>> budgets = RowBudgets("consent", {"strict": 0.5, "open": 2.0})
    >>> release = frequency_of_table(people, "answer", ["yes", "no"], budgets, seen="reports", delta=1e-6)
    >>> release.n, release.estimate.shape
    (1000, (2,))
    """
    labels = read_labels(categories)
    family = frequency_oracle(mechanism, len(labels))
    plan = plan_table(table, row_budgets(epsilon0), weights, random, rows)
    view = settle_seen(seen, plan.population, FREQUENCY_SEEN)
    randomizer = family.for_budgets(plan.population.epsilons, plan.population.counts)
    guarantee = guarantee_for(plan.population, randomizer, view, delta)
    tally = tally_for(Task(randomizer, plan.population, view, weights))
    for batch, budgets, before in plan.batches(texts=[value]):
        codes = category_codes(batch.texts[value], labels, before)
        tally.add(randomizer.randomize(codes, budgets, plan.source), plan.levels(budgets, view))
    return make_release(tally.estimate(), guarantee, plan.source, weights, labels)


def mean_of_table(
    table: Any,
    value: str,
    low: float,
    high: float,
    epsilon0: float | str | RowBudgets,
    *,
    seen: Seen | None,
    delta: float,
    mechanism: str = "one-bit",
    clip: bool = False,
    weights: Weights = "population",
    random: Randomness | None = None,
    rows: int = BATCH,
) -> Release:
    """Estimate the mean of a column of a table, in memory that does not grow with the table.

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
        `RowBudgets` also takes the delta0 that Gaussian noise needs.
    seen : {"reports", "levels", "sum"} or None
        As for `estimate_mean`; None is allowed where there is one budget.
    delta : float
        Central delta of the guarantee, in (0, 1).
    mechanism, clip, weights, random
        As for `estimate_mean`.
    rows : int
        About how many rows are held at a time.

    Returns
    -------
    Release
        ``.estimate`` is a float.

    Raises
    ------
    InvalidInput
        On any bad argument, and for the first bad row, counting from 1.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"hours": [20.0, 40.0] * 500})
    >>> mean_of_table(people, "hours", 0.0, 100.0, 1.0, seen="reports", delta=1e-6).n
    1000
    """
    ends = real_range(low, high)
    plan = plan_table(table, row_budgets(epsilon0), weights, random, rows)
    view = settle_seen(seen, plan.population, ("reports", "levels", "sum"))
    check_seen(mechanism, view)
    randomizer = number_randomizer(mechanism, *ends, plan.population, view)
    guarantee = guarantee_for(plan.population, randomizer, view, delta)
    tally = tally_for(Task(randomizer, plan.population, view, weights))
    deltas = np.asarray(plan.who.delta0, dtype=np.float64)
    for batch, budgets, before in plan.batches(numbers=[value]):
        numbers = bounded_numbers(batch.numbers[value], randomizer, clip=clip, before=before)
        reports = randomizer.randomize(numbers, budgets, plan.source, delta0=deltas)
        tally.add(reports, plan.levels(budgets, view))
    return make_release(tally.estimate(), guarantee, plan.source, weights)


def row_budgets(epsilon0: float | str | RowBudgets) -> RowBudgets:
    """Say where budgets come from, in the long form."""
    return epsilon0 if isinstance(epsilon0, RowBudgets) else RowBudgets(epsilon0)


def settle_seen(seen: Seen | None, population: Budgets, known: tuple[Seen, ...]) -> Seen:
    """Who sees what; without a word only where it makes no difference."""
    if seen is None:
        if population.levels > 1:
            raise InvalidInput(
                f"there are {population.levels} different budgets, so say who sees what: seen = 'reports' (levels "
                "withheld) or 'levels'"
            )
        return "reports"
    check_choice("seen", seen, known)
    return seen
