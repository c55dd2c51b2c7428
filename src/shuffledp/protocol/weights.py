"""How reports of different budgets are weighted."""

from __future__ import annotations

from typing import Literal

Weights = Literal["population", "precision"]
WEIGHTS: tuple[Weights, ...] = ("population", "precision")
