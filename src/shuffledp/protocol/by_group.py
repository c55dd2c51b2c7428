"""One question asked of public groups: each group is a population of its own, and nobody is in two of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from shuffledp.errors import InvalidInput, shown
from shuffledp.guarantee import Guarantee
from shuffledp.ledger import EVERYBODY, Ledger
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.progress import Progress
from shuffledp.protocol.entering import Entering
from shuffledp.protocol.group_names import Groups
from shuffledp.protocol.margins import Margins, Weighted, post_stratified
from shuffledp.protocol.owners import RowsPerPerson
from shuffledp.protocol.people import RowBudgets
from shuffledp.protocol.preparing import row_budgets
from shuffledp.protocol.questions import Question
from shuffledp.protocol.released import SHARES, Release
from shuffledp.protocol.running import Ask, Run
from shuffledp.protocol.weights import Weights
from shuffledp.setting import Seen
from shuffledp.tables import BATCH, TableOptions
from shuffledp.tables.frames import handed_over
from shuffledp.told import Told

if TYPE_CHECKING:
    import polars as pl


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
            If the question has no shares, the margins do not fit, or a group has one person.
        """
        first = next(iter(self.releases.values()))
        answered = [release.n for release in self.releases.values()]
        targets = _targets(margins, first.question, Groups(self.by, tuple(self.releases)), answered)
        values: list[FloatArray] = []
        variances: list[FloatArray] = []
        for release in self.releases.values():
            share = np.clip(release.estimate, 0.0, 1.0)
            sampling = share * (1.0 - share) / (release.n - 1.0)
            values.append(np.asarray(release.estimate))
            variances.append(np.asarray(release.standard_error) ** 2 + sampling)
        return post_stratified(values, variances, answered, targets, margins.people)

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
    budgets: float | str | RowBudgets,
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
    value, budgets, seen, delta, mechanism, person, rows_per_person, missing_as, other, missing_budget, any_delta, clip
        As for `release`; they hold for every group, so delta must be below 1/n of the smallest.
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
    who = row_budgets(budgets, consent, missing_budget)
    run = Run(
        who, seen, delta, person, rows_per_person, any_delta, weights, random, rows, table_options, progress, entering
    )
    check = None if margins is None else partial(_targets, margins, question, named)
    found = run.ask_groups(asked, data, named, check)
    return GroupedRelease(by, dict(zip(named.names, found, strict=True)))


def _targets(margins: Margins, question: Question, groups: Groups, answered: Sequence[int]) -> FloatArray:
    """Return the groups' shares of the population, or raise InvalidInput if answers cannot be weighted to them."""
    if question.name not in SHARES:
        raise InvalidInput(f"only shares of categories or bins are weighted to margins; got {question.name}")
    for name, people in zip(groups.names, answered, strict=True):
        if people < 2:
            raise InvalidInput(f"group {shown(name)} has one person, which says nothing of its spread; join groups")
    return margins.of(groups.column, [str(name) for name in groups.names], answered)
