"""`ledger` and `total`: what several releases cost the same people, computed and shown."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from shuffledp import __version__
from shuffledp.accounting import certify, largest_pure
from shuffledp.budgets import Budgets
from shuffledp.cli.population import parse_randomizer
from shuffledp.errors import InvalidInput, ShuffleDPError, check_delta, path_shown, printable, shown
from shuffledp.ledger import TAKEN_AS_PEOPLE, Entry, Ledger, Limit, Spending, Total, composed_epsilon
from shuffledp.report import wording
from shuffledp.report.answer import taken_as_people
from shuffledp.report.checklist import OPEN, Point, points
from shuffledp.report.page import page_template
from shuffledp.report.to_json import FORMAT, dumps
from shuffledp.report.wording import count, counted, down, near, probability, up
from shuffledp.setting import Setting
from shuffledp.shell.output import COMMAND_LINE, console, outputs, will_change, working
from shuffledp.whole_files import read_bytes

# A ledger as a JSON object, as sentences, and as a table on a terminal.

MOST_ENTRIES = 60
"""Largest number of entries on a terminal: the latest ones."""


_MANY = 100
"""Number of releases in an example of many small releases."""


_FOUND = 0.999
"""Share of the largest epsilon that fits which is stated, since a release's mu is found to 2e-4."""


def ledger_to_json(ledger: Ledger, total: Total) -> dict[str, Any]:
    """Return the object that `shuffledp ledger --json` prints.

    Parameters
    ----------
    ledger : Ledger
        An open ledger.
    total : Total
        The total of its entries.
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
    """Return sentences on what may be claimed of all releases together, and what may not.

    Parameters
    ----------
    ledger : Ledger
        An open ledger.
    total : Total
        The total of its entries.
    """
    limit, notes = ledger.limit, list[str]()
    if limit is not None:
        notes.append(
            f"However the questions are chosen, all releases together keep epsilon at most {up(limit.epsilon)} at "
            f"delta = {probability(limit.delta)}: a limit that was set before the first of them, and that none passes."
        )
        notes.append(f"Of the limit {(total.mu / limit.mu) ** 2:.1%} is used up.")
        if total.outside > 0.5 * limit.outside:
            notes.append(f"Of what it allows beyond every epsilon, {total.outside / limit.outside:.1%} is used up.")
    if total.fixed:
        notes.append(
            "All releases that share people were fixed before the first of their answers was seen, so their exact "
            f"composition holds: epsilon at most {up(total.epsilon)} at delta = {probability(total.delta)}."
        )
    else:
        notes.append(
            f"Had all of them been fixed before the first answer was seen, they would cost epsilon at most "
            f"{up(total.epsilon)} at delta = {probability(total.delta)}."
        )
        if limit is None:
            notes.append(
                "No limit was set before the first release, and questions may have been chosen after earlier answers: "
                "no number may be claimed for all of them together. The sum is a meter, not a guarantee."
            )
    owned = sum(TAKEN_AS_PEOPLE in entry.setting for entry in ledger.entries())
    if owned:
        which = "every release" if owned == len(ledger.entries()) else f"{count(owned)} of the releases"
        notes.append(
            f"In {which} each row, or each report of an open collection, was taken as a person: whoever owns several "
            "has spent more than stated."
        )
    if before := ledger.unchained:
        notes.append(
            f"An earlier version of shuffledp, which kept no chain of hashes, entered {counted(before, 'release')}: "
            "what was changed there from outside before the chain began is not noticed."
        )
    if total.levels:
        notes.append(
            "The number of a budget is for people who had that budget in every release; the others hold for everybody."
        )
    if ledger.entries():
        return notes
    return ["Nothing has been released.", *([] if limit is None else [notes[0], cost_of_limit(limit)])]


def cost_of_limit(limit: Limit) -> str:
    """Return a sentence on the releases for which a limit has room.

    A limit bounds a sum of squares of mu, which suits many small releases better than one large one.

    Parameters
    ----------
    limit : Limit
        The limit of a ledger.
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
        The console to print on.
    ledger : Ledger
        An open ledger.
    total : Total
        The total of its entries.
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
    """Return the cells of an entry in a table."""
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
    """Return the answers to the checklist's questions for all releases in a ledger together.

    Parameters
    ----------
    ledger : Ledger
        An open ledger.
    total : Total
        The total of its entries.
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
    """Return the page of a ledger.

    Parameters
    ----------
    ledger : Ledger
        An open ledger.
    total : Total
        The total of its entries.
    command, version : str
        The command, and the version of the library, that made the page.

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


LONGEST_RESULT = 1 << 28
"""Largest size, in bytes, of a file that a command wrote with --json."""
AGREES = 1e-3
"""Relative tolerance within which a recomputed guarantee counts as equal to the one that a file states."""


UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""Exceptions that reading a malformed JSON file can raise: 1e999 people, a thousand brackets."""


def run_ledger(
    path: Path,
    limit: str | None,
    disjoint: list[str],
    delta: float | None,
    report: Path | None,
    *,
    new: bool,
    as_json: bool,
) -> None:
    """Make the ledger if requested, change its limit and populations as requested, and print it.

    Parameters are the options of ``shuffledp ledger``: `path` is FILE, and `as_json` is --json.
    """
    wanted = None if limit is None else parse_limit(limit)
    if wanted is not None:
        Limit.checked(*wanted)
    apart = [_names(text) for text in disjoint]
    if new and path.exists():
        raise InvalidInput(f"--new makes a ledger, and {path_shown(path)} is there; leave --new out, or name another")
    with outputs({"--report": report}) as files:
        will_change(path, "holds what was set before that")
        with Ledger(path, make=new or wanted is not None) as ledger:
            if wanted is not None:
                ledger.set_limit(*wanted)
            for names in apart:
                ledger.state_disjoint(names)
            with working("Composing"):
                total = ledger.total(delta)
            made: dict[str, Any] = {"command": COMMAND_LINE.get(), "version": __version__}
            files.write("--report", lambda page: page.write(ledger_page(ledger, total, **made)))
            files.show(lambda: _show(ledger, total, as_json=as_json))


def _show(ledger: Ledger, total: Total, *, as_json: bool) -> None:
    if as_json:
        print(dumps(ledger_to_json(ledger, total)))
    else:
        print_ledger(console(), ledger, total)


def _names(text: str) -> list[str]:
    """Return the names of populations in --disjoint A,B,..."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise InvalidInput(f"--disjoint takes names of populations with commas between; got {shown(text)}")
    return names


def parse_limit(text: str) -> tuple[float, float]:
    """Return epsilon (nats) and delta from the text of --limit EPSILON,DELTA."""
    try:
        epsilon, delta = (float(part) for part in text.split(","))
    except ValueError:
        raise InvalidInput(f"--limit must be EPSILON,DELTA, such as 1,1e-6; got {shown(text)}") from None
    return epsilon, delta


def run_total(files: list[Path], delta: float, *, as_json: bool) -> None:
    """Compose the guarantees that JSON files state, and print the result."""
    check_delta(delta)
    guarantees: list[tuple[Path, Stated]] = []
    with working("Composing"):
        for path in files:
            guarantees += [(path, stated) for stated in read_guarantees(path)]
        epsilon = composed_epsilon([stated.cost.worst for _, stated in guarantees], delta)
    note = (
        "This holds for people who are in all of the releases, if all of them were fixed before the first answer was "
        "seen. A file that says less than its setting counts with the epsilon and delta that it states."
    )
    notes = [note, *taken_as_people(stated.unit for _, stated in guarantees)]
    if as_json:
        listed = [
            {
                "file": str(path),
                "question": stated.question,
                "epsilon": stated.cost.epsilon,
                "delta": stated.cost.delta,
                "recomputed": stated.anew,
            }
            for path, stated in guarantees
        ]
        print(dumps({"files": listed, "epsilon": {"upper": epsilon}, "delta": delta, "notes": notes}))
        return
    out = console()
    table = Table(title="Releases", title_justify="left")
    for heading in ("file", "question", "epsilon at most", "delta"):
        table.add_column(heading, justify="right" if heading in ("epsilon at most", "delta") else "left")
    for path, stated in guarantees:
        cost = stated.cost
        table.add_row(escape(path.name), escape(stated.question), up(cost.epsilon), probability(cost.delta))
    out.print(table)
    out.print(f"[bold]Together: epsilon at most {up(epsilon)} at delta = {probability(delta)}[/]")
    if epsilon == float("inf"):
        out.print("The deltas of the files leave no room at this delta; name a larger --delta.", highlight=False)
    for sentence in notes:
        out.print(sentence, highlight=False)


class Stated(NamedTuple):
    """A guarantee that a file states.

    Parameters
    ----------
    question : str
        The question and its column or population, in words.
    cost : Spending
        The privacy cost.
    anew : bool
        Whether the cost was recomputed from the setting.
    unit : str
        What a record is, as the file says: "people", "rows, taken as people", ...; "" where it does not.
    """

    question: str
    cost: Spending
    anew: bool
    unit: str


def read_guarantees(path: Path) -> list[Stated]:
    """Return the guarantees in a JSON file of `amplify`, of an estimate, of `release` or of `open`.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    list of Stated
        One for each question.

    Raises
    ------
    InvalidInput
        If it is no such file.
    """
    bad = InvalidInput(
        f"{path_shown(path)} holds no guarantee; name what amplify, an estimate, release or open printed with --json"
    )
    try:
        document = json.loads(read_bytes(path, "the file", LONGEST_RESULT))
        if not isinstance(document, dict):
            raise bad
        check_format(document, path)
        several: list[dict[str, Any]] = document.get("releases", [document])  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if not several or any(entry.get("private") is False for entry in several):
            raise InvalidInput(f"{path_shown(path)} is a simulation, which protects nobody; leave it out")
        guarantees = [_of_groups(entry) if "groups" in entry else read_guarantee(entry) for entry in several]
        named = [str(entry.get("column", entry.get("text", ""))) for entry in several]
        units = [str(entry.get("groups", [entry])[0].get("unit", "")) for entry in several]
        return [
            Stated(f"{what} {name}".rstrip(), cost, anew, unit)
            for (what, cost, anew), name, unit in zip(guarantees, named, units, strict=True)
        ]
    except UNREADABLE as error:
        if isinstance(error, InvalidInput):
            raise
        raise bad from None


def check_format(document: dict[str, Any], path: Path) -> None:
    """Refuse a JSON file of a later version, whose keys may mean something else.

    Parameters
    ----------
    document : dict
        The object in the file; version 0.1.0 wrote no format number.
    path : Path
        The file, for the message.
    """
    format_number = document.get("format", FORMAT)  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(format_number, int) or not 1 <= format_number <= FORMAT:
        raise InvalidInput(
            f"{path_shown(path)} has format {shown(format_number)}, and this version reads formats 1 to {FORMAT}; "
            "install the version that wrote it"
        )


def _of_groups(entry: dict[str, Any]) -> tuple[str, Spending, bool]:
    """Return name, cost and recomputation of a question to disjoint groups.

    At every epsilon the cost is that of the group with the largest cost there, which need not always be the same group.
    """
    guarantees = [read_guarantee(group) for group in entry["groups"]]
    what, anew = f"{guarantees[0][0]}, by group", all(again for _, _, again in guarantees)
    return what, Spending.apart([spending for _, spending, _ in guarantees]), anew


def read_guarantee(entry: dict[str, Any]) -> tuple[str, Spending, bool]:
    """Return question, cost, and whether it was recomputed, for one object with a guarantee.

    Parameters
    ----------
    entry : dict
        Output of a command with --json; KeyError, ValueError or TypeError means that it is no such object.
    """
    guarantee = entry.get("guarantee", entry)
    delta, upper = check_delta(guarantee["delta"]), float(guarantee["epsilon"]["upper"])
    levels = [(float(level["epsilon0"]), float(level["epsilon"]["upper"])) for level in guarantee["levels"]]
    if not levels or max(epsilon for _, epsilon in levels) != upper or int(guarantee["setting"]["n"]) < 1:
        raise KeyError("levels")
    what = str(entry.get("question", "amplify"))
    try:
        anew = certify(_setting(guarantee["setting"], int(guarantee["levels_total"])), delta)
        if abs(anew.epsilon.upper - upper) <= AGREES * upper:
            return what, Spending.of(anew), True
    except (ShuffleDPError, KeyError):
        pass  # the setting is not told in full; what is stated holds all the same
    return what, Spending.stated(levels, delta, int(guarantee["setting"]["n"])), False


def setting_of(entry: dict[str, Any]) -> Setting | None:
    """Return the setting of an object with a guarantee; None where it is not stated in full.

    Parameters
    ----------
    entry : dict
        As for `read_guarantee`.
    """
    guarantee = entry.get("guarantee", entry)
    try:
        return _setting(guarantee["setting"], int(guarantee["levels_total"]))
    except (ShuffleDPError, KeyError):
        return None


def _setting(fields: dict[str, Any], levels_total: int) -> Setting:
    """Return the setting that an object states; KeyError if a part of it is missing."""
    levels = fields["levels"]
    if "dummies" in fields or len(levels) != levels_total:
        raise KeyError("levels")
    columns = zip(*((level["epsilon0"], level["count"], level["delta0"]) for level in levels), strict=True)
    names = ("seen", "neighboring", "rounds", "linked", "colluding", "missing", "group_size", "reports_per_user")
    randomizer = parse_randomizer(fields["randomizer"])
    stated: dict[str, Any] = {name: fields[name] for name in names} | {
        "records": fields.get("records"),
        "same_record": fields.get("same_record", False),
    }
    return Setting(Budgets(*(list(column) for column in columns)), randomizer, **stated)
