"""Ask people's records: one question, several in one run, or one of each public group."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy as np

from shuffledp.errors import InvalidInput, Told, shown
from shuffledp.guarantee import Guarantee
from shuffledp.ledger import EVERYBODY, Ledger, LevelTotal, Spending, composed_epsilon
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.progress import Progress
from shuffledp.questions.frequency import Frequency
from shuffledp.questions.items import FrequentItems
from shuffledp.questions.mean import Mean
from shuffledp.questions.question import Question
from shuffledp.questions.ranges import Histogram, Quantiles
from shuffledp.questions.task import Weights
from shuffledp.questions.variance import Variance
from shuffledp.questions.vectors import VectorMean
from shuffledp.records.groups import Groups
from shuffledp.records.owners import RowsPerPerson
from shuffledp.records.people import RowBudgets
from shuffledp.releases.entering import Entering
from shuffledp.releases.margins import Margins, Weighted, post_stratified
from shuffledp.releases.options import Options
from shuffledp.releases.release import (
    SHARES,
    ItemsRelease,
    NumberRelease,
    RangeRelease,
    Release,
    SharesRelease,
    VectorRelease,
)
from shuffledp.releases.run import Ask, Run, row_budgets
from shuffledp.setting import Seen
from shuffledp.tables import BATCH, TableOptions
from shuffledp.tables.table import handed_over

if TYPE_CHECKING:
    import polars as pl


# Ask a question of people's records: count budgets, certify the guarantee, and only then read and randomize records.
#
# The order is part of the promise. What leaves is a `Release`: an estimate together with its guarantee.


@overload
def release(
    question: Mean | Variance,
    data: Any,
    *,
    value: str | Sequence[str],
    budgets: float | str | RowBudgets | None = ...,
    **options: Unpack[Options],
) -> NumberRelease: ...


@overload
def release(
    question: Frequency | Histogram,
    data: Any,
    *,
    value: str | Sequence[str],
    budgets: float | str | RowBudgets | None = ...,
    **options: Unpack[Options],
) -> SharesRelease: ...


@overload
def release(
    question: VectorMean,
    data: Any,
    *,
    value: str | Sequence[str],
    budgets: float | str | RowBudgets | None = ...,
    **options: Unpack[Options],
) -> VectorRelease: ...


@overload
def release(
    question: Quantiles,
    data: Any,
    *,
    value: str | Sequence[str],
    budgets: float | str | RowBudgets | None = ...,
    **options: Unpack[Options],
) -> RangeRelease: ...


@overload
def release(
    question: FrequentItems,
    data: Any,
    *,
    value: str | Sequence[str],
    budgets: float | str | RowBudgets | None = ...,
    **options: Unpack[Options],
) -> ItemsRelease: ...


@overload
def release(
    question: Question,
    data: Any,
    *,
    value: str | Sequence[str],
    budgets: float | str | RowBudgets | None = ...,
    **options: Unpack[Options],
) -> Release: ...


def release(
    question: Question,
    data: Any,
    *,
    value: str | Sequence[str],
    budgets: float | str | RowBudgets | None = None,
    target_epsilon: float | None = None,
    seen: Seen | None = None,
    delta: float,
    mechanism: str | None = None,
    person: str | None = None,
    rows_per_person: RowsPerPerson = "refuse",
    missing_as: Hashable | None = None,
    other: Hashable | None = None,
    missing_budget: float | None = None,
    any_delta: bool = False,
    clip: bool = False,
    consent: Mapping[str, float] | None = None,
    weights: Weights = "population",
    random: Randomness | None = None,
    rows: int = BATCH,
    table_options: TableOptions | None = None,
    progress: Progress | None = None,
    ledger: Ledger | str | Path | None = None,
    population: str = EVERYBODY,
    fixed_in_advance: str | None = None,
    title: str = "",
) -> Release:
    """Ask one question of people's records, and release a private estimate with its certified guarantee.

    Parameters
    ----------
    question : Question
        `Frequency`, `FrequentItems`, `Mean`, `Histogram`, `Quantiles`, `Variance` or `VectorMean`.
    data : str, Path, dataframe, or mapping of str to array
        A file of text (CSV, TSV and the like) or of Parquet, plain or packed; ``"-"`` for standard input; any dataframe
        that speaks the Arrow interface; or arrays by name.
    value : str or sequence of str
        The column with the records; one column for each coordinate of a vector.
    budgets : float, str or RowBudgets
        One local budget for all (nats, 0 to 700), the name of the column with each row's budget, or the long form.
        Budgets are public, and must not depend on the records. Either this or `target_epsilon`.
    target_epsilon : float, optional
        The central epsilon that must hold, at `delta`: the largest local budget for which it is certified is found, one
        for everybody, and asked with. ``guarantee.setting.budgets`` tells it.
    seen : {"reports", "levels", "sum"} or None
        What the analyzer sees: the shuffled reports without, or with, their senders' budgets, or only their sum (a
        mean). It may be left out where there is one budget: then these views tell the same.
    delta : float
        Central delta of the guarantee, in (0, 1/n).
    mechanism : str, optional
        One of ``question.mechanisms``; default: the first of them.
    person : str, optional
        The column that tells whose row it is. Without it each row is taken as a person, and every output says so.
    rows_per_person : {"refuse", "one"} or int
        What happens to people with several rows. "refuse": an error says how many there are. "one": one row of each is
        used, chosen by secure randomness without looking at the records. A number K: every row is used, and the
        guarantee is for groups of K rows.
    missing_as : hashable, optional
        What a missing record counts as: a category, or a number of the range. The record is mapped before it is
        randomized, so the guarantee holds unchanged.
    other : hashable, optional
        The category that an unlisted record counts as, or the item that one outside the domain of items does.
    missing_budget : float, optional
        The budget (nats) of rows whose budget is missing; 0: they send no information.
    any_delta : bool
        Allow delta of 1/n and above. Such a guarantee lets one person's record be published.
    clip : bool
        Move values outside the range to its nearer end (shorten vectors), which changes the target; else they are
        refused. How many were moved is not known to the analyzer.
    consent : mapping of str to float, optional
        The budget that each word of the budget column stands for.
    weights : {"population", "precision"}
        How levels are combined when they are seen, see `frequency`.
    random : Randomness, optional
        Default `secure_random()`. `simulation_random(seed)` marks the release as not private.
    rows : int
        About how many rows are held at a time.
    table_options : TableOptions, optional
        Separator, encoding and marks of numbers of a text file, where they are not to be found out; and whether
        refusals show what stands in a row (``show_values``).
    progress : callable, optional
        Called with the share of the work that is done, from 0 to 1.
    ledger : Ledger, str or Path, optional
        Where the release is entered before it is returned. Its limit is asked before a record is read.
    population : str
        The name that the ledger gives these people. Names that differ are taken to overlap, unless the ledger says
        otherwise.
    fixed_in_advance : str, optional
        Name of the plan that fixed this release before the first answer of the plan was seen.
    title : str
        What the entry is called; default: the question.

    Returns
    -------
    Release
        A `RangeRelease` for quantiles, an `ItemsRelease` for frequent items.

    Raises
    ------
    InvalidInput
        On any bad argument, for the first bad row, counting from 1, and if the ledger's limit has no room.

    Examples
    --------
    >>> from shuffledp.questions.frequency import Frequency
    >>> people = {"vote": ["yes", "no"] * 500, "budget": [0.5, 2.0] * 500}
    >>> release(Frequency(["yes", "no"]), people, value="vote", budgets="budget", seen="reports", delta=1e-6).n
    1000
    """
    asked = Ask(question, value, mechanism, missing_as, other, clip)
    run = Run(
        row_budgets(budgets, consent, missing_budget, target_epsilon),
        seen,
        delta,
        person,
        rows_per_person,
        any_delta,
        weights,
        random,
        rows,
        table_options,
        progress,
        Entering.into(ledger, population, fixed_in_advance, title),
        target_epsilon,
    )
    return run.ask([asked], data)[0]


# One question asked of public groups: each group is a population of its own, and nobody is in two of them.


@dataclass(frozen=True, eq=False, repr=False)
class GroupedRelease(Told):
    """Releases of one question, one a group.

    Parameters
    ----------
    by : str
        The column with the groups.
    releases : mapping of hashable to Release
        By the group's name, in the order in which they were named.
    """

    by: str
    releases: Mapping[Hashable, Release] = field(repr=False)

    def _told(self) -> str:
        return (
            f"{len(self.releases)} groups by {self.by}: central epsilon at most {self.guarantee.epsilon.upper!r} at "
            f"delta = {self.guarantee.delta!r}, the number of {self.worst}"
        )

    def _rows(self) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        return (self.by, "answer"), ([str(name), repr(each)[1:-1]] for name, each in self.releases.items())

    @property
    def worst(self) -> Hashable:
        """The group whose guarantee is the weakest: as a rule the smallest."""
        return max(self.releases, key=lambda name: self.releases[name].guarantee.epsilon.upper)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee that holds for everybody: that of `worst`."""
        return self.releases[self.worst].guarantee

    @property
    def n(self) -> int:
        """People in all groups."""
        return sum(release.n for release in self.releases.values())

    @property
    def private(self) -> bool:
        """False if the noise came from `simulation_random`."""
        return all(release.private for release in self.releases.values())

    def weighted(self, margins: Margins) -> Weighted:
        """Weight the groups' shares to their public shares of the population: post-stratification.

        Parameters
        ----------
        margins : Margins
            Has the variable `by`, with these groups and no others.

        Returns
        -------
        Weighted
            Its variance is that of the noise and of sampling each group's people from all of hers.

        Raises
        ------
        InvalidInput
            If the question has neither shares nor a mean, the margins do not fit, or a group has one person.

        Notes
        -----
        Of a mean the spread of the people's numbers is not known: it is put at its largest, (mean - low)(high - mean),
        but for one-bit, whose reports have one law however they spread, so that its own error holds sampling too.
        """
        first = next(iter(self.releases.values()))
        answered = [release.n for release in self.releases.values()]
        targets = _targets(margins, first.question, Groups(self.by, tuple(self.releases)), answered)
        values: list[FloatArray] = []
        variances: list[FloatArray] = []
        for release in self.releases.values():
            low, high = release.analysis.support
            inside = np.clip(release.estimate, low, high)
            sampling = (inside - low) * (high - inside) / (release.n - 1.0) * (release.mechanism != "one-bit")
            values.append(np.asarray(release.estimate))
            variances.append(np.asarray(release.standard_error) ** 2 + sampling)
        found = post_stratified(values, variances, answered, targets, margins.people)
        return replace(found, support=first.analysis.support)

    @overload
    def to_frame(
        self, kind: Literal["polars"] = ..., *, level: float = ..., simultaneous: bool = ..., amounts: bool = ...
    ) -> pl.DataFrame: ...

    @overload
    def to_frame(
        self, kind: Literal["pandas"], *, level: float = ..., simultaneous: bool = ..., amounts: bool = ...
    ) -> Any: ...

    def to_frame(
        self, kind: str = "polars", *, level: float = 0.95, simultaneous: bool = False, amounts: bool = False
    ) -> Any:
        """Return all groups as one dataframe: ``group``, ``n``, and the columns of `Release.to_frame`.

        Parameters
        ----------
        kind, level, simultaneous, amounts
            As for `Release.to_frame`; intervals hold together within a group.
        """
        import polars as pl

        parts: list[pl.DataFrame] = []
        for name, release in self.releases.items():
            frame = release.to_frame(level=level, simultaneous=simultaneous, amounts=amounts)
            own = [pl.lit(str(name)).alias("group"), pl.lit(release.n).alias("n")]
            epsilon = pl.lit(release.guarantee.epsilon.upper).alias("central_epsilon")
            parts.append(frame.select(*own, pl.all(), epsilon))
        return handed_over(pl.concat(parts), kind)


def release_by(
    question: Question,
    data: Any,
    *,
    by: str,
    groups: Sequence[Hashable],
    value: str | Sequence[str],
    budgets: float | str | RowBudgets | None = None,
    target_epsilon: float | None = None,
    seen: Seen | None = None,
    delta: float,
    mechanism: str | None = None,
    person: str | None = None,
    rows_per_person: RowsPerPerson = "refuse",
    missing_as: Hashable | None = None,
    other: Hashable | None = None,
    missing_budget: float | None = None,
    any_delta: bool = False,
    clip: bool = False,
    consent: Mapping[str, float] | None = None,
    weights: Weights = "population",
    random: Randomness | None = None,
    rows: int = BATCH,
    table_options: TableOptions | None = None,
    progress: Progress | None = None,
    ledger: Ledger | str | Path | None = None,
    population: str = EVERYBODY,
    fixed_in_advance: str | None = None,
    title: str = "",
    margins: Margins | None = None,
) -> GroupedRelease:
    """Ask one question of each of several public groups, and release an estimate for each.

    Each group is shuffled by itself, so only its own members hide each other: small groups have weak guarantees. Which
    group a person is in is public, and not protected: it selects whose question she answers.

    Parameters
    ----------
    question, data
        As for `release`.
    by : str
        The column with each row's group. It must be public, and must not depend on the records.
    groups : sequence of hashable
        The names of all groups, at least one, known beforehand. A row of none of them is an error, and so is a person
        with rows in several.
    value, budgets, target_epsilon, seen, delta, mechanism, person, rows_per_person, missing_as, other, missing_budget
        As for `release`; they hold for every group, so delta must be below 1/n of the smallest, and a target's budget
        is the one that the smallest group allows.
    any_delta, clip
        As for `release`.
    consent, weights, random, rows, table_options, progress, ledger, population, fixed_in_advance, title
        As for `release`. The ledger enters what the question costs the group in which it costs most, once.
    margins : Margins, optional
        What the answer will be `GroupedRelease.weighted` to: if that cannot be done, nothing is entered or drawn.

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
    >>> found = sdp.release_by(sdp.Frequency(["yes", "no"]), people, by="side", groups=["north", "south"], **ask)
    >>> found.n, found.worst, found.guarantee is found.releases["south"].guarantee
    (1000, 'south', True)
    """
    asked = Ask(question, value, mechanism, missing_as, other, clip)
    named = Groups(by, tuple(groups))
    entering = Entering.into(ledger, population, fixed_in_advance, title)
    who = row_budgets(budgets, consent, missing_budget, target_epsilon)
    run = Run(
        who, seen, delta, person, rows_per_person, any_delta, weights, random, rows, table_options, progress, entering,
        target_epsilon,
    )  # fmt: skip
    check = None if margins is None else partial(_targets, margins, question, named)
    found = run.ask_groups(asked, data, named, check)
    return GroupedRelease(by, dict(zip(named.names, found, strict=True)))


def _targets(margins: Margins, question: Question, groups: Groups, answered: Sequence[int]) -> FloatArray:
    """Return the groups' shares of the population, or raise InvalidInput if answers cannot be weighted to them."""
    if question.name not in (*SHARES, "mean"):
        raise InvalidInput(
            f"only shares of categories or bins, and means, are weighted to margins; got {question.name}; ask for a "
            "histogram in its place"
        )
    for name, people in zip(groups.names, answered, strict=True):
        if people < 2:
            raise InvalidInput(f"group {shown(name)} has one person, which says nothing of its spread; join groups")
    return margins.of(groups.column, [str(name) for name in groups.names], answered)


# Several questions in one run: the guarantee of all of them together first, then one pass over the records.


@dataclass(frozen=True, repr=False)
class JointRelease(Told):
    """Several releases about the same people, and what they cost together.

    Parameters
    ----------
    releases : tuple of Release
        One a question, in order; the guarantee of each is its own.
    epsilon, delta : float
        Central guarantee of all of them together, certified from above before a record was read.
    levels : tuple of LevelTotal
        The same for the people of each budget; empty for more than 8 budgets.
    """

    releases: tuple[Release, ...]
    epsilon: float
    delta: float
    levels: tuple[LevelTotal, ...]

    def _told(self) -> str:
        several = len(self.releases)
        return (
            f"{several} {'answer' if several == 1 else 'answers together'}: central epsilon at most "
            f"{self.epsilon!r} at delta = {self.delta!r}"
        )

    def _rows(self) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        return ("answer",), ([repr(release)[1:-1]] for release in self.releases)


def release_together(
    asked: Sequence[Ask],
    data: Any,
    *,
    budgets: float | str | RowBudgets | None = None,
    target_epsilon: float | None = None,
    seen: Seen | None = None,
    delta: float,
    person: str | None = None,
    rows_per_person: RowsPerPerson = "refuse",
    missing_budget: float | None = None,
    any_delta: bool = False,
    consent: Mapping[str, float] | None = None,
    weights: Weights = "population",
    random: Randomness | None = None,
    rows: int = BATCH,
    table_options: TableOptions | None = None,
    progress: Progress | None = None,
    ledger: Ledger | str | Path | None = None,
    population: str = EVERYBODY,
    fixed_in_advance: str | None = None,
    title: str = "",
) -> JointRelease:
    """Ask several questions of the same people in one pass, each with one report a person.

    Parameters
    ----------
    asked : sequence of Ask
        The questions, at least one; each person sends one report to each, with the whole local budget.
    data, budgets, target_epsilon, seen, delta, person, rows_per_person, missing_budget, any_delta, consent, weights
        As for `release`; they hold for every question. ``delta`` is that of all questions together, too, and so is the
        target.
    random, rows
        As for `release`.
    table_options, progress, ledger, population, fixed_in_advance, title
        As for `release`. The releases are entered together, or none of them is.

    Returns
    -------
    JointRelease
        The releases, and the guarantee of all of them together.

    Raises
    ------
    InvalidInput
        As `release`, for any of the questions.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> people = {"vote": ["yes", "no"] * 500, "hours": [20.0, 40.0] * 500}
    >>> asked = [sdp.Ask(sdp.Frequency(["yes", "no"]), "vote"), sdp.Ask(sdp.Mean(0, 80), "hours")]
    >>> found = sdp.release_together(asked, people, budgets=1.0, seen="reports", delta=1e-6)
    >>> len(found.releases), found.epsilon > found.releases[0].guarantee.epsilon.upper
    (2, True)
    """
    if not asked:
        raise InvalidInput("there is no question; ask at least one")
    entering = Entering.into(ledger, population, fixed_in_advance, title)
    who = row_budgets(budgets, consent, missing_budget, target_epsilon)
    run = Run(
        who, seen, delta, person, rows_per_person, any_delta, weights, random, rows, table_options, progress, entering,
        target_epsilon,
    )  # fmt: skip
    together: list[tuple[float, tuple[LevelTotal, ...]]] = []

    def worth(guarantees: Sequence[Guarantee]) -> float:
        return composed_epsilon([Spending.of(each).worst for each in guarantees], delta)

    releases = run.ask(asked, data, lambda costs: together.append(_composed(costs, delta)), worth)
    return JointRelease(tuple(releases), together[0][0], delta, together[0][1])


def _composed(costs: Sequence[Spending], delta: float) -> tuple[float, tuple[LevelTotal, ...]]:
    """Compose the questions, for everybody and level by level: the people of a level are the same in all of them."""
    levels = tuple(
        LevelTotal(level[0].epsilon0, composed_epsilon([each.profile for each in level], delta))
        for level in zip(*(cost.levels for cost in costs), strict=True)
    )
    return composed_epsilon([cost.worst for cost in costs], delta), levels
