"""Every table and figure of the papers that is computed again, by name."""

from __future__ import annotations

from pathlib import Path

from shuffledp.errors import InvalidInput, shown
from shuffledp.reproduce.amplification import GSPA_FIGURE_2
from shuffledp.reproduce.base import Progress, Reproduction, require_figures, silent, write
from shuffledp.reproduce.estimation import GSPA_FIGURE_3
from shuffledp.reproduce.failures import FAILURES
from shuffledp.reproduce.normal_limit import GSPA_LEMMA_2
from shuffledp.reproduce.renyi import RDP_FIGURE_2, RDP_FIGURE_3, RDP_FIGURE_4, RDP_TABLE_2
from shuffledp.reproduce.tradeoff import GSPA_FIGURE_5
from shuffledp.reproduce.training import GSPA_FIGURE_4, GSPA_TABLE_3

REPRODUCTIONS: dict[str, Reproduction] = {
    reproduction.name: reproduction
    for reproduction in (
        GSPA_FIGURE_2,
        GSPA_FIGURE_3,
        GSPA_LEMMA_2,
        GSPA_FIGURE_5,
        RDP_FIGURE_2,
        RDP_FIGURE_3,
        FAILURES,
        GSPA_FIGURE_4,
        GSPA_TABLE_3,
        RDP_FIGURE_4,
        RDP_TABLE_2,
    )
}
"""Every table and figure, by the name the command line uses."""


def reproduce(name: str, folder: str | Path, *, quick: bool = False, progress: Progress = silent) -> list[Path]:
    """Compute one table or figure of the papers, and write its data, picture and caption.

    Parameters
    ----------
    name : str
        A key of `REPRODUCTIONS`.
    folder : str or Path
        Where the files go; made if it does not exist. Files are replaced whole or not at all.
    quick : bool
        Fewer points and repeats: seconds to a minute, and the caption says so.
    progress : callable, optional
        Called with the completed part, from 0 to 1.

    Returns
    -------
    list of Path
        The CSV files, the PNG, the SVG, and the caption (Markdown).

    Raises
    ------
    InvalidInput
        If the name is unknown, Matplotlib is missing (the extra ``figures``), or the folder cannot be
        written to.

    Examples
    --------
    >>> import tempfile
    >>> [file.suffix for file in reproduce("gspa-lemma-2", tempfile.mkdtemp(), quick=True)]
    ['.csv', '.png', '.svg', '.md']
    """
    if name not in REPRODUCTIONS:
        raise InvalidInput(f"nothing is called {shown(name)}; choose one of {', '.join(REPRODUCTIONS)}")
    require_figures()  # before minutes of work
    reproduction = REPRODUCTIONS[name]
    return write(reproduction, reproduction.run(quick, progress), Path(folder))
