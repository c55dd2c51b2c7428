"""`amplify` and `calibrate`: two questions about the same populations in the same situations.

Bodies import late, so that --help is fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shuffledp.cli.estimates_app import NEEDED, signed
from shuffledp.errors import InvalidInput
from shuffledp.shell import options as o
from shuffledp.shell.table_options import TABLE, table_options

if TYPE_CHECKING:
    import typer

    from shuffledp.cli.population import Population, TypedSituation

POPULATION: Mapping[str, tuple[Any, Any]] = {
    "epsilon0": (o.Epsilon0, None),
    "n": (o.N, None),
    "level": (o.Levels, None),
    "budgets": (o.BudgetsFile, None),
    "column": (o.Column, None),
    "delta_column": (o.DeltaColumn, None),
    **TABLE,
}
"""Who takes part: annotation and default of each option."""

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
"""What is asked about them; the names are those of `TypedSituation`."""

AMPLIFY: Mapping[str, tuple[Any, Any]] = {
    "delta": (o.Delta, NEEDED),
    **POPULATION,
    **SITUATION,
    "bounds": (o.Bounds, "certified"),
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
"""Options of `calibrate` that do not belong to --find dummies."""


def register(app: typer.Typer) -> None:
    """Add the commands amplify and calibrate."""
    app.command()(signed(amplify, AMPLIFY))
    app.command()(signed(calibrate, CALIBRATE))


def amplify(**typed: Any) -> None:
    """Tell how private the shuffled output is.

    Example:

    shuffledp amplify --level 0.5:9000 --level 2:1000 --seen reports --randomizer rr --delta 1e-6
    """
    from shuffledp.cli.amplify import Outputs, run_amplify
    from shuffledp.cli.population import parse_bounds

    published = parse_bounds(typed["bounds"])
    people, question = _asked(typed)
    outputs = Outputs(typed["json"], typed["report"], typed["levels_out"], typed["curve"], typed["renyi"],
                      typed["board"])  # fmt: skip
    run_amplify(question.about(people.budgets()), typed["delta"], outputs, published=published)


def calibrate(**typed: Any) -> None:
    """Find the largest local budget, the fewest users, the most rounds, the largest factor on all budgets, or dummies.

    Example:

    shuffledp calibrate --target-epsilon 1 --n 10000 --delta 1e-6
    """
    from shuffledp.cli.amplify import Outputs
    from shuffledp.cli.calibrate import run_calibrate

    if typed["find"] == "dummies":
        _find_dummies(typed)
        return
    people, question = _asked(typed)
    if typed["promise"] or typed["questions"] != 1:
        raise InvalidInput("--promise and --questions belong to --find dummies; add it, or leave them out")
    if typed["target_epsilon"] is None:
        raise InvalidInput("--target-epsilon E is needed: the central epsilon that must hold")
    outputs = Outputs(typed["json"], typed["report"])
    run_calibrate(typed["target_epsilon"], typed["delta"], typed["find"], people, question, outputs)


def _asked(typed: Mapping[str, Any]) -> tuple[Population, TypedSituation]:
    """Return the population and the situation as typed."""
    from shuffledp.cli.population import Population, TypedSituation

    file, column, delta_column = (typed[name] for name in ("budgets", "column", "delta_column"))
    people = Population(
        typed["epsilon0"], typed["n"], tuple(typed["level"] or ()), file, column, delta_column, table_options(typed)
    )
    return people, TypedSituation(delta=typed["delta"], **{name: typed[name] for name in SITUATION})


def _find_dummies(typed: Mapping[str, Any]) -> None:
    """Dummies protect everybody, whoever takes part: options about people are refused."""
    from shuffledp.cli.calibrate_dummies import DummiesWish, run_calibrate_dummies

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
