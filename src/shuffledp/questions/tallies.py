"""Tallies: exact sums over reports, in any order and in any pieces, from which every estimate is made.

A `Task` says what is public. `tally_for` gives its tally; reports are added, tallies merged, and written as bytes.

>>> import numpy as np
>>> from shuffledp.budgets import Budgets
>>> from shuffledp.randomizers import RandomizedResponse
>>> task = Task(RandomizedResponse(2), Budgets((700.0,), (4,)), "reports")
>>> monday, tuesday = tally_for(task), tally_for(task)
>>> monday.add(np.array([0, 1]))
>>> tuesday.add(np.array([1, 1]))
>>> monday.merge(tally_from_state(task, tuesday.state()))
>>> monday.estimate().value.round(6).tolist()
[0.25, 0.75]
"""

from __future__ import annotations

from shuffledp.errors import InvalidInput, shown
from shuffledp.questions.frequency import FrequencyTally
from shuffledp.questions.items import ItemTally
from shuffledp.questions.mean import MeanTally
from shuffledp.questions.ranges import TreeTally
from shuffledp.questions.tally import Tally
from shuffledp.questions.task import Task
from shuffledp.questions.variance import VarianceTally
from shuffledp.questions.vectors import VectorTally
from shuffledp.randomizers.base import FrequencyOracle, NumberRandomizer
from shuffledp.randomizers.hashing import LeveledHashing
from shuffledp.randomizers.numeric import TwoMoments
from shuffledp.randomizers.seeded import SeededFamily
from shuffledp.randomizers.sketch import CoordinateSampling
from shuffledp.randomizers.tree import RangeTree

_KINDS: tuple[tuple[type, type[Tally]], ...] = (
    (LeveledHashing, ItemTally),
    (RangeTree, TreeTally),
    (TwoMoments, VarianceTally),
    (CoordinateSampling, VectorTally),
    (SeededFamily, VectorTally),
    (FrequencyOracle, FrequencyTally),
    (NumberRandomizer, MeanTally),
)


def tally_for(task: Task) -> Tally:
    """Return an empty tally of a task.

    Parameters
    ----------
    task : Task
        Who sends reports about what; the randomizer says which question it is.

    Returns
    -------
    Tally
        `FrequencyTally`, `MeanTally`, `VarianceTally`, `TreeTally`, `VectorTally` or `ItemTally`.

    Raises
    ------
    InvalidInput
        If no tally serves the randomizer, or its tally does not serve the task's `seen`.
    """
    return _kind(task)(task)


def tally_from_state(task: Task, data: bytes) -> Tally:
    """Return the tally of a task whose `Tally.state` these bytes are.

    Parameters
    ----------
    task : Task
        The task it was of.
    data : bytes
        From `Tally.state`, whole.

    Raises
    ------
    InvalidInput
        As `tally_for` and `Tally.from_state`.
    """
    return _kind(task).from_state(task, data)


def _kind(task: Task) -> type[Tally]:
    for family, kind in _KINDS:
        if isinstance(task.randomizer, family):
            return kind
    raise InvalidInput(
        f"no tally serves {shown(task.randomizer)}: it must be a FrequencyOracle, a NumberRandomizer, TwoMoments, a "
        "RangeTree, a VectorRandomizer or a LeveledHashing"
    )
