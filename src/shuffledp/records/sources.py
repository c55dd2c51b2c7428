"""Sources of records: a file, any dataframe, or arrays by name, which can be read in batches several times.

Whose a row is: the word in the person column, and a key of 64 bits for each person.
"""

from __future__ import annotations

import functools
import os
import secrets
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shuffledp.errors import VALUE, BadEntry, InvalidInput, Written, named, shown
from shuffledp.in_words import conditions
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.randomness import Words
from shuffledp.progress import Progress
from shuffledp.randomizers.vector import mix
from shuffledp.records.columns import as_array, as_floats, as_labels, check_different, known_codes
from shuffledp.tables import BATCH, Table, TableOptions
from shuffledp.tables.options import MISSING, one_spelling, same_word, spelled
from shuffledp.tables.table import Choice, no_column


@dataclass(frozen=True)
class Batch:
    """Consecutive rows of the requested columns.

    Parameters
    ----------
    columns : mapping of str to column
        An array, sequence or polars Series for each column, all of one length.
    rows : int
        Number of rows: that length.
    before : int
        Number of rows before these.
    places : ndarray of int64, shape (rows,), optional
        Position of each row in the table, from 0, where only some of its rows are asked; None: all of them are.
    """

    columns: Mapping[str, Any]
    rows: int
    before: int
    places: NDArray[np.int64] | None = None

    def numbers(self, name: str) -> FloatArray:
        """Return a column as numbers, shape (rows,); a missing entry is NaN."""
        column = self.columns[name]
        if isinstance(column, np.ndarray) and column.dtype == np.float64:
            return column
        return as_floats(as_array(column), name, self.before)

    def texts(self, name: str) -> Any:
        """Return a column of words as read."""
        return self.columns[name]


Reader = TypeVar("Reader", bound=Callable[..., Any])


def as_in_table(read: Reader) -> Reader:
    """Return a method that names the row of a bad entry by its number in the table, made from one that does not.

    The method reads a batch, its last argument, whose rows may be a choice of the table's.

    Parameters
    ----------
    read : callable
        The method, whose errors number the rows of the batch from 1.
    """

    @functools.wraps(read)
    def reading(*given: Any) -> Any:
        batch: Batch = given[-1]
        if batch.places is None:
            return read(*given)
        places, before = batch.places, batch.before
        try:
            return read(*given)
        except InvalidInput as error:
            own = range(before + 1, before + batch.rows + 1)
            raise error.renumbered(lambda row: int(places[row - before - 1]) + 1 if row in own else row) from None

    return reading  # type: ignore[return-value]


class Source(Protocol):
    """A data set that can be read in batches, several times."""

    @property
    def name(self) -> str:
        """Name of the data in messages."""
        ...

    def count(self) -> int:
        """Return the number of rows, at least 1, without reading a column."""
        ...

    def batches(
        self, *, numbers: Sequence[str] = (), texts: Sequence[str] = (), gaps: Sequence[str] = ()
    ) -> Iterator[Batch]:
        """Yield the named columns batch by batch.

        Parameters
        ----------
        numbers, texts : sequence of str
            Columns that hold numbers, and columns that hold words.
        gaps : sequence of str
            Those of them that may have missing entries: NaN among numbers, None or "" among words.

        Raises
        ------
        InvalidInput
            If a column is missing, there are no rows, or an entry is missing or no number.
        """
        ...


def open_source(data: Any, rows: int = BATCH, options: TableOptions | None = None) -> Source:
    """Return data as a source of batches.

    Parameters
    ----------
    data : str, Path, dataframe, or mapping of str to array
        A CSV, TSV or Parquet file; any dataframe (see `shuffledp.tables.Table.of`); or arrays by name, all of one
        length.
    rows : int
        Approximate number of rows held at a time, at least 1.
    options : TableOptions, optional
        Format of a text file, where it is not to be detected.

    Raises
    ------
    InvalidInput
        If it is none of these, or `rows` is below 1.
    """
    if rows < 1:
        raise InvalidInput(f"a batch needs at least one row; got {rows}")
    if isinstance(data, Mapping):
        (options or TableOptions()).refuse_for_text(
            "these are arrays by name", ("decimal", "thousands", "missing_values")
        )
        return Arrays({str(name): column for name, column in data.items()}, rows)
    return Rows(Table.of(data, options), rows)


def watched(source: Source, progress: Progress | None) -> Source:
    """Return a source that reports the share of rows that were read.

    Parameters
    ----------
    source : Source
        The data.
    progress : callable, optional
        Called with the share, from 0 to 1; None: the source itself is returned.
    """
    return source if progress is None else _Watched(source, progress)


@dataclass(frozen=True)
class _Watched:
    """A source that reports its progress to a callable."""

    source: Source
    progress: Progress

    @property
    def name(self) -> str:
        return self.source.name

    def count(self) -> int:
        return self.source.count()

    def batches(
        self, *, numbers: Sequence[str] = (), texts: Sequence[str] = (), gaps: Sequence[str] = ()
    ) -> Iterator[Batch]:
        rows = None
        for batch in self.source.batches(numbers=numbers, texts=texts, gaps=gaps):
            yield batch
            rows = rows or self.source.count()  # after the first batch: an error of the columns comes first
            self.progress(min((batch.before + batch.rows) / rows, 1.0))


@dataclass(frozen=True)
class Rows:
    """The rows of a table as a source, see `shuffledp.tables.Table`."""

    table: Table
    rows: int

    @property
    def name(self) -> str:
        """Name of the table; see `Source.name`."""
        return self.table.name

    def count(self) -> int:
        """Return the number of rows; see `Source.count`."""
        return self.table.count()

    def batches(
        self,
        *,
        numbers: Sequence[str] = (),
        texts: Sequence[str] = (),
        gaps: Sequence[str] = (),
        choice: Choice | None = None,
    ) -> Iterator[Batch]:
        """Yield the table's columns batch by batch; see `Source.batches` and `Choice`."""
        before = 0
        for read in self.table.batches(numbers=numbers, texts=texts, gaps=gaps, rows=self.rows, choice=choice):
            yield Batch({**read.numbers, **read.texts}, read.rows, before, read.places)
            before += read.rows


@dataclass(frozen=True)
class Arrays:
    """Arrays by name as a source, with one entry (or row) of each per user.

    Parameters
    ----------
    data : mapping of str to array
        The arrays, all of one length.
    rows : int
        Approximate number of rows of a batch.
    """

    data: Mapping[str, Any]
    rows: int

    @property
    def name(self) -> str:
        """Name of the data in messages; see `Source.name`."""
        return "the data"

    def count(self) -> int:
        """Return the common length of the arrays, or refuse different ones; see `Source.count`."""
        lengths: dict[str, int] = {}
        for name, column in self.data.items():
            try:
                lengths[name] = len(column)
            except TypeError:
                raise InvalidInput(f"{name} must be a sequence or an array; got {type(column).__name__}") from None
            if np.ma.is_masked(column):  # NumPy itself would take the masked entries as if they were records
                raise InvalidInput(f"{name} has masked entries; fill them first, with NaN or None where one is missing")
        if len(set(lengths.values())) > 1:
            listing = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            raise InvalidInput(f"the data must have one entry per user in each column; {listing}")
        n = next(iter(lengths.values()), 0)
        if n == 0:
            raise InvalidInput("there are no records; an estimate needs at least one user")
        return n

    def batches(
        self,
        *,
        numbers: Sequence[str] = (),
        texts: Sequence[str] = (),
        gaps: Sequence[str] = (),
        choice: Choice | None = None,
    ) -> Iterator[Batch]:
        """Yield slices of the arrays, unchecked: records are checked where they are mapped.

        See `Source.batches` and `Choice`.
        """
        del gaps  # whoever reads an entry of an array says what is missing
        n = self.count()
        wanted: dict[str, Any] = {}
        for name in dict.fromkeys([*numbers, *texts, *(choice.columns if choice else ())]):
            same = same_word(name, list(self.data))
            if not same:
                raise no_column(name, list(self.data), self.name)
            if len(same) > 1:
                raise InvalidInput(
                    f"column {shown(name)} stands twice in the data, also as {shown(same[1])}; rename one"
                )
            wanted[name] = self.data[same[0]]
        for before in range(0, n, self.rows):
            part = slice(before, before + self.rows)
            columns = {name: _sliceable(own)[part] if n > self.rows else own for name, own in wanted.items()}
            if choice is None:
                yield Batch(columns, min(self.rows, n - before), before)
            else:
                places = np.flatnonzero(choice.of(columns))
                kept = {name: _kept(columns[name], places) for name in (*numbers, *texts)}
                yield Batch(kept, places.size, before, before + places)


def _sliceable(column: Any) -> Any:
    """Return a column that can be sliced by position; a pandas Series would be sliced by label."""
    return column.to_numpy() if hasattr(column, "iloc") else column


# Rows that are asked: those with public values that were named.

MOST_SHOWN = 20
"""A column of more different values is not listed: it tells rows apart, and no groups."""


@dataclass(frozen=True)
class Where:
    """Public values of a column: the rows that have one of them are asked.

    Parameters
    ----------
    column : str
        Its name. It is public by being named here, as is who has which value.
    values : tuple of hashable
        The values, at least one.

    Raises
    ------
    InvalidInput
        If there is none, or two are the same word (`shuffledp.tables.options`).
    """

    column: str
    values: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise InvalidInput(f"`where` names no value of {named(self.column)}; name the value that asked rows have")
        if any(one_spelling(value) is None for value in self.values):
            raise InvalidInput(
                f"`where` names an empty value of {named(self.column)}, and a row without a value is in no group; name "
                "values that stand in the column"
            )
        check_different(self.values, "value", "values of `where`")

    def codes(self, column: Any) -> NDArray[np.int64]:
        """Return the place of each row's value among the values, -1 for rows that have none of them.

        Parameters
        ----------
        column : column
            As a batch holds it.
        """
        entries = as_labels(column)
        if isinstance(entries, np.ndarray) and entries.dtype.kind in "biuf":  # 30 is the same word as 30.0 and "30"
            distinct, places = np.unique(entries, return_inverse=True)
            return known_codes([one_spelling(entry) or "" for entry in distinct.tolist()], self.values)[places]
        return known_codes(entries, self.values)


def checked_where(where: object) -> dict[str, tuple[Hashable, ...]]:
    """Return the public values that the asked rows must have, by column; empty if all rows are asked.

    Parameters
    ----------
    where : mapping of str to hashable or sequence of hashable, optional
        One value or several of each column.

    Raises
    ------
    InvalidInput
        If it is no such mapping, or names no value.
    """
    if where is None:
        return {}
    if not isinstance(where, Mapping):
        raise InvalidInput(f"`where` must name columns and their values, as {{'city': 'Oslo'}}; got {shown(where)}")
    chosen: dict[str, tuple[Hashable, ...]] = {}
    for column, value in where.items():  # pyright: ignore[reportUnknownVariableType]
        several = isinstance(value, list | tuple | set | frozenset | np.ndarray)
        values = sorted(value, key=str) if isinstance(value, set | frozenset) else value  # a set has no order
        chosen[str(column)] = tuple(values) if several else (value,)  # pyright: ignore[reportUnknownArgumentType]
    for column, values in chosen.items():
        Where(column, values)
    return chosen


@dataclass(frozen=True)
class Selected:
    """The rows of a source that have the public values that were named; no other row is looked at.

    Parameters
    ----------
    source : Source
        The data.
    where : tuple of Where
        What must hold of a row that is asked, at least one.
    """

    source: Rows | Arrays
    where: tuple[Where, ...]

    @property
    def name(self) -> str:
        """The source's name; see `Source.name`."""
        return self.source.name

    def count(self) -> int:
        """Return the number of rows that are asked; see `Source.count`.

        The columns with the public values are read for it, once.
        """
        return self._rows

    @functools.cached_property
    def _rows(self) -> int:
        return sum(batch.rows for batch in self.batches())

    def batches(
        self, *, numbers: Sequence[str] = (), texts: Sequence[str] = (), gaps: Sequence[str] = ()
    ) -> Iterator[Batch]:
        """Yield the rows that are asked batch by batch, with their places in the table; see `Source.batches`.

        Raises
        ------
        InvalidInput
            If no row has one of the values that were named, or no row has a value of each column.
        """
        own = tuple(each.column for each in self.where)
        met = [np.zeros(len(each.values), dtype=np.bool_) for each in self.where]

        def matches(columns: Mapping[str, Any]) -> NDArray[np.bool_]:
            codes = [each.codes(columns[each.column]) for each in self.where]
            for of_it, places in zip(met, codes, strict=True):
                of_it[places[places >= 0]] = True
            return np.logical_and.reduce([places >= 0 for places in codes])

        before = 0
        for batch in self.source.batches(numbers=numbers, texts=texts, gaps=gaps, choice=Choice(own, matches)):
            if batch.rows:
                yield replace(batch, before=before)
                before += batch.rows
        for each, of_it in zip(self.where, met, strict=True):
            if not of_it.all():
                words = (batch.texts(each.column) for batch in self.source.batches(texts=own, gaps=own))
                raise nobody_has(each, int(np.argmin(of_it)), self.name, words)
        if not before:
            raise InvalidInput(
                f"no row of {self.name} is asked: {self._all} holds of none; name other values of `where`"
            )

    @property
    def _all(self) -> str:
        return conditions({each.column: each.values for each in self.where})


def nobody_has(where: Where, place: int, name: str, words: Iterable[Any]) -> InvalidInput:
    """Return the error to raise if no row has a value that was named.

    It lists the values of the column only where error messages may show entries.

    Parameters
    ----------
    where : Where
        The column.
    place : int
        Which of its values it is.
    name : str
        What the message calls the table.
    words : iterable of columns
        The column, in pieces; read until it is known to have more values than are listed.
    """
    distinct: dict[str, None] = {}
    for part in words:
        distinct |= dict.fromkeys(word for word in spelled(part).unique().to_list() if word)
        if len(distinct) > MOST_SHOWN:
            break
    listed = sorted(map(named, distinct))
    listing = (
        f"of which there are more than {MOST_SHOWN}" if len(distinct) > MOST_SHOWN else ", ".join(listed) or "of none"
    )
    return BadEntry(
        f"no row of {name} has {named(where.column)} = {named(str(where.values[place]))}, as `where` asks; name one of "
        f"the column's values, {VALUE}, or leave `where` out to ask every row",
        Written(listing),
    )


def _kept(column: Any, places: NDArray[np.int64]) -> Any:
    """Return the entries of a column in these places."""
    if isinstance(column, list | tuple):
        return [column[place] for place in places.tolist()]
    if type(column).__module__.startswith("polars"):
        return column.gather(places)
    return np.asarray(_sliceable(column))[places]


# Batches shared among threads: NumPy and Polars let go of the interpreter where the time is spent.

_MOST_THREADS = 8


Item = TypeVar("Item")


Result = TypeVar("Result")


def workers() -> int:
    """Return the number of threads worth starting: one per core that this process may use, at most 8."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(_MOST_THREADS, cores)


def in_order(job: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Apply a function to each item in threads; yield results, and raise the first error, in the order of the items.

    Parameters
    ----------
    job : callable
        Function of an item that runs in a thread.
    items : iterable
        Read as the results are consumed, at most twice the number of threads ahead.

    Yields
    ------
    object
        The result of `job` for each item.

    Examples
    --------
    >>> list(in_order(len, ["a", "bc", ""]))
    [1, 2, 0]
    """
    several = workers()
    if several == 1:
        yield from map(job, items)
        return
    waiting: deque[Future[Result]] = deque()
    reading, failure = iter(items), None
    with ThreadPoolExecutor(several) as pool:
        while True:
            try:
                waiting.append(pool.submit(job, next(reading)))
            except StopIteration:
                break
            except Exception as error:  # an item before it may fail, and comes first
                failure = error
                break
            if len(waiting) > 2 * several:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    if failure is not None:
        raise failure


_SEED = secrets.randbits(64)
"""Secret seed of the keys of persons, drawn anew in every process."""


MissingPerson = Literal["refuse", "own"]


@dataclass(frozen=True)
class Person:
    """The column with the owner of each row.

    Parameters
    ----------
    column : str
        Name of the column; its entries are compared as words, see `shuffledp.tables.options`.
    missing : {"refuse", "own"}
        "refuse": a row without an entry is an error. "own": it is the only row of a person of its own; this is valid
        only if different such rows are of different people, who have no other row, which cannot be checked.
    """

    column: str
    missing: MissingPerson = "refuse"

    @property
    def gaps(self) -> tuple[str, ...]:
        """The column's name: `keys` refuses a missing entry itself, and names the way out."""
        return (self.column,)

    @as_in_table
    def keys(self, batch: Batch) -> Words:
        """Return a 64-bit key of each row's person, shape (rows,).

        Raises
        ------
        InvalidInput
            If an entry is missing, and such rows are refused.
        """
        entries = batch.texts(self.column)
        if self.missing == "refuse":
            return person_words(entries, self.column, batch.before, _OR_OWN).hash(_SEED).to_numpy()
        words = spelled(entries)
        places = np.arange(batch.before, batch.before + batch.rows, dtype=np.uint64)
        own = mix(places ^ np.uint64(_SEED))  # the same in both passes, as the place of a row is
        return np.where(unnamed(words).to_numpy(), own, words.hash(_SEED).to_numpy())


_OR_OWN = ", or say `missing_person = 'own'` if each such row is the only one of a person of its own"
"""The way out of a missing person where the fronts have it; see `Person.missing`."""


def person_words(names: Any, column: str, before: int = 0, otherwise: str = "") -> pl.Series:
    """Return the owner of each row as a word in its normal form (`shuffledp.tables.canonical`).

    Parameters
    ----------
    names : sequence, array or polars Series, length n
        Entries of the person column, as in the table.
    column : str
        Name of the person column, for the message.
    before : int
        Number of rows before these.
    otherwise : str
        Another way out than to name the person, for the message.

    Raises
    ------
    InvalidInput
        If an entry is empty, or a word such as "NA" for a missing entry.
    """
    words = spelled(names)
    empty = unnamed(words)
    if empty.any():  # taken as one person, whoever owns such a row would have reports that nobody counts
        row = int(empty.arg_max() or 0)
        entry, several = words[row], f" ({int(empty.sum()):,} such rows in all)" if int(empty.sum()) > 1 else ""
        what = shown(entry) if entry else "empty"
        raise InvalidInput(
            f"{column} in row {before + row + 1} is {what}, so nobody knows whose row it is; "
            f"give every row its person{otherwise}{several}"
        )
    return words


def unnamed(words: pl.Series) -> pl.Series:
    """Return, for each entry of a person column in its normal form, whether it names nobody."""
    return (words.is_null() | words.str.to_lowercase().is_in(MISSING)).fill_null(True)


def refuse_public(public: Mapping[str, Sequence[str]], protected: Sequence[str]) -> None:
    """Refuse a column of records that an option makes public.

    Parameters
    ----------
    public : mapping of str to sequence of str
        Columns whose values are public, by the name of the option.
    protected : sequence of str
        Columns whose records are to be protected.

    Raises
    ------
    InvalidInput
        If a column is among both.
    """
    for option, columns in public.items():
        twice = [name for name in columns if same_word(name, protected)]
        if twice:
            raise InvalidInput(
                f"`{option}` makes the column {shown(twice[0])} public, and it is the one that is asked, whose "
                f"records are to be protected; name another column with `{option}`, or ask another one"
            )
