"""The house style of pictures: one palette, one meaning per colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
