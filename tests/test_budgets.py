"""Populations as keys: equal ones are one key, made once however many levels, and anew in another process."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from shuffledp import Budgets


def test_equal_populations_are_one_key():
    one, other = Budgets.of([2.0, 0.5, 0.5]), Budgets([0.5, 2.0], [2, 1])
    assert one == other
    assert hash(one) == hash(other)
    assert len({one, other, Budgets([0.5, 2.0], [1, 2]), Budgets([0.5, 2.0], [2, 1], [0.0, 1e-9])}) == 3
    assert one != "a population"


def test_the_levels_are_read_once_for_the_key(monkeypatch):
    # they were read at each of a thousand looks into a table of remembered bounds: 8 s of 10 for a million levels
    many, reads = Budgets.of(np.linspace(0.1, 2.0, 1000)), []

    class Counting(np.ndarray):
        def tobytes(self, *args, **kwargs):
            reads.append(self)
            return super().tobytes(*args, **kwargs)

    for name in ("epsilons", "counts", "deltas"):
        object.__setattr__(many, name, getattr(many, name).view(Counting))
    table = {many: "known"}
    assert all(table[many] == "known" for _ in range(100))
    assert len(reads) == 3


def test_a_pickle_holds_the_levels_alone():
    # another process hashes bytes differently: a hash that travelled along would make equal populations two keys
    population = Budgets([0.5, 2.0], [900, 100], [0.0, 1e-8])
    key = hash(population), population.n, population.is_pure
    twin = pickle.loads(pickle.dumps(population))
    assert set(vars(twin)) == {"epsilons", "counts", "deltas"}
    assert (hash(twin), twin.n, twin.is_pure) == key
    assert twin == population
    for levels in (twin.epsilons, twin.counts, twin.deltas):
        with pytest.raises(ValueError, match="read-only"):
            levels[0] = 1
