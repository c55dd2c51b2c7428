"""The equal crowd as a witness: added noise, ordered outputs of several budgets (docs/theorems/equal-crowd.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import MANY_LEVELS, AmplificationBound, level_alone, require_plain, shows_levels
from shuffledp.accounting.profiles.profile import PrivacyProfile, gaussian_epsilon
from shuffledp.accounting.theorems.blanket.loss_laws import loss_law, stacked
from shuffledp.accounting.theorems.blanket.pairs import LargestProfile
from shuffledp.accounting.theorems.reports_exact import RecordsProfile
from shuffledp.budgets import Budgets
from shuffledp.errors import OutOfRegime
from shuffledp.numerics.floats import Enclosure, FloatArray, Interval, Lower, Upper, round_down, round_up
from shuffledp.numerics.functions import ndtr
from shuffledp.numerics.sums import positive_part
from shuffledp.randomizers.base import CellSpread, NoiseLaw, PairBlanket
from shuffledp.randomizers.linked import SameRecord
from shuffledp.setting import Kind, Setting

# ------------------------------------------------------------------ crowd
# The equal crowd: all others on one record, each report from its own step's law (docs/theorems/equal-crowd.md).
#
# With r_b = R_t(x_b)/R_t(x2), Y_t ~ R_t(x2) independent and L_t = r_0(Y_t) - e^eps r_1(Y_t), the divergence is exactly
#
#     H(eps) = (1/n) E( sum_t L_t )_+ .

WINDOWS = 64
"""Number of windows into which the range of a number is divided for the attack."""
MOST_TRANSFORMS = 640
"""Work of several rounds: a knot costs four transforms, both directions rounded up and down, of at most 2^17 points by
97 atoms a level. Three times as many raise the lower end by half a per cent at most, and took up to a minute; of
several levels a transform costs a few times as much, so half as many are spent."""
_SMOOTHING = 0.03
_LARGEST = 600.0
_REACH = 8.0
"""Number of standard deviations of a normal law, on both sides, that are divided into windows."""
_STEP = 0.1
_ULPS = 4
_GAUSSIAN_ULPS = 2**22
"""Relative error, in ulps, of losses of windows of a normal law: at least 5e-4, with an absolute error of 1e-13."""


@dataclass(frozen=True, eq=False)
class CrowdProfile(PrivacyProfile):
    """Exact divergence, enclosed in one direction, when all other users hold the same record x2.

    Parameters
    ----------
    pairs : tuple of PairBlanket
        Per level the laws of the victim's records x0 and x1 against R(x2): omega is R(x2) and gamma 1.
    counts : ndarray, shape (levels,)
        Reports of each level, the victim's among them.
    """

    tolerance: ClassVar[float] = 1e-5

    pairs: tuple[PairBlanket, ...]
    counts: FloatArray
    _known: dict[float, Interval] = field(init=False, default_factory=dict[float, Interval], repr=False)

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats) from which on delta is 0: the largest privacy loss of a single report."""
        return max(pair.largest_loss for pair in self.pairs)

    def delta_at(self, epsilon: float) -> Interval:
        """Enclose H(epsilon) by the tilted transform: laws rounded up for the upper end, down for the lower end."""
        if epsilon not in self._known:
            if epsilon > _LARGEST:
                return Interval(0.0, self.delta(_LARGEST).upper)
            upper, lower = (self._of(epsilon, above=above) for above in (True, False))
            self._known[epsilon] = Interval(min(lower.lower, upper.upper), upper.upper)
        return self._known[epsilon]

    @property
    def ends_apart(self) -> bool:
        """True: each end comes from laws of its own."""
        return True

    def delta_above(self, epsilon: float) -> Upper:
        """Return the upper end of `delta` at epsilon (nats)."""
        cheap = epsilon in self._known or not epsilon < min(self.vanishes_at, _LARGEST)
        return self.delta(epsilon).upper if cheap else self._of(epsilon, above=True).upper

    def delta_below(self, epsilon: float) -> Lower:
        """Return the lower end of `delta` at epsilon (nats)."""
        cheap = epsilon in self._known or not epsilon < min(self.vanishes_at, _LARGEST)
        return self.delta(epsilon).lower if cheap else self._of(epsilon, above=False).lower

    def _of(self, epsilon: float, *, above: bool) -> Interval:
        laws = [loss_law(pair, epsilon, above=above) for pair in self.pairs]
        if not all(law.finite for law in laws):
            return Interval(0.0, 1.0)
        users = replace(stacked([law.one for law in laws]), counts=self.counts)
        expectation, n = positive_part(users, _SMOOTHING), float(self.counts.sum())
        return (expectation / n).clipped(0.0, 1.0)

    def guess_epsilon(self, delta: float) -> float | None:
        """Return the epsilon (nats) of the Gaussian limit, n mu^2 being the mean of E_{x2} (r_0 - r_1)^2."""
        n = float(self.counts.sum())
        second = sum(
            float(pair.masses @ np.minimum(np.abs(pair.ratios0 - pair.ratios1), 1e150) ** 2) * count / n
            for pair, count in zip(self.pairs, self.counts.tolist(), strict=True)
        )
        return gaussian_epsilon(delta, math.sqrt(second / n)) if math.isfinite(second) else None


@lru_cache(maxsize=128)
def laplace_pair(scale: float) -> tuple[PairBlanket, PairBlanket]:
    """Return the pair of records 0 and 1 among others on 1, with Laplace noise, seen through windows.

    An attacker sees which set a report falls into: below the range, above it, or one of the windows between. On a
    window from a to b the ratio of the two laws' masses is exp((1 - a - b)/scale) exactly.

    Parameters
    ----------
    scale : float
        Scale of the noise, in widths of the range.

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
    """Return the pair of records 0 and 1 among others on 1, with normal noise, seen through windows.

    As `laplace_pair`: an attacker sees which window a report falls into.

    Parameters
    ----------
    scale : float
        Standard deviation of the noise, in widths of the range.

    Returns
    -------
    tuple of PairBlanket
        The same records in both orders.
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


_Both = tuple[PairBlanket, PairBlanket]


class EqualCrowdWitness(AmplificationBound):
    """Lower bound by an attack in which all other users hold one record: the divergence of all reports together.

    For added noise it is the divergence of the windows in which the reports lie. See docs/theorems/equal-crowd.md.
    """

    key = "equal-crowd"
    kind = Kind.CERTIFIED_LOWER
    reference = "exact divergence of the reports, the others all on one record (own computation)"

    def company(self, setting: Setting, budgets: Budgets, level: int, exposed: int) -> Budgets:
        """Return all budgets if they belong to steps, else remove the exposed users in the worst way.

        With steps nobody knows whose steps are exposed, and the attack does not use it. See
        `AmplificationBound.company`.
        """
        if setting.seen == "users" and budgets.levels > 1:
            return budgets
        return super().company(setting, budgets, level, exposed)

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the profile of the best of the attacks tried for a victim of budget ``epsilon0``.

        See `AmplificationBound.one_round`.
        """
        require_plain(setting, self.key)
        if setting.seen == "sum":
            raise OutOfRegime("equal-crowd needs the reports themselves; only their sum is seen")
        steps = setting.seen == "users" and setting.budgets.levels > 1
        if setting.adds_noise is None and not steps:
            raise OutOfRegime("equal-crowd of discrete reports with one budget is 'count-exact' or 'reports-exact'")
        if shows_levels(setting) and not steps:
            setting = level_alone(setting, epsilon0)
        budgets = setting.budgets
        if budgets.levels > 1 and not steps:
            raise OutOfRegime(f"equal-crowd needs others with one budget; got {budgets.levels} that do not show")
        if budgets.levels > MANY_LEVELS:
            raise OutOfRegime(f"equal-crowd is not evaluated for more than {MANY_LEVELS} levels")
        counts = budgets.counts.astype(np.float64)
        profiles: list[PrivacyProfile] = []
        for attack in _attacks(setting):
            forward, backward = (CrowdProfile(tuple(both[way] for both in attack), counts) for way in (0, 1))
            most = MOST_TRANSFORMS // (4 if budgets.levels == 1 else 8)
            ahead = tuple(both[0] for both in attack)
            profiles.append(RecordsProfile(forward, backward, most, crowd=(ahead, counts)))
        return profiles[0] if len(profiles) == 1 else LargestProfile(tuple(profiles))

    def level_epsilons(
        self, setting: Setting, delta: float, levels: NDArray[np.int64], ceilings: FloatArray | None = None
    ) -> Enclosure:
        """Enclose the attack's epsilon of each listed level (nats); if budgets belong to steps, one for all.

        See `AmplificationBound.level_epsilons`.
        """
        if setting.seen != "users" or setting.budgets.levels == 1:
            return super().level_epsilons(setting, delta, levels, ceilings)
        one = super().level_epsilons(setting, delta, levels[-1:])
        return Enclosure(np.repeat(one.lower, levels.size), np.repeat(one.upper, levels.size))


def _attacks(setting: Setting) -> list[list[_Both]]:
    """Per attack the pair of records of each level, in both orders."""
    noise, budgets = setting.adds_noise, setting.budgets
    if noise is not None:
        return [[_noisy(noise, scale) for scale in noise.scale(budgets.epsilons, budgets.deltas).tolist()]]
    if not budgets.is_pure:
        raise OutOfRegime(f"equal-crowd needs pure local budgets (delta0 = 0); got delta0 = {budgets.deltas.max():g}")
    epsilons, law = budgets.epsilons.tolist(), setting.discrete
    if law is None or law.two_point:
        ks = (2,) if law is not None or setting.records == 2 else (2, 3)
        attacks = [[SameRecord(k, 1, each).witness_pairs(each) for each in epsilons] for k in ks]
    elif setting.records is not None:
        raise OutOfRegime(f"equal-crowd needs a third record for the others; records take {setting.records} values")
    else:
        attacks = [[law.witness_pairs(each) for each in epsilons]]
    complete = [[both for both in attack if both is not None] for attack in attacks]
    if any(len(attack) < len(epsilons) for attack in complete):
        raise OutOfRegime(f"equal-crowd finds no record of {setting.randomizer_name} that may give every report")
    return complete


def _noisy(noise: NoiseLaw, scale: float) -> _Both:
    narrow, wide = (0.01, 1e9) if noise.noise == "laplace" else (0.04, 100.0)
    if not narrow <= scale <= wide:
        raise OutOfRegime(f"equal-crowd is evaluated for noise of {narrow:g} to {wide:g} widths; got {scale:g}")
    return laplace_pair(scale) if noise.noise == "laplace" else gaussian_pair(scale)
