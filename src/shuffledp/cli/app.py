"""The commands and their options; each body hands over to its own module, so that --help starts fast.

`completion` prints scripts by which a shell completes commands and options, written from the commands themselves. The
scripts hold all names, so that a shell need not start Python at each press of the key. A word that starts with a dash
is an option; after the command, and the command below it, every other word is a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from shuffledp.cli.front import NEEDED, QUESTIONS, arrange, bare, command, signed, together
from shuffledp.cli.plan import plan_command
from shuffledp.errors import InvalidInput
from shuffledp.shell import estimate_options as e
from shuffledp.shell import options as o
from shuffledp.shell.options import TABLE, table_options

if TYPE_CHECKING:
    import typer

    from shuffledp.cli.population import Population, TypedSituation

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
        parser=o.typed_whole,
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
    typer.Option("--n", parser=o.typed_whole, metavar="N", help="Number of users.", rich_help_panel=COLLECTION),
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
    """Add the commands `ledger`, `total` and `difference` to the command line."""
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

    comparison = Compared(files, between, question, delta, disjoint)
    run_difference(comparison, simultaneous=simultaneous, as_json=json, report=report, title=title)


POPULATION: Mapping[str, tuple[Any, Any]] = {
    "epsilon0": (o.Epsilon0, None),
    "n": (o.N, None),
    "level": (o.Levels, None),
    "budgets": (o.BudgetsFile, None),
    "column": (o.Column, None),
    "delta_column": (o.DeltaColumn, None),
    **TABLE,
}
"""Annotation and default of each option on the population."""

SITUATION: Mapping[str, tuple[Any, Any]] = {
    "seen": (o.Seen, None),
    "randomizer": (o.Randomizer, "any"),
    "rounds": (o.Rounds, 1),
    "linked": (o.Linked, False),
    "same_record": (o.SameRecord, False),
    "colluding": (o.Colluding, 0),
    "missing": (o.Missing, 0.0),
    "group_size": (o.GroupSize, 1),
    "reports_per_user": (o.ReportsPerUser, 1),
    "records": (o.Records, None),
    "dummies": (o.Dummies, None),
}
"""Annotation and default of each option on the collection; the names are those of `TypedSituation`."""

AMPLIFY: Mapping[str, tuple[Any, Any]] = {
    "delta": (o.Delta, NEEDED),
    **POPULATION,
    **SITUATION,
    "bounds": (o.Bounds, None),
    "board": (o.Board, None),
    "levels_out": (o.LevelsOut, None),
    "curve": (o.Curve, None),
    "renyi": (o.Renyi, None),
    "json": (o.Json, False),
    "report": (o.Report, None),
}
CALIBRATE: Mapping[str, tuple[Any, Any]] = {
    "delta": (o.Delta, NEEDED),
    "target_epsilon": (o.SearchedEpsilon, None),
    "find": (o.Find, None),
    **POPULATION,
    **SITUATION,
    "promise": (o.Promises, None),
    "questions": (o.Questions, 1),
    "json": (o.Json, False),
    "report": (o.Report, None),
}
OF_PEOPLE = ("n", "level", "budgets", "seen", "linked", "same_record", "rounds", "colluding", "missing", "group_size",
             "records", "report", *TABLE)  # fmt: skip
"""Options of `calibrate` that are refused with --find dummies."""


def register_situations(app: typer.Typer) -> None:
    """Add the commands amplify and calibrate."""
    app.command()(signed(amplify, AMPLIFY))
    app.command()(signed(calibrate, CALIBRATE))


def amplify(**typed: Any) -> None:
    """Tell how private the shuffled output is.

    Example:

    shuffledp amplify --level 0.5:9000 --level 2:1000 --seen reports --randomizer rr --delta 1e-6
    """
    from shuffledp.cli.calibrate import CalibrationOutputs, run_amplify

    bounds = o.parse_bounds(typed["bounds"])
    people, question = _population_and_situation(typed)
    outputs = CalibrationOutputs(typed["json"], typed["report"], typed["levels_out"], typed["curve"], typed["renyi"],
                      typed["board"])  # fmt: skip
    run_amplify(question.about(people.budgets()), typed["delta"], outputs, bounds)


def calibrate(**typed: Any) -> None:
    """Find the largest local budget, the fewest users, the most rounds, the largest factor on all budgets, or dummies.

    Example:

    shuffledp calibrate --target-epsilon 1 --n 10000 --delta 1e-6
    """
    from shuffledp.cli.calibrate import CalibrationOutputs, run_calibrate

    if typed["find"] == "dummies":
        _find_dummies(typed)
        return
    people, question = _population_and_situation(typed)
    if typed["promise"] or typed["questions"] != 1:
        raise InvalidInput("--promise and --questions belong to --find dummies; add it, or leave them out")
    if typed["target_epsilon"] is None:
        raise InvalidInput("--target-epsilon E is needed: the central epsilon that must hold")
    outputs = CalibrationOutputs(typed["json"], typed["report"])
    run_calibrate(typed["target_epsilon"], typed["delta"], typed["find"], people, question, outputs)


def _population_and_situation(typed: Mapping[str, Any]) -> tuple[Population, TypedSituation]:
    """Return the population and the options on the collection, as typed."""
    from shuffledp.cli.population import Population, TypedSituation

    file, column, delta_column = (typed[name] for name in ("budgets", "column", "delta_column"))
    people = Population(
        typed["epsilon0"], typed["n"], tuple(typed["level"] or ()), file, column, delta_column, table_options(typed)
    )
    return people, TypedSituation(delta=typed["delta"], **{name: typed[name] for name in SITUATION})


def _find_dummies(typed: Mapping[str, Any]) -> None:
    """Run the search for dummies; options about people are refused, because dummies protect whoever takes part."""
    from shuffledp.cli.calibrate import DummiesWish, run_calibrate_dummies

    others = tuple("--" + name.replace("_", "-") for name in OF_PEOPLE if typed[name] != CALIBRATE[name][1])
    wish = DummiesWish(
        tuple(typed["promise"] or ()),
        typed["epsilon0"],
        typed["target_epsilon"],
        typed["randomizer"],
        typed["questions"],
        typed["dummies"],
        typed["reports_per_user"],
        others,
    )
    run_calibrate_dummies(wish, typed["delta"], json=typed["json"])


GROUP = "shuffledp.commands"
"""Group of entry points by which products, of this package or another, add commands: functions that take the app."""
PRODUCTS = tuple(
    EntryPoint(name, f"shuffledp.{name}.commands:register", GROUP) for name in ("collection", "learning", "reproduce")
)
"""The entry points of this package, for a copy without installed metadata."""
app = bare()

register_situations(app)
app.command("plan")(plan_command)
for question in QUESTIONS:
    app.command(question)(command(question))
app.command("release")(together())
register(app)


@app.command()
def audit(
    randomizer: Randomizer,
    epsilon0: Epsilon0 = None,
    delta0: Delta0 = 0.0,
    records: Records = None,
    trials: Trials = None,
    confidence: Confidence = 0.999,
    pipeline: Pipeline = False,
    n: N = None,
    level: Levels = None,
    seen: Seen = None,
    delta: Delta = None,
    claimed_epsilon: ClaimedEpsilon = None,
    counts: Counts = False,
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
    from shuffledp.cli.demo.table import TABLE, TABLE_COLUMNS, run_demo, write_table

    if where:
        typer.echo(str(TABLE))
        raise typer.Exit
    if table is not None:
        write_table(table)
        typer.echo(f"{table}: 48,842 people, with the columns {TABLE_COLUMNS}")
        raise typer.Exit
    if what == "collection":
        from shuffledp.cli.demo.collection import run_demo_collection

        run_demo_collection(delta, simulation_seed, as_json=json, report=report)
        return
    run_demo(delta, simulation_seed, as_json=json, report=report)


def add_products() -> None:
    """Add the commands of every product that is present; a product left out of this copy has none."""
    installed = tuple(entry_points(group=GROUP))
    for product in (*(own for own in PRODUCTS if own not in installed), *installed):
        try:
            register = product.load()
        except ModuleNotFoundError as missing:
            if not product.module.startswith(missing.name or " "):
                raise
        else:
            register(app)


add_products()
COMMANDS = arrange(app)
"""Names of all commands, in the order in which --help lists them."""


@cache
def parser() -> Callable[..., Any]:
    """Return all commands as a callable parser; cached, because building it takes longer than many commands."""
    return typer.main.get_command(app)


def options_of(arguments: Sequence[str]) -> set[str]:
    """Return the names of all options of the command with which a command line begins."""
    command: Any = parser()
    for word in arguments:
        below = getattr(command, "commands", {}).get(word)
        if below is None:
            break
        command = below
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}


Words = Mapping[str, tuple[str, ...]]
"""Names of options or subcommands, by the command that they follow, such as ``task draft``."""

ALWAYS = "--help --version"

BASH = """\
_shuffledp() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" known=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        known="{commands} {always}"
    elif [ "${{word:0:1}}" = "-" ]; then
        case "${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}}" in
{options}
        esac
    elif [ "$COMP_CWORD" -eq 2 ]; then
        case "${{COMP_WORDS[1]}}" in
{below}
        esac
    fi
    COMPREPLY=($(compgen -W "$known" -- "$word"))
}}
complete -o default -F _shuffledp shuffledp
"""
ZSH = """\
#compdef shuffledp
_shuffledp() {{
    local -a known
    if (( CURRENT == 2 )); then
        known=({commands} {always})
    elif [[ "$PREFIX" == -* ]]; then
        case "${{words[2]}} ${{words[3]}}" in
{options}
        esac
    elif (( CURRENT == 3 )); then
        case "${{words[2]}}" in
{below}
        esac
    fi
    if (( $#known )); then
        compadd -- $known
    else
        _files
    fi
}}
if [[ "$funcstack[1]" == "_shuffledp" ]]; then
    _shuffledp "$@"
else
    compdef _shuffledp shuffledp
fi
"""
FISH = """\
function __shuffledp_after
    set -l typed (commandline -opc)
    set -l last (math 1 + (count $argv))
    test (count $typed) -ge $last; and test "$typed[2..$last]" = "$argv"
end
function __shuffledp_next
    test (count (commandline -opc)) -eq (math 1 + (count $argv)); and __shuffledp_after $argv
end
complete -c shuffledp -n 'test (count (commandline -opc)) -eq 1' -f -a '{commands}'
complete -c shuffledp -n 'test (count (commandline -opc)) -eq 1' -l help -l version
{rest}
"""


def script(shell: str, app: typer.Typer, names: Sequence[str]) -> str:
    """Return the completion script of a shell.

    Parameters
    ----------
    shell : {"bash", "zsh", "fish"}
        The shell.
    app : Typer
        The command line.
    names : sequence of str
        Its commands, in order.
    """
    commands_of: Mapping[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    below: dict[str, tuple[str, ...]] = {}
    options: dict[str, tuple[str, ...]] = {}
    for name in names:
        group = getattr(commands_of[name], "commands", {})
        if group:
            below[name] = tuple(group)
        for inner, each in {f"{name} {sub}": each for sub, each in group.items()}.items():
            options[inner] = _options(each)
        options[name] = _options(commands_of[name])
    commands = " ".join(names)
    if shell == "fish":
        return FISH.format(commands=commands, rest="\n".join(_fish(below, options)))
    return (ZSH if shell == "zsh" else BASH).format(
        commands=commands,
        always=ALWAYS,
        options="\n".join(_cases({_pattern(name): completions for name, completions in options.items()}, shell)),
        below="\n".join(_cases(below, shell)),
    )


def _options(command: Any) -> tuple[str, ...]:
    long_options = (option for parameter in command.params for option in parameter.opts if option.startswith("--"))
    return tuple(dict.fromkeys((*long_options, "--help")))


def _pattern(name: str) -> str:
    """Return the shell pattern of a command; a subcommand is two words and comes first."""
    return f'"{name}"' if " " in name else f'"{name} "*'


def _cases(words: Words, shell: str) -> Iterator[str]:
    opening, closing = ("(", ")") if shell == "zsh" else ('"', '"')
    for name, completions in words.items():
        yield f"        {name}) known={opening}{' '.join(completions)}{closing} ;;"


def _fish(below: Words, options: Words) -> Iterator[str]:
    for name, completions in below.items():
        yield f"complete -c shuffledp -n '__shuffledp_next {name}' -f -a '{' '.join(completions)}'"
    for name, completions in options.items():
        for option in completions:
            yield f"complete -c shuffledp -n '__shuffledp_after {name}' -l {option[2:]}"
