"""The front of the command line: what to type first, commands in groups, and the commands that ask a table.

There is one table of questions, from which the commands are made. Every command takes the options in `SHARED`; each
question adds its own, and no option may be given twice. Bodies import late, so that --help is fast. What the library
says of its own parameters is said of the options that were typed.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from shuffledp.errors import InvalidInput
from shuffledp.shell import estimate_options as e
from shuffledp.shell import options as o
from shuffledp.shell.options import TABLE

PANELS: Mapping[str, tuple[str, ...]] = {
    "Ask a table (start here: mean)": (
        "mean", "frequency", "crosstab", "frequent-items", "histogram", "quantiles", "variance", "vector-mean",
        "release", "difference",
    ),
    "Plan (start here: amplify)": ("amplify", "calibrate", "plan"),
    "Hold a collection (start here: demo collection)": ("task", "serve", "answer", "open"),
    "Check (start here: audit)": ("audit", "ledger", "total", "reproduce"),
    "More": ("demo", "train", "predict", "completion"),
}  # fmt: skip
"""Commands by the group in which --help lists them; a command not named here is listed in the last group."""
FIRST = """\
Start   shuffledp demo                                (all commands: shuffledp --help)
Table   shuffledp mean a.csv --value x --low 0 --high 9 --epsilon0 2 --delta 1e-6
Survey  shuffledp task draft survey.toml --out lunch  (try: shuffledp demo collection)
Plan    shuffledp calibrate --target-epsilon 0.5 --n 10000 --delta 1e-6
Decide  shuffledp amplify --epsilon0 2 --n 10000 --delta 1e-6\
"""
"""Text that `shuffledp` prints without a command: what to type for each of the four main tasks."""


class Once(TyperCommand):
    """A command that refuses an option given twice, of which a parser would silently use the last."""

    def make_parser(self, ctx: Any) -> Any:
        """Return the parser of the command line with the check for repeated options."""
        parser = super().make_parser(ctx)
        parse = parser.parse_args

        def parse_once(args: list[str]) -> Any:
            parsed = parse(args)
            given = [each for each in parsed[2] if each.param_type_name == "option" and not each.multiple]
            for option in given:
                if given.count(option) > 1:
                    raise InvalidInput(f"{max(option.opts, key=len)} is given twice; give it once")
            return parsed

        parser.parse_args = parse_once
        return parser


def bare() -> typer.Typer:
    """Return the command line without any command."""
    app = typer.Typer(
        add_completion=False,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(root)
    return app


def root(
    context: typer.Context,
    show_version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Differential privacy in the shuffle model: certified central guarantees from personal local budgets.

    Start here: shuffledp demo. Help for one command: shuffledp COMMAND --help.
    """
    if show_version:
        from shuffledp import __version__

        typer.echo(f"shuffledp {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(FIRST)
        raise typer.Exit


def arrange(app: typer.Typer) -> tuple[str, ...]:
    """Assign the commands to their groups, in the order of `PANELS`, and let every option be given only once.

    Parameters
    ----------
    app : typer.Typer
        The app, with all its commands registered.

    Returns
    -------
    tuple of str
        Names of the commands, in the order in which --help lists them.
    """
    place = {name: panel for panel, names in PANELS.items() for name in names}
    registered = [*app.registered_commands, *app.registered_groups]
    order = [*place, *sorted({_name(each) for each in registered} - place.keys())]
    for each in registered:
        each.rich_help_panel = place.get(_name(each), list(PANELS)[-1])
    app.registered_commands.sort(key=lambda each: order.index(_name(each)))
    for below in [app, *(group.typer_instance for group in app.registered_groups)]:
        for each in below.registered_commands if below is not None else ():
            each.cls = Once
    return tuple(sorted(map(_name, registered), key=order.index))


def spelled(arguments: list[str]) -> list[str]:
    """Return the arguments with `help COMMAND` replaced by `COMMAND --help`.

    Examples
    --------
    >>> spelled(["help", "task", "draft"]), spelled(["mean", "help.csv"])
    (['task', 'draft', '--help'], ['mean', 'help.csv'])
    """
    return [*arguments[1:], "--help"] if arguments[:1] == ["help"] else arguments


def _name(command: Any) -> str:
    return command.name or command.callback.__name__.replace("_", "-")


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
"""Options of every question, as annotation and default: those of `People` and `Terms`, and those on the output."""

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
    """The definition of a command that asks a question.

    Parameters
    ----------
    summary : str
        One sentence on the estimate, for --help.
    example : str
        Options of an example on the bundled table.
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
            "mechanism": (o.NumberMechanism, None),
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
    "crosstab": Command(
        "Estimate how two columns of categories go together in a table: cells, margins and independence, privately.",
        '--values education,income --rows Bachelors,Masters,other --other other --columns "<=50K,>50K" --epsilon0 1',
        {"rows": (e.Rows, None), "columns": (e.Columns, None), **OTHER, **SHARES},
        {"values": (e.TwoColumns, NEEDED)},
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
    **{name: option for name, option in SHARED.items() if name not in ("missing_as", "csv")},
    **e.typed_options("margins"),
    **COUNTS,
    "board": (o.Board, None),
}
"""Options of the command `release`, which asks several questions."""


def together() -> Callable[..., None]:
    """Return the function from which typer makes the command `release`."""

    def release(**typed: Any) -> None:
        from shuffledp.cli.estimate import run_together

        run_together(typed)

    release.__doc__ = (
        "Ask several questions of the same people in one pass: the guarantee of all of them together, and one page."
        '\n\nExample (on the table that comes with the package):\n\nshuffledp release "$(shuffledp demo --where)" '
        '--ask "mean hours_per_week 1 99" --ask "frequency income <=50K,>50K" --epsilon0 0.5 --delta 1e-6'
    )
    return signed(release, TOGETHER)


def command(name: str) -> Callable[..., None]:
    """Return the function from which typer makes a question's command.

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
    """Return a callable command line with one command only, which starts faster.

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
    """Return a function with the options as its signature, required ones first.

    Parameters
    ----------
    function : callable
        Function that takes the options by keyword.
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


_NAMED = re.compile(r"`(\w+)(?: = '?([\w.,-]+)'?)?`")

_FIRST = re.compile(r"(?:^|(?<=: ))(\w+)(?= must )")

_OF_FILES = ("other", "clip", "missing_as")
"""Parameters of a question that `release` reads from a file of --questions alone."""

_TARGET = "epsilon"
"""Name, in the searches of `calibrate`, of the parameter for --target-epsilon."""


def in_options(message: str, arguments: Sequence[str], options: Collection[str]) -> str:
    """Return a message with parameter names replaced by options, between backticks or as the first word of a clause.

    Parameters
    ----------
    message : str
        Message of an `InvalidInput` or `OutOfRegime`.
    arguments : sequence of str
        The command line: a name with which a message begins is an option only if that was typed.
    options : collection of str
        All options of the command. A word between backticks that names none of them, such as a column's, stays.
        For `release` a parameter of one question is a key of the file of --questions.

    Examples
    --------
    >>> in_options("group_size must be at least 1; got 0", ["amplify", "--group-size", "0"], ["--group-size"])
    '--group-size must be at least 1; got 0'
    >>> in_options("say `seen = 'reports'`", ["mean"], ["--seen"])
    'say --seen reports'
    >>> in_options("choose a smaller `delta`, or say `missing_as = 'no'`", ["mean"], ["--delta"])
    "choose a smaller --delta, or say `missing_as = 'no'`"
    >>> in_options("name it with `other`", ["release"], ["--questions"])
    'name it with `other` in a file of --questions'
    """
    typed = {word.partition("=")[0] for word in arguments}

    def first(match: re.Match[str]) -> str:
        option = _as_option("target_epsilon" if match[1] == _TARGET else match[1])
        return option if option in typed else match[0]

    def as_typed(match: re.Match[str]) -> str:
        option = _as_option(match[1])
        if option in options:
            return f"{option} {match[2] or ''}".rstrip()
        return (
            f"{match[0]} in a file of --questions" if match[1] in _OF_FILES and "--questions" in options else match[0]
        )

    return _NAMED.sub(as_typed, _FIRST.sub(first, message))


def _as_option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
