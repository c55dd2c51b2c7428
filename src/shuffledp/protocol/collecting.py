"""The second pass: records are read batch by batch, mapped, randomized and counted; no batch is kept."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import Randomness
from shuffledp.protocol.columns import Recode
from shuffledp.protocol.people import People
from shuffledp.protocol.questions import Question
from shuffledp.protocol.sources import Batch, Source
from shuffledp.protocol.tally import Tally, Task, tally_for

_MOST_THREADS = 8


def collect(
    question: Question,
    source: Source,
    columns: Sequence[str],
    recode: Recode,
    people: People,
    task: Task,
    random: Randomness,
    progress: Callable[[float], None] | None = None,
) -> Tally:
    """Read the records, randomize each under its own budget, and count the reports.

    A tally is a function of the multiset of reports (with their levels, where levels are seen), so it does not matter
    which thread draws which report, and no permutation is needed.

    Parameters
    ----------
    question : Question
        What is asked.
    source : Source
        The data.
    columns : sequence of str
        Columns of the records.
    recode : Recode
        What missing records and those outside the domain count as.
    people : People
        Who takes part, as counted in the first pass.
    task : Task
        Randomizer, budgets, view and weights.
    random : Randomness
        Source of the noise. If it is private, batches are drawn in threads, each with a source of its own.
    progress : callable, optional
        Called with the share of rows that were read, from 0 to 1.

    Returns
    -------
    Tally
        Of all reports.

    Raises
    ------
    InvalidInput
        For the first bad row; if the data changed since the first pass.
    """
    who = people.who
    kinds: dict[str, tuple[str, ...]] = {"numbers": (), "texts": (), question.reads: tuple(columns)}
    numbers = tuple(dict.fromkeys((*kinds["numbers"], *who.numbers)))
    texts = tuple(dict.fromkeys((*kinds["texts"], *who.texts)))
    gaps = (*who.gaps, *(columns if recode.missing_as is not None else ()))
    batches = _counted(source.batches(numbers=numbers, texts=texts, gaps=gaps), people.rows, source.name, progress)

    def take(batch: Batch, tally: Tally, own: Randomness) -> None:
        records = question.records([batch.columns[name] for name in columns], recode, batch.before)
        levels = people.levels(batch)
        if people.used is not None:
            used = people.used[batch.before : batch.before + batch.rows]
            records, levels = records[used], None if levels is None else levels[used]
        epsilons, deltas = task.budgets.epsilons, task.budgets.deltas
        which = 0 if levels is None else levels
        tally.add(question.draw(task.randomizer, records, epsilons[which], deltas[which], own), levels)

    workers = min(_MOST_THREADS, os.cpu_count() or 1) if random.private else 1
    if workers == 1 or people.rows <= _ONE_BATCH:
        whole = tally_for(task)
        for batch in batches:
            take(batch, whole, random)
        return whole
    return _in_threads(batches, take, task, random, workers)


_ONE_BATCH = 1 << 19
"""Rows up to which a second thread would have nothing to do."""


def _counted(
    batches: Iterator[Batch], rows: int, name: str, progress: Callable[[float], None] | None
) -> Iterator[Batch]:
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
    take: Callable[[Batch, Tally, Randomness], None],
    task: Task,
    random: Randomness,
    workers: int,
) -> Tally:
    """Share the batches among threads; of several errors the one of the first batch is raised."""
    lock, failures = threading.Lock(), dict[int, Exception]()
    numbered = enumerate(batches)

    def work(tally: Tally, own: Randomness) -> Tally:
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

    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(work, tally_for(task), random.another()) for _ in range(workers)]
        parts = [future.result() for future in futures]
    if failures:
        raise failures[min(failures)]
    whole: Any = parts[0]
    for part in parts[1:]:
        whole.merge(part)
    return whole
