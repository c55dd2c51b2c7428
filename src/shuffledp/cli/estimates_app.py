"""The commands that ask a question of a table: one table of questions, from which the commands are made.

Every command takes the options in `SHARED`; each question adds its own. Bodies import late, so that --help is fast.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import typer

from shuffledp.cli.front import arrange, bare
from shuffledp.shell import estimate_options as e
from shuffledp.shell import options as o
from shuffledp.shell.table_options import TABLE

NEEDED = inspect.Parameter.empty

SHARED: Mapping[str, tuple[Any, Any]] = {
    **e.typed_options(*(name for name in e.OF_EVERYBODY if name != "margins"), "missing_as"),
    "bounds": (e.BoundsShown, None),
    "verbose": (e.Verbose, False),
    **TABLE,
    "json": (o.Json, False),
    "csv": (e.Csv, None),
    "report": (o.Report, None),
}
"""Options of every question: annotation and default; those of `People` and `Terms`, and how the answer is shown."""

RANGE: Mapping[str, tuple[Any, Any]] = {"low": (o.Low, None), "high": (o.High, None), **e.typed_options("clip")}
OTHER: Mapping[str, tuple[Any, Any]] = e.typed_options("other")
COUNTS: Mapping[str, tuple[Any, Any]] = {"counts": (e.Counts, False)}
SHARES: Mapping[str, tuple[Any, Any]] = {
    "simplex": (o.Simplex, False),
    "simultaneous": (e.Simultaneous, False),
    **COUNTS,
}


@dataclass(frozen=True)
class Command:
    """A command that asks a question.

    Parameters
    ----------
    summary : str
        What it estimates.
    example : str
        Its options on the bundled table.
    options : mapping of str to (annotation, default)
        The question's own options.
    first : mapping of str to (annotation, default)
        Options that come before the shared ones: the column with the records.
    """

    summary: str
    example: str
    options: Mapping[str, tuple[Any, Any]]
    first: Mapping[str, tuple[Any, Any]] = field(default_factory=lambda: {"value": (o.Value, NEEDED)})


QUESTIONS: Mapping[str, Command] = {
    "mean": Command(
        "Estimate a mean from a table, privately.",
        "--value hours_per_week --low 1 --high 99 --epsilon0 0.5",
        {
            **RANGE,
            "mechanism": (o.NumberMechanism, "one-bit"),
            "delta0": (o.OwnDelta0, 0.0),
            **e.typed_options("margins"),
            **COUNTS,
        },
    ),
    "frequency": Command(
        "Estimate how often each category occurs in a table, privately.",
        '--value income --categories "<=50K,>50K" --epsilon0 0.5',
        {
            "categories": (o.Categories, None),
            **OTHER,
            "mechanism": (o.FrequencyMechanism, "krr"),
            **e.typed_options("margins"),
            **SHARES,
        },
    ),
    "frequent-items": Command(
        "Find which items are frequent in a table, and how frequent, without a list of all items, privately.",
        "--value education --max-length 12 --alphabet ascii --epsilon0 4",
        {
            "candidates": (e.Candidates, None),
            "max_length": (e.MaxLength, 16),
            "alphabet": (e.Alphabet, "ascii"),
            "cut": (e.Cut, False),
            **OTHER,
            "false_positives": (e.FalsePositives, 0.05),
            **COUNTS,
        },
    ),
    "histogram": Command(
        "Estimate the histogram of a number in a table, privately.",
        "--value hours_per_week --low 0 --high 100 --bins 10 --epsilon0 1",
        {
            "bins": (o.Bins, NEEDED),
            **RANGE,
            "mechanism": (o.FrequencyMechanism, "subset"),
            **e.typed_options("margins"),
            **SHARES,
        },
    ),
    "quantiles": Command(
        "Estimate quantiles and the distribution function of a number in a table, privately.",
        "--value hours_per_week --low 0 --high 100 --at 0.1,0.5,0.9 --bins 100 --epsilon0 1",
        {
            **RANGE,
            "at": (o.At, "0.25,0.5,0.75"),
            "bins": (o.QuantileBins, 256),
            "branching": (o.Branching, 4),
            "simultaneous": (e.Simultaneous, False),
        },
    ),
    "variance": Command(
        "Estimate the variance and the standard deviation of a number in a table, privately.",
        "--value hours_per_week --low 1 --high 99 --epsilon0 1",
        RANGE,
    ),
    "vector-mean": Command(
        "Estimate the mean of several numbers at once, as a vector of bounded norm, privately.",
        "--values hours_per_week --norm 99 --epsilon0 1",
        {
            "norm": (e.Norm, NEEDED),
            "norm_kind": (e.NormKind, "l2"),
            **e.typed_options("clip"),
            "simultaneous": (e.Simultaneous, False),
            **COUNTS,
        },
        {"values": (e.Values, NEEDED)},
    ),
}


TOGETHER: Mapping[str, tuple[Any, Any]] = {
    "table": (o.Table, NEEDED),
    "questions": (e.QuestionsFile, None),
    "ask": (e.AskText, None),
    **{name: option for name, option in SHARED.items() if name not in ("missing_as", "csv", "by", "groups")},
    **COUNTS,
    "board": (o.Board, None),
}
"""Options of `release`, which asks several questions."""


def together() -> Callable[..., None]:
    """Return the function that typer makes `release` from."""

    def release(**typed: Any) -> None:
        from shuffledp.cli.release import run_together

        run_together(typed)

    release.__doc__ = (
        "Ask several questions of the same people in one pass: the guarantee of all of them together, and one page."
        '\n\nExample (on the table that comes with the package):\n\nshuffledp release "$(shuffledp demo --where)" '
        '--ask "mean hours_per_week 1 99" --ask "frequency income <=50K,>50K" --epsilon0 0.5 --delta 1e-6'
    )
    return signed(release, TOGETHER)


def command(name: str) -> Callable[..., None]:
    """Return the function that typer makes the command from.

    Parameters
    ----------
    name : str
        A key of `QUESTIONS`.
    """
    spec = QUESTIONS[name]
    options = {"table": (o.Table, NEEDED), **spec.first, **SHARED, **spec.options}

    def ask(**typed: Any) -> None:
        from shuffledp.cli.estimate import run

        run(name, typed)

    ask.__name__ = name
    ask.__doc__ = (
        f"{spec.summary}\n\nExample (on the table that comes with the package):\n\n"
        f'shuffledp {name} "$(shuffledp demo --where)" {spec.example} --delta 1e-6'
    )
    return signed(ask, options)


@cache
def alone(name: str) -> Callable[..., Any]:
    """Return the command line with this command only, ready to be called: the others need not be loaded.

    Parameters
    ----------
    name : str
        A key of `QUESTIONS`, or ``"release"``.
    """
    app = bare()
    app.command(name)(together() if name == "release" else command(name))
    arrange(app)
    return typer.main.get_command(app)


def signed(function: Callable[..., None], options: Mapping[str, tuple[Any, Any]]) -> Callable[..., None]:
    """Give a function the options as its signature, those that are needed first.

    Parameters
    ----------
    function : callable
        Takes what was typed by keyword.
    options : mapping of str to (annotation, default)
        Its options.
    """
    ordered = sorted(options, key=lambda option: options[option][1] is not NEEDED)
    keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
    function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(option, keyword, default=options[option][1], annotation=options[option][0])
         for option in ordered]
    )  # fmt: skip
    function.__annotations__ = {option: options[option][0] for option in ordered}
    return function
