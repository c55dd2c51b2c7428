"""Ball dummies against enumeration: their counts, their floor over real pairs of people, and what is drawn."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise, product
from operator import mul

import pytest
from benchmarks.bench_survey import least_variance

from shuffledp import ball
from shuffledp.accounting.theorems.floor.bound import floor_profile
from shuffledp.ball import WHOLE, BallDummies, Column, below_of, chance_touched, default_weights
from shuffledp.dummies import OnesLaw
from shuffledp.errors import InvalidInput
from shuffledp.numerics.functions import correlated
from shuffledp.numerics.randomness import simulation_random
from shuffledp.randomizers.categorical import RandomizedResponse

Point = tuple[tuple[int, ...], ...]
Law = dict[Point, Fraction]
TINY = Fraction(1, 1 << 150)
WEIGHTS = (2035902713980687387, 5242767268890466518, 5235059938336531662, 5933014152501866049)

CHOICES = [Column("choice", k) for k in (2, 3, 4)]
BITS = [Column("bits", size) for size in (1, 2, 3)]
TASKS = [
    *((column,) for column in (*CHOICES, *BITS)),
    (CHOICES[0],) * 2,
    (CHOICES[0],) * 3,
    (CHOICES[1], CHOICES[0]),
    (BITS[1], CHOICES[0]),
    (CHOICES[1], BITS[1]),
]
RADII = {task: (1, 2, 3) if len(task) == 1 and task[0].values < 4 else (1, 2) for task in TASKS}


def name_of(task: tuple[Column, ...]) -> str:
    return "+".join(column.name for column in task)


@cache
def vectors(column: Column, radius: int) -> tuple[tuple[int, ...], ...]:
    """All vectors of a ball, by the definition of the gauge."""
    reach = radius * column.step
    every = product(range(-reach, reach + 1), repeat=column.cells)
    return tuple(z for z in every if sum(z) == 0 and -(-sum(v for v in z if v > 0) // column.step) <= radius)


def sent(column: Column, record: int) -> tuple[int, ...]:
    if column.kind == "bits":
        return (column.size - record, record)
    return tuple(int(cell == record) for cell in range(column.size))


def added(one: Point, other: Point) -> Point:
    return tuple(tuple(a + b for a, b in zip(x, y, strict=True)) for x, y in zip(one, other, strict=True))


@cache
def law_of(law: BallDummies) -> Law:
    """The law of z that is drawn, by its definition: a radius, then one of its points."""
    found: dict[Point, Fraction] = defaultdict(Fraction)
    for radius, weight in enumerate(law.radius):
        points = list(product(*(vectors(column, radius) for column in law.columns)))
        for z in points:
            found[z] += Fraction(weight, WHOLE * len(points))
    kept = {
        z: chance
        for z, chance in found.items()
        if chance and all(min(own) >= -h for own, h in zip(z, law.centre, strict=True))
    }
    return {z: chance / sum(kept.values()) for z, chance in kept.items()}


def divergence(law: Law, worlds: Sequence[dict[Point, Fraction]], factor: Fraction) -> Fraction:
    """(D3): the reports of one person are added to the dummies, in either world."""
    released = [defaultdict[Point, Fraction](Fraction) for _ in worlds]
    for found, world in zip(released, worlds, strict=True):
        for report, chance in world.items():
            for z, own in law.items():
                found[added(z, report)] += chance * own
    first, second = released
    return sum((max(p - factor * second.get(t, Fraction(0)), Fraction(0)) for t, p in first.items()), Fraction(0))


def world(task: Sequence[Column], records: Sequence[int], kept: Sequence[Fraction] = ()) -> dict[Point, Fraction]:
    """What a person sends: the record's own with chance kappa, else uniformly."""
    found: dict[Point, Fraction] = {}
    own = kept or [Fraction(1)] * len(task)
    for values in product(*(range(column.values) for column in task)):
        chance = math.prod(
            (value == record) * kappa + (1 - kappa) / column.values
            for column, record, value, kappa in zip(task, records, values, own, strict=True)
        )
        if chance:
            found[tuple(sent(column, value) for column, value in zip(task, values, strict=True))] = Fraction(chance)
    return found


def random_weights(rng: random.Random, largest: int) -> tuple[int, ...]:
    cuts = sorted(rng.randrange(WHOLE + 1) for _ in range(largest))
    return tuple(two - one for one, two in pairwise((0, *cuts, WHOLE)))


def laws(task: tuple[Column, ...]) -> Iterator[BallDummies]:
    rng = random.Random(name_of(task))
    for largest in RADII[task]:
        full = tuple(largest * column.step for column in task)
        yield BallDummies.of_rate(task, rng.uniform(0.2, 1.1), largest)
        yield BallDummies(task, random_weights(rng, largest), full)


@pytest.mark.parametrize("column", [*CHOICES, Column("choice", 5), *BITS], ids=lambda column: column.name)
def test_balls_and_rims_are_what_enumeration_counts(column: Column):
    radius = 3 if column.cells < 5 else 2
    for r in range(radius + 1):
        ball = set(vectors(column, r))
        assert len(ball) == column.balls(radius)[r]
        shift = (column.step, -column.step, *[0] * (column.cells - 2))
        assert sum(added((z,), (shift,))[0] not in ball for z in ball) == column.rims(radius)[r]
        assert all(column.gauge(z) <= r for z in ball)


@pytest.mark.parametrize("k", [1, 2, 3, 7, 40, 300])
def test_balls_of_many_answers_follow_the_generating_function(k: int):
    """sum_j C(d, j)^2 x^j / (1 - x)^(d + 1), d = k - 1 (Conway and Sloane 1997)."""
    radius, d = 40, k - 1
    counts = [math.comb(d, j) ** 2 for j in range(radius + 1)]
    for _ in range(k):
        counts = list(accumulate(counts))
    assert Column("choice", k + 1).rims(radius) == tuple(counts)
    if k > 1:
        assert Column("choice", k).balls(radius) == tuple(counts)


def test_the_law_of_a_cell_among_many_answers_adds_up():
    for k, largest in ((6, 40), (60, 80), (200, 60)):
        law = BallDummies.of_rate([Column("choice", k)], 0.5, largest)
        first, *others = law.cell_chances(0)
        assert 0 <= (1 << 192) - first - 2 * sum(others) <= 4 * largest + 2


@pytest.mark.costly("bits:2+choice:2", "choice:2+choice:2+choice:2", "choice:3+bits:2", "choice:3+choice:2")
@pytest.mark.parametrize("task", TASKS, ids=name_of)
def test_the_floor_is_the_largest_divergence_of_all_pairs_of_records(task: tuple[Column, ...]):
    rng = random.Random(name_of(task) + "pairs")
    everyone = list(product(*(range(column.values) for column in task)))
    for law in laws(task):
        real = law_of(law)
        for factor in (Fraction(1), Fraction(rng.randint(4, 20), 4)):
            found = [
                divergence(real, (world(task, one), world(task, two)), factor)
                for one, two in product(everyone, repeat=2)
                if one != two
            ]
            assert max(found) <= law.delta(factor) <= max(found) + TINY


@pytest.mark.parametrize("task", TASKS, ids=name_of)
def test_local_noise_makes_the_floor_no_larger_than_stated(task: tuple[Column, ...]):
    rng = random.Random(name_of(task) + "noise")
    ends = [tuple(0 for _ in task), tuple(column.values - 1 for column in task)]
    for law in laws(task):
        kept = [Fraction(rng.randint(1, 9), 10) for _ in task]
        epsilon = rng.uniform(0.0, 1.5)
        real = divergence(law_of(law), [world(task, end, kept) for end in ends], Fraction(math.exp(epsilon)) - TINY)
        stated = law.floor(epsilon, kept)
        assert real - Fraction(1, 2**50) <= stated <= law.floor(epsilon) * chance_touched(kept) + TINY
        assert law.floor(epsilon, [Fraction(0)] * len(task)) == 0


@pytest.mark.parametrize("task", [task for task in TASKS if len(task) == 1], ids=name_of)
def test_two_reports_of_one_person_change_one_at_a_time(task: tuple[Column, ...]):
    rng = random.Random(name_of(task) + "two")
    for law in laws(task):
        twice: list[dict[Point, Fraction]] = []
        for record in (0, task[0].values - 1):
            (report,) = world(task, (record,))
            twice.append({added(report, report): Fraction(1)})
        epsilon = rng.uniform(0.2, 2.0)
        real = divergence(law_of(law), twice, Fraction(math.exp(epsilon)))
        assert real - Fraction(1, 2**50) <= law.floor(epsilon, reports=2)


SMALLER = [
    ((CHOICES[0],), 3, (2,)),
    ((CHOICES[1],), 2, (1,)),
    ((CHOICES[2],), 2, (1,)),
    ((BITS[1],), 2, (3,)),
    ((BITS[2],), 2, (4,)),
    ((CHOICES[0],) * 2, 3, (2, 2)),
    ((CHOICES[1], CHOICES[0]), 2, (1, 2)),
    ((BITS[1], CHOICES[0]), 2, (3, 1)),
]


@pytest.mark.parametrize(("task", "largest", "centre"), SMALLER, ids=str)
def test_fewer_dummies_cost_the_chance_of_an_emptied_cell(
    task: tuple[Column, ...], largest: int, centre: tuple[int, ...]
):
    law = BallDummies.of_rate(task, 2.5, largest, centre)
    assert law.redraw
    real, ends = law_of(law), [tuple(0 for _ in task), tuple(column.values - 1 for column in task)]
    for epsilon in (0.3, 1.5, 3.0):
        found = divergence(real, [world(task, end) for end in ends], Fraction(math.exp(epsilon)))
        assert found - Fraction(1, 2**50) <= law.floor(epsilon)
    assert law.floor(3.0) < 1


@pytest.mark.parametrize(("task", "largest", "centre"), SMALLER, ids=str)
def test_the_law_of_a_cell_is_never_below_the_true_one(task: tuple[Column, ...], largest: int, centre: tuple[int, ...]):
    for own in (centre, tuple(largest * column.step for column in task)):
        law = BallDummies.of_rate(task, 2.5, largest, own)
        free = BallDummies.of_rate(task, 2.5, largest)
        for place, column in enumerate(task):
            cells: list[dict[int, Fraction]] = []
            for one in (law, free):
                cells.append(defaultdict(Fraction))
                for z, chance in law_of(one).items():
                    cells[-1][z[place][0]] += chance
            for v, chance in enumerate(law.cell_chances(place)):
                assert 0 <= cells[1][v] * (1 << 192) - chance <= 2
            found = law.cell_law(place)
            assert sum(found) < 1 / float(law.accepted) + 1e-12
            for j, chance in enumerate(found):
                assert chance >= cells[0][j - law.centre[place]] * (1 - 1e-15)
            assert law.rows[place] == column.cells * law.centre[place]


class _Again(Exception):
    """The sampler draws all columns again."""


@dataclass
class _Told:
    """A source whose choices are told; the radius is chosen by its place."""

    law: BallDummies
    choices: list[int]
    bounds: list[int] = field(default_factory=list[int])
    chance: Fraction = Fraction(1)

    def below(self, bound: int) -> int:
        place = len(self.bounds)
        if bound == WHOLE and place:
            raise _Again
        weights = self.law.radius if bound == WHOLE else None
        self.bounds.append(len(weights) if weights else bound)
        choice = self.choices[place] if place < len(self.choices) else 0
        self.choices[place:] = self.choices[place:] or [0]
        self.chance *= Fraction(weights[choice], WHOLE) if weights else Fraction(1, bound)
        return sum(weights[:choice]) + weights[choice] // 2 if weights else choice


def outcomes(law: BallDummies) -> tuple[Law, Fraction]:
    """What `draw` returns over all its whole-number choices, and how often it would draw again."""
    found, again, choices = defaultdict[Point, Fraction](Fraction), Fraction(0), [0]
    while choices:
        told = _Told(law, choices)
        try:
            drawn = law.draw(told.below)
        except _Again:
            again += told.chance
        else:
            cells = zip(drawn, law.centre, strict=True)
            found[tuple(tuple(int(cell) - own for cell in column) for column, own in cells)] += told.chance
        while choices and choices[-1] + 1 == told.bounds[len(choices) - 1]:
            choices.pop()
        if choices:
            choices[-1] += 1
    return found, again


DRAWN = [
    *((column,) for column in (*CHOICES, *BITS)),
    (CHOICES[1], CHOICES[0]),
    (CHOICES[0], BITS[1]),
]


@pytest.mark.parametrize("task", DRAWN, ids=name_of)
def test_the_sampler_has_the_law_over_all_its_choices(task: tuple[Column, ...]):
    largest = 3 if len(task) == 1 else 2
    for centre in (None, tuple(largest * column.step - 1 for column in task)):
        law = BallDummies.of_rate(task, 2.5, largest, centre)
        found, again = outcomes(law)
        assert again == 1 - sum(found.values())
        assert (again > 0) == law.redraw
        assert again <= 1 - law.accepted
        assert {z: chance / (1 - again) for z, chance in found.items()} == law_of(law)


def test_one_bit_has_the_law_and_the_floor_that_the_engine_certifies():
    law = BallDummies.of_rate((CHOICES[0],), 1.0, 14)
    ones = defaultdict[int, Fraction](Fraction)
    for v, chance in enumerate(law.cell_law(0)):
        ones[v] = Fraction(chance)
    steps = [round(sum((ones[j] for j in range(i + 1)), Fraction(0)) * WHOLE) for i in range(14)]
    draw = (*steps, *(WHOLE - step for step in reversed(steps)))
    engine = floor_profile(RandomizedResponse(2), None, OnesLaw(draw), draw=WHOLE).delta(1.0)
    assert f"{float(law.floor(1.0)):.5g}" == "3.8426e-07"
    assert float(law.floor(1.0)) == pytest.approx(engine.upper, rel=1e-9)


def test_numbers_of_dummies_and_variances_are_those_derived():
    """Accuracy.md, section 2: dummies a cell, and V b^2, of one question at promise 1."""
    for k, centre, most in ((2, 14, 2.0), (3, 15, 3.34), (5, 17, 4.8), (10, 20, 6.2), (50, 24, 7.6)):
        law = BallDummies.of_promise((Column("choice", k),), [(1.0, ())], 1e-6)
        assert law.centre == (centre,)
        assert 0.85 * most < law.cell_variance(0) < most
    assert BallDummies.of_promise((Column("choice", 5),), [(0.25, ())], 1e-6).rows == (310,)
    assert BallDummies.of_promise((Column("choice", 5),), [(0.1, ())], 1e-6).rows == (715,)


def test_what_a_search_finds_is_kept_and_one_dummy_a_cell_fewer_is_not():
    task = (Column("choice", 5), Column("bits", 8), Column("choice", 2))
    kept = tuple(Fraction(n, 10) for n in (9, 8, 9))
    levels = [(1.0, kept), (0.5, tuple(each / 2 for each in kept))]
    law = BallDummies.of_promise(task, levels, 1e-6)
    assert all(law.floor(promise, kappas) <= Fraction(1e-6) for promise, kappas in levels)
    for place in range(3):
        centre = tuple(own - (i == place) for i, own in enumerate(law.centre))
        fewer = BallDummies(task, law.radius, centre)
        assert any(fewer.floor(promise, kappas) > Fraction(1e-6) for promise, kappas in levels)


@pytest.mark.parametrize(("most", "largest"), [(2_000, 4096), (100_000, 50)])
def test_what_cannot_be_had_is_refused_before_the_law_of_a_cell_is_summed(monkeypatch, most: int, largest: int):
    """Among 200 answers at promise 1 it takes 25 dummies a cell, and a radius of 263; the sum takes longest of all."""
    asked = (Column("choice", 200),), [(1.0, (Fraction(1),))], 1e-6, 1
    law = BallDummies.of_promise(*asked)
    assert law.rows[0] > 2_000
    assert law.largest > 50
    assert BallDummies.of_promise(*asked, law.rows[0], law.largest) == law
    monkeypatch.setattr(ball, "_cell_chances", None)
    with pytest.raises(InvalidInput, match="no ball law"):
        BallDummies.of_promise(*asked, most, largest)


@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_sums_of_products_by_one_long_product_are_exact(size: int):
    random_numbers = random.Random(size)
    for _ in range(20):
        ways = [random_numbers.randint(0, 10**30) for _ in range(size)]
        weighted = sorted((random_numbers.randint(-5, 10 ** random_numbers.randint(1, 99)) for _ in ways), reverse=True)
        found = [sum(map(mul, ways, weighted[v:])) for v in range(size)]
        if min(found) >= 0:
            assert correlated(ways, weighted) == found
    assert correlated([0] * size, [0] * size) == [0] * size


def test_weights_are_the_same_numbers_everywhere():
    assert default_weights((Column("choice", 3),), 1.0, 3) == WEIGHTS
    assert sum(default_weights((Column("choice", 5),) * 32, 0.25, 700)) == WHOLE


def test_columns_are_drawn_together_from_secure_words():
    law = BallDummies.of_promise((Column("choice", 5), Column("bits", 10), Column("choice", 200)), [(2.0, ())], 1e-6)
    below = below_of(simulation_random(3))
    for _ in range(20):
        drawn = law.draw(below)
        assert [int(column.sum()) for column in drawn] == list(law.rows)
        assert all(int(column.min()) >= 0 for column in drawn)


def test_whole_numbers_below_a_bound_are_uniform_and_reach_every_value():
    below = below_of(simulation_random(5))
    assert below(1) == 0
    assert {below(3) for _ in range(100)} == {0, 1, 2}
    large = (1 << 200) + 1
    assert max(below(large) for _ in range(50)) > 1 << 198
    assert len({below(1 << 64) for _ in range(50)}) == 50


def test_a_floor_far_out_is_the_chance_of_what_only_one_world_can_give():
    law = two_choices()
    assert law.floor(1e300) == law.floor(1000.0)  # e^1e300 was computed, and filled the memory
    assert law.floor(1e300) >= law.delta(Fraction(1 << 4000)) > 0


def two_choices() -> BallDummies:
    return BallDummies.of_rate((CHOICES[0],) * 2, 1.0, 3)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Column("choice", 1), "from 2 to 1024"),
        (lambda: Column("bits", 0), "from 1 to 1024"),
        (
            lambda: Column("text", 2),  # pyright: ignore[reportArgumentType]
            "'choice' or 'bits'",
        ),
        (lambda: BallDummies((), (WHOLE,), ()), "1 to 64 columns"),
        (lambda: BallDummies((CHOICES[0],), (WHOLE,), ()), "one centre for each"),
        (lambda: BallDummies((CHOICES[0],), (WHOLE - 1,), (0,)), "add up to 2^64"),
        (lambda: BallDummies((CHOICES[0],), (-1, WHOLE + 1), (1,)), "at least 0"),
        (lambda: BallDummies((CHOICES[0],), (0, 0, 0, WHOLE), (0,)), "too small for a radius up to 3"),
        (lambda: BallDummies.of_rate((CHOICES[0],), 0.0, 3), "positive rate"),
        (lambda: BallDummies.of_rate((CHOICES[0],), 1.0, 5000), "from 0 to 4096"),
        (lambda: BallDummies.of_promise((CHOICES[0],), [], 1e-6), "positive promises"),
        (lambda: BallDummies.of_promise((CHOICES[0],), [(1.0, ())], 1e-6, most=20), "no ball law with up to 20"),
        (lambda: BallDummies.of_rate((CHOICES[0],), 1.0, 3).floor(-1.0), "epsilon of at least 0"),
        (lambda: BallDummies.of_rate((CHOICES[0],), 1.0, 3).delta(Fraction(1, 2)), "at least 1"),
        (lambda: BallDummies.of_rate((CHOICES[0],), 1e20, 3), "positive rate up to 30"),  # was an OverflowError
        (lambda: BallDummies.of_rate((CHOICES[0],), 1.0, True), "radius from 0"),  # was a radius of 1
        (lambda: BallDummies.of_rate((CHOICES[0],) * 1000, 1.0, 3), "list of 1 to 64 columns"),
        (lambda: BallDummies.of_rate("choice:2", 1.0, 3), "list of 1 to 64 columns"),
        (lambda: Column.named("choice:" + "9" * 5000), "choice:K or bits:B"),
        (lambda: BallDummies.of_promise((CHOICES[0],), [(1.0, ())], 1e-6, 0), "at least one report"),
        (lambda: two_choices().floor(math.nan), "finite epsilon"),
        (lambda: two_choices().floor(math.inf), "finite epsilon"),
        (lambda: two_choices().floor(1.0, (), 0), "at least one report"),
        (lambda: two_choices().floor(1.0, (Fraction(1),)), "each of 2 columns"),
        (lambda: two_choices().floor(1.0, (Fraction(2), Fraction(2))), r"in \[0, 1\]"),  # was a floor of 0
        (lambda: two_choices().floor(1.0, (Fraction(-1), Fraction(1))), r"in \[0, 1\]"),
    ],
)
def test_bad_input_is_refused(make: Callable[[], object], told: str):
    with pytest.raises(InvalidInput, match=told.replace("^", r"\^")):
        make()


@pytest.mark.costly("5-2.0-8-0.002")
@pytest.mark.parametrize(
    ("k", "rate", "largest", "most"),
    [
        (2, 1.0, 8, 1e-9),
        (2, 1.0, 14, 1e-9),
        (3, 1.0, 14, 2e-4),
        (3, 2.0, 9, 1e-5),
        (4, 2.0, 8, 6e-4),
        (5, 2.0, 8, 2e-3),
    ],
)
def test_hardly_any_law_has_less_variance(k: int, rate: float, largest: int, most: float):
    law = BallDummies.of_rate([Column("choice", k)], rate, largest)
    least = least_variance(k, largest + 3, rate, float(law.floor(rate)))
    assert -1e-9 < law.cell_variance(0) / least - 1.0 < most
