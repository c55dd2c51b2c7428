"""`difference`: two releases, or two groups, read from their files, subtracted and shown."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shuffledp import __version__
from shuffledp.cli.ledger import LONGEST_RESULT, UNREADABLE, check_format, read_guarantee, setting_of
from shuffledp.errors import InvalidInput, check_delta, path_shown, printable, shown
from shuffledp.questions.estimate import CountEstimate, Estimate
from shuffledp.questions.mean import LongTailedEstimate
from shuffledp.questions.question import CONFIDENCE, SHUFFLED, AnswerLine, Shape, Task, question_type
from shuffledp.questions.tally import tally_for
from shuffledp.releases.difference import Difference, Side, check_question, subtract
from shuffledp.report import wording
from shuffledp.report.answer import by_inequality, taken_as_people
from shuffledp.report.checklist import ONE_PROGRAM, OPEN, OTHERS, SEVERAL_ROWS, TABLE, TIMES, Point, points
from shuffledp.report.page import bars_picture, histogram_picture, mean_picture, page_template
from shuffledp.report.to_json import dumps
from shuffledp.report.wording import count, interval_with_error, near, probability, share, up, with_error
from shuffledp.setting import SEEN_MEANING, Setting
from shuffledp.shell.output import COMMAND_LINE, console, reserved, working
from shuffledp.whole_files import read_bytes

# A difference of two releases: as JSON, on a terminal, and as a page.

MOST_ROWS = 60
"""Largest number of categories, bins or coordinates in the table on the terminal."""


NO_ROOM = "The deltas of the two leave no room at this delta; name a larger --delta."


def difference_notes(difference: Difference, *, simultaneous: bool = False) -> list[str]:
    """Return sentences on whom the guarantee protects, and on how to read an interval; see `difference_table`."""
    who = (
        "Nobody is in both, so the larger cost holds for everybody."
        if difference.disjoint
        else "This holds for people who are in both, if both releases were fixed before the first answer was seen."
    )
    besides = (
        "Counted are these two answers alone. The same people answered other questions in the same run, which cost "
        "more on top: shuffledp total composes all that the files hold."
    )
    alone = not (difference.before.besides or difference.after.besides)
    read = "Where an interval contains 0, the noise alone may have made the difference."
    owned = taken_as_people([difference.before.unit, difference.after.unit])
    why = by_inequality(difference.analysis, simultaneous=simultaneous)
    return [who, *([] if alone else [besides]), *owned, *why, read]


def direction(names: tuple[str, str]) -> str:
    """Return a sentence that says which of two releases is subtracted from which.

    Parameters
    ----------
    names : tuple of str
        Names of the two releases.

    Examples
    --------
    >>> direction(("north", "south"))
    'The numbers of north are subtracted from those of south: above 0 means that south has more.'
    """
    before, after = names
    return f"The numbers of {before} are subtracted from those of {after}: above 0 means that {after} has more."


def difference_to_json(difference: Difference, names: tuple[str, str], *, simultaneous: bool = False) -> dict[str, Any]:
    """Return the object that `shuffledp difference --json` prints.

    Parameters
    ----------
    difference : Difference
        The difference of two releases.
    names : tuple of str
        Names of the two releases.
    simultaneous : bool
        Whether the intervals hold together.
    """
    return {
        "question": difference.before.question,
        "direction": direction(names),
        "n": [difference.before.n, difference.after.n],
        "estimates": [
            label | {"before": before, "after": after, "difference": value, "standard_error": error,
                     "confidence_interval": [low, high]}
            for label, (before, after, value, error, low, high) in zip(
                labels_of(difference), numbers_of(difference, simultaneous), strict=True
            )
        ],
        "confidence": CONFIDENCE,
        "simultaneous": simultaneous,
        "disjoint": difference.disjoint,
        "epsilon": {"upper": difference.epsilon},
        "delta": difference.delta,
        "notes": difference_notes(difference, simultaneous=simultaneous),
    }  # fmt: skip


def difference_table(difference: Difference, names: tuple[str, str], *, simultaneous: bool) -> tuple[str, list[str]]:
    """Return title and headings of the table of a difference.

    Parameters
    ----------
    difference : Difference
        The difference of two releases.
    names : tuple of str
        Names of the two releases.
    simultaneous : bool
        Whether the intervals hold together.
    """
    first = shape_of(difference).label
    several = np.size(difference.analysis.value) > 1
    together = (", all together" if simultaneous else ", one by one") if several else ""
    title = f"{names[1]} minus {names[0]}" + (", in percentage points" if shape_of(difference).scale == "share" else "")
    return title, [
        *([first] if first else []),
        *names,
        "difference",
        "standard error",
        f"{CONFIDENCE:.0%} interval{together}",
    ]


def difference_lines(difference: Difference, *, simultaneous: bool) -> Iterator[list[str]]:
    """Yield the rows of the table of `difference_table`, as texts under its headings; arguments as there."""
    for label, numbers in zip(labels_of(difference), numbers_of(difference, simultaneous), strict=True):
        cells = _share_cells(*numbers) if shape_of(difference).scale == "share" else _cells(*numbers)
        yield [*([shown_label(label)] if label else []), *cells]


def print_difference(console: Console, difference: Difference, names: tuple[str, str], *, simultaneous: bool) -> None:
    """Print both answers, their difference with its interval, and the guarantee of both together.

    Parameters
    ----------
    console : Console
        The console to print on.
    difference : Difference
        The difference of two releases.
    names : tuple of str
        Names of the two releases.
    simultaneous : bool
        Whether the intervals hold together.
    """
    title, headings = difference_table(difference, names, simultaneous=simultaneous)
    table = Table(title=Text(title), title_justify="left")
    for heading in headings:
        table.add_column(Text(heading), justify="left" if heading == "category" else "right")
    lines = list(difference_lines(difference, simultaneous=simultaneous))
    for cells in lines[:MOST_ROWS]:
        table.add_row(*map(Text, cells))
    console.print(table)
    if len(lines) > MOST_ROWS:
        console.print(f"The first {MOST_ROWS} of {count(len(lines))}; --json gives all.")
    console.print(direction(names), highlight=False, markup=False)
    together = f"Both together: epsilon at most {up(difference.epsilon)} at delta = {probability(difference.delta)}"
    console.print(f"[bold]{together}[/]", highlight=False)
    if difference.epsilon == float("inf"):
        console.print(NO_ROOM, highlight=False)
    for note in difference_notes(difference, simultaneous=simultaneous):
        console.print(note, highlight=False)


def shape_of(difference: Difference) -> Shape:
    """Return the shape that both answers have in common."""
    return question_type(difference.before.question).shape


def shown_label(label: dict[str, Any]) -> str:
    """Return the label of an entry as a text: a category, the edges of a bin, or a coordinate."""
    if "coordinate" in label:
        return str(label.get("column", label["coordinate"] + 1))
    return " to ".join(str(value) if isinstance(value, str) else near(value) for value in label.values())


def labels_of(difference: Difference) -> Iterator[dict[str, Any]]:
    """Yield the label of each number of a difference as a dict, such as ``{"category": "yes"}``.

    It is empty for a single number, and has two keys for the edges of a bin.
    """
    keys, labels = shape_of(difference).keys, difference.before.labels
    if keys == ("coordinate",) and labels is not None:
        yield from ({"coordinate": place, "column": str(name)} for place, name in enumerate(labels))
        return
    for label in labels if labels is not None else range(np.size(difference.analysis.value)):
        if len(keys) == 1:
            yield {keys[0]: label if labels is None else str(label)}
        else:
            yield dict(zip(keys, label, strict=True)) if keys else {}  # type: ignore[call-overload]


def numbers_of(difference: Difference, simultaneous: bool) -> list[list[float]]:
    """Return, for each label, the list [before, after, difference, standard error, low end, high end].

    ``simultaneous`` says whether the intervals of all labels hold together.
    """
    low, high = difference.confidence_interval(CONFIDENCE, simultaneous=simultaneous)
    columns = (
        difference.before.analysis.value,
        difference.after.analysis.value,
        difference.estimate,
        difference.standard_error,
        low,
        high,
    )
    return np.column_stack([np.atleast_1d(column) for column in columns]).tolist()


def _share_cells(before: float, after: float, value: float, error: float, low: float, high: float) -> list[str]:
    points = (f"{100.0 * value:+.2f}", f"{100.0 * error:.2f}", f"{100.0 * low:+.2f} to {100.0 * high:+.2f}")
    return [share(before), share(after), *points]


def _cells(before: float, after: float, value: float, error: float, low: float, high: float) -> list[str]:
    cells = (with_error(x, error) for x in (before, after, value))
    return [*cells, near(error, 2), interval_with_error(low, high, error)]


# The checklist of NIST SP 800-226 for pages that are not about estimates from one table; see `checklist`.

SHUFFLER = (
    "The shuffler must mix uniformly, strip names, times and order, and not collude with the analyzer; if it does, "
    "only the local guarantee holds."
)


def difference_checklist(difference: Difference) -> list[Point]:
    """Return the answers to the checklist's questions for a difference of two releases.

    Parameters
    ----------
    difference : Difference
        The difference of two releases.
    """
    sides = (difference.before, difference.after)
    settings = [side.setting for side in sides]
    views = sorted({SEEN_MEANING[setting.seen] for setting in settings if setting is not None})
    table = all(side.unit != "reports" for side in sides)
    return points(
        _difference_unit(difference),
        [
            "The shuffle model, in each release: each record is randomized by itself within its own local budget, then "
            "all reports are mixed. A difference of two answers is computed from what was released, and costs nothing.",
        ],
        [
            "Replacement (bounded differential privacy): one person's records are replaced, in both releases at once "
            f"if the person is in both. The numbers of people ({wording.count(sides[0].n)} and "
            f"{wording.count(sides[1].n)}) are the same in both worlds, and public.",
            "Whether somebody took part is not protected.",
        ],
        _difference_parameters(difference),
        [SHUFFLER, ONE_PROGRAM if table else f"{OPEN}who runs the shuffler, and what keeps it apart."],
        [
            *(f"The analyzer of a release: {view.removeprefix('the analyzer sees ')}." for view in views),
            *([f"{OPEN}what the analyzer saw of a release whose setting is not told in full."]
              if None in settings else []),
            *(["Whoever ran the program: the records themselves."] if table else []),
        ],
        TABLE if table else [f"{OPEN}how long reports are kept."],
        ["Both releases drew their noise by exact integer sampling, keyed by the operating system.", TIMES],
        [f"{OPEN}who may reach the records and the files of both releases, and who may ask again."],
        [*difference_notes(difference), OTHERS],
    )  # fmt: skip


def _difference_unit(difference: Difference) -> Iterator[str]:
    units = {difference.before.unit, difference.after.unit}
    if units == {"people"}:
        yield "One person, with all rows that were used."
    else:
        yield "One person who sent one report." if units == {"reports"} else "One row of each table."
        yield f"{OPEN}{SEVERAL_ROWS}" if "rows" in units else f"{OPEN}whether anybody sent several reports."
    if not difference.disjoint:
        yield f"{OPEN}whether a row of one table is its owner's row of the other; the cost of both holds in any case."


def _difference_parameters(difference: Difference) -> Iterator[str]:
    delta = wording.probability(difference.delta)
    yield f"Both together: epsilon at most {wording.up(difference.epsilon)} at delta = {delta}, certified."
    for name, side in (("the first", difference.before), ("the second", difference.after)):
        cost, at = wording.up(side.spending.epsilon), wording.probability(side.spending.delta)
        yield f"Of these {name} alone: epsilon at most {cost} at delta = {at}."
    if math.isinf(difference.epsilon):
        yield f"{OPEN}a delta at which a finite epsilon holds."
    if difference.delta * max(difference.before.n, difference.after.n) >= 1.0:
        yield f"{OPEN}a delta below 1/n; this one allows one person's record to be published."


# A difference of two releases as one self-contained HTML page.

_ROWS_OF_A_PAGE = 400
"""Largest number of lines of the table on a page."""


MOST_BARS = 60
"""Largest number of categories in a picture."""


def difference_page(
    heading: str, difference: Difference, names: tuple[str, str], *, simultaneous: bool, command: str, version: str
) -> str:
    """Return the page of a difference.

    Parameters
    ----------
    heading : str
        Title of the page.
    difference : Difference
        The difference of two releases.
    names : tuple of str
        Names of the two releases.
    simultaneous : bool
        Whether the intervals hold together.
    command, version : str
        The command, and the version of the library, that made the page.

    Returns
    -------
    str
        An HTML document that loads nothing from elsewhere.
    """
    title, headings = difference_table(difference, names, simultaneous=simultaneous)
    rows = list(difference_lines(difference, simultaneous=simultaneous))
    remark = f"The first {_ROWS_OF_A_PAGE} of {wording.count(len(rows))} lines." if len(rows) > _ROWS_OF_A_PAGE else ""
    page = page_template("difference.html").render(
        heading=heading,
        title=title,
        direction=direction(names),
        question=difference.before.question.replace("-", " "),
        confidence=f"{CONFIDENCE:.0%}",
        picture=_picture(difference, simultaneous),
        table={"headings": headings, "rows": rows[:_ROWS_OF_A_PAGE], "remark": remark},
        sides=list(zip(names, (difference.before, difference.after), strict=True)),
        difference=difference,
        notes=[
            *([NO_ROOM] if math.isinf(difference.epsilon) else []),
            *difference_notes(difference, simultaneous=simultaneous),
        ],
        checklist=difference_checklist(difference),
        command=command,
        version=version,
        dated=datetime.now(UTC).date().isoformat(),
    )
    return printable(page, "\n")


def _picture(difference: Difference, simultaneous: bool) -> Markup | None:
    """Return a picture of the differences with their intervals; None for vectors and for very many categories."""
    numbers, drawn = numbers_of(difference, simultaneous), shape_of(difference).picture
    if drawn is None:
        return None
    if drawn.kind == "point":
        _, _, value, _, low, high = numbers[0]
        return Markup(mean_picture(value, low, high, difference.analysis.support, 0.0 if low <= 0.0 <= high else None))
    entries = [
        AnswerLine(shown_label(label), *line[2:], label=tuple(label.values()))
        for label, line in zip(labels_of(difference), numbers, strict=True)
    ]
    if drawn.kind == "bins":
        return Markup(histogram_picture(entries, what="Differences"))
    return Markup(bars_picture(entries, None, differences=True)) if len(entries) <= MOST_BARS else None


# The two sides of a difference, read from what releases printed with --json.

JsonObject = dict[str, Any]


def side_of_file(path: Path, question: str | None) -> Side:
    """Return the release of one question that a file holds.

    Parameters
    ----------
    path : Path
        Output of mean, frequency, histogram, vector-mean, release or open with --json.
    question : str or None
        Which of several questions: a column, the question and its column, a survey's text, or a place from 1 on.

    Raises
    ------
    InvalidInput
        If it is no such file, several questions fit, or it is a simulation.
    """
    document = _object(path)
    if "groups" in document:
        raise InvalidInput(f"{path_shown(path)} holds groups; name two of them with --between A B, and this file alone")
    if "releases" not in document:
        return _side(path, document)
    several = document["releases"]
    if not isinstance(several, list) or not several or not all(isinstance(entry, dict) for entry in several):  # pyright: ignore[reportUnknownVariableType]
        raise _bad(path)
    return _side(path, _chosen(path, several, question), besides=len(several) - 1)  # pyright: ignore[reportUnknownArgumentType]


def side_of_group(path: Path, name: str) -> Side:
    """Return the release to one group that a file holds.

    Parameters
    ----------
    path : Path
        Output of a question with --by and --json.
    name : str
        Name of the group.

    Raises
    ------
    InvalidInput
        If the file holds no groups, or none of this name.
    """
    try:
        groups: dict[str, JsonObject] = {str(group["group"]): group for group in _object(path)["groups"]}
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
    """Return whether a file answers several questions."""
    return isinstance(_object(path).get("releases"), list)


def check_apart(files: Sequence[Path]) -> None:
    """Refuse two files of one task of a collection: all its batches hold the same reports, so the same noise.

    Parameters
    ----------
    files : sequence of Path
        The files that are compared.

    Raises
    ------
    InvalidInput
        If two files are of one task.
    """
    collections = [_object(path).get("collection") for path in files]
    tasks = [str(collection.get("id")) for collection in collections if isinstance(collection, dict)]  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
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


def _object(path: Path) -> JsonObject:
    try:
        document = json.loads(read_bytes(path, "the file", LONGEST_RESULT))
    except UNREADABLE as error:
        if isinstance(error, InvalidInput):
            raise
        raise _bad(path) from None
    if not isinstance(document, dict):
        raise _bad(path)
    check_format(document, path)
    return document  # pyright: ignore[reportUnknownVariableType]


def _chosen(path: Path, several: Sequence[JsonObject], question: str | None) -> JsonObject:
    """Return the one of several releases that ``question`` names."""
    if question is None and len(several) == 1:
        return several[0]
    listed = ", ".join(f"{place} {_title(entry)}" for place, entry in enumerate(several, start=1))
    if question is None:
        raise InvalidInput(f"{path_shown(path)} answers several questions; choose one with --question: {listed}")
    wanted = " ".join(question.split()).casefold()
    matches = [entry for entry in several if wanted in _names(entry)]
    if not matches and wanted.isdecimal() and 1 <= int(wanted) <= len(several):
        matches = [several[int(wanted) - 1]]
    if len(matches) != 1:
        what = "several" if matches else "none"
        raise InvalidInput(
            f"--question {shown(question)} means {what} of the questions of {path_shown(path)}; name one of them, by "
            f"column, question and column, or place: {listed}"
        )
    return matches[0]


def _names(entry: JsonObject) -> set[str]:
    """Return the names by which a question may be chosen."""
    column, kind = str(entry.get("column", entry.get("text", ""))), str(entry.get("question", ""))
    return {" ".join(name.split()).casefold() for name in (column, f"{kind} {column}")}


def _title(entry: JsonObject) -> str:
    """Return a question's name and column, or a survey question's text."""
    return f"{entry.get('question')} {shown(entry.get('column', entry.get('text')))}"


def _side(path: Path, entry: JsonObject, besides: int = 0) -> Side:
    """Return one release from its JSON object; refuse an object that differs from what a release prints."""
    try:
        if entry["private"] is not True:
            raise InvalidInput(f"{path_shown(path)} is a simulation, which protects nobody; leave it out")
        question, cost, _ = read_guarantee(entry)
        check_question("Mean among those who answered" if "answered_share" in entry else question)
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
    setting = setting_of(entry)
    analysis = _with_law(kind(value, error, step, (low, high), uninformative), setting, n)
    return Side(question, labels, analysis, n, cost, setting, unit, besides)


def _with_law(plain: Estimate, setting: Setting | None, n: int) -> Estimate:
    """Return an estimate with the law of its counts, if the setting states it and the numbers fit it."""
    if setting is None or setting.seen not in SHUFFLED:
        return plain
    try:
        estimate = tally_for(Task(setting.randomizer, setting.budgets, setting.seen)).with_law(plain)
    except InvalidInput:
        return plain
    if not isinstance(estimate, CountEstimate):
        return plain
    low, high = plain.support
    expected = estimate.law.mean(0.0) + estimate.law.slope * (plain.value - low) / (high - low)
    return estimate if estimate.law.n == n and bool(np.all(np.abs(expected - estimate.counts) < 1e-6)) else plain


def _answer(question: str, entry: JsonObject) -> tuple[tuple[Hashable, ...] | None, Any, Any]:
    """Return labels, values and standard errors of a release's JSON object."""
    if question == "mean":
        return None, np.array(float(entry["estimate"])), np.array(float(entry["standard_error"]))
    rows = entry["estimates"]
    name = "estimate" if question == "vector-mean" else "frequency"
    value, error = (np.array([float(row[key]) for row in rows]) for key in (name, "standard_error"))
    if question == "vector-mean":
        return tuple(str(row["column"]) for row in rows if "column" in row) or None, value, error
    labels = tuple(row["category"] if question == "frequency" else (row["low"], row["high"]) for row in rows)
    return labels, value, error


# `difference`: two releases of one question, read from what they printed with --json.


@dataclass(frozen=True)
class Compared:
    """The two releases to subtract, as typed.

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
        """Refuse options that do not name two releases."""
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

    def subtracted(self) -> tuple[Difference, tuple[str, str]]:
        """Return the second release minus the first, and the names of the two."""
        if self.between is not None:
            before, after = (side_of_group(self.files[0], name) for name in self.between)
            return subtract(before, after, delta=self.delta, disjoint=True), self.between
        before, after = (side_of_file(path, self.question) for path in self.files)
        check_apart(self.files)
        first, second = (path.name for path in self.files)
        names = ("before", "after") if first == second else (first, second)
        return subtract(before, after, delta=self.delta, disjoint=self.disjoint), names


def run_difference(
    comparison: Compared, *, simultaneous: bool, as_json: bool, report: Path | None, title: str | None
) -> None:
    """Subtract the first release from the second, and print the difference with the guarantee of both together.

    Parameters
    ----------
    comparison : Compared
        The two releases, as typed.
    simultaneous : bool
        Whether the intervals hold together.
    as_json : bool
        Whether to print JSON.
    report : Path or None
        HTML page to write.
    title : str or None
        Title of the page.
    """
    comparison.check()
    with reserved(report, "--report") as page:
        with working("Subtracting"):
            difference, names = comparison.subtracted()
        if page is not None:
            heading = title or "A difference of two private estimates"
            made = {"command": COMMAND_LINE.get(), "version": __version__}
            page.write(difference_page(heading, difference, names, simultaneous=simultaneous, **made))
    if as_json:
        print(dumps(difference_to_json(difference, names, simultaneous=simultaneous)))
        return
    print_difference(console(), difference, names, simultaneous=simultaneous)
    if report is not None:
        console().print(f"Written: {report.resolve()}", soft_wrap=True, highlight=False)
