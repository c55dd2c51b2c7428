"""Rounds of brackets: `compose` of a privacy profile knows what `certify` knows of rounds."""

from __future__ import annotations

import math

import pytest

from shuffledp import Budgets, Laplace, OneBit, RandomizedResponse, Setting, certify, compose, privacy_profile
from shuffledp.accounting.profiles.composition import BracketProfile, ComposedProfile, composed
from shuffledp.accounting.theorems.clones.pair import one_budget_profile
from shuffledp.accounting.theorems.local import LocalProfile
from shuffledp.accounting.theorems.sum import GaussianSumProfile


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("randomizer", "budgets", "seen"),
    [
        (RandomizedResponse(2), Budgets([4.0], [100]), "reports"),  # once [7.45, 29.1] instead of [28.5, 29.1]
        (RandomizedResponse(2), Budgets([1.0, 2.0], [500, 50]), "reports"),
        (RandomizedResponse(5), Budgets([4.0], [30]), "reports"),
        (Laplace(0, 1), Budgets([2.0], [20]), "sum"),
        ("any", Budgets([2.0], [100]), "levels"),
    ],
)
def test_rounds_of_a_bracket_are_what_certify_says_of_rounds(randomizer, budgets, seen):
    several = certify(Setting(budgets, randomizer, seen, "replace-one", rounds=8), 1e-6)
    for level in several.levels:
        one = privacy_profile(Setting(budgets, randomizer, seen, "replace-one"), level.epsilon0)
        for rounds in ([(one, 8)], [(compose([(one, 3)]), 2), (one, 2)]):  # the same but for where curves have knots
            found = compose(rounds).epsilon(1e-6)
            assert found.lower == pytest.approx(level.epsilon.lower, rel=2e-5)
            assert found.upper == pytest.approx(level.epsilon.upper, rel=2e-5)


def test_the_lower_end_of_eight_rounds():
    one = privacy_profile(Setting(Budgets([4.0], [100]), RandomizedResponse(2), "reports", "replace-one"), 4.0)
    found = compose([(one, 8)]).epsilon(1e-6)
    assert 28.4 < found.lower <= found.upper < 29.2


def test_different_brackets_show_one_real_pair():
    krr, bit = (
        privacy_profile(Setting(Budgets([1.0], [1000]), family, "reports", "replace-one"), 1.0)
        for family in (RandomizedResponse(5), OneBit(0, 1))
    )
    both = compose([(krr, 3), (bit, 2)])
    assert both.rounds == ((krr, 3), (bit, 2))
    found = both.epsilon(1e-6)
    assert 0.27 < found.lower < found.upper  # 0.2588 with the smaller direction both ways
    assert found.upper == pytest.approx(0.27132, rel=1e-3)
    assert 0.0 < both.renyi(2.0).lower <= both.renyi(2.0).upper < found.upper


def test_gaussian_rounds_are_one_larger_shift():
    one = GaussianSumProfile(0.1)
    several = composed(one, 9)
    assert several == GaussianSumProfile(0.1 * math.sqrt(9.0))
    by_tables, exact = ComposedProfile.of(one, 9).epsilon(1e-6), several.epsilon(1e-6)
    assert by_tables.lower <= exact.lower <= exact.upper <= by_tables.upper


def test_a_bracket_with_a_plain_profile_and_without_witnesses():
    bare = BracketProfile(LocalProfile(1.0, 0.0), ())
    assert compose([(bare, 1)]) is bare
    assert compose([(bare, 2)]).epsilon(1e-3).lower == 0.0
    plain = one_budget_profile(1.0, 1000, coarse=False)
    found, alone = compose([(bare, 1), (plain, 1)]).epsilon(1e-3), plain.epsilon(1e-3)
    assert found.lower == alone.lower  # of the bare round nothing is known from below
    assert alone.upper < found.upper <= 1.0 + alone.upper
