r"""Groups of one survey side by side: their answers, and which two differ.

**Intervals hold together, question by question**: each of G groups and k answers has the level 1 - 5 %/(G k), by
Bonferroni's inequality; each of the G (G - 1)/2 differences of k answers the level 1 - 5 %/(k G (G - 1)/2).

**A difference** of two independent estimates a and b with intervals (a_1, a_2) and (b_1, b_2) of one level has the
interval from a - b - sqrt((a - a_1)^2 + (b_2 - b)^2) to a - b + sqrt((a_2 - a)^2 + (b - b_1)^2) (Zou and Donner 2008,
"MOVER"). For normal errors this is exact; where errors have exponential tails, as those of dummies have, it is too wide
rather than too short, for a sum of two of them exceeds sqrt(2) times the same quantile less often.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from shuffledp.collection.analyzer import Opened
from shuffledp.collection.asked import Question
from shuffledp.numerics.interval import FloatArray
from shuffledp.questions.estimate import Estimate
from shuffledp.questions.view import CONFIDENCE
from shuffledp.report.wording import count, points, share, with_error


@dataclass(frozen=True)
class Cell:
    """One answer of one group, or the difference of two groups' answers.

    Parameters
    ----------
    value, low, high : float
        A share or a mean, and its interval, which holds together with the others of its question.
    """

    value: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether 0 is outside the interval."""
        return self.low > 0.0 or self.high < 0.0


@dataclass(frozen=True)
class Compared:
    """One quantity of a question, in all groups: the share of one answer, or a mean.

    Parameters
    ----------
    label : str
        The answer; "mean" for a mean.
    shares : bool
        Whether it is a share.
    groups : tuple of Cell
        One a group.
    differences : tuple of (int, int, Cell)
        The first group less the second.
    """

    label: str
    shares: bool
    groups: tuple[Cell, ...]
    differences: tuple[tuple[int, int, Cell], ...]


def compare(opened: Sequence[Opened], place: int) -> list[Compared]:
    """Compare the groups' answers to one question.

    Parameters
    ----------
    opened : sequence of Opened
        One a group, of the same questions.
    place : int
        The question, from 0.
    """
    question = opened[0].batch.task.draft.questions[place]
    found: list[Compared] = []
    if question.choices:
        labels = [next(iter(choice.values())) for choice in question.choices]
        found += _compared([each.releases[place].analysis for each in opened], labels, shares=True)
    means = _means(opened, question, place)
    return found + (_compared(means, ["mean"], shares=False) if means else [])


def _means(opened: Sequence[Opened], question: Question, place: int) -> list[Estimate]:
    if not question.choices:
        return [each.releases[place].analysis for each in opened]
    return [mean for each in opened if (mean := each.more[place].mean) is not None]


def _compared(estimates: Sequence[Estimate], labels: Sequence[str], *, shares: bool) -> list[Compared]:
    groups, k = len(estimates), len(labels)
    pairs = list(combinations(range(groups), 2))
    miss = 1.0 - CONFIDENCE
    own = [_columns(estimate, 1.0 - miss / (groups * k)) for estimate in estimates]
    wider = [_columns(estimate, 1.0 - miss / (len(pairs) * k)) for estimate in estimates]
    return [
        Compared(
            label,
            shares,
            tuple(Cell(*each[:, j].tolist()) for each in own),
            tuple((one, two, difference(wider[one][:, j], wider[two][:, j])) for one, two in pairs),
        )
        for j, label in enumerate(labels)
    ]


def _columns(estimate: Estimate, level: float) -> FloatArray:
    """Return value, low and high end of each target, shape (3, k); the value is moved into the range first."""
    low, high = estimate.confidence_interval(level)
    value = np.clip(estimate.value, *estimate.support)
    return np.stack([np.atleast_1d(np.asarray(each, dtype=np.float64)) for each in (value, low, high)])


def difference(one: FloatArray, two: FloatArray) -> Cell:
    """Return the first less the second; each is value, low and high end at one level.

    Examples
    --------
    >>> import numpy as np
    >>> difference(np.array([0.5, 0.47, 0.53]), np.array([0.3, 0.26, 0.34]))
    Cell(value=0.2, low=0.15, high=0.25)
    """
    apart = float(one[0] - two[0])
    down, up = float(np.hypot(one[0] - one[1], two[2] - two[0])), float(np.hypot(one[2] - one[0], two[0] - two[1]))
    return Cell(*(round(each, 12) for each in (apart, apart - down, apart + up)))


def to_json(names: Sequence[str], opened: Sequence[Opened]) -> list[dict[str, Any]]:
    """Build one object a question: every answer in every group, and the differences of every two groups.

    Parameters
    ----------
    names : sequence of str
        Of the groups.
    opened : sequence of Opened
        One a group.
    """
    return [
        {"text": next(iter(question.text.values())), "kind": question.kind}
        | {"answers": [_object(names, each) for each in compare(opened, place)]}
        for place, question in enumerate(opened[0].batch.task.draft.questions)
    ]


def _object(names: Sequence[str], compared: Compared) -> dict[str, Any]:
    groups = [{"group": name} | _numbers(cell) for name, cell in zip(names, compared.groups, strict=True)]
    apart = [{"of": names[one], "minus": names[two]} | _numbers(cell) for one, two, cell in compared.differences]
    return {"answer": compared.label, "share": compared.shares, "groups": groups, "differences": apart}


def _numbers(cell: Cell) -> dict[str, Any]:
    return {"estimate": cell.value, "confidence_interval": [cell.low, cell.high]}


HEADINGS = ("answer", "group", "people", "estimate", f"{CONFIDENCE:.0%} interval, all together")


def rows(names: Sequence[str], opened: Sequence[Opened], place: int) -> Iterator[list[str]]:
    """Yield the lines of a question's table, as `HEADINGS`; an answer stands in its first line."""
    people = [count(each.batch.manifest.n) for each in opened]
    for compared in compare(opened, place):
        label = compared.label
        for name, number, cell in zip(names, people, compared.groups, strict=True):
            yield [label, name, number, *_words(cell, shares=compared.shares)]
            label = ""


def differ(names: Sequence[str], opened: Sequence[Opened], place: int) -> str:
    """Say which two groups differ in which answer."""
    found = [
        f"{compared.label}: {names[one]} and {names[two]} by {_apart(cell, shares=compared.shares)}"
        for compared in compare(opened, place)
        for one, two, cell in compared.differences
        if cell.excludes_zero
    ]
    said = "; ".join(found) or "none that this survey can tell"
    return f"Groups that differ (all differences of the question hold together at {CONFIDENCE:.0%}): {said}."


def _words(cell: Cell, *, shares: bool) -> tuple[str, str]:
    if shares:
        return share(cell.value), f"{share(cell.low)} to {share(cell.high)}"
    value, low, high = (
        with_error(each, (cell.high - cell.low) / 4.0 or 1.0) for each in (cell.value, cell.low, cell.high)
    )
    return value, f"{low} to {high}"


def _apart(cell: Cell, *, shares: bool) -> str:
    if shares:
        return f"{points(cell.low)} to {points(cell.high)}"
    low, high = (with_error(each, (cell.high - cell.low) / 4.0 or 1.0) for each in (cell.low, cell.high))
    return f"{low} to {high}"
