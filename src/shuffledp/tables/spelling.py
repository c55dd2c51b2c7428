"""What "the same word" means, decided here for persons, groups, consent, categories, items and names of columns alike.

Two entries are the same word if they are the same after `canonical`: True is true, 5.0 is 5, -0 is 0, 2013-01-01
00:00:00 is 2013-01-01, and a letter with its accent is one letter however it is encoded (Unicode's form NFC). White
space at the ends is no part of a word, white space inside it is one blank, and characters that nobody can see are left
out. Letters of different alphabets that look alike stay different, and so do 007 and 7, or yes and Yes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from shuffledp.errors import InvalidInput, shown

if TYPE_CHECKING:
    import polars as pl

MISSING = ("", "na", "n/a", "nan", "null", "none")
"""How files write, in capitals or not, that an entry is missing."""

_BLANK = "[\t\n\x0b\x0c\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
_UNSEEN = "[\xad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
"""Marks of direction, soft hyphens and the like; not the joiners, which some scripts need."""
_PLAIN = "^[!-~](?: ?[!-~])*$"
"""Printable ASCII with single blanks inside: nothing of it has another form."""

TRUTH = {"true": "true", "True": "true", "TRUE": "true", "false": "false", "False": "false", "FALSE": "false"}
_WHOLE = r"^(-?(?:0|[1-9][0-9]*))\.0+$"
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_ZONE = r"(?:Z|[+-][0-9]{2}:?[0-9]{2})"
_TIME = rf"{_DAY}[ T][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(?:\.[0-9]+)?{_ZONE}?"
_OTHERWISE = rf"^(?:True|TRUE|False|FALSE|{_TIME})$"
"""Words for truth, and times, which may have another spelling."""
_MOST_WHOLE = 2.0**63
_LONG = r"^-?[1-9](?:\.[0-9]+[eE]\+?|[eE]\+)(?:1[6-9]|[2-9][0-9]|[12][0-9][0-9]|30[0-8])$"
"""Whole numbers as doubles of 10^16 and more are written: 1e+16, 1.25e16, 1.0E16; not 1e16, which may be a code."""


def canonical(text: str) -> str:
    """Return the one spelling of an entry read as a word.

    Parameters
    ----------
    text : str
        An entry, or the name of a category, a person, a group or a column.

    Returns
    -------
    str
        Without white space at the ends and characters that are not seen, one blank for any white space inside, and in
        Unicode's form NFC. Then ``true`` and ``false`` for their usual spellings; whole numbers without a fraction of
        zeros and 0 without a sign; a day for the midnight it begins with, and other times with a blank, without a
        fraction of zeros; a time with a zone as that instant in UTC, with a Z; the whole number for a double of 10^16
        and more with an exponent; every other text as it is.

    Examples
    --------
    >>> canonical("True"), canonical("1.0"), canonical("2013-01-01 00:00:00.000000"), canonical("007")
    ('true', '1', '2013-01-01', '007')
    >>> canonical("2013-01-01T05:00:00.000-05:00"), canonical(" Zoe\u0301 ") == "Zo\u00e9", canonical("-0")
    ('2013-01-01 10:00:00Z', True, '0')
    """
    if not re.match(_PLAIN, text) or text.endswith("\n"):
        text = re.sub(f"{_BLANK}+", " ", re.sub(_UNSEEN, "", text)).strip(" ")
        text = unicodedata.normalize("NFC", text)
    if re.match(_LONG, text):
        return _long(text)
    text = re.sub(_WHOLE, r"\1", text)
    return "0" if text == "-0" else _otherwise(text)


def canonical_texts(texts: pl.Series) -> pl.Series:
    """Return a column of words in their one spelling, see `canonical`.

    Parameters
    ----------
    texts : polars Series of text, length n
        As `Table.batches` reads them; null where an entry is missing.
    """
    uneven = ~texts.str.contains(_PLAIN)
    if uneven.any():
        odd = texts.filter(uneven).str.replace_all(_UNSEEN, "").str.replace_all(f"{_BLANK}+", " ")
        texts = _put(texts, uneven, odd.str.strip_chars(" ").str.normalize("NFC"))
    whole = texts.str.contains(r"^-0$|\.0+$")
    if whole.any():
        texts = _put(texts, whole, texts.filter(whole).str.replace(_WHOLE, "${1}").replace("-0", "0"))
    for pattern, written in ((_OTHERWISE, _otherwise), (_LONG, _long)):
        spelled = texts.str.contains(pattern)
        if spelled.any():
            known = texts.filter(spelled).unique().to_list()
            texts = texts.replace(known, [written(text) for text in known])
    return texts


def one_spelling(entry: object) -> str | None:
    """Return the one spelling of any entry, whatever its type; None where it is missing.

    Examples
    --------
    >>> one_spelling(" N102UW"), one_spelling(True), one_spelling(3.0), one_spelling(1e16), one_spelling("")
    ('N102UW', 'true', '3', '10000000000000000', None)
    """
    if isinstance(entry, np.generic):
        entry = entry.item()
    if entry is None or (isinstance(entry, float | Decimal) and entry != entry):
        return None
    if isinstance(entry, float) and entry.is_integer():
        entry = int(entry)
    elif isinstance(entry, Decimal):
        entry = f"{entry:f}"
    return canonical(str(entry)) or None


def as_text(column: pl.Series) -> pl.Series:
    """Write the entries of a column as text; null where one is missing; a double that is whole without a fraction.

    Parameters
    ----------
    column : polars Series, length n
        Of any type whose entries can be written as one word.

    Raises
    ------
    InvalidInput
        If the entries are no words: containers, or spans of time.
    """
    import polars as pl

    kind = column.dtype
    if kind.is_nested() or kind == pl.Binary or kind == pl.Object:
        raise InvalidInput(f"column {shown(column.name)} holds {kind}, not one word a row; name another one")
    if kind == pl.Duration:
        raise spans_of_time(column)
    if not kind.is_float():
        return column.cast(pl.String)
    values, text = column.cast(pl.Float64), column.cast(pl.String)
    whole = values.is_finite() & (values == values.floor())
    small = whole & (values.abs() < _MOST_WHOLE)
    text = text.zip_with(~small.fill_null(False), values.set(~small, None).cast(pl.Int64).cast(pl.String))
    large = (whole & ~small).fill_null(False)
    if large.any():
        text = _put(text, large, pl.Series([str(int(value)) for value in values.filter(large)], dtype=pl.String))
    return text


def spans_of_time(column: pl.Series) -> InvalidInput:
    """Say that a column holds spans of time, whose unit nobody could tell."""
    return InvalidInput(
        f"column {shown(column.name)} holds spans of time ({column.dtype}), neither numbers nor words; write them as "
        "numbers first, such as seconds"
    )


def spelled(column: Any, name: str = "") -> pl.Series:
    """Return any column as words in their one spelling; null where an entry is missing.

    Parameters
    ----------
    column : sequence, array or polars Series, length n
        One entry per row.
    name : str
        What the result is called.

    Raises
    ------
    InvalidInput
        If the entries are containers.
    """
    import polars as pl

    if isinstance(column, pl.Series):
        words = canonical_texts(as_text(column))
        return words.set(words == "", None).rename(name)
    entries = column.tolist() if isinstance(column, np.ndarray) else list(column)
    if any(isinstance(entry, list | tuple | dict | set) for entry in entries):
        raise InvalidInput("an entry is not a word but a container; give one word per row")
    return pl.Series(name, map(one_spelling, entries), dtype=pl.String)


def twice(words: Iterable[object]) -> tuple[object, object] | None:
    """Return the first two of several names that are one word; None if all are different words.

    Parameters
    ----------
    words : iterable
        Names of any type.

    Examples
    --------
    >>> twice(["5", "x", 5.0]), twice(["yes", "Yes"])
    (('5', 5.0), None)
    """
    first: dict[str | None, object] = {}
    for word in words:
        spelling = one_spelling(word)
        if spelling in first:
            return first[spelling], word
        first[spelling] = word
    return None


def same_word(name: str, names: Sequence[str]) -> list[str]:
    """Return those of several names that are the same word as one; the exact one comes first."""
    spelling = canonical(name)
    found = [other for other in names if canonical(other) == spelling]
    return sorted(found, key=lambda other: other != name)


def _put(texts: pl.Series, where: pl.Series, others: pl.Series) -> pl.Series:
    """Return texts with others in the places where a mask says so."""
    return texts.clone().scatter(where.arg_true(), others)  # scatter writes into the column that it is called on


def _otherwise(text: str) -> str:
    """Words for truth, and times."""
    if not re.match(_OTHERWISE, text):
        return text
    if text in TRUTH:
        return TRUTH[text]
    day, clock = text[:10], text[11:]
    zone = re.search(rf"{_ZONE}$", clock)
    if zone is not None:
        return _instant(day, clock[: zone.start()], zone[0]) or text
    clock = _shortest(clock)
    return day if clock == "00:00:00" else f"{day} {clock}"


def _long(text: str) -> str:
    """Return a whole number that is a double."""
    return str(int(float(text)))


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
