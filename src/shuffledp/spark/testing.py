"""For tests: `simulate_partitions` releases in one process, to the bit, what Spark would release from a dataframe.

It takes a list of tables as the dataframe's partitions, and needs no Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import Randomness, simulation_of_partition
from shuffledp.progress import Progress
from shuffledp.questions.question import Question
from shuffledp.questions.tally import Tally
from shuffledp.records.people import Headcount, RowBudgets, RowsPerPerson, count_people
from shuffledp.records.sources import Person, Rows, Selected, Where
from shuffledp.releases import keywords
from shuffledp.releases.engine import Engine, Part
from shuffledp.releases.keywords import Options
from shuffledp.releases.release import Release
from shuffledp.spark.engine import offered, refused_records
from shuffledp.spark.worker import Counted, Job, as_batch, tally_partition
from shuffledp.tables import BATCH, Table


class Partitions(Engine):
    """Engine that tallies a list of tables one after the other, each with randomness of its own.

    Parameters
    ----------
    tables : sequence of dataframe
        Tables in the order of the partitions' numbers; all with the same columns.
    """

    def __init__(self, tables: Sequence[Any]) -> None:
        import polars as pl

        self._frames = [Table.of(table).whole() for table in tables]
        if not self._frames:
            raise InvalidInput("there is no table; give one for each partition")
        self._whole = Rows(Table.of(pl.concat(self._frames)), BATCH)

    def selected(self, where: tuple[Where, ...]) -> Partitions:
        """Return the engine of those rows alone that have the public values; see `Engine.selected`."""
        frames: list[Any] = []
        for frame in self._frames:
            chosen = np.ones(frame.height, dtype=np.bool_)
            for each in where:
                column = as_batch(frame, {"texts": (each.column,), "gaps": (each.column,)})
                chosen &= each.codes(column.texts(each.column)) >= 0
            frames.append(frame.filter(chosen))
        Selected(self._whole, where).count()  # refuses what nobody has
        return Partitions(frames)

    def people(
        self,
        who: RowBudgets,
        person: Person | None,
        rule: RowsPerPerson,
        random: Randomness,
        progress: Progress | None = None,
    ) -> Headcount:
        """Return the participants of all tables and their budgets; see `Engine.people`."""
        del progress
        return count_people(self._whole, who, person, rule if person is None else offered(rule), random)

    def tallies(
        self,
        parts: Sequence[Part],
        random: Randomness,
        progress: Progress | None = None,
    ) -> list[Tally]:
        """Return the tally of each question over all tables; see `Engine.tallies`."""
        if random.private:
            raise InvalidInput("simulate_partitions repeats a simulation; give `random = simulation_random(seed)`")
        job = Job(tuple(parts))
        root, totals = int(random.words(1)[0]), Counted.nothing(job)
        for place, frame in enumerate(self._frames):
            more = tally_partition([frame], job, simulation_of_partition(root, place))
            if more.bad:
                raise refused_records(more.bad, parts)
            totals.add(job, more.n, 0, more.state())
            if progress is not None:
                progress((place + 1) / len(self._frames))
        return totals.tallies


def simulate_partitions(
    question: Question,
    tables: Sequence[Any],
    *,
    value: str | Sequence[str],
    budgets: float | str | RowBudgets,
    **options: Unpack[Options],
) -> Release:
    """Return the result, to the bit, of a simulated Spark release whose partitions are the given tables.

    For tests, and for finding out which of two systems is at fault: the result is not private. With one table it is
    still not `shuffledp.release` of that table under the same seed, which draws its words in another order.

    Parameters
    ----------
    question : Question
        As for `release`.
    tables : sequence of dataframe, or of paths
        One for each partition, in the order of the partitions' numbers; an empty partition is a table without rows.
    value, budgets, **options
        As for `release`; `random` must be `simulation_random(seed)`.

    Raises
    ------
    InvalidInput
        As `release`; if `random` is private.

    Examples
    --------
    >>> import polars as pl
    >>> import shuffledp as sdp
    >>> tables = [pl.DataFrame({"vote": ["yes", "no"] * 250}), pl.DataFrame({"vote": ["no"] * 500})]
    >>> told = {"budgets": 1.0, "seen": "reports", "delta": 1e-6}
    >>> question = sdp.Frequency(["yes", "no"])
    >>> first, again = (
    ...     simulate_partitions(question, tables, value="vote", **told, random=sdp.simulation_random(7))
    ...     for _ in range(2)
    ... )
    >>> first.n, first.private, bool((first.estimate == again.estimate).all())
    (1000, False, True)
    """
    return keywords.release(question, Partitions(tables), value=value, budgets=budgets, **options)
