"""The variance of a number from the shuffled reports alone, with its standard error.

Half of the users, chosen by their own fair coins, report a bit of mean t, the others a bit of mean s = (2t - 1)^2, t the
value as a fraction of the range. With u and s the means as each half tells them, by (E) of `shuffledp.protocol.means`,
and v their variances by (M), of the m users in that half:

    variance of t = s/4 - (u - 1/2)^2,    estimated by    S/4 - (U - 1/2)^2 + v_U,
    standard error^2 = v_S/16 + 4 (U - 1/2)^2 v_U + 2 v_U^2.

Distances are taken from the middle of the range, where the second moment has a quarter of the noise, and an error of U
counts little if the mean is near it. Which users are in a half, and at what budgets, is random, too: (M) is that of
reports drawn with replacement, above the one without by Var(t)/n and Var(s)/n or more. That is at least what the halves'
being complements of each other adds: 2 |cov| <= the sum of both (Cauchy-Schwarz).
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
from shuffledp.protocol.estimate import Estimate
from shuffledp.protocol.release import Release
from shuffledp.protocol.shuffler import ShuffledReports
from shuffledp.protocol.weights import WEIGHTS, Weights
from shuffledp.randomizers.moments import TwoMoments
from shuffledp.setting import Seen

VARIANCE_SEEN: tuple[Seen, ...] = ("reports", "levels")
_SMOOTHING = 4.0
"""Reports added, half of each kind, before a variance is read off a count (Agresti and Coull 1998)."""


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
    if weights not in WEIGHTS:
        raise InvalidInput(f"weights must be one of {', '.join(WEIGHTS)}; got {weights!r}")
    check_choice("seen", shuffled.seen, VARIANCE_SEEN)
    keep = randomizer.sampled_law(shuffled.epsilons).keep
    uninformative = int(np.count_nonzero(keep == 0.0))
    second = shuffled.reports >= 2
    levels = weights if shuffled.seen == "levels" else None
    first_half = _half_mean(shuffled.reports[~second], keep if levels is None else keep[~second], levels, "first")
    second_half = _half_mean(shuffled.reports[second] - 2, keep if levels is None else keep[second], levels, "second")
    (off, noise, step), (square, square_noise, square_step) = first_half, second_half
    width2 = (randomizer.high - randomizer.low) ** 2
    near = min(max(off, -0.5), 0.5) ** 2
    return Estimate(
        value=np.asarray(width2 * ((square + 0.5) / 4.0 - off**2 + noise)),
        standard_error=np.asarray(width2 * np.sqrt(square_noise / 16.0 + 4.0 * near * noise + 2.0 * noise**2)),
        step=width2 * max(square_step / 4.0, 2.0 * float(np.sqrt(near)) * step),
        support=(0.0, width2 / 4.0),
        uninformative=uninformative,
    )


def _half_mean(bits: NDArray[Any], keep: FloatArray, levels: Weights | None, which: str) -> tuple[float, float, float]:
    """Mean less 1/2, its variance (M), and its step.

    Without levels `keep` is everybody's: which budgets are in the half is not known, and random.
    """
    m = bits.size
    informed = keep > 0.0
    if not m or not informed.any():
        raise InvalidInput(f"no report on the {which} moment carries information; a variance needs more users")
    if levels is None:
        a = np.ones(m)
        total = m * float(keep.mean())
    elif levels == "precision":
        a, total = keep, float((keep * keep).sum())
    else:
        a = np.divide(1.0, keep, out=np.zeros_like(keep), where=informed)
        total = float(np.count_nonzero(informed))
    off = float((a * (bits - 0.5)).sum()) / total
    centred = min(max(off, -0.5), 0.5) * m / (m + _SMOOTHING)
    return off, float((a * a).sum()) / (4.0 * total**2) - centred**2 / m, float(a.max()) / total


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
