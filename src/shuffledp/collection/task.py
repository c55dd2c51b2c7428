r"""A collection's task: the organizer's draft, the task that the shuffler signs, and the task's name.

A posted task is ``"SHFT" 01 | u32 D | draft, D bytes of JSON | shuffler HPKE key 32 | shuffler identity 32 | Ed25519
signature 64``, the signature over ``"shuffledp/1 posted\0"`` and all before it. The bytes served are the document, and
their SHA-256 is the task's name: nothing is ever written again from what was read.

Version 2 has one law of dummies for all columns, and more kinds of questions. It says ``02`` and ``shuffledp/2`` where
version 1 says ``01`` and ``shuffledp/1``, in every label of the collection, and the byte ``00`` follows the draft: the
number of further shufflers, of which this library knows none.

**A later deadline**: a notice that the shuffler signs, beside the task, whose bytes never change.

``"SHFN" | version u8 | task's digest 32 | closes u64 | expires u64 | Ed25519 signature 64``, times in seconds since
1970, integers little-endian, the signature by the task's shuffler over ``"shuffledp/V notice\0"`` and all before it. A
notice only ever moves an end later: whoever answered relied on the task, and nothing that it promises depends on when
it closes.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal

from shuffledp.collection import sealing
from shuffledp.collection.asked import (
    MOST_COLUMNS,
    MOST_PEOPLE,
    Column,
    Level,
    OperatedBy,
    SurveyQuestion,
    read_law,
    read_level,
    read_order,
    read_question,
)
from shuffledp.collection.fields import Fields, Text, from_base64, read_json, slug, to_base64, visible, write_time
from shuffledp.collection.sealing import opens_to_anybody, signs_for_anybody
from shuffledp.errors import InvalidInput, shown

MAGIC, VERSIONS = b"SHFT", (1, 2)
LONGEST_DRAFT = 1 << 18
MOST_LEVELS, MOST_QUESTIONS = 8, 32
MOST_DELTA = 1e-3
"""Largest delta of a promise, however few people answer."""
CODE = 16
"""Length of a one-time code, in bytes."""
_HEAD = struct.Struct("<4sBI")
_TAIL = 2 * sealing.KEY + sealing.SIGNATURE
_ALONE = {1: b"", 2: b"\0"}
"""Bytes after the draft: from version 2 on the number of further shufflers, which is 0."""
LONGEST_POSTED = _HEAD.size + LONGEST_DRAFT + 1 + _TAIL
_NEWER = "several shufflers in a row, which need a newer shuffledp; update it before you answer"


def label(version: int, use: str) -> bytes:
    r"""Return the label under which bytes of one use and version are signed, sealed or hashed.

    Examples
    --------
    >>> label(2, "posted")
    b'shuffledp/2 posted\x00'
    """
    return f"shuffledp/{version} {use}\0".encode()


@dataclass(frozen=True)
class Draft:
    """The organizer's definition of a collection; made by `Draft.parse` alone.

    Parameters
    ----------
    data : bytes
        The document, byte for byte.
    version : {1, 2}
        Version of the format.
    title : Text
        The title; its languages are the languages of every text.
    organizer, contact, privacy_notice : str
        Name and address of the organizer, and the address of the privacy notice.
    operated_by : OperatedBy
        Organisations that run analyzer, shuffler and page.
    questions : tuple of SurveyQuestion
        1 to 32.
    levels : tuple of Level
        1 to 8, ascending in epsilon0.
    delta : float
        Central delta of every promise.
    admission : {"codes", "open"}
        Whether only holders of a one-time code, or everybody, may answer.
    at_least : int
        Smallest number of people with which the batch is handed over.
    opens, closes, expires : int
        Seconds since 1970.
    stop_at : int
        Largest number of held reports, beyond which further ones are refused.
    analyzer_key, analyzer_identity : bytes
        32 bytes each: the key to which reports are sealed, and the key that signs the release.
    retention_days : int
        Number of days for which the release is served.
    introduction : Text or None
        A text above the questions; a task of version 2 may have one.
    random_order : bool
        Whether the questions are shown in an order that is drawn for each person; a task of version 2 may say so.
    """

    data: bytes
    version: int
    title: Text
    organizer: str
    contact: str
    privacy_notice: str
    operated_by: OperatedBy
    questions: tuple[SurveyQuestion, ...]
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
    introduction: Text | None = None
    random_order: bool = False

    @classmethod
    def parse(cls, data: bytes, what: str = "the draft") -> Draft:
        """Return a draft from its bytes, after checking every rule that needs no accountant.

        Parameters
        ----------
        data : bytes
            JSON, as docs/collection says.
        what : str
            What messages call it: a survey, if it was made of one.

        Raises
        ------
        InvalidInput
            If a key is unknown, missing or out of its range, or a rule is broken.
        """
        draft = cls.held(data, what)
        draft.check_keys()
        return draft

    @classmethod
    def held(cls, data: bytes, what: str = "the draft") -> Draft:
        """Return a draft without checking its keys, so that every task posted by version 0.2.0 can still be ended.

        Parameters
        ----------
        data, what : bytes and str
            As for `parse`, which all other callers use.
        """
        fields = read_json(bytes(data), what, LONGEST_DRAFT)
        version = fields.whole("version", VERSIONS[0], VERSIONS[-1])
        fields.whole("suite", 1, 1)
        title = fields.text("title")
        languages = frozenset(title)
        questions = fields.objects(
            "questions", 1, MOST_QUESTIONS, lambda entry: read_question(entry, languages, version)
        )
        if version > 1:
            _check_alone(fields)
            questions = fields.object("dummies", lambda entry: read_law(entry, questions))
        levels = fields.objects("levels", 1, MOST_LEVELS, lambda entry: read_level(entry, languages, questions))
        stop_at = fields.whole("stop_at", 1, MOST_PEOPLE)
        draft = cls(
            data=bytes(data),
            version=version,
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
            introduction=(
                fields.text("introduction", languages) if version > 1 and fields.has("introduction") else None
            ),
            random_order=version > 1 and read_order(fields),
        )
        fields.done()
        draft._check()
        return draft

    def check_keys(self) -> None:
        """Refuse keys with which anybody could open what is sealed to the analyzer, or sign in its name."""
        _check_key("analyzer_key", self.analyzer_key, opens_to_anybody(self.analyzer_key))
        _check_key("analyzer_identity", self.analyzer_identity, signs_for_anybody(self.analyzer_identity))

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages of every text, in the order of the title."""
        return tuple(self.title)

    @property
    def planned(self) -> int:
        """Number of people expected, over all levels."""
        return sum(level.planned for level in self.levels)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """All columns of the batch, question by question."""
        return tuple(
            Column(place, question.family, question.dummies)
            for place, question in enumerate(self.questions)
            for _ in range(question.width)
        )

    def _check(self) -> None:
        if len(self.columns) > MOST_COLUMNS:
            raise InvalidInput(
                f"a task has at most {MOST_COLUMNS} columns, one a question and one an option to be checked; this one "
                f"has {len(self.columns)}: ask less at once"
            )
        most = min(MOST_DELTA, 1.0 / (10 * self.stop_at))
        if not 0.0 < self.delta <= most:
            raise InvalidInput(
                f"delta must be positive, and at most 1/(10 stop_at) and {MOST_DELTA:g}, here {most:g}; got "
                f"{self.delta:g}; lower delta or stop_at"
            )
        if not self.opens < self.closes <= self.expires:
            raise InvalidInput("a task opens before it closes, and expires when it closes or later; change the times")
        budgets = [level.epsilon0 for level in self.levels]
        if any(one >= two for one, two in pairwise(budgets)):
            raise InvalidInput(f"levels must ascend in epsilon0; got {', '.join(f'{e:g}' for e in budgets)}")
        for language in self.languages:
            names = [visible(level.name[language]) for level in self.levels]
            if len(set(names)) < len(names):
                raise InvalidInput(f"two levels have the same name in language {shown(language)}; give each its own")


@dataclass(frozen=True)
class PostedTask:
    """A draft signed by a shuffler; made by `PostedTask.parse` or `PostedTask.post`.

    Parameters
    ----------
    data : bytes
        The document, byte for byte.
    draft : Draft
        The draft.
    shuffler_key, shuffler_identity : bytes
        32 bytes each: the key to which whole reports are sealed, and the key that signs task and batch.
    """

    data: bytes
    draft: Draft
    shuffler_key: bytes
    shuffler_identity: bytes

    @classmethod
    def parse(cls, data: bytes) -> PostedTask:
        """Return a posted task from its bytes, after checking its signature and its draft except for `check_keys`.

        Parameters
        ----------
        data : bytes
            The bytes that were served.

        Raises
        ------
        InvalidInput
            If the bytes are no posted task.
        """
        data = bytes(data)
        if len(data) < _HEAD.size or data[:4] != MAGIC:
            raise InvalidInput(f"these bytes are no posted task: they do not begin with {MAGIC.decode()}")
        _, version, size = _HEAD.unpack_from(data)
        if version not in VERSIONS:
            raise InvalidInput(
                f"this task is of version {version} and needs a newer shuffledp: this one reads versions 1 and 2; "
                "update it before you answer"
            )
        end = _HEAD.size + size
        if data[end : end + len(_ALONE[version])] > _ALONE[version]:
            raise InvalidInput(f"this task names {_NEWER}")
        end += len(_ALONE[version])
        if size > LONGEST_DRAFT or len(data) != end + _TAIL:
            raise InvalidInput(f"the posted task has {len(data)} bytes where its head announces {end + _TAIL}")
        key, identity, signature = data[end : end + 32], data[end + 32 : end + 64], data[end + 64 :]
        if not sealing.signed_by(identity, label(version, "posted") + data[:-64], signature):
            raise InvalidInput("the signature of the posted task is wrong: the bytes were changed; fetch them again")
        draft = Draft.held(data[_HEAD.size : _HEAD.size + size])
        if draft.version != version:
            raise InvalidInput(f"the posted task is of version {version}, but its draft of version {draft.version}")
        return cls(data, draft, key, identity)

    @classmethod
    def post(cls, draft: Draft, shuffler_key: bytes, identity: bytes) -> PostedTask:
        """Return a draft as a posted task, signed; its keys are checked, its promises are not (`collection.promise`).

        Parameters
        ----------
        draft : Draft
            The draft.
        shuffler_key : bytes
            Public HPKE key of the shuffler, 32 bytes, made for this task.
        identity : bytes
            The shuffler's private signing key, 32 bytes.
        """
        public = sealing.identity_of(identity)
        head = _HEAD.pack(MAGIC, draft.version, len(draft.data)) + draft.data + _ALONE[draft.version]
        body = head + shuffler_key + public
        task = cls.parse(body + sealing.sign(identity, label(draft.version, "posted") + body))
        task.check_keys()
        return task

    def check_keys(self) -> None:
        """Refuse a task with a key that protects nothing; called by everybody who is about to rely on the task."""
        self.draft.check_keys()
        _check_key("the shuffler's key", self.shuffler_key, opens_to_anybody(self.shuffler_key))

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the document, 32 bytes."""
        return hashlib.sha256(self.data).digest()

    @property
    def id(self) -> str:
        """The task's name: `digest` in base64url, 43 characters."""
        return to_base64(self.digest)

    @property
    def title(self) -> str:
        """The title in its first language."""
        return self.draft.title[self.draft.languages[0]]

    @property
    def called(self) -> str:
        """Title and name, by which messages call the task."""
        return f"{shown(self.title)} ({self.id})"

    @property
    def file_name(self) -> str:
        """Name of the task's files, without a suffix: its title in plain letters, if it has any, and its name."""
        return f"{slug(self.title)}-{self.id}".removeprefix("-")

    @property
    def has_codes(self) -> bool:
        """Whether a report carries a one-time code."""
        return self.draft.admission == "codes"

    def label(self, use: str) -> bytes:
        """Return the label for one use in the task's version."""
        return label(self.draft.version, use)

    def inner_info(self, column: int) -> bytes:
        """Return the HPKE info of the inner messages of a column, counted from 0."""
        return self.label("inner") + self.digest + bytes([column])

    @cached_property
    def outer_info(self) -> bytes:
        """HPKE info of the outer message."""
        return self.label("outer") + self.digest

    @cached_property
    def inner_sizes(self) -> tuple[int, ...]:
        """Number of bytes of a sealed inner message, for each column."""
        return tuple(column.family.report_bytes + sealing.OVERHEAD for column in self.draft.columns)

    @cached_property
    def inners_size(self) -> int:
        """Number of bytes of all inner messages of a report."""
        pieces = (column.family.pieces for column in self.draft.columns)
        return sum(size * count for size, count in zip(self.inner_sizes, pieces, strict=True))

    @cached_property
    def size(self) -> int:
        """Number of bytes W of a sealed report, the same for everybody."""
        return sealing.OVERHEAD + 1 + (CODE if self.has_codes else 0) + self.inners_size


def _check_alone(fields: Fields) -> None:
    """Refuse fields that exist only with several shufflers in a row."""
    hands = fields.peek("operated_by")
    if fields.peek("mix_by") is not None or (isinstance(hands, dict) and "shufflers" in hands):
        raise InvalidInput(f"{fields.what} names {_NEWER}")


def _check_key(name: str, key: bytes, protects_nothing: bool) -> None:
    if protects_nothing:
        raise InvalidInput(
            f"{name} {to_base64(key)} is a point of small order, which protects nothing; it must be the public half of "
            "a private key, such as task draft makes: do not post this task, nor answer it"
        )


def task_digest(name: str) -> bytes:
    """Return the 32 bytes encoded by a task's name of 43 characters, or refuse another text."""
    digest = from_base64(name)
    if digest is None or len(digest) != 32:
        raise InvalidInput(f"a task's name has 43 letters, digits, - and _; got {shown(name[:60])}")
    return digest


NOTICE_MAGIC = b"SHFN"
_BODY = struct.Struct("<4sB32sQQ")
LONGEST_NOTICE = _BODY.size + sealing.SIGNATURE
LATEST = 253_402_300_799
"""The last second of the year 9999, in seconds since 1970."""


@dataclass(frozen=True)
class Notice:
    """A later deadline of a task; made by `Notice.parse` or `Notice.sign`.

    Parameters
    ----------
    data : bytes
        The notice, byte for byte.
    closes, expires : int
        The new ends, seconds since 1970.
    """

    data: bytes
    closes: int
    expires: int

    @staticmethod
    def sign(task: PostedTask, closes: int, expires: int, identity: bytes) -> Notice:
        """Return a signed notice of later ends.

        Parameters
        ----------
        task : PostedTask
            The task whose ends move.
        closes, expires : int
            The new ends, seconds since 1970.
        identity : bytes
            The shuffler's private signing key, 32 bytes.
        """
        body = _BODY.pack(NOTICE_MAGIC, task.draft.version, task.digest, closes, expires)
        return Notice.parse(body + sealing.sign(identity, task.label("notice") + body), task)

    @staticmethod
    def parse(data: bytes, task: PostedTask) -> Notice:
        """Return a notice of a task from its bytes, checked.

        Parameters
        ----------
        data : bytes
            The bytes that were served.
        task : PostedTask
            The task it must be about.

        Raises
        ------
        InvalidInput
            If the bytes are no notice, are about another task, are not signed by its shuffler, or do not move the end
            later.
        """
        if len(data) != LONGEST_NOTICE or data[:4] != NOTICE_MAGIC:
            raise InvalidInput("these bytes are no notice of a later deadline")
        _, version, digest, closes, expires = _BODY.unpack_from(data)
        if (version, digest) != (task.draft.version, task.digest):
            raise InvalidInput("the notice of a later deadline is about another task")
        if not sealing.signed_by(task.shuffler_identity, task.label("notice") + data[:-64], data[-64:]):
            raise InvalidInput("the notice of a later deadline is not signed by the task's shuffler")
        draft = task.draft
        if not draft.closes < closes <= expires <= LATEST or expires < draft.expires:
            raise InvalidInput(
                f"a notice may only move the end later; the task closes {write_time(draft.closes)} and expires "
                f"{write_time(draft.expires)}"
            )
        return Notice(bytes(data), closes, expires)


def draft_now(task: PostedTask, notice: bytes | None) -> Draft:
    """Return a task's draft with the ends of a notice, if there is one; only its times may be used."""
    if notice is None:
        return task.draft
    parsed = Notice.parse(notice, task)
    return replace(task.draft, closes=parsed.closes, expires=parsed.expires)
