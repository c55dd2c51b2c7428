"""The equal crowd: all others on one record, each report from its own step's law (docs/theorems/equal-crowd.md).

With r_b = R_t(x_b)/R_t(x2), Y_t ~ R_t(x2) independent and L_t = r_0(Y_t) - e^eps r_1(Y_t), the divergence is exactly

    H(eps) = (1/n) E( sum_t L_t )_+ .
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from shuffledp.accounting.engines.loss_law import loss_law, stacked
from shuffledp.accounting.profiles.gaussian import gaussian_epsilon
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.numerics.floats import Upper, round_down, round_up
from shuffledp.numerics.interval import FloatArray, Interval
from shuffledp.numerics.special import ndtr
from shuffledp.numerics.sums import positive_part
from shuffledp.randomizers.base import CellSpread, PairBlanket

WINDOWS = 64
"""The range of a number is cut into so many windows, which is what the attacker looks at."""
_SMOOTHING = 0.03
_LARGEST = 600.0
_REACH = 8.0
"""Standard deviations of a normal law that are cut into windows, on both sides."""
_STEP = 0.1
_ULPS = 4
_GAUSSIAN_ULPS = 2**22
"""Losses of windows of a normal law are at least 5e-4, and good to 1e-13 absolutely: to 4e-10 of themselves."""


@dataclass(frozen=True, eq=False)
class CrowdProfile(PrivacyProfile):
    """H(eps) above in one direction, enclosed.

    Parameters
    ----------
    pairs : tuple of PairBlanket
        Per level x0 and x1 against x2: omega is R(x2) and gamma 1.
    counts : ndarray, shape (levels,)
        Reports of each level, the victim's among them.
    """

    pairs: tuple[PairBlanket, ...]
    counts: FloatArray
    _known: dict[float, Interval] = field(init=False, default_factory=dict[float, Interval], repr=False)

    @property
    def vanishes_at(self) -> Upper:
        """The largest loss of a single report."""
        return max(pair.largest_loss for pair in self.pairs)

    def delta_at(self, epsilon: float) -> Interval:
        """Both ends by the tilted transform: laws rounded up for the upper end, down for the lower one."""
        if epsilon not in self._known:
            if epsilon > _LARGEST:
                return Interval(0.0, self.delta(_LARGEST).upper)
            upper, lower = (self._of(epsilon, above=above) for above in (True, False))
            self._known[epsilon] = Interval(min(lower.lower, upper.upper), upper.upper)
        return self._known[epsilon]

    def _of(self, epsilon: float, *, above: bool) -> Interval:
        laws = [loss_law(pair, epsilon, above=above) for pair in self.pairs]
        if not all(law.finite for law in laws):
            return Interval(0.0, 1.0)
        users = replace(stacked([law.one for law in laws]), counts=self.counts)
        found, n = positive_part(users, _SMOOTHING), float(self.counts.sum())
        return (found / n).clipped(0.0, 1.0)

    def guess_epsilon(self, delta: float) -> float | None:
        """Gaussian limit, a first guess: n mu^2 is the mean of E_{x2} (r_0 - r_1)^2."""
        n = float(self.counts.sum())
        second = sum(
            float(pair.masses @ np.minimum(np.abs(pair.ratios0 - pair.ratios1), 1e150) ** 2) * count / n
            for pair, count in zip(self.pairs, self.counts.tolist(), strict=True)
        )
        return gaussian_epsilon(delta, math.sqrt(second / n)) if math.isfinite(second) else None


@lru_cache(maxsize=128)
def laplace_pair(scale: float) -> tuple[PairBlanket, PairBlanket]:
    """Records 0 and 1 among others on 1, Laplace noise: below the range, above it, and windows between.

    On a window from a to b the ratio of the two laws' masses is exp((1 - a - b)/scale) exactly.

    Parameters
    ----------
    scale : float
        Of the noise, in widths of the range.

    Returns
    -------
    tuple of PairBlanket
        The same records in both orders.
    """
    rate = 1.0 / scale
    edges = np.arange(WINDOWS + 1) / WINDOWS  # dyadic: sums of two are exact
    low, high = edges[:-1], edges[1:]
    inside = -math.expm1(-rate / WINDOWS) / 2.0
    below = np.exp(-rate * (1.0 - high)) * inside
    masses = np.concatenate(([math.exp(-rate) / 2.0], below, [0.5]))
    losses = rate * np.concatenate(([1.0], 1.0 - low - high, [-1.0]))
    ratios = np.exp(losses)
    one = np.ones_like(ratios)
    return (
        PairBlanket(1.0, masses, ratios, one, losses, None, _ULPS),
        PairBlanket(1.0, masses, one, ratios, -losses, None, _ULPS),
    )


@lru_cache(maxsize=128)
def gaussian_pair(scale: float) -> tuple[PairBlanket, PairBlanket]:
    """Records 0 and 1 among others on 1, normal noise, in windows; see `laplace_pair`.

    Parameters
    ----------
    scale : float
        Standard deviation, in widths of the range.
    """
    half = 0.5 / scale + _REACH
    steps = math.ceil(half / _STEP)
    edges = np.linspace(-half, half, 2 * steps + 1)  # of (y - 1/2)/scale
    shift = 0.5 / scale
    masses1, masses0 = _normal_masses(edges - shift), _normal_masses(edges + shift)
    losses, ratios = np.log(masses0 / masses1), masses0 / masses1
    one = np.ones_like(ratios)

    def pair(first: FloatArray, second: FloatArray, loss: FloatArray) -> PairBlanket:
        spread = CellSpread(
            *(round_down(first, _GAUSSIAN_ULPS), round_up(first, _GAUSSIAN_ULPS)),
            *(round_down(loss, _GAUSSIAN_ULPS), round_up(loss, _GAUSSIAN_ULPS)),
            *(np.zeros(0), np.zeros(0)),
        )
        return PairBlanket(1.0, masses1, first, second, loss, spread, _GAUSSIAN_ULPS)

    return pair(ratios, one, losses), pair(one, ratios, -losses)


def _normal_masses(edges: FloatArray) -> FloatArray:
    """Masses of a standard normal law below, between and above the edges, each from the tail on its side."""
    low, high = np.concatenate(([-np.inf], edges)), np.concatenate((edges, [np.inf]))
    right = low > 0.0
    return np.where(right, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
