"""Random questions of every kind: `certify` answers or refuses, never contradicts itself, never warns.

A witness above an upper bound raises InconsistentBounds, an interval with its ends crossed a ValueError, and any
warning is an error here. What is asked is drawn from fixed seeds; budgets, sizes and deltas reach the ends of
their ranges.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from shuffledp.accounting import certify
from shuffledp.budgets import Budgets
from shuffledp.numerics.floats import few_digits_up
from shuffledp.randomizers import (
    Channel,
    Gaussian,
    HadamardResponse,
    Laplace,
    LocalHashing,
    OneBit,
    RandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
)
from shuffledp.setting import Setting

FAMILIES = (
    "any",
    RandomizedResponse(2),
    RandomizedResponse(3),
    RandomizedResponse(10),
    RandomizedResponse(10**9),
    OneBit(0.0, 1.0),
    UnaryEncoding(2),
    UnaryEncoding(20),
    UnaryEncoding(10**9, optimized=False),
    LocalHashing(10),
    LocalHashing(10, g=2),
    LocalHashing(10, g=7, collision="unknown"),
    LocalHashing(10, collision="unknown"),
    HadamardResponse(5),
    HadamardResponse(10**6),
    SubsetSelection(3),
    SubsetSelection(30),
    SubsetSelection(30, size=4),
)
SEEN = ("reports", "users", "levels", "sum")


def some_budgets(rng: np.random.Generator) -> list[float]:
    """1 to 5 budgets: ordinary ones, and now and then one of the ends."""
    found = [10.0 ** rng.uniform(-1.5, 0.7) for _ in range(rng.integers(1, 6))]
    ends = [0.0, 40.0, 1e-6, 12.0, 700.0]
    return [float(rng.choice(ends)) if rng.random() < 0.12 else budget for budget in found]


def some_counts(rng: np.random.Generator, levels: int) -> list[int]:
    n = 10.0 ** rng.uniform(0.0, 9.0)
    return [max(1, int(n * share)) for share in rng.dirichlet(np.ones(levels))]


def some_delta(rng: np.random.Generator) -> float:
    deep = rng.random() < 0.3
    return float(min(10.0 ** -(rng.uniform(12.0, 250.0) if deep else rng.uniform(0.3, 12.0)), 0.5))


def published(local: float) -> float:
    """Return a local bound as it is published: rounded outward, after what a product may lose."""
    return few_digits_up(local * (1 + 1e-12))


def ask(setting: Setting, delta: float) -> None:
    found = certify(setting, delta)
    budgets = setting.budgets
    for level in found.levels:
        assert 0.0 <= level.epsilon.lower <= level.epsilon.upper
        if budgets.is_pure and setting.seen != "users":
            assert level.epsilon.upper <= published(level.epsilon0 * setting.rounds * setting.changed_reports)
    if budgets.is_pure:
        assert found.epsilon.upper <= published(budgets.epsilons[-1] * setting.rounds * setting.changed_reports)
    assert not math.isnan(found.epsilon.lower)


def discrete_question(seed: int) -> tuple[Setting, float]:
    rng = np.random.default_rng(seed)
    epsilons = some_budgets(rng)
    family = FAMILIES[seed % len(FAMILIES)]
    if rng.random() < 0.15:
        matrix = rng.dirichlet(np.ones(4), size=3)
        family = Channel(matrix)
        epsilons = [max(epsilon, family.epsilon0) for epsilon in epsilons]
    budgets = Budgets(epsilons, some_counts(rng, len(epsilons)))
    seen = str(rng.choice(SEEN))
    return Setting(budgets, family, seen=seen, neighboring="replace-one"), some_delta(rng)  # type: ignore[arg-type]


def noise_question(seed: int) -> tuple[Setting, float]:
    rng = np.random.default_rng(10_000 + seed)
    gaussian = bool(rng.random() < 0.5)
    epsilons = some_budgets(rng)[:3]
    deltas = [10.0 ** -rng.uniform(2.0, 12.0) for _ in epsilons] if gaussian else None
    budgets = Budgets(epsilons, some_counts(rng, len(epsilons)), deltas)
    family = Gaussian(0.0, 1.0) if gaussian else Laplace(0.0, 1.0)
    seen = str(rng.choice(SEEN))
    return Setting(budgets, family, seen=seen, neighboring="replace-one"), some_delta(rng)  # type: ignore[arg-type]


def situation_question(seed: int) -> tuple[Setting, float]:
    """Not one plain round: several rounds, colluding or missing users, groups, several reports; few or many levels."""
    rng = np.random.default_rng(20_000 + seed)
    levels = int(rng.choice([1, 2, 3, 40]))
    epsilons = np.exp(rng.uniform(-3.0, 1.0, levels))
    budgets = Budgets(epsilons, [max(1, int(10.0 ** rng.uniform(0.0, 5.0))) for _ in range(levels)])
    family = FAMILIES[seed % len(FAMILIES)]
    chosen = {
        "rounds": int(rng.choice([1, 3, 40])),
        "colluding": int(rng.choice([0, 1, budgets.n // 2, budgets.n - 1])),
        "missing": float(rng.choice([0.0, 0.1])),
        "group_size": int(min(rng.choice([1, 3]), budgets.n)),
        "reports_per_user": int(rng.choice([1, 2])),
    }
    kept = {name: chosen[name] for name in rng.choice(sorted(chosen), 2, replace=False)}
    seen = str(rng.choice(SEEN))
    if seen == "users" and levels > 1:
        kept.pop("rounds", None)  # minutes
    setting = Setting(budgets, family, seen=seen, neighboring="replace-one", **kept)  # type: ignore[arg-type]
    return setting, some_delta(rng)


SLOWER = {20, 31, 32}


@pytest.mark.costly("0", "10", "27", "39", "5")
@pytest.mark.one_in(4)
@pytest.mark.parametrize("seed", [seed for seed in range(40) if seed not in SLOWER])
def test_discrete_questions(seed):
    ask(*discrete_question(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*sorted(SLOWER), *range(40, 340)])
def test_more_discrete_questions(seed):
    ask(*discrete_question(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_noise_questions(seed):
    ask(*noise_question(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_situations(seed):
    ask(*situation_question(seed))
