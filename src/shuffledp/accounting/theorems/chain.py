"""No common blanket: the victim's report moves along a chain of seats (docs/theorems/chain.md)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shuffledp.accounting.bound import require_plain
from shuffledp.accounting.engines.chain import ChainProfile, PureChainProfile
from shuffledp.accounting.engines.noise_sum import GaussianSumProfile
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.theorems.clones import AmongEquals
from shuffledp.accounting.theorems.local import LocalProfile
from shuffledp.errors import InvalidInput, OutOfRegime
from shuffledp.guarantee import Kind
from shuffledp.numerics.chain_links import LARGEST_SHIFT, SMALLEST_SHIFT, links
from shuffledp.numerics.floats import round_up
from shuffledp.numerics.ratio_moments import RatioMoments, finite_moments, laplace_moments
from shuffledp.randomizers.base import AlikeTriples
from shuffledp.setting import Setting

LARGEST_EPSILON0, FEWEST = 5.0, 100
"""Pure reports: budgets and sizes of levels for which the theorem is evaluated."""
_SERVES = "chain is for normal and Laplace noise, hadamard, unary encoding and subsets over three records or more"
_TOO_FEW = (
    "chain needs messages up to 1.2 standard deviations of their noise apart, and enough users to form its groups; "
    "got {}"
)


class ChainBound(AmongEquals):
    """The chain theorem among the users of the victim's level: normal and Laplace noise, reports of two likelihoods.

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
    """Laplace noise, or reports that are likely or unlikely, the same way for any three records."""
    budgets, noise, law = setting.budgets, setting.adds_noise, setting.discrete
    if not budgets.is_pure:
        raise OutOfRegime(f"chain needs pure budgets or normal noise; got delta0 = {budgets.deltas.max():g}")
    family = law if isinstance(law, AlikeTriples) and law.triples_alike and law.k > 2 else None
    if noise is None and family is None:
        raise OutOfRegime(f"{_SERVES}; got {setting.randomizer_name}")
    served = (budgets.epsilons > 0.0) & (budgets.epsilons <= LARGEST_EPSILON0) & (budgets.counts >= FEWEST)
    if not served.any():
        raise OutOfRegime(f"chain is evaluated for {FEWEST} users of a budget up to {LARGEST_EPSILON0:g} and more")
    if not served[budgets.epsilons == epsilon0][0]:
        return LocalProfile(epsilon0, 0.0)
    if family is None:
        return _laplace_profile(1.0 / float(noise.scale(epsilon0, 0.0)) if noise is not None else epsilon0, n)
    kinds, active = two_level_kinds(family, epsilon0)
    return PureChainProfile(epsilon0, n, kinds, active, family.k)


def _laplace_profile(epsilon0: float, n: int) -> PureChainProfile:
    """Records in one bin of the range are a group; the ratios of others to them are taken at their ends."""
    raised = round_up(epsilon0, 8)
    moments = laplace_moments(raised)
    return PureChainProfile(raised, n, lambda growth: (moments.at(growth),), 1.0, None)


def two_level_kinds(law: AlikeTriples, epsilon0: float) -> tuple[Callable[[float], list[RatioMoments]], float]:
    """Return the moments of L for every place of the third record, and how likely a ratio of two records is not 1.

    Parameters
    ----------
    law : TwoLevelFamily
        Over three records or more: any three different ones are alike.
    epsilon0 : float
        Nats, positive.
    """
    pair = law.pair_blankets(epsilon0)[0]
    weight, own = pair.masses * pair.ratios1, pair.ratios0 / pair.ratios1  # the third record is x1
    third, _ = law.witness_pairs(epsilon0) or (pair, pair)  # there is none only of two records
    one = np.ones_like(own)
    places = [(weight, own, one), (weight, one, own), (third.masses, third.ratios0, third.ratios1)]
    active = float(weight[own != 1.0].sum())

    def kinds(growth: float) -> list[RatioMoments]:
        return [finite_moments(*place, growth) for place in places]

    return kinds, min(round_up(active, 64), 1.0)


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
