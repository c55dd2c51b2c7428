"""What a ledger tells: for a terminal, as JSON, and as a page with its checklist."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from shuffledp.accounting import largest_pure
from shuffledp.errors import printable
from shuffledp.ledger import TAKEN_AS_PEOPLE, Entry, Ledger, Limit, Total
from shuffledp.report import wording
from shuffledp.report.checklist import OPEN, Point, points
from shuffledp.report.page import page_template
from shuffledp.report.wording import count, counted, down, near, probability, up

if TYPE_CHECKING:
    from shuffledp.ledger import Ledger, Total


# A ledger as a JSON object, as sentences, and as a table on a terminal.

MOST_ENTRIES = 60
"""Entries that a terminal lists: the latest ones."""


_MANY = 100
"""So many releases stand for many."""


_FOUND = 0.999
"""Of the largest epsilon that fits; a release's mu is found to 2e-4."""


def ledger_to_json(ledger: Ledger, total: Total) -> dict[str, Any]:
    """Build the object that `shuffledp ledger --json` prints.

    Parameters
    ----------
    ledger : Ledger
        An open one.
    total : Total
        Of its entries.
    """
    limit = ledger.limit
    allowed = None if limit is None else {"epsilon": limit.epsilon, "delta": limit.delta}
    return {
        "entries": [_entry(entry) for entry in ledger.entries()],
        "total_if_fixed": {
            "epsilon": {"upper": total.epsilon},
            "delta": total.delta,
            "fixed": total.fixed,
            "populations": list(total.populations),
            "levels": [{"epsilon0": level.epsilon0, "epsilon": {"upper": level.epsilon}} for level in total.levels],
        },
        "limit": None if limit is None else {**(allowed or {}), "mu": limit.mu, "outside": limit.outside},
        "total": allowed,
        "meter": {"mu": total.mu, "outside": total.outside},
        "disjoint": [list(pair) for pair in ledger.disjoint],
        "notes": sentences(ledger, total),
    }


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "title": entry.title,
        "question": entry.question,
        "date": entry.date,
        "population": entry.population,
        "n": entry.spending.n,
        "epsilon": entry.spending.epsilon,
        "delta": entry.spending.delta,
        "fixed_in_advance": entry.plan,
        "run": entry.run,
        "task": entry.task,
        "setting": entry.setting,
        "meter": {"mu": entry.mu, "outside": entry.outside},
    }


def sentences(ledger: Ledger, total: Total) -> list[str]:
    """Say what may be claimed of all releases together, and what may not.

    Parameters
    ----------
    ledger : Ledger
        An open one.
    total : Total
        Of its entries.
    """
    limit, said = ledger.limit, list[str]()
    if limit is not None:
        said.append(
            f"However the questions are chosen, all releases together keep epsilon at most {up(limit.epsilon)} at "
            f"delta = {probability(limit.delta)}: a limit that was set before the first of them, and that none passes."
        )
        said.append(f"Of the limit {(total.mu / limit.mu) ** 2:.1%} is used up.")
        if total.outside > 0.5 * limit.outside:
            said.append(f"Of what it allows beyond every epsilon, {total.outside / limit.outside:.1%} is used up.")
    if total.fixed:
        said.append(
            "All releases that share people were fixed before the first of their answers was seen, so their exact "
            f"composition holds: epsilon at most {up(total.epsilon)} at delta = {probability(total.delta)}."
        )
    else:
        said.append(
            f"Had all of them been fixed before the first answer was seen, they would cost epsilon at most "
            f"{up(total.epsilon)} at delta = {probability(total.delta)}."
        )
        if limit is None:
            said.append(
                "No limit was set before the first release, and questions may have been chosen after earlier answers: "
                "no number may be claimed for all of them together. The sum is a meter, not a guarantee."
            )
    owned = sum(TAKEN_AS_PEOPLE in entry.setting for entry in ledger.entries())
    if owned:
        which = "every release" if owned == len(ledger.entries()) else f"{count(owned)} of the releases"
        said.append(
            f"In {which} each row, or each report of an open collection, was taken as a person: whoever owns several "
            "has spent more than stated."
        )
    if before := ledger.unchained:
        said.append(
            f"An earlier version of shuffledp, which kept no chain of hashes, entered {counted(before, 'release')}: "
            "what was changed there from outside before the chain began is not noticed."
        )
    if total.levels:
        said.append(
            "The number of a budget is for people who had that budget in every release; the others hold for everybody."
        )
    if ledger.entries():
        return said
    return ["Nothing has been released.", *([] if limit is None else [said[0], cost_of_limit(limit)])]


def cost_of_limit(limit: Limit) -> str:
    """Say what a limit has room for: it adds up squares of mu, which suits many small releases and not a large one.

    Parameters
    ----------
    limit : Limit
        Of a ledger.
    """
    one, many = (_FOUND * largest_pure(limit.mu / math.sqrt(releases)) for releases in (1, _MANY))
    return (
        f"The limit is kept as a Gaussian shift of mu = {down(limit.mu)}, whose squares add up: it has room for one "
        f"release of epsilon {down(one)} at delta 0 (not for one of {near(limit.epsilon)}), or for {_MANY} of "
        f"{down(many)} (together {down(_MANY * many)})."
    )


def print_ledger(console: Console, ledger: Ledger, total: Total) -> None:
    """Print entries, totals, and what may be claimed.

    Parameters
    ----------
    console : Console
        Where to.
    ledger : Ledger
        An open one.
    total : Total
        Of its entries.
    """
    entries = ledger.entries()
    if entries:
        table = Table(title=f"{counted(len(entries), 'release')} in {escape(ledger.path.name)}", title_justify="left")
        for heading in ("", "date", "what", "population", "people", "epsilon at most", "delta", "fixed in advance"):
            table.add_column(
                heading, justify="right" if heading in ("", "people", "epsilon at most", "delta") else "left"
            )
        for entry in entries[-MOST_ENTRIES:]:
            table.add_row(*(escape(cell) for cell in entry_cells(entry)))
        console.print(table)
        if len(entries) > MOST_ENTRIES:
            console.print(f"The latest {MOST_ENTRIES} of {count(len(entries))}; --json lists all.", style="dim")
    if total.levels:
        for level in total.levels:
            console.print(
                f"  budget {level.epsilon0:g} in every release: epsilon at most {up(level.epsilon)}, if fixed before",
                highlight=False,
            )
    for sentence in sentences(ledger, total):
        console.print(sentence, highlight=False)


def entry_cells(entry: Entry) -> tuple[str, ...]:
    """Return what a table shows of an entry."""
    return (
        str(entry.number),
        entry.date[:10],
        entry.title,
        entry.population,
        count(entry.spending.n),
        up(entry.spending.epsilon),
        probability(entry.spending.delta),
        entry.plan or "–",
    )


# The checklist of NIST SP 800-226 for pages that are not about estimates from one table; see `checklist`.


def ledger_checklist(ledger: Ledger, total: Total) -> list[Point]:
    """Answer the questions for all releases in a ledger together.

    Parameters
    ----------
    ledger : Ledger
        An open one.
    total : Total
        Of its entries.
    """
    stated = "The page of each release says"
    return points(
        [
            "One person, over all releases of the populations that the person may belong to; what each release takes "
            "as a person is in its own setting.",
            f"{OPEN}whether each release named its population rightly, and counted people and not rows.",
        ],
        [
            "The shuffle model: each release states a central guarantee of what its analyzer sees; the ledger composes "
            "those guarantees as approximate differential privacy."
        ],
        [
            "Replacement (bounded differential privacy), in every release: one person's records are replaced by any "
            "others. Who is in which population is public.",
            "Whether somebody took part is not protected.",
        ],
        _ledger_parameters(ledger, total),
        [f"{stated} who must be honest in it: a number for all of them needs all of these.",
         "Whoever releases must name this ledger each time.",
         f"{OPEN}releases about the same people that were never entered; they cost on top."],
        [f"{stated} who sees what. The ledger itself holds titles, dates, settings and costs; no record, no answer."],
        [f"{OPEN}how long the records of each release are kept; the guarantee says nothing of them."],
        ["Whether a release is refused depends on settings and on earlier entries, never on records.",
         f"{OPEN}titles and dates are kept as typed, and running times are not covered."],
        [f"{OPEN}who may write to the ledger's file: an entry that is removed, or a limit that is changed by hand, "
         "makes every number on this page too small."],
        _ledger_composition(ledger, total),
    )  # fmt: skip


def _ledger_parameters(ledger: Ledger, total: Total) -> Iterator[str]:
    limit = ledger.limit
    if limit is not None:
        epsilon, delta = wording.up(limit.epsilon), wording.probability(limit.delta)
        yield f"Epsilon at most {epsilon} at delta = {delta}, certified, however the questions are chosen."
    if ledger.entries() and total.fixed:
        epsilon, delta = wording.up(total.epsilon), wording.probability(total.delta)
        yield f"Epsilon at most {epsilon} at delta = {delta}, certified, since all releases were fixed in advance."
    if ledger.entries() and not total.fixed and limit is None:
        yield f"{OPEN}a number for all releases together: none may be claimed without a limit set before the first."


def _ledger_composition(ledger: Ledger, total: Total) -> Iterator[str]:
    yield from sentences(ledger, total)
    if ledger.disjoint:
        yield f"{OPEN}whether the populations that are stated to share nobody do share nobody."
    if any(entry.plan for entry in ledger.entries()):
        yield f"{OPEN}whether the releases of a plan were fixed before its first answer was seen, as was stated."


# A ledger as one self-contained HTML page.


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
