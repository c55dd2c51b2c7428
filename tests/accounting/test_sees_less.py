"""A server that sees less never gets a worse guarantee: sum <= reports <= levels, level by level."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from shuffledp import (
    Budgets,
    Gaussian,
    HadamardResponse,
    Laplace,
    OneBit,
    Piecewise,
    RandomizedResponse,
    Setting,
    UnaryEncoding,
    certify,
)

POPULATIONS = {
    "one person": Budgets([1.0], [1]),
    "one level": Budgets([1.0], [1000]),
    "few": Budgets([0.5, 1.0], [3, 4]),
    "two levels": Budgets([0.5, 2.0], [9000, 1000]),
    "three levels": Budgets([0.1, 0.5, 1.0], [5400, 3700, 900]),
    "wide apart": Budgets([0.05, 3.0], [10, 200]),
}
RANDOMIZERS = {
    "any": "any",
    "rr": RandomizedResponse(2),
    "one-bit": OneBit(0, 1),
    "krr:5": RandomizedResponse(5),
    "hadamard": HadamardResponse(10),
    "sue": UnaryEncoding(6),
    "piecewise": Piecewise(0, 1),
    "laplace": Laplace(0, 1),
}
SEEN = ("sum", "reports", "levels")
TOLERANCE = 1e-9
"""Relative, of the inversions' last steps; no bound may be worse by more."""


def uppers(budgets, randomizer, seen, delta, situation):
    setting = Setting(budgets, randomizer, seen=seen, neighboring="replace-one", **situation)
    return np.array([level.epsilon.upper for level in certify(setting, delta).levels])


def check(budgets, randomizer, deltas=(1e-3, 1e-6), **situation):
    for delta in deltas:
        found = [uppers(budgets, randomizer, seen, delta, situation) for seen in SEEN]
        for (less, first), (more, second) in itertools.pairwise(zip(SEEN, found, strict=True)):
            assert np.all(first <= second * (1 + TOLERANCE)), (less, more, first, second)


@pytest.mark.costly(but=("one person-any",))
@pytest.mark.one_in(5)
@pytest.mark.parametrize("randomizer", RANDOMIZERS.values(), ids=RANDOMIZERS)
@pytest.mark.parametrize("budgets", POPULATIONS.values(), ids=POPULATIONS)
def test_less_seen_is_never_worse(budgets, randomizer):
    check(budgets, randomizer)


@pytest.mark.costly(but=("any-{'colluding': 2}",))
@pytest.mark.one_in(3)
@pytest.mark.parametrize("situation", [{"colluding": 2}, {"missing": 0.1}, {"group_size": 2}], ids=str)
@pytest.mark.parametrize("key", ["any", "rr", "krr:5"])
def test_less_seen_is_never_worse_in_other_situations(key, situation):
    check(POPULATIONS["two levels"], RANDOMIZERS[key], (1e-6,), **situation)


@pytest.mark.costly
@pytest.mark.one_in(2)
@pytest.mark.parametrize("key", ["any", "rr"])
def test_less_seen_is_never_worse_over_rounds(key):
    check(POPULATIONS["one level"], RANDOMIZERS[key], (1e-6,), rounds=10)


@pytest.mark.one_in(4)
@pytest.mark.slow
@pytest.mark.parametrize("situation", [{"rounds": 3}, {"reports_per_user": 2}, {"group_size": 2}], ids=str)
@pytest.mark.parametrize("key", RANDOMIZERS)
def test_less_seen_is_never_worse_for_every_randomizer(key, situation):
    check(POPULATIONS["two levels"], RANDOMIZERS[key], (1e-6,), **situation)


@pytest.mark.slow
def test_less_seen_is_never_worse_with_gaussian_noise():
    check(Budgets([1.0, 2.0], [50, 20], [1e-8, 1e-8]), Gaussian(0, 1), (1e-6,))


@pytest.mark.costly(but=("any",))
@pytest.mark.parametrize("key", ["any", "rr", "krr:5"])
def test_less_seen_is_never_worse_with_many_levels(key):
    budgets = Budgets(np.linspace(0.05, 1.0, 40), [20] * 40)
    check(budgets, RANDOMIZERS[key], (1e-6,))
