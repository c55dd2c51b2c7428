"""The mean of a number from the shuffled reports alone, with its standard error.

With value_i the reading of report i, E(value_i | t) = offset_i + slope_i t for a record t in [0, 1], and coefficients
a_i >= 0 with sum_i a_i slope_i = 1,

    m = sum_i a_i (value_i - offset_i),    E m = sum_i w_i t_i,    w_i = a_i slope_i                               (E)

with a_i all equal where levels are withheld, proportional to 1/slope_i ("population") or to slope_i/Var_i(t = 1/2)
("precision") where they are seen: as for frequencies (`shuffledp.protocol.frequencies`, where is said what is random).
With u = t - 1/2, Var_i = U_i + V_i u + C_i u^2, q the mean of u^2, and budgets assigned to users at random where the
w_i differ, the variance of m is

    sum a_i^2 U_i + mean(u) sum a_i^2 V_i + q (sum a_i^2 C_i + D) - D mean(u)^2,   D = (sum w_i^2 - 1/n) n/(n-1)     (N)

Noise is in U_i, known beforehand. If the factor of q is negative (one bit: C_i = -slope_i^2), q is at least mean(u)^2,
and more simply, with C_i <= -r slope_i^2 for all i, by Jensen and Cauchy-Schwarz and for any values,

    variance <= sum a_i^2 U_i - r mean(u)^2/n                                                                       (M)

which for one bit of one budget is the binomial variance of the count, and which covers the assignment of budgets too.
Else q is read off the reports: (value_i - centre_i)^2 - U_i has the mean (C_i + slope_i^2) u_i^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray
from shuffledp.protocol.estimate import Estimate
from shuffledp.protocol.shuffler import SHUFFLED, ShuffledReports
from shuffledp.protocol.weights import WEIGHTS, Weights
from shuffledp.randomizers.base import NumberLaw, NumberRandomizer
from shuffledp.setting import Seen

_CHUNK = 1 << 15  # reports at a time, so that temporaries stay in cache
_SMOOTHING = 4.0
"""Reports added, half at each end of the range, before a variance is read off reports (Agresti and Coull 1998)."""
_ENOUGH = 16.0
_LIMB = 26


@dataclass(frozen=True, eq=False)
class LongTailedEstimate(Estimate):
    """An estimate whose noise has no bound, but tails no heavier than Laplace noise of scale `step`."""

    def confidence_interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Both ends of a two-sided confidence interval; see `Estimate.confidence_interval`.

        With v = standard_error^2 and c = `step`: z standard_error where v is at least 16 z^2 c^2; below, where few
        reports decide, sqrt(2 v x) + c x with x = log(2/(1 - level)) (Bernstein's inequality for log-moment
        generating functions up to v s^2/(2 (1 - c s)), as sums of Laplace noise of scale c have at most).

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Raises
        ------
        InvalidInput
            If level is not in (0, 1).
        """
        if not 0.0 < level < 1.0:
            raise InvalidInput(f"a confidence level must lie in (0, 1); got {level}")
        z, x = -ndtri((1.0 - level) / 2.0), np.log(2.0 / (1.0 - level))
        many = self.standard_error >= np.sqrt(_ENOUGH) * z * self.step
        half = np.where(many, z * self.standard_error, self.standard_error * np.sqrt(2.0 * x) + self.step * x)
        low, high = self.support
        return np.clip(self.value - half, low, high), np.clip(self.value + half, low, high)


class _Law:
    """A `NumberLaw` around the middle of the range."""

    def __init__(self, law: NumberLaw) -> None:
        flat, tilt, self.curved = law.variance
        self.offset, self.slope = law.offset, law.slope
        self.centre = law.offset + law.slope / 2.0
        self.middle = flat + tilt / 2.0 + self.curved / 4.0
        self.tilted = tilt + self.curved
        self.around = np.maximum(self.curved + law.slope**2, 0.0)
        bounded = np.isfinite(law.largest)
        self.bounded = bool(bounded.all())
        # of unbounded noise: the scale of Laplace noise of that variance
        self.reach = np.where(bounded, law.largest, np.sqrt(np.maximum(self.middle, 0.0) / 2.0))

    def coefficients(self, weights: Weights | None) -> FloatArray:
        """Give the a_i of (E) up to their common factor; weights None: levels are withheld."""
        if weights is None:
            return np.ones_like(self.slope)
        above, below = (self.slope, self.middle) if weights == "precision" else (np.ones_like(self.slope), self.slope)
        return np.divide(above, below, out=np.zeros_like(self.slope), where=self.slope > 0.0)


class MeanTally:
    """All that an estimate of a mean needs of the reports so far; its size does not depend on their number.

    Without levels the readings, whole numbers, are added up exactly; the sums over budgets are right up to rounding.

    Parameters
    ----------
    randomizer : NumberRandomizer
        The member of the family that draws the reports.
    seen : {"reports", "sum", "levels"}
        "levels": `add` is told the budget of each report. Else which budgets there are, in any order.
    weights : {"population", "precision"}
        As for `mean`.

    Raises
    ------
    InvalidInput
        If `seen` or `weights` is unknown.

    Examples
    --------
    >>> from shuffledp.randomizers import OneBit
    >>> monday, tuesday = (MeanTally(OneBit(0, 100), seen="reports") for _ in range(2))
    >>> monday.add(np.array([0, 1]), 700.0)
    >>> tuesday.add(np.array([1, 1]), 700.0)
    >>> monday.merge(tuesday)
    >>> float(monday.estimate().value)
    75.0
    """

    def __init__(self, randomizer: NumberRandomizer, *, seen: Seen, weights: Weights = "population") -> None:
        if seen not in SHUFFLED:
            raise InvalidInput(f"reports are tallied as one of {', '.join(SHUFFLED)}; got {seen!r}")
        if weights not in WEIGHTS:
            raise InvalidInput(f"weights must be one of {', '.join(WEIGHTS)}; got {weights!r}")
        self.randomizer = randomizer
        self.seen: Seen = seen
        self.weights: Weights | None = weights if seen == "levels" else None
        self.n = 0
        self._sums = _Sums()

    def add(self, reports: NDArray[Any], epsilons: ArrayLike, deltas: ArrayLike = 0.0) -> None:
        """Take more reports.

        Parameters
        ----------
        reports : ndarray of whole numbers, shape (n,)
            As the randomizer drew them.
        epsilons, deltas : float or array_like, shape (n,)
            Local budgets, nats and probability: one for all, or one each. With levels entry i is that of report i.

        Raises
        ------
        InvalidInput
            If a budget is bad or the lengths differ. Nothing is taken then.
        """
        if reports.ndim != 1:
            raise InvalidInput(f"reports of a number must be one-dimensional; got shape {reports.shape}")
        budgets, slack = _column(epsilons, reports.size, "epsilon0"), _column(deltas, reports.size, "delta0")
        sums = self._sums.copy()
        single = _Law(self.randomizer.number_law(budgets, slack)) if not (budgets.ndim or slack.ndim) else None
        for start in range(0, reports.size, _CHUNK):
            rows = slice(start, start + _CHUNK)
            law = single or _Law(self.randomizer.number_law(_part(budgets, rows), _part(slack, rows)))
            self._take(sums, self.randomizer.report_values(reports[rows]), law)
        self._sums = sums
        self.n += reports.size

    def merge(self, other: MeanTally) -> None:
        """Add what another tally of the same task has taken.

        Raises
        ------
        InvalidInput
            If it is of another randomizer, another `seen` or other weights.
        """
        mine = (self.randomizer, self.seen, self.weights)
        theirs = (other.randomizer, other.seen, other.weights)
        if mine != theirs:
            raise InvalidInput(f"tallies of different tasks cannot be merged: {mine} and {theirs}")
        self._sums.merge(other._sums)
        self.n += other.n

    def estimate(self) -> Estimate:
        """Estimate the mean from what was taken; see `mean`."""
        fraction, variance = self.fraction()
        scale, width = self._sums.scale, self.randomizer.high - self.randomizer.low
        kind = Estimate if self._sums.bounded else LongTailedEstimate
        return kind(
            value=np.asarray(self.randomizer.low + width * fraction),
            standard_error=np.asarray(width * np.sqrt(variance)),
            step=width * self._sums.reach * scale,
            support=(self.randomizer.low, self.randomizer.high),
            uninformative=self._sums.uninformative,
        )

    def fraction(self) -> tuple[float, float]:
        """Return m of (E), as a fraction of the range, and its variance by (N) or (M).

        Raises
        ------
        InvalidInput
            If no report carries information.
        """
        sums, n = self._sums, self.n
        if sums.uninformative == n:
            why = "every epsilon0 is 0 or too small; give some users a larger one" if n else "there are none"
            raise InvalidInput(f"no report carries information ({why}); nothing can be estimated")
        scale = sums.scale
        fraction = float(sums.reading - sums.offset) * scale
        off = min(max(fraction, 0.0), 1.0) - 0.5
        centred = off * n / (n + _SMOOTHING)
        uneven = max(sums.weights_squared * scale**2 - 1.0 / n, 0.0) * n / max(n - 1, 1)
        variance = (sums.middle + off * sums.tilted) * scale**2
        factor = sums.curved * scale**2 + uneven
        if factor < 0.0:
            return fraction, variance - sums.relief * centred**2 / n
        return fraction, variance + factor * max(self._square(), centred**2) - uneven * centred**2

    def _square(self) -> float:
        """Mean of u^2 as the reports tell it, at most 1/4; 1/4 where they do not."""
        if not self._sums.around > 0.0:
            return 0.25
        found = (self._sums.excess / self._sums.around + 0.25 * _SMOOTHING / self.n) / (1.0 + _SMOOTHING / self.n)
        return min(found, 0.25)

    def _take(self, sums: _Sums, values: FloatArray, law: _Law) -> None:
        b = law.coefficients(self.weights)
        times = 1 if law.slope.ndim else values.size
        squared, weight = b * b, b * law.slope
        if self.weights is None:
            sums.reading += _whole_sum(values)
            sums.offset += times * float(np.sum(law.offset))
            parts = np.ones_like(b)  # which report has which budget is not known
        else:
            sums.reading += float(np.sum(b * (values - law.offset)))
            parts = np.divide(np.maximum(law.curved, 0.0), law.around, out=np.zeros_like(b), where=law.around > 0.0)
        if self.seen != "sum":
            excess = squared * parts * ((values - law.centre) ** 2 - law.middle)
            sums.excess += float(np.sum(excess))
            sums.around += times * float(np.sum(squared * parts * law.around))
        sums.weights += times * float(np.sum(weight))
        sums.weights_squared += times * float(np.sum(weight * weight))
        sums.middle += times * float(np.sum(squared * law.middle))
        sums.tilted += times * float(np.sum(squared * law.tilted))
        sums.curved += times * float(np.sum(squared * law.curved))
        known = law.slope > 0.0
        sums.uninformative += times * int(np.count_nonzero(~known))
        sums.reach = max(sums.reach, float(np.max(b * law.reach)))
        sums.bounded &= law.bounded
        square = np.where(known, law.slope, 1.0) ** 2
        sums.relief = min(sums.relief, float(np.min(np.where(known, np.clip(-law.curved / square, 0.0, 1.0), 1.0))))


@dataclass
class _Sums:
    """The sums in (E), (N), (M) over coefficients b_i that lack their common factor: a_i = scale b_i."""

    reading: float = 0  # sum b_i value_i, whole where levels are withheld; with levels less sum b_i offset_i
    offset: float = 0.0  # sum b_i offset_i, where levels are withheld
    weights: float = 0.0  # sum b_i slope_i
    weights_squared: float = 0.0  # sum (b_i slope_i)^2
    middle: float = 0.0  # sum b_i^2 U_i
    tilted: float = 0.0  # sum b_i^2 V_i
    curved: float = 0.0  # sum b_i^2 C_i
    excess: float = 0.0  # sum b_i^2 h_i ((value_i - centre_i)^2 - U_i)
    around: float = 0.0  # its mean over q: sum b_i^2 h_i (C_i + slope_i^2)
    uninformative: int = 0
    reach: float = 0.0  # max b_i |value_i - mean|, or of the scale of unbounded noise
    relief: float = 1.0  # largest r <= 1 of (M)
    bounded: bool = True

    @property
    def scale(self) -> float:
        """What makes the weights add to 1."""
        return 1.0 / self.weights

    def copy(self) -> _Sums:
        """Return the same sums."""
        return _Sums(**vars(self))

    def merge(self, other: _Sums) -> None:
        """Add sums of other reports."""
        merged = {name: value + getattr(other, name) for name, value in vars(self).items()}
        merged["reach"] = max(self.reach, other.reach)
        merged["relief"] = min(self.relief, other.relief)
        merged["bounded"] = self.bounded and other.bounded
        vars(self).update(merged)


def mean(shuffled: ShuffledReports, randomizer: NumberRandomizer, *, weights: Weights = "population") -> Estimate:
    """Estimate the mean from shuffled reports about a number.

    Parameters
    ----------
    shuffled : ShuffledReports
        Seen "reports" or "sum": (sum value - sum offset)/sum slope, scaled to the range. Seen "levels": by `weights`.
    randomizer : NumberRandomizer
        The member of the family that drew the reports.
    weights : {"population", "precision"}
        As for `frequency`.

    Returns
    -------
    Estimate
        Shape (), support (low, high). Its variance is (N) or (M), the mean in it shrunk towards the middle of the
        range, and the mean square towards its largest value, as if four more reports had come from the ends.

    Raises
    ------
    InvalidInput
        If no report carries information, or `weights` is unknown.

    Examples
    --------
    >>> from shuffledp.randomizers import OneBit
    >>> shuffled = ShuffledReports(np.array([0, 1, 1, 1]), np.full(4, 700.0), seen="sum")
    >>> float(mean(shuffled, OneBit(0, 100)).value)
    75.0
    """
    tally = MeanTally(randomizer, seen=shuffled.seen, weights=weights)
    tally.add(shuffled.reports, shuffled.epsilons, 0.0 if shuffled.deltas is None else shuffled.deltas)
    return tally.estimate()


def _column(values: ArrayLike, n: int, name: str) -> FloatArray:
    """One number for all, or one each; a number written n times is one number."""
    column = np.asarray(values, dtype=np.float64)
    if column.ndim and column.shape != (n,):
        raise InvalidInput(f"{n} reports need as many {name}, or one; got {column.size}")
    return column[0] if column.ndim and n and column.strides == (0,) else column


def _part(column: FloatArray, rows: slice) -> FloatArray:
    return column[rows] if column.ndim else column


def _whole_sum(values: FloatArray) -> int | float:
    """Exact sum of whole numbers below 2^62; a float sum of others."""
    whole = np.rint(values)
    if not np.array_equal(whole, values):
        return float(np.sum(values))
    integers = whole.astype(np.int64)
    return (int(np.sum(integers >> _LIMB)) << _LIMB) + int(np.sum(integers & ((1 << _LIMB) - 1)))
