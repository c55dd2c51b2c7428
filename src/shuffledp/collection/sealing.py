"""The collection's cryptography, all of it: HPKE (RFC 9180) and Ed25519 signatures, from `cryptography`.

Suite 1 is HPKE in base mode with DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and AES-128-GCM, one message per
encapsulation and no associated data. A sealed message is the encapsulated key (32 bytes), the ciphertext, and the tag
(16 bytes).
"""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from shuffledp.collection.small_order import signs_for_anybody
from shuffledp.errors import InvalidInput

try:
    from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
except ImportError:  # cryptography below 47
    raise InvalidInput("a collection needs cryptography 47 or newer; install shuffledp[service]") from None

KEY = 32
"""Bytes of a public or private key, of either kind."""
OVERHEAD = 48
"""Bytes by which a sealed message is longer than the message."""
SIGNATURE = 64
_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)


class Sealer:
    """Seals messages to the owner of a public key; raises ValueError if the key is no key."""

    def __init__(self, public: bytes) -> None:
        self._key = X25519PublicKey.from_public_bytes(public)

    def seal(self, message: bytes, info: bytes) -> bytes:
        """Seal a message; `info` must be the same when it is opened."""
        return _SUITE.encrypt(message, self._key, info=info)


class Opener:
    """Opens messages sealed to a private key."""

    def __init__(self, private: bytes) -> None:
        self._key = X25519PrivateKey.from_private_bytes(private)
        self.public = self._key.public_key().public_bytes_raw()

    def open(self, sealed: bytes | memoryview, info: bytes) -> bytes | None:
        """Open a sealed message; None if it was sealed to another key or info, was changed, or is no message."""
        try:
            return _SUITE.decrypt(sealed, self._key, info=info)
        except (InvalidTag, ValueError):
            return None


def new_private() -> bytes:
    """Draw a private key for `Opener`."""
    return X25519PrivateKey.generate().private_bytes_raw()


def new_identity() -> bytes:
    """Draw a private key for `sign`."""
    return Ed25519PrivateKey.generate().private_bytes_raw()


def identity_of(private: bytes) -> bytes:
    """Return the public key with which the signatures of `private` are checked."""
    return Ed25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def sign(private: bytes, message: bytes) -> bytes:
    """Sign a message: 64 bytes."""
    return Ed25519PrivateKey.from_private_bytes(private).sign(message)


def signed_by(public: bytes, message: bytes, signature: bytes) -> bool:
    """Tell whether the owner of `public` signed this message; False for a key under which anybody signs."""
    if signs_for_anybody(public):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
