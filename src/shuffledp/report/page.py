"""One self-contained HTML page: question, estimate, guarantee, assumptions, and how to repeat it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from markupsafe import Markup

from shuffledp.accounting import bounds, weigh
from shuffledp.errors import printable
from shuffledp.guarantee import Guarantee
from shuffledp.report import wording
from shuffledp.report.answer import Answer, estimate_parts
from shuffledp.report.checklist import checklist
from shuffledp.report.curves import profile_epsilons, worst_profile
from shuffledp.report.evidence import Section, evidence_sections
from shuffledp.report.svg import ProfileCurve, bounds_picture, profile_picture
from shuffledp.report.templating import page_template
from shuffledp.setting import SEEN_MEANING

MOST_LEVELS = 12
POINTS = 17
"""Points of a drawn privacy profile."""
DEPTH = 1e-3
"""The drawn profile falls a thousand times further than the delta asked for."""
GSPA = "gspa"


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
        "profile": _profile(guarantee),
        "sections": sections,
        "bounds_picture": _bounds_picture(guarantee, sections),
    }


def _bounds_picture(guarantee: Guarantee, sections: Sequence[Section]) -> Markup | None:
    """Draw what every bound says; None where there is no finite, positive epsilon."""
    if not 0.0 < guarantee.epsilon.upper < np.inf:
        return None
    rows = [row for section in sections for row in section.rows if row.epsilon is not None]
    return Markup(bounds_picture(rows, guarantee.epsilon.lower, guarantee.epsilon.upper))


def _profile(guarantee: Guarantee) -> Markup | None:
    """Draw the worst level's privacy profile; None where there is no finite, positive epsilon."""
    worst, setting = guarantee.worst, guarantee.setting
    if not 0.0 < worst.epsilon.upper < np.inf:
        return None
    bracket = worst_profile(guarantee)
    epsilons = profile_epsilons(guarantee, bracket, POINTS, DEPTH, widest=2.0)
    deltas = [bracket.delta(epsilon) for epsilon in epsilons]
    curves = [
        ProfileCurve("certified upper", "certified", epsilons, [delta.upper for delta in deltas]),
        ProfileCurve("witness", "witness", epsilons, [delta.lower for delta in deltas]),
    ]
    # where the formula does not apply, the evidence table tells why
    for claimed in weigh([bounds[GSPA]], lambda bound: bound.profile(setting, epsilon0=worst.epsilon0)):
        if claimed.value is not None:
            at = [claimed.value.delta(epsilon).upper for epsilon in epsilons]
            curves.append(ProfileCurve("GSPA", "asymptotic", epsilons, at))
    return Markup(profile_picture(curves, worst.epsilon.upper, guarantee.delta))
