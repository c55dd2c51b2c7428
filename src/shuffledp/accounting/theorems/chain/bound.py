"""No common blanket: the victim's report moves along a chain of seats (docs/theorems/chain.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp.accounting.bound import require_plain
from shuffledp.accounting.profiles.gaussian import gaussian_epsilon
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.theorems.chain.laws import any_law, laplace_law, stated_law
from shuffledp.accounting.theorems.chain.normal import LARGEST_SHIFT, SMALLEST_SHIFT, Links, links
from shuffledp.accounting.theorems.chain.pure import CHARGES, PureLaw, PureLinks, counted_copies, pure_divergence
from shuffledp.accounting.theorems.clones.bound import AmongEquals
from shuffledp.accounting.theorems.local import LocalProfile
from shuffledp.accounting.theorems.sum import GaussianSumProfile
from shuffledp.errors import InvalidInput, OutOfRegime
from shuffledp.guarantee import Kind
from shuffledp.numerics.floats import UNBOUNDED, Upper, round_up
from shuffledp.numerics.interval import Interval
from shuffledp.randomizers.base import StatesTriples
from shuffledp.setting import Setting

# ------------------------------------------------------------------ chain
# The chain theorem as a privacy profile: normal vectors, and pure reports (docs/theorems/chain.md).

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
        """Return the limit for many users: normal, with shift sqrt((exp(mu^2) - 1)/n)."""
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
    law : PureLaw
        What is known of the reports.
    """

    epsilon0: float
    n: int
    law: PureLaw

    @property
    def vanishes_at(self) -> Upper:
        """The budget of the level."""
        return Upper(self.epsilon0)

    @property
    def coarseness(self) -> float:
        """Factor 4 on the accuracy that knots may cost: one evaluation of delta takes milliseconds."""
        return 4.0

    @cached_property
    def ways(self) -> PureLinks:
        """Groups of a few sizes, for each charge; none if there are too few users."""
        wish, others = math.sqrt(2.0 * self.n * self.law.spread), self.n - 1
        groups = {form(others, share * wish + 1.0) for form in self.law.groups for share in _SHARES}
        groups = {(m, counted_copies(copies, self.law.active)) for m, copies in groups}
        chosen = [(m, copies) for m, copies in groups if copies >= _FEWEST and others - m >= _FEWEST]
        found = np.array([(others - m, copies) for m, copies in sorted(chosen)], dtype=np.int64).reshape(-1, 2)
        last, copies = np.tile(found, (len(CHARGES), 1)).T
        charges = np.repeat(CHARGES, len(found))
        return PureLinks(self.law, last.astype(np.float64), copies, charges)

    def delta_at(self, epsilon: float) -> Interval:
        """Return the best group and charge, or the report's own curve."""
        return Interval(0.0, min(pure_divergence(self.epsilon0, epsilon), self.ways.divergence(epsilon)))

    def guess_epsilon(self, delta: float) -> float | None:
        """Return the normal limit for many users."""
        most = max(kind.second for kind in self.law.kinds(0.0))
        guess = gaussian_epsilon(delta, math.sqrt(most / self.n))
        return 1.03 * guess if 0.0 < 1.03 * guess < self.epsilon0 else None


LARGEST_EPSILON0, FEWEST = 5.0, 100
"""Pure reports: budgets and sizes of levels for which the theorem is evaluated."""
_SERVES = "chain is for 'any', noise, and reports of two likelihoods that state how any three records overlap"
_TOO_FEW = (
    "chain needs messages up to 1.2 standard deviations of their noise apart, and enough users to form its groups; "
    "got {}"
)


class ChainBound(AmongEquals):
    """The chain theorem among the users of the victim's level: any pure reports, normal noise, and some stated laws.

    See docs/theorems/chain.md.
    """

    key = "chain"
    kind = Kind.CERTIFIED_UPPER
    reference = "chain theorem within the victim's level (own proof), n = n_g"

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Profile of (H) for one victim; see `AmplificationBound.one_round`.

        A level whose users have nobody to hide among, or too little noise, keeps the profile of one message.
        """
        require_plain(setting, self.key)
        budgets, noise = setting.budgets, setting.adds_noise
        if setting.seen == "users" and budgets.levels > 1:
            raise OutOfRegime("chain needs budgets that belong to users; got seen = users with several budgets")
        same = budgets.epsilons == epsilon0
        if int(same.sum()) > 1:
            raise OutOfRegime("chain needs one law a level; got levels that differ in delta0 alone")
        n = int(budgets.counts[same][0])
        if noise is None or noise.noise != "gaussian":
            return _pure_profile(setting, epsilon0, n)
        shifts, counts = 1.0 / noise.scale(budgets.epsilons, budgets.deltas), budgets.counts.tolist()
        if not any(chain_hides(mu, n) for mu, n in zip(shifts.tolist(), counts, strict=True)):
            raise OutOfRegime(_TOO_FEW.format(f"{shifts.min():g} and {max(counts)} users"))
        return chain_or_alone(float(shifts[same][0]), n)


def _pure_profile(setting: Setting, epsilon0: float, n: int) -> PrivacyProfile:
    """Any pure reports, Laplace noise, or reports likely or unlikely, the same way for any three records."""
    budgets, noise = setting.budgets, setting.adds_noise
    if not budgets.is_pure:
        raise OutOfRegime(f"chain needs pure budgets or normal noise; got delta0 = {budgets.deltas.max():g}")
    stated = setting.discrete if isinstance(setting.discrete, StatesTriples) else None
    law = None if stated is None else stated_law(stated)
    if law is None and noise is None and setting.law is not None:
        raise OutOfRegime(f"{_SERVES}; got {setting.randomizer_name}")
    if setting.law is None and setting.seen == "users":
        raise OutOfRegime("chain needs independent reports; ordered outputs of 'any' may depend on earlier ones")
    served = (budgets.epsilons > 0.0) & (budgets.epsilons <= LARGEST_EPSILON0) & (budgets.counts >= FEWEST)
    if not served.any():
        raise OutOfRegime(f"chain is evaluated for {FEWEST} users of a budget up to {LARGEST_EPSILON0:g} and more")
    if not served[budgets.epsilons == epsilon0][0]:
        return LocalProfile(epsilon0, 0.0)
    if noise is not None:
        epsilon0, law = round_up(1.0 / float(noise.scale(epsilon0, 0.0)), 8), laplace_law
    return PureChainProfile(epsilon0, n, (law or any_law)(epsilon0))


def chain_hides(mu: float, n: int) -> bool:
    """Whether the theorem says anything of a level.

    Parameters
    ----------
    mu : float
        Diameter of the ball of all messages in standard deviations of their noise, at least 0.
    n : int
        Users of the level, at least 1.

    Raises
    ------
    InvalidInput
        If mu is negative or NaN, or n is below 1.
    """
    if not (mu >= 0.0 and n >= 1):
        raise InvalidInput(f"chain needs mu >= 0 and at least one user; got mu = {mu} and n = {n}")
    return n > 1 and mu <= LARGEST_SHIFT and bool(links(max(mu, SMALLEST_SHIFT), n - 1).sizes)


def chain_profile(mu: float, n: int) -> ChainProfile:
    """Return the profile of (H), or refuse a level of which the theorem says nothing.

    Parameters
    ----------
    mu, n
        As for `chain_hides`.

    Raises
    ------
    InvalidInput
        As `chain_hides`.
    OutOfRegime
        If mu is above 1.199999, or there are too few users for the smallest groups.

    Examples
    --------
    >>> round(chain_profile(0.25, 10_000).epsilon(1e-6).upper, 4)
    0.008
    """
    if not chain_hides(mu, n):
        raise OutOfRegime(_TOO_FEW.format(f"{mu:g} and {n} users"))
    return ChainProfile(max(mu, SMALLEST_SHIFT), n)  # a larger shift is never more private


def chain_or_alone(mu: float, n: int) -> PrivacyProfile:
    """Return the profile of (H), or that of the message alone where the theorem says nothing.

    Parameters
    ----------
    mu, n
        As for `chain_hides`.

    Raises
    ------
    InvalidInput
        As `chain_hides`.
    """
    return chain_profile(mu, n) if chain_hides(mu, n) else GaussianSumProfile(mu)
