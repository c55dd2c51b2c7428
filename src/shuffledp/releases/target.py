"""The search, before a record is read, for the local budgets at which a target epsilon is certified.

They have one size: of one budget for everybody the budget itself; of a column of budgets the factor by which all are
lowered, at most 1, since a column says what people allow.

The shape of reports (the size of a subset, the windows of a number) depends on the budgets, so the certified epsilon
may jump as they grow. The size is searched for within one shape; if it leads to another shape, the search goes on from
there. The size that is finally used was certified for exactly this population, with its own shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

from shuffledp.accounting import calibrate_scale
from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput, shown
from shuffledp.records.people import Headcount, RowBudgets
from shuffledp.setting import Guarantee

Certify = Callable[[int, Headcount], Guarantee]
"""Function of a question's index and of people that returns the certified guarantee."""
Compose = Callable[[Sequence[Guarantee]], float]
"""Function of several guarantees of the same people that returns their joint epsilon (nats)."""

_TURNS = 8
"""Number of shapes tried before budgets are lowered until they are certified with their own shape."""
_LOWER = 0.97
_CLOSE = 1.005
"""Relative precision of the largest size for several questions: half a percent."""
_SAFE = 1.0 - 2e-9
"""Factor that leaves room for the rounding of a certified epsilon to ten digits."""


def checked_target(target: float) -> float:
    """Return a target epsilon as a float, after checking that it is a positive, finite number of nats."""
    real = isinstance(target, int | float) and not isinstance(target, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not real or not 0.0 < target < math.inf:
        raise InvalidInput(f"`target_epsilon` must be a positive number of nats; got {shown(target)}", "target_epsilon")
    return float(target)


def sized(people: Headcount, size: float) -> Headcount:
    """Return the same people with all budgets multiplied by ``size``.

    Parameters
    ----------
    people : Headcount
        People with the budgets that a column states, or with a budget of 1 for everybody.
    size : float
        Factor of all budgets, positive; at most 1 for a column.
    """
    budgets = people.population
    who = replace(people.who, factor=size) if _by_column(people) else RowBudgets(size, delta0=people.who.delta0)
    return replace(people, who=who, population=Budgets(budgets.epsilons * size, budgets.counts, budgets.deltas))


def _by_column(people: Headcount) -> bool:
    return isinstance(people.who.epsilon0, str)


def size_within(
    target: float, questions: int, groups: Sequence[Headcount], certify: Certify, together: Compose | None
) -> float:
    """Return about the largest size whose guarantee is within the target, for every question and every group.

    Parameters
    ----------
    target : float
        The central epsilon, positive.
    questions : int
        Number of questions, at least 1.
    groups : sequence of Headcount
        The people of each group; see `sized`.
    certify : callable
        See `Certify`.
    together : callable, optional
        See `Compose`; needed for several questions.

    Raises
    ------
    InvalidInput
        If a question does not allow such a release.
    """
    every = product(range(questions), groups)
    size = min(_of_one(target, people, partial(certify, at)) for at, people in every)
    if questions == 1 or together is None:
        return size

    def holds(size: float) -> bool:
        return all(
            together([certify(at, sized(people, size)) for at in range(questions)]) <= target for people in groups
        )

    low, high = min(_safe(target, people) for people in groups) / questions, size
    if holds(high):
        return high
    while high > low * _CLOSE:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _safe(target: float, people: Headcount) -> float:
    """Return a size whose pure budgets need no crowd: all rows of a person stay within the target."""
    return target / people.group_size * _SAFE / float(people.population.epsilons[-1])


def _of_one(target: float, people: Headcount, certify: Callable[[Headcount], Guarantee]) -> float:
    """Return the size for one question of one group."""
    column, largest = _by_column(people), float(people.population.epsilons[-1])
    if column and certify(people).epsilon.upper <= target:
        return 1.0
    size = _safe(target, people)
    for _ in range(_TURNS):
        guarantee = certify(sized(people, size))
        candidate = calibrate_scale(guarantee.setting, target, guarantee.delta).epsilon0 / largest
        if column:  # its products with this size are rounded anew
            candidate = min(candidate * _SAFE, 1.0)
        if candidate <= size:
            break
        size = candidate
        at = certify(sized(people, candidate))
        if at.setting.randomizer == guarantee.setting.randomizer and (not column or at.epsilon.upper <= target):
            return candidate
    while certify(sized(people, size)).epsilon.upper > target:
        size = max(size * _LOWER, _safe(target, people))
    return size
