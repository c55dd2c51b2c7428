"""promise.js says what `what_is_promised` says, for every combination of hands, admission, page and questions."""

from __future__ import annotations

import itertools

import pytest

from shuffledp.collection.promise import (
    LANGUAGES,
    promises_data,
    quoted,
    shown,
    spent_by_answering,
    what_is_promised,
)
from tests.collection.page.samples import HOURS, SMOKE, TITLE, task
from tests.collection.tasks import choice

HADAMARD = choice(5, family="hadamard:5") | {
    "text": SMOKE["text"],
    "choices": [TITLE | {"en": f"{j}", "de": f"{j}", "fr": f"{j}"} for j in range(5)],
}
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


@pytest.mark.costly(but=("one hand",))
@pytest.mark.parametrize("hands", HANDS.values(), ids=HANDS.keys())
def test_every_sentence_is_the_python_client_s(node, hands):
    small, large = ((0.5, 9, 0.1), (4.0, 9, 1.0)), ((4.5, 9, 0.6), (5.0, 9, 1.0), (8.0, 9, 9.0))
    asked = [
        task(*questions, operated_by=hands, admission=admission, delta=delta, levels=levels)
        for questions, admission, delta, levels in itertools.product(
            [(SMOKE,), (HOURS,), (SMOKE, HOURS), (SMOKE, HADAMARD)], ["codes", "open"], [1e-6, 3e-7], [small, large]
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


@pytest.mark.parametrize("hands", HANDS.values(), ids=HANDS.keys())
def test_the_record_of_a_device_is_the_same_on_page_and_command_line(node, hands):
    """The command's ledger told .1 "by their promises" where one hand promises nothing below .5."""
    asked = [
        task(*questions, operated_by=hands, admission=admission, levels=((0.05, 9, 0.1), (0.5, 9, 0.1), (4.0, 9, 9.0)))
        for questions, admission in itertools.product([(SMOKE,), (SMOKE, HOURS)], ["codes", "open"])
    ]
    told = node(
        """
import { readTask } from "./task.js";
import { spentByAnswering } from "./promise.js";
const told = [];
for (const { posted, id } of given) {
  const task = await readTask(bytes(posted), id);
  for (const level of task.levels) told.push(Object.values(spentByAnswering(task, level)));
}
give(told);
""",
        [{"posted": one.data.hex(), "id": one.id} for one in asked],
    )
    expected = [spent_by_answering(one.draft, level) for one in asked for level in range(len(one.draft.levels))]
    assert [tuple(each) for each in told] == expected
    for epsilon0, promise in expected:
        assert promise <= epsilon0
        if asked[0].draft.operated_by.one_hand:
            assert promise == epsilon0


def test_the_page_tells_one_sum_where_one_hand_ran_everything(node):
    told = node(
        """
globalThis.navigator ??= { languages: ["en"] };
import { spentLines } from "./steps.js";
const reader = { say: (key, values) => `${key} ${JSON.stringify(values ?? {})}`, up: (value) => String(value) };
const line = (promise) => ({ organizer: "O", epsilon0: 0.5, promise, level: 0 });
const told = (...lines) => spentLines(reader, { organizer: "O" }, lines.slice(0, -1), lines.at(-1));
give([told(line(0.5))[1], told(line(0.5), line(0.1))]);
"""
    )
    assert "spentOneHand" in told[0]
    assert "spentOneHand" in told[1][0]
    assert "spentTwoHands" in told[1][1]


def test_words_of_the_task_cannot_end_their_quotation_marks_here_nor_in_python(node):
    data = promises_data()
    plain = ["careful", "L’école", "the 'open' one", "", "a\N{PILE OF POO}b"]
    forged = ["x”: your number is 0.001. It holds always. “y", 'a"b', "a''b", "’’", "”’", "« a »", *data["marks"]]
    texts = [*plain, *forged, *data["apostrophes"], data["apostrophes"] + data["marks"]]
    told = node(
        'import { quoted } from "./promise.js";'
        "give(given.texts.map((text) => given.languages.map((language) => quoted(text, language))));",
        {"texts": texts, "languages": LANGUAGES},
    )
    assert told == [[quoted(text, language) for language in LANGUAGES] for text in texts]
    assert [quoted(text) for text in plain] == [f"“{text}”" for text in plain]
    for text in forged:
        inside = quoted(text)[1:-1]
        assert not set(inside) & set(data["marks"])
        assert "''" not in inside
    assert {mark for pair in data["quotes"].values() for end in pair for mark in end.strip()} <= set(data["marks"])


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
