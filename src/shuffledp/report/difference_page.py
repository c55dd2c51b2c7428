"""A difference of two releases as one self-contained HTML page."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from markupsafe import Markup

from shuffledp.errors import printable
from shuffledp.report import wording
from shuffledp.report.checklists import difference_checklist
from shuffledp.report.difference import (
    NO_ROOM,
    difference_lines,
    difference_notes,
    difference_table,
    labels_of,
    numbers_of,
    shown_label,
)
from shuffledp.report.rows import CONFIDENCE, BinRow, FrequencyRow
from shuffledp.report.svg import bars_picture, histogram_picture, mean_picture
from shuffledp.report.templating import page_template

if TYPE_CHECKING:
    from shuffledp.releases.difference import Difference

_ROWS_OF_A_PAGE = 400
"""Lines of the table that a page lists."""
MOST_BARS = 60
"""Categories that a picture shows."""


def difference_page(
    heading: str, found: Difference, names: tuple[str, str], *, simultaneous: bool, command: str, version: str
) -> str:
    """Write the page.

    Parameters
    ----------
    heading : str
        Title of the page.
    found : Difference
        Of two releases.
    names : tuple of str
        What the two are called.
    simultaneous : bool
        Whether the intervals hold together.
    command, version : str
        What made the page.

    Returns
    -------
    str
        An HTML document that loads nothing from elsewhere.
    """
    title, headings = difference_table(found, names, simultaneous=simultaneous)
    rows = list(difference_lines(found, simultaneous=simultaneous))
    remark = f"The first {_ROWS_OF_A_PAGE} of {wording.count(len(rows))} lines." if len(rows) > _ROWS_OF_A_PAGE else ""
    page = page_template("difference.html").render(
        heading=heading,
        title=title,
        question=found.before.question.replace("-", " "),
        confidence=f"{CONFIDENCE:.0%}",
        picture=_picture(found, simultaneous),
        table={"headings": headings, "rows": rows[:_ROWS_OF_A_PAGE], "remark": remark},
        sides=list(zip(names, (found.before, found.after), strict=True)),
        found=found,
        notes=[*([NO_ROOM] if math.isinf(found.epsilon) else []), *difference_notes(found)],
        checklist=difference_checklist(found),
        command=command,
        version=version,
        dated=datetime.now(UTC).date().isoformat(),
    )
    return printable(page, "\n")


def _picture(found: Difference, simultaneous: bool) -> Markup | None:
    """Draw the differences with their intervals; None of vectors and of very many categories."""
    numbers, kind = numbers_of(found, simultaneous), found.before.question
    if kind == "mean":
        _, _, value, _, low, high = numbers[0]
        return Markup(mean_picture(value, low, high, found.analysis.support, 0.0 if low <= 0.0 <= high else None))
    labels = list(labels_of(found))
    lines = list(zip(labels, numbers, strict=True))
    if kind == "frequency" and len(lines) <= MOST_BARS:
        shares = [FrequencyRow(shown_label(label), *line[2:]) for label, line in lines]
        return Markup(bars_picture(shares, None, what="Difference in share"))
    if kind == "histogram":
        bins = [
            BinRow(shown_label(label), *line[2:6], left=float(label["low"]), right=float(label["high"]))
            for label, line in lines
        ]
        return Markup(histogram_picture(bins, what="Differences"))
    return None
