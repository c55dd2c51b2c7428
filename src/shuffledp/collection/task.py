r"""A collection's task: what the organizer drafts, what the shuffler signs, and the name both give it.

A posted task is ``"SHFT" 01 | u32 D | draft, D bytes of JSON | shuffler HPKE key 32 | shuffler identity 32 | Ed25519
signature 64``, the signature over ``"shuffledp/1 posted\0"`` and all before it. The bytes served are the document, and
their SHA-256 is the task's name: nothing is ever written again from what was read.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Literal

from shuffledp.collection import sealing
from shuffledp.collection.draw import WHOLE, Family, family_named, most_implied
from shuffledp.collection.fields import Fields, Text, from_base64, read_json, to_base64
from shuffledp.errors import InvalidInput

MAGIC, VERSION = b"SHFT", 1
LONGEST_DRAFT = 1 << 18
MOST_LEVELS, MOST_QUESTIONS, MOST_CHOICES = 8, 32, 1000
MOST_STEPS = 1 << 31
LARGEST_EPSILON0 = 30.0
MOST_DUMMIES = 10**7
MOST_PEOPLE = 10**9
CODE = 16
"""Bytes of a one-time code."""
_HEAD = struct.Struct("<4sBI")
_SIGNED = b"shuffledp/1 posted\0"
_TAIL = 2 * sealing.KEY + sealing.SIGNATURE


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
        return " ".join(self.analyzer.split()).casefold() == " ".join(self.shuffler.split()).casefold()


@dataclass(frozen=True)
class Draft:
    """What an organizer asks to be collected; made by `Draft.parse` alone.

    Parameters
    ----------
    data : bytes
        The document, byte for byte.
    title : Text
        Its languages are the languages of every text.
    organizer, contact, privacy_notice : str
        Who asks, how they are reached, and where the privacy notice stands.
    operated_by : OperatedBy
        Who runs analyzer, shuffler and page.
    questions : tuple of Question
        1 to 32.
    levels : tuple of Level
        1 to 8, ascending in epsilon0.
    delta : float
        Central delta of every promise.
    admission : {"codes", "open"}
        Who may answer.
    at_least : int
        With fewer people the batch is not handed over.
    opens, closes, expires : int
        Seconds since 1970.
    stop_at : int
        Beyond so many held reports further ones are not taken.
    analyzer_key, analyzer_identity : bytes
        32 bytes each: to whom reports are sealed, and who signs the release.
    retention_days : int
        Days for which the release is served.
    """

    data: bytes
    title: Text
    organizer: str
    contact: str
    privacy_notice: str
    operated_by: OperatedBy
    questions: tuple[Question, ...]
    levels: tuple[Level, ...]
    delta: float
    admission: Literal["codes", "open"]
    at_least: int
    opens: int
    closes: int
    expires: int
    stop_at: int
    analyzer_key: bytes
    analyzer_identity: bytes
    retention_days: int

    @classmethod
    def parse(cls, data: bytes) -> Draft:
        """Read a draft and check every rule that needs no accountant.

        Parameters
        ----------
        data : bytes
            JSON, as docs/collection says.

        Raises
        ------
        InvalidInput
            If a key is unknown, missing or out of its range, or a rule is broken.
        """
        fields = read_json(bytes(data), "the draft", LONGEST_DRAFT)
        for key in ("version", "suite"):
            fields.whole(key, 1, 1)
        title = fields.text("title")
        languages = frozenset(title)
        questions = fields.objects("questions", 1, MOST_QUESTIONS, lambda entry: _question(entry, languages))
        levels = fields.objects("levels", 1, MOST_LEVELS, lambda entry: _level(entry, languages, questions))
        stop_at = fields.whole("stop_at", 1, MOST_PEOPLE)
        draft = cls(
            data=bytes(data),
            title=title,
            organizer=fields.line("organizer"),
            contact=fields.line("contact"),
            privacy_notice=fields.web_address("privacy_notice"),
            operated_by=fields.object(
                "operated_by", lambda entry: OperatedBy(*(entry.line(key) for key in ("analyzer", "shuffler", "page")))
            ),
            questions=questions,
            levels=levels,
            delta=fields.number("delta", 0.0, 1.0),
            admission="codes" if fields.word("admission", "codes", "open") == "codes" else "open",
            at_least=fields.whole("at_least", 1, stop_at),
            opens=fields.time("opens"),
            closes=fields.time("closes"),
            expires=fields.time("expires"),
            stop_at=stop_at,
            analyzer_key=fields.bytes_of("analyzer_key", sealing.KEY),
            analyzer_identity=fields.bytes_of("analyzer_identity", sealing.KEY),
            retention_days=fields.whole("retention_days", 1, 3650),
        )
        fields.done()
        draft._check()
        return draft

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages of every text, in the order of the title."""
        return tuple(self.title)

    @property
    def planned(self) -> int:
        """People expected, over all levels."""
        return sum(level.planned for level in self.levels)

    def _check(self) -> None:
        if not 0.0 < self.delta <= 1.0 / (10 * self.stop_at):
            raise InvalidInput(
                f"delta must be positive and at most 1/(10 stop_at) = {1.0 / (10 * self.stop_at):g}; got "
                f"{self.delta:g}; lower delta or stop_at"
            )
        if not self.opens < self.closes <= self.expires:
            raise InvalidInput("a task opens before it closes, and expires when it closes or later; change the times")
        budgets = [level.epsilon0 for level in self.levels]
        if any(one >= two for one, two in pairwise(budgets)):
            raise InvalidInput(f"levels must ascend in epsilon0; got {', '.join(f'{e:g}' for e in budgets)}")
        for language in self.languages:
            names = [level.name[language].casefold() for level in self.levels]
            if len(set(names)) < len(names):
                raise InvalidInput(f"two levels have the same name in language {language!r}; give each its own")


@dataclass(frozen=True)
class PostedTask:
    """A draft as a shuffler has signed it; made by `PostedTask.parse` or `PostedTask.post`.

    Parameters
    ----------
    data : bytes
        The document, byte for byte.
    draft : Draft
        What is asked.
    shuffler_key, shuffler_identity : bytes
        32 bytes each: to whom reports are sealed on the outside, and who signs task and batch.
    """

    data: bytes
    draft: Draft
    shuffler_key: bytes
    shuffler_identity: bytes

    @classmethod
    def parse(cls, data: bytes) -> PostedTask:
        """Read a posted task and check its signature and every rule of its draft.

        Parameters
        ----------
        data : bytes
            As they were served.

        Raises
        ------
        InvalidInput
            If the bytes are no posted task.
        """
        data = bytes(data)
        if len(data) < _HEAD.size or data[:4] != MAGIC:
            raise InvalidInput(f"these bytes are no posted task: they do not begin with {MAGIC.decode()}")
        _, version, size = _HEAD.unpack_from(data)
        if version != VERSION:
            raise InvalidInput(f"this task is of version {version}; this library reads version {VERSION}")
        end = _HEAD.size + size
        if size > LONGEST_DRAFT or len(data) != end + _TAIL:
            raise InvalidInput(f"the posted task has {len(data)} bytes where its head announces {end + _TAIL}")
        key, identity, signature = data[end : end + 32], data[end + 32 : end + 64], data[end + 64 :]
        if not sealing.signed_by(identity, _SIGNED + data[:-64], signature):
            raise InvalidInput("the signature of the posted task is wrong: the bytes were changed; fetch them again")
        return cls(data, Draft.parse(data[_HEAD.size : end]), key, identity)

    @classmethod
    def post(cls, draft: Draft, shuffler_key: bytes, identity: bytes) -> PostedTask:
        """Sign a draft; whether its promises hold is `collection.promise`'s question, asked before.

        Parameters
        ----------
        draft : Draft
            What is asked.
        shuffler_key : bytes
            Public HPKE key of the shuffler, 32 bytes, made for this task.
        identity : bytes
            The shuffler's private signing key, 32 bytes.
        """
        public = sealing.identity_of(identity)
        body = _HEAD.pack(MAGIC, VERSION, len(draft.data)) + draft.data + shuffler_key + public
        return cls.parse(body + sealing.sign(identity, _SIGNED + body))

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the document, 32 bytes."""
        return hashlib.sha256(self.data).digest()

    @property
    def id(self) -> str:
        """The task's name: `digest` in base64url, 43 characters."""
        return to_base64(self.digest)

    @property
    def has_codes(self) -> bool:
        """Whether a report carries a one-time code."""
        return self.draft.admission == "codes"

    def inner_info(self, question: int) -> bytes:
        """HPKE info of the inner message of a question, counted from 0."""
        return b"shuffledp/1 inner\0" + self.digest + bytes([question])

    @cached_property
    def outer_info(self) -> bytes:
        """HPKE info of the outer message."""
        return b"shuffledp/1 outer\0" + self.digest

    @cached_property
    def inner_sizes(self) -> tuple[int, ...]:
        """Bytes of the sealed inner message of each question."""
        return tuple(question.report_bytes + sealing.OVERHEAD for question in self.draft.questions)

    @cached_property
    def size(self) -> int:
        """W: bytes of a sealed report, the same for everybody."""
        return sealing.OVERHEAD + 1 + (CODE if self.has_codes else 0) + sum(self.inner_sizes)


def task_digest(name: str) -> bytes:
    """Return the 32 bytes of a task's name of 43 characters, or raise InvalidInput."""
    digest = from_base64(name)
    if digest is None or len(digest) != 32:
        raise InvalidInput(f"a task's name has 43 letters, digits, - and _; got {name[:60]!r}")
    return digest


def _question(fields: Fields, languages: frozenset[str]) -> Question:
    text = fields.text("text", languages)
    low = high = step = 0.0
    choices: tuple[Text, ...] = ()
    if fields.word("kind", "choice", "number") == "choice":
        kind, choices = "choice", fields.texts("choices", 2, MOST_CHOICES, languages)
        for language in languages:
            if len({choice[language] for choice in choices}) < len(choices):
                raise InvalidInput(f"{fields.what}: two choices read the same in language {language!r}")
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


def _level(fields: Fields, languages: frozenset[str], questions: tuple[Question, ...]) -> Level:
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
