"""Normal dummies against enumeration: their law, their floor over real pairs of people, and what is drawn."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.accounting import NormalFloor
from shuffledp.accounting.theorems.floor import normal
from shuffledp.ball import below_of
from shuffledp.dummies import WHOLE, StatedCells, normal_side
from shuffledp.errors import attempt
from shuffledp.numerics.floats import UNBOUNDED
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


@pytest.mark.costly
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


@pytest.mark.costly
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


def lattice_floor(laws: list[sdp.NormalDummies], keeps: list[int], reports: int = 1) -> NormalFloor:
    cells = tuple(StatedCells(law.answers, law.side) for law in laws)
    return NormalFloor(cells, tuple(keeps), reports, UNBOUNDED)


@pytest.mark.parametrize(("k", "spread", "centre"), SMALL)
@pytest.mark.parametrize("kept", [Fraction(1), Fraction(3, 4), Fraction(1, 5)])
def test_the_floor_in_whole_numbers_is_never_below_that_of_two_real_people(k, spread, centre, kept):
    """(C3) at chances and factors where nothing is rare, so that a missing atom would show; one column and two."""
    dummies, keep = sdp.NormalDummies(k, spread, centre), int(kept * WHOLE)
    worlds = [released(law_of(dummies), Fraction(keep, WHOLE), record) for record in (0, k - 1)]
    for epsilon in (0.0, 0.2, 0.9, 2.0, 5.0):
        real = max(divergence(*pair, Fraction(math.exp(epsilon))) for pair in (worlds, worlds[::-1]))
        found = lattice_floor([dummies], [keep]).delta_rational(epsilon)
        assert real * (1 - Fraction(1, 10**14)) <= found
        if kept == 1:  # but for weights that are rounded
            assert found <= real * (1 + Fraction(1, 10**6)) + Fraction(1, 10**16)


@pytest.mark.parametrize("keep", [WHOLE, WHOLE // 3, 0])
def test_two_columns_of_different_sizes_are_covered_together(keep):
    laws = [sdp.NormalDummies(2, 0.9, 2), sdp.NormalDummies(3, 0.9, 1)]
    pairs = [[released(law_of(law), Fraction(keep, WHOLE), record) for record in (0, 1)] for law in laws]
    together = [{(a, b): p * q for (a, p), (b, q) in product(pairs[0][x].items(), pairs[1][x].items())} for x in (0, 1)]
    for epsilon in (0.0, 0.4, 1.2, 2.5):
        real = max(divergence(*pair, Fraction(math.exp(epsilon))) for pair in (together, together[::-1]))
        found = lattice_floor(laws, [keep, keep]).delta_rational(epsilon)
        assert real * (1 - Fraction(1, 10**14)) <= found
        if keep != WHOLE // 3:  # at so small a spread the lattice is coarse
            assert found <= real * (1 + Fraction(1, 10**6)) + Fraction(1, 10**14)


@pytest.mark.costly("10-20-27.0-160-0.8", "2-10-19.0-110-1.0")
@pytest.mark.parametrize(
    ("k", "questions", "spread", "centre", "keep"),
    [(2, 10, 19.0, 110, 1.0), (5, 10, 19.0, 110, 0.7), (10, 20, 27.0, 160, 0.8), (50, 6, 10.0, 60, 0.9)],
)
def test_the_lattice_costs_less_than_six_thousandths_of_delta(k, questions, spread, centre, keep):
    """The same floor by pairs of doubles: docs/theorems/normal.md says by how much they differ."""
    dummies, word = sdp.NormalDummies(k, spread, centre), int(keep * WHOLE)
    one = sdp.floor_profile(sdp.RandomizedResponse(k), None, dummies, draw=word)
    told = sdp.compose_floors([one] * questions).delta(1.0)
    found = float(lattice_floor([dummies] * questions, [word] * questions).delta_rational(1.0))
    assert told.lower <= found <= told.upper * 1.006


@pytest.mark.parametrize(
    ("questions", "spread", "centre", "budget", "times"), [(32, 3.069, 17, 1.0, 2.41), (12, 1.884, 12, 0.5, 14.0)]
)
def test_a_coarse_lattice_costs_as_many_times_delta_as_the_page_says(questions, spread, centre, budget, times):
    """Laws that a collection's search finds at promise 4: coarse lattices cost more than fine ones, and are covered."""
    dummies, family = sdp.NormalDummies(5, spread, centre), sdp.RandomizedResponse(5)
    told = sdp.compose_floors([sdp.floor_profile(family, budget, dummies)] * questions).delta(4.0)
    word = int(family.keep_thresholds(budget))
    found = float(lattice_floor([dummies] * questions, [word] * questions).delta_rational(4.0))
    assert 0.99 * times * told.upper < found < times * told.upper


def test_weights_that_are_nearly_normal_are_certified_as_they_are_and_others_not_at_all():
    bent = tuple(int(weight * (1 + (t % 3) * 1e-5)) for t, weight in enumerate(normal_side(3.0, 12)))
    for k in (2, 3, 4):
        for side in (bent, (1 << 40,) * 20):  # flat weights are normal ones of no end
            real, law = exact_of_sides(k, side, 1.0), NormalFloor((StatedCells(k, side),), (WHOLE,), 1, UNBOUNDED)
            assert real <= float(law.delta_rational(1.0)) * (1 + 1e-12)
            assert float(law.delta_rational(1.0)) < 1.1 * real
        for other in (tuple(range(40, 0, -1)), tuple((1 << 60) >> t for t in range(12)), (5, 5, 5, 1)):
            with pytest.raises(sdp.InvalidInput, match="not nearly those of a normal law"):
                NormalFloor((StatedCells(k, other),), (WHOLE,), 1, UNBOUNDED).delta_rational(1.0)


MANY_SIZES = [StatedCells(k, normal_side(14.0, 80)[: 66 + k % 3 * 7]) for k in range(3, 35)]


@pytest.mark.costly("thirty-two sizes", "wide")
@pytest.mark.parametrize(
    ("columns", "kept", "digest"),
    [(MANY_SIZES, [WHOLE * 9 // 10 - place for place in range(32)], "b926057bb6689f87"),
     ([StatedCells(k, normal_side(60.0, 300)) for k in (2, 24, 64)], [WHOLE, WHOLE // 3, WHOLE // 2],
      "6f15108b0a121711"),
     ([StatedCells(5, normal_side(8.0, 48))] * 7, [WHOLE] * 7, "4c79c82c0b48e108"),
     ([StatedCells(4, (1 << 40,) * 20)], [WHOLE], "dba7a6acea97ae27")],
    ids=["thirty-two sizes", "wide", "equal ones", "flat"],
)  # fmt: skip
def test_the_law_of_losses_is_frozen(columns, kept, digest):
    """Digests of the whole numbers as every product of long numbers gave them: what is quicker must not differ."""
    law = NormalFloor(tuple(columns), tuple(kept), 1, UNBOUNDED).losses
    assert hashlib.sha256(repr((law.start, law.chances, law.infinite)).encode()).hexdigest()[:16] == digest


@pytest.mark.parametrize("sizes", [(1, 1), (1, 9), (40, 7), (512, 511), (512, 512), (513, 600)])
@pytest.mark.parametrize("weights", ["largest", "digits that carry", "drawn"])
def test_products_of_palindromes_are_those_of_school(sizes, weights):
    """Up to 1,024 coefficients by doubles, beyond by long numbers: in part, to the end and beyond it."""
    draw = np.random.default_rng(26)
    kinds = {"largest": lambda: WHOLE - 1, "digits that carry": lambda: 1 << 63 | 1 << 43 | 1 << 21,
             "drawn": lambda: int(draw.integers(WHOLE, dtype=np.uint64))}  # fmt: skip
    one, two = ((*half[:0:-1], *half) for half in ([kinds[weights]() for _ in range(size)] for size in sizes))
    end = sum(sizes) - 2

    def at(t: int) -> int:
        places = range(max(end + t - len(two) + 1, 0), min(end + t + 1, len(one)))
        return sum(one[place] * two[end + t - place] for place in places)

    for reach in (0, end // 3, end, end + 3):
        found = normal._upper_half(one, two, reach)
        assert len(found) == reach + 1
        for t in {0, 1, reach // 2, reach - 1, reach} & set(range(reach + 1)):
            assert found[t] == at(t)


def drawn_floor(seed: int) -> NormalFloor:
    """A random law: normal, bent or flat weights; equal and different questions, with and without local noise."""
    rng = np.random.default_rng(seed)
    spread = float(np.exp(rng.uniform(np.log(0.4), np.log(16.0))))
    side = normal_side(spread, max(1, int(spread * rng.uniform(1.0, 7.0))))
    if seed % 4 == 1:
        side = tuple(sorted((int(each * (1 + rng.uniform(0.0, 1e-7))) for each in side), reverse=True))
    elif seed % 4 == 2:
        side = tuple(max(each >> 40, 1) for each in side)
    elif seed % 12 == 3:
        side = (1 << 40,) * len(side)
    columns, kept = list[StatedCells](), list[int]()
    for _ in range(int(rng.integers(1, 9))):
        centre = int(rng.integers(1, len(side)))
        keep = (WHOLE, 0, WHOLE - 1, int(rng.integers(WHOLE, dtype=np.uint64)))[int(rng.integers(4))]
        times = int(rng.integers(1, 5))
        columns += [StatedCells(int(rng.integers(2, 20)), side[: centre + 1])] * times
        kept += [keep] * times
    return NormalFloor(tuple(columns), tuple(kept), 1 + seed % 2, UNBOUNDED)


@pytest.mark.parametrize("seed", range(60))
def test_doubles_enclose_what_whole_numbers_find(seed):
    """Whatever the law; both refuse the same weights, and doubles decide nothing where they prove nothing."""
    floor = drawn_floor(seed)
    for epsilon in (0.0, 0.3, 1.1, 4.0, 10.0):
        exact = attempt(lambda epsilon=epsilon: floor.delta_rational(epsilon), (sdp.InvalidInput,))
        if not isinstance(exact, Fraction):
            with pytest.raises(sdp.InvalidInput, match="not nearly those"):
                floor.keeps(epsilon, 1e-6)
            return
        rough = floor._in_doubles(epsilon)
        if exact == 1:  # which is where it is cut off
            assert rough.upper >= 1
        else:
            assert rough.lower <= exact <= rough.upper
            for delta in (float(exact) * (1 + 1e-15), float(exact) * (1 - 1e-15), float(exact) / 2, float(exact) * 2):
                if 0.0 < delta < 1.0:
                    assert floor.keeps(epsilon, delta) == (exact <= Fraction(delta))


def test_doubles_decide_what_is_not_on_the_edge(monkeypatch):
    """32 questions of different sizes are decided without one long number; at the edge whole numbers are asked."""
    floor = NormalFloor(tuple(MANY_SIZES), (WHOLE * 9 // 10,) * 32, 1, UNBOUNDED)
    edge = float(floor.delta_rational(2.0))
    rough = floor._in_doubles(2.0)
    assert rough.upper - rough.lower < 1e-8 * edge
    fresh, asked = replace(floor), list[float]()
    monkeypatch.setattr(NormalFloor, "delta_rational", lambda self, epsilon: asked.append(epsilon) or Fraction(edge))
    assert fresh.keeps(2.0, edge * (1 + 1e-8))
    assert not fresh.keeps(2.0, edge * (1 - 1e-8))
    assert "losses" not in vars(fresh)
    assert not asked
    assert fresh.keeps(2.0, edge)
    assert asked == [2.0]


def exact_of_sides(k: int, side: tuple[int, ...], epsilon: float) -> float:
    """(C1) in fractions."""
    w, h = (*side[:0:-1], *side), len(side) - 1
    others = [1]
    for _ in range(k - 2):
        others = [sum(others[t - x] * w[x] for x in range(len(w)) if 0 <= t - x < len(others))
                  for t in range(len(others) + 2 * h)]  # fmt: skip

    def at(cell: int) -> int:
        return w[cell] if 0 <= cell <= 2 * h else 0

    total, found, factor = 0, Fraction(0), Fraction(math.exp(epsilon))
    for a, b in product(range(2 * h + 1), repeat=2):
        rest = k * h - a - b
        if 0 <= rest < len(others):
            total += w[a] * w[b] * others[rest]
            found += max(w[a] * w[b] - factor * at(a + 1) * at(b - 1), Fraction(0)) * others[rest]
    return float(found / total)


def test_two_reports_change_one_after_the_other():
    dummies = sdp.NormalDummies(5, 20.0, 110)
    one, two = (lattice_floor([dummies] * 3, [WHOLE] * 3, reports) for reports in (1, 2))
    assert float(two.delta_rational(1.0)) == pytest.approx((1 + math.exp(0.5)) * float(one.delta_rational(0.5)))
    assert two.epsilon(1e-6).upper > 2.0 * one.epsilon(1e-6).upper


@pytest.mark.parametrize(
    ("answers", "side", "told"),
    [(1, (2, 1), "2 to 64 answers"), (65, (2, 1), "2 to 64 answers"), (2, (1,), "1025 whole weights"),
     (2, (1, 2), "not increase"), (2, (1, 0), "positive"), (2, (1 << 64, 1), "below 2"),
     (2, (2.0, 1.0), "whole weights")],
)  # fmt: skip
def test_stated_weights_are_checked(answers, side, told):
    with pytest.raises(sdp.InvalidInput, match=told):
        StatedCells(answers, side)


def test_losses_that_are_hardly_ever_finite():
    """Of 300 such questions the finite losses have less than 2^-66 together; an empty array was convolved."""
    law = NormalFloor((StatedCells(2, (4, 3)),) * 300, (2**64,) * 300, 1, 1e9)
    assert law.keeps(1.0, 1e-6) is False
