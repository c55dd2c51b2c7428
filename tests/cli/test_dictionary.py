"""A question with a dictionary, as an organizer meets it: the survey, the plan, the draft, the result, its check."""

from __future__ import annotations

import json

import pytest

from shuffledp.collection.client import answer_code
from shuffledp.collection.release import SignedRelease, write_release
from shuffledp.collection.task import Draft, PostedTask
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import simulation_random
from tests.collection.batches import analyzer_key, batch_of, reports_of_people
from tests.collection.tasks import ANALYST, choice, dictionary, posted_second

SURVEY = """
title = "Towns"
organizer = "The town hall"
contact = "mail@example.org"
privacy_notice = "https://example.org/privacy"
operated_by = {analyzer = "The town hall", shuffler = "The library", page = "The library"}
opens = 2026-01-01T08:00:00Z
closes = 2099-01-31T08:00:00Z
expires = 2099-02-28T08:00:00Z
accept_one_shuffler = true
levels = [
  {name = "usual", epsilon0 = 4, planned = 0, promise = 16},
  {name = "open", epsilon0 = 8, planned = 120, promise = 16},
]
[[questions]]
text = "Which town?"
words = "towns.txt"
optional = true
"""
GHOST = "word 1028"
"""Nobody sends it; word 4 is in its first cell and word 5 in its second."""
PEOPLE = [(1, [answer, 0]) for answer in [3] * 60 + [4] * 50 + [1200] * 9] + [(0, [1200, 0])]
OPEN = ("open", "towns.batch", "--key", "towns.key")


@pytest.fixture
def collected(tmp_path):
    task = posted_second(dictionary(1200), choice(2), levels=((4.0, 0, 40.0), (8.0, 120, 40.0)))
    whole = batch_of(task, *reports_of_people(task, PEOPLE, simulation_random(1)))
    (tmp_path / "towns.batch").write_bytes(whole)
    (tmp_path / "towns.key").write_bytes(analyzer_key(task).document())
    (tmp_path / "towns.task").write_bytes(task.data)
    return tmp_path


def test_a_file_of_words_becomes_two_columns(run, tmp_path):
    (tmp_path / "towns.txt").write_text("\ufeff" + "\r\n".join(f"town {j}" for j in range(1100)) + "\r\n", "utf-8")
    (tmp_path / "survey.toml").write_text(SURVEY, encoding="utf-8")
    told = json.loads(run("task", "draft", "survey.toml", "--out", "towns", "--json").out)
    (question,) = told["questions"]
    assert 10 < question["present_from"] < 60
    assert [level["local"] for level in told["levels"]] == [8.0, 16.0]
    draft = Draft.parse((tmp_path / "towns.draft").read_bytes())
    assert [column.family.name for column in draft.columns] == ["krr:1024"] * 2
    named = [dict(choice)["en"] for choice in draft.questions[0].choices]
    assert (named[0], named[1099:]) == ("town 0", ["town 1099", "another word", "no answer"])
    plan = json.loads(run("task", "plan", "survey.toml", "--wanted", "20", "--json").out)
    assert plan["questions"][0]["columns"] == 2
    assert plan["questions"][0]["present_from"] == question["present_from"]
    shown = " ".join(run("task", "plan", "survey.toml").out.split())
    assert f"A word is called present from about {question['present_from']} of 120 people on" in shown


def test_a_short_file_of_words_is_a_list(run, tmp_path):
    (tmp_path / "towns.txt").write_text("Bonn\nEssen\nFulda\n", encoding="utf-8")
    (tmp_path / "survey.toml").write_text(SURVEY, encoding="utf-8")
    assert run("task", "draft", "survey.toml", "--out", "towns", "--json").status == 0
    assert Draft.parse((tmp_path / "towns.draft").read_bytes()).questions[0].kind == "list"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (b"Bonn\n\nEssen\n", "line 2 of towns.txt is empty; write one word a line"),
        (b"Bonn\nK\xf6ln\n", "the words in towns.txt are not UTF-8; save the file as UTF-8"),
    ],
)
def test_a_file_that_holds_no_words_is_one_line(run, tmp_path, words, message):
    (tmp_path / "towns.txt").write_bytes(words)
    (tmp_path / "survey.toml").write_text(SURVEY, encoding="utf-8")
    found = run("task", "draft", "survey.toml", "--out", "towns")
    assert (found.status, found.out, found.err.count("\n")) == (2, "", 1)
    assert message in found.err
    assert not (tmp_path / "towns.draft").exists()


@pytest.mark.costly
def test_the_result_says_which_words_are_present_and_which_may_be(run, collected):
    told = json.loads(run(*OPEN, "--report", "towns.html", "--json").out)["releases"][0]
    assert told["present"] == ["word 4", "word 5"]
    (possible,) = [each for each in told["possible"] if each["word"] == GHOST]
    assert set(possible["not_told_from"]) >= {"word 4", "word 5"}
    assert (told["kind"], told["words"], told["further"]) == ("dictionary", 1201, 0)
    assert [sum(cells) for cells in told["cells"]] == [120, 120]
    found = {each["category"]: each["confidence_interval"] for each in told["estimates"]}
    assert found["word 4"][0] <= 60 / 120 <= found["word 4"][1]
    assert found[GHOST][0] == 0.0
    for shown in (run(*OPEN).out, (collected / "towns.html").read_text(encoding="utf-8")):
        said = " ".join(shown.split())
        assert "that any of them was sent by nobody: word 4, word 5" in said
        assert f"Cannot be told apart from other words that share their cells: {GHOST} (or " in said
    assert run("task", "verify", "towns.task", "towns.release").status == 0


@pytest.mark.costly(but=("cells",))
@pytest.mark.parametrize("changed", ["present", "cells", "estimates", "possible"])
def test_a_release_whose_words_do_not_follow_from_its_cells_is_refused(run, collected, changed):
    """The analyzer signs what it likes; the numbers of rows in the cells tell."""
    assert run(*OPEN).status == 0
    task = PostedTask.parse((collected / "towns.task").read_bytes())
    whole = json.loads(SignedRelease.parse((collected / "towns.release").read_bytes(), task).document)
    answer = whole["releases"][0]
    if changed == "present":
        answer["present"] = [*answer["present"], GHOST]
    elif changed == "possible":
        answer["possible"] = []
    elif changed == "cells":
        answer["cells"][0][3] -= 1
        answer["cells"][0][9] += 1
    else:
        answer["estimates"][0]["confidence_interval"][0] += 0.01
    (collected / "towns.release").write_bytes(write_release(json.dumps(whole).encode(), task, ANALYST))
    found = run("task", "verify", "towns.task", "towns.release")
    assert (found.status, found.err.count("\n")) == (2, 1)
    assert "the release: question 1" in found.err


def test_an_answer_is_a_word_in_any_spelling_or_another_word():
    question = posted_second(dictionary(1200, 2), levels=((4.0, 10, 8.0),)).draft.questions[0]
    codes = [answer_code(question, text) for text in (" WORD  7", "another word", "no answer")]
    assert codes == [6, 1200, 1201]
    with pytest.raises(
        InvalidInput, match=r"'Atlantis' is none of the 1,200 words of 'Which word\?'; .*'another word'"
    ):
        answer_code(question, "Atlantis")
