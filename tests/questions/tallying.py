"""Tallies of given reports, in pieces and orders of the test's choice."""

from __future__ import annotations

from shuffledp.budgets import Budgets, level_indices
from shuffledp.questions.question import Task
from shuffledp.questions.tally import tally_for


def task_of(family, epsilons, seen, weights="population", deltas=None):
    return Task(family, Budgets.of(epsilons, deltas), seen, weights)


def tallied(task, reports, epsilons, pieces=None, deltas=None):
    """One tally for each piece (indices or slices); by default one of all."""
    levels = level_indices(task.budgets, epsilons, deltas)
    tallies = []
    for piece in pieces if pieces is not None else [slice(None)]:
        tallies.append(tally_for(task))
        tallies[-1].add(reports[piece], levels[piece])
    return tallies
