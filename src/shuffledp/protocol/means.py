"""The mean of a number from the shuffled reports alone (the formulas stand in `shuffledp.protocol.frequencies`)."""

from __future__ import annotations

import numpy as np

from shuffledp.protocol.estimate import Estimate
from shuffledp.protocol.frequencies import add_up
from shuffledp.protocol.shuffler import ShuffledReports
from shuffledp.protocol.weights import Weights
from shuffledp.randomizers.categorical import RandomizedResponse
from shuffledp.randomizers.numeric import OneBit

_SMOOTHING = 4.0
"""Reports added, half of each kind, before a variance is read off a count (Agresti and Coull 1998)."""


def mean(shuffled: ShuffledReports, randomizer: OneBit, *, weights: Weights = "population") -> Estimate:
    """Estimate the mean from one-bit reports.

    Parameters
    ----------
    shuffled : ShuffledReports
        Seen "reports" or "sum": (sum y - sum s) / (n - 2 sum s), scaled to the range. Seen "levels": by
        `weights`.
    randomizer : OneBit
        The family that drew the reports.
    weights : {"population", "precision"}
        As for `frequency`.

    Returns
    -------
    Estimate
        Shape (), support (low, high). Its variance is the bound (M), the mean in it shrunk towards the
        middle of the range as if four more reports had come, two of each kind.

    Raises
    ------
    InvalidInput
        If no report carries information, or `weights` is unknown.

    Examples
    --------
    >>> shuffled = ShuffledReports(np.array([0, 1, 1, 1]), np.full(4, 700.0), seen="sum")
    >>> float(mean(shuffled, OneBit(0, 100)).value)
    75.0
    """
    n = shuffled.n
    sums = add_up(shuffled, RandomizedResponse(2), weights)
    fraction = (sums.counts[1] - sums.wrong) * sums.scale
    centred = (np.clip(fraction, 0.0, 1.0) - 0.5) * n / (n + _SMOOTHING)
    variance = sums.squares * sums.scale**2 / 4.0 - centred**2 / n
    width = randomizer.high - randomizer.low
    return Estimate(
        value=np.asarray(randomizer.low + width * fraction),
        standard_error=np.asarray(width * np.sqrt(variance)),
        step=width * sums.largest * sums.scale,
        support=(randomizer.low, randomizer.high),
        uninformative=sums.uninformative,
    )
