"""Write docs/tables/*.csv, docs/figures/*.svg and the tables of docs/bounds.md again.

    python -m tools.make_docs_figures              everything, about five minutes
    python -m tools.make_docs_figures --pictures   from the tables as they are, some seconds

Same versions, same bytes: fixed seeds, no date, a fixed salt for the identifiers.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from tools import docs_pages, docs_tables
from tools.docs_tables import MEANING, POPULATIONS, SIZES

from shuffledp import estimate_frequency, simulation_random
from shuffledp.cli.board import board_of
from shuffledp.cli.demo.table import EDUCATIONS, TABLE, grouped
from shuffledp.report.answer import view_of
from shuffledp.report.page import bars_picture
from shuffledp.reproduce import failure_curves, failure_tables, failures
from shuffledp.reproduce.base import BAND, BLUE, GREEN, GREY, INK, PURPLE, RED, STYLE
from shuffledp.reproduce.base import Table as Drawn
from shuffledp.tables import read_columns

DOCS = Path(__file__).resolve().parent.parent / "docs"
TABLES, FIGURES = DOCS / "tables", DOCS / "figures"
HEADERS = {
    **failures.HEADERS,
    "table2": ("population", "n", "seen", "budgets", "key", "kind", "lower", "upper"),
    "table2_refused": ("population", "seen", "budgets", "key", "sizes", "reason"),
}

# ------------------------------------------------------------------ tables


def printed(value: object) -> str:
    """Return a cell: numbers with six significant digits."""
    return f"{float(value):.6g}" if isinstance(value, float) else str(value)


def write(name: str, rows: Iterable[Sequence[object]]) -> None:
    """Write one table."""
    with (TABLES / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(HEADERS[name])
        out.writerows([printed(cell) for cell in row] for row in rows)


def read(name: str) -> list[dict[str, str]]:
    """Read one table."""
    with (TABLES / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def table(name: str) -> Drawn:
    """Read one table as the pictures want it."""
    rows = read(name)
    return Drawn(tuple(rows[0]), [tuple(row.values()) for row in rows])


def write_tables() -> None:
    """Compute and write all tables."""
    TABLES.mkdir(exist_ok=True)
    write("failures", (row for part in failure_tables.PARTS for row in part()))
    write("failures_curves", (point for part in failure_curves.PARTS for point in part()))
    answered, refused = split(docs_tables.table2())
    write("table2", answered)
    write("table2_refused", refused)


def split(rows: Iterable[Sequence[object]]) -> tuple[list[Sequence[object]], list[Sequence[object]]]:
    """Part answers from refusals, and name each refusal once, with the sizes it was met at."""
    answered: list[Sequence[object]] = []
    sizes: dict[tuple[object, ...], list[int]] = defaultdict(list)
    reasons: dict[tuple[object, ...], str] = {}
    for population, n, seen, budgets, key, kind, lower, upper, reason in rows:
        if not reason:
            answered.append((population, n, seen, budgets, key, kind, lower, upper))
            continue
        cell = (population, seen, budgets, key)
        sizes[cell].append(int(str(n)))
        reasons[cell] = str(reason)  # the last, for the largest n
    met = {cell: f"{min(ns)} to {max(ns)}" for cell, ns in sizes.items()}
    return answered, [(*cell, met[cell], reasons[cell]) for cell in sizes]


# ------------------------------------------------------------------ drawing


def save(figure: Figure, name: str, description: str) -> None:
    """Write a picture without a date."""
    FIGURES.mkdir(exist_ok=True)
    metadata = {"Date": None, "Title": description, "Creator": None}
    figure.savefig(FIGURES / f"{name}.svg", metadata=metadata, bbox_inches="tight", pad_inches=0.12)
    plt.close(figure)


# ------------------------------------------------------------------ Table 2's populations

LINES = {
    "gspa": (RED, (0, (5, 2))),
    "rdp-gdp": (PURPLE, (0, (5, 2))),
    "rdp-renyi": (PURPLE, (0, (2, 2))),
    "liu23": ("#b0752a", (0, (5, 2))),
    "clones-closed": ("#b0752a", (0, (1, 2))),
    "clones-2022": (GREEN, "-"),
    "fmt22-closed": (GREEN, "-"),
    "fmt23-closed": (GREEN, "-"),
    "erlingsson19": (GREY, "-"),
    "balle19-hoeffding": (GREY, "-"),
    "balle19-bennett": (GREY, "-"),
    "girgis21": (GREY, "-"),
    "local": (GREY, "-"),
}
BRACKET_UPPER, BRACKET_LOWER = ("clones", "blanket"), ("count-exact", "window")


def curve_of(rows: list[dict[str, str]], seen: str, key: str) -> tuple[list[int], list[float], str]:
    """Return one bound's epsilons by n, and how budgets were counted."""
    mine = [row for row in rows if row["seen"] == seen and row["key"] == key]
    end = "lower" if mine and mine[0]["kind"] == "certified-lower" else "upper"
    mine = [row for row in mine if float(row[end]) > 0.0]
    return [int(r["n"]) for r in mine], [float(r[end]) for r in mine], mine[0]["budgets"] if mine else "own"


def spread(wanted: list[float], room: float) -> list[float]:
    """Move label positions apart, keeping their order."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = [wanted[i] for i in order]
    for _ in range(400):
        for i in range(len(placed) - 1):
            short = room - (placed[i + 1] - placed[i])
            if short > 1e-9:
                placed[i] -= short / 2
                placed[i + 1] += short / 2
    found = [0.0] * len(wanted)
    for position, i in zip(placed, order, strict=True):
        found[i] = position
    return found


def draw_population(axes: Axes, rows: list[dict[str, str]], title: str) -> None:
    """Draw one panel: the certified bracket, every other bound, and names at the right."""
    x, high, low = list(SIZES), [math.inf] * len(SIZES), [0.0] * len(SIZES)
    for keys, edge, best in ((BRACKET_UPPER, high, min), (BRACKET_LOWER, low, max)):
        for key in keys:
            for n, value in zip(*curve_of(rows, "reports", key)[:2], strict=True):
                edge[x.index(n)] = best(edge[x.index(n)], value)
    axes.fill_between(x, low, high, **BAND)
    axes.plot(x, high, color=BLUE, lw=2.2)
    axes.plot(x, low, color=INK, lw=1.4)
    labels = [("certified", high[-1], BLUE, "bold"), ("attained", low[-1], INK, "bold")]
    for key, (color, dashes) in LINES.items():
        n, ys, how = curve_of(rows, "reports", key)
        if ys:
            axes.plot(n, ys, color=color, ls=dashes, lw=1.1, marker="o" if len(ys) == 1 else None, ms=3)
            labels.append((key + (" ᵐᵃˣ" if how == "largest" else ""), ys[-1], color, "normal"))
    for seen, key, name in (("ordered", "ordered", "ordered steps"), ("levels", "clones", "levels visible")):
        n, ys, _ = curve_of(rows, seen, key)
        if abs(ys[-1] / high[-1] - 1) < 0.01:
            continue  # one budget: the same bound
        axes.plot(n, ys, color=BLUE, lw=1.0, ls=(0, (3, 1, 1, 1)))
        labels.append((name, ys[-1], BLUE, "normal"))
    axes.set(yscale="log", xlim=(1000, 10_000), title=title)
    axes.set_xticks([1000, 4000, 7000, 10_000], ["1,000", "4,000", "7,000", "10,000"])
    bottom, top = (math.log10(v) for v in axes.get_ylim())
    where = spread([math.log10(y) for _, y, _, _ in labels], 0.040 * (top - bottom))
    for (name, y, color, weight), at in zip(labels, where, strict=True):
        thread = {"arrowstyle": "-", "color": color, "lw": 0.4, "shrinkA": 0, "shrinkB": 0}
        where_at = {"xy": (10_000, y), "xytext": (10_900, 10**at), "annotation_clip": False, "arrowprops": thread}
        axes.annotate(name, **where_at, color=color, fontsize=7.5, weight=weight, va="center")


def draw_table2() -> None:
    """All bounds for GSPA's Table 2 populations."""
    rows = read("table2")
    figure, panels = plt.subplots(2, 2, figsize=(11.5, 10.5))
    for axes, name in zip(panels.flat, POPULATIONS, strict=True):
        draw_population(axes, [row for row in rows if row["population"] == name], f"{name}: {MEANING[name]}")
    for axes in panels[:, 0]:
        axes.set_ylabel("central ε of the least private user, δ = 10⁻⁴")
    for axes in panels[1]:
        axes.set_xlabel("users n")
    figure.subplots_adjust(wspace=0.52, hspace=0.18)
    save(figure, "table2-bounds", "Every bound for the four populations of GSPA's Table 2")


def draw_failures(names: Iterable[str] = tuple(failures.PICTURES)) -> None:
    """Draw the pictures of docs/where-the-papers-fail.md."""
    numbers, curves = (table(name) for name in failures.HEADERS)
    for name in names:
        drawn, size, title = failures.PICTURES[name]
        figure = plt.figure(figsize=size, layout="constrained")
        drawn(figure, numbers, curves)
        save(figure, name, title)


# ------------------------------------------------------------------ the first page: what answers look like

ASKED, BUDGET, DELTA, SEED = 1000, 3.0, 1e-6, 7
"""People of the survey that the first page shows, their local budget, the central delta, and the simulation's seed."""
PAGE_STYLE = (
    "svg{font:13px system-ui,'DejaVu Sans',sans-serif;background:#fff}text{fill:#1b2430}.bar{fill:#9dbfe6}"
    ".axis{stroke:#5a6675}.interval{stroke:#1a5fb4;stroke-width:2.5}.truth{fill:#0b7a75}"
)
"""What the pictures need of the style sheet of the pages that they are on, by day."""


def answers() -> dict[str, str]:
    """Return the pictures of the first page by name: those of a survey's result page and of a page for a board."""
    records = grouped(read_columns(TABLE, texts=["education"]).texts["education"])[:ASKED]
    random = simulation_random(SEED)
    release = estimate_frequency(records, list(EDUCATIONS), BUDGET, seen="reports", delta=DELTA, random=random)
    truths = [float((records == name).sum()) / ASKED for name in EDUCATIONS]
    board = board_of([release.guarantee], release.guarantee.epsilon.upper, "A survey")
    found = {"result-survey": bars_picture(view_of(release).entries(), truths)}
    found["result-board"] = board[board.index("<svg") : board.index("</svg>") + len("</svg>")]
    return {name: alone(picture) for name, picture in found.items()}


def alone(picture: str) -> str:
    """Return a page's picture as a file of its own."""
    head, rest = picture.split(">", 1)
    return f'{head} xmlns="http://www.w3.org/2000/svg"><style>{PAGE_STYLE}</style>{rest}\n'


def draw_answers() -> None:
    """Write the pictures of the first page."""
    for name, picture in answers().items():
        (FIGURES / f"{name}.svg").write_text(picture, encoding="utf-8")


def draw() -> None:
    """Draw everything from the tables."""
    draw_answers()
    with mpl.rc_context(STYLE):
        draw_failures()
        draw_table2()


def main() -> None:
    """Write what was asked for."""
    parser = argparse.ArgumentParser(description="Write the tables and pictures of docs/ again.")
    parser.add_argument("--pictures", action="store_true", help="draw again from the tables as they are")
    if not parser.parse_args().pictures:
        write_tables()
    docs_pages.put(DOCS / "bounds.md", read("table2"), read("table2_refused"))
    draw()


if __name__ == "__main__":
    main()
