"""The clone pair where its delta leaves double range: logarithms of E_C psi_C(s), see (C) of `clone_pair`.

With psi non-increasing in the number of clones, and blocks 0 = l_1 < l_2 < ... of that number,

    E psi_C <= sum_j P(C < l_{j+1}) psi(l_j),        E psi_C >= sum_c P(C = c) psi(c),

the second sum over any numbers c; P(C <= x) <= E exp(t (x - C)) for every t >= 0 (Chernoff), and P(C = c) is known
for one budget. Blocks are divided where the first sum is made up, until their width no longer matters.
"""

from __future__ import annotations

import numpy as np

from shuffledp.numerics import binomial
from shuffledp.numerics.floats import LARGEST_BELOW_ONE, deflated, roundoff
from shuffledp.numerics.interval import Enclosure, FloatArray, Interval
from shuffledp.numerics.loss_laws import log_sum
from shuffledp.numerics.poisson_binomial import SuccessCount, SuccessRange

_CLOSE = 1e-3
_MOST_BLOCKS = 2000
_WINDOW = 200.0
_SLACK = binomial.COMBINED_ERROR


def log_noiseless_divergence(clones: FloatArray, excess: float) -> Enclosure:
    """Enclose log psi_c(1 + excess), as `clones.noiseless_divergence` does psi.

    Parameters
    ----------
    clones : ndarray
        Whole numbers c >= 0.
    excess : float
        s - 1 >= 0, finite, good to 8 roundoffs relative.
    """
    failures = np.floor((clones + 1.0) / (2.0 + excess))
    log_pmf = binomial.log_pmf(clones - failures, clones, 0.5)
    loss = np.where(failures >= 1, excess * binomial.fair_tail_ratio(failures, clones), 0.0)
    doubt = binomial.log_pmf_error(log_pmf)
    with np.errstate(divide="ignore"):
        upper = np.log(np.maximum((1.0 + _SLACK) - loss * (1.0 - _SLACK), _SLACK))
        lower = np.log(np.maximum((1.0 - _SLACK) - loss * (1.0 + _SLACK), 0.0))
    return Enclosure(log_pmf - doubt + lower, log_pmf + doubt + upper)


def log_expectation(clones: SuccessRange, excess: float) -> Interval:
    """Enclose log E psi_C(1 + excess); the lower end is -inf for several budgets.

    Parameters
    ----------
    clones : SuccessRange
        The number of clones.
    excess : float
        s - 1 >= 0, finite, good to 8 roundoffs relative.
    """
    most = clones.most.n
    left = np.unique(np.floor(np.linspace(0.0, most, 65)))
    while True:
        psi = log_noiseless_divergence(left, excess)
        last = np.append(left[1:] - 1.0, most)
        above = _log_cdf(clones.fewest, last) + np.maximum.accumulate(psi.upper[::-1])[::-1]
        upper = float(log_sum(above))
        # what the width of the blocks costs: the same sum with P(C <= l_j) instead
        tight = float(np.max(_log_cdf(clones.fewest, left) + psi.lower))
        wide = (last > left) & (above > upper - 3.0)
        if upper - tight <= max(_CLOSE * abs(upper), 3.0) or not wide.any() or left.size > _MOST_BLOCKS:
            break
        fresh = [np.floor(left[wide] + part * (last[wide] - left[wide] + 1.0)) for part in (0.25, 0.5, 0.75)]
        left = np.unique(np.concatenate((left, *fresh)))
    lower = _log_lower(clones, excess, left[int(np.argmax(_log_pmf(clones, left) + psi.lower))])
    room = roundoff(8192, 1.0 + abs(upper))  # sums of some thousand positive terms
    return Interval(min(lower - room, upper), upper + room)


def _log_lower(clones: SuccessRange, excess: float, near: float) -> float:
    """The sum over numbers of clones around the largest term of a coarse search."""
    if not np.isfinite(_log_pmf(clones, np.array([near]))[0]):
        return -np.inf
    for step in (64.0, 8.0, 1.0):
        around = near + step * np.arange(-_WINDOW, _WINDOW + 1.0)
        around = around[(around >= 0.0) & (around <= clones.most.n)]
        logs = _log_pmf(clones, around) + log_noiseless_divergence(around, excess).lower
        near = float(around[int(np.argmax(logs))])
    return float(log_sum(logs))


def _log_cdf(count: SuccessCount, x: FloatArray) -> FloatArray:
    """Upper bound on log P(C <= x) below the mean, and 0 from there on: the best of many tilts."""
    if count.counts.size == 0:
        return np.zeros_like(x)
    t = np.concatenate(([0.0], np.geomspace(1e-3 / (count.deviation + 1.0), 60.0, 400)))
    log_mgf = np.log1p(count.probabilities * np.expm1(-t)[:, None]) @ count.counts
    logs = log_mgf + t * np.minimum(x, count.mean)[:, None]
    best = np.argmin(logs, axis=1)
    doubt = roundoff(8, np.abs(log_mgf[best]) * count.counts.size + t[best] * x + 1.0)
    found = np.where(x >= count.mean, 0.0, logs[np.arange(x.size), best] + doubt)
    # at x = 0 the best tilt is infinite
    none = float(np.log1p(-np.minimum(count.probabilities, LARGEST_BELOW_ONE)) @ count.counts) if count.n else 0.0
    return np.where(x == 0.0, np.minimum(found, deflated(none, 2.0 * count.counts.size + 16.0)), np.minimum(found, 0.0))


def _log_pmf(clones: SuccessRange, x: FloatArray) -> FloatArray:
    """Lower bound on log P(C = x): unimodal in the one success probability, so smallest at an end of its range."""
    low, high = clones.fewest, clones.most
    if not low.counts.size == high.counts.size == 1:
        return np.full_like(x, -np.inf)
    logs = np.minimum(
        binomial.log_pmf(x, low.n, low.probabilities[0]), binomial.log_pmf(x, high.n, high.probabilities[0])
    )
    return logs - binomial.log_pmf_error(logs)
