"""One self-contained HTML page: question, estimate, guarantee, assumptions, and how to repeat it; and its pictures.

Pictures are inline SVG, coloured by the page's own style sheet (so they follow light and dark). All share one
coordinate system: x to the right, y down, units of about one CSS pixel on a telephone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from shuffledp.accounting import ProfileCurve
from shuffledp.errors import printable
from shuffledp.in_words import ENGLISH, Translation, conditions
from shuffledp.questions.question import CONFIDENCE, AnswerLine, Curve, View
from shuffledp.report import wording
from shuffledp.report.answer import (
    INTERVAL,
    Answer,
    amounts_table,
    cells,
    headings,
    notes,
    people,
    view_of,
)
from shuffledp.report.checklist import checklist
from shuffledp.report.wording import EvidenceRow, Section, evidence_sections
from shuffledp.setting import SEEN_MEANING, Guarantee

if TYPE_CHECKING:
    from jinja2 import Environment, Template

WIDTH = 420.0
LEFT, RIGHT = 54.0, 14.0
BASE = 226.0
"""The y coordinate of the lower axis of a distribution."""
MOST_BARS = 200
LONGEST_BESIDE, LONGEST_LINE = 16, 52
"""Largest number of letters of a name beside a bar, and of a line of names above bars, at the widths of letters."""
MOST_NEGATIVE_POWER = -300


@dataclass(frozen=True)
class Axis:
    """A linear map from values [start, end] to positions [first, last]."""

    start: float
    end: float
    first: float
    last: float

    def at(self, value: float) -> float:
        """Return the position of a value on the page, in pixels."""
        return self.first + (value - self.start) / (self.end - self.start) * (self.last - self.first)

    def ticks(self, about: int = 5) -> list[float]:
        """Return round values inside the axis at which ticks are drawn, roughly ``about`` of them."""
        raw = (self.end - self.start) / about
        unit = 10.0 ** math.floor(math.log10(raw))
        step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= raw * 0.999)
        first = math.ceil(self.start / step - 1e-9)
        return [(first + i) * step for i in range(math.floor(self.end / step + 1e-9) - first + 1)]


def mean_picture(
    estimate: float,
    low: float,
    high: float,
    bounds: tuple[float, float],
    truth: float | None,
    words: Translation = ENGLISH,
) -> str:
    """Return a picture of a mean with its confidence interval, as inline SVG.

    Parameters
    ----------
    estimate, low, high : float
        The estimate and the ends of its interval.
    bounds : tuple of float
        The range of the values.
    truth : float or None
        The true value, if known; it is marked.
    words : Translation
        The language.
    """
    values = [low, high, estimate, *([] if truth is None else [truth])]
    room = max(max(values) - min(values), (bounds[1] - bounds[0]) * 1e-6) * 0.6
    axis = Axis(min(values) - room, max(values) + room, 16, WIDTH - 16)
    y = 30.0
    parts = [_line(axis.at(low), y, axis.at(high), y, "interval")]
    parts += [_line(axis.at(end), y - 9, axis.at(end), y + 9, "interval cap") for end in (low, high)]
    parts.append(f'<circle class="estimate" cx="{axis.at(estimate):.1f}" cy="{y}" r="5.5"/>')
    if truth is not None:
        x = axis.at(truth)
        parts.append(f'<path class="truth" d="M{x:.1f} {y - 14}l-4 -5 4 -5 4 5z"/>')
    parts += _bottom_axis(axis, 58, 16, WIDTH - 16, words)
    value, first, last = (words.number(f"{each:.5g}") for each in (estimate, low, high))
    label = words("Estimate {value}, confidence interval {low} to {high}", value=value, low=first, high=last)
    return _svg(parts, 84, label)


def bars_picture(
    rows: Sequence[AnswerLine],
    truths: Sequence[float] | None,
    *,
    differences: bool = False,
    words: Translation = ENGLISH,
) -> str:
    """Return a picture of shares, or of differences of shares, as bars with their intervals, as inline SVG.

    Names stand beside the bars, or above them where one of them is too long for that: none is cut.

    Parameters
    ----------
    rows : sequence of Entry
        The numbers with their names and intervals.
    truths : sequence of float or None
        The true values, if known; they are marked.
    differences : bool
        Whether the numbers are differences of shares, which are written in points.
    words : Translation
        The language.
    """
    top = max([0.0, *(max(row.high, row.value) for row in rows), *(truths or ())]) * 1.05
    bottom = min(0.0, min(min(row.low, row.value) for row in rows))
    beside = all(len(row.name) <= LONGEST_BESIDE for row in rows)
    names = 118.0 if beside else 2.0
    axis = Axis(bottom, max(top, bottom + 1e-6), names, WIDTH - 60)
    step, y = 26.0, 8.0
    parts: list[str] = []
    zero = axis.at(0.0)
    for i, row in enumerate(rows):
        for line in () if beside else wrap(row.name, LONGEST_LINE):
            parts.append(_text(names, y + 12, line, "start"))
            y += 17.0
        mid = y + 10
        x = axis.at(row.value)
        if beside:
            parts.append(_text(names - 8, mid + 4, row.name, "end"))
        parts.append(f'<rect class="bar" x="{min(zero, x):.1f}" y="{y:.1f}" width="{abs(x - zero):.1f}" height="20"/>')
        parts.append(_line(axis.at(row.low), mid, axis.at(row.high), mid, "interval"))
        if truths is not None:
            parts.append(f'<path class="truth" d="M{axis.at(truths[i]):.1f} {mid}l-4 -5 4 -5 4 5z"/>')
        number = f"{100.0 * row.value:+z.1f}" if differences else f"{row.value:z.1%}"
        parts.append(_text(WIDTH, mid + 4, words.number(number), "end"))
        y += step
    parts.append(_line(zero, 2, zero, y, "axis"))
    what = "Difference in share" if differences else "Estimated share"
    return _svg(parts, y + 4, words(f"{what} of each category with its confidence interval"))


def histogram_picture(rows: Sequence[AnswerLine], what: str = "Histogram") -> str:
    """Return a picture of a histogram with the confidence interval of each bin; very many bins share bars.

    Parameters
    ----------
    rows : sequence of Entry
        All bins, in order. If there are more than `MOST_BARS`, neighbours share a bar: at the mean of their estimates,
        with a line from their lowest to their highest end.
    what : str
        Name of the bars in the picture's text for screen readers.
    """
    together = math.ceil(len(rows) / MOST_BARS)
    groups = [rows[i : i + together] for i in range(0, len(rows), together)]
    lows = [min(row.low for row in group) for group in groups]
    highs = [max(row.high for row in group) for group in groups]
    middles = [math.fsum(row.value for row in group) / len(group) for group in groups]
    x_axis = Axis(rows[0].label[0], rows[-1].label[1], LEFT, WIDTH - RIGHT)
    y_axis = Axis(min(0.0, *lows, *middles), max(*highs, 1e-6) * 1.05, BASE, 12)
    parts = _shares(y_axis)
    zero = y_axis.at(0.0)
    for group, low, high, middle in zip(groups, lows, highs, middles, strict=True):
        left, right, top = x_axis.at(group[0].label[0]), x_axis.at(group[-1].label[1]), y_axis.at(middle)
        gap = min(1.0, (right - left) / 8)
        size = f'width="{right - left - 2 * gap:.2f}" height="{abs(top - zero):.1f}"'
        parts.append(f'<rect class="bar" x="{left + gap:.2f}" y="{min(top, zero):.1f}" {size}/>')
        mid = (left + right) / 2
        parts.append(_line(mid, y_axis.at(low), mid, y_axis.at(high), "interval"))
    parts += _bottom_axis(x_axis, BASE, LEFT, WIDTH - RIGHT)
    parts.append(_line(LEFT, zero, WIDTH - RIGHT, zero, "axis"))
    return _svg(parts, BASE + 28, f"{what} of {len(rows)} bins with confidence intervals")


def distribution_picture(curve: Curve, quantiles: Sequence[AnswerLine]) -> str:
    """Return a picture of a distribution function with its confidence band and the quantiles read from it.

    Parameters
    ----------
    curve : Curve
        The distribution function at the edges of bins.
    quantiles : sequence of Entry
        The quantiles; each is marked with its interval.
    """
    edges, below, rising = curve.value.tolist(), curve.below.tolist(), curve.rising.tolist()
    x_axis = Axis(edges[0], edges[-1], LEFT, WIDTH - RIGHT)
    y_axis = Axis(0.0, 1.0, BASE, 12)
    parts = _shares(y_axis)
    upper = list(zip(edges, curve.high.tolist(), strict=True))
    lower = list(zip(edges, curve.low.tolist(), strict=True))[::-1]
    band = "L".join(f"{x_axis.at(x):.1f} {y_axis.at(y):.1f}" for x, y in (*upper, *lower))
    parts.append(f'<path class="bracket" d="M{band}z"/>')
    raw = zip(edges, below, strict=True)
    line = "L".join(f"{x_axis.at(x):.1f} {y_axis.at(min(max(y, 0.0), 1.0)):.1f}" for x, y in raw)
    parts.append(f'<path class="curve raw" d="M{line}"/>')
    line = "L".join(f"{x_axis.at(x):.1f} {y_axis.at(y):.1f}" for x, y in zip(edges, rising, strict=True))
    parts.append(f'<path class="curve certified" d="M{line}"/>')
    for row in quantiles:
        x, y = x_axis.at(row.value), y_axis.at(row.label[0])
        parts.append(_line(LEFT, y, x, y, "guide") + _line(x, y, x, BASE, "guide"))
        parts.append(_line(x_axis.at(row.low), y, x_axis.at(row.high), y, "interval"))
        parts.append(f'<circle class="estimate" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>')
    parts += _bottom_axis(x_axis, BASE, LEFT, WIDTH - RIGHT)
    return _svg(parts, BASE + 28, f"Distribution function with its band; {len(quantiles)} quantiles are marked")


def _shares(axis: Axis) -> list[str]:
    """Return the labels of an axis of shares of the users, on the left."""
    parts: list[str] = []
    ticks = axis.ticks()
    places = max(0, -math.floor(math.log10(ticks[1] - ticks[0]) + 1e-9) - 2) if len(ticks) > 1 else 2
    for tick in ticks:
        y = axis.at(tick)
        parts.append(_line(LEFT, y, WIDTH - RIGHT, y, "grid") + _text(LEFT - 8, y + 4, f"{tick:z.{places}%}", "end"))
    return parts


def profile_picture(curves: Sequence[ProfileCurve], epsilon: float, delta: float) -> str:
    """Return a picture of privacy profiles, delta on a logarithmic scale against epsilon, as inline SVG.

    Parameters
    ----------
    curves : sequence of ProfileCurve
        The curves.
    epsilon, delta : float
        The published point, which is marked; epsilon in nats.
    """
    ends = [e for curve in curves for e in curve.epsilons]
    positive = [d for curve in curves for d in curve.deltas if d > 0.0]
    floor = max(math.floor(math.log10(min([delta, *positive]))), math.floor(math.log10(delta)) - 6)
    x_axis = Axis(0.0, max([epsilon, *ends]), LEFT, WIDTH - RIGHT)
    y_axis = Axis(0.0, float(max(floor, MOST_NEGATIVE_POWER)), 12, 250)
    parts = _powers(y_axis) + _bottom_axis(x_axis, y_axis.last, LEFT, WIDTH - RIGHT)
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, y_axis.last + 36, "epsilon", "middle"))
    parts.append(_text(LEFT + 6, 26, "delta", "start"))
    for curve in curves:
        d = _path(curve, x_axis, y_axis)
        parts.append(f'<path class="curve {curve.kind}" d="{d}"/>')
    x, y = x_axis.at(epsilon), y_axis.at(math.log10(delta))
    parts.append(_line(LEFT, y, x, y, "guide") + _line(x, y, x, y_axis.last, "guide"))
    parts.append(f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="5"/>')
    return _svg(parts, y_axis.last + 44, f"Privacy profile; published point epsilon {epsilon:.4g}, delta {delta:g}")


def bounds_picture(rows: Sequence[EvidenceRow], low: float, high: float) -> str:
    """Return a picture of the bounds, a dot each on a logarithmic scale, with the certified interval shaded.

    Parameters
    ----------
    rows : sequence of EvidenceRow
        The bounds, from top to bottom; at least one has a finite, positive epsilon. The others get no dot.
    low, high : float
        The certified interval, high finite and positive.
    """
    marks = [row.epsilon for row in rows if row.epsilon is not None and row.drawable]
    ends = [math.log10(epsilon) for epsilon in (*marks, high, *([low] if low > 0.0 else []))]
    names, step, top = 128.0, 22.0, 6.0
    axis = Axis(min(ends) - 0.08, max(ends) + 0.08, names, WIDTH - 80)
    bottom = top + step * len(rows)
    first = axis.at(math.log10(low)) if low > 0.0 else names
    width = max(axis.at(math.log10(high)) - first, 2.0)
    parts = [f'<rect class="bracket" x="{first:.1f}" y="{top}" width="{width:.1f}" height="{bottom - top:.1f}"/>']
    for tick in _log_ticks(axis):
        x = axis.at(math.log10(tick))
        parts.append(_line(x, top, x, bottom + 5, "grid") + _text(x, bottom + 19, f"{tick:g}", "middle"))
    for i, row in enumerate(rows):
        y = top + step * (i + 0.5)
        parts.append(_text(names - 8, y + 4, row.key, "end") + _text(WIDTH, y + 4, row.shown, "end"))
        if row.epsilon is not None and row.drawable:
            x = axis.at(math.log10(row.epsilon))
            parts.append(f'<circle class="dot {row.standing}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>')
    parts.append(_line(names, bottom, axis.last, bottom, "axis"))
    parts.append(_text((names + axis.last) / 2, bottom + 36, "epsilon", "middle"))
    return _svg(parts, bottom + 42, f"What {len(rows)} bounds say; certified interval {low:.4g} to {high:.4g}")


def _log_ticks(axis: Axis) -> list[float]:
    """Return at most seven round values on an axis of base-10 logarithms."""
    powers = range(math.floor(axis.start), math.ceil(axis.end) + 1)
    for steps in ((1, 2, 3, 4, 5, 6, 7, 8, 9), (1, 2, 5), (1, 3), (1,)):
        ticks = [step * 10.0**power for power in powers for step in steps]
        inside = [tick for tick in ticks if axis.start <= math.log10(tick) <= axis.end]
        if len(inside) <= 7:
            return inside
    return inside[:: math.ceil(len(inside) / 7)]


def _path(curve: ProfileCurve, x_axis: Axis, y_axis: Axis) -> str:
    """Return the SVG path of a curve down to the bottom of the picture, where it is cut."""
    points: list[str] = []
    for epsilon, delta in zip(curve.epsilons, curve.deltas, strict=True):
        power = math.log10(delta) if delta > 0.0 else -math.inf
        y = y_axis.at(max(power, y_axis.end))
        points.append(f"{x_axis.at(epsilon):.1f} {y:.1f}")
        if power <= y_axis.end:
            break
    return "M" + "L".join(points)


def _powers(axis: Axis) -> list[str]:
    powers = range(0, int(axis.end) - 1, -max(1, math.ceil(-axis.end / 8)))
    parts: list[str] = []
    for power in powers:
        y = axis.at(power)
        parts.append(_line(LEFT, y, WIDTH - RIGHT, y, "grid"))
        label = f'10<tspan dy="-5" font-size="11">−{-power}</tspan>' if power else "1"
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    return parts


def _bottom_axis(axis: Axis, y: float, left: float, right: float, words: Translation = ENGLISH) -> list[str]:
    parts = [_line(left, y, right, y, "axis")]
    for tick in axis.ticks():
        x = axis.at(tick)
        parts.append(_line(x, y, x, y + 5, "axis"))
        parts.append(_text(x, y + 19, words.number(f"{tick:.6g}"), "middle"))
    return parts


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line class="{style}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _svg(parts: Sequence[str], height: float, label: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH:.0f} {height:.0f}" role="img" aria-label="{escape(label)}">'
        + "".join(parts)
        + "</svg>"
    )


MOST_LEVELS = 12
MOST_ROWS = 400
"""Largest number of bins or coordinates that a page lists, and of points of a curve that it draws."""
GSPA = "gspa"


def page_template(name: str) -> Template:
    """Return the template of a page, in which inserted text is escaped and a missing name is an error."""
    return _environment().get_template(name, globals={"words": ENGLISH})


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # only who writes a page pays for it

    environment = Environment(
        loader=PackageLoader("shuffledp.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        up=wording.up,
        down=wording.down,
        near=wording.near,
        count=wording.count,
        share=wording.share,
        percent_down=wording.percent_down,
        probability=wording.probability,
    )
    return environment


def render(
    heading: str,
    answers: Sequence[Answer],
    *,
    command: str,
    version: str,
    remark: str = "",
    overview: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Return the page with one or several answers.

    Parameters
    ----------
    heading : str
        Title of the page.
    answers : sequence of Answer
        The answers, in their order on the page; at least one.
    command : str
        The command that repeats the run.
    version : str
        Version of shuffledp.
    remark : str
        A sentence under the heading.
    overview : sequence of mapping
        The table of all groups of each question, where the answers are of disjoint groups.

    Returns
    -------
    str
        An HTML document that loads nothing from elsewhere.
    """
    releases, printed = [answer.release for answer in answers if answer.release is not None], set[str]()
    page = page_template("page.html").render(
        heading=heading,
        remark=remark,
        overview=[{**table, "remark": once(table["remark"], printed)} for table in overview],
        answers=_without_repeats([_answer(answer) for answer in answers], printed),
        simulation=any(not release.private for release in releases),
        drew_noise=bool(releases),
        several=len(answers) > 1,
        checklist=checklist(answers, groups=bool(overview)),
        randomizers=[(answer.question, answer.guarantee.setting.randomizer_name) for answer in answers],
        setting=answers[0].guarantee.setting,
        seen_meaning=SEEN_MEANING[answers[0].guarantee.setting.seen],
        pure=answers[0].guarantee.setting.budgets.is_pure,
        command=command,
        version=version,
        dated=datetime.now(UTC).date().isoformat(),
        fingerprints=[release.fingerprint for release in releases],
        people=releases[0].unit == "people" if releases else None,
        where=conditions(releases[0].where) if releases else "",
    )
    return printable(page, "\n")  # no name turns the direction of writing of what follows it


def once(sentence: str, printed: set[str]) -> str:
    """Return a sentence that is not printed yet, else "", and add it to ``printed``.

    Parameters
    ----------
    sentence : str
        The sentence.
    printed : set of str
        The sentences that are printed already.
    """
    new = "" if sentence in printed else sentence
    printed.add(sentence)
    return new


def _without_repeats(answers: list[dict[str, Any]], printed: set[str]) -> list[dict[str, Any]]:
    """Return the variables of all answers, in which every sentence stands with the first answer that it holds for."""
    for answer in answers:
        parts = [answer] if answer["estimate"] is None else [answer, answer["estimate"]]
        for part in parts[::-1]:  # in the order of the page
            part["notes"] = [note for note in part["notes"] if once(note, printed)]
            part |= {name: once(part[name], printed) for name in ("read", "promise") if name in part}
        answer["gspa_told"] = answer["gspa"] is not None and bool(once(f"GSPA {answer['gspa']!r}", printed))
    return answers


def _answer(answer: Answer) -> dict[str, Any]:
    """Return the template's variables for one answer."""
    guarantee = answer.guarantee
    levels = wording.some_levels(guarantee, MOST_LEVELS)
    worst = guarantee.worst
    sections = evidence_sections(guarantee)
    return {
        "question": answer.question,
        "estimate": estimate_parts(answer),
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "promise": wording.promise(worst, guarantee.delta, guarantee.setting, wording.unit(answer.release)),
        "notes": [] if answer.release is not None else wording.guarantee_notes(guarantee),
        "worst": worst,
        "levels": [
            {
                "level": level,
                "budget": wording.local_budget(level),
                "moves": wording.moves(level.epsilon.upper, guarantee.delta).replace("x", "×"),
            }
            for level in levels
        ],
        "counts": wording.plural("person" if answer.release is None else wording.unit(answer.release)),
        "levels_total": guarantee.levels_total,
        "gspa": wording.asymptotic_epsilon(guarantee, GSPA),
        "profile": _profile(answer),
        "sections": sections,
        "bounds_picture": _bounds_picture(guarantee, sections),
    }


def _bounds_picture(guarantee: Guarantee, sections: Sequence[Section]) -> Markup | None:
    """Return a picture of the values of all bounds; None unless epsilon is positive and finite."""
    if not 0.0 < guarantee.epsilon.upper < np.inf:
        return None
    rows = [row for section in sections for row in section.rows if row.epsilon is not None]
    return Markup(bounds_picture(rows, guarantee.epsilon.lower, guarantee.epsilon.upper))


def _profile(answer: Answer) -> Markup | None:
    """Return a picture of the worst level's privacy profile; None if the answer has none."""
    if not answer.profile:
        return None
    guarantee = answer.guarantee
    return Markup(profile_picture(answer.profile, guarantee.worst.epsilon.upper, guarantee.delta))


# The estimate: what its view says, for the template.


def estimate_parts(answer: Answer, words: Translation = ENGLISH) -> dict[str, Any] | None:
    """Return the template's variables for an estimate; None without an estimate.

    Parameters
    ----------
    answer : Answer
        The answer, whose release and view belong to one question.
    words : Translation
        The language.
    """
    release = answer.release
    if release is None:
        return None
    view = view_of(release, simplex=answer.simplex, simultaneous=answer.simultaneous)
    shape, table, number = view.shape, None, None
    if shape.label:
        table = _entries(view, answer, words) if view.size else None
    else:
        number = dict(zip(("value", "error", "interval"), cells(view, view.entries()[0], words=words), strict=True))
    read = shape.read[view.simultaneous]
    drawn = shape.picture
    return {
        "number": number,
        "people": people(release, words),
        "mechanism": release.mechanism,
        "confidence": words.number(f"{CONFIDENCE:.0%}"),
        "clipped": release.clipped,
        "moved_into": view.range,
        "truth": answer.truth,
        "told": view.told,
        "read": words(read),
        "more": view.more,
        "entries": None if shape.folded else table,
        "table": table if shape.folded else None,
        "nothing": "" if view.size else shape.nothing,
        "picture": _picture(view, answer, words) if view.size else None,
        "curve_of": "" if drawn is None else drawn.said,
        "legend": _legend(view, answer, words),
        "axis": _axis(view, words),
        "notes": [*map(words, notes(release, view)), *([wording.PROJECTED] if view.projected is not None else [])],
        "amounts": amounts_table(view, INTERVAL) if answer.counts else None,
    }


def _entries(view: View, answer: Answer, words: Translation) -> dict[str, Any]:
    """Return headings and rows of the entries, with projected and true values where there are any.

    Of very many bins or coordinates only some are listed.
    """
    shape, truth = view.shape, answer.truth
    places = range(view.size) if shape.excerpt == "largest" else view.places(MOST_ROWS)
    entries = _named(view.entries(places), answer)
    rows = [[entry.name, *cells(view, entry, hedged=not shape.chosen, words=words)] for entry in entries]
    names = [*map(words, headings(shape, INTERVAL)), *(["projected"] if view.projected is not None else [])]
    if truth is not None:
        names.append(words("true"))
        rows = [[*line, words.share(value)] for line, value in zip(rows, truth, strict=True)]
    remark = ""
    if len(rows) < view.size:
        every = wording.count(view.size)
        first = f"The first {MOST_ROWS} of {every} {shape.noun}."
        remark = f"{len(rows)} of {every} {shape.noun} are listed." if shape.excerpt == "spread" else first
    return {"headings": names, "rows": rows, "remark": remark}


def _named(entries: list[AnswerLine], answer: Answer) -> list[AnswerLine]:
    """Return the entries with the answer's own names, where it has them."""
    if not answer.names:
        return entries
    return [replace(entry, name=name) for entry, name in zip(entries, answer.names, strict=True)]


def _picture(view: View, answer: Answer, words: Translation) -> Markup | None:
    """Return the picture of a view, of the kind that its shape states; None without one."""
    drawn, entries = view.shape.picture, _named(view.entries(), answer)
    if drawn is None:
        return None
    if drawn.kind == "bars":
        return Markup(bars_picture(entries[: drawn.most], answer.truth, words=words))
    if drawn.kind == "bins":
        return Markup(histogram_picture(entries))
    if view.curve is not None:
        return Markup(distribution_picture(view.curve.some(MOST_ROWS), entries))
    (entry,), truth = entries, None if answer.truth is None else answer.truth[0]
    bounds = view.support or (entry.low, entry.high)
    return Markup(mean_picture(entry.value, entry.low, entry.high, bounds, truth, words))


def _legend(view: View, answer: Answer, words: Translation) -> list[tuple[str, str]]:
    """Return style and meaning of each mark in the picture."""
    drawn = view.shape.picture
    if drawn is None:
        return []
    fields = {"confidence": words.number(f"{CONFIDENCE:.0%}"), "each": drawn.each[view.simultaneous]}
    legend = [(sign, words(meaning, **fields)) for sign, meaning in drawn.legend]
    return [*legend, ("truth", words(drawn.truth))] if answer.truth is not None and drawn.truth else legend


def _axis(view: View, words: Translation) -> str:
    """Return words for the stretch of the range that the axis of a single number shows."""
    if view.shape.label or view.support is None:
        return ""
    low, high = (words.number(wording.near(end)) for end in view.support)
    return words(". The axis shows a stretch of the range {low} to {high}.", low=low, high=high)
