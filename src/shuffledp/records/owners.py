"""Whose row is it: people with several rows are counted, and refused, grouped, or represented by one row each.

A person is known by the word in the person column (`shuffledp.tables.spelling`), and of each word a key of 64 bits is
kept, so that memory does not hang on how long names are. Rows of one word always have one key. Two words with one key,
which n people meet with a chance of n^2 2^-65, are taken as one person: never too many people, never too few rows of
one.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness, Words
from shuffledp.randomizers.vector import mix
from shuffledp.tables.spelling import MISSING, spelled

if TYPE_CHECKING:
    import polars as pl


_SEED = secrets.randbits(64)
"""Of the keys of persons, which live as long as this process."""


RowsPerPerson = int | Literal["refuse", "one"]


@dataclass(frozen=True)
class Owned:
    """What the rows say about people.

    Parameters
    ----------
    people : int
        Different owners.
    group_size : int
        Most rows of one owner that are used, as the caller stated it.
    used : ndarray of bool, shape (rows,), optional
        Which rows are used; None: all.
    """

    people: int
    group_size: int
    used: NDArray[np.bool_] | None


class Owners:
    """Counts the rows of each person, in one pass over the person column alone.

    Parameters
    ----------
    column : str
        The person column; its entries are compared as words, see `shuffledp.tables.spelling`.
    rows_per_person : {"refuse", "one"} or int
        "refuse": people with several rows are an error, which says how many they are. "one": one row of each is used,
        chosen by `random` without looking at any other column. A number K: every row is used, whoever owns more than K
        is an error, and the guarantee must be for groups of K rows.
    random : Randomness
        For "one".

    Raises
    ------
    InvalidInput
        If `rows_per_person` is none of these.
    """

    def __init__(self, column: str, rows_per_person: RowsPerPerson, random: Randomness) -> None:
        self.column = column
        self.rule = checked_rule(rows_per_person)
        self._random = random
        self._people: list[Words] = []
        self._marks: list[Words] = []
        self._draws: list[Words] = []

    @property
    def chooses(self) -> bool:
        """Whether one row of each person is used."""
        return self.rule == "one"

    @property
    def groups(self) -> bool:
        """Whether a person may have several rows that are all used."""
        return self.rule not in ("one", "refuse", 1)

    def add(self, names: Any, before: int, epsilons: FloatArray, deltas: FloatArray) -> None:
        """Take the person column of more rows.

        Parameters
        ----------
        names : sequence, array or polars Series
            Whose row each is.
        before : int
            Rows that came before these.
        epsilons, deltas : ndarray, shape () or (rows,)
            The budget of each row.

        Raises
        ------
        InvalidInput
            If an entry is empty.
        """
        people = person_keys(names, self.column, before)
        self._people.append(people)
        self._marks.append(row_marks(people, epsilons, deltas))
        if self.chooses:
            self._draws.append(self._random.words(people.size))

    def settle(self) -> Owned:
        """Apply the rule to all rows taken.

        Raises
        ------
        InvalidInput
            If a person owns more rows than the rule allows.
        """
        people = np.concatenate(self._people)
        if self.chooses:
            return self._chosen(people)
        people.sort()
        counts = _runs(people)
        most = 1 if self.rule == "refuse" else int(self.rule)
        if most > people.size:
            raise InvalidInput(f"`rows_per_person` must be at most the {people.size:,} rows there are; got {most}")
        above, largest = int((counts > most).sum()), int(counts.max(initial=0))
        if above:
            way_out = ", or `rows_per_person = 'one'` to use one row of each person, chosen at random"
            raise InvalidInput(several_rows(above, counts.size, largest, most) + way_out)
        return Owned(counts.size, most, None)

    def one_budget(self) -> None:
        """Refuse people whose rows have several budgets: nothing is proved for them (docs/theorems/situations.md).

        Raises
        ------
        InvalidInput
            If somebody's rows have more than one.
        """
        people, each = _different(np.concatenate(self._people), np.concatenate(self._marks))
        several = int((each > 1).sum())
        if several:
            way_out = ", or use one row of each person with `rows_per_person = 'one'`"
            raise InvalidInput(several_budgets(several, people) + way_out)

    def per_group(self, codes: NDArray[np.int64], groups: int) -> list[int]:
        """Count the people of each group of rows.

        Parameters
        ----------
        codes : ndarray of int64, shape (rows,)
            Each row's group.
        groups : int
            How many there are.

        Raises
        ------
        InvalidInput
            If a person has rows in several groups.
        """
        people = np.concatenate(self._people)
        count, each = _different(people, codes)
        several = int(each.sum()) - count
        if several:
            raise InvalidInput(
                f"people have rows in several groups ({several:,} times), so what one group costs is not all that a "
                "person spends; use one row of each with `rows_per_person = 'one'`, or group by what a person keeps"
            )
        return [np.unique(people[codes == place]).size for place in range(groups)]

    def mark(self, used: NDArray[np.bool_] | None = None) -> int:
        """Return what the marks of the rows that are used add up to, modulo 2^64, see `row_marks`."""
        marks = np.concatenate(self._marks)
        return int(np.sum(marks if used is None else marks[used]))

    def _chosen(self, people: Words) -> Owned:
        """Use the row of each person whose random key is smallest; equal keys (chance n^2 2^-65) go by place."""
        order = np.lexsort((np.concatenate(self._draws), people))
        chosen = order[_starts(people[order])]
        used = np.zeros(people.size, dtype=np.bool_)
        used[chosen] = True
        return Owned(chosen.size, 1, used)


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
    empty = (words.is_null() | words.str.to_lowercase().is_in(MISSING)).fill_null(True)
    if empty.any():  # taken as one person, whoever owns such a row would have reports that nobody counts
        row = int(empty.arg_max() or 0)
        entry, several = words[row], f" ({int(empty.sum())} such rows in all)" if int(empty.sum()) > 1 else ""
        what = shown(entry) if entry else "empty"
        raise InvalidInput(
            f"{column} in row {before + row + 1} is {what}, so nobody knows whose row it is; "
            f"give every row its person{several}"
        )
    return words


def person_keys(names: Any, column: str, before: int) -> Words:
    """Return a key of 64 bits for each row's person, see `person_words`."""
    return person_words(names, column, before).hash(_SEED).to_numpy()


def row_marks(people: Words, epsilons: FloatArray, deltas: FloatArray) -> Words:
    """Return a mark of each row, a word of 64 bits of its person and budget; their sum tells tables apart.

    Parameters
    ----------
    people : ndarray of uint64, shape (n,)
        From `person_keys`.
    epsilons, deltas : ndarray, shape () or (n,)
        The budget of each row.
    """
    marks = mix(people)
    for column in (epsilons, deltas):
        marks = mix(marks ^ np.broadcast_to(column + 0.0, marks.shape).view(np.uint64))  # + 0: a zero has no sign
    return marks


def _starts(ascending: Words) -> NDArray[np.int64]:
    """Return where runs of equal keys begin."""
    first = np.ones(ascending.size, dtype=np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=first[1:])
    return np.flatnonzero(first)


def _runs(ascending: Words) -> NDArray[np.int64]:
    """Return how long the runs of equal keys are."""
    return np.diff(_starts(ascending), append=ascending.size)


def _different(people: Words, things: NDArray[Any]) -> tuple[int, NDArray[np.int64]]:
    """Return how many people there are, and how many different things the rows of each have."""
    order = np.lexsort((things, people))
    people, things = people[order], things[order]
    starts = _starts(people)
    new = np.ones(people.size, dtype=np.int64)
    new[1:] = (people[1:] != people[:-1]) | (things[1:] != things[:-1])
    return starts.size, np.add.reduceat(new, starts) if starts.size else new


def several_budgets(several: int, people: int) -> str:
    """Say how many people have rows of several budgets, and what would do.

    Parameters
    ----------
    several, people : int
        How many of them, and how many people there are.
    """
    return (
        f"{several:,} of {people:,} people have rows of different budgets, and a guarantee for rows of one budget is "
        "none for them; give all rows of a person one budget, such as the smallest"
    )


def several_rows(above: int, people: int, largest: int, most: int) -> str:
    """Say how many people own more rows than the rule allows, and what would allow them.

    Parameters
    ----------
    above, people : int
        How many own too many rows, and how many people there are.
    largest, most : int
        Rows of one person: the most there are, and the most that the rule allows.
    """
    verb = "owns" if above == 1 else "own"
    several = "several rows" if most == 1 else f"more than {most} rows"
    return (
        f"{above:,} of {people:,} people {verb} {several} (one owns {largest:,}), so a guarantee for one row would not "
        f"be one for a person; say `rows_per_person = {largest}` to protect groups of that many rows"
    )


def checked_rule(rows_per_person: object) -> RowsPerPerson:
    """Read what happens to people with several rows.

    Raises
    ------
    InvalidInput
        If it is neither "refuse" nor "one" nor a whole number of at least 1.
    """
    if rows_per_person in ("refuse", "one"):
        return rows_per_person  # type: ignore[return-value]
    text = str(rows_per_person)
    if not isinstance(rows_per_person, bool) and text.isascii() and text.isdigit() and int(text) >= 1:
        return int(text)
    raise InvalidInput(
        f"`rows_per_person` must be 'refuse', 'one' or a whole number of at least 1; got {shown(rows_per_person)}"
    )
