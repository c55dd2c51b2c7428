"""Privacy profiles to and from the privacy loss distributions of Google's dp_accounting.

There, certified rounds compose with any other mechanism that dp_accounting knows; here, its distributions become
profiles that compose with ours. What is computed over there is not certified: dp_accounting rounds its
discretisation upwards, but does not count the errors of floating point and of its FFT (about 1e-16 absolute).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from shuffledp.accounting.profiles.finite_pair import FinitePair
from shuffledp.accounting.profiles.knots import ProfileTable, View
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.errors import InvalidInput, NotConverged
from shuffledp.numerics.floats import UNBOUNDED, Upper, inflated, round_up, roundoff
from shuffledp.numerics.interval import FloatArray, Interval
from shuffledp.numerics.losses import LossLaw

if TYPE_CHECKING:
    from dp_accounting.pld.pld_pmf import PLDPmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

_DEVIATIONS = (0.25, 1.0, 3.0, 6.0)
_MOST_POINTS = 20_000_000
_MASS_ERROR = 1e-8
_FEW_LOSSES = 200
"""So many losses are all knots from the start."""
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
    """A pessimistic privacy loss distribution, summed up with rounding counted.

    **Two directions.** dp_accounting's "remove" bounds what D shows that holds one record more than D', its "add" the
    other way round. Who lacks the record lacks it in every part, so each direction composes by itself, and the larger
    result counts, as it does there. A pair as bad both ways in every part would cost a fifth more epsilon.

    Parameters
    ----------
    losses, masses : tuple of ndarray
        Per direction, one or two: where there is mass, ascending, and the probabilities.
    infinite : tuple of float
        Per direction, the mass at infinity.
    """

    losses: tuple[FloatArray, ...]
    masses: tuple[FloatArray, ...]
    infinite: tuple[float, ...]

    @property
    def sided(self) -> bool:
        """Whether there are two directions."""
        return len(self.losses) == 2

    @property
    def known_below(self) -> bool:
        """No: the distribution is pessimistic."""
        return False

    @property
    def vanishes_at(self) -> Upper:
        """The largest loss, if none is infinite."""
        if max(self.infinite) > 0.0:
            return UNBOUNDED
        return Upper(max(0.0, *(float(losses.max(initial=0.0)) for losses in self.losses)))

    @property
    def mass_at_infinity(self) -> Interval:
        """Mass at infinite loss, the larger of both directions."""
        return Interval(0.0, max(self.infinite))

    def delta_at(self, epsilon: float) -> Interval:
        """Return the larger sum; from below nothing is known, since the distribution is pessimistic."""
        return Interval(0.0, max(self._above(side, epsilon) for side in range(len(self.losses))))

    def _above(self, side: int, epsilon: float) -> float:
        """E (1 - e^(epsilon - loss))_+ in one direction, rounded up."""
        above = slice(int(np.searchsorted(self.losses[side], epsilon, side="right")), None)
        value = float((-np.expm1(epsilon - self.losses[side][above]) * self.masses[side][above]).sum())
        return inflated(value + self.infinite[side], _ROUNDING)

    @cached_property
    def table(self) -> ProfileTable:
        """Knots only at losses: there the curve bends, and between two of them it is a line in e^epsilon."""
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
        found = np.zeros(at.size)
        np.add.at(found, below, masses * (1.0 - moved))
        np.add.at(found, np.minimum(below + 1, at.size - 1), masses * moved)
        some = found > 0.0
        logs = np.log(found[some])
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
    """Return the profile of a privacy loss distribution of dp_accounting, to compose with profiles of ours.

    Parameters
    ----------
    pld : PrivacyLossDistribution
        Pessimistic. Its neighbouring relation must be the one you account for: dp_accounting does not store it.

    Returns
    -------
    PrivacyProfile
        Upper ends are as sure as the distribution is; lower ends are 0. Two directions compose apart, as they do in
        dp_accounting: a record is in the same one of the two neighbours in every part.

    Raises
    ------
    InvalidInput
        If the distribution is optimistic.
    """
    sides: list[PLDPmf] = [pld._pmf_remove, pld._pmf_add]  # pyright: ignore[reportPrivateUsage]
    if any(not side._pessimistic_estimate for side in sides):  # pyright: ignore[reportPrivateUsage]
        raise InvalidInput("only a pessimistic privacy loss distribution bounds delta; build it pessimistically")
    found = [_side(side) for side in sides[: 1 if sides[0] is sides[1] else 2]]
    return PldProfile(*(tuple(part) for part in zip(*found, strict=True)))


def _side(pmf: PLDPmf) -> tuple[FloatArray, FloatArray, float]:
    """Losses that have mass, rounded up, their masses, and the mass at infinity of one direction."""
    dense = pmf.to_dense_pmf()
    masses = np.maximum(np.asarray(dense._probs, dtype=np.float64), 0.0)  # pyright: ignore[reportPrivateUsage]
    some = np.flatnonzero(masses)
    steps = some + dense._lower_loss  # pyright: ignore[reportPrivateUsage]
    products = np.asarray(steps * dense._discretization, dtype=np.float64)  # pyright: ignore[reportPrivateUsage]
    losses = np.where(steps == 0, 0.0, round_up(products, 1))
    return losses, masses[some], min(float(dense._infinity_mass), 1.0)  # pyright: ignore[reportPrivateUsage]
