"""Guarantees as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from shuffledp.guarantee import Guarantee
from shuffledp.report.evidence import EvidenceRow, Section, Standing, evidence_sections
from shuffledp.report.wording import (
    count,
    down,
    local_budget,
    lower_end,
    moves,
    probability,
    promise,
    situation,
    some_levels,
    up,
)
from shuffledp.setting import SEEN_MEANING

if TYPE_CHECKING:
    pass

MOST_LEVELS = 12
NOT_PRIVATE = "NOT PRIVATE: this is a simulation with a known seed; anyone can undo the noise. Do not publish it."
STANDING_STYLE = {
    Standing.CERTIFIED: "green",
    Standing.WITNESS: "cyan",
    Standing.PUBLISHED: "magenta",
    Standing.ASYMPTOTIC: "yellow",
}


def print_guarantee(console: Console, guarantee: Guarantee, *, bounds: bool = True, counts: str = "user") -> None:
    """Print one guarantee: the number to publish, the levels, what was consulted, the promise in words.

    Parameters
    ----------
    console : Console
        Where to.
    guarantee : Guarantee
        The guarantee.
    bounds : bool
        Whether to list the bounds that were consulted.
    counts : str
        What the setting counts, see `wording.unit`.
    """
    setting = guarantee.setting
    console.print(
        f"[bold]Central epsilon at most {up(guarantee.epsilon.upper)} at delta = {probability(guarantee.delta)}[/] "
        + lower_end(guarantee.epsilon)
    )
    console.print(
        f"{situation(setting, counts)}, seen = {setting.seen}: {SEEN_MEANING[setting.seen]}.",
        style="dim",
        highlight=False,
    )
    if bounds or guarantee.levels_total > 1:
        console.print(_level_table(guarantee, counts))
    if bounds:
        _print_evidence(console, guarantee)
    console.print(promise(guarantee.worst, guarantee.delta, setting, counts))


def _level_table(guarantee: Guarantee, counts: str) -> Table:
    shown = some_levels(guarantee, MOST_LEVELS)
    title = f"Each level's own guarantee at delta = {probability(guarantee.delta)}"
    if len(shown) < guarantee.levels_total:
        title += f" ({len(shown)} of {count(guarantee.levels_total)} levels, the worst among them)"
    table = Table(title=title, title_justify="left")
    floors = ["by dummies alone", "by the crowd"] if guarantee.setting.dummies is not None else []
    headings = [f"{counts}s", "central epsilon at most", *floors, "at least", "chances move at most by"]
    for heading in ("local epsilon0", *headings):
        table.add_column(heading, justify="right")
    for level in shown:
        table.add_row(
            local_budget(level),
            count(level.count),
            up(level.epsilon.upper),
            *["–" if kept is None else up(kept.upper) for kept in (level.floor, level.crowd)][: len(floors)],
            down(level.epsilon.lower),
            moves(level.epsilon.upper, guarantee.delta),
            style="bold" if level is guarantee.worst and len(shown) > 1 else None,
        )
    return table


def _print_evidence(console: Console, guarantee: Guarantee) -> None:
    """Print a section per kind of bound: without a column for the kind, 80 characters have room for the words."""
    sections = evidence_sections(guarantee)
    asked = f"What was consulted (for the worst level, at delta = {probability(guarantee.delta)})"
    console.print(asked, style="italic", highlight=False)
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
