"""One-time codes: drawn, hashed for the store, and printed as links and letters with QR codes."""

from __future__ import annotations

import csv
import hashlib
import html
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import urlsplit

from shuffledp.collection.asked import Question
from shuffledp.collection.fields import to_base64
from shuffledp.collection.promised import in_language
from shuffledp.collection.task import CODE, PostedTask
from shuffledp.errors import InvalidInput, shown

MOST_CODES = 10_000_000
_WORDS = {
    "en": ("You are invited to answer", "Scan this with your phone, or type the address:", "The address works once."),
    "de": (
        "Sie sind eingeladen zu antworten",
        "Bitte mit dem Telefon aufnehmen oder die Adresse eintippen:",
        "Die Adresse gilt einmal.",
    ),
    "fr": (
        "Vous êtes invité à répondre",
        "Scannez ceci avec votre téléphone, ou tapez l’adresse :",
        "L’adresse sert une fois.",
    ),
}
_ASKED = {
    "en": ("What is asked:", "one of", "any of", "from {low} to {high}", "and {count} more"),
    "de": ("Gefragt wird:", "eines von", "beliebige von", "von {low} bis {high}", "und {count} weitere"),
    "fr": ("Ce qui est demandé :", "l’une de", "n’importe lesquelles de", "de {low} à {high}", "et {count} autres"),
}
_LISTED = 12
"""Answers of a question that a letter lists."""
_STYLE = """
body{font:12pt/1.5 serif;margin:0}
section{page-break-after:always;padding:2cm;max-width:17cm}
h1{font-size:18pt}
ol{font-size:10pt;margin:0;padding-left:1.2em}
svg{width:5cm;height:5cm;display:block;margin:.5cm 0}
code{font-size:10pt;overflow-wrap:anywhere}
"""


def draw_codes(count: int) -> list[bytes]:
    """Draw one-time codes of 16 random bytes.

    Parameters
    ----------
    count : int
        How many, from 1 to 1e7.

    Raises
    ------
    InvalidInput
        If the number is out of range.
    """
    if not 1 <= count <= MOST_CODES:
        raise InvalidInput(f"draw 1 to {MOST_CODES} codes; got {count}")
    return [os.urandom(CODE) for _ in range(count)]


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
    return address + ("" if code is None else f"#{to_base64(code)}")


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


def letters_html(task: PostedTask, links: Sequence[str], language: str | None = None) -> str:
    """Write printable letters, one page a link, each with a QR code.

    Parameters
    ----------
    task : PostedTask
        The task.
    links : sequence of str
        One a letter.
    language : str, optional
        Of the letters; the first of the task's languages for which there are words by default, else English.

    Returns
    -------
    str
        One HTML document that loads nothing from elsewhere.
    """
    draft = task.draft
    known = next((name for name in draft.languages if name in _WORDS), "en") if language is None else language
    if known not in _WORDS:
        raise InvalidInput(f"letters are written in {', '.join(_WORDS)}; got {shown(language)}")
    invited, scan, once = (html.escape(text) for text in _WORDS[known])
    title, organizer = html.escape(in_language(draft.title, known)), html.escape(draft.organizer)
    asked = "".join(f"<li>{html.escape(_in_words(question, known))}</li>" for question in draft.questions)
    asked = f"<p>{html.escape(_ASKED[known][0])}</p><ol>{asked}</ol>"
    pages = [
        f"<section><h1>{title}</h1><p>{invited}: {organizer}</p>{asked}<p>{scan}</p>{code}"
        f"<p><code>{html.escape(link)}</code></p><p>{once}</p><p>{html.escape(draft.contact)}</p></section>"
        for link, code in zip(links, qr_svgs(links), strict=True)
    ]
    return (
        f'<!doctype html><html lang="{known}"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body>{''.join(pages)}</body></html>\n"
    )


def _in_words(question: Question, language: str) -> str:
    """Say what a question asks and which answers it takes."""
    _, one, some, between, rest = _ASKED[language]
    text = in_language(question.text, language)
    if question.kind == "number":
        ends = (f"{end:g}".replace(".", "." if language == "en" else ",") for end in (question.low, question.high))
        return f"{text} ({between.format(**dict(zip(('low', 'high'), ends, strict=True)))})"
    lists = (question.rows, question.columns) if question.kind == "table" else (question.choices,)
    said: list[str] = []
    for texts in lists:
        names = [in_language(each, language) for each in texts[:_LISTED]]
        if len(texts) > _LISTED:
            names.append(rest.format(count=len(texts) - _LISTED))
        said.append(f"{some if question.kind == 'several' else one}: {', '.join(names)}")
    return f"{text} ({'; '.join(said)})"


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
