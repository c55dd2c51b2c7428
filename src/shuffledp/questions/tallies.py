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

import sys
from importlib import import_module

from shuffledp.errors import InvalidInput, shown
from shuffledp.questions.tally import Tally
from shuffledp.questions.task import Task

_KINDS = (
    ("hashing.LeveledHashing", "items.ItemTally"),
    ("tree.RangeTree", "ranges.TreeTally"),
    ("numeric.TwoMoments", "variance.VarianceTally"),
    ("sketch.CoordinateSampling", "vectors.VectorTally"),
    ("seeded.SeededFamily", "vectors.VectorTally"),
    ("base.FrequencyOracle", "frequency.FrequencyTally"),
    ("base.NumberRandomizer", "mean.MeanTally"),
)
"""The first of these families that a randomizer belongs to says its tally; loaded is what is used."""


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
    for family, tally in _KINDS:
        home, _, name = family.partition(".")
        loaded = sys.modules.get(f"shuffledp.randomizers.{home}")  # nothing is of a family that is not loaded
        if loaded is not None and isinstance(task.randomizer, getattr(loaded, name)):
            home, _, name = tally.partition(".")
            return getattr(import_module(f"shuffledp.questions.{home}"), name)
    raise InvalidInput(
        f"no tally serves {shown(task.randomizer)}: it must be a FrequencyOracle, a NumberRandomizer, TwoMoments, a "
        "RangeTree, a VectorRandomizer or a LeveledHashing"
    )
