"""The words of a survey's question: written in the survey, or one a line in a file beside it."""

from __future__ import annotations

import unicodedata
from fractions import Fraction
from pathlib import Path
from typing import Any

from shuffledp.collection.asked import MOST_CHOICES, WORD_CELLS, check_dictionary
from shuffledp.errors import InvalidInput, shown
from shuffledp.whole_files import read_bytes

ANOTHER_WORD = {"en": "another word", "de": "ein anderes Wort", "fr": "un autre mot"}
"""Default words of the answer of a dictionary for people whose word is not in it, by language."""
LONGEST_WORDS = 1 << 20


def words_of_survey(given: str, what: str, folder: Path | None) -> list[str]:
    """Return the words of a question that names a file with one word a line.

    Parameters
    ----------
    given : str
        Name of the file.
    what : str
        The question, for messages.
    folder : Path or None
        The folder of the survey.

    Raises
    ------
    InvalidInput
        If the file cannot be read, is no UTF-8, or has an empty line between words.
    """
    if folder is None:
        raise InvalidInput(f"{what}: words names the file {shown(given)}; only a survey in a file can name another one")
    data = read_bytes(folder / given, "the words", LONGEST_WORDS)
    try:
        lines = data.decode("utf-8-sig").rstrip("\r\n").split("\n")
    except UnicodeDecodeError:
        raise InvalidInput(f"{what}: the words in {given} are not UTF-8; save the file as UTF-8") from None
    words = [line.strip() for line in lines]
    if "" in words:
        raise InvalidInput(f"{what}: line {words.index('') + 1:,} of {given} is empty; write one word a line")
    return words


def is_dictionary(given: object) -> bool:
    """Return whether so many words are asked as a dictionary, in two columns of cells, and not as a list."""
    return isinstance(given, list) and len(given) > MOST_CHOICES  # pyright: ignore[reportUnknownArgumentType]


def dictionary_of(words: list[Any], what: str, another: object) -> dict[str, Any]:
    """Return the keys of a dictionary in a draft.

    Parameters
    ----------
    words : list
        The words, each a text that is the same in every language.
    what : str
        The question, for messages.
    another : object
        Words by language for people whose word is not in it.

    Raises
    ------
    InvalidInput
        As for `asked.check_dictionary`.
    """
    for place, word in enumerate(words, start=1):
        if not isinstance(word, str):
            raise InvalidInput(
                f"{what}, word {place:,}: of more than {MOST_CHOICES:,} words each is one text, the same in every "
                f"language; got {shown(word)}"
            )
    normal = [unicodedata.normalize("NFC", word).strip() for word in words]
    return {"kind": "dictionary", "words": "\n".join(check_dictionary(normal, what)), "more": [another]}


def columns_of(question: dict[str, Any]) -> int:
    """Return the number of columns of a survey's question: one an option, two of a dictionary, else one."""
    return 2 if question["kind"] == "dictionary" else len(question.get("options", ("",)))


def records_of(question: dict[str, Any]) -> int:
    """Return the number of records of each column of a survey's question."""
    if question["kind"] == "dictionary":
        return WORD_CELLS
    if question["kind"] == "table":
        return len(question["rows"]) * len(question["columns"])
    return len(question.get("choices") or question.get("words") or (0, 1))


def in_languages(given: object, asked: dict[str, Any], what: str, key: str, said: str) -> dict[str, Any]:
    """Return words in the languages of a question, refused if they lack one.

    Parameters
    ----------
    given : object
        The words by language.
    asked : dict
        The question, with its text.
    what : str
        The question, for messages.
    key, said : str
        The key of the survey that would state the words, and the words in English.
    """
    languages = asked["text"] if isinstance(asked["text"], dict) else {}
    known = given if isinstance(given, dict) else {}
    if lacking := [name for name in languages if name not in known]:
        example = ", ".join(f'{name} = "…"' for name in languages)
        why = "it is optional" if key == "no_answer" else "it has a dictionary"
        raise InvalidInput(
            f"{what}: {why}, and nothing says “{said}” in {', '.join(lacking)}; write {key} = {{{example}}} above the "
            "questions"
        )
    return {name: known[name] for name in languages}


def scale_for(low: float, high: float) -> str:
    """Return the keys of a scale with five steps from low to high, as a survey writes them.

    Parameters
    ----------
    low, high : float
        Ends of the range of a number.
    """
    low_end, high_end = Fraction(repr(low)), Fraction(repr(high))
    values = [f"{float(low_end + (high_end - low_end) * step / 4):.15g}" for step in range(5)]
    texts = ", ".join(f'"{value}"' for value in values)
    return f"choices = [{texts}] and values = [{', '.join(values)}]"
