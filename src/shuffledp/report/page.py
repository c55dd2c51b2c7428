"""One self-contained HTML page: question, estimate, guarantee, assumptions, and how to repeat it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from shuffledp.errors import printable
from shuffledp.guarantee import Guarantee
from shuffledp.questions.view import CONFIDENCE, View
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
from shuffledp.report.evidence import Section, evidence_sections
from shuffledp.report.svg import (
    bars_picture,
    bounds_picture,
    distribution_picture,
    histogram_picture,
    mean_picture,
    profile_picture,
)
from shuffledp.setting import SEEN_MEANING

if TYPE_CHECKING:
    from jinja2 import Environment, Template

MOST_LEVELS = 12
MOST_ROWS = 400
"""Bins and coordinates a page lists, and points of a curve it draws."""
GSPA = "gspa"


def page_template(name: str) -> Template:
    """Return the template of a page, in which what comes from outside is escaped and a missing name is an error."""
    return _environment().get_template(name)


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
        percent=wording.percent,
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
    overview: Mapping[str, Any] | None = None,
) -> str:
    """Write the page.

    Parameters
    ----------
    heading : str
        Title of the page.
    answers : sequence of Answer
        What to show, in order; at least one.
    command : str
        The command that repeats the run.
    version : str
        Version of shuffledp.
    remark : str
        A sentence under the heading.
    overview : mapping, optional
        The table of all groups, where the answers are of groups that share nobody.

    Returns
    -------
    str
        An HTML document that loads nothing from elsewhere.
    """
    releases = [answer.release for answer in answers if answer.release is not None]
    page = page_template("page.html").render(
        heading=heading,
        remark=remark,
        overview=overview,
        answers=[_answer(answer) for answer in answers],
        simulation=any(not release.private for release in releases),
        drew_noise=bool(releases),
        several=len(answers) > 1,
        checklist=checklist(answers, groups=overview is not None),
        randomizers=[(answer.question, answer.guarantee.setting.randomizer_name) for answer in answers],
        setting=answers[0].guarantee.setting,
        seen_meaning=SEEN_MEANING[answers[0].guarantee.setting.seen],
        pure=answers[0].guarantee.setting.budgets.is_pure,
        command=command,
        version=version,
        dated=datetime.now(UTC).date().isoformat(),
        fingerprints=[release.fingerprint for release in releases],
        people=releases[0].unit == "people" if releases else None,
    )
    return printable(page, "\n")  # no name turns the direction of writing of what follows it


def _answer(answer: Answer) -> dict[str, Any]:
    """Collect what the template needs to know of one answer."""
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
        "counts": {"user": "people", "row": "rows"}[wording.unit(answer.release)],
        "levels_total": guarantee.levels_total,
        "gspa": wording.asymptotic_epsilon(guarantee, GSPA),
        "profile": _profile(answer),
        "sections": sections,
        "bounds_picture": _bounds_picture(guarantee, sections),
    }


def _bounds_picture(guarantee: Guarantee, sections: Sequence[Section]) -> Markup | None:
    """Draw what every bound says; None where there is no finite, positive epsilon."""
    if not 0.0 < guarantee.epsilon.upper < np.inf:
        return None
    rows = [row for section in sections for row in section.rows if row.epsilon is not None]
    return Markup(bounds_picture(rows, guarantee.epsilon.lower, guarantee.epsilon.upper))


def _profile(answer: Answer) -> Markup | None:
    """Draw the worst level's privacy profile; None where there is no finite, positive epsilon."""
    if not answer.profile:
        return None
    guarantee = answer.guarantee
    return Markup(profile_picture(answer.profile, guarantee.worst.epsilon.upper, guarantee.delta))


# The estimate: what its view says, for the template.


def estimate_parts(answer: Answer) -> dict[str, Any] | None:
    """Collect what the template of an estimate needs to know; None without an estimate.

    Parameters
    ----------
    answer : Answer
        Its release fits its kind.
    """
    release = answer.release
    if release is None:
        return None
    view = view_of(release, simplex=answer.simplex, simultaneous=answer.simultaneous)
    shape, table, number = view.shape, None, None
    if shape.label:
        table = _entries(view, answer) if view.size else None
    else:
        number = dict(zip(("value", "error", "interval"), cells(view, view.entries()[0]), strict=True))
    read = shape.read[view.simultaneous]
    drawn = shape.picture
    return {
        "number": number,
        "people": people(release),
        "mechanism": release.mechanism,
        "confidence": f"{CONFIDENCE:.0%}",
        "clipped": release.clipped,
        "moved_into": view.range,
        "truth": answer.truth,
        "told": view.told,
        "read": f" {read}" if read else "",
        "more": view.more,
        "entries": None if shape.folded else table,
        "table": table if shape.folded else None,
        "nothing": "" if view.size else shape.nothing,
        "picture": _picture(view, answer) if view.size else None,
        "curve_of": "" if drawn is None else drawn.said,
        "legend": _legend(view, answer),
        "axis": _axis(view),
        "notes": [*notes(release, view), *([wording.PROJECTED] if view.projected is not None else [])],
        "amounts": amounts_table(view, INTERVAL) if answer.counts else None,
    }


def _entries(view: View, answer: Answer) -> dict[str, Any]:
    """List the entries; projected ones and true ones where they are there, some of very many bins or coordinates."""
    shape, truth = view.shape, answer.truth
    places = range(view.size) if shape.excerpt == "largest" else view.places(MOST_ROWS)
    rows = [[entry.name, *cells(view, entry, hedged=not shape.chosen)] for entry in view.entries(places)]
    names = [*headings(shape, INTERVAL), *(["projected"] if view.projected is not None else [])]
    if truth is not None:
        names.append("true")
        rows = [[*line, wording.share(value)] for line, value in zip(rows, truth, strict=True)]
    remark = ""
    if len(rows) < view.size:
        every = wording.count(view.size)
        first = f"The first {MOST_ROWS} of {every} {shape.noun}."
        remark = f"{len(rows)} of {every} {shape.noun} are listed." if shape.excerpt == "spread" else first
    return {"headings": names, "rows": rows, "remark": remark}


def _picture(view: View, answer: Answer) -> Markup | None:
    """Draw a view as its shape says."""
    drawn, entries = view.shape.picture, view.entries()
    if drawn is None:
        return None
    if drawn.kind == "bars":
        return Markup(bars_picture(entries[: drawn.most], answer.truth))
    if drawn.kind == "bins":
        return Markup(histogram_picture(entries))
    if view.curve is not None:
        return Markup(distribution_picture(view.curve.some(MOST_ROWS), entries))
    (entry,), truth = entries, None if answer.truth is None else answer.truth[0]
    return Markup(mean_picture(entry.value, entry.low, entry.high, view.support or (entry.low, entry.high), truth))


def _legend(view: View, answer: Answer) -> list[tuple[str, str]]:
    """Say what the signs of the picture stand for."""
    drawn = view.shape.picture
    if drawn is None:
        return []
    known = {"confidence": f"{CONFIDENCE:.0%}", "each": drawn.each[view.simultaneous]}
    legend = [(sign, words.format(**known)) for sign, words in drawn.legend]
    return [*legend, ("truth", drawn.truth)] if answer.truth is not None and drawn.truth else legend


def _axis(view: View) -> str:
    """Say which stretch the axis of a single number shows."""
    if view.shape.label or view.support is None:
        return ""
    low, high = (wording.near(end) for end in view.support)
    return f". The axis shows a stretch of the range {low} to {high}."
