"""The records as users hold them, turned into codes, numbers and words; the first bad row is named."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import DESCRIBES, VALUE, BadEntry, InvalidInput, Written, shown
from shuffledp.numerics.floats import FloatArray
from shuffledp.randomizers.balls import norms
from shuffledp.randomizers.item_domain import UTF8, WordItems
from shuffledp.tables.options import MISSING, canonical_texts, heads, one_spelling, spelled, text_number, twice, way_out

if TYPE_CHECKING:
    import polars as pl

_CHUNK = 1 << 14  # rows at a time, so that temporaries stay in cache


_SPARSE = 1 << 12  # places of a look-up table that may stay empty


@dataclass(frozen=True)
class Recode:
    """Replacement of missing records, and of records outside the question's domain, before they are randomized.

    The mapping is public and the same for everybody, and it touches one record at a time. The mapped record is a record
    like any other, so the certified guarantee holds unchanged. Leaving such a person out instead would make
    participation depend on the records, which no guarantee of this package covers.

    Parameters
    ----------
    missing_as : hashable, optional
        Replacement of a missing record; None: a missing record is refused.
    other : hashable, optional
        The category that replaces a record outside the categories; None: such a record is refused.
    clip : bool
        Whether a number outside the range is moved to the nearer end (a long vector is shortened); else it is refused.
    """

    missing_as: Hashable | None = None
    other: Hashable | None = None
    clip: bool = False


NO_RECODE = Recode()

NO_ANSWER = "no-answer"
"""What `missing_as` of a mean is where it is that of those who answered; a missing record is then reported as such."""


def read_labels(categories: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Return the public categories as a tuple, after checking that there are at least two, none missing and none twice.

    Two categories are the same if they are the same word (`shuffledp.tables.canonical`).
    """
    if isinstance(categories, str):
        raise InvalidInput(f"categories must be a list of labels, not the text {shown(categories)}")
    labels = tuple(label.item() if isinstance(label, np.generic) else label for label in categories)
    if len(labels) < 2:
        raise InvalidInput(f"a frequency needs at least two categories; got {len(labels)}: {list(labels)}")
    for label in labels:
        if _missing(label):
            raise InvalidInput(f"a category cannot be missing ({shown(label)}); write a word for it")
    check_different(labels, "category", "categories")
    return labels


def check_different(words: Sequence[Hashable], one: str, several: str) -> None:
    """Refuse names of which two are the same word, since a row could not be assigned to one of them.

    Parameters
    ----------
    words : sequence
        The names.
    one, several : str
        What the names are, in the singular and in the plural.

    Raises
    ------
    InvalidInput
        For the first such pair.
    """
    seen_before: set[Hashable] = set()
    for word in words:
        if word in seen_before:
            raise InvalidInput(f"{one} {shown(word)} is given twice; name each {one} once")
        seen_before.add(word)
    pair = twice(words)
    if pair is None:
        return
    raise InvalidInput(
        f"the {several} {shown(pair[0])} and {shown(pair[1])} are one word, written in two ways; name each {one} once"
    )


def category_codes(
    records: Any, labels: tuple[Hashable, ...], before: int = 0, recode: Recode = NO_RECODE
) -> NDArray[np.int64]:
    """Return the index of each record among the labels, shape (n,).

    Parameters
    ----------
    records : sequence, array or polars Series, length n
        One label per user.
    labels : tuple, length k
        The public categories.
    before : int
        Number of rows before these, for the row number in an error.
    recode : Recode
        Replacements of missing and unlisted records.

    Raises
    ------
    InvalidInput
        For the first record that is missing or unlisted and not recoded.
    """
    column = as_labels(records)
    codes = known_codes(column, labels)
    unknown = np.flatnonzero(codes < 0)
    if unknown.size == 0:
        return codes
    codes = codes.copy()  # polars hands its own, read-only
    missing = _missing_among(column, unknown)
    for gone, label, parameter in ((missing, recode.missing_as, "missing_as"), (~missing, recode.other, "other")):
        if label is not None:
            codes[unknown[gone]] = labels.index(label)
        elif gone.any():
            row = int(unknown[np.argmax(gone)])
            alone = int((codes < 0).sum()) if parameter == "other" and heads(codes < 0, before) else 0
            raise _unlisted(column[row], before + row + 1, labels, parameter, alone)
    return codes


_JOINING = (";", ",", "|", "/", "\n")
"""Characters with which survey tools separate several answers in one cell."""


def _unlisted(entry: object, row: int, labels: tuple[Hashable, ...], parameter: str, alone: int) -> BadEntry:
    """Return the error for a record that is missing or no category, with what it may be instead.

    ``alone`` is the number of first rows that alone are no category; 0 where others are none either.
    """
    if parameter == "other" and _several(str(entry), labels):
        return BadEntry(
            f"the record in row {row} is {VALUE}, several of the categories in one cell, and a frequency counts one a "
            "person; give each category a column of 0 and 1, and ask for their vector mean with norm 1 in linf",
            entry,
        )
    examples = ", ".join(shown(label) for label in labels[:5]) + (", ..." if len(labels) > 5 else "")
    what = "is missing" if parameter == "missing_as" else f"is {VALUE}, none of the categories ({examples})"
    means_missing = str(entry).strip().lower() in (*MISSING[1:], ".", "-", "?", "#n/a", "#null!", "#value!")
    word = parameter == "other" and means_missing
    otherwise = "; if it is a word for missing, name it with `missing_values`" if word else ""
    return BadEntry(
        f"the record in row {row} {what}{DESCRIBES if alone else '; '}name the category that such a record counts as "
        f"with `{parameter}`, or add one{otherwise}",
        entry,
        row=alone or (row if parameter == "other" else None),
    )


def _several(entry: str, labels: tuple[Hashable, ...]) -> bool:
    """Return whether an entry consists of two or more of the categories, separated as survey tools do."""
    spellings = {one_spelling(label) for label in labels}
    cut = ([one_spelling(part) for part in entry.split(mark)] for mark in _JOINING)
    return any(len(parts) > 1 and all(part in spellings for part in parts) for parts in cut)


def as_labels(records: Any) -> Any:
    """Return a column of labels in a form for look-up: a list, an array, or a polars column of text."""
    return records if _texts(records) or isinstance(records, list | tuple) else as_array(records)


def known_codes(column: Any, labels: tuple[Hashable, ...]) -> NDArray[np.int64]:
    """Return the index of each entry among the labels, -1 for entries that are none of them, shape (n,).

    Parameters
    ----------
    column : list, tuple, ndarray or polars Series, length n
        One label per user, see `as_labels`.
    labels : tuple, length k
        The public categories, all of them different words.
    """
    if _texts(column):
        return _text_codes(column, labels)
    if isinstance(column, np.ndarray) and _comparable(column, labels):
        return _number_codes(column, labels)
    return _label_codes(column, labels)


def _missing_among(column: Any, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether the records of these rows are missing: None, NaN, or empty text."""
    entries = (column[int(row)] for row in rows)
    return np.fromiter((_missing(entry) or str(entry).strip() == "" for entry in entries), np.bool_, rows.size)


def _comparable(column: NDArray[Any], labels: tuple[Hashable, ...]) -> bool:
    """Return whether NumPy compares these numbers with these labels as exactly as Python does."""
    whole = all(isinstance(label, int) and abs(label) < 2**53 for label in labels)
    number = all(isinstance(label, int | float) and abs(label) < 2**53 for label in labels)
    return (whole and column.dtype.kind in "bi") or (number and column.dtype.kind == "f")


def _texts(column: Any) -> bool:
    """Return whether a column is a polars column of text, which polars looks up itself."""
    return type(column).__module__.startswith("polars") and str(column.dtype) == "String"


def _text_codes(column: pl.Series, labels: tuple[Hashable, ...]) -> NDArray[np.int64]:
    """Return the index of each word among the labels, looked up as written first, and else in its one spelling.

    Nearly all entries of nearly all files are found as written, which is fast.
    """
    import polars as pl

    spellings = _spellings(labels)
    names = [label if isinstance(label, str) else own for label, own in zip(labels, spellings, strict=True)]
    codes = _places(column, names)
    unknown = codes < 0
    if not unknown.any():
        return codes
    codes = codes.copy()  # polars hands its own, read-only
    codes[unknown] = _places(canonical_texts(column.filter(pl.Series(unknown))), spellings)
    return codes


def _places(column: pl.Series, names: list[str]) -> NDArray[np.int64]:
    """Return the index of each entry among the names, -1 for the others and for empty entries."""
    import polars as pl

    physical = column.cast(pl.Enum(names), strict=False).to_physical().cast(pl.Int64)
    codes = (physical.fill_null(-1) if physical.null_count() else physical).to_numpy()
    blank = [code for code, name in enumerate(names) if not name.strip()]
    return np.where(np.isin(codes, blank), -1, codes) if blank else codes


def _number_codes(column: NDArray[Any], labels: tuple[Hashable, ...]) -> NDArray[np.int64]:
    """Return the index of each number among the labels: close whole numbers by a table, others by binary search."""
    values = np.asarray(labels)
    low, span = int(values.min()), int(values.max()) - int(values.min()) + 1
    dense = column.dtype.kind in "bi" and values.dtype.kind in "bi" and span <= 4 * values.size + _SPARSE
    order = np.argsort(values)
    place = np.full(span + 1, -1, dtype=np.int64) if dense else order
    if dense:
        place[values - low] = np.arange(values.size)
    codes = np.empty(len(column), dtype=np.int64)
    for start in range(0, len(column), _CHUNK):
        chunk = column[start : start + _CHUNK]
        if dense:
            chunk = chunk.astype(np.int64, copy=False)  # the difference of two small ones may not fit into their type
            inside = (chunk >= low) & (chunk < low + span)
            codes[start : start + _CHUNK] = place[np.where(inside, chunk - low, span)]
            continue
        near = order[np.minimum(np.searchsorted(values, chunk, sorter=order), len(labels) - 1)]
        codes[start : start + _CHUNK] = np.where(values[near] == chunk, near, -1)
    return codes


def _label_codes(column: Any, labels: tuple[Hashable, ...]) -> NDArray[np.int64]:
    place: dict[Hashable, int] = {label: code for code, label in enumerate(labels)}
    codes = np.empty(len(column), dtype=np.int64)
    for start in range(0, len(column), _CHUNK):
        chunk = column[start : start + _CHUNK]
        entries = chunk.tolist() if isinstance(chunk, np.ndarray) else chunk
        try:
            chunk_codes = np.fromiter(map(place.get, entries, repeat(-1)), dtype=np.int64, count=len(entries))
        except TypeError:
            raise InvalidInput("a record is not a label but a container; give one label per user") from None
        codes[start : start + _CHUNK] = chunk_codes
    words = [row for row in np.flatnonzero(codes < 0).tolist() if isinstance(column[row], str)]
    if words:
        codes[words] = _places(spelled([column[row] for row in words]), _spellings(labels))
    return codes


def _spellings(labels: tuple[Hashable, ...]) -> list[str]:
    """Return the one spelling of each label.

    A blank label gets a text that equals no entry, as blank entries are missing.
    """
    return [one_spelling(label) or f"\n{place}" for place, label in enumerate(labels)]


def bounded_numbers(values: Any, low: float, high: float, recode: Recode = NO_RECODE, before: int = 0) -> FloatArray:
    """Return the values as numbers in the public range, shape (n,).

    Parameters
    ----------
    values : sequence, array or polars Series, length n
        One number per user.
    low, high : float
        The range.
    recode : Recode
        `missing_as`: the number that replaces a missing value (None or NaN). `clip`: whether values are moved into the
        range.
    before : int
        Number of rows before these, for the row number in an error.

    Raises
    ------
    InvalidInput
        For the first value that is missing, outside the range or no number, and not recoded.
    """
    numbers = _floats(values, "value", before)
    if numbers.ndim != 1:
        raise InvalidInput(f"values must be one-dimensional; got shape {numbers.shape}")
    missing = np.isnan(numbers)
    if missing.any():
        numbers = numbers if recode.missing_as == NO_ANSWER else _filled(numbers, missing, recode, "value", before)
    if recode.clip:
        return np.clip(numbers, low, high)
    outside = (numbers < low) | (numbers > high)
    if outside.any():
        row = int(np.argmax(outside))
        raise BadEntry(
            f"the value in row {before + row + 1} is {VALUE}, outside [{low}, {high}]; "
            "say `clip`, or widen the range without looking at the values",
            numbers[row],
        )
    return numbers


def bounded_vectors(
    columns: Sequence[Any], dimension: int, kind: str, norm: float, recode: Recode = NO_RECODE, before: int = 0
) -> FloatArray:
    """Return vectors within the norm's bound, shape (n, dimension).

    Parameters
    ----------
    columns : sequence of columns
        One column per coordinate, or a single array of shape (n, dimension).
    dimension : int
        Length of a vector.
    kind : {"l2", "linf", "l1"}
        The norm that is bounded.
    norm : float
        The bound.
    recode : Recode
        `missing_as` 0: a missing coordinate counts as 0. `clip`: vectors that are too long are shortened (l1, l2:
        scaled; linf: coordinate by coordinate).
    before : int
        Number of rows before these, for the row number in an error.

    Raises
    ------
    InvalidInput
        For the first vector that is too long or not finite, or if the number of columns is not the dimension.
    """
    table = _floats(columns[0], "vector", before) if len(columns) == 1 else None
    if table is None or table.ndim == 1:
        table = np.column_stack([_floats(column, "vector", before) for column in columns])
    if table.ndim != 2 or table.shape[1] != dimension:
        got = table.shape[1] if table.ndim == 2 else table.shape
        raise InvalidInput(f"a mean of vectors of dimension {dimension} needs as many columns; got {got}")
    missing = np.isnan(table)
    if missing.any():
        table = _filled(table, missing, recode, "vector", before)
    # Lengths in units of the largest entry: the square of 1e200 is no number.
    largest = np.max(np.abs(table), axis=1, initial=0.0)
    unit = np.where(np.isfinite(largest) & (largest > 0.0), largest, 1.0)
    shares = norms(table / unit[:, None], kind)
    lengths = np.where(np.isfinite(largest), shares * unit, np.inf)
    if recode.clip:
        if kind == "linf":
            return np.clip(table, -norm, norm)
        if not np.isfinite(largest).all():
            row = int(np.argmin(np.isfinite(largest)))
            raise InvalidInput(f"the vector in row {before + row + 1} is infinite and has no direction to shorten")
        far = (lengths > norm)[:, None]
        return np.where(far, table / unit[:, None] * (norm / np.where(far[:, 0], shares, 1.0))[:, None], table)
    outside = ~(lengths <= norm)
    if outside.any():
        row = int(np.argmax(outside))
        raise BadEntry(
            f"the vector in row {before + row + 1} has {kind} norm {VALUE}, beyond {norm:g}; "
            "say `clip`, or allow a larger norm without looking at the vectors",
            Written(f"{lengths[row]:g}"),
        )
    return table


def _floats(values: Any, what: str, before: int) -> FloatArray:
    column = as_array(values)
    if column.ndim == 1:
        return as_floats(column, what, before)
    _check_numbers(column, what)
    try:
        return np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"{what}s must be numbers; an entry is none") from None


def _check_numbers(column: NDArray[Any], name: str) -> None:
    """Refuse types that NumPy turns into numbers of another meaning: dates, spans of time, complex numbers, records."""
    if column.dtype.kind not in "biufOUS":
        raise InvalidInput(f"{name} must be numbers; got an array of {column.dtype}")


def _filled(numbers: FloatArray, missing: NDArray[np.bool_], recode: Recode, what: str, before: int) -> FloatArray:
    """Return the numbers with missing ones replaced, or refuse the first missing one."""
    if recode.missing_as is None:
        row = int(np.argmax(missing.any(axis=1) if missing.ndim == 2 else missing))
        raise InvalidInput(
            f"the {what} in row {before + row + 1} is missing; say with `missing_as` which number it counts as"
            + (f", or {NO_ANSWER} for the mean among those who answered" if what == "value" else "")
        )
    return np.where(missing, float(recode.missing_as), numbers)  # type: ignore[arg-type]


def as_floats(column: NDArray[Any], name: str, before: int = 0) -> FloatArray:
    """Return a column as floats, NaN where an entry is missing (None, NaN or empty text).

    Refuse the first non-number.
    """
    if column.dtype.kind not in "OUS":
        _check_numbers(column, name)
        return np.asarray(column, dtype=np.float64)
    out = np.empty(len(column))
    for row, entry in enumerate(column.tolist()):
        number: float | None = None
        if isinstance(entry, str):
            number = text_number(entry)  # Python itself would read 1_000
        else:
            with suppress(TypeError, ValueError):
                number = np.nan if entry is None else float(entry)
        if number is None:
            way = (way_out(entry, ".", None) if isinstance(entry, str) else None) or "give every row a number"
            raise BadEntry(f"{name} in row {before + row + 1} is {VALUE}, not a number; {way}", entry, name)
        out[row] = number
    return out


def as_array(values: Any) -> NDArray[Any]:
    """Return any kind of column as an array with one entry per user."""
    try:
        return np.asarray(values)
    except ValueError:
        raise InvalidInput("a column must hold one entry per user; got rows of different lengths") from None


def _missing(label: object) -> bool:
    return label is None or (isinstance(label, float) and label != label)


def read_words(column: Any, before: int, recode: Recode) -> pl.Series:
    """Return the records as words in their normal form (`shuffledp.tables.canonical`), missing ones replaced.

    Parameters
    ----------
    column : sequence, array or polars Series, length n
        One entry per user.
    before : int
        Number of rows before these, for the row number in an error.
    recode : Recode
        `missing_as`: the word that replaces a missing record.

    Raises
    ------
    InvalidInput
        For the first record that is missing and not recoded, or that is no word but a container.
    """
    words = spelled(column)
    gone = words.is_null()
    if not gone.any():
        return words
    if recode.missing_as is None:
        raise InvalidInput(
            f"the record in row {before + int(gone.arg_max() or 0) + 1} is missing; name the item that such a record "
            "counts as with `missing_as`"
        )
    return words.fill_null(one_spelling(recode.missing_as))


def word_symbols(
    words: pl.Series, domain: WordItems, before: int = 0, *, cut: bool = False, other: Hashable | None = None
) -> NDArray[np.uint8] | NDArray[np.uint32]:
    """Return the symbols of words, shape (n, length), see `WordItems`.

    Parameters
    ----------
    words : polars Series of text, length n
        The words, none of them missing.
    domain : WordItems
        The possible words.
    before : int
        Number of rows before these, for the row number in an error.
    cut : bool
        Whether a longer word is cut after the largest number of characters.
    other : hashable, optional
        The word that replaces one outside the domain; None: it is refused.

    Raises
    ------
    InvalidInput
        For the first word that is too long, or has a character outside the alphabet, and is not mapped.
    """
    if cut:
        words = _shortened(words, domain)
    symbols, sizes = (_bytes if domain.alphabet == UTF8 else _letters)(words, domain)
    inside = np.arange(domain.length) < sizes[:, None]
    # 0 is the end of a word, so a character may not be read as it
    bad = (sizes > domain.length) | ((symbols == 0) & inside).any(axis=1) | (symbols >= domain.size).any(axis=1)
    if not bad.any():
        return symbols
    if other is None:
        row = int(np.argmax(bad))
        what = (
            f"is {VALUE}, longer than {domain.length} characters; allow a larger `max_length`, say `cut`, or name"
            if sizes[row] > domain.length
            else f"is {VALUE}, not a word of the alphabet {shown(domain.alphabet)}; name another `alphabet`, or"
        )
        raise BadEntry(
            f"the record in row {before + row + 1} {what} the item that such a record counts as with `other`",
            words[row],
        )
    import polars as pl

    symbols[bad] = word_symbols(pl.Series([one_spelling(other)], dtype=pl.String), domain)
    return symbols


def _shortened(words: pl.Series, domain: WordItems) -> pl.Series:
    if domain.alphabet != UTF8:
        return words.str.slice(0, domain.length).str.strip_chars_end()
    import polars as pl

    long = words.str.len_bytes() > domain.length
    short = [word.encode()[: domain.length].decode(errors="ignore").strip() for word in words.filter(long)]
    return words if not short else words.scatter(np.flatnonzero(long.to_numpy()), pl.Series(short, dtype=pl.String))


def _bytes(words: pl.Series, domain: WordItems) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    import polars as pl

    table = np.array(words.cast(pl.Binary).to_list(), dtype=f"S{domain.length}")
    return table.view(np.uint8).reshape(-1, domain.length), words.str.len_bytes().to_numpy().astype(np.int64)


def _letters(words: pl.Series, domain: WordItems) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    points = np.array(words.to_list(), dtype=f"U{domain.length}").view(np.uint32).reshape(-1, domain.length)
    alphabet = np.frombuffer(domain.characters.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    table = np.full(int(alphabet.max()) + 2, domain.size, dtype=np.uint32)
    table[alphabet], table[0] = np.arange(1, alphabet.size + 1), 0
    return table[np.minimum(points, alphabet.max() + 1)], words.str.len_chars().to_numpy().astype(np.int64)
