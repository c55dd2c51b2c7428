"""Columns out of a table file, or one sentence on why not: CSV, TSV and Parquet through polars.

Text files are read as text and each asked-for column is converted over its full length, so that a
stray word in the last row is an error that names the row, never a silent null or a guessed type; and
so is a row with fewer or more fields than the header.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.csv_rows import TextRows
from shuffledp.errors import InvalidInput

if TYPE_CHECKING:
    import polars as pl

SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
PARQUET = (".parquet", ".pq")
PARQUET_MAGIC = b"PAR1"
BATCH = 1 << 19
"""Rows read at a time: a few MB a column."""
TOO_LONG = "found more fields than defined"
"""What polars says of a row with more fields than the header; one with fewer it fills with nulls, silently."""


@dataclass(frozen=True)
class Columns:
    """The columns that were asked for, row by row.

    Parameters
    ----------
    numbers : dict of str to ndarray of float64, shape (n,)
        No NaN, no missing entry; infinities are left to the caller's own range check.
    texts : dict of str to polars Series of text, length n
        Entries as the file spells them, white space at both ends removed; none missing.
    rows : int
        Their number n.
    """

    numbers: dict[str, NDArray[np.float64]]
    texts: dict[str, pl.Series]
    rows: int


@dataclass(frozen=True)
class Table:
    """A table that can be read again and again, in batches: memory does not grow with its length.

    Parameters
    ----------
    frame : polars LazyFrame
        The rows.
    name : str
        What error messages call it.
    lines : TextRows, optional
        The rows of a CSV or TSV file as they stand there; None for every other table, whose rows cannot differ
        in length.
    """

    frame: pl.LazyFrame
    name: str
    lines: TextRows | None = None

    @classmethod
    def of(cls, source: Any) -> Table:
        """Open a file, or any dataframe.

        Parameters
        ----------
        source : str, Path, polars DataFrame or LazyFrame, or any object with ``__arrow_c_stream__``
            A ``.csv``, ``.tsv`` or ``.tab`` file with a header line, a ``.parquet`` file, or a table of any library
            that speaks the Arrow PyCapsule interface (pandas, pyarrow, duckdb, ...).

        Raises
        ------
        InvalidInput
            If the file is missing, empty or of an unknown format, or the object is no table.
        """
        import polars as pl

        if isinstance(source, str | Path):
            file = Path(source)
            separator = SEPARATORS.get(file.suffix.lower())
            return cls(_scan(file), str(source), TextRows(file, separator) if separator else None)
        if isinstance(source, pl.LazyFrame):
            return cls(source, "the table")
        if hasattr(source, "__arrow_c_stream__"):
            try:
                return cls(pl.DataFrame(source).lazy(), "the table")
            except (pl.exceptions.PolarsError, ValueError, TypeError) as error:
                raise _unreadable("the dataframe", error) from None
        raise InvalidInput(
            f"a table is a file, or a dataframe with the Arrow interface (__arrow_c_stream__); "
            f"got {type(source).__name__}"
        )

    def batches(
        self,
        *,
        numbers: Sequence[str] = (),
        texts: Sequence[str] = (),
        gaps: Sequence[str] = (),
        rows: int | None = BATCH,
    ) -> Iterator[Columns]:
        """Read the named columns batch by batch, each row checked.

        Parameters
        ----------
        numbers : sequence of str
            Columns that must hold a number in every row.
        texts : sequence of str
            Columns read as text, whatever their type.
        gaps : sequence of str
            Those of them that may have missing entries: NaN among numbers, null among texts.
        rows : int, optional
            About how many rows a batch has, at least 1; None for the whole table at once.

        Raises
        ------
        InvalidInput
            As `read_columns`.
        """
        import polars as pl

        wanted = list(dict.fromkeys([*numbers, *texts]))
        names: list[str] = []
        read = 0
        try:
            names = self.frame.collect_schema().names()
            _check_names(self.name, names, wanted)
            unchecked = self.lines
            for batch in self._frames(wanted, rows):
                if unchecked is not None and _may_be_short(batch, names, wanted):
                    unchecked.refuse_short(len(names))
                    unchecked = None  # all rows were looked at, not only those of this batch
                yield Columns(
                    numbers={name: _numbers(batch[name], read, gaps=name in gaps) for name in numbers},
                    texts={name: _texts(batch[name], read, gaps=name in gaps) for name in texts},
                    rows=batch.height,
                )
                read += batch.height
        except (pl.exceptions.PolarsError, OSError) as error:
            ragged = self.lines.ragged(len(names)) if self.lines is not None and TOO_LONG in str(error) else None
            raise ragged or _unreadable(self.name, error) from None
        if read == 0:
            raise InvalidInput(f"table {self.name} has no rows; give one row per user")

    def count(self) -> int:
        """Return the number of rows; nothing of them is kept.

        Raises
        ------
        InvalidInput
            As `read_columns`.
        """
        return sum(batch.rows for batch in self.batches())

    def _frames(self, wanted: list[str], rows: int | None) -> Iterator[pl.DataFrame]:
        import polars as pl

        # The parser looks for rows with too many fields, such as an unquoted "1,000", only where every column
        # is asked for; so the others are asked for too, and at once reduced to a number nobody reads.
        if rows is None:
            yield self.frame.select(pl.col(wanted), pl.exclude(wanted).null_count()).collect()
            return
        others = pl.exclude(wanted).is_null()
        yield from self.frame.select(pl.col(wanted), others).collect_batches(chunk_size=rows, lazy=True)


def read_columns(path: str | Path, *, numbers: Sequence[str] = (), texts: Sequence[str] = ()) -> Columns:
    r"""Read the named columns of a table, each row checked.

    Parameters
    ----------
    path : str or Path
        A ``.csv``, ``.tsv`` or ``.tab`` file with a header line, or a ``.parquet`` file. Only the named
        columns are kept in memory.
    numbers : sequence of str
        Columns that must hold a number in every row.
    texts : sequence of str
        Columns read as text, whatever their type.

    Raises
    ------
    InvalidInput
        If the file is missing, not a table, truncated or empty; if a row of a text file has fewer or more fields
        than the header (first such row named); if a column is missing (the nearest name is
        suggested) or named twice in the header; if an entry is missing or not a number (first such row
        named, counting from 1 after the header).

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "hours.csv"
    >>> _ = file.write_text("hours,sector\n40,public\n38.5,private\n")
    >>> read_columns(file, numbers=["hours"]).numbers["hours"]
    array([40. , 38.5])
    """
    (whole,) = Table.of(path).batches(numbers=numbers, texts=texts, rows=None)
    return whole


def _scan(file: Path) -> pl.LazyFrame:
    """Open the file lazily; its ending tells the format, checked for Parquet against the first bytes."""
    import polars as pl

    if file.is_dir():
        raise InvalidInput(f"{file} is a directory; name one CSV, TSV or Parquet file")
    try:
        with file.open("rb") as stream:
            start = stream.read(len(PARQUET_MAGIC))
    except FileNotFoundError:
        raise InvalidInput(f"table {file} does not exist; {_similar_file(file)}") from None
    except OSError as error:
        raise _unreadable(file, error) from None
    if not start:
        raise InvalidInput(f"table {file} is empty; give a header line and one row per user")
    suffix = file.suffix.lower()
    if suffix in PARQUET:
        if start != PARQUET_MAGIC:
            raise InvalidInput(f"{file} is not a Parquet file (no PAR1 mark); export the table again")
        return pl.scan_parquet(file)
    if suffix not in SEPARATORS:
        known = ", ".join([*SEPARATORS, *PARQUET])
        ending = f"the ending {suffix!r}" if suffix else "no ending"
        raise InvalidInput(f"{file} has {ending}, so its format is unknown; use one of {known}")
    return pl.scan_csv(file, separator=SEPARATORS[suffix], infer_schema=False)


def _check_names(file: str, names: list[str], wanted: list[str]) -> None:
    for name in wanted:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}? " if near else ""
            listed = ", ".join(names[:20]) + (f", ... ({len(names)} in all)" if len(names) > 20 else "")
            raise InvalidInput(f"no column {name!r} in {file}; {hint}its columns are {listed}")
        if f"{name}_duplicated_0" in names:  # how polars renames a header's second use of a name
            raise InvalidInput(f"column {name!r} stands twice in the header of {file}; rename one")


def _may_be_short(batch: pl.DataFrame, names: list[str], wanted: list[str]) -> bool:
    """Whether a batch has gaps in the header's last column, where a row with too few fields always has one.

    A column that was not asked for is here as a number per row, or as their sum (`Table._frames`).
    """
    if len(names) < 2:
        return False  # every line has at least the one field, be it empty
    last = batch[names[-1]]
    return last.null_count() > 0 if names[-1] in wanted else last.sum() > 0


def _numbers(column: pl.Series, before: int, *, gaps: bool = False) -> NDArray[np.float64]:
    import polars as pl

    kept = column
    if column.dtype == pl.String:
        kept = column.str.strip_chars()
    elif not (column.dtype.is_numeric() or column.dtype == pl.Boolean or column.dtype == pl.Null):
        raise InvalidInput(f"column {column.name!r} holds {column.dtype}, not numbers; name a numeric one")
    values = kept.cast(pl.Float64, strict=False)
    bad = values.is_null() | values.is_nan()
    if gaps:
        missing = kept.is_null() | ((kept == "") if kept.dtype == pl.String else values.is_nan())
        bad &= ~missing.fill_null(True)
        values = values.fill_null(float("nan"))
    _refuse_first(bad, kept, "give every row a number", before)
    return values.to_numpy()


def _texts(column: pl.Series, before: int, *, gaps: bool = False) -> pl.Series:
    import polars as pl

    text = column.cast(pl.String).str.strip_chars()
    if gaps:
        return text.set(text == "", None)
    _refuse_first(text.is_null() | (text == ""), text, "say what a missing entry counts as", before)
    return text


def _refuse_first(bad: pl.Series, entries: pl.Series, way_out: str, before: int) -> None:
    """Name the first bad row, counted from 1, and how many there are."""
    count = int(bad.sum())
    if count == 0:
        return
    row = int(bad.arg_max() or 0)
    entry = entries[row]
    what = "missing" if entry is None or entry == "" else f"{str(entry)!r}, not a number"
    others = f" ({count} such rows in all)" if count > 1 else ""
    raise InvalidInput(f"{entries.name} in row {before + row + 1} is {what}; {way_out}{others}", entries.name)


def _similar_file(file: Path) -> str:
    try:
        near = difflib.get_close_matches(file.name, [entry.name for entry in file.parent.iterdir()], n=1)
    except OSError:
        near = []
    return f"did you mean {file.with_name(near[0])}?" if near else "check the path"


def _unreadable(file: str | Path, error: Any) -> InvalidInput:
    """One line for whatever polars or the operating system found wrong, without their own many lines."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    first = " ".join(reason.strip().splitlines()[0].split()) if reason.strip() else type(error).__name__
    return InvalidInput(
        f"cannot read {file} as a table ({first[:160].rstrip('.')}); it may be cut short or no table at all"
    )
