"""From a wanted central epsilon to budgets, or to a number of rounds.

What is searched is only a choice among plans. Every plan that is accepted was certified to cost at most the target, so
the search may be as coarse as it likes: it gallops by factors of two, then halves, and never tries a plan of more than
twice the budgets, or rounds, of one that is too expensive.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from shuffledp.budgets import MAX_EPSILON0
from shuffledp.errors import InvalidInput
from shuffledp.learning.inputs import Clients, per_client
from shuffledp.learning.rounds import SendPlan
from shuffledp.learning.settings import Settings, accountant_of, plan_run
from shuffledp.numerics.interval import FloatArray

LARGEST_BUDGET, SMALLEST_BUDGET = 64.0, 2.0**-13
"""Largest budgets of a message that are tried: below, a message is next to nothing but noise."""
CAPPED = ", where the search ends: more might stay within the target as well"
"""Said of an answer that is the largest one that is tried."""
MOST_ROUNDS = 10_000
_HALVINGS = 5
"""Of one factor of two: budgets are found to 2^(1/32), or 2.2 %."""


def largest_budget(target: float, epsilon_of: Callable[[float], float]) -> float:
    """Return the largest budget found, in nats, whose certified epsilon is at most the target.

    Parameters
    ----------
    target : float
        Wanted central epsilon in nats, positive.
    epsilon_of : callable
        Certified epsilon of the whole training if the largest budget of a message is the given one; infinite where
        nothing is certified.

    Returns
    -------
    float
        In [2^-13, 64], within 2.2 % of the first one found to be too large; 64 if none was found, as no larger one is
        tried.

    Raises
    ------
    InvalidInput
        If even the smallest budget costs more.

    Examples
    --------
    >>> round(largest_budget(1.0, lambda budget: budget / 4.0), 2)
    4.0
    """
    fine, low = 0.0, 1.0
    while not fine and low >= SMALLEST_BUDGET:
        fine, low = (low, low) if epsilon_of(low) <= target else (0.0, low / 2.0)
    if not fine:
        raise InvalidInput(
            f"no budgets down to epsilon0 = {SMALLEST_BUDGET:.2g} keep all rounds within "
            f"`target_epsilon = {target:g}`; ask for fewer `rounds`, or a larger `target_epsilon`"
        )
    while fine < LARGEST_BUDGET and fine >= 1.0 and epsilon_of(2.0 * fine) <= target:
        fine *= 2.0
    if fine >= LARGEST_BUDGET:
        return fine
    step = math.sqrt(2.0)
    for _ in range(_HALVINGS):
        fine = fine * step if epsilon_of(fine * step) <= target else fine
        step = math.sqrt(step)
    return fine


def most_rounds(target: float, epsilon_of: Callable[[int], float]) -> int:
    """Return the largest number of rounds found, at most 10,000, whose certified epsilon is at most the target.

    Parameters
    ----------
    target : float
        Wanted central epsilon, positive.
    epsilon_of : callable
        Certified epsilon, in nats, of a given number of rounds.

    Raises
    ------
    InvalidInput
        If one round costs more.

    Examples
    --------
    >>> most_rounds(1.0, lambda rounds: rounds / 100.0)
    100
    """
    if epsilon_of(1) > target:
        raise InvalidInput(
            f"one round costs more than `target_epsilon = {target:g}`; give smaller budgets, or a "
            "larger `target_epsilon`"
        )
    fine, bad = 1, MOST_ROUNDS + 1
    while fine < MOST_ROUNDS and bad > MOST_ROUNDS:
        tried = min(2 * fine, MOST_ROUNDS)
        fine, bad = (tried, bad) if epsilon_of(tried) <= target else (fine, tried)
    while bad - fine > 1 and fine < MOST_ROUNDS:
        middle = (fine + bad) // 2
        fine, bad = (middle, bad) if epsilon_of(middle) <= target else (fine, middle)
    return fine


def noise_of_a_step(s: Settings, plan: SendPlan, numbers: int) -> float:
    """Return the typical length of the noise in one model step, in units of the clipping bound.

    Parameters
    ----------
    s : Settings
        Settings of the run.
    plan : SendPlan
        Message plan with all clients' noise scales and weights.
    numbers : int
        Numbers in a message.
    """
    present = np.flatnonzero(plan.weights * plan.gains > 0.0)
    wide: FloatArray = plan.scales[present] * (math.sqrt(2.0) if s.mechanism == "laplace" else 1.0)
    if s.seen == "users":
        spread = float(np.median(wide))
    else:
        weights, gains = plan.weights[present], plan.gains[present]
        spread = math.sqrt(float(((weights * wide) ** 2).sum())) / float((weights * gains).sum())
    return spread * plan.grid * math.sqrt(numbers) / float(s.clip)


def aimed(s: Settings, clients: Clients, numbers: int, notes: list[str]) -> Settings:
    """Return the settings with budgets, or rounds, chosen to meet ``target_epsilon``; unchanged without a target.

    Parameters
    ----------
    s : Settings
        Checked settings of the run.
    clients : Clients
        The clients and their examples.
    numbers : int
        Numbers in a message.
    notes : list of str
        A sentence on the chosen budgets or rounds is appended.

    Raises
    ------
    InvalidInput
        If nothing that may be tried meets the target, or budgets are bad.
    """
    if s.target_epsilon is None:
        return s
    budgets, target = per_client(s.epsilon0, clients, "epsilon0"), float(s.target_epsilon)
    if not ((budgets >= 0.0) & (budgets <= MAX_EPSILON0)).all() or not budgets.any():
        plan_run(s, clients, numbers, [])  # says what is wrong with them

    found = _searched(s, budgets, target, clients, numbers, certified=False)
    plan, cost = _cost(found, clients, numbers, certified=True)
    if cost > target:  # the tier with the least noise was not the worst
        found = _searched(s, budgets, target, clients, numbers, certified=True)
        plan, cost = _cost(found, clients, numbers, certified=True)
    if s.rounds is None:
        end = CAPPED if found.rounds == MOST_ROUNDS else ""
        what = f"{found.rounds:,} rounds were found{end}"
    else:
        kept: FloatArray = np.asarray(found.epsilon0)[budgets > 0.0]
        low, high = float(kept.min()), float(kept.max())
        end = CAPPED if high >= LARGEST_BUDGET else ""
        each = f"{high:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
        what = f"budgets of a message of {each} ({high / float(budgets.max()):.4g} times those given) were found{end}"
    noise = noise_of_a_step(found, plan, numbers)
    notes.append(
        f"for a target epsilon of {target:g} {what}: {found.rounds:,} rounds with everybody there cost {cost:.4g}, and "
        f"the noise of one step is {noise:.3g} times as long as the longest clipped gradient"
    )
    return found


def _cost(s: Settings, clients: Clients, numbers: int, *, certified: bool) -> tuple[SendPlan, float]:
    """Return the plan, and what all its rounds cost with everybody there; only a guess unless ``certified``."""
    plan, present = plan_run(s, clients, numbers, [])
    accountant = accountant_of(s, plan)
    ask = accountant.epsilon_after if certified else accountant.guess_after
    return plan, ask(plan.messages(present), s.delta, s.rounds)


def _searched(
    s: Settings, budgets: FloatArray, target: float, clients: Clients, numbers: int, *, certified: bool
) -> Settings:
    """Return the settings with the budgets, or rounds, that the search ends at."""
    if s.rounds is not None:
        top = float(budgets.max())

        def scaled(largest: float) -> Settings:
            return replace(s, epsilon0=budgets * (largest / top))

        return scaled(
            largest_budget(target, lambda largest: _cost(scaled(largest), clients, numbers, certified=certified)[1])
        )
    plan, present = plan_run(s, clients, numbers, [])
    accountant, counts = accountant_of(s, plan), plan.messages(present)  # one for all, for it keeps the profiles
    ask = accountant.epsilon_after if certified else accountant.guess_after
    return replace(s, rounds=most_rounds(target, lambda rounds: ask(counts, s.delta, rounds)))
