"""The checklist of NIST SP 800-226 for pages that are not about estimates from one table; see `checklist`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from shuffledp.report import wording
from shuffledp.report.checklist import (
    ONE_PROGRAM,
    OPEN,
    OTHERS,
    SEVERAL_ROWS,
    TABLE,
    TIMES,
    Point,
    points,
)
from shuffledp.report.difference import difference_notes
from shuffledp.report.ledger import sentences
from shuffledp.setting import SEEN_MEANING

if TYPE_CHECKING:
    from shuffledp.ledger import Ledger, Total
    from shuffledp.releases.difference import Difference

SHUFFLER = (
    "The shuffler must mix uniformly, strip names, times and order, and not side with the analyzer; if it does side "
    "with the analyzer, only the local budget protects."
)


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


def difference_checklist(found: Difference) -> list[Point]:
    """Answer the questions for a difference of two releases.

    Parameters
    ----------
    found : Difference
        Of two releases.
    """
    sides = (found.before, found.after)
    settings = [side.setting for side in sides]
    views = sorted({SEEN_MEANING[setting.seen] for setting in settings if setting is not None})
    table = all(side.unit != "reports" for side in sides)
    return points(
        _difference_unit(found),
        [
            "The shuffle model, in each release: each record is randomized by itself within its own local budget, then "
            "all reports are mixed. A difference of two answers is computed from what was released, and costs nothing.",
        ],
        [
            "Replacement (bounded differential privacy): one person's records are replaced, in both releases at once "
            f"if the person is in both. The numbers of people ({wording.count(sides[0].n)} and "
            f"{wording.count(sides[1].n)}) are the same in both worlds, and public.",
            "Whether somebody took part is not protected.",
        ],
        _difference_parameters(found),
        [SHUFFLER, ONE_PROGRAM if table else f"{OPEN}who runs the shuffler, and what keeps it apart."],
        [
            *(f"The analyzer of a release: {view.removeprefix('the analyzer sees ')}." for view in views),
            *([f"{OPEN}what the analyzer saw of a release whose setting is not told in full."]
              if None in settings else []),
            *(["Whoever ran the program: the records themselves."] if table else []),
        ],
        TABLE if table else [f"{OPEN}how long reports are kept."],
        ["Both releases drew their noise by exact integer sampling, keyed by the operating system.", TIMES],
        [f"{OPEN}who may reach the records and the files of both releases, and who may ask again."],
        [*difference_notes(found), OTHERS],
    )  # fmt: skip


def _difference_unit(found: Difference) -> Iterator[str]:
    units = {found.before.unit, found.after.unit}
    if units == {"people"}:
        yield "One person, with all rows that were used."
    else:
        yield "One person who sent one report." if units == {"reports"} else "One row of each table."
        yield f"{OPEN}{SEVERAL_ROWS}" if "rows" in units else f"{OPEN}whether anybody sent several reports."
    if not found.disjoint:
        yield f"{OPEN}whether a row of one table is its owner's row of the other; the cost of both holds in any case."


def _difference_parameters(found: Difference) -> Iterator[str]:
    delta = wording.probability(found.delta)
    yield f"Both together: epsilon at most {wording.up(found.epsilon)} at delta = {delta}, certified."
    for name, side in (("the first", found.before), ("the second", found.after)):
        cost, at = wording.up(side.spending.epsilon), wording.probability(side.spending.delta)
        yield f"Of these {name} alone: epsilon at most {cost} at delta = {at}."
    if math.isinf(found.epsilon):
        yield f"{OPEN}a delta at which a finite epsilon holds."
    if found.delta * max(found.before.n, found.after.n) >= 1.0:
        yield f"{OPEN}a delta below 1/n; this one allows one person's record to be published."
