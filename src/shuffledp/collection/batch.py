r"""Sealed reports, what the shuffler hands over, and the analyzer's key, which opens it.

**A sealed report** has the same number of bytes for everybody in a task, and is opened by the shuffler to `Outer` or a
verdict.

``outer`` is sealed to the shuffler and holds ``level u8 | [code 16] | inner_1 ... inner_q``; ``inner_j`` is sealed to
the analyzer and holds the report of column j (docs/wire.md, "A report"). Where a report travels in pieces, each is
sealed by itself, and they stand one after the other.

**A batch** is what the shuffler hands over: a manifest, columns of sealed reports, and a signature.

``"SHFB" 01 | u32 M | manifest, M bytes of JSON | columns | Ed25519 signature 64``, the signature over ``"shuffledp/1
batch\0"`` and the manifest. Column j holds b_j n + m_j rows of report_bytes + 48 bytes, where b_j is the number of
pieces of a report, permuted by its own uniform permutation, so rows of two columns cannot be joined. The manifest holds
the posted task, the SHA-256 of the columns, the day, the people per level, what was refused, dummies, floor and
software versions.

Of a task of version 2 it is ``"SHFB" 02 | 01 | u32 M | manifest | signature | columns``: the byte tells how many
shufflers have signed, here one.
"""

from __future__ import annotations

import hashlib
import io
import os
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from shuffledp.collection import sealing
from shuffledp.collection.asked import MOST_DUMMIES, MOST_PEOPLE
from shuffledp.collection.draw import MOST_BITS
from shuffledp.collection.fields import Fields, dump_json, read_json, to_base64
from shuffledp.collection.sealing import Opener, Sealer
from shuffledp.collection.task import CODE, MOST_LEVELS, PostedTask
from shuffledp.errors import InvalidInput, path_shown
from shuffledp.numerics.randomness import Randomness

NAME = 16
"""Length of a report's name in the store, in bytes."""


class Verdict(IntEnum):
    """The shuffler's answer to one report, as a byte."""

    HELD = 0
    UNREADABLE = 1
    UNFIT = 2
    CODE_REFUSED = 3


class Outer(NamedTuple):
    """The part of a report that the shuffler reads.

    Parameters
    ----------
    level : int
        Index of the person's level in the task, from 0.
    code : bytes or None
        The one-time code, 16 bytes; None under open admission.
    inners : bytes
        The sealed messages to the analyzer, one after the other.
    """

    level: int
    code: bytes | None
    inners: bytes


def seal_inner(task: PostedTask, column: int, piece: int, sealer: Sealer) -> bytes:
    """Return one piece of a report (a person's or a dummy) sealed to the analyzer.

    Parameters
    ----------
    task : PostedTask
        The task.
    column : int
        Index of the column, from 0; in version 1 that of the question.
    piece : int
        One of the family's pieces; most families have reports of one piece.
    sealer : Sealer
        Sealer for the task's `analyzer_key`.
    """
    return sealer.seal(task.draft.columns[column].family.to_bytes(piece), task.inner_info(column))


def seal_outer(task: PostedTask, level: int, code: bytes | None, inners: Sequence[bytes], sealer: Sealer) -> bytes:
    """Return the whole report sealed to the shuffler: `task.size` bytes.

    Parameters
    ----------
    task : PostedTask
        The task.
    level : int
        Index of the person's level, from 0.
    code : bytes or None
        The one-time code, 16 bytes, exactly if the task's admission is by codes.
    inners : sequence of bytes
        The sealed messages, column by column.
    sealer : Sealer
        Sealer for the task's `shuffler_key`.
    """
    return sealer.seal(bytes([level]) + (code or b"") + b"".join(inners), task.outer_info)


def open_outer(task: PostedTask, sealed: bytes | memoryview, opener: Opener) -> Outer | Verdict:
    """Open a report as the shuffler does.

    Parameters
    ----------
    task : PostedTask
        The task.
    sealed : bytes
        The received bytes, of any length.
    opener : Opener
        Opener with the task's private key.

    Returns
    -------
    Outer or Verdict
        The content; UNREADABLE if it cannot be opened, UNFIT if the level or the length is none of this task's.
        Whether a code is known and unused is checked by the store.
    """
    content = opener.open(sealed, task.outer_info)
    if content is None:
        return Verdict.UNREADABLE
    start = 1 + (CODE if task.has_codes else 0)
    if len(content) != start + task.inners_size or content[0] >= len(task.draft.levels):
        return Verdict.UNFIT
    return Outer(content[0], content[1:start] if task.has_codes else None, content[start:])


def name_of(inners: bytes) -> bytes:
    """Return the name under which a shuffler holds a report: the first 16 bytes of the SHA-256 of its content.

    The same content can come in other bytes: a device whose code was refused seals what it has drawn again, for
    another code. Were the sealed bytes the name, that report would be held twice, and the analyzer would know whose
    the repeated row is. Level and code are no part of the content, for the analyzer reads neither.

    Parameters
    ----------
    inners : bytes
        `Outer.inners`.
    """
    return hashlib.sha256(inners).digest()[:NAME]


def split_inners(task: PostedTask, inners: bytes) -> list[list[bytes]]:
    """Return the sealed messages of each column, cut from `Outer.inners`."""
    messages: list[list[bytes]] = []
    start = 0
    for size, column in zip(task.inner_sizes, task.draft.columns, strict=True):
        end = start + size * column.family.pieces
        messages.append([inners[at : at + size] for at in range(start, end, size)])
        start = end
    return messages


MAGIC, VERSIONS = b"SHFB", (1, 2)
LONGEST_MANIFEST = 1 << 20
REFUSALS = ("unreadable", "unfit", "code")
"""Kinds of refused reports, in the order of `report.Verdict`."""
_HEADS = {1: struct.Struct("<4sBI"), 2: struct.Struct("<4sBBI")}
_ALONE = 1
"""Number of shufflers that have signed a batch of version 2."""


@dataclass(frozen=True)
class Manifest:
    """The shuffler's signed description of its batch; made by `Manifest.parse` alone.

    Parameters
    ----------
    data : bytes
        The document, byte for byte.
    task : PostedTask
        The posted task that it contains.
    columns_sha256 : bytes
        SHA-256 of all columns, one after the other.
    day : str
        Day on which the batch was written, such as ``"2030-01-31"``.
    counts : tuple of int
        Number of people at each level.
    refusals : dict
        Number of refused reports, by kind.
    dummies : tuple of int
        Number of dummies in each column.
    rows : tuple of int
        Number of rows in each column: the pieces of people's reports, and dummies.
    floor : tuple of float
        Central epsilon per level that the shuffler certified when it posted the task.
    software : dict
        Versions of the software.
    codes : int or None
        Number of one-time codes that were made; None where the task takes none, or the shuffler did not say.
    """

    data: bytes
    task: PostedTask
    columns_sha256: bytes
    day: str
    counts: tuple[int, ...]
    refusals: Mapping[str, int]
    dummies: tuple[int, ...]
    rows: tuple[int, ...]
    floor: tuple[float, ...]
    software: Mapping[str, str]
    codes: int | None = None

    @property
    def n(self) -> int:
        """Number of people who answered."""
        return sum(self.counts)

    @classmethod
    def parse(cls, data: bytes) -> Manifest:
        """Read a manifest and check it against the task it carries.

        Parameters
        ----------
        data : bytes
            JSON.

        Raises
        ------
        InvalidInput
            If it is no manifest, or contradicts its task.
        """
        fields = read_json(bytes(data), "the manifest", LONGEST_MANIFEST)
        version = fields.whole("version", *VERSIONS)
        task = PostedTask.parse(fields.bytes_of("posted", -1))
        if version != task.draft.version:
            raise InvalidInput(f"the manifest is of version {version}, but its task of version {task.draft.version}")
        if (named := fields.line("id")) != task.id:
            raise InvalidInput(f"the manifest is of task {named}, but carries task {task.id}")
        levels, columns = len(task.draft.levels), len(task.draft.columns)
        manifest = cls(
            data=bytes(data),
            task=task,
            columns_sha256=fields.bytes_of("columns_sha256", 32),
            day=fields.day("day"),
            counts=fields.wholes("counts", levels, MOST_PEOPLE),
            refusals=fields.object("refusals", lambda entry: {k: entry.whole(k, 0, 2**53) for k in REFUSALS}),
            dummies=fields.wholes("dummies", columns, MOST_DUMMIES),
            rows=fields.wholes("rows", columns, MOST_PEOPLE * MOST_LEVELS * MOST_BITS + MOST_DUMMIES),
            floor=_numbers(fields, "floor", levels),
            software=fields.object("software", _versions),
            codes=fields.whole("codes", 1, 2**53) if version > 1 and task.has_codes and fields.has("codes") else None,
        )
        fields.done()
        manifest._check()
        return manifest

    def _check(self) -> None:
        columns = self.task.draft.columns
        wanted = tuple(column.dummies.count for column in columns)
        if self.dummies != wanted:
            raise InvalidInput(f"the manifest counts dummies {self.dummies}; the task asks for {wanted}")
        rows = tuple(column.rows(self.n) for column in columns)
        if self.rows != rows:
            raise InvalidInput(
                f"the manifest counts rows {self.rows}; {self.n} people and the dummies {self.dummies} make {rows}"
            )
        if self.codes is not None and self.codes < self.n:
            raise InvalidInput(f"the manifest counts {self.codes} codes; {self.n} people answered, each with a code")


@dataclass(frozen=True)
class Batch:
    """A batch that was read and checked; made by `Batch.parse` alone.

    Parameters
    ----------
    manifest : Manifest
        The shuffler's description.
    signature : bytes
        The shuffler's signature, 64 bytes.
    columns : tuple of memoryview
        The sealed rows of each column.
    """

    manifest: Manifest
    signature: bytes
    columns: tuple[memoryview, ...]

    @classmethod
    def parse(cls, data: bytes) -> Batch:
        """Read a batch; check signature, hash and lengths.

        Parameters
        ----------
        data : bytes
            The file.

        Raises
        ------
        InvalidInput
            If one of them is wrong.
        """
        return cls.read(io.BytesIO(data))

    @classmethod
    def read(cls, stream: IO[bytes], check: Callable[[PostedTask], None] = lambda task: None) -> Batch:
        """Read a batch from a file: its head first, and never more than the manifest announces.

        Parameters
        ----------
        stream : binary file
            An open file, at its beginning.
        check : callable
            Called with the task before the columns are read; raises InvalidInput if it is not the right one.

        Raises
        ------
        InvalidInput
            If signature, hash or a length is wrong, or the columns do not fit into memory.
        """
        manifest = _read_manifest(stream)
        check(manifest.task)
        sizes = [rows * size for rows, size in zip(manifest.rows, manifest.task.inner_sizes, strict=True)]
        announced = sum(sizes)
        after = sealing.SIGNATURE if manifest.task.draft.version == 1 else 0  # later versions sign before the columns
        before = stream.read(sealing.SIGNATURE - after)
        if stream.seekable():  # a wrong length is known before anything is read
            at = stream.tell()
            _check_length(stream.seek(0, os.SEEK_END) - at - after, announced, manifest)
            stream.seek(at)
        try:
            body, rest = memoryview(stream.read(announced)), stream.read(after + 1)
        except MemoryError:
            raise InvalidInput(
                f"the columns have {announced} bytes, more than this machine's memory holds; open them on a larger one"
            ) from None
        _check_length(len(body) + len(rest) - after, announced, manifest)
        signature = before + rest
        check_signature(manifest, signature)
        if hashlib.sha256(body).digest() != manifest.columns_sha256:
            raise InvalidInput("the columns are not the ones the shuffler signed; fetch the batch again")
        ends = np.cumsum([0, *sizes]).tolist()
        return cls(manifest, signature, tuple(body[a:b] for a, b in pairwise(ends)))

    @cached_property
    def task(self) -> PostedTask:
        """The task that was posted, from the manifest."""
        return self.manifest.task


def read_batch(path: Path, check: Callable[[PostedTask], None] = lambda task: None) -> Batch:
    """Read a batch from its file; parameters and errors as of `Batch.read`, and InvalidInput if it cannot be read."""
    try:
        with open(path, "rb") as stream:
            return Batch.read(stream, check)
    except OSError as error:
        raise InvalidInput(
            f"the batch {path_shown(path)} cannot be read ({error.strerror}); name an existing file"
        ) from None


def _read_manifest(stream: IO[bytes]) -> Manifest:
    """Read the manifest, which precedes the columns."""
    head = stream.read(_HEADS[1].size)
    if len(head) < _HEADS[1].size or head[:4] != MAGIC:
        raise InvalidInput(f"these bytes are no batch: they do not begin with {MAGIC.decode()}")
    version = head[4]
    if version not in VERSIONS:
        raise InvalidInput(f"this batch is of version {version}; this library reads versions 1 and 2")
    if version > 1 and head[5] != _ALONE:
        raise InvalidInput(f"this batch was signed by {head[5]} shufflers in a row: it needs a newer shuffledp")
    head = (head + stream.read(_HEADS[version].size - len(head))).ljust(_HEADS[version].size, b"\0")
    size = _HEADS[version].unpack(head)[-1]
    if size > LONGEST_MANIFEST:
        raise InvalidInput(f"the batch announces a manifest of {size} bytes; at most {LONGEST_MANIFEST} are read")
    document = stream.read(size)
    if len(document) < size:
        raise InvalidInput(f"the batch is cut short: {len(head) + len(document)} bytes")
    manifest = Manifest.parse(document)
    if manifest.task.draft.version != version:
        raise InvalidInput(f"the batch is of version {version}, but its task of version {manifest.task.draft.version}")
    return manifest


def _check_length(there: int, announced: int, manifest: Manifest) -> None:
    if there != announced:
        raise InvalidInput(f"the columns have {max(there, 0)} bytes; {manifest.rows} rows need {announced}")


def check_signature(manifest: Manifest, signature: bytes) -> None:
    """Refuse a manifest that the task's shuffler has not signed with ``signature`` (64 bytes)."""
    if not sealing.signed_by(manifest.task.shuffler_identity, manifest.task.label("batch") + manifest.data, signature):
        raise InvalidInput("the manifest is not signed by the task's shuffler; fetch the batch again")


def permuted_column(rows: Sequence[bytes], random: Randomness) -> bytes:
    """Return the rows of one column joined in a uniformly random order.

    Parameters
    ----------
    rows : sequence of bytes
        Sealed reports of people and dummies, of equal length.
    random : Randomness
        `secure_random()`; each column has an independent permutation.
    """
    return b"".join([rows[place] for place in random.permutation(len(rows)).tolist()])


def write_batch(
    task: PostedTask,
    columns: Sequence[bytes],
    counts: Sequence[int],
    *,
    refusals: Mapping[str, int],
    floor: Sequence[float],
    day: str,
    software: Mapping[str, str],
    identity: bytes,
    codes: int | None = None,
) -> bytes:
    """Return a batch, written and signed.

    Parameters
    ----------
    task : PostedTask
        The task.
    columns : sequence of bytes
        All columns of the task, from `permuted_column`.
    counts : sequence of int
        Number of people at each level.
    refusals : dict
        Number of refused reports of each of the kinds `REFUSALS`.
    floor : sequence of float
        Certified central epsilon per level.
    day : str
        Such as ``"2030-01-31"``.
    software : dict
        Names and versions.
    identity : bytes
        The shuffler's private signing key.
    codes : int, optional
        Number of one-time codes that were made, from 1; a task of version 1 has no place for it.

    Raises
    ------
    InvalidInput
        If columns and counts contradict the task; nothing is signed then.
    """
    digest = hashlib.sha256()
    for column in columns:
        digest.update(column)
    version, draft_columns = task.draft.version, task.draft.columns
    manifest = dump_json(
        {
            "version": version,
            "id": task.id,
            "posted": to_base64(task.data),
            "columns_sha256": to_base64(digest.digest()),
            "day": day,
            "counts": list(counts),
            "refusals": {kind: refusals.get(kind, 0) for kind in REFUSALS},
            "dummies": [column.dummies.count for column in draft_columns],
            "rows": [column.rows(sum(counts)) for column in draft_columns],
            "floor": list(floor),
            "software": dict(software),
        }
        | ({} if codes is None else {"codes": codes})
    )
    signature = sealing.sign(identity, task.label("batch") + manifest)
    signed = (*columns, signature) if version == 1 else (signature, *columns)
    alone = () if version == 1 else (_ALONE,)
    data = b"".join((_HEADS[version].pack(MAGIC, version, *alone, len(manifest)), manifest, *signed))
    Batch.parse(data)
    return data


def _numbers(fields: Fields, key: str, count: int) -> tuple[float, ...]:
    entries = fields.list_of(key, count, count)
    for entry in entries:
        if isinstance(entry, bool) or not isinstance(entry, int | float) or not 0.0 <= entry <= 1e6:
            fields.refuse(key, entry, "numbers of at least 0")
    return tuple(float(entry) for entry in entries)


def _versions(fields: Fields) -> dict[str, str]:
    return {name: fields.line(name) for name in fields.names()}


# The analyzer's key file, which is never sent to a server; without it the batch cannot be opened.


LONGEST_KEY = 4096


@dataclass(frozen=True)
class AnalyzerKey:
    """The two private keys of an analyzer, and the hash of the draft they were made for.

    Parameters
    ----------
    key : bytes
        Private HPKE key, 32 bytes.
    identity : bytes
        Private signing key, 32 bytes.
    draft_sha256 : bytes
        SHA-256 of the draft, 32 bytes.
    """

    key: bytes = field(repr=False)
    identity: bytes = field(repr=False)
    draft_sha256: bytes

    @classmethod
    def parse(cls, data: bytes) -> AnalyzerKey:
        """Return the keys in the bytes of a key file.

        Raises
        ------
        InvalidInput
            If the bytes are no key file.
        """
        fields = read_json(data, "the analyzer's key file", LONGEST_KEY)
        fields.word("what", "shuffledp analyzer key")
        fields.whole("version", 1, 1)
        keys = cls(*(fields.bytes_of(name, 32) for name in ("key", "identity", "draft_sha256")))
        fields.done()
        return keys

    def document(self) -> bytes:
        """Return the content of the key file."""
        return dump_json(
            {"what": "shuffledp analyzer key", "version": 1}
            | {name: to_base64(getattr(self, name)) for name in ("key", "identity", "draft_sha256")}
        )

    @property
    def public(self) -> bytes:
        """The public HPKE key."""
        return sealing.Opener(self.key).public

    @property
    def public_identity(self) -> bytes:
        """The public key with which signatures are checked."""
        return sealing.identity_of(self.identity)

    def check_task(self, task: PostedTask) -> None:
        """Refuse a task that does not hold the draft and the public keys for which this file was made."""
        self.check_draft(task.draft.data, task.draft.analyzer_key, task.draft.analyzer_identity)

    def check_draft(self, draft: bytes, analyzer_key: bytes, analyzer_identity: bytes) -> None:
        """Refuse a draft or public keys other than those for which this file was made."""
        if (analyzer_key, analyzer_identity) != (self.public, self.public_identity):
            raise InvalidInput(
                "this key is not the one the task's reports are sealed to; use the key made with its draft"
            )
        if hashlib.sha256(draft).digest() != self.draft_sha256:
            raise InvalidInput("the task's draft is not the one this key was made for: the shuffler has changed it")
