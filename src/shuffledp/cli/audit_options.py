"""The options of `audit`: names, types and help texts."""

from __future__ import annotations

from typing import Annotated

import typer

from shuffledp.shell import options as o

COLLECTION = "A whole collection"
ATTACK = "Attack"

Randomizer = Annotated[
    str,
    typer.Option(
        "--randomizer",
        metavar="WHAT",
        help="What to attack: rr, krr:K, sue:K, oue:K, olh:K, hadamard:K, subset:K, one-bit, laplace, gaussian, "
        "piecewise, hybrid and the others of amplify; FILE.py:FUNCTION, a Python function f(records, random=...) -> "
        "reports; or command:PROGRAM, which reads one record per line and prints one report per line.",
    ),
]
Epsilon0 = Annotated[
    float | None,
    typer.Option("--epsilon0", parser=o.number, metavar="E", help="The local claim; one of ours is run at it."),
]
Delta0 = Annotated[
    float, typer.Option("--delta0", parser=o.number, metavar="D", help="The local claim's delta0, in [0, 1).")
]
Records = Annotated[
    str | None,
    typer.Option(
        "--records",
        metavar="A,B",
        help="Records to tell apart, two or more: numbers or words (default: a few of the family's, or 0,1).",
        rich_help_panel=ATTACK,
    ),
]
Trials = Annotated[
    int | None,
    typer.Option(
        "--trials",
        parser=o.whole_number,
        metavar="N",
        help="Reports drawn (default 200000), or collections simulated with --pipeline.",
        rich_help_panel=ATTACK,
    ),
]
Confidence = Annotated[
    float,
    typer.Option(
        "--confidence",
        parser=o.number,
        metavar="C",
        help="What keeps its claim is accused with chance at most 1 - C.",
        rich_help_panel=ATTACK,
    ),
]
Pipeline = Annotated[
    bool,
    typer.Option(
        "--pipeline",
        help="Attack the shuffled reports of all users against the central claim.",
        rich_help_panel=COLLECTION,
    ),
]
N = Annotated[
    int | None,
    typer.Option("--n", parser=o.whole_number, metavar="N", help="Number of users.", rich_help_panel=COLLECTION),
]
Levels = Annotated[
    list[str] | None,
    typer.Option(
        "--level",
        metavar="E:COUNT",
        help="Instead of --epsilon0 and --n: COUNT users at local budget E, or E,DELTA0:COUNT; repeat.",
        rich_help_panel=COLLECTION,
    ),
]
Seen = Annotated[
    str | None,
    typer.Option(
        "--seen",
        metavar="WHAT",
        help="What the analyzer sees: reports or levels. Required with two levels or more.",
        rich_help_panel=COLLECTION,
    ),
]
Delta = Annotated[
    float | None,
    typer.Option(
        "--delta",
        parser=o.number,
        metavar="D",
        help="Central delta, strictly between 0 and 1.",
        rich_help_panel=COLLECTION,
    ),
]
ClaimedEpsilon = Annotated[
    float | None,
    typer.Option(
        "--claimed-epsilon",
        parser=o.number,
        metavar="E",
        help="The central claim to attack (default: what amplify certifies).",
        rich_help_panel=COLLECTION,
    ),
]
Counts = Annotated[
    bool,
    typer.Option(
        "--counts",
        help="Draw counts from the stated law instead of running the randomizer for every user: millions of runs.",
        rich_help_panel=COLLECTION,
    ),
]
