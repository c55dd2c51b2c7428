"""Several questions in one run: the guarantee of all of them together first, then one pass over the records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shuffledp.errors import InvalidInput
from shuffledp.ledger import EVERYBODY, Ledger, LevelTotal, Spending, composed_epsilon
from shuffledp.numerics.randomness import Randomness
from shuffledp.progress import Progress
from shuffledp.protocol.entering import Entering
from shuffledp.protocol.owners import RowsPerPerson
from shuffledp.protocol.people import RowBudgets
from shuffledp.protocol.preparing import row_budgets
from shuffledp.protocol.released import Release
from shuffledp.protocol.running import Ask, Run
from shuffledp.protocol.weights import Weights
from shuffledp.setting import Seen
from shuffledp.tables import BATCH, TableOptions
from shuffledp.told import Told


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
    budgets: float | str | RowBudgets,
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
    data, budgets, seen, delta, person, rows_per_person, missing_budget, any_delta, consent, weights, random, rows
        As for `release`; they hold for every question. ``delta`` is that of all questions together, too.
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
    who = row_budgets(budgets, consent, missing_budget)
    run = Run(
        who, seen, delta, person, rows_per_person, any_delta, weights, random, rows, table_options, progress, entering
    )
    together: list[tuple[float, tuple[LevelTotal, ...]]] = []
    releases = run.ask(asked, data, lambda costs: together.append(_composed(costs, delta)))
    return JointRelease(tuple(releases), together[0][0], delta, together[0][1])


def _composed(costs: Sequence[Spending], delta: float) -> tuple[float, tuple[LevelTotal, ...]]:
    """Compose the questions, for everybody and level by level: the people of a level are the same in all of them."""
    levels = tuple(
        LevelTotal(level[0].epsilon0, composed_epsilon([each.profile for each in level], delta))
        for level in zip(*(cost.levels for cost in costs), strict=True)
    )
    return composed_epsilon([cost.worst for cost in costs], delta), levels
