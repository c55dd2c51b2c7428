"""Normal dummies against enumeration: their law, their floor over real pairs of people, and what is drawn."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.ball import below_of
from shuffledp.dummies import WHOLE
from shuffledp.numerics.randomness import simulation_random

Law = dict[tuple[int, ...], Fraction]
SMALL = [(2, 1.0, 2), (2, 0.7, 3), (3, 1.1, 2), (3, 0.6, 1), (4, 0.9, 1)]


def law_of(dummies: sdp.NormalDummies) -> Law:
    """The weights' law, given the total, by enumeration."""
    found: Law = {}
    for counts in product(range(2 * dummies.centre + 1), repeat=dummies.answers):
        if sum(counts) == dummies.count:
            found[counts] = Fraction(math.prod(dummies.weights[count] for count in counts))
    return {counts: chance / sum(found.values()) for counts, chance in found.items()}


def released(law: Law, kept: Fraction, record: int) -> Law:
    """Dummies and one report of k-ary randomized response."""
    found = defaultdict[tuple[int, ...], Fraction](Fraction)
    for counts, chance in law.items():
        k = len(counts)
        for report in range(k):
            own = kept * (report == record) + (1 - kept) / k
            found[tuple(count + (cell == report) for cell, count in enumerate(counts))] += chance * own
    return found


def divergence(first: Law, second: Law, factor: Fraction) -> Fraction:
    return sum((max(p - factor * second.get(t, Fraction(0)), Fraction(0)) for t, p in first.items()), Fraction(0))


@pytest.mark.parametrize(("k", "spread", "centre"), SMALL)
def test_the_floor_is_that_of_two_real_people(k: int, spread: float, centre: int):
    dummies = sdp.NormalDummies(k, spread, centre)
    law, family = law_of(dummies), sdp.RandomizedResponse(k)
    for kept in (Fraction(1), Fraction(3, 4), Fraction(1, 5)):
        floor = sdp.floor_profile(family, None, dummies, draw=int(kept * WHOLE))
        worlds = [released(law, Fraction(int(kept * WHOLE), WHOLE), record) for record in (0, k - 1)]
        for epsilon in (0.0, 0.2, 0.9, 2.0):
            if epsilon >= floor.top:
                continue
            found = floor.delta(epsilon)
            real = [float(divergence(*pair, Fraction(math.exp(epsilon)))) for pair in (worlds, worlds[::-1])]
            assert max(real) <= found.upper
            assert found.lower <= max(real) * (1 + 1e-12) + 1e-15
            if kept == 1:
                assert found.upper == pytest.approx(max(real), rel=1e-11, abs=1e-15)
            else:  # (C2), exactly
                noise_free = [released(law, Fraction(1), record) for record in (0, k - 1)]
                larger = 1 + (Fraction(math.exp(epsilon)) - 1) / kept
                assert found.upper == pytest.approx(float(kept * divergence(*noise_free, larger)), rel=1e-10, abs=1e-14)


@pytest.mark.parametrize(("k", "spread", "centre"), [(2, 0.7, 2), (3, 0.8, 1)])
def test_two_questions_multiply(k: int, spread: float, centre: int):
    dummies = sdp.NormalDummies(k, spread, centre)
    law, family, kept = law_of(dummies), sdp.RandomizedResponse(k), Fraction(1, 2)
    for keep in (WHOLE, WHOLE // 2):
        one = sdp.floor_profile(family, None, dummies, draw=keep)
        both = sdp.compose_floors([one, one])
        kept = Fraction(keep, WHOLE)
        first, second = (released(law, kept, record) for record in (0, 1))
        together = [{(a, b): p * q for (a, p), (b, q) in product(world.items(), repeat=2)} for world in (first, second)]
        for epsilon in (0.1, 0.8, 1.5):
            real = float(divergence(*together, Fraction(math.exp(epsilon))))
            assert both.delta(epsilon).lower <= real * (1 + 1e-9)
            assert real <= both.delta(epsilon).upper
            if keep == WHOLE:
                assert both.delta(epsilon).upper == pytest.approx(real, rel=1e-6)


@pytest.mark.parametrize(("k", "spread", "centre"), SMALL)
def test_what_is_drawn_has_the_law(k: int, spread: float, centre: int):
    dummies = sdp.NormalDummies(k, spread, centre)
    law = law_of(dummies)
    cells = defaultdict[int, Fraction](Fraction)
    for counts, chance in law.items():
        cells[counts[0]] += chance
    assert dummies.cell_law == pytest.approx([float(cells[j]) for j in range(2 * centre + 1)], rel=1e-13, abs=0.0)
    assert dummies.count == k * centre
    unit, every = dummies.weights[centre], sum(dummies.weights)
    for counts in law:  # each way to draw it has the product of its weights, of the last one too
        cells = list(counts)

        def below(bound: int, cells: list[int] = cells) -> int:
            assert bound == (every if len(cells) > 1 else unit)
            cell = cells.pop(0)
            return sum(dummies.weights[:cell]) + dummies.weights[cell] - 1 if cells else dummies.weights[cell] - 1

        assert tuple(dummies.draw(below).tolist()) == counts


def test_a_draw_is_repeated_where_the_last_cell_is_unlikely_or_impossible():
    dummies = sdp.NormalDummies(3, 0.8, 1)
    _, middle, _ = dummies.weights
    first, last = dummies.weights[0], sum(dummies.weights) - 1
    told = iter([0, 0, last, first, first, dummies.weights[2], middle, first, middle - 1])  # 0 0 3; 2 1 0, too unlikely
    found = dummies.draw(lambda bound: next(told))
    assert sum(found) == dummies.count
    assert found.tolist() == [1, 1, 1]


def test_spreads_and_dummies_follow_the_formula():
    """Accuracy.md, section 2: V = 2 (1 - 1/k) q / mu^2 with mu = .448 at promise 1; 20 questions of 5 answers: 571."""
    dummies = sdp.NormalDummies(5, math.sqrt(571 / 0.8), 142)
    assert dummies.cell_variance == pytest.approx(571, rel=1e-3)
    one = sdp.floor_profile(sdp.RandomizedResponse(5), None, dummies, draw=WHOLE)
    found = sdp.compose_floors([one] * 20).epsilon(1e-6)
    assert found.width < 1e-4
    assert found.upper == pytest.approx(1.0, rel=2e-3)


def test_a_search_finds_a_law_for_every_question():
    families = [sdp.RandomizedResponse(5), sdp.RandomizedResponse(2), sdp.RandomizedResponse(5)]
    found = sdp.calibrate_dummies({2.0: 1.0, 4.0: 1.0}, families, 1e-6, law="normal")
    laws = [law for law in found.dummies if isinstance(law, sdp.NormalDummies)]
    assert [law.answers for law in laws] == [5, 2, 5]
    assert len({law.spread for law in laws}) == 1
    assert all(floor.upper <= 1.0 for floor in found.floors)
    less = [sdp.NormalDummies(law.answers, law.spread / 1.011, law.centre) for law in laws]
    floors = [sdp.floor_profile(family, 4.0, law) for family, law in zip(families, less, strict=True)]
    assert not sdp.compose_floors(floors).keeps(1.0, 1e-6)


def test_normal_dummies_beat_the_ball_in_long_questionnaires_alone():
    for questions, better in ((3, "ball"), (20, "normal")):
        family, asked = sdp.RandomizedResponse(5), {4.0: 2.0}
        (ball,) = sdp.calibrate_dummies(asked, family, 1e-6, questions, law="ball").dummies
        normal = sdp.calibrate_dummies(asked, family, 1e-6, questions, law="normal").dummies[0]
        assert isinstance(ball, sdp.BallDummies)
        assert isinstance(normal, sdp.NormalDummies)
        assert (ball.cell_variance(0) < normal.cell_variance) == (better == "ball")


def test_a_guarantee_and_a_price():
    dummies = sdp.NormalDummies(5, 6.1, 30)
    setting = sdp.Setting(
        sdp.Budgets([4.0], [50]), sdp.RandomizedResponse(5), "reports", "replace-one", dummies=dummies, colluding=49
    )
    assert 0.7 < sdp.certify(setting, 1e-6).epsilon.upper < 1.0
    price = sdp.dummies_price(sdp.RandomizedResponse(5), setting.budgets, dummies)
    uniform = sdp.dummies_price(sdp.RandomizedResponse(5), setting.budgets, sdp.Uniform(round(6.1**2 * 5)))
    assert price.total == pytest.approx(uniform.total, rel=2e-2)
    drawn = np.array([dummies.draw(below_of(simulation_random(seed))) for seed in range(200)])
    assert (drawn.sum(axis=1) == 150).all()
    assert drawn.var() == pytest.approx(dummies.cell_variance, rel=0.2)


def test_what_does_not_fit_is_refused():
    for wrong in (
        (1, 1.0, 1),
        (65, 1.0, 1),
        (2, 0.0, 1),
        (2, math.inf, 1),
        (2, 1.0, -1),
        (2, 1.0, 1025),
        (2.5, 1.0, 1),
    ):
        with pytest.raises(sdp.InvalidInput, match="normal dummies"):
            sdp.NormalDummies(*wrong)  # type: ignore[arg-type]
    law = sdp.NormalDummies(5, 6.0, 30)
    with pytest.raises(sdp.InvalidInput, match="rr needs normal dummies of 2 answers; got 5"):
        sdp.floor_profile(sdp.RandomizedResponse(2), 1.0, law)
    with pytest.raises(sdp.OutOfRegime, match="several reports is not known for normal dummies"):
        sdp.floor_profile(sdp.RandomizedResponse(5), 1.0, law, reports=2)
    with pytest.raises(sdp.InvalidInput, match="no normal law with up to 30 dummies a question"):
        sdp.calibrate_dummies({4.0: 0.5}, sdp.RandomizedResponse(5), 1e-6, law="normal", most=30)
    with pytest.raises(sdp.InvalidInput, match="several reports"):
        sdp.calibrate_dummies({4.0: 0.5}, sdp.RandomizedResponse(5), 1e-6, law="normal", reports=2)
