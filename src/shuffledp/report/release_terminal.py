"""Releases on a terminal: the answer, its interval, the guarantee, and one sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shuffledp.accounting import certify
from shuffledp.report.amounts import amounts_table
from shuffledp.report.items import NOTHING, all_notes, chosen, items_table
from shuffledp.report.remarks import people
from shuffledp.report.rows import (
    CONFIDENCE,
    BinRow,
    FrequencyRow,
    bin_rows,
    frequency_rows,
    in_bins,
    interval_words,
    quantile_rows,
    quantile_words,
)
from shuffledp.report.terminal import NOT_PRIVATE, print_guarantee
from shuffledp.report.wording import PROJECTED, count, near, points, share, unit, with_error

if TYPE_CHECKING:
    from shuffledp.releases.release import Release

MOST_ROWS = 60
"""Categories, bins and coordinates that a table on the terminal lists."""
BAR = 12
"""Characters of the longest bar."""


@dataclass(frozen=True)
class Shown:
    """What is shown besides the answer and its guarantee.

    Parameters
    ----------
    simplex : bool
        The nearest shares that could be, beside the unbiased ones.
    simultaneous : bool
        Intervals that hold together.
    bounds : bool
        The bounds that were consulted.
    published : bool
        Every published bound among them.
    counts : bool
        Counts beside shares, and sums beside means.
    """

    simplex: bool = False
    simultaneous: bool = False
    bounds: bool = False
    published: bool = False
    counts: bool = False

    def complete(self, release: Release) -> Release:
        """Compute the published bounds too, if they are to be shown; the certified interval is not touched by them."""
        if not self.published:
            return release
        guarantee = certify(release.guarantee.setting, release.guarantee.delta, published=True)
        return replace(release, guarantee=guarantee)

    def of(self, release: Release) -> Shown:
        """Show intervals together where they can only hold together."""
        return replace(self, simultaneous=True) if chosen(release) else self

    @property
    def interval(self) -> str:
        """Heading of the intervals."""
        return f"{CONFIDENCE:.0%} interval" + (", all together" if self.simultaneous else ", one by one")


def print_release(console: Console, release: Release, shown: Shown) -> None:
    """Print a release: answer with interval, guarantee, and what a reader must know.

    Parameters
    ----------
    console : Console
        Where to.
    release : Release
        Of any question.
    shown : Shown
        What is shown besides.
    """
    shown = shown.of(release)
    _PRINT[release.question.name](console, release, shown)
    if shown.counts:
        print_amounts(console, {"": release}, shown)
    if not release.private:
        console.print(NOT_PRIVATE, style="bold red")
    for note in [*all_notes(release), *([PROJECTED] if shown.simplex else [])]:
        console.print(note, highlight=False)
    console.print()
    print_guarantee(console, release.guarantee, bounds=shown.bounds, counts=unit(release))


def print_amounts(console: Console, releases: Mapping[str, Release], shown: Shown, by: str = "") -> None:
    """Print counts of shares, or sums of means; nothing where there are neither.

    Parameters
    ----------
    console : Console
        Where to.
    releases : mapping of str to Release
        Of one question, by the name of the group.
    shown : Shown
        How intervals are shown.
    by : str
        The column with the groups; "" without groups.
    """
    found = {name: amounts_table(each, shown.interval, simultaneous=shown.simultaneous)
             for name, each in releases.items()}  # fmt: skip
    first = next(iter(found.values()))
    if first is None:
        return
    table = Table(title=f"{first['title'].split()[0]} by {by}" if by else first["title"], title_justify="left")
    for heading in (*([by, "records"] if by else []), *first["headings"]):
        table.add_column(Text(heading), justify="left" if heading in (by, "category", "item") else "right")
    lines: list[list[str]] = []
    for name, part in found.items():
        before = [name, count(releases[name].rows)] if by else []
        for cells in part["rows"] if part is not None else ():
            lines.append([*before, *cells])
            before = [""] * len(before)
    for cells in lines[:MOST_ROWS]:
        table.add_row(*(Text(cell) for cell in cells))
    console.print(table)
    if len(lines) > MOST_ROWS:
        console.print(f"The first {MOST_ROWS} of {count(len(lines))} lines; --json and --csv give all.")


def _number(console: Console, release: Any, shown: Shown) -> None:
    del shown
    low, high = (float(end) for end in release.confidence_interval(CONFIDENCE))
    value, error = float(release.estimate), float(release.standard_error)
    what = "Mean" if release.question.name == "mean" else "Variance"
    if release.clipped:
        what += f" of the values moved into {near(release.question.low)}..{near(release.question.high)}:"
    console.print(
        f"[bold]{what} {with_error(value, error)}[/], standard error {near(error, 2)}, "
        f"{CONFIDENCE:.0%} confidence interval {with_error(low, error)} to {with_error(high, error)} "
        f"({people(release)}, {release.mechanism})",
        highlight=False,
    )
    if release.question.name == "variance":
        console.print(deviation_words(value, low, high), highlight=False)


def deviation_words(value: float, low: float, high: float) -> str:
    """Say what a variance with its interval means for the standard deviation."""
    root, first, last = (near(math.sqrt(max(x, 0.0)), 3) for x in (value, low, high))
    return f"That is a standard deviation of {root}, between {first} and {last}."


def _vector(console: Console, release: Any, shown: Shown) -> None:
    low, high = release.confidence_interval(CONFIDENCE, simultaneous=shown.simultaneous)
    rows = np.column_stack((release.estimate, release.standard_error, low, high))
    table = Table(title=f"Mean vector of {people(release)} ({release.mechanism})", title_justify="left")
    for heading in ("coordinate", "mean", "standard error", shown.interval):
        table.add_column(heading, justify="right")
    for i, (value, error, first, last) in enumerate(rows[:MOST_ROWS].tolist(), start=1):
        ends = f"{with_error(first, error)} to {with_error(last, error)}"
        table.add_row(str(i), with_error(value, error), near(error, 2), ends)
    console.print(table)
    if len(rows) > MOST_ROWS:
        console.print(f"The first {MOST_ROWS} of {count(len(rows))} coordinates; --json and --csv give all.")


def _frequency(console: Console, release: Release, shown: Shown) -> None:
    table = Table(title=f"Frequencies of {people(release)} ({release.mechanism})", title_justify="left")
    for heading in ("category", "frequency", "standard error", shown.interval, *(["projected"] * shown.simplex)):
        table.add_column(heading, justify="left" if heading == "category" else "right")
    rows = frequency_rows(release, simplex=shown.simplex, simultaneous=shown.simultaneous)
    listed = rows if len(rows) <= MOST_ROWS else sorted(rows, key=lambda row: -row.frequency)[:MOST_ROWS]
    for row in listed:
        table.add_row(Text(row.category), *_share_cells(row))
    console.print(table)
    if len(listed) < len(rows):
        console.print(f"The {MOST_ROWS} largest of {count(len(rows))} estimates; --json and --csv give all.")


def _items(console: Console, release: Any, shown: Shown) -> None:
    found = items_table(release, shown.interval)
    title = f"Frequent items of {people(release)} ({release.mechanism})"
    if not found["rows"]:
        console.print(f"{title}: {NOTHING}", highlight=False)
        return
    table = Table(title=title, title_justify="left")
    for heading in found["headings"]:
        table.add_column(heading, justify="left" if heading == "item" else "right")
    for cells in found["rows"][:MOST_ROWS]:
        table.add_row(*(Text(cell) for cell in cells))
    console.print(table)
    if len(found["rows"]) > MOST_ROWS:
        console.print(f"The {MOST_ROWS} largest of {count(len(found['rows']))} items; --json and --csv give all.")


def _share_cells(row: FrequencyRow) -> list[str]:
    cells = [share(row.frequency), points(row.standard_error), interval_words(row)]
    return cells if row.projected is None else [*cells, share(row.projected)]


def _histogram(console: Console, release: Release, shown: Shown) -> None:
    rows = bin_rows(release, simplex=shown.simplex, simultaneous=shown.simultaneous)
    listed = some_bins(rows, MOST_ROWS)
    title = f"Histogram of {people(release)} ({release.mechanism})"
    if len(listed) < len(rows):
        title += f", {len(listed)} of {count(len(rows))} bins; --json and --csv list all"
    table = Table(title=title, title_justify="left")
    for heading in ("bin", "share", "error", shown.interval, *(["projected"] * shown.simplex)):
        table.add_column(heading, justify="right", no_wrap=heading != "bin")  # what gives way are long edges
    table.add_column("", no_wrap=True)
    longest = max(row.frequency for row in listed)
    for row in listed:
        bar = "█" * round(BAR * max(row.frequency, 0.0) / longest) if longest > 0.0 else ""
        table.add_row(row.category, *_share_cells(row), Text(bar, style="cyan"))
    console.print(table)


def some_bins(rows: Sequence[BinRow], most: int) -> list[BinRow]:
    """List at most so many bins, spread evenly, the first and the last among them."""
    if len(rows) <= most:
        return list(rows)
    return [rows[round(i * (len(rows) - 1) / (most - 1))] for i in range(most)]


def _quantiles(console: Console, release: Any, shown: Shown) -> None:
    width = float(release.edges[1] - release.edges[0])
    table = Table(title=f"Quantiles of {people(release)} ({release.mechanism})", title_justify="left")
    for heading in ("share below", "value", shown.interval):
        table.add_column(heading, justify="right")
    for row in quantile_rows(release, simultaneous=shown.simultaneous):
        table.add_row(
            f"{near(100 * row.probability, 6)}%",
            in_bins(row.value, width),
            quantile_words(row, release.edges),
        )
    console.print(table)


_PRINT: Mapping[str, Callable[[Console, Any, Shown], None]] = {
    "mean": _number,
    "variance": _number,
    "vector-mean": _vector,
    "frequency": _frequency,
    "frequent-items": _items,
    "histogram": _histogram,
    "quantiles": _quantiles,
}
