"""A result page in German or French has no English sentence, whatever kinds of questions it answers.

All words of the organizer begin with an X here, so that every other word is the page's.
"""

from __future__ import annotations

import html
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from shuffledp.collection import analyzer
from shuffledp.collection.analyzer import Junk, Opened, open_batch
from shuffledp.collection.dictionary import FoundWords
from shuffledp.collection.group_commands import groups_page
from shuffledp.collection.groups import Group
from shuffledp.collection.kinds import More
from shuffledp.collection.kinds_view import more_lines
from shuffledp.collection.release_page import release_page, translation_of
from shuffledp.collection.sealing import Opener
from shuffledp.collection.task import PostedTask
from shuffledp.in_words import Translation
from shuffledp.numerics.randomness import simulation_random
from shuffledp.releases.margins import Margins
from tests.collection.batches import analyzer_key, batch_of, people, reports_of_people
from tests.collection.tasks import (
    IDENTITY,
    SHUFFLER,
    bits,
    choice,
    dictionary,
    parse,
    scale,
    second,
    several,
    table,
    words,
)

OTHERS = ("de", "fr")
TWO = {"analyzer": "Xaa", "shuffler": "Xmm", "page": "Xmm"}
ONE = dict.fromkeys(TWO, "Xaa")
TEXTS = ("choices", "options", "rows", "columns", "words", "more")
ENGLISH = re.compile(
    r"\b(?:the|of|and|are|is|was|were|been|which|with|that|from|by|share|level|people|person|answer(?:s|ed)?|every|each|"
    r"both|more|this|these|those|it|its|to|other|others|group|word|words|whether|who|not|all|how|one|two|question|could|"
    r"standard|error|below|above|least|reports?|noise|table|seen|open|interval|mean|value|range|if|at|on|or)\b",
    re.IGNORECASE,
)
ALSO_OTHER = {"de": {"was", "not", "person"}, "fr": {"on", "table", "question", "or"}}
"""Words that are German or French, too."""


RARE = {
    "One person, who may have answered twice, with the answers to all {count} questions.",
    "One person, with the answer to the one question.",
    "With so few people or budgets the answer says nothing yet: the interval covers most of what is possible.",
    "above 100%: noise; at least {low}",
    "below 0%: noise; at most {high}",
    "If {shuffler} worked together with {analyzer}, they could read what a device sent. Of 100 such reports {cases} "
    "depend on the person's answer.",
    "{analyzer} can read what a device sent. Of 100 such reports {cases} depend on the person's answer.",
    "{answer}: {one} less {two} {value} ({low} to {high})",
    "{one} and {two}",
    "none",
    "Bennett's inequality: with so few reports the interval is one that holds for any law of the noise, and is wider "
    "than 1.96 standard errors to each side.",
    "Noise has moved an estimate out of the possible range. The estimate is left where it is, so that it stays "
    "unbiased; its interval is drawn around the nearest possible value.",
    "{names} and {count} more",
    "{count} person",
    "{count} report",
    "Mean of those who answered: {value} ({confidence} interval {low} to {high})",
}
"""Sentences of figures that these pages do not have, or have by chance; other tests hold them in English."""


def named(text: str) -> dict[str, str]:
    return {language: f"X{text}{language}" for language in OTHERS}


def renamed(question: dict[str, Any]) -> dict[str, Any]:
    lists = {key: [named(f"{key[0]}{i}") for i, _ in enumerate(question[key])] for key in TEXTS if key in question}
    return question | lists | {"text": named("qq")}


def opened_of(
    *questions: dict[str, Any], n: int = 60, margins: str | None = None, hands: Any = TWO, **changed: Any
) -> Opened:
    """A batch of n people at two levels, who answer at random, or one at each level if n is 2."""
    whole = second(*questions, levels=((2.0, 150, 2.0), (4.0, 150, 2.0)), **changed)
    whole["questions"] = [renamed(each) for each in whole["questions"]]
    whole |= {"title": named("tt"), "organizer": "Xaa", "contact": "Xcc", "operated_by": hands}
    for place, level in enumerate(whole["levels"]):
        level["name"] = named(f"ll{place}")
    task = PostedTask.post(parse(whole), Opener(SHUFFLER).public, IDENTITY)
    sizes = [min(question.answers, 100) for question in task.draft.questions]
    drawn = people(np.random.default_rng(1), (n // 2, n // 2), *sizes)
    columns, counts = reports_of_people(task, drawn, simulation_random(1))
    public = None if margins is None else Margins.parse(margins.encode())
    batch = batch_of(task, columns, counts, codes=n if whole["admission"] == "codes" else None)
    return open_batch(batch, analyzer_key(task), processes=1, margins=public)


def parts_of(page: str) -> dict[str, str]:
    """What a reader sees or hears of each language's part, without the organizer's words and machine names."""
    parts: dict[str, str] = {}
    for language, part in re.findall(
        r'<section class="answer" lang="(\w+)">(.*?)(?=<section class="answer" lang|\Z)', page, re.S
    ):
        heard = re.sub(r'<svg[^>]*aria-label="([^"]*)">', r" \1 ", part)
        said = html.unescape(re.sub(r"<[^>]+>", " ", heard))
        for machine in ("shuffledp task verify", "shuffledp open TOGETHER", "Made-by-command", "shuffledp 1"):
            said = said.replace(machine, " ")
        parts[language] = re.sub(r"\bX\w+|--\w+|\b(?:krr|bits|hadamard):\d+|[\w-]{43}", " ", said)
    return parts


def spelled_lines(language: str) -> None:
    """The lines of a dictionary whose words are found, or cannot be."""
    question = parse(second(dictionary(1200, 2), centre=1)).questions[0]
    for further, least in ((1, None), (2, 30.0)):
        found = FoundWords(present=(0,), possible=((1, (2, 3)),), highest=(), further=further)
        more_lines(question, More(least=least, words=found), translation_of(language))


@pytest.fixture(scope="module")
def pages():
    """Pages that show every kind, and the sentences that were wanted and that no translation has."""
    used, missing = set[str](), set[str]()
    before = Translation.__call__

    def watched(self: Translation, sentence: str, **fields: object) -> str:
        if self.language in OTHERS and sentence:
            (used if sentence in self.sentences else missing).add(sentence)
        return before(self, sentence, **fields)

    many = [choice(4), scale(), several(3), bits(), table(2, 2), words(5)]
    margins = "variable,category,people\nXvv,Xr0de,1000\nXvv,Xr1de,2000\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Translation, "__call__", watched)
        patch.setattr(analyzer, "crowd_of", lambda draft, counts: (None,) * len(counts))  # takes long, and is a number
        whole = opened_of(*many, n=400, margins=margins)
        junk = replace(whole, junk=(Junk(1, 0, 0, 0.01, 0.01), *whole.junk[1:]), floor=(3.0, 3.0))
        open_to_all = opened_of(choice(3), n=2, admission="open")
        by_hand = opened_of(several(2), bits(), hands=ONE)
        for language in OTHERS:
            spelled_lines(language)
        made = {"command": "Made-by-command", "version": "1"}
        rendered = [
            release_page(junk, **made, truths={0: [0.25] * 4, 3: [50.0]}, together="shuffledp open TOGETHER"),
            *(release_page(each, **made) for each in (open_to_all, by_hand)),
        ]
        groups = [Group(named(f"gg{i}"), 60, f"0{i + 1}-x", bytes(32)) for i in range(3)]
        rendered += [
            groups_page(groups[:2], [each, each], groups[2:], command="Made-by-command") for each in (whole, by_hand)
        ]
    return rendered, used, missing


@pytest.mark.costly
def test_no_english_word_is_on_a_page_in_german_or_french(pages):
    for page in pages[0]:
        assert '<html lang="de">' in page
        assert page.count("<details open>") == 1, "one language is open, the others are folded"
        parts = parts_of(page)
        assert sorted(parts) == ["de", "fr"]
        for language, said in parts.items():
            english = {word.lower() for word in ENGLISH.findall(said)} - ALSO_OTHER[language]
            assert not english, (language, english, said)


@pytest.mark.costly
def test_every_sentence_has_its_translation_and_every_translation_its_sentence(pages):
    _, used, missing = pages
    assert not missing
    assert set(translation_of("de").sentences) - used <= RARE <= set(translation_of("fr").sentences)
