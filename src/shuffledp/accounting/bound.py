"""What a theorem is to the accountant: a key, a kind, a reference, a regime, and a profile per victim."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.profile import PrivacyProfile
from shuffledp.budgets import Budgets
from shuffledp.errors import OutOfRegime
from shuffledp.guarantee import Kind
from shuffledp.numerics.interval import Enclosure, FloatArray, Interval
from shuffledp.setting import Setting

MANY_LEVELS = 32
"""Populations with more levels are accounted from one shared distribution of the others (still certified)."""


class AmplificationBound(ABC):
    """A theorem: it answers for the settings its hypotheses fit, and refuses every other."""

    key: ClassVar[str]
    kind: ClassVar[Kind]
    reference: ClassVar[str]

    @abstractmethod
    def profile(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """The theorem's own quantity for a victim of the given level.

        Parameters
        ----------
        setting : Setting
            The question.
        epsilon0 : float
            A budget that some user of the setting has (nats).

        Raises
        ------
        OutOfRegime
            If a hypothesis does not hold in the setting.
        InvalidInput
            If no user has that budget.
        """

    def level_epsilons(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """Enclose the central epsilon of each listed level at one delta, shape (listed,)."""
        found = [self.profile(setting, float(setting.budgets.epsilons[level])).epsilon(delta) for level in levels]
        return Enclosure(np.array([f.lower for f in found]), np.array([f.upper for f in found]))


def epsilons_by_anchors(
    epsilon0: FloatArray, delta: float, profile: Callable[[float], PrivacyProfile], anchors: int = 24
) -> Enclosure:
    """Enclose many victims' epsilons from a few, for a quantity that does not decrease in the victim's budget.

    Parameters
    ----------
    epsilon0 : ndarray, shape (victims,)
        Ascending budgets.
    delta : float
        Central delta.
    profile : callable
        Profile of a victim of the given budget, everything else being the same for all victims.
    anchors : int
        How many victims are computed; the others take the next larger anchor's upper end and the next smaller
        one's lower end.
    """
    chosen = np.unique(np.round(np.linspace(0, epsilon0.size - 1, min(anchors, epsilon0.size))).astype(np.int64))
    found = [profile(float(epsilon0[index])).epsilon(delta) for index in chosen]
    after = np.searchsorted(chosen, np.arange(epsilon0.size), side="left")
    before = np.searchsorted(chosen, np.arange(epsilon0.size), side="right") - 1
    return Enclosure(
        np.array([f.lower for f in found])[before],
        np.minimum(np.array([f.upper for f in found])[after], epsilon0),
    )


@dataclass(frozen=True, eq=False)
class SmallestProfile(PrivacyProfile):
    """Pointwise minimum of several upper bounds on one profile.

    Parameters
    ----------
    parts : tuple of PrivacyProfile
        At least one.
    """

    parts: tuple[PrivacyProfile, ...]

    @property
    def vanishes_at(self) -> float:
        """From the first point on at which a part vanishes."""
        return min(part.vanishes_at for part in self.parts)

    def delta_at(self, epsilon: float) -> Interval:
        """The smallest of the parts' deltas."""
        found = [part.delta(epsilon) for part in self.parts]
        return Interval(min(f.lower for f in found), min(f.upper for f in found))

    def epsilon(self, delta: float) -> Interval:
        """The smallest of the parts' epsilons, which is the inverse of their minimum."""
        found = [part.epsilon(delta) for part in self.parts]
        return Interval(min(f.lower for f in found), min(f.upper for f in found))


def require_one_pure_round(setting: Setting, key: str) -> None:
    """Refuse what no theorem here covers yet: several rounds, or local delta0 > 0."""
    if setting.rounds != 1:
        raise OutOfRegime(f"{key} covers one round; got rounds = {setting.rounds}; composition is not in this version")
    if not setting.budgets.is_pure:
        raise OutOfRegime(f"{key} needs pure local budgets (delta0 = 0); got delta0 = {setting.budgets.deltas.max():g}")


def shows_levels(setting: Setting) -> bool:
    """Whether an attacker may know each report's level: levels visible, or any randomizer, which may append it."""
    if setting.budgets.levels == 1:
        return False
    return setting.seen == "levels" or (setting.seen == "reports" and isinstance(setting.randomizer, str))


def level_alone(setting: Setting, epsilon0: float) -> Setting:
    """The sub-population of one level, which is all that hides a user whose level is visible."""
    level = setting.budgets.index_of(epsilon0)
    alone = Budgets([epsilon0], [int(setting.budgets.counts[level])])
    return Setting(alone, setting.randomizer, "reports", setting.neighboring, setting.rounds)
