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
from tools import docs_curves, docs_pages, docs_tables
from tools.docs_tables import MEANING, POPULATIONS, SIZES

DOCS = Path(__file__).resolve().parent.parent / "docs"
TABLES, FIGURES = DOCS / "tables", DOCS / "figures"
HEADERS = {
    "failures": ("item", "case", "quantity", "value"),
    "failures_curves": ("figure", "series", "x", "y"),
    "table2": ("population", "n", "seen", "budgets", "key", "kind", "lower", "upper"),
    "table2_refused": ("population", "seen", "budgets", "key", "sizes", "reason"),
}
BLUE, INK, RED, PURPLE, GREEN, GREY = "#2f6f9f", "#222222", "#c8443c", "#8057a8", "#3f7f4f", "#777777"
STYLE = {
    "svg.hashsalt": "shuffledp",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "path.simplify": True,
}
BAND = {"color": BLUE, "alpha": 0.22, "linewidth": 0}

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


def write_tables() -> None:
    """Compute and write all tables."""
    TABLES.mkdir(exist_ok=True)
    write("failures", docs_tables.failures())
    write("failures_curves", docs_curves.curves())
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


def series_of(rows: list[dict[str, str]], figure: str) -> dict[str, tuple[list[float], list[float]]]:
    """Return the curves of one picture by series."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    for row in rows:
        if row["figure"] == figure:
            x, y = found.setdefault(row["series"], ([], []))
            x.append(float(row["x"]))
            y.append(float(row["y"]))
    return found


def bracket(axes: Axes, curves: dict[str, tuple[list[float], list[float]]], upper: str, lower: str) -> None:
    """Draw certified and attained curves and shade what lies between."""
    x = curves["attained"][0]
    axes.fill_between(x, curves["attained"][1], interpolated(curves["certified"], x), **BAND)
    axes.plot(*curves["certified"], color=BLUE, label=upper)
    axes.plot(*curves["attained"], color=INK, label=lower)


def interpolated(curve: tuple[list[float], list[float]], at: list[float]) -> list[float]:
    """Return a curve at other points, log-linear."""
    x, y = curve
    found = []
    for point in at:
        right = next(i for i, value in enumerate(x) if value >= point - 1e-12)
        left = max(right - 1, 0)
        share = 1.0 if right == left else (point - x[left]) / (x[right] - x[left])
        found.append(math.exp((1 - share) * math.log(y[left]) + share * math.log(y[right])))
    return found


def draw_one_budget(rows: list[dict[str, str]]) -> None:
    """Items 1 and 2."""
    curves = series_of(rows, "one-budget")
    figure, axes = plt.subplots(figsize=(7.2, 4.2))
    bracket(axes, curves, "certified: clone pair", "attained by a real protocol")
    axes.plot(*curves["gspa"], color=RED, ls=(0, (5, 2)), label="claimed: GSPA Theorem 2")
    axes.plot(*curves["rdp-gdp"], color=PURPLE, ls=(0, (2, 2)), label="claimed: RDP paper, Theorem 2")
    axes.set(xscale="log", yscale="log", xlabel="local budget ε₀ of everybody", ylabel="central ε")
    axes.set_title("1,000 users, δ = 10⁻⁶: too large on the left, too small on the right")
    axes.set_xticks([0.05, 0.1, 0.2, 0.5, 1, 2, 4, 8], ["0.05", "0.1", "0.2", "0.5", "1", "2", "4", "8"])
    axes.set_yticks([0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"])
    axes.minorticks_off()
    gap = {"arrowstyle": "<->", "color": RED, "lw": 1.0, "shrinkA": 2, "shrinkB": 2}
    axes.annotate("", (0.1, 0.2501), (0.1, 0.0099), arrowprops=gap)
    axes.annotate("25 times\ntoo large", (0.108, 0.07), color=RED, va="center")
    point = {"arrowstyle": "->", "color": RED, "lw": 1.0}
    axes.annotate("below what is\nreally leaked", (5.0, 2.3), (5.0, 0.2), color=RED, ha="center", arrowprops=point)
    axes.legend(loc="upper left", bbox_to_anchor=(0.02, 0.99))
    save(figure, "failures-one-budget", "Central epsilon by local budget: claimed, attained, certified")


def draw_own_budgets(rows: list[dict[str, str]]) -> None:
    """Items 4 and 5."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.0), layout="constrained")
    for axes, name, title, attack, proved in (
        (left, "laplace", "Laplace noise: one user at 2, 9,999 at 0.01", "counting one window", "blanket"),
        (right, "ordered", "Ordered: 900 steps at 0.01, 100 at 4", "three symbols, exact", "ordered"),
    ):
        curves = series_of(rows, name)
        bracket(axes, curves, f"certified: {proved}", f"attained: {attack}")
        axes.plot(*curves["gspa"], color=RED, ls=(0, (5, 2)), label="claimed: GSPA Theorem 2")
        axes.set(yscale="log", xlabel="central ε", ylabel="δ", ylim=(1e-12, 0.2), xlim=(0, curves["gspa"][0][-1]))
        axes.set_yticks([1e-12, 1e-9, 1e-6, 1e-3], ["10⁻¹²", "10⁻⁹", "10⁻⁶", "10⁻³"])
        axes.minorticks_off()
        axes.set_title(title)
    left.legend(loc="lower right", fontsize=9, handlelength=1.4)
    right.legend(loc="upper right", bbox_to_anchor=(1.02, 1.0))
    save(figure, "failures-own-budgets", "delta by epsilon for two populations with own budgets")


def draw_renyi(rows: list[dict[str, str]]) -> None:
    """Item 7."""
    figure, panels = plt.subplots(1, 2, figsize=(9.6, 3.9), layout="constrained")
    for axes, e0 in zip(panels, (2, 4), strict=True):
        curves = series_of(rows, f"renyi, epsilon0 = {e0}")
        bracket(axes, curves, "certified: clone pair", "attained: randomized response")
        axes.plot(*curves["own pair"], color=GREY, lw=1.2, label="the paper's own pair, exact")
        axes.plot(*curves["rdp-renyi"], color=PURPLE, ls=(0, (5, 2)), label="claimed: Corollary 2")
        axes.set(xscale="log", yscale="log", xlabel="order λ", ylabel="Rényi divergence")
        axes.set_xticks([2, 4, 8, 16, 32, 64], ["2", "4", "8", "16", "32", "64"])
        axes.minorticks_off()
        axes.set_title(f"ε₀ = {e0}, 1,000 users")
    panels[0].legend(loc="upper left")
    save(figure, "failures-renyi", "Renyi divergence by order: claimed, attained, certified")


def draw_rounds(rows: list[dict[str, str]]) -> None:
    """Item 10."""
    curves = series_of(rows, "rounds")
    figure, axes = plt.subplots(figsize=(7.2, 4.0))
    axes.plot(*curves["unshuffled"], color=GREY, lw=1.2, label="no shuffling at all")
    bracket(axes, curves, "certified: one permutation for all rounds", "attained: one permutation for all rounds")
    axes.plot(*curves["fresh"], color=GREEN, label="certified: a fresh permutation per round")
    axes.plot(*curves["gspa"], color=RED, ls=(0, (5, 2)), label="claimed: √T μ")
    axes.set(yscale="log", xlabel="rounds T", ylabel="central ε", xlim=(1, 20))
    axes.set_xticks([1, 5, 10, 15, 20])
    axes.set_yticks([0.03, 0.1, 0.3, 1, 3, 10], ["0.03", "0.1", "0.3", "1", "3", "10"])
    axes.minorticks_off()
    axes.set_title("Randomized response at 0.5 per round, 1,000 users, δ = 10⁻⁵")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    save(figure, "failures-rounds", "Central epsilon by number of rounds")


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
BRACKET_UPPER, BRACKET_LOWER = ("clones", "blanket", "levels"), ("rr-exact", "window")


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
    for seen, name in (("ordered", "ordered steps"), ("levels", "levels visible")):
        n, ys, _ = curve_of(rows, seen, seen)
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


def draw() -> None:
    """Draw everything from the tables."""
    rows = read("failures_curves")
    with mpl.rc_context(STYLE):
        draw_one_budget(rows)
        draw_own_budgets(rows)
        draw_renyi(rows)
        draw_rounds(rows)
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
