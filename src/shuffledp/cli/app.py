"""The commands and their options; each body hands over to its own module, so that --help starts fast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from shuffledp.cli import audit_options as a
from shuffledp.cli import ledger_app, situation_app
from shuffledp.cli.estimates_app import QUESTIONS, command, together
from shuffledp.cli.front import arrange, bare
from shuffledp.cli.plan import plan_command
from shuffledp.shell import options as o

GROUP = "shuffledp.commands"
"""Entry points by which products, of this package or another, add commands; each is a function that takes the app."""
PRODUCTS = tuple(
    EntryPoint(name, f"shuffledp.{name}.commands:register", GROUP) for name in ("collection", "learning", "reproduce")
)
"""Those of this package, for a copy whose metadata do not tell of them."""
app = bare()

situation_app.register(app)
app.command("plan")(plan_command)
for question in QUESTIONS:
    app.command(question)(command(question))
app.command("release")(together())
ledger_app.register(app)


@app.command()
def audit(
    randomizer: a.Randomizer,
    epsilon0: a.Epsilon0 = None,
    delta0: a.Delta0 = 0.0,
    records: a.Records = None,
    trials: a.Trials = None,
    confidence: a.Confidence = 0.999,
    pipeline: a.Pipeline = False,
    n: a.N = None,
    level: a.Levels = None,
    seen: a.Seen = None,
    delta: a.Delta = None,
    claimed_epsilon: a.ClaimedEpsilon = None,
    counts: a.Counts = False,
    simulation_seed: o.SimulationSeed = None,
    json: o.Json = False,
) -> None:
    """Attack a randomizer, or a whole shuffled collection; exit status 3 if that breaks the claim.

    Example:

    shuffledp audit --randomizer krr:10 --epsilon0 1
    """
    from shuffledp.cli.audit import Attack, Collection, run_audit

    attack = Attack(randomizer, records, trials, confidence, simulation_seed, json)
    collection = Collection(n, tuple(level or ()), seen, delta, claimed_epsilon, counts)
    run_audit(attack, epsilon0, delta0, collection, pipeline=pipeline)


@app.command()
def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(metavar="bash|zsh|fish", help="Your shell.")],
) -> None:
    """Print the script by which a shell completes commands and options.

    bash: source it in ~/.bashrc. zsh: source it in ~/.zshrc, after compinit. fish: write it to
    ~/.config/fish/completions/shuffledp.fish.

    Example:

    shuffledp completion bash > shuffledp-completion.bash
    """
    from shuffledp.cli.completion import script

    typer.echo(script(shell, app, COMMANDS), nl=False)


@app.command()
def demo(
    what: Annotated[
        Literal["table", "collection"],
        typer.Argument(metavar="[table|collection]", help="A table, or 300 people through the real service."),
    ] = "table",
    delta: o.Delta = 1e-6,
    simulation_seed: o.SimulationSeed = None,
    json: o.Json = False,
    report: o.Report = None,
    where: Annotated[bool, typer.Option("--where", help="Print where the bundled table lies and exit.")] = False,
    table: Annotated[
        Path | None,
        typer.Option("--table", parser=o.file_path, metavar="FILE.csv", help="Write the table with budgets and exit."),
    ] = None,
) -> None:
    """Show the main job on bundled real data: three estimates from a table, or a whole collection on this machine.

    Example:

    shuffledp demo --report shuffledp-demo.html
    """
    from shuffledp.cli.demo.table import TABLE, run_demo, write_table

    if where:
        typer.echo(str(TABLE))
        raise typer.Exit
    if table is not None:
        write_table(table)
        typer.echo(f"{table}: 48,842 people, with the columns hours, income, education and budget (1, 2 or 4)")
        raise typer.Exit
    if what == "collection":
        from shuffledp.cli.demo.collection import run_demo_collection

        run_demo_collection(delta, simulation_seed, as_json=json, report=report)
        return
    run_demo(delta, simulation_seed, as_json=json, report=report)


def add_products() -> None:
    """Add the commands of every product that is there; one that was left out of this copy has none."""
    told = tuple(entry_points(group=GROUP))
    for product in (*(own for own in PRODUCTS if own not in told), *told):
        try:
            register = product.load()
        except ModuleNotFoundError as missing:
            if not product.module.startswith(missing.name or " "):
                raise
        else:
            register(app)


add_products()
COMMANDS = arrange(app)
"""The names of all commands, in the order in which --help lists them."""


@cache
def parser() -> Callable[..., Any]:
    """All commands, ready to be called with arguments: built once a process, which takes longer than many a command."""
    return typer.main.get_command(app)


def options_of(arguments: Sequence[str]) -> set[str]:
    """Name every option of the command that a command line begins with."""
    command: Any = parser()
    for word in arguments:
        below = getattr(command, "commands", {}).get(word)
        if below is None:
            break
        command = below
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
