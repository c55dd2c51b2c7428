"""The release page says the result in every language that the survey was asked in."""

from __future__ import annotations

import re

import numpy as np
import pytest

from shuffledp.collection.analyzer import open_batch
from shuffledp.collection.release_page import release_page
from shuffledp.numerics.randomness import simulation_random
from tests.collection.batches import analyzer_key, batch_of, people, reports_of_people
from tests.collection.page.samples import TITLE, task


@pytest.fixture(scope="module")
def opened():
    asked = task(levels=((30.0, 300, 40.0),))  # no noise to speak of
    columns, counts = reports_of_people(asked, people(np.random.default_rng(1), (300,), 3, 161), simulation_random(1))
    return open_batch(batch_of(asked, columns, counts), analyzer_key(asked), processes=1)


@pytest.mark.costly
def test_a_survey_in_three_languages_has_its_result_in_three(opened):
    page = release_page(opened, command="shuffledp", version="1")
    found = re.findall(r'<section class="answer" lang="(\w+)">(.*?)</section>', page, re.DOTALL)
    assert [language for language, _ in found] == ["en", "de", "fr"]
    for language, text in found:
        assert TITLE[language] in text
    assert "Teilgenommen haben: 300. Jedes Versprechen ist gehalten." in found[1][1]
    assert "Haben Sie in den letzten sieben Tagen eine Zigarette geraucht?" in found[1][1]
    share = 100 * float(opened.releases[0].estimate[1])
    assert re.search(rf"Nein: etwa {share:.0f} %, zwischen \d+ und \d+ %", found[1][1])
    assert re.search(r"Im Durchschnitt \d+,\d+; zwischen \d+,\d+ und \d+,\d+\.", found[1][1])


def test_what_holds_for_every_answer_is_said_once(opened):
    page = release_page(opened, command="shuffledp", version="1")
    assert page.count("If 5 % of the reports were junk") == 1
    notes = re.findall(r"<p[^>]*>([^<{]{40,})</p>", page)
    assert len(notes) == len(set(notes))
