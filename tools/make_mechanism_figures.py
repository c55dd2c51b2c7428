"""Write docs/tables/mechanisms*.csv, docs/figures/mechanisms-*.svg and .png: which mechanism errs how much.

    python -m tools.make_mechanism_figures              everything, some minutes
    python -m tools.make_mechanism_figures --pictures   from the tables as they are, some seconds

Lines are predicted (`shuffledp.planning.question`), dots are measured: randomized and estimated by the analyzers, from
a seed. Same versions, same bytes.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from shuffledp.budgets import Budgets
from shuffledp.numerics.randomness import simulation_random
from shuffledp.planning import Guess, plan
from shuffledp.planning.question import PlannedQuestion, predict
from shuffledp.planning.target import Wish
from shuffledp.questions.frequency import Frequency, frequency
from shuffledp.questions.mean import Mean, mean
from shuffledp.questions.tally import ShuffledReports
from shuffledp.reproduce.base import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, STYLE

DOCS = Path(__file__).resolve().parent.parent / "docs"
TABLES, FIGURES = DOCS / "tables", DOCS / "figures"
SIZES = (2, 10, 100, 1000)
BUDGETS = tuple(float(e) for e in np.geomspace(0.1, 8.0, 23))
MEASURED_AT = (0.5, 1.0, 2.0, 4.0, 6.0)
CENTRAL_AT = tuple(float(e) for e in np.geomspace(0.1, 8.0, 12))
CENTRAL_N, CENTRAL_DELTA = 100_000, 1e-6
COLOURS = {
    "krr": BLUE, "sue": GREY, "oue": RED, "olh": ORANGE, "hadamard": PURPLE, "subset": GREEN,
    "one-bit": BLUE, "laplace": RED, "piecewise": ORANGE, "hybrid": GREEN,
}  # fmt: skip
DASHES = {"oue": (0, (4, 1.5)), "olh": (0, (1, 1)), "hadamard": (0, (6, 2, 1, 2)), "sue": (0, (2, 2))}
HEADERS = {
    "mechanisms": ("question", "mechanism", "epsilon0", "predicted", "measured"),
    "mechanisms_central": ("question", "mechanism", "epsilon0", "central_epsilon", "standard_error"),
    "mechanisms_planned": ("share", "k", "epsilon0", "mechanism", "local_budget", "central_epsilon", "standard_error"),
}
PLANNED_AT = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Local budgets that everybody allows."""
PLANNED_TARGET = 0.1
SHARES = ("worst", "1/k")
"""Which category's error is planned for: that of the worst share a category can have, or that of equal shares."""
PAGE = DOCS / "which-mechanism.md"
BEGIN, END = "<!-- planned: begin -->", "<!-- planned: end -->"
USERS = 4000
REPEATS = {"mean": 400, "2": 400, "10": 60, "100": 10, "1000": 4}
"""Each repetition has k - 1 nearly independent errors: the root mean square of a dot is within 4 % or so."""
VALUES = np.random.default_rng(11).beta(2.0, 5.0, USERS)
"""Numbers whose mean is asked for: in [0, 1], mean 0.29, standard deviation 0.16."""


def question_of(name: str) -> PlannedQuestion:
    """Return the question: ``"mean"``, or a number of categories."""
    if name == "mean":
        return PlannedQuestion(Mean(0.0, 1.0), Guess(mean=float(VALUES.mean()), deviation=float(VALUES.std())))
    return PlannedQuestion(Frequency(range(int(name))), Guess(share=1.0 / int(name)))


def mechanisms_of(name: str) -> list[str]:
    """All that run on pure budgets."""
    return [mechanism for mechanism in question_of(name).mechanisms if mechanism != "gaussian"]


def predicted(name: str, mechanism: str, epsilon0: float, n: int = 10**6) -> float:
    """Return the standard error times the square root of the number of users."""
    question, budgets = question_of(name), Budgets([epsilon0], [n])
    family = question.family(mechanism, budgets, "reports")
    return predict(family, budgets, None, question.moments).standard_error * math.sqrt(n)


def measured(name: str, mechanism: str, epsilon0: float) -> float:
    """Return the same from simulated collections.

    It is the root mean square over repetitions (and categories, all equally frequent).
    """
    question, random = question_of(name), simulation_random(17)
    if question.kind == "mean":
        records, truth, repeats = VALUES, float(VALUES.mean()), REPEATS["mean"]
    else:
        records, truth, repeats = np.arange(USERS) % int(name), 1.0 / int(name), REPEATS[name]
    budgets = Budgets([epsilon0], [records.size])
    family = question.family(mechanism, budgets, "reports")
    squares: list[float] = []
    for _ in range(repeats):
        reports = family.randomize(records, epsilon0, random)
        shuffled = ShuffledReports(reports, np.full(records.size, epsilon0), seen="reports")
        analyze = mean if question.kind == "mean" else frequency
        squares.append(float(np.mean((analyze(shuffled, family).value - truth) ** 2)))  # type: ignore[operator]
    return math.sqrt(float(np.mean(squares)) * records.size)


def error_rows() -> Iterator[tuple[object, ...]]:
    """Error of one user's report, by local budget."""
    for name in ("mean", *map(str, SIZES)):
        for mechanism in mechanisms_of(name):
            for epsilon0 in sorted({*BUDGETS, *MEASURED_AT}):
                dot = measured(name, mechanism, epsilon0) if epsilon0 in MEASURED_AT else ""
                yield name, mechanism, epsilon0, predicted(name, mechanism, epsilon0), dot


def central_rows() -> Iterator[tuple[object, ...]]:
    """Error at n users, by certified central epsilon."""
    wish = Wish(1.0, CENTRAL_DELTA)
    for name in ("mean", *map(str, SIZES)):
        for mechanism in mechanisms_of(name):
            for epsilon0 in CENTRAL_AT:
                budgets = Budgets([epsilon0], [CENTRAL_N])
                family = question_of(name).family(mechanism, budgets, "reports")
                error = predicted(name, mechanism, epsilon0, CENTRAL_N) / math.sqrt(CENTRAL_N)
                yield name, mechanism, epsilon0, wish.certified(budgets, family, "reports"), error


def planned(share: str, k: int, epsilon0: float, mechanism: str) -> tuple[float, float, float]:
    """Return the local budget, certified epsilon and error of the most accurate plan within the target."""
    guess = Guess(share=None if share == "worst" else 1.0 / k)
    made = plan(
        Budgets([epsilon0], [CENTRAL_N]), Frequency(range(k)), guess=guess, target_epsilon=PLANNED_TARGET,
        delta=CENTRAL_DELTA, mechanisms=[mechanism],
    )  # fmt: skip
    rule = made.bucketing
    return float(rule.budgets.epsilons[0]), rule.certified_epsilon, made.standard_error


def planned_rows() -> Iterator[tuple[object, ...]]:
    """Return what the planner finds for n users who all allow the same local budget, one mechanism at a time."""
    for share in SHARES:
        for k in SIZES[1:]:
            for epsilon0 in PLANNED_AT:
                for mechanism in mechanisms_of(str(k)):
                    yield share, k, epsilon0, mechanism, *planned(share, k, epsilon0, mechanism)


def planned_table(rows: Sequence[dict[str, str]]) -> list[str]:
    """Return the table of the page: the mechanisms within 3 % of the smallest error, and how much larger krr's is."""
    heads = [f"{float(e):g} allowed" for e in PLANNED_AT]
    lines = ["| categories | share | " + " | ".join(heads) + " |", "|---|---|" + "---|" * len(heads)]
    for k in SIZES[1:]:
        for share in SHARES:
            cells = [planned_cell(rows, share, str(k), e) for e in PLANNED_AT]
            lines.append(f"| {k:,} | {share} | " + " | ".join(cells) + " |")
    return lines


def planned_cell(rows: Sequence[dict[str, str]], share: str, k: str, epsilon0: float) -> str:
    """Return one cell of the table."""
    own = [row for row in rows if (row["share"], row["k"], float(row["epsilon0"])) == (share, k, epsilon0)]
    errors = {row["mechanism"]: float(row["standard_error"]) for row in own}
    best = min(errors.values())
    names = [name for name in sorted(errors, key=lambda name: errors[name]) if errors[name] <= 1.03 * best]
    others = "" if "krr" in names else f"; `krr` errs {errors['krr'] / best:.3g} times as much"
    return ", ".join(f"`{name}`" for name in names) + others


def put(rows: Sequence[dict[str, str]]) -> None:
    """Write the table into the page, between its marks."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text("\n".join([f"{before}{BEGIN}", "", *planned_table(rows), "", f"{END}{after}"]), encoding="utf-8")


def write(name: str, rows: Iterable[Sequence[object]]) -> None:
    """Write one table, six significant digits."""
    with (TABLES / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(HEADERS[name])
        out.writerows([f"{c:.6g}" if isinstance(c, float) else c for c in row] for row in rows)


def read(name: str) -> list[dict[str, str]]:
    """Read one table."""
    with (TABLES / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def panel(axes: Axes, rows: Sequence[dict[str, str]], x: str, y: str, title: str) -> None:
    """One question: a line for each mechanism, dots where it was measured."""
    for mechanism in dict.fromkeys(row["mechanism"] for row in rows):
        own = [row for row in rows if row["mechanism"] == mechanism]
        points = sorted((float(row[x]), float(row[y])) for row in own)
        style = DASHES.get(mechanism, "-")
        axes.plot(*zip(*points, strict=True), color=COLOURS[mechanism], linestyle=style, label=mechanism)
        dots = [(float(row[x]), float(row["measured"])) for row in own if row.get("measured")]
        if dots:
            axes.plot(*zip(*dots, strict=True), "o", color=COLOURS[mechanism], markersize=3.6)
    axes.set(xscale="log", yscale="log", title=title)
    axes.minorticks_off()
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")


def draw(table: str, x: str, y: str, x_label: str, y_label: str, description: str) -> None:
    """Five panels: a mean, and four numbers of categories."""
    rows = read(table)
    figure, grid = plt.subplots(2, 3, figsize=(11.5, 6.6), layout="constrained")
    panels = list(grid.flat)
    for axes, name in zip(panels, ("mean", *map(str, SIZES)), strict=False):
        title = "mean of a number in [0, 1]" if name == "mean" else f"frequency, k = {name}"
        panel(axes, [row for row in rows if row["question"] == name], x, y, title)
        axes.set(xlabel=x_label, ylabel=y_label)
    for i, axes in enumerate((panels[0], panels[2])):
        handles, labels = axes.get_legend_handles_labels()
        legend = panels[5].legend(
            handles, labels, loc="upper left", bbox_to_anchor=(0.55 * i, 1.0), title=("means", "frequencies")[i]
        )
        panels[5].add_artist(legend)
    panels[5].axis("off")
    name = table.replace("_", "-")
    metadata = {"Date": None, "Title": description, "Creator": None}
    figure.savefig(FIGURES / f"{name}.svg", metadata=metadata, bbox_inches="tight", pad_inches=0.12)
    figure.savefig(FIGURES / f"{name}.png", dpi=130, metadata={"Software": None}, bbox_inches="tight", pad_inches=0.12)
    plt.close(figure)


def main() -> None:
    """Write tables and pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", action="store_true", help="draw from the tables as they are")
    if not parser.parse_args().pictures:
        write("mechanisms", error_rows())
        write("mechanisms_central", central_rows())
        write("mechanisms_planned", planned_rows())
    put(read("mechanisms_planned"))
    with mpl.rc_context(STYLE):
        draw(
            "mechanisms", "epsilon0", "predicted", "local budget", "standard error times root n",
            "Standard error against the local budget, predicted and measured",
        )  # fmt: skip
        draw(
            "mechanisms_central", "central_epsilon", "standard_error", "certified central epsilon", "standard error",
            "Standard error against the certified central epsilon, 100,000 users",
        )  # fmt: skip


if __name__ == "__main__":
    main()
