"""Engines, which count the people and tally their reports batch by batch: in this process, or on many machines."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput, named
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.randomness import Randomness, Words
from shuffledp.progress import Progress
from shuffledp.questions.question import Question, Task
from shuffledp.questions.tally import Tally, tally_for
from shuffledp.randomizers.vector import mix
from shuffledp.records.columns import Recode
from shuffledp.records.people import (
    BudgetCounter,
    Groups,
    Headcount,
    Owners,
    RowBudgets,
    RowsPerPerson,
    count_people,
    counted_part,
    explained,
    row_marks,
)
from shuffledp.records.sources import (
    Arrays,
    Batch,
    Person,
    Rows,
    Selected,
    Source,
    Where,
    as_in_table,
    watched,
    workers,
)
from shuffledp.setting import Guarantee

# What was drawn is what was certified: who the reports are from, and at which levels, is counted as they are drawn.
#
# A table is read twice, and may be another one the second time. A guarantee is for the budgets and the people that were
# counted in the first pass, whatever is seen of the reports, so the second pass counts them once more, and nothing
# leaves unless both agree.

MOST_LEVELS = 4096
"""Largest number of levels whose rows are counted one by one; beyond it a single checksum is compared."""


def expected_levels(budgets: Budgets) -> Words:
    """Return the sum of `level_counts` over all rows of a population."""
    return _folded(budgets.counts.astype(np.uint64))


def level_counts(budgets: Budgets, at: NDArray[np.int64] | None, rows: int) -> Words:
    """Return the number of rows of each level or, for more than 4,096 levels, one sum of hashes that stands for it.

    The sum is over the rows, of a 64-bit hash of each row's level, modulo 2^64.

    Parameters
    ----------
    budgets : Budgets
        The population.
    at : ndarray of int64, shape (rows,), optional
        Level of each row; None if there is only one level.
    rows : int
        Number of rows.
    """
    if at is None:
        return np.array([rows], dtype=np.uint64)
    if budgets.levels <= MOST_LEVELS:
        return np.bincount(at, minlength=budgets.levels).astype(np.uint64)
    return np.array([np.sum(mix(at.astype(np.uint64) + np.uint64(1)))], dtype=np.uint64)


def _folded(counts: Words) -> Words:
    if counts.size <= MOST_LEVELS:
        return counts
    keys = mix(np.arange(1, counts.size + 1, dtype=np.uint64))
    return np.array([np.sum(keys * counts)], dtype=np.uint64)


class RowIdentities:
    """The persons and groups of a batch's rows, computed once for any number of groups.

    Parameters
    ----------
    batch : Batch
        The rows.
    """

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self._keys: dict[Person, Words] = {}
        self._codes: dict[int, NDArray[np.int64]] = {}

    def keys(self, person: Person) -> Words:
        """Return the key of each row's person, shape (rows,); see `Person.keys`."""
        if person not in self._keys:
            self._keys[person] = person.keys(self.batch)
        return self._keys[person]

    def codes(self, groups: Groups) -> NDArray[np.int64]:
        """Return the index of each row's group, shape (rows,)."""
        if id(groups) not in self._codes:
            self._codes[id(groups)] = groups.codes(self.batch)
        return self._codes[id(groups)]


class Drawn:
    """A record of whose reports were drawn so far, to compare with the people that a certificate covers.

    Parameters
    ----------
    people : Headcount
        The people as counted before any record was read.
    """

    def __init__(self, people: Headcount) -> None:
        self._people = people
        self._levels = np.zeros_like(expected_levels(people.population))
        self._mark = 0
        self._moved = False

    def add(self, identities: RowIdentities, levels: NDArray[np.int64] | None, used: NDArray[np.bool_] | None) -> None:
        """Add the used rows of a batch.

        Parameters
        ----------
        identities : RowIdentities
            The rows.
        levels : ndarray of int64, shape (used rows,), optional
            From `Headcount.levels`.
        used : ndarray of bool, shape (rows,), optional
            From `Headcount.used_of`.

        Raises
        ------
        InvalidInput
            If a row has no person, or is in no group.
        """
        people, rows = self._people, identities.batch.rows if used is None else int(used.sum())
        if rows == 0:
            return
        self._levels = self._levels + level_counts(people.population, levels, rows)
        chosen = slice(None) if used is None else used
        if people.group is not None:
            groups, place = people.group
            self._moved |= bool((identities.codes(groups)[chosen] != place).any())
        if people.person is not None:
            at = 0 if levels is None else levels
            budgets = people.population
            marks = row_marks(identities.keys(people.person)[chosen], budgets.epsilons[at], budgets.deltas[at])
            self._mark = (self._mark + int(np.sum(marks))) % 2**64

    def merge(self, other: Drawn) -> None:
        """Add what another thread or machine has drawn from the same people."""
        self._levels = self._levels + other._levels
        self._mark = (self._mark + other._mark) % 2**64
        self._moved |= other._moved

    def check(self, name: str) -> None:
        """Refuse unless the drawn reports are those of the people that were counted.

        Parameters
        ----------
        name : str
            Name of the table in the message.

        Raises
        ------
        InvalidInput
            If levels, groups, or persons with their budgets differ.
        """
        same = np.array_equal(self._levels, expected_levels(self._people.population)) and not self._moved
        if not same or self._mark != self._people.mark:
            raise changed(name)


def changed(name: str) -> InvalidInput:
    """Return the error for a table that changed between counting its people and reading its records."""
    return InvalidInput(
        f"{name} had other people or budgets when its records were read than when they were counted, so nothing is "
        "released; leave it unchanged until the command ends"
    )


# Who takes part in each of several public groups.


def count_groups(
    source: Source,
    who: RowBudgets,
    person: Person | None,
    rule: RowsPerPerson,
    random: Randomness,
    groups: Groups,
) -> list[Headcount]:
    """Count each group's budgets and people in a first pass, which reads no record.

    Parameters
    ----------
    source, who, person, rule, random
        As for `count_people`.
    groups : Groups
        The groups.

    Returns
    -------
    list of Headcount
        One for each group, in order; no person is in two groups.

    Raises
    ------
    InvalidInput
        As for `count_people`; if a group is empty, or a person has rows in several.
    """
    owners = None if person is None else Owners(person, rule, random)
    person_columns, missing = ((), ()) if person is None else ((person.column,), person.gaps)
    texts = (*who.texts, *groups.columns, *person_columns)
    codes: list[NDArray[np.int64]] = []
    budgets: list[tuple[FloatArray, FloatArray]] = []
    # a missing group is refused here, with a line of its own
    gaps = (*who.gaps, *groups.columns, *missing)
    for batch in explained(source.batches(numbers=who.numbers, texts=tuple(dict.fromkeys(texts)), gaps=gaps), who):
        shape = (batch.rows,)
        budgets.append((np.broadcast_to(who.epsilons(batch), shape), np.broadcast_to(who.deltas(batch), shape)))
        codes.append(groups.codes(batch))
        if owners is not None:
            owners.add(batch, *budgets[-1])
    whole = np.concatenate(codes)
    owned = None if owners is None else owners.settle()
    size = 1 if owned is None else owned.group_size
    if owners is not None and owners.groups:
        owners.one_budget()
    if owners is None or size == 1:
        everybody = None
    else:
        everybody = owners.per_group(whole, len(groups.names))
    headcounts: list[Headcount] = []
    for place, name in enumerate(groups.names):
        used = whole == place
        if owned is not None and owned.used is not None:
            used &= owned.used
        if not used.any():
            raise InvalidInput(
                f"nobody is in the group {named(str(name))} of the column {groups.column}; leave it out of `groups`"
            )
        counter, before = BudgetCounter(), 0
        for epsilons, deltas in budgets:
            part = used[before : before + epsilons.size]
            counter.add(counted_part(epsilons[part], deltas[part], int(part.sum())))
            before += epsilons.size
        n = int(used.sum()) if everybody is None else everybody[place]
        mark = 0 if owners is None else owners.mark(used)
        headcounts.append(Headcount(who, counter.budgets(), whole.size, n, size, used, person, mark, (groups, place)))
    return headcounts


# The second pass: records are read batch by batch, mapped, randomized and counted; no batch is kept.


@dataclass(frozen=True)
class Part:
    """One question of a run, with everything needed to draw its reports.

    Parameters
    ----------
    question : Question
        The question.
    columns : tuple of str
        Columns of the records.
    recode : Recode
        How missing records and those outside the domain are replaced.
    task : Task
        Randomizer, budgets, view and weights.
    people : Headcount
        The people who answer.
    """

    question: Question
    columns: tuple[str, ...]
    recode: Recode
    task: Task
    people: Headcount

    @as_in_table
    def records(self, batch: Batch) -> NDArray[Any]:
        """Return the rows of a batch as input of the randomizer.

        Raises
        ------
        InvalidInput
            For the first record that the question does not cover.
        """
        return self.question.records([batch.columns[name] for name in self.columns], self.recode, batch.before)

    def draw(self, records: NDArray[Any], levels: NDArray[np.int64] | None, tally: Tally, random: Randomness) -> None:
        """Randomize records, each under the budget of its level, and add the reports to the tally.

        ``levels`` is None where there is one level. Where levels are few, the records of one level are drawn at once,
        with a number instead of a column of budgets: a tally does not depend on the order of the reports (`Tally`).
        """
        epsilons, deltas = self.task.budgets.epsilons, self.task.budgets.deltas

        def take(chosen: NDArray[Any], which: Any, at: NDArray[np.int64] | None) -> None:
            tally.add(self.question.draw(self.task.randomizer, chosen, epsilons[which], deltas[which], random), at)

        if levels is None:
            take(records, 0, None)
        elif epsilons.size * _WORTH > len(records):
            take(records, levels, levels)
        else:
            for level in range(epsilons.size):
                own = np.flatnonzero(levels == level)
                if own.size:
                    take(records[own], level, levels[own])


@dataclass(frozen=True)
class Prepared:
    """A question that is certified and not yet asked.

    Parameters
    ----------
    part : Part
        The question and the people who answer it.
    guarantee : Guarantee
        The guarantee that the release will have.
    mechanism : str
        The randomizer's name among the question's.
    again : callable
        Function of a `Headcount` and a mechanism's name that certifies the same question for them.
    unit : {"people", "rows"}
        "people" if a person column says whose each row is; "rows" if each row is taken as a person.
    where : mapping of str to tuple of hashable
        Public values of the rows that are asked; empty: all rows are.
    """

    part: Part
    guarantee: Guarantee
    mechanism: str
    again: Callable[[Headcount, str], Guarantee]
    unit: Literal["people", "rows"]
    where: Mapping[str, tuple[Hashable, ...]] = field(default_factory=dict[str, tuple[Hashable, ...]])


def collect(
    parts: Sequence[Part],
    source: Source,
    random: Randomness,
    progress: Progress | None = None,
) -> list[Tally]:
    """Read the records once, randomize each for every question under its own budget, and tally the reports.

    A tally is a function of the multiset of reports (with their levels, where levels are seen), so it does not matter
    which thread draws which report, and no permutation is needed.

    Parameters
    ----------
    parts : sequence of Part
        The questions, at least one; the same question of several groups is one part for each. Rows and budgets are
        those that were counted in the first pass.
    source : Source
        The data.
    random : Randomness
        Source of the noise. If it is private, batches are drawn in threads, each with an independent source.
    progress : callable, optional
        Called with the share of rows that were read, from 0 to 1.

    Returns
    -------
    list of Tally
        The tally of all reports, for each question.

    Raises
    ------
    InvalidInput
        For the first row that cannot be used; if the data changed since the first pass, or a column is needed both as
        words and as numbers.
    """
    people = parts[0].people
    wanted = columns_wanted(parts, people.who, people.identifying)
    batches = _counted(source.batches(**wanted), people.rows, source.name, progress)
    several = workers() if random.private else 1
    if several == 1 or people.rows <= _ONE_BATCH:
        whole = _Share(parts)
        for batch in batches:
            whole.take(batch, random)
    else:
        whole = _in_threads(batches, parts, random, several)
    for drawn in whole.drawn.values():
        drawn.check(source.name)
    return whole.tallies


class _Share:
    """The tallies of one thread, and a record of whose reports they hold.

    Parameters
    ----------
    parts : sequence of Part
        The questions.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        self.tallies = [tally_for(part.task) for part in parts]
        self.drawn = {id(part.people): Drawn(part.people) for part in parts}

    def take(self, batch: Batch, random: Randomness) -> None:
        """Randomize the records of a batch for every question, and tally the reports."""
        read: dict[tuple[int, tuple[str, ...]], Any] = {}  # groups share a question, and so its records
        rows: dict[int, tuple[NDArray[np.bool_] | None, NDArray[np.int64] | None]] = {}  # questions share people
        identities = RowIdentities(batch)
        for part, tally in zip(self.parts, self.tallies, strict=True):
            key, who = (id(part.question), part.columns), id(part.people)
            if who not in rows:
                used, levels = rows[who] = part.people.used_of(batch), part.people.levels(batch)
                self.drawn[who].add(identities, levels, used)
            used, levels = rows[who]
            if key not in read:
                read[key] = part.records(batch)
            records = read[key] if used is None else read[key][used]
            if len(records):
                part.draw(records, levels, tally, random)

    def merge(self, other: _Share) -> None:
        """Add the tallies of another thread."""
        for mine, theirs in zip(self.tallies, other.tallies, strict=True):
            mine.merge(theirs)
        for who, drawn in self.drawn.items():
            drawn.merge(other.drawn[who])


def columns_wanted(
    parts: Sequence[Part], who: RowBudgets | None, identifying: tuple[str, ...] = ()
) -> dict[str, tuple[str, ...]]:
    """Return the columns to read, by kind ("texts", "numbers").

    Missing entries are replaced or refused later, where a column is converted to records.

    Parameters
    ----------
    parts : sequence of Part
        The questions.
    who : RowBudgets, optional
        Where budgets come from; None: only the columns of the records are returned.
    identifying : tuple of str
        Columns of words that identify persons and groups.

    Raises
    ------
    InvalidInput
        If a column is needed both as words and as numbers.
    """
    kinds: dict[str, list[str]] = {"numbers": [], "texts": []}
    for part in parts:
        kinds[part.question.reads] += part.columns
    both = sorted(set(kinds["numbers"]) & set(kinds["texts"]))
    if both:
        raise InvalidInput(
            f"the column {named(both[0])} is asked for as words and as numbers; ask one of the questions in another run"
        )
    return {
        "numbers": tuple(dict.fromkeys((*kinds["numbers"], *(who.numbers if who else ())))),
        "texts": tuple(dict.fromkeys((*kinds["texts"], *(who.texts if who else ()), *identifying))),
        "gaps": tuple(dict.fromkeys((*(who.gaps if who else ()), *kinds["numbers"], *kinds["texts"], *identifying))),
    }


_WORTH = 1 << 12
"""Number of rows per level from which drawing each level separately is faster."""


_ONE_BATCH = 1 << 19
"""Number of rows up to which a second thread would have nothing to do."""


def _counted(batches: Iterator[Batch], rows: int, name: str, progress: Progress | None) -> Iterator[Batch]:
    """Yield the batches and report progress; refuse data whose number of rows has changed."""
    read = 0
    for batch in batches:
        read += batch.rows
        if read <= rows:  # with more rows the error below comes, and nothing must index beyond them
            yield batch
        if progress is not None:
            progress(min(read / rows, 1.0))
    if read != rows:
        raise InvalidInput(
            f"{name} had {rows} rows when its budgets were counted and {read} afterwards; "
            "leave it unchanged until the command ends"
        )


def _in_threads(batches: Iterator[Batch], parts: Sequence[Part], random: Randomness, several: int) -> _Share:
    """Draw the batches in threads and return their joint share; of several errors that of the first batch is raised."""
    lock, failures = threading.Lock(), dict[int, Exception]()
    numbered = enumerate(batches)

    def work(share: _Share, own: Randomness) -> _Share:
        while True:
            with lock:
                if failures:
                    return share
                try:
                    place, batch = next(numbered, (0, None))
                except Exception as error:
                    failures[2**62] = error  # after all rows that could be read
                    return share
            if batch is None:
                return share
            try:
                share.take(batch, own)
            except Exception as error:
                with lock:
                    failures[place] = error
                return share

    with ThreadPoolExecutor(several) as pool:
        futures = [pool.submit(work, _Share(parts), random.another()) for _ in range(several)]
        shares = [future.result() for future in futures]
    if failures:
        raise failures[min(failures)]
    for other in shares[1:]:
        shares[0].merge(other)
    return shares[0]


# Engines: who counts the people and tallies their reports; this process, or many machines.
#
# The flow of a run (`shuffledp.releases.run.Run`) is the same for every engine: people are counted, the guarantee
# is certified, and only then records are read.


class Engine(ABC):
    """Base of the engines, which count people and tally their reports where the records are."""

    def selected(self, where: tuple[Where, ...]) -> Engine:
        """Return the same engine of the rows alone that have public values; no other row is looked at.

        Parameters
        ----------
        where : tuple of Where
            What must hold of a row that is asked, at least one.

        Raises
        ------
        InvalidInput
            If the engine cannot choose rows.
        """
        raise InvalidInput(f"`where` is not offered by {type(self).__name__}; choose the rows before you ask")

    @abstractmethod
    def people(
        self,
        who: RowBudgets,
        person: Person | None,
        rule: RowsPerPerson,
        random: Randomness,
        progress: Progress | None = None,
    ) -> Headcount:
        """Count the budgets, and the rows of each person, without reading a record.

        Parameters
        ----------
        who : RowBudgets
            Where the budget of each row comes from.
        person, rule
            As the two entries of `People.whose`.
        random : Randomness
            Source for choosing one row of each person, where that is the rule.
        progress : callable, optional
            Called with the share of rows that were read, from 0 to 1, if the engine knows it.

        Raises
        ------
        InvalidInput
            On a budget that is not allowed, an empty person cell, or a person with more rows than allowed.
        """

    def groups(
        self,
        who: RowBudgets,
        person: Person | None,
        rule: RowsPerPerson,
        random: Randomness,
        groups: Groups,
        progress: Progress | None = None,
    ) -> list[Headcount]:
        """Count each group's budgets and people without reading a record; refuse if the engine does not support groups.

        Parameters
        ----------
        who, person, rule, random, progress
            As for `people`.
        groups : Groups
            The groups; no person may be in two of them.

        Raises
        ------
        InvalidInput
            As for `people`; if a group is empty, or the engine does not support groups.
        """
        raise InvalidInput(
            f"groups are not offered by {type(self).__name__}; ask each group by itself, and state in a ledger "
            "that they share nobody"
        )

    @abstractmethod
    def tallies(
        self,
        parts: Sequence[Part],
        random: Randomness,
        progress: Progress | None = None,
    ) -> list[Tally]:
        """Read the records once, randomize each for every question, and tally the reports.

        Parameters
        ----------
        parts : sequence of Part
            The questions, at least one, each with its people, as `people` or `groups` counted them.
        random : Randomness
            Source of the noise. If it is private, other machines use private sources of their own.
        progress : callable, optional
            Called with the share of rows that were read, from 0 to 1, if the engine knows it.

        Returns
        -------
        list of Tally
            The tally of all reports, for each question.

        Raises
        ------
        InvalidInput
            For rows that cannot be used, or if the data changed since the people were counted.
        """


@dataclass(frozen=True)
class OneMachine(Engine):
    """The engine that reads a source batch by batch in this process.

    Parameters
    ----------
    source : Source
        The data.
    """

    source: Source

    def selected(self, where: tuple[Where, ...]) -> OneMachine:
        """Return the engine of those rows alone that have the public values; see `Engine.selected`."""
        assert isinstance(self.source, Rows | Arrays)  # rows are chosen once
        return OneMachine(Selected(self.source, where))

    def people(
        self,
        who: RowBudgets,
        person: Person | None,
        rule: RowsPerPerson,
        random: Randomness,
        progress: Progress | None = None,
    ) -> Headcount:
        """Implement `Engine.people` in one pass over the source."""
        return count_people(watched(self.source, progress), who, person, rule, random)

    def groups(
        self,
        who: RowBudgets,
        person: Person | None,
        rule: RowsPerPerson,
        random: Randomness,
        groups: Groups,
        progress: Progress | None = None,
    ) -> list[Headcount]:
        """Implement `Engine.groups` in one pass over the source."""
        return count_groups(watched(self.source, progress), who, person, rule, random, groups)

    def tallies(
        self,
        parts: Sequence[Part],
        random: Randomness,
        progress: Progress | None = None,
    ) -> list[Tally]:
        """Implement `Engine.tallies` in one pass over the source."""
        return collect(parts, self.source, random, progress)
