"""The search, before a record is read, for the local budget (one for everybody) at which a target epsilon is certified.

The shape of reports (the size of a subset, the windows of a number) depends on the budget, so the certified epsilon may
jump as the budget grows. The budget is searched for within one shape; if it leads to another shape, the search goes on
from there. The budget that is finally used was certified for exactly this population, with its own shape.
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
"""Number of shapes tried before the budget is lowered until it is certified with its own shape."""
_LOWER = 0.97
_CLOSE = 1.005
"""Relative precision of the largest budget for several questions: half a percent."""


def checked_target(target: float) -> float:
    """Return a target epsilon as a float, after checking that it is a positive, finite number of nats."""
    real = isinstance(target, int | float) and not isinstance(target, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not real or not 0.0 < target < math.inf:
        raise InvalidInput(f"`target_epsilon` must be a positive number of nats; got {shown(target)}", "target_epsilon")
    return float(target)


def with_budget(people: Headcount, budget: float) -> Headcount:
    """Return the same people with one budget (nats) for all of them."""
    population = Budgets([budget], [people.population.n], [float(people.population.deltas[0])])
    return replace(people, who=RowBudgets(budget), population=population)


def budget_within(
    target: float, questions: int, groups: Sequence[Headcount], certify: Certify, together: Compose | None
) -> float:
    """Return about the largest budget (nats) whose guarantee is within the target, for every question and every group.

    Parameters
    ----------
    target : float
        The central epsilon, positive.
    questions : int
        Number of questions, at least 1.
    groups : sequence of Headcount
        The people of each group, with any one budget.
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
    budget = min(_of_one(target, people, partial(certify, at)) for at, people in every)
    if questions == 1 or together is None:
        return budget

    def holds(budget: float) -> bool:
        return all(
            together([certify(at, with_budget(people, budget)) for at in range(questions)]) <= target
            for people in groups
        )

    low, high = min(_safe(target, people) for people in groups) / questions, budget
    if holds(high):
        return high
    while high > low * _CLOSE:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _safe(target: float, people: Headcount) -> float:
    """Return a pure local budget at which all rows of a person together stay within the target without shuffling."""
    return target / people.group_size * (1.0 - 2e-9)


def _of_one(target: float, people: Headcount, certify: Callable[[Headcount], Guarantee]) -> float:
    """Return the budget for one question of one group."""
    budget = _safe(target, people)
    for _ in range(_TURNS):
        guarantee = certify(with_budget(people, budget))
        found = calibrate_scale(guarantee.setting, target, guarantee.delta).epsilon0
        if found <= budget:
            break
        budget = found
        if certify(with_budget(people, found)).setting.randomizer == guarantee.setting.randomizer:
            return found
    while certify(with_budget(people, budget)).epsilon.upper > target:
        budget = max(budget * _LOWER, _safe(target, people))
    return budget
