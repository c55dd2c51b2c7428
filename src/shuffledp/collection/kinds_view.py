"""The estimates that a kind of question has besides its shares, as JSON and in sentences."""

from __future__ import annotations

from typing import Any

import numpy as np

from shuffledp.collection.asked import SurveyQuestion, Text
from shuffledp.collection.dictionary import FoundWords, words_to_json
from shuffledp.collection.kinds import ERROR_RATE, More
from shuffledp.collection.weights import WeightedTable
from shuffledp.in_words import ENGLISH, Translation, numbers_with_error
from shuffledp.questions.estimate import Estimate
from shuffledp.questions.question import CONFIDENCE, AnswerLine
from shuffledp.report.answer import interval_words

COVERS = "the people who answered"
"""Words for the population of intervals without weighting."""
STAND = "the people for whom the answers stand"
"""Words for the population of intervals of weighted answers."""
_NAMED = 50
"""Largest number of present words listed in a sentence."""


def more_to_json(question: SurveyQuestion, more: More) -> dict[str, Any]:
    """Return the keys that a kind adds to its answer.

    Parameters
    ----------
    question : SurveyQuestion
        The question.
    more : More
        Its estimates besides the shares.
    """
    fields: dict[str, Any] = {}
    if more.mean is not None:
        fields["mean"] = _number(more.mean)
    if more.differences:
        fields["differences"] = [
            {"of": _first(question.choices[one]), "minus": _first(question.choices[two])}
            | _number(estimate, len(more.differences))
            for one, two, estimate in more.differences
        ]
    if more.groups:
        fields["group_differences"] = [
            {"answer": _first(question.columns[column])}
            | {"of": _first(question.rows[one]), "minus": _first(question.rows[two])}
            | _number(estimate, len(more.groups))
            for one, two, column, estimate in more.groups
        ]
    if more.rows is not None and more.columns is not None and more.independence is not None:
        margins = (("rows", question.rows, more.rows), ("columns", question.columns, more.columns))
        fields["margins"] = {name: _shares(texts, estimate) for name, texts, estimate in margins}
        fields["independence"] = dict(vars(more.independence))
    if more.present is not None:
        words = [_first(word) for word, there in zip(question.choices, more.present, strict=True) if there]
        fields |= {"present": words, "present_from": more.least, "error_rate": ERROR_RATE}
    if more.words is not None:
        fields |= words_to_json(question, more.words)
        fields |= {"present_from": more.least, "error_rate": ERROR_RATE, "cells": [list(each) for each in more.cells]}
    return fields


def more_lines(question: SurveyQuestion, more: More, words: Translation = ENGLISH) -> list[str]:
    """Return sentences with the estimates that a kind adds to its answer.

    Parameters
    ----------
    question, more
        As for `more_to_json`.
    words : Translation
        The language.
    """
    if more.words is not None:
        return _words_lines(question, more, more.words, words)
    confidence = words.number(f"{CONFIDENCE:.0%}")
    lines: list[str] = []
    if question.together:
        miss = words.number(f"{1.0 - CONFIDENCE:.0%}/{len(question.choices)}")
        lines.append(words("The intervals hold together: each at 1 - {miss} (Bonferroni)", miss=miss))
    if more.mean is not None:
        error = float(more.mean.standard_error)
        low, high = (float(end) for end in more.mean.confidence_interval(CONFIDENCE))
        numbers = map(words.number, numbers_with_error((float(more.mean.value), low, high), low, high, error))
        ends = dict(zip(("value", "low", "high"), numbers, strict=True))
        mean = f"Mean{' of those who answered' if question.optional else ''}"
        lines.append(
            words(f"{mean}: {{value}} ({{confidence}} interval {{low}} to {{high}})", confidence=confidence, **ends)
        )
    if more.differences:
        pairs = [
            words("{one} and {two}", one=words.of(question.choices[one]), two=words.of(question.choices[two]))
            for one, two, estimate in more.differences
            if excludes_zero(estimate, len(more.differences))
        ]
        fields = {"count": len(more.differences), "confidence": confidence, "pairs": ", ".join(pairs) or words("none")}
        lines.append(words("Shares that differ, all {count} pairs together at {confidence}: {pairs}", **fields))
    if more.rows is not None and more.columns is not None and more.independence is not None:
        for texts, estimate in ((question.rows, more.rows), (question.columns, more.columns)):
            lines.append("; ".join(_margin(texts, estimate, words)))
        lines.append(more.independence.sentence(words))
    if more.groups:
        lines.append(_groups(question, more, words))
    if more.present is not None:
        found = [words.of(word) for word, there in zip(question.choices, more.present, strict=True) if there]
        names = _present(found[:_NAMED], words)
        if len(found) > _NAMED:
            names = words("{names} and {count} more", names=names, count=len(found) - _NAMED)
        people = words.counted(round(more.least or 0.0), "person", "people")
        lines.append(words("{present}; a word is seen from about {people} on", present=names, people=people))
    return lines


def _present(found: list[str], words: Translation) -> str:
    return words(
        "Present, with a chance of at most {rate} that any of them was sent by nobody: {names}",
        rate=words.number(f"{ERROR_RATE:.0%}"),
        names=", ".join(found) or words("none"),
    )


def _words_lines(question: SurveyQuestion, more: More, found: FoundWords, words: Translation) -> list[str]:
    """Return sentences on which words of a dictionary are present, and which cannot be told apart."""
    texts = [words.of(choice) for choice in question.choices]
    lines = [
        words(
            "The intervals hold together, for all {count} words, whatever words share cells. A share is the smaller "
            "one of the word's two cells, which other words can raise; of a word that is not called present it says "
            "little",
            count=words.count(len(texts)),
        ),
        _present([texts[word] for word in found.present], words),
    ]
    if found.possible:
        ambiguous = [
            words("{word} (or {others})", word=texts[word], others=", ".join(texts[other] for other in rivals))
            for word, rivals in found.possible
        ]
        sentence = "Cannot be told apart from other words that share their cells: {words}"
        lines.append(words(sentence, words="; ".join(ambiguous)))
    if found.further:
        further = words.counted(found.further, "further word", "further words")
        lines.append(words("{further} of either kind are not listed", further=further))
    if more.least is None:
        lines.append(words("A word that all who answered had sent would not be seen"))
    else:
        people = words.counted(round(more.least), "person", "people")
        sentence = "A word is seen from about {people} on, and from as many more as sent other words of its cells"
        lines.append(words(sentence, people=people))
    return lines


def covers_line(answered: int, words: Translation = ENGLISH) -> str:
    """Return a sentence on the population of intervals without weighting.

    Parameters
    ----------
    answered : int
        Number of people who answered.
    words : Translation
        The language.
    """
    return words(
        "Intervals cover the people who answered ({count}): all noise is in them, sampling is not; --margins weights a "
        "table to the people for whom they stand",
        count=words.count(answered),
    )


def weighted_to_json(question: SurveyQuestion, weighted: WeightedTable) -> dict[str, Any]:
    """Return the object of a table that is weighted to public margins.

    Parameters
    ----------
    question : SurveyQuestion
        The question.
    weighted : WeightedTable
        From `weights.weigh`.
    """
    texts = (question.rows, question.columns)
    names = ("rows", "columns")
    public = iter(weighted.known)
    margins = {
        name: {
            "variable": variable,
            "shares": [{"category": _first(text), "share": each} for text, each in zip(own, next(public), strict=True)],
        }
        for name, variable, own in zip(names, weighted.variables, texts, strict=True)
        if variable is not None
    }
    free = [(name, own) for name, own, v in zip(names, texts, weighted.variables, strict=True) if v is None]
    return {
        "margins": margins,
        "estimates": _shares(question.choices, weighted.cells),
        **{name: _shares(own, weighted.sums) for name, own in free if weighted.sums is not None},
        "covers": STAND,
        "answered": weighted.answered,
        "population": weighted.population,
        "missing": weighted.missing,
    }


def weighted_lines(question: SurveyQuestion, weighted: WeightedTable | None, words: Translation = ENGLISH) -> list[str]:
    """Return sentences on a weighted table; none without weights.

    Parameters
    ----------
    question, weighted
        As for `weighted_to_json`.
    words : Translation
        The language.
    """
    if weighted is None:
        return []
    by = words(" and ").join(variable for variable in weighted.variables if variable is not None)
    texts, estimate = (question.choices, weighted.cells)
    if weighted.sums is not None:
        texts, estimate = (question.rows if weighted.variables[0] is None else question.columns), weighted.sums
    listed = "; ".join(_margin(texts, estimate, words))
    whom = [
        words(
            "These intervals cover the people for whom the answers stand: noise and sampling are in them, and they "
            "hold together"
        )
    ]
    if weighted.missing is not None and weighted.population is not None:
        counts = {"missing": words.count(weighted.missing), "population": words.count(weighted.population)}
        whom.append(words("{missing} of {population} people did not answer", **counts))
    whom.append(words("Those who did not answer are taken to be like the others of their group"))
    return [words("Weighted to the public margins of {by}: {shares}", by=by, shares=listed), ". ".join(whom)]


def _number(estimate: Estimate, many: int = 1) -> dict[str, Any]:
    """Return a value, its interval by itself and, if there are many, the one that holds together with the others'."""
    low, high = estimate.confidence_interval(CONFIDENCE)
    fields = {
        "estimate": float(estimate.value),
        "standard_error": float(estimate.standard_error),
        "confidence_interval": [float(low), float(high)],
    }
    return fields if many == 1 else fields | {"interval_together": [float(end) for end in together_of(estimate, many)]}


def together_of(estimate: Estimate, many: int) -> Any:
    """Return both ends of an interval that holds together with those of the other comparisons.

    Parameters
    ----------
    estimate : Estimate
        The estimate.
    many : int
        Number of all comparisons. Each interval misses with a ``many``-th of the error probability.
    """
    return estimate.confidence_interval(1.0 - (1.0 - CONFIDENCE) / many)


def _groups(question: SurveyQuestion, more: More, words: Translation) -> str:
    """Return a sentence on which rows differ in the share of a column, and by how much."""
    differences: list[str] = []
    for one, two, column, estimate in more.groups:
        if excludes_zero(estimate, len(more.groups)):
            ends = (float(estimate.value), *map(float, together_of(estimate, len(more.groups))))
            fields = dict(zip(("value", "low", "high"), map(words.points, ends), strict=True))
            fields |= {"one": words.of(question.rows[one]), "two": words.of(question.rows[two])}
            answer = words.of(question.columns[column])
            differences.append(words("{answer}: {one} less {two} {value} ({low} to {high})", answer=answer, **fields))
    return words(
        "Rows that differ in a column's share, all {count} comparisons together at {confidence}: {pairs}",
        count=len(more.groups),
        confidence=words.number(f"{CONFIDENCE:.0%}"),
        pairs="; ".join(differences) or words("none"),
    )


def _shares(texts: tuple[Text, ...], estimate: Estimate) -> list[dict[str, Any]]:
    low, high = estimate.confidence_interval(CONFIDENCE, simultaneous=True)
    columns = np.column_stack([estimate.value, estimate.standard_error, low, high]).tolist()
    return [
        {"category": _first(text), "frequency": value, "standard_error": error, "confidence_interval": [least, most]}
        for text, (value, error, least, most) in zip(texts, columns, strict=True)
    ]


def _margin(texts: tuple[Text, ...], estimate: Estimate, words: Translation) -> list[str]:
    rows = [
        AnswerLine(words.of(text), each["frequency"], each["standard_error"], *each["confidence_interval"])
        for text, each in zip(texts, _shares(texts, estimate), strict=True)
    ]
    return [f"{row.name} {words.share(row.value)} ({interval_words(row, words)})" for row in rows]


def excludes_zero(estimate: Estimate, many: int) -> bool:
    """Return whether 0 lies outside the interval of a difference that holds together with ``many`` - 1 others."""
    low, high = together_of(estimate, many)
    return float(low) > 0.0 or float(high) < 0.0


def _first(text: Text) -> str:
    return next(iter(text.values()))
