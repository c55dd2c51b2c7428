"""What all reproductions share: their form, their populations, their style."""

from __future__ import annotations

import csv
import importlib.util
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput, what_is_missing
from shuffledp.numerics.floats import FloatArray
from shuffledp.whole_files import replaced, way_out

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# What a reproduction is: tables that are computed, a picture drawn from them, a caption true to both.

Cell = str | float | int


Progress = Callable[[float], None]
"""Function called with the share of the work that is done, from 0 to 1."""


def silent(done: float) -> None:
    """Ignore the progress of a computation: a callback that shows nothing."""
    del done


@dataclass(frozen=True)
class Table:
    """Header and rows of one CSV file.

    Parameters
    ----------
    header : sequence of str
        Names of the columns.
    rows : sequence of sequences
        Rows of text and numbers, each with one entry per column.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def columns(self, *names: str) -> list[list[Cell]]:
        """Return the columns of the table, by name."""
        places = [list(self.header).index(name) for name in names]
        return [[row[place] for row in self.rows] for place in places]


@dataclass(frozen=True)
class Picture:
    """One picture of a reproduction, with the function that draws it.

    Parameters
    ----------
    draw : callable
        ``draw(figure)`` draws the picture onto an empty Matplotlib figure.
    size : tuple of float
        Width and height, inches.
    title : str
        Text alternative of the picture; empty for the reproduction's own title.
    """

    draw: Callable[[Figure], None] = field(repr=False)
    size: tuple[float, float] = (8.0, 4.8)
    title: str = ""


@dataclass(frozen=True)
class Outcome:
    """Tables, pictures and caption that one reproduction computed.

    Parameters
    ----------
    tables : dict of str to Table
        Tables by file name without ending; the first is named like the figure.
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
    """Reproduction of one table or figure of a paper.

    Parameters
    ----------
    name : str
        The name the command line uses.
    source : str
        Place of the table or figure in the paper.
    title : str
        Subject of the table or figure, in a few words.
    run : callable
        ``run(quick, progress)`` returns the outcome; quick takes seconds to a minute, and the caption then says what
        was left out.
    full_minutes : float
        Approximate duration of the full variant on two cores, in minutes.
    """

    name: str
    source: str
    title: str
    run: Callable[[bool, Progress], Outcome] = field(repr=False)
    full_minutes: float = 0.5


def require_figures() -> None:
    """Raise InvalidInput if Matplotlib, which draws the pictures, is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise InvalidInput(what_is_missing("reproduce", "matplotlib"))


def number(value: float, digits: int = 3) -> str:
    """Return a number as text, in the form in which captions print numbers."""
    return f"{value:.{digits}g}"


# The papers' populations of budgets (GSPA, Table 2).

DRAWN = 1000
"""Number of budgets drawn at random; a larger population repeats them, so that it has the same levels."""


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
    """Return the local budgets of n users of one of the papers' populations.

    Parameters
    ----------
    name : str
        Name of the population, a key of `NAMES`.
    n : int
        Number of users; above 1,000 a multiple of 1,000.

    Returns
    -------
    ndarray, shape (n,)
        Local budgets in nats.
    """
    if name == "constant":
        return np.full(n, 0.5)
    if name == "mixed":
        return np.where(np.arange(n) % 2 == 0, 0.5, 0.01)
    low, high = _RANGES[name]
    first = np.random.default_rng(SEED).uniform(low, high, DRAWN)
    return np.resize(first, n)


def budgets(name: str, n: int) -> Budgets:
    """Return the local budgets of n users of the population ``name``, counted by level; see `epsilons`."""
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
"""Style of the band of certified values, in which the true value lies."""


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
    """Draw a certified bracket: the band between the epsilon that an attack attains and the certified upper end.

    Parameters
    ----------
    axes : Axes
        Where to draw.
    x, lower, upper : sequence of float
        Horizontal values, epsilon attained by an attack, and certified upper end at each.
    label : str
        Name of the bracket in the legend.
    """
    axes.fill_between(x, lower, upper, **BAND)
    axes.plot(x, upper, color=BLUE, label=f"{label}: certified upper")
    axes.plot(x, lower, color=BLUE, linestyle=(0, (1, 1.2)), label=f"{label}: attained by an attack")


# A reproduction as files: CSV, PNG, SVG and the caption, each whole or not at all.

RESOLUTION = 160  # dots per inch of the PNG


def write(reproduction: Reproduction, outcome: Outcome, folder: Path) -> list[Path]:
    """Write all files of one reproduction.

    Parameters
    ----------
    reproduction : Reproduction
        Reproduction whose name the files get.
    outcome : Outcome
        Computed tables, pictures and caption.
    folder : Path
        Folder for the files; created if it does not exist.

    Returns
    -------
    list of Path
        The files, tables first.

    Raises
    ------
    InvalidInput
        If the folder cannot be written to.
    """
    contents = {f"{name}.csv": _csv(table) for name, table in outcome.tables.items()}
    for name, picture in outcome.pictures.items():
        contents |= {f"{name}.{kind}": data for kind, data in _drawn(picture, reproduction.title).items()}
    contents[f"{reproduction.name}.md"] = _caption(reproduction, outcome)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [_replace(folder / name, data) for name, data in contents.items()]
    except OSError as error:
        advice = way_out(error, "name another folder with --out")
        raise InvalidInput(f"cannot write to {folder} ({error.strerror}); {advice}") from None


def _csv(table: Table) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.header)
    writer.writerows([[repr(cell) if isinstance(cell, float) else cell for cell in row] for row in table.rows])
    return text.getvalue().encode()


def _drawn(picture: Picture, title: str) -> dict[str, bytes]:
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    files: dict[str, bytes] = {}
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=picture.size, layout="constrained")
        FigureCanvasAgg(figure)
        picture.draw(figure)
        for kind in ("png", "svg"):
            data = io.BytesIO()
            # no date and no version inside: same numbers, same bytes
            own = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
            figure.savefig(data, format=kind, dpi=RESOLUTION, metadata={**own, "Title": picture.title or title})
            files[kind] = data.getvalue()
    return files


def _caption(reproduction: Reproduction, outcome: Outcome) -> bytes:
    files = ", ".join(f"`{name}.csv`" for name in outcome.tables)
    lines = [
        f"# {reproduction.title} ({reproduction.source})",
        "",
        *(
            part
            for name, picture in outcome.pictures.items()
            for part in (_image(name, picture, reproduction.title), "")
        ),
        *(part for paragraph in outcome.caption for part in (paragraph, "")),
        f"Data: {files}. Made by `shuffledp reproduce {reproduction.name}`.",
        "",
    ]
    return "\n".join(lines).encode()


def _image(name: str, picture: Picture, title: str) -> str:
    return f"![{picture.title or title}]({name}.svg)"


def _replace(target: Path, data: bytes) -> Path:
    with replaced(target, str(target)) as stream:
        stream.write(data)
    return target
