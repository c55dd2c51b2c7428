"""Tables of a collection led to public margins: values, variances, what is refused, and what an auditor finds."""

from __future__ import annotations

import html
import json

import numpy as np
import pytest

from shuffledp.collection.analyzer import open_batch
from shuffledp.collection.estimates import Tallied, estimate_question, slopes_of
from shuffledp.collection.kinds_view import more_lines
from shuffledp.collection.laws import drawn_columns
from shuffledp.collection.lettering import letters_html
from shuffledp.collection.release import write_release
from shuffledp.collection.release_page import release_object, release_page
from shuffledp.collection.verify import verify
from shuffledp.collection.weights import fit_margins, places_of, weigh
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import simulation_random
from shuffledp.releases.margins import Margins, raked
from shuffledp.report.to_json import dumps
from tests.collection.batches import analyzer_key, batch_of, reports_of_people
from tests.collection.tasks import ANALYST, bits, choice, parse, posted_second, scale, second, several, table, words

HEAD = "variable,category,people\n"
ROWS, COLUMNS = "age,row 1,3000\nage,row 2,7000\n", "stay,column 1,2000\nstay,column 2,5000\nstay,column 3,3000\n"
LEVELS = ((2.0, 30, 1.0), (4.0, 90, 1.0))
COUNTS = (500, 1500)
JOINT = np.array([0.3, 0.2, 0.1, 0.1, 0.1, 0.2])


def margins(*texts: str) -> Margins:
    return Margins.parse((HEAD + "".join(texts)).encode())


def tallied(draft, counts=COUNTS):
    """Reports as they are expected of people of `JOINT`, to whole reports."""
    slopes, m = slopes_of(draft, 0).slopes, draft.questions[0].dummies.count
    expected = sum(n * (s * JOINT + (1 - s) / 6) for n, s in zip(counts, slopes, strict=True)) + m / 6
    whole = np.floor(expected).astype(int)
    whole[np.argsort(whole - expected)[: sum(counts) + m - whole.sum()]] += 1
    return [Tallied(np.repeat(np.arange(6), whole), counts)]


@pytest.mark.costly
@pytest.mark.parametrize("given", [(ROWS,), (COLUMNS,), (ROWS, COLUMNS)])
def test_a_table_is_led_to_its_margins_with_the_variance_of_simulations(given):
    """8,000 samples of people, their noise and ball dummies: variances within 5 %, 3 of their standard errors.

    Six cells: a false alarm has a chance of about 1 %, of this seed none.
    """
    draft, known = parse(second(table(2, 3), levels=LEVELS)), margins(*given)
    counted = tallied(draft)
    shares = estimate_question(draft, 0, counted)
    found = weigh(draft, 0, shares, COUNTS, known, sum(COUNTS))
    places, axes = places_of(draft.questions[0]), fit_margins(draft, known)[0]
    which = [place for place, name in zip(places, axes, strict=True) if name]
    targets = [np.array(each) for each in found.known]
    for place, target in zip(which, targets, strict=True):
        assert np.bincount(place, weights=found.cells.value) == pytest.approx(target, abs=1e-8)
    assert (found.sums is None) == (len(given) == 2)

    rng, random = np.random.default_rng(4), simulation_random(5)
    law, slopes = shares.law, slopes_of(draft, 0).slopes
    drawn = []
    for _ in range(8000):
        counts = sum(
            rng.multinomial(n, s * JOINT + (1 - s) / 6) for n, s in zip(COUNTS, slopes, strict=True)
        ) + np.bincount(next(drawn_columns(draft, random)), minlength=6)
        f = (counts - law.mean(0.0)) / law.slope
        drawn.append(raked(f, np.zeros((6, 6)), which, targets, 1).value)
    spread = np.array(drawn).var(axis=0)
    assert found.cells.standard_error**2 == pytest.approx(spread, rel=0.05)
    if found.sums is not None:
        free = next(place for place, name in zip(places, axes, strict=True) if not name)
        sums = np.array(drawn) @ np.eye(free.max() + 1)[free]
        assert found.sums.standard_error**2 == pytest.approx(sums.var(axis=0), rel=0.05)


@pytest.mark.costly
def test_intervals_cover_the_people_for_whom_the_answers_stand():
    """300 samples of 150 people through counts: at least .95 less three standard errors of that many runs."""
    draft, known = parse(second(table(2, 3), levels=LEVELS)), margins(ROWS)
    grid = JOINT.reshape(2, 3)
    truth = (np.array([[0.3], [0.7]]) * grid / grid.sum(axis=1, keepdims=True)).sum(axis=0)
    rng, random, counts = np.random.default_rng(8), simulation_random(9), (30, 120)
    slopes, covered = slopes_of(draft, 0).slopes, []
    for _ in range(300):
        reports = [rng.choice(6, size=n, p=s * JOINT + (1 - s) / 6) for n, s in zip(counts, slopes, strict=True)]
        column = [Tallied(np.concatenate([*reports, next(drawn_columns(draft, random))]), counts)]
        found = weigh(draft, 0, estimate_question(draft, 0, column), counts, known, 150)
        low, high = found.sums.confidence_interval()
        covered.append((low <= truth) & (truth <= high))
    assert (np.mean(covered, axis=0) >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 300)).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age,row 1,30\n", "lack 'row 2'"),
        ("age,row 1,30\nage,row 2,30\nage,row 3,30\n", "'row 3', of which nothing was asked"),
        ("size,choice 1,30\nsize,choice 2,70\n", "about question 2, which was asked by itself.*ask both in one table"),
        ("sex,f,30\nsex,m,70\n", "fit no table of this survey.*ask both in one table"),
        (ROWS + "sex,f,3000\nsex,m,7000\n", "of 'sex' fit no table"),
    ],
)
def test_margins_that_fit_no_table_are_refused_in_one_line(text, message):
    draft = parse(second(table(2, 3), choice(2), levels=LEVELS))
    with pytest.raises(InvalidInput, match=message) as refused:
        fit_margins(draft, margins(text))
    assert "\n" not in str(refused.value)


def everything():
    """A task of all kinds, and its batch of 400 people."""
    asked = (choice(3), scale(), several(3), bits(), table(2, 3), words(5))
    task = posted_second(*asked, levels=((4.0, 200, 4.0), (6.0, 200, 4.0)), operated_by={
        "analyzer": "The kitchen", "shuffler": "The works council", "page": "The works council"})  # fmt: skip
    cells = np.random.default_rng(3).choice(6, size=400, p=[0.45, 0.05, 0.05, 0.05, 0.05, 0.35])
    who = [(i % 2, [i % 2, i % 5, i % 8, i % 101, int(cells[i]), i % 2]) for i in range(400)]
    return task, batch_of(task, *reports_of_people(task, who, simulation_random(2)))


@pytest.fixture(scope="module")
def opened():
    task, batch = everything()
    return task, batch, open_batch(batch, analyzer_key(task), margins=margins(ROWS))


@pytest.mark.costly
def test_every_kind_is_in_the_json_on_the_page_and_in_verify(opened):
    task, _, found = opened
    told = release_object(found)
    answers = {answer["kind"]: answer for answer in told["releases"]}
    assert set(answers) == {"choice", "scale", "several", "number", "table", "list"}
    assert all(answer["covers"] == "the people who answered" for answer in answers.values())
    for kind in ("choice", "scale", "several"):
        pair = answers[kind]["differences"][0]
        assert pair["interval_together"][0] <= pair["confidence_interval"][0] <= pair["confidence_interval"][1]
    rows = answers["table"]["group_differences"]
    assert [each["answer"] for each in rows] == ["column 1", "column 2", "column 3"]
    assert rows[0]["interval_together"][0] > 0.0  # 45/55 of the first row, 5/45 of the second
    weighted = answers["table"]["weighted"]
    assert (weighted["answered"], weighted["population"], weighted["missing"]) == (400, 10_000, 9_600)
    assert weighted["covers"] == "the people for whom the answers stand"
    page = release_page(found, command="open", version="0")
    for sentence in (
        "cover the people who answered (400)",
        "Weighted to the public margins of age",
        "cover the people for whom the answers stand: noise and sampling are in them",
        "9,600 of 10,000 people did not answer",
        "Rows that differ in a column",
        "column 1: row 1 less row 2",
        "pairs together at 95%",
        "Mean:",
        "Present, with a chance",
    ):
        assert sentence in page, sentence
    assert any("for independence" in line for line in more_lines(task.draft.questions[4], found.more[4]))
    verified = verify(task, write_release(dumps(told).encode(), task, ANALYST))
    assert any("weights follow from the shares" in check for check in verified.checks)


def changed(told, *path):
    """A copy with the number at this path moved by a tenth."""
    copy = json.loads(dumps(told))
    inside = copy["releases"]
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] += 0.1
    return dumps(copy).encode()


@pytest.mark.parametrize(
    "path",
    [
        (0, "differences", 1, "estimate"),
        (1, "mean", "estimate"),
        (2, "differences", 0, "estimate"),
        (4, "margins", "rows", 0, "frequency"),
        (4, "group_differences", 2, "estimate"),
        (4, "weighted", "estimates", 3, "frequency"),
        (4, "weighted", "columns", 1, "frequency"),
        (4, "weighted", "margins", "rows", "shares", 0, "share"),
        (4, "weighted", "missing"),
        (4, "estimates", 0, "frequency"),
    ],
    ids=lambda path: ".".join(map(str, path)),
)
def test_what_does_not_follow_from_the_shares_is_found(opened, path):
    task, _, found = opened
    with pytest.raises(InvalidInput, match=f"question {path[0] + 1}"):
        verify(task, write_release(changed(release_object(found), *path), task, ANALYST))


def test_more_people_than_there_are_open_nothing(opened):
    task, batch, _ = opened
    with pytest.raises(InvalidInput, match="400 people answered, and the margins count 100"):
        open_batch(batch, analyzer_key(task), margins=margins("age,row 1,30\nage,row 2,70\n"))


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", ("one of: row 1, row 2; one of: column 1, column 2, column 3", "any of: option 1", "from 0 to 100")),
        ("de", ("eines von: row 1, row 2; eines von: column 1", "beliebig viele von: option 1", "von 0 bis 100")),
        ("fr", ("l’une de : row 1, row 2", "n’importe lesquelles de : option 1", "de 0 à 100")),
    ],
)
def test_letters_say_what_every_kind_asks(language, said):
    task = posted_second(choice(3), scale(), several(3), bits(), table(2, 3), words(20), levels=LEVELS)
    letter = html.unescape(letters_html(task, ["https://example.org/t/x#y"], language))
    for words_ in said:
        assert words_ in letter
    assert letter.count("<li>") == 6
    assert "word 12, " in letter
    assert "word 13" not in letter
