"""The people who take part: budgets are counted, and rows assigned to owners, before a record is read."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from shuffledp.budgets import Budgets, checked_levels, level_indices, rounded_down
from shuffledp.errors import MAX_EPSILON0, VALUE, BadEntry, InvalidInput, cut_at_commas, shown
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.randomness import Randomness, Words
from shuffledp.randomizers.vector import mix
from shuffledp.records.columns import as_labels, check_different, known_codes
from shuffledp.records.sources import Batch, Person, Source, as_in_table, in_order
from shuffledp.tables.options import one_spelling

_MERGE = 1 << 22
"""Number of different budgets gathered before they are merged; memory is a few times that."""


NOTHING = Batch({}, 0, 0)
"""A batch without rows, from which one budget for everybody can be read."""


@dataclass(frozen=True)
class RowBudgets:
    """The source of each row's budget: a constant, or a column of budgets or of words that stand for budgets.

    Parameters
    ----------
    epsilon0 : float or str
        One local budget for all (nats, 0 to 700), or the name of a column.
    consent : mapping of str to float, optional
        The budget of each word in that column, such as ``{"strict": 0.1, "open": 1.0}``; without it the column
        holds the budgets themselves.
    delta0 : float or str
        Local delta0 of everybody, in [0, 1), or the name of a column.
    missing : float, optional
        The budget (nats, 0 to 700) of a row whose budget is missing; 0 sends no information. None: such a row is
        refused. The budget must be missing for a reason that has nothing to do with the record.
    levels : int, optional
        Round each budget of the column down to one of at most this number of public values (21 to 2^20), see
        `shuffledp.budgets`. Certificate and reports use the rounded budgets, so nobody gets less privacy than
        promised. 4096 lowers a budget by at most 1/128 of it, and budgets below 2^-10 to 0.
    factor : float
        Factor of every budget of the column, above 0 and at most 1; a target finds it.

    Raises
    ------
    InvalidInput
        If `consent`, `missing` or `levels` is given without a column, `consent` is empty or given together with
        `levels`, `missing` is no budget, or `levels` is out of range.

    Examples
    --------
    >>> RowBudgets("consent", {"strict": 0.1, "open": 1.0}).texts
    ('consent',)
    """

    epsilon0: float | str
    consent: Mapping[str, float] | None = None
    delta0: float | str = 0.0
    missing: float | None = None
    levels: int | None = None
    factor: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.epsilon0, str | int | float | np.number):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(
                "epsilon0 must be one number, or the name of the column with each row's budget; got "
                f"{type(self.epsilon0).__name__}: put the budgets into a column of the table"
            )
        if self.missing is not None and not (
            isinstance(self.epsilon0, str) and 0.0 <= float(self.missing) <= MAX_EPSILON0
        ):
            raise InvalidInput(
                f"`missing_budget` must be a number of nats from 0 to {MAX_EPSILON0:g}, for a column of budgets; "
                f"got {shown(self.missing)} with epsilon0 = {shown(self.epsilon0)}"
            )
        if not 0.0 < self.factor <= 1.0:
            raise InvalidInput(f"`factor` lowers every budget, so it must lie in (0, 1]; got {shown(self.factor)}")
        if self.levels is not None:
            checked_levels(self.levels)
            if not isinstance(self.epsilon0, str) or self.consent is not None:
                raise InvalidInput(
                    "`levels` rounds a column of numbers down; leave it out for one budget of all, and for budgets "
                    "named by words"
                )
        if self.consent is None:
            return
        if not isinstance(self.epsilon0, str):
            raise InvalidInput(f"consent needs the name of a column as epsilon0; got {shown(self.epsilon0)}")
        if not self.consent:
            raise InvalidInput("consent names no word; say what each word of the column stands for, as strict: 0.1")
        check_different(tuple(self.consent), "word", "words of consent")

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of the columns that are read as numbers: budgets, and delta0."""
        own = self.epsilon0 if isinstance(self.epsilon0, str) and self.consent is None else None
        return tuple(column for column in (own, self.delta0) if isinstance(column, str))

    @property
    def texts(self) -> tuple[str, ...]:
        """Names of the columns of words that are needed."""
        return (self.epsilon0,) if isinstance(self.epsilon0, str) and self.consent is not None else ()

    @property
    def gaps(self) -> tuple[str, ...]:
        """Names of the columns whose missing entries this class replaces or refuses."""
        return (self.epsilon0,) if isinstance(self.epsilon0, str) else ()

    @as_in_table
    def epsilons(self, batch: Batch) -> FloatArray:
        """Return the local budgets (nats) of a batch, shape () or (rows,).

        Raises
        ------
        InvalidInput
            If an entry is no budget, or a word that `consent` does not explain; the message names the row.
        """
        if not isinstance(self.epsilon0, str):
            return np.asarray(self.epsilon0, dtype=np.float64)
        if self.consent is not None:
            return self._meant(batch) * self.factor
        return self._checked(batch.numbers(self.epsilon0), batch.before) * self.factor

    def explained(self, error: InvalidInput) -> InvalidInput:
        """Return the error; if it is about the column of budgets, with the advice to explain words by `consent`.

        Others unchanged.
        """
        if self.consent is not None or error.parameter != self.epsilon0:
            return error
        return error.and_then("; if words stand for budgets, say what each stands for with `consent`")

    @as_in_table
    def deltas(self, batch: Batch) -> FloatArray:
        """Return the local delta0 of a batch, shape () or (rows,)."""
        if isinstance(self.delta0, str):
            return batch.numbers(self.delta0)
        return np.asarray(self.delta0, dtype=np.float64)

    def _meant(self, batch: Batch) -> FloatArray:
        assert isinstance(self.epsilon0, str)
        assert self.consent is not None
        column = as_labels(batch.texts(self.epsilon0))
        codes = known_codes(column, tuple(self.consent))
        unknown = np.flatnonzero(codes < 0)
        meaning = [float(budget) for budget in self.consent.values()]
        if unknown.size == 0:
            return np.array(meaning)[codes]
        if self.missing is not None:
            absent = [one_spelling(column[int(row)]) is None for row in unknown]
            unknown = unknown[~np.array(absent)]
        if self.missing is None or unknown.size:
            raise self._unexplained(column, int(unknown[0]), batch.before)
        return np.array([*meaning, float(self.missing)])[codes]  # the last place is that of -1

    def _unexplained(self, column: Any, row: int, before: int) -> InvalidInput:
        where = f"{self.epsilon0} in row {before + row + 1}"
        if one_spelling(column[row]) is None:
            return InvalidInput(f"{where} is missing; say which budget such a row has, as `missing_budget = 0`")
        return BadEntry(
            f"{where} is {VALUE}, a word that `consent` does not explain; say there what it stands for",
            column[row],
        )

    def _checked(self, budgets: FloatArray, before: int) -> FloatArray:
        missing = np.isnan(budgets)
        if self.missing is not None and missing.any():
            budgets = np.where(missing, float(self.missing), budgets)
        bad = ~((budgets >= 0.0) & (budgets <= MAX_EPSILON0))
        if bad.any():
            row = int(np.argmax(bad))
            what = "missing" if np.isnan(budgets[row]) else f"{VALUE}, no budget"
            way = "; say which budget such a row has, as `missing_budget = 0`" if what == "missing" else ""
            raise BadEntry(
                f"{self.epsilon0} in row {before + row + 1} is {what}; a local budget is a number of nats from 0 to "
                f"{MAX_EPSILON0:g}{way}",
                budgets[row],
            )
        return budgets if self.levels is None else rounded_down(budgets, self.levels)


# The names of public groups, and which of them each row is in.

MOST_GROUPS = 1000


@dataclass(frozen=True)
class Groups:
    """Public groups, and the column that assigns each row to one of them.

    Parameters
    ----------
    column : str
        The column with each row's group; or several columns with a comma between them (quotes as in CSV), whose words
        together are the group.
    names : tuple of hashable
        Names of the groups, at least one, known beforehand; of several columns "word / word", one word a column.

    Raises
    ------
    InvalidInput
        If there is none, a name is given twice or has not one word a column, or there are more than 1,000.
    """

    column: str
    names: tuple[Hashable, ...]

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that `column` names."""
        return columns_of(self.column)

    @cached_property
    def words(self) -> tuple[tuple[Hashable, ...], ...]:
        """For each column the word of every group, in their order."""
        if len(self.columns) == 1:
            return (self.names,)
        split = [tuple(str(name).split(CROSSED)) for name in self.names]
        for name, parts in zip(self.names, split, strict=True):
            if len(parts) != len(self.columns) or not all(parts):
                raise InvalidInput(
                    f"a group by {self.column} has one word a column, as in {CROSSED.join(self.columns)}; got "
                    f"{shown(name)}"
                )
        return tuple(zip(*split, strict=True))

    def __post_init__(self) -> None:
        if not 1 <= len(self.names) <= MOST_GROUPS or len(set(self.names)) < len(self.names):
            raise InvalidInput(
                f"`groups` must name 1 to {MOST_GROUPS:,} different groups, known beforehand; got "
                f"{len(self.names)}, of which {len(set(self.names))} differ"
            )
        check_different(self.names, "group", "groups")
        for words in self.words if len(self.columns) > 1 else ():
            check_different(tuple(dict.fromkeys(words)), "group", "groups")

    @as_in_table
    def codes(self, batch: Batch) -> NDArray[np.int64]:
        """Return the index of each row's group, shape (rows,).

        Raises
        ------
        InvalidInput
            If a row belongs to none of them.
        """
        whole, named = np.zeros(batch.rows, dtype=np.int64), np.zeros(len(self.names), dtype=np.int64)
        for column, words in zip(self.columns, self.words, strict=True):
            places = {word: place for place, word in enumerate(dict.fromkeys(words))}
            labels = as_labels(batch.texts(column))
            codes = known_codes(labels, tuple(places))
            if not (codes >= 0).all():
                row = int(np.argmin(codes))
                self._refuse(batch.before + row, column, labels[row])
            whole = whole * len(places) + codes
            named = named * len(places) + np.array([places[word] for word in words])
        order = np.argsort(named)
        indices = order[np.minimum(np.searchsorted(named, whole, sorter=order), order.size - 1)]
        if not (named[indices] == whole).all():  # each word is known, but not together
            row = int(np.argmin(named[indices] == whole))
            parts = [str(one_spelling(as_labels(batch.texts(column))[row])) for column in self.columns]
            self._refuse(batch.before + row, self.column, CROSSED.join(parts))
        return indices

    def _refuse(self, row: int, column: str, label: Any) -> NoReturn:
        what = "is missing" if one_spelling(label) is None else f"is {VALUE}, none of the groups"
        raise BadEntry(
            f"{column} in row {row + 1} {what}; a person's group is public: give every row one of those that `groups` "
            "names, or name this one too",
            label,
        )


CROSSED = " / "
"""Stands between the words of a group by several columns."""
MOST_CROSSED = 4
"""By so many columns groups are told apart at most: more would leave hardly anybody in one."""


def columns_of(by: str) -> tuple[str, ...]:
    """Return the columns that `by` names, with a comma between them (quotes as in CSV).

    Raises
    ------
    InvalidInput
        If a name is missing, or one is there twice.
    """
    if "," not in by:
        return (by,)
    names = cut_at_commas(by)
    if not names or not all(names) or len(set(names)) < len(names) or len(names) > MOST_CROSSED:
        raise InvalidInput(
            f"`by` names a column, or up to {MOST_CROSSED} different ones with a comma between them; got {shown(by)}"
        )
    return names


# Whose row is it: people with several rows are counted, and refused, grouped, or represented by one row each.
#
# A person is known by the word in the person column (`shuffledp.tables.options`), and of each word a key of 64 bits
# is kept, so that memory does not hang on how long names are. Rows of one word always have one key. Two words with one
# key, which n people meet with a chance of n^2 2^-65, are taken as one person: never too many people, never too few
# rows of one.

RowsPerPerson = int | Literal["refuse", "one"]


@dataclass(frozen=True)
class Owned:
    """The number of owners of the rows, and which rows are used.

    Parameters
    ----------
    people : int
        Number of different owners.
    group_size : int
        Largest number of used rows of one owner, as the caller stated it.
    used : ndarray of bool, shape (rows,), optional
        Which rows are used; None: all.
    """

    people: int
    group_size: int
    used: NDArray[np.bool_] | None


class Owners:
    """A count of the rows of each person, from one pass over the person column alone.

    Parameters
    ----------
    person : Person
        The person column.
    rows_per_person : {"refuse", "one"} or int
        "refuse": people with several rows are an error, which states their number. "one": one row of each is used,
        chosen by `random` without looking at any other column. A number K: every row is used, an owner of more than K
        rows is an error, and the guarantee must be for groups of K rows.
    random : Randomness
        Source of the choice for "one".

    Raises
    ------
    InvalidInput
        If `rows_per_person` is none of these.
    """

    def __init__(self, person: Person, rows_per_person: RowsPerPerson, random: Randomness) -> None:
        self.person = person
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

    def add(self, batch: Batch, epsilons: FloatArray, deltas: FloatArray) -> None:
        """Add the person column of further rows.

        Parameters
        ----------
        batch : Batch
            The rows, with the person column.
        epsilons, deltas : ndarray, shape () or (rows,)
            The budget of each row.

        Raises
        ------
        InvalidInput
            If an entry is empty, and such rows are refused.
        """
        people = self.person.keys(batch)
        self._people.append(people)
        self._marks.append(row_marks(people, epsilons, deltas))
        if self.chooses:
            self._draws.append(self._random.words(people.size))

    def settle(self) -> Owned:
        """Apply the rule to all rows that were added, and return the number of owners and the rows to use.

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
        """Refuse people whose rows have several budgets, for whom nothing is proved (docs/theorems/situations.md).

        Raises
        ------
        InvalidInput
            If the rows of a person have more than one budget.
        """
        people, each = _different(np.concatenate(self._people), np.concatenate(self._marks))
        several = int((each > 1).sum())
        if several:
            way_out = ", or use one row of each person with `rows_per_person = 'one'`"
            raise InvalidInput(several_budgets(several, people) + way_out)

    def per_group(self, codes: NDArray[np.int64], groups: int) -> list[int]:
        """Return the number of people in each group of rows.

        Parameters
        ----------
        codes : ndarray of int64, shape (rows,)
            Index of each row's group.
        groups : int
            Number of groups.

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
        """Return the sum, modulo 2^64, of the marks of the used rows, see `row_marks`."""
        marks = np.concatenate(self._marks)
        return int(np.sum(marks if used is None else marks[used]))

    def _chosen(self, people: Words) -> Owned:
        """Return the choice of one row of each person: the row whose random key is smallest.

        Equal keys (probability n^2 2^-65) are ordered by position.
        """
        order = np.lexsort((np.concatenate(self._draws), people))
        chosen = order[_starts(people[order])]
        used = np.zeros(people.size, dtype=np.bool_)
        used[chosen] = True
        return Owned(chosen.size, 1, used)


def row_marks(people: Words, epsilons: FloatArray, deltas: FloatArray) -> Words:
    """Return a mark of each row, a 64-bit hash of its person and budget; a sum of marks identifies a table.

    Parameters
    ----------
    people : ndarray of uint64, shape (n,)
        From `Person.keys`.
    epsilons, deltas : ndarray, shape () or (n,)
        The budget of each row.
    """
    marks = mix(people)
    for column in (epsilons, deltas):
        marks = mix(marks ^ np.broadcast_to(column + 0.0, marks.shape).view(np.uint64))  # + 0: a zero has no sign
    return marks


def _starts(ascending: Words) -> NDArray[np.int64]:
    """Return the indices at which runs of equal keys begin."""
    first = np.ones(ascending.size, dtype=np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=first[1:])
    return np.flatnonzero(first)


def _runs(ascending: Words) -> NDArray[np.int64]:
    """Return the lengths of the runs of equal keys."""
    return np.diff(_starts(ascending), append=ascending.size)


def _different(people: Words, things: NDArray[Any]) -> tuple[int, NDArray[np.int64]]:
    """Return the number of people, and the number of different values among the rows of each."""
    order = np.lexsort((things, people))
    people, things = people[order], things[order]
    starts = _starts(people)
    new = np.ones(people.size, dtype=np.int64)
    new[1:] = (people[1:] != people[:-1]) | (things[1:] != things[:-1])
    return starts.size, np.add.reduceat(new, starts) if starts.size else new


def several_budgets(several: int, people: int) -> str:
    """Return words for the number of people with rows of several budgets, and for what would resolve it.

    Parameters
    ----------
    several, people : int
        Number of such people, and of all people.
    """
    return (
        f"{several:,} of {people:,} people have rows of different budgets, and a guarantee for rows of one budget is "
        "none for them; give all rows of a person one budget, such as the smallest"
    )


def several_rows(above: int, people: int, largest: int, most: int) -> str:
    """Return words for the number of people who own more rows than the rule allows, and for what would allow them.

    Parameters
    ----------
    above, people : int
        Number of people who own too many rows, and of all people.
    largest, most : int
        Number of rows of one person: the largest found, and the largest allowed.
    """
    verb = "owns" if above == 1 else "own"
    several = "several rows" if most == 1 else f"more than {most} rows"
    return (
        f"{above:,} of {people:,} people {verb} {several} (one owns {largest:,}), so a guarantee for one row would not "
        f"be one for a person; say `rows_per_person = {largest}` to protect groups of that many rows"
    )


def checked_rule(rows_per_person: object) -> RowsPerPerson:
    """Return the rule for people with several rows, after checking it; a number may be given as a text.

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


# Who takes part: the first pass.


@dataclass(frozen=True)
class Headcount:
    """The people who take part, as counted before a record is read.

    Parameters
    ----------
    who : RowBudgets
        Where budgets come from.
    population : Budgets
        The budgets of the used rows, counted.
    rows : int
        Number of rows of the data.
    n : int
        Number of people: owners where there is a person column, else rows.
    group_size : int
        Largest number of rows of one person: the guarantee is for groups of that many rows.
    used : ndarray of bool, shape (rows,), optional
        Which rows are used; None: all of them.
    person : Person, optional
        The column with the owner of each row, which is read again with the records.
    mark : int
        Sum of the marks of the used rows, see `row_marks`.
    group : tuple of Groups and int, optional
        The groups, and the index of the group that these people are.
    """

    who: RowBudgets
    population: Budgets
    rows: int
    n: int
    group_size: int = 1
    used: NDArray[np.bool_] | None = None
    person: Person | None = None
    mark: int = 0
    group: tuple[Groups, int] | None = None

    @property
    def identifying(self) -> tuple[str, ...]:
        """Names of the columns of words with each row's owner and group."""
        person, group = self.person, self.group
        return (*((person.column,) if person else ()), *(group[0].columns if group else ()))

    def used_of(self, batch: Batch) -> NDArray[np.bool_] | None:
        """Return which rows of a batch are used, shape (rows,); None: all of them."""
        return None if self.used is None else self.used[batch.before : batch.before + batch.rows]

    def levels(self, batch: Batch) -> NDArray[np.int64] | None:
        """Return the level of each used row of a batch, shape (used rows,); None where there is a single level.

        Raises
        ------
        InvalidInput
            If a row has a budget that did not occur when the budgets were counted.
        """
        if not (self.who.numbers or self.who.texts):
            return None
        epsilons, deltas, used = self.who.epsilons(batch), self.who.deltas(batch), self.used_of(batch)
        size = batch.rows
        if used is not None:
            epsilons, deltas = (np.broadcast_to(each, (size,))[used] for each in (epsilons, deltas))
            size = int(used.sum())
            if not size:
                return None if self.population.levels == 1 else np.zeros(0, dtype=np.int64)
        try:
            places = level_indices(self.population, epsilons, deltas)
        except InvalidInput:
            raise InvalidInput(
                "a budget was not there when the budgets were counted; leave the table unchanged until the command ends"
            ) from None
        return None if self.population.levels == 1 else np.broadcast_to(places, (size,))


def count_people(
    source: Source, who: RowBudgets, person: Person | None, rule: RowsPerPerson, random: Randomness
) -> Headcount:
    """Count the budgets, and the rows of each person, in a first pass, which reads no record.

    Parameters
    ----------
    source : Source
        The data.
    who : RowBudgets
        Where the budget of each row comes from.
    person : Person, optional
        The column with the owner of each row; None: each row is taken as a person.
    rule : {"refuse", "one"} or int
        Rule for people with several rows, see `Owners`.
    random : Randomness
        Source of the choice of one row of each person, with "one".

    Raises
    ------
    InvalidInput
        On a budget that is not allowed, an empty person cell, or a person with more rows than allowed.
    """
    counted = BudgetCounter()
    person_columns, missing = ((), ()) if person is None else ((person.column,), person.gaps)
    wanted = {"numbers": who.numbers, "texts": (*who.texts, *person_columns), "gaps": (*who.gaps, *missing)}
    if not (who.numbers or who.texts or person):
        counted.add(counted_part(who.epsilons(NOTHING), who.deltas(NOTHING), source.count()))
        return _everybody(who, counted)
    batches = explained(source.batches(**wanted), who)
    if person is None:
        for part in in_order(lambda batch: counted_part(who.epsilons(batch), who.deltas(batch), batch.rows), batches):
            counted.add(part)
        return _everybody(who, counted)
    owners, rows = Owners(person, rule, random), 0
    kept: list[tuple[FloatArray, FloatArray]] = []  # the budgets of all rows, until it is known which are used
    for batch in batches:
        epsilons, deltas = who.epsilons(batch), who.deltas(batch)
        owners.add(batch, epsilons, deltas)
        if owners.chooses:
            kept.append((np.broadcast_to(epsilons, (batch.rows,)), np.broadcast_to(deltas, (batch.rows,))))
        if not owners.chooses:
            counted.add(counted_part(epsilons, deltas, batch.rows))
        rows += batch.rows
    owned = owners.settle()
    if owners.groups:
        owners.one_budget()
    if owned.used is not None:
        before = 0
        for epsilons, deltas in kept:
            part = owned.used[before : before + epsilons.size]
            counted.add(counted_part(epsilons[part], deltas[part], int(part.sum())))
            before += epsilons.size
    mark = owners.mark(owned.used)
    return Headcount(who, counted.budgets(), rows, owned.people, owned.group_size, owned.used, person, mark)


def explained(batches: Iterator[Batch], who: RowBudgets) -> Iterator[Batch]:
    """Yield the batches; an error about the column of budgets gets advice on words, see `RowBudgets.explained`."""
    try:
        yield from batches
    except InvalidInput as error:
        raise who.explained(error) from None


def _everybody(who: RowBudgets, counted: BudgetCounter) -> Headcount:
    """Return the headcount for which every row is used and taken as a person."""
    population = counted.budgets()
    return Headcount(who, population, population.n, population.n)


def counted_part(epsilons: FloatArray, deltas: FloatArray, rows: int) -> Budgets | None:
    """Return the budgets of ``rows`` rows (arrays of shape () or (rows,)), counted; None without a row."""
    if rows == 0:
        return None
    if epsilons.ndim == 0 and deltas.ndim == 0:
        return Budgets([float(epsilons)], [rows], [float(deltas)])
    return Budgets.of(np.broadcast_to(epsilons, (rows,)), deltas if deltas.ndim or float(deltas) else None)


class BudgetCounter:
    """Counts of each pair (epsilon0, delta0), merged from time to time to limit memory."""

    def __init__(self) -> None:
        self._pending = 0
        self._parts: list[Budgets] = []

    def add(self, part: Budgets | None) -> None:
        """Add budgets that `counted_part` has counted."""
        if part is None:
            return
        self._parts.append(part)
        self._pending += part.levels
        if self._pending > _MERGE:
            self._parts = [self.budgets()]
            self._pending = 0

    def budgets(self) -> Budgets:
        """Return the budgets of all rows that were added."""
        if len(self._parts) == 1:
            return self._parts[0]
        return Budgets(
            np.concatenate([part.epsilons for part in self._parts]),
            np.concatenate([part.counts for part in self._parts]),
            np.concatenate([part.deltas for part in self._parts]),
        )
