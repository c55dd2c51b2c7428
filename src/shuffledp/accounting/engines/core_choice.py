"""Which cores are worth trying for a victim's noise among others': a choice among bounds, which it cannot spoil."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shuffledp.accounting.engines.loss_law import loss_law
from shuffledp.accounting.engines.noise_core import Core, Noise, RecordPair
from shuffledp.accounting.profiles.gaussian import gaussian_epsilon
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.special import ndtri_exp

_WIDER = np.array([1.0, 1.15, 1.3, 1.45, 1.65, 1.9, 2.3])
"""Core scales in units of the victim's."""
_SPREAD = 5
"""As many core scales from the smallest to the largest of anybody's noise."""
_SHARES = (1e-4, 2e-3, 0.02, 0.1)
"""Parts of delta that the outputs beyond the core's edge may cost."""
_FIRST_SHARE = 0.02
_KEPT = 2
_FARTHEST = 200.0
"""Largest logarithm of a density ratio at the edge of a core worth trying."""


@dataclass(frozen=True, eq=False)
class CoreChoice:
    """A core, with the Gaussian limit of the end points seen against it; estimates, by which nothing is certified.

    Parameters
    ----------
    core : Core
        The core.
    mu : float
        Of the Gaussian limit, possibly inf.
    outside : float
        The victim's mass beyond the edge.
    """

    core: Core
    mu: float
    outside: float

    @classmethod
    def of(cls, core: Core, victim: Noise, scales: FloatArray, counts: FloatArray) -> CoreChoice:
        """Estimate for a victim among others.

        Parameters
        ----------
        core : Core
            The core.
        victim : Noise
            The victim's noise.
        scales, counts : ndarray, shape (groups,)
            The others' noise scales, and how many have each.
        """
        pair = RecordPair(core, victim).blanket
        found = loss_law(pair, 0.0)
        if not found.finite:
            return cls(core, math.inf, 1.0)
        law = found.one
        blankets = float(np.exp(core.log_gammas(scales)) @ counts) + 1.0
        second = float(law.probabilities[0] @ law.values[0] ** 2)
        # a value that moves the sum by more than its deviation is no Gaussian matter
        heavy = max(float(law.values.max()) / math.sqrt(second * blankets) - 0.5, 0.0) if second > 0.0 else 0.0
        outside = 0.0 if pair.spread is None else float(pair.spread.left_out_mass[0])
        return cls(core, math.sqrt(second / blankets) * (1.0 + heavy), outside)

    def expected_epsilon(self, delta: float) -> float:
        """Where the Gaussian limit and the charge reach delta, roughly."""
        return gaussian_epsilon(delta - self.outside, self.mu) if self.outside < delta else math.inf


def promising_cores(victim: Noise, scales: FloatArray, counts: FloatArray, delta: float) -> list[CoreChoice]:
    """Return cores worth trying for one delta, the victim's own scale among them.

    Parameters
    ----------
    victim : Noise
        The victim's noise.
    scales, counts : ndarray, shape (groups,)
        The others' noise scales, and how many have each.
    delta : float
        In (0, 1).
    """

    def choice(scale: float, share: float) -> CoreChoice | None:
        core = Core(Noise(victim.kind, scale), round(1.0 + _reach(victim, share * delta), 6))
        if scale != victim.scale and not _comparable(core, victim):
            return None
        return CoreChoice.of(core, victim, scales, counts)

    everyone = np.append(scales, victim.scale)
    low, high = float(everyone.min()), float(everyone.max())
    wider = victim.scale * _WIDER
    spread = np.geomspace(low, high, _SPREAD) if low < high else np.zeros(0)
    tried = np.unique(np.concatenate((wider[wider <= high], spread)))
    first = [found for scale in tried.tolist() if (found := choice(scale, _FIRST_SHARE)) is not None]
    best = sorted(first, key=lambda c: c.mu)[:_KEPT]
    kept = {victim.scale, *(found.core.noise.scale for found in best)}
    others = [choice(scale, share) for scale in sorted(kept) for share in _SHARES if share != _FIRST_SHARE]
    return first + [found for found in others if found is not None]


def _comparable(core: Core, victim: Noise) -> bool:
    """Whether R(x)/omega stays within double range up to the edge (with the victim's own scale it does)."""
    end = np.array([core.edge, core.edge - 1.0])
    gap = core.noise.log_density(end)[:, None] - victim.log_density(end)[None]
    return bool(np.abs(gap).max() < _FARTHEST)


def _reach(victim: Noise, mass: float) -> float:
    """How far beyond the range the victim's noise has so little mass."""
    if victim.kind == "laplace":
        return victim.scale * math.log(0.5 / mass)
    return -victim.scale * float(ndtri_exp(math.log(mass)))
