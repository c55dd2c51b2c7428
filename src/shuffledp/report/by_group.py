"""Releases of public groups: one table of all groups on the terminal and on the page, one object as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shuffledp.report.items import all_notes
from shuffledp.report.release_json import release_to_json
from shuffledp.report.release_terminal import MOST_ROWS, Shown, print_amounts
from shuffledp.report.rows import CONFIDENCE, bin_rows, frequency_rows, in_bins, interval_words, quantile_rows
from shuffledp.report.terminal import NOT_PRIVATE, print_guarantee
from shuffledp.report.to_json import guarantee_to_json
from shuffledp.report.wording import count, counted, near, points, probability, share, unit, up, with_error

if TYPE_CHECKING:
    from shuffledp.releases.margins import Margins
    from shuffledp.releases.release import Release
    from shuffledp.releases.verb import GroupedRelease

PUBLIC = (
    "A person's group is public and is not protected: it selects whose answers hers are mixed with. Within her group "
    "her answer is protected by that group's guarantee."
)


def headings(found: GroupedRelease, interval: str) -> list[str]:
    """Return the headings of the table of all groups."""
    first = {
        "frequency": ["category"],
        "histogram": ["bin"],
        "frequent-items": ["item"],
        "quantiles": ["share below"],
        "vector-mean": ["coordinate"],
    }
    kind = _first(found).question.name
    value = {"frequency": "share", "histogram": "share", "frequent-items": "share", "quantiles": "value"}.get(
        kind, kind.replace("vector-", "")
    )
    error = [] if kind == "quantiles" else ["standard error"]
    return [found.by, "people", *first.get(kind, []), value, *error, interval, "central ε"]


def lines(found: GroupedRelease, *, simultaneous: bool = False) -> Iterator[list[str]]:
    """Yield the lines of the table of all groups, as people read them; a group's name stands in its first line.

    Parameters
    ----------
    found : GroupedRelease
        What was released.
    simultaneous : bool
        Whether the intervals of a group hold together.
    """
    for name, release in found.releases.items():
        before = [str(name), count(release.n)]
        for cells in _cells(release, simultaneous):
            yield [*before, *cells, up(release.guarantee.epsilon.upper)]
            before = ["", ""]


def grouped_notes(found: GroupedRelease) -> list[str]:
    """Say what holds for whom, and what a reader could take for something else."""
    smallest = min(release.n for release in found.releases.values())
    worst = found.releases[found.worst]
    why = ", which is the smallest" if worst.n == smallest else ""
    said = [
        f"Each of the {len(found.releases)} groups was shuffled by itself, and nobody is in two of them: for everybody "
        f"central epsilon is at most {up(found.guarantee.epsilon.upper)} at delta = "
        f"{probability(found.guarantee.delta)}, the number of {found.worst} ({counted(worst.n, 'person', 'people')})"
        f"{why}.",
        PUBLIC,
    ]
    for release in found.releases.values():
        said += [note for note in all_notes(release) if note not in said]
    return said


def grouped_to_json(found: GroupedRelease, *, simplex: bool = False, simultaneous: bool = False) -> dict[str, Any]:
    """Build the object that a question with --by prints with --json.

    Parameters
    ----------
    found : GroupedRelease
        What was released.
    simplex, simultaneous : bool
        As for `release_to_json`.
    """
    return {
        "question": _first(found).question.name,
        "by": found.by,
        "n": found.n,
        "groups": [
            {"group": str(name)} | release_to_json(release, simplex=simplex, simultaneous=simultaneous)
            for name, release in found.releases.items()
        ],
        "worst_group": str(found.worst),
        "notes": grouped_notes(found),
        "private": found.private,
        "guarantee": guarantee_to_json(found.guarantee),
    }


def grouped_parts(
    found: GroupedRelease, *, simultaneous: bool = False, margins: Margins | None = None
) -> dict[str, Any]:
    """Return what the page of groups has besides each group's answer: the table of all, and what holds for whom."""
    names = headings(found, f"{CONFIDENCE:.0%} interval")
    every = list(lines(found, simultaneous=simultaneous))
    remark = PUBLIC
    if margins is not None:
        told = weighted_to_json(found, margins)
        weighted = "; ".join(f"{' '.join(cells[:-2])} ({cells[-1]})" for cells in _weighted_cells(told))
        remark += f" All groups weighted to the margins: {weighted}. {_whom(told)}"
    overview = {"headings": names, "rows": every, "remark": remark}
    return {"remark": grouped_notes(found)[0], "overview": overview}


def print_grouped(console: Console, found: GroupedRelease, shown: Shown) -> None:
    """Print all groups in one table, and the guarantee that holds for everybody.

    Parameters
    ----------
    console : Console
        Where to.
    found : GroupedRelease
        What was released.
    shown : Shown
        What is shown besides.
    """
    shown = shown.of(_first(found))
    names = headings(found, shown.interval)
    table = Table(
        title=f"By {found.by}: {counted(found.n, 'person', 'people')} ({_first(found).mechanism})", title_justify="left"
    )
    for place, heading in enumerate(names):
        table.add_column(heading, justify="left" if place == 0 or heading in ("category", "item") else "right")
    every = list(lines(found, simultaneous=shown.simultaneous))
    for cells in every[:MOST_ROWS]:
        table.add_row(*(Text(cell) for cell in cells))
    console.print(table)
    if len(every) > MOST_ROWS:
        console.print(f"The first {MOST_ROWS} of {count(len(every))} lines; --json and --csv give all.")
    if shown.counts:
        print_amounts(console, {str(name): release for name, release in found.releases.items()}, shown, found.by)
    if not found.private:
        console.print(NOT_PRIVATE, style="bold red")
    for note in grouped_notes(found):
        console.print(Text(note))
    console.print()
    print_guarantee(console, found.guarantee, bounds=shown.bounds, counts=unit(_first(found)))


def weighted_to_json(found: GroupedRelease, margins: Margins) -> dict[str, Any]:
    """Build the object of shares that are weighted to margins.

    Parameters
    ----------
    found : GroupedRelease
        What was released.
    margins : Margins
        Public margins of its groups.
    """
    weighted = found.weighted(margins)
    low, high = weighted.confidence_interval(CONFIDENCE)
    columns = (weighted.value, weighted.standard_error, low, high)
    labels, name = [{"category": str(label)} for label in _first(found).categories or ()], "frequency"
    if not labels:
        labels, name = [{}], "estimate"
    return {
        "estimates": [
            label | {name: value, "standard_error": error, "confidence_interval": [first, last]}
            for label, value, error, first, last in zip(
                labels, *(np.atleast_1d(column).tolist() for column in columns), strict=True
            )
        ],
        "covers": "the people for whom the answers stand",
        "answered": weighted.answered,
        "population": weighted.population,
        "missing": weighted.missing,
    }


def print_weighted(console: Console, found: GroupedRelease, margins: Margins) -> None:
    """Print shares that are weighted to margins, and how many did not answer; see `weighted_to_json`."""
    told = weighted_to_json(found, margins)
    table = Table(title=f"All groups of {found.by}, weighted to the margins", title_justify="left")
    shares = "category" in told["estimates"][0]
    for heading in ("category", "share") if shares else ("mean",):
        table.add_column(heading, justify="left" if heading == "category" else "right")
    for heading in ("standard error", f"{CONFIDENCE:.0%} interval"):
        table.add_column(heading, justify="right")
    for cells in _weighted_cells(told):
        table.add_row(*map(Text, cells))
    console.print(table)
    console.print(Text(_whom(told)))


def _weighted_cells(told: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield category (of shares alone), value, error and interval of each weighted estimate."""
    for row in told["estimates"]:
        error, ends = row["standard_error"], row["confidence_interval"]
        if "category" in row:
            yield row["category"], share(row["frequency"]), points(error), " to ".join(map(share, ends))
        else:
            value, low, high = (with_error(x, error) for x in (row["estimate"], *ends))
            yield value, near(error, 2), f"{low} to {high}"


def _whom(told: dict[str, Any]) -> str:
    """Say whom weighted intervals cover, and how many did not answer."""
    said = "These intervals cover the people for whom the answers stand: noise and sampling are in them."
    if told["missing"] is not None:
        said += f" {count(told['missing'])} of {count(told['population'])} people did not answer."
    return f"{said} Those who did not answer are taken to be like the others of their group."


def _first(found: GroupedRelease) -> Release:
    return next(iter(found.releases.values()))


def _cells(release: Any, simultaneous: bool) -> Iterator[list[str]]:
    """Yield label, value, error and interval of each line of one group."""
    kind = release.question.name
    if kind in ("frequency", "frequent-items", "histogram"):
        rows = (bin_rows if kind == "histogram" else frequency_rows)(release, simultaneous=simultaneous)
        for row in rows:
            yield [
                row.category,
                share(row.frequency),
                points(row.standard_error),
                interval_words(row),
            ]
        return
    if kind == "quantiles":
        width = float(release.edges[1] - release.edges[0])
        for row in quantile_rows(release, simultaneous=simultaneous):
            ends = f"{in_bins(row.low, width)} to {in_bins(row.high, width)}"
            yield [f"{near(100 * row.probability, 6)}%", in_bins(row.value, width), ends]
        return
    low, high = release.confidence_interval(CONFIDENCE, simultaneous=simultaneous)
    columns = [np.atleast_1d(np.asarray(each)) for each in (release.estimate, release.standard_error, low, high)]
    for place, (value, error, first, last) in enumerate(np.column_stack(columns).tolist(), start=1):
        label = [str(place)] if kind == "vector-mean" else []
        ends = f"{with_error(first, error)} to {with_error(last, error)}"
        yield [*label, with_error(value, error), near(error, 2), ends]
