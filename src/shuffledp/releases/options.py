"""What every question takes besides itself, its column and its budgets: the types of the options of `release`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Required, TypedDict

from numpy.typing import NDArray

from shuffledp.ledger import Ledger
from shuffledp.numerics.randomness import Randomness
from shuffledp.progress import Progress
from shuffledp.questions.task import Weights
from shuffledp.records.owners import RowsPerPerson
from shuffledp.setting import Seen
from shuffledp.tables import TableOptions


class _Options(TypedDict, total=False):
    """What every question takes besides the question itself, and whose rows they are; see `shuffledp.release`."""

    seen: Seen | None
    delta: Required[float]
    mechanism: str | None
    any_delta: bool
    rows_per_person: RowsPerPerson
    missing_as: Hashable
    other: Hashable
    missing_budget: float | None
    target_epsilon: float | None
    clip: bool
    consent: Mapping[str, float] | None
    weights: Weights
    random: Randomness | None
    rows: int
    table_options: TableOptions | None
    progress: Progress | None
    ledger: Ledger | str | Path | None
    population: str
    fixed_in_advance: str | None
    title: str


class Options(_Options, total=False):
    """The same, of a table: `person` names a column."""

    person: str | None


class InMemory(_Options, total=False):
    """The same, of records in memory: `person` is a name for each record, of its owner."""

    person: Sequence[Hashable] | NDArray[Any] | None
