"""Weighting of a table's cells to public margins of the population that the answers represent.

Answers to two questions asked apart are permuted apart: nothing ties them together, so only a question of kind table,
which asks for both at once, can be weighted. A variable of the margins belongs to the rows or the columns of a table
whose names are its categories. With one of them weighting is post-stratification, with both raking (`releases.margins`:
(R) and (S), so that variances hold the noise of devices and dummies, and sampling). Intervals are those of `spread`,
with the law of one cell of the dummies brought to the variance of their part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.asked import SurveyQuestion, Text
from shuffledp.collection.estimates import Spread, SpreadEstimate, joined, slopes_of
from shuffledp.collection.kinds import Cells
from shuffledp.collection.task import Draft
from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.floats import FloatArray
from shuffledp.questions.estimate import CountEstimate, Estimate
from shuffledp.questions.frequency import project_to_simplex
from shuffledp.releases.margins import Margins, covariance_of_shares, raked

Fit = dict[int, tuple[str | None, str | None]]
"""For each table that can be weighted, by index, the variables of its rows and of its columns."""
_AT_ONCE = "ask both in one table, with the margins' categories as rows: two questions asked apart are permuted apart"


@dataclass(frozen=True, eq=False)
class WeightedTable:
    """A table weighted to public margins.

    Parameters
    ----------
    variables : tuple of (str or None, str or None)
        The variables of the rows and of the columns; None where the margins have none.
    known : tuple of (tuple of float)
        The public shares of each known variable's categories.
    cells : Estimate
        Shares of the cells in the population, row by row.
    sums : Estimate or None
        Shares of the rows or columns without a known variable; None where both have one.
    answered : int
        Number of people who answered.
    population : int or None
        Number of people in the population, if the margins count people.
    """

    variables: tuple[str | None, str | None]
    known: tuple[tuple[float, ...], ...]
    cells: Estimate
    sums: Estimate | None
    answered: int
    population: int | None

    @property
    def missing(self) -> int | None:
        """Number of people of the population who did not answer; None where the population's size is not known."""
        return None if self.population is None else self.population - self.answered


def fit_margins(draft: Draft, margins: Margins) -> Fit:
    """Return the tables of a task to which margins belong; no batch has to be opened.

    Parameters
    ----------
    draft : Draft
        The task's draft.
    margins : Margins
        Public shares; a variable's name is free, its categories are the rows or columns of tables.

    Raises
    ------
    InvalidInput
        If a variable belongs to no table; the message says what to do.
    """
    fit: Fit = {}
    used: set[str] = set()
    for place, question in enumerate(draft.questions):
        axes = (_variable(margins, question.rows), _variable(margins, question.columns))
        if question.kind == "table" and axes != (None, None):
            fit[place] = axes
            used |= {name for name in axes if name is not None}
    for variable, shares in margins.shares.items():
        if variable not in used:
            _refuse(draft, margins, variable, set(shares))
    return fit


def places_of(question: SurveyQuestion) -> NDArray[np.int64]:
    """Return row index and column index of each cell of a two-way table, row by row, shape (2, cells)."""
    return np.indices((len(question.rows), len(question.columns))).reshape(2, -1)


def _names(texts: Sequence[Text]) -> list[str]:
    return [next(iter(text.values())) for text in texts]


def _variable(margins: Margins, texts: Sequence[Text]) -> str | None:
    """Return the variable with exactly these categories; None if there is none."""
    names = set(_names(texts))
    return next((name for name, shares in margins.shares.items() if names and set(shares) == names), None)


def _refuse(draft: Draft, margins: Margins, variable: str, categories: set[str]) -> None:
    """Refuse a variable that belongs to no table, with advice."""
    for question in draft.questions:
        for texts in (question.rows, question.columns):
            if categories & set(_names(texts)):
                margins.of(variable, _names(texts))  # names the category that is missing or too many
    for place, question in enumerate(draft.questions, start=1):
        if categories <= set(_names(question.choices)):
            raise InvalidInput(
                f"the margins of {shown(variable)} are about question {place}, which was asked by itself, so no other "
                f"answer can be weighted by it; {_AT_ONCE}"
            )
    raise InvalidInput(
        f"the margins of {shown(variable)} fit no table of this survey: their categories "
        f"({shown(', '.join(margins.shares[variable]))}) are neither the rows nor the columns of one; {_AT_ONCE}"
    )


def weigh(
    draft: Draft, place: int, shares: Estimate, counts: Sequence[int], margins: Margins, answered: int
) -> WeightedTable:
    """Return a table weighted to public margins.

    Parameters
    ----------
    draft : Draft
        The task's draft.
    place : int
        Index of the question, from 0; one of `fit_margins`.
    shares : Estimate
        From `estimates.estimate_question`.
    counts : sequence of int
        Number of people at each level whose reports were used.
    margins : Margins
        Public shares.
    answered : int
        Number of people who answered.

    Raises
    ------
    InvalidInput
        If more answered than there are people, or the estimated share of a category is not above 0.
    """
    question, slopes = draft.questions[place], slopes_of(draft, place)
    if not isinstance(shares, CountEstimate):
        raise InvalidInput(f"question {place + 1} is no table of choices; leave --margins out")
    cells = Cells(question, slopes, tuple(counts), shares)
    axes = fit_margins(draft, margins)[place]
    which, targets = _targets(question, shares.value, margins, axes)
    k = shares.value.size
    own, other = ([lead + (1.0 - s) / k for s in slopes.slopes for lead in (part * s,)] for part in (1.0, 0.0))
    one = Spread(cells.one_cell, 1.0)
    unit = one.variance or 1.0  # without dummies their part is 0
    dummies = one.variance * k / (k - 1) * (np.eye(k) - np.full((k, k), 1.0 / k))
    both = covariance_of_shares(counts, own, other, project_to_simplex(shares.value), dummies)
    try:
        weighted = raked(shares.value, both, which, targets, answered, margins.people)
    except InvalidInput as error:
        raise InvalidInput(
            f"question {place + 1}: {error}; or leave --margins out: the same batch can be opened again"
        ) from None
    part = raked(shares.value, dummies / cells.total**2, which, targets, answered, margins.people)
    most = float((weighted.value / np.where(shares.value == 0.0, 1.0, shares.value)).max()) / cells.total

    def summed(indicators: FloatArray) -> Estimate:
        return joined([
            SpreadEstimate(
                value=np.array([each @ weighted.value]),
                standard_error=np.array([np.sqrt(max(each @ weighted.covariance @ each, 0.0))]),
                step=most,
                support=(0.0, 1.0),
                uninformative=0,
                added=Spread(one.chances, float(np.sqrt(max(each @ part.covariance @ each, 0.0) / unit))),
            )
            for each in indicators
        ])  # fmt: skip

    places = places_of(question)
    free = [places[axis] for axis in (0, 1) if axes[axis] is None]
    sums = summed(np.eye(free[0].max() + 1)[:, free[0]]) if free else None
    public = tuple(tuple(target.tolist()) for target in targets)
    return WeightedTable(axes, public, summed(np.eye(k)), sums, answered, margins.people)


def _targets(
    question: SurveyQuestion, shares: FloatArray, margins: Margins, axes: tuple[str | None, str | None]
) -> tuple[list[NDArray[np.int64]], list[FloatArray]]:
    """Return, for each known variable, the category of every cell and the public shares."""
    places = places_of(question)
    which: list[NDArray[np.int64]] = []
    targets: list[FloatArray] = []
    for axis, (variable, texts) in enumerate(zip(axes, (question.rows, question.columns), strict=True)):
        if variable is None:
            continue
        names = _names(texts)
        for name, share in zip(names, np.bincount(places[axis], weights=shares), strict=True):
            if share <= 0.0:
                raise InvalidInput(
                    f"{shown(variable)}: {shown(name)} has no answers that can be told from noise, so it cannot be "
                    "weighted; leave --margins out: the same batch can be opened again"
                )
        which.append(places[axis])
        targets.append(margins.of(variable, names))
    return which, targets
