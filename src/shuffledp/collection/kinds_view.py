"""The estimates that a kind of question has besides its shares, as JSON and in sentences."""

from __future__ import annotations

from typing import Any

import numpy as np

from shuffledp.collection.asked import SurveyQuestion, Text
from shuffledp.collection.dictionary import FoundWords, words_to_json
from shuffledp.collection.kinds import ERROR_RATE, More
from shuffledp.collection.weights import WeightedTable
from shuffledp.questions.estimate import Estimate
from shuffledp.questions.question import CONFIDENCE, AnswerLine
from shuffledp.report.answer import interval_words
from shuffledp.report.wording import count, counted, numbers_with_error, points, share

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


def more_lines(question: SurveyQuestion, more: More) -> list[str]:
    """Return sentences with the estimates that a kind adds to its answer.

    Parameters
    ----------
    question, more
        As for `more_to_json`.
    """
    if more.words is not None:
        return _words_lines(question, more, more.words)
    lines: list[str] = []
    if question.together:
        lines.append(
            f"The intervals hold together: each at 1 - {1.0 - CONFIDENCE:.0%}/{len(question.choices)} (Bonferroni)"
        )
    if more.mean is not None:
        error = float(more.mean.standard_error)
        low, high = (float(end) for end in more.mean.confidence_interval(CONFIDENCE))
        value, *ends = numbers_with_error((float(more.mean.value), low, high), low, high, error)
        among = " of those who answered" if question.optional else ""
        lines.append(f"Mean{among}: {value} ({CONFIDENCE:.0%} interval {ends[0]} to {ends[1]})")
    apart = [
        f"{_first(question.choices[one])} and {_first(question.choices[two])}"
        for one, two, estimate in more.differences
        if excludes_zero(estimate, len(more.differences))
    ]
    if more.differences:
        differing = ", ".join(apart) or "none"
        lines.append(f"Shares that differ, all {len(more.differences)} pairs together at {CONFIDENCE:.0%}: {differing}")
    if more.rows is not None and more.columns is not None and more.independence is not None:
        for texts, estimate in ((question.rows, more.rows), (question.columns, more.columns)):
            lines.append("; ".join(_margin(texts, estimate)))
        lines.append(more.independence.words)
    if more.groups:
        lines.append(_groups(question, more))
    if more.present is not None:
        words = [_first(word) for word, there in zip(question.choices, more.present, strict=True) if there]
        more_words = f" and {len(words) - _NAMED} more" if len(words) > _NAMED else ""
        lines.append(
            f"Present, with a chance of at most {ERROR_RATE:.0%} that any of them was sent by nobody: "
            f"{', '.join(words[:_NAMED]) or 'none'}{more_words}; a word is seen from about "
            f"{counted(round(more.least or 0.0), 'person', 'people')} on"
        )
    return lines


def _words_lines(question: SurveyQuestion, more: More, words: FoundWords) -> list[str]:
    """Return sentences on which words of a dictionary are present, and which cannot be told apart."""
    texts = [_first(choice) for choice in question.choices]
    lines = [
        f"The intervals hold together, for all {count(len(texts))} words, whatever words share cells. A share is the "
        "smaller one of the word's two cells, which other words can raise; of a word that is not called present it "
        "says little",
        f"Present, with a chance of at most {ERROR_RATE:.0%} that any of them was sent by nobody: "
        f"{', '.join(texts[word] for word in words.present) or 'none'}",
    ]
    if words.possible:
        ambiguous = "; ".join(
            f"{texts[word]} (or {', '.join(texts[other] for other in rivals)})" for word, rivals in words.possible
        )
        lines.append(f"Cannot be told apart from other words that share their cells: {ambiguous}")
    if words.further:
        lines.append(f"{counted(words.further, 'further word', 'further words')} of either kind are not listed")
    if more.least is None:
        lines.append("A word that all who answered had sent would not be seen")
    else:
        people = counted(round(more.least), "person", "people")
        lines.append(f"A word is seen from about {people} on, and from as many more as sent other words of its cells")
    return lines


def covers_line(answered: int) -> str:
    """Return a sentence on the population of intervals without weighting.

    Parameters
    ----------
    answered : int
        Number of people who answered.
    """
    return (
        f"Intervals cover {COVERS} ({count(answered)}): all noise is in them, sampling is not; --margins weights a "
        "table to the people for whom they stand"
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


def weighted_lines(question: SurveyQuestion, weighted: WeightedTable | None) -> list[str]:
    """Return sentences on a weighted table; none without weights.

    Parameters
    ----------
    question, weighted
        As for `weighted_to_json`.
    """
    if weighted is None:
        return []
    by = " and ".join(variable for variable in weighted.variables if variable is not None)
    texts = question.rows if weighted.variables[0] is None else question.columns
    listed = _margin(question.choices, weighted.cells) if weighted.sums is None else _margin(texts, weighted.sums)
    sentence = f"Weighted to the public margins of {by}: {'; '.join(listed)}"
    whom = f"These intervals cover {STAND}: noise and sampling are in them, and they hold together"
    if weighted.missing is not None and weighted.population is not None:
        whom += f". {count(weighted.missing)} of {count(weighted.population)} people did not answer"
    return [sentence, f"{whom}. Those who did not answer are taken to be like the others of their group"]


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


def _groups(question: SurveyQuestion, more: More) -> str:
    """Return a sentence on which rows differ in the share of a column, and by how much."""
    differences: list[str] = []
    for one, two, column, estimate in more.groups:
        if excludes_zero(estimate, len(more.groups)):
            low, high = (points(float(end)) for end in together_of(estimate, len(more.groups)))
            names = (_first(question.columns[column]), _first(question.rows[one]), _first(question.rows[two]))
            differences.append(
                f"{names[0]}: {names[1]} less {names[2]} {points(float(estimate.value))} ({low} to {high})"
            )
    return (
        f"Rows that differ in a column's share, all {len(more.groups)} comparisons together at {CONFIDENCE:.0%}: "
        f"{'; '.join(differences) or 'none'}"
    )


def _shares(texts: tuple[Text, ...], estimate: Estimate) -> list[dict[str, Any]]:
    low, high = estimate.confidence_interval(CONFIDENCE, simultaneous=True)
    columns = np.column_stack([estimate.value, estimate.standard_error, low, high]).tolist()
    return [
        {"category": _first(text), "frequency": value, "standard_error": error, "confidence_interval": [least, most]}
        for text, (value, error, least, most) in zip(texts, columns, strict=True)
    ]


def _margin(texts: tuple[Text, ...], estimate: Estimate) -> list[str]:
    rows = [
        AnswerLine(each["category"], each["frequency"], each["standard_error"], *each["confidence_interval"])
        for each in _shares(texts, estimate)
    ]
    return [f"{row.name} {share(row.value)} ({interval_words(row)})" for row in rows]


def excludes_zero(estimate: Estimate, many: int) -> bool:
    """Return whether 0 lies outside the interval of a difference that holds together with ``many`` - 1 others."""
    low, high = together_of(estimate, many)
    return float(low) > 0.0 or float(high) < 0.0


def _first(text: Text) -> str:
    return next(iter(text.values()))
