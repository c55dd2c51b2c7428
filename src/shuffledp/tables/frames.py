"""Dataframes of any library as columns that are taken one by one: a column that nobody asked for is not looked at.

Polars and whatever speaks the Arrow PyCapsule interface are read as they are. A pandas frame is read here, from its own
arrays, since its Arrow interface needs pyarrow, which is 100 MB, and stumbles over a column that mixes types although
another one was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from shuffledp.errors import InvalidInput, shown
from shuffledp.tables.spelling import one_spelling

if TYPE_CHECKING:
    import polars as pl

_PLAIN_KINDS = "biuf"
_DAYS = "datetime64[us]"


class Frame(Protocol):
    """A frame of columns, each with a name."""

    def names(self) -> list[str]:
        """Return the names of all columns, as text."""
        ...

    def chosen(self, wanted: Mapping[str, str]) -> pl.LazyFrame:
        """Return some columns.

        Parameters
        ----------
        wanted : mapping of str to str
            What each shall be called, and its name.
        """
        ...

    def height(self) -> int:
        """Return the number of rows."""
        ...


@dataclass(frozen=True, eq=False)
class Lazy:
    """A frame of polars, or a file that polars reads."""

    frame: pl.LazyFrame

    def names(self) -> list[str]:
        """Return the columns' names; see `Frame.names`."""
        return self.frame.collect_schema().names()

    def chosen(self, wanted: Mapping[str, str]) -> pl.LazyFrame:
        """Return these columns; see `Frame.chosen`."""
        import polars as pl

        return self.frame.select(pl.col(own).alias(name) for name, own in wanted.items())

    def height(self) -> int:
        """Return the number of rows; see `Frame.height`."""
        import polars as pl

        return int(self.frame.select(pl.len()).collect().item())


@dataclass(frozen=True, eq=False)
class OfPandas:
    """A frame of pandas, read column by column."""

    frame: Any

    def names(self) -> list[str]:
        """See `Frame.names`; a column named by a number has it as a word."""
        return ["" if name is None else str(name) for name in self.frame.columns.tolist()]

    def chosen(self, wanted: Mapping[str, str]) -> pl.LazyFrame:
        """Return these columns; see `Frame.chosen`."""
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
    if type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "iloc") and hasattr(source, "columns"):
        return OfPandas(source)
    if hasattr(source, "__arrow_c_stream__"):
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
"""Libraries that answers are handed over to."""


def handed_over(frame: pl.DataFrame, kind: str) -> Any:
    """Return a table as a dataframe of a library.

    Parameters
    ----------
    frame : polars DataFrame
        The table.
    kind : {"polars", "pandas"}
        The library. Pandas must be there; pyarrow, which polars would ask for, need not be.

    Raises
    ------
    InvalidInput
        If the library is unknown, or is not installed.
    """
    if kind not in KINDS:
        raise InvalidInput(f"`kind` of a dataframe must be one of {', '.join(KINDS)}; got {shown(kind)}", "kind")
    if kind == "polars":
        return frame
    try:
        import pandas  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise InvalidInput("pandas is not installed; install it, or take the dataframe of polars") from None
    return pandas.DataFrame({column.name: column.to_list() for column in frame})


def _column(column: Any, name: str) -> pl.Series:
    """Take one column of a pandas frame, by the kind of its entries."""
    import polars as pl

    kind = column.dtype
    if isinstance(kind, np.dtype):
        if kind.kind in _PLAIN_KINDS:
            return pl.Series(name, column.to_numpy())
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
    """Words for codes: text, numbers, or the intervals that `pandas.cut` makes; code -1 is a missing entry."""
    words = _mixed(column.cat.categories.tolist(), "")
    codes = column.cat.codes.to_numpy().astype(np.int64)
    import polars as pl

    places = pl.Series(codes).set(pl.Series(codes < 0), None)
    return words.gather(places).rename(name)


def _mixed(entries: list[Any], name: str) -> pl.Series:
    """Entries of any types: whole numbers or numbers where all are, else words in one spelling.

    Raises
    ------
    InvalidInput
        If one is a container.
    """
    import polars as pl

    known = [None if _absent(entry) else entry for entry in entries]
    there = [entry for entry in known if entry is not None]
    if there and all(isinstance(entry, str) for entry in there):
        return pl.Series(name, known, dtype=pl.String)
    if there and all(isinstance(entry, int | float | np.number) and not isinstance(entry, bool) for entry in there):
        if all(isinstance(entry, int | np.integer) and abs(int(entry)) < 2**63 for entry in there):
            return pl.Series(name, known, dtype=pl.Int64)
        if all(isinstance(entry, float | np.floating) or abs(int(entry)) <= 2**53 for entry in there):
            return pl.Series(name, [None if entry is None else float(entry) for entry in known], dtype=pl.Float64)
    if wrong := next((entry for entry in there if isinstance(entry, list | tuple | dict | set | np.ndarray)), None):
        raise InvalidInput(f"column {shown(name)} holds a {type(wrong).__name__}, not one word a row; name another one")
    return pl.Series(name, [None if entry is None else one_spelling(entry) for entry in known], dtype=pl.String)


def _absent(entry: Any) -> bool:
    """None, NaN, NaT and NA of pandas, which equals nothing, itself neither."""
    if entry is None or type(entry).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(entry, float | np.floating) and entry != entry
