"""The questions of a task with their dummies, and its privacy levels with their drawing probabilities."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal, get_args

from shuffledp.collection.draw import WHOLE, Family, family_named, most_implied
from shuffledp.collection.fields import FILLERS, Fields, Text, visible
from shuffledp.dummies import LARGEST_CENTRE, MOST_ANSWERS
from shuffledp.errors import InvalidInput, shown, whole_number
from shuffledp.randomizers.categorical import MOST_CELLS

MOST_CHOICES = 1000
MOST_OPTIONS = 32
"""Largest number of options of a question that asks to check any of them."""
MOST_SCALE = 200
"""Largest number of steps, of a common size, between the values of a scale."""
MOST_COLUMNS = 64
"""Largest number of columns of a task, over all its questions."""
WORD_CELLS = 1024
"""Number of cells into which the words of a dictionary fall, in either of its two columns."""
MOST_WORDS = 20_000
"""Largest number of words of a dictionary."""
LONGEST_WORD = 100
"""Largest number of letters of a word of a dictionary."""
MOST_WORD_BYTES = 200_000
"""Largest number of bytes of all words of a dictionary, which stand in the signed task."""
MOST_STEPS = 1 << 31
LARGEST_EPSILON0 = 30.0
MOST_DUMMIES = 10**7
MOST_PEOPLE = 10**9


@dataclass(frozen=True)
class StatedDummies:
    """The reports that belong to nobody and that the shuffler adds to each column of one question.

    Parameters
    ----------
    law : {"uniform", "laplace", "ball", "normal"}
        "uniform": each is uniform on all reports. "laplace": reports are bits, and the number of ones among them is D
        with P(D <= j) = draw[j] / 2^64 for j < count, a symmetric law. "ball": this column's part of the joint law of
        all columns (docs/theorems/ball.md): with probability draw[R] / 2^64 the radius is R, and the numbers of dummies
        of the cells are a uniform point of the ball of radius R around equal numbers. "normal": cells are independent,
        given their total, and a cell at distance t from h = (length of draw) - 1 has the weight draw[t], for t up to h
        (docs/theorems/normal.md).
    count : int
        Number of dummies in each column, at least 0.
    draw : tuple of int
        The integers of "laplace", `count` of them, not decreasing; the weights of the radii of "ball", or of a cell of
        "normal"; none for "uniform".
    """

    law: Literal["uniform", "laplace", "ball", "normal"]
    count: int
    draw: tuple[int, ...] = ()


Kind = Literal["choice", "number", "scale", "several", "table", "list", "dictionary"]
"""The kind of an answer.

One of several choices; a number; a step of a scale, each with a value; any of several options; one cell of a table; one
of many known words; one of more than 1,000 known words, or another one. A task of version 1 may use the first two only.
"""


TOGETHER = ("table", "list", "dictionary")
"""Kinds whose intervals hold together: each has the level 1 - 5 %/(number of cells), by Bonferroni's inequality."""


def cells_of_word(index: int) -> tuple[int, int]:
    """Return the cells in which a word of a dictionary is reported, one in each of its two columns.

    The map is public and fixed, in whole numbers. Two words share at most one cell: if i and j share the first one,
    they differ by a multiple of 1,024 below 2^20, and so do not share the second.

    Parameters
    ----------
    index : int
        Index of the word, from 0 to 2^20 - 1.

    Examples
    --------
    >>> cells_of_word(5), cells_of_word(1029), cells_of_word(2052)
    ((5, 5), (5, 6), (4, 6))
    """
    return index % WORD_CELLS, (index + index // WORD_CELLS) % WORD_CELLS


def either_cell(share: Fraction) -> Fraction:
    """Return the probability that at least one of a word's two reports is its own cell, from that of one of them."""
    return 1 - (1 - share) ** 2


@dataclass(frozen=True)
class SurveyQuestion:
    """One question of a task.

    Parameters
    ----------
    text : Text
        The question.
    kind : Kind
        Kind of its answer.
    choices : tuple of Text
        The answers in the order of their codes 0..k-1: choices, steps, options, words, or the cells of a table row by
        row; of a dictionary its words, "another word", and "no answer" if it is optional; empty for a number.
    low, high, step : float
        The answers of a number are low, low + step, ..., high; 0 for other kinds.
    family : Family
        The randomizer: ``rr``, ``krr:K`` or ``hadamard:K``; of each option ``rr``; of each column of a dictionary
        ``krr:1024``; of a number ``one-bit``, or from version 2 on ``bits:B``.
    dummies : StatedDummies
        The dummies that the shuffler adds to each of its columns.
    values : tuple of float
        Values of the steps of a scale, one less than `choices` where it is optional; empty for other kinds.
    rows, columns : tuple of Text
        Headings of a table; empty for other kinds.
    optional : bool
        Whether the last choice (of a table the last row, and the last column) says "no answer": it is reported like
        every other answer, so a report does not show whether the question was answered.
    explanation : Text or None
        A text below the question.
    random_order : bool
        Whether the answers are shown in an order that is drawn for each person; what is sent does not depend on it.
    """

    text: Text
    kind: Kind
    choices: tuple[Text, ...]
    low: float
    high: float
    step: float
    family: Family
    dummies: StatedDummies
    values: tuple[float, ...] = ()
    rows: tuple[Text, ...] = ()
    columns: tuple[Text, ...] = ()
    optional: bool = False
    explanation: Text | None = None
    random_order: bool = False

    @property
    def answers(self) -> int:
        """Number of different answers; for options, one for each subset of them."""
        if self.kind == "dictionary":
            return len(self.choices)
        return 2 ** len(self.choices) if self.kind == "several" else self.family.records

    @property
    def width(self) -> int:
        """Number of columns of its reports: one for each option, two of a dictionary, else one."""
        return len(self.choices) if self.kind == "several" else 2 if self.kind == "dictionary" else 1

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows and of columns of a table; empty for other kinds."""
        return (len(self.rows), len(self.columns)) if self.kind == "table" else ()

    @property
    def together(self) -> bool:
        """Whether the printed intervals of its answers hold together."""
        return self.kind in TOGETHER

    def true_share(self, keep: int) -> Fraction:
        """Return the probability that what is sent is the true answer (`Family.true_share`), or either of its cells.

        Parameters
        ----------
        keep : int
            K of its level, as for `Family.true_share`.
        """
        share = self.family.true_share(keep)
        return either_cell(share) if self.kind == "dictionary" else share

    @property
    def report_bytes(self) -> int:
        """Number of bytes of a piece of a report before it is sealed."""
        return self.family.report_bytes

    def records(self, answer: int) -> tuple[int, ...]:
        """Return the record for each column: of a dictionary two cells; for options, bit i says if i is checked.

        Raises
        ------
        InvalidInput
            If the code is not that of an answer to the question.
        """
        answer = whole_number(answer, "an answer must be a whole number", 0, self.answers - 1)
        if self.kind == "dictionary":
            return cells_of_word(answer)
        return tuple(answer >> place & 1 for place in range(self.width)) if self.kind == "several" else (answer,)


@dataclass(frozen=True)
class Column:
    """One column of the batch: rows that are permuted together.

    Parameters
    ----------
    question : int
        Index of its question, from 0.
    family : Family
        The randomizer.
    dummies : StatedDummies
        The dummies that the shuffler adds.
    """

    question: int
    family: Family
    dummies: StatedDummies

    def rows(self, people: int) -> int:
        """Return the number of rows of a column, from ``people`` people and the dummies."""
        return people * self.family.pieces + self.dummies.count


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
        Number of people expected at this level.
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
    """The organisations that run analyzer, shuffler and page, as the organizer states them."""

    analyzer: str
    shuffler: str
    page: str

    @property
    def one_hand(self) -> bool:
        """Whether the same organisation runs analyzer and shuffler."""
        return same_hand(self.analyzer, self.shuffler)


def same_hand(one: str, *others: str) -> bool:
    """Return whether a name equals one of the others when only letters and digits, in plain form, are compared.

    Capitals, spaces, dots and invisible characters (a zero-width space, a variation selector) do not make another name.
    The survey page compares names in the same way (page/promise.js).
    """
    return _read(one) in {_read(other) for other in others}


def _read(name: str) -> str:
    plain = unicodedata.normalize("NFKC", name).upper().lower()
    return "".join(letter for letter in plain if unicodedata.category(letter)[0] in "LN" and letter not in FILLERS)


def read_question(fields: Fields, languages: frozenset[str], version: int = 1) -> SurveyQuestion:
    """Read one question of a draft; its texts must have exactly these languages.

    From version 2 on its dummies are read with the task's.
    """
    text = fields.text("text", languages)
    fields.what = f"{fields.what}, {shown(next(iter(text.values())))}"
    kind = _kind(fields.word("kind", *_KINDS[version]))
    additions = _read_additions(fields, kind, languages) if version > 1 else {}
    parts = _READERS[kind](fields, languages, bool(additions.get("optional")))
    if kind == "number":
        records = _steps(fields, parts["low"], parts["high"], parts["step"]) + 1
    else:
        records = {"several": 2, "dictionary": WORD_CELLS}.get(kind, len(parts["choices"]))
    family = family_named(fields.line("family"), kind, records, fields.what, version)
    fields.whole("report_bytes", family.report_bytes, family.report_bytes)
    dummies = StatedDummies("uniform", 0)
    if version == 1:
        dummies = fields.object("dummies", lambda entry: _dummies(entry, family))
    attributes: dict[str, Any] = {"text": text, "kind": kind, "choices": (), **_NO_NUMBER, **parts, **additions}
    return SurveyQuestion(**attributes, family=family, dummies=dummies)


def _read_additions(fields: Fields, kind: Kind, languages: frozenset[str]) -> dict[str, Any]:
    """Read the fields that a question may have from version 2 on, none of which changes a byte of a report."""
    optional = fields.has("optional") and fields.flag("optional")
    if optional and kind == "number":
        raise InvalidInput(f"{fields.what}: a number cannot be optional; a scale can be")
    random_order = read_order(fields)
    if random_order:
        check_order(kind, fields.what)
    return {
        "optional": optional,
        "explanation": fields.text("explanation", languages) if fields.has("explanation") else None,
        "random_order": random_order,
    }


def read_order(fields: Fields) -> bool:
    """Return whether ``order`` says that questions or answers are shown in an order drawn for each person."""
    if not fields.has("order"):
        return False
    value = fields.take("order")
    if value != "random":
        fields.refuse("order", value, '"random", or be left out: then all stand in the order of the file')
    return True


_STAY = {
    "scale": "the steps of a scale stay in their order",
    "number": "a number has no answers to be put in an order",
    "list": "words stand in a menu, in which people look them up",
    "dictionary": "words are looked up, and their order determines their cells",
}
"""Why the answers of these kinds are never shown in a random order."""


def check_order(kind: str, what: str) -> None:
    """Refuse a kind of question whose answers are never shown in a random order."""
    if kind in _STAY:
        raise InvalidInput(f"{what}: {_STAY[kind]}; leave order out")


_KINDS: Mapping[int, tuple[Kind, ...]] = {1: ("choice", "number"), 2: get_args(Kind)}
_NO_NUMBER = {"low": 0.0, "high": 0.0, "step": 0.0}


def _kind(word: str) -> Kind:
    return next(kind for kind in get_args(Kind) if kind == word)


Reader = Callable[[Fields, frozenset[str], bool], dict[str, Any]]
"""Function that reads the fields of a kind, given the languages and whether the last answer is "no answer"."""


def _read_answers(key: str, most: int) -> Reader:
    """Return the reader of a kind whose answers are a list of texts, all different."""

    def read(fields: Fields, languages: frozenset[str], optional: bool) -> dict[str, Any]:
        del optional
        return {"choices": _distinct(fields, key, languages, 2, most)}

    return read


def _distinct(fields: Fields, key: str, languages: frozenset[str], low: int, high: int) -> tuple[Text, ...]:
    """Read texts that look different in every language."""
    texts = fields.texts(key, low, high, languages)
    for language in sorted(languages):
        first: dict[str, str] = {}
        for text in texts:
            read = visible(text[language])
            if read in first:
                raise InvalidInput(
                    f"{fields.what}: two {key} read the same in language {shown(language)}: {shown(first[read])} and "
                    f"{shown(text[language])}; write each once"
                )
            first[read] = text[language]
    return texts


def _read_number(fields: Fields, languages: frozenset[str], optional: bool) -> dict[str, Any]:
    del languages, optional
    return {key: fields.number(key) for key in ("low", "high", "step")}


def _read_scale(fields: Fields, languages: frozenset[str], optional: bool) -> dict[str, Any]:
    steps = _distinct(fields, "choices", languages, 2 + optional, MOST_CHOICES)
    values = fields.numbers("values", len(steps) - optional)
    if any(one >= two for one, two in pairwise(values)):
        raise InvalidInput(f"{fields.what}: the values of a scale must ascend; got {', '.join(map(repr, values))}")
    if max(whole_values(values)) > MOST_SCALE:
        raise InvalidInput(
            f"{fields.what}: the values of a scale must be multiples of one step, the last at most {MOST_SCALE} steps "
            f"above the first; got {', '.join(map(repr, values))}"
        )
    return {"choices": steps, "values": values}


def whole_values(values: tuple[float, ...]) -> tuple[int, ...]:
    """Return ascending values as integer multiples of a common step above the first one.

    Examples
    --------
    >>> whole_values((0.5, 1.0, 2.0))
    (0, 1, 3)
    """
    exact = [Fraction(repr(value)) - Fraction(repr(values[0])) for value in values]
    bottom = math.lcm(*(each.denominator for each in exact))
    scaled = [int(each * bottom) for each in exact]
    step = math.gcd(*scaled)
    return tuple(each // step for each in scaled)


def _read_table(fields: Fields, languages: frozenset[str], optional: bool) -> dict[str, Any]:
    del optional
    rows, columns = (_distinct(fields, key, languages, 2, MOST_CELLS) for key in ("rows", "columns"))
    if len(rows) * len(columns) > MOST_CELLS:
        raise InvalidInput(
            f"{fields.what}: a table has at most {MOST_CELLS} cells; {len(rows)} rows and {len(columns)} columns make "
            f"{len(rows) * len(columns)}: join some of them, or ask two questions"
        )
    cells = tuple(
        {language: f"{row[language]} / {column[language]}" for language in row} for row in rows for column in columns
    )
    return {"choices": cells, "rows": rows, "columns": columns}


def _read_dictionary(fields: Fields, languages: frozenset[str], optional: bool) -> dict[str, Any]:
    """Read the words, one text with a line for each, the same in all languages, and the further answers."""
    words = fields.take("words")
    if not isinstance(words, str):
        fields.refuse("words", words, "one text with a line for each word")
    listed = check_dictionary(words.split("\n"), fields.what)
    more = fields.texts("more", 1 + optional, 1 + optional, languages)
    visible_words = {visible(word) for word in listed}
    for text in (text for each in more for text in each.values()):
        if visible(text) in visible_words:
            raise InvalidInput(f"{fields.what}: {shown(text)} is a word, and also says that none of them is meant")
    order = sorted(languages)
    for name in order:
        if len({visible(each[name]) for each in more}) < len(more):
            raise InvalidInput(f"{fields.what}: {shown(more[0][name])} says both that another word is meant and none")
    return {"choices": (*(dict.fromkeys(order, word) for word in listed), *more)}


def check_dictionary(words: list[str], what: str) -> list[str]:
    """Return the words of a dictionary, after checking that there are so many, in normal form, and all different.

    Parameters
    ----------
    words : list of str
        The words, in the order that determines their cells.
    what : str
        The question, for messages.

    Raises
    ------
    InvalidInput
        If they are too few or too many or too long, or one of them is empty, is not in Unicode's normal form C, or
        reads like another one.
    """
    if not MOST_CHOICES < len(words) <= MOST_WORDS:
        raise InvalidInput(
            f"{what}: words must be at most {MOST_WORDS:,}, and of a dictionary more than {MOST_CHOICES:,}; got "
            f"{len(words):,}; leave rare ones to “another word”, or ask for their first letter or their region"
        )
    first: dict[str, int] = {}
    for place, word in enumerate(words, start=1):
        Fields({"words": word}, f"{what}, word {place:,}").line("words", LONGEST_WORD)
        read = visible(word)
        if unicodedata.normalize("NFC", word) != word or word.strip() != word or not read:
            raise InvalidInput(
                f"{what}, word {place:,}: {shown(word)} must be in Unicode's normal form C, with no space around it"
            )
        if read in first:
            raise InvalidInput(
                f"{what}: words {first[read]:,} and {place:,} read the same: {shown(words[first[read] - 1])} and "
                f"{shown(word)}; write each once"
            )
        first[read] = place
    size = len("\n".join(words).encode("utf-8"))
    if size > MOST_WORD_BYTES:
        raise InvalidInput(
            f"{what}: the words take {size:,} bytes, and a signed task has room for {MOST_WORD_BYTES:,}; leave rare "
            "ones to “another word”"
        )
    return words


_READERS: Mapping[Kind, Reader] = {
    "dictionary": _read_dictionary,
    "choice": _read_answers("choices", MOST_CHOICES),
    "several": _read_answers("options", MOST_OPTIONS),
    "list": _read_answers("words", MOST_CHOICES),
    "scale": _read_scale,
    "table": _read_table,
    "number": _read_number,
}


def _steps(fields: Fields, low: float, high: float, step: float) -> int:
    """Return the number of steps in a number's range, which must be whole, also in JavaScript's arithmetic."""
    exact = [Fraction(repr(value)) for value in (low, high, step)]
    if not (low < high and step > 0.0):
        raise InvalidInput(f"{fields.what}: a number needs low < high and a positive step; got {low}, {high}, {step}")
    count = (exact[1] - exact[0]) / exact[2]
    if count.denominator != 1 or not 1 <= count <= MOST_STEPS or round((high - low) / step) != count:
        raise InvalidInput(
            f"{fields.what}: from {low} to {high} there must be a whole number of steps, at most 2^31; got step {step}"
        )
    return int(count)


def _dummies(fields: Fields, family: Family) -> StatedDummies:
    count = fields.whole("count", 0, MOST_DUMMIES)
    if fields.word("law", "uniform", "laplace") == "uniform":
        return StatedDummies("uniform", count)
    if family.reports != 2:
        raise InvalidInput(f"{fields.what}: the law laplace is for reports of one bit; {family.name} needs uniform")
    draw = fields.words64("draw", count, WHOLE)
    steps = [two - one for one, two in pairwise((0, *draw, WHOLE))]
    if any(step < 0 for step in steps) or steps != steps[::-1]:
        raise InvalidInput(
            f"{fields.what}: the integers of the law laplace must not decrease, and its chances be symmetric"
        )
    return StatedDummies("laplace", count, draw)


def read_law(fields: Fields, questions: tuple[SurveyQuestion, ...]) -> tuple[SurveyQuestion, ...]:
    """Read the law of a task's dummies, and return the questions with their parts of it.

    Parameters
    ----------
    fields : Fields
        ``{"law": "ball", "radius": [W_0, ..., W_c], "centre": [one per column]}``: the weights of the radii, which sum
        to 2^64, and the mean number of dummies in each cell of a column. Or ``{"law": "normal", "weights": [W_0, ...,
        W_h], "centre": [one per column]}``: the weight of a cell at each distance from its mean, and the means, the
        largest of which is h.
    questions : tuple of SurveyQuestion
        Without dummies.
    """
    law = "ball" if fields.word("law", "ball", "normal") == "ball" else "normal"
    weights = _radii(fields) if law == "ball" else _cell_weights(fields, questions)
    widths = [question.width for question in questions]
    centres = fields.wholes("centre", sum(widths), MOST_DUMMIES // 2)
    with_dummies: list[SurveyQuestion] = []
    for question, width in zip(questions, widths, strict=True):
        own, centres = set(centres[:width]), centres[width:]
        count = question.family.cells * min(own)
        if len(own) > 1 or count > MOST_DUMMIES:
            raise InvalidInput(
                f"{fields.what}: the columns of one question have one centre, of at most {MOST_DUMMIES} dummies"
            )
        if law == "normal" and not 1 <= min(own) < len(weights):
            raise InvalidInput(f"{fields.what}: a centre is from 1 to {len(weights) - 1}, where the weights end")
        own_weights = weights if law == "ball" else weights[: min(own) + 1]
        with_dummies.append(replace(question, dummies=StatedDummies(law, count, own_weights)))
    needed = max(len(question.dummies.draw) for question in with_dummies)
    if law == "normal" and needed < len(weights):
        raise InvalidInput(
            f"{fields.what}: there are {len(weights)} weights where the largest centre needs {needed}; draft the task "
            "anew"
        )
    return tuple(with_dummies)


def _radii(fields: Fields) -> tuple[int, ...]:
    radius = fields.words64("radius", -1, WHOLE)
    if sum(radius) != WHOLE or not radius[-1]:
        raise InvalidInput(f"{fields.what}: the weights of the radii must add up to 2^64, the last not 0")
    return radius


def _cell_weights(fields: Fields, questions: tuple[SurveyQuestion, ...]) -> tuple[int, ...]:
    weights = fields.words64("weights", -1)
    falling = all(one >= two for one, two in pairwise(weights))
    if not (2 <= len(weights) <= LARGEST_CENTRE + 1 and falling and weights[-1]):
        raise InvalidInput(
            f"{fields.what}: the law normal has 2 to {LARGEST_CENTRE + 1} positive weights that do not increase"
        )
    for question in questions:
        if not serves_normal(question.family):
            raise InvalidInput(
                f"{fields.what}: the law normal is for choices among at most {MOST_ANSWERS} answers; "
                f"{question.family.name} needs the law ball"
            )
    return weights


def serves_normal(family: Family) -> bool:
    """Return whether normal dummies can be used with a family: a report is one of at most 64 answers."""
    return family.kind in ("rr", "krr") and family.records <= MOST_ANSWERS


def read_level(fields: Fields, languages: frozenset[str], questions: tuple[SurveyQuestion, ...]) -> Level:
    """Read one level of a draft, whose integers must not exceed what its budget allows.

    Parameters
    ----------
    fields : Fields
        The level's object.
    languages : frozenset of str
        The languages that its name must have.
    questions : tuple of SurveyQuestion
        The task's questions, for each of which the level states an integer.
    """
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
