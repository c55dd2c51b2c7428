"""The commands about several releases, and their options; each body hands over to its own module."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shuffledp.shell import estimate_options as e
from shuffledp.shell import options as o

Limit = Annotated[
    str | None,
    typer.Option(
        "--limit",
        metavar="EPSILON,DELTA",
        help="Set what all releases together may cost, however they are chosen: once, before the first. A ledger that "
        "is missing is made.",
    ),
]
New = Annotated[
    bool, typer.Option("--new", help="Make the ledger, also without a limit; refused if the file is there.")
]
Disjoint = Annotated[
    list[str] | None,
    typer.Option("--disjoint", metavar="A,B,...", help="State that these populations share nobody. May be repeated."),
]
AtDelta = Annotated[
    float | None,
    typer.Option(
        "--delta", parser=o.number, metavar="D", help="Delta of the sum; default: the limit's, or the largest entered."
    ),
]

Between = Annotated[
    tuple[str, str] | None,
    typer.Option("--between", metavar="A B", help="Two groups of one file that --by made: B minus A."),
]
ShareNobody = Annotated[bool, typer.Option("--disjoint", help="State that nobody is in both files.")]
Which = Annotated[
    str | None,
    typer.Option(
        "--question",
        metavar="NAME",
        help="Of files that answer several questions: a column, such as vote, or a question, such as 'mean hours'.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command()(ledger)
    app.command()(total)
    app.command()(difference)


def ledger(
    file: Annotated[Path, typer.Argument(metavar="FILE", parser=o.file_path, help="The ledger.")],
    new: New = False,
    limit: Limit = None,
    disjoint: Disjoint = None,
    delta: AtDelta = None,
    json: o.Json = False,
    report: o.Report = None,
) -> None:
    """Tell what the same people have spent, and what may be claimed of all of it together.

    This command alone makes a ledger: with --limit, or with --new. Whatever else names one refuses a file that is none.

    Example:

    shuffledp ledger people.ledger --limit 1,1e-6
    """
    from shuffledp.cli.ledger import run_ledger

    run_ledger(file, limit, list(disjoint or ()), delta, report, new=new, as_json=json)


def total(
    files: Annotated[list[Path], typer.Argument(metavar="FILE.json...", parser=o.file_path, help="What --json wrote.")],
    delta: o.Delta,
    json: o.Json = False,
) -> None:
    """Compose past releases that were fixed in advance, from what they printed with --json.

    Example:

    shuffledp total january.json february.json --delta 1e-6
    """
    from shuffledp.cli.ledger import run_total

    run_total(files, delta, as_json=json)


def difference(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE.json...", parser=o.file_path, help="What --json wrote: one, or two.")
    ],
    delta: o.Delta,
    between: Between = None,
    question: Which = None,
    disjoint: ShareNobody = False,
    simultaneous: e.Simultaneous = False,
    json: o.Json = False,
    report: o.Report = None,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="Title of the page.")] = None,
) -> None:
    """Subtract a release from a later one, or one group's from another's: the interval, and what both cost together.

    Example:

    shuffledp difference january.json february.json --delta 1e-6
    """
    from shuffledp.cli.difference import Compared, run_difference

    asked = Compared(files, between, question, delta, disjoint)
    run_difference(asked, simultaneous=simultaneous, as_json=json, report=report, title=title)
