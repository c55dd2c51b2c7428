r"""A later deadline: a notice that the shuffler signs, beside the task, whose bytes never change.

``"SHFN" | version u8 | task's digest 32 | closes u64 | expires u64 | Ed25519 signature 64``, times in seconds since
1970, integers little-endian, the signature by the task's shuffler over ``"shuffledp/V notice\0"`` and all before it. A
notice only ever moves an end later: whoever answered relied on the task, and nothing that it promises depends on when
it closes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

from shuffledp.collection import sealing
from shuffledp.collection.fields import write_time
from shuffledp.collection.task import Draft, PostedTask
from shuffledp.errors import InvalidInput

MAGIC = b"SHFN"
_BODY = struct.Struct("<4sB32sQQ")
LONGEST_NOTICE = _BODY.size + sealing.SIGNATURE
LATEST = 253_402_300_799
"""The last second of the year 9999."""


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
        """Sign a notice.

        Parameters
        ----------
        task : PostedTask
            Whose end moves.
        closes, expires : int
            The new ends, seconds since 1970.
        identity : bytes
            The shuffler's private signing key, 32 bytes.
        """
        body = _BODY.pack(MAGIC, task.draft.version, task.digest, closes, expires)
        return Notice.parse(body + sealing.sign(identity, task.label("notice") + body), task)

    @staticmethod
    def parse(data: bytes, task: PostedTask) -> Notice:
        """Read a notice of a task and check it.

        Parameters
        ----------
        data : bytes
            As it was served.
        task : PostedTask
            The task it must be about.

        Raises
        ------
        InvalidInput
            If it is none, is about another task, is not signed by its shuffler, or does not move the end later.
        """
        if len(data) != LONGEST_NOTICE or data[:4] != MAGIC:
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
    """Return a task's draft with the ends that hold now; only the times may be taken from it."""
    if notice is None:
        return task.draft
    found = Notice.parse(notice, task)
    return replace(task.draft, closes=found.closes, expires=found.expires)
