"""`difference`: two releases, or two groups, read from their files and subtracted."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shuffledp import __version__
from shuffledp.accounting import check_delta
from shuffledp.cli.ledger import LONGEST_RESULT, UNREADABLE, check_format, read_guarantee, setting_of
from shuffledp.errors import InvalidInput, path_shown, shown
from shuffledp.questions.estimate import Estimate
from shuffledp.questions.mean import LongTailedEstimate
from shuffledp.releases.difference import Difference, Side, check_question, subtract
from shuffledp.report.difference import difference_page, difference_to_json, print_difference
from shuffledp.report.to_json import dumps
from shuffledp.shell.output import COMMAND_LINE, console, reserved, working
from shuffledp.whole_files import read_bytes

# The two sides of a difference, read from what releases printed with --json.

Known = dict[str, Any]


def side_of_file(path: Path, question: str | None) -> Side:
    """Read the release of one question.

    Parameters
    ----------
    path : Path
        What mean, frequency, histogram, vector-mean, release or open printed with --json.
    question : str or None
        Which of several questions: a column, the question and its column, a survey's text, or a place from 1 on.

    Raises
    ------
    InvalidInput
        If it is no such file, several questions fit, or it is a simulation.
    """
    known = _object(path)
    if "groups" in known:
        raise InvalidInput(f"{path_shown(path)} holds groups; name two of them with --between A B, and this file alone")
    if "releases" not in known:
        return _side(path, known)
    several = known["releases"]
    if not isinstance(several, list) or not several or not all(isinstance(entry, dict) for entry in several):  # pyright: ignore[reportUnknownVariableType]
        raise _bad(path)
    return _side(path, _chosen(path, several, question), besides=len(several) - 1)  # pyright: ignore[reportUnknownArgumentType]


def side_of_group(path: Path, name: str) -> Side:
    """Read the release to one group.

    Parameters
    ----------
    path : Path
        What a question with --by printed with --json.
    name : str
        The group.

    Raises
    ------
    InvalidInput
        If the file holds no groups, or none of this name.
    """
    try:
        groups: dict[str, Known] = {str(group["group"]): group for group in _object(path)["groups"]}
    except (KeyError, TypeError):
        raise InvalidInput(
            f"{path_shown(path)} holds no groups; --between needs what a question with --by printed with --json"
        ) from None
    if name not in groups:
        raise InvalidInput(
            f"--between names {shown(name)}, none of the groups of {path_shown(path)}: {', '.join(groups)}"
        )
    return _side(path, groups[name])


def holds_several(path: Path) -> bool:
    """Whether a file answers several questions."""
    return isinstance(_object(path).get("releases"), list)


def check_apart(files: Sequence[Path]) -> None:
    """Refuse two files of one task of a collection: all its batches hold the same reports, so the same noise.

    Parameters
    ----------
    files : sequence of Path
        Those that are compared.

    Raises
    ------
    InvalidInput
        If two are of one task.
    """
    collections = [_object(path).get("collection") for path in files]
    tasks = [str(known.get("id")) for known in collections if isinstance(known, dict)]  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    if len(set(tasks)) < len(tasks):
        raise InvalidInput(
            "both files are of one task, whose batches hold the same reports; a difference needs two releases, each "
            "with noise of its own"
        )


def _bad(path: Path) -> InvalidInput:
    return InvalidInput(
        f"{path_shown(path)} is no release of one question; name what mean, frequency, histogram, vector-mean, release "
        "or open of this version printed with --json"
    )


def _object(path: Path) -> Known:
    try:
        known = json.loads(read_bytes(path, "the file", LONGEST_RESULT))
    except UNREADABLE as error:
        if isinstance(error, InvalidInput):
            raise
        raise _bad(path) from None
    if not isinstance(known, dict):
        raise _bad(path)
    check_format(known, path)
    return known  # pyright: ignore[reportUnknownVariableType]


def _chosen(path: Path, several: Sequence[Known], question: str | None) -> Known:
    """Return the one of several releases that a name means."""
    if question is None and len(several) == 1:
        return several[0]
    listed = ", ".join(f"{place} {_title(entry)}" for place, entry in enumerate(several, start=1))
    if question is None:
        raise InvalidInput(f"{path_shown(path)} answers several questions; choose one with --question: {listed}")
    wanted = " ".join(question.split()).casefold()
    found = [entry for entry in several if wanted in _names(entry)]
    if not found and wanted.isdecimal() and 1 <= int(wanted) <= len(several):
        found = [several[int(wanted) - 1]]
    if len(found) != 1:
        what = "several" if found else "none"
        raise InvalidInput(
            f"--question {shown(question)} means {what} of the questions of {path_shown(path)}; name one of them, by "
            f"column, question and column, or place: {listed}"
        )
    return found[0]


def _names(entry: Known) -> set[str]:
    """Return what a question may be called."""
    column, kind = str(entry.get("column", entry.get("text", ""))), str(entry.get("question", ""))
    return {" ".join(name.split()).casefold() for name in (column, f"{kind} {column}")}


def _title(entry: Known) -> str:
    """Question and column, or a survey's text."""
    return f"{entry.get('question')} {shown(entry.get('column', entry.get('text')))}"


def _side(path: Path, entry: Known, besides: int = 0) -> Side:
    """Read one release; whatever is not as a release prints it is refused."""
    try:
        if entry["private"] is not True:
            raise InvalidInput(f"{path_shown(path)} is a simulation, which protects nobody; leave it out")
        question, cost, _ = read_guarantee(entry)
        check_question(question)
        labels, value, error = _answer(question, entry)
        low, high = (float(end) for end in entry["range"])
        step = float(entry["step"])
        kind = {False: Estimate, True: LongTailedEstimate}[entry["long_tailed"]]
        n, uninformative = int(entry["n"]), int(entry["uninformative"])
        unit = str(entry["unit"]).partition(",")[0]
    except UNREADABLE as problem:
        if isinstance(problem, InvalidInput):
            raise
        raise _bad(path) from None
    numbers = (*np.ravel(value), *np.ravel(error), low, high, step)
    if not (all(map(math.isfinite, numbers)) and low < high and step > 0.0 and bool(np.all(error > 0.0))):
        raise _bad(path)
    analysis = kind(value, error, step, (low, high), uninformative)
    return Side(question, labels, analysis, n, cost, setting_of(entry), unit, besides)


def _answer(question: str, entry: Known) -> tuple[tuple[Hashable, ...] | None, Any, Any]:
    """Return labels, values and standard errors."""
    if question == "mean":
        return None, np.array(float(entry["estimate"])), np.array(float(entry["standard_error"]))
    rows = entry["estimates"]
    name = "estimate" if question == "vector-mean" else "frequency"
    value, error = (np.array([float(row[key]) for row in rows]) for key in (name, "standard_error"))
    if question == "vector-mean":
        return None, value, error
    labels = tuple(row["category"] if question == "frequency" else (row["low"], row["high"]) for row in rows)
    return labels, value, error


# `difference`: two releases of one question, read from what they printed with --json.


@dataclass(frozen=True)
class Compared:
    """What is subtracted from what.

    Parameters
    ----------
    files : list of Path
        Two files, or one of groups.
    between : tuple of str or None
        Two groups of one file.
    question : str or None
        Which of several questions.
    delta : float
        Central delta of both together.
    disjoint : bool
        Whether nobody is in both files.
    """

    files: list[Path]
    between: tuple[str, str] | None
    question: str | None
    delta: float
    disjoint: bool

    def check(self) -> None:
        """Refuse what is not two releases."""
        check_delta(self.delta)
        if len(self.files) != (2 if self.between is None else 1):
            raise InvalidInput(
                f"difference needs two files, or one file of groups with --between A B; got {len(self.files)}"
                + ("" if self.between is None else " with --between")
            )
        twice = (
            self.between[0] == self.between[1]
            if self.between is not None
            else self.files[0].resolve() == self.files[1].resolve()
        )
        if twice:  # the noise of both would be the same noise, and the interval is that of independent ones
            raise InvalidInput("difference needs two releases, each with noise of its own; got the same one twice")
        if self.question is not None and not any(map(holds_several, self.files)):
            raise InvalidInput(
                "--question chooses among the several questions of a file of release or open, and there is none; "
                "leave it out"
            )

    def found(self) -> tuple[Difference, tuple[str, str]]:
        """Subtract the first from the second; return what both are called, too."""
        if self.between is not None:
            before, after = (side_of_group(self.files[0], name) for name in self.between)
            return subtract(before, after, delta=self.delta, disjoint=True), self.between
        before, after = (side_of_file(path, self.question) for path in self.files)
        check_apart(self.files)
        first, second = (path.name for path in self.files)
        names = ("before", "after") if first == second else (first, second)
        return subtract(before, after, delta=self.delta, disjoint=self.disjoint), names


def run_difference(
    asked: Compared, *, simultaneous: bool, as_json: bool, report: Path | None, title: str | None
) -> None:
    """Subtract the first from the second, and say what both cost together."""
    asked.check()
    with reserved(report, "--report") as page:
        with working("Subtracting"):
            found, names = asked.found()
        if page is not None:
            heading = title or "A difference of two private estimates"
            made = {"command": COMMAND_LINE.get(), "version": __version__}
            page.write(difference_page(heading, found, names, simultaneous=simultaneous, **made))
    if as_json:
        print(dumps(difference_to_json(found, names, simultaneous=simultaneous)))
        return
    print_difference(console(), found, names, simultaneous=simultaneous)
    if report is not None:
        console().print(f"Written: {report.resolve()}", soft_wrap=True, highlight=False)
