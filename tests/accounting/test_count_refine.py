"""Boxes of record vectors that are cut where they matter (docs/theorems/count.md, "How it is computed")."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from shuffledp.accounting.theorems.clones.pair import victim_line
from shuffledp.accounting.theorems.count.bound import RefinedCover, worst_count
from shuffledp.accounting.theorems.count.channel import RecordVectors
from shuffledp.accounting.theorems.count.cover import CountCover, Groups
from shuffledp.budgets import Budgets


def _all_vectors(groups: Groups) -> np.ndarray:
    return np.array(list(itertools.product(*(range(int(n) + 1) for n in groups.counts))), dtype=float)


@pytest.mark.parametrize("goal", [-1e9, -9.0, -7.0, 0.0])
def test_cut_boxes_are_a_partition_and_stay_above_all_vectors(goal: float) -> None:
    groups = Groups(np.array([0.1, 0.3, 0.45, 0.5]), np.array([6.0, 5.0, 4.0, 3.0]))
    moving = Groups(groups.chances[:3], groups.counts[:3])
    every = _all_vectors(moving)
    every = np.concatenate((every, np.zeros((every.shape[0], 1))), axis=1)
    truth = RecordVectors(groups, every).log_psi(1.7)[0].max()
    cover, value = RefinedCover((CountCover.of(groups, 8),)).towards(1.7, goal, 10_000)
    inside = sum(
        ((every[:, None, :] >= part.first) & (every[:, None, :] <= part.last)).all(axis=2).sum(axis=1)
        for part in cover.parts
    )
    assert (inside == 1).all()
    assert value >= truth - 1e-12
    assert cover.log_psi_above(1.7) == pytest.approx(value, abs=1e-9)
    if goal == -1e9:  # cut to single vectors: exact
        assert value == pytest.approx(truth, abs=1e-9)


def test_too_few_boxes_leave_a_larger_number_and_nobody_out() -> None:
    groups = Groups(np.array([0.2, 0.4]), np.array([30.0, 30.0]))
    start = RefinedCover((CountCover.of(groups, 4),))
    values = [start.towards(0.8, -1e9, most)[1] for most in (0, 20, 200, 5000)]
    assert values == sorted(values, reverse=True)
    assert values[0] > values[-1]
    assert values[-1] >= RecordVectors(groups, _all_vectors(groups)).log_psi(0.8)[0].max() - 1e-12


@pytest.mark.costly(
    but=(
        "0.001-25-3",
        "1e-08-25-0",
        "1e-08-25-1",
        "1e-08-25-3",
    )
)
@pytest.mark.parametrize("victim", [0, 1, 3])
@pytest.mark.parametrize(("delta", "n"), [(1e-3, 25), (1e-8, 25), (1e-3, 100)])
def test_four_levels_are_closed_to_three_per_cent(victim: int, delta: float, n: int) -> None:
    """1.08 before at 25 users a level."""
    found = worst_count(Budgets([0.25, 0.5, 1.0, 2.0], [n] * 4), victim).epsilon(delta)
    assert 0.0 < found.upper <= 1.03 * found.lower


@pytest.mark.parametrize("seed", range(4))
def test_no_vector_of_a_hundred_people_is_above_the_upper_end(seed: int) -> None:
    rng = np.random.default_rng(seed)
    budgets = Budgets(np.sort(rng.uniform(0.1, 3.0, 3)), rng.integers(5, 40, 3))
    level = int(rng.integers(3))
    upper = worst_count(budgets, level).epsilon(1e-4).upper
    scale, excess = victim_line(upper, float(budgets.epsilons[level]))
    counts = budgets.counts.astype(float)
    counts[level] -= 1.0
    groups = Groups(1.0 / (1.0 + np.exp(budgets.epsilons)), counts)
    ones = np.floor(rng.random((400, 3)) * (counts + 1.0))
    shown = RecordVectors(groups, ones).log_psi(excess)[0].max() + math.log(scale)
    assert shown <= math.log(1e-4) + 1e-9


def test_climbing_finds_a_vector_that_is_at_least_as_bad() -> None:
    groups = Groups(np.array([0.1, 0.25, 0.4]), np.array([37.0, 53.0, 41.0]))
    vectors = RecordVectors.likely_worst(groups)
    start, best = vectors.worst(0.5), vectors.climbed(0.5)
    ends = [max(v.log_psi(0.5)[0][0], v.log_psi(0.5, zeros=True)[0][0]) for v in (start, best)]
    assert ends[1] >= ends[0]
    assert (best.ones >= 0).all()
    assert (best.ones <= groups.counts).all()
