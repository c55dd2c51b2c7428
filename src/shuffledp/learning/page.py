"""What a training run gave: what may be told of it, for a terminal, as JSON, as a page, and the page's checklist."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from markupsafe import Markup
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shuffledp.errors import printable
from shuffledp.learning.accounting import REFERENCES, SERVER_SEES, TrainingGuarantee
from shuffledp.learning.messages import UNIT_MEANING
from shuffledp.learning.settings import RoundReport
from shuffledp.report import wording
from shuffledp.report.checklist import ONE_PROGRAM, OPEN, OTHERS, SECURE_DRAW, SEEDED_DRAW, TABLE, TIMES, Point, points
from shuffledp.report.page import Axis, page_template
from shuffledp.report.terminal import NOT_PRIVATE
from shuffledp.setting import LevelGuarantee

# What may be told of a training run.

MOST_LEVELS = 12


@dataclass(frozen=True, eq=False)
class Training:
    """Results of a training run that may be reported: accuracy, settings and guarantee.

    Parameters
    ----------
    source : str
        The data, as the caller named them.
    rows, clients : int
        Number of training rows and of clients.
    test_rows : int
        Number of test rows, which took no part in training; 0 for none.
    tested_on : str
        Description of the test rows, in words.
    accuracy : float or None
        Share of the test rows predicted correctly by the released model, in [0, 1]; None without test rows.
    majority : float or None
        Share of them in the most frequent class: what a model that always says this class would get right.
    seconds : float
        Processor time of training, in seconds.
    warnings : tuple of str
        What hurts accuracy, one sentence each.
    classes : tuple of str
        Names of the labels.
    features : str
        Description of the network's inputs and of the data that they were made from.
    widths : tuple of int
        Widths of the network's layers, inputs and classes included.
    settings : mapping of str to str or number
        Mechanism, clip, step and the like.
    guarantee : TrainingGuarantee
        Certified central guarantee of the run.
    notes : tuple of str
        Assumptions of the guarantee, one sentence each.
    stopped : str
        Why training ended.
    history : tuple of RoundReport
        One per round.
    """

    source: str
    rows: int
    clients: int
    test_rows: int
    tested_on: str
    accuracy: float | None
    majority: float | None
    seconds: float
    warnings: tuple[str, ...]
    classes: tuple[str, ...]
    features: str
    widths: tuple[int, ...]
    settings: Mapping[str, str | float]
    guarantee: TrainingGuarantee
    notes: tuple[str, ...]
    stopped: str
    history: tuple[RoundReport, ...]

    @property
    def shown_levels(self) -> list[LevelGuarantee]:
        """At most twelve budget levels to print, spread evenly over the budgets, the worst among them."""
        levels, worst = self.guarantee.levels, self.guarantee.worst
        if len(levels) <= MOST_LEVELS:
            return list(levels)
        steps = [round(i * (len(levels) - 1) / (MOST_LEVELS - 2)) for i in range(MOST_LEVELS - 1)]
        return [level for i, level in enumerate(levels) if i in steps or level is worst]

    @property
    def sentences(self) -> list[str]:
        """Assumptions of the guarantee as sentences."""
        return [f"{note[0].upper()}{note[1:]}." for note in self.notes]

    @property
    def model(self) -> str:
        """Description of the network in words."""
        hidden = self.widths[1:-1]
        kind = f"network with hidden layers of {', '.join(map(str, hidden))}" if hidden else "softmax regression"
        return f"{kind}, {wording.counted(self.widths[0], 'feature')}, {self.widths[-1]} classes"


# The checklist of NIST SP 800-226 for the page of a training run; see `checklist`.


def training_checklist(training: Training) -> list[Point]:
    """Return the answers to the questions that a reader must ask of a privacy claim, for one training run.

    Parameters
    ----------
    training : Training
        Results of the run.
    """
    guarantee = training.guarantee
    one = "One client, with all its examples." if guarantee.unit == "client" else "One example of one client."
    summed = guarantee.seen == "sum"
    seen = SERVER_SEES[guarantee.seen]
    return points(
        [one, f"{OPEN}whether a person can be several clients; such a person is protected less than stated."],
        _training_model(training),
        [
            f"Replacement (bounded differential privacy): {UNIT_MEANING[guarantee.unit]}. The clients "
            f"({wording.count(training.clients)}), their budgets and when each takes part are the same in both, and "
            "public.",
            "Whether somebody took part is not protected.",
        ],
        _training_parameters(training),
        [
            "Whoever adds up the messages of a round must show the server nothing but the sum."
            if summed
            else "The shuffler must mix the messages of a round uniformly, and strip names, times and order.",
            "Each client must clip its message and draw its noise as stated. The server need not be honest.",
            ONE_PROGRAM,
        ],
        [
            f"{seen[0].upper()}{seen[1:]}.",
            "Everybody who gets the model: what the server sees, at most.",
            "Whoever ran the program: the records themselves.",
        ],
        TABLE,
        [SECURE_DRAW if guarantee.private else SEEDED_DRAW, TIMES],
        [f"{OPEN}who may reach the table, this program, its logs and its checkpoints, and who may train again."],
        _training_composition(training),
    )


def _training_model(training: Training) -> Iterator[str]:
    if training.guarantee.seen == "sum":
        yield (
            "Distributed noise: each client adds noise of its own to its message, and only the sum of all messages "
            "is seen. The stated epsilon and delta are those of approximate differential privacy of all sums."
        )
    else:
        yield (
            "The shuffle model: each message is clipped and noised by itself within its own local budget, then the "
            "messages of a round are mixed. The stated epsilon and delta are those of approximate differential "
            "privacy of what the server sees over all rounds."
        )
    if all(level.delta0 == 0.0 for level in training.guarantee.levels):
        yield "Each single message keeps its local budget without exception (pure local differential privacy)."
    else:
        yield "A single message keeps its local budget up to its own delta (approximate local differential privacy)."


def _training_parameters(training: Training) -> Iterator[str]:
    guarantee = training.guarantee
    budgets = sorted(level.epsilon0 for level in guarantee.levels)
    low, high = wording.near(budgets[0]), wording.near(budgets[-1])
    local = f"local budgets of a message from {low} to {high}" if low != high else f"local budget of a message {low}"
    worst = " for the worst budget level" if guarantee.levels_total > 1 else ""
    delta = wording.probability(guarantee.delta)
    epsilon = wording.up(guarantee.epsilon.upper)
    yield f"Central epsilon at most {epsilon} at delta = {delta}{worst}, certified; {local}."
    if math.isinf(guarantee.epsilon.upper):
        yield f"{OPEN}a delta, or a setting, at which a finite epsilon holds."
    if guarantee.delta * training.clients >= 1.0:
        yield f"{OPEN}a delta below 1/clients; this one allows one client's records to be published."


def _training_composition(training: Training) -> Iterator[str]:
    rounds = training.guarantee.rounds
    yield f"All {wording.count(rounds)} rounds are counted together." if rounds > 1 else "The one round is counted."
    if training.test_rows:
        yield f"{OPEN}the accuracy was measured on {training.tested_on}; nothing here protects those rows."
    yield f"{OPEN}earlier runs on the same records, such as those by which settings were chosen; each costs on top."
    yield OTHERS


# What a training run gave: for a terminal, as JSON, and as a page.

WIDTH, LEFT, RIGHT, TOP, BOTTOM, HEIGHT = 460.0, 52.0, 14.0, 18.0, 220.0, 266.0


def training_to_json(training: Training) -> dict[str, Any]:
    """Return the object that `shuffledp train --json` prints; a missing accuracy is null."""
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
    """Print a run's accuracy, the guarantee of each level, and the assumptions."""
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
    console.print("What it rests on", style="italic")
    for sentence in training.sentences:
        console.print(Text(f"- {sentence}"))


def training_page(training: Training, *, command: str, version: str) -> str:
    """Return one self-contained HTML page that reports the training run.

    Parameters
    ----------
    training : Training
        Results of the run.
    command : str
        The command line that repeats the run.
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
    levels, total = training.shown_levels, training.guarantee.levels_total
    title = "Each level's own guarantee, over all rounds"
    if len(levels) < total:
        title += f" ({len(levels)} of {wording.count(total)} levels, the worst among them)"
    table = Table(title=title, title_justify="left")
    for heading in ("budget of a message", "clients", "central epsilon at most"):
        table.add_column(heading, justify="right")
    for level in levels:
        style = "bold" if level is training.guarantee.worst and len(levels) > 1 else None
        table.add_row(
            wording.local_budget(level), wording.count(level.count), wording.up(level.epsilon.upper), style=style
        )
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
