from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shuffledp.errors import InvalidInput
from shuffledp.randomizers import LocalHashing, RandomizedResponse, RandomizerLaw
from tests import oracles
from tests.randomizers import laws

E_VALUES = [Fraction(3, 2), Fraction(3), Fraction(20)]
SHARES = [Fraction(0), Fraction(1, 3), Fraction(9, 10)]


def uniform(table):
    return [Fraction(1, len(table[0]))] * len(table[0])


@pytest.mark.parametrize("E", E_VALUES)
@pytest.mark.parametrize(("k", "g"), [(2, 2), (2, 5), (3, 2), (3, 3), (4, 2), (3, 4)])
def test_law_is_the_table(k, g, E):
    table = laws.hashing_table(laws.all_hashes(k, g), g, E)
    laws.check_is_a_law(table, E)
    family = LocalHashing(k, g)
    (pair,) = family.pair_blankets(math.log(E))
    laws.check_pair(table, uniform(table), E, pair)
    counts = family.pair_counts(math.log(E))
    if k == 2:
        assert counts is None
    else:
        assert counts is not None
        laws.check_counts(table, counts)


@pytest.mark.costly
@pytest.mark.one_in(3)
@pytest.mark.parametrize(("k", "g", "n"), [(2, 2, 4), (2, 3, 3), (3, 2, 3)])
def test_no_real_protocol_exceeds_the_bound(k, g, n):
    for E in E_VALUES:
        table = laws.hashing_table(laws.all_hashes(k, g), g, E)
        assert laws.check_never_exceeded([table] * n, LocalHashing(k, g), SHARES) > 0.5


def test_own_budgets_share_one_blanket():
    tables = [laws.hashing_table(laws.all_hashes(2, 2), 2, E) for E in (Fraction(3, 2), Fraction(4), Fraction(4))]
    assert laws.check_never_exceeded(tables, LocalHashing(2, 2), SHARES) > 0.5


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_no_family_of_hashes_exceeds_the_unknown_row(data):
    k, g = data.draw(st.sampled_from([(2, 2), (3, 2), (2, 3)]))
    hashes = data.draw(st.lists(st.sampled_from(laws.all_hashes(k, g)), min_size=1, max_size=3))
    separates = any(len(set(h)) > 1 for h in hashes)
    E = Fraction(3)
    if separates:
        tables = [laws.hashing_table(hashes, g, E)] * 3
        laws.check_never_exceeded(tables, LocalHashing(k, g, collision="unknown"), SHARES)


def test_fewer_collisions_are_less_private():
    # a universal family (collision probability at most 1/g) that never collides: 12 times the row of "exact"
    E, n = Fraction(2), 8
    table = laws.hashing_table([(0, 1), (1, 0)], 2, E)
    ratio = 1 + (E - 1) * Fraction(9, 10)
    real = oracles.ShuffledProtocol([table] * n).worst(0, ratio, [(0, 1)])
    bounds = {}
    for collision in ("exact", "unknown"):
        family = LocalHashing(2, 2, collision)
        gammas = family.blanket_mass(np.full(n - 1, math.log(2)))
        bounds[collision] = laws.stated_bound(family.pair_blankets(math.log(2))[0], gammas, ratio)
    quotient = mpmath.mpf(real.numerator) / real.denominator
    assert quotient > 12 * bounds["exact"]
    assert 0.999 * bounds["unknown"] < quotient <= bounds["unknown"] * (1 + 1e-12)


@pytest.mark.parametrize("c", [Fraction(0), Fraction(1, 10), Fraction(1, 3), Fraction(2, 3), Fraction(1)])
def test_the_bound_falls_with_the_collision_probability(c):
    g, E = 3, mpmath.mpf(4)
    s = 1 / (E + g - 1)

    def bound(c):
        apart, together = (
            mpmath.mpf(1 - c.numerator / mpmath.mpf(c.denominator)),
            mpmath.mpf(c.numerator) / c.denominator,
        )
        cells = [(apart / g, g * E * s, g * s), (apart / g, g * s, g * E * s), (apart * (g - 2) / g, g * s, g * s)]
        cells += [(together / g, g * E * s, g * E * s), (together * (g - 1) / g, g * s, g * s)]
        return oracles.blanket_delta([cell for cell in cells if cell[0] > 0], [g * s] * 4, 0.7)

    assert bound(c) <= bound(c * Fraction(9, 10)) * (1 + mpmath.mpf(10) ** -30)


@pytest.mark.parametrize("g", [2, 3, 7, 10**9])
@pytest.mark.parametrize("epsilon0", laws.BUDGETS)
def test_a_few_ulps_at_every_budget(g, epsilon0):
    with mpmath.workdps(400):
        E, G = mpmath.exp(mpmath.mpf(epsilon0)), mpmath.mpf(g)
        s = 1 / (E + G - 1)
        exact = [G * s, G * E * s, (G - 1) / G**2, 1 / G**2, ((G - 1) / G) ** 2]
        family = LocalHashing(1000, g)
        laws.check_accuracy(family, epsilon0, exact)
        apart = (G - 1) / G
        wanted = [apart * E * s, apart * s, 1 / G + apart * (G - 2) * s, apart / G]
        found = [float(part) for part in family.pair_counts(epsilon0)]
        assert found == pytest.approx([float(value) for value in wanted], rel=16 * laws.ULP, abs=0)
        laws.check_accuracy(LocalHashing(9, g, "unknown"), epsilon0, [G * s, G * E * s, 1 / G, 0 * G, (G - 2) / G])


@pytest.mark.parametrize("epsilon0", [0.0, 0.3, 1.0, 5.0])
def test_unknown_hashes_are_randomized_response_on_the_range(epsilon0):
    family = LocalHashing(1000, collision="unknown")
    (pair,) = family.pair_blankets(epsilon0)
    (plain,) = RandomizedResponse(int(family.hash_range(epsilon0))).pair_blankets(epsilon0)
    for part in ("gamma", "masses", "ratios0", "ratios1", "losses"):
        assert getattr(pair, part) == pytest.approx(getattr(plain, part), rel=1e-14, abs=0)


def test_best_range():
    family = LocalHashing(10)
    assert family.hash_range([0.0, 1e-9, 0.5, 0.55, math.log(3), 5.0]).tolist() == [2, 2, 2, 4, 4, 128]
    assert family.hash_range(700.0) == family.largest_range == 2**12
    assert [LocalHashing(k).largest_range for k in (2, 3, 100, 10**6, 10**9)] == [2**24, 2**21, 2**8, 8, 4]
    assert LocalHashing(10, 7).hash_range([0.0, 700.0]).tolist() == [7, 7]
    (chosen,), (fixed,) = family.pair_blankets(1.0), LocalHashing(10, 4).pair_blankets(1.0)
    assert chosen.masses.tolist() == fixed.masses.tolist()
    assert family.blanket_mass([1.0, 3.0]).tolist() == [
        float(LocalHashing(10, 4).blanket_mass(1.0)),
        float(LocalHashing(10, 16).blanket_mass(3.0)),
    ]


def test_the_chosen_range_loses_what_is_stated():
    def variance(E, g):
        return (E + g - 1) ** 2 / ((g - 1) * (E - 1) ** 2)

    for epsilon0 in np.linspace(0.001, 8.0, 4000):
        E, g = math.exp(epsilon0), int(LocalHashing(10).hash_range(epsilon0))
        assert variance(E, g) == min(variance(E, 2**r) for r in range(1, 13))
        if E < 2**12 - 1:
            loss = variance(E, g) / variance(E, E + 1) - 1
            assert loss < (0.046 if epsilon0 > 0.68 else 0.0774)


def test_names_and_protocol():
    assert LocalHashing(10).name == "olh:10"
    assert LocalHashing(10, 4).name == "olh:10:4"
    assert LocalHashing(10, collision="unknown").name == "olh:10:unknown"
    assert isinstance(LocalHashing(10), RandomizerLaw)
    assert (LocalHashing(10).mixture, LocalHashing(10, 4).mixture, LocalHashing(2, 2).two_point) == (False, True, False)
    assert LocalHashing(10, 4, "unknown").pair_counts(1.0) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1,), "whole number k from 2"),
        ((2.5,), "whole number k from 2"),
        ((math.nan,), "whole number k from 2"),
        ((10, 1), "whole range g from 2"),
        ((10, -4), "whole range g from 2"),
        ((10, 4.0), "whole range g from 2"),
        ((10, None, "universal"), "'exact' or 'unknown'; got 'universal'"),
    ],
)
def test_bad_parameters(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        LocalHashing(*arguments)


def test_bad_budgets():
    for epsilon0, message in laws.NOT_BUDGETS:
        with pytest.raises(InvalidInput, match=message):
            LocalHashing(3).pair_blankets(epsilon0)
        with pytest.raises(InvalidInput, match=message):
            LocalHashing(3).hash_range(epsilon0)
