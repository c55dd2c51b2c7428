"""outcome.js and the page of a release say the same of differences and weights, in every language."""

from __future__ import annotations

from typing import Any

import pytest

from shuffledp.collection.analyzer import open_batch
from shuffledp.collection.release_page import release_object, results_in_words
from shuffledp.collection.sealing import Opener
from shuffledp.collection.task import PostedTask
from shuffledp.numerics.randomness import simulation_random
from shuffledp.releases.margins import Margins
from tests.collection.batches import analyzer_key, batch_of, reports_of_people
from tests.collection.tasks import IDENTITY, SHUFFLER, choice, document, number, parse, second, table

SHOW = """
const append = function (...parts) { this.parts.push(...parts); };
Object.defineProperty(globalThis, "navigator", { value: { languages: [] }, configurable: true });
globalThis.document = { createElement: () => ({ style: {}, dataset: {}, parts: [], setAttribute() {}, append }) };
const words = (part) => (typeof part === "string" ? part : part.parts.map(words).join(" ").replace(/\\u00a0/g, " "));
const { result } = await import("./outcome.js");
const { reader } = await import("./view.js");
const { readTask } = await import("./task.js");
const task = await readTask(bytes(given.posted), given.id);
give(Object.fromEntries(given.languages.map((name) => [name, words(result(reader(name), task, given.release, 0))])));
"""
LANGUAGES = ("en", "de", "fr")
SAID = {
    "en": (
        "Answers whose shares differ, all 3",
        "Rows of the table that differ",
        "1,600 of 2,000 people did not",
    ),
    "de": ("Antworten, deren Anteile sich", "Zeilen der Tabelle, die sich", "Menschen haben nicht geantwortet"),
    "fr": ("Réponses dont les parts", "Lignes du tableau qui diffèrent", "n’ont pas répondu"),
}


def in_all(part: Any) -> Any:
    """The same document with every text in all languages."""
    if isinstance(part, list):
        return [in_all(each) for each in part]
    if not isinstance(part, dict):
        return part
    return dict.fromkeys(LANGUAGES, part["en"]) if "en" in part else {key: in_all(each) for key, each in part.items()}


@pytest.fixture(scope="module")
def opened():
    """Nobody of 400 chooses the third; the rows of the table differ. Such local budgets need no dummies."""
    by = {"analyzer": "The kitchen", "shuffler": "The council", "page": "The council"}
    whole = second(choice(3), table(2, 3), levels=((30.0, 400, 100.0),), operated_by=by)
    asked = PostedTask.post(parse(in_all(whole)), Opener(SHUFFLER).public, IDENTITY)
    who = [(0, [int(i % 10 > 0) + int(i % 10 > 4), (0, 0, 0, 5, 4)[i % 5]]) for i in range(400)]
    text = b"variable,category,people\nage,row 1,500\nage,row 2,1500\n"
    batch = batch_of(asked, *reports_of_people(asked, who, simulation_random(2)))
    return asked, open_batch(batch, analyzer_key(asked), processes=1, margins=Margins.parse(text))


@pytest.mark.costly
def test_the_page_shows_differences_and_weights_as_the_release_page_does(node, opened):
    task, found = opened
    given = {"posted": task.data.hex(), "id": task.id, "languages": LANGUAGES}
    shown = node(SHOW, given | {"release": release_object(found) | {"signed": True}})
    told = {each["language"]: [line for one in each["questions"] for line in one["lines"]]
            for each in results_in_words(found)}  # fmt: skip
    assert set(told) == set(LANGUAGES)
    for language in LANGUAGES:
        text, lines = " ".join(shown[language].split()), told[language]
        for start in SAID[language]:
            assert start in text
            assert sum(start in line for line in lines) == 1
        differ, rows, weighted = (next(line for line in lines if start in line) for start in SAID[language])
        for line in (differ, rows):
            assert " ".join(line.split()) in text
        for part in weighted.partition("age")[2].split("; ")[1:]:
            assert " ".join(part.split(".")[0].replace(": ", " ").split()) in text
    answers = {"en": "choice 1 and choice 2", "de": "choice 1 und choice 2", "fr": "choice 1 et choice 2"}
    for language, pair in answers.items():
        assert pair in shown[language]


def test_a_result_without_them_is_shown_as_before(node, opened):
    """A release of an earlier version has neither differences nor weights."""
    task, found = opened
    release = release_object(found) | {"signed": True}
    for each in release["releases"]:
        for key in ("differences", "group_differences", "weighted"):
            each.pop(key, None)
    shown = node(SHOW, {"posted": task.data.hex(), "id": task.id, "languages": ["en"], "release": release})["en"]
    assert "about" in shown
    for start in SAID["en"]:
        assert start not in shown


@pytest.mark.parametrize(
    ("question", "value", "error", "ends", "told"),
    [
        (number(18, 70), 1e5, 2400.0, [-5e5, 5e5], "On average 70; between 18 and 70."),
        # a range within one unit was shown as 1; between 0 and 1
        (number(0.25, 0.75, 0.25), 0.5, 9.5, [-20.0, 20.0], "On average 0.5; between 0.25 and 0.75."),
        (number(0, 99), 40.25, 0.5, [39.27, 41.23], "On average 40.25; between 39.27 and 41.23."),
    ],
)
def test_the_interval_of_a_number_keeps_the_ends_of_its_range(node, question, value, error, ends, told):
    asked = PostedTask.post(parse(document(question)), Opener(SHUFFLER).public, IDENTITY)
    answer = {"kind": "number", "estimate": value, "standard_error": error, "confidence_interval": ends}
    release = {"releases": [answer], "collection": {"counts": [400], "floor": [1.0], "crowd": [1.0]}, "signed": True}
    shown = node(SHOW, {"posted": asked.data.hex(), "id": asked.id, "languages": ["en"], "release": release})["en"]
    assert told in " ".join(shown.split())
