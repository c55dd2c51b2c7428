"""The plan of a collection: table and sentences for the terminal, one JSON object, and a picture."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from typing import Any

from rich.console import Console
from rich.markup import escape as plain
from rich.table import Table

from shuffledp.collection.planner import OFFERED, Choice, CollectionPlan, curve_of, in_words
from shuffledp.collection.promised import in_100
from shuffledp.report.svg import Axis
from shuffledp.report.wording import count, counted, near

WIDTH, LEFT, RIGHT, TOP, BOTTOM, HEIGHT = 460.0, 60.0, 18.0, 26.0, 280.0, 330.0
_POINTS = 9
_NAMES = {epsilon0: name for name, epsilon0 in OFFERED}


def plan_object(plan: CollectionPlan) -> dict[str, Any]:
    """Return the plan as JSON knows it; half-widths and shifts are shares of the range.

    Parameters
    ----------
    plan : CollectionPlan
        The plan.
    """
    return {
        "questions": [
            {
                "text": choice.question.text,
                "family": choice.question.family.name,
                "dummies": choice.dummies.count,
                "law": choice.dummies.law,
                "chosen": choice.chosen,
                "limit": choice.limit,
                "levels": [
                    {
                        "epsilon0": row.epsilon0,
                        "true_in_100": 100.0 * float(row.true_share),
                        "half_width": row.half_width,
                        "junk_shift": row.junk_shift,
                    }
                    for row in choice.rows
                ],
                "cannot": choice.cannot or None,
                "columns": columns,
            }
            for choice, columns in Counter(plan.choices).items()
        ],
        "people": plan.request.people,
        "shufflers": plan.request.shufflers,
        "promise": plan.request.promise,
        "delta": plan.request.delta,
        "wanted": plan.request.wanted,
        "sampling": plan.sampling,
        "chosen": plan.chosen,
    }


def print_collection_plan(console: Console, plan: CollectionPlan) -> None:
    """Print a table a question, and what cannot be had.

    Parameters
    ----------
    console : Console
        Where to.
    plan : CollectionPlan
        The plan.
    """
    for choice in dict.fromkeys(plan.choices):  # the options of one question are planned alike
        console.print(_table(plan, choice))
        for sentence in _sentences(plan, choice):
            console.print(plain(sentence), highlight=False)


def _table(plan: CollectionPlan, choice: Choice) -> Table:
    asked = plan.request
    kind = "a number" if not choice.question.is_share else counted(choice.question.family.records, "answer")
    kind = "each option checked or not" if choice.question.several else kind
    shufflers = counted(asked.shufflers, "shuffler")
    title = f"{choice.question.text}: {kind}, {count(asked.people)} people, promise {near(asked.promise)}, {shufflers}"
    table = Table(title=plain(title), title_justify="left")
    headings = ("epsilon0", "true in 100", "± points" if choice.question.is_share else "±", "junk 5 % shifts")
    for heading in (*headings, "dummies a shuffler"):
        table.add_column(heading, justify="left" if heading == "epsilon0" else "right")
    for row in choice.rows:
        if row.epsilon0 not in (*_NAMES, plan.chosen) and not asked.budgets:
            continue
        name = f"{row.epsilon0:g} {_NAMES.get(row.epsilon0, '')}".strip()
        shown = [in_words(choice.question, value).split()[1] for value in (row.half_width, row.junk_shift)]
        mark = " <- chosen" if row.epsilon0 == plan.chosen else ""
        table.add_row(name + mark, in_100(row.true_share), *shown, count(choice.dummies.count))
    return table


def _sentences(plan: CollectionPlan, choice: Choice) -> Iterator[str]:
    limit = in_words(choice.question, choice.limit)
    stand = in_words(choice.question, plan.sampling)
    yield f"Limit, whatever the local budget: {limit}."
    if choice.question.is_share:
        wanted = plan.request.wanted
        alone = ": more than is wanted, even without privacy" if wanted is not None and wanted < plan.sampling else ""
        yield f"If the {count(plan.request.people)} stand for more people, {stand} comes on top{alone}."
    if max(row.half_width for row in choice.rows if row.epsilon0 <= plan.chosen) >= 0.5:
        yield "A half-width of half the range says nothing yet."
    if choice.cannot:
        yield choice.cannot


def plan_picture(plan: CollectionPlan) -> str:
    """Draw each question's half-width at the chosen budget against the number of people, both logarithmic.

    Parameters
    ----------
    plan : CollectionPlan
        The plan.

    Returns
    -------
    str
        An SVG file.
    """
    n = plan.request.people
    people = [max(1, round(n * 10.0 ** (step / 4.0 - 1.0))) for step in range(_POINTS)]
    first: dict[str, int] = {}
    for place, choice in enumerate(plan.choices):
        first.setdefault(choice.question.family.name, place)  # questions of one family have one line
    curves = {name: [100.0 * width for width in curve_of(plan, place, people)] for name, place in first.items()}
    values = [value for curve in curves.values() for value in curve]
    x_axis = Axis(math.log10(people[0]), math.log10(max(people[-1], people[0] + 1)), LEFT, WIDTH - RIGHT)
    low, high = math.log10(max(min(values), 1e-3)) - 0.05, math.log10(max(values)) + 0.05
    y_axis = Axis(high, low, TOP, BOTTOM)
    parts = [f'<line class="axis" x1="{LEFT}" y1="{BOTTOM}" x2="{WIDTH - RIGHT}" y2="{BOTTOM}"/>']
    for value in (n // 10, n, 10 * n):
        if value >= people[0]:
            parts.append(_text(x_axis.at(math.log10(value)), BOTTOM + 18, f"{value:,}", "middle"))
    for value in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0):
        if low <= math.log10(value) <= high:
            y = y_axis.at(math.log10(value))
            parts.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
            parts.append(_text(LEFT - 8, y + 4, f"{value:g}", "end"))
    for name, curve in curves.items():
        points = [
            (x_axis.at(math.log10(m)), y_axis.at(math.log10(max(w, 1e-3)))) for m, w in zip(people, curve, strict=True)
        ]
        parts.append(f'<path class="curve certified" d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in points)}"/>')
        parts.append(_text(points[0][0] + 6, points[0][1] - 6, name, "start"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "people who answer", "middle"))
    parts.append(_text(LEFT, 14, "half-width, points or % of the range", "start"))
    label = f"Half-width against people at promise {plan.request.promise:g}; planned: {n:,} people"
    style = (files("shuffledp.report") / "templates" / "style.css").read_text(encoding="utf-8")
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} '
        f'{HEIGHT:.0f}" role="img" aria-label="{escape(label)}"><style>{style} svg {{ font-family: sans-serif; }}'
        f'</style><rect width="{WIDTH:.0f}" height="{HEIGHT:.0f}" fill="var(--card)"/>' + "".join(parts) + "</svg>\n"
    )


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
