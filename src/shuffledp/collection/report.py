"""A sealed report: the same number of bytes for everybody in a task, opened by the shuffler to `Outer` or a verdict.

``outer`` is sealed to the shuffler and holds ``level u8 | [code 16] | inner_1 ... inner_q``; ``inner_j`` is sealed to
the analyzer and holds the report of column j (docs/wire.md, "A report"). Where a report travels in pieces, each is
sealed by itself, and they stand one after the other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from shuffledp.collection.sealing import Opener, Sealer
from shuffledp.collection.task import CODE, PostedTask

NAME = 16
"""Bytes of a report's name in the store."""


class Verdict(IntEnum):
    """What the shuffler answers to one report, as a byte."""

    HELD = 0
    UNREADABLE = 1
    UNFIT = 2
    CODE_REFUSED = 3


class Outer(NamedTuple):
    """What the shuffler reads of a report.

    Parameters
    ----------
    level : int
        Place of the person's level in the task, from 0.
    code : bytes or None
        The one-time code, 16 bytes; None under open admission.
    inners : bytes
        The sealed messages to the analyzer, one after the other.
    """

    level: int
    code: bytes | None
    inners: bytes


def seal_inner(task: PostedTask, column: int, piece: int, sealer: Sealer) -> bytes:
    """Seal one piece of a report to the analyzer; people's and dummies' alike.

    Parameters
    ----------
    task : PostedTask
        The task.
    column : int
        Place of the column, from 0: of version 1 the question's.
    piece : int
        One of the family's pieces: most reports are one.
    sealer : Sealer
        For the task's `analyzer_key`.
    """
    return sealer.seal(task.draft.columns[column].family.to_bytes(piece), task.inner_info(column))


def seal_outer(task: PostedTask, level: int, code: bytes | None, inners: Sequence[bytes], sealer: Sealer) -> bytes:
    """Seal the whole report to the shuffler: `task.size` bytes.

    Parameters
    ----------
    task : PostedTask
        The task.
    level : int
        Place of the person's level, from 0.
    code : bytes or None
        The one-time code, 16 bytes, exactly if the task's admission is by codes.
    inners : sequence of bytes
        The sealed messages, column by column.
    sealer : Sealer
        For the task's `shuffler_key`.
    """
    return sealer.seal(bytes([level]) + (code or b"") + b"".join(inners), task.outer_info)


def open_outer(task: PostedTask, sealed: bytes | memoryview, opener: Opener) -> Outer | Verdict:
    """Open a report as the shuffler does.

    Parameters
    ----------
    task : PostedTask
        The task.
    sealed : bytes
        What came, of any length.
    opener : Opener
        Of the task's shuffler key.

    Returns
    -------
    Outer or Verdict
        The content; UNREADABLE if it cannot be opened, UNFIT if the level or the length is none of this task's.
        Whether a code is known and unspent is the store's question.
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
    """Cut `Outer.inners` into the sealed messages of each column."""
    found: list[list[bytes]] = []
    start = 0
    for size, column in zip(task.inner_sizes, task.draft.columns, strict=True):
        end = start + size * column.family.pieces
        found.append([inners[at : at + size] for at in range(start, end, size)])
        start = end
    return found
