r"""The signed release that the analyzer publishes.

``"SHFR" 01 | u32 R | R bytes of JSON | Ed25519 signature 64``, the signature by the task's analyzer over ``"shuffledp/1
release\0"``, the 32 bytes of the task's digest, and the JSON. Of a task of version 2 both say 2.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from shuffledp.collection import sealing
from shuffledp.collection.batch import Manifest, check_signature
from shuffledp.collection.fields import Fields, read_json
from shuffledp.collection.task import PostedTask
from shuffledp.errors import InvalidInput

MAGIC = b"SHFR"
LONGEST = 1 << 24
NEWEST = 2
"""Newest format of the JSON that is read (`shuffledp.report.to_json`, which lies above this module)."""
_HEAD = struct.Struct("<4sBI")
LONGEST_SIGNED = _HEAD.size + LONGEST + sealing.SIGNATURE


@dataclass(frozen=True)
class SignedRelease:
    """A release that was read and checked; made by `SignedRelease.parse` alone.

    Parameters
    ----------
    document : bytes
        The JSON, byte for byte.
    task : PostedTask
        The task that it answers.
    manifest : Manifest
        The shuffler's manifest in it, with a valid signature.
    collection : Fields
        The object "collection" without manifest and signature.
    releases : list
        The answers, one for each question, as they were read.
    """

    document: bytes
    task: PostedTask
    manifest: Manifest
    collection: Fields
    releases: list[object]

    @classmethod
    def parse(cls, data: bytes, task: PostedTask) -> SignedRelease:
        """Return a release of a task, read from a file's bytes, after checking both signatures.

        Parameters
        ----------
        data : bytes
            The file.
        task : PostedTask
            The task it must answer.

        Raises
        ------
        InvalidInput
            If it is no release of this task, or a signature is wrong.
        """
        data = bytes(data)
        if len(data) < _HEAD.size or data[:4] != MAGIC:
            raise InvalidInput(f"these bytes are no release: they do not begin with {MAGIC.decode()}")
        _, version, size = _HEAD.unpack_from(data)
        if version != task.draft.version:
            raise InvalidInput(f"this release is of version {version}; its task is of version {task.draft.version}")
        if len(data) != _HEAD.size + size + sealing.SIGNATURE:
            raise InvalidInput(f"the release has {len(data)} bytes where its head announces another length")
        document, signature = data[_HEAD.size : -sealing.SIGNATURE], data[-sealing.SIGNATURE :]
        if not sealing.signed_by(
            task.draft.analyzer_identity, task.label("release") + task.digest + document, signature
        ):
            raise InvalidInput("the release is not signed by the task's analyzer, or is of another task")
        fields = read_json(document, "the release", LONGEST)
        fields.whole("format", 1, NEWEST)
        releases = fields.list_of("releases", len(task.draft.questions), len(task.draft.questions))
        inside = fields.take("collection")
        fields.done()
        if not isinstance(inside, dict):
            fields.refuse("collection", inside, "a JSON object")
        collection = Fields(inside, "the release, collection")
        manifest_text = collection.take("manifest")
        if not isinstance(manifest_text, str):
            collection.refuse("manifest", manifest_text, "the manifest's text")
        manifest = Manifest.parse(manifest_text.encode("utf-8", "replace"))
        if manifest.task.data != task.data:
            raise InvalidInput("the manifest in the release carries another task")
        check_signature(manifest, collection.bytes_of("signature", sealing.SIGNATURE))
        return cls(document, task, manifest, collection, releases)


def write_release(document: bytes, task: PostedTask, identity: bytes) -> bytes:
    """Return a release signed by the analyzer.

    Parameters
    ----------
    document : bytes
        JSON, as `shuffledp.collection.release_page.release_document` writes it.
    task : PostedTask
        The task.
    identity : bytes
        The analyzer's private signing key.

    Raises
    ------
    InvalidInput
        If the result would not be readable as a release of this task.
    """
    signature = sealing.sign(identity, task.label("release") + task.digest + document)
    data = _HEAD.pack(MAGIC, task.draft.version, len(document)) + document + signature
    SignedRelease.parse(data, task)
    return data
