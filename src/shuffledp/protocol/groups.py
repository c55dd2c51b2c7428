"""Who takes part in each of several public groups."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput, named
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.protocol.group_names import Groups
from shuffledp.protocol.owners import Owners, RowsPerPerson
from shuffledp.protocol.people import BudgetCounter, People, RowBudgets, counted_part, explained
from shuffledp.protocol.sources import Source


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
            owners.add(batch.texts(owners.column), batch.before, *budgets[-1])
    whole = np.concatenate(codes)
    owned = None if owners is None else owners.settle()
    size = 1 if owned is None else owned.group_size
    if owners is not None and owners.groups:
        owners.one_budget()
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
        mark = 0 if owners is None else owners.mark(used)
        found.append(People(who, counter.budgets(), whole.size, n, size, used, person, mark, (groups, place)))
    return found
