"""The variance of a number: the question, and the estimate from shuffled reports with its standard error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput, choice, report_rows
from shuffledp.in_words import near
from shuffledp.numerics.floats import FloatArray
from shuffledp.questions.estimate import Estimate, around, chance_of_a_miss
from shuffledp.questions.mean import POINT, Number
from shuffledp.questions.question import CONFIDENCE, Numbers, Shape, View, Weights
from shuffledp.questions.tally import LevelSums, ShuffledReports, Tally, Whole
from shuffledp.randomizers.numeric import TwoMoments
from shuffledp.randomizers.wire import checked_reports
from shuffledp.records.columns import Recode
from shuffledp.setting import Seen

# The questions about a number in a known range.


@dataclass(frozen=True)
class Variance(Number):
    """The question what the variance of a number in a known range is: the mean squared distance from its mean.

    Parameters
    ----------
    low, high : float
        The range, finite, low < high. It is public: reading it off the values would leak.

    Examples
    --------
    >>> Variance(0, 100).mechanisms
    ('two-moments',)
    """

    name: ClassVar[str] = "variance"
    mechanisms: ClassVar[tuple[str, ...]] = ("two-moments",)
    answers = "number"
    words = (("low", "high"), ())
    shape: ClassVar[Shape] = Shape("Variance", "What is the variance of {0}{1}?", "variance", "number", picture=POINT)

    def randomizer(self, mechanism: str, budgets: Budgets, seen: Seen) -> TwoMoments:
        """Return the family of reports on two moments; see `Question.randomizer`."""
        del budgets, seen
        choice(mechanism, "mechanism", self.mechanisms)
        return TwoMoments(self.low, self.high)

    def records(self, columns: Sequence[Any], recode: Recode, before: int) -> FloatArray:
        """Return the numbers themselves, shape (n,); see `Question.records`."""
        return self.numbers(columns, recode, before)

    def view(
        self,
        estimate: VarianceEstimate,
        records: int,
        *,
        level: float = CONFIDENCE,
        simultaneous: bool = False,
        simplex: bool = False,
    ) -> View:
        """Return the view of an estimated variance; see `Question.view`."""
        del records, simplex
        numbers = Numbers.of(estimate, level, simultaneous=simultaneous)
        (entry,) = np.column_stack((numbers.value, numbers.low, numbers.high)).tolist()
        # a deviation is the root of what is at least 0
        root, low, high = (math.sqrt(max(x, 0.0)) for x in entry)
        words = [near(x, 3) for x in (root, low, high)]
        return self.number_view(
            numbers,
            estimate.support,
            simultaneous=simultaneous,
            more=f"That is a standard deviation of {words[0]}, between {words[1]} and {words[2]}.",
            after={"standard_deviation": {"estimate": root, "confidence_interval": [low, high]}},
        )


# The variance of a number from the shuffled reports alone, with its standard error.
#
# Half of the users, chosen by their own fair coins, report a bit of mean t, the others a bit of mean s = (2t - 1)^2; t
# is the value as a fraction of the range. With u = t - 1/2 and b = bit - 1/2 a user who keeps the bit with chance k has
# E b = k u in the first half and E b = k (s - 1/2) in the second, s = 4 u^2, and b^2 = 1/4. Of the n users let
#
#     q = mean of u_i^2,    P = mean of u_i u_j over all pairs of two different users,
#
# so that mean(u)^2 = ((n-1) P + q)/n, and the variance of t is q - mean(u)^2 = (1 - 1/n)(q - P). Estimated is
#
#     (1 - 1/n) (Q - R),    4 Q = 1/2 + sum a b / sum a k  over the second half,                                     (U)
#     R = ((sum a b)^2 - sum a^2/4) / ((sum a k)^2 - sum (a k)^2)  over the first half,
#
# with coefficients a as for a mean. Where levels are withheld a = 1, it is not known whose k is in which half, and with
# m reports in a half m mean(k) stands for sum a k, and m (m-1) mean(k_i k_j), over all pairs of two different users,
# for the denominator of R.
#
# **It is unbiased**, exactly, at every n. Given how many users of each level are in which half:
#
# - (sum a b)^2 - sum a^2/4 is the sum of a_i b_i a_j b_j over ordered pairs of different users of the first half, as
#   b^2 = 1/4. Their bits are independent: its mean is the sum of a_i k_i a_j k_j u_i u_j.
# - Levels seen, "population": a k = 1 for every informative user. As coins are fair, the first half is a uniformly
#   random set of so many of them: the mean over such sets of u_i u_j is P for each pair, that of R is P. In the same
#   way that of Q is q. Users without information are taken to be like the others.
# - "precision", or levels withheld: budgets are assigned to users at random (`shuffledp.questions.frequency`), so the
#   pair of users that has a given pair of budgets, or a given pair of places in a half, is a uniformly random pair, and
#   again R has the mean P, and Q the mean q.
#
# The halves need two reports and one that carry information; else there is no estimate. As it is unbiased given which
# halves there are, it is unbiased given that there is an estimate. (With more than 64 levels sum a^2 and sum (a k)^2
# are right to 2^-20 of themselves only, as coefficients are rounded; see `shuffledp.questions.tally`.)
#
# **Its variance.** Let v_U and v_S be the variances by (M) of `shuffledp.questions.mean` of the means that the two
# halves tell, as of reports drawn with replacement. R is a U-statistic of degree two (Hoeffding 1948): m independent
# reports of one law with mean mu and variance m v_U have
#
#     Var R = 4 mu^2 v_U + 2 v_U^2 m/(m-1),    so with R for mu^2, cut to what it can be,
#
#     standard error^2 = (1 - 1/n)^2 (v_S/16 + 4 R v_U + 2 v_U^2 m/(m-1)),                                           (W)
#
# where budgets differ with (sum a k)^2 over the denominator of R, as for m equal users, for m/(m-1).
#
# Distances are taken from the middle of the range, where the second moment has a quarter of the noise, and an error of
# the mean counts little if it is near it. Which users are in a half, and at what budgets, is random, too: (M) is above
# the variance without replacement by Var(t)/n and Var(s)/n or more. That is at least what is added by the halves' being
# complements of each other, 2 |cov|, which is at most the sum of both (Cauchy-Schwarz).
#
# **Its interval.** Where R happens to be too small the estimate is too large and its standard error too small. So the
# lower end is where a test of that value, with the standard error for *that* value, Q - variance in place of R in (W),
# just accepts it (as in Wilson's interval, 1927): it lies further away. The upper end is that of the standard error.

VARIANCE_SEEN: tuple[Seen, ...] = ("reports", "levels")


_NARROWEST, _WIDEST = 1e-70, 1e150
"""Limits on the width of the range, within which its second and fourth powers neither underflow nor overflow."""


_SMOOTHING = 4.0
"""Number of reports, half of each kind, added to a count before its variance is estimated (Agresti and Coull 1998)."""


_LEAST_PAIRS = 1e-4
"""Smallest share of (sum a k)^2 from pairs of different users; below it the estimate would concern a single user."""


_ROUNDS = 40
"""Number of steps towards the lower end of an interval; stopping after any of them is on the safe side."""


@dataclass(frozen=True, eq=False, repr=False)
class VarianceEstimate(Estimate):
    """An estimated variance, whose error grows with the distance of the mean from the middle of the range.

    Parameters
    ----------
    value, standard_error, step, support, uninformative
        As for `Estimate`.
    moment : float
        Q of (U) times the squared width and (1 - 1/n): the target plus the squared distance of the mean.
    flat, tilt : float
        The variance of `value` is flat + tilt max(moment - target, 0).
    """

    moment: float
    flat: float
    tilt: float

    def confidence_interval(self, level: float = 0.95, simultaneous: bool = False) -> tuple[FloatArray, FloatArray]:
        """Return both ends of a two-sided confidence interval, in the range; see the module and `Estimate`.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).
        simultaneous : bool
            Ignored, as there is one target.

        Raises
        ------
        InvalidInput
            If level is not in (0, 1).
        """
        del simultaneous
        miss = chance_of_a_miss(level)
        half = self.half_width(miss, self.standard_error)
        low, upper = around(self.value, half, half, self.support)
        possible, lower = np.clip(self.value, *self.support), np.asarray(self.support[0])
        for _ in range(_ROUNDS):  # from below: the higher the end, the smaller its standard error, the higher the end
            error = np.sqrt(self.flat + self.tilt * np.clip(self.moment - lower, 0.0, self.support[1]))
            lower = np.maximum(possible - self.half_width(miss, np.maximum(error, self.standard_error)), lower)
        return np.minimum(lower, low), upper


class VarianceTally(Tally):
    """Exact counts for a variance: how often each of the four possible reports has come so far.

    Parameters
    ----------
    task : Task
        Its randomizer is `TwoMoments`.

    Raises
    ------
    InvalidInput
        If the squared width of the range leaves double precision, or fewer than three users have a budget that lets
        their report carry information.

    Examples
    --------
    >>> from shuffledp.budgets import Budgets
    >>> from shuffledp.questions.question import Task
    >>> tally = VarianceTally(Task(TwoMoments(0, 10), Budgets((700.0,), (4,)), "reports"))
    >>> tally.add(np.array([0, 1, 3, 3]))
    >>> tally.estimate().support
    (0.0, 25.0)
    """

    def _layout(self) -> list[LevelSums]:
        def more(a: FloatArray, keep: FloatArray) -> tuple[FloatArray, ...]:
            return a * a, a * keep, (a * keep) ** 2, np.ones_like(a)

        width = self.task.randomizer.high - self.task.randomizer.low
        if not _NARROWEST <= width <= _WIDEST:
            raise InvalidInput(
                f"the range is {width} wide; for a variance its width must lie between {_NARROWEST:g} and {_WIDEST:g}, "
                "so that squares do not leave double precision: count in other units"
            )
        informative = int(self._public(lambda rows: (self._law(rows) > 0.0,))[0])
        if informative < 3:
            raise InvalidInput(
                "a variance needs reports that carry information from at least three of the users; there are "
                f"{informative}; ask more users, or give them budgets above 0"
            )
        return [LevelSums(self._coefficients(5, more), 4, self.task.budgets.n)]

    def _take(self, reports: NDArray[Any], levels: Whole | None) -> list[NDArray[Any]]:
        report_rows(reports, "iu", None, "whole numbers from 0 to 3, one each")
        return [self._tables[0].add_codes(checked_reports(reports, 4), levels)]

    def _stated(self, rows: slice) -> FloatArray:
        return self.task.randomizer.sampled_law(self.task.budgets.epsilons[rows]).keep

    def _information(self, law: FloatArray) -> tuple[FloatArray, float]:
        return law, 1.0

    def _estimate(self, uninformative: int) -> VarianceEstimate:
        """Return the estimated variance from the counts; see `variance`."""
        kept, squares = self._public(lambda rows: (self._law(rows), self._law(rows) ** 2))
        n = self.n
        first, second = (self._half(half, kept / n) for half in range(2))
        if self.task.by_level:
            pairs = first.kept**2 - first.kept_squared
        else:
            pairs = first.m * (first.m - 1.0) * (kept**2 - squares) / (n * (n - 1.0))
        if second.kept <= 0.0 or pairs <= _LEAST_PAIRS * first.kept**2:
            raise InvalidInput(
                "too few reports carry information on the first moment (two are needed) or on the second (one); a "
                "variance needs more users, or larger budgets"
            )
        product = (first.total**2 - first.squares / 4.0) / pairs
        (noise, step), (square_noise, square_step) = first.noise(), second.noise()
        moment = (0.5 + second.total / second.kept) / 4.0
        flat = square_noise / 16.0 + 2.0 * noise**2 * first.kept**2 / pairs
        near = min(abs(first.total) / first.kept + float(np.sqrt(noise)), 0.5)
        width2 = (self.task.randomizer.high - self.task.randomizer.low) ** 2
        scale = width2 * (1.0 - 1.0 / n)
        return VarianceEstimate(
            value=np.asarray(scale * (moment - product)),
            standard_error=np.asarray(scale * np.sqrt(flat + 4.0 * noise * min(max(product, 0.0), 0.25))),
            step=scale * max(square_step / 4.0, 2.0 * near * step),
            support=(0.0, width2 / 4.0),
            uninformative=uninformative,
            moment=scale * moment,
            flat=scale**2 * flat,
            tilt=scale * 4.0 * noise,
        )

    def _half(self, half: int, keep: float) -> _Half:
        """Return the sums over the users who report on one of the two moments.

        Without levels `keep`, the mean of k over everybody, replaces the k of the users in this half.
        """
        table, both = self._tables[0], slice(2 * half, 2 * half + 2)
        ones, squares, kept, kept_squared, reports = (table.read(self._sums[0], row)[both] for row in range(5))
        m = float(reports.sum())
        total = float(kept.sum()) if self.task.by_level else m * keep
        largest = float(table.coefficients[0].max())
        return _Half(m, float(ones[1] - ones[0]) / 2.0, total, float(squares.sum()), float(kept_squared.sum()), largest)


class _Half(NamedTuple):
    """Sums over the users who report on one of the two moments."""

    m: float
    total: float  # sum a b
    kept: float  # sum a k
    squares: float  # sum a^2
    kept_squared: float  # sum (a k)^2
    largest: float  # a

    def noise(self) -> tuple[float, float]:
        """Return the variance (M) of this half's mean, and the most by which one report moves the mean."""
        off = min(max(self.total / self.kept, -0.5), 0.5)
        centred = off * self.m / (self.m + _SMOOTHING)
        return self.squares / (4.0 * self.kept**2) - centred**2 / self.m, self.largest / self.kept


def variance(shuffled: ShuffledReports, randomizer: TwoMoments, *, weights: Weights = "population") -> VarianceEstimate:
    """Estimate the variance of the values (their mean squared distance from their mean).

    Parameters
    ----------
    shuffled : ShuffledReports
        Seen "reports" or "levels".
    randomizer : TwoMoments
        The family that drew the reports.
    weights : {"population", "precision"}
        As for `frequency`.

    Returns
    -------
    VarianceEstimate
        Shape (), support from 0 to a quarter of the squared width.

    Raises
    ------
    InvalidInput
        If `weights` is unknown, only the sum of the reports is seen, fewer than three users have an informative budget,
        or fewer than two reports on the first moment, or none on the second, carry information (at few users).
    """
    tally = VarianceTally(shuffled.task(randomizer, weights))
    tally.add(shuffled.reports, shuffled.levels)
    return tally.estimate()
