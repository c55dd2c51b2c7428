from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from shuffledp.errors import InvalidInput
from shuffledp.randomizers import RandomizerLaw, UnaryEncoding
from tests.randomizers import laws

SQUARES = [Fraction(9, 4), Fraction(4), Fraction(25)]


def table_of(k: int, E: Fraction, *, optimized: bool):
    root = Fraction(math.isqrt(E.numerator), math.isqrt(E.denominator))
    p, q = (Fraction(1, 2), 1 / (E + 1)) if optimized else (root / (1 + root), 1 / (1 + root))
    return laws.unary_table(k, p, q), q


@pytest.mark.parametrize("optimized", [True, False])
@pytest.mark.parametrize("E", SQUARES)
@pytest.mark.parametrize("k", [3, 4, 5])
def test_law_is_the_table(k, E, optimized):
    table, q = table_of(k, E, optimized=optimized)
    laws.check_is_a_law(table, E)
    family = UnaryEncoding(k, optimized=optimized)
    omega = [q ** sum(bits) * (1 - q) ** (k - sum(bits)) for bits in np.ndindex(*[2] * k)]
    (pair,) = family.pair_blankets(math.log(E))
    laws.check_pair(table, omega, E, pair)
    counts = family.pair_counts(math.log(E))
    assert counts is not None
    laws.check_counts(table, counts)


@pytest.mark.parametrize("optimized", [True, False])
@pytest.mark.parametrize("E", SQUARES)
def test_two_categories_give_nothing_away(E, optimized):
    table, _ = table_of(2, E, optimized=optimized)
    laws.check_is_a_law(table, E)
    family = UnaryEncoding(2, optimized=optimized)
    least = [min(column) for column in zip(*table, strict=True)]
    (pair,) = family.pair_blankets(math.log(E))
    laws.check_pair(table, [mass / sum(least) for mass in least], E, pair)
    assert pair.gamma == pytest.approx(float(sum(least)), rel=1e-15, abs=0)
    assert family.pair_counts(1.0) is None


@pytest.mark.costly("3-3-False", "3-3-True")
@pytest.mark.parametrize("optimized", [True, False])
@pytest.mark.parametrize(("k", "n"), [(2, 2), (2, 4), (3, 3)])
def test_no_real_protocol_exceeds_the_bound(k, n, optimized):
    for E in SQUARES:
        table, _ = table_of(k, E, optimized=optimized)
        family = UnaryEncoding(k, optimized=optimized)
        reached = laws.check_never_exceeded([table] * n, family, [Fraction(0), Fraction(1, 3), Fraction(9, 10)])
        assert reached > 0.5  # the bound is of the same size: nothing is counted twice


@pytest.mark.parametrize("optimized", [True, False])
@pytest.mark.parametrize("k", [2, 3, 10**9])
@pytest.mark.parametrize("epsilon0", laws.BUDGETS)
def test_a_few_ulps_at_every_budget(k, epsilon0, optimized):
    with mpmath.workdps(1500):
        E = mpmath.exp(mpmath.mpf(epsilon0))
        p, q = (
            (mpmath.mpf(1) / 2, 1 / (E + 1)) if optimized else (1 - 1 / (1 + mpmath.sqrt(E)), 1 / (1 + mpmath.sqrt(E)))
        )
        top, low = p / q, (1 - p) / (1 - q)
        exact = [low, top, q * (1 - q), q * q, (1 - q) ** 2]
        if k == 2:
            gamma = 1 - (p - q)
            neutral = p * q + (1 - p) * (1 - q)
            exact = [gamma, E * gamma, q * (1 - p) / gamma, mpmath.mpf(0), neutral / gamma]
        family = UnaryEncoding(k, optimized=optimized)
        laws.check_accuracy(family, epsilon0, exact)
        chances = family.chances([epsilon0])
        assert chances.own == pytest.approx([float(p)], rel=4 * laws.ULP, abs=0)
        assert chances.other == pytest.approx([float(q)], rel=4 * laws.ULP, abs=0)
        if k > 2:
            found = [float(part) for part in family.pair_counts(epsilon0)]
            wanted = [p * (1 - q), q * (1 - p), p * q + (1 - p) * (1 - q), q * (1 - q)]
            assert found == pytest.approx([float(value) for value in wanted], rel=16 * laws.ULP, abs=0)


def test_names_and_protocol():
    assert UnaryEncoding(10).name == "oue:10"
    assert UnaryEncoding(k=np.int64(3), optimized=False).name == "sue:3"
    assert isinstance(UnaryEncoding(3), RandomizerLaw)
    assert not UnaryEncoding(3).mixture
    assert not UnaryEncoding(2).two_point
    assert UnaryEncoding(3) == UnaryEncoding(3) != UnaryEncoding(3, optimized=False)
    UnaryEncoding(3).check_budgets([0.0, 700.0], [0.0, 0.1])


@pytest.mark.parametrize("k", [1, 0, -3, 10**9 + 1, 2.0, True, "3", None])
def test_bad_k(k):
    with pytest.raises(InvalidInput, match="unary encoding takes a whole number k from 2"):
        UnaryEncoding(k)


def test_bad_choice_and_budgets():
    with pytest.raises(InvalidInput, match="optimized must be True"):
        UnaryEncoding(3, optimized="sue")  # type: ignore[arg-type]
    for epsilon0, message in laws.NOT_BUDGETS:
        with pytest.raises(InvalidInput, match=message):
            UnaryEncoding(3).pair_blankets(epsilon0)
        with pytest.raises(InvalidInput, match=message):
            UnaryEncoding(3).blanket_mass(epsilon0)
    with pytest.raises(InvalidInput, match=r"in row 2 .* got -1\.0"):
        UnaryEncoding(3).chances([1.0, -1.0])
    with pytest.raises(InvalidInput, match="one number here"):
        UnaryEncoding(3).pair_blankets([1.0])  # type: ignore[arg-type]
