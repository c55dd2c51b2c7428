"""What a person is told when the local noise is small: how often the sent answer is true, and who could read it."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from shuffledp.collection.batch import AnalyzerKey
from shuffledp.collection.promise import LANGUAGES, READ, in_100, promises_data, what_is_promised
from shuffledp.collection.survey import draft_of_survey
from shuffledp.errors import InvalidInput
from tests.collection.tasks import ANALYST, ANALYZER, KINDS, choice, draft, number, parse, second

APART = {"analyzer": "The kitchen", "shuffler": "The works council", "page": "A newspaper"}
ALONE = {"analyzer": "The kitchen", "shuffler": "the Kitchen.", "page": "A newspaper"}
TRUE = {  # epsilon0: cases for 5 answers and for yes/no; accuracy of the words, not of a guarantee
    2.0: ("65", "88"),
    3.0: ("83", "95"),
    4.0: ("93", "98"),
    5.0: ("97", "99"),
    6.0: ("99", "99.8"),
    8.0: ("99.9", "99.97"),
}
WOULD = {
    "en": "they would read your answer",
    "de": "würden beide Ihre Antwort lesen",
    "fr": "ils liraient votre réponse",
}
UP_TO = {"en": "up to ", "de": "bis zu ", "fr": "jusqu’à "}


def told_at(epsilon0, language, *questions, hands=APART, crowd=0.2, promise=1.0):
    asked = draft(*questions, levels=((epsilon0, 10, promise),), operated_by=hands)
    level = asked.levels[0]
    object.__setattr__(level, "crowd", crowd)
    return what_is_promised(asked, 0, language)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("epsilon0", "cases"), TRUE.items())
@pytest.mark.parametrize("place", [0, 1])
def test_how_often_the_sent_answer_is_true_stands_at_every_level(language, epsilon0, cases, place):
    told = dict(told_at(epsilon0, language, choice((5, 2)[place])).sentences)
    (key,) = READ & set(told)
    wanted = cases[place].replace(".", "." if language == "en" else ",")
    assert f" {wanted} " in told[key]
    assert (WOULD[language] in told[key]) == (epsilon0 >= 5)
    assert "works council" in told[key]
    assert "kitchen" in told[key]
    assert ("one_shuffler" in told) == (epsilon0 > 4)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_promise_is_told_first_and_the_crowd_only_where_it_is_smaller(language):
    for crowd, there in ((0.2, True), (0.949, True), (0.95, False), (1.0, False)):
        sentences = told_at(4.0, language, crowd=crowd).sentences
        assert sentences[0][0] == "headline_floor"
        assert ("crowd" in dict(sentences)) == there
    assert told_at(4.0, language, hands=ALONE).sentences[0][0] == "headline_local"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("questions", "hands", "key", "cases", "up_to"),
    [
        ((choice(5),), ALONE, "one_hand_reads", "93", False),
        ((choice(5), choice(2)), APART, "together_reads", "98", True),
        ((choice(5), choice(5)), APART, "together_reads", "93", False),
        ((number(), choice(5)), APART, "together_reads", "93", False),
        ((number(),), APART, "together_reads_part", "96", False),  # a bit is no answer: tanh(2) of them depend on it
        ((choice(5, family="hadamard:5"),), ALONE, "one_hand_reads_part", "96", False),
    ],
)
def test_what_can_be_read_fits_hands_and_questions(language, questions, hands, key, cases, up_to):
    told = dict(told_at(4.0, language, *questions, hands=hands).sentences)
    assert set(told) & READ == {key}
    assert f" {UP_TO[language] if up_to else ''}{cases} " in told[key]
    assert (UP_TO[language] in told[key]) == up_to


def test_cases_are_rounded_to_the_nearest_and_never_to_all():
    for share in (Fraction(1, 3), Fraction(995, 1000), Fraction(9949, 10000), 1 - Fraction(1, 2**60), Fraction(0)):
        shown = Fraction(in_100(share))
        assert shown < 100
        decimals = len(in_100(share).partition(".")[2])
        assert abs(shown - 100 * share) <= Fraction(1, 2 * 10**decimals)
        assert not decimals or 100 * share >= 100 - Fraction(5, 10**decimals)  # no decimal more than that takes
    assert set(promises_data()["up_to"]) == set(LANGUAGES)


SURVEY = """
title = "Lunch"
organizer = "The institute"
contact = "survey@example.org"
privacy_notice = "https://example.org/privacy"
operated_by = {analyzer = "The institute", shuffler = "%s", page = "The institute"}
delta = 1e-6
opens = 2030-01-01T08:00:00Z
closes = 2030-01-31T08:00:00Z
expires = 2030-02-28T08:00:00Z
%s
[[questions]]
text = "Which?"
choices = ["a", "b", "c", "d", "e"]
"""
COUNCIL, ACCEPTED = "The works council", "accept_one_shuffler = true"


def drafted(budgets, shuffler=COUNCIL, more=""):
    levels = "".join(
        f'[[levels]]\nname = "level {place}"\nepsilon0 = {budget}\nplanned = 10\npromise = 1.0\n'
        for place, budget in enumerate(budgets)
    )
    return draft_of_survey((SURVEY % (shuffler, more) + levels).encode(), AnalyzerKey(ANALYZER, ANALYST, bytes(32)))


@pytest.mark.parametrize(
    ("budgets", "shuffler", "more", "match"),
    [
        ((2, 8.5), COUNCIL, ACCEPTED, "at most 8; got 8.5"),
        ((4.5, 6), COUNCIL, ACCEPTED, "one level must have an epsilon0 of at most 4"),
        ((2, 4.5), "the institute", ACCEPTED, "both shuffles and analyzes"),
        ((2, 6), COUNCIL, "", "accept_one_shuffler = true"),
        ((2, 6), COUNCIL, "accept_one_shuffler = false", "accept_one_shuffler = true"),
        ((2, 4), COUNCIL, "accept_one_shuffler = 1", "true or false"),
    ],
)
def test_a_survey_that_asks_for_too_much_is_refused_in_one_line(budgets, shuffler, more, match):
    with pytest.raises(InvalidInput, match=match) as refused:
        drafted(budgets, shuffler, more)
    assert "\n" not in str(refused.value)


def test_a_survey_may_offer_more_where_one_shuffler_is_accepted():
    accepted = drafted((2, 4, 6), more=ACCEPTED)
    keys = [{key for key, _ in what_is_promised(accepted, place).sentences} for place in range(3)]
    assert ["one_shuffler" in each for each in keys] == [False, False, True]
    assert [level.epsilon0 for level in drafted((2, 4)).levels] == [2.0, 4.0]


COUNCIL_AND_KITCHEN = {
    "en": ("“The works council”", "“The kitchen”"),
    "de": ("„The works council“", "„The kitchen“"),
    "fr": ("« The works council »", "« The kitchen »"),
}
CLAUSES = {  # what rule 2 to 4 of the wording demand, word for word; 0 is who shuffles, 1 who analyzes, 2 the cases
    "headline_floor": {
        "en": "Level “careful”: your number is 1. Your answer makes whoever sees the result at most 2.72 times surer "
        "of it, give or take a chance of 1 in 1 000 000. This holds if {0}, who shuffles, is honest",
        "de": "Stufe „careful“: Ihre Zahl ist 1. Ihre Antwort macht alle, die das Ergebnis sehen, höchstens 2,72-mal "
        "so sicher, wie sie lautet, bis auf eine Wahrscheinlichkeit von 1 zu 1 000 000. Das gilt, wenn {0} "
        "ehrlich mischt",
        "fr": "Niveau « careful » : votre nombre est 1. Votre réponse rend quiconque voit le résultat au plus "
        "2,72 fois plus sûr de ce que vous avez répondu, à une probabilité de 1 sur 1 000 000 près. Cela vaut si {0} "
        "mélange honnêtement",
    },
    "together": {
        "en": "If {0} and {1} work together, or if {0} breaks the rules, your number is {3}.",
        "de": "Wenn {0} und {1} zusammenarbeiten oder {0} sich nicht an die Regeln hält, ist Ihre Zahl {3}.",
        "fr": "Si {0} et {1} s’entendent, ou si {0} enfreint les règles, votre nombre est {3}.",
    },
    "together_reads": {
        "en": "If {0} worked together with {1}, they could read what your device sent, and it is your true answer in "
        "{2} of 100 cases.",
        "de": "Wenn {0} mit {1} zusammenarbeitete, könnten beide lesen, was Ihr Gerät gesendet hat, und es ist in {2} "
        "von 100 Fällen Ihre wahre Antwort.",
        "fr": "Si {0} s’entendait avec {1}, ils pourraient lire ce que votre appareil a envoyé, et c’est votre vraie "
        "réponse dans {2} cas sur 100.",
    },
    "together_reads_open": {
        "en": "If {0} worked together with {1}, they would read your answer: what your device sent is your true answer "
        "in {2} of 100 cases.",
        "de": "Wenn {0} mit {1} zusammenarbeitete, würden beide Ihre Antwort lesen: Was Ihr Gerät gesendet hat, ist in "
        "{2} von 100 Fällen Ihre wahre Antwort.",
        "fr": "Si {0} s’entendait avec {1}, ils liraient votre réponse : ce que votre appareil a envoyé est votre "
        "vraie réponse dans {2} cas sur 100.",
    },
    "one_shuffler": {
        "en": "{1} has accepted that at this level {0} alone stands between your answer and {1}.",
        "de": "{1} nimmt in Kauf, dass auf dieser Stufe nur {0} zwischen Ihrer Antwort und {1} steht.",
        "fr": "{1} a accepté qu’à ce niveau {0} soit seul entre votre réponse et {1}.",
    },
}


def plain(text: str) -> str:
    """A text with ordinary spaces, so that a line of this file can hold it."""
    return " ".join(text.replace("\N{NARROW NO-BREAK SPACE}", " ").replace("\N{NO-BREAK SPACE}", " ").split())


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("epsilon0", "cases"), TRUE.items())
def test_every_clause_stands_word_for_word(language, epsilon0, cases):
    told = {key: plain(text) for key, text in told_at(epsilon0, language).sentences}
    wanted = {"headline_floor", "together", "together_reads_open" if epsilon0 >= 5 else "together_reads"}
    wanted |= {"one_shuffler"} if epsilon0 > 4 else set()
    assert set(told) & set(CLAUSES) == wanted
    assert next(iter(told)) == "headline_floor"
    share = cases[0].replace(".", "." if language == "en" else ",")
    for key in wanted:
        clause = CLAUSES[key][language].format(*COUNCIL_AND_KITCHEN[language], share, f"{epsilon0:g}")
        assert told[key].startswith(clause), (told[key], clause)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("kind", "answers"), [("choice", 5), ("bit", 2), ("scale", 5), ("several", 2), ("table", 6),
                                               ("list", 20)])  # fmt: skip
@pytest.mark.parametrize("epsilon0", [2.0, 4.0, 6.0])
def test_how_often_it_is_true_is_said_of_every_kind(language, kind, answers, epsilon0):
    """Against e^epsilon0/(e^epsilon0 + k - 1), computed here; of options it is that of each option's own report."""
    asked = parse(second(KINDS[kind], levels=((epsilon0, 10, 1.0),)))
    told = dict(what_is_promised(asked, 0, language).sentences)
    (key,) = READ & set(told)
    true = math.exp(epsilon0) / (math.exp(epsilon0) + answers - 1)
    assert f" {in_100(Fraction(true), language)} " in told[key]
    assert abs(float(in_100(Fraction(true))) - 100 * true) <= 0.5


@pytest.mark.parametrize("language", LANGUAGES)
def test_of_a_number_it_is_said_how_often_a_report_depends_on_it(language):
    told = dict(what_is_promised(parse(second(KINDS["number"], levels=((4.0, 10, 1.0),))), 0, language).sentences)
    (key,) = READ & set(told)
    kept = (math.exp(4.0) - 1.0) / (math.exp(4.0) + 5.0)  # k-RR over 0..5 keeps with this chance
    assert key == "together_reads_part"
    assert f" {in_100(Fraction(kept), language)} " in told[key]
