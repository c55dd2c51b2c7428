"""Figures and table of the RDP paper.

Figures 2 and 3: Renyi divergence against the local budget, and against the order. Figure 4 and Table 2: training with
Laplace noise, as printed, as its script does it, and honest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from shuffledp.accounting import bounds, privacy_profile, weigh
from shuffledp.budgets import Budgets
from shuffledp.numerics.floats import Interval
from shuffledp.randomizers.categorical import RandomizedResponse
from shuffledp.report.wording import down, up
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
    bracket,
    number,
)
from shuffledp.reproduce.training import (
    DELTA,
    Honest,
    PaperReading,
    Published,
    Scale,
    Trained,
    TrainingMethod,
    below,
    curve,
    scale,
    shown_delta,
    shown_epsilon,
    trained,
)
from shuffledp.setting import Setting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

USERS = 10_000
ORDER, EPSILON0 = 4, 2.0
HEADER = ("epsilon0", "order", "series", "renyi")
PUBLISHED = {
    "girgis21": ("Girgis 2021, upper", ORANGE, "upper"),
    "girgis21-lower": ("Girgis 2021, lower", GREY, "lower"),
    "clones-2022": ("pair of Feldman 2022 and RDP Proposition 1, exact", GREEN, "upper"),
    "rdp-renyi": ("RDP, Corollary 2 (asymptotic)", PURPLE, "upper"),
}


def _setting(epsilon0: float, randomizer: RandomizedResponse | str) -> Setting:
    return Setting(Budgets([epsilon0], [USERS]), randomizer, seen="reports", neighboring="replace-one")  # type: ignore[arg-type]


def _rows(epsilon0: float, order: float) -> list[tuple[Cell, ...]]:
    """All series at one point; a bound outside its regime has no value there."""
    rows: list[tuple[Cell, ...]] = []
    setting = _setting(epsilon0, "any")
    answers = weigh([bounds[key] for key in PUBLISHED], lambda bound: bound.profile(setting, epsilon0).renyi(order))
    for answer, (key, (_, _, end)) in zip(answers, PUBLISHED.items(), strict=True):
        value = math.nan if answer.value is None else getattr(answer.value, end)
        rows.append((epsilon0, order, key, value))
    upper: Interval = bounds["clones"].profile(setting, epsilon0).renyi(order)
    attained: Interval = privacy_profile(_setting(epsilon0, RandomizedResponse(2)), epsilon0).renyi(order)
    return [*rows, (epsilon0, order, "certified-upper", upper.upper), (epsilon0, order, "attained", attained.lower)]


def _table(points: list[tuple[float, float]], progress: Progress) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for done, (epsilon0, order) in enumerate(points):
        rows += _rows(epsilon0, order)
        progress((done + 1) / len(points))
    return Table(HEADER, rows)


def run_figure_2(quick: bool, progress: Progress) -> Outcome:
    """Tabulate Renyi divergences of order 4 against the local budget, and return tables, picture and caption.

    Parameters
    ----------
    quick : bool
        Whether to compute fewer points.
    progress : callable
        Called with the share of the work done, from 0 to 1.
    """
    table = _table([(float(e), ORDER) for e in np.linspace(0.1, 4.0, 9 if quick else 27).round(6)], progress)
    caption = _caption(table, "order 4, n = 10,000, epsilon0 from 0.1 to 4", "epsilon0", 0)
    picture = Picture(lambda figure: draw(figure, table, 0, "local epsilon0"))
    return Outcome({"rdp-figure-2": table}, {"rdp-figure-2": picture}, caption)


def run_figure_3(quick: bool, progress: Progress) -> Outcome:
    """Tabulate Renyi divergences at local budget 2 against the order, and return tables, picture and caption.

    Parameters
    ----------
    quick : bool
        Whether to compute fewer points.
    progress : callable
        Called with the share of the work done, from 0 to 1.
    """
    orders = [2, 4, 8, 16, 32] if quick else [2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64]
    table = _table([(EPSILON0, order) for order in orders], progress)
    caption = _caption(table, "epsilon0 = 2, n = 10,000, orders 2 to " + str(orders[-1]), "order", 1)
    picture = Picture(lambda figure: draw(figure, table, 1, "order lambda"))
    return Outcome({"rdp-figure-3": table}, {"rdp-figure-3": picture}, caption)


def _series(table: Table, key: str, place: int) -> tuple[list[float], list[float]]:
    rows = [row for row in table.rows if row[2] == key]
    return [float(row[place]) for row in rows], [float(row[3]) for row in rows]


def draw(figure: Figure, table: Table, place: int, label: str) -> None:
    """Draw the Renyi divergences in one panel with a logarithmic axis.

    Parameters
    ----------
    figure : Figure
        The empty figure.
    table : Table
        The table of divergences.
    place : int
        Index of the table's column with the horizontal values.
    label : str
        Label of the horizontal axis.
    """
    axes = figure.subplots()
    for key, (name, colour, _) in PUBLISHED.items():
        axes.plot(*_series(table, key, place), color=colour, label=name, marker="o", markersize=3)
    x, upper = _series(table, "certified-upper", place)
    bracket(axes, x, _series(table, "attained", place)[1], upper, "any randomizer")
    x, corollary = _series(table, "rdp-renyi", place)
    _, attained = _series(table, "attained", place)
    refuted = [(a, b) for a, b, c in zip(x, corollary, attained, strict=True) if b < c]
    if refuted:
        axes.plot(*zip(*refuted, strict=True), "x", color=RED, label="claimed below what an attack attains")
    axes.set(xlabel=label, ylabel="Renyi divergence (nats)", yscale="log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend(fontsize=8)


def _caption(table: Table, what: str, axis: str, place: int) -> list[str]:
    at = {(float(row[place]), str(row[2])): float(row[3]) for row in table.rows}
    xs = sorted({x for x, _ in at})
    ratio = [at[x, "rdp-renyi"] / at[x, "certified-upper"] for x in xs]
    gain = [at[x, "clones-2022"] / at[x, "certified-upper"] for x in xs]
    refuted = [x for x in xs if at[x, "rdp-renyi"] < at[x, "attained"]]
    middle = xs[len(xs) // 2]
    verdict = (
        f"At {axis} {', '.join(f'{x:g}' for x in refuted)} it is below what plain randomized response attains."
        if refuted
        else "On this range it is nowhere below what plain randomized response attains; elsewhere it is (`failures`)."
    )
    return [
        f"**Computed.** Renyi divergence of the shuffled reports, {what}: the bounds of the paper's figure; its own "
        "pair (Proposition 1, which is Feldman 2022's), evaluated exactly; Corollary 2; and, added, the certified "
        "bracket: the clone pair that dominates any randomizer, and what binary randomized response attains.",
        "**The paper shows** Girgis' upper bound far above its own values, and Girgis' lower bound below them.",
        f"**Agrees.** At {axis} {middle:g}: Girgis' upper bound {up(at[middle, 'girgis21'])}, the paper's pair "
        f"{up(at[middle, 'clones-2022'])}, Corollary 2 {number(at[middle, 'rdp-renyi'])}, Girgis' lower bound "
        f"{down(at[middle, 'girgis21-lower'])}.",
        f"**Does not.** The proved value for any randomizer is lower still: the paper's pair is {_span(gain)} times "
        f"it, Corollary 2 {_span(ratio)} times. Corollary 2 is asymptotic, no bound. {verdict}",
        "Girgis' bounds are stated for whole orders of at least 2.",
    ]


def _span(values: list[float]) -> str:
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


RDP_FIGURE_2 = Reproduction("rdp-figure-2", "RDP, Figure 2", "Renyi divergence against the local budget", run_figure_2)
RDP_FIGURE_3 = Reproduction("rdp-figure-3", "RDP, Figure 3", "Renyi divergence against the order", run_figure_3)


BLOCKS = 200
PRINTED = PaperReading("laplace", "examples-l1", 10.0, 300, hidden=128)
SCRIPT = PaperReading("laplace", "average-column-sum", 10.0, 300, hidden=1000)
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


def ways(how: Scale) -> dict[tuple[str, float], TrainingMethod]:
    """Return every training of the figure and table, keyed by its name and local budget."""
    trainings: dict[tuple[str, float], TrainingMethod] = {}
    clients = how.clients or BLOCKS
    printed, script = (replace(reading, epochs=how.epochs) for reading in (PRINTED, SCRIPT))
    for budget in BUDGETS:
        trainings[PRINTED_KEY, budget] = Published(printed, (budget,) * BLOCKS)
        trainings[SCRIPT_KEY, budget] = Published(script, (budget,) * BLOCKS)
        own = (budget,) * clients
        trainings[GAUSSIAN, budget] = Honest("gaussian", own, (DELTA,) * clients, how.rounds, 0.2, 2.0)
        trainings[LAPLACE, budget] = Honest("laplace", own, (), how.rounds, 2.0, 1.0)
    trainings[NOISELESS, math.inf] = Published(printed, (math.inf,) * BLOCKS)
    return trainings


def run_figure(quick: bool, progress: Progress) -> Outcome:
    """Train every model, and return the figure of accuracy against epochs with its tables and caption.

    Parameters
    ----------
    quick : bool
        Whether to train on the bundled sample of digits instead of all of MNIST.
    progress : callable
        Called with the share of the work done, from 0 to 1.
    """
    how = scale(quick)
    results = trained(ways(how), how, progress)
    curves = Table(CURVES, list(curve_rows(results)))
    return Outcome(
        {"rdp-figure-4": curves},
        {"rdp-figure-4": Picture(lambda figure: draw_curves(figure, curves), (11.0, 4.4))},
        caption(Table(TABLE, list(summary(results))), how),
    )


def run_table(quick: bool, progress: Progress) -> Outcome:
    """Train every model, and return the table of last accuracies and guarantees with its picture and caption.

    Parameters
    ----------
    quick : bool
        Whether to train on the bundled sample of digits instead of all of MNIST.
    progress : callable
        Called with the share of the work done, from 0 to 1.
    """
    how = scale(quick)
    results = trained(ways(how), how, progress)
    table = Table(TABLE, list(summary(results)))
    return Outcome(
        {"rdp-table-2": table, "rdp-table-2-settings": Table(("setting", PRINTED_KEY, SCRIPT_KEY), settings(how))},
        {"rdp-table-2": Picture(lambda figure: draw_table(figure, table, how), (7.6, 5.0))},
        caption(table, how),
    )


def curve_rows(results: dict[tuple[str, float], Trained]) -> Iterator[tuple[Cell, ...]]:
    """Return the rows of the accuracy table, one for each training and epoch."""
    for (training, budget), runs in results.items():
        for at, (mean, deviation) in enumerate(zip(runs.mean.tolist(), runs.deviation.tolist(), strict=True)):
            yield training, budget, at + 1, mean, deviation, runs.accuracies.shape[0], *_privacy(runs, at)


def summary(results: dict[tuple[str, float], Trained]) -> Iterator[tuple[Cell, ...]]:
    """Return the rows of the summary table: accuracy and guarantee of each training after its last epoch."""
    for (training, budget), runs in results.items():
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
