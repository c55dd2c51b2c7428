"""A plan as a picture and as one self-contained HTML page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from importlib.resources import files

from markupsafe import Markup

from shuffledp.errors import printable
from shuffledp.planning import Plan
from shuffledp.report import wording
from shuffledp.report.answer import Answer
from shuffledp.report.checklist import checklist
from shuffledp.report.plan import (
    MOST_SHOWN,
    WAY,
    advice,
    error_words,
    headline,
    other_headline,
    way_headings,
    way_numbers,
    ways_title,
)
from shuffledp.report.svg import Axis
from shuffledp.report.templating import page_template
from shuffledp.setting import SEEN_MEANING

WIDTH, LEFT, RIGHT, TOP, BOTTOM, HEIGHT = 460.0, 72.0, 18.0, 22.0, 280.0, 330.0


def curve_picture(plan: Plan) -> str:
    """Draw the predicted error against the certified central epsilon, both logarithmic, with targets and the plan.

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
    """Return the picture as a file of its own: with the style sheet inside, on paper."""
    style = (files("shuffledp.report") / "templates" / "style.css").read_text(encoding="utf-8")
    look = f"<style>{style} svg {{ font-family: sans-serif; }}</style>"
    paper = f'<rect width="{WIDTH:.0f}" height="{HEIGHT:.0f}" fill="var(--card)"/>'
    head, end, rest = curve_picture(plan).partition(">")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}{end}{look}{paper}{rest}\n'


def plan_page(
    plan: Plan, *, command: str, version: str, next_steps: Sequence[str] = (), other_steps: Sequence[str] = ()
) -> str:
    """Write the page.

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
        Commands that carry out the smallest error within the target instead, where that is another plan.

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
    """Round values with logarithms (to base 10) from start to end, at most so many."""
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
