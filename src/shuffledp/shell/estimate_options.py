"""Options of the commands that ask a question of a table; those of other commands are in `shuffledp.shell.options`.

Those of `Ask`, `People` and `Terms` are made from their fields (`typed`). The rest are defined here: options of one
question, and options on what is done with the answer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from shuffledp.releases.terms import People, Terms, options
from shuffledp.shell.options import RESULT, file_path, number, typed_whole

OPTIONS = options()
_READERS: Mapping[str, tuple[Any, Callable[[str], Any] | None]] = {
    "text": (str, None),
    "texts": (list[str], None),
    "number": (float, number),
    "whole": (int, typed_whole),
    "file": (Path, file_path),
    "flag": (bool, None),
}
"""For each kind of value, the option's type and the function that parses it."""


def typed(name: str) -> Any:
    """Return the option of a field of `Ask`, `People` or `Terms`, made from the field's metadata.

    Parameters
    ----------
    name : str
        Name of the field.
    """
    metadata = OPTIONS[name].metadata
    kind, reader = _READERS[metadata["typed"].reads]
    panel = {"rich_help_panel": metadata["typed"].panel} if metadata["typed"].panel else {}
    metavar = {} if kind is bool else {"metavar": metadata["typed"].metavar}
    return typer.Option(
        f"--{typed_name(name).replace('_', '-')}", parser=reader, help=metadata["help"], **metavar, **panel
    )


def typed_name(name: str) -> str:
    """Return the name of the option for a field of `Ask`, `People` or `Terms`."""
    return OPTIONS[name].metadata["typed"].name or name


def typed_options(*names: str) -> dict[str, tuple[Any, Any]]:
    """Return the annotation and default of a command's options, by the name of each option.

    Parameters
    ----------
    *names : str
        Names of fields of `Ask`, `People` and `Terms`.
    """
    parameters: dict[str, tuple[Any, Any]] = {}
    for name in names:
        kind, default = _READERS[OPTIONS[name].metadata["typed"].reads][0], OPTIONS[name].default
        annotation = Annotated[kind | None if default is None else kind, typed(name)]
        parameters[typed_name(name)] = annotation, inspect.Parameter.empty if default is MISSING else default
    return parameters


OF_EVERYBODY = tuple(each.name for part in (People, Terms) for each in fields(part) if each.metadata["typed"])
"""Names of the fields that are options and hold for every question."""

LedgerFile = Annotated[Path | None, typed("ledger")]
PopulationName = Annotated[str, typed("population")]
FixedInAdvance = Annotated[str | None, typed("fixed_in_advance")]

Values = Annotated[str, typer.Option("--values", metavar="A,B,...", help="The columns of the vector, one number each.")]
Rows = Annotated[
    str | None,
    typer.Option(
        "--rows",
        metavar="A,B,C|FILE",
        help="All categories of the first column; needed, and known beforehand: a list, or a text file with one per "
        "line.",
    ),
]
Columns = Annotated[
    str | None, typer.Option("--columns", metavar="A,B,C|FILE", help="All categories of the second column, likewise.")
]
TwoColumns = Annotated[
    str, typer.Option("--values", metavar="A,B", help="The two columns: that of the rows, and that of the columns.")
]
Candidates = Annotated[
    str | None,
    typer.Option(
        "--candidates",
        metavar="A,B,C|FILE",
        help="All items that may be named: a list, or a text file with one per line. A record that is none of them "
        "counts as none of them. Without: items are searched for letter by letter.",
    ),
]
MaxLength = Annotated[
    int,
    typer.Option(
        "--max-length",
        parser=typed_whole,
        metavar="L",
        help="Without --candidates: most characters of an item. The shorter, the rarer the items that are found.",
    ),
]
Alphabet = Annotated[
    str,
    typer.Option(
        "--alphabet",
        metavar="NAME|CHARS",
        help="Without --candidates: the characters of items: ascii, lower, upper, digits, letters, several of them "
        "joined with +, utf-8, or the characters themselves.",
    ),
]
Cut = Annotated[
    bool, typer.Option("--cut", help="Without --candidates: a longer item counts as its first --max-length characters.")
]
FalsePositives = Annotated[
    float,
    typer.Option(
        "--false-positives", parser=number, metavar="P", help="Chance that any item is named that nobody has."
    ),
]
Norm = Annotated[
    float, typer.Option("--norm", parser=number, metavar="R", help="Largest norm of a vector, known beforehand.")
]
NormKind = Annotated[
    str, typer.Option("--norm-kind", metavar="NAME", help="Which norm is bounded: l2, linf (each number) or l1.")
]
Simultaneous = Annotated[
    bool,
    typer.Option(
        "--simultaneous",
        help="Show intervals that hold all together with 95 % confidence; else each holds by itself.",
        rich_help_panel=RESULT,
    ),
]
Counts = Annotated[
    bool,
    typer.Option(
        "--counts",
        help="Show counts besides shares, and sums besides means; --json and --csv have them always.",
        rich_help_panel=RESULT,
    ),
]
BoundsShown = Annotated[
    str | None,
    typer.Option(
        "--bounds",
        metavar="WHICH",
        help="Show the bounds that were consulted: certified, or all (every published bound too).",
        rich_help_panel=RESULT,
    ),
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Show the bounds that were consulted.", rich_help_panel=RESULT),
]
Csv = Annotated[
    Path | None,
    typer.Option(
        "--csv", parser=file_path, metavar="FILE.csv", help="Write the estimate as a table.", rich_help_panel=RESULT
    ),
]
QuestionsFile = Annotated[
    Path | None,
    typer.Option(
        "--questions",
        parser=file_path,
        metavar="FILE.toml",
        help="The questions of a survey file, each with its column.",
    ),
]
AskText = Annotated[
    list[str] | None,
    typer.Option(
        "--ask",
        metavar="QUESTION",
        help='Such as "frequency vote yes,no", "mean hours 0 99", "variance hours 0 99", "histogram hours 0 100 10", '
        '"quantiles hours 0 100 0.25,0.5", "frequent-items dest 3 upper", "crosstab side,vote north,south yes,no".',
    ),
]
