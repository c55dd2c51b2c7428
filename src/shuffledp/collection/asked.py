"""What a task asks, and at which levels: questions with their dummies, and levels with their draws."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Literal

from shuffledp.collection.draw import WHOLE, Family, family_named, most_implied
from shuffledp.collection.fields import FILLERS, Fields, Text, visible
from shuffledp.errors import InvalidInput, shown

MOST_CHOICES = 1000
MOST_STEPS = 1 << 31
LARGEST_EPSILON0 = 30.0
MOST_DUMMIES = 10**7
MOST_PEOPLE = 10**9


@dataclass(frozen=True)
class Dummies:
    """The reports of nobody that the shuffler adds to one question.

    Parameters
    ----------
    law : {"uniform", "laplace"}
        "uniform": each is uniform on all reports. "laplace": reports are bits, and the number of ones among them is D
        with P(D <= j) = draw[j] / 2^64 for j < count, a symmetric law.
    count : int
        How many, at least 0.
    draw : tuple of int
        The integers of "laplace", `count` of them, not decreasing; none for "uniform".
    """

    law: Literal["uniform", "laplace"]
    count: int
    draw: tuple[int, ...] = ()


@dataclass(frozen=True)
class Question:
    """One question of a task.

    Parameters
    ----------
    text : Text
        The question.
    kind : {"choice", "number"}
        What is answered.
    choices : tuple of Text
        The answers of a choice, in the order of their codes 0..k-1; empty for a number.
    low, high, step : float
        The answers of a number are low, low + step, ..., high; 0 for a choice.
    family : Family
        The randomizer: ``rr``, ``krr:K``, ``hadamard:K`` for a choice, ``one-bit`` for a number.
    dummies : Dummies
        What the shuffler adds.
    """

    text: Text
    kind: Literal["choice", "number"]
    choices: tuple[Text, ...]
    low: float
    high: float
    step: float
    family: Family
    dummies: Dummies

    @property
    def answers(self) -> int:
        """How many different answers there are."""
        return self.family.records

    @property
    def report_bytes(self) -> int:
        """Bytes of a report before it is sealed."""
        return self.family.report_bytes


@dataclass(frozen=True)
class Level:
    """One of the privacy levels among which a person chooses.

    Parameters
    ----------
    name : Text
        Such as "careful".
    epsilon0 : float
        Local budget of each question, nats.
    draw : tuple of int
        For each question the integer K: with probability K/2^64 the report is the record's own.
    planned : int
        People expected at this level.
    promise : float
        Central epsilon over all questions that the floor must not exceed, at the task's delta.
    crowd : float
        Central epsilon if as many people as planned answer and at least 95 % of the others are honest.
    """

    name: Text
    epsilon0: float
    draw: tuple[int, ...]
    planned: int
    promise: float
    crowd: float


@dataclass(frozen=True)
class OperatedBy:
    """Who runs what, in the words of the organizer."""

    analyzer: str
    shuffler: str
    page: str

    @property
    def one_hand(self) -> bool:
        """Whether analyzer and shuffler are run by the same."""
        return same_hand(self.analyzer, self.shuffler)


def same_hand(one: str, *others: str) -> bool:
    """Tell whether a name reads like one of the others: only letters and digits count, in their plainest form.

    Capitals, spaces, dots and what nobody sees (a zero-width space, a variation selector) do not make another hand. The
    survey page folds names alike (page/promise.js).
    """
    return _read(one) in {_read(other) for other in others}


def _read(name: str) -> str:
    plain = unicodedata.normalize("NFKC", name).upper().lower()
    return "".join(letter for letter in plain if unicodedata.category(letter)[0] in "LN" and letter not in FILLERS)


def read_question(fields: Fields, languages: frozenset[str]) -> Question:
    """Read one question of a draft; its texts must come in exactly these languages."""
    text = fields.text("text", languages)
    low = high = step = 0.0
    choices: tuple[Text, ...] = ()
    if fields.word("kind", "choice", "number") == "choice":
        kind, choices = "choice", fields.texts("choices", 2, MOST_CHOICES, languages)
        for language in languages:
            if len({visible(choice[language]) for choice in choices}) < len(choices):
                raise InvalidInput(f"{fields.what}: two choices read the same in language {shown(language)}")
        records = len(choices)
    else:
        kind, (low, high, step) = "number", (fields.number(key) for key in ("low", "high", "step"))
        records = _steps(fields, low, high, step) + 1
    family = family_named(fields.line("family"), kind, records, fields.what)
    fields.whole("report_bytes", family.report_bytes, family.report_bytes)
    dummies = fields.object("dummies", lambda entry: _dummies(entry, family))
    return Question(text, kind, choices, low, high, step, family, dummies)


def _steps(fields: Fields, low: float, high: float, step: float) -> int:
    """Count the steps of a number's range: exactly whole, and the same in JavaScript's arithmetic."""
    exact = [Fraction(repr(value)) for value in (low, high, step)]
    if not (low < high and step > 0.0):
        raise InvalidInput(f"{fields.what}: a number needs low < high and a positive step; got {low}, {high}, {step}")
    count = (exact[1] - exact[0]) / exact[2]
    if count.denominator != 1 or not 1 <= count <= MOST_STEPS or round((high - low) / step) != count:
        raise InvalidInput(
            f"{fields.what}: from {low} to {high} there must be a whole number of steps, at most 2^31; got step {step}"
        )
    return int(count)


def _dummies(fields: Fields, family: Family) -> Dummies:
    count = fields.whole("count", 0, MOST_DUMMIES)
    if fields.word("law", "uniform", "laplace") == "uniform":
        return Dummies("uniform", count)
    if family.reports != 2:
        raise InvalidInput(f"{fields.what}: the law laplace is for reports of one bit; {family.name} needs uniform")
    draw = fields.words64("draw", count, WHOLE)
    steps = [two - one for one, two in pairwise((0, *draw, WHOLE))]
    if any(step < 0 for step in steps) or steps != steps[::-1]:
        raise InvalidInput(
            f"{fields.what}: the integers of the law laplace must not decrease, and its chances be symmetric"
        )
    return Dummies("laplace", count, draw)


def read_level(fields: Fields, languages: frozenset[str], questions: tuple[Question, ...]) -> Level:
    """Read one level of a draft; its integers must not imply more than its budget."""
    name = fields.text("name", languages)
    epsilon0 = fields.number("epsilon0", 1e-3, LARGEST_EPSILON0)
    draw = fields.words64("draw", len(questions))
    for question, keep in zip(questions, draw, strict=True):
        if keep > most_implied(question.family, epsilon0):
            raise InvalidInput(
                f"{fields.what}: the integer {keep} of {question.family.name} implies a budget above epsilon0 = "
                f"{epsilon0:g}; this task asks for more than it says, do not answer it"
            )
    planned = fields.whole("planned", 0, MOST_PEOPLE)
    promise = fields.number("promise", 1e-6, 1e3)
    return Level(name, epsilon0, draw, planned, promise, fields.number("crowd", 0.0, promise))
