"""The chain theorem as a privacy profile: normal vectors, and pure reports (docs/theorems/chain.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from shuffledp.accounting.profiles.gaussian import gaussian_epsilon
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.numerics.chain_links import Links, links
from shuffledp.numerics.floats import UNBOUNDED, Upper
from shuffledp.numerics.interval import Interval
from shuffledp.numerics.pure_links import (
    CHARGES,
    MOST_COPIES,
    MOST_SPARSE_COPIES,
    PureLinks,
    copies_of,
    pure_divergence,
)
from shuffledp.numerics.ratio_moments import RatioMoments

_SHARES = (0.4, 0.65, 1.0, 1.6)
_FEWEST = 4


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
        """Infinite: delta stays positive at every epsilon."""
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


@dataclass(frozen=True, eq=False)
class PureChainProfile(PrivacyProfile):
    """Profile of one victim among users with pure reports of one budget.

    Parameters
    ----------
    epsilon0 : float
        Budget, nats, positive.
    n : int
        Users, the victim included.
    kinds : callable
        As for `PureLinks`.
    active : float
        As for `PureLinks`, if users of one record are a group; else 1.
    records : int or None
        How many records there are; None for numbers in a range with Laplace noise.
    """

    epsilon0: float
    n: int
    kinds: Callable[[float], Sequence[RatioMoments]]
    active: float
    records: int | None

    @property
    def vanishes_at(self) -> Upper:
        """The budget."""
        return Upper(self.epsilon0)

    @property
    def coarseness(self) -> float:
        """Each value takes milliseconds."""
        return 4.0

    @cached_property
    def ways(self) -> tuple[tuple[PureLinks, ...], ...]:
        """Groups of a few sizes, for each charge; none if there are too few users.

        By the pigeonhole principle some record is held by (n - 1)/records of the others, some bin by (n - 1)/bins.
        """
        spread = self.active * math.expm1(self.epsilon0) * -math.expm1(-self.epsilon0)
        chosen: list[tuple[int, int]] = []
        for share in _SHARES:
            size = math.ceil(share * math.sqrt(2.0 * self.n * spread) + 1.0)
            if self.records is None:
                bins = (self.n - 1) // size
                copies = copies_of(size, bins / self.epsilon0) if bins else 0
            else:
                most = MOST_COPIES if self.active == 1.0 else MOST_SPARSE_COPIES
                size = min(size, (self.n - 1) // self.records, most)
                copies = size
            if copies >= _FEWEST and self.n - 1 - size >= _FEWEST and (size, copies) not in chosen:
                chosen.append((size, copies))
        return tuple(
            tuple(
                PureLinks(self.epsilon0, self.n - 1 - size, copies, self.active, charge, self.kinds)
                for size, copies in chosen
            )
            for charge in CHARGES
        )

    def delta_at(self, epsilon: float) -> Interval:
        """The best group, with the smaller charge where the larger one would be felt, or the report's own curve."""
        least = pure_divergence(self.epsilon0, epsilon)
        for charge, groups in zip(CHARGES, self.ways, strict=True):
            least = min([least, *(group.divergence(epsilon) for group in groups)])
            if least > 30.0 * charge:
                break
        return Interval(0.0, least)

    def guess_epsilon(self, delta: float) -> float | None:
        """The normal limit for many users."""
        most = max(kind.second for kind in self.kinds(0.0))
        guess = gaussian_epsilon(delta, math.sqrt(most / self.n))
        return 1.03 * guess if 0.0 < 1.03 * guess < self.epsilon0 else None
