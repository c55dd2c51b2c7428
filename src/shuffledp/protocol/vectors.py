"""The mean of a vector from the shuffled reports alone.

With v_i the vector that report i stands for, c_i its slope as drawn (E v_i = c_i x_i/bound), and coefficients a_i >= 0,

    mean_j = bound sum a_i v_ij / A,      A = sum a_i c_i,
    variance <= bound^2 sum a_i^2 E(v_ij^2) / A^2 - mean_j^2 / n                                              (M)

per coordinate j, by Jensen and Cauchy-Schwarz as for the mean of a number: with equality for one budget and equal
records, and covering the assignment of budgets to users. E(v_ij^2) is known, or averaged over the reports themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.protocol.collect import census, check_choice, collect, guarantee_for, make_release
from shuffledp.protocol.columns import as_array
from shuffledp.protocol.estimate import Estimate
from shuffledp.protocol.release import Release
from shuffledp.protocol.shuffler import SHUFFLED, ShuffledReports
from shuffledp.protocol.weights import WEIGHTS, Weights
from shuffledp.randomizers.balls import VectorRandomizer, norms, positive_number
from shuffledp.randomizers.checks import population as checked_population
from shuffledp.randomizers.coordinate import CoordinateSampling
from shuffledp.randomizers.sketch import SignedSketch
from shuffledp.randomizers.vector import DirectionCodebook
from shuffledp.setting import Seen

NORMS = ("l2", "linf", "l1")
VECTOR_SEEN: tuple[Seen, ...] = ("reports", "levels")
_SMOOTHING = 4.0
"""Reports added around 0 before the mean enters its own variance (Agresti and Coull 1998)."""
_WORTH = 0.9
"""A codebook, which costs more to draw, replaces a coordinate's bit if it lowers the error below this share."""


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


class VectorTally:
    """All that a mean vector needs of the reports so far; its size does not depend on their number.

    Parameters
    ----------
    randomizer : VectorRandomizer
        The family that draws the reports.
    seen : {"reports", "sum", "levels"}
        "levels": `add` is told the budget of each report. Else which budgets there are, in any order.
    weights : {"population", "precision"}
        As for `vector_mean`.

    Raises
    ------
    InvalidInput
        If `seen` or `weights` is unknown.

    Examples
    --------
    >>> tally = VectorTally(CoordinateSampling(2), seen="reports")
    >>> tally.add(np.array([1, 3, 0, 3]), 700.0)
    >>> tally.estimate().value.tolist()
    [0.0, 1.0]
    """

    def __init__(self, randomizer: VectorRandomizer, *, seen: Seen, weights: Weights = "population") -> None:
        check_choice("seen", seen, SHUFFLED)
        check_choice("weights", weights, WEIGHTS)
        self.randomizer = randomizer
        self.weights: Weights | None = weights if seen == "levels" else None
        self.n = 0
        self._uninformative = 0
        self._largest = 0.0
        self._total = np.zeros(randomizer.dimension)
        self._squares = np.zeros(randomizer.dimension)
        self._slope = 0.0  # sum a_i c_i
        self._squared = 0.0  # sum a_i^2

    def add(self, reports: NDArray[np.int64], epsilons: ArrayLike) -> None:
        """Count more reports.

        Parameters
        ----------
        reports : ndarray of int64, shape (n,)
            As the randomizer drew them.
        epsilons : float or array_like, shape (n,)
            Local budgets, nats: one for all, or one each. With levels entry i is the budget of report i.

        Raises
        ------
        InvalidInput
            If the reports are not the randomizer's, a budget is bad, or the lengths differ. Nothing is counted then.
        """
        budgets = np.asarray(epsilons, dtype=np.float64)
        if reports.ndim != 1 or (budgets.ndim and budgets.shape != reports.shape):
            raise InvalidInput(f"{reports.size} reports need as many budgets, or one; got {budgets.size}")
        if reports.size == 0:
            return
        slopes = np.broadcast_to(self.randomizer.report_slope(budgets), reports.shape)
        a = self._coefficients(slopes)
        total, squares = self.randomizer.add_up(reports, a)
        self._total += total
        self._squares += squares
        self._slope += float(np.sum(a * slopes))
        self._squared += float(np.sum(a * a))
        self._largest = max(self._largest, float(a.max()))
        self._uninformative += int(np.count_nonzero(slopes == 0.0))
        self.n += reports.size

    def merge(self, other: VectorTally) -> None:
        """Add what another tally of the same task has counted.

        Raises
        ------
        InvalidInput
            If it is of another randomizer, another `seen` or other weights.
        """
        if (self.randomizer, self.weights) != (other.randomizer, other.weights):
            raise InvalidInput(
                f"tallies of different tasks cannot be merged: {self.randomizer}, weights {self.weights}, and "
                f"{other.randomizer}, weights {other.weights}"
            )
        self._total += other._total
        self._squares += other._squares
        self._slope += other._slope
        self._squared += other._squared
        self._largest = max(self._largest, other._largest)
        self._uninformative += other._uninformative
        self.n += other.n

    def estimate(self) -> VectorEstimate:
        """Estimate the mean from what was counted; see `vector_mean`.

        Raises
        ------
        InvalidInput
            If no report carries information.
        """
        if self._uninformative == self.n:
            why = "every epsilon0 is 0 or too small; give some users a larger one" if self.n else "there are none"
            raise InvalidInput(f"no report carries information ({why}); nothing can be estimated")
        family, n, bound = self.randomizer, self.n, self.randomizer.bound
        scale = bound / self._slope
        value = self._total * scale
        centred = np.clip(value, -bound, bound) * n / (n + _SMOOTHING)
        moments = family.second_moments(self._squares, self._squared, n)
        variance = moments * scale**2 - centred**2 / n
        step = self._largest * scale * family.largest
        return VectorEstimate(value, np.sqrt(variance), step, (-bound, bound), self._uninformative)

    def _coefficients(self, slopes: FloatArray) -> FloatArray:
        """Give the a_i, up to a common factor."""
        if self.weights is None:
            return np.ones_like(slopes)
        if self.weights == "precision":
            return slopes.copy()
        return np.divide(1.0, slopes, out=np.zeros_like(slopes), where=slopes > 0.0)


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
    tally = VectorTally(randomizer, seen=shuffled.seen, weights=weights)
    tally.add(shuffled.reports, shuffled.epsilons)
    return tally.estimate()


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


def estimate_vector_mean(
    vectors: Any,
    epsilon0: ArrayLike,
    *,
    norm: str,
    bound: float,
    seen: Seen,
    delta: float,
    clip: bool = False,
    weights: Weights = "population",
    slack: float = 0.03,
    random: Randomness | None = None,
) -> Release:
    """Estimate the mean of vectors of bounded norm in the shuffle model.

    Parameters
    ----------
    vectors : array_like, shape (n, d)
        One vector per user.
    epsilon0 : float or array_like, shape (n,)
        Local budgets (nats, 0 to 700); one for all or one per user. Public, and independent of the vectors.
    norm : {"l2", "linf", "l1"}
        Which norm is bounded; the randomizer is chosen by it, see `vector_family`. No default.
    bound : float
        Largest norm, positive. It is public: reading it off the vectors would leak.
    seen : {"reports", "levels"}
        Whether the analyst sees the reports without, or with, their senders' budgets. No default.
    delta : float
        Central delta of the guarantee, in (0, 1). No default.
    clip : bool
        Shorten vectors beyond the bound (l1, l2: scaled; linf: entry by entry), which changes the target; else they
        are refused.
    weights : {"population", "precision"}
        How levels are combined when they are seen, see `vector_mean`.
    slack : float
        How much the error may exceed the best codebook's; more is faster. Default 0.03.
    random : Randomness, optional
        Default `secure_random()`. `simulation_random(seed)` marks the release as not private.

    Returns
    -------
    Release
        ``.estimate`` has shape (d,), ``.analysis`` is a `VectorEstimate`.

    Raises
    ------
    InvalidInput
        On any bad argument; a vector that is too long or not finite is named with its row, counting from 1.

    Examples
    --------
    >>> release = estimate_vector_mean(np.eye(3)[[0, 1] * 500], 1.0, norm="l2", bound=1, seen="reports", delta=1e-6)
    >>> release.private, release.estimate.shape
    (True, (3,))
    """
    check_choice("seen", seen, VECTOR_SEEN)
    table = as_array(vectors)
    if table.ndim != 2 or 0 in table.shape:
        raise InvalidInput(f"vectors must have shape (n, d), n and d at least 1; got {table.shape}")
    who = census(table, epsilon0, weights, random)
    family = vector_family(table.shape[1], norm, bound, who.population.epsilons, who.population.counts, slack=slack)
    guarantee = guarantee_for(who.population, family, seen, delta)
    shuffled = collect(_bounded(table, norm, bound, clip=clip), who.budgets, family, seen, who.source)
    analysis = replace(vector_mean(shuffled, family, weights=weights), support=(-float(bound), float(bound)))
    return make_release(analysis, guarantee, who.source, weights)


def _bounded(table: NDArray[Any], norm: str, bound: float, *, clip: bool) -> FloatArray:
    """Vectors within the bound; missing entries are left to be refused."""
    try:
        numbers = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("vectors must be numbers; an entry is none") from None
    if not clip:
        return numbers
    if norm == "linf":
        return np.clip(numbers, -bound, bound)
    lengths = norms(numbers, norm)
    return numbers * np.where(lengths > bound, bound / np.where(lengths > 0.0, lengths, 1.0), 1.0)[:, None]
