"""Normal noise without a common blanket: the victim's report moves along a chain of seats (docs/theorems/chain.md)."""

from __future__ import annotations

import numpy as np

from shuffledp.accounting.bound import AmplificationBound, require_plain
from shuffledp.accounting.engines.chain import ChainProfile
from shuffledp.accounting.engines.noise_sum import GaussianSumProfile
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.theorems.levels import LevelsBound
from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput, OutOfRegime
from shuffledp.guarantee import Kind
from shuffledp.numerics.chain_links import LARGEST_SHIFT, SMALLEST_SHIFT, links
from shuffledp.setting import Setting

_TOO_FEW = "chain needs messages up to 1.2 standard deviations of their noise apart and users for its groups; got {}"


class ChainBound(AmplificationBound):
    """Normal noise, one scale within a level: the chain theorem among the users of the victim's level.

    See docs/theorems/chain.md.
    """

    key = "chain"
    kind = Kind.CERTIFIED_UPPER
    reference = "chain theorem for normal noise within the victim's level (own proof), n = n_g"

    def company(self, setting: Setting, budgets: Budgets, level: int, exposed: int) -> Budgets:
        """The exposed users may all be of the victim's own level."""
        for same in np.flatnonzero(budgets.epsilons == budgets.epsilons[level]).tolist():
            budgets = LevelsBound().company(setting, budgets, same, exposed)
        return budgets

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Profile of (H) for one victim; see `AmplificationBound.one_round`.

        A level whose users have nobody to hide among, or too little noise, keeps the profile of one message.
        """
        require_plain(setting, self.key)
        budgets, noise = setting.budgets, setting.adds_noise
        if noise is None or noise.noise != "gaussian":
            raise OutOfRegime(f"chain is for normal noise; got {setting.randomizer_name}")
        if setting.seen == "users" and budgets.levels > 1:
            raise OutOfRegime("chain needs budgets that belong to users; got seen = users with several budgets")
        same = budgets.epsilons == epsilon0
        if int(same.sum()) > 1:
            raise OutOfRegime("chain needs one noise scale a level; got levels that differ in delta0 alone")
        shifts = 1.0 / noise.scale(budgets.epsilons, budgets.deltas)
        counts = budgets.counts.tolist()
        if not any(chain_hides(mu, n) for mu, n in zip(shifts.tolist(), counts, strict=True)):
            raise OutOfRegime(_TOO_FEW.format(f"{shifts.min():g} and {max(counts)} users"))
        return chain_or_alone(float(shifts[same][0]), int(budgets.counts[same][0]))


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
