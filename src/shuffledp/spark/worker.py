"""What a task does with its partition: read, check, randomize and count; what leaves it are sums.

No module of Spark is used here, so one process can do the same for a list of tables (`simulate_partitions`).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import shuffledp
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import Randomness, secure_random, simulation_of_partition
from shuffledp.questions.tally import Tally, tally_for, tally_from_state
from shuffledp.records.people import Headcount
from shuffledp.records.sources import Batch
from shuffledp.releases.engine import Part, columns_wanted, expected_levels, level_counts
from shuffledp.tables import read_frame
from shuffledp.tables.options import spelled

if TYPE_CHECKING:
    import polars as pl

MARK = "shuffledp mark"
"""Column with a mark of each row, a hash of its person and budget."""
_ROWS, _CELLS = 1 << 16, 1 << 20
_SLICES = 1 << 9
"""Largest number of slices of batches with bad rows that a task examines to count these rows."""


@dataclass(frozen=True)
class Job:
    """Public description of the questions that every partition evaluates.

    Parameters
    ----------
    parts : tuple of Part
        Questions to evaluate, all on the same people, as counted in the first pass.
    mark : int, optional
        What the marks of all rows added up to, modulo 2^64, when the rows of each person were counted; a column `MARK`
        with them comes with the rows then. None: nobody asks whose row it is.
    """

    parts: tuple[Part, ...]
    mark: int | None = None

    @property
    def people(self) -> Headcount:
        """Participants and their budgets, as counted in the first pass."""
        return self.parts[0].people

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that the questions read."""
        wanted = columns_wanted(self.parts, self.people.who)
        return (*wanted["numbers"], *wanted["texts"])

    @property
    def rows(self) -> int:
        """Number of rows that are randomized together; fixed by the question, so that a simulation is repeatable."""
        return max(1, min(_ROWS, _CELLS // max(1, len(self.columns))))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns in the frame that a task receives, the column of marks included."""
        return self.columns if self.mark is None else (*self.columns, MARK)

    def expected(self) -> NDArray[np.uint64]:
        """Return the sums of levels and marks over all rows that `Counted.levels` must reach."""
        return self._with_mark(expected_levels(self.people.population), self.mark)

    def levels(self, at: NDArray[np.int64] | None, frame: pl.DataFrame) -> NDArray[np.uint64]:
        """Return the row counts of the budget levels and the sum of the marks in these rows.

        ``at`` holds each row's level; None means that there is one level.
        """
        marks = None if self.mark is None else int(np.sum(frame[MARK].to_numpy().view(np.uint64)))
        return self._with_mark(level_counts(self.people.population, at, frame.height), marks)

    def _with_mark(self, levels: NDArray[np.uint64], mark: int | None) -> NDArray[np.uint64]:
        return levels if mark is None else np.append(levels, np.uint64(mark))


@dataclass
class Counted:
    """Tallies and counts of one or more partitions.

    Parameters
    ----------
    n : int
        Rows that were tallied.
    bad : int
        Rows with a record that the question does not cover; at least so many, as a task stops where it finds many.
    levels : ndarray of uint64
        Rows of each level, or of more than 4,096 levels one sum of keys; last, if there are marks, their sum.
    tallies : list of Tally
        Tally of each question.
    """

    n: int
    bad: int
    levels: NDArray[np.uint64]
    tallies: list[Tally]

    @classmethod
    def nothing(cls, job: Job) -> Counted:
        """Return the empty counts of no partition, to which others are added."""
        return cls(0, 0, np.zeros_like(job.expected()), [tally_for(part.task) for part in job.parts])

    def state(self) -> bytes:
        """Return the levels and then the state of each tally as bytes; all lengths are known to the job."""
        return self.levels.astype("<u8").tobytes() + b"".join(tally.state() for tally in self.tallies)

    def add(self, job: Job, n: int, bad: int, state: bytes) -> None:
        """Add the counts and tallies that a task returned.

        Raises
        ------
        InvalidInput
            If the bytes are no `state` of this job, or there are more rows than people were counted.
        """
        start = 8 * self.levels.size
        more = np.frombuffer(state[:start], dtype="<u8")
        if more.shape != self.levels.shape:
            raise InvalidInput(f"a task returned {len(state)} bytes, which are no tally of this question")
        for part, mine in zip(job.parts, self.tallies, strict=True):
            size = len(mine.state())
            mine.merge(tally_from_state(part.task, state[start : start + size]))
            start += size
        self.levels = self.levels + more
        self.n, self.bad = self.n + n, self.bad + bad


def tally_partition(frames: Iterable[pl.DataFrame], job: Job, random: Randomness) -> Counted:
    """Read a partition, randomize its records, and return the tallies of the reports.

    A bad row raises nothing: an error of a task stands in the logs of a cluster, and it would name a record.

    Parameters
    ----------
    frames : iterable of polars DataFrame
        The partition's rows, in pieces of any size.
    job : Job
        Questions to evaluate.
    random : Randomness
        The partition's own source of noise.

    Returns
    -------
    Counted
        Rows whose budget was not there when the budgets were counted are left out of `n`, so that the sum of all
        partitions shows that the data changed.
    """
    counted = Counted.nothing(job)
    people = job.people
    wanted = columns_wanted(job.parts, None)
    slices = _SLICES
    mine = {"numbers": people.who.numbers, "texts": people.who.texts, "gaps": people.who.gaps}

    def read(frame: pl.DataFrame) -> list[NDArray[Any]]:
        batch = as_batch(frame, wanted)
        return [part.records(batch) for part in job.parts]

    for frame in cut(frames, job.rows):
        try:
            levels = people.levels(as_batch(frame, mine))
        except InvalidInput:
            continue
        try:
            records = read(frame)
        except InvalidInput:
            bad, slices = refused_rows(frame, read, slices)
            counted.bad += len(bad)
            if slices == 0:
                break
            continue
        if counted.n + frame.height > people.rows:
            continue  # more rows than were counted: the sum over partitions says so
        for part, record, tally in zip(job.parts, records, counted.tallies, strict=True):
            part.draw(record, levels, tally, random)
        counted.n += frame.height
        counted.levels = counted.levels + job.levels(levels, frame)
    return counted


def renamed(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return a frame whose columns are renamed to these names, in order."""
    return frame.rename(dict(zip(frame.columns, names, strict=True)))


def as_batch(frame: pl.DataFrame, wanted: dict[str, tuple[str, ...]]) -> Batch:
    """Return columns of a frame as a batch of records, read by the rules for tables.

    Parameters
    ----------
    frame : polars DataFrame
        The rows.
    wanted : dict of str to tuple of str
        Names of the columns by kind, "numbers", "texts" and "gaps" (see `read_frame`).

    Raises
    ------
    InvalidInput
        For the first bad entry.
    """
    numbers, texts, gaps = (wanted.get(kind, ()) for kind in ("numbers", "texts", "gaps"))
    read = read_frame(frame, numbers=numbers, texts=texts, gaps=gaps)
    return Batch({**read.numbers, **read.texts}, read.rows, 0)


def cut(frames: Iterable[pl.DataFrame], rows: int) -> Iterator[pl.DataFrame]:
    """Yield pieces of `rows` rows each, cut from pieces of any size; the last is shorter, none is empty."""
    import polars as pl

    held: list[pl.DataFrame] = []
    height = 0
    for frame in frames:
        held.append(frame)
        height += frame.height
        if height >= rows:
            whole = pl.concat(held)
            whole_pieces = height // rows
            yield from (whole.slice(place * rows, rows).rechunk() for place in range(whole_pieces))
            held, height = [whole.slice(whole_pieces * rows)], height % rows
    if height:
        yield pl.concat(held).rechunk()


def refused_rows(
    frame: pl.DataFrame, read: Callable[[pl.DataFrame], Any], slices: int = _SLICES
) -> tuple[list[int], int]:
    """Return the places of the rows that `read` refuses, found by halving; `read` must judge each row by itself.

    Parameters
    ----------
    frame : polars DataFrame
        The rows.
    read : callable
        Raises InvalidInput if one of the rows it is given is bad.
    slices : int
        How many slices may be looked at.

    Returns
    -------
    tuple of list and int
        The places of bad rows, and how many slices are left; with 0 left there may be more bad rows.
    """
    bad: list[int] = []
    waiting = [(0, frame.height)]
    while waiting and slices:
        start, size = waiting.pop()
        slices -= 1
        try:
            read(frame.slice(start, size))
        except InvalidInput:
            if size > 1:
                waiting += [(start + size // 2, size - size // 2), (start, size // 2)]
            else:
                bad.append(start)
    return bad, slices


def version_here() -> str:
    """Return the version of this package on the machine where this runs.

    Raises
    ------
    ImportError
        If something that a task needs is missing.
    """
    import polars as pl

    del pl
    return shuffledp.__version__


def answer_partition(
    batches: Iterator[Any], payload: bytes, partition: int, root: int | None
) -> tuple[int, int, bytes]:
    """Return the result of one task: rows tallied, bad rows, and the tallies as bytes.

    Parameters
    ----------
    batches : iterator of pyarrow RecordBatch
        The partition's rows.
    payload : bytes
        The pickled `Job`.
    partition : int
        The partition's number.
    root : int, optional
        Seed of a simulation. None: a secure source that only this attempt of the task knows. No key is derived from the
        partition's number: a second attempt may meet other rows, and one keystream over two inputs tells their
        difference.

    Raises
    ------
    TaskFailed
        Without a word of what was read.
    """
    import polars as pl

    failed = ""
    try:
        job = pickle.loads(payload)
        random = secure_random() if root is None else simulation_of_partition(root, partition)
        frames = (renamed(pl.DataFrame(batch), job.names) for batch in batches)
        counted = tally_partition(frames, job, random)
        return counted.n, counted.bad, counted.state()
    except Exception as error:  # its text, and that of what it came from, may hold a record
        failed = type(error).__name__
    raise TaskFailed(f"a task of shuffledp failed with {failed}")


def answer_spelled(people: Any) -> list[str | None]:
    """Return the person of each row in normalised spelling, None where the entry is missing.

    Parameters
    ----------
    people : pyarrow Array
        The rows' entries in the person column.

    Raises
    ------
    TaskFailed
        Without a word of what was read.
    """
    import polars as pl

    failed = ""
    try:
        return spelled(pl.Series(people)).to_list()
    except Exception as error:  # see `answer_partition`
        failed = type(error).__name__
    raise TaskFailed(f"a task of shuffledp failed with {failed}")


def answer_merged(
    answers: Iterable[tuple[str, int, int, bytes]], payload: bytes, version: str
) -> tuple[str, int, int, bytes]:
    """Return the merged result of several partitions, reading one at a time into memory.

    Parameters
    ----------
    answers : iterable of (version, n, bad, state)
        Results of the partitions, as the tasks returned them.
    payload : bytes
        The pickled `Job`.
    version : str
        Version of this package on the driver; a result of another version ends the merge, and its version is returned.
    """
    job = pickle.loads(payload)
    merged = Counted.nothing(job)
    n = bad = 0
    for own, more, refused, state in answers:
        if own != version:
            return own, 0, 0, b""
        n, bad = n + more, bad + refused
        if n <= job.people.rows:  # with more, the driver refuses whatever is in the state
            merged.add(job, more, refused, state)
    return version, n, bad, merged.state()


class TaskFailed(RuntimeError):
    """Error of a task on a worker; the message names the kind of error, and nothing of the data that was read."""
