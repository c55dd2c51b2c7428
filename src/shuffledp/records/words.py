"""Records as words: one spelling each, and the symbols of its characters."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import VALUE, BadEntry, InvalidInput, shown
from shuffledp.randomizers.item_domain import UTF8, WordItems
from shuffledp.records.columns import Recode
from shuffledp.tables.spelling import one_spelling, spelled

if TYPE_CHECKING:
    import polars as pl


def read_words(column: Any, before: int, recode: Recode) -> pl.Series:
    """Return the records as words, a missing one as the word it counts as.

    Parameters
    ----------
    column : sequence, array or polars Series, length n
        One entry per user.
    before : int
        Rows that came before these, for the row in the error.
    recode : Recode
        `missing_as`: the word that a missing record counts as.

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
        None of them missing.
    domain : WordItems
        The words that there are.
    before : int
        Rows that came before these, for the row in the error.
    cut : bool
        Whether a longer word is cut after the most characters there may be.
    other : hashable, optional
        The word that one outside the domain counts as; None: it is refused.

    Raises
    ------
    InvalidInput
        For the first word that is too long, or has a character outside the alphabet, and is not mapped.
    """
    if cut:
        words = _shortened(words, domain)
    symbols, sizes = (_bytes if domain.alphabet == UTF8 else _places)(words, domain)
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
            else f"is {VALUE}, with a character outside {shown(domain.alphabet)}; name another `alphabet`, or"
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


def _places(words: pl.Series, domain: WordItems) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    points = np.array(words.to_list(), dtype=f"U{domain.length}").view(np.uint32).reshape(-1, domain.length)
    known = np.frombuffer(domain.characters.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    table = np.full(int(known.max()) + 2, domain.size, dtype=np.uint32)
    table[known], table[0] = np.arange(1, known.size + 1), 0
    return table[np.minimum(points, known.max() + 1)], words.str.len_chars().to_numpy().astype(np.int64)
