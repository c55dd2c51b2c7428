"""What every question takes besides itself, its column and its budgets: the types of the options of `release`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Required, TypedDict

from shuffledp.ledger import Ledger
from shuffledp.numerics.randomness import Randomness
from shuffledp.progress import Progress
from shuffledp.questions.task import Weights
from shuffledp.records.owners import RowsPerPerson
from shuffledp.setting import Seen
from shuffledp.tables import TableOptions


class Options(TypedDict, total=False):
    """What every question takes besides the question itself; see `shuffledp.release`."""

    seen: Seen | None
    delta: Required[float]
    mechanism: str | None
    person: str | None
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
