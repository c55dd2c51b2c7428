"""How far junk, and false counts per level, move an answer: the told bounds hold, and are attained."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from shuffledp.collection.estimates import (
    JUNK,
    Tallied,
    estimate_question,
    shift_of_future_junk,
    shift_of_junk,
    shift_of_levels,
    slopes_of,
    width_of,
)
from shuffledp.collection.kinds import prices
from shuffledp.collection.task import Draft
from shuffledp.collection.verify import cannot_be_checked
from tests.collection.laws import exact_law
from tests.collection.tasks import choice, document, draft, number, parse

ROOT = Path(__file__).parents[2]
FAR = ((0.5, 500, 0.4), (4.0, 500, 1.0))
QUESTIONS = {
    "krr:5": choice(5, 0),
    "rr": choice(2, 0),
    "hadamard:5": choice(5, 0, "hadamard:5"),
    "one-bit": number(0, 100, 1, 0),
}
WHOLE = 400_000


def reports_at(asked: Draft, level: int, shares: list[Fraction], n: int) -> list[int]:
    """As many of each report as n people of a level, whose answers have these shares, send on average."""
    family, keep = asked.questions[0].family, asked.levels[level].draw[0]
    laws = [exact_law(family, keep, record) for record in range(len(shares))]
    expected = [
        sum(share * law[report] for share, law in zip(shares, laws, strict=True)) for report in range(family.reports)
    ]
    ends = [round(n * sum(expected[: place + 1])) for place in range(len(expected))]
    return [two - one for one, two in itertools.pairwise([0, *ends])]


def answer(asked: Draft, people: list[list[int]], told: list[int]) -> float:
    """The first answer's estimated share, or the mean, from so many reports of each kind and the counts told."""
    totals = np.array(people).sum(axis=0)
    value = estimate_question(asked, 0, [Tallied(np.repeat(np.arange(totals.size), totals), tuple(told))]).value
    return float(value if np.ndim(value) == 0 else value[0])


def shares_with(asked: Draft, first: Fraction) -> list[Fraction]:
    """The first answer has this share and the last one the rest; of a number the last answer has it."""
    question = asked.questions[0]
    others = [Fraction(0)] * (question.answers - 2)
    return [1 - first, *others, first] if question.kind == "number" else [first, *others, 1 - first]


def test_the_attack_that_was_found():
    """krr:5 at .5/4: 500/500 told as 0/1,000 makes 42 % of 60 %, at any number of people."""
    asked = draft(choice(5, 0), levels=FAR)
    people = [reports_at(asked, level, shares_with(asked, Fraction(3, 5)), WHOLE // 2) for level in (0, 1)]
    honest = answer(asked, people, [WHOLE // 2, WHOLE // 2])
    false = answer(asked, people, [0, WHOLE])
    assert honest == pytest.approx(0.6, abs=1e-4)
    assert false == pytest.approx(0.425, abs=1e-3)
    assert honest - false <= shift_of_levels(asked, 0, [500, 500], 0.5, stated=False)
    assert honest - false <= shift_of_levels(asked, 0, [0, 1000], 0.5, stated=True)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("share", [Fraction(1, 100), Fraction(1, 20), Fraction(1, 10), Fraction(1, 2)])
def test_the_told_shift_by_false_levels_is_the_largest_there_is(question, share):
    asked = draft(QUESTIONS[question], levels=FAR)
    width, half, moved = width_of(asked.questions[0]), WHOLE // 2, int(WHOLE * share)
    worst = 0.0
    for first in (Fraction(0), Fraction(1, 5), Fraction(3, 5), Fraction(1)):
        people = [reports_at(asked, level, shares_with(asked, first), half) for level in (0, 1)]
        for told in ([half - moved, half + moved], [half + moved, half - moved]):
            shift = abs(answer(asked, people, told) - float(first) * width)
            worst = max(worst, shift)
            # the same, seen by somebody who knows the told counts alone
            assert shift <= shift_of_levels(asked, 0, told, float(share), stated=True) * (1 + 1e-3) + 1e-3 * width
    told = shift_of_levels(asked, 0, [500, 500], float(share), stated=False)
    assert worst == pytest.approx(told, rel=1e-2, abs=1e-3 * width)


def test_close_levels_shift_little_and_one_level_not_at_all():
    far, close = draft(choice(5, 0), levels=FAR), draft(choice(5, 0), levels=((0.5, 500, 0.4), (0.6, 500, 0.5)))
    assert shift_of_levels(close, 0, [500, 500], 0.1, stated=False) < 0.2 * shift_of_levels(
        far, 0, [500, 500], 0.1, stated=False
    )
    alone = draft(choice(5, 0), levels=FAR[:1])
    assert prices(alone)[0].level_shift == (0.0, 0.0, 0.0)
    assert len(cannot_be_checked(alone, [1000])) == 4
    last = cannot_be_checked(far, [500, 500])[-1]
    assert last == (
        "that every person is counted at the level that the person chose: false counts of 1 / 5 / 10 % of the people "
        "shift question 1 by up to 1.3 / 6.3 / 13 points"
    )


PAGE = [
    # levels and planned people, and the largest shifts in points, as the threat model's page has them
    (((0.5, 540, 0.1), (1.0, 370, 0.25), (4.0, 90, 1.0)), "2.8 points | 16 | 35"),
    (((0.5, 540, 0.1), (0.75, 370, 0.2), (1.0, 90, 0.25)), "0.75 | 3.9 | 7.7"),
    (((0.5, 540, 0.1), (1.0, 460, 0.25)), "0.63 | 3.3 | 6.8"),
    (((0.5, 1000, 0.1),), "0 | 0 | 0"),
]


@pytest.mark.costly(but=("levels3-0 | 0 | 0",))
@pytest.mark.parametrize(("levels", "row"), PAGE)
def test_the_page_tells_these_shifts(levels, row):
    page = (ROOT / "docs" / "collection" / "threat-model.md").read_text(encoding="utf-8")
    shifts = [100 * shift for shift in prices(draft(levels=levels))[0].level_shift]
    told = [float(number.split()[0]) for number in row.split(" | ")]
    assert [float(f"{shift:.2g}") for shift in shifts] == told
    assert f"| {row} |" in page


def test_levels_that_nobody_has_can_be_told_all_the_same():
    asked = draft(choice(5, 0), levels=((0.5, 500, 0.4), (1.0, 500, 0.4), (8.0, 0, 3.0)))
    two = draft(choice(5, 0), levels=((0.5, 500, 0.4), (1.0, 500, 0.4)))
    wide, narrow = (shift_of_levels(one, 0, n, 0.1, stated=False) for one, n in ((asked, [5, 5, 0]), (two, [5, 5])))
    assert wide > 2 * narrow


@pytest.mark.costly("0-krr:100", "1-krr:100")
@pytest.mark.parametrize("question", [*QUESTIONS, "krr:100"])
@pytest.mark.parametrize("level", [0, 1])
def test_junk_shifts_no_answer_further_than_was_told_before(question, level):
    """Junk that picks the first level, which nobody was planned to have, passed the bound of 0.2.0."""
    whole = document((QUESTIONS | {"krr:100": choice(100, 0)})[question], levels=((0.1, 0, 0.05), (4.0, 1000, 1.0)))
    asked = parse(whole)
    width, junk = width_of(asked.questions[0]), int(WHOLE * JUNK)
    known = slopes_of(asked, 0)
    told = shift_of_future_junk(known, [0, 1000], JUNK, width)
    family, worst = asked.questions[0].family, 0.0
    for first in (Fraction(0), Fraction(1)):
        people = reports_at(asked, 1, shares_with(asked, first), WHOLE - junk)
        honest = answer(asked, [people], [0, WHOLE - junk])
        for report in (0, 1, family.reports - 1):
            spoiled = [junk if place == report else 0 for place in range(family.reports)]
            counts = [junk, WHOLE - junk] if level == 0 else [0, WHOLE]
            worst = max(worst, abs(answer(asked, [people, spoiled], counts) - honest))
    assert worst <= told + 1e-4 * width
    old = shift_of_junk(known, [0, 1000], JUNK, width)
    assert told > 1.04 * old
    if level == 0 and question == "krr:100":
        assert worst > 1.02 * old
