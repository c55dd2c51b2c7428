"""The smallest mu at which a Gaussian shift dominates a privacy profile, all but a share (docs/theorems/mu.md).

With g_mu the profile of N(0, 1) against N(mu, 1) and t the share that may be revealed outright,

    delta(eps) <= t + (1 - t) g_mu(eps)   for every eps >= 0                                                 (M)

is proved from certified upper ends u_k >= delta(eps_k) at knots 0 = eps_0 < ... < eps_K: as functions of x = e^eps both
delta and g are convex, so between two knots delta is below its chord, and g above every tangent. The inequality is one
between two lines there, checked at both ends. From the last knot on delta is at most t.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.profiles.knots import FinitePair, ProfileTable, View
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.errors import InvalidInput, NotConverged, OutOfRegime, shown
from shuffledp.numerics.floats import LEAST_MASS, UNBOUNDED, FloatArray, Interval, Upper, inflated, round_up, roundoff
from shuffledp.numerics.functions import ndtri
from shuffledp.numerics.losses import LossLaw
from shuffledp.numerics.tails import normal_divergence, normal_tail_mass

if TYPE_CHECKING:
    from dp_accounting.pld.pld_pmf import PLDPmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


_FIRST = 8
"""Number of gaps between the first knots."""
_MOST = 600
"""Largest number of knots."""
_FARTHEST = 700.0
"""Largest epsilon (nats) for which e^epsilon is a finite double."""
"""No mu below is looked for."""
_STEPS = 44
"""Number of bisection steps over the bit patterns of doubles, to a relative precision of about 1e-10."""
_STEP = 1.01
"""Factor by which the last knot is moved while delta there is not certified to be small enough."""
_LARGEST = 80.0
"""Largest mu that is searched: above it the divergence is 1 - 1e-300 for all epsilon up to _FARTHEST."""


def check_outside(outside: float) -> float:
    """Return ``outside``, the probability that may be revealed outright, as a float in [0, 1), or refuse."""
    number = isinstance(outside, int | float) and not isinstance(outside, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not (number and 0.0 <= float(outside) < 1.0):
        raise InvalidInput(f"outside must be a probability in [0, 1); got {shown(outside)}; try 1e-3 of your delta")
    return float(outside)


def dominating_mu(profile: PrivacyProfile, outside: float, *, at_least: float = 0.0, tolerance: float = 2e-4) -> Upper:
    """Return about the smallest mu whose Gaussian shift dominates a profile up to a probability: inequality (M).

    (M) is delta(eps) <= t + (1 - t) g_mu(eps) for every eps >= 0, with g_mu the profile of N(0, 1) against N(mu, 1).

    Parameters
    ----------
    profile : PrivacyProfile
        The profile to dominate; its upper ends are used.
    outside : float
        The probability t, in [0, 1), that the record is revealed outright.
    at_least : float
        A smaller answer is not searched for; default 0.
    tolerance : float
        Relative amount by which chords between knots may raise the answer above the least that the knots need; default
        2e-4.

    Returns
    -------
    float
        Above the smallest that the upper ends allow (or ``at_least``) by at most about the tolerance, never below it;
        inf if delta(0) is too close to 1 for any mu up to 80.

    Raises
    ------
    InvalidInput
        If ``outside`` is out of range.
    OutOfRegime
        If delta does not fall to ``outside``, as for a local delta0 that is larger.
    """
    share = check_outside(outside)
    knots = _Knots(profile, share, _reach(profile, share))
    while knots.refine(at_least, tolerance):
        pass
    return Upper(max(knots.mu, at_least))


def _reach(profile: PrivacyProfile, share: float) -> Upper:
    """Return an epsilon at which the certified delta is at most the share."""
    end = profile.vanishes_at
    if share > 0.0 and profile.mass_at_infinity.upper <= share:
        end = min(profile.epsilon(share).upper, end)
    if not math.isfinite(end):
        least = profile.mass_at_infinity.upper
        raise OutOfRegime(
            f"no mu covers all but outside = {share:g}: delta falls no further than {least:g} at any epsilon; "
            "state a larger outside"
        )
    if end > _FARTHEST:
        raise OutOfRegime(f"mu is computed where delta falls to outside before epsilon = {_FARTHEST:g}; got {end:g}")
    while end < profile.vanishes_at and profile.delta(end).upper > share:  # the computed curve may be jagged
        end = Upper(end * _STEP)
        if end > _FARTHEST:
            raise NotConverged(f"delta was not seen to be at most {share:g} at any epsilon up to {_FARTHEST:g}")
    return min(end, profile.vanishes_at)


class _Knots:
    """Knots, the mu that each gap between them needs, and the mu that the knots alone need.

    Parameters
    ----------
    profile : PrivacyProfile
        Evaluated at the knots.
    share : float
        t of (M).
    end : float
        The last knot, where delta is at most the share.
    """

    def __init__(self, profile: PrivacyProfile, share: float, end: float) -> None:
        self._profile, self._share = profile, share
        self._eps = np.linspace(0.0, end, _FIRST + 1) if end > 0.0 else np.zeros(1)
        self._upper = self._evaluated(self._eps)
        self._needs = self._gaps(self._eps, self._upper)

    @property
    def mu(self) -> float:
        """What the whole curve needs."""
        return float(self._needs.max(initial=0.0))

    def refine(self, at_least: float, tolerance: float) -> bool:
        """Halve the gaps that need more than the knots do; False if there are none, or too many knots."""
        least = max(float(self._least(self._eps, self._upper).max()), at_least)
        wide = np.flatnonzero(self._needs > least * (1.0 + tolerance))
        wide = wide[np.argsort(-self._needs[wide])][: max(_MOST - self._eps.size, 0)]
        new = 0.5 * (self._eps[wide] + self._eps[wide + 1])
        new = np.setdiff1d(new, self._eps)  # a gap between neighbouring doubles has no middle
        if not new.size:
            return False
        self._eps = np.append(self._eps, new)
        order = np.argsort(self._eps)
        self._upper = np.append(self._upper, self._evaluated(new))[order]
        self._eps = self._eps[order]
        self._needs = self._gaps(self._eps, self._upper)
        return True

    def _evaluated(self, eps: FloatArray) -> FloatArray:
        deltas = np.empty(eps.size)
        for at in _ends_first(eps.size):
            deltas[at] = self._profile.delta(float(eps[at])).upper
        return deltas

    def _least(self, eps: FloatArray, upper: FloatArray) -> FloatArray:
        """Return the mu that each knot by itself needs."""
        return _smallest(lambda mu: self._above(normal_divergence(eps, mu).lower, upper), eps.size)

    def _gaps(self, eps: FloatArray, upper: FloatArray) -> FloatArray:
        """Return the mu with which a tangent of g lies above the chord of each gap."""
        if eps.size < 2:
            return np.zeros(0)
        left, right, high, low = eps[:-1], eps[1:], upper[:-1], upper[1:]
        # of the chord in x = e^eps, in units of 1 - t; the tangent of the same slope is the best one
        fall = np.maximum(high - low, 0.0) / (np.exp(left) * np.expm1(right - left)) / (1.0 - self._share)
        quantile = -ndtri(np.minimum(fall, 1.0))
        slack = roundoff(32.0 + 4.0 * (right - left))  # of the products below; the difference is rounded before expm1

        def holds(mu: FloatArray) -> NDArray[np.bool_]:
            at = np.clip(mu * (quantile - 0.5 * mu), left, right)
            value, mass = normal_divergence(at, mu).lower, normal_tail_mass(at, mu)
            gained = np.exp(left) * np.expm1(at - left) * mass.lower * (1.0 - slack)
            lost = np.exp(at) * np.expm1(right - at) * mass.upper * (1.0 + slack)
            return self._above(value + gained, high) & self._above(value - lost, low)

        return _smallest(holds, left.size)

    def _above(self, value: FloatArray, upper: FloatArray) -> NDArray[np.bool_]:
        """Whether t + (1 - t) value is surely at least the upper end."""
        whole = self._share + (1.0 - self._share) * value
        return upper <= whole - roundoff(8, self._share + np.abs(value))


def _ends_first(size: int) -> list[int]:
    """Positions 0 to size - 1, ends before middles: between two known points `FromAbove` looks at few bounds."""
    positions = dict.fromkeys((0, size - 1)) if size else {}
    gaps = [(0, size - 1)]
    while gaps:
        low, high = gaps.pop(0)
        middle = (low + high) // 2
        if low < middle:
            positions[middle] = None
            gaps += [(low, middle), (middle, high)]
    return list(positions)


def _smallest(holds: Callable[[FloatArray], NDArray[np.bool_]], size: int) -> FloatArray:
    """Return the smallest mu of each of several conditions that was seen to hold; inf where none up to _LARGEST did.

    Bisection over the doubles, which are ordered like their bit patterns.
    """
    low, high = np.zeros(size, dtype=np.int64), np.full(size, _LARGEST).view(np.int64).copy()
    smallest = np.where(holds(high.view(np.float64)), high.view(np.float64), np.inf)
    for _ in range(_STEPS):
        middle = low + (high - low) // 2
        mu = np.maximum(middle.view(np.float64), LEAST_MASS)
        good = holds(mu)
        smallest = np.where(good & (mu < smallest), mu, smallest)
        low, high = np.where(good, low, middle), np.where(good, middle, high)
    return smallest


# Privacy profiles to and from the privacy loss distributions of Google's dp_accounting.
#
# There, certified rounds compose with any other mechanism that dp_accounting knows; here, its distributions become
# profiles that compose with ours. What is computed over there is not certified: dp_accounting rounds its
# discretisation upwards, but does not count the errors of floating point and of its FFT (about 1e-16 absolute).

_DEVIATIONS = (0.25, 1.0, 3.0, 6.0)
_MOST_POINTS = 20_000_000
_MASS_ERROR = 1e-8
_FEW_LOSSES = 200
"""Largest number of losses that are all used as knots from the start."""
_ROUNDING = 128  # in units of a roundoff: NumPy adds pairwise, so a sum of 2^25 terms costs some forty roundings


def to_dp_accounting(profile: PrivacyProfile, value_discretization_interval: float = 1e-4) -> PrivacyLossDistribution:
    """Return a pessimistic privacy loss distribution, for dp_accounting, that dominates the profile's pair of laws.

    Parameters
    ----------
    profile : PrivacyProfile
        Its certified upper curve is taken at knots, thinned to its convex hull, and each kink is split between the
        two neighbouring grid points so that both laws keep their mass ("connect the dots", Doroshenko et al. 2022).
    value_discretization_interval : float
        Grid step of privacy losses, nats; distributions compose only if they share it.

    Returns
    -------
    PrivacyLossDistribution
        The distribution; with a single direction if both are alike.

    Raises
    ------
    InvalidInput
        If the step is not positive, or so small that the grid does not fit into memory.

    Notes
    -----
    Without the hull, the differences of certified deltas are not masses at all, because these deltas are jagged by
    their own slack. Here the total mass is checked to be 1.
    """
    from dp_accounting.pld.pld_pmf import DensePLDPmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    step = float(value_discretization_interval)
    if not 0.0 < step < math.inf:
        raise InvalidInput(f"value_discretization_interval must be positive (nats); got {step}")
    table = profile.table
    for pair in (table.capped("forward"), table.capped("reverse")):
        for z in _DEVIATIONS:
            table.refine(z / pair.deviation, capped=True)
    sides: list[PLDPmf] = []
    for view in ("forward", "reverse"):
        first, masses, infinite = _on_grid(table.capped(view), step)
        sides.append(DensePLDPmf(step, first, masses, infinite, True))
    return PrivacyLossDistribution(sides[0], sides[1]) if profile.directed else PrivacyLossDistribution(sides[0])


def _on_grid(pair: FinitePair, step: float) -> tuple[int, FloatArray, float]:
    """First grid index, masses of P from there on, and mass at infinity.

    A loss u above a grid point keeps both laws' mass if the share (1 - e^-u)/(1 - e^-step) goes one point up.
    """
    law = pair.law
    low = math.floor(float(law.losses.min(initial=0.0)) / step)
    high = math.ceil(float(law.losses.max(initial=0.0)) / step) + 1
    if high - low > _MOST_POINTS:
        raise InvalidInput(
            f"value_discretization_interval = {step} needs {high - low} grid points up to loss {law.losses.max():g}; "
            f"take a larger one"
        )
    apart = law.losses != 0.0  # the rest ties, and is filled up below
    losses, mass = law.losses[apart], np.exp(law.log_masses[apart])
    at = np.clip(np.floor(losses / step).astype(np.int64), low, high - 1)
    share = _share_above(losses - at * step, step)
    grid = np.zeros(high - low + 1)
    np.add.at(grid, at - low, mass * (1.0 - share))
    np.add.at(grid, at - low + 1, mass * share)
    grid[-low] += max(1.0 - math.fsum(grid) - law.infinite, 0.0)
    total = math.fsum(grid) + law.infinite
    if not abs(total - 1.0) <= _MASS_ERROR:
        raise NotConverged(f"a privacy loss distribution must have total mass 1; got {total}")
    return low, grid, law.infinite


def _share_above(distance: FloatArray, gap: FloatArray | float) -> FloatArray:
    """Share of an atom that goes to the upper of two places so that both laws keep their mass, a little more at most.

    (1 - e^-u)/(1 - e^-gap) at the distance u above the lower place; what goes up in excess only makes a loss larger.
    """
    return np.clip(inflated(np.expm1(-distance) / np.expm1(-gap), 64), 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class PldProfile(PrivacyProfile):
    """Profile of a pessimistic privacy loss distribution of dp_accounting, summed with its rounding counted.

    **Two directions.** dp_accounting's "remove" direction bounds what a data set D shows that holds one record more
    than D', its "add" direction the other way round. A data set that lacks the record lacks it in every round, so each
    direction composes by itself, and the larger result counts, as in dp_accounting. Using the worse direction in every
    round would cost a fifth more epsilon.

    Parameters
    ----------
    losses, masses : tuple of ndarray
        For each of one or two directions: the privacy losses (nats) that have mass, ascending, and their probabilities.
    infinite : tuple of float
        For each direction, the probability of infinite loss.
    """

    losses: tuple[FloatArray, ...]
    masses: tuple[FloatArray, ...]
    infinite: tuple[float, ...]

    @property
    def sided(self) -> bool:
        """Whether there are two directions, "remove" and "add", each composed by itself."""
        return len(self.losses) == 2

    @property
    def known_below(self) -> bool:
        """Whether lower ends of delta are more than 0: always False, since the distribution is pessimistic."""
        return False

    @property
    def vanishes_at(self) -> Upper:
        """Epsilon (nats) from which on delta is 0: the largest loss, or infinite if a loss is infinite."""
        if max(self.infinite) > 0.0:
            return UNBOUNDED
        return Upper(max(0.0, *(float(losses.max(initial=0.0)) for losses in self.losses)))

    @property
    def mass_at_infinity(self) -> Interval:
        """Interval from 0 to the probability of infinite loss, the larger of both directions."""
        return Interval(0.0, max(self.infinite))

    def delta_at(self, epsilon: float) -> Interval:
        """Return the interval from 0 to E (1 - e^(epsilon - loss))_+, the larger of both directions."""
        return Interval(0.0, max(self._above(side, epsilon) for side in range(len(self.losses))))

    def _above(self, side: int, epsilon: float) -> float:
        """E (1 - e^(epsilon - loss))_+ in one direction, rounded up."""
        above = slice(int(np.searchsorted(self.losses[side], epsilon, side="right")), None)
        value = float((-np.expm1(epsilon - self.losses[side][above]) * self.masses[side][above]).sum())
        return inflated(value + self.infinite[side], _ROUNDING)

    @cached_property
    def table(self) -> ProfileTable:
        """Table of certified values whose knots are losses: between two losses the curve is a line in e^epsilon."""
        return _LossTable(self)


class _LossTable(ProfileTable):
    """A table whose knots are among the losses."""

    def __init__(self, profile: PldProfile) -> None:
        self._pld = profile
        self._losses: FloatArray = np.union1d(0.0, np.concatenate([some[some > 0.0] for some in profile.losses]))
        super().__init__(profile)

    def law(self, view: View, *, above: bool) -> LossLaw:
        """Of two directions each has its own losses, brought to the knots and their negatives."""
        if not (self._pld.sided and above):
            return super().law(view, above=above)
        side = 1 if view == "reverse" else 0
        losses, masses = self._pld.losses[side], self._pld.masses[side]
        ends = np.array([losses[0], losses[-1]]) if losses.size else np.zeros(1)
        at = np.unique(np.concatenate((-self._eps, self._eps, ends)))
        below = np.clip(np.searchsorted(at, losses, side="right") - 1, 0, max(at.size - 2, 0))
        moved = _share_above(losses - at[below], np.diff(at)[below]) if at.size > 1 else np.zeros(losses.size)
        at_knots = np.zeros(at.size)
        np.add.at(at_knots, below, masses * (1.0 - moved))
        np.add.at(at_knots, np.minimum(below + 1, at.size - 1), masses * moved)
        some = at_knots > 0.0
        logs = np.log(at_knots[some])
        return LossLaw(at[some], logs + roundoff(_ROUNDING, 1.0 + np.abs(logs)), self._pld.infinite[side])

    def insert(self, epsilons: list[float]) -> None:
        """Evaluate the profile at the losses nearest to these exponents."""
        at = np.asarray(epsilons, dtype=np.float64)
        above = np.minimum(np.searchsorted(self._losses, at), self._losses.size - 1)
        below = np.maximum(above - 1, 0)
        nearer = np.where(at - self._losses[below] < self._losses[above] - at, below, above)
        super().insert(self._losses[nearer].tolist())

    def _first_knots(self) -> list[float]:
        """All of a few losses."""
        return self._losses.tolist() if self._losses.size <= _FEW_LOSSES else super()._first_knots()


def from_dp_accounting(pld: PrivacyLossDistribution) -> PrivacyProfile:
    """Return the profile of a privacy loss distribution of dp_accounting, to compose with profiles of this library.

    Parameters
    ----------
    pld : PrivacyLossDistribution
        A pessimistic distribution. Its neighbouring relation must be the one you account for: dp_accounting does not
        store it.

    Returns
    -------
    PrivacyProfile
        Upper ends are as sure as the distribution is; lower ends are 0. The two directions are composed separately, as
        in dp_accounting: a record is in the same one of the two neighbours in every round.

    Raises
    ------
    InvalidInput
        If the distribution is optimistic.
    """
    sides: list[PLDPmf] = [pld._pmf_remove, pld._pmf_add]  # pyright: ignore[reportPrivateUsage]
    if any(not side._pessimistic_estimate for side in sides):  # pyright: ignore[reportPrivateUsage]
        raise InvalidInput("only a pessimistic privacy loss distribution bounds delta; build it pessimistically")
    directions = [_side(side) for side in sides[: 1 if sides[0] is sides[1] else 2]]
    return PldProfile(*(tuple(part) for part in zip(*directions, strict=True)))


def _side(pmf: PLDPmf) -> tuple[FloatArray, FloatArray, float]:
    """Losses that have mass, rounded up, their masses, and the mass at infinity of one direction."""
    dense = pmf.to_dense_pmf()
    masses = np.maximum(np.asarray(dense._probs, dtype=np.float64), 0.0)  # pyright: ignore[reportPrivateUsage]
    some = np.flatnonzero(masses)
    steps = some + dense._lower_loss  # pyright: ignore[reportPrivateUsage]
    products = np.asarray(steps * dense._discretization, dtype=np.float64)  # pyright: ignore[reportPrivateUsage]
    losses = np.where(steps == 0, 0.0, round_up(products, 1))
    return losses, masses[some], min(float(dense._infinity_mass), 1.0)  # pyright: ignore[reportPrivateUsage]
