from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from shuffledp.errors import InvalidInput
from shuffledp.randomizers import HadamardResponse, RandomizerLaw
from tests.randomizers import laws

E_VALUES = [Fraction(3, 2), Fraction(3), Fraction(20)]
SHARES = [Fraction(0), Fraction(1, 3), Fraction(9, 10)]


@pytest.mark.parametrize("E", E_VALUES)
@pytest.mark.parametrize("k", [2, 3, 4, 7])
def test_law_is_the_table(k, E):
    family = HadamardResponse(k)
    table = laws.hadamard_table(k, family.order, E)
    laws.check_is_a_law(table, E)
    (pair,) = family.pair_blankets(math.log(E))
    laws.check_pair(table, [Fraction(1, 2 * family.order)] * (2 * family.order), E, pair)
    counts = family.pair_counts(math.log(E))
    if k == 2:
        assert counts is None
    else:
        assert counts is not None
        laws.check_counts(table, counts)


@pytest.mark.costly("3-3")
@pytest.mark.parametrize(("k", "n"), [(2, 3), (3, 3)])
def test_no_real_protocol_exceeds_the_bound(k, n):
    family = HadamardResponse(k)
    for E in E_VALUES:
        table = laws.hadamard_table(k, family.order, E)
        assert laws.check_never_exceeded([table] * n, family, SHARES) > 0.4


def test_own_budgets_share_one_blanket():
    family = HadamardResponse(2)
    tables = [laws.hadamard_table(2, family.order, E) for E in (Fraction(3, 2), Fraction(4), Fraction(9))]
    assert laws.check_never_exceeded(tables, family, SHARES) > 0.4


@pytest.mark.parametrize("k", [2, 10**9])
@pytest.mark.parametrize("epsilon0", laws.BUDGETS)
def test_a_few_ulps_at_every_budget(k, epsilon0):
    with mpmath.workdps(400):
        E = mpmath.exp(mpmath.mpf(epsilon0))
        quarter = mpmath.mpf(1) / 4
        laws.check_accuracy(HadamardResponse(k), epsilon0, [2 / (1 + E), 2 * E / (1 + E), quarter, quarter, quarter])
        if k > 2:
            wanted = [E / (1 + E) / 2, 1 / (1 + E) / 2, 0.5, 0.25]
            found = [float(part) for part in HadamardResponse(k).pair_counts(epsilon0)]
            assert found == pytest.approx([float(value) for value in wanted], rel=16 * laws.ULP, abs=0)


def test_counts_have_the_shape_of_the_budgets():
    counts = HadamardResponse(5).pair_counts(np.zeros((2, 3)))
    assert [part.shape for part in counts] == [(2, 3)] * 4


def test_order_names_and_protocol():
    assert [HadamardResponse(k).order for k in (2, 3, 4, 7, 8, 10**9)] == [4, 4, 8, 8, 16, 2**30]
    assert HadamardResponse(10).name == "hadamard:10"
    assert isinstance(HadamardResponse(10), RandomizerLaw)
    assert HadamardResponse(10).mixture
    assert not HadamardResponse(2).two_point


@pytest.mark.parametrize("k", [1, 0, -3, 10**9 + 1, 2.0, False, "3"])
def test_bad_k(k):
    with pytest.raises(InvalidInput, match="Hadamard response takes a whole number k from 2"):
        HadamardResponse(k)


def test_bad_budgets():
    for epsilon0, message in laws.NOT_BUDGETS:
        with pytest.raises(InvalidInput, match=message):
            HadamardResponse(3).pair_counts(epsilon0)
