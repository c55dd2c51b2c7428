"""The mean of a vector of bounded norm: the question, its families, and the estimate from shuffled reports."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.budgets import Budgets
from shuffledp.errors import MAX_COUNTED, WIDEST, InvalidInput, choice, shown, whole_number
from shuffledp.errors import population as checked_population
from shuffledp.numerics.floats import FloatArray
from shuffledp.questions.estimate import Estimate
from shuffledp.questions.question import (
    CONFIDENCE,
    SMOOTHING,
    Numbers,
    Question,
    Shape,
    View,
    Weights,
    effective_number,
    reach,
)
from shuffledp.questions.tally import LevelSums, ShuffledReports, Tally, Whole
from shuffledp.randomizers.balls import VectorRandomizer, positive_number
from shuffledp.randomizers.sketch import CoordinateSampling, SignedSketch
from shuffledp.randomizers.vector import DirectionCodebook
from shuffledp.records.columns import Recode, bounded_vectors
from shuffledp.setting import Seen

# Which family answers the question of a mean vector, by the norm that is bounded.

NORMS = ("l2", "linf", "l1")


_WORTH = 0.9
"""Share of the simple family's error below which the codebook, which costs more to draw, replaces it."""


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
        The norm that is bounded. "l2": `DirectionCodebook`; "linf": `CoordinateSampling`, "l1": `SignedSketch`, or the
        codebook for the smallest enclosing ball, where that is clearly better (the cube: from epsilon0 of about 2).
    bound : float
        Largest norm, positive.
    epsilon0, counts : array_like, shape () or (levels,)
        Budgets (nats, 0 to 700), and the number of users at each.
    slack : float
        As for `DirectionCodebook.design`: larger values are faster and less accurate.

    Raises
    ------
    InvalidInput
        If an argument is outside its range.
    """
    choice(norm, "norm", NORMS)
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
    """Return the predicted E |estimate - mean|^2 times n for the worst records, from the users' mean slope."""
    slope = float(np.sum(family.report_slope(budgets) * users) / users.sum())
    return np.inf if slope == 0.0 else family.bound**2 * family.value_energy / slope**2


# The questions: what is asked of the records, which randomizers can answer it, and what a record becomes.
#
# A question is a public value. It never holds a record. `shuffledp.releases.run.release` asks it.


@dataclass(frozen=True)
class VectorMean(Question):
    """The question what the mean of vectors of bounded norm is.

    Parameters
    ----------
    dimension : int
        Length of a vector, at least 1.
    norm : float
        Largest norm of a vector, positive. It is public: reading it off the vectors would leak.
    kind : {"l2", "linf", "l1"}
        The norm that is bounded. It determines the randomizer of least predicted error, see `vector_family`.
    slack : float
        Allowed relative excess of the error over the best codebook's; larger values are faster. Default 0.03.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> VectorMean(dimension=8, norm=1.0).column_count
    8
    """

    dimension: int
    norm: float
    kind: str = "l2"
    slack: float = 0.03
    names: tuple[str, ...] = field(default=(), init=False, repr=False, compare=False)
    """The column of each coordinate; empty where one array holds the vectors. `named_by` sets it."""

    name: ClassVar[str] = "vector-mean"
    reads: ClassVar[Literal["texts", "numbers"]] = "numbers"
    mechanisms: ClassVar[tuple[str, ...]] = ("least-error",)
    answers = "vector"
    shape: ClassVar[Shape] = Shape(
        "Mean vector",
        "What is the mean of {0}?",
        "mean",
        "number",
        label="coordinate",
        keys=("coordinate",),
        amount="sum",
        excerpt="first",
        noun="coordinates",
        read=("Intervals hold one by one.", "Intervals hold all together."),
    )

    def __post_init__(self) -> None:
        size = whole_number(self.dimension, "dimension, the length of a vector, must be a whole number", 1, MAX_COUNTED)
        object.__setattr__(self, "dimension", size)
        object.__setattr__(self, "norm", float(positive_number(self.norm, "norm")))
        if not 1.0 / WIDEST <= self.norm <= WIDEST:
            raise InvalidInput(
                f"norm must lie between {1.0 / WIDEST:g} and {WIDEST:g}: count in other units; got {self.norm}"
            )
        choice(self.kind, "kind", NORMS)

    @property
    def column_count(self) -> int:
        """Number of columns of one record: one for each coordinate."""
        return self.dimension

    def named_by(self, columns: Sequence[str]) -> VectorMean:
        """Return this question with the names of its coordinates; see `Question.named_by`."""
        named = copy(self)
        object.__setattr__(named, "names", tuple(columns) if len(columns) == self.dimension > 1 else ())
        return named

    def settled(self, recode: Recode) -> Recode:
        """Return ``recode`` after checking that a missing vector becomes the zero vector or is refused.

        See `Question.settled`.
        """
        if recode.other is not None:
            raise InvalidInput("`other` maps unlisted categories, and a mean of vectors has none")
        if recode.missing_as is not None and recode.missing_as not in (0, "0"):
            raise InvalidInput(
                f"`missing_as` must be 0 for vectors (a missing coordinate counts as 0); got {shown(recode.missing_as)}"
            )
        return Recode(None if recode.missing_as is None else 0.0, None, recode.clip)

    def randomizer(self, mechanism: str, budgets: Budgets, seen: Seen) -> Any:
        """Return the family that `vector_family` chooses for these budgets; see `Question.randomizer`."""
        del seen
        choice(mechanism, "mechanism", self.mechanisms)
        epsilons, counts = budgets.epsilons, budgets.counts
        return vector_family(self.dimension, self.kind, self.norm, epsilons, counts, slack=self.slack)

    def records(self, columns: Sequence[Any], recode: Recode, before: int) -> FloatArray:
        """Return the vectors, shape (n, dimension); see `Question.records`."""
        return bounded_vectors(columns, self.dimension, self.kind, self.norm, recode, before)

    def view(
        self,
        estimate: Estimate,
        records: int,
        *,
        level: float = CONFIDENCE,
        simultaneous: bool = False,
        simplex: bool = False,
    ) -> View:
        """Return the view of an estimated mean vector; see `Question.view`."""
        del simplex
        index = coordinates(self, estimate.value.size)
        return View(
            replace(self.shape, keys=tuple(index)),
            Numbers.of(estimate, level, simultaneous=simultaneous),
            list(zip(*index.values(), strict=True)),
            _called,
            simultaneous=simultaneous,
            support=estimate.support,
            records=records,
            after=reach(estimate),
        )


def coordinates(question: Question, size: int) -> dict[str, list[Any]]:
    """Return what tells the coordinates apart: their places from 0, and their columns where these are known.

    Parameters
    ----------
    question : Question
        The question; only a `VectorMean` may have names.
    size : int
        Number of coordinates.
    """
    names = question.names if isinstance(question, VectorMean) else ()
    return {"coordinate": list(range(size))} | ({"column": list(names)} if names else {})


def _called(place: int, column: str | None = None) -> str:
    return str(place + 1) if column is None else column


# The mean of a vector from the shuffled reports alone.
#
# With v_i the vector that report i stands for, c_i its slope as drawn (E v_i = c_i x_i/bound), and coefficients a_i >=
# 0,
#
#     mean_j = bound sum a_i v_ij / A,      A = sum a_i c_i,
#     variance <= bound^2 sum a_i^2 E(v_ij^2) / A^2 - mean_j^2 / n                                              (M)
#
# per coordinate j, by Jensen and Cauchy-Schwarz as for the mean of a number: with equality for one budget and equal
# records, and covering the assignment of budgets to users. E(v_ij^2) is known, or averaged over the reports themselves,
# to which four of the usual size are added: by the number of reports for which the a_i^2 stand, as a few may carry it.

VECTOR_SEEN: tuple[Seen, ...] = ("reports", "levels")


@dataclass(frozen=True, eq=False, repr=False)
class VectorEstimate(Estimate):
    """An estimated mean vector with an interval for each coordinate by itself.

    Parameters
    ----------
    value, standard_error, step, support, uninformative
        As for `Estimate`, of shape (d,); for a codebook of many dimensions `step` bounds the effect of all but one in
        1e8 reports.
    """

    @property
    def l2_error(self) -> float:
        """Root mean squared Euclidean distance between `value` and the true mean: the root of the sum of squares."""
        return float(np.sqrt(np.sum(self.standard_error**2)))


class VectorTally(Tally):
    """Exact sums for a mean vector: for each coordinate, the sums of the reports' values so far and of their squares.

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
    >>> from shuffledp.questions.question import Task
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
        """Return the estimated mean vector from the sums; see `vector_mean`."""
        family, n, bound = self._family, self.n, self._family.bound
        table, totals = self._tables[0], self._sums[0]

        def terms(rows: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
            a, ones = self._at(table, 0, rows), np.ones_like(self._law(rows))
            return a * self._law(rows), a * a * ones, a**4 * ones

        slope, squared, fourth = self._public(terms)
        scale, sums = bound / slope, table.read(totals, 0)
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
        Seen "levels" only. "population": every informative user has the same weight, which is unbiased even if budgets
        depend on the records. "precision": weights of least noise, unbiased only if they do not. Either way users
        without information (epsilon0 = 0) have weight 0: they are assumed to be like the others.

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
