"""One rule for entries, whether they come from text, Parquet or a dataframe (docs/how-to/tables.md has the table).

A number is a number in any of them, true and false are 1 and 0, and a date is no number. Two words are the same word if
they are the same after `canonical`: True is true, 1.0 is 1, and 2013-01-01 00:00:00 is 2013-01-01.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput, shown

if TYPE_CHECKING:
    import polars as pl

_TRUTH = {"true": "true", "True": "true", "TRUE": "true", "false": "false", "False": "false", "FALSE": "false"}
_WHOLE = r"-?(?:0|[1-9][0-9]*)\.0+"
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_ZONE = r"(?:Z|[+-][0-9]{2}:?[0-9]{2})"
_TIME = rf"{_DAY}[ T][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(?:\.[0-9]+)?{_ZONE}?"
_SPELLED = re.compile(rf"^(?:{'|'.join(_TRUTH)}|{_WHOLE}|{_TIME})$")
"""Entries that may have another spelling."""


def canonical(text: str) -> str:
    """Return the one spelling of an entry read as a word.

    Parameters
    ----------
    text : str
        An entry, or the name of a category, without white space at its ends.

    Returns
    -------
    str
        ``true`` and ``false`` for their usual spellings; whole numbers without a fraction of zeros; a day for the
        midnight it begins with, and other times with a blank, without a fraction of zeros; a time with a zone as that
        instant in UTC, with a Z; every other text as it is.

    Examples
    --------
    >>> canonical("True"), canonical("1.0"), canonical("2013-01-01 00:00:00.000000"), canonical("007")
    ('true', '1', '2013-01-01', '007')
    >>> canonical("2013-01-01T05:00:00.000-05:00")
    '2013-01-01 10:00:00Z'
    """
    if not _SPELLED.match(text):
        return text
    if text in _TRUTH:
        return _TRUTH[text]
    if not text.startswith("-") and text[4:5] == "-":
        day, clock = text[:10], text[11:]
        zone = re.search(rf"{_ZONE}$", clock)
        if zone is not None:
            return _instant(day, clock[: zone.start()], zone[0]) or text
        clock = _shortest(clock)
        return day if clock == "00:00:00" else f"{day} {clock}"
    whole = text.partition(".")[0]
    return "0" if whole == "-0" else whole


def _shortest(clock: str) -> str:
    """Leave out a fraction of zeros."""
    return clock.rstrip("0").rstrip(".") if "." in clock else clock


def _instant(day: str, clock: str, zone: str) -> str | None:
    """Return an instant in UTC; None if there is no such day or time."""
    seconds, point, fraction = clock.partition(".")  # kept as text: datetime would cut nanoseconds
    try:
        moment = datetime.fromisoformat(f"{day}T{seconds}{zone}").astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return f"{_shortest(moment.replace(tzinfo=None).isoformat(' ') + point + fraction)}Z"


MISSING = ("", "na", "n/a", "nan", "null", "none")
"""How files write, in capitals or not, that a number is missing."""


def canonical_texts(texts: pl.Series) -> pl.Series:
    """Return a column of words in their one spelling, see `canonical`.

    Parameters
    ----------
    texts : polars Series of text, length n
        As `Table.batches` reads them; null where an entry is missing.
    """
    spelled = texts.str.contains(_SPELLED.pattern)
    if not spelled.any():
        return texts
    known = texts.filter(spelled).unique().to_list()
    return texts.replace(known, [canonical(text) for text in known])


def numbers(column: pl.Series, before: int, *, gaps: bool = False, decimal: str = ".") -> NDArray[np.float64]:
    """Read a column as numbers.

    Parameters
    ----------
    column : polars Series, length n
        Of numbers, bools or text.
    before : int
        Rows that came before these, for the row in an error.
    gaps : bool
        Whether an entry may be missing; it is NaN then.
    decimal : str
        The decimal mark of numbers written as text.

    Raises
    ------
    InvalidInput
        For the first entry that is missing or no number; if the column holds something else.
    """
    import polars as pl

    kept, kind = column, column.dtype
    if kind == pl.Categorical or kind == pl.Enum:
        kept = column.cast(pl.String)
    elif not (kind.is_numeric() or kind == pl.Boolean or kind == pl.Null or kind == pl.String):
        raise InvalidInput(f"column {shown(column.name)} holds {column.dtype}, not numbers; name a numeric one")
    if kept.dtype == pl.String:
        kept = kept.str.strip_chars()
        values = _parsed(kept, decimal)
    else:
        values = kept.cast(pl.Float64, strict=False)
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
    _refuse_first(bad, kept, "give every row a number", before)
    return values.to_numpy()


def _parsed(texts: pl.Series, decimal: str) -> pl.Series:
    """Numbers; words for true and false as 1 and 0; null for every other text."""
    import polars as pl

    plain = texts
    if decimal == ",":
        points = texts.str.contains(".", literal=True)
        plain = texts.str.replace(",", ".", literal=True).set(points, None)
    values = plain.cast(pl.Float64, strict=False)
    if values.null_count() > texts.null_count():
        truth = texts.replace_strict(list(_TRUTH), [float(word == "true") for word in _TRUTH.values()], default=None)
        values = values.fill_null(truth.cast(pl.Float64))
    return values


def texts(column: pl.Series, before: int, *, gaps: bool = False) -> pl.Series:
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

    Raises
    ------
    InvalidInput
        For the first entry that is missing, unless it may be; if an entry is no word but a container.
    """
    import polars as pl

    if column.dtype.is_nested() or column.dtype == pl.Binary or column.dtype == pl.Object:
        raise InvalidInput(f"column {shown(column.name)} holds {column.dtype}, not one word a row; name another one")
    text = column.cast(pl.String)
    if gaps:
        return text
    text = text.str.strip_chars()
    _refuse_first(text.is_null() | (text == ""), text, "give every row an entry", before)
    return text


def _refuse_first(bad: pl.Series, entries: pl.Series, way_out: str, before: int) -> None:
    """Name the first bad row, counted from 1, and how many there are."""
    count = int(bad.sum())
    if count == 0:
        return
    row = int(bad.arg_max() or 0)
    entry = entries[row]
    missing = entry is None or entry == ""
    what = "missing" if missing else f"{shown(str(entry))}, not a number"
    if not missing and re.match(r"^[+-]?[0-9]+,[0-9]+$", str(entry)[:80]):
        way_out = "if the comma is a decimal mark, say so with `decimal`"
    others = f" ({count} such rows in all)" if count > 1 else ""
    raise InvalidInput(f"{entries.name} in row {before + row + 1} is {what}; {way_out}{others}", entries.name)
