"""A collection by hand, without a network: draft, post, link, codes, open, verify; and people's mistakes."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from shuffledp.collection.client import Link
from shuffledp.collection.codes import code_hash, draw_codes, link_of
from shuffledp.collection.estimates import Tallied, count_law, estimate_question, slopes_of
from shuffledp.collection.fields import from_base64
from shuffledp.collection.kinds import half_width, prices
from shuffledp.collection.lettering import letters_html
from shuffledp.collection.release_page import release_page
from shuffledp.collection.store import Store
from shuffledp.collection.task import Draft, PostedTask
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import simulation_random
from tests.cli.conftest import Run
from tests.collection.batches import analyzer_key, batch_of, people, reports_of_people
from tests.collection.tasks import choice, draft, number, posted

SURVEY = """
title = {en = "Lunch", de = "Mittagessen"}
organizer = "The kitchen"
contact = "kitchen@example.org"
privacy_notice = "https://example.org/privacy"
delta = 1e-6
opens = 2026-01-01T08:00:00Z
closes = 2099-01-31T08:00:00+01:00
expires = "2099-02-28T08:00:00Z"
at_least = 5
[operated_by]
analyzer = "The kitchen"
shuffler = "The works council"
page = "The works council"
[[questions]]
text = {en = "Which dish?", de = "Welches Gericht?"}
choices = [{en = "soup", de = "Suppe"}, {en = "salad", de = "Salat"}, {en = "none", de = "keines"}]
[[levels]]
name = {en = "careful", de = "vorsichtig"}
epsilon0 = 0.5
planned = 540
promise = 0.1
[[levels]]
name = {en = "open", de = "offen"}
epsilon0 = 2
planned = 90
promise = 0.5
"""


@pytest.fixture
def survey(run: Run, tmp_path: Path) -> Path:
    """The folder in which commands run, with a survey."""
    path = tmp_path / "survey.toml"
    path.write_text(SURVEY, encoding="utf-8")
    return path


def ok(run: Run, *arguments: str) -> str:
    found = run(*arguments)
    assert (found.status, found.err) == (0, ""), found.err
    return found.out


def test_a_promise_that_levels_share_is_said_once(survey, run):
    apart = " ".join(ok(run, "task", "draft", "survey.toml", "--out", "apart").split())
    assert (apart.count("surer of it"), apart.count("the same promise")) == (2, 0)
    survey.write_text(SURVEY.replace("promise = 0.1", "promise = 0.5"), encoding="utf-8")
    alike = " ".join(ok(run, "task", "draft", "survey.toml", "--out", "alike").split())
    assert alike.count("surer of it") == 1
    assert "Level “open”: the same promise. If “The works council” worked together with “The kitchen”" in alike


def test_a_collection_by_hand(survey, run, tmp_path):
    told = json.loads(ok(run, "task", "draft", "survey.toml", "--out", "lunch", "--json"))
    assert ["in 45 of 100 cases" in "".join(level["sentences"]) for level in told["levels"]] == [True, False]
    assert [level["headline"] for level in told["levels"]] == [0.1, 0.5]
    assert all(level["crowd"] < level["floor"] <= level["promise"] for level in told["levels"])
    assert told["questions"][0]["dummies"] > 0
    shifts = told["questions"][0]["level_shift"]
    assert 0.0 < shifts["of_1_percent"] < shifts["of_5_percent"] < shifts["of_10_percent"]
    assert (tmp_path / "lunch.key").stat().st_mode & 0o777 == 0o600
    assert "lunch.task" in ok(run, "task", "post", "lunch.draft")
    task = PostedTask.parse((tmp_path / "lunch.task").read_bytes())
    assert task.draft.data == (tmp_path / "lunch.draft").read_bytes()
    out = ok(run, "task", "link", "lunch.draft", "lunch.task", "--server", "https://example.org")
    assert f"https://example.org/t/{task.id}" in out.splitlines()
    out = ok(run, "task", "link", "lunch.draft", "lunch.task", "--page", "https://host.example.org/lunch.html")
    assert "https://host.example.org/lunch.html" in out.splitlines()
    assert f"for shuffledp answer: http://127.0.0.1:8000/t/{task.id}" in out.splitlines()
    ok(run, "task", "codes", "lunch.task", "1", "--links", "paged.csv", "--page", "https://host.example.org/lunch.html")
    assert re.search(r"1,https://host\.example\.org/lunch\.html#[\w-]{22}\s", (tmp_path / "paged.csv").read_text())
    more = ok(run, "task", "codes", "lunch.task", "7", "--links", "codes.csv", "--letters", "letters.html")
    assert "7 codes for “Lunch”: each lets one person answer once. With those made before there are 8, and all" in more
    with (tmp_path / "codes.csv").open(encoding="utf-8", newline="") as stream:
        links = [Link.parse(row["link"]) for row in csv.DictReader(stream)]
    assert len({link.code for link in links}) == 7
    assert {link.name for link in links} == {task.id}
    store = Store(tmp_path / "shuffledp.db")
    identity = store.identity()
    assert {row.digest for row in store.tasks()} == {task.digest}
    store.close()
    assert (tmp_path / "letters.html").read_text(encoding="utf-8").count("<svg") == 7

    columns, counts = reports_of_people(task, people(np.random.default_rng(1), (40, 20), 3), simulation_random(1))
    (tmp_path / "lunch.batch").write_bytes(batch_of(task, columns, counts, identity=identity))
    found = json.loads(ok(run, "open", "lunch.batch", "--key", "lunch.key", "--report", "lunch.html", "--json"))
    assert found["collection"]["counts"] == {"careful": 40, "open": 20}
    assert found["collection"]["promise_kept"] is True
    assert found["collection"]["junk_seen"] == 0
    assert found["releases"][0]["question"] == "frequency"
    page = (tmp_path / "lunch.html").read_text(encoding="utf-8")
    assert "Which dish?" in page
    words = page.replace("&#39;", "'")
    # e^epsilon0/(e^epsilon0 + 2), as everybody was told before
    cases = "Of 100 such reports 45 at level “careful”, 79 at level “open” are the person's true answer."
    assert re.search(f"If .* worked together .* {cases}", words)
    assert words.count("worked together") == words.count("If 5 % of the reports") == 1
    assert words.index(">promised<") < words.index(">whoever takes part<") < words.index(">shuffler and analyzer one<")
    assert "http" not in page.replace("http://www.w3.org", "")
    assert "Every promise is kept" in ok(run, "open", "lunch.batch", "--key", "lunch.key")
    entering = ("open", "lunch.batch", "--key", "lunch.key", "--ledger", "p.ledger", "--population", "town")
    ok(run, "ledger", "p.ledger", "--new")
    assert "Entered in the ledger p.ledger." in ok(run, *entering)
    assert "Entered before in the ledger p.ledger; the same batch costs nothing more." in ok(run, *entering)
    assert "p.ledger" not in ok(run, *entering, "--json")  # the release is a document of its own
    (entry,) = json.loads(ok(run, "ledger", "p.ledger", "--json"))["entries"]
    assert entry["epsilon"] == max(found["collection"]["floor"].values())
    assert "repeat those names" in refused(run, *entering, "--fixed-in-advance", "plan")
    ok(run, "ledger", "small.ledger", "--limit", "0.01,1e-6")
    assert "the batch stays closed" in refused(run, *entering[:4], "--ledger", "small.ledger")
    checked = json.loads(ok(run, "task", "verify", "lunch.task", "lunch.release", "--batch", "lunch.batch", "--json"))
    assert checked["verified"] is True
    assert "cannot be checked" in ok(run, "task", "verify", "lunch.task", "lunch.release")


def refused(run: Run, *arguments: str) -> str:
    return run(*arguments).error


MISTAKES = [
    ("epsilon0 = 2\n", "epsilon0 = 0.5\n", "ascend"),
    ('en = "open"', 'en = "Careful"', "same name"),
    ("delta = 1e-6", "delta = 1e-3", "stop_at"),
    ('shuffler = "The works council"', 'shufflers = ["A", "B"]', "need a newer shuffledp"),
    ("delta = 1e-6", "delta = 1e-6\nmix_by = 2099-03-01T08:00:00Z", "need a newer shuffledp"),
    ("epsilon0 = 2\n", "epsilon0 = 6\n", "accept_one_shuffler = true"),
    ("epsilon0 = 2\n", "epsilon0 = 9\n", "at most 8"),
    ('{en = "soup", de = "Suppe"}, {en = "salad"', '{en = "Salad", de = "Suppe"}, {en = "salad"', "read the same"),
    ('organizer = "The kitchen"\n', "", "organizer"),
    ("[operated_by]", "surprise = 1\n[operated_by]", "the survey: unknown key 'surprise'; known are language, title, "),
    (
        "choices = ",
        "colour = 1\nchoices = ",
        "question 'Which dish?': unknown key 'colour'; known are text, choices, values, options, low, high, step, ",
    ),
    (
        "planned = 540",
        "planed = 540",
        "level 'careful': unknown key 'planed' (did you mean planned?); known are name, epsilon0, promise, planned",
    ),
    (
        "choices = ",
        "multiple = true\nchoices = ",
        "question 'Which dish?': unknown key 'multiple'; to let people check any of several answers, write options",
    ),
    (
        "choices = [",
        "free_text = true\nchoice = [",
        "unknown key 'free_text'; answers in free words cannot be had: nobody can add dummies to a word",
    ),
    (
        "choices = [",
        "answers = [",
        "question 'Which dish?': unknown key 'answers'; a question needs answers of one kind: write choices (choice); "
        "choices, values (scale)",
    ),
    (
        "[operated_by]",
        "[groups]\na = 1\n[operated_by]",
        "'groups' must be 2 to 100 groups with how many are invited, such as Kitchen = 40",
    ),
    (
        'organizer = "The kitchen"\n',
        'organiser = "A"\norganizer = "B"\n',
        "the survey: organiser and organizer are one key; write one of them",
    ),
    ("closes = 2099-01-31T08:00:00+01:00", "closes = 2099-01-31", "time of day"),
    ("choices = ", 'family = "olh:3"\nchoices = ', "family must be"),
    ("title", "title title", "TOML"),
    ('text = {en = "Which dish?", de = "Welches Gericht?"}', 'text = "Which dish?"', "languages of the title"),
]


@pytest.mark.parametrize(("good", "bad", "said"), MISTAKES, ids=[said for _, _, said in MISTAKES])
def test_a_mistake_in_a_survey_is_one_clear_line(survey, run, tmp_path, good, bad, said):
    assert good in SURVEY
    survey.write_text(SURVEY.replace(good, bad, 1), encoding="utf-8")
    assert said in refused(run, "task", "draft", "survey.toml", "--out", "lunch")
    assert not list(tmp_path.glob("lunch*"))


def test_an_organiser_is_an_organizer(survey, run, tmp_path):
    survey.write_text(SURVEY.replace("organizer", "organiser"), encoding="utf-8")
    ok(run, "task", "draft", "survey.toml", "--out", "lunch")
    assert Draft.parse((tmp_path / "lunch.draft").read_bytes()).organizer == "The kitchen"


def test_no_code_is_printed_in_numbers(survey, run, monkeypatch):
    """Into a file on Windows `task link` wrote the number of each block of its QR code."""
    ok(run, "task", "draft", "survey.toml", "--out", "lunch")
    ok(run, "task", "post", "lunch.draft")
    assert "█" in ok(run, "task", "link", "lunch.draft", "lunch.task")
    monkeypatch.setattr(Console, "encoding", "cp1252")
    out = ok(run, "task", "link", "lunch.draft", "lunch.task")
    assert "This output shows no QR code: its encoding, cp1252, lacks the blocks." in out
    assert "█" not in out


def test_files_are_not_written_over_and_not_mixed_up(survey, run, tmp_path):
    ok(run, "task", "draft", "survey.toml", "--out", "lunch")
    key = (tmp_path / "lunch.key").read_bytes()
    assert "exists" in refused(run, "task", "draft", "survey.toml", "--out", "lunch")
    assert (tmp_path / "lunch.key").read_bytes() == key
    ok(run, "task", "post", "lunch.draft")
    assert "exists" in refused(run, "task", "post", "lunch.draft")
    ok(run, "task", "draft", "survey.toml", "--out", "other")
    assert "posted something else" in refused(run, "task", "link", "other.draft", "lunch.task")
    assert "no posted task" in refused(run, "task", "link", "lunch.draft", "lunch.draft")
    assert "cannot be read" in refused(run, "task", "link", "lunch.draft", "none.task")
    assert "name a file" in refused(run, "task", "codes", "lunch.task", "5")
    assert "codes" in refused(run, "task", "codes", "lunch.task", "0", "--links", "c.csv")
    task = PostedTask.parse((tmp_path / "lunch.task").read_bytes())
    (tmp_path / "b").write_bytes(b"SHFB" + bytes(100))
    assert "batch" in refused(run, "open", "b", "--key", "lunch.key")
    assert "key file" in refused(run, "open", "b", "--key", "lunch.task")
    assert "release" in refused(run, "task", "verify", "lunch.task", "lunch.draft")
    assert task.has_codes


def test_an_edited_draft_whose_promise_fails_is_not_posted(survey, run, tmp_path):
    ok(run, "task", "draft", "survey.toml", "--out", "lunch")
    document = json.loads((tmp_path / "lunch.draft").read_bytes())
    document["dummies"]["centre"][0] -= 1
    (tmp_path / "less.draft").write_text(json.dumps(document), encoding="utf-8")
    assert "promises epsilon" in refused(run, "task", "post", "less.draft")
    document["dummies"]["centre"][0] += 1
    document["levels"][0]["crowd"] /= 2
    (tmp_path / "crowd.draft").write_text(json.dumps(document), encoding="utf-8")
    assert "honest crowd" in refused(run, "task", "post", "crowd.draft")
    document["closes"] = document["opens"] = "2020-01-01T00:00:00Z"
    document["opens"] = "2019-01-01T00:00:00Z"
    (tmp_path / "late.draft").write_text(json.dumps(document), encoding="utf-8")
    assert "has passed" in refused(run, "task", "post", "late.draft")
    assert not (tmp_path / "less.task").exists()


@pytest.mark.parametrize(("epsilon0", "said"), [(12.0, "at most 8; got 12"), (8.0, "the smallest is 8")])
def test_an_edited_draft_of_larger_budgets_is_not_posted(survey, run, tmp_path, epsilon0, said):
    ok(run, "task", "draft", "survey.toml", "--out", "lunch")
    document = json.loads((tmp_path / "lunch.draft").read_bytes())
    document["levels"] = document["levels"][-1:]
    document["levels"][0]["epsilon0"] = epsilon0
    (tmp_path / "more.draft").write_text(json.dumps(document), encoding="utf-8")
    assert said in refused(run, "task", "post", "more.draft")
    assert not (tmp_path / "more.task").exists()


def test_an_open_task_that_junk_could_shift_far_needs_consent(survey, run, tmp_path):
    survey.write_text(SURVEY.replace("at_least", 'admission = "open"\nat_least'), encoding="utf-8")
    ok(run, "task", "draft", "survey.toml", "--out", "lunch")
    assert "--accept-shift" in refused(run, "task", "post", "lunch.draft")
    ok(run, "task", "post", "lunch.draft", "--accept-shift")
    assert "takes no codes" in refused(run, "task", "codes", "lunch.task", "5", "--links", "c.csv")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_posting_tells_what_the_dummies_cost_and_asks_where_they_are_many(survey, run, tmp_path, monkeypatch):
    """400,000 were posted without a word, and closing took 39 s."""
    told = json.loads(ok(run, "task", "draft", "survey.toml", "--out", "lunch", "--json"))
    dummies = told["questions"][0]["dummies"]
    cost = (
        rf"Closing will add {dummies} dummies: (about \d+ seconds?|less than a second) on this machine, and [\d.]+ MB"
    )
    monkeypatch.setattr("shuffledp.collection.posting.MANY_DUMMIES", 10)
    assert re.match(f"nothing was posted. {cost}.*say --yes", refused(run, "task", "post", "lunch.draft"))
    for reply in ("n\n", "\n", "", "no"):
        monkeypatch.setattr("sys.stdin", Terminal(reply))
        assert "nothing was posted" in run("task", "post", "lunch.draft").err
    assert not (tmp_path / "lunch.task").exists()
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    asked = run("task", "post", "lunch.draft")
    assert (asked.status, asked.err.endswith("Post it? [y/N] ")) == (0, True)
    assert re.search(cost, " ".join(asked.out.split()))
    ok(run, "task", "post", "lunch.draft", "--out", "second.task", "--yes")
    monkeypatch.setattr("shuffledp.collection.posting.MANY_DUMMIES", dummies)
    ok(run, "task", "post", "lunch.draft", "--out", "third.task")


def test_mistakes_of_participants(survey, run):
    assert "looks like" in refused(run, "answer", "https://example.org/lunch", "--level", "x", "--answer", "y")
    link = "http://127.0.0.1:9/t/" + "A" * 43
    assert "cannot be reached" in refused(run, "answer", link, "--level", "x", "--answer", "y")
    assert "--language" in refused(run, "answer", link, "--show", "--language", "it")


@pytest.mark.parametrize("command", ["draft", "post", "link", "codes", "verify", "status", "close", "destroy", "page"])
def test_every_command_of_a_task_shows_an_example(run, command):
    assert f"shuffledp task {command}" in run("task", command, "--help").out


def test_codes_and_letters():
    task = posted()
    drawn = draw_codes(3)
    assert len({code_hash(code) for code in drawn}) == 3
    link = link_of(task, "https://example.org/", drawn[0])
    assert link.startswith(f"https://example.org/t/{task.id}#")
    assert from_base64(link.partition("#")[2]) == drawn[0]
    page = letters_html(task, [link, link], "fr")
    assert page.count("<section>") == 2
    assert 'lang="fr"' in page
    assert "<script" not in page
    with pytest.raises(InvalidInput, match="letters"):
        letters_html(task, [link], "it")


def test_the_price_is_what_estimates_show():
    """Half-widths are those of the intervals, half a person below to 4 % above the normal ones; what changes them."""
    asked = draft(choice(2, 0), levels=((1.0, 1000, 0.9),))
    keep, noise = (np.e - 1) / (np.e + 1), np.e / (np.e + 1) ** 2
    normal = 1.96 * np.sqrt(noise / 1000) / keep
    assert normal - 0.0005 <= half_width(asked, 0, [1000]) <= 1.04 * normal  # its ends are people and belong to it
    more = draft(choice(2, 1000), levels=((1.0, 1000, 0.9),))
    normal = 1.96 * np.sqrt((noise + 0.25) / 1000) / keep
    assert normal <= half_width(more, 0, [1000]) <= 1.04 * normal
    price = prices(more)[0]
    assert price.widening == price.planned / half_width(asked, 0, [1000])
    assert price.for_five_points is not None
    assert half_width(more, 0, [price.for_five_points]) <= 0.05
    assert half_width(more, 0, [int(price.for_five_points * 0.97)]) > 0.05
    assert price.junk_shift == pytest.approx(0.05 / keep, rel=1e-4)
    assert price.level_shift == (0.0, 0.0, 0.0)  # one level
    assert half_width(more, 0, [0]) == np.inf
    bits = draft(number(0, 100, 1, 0), levels=((1.0, 1000, 0.9),))
    normal = 196 * np.sqrt(0.25 / 1000) / keep
    assert normal <= half_width(bits, 0, [1000]) <= 1.04 * normal
    assert prices(draft(choice(5, 10), levels=((0.001, 0, 0.9),)))[0].for_five_points is None


def test_what_is_promised_is_printed():
    """45 people of epsilon0 3: 0.1.0 promised 8 points and printed 14; mixed levels, dummies and numbers alike."""
    for asked, counts in (
        (draft(choice(2, 0), levels=((3.0, 45, 3.0),)), [45]),
        (draft(choice(5, 172)), [540, 370, 90]),
        (draft(choice(4, 20, "hadamard:4"), levels=((2.0, 300, 1.0),)), [300]),
        (draft(number(0, 10, 1, 60), levels=((2.0, 60, 1.0), (3.0, 60, 2.0))), [60, 60]),
    ):
        promised = half_width(asked, 0, counts)
        m = asked.questions[0].dummies.count
        about = round(count_law(asked.questions[0], slopes_of(asked, 0), counts).mean(0.5))
        rows = np.repeat(np.array([1, 0]), [about, sum(counts) + m - about])
        if asked.questions[0].family.kind == "hadamard":
            rows = 2 * rows  # all in one column: category 0 is supported by those that have its sign
        found = estimate_question(asked, 0, [Tallied(rows, tuple(counts))])
        low, high = (
            np.ravel(end)[-1 if asked.questions[0].family.kind != "hadamard" else 0]
            for end in found.confidence_interval()
        )
        assert (high - low) / 2.0 <= promised * (1.0 + 1e-12)
        if asked.questions[0].family.kind == "rr":
            assert promised < 0.08


def test_one_hand_is_promised_the_local_budget_alone(run, tmp_path):
    hands = {"analyzer": "The kitchen", "shuffler": "the kitchen", "page": "A newspaper"}
    task = posted(choice(3, 300), levels=((0.5, 60, 0.3),), operated_by=hands)
    columns, counts = reports_of_people(task, people(np.random.default_rng(1), (60,), 3), simulation_random(1))
    (tmp_path / "lunch.batch").write_bytes(batch_of(task, columns, counts))
    (tmp_path / "lunch.key").write_bytes(analyzer_key(task).document())
    shown = ok(run, "open", "lunch.batch", "--key", "lunch.key")
    assert "both shuffled and analyzed" in shown
    assert re.search(r"careful +│ +60 │ +0\.5 │", shown)
    assert "promised" not in shown
    assert "promise is kept" not in shown
    (tmp_path / "lunch.task").write_bytes(task.data)
    checked = ok(run, "task", "verify", "lunch.task", "lunch.release")
    assert "both shuffled and analyzed" in checked
    assert "promise is kept" not in checked


def test_the_page_of_a_release_shows_both_kinds_of_questions():
    task = posted(choice(3, 300), number(dummies=300), levels=((0.5, 60, 0.9),))
    columns, counts = reports_of_people(task, people(np.random.default_rng(1), (60,), 3, 101), simulation_random(1))
    from shuffledp.collection.analyzer import open_batch

    opened = open_batch(batch_of(task, columns, counts), analyzer_key(task))
    page = release_page(opened, command="shuffledp open <x>", version="0", truths={1: [50.0]})
    assert "How many?" in page
    assert "true value" in page
    assert "open &lt;x&gt;" in page
    assert Draft.parse(task.draft.data) == task.draft
