"""The collection's cryptography, all of it: HPKE (RFC 9180) and Ed25519 signatures, from `cryptography`.

Suite 1 is HPKE in base mode with DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and AES-128-GCM, one message per
encapsulation and no associated data. A sealed message is the encapsulated key (32 bytes), the ciphertext, and the tag
(16 bytes).
"""

from __future__ import annotations

import hmac
from collections.abc import Callable

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from shuffledp.errors import InvalidInput

# Public keys that protect nothing: points of small order, in every encoding.
#
# What is sealed to such an X25519 key anybody opens, so HPKE refuses to seal to it: a task with one could never be
# answered, or never closed. What such an Ed25519 key signs is signed by anybody. Both are checked before a key is
# relied on; page/keys.js does the same.

_P = 2**255 - 19
_X25519 = {
    0,
    1,
    _P - 1,
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
}
"""The coordinates u of the points of order 1, 2, 4 and 8 on the curve and on its twist."""
_ORDER_8 = 2707385501144840649318225287225658788936804267575313519463743609750303402022
_Y = (_ORDER_8, _P - _ORDER_8)


def _number(key: bytes) -> int:
    """Return the coordinate encoded by 32 bytes: the highest bit is ignored, and the number is reduced modulo p."""
    return (int.from_bytes(key, "little") & (2**255 - 1)) % _P


def opens_to_anybody(key: bytes) -> bool:
    """Return whether anybody could open what is sealed to this X25519 key of 32 bytes, because it has small order."""
    return _number(key) in _X25519


def signs_for_anybody(identity: bytes) -> bool:
    """Return whether anybody can sign under this Ed25519 key of 32 bytes, because it has small order."""
    return _number(identity) in {0, 1, _P - 1, *_Y}


try:
    from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
except ImportError:  # cryptography below 47
    raise InvalidInput("a collection needs cryptography 47 or newer; run: pip install 'cryptography>=47'") from None

KEY = 32
"""Length of a public or private key of either kind, in bytes."""
OVERHEAD = 48
"""Number of bytes by which a sealed message is longer than the message."""
SIGNATURE = 64
_KEM, _HPKE = b"KEM\0\x20", b"HPKE\0\x20\0\1\0\1"  # the names of suite 1 in RFC 9180
_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)


class Sealer:
    """Seals messages to the owner of a public key; raises ValueError if the key is no key.

    Parameters
    ----------
    public : bytes
        The key.
    ephemeral : callable, optional
        Function that returns a fresh secret ephemeral key, 32 bytes; equal keys give equal sealed bytes. By default the
        library draws it.
    """

    def __init__(self, public: bytes, ephemeral: Callable[[], bytes] | None = None) -> None:
        self._key, self._ephemeral = X25519PublicKey.from_public_bytes(public), ephemeral

    def seal(self, message: bytes, info: bytes) -> bytes:
        """Return a sealed message; opening it needs the same `info`."""
        if self._ephemeral is None:
            return _SUITE.encrypt(message, self._key, info=info)
        private = X25519PrivateKey.from_private_bytes(self._ephemeral())  # RFC 9180, 4.1 and 5.1
        sender = private.public_key().public_bytes_raw()
        shared = _extract(_KEM, b"", b"eae_prk", private.exchange(self._key))
        shared = _expand(_KEM, shared, b"shared_secret", sender + self._key.public_bytes_raw(), 32)
        context = b"\0" + _extract(_HPKE, b"", b"psk_id_hash", b"") + _extract(_HPKE, b"", b"info_hash", info)
        secret = _extract(_HPKE, shared, b"secret", b"")
        key, nonce = (
            _expand(_HPKE, secret, label, context, size) for label, size in ((b"key", 16), (b"base_nonce", 12))
        )
        return sender + AESGCM(key).encrypt(nonce, message, b"")


def _extract(suite: bytes, salt: bytes, label: bytes, message: bytes) -> bytes:
    return hmac.digest(salt, b"HPKE-v1" + suite + label + message, "sha256")


def _expand(suite: bytes, secret: bytes, label: bytes, info: bytes, size: int) -> bytes:
    return hmac.digest(secret, size.to_bytes(2) + b"HPKE-v1" + suite + label + info + b"\1", "sha256")[:size]


class Opener:
    """Opens messages sealed to a private key."""

    def __init__(self, private: bytes) -> None:
        self._key = X25519PrivateKey.from_private_bytes(private)
        self.public = self._key.public_key().public_bytes_raw()

    def open(self, sealed: bytes | memoryview, info: bytes) -> bytes | None:
        """Return the content of a sealed message; None for another key or info, a changed message, or no message."""
        try:
            return _SUITE.decrypt(sealed, self._key, info=info)
        except (InvalidTag, ValueError):
            return None


def new_private() -> bytes:
    """Return a random private key for `Opener`."""
    return X25519PrivateKey.generate().private_bytes_raw()


def new_identity() -> bytes:
    """Return a random private key for `sign`."""
    return Ed25519PrivateKey.generate().private_bytes_raw()


def identity_of(private: bytes) -> bytes:
    """Return the public key with which the signatures of `private` are checked."""
    return Ed25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def sign(private: bytes, message: bytes) -> bytes:
    """Return the signature, 64 bytes, of a message under a private key from `new_identity`."""
    return Ed25519PrivateKey.from_private_bytes(private).sign(message)


def signed_by(public: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether the owner of `public` signed this message; False for a key under which anybody can sign."""
    if signs_for_anybody(public):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
