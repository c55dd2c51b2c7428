"""The front of the command line: what to type first, commands in groups, and options that are given once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from shuffledp.errors import InvalidInput

PANELS: Mapping[str, tuple[str, ...]] = {
    "Ask a table (start here: mean)": (
        "mean", "frequency", "frequent-items", "histogram", "quantiles", "variance", "vector-mean", "release",
        "difference",
    ),
    "Plan (start here: amplify)": ("amplify", "calibrate", "plan"),
    "Hold a collection (start here: demo collection)": ("task", "serve", "answer", "open"),
    "Check (start here: audit)": ("audit", "ledger", "total", "reproduce"),
    "More": ("demo", "train", "predict", "completion"),
}  # fmt: skip
"""Commands in the groups in which --help lists them; one that is not named here is listed in the last group."""
FIRST = """\
Start   shuffledp demo                                (all commands: shuffledp --help)
Table   shuffledp mean a.csv --value x --low 0 --high 9 --epsilon0 2 --delta 1e-6
Survey  shuffledp task draft survey.toml --out lunch  (try: shuffledp demo collection)
Plan    shuffledp calibrate --target-epsilon 0.5 --n 10000 --delta 1e-6
Decide  shuffledp amplify --epsilon0 2 --n 10000 --delta 1e-6\
"""
"""What `shuffledp` shows without a command: what to type for each of the four jobs."""


class Once(TyperCommand):
    """A command that refuses an option given twice, of which a parser would silently keep the last."""

    def make_parser(self, ctx: Any) -> Any:
        """Return the parser of the command line, with the check added."""
        parser = super().make_parser(ctx)
        parse = parser.parse_args

        def parse_once(args: list[str]) -> Any:
            found = parse(args)
            given = [each for each in found[2] if each.param_type_name == "option" and not each.multiple]
            for option in given:
                if given.count(option) > 1:
                    raise InvalidInput(f"{max(option.opts, key=len)} is given twice; give it once")
            return found

        parser.parse_args = parse_once
        return parser


def bare() -> typer.Typer:
    """Return the command line without a command: what `shuffledp` does by itself."""
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
    """Put the commands into their groups, in the order of `PANELS`, and let every option be given once.

    Parameters
    ----------
    app : typer.Typer
        With all its commands registered.

    Returns
    -------
    tuple of str
        Their names, in the order in which --help lists them.
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
    """Read `help COMMAND` as `COMMAND --help`.

    Examples
    --------
    >>> spelled(["help", "task", "draft"]), spelled(["mean", "help.csv"])
    (['task', 'draft', '--help'], ['mean', 'help.csv'])
    """
    return [*arguments[1:], "--help"] if arguments[:1] == ["help"] else arguments


def _name(command: Any) -> str:
    return command.name or command.callback.__name__.replace("_", "-")
