"""The variance of a number from the shuffled reports alone, with its standard error.

Half of the users, chosen by their own fair coins, report a bit of mean t, the others a bit of mean s = (2t - 1)^2; t is
the value as a fraction of the range. With U and S the means that each half tells by (E) of `shuffledp.protocol.means`,
and v their variances by (M), of the m users in that half:

    variance of t = mean(s)/4 - (mean(t) - 1/2)^2,    estimated by    S/4 - (U - 1/2)^2 + v_U,
    standard error^2 = v_S/16 + 4 (U - 1/2)^2 v_U + 2 v_U^2.

Distances are taken from the middle of the range, where the second moment has a quarter of the noise, and an error of U
counts little if the mean is near it. Which users are in a half, and at what budgets, is random, too: (M) is that of
reports drawn with replacement, above the one without by Var(t)/n and Var(s)/n or more. That is at least what is added
by the halves' being complements of each other, 2 |cov|, which is at most the sum of both (Cauchy-Schwarz). In the
standard error U is put one standard error further from the middle: where it is uncertain, so is its own share, and
estimate and error would be small together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.protocol.collect import check_choice, collect, make_release, prepare
from shuffledp.protocol.columns import bounded_numbers
from shuffledp.protocol.counting import Tally
from shuffledp.protocol.estimate import Estimate
from shuffledp.protocol.release import Release
from shuffledp.protocol.shuffler import ShuffledReports
from shuffledp.protocol.sums import LevelSums, Whole
from shuffledp.protocol.weights import Weights
from shuffledp.randomizers.checks import report_rows
from shuffledp.randomizers.moments import TwoMoments
from shuffledp.randomizers.wire import checked_reports
from shuffledp.setting import Seen

VARIANCE_SEEN: tuple[Seen, ...] = ("reports", "levels")
_NARROWEST, _WIDEST = 1e-70, 1e150
"""Widths of the range whose square, and whose fourth power from below, is an ordinary double."""
_SMOOTHING = 4.0
"""Reports added, half of each kind, before a variance is read off a count (Agresti and Coull 1998)."""


class VarianceTally(Tally):
    """All that a variance needs of the reports so far: how often each of the four came.

    Parameters
    ----------
    task : Task
        Its randomizer is `TwoMoments`.

    Raises
    ------
    InvalidInput
        If the squared width of the range leaves double precision.

    Examples
    --------
    >>> from shuffledp.budgets import Budgets
    >>> from shuffledp.protocol.task import Task
    >>> tally = VarianceTally(Task(TwoMoments(0, 10), Budgets((700.0,), (4,)), "reports"))
    >>> tally.add(np.array([0, 1, 3, 3]))
    >>> tally.estimate().support
    (0.0, 25.0)
    """

    def _layout(self) -> list[LevelSums]:
        def more(a: FloatArray, keep: FloatArray) -> tuple[FloatArray, ...]:
            return a * a, a * keep, np.ones_like(a)

        width = self.task.randomizer.high - self.task.randomizer.low
        if not _NARROWEST <= width <= _WIDEST:
            raise InvalidInput(
                f"the range is {width} wide; for a variance its width must lie between {_NARROWEST:g} and {_WIDEST:g}, "
                "so that squares do not leave double precision: count in other units"
            )
        return [LevelSums(self._coefficients(4, more), 4, self.task.budgets.n)]

    def _take(self, reports: NDArray[Any], levels: Whole | None) -> list[NDArray[Any]]:
        report_rows(reports, "iu", None, "whole numbers from 0 to 3, one each")
        return [self._tables[0].add_codes(checked_reports(reports, 4), levels)]

    def _stated(self, rows: slice) -> FloatArray:
        return self.task.randomizer.sampled_law(self.task.budgets.epsilons[rows]).keep

    def _information(self, law: FloatArray) -> tuple[FloatArray, float]:
        return law, 1.0

    def _estimate(self, uninformative: int) -> Estimate:
        """Estimate the variance from what was counted; see `variance`."""
        (off, noise, step), (square, square_noise, square_step) = self._half_mean(0), self._half_mean(1)
        width2 = (self.task.randomizer.high - self.task.randomizer.low) ** 2
        near = min(abs(off) + float(np.sqrt(noise)), 0.5) ** 2
        return Estimate(
            value=np.asarray(width2 * ((square + 0.5) / 4.0 - off**2 + noise)),
            standard_error=np.asarray(width2 * np.sqrt(square_noise / 16.0 + 4.0 * near * noise + 2.0 * noise**2)),
            step=width2 * max(square_step / 4.0, 2.0 * near**0.5 * step),
            support=(0.0, width2 / 4.0),
            uninformative=uninformative,
        )

    def _half_mean(self, half: int) -> tuple[float, float, float]:
        """Mean less 1/2, its variance (M), and its step.

        Without levels everybody's budgets count: which of them are in the half is not known, and random.
        """
        table, both = self._tables[0], slice(2 * half, 2 * half + 2)
        ones, squares, kept, reports = (table.read(self._sums[0], row)[both] for row in range(4))
        m, total = float(reports.sum()), float(kept.sum())
        if not self.task.by_level:
            total = m * (self._public(lambda rows: (self._law(rows),))[0] / self.n)
        if not total > 0.0:
            which = ("first", "second")[half]
            raise InvalidInput(
                f"no report on the {which} moment carries information; a variance needs more users, or larger budgets"
            )
        off = float(ones[1] - ones[0]) / 2.0 / total
        centred = min(max(off, -0.5), 0.5) * m / (m + _SMOOTHING)
        noise = float(squares.sum()) / (4.0 * total**2) - centred**2 / m
        return off, noise, float(table.coefficients[0].max()) / total


def variance(shuffled: ShuffledReports, randomizer: TwoMoments, *, weights: Weights = "population") -> Estimate:
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
    Estimate
        Shape (), support from 0 to a quarter of the squared width.

    Raises
    ------
    InvalidInput
        If `weights` is unknown, only the sum of the reports is seen, or one of the two kinds of report is missing
        (at few users) or carries no information.
    """
    tally = VarianceTally(shuffled.task(randomizer, weights))
    tally.add(shuffled.reports, shuffled.levels)
    return tally.estimate()


def estimate_variance(
    values: Sequence[float] | ArrayLike,
    low: float,
    high: float,
    epsilon0: ArrayLike,
    *,
    seen: Seen,
    delta: float,
    clip: bool = False,
    weights: Weights = "population",
    random: Randomness | None = None,
) -> Release:
    """Estimate the variance of a number in a known range, with one randomized bit per user in the shuffle model.

    Parameters
    ----------
    values : sequence, array or polars Series of numbers, length n
        One number per user, in [low, high].
    low, high : float
        The range, finite, low < high. It is public: reading it off the values would leak.
    epsilon0 : float or array_like, shape (n,)
        Local budgets (nats, 0 to 700); one for all or one per user. Public, and independent of the values.
    seen : {"reports", "levels"}
        The analyst sees the reports without, or with, their senders' budgets.
    delta : float
        Central delta of the guarantee, in (0, 1). No default.
    clip : bool
        Move values outside [low, high] to the nearer end, which changes the target; else they are refused.
    weights : {"population", "precision"}
        How levels are combined when they are seen, see `frequency`.
    random : Randomness, optional
        Default `secure_random()`. `simulation_random(seed)` marks the release as not private.

    Returns
    -------
    Release
        ``.estimate`` is a float: the mean squared distance of the n values from their mean.

    Raises
    ------
    InvalidInput
        On any bad argument; a missing value or one outside the range is named with its row, counting from 1.

    Examples
    --------
    >>> release = estimate_variance([20.0, 40.0] * 500, 0.0, 100.0, 1.0, seen="reports", delta=1e-6)
    >>> release.private, release.mechanism
    (True, 'two-moments')
    """
    check_choice("seen", seen, VARIANCE_SEEN)
    randomizer = TwoMoments(low, high)
    budgets, source, guarantee = prepare(values, epsilon0, randomizer, seen, delta, weights, random)
    shuffled = collect(bounded_numbers(values, randomizer, clip=clip), budgets, randomizer, seen, source)
    return make_release(variance(shuffled, randomizer, weights=weights), guarantee, source, weights)
