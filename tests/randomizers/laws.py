"""Mechanisms as explicit tables of exact fractions, straight from their definitions, and checks against them.

Nothing here knows of cells, weights or blankets: a table has one column per report.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mpf

from shuffledp.randomizers.base import PairBlanket, PairCounts, RandomizerLaw
from tests import oracles

ULP = 2.0**-53
BUDGETS = [0.0, 1e-300, 1e-6, 0.1, 1.0, math.log(3), 40.0, 360.0, 700.0]
NOT_BUDGETS = [(-1e-9, "got -1e-09"), (math.nan, "got nan"), (math.inf, "got inf"), (700.1, "0 to 700"), ("x", "'x'")]

Cells = dict[tuple[Fraction, Fraction], Fraction]


def unary_table(k: int, p: Fraction, q: Fraction) -> oracles.Channel:
    """Independent bits, 1 with chance p on the record's place and q elsewhere."""

    def law(x: int, bits: tuple[int, ...]) -> Fraction:
        own = (p if j == x else q for j in range(k))
        return math.prod((c if bit else 1 - c for c, bit in zip(own, bits, strict=True)), start=Fraction(1))

    return tuple(tuple(law(x, bits) for bits in itertools.product((0, 1), repeat=k)) for x in range(k))


def hashing_table(hashes: Sequence[Sequence[int]], g: int, E: Fraction) -> oracles.Channel:
    """A uniformly random one of the listed hashes, and g-ary randomized response of the hashed record."""
    each = Fraction(1, len(hashes)) / (E + g - 1)
    return tuple(tuple((E if y == h[x] else 1) * each for h in hashes for y in range(g)) for x in range(len(hashes[0])))


def all_hashes(k: int, g: int) -> list[tuple[int, ...]]:
    return list(itertools.product(range(g), repeat=k))


def hadamard_table(k: int, order: int, E: Fraction) -> oracles.Channel:
    """A random column of Sylvester's matrix, built by doubling, and the sign of row x + 1 by randomized response."""
    H = [[1]]
    while len(H) < order:
        H = [row + row for row in H] + [row + [-s for s in row] for row in H]
    each = Fraction(1, order) / (E + 1)
    return tuple(
        tuple((E if sign == H[x + 1][j] else 1) * each for j in range(order) for sign in (1, -1)) for x in range(k)
    )


def subset_table(k: int, d: int, E: Fraction) -> oracles.Channel:
    """Contains the record with chance d E/(d E + k - d); the other members are a uniformly random choice."""
    subsets = list(itertools.combinations(range(k), d))
    inside = d * E / (d * E + k - d)
    return tuple(
        tuple(inside / math.comb(k - 1, d - 1) if x in s else (1 - inside) / math.comb(k - 1, d) for s in subsets)
        for x in range(k)
    )


def check_is_a_law(table: oracles.Channel, E: Fraction) -> None:
    """Rows sum to 1, and the local epsilon is exactly log E."""
    assert all(sum(row) == 1 for row in table)
    assert oracles.ldp_ratio(table) == E


def cells_of(table: oracles.Channel, x0: int, x1: int, omega: Sequence[Fraction]) -> Cells:
    """Masses of omega by the two ratios, outputs with equal ratios merged."""
    found: Cells = {}
    for y, mass in enumerate(omega):
        key = (table[x0][y] / mass, table[x1][y] / mass)
        found[key] = found.get(key, Fraction(0)) + mass
    return found


def check_pair(table: oracles.Channel, omega: Sequence[Fraction], E: Fraction, pair: PairBlanket) -> None:
    """The stated pair is every pair of inputs of the table, and gamma omega is below every row."""
    assert sum(omega) == 1
    gamma = min(row[y] / mass for row in table for y, mass in enumerate(omega))
    assert pair.gamma == pytest.approx(float(gamma), rel=8 * ULP, abs=0)
    # 1e-15: the float, for the exact one
    assert all(
        row[y] >= Fraction(pair.gamma) * (1 - Fraction(1, 10**15)) * m for row in table for y, m in enumerate(omega)
    )
    stated = sorted(zip(pair.ratios0, pair.ratios1, pair.masses, pair.losses, strict=True))
    for x0, x1 in itertools.permutations(range(len(table)), 2):
        exact = sorted(
            (float(a), float(b), float(m), float(oracles.fraction_log(a / b)))
            for (a, b), m in cells_of(table, x0, x1, omega).items()
        )
        assert np.array(stated) == pytest.approx(np.array(exact), rel=32 * ULP, abs=0)
    assert pair.spread is None
    assert float(pair.losses.max()) == pytest.approx(float(oracles.fraction_log(E)), rel=4 * ULP, abs=0)


def check_counts(table: oracles.Channel, counts: PairCounts) -> None:
    """The chances of the outputs likelier under x0 than under x1, and the other way round, for all records."""
    for x0, x1, x2 in itertools.permutations(range(len(table)), 3):
        a = [y for y in range(len(table[0])) if table[x0][y] > table[x1][y]]
        b = [y for y in range(len(table[0])) if table[x0][y] < table[x1][y]]

        def chance(x: int, outputs: list[int]) -> float:
            return float(sum(table[x][y] for y in outputs))

        exact = (chance(x0, a), chance(x0, b), 1 - chance(x0, a) - chance(x0, b), chance(x2, a))
        assert exact == pytest.approx([float(part) for part in counts], rel=1e-13, abs=0)
        assert (chance(x1, b), chance(x1, a), chance(x2, b)) == pytest.approx(
            (exact[0], exact[1], exact[3]), rel=1e-13, abs=0
        )


def stated_bound(pair: PairBlanket, gammas: Sequence[float], ratio: Fraction) -> mpf:
    """Functional (I) of a stated pair at e^epsilon = ratio, the others' blanket masses given."""
    cells = [(mpf(m), mpf(a), mpf(b)) for m, a, b in zip(pair.masses, pair.ratios0, pair.ratios1, strict=True)]
    return oracles.blanket_delta(cells, [mpf(float(g)) for g in gammas], oracles.fraction_log(ratio))


def check_never_exceeded(
    tables: Sequence[oracles.Channel], family: RandomizerLaw, ratios: Sequence[Fraction], slack: float = 1e-12
) -> float:
    """The real shuffled protocol, users i with table i, stays below (I) for every victim; the largest quotient."""
    budgets = np.array([float(oracles.fraction_log(oracles.ldp_ratio(table))) for table in tables])
    gammas, best = family.blanket_mass(budgets), 0.0
    for victim, table in enumerate(tables):
        (pair,) = family.pair_blankets(float(budgets[victim]))
        top = oracles.ldp_ratio(table)
        for share in ratios:
            ratio = 1 + (top - 1) * share
            exact = oracles.ShuffledProtocol(tables).worst(victim, ratio)
            bound = stated_bound(pair, np.delete(gammas, victim), ratio)
            assert mpf(exact.numerator) / exact.denominator <= bound * (1 + slack)
            best = max(best, float(mpf(exact.numerator) / exact.denominator / bound))
    return best


def check_accuracy(family: RandomizerLaw, epsilon0: float, exact: Sequence[mpf]) -> None:
    """Gamma, the top ratio and the three masses to a few ulps, and losses and cells consistent with them."""
    (pair,) = family.pair_blankets(epsilon0)
    gamma, top, only, both, neither = (float(value) for value in exact)
    rows = [
        (only, top, gamma, epsilon0),
        (only, gamma, top, -epsilon0),
        (both, top, top, 0.0),
        (neither, gamma, gamma, 0.0),
    ]
    rows = [row for row in rows if row[0] > 0.0]
    stated = np.column_stack((pair.masses, pair.ratios0, pair.ratios1, pair.losses))
    assert stated == pytest.approx(np.array(rows), rel=16 * ULP, abs=0)
    assert pair.gamma == pytest.approx(gamma, rel=16 * ULP, abs=0)
    assert family.blanket_mass([epsilon0, epsilon0]) == pytest.approx([gamma] * 2, rel=16 * ULP, abs=0)
    assert family.blanket_mass(epsilon0).shape == ()
    assert family.blanket_mass(np.zeros((2, 3))) == pytest.approx(np.ones((2, 3)), rel=0, abs=0)
    assert 0.0 < pair.gamma <= 1.0
    if epsilon0 == 0.0:
        assert pair.gamma == 1.0
        assert (pair.ratios0 == 1.0).all()
        assert (pair.ratios1 == 1.0).all()
