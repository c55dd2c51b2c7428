"""Estimates from the shuffled reports alone, with standard errors and confidence intervals.

Every estimate is one linear formula. With keep_i = 1 - gamma_i and q_i = gamma_i / k the sampled law of
report i, and coefficients a_i >= 0 with sum_i a_i keep_i = 1,

    f_j = sum_i a_i (1[report_i = j] - q_i),     E f_j = sum_i w_i 1[record_i = j],     w_i = a_i keep_i   (E)

- a_i = 1 / sum keep: needs the count of the reports and nothing else. GSPA Algorithm 2 for two categories,
  where sum keep = n - 2 sum s and sum q = sum s; w_i is proportional to keep_i.
- a_i = 1 / (n keep_i): every user counts the same. Summed by level it is the stratified estimate with
  weights n_g/n.
- a_i proportional to keep_i: inverse-variance weights, exact where every report is a fair draw over the
  categories.

**What is random.** The records are a fixed data set, and its frequency (mean) is the target: only the
randomizers are random, and, wherever the w_i differ, the assignment of budgets to users, taken to be
independent of the records. For k categories the variance is, with f the target,

    sum a_i^2 (q_i (1 - q_i) + (1 - 2/k) keep_i (1 - keep_i) 1[record_i = j])
        + f (1 - f) (sum w_i^2 - 1/n) n/(n-1)                                                             (V)

as p (1-p) - q (1-q) = (p - q)(1 - p - q) and keep = p - q; for two categories the first sum needs no
record. Records are replaced by the estimate (`seen="reports"`), or by the unbiased estimate level by level
(`seen="levels"`). If budgets do depend on the records, (E) without levels is still unbiased, for the
keep-weighted frequency. For the mean, with t in [0,1] the scaled values and m their mean, Jensen and
Cauchy-Schwarz give, for any values,

    variance <= sum a_i^2 / 4 - (m - 1/2)^2 / n                                                           (M)

which with one budget is the binomial variance of the count, and which covers the assignment of budgets too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray
from shuffledp.protocol.estimate import Estimate
from shuffledp.protocol.shuffler import ShuffledReports
from shuffledp.protocol.weights import WEIGHTS, Weights
from shuffledp.randomizers.categorical import RandomizedResponse, SampledLaw

_CHUNK = 1 << 17  # reports at a time, so that temporaries stay in cache


def frequency(
    shuffled: ShuffledReports, randomizer: RandomizedResponse, *, weights: Weights = "population"
) -> Estimate:
    """Estimate the frequency of each category from reports of k-ary randomized response.

    Parameters
    ----------
    shuffled : ShuffledReports
        Seen "reports" or "sum": the coefficients are all equal. Seen "levels": by `weights`.
    randomizer : RandomizedResponse
        The family that drew the reports.
    weights : {"population", "precision"}
        Seen "levels" only. "population": every informative user counts the same, right even if budgets
        depend on the records; a tiny budget's noise counts in full, so its standard error can be large.
        "precision": least noise, right only if budgets do not depend on the records. Either way users
        without information (epsilon0 = 0) have weight 0: they are taken to be like the others.

    Returns
    -------
    Estimate
        Shape (k,), support (0, 1). Its variance is (V).

    Raises
    ------
    InvalidInput
        If no report carries information, or `weights` is unknown.

    Examples
    --------
    >>> shuffled = ShuffledReports(np.array([0, 1, 1, 1]), np.full(4, 700.0), seen="reports")
    >>> frequency(shuffled, RandomizedResponse(2)).value.round(6).tolist()
    [0.25, 0.75]
    """
    k, n = randomizer.k, shuffled.n
    sums = add_up(shuffled, randomizer, weights)
    value = (sums.counts - sums.wrong) * sums.scale
    shares = np.clip(value, 0.0, 1.0)
    if shuffled.seen == "levels":
        kept = np.maximum(sums.kept_counts - sums.kept_wrong, 0.0)
    else:
        kept = shares * sums.kept
    uneven = max(sums.weights_squared * sums.scale**2 - 1.0 / n, 0.0)
    assigned = shares * (1.0 - shares) * uneven * n / max(n - 1, 1)
    variance = (sums.drawn + (1.0 - 2.0 / k) * kept) * sums.scale**2 + assigned
    return Estimate(value, np.sqrt(variance), sums.largest * sums.scale, (0.0, 1.0), sums.uninformative)


@dataclass
class _Sums:
    """The sums in (E), (V), (M) over coefficients b_i that lack their common factor: a_i = scale b_i."""

    counts: FloatArray  # sum b_i 1[report_i = j]
    kept_counts: FloatArray  # sum b_i^2 (1 - keep_i) 1[report_i = j], for levels: debiased below like (E)
    kept_wrong: float = 0.0  # sum b_i^2 (1 - keep_i) q_i
    kept: float = 0.0  # sum b_i^2 keep_i (1 - keep_i)
    wrong: float = 0.0  # sum b_i q_i
    drawn: float = 0.0  # sum b_i^2 q_i (1 - q_i)
    squares: float = 0.0  # sum b_i^2
    weights_total: float = 0.0  # sum b_i keep_i
    weights_squared: float = 0.0  # sum (b_i keep_i)^2
    largest: float = 0.0  # max b_i
    uninformative: int = 0

    @property
    def scale(self) -> float:
        """What makes the weights add to 1."""
        return 1.0 / self.weights_total


def add_up(shuffled: ShuffledReports, randomizer: RandomizedResponse, weights: Weights) -> _Sums:
    """Add up what (E), (V), (M) need, chunk by chunk."""
    if weights not in WEIGHTS:
        raise InvalidInput(f"weights must be one of {', '.join(WEIGHTS)}; got {weights!r}")
    k = randomizer.k
    sums = _Sums(np.zeros(k), np.zeros(k))
    for start in range(0, shuffled.n, _CHUNK):
        reports = shuffled.reports[start : start + _CHUNK]
        law = randomizer.sampled_law(shuffled.epsilons[start : start + _CHUNK])
        b = _coefficients(law, weights if shuffled.seen == "levels" else None)
        wrong, squared = law.blanket / k, b**2
        shaken = squared * law.blanket
        sums.counts += np.bincount(reports, weights=b, minlength=k)
        if shuffled.seen == "levels":
            sums.kept_counts += np.bincount(reports, weights=shaken, minlength=k)
        sums.kept_wrong += _dot(shaken, wrong)
        sums.kept += _dot(shaken, law.keep)
        sums.wrong += _dot(b, wrong)
        sums.drawn += _dot(squared * wrong, 1.0 - wrong)
        sums.squares += float(squared.sum())
        sums.weights_total += _dot(b, law.keep)
        sums.weights_squared += _dot(squared, law.keep**2)
        sums.largest = max(sums.largest, float(b.max()))
        sums.uninformative += int(np.count_nonzero(law.keep == 0.0))
    if sums.uninformative == shuffled.n:
        raise InvalidInput("no report carries information (every epsilon0 is 0); nothing can be estimated")
    return sums


def _coefficients(law: SampledLaw, weights: Weights | None) -> FloatArray:
    """Give the a_i of (E) up to their common factor; weights None: levels are withheld."""
    if weights is None:
        return np.ones_like(law.keep)  # sums of ones are exact counts
    if weights == "precision":
        return law.keep
    return np.divide(1.0, law.keep, out=np.zeros_like(law.keep), where=law.keep > 0.0)


def _dot(left: FloatArray, right: FloatArray) -> float:
    """Inner product without BLAS, whose threads only get in each other's way at this size."""
    return float(np.sum(left * right))
