"""The exact witness against the shuffled protocol written out in fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from mpmath import mpf

from shuffledp import (
    Budgets,
    Channel,
    HadamardResponse,
    Laplace,
    LocalHashing,
    OutOfRegime,
    RandomizedResponse,
    Setting,
    SubsetSelection,
    UnaryEncoding,
    certify,
)
from shuffledp.accounting.certify import bounds
from tests import oracles
from tests.randomizers import laws

E = Fraction(3)
EPSILON0 = math.log(3)


def setting(budgets, randomizer, seen="reports"):
    return Setting(budgets, randomizer, seen=seen, neighboring="replace-one")


def multiset_law(rows):
    """Law of the multiset of independent reports, one per row."""
    found = {(): Fraction(1)}
    for row in rows:
        after = {}
        for counts, chance in found.items():
            for y, p in enumerate(row):
                key = tuple(sorted((*counts, y)))
                after[key] = after.get(key, Fraction(0)) + chance * p
        found = after
    return found


def exact(table, x0, x1, x2, n, ratio):
    others = [table[x2]] * (n - 1)
    return oracles.hockey_stick(multiset_law([table[x0], *others]), multiset_law([table[x1], *others]), ratio)


TABLES = [
    (RandomizedResponse(4), oracles.krr_channel(4, E)),
    (UnaryEncoding(3), laws.unary_table(3, Fraction(1, 2), 1 / (E + 1))),
    (LocalHashing(3, 2), laws.hashing_table(laws.all_hashes(3, 2), 2, E)),
    (HadamardResponse(3), laws.hadamard_table(3, 4, E)),
    (HadamardResponse(4), laws.hadamard_table(4, 8, E)),
    (SubsetSelection(5, 2), laws.subset_table(5, 2, E)),
]


@pytest.mark.parametrize(("family", "table"), TABLES, ids=lambda v: getattr(v, "name", ""))
@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_witness_is_the_protocols_own_divergence(family, table, n):
    # sqrt(E) is irrational for SUE, so only families with rational tables are here
    profile = bounds["reports-exact"].profile(setting(Budgets([EPSILON0], [n]), family), EPSILON0)
    for ratio in (Fraction(1), Fraction(6, 5), Fraction(2)):
        truth = exact(table, 0, 1, 2, n, ratio)
        found = profile.delta(math.log(ratio))
        assert found.lower <= float(truth) * (1 + 1e-12)
        assert float(truth) <= found.upper * (1 + 1e-12)
        assert found.width <= 1e-9


def test_channel_takes_the_most_telling_records():
    rng = np.random.default_rng(3)
    table = [[Fraction(int(w), 64) for w in row] for row in rng.multinomial(52, [0.25] * 4, size=4) + 3]
    assert all(sum(row) == 1 for row in table)
    channel = Channel([[float(p) for p in row] for row in table])
    n, ratio = 3, Fraction(11, 10)
    found = bounds["reports-exact"].profile(setting(Budgets([channel.epsilon0], [n]), channel), channel.epsilon0)
    best = max(exact(table, *records, n, ratio) for records in permutations(range(4), 3))
    some = [
        max(exact(table, *p, n, ratio), exact(table, p[1], p[0], p[2], n, ratio)) for p in permutations(range(4), 3)
    ]
    value = found.delta(math.log(1.1))
    assert any(abs(value.lower - float(truth)) < 1e-10 for truth in some)  # a real pair of neighbours
    assert value.lower >= 0.5 * float(best)
    first, second = found.delta_pair(math.log(1.1))
    assert max(first.lower, second.lower) == value.lower


@pytest.mark.costly("60")
@pytest.mark.parametrize("n", [60, 2000])
def test_never_above_a_bound_and_near_it(n):
    for family in (RandomizedResponse(10), UnaryEncoding(10), UnaryEncoding(10, optimized=False), HadamardResponse(10)):
        found = certify(setting(Budgets([1.0], [n]), family), 1e-6).epsilon
        assert 0.7 * found.upper < found.lower <= found.upper


def test_krr_of_three_agrees_with_the_pair_of_counts():
    question = setting(Budgets([1.0], [500]), RandomizedResponse(3))
    whole, pair = (bounds[key].profile(question, 1.0).delta(0.1) for key in ("reports-exact", "krr-exact"))
    assert mpf(whole.lower) <= mpf(pair.upper)
    assert mpf(pair.lower) <= mpf(whole.upper)


def test_refusals_name_the_reason():
    one = Budgets([1.0], [100])
    for question, match in (
        (setting(one, "any"), "stated discrete randomizer; got any"),
        (setting(one, Laplace(0, 1)), "stated discrete randomizer; got laplace"),
        (setting(one, RandomizedResponse(2)), "nothing to add"),
        (setting(Budgets([0.5, 1.0], [50, 50]), RandomizedResponse(4)), "one budget; got 2 levels"),
        (setting(one, RandomizedResponse(4), "sum"), "only their sum"),
    ):
        with pytest.raises(OutOfRegime, match=match):
            bounds["reports-exact"].profile(question, 1.0)
    shown = setting(Budgets([0.5, 1.0], [50, 50]), RandomizedResponse(4), "levels")
    alone = setting(Budgets([1.0], [50]), RandomizedResponse(4))
    witness = bounds["reports-exact"]
    assert witness.profile(shown, 1.0).delta(0.1) == witness.profile(alone, 1.0).delta(0.1)
