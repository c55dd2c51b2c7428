"""Formulas as published: shown beside the certified numbers, never instead of them.

Here are what they share (`PublishedBound`), and those that are one Gaussian or one clone pair; the closed forms
(`closed`), the blanket inequalities (`blanket`), the Rényi bounds (`renyi`) and the
personalised formula (`personal`) have modules of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import AmplificationBound, require_plain
from shuffledp.accounting.profiles.gaussian import GaussianProfile
from shuffledp.accounting.profiles.profile import PrivacyProfile
from shuffledp.accounting.theorems.clones.pair import ClonePairProfile
from shuffledp.budgets import Budgets
from shuffledp.errors import OutOfRegime
from shuffledp.guarantee import Kind
from shuffledp.numerics.counts import SuccessRange
from shuffledp.numerics.interval import Enclosure, FloatArray
from shuffledp.setting import Setting

PAPER, CODE, SECOND, OWN = "paper", "code", "second", "own"
"""How surely a formula is known: read in the paper, in its authors' code, in another text; or our own."""


class PublishedBound(AmplificationBound):
    """A formula of a publication, one number for all victims; it never enters the certified interval.

    It answers for one plain round (`Setting.is_plain`), or for several where the publication itself composes.
    """

    enters_bracket: ClassVar[bool] = False
    source: ClassVar[str]
    """One of ``"paper"``, ``"code"``, ``"second"``, ``"own"``: how surely the formula is known."""
    composes: ClassVar[bool] = False
    """Whether the publication states what several rounds cost."""

    def profile(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the published quantity; see `AmplificationBound.profile`."""
        setting.budgets.index_of(epsilon0)
        require_plain(replace(setting, rounds=1) if self.composes else setting, self.key)
        return self.over_rounds(setting, self.one_round(setting.plain(setting.budgets), epsilon0))

    def level_epsilons(
        self, setting: Setting, delta: float, levels: NDArray[np.int64], ceilings: FloatArray | None = None
    ) -> Enclosure:
        """Return one number for all levels."""
        found = self.profile(setting, float(setting.budgets.epsilons[-1])).epsilon(delta)
        return Enclosure(np.full(levels.size, found.lower), np.full(levels.size, found.upper))


def require_one_budget(setting: Setting, key: str) -> None:
    """Refuse several budgets, and local delta0 > 0."""
    budgets = setting.budgets
    if not budgets.is_pure:
        raise OutOfRegime(f"{key} needs pure local budgets (delta0 = 0); got delta0 = {budgets.deltas.max():g}")
    if budgets.levels > 1:
        raise OutOfRegime(
            f"{key} needs one budget for all users; got {budgets.levels} levels, epsilon0 from "
            f"{budgets.epsilons[0]:g} to {budgets.epsilons[-1]:g}"
        )


def require_company(setting: Setting, key: str) -> None:
    """Refuse a single user, for whom a formula with n - 1 says nothing."""
    if setting.budgets.n < 2:
        raise OutOfRegime(f"{key} needs n >= 2 users; got n = {setting.budgets.n}")


def require_unordered(setting: Setting, key: str) -> None:
    """Refuse ordered outputs of any randomizer, which may change with the step and with earlier outputs."""
    if setting.seen == "users" and setting.law is None:
        raise OutOfRegime(
            f"{key} needs one randomizer for all reports; got seen = users with randomizer 'any', which may depend "
            "on the step and on earlier outputs"
        )


def gspa_mu(budgets: Budgets) -> float:
    """Return the mu of GSPA Theorem 2: sqrt(2/(sum_i a_i - max_i a_i)), a_i = (1 - delta_i)/(1 + e^epsilon_i).

    Parameters
    ----------
    budgets : Budgets
        Every user's budget; the formula makes no difference between victims.
    """
    low = np.exp(-budgets.epsilons)
    shares = (1.0 - budgets.deltas) * low / (1.0 + low)
    rest = float(shares @ budgets.counts) - float(shares.max())
    return math.sqrt(2.0 / rest) if budgets.n > 1 and rest > 0.0 else math.inf


class GspaBound(PublishedBound):
    """GSPA Theorem 2 with its error term dropped, as the paper uses it; asymptotic, and wrong in places.

    Several rounds cost sqrt(rounds) * mu (its Theorem 5). See docs/theorems/gspa.md.
    """

    key = "gspa"
    kind = Kind.ASYMPTOTIC
    reference = "Chen, Cao, Ge (AAAI 2024), Theorem 2 and Fact 3, as published"
    source = PAPER
    composes = True

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the same Gaussian profile for every victim; see `AmplificationBound.one_round`."""
        if setting.seen == "levels" and setting.budgets.levels > 1:
            raise OutOfRegime("gspa lets users of different levels hide each other; levels are visible here")
        return GaussianProfile(gspa_mu(setting.budgets))

    def over_rounds(self, setting: Setting, one: PrivacyProfile) -> PrivacyProfile:
        """Theorem 5: sqrt(rounds) * mu."""
        del one
        return GaussianProfile(gspa_mu(setting.budgets) * math.sqrt(setting.rounds))


class RdpGaussianBound(PublishedBound):
    """The RDP paper's Theorem 2, mu = 2 e^{epsilon0/2}/sqrt(n - 1); asymptotic. See docs/theorems/rdp-gdp.md."""

    key = "rdp-gdp"
    kind = Kind.ASYMPTOTIC
    reference = "Chen, Cao, Ge (ICASSP 2024), Theorem 2, as published"
    source = PAPER

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return a Gaussian profile; see `AmplificationBound.one_round`."""
        require_one_budget(setting, self.key)
        require_company(setting, self.key)
        return GaussianProfile(2.0 * math.exp(epsilon0 / 2.0) / math.sqrt(setting.budgets.n - 1))


class ClonesClosedBound(PublishedBound):
    """Gaussian limit of the clone pair, mu = tanh(epsilon0/2) sqrt(2 (1 + e^epsilon0)/(n - 1)): a first guess.

    Ours, asymptotic. See docs/theorems/clones-closed.md.
    """

    key = "clones-closed"
    kind = Kind.ASYMPTOTIC
    reference = "central limit of the clone pair (own closed form): a first guess, not a bound"
    source = OWN

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return a Gaussian profile; see `AmplificationBound.one_round`."""
        require_one_budget(setting, self.key)
        require_company(setting, self.key)
        width = math.sqrt(2.0 * (1.0 + math.exp(epsilon0)) / (setting.budgets.n - 1))
        return GaussianProfile(math.tanh(epsilon0 / 2.0) * width)


class Clones2022Bound(AmplificationBound):
    """The clone pair of 2022, p = e^{-epsilon0}: proved and shown; `clones`, p = 2/(1 + e^{epsilon0}), is smaller.

    See docs/theorems/clones-2022.md.
    """

    key = "clones-2022"
    kind = Kind.CERTIFIED_UPPER
    reference = "Feldman, McMillan, Talwar (FOCS 2021), the clone pair with p = e^{-epsilon0}, evaluated exactly"
    source: ClassVar[str] = PAPER
    enters_bracket = False

    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the clone pair with fewer clones; see `AmplificationBound.one_round`."""
        require_one_budget(setting, self.key)
        others = np.array([setting.budgets.n - 1.0])
        return ClonePairProfile(epsilon0, SuccessRange.of(np.exp(-setting.budgets.epsilons), others, ulps=8))

    def any_victim(self, setting: Setting) -> Callable[[float], PrivacyProfile]:
        """Refuse: several levels are several budgets."""
        require_one_budget(setting, self.key)
        return super().any_victim(setting)
