"""A theorem as the accountant uses it: key, kind, reference, hypotheses, and a privacy profile for each victim."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.profiles.composition import GroupProfile, composed
from shuffledp.accounting.profiles.profile import PrivacyProfile, remembered_by_thread
from shuffledp.budgets import Budgets
from shuffledp.dummies import Uniform
from shuffledp.errors import NotConverged, OutOfRegime
from shuffledp.numerics.floats import Enclosure, FloatArray, Interval
from shuffledp.randomizers.base import MadeFromMemo
from shuffledp.setting import Kind, Setting

MANY_LEVELS = 32
"""Populations with more levels are accounted from one shared distribution of the others (still certified)."""


class AmplificationBound(ABC):
    """A privacy theorem: it answers for the settings that meet its hypotheses, and refuses all others.

    A subclass states one plain round (`one_round`). Colluding users, several reports per user, groups and rounds are
    reduced to a plain round here, once for all theorems (docs/theorems/situations.md). The *victim* is the user whose
    privacy is analysed; a *level* is the set of users with the same local budget.
    """

    key: ClassVar[str]
    kind: ClassVar[Kind]
    reference: ClassVar[str]
    enters_bracket: ClassVar[bool] = True
    """Whether `certify` may use the bound in its interval.

    Published bounds that are only repeated here may not be used.
    """

    @abstractmethod
    def one_round(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the privacy profile that the theorem proves for a victim of the given level, in a plain setting.

        Parameters
        ----------
        setting : Setting
            The collection, with `Setting.is_plain`: one round, one report per user, nobody colluding.
        epsilon0 : float
            The victim's local budget, nats; some user of the setting must have it.

        Returns
        -------
        PrivacyProfile
            Encloses the curve delta(epsilon) that the theorem states: an upper or a lower bound, as `kind` says.

        Raises
        ------
        OutOfRegime
            If a hypothesis does not hold in the setting.
        """

    def company(self, setting: Setting, budgets: Budgets, level: int, exposed: int) -> Budgets:
        """Remove ``exposed`` users in the worst way; return the population that still hides the victim.

        By default those with the smallest budgets are removed: a smaller budget means more noise, which hides the
        victim more.

        Parameters
        ----------
        setting : Setting
            The collection.
        budgets : Budgets
            The whole population, counted in reports.
        level : int
            Position of the victim's level among the budgets; one user of it is always kept.
        exposed : int
            How many reports do not hide the victim, because their users collude or drop out.
        """
        del setting
        return without_smallest(budgets, level, exposed)

    def profile(self, setting: Setting, epsilon0: float) -> PrivacyProfile:
        """Return the privacy profile that the theorem proves for a victim of the given level, in any setting.

        Parameters
        ----------
        setting : Setting
            The collection: population, randomizer, rounds, colluding users.
        epsilon0 : float
            The victim's local budget, nats; some user of the setting must have it.

        Returns
        -------
        PrivacyProfile
            Encloses the curve delta(epsilon) that the theorem states, over all rounds and all changed reports.

        Raises
        ------
        OutOfRegime
            If a hypothesis does not hold in the setting.
        InvalidInput
            If no user has that budget.
        """
        level = setting.budgets.index_of(epsilon0)
        if setting.is_plain:
            return remembered(type(self), self.among_dummies(setting), epsilon0)
        if self.links_matter(setting):
            whole = setting.as_one_round()
            return self.profile(whole, float(whole.budgets.epsilons[level]))
        everybody = several_reports(setting)
        left = self.company(setting, everybody, level, setting.exposed * setting.reports_per_user)
        if left.levels < everybody.levels:  # whoever is left, the hypotheses are about everybody: refuse
            self.one_round(self.among_dummies(setting.plain(everybody)), epsilon0)
        plain = self.among_dummies(setting.plain(left))
        return self.over_rounds(setting, remembered(type(self), plain, epsilon0))

    def among_dummies(self, setting: Setting) -> Setting:
        """Return a plain setting in which uniform dummies are counted as users of budget 0 (D1).

        Parameters
        ----------
        setting : Setting
            A plain setting, from which the users who do not hide the victim have been removed already.

        Returns
        -------
        Setting
            The setting without dummies. Uniform dummies become users whose report is uniform whatever their record.
            Other dummies are left out, because what is released with them is a post-processing of what would be
            released without.

        Raises
        ------
        OutOfRegime
            If this bound is a witness (a certified lower bound, by an attack): it may not leave out reports that hide
            its victim.
        """
        if setting.dummies is None:
            return setting
        people = replace(setting, dummies=None)
        if not isinstance(setting.dummies, Uniform):
            if self.kind is Kind.CERTIFIED_LOWER:
                raise OutOfRegime(f"{self.key} attacks reports among uniform dummies only; got {setting.dummies.name}")
            return people
        if setting.dummies.count == 0:
            return people
        budgets = people.budgets
        columns = (budgets.epsilons, 0.0), (budgets.counts, setting.dummies.count), (budgets.deltas, 0.0)
        return replace(people, budgets=Budgets(*(np.append(column, own) for column, own in columns)))

    def links_matter(self, setting: Setting) -> bool:
        """Return whether all rounds must be analysed as one, because one user's reports can be linked across rounds.

        A witness (a certified lower bound, by an attack) may ignore the links, so for it the answer is False.

        Raises
        ------
        OutOfRegime
            If this bound is a witness that attacks fresh reports, and the setting's reports are all made from one memo.
        """
        if not (setting.linked and setting.rounds > 1):
            return False
        if self.kind is not Kind.CERTIFIED_LOWER:
            return True
        if isinstance(setting.law, MadeFromMemo):
            raise OutOfRegime(f"{self.key} attacks reports drawn anew in every round; got {setting.randomizer_name}")
        return False

    def over_rounds(self, setting: Setting, one: PrivacyProfile) -> PrivacyProfile:
        """Extend the profile of one changed report in one round to the setting's rounds, groups and several reports.

        Rounds are composed first, then groups: so the factor that a group costs is paid once, not once for each round.
        A witness against one changed report is also a witness against several.

        Parameters
        ----------
        setting : Setting
            States the number of rounds and of changed reports.
        one : PrivacyProfile
            The profile of one changed report in one round.

        Returns
        -------
        PrivacyProfile
            The profile over all rounds, for all reports that change with one record.
        """
        every = composed(one, setting.rounds)
        if setting.changed_reports == 1 or self.kind is Kind.CERTIFIED_LOWER:
            return every
        return GroupProfile(every, setting.changed_reports)

    def level_epsilons(
        self, setting: Setting, delta: float, levels: NDArray[np.int64], ceilings: FloatArray | None = None
    ) -> Enclosure:
        """Enclose the central epsilon of each listed level at one delta.

        Parameters
        ----------
        setting : Setting
            The collection.
        delta : float
            Central delta, in (0, 1).
        levels : ndarray of int, shape (listed,)
            Levels, by their position among the budgets.
        ceilings : ndarray, shape (listed,), optional
            Upper bounds that are known already, nats: an upper bound that is above them may be enclosed more widely.

        Returns
        -------
        Enclosure, shape (listed,)
            Lower and upper ends of what the theorem states as each level's epsilon, nats.
        """
        if self.links_matter(setting):
            return self.level_epsilons(setting.as_one_round(), delta, levels, ceilings)
        budgets = setting.budgets
        if budgets.levels <= MANY_LEVELS:
            return self.level_by_level(setting, delta, levels, ceilings)
        if setting.is_plain and setting.dummies is None:
            return self.many_levels(setting, delta, levels)
        everybody = several_reports(setting)
        exposed = setting.exposed * setting.reports_per_user
        left = setting.plain(self.company(setting, everybody, everybody.levels - 1, exposed))
        if left.budgets.levels < everybody.levels:  # whoever is left, the hypotheses are about everybody: refuse
            self.one_round(self.among_dummies(setting.plain(everybody)), float(everybody.epsilons[-1]))
        left = self.among_dummies(left)
        # a victim below all that are left is rounded up to the smallest of them, which no witness may be
        mapped = np.searchsorted(left.budgets.epsilons, budgets.epsilons[levels])
        raised = left.budgets.epsilons[mapped] > budgets.epsilons[levels]
        if setting.changed_reports == setting.rounds == 1:
            enclosure = self.many_levels(left, delta, mapped)
        else:
            victim = self.any_victim(left)
            enclosure = epsilons_by_anchors(
                left.budgets.epsilons[mapped],
                delta,
                lambda e: self.over_rounds(setting, victim(e)),
                anchors=12,
                capped=False,
                rising=self.rises_with_budget(left),
                ceilings=ceilings,
                lower_only=self.attacks_rounds(setting),
            )
        return Enclosure(np.where(raised, 0.0, enclosure.lower), enclosure.upper)

    def level_by_level(
        self, setting: Setting, delta: float, levels: NDArray[np.int64], ceilings: FloatArray | None = None
    ) -> Enclosure:
        """Enclose the central epsilon of each listed level by inverting its own profile; see `level_epsilons`.

        Of an attack over several rounds only the lower end is computed, which is then both ends.
        """
        epsilons = setting.budgets.epsilons[levels].tolist()
        if self.attacks_rounds(setting):
            lower = np.array([self.profile(setting, e).shown_epsilon(delta) for e in epsilons])
            return Enclosure(lower, lower)
        most = [math.inf] * levels.size if ceilings is None else ceilings.tolist()
        intervals = [self.profile(setting, e).epsilon_below(delta, c) for e, c in zip(epsilons, most, strict=True)]
        return Enclosure(np.array([f.lower for f in intervals]), np.array([f.upper for f in intervals]))

    def attacks_rounds(self, setting: Setting) -> bool:
        """Return whether this bound is an attack (a certified lower bound) and the setting has several rounds."""
        return self.kind is Kind.CERTIFIED_LOWER and setting.rounds > 1

    def many_levels(self, setting: Setting, delta: float, levels: NDArray[np.int64]) -> Enclosure:
        """Enclose the central epsilon of each listed level in a plain setting with more than MANY_LEVELS (32) levels.

        Only some of the levels are computed; the others are bounded by their neighbours (`epsilons_by_anchors`).
        Parameters are as for `level_epsilons`.
        """
        victim, rising = self.any_victim(setting), self.rises_with_budget(setting)
        return epsilons_by_anchors(setting.budgets.epsilons[levels], delta, victim, rising=rising)

    def rises_with_budget(self, setting: Setting) -> bool:
        """Return whether a victim with a larger local budget, all else equal, has at least as large a central epsilon.

        If so, the epsilon of one level bounds that of every smaller one. The default is True.
        """
        del setting
        return True

    def any_victim(self, setting: Setting) -> Callable[[float], PrivacyProfile]:
        """Return a function from a victim's local budget (nats) to a profile, with the same other users for all.

        It serves plain settings with more than MANY_LEVELS (32) levels: the shared population of others is one that is
        safe for every victim. The default refuses.

        Parameters
        ----------
        setting : Setting
            The collection, plain.

        Raises
        ------
        OutOfRegime
            If the theorem is not evaluated for so many levels, as by default.
        """
        del setting
        raise OutOfRegime(f"{self.key} is not evaluated for more than {MANY_LEVELS} levels")


@remembered_by_thread(64)
def remembered(bound: type[AmplificationBound], setting: Setting, epsilon0: float) -> PrivacyProfile:
    """Return ``bound().one_round(setting, epsilon0)``, cached for each thread.

    Rounds, groups and other bounds ask for the same profile, which also keeps the values that it has evaluated.
    """
    return bound().one_round(setting, epsilon0)


def without_smallest(budgets: Budgets, level: int, exposed: int) -> Budgets:
    """Return the population without ``exposed`` users of the smallest budgets, keeping one user of ``level``.

    Parameters
    ----------
    budgets : Budgets
        The population.
    level : int
        Position of a level among the budgets; one of its users is kept.
    exposed : int
        How many users are removed.
    """
    if exposed == 0:
        return budgets
    others = budgets.counts.copy()
    others[level] -= 1
    before = np.cumsum(others) - others
    left = others - np.clip(exposed - before, 0, others)
    left[level] += 1
    keep = left > 0
    return Budgets(budgets.epsilons[keep], left[keep], budgets.deltas[keep])


def several_reports(setting: Setting) -> Budgets:
    """Return the setting's population with every count multiplied by the number of reports per user."""
    budgets = setting.budgets
    if setting.reports_per_user == 1:
        return budgets
    return Budgets(budgets.epsilons, budgets.counts * setting.reports_per_user, budgets.deltas)


def levels_to_check(setting: Setting) -> range:
    """Return positions of the levels among which the largest central epsilon is, the largest local budget first.

    Only the top level where the certified epsilon rises with the victim's local budget, else all levels. It rises if
    all budgets share one blanket; it is the same for everybody if budgets belong to steps of the protocol
    (docs/theorems/situations.md).
    """
    top = setting.budgets.levels - 1
    common = setting.seen == "reports" and setting.discrete is not None and setting.discrete.mixture
    shared = setting.budgets.is_pure and ((common and not setting.linked) or setting.seen == "users")
    return range(top, top - 1 if shared else -1, -1)


def epsilons_by_anchors(
    epsilon0: FloatArray,
    delta: float,
    profile: Callable[[float], PrivacyProfile],
    anchors: int = 24,
    *,
    capped: bool = True,
    rising: bool = True,
    ceilings: FloatArray | None = None,
    lower_only: bool = False,
) -> Enclosure:
    """Enclose the central epsilon of many victims, of whom only some (the anchors) are computed.

    Parameters
    ----------
    epsilon0 : ndarray, shape (victims,)
        The victims' local budgets, nats, ascending.
    delta : float
        Central delta, in (0, 1).
    profile : callable
        From a local budget to the privacy profile of a victim with it, everything else being the same for all victims.
    anchors : int
        How many victims are computed; the others take the next larger anchor's upper end and the next smaller
        one's lower end.
    capped : bool
        Whether a victim's central epsilon is at most the local budget: true of one pure report, false of several.
    rising : bool
        Whether epsilon does not decrease in the victim's budget. If it may, victims that are not computed get the
        trivial interval.
    ceilings : ndarray, shape (victims,), optional
        Upper bounds that are known already, as for `AmplificationBound.level_epsilons`: an anchor uses the largest
        ceiling of the victims that it bounds.
    lower_only : bool
        Whether only lower ends are asked for; they are then both ends.

    Returns
    -------
    Enclosure, shape (victims,)
        Certified lower and upper ends of each victim's central epsilon, nats.
    """
    chosen = np.unique(np.round(np.linspace(0, epsilon0.size - 1, min(anchors, epsilon0.size))).astype(np.int64))
    most = np.full(epsilon0.size, math.inf) if ceilings is None else ceilings
    starts = np.append(0, chosen[:-1] + 1)
    tops = np.maximum.reduceat(most, starts).tolist()

    def ends(one: PrivacyProfile, top: float) -> Interval:
        if not lower_only:
            return one.epsilon_below(delta, top)
        least = one.shown_epsilon(delta)
        return Interval(least, least)

    intervals = [ends(profile(float(epsilon0[at])), top) for at, top in zip(chosen, tops, strict=True)]
    after = np.searchsorted(chosen, np.arange(epsilon0.size), side="left")
    before = np.searchsorted(chosen, np.arange(epsilon0.size), side="right") - 1
    lower, upper = np.array([f.lower for f in intervals])[before], np.array([f.upper for f in intervals])[after]
    if not rising:
        own = chosen[before] == np.arange(epsilon0.size)
        lower, upper = np.where(own, lower, 0.0), np.where(own, upper, math.inf)
    return Enclosure(lower, np.minimum(upper, epsilon0) if capped else upper)


def require_one_pure_round(setting: Setting, key: str) -> None:
    """Raise OutOfRegime, naming the bound ``key``, unless the setting is one plain round with delta0 = 0."""
    require_plain(setting, key)
    if not setting.budgets.is_pure:
        raise OutOfRegime(f"{key} needs pure local budgets (delta0 = 0); got delta0 = {setting.budgets.deltas.max():g}")


def require_plain(setting: Setting, key: str) -> None:
    """Raise OutOfRegime, naming the bound ``key``, for several rounds, or colluding, missing or grouped reports."""
    if setting.is_plain:
        return
    features = {
        "several rounds": setting.rounds != 1,
        "linked rounds": setting.linked,
        "one record for all rounds": setting.same_record,
        "colluding users": setting.colluding != 0,
        "missing reports": setting.missing != 0.0,
        "groups": setting.group_size != 1,
        "several reports per user": setting.reports_per_user != 1,
    }
    raise OutOfRegime(f"{key} covers one plain round; got {', '.join(name for name, set_ in features.items() if set_)}")


def refuse_third_records(setting: Setting, key: str) -> None:
    """Raise OutOfRegime if records take only two values: the attack named ``key`` needs others who hold a third one."""
    if setting.records is not None:
        raise OutOfRegime(f"{key} needs a third record for the others; records take {setting.records} values")


def shows_levels(setting: Setting) -> bool:
    """Return whether an attacker may know the level (local budget) of each report.

    True if levels are visible, or if the randomizer is "any", which may append the level to the report.
    """
    if setting.budgets.levels == 1:
        return False
    return setting.seen == "levels" or (setting.seen == "reports" and isinstance(setting.randomizer, str))


def level_alone(setting: Setting, epsilon0: float) -> Setting:
    """Return the setting restricted to the users of budget ``epsilon0``.

    They are all that hides a user whose level is visible.
    """
    level = setting.budgets.index_of(epsilon0)
    alone = Budgets([epsilon0], [int(setting.budgets.counts[level])], [float(setting.budgets.deltas[level])])
    return replace(setting, budgets=alone, seen="reports")


# Asking several theorems one question: what each says, or why it refuses.

Asked = TypeVar("Asked")
T = TypeVar("T")


@dataclass(frozen=True)
class Answer(Generic[Asked, T]):
    """The answer of one bound to one question, or the reason why it refused.

    Parameters
    ----------
    bound : AmplificationBound, or str
        The bound that was asked, or its key.
    value : T or None
        Its answer; None if it refused.
    refused : str or None
        Why its theorem does not apply, or why its number could not be certified; None if it answered.
    """

    bound: Asked
    value: T | None
    refused: str | None = None


def weigh(chosen: Iterable[Asked], ask: Callable[[Asked], T]) -> Iterator[Answer[Asked, T]]:
    """Ask several bounds the same question, in order, and record each answer or refusal.

    Nothing else in the library decides which bound applies. A bound is asked only when its answer is read, so a caller
    who has read enough may stop.

    Parameters
    ----------
    chosen : iterable of AmplificationBound, or of str
        The bounds; a training run names its own by their keys.
    ask : callable
        From a bound to its answer; raises OutOfRegime or NotConverged to refuse.

    Yields
    ------
    Answer
        One per bound, in the order of ``chosen``.
    """
    for bound in chosen:
        try:
            value = ask(bound)
        except (OutOfRegime, NotConverged) as refusal:
            yield Answer(bound, None, str(refusal))
            continue
        yield Answer(bound, value)
