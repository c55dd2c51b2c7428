# pyright: reportMissingImports=false, reportUnknownParameterType=false
"""Functions that Spark ships to its workers.

Each is defined inside another function, so that it travels as code and not as the name of a module: a worker without
this package can then say so, where it would otherwise answer with its traceback. What a task needs travels as bytes
that are unpacked only after the version was compared. Nothing random is shipped: sources of randomness refuse it, and
every attempt of a task draws from a source of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

ABSENT = "none"
"""The version of a worker without this package."""
MERGED = "version string, n bigint, bad bigint, state binary"
STATES = f"place int, {MERGED}"
SPELLED = "person string, budget bigint, mark bigint"

Task = Callable[[Iterator[Any]], Iterator[Any]]
"""From record batches of Arrow to record batches."""


def probing_task() -> Task:
    """Return a task that answers with the version of this package that its worker has."""
    absent = ABSENT

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for _ in batches:
            pass
        try:
            from shuffledp.spark.worker import version_here

            version = version_here()
        except ImportError:
            version = absent
        yield pa.RecordBatch.from_pydict({"version": [version]})

    return task


def tallying_task(payload: bytes, version: str, root: int | None, *, place: bool) -> Task:
    """Return the task of the pass over the records: one row, with the tallies of its partition.

    Parameters
    ----------
    payload : bytes
        The pickled `Job`.
    version : str
        The driver's.
    root : int, optional
        Of a simulation; None: every attempt takes a secure source of its own.
    place : bool
        Whether the partition's number comes along.
    """
    absent = ABSENT

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        number = context.partitionId() if context is not None else 0
        try:
            from shuffledp.spark.worker import answer_partition, version_here

            own = version_here()
        except ImportError:
            own, answer = absent, (0, 0, b"")
        else:
            answer = answer_partition(batches, payload, number, root) if own == version else (0, 0, b"")
        n, bad, state = answer
        places = {"place": pa.array([number], pa.int32())} if place else {}
        yield pa.RecordBatch.from_pydict({**places, "version": [own], "n": [n], "bad": [bad], "state": [state]})

    return task


def spelling_task() -> Task:
    """Return the task that writes the person of each row, the first of three columns, in its one spelling."""

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        from shuffledp.spark.worker import answer_spelled

        for batch in batches:
            people = pa.array(answer_spelled(batch.column(0)), pa.string())
            yield pa.RecordBatch.from_arrays([people, *batch.columns[1:]], names=["person", "budget", "mark"])

    return task


def merging_task(payload: bytes, version: str) -> Task:
    """Return the task that merges the answers of several partitions into one row.

    Parameters
    ----------
    payload, version
        As for `tallying_task`.
    """

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        from itertools import chain

        import pyarrow as pa

        answers = (row for batch in batches for row in batch.select(["version", "n", "bad", "state"]).to_pylist())
        first = next(answers, None)
        if first is None:
            return
        from shuffledp.spark.worker import answer_merged

        rows = ((row["version"], row["n"], row["bad"], row["state"]) for row in chain([first], answers))
        own, n, bad, state = answer_merged(rows, payload, version)
        yield pa.RecordBatch.from_pydict({"version": [own], "n": [n], "bad": [bad], "state": [state]})

    return task
