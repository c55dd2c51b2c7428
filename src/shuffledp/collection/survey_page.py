"""The survey page: one HTML document that loads nothing, built from the files in `page/`.

The JavaScript is written as modules, so that node can test them one by one. The page has a single inline script, in
which every module is a function of its own scope; nothing else is changed, so that what a browser runs can be read.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from shuffledp.collection.fields import to_base64
from shuffledp.collection.task import PostedTask
from shuffledp.errors import InvalidInput, shown

SCRIPTS = (
    "keys",
    "hpke",
    "draw",
    "normal",
    "ball",
    "task",
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
"""The modules, each after those it imports."""
LANGUAGES = ("en", "de", "fr")

_IMPORT = re.compile(r'^import \{ (\w+(?:, \w+)*) \} from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function\*?|const) (\w+)", re.MULTILINE)
_ADDRESS = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+")


def survey_page() -> bytes:
    """Return the page that the shuffler serves for every task: the same bytes whatever the task.

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
    """Return the value of the Content-Security-Policy header of `survey_page`.

    Nothing may be loaded, and only the one script and the one style sheet of the page may run, by their hashes.

    Examples
    --------
    >>> content_security_policy().split("; ")[0]
    "default-src 'none'"
    """
    return _policy("'self'") + "; frame-ancestors 'none'"


def page_for(task: PostedTask, server: str) -> bytes:
    """Return one file for one task, to be served by another host than the shuffler's.

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
    """Return every module of the page as JavaScript, by its name; the words of the page are one of them."""
    folder = files("shuffledp.collection") / "page"
    found = {name: (folder / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS if name != "words"}
    words = {language: json.loads((folder / f"{language}.json").read_text(encoding="utf-8")) for language in LANGUAGES}
    sentences = json.loads((files("shuffledp.collection") / "promises.json").read_text(encoding="utf-8"))
    found["words"] = f"export const WORDS = {_literal(words)};\nexport const PROMISES = {_literal(sentences)};\n"
    return found


def in_scope(name: str, source: str) -> str:
    """Write a module as a function that runs at once and returns what the module exports."""
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
        before, found, after = document.partition(mark)
        if not found:
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
    """Return the source of a policy that lets one inline script or style run: its SHA-256."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _literal(value: object) -> str:
    """Write JSON that may stand in a script: no ``</`` ends it early."""
    return json.dumps(value, ensure_ascii=False, indent=1).replace("</", "<\\/")
