"""The chain theorem for normal vectors as a privacy profile (docs/theorems/chain.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from shuffledp.accounting.profiles.gaussian import gaussian_epsilon
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.numerics.chain_links import Links, links
from shuffledp.numerics.floats import UNBOUNDED, Upper
from shuffledp.numerics.interval import Interval


@dataclass(frozen=True, eq=False)
class ChainProfile(PrivacyProfile):
    """Profile of one victim among users who all add normal noise of one scale to a vector of bounded length.

    Parameters
    ----------
    mu : float
        Diameter of the ball that holds all messages, in standard deviations of the noise; within `links`' range.
    n : int
        Users, the victim included; at least 2.
    """

    mu: float
    n: int

    @property
    def vanishes_at(self) -> Upper:
        """Nowhere: delta stays positive at every epsilon."""
        return UNBOUNDED

    @property
    def mass_at_infinity(self) -> Interval:
        """None: the density ratio is finite everywhere."""
        return Interval(0.0, 0.0)

    @cached_property
    def _links(self) -> Links:
        return links(self.mu, self.n - 1)

    def delta_at(self, epsilon: float) -> Interval:
        """(H), or the divergence of the message alone where that is smaller."""
        return Interval(0.0, self._links.divergence(epsilon))

    def guess_epsilon(self, delta: float) -> float | None:
        """The limit for many users: normal, with shift sqrt((exp(mu^2) - 1)/n)."""
        guess = gaussian_epsilon(delta, math.sqrt(math.expm1(self.mu**2) / self.n))
        return guess if guess > 0.0 else None
