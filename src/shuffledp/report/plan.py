"""A plan as the JSON object of docs/plan.md, and as tables for a terminal."""

from __future__ import annotations

import math
from typing import Any

from rich.console import Console
from rich.table import Table

from shuffledp.planning import Alternative, Plan
from shuffledp.report.to_json import budgets_to_json, guarantee_to_json
from shuffledp.report.wording import count, counted, down, near, probability, situation, up

MOST_LEVELS = 1000
"""Levels listed in JSON."""
MOST_SHOWN = 12
"""Levels listed for people."""
WAY = {"reports": "levels withheld", "levels": "levels shown", "sum": "only the sum released"}


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """Build the object `shuffledp plan --json` prints.

    Parameters
    ----------
    plan : Plan
        The plan.
    """
    rule = plan.bucketing
    return {
        "question": {"kind": plan.question.kind, "width": plan.question.width},
        "n": plan.budgets.n,
        "target": {"epsilon": plan.target_epsilon, "delta": plan.delta, "standard_error": plan.target_error},
        "met": plan.met,
        "limited_by": plan.limit,
        "mechanism": plan.chosen.mechanism,
        "randomizer": rule.setting.randomizer_name,
        "seen": plan.chosen.seen,
        "weights": plan.chosen.weights,
        "needs_independence": plan.chosen.needs_independence,
        "standard_error": plan.standard_error,
        "records_assumed": {"mean": rule.prediction.mean, "mean_square": rule.prediction.square},
        "rounding": {
            "levels": None if rule.levels is None else rule.levels.tolist(),
            "cap": None if rule.cap == math.inf else rule.cap,
            "drop_below": rule.drop_below,
            "dropped": rule.dropped,
        },
        "population": budgets_to_json(rule.budgets, MOST_LEVELS),
        "batch": {"n": plan.batch.n} | budgets_to_json(plan.batch, MOST_LEVELS),
        "remedies": {
            "users": plan.remedies.users,
            "budget_factor": plan.remedies.budget_factor,
            "spare_factor": plan.remedies.spare_factor,
            "spare_epsilon": plan.remedies.spare_epsilon,
        },
        "alternatives": [_alternative(row) for row in plan.alternatives],
        "curve": [
            {"factor": point.factor, "epsilon": point.epsilon, "standard_error": point.standard_error}
            for point in plan.curve
        ],
        "guarantee": guarantee_to_json(plan.guarantee),
    }


def _alternative(row: Alternative) -> dict[str, Any]:
    planned = None
    if row.bucketing is not None:
        planned = {
            "standard_error": row.error,
            "epsilon": row.bucketing.certified_epsilon,
            "levels": row.bucketing.budgets.levels,
        }
    given = None if row.given is None else {"standard_error": row.given.standard_error, "epsilon": row.given_epsilon}
    return {
        "mechanism": row.mechanism,
        "seen": row.seen,
        "weights": row.weights,
        "needs_independence": row.needs_independence,
        "as_given": given,
        "planned": planned,
        "refused": row.refused,
    }


def print_plan(console: Console, plan: Plan) -> None:
    """Print a plan: what to do, what it promises, what limits it, and what else there was."""
    for sentence in headline(plan):
        console.print(sentence, highlight=False)
    console.print(_alternatives_table(plan))
    for names, reason in reasons(plan):
        console.print(f"{names}: {reason}", style="dim", highlight=False)
    console.print(_levels_table(plan))
    for sentence in advice(plan):
        console.print(sentence, highlight=False)
    console.print(situation(plan.guarantee.setting) + f", seen = {plan.chosen.seen}.", style="dim", highlight=False)


def headline(plan: Plan) -> list[str]:
    """Say what to do and what it promises, in two sentences."""
    rule, chosen = plan.bucketing, plan.chosen
    error = f"standard error {near(plan.standard_error)}"
    wanted = "" if plan.target_error is None else f", wanted {near(plan.target_error)}: " + _verdict(plan)
    return [
        f"Use {rule.setting.randomizer_name}, {WAY[chosen.seen]}{how_weighted(chosen)}: {error}{wanted}.",
        f"Central epsilon at most {up(plan.guarantee.epsilon.upper)} at delta = {probability(plan.delta)}, wanted "
        f"{near(plan.target_epsilon)}; a batch may be released from {counted(plan.batch.n, 'user')} on"
        + (f", mixed as the {count(plan.budgets.n)} are." if plan.batch.levels > 1 else "."),
    ]


def _verdict(plan: Plan) -> str:
    return "met" if plan.met else "NOT met"


def how_weighted(row: Alternative) -> str:
    """How visible levels are combined, in words."""
    words = {"population": ", everybody counting the same", "precision": ", weighted for least noise"}
    return "" if row.weights is None else words[row.weights]


def rounding_sentences(plan: Plan) -> list[str]:
    """Say what happens to everybody's budget."""
    rule = plan.bucketing
    said: list[str] = []
    if rule.levels is not None:
        listed = ", ".join(down(float(level), 6) for level in rule.levels[:MOST_SHOWN])
        said.append(f"Round every budget down to the largest of these public levels: {listed}.")
    if rule.cap < math.inf:
        said.append(f"Lower every budget above {down(rule.cap, 6)} to that.")
    if not said:
        said.append("Everybody uses the whole of their budget.")
    if rule.dropped:
        said.append(f"{count(rule.dropped)} users with budgets below {near(rule.drop_below)} take no part.")
    return said


def advice(plan: Plan) -> list[str]:
    """Say how budgets are rounded, what limits the plan, and what would help."""
    said = rounding_sentences(plan)
    remedies, name = plan.remedies, near(plan.target_error or 0.0)
    if plan.limit == "privacy":
        said.append(
            f"What is in the way of a standard error of {name} is the central epsilon of {near(plan.target_epsilon)}."
        )
    if plan.limit == "budgets":
        said.append(
            f"A standard error of {name} is out of reach for these users and budgets, even without a central target."
        )
    if plan.limit != "nothing":
        said.append(
            f"It would be met by {count(remedies.users)} users mixed as these are."
            if remedies.users is not None
            else "No number of users up to 1e12 would meet it."
        )
        said.append(
            f"It would also be met by budgets {up(remedies.budget_factor, 3)} times as large."
            if remedies.budget_factor is not None
            else "Larger budgets alone would not meet it: the central target would take them away again."
        )
    if remedies.spare_factor is not None and remedies.spare_epsilon is not None and remedies.spare_factor < 0.999:
        said.append(
            f"There is room: with budgets {up(remedies.spare_factor, 3)} times as large the error is still met, and "
            f"the central epsilon is at most {up(remedies.spare_epsilon)}."
        )
    if plan.chosen.needs_independence:
        said.append(
            "The estimate is right only if budgets do not depend on the records; --correlated compares the ways that "
            "do not need this."
        )
    return said


def _alternatives_table(plan: Plan) -> Table:
    table = Table(title="Ways to ask, the smallest error within the target first", title_justify="left")
    for heading in ("mechanism", "levels", "weights"):
        table.add_column(heading, no_wrap=True)  # words to type again
    for heading in ("error, all budgets", "its epsilon", "error in target", "its epsilon"):
        table.add_column(heading, justify="right")
    for row in plan.alternatives:
        table.add_row(row.mechanism, WAY[row.seen].removeprefix("levels "), row.weights or "", *way_numbers(row))
    return table


def reasons(plan: Plan) -> list[tuple[str, str]]:
    """Say why some ways were not planned: their mechanisms, with the levels shown or withheld, and the reason."""
    ways: dict[str, dict[str, None]] = {}
    for row in plan.alternatives:
        if row.refused is not None:
            name = row.mechanism + (f" {WAY[row.seen]}{how_weighted(row)}" if plan.budgets.levels > 1 else "")
            ways.setdefault(row.refused, {})[name] = None
    return [("; ".join(names), reason) for reason, names in ways.items()]


def way_numbers(row: Alternative) -> tuple[str, str, str, str]:
    """Error and epsilon with all of everybody's budget, and within the target."""
    if row.given is None:
        return "refused", "", "", ""
    error, epsilon = near(row.given.standard_error), up(row.given_epsilon or 0.0)
    if row.bucketing is None:
        return error, epsilon, "-", ""
    return error, epsilon, near(row.error), up(row.bucketing.certified_epsilon)


def _levels_table(plan: Plan) -> Table:
    table = Table(title="What is certified", title_justify="left")
    for heading in ("local budget", "users", "epsilon at most", "at least"):
        table.add_column(heading, justify="right")
    levels = plan.guarantee.levels
    shown = levels if len(levels) <= MOST_SHOWN else [*levels[: MOST_SHOWN - 1], levels[-1]]
    for level in shown:
        table.add_row(down(level.epsilon0, 6), count(level.count), up(level.epsilon.upper), down(level.epsilon.lower))
    if plan.guarantee.levels_total > len(shown):
        table.caption = f"{len(shown)} of {count(plan.guarantee.levels_total)} levels"
    return table
