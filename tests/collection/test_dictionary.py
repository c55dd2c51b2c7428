"""Words of a dictionary: two cells a word, bounds that hold for all words together, claims that survive collisions."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from shuffledp.collection.asked import MOST_WORDS, WORD_CELLS, cells_of_word
from shuffledp.collection.dictionary import (
    FoundWords,
    WordsEstimate,
    bounds_of_words,
    found_words,
    places_of_words,
    seen_from,
)
from shuffledp.collection.estimates import Tallied, count_law, estimate_question, slopes_of
from shuffledp.collection.kinds import more_of
from shuffledp.collection.promise import check_floor
from shuffledp.collection.task import Draft
from tests.collection.tasks import dictionary, parse, second

LEVELS = ((4.0, 0, 4.0), (8.0, 600, 4.0))
PEOPLE = 600
GHOST = 3 + WORD_CELLS
"""A word of a dictionary of 2,001 that nobody sends: each of its two cells is that of a word that many send."""
HEAVY = {3: 150, 4: 120, 700: 60, 1700: 40}
"""Words that many send: the first shares a cell with `GHOST`, the second the other one."""


@lru_cache(maxsize=4)
def draft_of(k: int) -> Draft:
    draft = parse(second(dictionary(k), levels=LEVELS))
    check_floor(draft)
    return draft


def truth_of(k: int) -> np.ndarray:
    """So many people a word: those of `HEAVY`, and the others spread over words from the 1,100th on."""
    truth = np.zeros(k + 1, dtype=np.int64)
    for word, people in HEAVY.items():
        truth[word] = people
    left = PEOPLE - truth.sum()
    spread = np.arange(1100, 1100 + left)
    truth[spread[spread != 1700]] += 1
    truth[1100] += PEOPLE - truth.sum()
    return truth


def _point(random: np.random.Generator, radius: int, inside: np.ndarray, ways: list[np.ndarray]) -> np.ndarray:
    """A uniform point of the ball of a choice among 1,024, with floats: quicker than the sampler, and another one."""
    gauge = int(random.choice(radius + 1, p=inside[: radius + 1] / inside[: radius + 1].sum()))
    if gauge == 0:
        return np.zeros(WORD_CELLS, dtype=np.int64)
    many = 1 + int(random.choice(ways[gauge].size, p=ways[gauge]))
    order, found = random.permutation(WORD_CELLS), np.zeros(WORD_CELLS, dtype=np.int64)
    cuts = np.sort(random.choice(gauge - 1, many - 1, replace=False)) + 1
    found[order[:many]] = np.diff([0, *cuts, gauge])
    rest = WORD_CELLS - many
    bars = np.sort(random.choice(gauge + rest - 1, rest - 1, replace=False)) + 1
    found[order[many:]] = 1 - np.diff([0, *bars, gauge + rest])
    return found


@lru_cache(maxsize=4)
def _ball(law: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    from scipy.special import gammaln

    def choose(n: np.ndarray | int, m: np.ndarray | int) -> np.ndarray:
        return gammaln(n + 1.0) - gammaln(m + 1.0) - gammaln(np.asarray(n) - m + 1.0)

    weights, shells, ways = np.array(law, dtype=np.float64), [0.0], [np.ones(1)]
    for r in range(1, len(law)):
        p = np.arange(1, min(WORD_CELLS - 1, r) + 1)
        logs = choose(WORD_CELLS, p) + choose(r - 1, p - 1) + choose(r + WORD_CELLS - p - 1, WORD_CELLS - p - 1)
        shells.append(float(np.logaddexp.reduce(logs)))
        ways.append(np.exp(logs - shells[-1]))
    inside = np.array(shells)
    return weights / weights.sum(), np.exp(inside - inside.max()), ways


def collected(draft: Draft, truth: np.ndarray, random: np.random.Generator) -> list[Tallied]:
    """The rows of both columns, all people at the second level."""
    (question,), counts = draft.questions, (0, int(truth.sum()))
    answers = np.repeat(np.arange(truth.size), truth)
    weights, inside, ways = _ball(question.dummies.draw)
    radius = int(random.choice(weights.size, p=weights))
    columns: list[Tallied] = []
    for places in places_of_words(truth.size):
        kept = random.random(answers.size) < draft.levels[1].draw[0] / 2.0**64
        own = np.where(kept, places[answers], random.integers(WORD_CELLS, size=answers.size))
        dummies = question.dummies.count // WORD_CELLS + _point(random, radius, inside, ways)
        assert dummies.min() >= 0  # it would be drawn again, which is too rare to be seen here
        columns.append(Tallied(np.concatenate([own, np.repeat(np.arange(WORD_CELLS), dummies)]), counts))
    return columns


def found(draft: Draft, truth: np.ndarray, random: np.random.Generator) -> tuple[WordsEstimate, FoundWords]:
    estimate = estimate_question(draft, 0, collected(draft, truth, random))
    assert isinstance(estimate, WordsEstimate)
    return estimate, found_words(estimate)


def test_no_two_words_share_both_cells_and_no_cell_has_more_than_its_part():
    first, second_ = places_of_words(MOST_WORDS + 2)
    assert np.unique(first * WORD_CELLS + second_).size == MOST_WORDS + 2
    for places in (first, second_):
        cells = np.bincount(places, minlength=WORD_CELLS)
        assert cells.max() - cells.min() <= 1
    assert [cells_of_word(index) for index in (0, 1023, 1024, 2047)] == [(0, 0), (1023, 1023), (0, 1), (1023, 0)]


@pytest.mark.parametrize("k", [1001, 2001, 5000])
def test_bounds_hold_wherever_those_of_the_cells_hold(k: int):
    random = np.random.default_rng(5)
    for slack in (0.0, 0.01, 0.2):
        shares = random.dirichlet(np.full(k, 0.02))
        ends = []
        for places in places_of_words(k):
            cells = np.bincount(places, weights=shares, minlength=WORD_CELLS)
            low, high = (slack * random.random(WORD_CELLS) for _ in range(2))
            ends.append((np.maximum(cells - low, 0.0), np.minimum(cells + high, 1.0)))
        low, high = bounds_of_words(ends[0], ends[1], k)
        assert (low <= shares + 1e-9).all()
        assert (shares <= high + 1e-9).all()
        if slack == 0.0:  # cells of words that nobody else's mass can explain are found
            assert (low > 0.0).sum() >= 1


def test_a_word_whose_cells_are_raised_by_others_is_not_called_present():
    """Its two cells are exactly known, and hold people: of other words, it may be."""
    k, ends = 2001, []
    truth = truth_of(k - 1) / PEOPLE
    for places in places_of_words(k):
        cells = np.bincount(places, weights=truth, minlength=WORD_CELLS)
        ends.append((cells - 0.001, cells + 0.001))
    assert cells_of_word(GHOST) == (cells_of_word(3)[0], cells_of_word(4)[1])
    low, high = bounds_of_words(ends[0], ends[1], k)
    assert low[GHOST] == 0.0
    assert low[3] > 0.2
    assert low[4] > 0.15
    assert high[GHOST] < 0.01


@pytest.mark.costly
def test_all_words_are_covered_and_nobodys_word_is_present():
    """5 % of 80 collections are 4; more than 9 would be three standard errors off. Bonferroni makes it less."""
    k, random = 2000, np.random.default_rng(17)
    draft, truth = draft_of(k), truth_of(k)
    missed = false = ghosts = 0
    seen = np.zeros(truth.size)
    for _ in range(80):
        estimate, words = found(draft, truth, random)
        low, high = estimate.bounds()[0]
        missed += bool(((low > truth / PEOPLE + 1e-9) | (truth / PEOPLE > high + 1e-9)).any())
        false += bool((truth[list(words.present)] == 0).any())
        ghosts += GHOST in words.present
        seen[list(words.present)] += 1
        rivals = dict(words.possible).get(GHOST)
        assert rivals is None or {3, 4} <= set(rivals)
    assert missed <= 9
    assert false <= 9
    assert ghosts <= 9
    assert seen[3] == seen[4] == 80  # so a test that calls nothing present would fail


def test_the_number_from_which_on_a_word_is_seen():
    k, random = 2000, np.random.default_rng(19)
    draft = draft_of(k)
    least = seen_from(count_law(draft.questions[0], slopes_of(draft, 0), (0, PEOPLE)), k + 1)
    assert least is not None
    assert 20 < least < 80
    hits = dict.fromkeys((0.5, 1.0, 1.5), 0)
    for share in hits:
        people = round(share * least)
        truth = np.zeros(k + 1, dtype=np.int64)
        truth[10], truth[20] = people, PEOPLE - people
        for _ in range(12):
            hits[share] += 10 in found(draft, truth, random)[1].present
    assert hits[0.5] <= 2
    assert 2 <= hits[1.0] <= 11
    assert hits[1.5] >= 11
    assert seen_from(count_law(draft.questions[0], slopes_of(draft, 0), (0, 20)), k + 1) is None


def test_what_is_told_besides_the_scores_follows_from_the_cells():
    draft, truth = draft_of(2000), truth_of(2000)
    columns = collected(draft, truth, np.random.default_rng(23))
    estimate = estimate_question(draft, 0, columns)
    more = more_of(draft, 0, estimate, columns[0].counts)
    assert more.words is not None
    assert more.present is None
    assert [sum(cells) for cells in more.cells] == [column.reports.size for column in columns]
    assert set(more.words.present) >= {3, 4}
    assert len(set(more.words.named)) == len(more.words.named)
    assert isinstance(estimate, WordsEstimate)
    some = estimate.some(more.words.named)
    low, high = some.confidence_interval(0.95)
    assert (low[: len(more.words.present)] > 0.0).all()
    assert (low <= high).all()
    places = [each[list(more.words.named)] for each in places_of_words(2001)]
    one, two = (column.value[own] for column, own in zip(estimate.columns, places, strict=True))
    assert (some.value == np.minimum(one, two)).all()
