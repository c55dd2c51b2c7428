"""Where the papers fail: claimed, attained, certified, one picture per item."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from shuffledp.reproduce import failure_curves, failure_tables, normal_limit
from shuffledp.reproduce.base import (
    BAND,
    BLUE,
    GREEN,
    GREY,
    INK,
    PURPLE,
    RED,
    Cell,
    Outcome,
    Picture,
    Progress,
    Reproduction,
    Table,
    silent,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# The pictures of docs/where-the-papers-fail.md, drawn from the rows of failures.csv and failures_curves.csv.

Curves = dict[str, tuple[list[float], list[float]]]
CLAIMED = (0, (5, 2))  # dashes of what is claimed and not proved


def series_of(curves: Table, figure: str) -> Curves:
    """Return the curves of one picture as a dict from a curve's name to its x and y values.

    Parameters
    ----------
    curves : Table
        The points of all curves: figure, series, x, y.
    figure : str
        Name of the picture in the first column.
    """
    by_series: Curves = {}
    for name, series, x, y in curves.rows:
        if name == figure:
            at, values = by_series.setdefault(str(series), ([], []))
            at.append(float(x))
            values.append(float(y))
    return by_series


def value_of(failures: Table, item: int, case: str, quantity: str) -> float:
    """Return the number in one row of the failure tables.

    Parameters
    ----------
    failures : Table
        Rows of item, case, quantity and value.
    item : int
        The row's item.
    case, quantity : str
        How the row's case and quantity begin.
    """
    for row in failures.rows:
        if int(row[0]) == item and str(row[1]).startswith(case) and str(row[2]).startswith(quantity):
            return float(row[3])
    raise KeyError((item, case, quantity))


def _bracket(axes: Axes, curves: Curves, upper: str, lower: str) -> None:
    """Draw certified and attained curves and shade what lies between."""
    x = curves["attained"][0]
    axes.fill_between(x, curves["attained"][1], _interpolated(curves["certified"], x), **BAND)
    axes.plot(*curves["certified"], color=BLUE, label=upper)
    axes.plot(*curves["attained"], color=INK, label=lower)


def _interpolated(curve: tuple[list[float], list[float]], at: list[float]) -> list[float]:
    """Return a curve at other points, log-linear."""
    x, y = curve
    values: list[float] = []
    for point in at:
        right = next(i for i, value in enumerate(x) if value >= point - 1e-12)
        left = max(right - 1, 0)
        share = 1.0 if right == left else (point - x[left]) / (x[right] - x[left])
        values.append(math.exp((1 - share) * math.log(y[left]) + share * math.log(y[right])))
    return values


def one_budget(figure: Figure, failures: Table, curves: Table) -> None:
    """Draw items 1 and 2 of the tables on an empty figure: claimed and attained epsilon of equal budgets; see `run`."""
    del failures
    series = series_of(curves, "one-budget")
    axes = figure.subplots()
    _bracket(axes, series, "certified: clone pair", "attained by a real protocol")
    axes.plot(*series["gspa"], color=RED, ls=CLAIMED, label="claimed: GSPA Theorem 2")
    axes.plot(*series["rdp-gdp"], color=PURPLE, ls=(0, (2, 2)), label="claimed: RDP paper, Theorem 2")
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


def own_budgets(figure: Figure, failures: Table, curves: Table) -> None:
    """Draw items 4 and 5 of the tables on an empty figure: the claims fail for users with own budgets; see `run`."""
    del failures
    left, right = figure.subplots(1, 2)
    for axes, name, title, attack, proved in (
        (left, "laplace", "Laplace noise: one user at 2, 9,999 at 0.01", "counting one window", "blanket"),
        (right, "ordered", "Ordered: 900 steps at 0.01, 100 at 4", "three symbols, exact", "ordered"),
    ):
        series = series_of(curves, name)
        _bracket(axes, series, f"certified: {proved}", f"attained: {attack}")
        axes.plot(*series["gspa"], color=RED, ls=CLAIMED, label="claimed: GSPA Theorem 2")
        axes.set(yscale="log", xlabel="central ε", ylabel="δ", ylim=(1e-12, 0.2), xlim=(0, series["gspa"][0][-1]))
        axes.set_yticks([1e-12, 1e-9, 1e-6, 1e-3], ["10⁻¹²", "10⁻⁹", "10⁻⁶", "10⁻³"])
        axes.minorticks_off()
        axes.set_title(title)
    left.legend(loc="lower right", fontsize=9, handlelength=1.4)
    right.legend(loc="upper right", bbox_to_anchor=(1.02, 1.0))


def approximate(figure: Figure, failures: Table, curves: Table) -> None:
    """Draw item 6 of the tables on an empty figure: the claim fails for budgets with delta0 > 0; see `run`."""
    del failures
    series = series_of(curves, "approximate")
    axes = figure.subplots()
    axes.plot(*series["attained"], color=INK, label="attained: the record in clear")
    axes.plot(*series["gspa"], color=RED, ls=CLAIMED, label="claimed: GSPA Theorem 2")
    axes.set(yscale="log", xlabel="central ε", ylabel="δ", ylim=(1e-30, 1))
    axes.set_title("Budgets (0.5, 0.001), 10,000 users: no shuffling hides a record in clear")
    axes.legend(loc="lower left")


def renyi(figure: Figure, failures: Table, curves: Table) -> None:
    """Draw item 7 of the tables on an empty figure: claimed and true Renyi divergences; see `run`."""
    del failures
    panels = figure.subplots(1, 2)
    for axes, e0 in zip(panels, (2, 4), strict=True):
        series = series_of(curves, f"renyi, epsilon0 = {e0}")
        _bracket(axes, series, "certified: clone pair", "attained: randomized response")
        axes.plot(*series["own pair"], color=GREY, lw=1.2, label="the paper's own pair, exact")
        axes.plot(*series["rdp-renyi"], color=PURPLE, ls=CLAIMED, label="claimed: Corollary 2")
        axes.set(xscale="log", yscale="log", xlabel="order λ", ylabel="Rényi divergence")
        axes.set_xticks([2, 4, 8, 16, 32, 64], ["2", "4", "8", "16", "32", "64"])
        axes.minorticks_off()
        axes.set_title(f"ε₀ = {e0}, 1,000 users")
    panels[0].legend(loc="upper left")


def training(figure: Figure, failures: Table, curves: Table) -> None:
    """Draw item 8 of the tables on an empty figure: failures of the claims on private training; see `run`."""
    del curves
    pairs = (
        ("what replacing a client moves", "one step", "claimed movement", "real movement", RED, INK),
        ("ε of one step", "one step", "claimed epsilon", "real epsilon", RED, INK),
        ("ε of 50 epochs, 100 messages", "100 messages", "claimed epsilon", "epsilon of the same noise", RED, BLUE),
    )
    for axes, (title, case, left, right, first, second) in zip(figure.subplots(1, 3), pairs, strict=True):
        values = [value_of(failures, 8, case, left), value_of(failures, 8, case, right)]
        _bars(axes, title, ("claimed", "real" if second == INK else "not shuffled"), values, (first, second))
        axes.set_yscale("log")
        axes.set_ylim(min(values) / 4, max(values) * 4)


def estimators(figure: Figure, failures: Table, curves: Table) -> None:
    """Draw item 9 of the tables on an empty figure: expectation and error of the papers' estimators; see `run`."""
    del curves
    left, right = figure.subplots(1, 2)
    values = [
        value_of(failures, 9, "zeros among the least", "expected"),
        value_of(failures, 9, "density", "true"),
        value_of(failures, 9, "zeros among the most", "expected"),
    ]
    names = ("zeros among\nthe least cautious", "independent", "zeros among\nthe most cautious")
    _bars(left, "Algorithm 2: expected estimate of 0.7", names, values, (RED, INK, RED))
    left.axhline(values[1], color=GREY, linestyle=":", linewidth=1)
    case = "mean over [20, 80]"
    errors = [value_of(failures, 9, case, what) for what in ("standard error of the plain", "standard error with")]
    _bars(right, "Algorithm 1: standard error, 10,000 users", ("plain average", "weights ε₀²"), errors, (RED, BLUE))


def rounds(figure: Figure, failures: Table, curves: Table) -> None:
    """Draw item 10 of the tables on an empty figure: epsilon over many rounds under one permutation; see `run`."""
    del failures
    series = series_of(curves, "rounds")
    axes = figure.subplots()
    axes.plot(*series["unshuffled"], color=GREY, lw=1.2, label="no shuffling at all")
    _bracket(axes, series, "certified: one permutation for all rounds", "attained: one permutation for all rounds")
    axes.plot(*series["fresh"], color=GREEN, label="certified: a fresh permutation per round")
    axes.plot(*series["gspa"], color=RED, ls=CLAIMED, label="claimed: √T μ")
    axes.set(yscale="log", xlabel="rounds T", ylabel="central ε", xlim=(1, 20))
    axes.set_xticks([1, 5, 10, 15, 20])
    axes.set_yticks([0.03, 0.1, 0.3, 1, 3, 10], ["0.03", "0.1", "0.3", "1", "3", "10"])
    axes.minorticks_off()
    axes.set_title("Randomized response at 0.5 per round, 1,000 users, δ = 10⁻⁵")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))


def pure(figure: Figure, failures: Table, curves: Table) -> None:
    """Draw item 11 of the tables on an empty figure: distance of approximate randomizers from pure ones; see `run`."""
    series = series_of(curves, "pure")
    axes = figure.subplots()
    axes.plot(*series["real"], color=INK, label="real: at least (k − 1)/(1 + e)")
    axes.plot(*series["claimed"], color=RED, ls=CLAIMED, label="claimed: RDP, Lemma 6")
    solved = [(k, value_of(failures, 11, f"{k} values", "real distance")) for k in (6, 10)]
    axes.plot(*zip(*solved, strict=True), "o", color=INK, label="linear program")
    axes.set(xlabel="values a record can have", ylabel="distance from pure, in δ₀", ylim=(0, None))
    axes.set_title("ε₀ = 1: no pure randomizer is as near as the lemma says")
    axes.legend(loc="upper left")


def _bars(axes: Axes, title: str, names: Sequence[str], values: Sequence[float], colours: Sequence[str]) -> None:
    axes.bar(names, values, color=colours, width=0.55)
    for place, value in enumerate(values):
        text = f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"
        axes.annotate(text, (place, value), (0, 3), textcoords="offset points", ha="center")
    axes.set_title(title)
    axes.grid(visible=False, axis="x")
    axes.margins(y=0.15)


HEADERS = {
    "failures": ("item", "case", "quantity", "value"),
    "failures_curves": ("figure", "series", "x", "y"),
}
Drawing = Callable[["Figure", Table, Table], None]
PICTURES: dict[str, tuple[Drawing, tuple[float, float], str]] = {
    "failures-one-budget": (one_budget, (7.2, 4.2), "Items 1 and 2: central epsilon by local budget"),
    "failures-own-budgets": (own_budgets, (9.6, 4.0), "Items 4 and 5: delta by epsilon, own budgets"),
    "failures-approximate": (approximate, (7.2, 4.0), "Item 6: delta by epsilon, approximate budgets"),
    "failures-renyi": (renyi, (9.6, 3.9), "Item 7: Renyi divergence by order"),
    "failures-training": (training, (9.6, 3.6), "Item 8: claims about training, and the truth"),
    "failures-estimators": (estimators, (9.6, 3.8), "Item 9: what the estimators estimate"),
    "failures-rounds": (rounds, (9.6, 4.0), "Item 10: central epsilon by number of rounds"),
    "failures-pure": (pure, (7.2, 4.0), "Item 11: distance from every pure randomizer"),
}
"""By file name: who draws it from the two tables, its size, what it shows. Item 3 is `gspa-lemma-2`'s picture."""


def run(quick: bool, progress: Progress) -> Outcome:
    """Compute the tables, pictures and caption of the failures.

    Parameters
    ----------
    quick : bool
        Whether to omit simulations, and points of curves that take long.
    progress : callable
        Called with the share of the work done, from 0 to 1.
    """
    rows: list[tuple[Cell, ...]] = []
    points: list[tuple[Cell, ...]] = []
    total = len(failure_tables.PARTS) + len(failure_curves.PARTS) + 1
    for done, part in enumerate(failure_tables.PARTS):
        rows += part(quick=quick)
        progress((done + 1) / total)
    for done, part in enumerate(failure_curves.PARTS, start=len(failure_tables.PARTS)):
        points += part(quick=quick)
        progress((done + 1) / total)
    failures = Table(HEADERS["failures"], rows)
    curves = Table(HEADERS["failures_curves"], points)
    limit = normal_limit.run(quick, silent)
    pictures = {
        name: Picture(lambda figure, of=drawing: of(figure, failures, curves), size, title)
        for name, (drawing, size, title) in PICTURES.items()
    }
    pictures["failures-normal-limit"] = Picture(
        limit.pictures["gspa-lemma-2"].draw, (7.2, 4.4), "Item 3: distance of the counts from their normal law"
    )
    progress(1.0)
    return Outcome({"failures": failures, "failures_curves": curves}, pictures, caption(quick))


def caption(quick: bool) -> list[str]:
    """Return the caption, which describes each of the pictures."""
    left_out = " This quick variant leaves out the simulations and takes fewer points." if quick else ""
    return [
        "**Computed.** Every place we know of where a number published in one of the two papers is not what a real "
        "protocol does: the number claimed, the number a real protocol attains (exactly, or by an attack), and the "
        f"number that is proved.{left_out} Items are numbered as on the documentation page *Where the papers fail*; "
        "item 12, misprints, needs no picture.",
        "**The papers show** none of these cases; they say that their formulas are approximate.",
        "**Agrees.** The shape: all curves fall with the crowd as the papers say, and Theorem 2 is right in the limit "
        "of many users for one budget.",
        "**Does not**: wherever the dashed claim lies below the solid black curve, it is refuted by a real protocol; "
        "where it lies far above the blue one, it is needlessly large.",
    ]


FAILURES = Reproduction("failures", "both papers", "Where published numbers are not what real protocols do", run, 3.0)
