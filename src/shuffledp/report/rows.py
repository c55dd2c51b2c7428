"""The rows of a frequency estimate, one per category, as every renderer lists them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from shuffledp.protocol.release import Release

CONFIDENCE = 0.95
"""Level of the confidence intervals that are shown."""


@dataclass(frozen=True)
class FrequencyRow:
    """One category's estimate.

    Parameters
    ----------
    category : str
        The category.
    frequency, standard_error : float
        Estimated share of the users (it may come out slightly below 0 or above 1), and its standard error.
    low, high : float
        Ends of the confidence interval at the level `CONFIDENCE`.
    """

    category: str
    frequency: float
    standard_error: float
    low: float
    high: float


def frequency_rows(release: Release) -> list[FrequencyRow]:
    """List a frequency release category by category."""
    low, high = release.confidence_interval(CONFIDENCE)
    columns = (release.estimate, release.standard_error, low, high)
    values = np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])
    return [
        FrequencyRow(str(category), *map(float, row))
        for category, row in zip(release.categories or (), values, strict=True)
    ]
