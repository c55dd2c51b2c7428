"""Bytes: HPKE as RFC 9180 says, and tasks, reports and batches as they were frozen."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.bindings._rust import openssl
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from pyhpke import AEADId, CipherSuite, KDFId, KEMId, KEMKey

from shuffledp.collection.batch import (
    Batch,
    Outer,
    Verdict,
    open_outer,
    permuted_column,
    seal_inner,
    seal_outer,
    split_inners,
)
from shuffledp.collection.laws import seal_dummies
from shuffledp.collection.sealing import _SUITE, OVERHEAD, Opener, Sealer, identity_of, new_private, sign, signed_by
from shuffledp.collection.task import PostedTask, task_digest
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import simulation_random
from tests.collection.tasks import IDENTITY, SHUFFLER, choice, number, posted

pytestmark = pytest.mark.machine
HERE = Path(__file__).parent
VECTORS = json.loads((HERE / "vectors.json").read_text(encoding="utf-8"))
RFC = json.loads((HERE / "rfc9180_a1.json").read_text(encoding="utf-8"))
PRIVATE = {name: bytes.fromhex(value) for name, value in VECTORS["private"].items()}
SUITE = CipherSuite.new(KEMId.DHKEM_X25519_HKDF_SHA256, KDFId.HKDF_SHA256, AEADId.AES128_GCM)


def rfc(name: str) -> bytes:
    return bytes.fromhex(RFC[name])


RECIPIENT = "4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8"
"""skRm of RFC 9180, A.1.1, which the vector's file leaves out; its public key is the file's."""


def test_rfc9180_a1_opens_with_our_suite():
    private = X25519PrivateKey.from_private_bytes(bytes.fromhex(RECIPIENT))
    assert private.public_key().public_bytes_raw() == rfc("recipient_public_key")
    ephemeral = X25519PrivateKey.from_private_bytes(rfc("ephemeral_private_key"))
    assert ephemeral.public_key().public_bytes_raw() == rfc("enc")
    sealed = rfc("enc") + rfc("ciphertext")
    assert openssl.hpke._decrypt_with_aad(_SUITE, sealed, private, rfc("info"), rfc("aad")) == rfc("plaintext")
    assert Opener(bytes.fromhex(RECIPIENT)).open(sealed, rfc("info")) is None  # ours has no associated data


def test_sealing_under_a_given_ephemeral_key_is_rfc9180_a1():
    """All but the tag, which depends on the vector's associated data; and the library opens it."""
    sealed = Sealer(rfc("recipient_public_key"), lambda: rfc("ephemeral_private_key")).seal(
        rfc("plaintext"), rfc("info")
    )
    assert sealed[:-16] == rfc("enc") + rfc("ciphertext")[:-16]
    assert Opener(bytes.fromhex(RECIPIENT)).open(sealed, rfc("info")) == rfc("plaintext")
    assert len(sealed) == len(rfc("plaintext")) + OVERHEAD


def test_pyhpke_opens_ours_and_we_open_pyhpkes():
    private = new_private()
    opener, theirs = Opener(private), X25519PrivateKey.from_private_bytes(private)
    sealed = Sealer(opener.public).seal(b"a report", b"the info")
    receiver = SUITE.create_recipient_context(sealed[:32], KEMKey.from_pyca_cryptography_key(theirs), info=b"the info")
    assert receiver.open(sealed[32:]) == b"a report"
    enc, sender = SUITE.create_sender_context(KEMKey.from_pyca_cryptography_key(theirs.public_key()), info=b"the info")
    assert opener.open(enc + sender.seal(b"another"), b"the info") == b"another"


@pytest.mark.parametrize("size", [0, 1, 31, 32, 47, 48, 49, 114])
def test_what_is_no_message_cannot_be_opened(size):
    opener = Opener(new_private())
    for data in (bytes(size), b"\xff" * size, hashlib.sha256(bytes(size)).digest() * 4):
        assert opener.open(data[:size], b"") is None


SMALL_ORDER = (
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "dbffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
)


@pytest.mark.parametrize("point", SMALL_ORDER)
def test_points_of_small_order_and_their_other_spellings_cannot_be_opened(point):
    assert Opener(new_private()).open(bytes.fromhex(point) + bytes(82), b"") is None


def test_every_flipped_bit_makes_a_report_unreadable():
    task, opener = posted(), Opener(SHUFFLER)
    inner = seal_inner(task, 0, 2, Sealer(task.draft.analyzer_key))
    sealed = seal_outer(task, 2, bytes(16), [inner], Sealer(task.shuffler_key))
    assert open_outer(task, sealed, opener) == Outer(2, bytes(16), inner)
    for bit in range(8 * len(sealed)):
        changed = bytearray(sealed)
        changed[bit // 8] ^= 1 << bit % 8
        assert open_outer(task, bytes(changed), opener) is Verdict.UNREADABLE


def test_a_task_is_the_frozen_bytes():
    task = posted(choice(5, 3), number(dummies=2), choice(6, 1, "hadamard:6"))
    frozen = VECTORS["task"]
    assert task.data.hex() == frozen["posted"]
    assert (task.id, task.digest.hex(), task.size) == (frozen["id"], frozen["digest"], frozen["size"])
    assert task_digest(task.id) == hashlib.sha256(task.data).digest()
    assert PostedTask.parse(task.data) == task


def test_a_frozen_report_opens():
    task = PostedTask.parse(bytes.fromhex(VECTORS["task"]["posted"]))
    frozen = VECTORS["report"]
    outer = open_outer(task, bytes.fromhex(frozen["sealed"]), Opener(PRIVATE["shuffler_key"]))
    assert isinstance(outer, Outer)
    assert (outer.level, outer.code) == (frozen["level"], bytes.fromhex(frozen["code"]))
    inners = [piece for pieces in split_inners(task, outer.inners) for piece in pieces]
    assert [inner.hex() for inner in inners] == frozen["inners"]
    analyzer = Opener(PRIVATE["analyzer_key"])
    opened = [analyzer.open(inner, task.inner_info(place)) for place, inner in enumerate(inners)]
    assert [int.from_bytes(part, "little") for part in opened if part is not None] == frozen["reports"]
    assert analyzer.open(inners[0], task.inner_info(1)) is None
    assert len(bytes.fromhex(frozen["sealed"])) == task.size


def test_a_frozen_batch_opens():
    batch = Batch.parse(bytes.fromhex(VECTORS["batch"]["data"]))
    analyzer = Opener(PRIVATE["analyzer_key"])
    assert batch.manifest.counts == tuple(VECTORS["batch"]["counts"])
    for place, (column, size) in enumerate(zip(batch.columns, batch.task.inner_sizes, strict=True)):
        rows = [
            analyzer.open(column[at : at + size], batch.task.inner_info(place)) for at in range(0, len(column), size)
        ]
        found = [int.from_bytes(row, "little") for row in rows if row is not None]
        assert sorted(found) == VECTORS["batch"]["reports"][place]


def test_every_report_of_a_task_has_the_same_size():
    task = posted(choice(300, 1), number(dummies=1))
    to_analyzer, to_shuffler = Sealer(task.draft.analyzer_key), Sealer(task.shuffler_key)
    sizes: set[int] = set()
    for level in range(3):
        for report in (0, 1, 255, 299):
            inners = [seal_inner(task, 0, report, to_analyzer), seal_inner(task, 1, report % 2, to_analyzer)]
            sizes.add(len(seal_outer(task, level, bytes(16), inners, to_shuffler)))
    assert sizes == {task.size} == {OVERHEAD + 1 + 16 + (OVERHEAD + 2) + (OVERHEAD + 1)}


def test_signatures():
    signature = sign(IDENTITY, b"message")
    assert signed_by(identity_of(IDENTITY), b"message", signature)
    assert not signed_by(identity_of(IDENTITY), b"massage", signature)
    assert not signed_by(identity_of(SHUFFLER), b"message", signature)
    assert not signed_by(bytes(31), b"message", signature)


@pytest.mark.parametrize("name", ["", "x" * 42, "x" * 44, "!" * 43])
def test_what_is_no_name_of_a_task_is_refused(name):
    with pytest.raises(InvalidInput, match="43"):
        task_digest(name)


def test_a_column_is_permuted_uniformly_and_each_by_itself():
    """Chi-square over the 24 orders of four rows, at a false-alarm rate of 1e-5; then two columns' orders."""
    random, rows = simulation_random(3), [b"a", b"b", b"c", b"d"]
    seen = Counter(permuted_column(rows, random) for _ in range(4800))
    assert len(seen) == 24
    assert sum((count - 200) ** 2 / 200 for count in seen.values()) < 64.0  # 23 degrees of freedom
    pairs = Counter((permuted_column(rows, random)[:1], permuted_column(rows, random)[:1]) for _ in range(4800))
    assert sum((pairs[one, two] - 300) ** 2 / 300 for one in rows for two in rows) < 51.0  # 15, independent columns


def test_dummies_stand_anywhere_and_look_like_reports():
    """Sealed alike: of 400 rows half are dummies; their places' mean and their bytes' mean are within 4.5 sigma."""
    task = posted(choice(5, 200))
    sealer, random = Sealer(task.draft.analyzer_key), simulation_random(4)
    people = [seal_inner(task, 0, place % 5, sealer) for place in range(200)]
    dummies = [row for _, rows in seal_dummies(task, random) for row in rows]
    assert {len(row) for row in people} == {len(row) for row in dummies} == {49}
    column = permuted_column([*people, *dummies], random)
    places = [column.index(row) // 49 for row in dummies]
    assert abs(np.mean(places) - 199.5) < 4.5 * np.sqrt((400 + 1) * 400 / 12 / 400 / 2)
    by_byte = [np.frombuffer(b"".join(rows), dtype=np.uint8).mean() for rows in (people, dummies)]
    assert abs(by_byte[0] - by_byte[1]) < 4.5 * 73.9 * np.sqrt(2 / (200 * 49))
