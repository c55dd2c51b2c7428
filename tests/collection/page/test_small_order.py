"""Keys of small order are refused before anybody relies on them: by draft, post, link, client, page and auditor.

A task with such an analyzer's key was posted by 0.2.0, and could never be answered, nor closed.
"""

from __future__ import annotations

import json
import os

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from shuffledp.collection.client import Client, Link, certify_task, fetch_task
from shuffledp.collection.fields import to_base64
from shuffledp.collection.sealing import Opener, identity_of, opens_to_anybody, sign, signed_by, signs_for_anybody
from shuffledp.collection.survey_page import page_for
from shuffledp.collection.task import Draft, PostedTask
from shuffledp.collection.verify import verify
from shuffledp.errors import InvalidInput
from tests.collection.tasks import IDENTITY, SHUFFLER, document, draft, posted

P = 2**255 - 19
ORDER_8 = ("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
           "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157")  # fmt: skip
SMALL = [0, 1, P - 1, P, P + 1, *(int.from_bytes(bytes.fromhex(text), "little") for text in ORDER_8)]
X25519 = [(u | bit).to_bytes(32, "little") for u in SMALL for bit in (0, 1 << 255)]
"""All encodings of points of small order: of RFC 7748's numbers below 2^255, and each with the bit that is ignored."""
SMALL_Y = ("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
           "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")  # fmt: skip
ED25519 = [
    (y | bit).to_bytes(32, "little")
    for y in [0, 1, P - 1, P, P + 1, *(int.from_bytes(bytes.fromhex(text), "little") for text in SMALL_Y)]
    for bit in (0, 1 << 255)
]
HONEST = [Opener(SHUFFLER).public, identity_of(IDENTITY), (9).to_bytes(32, "little"), b"\xff" * 32]


@pytest.mark.parametrize("key", X25519, ids=bytes.hex)
def test_every_encoding_is_known_and_gives_no_shared_secret(key):
    assert opens_to_anybody(key)
    with pytest.raises(ValueError, match=r"."):
        X25519PrivateKey.from_private_bytes(SHUFFLER).exchange(X25519PublicKey.from_public_bytes(key))


@pytest.mark.parametrize("key", HONEST, ids=bytes.hex)
def test_other_keys_are_taken(key):
    assert not opens_to_anybody(key)
    assert not signs_for_anybody(key)


def test_under_an_identity_of_small_order_anybody_signs():
    """The neutral point: R neutral and S = 0 sign every message."""
    neutral = (1).to_bytes(32, "little")
    forged = neutral + bytes(32)
    Ed25519PublicKey.from_public_bytes(neutral).verify(forged, b"whatever")
    assert not signed_by(neutral, b"whatever", forged)
    assert all(signs_for_anybody(identity) for identity in ED25519)


def test_the_page_knows_the_same_keys(node):
    told = node(
        """
import { opensToAnybody, signsForAnybody } from "./keys.js";
give([given.x.map((key) => opensToAnybody(bytes(key))), given.ed.map((key) => signsForAnybody(bytes(key))),
      given.honest.map((key) => opensToAnybody(bytes(key)) || signsForAnybody(bytes(key)))]);
""",
        {"x": [k.hex() for k in X25519], "ed": [k.hex() for k in ED25519], "honest": [k.hex() for k in HONEST]},
    )
    assert told == [[True] * len(X25519), [True] * len(ED25519), [False] * len(HONEST)]


def held(changed: dict[str, object], shuffler: bytes | None = None) -> PostedTask:
    """A task as 0.2.0 has posted it, whatever keys it names."""
    body = json.dumps(document() | changed).encode()
    tail = (Opener(SHUFFLER).public if shuffler is None else shuffler) + identity_of(IDENTITY)
    whole = b"SHFT\1" + len(body).to_bytes(4, "little") + body + tail
    return PostedTask.parse(whole + sign(IDENTITY, b"shuffledp/1 posted\0" + whole))


BAD = {
    "the analyzer's key": ({"analyzer_key": to_base64(bytes(32))}, None),
    "the analyzer's identity": ({"analyzer_identity": to_base64((1).to_bytes(32, "little"))}, None),
    "the shuffler's key": ({}, bytes(32)),
}


@pytest.mark.parametrize("bad", BAD)
def test_nobody_relies_on_such_a_task(bad, monkeypatch):
    changed, shuffler = BAD[bad]
    task = held(changed, shuffler)
    monkeypatch.setattr("shuffledp.collection.client._ask", lambda *_: (200, task.data, None))
    attempts = [
        task.check_keys,
        lambda: certify_task(task),
        lambda: Client(task),
        lambda: fetch_task(Link("https://example.org", task.id)),
        lambda: page_for(task, "https://example.org"),
        lambda: verify(task, b""),
    ]
    for attempt in attempts:
        with pytest.raises(InvalidInput, match="small order, which protects nothing"):
            attempt()


@pytest.mark.parametrize("bad", BAD)
def test_the_page_does_not_take_such_a_task(bad, node):
    task = held(*BAD[bad])
    told = node(
        'import { readTask } from "./task.js"; give(await refusal(() => readTask(bytes(given.posted), given.id)));',
        {"posted": task.data.hex(), "id": task.id},
    )
    assert told == "format"


@pytest.mark.parametrize("key", [X25519[0], X25519[-1]], ids=bytes.hex)
def test_no_draft_and_no_posting_takes_such_a_key(key):
    whole = json.dumps(document(analyzer_key=to_base64(key))).encode()
    with pytest.raises(InvalidInput, match=r"analyzer_key .* small order"):
        Draft.parse(whole)
    with pytest.raises(InvalidInput, match=r"analyzer_key .* small order"):
        PostedTask.post(Draft.held(whole), Opener(SHUFFLER).public, IDENTITY)
    with pytest.raises(InvalidInput, match=r"the shuffler's key .* small order"):
        PostedTask.post(draft(), key, IDENTITY)


def test_random_keys_are_taken():
    for _ in range(50):
        posted(analyzer_key=to_base64(Opener(os.urandom(32)).public)).check_keys()
