"""RDP Figures 2 and 3: Renyi divergence against the local budget, and against the order."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from shuffledp.accounting import bounds, privacy_profile, weigh
from shuffledp.budgets import Budgets
from shuffledp.numerics.interval import Interval
from shuffledp.randomizers.categorical import RandomizedResponse
from shuffledp.report.wording import down, up
from shuffledp.reproduce.base import (
    GREEN,
    GREY,
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
    asked = weigh([bounds[key] for key in PUBLISHED], lambda bound: bound.profile(setting, epsilon0).renyi(order))
    for answer, (key, (_, _, end)) in zip(asked, PUBLISHED.items(), strict=True):
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
    """Tabulate Renyi divergences of order 4 against the local budget, and return tables, picture and caption."""
    table = _table([(float(e), ORDER) for e in np.linspace(0.1, 4.0, 9 if quick else 27).round(6)], progress)
    caption = _caption(table, "order 4, n = 10,000, epsilon0 from 0.1 to 4", "epsilon0", 0)
    picture = Picture(lambda figure: draw(figure, table, 0, "local epsilon0"))
    return Outcome({"rdp-figure-2": table}, {"rdp-figure-2": picture}, caption)


def run_figure_3(quick: bool, progress: Progress) -> Outcome:
    """Tabulate Renyi divergences at local budget 2 against the order, and return tables, picture and caption."""
    orders = [2, 4, 8, 16, 32] if quick else [2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64]
    table = _table([(EPSILON0, order) for order in orders], progress)
    caption = _caption(table, "epsilon0 = 2, n = 10,000, orders 2 to " + str(orders[-1]), "order", 1)
    picture = Picture(lambda figure: draw(figure, table, 1, "order lambda"))
    return Outcome({"rdp-figure-3": table}, {"rdp-figure-3": picture}, caption)


def _series(table: Table, key: str, place: int) -> tuple[list[float], list[float]]:
    rows = [row for row in table.rows if row[2] == key]
    return [float(row[place]) for row in rows], [float(row[3]) for row in rows]


def draw(figure: Figure, table: Table, place: int, label: str) -> None:
    """Draw the Renyi divergences in one panel with a logarithmic axis."""
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
    told = (
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
        f"it, Corollary 2 {_span(ratio)} times. Corollary 2 is asymptotic, no bound. {told}",
        "Girgis' bounds are stated for whole orders of at least 2.",
    ]


def _span(values: list[float]) -> str:
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


RDP_FIGURE_2 = Reproduction("rdp-figure-2", "RDP, Figure 2", "Renyi divergence against the local budget", run_figure_2)
RDP_FIGURE_3 = Reproduction("rdp-figure-3", "RDP, Figure 3", "Renyi divergence against the order", run_figure_3)
