"""A difference of two releases: as JSON, on a terminal, and as a page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shuffledp.report.remarks import taken_as_people
from shuffledp.report.rows import CONFIDENCE
from shuffledp.report.wording import count, near, probability, share, up, with_error

if TYPE_CHECKING:
    from shuffledp.releases.difference import Difference

MOST_ROWS = 60
"""Categories, bins and coordinates that the table on the terminal lists."""
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


def difference_to_json(found: Difference, *, simultaneous: bool = False) -> dict[str, Any]:
    """Build the object that `shuffledp difference --json` prints.

    Parameters
    ----------
    found : Difference
        Of two releases.
    simultaneous : bool
        Whether the intervals hold together.
    """
    return {
        "question": found.before.question,
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
    first = next(iter(next(iter(labels_of(found)))), None)
    several = np.size(found.analysis.value) > 1
    together = (", all together" if simultaneous else ", one by one") if several else ""
    title = f"{names[1]} minus {names[0]}" + (", in percentage points" if is_of_shares(found) else "")
    start = [] if first is None else ["bin" if first == "low" else first]
    return title, [*start, *names, "difference", "standard error", f"{CONFIDENCE:.0%} interval{together}"]


def difference_lines(found: Difference, *, simultaneous: bool) -> Iterator[list[str]]:
    """Yield the lines of the table, as `difference_table` heads them; arguments as there."""
    for label, numbers in zip(labels_of(found), numbers_of(found, simultaneous), strict=True):
        cells = _share_cells(*numbers) if is_of_shares(found) else _cells(*numbers)
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
    console.print(
        f"The numbers of {names[0]} are subtracted from those of {names[1]}: above 0 means that {names[1]} has more.",
        highlight=False,
        markup=False,
    )
    together = f"Both together: epsilon at most {up(found.epsilon)} at delta = {probability(found.delta)}"
    console.print(f"[bold]{together}[/]", highlight=False)
    if found.epsilon == float("inf"):
        console.print(NO_ROOM, highlight=False)
    for note in difference_notes(found):
        console.print(note, highlight=False)


def is_of_shares(found: Difference) -> bool:
    """Whether shares are compared."""
    return found.before.question in ("frequency", "histogram")


def shown_label(label: dict[str, Any]) -> str:
    """Return a category, the edges of a bin, or a coordinate, as people read it."""
    return " to ".join(str(value) if isinstance(value, str) else near(value) for value in label.values())


def labels_of(found: Difference) -> Iterator[dict[str, Any]]:
    """Yield what names each number: category, edges, coordinate; empty for a single number."""
    kind, labels = found.before.question, found.before.labels
    for label in labels if labels is not None else range(np.size(found.analysis.value)):
        if kind == "histogram":
            low, high = label  # type: ignore[misc]
            yield {"low": low, "high": high}
        elif kind == "frequency":
            yield {"category": str(label)}
        else:
            yield {} if kind == "mean" else {"coordinate": label}


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
