"""promise.js says what `what_is_promised` says, for every combination of hands, admission, page and questions."""

from __future__ import annotations

import itertools

import pytest

from shuffledp.collection.promised import LANGUAGES, shown, what_is_promised
from tests.collection.page.samples import HOURS, SMOKE, task

HANDS = {
    "apart": {"analyzer": "The institute", "shuffler": "The works council", "page": "A newspaper"},
    "page by the shuffler": {
        "analyzer": "The institute",
        "shuffler": "The works council",
        "page": "the WORKS council ",
    },
    "one hand": {
        "analyzer": "Gro\N{LATIN SMALL LETTER SHARP S}  & Co",
        "shuffler": "GROSS & CO",
        "page": "A newspaper",
    },
    "one hand by letters that nobody sees": {
        "analyzer": "The institute",
        "shuffler": "The\u00a0insti\u200btute\ufe0f\u3164.",
        "page": "\uff34he Institute",
    },
    "one hand for all": {"analyzer": "The institute", "shuffler": "The institute", "page": "The institute"},
}


@pytest.mark.parametrize("hands", HANDS.values(), ids=HANDS.keys())
def test_every_sentence_is_the_python_client_s(node, hands):
    asked = [
        task(*questions, operated_by=hands, admission=admission, delta=delta)
        for questions, admission, delta in itertools.product(
            [(SMOKE,), (SMOKE, HOURS)], ["codes", "open"], [1e-6, 3e-7]
        )
    ]
    told = node(
        """
import { readTask } from "./task.js";
import { sentences, numbersOf } from "./promise.js";
const told = [];
for (const { posted, id } of given.tasks) {
  const task = await readTask(bytes(posted), id);
  for (const level of task.levels)
    for (const language of given.languages) told.push([sentences(task, level, language), numbersOf(task, level)]);
}
give(told);
""",
        {"tasks": [{"posted": one.data.hex(), "id": one.id} for one in asked], "languages": LANGUAGES},
    )
    expected = [
        what_is_promised(one.draft, level, language, browser=True)
        for one in asked
        for level in range(len(one.draft.levels))
        for language in LANGUAGES
    ]
    assert [[tuple(sentence) for sentence in sentences] for sentences, _ in told] == [
        list(one.sentences) for one in expected
    ]
    for (_, numbers), one in zip(told, expected, strict=True):
        assert (numbers["headline"], numbers["local"]) == (one.headline, one.local)
        assert (numbers["promise"], numbers["crowd"]) == (one.promise, one.crowd)


def test_numbers_are_rounded_up_as_in_python(node):
    values = [
        0.1,
        0.23371,
        0.2337,
        2.7182818,
        1234.5,
        0.0131,
        1e-6,
        0.999999,
        0.1000001,
        5.0,
        99.95,
        1.005,
        3e-5,
        700.0,
    ]
    told = node('import { shown } from "./promise.js"; give(given.map((value) => shown(value, "en")));', values)
    assert told == [shown(value) for value in values]
