"""One-time codes: drawing them, hashing them for the store, and writing them as links and QR codes."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import urlsplit

from shuffledp.collection.fields import from_base64, to_base64
from shuffledp.collection.task import CODE, PostedTask
from shuffledp.errors import InvalidInput, shown
from shuffledp.in_words import count

MOST_CODES = 10_000_000
SHORT = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Letters of a short code, no two of which look alike (Crockford's base 32)."""
_SHORT_LETTERS = 12
_SHORT_BYTES = 8
"""Number of bytes of a short code; the bytes before them are 0."""


def response(used: int, made: int) -> str:
    """Return words on how many people have answered of those who got a code.

    Parameters
    ----------
    used : int
        Number of used codes.
    made : int
        Number of codes that were made, from 1.
    """
    return f"{count(used)} of {count(made)} codes used ({100 * used / made:.0f} %)"


def draw_codes(count: int, *, short: bool = False) -> list[bytes]:
    """Return random one-time codes of 16 bytes with 128 random bits, or 60 in short ones.

    Parameters
    ----------
    count : int
        Number of codes, from 1 to 1e7.
    short : bool
        Whether they are short enough to type: twelve letters and digits. Guessing over the network is hopeless (with
        10,000 codes, a thousand tries a second for a year hit one with probability 3e-4); a thief of the store, who has
        their hashes, finds unused ones with 2^60/count tries.

    Raises
    ------
    InvalidInput
        If the number is out of range.
    """
    if not 1 <= count <= MOST_CODES:
        raise InvalidInput(f"draw 1 to {MOST_CODES} codes; got {count}")
    if not short:
        return [os.urandom(CODE) for _ in range(count)]
    bits = 5 * _SHORT_LETTERS
    return [
        (int.from_bytes(os.urandom(_SHORT_BYTES)) >> (8 * _SHORT_BYTES - bits)).to_bytes(CODE) for _ in range(count)
    ]


def code_text(code: bytes) -> str:
    """Return a code as people type it: a short one in three groups, any other in base64url.

    Examples
    --------
    >>> code_text(bytes(15) + b"A"), code_text(b"A" * 16)
    ('0000-0000-0021', 'QUFBQUFBQUFBQUFBQUFBQQ')
    """
    value = int.from_bytes(code)
    if value >> (5 * _SHORT_LETTERS):
        return to_base64(code)
    letters = [SHORT[value >> (5 * place) & 31] for place in reversed(range(_SHORT_LETTERS))]
    return "-".join("".join(letters[start : start + 4]) for start in range(0, _SHORT_LETTERS, 4))


def read_code(text: str) -> bytes | None:
    """Return the code in a text, short or long; None if it is none.

    Lower case, spaces, O for 0, and I or L for 1 are accepted.

    Examples
    --------
    >>> read_code("oooo 0000 002l") == bytes(15) + b"A", read_code("0000-0000") is None
    (True, True)
    """
    long_code = from_base64(text.strip())
    if long_code is not None and len(long_code) == CODE:
        return long_code
    plain = re.sub(r"[\s-]", "", text.upper()).translate(str.maketrans("OIL", "011"))
    if len(plain) != _SHORT_LETTERS or not set(plain) <= set(SHORT):
        return None
    value = 0
    for letter in plain:
        value = 32 * value + SHORT.index(letter)
    return value.to_bytes(CODE)


def code_hash(code: bytes) -> bytes:
    """Return the SHA-256 of a code, which the store keeps instead of it."""
    return hashlib.sha256(code).digest()


def link_of(task: PostedTask, server: str, code: bytes | None = None, *, page: str | None = None) -> str:
    """Return the link to a task; the code follows #, a part that browsers do not send to servers.

    Parameters
    ----------
    task : PostedTask
        The task.
    server : str
        Such as ``"https://example.org"``.
    code : bytes, optional
        A one-time code.
    page : str, optional
        Address of the task's page on another host (`shuffledp task page`); it replaces the shuffler's.

    Raises
    ------
    InvalidInput
        If an address is no web address, or has a part after #.
    """
    address = f"{checked_address(server, 'server').rstrip('/')}/t/{task.id}"
    if page is not None:
        address = checked_address(page, "page")
    return address + ("" if code is None else f"#{code_text(code)}")


def checked_address(text: str, name: str) -> str:
    """Return a web address, or refuse another text; `name` names it in the message."""
    try:
        parts = urlsplit(text)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        fits = False
    if not fits or "#" in text or "@" in text or not text.isprintable() or " " in text:
        raise InvalidInput(f"`{name}` must look like https://collect.example.org; got {shown(text[:100])}")
    return text


def links_csv(links: Sequence[str]) -> str:
    """Return links as CSV, each with a number."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["number", "link"])
    writer.writerows(enumerate(links, start=1))
    return out.getvalue()


def qr_svgs(links: Iterable[str]) -> Iterator[str]:
    """Yield each link as a QR code in inline SVG.

    Every mask of the standard can be read, and looking for the best one takes nine tenths of the time. Links of one
    task differ only in their secret letters, so all use the mask that is best for the first.
    """
    import segno  # of an extra, which nothing but a QR code needs

    mask: int | None = None
    for link in links:
        code, out = segno.make(link, error="m", micro=False, mask=mask), io.BytesIO()
        mask = code.mask
        code.save(out, kind="svg", xmldecl=False, svgns=True, omitsize=True, border=4)
        yield out.getvalue().decode("utf-8").strip()


def qr_terminal(link: str) -> str:
    """Return a link as a QR code of block characters."""
    import segno  # as above

    out = io.StringIO()
    segno.make(link, error="l", micro=False).terminal(out, compact=True)
    return out.getvalue()
