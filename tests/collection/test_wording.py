"""What a person is told when the local noise is small: how often the sent answer is true, and who could read it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from shuffledp.collection.analyzer import AnalyzerKey
from shuffledp.collection.promised import LANGUAGES, READ, in_100, promises_data, what_is_promised
from shuffledp.collection.survey import draft_of_survey
from shuffledp.errors import InvalidInput
from tests.collection.tasks import ANALYST, ANALYZER, choice, draft, number

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
