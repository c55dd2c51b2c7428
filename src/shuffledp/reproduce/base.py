"""What all reproductions share: their form, their populations, their style."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.extras import what_is_missing
from shuffledp.numerics.interval import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# What a reproduction is: tables that are computed, a picture drawn from them, a caption true to both.

Cell = str | float | int


Progress = Callable[[float], None]
"""Called with the part of the work that is done, from 0 to 1."""


def silent(done: float) -> None:
    """Show no progress at all."""
    del done


@dataclass(frozen=True)
class Table:
    """Rows of one CSV file.

    Parameters
    ----------
    header : sequence of str
        Names of the columns.
    rows : sequence of sequences
        Text and numbers, as many in each as there are columns.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def columns(self, *names: str) -> list[list[Cell]]:
        """Columns by their names."""
        places = [list(self.header).index(name) for name in names]
        return [[row[place] for row in self.rows] for place in places]


@dataclass(frozen=True)
class Picture:
    """One picture.

    Parameters
    ----------
    draw : callable
        Draws it onto an empty figure.
    size : tuple of float
        Width and height, inches.
    title : str
        What it shows, for those who cannot see it; empty for the reproduction's own title.
    """

    draw: Callable[[Figure], None] = field(repr=False)
    size: tuple[float, float] = (8.0, 4.8)
    title: str = ""


@dataclass(frozen=True)
class Outcome:
    """What one reproduction found.

    Parameters
    ----------
    tables : dict of str to Table
        By file name without ending; the first is named like the figure.
    pictures : dict of str to Picture
        By file name without ending.
    caption : sequence of str
        Paragraphs: what was computed, what the paper shows, what agrees, what does not and why.
    """

    tables: dict[str, Table]
    pictures: dict[str, Picture]
    caption: Sequence[str]


@dataclass(frozen=True)
class Reproduction:
    """One table or figure of a paper.

    Parameters
    ----------
    name : str
        The name the command line uses.
    source : str
        Where it stands in the paper.
    title : str
        What it shows, in a few words.
    run : callable
        ``run(quick, progress)`` computes it; quick takes seconds to a minute, and says in the caption what it left out.
    full_minutes : float
        About how long the full variant takes on two cores.
    """

    name: str
    source: str
    title: str
    run: Callable[[bool, Progress], Outcome] = field(repr=False)
    full_minutes: float = 0.5


def require_figures() -> None:
    """Raise InvalidInput if Matplotlib is missing, which draws the pictures."""
    if importlib.util.find_spec("matplotlib") is None:
        raise InvalidInput(what_is_missing("reproduce", "matplotlib"))


def number(value: float, digits: int = 3) -> str:
    """Return a number as captions print it."""
    return f"{value:.{digits}g}"


# The papers' populations of budgets (GSPA, Table 2).

DRAWN = 1000
"""Budgets drawn at random; a larger population repeats them, so that it has the same levels."""


SEED = 2312  # of the draws; the papers give none


NAMES = {
    "unif-1": "Unif 1: U(0.01, 1)",
    "unif-2": "Unif 2: U(0.01, 2)",
    "constant": "Constant: 0.5",
    "mixed": "Mixed: half 0.5, half 0.01",
    "unif-3": "Unif 3: U(0.5, 1)",
}


_RANGES = {"unif-1": (0.01, 1.0), "unif-2": (0.01, 2.0), "unif-3": (0.5, 1.0)}


def epsilons(name: str, n: int) -> FloatArray:
    """Local budgets of n users.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    n : int
        Users; beyond 1,000 a multiple of 1,000.

    Returns
    -------
    ndarray, shape (n,)
        nats.
    """
    if name == "constant":
        return np.full(n, 0.5)
    if name == "mixed":
        return np.where(np.arange(n) % 2 == 0, 0.5, 0.01)
    low, high = _RANGES[name]
    first = np.random.default_rng(SEED).uniform(low, high, DRAWN)
    return np.resize(first, n)


def budgets(name: str, n: int) -> Budgets:
    """Return the same, counted by level."""
    return Budgets.of(epsilons(name, n))


# The house style of pictures: one palette, one meaning per colour.

BLUE, INK, RED, PURPLE, GREEN, GREY, ORANGE = (
    "#2f6f9f",
    "#222222",
    "#c8443c",
    "#8057a8",
    "#3f7f4f",
    "#777777",
    "#c77a1e",
)


BAND: dict[str, Any] = {"color": BLUE, "alpha": 0.22, "linewidth": 0}
"""What is certified: the true value lies in it."""


STYLE: dict[Any, Any] = {
    "svg.hashsalt": "shuffledp",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "lines.linewidth": 1.7,
    "path.simplify": True,
    "savefig.facecolor": "white",
}


def bracket(axes: Axes, x: Sequence[float], lower: Sequence[float], upper: Sequence[float], label: str) -> None:
    """Draw a certified bracket: a band between what an attack attains and what is proved."""
    axes.fill_between(x, lower, upper, **BAND)
    axes.plot(x, upper, color=BLUE, label=f"{label}: certified upper")
    axes.plot(x, lower, color=BLUE, linestyle=(0, (1, 1.2)), label=f"{label}: attained by an attack")
