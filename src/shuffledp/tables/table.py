"""Reading columns of a table, from CSV, TSV and Parquet (through polars), and from any dataframe.

Text files are read as text and each asked-for column is converted over its full length, so that a stray word in the
last row is an error that names the row, never a silent null or a guessed type; and so is a row with fewer or more
fields than the header. Columns that were not asked for are not decoded.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import BadEntry, InvalidInput, choice, named, shown, values_shown
from shuffledp.tables import options as entries
from shuffledp.tables.files import PARQUET, STANDARD_INPUT, Opened, TextRows, blank_columns, open_file, unreadable
from shuffledp.tables.options import AS_FOUND, MOST_DESCRIBING, NO_WORD, TableOptions, as_words, one_spelling, same_word

if TYPE_CHECKING:
    import polars as pl


# Dataframes of any library as columns that are taken one by one: a column that nobody asked for is not looked at.
#
# Polars and whatever speaks the Arrow PyCapsule interface are read as they are. A pandas frame is read here, from its
# own arrays, since its Arrow interface needs pyarrow, which is 100 MB, and stumbles over a column that mixes types
# although another one was asked for.

_PLAIN_KINDS = "biuf"
_DAYS = "datetime64[us]"


class Frame(Protocol):
    """A table in memory or in a file, whose columns have names."""

    def names(self) -> list[str]:
        """Return the names of all columns, as text."""
        ...

    def chosen(self, wanted: Mapping[str, str]) -> pl.LazyFrame:
        """Return the chosen columns as a polars LazyFrame, renamed.

        Parameters
        ----------
        wanted : mapping of str to str
            Name of each column in the table, by its new name.
        """
        ...

    def height(self) -> int:
        """Return the number of rows."""
        ...


@dataclass(frozen=True, eq=False)
class Lazy:
    """A table of polars, or a file that polars reads."""

    frame: pl.LazyFrame

    def names(self) -> list[str]:
        """Return the columns' names; see `Frame.names`."""
        return self.frame.collect_schema().names()

    def chosen(self, wanted: Mapping[str, str]) -> pl.LazyFrame:
        """Return the chosen columns, renamed; see `Frame.chosen`."""
        import polars as pl

        return self.frame.select(pl.col(own).alias(name) for name, own in wanted.items())

    def height(self) -> int:
        """Return the number of rows; see `Frame.height`."""
        import polars as pl

        return int(self.frame.select(pl.len()).collect().item())


@dataclass(frozen=True, eq=False)
class OfPandas:
    """A table of pandas, read column by column."""

    frame: Any

    def names(self) -> list[str]:
        """Return the names of all columns, as text; a column named by a number gets that number as text."""
        return ["" if name is None else str(name) for name in self.frame.columns.tolist()]

    def chosen(self, wanted: Mapping[str, str]) -> pl.LazyFrame:
        """Return the chosen columns, renamed; see `Frame.chosen`."""
        import polars as pl

        places = self.names()
        return pl.LazyFrame([_column(self.frame.iloc[:, places.index(own)], name) for name, own in wanted.items()])

    def height(self) -> int:
        """Return the number of rows; see `Frame.height`."""
        return len(self.frame)


def as_frame(source: Any) -> Frame:
    """Return any dataframe as columns by name.

    Parameters
    ----------
    source : polars DataFrame or LazyFrame, pandas DataFrame, or any object with ``__arrow_c_stream__``
        A table.

    Raises
    ------
    InvalidInput
        If it is none of these, or its Arrow interface fails.
    """
    import polars as pl

    if isinstance(source, pl.LazyFrame):
        return Lazy(source)
    of_pandas = type(source).__module__.partition(".")[0] == "pandas"
    if of_pandas and hasattr(source, "iloc") and hasattr(source, "columns"):
        return OfPandas(source)
    if hasattr(source, "__arrow_c_stream__") and not of_pandas:  # one column of pandas has no name to ask for
        from shuffledp.tables.files import unreadable

        try:
            return Lazy(pl.DataFrame(source).lazy())
        except (pl.exceptions.PolarsError, ValueError, TypeError, ImportError) as error:
            raise unreadable("the dataframe", error) from None
    raise InvalidInput(
        f"a table is a file, a pandas dataframe, or one with the Arrow interface (__arrow_c_stream__); "
        f"got {type(source).__name__}"
    )


KINDS = ("polars", "pandas")
"""Libraries whose dataframes can be returned."""


def handed_over(frame: pl.DataFrame, kind: str) -> Any:
    """Return a table as a dataframe of a library.

    Parameters
    ----------
    frame : polars DataFrame
        The table.
    kind : {"polars", "pandas"}
        The library. Pandas must be installed; pyarrow, which polars would need, need not be.

    Raises
    ------
    InvalidInput
        If the library is unknown, or is not installed.
    """
    if choice(kind, "kind", KINDS) == "polars":
        return frame
    try:
        import pandas  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise InvalidInput("pandas is not installed; install it, or take the dataframe of polars") from None
    return pandas.DataFrame({column.name: column.to_list() for column in frame})


def _column(column: Any, name: str) -> pl.Series:
    """Return one column of a pandas frame as polars, by the type of its entries."""
    import polars as pl

    kind = column.dtype
    if isinstance(kind, np.dtype):
        if kind.kind in _PLAIN_KINDS:
            return pl.Series(name, column.to_numpy(), nan_to_null=True)  # NaN is what pandas calls missing
        if kind.kind == "M":
            return pl.Series(name, column.to_numpy().astype(_DAYS))
        if kind.kind == "m":
            return pl.Series(name, column.to_numpy().astype("timedelta64[us]"))
        return _mixed(column.tolist(), name)
    if hasattr(column, "cat"):
        return _categories(column, name)
    if getattr(kind, "tz", None) is not None:  # the same instants in UTC, which have no two readings in autumn
        instants = column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
        return pl.Series(name, instants.astype(_DAYS)).dt.replace_time_zone("UTC")
    return _mixed(column.tolist(), name)  # text, numbers with gaps, periods, intervals


def _categories(column: Any, name: str) -> pl.Series:
    """Return the words of a categorical column: text, numbers, or intervals of `pandas.cut`; code -1 is missing."""
    words = _mixed(column.cat.categories.tolist(), name)
    codes = column.cat.codes.to_numpy().astype(np.int64)
    import polars as pl

    places = pl.Series(codes).set(pl.Series(codes < 0), None)
    return words.gather(places).rename(name)


def _mixed(entries: list[Any], name: str) -> pl.Series:
    """Return entries of any types: whole numbers or numbers if all are, else words in one spelling.

    Raises
    ------
    InvalidInput
        If an entry is a container or bytes, or holds half a character.
    """
    import polars as pl

    values = [None if _absent(entry) else entry for entry in entries]
    there = [entry for entry in values if entry is not None]
    if there and all(isinstance(entry, str) for entry in there):
        return as_words(values, name)
    if there and all(isinstance(entry, int | float | np.number) and not isinstance(entry, bool) for entry in there):
        if all(isinstance(entry, int | np.integer) and abs(int(entry)) < 2**63 for entry in there):
            return pl.Series(name, values, dtype=pl.Int64)
        if all(isinstance(entry, float | np.floating) or abs(int(entry)) <= 2**53 for entry in there):
            return pl.Series(name, [None if entry is None else float(entry) for entry in values], dtype=pl.Float64)
    for entry in there:
        if isinstance(entry, NO_WORD):
            raise InvalidInput(
                f"column {shown(name)} holds a {type(entry).__name__}, not one word a row; name another one"
            )
    return as_words(map(one_spelling, values), name)


def _absent(entry: Any) -> bool:
    """Return whether an entry is missing: None, NaN, or NaT and NA of pandas, which equal nothing."""
    if entry is None or type(entry).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(entry, float | np.floating) and entry != entry


BATCH = 1 << 19
"""Number of rows read at a time: a few MB per column."""


@dataclass(frozen=True)
class Columns:
    """The requested columns of a table.

    Parameters
    ----------
    numbers : dict of str to ndarray of float64, shape (n,)
        NaN where an entry is missing and may be, else no NaN; infinities are left to the caller's range check.
    texts : dict of str to polars Series of text, length n
        Entries as the file spells them, white space at both ends removed; null where one is missing and may be.
    rows : int
        Number of rows n.
    places : ndarray of int64, shape (n,), optional
        Position of each row in the table, from 0, where only some of its rows are read; None: all of them are.
    """

    numbers: dict[str, NDArray[np.float64]]
    texts: dict[str, pl.Series]
    rows: int
    places: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Choice:
    """Which rows are read, by columns of words; nothing else of the other rows is looked at.

    Parameters
    ----------
    columns : tuple of str
        Names of the columns.
    of : callable
        Takes these columns of a batch by name, null where an entry is missing; returns bool, shape (rows,).
    """

    columns: tuple[str, ...]
    of: Callable[[Mapping[str, Any]], NDArray[np.bool_]]


@dataclass(frozen=True)
class Table:
    """A table that can be read repeatedly, in batches, in memory independent of its length.

    Parameters
    ----------
    frame : Frame
        The rows.
    name : str
        Name of the table in error messages.
    lines : TextRows, optional
        The rows of a text file as written; None for every other table, whose rows cannot differ in length.
    options : TableOptions
        The marks in numbers written as text, and the words for a missing entry.
    opened : Opened, optional
        The file behind it, kept here because a temporary copy that `frame` reads is deleted with this object.
    """

    frame: Frame
    name: str
    lines: TextRows | None = None
    options: TableOptions = AS_FOUND
    opened: Opened | None = None

    @classmethod
    def of(cls, source: Any, options: TableOptions | None = None) -> Table:
        """Return a table from a file or any dataframe.

        Parameters
        ----------
        source : str, Path, polars DataFrame or LazyFrame, pandas DataFrame, or any object with ``__arrow_c_stream__``
            A file of text with a header line (CSV, TSV and the like) or of Parquet, known by its content, plain or
            packed with gzip or zstd; ``"-"`` for standard input; or a table of pandas, or of any library that speaks
            the Arrow PyCapsule interface (pyarrow, duckdb, ...).
        options : TableOptions, optional
            Format of the file, where it is not to be detected.

        Raises
        ------
        InvalidInput
            If the file is missing, empty or of an unknown format, the object is no table, or an option has no meaning
            for it.
        """
        import polars as pl

        how = options or AS_FOUND
        if not isinstance(source, str | Path):
            frame = as_frame(source)
            how.refuse_for_text("this is a dataframe")
            return cls(frame, "the table", options=how)
        opened = open_file(STANDARD_INPUT if str(source) == STANDARD_INPUT else Path(source), how)
        if opened.separator is None:
            return cls(Lazy(pl.scan_parquet(opened.path)), opened.name, options=how, opened=opened)
        rows = Lazy(pl.scan_csv(opened.path, separator=opened.separator, infer_schema=False))
        return cls(rows, opened.name, TextRows(opened.path, opened.separator, opened.name), how, opened)

    def batches(
        self,
        *,
        numbers: Sequence[str] = (),
        texts: Sequence[str] = (),
        gaps: Sequence[str] = (),
        rows: int | None = BATCH,
        choice: Choice | None = None,
    ) -> Iterator[Columns]:
        """Yield the named columns, and only those, batch by batch, with each row checked.

        Parameters
        ----------
        numbers : sequence of str
            Columns that must hold a number in every row.
        texts : sequence of str
            Columns read as text, whatever their type.
        gaps : sequence of str
            Those of them that may have missing entries: NaN among numbers, null among texts.
        rows : int, optional
            Approximate number of rows of a batch, at least 1; None for the whole table at once.
        choice : Choice, optional
            Rows that are read; None: all. A batch may then have no row.

        Raises
        ------
        InvalidInput
            As for `read_columns`.
        """
        import polars as pl

        wanted = list(dict.fromkeys([*numbers, *texts, *(choice.columns if choice else ())]))
        if not wanted:
            yield from self._empty(self.count(), rows)
            return
        read = 0
        try:
            for batch in self._frames(self._names(wanted), rows):
                arguments: dict[str, Any] = {"numbers": numbers, "texts": texts, "gaps": gaps, "options": self.options}
                yield (
                    read_frame(batch, read, **arguments)
                    if choice is None
                    else _read_chosen(batch, read, choice, arguments)
                )
                read += batch.height
        except (pl.exceptions.PolarsError, OSError) as error:
            raise self._undecodable(error) or unreadable(self.name, error) from None
        if read == 0:
            raise self._no_rows()
        if self.lines is not None and read != self.lines.survey.rows:
            raise InvalidInput(
                f"{self.name} has {self.lines.survey.rows} rows, and {read} were read; leave it unchanged until the "
                "command ends, and put quotes around entries that hold quotes"
            )
        if self.opened is not None:
            self.opened.check()

    def count(self) -> int:
        """Return the number of rows, at least 1; no column is decoded.

        Raises
        ------
        InvalidInput
            As for `read_columns`.
        """
        import polars as pl

        try:
            if self.lines is not None:
                rows = self.lines.survey.rows
                self._names([])
            else:
                rows = self.frame.height()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise self._undecodable(error) or unreadable(self.name, error) from None
        if rows == 0:
            raise self._no_rows()
        return rows

    def whole(self) -> pl.DataFrame:
        """Return every column as it stands, text as text.

        Raises
        ------
        InvalidInput
            If the table cannot be read, or a row has another number of fields than the header.
        """
        import polars as pl

        try:
            self._names([])
            return self.frame.chosen({name: name for name in self.frame.names()}).collect()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise self._undecodable(error) or unreadable(self.name, error) from None

    def _frames(self, wanted: dict[str, str], rows: int | None) -> Iterator[pl.DataFrame]:
        chosen = self.frame.chosen(wanted)
        if rows is None:
            yield chosen.collect()
            return
        yield from chosen.collect_batches(chunk_size=rows, lazy=True)

    def _empty(self, n: int, rows: int | None) -> Iterator[Columns]:
        """Yield batches without any column."""
        size = n if rows is None else rows
        for start in range(0, n, size):
            yield Columns({}, {}, min(size, n - start))

    def _names(self, wanted: list[str]) -> dict[str, str]:
        """Return the columns' names in the table, by requested name, after checking all rows of a text file."""
        if self.lines is not None and self.lines.survey.width == 0:
            raise InvalidInput(f"table {self.name} has no header; give a header line and one row per user")
        header = [] if self.lines is None else list(self.lines.survey.header)
        for name in header:  # the table reader calls the second one so
            if header.count(name) > 1 and any(other.startswith(f"{name}_duplicated_") for other in header):
                raise InvalidInput(f"column {shown(name)} stands twice in the header of {self.name}; rename one")
        names = self.frame.names()
        if self.lines is not None and len(names) != self.lines.survey.width:
            raise unreadable(self.name, f"its header has {self.lines.survey.width} fields, and {len(names)} were read")
        header = header if len(header) == len(names) else names
        return {name: names[self._place(name, header)] for name in wanted}

    def _place(self, name: str, header: list[str]) -> int:
        """Return the index of the column of this name, or of the only one that is the same word."""
        same = same_word(name, header)
        if not same:
            if any("\ufffd" in other for other in header) and (other_encoding := self._encoding_error()):
                raise other_encoding
            raise self._no_column(name, header)
        if len(same) > 1:
            written = "" if same[1] == same[0] else f", also as {shown(same[1])}"
            raise InvalidInput(f"column {shown(name)} stands twice in the header of {self.name}{written}; rename one")
        return header.index(same[0])

    def _no_column(self, name: str, header: list[str]) -> InvalidInput:
        """Return the error for a missing column; if a text file has one column, with advice on its separator."""
        refusal = no_column(name, header, self.name)
        if self.lines is None or (len(header) > 1 and all(map(str.strip, header))):
            return refusal
        blanks = "if blanks separate columns, say `separator = 'blanks'`; " if blank_columns(tuple(header)) else ""
        return refusal.and_then(
            f"; {blanks}if the first lines are a title and the header comes later, say how many with `skip_lines`"
        )

    def _no_rows(self) -> InvalidInput:
        if undecodable := self._encoding_error():
            return undecodable
        return InvalidInput(
            f"{self.name if self.lines is None else f'table {self.name}'} has no rows; give one row per user"
        )

    def _undecodable(self, error: Exception) -> InvalidInput | None:
        return self._encoding_error() if "utf-8" in str(error).lower() else None

    def _encoding_error(self) -> InvalidInput | None:
        """Return the error that names where a text file is not in UTF-8; None if it is."""
        where = None if self.lines is None else self.lines.first_unreadable("utf-8")
        if where is None:
            return None
        return InvalidInput(
            f"{self.name} is not UTF-8 text: {where} cannot be read; say how it is encoded, such as "
            "`encoding = 'cp1252'` for a file of Windows (Western Europe)"
        )


def no_column(name: str, names: Sequence[str], where: str) -> InvalidInput:
    """Return the error for a missing column, with the nearest name and the existing ones.

    Parameters
    ----------
    name : str
        The name that was asked for.
    names : sequence of str
        The existing names.
    where : str
        Name of the table in the message.
    """
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {shown(near[0])}? " if near else ""
    more = f", ... ({len(names)} in all)" if len(names) > 20 else ""
    listed = ", ".join(map(named, names[:20])) + more
    parts = [part.strip() for part in name.split(",")]
    if len(parts) == 2 and all(part in names for part in parts):
        hint = "two columns are asked together by crosstab; "
    return InvalidInput(f"no column {shown(name)} in {where}; {hint}its columns are {listed}")


def read_frame(
    frame: pl.DataFrame,
    before: int = 0,
    *,
    numbers: Sequence[str] = (),
    texts: Sequence[str] = (),
    gaps: Sequence[str] = (),
    options: TableOptions = AS_FOUND,
) -> Columns:
    """Return the named columns of some rows, with each row checked.

    Parameters
    ----------
    frame : polars DataFrame
        The rows.
    before : int
        Number of rows before these, for the row number in an error.
    numbers, texts, gaps
        As for `Table.batches`.
    options : TableOptions
        The marks in numbers written as text, and the words for a missing entry.

    Raises
    ------
    InvalidInput
        For the first entry that is missing and may not be, or no number; if a column holds neither numbers nor words.
    """
    return Columns(
        numbers={name: entries.numbers(frame[name], before, gaps=name in gaps, options=options) for name in numbers},
        texts={name: entries.texts(frame[name], before, gaps=name in gaps, options=options) for name in texts},
        rows=frame.height,
    )


def _read_chosen(frame: pl.DataFrame, before: int, choice: Choice, arguments: Mapping[str, Any]) -> Columns:
    """Return the columns of the chosen rows, as `read_frame` does; errors name the row as the table numbers it."""
    words = read_frame(frame, before, texts=choice.columns, gaps=choice.columns, options=arguments["options"]).texts
    places = np.flatnonzero(choice.of(words))
    if not places.size:
        return Columns({}, {}, 0, places)
    try:
        return replace(read_frame(frame[places], **arguments), places=before + places)
    except InvalidInput as error:
        raise error.renumbered(lambda row: before + int(places[row - 1]) + 1) from None


def read_columns(
    path: str | Path,
    *,
    numbers: Sequence[str] = (),
    texts: Sequence[str] = (),
    gaps: Sequence[str] = (),
    options: TableOptions | None = None,
) -> Columns:
    r"""Return the named columns of a table, with each row checked.

    Parameters
    ----------
    path : str or Path
        A file, see `Table.of`. Only the named columns are kept in memory.
    numbers : sequence of str
        Columns that must hold a number in every row.
    texts : sequence of str
        Columns read as text, whatever their type.
    gaps : sequence of str
        Those of them that may have missing entries: NaN among numbers, null among texts.
    options : TableOptions, optional
        As for `Table.of`.

    Raises
    ------
    InvalidInput
        If the file is missing, not a table, truncated or empty; if a row of a text file has fewer or more fields
        than the header, or more than 1,000,000 bytes (first such row named); if a column is missing (the nearest name
        is suggested) or named twice in the header; if an entry is missing or not a number (first such row
        named, counting from 1 after the header).

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "hours.csv"
    >>> _ = file.write_text("hours,sector\n40,public\n38.5,private\n")
    >>> read_columns(file, numbers=["hours"]).numbers["hours"]
    array([40. , 38.5])
    """
    with explained(path, options):
        (whole,) = Table.of(path, options).batches(numbers=numbers, texts=texts, gaps=gaps, rows=None)
    return whole


@contextmanager
def explained(source: Any, options: TableOptions | None) -> Generator[None]:
    """Add advice to the error for an entry: on header rows of a text file, and the entry itself if it may be shown.

    Parameters
    ----------
    source
        As for `Table.of`.
    options : TableOptions, optional
        As for `Table.of`.
    """
    how = options or AS_FOUND
    text = isinstance(source, str | Path) and Path(source).suffix.lower() not in PARQUET
    with values_shown(how.show_values):
        try:
            yield
        except BadEntry as refusal:
            if refusal.row is None or refusal.row > MOST_DESCRIBING or not text or how.header_rows > 1:
                raise
            raise refusal.of_text_file() from None
