"""What a training run gave: for a terminal, as JSON, and as a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from markupsafe import Markup
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shuffledp.errors import printable
from shuffledp.learning.checklist import training_checklist
from shuffledp.learning.clipping import UNIT_MEANING
from shuffledp.learning.guarantee import REFERENCES, SERVER_SEES, TrainingGuarantee
from shuffledp.learning.outcome import Training
from shuffledp.learning.progress import RoundReport
from shuffledp.report import wording
from shuffledp.report.svg import Axis
from shuffledp.report.templating import page_template
from shuffledp.report.terminal import NOT_PRIVATE

WIDTH, LEFT, RIGHT, TOP, BOTTOM, HEIGHT = 460.0, 52.0, 14.0, 18.0, 220.0, 266.0


def training_to_json(training: Training) -> dict[str, Any]:
    """Build the object `shuffledp train --json` prints; a missing accuracy is null."""
    guarantee = training.guarantee
    return {
        "question": "training",
        "source": training.source,
        "rows": training.rows,
        "clients": training.clients,
        "test_rows": training.test_rows,
        "tested_on": training.tested_on,
        "accuracy": training.accuracy,
        "majority_share": training.majority,
        "cpu_seconds": round(training.seconds, 1),
        "warnings": list(training.warnings),
        "classes": list(training.classes),
        "features": training.features,
        "widths": list(training.widths),
        "settings": dict(training.settings),
        "stopped": training.stopped,
        "notes": list(training.notes),
        "private": guarantee.private,
        "guarantee": {
            "unit": guarantee.unit,
            "seen": guarantee.seen,
            "rounds": guarantee.rounds,
            "delta": guarantee.delta,
            "epsilon": {"lower": guarantee.epsilon.lower, "upper": guarantee.epsilon.upper},
            "method": guarantee.method,
            "levels": [
                {
                    "epsilon0": level.epsilon0,
                    "delta0": level.delta0,
                    "count": level.count,
                    "epsilon": {"lower": level.epsilon.lower, "upper": level.epsilon.upper},
                }
                for level in guarantee.levels
            ],
            "levels_total": guarantee.levels_total,
            "bounds": [
                {"key": entry.key, "kind": str(entry.kind), "reference": entry.reference}
                | (
                    {"refused": entry.refused}
                    if entry.epsilon is None
                    else {"epsilon": {"lower": entry.epsilon.lower, "upper": entry.epsilon.upper}}
                )
                for entry in guarantee.evidence
            ],
        },
    }


def print_training(console: Console, training: Training) -> None:
    """Print accuracy, guarantee per level, what was consulted, and what it rests on."""
    guarantee = training.guarantee
    if not guarantee.private:
        console.print(NOT_PRIVATE, style="bold red")
    if training.accuracy is None:
        console.print("[bold]Accuracy was not measured[/]: no row was held out.")
    else:
        measured = Text(f"Accuracy {100 * training.accuracy:.1f} %", style="bold")
        console.print(Text.assemble(measured, f" on {training.tested_on}."))
        if training.majority is not None:
            console.print(Text(f"Always saying the most frequent class gets {100 * training.majority:.1f} %."))
    for warning in training.warnings:
        console.print(Text(f"Warning: {warning}."), style="yellow")
    counted = f"{wording.counted(training.rows, 'row')} of {wording.counted(training.clients, 'client')}"
    rounds = f"{wording.counted(guarantee.rounds, 'round')} ({training.stopped})"
    console.print(Text(f"Trained on {counted}, {rounds}, {training.seconds:.1f} CPU seconds."), style="dim")
    console.print(Text(f"Model: {training.model}. Features: {training.features}."), style="dim")
    settings = ", ".join(f"{name} {value}" for name, value in training.settings.items())
    console.print(Text(f"Settings: {settings}."), style="dim")
    console.print()
    console.print(
        f"[bold]Central epsilon at most {wording.up(guarantee.epsilon.upper)}[/] at delta = "
        f"{wording.probability(guarantee.delta)}, by {guarantee.method}: {REFERENCES[guarantee.method]}"
    )
    console.print(Text(f"Neighbours: {UNIT_MEANING[guarantee.unit]}. {_server(guarantee)}"))
    console.print(_levels(training))
    console.print(_consulted(guarantee))
    console.print("What it rests on", style="italic")
    for sentence in training.sentences:
        console.print(Text(f"- {sentence}"))


def training_page(training: Training, *, command: str, version: str) -> str:
    """Write one self-contained HTML page.

    Parameters
    ----------
    training : Training
        The run.
    command : str
        The command that repeats it.
    version : str
        Version of shuffledp.
    """
    guarantee = training.guarantee
    page = page_template("train.html").render(
        heading="A privately trained classifier",
        training=training,
        guarantee=guarantee,
        reference=REFERENCES[guarantee.method],
        unit_meaning=UNIT_MEANING[guarantee.unit],
        server=_server(guarantee),
        picture=_picture(training.history),
        checklist=training_checklist(training),
        command=command,
        version=version,
    )
    return printable(page, "\n")  # no name turns the direction of writing of what follows it


def _server(guarantee: TrainingGuarantee) -> str:
    seen = SERVER_SEES[guarantee.seen]
    return f"{seen[0].upper()}{seen[1:]}."


def _levels(training: Training) -> Table:
    shown, total = training.shown_levels, training.guarantee.levels_total
    title = "Each level's own guarantee, over all rounds"
    if len(shown) < total:
        title += f" ({len(shown)} of {wording.count(total)} levels, the worst among them)"
    table = Table(title=title, title_justify="left")
    for heading in ("budget of a message", "clients", "central epsilon at most"):
        table.add_column(heading, justify="right")
    for level in shown:
        style = "bold" if level is training.guarantee.worst and len(shown) > 1 else None
        table.add_row(
            wording.local_budget(level), wording.count(level.count), wording.up(level.epsilon.upper), style=style
        )
    return table


def _consulted(guarantee: TrainingGuarantee) -> Table:
    table = Table(title="What was consulted (for the worst level)", title_justify="left", box=None)
    for heading in ("bound", "epsilon", "where it stands, or why it does not apply"):
        table.add_column(heading, overflow="fold")
    for entry in guarantee.evidence:
        value = "" if entry.epsilon is None else wording.up(entry.epsilon.upper)
        table.add_row(entry.key, value, Text(entry.refused or entry.reference), style=None if value else "dim")
    return table


def _picture(history: Sequence[RoundReport]) -> Markup | None:
    """Draw accuracy against rounds; None without a test part, or with one round."""
    points = [(report.round, 100.0 * report.accuracy) for report in history if not math.isnan(report.accuracy)]
    if len(points) < 2:
        return None
    x_axis = Axis(float(points[0][0]), float(points[-1][0]), LEFT, WIDTH - RIGHT)
    y_axis = Axis(0.0, 100.0, BOTTOM, TOP)
    parts: list[str] = []
    for tick in y_axis.ticks():
        y = y_axis.at(tick)
        parts.append(f'<line class="grid" x1="{LEFT:.1f}" y1="{y:.1f}" x2="{WIDTH - RIGHT:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for tick in (each for each in x_axis.ticks() if each == round(each)):
        parts.append(f'<text x="{x_axis.at(tick):.1f}" y="{BOTTOM + 18:.1f}" text-anchor="middle">{round(tick)}</text>')
    path = "L".join(f"{x_axis.at(float(at)):.1f} {y_axis.at(share):.1f}" for at, share in points)
    parts.append(f'<path class="curve certified" d="M{path}"/>')
    parts.append(f'<text x="{(LEFT + WIDTH) / 2:.1f}" y="{HEIGHT - 6:.1f}" text-anchor="middle">round</text>')
    label = escape(f"Accuracy by round, from {points[0][1]:.1f} to {points[-1][1]:.1f} percent")
    box = f'viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img" aria-label="{label}"'
    return Markup(f'<svg xmlns="http://www.w3.org/2000/svg" {box}>' + "".join(parts) + "</svg>")
