"""Renderers of a plan: the JSON object of docs/plan.md, tables for a terminal, a picture, and a self-contained page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from importlib.resources import files
from typing import Any

from markupsafe import Markup
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from shuffledp.errors import printable
from shuffledp.planning import MOST_FACTOR, Alternative, Bucketing, Plan
from shuffledp.report import wording
from shuffledp.report.answer import Answer
from shuffledp.report.checklist import checklist
from shuffledp.report.page import Axis, page_template
from shuffledp.report.to_json import budgets_to_json, guarantee_to_json
from shuffledp.report.wording import (
    DIGITS,
    SAYS_NOTHING,
    count,
    counted,
    covers,
    distance,
    down,
    enumerated,
    near,
    over_rounds,
    plus_minus,
    probability,
    situation,
    unshuffled,
    up,
)
from shuffledp.setting import SEEN_MEANING

MOST_LEVELS = 1000
"""Largest number of levels listed in JSON."""
MOST_SHOWN = 12
"""Largest number of levels listed for people."""
WAY = {"reports": "levels withheld", "levels": "levels shown", "sum": "only the sum released"}


def plan_to_json(plan: Plan, other_steps: Sequence[str] = ()) -> dict[str, Any]:
    """Return the object that `shuffledp plan --json` prints.

    Parameters
    ----------
    plan : Plan
        The plan.
    other_steps : sequence of str
        Commands for the plan with the smallest error within the target, where that is another plan.
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
        "report_bytes": rule.report_bytes,
        "records_assumed": {"mean": rule.prediction.mean, "mean_square": rule.prediction.square},
        "rounding": _rounding(rule),
        "population": budgets_to_json(rule.budgets, MOST_LEVELS),
        "batch": {"n": plan.batch.n} | budgets_to_json(plan.batch, MOST_LEVELS),
        "remedies": {"users": plan.remedies.users, "budget_factor": plan.remedies.budget_factor},
        "most_accurate": _most_accurate(plan, other_steps),
        "alternatives": [_alternative(row) for row in plan.alternatives],
        "curve": [
            {"factor": point.factor, "epsilon": point.epsilon, "standard_error": point.standard_error}
            for point in plan.curve
        ],
        "guarantee": guarantee_to_json(plan.guarantee),
        "unshuffled": dict(zip(("a_round", "in_all"), plan.guarantee.setting.unshuffled(), strict=True)),
    }


def _rounding(rule: Bucketing) -> dict[str, Any]:
    return {
        "levels": None if rule.levels is None else rule.levels.tolist(),
        "cap": None if rule.cap == math.inf else rule.cap,
        "drop_below": rule.drop_below,
        "dropped": rule.dropped,
    }


def _most_accurate(plan: Plan, steps: Sequence[str]) -> dict[str, Any] | None:
    """Return the plan with the smallest error within the target as an object; None if it is the plan itself."""
    row, rule = plan.most_accurate, plan.most_accurate.bucketing
    if rule is None or rule is plan.bucketing:
        return None
    return {
        "mechanism": row.mechanism,
        "randomizer": rule.setting.randomizer_name,
        "seen": row.seen,
        "weights": row.weights,
        "needs_independence": row.needs_independence,
        "standard_error": row.error,
        "epsilon": rule.certified_epsilon,
        "report_bytes": rule.report_bytes,
        "rounding": _rounding(rule),
        "next": list(steps),
    }


def _planned(rule: Bucketing | None) -> dict[str, Any] | None:
    if rule is None:
        return None
    return {
        "standard_error": rule.prediction.standard_error,
        "epsilon": rule.certified_epsilon,
        "levels": rule.budgets.levels,
    }


def _alternative(row: Alternative) -> dict[str, Any]:
    given = None if row.given is None else {"standard_error": row.given.standard_error, "epsilon": row.given_epsilon}
    return {
        "mechanism": row.mechanism,
        "seen": row.seen,
        "weights": row.weights,
        "needs_independence": row.needs_independence,
        "as_given": given,
        "planned": _planned(row.bucketing),
        "least": _planned(row.least),
        "report_bytes": row.report_bytes,
        "refused": row.refused,
    }


def print_plan(console: Console, plan: Plan) -> None:
    """Print a plan: what to do, what it promises, what limits it, and the alternatives."""
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
    """Return two or three sentences on what to do and what it promises."""
    rule, chosen = plan.bucketing, plan.chosen
    error = f"standard error {error_words(plan, plan.standard_error)}"
    wanted = "" if plan.target_error is None else f", wanted {error_words(plan, plan.target_error)}: " + _verdict(plan)
    sentences = [
        f"Use {rule.setting.randomizer_name}, {WAY[chosen.seen]}{how_weighted(chosen)}: {error}{wanted}. "
        f"A report has {counted(rule.report_bytes, 'byte')}.",
        f"Central epsilon at most {up(plan.guarantee.epsilon.upper)} at delta = {probability(plan.delta)}"
        f"{over_rounds(plan.guarantee.setting)}, wanted {near(plan.target_epsilon)}; a batch may be released from "
        f"{counted(plan.batch.n, 'user')} on"
        + (f", mixed as the {count(plan.budgets.n)} are." if plan.batch.levels > 1 else "."),
    ]
    if plus_minus(1.96 * plan.standard_error, plan.question.width, shares=_of_shares(plan)) == SAYS_NOTHING:
        sentences.append(
            f"Such an answer {SAYS_NOTHING}: its 95 % interval is at least as wide as all that is possible."
        )
    if covered := covers(replace(plan.guarantee.setting, rounds=1)):
        sentences.append(f"It holds {enumerated(covered)}.")
    sentences.append(unshuffled(plan.guarantee.setting))
    if plan.chosen.least is not None:
        sentences.append("This is the smallest certified epsilon that was found for the wanted error.")
    return sentences


def other_headline(plan: Plan) -> str | None:
    """Return a sentence on the smallest error within the central target; None if it is the plan's."""
    row, rule = plan.most_accurate, plan.most_accurate.bucketing
    if rule is None or rule is plan.bucketing:
        return None
    return (
        f"The smallest error within the central target: {rule.setting.randomizer_name}, "
        f"{WAY[row.seen]}{how_weighted(row)}, standard error {error_words(plan, row.error)}, central epsilon at most "
        f"{up(rule.certified_epsilon)} at delta = {probability(plan.delta)}. " + " ".join(rounding_sentences(rule))
    )


def error_words(plan: Plan, error: float) -> str:
    """Return a standard error of the plan with its unit: points for shares, the question's unit for numbers."""
    return distance(error, shares=_of_shares(plan), digits=DIGITS)


def _of_shares(plan: Plan) -> bool:
    return plan.question.kind in ("frequency", "histogram")


def _verdict(plan: Plan) -> str:
    return "met" if plan.met else "NOT met"


def how_weighted(row: Alternative) -> str:
    """Return words for the way in which visible levels are combined."""
    words = {"population": ", everybody counting the same", "precision": ", weighted for least noise"}
    return "" if row.weights is None else words[row.weights]


def rounding_sentences(rule: Bucketing) -> list[str]:
    """Return sentences on how everybody's budget is rounded."""
    sentences: list[str] = []
    if rule.levels is not None:
        listed = ", ".join(down(float(level), 6) for level in rule.levels[:MOST_SHOWN])
        sentences.append(f"Round every budget down to the largest of these public levels: {listed}.")
    if rule.cap < math.inf:
        sentences.append(f"Lower every budget above {down(rule.cap, 6)} to that.")
    if not sentences:
        sentences.append("Everybody uses the whole of their budget.")
    if rule.dropped:
        sentences.append(f"{count(rule.dropped)} users with budgets below {near(rule.drop_below)} take no part.")
    return sentences


def advice(plan: Plan) -> list[str]:
    """Return sentences on how budgets are rounded, what limits the plan, and what would improve it."""
    sentences = rounding_sentences(plan.bucketing)
    remedies, name = plan.remedies, error_words(plan, plan.target_error or 0.0)
    if plan.limit == "privacy":
        sentences.append(
            f"What is in the way of a standard error of {name} is the central epsilon of {near(plan.target_epsilon)}."
        )
    if plan.limit == "budgets":
        sentences.append(
            f"A standard error of {name} is out of reach for these users and budgets, even without a central target."
        )
    if plan.limit != "nothing":
        sentences.append(
            f"It would be met by {count(remedies.users)} users mixed as these are."
            if remedies.users is not None
            else "No number of users up to 1e12 would meet it."
        )
        sentences.append(
            f"It would also be met by budgets {up(remedies.budget_factor, 3)} times as large."
            if remedies.budget_factor is not None
            else f"Larger budgets alone, up to {count(MOST_FACTOR)} times these, would not meet it: the central target "
            "would take them away again."
        )
    if plan.chosen.needs_independence:
        sentences.append(
            "The estimate is right only if budgets do not depend on the records; --correlated compares the ways that "
            "do not need this."
        )
    return sentences


def ways_title(plan: Plan) -> str:
    """Return the title of the list of alternatives: its order, and the delta of its epsilons."""
    first = "smallest error within the target" if plan.chosen.least is None else "smallest epsilon with the error"
    over = over_rounds(plan.guarantee.setting)
    return f"Ways to ask, the {first} first (every epsilon at delta = {probability(plan.delta)}{over})"


def way_headings(plan: Plan) -> list[str]:
    """Return the headings of the columns of `way_numbers`."""
    least = [] if plan.target_error is None else ["least epsilon with the error"]
    unit = " (points)" if _of_shares(plan) else ""
    return ["bytes", f"error{unit}, all budgets", "its epsilon", f"error{unit} in target", "its epsilon", *least]


def _alternatives_table(plan: Plan) -> Table:
    table = Table(title=ways_title(plan), title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    several = plan.budgets.levels > 1
    for heading in ("mechanism", *(["levels"] if several else [])):
        table.add_column(heading, no_wrap=True)  # words to type again
    for heading in way_headings(plan):
        table.add_column(heading, justify="right")
    for row in plan.alternatives:
        levels = WAY[row.seen].removeprefix("levels ") + (f", {row.weights}" if row.weights else "")
        table.add_row(row.mechanism, *([levels] if several else []), *way_numbers(row, plan))
    return table


def reasons(plan: Plan) -> list[tuple[str, str]]:
    """Return the reasons why some alternatives were not planned, as pairs (mechanisms with their view, reason)."""
    ways: dict[str, dict[str, None]] = {}
    for row in plan.alternatives:
        if row.refused is not None:
            name = row.mechanism + (f" {WAY[row.seen]}{how_weighted(row)}" if plan.budgets.levels > 1 else "")
            ways.setdefault(row.refused, {})[name] = None
    return [("; ".join(names), reason) for reason, names in ways.items()]


def way_numbers(row: Alternative, plan: Plan) -> list[str]:
    """Return the cells of an alternative.

    Bytes of a report; error and epsilon with everybody's whole budget; the same within the target; smallest epsilon
    that reaches the target error.
    """
    empty = [] if plan.target_error is None else ["-" if row.least is None else up(row.least_epsilon, 3)]
    if row.given is None:
        return ["", "-", "", "-", "", *empty]
    scale = 100.0 if _of_shares(plan) else 1.0
    given = [count(row.report_bytes or 0), near(scale * row.given.standard_error, 3), up(row.given_epsilon or 0.0, 3)]
    if row.bucketing is None:
        return [*given, "-", "", *empty]
    return [*given, near(scale * row.error, 3), up(row.bucketing.certified_epsilon, 3), *empty]


def _levels_table(plan: Plan) -> Table:
    over = over_rounds(plan.guarantee.setting)
    table = Table(title=f"What is certified at delta = {probability(plan.delta)}{over}", title_justify="left")
    for heading in ("local budget", "users", "epsilon at most", "at least"):
        table.add_column(heading, justify="right")
    levels = plan.guarantee.levels
    rows = levels if len(levels) <= MOST_SHOWN else [*levels[: MOST_SHOWN - 1], levels[-1]]
    for level in rows:
        table.add_row(down(level.epsilon0, 6), count(level.count), up(level.epsilon.upper), down(level.epsilon.lower))
    if plan.guarantee.levels_total > len(rows):
        table.caption = f"{len(rows)} of {count(plan.guarantee.levels_total)} levels"
    return table


# A plan as a picture and as one self-contained HTML page.

WIDTH, LEFT, RIGHT, TOP, BOTTOM, HEIGHT = 460.0, 72.0, 18.0, 22.0, 280.0, 330.0


def curve_picture(plan: Plan) -> str:
    """Return a picture of the predicted error against the certified central epsilon, with targets and the plan.

    Parameters
    ----------
    plan : Plan
        Its curve has at least one point with positive, finite numbers: the plan's own.

    Returns
    -------
    str
        An SVG element, coloured by the page's style sheet.
    """
    points = [
        (p.epsilon, p.standard_error) for p in plan.curve if 0.0 < p.epsilon < math.inf and p.standard_error > 0.0
    ]
    at = (plan.guarantee.epsilon.upper, plan.standard_error)
    xs = [x for x, _ in points] + [plan.target_epsilon] + ([at[0]] if at[0] > 0.0 else [])
    ys = [y for _, y in points] + [at[1]] + ([] if plan.target_error is None else [plan.target_error])
    x_axis = Axis(math.log10(min(xs)) - 0.05, math.log10(max(xs)) + 0.05, LEFT, WIDTH - RIGHT)
    y_axis = Axis(math.log10(max(ys)) + 0.05, math.log10(min(ys)) - 0.05, TOP, BOTTOM)
    parts = _grid(x_axis, y_axis)
    x = x_axis.at(math.log10(plan.target_epsilon))
    parts.append(_line(x, TOP, x, BOTTOM, "guide") + _text(x - 4, TOP + 10, "target", "end"))
    if plan.target_error is not None:
        y = y_axis.at(math.log10(plan.target_error))
        parts.append(_line(LEFT, y, WIDTH - RIGHT, y, "guide") + _text(WIDTH - RIGHT, y - 5, "wanted error", "end"))
    path = "L".join(f"{x_axis.at(math.log10(e)):.1f} {y_axis.at(math.log10(s)):.1f}" for e, s in sorted(points))
    if path:
        parts.append(f'<path class="curve certified" d="M{path}"/>')
    if at[0] > 0.0:
        cx, cy = x_axis.at(math.log10(at[0])), y_axis.at(math.log10(at[1]))
        parts.append(f'<circle class="point" cx="{cx:.1f}" cy="{cy:.1f}" r="5.5"/>')
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "certified central epsilon", "middle"))
    parts.append(_text(LEFT, 12, "predicted standard error", "start"))
    label = f"Standard error against central epsilon; the plan has {at[1]:.4g} at {at[0]:.4g} and delta {plan.delta:g}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img" '
        f'aria-label="{escape(label)}">' + "".join(parts) + "</svg>"
    )


def curve_file(plan: Plan) -> str:
    """Return the picture as a standalone SVG file that includes the style sheet and a background."""
    style = (files("shuffledp.report") / "templates" / "style.css").read_text(encoding="utf-8")
    look = f"<style>{style} svg {{ font-family: sans-serif; }}</style>"
    paper = f'<rect width="{WIDTH:.0f}" height="{HEIGHT:.0f}" fill="var(--card)"/>'
    head, end, rest = curve_picture(plan).partition(">")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}{end}{look}{paper}{rest}\n'


def plan_page(
    plan: Plan, *, command: str, version: str, next_steps: Sequence[str] = (), other_steps: Sequence[str] = ()
) -> str:
    """Return the page of a plan.

    Parameters
    ----------
    plan : Plan
        The plan.
    command : str
        The command that repeats it.
    version : str
        Version of shuffledp.
    next_steps : sequence of str
        Commands that carry it out.
    other_steps : sequence of str
        Commands for the plan with the smallest error within the target, where that is another plan.

    Returns
    -------
    str
        An HTML document that loads nothing from elsewhere.
    """
    setting = plan.guarantee.setting
    page = page_template("plan.html").render(
        heading="A plan for a private " + plan.question.kind,
        plan=plan,
        headline=headline(plan),
        errors=[error_words(plan, error) for error in (plan.standard_error, plan.target_error or 0.0)],
        advice=advice(plan),
        next_steps=list(next_steps),
        other_headline=other_headline(plan),
        other_steps=list(other_steps),
        picture=Markup(curve_picture(plan)),
        ways_title=ways_title(plan),
        way_headings=way_headings(plan),
        ways=[(row, WAY[row.seen], way_numbers(row, plan)) for row in plan.alternatives],
        levels=wording.some_levels(plan.guarantee, MOST_SHOWN),
        batch=list(zip(plan.batch.epsilons.tolist(), plan.batch.counts.tolist(), strict=True))[:MOST_SHOWN],
        simulation=False,
        drew_noise=False,
        several=False,
        setting=setting,
        seen_meaning=SEEN_MEANING[setting.seen],
        pure=setting.budgets.is_pure,
        checklist=checklist([Answer(plan.question.kind, plan.guarantee)]),
        command=command,
        version=version,
    )
    return printable(page, "\n")  # no name turns the direction of writing of what follows it


def _grid(x_axis: Axis, y_axis: Axis) -> list[str]:
    parts: list[str] = []
    for tick in _ticks(x_axis.start, x_axis.end, 6):
        x = x_axis.at(math.log10(tick))
        parts.append(_line(x, TOP, x, BOTTOM, "grid") + _text(x, BOTTOM + 18, f"{tick:g}", "middle"))
    for tick in _ticks(y_axis.end, y_axis.start, 7):
        y = y_axis.at(math.log10(tick))
        parts.append(_line(LEFT, y, WIDTH - RIGHT, y, "grid") + _text(LEFT - 8, y + 4, f"{tick:g}", "end"))
    parts.append(_line(LEFT, BOTTOM, WIDTH - RIGHT, BOTTOM, "axis") + _line(LEFT, TOP, LEFT, BOTTOM, "axis"))
    return parts


def _ticks(start: float, end: float, most: int) -> list[float]:
    """Return at most ``most`` round values whose base-10 logarithms lie between start and end."""
    powers = range(math.floor(start), math.ceil(end) + 1)
    inside: list[float] = []
    for steps in ((1, 2, 3, 4, 5, 6, 7, 8, 9), (1, 2, 5), (1, 3), (1,)):
        inside = [s * 10.0**p for p in powers for s in steps if start <= math.log10(s * 10.0**p) <= end]
        if len(inside) <= most:
            return inside
    return inside[:: math.ceil(len(inside) / most)]


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line class="{style}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
