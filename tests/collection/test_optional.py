"""Questions that may be left out: a stated category for every kind that has answers, and never an absent report."""

from __future__ import annotations

import json

import numpy as np
import pytest

from shuffledp.ball import below_of
from shuffledp.collection.batch import AnalyzerKey
from shuffledp.collection.client import answer_code
from shuffledp.collection.estimates import Tallied, estimate_question
from shuffledp.collection.kinds import NEAREST, half_width, more_of
from shuffledp.collection.kinds_view import more_lines
from shuffledp.collection.laws import single_ball
from shuffledp.collection.survey import draft_of_survey
from shuffledp.collection.task import Draft
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import simulation_random
from shuffledp.questions.mean import AnsweredMean
from tests.collection.tasks import ANALYST, ANALYZER, bits, choice, draft, number, parse, second, several, table

HEAD = """
title = {en = "Work", de = "Arbeit"}
organizer = "Staff"
contact = "staff@example.org"
privacy_notice = "https://example.org/privacy"
opens = 2026-01-01T08:00:00Z
closes = 2099-01-31T08:00:00Z
expires = 2099-02-28T08:00:00Z
people = 300
%s
[operated_by]
analyzer = "Staff"
shuffler = "The works council"
page = "The works council"
"""
CHOICE = 'choices = [{en = "yes", de = "ja"}, {en = "no", de = "nein"}]'
ASKED = {
    "choice": CHOICE,
    "scale": CHOICE + "\nvalues = [1, 2]",
    "several": CHOICE.replace("choices", "options"),
    "table": CHOICE.replace("choices", "rows") + "\n" + CHOICE.replace("choices", "columns"),
    "list": CHOICE.replace("choices", "words"),
}
KEY = AnalyzerKey(ANALYZER, ANALYST, bytes(32))


def drafted(question: str, head: str = "") -> Draft:
    text = HEAD % head + f'[[questions]]\ntext = {{en = "Stay?", de = "Bleiben?"}}\n{question}\n'
    return draft_of_survey(text.encode(), KEY)


@pytest.mark.costly(
    but=(
        "list",
        "scale",
    )
)
@pytest.mark.parametrize("kind", ASKED)
def test_every_kind_with_answers_gets_one_that_says_so(kind):
    found = drafted(ASKED[kind] + "\noptional = true").questions[0]
    plain = drafted(ASKED[kind]).questions[0]
    last = found.columns[-1] if kind == "table" else found.choices[-1]
    assert (found.optional, plain.optional, last) == (True, False, {"en": "no answer", "de": "keine Angabe"})
    assert found.width == plain.width + (kind == "several")
    assert len(found.choices) == (9 if kind == "table" else 3)
    assert found.values == plain.values
    words = "no answer / no answer" if kind == "table" else "keine Angabe"
    code = answer_code(found, words)
    assert code == (4 if kind == "several" else len(found.choices) - 1)


def test_the_words_are_the_organisers_own_where_they_are_written():
    found = drafted(CHOICE + "\noptional = true", 'no_answer = {en = "rather not say", de = "lieber nicht"}')
    assert found.questions[0].choices[-1] == {"en": "rather not say", "de": "lieber nicht"}


def test_words_in_a_language_that_we_do_not_know_are_asked_for():
    text = (HEAD % "").replace("de =", "nl =") + '[[questions]]\ntext = {en = "Stay?", nl = "Blijven?"}\n'
    asked = CHOICE.replace("de =", "nl =") + "\noptional = true"
    with pytest.raises(InvalidInput, match=r"nothing says “no answer” in nl; write no_answer = \{en = "):
        draft_of_survey((text + asked).encode(), KEY)


def test_what_cannot_be_optional_says_what_to_do():
    for numbers in ("low = 0\nhigh = 9\nstep = 2", "low = 9\nhigh = 0\nstep = 1", "low = 0\nhigh = 9\nstep = 0"):
        with pytest.raises(InvalidInput, match=r"needs low < high, and a step that divides high - low; got \d, \d, \d"):
            drafted(f"{numbers}\noptional = true")
    with pytest.raises(InvalidInput, match="the family must be krr:11"):
        drafted('low = 0\nhigh = 9\nstep = 1\noptional = true\nfamily = "bits:3"')
    with pytest.raises(InvalidInput, match="optional cannot stand beside the family hadamard"):
        drafted(CHOICE + '\nfamily = "hadamard"\noptional = true')
    with pytest.raises(InvalidInput, match=r"optional.* must be true or false"):
        drafted(CHOICE + '\noptional = "yes"')
    with pytest.raises(InvalidInput, match="either left out or answered"):
        answer_code(parse(second(several(3) | {"optional": True})).questions[0], "option 1; option 3")
    with pytest.raises(InvalidInput, match="a number cannot be optional"):
        parse(second(number() | {"family": "bits:3", "optional": True}, centre=5))
    with pytest.raises(InvalidInput, match="unknown key 'optional'"):
        draft(choice() | {"optional": True})


@pytest.mark.costly(but=("0-9-1-wanted0",))
@pytest.mark.parametrize(
    ("low", "high", "step", "wanted"),
    [
        ("0", "9", "1", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ("-0.1", "0.2", "0.1", [-0.1, 0, 0.1, 0.2]),
        ("18", "70", "1", [18, 31, 44, 57, 70]),
        ("0", "99", "1", [0, 33, 66, 99]),
        ("0", "24", "0.5", [0, 6, 12, 18, 24]),
        ("1", "1234568", "1", [1, 308642.75, 617284.5, 925926.25, 1234568]),
    ],
)
def test_an_optional_number_is_asked_as_a_scale(low, high, step, wanted):
    """Up to 11 values as they are, of more the nearest of four to seven."""
    found = drafted(f"low = {low}\nhigh = {high}\nstep = {step}\noptional = true").questions[0]
    assert (found.kind, found.optional, found.values) == ("scale", True, tuple(map(float, wanted)))
    assert [choice["de"] for choice in found.choices] == [*(f"{value:.15g}" for value in wanted), "keine Angabe"]
    as_they_are = len(wanted) == 1 + round((float(high) - float(low)) / float(step))
    assert found.explanation == (None if as_they_are else {name: NEAREST[name] for name in ("en", "de")})


def test_an_optional_scale_errs_less_than_a_number_with_a_column_that_says_who_answered():
    """The table of docs/collection/kinds.md: 5.6 at two reports of budget 4 each, 3.9 at one."""
    n, one = 300, ((4.0, 300, 1.0),)
    apart = parse(second(bits(4), choice(2), levels=one, at_least=5))
    number_width, answered_width = (half_width(apart, place, [n]) for place in range(2))
    two_columns = number_width / 0.8  # at the middle of the range; elsewhere the second column adds to it
    assert answered_width < 0.03
    assert two_columns == pytest.approx(5.6, abs=0.2)
    scale = choice(6) | {"kind": "scale", "values": [0, 25, 50, 75, 100], "optional": True}
    whole = parse(second(scale, levels=one, at_least=5))
    rng, widths = np.random.default_rng(2), list[float]()
    for seed in range(8):
        records = rng.choice(6, size=n, p=[0.08, 0.2, 0.24, 0.2, 0.08, 0.2])
        reports = np.where(rng.random(n) < whole.levels[0].draw[0] / 2.0**64, records, rng.integers(0, 6, n))
        law = single_ball(whole.questions[0].family, whole.questions[0].dummies)
        rows = np.bincount(reports, minlength=6) + law.draw(below_of(simulation_random(seed)))[0]
        tallied = Tallied(np.repeat(np.arange(6), rows), (n,))
        mean = more_of(whole, 0, estimate_question(whole, 0, [tallied]), tallied.counts).mean
        assert mean is not None
        low, high = mean.confidence_interval()
        widths.append(float(high - low) / 2.0)
    assert 3.5 < np.mean(widths) < 4.3


def test_texts_of_several_lines_stand_in_the_draft_as_one():
    found = drafted(
        CHOICE + '\nexplanation = {en = """In this\n  year.""", de = "Heuer."}',
        "introduction = 'x'".replace("'x'", '{en = "We\\nask.", de = "Wir fragen."}'),
    )
    assert found.introduction == {"en": "We ask.", "de": "Wir fragen."}
    assert found.questions[0].explanation == {"en": "In this year.", "de": "Heuer."}
    assert json.loads(found.data)["questions"][0]["explanation"]["en"] == "In this year."


def shares_of(
    whole: Draft, n: int, chances: list[float], rng: np.random.Generator, seed: int
) -> tuple[np.ndarray, Tallied]:
    """Draw people, their reports and the dummies; return who answered what, and what the analyzer reads."""
    question, k = whole.questions[0], len(chances)
    records = rng.choice(k, size=n, p=chances)
    counts = (n // 2, n - n // 2)
    keep = np.repeat([level.draw[0] / 2.0**64 for level in whole.levels], counts)
    reports = np.where(rng.random(n) < keep, records, rng.integers(0, k, n))
    law = single_ball(question.family, question.dummies)
    rows = np.bincount(reports, minlength=k) + law.draw(below_of(simulation_random(seed)))[0]
    return np.bincount(records, minlength=k), Tallied(np.repeat(np.arange(k), rows), counts)


@pytest.mark.costly
@pytest.mark.parametrize("n", [30, 300, 1000])
def test_the_mean_of_those_who_answered_is_covered(n):
    """200 runs each: fewer than 180 hits of 200 at a coverage of .945 has a chance of .4 %."""
    asked = choice(6) | {"kind": "scale", "values": [1, 2, 3, 4, 5], "optional": True}
    whole = parse(second(asked, levels=((2.0, 100, 1.0), (4.0, 100, 1.0))))
    rng, hits = np.random.default_rng(n), 0
    for seed in range(200):
        true, tallied = shares_of(whole, n, [0.1, 0.1, 0.1, 0.2, 0.2, 0.3], rng, seed)
        mean = more_of(whole, 0, estimate_question(whole, 0, [tallied]), tallied.counts).mean
        assert isinstance(mean, AnsweredMean)
        low, high = mean.confidence_interval()
        assert 1.0 <= low < high <= 5.0
        hits += bool(low <= true[:5] @ np.arange(1, 6) / true[:5].sum() <= high)
    assert hits >= 180


@pytest.mark.costly
def test_skipping_both_parts_of_a_table_does_not_look_like_dependence():
    """40 runs at a false alarm of 1 % each: more than 4 have a chance of .03 %; with the last row counted all alarm."""
    whole, plain = (
        parse(second(table(3, 3) | more, levels=((4.0, 100, 1.0), (6.0, 100, 1.0))))
        for more in ({"optional": True}, {})
    )
    rng, alarms = np.random.default_rng(5), 0
    chances = [0.15, 0.15, 0.0, 0.15, 0.15, 0.0, 0.0, 0.0, 0.4]
    for seed in range(40):
        _, tallied = shares_of(whole, 600, chances, rng, seed)
        more = more_of(whole, 0, estimate_question(whole, 0, [tallied]), tallied.counts)
        assert more.independence is not None
        alarms += more.independence.p_value <= 0.01
        if seed < 3:
            counted = more_of(plain, 0, estimate_question(plain, 0, [tallied]), tallied.counts).independence
            assert counted is not None
            assert counted.p_value <= 0.01
    assert alarms <= 4


def test_what_is_said_of_the_mean():
    asked = choice(4) | {"kind": "scale", "values": [1, 2, 4], "optional": True}
    whole = parse(second(asked, levels=((2.0, 100, 1.0), (4.0, 100, 1.0))))
    _, tallied = shares_of(whole, 400, [0.2, 0.2, 0.2, 0.4], np.random.default_rng(1), 1)
    more = more_of(whole, 0, estimate_question(whole, 0, [tallied]), tallied.counts)
    assert any(line.startswith("Mean of those who answered: ") for line in more_lines(whole.questions[0], more))
