from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest

from shuffledp.errors import InvalidInput
from shuffledp.randomizers import RandomizedResponse, RandomizerLaw, SubsetSelection
from tests.randomizers import laws

E_VALUES = [Fraction(3, 2), Fraction(3), Fraction(20)]
SHARES = [Fraction(0), Fraction(1, 3), Fraction(9, 10)]
SIZES = [(2, 1), (3, 1), (3, 2), (4, 1), (4, 2), (4, 3), (6, 3), (7, 2)]


@pytest.mark.parametrize("E", E_VALUES)
@pytest.mark.parametrize(("k", "d"), SIZES)
def test_law_is_the_table(k, d, E):
    table = laws.subset_table(k, d, E)
    laws.check_is_a_law(table, E)
    family = SubsetSelection(k, d)
    (pair,) = family.pair_blankets(math.log(E))
    laws.check_pair(table, [Fraction(1, len(table[0]))] * len(table[0]), E, pair)
    counts = family.pair_counts(math.log(E))
    if k == 2:
        assert counts is None
    else:
        assert counts is not None
        laws.check_counts(table, counts)


@pytest.mark.costly("4-2-3")
@pytest.mark.parametrize(("k", "d", "n"), [(2, 1, 5), (3, 2, 4), (4, 2, 3)])
def test_no_real_protocol_exceeds_the_bound(k, d, n):
    for E in E_VALUES:
        assert laws.check_never_exceeded([laws.subset_table(k, d, E)] * n, SubsetSelection(k, d), SHARES) > 0.5


def test_own_budgets_share_one_blanket():
    tables = [laws.subset_table(4, 2, E) for E in (Fraction(3, 2), Fraction(4), Fraction(9))]
    assert laws.check_never_exceeded(tables, SubsetSelection(4, 2), SHARES) > 0.5


@pytest.mark.parametrize(
    ("k", "d"), [(2, 1), (3, 1), (3, 2), (10, 4), (10**9, 1), (10**9, 5 * 10**8), (10**9, 10**9 - 1)]
)
@pytest.mark.parametrize("epsilon0", laws.BUDGETS)
def test_a_few_ulps_at_every_budget(k, d, epsilon0):
    with mpmath.workdps(400):
        E, K, D = mpmath.exp(mpmath.mpf(epsilon0)), mpmath.mpf(k), mpmath.mpf(d)
        gamma, pairs = K / (D * E + K - D), K * (K - 1)
        only, both, neither = D * (K - D) / pairs, D * (D - 1) / pairs, (K - D) * (K - D - 1) / pairs
        family = SubsetSelection(k, d)
        laws.check_accuracy(family, epsilon0, [gamma, E * gamma, only, both, neither])
        if k > 2:
            third = gamma * only * (E * (D - 1) + K - D - 1) / (K - 2)
            wanted = [only * E * gamma, only * gamma, gamma * (both * E + neither), third]
            found = [float(part) for part in family.pair_counts(epsilon0)]
            assert found == pytest.approx([float(value) for value in wanted], rel=16 * laws.ULP, abs=0)


@pytest.mark.parametrize("epsilon0", [0.0, 0.3, 5.0])
@pytest.mark.parametrize("k", [2, 10])
def test_subsets_of_one_are_randomized_response(k, epsilon0):
    (pair,), (plain,) = SubsetSelection(k, 1).pair_blankets(epsilon0), RandomizedResponse(k).pair_blankets(epsilon0)
    for part in ("gamma", "masses", "ratios0", "ratios1", "losses"):
        assert getattr(pair, part) == pytest.approx(getattr(plain, part), rel=1e-14, abs=0)


def test_best_size():
    assert SubsetSelection(10).subset_size([0.0, 1.0, 2.0, 700.0]).tolist() == [5, 3, 1, 1]
    assert SubsetSelection(3).subset_size([0.0, 1.0]).tolist() == [1, 1]
    assert SubsetSelection(10**9).subset_size(0.0) == 5 * 10**8
    assert SubsetSelection(10, 4).subset_size([0.0, 9.0]).tolist() == [4, 4]
    assert SubsetSelection(10).blanket_mass([1.0, 2.0]).tolist() == [
        float(SubsetSelection(10, 3).blanket_mass(1.0)),
        float(SubsetSelection(10, 1).blanket_mass(2.0)),
    ]


def test_names_and_protocol():
    assert SubsetSelection(10).name == "subset:10"
    assert SubsetSelection(10, 4).name == "subset:10:4"
    assert isinstance(SubsetSelection(10), RandomizerLaw)
    assert [f.mixture for f in (SubsetSelection(10), SubsetSelection(10, 4), SubsetSelection(3))] == [False, True, True]
    assert [SubsetSelection(k).two_point for k in (2, 3)] == [True, False]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1,), "whole number k from 2"),
        ((3.0,), "whole number k from 2"),
        ((10, 0), "whole size from 1 to 9"),
        ((10, 10), "whole size from 1 to 9"),
        ((10, -1), "whole size from 1 to 9"),
        ((10, 2.5), "whole size from 1 to 9"),
        ((10, math.nan), "whole size from 1 to 9"),
    ],
)
def test_bad_parameters(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        SubsetSelection(*arguments)


def test_bad_budgets():
    for epsilon0, message in laws.NOT_BUDGETS:
        with pytest.raises(InvalidInput, match=message):
            SubsetSelection(3).pair_blankets(epsilon0)
        with pytest.raises(InvalidInput, match=message):
            SubsetSelection(3).subset_size(epsilon0)
