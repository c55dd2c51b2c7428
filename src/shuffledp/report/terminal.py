"""Guarantees and releases as tables for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from shuffledp.guarantee import Evidence, Guarantee, Kind
from shuffledp.report.rows import CONFIDENCE, frequency_rows
from shuffledp.report.wording import (
    KIND_WORDS,
    count,
    down,
    local_budget,
    near,
    notes,
    odds_factor,
    probability,
    promise,
    share,
    some_levels,
    up,
    with_error,
)
from shuffledp.setting import SEEN_MEANING

if TYPE_CHECKING:
    from shuffledp.protocol.release import Release

MOST_LEVELS = 12
NOT_PRIVATE = "NOT PRIVATE: this is a simulation with a known seed; anyone can undo the noise. Do not publish it."
KIND_STYLE = {Kind.CERTIFIED_UPPER: "green", Kind.CERTIFIED_LOWER: "cyan", Kind.ASYMPTOTIC: "yellow"}


def print_guarantee(console: Console, guarantee: Guarantee) -> None:
    """Print one guarantee: the number to publish, the levels, what was consulted, the promise in words."""
    setting = guarantee.setting
    console.print(
        f"[bold]Central epsilon at most {up(guarantee.epsilon.upper)}[/] "
        f"at delta = {probability(guarantee.delta)} "
        + (f"(and at least {down(guarantee.epsilon.lower)}: a real attack shows it)" if guarantee.epsilon.lower else "")
    )
    console.print(
        f"{count(setting.budgets.n)} users, randomizer {setting.randomizer_name}, {setting.rounds} round, "
        f"seen = {setting.seen}: {SEEN_MEANING[setting.seen]}.",
        style="dim",
    )
    console.print(_level_table(guarantee))
    console.print(_evidence_table(guarantee.evidence))
    console.print(promise(guarantee.worst, guarantee.delta))


def print_mean(console: Console, release: Release) -> None:
    """Print an estimated mean with its interval and its guarantee."""
    low, high = release.confidence_interval(CONFIDENCE)
    value, error = float(release.estimate), float(release.standard_error)
    console.print(
        f"[bold]Mean {with_error(value, error)}[/], standard error {near(error, 2)}, "
        f"{CONFIDENCE:.0%} confidence interval {with_error(float(low), error)} to "
        f"{with_error(float(high), error)} ({count(release.n)} users, {release.mechanism})"
    )
    _print_its_guarantee(console, release)


def print_frequency(console: Console, release: Release) -> None:
    """Print estimated frequencies with their intervals and their guarantee."""
    table = Table(title=f"Frequencies of {count(release.n)} users ({release.mechanism})", title_justify="left")
    for heading in ("category", "frequency", "standard error", f"{CONFIDENCE:.0%} confidence interval"):
        table.add_column(heading, justify="left" if heading == "category" else "right")
    for row in frequency_rows(release):
        table.add_row(
            Text(row.category),
            share(row.frequency),
            share(row.standard_error),
            f"{share(row.low)} to {share(row.high)}",
        )
    console.print(table)
    _print_its_guarantee(console, release)


def _print_its_guarantee(console: Console, release: Release) -> None:
    if not release.private:
        console.print(NOT_PRIVATE, style="bold red")
    for note in notes(release):
        console.print(note)
    console.print()
    print_guarantee(console, release.guarantee)


def _level_table(guarantee: Guarantee) -> Table:
    shown = some_levels(guarantee, MOST_LEVELS)
    title = "Each level's own guarantee"
    if len(shown) < guarantee.levels_total:
        title += f" ({len(shown)} of {count(guarantee.levels_total)} levels, the worst among them)"
    table = Table(title=title, title_justify="left")
    for heading in ("local epsilon0", "users", "central epsilon at most", "at least", "chances move at most by"):
        table.add_column(heading, justify="right")
    for level in shown:
        table.add_row(
            local_budget(level),
            count(level.count),
            up(level.epsilon.upper),
            down(level.epsilon.lower),
            f"x {odds_factor(level.epsilon.upper)}",
            style="bold" if level is guarantee.worst and len(shown) > 1 else None,
        )
    return table


def _evidence_table(evidence: tuple[Evidence, ...]) -> Table:
    table = Table(title="What was consulted (for the worst level)", title_justify="left")
    table.add_column("bound")
    table.add_column("kind")
    table.add_column("epsilon", justify="right")
    table.add_column("where it stands, or why it does not apply", overflow="fold")
    for entry in evidence:
        value = "-"
        if entry.epsilon is not None:
            lower = entry.kind is Kind.CERTIFIED_LOWER
            value = down(entry.epsilon.lower) if lower else up(entry.epsilon.upper)
        words = Text(entry.reference if entry.refused is None else f"does not apply: {entry.refused}")
        style = "dim" if entry.epsilon is None else None
        table.add_row(entry.key, Text(KIND_WORDS[entry.kind], style=KIND_STYLE[entry.kind]), value, words, style=style)
    return table
