"""A ledger as one self-contained HTML page."""

from __future__ import annotations

from shuffledp.errors import printable
from shuffledp.ledger import Ledger, Total
from shuffledp.report.checklists import ledger_checklist
from shuffledp.report.ledger import entry_cells, sentences
from shuffledp.report.templating import page_template


def ledger_page(ledger: Ledger, total: Total, *, command: str, version: str) -> str:
    """Write the page.

    Parameters
    ----------
    ledger : Ledger
        An open one.
    total : Total
        Of its entries.
    command, version : str
        What made the page.

    Returns
    -------
    str
        An HTML document that loads nothing from elsewhere.
    """
    page = page_template("ledger.html").render(
        heading="What the same people have spent",
        rows=[entry_cells(entry) for entry in ledger.entries()],
        total=total,
        limit=ledger.limit,
        sentences=sentences(ledger, total),
        apart=[" and ".join(pair) for pair in ledger.disjoint],
        checklist=ledger_checklist(ledger, total),
        command=command,
        version=version,
    )
    return printable(page, "\n")
