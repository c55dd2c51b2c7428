"""The release page says the result in every language that the survey was asked in."""

from __future__ import annotations

import html
import re
from types import SimpleNamespace

import numpy as np
import pytest

from shuffledp.collection.analyzer import open_batch
from shuffledp.collection.kinds import More
from shuffledp.collection.kinds_view import more_lines
from shuffledp.collection.release_page import _lines, people_in_words, release_page, words_of
from shuffledp.numerics.randomness import simulation_random
from tests.collection.batches import analyzer_key, batch_of, people, reports_of_people
from tests.collection.page.samples import HOURS, SMOKE, TITLE, task
from tests.collection.tasks import document, number, parse, scale, second


@pytest.fixture(scope="module")
def opened():
    return held()


def held(*questions, **changed):
    """A batch of 300 people at one level, with no noise to speak of."""
    asked = task(*questions, levels=((30.0, 300, 40.0),), **changed)
    answers = [3 if question.kind == "choice" else 161 for question in asked.draft.questions]
    drawn = people(np.random.default_rng(1), (300,), *answers)
    columns, counts = reports_of_people(asked, drawn, simulation_random(1))
    return open_batch(batch_of(asked, columns, counts), analyzer_key(asked), processes=1)


def only(texts, languages):
    return {language: texts[language] for language in languages}


def held_in(*languages):
    """The same of a survey that speaks these languages alone."""
    smoke, hours = (question | {"text": only(question["text"], languages)} for question in (SMOKE, HOURS))
    smoke["choices"] = [only(choice, languages) for choice in SMOKE["choices"]]
    return held(smoke, hours, title=only(TITLE, languages))


@pytest.mark.costly
def test_a_survey_in_three_languages_has_its_result_in_three(opened):
    page = release_page(opened, command="shuffledp", version="1")
    found = re.findall(r'<section class="answer" lang="(\w+)">(.*?)</tbody>', page, re.DOTALL)
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
    for part in re.split(r'<section class="answer" lang="\w+">', page)[1:]:
        notes = re.findall(r"<p[^>]*>([^<{]{40,})</p>", part)
        assert len(notes) == len(set(notes)) > 8


@pytest.mark.parametrize(
    ("question", "value", "error", "low", "high", "told"),
    [
        # 18 to 70 was printed as 20 to 70, and 0 to 99 as 0 to 0, beside a value outside the interval
        (number(18, 70), 1e5, 2400.0, -5e5, 5e5, {"en": "70 18 70", "de": "70 18 70", "fr": "70 18 70"}),
        (number(0, 99), 40.2, 3.1e5, -5e5, 5e5, {"en": "40 0 99", "de": "40 0 99", "fr": "40 0 99"}),
        (
            number(0, 9000, 10),
            1234.5678,
            0.25,
            1234.07,
            1235.05,
            {
                "en": "1,234.57 1,234.07 1,235.05",
                "de": "1 234,57 1 234,07 1 235,05",
                "fr": "1 234,57 1 234,07 1 235,05",
            },
        ),
    ],
)
def test_the_interval_of_a_number_keeps_the_ends_of_its_range(question, value, error, low, high, told):
    found = SimpleNamespace(
        estimate=value, standard_error=error, confidence_interval=lambda level, *, simultaneous: (low, high)
    )
    asked = parse(document(question)).questions[0]
    for language, numbers in told.items():
        (line,) = _lines(asked, found, More(), words_of(language), language)
        shown = re.sub(r"(?<=\d)\u202f(?=\d)", " ", line)
        assert " ".join(re.findall(r"\d[\d.,]*(?: \d{3})*(?:,\d+)?(?<![.,])", shown)) == numbers, line


def test_the_mean_of_a_scale_keeps_the_ends_of_its_range():
    asked = parse(second(scale((18, 40, 70)))).questions[0]
    mean = SimpleNamespace(value=52.0, standard_error=2400.0, confidence_interval=lambda level: (18.0, 70.0))
    assert "Mean: 52 (95% interval 18 to 70)" in more_lines(asked, More(mean=mean))


@pytest.mark.costly
def test_a_survey_in_german_has_a_page_in_german():
    page = release_page(held_in("de"), command="shuffledp", version="1")
    assert '<html lang="de">' in page
    text = html.unescape(re.sub(r"<[^>]+>", " ", page.split("<main>")[1]))
    said = " ".join(text.split())
    for words in (
        "Das Ergebnis",
        "Teilgenommen haben: 300.",
        "dann unter 487 zufällige Berichte gemischt.",
        "Was für jede Stufe zertifiziert ist",
        "Mischer: „Works council“",
        "Fragen? „survey@example.org“",
        "Für alle, die nachprüfen: Tabellen, Standardfehler",
    ):
        assert words in said


@pytest.mark.parametrize(
    ("language", "told"),
    [
        ("en", "1,282 of 1,300 people who were invited took part."),
        ("de", "1\u202f282 von 1\u202f300 Eingeladenen haben teilgenommen."),
        ("fr", "1\u202f282 des 1\u202f300 personnes invitées ont participé."),
    ],
)
def test_how_many_of_those_invited_took_part_is_told_in_every_language(language, told):
    assert people_in_words(1282, 1300, words_of(language), language) == told


@pytest.mark.costly
def test_the_organizer_s_language_comes_first_and_french_has_its_blanks():
    page = release_page(held_in("fr", "de"), command="shuffledp", version="1")
    assert re.findall(r'<section class="answer" lang="(\w+)">', page) == ["fr", "de"]
    assert re.search(r"<li>Non\u00a0: environ \d+ %", page)


@pytest.mark.costly
def test_how_to_read_shares_is_said_with_the_first_answer_that_it_holds_for():
    page = release_page(held(SMOKE, SMOKE), command="shuffledp", version="1")
    assert page.count("<figcaption>") == 2 * 3
    assert page.count("and hold one by one: of many, some miss.") == 1
