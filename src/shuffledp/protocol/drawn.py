"""What was drawn is what was certified: who the reports are from, and at which levels, is counted as they are drawn.

A table is read twice, and may be another one the second time. A guarantee is for the budgets and the people that were
counted in the first pass, whatever is seen of the reports, so the second pass counts them once more, and nothing
leaves unless both agree.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import Words
from shuffledp.protocol.group_names import Groups
from shuffledp.protocol.owners import person_keys, row_marks
from shuffledp.protocol.people import People
from shuffledp.protocol.sources import Batch
from shuffledp.randomizers.codebook import mix

MOST_LEVELS = 4096
"""Up to so many levels the rows of each are counted; beyond, one sum tells whether they agree."""


def expected_levels(budgets: Budgets) -> Words:
    """Return what `level_counts` of all rows of a population add up to."""
    return _folded(budgets.counts.astype(np.uint64))


def level_counts(budgets: Budgets, at: NDArray[np.int64] | None, rows: int) -> Words:
    """Return the rows of each level, or of more than 4,096 levels the sum of their keys modulo 2^64.

    Parameters
    ----------
    budgets : Budgets
        The population.
    at : ndarray of int64, shape (rows,), optional
        Level of each row; None: there is one.
    rows : int
        How many there are.
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


class Told:
    """What a batch tells about whose rows they are; read once, however many groups there are.

    Parameters
    ----------
    batch : Batch
        The rows.
    """

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self._keys: dict[str, Words] = {}
        self._codes: dict[int, NDArray[np.int64]] = {}

    def keys(self, person: str) -> Words:
        """Return the key of each row's person, see `person_keys`."""
        if person not in self._keys:
            self._keys[person] = person_keys(self.batch.texts(person), person, self.batch.before)
        return self._keys[person]

    def codes(self, groups: Groups) -> NDArray[np.int64]:
        """Return the place of each row's group."""
        if id(groups) not in self._codes:
            self._codes[id(groups)] = groups.codes(self.batch)
        return self._codes[id(groups)]


class Drawn:
    """Whose reports were drawn so far, of the people that a certificate is about.

    Parameters
    ----------
    people : People
        As they were counted before a record was read.
    """

    def __init__(self, people: People) -> None:
        self._people = people
        self._levels = np.zeros_like(expected_levels(people.population))
        self._mark = 0
        self._moved = False

    def add(self, told: Told, levels: NDArray[np.int64] | None, used: NDArray[np.bool_] | None) -> None:
        """Take the rows of a batch that are used.

        Parameters
        ----------
        told : Told
            The rows.
        levels : ndarray of int64, shape (used rows,), optional
            From `People.levels`.
        used : ndarray of bool, shape (rows,), optional
            From `People.used_of`.

        Raises
        ------
        InvalidInput
            If a row has no person, or is in no group.
        """
        people, rows = self._people, told.batch.rows if used is None else int(used.sum())
        if rows == 0:
            return
        self._levels = self._levels + level_counts(people.population, levels, rows)
        chosen = slice(None) if used is None else used
        if people.group is not None:
            groups, place = people.group
            self._moved |= bool((told.codes(groups)[chosen] != place).any())
        if people.person is not None:
            at = 0 if levels is None else levels
            budgets = people.population
            marks = row_marks(told.keys(people.person)[chosen], budgets.epsilons[at], budgets.deltas[at])
            self._mark = (self._mark + int(np.sum(marks))) % 2**64

    def merge(self, other: Drawn) -> None:
        """Add what was drawn elsewhere, of the same people."""
        self._levels = self._levels + other._levels
        self._mark = (self._mark + other._mark) % 2**64
        self._moved |= other._moved

    def check(self, name: str) -> None:
        """Refuse unless the reports are from the people that were counted.

        Parameters
        ----------
        name : str
            What the message calls the table.

        Raises
        ------
        InvalidInput
            If levels, groups, or persons with their budgets are others.
        """
        same = np.array_equal(self._levels, expected_levels(self._people.population)) and not self._moved
        if not same or self._mark != self._people.mark:
            raise changed(name)


def changed(name: str) -> InvalidInput:
    """Say that a table is another one than it was."""
    return InvalidInput(
        f"{name} had other people or budgets when its records were read than when they were counted, so nothing is "
        "released; leave it unchanged until the command ends"
    )
