"""A random order of questions and answers in survey.toml, in the draft, and where a command prints them."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest

from shuffledp.collection.answers import print_task, shown_order
from shuffledp.collection.client import Client
from shuffledp.collection.rehearsal import trial_of
from shuffledp.collection.sealing import Opener
from shuffledp.collection.task import Draft, PostedTask
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import simulation_random
from tests.collection.tasks import IDENTITY, SHUFFLER, bits, choice, parse, posted_second, second, several, table, words
from tests.collection.test_optional import ASKED, CHOICE, HEAD, drafted

ORDER = '\norder = "random"'


@pytest.mark.parametrize("kind", ["choice", "several", "table"])
def test_a_question_may_ask_for_a_random_order_of_its_answers(kind):
    found, plain = drafted(ASKED[kind] + ORDER), drafted(ASKED[kind])
    assert (found.questions[0].random_order, plain.questions[0].random_order) == (True, False)
    assert (found.random_order, plain.random_order) == (False, False)
    document = json.loads(found.data)
    assert document["questions"][0].pop("order") == "random"
    assert document == json.loads(plain.data)  # answers, dummies, draws: nothing else depends on it


def test_a_survey_may_ask_for_a_random_order_of_its_questions():
    found = drafted(CHOICE, 'order = "random"')
    assert (found.random_order, found.questions[0].random_order) == (True, False)
    assert json.loads(found.data)["order"] == "random"
    assert "order" not in json.loads(drafted(CHOICE).data)


@pytest.mark.parametrize(
    ("question", "head", "said"),
    [
        (ASKED["scale"] + ORDER, "", r"question 'Stay\?': the steps of a scale stay in their order; leave order out"),
        ("low = 0\nhigh = 9\nstep = 1" + ORDER, "", "a number has no answers to be put in an order"),
        (ASKED["list"] + ORDER, "", "words stand in a menu"),
        (CHOICE + '\norder = "by name"', "", r"'order' must be \"random\", or be left out: then all stand"),
        (CHOICE, "order = true", r"the survey: 'order' must be \"random\""),
        (CHOICE + '\nfamily = "hadamard"' + ORDER, "", "order cannot stand beside the family hadamard"),
        (CHOICE + '\nfamily = "hadamard"', 'order = "random"', "order cannot stand beside the family hadamard"),
    ],
)
def test_an_order_that_there_is_not_is_one_clear_line(question, head, said):
    with pytest.raises(InvalidInput, match=said):
        drafted(question, head)


def test_a_draft_is_read_by_the_same_rules():
    assert parse(second(choice() | {"order": "random"}, order="random")).random_order
    with pytest.raises(InvalidInput, match="the steps of a scale stay in their order"):
        parse(second(choice(3) | {"kind": "scale", "values": [1, 2, 3], "order": "random"}, centre=5))
    whole = second()
    whole["version"] = 1
    del whole["dummies"]
    whole["questions"][0]["dummies"] = {"law": "uniform", "count": 172}
    with pytest.raises(InvalidInput, match="unknown key 'order'"):
        Draft.parse(json.dumps(whole | {"order": "random"}).encode())


class Fixed(Client):
    """A client whose random numbers the test chooses, and that shows what it drew."""

    def drawn(self, answers: list[int]) -> list[int]:
        return self._reports(answers, 0)


def test_what_is_drawn_does_not_depend_on_the_order():
    asked: tuple[dict[str, Any], ...] = (choice(5), several(3), table(2, 3))
    reports: list[list[list[int]]] = []
    for more in ({}, {"order": "random"}):
        task = posted_second(*(each | more for each in asked), **more)
        client = Fixed(task, simulation_random(7))
        reports.append([client.drawn([j % 5, j % 8, j % 6]) for j in range(50)])
    assert reports[0] == reports[1]


def test_a_command_shows_orders_that_are_uniform_and_end_with_no_answer():
    """3,000 draws: 500 of each of 6 orders are expected, and 5 sigma are allowed."""
    draft = parse(
        second(
            choice(4) | {"order": "random", "optional": True},
            table(3, 2) | {"order": "random", "optional": True},
            bits(),
            words(4),
            order="random",
            centre=5,
        )
    )
    random = simulation_random(11)
    drawn = [shown_order(draft, random) for _ in range(3000)]
    orders = Counter(tuple(answers[0]) for _, answers in drawn)
    assert len(orders) == 6
    assert all(order[-1] == 3 for order in orders)
    assert max(abs(count - 500) for count in orders.values()) <= 5 * 500**0.5
    assert {tuple(answers[1]) for _, answers in drawn} == {(0, 1, 2, 3, 4, 5), (2, 3, 0, 1, 4, 5)}
    assert all(answers[2:] == [[], [0, 1, 2, 3]] for _, answers in drawn)
    assert len({tuple(questions) for questions, _ in drawn}) == 24
    plain = parse(second(choice(4), table(2, 2), centre=5))
    assert shown_order(plain, random) == ([0, 1], [[0, 1, 2, 3], [0, 1, 2, 3]])


def test_a_command_numbers_questions_by_their_places_whatever_the_order(capsys):
    task = posted_second(choice(3) | {"order": "random", "optional": True}, choice(4), choice(5), order="random")
    found: set[tuple[str, ...]] = set()
    for _ in range(20):  # all alike: one in 10^15
        print_task(task, "en")
        lines = " ".join(capsys.readouterr().out.split())
        assert "The order is drawn each time they are shown; --answer goes by their numbers." in lines
        numbered = re.findall(r"(\d)\. “Which of (\d)\?” \((.*?)\)", lines)
        assert {(number, k) for number, k, _ in numbered} == {("1", "3"), ("2", "4"), ("3", "5")}
        answers = {k: told for _, k, told in numbered}
        assert answers["3"].endswith(", “choice 3”")
        assert answers["4"] == ", ".join(f"“choice {j + 1}”" for j in range(4))
        found.add(tuple(number for number, *_ in numbered))
    assert len(found) > 1
    print_task(posted_second(choice(3)), "en")
    assert "The order is drawn" not in capsys.readouterr().out


def test_a_preview_shows_the_order_that_people_will_get(tmp_path):
    path = tmp_path / "survey.toml"
    question = '[[questions]]\ntext = {en = "Stay?", de = "Bleiben?"}\n' + CHOICE + ORDER
    path.write_text(HEAD % 'order = "random"' + question, encoding="utf-8")
    draft = trial_of(path, IDENTITY).task.draft
    assert (draft.random_order, draft.questions[0].random_order) == (True, True)


def test_a_task_is_shown_in_the_language_that_was_asked_for(capsys):
    """In German and French the line of the organizer, and how a question is answered, were English."""
    from shuffledp.collection import answers

    texts = {"en": "Q", "de": "F", "fr": "D"}

    def told(value: Any) -> Any:
        """The same with every text in three languages."""
        if isinstance(value, list):
            return [told(entry) for entry in value]
        if not isinstance(value, dict):
            return value
        if set(value) == {"en"}:
            return {name: f"{first} {value['en']}" for name, first in texts.items()}
        return {key: told(entry) for key, entry in value.items()}

    asked = (choice(3), several(3), table(2, 2), bits(), words(4))
    whole = second(*asked, order="random", levels=((4.0, 99, 8.0),))
    task = PostedTask.post(parse(told(whole)), Opener(SHUFFLER).public, IDENTITY)
    seen = {}
    for language in texts:
        print_task(task, language)
        seen[language] = " ".join(capsys.readouterr().out.split())
    for english in ("privacy notice", "open from", "any of", "one of", "a number", "in steps", "The order"):
        assert english in seen["en"]
        assert english not in seen["de"] + seen["fr"]
    assert "beliebig viele von „F" in seen["de"]
    assert "un nombre de 0 à " in seen["fr"]
    names = [sorted(re.findall("[{][a-z]+[}]", str(each))) for each in answers._SAID.values()]
    assert names[0] == names[1] == names[2]
