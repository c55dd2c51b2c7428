"""The pages of the service: the survey page, which surveys are open, and that a link names none.

They load nothing and repeat nothing of the request. The survey page is one HTML document, built from the files in
`page/`. The JavaScript is written as modules, so that node can test them one by one. The page has a single inline
script, in which every module is a function of its own scope; nothing else is changed, so that what a browser runs can
be read. A program that does not ask for HTML gets JSON.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files

from shuffledp.collection.fields import to_base64
from shuffledp.collection.task import PostedTask
from shuffledp.errors import InvalidInput, printable, shown

SCRIPTS = (
    "keys",
    "hpke",
    "draw",
    "normal",
    "doubles",
    "ball",
    "task",
    "order",
    "report",
    "keep",
    "send",
    "words",
    "promise",
    "release",
    "notice",
    "view",
    "steps",
    "outcome",
    "survey",
)
"""Names of the JavaScript modules, each after those it imports."""
LANGUAGES = ("en", "de", "fr")

_IMPORT = re.compile(r'^import \{ (\w+(?:, \w+)*) \} from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function\*?|const) (\w+)", re.MULTILINE)
_ADDRESS = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+")


def survey_page() -> bytes:
    """Return the page that the shuffler serves for every task, with the same bytes for all tasks.

    Returns
    -------
    bytes
        An HTML document. It reads the task's name from its own address, ``/t/ID``.

    Examples
    --------
    >>> survey_page()[:15]
    b'<!doctype html>'
    """
    return _page("").encode()


def content_security_policy() -> str:
    """Return the Content-Security-Policy header of `survey_page`.

    Nothing may be loaded, and only the one script and the one style sheet of the page may run, by their hashes.

    Examples
    --------
    >>> content_security_policy().split("; ")[0]
    "default-src 'none'"
    """
    return _policy("'self'") + "; frame-ancestors 'none'"


def page_for(task: PostedTask, server: str) -> bytes:
    """Return a page for one task as a single file, to be served by a host other than the shuffler's.

    It holds the posted task itself, and its policy allows no connection but to `server`.

    Parameters
    ----------
    task : PostedTask
        The task.
    server : str
        Origin of the shuffler, such as ``"https://collect.example.org"``.

    Raises
    ------
    InvalidInput
        If `server` is no origin, or a key of the task protects nothing.
    """
    task.check_keys()
    if not _ADDRESS.fullmatch(server):
        raise InvalidInput(f"the server must be an origin such as https://collect.example.org; got {shown(server)}")
    held = json.dumps({"server": server, "id": task.id, "posted": to_base64(task.data)})
    policy = f'<meta http-equiv="Content-Security-Policy" content="{_policy(server)}">\n'
    data = f'<script type="application/json" id="task">{held}</script>\n'
    return _page(policy + data).encode()


@cache
def modules() -> Mapping[str, str]:
    """Return every module of the page as JavaScript, by its name, including the module of the page's words."""
    folder = files("shuffledp.collection") / "page"
    sources = {name: (folder / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS if name != "words"}
    words = {language: json.loads((folder / f"{language}.json").read_text(encoding="utf-8")) for language in LANGUAGES}
    sentences = json.loads((files("shuffledp.collection") / "promises.json").read_text(encoding="utf-8"))
    sources["words"] = f"export const WORDS = {_literal(words)};\nexport const PROMISES = {_literal(sentences)};\n"
    return sources


def in_scope(name: str, source: str) -> str:
    """Return a JavaScript module as a function that runs at once and stores its exports as ``modules.NAME``.

    Parameters
    ----------
    name : str
        Name of the module.
    source : str
        Its source; imports become look-ups in ``modules``.
    """
    exported = [match[2] for match in _EXPORT.finditer(source)]
    body = _EXPORT.sub(r"\1 \2", _IMPORT.sub(r"const { \1 } = modules.\2;", source))
    if re.search(r"^(import|export)\b", body, re.MULTILINE):
        raise AssertionError(f"{name}.js imports or exports in a way that this page cannot hold")
    return f"modules.{name} = (() => {{\n{body}return {{ {', '.join(exported)} }};\n}})();\n"


@cache
def _parts() -> tuple[str, str, str]:
    """Return document, style and script of the page."""
    folder = files("shuffledp.collection") / "page"
    script = "\nconst modules = {};\n" + "\n".join(in_scope(name, modules()[name]) for name in SCRIPTS)
    style = "\n" + (folder / "survey.css").read_text(encoding="utf-8")
    return (folder / "survey.html").read_text(encoding="utf-8"), style, script


def _page(head: str) -> str:
    document, style, script = _parts()
    for mark, part in (("<!--head-->\n", head), ("/*style*/", style), ("/*script*/", script)):
        before, separator, after = document.partition(mark)
        if not separator:
            raise AssertionError(f"survey.html has no place for {mark}")
        document = before + part + after
    return document


def _policy(server: str) -> str:
    _, style, script = _parts()
    return (
        f"default-src 'none'; script-src {hash_of(script)}; style-src {hash_of(style)}; connect-src {server}; "
        "base-uri 'none'; form-action 'none'"
    )


def hash_of(text: str) -> str:
    """Return the expression by which a Content-Security-Policy allows one inline script or style: its SHA-256.

    ``text`` is the content of the script or style.
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _literal(value: object) -> str:
    """Return JSON that may be embedded in a script, in which no ``</`` ends it early."""
    return json.dumps(value, ensure_ascii=False, indent=1).replace("</", "<\\/")


LONGEST_HEADER = 200
"""Largest number of bytes read from a header that names languages or kinds of documents."""


def wants_html(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Return whether the client is a browser: its Accept header names HTML.

    Examples
    --------
    >>> wants_html([(b"accept", b"text/html,*/*;q=0.8")]), wants_html([(b"accept", b"*/*")])
    (True, False)
    """
    return b"text/html" in _header(headers, b"accept")


def language_of(headers: Sequence[tuple[bytes, bytes]]) -> str:
    """Return the first language of the Accept-Language header in which the pages exist, else English.

    Examples
    --------
    >>> language_of([(b"accept-language", b"es, fr-CH;q=0.9, en;q=0.8")]), language_of([])
    ('fr', 'en')
    """
    language_ranges = _header(headers, b"accept-language").decode("latin-1").lower().split(",")
    wanted = [name.strip()[:2] for name in language_ranges]
    return next((name for name in wanted if name in LANGUAGES), LANGUAGES[0])


def front_page(tasks: Sequence[tuple[str, Mapping[str, str]]], language: str) -> bytes:
    """Return the page that lists the open surveys.

    Parameters
    ----------
    tasks : sequence of (str, mapping)
        Name and titles by language of every open task.
    language : {"en", "de", "fr"}
        Language of the page; a title is in it if the task has it.

    Returns
    -------
    bytes
        An HTML document.
    """
    words = _words()[language]
    entries = [(name, *_title(titles, language)) for name, titles in tasks]
    items = "".join(
        f'<li><a href="t/{escape(name)}" lang="{escape(spoken)}">{escape(printable(title))}</a></li>\n'
        for name, spoken, title in entries
    )
    listed = f"<p>{words['open']}</p>\n<ul>\n{items}</ul>" if items else f"<p>{words['none']}</p>"
    return _front_page(language, words["title"], f"{listed}\n<p>{words['about']}</p>")


def unknown_page(language: str) -> bytes:
    """Return the page for an address that names nothing.

    Parameters
    ----------
    language : {"en", "de", "fr"}
        Language of the page.

    Returns
    -------
    bytes
        An HTML document, to be sent with status 404.
    """
    words = _words()[language]
    return _front_page(language, words["unknownTitle"], f"<p>{words['unknown']}</p>")


@cache
def front_policy() -> str:
    """Return the Content-Security-Policy header of both pages, which allows one style sheet and nothing else."""
    return (
        f"default-src 'none'; style-src {hash_of(_style())}; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )


def _front_page(language: str, title: str, body: str) -> bytes:
    return (
        f'<!doctype html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="robots" content="noindex">\n'
        f"<title>{title}</title>\n<style>{_style()}</style>\n</head>\n<body>\n"
        f'<main>\n<header class="title"><h1>{title}</h1></header>\n{body}\n</main>\n</body>\n</html>\n'
    ).encode()


def _title(titles: Mapping[str, str], language: str) -> tuple[str, str]:
    """Return a task's title and its language."""
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
