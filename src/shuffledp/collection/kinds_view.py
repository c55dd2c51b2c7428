"""What a kind of question tells besides its shares, as JSON and in sentences."""

from __future__ import annotations

from typing import Any

import numpy as np

from shuffledp.collection.asked import Question, Text
from shuffledp.collection.kinds import ERROR_RATE, More
from shuffledp.questions.estimate import Estimate
from shuffledp.questions.view import CONFIDENCE, Entry
from shuffledp.report.answer import interval_words
from shuffledp.report.wording import counted, share, with_error

TOGETHER = ("table", "list")
"""Kinds whose intervals hold together: each at 1 - 5 %/(number of cells), by Bonferroni's inequality."""
_NAMED = 50
"""Present words that are listed in a sentence."""


def more_to_json(question: Question, more: More) -> dict[str, Any]:
    """Build the keys that a kind adds to its answer.

    Parameters
    ----------
    question : Question
        What was asked.
    more : More
        What was estimated besides the shares.
    """
    found: dict[str, Any] = {}
    if more.mean is not None:
        found["mean"] = _number(more.mean)
    if more.differences:
        found["differences"] = [
            {"of": _first(question.choices[one]), "minus": _first(question.choices[two])} | _number(estimate)
            for one, two, estimate in more.differences
        ]
    if more.rows is not None and more.columns is not None and more.independence is not None:
        margins = (("rows", question.rows, more.rows), ("columns", question.columns, more.columns))
        found["margins"] = {name: _shares(texts, estimate) for name, texts, estimate in margins}
        found["independence"] = dict(vars(more.independence))
    if more.present is not None:
        words = [_first(word) for word, there in zip(question.choices, more.present, strict=True) if there]
        found |= {"present": words, "present_from": more.least, "error_rate": ERROR_RATE}
    return found


def more_lines(question: Question, more: More) -> list[str]:
    """Say the same in sentences.

    Parameters
    ----------
    question, more
        As for `more_to_json`.
    """
    lines: list[str] = []
    if question.kind in TOGETHER:
        lines.append(
            f"The intervals hold together: each at 1 - {1.0 - CONFIDENCE:.0%}/{len(question.choices)} (Bonferroni)"
        )
    if more.mean is not None:
        error = float(more.mean.standard_error)
        low, high = (float(end) for end in more.mean.confidence_interval(CONFIDENCE))
        value, *ends = (with_error(x, error) for x in (float(more.mean.value), low, high))
        among = " of those who answered" if question.optional else ""
        lines.append(f"Mean{among}: {value} ({CONFIDENCE:.0%} interval {ends[0]} to {ends[1]})")
    apart = [
        f"{_first(question.choices[one])} and {_first(question.choices[two])}"
        for one, two, estimate in more.differences
        if _excludes_zero(estimate)
    ]
    if more.differences:
        told = ", ".join(apart) or "none"
        lines.append(f"Shares that differ, each two at {CONFIDENCE:.0%} by themselves: {told}")
    if more.rows is not None and more.columns is not None and more.independence is not None:
        for texts, estimate in ((question.rows, more.rows), (question.columns, more.columns)):
            lines.append("; ".join(_margin(texts, estimate)))
        p = more.independence.p_value
        lines.append(
            f"Rows and columns: p = {p:.3g} for independence, with all noise counted ({more.independence.tables} "
            "simulated tables)"
        )
    if more.present is not None:
        words = [_first(word) for word, there in zip(question.choices, more.present, strict=True) if there]
        more_words = f" and {len(words) - _NAMED} more" if len(words) > _NAMED else ""
        lines.append(
            f"Present, with a chance of at most {ERROR_RATE:.0%} that any of them was sent by nobody: "
            f"{', '.join(words[:_NAMED]) or 'none'}{more_words}; a word is seen from about "
            f"{counted(round(more.least), 'person', 'people')} on"
        )
    return lines


def _number(estimate: Estimate) -> dict[str, Any]:
    low, high = estimate.confidence_interval(CONFIDENCE)
    return {
        "estimate": float(estimate.value),
        "standard_error": float(estimate.standard_error),
        "confidence_interval": [float(low), float(high)],
    }


def _shares(texts: tuple[Text, ...], estimate: Estimate) -> list[dict[str, Any]]:
    low, high = estimate.confidence_interval(CONFIDENCE, simultaneous=True)
    columns = np.column_stack([estimate.value, estimate.standard_error, low, high]).tolist()
    return [
        {"category": _first(text), "frequency": value, "standard_error": error, "confidence_interval": [least, most]}
        for text, (value, error, least, most) in zip(texts, columns, strict=True)
    ]


def _margin(texts: tuple[Text, ...], estimate: Estimate) -> list[str]:
    rows = [
        Entry(each["category"], each["frequency"], each["standard_error"], *each["confidence_interval"])
        for each in _shares(texts, estimate)
    ]
    return [f"{row.name} {share(row.value)} ({interval_words(row)})" for row in rows]


def _excludes_zero(estimate: Estimate) -> bool:
    low, high = estimate.confidence_interval(CONFIDENCE)
    return float(low) > 0.0 or float(high) < 0.0


def _first(text: Text) -> str:
    return next(iter(text.values()))
