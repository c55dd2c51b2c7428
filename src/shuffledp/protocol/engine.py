"""Engines: who counts the people and tallies their reports; this process, or many machines.

The flow of a run (`shuffledp.protocol.running.Run`) is the same for every engine: people are counted, the guarantee is
certified, and only then records are read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import Randomness
from shuffledp.progress import Progress
from shuffledp.protocol.collecting import Part, collect
from shuffledp.protocol.group_names import Groups
from shuffledp.protocol.groups import count_groups
from shuffledp.protocol.owners import RowsPerPerson
from shuffledp.protocol.people import People, RowBudgets, count_people
from shuffledp.protocol.sources import Source, watched
from shuffledp.protocol.tally import Tally


class Engine(ABC):
    """Counts people, and tallies their reports, wherever the records are."""

    @abstractmethod
    def people(
        self,
        who: RowBudgets,
        person: str | None,
        rows_per_person: RowsPerPerson,
        random: Randomness,
        progress: Progress | None = None,
    ) -> People:
        """Count the budgets, and the rows of each person; no record is read.

        Parameters
        ----------
        who : RowBudgets
            Where the budget of each row comes from.
        person, rows_per_person
            As for `release`.
        random : Randomness
            Chooses one row of each person, where that is asked for.
        progress : callable, optional
            Called with the share of rows that were read, from 0 to 1, if the engine can tell.

        Raises
        ------
        InvalidInput
            On a bad budget, an empty person cell, or a person with more rows than allowed.
        """

    def groups(
        self,
        who: RowBudgets,
        person: str | None,
        rows_per_person: RowsPerPerson,
        random: Randomness,
        groups: Groups,
        progress: Progress | None = None,
    ) -> list[People]:
        """Count each group's budgets and people; no record is read. An engine that cannot refuses.

        Parameters
        ----------
        who, person, rows_per_person, random, progress
            As for `people`.
        groups : Groups
            The groups; they share nobody.

        Raises
        ------
        InvalidInput
            As `people`; if a group is empty, or the engine cannot tell groups apart.
        """
        raise InvalidInput(
            f"groups are not offered by {type(self).__name__}; ask each group by itself, and let a ledger know that "
            "they share nobody"
        )

    @abstractmethod
    def tallies(
        self,
        parts: Sequence[Part],
        random: Randomness,
        progress: Progress | None = None,
    ) -> list[Tally]:
        """Read the records once, randomize each for every question, and count the reports.

        Parameters
        ----------
        parts : sequence of Part
            The questions, at least one, each with its people, as `people` or `groups` counted them.
        random : Randomness
            Source of the noise, or, if it is private, the word that every machine is to use such a source of its own.
        progress : callable, optional
            Called with the share of rows that were read, from 0 to 1, if the engine can tell.

        Returns
        -------
        list of Tally
            Of all reports, one a question.

        Raises
        ------
        InvalidInput
            For bad rows, or if the data changed since the people were counted.
        """


@dataclass(frozen=True)
class OneMachine(Engine):
    """One process that reads a source, batch by batch.

    Parameters
    ----------
    source : Source
        The data.
    """

    source: Source

    def people(
        self,
        who: RowBudgets,
        person: str | None,
        rows_per_person: RowsPerPerson,
        random: Randomness,
        progress: Progress | None = None,
    ) -> People:
        """See `Engine.people`."""
        return count_people(watched(self.source, progress), who, person, rows_per_person, random)

    def groups(
        self,
        who: RowBudgets,
        person: str | None,
        rows_per_person: RowsPerPerson,
        random: Randomness,
        groups: Groups,
        progress: Progress | None = None,
    ) -> list[People]:
        """See `Engine.groups`."""
        return count_groups(watched(self.source, progress), who, person, rows_per_person, random, groups)

    def tallies(
        self,
        parts: Sequence[Part],
        random: Randomness,
        progress: Progress | None = None,
    ) -> list[Tally]:
        """See `Engine.tallies`."""
        return collect(parts, self.source, random, progress)
