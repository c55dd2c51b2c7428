"""The verb: one question, several in one run, or each of public groups, asked of people's records.

The order is part of the promise: budgets are counted, the guarantee is certified, a ledger is asked; only then records
are read and randomized. What leaves is a `Release`: an estimate together with its guarantee.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

from shuffledp.errors import InvalidInput
from shuffledp.guarantee import Guarantee
from shuffledp.releases.release import GroupedRelease, JointByGroup, JointRelease, Release
from shuffledp.releases.run import Run, entering_of, row_budgets
from shuffledp.releases.terms import Ask, People, Terms

if TYPE_CHECKING:
    from shuffledp.ledger import LevelTotal


@overload
def release(asked: Ask, people: People, terms: Terms) -> Release | GroupedRelease: ...


@overload
def release(asked: Sequence[Ask], people: People, terms: Terms) -> JointRelease | JointByGroup: ...


def release(
    asked: Ask | Sequence[Ask], people: People, terms: Terms
) -> Release | GroupedRelease | JointRelease | JointByGroup:
    """Ask people's records, and release private estimates with their certified guarantee.

    Parameters
    ----------
    asked : Ask or sequence of Ask
        One question; or several, at least one, each of which everybody answers with the whole local budget. `delta`,
        and a target, are then those of all questions together, too.
    people : People
        Whom. With `by` and `groups` each public group is shuffled by itself, so only its own members hide each other:
        small groups have weak guarantees. Which group a person is in is public, and not protected.
    terms : Terms
        On which terms. Of groups they hold for every one: delta must be below 1/n of the smallest.

    Returns
    -------
    Release, GroupedRelease, JointRelease or JointByGroup
        Of one question a `Release`, or with groups a `GroupedRelease`; of several questions a `JointRelease`, or with
        groups a `JointByGroup`.

    Raises
    ------
    InvalidInput
        On any bad argument, for the first bad row, counting from 1, and if the ledger's limit has no room.

    Examples
    --------
    >>> from shuffledp.questions.frequency import Frequency
    >>> people = People({"vote": ["yes", "no"] * 500, "budget": [0.5, 2.0] * 500}, budgets="budget")
    >>> release(Ask(Frequency(["yes", "no"]), "vote"), people, Terms(seen="reports", delta=1e-6)).n
    1000
    """
    asks = [asked] if isinstance(asked, Ask) else list(asked)
    if not asks:
        raise InvalidInput("there is no question; ask at least one")
    entering = entering_of(terms)
    run = Run(people, terms, row_budgets(people, terms.target_epsilon), entering)
    if isinstance(asked, Ask):
        (found,) = run.ask(asks)
        return found[0] if people.by is None else _by_group(people, found)
    together: list[tuple[float, tuple[LevelTotal, ...]]] = []

    def compose(certified: Sequence[Sequence[Guarantee]]) -> None:
        together.extend(_composed(each, terms.delta) for each in zip(*certified, strict=True))

    several = run.ask(asks, compose, lambda guarantees: _worth(guarantees, terms.delta))
    joint = [
        JointRelease(releases, epsilon, terms.delta, levels)
        for releases, (epsilon, levels) in zip(zip(*several, strict=True), together, strict=True)
    ]
    if people.by is None:
        return joint[0]
    return JointByGroup(people.by, dict(zip(people.groups or (), joint, strict=True)))


def _by_group(people: People, found: Sequence[Release]) -> GroupedRelease:
    assert people.by is not None
    return GroupedRelease(people.by, dict(zip(people.groups or (), found, strict=True)))


def _worth(guarantees: Sequence[Guarantee], delta: float) -> float:
    """Tell what several answers of the same people cost together."""
    from shuffledp.ledger import Spending, composed_epsilon

    return composed_epsilon([Spending.of(each).worst for each in guarantees], delta)


def _composed(guarantees: Sequence[Guarantee], delta: float) -> tuple[float, tuple[LevelTotal, ...]]:
    """Compose the questions, for everybody and level by level: the people of a level are the same in all of them."""
    from shuffledp.ledger import LevelTotal, Spending, composed_epsilon

    costs = [Spending.of(each) for each in guarantees]
    levels = tuple(
        LevelTotal(level[0].epsilon0, composed_epsilon([each.profile for each in level], delta))
        for level in zip(*(cost.levels for cost in costs), strict=True)
    )
    return composed_epsilon([cost.worst for cost in costs], delta), levels
