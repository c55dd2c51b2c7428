"""Privacy profiles to and from the privacy loss distributions of Google's dp_accounting.

There, certified rounds compose with any other mechanism that dp_accounting knows; here, its distributions become
profiles that compose with ours. What is computed over there is not certified: dp_accounting rounds its
discretisation upwards, but does not count the errors of floating point and of its FFT (about 1e-16 absolute).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shuffledp.accounting.profiles.finite_pair import FinitePair
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.errors import InvalidInput, NotConverged
from shuffledp.numerics.floats import UNBOUNDED, Upper, inflated, round_up
from shuffledp.numerics.interval import FloatArray, Interval

if TYPE_CHECKING:
    from dp_accounting.pld.pld_pmf import PLDPmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

_DEVIATIONS = (0.25, 1.0, 3.0, 6.0)
_MOST_POINTS = 20_000_000
_MASS_ERROR = 1e-8
_ROUNDING = 128  # in units of a roundoff: NumPy adds pairwise, so a sum of 2^25 terms costs some forty roundings


def to_dp_accounting(profile: PrivacyProfile, value_discretization_interval: float = 1e-4) -> PrivacyLossDistribution:
    """Return a pessimistic privacy loss distribution that dominates the profile's pair.

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
        With one direction if both are alike.

    Raises
    ------
    InvalidInput
        If the step is not positive, or so small that the grid does not fit into memory.

    Notes
    -----
    Without the hull the differences of certified deltas, jagged by their own slack, are no masses at all; here the
    total mass is 1, and checked.
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
    share = np.clip(np.expm1(at * step - losses) / math.expm1(-step), 0.0, 1.0)
    grid = np.zeros(high - low + 1)
    np.add.at(grid, at - low, mass * (1.0 - share))
    np.add.at(grid, at - low + 1, mass * share)
    grid[-low] += max(1.0 - math.fsum(grid) - law.infinite, 0.0)
    total = math.fsum(grid) + law.infinite
    if not abs(total - 1.0) <= _MASS_ERROR:
        raise NotConverged(f"a privacy loss distribution must have total mass 1; got {total}")
    return low, grid, law.infinite


@dataclass(frozen=True, eq=False)
class PldProfile(PrivacyProfile):
    """The larger of the directions of a pessimistic privacy loss distribution, summed up with rounding counted.

    Parameters
    ----------
    losses, masses : tuple of ndarray
        Per direction, grid and probabilities.
    infinite : float
        The larger of the directions' masses at infinity.
    """

    losses: tuple[FloatArray, ...]
    masses: tuple[FloatArray, ...]
    infinite: float

    @property
    def vanishes_at(self) -> Upper:
        """The largest loss, if none is infinite."""
        if self.infinite > 0.0:
            return UNBOUNDED
        return Upper(max(max(float(losses[-1]) for losses in self.losses), 0.0))

    @property
    def mass_at_infinity(self) -> Interval:
        """Mass at infinite loss."""
        return Interval(0.0, self.infinite)

    def delta_at(self, epsilon: float) -> Interval:
        """The larger sum; from below nothing is known, since the distribution is pessimistic."""
        found = self.infinite
        for losses, masses in zip(self.losses, self.masses, strict=True):
            above = losses > epsilon
            value = float((-np.expm1(epsilon - losses[above]) * masses[above]).sum())
            found = max(found, inflated(value + self.infinite, _ROUNDING))
        return Interval(0.0, found)


def from_dp_accounting(pld: PrivacyLossDistribution) -> PrivacyProfile:
    """Return the profile of a privacy loss distribution of dp_accounting, to compose with profiles of ours.

    Parameters
    ----------
    pld : PrivacyLossDistribution
        Pessimistic. Its neighbouring relation must be the one you account for: dp_accounting does not store it.

    Returns
    -------
    PrivacyProfile
        Upper ends are as sure as the distribution is; lower ends are 0.

    Raises
    ------
    InvalidInput
        If the distribution is optimistic.
    """
    sides: list[PLDPmf] = [pld._pmf_remove, pld._pmf_add]  # pyright: ignore[reportPrivateUsage]
    if any(not side._pessimistic_estimate for side in sides):  # pyright: ignore[reportPrivateUsage]
        raise InvalidInput("only a pessimistic privacy loss distribution bounds delta; build it pessimistically")
    losses: list[FloatArray] = []
    masses: list[FloatArray] = []
    infinite = 0.0
    for side in sides[: 1 if sides[0] is sides[1] else 2]:
        dense = side.to_dense_pmf()
        points = np.arange(dense.size) + dense._lower_loss  # pyright: ignore[reportPrivateUsage]
        losses.append(round_up(np.asarray(points * dense._discretization, dtype=np.float64), 1))  # pyright: ignore[reportPrivateUsage]
        masses.append(np.maximum(np.asarray(dense._probs, dtype=np.float64), 0.0))  # pyright: ignore[reportPrivateUsage]
        infinite = max(infinite, float(dense._infinity_mass))  # pyright: ignore[reportPrivateUsage]
    return PldProfile(tuple(losses), tuple(masses), min(infinite, 1.0))
