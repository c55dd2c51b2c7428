"""Options of the commands that ask a question of a table; those of other commands are in `shuffledp.shell.options`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shuffledp.shell.options import RESULT, file_path, number, whole_number

PEOPLE = "Whose rows they are, and gaps"
GROUPS = "Groups (public)"
LEDGER = "Ledger (what the same people have spent)"

Person = Annotated[
    str | None,
    typer.Option(
        "--person",
        metavar="COL",
        help="The column that tells whose row it is. Without it each row is taken as a person.",
        rich_help_panel=PEOPLE,
    ),
]
RowsPerPerson = Annotated[
    str,
    typer.Option(
        "--rows-per-person",
        metavar="refuse|one|K",
        help="People with several rows: refuse; use one row each, chosen at random; or use all, with a guarantee for "
        "groups of K rows.",
        rich_help_panel=PEOPLE,
    ),
]
MissingAs = Annotated[
    str | None,
    typer.Option(
        "--missing-as",
        metavar="VALUE",
        help="What a missing record counts as: a category, or a number of the range; see --missing-values.",
        rich_help_panel=PEOPLE,
    ),
]
Other = Annotated[
    str | None,
    typer.Option(
        "--other",
        metavar="CATEGORY",
        help="The category that an unlisted record counts as; of items: what one outside the domain counts as.",
        rich_help_panel=PEOPLE,
    ),
]
MissingBudget = Annotated[
    float | None,
    typer.Option(
        "--missing-budget",
        parser=number,
        metavar="E",
        help="The local budget of rows whose budget is missing; 0 sends no information.",
        rich_help_panel=PEOPLE,
    ),
]
TargetEpsilon = Annotated[
    float | None,
    typer.Option(
        "--target-epsilon",
        parser=number,
        metavar="E",
        help="In place of --epsilon0: the central epsilon that must hold at --delta. The largest local budget that is "
        "certified for it, one for everybody, is found and asked with.",
    ),
]
By = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="COL",
        help="The column with each row's public group: one answer, and one guarantee, for each of --groups.",
        rich_help_panel=GROUPS,
    ),
]
GroupNames = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="A,B,C|FILE",
        help="With --by: all groups, known beforehand; a list, or a text file with one per line.",
        rich_help_panel=GROUPS,
    ),
]
MarginsFile = Annotated[
    Path | None,
    typer.Option(
        "--margins",
        parser=file_path,
        metavar="FILE.csv",
        help="With --by: public counts of all people (variable,category,people), to which answers are weighted.",
        rich_help_panel=GROUPS,
    ),
]
AnyDelta = Annotated[
    bool,
    typer.Option("--any-delta", help="Allow a delta of 1/n and above, which lets one person's record be published."),
]
Values = Annotated[str, typer.Option("--values", metavar="A,B,...", help="The columns of the vector, one number each.")]
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
        parser=whole_number,
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
        '"quantiles hours 0 100 0.25,0.5", "frequent-items dest 3 upper".',
    ),
]
LedgerFile = Annotated[
    Path | None,
    typer.Option(
        "--ledger",
        parser=file_path,
        metavar="FILE",
        help="Enter the release before it is shown; the ledger's limit refuses what has no room.",
        rich_help_panel=LEDGER,
    ),
]
PopulationName = Annotated[
    str,
    typer.Option(
        "--population",
        metavar="NAME",
        help="What the ledger calls these people. Names that differ overlap unless the ledger says otherwise.",
        rich_help_panel=LEDGER,
    ),
]
FixedInAdvance = Annotated[
    str | None,
    typer.Option(
        "--fixed-in-advance",
        metavar="ID",
        help="Name of the plan that fixed this release, and all others of that name, before any of their answers.",
        rich_help_panel=LEDGER,
    ),
]
Title = Annotated[
    str | None,
    typer.Option(
        "--title",
        metavar="TEXT",
        help="Title of the page that --report writes, and of the entry.",
        rich_help_panel=RESULT,
    ),
]
