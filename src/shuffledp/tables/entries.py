"""One rule for entries, whether they come from text, Parquet or a dataframe (docs/how-to/tables.md has the table).

A number is a number in any of them, true and false are 1 and 0, and a date is no number. What is the same word is
decided in `shuffledp.tables.spelling`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import VALUE, BadEntry, InvalidInput, shown
from shuffledp.tables.marks import plain_numbers, text_number, way_out
from shuffledp.tables.options import AS_FOUND, TableOptions
from shuffledp.tables.spelling import MISSING, TRUTH, as_text, canonical_texts, spans_of_time

if TYPE_CHECKING:
    import polars as pl

_OR_MISSING = ", or name a word that means missing with `missing_values`"


def numbers(
    column: pl.Series, before: int, *, gaps: bool = False, options: TableOptions = AS_FOUND
) -> NDArray[np.float64]:
    """Read a column as numbers.

    Parameters
    ----------
    column : polars Series, length n
        Of numbers, bools or text.
    before : int
        Rows that came before these, for the row in an error.
    gaps : bool
        Whether an entry may be missing; it is NaN then.
    options : TableOptions
        The marks in numbers written as text, and what means that an entry is missing.

    Raises
    ------
    InvalidInput
        For the first entry that is missing or no number; if the column holds something else.
    """
    import polars as pl

    kept, kind = column, column.dtype
    if kind == pl.Categorical or kind == pl.Enum:
        kept = column.cast(pl.String)
    elif kind == pl.Duration:
        raise spans_of_time(column)
    elif not (kind.is_numeric() or kind == pl.Boolean or kind == pl.Null or kind == pl.String):
        raise InvalidInput(f"column {shown(column.name)} holds {column.dtype}, not numbers; name a numeric one")
    if kept.dtype == pl.String:
        kept = _without(kept.str.strip_chars(), options.missing_values)
        values = _parsed(kept, options.decimal, options.thousands)
    else:
        values = kept.cast(pl.Float64, strict=False)
    standing = [number for word in options.missing_values if (number := text_number(word)) is not None]
    if standing:  # -99 means the same as -99.0, and in a column of numbers nothing is written
        kept = kept.set(values.is_in(standing).fill_null(False), None)
        values = values.set(values.is_in(standing).fill_null(False), None)
    if values.null_count() == 0:
        found = values.to_numpy()
        if not np.isnan(found).any():  # as nearly always; what is bad is looked for only if something is
            return found
    bad = values.is_null() | values.is_nan()
    if kept.dtype == pl.String and bad.any():
        kept = kept.set(kept.str.to_lowercase().is_in(MISSING), None)
    if gaps:
        missing = kept.is_null() | (values.is_nan() if kept.dtype != pl.String else False)
        bad &= ~missing.fill_null(True)
        values = values.fill_null(float("nan"))
    _refuse_first(bad, kept, before, lambda entry: _way_to_number(entry, options))
    return values.to_numpy()


def _way_to_number(entry: str, options: TableOptions) -> str:
    """Say how an entry may be read as a number, or as none."""
    marks = way_out(entry, options.decimal, options.thousands)
    return marks or f"give every row a number{_OR_MISSING if entry else ''}"


def _without(texts: pl.Series, missing: tuple[str, ...]) -> pl.Series:
    """Texts, null where one means that the entry is missing."""
    return texts.set(canonical_texts(texts).is_in(missing), None) if missing else texts


def _parsed(texts: pl.Series, decimal: str, thousands: str | None) -> pl.Series:
    """Numbers; words for true and false as 1 and 0; null for every other text."""
    import polars as pl

    plain = plain_numbers(texts, decimal, thousands)
    values = plain.cast(pl.Float64, strict=False)
    if values.null_count() > texts.null_count():
        truth = texts.replace_strict(list(TRUTH), [float(word == "true") for word in TRUTH.values()], default=None)
        values = values.fill_null(truth.cast(pl.Float64))
    return values


def texts(column: pl.Series, before: int, *, gaps: bool = False, options: TableOptions = AS_FOUND) -> pl.Series:
    """Read a column as words; white space at both ends is no part of them.

    Parameters
    ----------
    column : polars Series, length n
        Of any type whose entries can be written as one word.
    before : int
        Rows that came before these, for the row in an error.
    gaps : bool
        Whether an entry may be missing: null, or nothing but white space. The words are then handed over as they
        stand, for whoever looks them up to say what is missing and to remove the white space where there is any.
    options : TableOptions
        What means that an entry is missing.

    Raises
    ------
    InvalidInput
        For the first entry that is missing, unless it may be; if an entry is no word but a container.
    """
    text = _without(as_text(column), options.missing_values)
    if gaps:
        return text
    text = text.str.strip_chars()
    _refuse_first(text.is_null() | (text == ""), text, before, lambda _: "give every row an entry")
    return text


def _refuse_first(bad: pl.Series, entries: pl.Series, before: int, way: Callable[[str], str]) -> None:
    """Name the first bad row, counted from 1, and how many there are."""
    count = int(bad.sum())
    if count == 0:
        return
    row = int(bad.arg_max() or 0)
    entry = entries[row]
    missing = entry is None or entry == ""
    what = "missing" if missing else f"{VALUE}, not a number"
    others = f" ({count} such rows in all)" if count > 1 else ""
    told = way("" if missing else str(entry))
    place = before + row + 1 if told.endswith(_OR_MISSING) and count <= 2 else None  # a header is no column of words
    raise BadEntry(
        f"{entries.name} in row {before + row + 1} is {what}; {told}{others}", str(entry), entries.name, row=place
    )
