"""A survey of several groups by hand: one folder of tasks, one command a step, one page that compares."""

from __future__ import annotations

import contextlib
import csv
import html
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shuffledp.collection import kinds
from shuffledp.collection import survey as survey_module
from shuffledp.collection.batch import AnalyzerKey
from shuffledp.collection.client import Client
from shuffledp.collection.fields import from_base64
from shuffledp.collection.group_commands import _cell, _words, check_one_survey, compare, difference
from shuffledp.collection.groups import Groups, slug
from shuffledp.collection.ingest import hold, open_reports
from shuffledp.collection.kinds import half_width, prices
from shuffledp.collection.planner import plan_collection
from shuffledp.collection.promise import check_floor
from shuffledp.collection.rehearsal import rehearse
from shuffledp.collection.sealing import Opener
from shuffledp.collection.store import Store
from shuffledp.collection.survey import draft_of_survey, request_of_survey, survey_groups
from shuffledp.errors import InvalidInput
from tests.cli.conftest import Run
from tests.cli.test_collection import ok, refused

SURVEY = """
title = "Lunch"
organizer = "The kitchen"
contact = "kitchen@example.org"
privacy_notice = "https://example.org/privacy"
opens = 2026-01-01T08:00:00Z
closes = 2099-01-31T08:00:00Z
expires = 2099-02-28T08:00:00Z
at_least = 5
[operated_by]
analyzer = "The kitchen"
shuffler = "The works council"
page = "The works council"
[groups]
Kitchen = 40
"Büro & Lager" = 60
Hall = 8
[[questions]]
text = "Which dish?"
choices = ["soup", "salad"]
[[questions]]
text = "How content?"
choices = ["little", "so-so", "very"]
values = [1, 2, 3]
optional = true
"""


@pytest.fixture
def survey(run: Run, tmp_path: Path) -> Path:
    path = tmp_path / "survey.toml"
    path.write_text(SURVEY, encoding="utf-8")
    return path


def answer_all(folder: Path, store: Store, codes: Path) -> None:
    """Everybody of the kitchen wants soup, everybody of the office salad; of the hall only three answer."""
    groups = Groups.read(folder)
    for place, group in enumerate(groups.groups):
        task = groups.task(group)
        with (codes.parent / f"codes-{group.file}.csv").open(encoding="utf-8", newline="") as stream:
            own = [from_base64(row["link"].split("#")[1]) for row in csv.DictReader(stream)]
        assert len(own) == group.people
        sealed = b"".join(
            Client(task).seal((min(place, 1), place), 1, code) for code in (own[:3] if place == 2 else own) if code
        )
        key = store.key(task.digest)
        assert key is not None
        hold(store, [open_reports(sealed, task, Opener(key))])


def close_two_of_three(run: Run) -> None:
    """How the batches are opened is said once, of all groups; it was said of each, with a key that opens one."""
    closed = run("task", "close", "lunch", "--yes")
    assert closed.status == 2
    assert "2 groups closed; not Hall: 3 people have answered" in closed.err
    assert closed.out.count("is handed over with this file.") == 2
    assert closed.out.count("opens") == 1
    assert "“The kitchen” opens all groups together with: shuffledp open outbox --key NAME.keys. Opened" in closed.out


def said_of_all_groups(page: str) -> None:
    """The checklist said "together 40" and the parameters of the first group alone, of all groups."""
    assert '<html lang="en">' in page
    page = html.unescape(page)
    assert "answered at each level (“Kitchen” together 40, “Büro & Lager” together 60) is the same in both" in page
    assert page.count("Level usual: epsilon at most ") == 1, "the same number in both groups is said once"
    assert "several codes, of one group or of several." in page
    assert "Everybody was invited in one group, so the groups' costs do not add up." in page
    assert "If “The works council” and “The kitchen” work together, or if “The works council” breaks" in page
    assert "they could read what a device sent. Of 100 such reports " in page


def one_by_one(run: Run, tmp_path: Path) -> None:
    """A folder of keys beside one batch was "Is a directory", and one group alone said nothing of the others."""
    batch = next((tmp_path / "handed").glob("lunch-kitchen-*.batch")).relative_to(tmp_path)
    assert refused(run, "open", str(batch), "--key", "lunch.keys") == (
        f"--key lunch.keys is a folder and {batch} one batch: open the groups together, shuffledp open handed --key "
        f"lunch.keys, or this one by itself, shuffledp open {batch} --key lunch.keys/01-kitchen.key"
    )
    assert "name the .key file that task draft wrote" in refused(run, "open", str(batch), "--key", "outbox")
    one = ("open", str(batch), "--key", "lunch.keys/01-kitchen.key", "--out", "alone.release")
    alone = ok(run, *one, "--report", "alone.html")
    page = html.unescape((tmp_path / "alone.html").read_text(encoding="utf-8"))
    for shown in (alone, page):
        assert "Opened one by one, the groups' intervals do not hold together" in " ".join(shown.split())
    document = json.loads(ok(run, *one, "--json"))
    assert document.pop("one_group") == {"group": "Kitchen", "groups": 3}
    assert json.loads((tmp_path / "alone.release").read_bytes()[9:-64]) == document, "the signed one, with its group"
    shutil.copytree(tmp_path / "lunch.keys", tmp_path / "away")
    (tmp_path / "away" / "groups.json").unlink()
    assert "one_group" not in ok(run, *one[:3], "away/01-kitchen.key", *one[4:], "--json")


def one_entry_in_a_ledger(run: Run) -> None:
    """The folder `handed` is entered once, as one release to two groups."""
    ok(run, "ledger", "town.ledger", "--new")
    entered = ("open", "handed", "--key", "lunch.keys", "--ledger", "town.ledger")
    assert "one entry for all groups, with the cost of the group in which answering costs most" in ok(run, *entered)
    assert "Entered before in the ledger" in ok(run, *entered)
    (entry,) = json.loads(ok(run, "ledger", "town.ledger", "--json"))["entries"]
    assert (entry["question"], entry["n"]) == ("collection Lunch, by group", 100)
    assert "name one with --ledger" in refused(run, *entered[:4], "--population", "town")
    assert "--margins weights the table of one batch" in refused(run, *entered, "--margins", "m.csv")


@pytest.mark.costly
def test_a_survey_of_groups_from_draft_to_comparison(survey, run, tmp_path):
    told = json.loads(ok(run, "task", "draft", "survey.toml", "--out", "told", "--json"))
    assert [(each["name"]["en"], each["people"]) for each in told["groups"]][2] == (told["smallest"], 8) == ("Hall", 8)
    out = ok(run, "task", "draft", "survey.toml", "--out", "lunch")
    assert "The smallest group is Hall, 8 people" in out
    files = ["01-kitchen", "02-buro-lager", "03-hall"]
    assert sorted(path.name for path in (tmp_path / "lunch").iterdir()) == [
        *(f"{f}.draft" for f in files),
        "groups.json",
    ]
    assert sorted(path.name for path in (tmp_path / "lunch.keys").iterdir()) == [
        *(f"{f}.key" for f in files),
        "groups.json",
    ]
    assert (tmp_path / "lunch.keys").stat().st_mode & 0o777 == 0o700
    assert ok(run, "task", "post", "lunch").count("Posted: ") == 3
    assert "all groups of lunch are posted" in refused(run, "task", "post", "lunch")
    links = ok(run, "task", "link", "lunch.keys", "lunch", "--server", "https://example.org")
    tasks = [Groups.read(tmp_path / "lunch").task(group) for group in Groups.read(tmp_path / "lunch").groups]
    assert len({task.id for task in tasks}) == 3
    assert all(f"https://example.org/t/{task.id}" in links for task in tasks)
    assert [task.draft.title["en"] for task in tasks] == ["Lunch: Kitchen", "Lunch: Büro & Lager", "Lunch: Hall"]
    invited = ok(run, "task", "codes", "lunch", "--links", "codes.csv", "--letters", "letters.html")
    assert "8 codes for “Lunch: Hall”: each lets one person answer once." in invited
    assert (tmp_path / "letters-03-hall.html").read_text(encoding="utf-8").count("<svg") == 8
    store = Store(tmp_path / "shuffledp.db")
    answer_all(tmp_path / "lunch", store, tmp_path / "codes.csv")
    status = ok(run, "task", "status", "lunch")
    assert "40 of 40 codes used (100 %)." in status
    assert "All together: 103 of 108 codes used (95 %)." in status
    assert len(json.loads(ok(run, "task", "status", "lunch", "--json"))["tasks"]) == 3
    assert len(json.loads(ok(run, "task", "status", "lunch/03-hall.task", "--json"))["tasks"]) == 1
    assert run("task", "destroy", "lunch").error == (
        "the answers of 3 groups will be lost for good, unopened, with the keys and the batch; there is no terminal to "
        "ask at, so nothing was done: to destroy without being asked, say --yes"
    )
    close_two_of_three(run)
    shutil.copytree(tmp_path / "outbox", tmp_path / "handed")
    text = ok(run, "open", "handed", "--key", "lunch.keys", "--report", "lunch.html")
    assert "soup: “Kitchen” minus “Büro & Lager” " in text
    assert "No batch was handed over of: Hall (8 invited)." in text
    found = json.loads(ok(run, "open", "handed", "--key", "lunch.keys", "--json"))
    assert [each["group"] for each in found["groups"]] == ["Kitchen", "Büro & Lager"]
    assert [(each["people"], each["promise_kept"]) for each in found["groups"]] == [(40, True), (60, True)]
    assert found["missing"] == ["Hall"]
    dish, content = found["compared"]
    assert [each["answer"] for each in content["answers"]] == ["little", "so-so", "very", "no answer", "mean"]
    (soup,) = dish["answers"][0]["differences"]
    assert (soup["of"], soup["minus"]) == ("Kitchen", "Büro & Lager")
    assert soup["confidence_interval"][0] > 0.5
    page = (tmp_path / "lunch.html").read_text(encoding="utf-8")
    assert "<h1>Lunch</h1>" in page
    assert "100 of 100 people who were invited took part" in page
    said_of_all_groups(page)
    one_by_one(run, tmp_path)
    one_entry_in_a_ledger(run)
    assert sorted(path.name for path in (tmp_path / "handed").glob("*.release")) == [f"{f}.release" for f in files[:2]]
    assert ok(run, "task", "publish", "handed").count("published: ") == 2
    assert "verified" in ok(run, "task", "verify", "lunch/01-kitchen.task", "handed/01-kitchen.release", "--json")
    store.close()


@pytest.mark.costly
def test_the_promise_is_the_same_in_every_group_however_small(survey):
    key = AnalyzerKey(b"\1" * 32, b"\2" * 32, bytes(32))
    groups = survey_groups(survey.read_bytes())
    drafts = [draft_of_survey(survey.read_bytes(), key, group) for group in groups]
    floors = [check_floor(draft) for draft in drafts]
    assert floors[0] == floors[1] == floors[2]
    assert [sum(level.planned for level in draft.levels) for draft in drafts] == [40, 60, 8]
    assert len({draft.questions[0].dummies for draft in drafts}) == 1
    widths = [prices(draft)[0].planned for draft in drafts]
    assert widths[2] > widths[0] > widths[1]


@pytest.mark.costly
def test_levels_of_the_survey_are_shared_out_among_groups(survey):
    level = '[[levels]]\nname = "{}"\nepsilon0 = {}\nplanned = {}\npromise = 1\n'
    text = SURVEY + level.format("careful", 2, 30) + level.format("usual", 4, 90)
    key = AnalyzerKey(b"\1" * 32, b"\2" * 32, bytes(32))
    groups = survey_groups(text.encode())
    assert [each.planned for each in draft_of_survey(text.encode(), key, groups[0]).levels] == [10, 30]


MISTAKES = [
    ("a group too small", "at_least = 5", "at_least = 9", "the smallest group is 'Hall' with 8 people"),
    ("one group", 'Kitchen = 40\n"Büro & Lager" = 60\n', "", "2 to 100 groups"),
    ("people besides", "at_least = 5", "at_least = 5\npeople = 9", "leave people out"),
    ("anybody may answer", "at_least = 5", 'at_least = 5\nadmission = "open"', "leave admission out"),
    ("no number", "Hall = 8", 'Hall = "eight"', "group 'Hall': 'people' must be a whole number"),
    ("two alike", "Hall = 8", "KITCHEN = 8", "two groups have the same name"),
    (
        "a name in one of two languages",
        "Hall = 8",
        "Hall = {name = {en = 'Hall', de = 'Halle'}, people = 8}",
        "its name",
    ),
]


@pytest.mark.parametrize(("good", "bad", "said"), [each[1:] for each in MISTAKES], ids=[each[0] for each in MISTAKES])
def test_a_mistake_in_groups_is_one_clear_line(survey, run, tmp_path, good, bad, said):
    survey.write_text(SURVEY.replace(good, bad), encoding="utf-8")
    assert said in refused(run, "task", "draft", "survey.toml", "--out", "lunch")
    assert not (tmp_path / "lunch").exists()
    assert not (tmp_path / "lunch.keys").exists()


@pytest.mark.costly
def test_a_shuffler_that_changes_a_group_is_found_out(survey, run, tmp_path):
    ok(run, "task", "draft", "survey.toml", "--out", "lunch")
    shutil.copytree(tmp_path / "lunch", tmp_path / "sent")
    ok(run, "task", "post", "sent")
    shutil.copy(tmp_path / "sent" / "01-kitchen.task", tmp_path / "sent" / "03-hall.task")
    assert "somebody has changed it; do not invite people" in refused(run, "task", "link", "lunch", "sent")
    manifest = tmp_path / "sent" / "groups.json"
    manifest.write_text(manifest.read_text().replace('"people":8', '"people":9'))
    assert "the shuffler posted something else" in refused(run, "task", "link", "lunch", "sent")
    manifest.write_text(manifest.read_text().replace("03-hall", "../hall"))
    assert "a name such as 01-kitchen" in refused(run, "task", "status", "sent")


@pytest.mark.costly
def test_folders_that_are_none(survey, run, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "has no groups.json" in refused(run, "task", "post", "empty")
    ok(run, "task", "draft", "survey.toml", "--out", "lunch")
    assert "lunch exists and would be lost" in refused(run, "task", "draft", "survey.toml", "--out", "lunch")
    assert "holds the batches of 0 of these 3 groups" in refused(run, "open", "empty", "--key", "lunch.keys")
    assert "the folder of keys" in refused(run, "open", "empty", "--key", "lunch/groups.json")
    assert "has no releases" in refused(run, "task", "publish", "empty")
    assert "post the groups first" in refused(run, "task", "codes", "lunch", "3", "--links", "c.csv")


def test_names_of_files():
    assert [slug(text) for text in ("Küche", "../x", "日本", "A" * 60)] == ["kuche", "x", "", "a" * 40]


def test_an_answer_of_a_group_that_says_nothing_yet_says_so():
    """Three people of a hall had "0.00% to 100.00%" where `open` of one batch prints "says nothing yet"."""
    cells = [_cell(np.array([0.4, low, high]), (0.0, 1.0)) for low, high in ((0.0, 1.0), (0.2, 0.95), (0.3, 0.5))]
    assert [_words(each, shares=True)[1] for each in cells] == [
        "says nothing yet",
        "says nothing yet",
        "30.00% to 50.00%",
    ]
    assert _words(_cell(np.array([44.0, 18.0, 70.0]), (18.0, 70.0)), shares=False)[1] == "says nothing yet"


def test_a_difference_holds_together_with_all_others():
    """4,000 differences of binomial shares at a level of .95 each: 94 % are certain at a coverage of 95 % (5 sigma)."""
    rng, hits, runs = np.random.default_rng(3), 0, 4000
    for _ in range(runs):
        sides = []
        for n, p in ((80, 0.4), (200, 0.7)):
            value = rng.laplace(p, (p * (1 - p) / n / 2) ** 0.5)  # the tails of dummies
            half = -np.log(0.05) * (p * (1 - p) / n / 2) ** 0.5  # the exact interval of that law
            sides.append(np.array([value, value - half, value + half]))
        found = difference(*sides)
        hits += found.low <= 0.4 - 0.7 <= found.high
    assert hits >= 0.94 * runs


def test_a_survey_with_groups_has_no_draft_of_its_own(survey):
    with pytest.raises(InvalidInput, match="each has a draft of its own"):
        draft_of_survey(survey.read_bytes(), AnalyzerKey(b"\1" * 32, b"\2" * 32, bytes(32)))


@pytest.mark.parametrize(
    ("good", "other"), [('title = "Lunch"', 'title = "Dinner"'), ('"soup", "salad"', '"soup", "fish"')]
)
def test_batches_of_two_surveys_are_no_groups(survey, good, other):
    """One entry in a ledger counts one group's cost, and somebody may have answered both surveys."""
    key = AnalyzerKey(b"\1" * 32, b"\2" * 32, bytes(32))
    text = survey.read_bytes()
    stated = survey_groups(text)
    drafts = [draft_of_survey(text, key, group) for group in stated]
    groups = Groups.of(survey.parent, stated, [draft.data for draft in drafts]).groups
    check_one_survey(list(zip(groups, drafts, strict=True)))
    drafts[1] = draft_of_survey(text.replace(good.encode(), other.encode()), key, stated[1])
    with pytest.raises(InvalidInput, match="are not groups of one survey"):
        check_one_survey(list(zip(groups, drafts, strict=True)))


@pytest.mark.costly
def test_a_group_that_is_named_twice_is_refused(survey, run, tmp_path):
    ok(run, "task", "draft", "survey.toml", "--out", "lunch")
    manifest = tmp_path / "lunch" / "groups.json"
    told = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(told | {"groups": [told["groups"][0], *told["groups"]]}))
    assert "names a group twice" in refused(run, "task", "post", "lunch")


EVERY_KIND = """
[[questions]]
text = "How long?"
low = 0
high = 60
step = 5
[[questions]]
text = "How?"
options = ["by bus", "on foot", "by bike"]
"""
LARGER = SURVEY.replace("Kitchen = 40", "Kitchen = 300").replace("= 60\n", "= 200\n").replace("Hall = 8", "Hall = 250")


@pytest.mark.costly
def test_plan_and_draft_state_the_widths_that_open_prints_for_groups(run, tmp_path):
    """They stated those of one group by itself, which are a third narrower; widths depend little on the answers."""
    path = tmp_path / "survey.toml"
    path.write_text(LARGER + EVERY_KIND, encoding="utf-8")
    plan = json.loads(ok(run, "task", "plan", "survey.toml", "--json"))
    told = json.loads(ok(run, "task", "draft", "survey.toml", "--out", "lunch", "--json"))
    folder = Groups.read(tmp_path / "lunch")
    opened = []
    for place, group in enumerate(folder.groups):
        own = tmp_path / f"run-{place}"
        own.mkdir()
        opened.append(rehearse(folder.path(group, ".draft"), None, own)[0])
        for question, stated in zip(told["groups"][place]["questions"], plan["questions"], strict=True):
            known = {each["people"]: each["half_width"] for each in stated["groups"]}
            unit = 60.0 if stated["family"].startswith("bits") else 1.0
            assert question["half_width"]["planned"] == pytest.approx(known[group.people] * unit)
    for place, question in enumerate(opened[0].batch.task.draft.questions):
        for one, each in enumerate(opened):
            stated = half_width(each.batch.task.draft, place, each.batch.manifest.counts, 3)
            alone = half_width(each.batch.task.draft, place, each.batch.manifest.counts)
            found = [a.groups[one] for a in compare(opened, place) if a.shares == bool(question.choices)]
            widest = max((cell.high - cell.low) / 2.0 for cell in found)
            least = {0: 0.9, 1: 0.75, 2: 1.0 - 1e-9, 3: 0.9}[place]  # shares of a quarter err less than the worst ones
            most = 1.0 + 1e-9 if place == 2 else 1.08  # an interval ends between two counts, here 1/200 apart
            assert least * stated <= widest <= most * stated
            assert alone < 0.9 * stated
    plan_text = ok(run, "task", "plan", "survey.toml")
    assert "The intervals of all 3 groups hold together. In a group of 200 people: ± " in plan_text


def test_a_wish_is_that_of_the_widths_between_groups(run, tmp_path):
    """± 8 points from 200 people can be had in one group alone, and not where three are compared."""
    path = tmp_path / "survey.toml"
    path.write_text(LARGER.replace("at_least = 5", "at_least = 5\nwanted = 5"), encoding="utf-8")
    request = request_of_survey(path.read_bytes())
    assert request.people == 200
    plan = plan_collection(request)
    alone = replace(request, questions=tuple(replace(each, groups=1) for each in request.questions))
    assert max(choice.mixed for choice in plan.choices) > 0.05 >= max(c.mixed for c in plan_collection(alone).choices)
    assert "± 5 points from 200 people at promise 1 cannot be had" in refused(
        run, "task", "draft", "survey.toml", "--out", "x"
    )


def test_a_wish_that_is_reached_makes_no_plan_and_looks_for_no_number_of_people(run, tmp_path, monkeypatch):
    """Of 60 groups a draft with a wish took 50 s, much of it for a plan of each group that nobody sees."""
    path = tmp_path / "survey.toml"
    path.write_text(LARGER.replace("at_least = 5", "at_least = 5\nwanted = 30"), encoding="utf-8")
    monkeypatch.setattr(survey_module, "plan_collection", None)
    calls = []
    monkeypatch.setattr(kinds, "least_number", lambda *each: calls.append(each) or 100)
    drafted = ok(run, "task", "draft", "survey.toml", "--out", "x")
    assert "The smallest group is" in drafted
    assert len(calls) == 4, "two searches for each question of the draft that is printed, none for the other groups"


@pytest.mark.costly
def test_status_and_a_rehearsal_of_groups_state_what_open_prints(survey, run, tmp_path):
    ok(run, "task", "draft", "survey.toml", "--out", "lunch")
    ok(run, "task", "post", "lunch")
    ok(run, "task", "codes", "lunch", "--links", "codes.csv")
    with contextlib.closing(Store(tmp_path / "shuffledp.db")) as store:
        answer_all(tmp_path / "lunch", store, tmp_path / "codes.csv")
    together = json.loads(ok(run, "task", "status", "lunch", "--json"))["tasks"][0]
    alone = json.loads(ok(run, "task", "status", "lunch/01-kitchen.task", "--json"))["tasks"][0]
    draft = Groups.read(tmp_path / "lunch").task(Groups.read(tmp_path / "lunch").groups[0]).draft
    counts = [level["held"] for level in together["levels"]]
    for place in range(2):
        assert together["questions"][place]["half_width"] == half_width(draft, place, counts, 3)
        assert alone["questions"][place]["half_width"] == half_width(draft, place, counts)
    assert "The intervals of all groups hold together." in ok(run, "task", "status", "lunch")
    assert "These are people of the group “Kitchen” alone. Side by side" in ok(run, "task", "rehearse", "survey.toml")


@pytest.mark.costly
def test_a_survey_in_german_has_its_groups_compared_in_german(survey, run, tmp_path):
    """The page of a survey in German had no German word but those of the survey."""
    german = f'language = "de"\n{SURVEY}'.replace("optional = true", "")
    survey.write_text(german.replace("Kitchen", '"Küche"'), encoding="utf-8")
    ok(run, "task", "draft", "survey.toml", "--out", "lunch")
    ok(run, "task", "post", "lunch")
    ok(run, "task", "codes", "lunch", "--links", "codes.csv")
    store = Store(tmp_path / "shuffledp.db")
    answer_all(tmp_path / "lunch", store, tmp_path / "codes.csv")
    store.close()
    assert run("task", "close", "lunch", "--yes").status == 2  # three people of the hall are too few
    ok(run, "open", "outbox", "--key", "lunch.keys", "--report", "lunch.html")
    page = (tmp_path / "lunch.html").read_text(encoding="utf-8")
    assert '<html lang="de">' in page
    said = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page.split("<main>")[1])).split())
    for words in (
        "Lunch Das Ergebnis „The kitchen“ fragt. 100 von 100 Eingeladenen haben teilgenommen.",
        "Von diesen Gruppen wurde nichts übergeben: „Hall“.",
        "alle Unterschiede der Frage zusammen verglichen: soup: „Küche“ minus „Büro & Lager“: ",
        "Gruppe Menschen Küche 40 Büro & Lager 60 ",
        "Gruppe Schätzung Bereich soup Küche ",
        "Mittelwert Küche 1,",
        "Alle Bereiche einer Frage gelten zusammen mit 95 % Sicherheit",
        "Alle wurden in einer einzigen Gruppe eingeladen; die Kosten der Gruppen",
    ):
        assert words in said, said
