"""Which family answers the question of a mean vector, by the norm that is bounded."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.numerics.interval import FloatArray
from shuffledp.protocol.choices import check_choice
from shuffledp.randomizers.balls import VectorRandomizer, positive_number
from shuffledp.randomizers.checks import population as checked_population
from shuffledp.randomizers.coordinate import CoordinateSampling
from shuffledp.randomizers.sketch import SignedSketch
from shuffledp.randomizers.vector import DirectionCodebook

NORMS = ("l2", "linf", "l1")
_WORTH = 0.9
"""A codebook, which costs more to draw, replaces a coordinate's bit if it lowers the error below this share."""


def vector_family(
    dimension: int,
    norm: str,
    bound: float,
    epsilon0: ArrayLike,
    counts: ArrayLike = 1,
    *,
    slack: float = 0.03,
) -> VectorRandomizer:
    """Return the family of least predicted error for vectors of bounded norm; all are mixture families.

    Parameters
    ----------
    dimension : int
        Length d of the vectors, at least 1.
    norm : {"l2", "linf", "l1"}
        Which norm is bounded. "l2": `DirectionCodebook`; "linf": `CoordinateSampling`, "l1": `SignedSketch`, or the
        codebook for the smallest ball around, where that is clearly better (the cube: from epsilon0 of about 2).
    bound : float
        Largest norm, positive.
    epsilon0, counts : array_like, shape () or (levels,)
        Budgets (nats, 0 to 700), and how many users hold each.
    slack : float
        As for `DirectionCodebook.design`: more is faster.

    Raises
    ------
    InvalidInput
        On a bad argument.
    """
    check_choice("norm", norm, NORMS)
    largest = positive_number(bound, "bound")
    budgets, users = checked_population(epsilon0, counts)
    radius = largest * np.sqrt(dimension) if norm == "linf" else largest
    codebook = DirectionCodebook.design(dimension, budgets, users, bound=float(radius), slack=slack)
    if norm == "l2":
        return codebook
    simple = (
        CoordinateSampling(dimension, largest)
        if norm == "linf"
        else SignedSketch.design(dimension, budgets, users, bound=largest)
    )
    return codebook if _noise(codebook, budgets, users) < _WORTH * _noise(simple, budgets, users) else simple


def _noise(
    family: DirectionCodebook | CoordinateSampling | SignedSketch, budgets: FloatArray, users: FloatArray
) -> float:
    """Predicted E |estimate - mean|^2 times n, of the worst records: from the users' mean slope."""
    slope = float(np.sum(family.report_slope(budgets) * users) / users.sum())
    return np.inf if slope == 0.0 else family.bound**2 * family.value_energy / slope**2
