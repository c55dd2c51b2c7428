"""What a difference of two releases tells: for a terminal, as JSON, and as a page with its checklist."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shuffledp.errors import printable
from shuffledp.questions.frequency import Frequency
from shuffledp.questions.mean import Mean
from shuffledp.questions.ranges import Histogram
from shuffledp.questions.vectors import VectorMean
from shuffledp.questions.view import CONFIDENCE, Entry, Shape
from shuffledp.report import wording
from shuffledp.report.answer import taken_as_people
from shuffledp.report.checklist import ONE_PROGRAM, OPEN, OTHERS, SEVERAL_ROWS, TABLE, TIMES, Point, points
from shuffledp.report.page import page_template
from shuffledp.report.svg import bars_picture, histogram_picture, mean_picture
from shuffledp.report.wording import count, near, probability, share, up, with_error
from shuffledp.setting import SEEN_MEANING

if TYPE_CHECKING:
    from shuffledp.releases.difference import Difference


# A difference of two releases: as JSON, on a terminal, and as a page.

MOST_ROWS = 60
"""Categories, bins and coordinates that the table on the terminal lists."""


SHAPES: dict[str, Shape] = {each.name: each.shape for each in (Frequency, Histogram, Mean, VectorMean)}
"""Of the questions whose answers have a difference."""
NO_ROOM = "The deltas of the two leave no room at this delta; name a larger --delta."


def difference_notes(found: Difference) -> list[str]:
    """Say for whom the guarantee holds, and how an interval is read."""
    who = (
        "Nobody is in both, so the larger cost holds for everybody."
        if found.disjoint
        else "This holds for people who are in both, if both releases were fixed before the first answer was seen."
    )
    besides = (
        "Counted are these two answers alone. The same people answered other questions in the same run, which cost "
        "more on top: shuffledp total composes all that the files hold."
    )
    alone = not (found.before.besides or found.after.besides)
    read = "Where an interval contains 0, the noise alone may have made the difference."
    owned = taken_as_people([found.before.unit, found.after.unit])
    return [who, *([] if alone else [besides]), *owned, read]


def direction(names: tuple[str, str]) -> str:
    """Say which of two releases is subtracted from which.

    Parameters
    ----------
    names : tuple of str
        What the two are called.

    Examples
    --------
    >>> direction(("north", "south"))
    'The numbers of north are subtracted from those of south: above 0 means that south has more.'
    """
    before, after = names
    return f"The numbers of {before} are subtracted from those of {after}: above 0 means that {after} has more."


def difference_to_json(found: Difference, names: tuple[str, str], *, simultaneous: bool = False) -> dict[str, Any]:
    """Build the object that `shuffledp difference --json` prints.

    Parameters
    ----------
    found : Difference
        Of two releases.
    names : tuple of str
        What the two are called.
    simultaneous : bool
        Whether the intervals hold together.
    """
    return {
        "question": found.before.question,
        "direction": direction(names),
        "n": [found.before.n, found.after.n],
        "estimates": [
            label | {"before": before, "after": after, "difference": value, "standard_error": error,
                     "confidence_interval": [low, high]}
            for label, (before, after, value, error, low, high) in zip(
                labels_of(found), numbers_of(found, simultaneous), strict=True
            )
        ],
        "confidence": CONFIDENCE,
        "simultaneous": simultaneous,
        "disjoint": found.disjoint,
        "epsilon": {"upper": found.epsilon},
        "delta": found.delta,
        "notes": difference_notes(found),
    }  # fmt: skip


def difference_table(found: Difference, names: tuple[str, str], *, simultaneous: bool) -> tuple[str, list[str]]:
    """Return title and headings of the table of a difference.

    Parameters
    ----------
    found : Difference
        Of two releases.
    names : tuple of str
        What the two are called.
    simultaneous : bool
        Whether the intervals hold together.
    """
    first = shape_of(found).label
    several = np.size(found.analysis.value) > 1
    together = (", all together" if simultaneous else ", one by one") if several else ""
    title = f"{names[1]} minus {names[0]}" + (", in percentage points" if shape_of(found).scale == "share" else "")
    return title, [
        *([first] if first else []),
        *names,
        "difference",
        "standard error",
        f"{CONFIDENCE:.0%} interval{together}",
    ]


def difference_lines(found: Difference, *, simultaneous: bool) -> Iterator[list[str]]:
    """Yield the lines of the table, as `difference_table` heads them; arguments as there."""
    for label, numbers in zip(labels_of(found), numbers_of(found, simultaneous), strict=True):
        cells = _share_cells(*numbers) if shape_of(found).scale == "share" else _cells(*numbers)
        yield [*([shown_label(label)] if label else []), *cells]


def print_difference(console: Console, found: Difference, names: tuple[str, str], *, simultaneous: bool) -> None:
    """Print both answers, their difference with its interval, and the guarantee of both together.

    Parameters
    ----------
    console : Console
        Where to.
    found : Difference
        Of two releases.
    names : tuple of str
        What the two are called.
    simultaneous : bool
        Whether the intervals hold together.
    """
    title, headings = difference_table(found, names, simultaneous=simultaneous)
    table = Table(title=Text(title), title_justify="left")
    for heading in headings:
        table.add_column(Text(heading), justify="left" if heading == "category" else "right")
    lines = list(difference_lines(found, simultaneous=simultaneous))
    for cells in lines[:MOST_ROWS]:
        table.add_row(*map(Text, cells))
    console.print(table)
    if len(lines) > MOST_ROWS:
        console.print(f"The first {MOST_ROWS} of {count(len(lines))}; --json gives all.")
    console.print(direction(names), highlight=False, markup=False)
    together = f"Both together: epsilon at most {up(found.epsilon)} at delta = {probability(found.delta)}"
    console.print(f"[bold]{together}[/]", highlight=False)
    if found.epsilon == float("inf"):
        console.print(NO_ROOM, highlight=False)
    for note in difference_notes(found):
        console.print(note, highlight=False)


def shape_of(found: Difference) -> Shape:
    """Return what both answers have in common."""
    return SHAPES[found.before.question]


def shown_label(label: dict[str, Any]) -> str:
    """Return a category, the edges of a bin, or a coordinate, as people read it."""
    return " to ".join(str(value) if isinstance(value, str) else near(value) for value in label.values())


def labels_of(found: Difference) -> Iterator[dict[str, Any]]:
    """Yield what names each number: category, edges, coordinate; empty for a single number."""
    keys, labels = shape_of(found).keys, found.before.labels
    for label in labels if labels is not None else range(np.size(found.analysis.value)):
        if len(keys) == 1:
            yield {keys[0]: label if labels is None else str(label)}
        else:
            yield dict(zip(keys, label, strict=True)) if keys else {}  # type: ignore[call-overload]


def numbers_of(found: Difference, simultaneous: bool) -> list[list[float]]:
    """List before, after, difference, standard error, low and high end, a line for each label."""
    low, high = found.confidence_interval(CONFIDENCE, simultaneous=simultaneous)
    columns = (found.before.analysis.value, found.after.analysis.value, found.estimate, found.standard_error, low, high)
    return np.column_stack([np.atleast_1d(column) for column in columns]).tolist()


def _share_cells(before: float, after: float, value: float, error: float, low: float, high: float) -> list[str]:
    points = (f"{100.0 * value:+.2f}", f"{100.0 * error:.2f}", f"{100.0 * low:+.2f} to {100.0 * high:+.2f}")
    return [share(before), share(after), *points]


def _cells(before: float, after: float, value: float, error: float, low: float, high: float) -> list[str]:
    ends = f"{with_error(low, error)} to {with_error(high, error)}"
    return [*(with_error(x, error) for x in (before, after, value)), near(error, 2), ends]


# The checklist of NIST SP 800-226 for pages that are not about estimates from one table; see `checklist`.

SHUFFLER = (
    "The shuffler must mix uniformly, strip names, times and order, and not side with the analyzer; if it does side "
    "with the analyzer, only the local budget protects."
)


def difference_checklist(found: Difference) -> list[Point]:
    """Answer the questions for a difference of two releases.

    Parameters
    ----------
    found : Difference
        Of two releases.
    """
    sides = (found.before, found.after)
    settings = [side.setting for side in sides]
    views = sorted({SEEN_MEANING[setting.seen] for setting in settings if setting is not None})
    table = all(side.unit != "reports" for side in sides)
    return points(
        _difference_unit(found),
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
        _difference_parameters(found),
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
        [*difference_notes(found), OTHERS],
    )  # fmt: skip


def _difference_unit(found: Difference) -> Iterator[str]:
    units = {found.before.unit, found.after.unit}
    if units == {"people"}:
        yield "One person, with all rows that were used."
    else:
        yield "One person who sent one report." if units == {"reports"} else "One row of each table."
        yield f"{OPEN}{SEVERAL_ROWS}" if "rows" in units else f"{OPEN}whether anybody sent several reports."
    if not found.disjoint:
        yield f"{OPEN}whether a row of one table is its owner's row of the other; the cost of both holds in any case."


def _difference_parameters(found: Difference) -> Iterator[str]:
    delta = wording.probability(found.delta)
    yield f"Both together: epsilon at most {wording.up(found.epsilon)} at delta = {delta}, certified."
    for name, side in (("the first", found.before), ("the second", found.after)):
        cost, at = wording.up(side.spending.epsilon), wording.probability(side.spending.delta)
        yield f"Of these {name} alone: epsilon at most {cost} at delta = {at}."
    if math.isinf(found.epsilon):
        yield f"{OPEN}a delta at which a finite epsilon holds."
    if found.delta * max(found.before.n, found.after.n) >= 1.0:
        yield f"{OPEN}a delta below 1/n; this one allows one person's record to be published."


# A difference of two releases as one self-contained HTML page.

_ROWS_OF_A_PAGE = 400
"""Lines of the table that a page lists."""


MOST_BARS = 60
"""Categories that a picture shows."""


def difference_page(
    heading: str, found: Difference, names: tuple[str, str], *, simultaneous: bool, command: str, version: str
) -> str:
    """Write the page.

    Parameters
    ----------
    heading : str
        Title of the page.
    found : Difference
        Of two releases.
    names : tuple of str
        What the two are called.
    simultaneous : bool
        Whether the intervals hold together.
    command, version : str
        What made the page.

    Returns
    -------
    str
        An HTML document that loads nothing from elsewhere.
    """
    title, headings = difference_table(found, names, simultaneous=simultaneous)
    rows = list(difference_lines(found, simultaneous=simultaneous))
    remark = f"The first {_ROWS_OF_A_PAGE} of {wording.count(len(rows))} lines." if len(rows) > _ROWS_OF_A_PAGE else ""
    page = page_template("difference.html").render(
        heading=heading,
        title=title,
        direction=direction(names),
        question=found.before.question.replace("-", " "),
        confidence=f"{CONFIDENCE:.0%}",
        picture=_picture(found, simultaneous),
        table={"headings": headings, "rows": rows[:_ROWS_OF_A_PAGE], "remark": remark},
        sides=list(zip(names, (found.before, found.after), strict=True)),
        found=found,
        notes=[*([NO_ROOM] if math.isinf(found.epsilon) else []), *difference_notes(found)],
        checklist=difference_checklist(found),
        command=command,
        version=version,
        dated=datetime.now(UTC).date().isoformat(),
    )
    return printable(page, "\n")


def _picture(found: Difference, simultaneous: bool) -> Markup | None:
    """Draw the differences with their intervals; None of vectors and of very many categories."""
    numbers, drawn = numbers_of(found, simultaneous), shape_of(found).picture
    if drawn is None:
        return None
    if drawn.kind == "point":
        _, _, value, _, low, high = numbers[0]
        return Markup(mean_picture(value, low, high, found.analysis.support, 0.0 if low <= 0.0 <= high else None))
    entries = [
        Entry(shown_label(label), *line[2:], label=tuple(label.values()))
        for label, line in zip(labels_of(found), numbers, strict=True)
    ]
    if drawn.kind == "bins":
        return Markup(histogram_picture(entries, what="Differences"))
    return Markup(bars_picture(entries, None, what="Difference in share")) if len(entries) <= MOST_BARS else None
