"""RDP paper, Figure 4 and Table 2: training with Laplace noise, as printed, as its script does it, and honest."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from shuffledp.learning.published import Reading
from shuffledp.reproduce.base import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    RED,
    Cell,
    Outcome,
    Picture,
    Progress,
    Reproduction,
    Table,
)
from shuffledp.reproduce.training import below, curve
from shuffledp.reproduce.training_runs import (
    DELTA,
    Honest,
    Published,
    Scale,
    Trained,
    Way,
    scale,
    shown_delta,
    shown_epsilon,
    trained,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLOCKS = 200
PRINTED = Reading("laplace", "examples-l1", 10.0, 300, hidden=128)
SCRIPT = Reading("laplace", "average-column-sum", 10.0, 300, hidden=1000)
BUDGETS = (2.0, 1.0, 0.5, 0.1)
"""The paper's range of epsilon0; everybody has the same."""
COLOURS = dict(zip(BUDGETS, (GREEN, BLUE, ORANGE, PURPLE), strict=True))
PAPER = 97.07
PRINTED_KEY, NOISELESS, SCRIPT_KEY, GAUSSIAN, LAPLACE = (
    "as printed", "as printed, noise left out", "as the public script", "honest Gaussian", "honest Laplace",
)  # fmt: skip
CURVES = (
    "training", "epsilon0", "epoch", "accuracy", "deviation", "seeds", "epsilon", "delta", "guarantee",
)  # fmt: skip
TABLE = (
    "training", "epsilon0", "accuracy", "deviation", "training accuracy", "seeds", "epsilon", "delta", "guarantee",
)  # fmt: skip


def ways(how: Scale) -> dict[tuple[str, float], Way]:
    """Return every training of the figure and table, keyed by its name and local budget."""
    asked: dict[tuple[str, float], Way] = {}
    clients = how.clients or BLOCKS
    printed, script = (replace(reading, epochs=how.epochs) for reading in (PRINTED, SCRIPT))
    for budget in BUDGETS:
        asked[PRINTED_KEY, budget] = Published(printed, (budget,) * BLOCKS)
        asked[SCRIPT_KEY, budget] = Published(script, (budget,) * BLOCKS)
        own = (budget,) * clients
        asked[GAUSSIAN, budget] = Honest("gaussian", own, (DELTA,) * clients, how.rounds, 0.2, 2.0)
        asked[LAPLACE, budget] = Honest("laplace", own, (), how.rounds, 2.0, 1.0)
    asked[NOISELESS, math.inf] = Published(printed, (math.inf,) * BLOCKS)
    return asked


def run_figure(quick: bool, progress: Progress) -> Outcome:
    """Train every model, and return the figure of accuracy against epochs with its tables and caption."""
    how = scale(quick)
    found = trained(ways(how), how, progress)
    curves = Table(CURVES, list(curve_rows(found)))
    return Outcome(
        {"rdp-figure-4": curves},
        {"rdp-figure-4": Picture(lambda figure: draw_curves(figure, curves), (11.0, 4.4))},
        caption(Table(TABLE, list(summary(found))), how),
    )


def run_table(quick: bool, progress: Progress) -> Outcome:
    """Train every model, and return the table of last accuracies and guarantees with its picture and caption."""
    how = scale(quick)
    found = trained(ways(how), how, progress)
    table = Table(TABLE, list(summary(found)))
    return Outcome(
        {"rdp-table-2": table, "rdp-table-2-settings": Table(("setting", PRINTED_KEY, SCRIPT_KEY), settings(how))},
        {"rdp-table-2": Picture(lambda figure: draw_table(figure, table, how), (7.6, 5.0))},
        caption(table, how),
    )


def curve_rows(found: dict[tuple[str, float], Trained]) -> Iterator[tuple[Cell, ...]]:
    """Return the rows of the accuracy table, one for each training and epoch."""
    for (training, budget), runs in found.items():
        for at, (mean, deviation) in enumerate(zip(runs.mean.tolist(), runs.deviation.tolist(), strict=True)):
            yield training, budget, at + 1, mean, deviation, runs.accuracies.shape[0], *_privacy(runs, at)


def summary(found: dict[tuple[str, float], Trained]) -> Iterator[tuple[Cell, ...]]:
    """Return the rows of the summary table: accuracy and guarantee of each training after its last epoch."""
    for (training, budget), runs in found.items():
        last = float(runs.mean[-1]), float(runs.deviation[-1]), float(runs.training.mean())
        yield training, budget, *last, runs.accuracies.shape[0], *_privacy(runs, -1)


def _privacy(runs: Trained, at: int) -> tuple[Cell, Cell, Cell]:
    return (runs.epsilons[at], DELTA, "plain composition") if runs.epsilons else ("", "", "none")


def settings(how: Scale) -> list[tuple[Cell, ...]]:
    """Return the settings of the published training in both readings, as rows of a table."""
    return [
        ("blocks, in one fixed order", BLOCKS, BLOCKS),
        ("clipped", "every example's gradient, sum of absolute values", "average of a block, largest column sum"),
        ("C", PRINTED.bound, SCRIPT.bound),
        ("noise", "Laplace, scale 2 C/(m epsilon0)", "Laplace, scale 2 C/(m epsilon0)"),
        ("m", PRINTED.divisor, SCRIPT.divisor),
        ("features", "60 principal components of the training digits, not paid for", "the same"),
        ("hidden units", PRINTED.hidden, SCRIPT.hidden),
        ("step", PRINTED.step, SCRIPT.step),
        ("epochs", how.epochs, how.epochs),
        ("guarantee", "none", "none"),
    ]


def draw_curves(figure: Figure, table: Table) -> None:
    """Draw accuracy against epochs in three panels: as printed, as the public script does, and honest."""
    panels = figure.subplots(1, 3, sharey=True)
    titles = ("As printed: no guarantee", "As the script: no guarantee", "Honest Gaussian: certified")
    for axes, training, title in zip(panels, (PRINTED_KEY, SCRIPT_KEY, GAUSSIAN), titles, strict=True):
        for budget in BUDGETS:
            rows = [row for row in table.rows if row[0] == training and row[1] == budget]
            spent = "" if rows[-1][6] == "" else f", ε = {shown_epsilon(rows[-1][6])}"
            curve(axes, rows, COLOURS[budget], f"ε₀ = {budget:g}{spent}")
        if training == PRINTED_KEY:
            rows = [row for row in table.rows if row[0] == NOISELESS]
            curve(axes, rows, GREY, "no noise at all")
        below(axes)
        axes.set_title(title)
    panels[0].set_ylabel("test accuracy, %")


def draw_table(figure: Figure, table: Table, how: Scale) -> None:
    """Draw accuracy against the local budget epsilon0, one line for each way of training."""
    axes = figure.subplots()
    for training, colour, inside in (
        (PRINTED_KEY, RED, "white"),
        (SCRIPT_KEY, ORANGE, "white"),
        (LAPLACE, PURPLE, PURPLE),
        (GAUSSIAN, BLUE, BLUE),
    ):
        rows = sorted((row for row in table.rows if row[0] == training), key=lambda row: float(row[1]))
        x, y = [float(row[1]) for row in rows], [float(row[2]) for row in rows]
        without = "" if rows[0][6] != "" else ", no guarantee"
        without = ", its ε on top" if training == GAUSSIAN else without
        axes.plot(x, y, color=colour, label=f"{training}{without}", marker="o", markerfacecolor=inside)
        if training == GAUSSIAN:
            for row in rows:
                axes.text(float(row[1]), 103.0, f"ε = {shown_epsilon(row[6])}", ha="center", fontsize=8.5, color=colour)
    cap = next(float(row[2]) for row in table.rows if row[0] == NOISELESS)
    axes.axhline(cap, color=RED, linewidth=1.0, linestyle=(0, (4, 2)), label=NOISELESS)
    if how.like_the_paper:
        axes.axhline(PAPER, color=INK, linewidth=1.0, linestyle=(0, (1, 1.5)), label=f"printed in the paper: {PAPER}")
    axes.set(xscale="log", xlabel="budget ε₀ of a message", ylabel="test accuracy, %", xlim=(0.08, 2.6), ylim=(0, 109))
    axes.set_xticks(sorted(BUDGETS), [f"{budget:g}" for budget in sorted(BUDGETS)])
    axes.minorticks_off()
    figure.legend(loc="outside lower center", ncols=2, fontsize=8.5)


def caption(table: Table, how: Scale) -> list[str]:
    """Return the caption of figure and table, which quotes numbers of the table."""
    at: dict[tuple[str, float], dict[str, Cell]] = {
        (str(row[0]), float(row[1])): dict(zip(TABLE, row, strict=True)) for row in table.rows
    }
    clients = how.clients or BLOCKS
    seeds = "one seed" if how.seeds == 1 else f"mean ± standard deviation over {how.seeds} seeds"
    return [
        *([how.note] if how.note else []),
        f"**Computed.** Algorithm 1 of the paper with its Table 2: Laplace noise of scale 2C/(m ε₀), C = "
        f"{PRINTED.bound:g}, m = {PRINTED.divisor}, the same ε₀ for all of {BLOCKS} blocks, step {PRINTED.step:g}, "
        f"{how.epochs} epochs, 60 principal components of the training digits, {seeds}. *As printed*: every example's "
        f"gradient clipped in the sum of absolute values, {PRINTED.hidden} hidden units. *As the public script*: the "
        "average of a block clipped, each weight matrix by its largest column sum of absolute values, "
        f"{SCRIPT.hidden:,} hidden units. **The guarantee of both is none**, and so it stands in the data. *Honest*: "
        f"{clients} clients, {how.rounds} rounds, softmax regression on oriented gradients, which are made from no "
        f"data; each example's gradient clipped to 0.2 (Gaussian noise for (ε₀, {shown_delta()}) a message) or, in "
        "absolute values, to 2 (Laplace noise); the server sees every message, nothing is claimed from shuffling, and "
        "ε protects one example over all rounds. Seeds make these runs simulations; with secure noise the ε shown "
        "would be certified.",
        f"**The paper shows** {PAPER} % on MNIST, and a figure labelled training accuracy. Here curves are test "
        "accuracy; the table has training accuracy too.",
        f"**Agrees.** {_agrees(at, how)}",
        f"**Does not.** As printed: {_line(at, PRINTED_KEY)}. The clipping alone, with no noise at all, "
        f"ends at {_value(at[NOISELESS, math.inf])} %. The script's norm is no bound on the sum of absolute values, "
        "and clipping an average bounds no single example's part, so its noise answers no sensitivity. As printed, one "
        "message is ε₀-private for one example, whose sensitivity 2C/m is right when blocks have m examples; what the "
        "paper adds, amplification by shuffling, needs messages that are alike for any two blocks, and they are not.",
        f"**Honest.** Gaussian: {_line(at, GAUSSIAN)}. Laplace: {_line(at, LAPLACE)}. Laplace noise answers the "
        "sum of absolute values of thousands of numbers, and composes worse.",
    ]


def _agrees(at: dict[tuple[str, float], dict[str, Cell]], how: Scale) -> str:
    top = max((at[SCRIPT_KEY, budget] for budget in BUDGETS), key=lambda row: float(row["accuracy"]))
    better = [b for b in BUDGETS if float(at[SCRIPT_KEY, b]["accuracy"]) > float(at[PRINTED_KEY, b]["accuracy"])]
    where = "every ε₀" if len(better) == len(BUDGETS) else "ε₀ = " + ", ".join(f"{b:g}" for b in better)
    near = (
        f"The script's reading comes nearest to {PAPER} %: at ε₀ = {float(top['epsilon0']):g} it has {_value(top)} % "
        f"of the test digits and {float(top['training accuracy']):.1f} % of the training digits right"
        if how.like_the_paper
        else f"Of the two readings the script's is the more accurate one at {where}"
    )
    return f"{near}. The script's values: {_line(at, SCRIPT_KEY)}."


def _line(at: dict[tuple[str, float], dict[str, Cell]], training: str) -> str:
    def one(budget: float) -> str:
        row = at[training, budget]
        spent = "" if row["epsilon"] == "" else f" (ε = {shown_epsilon(row['epsilon'])})"
        return f"ε₀ = {budget:g}: {_value(row)} %{spent}"

    return ", ".join(one(budget) for budget in BUDGETS)


def _value(row: dict[str, Cell]) -> str:
    spread = f" ± {float(row['deviation']):.2f}" if int(row["seeds"]) > 1 else ""
    return f"{float(row['accuracy']):.1f}{spread}"


RDP_FIGURE_4 = Reproduction(
    "rdp-figure-4", "RDP paper, Figure 4", "Training with Laplace noise: accuracy against epochs", run_figure, 18.0
)
RDP_TABLE_2 = Reproduction(
    "rdp-table-2", "RDP paper, Table 2", "Training with Laplace noise: settings and accuracy", run_table, 18.0
)
