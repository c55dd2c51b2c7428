"""The ledger's options of commands that are not questions of a table, as typed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shuffledp.shell.left import opened_ledger


@dataclass(frozen=True)
class Entered:
    """Where a release is entered, and under which names; `shuffledp.release` defines them."""

    ledger: Path | None
    population: str
    fixed_in_advance: str | None

    def arguments(self) -> dict[str, Any]:
        """Return the same, as the library's arguments; the ledger is opened."""
        names = {"population": self.population, "fixed_in_advance": self.fixed_in_advance}
        return {"ledger": opened_ledger(self.ledger), **names}
