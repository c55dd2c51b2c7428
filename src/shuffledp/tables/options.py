"""How a table is written, and what its entries mean.

**Options** (`TableOptions`) state what is not to be found out.

**Marks.** A point is a decimal mark unless `decimal` is a comma. A mark between thousands is never guessed: 1,000 is
one, or a thousand, and whoever is told to say which is told both readings.

**Words.** What "the same word" means is decided here for persons, groups, consent, categories, items and names of
columns alike. Two entries are the same word if they are the same after `canonical`: True is true, 5.0 is 5, -0 is 0,
2013-01-01 00:00:00 is 2013-01-01, and a letter with its accent is one letter however it is encoded (Unicode's form
NFC). White space at the ends is no part of a word, white space inside it is one blank, and characters that nobody can
see are left out. Letters of different alphabets that look alike stay different, and so do 007 and 7, or yes and Yes.

**Entries.** One rule, whether they come from text, Parquet or a dataframe (docs/how-to/tables.md has the table): a
number is a number in any of them, true and false are 1 and 0, and a date is no number.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import DESCRIBES, VALUE, BadEntry, InvalidInput, shown, whole_number

if TYPE_CHECKING:
    import polars as pl

THOUSANDS = {",": "[,]", ".": "[.]", "'": "['\u2019]", " ": "[ \u00a0\u2009\u202f]", "_": "[_]"}
"""Marks between thousands, with the pattern of each in a file."""
_PLAIN = "[+-]?(?:[0-9]+{0}?[0-9]*|{0}[0-9]+)(?:[eE][+-]?[0-9]+)?"


def plain_numbers(texts: pl.Series, decimal: str, thousands: str | None) -> pl.Series:
    """Return numbers rewritten with a decimal point alone; null for texts with a mark in another place.

    Parameters
    ----------
    texts : polars Series of text, length n
        Texts without white space at both ends.
    decimal : str
        The decimal mark, "." or ",".
    thousands : str, optional
        The mark between thousands, a key of `THOUSANDS`; None: there is none.
    """
    if thousands is not None:
        marked = texts.str.contains(THOUSANDS[thousands])
        if marked.any():
            fits = texts.str.contains(f"^{_grouped(decimal, thousands)}$")
            texts = texts.set(marked & ~fits, None).str.replace_all(THOUSANDS[thousands], "")
    if decimal == ",":
        points = texts.str.contains(".", literal=True)
        texts = texts.str.replace(",", ".", literal=True).set(points, None)
    return texts


def text_number(entry: str) -> float | None:
    """Return the number in a text with a decimal point alone; NaN for a blank text, None for anything else.

    Examples
    --------
    >>> text_number(" -4.5e3 "), text_number("1_000"), text_number("1,5")
    (-4500.0, None, None)
    """
    text = entry.strip()
    if text and re.fullmatch(_PLAIN.format("[.]") + "|[+-]?(?i:inf|infinity)|(?i:nan)", text) is None:
        return None
    return float(text or "nan")


def way_out(entry: str, decimal: str, thousands: str | None) -> str | None:
    """Return advice on how an entry can be read as a number; None if no mark explains it.

    For an entry with two readings both are shown, so that nobody who follows the advice gets another number than was
    written. The advice depends on the places of the marks, not on the digits.

    Parameters
    ----------
    entry : str
        The entry.
    decimal, thousands
        As stated by the user, see `plain_numbers`.
    """
    text = entry[:80]
    readings = [
        (point, mark)
        for mark in (None, *THOUSANDS)
        for point in (".", ",")
        if _reads(text, point, mark) and (point in text or point == {".": ",", ",": "."}.get(mark or "", decimal))
    ]
    if len(readings) == 1 and readings[0][1] is None:
        point = readings[0][0]
        return f"if the {'comma' if point == ',' else 'point'} is a decimal mark, say so with `decimal = '{point}'`"
    if len(readings) == 1:
        settings = [f"`decimal = '{readings[0][0]}'`"] if readings[0][0] != decimal else []
        settings += [f"`thousands = '{_mark_name(readings[0][1])}'`"]
        return f"if it has marks between thousands, say so with {' and '.join(settings)}"
    if len(readings) < 2:
        return None
    comma = (",", None) in readings
    mark = "," if comma else "."
    other = (f"1.234 with `decimal = '{mark}'`", f"1234 with `thousands = '{mark}'`")
    return (
        f"a {'comma' if comma else 'point'} may be a decimal mark, or stand between thousands: 1{mark}234 is "
        f"{other[0]}, and {other[1]}; say which it is"
    )


def _grouped(decimal: str, thousands: str) -> str:
    """Return the pattern of a number with marks between thousands."""
    return f"[+-]?[0-9]{{1,3}}(?:{THOUSANDS[thousands]}[0-9]{{3}})+(?:{re.escape(decimal)}[0-9]*)?"


def _reads(text: str, decimal: str, thousands: str | None) -> bool:
    """Return whether a text is a number with these marks, including the one between thousands."""
    if decimal == thousands:
        return False
    pattern = _PLAIN.format(re.escape(decimal)) if thousands is None else _grouped(decimal, thousands)
    return re.fullmatch(pattern, text) is not None


def _mark_name(mark: str | None) -> str:
    return {" ": "space", "'": "apostrophe"}.get(mark or "", str(mark))


MISSING = ("", "na", "n/a", "nan", "null", "none")
"""Words for a missing entry in files, in lower case."""

_BLANK = "[\t\n\x0b\x0c\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
_UNSEEN = "[\xad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
"""Marks of direction, soft hyphens and the like; not the joiners, which some scripts need."""
_ONE_SPELLING = "^[!-~](?: ?[!-~])*$"
"""Printable ASCII with single blanks inside: nothing of it has another form."""

TRUTH = {"true": "true", "True": "true", "TRUE": "true", "false": "false", "False": "false", "FALSE": "false"}
_WHOLE = r"^(-?(?:0|[1-9][0-9]*))\.0+$"
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_ZONE = r"(?:Z|[+-][0-9]{2}:?[0-9]{2})"
_TIME = rf"{_DAY}[ T][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(?:\.[0-9]+)?{_ZONE}?"
_OTHERWISE = rf"^(?:True|TRUE|False|FALSE|{_TIME})$"
"""Pattern of words for truth, and of times, which may have another spelling."""
_MOST_WHOLE = 2.0**63
_LONG = r"^-?[1-9](?:\.[0-9]+[eE]\+?|[eE]\+)(?:1[6-9]|[2-9][0-9]|[12][0-9][0-9]|30[0-8])$"
"""Pattern of whole numbers as doubles of 10^16 and more: 1e+16, 1.25e16, 1.0E16; not 1e16, which may be a code."""


def canonical(text: str) -> str:
    """Return the normal form of an entry that is read as a word: entries with the same form are the same word.

    Parameters
    ----------
    text : str
        An entry, or the name of a category, a person, a group or a column.

    Returns
    -------
    str
        Without white space at the ends and invisible characters, one blank for any white space inside, and in Unicode's
        form NFC. Then ``true`` and ``false`` for their usual spellings; whole numbers without a fraction of zeros and 0
        without a sign; the day for a midnight, and other times with a blank between day and time, without a fraction of
        zeros; a time with a zone as that instant in UTC, with a Z; the whole number for a double of 10^16 and more with
        an exponent; every other text as it is.

    Examples
    --------
    >>> canonical("True"), canonical("1.0"), canonical("2013-01-01 00:00:00.000000"), canonical("007")
    ('true', '1', '2013-01-01', '007')
    >>> canonical("2013-01-01T05:00:00.000-05:00"), canonical(" Zoé ") == "Zoé", canonical("-0")
    ('2013-01-01 10:00:00Z', True, '0')
    """
    if not re.match(_ONE_SPELLING, text) or text.endswith("\n"):
        text = re.sub(f"{_BLANK}+", " ", re.sub(_UNSEEN, "", text)).strip(" ")
        text = unicodedata.normalize("NFC", text)
    if re.match(_LONG, text):
        return _long(text)
    text = re.sub(_WHOLE, r"\1", text)
    return "0" if text == "-0" else _otherwise(text)


def canonical_texts(texts: pl.Series) -> pl.Series:
    """Return a column of words in their normal form, see `canonical`.

    Parameters
    ----------
    texts : polars Series of text, length n
        Words as read by `Table.batches`; null where an entry is missing.
    """
    uneven = ~texts.str.contains(_ONE_SPELLING)
    if uneven.any():
        odd = texts.filter(uneven).str.replace_all(_UNSEEN, "").str.replace_all(f"{_BLANK}+", " ")
        texts = _put(texts, uneven, odd.str.strip_chars(" ").str.normalize("NFC"))
    whole = texts.str.contains(r"^-0$|\.0+$")
    if whole.any():
        texts = _put(texts, whole, texts.filter(whole).str.replace(_WHOLE, "${1}").replace("-0", "0"))
    for pattern, written in ((_OTHERWISE, _otherwise), (_LONG, _long)):
        spelled = texts.str.contains(pattern)
        if spelled.any():
            distinct = texts.filter(spelled).unique().to_list()
            texts = texts.replace(distinct, [written(text) for text in distinct])
    return texts


def one_spelling(entry: object) -> str | None:
    """Return the normal form (see `canonical`) of any entry, whatever its type; None where it is missing.

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
    """Return the entries of a column as text; null where one is missing; whole doubles without a fraction.

    Parameters
    ----------
    column : polars Series, length n
        Column of any type whose entries can be written as one word.

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
    """Return the error for a column of spans of time, whose unit is unknown."""
    return InvalidInput(
        f"column {shown(column.name)} holds spans of time ({column.dtype}), neither numbers nor words; write them as "
        "numbers first, such as seconds"
    )


NO_WORD = (list, tuple, dict, set, np.ndarray, bytes, bytearray)
"""Types of entries that are not words."""


def as_words(words: Iterable[str | None], name: str) -> pl.Series:
    """Return words as a column; refuse half a character, which a file read in a wrong way leaves.

    Parameters
    ----------
    words : iterable of str or None
        One entry per row; None where it is missing.
    name : str
        Name of the result.

    Raises
    ------
    InvalidInput
        If a word has a surrogate without its other half.
    """
    import polars as pl

    try:
        return pl.Series(name, words, dtype=pl.String)
    except UnicodeEncodeError:
        raise InvalidInput(
            "an entry holds half a character (a surrogate), so it is not text; read its source again in its encoding"
        ) from None


def spelled(column: Any, name: str = "") -> pl.Series:
    """Return any column as words in their normal form (see `canonical`); null where an entry is missing.

    Parameters
    ----------
    column : sequence, array or polars Series, length n
        One entry per row.
    name : str
        Name of the result.

    Raises
    ------
    InvalidInput
        If the entries are containers or bytes, or hold half a character.
    """
    import polars as pl

    if isinstance(column, pl.Series):
        words = canonical_texts(as_text(column))
        return words.set(words == "", None).rename(name)
    entries = column.tolist() if isinstance(column, np.ndarray) else list(column)
    if wrong := next((type(entry).__name__ for entry in entries if isinstance(entry, NO_WORD)), None):
        raise InvalidInput(f"an entry is not a word but of type {wrong}; give one word per row")
    return as_words(map(one_spelling, entries), name)


def twice(words: Iterable[object]) -> tuple[object, object] | None:
    """Return the first two of several names that are the same word (`canonical`); None if all differ.

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
    """Return those of several names that are the same word as ``name`` (`canonical`), an identical one first."""
    spelling = canonical(name)
    matches = [other for other in names if canonical(other) == spelling]
    return sorted(matches, key=lambda other: other != name)


def _put(texts: pl.Series, where: pl.Series, others: pl.Series) -> pl.Series:
    """Return texts with those where a mask is True replaced by others."""
    return texts.clone().scatter(where.arg_true(), others)  # scatter writes into the column that it is called on


def _otherwise(text: str) -> str:
    """Return the one spelling of words for truth, and of times."""
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
    """Return the digits of a whole number that is written as a double."""
    return str(int(float(text)))


def _shortest(clock: str) -> str:
    """Return a time without a fraction of zeros."""
    return clock.rstrip("0").rstrip(".") if "." in clock else clock


def _instant(day: str, clock: str, zone: str) -> str | None:
    """Return an instant in UTC; None if there is no such day or time."""
    seconds, point, fraction = clock.partition(".")  # kept as text: datetime would cut nanoseconds
    try:
        moment = datetime.fromisoformat(f"{day}T{seconds}{zone}").astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return f"{_shortest(moment.replace(tzinfo=None).isoformat(' ') + point + fraction)}Z"


BLANKS = "blanks"
"""Name of the separator of tables made for reading: any run of blanks and tabs."""
MOST_LINES = 1000
"""Largest number of skipped lines above a header, and of rows of it."""


@dataclass(frozen=True)
class TableOptions:
    """The format of a table, where it is not to be detected.

    An option without meaning for a table is refused when it is opened: the first five concern text files.

    Parameters
    ----------
    separator : str, optional
        The one ASCII character between two fields; ``"tab"`` for a tab, ``"blanks"`` for any run of blanks and tabs. By
        default the one of comma, semicolon, tab and bar that splits the first rows into the same number of fields, or
        what a first line such as ``sep=;`` says.
    encoding : str, optional
        Any encoding of Python, such as ``"cp1252"``. By default UTF-8, or UTF-16 or UTF-32 if the file begins with
        their mark.
    decimal : str
        The decimal mark of numbers written as text, ``"."`` or ``","``.
    thousands : str, optional
        The mark between thousands: ``","``, ``"."``, ``"_"``, ``"apostrophe"`` or ``"space"``. By default there is
        none, and a number that may have one is refused with both its readings.
    show_values : bool
        Whether an error message shows the row's entry, for those who hold the table. By default it names
        the row and the rule alone.
    skip_lines : int
        Number of lines above the header that belong to no table, such as a title; from 0 to 1,000.
    header_rows : int
        Number of rows of the header, from 1 to 1,000. The first one holds the names; the others describe the columns,
        as in the exports of survey tools, and are no records.
    missing_values : tuple of str
        Words for a missing entry in every column, besides an empty one: ``(".", "#N/A", "-99")``. An
        entry is such a word if it is the same word (`shuffledp.tables.canonical`), and in a column of numbers also if
        it is the same number.

    Raises
    ------
    InvalidInput
        If a value is not allowed.

    Examples
    --------
    >>> TableOptions(separator=";", decimal=",").separator
    ';'
    """

    separator: str | None = None
    encoding: str | None = None
    decimal: str = "."
    thousands: str | None = None
    show_values: bool = False
    skip_lines: int = 0
    header_rows: int = 1
    missing_values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._check_marks()
        if self.encoding is not None:
            try:
                "a".encode(self.encoding)  # unlike a look-up, this refuses codecs of bytes, such as base64
            except (LookupError, ValueError):
                raise InvalidInput(
                    f"`encoding` must be a text encoding, such as utf-8 or cp1252; got {shown(self.encoding)}",
                    "encoding",
                ) from None
        for name, least in (("skip_lines", 0), ("header_rows", 1)):
            object.__setattr__(self, name, whole_number(getattr(self, name), f"`{name}`", least, MOST_LINES))
        if isinstance(self.missing_values, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(
                f"`missing_values` must be a list of words, not the text {shown(self.missing_values)}", "missing_values"
            )
        words = tuple(canonical(str(word)) for word in self.missing_values)
        if not all(words):
            raise InvalidInput("`missing_values` need not name the empty entry, which is missing", "missing_values")
        object.__setattr__(self, "missing_values", words)

    def _check_marks(self) -> None:
        mark = {"tab": "\t", "\\t": "\t"}.get(self.separator or "", self.separator)
        object.__setattr__(self, "separator", mark)
        plain = mark is None or (len(mark) == 1 and mark.isascii() and not mark.isalnum() and mark not in '"\r\n\0')
        if not plain and mark != BLANKS:
            raise InvalidInput(
                f"`separator` must be one ASCII character, such as ; or tab, or blanks; got {shown(mark)}", "separator"
            )
        if self.decimal not in (".", ",") or self.decimal == mark:
            raise InvalidInput(f"`decimal` must be . or , and not the separator; got {shown(self.decimal)}", "decimal")
        between = {"space": " ", "apostrophe": "'"}.get(self.thousands or "", self.thousands)
        object.__setattr__(self, "thousands", between)
        if between is not None and (between not in THOUSANDS or between == self.decimal):
            raise InvalidInput(
                f"`thousands` must be , . _ apostrophe or space, and not the decimal mark; got {shown(self.thousands)}",
                "thousands",
            )

    def refuse_for_text(self, what: str, also: tuple[str, ...] = ()) -> None:
        """Refuse options that have a meaning only for text files.

        Parameters
        ----------
        what : str
            What is read instead, such as "people.parquet is Parquet".
        also : tuple of str
            Further options without meaning for it.

        Raises
        ------
        InvalidInput
            For the first such option that is stated.
        """
        stated = TableOptions()
        for name in ("separator", "encoding", "skip_lines", "header_rows", *also):
            if getattr(self, name) != getattr(stated, name):
                raise InvalidInput(
                    f"`{name}` is about tables{'' if name in also else ' of text'}, and {what}; leave it out", name
                )


AS_FOUND = TableOptions()
"""Options with which the whole format is detected."""


_OR_MISSING = ", or name a word that means missing with `missing_values`"


def numbers(
    column: pl.Series, before: int, *, gaps: bool = False, options: TableOptions = AS_FOUND
) -> NDArray[np.float64]:
    """Return a column as numbers, shape (n,).

    Parameters
    ----------
    column : polars Series, length n
        Column of numbers, bools or text.
    before : int
        Number of rows before these, for the row number in an error.
    gaps : bool
        Whether an entry may be missing; it is NaN then.
    options : TableOptions
        The marks in numbers written as text, and the words for a missing entry.

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
        array = values.to_numpy()
        if not np.isnan(array).any():  # as nearly always; what is bad is looked for only if something is
            return array
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
    """Return advice on how an entry can be read as a number, or as a missing one."""
    marks = way_out(entry, options.decimal, options.thousands)
    return marks or f"give every row a number{_OR_MISSING if entry else ''}"


def _without(texts: pl.Series, missing: tuple[str, ...]) -> pl.Series:
    """Return texts with the words for a missing entry replaced by null."""
    return texts.set(canonical_texts(texts).is_in(missing), None) if missing else texts


def _parsed(texts: pl.Series, decimal: str, thousands: str | None) -> pl.Series:
    """Return texts as numbers: words for true and false as 1 and 0, and null for every other text."""
    import polars as pl

    plain = plain_numbers(texts, decimal, thousands)
    values = plain.cast(pl.Float64, strict=False)
    if values.null_count() > texts.null_count():
        truth = texts.replace_strict(list(TRUTH), [float(word == "true") for word in TRUTH.values()], default=None)
        values = values.fill_null(truth.cast(pl.Float64))
    return values


def texts(column: pl.Series, before: int, *, gaps: bool = False, options: TableOptions = AS_FOUND) -> pl.Series:
    """Return a column as words, without white space at both ends.

    Parameters
    ----------
    column : polars Series, length n
        Column of any type whose entries can be written as one word.
    before : int
        Number of rows before these, for the row number in an error.
    gaps : bool
        Whether an entry may be missing: null, or nothing but white space. The words are then handed over as they
        stand: the caller, who looks them up, detects missing ones and removes white space.
    options : TableOptions
        The words for a missing entry.

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
    """Refuse entries that cannot be used: name the first row, counted from 1, and their number."""
    count = int(bad.sum())
    if count == 0:
        return
    row = int(bad.arg_max() or 0)
    entry = entries[row]
    missing = entry is None or entry == ""
    what = "missing" if missing else f"{VALUE}, not a number"
    others = f" ({count:,} such rows in all)" if count > 1 else ""
    advice = way("" if missing else str(entry))
    word = advice.endswith(_OR_MISSING)  # else it is missing, or a number in another spelling
    if word and heads(bad.to_numpy(), before):
        advice, place = f"{DESCRIBES}{advice}", count
    else:
        advice, place = f"; {advice}", before + row + 1 if word and count <= 2 else None
    message = f"{entries.name} in row {before + row + 1} is {what}{advice}{others}"
    raise BadEntry(message, str(entry), entries.name, row=place)


MOST_DESCRIBING = 2
"""Largest number of rows below the names that exports of survey tools fill with texts of questions and ids."""


def heads(bad: NDArray[np.bool_], before: int) -> bool:
    """Return whether the bad rows of a column are the first one or two, so that these may describe the columns.

    Parameters
    ----------
    bad : ndarray of bool, shape (n,)
        Whether each row breaks the rule.
    before : int
        Number of rows before these.
    """
    count = int(bad.sum())
    return before == 0 and 0 < count <= MOST_DESCRIBING and count < bad.size and bool(bad[:count].all())
