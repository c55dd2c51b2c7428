"""Whose row is it: the word in the person column, and a key of 64 bits for each person."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.randomness import Words
from shuffledp.randomizers.vector import mix
from shuffledp.records.sources import Batch
from shuffledp.tables.spelling import MISSING, spelled

_SEED = secrets.randbits(64)
"""Of the keys of persons, which live as long as this process."""


MissingPerson = Literal["refuse", "own"]


@dataclass(frozen=True)
class Person:
    """The column that tells whose row it is.

    Parameters
    ----------
    column : str
        Its name; its entries are compared as words, see `shuffledp.tables.spelling`.
    missing : {"refuse", "own"}
        A row without an entry is refused, or is the only row of a person of its own. The second is true only if
        different such rows are of different people, who have no other row; nothing can check that.
    """

    column: str
    missing: MissingPerson = "refuse"

    @property
    def gaps(self) -> tuple[str, ...]:
        """The column, if its entries may be missing."""
        return (self.column,) if self.missing == "own" else ()

    def keys(self, batch: Batch) -> Words:
        """Return a key of 64 bits for each row's person, shape (rows,).

        Raises
        ------
        InvalidInput
            If an entry is missing, and such rows are refused.
        """
        entries = batch.texts(self.column)
        if self.missing == "refuse":
            return person_words(entries, self.column, batch.before).hash(_SEED).to_numpy()
        words = spelled(entries)
        places = np.arange(batch.before, batch.before + batch.rows, dtype=np.uint64)
        own = mix(places ^ np.uint64(_SEED))  # the same in both passes, as the place of a row is
        return np.where(unnamed(words).to_numpy(), own, words.hash(_SEED).to_numpy())


def person_words(names: Any, column: str, before: int = 0) -> pl.Series:
    """Return whose row each is, as words in their one spelling.

    Parameters
    ----------
    names : sequence, array or polars Series, length n
        As they are in the table.
    column : str
        The person column, for the message.
    before : int
        Rows that came before these.

    Raises
    ------
    InvalidInput
        If an entry is empty, or a word for nothing.
    """
    words = spelled(names)
    empty = unnamed(words)
    if empty.any():  # taken as one person, whoever owns such a row would have reports that nobody counts
        row = int(empty.arg_max() or 0)
        entry, several = words[row], f" ({int(empty.sum())} such rows in all)" if int(empty.sum()) > 1 else ""
        what = shown(entry) if entry else "empty"
        raise InvalidInput(
            f"{column} in row {before + row + 1} is {what}, so nobody knows whose row it is; "
            f"give every row its person{several}"
        )
    return words


def unnamed(words: pl.Series) -> pl.Series:
    """Return of each entry of a person column, in its one spelling, whether it names nobody."""
    return (words.is_null() | words.str.to_lowercase().is_in(MISSING)).fill_null(True)
