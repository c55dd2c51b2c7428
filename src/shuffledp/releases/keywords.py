"""The function `release` and its kin with options by keyword, from which each makes `Ask`, `People` and `Terms`.

The static types of the keywords are those of the fields of these three classes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Required, TypedDict, Unpack, overload

from numpy.typing import NDArray

from shuffledp.ledger import Ledger
from shuffledp.numerics.randomness import Randomness
from shuffledp.progress import Progress
from shuffledp.questions.crosstab import Crosstab
from shuffledp.questions.frequency import Frequency
from shuffledp.questions.items import FrequentItems
from shuffledp.questions.mean import Mean
from shuffledp.questions.question import Question, Weights
from shuffledp.questions.ranges import Histogram, Quantiles
from shuffledp.questions.variance import Variance
from shuffledp.questions.vectors import VectorMean
from shuffledp.records.people import RowBudgets, RowsPerPerson
from shuffledp.records.sources import MissingPerson
from shuffledp.releases import run
from shuffledp.releases.margins import Margins
from shuffledp.releases.release import (
    CrosstabRelease,
    GroupedRelease,
    ItemsRelease,
    JointByGroup,
    JointRelease,
    NumberRelease,
    RangeRelease,
    Release,
    SharesRelease,
    VectorRelease,
)
from shuffledp.releases.terms import Ask, People, Terms, told_apart
from shuffledp.setting import Seen
from shuffledp.tables import TableOptions


class _Shared(TypedDict, total=False):
    """Keyword options that every function accepts, except the owners of rows; see `People` and `Terms`."""

    seen: Seen | None
    delta: Required[float]
    rows_per_person: RowsPerPerson
    missing_person: MissingPerson
    missing_budget: float | None
    target_epsilon: float | None
    any_delta: bool
    consent: Mapping[str, float] | None
    where: Mapping[str, Hashable | Sequence[Hashable]] | None
    weights: Weights
    random: Randomness | None
    rows: int | None
    table_options: TableOptions | None
    progress: Progress | None
    ledger: Ledger | str | Path | None
    population: str
    fixed_in_advance: str | None
    title: str


class RunOptions(_Shared, total=False):
    """Keyword options that hold for all questions of a run; `person` names a column."""

    person: str | None


class Options(RunOptions, total=False):
    """The keyword options of a run together with those of a single question; see `Ask`."""

    mechanism: str | None
    missing_as: Hashable
    other: Hashable
    clip: bool


class InMemory(_Shared, total=False):
    """Keyword options of `release` for records in memory; `person` holds the owner of each record, shape (n,)."""

    mechanism: str | None
    missing_as: Hashable
    other: Hashable
    clip: bool
    person: Sequence[Hashable] | NDArray[Any] | None


class OneQuestion(Options, total=False):
    """The keywords of one question: `Options` with the fields of `Ask` and `People`."""

    value: Required[str | Sequence[str]]
    budgets: float | str | RowBudgets | None


class OfGroups(OneQuestion, total=False):
    """The keywords of one question of several groups."""

    by: Required[str]
    groups: Required[Sequence[Hashable]]
    margins: Margins | None


# The verb with its options by keyword.


@overload
def release(
    asked: Mean | Variance, people: Any, terms: None = ..., **options: Unpack[OneQuestion]
) -> NumberRelease: ...


@overload
def release(
    asked: Frequency | Histogram, people: Any, terms: None = ..., **options: Unpack[OneQuestion]
) -> SharesRelease: ...


@overload
def release(asked: Crosstab, people: Any, terms: None = ..., **options: Unpack[OneQuestion]) -> CrosstabRelease: ...


@overload
def release(asked: VectorMean, people: Any, terms: None = ..., **options: Unpack[OneQuestion]) -> VectorRelease: ...


@overload
def release(asked: Quantiles, people: Any, terms: None = ..., **options: Unpack[OneQuestion]) -> RangeRelease: ...


@overload
def release(asked: FrequentItems, people: Any, terms: None = ..., **options: Unpack[OneQuestion]) -> ItemsRelease: ...


@overload
def release(asked: Question, people: Any, terms: None = ..., **options: Unpack[OneQuestion]) -> Release: ...


@overload
def release(asked: Ask, people: People, terms: Terms) -> Release | GroupedRelease: ...


@overload
def release(asked: Sequence[Ask], people: People, terms: Terms) -> JointRelease | JointByGroup: ...


def release(asked: Any, people: Any = None, terms: Terms | None = None, **options: Any) -> Any:
    """Ask a question about people's records, and release a private estimate with its certified guarantee.

    Two forms: `Ask`, `People` and `Terms`, for one question, several, and public groups; or one question, with the
    fields of these classes as keywords.

    Parameters
    ----------
    asked : Ask, sequence of Ask, or Question
        The question with its column, or several; or a question alone, whose column is `value`.
    people : People, or a table
        The people who are asked; with a question alone the data, as `People.data`.
    terms : Terms, optional
        Delta, view, randomness and ledger of the release; not with a question alone.
    **options
        With a question alone: `value` and `delta` (needed), and any other field of `Ask`, `People` and `Terms` but
        groups (`release_by`).

    Returns
    -------
    Release, GroupedRelease, JointRelease or JointByGroup
        For one question a `Release`: a `RangeRelease` for quantiles, an `ItemsRelease` for frequent items; for several
        a `JointRelease`; with groups a `GroupedRelease`, or a `JointByGroup`.

    Raises
    ------
    InvalidInput
        On any argument that is not allowed, for the first row that cannot be used (rows count from 1), and if the
        ledger's limit has no room.

    Examples
    --------
    >>> people = {"vote": ["yes", "no"] * 500, "budget": [0.5, 2.0] * 500}
    >>> release(Frequency(["yes", "no"]), people, value="vote", budgets="budget", seen="reports", delta=1e-6).n
    1000
    >>> ask = Ask(Frequency(["yes", "no"]), "vote")
    >>> release(ask, People(people, "budget"), Terms(seen="reports", delta=1e-6)).n
    1000
    """
    if isinstance(asked, Ask) or (isinstance(asked, Sequence) and terms is not None):
        if options or terms is None or not isinstance(people, People):
            raise TypeError("release() of Ask takes People and Terms, and no keywords besides")
        return run.release(asked, people, terms)  # pyright: ignore[reportUnknownArgumentType]
    return asked_by_keyword("release", asked, people, options, without=("question", "data", *OF_GROUPS))


OF_GROUPS = ("by", "groups", "margins")
"""Fields for public groups: their column, their names, and the margins to which answers are weighted."""


def asked_by_keyword(
    function: str, question: Any, data: Any, options: Mapping[str, Any], without: Sequence[str] = ("question", "data")
) -> Any:
    """Ask one question with its options by keyword, and return its release.

    Parameters
    ----------
    function : str
        Name of the function that was called, for a TypeError.
    question, data
        The question, and the table.
    options : mapping
        Fields of `Ask`, `People` and `Terms`; `value` and `delta` are needed.
    without : sequence of str
        Fields that the function does not accept.
    """
    ask, people, terms = told_apart(options, function, without)
    if "value" not in ask:
        raise TypeError(f"{function}() missing 1 required keyword-only argument: 'value'")
    return run.release(Ask(question, **ask), People(data, **people), Terms(**terms))


@overload
def release_by(question: Mean | Variance, data: Any, **options: Unpack[OfGroups]) -> GroupedRelease[NumberRelease]: ...


@overload
def release_by(
    question: Frequency | Histogram, data: Any, **options: Unpack[OfGroups]
) -> GroupedRelease[SharesRelease]: ...


@overload
def release_by(question: Crosstab, data: Any, **options: Unpack[OfGroups]) -> GroupedRelease[CrosstabRelease]: ...


@overload
def release_by(question: VectorMean, data: Any, **options: Unpack[OfGroups]) -> GroupedRelease[VectorRelease]: ...


@overload
def release_by(question: Quantiles, data: Any, **options: Unpack[OfGroups]) -> GroupedRelease[RangeRelease]: ...


@overload
def release_by(question: FrequentItems, data: Any, **options: Unpack[OfGroups]) -> GroupedRelease[ItemsRelease]: ...


@overload
def release_by(question: Question, data: Any, **options: Unpack[OfGroups]) -> GroupedRelease[Release]: ...


def release_by(
    question: Question,
    data: Any,
    *,
    by: str,
    groups: Sequence[Hashable],
    value: str | Sequence[str],
    budgets: float | str | RowBudgets | None = None,
    margins: Margins | None = None,
    **options: Unpack[Options],
) -> GroupedRelease[Any]:
    """Ask one question of each of several public groups, and release an estimate for each.

    Each group is shuffled by itself, so only its own members hide each other: small groups have weak guarantees. Which
    group a person is in is public, and not protected: it selects whose question she answers.

    Parameters
    ----------
    question, data, value, budgets
        As `Ask` and `People` define them.
    by : str
        The column with each row's group. It must be public, and must not depend on the records. Of several columns with
        a comma between them each pair of words is a group, named "word / word" (`Margins.crossed` names all).
    groups : sequence of hashable
        The names of all groups, at least one, known beforehand. A row of none of them is an error, and so is a person
        with rows in several.
    margins : Margins, optional
        Margins to which the answer will be weighted (`GroupedRelease.weighted`). If they do not fit, nothing is entered
        or drawn.
    **options
        As for `release`; they hold for every group, so `delta` must be below 1/n of the smallest, and a target's budget
        is the one that the smallest group allows. The ledger enters what the question costs the group in which it costs
        most, once.

    Returns
    -------
    GroupedRelease
        One release a group; its guarantee is that of the group in which it is the weakest.

    Raises
    ------
    InvalidInput
        As `release`, for any of the groups; if a group is empty, or `margins` do not fit.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> people = {"vote": ["yes", "no"] * 500, "side": ["north"] * 800 + ["south"] * 200}
    >>> ask = dict(value="vote", budgets=1.0, seen="reports", delta=1e-6)
    >>> grouped = sdp.release_by(sdp.Frequency(["yes", "no"]), people, by="side", groups=["north", "south"], **ask)
    >>> grouped.n, grouped.worst, grouped.guarantee is grouped.releases["south"].guarantee
    (1000, 'south', True)
    """
    own = {"by": by, "groups": groups, "value": value, "budgets": budgets, "margins": margins}
    return asked_by_keyword("release_by", question, data, {**options, **own})


def release_together(
    asked: Sequence[Ask], data: Any, *, budgets: float | str | RowBudgets | None = None, **options: Unpack[RunOptions]
) -> JointRelease:
    """Ask the same people several questions in one pass, with one report of each person to each question.

    Parameters
    ----------
    asked : sequence of Ask
        The questions, at least one; each person sends one report to each, with the whole local budget.
    data, budgets
        As `People` defines them; they hold for every question.
    **options
        As for `release`, without the fields of `Ask`. `delta` is also that of all questions together, and so
        is the target. The releases are entered together, or none of them is.

    Returns
    -------
    JointRelease
        The releases, and the guarantee of all of them together.

    Raises
    ------
    InvalidInput
        As for `release`, for any of the questions.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> people = {"vote": ["yes", "no"] * 500, "hours": [20.0, 40.0] * 500}
    >>> asks = [sdp.Ask(sdp.Frequency(["yes", "no"]), "vote"), sdp.Ask(sdp.Mean(0, 80), "hours")]
    >>> joint = sdp.release_together(asks, people, budgets=1.0, seen="reports", delta=1e-6)
    >>> len(joint.releases), joint.epsilon > joint.releases[0].guarantee.epsilon.upper
    (2, True)
    """
    of_one = [each.name for each in fields(Ask)]
    _, people, terms = told_apart({**options, "budgets": budgets}, "release_together", ("data", *OF_GROUPS, *of_one))
    joint = run.release(list(asked), People(data, **people), Terms(**terms))
    assert isinstance(joint, JointRelease)
    return joint
