"""The mean of a vector from the shuffled reports alone.

With v_i the vector that report i stands for, c_i its slope as drawn (E v_i = c_i x_i/bound), and coefficients a_i >= 0,

    mean_j = bound sum a_i v_ij / A,      A = sum a_i c_i,
    variance <= bound^2 sum a_i^2 E(v_ij^2) / A^2 - mean_j^2 / n                                              (M)

per coordinate j, by Jensen and Cauchy-Schwarz as for the mean of a number: with equality for one budget and equal
records, and covering the assignment of budgets to users. E(v_ij^2) is known, or averaged over the reports themselves,
to which four of the usual size are added: by the number of reports for which the a_i^2 stand, as a few may carry it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.numerics.interval import FloatArray
from shuffledp.protocol.counting import Tally
from shuffledp.protocol.estimate import Estimate
from shuffledp.protocol.shuffler import ShuffledReports
from shuffledp.protocol.sums import LevelSums, Whole
from shuffledp.protocol.weights import SMOOTHING, Weights, effective_number
from shuffledp.randomizers.balls import VectorRandomizer
from shuffledp.randomizers.coordinate import CoordinateSampling
from shuffledp.randomizers.sketch import SignedSketch
from shuffledp.randomizers.vector import DirectionCodebook
from shuffledp.setting import Seen

VECTOR_SEEN: tuple[Seen, ...] = ("reports", "levels")


@dataclass(frozen=True, eq=False)
class VectorEstimate(Estimate):
    """A mean vector; `value` and `standard_error` have shape (d,), intervals hold for each coordinate by itself.

    Parameters
    ----------
    value, standard_error, step, support, uninformative
        As for `Estimate`; for a codebook of many dimensions `step` bounds what all but one in 1e8 reports move.
    """

    @property
    def l2_error(self) -> float:
        """Square root of the mean squared distance between `value` and the mean: of the sum of squared errors."""
        return float(np.sqrt(np.sum(self.standard_error**2)))


class VectorTally(Tally):
    """All that a mean vector needs of the reports so far: per coordinate the sums of values, and of their squares.

    Values are whole multiples of the family's unit (`VectorRandomizer.values`).

    Parameters
    ----------
    task : Task
        Its randomizer is a `VectorRandomizer`.

    Raises
    ------
    InvalidInput
        If there are too many reports at too many levels to be tallied exactly.

    Examples
    --------
    >>> from shuffledp.budgets import Budgets
    >>> from shuffledp.protocol.task import Task
    >>> tally = VectorTally(Task(CoordinateSampling(2), Budgets((700.0,), (4,)), "reports"))
    >>> tally.add(np.array([1, 3, 0, 3]))
    >>> tally.estimate().value.tolist()
    [0.0, 1.0]
    """

    def _layout(self) -> list[LevelSums]:
        family, n = self._family, self.task.budgets.n
        a = self._coefficients(1)
        if isinstance(family, CoordinateSampling):
            return [LevelSums(a, 2 * family.dimension, n)]
        return [LevelSums(row, family.dimension, n, bits) for row, bits in zip((a, a * a), family.bits, strict=True)]

    @property
    def _family(self) -> CoordinateSampling | DirectionCodebook | SignedSketch:
        return self.task.randomizer

    def _take(self, reports: NDArray[Any], levels: Whole | None) -> list[NDArray[Any]]:
        family = self._family
        if isinstance(family, CoordinateSampling):
            return [self._tables[0].add_codes(family.checked(reports), levels)]
        family.read(reports)  # all of them, before one is taken
        sums = [self._empty(table) for table in self._tables]
        for start in range(0, reports.size, family.value_rows):
            rows = slice(start, start + family.value_rows)
            values = family.whole_values(reports[rows])
            parts = values, family.whole_squares(values)
            for total, table, part in zip(sums, self._tables, parts, strict=True):
                total += table.add(part, None if levels is None else levels[rows], _weighted)
        return sums

    def _stated(self, rows: slice) -> FloatArray:
        return self._family.report_slope(self.task.budgets.epsilons[rows])

    def _information(self, law: FloatArray) -> tuple[FloatArray, float]:
        return law, 1.0

    def _estimate(self, uninformative: int) -> VectorEstimate:
        """Estimate the mean from what was counted; see `vector_mean`."""
        family, n, bound = self._family, self.n, self._family.bound
        table, found = self._tables[0], self._sums[0]

        def terms(rows: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
            a, ones = self._at(table, 0, rows), np.ones_like(self._law(rows))
            return a * self._law(rows), a * a * ones, a**4 * ones

        slope, squared, fourth = self._public(terms)
        scale, sums = bound / slope, table.read(found, 0)
        if isinstance(family, CoordinateSampling):
            value = (sums[1::2] - sums[::2]) * scale
            moments = np.full(family.dimension, squared / family.dimension)
        else:
            value = sums * (family.unit * scale)
            squares = self._tables[1].read(self._sums[1], 0) * family.square_unit
            added = SMOOTHING / effective_number(squared, fourth)
            moments = (squares + added * squared * family.typical_square) / (1.0 + added)
        centred = np.clip(value, -bound, bound) * n / (n + SMOOTHING)
        variance = moments * scale**2 - centred**2 / n
        step = float(table.coefficients.max()) * scale * family.largest
        return VectorEstimate(value, np.sqrt(variance), step, (-bound, bound), uninformative)


def _weighted(values: NDArray[Any], weights: Whole | None) -> NDArray[Any]:
    return values.sum(axis=0) if weights is None else np.einsum("n,nd->d", weights, values)


def vector_mean(
    shuffled: ShuffledReports, randomizer: VectorRandomizer, *, weights: Weights = "population"
) -> VectorEstimate:
    """Estimate the mean vector from shuffled reports.

    Parameters
    ----------
    shuffled : ShuffledReports
        Seen "reports": all coefficients are equal. Seen "levels": by `weights`.
    randomizer : VectorRandomizer
        The family that drew the reports.
    weights : {"population", "precision"}
        Seen "levels" only. "population": every informative user counts the same, right even if budgets depend on the
        records. "precision": least noise, right only if they do not. Either way users without information
        (epsilon0 = 0) have weight 0: they are taken to be like the others.

    Returns
    -------
    VectorEstimate
        Its variance is the bound (M).

    Raises
    ------
    InvalidInput
        If no report carries information, `weights` is unknown, or the reports are not the randomizer's.
    """
    tally = VectorTally(shuffled.task(randomizer, weights))
    tally.add(shuffled.reports, shuffled.levels)
    return tally.estimate()
