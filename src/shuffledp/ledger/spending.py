"""What one release costs the people in it: certified upper profiles, and nothing of their records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shuffledp.accounting import (
    AmplificationBound,
    PrivacyProfile,
    SmallestProfile,
    StoredProfile,
    bounds,
    certified_uppers,
    weigh,
)
from shuffledp.guarantee import Guarantee
from shuffledp.setting import Setting

MOST_LEVELS = 8
"""Levels whose own profile is kept; of more levels only the worst is."""
_TOP_STANDS_FOR_ALL = ("clones", "blanket", "ordered", "local", "floor")
"""Upper bounds whose curve for the users of the largest budget lies on or above everybody's: (T) of
docs/theorems/ledger.md. Of added noise this is not known of `blanket`, which is then left out; so is `clones` where
levels do not hide each other."""


@dataclass(frozen=True, eq=False)
class LevelSpending:
    """What a release costs the people of one budget level.

    Parameters
    ----------
    epsilon0, delta0 : float
        The local budget.
    profile : StoredProfile
        Certified upper curve.
    """

    epsilon0: float
    delta0: float
    profile: StoredProfile


@dataclass(frozen=True, eq=False)
class Spending:
    """What a release costs.

    Parameters
    ----------
    epsilon, delta : float
        Its certified central guarantee, worst over levels.
    n : int
        Number of people or reports.
    levels_total : int
        How many budget levels there are.
    worst : StoredProfile
        A certified upper curve for everybody in it.
    levels : tuple of LevelSpending
        The curve of each level; empty where there are more than `MOST_LEVELS`, or they are not told apart.
    """

    epsilon: float
    delta: float
    n: int
    levels_total: int
    worst: StoredProfile
    levels: tuple[LevelSpending, ...] = ()

    @staticmethod
    def of(guarantee: Guarantee) -> Spending:
        """Return what a release with this guarantee costs.

        Parameters
        ----------
        guarantee : Guarantee
            Of `certify`: its setting is accounted anew, and what it states at its delta is counted too.
        """
        setting = guarantee.setting
        budgets = setting.budgets
        told = (guarantee.epsilon.upper, guarantee.delta, budgets.n, budgets.levels)
        if budgets.levels > MOST_LEVELS:
            return Spending(*told, _among_many(guarantee))
        levels = tuple(
            LevelSpending(float(e), float(d), StoredProfile.of(_upper(setting, float(e))))
            for e, d in zip(budgets.epsilons, budgets.deltas, strict=True)
        )
        return Spending(*told, StoredProfile.largest([level.profile for level in levels]), levels)

    @staticmethod
    def stated(levels: Sequence[tuple[float, float]], delta: float, n: int) -> Spending:
        """Return what is known to cost (epsilon, delta), level by level, and of which no more is known.

        Parameters
        ----------
        levels : sequence of (float, float)
            epsilon0 and certified central epsilon of each level, at least one.
        delta : float
            Central delta of all of them.
        n : int
            Number of people.
        """
        known = tuple(LevelSpending(e0, 0.0, StoredProfile.stated(epsilon, delta)) for e0, epsilon in levels)
        worst = max(epsilon for _, epsilon in levels)
        kept = known if len(known) <= MOST_LEVELS else ()
        return Spending(worst, delta, n, len(known), StoredProfile.stated(worst, delta), kept)

    @staticmethod
    def apart(parts: Sequence[Spending]) -> Spending:
        """Return what a release costs those of several groups who spend most; nobody is in two of them.

        Parameters
        ----------
        parts : sequence of Spending
            One a group, at least one, all at one delta.
        """
        levels: dict[tuple[float, float], list[StoredProfile]] = {}
        for level in (level for part in parts for level in part.levels):
            levels.setdefault((level.epsilon0, level.delta0), []).append(level.profile)
        kept = tuple(LevelSpending(*key, StoredProfile.largest(found)) for key, found in sorted(levels.items()))
        told = all(part.levels for part in parts) and len(kept) <= MOST_LEVELS
        return Spending(
            max(part.epsilon for part in parts),
            parts[0].delta,
            sum(part.n for part in parts),
            max(len(kept), max(part.levels_total for part in parts)),
            StoredProfile.largest([part.worst for part in parts]),
            kept if told else (),
        )


def _upper(setting: Setting, epsilon0: float) -> PrivacyProfile:
    """Return the certified upper end alone: witnesses would cost time, and do not enter."""
    return SmallestProfile(_answers(certified_uppers(setting), setting, epsilon0))


def _among_many(guarantee: Guarantee) -> StoredProfile:
    """One curve for all of many levels: of the largest budget where that stands for all, and what `certify` found."""
    setting = guarantee.setting
    stated = StoredProfile.stated(guarantee.epsilon.upper, guarantee.delta)
    if not setting.budgets.is_pure:
        return stated
    known = [bounds[key] for key in _TOP_STANDS_FOR_ALL if key != "blanket" or setting.adds_noise is None]
    asked = [bound for bound in known if bound.rises_with_budget(setting)]
    return StoredProfile.of(SmallestProfile((stated, *_answers(asked, setting, float(setting.budgets.epsilons[-1])))))


def _answers(asked: Sequence[AmplificationBound], setting: Setting, epsilon0: float) -> tuple[PrivacyProfile, ...]:
    """Profiles of the bounds that apply."""
    answers = weigh(asked, lambda bound: bound.profile(setting, epsilon0))
    return tuple(answer.value for answer in answers if answer.value is not None)
