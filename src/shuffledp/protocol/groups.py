"""Public groups: a column that says to which group a row belongs, and who takes part in each."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput, named, shown
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.protocol.columns import category_codes
from shuffledp.protocol.owners import Owners, RowsPerPerson
from shuffledp.protocol.people import BudgetCounter, People, RowBudgets, counted_part, explained
from shuffledp.protocol.sources import Batch, Source

MOST = 1000


@dataclass(frozen=True)
class Groups:
    """Groups whose names are public, and so is who belongs to which.

    Parameters
    ----------
    column : str
        The column with each row's group.
    names : tuple of hashable
        The groups, at least one, known beforehand.

    Raises
    ------
    InvalidInput
        If there is none, a name is given twice, or there are more than 1,000.
    """

    column: str
    names: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.names) <= MOST or len(set(self.names)) < len(self.names):
            raise InvalidInput(
                f"`groups` must name 1 to {MOST:,} different groups, known beforehand; got {len(self.names)}, of which "
                f"{len(set(self.names))} differ"
            )

    def codes(self, batch: Batch) -> NDArray[np.int64]:
        """Return the place of each row's group, shape (rows,).

        Raises
        ------
        InvalidInput
            If a row belongs to none of them.
        """
        column = batch.texts(self.column)
        try:
            return category_codes(column, self.names, batch.before)
        except InvalidInput:
            known = {str(name) for name in self.names}
            row = next(row for row, entry in enumerate(column) if entry is None or str(entry).strip() not in known)
            entry = column[row]
            empty = entry is None or not str(entry).strip()
            what = "is missing" if empty else f"is {shown(entry)}, none of the groups"
            raise InvalidInput(
                f"{self.column} in row {batch.before + row + 1} {what}; a person's group is public: give every row one "
                "of those that `groups` names, or name this one too"
            ) from None


def count_groups(
    source: Source,
    who: RowBudgets,
    person: str | None,
    rows_per_person: RowsPerPerson,
    random: Randomness,
    groups: Groups,
) -> list[People]:
    """Count each group's budgets and people: the first pass, which reads no record.

    Parameters
    ----------
    source, who, person, rows_per_person, random
        As for `count_people`.
    groups : Groups
        The groups.

    Returns
    -------
    list of People
        One a group, in order; they share nobody.

    Raises
    ------
    InvalidInput
        As `count_people`; if a group is empty, or a person has rows in several.
    """
    owners = None if person is None else Owners(person, rows_per_person, random)
    texts = (*who.texts, groups.column, *(() if person is None else (person,)))
    codes: list[NDArray[np.int64]] = []
    budgets: list[tuple[FloatArray, FloatArray]] = []
    # a missing group is refused here, with a line of its own
    gaps = (*who.gaps, groups.column)
    for batch in explained(source.batches(numbers=who.numbers, texts=tuple(dict.fromkeys(texts)), gaps=gaps), who):
        shape = (batch.rows,)
        budgets.append((np.broadcast_to(who.epsilons(batch), shape), np.broadcast_to(who.deltas(batch), shape)))
        codes.append(groups.codes(batch))
        if owners is not None:
            owners.add(batch.texts(owners.column), batch.before)
    whole = np.concatenate(codes)
    owned = None if owners is None else owners.settle()
    size = 1 if owned is None else owned.group_size
    if owners is not None and owners.groups:
        owners.one_budget(*(np.concatenate(column) for column in zip(*budgets, strict=True)))
    if owners is None or size == 1:
        everybody = None
    else:
        everybody = owners.per_group(whole, len(groups.names))
    found: list[People] = []
    for place, name in enumerate(groups.names):
        used = whole == place
        if owned is not None and owned.used is not None:
            used &= owned.used
        if not used.any():
            raise InvalidInput(
                f"nobody is in the group {named(str(name))} of the column {groups.column}; leave it out of `groups`"
            )
        counter, before = BudgetCounter(), 0
        for epsilons, deltas in budgets:
            part = used[before : before + epsilons.size]
            counter.add(counted_part(epsilons[part], deltas[part], int(part.sum())))
            before += epsilons.size
        n = int(used.sum()) if everybody is None else everybody[place]
        found.append(People(who, counter.budgets(), whole.size, n, size, used))
    return found
