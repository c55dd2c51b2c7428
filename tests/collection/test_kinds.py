"""Estimates of every kind of question: unbiased, intervals that cover, and no dependence or word out of noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from shuffledp.collection.asked import whole_values
from shuffledp.collection.draw import Family, draw_report, pieces_of
from shuffledp.collection.estimates import (
    Spread,
    SpreadEstimate,
    Tallied,
    bits_law,
    count_law,
    dummies_along,
    dummies_between,
    estimate_question,
    slope_of,
    slopes_of,
)
from shuffledp.collection.kinds import CONFIDENCE, More, half_width, margins_at, more_of
from shuffledp.collection.laws import drawn_columns, needed_ball, parts_of
from shuffledp.collection.promise import check_floor
from shuffledp.collection.task import Draft
from shuffledp.numerics.randomness import Randomness, simulation_random
from shuffledp.questions.crosstab import TIE, distance
from shuffledp.questions.estimate import Estimate
from tests.collection.tasks import bits, choice, parse, scale, second, several, table, words

RUNS = 200
LEAST = 0.905
"""Coverage of 95 % less three standard errors of 200 runs."""
COUNTS = (30, 90, 30)
LEVELS = ((2.0, 30, 1.0), (4.0, 90, 1.0), (6.0, 30, 1.0))
PEOPLE = sum(COUNTS)


def collected(draft: Draft, answers: Sequence[int], random: Randomness) -> list[Tallied]:
    """The rows of question 0: people's reports, levels dealt by chance, and dummies."""
    question, levels = draft.questions[0], np.repeat(np.arange(len(COUNTS)), COUNTS)[random.permutation(PEOPLE)]
    columns: list[list[int]] = [[] for _ in draft.columns]
    for answer, level in zip(answers, levels.tolist(), strict=True):
        for column, record in zip(columns, question.records(answer), strict=True):
            report = draw_report(question.family, draft.levels[level].draw[0], record, random)
            column += pieces_of(question.family, report, random)
    return [
        Tallied(np.array([*people, *dummies], dtype=np.int64), COUNTS)
        for people, dummies in zip(columns, drawn_columns(draft, random), strict=True)
    ]


def runs(draft: Draft, answers: Sequence[int], count: int = RUNS) -> Iterator[tuple[Estimate, More]]:
    check_floor(draft)
    random = simulation_random(11)
    for _ in range(count):
        estimate = estimate_question(draft, 0, collected(draft, answers, random))
        yield estimate, more_of(draft, 0, estimate, COUNTS)


def check(truth: np.ndarray, estimates: Sequence[Estimate]) -> None:
    """Unbiased within 4.5 standard errors of the mean; errors as stated within a fifth; intervals cover."""
    values = np.array([np.ravel(each.value) for each in estimates])
    stated = np.array([np.ravel(each.standard_error) for each in estimates]).mean(axis=0)
    ends = [each.confidence_interval(0.95) for each in estimates]
    low, high = (np.array([np.ravel(each[side]) for each in ends]) for side in (0, 1))
    assert (np.abs(values.mean(axis=0) - truth) < 4.5 * stated / np.sqrt(len(values))).all()
    assert (values.std(axis=0) < 1.2 * stated).all()
    assert (((low <= truth + 1e-12) & (truth - 1e-12 <= high)).mean(axis=0) >= LEAST).all()


def answers_of(shares: Sequence[float]) -> list[int]:
    found = np.repeat(np.arange(len(shares)), np.round(np.array(shares) * PEOPLE).astype(int))
    assert found.size == PEOPLE
    return found.tolist()


@pytest.mark.costly
def test_a_scale_has_shares_a_mean_and_differences():
    shares = [0.1, 0.2, 0.4, 0.2, 0.1]
    draft = parse(second(scale((1, 2, 3, 4, 6)), levels=LEVELS))
    found = list(runs(draft, answers_of(shares)))
    check(np.array(shares), [estimate for estimate, _ in found])
    check(np.array(0.1 + 0.4 + 1.2 + 0.8 + 0.6), [more.mean for _, more in found if more.mean is not None])
    pairs = [more.differences for _, more in found]
    assert [pair[:2] for pair in pairs[0]] == [(i, j) for i in range(5) for j in range(i + 1, 5)]
    check(np.array(shares[0] - shares[2]), [pair[1][2] for pair in pairs])


@pytest.mark.costly
def test_several_options_have_shares_of_their_own():
    masks = [0b0001] * 60 + [0b0011] * 30 + [0b1111] * 15 + [0] * 45
    draft = parse(second(several(4), levels=LEVELS))
    found = list(runs(draft, masks))
    check(np.array([105, 45, 15, 15]) / 150, [estimate for estimate, _ in found])
    assert [pair[:2] for pair in found[0][1].differences] == [(i, j) for i in range(4) for j in range(i + 1, 4)]
    check(np.array(60 / 150), [more.differences[0][2] for _, more in found])


@pytest.mark.costly
def test_a_number_of_several_bits_has_a_mean():
    draft = parse(second(bits(6), levels=LEVELS))
    answers = [7, 20, 33, 50, 90, 100] * 25
    found = [estimate for estimate, _ in runs(draft, answers)]
    check(np.array(50.0), found)
    low, high = found[0].confidence_interval(0.95)
    assert abs((high - low) / 2.0 / half_width(draft, 0, COUNTS) - 1.0) < 0.03


@pytest.mark.costly
def test_margins_of_a_table_and_independence_that_is_only_noise():
    joint = np.outer([0.5, 0.3, 0.2], [0.6, 0.4])
    draft = parse(second(table(3, 2), levels=LEVELS))
    found = list(runs(draft, answers_of(joint.ravel()), 40))
    rows = [more.rows for _, more in found if more.rows is not None]
    columns = [more.columns for _, more in found if more.columns is not None]
    covered = [
        ((low <= truth) & (truth <= high)).mean()
        for margin, truth in ((rows, [0.5, 0.3, 0.2]), (columns, [0.6, 0.4]))
        for low, high in [tuple(np.array([each.confidence_interval(0.95) for each in margin]).transpose(1, 0, 2))]
    ]
    assert min(covered) >= 0.84
    small = np.mean([more.independence.p_value <= 0.05 for _, more in found if more.independence is not None])
    assert small <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 40)


@pytest.mark.costly
def test_dependence_that_is_there_is_found():
    draft = parse(second(table(2, 2), levels=LEVELS))
    found = list(runs(draft, answers_of([0.4, 0.1, 0.1, 0.4]), 20))
    assert sum(more.independence.p_value < 0.01 for _, more in found if more.independence is not None) >= 18


def test_words_that_are_present_are_found_and_others_are_not():
    draft = parse(second(words(40), levels=LEVELS))
    answers = [3] * 60 + [17] * 60 + [5] * 30
    found = list(runs(draft, answers, 60))
    wrong = [any(more.present[j] for j in range(40) if j not in (3, 17, 5)) for _, more in found if more.present]
    assert np.mean(wrong) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)
    assert np.mean([more.present[3] and more.present[17] for _, more in found if more.present]) > 0.95
    assert all(5.0 < more.least < 60.0 for _, more in found)


@pytest.mark.costly
def test_a_choice_of_version_2_covers():
    shares = [0.1, 0.2, 0.4, 0.2, 0.1]
    check(
        np.array(shares),
        [estimate for estimate, _ in runs(parse(second(choice(5), levels=LEVELS)), answers_of(shares))],
    )


@pytest.mark.costly
def test_the_law_of_the_dummies_along_values_is_that_of_what_is_drawn():
    draft = parse(second(choice(4), levels=((4.0, 9, 2.0),)))
    dummies, family, random = draft.questions[0].dummies, Family("krr:4", 4), simulation_random(3)
    for values in ((0, 1, 2, 5), (1, -1, 0, 0), (1, 1, 0, 0)):
        law = np.array(dummies_along(family, dummies, values))
        assert abs(law.sum() - 1.0) < 1e-12
        assert np.allclose(law, law[::-1], rtol=0.0, atol=1e-13)
        places, reach = np.arange(law.size) - law.size // 2, law.size // 2
        drawn = np.array([np.bincount(next(drawn_columns(draft, random)), minlength=4) for _ in range(3000)])
        sums = (drawn - drawn.mean(axis=1, keepdims=True)) @ np.array(values)
        assert abs(sums.mean()) < 4.5 * np.sqrt(law @ places**2 / 3000)
        assert abs(sums.var() / (law @ places**2) - 1.0) < 0.25
        assert np.abs(sums).max() <= reach


def test_the_law_of_the_difference_of_two_columns_is_that_of_what_is_drawn():
    draft, random = parse(second(several(2), levels=((4.0, 9, 2.0),))), simulation_random(4)
    law = np.array(dummies_between(draft.questions[0].dummies))
    assert abs(law.sum() - 1.0) < 1e-12
    drawn = np.array([np.subtract(*map(sum, drawn_columns(draft, random))) for _ in range(3000)])
    places = np.arange(law.size) - law.size // 2
    assert abs(drawn.mean()) < 4.5 * np.sqrt(law @ places**2 / 3000)
    assert abs(drawn.var() / (law @ places**2) - 1.0) < 0.2
    counts = np.array([np.sum(np.abs(drawn) <= near) for near in (0, 2, 5)]) / 3000
    expected = np.array([law[np.abs(places) <= near].sum() for near in (0, 2, 5)])
    assert np.abs(counts - expected).max() < 4.5 * 0.5 / np.sqrt(3000)


def test_an_interval_of_dummies_alone_holds_their_law_exactly():
    """Without people's noise the half width is the quantile of the dummies: 2.5 % lie beyond it on each side."""
    chances = tuple(np.array([1, 2, 4, 8, 20, 8, 4, 2, 1]) / 50)
    found = SpreadEstimate(np.asarray(0.0), np.asarray(1e-9), 1e-12, (-9.0, 9.0), 0, Spread(chances, 0.5))
    wide = float(found.half_width(0.05, np.sqrt(found.standard_error**2 + found.added.variance)))
    assert 1.5 <= wide <= 2.0 + 1e-6
    assert float(found.half_width(0.3, np.sqrt(found.standard_error**2 + found.added.variance))) < wide


@pytest.mark.parametrize(
    ("values", "steps"), [((1.0, 2.0, 3.0), (0, 1, 2)), ((0.1, 0.3, 0.35), (0, 4, 5)), ((-5.0, 5.0), (0, 1))]
)
def test_values_as_whole_steps(values, steps):
    assert whole_values(values) == steps


def test_a_table_that_mirrors_another_is_as_far_from_independence():
    """Two sums in another order differ in a last digit, which decides nothing: the chance is the same everywhere."""
    random = np.random.default_rng(5)
    for _ in range(200):
        shares, spread = random.dirichlet(np.ones(9)).reshape(3, 3), np.full((3, 3), 0.01)
        far, mirrored = distance(shares, spread), distance(shares.T[::-1], spread)
        assert mirrored >= far * (1.0 - TIE)
        assert distance(shares * 1.001, spread) != pytest.approx(far, rel=TIE)


@pytest.mark.parametrize(("asked", "cells"), [(table(3, 4), 12), (words(20), 20)], ids=["table", "list"])
def test_what_is_promised_of_a_table_or_a_list_is_what_is_printed(asked, cells):
    """Plan, draft and status promised the interval of one cell, 1.4 times too narrow: all cells' are printed."""
    draft = parse(second(asked, levels=LEVELS))
    estimate = estimate_question(draft, 0, collected(draft, answers_of([1.0]), simulation_random(3)))
    law = count_law(draft.questions[0], slopes_of(draft, 0), COUNTS)
    at_worst = np.round(law.mean(law.worst)) + np.arange(cells) % 7 - 3
    likely = replace(estimate, counts=at_worst.astype(int), value=(at_worst - law.mean(0.0)) / law.slope)

    def widest(found: Estimate, *, together: bool) -> float:
        low, high = found.confidence_interval(CONFIDENCE, simultaneous=together)
        return float((high - low).max()) / 2.0

    promised = half_width(draft, 0, COUNTS)
    assert promised == pytest.approx(widest(likely, together=draft.questions[0].together), rel=0.01)
    assert promised > 1.35 * widest(likely, together=False)
    assert widest(estimate, together=True) <= promised


def test_what_is_promised_of_the_margins_of_a_table_is_what_is_printed():
    """Neither plan nor draft said how precise a margin is."""
    draft = parse(second(table(3, 4), levels=LEVELS))
    answers = np.repeat(np.arange(12), [75, *[7] * 10, 5]).tolist()
    more = more_of(draft, 0, estimate_question(draft, 0, collected(draft, answers, simulation_random(3))), COUNTS)
    for found, promised in zip((more.rows, more.columns), margins_at(draft, 0, COUNTS), strict=True):
        assert found is not None
        low, high = found.confidence_interval(CONFIDENCE, simultaneous=True)
        assert float((high - low).max()) / 2.0 == pytest.approx(promised, rel=0.03)
        alone = found.confidence_interval(CONFIDENCE)
        assert promised > 1.1 * float((alone[1] - alone[0]).max()) / 2.0


@pytest.mark.costly
@pytest.mark.parametrize("people", [20, 100, 500, 1000])
@pytest.mark.parametrize("promise", [0.25, 2.0])
def test_intervals_of_a_mean_of_bits_cover_exactly_computed_and_less_noise_never_widens_them(people, promise):
    """The law of the ones is computed, of people at one value or half at each end; ± .02741 at 3.5 was .02749 at 4."""
    widths: list[float] = []
    for epsilon0 in (1.0, 2.0, 3.0, 3.5, 3.75, 4.0, 4.5, 5.0, 6.0, 8.0):
        family = Family("bits:4", 101)
        (dummies,) = parts_of(needed_ball([(1.0, promise), (8.0, promise)], [family], 1e-6))
        slope = slope_of(family, family.threshold(epsilon0))
        known = bits_law(family, dummies, (slope,), (people,))
        widths.append(float(known.half_width(0.05, known.standard_error)))
        around = np.array(dummies_along(family, dummies, (0, 1)))
        for shares in ((0.0, 0.0), (0.125, 0.125), (0.3, 0.3), (0.0, 1.0)):
            ones = np.array([1.0])
            for share in shares:
                low = min(int(4 * share), 3)
                one = np.full(5, (1.0 - slope) / 5)
                one[[low, low + 1]] += slope * np.array([low + 1 - 4 * share, 4 * share - low])
                points = 4 * (people // 2) + 1
                law = np.fft.irfft(np.fft.rfft(one, 2 * points) ** (people // 2), 2 * points)[:points]
                ones = np.convolve(ones, np.maximum(law, 0.0))
            chances = np.convolve(ones, around)
            found = 0.5 + (np.arange(chances.size) - len(around) // 2 - 2 * people) / (4 * people * slope)
            covered = chances[np.abs(found - np.mean(shares)) <= widths[-1] + 1e-12].sum()
            assert covered >= 0.955 or widths[-1] > 0.5, (epsilon0, shares)
    assert widths == sorted(widths, reverse=True)


def test_the_law_of_a_row_is_that_of_the_sum_on_the_circle():
    draft = parse(second(choice(6), levels=((4.0, 9, 1.0),)))
    dummies, family = draft.questions[0].dummies, Family("krr:6", 6)
    for some in (1, 2, 3, 5):
        twice = np.array(dummies_along(family, dummies, (2,) * some + (0,) * (6 - some)))  # only even sums
        law = np.array(dummies_along(family, dummies, (1,) * some + (0,) * (6 - some)))
        assert np.abs(law - twice[len(twice) // 2 % 2 :: 2]).max() < 1e-14
        assert abs(law.sum() - 1.0) < 1e-14


def test_a_wide_law_of_a_row_of_64_cells_is_counted_at_once():
    # with the sum on the circle this took minutes: 8 rows and 8 columns, promise .1, was not done after 213 s
    family = Family("krr:64", 64)
    (dummies,) = parts_of(needed_ball(((4.0, 0.1),), (family,), 1e-6))
    cell, row = (np.array(dummies_along(family, dummies, (1,) * some + (0,) * (64 - some))) for some in (1, 8))
    places = np.arange(row.size) - row.size // 2
    assert row.size > 300
    assert abs(row.sum() - 1.0) < 1e-13
    assert np.isclose(row @ places**2, 8 * 56 / 63 * (cell @ places**2), rtol=1e-12)  # cells add up to 0
