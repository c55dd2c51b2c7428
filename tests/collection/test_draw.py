"""The law of a report: whole numbers that state it, a sampler that compares them, and the library's own law."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

from shuffledp.collection.asked import StatedDummies
from shuffledp.collection.draw import SLACK, WHOLE, Family, draw_report, family_named, most_implied
from shuffledp.collection.laws import draw_dummies, ones_law, ones_moments
from shuffledp.dummies import DiscreteLaplace
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import Randomness, simulation_random
from shuffledp.randomizers import HadamardResponse, OneBit, RandomizedResponse
from shuffledp.randomizers.wire import unpack_each
from tests.collection.laws import exact_law
from tests.collection.tasks import choice, document, draft, number, parse

pytestmark = pytest.mark.machine
FAMILIES = [Family("rr", 2), Family("krr:5", 5), Family("one-bit", 7), Family("hadamard:3", 3), Family("hadamard:8", 8)]
BUDGETS = (0.01, 0.5, 1.0, 1.0986122886681098, 4.0, 12.0, 30.0)


class Tree(Randomness):
    """Every path of a sampler, each with its exact probability: draws answer as the path says."""

    private = False

    def __init__(self, path: list[int]) -> None:
        self.path, self.weight, self.asked = path, Fraction(1), 0
        self.open: list[list[int]] = []

    def words(self, n: int) -> np.ndarray:
        raise AssertionError("a client compares integers only")

    def choose(self, weights: list[Fraction]) -> int:
        place = self.asked
        self.asked += 1
        if place == len(self.path):
            self.open += [[*self.path, other] for other in range(1, len(weights)) if weights[other]]
            self.path = [*self.path, 0]
        self.weight *= weights[self.path[place]]
        return self.path[place]

    def bernoulli(self, thresholds, n):  # type: ignore[no-untyped-def]
        chance = Fraction(int(thresholds), WHOLE)
        return np.array([self.choose([1 - chance, chance]) == 1])

    def integers(self, bound: int, n: int) -> np.ndarray:
        return np.array([self.choose([Fraction(1, bound)] * bound)])


def law_of(sampler: Callable[[Randomness], int], reports: int) -> tuple[Fraction, ...]:
    found = [Fraction(0)] * reports
    paths: list[list[int]] = [[]]
    while paths:
        tree = Tree(paths.pop())
        found[sampler(tree)] += tree.weight
        paths += tree.open
    return tuple(found)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
@pytest.mark.parametrize("keep", [0, 1, 2**63 + 1, WHOLE - 1])
def test_the_sampler_draws_the_stated_law_exactly(family, keep):
    for record in range(family.records):
        law = law_of(lambda random: draw_report(family, keep, record, random), family.reports)  # noqa: B023
        assert law == exact_law(family, keep, record)
        assert sum(law) == 1


@pytest.mark.parametrize("epsilon0", BUDGETS)
def test_the_stated_law_is_the_librarys_as_exact_rationals(epsilon0):
    for family in FAMILIES:
        library = family.library(0.0, 6.0)
        keep = family.threshold(epsilon0)
        rr = RandomizedResponse(2) if isinstance(library, OneBit) else library
        assert isinstance(rr, RandomizedResponse | HadamardResponse)
        own = Fraction(int(rr.keep_thresholds(epsilon0)), WHOLE)
        for record in range(family.records):
            law = exact_law(family, keep, record)
            if isinstance(library, OneBit):  # a bit of chance t = record/6, kept with chance own, else fair
                assert law[1] == own * Fraction(record, 6) + (1 - own) / 2
            elif isinstance(library, RandomizedResponse):
                assert law[record] == own + (1 - own) / family.records
            else:
                agree = [library.support_counts(np.array([r])) for r in range(family.reports)]
                share = (1 - own) / family.reports
                expected = [share + (own * 2 / family.reports if each[record] else 0) for each in agree]
                assert list(law) == expected


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
@pytest.mark.parametrize("epsilon0", BUDGETS)
def test_no_law_within_the_limit_exceeds_the_budget_and_the_librarys_is_within(family, epsilon0):
    keep = most_implied(family, epsilon0)
    assert family.threshold(epsilon0) <= keep
    laws = [exact_law(family, keep, record) for record in (0, family.records - 1)]
    worst = max(one / two for one, two in zip(*laws, strict=True))
    mp.prec = 200
    limit = mp.e ** (mpf(Fraction(epsilon0).numerator) / Fraction(epsilon0).denominator + mpf(1) / SLACK.denominator)
    assert mpf(worst.numerator) / worst.denominator <= limit
    if keep < WHOLE - 2:
        beyond = [exact_law(family, keep + 2, record) for record in (0, family.records - 1)]
        worst = max(one / two for one, two in zip(*beyond, strict=True))
        assert mpf(worst.numerator) / worst.denominator > limit


def test_a_task_whose_integers_imply_more_than_it_says_is_refused():
    family = Family("krr:5", 5)
    keep = most_implied(family, 0.5)
    level = {"name": {"en": "one"}, "epsilon0": 0.5, "planned": 1, "promise": 0.5, "crowd": 0.1}
    parse(document() | {"levels": [level | {"draw": [str(keep)]}]})
    with pytest.raises(InvalidInput, match="implies a budget above"):
        parse(document() | {"levels": [level | {"draw": [str(keep + 1)]}]})


@pytest.mark.parametrize(
    "name", ["sue:5", "oue:5", "olh:5", "subset:5", "laplace", "krr:4", "rr", "krr:05", "hadamard"]
)
def test_other_families_are_refused(name):
    with pytest.raises(InvalidInput, match="look alike"):
        family_named(name, "choice", 5, "the draft")


def test_an_answer_beyond_the_question_is_refused():
    for answer in (-1, 5):
        with pytest.raises(InvalidInput, match="answer"):
            draw_report(Family("krr:5", 5), 0, answer, simulation_random(1))


def test_rows_are_read_one_by_one():
    family = Family("krr:300", 300)
    rows = np.frombuffer(b"".join(family.to_bytes(report) for report in (0, 299)) + b"\x2c\x01\xff\xff", dtype=np.uint8)
    reports, possible = unpack_each(rows.reshape(-1, 2), family.library())
    assert (reports.tolist(), possible.tolist()) == ([0, 299], [True, True, False, False])


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_report_travels_as_the_library_reads_it(family):
    rows = np.frombuffer(b"".join(map(family.to_bytes, range(family.reports))), dtype=np.uint8)
    reports, possible = unpack_each(rows.reshape(family.reports, -1), family.library())
    assert possible.all()
    assert reports.tolist() == list(range(family.reports))


def laplace(count: int, ratio: float) -> StatedDummies:
    return StatedDummies("laplace", count, DiscreteLaplace(count, ratio).thresholds)


def test_the_law_of_dummies_is_the_librarys():
    law = DiscreteLaplace(60, 1.2)
    assert ones_law(laplace(60, 1.2)) == tuple(Fraction(weight, WHOLE) for weight in law.weights)
    mean, variance = ones_moments(laplace(60, 1.2))
    assert mean == 30
    assert variance == sum(Fraction(w, WHOLE) * (j - 30) ** 2 for j, w in enumerate(law.weights))
    assert ones_moments(StatedDummies("uniform", 7)) == (Fraction(7, 2), Fraction(7, 4))
    assert sum(ones_law(StatedDummies("uniform", 7))) == 1


def test_dummies_are_drawn_from_their_law():
    """Chi-square at a false-alarm rate of 1e-4 each; the seed is fixed."""
    random = simulation_random(11)
    asked = draft(choice(5, 20_000), number(dummies=9)).questions
    counts = np.bincount(draw_dummies(asked[0], random), minlength=5)
    assert counts.sum() == 20_000
    assert ((counts - 4000.0) ** 2 / 4000.0).sum() < 23.5  # 4 degrees of freedom
    law = {"law": "laplace", "count": 6, "draw": [str(t) for t in DiscreteLaplace(6, 1.5).thresholds]}
    question = draft(number() | {"dummies": law}).questions[0]
    ones = np.bincount([sum(draw_dummies(question, random)) for _ in range(20_000)], minlength=7)
    expected = np.array([float(p) for p in ones_law(question.dummies)]) * 20_000
    assert ((ones - expected) ** 2 / expected).sum() < 27.9  # 6 degrees of freedom
