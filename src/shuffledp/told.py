"""Results that say themselves in a line, and in a notebook in a line and a table."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

MOST_ROWS = 12
"""Rows of a table in a notebook."""


class Told(ABC):
    """A result with a short `repr`: the headline and what matters, not every field.

    Numbers are written in full, so that none is rounded to the wrong side. A dataclass takes this in place of its own
    `repr` by ``repr=False``.
    """

    @abstractmethod
    def _told(self) -> str:
        """Say the result in a line."""

    def _rows(self) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        """Return headings and rows of the table; no headings, no table."""
        return (), ()

    def __repr__(self) -> str:
        """Return the result in a line."""
        return f"<{self._told()}>"

    def _repr_html_(self) -> str:
        """Return the same for a notebook, with the table."""
        headings, rows = self._rows()
        said = f"<p>{html.escape(self._told())}</p>"
        if not headings:
            return said
        lines = [list(row) for row in rows]
        head = "".join(f"<th>{html.escape(heading)}</th>" for heading in headings)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in line) + "</tr>"
            for line in lines[:MOST_ROWS]
        )
        more = f"<p>{len(lines) - MOST_ROWS:,} more rows</p>" if len(lines) > MOST_ROWS else ""
        return f"{said}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
