"""The second pass: records are read batch by batch, mapped, randomized and counted; no batch is kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput, named
from shuffledp.numerics.randomness import Randomness
from shuffledp.progress import Progress
from shuffledp.protocol.columns import Recode
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
    batches = _counted(source.batches(**columns_wanted(parts, people.who)), people.rows, source.name, progress)

    def take(batch: Batch, tallies: list[Tally], own: Randomness) -> None:
        read: dict[tuple[int, tuple[str, ...]], Any] = {}  # groups share a question, and so its records
        for part, tally in zip(parts, tallies, strict=True):
            used, levels, key = part.people.used_of(batch), part.people.levels(batch), (id(part.question), part.columns)
            if key not in read:
                read[key] = part.records(batch)
            records = read[key] if used is None else read[key][used]
            if len(records):
                part.draw(records, levels, tally, own)

    several = workers() if random.private else 1
    if several == 1 or people.rows <= _ONE_BATCH:
        whole = [tally_for(part.task) for part in parts]
        for batch in batches:
            take(batch, whole, random)
        return whole
    return _in_threads(batches, take, [part.task for part in parts], random, several)


def columns_wanted(parts: Sequence[Part], who: RowBudgets | None) -> dict[str, tuple[str, ...]]:
    """Return the columns to read, by kind; an entry that is missing is settled, or refused, where it becomes a record.

    Parameters
    ----------
    parts : sequence of Part
        The questions.
    who : RowBudgets, optional
        Where budgets come from; None: the columns of the records alone.

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
        "texts": tuple(dict.fromkeys((*kinds["texts"], *(who.texts if who else ())))),
        "gaps": tuple(dict.fromkeys((*(who.gaps if who else ()), *kinds["numbers"], *kinds["texts"]))),
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


def _in_threads(
    batches: Iterator[Batch],
    take: Callable[[Batch, list[Tally], Randomness], None],
    tasks: Sequence[Task],
    random: Randomness,
    several: int,
) -> list[Tally]:
    """Share the batches among threads; of several errors the one of the first batch is raised."""
    lock, failures = threading.Lock(), dict[int, Exception]()
    numbered = enumerate(batches)

    def work(tally: list[Tally], own: Randomness) -> list[Tally]:
        while True:
            with lock:
                if failures:
                    return tally
                try:
                    place, batch = next(numbered, (0, None))
                except Exception as error:
                    failures[2**62] = error  # after all rows that could be read
                    return tally
            if batch is None:
                return tally
            try:
                take(batch, tally, own)
            except Exception as error:
                with lock:
                    failures[place] = error
                return tally

    with ThreadPoolExecutor(several) as pool:
        futures = [pool.submit(work, [tally_for(task) for task in tasks], random.another()) for _ in range(several)]
        parts = [future.result() for future in futures]
    if failures:
        raise failures[min(failures)]
    whole: list[Any] = parts[0]
    for part in parts[1:]:
        for mine, other in zip(whole, part, strict=True):
            mine.merge(other)
    return whole
