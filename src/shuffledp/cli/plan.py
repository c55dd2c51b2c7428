"""The command `plan`: from budgets, a question and a target guarantee to a mechanism and rounded budgets."""

from __future__ import annotations

import contextlib
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.errors import InvalidInput, shown, whole_number
from shuffledp.shell import options as o
from shuffledp.shell.options import reads_table

if TYPE_CHECKING:
    from shuffledp.cli.population import Population
    from shuffledp.dummies import Dummies
    from shuffledp.planning import Alternative, Bucketing, Guess, Plan
    from shuffledp.questions.frequency import Frequency
    from shuffledp.questions.mean import Mean

PLANNED, MOST_ACCURATE = "epsilon0_planned", "epsilon0_most_accurate"
"""Columns that --rounded-out adds; the second if the smallest error within the target is that of another plan."""
QUESTION = "Question"
MOST_BUDGETS = 12
"""Largest number of budgets listed for developers of the devices' code."""


@dataclass(frozen=True)
class Asked:
    """The question of a plan, as typed: "mean" or "frequency", and the options that belong to one of them.

    For frequencies: `k` or `categories`, and `share`. For means: `low`, `high`, and the guessed `mean` and `deviation`.
    """

    question: str
    k: int | None
    categories: str | None
    low: float | None
    high: float | None
    share: float | None
    mean: float | None
    deviation: float | None

    def parsed(self) -> tuple[Frequency | Mean, Guess]:
        """Return the question, and the guessed distribution of the records.

        Raises
        ------
        InvalidInput
            If the question is unknown, lacks an option, or has an option of the other question.
        """
        from shuffledp.planning import Guess
        from shuffledp.questions.frequency import Frequency
        from shuffledp.questions.mean import Mean

        frequency = {"--k": self.k, "--categories": self.categories, "--share": self.share}
        mean = {"--low": self.low, "--high": self.high, "--guess-mean": self.mean, "--guess-deviation": self.deviation}
        if self.question not in ("mean", "frequency"):
            raise InvalidInput(f"--question must be mean or frequency; got {shown(self.question)}")
        wrong = [
            name for name, value in (mean if self.question == "frequency" else frequency).items() if value is not None
        ]
        if wrong:
            raise InvalidInput(f"{wrong[0]} does not belong to --question {self.question}; leave it out")
        if self.question == "mean":
            if self.low is None or self.high is None:
                raise InvalidInput("--question mean needs --low and --high, the range, known beforehand")
            return Mean(self.low, self.high), Guess(mean=self.mean, deviation=self.deviation)
        return Frequency(range(self._categories())), Guess(share=self.share)

    def dummies(self, text: str | None, delta: float) -> Dummies | None:
        """Return the dummies that --dummies asks for, made for a randomizer of the question.

        That is one bit for a mean and randomized response for a frequency: they benefit most from dummies.

        Parameters
        ----------
        text : str or None
            The option's value, such as ``"0.1"``; None without the option.
        delta : float
            The plan's delta, in (0, 1).
        """
        from shuffledp.cli.population import parse_dummies
        from shuffledp.questions.mean import Mean
        from shuffledp.randomizers import OneBit, RandomizedResponse

        if text is None:
            return None
        question = self.parsed()[0]
        if isinstance(question, Mean):
            return parse_dummies(text, delta, OneBit(question.low, question.high))
        return parse_dummies(text, delta, RandomizedResponse(len(question.categories)))

    def _categories(self) -> int:
        if (self.k is None) == (self.categories is None):
            raise InvalidInput(
                "--question frequency needs either --k K, the number of categories, or --categories A,B,C"
            )
        if self.k is not None:
            from shuffledp.planning.question import MOST_CATEGORIES

            return whole_number(self.k, "--k, the number of categories, must be a whole number", 2, MOST_CATEGORIES)
        from shuffledp.questions.question import read_list

        names = read_list("categories", self.categories)
        if len(set(names)) != len(names):
            raise InvalidInput("--categories names one of them twice; take out the second")
        return len(names)


@dataclass(frozen=True)
class Wanted:
    """The targets and limits of a plan, as typed; `shuffledp.planning.plan` defines and checks each."""

    target_epsilon: float
    delta: float
    target_error: float | None
    seen: str | None
    mechanisms: list[str] | None
    levels: int | None
    correlated: bool
    drop_below: float
    rounds: int
    max_bytes: int | None
    colluding: int
    missing: float
    group_size: int
    dummies: Dummies | None


@dataclass(frozen=True)
class PlanFiles:
    """The output files of a plan, as typed.

    Each field has the name of its option, and None means that the option was left out.
    """

    json: bool
    figure: Path | None
    report: Path | None
    rounded_out: Path | None
    board: Path | None = None


@reads_table
def plan_command(
    question: Annotated[
        str, typer.Option("--question", metavar="WHAT", help="mean or frequency.", rich_help_panel=QUESTION)
    ],
    target_epsilon: o.TargetEpsilon,
    delta: o.Delta,
    target_error: Annotated[
        float | None,
        typer.Option(
            "--target-error",
            parser=o.number,
            metavar="S",
            help="The wanted standard error of the answer: met with the smallest central epsilon that can be found.",
        ),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option("--k", parser=o.typed_whole, metavar="K", help="Number of categories.", rich_help_panel=QUESTION),
    ] = None,
    categories: Annotated[
        str | None,
        typer.Option(
            "--categories", metavar="A,B,C|FILE", help="The categories, instead of --k.", rich_help_panel=QUESTION
        ),
    ] = None,
    low: Annotated[
        float | None,
        typer.Option("--low", parser=o.number, metavar="L", help="Lower end of the range.", rich_help_panel=QUESTION),
    ] = None,
    high: Annotated[
        float | None,
        typer.Option("--high", parser=o.number, metavar="H", help="Upper end of the range.", rich_help_panel=QUESTION),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(
            "--share",
            parser=o.number,
            metavar="F",
            help="Share of the category whose error matters (default: the worst).",
            rich_help_panel=QUESTION,
        ),
    ] = None,
    guess_mean: Annotated[
        float | None,
        typer.Option(
            "--guess-mean",
            parser=o.number,
            metavar="M",
            help="A guess of the mean (default: the worst).",
            rich_help_panel=QUESTION,
        ),
    ] = None,
    guess_deviation: Annotated[
        float | None,
        typer.Option(
            "--guess-deviation",
            parser=o.number,
            metavar="S",
            help="A guess of the values' standard deviation.",
            rich_help_panel=QUESTION,
        ),
    ] = None,
    epsilon0: o.Epsilon0 = None,
    n: o.N = None,
    level: o.Levels = None,
    budgets: o.BudgetsFile = None,
    column: o.Column = None,
    delta_column: o.DeltaColumn = None,
    seen: Annotated[
        str | None,
        typer.Option("--seen", metavar="WHAT", help="reports or levels (default: whichever gives the smaller error)."),
    ] = None,
    mechanism: Annotated[
        list[str] | None,
        typer.Option("--mechanism", metavar="NAME", help="Compare only this one; repeat for several."),
    ] = None,
    levels: Annotated[
        int | None,
        typer.Option("--levels", parser=o.typed_whole, metavar="N", help="At most so many public levels."),
    ] = None,
    correlated: Annotated[
        bool, typer.Option("--correlated", help="Budgets may depend on the records: compare only what is right then.")
    ] = False,
    drop_below: Annotated[
        float,
        typer.Option("--drop-below", parser=o.number, metavar="E", help="Leave out users with smaller budgets."),
    ] = 0.0,
    rounds: o.Rounds = 1,
    colluding: o.Colluding = 0,
    missing: o.Missing = 0.0,
    group_size: o.GroupSize = 1,
    dummies: o.Dummies = None,
    max_bytes: Annotated[
        int | None,
        typer.Option("--max-bytes", parser=o.typed_whole, metavar="B", help="A report may have at most so many bytes."),
    ] = None,
    json: o.Json = False,
    figure: Annotated[
        Path | None,
        typer.Option(
            "--figure",
            parser=o.file_path,
            metavar="FILE.svg",
            help="Draw error against central epsilon.",
            rich_help_panel=o.RESULT,
        ),
    ] = None,
    report: o.Report = None,
    board: o.Board = None,
    rounded_out: Annotated[
        Path | None,
        typer.Option(
            "--rounded-out",
            parser=o.file_path,
            metavar="FILE.csv",
            help=f"Write the table of --budgets with the rounded budgets in a column {PLANNED}.",
            rich_help_panel=o.RESULT,
        ),
    ] = None,
    *,
    table: Any,
) -> None:
    r"""Plan a collection: mechanism, levels, batch size, error and guarantee, before a record is read.

    Example:

    shuffledp plan --level 0.5:9000 --level 2:1000 --question frequency --k 10 \
    --target-epsilon 0.1 --delta 1e-6 --target-error 0.03
    """
    from shuffledp.cli.population import Population

    population = Population(epsilon0, n, tuple(level or ()), budgets, column, delta_column, table)
    question_options = Asked(question, k, categories, low, high, share, guess_mean, guess_deviation)
    files = PlanFiles(json, figure, report, rounded_out, board)
    if rounded_out is not None and budgets is None:
        raise InvalidInput("--rounded-out writes the table of --budgets FILE again; give the file")
    if figure is not None and figure.suffix.lower() != ".svg":
        raise InvalidInput(f"--figure {figure} must end in .svg; name a file such as curve.svg")
    wanted = Wanted(
        target_epsilon, delta, target_error, seen, mechanism, levels, correlated, drop_below, rounds, max_bytes,
        colluding, missing, group_size, question_options.dummies(dummies, delta),
    )  # fmt: skip
    run_plan(population, question_options, wanted, files)


def run_plan(population: Population, question_options: Asked, wanted: Wanted, files: PlanFiles) -> None:
    """Make a plan, write the files, and print the plan.

    Parameters are the options of ``shuffledp plan``, in four groups.
    """
    from shuffledp.planning import plan
    from shuffledp.report.to_json import dumps
    from shuffledp.shell.output import console, reserved, working

    (question, guess), budgets = question_options.parsed(), population.budgets()
    outputs = {"--figure": files.figure, "--report": files.report, "--rounded-out": files.rounded_out,
               "--board": files.board}  # fmt: skip
    with contextlib.ExitStack() as stack:
        streams = {option: stack.enter_context(reserved(path, option)) for option, path in outputs.items()}
        with working("Planning"):
            made = plan(budgets, question, guess=guess, **vars(wanted))
            steps = next_steps(made, made.chosen, made.bucketing, population, files, question_options.categories)
            others = other_steps(made, population, files, question_options.categories)
            _write(streams, made, population, steps, others)
    if files.json:
        from shuffledp.report.plan import plan_to_json

        print(dumps(plan_to_json(made, others) | {"next": steps}))
        return
    from shuffledp.report.plan import other_headline, print_plan

    print_plan(console(), made)
    if made.bucketing.rounds_budgets and population.file is not None and files.rounded_out is None:
        console().print("Add --rounded-out ROUNDED.csv to write the table with the rounded budgets.", highlight=False)
    for line in (*next_lines(made, steps), *on_devices(made, population)):
        console().print(line, soft_wrap=True, highlight=False, markup=False)
    if others:
        console().print(f"Or, instead: {other_headline(made)}", highlight=False, markup=False)
        for step in others:
            console().print(f"  {step}", soft_wrap=True, highlight=False, markup=False)
    for path in outputs.values():
        if path is not None:
            console().print(f"Written: {path.resolve()}", soft_wrap=True, highlight=False)


def _write(
    streams: dict[str, IO[str] | None], made: Plan, population: Population, steps: list[str], others: list[str]
) -> None:
    """Write the requested files."""
    if (stream := streams["--figure"]) is not None:
        from shuffledp.report.plan import curve_file

        stream.write(curve_file(made))
    if (stream := streams["--report"]) is not None:
        from shuffledp import __version__
        from shuffledp.report.plan import plan_page
        from shuffledp.shell.output import COMMAND_LINE

        command = COMMAND_LINE.get()
        page = plan_page(made, command=command, version=__version__, next_steps=steps, other_steps=others)
        stream.write(page)
    if (stream := streams["--board"]) is not None:
        from shuffledp.cli.board import board_of
        from shuffledp.report.plan import headline

        heading = "What is planned, and what it promises"
        stream.write(board_of([made.guarantee], made.guarantee.epsilon.upper, heading, headline(made)[:1]))
    if (stream := streams["--rounded-out"]) is not None:
        _write_rounded(stream, made, population)


def _write_rounded(stream: IO[str], made: Plan, population: Population) -> None:
    """Write the table of budgets with a column of rounded budgets; rows of people who take no part are left out."""
    import polars as pl

    from shuffledp.tables import Table, read_columns

    if population.file is None or population.column is None:
        raise InvalidInput("--rounded-out writes the table of --budgets FILE again; give the file")
    options = population.table
    own = read_columns(population.file, numbers=[population.column], options=options).numbers[population.column]
    table = Table.of(population.file, options).whole()
    rules = {PLANNED: made.bucketing}
    if (accurate := made.most_accurate.bucketing) is not None and accurate is not made.bucketing:
        rules[MOST_ACCURATE] = accurate
    for name in rules:
        if name in table.columns:
            raise InvalidInput(f"{population.file} already has a column {name}; plan from the table without it")
    stays = made.bucketing.takes_part(own)
    rounded = [pl.Series(name, rule.apply(own[stays])) for name, rule in rules.items()]
    stream.write(table.filter(pl.Series(stays)).with_columns(rounded).write_csv())


def next_steps(
    made: Plan, way: Alternative, rule: Bucketing, population: Population, files: PlanFiles, categories: str | None
) -> list[str]:
    """Return the commands that carry out a plan; words in capitals stand for the reader's own names.

    Parameters
    ----------
    made : Plan
        The plan.
    way : Alternative
        Its chosen alternative, or the most accurate one.
    rule : Bucketing
        How budgets are rounded for it.
    population, files
        As typed.
    categories : str or None
        The text after --categories.
    """
    from shuffledp.questions.mean import Mean

    if rule.around.dummies is not None:  # an estimate of a table has no shuffler who could add them
        return []
    question = made.question
    table, budget = "TABLE", "ROUNDED_BUDGETS" if rule.rounds_budgets else "BUDGETS"
    planned = PLANNED if rule is made.bucketing else MOST_ACCURATE
    if rule.budgets.levels == 1:
        budget = _typed(rule.budgets.epsilons[0])
    elif population.file is not None:
        if not rule.rounds_budgets and not rule.dropped:
            table, budget = str(population.file), population.column or budget
        elif files.rounded_out is not None:
            table, budget = str(files.rounded_out), planned
        else:
            table, budget = "ROUNDED.csv", planned
    what = ["frequency", table, "--value", "COLUMN", "--categories", categories or "A,B,C"]
    if isinstance(question.question, Mean):
        low, high = question.question.low, question.question.high
        what = ["mean", table, "--value", "COLUMN", "--low", f"{low:g}", "--high", f"{high:g}"]
    rest = ["--epsilon0", budget, "--seen", way.seen, "--mechanism", way.mechanism]
    if way.weights == "precision":
        rest += ["--weights", "precision"]
    if not rule.budgets.is_pure:
        rest += ["--delta0", _typed(rule.budgets.deltas[0])]
    return [shlex.join(["shuffledp", *what, *rest, "--delta", _typed(made.delta)])]


def next_lines(made: Plan, steps: list[str]) -> list[str]:
    """Return the commands that carry the plan out on one table of records, each in a sentence that says when to run it.

    Parameters
    ----------
    made : Plan
        The plan.
    steps : list of str
        The commands.
    """
    rounds = made.bucketing.around.rounds
    once = f"Next, once in each of {rounds:,} rounds" if rounds > 1 else "Next"
    return [f"{once}: {step}" for step in steps]


def on_devices(made: Plan, population: Population) -> list[str]:
    """Return sentences on how to carry the plan out where everybody's device reports; none for a table of budgets."""
    rule = made.bucketing
    if population.file is not None:
        return []
    budgets = ", ".join(_typed(epsilon) for epsilon in rule.budgets.epsilons[:MOST_BUDGETS].tolist())
    more = ", ..." if rule.budgets.levels > MOST_BUDGETS else ""
    each = "its own of the budgets " if rule.budgets.levels > 1 else "the budget "
    mixes = "mixes the batch" if rule.around.dummies is None else "adds the dummies and mixes the batch"
    return [
        f"{'Next' if rule.around.dummies else 'Or'}, where devices report: each draws one report a round of "
        f"sdp.{rule.family!r} at {each}{budgets}{more}, sends it as bytes (docs/wire.md), and a shuffler whom the "
        f"analyzer does not run {mixes}."
    ]


def other_steps(made: Plan, population: Population, files: PlanFiles, categories: str | None) -> list[str]:
    """Return the commands for the plan with the smallest error within the target; none if that is the plan itself.

    Parameters
    ----------
    made : Plan
        The plan.
    population, files
        The options of the population and of the output files, as typed; the commands repeat them.
    categories : str or None
        The option --categories.
    """
    rule = made.most_accurate.bucketing
    if rule is None or rule is made.bucketing:
        return []
    return next_steps(made, made.most_accurate, rule, population, files, categories)


def _typed(number: float) -> str:
    """Return a number as a text, as people type it, with all of its digits."""
    return repr(float(number)).removesuffix(".0").replace("e-0", "e-")
