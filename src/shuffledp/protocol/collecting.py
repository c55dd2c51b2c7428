"""The second pass: records are read batch by batch, mapped, randomized and counted; no batch is kept."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput, named
from shuffledp.numerics.randomness import Randomness
from shuffledp.progress import Progress
from shuffledp.protocol.columns import Recode
from shuffledp.protocol.drawn import Drawn, Told
from shuffledp.protocol.people import People, RowBudgets
from shuffledp.protocol.questions import Question
from shuffledp.protocol.sources import Batch, Source
from shuffledp.protocol.tally import Tally, Task, tally_for
from shuffledp.protocol.threads import workers


@dataclass(frozen=True)
class Part:
    """One question of a run, ready to be asked.

    Parameters
    ----------
    question : Question
        What is asked.
    columns : tuple of str
        Columns of the records.
    recode : Recode
        What missing records and those outside the domain count as.
    task : Task
        Randomizer, budgets, view and weights.
    people : People
        Whom it is asked.
    """

    question: Question
    columns: tuple[str, ...]
    recode: Recode
    task: Task
    people: People

    def records(self, batch: Batch) -> NDArray[Any]:
        """Turn the rows of a batch into what the randomizer takes.

        Raises
        ------
        InvalidInput
            For the first record that the question does not cover.
        """
        return self.question.records([batch.columns[name] for name in self.columns], self.recode, batch.before)

    def draw(self, records: NDArray[Any], levels: NDArray[np.int64] | None, tally: Tally, random: Randomness) -> None:
        """Randomize records, each under the budget of its level (None: there is one), and count the reports.

        Where levels are few, those of one level are drawn at once: a number instead of a column of budgets. A tally
        does not depend on the order in which reports are added (`Tally`).
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


def collect(
    parts: Sequence[Part],
    source: Source,
    random: Randomness,
    progress: Progress | None = None,
) -> list[Tally]:
    """Read the records once, randomize each for every question under its own budget, and count the reports.

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
        Source of the noise. If it is private, batches are drawn in threads, each with a source of its own.
    progress : callable, optional
        Called with the share of rows that were read, from 0 to 1.

    Returns
    -------
    list of Tally
        Of all reports, one a question.

    Raises
    ------
    InvalidInput
        For the first bad row; if the data changed since the first pass, or a column is asked for as words and as
        numbers.
    """
    people = parts[0].people
    wanted = columns_wanted(parts, people.who, people.told_by)
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
    """What one thread takes: its reports are tallied, and whose they are is counted.

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
        """Randomize the records of a batch for every question."""
        read: dict[tuple[int, tuple[str, ...]], Any] = {}  # groups share a question, and so its records
        rows: dict[int, tuple[NDArray[np.bool_] | None, NDArray[np.int64] | None]] = {}  # questions share people
        told = Told(batch)
        for part, tally in zip(self.parts, self.tallies, strict=True):
            key, who = (id(part.question), part.columns), id(part.people)
            if who not in rows:
                used, levels = rows[who] = part.people.used_of(batch), part.people.levels(batch)
                self.drawn[who].add(told, levels, used)
            used, levels = rows[who]
            if key not in read:
                read[key] = part.records(batch)
            records = read[key] if used is None else read[key][used]
            if len(records):
                part.draw(records, levels, tally, random)

    def merge(self, other: _Share) -> None:
        """Add what another thread took."""
        for mine, theirs in zip(self.tallies, other.tallies, strict=True):
            mine.merge(theirs)
        for who, drawn in self.drawn.items():
            drawn.merge(other.drawn[who])


def columns_wanted(
    parts: Sequence[Part], who: RowBudgets | None, told: tuple[str, ...] = ()
) -> dict[str, tuple[str, ...]]:
    """Return the columns to read, by kind; an entry that is missing is settled, or refused, where it becomes a record.

    Parameters
    ----------
    parts : sequence of Part
        The questions.
    who : RowBudgets, optional
        Where budgets come from; None: the columns of the records alone.
    told : tuple of str
        Columns of words that tell whose row it is.

    Raises
    ------
    InvalidInput
        If a column is asked for as words and as numbers.
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
        "texts": tuple(dict.fromkeys((*kinds["texts"], *(who.texts if who else ()), *told))),
        "gaps": tuple(dict.fromkeys((*(who.gaps if who else ()), *kinds["numbers"], *kinds["texts"], *told))),
    }


_WORTH = 1 << 12
"""Rows a level from which on it pays to draw each level by itself."""

_ONE_BATCH = 1 << 19
"""Rows up to which a second thread would have nothing to do."""


def _counted(batches: Iterator[Batch], rows: int, name: str, progress: Progress | None) -> Iterator[Batch]:
    """Pass batches on, tell how far they are, and refuse data that changed their length."""
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
    """Share the batches among threads; of several errors the one of the first batch is raised."""
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
