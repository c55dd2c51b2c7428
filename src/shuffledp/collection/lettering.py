"""Letters to print, one page a code: invitations, and reminders that go to everybody.

A reminder goes to every code, also to those that are used. Only the shuffler's store knows which codes are used, and it
tells nobody: whoever prints letters for the unused codes alone, and knows whose they are, learns who has answered.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Literal
from urllib.parse import urldefrag

from shuffledp.collection.asked import SurveyQuestion
from shuffledp.collection.codes import qr_svgs
from shuffledp.collection.fields import write_time
from shuffledp.collection.promise import in_language
from shuffledp.collection.task import PostedTask
from shuffledp.errors import InvalidInput, shown
from shuffledp.whole_files import csv_table

LANGUAGES = ("en", "de", "fr")
LONGEST_TEMPLATE = 1 << 20
NAMES = ("title", "organizer", "contact", "closes", "privacy_notice", "questions", "page", "link", "code", "qr")
"""Names that a template may contain between two braces on each side."""
_ASKED = {
    "en": ("What is asked:", "one of:", "any of:", "from {low} to {high}", "and {count} more"),
    "de": ("Gefragt wird:", "eines von:", "beliebig viele von:", "von {low} bis {high}", "und {count} weitere"),
    "fr": ("Ce qui est demandé :", "l’une de :", "n’importe lesquelles de :", "de {low} à {high}", "et {count} autres"),
}
_LISTED = 12
"""Largest number of answers to a question that a letter lists."""
_PLACE = re.compile(r"\{\{\s*([\w-]*)\s*\}\}")
_STYLE = """
body{font:12pt/1.5 serif;margin:0;overflow-wrap:anywhere}
section{page-break-after:always;padding:2cm;max-width:17cm}
h1{font-size:18pt}
ol{font-size:10pt;margin:0;padding-left:1.2em}
svg{width:5cm;height:5cm;display:block;margin:.5cm 0}
code{font-size:10pt}
@media screen and (max-width:600px){section{padding:1rem}}
"""

Kind = Literal["invitation", "reminder"]


def template_of(kind: Kind, language: str) -> str:
    """Return the default letter, an HTML text with ``{{ name }}`` where something is filled in.

    Parameters
    ----------
    kind : {"invitation", "reminder"}
        The kind of letter.
    language : str
        "en", "de" or "fr".

    Raises
    ------
    InvalidInput
        If there is none in that language.
    """
    if language not in LANGUAGES:
        raise InvalidInput(f"letters are written in {', '.join(LANGUAGES)}; got {shown(language)}")
    return (files("shuffledp.collection") / "letters" / f"{kind}.{language}.html").read_text(encoding="utf-8")


def check_template(template: str) -> None:
    """Refuse a template with unknown names, or without the code, its link or its QR code."""
    named = _PLACE.findall(template)
    if unknown := [name for name in named if name not in NAMES]:
        raise InvalidInput(f"the letter names {{{{ {unknown[0]} }}}}; it may name {', '.join(NAMES)}")
    if not {"link", "code", "qr"} & set(named):
        raise InvalidInput("the letter bears no code: write {{ qr }}, {{ link }} or {{ code }} where it shall stand")


def letters_html(
    task: PostedTask,
    links: Sequence[str],
    language: str | None = None,
    *,
    kind: Kind = "invitation",
    template: str | None = None,
) -> str:
    """Return printable letters, one page for each link, with a QR code.

    Parameters
    ----------
    task : PostedTask
        The task.
    links : sequence of str
        One for each letter, each with its code after #.
    language : str, optional
        Language of the letters; by default the first of the task's languages that has letters, else English.
    kind : {"invitation", "reminder"}
        The kind of letter.
    template : str, optional
        An edited letter, as `template_of` returns one.

    Returns
    -------
    str
        One HTML document that loads nothing from elsewhere.

    Raises
    ------
    InvalidInput
        If there is no letter in the language, or the template is not allowed.
    """
    draft = task.draft
    letter_language = (
        next((name for name in draft.languages if name in LANGUAGES), "en") if language is None else language
    )
    letter = template_of(kind, letter_language) if template is None else template
    check_template(letter)
    title = in_language(draft.title, letter_language)
    same = {
        "title": title,
        "organizer": draft.organizer,
        "contact": draft.contact,
        "closes": f"{write_time(draft.closes)[:16].replace('T', ' ')} UTC",
        "privacy_notice": draft.privacy_notice,
    }
    plain = {name: html.escape(text) for name, text in same.items()}
    questions = "".join(f"<li>{html.escape(_in_words(question, letter_language))}</li>" for question in draft.questions)
    plain["questions"] = f"<p>{html.escape(_ASKED[letter_language][0])}</p><ol>{questions}</ol>"
    pages: list[str] = []
    for link, picture in zip(links, qr_svgs(links), strict=True):
        page, code = urldefrag(link)
        own = plain | {name: html.escape(text) for name, text in (("link", link), ("page", page), ("code", code))}
        own["qr"] = picture
        pages.append(f"<section>{_PLACE.sub(lambda match, own=own: own[match[1]], letter)}</section>")
    return (
        f'<!doctype html><html lang="{letter_language}"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body>{''.join(pages)}</body></html>\n"
    )


def links_of_csv(text: str, task: PostedTask) -> list[str]:
    """Return the links of a task from the CSV that `task codes --links` wrote; further columns are ignored.

    Parameters
    ----------
    text : str
        The file's content.
    task : PostedTask
        The task to which they must lead, unless they lead to a page on another host.

    Raises
    ------
    InvalidInput
        If there is no column ``link``, or a link has no code or leads to another task.
    """
    names, rows = csv_table(text, "the links")
    if "link" not in names:
        raise InvalidInput("the file of links has no column named link; take the one that task codes --links wrote")
    links = [row["link"] for row in rows]
    for link in links:
        page, code = urldefrag(link)
        if not code or ("/t/" in page and not page.endswith(f"/t/{task.id}")):
            raise InvalidInput(f"this link is none with a code of this task: {shown(page[:100])}")
    if not links:
        raise InvalidInput("the file of links holds none")
    return links


def _in_words(question: SurveyQuestion, language: str) -> str:
    """Return a question and its possible answers in words."""
    _, one, some, between, rest = _ASKED[language]
    text = in_language(question.text, language)
    if question.kind == "number":
        ends = (f"{end:g}".replace(".", "." if language == "en" else ",") for end in (question.low, question.high))
        return f"{text} ({between.format(**dict(zip(('low', 'high'), ends, strict=True)))})"
    lists = (question.rows, question.columns) if question.kind == "table" else (question.choices,)
    answers: list[str] = []
    for texts in lists:
        names = [in_language(each, language) for each in texts[:_LISTED]]
        if len(texts) > _LISTED:
            names.append(rest.format(count=len(texts) - _LISTED))
        answers.append(f"{some if question.kind == 'several' else one} {', '.join(names)}")
    return f"{text} ({'; '.join(answers)})"
