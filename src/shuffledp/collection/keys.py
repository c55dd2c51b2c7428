"""The analyzer's key file, which is never sent to a server; without it the batch cannot be opened."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from shuffledp.collection import sealing
from shuffledp.collection.fields import dump_json, read_json, to_base64
from shuffledp.collection.task import PostedTask
from shuffledp.errors import InvalidInput

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
        found = cls(*(fields.bytes_of(name, 32) for name in ("key", "identity", "draft_sha256")))
        fields.done()
        return found

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
