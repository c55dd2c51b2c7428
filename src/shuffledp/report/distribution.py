"""Histograms, quantiles and variances as tables for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from shuffledp.report.rows import (
    CONFIDENCE,
    BinRow,
    bin_rows,
    in_bins,
    quantile_rows,
)
from shuffledp.report.terminal import print_its_guarantee
from shuffledp.report.wording import PROJECTED, count, counted, near, notes, range_notes, share, with_error

if TYPE_CHECKING:
    from shuffledp.protocol.quantiles import RangeRelease
    from shuffledp.protocol.release import Release

MOST_BINS = 60
BAR = 12
"""Characters of the longest bar."""


def print_histogram(console: Console, release: Release, *, simplex: bool = False) -> None:
    """Print an estimated histogram with its intervals and its guarantee."""
    rows = bin_rows(release, simplex=simplex)
    shown = some_bins(rows, MOST_BINS)
    title = f"Histogram of {counted(release.n, 'user')} ({release.mechanism})"
    if len(shown) < len(rows):
        title += f", {len(shown)} of {count(len(rows))} bins; --json lists all"
    table = Table(title=title, title_justify="left")
    interval = f"{CONFIDENCE:.0%} interval"
    for heading in ("bin", "share", "error", interval, *(["projected"] if simplex else [])):
        table.add_column(heading, justify="right", no_wrap=heading != "bin")  # what gives way are long edges
    table.add_column("", no_wrap=True)
    longest = max(row.frequency for row in shown)
    for row in shown:
        table.add_row(
            row.category,
            share(row.frequency),
            share(row.standard_error),
            f"{share(row.low)} to {share(row.high)}",
            *([] if row.projected is None else [share(row.projected)]),
            Text("█" * round(BAR * max(row.frequency, 0.0) / longest) if longest > 0.0 else "", style="cyan"),
        )
    console.print(table)
    print_its_guarantee(console, release, [*notes(release), *([PROJECTED] if simplex else [])])


def some_bins(rows: Sequence[BinRow], most: int) -> list[BinRow]:
    """List at most so many bins, spread evenly, the first and the last among them."""
    if len(rows) <= most:
        return list(rows)
    return [rows[round(i * (len(rows) - 1) / (most - 1))] for i in range(most)]


def print_quantiles(console: Console, release: RangeRelease) -> None:
    """Print estimated quantiles with their intervals and their guarantee."""
    width = float(release.edges[1] - release.edges[0])
    table = Table(title=f"Quantiles of {counted(release.n, 'user')} ({release.mechanism})", title_justify="left")
    for heading in ("share below", "value", f"{CONFIDENCE:.0%} confidence interval"):
        table.add_column(heading, justify="right")
    for row in quantile_rows(release):
        table.add_row(
            f"{near(100 * row.probability, 6)}%",
            in_bins(row.value, width),
            f"{in_bins(row.low, width)} to {in_bins(row.high, width)}",
        )
    console.print(table)
    print_its_guarantee(console, release, range_notes(release))


def print_variance(console: Console, release: Release) -> None:
    """Print an estimated variance, the standard deviation it means, their intervals, and the guarantee."""
    low, high = (float(end) for end in release.confidence_interval(CONFIDENCE))
    value, error = float(release.estimate), float(release.standard_error)
    console.print(
        f"[bold]Variance {with_error(value, error)}[/], standard error {near(error, 2)}, {CONFIDENCE:.0%} confidence "
        f"interval {with_error(low, error)} to {with_error(high, error)} ({counted(release.n, 'user')}, "
        f"{release.mechanism})"
    )
    console.print(deviation_words(value, low, high), highlight=False)
    print_its_guarantee(console, release, notes(release))


def deviation_words(value: float, low: float, high: float) -> str:
    """Say what a variance with its interval means for the standard deviation."""
    root, first, last = (near(math.sqrt(max(x, 0.0)), 3) for x in (value, low, high))
    return f"That is a standard deviation of {root}, between {first} and {last}."
