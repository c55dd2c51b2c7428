"""`ledger` and `total`: what several releases cost the same people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from rich.markup import escape
from rich.table import Table

from shuffledp import __version__
from shuffledp.accounting import certify, check_delta
from shuffledp.budgets import Budgets
from shuffledp.cli.randomizer import parse_randomizer
from shuffledp.errors import InvalidInput, ShuffleDPError, path_shown, shown
from shuffledp.ledger import Ledger, Limit, Spending, Total, composed_epsilon
from shuffledp.report.answer import taken_as_people
from shuffledp.report.ledger import ledger_page, ledger_to_json, print_ledger
from shuffledp.report.to_json import FORMAT, dumps
from shuffledp.report.wording import probability, up
from shuffledp.setting import Setting
from shuffledp.shell.left import will_change
from shuffledp.shell.output import COMMAND_LINE, console, outputs, working
from shuffledp.whole_files import read_bytes

LONGEST_RESULT = 1 << 28
"""Bytes of what a command printed with --json."""
AGREES = 1e-3
"""Relative distance within which a guarantee that is computed again is the one that a file states."""


UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What reading a JSON file that is not as it must be can raise: 1e999 people, a thousand brackets."""


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
    """Make the ledger if it is to be made, set what is to be set, and show it."""
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
    """Read --disjoint A,B,..."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise InvalidInput(f"--disjoint takes names of populations with commas between; got {shown(text)}")
    return names


def parse_limit(text: str) -> tuple[float, float]:
    """Read --limit EPSILON,DELTA."""
    try:
        epsilon, delta = (float(part) for part in text.split(","))
    except ValueError:
        raise InvalidInput(f"--limit must be EPSILON,DELTA, such as 1,1e-6; got {shown(text)}") from None
    return epsilon, delta


def run_total(files: list[Path], delta: float, *, as_json: bool) -> None:
    """Compose the guarantees that JSON files state."""
    check_delta(delta)
    found: list[tuple[Path, Stated]] = []
    with working("Composing"):
        for path in files:
            found += [(path, stated) for stated in read_guarantees(path)]
        epsilon = composed_epsilon([stated.cost.worst for _, stated in found], delta)
    note = (
        "This holds for people who are in all of the releases, if all of them were fixed before the first answer was "
        "seen. A file that says less than its setting counts with the epsilon and delta that it states."
    )
    notes = [note, *taken_as_people(stated.unit for _, stated in found)]
    if as_json:
        listed = [
            {
                "file": str(path),
                "question": stated.question,
                "epsilon": stated.cost.epsilon,
                "delta": stated.cost.delta,
                "recomputed": stated.anew,
            }
            for path, stated in found
        ]
        print(dumps({"files": listed, "epsilon": {"upper": epsilon}, "delta": delta, "notes": notes}))
        return
    shown = console()
    table = Table(title="Releases", title_justify="left")
    for heading in ("file", "question", "epsilon at most", "delta"):
        table.add_column(heading, justify="right" if heading in ("epsilon at most", "delta") else "left")
    for path, stated in found:
        cost = stated.cost
        table.add_row(escape(path.name), escape(stated.question), up(cost.epsilon), probability(cost.delta))
    shown.print(table)
    shown.print(f"[bold]Together: epsilon at most {up(epsilon)} at delta = {probability(delta)}[/]")
    if epsilon == float("inf"):
        shown.print("The deltas of the files leave no room at this delta; name a larger --delta.", highlight=False)
    for said in notes:
        shown.print(said, highlight=False)


class Stated(NamedTuple):
    """A guarantee as a file states it.

    Parameters
    ----------
    question : str
        What was asked of whom.
    cost : Spending
        What it costs.
    anew : bool
        Whether the cost was computed again from the setting.
    unit : str
        What a record is, as the file says: "people", "rows, taken as people", ...; "" where it does not.
    """

    question: str
    cost: Spending
    anew: bool
    unit: str


def read_guarantees(path: Path) -> list[Stated]:
    """Read what a JSON file of `amplify`, of an estimate, of `release` or of `open` promises.

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
        known = json.loads(read_bytes(path, "the file", LONGEST_RESULT))
        if not isinstance(known, dict):
            raise bad
        check_format(known, path)
        several: list[dict[str, Any]] = known.get("releases", [known])  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if not several or any(entry.get("private") is False for entry in several):
            raise InvalidInput(f"{path_shown(path)} is a simulation, which protects nobody; leave it out")
        found = [_of_groups(entry) if "groups" in entry else read_guarantee(entry) for entry in several]
        named = [str(entry.get("column", entry.get("text", ""))) for entry in several]
        units = [str(entry.get("groups", [entry])[0].get("unit", "")) for entry in several]
        return [
            Stated(f"{what} {name}".rstrip(), cost, anew, unit)
            for (what, cost, anew), name, unit in zip(found, named, units, strict=True)
        ]
    except UNREADABLE as error:
        if isinstance(error, InvalidInput):
            raise
        raise bad from None


def check_format(known: dict[str, Any], path: Path) -> None:
    """Raise InvalidInput for a file of a later version, whose keys may mean something else; 0.1.0 told no format."""
    told = known.get("format", FORMAT)  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(told, int) or not 1 <= told <= FORMAT:
        raise InvalidInput(
            f"{path_shown(path)} has format {shown(told)}, and this version reads formats 1 to {FORMAT}; install the "
            "version that wrote it"
        )


def _of_groups(entry: dict[str, Any]) -> tuple[str, Spending, bool]:
    """Of groups that share nobody: at every epsilon the one that costs most there, which need not be the same."""
    found = [read_guarantee(group) for group in entry["groups"]]
    what, anew = f"{found[0][0]}, by group", all(again for _, _, again in found)
    return what, Spending.apart([spending for _, spending, _ in found]), anew


def read_guarantee(entry: dict[str, Any]) -> tuple[str, Spending, bool]:
    """Return question, cost, and whether it was computed again, of one object with a guarantee.

    Parameters
    ----------
    entry : dict
        What a command printed with --json; KeyError, ValueError, TypeError tell that it is no such object.
    """
    told = entry.get("guarantee", entry)
    delta, upper = check_delta(told["delta"]), float(told["epsilon"]["upper"])
    levels = [(float(level["epsilon0"]), float(level["epsilon"]["upper"])) for level in told["levels"]]
    if not levels or max(epsilon for _, epsilon in levels) != upper or int(told["setting"]["n"]) < 1:
        raise KeyError("levels")
    what = str(entry.get("question", "amplify"))
    try:
        anew = certify(_setting(told["setting"], int(told["levels_total"])), delta)
        if abs(anew.epsilon.upper - upper) <= AGREES * upper:
            return what, Spending.of(anew), True
    except (ShuffleDPError, KeyError):
        pass  # the setting is not told in full; what is stated holds all the same
    return what, Spending.stated(levels, delta, int(told["setting"]["n"])), False


def setting_of(entry: dict[str, Any]) -> Setting | None:
    """Return the setting of an object with a guarantee; None where it is not told in full.

    Parameters
    ----------
    entry : dict
        As for `read_guarantee`.
    """
    told = entry.get("guarantee", entry)
    try:
        return _setting(told["setting"], int(told["levels_total"]))
    except (ShuffleDPError, KeyError):
        return None


def _setting(told: dict[str, Any], levels_total: int) -> Setting:
    """Return the setting that an object names, if it names all of it."""
    levels = told["levels"]
    if "dummies" in told or len(levels) != levels_total:
        raise KeyError("levels")
    columns = zip(*((level["epsilon0"], level["count"], level["delta0"]) for level in levels), strict=True)
    names = ("seen", "neighboring", "rounds", "linked", "colluding", "missing", "group_size", "reports_per_user")
    randomizer = parse_randomizer(told["randomizer"])
    stated: dict[str, Any] = {name: told[name] for name in names} | {
        "records": told.get("records"),
        "same_record": told.get("same_record", False),
    }
    return Setting(Budgets(*(list(column) for column in columns)), randomizer, **stated)
