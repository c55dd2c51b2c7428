"""The service's pages for people who come without a survey: which surveys are open, and that a link names none.

Both load nothing, run nothing, and repeat nothing of the request. A program that does not ask for HTML gets JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files

from shuffledp.collection.survey_page import LANGUAGES, hash_of
from shuffledp.errors import printable

LONGEST_HEADER = 200
"""Bytes read of a header that names languages or kinds of documents."""


def wants_html(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Tell whether whoever asks is a browser: its Accept header names HTML.

    Examples
    --------
    >>> wants_html([(b"accept", b"text/html,*/*;q=0.8")]), wants_html([(b"accept", b"*/*")])
    (True, False)
    """
    return b"text/html" in _header(headers, b"accept")


def language_of(headers: Sequence[tuple[bytes, bytes]]) -> str:
    """Choose the first language of the Accept-Language header that the pages speak, else English.

    Examples
    --------
    >>> language_of([(b"accept-language", b"es, fr-CH;q=0.9, en;q=0.8")]), language_of([])
    ('fr', 'en')
    """
    asked = _header(headers, b"accept-language").decode("latin-1").lower().split(",")
    wanted = [name.strip()[:2] for name in asked]
    return next((name for name in wanted if name in LANGUAGES), LANGUAGES[0])


def front_page(tasks: Sequence[tuple[str, Mapping[str, str]]], language: str) -> bytes:
    """Write the page that lists the open surveys.

    Parameters
    ----------
    tasks : sequence of (str, mapping)
        Name and titles by language of every open task.
    language : {"en", "de", "fr"}
        Of the page; a title comes in it if the task has it.

    Returns
    -------
    bytes
        An HTML document.
    """
    words = _words()[language]
    found = [(name, *_title(titles, language)) for name, titles in tasks]
    items = "".join(
        f'<li><a href="t/{escape(name)}" lang="{escape(spoken)}">{escape(printable(title))}</a></li>\n'
        for name, spoken, title in found
    )
    listed = f"<p>{words['open']}</p>\n<ul>\n{items}</ul>" if items else f"<p>{words['none']}</p>"
    return _page(language, words["title"], f"{listed}\n<p>{words['about']}</p>")


def unknown_page(language: str) -> bytes:
    """Write the page for an address that names nothing.

    Parameters
    ----------
    language : {"en", "de", "fr"}
        Of the page.

    Returns
    -------
    bytes
        An HTML document, to be sent with status 404.
    """
    words = _words()[language]
    return _page(language, words["unknownTitle"], f"<p>{words['unknown']}</p>")


@cache
def front_policy() -> str:
    """Return the value of the Content-Security-Policy header of both pages: one style sheet, and nothing else."""
    return (
        f"default-src 'none'; style-src {hash_of(_style())}; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )


def _page(language: str, title: str, body: str) -> bytes:
    return (
        f'<!doctype html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="robots" content="noindex">\n'
        f"<title>{title}</title>\n<style>{_style()}</style>\n</head>\n<body>\n"
        f'<main>\n<header class="title"><h1>{title}</h1></header>\n{body}\n</main>\n</body>\n</html>\n'
    ).encode()


def _title(titles: Mapping[str, str], language: str) -> tuple[str, str]:
    """Return a task's title and the language that it is in."""
    spoken = language if language in titles else next(iter(titles))
    return spoken, titles[spoken]


def _header(headers: Sequence[tuple[bytes, bytes]], name: bytes) -> bytes:
    return next((value[:LONGEST_HEADER].lower() for key, value in headers if key == name), b"")


@cache
def _style() -> str:
    return (files("shuffledp.collection") / "page" / "survey.css").read_text(encoding="utf-8")


@cache
def _words() -> dict[str, dict[str, str]]:
    return json.loads((files("shuffledp.collection") / "page" / "front.json").read_text(encoding="utf-8"))
