"""Ball dummies in the accountant: floors as profiles, settings, and the search for dummies."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

import shuffledp as sdp
from shuffledp.accounting.theorems.floor.bound import chance_kept
from shuffledp.ball import WHOLE
from shuffledp.dummies import Dummies, column_of
from shuffledp.planning.question import NOBODY

R5, BIT = sdp.RandomizedResponse(5), sdp.RandomizedResponse(2)
LAW = sdp.BallDummies.of_promise(["choice:5"], [(1.0, ())], 1e-6)
BITS = sdp.BallDummies.of_promise(["choice:2"], [(1.0, ())], 1e-6)


def setting(dummies: Dummies, randomizer: object = R5, **changed: object) -> sdp.Setting:
    known = {"seen": "reports", "neighboring": "replace-one"} | changed
    return sdp.Setting(sdp.Budgets([2.0, 4.0], [50, 50]), randomizer, dummies=dummies, **known)


def test_floors_of_the_law_of_rate_one():
    """Accuracy.md, (B2): 5 answers, at epsilon0 = 1, 2, 4, 6."""
    for epsilon0, stated in ((1.0, 0.36), (2.0, 0.68), (4.0, 0.95), (6.0, 0.99)):
        assert sdp.ball_floor(LAW, epsilon0).epsilon(1e-6).upper == pytest.approx(stated, abs=0.01)


def test_a_floor_of_one_bit_is_above_the_exact_one():
    """The engine's floor of bits is exact; (B2) may cost something, and may never be below it."""
    cells = BITS.cell_chances(0)
    ones = [cells[abs(v)] * WHOLE >> 192 for v in range(1 - len(cells), len(cells))]
    ones[len(cells) - 1] += WHOLE - sum(ones)
    steps = [sum(ones[: j + 1]) for j in range(len(ones) - 1)]
    exact = sdp.OnesLaw(tuple(steps))
    for epsilon0 in (0.5, 2.0, 5.0):
        for epsilon in (0.05, 0.3, 0.7, 1.1):
            one = sdp.floor_profile(BIT, epsilon0, exact).delta(epsilon)
            ball = sdp.ball_floor(BITS, epsilon0).delta(epsilon)
            assert ball.upper >= one.lower * (1 - 1e-9) - 1e-18


def test_a_floor_vanishes_at_the_local_budget_and_states_what_was_drawn():
    floor = sdp.ball_floor(LAW, 4.0)
    assert floor.delta(4.0).upper == 0.0
    assert floor.delta(3.99).upper > 0.0
    keep = int(R5.keep_thresholds(4.0))
    drawn = sdp.ball_floor(LAW, draw=[keep])
    assert drawn.top == pytest.approx(4.0, abs=1e-12)
    assert 0 <= chance_kept(4.0, 5) - Fraction(keep, WHOLE) < Fraction(1, 1 << 40)
    assert 0 <= floor.delta(0.5).upper - drawn.delta(0.5).upper < 1e-9
    assert sdp.ball_floor(LAW, draw=[WHOLE]).epsilon(1e-6).upper <= 1.0 + 1e-9
    assert math.isinf(sdp.ball_floor(LAW, draw=[WHOLE]).top)
    assert floor.keeps(1.0, 1e-6)
    assert not floor.keeps(0.9, 1e-6)


@pytest.mark.costly
@pytest.mark.parametrize(
    ("family", "dummies"), [(R5, LAW), (BIT, BITS), (sdp.OneBit(0.0, 10.0), BITS)], ids=lambda part: part.name
)
def test_a_guarantee_counts_the_floor_whoever_colludes(family, dummies):
    found = sdp.certify(setting(dummies, family, colluding=99), 1e-6)
    assert 0.9 < found.epsilon.upper <= 1.0 + 1e-9
    floor = {entry.key: entry for entry in found.evidence}["floor"].epsilon
    assert floor is not None
    assert floor.upper == found.epsilon.upper
    two = sdp.certify(setting(dummies, family, reports_per_user=2), 1e-6)
    assert found.epsilon.upper < two.epsilon.upper
    rounds = sdp.certify(setting(dummies, family, rounds=3, colluding=99), 2e-6)
    assert 1.5 < rounds.epsilon.upper < 6.0


def test_what_does_not_fit_is_refused():
    with pytest.raises(sdp.InvalidInput, match=r"krr:5 needs ball dummies of the column choice:5; got choice:2"):
        setting(BITS)
    with pytest.raises(sdp.InvalidInput, match=r"ball and normal dummies serve families whose report is an answer"):
        setting(LAW, sdp.HadamardResponse(5))
    with pytest.raises(sdp.InvalidInput, match=r"ask ball_floor"):
        sdp.floor_profile(R5, 4.0, LAW)  # type: ignore[arg-type]
    for wrong in ({"epsilon0": -1.0}, {"epsilon0": 1.0, "reports": 0}, {"draw": [1, 2]}, {"draw": [WHOLE + 1]}, {}):
        with pytest.raises(sdp.InvalidInput):
            sdp.ball_floor(LAW, **wrong)


@pytest.mark.costly
def test_a_search_finds_one_law_for_all_questions():
    asked = {2.0: 1.0, 4.0: 1.0}
    found = sdp.calibrate_dummies(asked, [R5, BIT, R5], 1e-6, law="ball")
    (law,) = found.dummies
    assert isinstance(law, sdp.BallDummies)
    assert law.columns == tuple(column_of(family) for family in (R5, BIT, R5))
    assert found.counts == law.rows
    assert all(floor.upper <= 1.0 for floor in found.floors)
    uniform = sdp.calibrate_dummies(asked, [R5, BIT, R5], 1e-6)
    assert sum(found.counts) < sum(uniform.counts)
    two = sdp.calibrate_dummies({4.0: 1.0}, R5, 1e-6, law="ball", reports=2)
    one = sdp.calibrate_dummies({4.0: 1.0}, R5, 1e-6, law="ball")
    assert 1.9 * one.counts[0] < two.counts[0] < 2.5 * one.counts[0]
    assert sdp.calibrate_dummies({1.0: 1.0}, R5, 1e-6, law="ball").counts == (0,)
    with pytest.raises(sdp.InvalidInput, match="no ball law with up to 10 dummies"):
        sdp.calibrate_dummies({4.0: 1.0}, R5, 1e-6, law="ball", most=10)


def test_what_ball_dummies_cost_an_estimate():
    people = sdp.Budgets([4.0], [500])
    ball, uniform = (sdp.dummies_price(R5, people, dummies, NOBODY) for dummies in (LAW, sdp.Uniform(172)))
    law = R5.keep_thresholds(4.0) / WHOLE
    assert ball.total**2 - ball.without**2 == pytest.approx(LAW.cell_variance(0) / (500 * float(law)) ** 2, rel=1e-6)
    assert ball.without == uniform.without
    assert ball.total < uniform.total


def test_a_promise_a_rounding_below_the_sum_of_budgets_is_not_taken_as_kept():
    promise = 0.7 * 3  # rounded down: 2.2e-16 below three budgets of 0.7
    assert Fraction(promise) < 3 * Fraction(0.7)
    found = sdp.calibrate_dummies({0.7: promise}, BIT, 1e-6, questions=3, law="ball")
    assert found.dummies[0].count == 0
    assert found.floors[0].upper < promise
    with pytest.raises(sdp.InvalidInput, match="no ball law"):  # delta is 7e-17 there, and no dummies were added
        sdp.calibrate_dummies({0.7: promise}, BIT, 1e-300, questions=3, law="ball")
