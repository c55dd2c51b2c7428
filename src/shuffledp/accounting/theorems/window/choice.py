"""Windows of outputs, and the chances of a report to fall into them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.theorems.blanket.noise import Noise
from shuffledp.errors import OutOfRegime
from shuffledp.numerics.floats import TINY, Enclosure, FloatArray, roundoff
from shuffledp.randomizers.base import PairBlanket, RandomizerLaw

_FEW, _PROMISING, _MANY = 64, 64, 3_000
"""Number of noise scales that represent all of them while windows are compared."""
_PAIRS, _FAMILIES = 8, 12
_NEAR = np.array([0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0])
_STARTS = np.array([0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0])
_EDGE = roundoff(8)
"""Smallest distance of an estimated probability from 0 and 1."""


def _no_other_victims(window: int, scales: FloatArray) -> tuple[Enclosure, Enclosure]:
    """Refuse: outputs of a discrete family were chosen for one victim."""
    del window, scales
    raise OutOfRegime("windows of discrete outputs are chosen for one victim")


@dataclass(frozen=True, eq=False)
class WindowFamily:
    """Sets of outputs ("windows") that are likelier under the victim's record x1 than under x0.

    They belong to one pair of records and one record held by all other users.

    Parameters
    ----------
    p0, p1 : Enclosure, shape (windows,)
        The victim's chances under x0 and x1.
    counts : ndarray, shape (groups,)
        Number of other users in each group.
    chances : callable
        Function from a window's index to an Enclosure of shape (groups,): the chance that another user's report lies
        in it.
    mean, variance : ndarray, shape (windows,)
        Estimated mean and variance of the number of other users' reports in each window; they only guide the choice.
    victims : callable
        From the index of a window and noise scales of victims, shape (victims,), to their p0 and p1. Added noise only.
    """

    p0: Enclosure
    p1: Enclosure
    counts: FloatArray
    chances: Callable[[int], Enclosure]
    mean: FloatArray
    variance: FloatArray
    victims: Callable[[int, FloatArray], tuple[Enclosure, Enclosure]] = _no_other_victims

    @property
    def deviation(self) -> FloatArray:
        """Standard deviation of the number of other users' reports in each window, an estimate, shape (windows,)."""
        return np.sqrt(self.variance)

    @property
    def signal(self) -> float:
        """Largest (p1 - p0)/deviation over the windows: an estimate of how well the best window separates x0 and x1."""
        return float(((self.p1.lower - self.p0.upper) / np.sqrt(self.variance + 0.25)).max(initial=0.0))

    @cached_property
    def promising(self) -> NDArray[np.int64]:
        """Indices of the windows with the largest (p1 - p0)/deviation; the others are not looked at any closer.

        All windows of few users, whose counts are no Gaussian matter.
        """
        if float(self.counts.sum()) < _MANY:
            return np.arange(self.mean.size)
        score = (self.p1.lower - self.p0.upper) / np.sqrt(self.variance + 0.25)
        return np.argsort(-score, kind="stable")[:_PROMISING]

    @property
    def chance(self) -> FloatArray:
        """Success chance of the binomial that has the mean and variance of each window's count, shape (windows,)."""
        mean = np.maximum(self.mean, TINY)
        return np.clip(1.0 - self.variance / mean, _EDGE, 1.0 - _EDGE)

    @property
    def trials(self) -> FloatArray:
        """Number of trials of the binomial that has the mean and variance of each window's count, shape (windows,)."""
        return np.maximum(np.round(self.mean / self.chance), 0.0)


def window_mass(kind: str, low: FloatArray, high: FloatArray) -> Enclosure:
    """Enclose the mass of standard noise on [low, high], elementwise; ends may be infinite.

    Parameters
    ----------
    kind : {"laplace", "gaussian"}
        The noise.
    low, high : ndarray
        Ends in noise scales, low <= high; each is taken to be off by up to 8 roundoffs relative.
    """
    # Noise.mass is good to a few roundoffs for Laplace noise and to 1e-13 for Gaussian
    noise, edge, own = Noise(kind, 1.0), *((750.0, 16.0) if kind == "laplace" else (39.0, 1000.0))
    low, high = np.clip(low, -edge, edge), np.clip(high, -edge, edge)
    value, doubt = np.zeros(low.shape), np.full(low.shape, TINY)
    for left, right in ((np.minimum(low, 0.0), np.minimum(high, 0.0)), (np.maximum(low, 0.0), np.maximum(high, 0.0))):
        part = noise.mass(left, right)
        near, far = np.minimum(np.abs(left), np.abs(right)), np.maximum(np.abs(left), np.abs(right))
        # the mass near an end, times how far that end may be off, is at most `steep` parts of the window's
        steep = near * (near if kind == "gaussian" else 1.0) + far / np.where(far > near, far - near, np.inf)
        value += part
        doubt += roundoff(part, own + 16.0 * steep)
    return Enclosure(np.maximum(value - doubt, 0.0), np.minimum(value + doubt, 1.0))


def interval_grid(own: float) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper ends of the intervals to try for a victim's noise scale ``own``; upper ends may be inf."""
    starts = np.concatenate((1.0 - own * _NEAR, 1.0 + own * _STARTS, np.linspace(0.0, 1.0, 9)))
    ends = np.concatenate((1.0 + own * _NEAR[1:], [1.0 + own * 6.0, math.inf]))
    low, high = (grid.ravel() for grid in np.meshgrid(np.unique(starts), ends, indexing="ij"))
    return low[low < high], high[low < high]


def noise_windows(
    kind: str, scales: FloatArray, level: int, others: FloatArray, *, third: bool = True
) -> list[WindowFamily]:
    """Return the window families of added noise: intervals, for the victim's records x0 = 0 and x1 = 1.

    The other users all hold 0 or all hold 1, or all hold 1/2 if they may hold a third record.

    Parameters
    ----------
    kind : {"laplace", "gaussian"}
        The noise.
    scales : ndarray, shape (levels,)
        Noise scale of each level, in widths of the range, positive and finite.
    level : int
        The victim's level.
    others : ndarray, shape (levels,)
        Other users of each level.
    third : bool
        Whether records may take more than two values.
    """
    own = float(scales[level])
    low, high = interval_grid(own)
    p0, p1 = (window_mass(kind, (low - x) / own, (high - x) / own) for x in (0.0, 1.0))
    useful = p1.lower > p0.upper
    low, high = low[useful], high[useful]
    p0, p1 = (Enclosure(p.lower[useful], p.upper[useful]) for p in (p0, p1))
    there = others > 0
    scales, counts = scales[there], others[there]
    few, weight = _representatives(scales, counts)

    def victims(window: int, scales: FloatArray) -> tuple[Enclosure, Enclosure]:
        first, second = (window_mass(kind, (low[window] - x) / scales, (high[window] - x) / scales) for x in (0.0, 1.0))
        return first, second

    def family(x: float) -> WindowFamily:
        q = window_mass(kind, (low[:, None] - x) / few, (high[:, None] - x) / few).upper

        def chances(window: int) -> Enclosure:
            return window_mass(kind, (low[window] - x) / scales, (high[window] - x) / scales)

        return WindowFamily(p0, p1, counts, chances, q @ weight, (q * (1.0 - q)) @ weight, victims)

    return [family(x) for x in ((0.0, 0.5, 1.0) if third else (0.0, 1.0))]


def _representatives(scales: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """At most a few scales, each standing for its share of the users."""
    if scales.size <= _FEW:
        return scales, counts
    order = np.argsort(scales)
    through = np.cumsum(counts[order])
    at = np.searchsorted(through, (np.arange(_FEW) + 0.5) / _FEW * through[-1])
    return scales[order][at], np.full(_FEW, through[-1] / _FEW)


class Company:
    """The other users, all on one record, and the chance that their reports fall into a window.

    In a mixture family the chance of a user of level i is q_i = gamma_i omega(W) + (1 - gamma_i) mu(W): with chance
    gamma_i the report is drawn from the blanket omega, which ignores the record, else from mu.

    Parameters
    ----------
    law : RandomizerLaw
        The discrete family; a mixture family if there are several budgets.
    epsilon0 : ndarray, shape (levels,)
        Budgets, nats.
    counts : ndarray, shape (levels,)
        Number of users of each level, possibly 0.
    """

    def __init__(self, law: RandomizerLaw, epsilon0: FloatArray, counts: FloatArray) -> None:
        self.law, self.epsilon0 = law, epsilon0
        self.there = counts > 0
        self.counts = counts[self.there]
        self.size = float(counts.sum())

    @cached_property
    def masses(self) -> FloatArray:
        """Blanket mass gamma_i of each level, empty levels included; accurate to a few ulps."""
        return self.law.blanket_mass(self.epsilon0)

    @cached_property
    def alike(self) -> bool:
        """Whether all levels have the same blanket mass gamma."""
        return not np.any(self.masses != self.masses[0])

    @cached_property
    def _spread(self) -> tuple[float, float]:
        """Mean blanket mass, and the sum of squared distances to it."""
        gammas = self.masses[self.there]
        mean = float(self.counts @ gammas) / max(self.size, 1.0)
        return mean, float(self.counts @ (gammas - mean) ** 2)

    def moments(self, blanket: FloatArray, rest: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return estimated mean and variance of the number of others' reports in each window, shape (windows,).

        Parameters
        ----------
        blanket, rest : ndarray, shape (windows,)
            Mass of each window under omega and under mu.
        """
        mean, scatter = self._spread
        chance = rest + mean * (blanket - rest)
        variance = self.size * chance * (1.0 - chance) - scatter * (blanket - rest) ** 2
        return self.size * chance, np.maximum(variance, 0.0)

    def chances(self, blanket: Enclosure, rest: Enclosure) -> Enclosure:
        """Enclose the chance q_i of a report in one window, for each level that has users.

        Parameters
        ----------
        blanket, rest : Enclosure
            Mass of the window under omega and under mu.
        """
        gammas = self.masses[self.there]
        doubt = roundoff(16, gammas)
        low, high = gammas - doubt, np.minimum(gammas + doubt, 1.0)
        # 1 - gamma is off by a roundoff of itself besides: within the last factor
        lower, upper = low * blanket.lower + (1.0 - high) * rest.lower, high * blanket.upper + (1.0 - low) * rest.upper
        return Enclosure(lower * (1.0 - roundoff(8)), np.minimum(upper * (1.0 + roundoff(8)), 1.0))


def discrete_windows(level: int, company: Company) -> list[WindowFamily]:
    """Return the window families of a discrete randomizer: sets of outputs for pairs of records.

    They come from the rows of a matrix if it has one, else from the cells of its pairs.

    Parameters
    ----------
    level : int
        Index of the victim's level.
    company : Company
        The other users, and the randomizer's law.
    """
    law = company.law
    rows = getattr(law, "rows", None)
    if isinstance(rows, np.ndarray):
        return channel_windows(rows, company.size)
    return pair_windows(law.pair_blankets(float(company.epsilon0[level])), level, company)


def channel_windows(rows: FloatArray, others: float) -> list[WindowFamily]:
    """Return the window families of a channel that everybody uses, for the records that differ most.

    Parameters
    ----------
    rows : ndarray, shape (records, outputs)
        Chance of each output for each record, each to one ulp.
    others : float
        Number of other users.
    """
    gaps = [((rows - row) ** 2 / np.maximum(rows + row, TINY)).sum(axis=1) for row in rows]
    order = np.argsort(-np.array(gaps), axis=None)[: 2 * _PAIRS]
    pairs = [divmod(int(place), rows.shape[0]) for place in order]
    families: list[WindowFamily] = []
    for x0, x1 in pairs:
        if x0 < x1 and gaps[x0][x1] > 0.0:
            families += [
                prefix_windows(rows[x0], rows[x1], row[None], np.zeros((1, row.size)), np.array([others]))
                for row in rows
            ]
    return sorted(families, key=lambda family: -family.signal)[:_FAMILIES]


def pair_windows(pairs: tuple[PairBlanket, ...], level: int, company: Company) -> list[WindowFamily]:
    """Return window families from the cells of a discrete randomizer's pairs of records, the others on x0.

    Parameters
    ----------
    pairs : tuple of PairBlanket
        The pairs of output laws at the victim's budget; those with a continuous part are left out.
    level : int
        Index of the victim's level.
    company : Company
        The other users.
    """
    families: list[WindowFamily] = []
    own = float(company.masses[level])
    for pair in pairs:
        if pair.spread is not None:
            continue
        if company.alike:
            p0, p1 = pair.masses * pair.ratios0, pair.masses * pair.ratios1
            families.append(prefix_windows(p0, p1, p0[None], np.zeros((1, p0.size)), np.array([company.size])))
        elif own < 1.0:
            families.append(_mixture_windows(pair, own, company))
    return families


def _mixture_windows(pair: PairBlanket, own: float, company: Company) -> WindowFamily:
    """Return the sets of cells by falling (p1 - p0)/(mean chance of the others).

    The mass mu(W) is read off the victim's own law.
    """
    p0, p1, free = pair.masses * pair.ratios0, pair.masses * pair.ratios1, 1.0 - own
    rest = pair.masses * np.maximum(pair.ratios0 - own, 0.0) / free
    order = _falling(p0, p1, company.moments(pair.masses, rest)[0])
    slack = roundoff(32.0 + 4.0 * p0.size)

    def summed(values: FloatArray) -> Enclosure:
        total = np.cumsum(values[order])
        return Enclosure(total * (1.0 - slack), np.minimum(total * (1.0 + slack), 1.0))

    spoiled = np.cumsum(roundoff(64, (rest + pair.masses * own)[order]) / free)  # the ratio less own cancels
    blanket, inside = summed(pair.masses), summed(rest)
    inside = Enclosure(np.maximum(inside.lower - spoiled, 0.0), np.minimum(inside.upper + spoiled, 1.0))

    def chances(window: int) -> Enclosure:
        return company.chances(
            Enclosure(blanket.lower[window], blanket.upper[window]),
            Enclosure(inside.lower[window], inside.upper[window]),
        )

    mean, variance = company.moments(blanket.lower, inside.lower)
    return WindowFamily(summed(p0), summed(p1), company.counts, chances, mean, variance)


def _falling(p0: FloatArray, p1: FloatArray, others: FloatArray) -> NDArray[np.int64]:
    """Places of the outputs with p1 > p0, by falling (p1 - p0)/others: the best sets for a rare window."""
    with np.errstate(divide="ignore", invalid="ignore"):
        score = (p1 - p0) / others
    order = np.argsort(-np.where(p1 == p0, 0.0, score), kind="stable")
    return order[p1[order] > p0[order]]


def prefix_windows(
    p0: FloatArray, p1: FloatArray, q: FloatArray, doubt: FloatArray, counts: FloatArray
) -> WindowFamily:
    """Return the window family of the sets of outputs with the largest (p1 - p0)/q, q the mean chance of the others.

    Parameters
    ----------
    p0, p1 : ndarray, shape (outputs,)
        The victim's chances, each to 16 roundoffs.
    q : ndarray, shape (groups, outputs)
        The other users' chances of each output, good to 32 roundoffs relative plus `doubt`.
    doubt : ndarray, shape (groups, outputs)
        Absolute error of `q`.
    counts : ndarray, shape (groups,)
        Number of other users in each group.
    """
    there = counts > 0
    q, doubt, counts = q[there], doubt[there], counts[there]
    order = _falling(p0, p1, counts @ q if counts.size else np.ones_like(p0))
    slack = roundoff(32.0 + 4.0 * p0.size)

    def summed(values: FloatArray) -> Enclosure:
        total = np.cumsum(values[..., order], axis=-1)
        return Enclosure(total * (1.0 - slack), np.minimum(total * (1.0 + slack), 1.0))

    inside, spoiled = summed(q), np.cumsum(doubt[:, order], axis=1)

    def chances(window: int) -> Enclosure:
        low, high = inside.lower[:, window] - spoiled[:, window], inside.upper[:, window] + spoiled[:, window]
        return Enclosure(np.maximum(low, 0.0), np.minimum(high, 1.0))

    estimate = inside.lower
    return WindowFamily(
        summed(p0), summed(p1), counts, chances, counts @ estimate, counts @ (estimate * (1.0 - estimate))
    )
