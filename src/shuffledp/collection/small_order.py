"""Public keys that protect nothing: points of small order, in every encoding.

What is sealed to such an X25519 key anybody opens, so HPKE refuses to seal to it: a task with one could never be
answered, or never closed. What such an Ed25519 key signs is signed by anybody. Both are checked before a key is relied
on; page/keys.js does the same.
"""

from __future__ import annotations

_P = 2**255 - 19
_X25519 = {
    0,
    1,
    _P - 1,
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
}
"""The coordinates u of the points of order 1, 2, 4 and 8 of the curve and of its twist."""
_ORDER_8 = 2707385501144840649318225287225658788936804267575313519463743609750303402022
_Y = (_ORDER_8, _P - _ORDER_8)


def _number(key: bytes) -> int:
    """Return the coordinate that 32 bytes stand for: the highest bit does not belong to it, and it counts modulo p."""
    return (int.from_bytes(key, "little") & (2**255 - 1)) % _P


def opens_to_anybody(key: bytes) -> bool:
    """Tell whether what is sealed to this X25519 key, 32 bytes, is sealed to nobody."""
    return _number(key) in _X25519


def signs_for_anybody(identity: bytes) -> bool:
    """Tell whether anybody can sign under this Ed25519 key, 32 bytes."""
    return _number(identity) in {0, 1, _P - 1, *_Y}
