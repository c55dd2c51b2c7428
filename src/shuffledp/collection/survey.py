"""From an organizer's survey.toml to a draft; the dummies that the promises need are computed, nobody types them."""

from __future__ import annotations

import json
import tomllib
from datetime import UTC, date, datetime, time
from typing import Any

from shuffledp.collection.agreement import stated_crowd
from shuffledp.collection.asked import MOST_PEOPLE, Dummies
from shuffledp.collection.draw import Family
from shuffledp.collection.fields import Fields, to_base64
from shuffledp.collection.keys import AnalyzerKey
from shuffledp.collection.promise import crowd_of, needed_dummies
from shuffledp.collection.task import Draft
from shuffledp.errors import InvalidInput, shown

_COPIED = ("organizer", "contact", "privacy_notice", "operated_by", "delta", "at_least", "stop_at", "retention_days")
LONGEST_SURVEY = 1 << 20
_DEFAULTS = {"at_least": 100, "stop_at": 100_000, "retention_days": 30, "admission": "codes"}
_WAYS = {
    "multiple": "a person gives one answer to a question: ask a question with yes and no for each answer",
    "free_text": "an answer that is written freely cannot be randomized: list the answers as choices",
    "groups": "write and post a survey for each group",
}
"""What is not asked for, and what to do instead."""
_TIMES = ("opens", "closes", "expires")


def draft_of_survey(data: bytes, key: AnalyzerKey) -> Draft:
    """Turn a survey into a draft.

    Parameters
    ----------
    data : bytes
        TOML: title, organizer, contact, privacy_notice, operated_by, delta, opens, closes, expires, levels (name,
        epsilon0, planned, promise) and questions (text with choices, or with low, high and step; optionally family),
        and optionally admission, at_least, stop_at, retention_days, and language for texts given without one.
    key : AnalyzerKey
        The analyzer's new keys; its public ones go into the draft.

    Returns
    -------
    Draft
        With draws, dummies and crowds computed.

    Raises
    ------
    InvalidInput
        If the survey is not as it must be, or no dummies can keep its promises.
    """
    try:
        survey = tomllib.loads(data.decode("utf-8-sig"))  # some editors begin a file with a mark
    except (ValueError, OverflowError, RecursionError) as error:  # also a number of 5,000 digits, or a nest of lists
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InvalidInput(f"the survey is not TOML as expected: {reason}") from None
    fields = Fields(_DEFAULTS | survey, "the survey")
    language = fields.line("language") if fields.has("language") else "en"
    document: dict[str, Any] = {"version": 1, "suite": 1, "title": _texts(fields.take("title"), language)}
    document |= {name: _taken(fields, name) for name in _COPIED}
    questions = [_question(entry, language) for entry in fields.list_of("questions", 1, 32)]
    levels = [_level(entry, language) for entry in fields.list_of("levels", 1, 8)]
    document |= {"questions": questions, "levels": levels, "admission": fields.take("admission")}
    document |= {name: _time(fields, name) for name in _TIMES}
    fields.done()
    document |= {"analyzer_key": to_base64(key.public), "analyzer_identity": to_base64(key.public_identity)}
    return _with_dummies(document)


def _with_dummies(document: dict[str, Any]) -> Draft:
    """Fill in what follows from the promises: draws, dummies, crowds."""
    for level in document["levels"]:
        epsilon0 = Fields(level, "the survey, levels").number("epsilon0", 1e-3, 30.0)
        level["draw"] = [str(Family(q["family"], _records(q)).threshold(epsilon0)) for q in document["questions"]]
    plain = Draft.parse(_bytes(document))  # every rule but the accountant's
    found = needed_dummies(plain)
    for question, dummies in zip(document["questions"], found, strict=True):
        question["dummies"] = _written(dummies)
    draft = Draft.parse(_bytes(document))
    planned = [level.planned for level in draft.levels]
    for level, crowd in zip(document["levels"], crowd_of(draft, planned), strict=True):
        level["crowd"] = level["promise"] if crowd is None else min(stated_crowd(crowd), level["promise"])
    return Draft.parse(_bytes(document))


def _question(entry: object, language: str) -> dict[str, Any]:
    fields = _fields_of(entry, "question", "text")
    if not fields.has("choices") and not fields.has("low"):
        raise InvalidInput(f"{fields.what} needs answers: write choices = [...], or low, high and step of a number")
    asked: dict[str, Any] = {"text": _texts(fields.take("text"), language)}
    if fields.has("choices"):
        choices = [_texts(choice, language) for choice in fields.list_of("choices", 2, 1000)]
        short = "rr" if len(choices) == 2 else f"krr:{len(choices)}"
        asked |= {"kind": "choice", "choices": choices, "family": short}
    else:
        asked |= {"kind": "number", "low": fields.number("low"), "high": fields.number("high")}
        asked |= {"step": fields.number("step"), "family": "one-bit"}
    if fields.has("family"):
        asked["family"] = fields.line("family")
        if asked["family"] == "hadamard" and "choices" in asked:
            asked["family"] = f"hadamard:{len(asked['choices'])}"
    fields.done()
    name = asked["family"] if asked["family"].partition(":")[0] == "hadamard" else "krr"
    size = Family(name, _records(asked)).report_bytes if "choices" in asked else 1
    return asked | {"report_bytes": size, "dummies": {"law": "uniform", "count": 0}}


def _level(entry: object, language: str) -> dict[str, Any]:
    fields = _fields_of(entry, "level", "name")
    level: dict[str, Any] = {"name": _texts(fields.take("name"), language)}
    level |= {"epsilon0": fields.number("epsilon0"), "planned": fields.whole("planned", 0, MOST_PEOPLE)}
    level["promise"] = fields.number("promise")
    fields.done()
    return level | {"crowd": 0.0}


def _taken(fields: Fields, name: str) -> Any:
    """Take a value of the whole survey."""
    _explain(fields)
    if name == "organizer" and fields.has("organiser") and not fields.has("organizer"):
        return fields.take("organiser")
    return fields.take(name)


def _fields_of(entry: object, kind: str, named_by: str) -> Fields:
    """Read a question or a level, which messages call by its own words."""
    values = entry if isinstance(entry, dict) else {}
    words = values.get(named_by)
    first = next(iter(words.values()), None) if isinstance(words, dict) else words
    fields = Fields(values, f"the survey, {kind} {shown(first)}" if isinstance(first, str) else f"the survey, {kind}s")
    _explain(fields)
    return fields


def _explain(fields: Fields) -> None:
    """Refuse what people who know other surveys write, and say how it is asked for here."""
    for key in fields.names():
        if key in _WAYS:
            raise InvalidInput(f"{fields.what}: there is no {key}; {_WAYS[key]}")


def _records(question: dict[str, Any]) -> int:
    return len(question["choices"]) if "choices" in question else 2


def _texts(value: object, language: str) -> object:
    """Put a text without a language under the survey's language."""
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


def _written(dummies: Dummies) -> dict[str, Any]:
    known: dict[str, Any] = {"law": dummies.law, "count": dummies.count}
    return known | ({"draw": [str(word) for word in dummies.draw]} if dummies.law == "laplace" else {})


def _bytes(document: dict[str, Any]) -> bytes:
    for key, value in document.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError):  # a date, nan, inf
            raise InvalidInput(
                f"the survey: {shown(key)} must be made of texts, finite numbers and lists; got {shown(value)}"
            ) from None
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1).encode("utf-8")
