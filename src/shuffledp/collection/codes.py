"""One-time codes: drawn, hashed for the store, and written as links and QR codes."""

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

MOST_CODES = 10_000_000
SHORT = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Letters of a short code, of which none looks like another (Crockford's base 32)."""
_SHORT_LETTERS = 12
_SHORT_BYTES = 8
"""Bytes that a short code fills; those before them are 0."""


def draw_codes(count: int, *, short: bool = False) -> list[bytes]:
    """Draw one-time codes of 16 bytes, of which 128 bits are random, or 60 in short ones.

    Parameters
    ----------
    count : int
        How many, from 1 to 1e7.
    short : bool
        Whether they are to be typed: twelve letters and digits. Nobody guesses one of them over the network (of
        10,000 codes a thousand tries a second for a year hit one with a chance of 3e-4); a thief of the store, who has
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
    """Write a code as people type it: a short one in three groups, any other in base64url.

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
    """Read a code, short or long; None if it is none. Small letters, spaces, O for 0 and I or L for 1 do no harm.

    Examples
    --------
    >>> read_code("oooo 0000 002l") == bytes(15) + b"A", read_code("0000-0000") is None
    (True, True)
    """
    found = from_base64(text.strip())
    if found is not None and len(found) == CODE:
        return found
    plain = re.sub(r"[\s-]", "", text.upper()).translate(str.maketrans("OIL", "011"))
    if len(plain) != _SHORT_LETTERS or not set(plain) <= set(SHORT):
        return None
    value = 0
    for letter in plain:
        value = 32 * value + SHORT.index(letter)
    return value.to_bytes(CODE)


def code_hash(code: bytes) -> bytes:
    """Return what the store keeps of a code: its SHA-256."""
    return hashlib.sha256(code).digest()


def link_of(task: PostedTask, server: str, code: bytes | None = None, *, page: str | None = None) -> str:
    """Return the link to a task; the code stands behind #, which browsers do not send to servers.

    Parameters
    ----------
    task : PostedTask
        The task.
    server : str
        Such as ``"https://example.org"``.
    code : bytes, optional
        A one-time code.
    page : str, optional
        Address of the task's page on another host (`shuffledp task page`); it stands in the place of the shuffler's.

    Raises
    ------
    InvalidInput
        If an address is none of the web, or has a part after #.
    """
    address = f"{checked_address(server, 'server').rstrip('/')}/t/{task.id}"
    if page is not None:
        address = checked_address(page, "page")
    return address + ("" if code is None else f"#{code_text(code)}")


def checked_address(text: str, name: str) -> str:
    """Return an address of the web, or raise InvalidInput; `name` is what it is called in the message."""
    try:
        parts = urlsplit(text)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        fits = False
    if not fits or "#" in text or "@" in text or not text.isprintable() or " " in text:
        raise InvalidInput(f"`{name}` must look like https://collect.example.org; got {shown(text[:100])}")
    return text


def links_csv(links: Sequence[str]) -> str:
    """Write links as CSV with a number each."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["number", "link"])
    writer.writerows(enumerate(links, start=1))
    return out.getvalue()


def qr_svgs(links: Iterable[str]) -> Iterator[str]:
    """Draw each link as a QR code: inline SVG.

    Every mask of the standard can be read, and looking for the best one takes nine tenths of the time. Links of one
    task are alike but for their secret letters, so all take the mask that is best for the first.
    """
    import segno  # of an extra, which nothing but a QR code needs

    mask: int | None = None
    for link in links:
        code, out = segno.make(link, error="m", micro=False, mask=mask), io.BytesIO()
        mask = code.mask
        code.save(out, kind="svg", xmldecl=False, svgns=True, omitsize=True, border=4)
        yield out.getvalue().decode("utf-8").strip()


def qr_terminal(link: str) -> str:
    """Draw a link as a QR code of block letters."""
    import segno  # as above

    out = io.StringIO()
    segno.make(link, error="l", micro=False).terminal(out, compact=True)
    return out.getvalue()
