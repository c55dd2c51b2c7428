"""A release as every renderer takes it: its view, computed once, and the words and table cells that people read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from shuffledp.in_words import (
    ENGLISH,
    SAYS_NOTHING,
    Translation,
    conditions,
    count,
    counted,
    interval_with_error,
    near,
    numbers_with_error,
    points,
    probability,
    share,
    up,
    with_error,
)
from shuffledp.questions.question import CONFIDENCE, AnswerLine, Shape, View, in_bins
from shuffledp.report.wording import guarantee_notes, weighted_by
from shuffledp.setting import Guarantee

if TYPE_CHECKING:
    from shuffledp.accounting import ProfileCurve
    from shuffledp.releases.release import Release
    from shuffledp.releases.run import GroupedRelease

NOTHING_FROM = 0.9
"""Share of the range from which on an interval of a quantile is too wide to say anything."""
INTERVAL = f"{CONFIDENCE:.0%} interval"
"""Heading of intervals where the sentence above the table says whether they hold together."""


@dataclass(frozen=True)
class Answer:
    """One question on a page, with its guarantee and its release.

    Parameters
    ----------
    question : str
        The question in words, such as "What is the mean of hours_per_week?".
    guarantee : Guarantee
        The central guarantee.
    release : Release or None
        The estimate; None when only a guarantee was asked for.
    truth : sequence of float or None
        The true value or values, where the data are public anyway (the demo).
    simplex : bool
        Whether to show the projected frequencies, too.
    simultaneous : bool
        Whether to show intervals that hold together.
    counts : bool
        Whether to show counts beside shares, and sums beside means.
    profile : sequence of ProfileCurve
        Curves of the guarantee's privacy profile to draw, from `shuffledp.accounting.drawn_profile`.
    names : sequence of str
        Names of the entries in the language of the page; empty: those of the release.
    """

    question: str
    guarantee: Guarantee
    release: Release | None = None
    truth: Sequence[float] | None = None
    simplex: bool = False
    simultaneous: bool = False
    counts: bool = False
    profile: Sequence[ProfileCurve] = ()
    names: Sequence[str] = ()


def view_of(release: Release, *, simplex: bool = False, simultaneous: bool = False) -> View:
    """Return the view of a release; cached, so that screen, page and JSON of one release share its numbers.

    Parameters
    ----------
    release : Release
        The release of any question.
    simplex : bool
        Whether to add the projected shares.
    simultaneous : bool
        True: the intervals hold together. False: each holds by itself.
    """
    return _view(release, simplex, simultaneous or release.question.shape.chosen)


@lru_cache(maxsize=8)
def _view(release: Release, simplex: bool, simultaneous: bool) -> View:
    return release.question.view(release.analysis, release.rows, simultaneous=simultaneous, simplex=simplex)


def title_of(release: Release, value: str) -> str:
    """Return the question about the column ``value`` in words, for the page."""
    moved = " of the values moved into the range" if release.clipped else ""
    chosen = f" where {conditions(release.where)}" if release.where else ""
    return release.question.shape.asked.format(value, moved).removesuffix("?") + f"{chosen}?"


# Cells: numbers by the scale of the view.


def cells(view: View, entry: AnswerLine, *, hedged: bool = True, words: Translation = ENGLISH) -> list[str]:
    """Return the cells of an entry: value, error where there is one, interval, projected share if asked for.

    Parameters
    ----------
    view : View
        The view, whose scale determines how numbers are written.
    entry : Entry
        One of its entries.
    hedged : bool
        Whether to say beside the interval of a share that noise has moved the estimate below 0 or above 1.
    words : Translation
        The language.
    """
    low, high = entry.low, entry.high
    if view.shape.scale == "share":
        ends = interval_words(entry, words) if hedged else _ends(words.share(low), words.share(high), words)
        row = [words.share(entry.value), words.points(entry.error), ends]
        return row if entry.projected is None else [*row, words.share(entry.projected)]
    if view.shape.scale == "place":
        ends = f"{in_bins(low, view.width)} to {in_bins(high, view.width)}"
        covers = view.curve is not None and high - low >= NOTHING_FROM * float(np.ptp(view.curve.value))
        return [in_bins(entry.value, view.width), SAYS_NOTHING if covers else ends]
    low_end, high_end = map(words.number, numbers_with_error((low, high), low, high, entry.error))
    ends = _ends(low_end, high_end, words)
    if view.support is not None and tells_nothing(entry, view.support):
        ends += f" ({words(SAYS_NOTHING)})"
    return [words.number(with_error(entry.value, entry.error)), words.number(near(entry.error, 2)), ends]


def _ends(low: str, high: str, words: Translation) -> str:
    return words("{low} to {high}", low=low, high=high)


def interval_words(entry: AnswerLine, words: Translation = ENGLISH) -> str:
    """Return the interval of a share in words, which mention it if noise has moved the estimate below 0% or above 100%.

    Examples
    --------
    >>> interval_words(AnswerLine("a", 0.1, 0.01, 0.08, 0.12))
    '8.00% to 12.00%'
    >>> interval_words(AnswerLine("a", -0.0869, 0.04, 0.0, 0.031))
    'below 0%: noise; at most 3.10%'
    >>> interval_words(AnswerLine("a", 1.1, 0.04, 0.98, 1.0))
    'above 100%: noise; at least 98.00%'
    >>> interval_words(AnswerLine("a", 0.6, 0.9, 0.0, 1.0))
    'says nothing yet'
    """
    if tells_nothing(entry, (0.0, 1.0)):
        return words(SAYS_NOTHING)
    low, high = words.share(entry.low), words.share(entry.high)
    if entry.value < 0.0:
        return words("below 0%: noise; at most {high}", high=high)
    if entry.value > 1.0:
        return words("above 100%: noise; at least {low}", low=low)
    return _ends(low, high, words)


def headings(shape: Shape, interval: str) -> list[str]:
    """Return the headings of a table of entries: label, number, error and interval.

    Parameters
    ----------
    shape : Shape
        The shape of the question.
    interval : str
        Heading of the intervals.
    """
    first = [shape.label] if shape.label else []
    return [*first, shape.heading, *([] if shape.scale == "place" else ["standard error"]), interval]


def amounts_table(view: View, interval: str) -> dict[str, Any] | None:
    """Return counts of shares, or sums of means, as title, headings and rows; None where the question has neither.

    Parameters
    ----------
    view : View
        The view of any question.
    interval : str
        Heading of the intervals.
    """
    amounts, shape = view.amounts, view.shape
    if amounts is None or amounts.error is None:
        return None
    most = view.records if shape.amount == "count" else None
    columns = np.column_stack((amounts.value, amounts.error, amounts.low, amounts.high)).tolist()
    first = [[view.name(*label)] if shape.label else [] for label in view.labels]
    return {
        "title": f"{shape.amount.capitalize()}s over {count(view.records)} records",
        "headings": [*([shape.label] if shape.label else []), shape.amount, "standard error", interval],
        "rows": [
            [*label, *_amount(value, error, low, high, most)]
            for label, (value, error, low, high) in zip(first, columns, strict=True)
        ],
        "remark": "",
    }


def _amount(value: float, error: float, low: float, high: float, most: int | None) -> list[str]:
    ends = interval_with_error(low, high, error)
    if most is not None and value < 0.0:
        ends = f"below 0: noise; at most {with_error(high, error)}"
    elif most is not None and value > most:
        ends = f"above {count(most)}: noise; at least {with_error(low, error)}"
    return [with_error(value, error), with_error(error, error), ends]


# Notes: who answered, and how the estimate was made, where a reader could take it for more.


def notes(release: Release, view: View | None = None) -> list[str]:
    """Return sentences on how an estimate was made, where a reader could misunderstand it.

    Parameters
    ----------
    release : Release
        The release of any question.
    view : View, optional
        Its view, if it is already computed.
    """
    seen = view_of(release) if view is None else view
    return [
        *seen.sentences,
        *_rows_as_people(release),
        *_selected(release),
        *_clipped(release),
        *_weighting(release),
        *_moved_out(seen),
        *_wide(seen),
        *by_inequality(release.analysis, simultaneous=seen.simultaneous),
        *_without_information(release),
        *_alone(release),
        *guarantee_notes(release.guarantee, release.n),
    ]


def people(release: Release, words: Translation = ENGLISH) -> str:
    """Return words for the number of people who answered, and for whether rows were taken as people."""
    size = release.guarantee.setting.group_size
    if release.unit != "people":
        counts = words.counted(release.n, release.unit.removesuffix("s"), release.unit)
        return words("{count}, taken as people", count=counts)
    if release.rows > release.n:
        return f"{counted(release.n, 'person', 'people')} with {count(release.rows)} rows, at most {size} each"
    return words.counted(release.n, "person", "people")


def _rows_as_people(release: Release) -> list[str]:
    advice = "; name the column that tells whose row it is (--person)" if release.unit == "rows" else ""
    return [f"{sentence.removesuffix('.')}{advice}." for sentence in taken_as_people([release.unit])]


def taken_as_people(units: Iterable[str]) -> list[str]:
    """Return sentences that say, of rows or of reports, that each was taken as a person, and what that means.

    Parameters
    ----------
    units : iterable of str
        What a record of each release is: "people", "rows" or "reports"; in the JSON followed by ", taken as people".
    """
    distinct_units = {unit.partition(",")[0] for unit in units}
    return [sentence for unit, sentence in _TAKEN_AS_PEOPLE.items() if unit in distinct_units]


_TAKEN_AS_PEOPLE = {
    "rows": "Each row was taken as a person. If somebody owns several rows, the guarantee for them is weaker than "
    "stated.",
    "reports": "Anybody could answer, and as often as they liked: each report was taken as a person.",
}


def _selected(release: Release) -> list[str]:
    """Say which rows were asked, and that the columns by which they were chosen are public."""
    if not release.where:
        return []
    return [
        f"Only rows where {conditions(release.where)} were asked. Which rows these are is public and is not protected. "
        "Each of their answers is protected by the guarantee."
    ]


def _clipped(release: Release) -> list[str]:
    """Return a sentence on how clipping changed the estimated quantity; none without clipping."""
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
    """Return a warning about visible levels that have one user, whom no other user hides."""
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


def _moved_out(view: View) -> list[str]:
    if view.support is None:
        return []
    (low, high), estimate = view.support, view.numbers.value
    if bool(np.all((low <= estimate) & (estimate <= high))):
        return []
    return [
        "Noise has moved an estimate out of the possible range. The estimate is left where it is, so that it stays "
        "unbiased; its interval is drawn around the nearest possible value."
    ]


def _wide(view: View) -> list[str]:
    """Return a warning that the interval of a single number reaches over half of the range to a side.

    Tables of shares say it in each row.
    """
    if view.shape.label or view.support is None or not tells_nothing(view.entries()[0], view.support):
        return []
    return [f"With so few people or budgets the answer {SAYS_NOTHING}: the interval covers most of what is possible."]


def by_inequality(estimate: Any, *, simultaneous: bool) -> list[str]:
    """Return a sentence on why an interval is wide, where an inequality makes it; none elsewhere.

    Parameters
    ----------
    estimate : Estimate or RangeEstimate
        The estimate.
    simultaneous : bool
        Whether its intervals hold together.
    """
    name = estimate.inequality(CONFIDENCE, simultaneous) if hasattr(estimate, "inequality") else ""
    if not name:
        return []
    return [
        f"{name} inequality: with so few reports the interval is one that holds for any law of the noise, and is wider "
        "than 1.96 standard errors to each side."
    ]


def tells_nothing(entry: AnswerLine, support: tuple[float, float]) -> bool:
    """Return whether an interval covers the range, or reaches further to a side than half of it.

    Parameters
    ----------
    entry : Entry
        An estimate with its interval.
    support : tuple of float
        The range (low, high) of what is possible.
    """
    low, high = support
    possible = min(max(entry.value, low), high)
    reach = max(entry.high - possible, possible - entry.low)
    return entry.high - entry.low >= high - low or reach > (high - low) / 2.0


def _without_information(release: Release) -> list[str]:
    if not release.uninformative:
        return []
    return [
        f"{counted(release.uninformative, 'person', 'people')} with budget 0 "
        + ("sends no information, and is" if release.uninformative == 1 else "send no information; they are")
        + " taken to be like the others."
    ]


# Releases of public groups: one table of all of them, and what holds for whom.

PUBLIC = (
    "A person's group is public and is not protected: it selects whose answers hers are mixed with. Within her group "
    "her answer is protected by that group's guarantee."
)


def first_of(grouped: GroupedRelease) -> Release:
    """Return the release of the first group; all groups have one question and one mechanism."""
    return next(iter(grouped.releases.values()))


def grouped_headings(grouped: GroupedRelease, interval: str) -> list[str]:
    """Return the headings of the table of all groups."""
    return [grouped.by, "people", *headings(first_of(grouped).question.shape, interval), "central ε"]


def grouped_lines(grouped: GroupedRelease, *, simultaneous: bool = False) -> Iterator[list[str]]:
    """Yield the lines of the table of all groups; the first line of each group has its name.

    Parameters
    ----------
    grouped : GroupedRelease
        The releases.
    simultaneous : bool
        Whether the intervals of a group hold together.
    """
    for name, release in grouped.releases.items():
        before, view = [str(name), count(release.n)], view_of(release, simultaneous=simultaneous)
        for entry in view.entries():
            first = [entry.name] if view.shape.label else []
            yield [*before, *first, *cells(view, entry), up(release.guarantee.epsilon.upper)]
            before = ["", ""]


def grouped_notes(grouped: GroupedRelease) -> list[str]:
    """Return sentences on whom each guarantee protects, and on what a reader could misunderstand."""
    smallest = min(release.n for release in grouped.releases.values())
    worst = grouped.releases[grouped.worst]
    why = ", which is the smallest" if worst.n == smallest else ""
    sentences = [
        f"Each of the {len(grouped.releases)} groups was shuffled by itself, and nobody is in two of them: for "
        f"everybody central epsilon is at most {up(grouped.guarantee.epsilon.upper)} at delta = "
        f"{probability(grouped.guarantee.delta)}, the number of {grouped.worst} "
        f"({counted(worst.n, 'person', 'people')}){why}.",
        PUBLIC,
    ]
    views = {name: view_of(release) for name, release in grouped.releases.items()}
    sentences += [f"{name}: {view.more}" for name, view in views.items() if view.more]
    own = {name: view.sentences for name, view in views.items()}
    for name, release in grouped.releases.items():
        alike = {note: all(note in each for each in own.values()) for note in own[name]}
        named = [note if alike.get(note, True) else f"{name}: {note}" for note in notes(release)]
        sentences += [note for note in named if note not in sentences]
    return sentences


def grouped_parts(
    grouped: GroupedRelease,
    *,
    simultaneous: bool = False,
    weighted: Mapping[str, Any] | None = None,
    title: str = "All groups",
) -> dict[str, Any]:
    """Return the parts of a page that concern all groups: the table of all of them, and whom the guarantee protects.

    Parameters
    ----------
    grouped : GroupedRelease
        The releases.
    simultaneous : bool
        Whether the intervals of one group hold together.
    weighted : mapping, optional
        The answer weighted to public margins, as `shuffledp.report.to_json.weighted_to_json` makes it.
    title : str
        Of the table.
    """
    every = list(grouped_lines(grouped, simultaneous=simultaneous))
    remark = PUBLIC
    if weighted is not None:
        each = weighted_cells(weighted, first_of(grouped).question.shape)
        lines = "; ".join(f"{' '.join(cells[:-2])} ({cells[-1]})" for cells in each)
        remark += f" All groups weighted to the margins: {lines}. {whom_weights_cover(weighted)}"
    table = {"title": title, "headings": grouped_headings(grouped, INTERVAL), "rows": every, "remark": remark}
    return {"remark": grouped_notes(grouped)[0], "overview": [table]}


def weighted_cells(weighted: Mapping[str, Any], shape: Shape) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each estimate that is weighted to margins: category (of shares), value, error, interval.

    Parameters
    ----------
    weighted : mapping
        From `shuffledp.report.to_json.weighted_to_json`.
    shape : Shape
        The shape of the question.
    """
    for row in weighted["estimates"]:
        error, ends = row["standard_error"], row["confidence_interval"]
        if shape.scale == "share":
            names = (" to ".join(str(row[key]) for key in shape.keys if key in row),)
            yield (*names, share(row[shape.key]), points(error), " to ".join(map(share, ends)))
        else:
            yield with_error(row[shape.key], error), near(error, 2), interval_with_error(ends[0], ends[1], error)


def whom_weights_cover(weighted: Mapping[str, Any]) -> str:
    """Return sentences on the population that weighted intervals cover, and on how many people did not answer.

    Parameters
    ----------
    weighted : mapping
        From `shuffledp.report.to_json.weighted_to_json`.
    """
    text = "These intervals cover the people for whom the answers stand: noise and sampling are in them."
    if weighted["missing"] is not None:
        text += f" {count(weighted['missing'])} of {count(weighted['population'])} people did not answer."
    return f"{text} Those who did not answer are taken to be like the others of their group."
