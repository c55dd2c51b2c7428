"""The options' names, types and help texts, each once; and the decorator that gives a command those of a table."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.errors import InvalidInput, cut_at_commas, shown

if TYPE_CHECKING:
    from shuffledp.tables import TableOptions

POPULATION = "Population (one of the three ways)"
SITUATION = "Situation (the guarantee covers it)"
RESULT = "Output"
BOUNDS = ("certified", "all")
"""Allowed values of --bounds."""


def parse_bounds(which: str | None) -> str | None:
    """Return which bounds --bounds asks to show: those of `BOUNDS`, or None where it was not typed."""
    if which not in (None, *BOUNDS):
        raise InvalidInput(f"--bounds must be {' or '.join(BOUNDS)}; got {shown(which)}")
    return which


def number(text: str) -> float:
    """Return the value of a number option."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{shown(text)} is not a number; write it like 0.5 or 1e-6") from None


def typed_whole(text: str) -> int:
    """Return the value of a whole-number option; 1e6 and 1_000_000 are accepted for a million."""
    with contextlib.suppress(ValueError):
        return int(text)
    with contextlib.suppress(ValueError):
        if (value := float(text)).is_integer():
            return int(value)
    raise typer.BadParameter(f"{shown(text)} is not a whole number; write it like 10000 or 1e4")


def file_path(text: str) -> Path:
    """Return the value of an option that names a file or folder."""
    if not str(text).strip():
        raise typer.BadParameter("the name is empty; name a file or folder")
    return Path(text)


Epsilon0 = Annotated[
    float | None,
    typer.Option(
        "--epsilon0",
        parser=number,
        metavar="E",
        help="Local budget of every user, for each single report.",
        rich_help_panel=POPULATION,
    ),
]
N = Annotated[
    int | None,
    typer.Option(
        "--n",
        parser=typed_whole,
        metavar="N",
        help="Number of users, with --epsilon0.",
        rich_help_panel=POPULATION,
    ),
]
Levels = Annotated[
    list[str] | None,
    typer.Option(
        "--level",
        metavar="E:COUNT",
        help="COUNT users at local budget E, or E,DELTA0:COUNT; repeat for each level.",
        rich_help_panel=POPULATION,
    ),
]
BudgetsFile = Annotated[
    Path | None,
    typer.Option(
        "--budgets",
        parser=file_path,
        metavar="FILE",
        help="Table (CSV, TSV, Parquet) with one local budget per user.",
        rich_help_panel=POPULATION,
    ),
]
Column = Annotated[
    str | None,
    typer.Option("--column", metavar="NAME", help="The column of --budgets with epsilon0.", rich_help_panel=POPULATION),
]
DeltaColumn = Annotated[
    str | None,
    typer.Option(
        "--delta-column",
        metavar="NAME",
        help="The column of --budgets with delta0 (default: all 0).",
        rich_help_panel=POPULATION,
    ),
]
Seen = Annotated[
    str | None,
    typer.Option(
        "--seen",
        metavar="WHAT",
        help="What the analyzer sees: reports, users, levels or sum. Required with two levels or more.",
    ),
]
Randomizer = Annotated[
    str,
    typer.Option(
        "--randomizer",
        metavar="NAME|FILE.csv",
        help="What randomizes a record: any, rr, krr:K, sue:K, oue:K, olh:K, hadamard:K, subset:K (K categories), "
        "one-bit, laplace, gaussian, piecewise, hybrid, tree:BINS, items:BITS:LEVELS:G, directions:D:M:C, "
        "sketch:D:BUCKETS, coordinates:D, "
        "memoised:E[:E_FRESH], or a channel matrix (one row per record, one column per report).",
    ),
]
Rounds = Annotated[
    int,
    typer.Option(
        "--rounds",
        parser=typed_whole,
        metavar="T",
        help="Collections from the same users, each with fresh noise and a fresh shuffle.",
        rich_help_panel=SITUATION,
    ),
]
Linked = Annotated[
    bool,
    typer.Option(
        "--linked",
        help="One shuffle serves all rounds, so that a user's reports can be linked across them.",
        rich_help_panel=SITUATION,
    ),
]
SameRecord = Annotated[
    bool,
    typer.Option(
        "--same-record",
        help="Of linked rounds: every user's record is the same in all rounds.",
        rich_help_panel=SITUATION,
    ),
]
Colluding = Annotated[
    int,
    typer.Option(
        "--colluding",
        parser=typed_whole,
        metavar="K",
        help="Users who may show the analyzer which reports are theirs.",
        rich_help_panel=SITUATION,
    ),
]
Missing = Annotated[
    float,
    typer.Option(
        "--missing",
        parser=number,
        metavar="FRACTION",
        help="Largest fraction of the users who may stay away or send junk, from 0 to below 1.",
        rich_help_panel=SITUATION,
    ),
]
GroupSize = Annotated[
    int,
    typer.Option(
        "--group-size",
        parser=typed_whole,
        metavar="K",
        help="Protect groups of so many users, not only single ones.",
        rich_help_panel=SITUATION,
    ),
]
ReportsPerUser = Annotated[
    int,
    typer.Option(
        "--reports-per-user",
        parser=typed_whole,
        metavar="M",
        help="Reports each user sends in a round, each with the whole budget.",
        rich_help_panel=SITUATION,
    ),
]
Records = Annotated[
    int | None,
    typer.Option(
        "--records",
        parser=typed_whole,
        metavar="2",
        help="State that every record is one of two values (2 is the only choice) and, if the randomizer is any, that "
        "all users of a budget run the same one.",
        rich_help_panel=SITUATION,
    ),
]
Dummies = Annotated[
    str | None,
    typer.Option(
        "--dummies",
        metavar="COUNT|laplace:COUNT|ball:EPSILON",
        help="Reports of nobody that the shuffler adds: COUNT uniform ones, COUNT bits with a discrete Laplace number "
        "of ones (laplace:COUNT, laplace:COUNT:RATIO), or the ball law that keeps a central EPSILON whatever others do "
        "(ball:EPSILON, ball:RATE:RADIUS:CENTRE), or a normal law (normal:SPREAD:CENTRE). With calibrate --find "
        "dummies: uniform, laplace, ball or normal.",
        rich_help_panel=SITUATION,
    ),
]
Promises = Annotated[
    list[str] | None,
    typer.Option(
        "--promise",
        metavar="E=EPSILON",
        help="With --find dummies: the central epsilon promised to local budget E; repeat for each level.",
    ),
]
Questions = Annotated[
    int,
    typer.Option(
        "--questions", parser=typed_whole, metavar="Q", help="With --find dummies: questions under one promise."
    ),
]
Delta = Annotated[
    float,
    typer.Option(
        "--delta",
        parser=number,
        metavar="D",
        help="Central delta, strictly between 0 and 1; well below 1/n, such as 1e-6.",
    ),
]
SearchedEpsilon = Annotated[
    float | None,
    typer.Option("--target-epsilon", parser=number, metavar="E", help="The central epsilon that must hold."),
]
TargetEpsilon = Annotated[
    float,
    typer.Option("--target-epsilon", parser=number, metavar="E", help="The central epsilon that must hold."),
]
Find = Annotated[
    str | None,
    typer.Option(
        "--find",
        metavar="WHAT",
        help="epsilon0, n, rounds, scale (a factor on all budgets) or dummies; required only if it cannot be inferred "
        "from the other options.",
    ),
]
Bounds = Annotated[
    str | None,
    typer.Option(
        "--bounds",
        metavar="WHICH",
        help="Show the bounds that were consulted. certified: proofs, witnesses, the formulas of the GSPA and RDP "
        "papers; all: every published bound too, and slower proofs (up to a minute).",
    ),
]
Table = Annotated[
    Path,
    typer.Argument(
        parser=file_path,
        metavar="TABLE",
        help="Text (CSV, TSV) or Parquet, one row per person; - for standard input.",
    ),
]
Value = Annotated[str, typer.Option("--value", metavar="COL", help="The column with the records.")]
NumberMechanism = Annotated[
    str | None,
    typer.Option(
        "--mechanism",
        metavar="NAME",
        help="one-bit (the default), laplace, gaussian, piecewise or hybrid; krr with --missing-as no-answer.",
    ),
]
FrequencyMechanism = Annotated[
    str,
    typer.Option("--mechanism", metavar="NAME", help="krr (rr for two), sue, oue, olh, hadamard or subset."),
]
OwnDelta0 = Annotated[
    float,
    typer.Option("--delta0", parser=number, metavar="D0", help="Local delta0 of everybody; Gaussian noise needs one."),
]
Low = Annotated[
    float | None,
    typer.Option("--low", parser=number, metavar="L", help="Lower end of the range; needed, and known beforehand."),
]
High = Annotated[
    float | None,
    typer.Option("--high", parser=number, metavar="H", help="Upper end of the range; needed, and known beforehand."),
]
Bins = Annotated[
    int,
    typer.Option("--bins", parser=typed_whole, metavar="B", help="Number of bins of equal width, known beforehand."),
]
QuantileBins = Annotated[
    int,
    typer.Option(
        "--bins", parser=typed_whole, metavar="B", help="Number of bins of equal width: quantiles are told to a bin."
    ),
]
Branching = Annotated[
    int,
    typer.Option(
        "--branching", parser=typed_whole, metavar="K", help="Children of a node of the tree of ranges; 4 is good."
    ),
]
At = Annotated[
    str,
    typer.Option("--at", metavar="P,P,...", help="Which quantiles, between 0 and 1, such as 0.5 for the median."),
]
Simplex = Annotated[
    bool,
    typer.Option(
        "--simplex",
        help="Add, beside the unbiased estimates, the nearest shares that are at least 0 and add up to 1.",
    ),
]
Categories = Annotated[
    str | None,
    typer.Option(
        "--categories",
        metavar="A,B,C|FILE",
        help="The categories; needed, and known beforehand: a list, or a text file with one per line.",
    ),
]
Board = Annotated[
    Path | None,
    typer.Option(
        "--board",
        parser=file_path,
        metavar="FILE.html",
        help="Write one page for a board: a sentence, a picture, three enemies, and what would make it false.",
        rich_help_panel=RESULT,
    ),
]
LevelsOut = Annotated[
    Path | None,
    typer.Option(
        "--levels-out",
        parser=file_path,
        metavar="FILE.csv",
        help="Write every level's guarantee (the tables list at most 1,000).",
        rich_help_panel=RESULT,
    ),
]
Curve = Annotated[
    Path | None,
    typer.Option(
        "--curve",
        parser=file_path,
        metavar="FILE.csv",
        help="Write the worst level's certified privacy profile: epsilon, delta_upper, delta_lower.",
        rich_help_panel=RESULT,
    ),
]
Renyi = Annotated[
    Path | None,
    typer.Option(
        "--renyi",
        parser=file_path,
        metavar="FILE.csv",
        help="Write the worst level's Renyi curve: order, lower, upper.",
        rich_help_panel=RESULT,
    ),
]
SimulationSeed = Annotated[
    int | None,
    typer.Option(
        "--simulation-seed",
        parser=typed_whole,
        metavar="N",
        help="Repeatable noise from a seed, for testing: the output is marked NOT PRIVATE.",
        rich_help_panel=RESULT,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.", rich_help_panel=RESULT)]
Out = Annotated[Path, typer.Option("--out", parser=file_path, metavar="DIR", help="Where the files go.")]
Report = Annotated[
    Path | None,
    typer.Option(
        "--report", parser=file_path, metavar="FILE.html", help="Write a self-contained page.", rich_help_panel=RESULT
    ),
]


WRITTEN = "How the table is written (where that is not found out)"

Separator = Annotated[
    str | None,
    typer.Option(
        "--separator",
        metavar="CHAR",
        help="Between two fields of a text file, such as ; or tab, or blanks for any run of them.",
        rich_help_panel=WRITTEN,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding", metavar="NAME", help="Of a text file, such as cp1252; default UTF-8.", rich_help_panel=WRITTEN
    ),
]
Decimal = Annotated[
    str,
    typer.Option("--decimal", metavar="MARK", help="Decimal mark of numbers: . or ,", rich_help_panel=WRITTEN),
]
Thousands = Annotated[
    str | None,
    typer.Option(
        "--thousands",
        metavar="MARK",
        help="Mark between thousands in numbers: , or . or _ or apostrophe or space. A number that may have one is "
        "else refused with both its readings.",
        rich_help_panel=WRITTEN,
    ),
]
MissingValues = Annotated[
    str | None,
    typer.Option(
        "--missing-values",
        metavar="A,B,...",
        help="Words and numbers that mean, in every column, that an entry is missing, such as '.,#N/A,-99'.",
        rich_help_panel=WRITTEN,
    ),
]
SkipLines = Annotated[
    int,
    typer.Option(
        "--skip-lines",
        parser=typed_whole,
        metavar="K",
        help="Lines above the header of a text file that belong to no table.",
        rich_help_panel=WRITTEN,
    ),
]
HeaderRows = Annotated[
    int,
    typer.Option(
        "--header-rows",
        parser=typed_whole,
        metavar="K",
        help="Rows of the header of a text file: names are in the first, and the others describe the columns.",
        rich_help_panel=WRITTEN,
    ),
]
ShowValues = Annotated[
    bool,
    typer.Option(
        "--show-values",
        help="Show what stands in a row that is refused; without, its number and the rule are told. For whoever holds "
        "the table.",
        rich_help_panel=WRITTEN,
    ),
]

TABLE: Mapping[str, tuple[Any, Any]] = {
    "separator": (Separator, None),
    "encoding": (Encoding, None),
    "decimal": (Decimal, "."),
    "thousands": (Thousands, None),
    "missing_values": (MissingValues, None),
    "skip_lines": (SkipLines, 0),
    "header_rows": (HeaderRows, 1),
    "show_values": (ShowValues, False),
}
"""Annotation and default of each option, by the names of the fields of `TableOptions`."""


def table_options(typed: Mapping[str, Any]) -> TableOptions:
    """Return the format of a table from the options as typed."""
    from shuffledp.tables import TableOptions

    options = {name: typed[name] for name in TABLE if name != "missing_values"}
    return TableOptions(**options, missing_values=_words(typed["missing_values"]))


def reads_table(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the table options added; it receives them as its last parameter `table`, a `TableOptions`.

    Parameters
    ----------
    command : callable
        A command made for typer.
    """

    @functools.wraps(command)
    def reading(**typed: Any) -> None:
        own = {name: value for name, value in typed.items() if name not in TABLE}
        command(**own, table=table_options(typed))

    parameters = dict(inspect.signature(command, eval_str=True).parameters)
    del parameters["table"]
    keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
    for name, (annotation, default) in TABLE.items():
        parameters[name] = inspect.Parameter(name, keyword, default=default, annotation=annotation)
    reading.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
    reading.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}
    return reading


def _words(text: str | None) -> tuple[str, ...]:
    """Return the words of --missing-values: comma-separated, quotes as in CSV."""
    if text is None:
        return ()
    words = cut_at_commas(text)
    if not all(words) or not words:
        raise InvalidInput(
            f"--missing-values names words with a comma between them, such as '.,-99'; an empty entry is missing "
            f"anyway; got {shown(text)}"
        )
    return words
