"""What a reproduction is: tables that are computed, a picture drawn from them, a caption true to both."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shuffledp.errors import InvalidInput
from shuffledp.extras import what_is_missing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cell = str | float | int
Progress = Callable[[float], None]
"""Called with the part of the work that is done, from 0 to 1."""


def silent(done: float) -> None:
    """Show no progress."""
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
    """A number as captions print it."""
    return f"{value:.{digits}g}"
