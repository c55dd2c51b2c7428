"""From an organizer's survey.toml to a draft, with the dummies that the promises need computed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

from shuffledp.collection.asked import (
    LARGEST_EPSILON0,
    MOST_CHOICES,
    MOST_OPTIONS,
    MOST_PEOPLE,
    StatedDummies,
    check_order,
    read_order,
)
from shuffledp.collection.batch import AnalyzerKey
from shuffledp.collection.draw import WHOLE, Family
from shuffledp.collection.estimates import scaled_counts
from shuffledp.collection.fields import Fields, to_base64
from shuffledp.collection.groups import SurveyGroup, groups_of_survey, title_of_group
from shuffledp.collection.kinds import (
    ANOTHER_WORD,
    columns_of,
    dictionary_of,
    in_languages,
    is_dictionary,
    number_as_scale,
    records_of,
    words_of_survey,
)
from shuffledp.collection.laws import stated_crowd, written_law
from shuffledp.collection.planner import MANY, Offer, Planned, Request, offer_of, plan_collection
from shuffledp.collection.promise import LARGEST_OFFERED, ONE_SHUFFLER, check_budgets, crowd_of, reports_of
from shuffledp.collection.sealing import new_identity, new_private
from shuffledp.collection.task import Draft
from shuffledp.errors import InvalidInput, shown
from shuffledp.randomizers.categorical import MOST_CELLS
from shuffledp.whole_files import toml_table

_COPIED = ("organizer", "contact", "privacy_notice", "operated_by", "delta", "at_least", "stop_at", "retention_days")
LONGEST_SURVEY = 1 << 20
_DEFAULTS = {"at_least": 100, "stop_at": 100_000, "retention_days": 30, "admission": "codes", "delta": 1e-6}
NO_ANSWER = {"en": "no answer", "de": "keine Angabe", "fr": "sans réponse"}
"""Default words of the additional choice of an optional question, by language."""
NAMES = {
    "careful": {"en": "careful", "de": "vorsichtig", "fr": "prudent"},
    "usual": {"en": "usual", "de": "üblich", "fr": "habituel"},
    "open": {"en": "open", "de": "offen", "fr": "ouvert"},
}
"""Names of the levels that the planner makes, by language."""
_UNKNOWN = (
    "answers in free words cannot be had: nobody can add dummies to a word that nobody knows, so a word sent by one "
    "person alone would show; list the answers as choices, or up to 20,000 known words as words"
)
"""Why there is no question without listed answers, and what to do instead."""
_KINDS = {
    "choice": ("choices",),
    "scale": ("choices", "values"),
    "several": ("options",),
    "number": ("low", "high", "step"),
    "table": ("rows", "columns"),
    "list": ("words",),
}
"""Keys of each kind of question, by which its kind is recognised."""
_BESIDE = ("explanation", "order", "optional", "family")
"""Keys that a question of any kind may have besides its text and those of its kind."""
_OF_KINDS = "; ".join(f"{', '.join(keys)} ({kind})" for kind, keys in _KINDS.items())
_WAYS = {
    "multiple": "to let people check any of several answers, write options in the place of choices",
    "free_text": _UNKNOWN,
    **dict.fromkeys(("kind", "type"), f"the other keys of a question say its kind, such as choices; {_UNKNOWN}"),
    "groups": "groups stand at the top of the survey, as [groups] with Kitchen = 40",
}
"""Keys that surveys elsewhere use, each with the way in which it is done here."""
_TIMES = ("opens", "closes", "expires")
_NEEDED = {
    "title": 'title = "Lunch"',
    "organizer": 'organizer = "The kitchen"',
    "contact": 'contact = "kitchen@example.org"',
    "privacy_notice": 'privacy_notice = "https://example.org/privacy"',
    "opens": "opens = 2030-01-01T08:00:00Z",
    "closes": "closes = 2030-01-31T18:00:00Z",
    "expires": "expires = 2030-02-28T18:00:00Z",
    "operated_by": 'operated_by = {analyzer = "A", shuffler = "B", page = "B"}',
    "questions": '[[questions]] with text = "Lunch?" and choices = ["soup", "fish"]',
}
"""A line of a survey for each key that has no default, as an example."""
_WISHES = ("people", "promise", "wanted", "levels", "accept_one_shuffler", "mix_by", "groups")
_OPTIONAL = (*_DEFAULTS, "language", "introduction", "order", "no_answer", "another_word", *_WISHES)
"""The keys that may stand at the top of a survey beside them."""
_OF_LEVEL = {
    "name": 'name = "usual"',
    "epsilon0": "epsilon0 = 4.0",
    "promise": "promise = 1.0",
    "planned": "planned = 9",
}
"""The same of a level."""
_OF_HANDS = {name: f'{name} = "{example}"' for name, example in (("analyzer", "A"), ("shuffler", "B"), ("page", "B"))}
"""The same of operated_by."""
MOST_QUESTIONS = 32


def draft_of_survey(
    data: bytes, key: AnalyzerKey, group: SurveyGroup | None = None, folder: Path | None = None
) -> Draft:
    """Return the draft of a survey.

    Parameters
    ----------
    data : bytes
        TOML: title, organizer, contact, privacy_notice, operated_by, opens, closes, expires, and questions (text with
        TOML: title, organizer, contact, privacy_notice, operated_by, opens, closes, expires, and questions (text with
        choices, optionally with values; with options; with rows and columns; with words, listed or the name of a file
        with one a line; or with low, high and step; optionally explanation, optional = true, order, family); levels
        (name, epsilon0, planned, promise), or people with optionally promise, for the default levels, and wanted, from
        which the planner makes them; and optionally introduction, order ("random": questions, or the answers of one,
        are shown in an order drawn for each person), no_answer (the words of optional questions), another_word (those
        of a dictionary), delta, admission, at_least, stop_at, retention_days, accept_one_shuffler (true where a
        level's epsilon0 is above 4), and language for texts given without one.
    key : AnalyzerKey
        The analyzer's new keys; its public ones go into the draft.
    group : SurveyGroup, optional
        One of the survey's groups (`survey_groups`), whose draft is made: its name joins the title, its people are
        planned. A survey with groups has no draft of its own.
    folder : Path, optional
        The folder of the survey, in which a file of words is read.

    Returns
    -------
    Draft
        The draft, with draws, dummies and crowds computed.

    Raises
    ------
    InvalidInput
        If the survey is malformed, no dummies can keep its promises, or a wanted half-width cannot be reached.
    """
    survey = _read(toml_table(data, "the survey"), key, group, folder, {})
    request = survey.request.among([each.people for each in survey_groups(data)] if group else ())
    if request.wanted is not None:
        _refuse_what_cannot_be(request)
    return _drafted(survey, offer_of(request))


@dataclass(frozen=True)
class _Survey:
    """A survey, read and checked by every rule but the accountant's.

    Parameters
    ----------
    document : dict
        The draft without what follows from an `Offer`: families of numbers, draws, dummies and crowds; its levels are
        the survey's own, if it has any.
    request : Request
        What the planner is asked.
    """

    document: dict[str, Any]
    request: Request


def _read(
    survey: dict[str, Any],
    key: AnalyzerKey,
    group: SurveyGroup | None,
    folder: Path | None,
    given: dict[str, Any],
    shufflers: int = 1,
) -> _Survey:
    """Read a survey, for its draft and for its plan alike; ``given`` holds wishes that go before the survey's own."""
    fields, language = _survey(survey)
    title = _texts(fields.take("title"), language)
    if fields.has("groups"):
        fields.take("groups")
        if group is None:
            raise InvalidInput("the survey has groups: each has a draft of its own")
    if group is not None:
        title = title_of_group(title, group)
    copied = {name: _taken(fields, name) for name in _COPIED}
    questions = _questions(fields, language, folder)
    if group is not None:
        _refuse_dictionary(questions)
    version, wishes = _version(questions), _wishes(fields)
    document: dict[str, Any] = {"version": version, "suite": 1, "title": title} | copied
    if fields.has("introduction"):
        document["introduction"] = _texts(_one_line(fields.take("introduction")), language)
    if read_order(fields):
        if version == 1:
            raise InvalidInput("the survey: order cannot stand beside the family hadamard; leave one of them out")
        document["order"] = "random"
    accepted = fields.has("accept_one_shuffler") and fields.flag("accept_one_shuffler")
    levels: list[dict[str, Any]] = []
    if fields.has("levels"):
        levels = [_level(entry, language) for entry in fields.list_of("levels", 1, 8)]
        _check_beside_levels(wishes, levels)
    wishes |= ({} if group is None else {"people": group.people}) | given
    if levels:
        _plan_for(levels, wishes)
    document |= {"questions": [_with_family(question, version) for question in questions], "levels": levels}
    document |= {"admission": fields.take("admission")} | {name: _time(fields, name) for name in _TIMES}
    hands = document["operated_by"]
    if fields.has("mix_by") or (isinstance(hands, dict) and "shufflers" in hands):
        raise InvalidInput(
            "the survey: several shufflers in a row (operated_by.shufflers, mix_by) need a newer shuffledp; name one "
            "hand as operated_by.shuffler"
        )
    Fields(hands if isinstance(hands, dict) else {}, "the survey, operated_by").require(_OF_HANDS, "shufflers")
    fields.done()
    document |= {"analyzer_key": to_base64(key.public), "analyzer_identity": to_base64(key.public_identity)}
    plain = _plain(document)
    if levels:
        check_budgets(plain, accept_one_shuffler=accepted or shufflers > 1)
    fitted = [question["kind"] == "number" and not question["family"] for question in questions]
    return _Survey(document, _request(plain, fitted, levels, wishes, accepted, shufflers))


def _plain(document: dict[str, Any]) -> Draft:
    """Return the draft without dummies, after checking every rule but the accountant's.

    Where the planner makes the levels, one stands in for them.
    """
    levels = document["levels"] or _levels_of([("usual", ONE_SHUFFLER, 1)], 1.0, document["title"])
    plain = document | {"levels": [_with_draws(level, document["questions"]) for level in levels]}
    if document["version"] > 1:  # none yet, one centre a column
        width = sum(map(columns_of, document["questions"]))
        plain["dummies"] = {"law": "ball", "radius": [str(WHOLE)], "centre": [0] * width}
    return Draft.parse(_bytes(plain), "the survey")


def _refuse_what_cannot_be(request: Request) -> None:
    """Refuse a wanted half-width that cannot be reached."""
    asked = _planned_for_somebody(replace(request, groups=()))  # of this group alone
    missed = asked.wanted is not None and offer_of(asked).widest > asked.wanted
    for choice in plan_collection(asked).choices if missed else ():  # which says what would do
        if choice.cannot:
            raise InvalidInput(f"{choice.question.text}: {choice.cannot} Nothing was written")


def survey_groups(data: bytes) -> tuple[SurveyGroup, ...]:
    """Return the groups of a survey, in its order; none where it has no ``[groups]``.

    Parameters
    ----------
    data : bytes
        TOML, as for `draft_of_survey`.

    Raises
    ------
    InvalidInput
        If they are malformed, anybody may answer without a code, or a group is too small for ``at_least``.
    """
    fields = Fields(_DEFAULTS | toml_table(data, "the survey"), "the survey")
    if not fields.has("groups"):
        return ()
    language = fields.line("language") if fields.has("language") else "en"
    groups = groups_of_survey(fields, language)
    if fields.has("people"):
        raise InvalidInput("the survey: each group says how many people are invited; leave people out")
    if fields.take("admission") != "codes":
        raise InvalidInput("the survey: who belongs to a group is known by the codes; leave admission out")
    least, smallest = fields.whole("at_least", 1, MOST_PEOPLE), min(groups, key=lambda group: group.people)
    if smallest.people < least:
        raise InvalidInput(
            f"the survey: the smallest group is {shown(smallest.first)} with {smallest.people} people, and with fewer "
            f"than at_least = {least} answers nothing is handed over; write at_least = {max(1, smallest.people // 2)}, "
            "or put small groups together"
        )
    return groups


def _plan_for(levels: list[dict[str, Any]], wishes: dict[str, Any]) -> None:
    """Set planned people and promises of a survey's own levels to those that are given instead.

    People spread over the levels in the survey's proportions, or evenly where it plans nobody.
    """
    planned = [level["planned"] for level in levels]
    people = wishes.setdefault("people", sum(planned))
    if people != sum(planned):
        planned = scaled_counts(planned if sum(planned) else [1] * len(levels), people)
    for level, number in zip(levels, planned, strict=True):
        level["planned"] = number
        level["promise"] = float(wishes.get("promise", level["promise"]))


def _check_beside_levels(wishes: dict[str, Any], levels: list[dict[str, Any]]) -> None:
    """Refuse wishes of the whole survey that its own levels contradict."""
    if "promise" in wishes:
        raise InvalidInput("the survey: promise stands in the place of levels, each of which has its own; leave it out")
    planned = sum(level["planned"] for level in levels)
    if wishes.get("people", planned) != planned:
        raise InvalidInput(
            f"the survey: people = {wishes['people']} stands in the place of levels, which plan {planned}; leave it out"
        )


def request_of_survey(
    data: bytes,
    *,
    people: int | None = None,
    promise: float | None = None,
    wanted: float | None = None,
    shufflers: int = 1,
    folder: Path | None = None,
) -> Request:
    """Return a survey's inputs for the planner; no keys, operators or times are needed.

    Parameters
    ----------
    data : bytes
        TOML: questions, and optionally people, promise, wanted, delta, levels, admission and language.
    people : int, optional
        Number expected; default: the survey's `people`, those of its smallest group, or the planned people of its
        levels.
    promise : float, optional
        Central epsilon over all questions; the survey's, or 1 up to three questions and 2 beyond.
    wanted : float, optional
        Half-width in percentage points, or per cent of a number's range.
    shufflers : int
        Number of shufflers that add dummies.
    folder : Path, optional
        As for `draft_of_survey`.

    Raises
    ------
    InvalidInput
        If the survey is malformed, or nothing states how many people are expected.
    """
    groups = survey_groups(data)
    wishes = {"people": people, "promise": promise, "wanted": wanted}
    given = {name: value for name, value in wishes.items() if value is not None}
    group = min(groups, key=lambda each: each.people) if groups else None
    key = AnalyzerKey(new_private(), new_identity(), bytes(32))
    request = _read(toml_table(data, "the survey"), key, group, folder, given, shufflers).request
    return _planned_for_somebody(request).among([each.people for each in groups])


def _planned_for_somebody(request: Request) -> Request:
    """Return a request, or refuse one whose levels plan nobody, so that no half-width is known."""
    if request.levels and not any(planned for *_, planned in request.levels):
        raise InvalidInput("the survey: its levels plan nobody; write how many are expected, such as planned = 500")
    return request


def _survey(document: dict[str, Any]) -> tuple[Fields, str]:
    """Return the fields of a survey with what has a default, after checking that nothing else is missing; its language.

    Its groups are no field of the survey that is drafted for one of them.
    """
    spelled = {"organizer" if key == "organiser" else key: value for key, value in document.items() if key != "groups"}
    given = Fields(spelled, "the survey")
    _explain(given)
    given.require(_NEEDED, *_OPTIONAL)
    fields = Fields(_DEFAULTS | document, "the survey")
    return fields, fields.line("language") if fields.has("language") else "en"


def has_levels(data: bytes) -> bool:
    """Return whether a survey states its levels itself; otherwise the planner makes them."""
    return "levels" in toml_table(data, "the survey")


def _wishes(fields: Fields) -> dict[str, Any]:
    """Read the fields that only the planner uses."""
    wishes: dict[str, Any] = {}
    if fields.has("people"):
        wishes["people"] = fields.whole("people", 1, MOST_PEOPLE)
    if fields.has("promise"):
        wishes["promise"] = fields.number("promise", 1e-6, 1e3)
    if fields.has("wanted"):
        wishes["wanted"] = fields.number("wanted")
    return wishes


def _request(
    plain: Draft,
    fitted: list[bool],
    levels: list[dict[str, Any]],
    wishes: dict[str, Any],
    accepted: bool,
    shufflers: int,
) -> Request:
    """Return the planner's inputs; promise and people have defaults or are required.

    ``fitted`` says of each question whether the planner chooses its family.
    """
    if "people" not in wishes:
        raise InvalidInput(
            "the survey has no levels, so it must say how many people are expected: write people = 500, or levels with "
            "epsilon0, promise and planned"
        )
    planned = tuple(
        Planned(
            next(iter(question.text.values())),
            Family("one-bit", question.family.records) if by_planner else question.family,
            *((question.low, question.high) if question.kind == "number" else ()),
            kind=question.kind,
            shape=question.shape,
            answers=len(question.choices) or 1,
        )
        for question, by_planner in zip(plain.questions, fitted, strict=True)
        for _ in range(question.width)
    )
    promises = tuple(level["promise"] for level in levels)
    return Request(
        planned,
        wishes["people"] or len(levels),  # of levels that plan nobody, one at each
        max(promises, default=wishes.get("promise", 1.0 if len(plain.questions) <= MANY else 2.0)),
        plain.delta,
        wishes["wanted"] / 100.0 if "wanted" in wishes else None,
        shufflers,
        reports_of(plain),
        tuple((next(iter(level.name.values())), level.epsilon0, level.planned) for level in plain.levels if levels),
        promises,
        accepted,
        plain.operated_by.one_hand,
        plain.at_least,
    )


def _first(text: object) -> str:
    """Return the text in its first language, without checking it, which the draft does."""
    return str(next(iter(text.values()), "")) if isinstance(text, dict) else str(text)


def _levels_of(levels: Iterable[tuple[str, float, int]], promise: float, title: object) -> list[dict[str, Any]]:
    """Return levels of known names under one promise as objects, in the languages of the title."""
    languages = list(title) if isinstance(title, dict) else ["en"]
    return [
        {
            "name": {language: NAMES[name].get(language, name) for language in languages},
            "epsilon0": epsilon0,
            "planned": people,
            "promise": promise,
            "crowd": 0.0,
        }
        for name, epsilon0, people in levels
    ]


def _with_draws(level: dict[str, Any], questions: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a level with the integers by which it draws."""
    families = [Family(question["family"], records_of(question)) for question in questions]
    return level | {"draw": [str(family.threshold(level["epsilon0"])) for family in families]}


def _drafted(survey: _Survey, offer: Offer) -> Draft:
    """Return the draft: a survey with what is offered, and the crowds that follow."""
    document, places = dict(survey.document), [0]
    for question in document["questions"]:
        places.append(places[-1] + columns_of(question))
    columns = [(offer.questions[place].family.name, offer.dummies[place]) for place in places[:-1]]
    pairs = list(zip(document["questions"], columns, strict=True))
    questions = [question | {"family": family} for question, (family, _) in pairs]
    if offer.law is None:
        questions = [entry | {"dummies": _written(own)} for entry, (_, own) in zip(questions, columns, strict=True)]
    else:
        document["dummies"] = written_law(offer.law)
    levels = document["levels"] or _levels_of(offer.levels, offer.request.promise, document["title"])
    document |= {"questions": questions, "levels": [_with_draws(level, questions) for level in levels]}
    draft = Draft.parse(_bytes(document))
    check_budgets(draft, accept_one_shuffler=offer.request.accepted)
    planned = [level.planned for level in draft.levels]
    for level, crowd in zip(document["levels"], crowd_of(draft, planned), strict=True):
        level["crowd"] = level["promise"] if crowd is None else min(stated_crowd(crowd), level["promise"])
    return Draft.parse(_bytes(document))


def _refuse_dictionary(questions: list[dict[str, Any]]) -> None:
    """Refuse a dictionary in a survey with groups, whose answers are compared word by word."""
    for question in questions:
        if question["kind"] == "dictionary":
            raise InvalidInput(
                f"the survey, question {shown(_first(question['text']))}: in a survey with groups a list has at most "
                f"{MOST_CHOICES:,} words, for groups are compared word by word; ask each group in a survey of its own"
            )


def _questions(fields: Fields, language: str, folder: Path | None) -> list[dict[str, Any]]:
    """Read all questions; optional ones get the words for "no answer", dictionaries those for "another word"."""
    words = _texts(fields.take("no_answer"), language) if fields.has("no_answer") else NO_ANSWER
    another = _texts(fields.take("another_word"), language) if fields.has("another_word") else ANOTHER_WORD
    _check_number(fields, "questions", MOST_QUESTIONS, 1)
    entries = fields.list_of("questions", 1, MOST_QUESTIONS)
    return [_question(entry, language, words, another, folder) for entry in entries]


def _question(entry: object, language: str, no_answer: object, another: object, folder: Path | None) -> dict[str, Any]:
    fields = _fields_of(entry, "question", "text")
    if isinstance(entry, dict) and isinstance(entry.get("words"), str):
        read = words_of_survey(entry["words"], fields.what, folder)
        fields = _fields_of(entry | {"words": read}, "question", "text")
    there = {key for keys in _KINDS.values() for key in keys if fields.has(key)}
    kind = next((kind for kind, keys in _KINDS.items() if there == set(keys)), None)
    if kind is None:
        misspelt = fields.unknown(*_BESIDE)
        unlisted = "" if there or misspelt else f"; {_UNKNOWN}"
        named = f": {misspelt}; a question" if misspelt else ""
        raise InvalidInput(f"{fields.what}{named} needs answers of one kind: write {_OF_KINDS}{unlisted}")
    question: dict[str, Any] = {"text": _texts(fields.take("text"), language), "kind": kind}
    for key in _KINDS[kind]:
        if kind == "number":
            question[key] = fields.number(key)
        elif key == "values":
            question[key] = fields.list_of(key, len(question["choices"]), len(question["choices"]))
        else:
            if kind == "list" and is_dictionary(fields.peek(key)):
                own = in_languages(another, question, fields.what, "another_word", "another word")
                question |= dictionary_of(fields.take(key), fields.what, own)
                continue
            _check_number(fields, key, _MOST[kind])
            question[key] = [_texts(text, language) for text in fields.list_of(key, 2, _MOST[kind])]
    if fields.has("explanation"):
        question["explanation"] = _texts(_one_line(fields.take("explanation")), language)
    if read_order(fields):
        check_order(kind, fields.what)
        question["order"] = "random"
    if fields.has("optional") and fields.flag("optional"):
        question = number_as_scale(question, fields.what) if kind == "number" else question
        question |= _made_optional(question, no_answer, fields.what)
    family = fields.line("family") if fields.has("family") else ""
    fields.done()
    return question | {"family": _family(question, family, fields.what)}


def _made_optional(question: dict[str, Any], no_answer: object, what: str) -> dict[str, Any]:
    """Return a question's answers with the additional choice "no answer", so that a report is never left out.

    A missing report would show, to the shuffler and by the number of rows to the analyzer, that its person did not
    answer; a stated category is randomized like every other answer and hides among the dummies.
    """
    words = in_languages(no_answer, question, what, "no_answer", "no answer")
    if question["kind"] == "dictionary":
        return {"more": [*question["more"], words], "optional": True}
    keys = [key for key in _KINDS[question["kind"]] if key != "values"]
    most, sizes = _MOST[question["kind"]], [len(question[key]) + 1 for key in keys]
    if math.prod(sizes) > most:
        raise InvalidInput(
            f"{what}: {' x '.join(keys)} must be at most {most:,}; optional adds “no answer” and makes it "
            f"{' x '.join(f'{size:,}' for size in sizes)}; leave out one of them, or optional"
        )
    return {key: [*question[key], words] for key in keys} | {"optional": True}


def _one_line(value: object) -> object:
    """Return a text with its lines joined."""
    if isinstance(value, dict):
        return {name: _one_line(text) for name, text in value.items()}
    return " ".join(value.split()) if isinstance(value, str) else value


def _check_number(fields: Fields, key: str, most: int, least: int = 2) -> None:
    """Refuse too few answers or too many, with advice on what to do instead."""
    given = fields.peek(key)
    if isinstance(given, list) and not least <= len(given) <= most:
        few = len(given) < least
        limit = f"at least {least}" if few else f"at most {most:,}"
        advice = _MORE.get(key, "write what people may answer") if few else _FEWER.get(key, _FEWER["choices"])
        raise InvalidInput(f"{fields.what}: {key} must be {limit}; got {len(given):,}; {advice}")


_MORE = {"words": _UNKNOWN, "questions": _NEEDED["questions"]}
"""Advice for too few answers, by key."""
_FEWER = {
    "choices": "put rare ones together as one answer, such as other",
    "options": "ask two questions",
    "rows": "join some of them, or ask two questions",
    "columns": "join some of them, or ask two questions",
    "questions": "ask the rest in a survey of its own, which makes a promise of its own",
}
"""Advice for too many answers, by key."""
_MOST = {
    "choice": MOST_CHOICES,
    "scale": MOST_CHOICES,
    "several": MOST_OPTIONS,
    "table": MOST_CELLS,
    "list": MOST_CHOICES,
}


def _family(question: dict[str, Any], family: str, what: str) -> str:
    """Return the family that a question names or, if it names none, the default of its kind."""
    if question["kind"] == "number":
        return {"one-bit": "bits:1"}.get(family, family)
    records = records_of(question)
    plain = "rr" if records == 2 else f"krr:{records}"
    if family in ("hadamard", f"hadamard:{records}") and question["kind"] == "choice":
        return f"hadamard:{records}"
    if family not in ("", plain):
        raise InvalidInput(f"{what}: the family must be {plain}, or be left out; got {shown(family)}")
    return plain


def _version(questions: list[dict[str, Any]]) -> int:
    """Return the task's version: 2, or 1 for the family ``hadamard:K``, which ball dummies do not serve."""
    if not any(question["family"].startswith("hadamard") for question in questions):
        return 2
    for question in questions:
        if new := {"optional", "explanation", "order"} & set(question):
            raise InvalidInput(
                f"the survey, question {shown(_first(question['text']))}: {min(new)} cannot stand beside the family "
                "hadamard; leave that family out"
            )
        if question["kind"] not in ("choice", "number"):
            raise InvalidInput(
                f"the survey, question {shown(_first(question['text']))}: a {question['kind']} cannot be asked beside "
                "a question of the family hadamard; leave that family out"
            )
    return 1


def _with_family(question: dict[str, Any], version: int) -> dict[str, Any]:
    """Return a question completed as a draft of that version has it; a number without a family has one bit for now."""
    completed = dict(question)
    if completed["kind"] == "number":
        completed["family"] = "one-bit" if version == 1 else completed["family"] or "bits:1"
    size = (
        1
        if completed["kind"] in ("number", "several")
        else Family(completed["family"], records_of(completed)).report_bytes
    )
    return completed | {"report_bytes": size} | ({"dummies": {"law": "uniform", "count": 0}} if version == 1 else {})


def _level(entry: object, language: str) -> dict[str, Any]:
    fields = _fields_of(entry, "level", "name")
    fields.require(_OF_LEVEL)
    level: dict[str, Any] = {"name": _texts(fields.take("name"), language)}
    if fields.peek("epsilon0") in ("none", math.inf):
        raise InvalidInput(
            f"{fields.what}: reports without local noise are not offered, for answers gain next to nothing by it; "
            f"write epsilon0 = {LARGEST_OFFERED:g} or less"
        )
    level |= {"epsilon0": fields.number("epsilon0", 1e-3, LARGEST_EPSILON0)}
    level |= {"planned": fields.whole("planned", 0, MOST_PEOPLE), "promise": fields.number("promise"), "crowd": 0.0}
    fields.done()
    return level


def _taken(fields: Fields, name: str) -> Any:
    """Read a field of the whole survey."""
    _explain(fields)
    if name == "organizer" and fields.peek("organiser") is not None:
        if fields.has("organizer"):
            raise InvalidInput(f"{fields.what}: organiser and organizer are one key; write one of them")
        return fields.take("organiser")
    return fields.take(name)


def _fields_of(entry: object, kind: str, named_by: str) -> Fields:
    """Return the fields of a question or a level, which messages call by its own words."""
    values = entry if isinstance(entry, dict) else {}
    words = values.get(named_by)
    first = next(iter(words.values()), None) if isinstance(words, dict) else words
    fields = Fields(values, f"the survey, {kind} {shown(first)}" if isinstance(first, str) else f"the survey, {kind}s")
    fields.has(named_by)  # the first of the keys that an unknown one is answered with
    _explain(fields)
    return fields


def _explain(fields: Fields) -> None:
    """Refuse keys that surveys elsewhere use, with the way in which it is done here."""
    for key in fields.names():
        if key in _WAYS:
            raise InvalidInput(f"{fields.what}: unknown key '{key}'; {_WAYS[key]}")


def _texts(value: object, language: str) -> object:
    """Return a text without a language as one in the survey's language."""
    return {language: value} if isinstance(value, str) else value


def _time(fields: Fields, name: str) -> str:
    value = fields.take(name)
    if isinstance(value, datetime) and value.tzinfo is not None:
        try:
            return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        except OverflowError:
            raise InvalidInput(f"the survey: {name} lies beyond the years 1 to 9999 in UTC; got {value}") from None
    if isinstance(value, date | time):
        raise InvalidInput(f"the survey: {name} needs a time of day and a zone, such as 2030-01-31T08:00:00Z")
    return value


def _written(dummies: StatedDummies) -> dict[str, Any]:
    fields: dict[str, Any] = {"law": dummies.law, "count": dummies.count}
    return fields | ({"draw": [str(word) for word in dummies.draw]} if dummies.law == "laplace" else {})


def _bytes(document: dict[str, Any]) -> bytes:
    for key, value in document.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError):  # a date, nan, inf
            raise InvalidInput(
                f"the survey: {shown(key)} must be made of texts, finite numbers and lists; got {shown(value)}"
            ) from None
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1).encode("utf-8")
