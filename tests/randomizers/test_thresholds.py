"""The whole numbers that decide: frozen, recomputed in fractions, and the same whoever computes them."""

from __future__ import annotations

import json
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from shuffledp.collection.draw import Family
from shuffledp.randomizers import Hybrid, LocalHashing, Piecewise, RandomizedResponse, SubsetSelection
from tests.randomizers import threshold_tables
from tests.randomizers.threshold_tables import BUDGETS, TABLE, WHOLE, of_the_library, recomputed

pytestmark = pytest.mark.machine
FROZEN = json.loads(TABLE.read_text(encoding="utf-8"))
SIZES = [475021, 377541, 268941, 182426, 119203, 47426, 17986, 2473, 45]
RANGES = [2, 2, 4, 4, 8, 16, 64, 512, 1024]
WINDOWS = [2022, 1920, 1790, 1657, 1522, 1254, 1001, 593, 176]
HYBRID = [
    [1781, 1781, 1697, 1585, 1467, 1223, 986, 590, 176],
    [0, 0, 7316544, 10257590, 12495670, 15094461, 16151258, 16693246, 16775691],
    [1001, 1001, 968, 913, 847, 698, 551, 316, 90],
]
CHOSEN = (43, 1312, (1223, 15097457, 698), 32)


def test_the_library_states_the_frozen_thresholds():
    assert of_the_library() == FROZEN
    assert len(set(BUDGETS)) == 40


def test_the_frozen_thresholds_are_recomputed_in_fractions():
    assert recomputed() == FROZEN


def test_a_threshold_is_the_same_alone_and_among_many():
    """Few budgets are looked up in decimal, many computed in pairs of doubles."""
    for family, _ in threshold_tables.MIXTURES.values():
        many = family.keep_thresholds(np.tile(BUDGETS, 500))
        assert (many.reshape(500, -1) == family.keep_thresholds(BUDGETS)).all()
        assert [int(family.keep_thresholds(budget)) for budget in BUDGETS] == family.keep_thresholds(BUDGETS).tolist()


def test_the_threshold_that_processors_disagreed_on():
    """e - 1 of NumPy is the nearest double with AVX-512, and the one before it without."""
    assert int(RandomizedResponse(2).keep_thresholds(1.0)) == 8524556932045468672
    assert Family("one-bit", 101).threshold(1.0) == 8524556932045468672


@pytest.mark.parametrize("name", [*threshold_tables.MIXTURES, *threshold_tables.SHARES])
def test_every_frozen_threshold_is_private_and_barely_more(name):
    """K/(f (2^64 - K)) <= e^epsilon0 - 1: exactly, and K + 2^-45 of the smaller part would not be."""
    share = threshold_tables.SHARES.get(name) or threshold_tables.MIXTURES[name][1]
    for epsilon0, keep in zip(BUDGETS, map(int, FROZEN[name]), strict=True):
        with mpmath.workdps(700):
            gain = mpmath.expm1(mpmath.mpf(epsilon0))
            odds = Fraction(keep, WHOLE - keep) / share
            assert mpmath.mpf(odds.numerator) / odds.denominator <= gain
            more = keep + 1 + (min(keep, WHOLE - keep) >> 45)
            if more < WHOLE:
                beyond = Fraction(more, WHOLE - more) / share
                assert mpmath.mpf(beyond.numerator) / beyond.denominator > gain


def test_shapes_of_reports_are_frozen():
    """Sizes, ranges and windows that a budget chooses are shapes of reports on the wire."""
    budgets = np.array([0.1, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0])
    assert SubsetSelection(10**6).subset_size(budgets).tolist() == SIZES
    assert LocalHashing(30).hash_range(budgets).tolist() == RANGES
    assert Piecewise(0, 1).shape(budgets).window.tolist() == WINDOWS
    assert np.stack(Hybrid(0, 1).shape(budgets)).tolist() == HYBRID


def test_one_shape_for_many_budgets_is_frozen():
    budgets, users = np.array([0.3, 1.0, 3.5]), np.array([500, 300, 200])
    assert SubsetSelection(1000).for_budgets(budgets, users).size == CHOSEN[0]
    assert Piecewise(0, 1).for_budgets(budgets, users).window == CHOSEN[1]
    assert Hybrid(0, 1).for_budgets(budgets, users).fixed == CHOSEN[2]
    assert LocalHashing(1000).for_budgets(budgets, users).g == CHOSEN[3]
