# pyright: reportMissingImports=false, reportUnknownParameterType=false
"""Spark as an engine: it counts the budgets, and its tasks return tallies; records never come to the driver."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import shuffledp
from shuffledp.budgets import HIGHEST, LOWEST, Budgets, steps_of
from shuffledp.errors import MAX_EPSILON0, InvalidInput, named, shown
from shuffledp.numerics.randomness import Randomness
from shuffledp.progress import Progress
from shuffledp.questions.tally import Tally
from shuffledp.records.people import NOTHING, Headcount, RowBudgets, RowsPerPerson, several_budgets, several_rows
from shuffledp.records.sources import Person, Where, nobody_has
from shuffledp.releases.engine import Engine, Part, columns_wanted
from shuffledp.spark.frames import (
    asked,
    check_columns,
    checked_frame,
    chosen,
    evaluated,
    gathered,
    quoted,
    without_rows,
)
from shuffledp.spark.worker import MARK, Counted, Job, as_batch, refused_rows, renamed
from shuffledp.tables.options import MISSING

if TYPE_CHECKING:
    import polars as pl
    from pyspark.sql import Column, DataFrame


# Functions that Spark ships to its workers.
#
# Each is defined inside another function, so that it travels as code and not as the name of a module: a worker
# without this package can then say so, where it would otherwise answer with its traceback. What a task needs travels
# as bytes that are unpacked only after the version was compared. Nothing random is shipped: sources of randomness
# refuse it, and every attempt of a task draws from a source of its own.

ABSENT = "none"
"""Version reported by a worker without this package."""
MERGED = "version string, n bigint, bad bigint, state binary"
STATES = f"place int, {MERGED}"
SPELLED = "person string, budget bigint, mark bigint"

Task = Callable[[Iterator[Any]], Iterator[Any]]
"""Function from Arrow record batches to Arrow record batches."""


def probing_task() -> Task:
    """Return a Spark task that yields the version of this package on its worker."""
    absent = ABSENT

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for _ in batches:
            pass
        try:
            from shuffledp.spark.worker import version_here

            version = version_here()
        except ImportError:
            version = absent
        yield pa.RecordBatch.from_pydict({"version": [version]})

    return task


def tallying_task(payload: bytes, version: str, root: int | None, *, place: bool) -> Task:
    """Return the Spark task that tallies the records of one partition; it yields one row.

    Parameters
    ----------
    payload : bytes
        The pickled `Job`.
    version : str
        Version of this package on the driver.
    root : int, optional
        Seed of a simulation. None: every attempt draws from a secure source of its own.
    place : bool
        Whether the yielded row includes the partition's number.
    """
    absent = ABSENT

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        number = context.partitionId() if context is not None else 0
        try:
            from shuffledp.spark.worker import answer_partition, version_here

            own = version_here()
        except ImportError:
            own, answer = absent, (0, 0, b"")
        else:
            answer = answer_partition(batches, payload, number, root) if own == version else (0, 0, b"")
        n, bad, state = answer
        places = {"place": pa.array([number], pa.int32())} if place else {}
        yield pa.RecordBatch.from_pydict({**places, "version": [own], "n": [n], "bad": [bad], "state": [state]})

    return task


def spelling_task() -> Task:
    """Return the Spark task that normalises the person of each row, the first of three columns, to one spelling."""

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        from shuffledp.spark.worker import answer_spelled

        for batch in batches:
            people = pa.array(answer_spelled(batch.column(0)), pa.string())
            yield pa.RecordBatch.from_arrays([people, *batch.columns[1:]], names=["person", "budget", "mark"])

    return task


def merging_task(payload: bytes, version: str) -> Task:
    """Return the Spark task that merges the tallies of several partitions into one row.

    Parameters
    ----------
    payload, version
        As for `tallying_task`.
    """

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        from itertools import chain

        import pyarrow as pa

        answers = (row for batch in batches for row in batch.select(["version", "n", "bad", "state"]).to_pylist())
        first = next(answers, None)
        if first is None:
            return
        from shuffledp.spark.worker import answer_merged

        rows = ((row["version"], row["n"], row["bad"], row["state"]) for row in chain([first], answers))
        own, n, bad, state = answer_merged(rows, payload, version)
        yield pa.RecordBatch.from_pydict({"version": [own], "n": [n], "bad": [bad], "state": [state]})

    return task


MOST_BUDGETS = 5_000_000
_NUMBERS = ("double", "float", "tinyint", "smallint", "int", "bigint")
"""Different budgets that the driver takes."""
MOST_VALUES = 100_000
"""Different values of a column of `where` that the driver takes."""
LARGE_STATE = 1 << 16
"""Size of one task's answer, in bytes, above which tasks merge answers before the driver does."""
BUCKETS = 16
_COUNT = "shuffledp count"


def offered(rule: RowsPerPerson) -> RowsPerPerson:
    """Return the rule for persons with several rows; raise InvalidInput for "one", which Spark cannot apply."""
    if rule == "one":
        raise InvalidInput(
            "`rows_per_person = 'one'` is not offered on Spark, whose own random choice is not secure; choose one "
            "row of each person when you write the table, or allow a number of rows"
        )
    return rule


def named_by_all(person: Person) -> str:
    """Return the column that tells whose row it is, or refuse what Spark cannot do."""
    if person.missing == "own":
        raise InvalidInput(
            "`missing_person = 'own'` is not offered on Spark, where a row has no place that two passes agree on; give "
            "every row its person when you write the table"
        )
    return person.column


class SparkEngine(Engine):
    """Engine that evaluates questions on a Spark dataframe.

    Parameters
    ----------
    frame : DataFrame
        Spark dataframe, classic or Connect.

    Raises
    ------
    InvalidInput
        If ``frame`` is no Spark dataframe, or its rows may differ each time it is evaluated; if workers do not have
        this package in this
        version.
    """

    def __init__(self, frame: Any) -> None:
        self.frame: DataFrame = checked_frame(frame)
        probe = evaluated(self.frame.sparkSession.range(0, 1, 1, 1), probing_task(), "version string")
        check_versions(gathered(probe)["version"].to_list())

    def selected(self, where: tuple[Where, ...]) -> SparkEngine:
        """Return the engine of those rows alone that have the public values; see `Engine.selected`.

        The different values of these columns, which are public, come to the driver.
        """
        import polars as pl
        from pyspark.sql import functions as F  # noqa: N812

        frame = self.frame
        check_columns(frame, [each.column for each in where])
        for each in where:
            column = F.col(quoted(each.column))
            values = gathered(chosen(self.frame, [each.column]).distinct().limit(MOST_VALUES + 1))
            if values.height > MOST_VALUES:
                raise InvalidInput(
                    f"the column {named(each.column)} of `where` has more than {MOST_VALUES:,} different values, which "
                    "tell rows apart, and no groups; name another column"
                )
            words = as_batch(renamed(values, [each.column]), {"texts": (each.column,), "gaps": (each.column,)})
            codes = each.codes(words.texts(each.column))
            for place in range(len(each.values)):
                if not (codes == place).any():
                    raise nobody_has(each, place, "the dataframe", [words.texts(each.column)])
            own = values.to_series().filter(pl.Series(codes >= 0)).to_list()
            frame = frame.filter(column.isin(own))
        engine = copy.copy(self)  # its workers were asked for their version already
        engine.frame = frame
        return engine

    def people(
        self,
        who: RowBudgets,
        person: Person | None,
        rule: RowsPerPerson,
        random: Randomness,
        progress: Progress | None = None,
    ) -> Headcount:
        """Return the participants and their budgets; only the columns of budgets and persons are read.

        See `Engine.people`.
        """
        del random, progress
        columns = budget_columns(who)
        check_columns(self.frame, (*columns, *(() if person is None else (named_by_all(person),))))
        if columns:
            wanted = {"numbers": who.numbers, "texts": who.texts, "gaps": who.gaps}
            _check_types(without_rows(self.frame, columns), wanted)
            counts = gathered(budget_counts(rounded(self.frame, who), columns))
            population = counted_budgets(renamed(counts, [*columns, _COUNT]), who)
        else:
            rows = asked(self.frame.count)
            population = Budgets([float(who.epsilons(NOTHING))], [rows], [float(who.deltas(NOTHING))]) if rows else None
        if population is None:
            raise InvalidInput("the dataframe has no rows; give one row per user")
        if person is None:
            return Headcount(who, population, population.n, population.n)
        people, group_size, mark = self._owners(person.column, offered(rule), population.n, who)
        return Headcount(who, population, population.n, people, group_size, person=person, mark=mark)

    def tallies(
        self,
        parts: Sequence[Part],
        random: Randomness,
        progress: Progress | None = None,
    ) -> list[Tally]:
        """Return the tally of each question, from one pass of which only sums come to the driver.

        See `Engine.tallies`.
        """
        people = parts[0].people
        job = Job(tuple(parts), None if people.person is None else people.mark)
        wanted = columns_wanted(parts, people.who)
        check_columns(self.frame, job.columns)
        person = None if people.person is None else people.person.column
        read = chosen(self._marked(person, people.group_size, people.who), job.names)
        _check_types(without_rows(self.frame, job.columns), wanted)
        counted = Counted.nothing(job)
        root = None if random.private else int(random.words(1)[0])
        answers = gathered(self.answers(read, job, root, large=len(counted.state()) > LARGE_STATE))
        check_versions(answers["version"].to_list())
        bad = int(answers["bad"].sum())
        if bad:
            raise refused_records(bad, parts)
        if int(answers["n"].sum()) != people.rows:
            raise _changed()
        for n, state in answers.select("n", "state").iter_rows():
            counted.add(job, n, 0, state)
        if not np.array_equal(counted.levels, job.expected()):
            raise _changed()
        if progress is not None:
            progress(1.0)
        return counted.tallies

    def answers(self, read: DataFrame, job: Job, root: int | None, *, large: bool) -> DataFrame:
        """Return the unevaluated dataframe of the partitions' results, with the columns version, n, bad and state.

        Parameters
        ----------
        read : DataFrame
            The columns that the questions read.
        job : Job
            What a task does.
        root : int or None
            Seed of a simulation; None: private randomness.
        large : bool
            Whether results are merged on the workers before they come to the driver.
        """
        payload = pickle.dumps(job)
        version = shuffledp.__version__
        if not large:
            return evaluated(read, tallying_task(payload, version, root, place=False), MERGED)
        # A task that runs again, after an executor is lost, draws other reports; its answer must go where the first
        # one went, or it would be counted twice. So the partition's number decides, and nothing that is drawn.
        answers = evaluated(read, tallying_task(payload, version, root, place=True), STATES)
        return evaluated(answers.repartition(BUCKETS, "place"), merging_task(payload, version), MERGED)

    def _owners(self, person: str, rule: RowsPerPerson, rows: int, who: RowBudgets) -> tuple[int, int, int]:
        """Count the people, and refuse those with more rows than the rule allows, or with rows of several budgets."""
        most = 1 if rule == "refuse" else int(rule)
        _check_types(without_rows(self.frame, [person]), {"texts": (person,)})
        budgets = budget_columns(who) if most > 1 else []  # of one row each they do not matter
        whole = self._marked(person, most, who)
        counts = owner_counts(rounded(whole, who) if budgets else whole, person, most, budgets)
        totals = gathered(counts).row(0, named=True)
        if totals["empty"]:
            raise InvalidInput(
                f"{named(person)} is empty in {totals['empty']:,} rows, or says NA or the like, so nobody knows whose "
                "rows they are; give every row its person"
            )
        if totals["rows"] != rows:
            raise _changed()
        if totals["above"]:
            raise InvalidInput(several_rows(totals["above"], totals["people"], totals["largest"], most))
        if totals["mixed"]:
            raise InvalidInput(several_budgets(totals["mixed"], totals["people"]))
        return totals["people"], most, int(totals["mark"]) % 2**64

    def _marked(self, person: str | None, most: int, who: RowBudgets) -> DataFrame:
        """Add a column `MARK`, by which the rows of two passes are compared: a hash of each row's person.

        Where a person may have several rows, their budgets are in it, too; else the counts of budgets tell all.
        """
        from pyspark.sql import functions as F  # noqa: N812

        if person is None:
            return self.frame
        hashed = (person, *(budget_columns(who) if most > 1 else ()))
        return self.frame.withColumn(MARK, F.xxhash64(*(F.col(quoted(name)) for name in hashed)))


def rounded(frame: DataFrame, who: RowBudgets) -> DataFrame:
    """Return the dataframe with its budgets rounded down as `rounded_down` does, if the options ask for it.

    Entries that are no budget stay as they are.

    Raises
    ------
    InvalidInput
        If budgets are to be rounded, and their column does not hold numbers.
    """
    from pyspark.sql import functions as F  # noqa: N812

    if who.levels is None:
        return frame
    column, steps = str(who.epsilon0), steps_of(who.levels)
    kind = dict(frame.dtypes).get(column, "")
    if kind not in _NUMBERS:
        raise InvalidInput(
            f"`levels` rounds budgets that are numbers; the column {named(column)} holds {kind}: cast it to "
            "double first"
        )
    budget = F.col(quoted(column)).cast("double")
    down = F.when(budget < 2.0**LOWEST, 0.0)
    for octave in range(LOWEST, HIGHEST + 1):
        unit = 2.0**octave / steps  # a power of two: products with it and its inverse are exact
        down = down.when(budget < 2.0 ** (octave + 1), F.floor(budget * (1.0 / unit)).cast("double") * unit)
    return frame.withColumn(column, F.when((budget >= 0.0) & (budget <= MAX_EPSILON0), down).otherwise(budget))


def budget_counts(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return an unevaluated dataframe of the distinct entries of the budget columns; its last column counts each."""
    from pyspark.sql import functions as F  # noqa: N812

    only = chosen(frame, columns)
    return only.groupBy(*only.columns).agg(F.count(F.lit(1))).limit(MOST_BUDGETS + 1)


def budget_columns(who: RowBudgets) -> list[str]:
    """Return the names of the columns that hold budgets."""
    return list(dict.fromkeys((*who.numbers, *who.texts)))


def counted_budgets(entries: pl.DataFrame, who: RowBudgets) -> Budgets | None:
    """Return the budgets and their counts, read from the distinct entries; None if there is no row.

    Raises
    ------
    InvalidInput
        If rows have no budget, with their number; if there are too many different ones.
    """
    if entries.height == 0:
        return None
    if entries.height > MOST_BUDGETS:
        raise InvalidInput(
            f"there are more than {MOST_BUDGETS:,} different budgets; round them down to fewer, which gives nobody "
            f"less privacy: budgets = RowBudgets({shown(str(who.epsilon0))}, levels=4096)"
        )
    wanted = {"numbers": who.numbers, "texts": who.texts, "gaps": who.gaps}

    def read(rows: pl.DataFrame) -> Budgets:
        batch = as_batch(rows, wanted)
        shape = (rows.height,)
        epsilons, deltas = np.broadcast_to(who.epsilons(batch), shape), np.broadcast_to(who.deltas(batch), shape)
        return Budgets(epsilons, rows[_COUNT].to_numpy(), deltas)

    try:
        return read(entries)
    except InvalidInput:
        bad, _ = refused_rows(entries, read)
    count = int(entries[_COUNT].to_numpy()[bad].sum())
    names = ", ".join(map(named, budget_columns(who)))
    way_out = "give every row one, or say which budget a row without one has, as `missing_budget = 0`"
    if who.consent is None:
        way_out += "; if words stand for budgets, say what each stands for with `consent`"
    else:
        way_out += "; say with `consent` what every word stands for"
    raise InvalidInput(
        f"at least {count:,} rows hold no local budget in {names} (a number of nats from 0 to {MAX_EPSILON0:g}, or a "
        f"word that stands for one); {way_out}"
    )


def owner_counts(frame: DataFrame, person: str, most: int, budgets: Sequence[str]) -> DataFrame:
    """Return an unevaluated one-row dataframe of counts of persons.

    Its columns are rows, empty (rows without a person), people, largest (most rows of a person), above (people with
    more rows than ``most``), mixed (people with several budgets) and mark (sum of the rows' `MARK`). Persons are told
    apart by the workers, as one process does it (`shuffledp.tables.options`).

    Parameters
    ----------
    frame : DataFrame
        The table; every row has a `MARK`.
    person : str
        The column with the owner of each row.
    most : int
        Largest number of rows of a person that the rule allows.
    budgets : sequence of str
        The columns of budgets.
    """
    from pyspark.sql import functions as F  # noqa: N812

    def text(place: int) -> Column:
        return F.regexp_replace(F.col(f"c{place}").cast("string"), r"(?U)^\s+|\s+$", "")

    places = range(1, 1 + len(budgets))
    budget = F.xxhash64(F.lit(0), *(text(place) for place in places), *(text(place).isNull() for place in places))
    rows = chosen(frame, [person, *budgets, MARK])
    owner_rows = rows.select(F.col("c0"), budget.alias("budget"), F.col(f"c{1 + len(budgets)}").alias("mark"))
    owned = (
        evaluated(owner_rows, spelling_task(), SPELLED)
        .groupBy("person")
        .agg(
            F.count(F.lit(1)).alias("own"),
            F.countDistinct("budget").alias("budgets"),
            F.sum(F.col("mark").cast("decimal(20,0)")).alias("mark"),
        )
    )
    empty = F.col("person").isNull() | F.lower(F.col("person")).isin(*MISSING)
    return owned.agg(
        F.coalesce(F.sum("own"), F.lit(0)).alias("rows"),
        F.coalesce(F.sum(F.when(empty, F.col("own"))), F.lit(0)).alias("empty"),
        F.count(F.lit(1)).alias("people"),
        F.coalesce(F.max("own"), F.lit(0)).alias("largest"),
        F.count(F.when(F.col("own") > most, 1)).alias("above"),
        F.count(F.when(F.col("budgets") > 1, 1)).alias("mixed"),
        F.coalesce(F.sum("mark"), F.lit(0)).cast("string").alias("mark"),
    )


def refused_records(bad: int, parts: Sequence[Part]) -> InvalidInput:
    """Return the error to raise if the questions of ``parts`` do not cover ``bad`` records; it names no row."""
    columns = ", ".join(dict.fromkeys(named(name) for part in parts for name in part.columns[:5]))
    return InvalidInput(
        f"at least {bad:,} rows hold in {columns} a record that is missing, outside the range, or none of the "
        "categories; say what such a record counts as: `missing_as`, and `other` for categories or `clip` for numbers"
    )


def _check_types(empty: pl.DataFrame, wanted: dict[str, tuple[str, ...]]) -> None:
    """Raise InvalidInput if a column holds neither numbers nor words; no row is looked at."""
    as_batch(empty, wanted)


def check_versions(versions: Sequence[str]) -> None:
    """Raise InvalidInput unless all workers have this package in the driver's version."""
    other = sorted({version for version in versions if version != shuffledp.__version__})
    if not other:
        return
    if ABSENT in other:
        raise InvalidInput(
            "a worker of Spark has no shuffledp, or not all that it needs; install "
            f"shuffledp {shuffledp.__version__} with the extra spark for the Python "
            "that the workers run (PYSPARK_PYTHON)"
        )
    raise InvalidInput(
        f"workers of Spark have shuffledp {', '.join(map(named, other))}, and the driver {shuffledp.__version__}; "
        "install the same version everywhere"
    )


def _changed() -> InvalidInput:
    return InvalidInput(
        "the dataframe had other rows or budgets when the records were read than when its budgets were counted; write "
        "the rows to a table first (df.write), and release from that"
    )
