"""What is said beside a release: who answered, and how the estimate was made, where a reader could take it for more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from shuffledp.report.wording import SAYS_NOTHING, count, counted, guarantee_notes, weighted_by

if TYPE_CHECKING:
    from shuffledp.releases.release import Release


def notes(release: Release) -> list[str]:
    """Say how an estimate was made, where a reader could take it for something else."""
    said = [*_rows_as_people(release), *_clipped(release), *_weighting(release), *_moved_out(release), *_wide(release)]
    return [*said, *_without_information(release), *_alone(release), *guarantee_notes(release.guarantee, release.n)]


def people(release: Release) -> str:
    """Say how many people answered, and whether rows were taken as people."""
    size = release.guarantee.setting.group_size
    if release.unit != "people":
        return f"{counted(release.n, release.unit.removesuffix('s'))}, taken as people"
    if release.rows > release.n:
        return f"{counted(release.n, 'person', 'people')} with {count(release.rows)} rows, at most {size} each"
    return counted(release.n, "person", "people")


def _rows_as_people(release: Release) -> list[str]:
    advice = "; name the column that tells whose row it is (--person)" if release.unit == "rows" else ""
    return [f"{said.removesuffix('.')}{advice}." for said in taken_as_people([release.unit])]


def taken_as_people(units: Iterable[str]) -> list[str]:
    """Say of rows, and of reports of an open collection, that each was taken as a person, and what that means.

    Parameters
    ----------
    units : iterable of str
        What a record of each release is: "people", "rows" or "reports"; in the JSON with ", taken as people" behind.
    """
    found = {unit.partition(",")[0] for unit in units}
    return [said for unit, said in _TAKEN_AS_PEOPLE.items() if unit in found]


_TAKEN_AS_PEOPLE = {
    "rows": "Each row was taken as a person. If somebody owns several rows, the guarantee for them is weaker than "
    "stated.",
    "reports": "Anybody could answer, and as often as they liked: each report was taken as a person.",
}


def _clipped(release: Release) -> list[str]:
    """Say what clipping did to the target."""
    if not release.clipped:
        return []
    return [
        "Values outside the stated range were moved to its nearer end before they were randomized, so this is about "
        "the moved values; how many were moved is not known to the analyzer."
    ]


def _weighting(release: Release) -> list[str]:
    if release.guarantee.levels_total == 1:
        return []
    return [
        {
            "budget": "The estimate weighs people by what their budget lets through; if budgets go along with the "
            "records, it leans towards those who allow more.",
            "people": "Each budget level was estimated by itself and counts by its number of people.",
            "precision": "Each budget level was estimated by itself and counts by its precision; if budgets go along "
            "with the records, the estimate leans towards those who allow more.",
        }[weighted_by(release)]
    ]


def _alone(release: Release) -> list[str]:
    """Levels of one user, where levels are seen: nobody hides her."""
    setting = release.guarantee.setting
    if setting.seen != "levels":
        return []
    alone = setting.budgets.epsilons[setting.budgets.counts == 1]
    if not alone.size:
        return []
    which = ", ".join(f"{budget:g}" for budget in alone[:5]) + (", ..." if alone.size > 5 else "")
    who = "One person is" if alone.size == 1 else f"{count(alone.size)} people are"
    return [
        f"{who} alone in a budget level (epsilon0 = {which}): with levels seen nobody hides them, and their own budget "
        "is their whole protection; rounding budgets down to fewer levels gives company."
    ]


def _moved_out(release: Release) -> list[str]:
    if release.question.name == "quantiles":
        return []
    low, high = release.analysis.support
    estimate = np.asarray(release.estimate)
    if bool(np.all((low <= estimate) & (estimate <= high))):
        return []
    return [
        "Noise has moved an estimate out of the possible range. The estimate is left where it is, so that it stays "
        "unbiased; its interval is drawn around the nearest possible value."
    ]


def _wide(release: Release) -> list[str]:
    """Say of one number that its interval covers the whole range; a table of shares says it in every row."""
    if release.question.name not in ("mean", "variance"):
        return []
    (first, last), (low, high) = release.analysis.support, release.confidence_interval(0.95)
    if float(high) - float(low) < last - first:
        return []
    return [
        f"The interval covers everything that is possible: with so few people or budgets the answer {SAYS_NOTHING}."
    ]


def _without_information(release: Release) -> list[str]:
    if not release.uninformative:
        return []
    return [
        f"{counted(release.uninformative, 'person', 'people')} with budget 0 "
        + ("sends no information, and is" if release.uninformative == 1 else "send no information; they are")
        + " taken to be like the others."
    ]
