"""`release`: several questions, read from words or from a file, asked in one pass, shown on one page."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape

from shuffledp import __version__
from shuffledp.accounting import drawn_profile
from shuffledp.cli.estimate import Typed, check_stated, completed, read_people, read_terms, tell_local
from shuffledp.errors import InvalidInput, path_shown, shown
from shuffledp.questions.question import question_type
from shuffledp.releases.release import JointRelease
from shuffledp.releases.terms import Ask
from shuffledp.releases.verb import release
from shuffledp.report.answer import title_of
from shuffledp.report.terminal import Shown, print_release
from shuffledp.report.to_json import dumps, release_to_json
from shuffledp.report.wording import probability, up
from shuffledp.shell.output import COMMAND_LINE, console, outputs, working
from shuffledp.whole_files import read_bytes

LONGEST_QUESTIONS = 1 << 20
"""Bytes of a file of questions."""

ITEMS = ("candidates", "max_length", "alphabet", "cut", "false_positives")
KINDS = ("frequency", "frequent-items", "mean", "variance", "histogram", "quantiles")
"""What a question in a file may be."""
KEYS = {"column", "text", "kind", "choices", "low", "high", "step", "bins", "at", "family", "mechanism",
        "missing_as", "other", "clip", *ITEMS}  # fmt: skip
"""What a question in a file may say; text, step and the kinds choice and number are a survey's."""


def run_together(typed: Typed) -> None:
    """Ask the questions and show the answers.

    Parameters
    ----------
    typed : mapping
        The options.
    """
    check_stated(typed)
    asked = [] if typed["questions"] is None else read_questions(typed["questions"])
    asked += [parse_ask(text) for text in typed["ask"] or ()]
    if not asked:
        raise InvalidInput("there is no question; name a file with --questions, or ask with --ask")
    people = read_people(typed)
    with outputs({"--report": typed["report"], "--board": typed["board"]}) as files:
        with working(f"Certifying, reading {typed['table'].name}, randomizing, counting") as progress:
            found = release(asked, people, read_terms(typed, progress))
        assert isinstance(found, JointRelease)
        files.write("--report", lambda page: page.write(_page(typed, asked, found)))
        files.write("--board", lambda page: page.write(_board(typed, found)))
        files.show(lambda: _show(typed, asked, found, files.written))


def _board(typed: Typed, found: JointRelease) -> str:
    from shuffledp.cli.board import board_of

    several = f"{len(found.releases)} answers" if len(found.releases) > 1 else "One answer"
    people = "people" if typed["person"] is not None else "rows, taken as people"
    heading = typed["title"] or f"{several}, and what they promise"
    return board_of([each.guarantee for each in found.releases], found.epsilon, heading, people=people)


def parse_ask(text: str) -> Ask:
    """Read --ask: the question, its column, and what belongs to it.

    Parameters
    ----------
    text : str
        Such as ``"mean hours 0 99"``; quotes keep words together.

    Raises
    ------
    InvalidInput
        If it is no question.
    """
    bad = InvalidInput(
        f'--ask must be like "frequency vote yes,no", "mean hours 0 99", "variance hours 0 99", '
        f'"histogram hours 0 100 10", "quantiles hours 0 100 0.25,0.5" or "frequent-items dest 3 upper"; got '
        f"{shown(text)}"
    )
    try:
        kind, column, *rest = shlex.split(text)
        return Ask(question_type(kind).told(rest), column)
    except ValueError as error:
        if isinstance(error, InvalidInput) and error.parameter != "kind":
            raise
        raise bad from None


def read_questions(path: Path) -> list[Ask]:
    """Read the ``[[questions]]`` of a TOML file; whatever else a survey says is not looked at.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    InvalidInput
        If it is no TOML, or a question is not as it must be.
    """
    name = path_shown(path)
    try:
        known = tomllib.loads(read_bytes(path, "the file of questions", LONGEST_QUESTIONS).decode("utf-8"))
    except (ValueError, OverflowError, RecursionError) as error:
        raise InvalidInput(f"{name} is not TOML as expected: {error}") from None
    entries = known.get("questions")
    if not isinstance(entries, list) or not entries:
        raise InvalidInput(f"{name} has no [[questions]]; write one for each question, with its column")
    return [_question(entry, f"{name}, question {place}") for place, entry in enumerate(entries, start=1)]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _question(entry: Any, where: str) -> Ask:
    if not isinstance(entry, dict) or not isinstance(entry.get("column"), str):  # pyright: ignore[reportUnknownMemberType]
        raise InvalidInput(f"{where} needs its column, such as column = 'vote'")
    said: dict[str, Any] = entry
    unknown = sorted(set(said) - KEYS)
    if unknown:
        raise InvalidInput(f"{where} says {shown(unknown[0])}, which is unknown; known are {', '.join(sorted(KEYS))}")
    kind = str(said.get("kind", "frequency" if "choices" in said else "mean"))
    kind = {"choice": "frequency", "number": "mean"}.get(kind, kind)
    try:
        if kind not in KINDS:
            raise InvalidInput(f"kind must be one of {', '.join(KINDS)}; got {shown(kind)}")
        if "choices" in said:
            said = {**said, "categories": [_first(choice) for choice in said["choices"]]}
        question = question_type(kind).typed(said)
        family = said.get("mechanism", said.get("family"))
        mechanism = None if family is None else str(family).partition(":")[0]
        return Ask(
            question, said["column"], mechanism, said.get("missing_as"), said.get("other"), bool(said.get("clip"))
        )
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from None


def _first(text: Any) -> Any:
    """Return a text, or the first of its languages."""
    return next(iter(text.values())) if isinstance(text, dict) and text else text  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType, reportUnknownArgumentType]


def _together(found: JointRelease) -> str:
    several = len(found.releases)
    which = "The one answer" if several == 1 else f"All {several} answers together"
    return (
        f"{which}: central epsilon at most {up(found.epsilon)} at delta = "
        f"{probability(found.delta)}, certified before a record was read."
    )


def _show(typed: Typed, asked: Sequence[Ask], found: JointRelease, written: Sequence[Path]) -> None:
    if typed["json"]:
        together = {
            "epsilon": {"upper": found.epsilon},
            "delta": found.delta,
            "levels": [{"epsilon0": level.epsilon0, "epsilon": {"upper": level.epsilon}} for level in found.levels],
        }
        listed = [
            {"column": ask.value, **release_to_json(each)} for ask, each in zip(asked, found.releases, strict=True)
        ]
        print(dumps({"question": "release", "private": found.releases[0].private, "together": together,
                     "releases": listed}))  # fmt: skip
        return
    published = typed["bounds"] == "all"
    shown_besides = Shown(
        bounds=typed["verbose"] or typed["bounds"] is not None,
        counts=typed["counts"],
    )
    out = console()
    out.print(f"[bold]{_together(found)}[/]", highlight=False)
    for level in found.levels if len(found.levels) > 1 else ():
        out.print(f"  people of budget {level.epsilon0:g}: at most {up(level.epsilon)}", highlight=False)
    for ask, each in zip(asked, found.releases, strict=True):
        out.print()
        out.print(f"[bold]{escape(title_of(each, str(ask.value)))}[/]", highlight=False)
        print_release(out, completed(each, published=published), shown_besides)
    tell_local(typed, found.releases[0].guarantee)
    for path in written:
        out.print(f"Written: {path.resolve()}", soft_wrap=True, highlight=False)


def _page(typed: Typed, asked: Sequence[Ask], found: JointRelease) -> str:
    from shuffledp.report.answer import Answer
    from shuffledp.report.page import render

    answers = [
        Answer(
            title_of(each, str(ask.value)),
            each.guarantee,
            each,
            counts=typed["counts"],
            profile=drawn_profile(each.guarantee),
        )
        for ask, each in zip(asked, found.releases, strict=True)
    ]
    return render(
        typed["title"] or "Private estimates",
        answers,
        command=COMMAND_LINE.get(),
        version=__version__,
        remark=_together(found),
    )
