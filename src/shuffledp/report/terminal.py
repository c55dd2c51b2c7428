"""Guarantees and releases as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from shuffledp.guarantee import Guarantee
from shuffledp.report.evidence import EvidenceRow, Section, Standing, evidence_sections
from shuffledp.report.rows import CONFIDENCE, frequency_rows
from shuffledp.report.wording import (
    PROJECTED,
    count,
    counted,
    down,
    local_budget,
    near,
    notes,
    odds_factor,
    probability,
    promise,
    share,
    situation,
    some_levels,
    up,
    with_error,
)
from shuffledp.setting import SEEN_MEANING

if TYPE_CHECKING:
    from shuffledp.protocol.quantiles import RangeRelease
    from shuffledp.protocol.release import Release

MOST_LEVELS = 12
NOT_PRIVATE = "NOT PRIVATE: this is a simulation with a known seed; anyone can undo the noise. Do not publish it."
STANDING_STYLE = {
    Standing.CERTIFIED: "green",
    Standing.WITNESS: "cyan",
    Standing.PUBLISHED: "magenta",
    Standing.ASYMPTOTIC: "yellow",
}


def print_guarantee(console: Console, guarantee: Guarantee) -> None:
    """Print one guarantee: the number to publish, the levels, what was consulted, the promise in words."""
    setting = guarantee.setting
    console.print(
        f"[bold]Central epsilon at most {up(guarantee.epsilon.upper)}[/] "
        f"at delta = {probability(guarantee.delta)} "
        + (f"(and at least {down(guarantee.epsilon.lower)}: a real attack shows it)" if guarantee.epsilon.lower else "")
    )
    console.print(
        f"{situation(setting)}, seen = {setting.seen}: {SEEN_MEANING[setting.seen]}.",
        style="dim",
        highlight=False,
    )
    console.print(_level_table(guarantee))
    _print_evidence(console, guarantee)
    console.print(promise(guarantee.worst, guarantee.delta, setting))


MOST_ROWS = 60
"""Categories a table on the terminal lists."""


def print_mean(console: Console, release: Release) -> None:
    """Print an estimated mean with its interval and its guarantee."""
    low, high = release.confidence_interval(CONFIDENCE)
    value, error = float(release.estimate), float(release.standard_error)
    console.print(
        f"[bold]Mean {with_error(value, error)}[/], standard error {near(error, 2)}, "
        f"{CONFIDENCE:.0%} confidence interval {with_error(float(low), error)} to "
        f"{with_error(float(high), error)} ({counted(release.n, 'user')}, {release.mechanism})"
    )
    print_its_guarantee(console, release, notes(release))


def print_frequency(console: Console, release: Release, *, simplex: bool = False) -> None:
    """Print estimated frequencies with their intervals and their guarantee; with `simplex` the projected ones too."""
    table = Table(title=f"Frequencies of {counted(release.n, 'user')} ({release.mechanism})", title_justify="left")
    interval = f"{CONFIDENCE:.0%} confidence interval"
    for heading in ("category", "frequency", "standard error", interval, *(["projected"] if simplex else [])):
        table.add_column(heading, justify="left" if heading == "category" else "right")
    rows = frequency_rows(release, simplex=simplex)
    shown = rows if len(rows) <= MOST_ROWS else sorted(rows, key=lambda row: -row.frequency)[:MOST_ROWS]
    for row in shown:
        table.add_row(
            Text(row.category),
            share(row.frequency),
            share(row.standard_error),
            f"{share(row.low)} to {share(row.high)}",
            *([] if row.projected is None else [share(row.projected)]),
        )
    console.print(table)
    if len(shown) < len(rows):
        console.print(f"The {MOST_ROWS} largest of {count(len(rows))} estimates; --json gives all.")
    print_its_guarantee(console, release, [*notes(release), *([PROJECTED] if simplex else [])])


def print_its_guarantee(console: Console, release: Release | RangeRelease, said: Sequence[str]) -> None:
    """Print what a reader must know of an estimate, and its guarantee.

    Parameters
    ----------
    console : Console
        Where to.
    release : Release or RangeRelease
        The estimate.
    said : sequence of str
        Its notes.
    """
    if not release.private:
        console.print(NOT_PRIVATE, style="bold red")
    for note in said:
        console.print(note)
    console.print()
    print_guarantee(console, release.guarantee)


def _level_table(guarantee: Guarantee) -> Table:
    shown = some_levels(guarantee, MOST_LEVELS)
    title = "Each level's own guarantee"
    if len(shown) < guarantee.levels_total:
        title += f" ({len(shown)} of {count(guarantee.levels_total)} levels, the worst among them)"
    table = Table(title=title, title_justify="left")
    floors = ["by dummies alone", "by the crowd"] if guarantee.setting.dummies is not None else []
    headings = ["local epsilon0", "users", "central epsilon at most", *floors, "at least", "chances move at most by"]
    for heading in headings:
        table.add_column(heading, justify="right")
    for level in shown:
        table.add_row(
            local_budget(level),
            count(level.count),
            up(level.epsilon.upper),
            *["–" if kept is None else up(kept.upper) for kept in (level.floor, level.crowd)][: len(floors)],
            down(level.epsilon.lower),
            f"x {odds_factor(level.epsilon.upper)}",
            style="bold" if level is guarantee.worst and len(shown) > 1 else None,
        )
    return table


def _print_evidence(console: Console, guarantee: Guarantee) -> None:
    """Print a section per kind of bound: without a column for the kind, 80 characters have room for the words."""
    sections = evidence_sections(guarantee)
    console.print("What was consulted (for the worst level)", style="italic")
    widest = [row for section in sections for row in section.rows]
    for section in sections:
        style = "dim" if section.standing is None else STANDING_STYLE[section.standing]
        console.print(f"[bold {style}]{section.title}[/]: {section.meaning}", highlight=False)
        console.print(_evidence_table(section, widest), style="dim" if section.standing is None else None)


def _evidence_table(section: Section, every: Sequence[EvidenceRow]) -> Table:
    """Columns are as wide as all sections need, so that they stand under each other."""
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 1))
    table.add_column("bound", no_wrap=True, min_width=max(len(row.key) for row in every))
    if section.standing is not None:
        table.add_column("epsilon", justify="right", no_wrap=True, min_width=max(len(row.shown) for row in every))
    table.add_column("where it stands, or why it does not apply", overflow="fold")
    for row in section.rows:
        table.add_row(row.key, *([] if section.standing is None else [row.shown]), Text(row.words))
    return table
