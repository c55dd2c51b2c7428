"""The result of a collection in the words of the survey page, in one language: what a release page says to people."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from shuffledp.collection.analyzer import Opened
from shuffledp.collection.asked import Question
from shuffledp.collection.kinds_view import TOGETHER
from shuffledp.collection.promised import in_language
from shuffledp.collection.survey_page import LANGUAGES
from shuffledp.questions.view import CONFIDENCE
from shuffledp.releases.release import Release
from shuffledp.report.wording import with_error


def results_in_words(opened: Opened) -> list[dict[str, Any]]:
    """Say the result in every language of the survey that the survey page speaks.

    Parameters
    ----------
    opened : Opened
        A batch, opened.

    Returns
    -------
    list of dict
        Of each language its name, and title, sentences and questions with their lines; empty for a survey in English
        alone, which the rest of the page serves.
    """
    spoken = [name for name in LANGUAGES if name in opened.batch.task.draft.title]
    return [] if spoken in ([], ["en"]) else [_in(opened, language) for language in spoken]


def _in(opened: Opened, language: str) -> dict[str, Any]:
    draft, words = opened.batch.task.draft, _words(language)
    people = f"{opened.batch.manifest.n:,}".replace(",", "," if language == "en" else "\N{NARROW NO-BREAK SPACE}")
    return {
        "language": language,
        "name": words["name"],
        "title": in_language(draft.title, language),
        "people": words["resultFrom"].format(count=people),
        "questions": [
            {
                "text": in_language(question.text, language),
                "lines": _lines(question, release, more.present, words, language),
            }
            for question, release, more in zip(draft.questions, opened.releases, opened.more, strict=True)
        ],
        "sure": words["resultSure"].format(confidence=round(100 * CONFIDENCE)),
        "kept": words["resultKept" if opened.promise_kept else "resultNotKept"],
    }


def _lines(
    question: Question, release: Release, present: Sequence[bool] | None, words: dict[str, str], language: str
) -> list[str]:
    """Return one line an answer, of a list those words that are present, or one line for a number."""
    together = question.kind in TOGETHER
    low, high = release.confidence_interval(CONFIDENCE, simultaneous=together)
    if question.kind == "number":
        ends = np.clip([float(release.estimate), float(low), float(high)], question.low, question.high)
        shown = [with_error(float(value), float(release.standard_error)) for value in ends]
        value, least, most = (text if language == "en" else text.replace(".", ",") for text in shown)
        return [words["resultNumber"].format(value=value, low=least, high=most)]
    shares = np.clip(np.column_stack((release.estimate, low, high)), 0.0, 1.0)
    listed = range(len(shares)) if present is None else [place for place, there in enumerate(present) if there]
    return [
        f"{in_language(question.choices[place], language)}: {_share(words, shares[place].tolist())}" for place in listed
    ]


def _share(words: dict[str, str], numbers: list[float]) -> str:
    """Say a share with its interval, in whole percent as the survey page does."""
    share, low, high = (f"{100 * number:.0f}" for number in numbers)
    return words["resultChoice"].format(share=share, low=low, high=high)


@cache
def _words(language: str) -> dict[str, str]:
    """Read the words of the survey page in one language."""
    return json.loads((files("shuffledp.collection") / "page" / f"{language}.json").read_text(encoding="utf-8"))
