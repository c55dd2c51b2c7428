"""hpke.js against RFC 9180 and against the library: each opens what the other sealed."""

from __future__ import annotations

import json
import os
from importlib.resources import files
from pathlib import Path

import pytest

from shuffledp.collection.sealing import Opener, Sealer, identity_of, sign
from tests.collection.tasks import ANALYZER, IDENTITY

VECTOR = json.loads((Path(__file__).parent.parent / "rfc9180_a1.json").read_text(encoding="utf-8"))
KEYS = """
import { open, seal, signedBy, ephemeralKeys, canSeal } from "./hpke.js";
// A key pair from 32 private bytes: PKCS #8 is a fixed head before them. The page itself never does this.
async function pair(secret) {
  const head = bytes("302e020100300506032b656e04220420");
  const whole = new Uint8Array([...head, ...secret]);
  const privateKey = await crypto.subtle.importKey("pkcs8", whole, { name: "X25519" }, true, ["deriveBits"]);
  const { x } = await crypto.subtle.exportKey("jwk", privateKey);
  const publicKey = await crypto.subtle.importKey("raw", Buffer.from(x, "base64url"), { name: "X25519" }, true, []);
  return { privateKey, publicKey };
}
"""


def test_the_vector_of_rfc_9180(node):
    sealed = node(
        KEYS
        + """
const keys = await pair(bytes(given.ephemeral_private_key));
const aad = bytes(given.aad);
give(hex(await seal(bytes(given.recipient_public_key), bytes(given.info), bytes(given.plaintext), { aad, keys })));
""",
        VECTOR,
    )
    assert sealed == VECTOR["enc"] + VECTOR["ciphertext"]


def test_python_opens_what_the_page_seals(node):
    messages = [b"", b"\x03", os.urandom(2000)]
    sealed = node(
        KEYS
        + """
const made = [];
for (const message of given.messages) made.push(hex(await seal(bytes(given.key), bytes(given.info), bytes(message))));
give(made);
""",
        {"key": Opener(ANALYZER).public.hex(), "info": b"an info".hex(), "messages": [m.hex() for m in messages]},
    )
    opener = Opener(ANALYZER)
    assert [opener.open(bytes.fromhex(one), b"an info") for one in sealed] == messages
    assert opener.open(bytes.fromhex(sealed[0]), b"another") is None
    assert len({one[:64] for one in sealed}) == 3  # a fresh key each time


def test_the_page_opens_what_python_seals_and_nothing_that_was_changed(node):
    sealed = Sealer(Opener(ANALYZER).public).seal(b"an answer", b"an info")
    opened = node(
        KEYS
        + """
const keys = await pair(bytes(given.secret));
const flipped = [];
for (let i = 0; i < 8 * given.sealed.length / 2; i += 3) {
  const changed = bytes(given.sealed);
  changed[i >> 3] ^= 1 << (i & 7);
  if ((await refusal(() => open(keys, bytes(given.info), changed))) === null) flipped.push(i);
}
const other = await refusal(() => open(keys, bytes("00"), bytes(given.sealed)));
give({ message: hex(await open(keys, bytes(given.info), bytes(given.sealed))), flipped, other: other !== null });
""",
        {"secret": ANALYZER.hex(), "sealed": sealed.hex(), "info": b"an info".hex()},
    )
    assert bytes.fromhex(opened["message"]) == b"an answer"
    # The highest bit of the last byte of an X25519 key is not part of the number (RFC 7748), but HPKE binds all of enc.
    assert opened == {"message": b"an answer".hex(), "flipped": [], "other": True}


@pytest.mark.parametrize("point", ["00" * 32, "01" + "00" * 31, "ed" + "ff" * 30 + "7f"])
def test_a_key_of_small_order_is_refused(node, point):
    assert node(KEYS + "give((await refusal(() => seal(bytes(given), bytes(''), bytes('00')))) !== null);", point)


def test_ephemeral_keys_cannot_be_exported(node):
    made = node(
        KEYS
        + """
const { privateKey } = await ephemeralKeys();
const refused = await refusal(() => crypto.subtle.exportKey("pkcs8", privateKey));
give({ extractable: privateKey.extractable, refused });
"""
    )
    assert made["extractable"] is False
    assert made["refused"] is not None


def test_signatures(node):
    message = b"a message"
    signature = sign(IDENTITY, message)
    identity = identity_of(IDENTITY)
    cases = [
        (identity, signature, message, True),
        (identity, signature, b"another", False),
        (identity, signature[:-1] + bytes([signature[-1] ^ 1]), message, False),
        (b"\xff" * 32, signature, message, False),
    ]
    told = node(
        KEYS + "give(await Promise.all(given.map((one) => signedBy(...one.map(bytes)))));",
        [[part.hex() for part in case[:3]] for case in cases],
    )
    assert told == [case[3] for case in cases]


def test_a_browser_without_x25519_or_ed25519_says_so(node):
    told = node(
        KEYS
        + """
const refuse = async () => { throw new DOMException("no such algorithm", "NotSupportedError"); };
crypto.subtle.generateKey = refuse;
crypto.subtle.importKey = refuse;
give([await canSeal(), await signedBy(bytes("00"), bytes("00"), bytes("00"))]);
"""
    )
    assert told == [False, None]


def test_all_cryptography_is_in_one_short_file():
    folder = files("shuffledp.collection") / "page"
    assert (folder / "hpke.js").read_text(encoding="utf-8").count("\n") < 100
    users = [
        path.name for path in folder.iterdir() if path.name.endswith(".js") and "subtle" in path.read_text("utf-8")
    ]
    assert users == ["hpke.js"]
