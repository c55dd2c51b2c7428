"""Thresholds are the same whole numbers on every machine: the correctly rounded values of their formula."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.dummies import DiscreteLaplace
from shuffledp.randomizers import mixing
from shuffledp.randomizers.categorical import RandomizedResponse
from shuffledp.randomizers.hadamard import HadamardResponse
from shuffledp.randomizers.hashing import LocalHashing
from shuffledp.randomizers.mixing import exact_threshold, keep_thresholds
from shuffledp.randomizers.piecewise import Piecewise
from shuffledp.randomizers.subset import SubsetSelection
from shuffledp.randomizers.tree import RangeTree
from shuffledp.randomizers.unary import UnaryEncoding
from shuffledp.randomizers.windows import own_weight
from tests.reference.generate_thresholds import BUDGETS, threshold

TABLE = json.loads((Path(__file__).parents[1] / "reference" / "thresholds.json").read_text(encoding="utf-8"))
FAMILIES = {
    "rr": RandomizedResponse(2).keep_thresholds,
    "krr:3": RandomizedResponse(3).keep_thresholds,
    "krr:10": RandomizedResponse(10).keep_thresholds,
    "krr:1000": RandomizedResponse(1000).keep_thresholds,
    "one-bit": RandomizedResponse(2).keep_thresholds,
    "hadamard:10": HadamardResponse(10).keep_thresholds,
    "oue:10": UnaryEncoding(10).flip_thresholds,
    "sue:10": UnaryEncoding(10, optimized=False).flip_thresholds,
}


def test_the_table_has_forty_budgets_and_every_family_of_a_fixed_share():
    assert len(BUDGETS) == 40
    assert TABLE["budgets"] == BUDGETS
    assert TABLE["thresholds"].keys() == FAMILIES.keys()


@pytest.mark.parametrize("name", FAMILIES)
def test_thresholds_are_those_of_the_table(name):
    found = FAMILIES[name](np.array(BUDGETS))
    assert [str(each) for each in found.tolist()] == TABLE["thresholds"][name]
    assert [str(int(FAMILIES[name](each))) for each in BUDGETS] == TABLE["thresholds"][name]


@pytest.mark.parametrize("place", range(0, 40, 3))
def test_the_table_is_made_of_fractions(place):
    assert str(threshold(BUDGETS[place], 1, 10)) == TABLE["thresholds"]["krr:10"][place]


def test_families_whose_share_follows_the_budget():
    budgets = np.array(BUDGETS)
    subset, hashing, tree, window = (
        SubsetSelection(50),
        LocalHashing(64),
        RangeTree(8),
        Piecewise(0.0, 1.0),
    )
    sizes, ranges, shape = subset.subset_size(budgets), hashing.hash_range(budgets), window.shape(budgets)
    weights = own_weight(window.cells, shape.window, shape.share)
    for found, own, every in (
        (subset.keep_thresholds(budgets), sizes, 50),
        (hashing.keep_thresholds(budgets), 1, ranges),
        (tree.keep_thresholds(budgets), 1, 2),
        (keep_thresholds(budgets, *weights), *weights),
    ):
        cases = zip(
            budgets.tolist(), *(np.broadcast_to(part, budgets.shape).tolist() for part in (own, every)), strict=True
        )
        assert found.tolist() == [exact_threshold(*case) for case in cases]


@given(st.floats(0.0, 700.0), st.integers(2, 2**20), st.data())
def test_doubles_never_decide_wrongly(epsilon0, every, data):
    own = data.draw(st.integers(1, every - 1))
    assert int(keep_thresholds(np.asarray(epsilon0), own, every)) == exact_threshold(epsilon0, own, every)


@given(st.floats(0.0, 40.0), st.integers(2, 1000))
def test_what_is_drawn_is_private_and_close(epsilon0, k):
    """1 + K/(f (2^64 - K)) <= e^epsilon0, exactly, and K is at most 2^-35 of the smaller part off."""
    keep = Fraction(exact_threshold(epsilon0, 1, k), 2**64)
    power = Fraction(math.exp(epsilon0)) * (1 + Fraction(1, 2**50))
    assert 1 + keep * k / (1 - keep) <= power
    gain = Fraction(math.exp(epsilon0)) * (1 - Fraction(1, 2**50)) - 1
    stated = gain / (k + gain) if gain > 0 else Fraction(0)
    assert stated - keep <= Fraction(1, 2**35) * min(1 - keep, max(stated, keep)) + Fraction(
        1, 2**48
    ) * stated + Fraction(1, 2**64)


@pytest.mark.parametrize("name", ["exp", "expm1", "log", "log1p"])
def test_a_last_digit_that_differs_changes_no_threshold(name, monkeypatch):
    """As between processors with and without AVX-512: one task's integer differed between them."""
    right = getattr(np, name)
    budgets = np.random.default_rng(0).uniform(0.0, 8.0, 20_000)
    before = [
        keep_thresholds(budgets, 1, 10),
        SubsetSelection(10).subset_size(budgets),
        LocalHashing(64).hash_range(budgets),
    ]
    for towards in (-math.inf, math.inf):
        monkeypatch.setattr(np, name, lambda x, *a, towards=towards, **k: np.nextafter(right(x, *a, **k), towards))
        after = [
            keep_thresholds(budgets, 1, 10),
            SubsetSelection(10).subset_size(budgets),
            LocalHashing(64).hash_range(budgets),
        ]
        assert all((a == b).all() for a, b in zip(before, after, strict=True))
        assert mixing.np is np


def test_a_tie_of_sizes_is_decided_exactly():
    """10/(1 + 3) = 2.5: of the two doubles around log 3 the nearest sizes are 3 and 2."""
    above = 1.0986122886681098
    assert SubsetSelection(10).subset_size([np.nextafter(above, 0.0), above]).tolist() == [3, 2]


def test_the_law_of_ones_is_the_same_everywhere():
    law = DiscreteLaplace(172, 1.1)
    assert sum(law.weights) == 2**64
    assert law.weights[84:88] == LAPLACE_172
    assert DiscreteLaplace.reaching(60, 1e-6).ratio == 1.5022425651550293


LAPLACE_172 = (726305092072651544, 798937929220420645, 878832575722305732, 798937929220420645)
