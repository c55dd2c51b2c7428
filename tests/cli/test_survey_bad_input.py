"""What a survey may not be: one line each that says what would do, and nothing is written."""

from __future__ import annotations

import json
import re

import pytest

from shuffledp.ledger import Ledger
from shuffledp.numerics.randomness import simulation_random
from tests.collection.batches import analyzer_key, batch_of, reports_of_people
from tests.collection.tasks import choice, posted_second, table

SURVEY = """
title = "Lunch"
organizer = "The kitchen"
contact = "kitchen@example.org"
privacy_notice = "https://example.org/privacy"
operated_by = {analyzer = "The kitchen", shuffler = "The works council", page = "A newspaper"}
opens = 2026-01-01T08:00:00Z
closes = 2099-01-31T08:00:00Z
expires = 2099-02-28T08:00:00Z
people = 500
"""
ASKED = '[[questions]]\ntext = "Which?"\n'
FIVE = ASKED + 'choices = ["a", "b", "c", "d", "e"]\n'


COMPOSED, DECOMPOSED = "\u00e9t\u00e9", "e\u0301te\u0301"
"""One word in two spellings, which Unicode's normal form C makes one."""


def names(count: int, *more: str) -> str:
    return json.dumps([*(f"name {j}" for j in range(count)), *more])


SURVEYS = {
    "promise": (
        "promise = 0.0001\n" + FIVE,
        "keeps promise 0.0001",
        r"; promise 0\.00[4-9]\d* would do",
    ),
    "promise of a level": (
        FIVE + '[[levels]]\nname = "x"\nepsilon0 = 2.0\nplanned = 500\npromise = 0.0001\n',
        "keeps promise 0.0001",
        r"; promise 0\.00[2-5]\d* would do",
    ),
    "table": (ASKED + f"rows = {names(9)}\ncolumns = {names(8)}\n", "at most 64 cells.*make 72", "join some of them"),
    "65 cells": (ASKED + f"rows = {names(13)}\ncolumns = {names(5)}\n", "at most 64 cells.*make 65", "join some"),
    "81 cells, by optional": (
        ASKED + f"rows = {names(8)}\ncolumns = {names(8)}\noptional = true\n",
        "rows x columns must be at most 64; optional adds “no answer” and makes it 9 x 9",
        "leave out one of them, or optional",
    ),
    "33 options, by optional": (
        ASKED + f"options = {names(32)}\noptional = true\n",
        "options must be at most 32; optional adds “no answer” and makes it 33",
        "leave out one of them, or optional",
    ),
    "1,001 words, by optional": (
        ASKED + f"words = {names(1000)}\noptional = true\n",
        "words must be at most 1,000; optional adds “no answer” and makes it 1,001",
        "leave out one of them, or optional",
    ),
    "an empty choice": (ASKED + 'choices = ["a", ""]\n', "choices.* must be a text of one line", "got ''"),
    "rows": (ASKED + f"rows = {names(65)}\ncolumns = {names(2)}\n", "at most 64; got 65", "ask two questions"),
    "options": (ASKED + f"options = {names(33)}\n", "options must be at most 32; got 33", "ask two questions"),
    "words": (ASKED + f"words = {names(20_001)}\n", "words must be at most 20,000.*got 20,001", "rare ones to"),
    "long words": (
        ASKED + f"words = {json.dumps(['x' * 90 + str(j) for j in range(3_000)])}\n",
        "the words take 2[0-9]{2},[0-9]{3} bytes",
        "leave rare ones to",
    ),
    "equal words of a dictionary": (
        ASKED + f"words = {names(1001, COMPOSED, DECOMPOSED)}\n",
        "words 1,002 and 1,003 read the same",
        "write each once",
    ),
    "an empty word": (
        ASKED + f"words = {json.dumps([*json.loads(names(1001)), ' '])}\n",
        "word 1,002.*one line",
        "got ''",
    ),
    "a word by language": (
        ASKED + "words = [" + "{en = 'a', de = 'b'}, " * 1001 + "]\n",
        "word 1: a list of more than 1,000 words has one text a word",
        "the same in every language",
    ),
    "no file of words": (ASKED + 'words = "towns.txt"\n', "the words .*towns.txt cannot be read", "existing file"),
    "equal words": (ASKED + 'words = ["Bonn", "Essen", "bonn "]\n', "'Bonn' and 'bonn '", "write each once"),
    "equal choices": (ASKED + 'choices = ["a", "a"]\n', "read the same", "write each once"),
    "equal choices of the second question": (
        FIVE + ASKED.replace("Which?", "Second") + 'choices = ["a", "A"]\n',
        "the survey, questions, number 2, 'Second': two choices read the same in language 'en': 'a' and 'A'",
        "write each once",
    ),
    "a misspelt key of the answers": (
        ASKED + 'choises = ["a", "b"]\n',
        r"the survey, question 'Which\?': unknown key 'choises' \(did you mean choices\?\)",
        r"needs answers of one kind: write choices \(choice\)",
    ),
    "a misspelt key beside right ones": (
        FIVE + "expanation = 'x'\n",
        r"question 'Which\?': unknown key 'expanation' \(did you mean explanation\?\)",
        "known are text, choices",
    ),
    "equal options": (ASKED + 'options = ["a", "b", "a"]\n', "read the same", "write each once"),
    "equal rows": (ASKED + 'rows = ["a", "a"]\ncolumns = ["b", "c"]\n', "two rows read the same", "write each once"),
    "unknown words": (ASKED + "free_text = true\n", "nobody can add dummies", "up to 20,000 known words as words"),
    "free words": (
        ASKED + 'kind = "text"\n',
        "unknown key 'kind'; .*nobody can add dummies",
        "up to 20,000 known words",
    ),
    "no answers": (ASKED, "needs answers of one kind: .*nobody can add dummies", "up to 20,000 known words as words"),
    "no words": (ASKED + "words = []\n", "words must be at least 2; got 0", "up to 20,000 known words as words"),
    "one choice": (ASKED + 'choices = ["a"]\n', "choices must be at least 2; got 1", "write what people may answer"),
    "33 questions": (FIVE * 33, "questions must be at most 32; got 33", "ask the rest in a survey of its own"),
    "no local noise": (
        FIVE + '[[levels]]\nname = "x"\nepsilon0 = "none"\nplanned = 9\npromise = 1\n',
        "level 'x': reports without local noise are not offered",
        "write epsilon0 = 8 or less",
    ),
    "wanted": ("wanted = 0.1\n" + FIVE, "cannot be had", "It takes [0-9,]+ people"),
}


def test_missing_keys_are_named_all_at_once(run, tmp_path):
    (tmp_path / "s.toml").write_text('title = "Lunch"\norganiser = "The kitchen"\n', encoding="utf-8")
    told = run("task", "draft", "s.toml", "--out", "lunch").error
    assert told.startswith(
        "the survey: missing keys contact, privacy_notice, opens, closes, expires, operated_by, questions; write c"
    )
    for line in ("opens = 2030-01-01T08:00:00Z", 'operated_by = {analyzer = "A", shuffler = "B", page = "B"}'):
        assert line in told
    (tmp_path / "s.toml").write_text(SURVEY + FIVE + '[[levels]]\nname = "x"\nepsilon0 = 2.0\n', encoding="utf-8")
    told = run("task", "draft", "s.toml", "--out", "lunch").error
    assert told == "the survey, level 'x': missing keys promise, planned; write promise = 1.0, planned = 9"
    (tmp_path / "s.toml").write_text(SURVEY.replace(', page = "A newspaper"', "") + FIVE, encoding="utf-8")
    told = run("task", "draft", "s.toml", "--out", "lunch").error
    assert told == 'the survey, operated_by: missing key page; write page = "B"'


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("title =", "titel =", "the survey: unknown key 'titel' (did you mean title?); known are title, organizer, "),
        (
            "page =",
            "pages =",
            "the survey, operated_by: unknown key 'pages' (did you mean page?); known are analyzer, ",
        ),
        ("name =", "nam =", "the survey, levels: unknown key 'nam' (did you mean name?); known are name, epsilon0, "),
        (
            "epsilon0",
            "epsilon",
            "the survey, level 'x': unknown key 'epsilon' (did you mean epsilon0?); known are name, ",
        ),
        (
            "promise =",
            "offer =",
            "the survey, level 'x': unknown key 'offer'; known are name, epsilon0, promise, planned",
        ),
    ],
)
def test_a_misspelt_needed_key_is_named_with_the_known_ones(run, tmp_path, right, wrong, told):
    level = '[[levels]]\nname = "x"\nepsilon0 = 2.0\npromise = 1.0\nplanned = 500\n'
    survey = SURVEY + FIVE + level
    assert right in survey
    (tmp_path / "s.toml").write_text(survey.replace(right, wrong), encoding="utf-8")
    assert run("task", "draft", "s.toml", "--out", "lunch").error.startswith(told)


def test_one_person_has_a_draft(run, tmp_path):
    """Its exact interval has no length without dummies: what they widen was a division by zero."""
    (tmp_path / "s.toml").write_text(
        SURVEY.replace("people = 500", "people = 1") + ASKED + 'choices = ["y", "n"]\n', encoding="utf-8"
    )
    told = run("task", "draft", "s.toml", "--out", "one", "--json")
    assert told.status == 0, told.error
    assert json.loads(told.out)["questions"][0]["widening"] == "inf"


@pytest.mark.costly("long words", "promise", "promise of a level", "wanted", "words")
@pytest.mark.parametrize("name", SURVEYS)
def test_a_survey_that_cannot_be_is_one_line_and_writes_nothing(run, tmp_path, name):
    text, message, way_out = SURVEYS[name]
    (tmp_path / "survey.toml").write_text(SURVEY + text, encoding="utf-8")
    for words in (("draft", "--out", "lunch"), ("plan",)):
        if words == ("plan",) and name == "wanted":
            continue  # a plan is a table of what can be had and what cannot
        found = run("task", words[0], "survey.toml", *words[1:])
        assert (found.status, found.out, found.err.count("\n")) == (2, "", 1)
        assert re.search(f"{message}.*{way_out}", found.err)
        assert len(found.err) < 400
        assert [path.name for path in tmp_path.iterdir()] == ["survey.toml"]


def test_a_dictionary_is_not_asked_of_groups(run, tmp_path):
    """Groups are compared word by word, and a release of a dictionary names few of its words."""
    groups = SURVEY.replace("people = 500\n", "") + "[groups]\nKitchen = 400\nHall = 300\n" + ASKED
    (tmp_path / "survey.toml").write_text(groups + f"words = {names(1001)}\n", encoding="utf-8")
    for words in (("draft", "survey.toml", "--out", "lunch"), ("plan", "survey.toml")):
        found = run("task", *words)
        assert (found.status, found.out, found.err.count("\n")) == (2, "", 1)
        assert "in a survey with groups a list has at most 1,000 words" in found.err
    assert [path.name for path in tmp_path.iterdir()] == ["survey.toml"]


HEAD = "variable,category,people\n"
MARGINS = {
    "not adding up": ("age,row 1,30\nage,row 2,70\nx,column 1,9\nx,column 2,9\n", "do not add up.*the same people"),
    "an empty cell": ("age,row 1,300\nage,row 2,0\n", "at least 1; got '0'.*put it together"),
    "a blank cell": ("age,row 1,300\nage,row 2,\n", "at least 1; got ''.*put it together"),
    "negative": ("age,row 1,300\nage,row 2,-5\n", "at least 1; got '-5'"),
    "nan": ("age,row 1,300\nage,row 2,nan\n", "at least 1; got 'nan'"),
    "nothing": ("", "no line; give each category"),
    "twice": ("age,row 1,300\nage,row 1,300\n", "one twice"),
    "a category missing": ("age,row 1,300\n", "lack 'row 2'; add its line"),
    "a category misspelt": (
        "age,row 1,300\nage,rwo 2,30\n",
        "have 'rwo 2', of which nothing was asked, and lack 'row 2': spell the categories as they were asked",
    ),
    "an unknown category": ("age,row 1,300\nage,row 2,30\nage,old,3\n", "'old', of which nothing was asked; put it"),
    "another question": ("x,choice 1,300\nx,choice 2,300\n", "question 2.*asked by itself.*ask both in one table"),
    "no question": ("x,f,300\nx,m,300\n", "fit no table of this survey.*ask both in one table"),
    "too few": ("age,row 1,30\nage,row 2,20\n", "60 people answered, and the margins count 50; give margins of all"),
}


@pytest.fixture
def collected(tmp_path):
    task = posted_second(table(2, 2), choice(2), levels=((6.0, 60, 4.0),))
    people = [(0, [i % 4, i % 2]) for i in range(60)]
    (tmp_path / "lunch.batch").write_bytes(batch_of(task, *reports_of_people(task, people, simulation_random(1))))
    (tmp_path / "lunch.key").write_bytes(analyzer_key(task).document())
    (tmp_path / "lunch.task").write_bytes(task.data)
    return tmp_path


OPEN = ("open", "lunch.batch", "--key", "lunch.key", "--margins", "margins.csv")


@pytest.mark.parametrize("name", MARGINS)
def test_margins_that_cannot_be_are_one_line_and_write_nothing(run, collected, name):
    text, message = MARGINS[name]
    (collected / "margins.csv").write_text(HEAD + text, encoding="utf-8")
    assert run("ledger", "p.ledger", "--new").status == 0
    before = {path.name for path in collected.iterdir()}
    found = run(*OPEN, "--ledger", "p.ledger", "--report", "lunch.html")
    assert (found.status, found.out, found.err.count("\n")) == (2, "", 1)
    assert re.search(message, found.err)
    assert {path.name for path in collected.iterdir()} == before
    with Ledger(collected / "p.ledger") as ledger:
        assert ledger.entries() == []


@pytest.mark.costly
@pytest.mark.parametrize("more", ["", "stay,column 1,4000\nstay,column 2,6000\n"])
def test_margins_that_fit_are_on_every_output(run, collected, more):
    (collected / "margins.csv").write_text(HEAD + "age,row 1,3000\nage,row 2,7000\n" + more, encoding="utf-8")
    told = json.loads(run(*OPEN, "--report", "lunch.html", "--json").out)
    weighted = told["releases"][0]["weighted"]
    shares = [{"category": "row 1", "share": 0.3}, {"category": "row 2", "share": 0.7}]
    assert weighted["margins"]["rows"] == {"variable": "age", "shares": shares}
    assert weighted["missing"] == 9940
    assert ("columns" in weighted) == (not more)
    assert "weighted" not in told["releases"][1]
    assert run("task", "verify", "lunch.task", "lunch.release").status == 0
    for shown in (run(*OPEN).out, (collected / "lunch.html").read_text(encoding="utf-8")):
        assert "9,940 of 10,000 people did not answer" in " ".join(shown.split())
        assert "the people for whom the answers stand" in " ".join(shown.split())


def test_open_says_where_noise_has_moved_a_share_below_0(run, tmp_path):
    """The table printed -3.1 % beside an interval from 0, without a word."""
    task = posted_second(choice(4), levels=((4.0, 60, 1.0),))
    people = [(0, [i % 2]) for i in range(60)]
    (tmp_path / "lunch.batch").write_bytes(batch_of(task, *reports_of_people(task, people, simulation_random(3))))
    (tmp_path / "lunch.key").write_bytes(analyzer_key(task).document())
    out = run("open", "lunch.batch", "--key", "lunch.key").out
    found = re.findall(r"│ choice \d │ +(-?)[\d.]+% │[^│]*│ +([^│]*[^│ ]) +│", out)
    assert len(found) == 4
    assert [ends.startswith("below 0%: noise; at most ") for _, ends in found] == [sign == "-" for sign, _ in found]
    assert any(sign for sign, _ in found)


def test_what_a_tables_half_width_is_of_stands_apart_from_its_question(run, tmp_path):
    """It read "whether you would stay Stated is the half-width"."""
    survey = SURVEY + ASKED.replace("Which?", "whether you would stay") + 'rows = ["a", "b"]\ncolumns = ["c", "d"]\n'
    (tmp_path / "s.toml").write_text(survey, encoding="utf-8")
    told = " ".join(run("task", "draft", "s.toml", "--out", "lunch").out.split())
    assert re.search(
        r"“whether you would stay”: Stated is the half-width of a cell's share; [^.]*(\.\d[^.]*)*\. ", told
    )
