"""Inverse questions: how much budget, how many users, how many rounds a wanted central guarantee allows.

The answer is a number at which the guarantee was certified; it is re-evaluated as `certify` would, and moved to
the safe side until that agrees (see `search`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from shuffledp.accounting.search import Search, Target, apportioned, last_within
from shuffledp.budgets import MAX_EPSILON0, Budgets
from shuffledp.dummies import Dummies
from shuffledp.errors import InvalidInput, shown
from shuffledp.randomizers.base import AnyLaw
from shuffledp.setting import Seen, Setting
from shuffledp.told import Told

LARGEST_N = 10**12
MOST_ROUNDS = 10**12
_GRID = 5e-7
"""Factors of budgets are searched on the powers of 1 + 5e-7."""
_STRIDE = 1 << 17
"""The first factor tried is 7 % away."""


@dataclass(frozen=True, repr=False)
class Calibration(Told):
    """Answer to an inverse question.

    Parameters
    ----------
    epsilon0 : float
        Local budget, nats; of several levels the largest.
    n : int
        Number of users.
    delta : float
        Central delta.
    certified_epsilon : float
        Certified central epsilon of the worst level at these values; at most the epsilon asked for.
    setting : Setting
        The setting it was certified in: the question's, with the number searched for filled in.
    rounds : int
        Number of rounds.
    scale : float
        Factor between the budgets of the question and those of ``setting``.
    capped : bool
        Whether the search for the largest number ended at the largest one that it looks at (1e12 rounds, or budgets of
        700): that one is certified, and nothing is said of larger ones.
    """

    epsilon0: float
    n: int
    delta: float
    certified_epsilon: float
    setting: Setting
    rounds: int = 1
    scale: float = 1.0
    capped: bool = False

    def _told(self) -> str:
        rounds = f"{self.rounds} round{'' if self.rounds == 1 else 's'}"
        capped = ", the largest number that is tried" if self.capped else ""
        return (
            f"local epsilon0 {self.epsilon0!r}, {self.n:,} users, {rounds}, factor {self.scale!r}{capped}: central "
            f"epsilon at most {self.certified_epsilon!r} at delta = {self.delta!r}"
        )


def calibrate_epsilon0(
    *,
    n: int,
    epsilon: float,
    delta: float,
    randomizer: AnyLaw | Literal["any"] = "any",
    seen: Seen = "reports",
    delta0: float = 0.0,
    rounds: int = 1,
    linked: bool = False,
    colluding: int = 0,
    missing: float = 0.0,
    group_size: int = 1,
    reports_per_user: int = 1,
    dummies: Dummies | None = None,
    records: int | None = None,
    same_record: bool = False,
) -> Calibration:
    """Largest common local budget whose certified central guarantee is within (epsilon, delta).

    Parameters
    ----------
    n : int
        Number of users, from 1 to 1e12.
    epsilon : float
        Wanted central epsilon, nats, positive.
    delta : float
        Wanted central delta, in (0, 1).
    randomizer, seen, rounds, linked, colluding, missing, group_size, reports_per_user, dummies, records, same_record
        As in `Setting`.
    delta0 : float
        Approximate part of the local budget, in [0, 1).

    Returns
    -------
    Calibration
        The budget, within 1e-6 relative of the largest, always on the safe side; ``capped`` if it is 700.

    Raises
    ------
    InvalidInput
        If a value is out of range, or no budget is small enough.

    Examples
    --------
    >>> calibrate_epsilon0(n=10_000, epsilon=1.0, delta=1e-6).certified_epsilon <= 1.0
    True
    """
    setting = Setting(
        Budgets([1.0], [_whole("n", n, 1)], [delta0]),
        randomizer,
        seen=seen,
        neighboring="replace-one",
        rounds=rounds,
        linked=linked,
        colluding=colluding,
        missing=missing,
        group_size=group_size,
        reports_per_user=reports_per_user,
        dummies=dummies,
        records=records,
        same_record=same_record,
    )
    return replace(calibrate_scale(setting, epsilon, delta), scale=1.0)


def calibrate_n(
    *,
    epsilon0: float,
    epsilon: float,
    delta: float,
    randomizer: AnyLaw | Literal["any"] = "any",
    seen: Seen = "reports",
    delta0: float = 0.0,
    rounds: int = 1,
    linked: bool = False,
    colluding: int = 0,
    missing: float = 0.0,
    group_size: int = 1,
    reports_per_user: int = 1,
    dummies: Dummies | None = None,
    records: int | None = None,
    same_record: bool = False,
) -> Calibration:
    """Smallest batch in which a common local budget has a certified central guarantee within (epsilon, delta).

    Parameters
    ----------
    epsilon0 : float
        Local budget, nats, in [0, 700].
    epsilon : float
        Wanted central epsilon, nats, positive.
    delta : float
        Wanted central delta, in (0, 1).
    randomizer, seen, rounds, linked, colluding, missing, group_size, reports_per_user, dummies, records, same_record
        As in `Setting`; colluding users are counted in the batch.
    delta0 : float
        Approximate part of the local budget, in [0, 1).

    Raises
    ------
    InvalidInput
        If a value is out of range, or no batch up to 1e12 users suffices.

    Examples
    --------
    >>> calibrate_n(epsilon0=2.0, epsilon=1.0, delta=1e-6).n < 1000
    True
    """
    fewest = max(_whole("colluding", colluding, 0) + 1, _whole("group_size", group_size, 1))
    setting = Setting(
        Budgets([epsilon0], [fewest], [delta0]),
        randomizer,
        seen=seen,
        neighboring="replace-one",
        rounds=rounds,
        linked=linked,
        colluding=colluding,
        missing=missing,
        group_size=group_size,
        reports_per_user=reports_per_user,
        dummies=dummies,
        records=records,
        same_record=same_record,
    )
    return calibrate_batch(setting, epsilon, delta)


def calibrate_batch(setting: Setting, epsilon: float, delta: float) -> Calibration:
    """Smallest batch of the population's mix of levels whose certified guarantee is within (epsilon, delta).

    Parameters
    ----------
    setting : Setting
        The question; of its counts only the proportions matter. Colluding users are counted in the batch.
    epsilon : float
        Wanted central epsilon of every level, nats, positive.
    delta : float
        Wanted central delta, in (0, 1).

    Returns
    -------
    Calibration
        ``setting.budgets.counts`` are how many users of each level the batch needs: unless budgets belong to
        steps (``seen="users"``), more users of any level only hide better, so it may be opened as soon as each
        level has as many. One user fewer, taken by the same rule, is not certified.

    Raises
    ------
    InvalidInput
        If a value is out of range, or no batch up to 1e12 users suffices.

    Notes
    -----
    A batch takes the levels in the population's proportions, each rounded up (`apportioned`): every level has at
    least one user, and a larger batch contains the smaller ones.

    Examples
    --------
    >>> setting = Setting(Budgets([0.5, 2.0], [900, 100]), "any", seen="levels", neighboring="replace-one")
    >>> calibrate_batch(setting, 1.0, 1e-6).certified_epsilon <= 1.0
    True
    """
    target = Target.of(epsilon, delta)
    fewest = max(setting.budgets.levels, setting.colluding + 1, setting.group_size)
    most = min(LARGEST_N, 2**53 // setting.reports_per_user)
    if fewest > most:
        raise InvalidInput(f"a batch of at most {most:g} users cannot have {fewest} levels, colluders or group members")
    search = Search(target, lambda n: replace(setting, budgets=apportioned(setting.budgets, n)))
    last = last_within(lambda n: -search.excess(n), fewest - 1, most, geometric=True)
    if last < most:  # from there upwards, until the epsilon agrees
        last = last_within(search.room, last, most)
    if last == most:
        local = float(setting.budgets.epsilons[-1])
        raise InvalidInput(
            f"no batch up to {most:g} users brings epsilon0 = {local:g} to epsilon = {target.epsilon:g} "
            f"at delta = {target.delta:g}; lower the local budget or raise epsilon"
        )
    return _answer(search, last + 1)


def calibrate_rounds(setting: Setting, epsilon: float, delta: float) -> Calibration:
    """Largest number of rounds whose certified central guarantee is within (epsilon, delta).

    Parameters
    ----------
    setting : Setting
        The question; its own number of rounds is not used.
    epsilon : float
        Wanted central epsilon of every level over all rounds, nats, positive.
    delta : float
        Wanted central delta, in (0, 1).

    Returns
    -------
    Calibration
        ``rounds``; one more is not certified, unless ``capped``: the search ends at 1e12.

    Raises
    ------
    InvalidInput
        If a value is out of range, or one round is too much already.

    Examples
    --------
    >>> setting = Setting(Budgets([1.0], [1000]), "any", seen="reports", neighboring="replace-one")
    >>> calibrate_rounds(setting, epsilon=1.0, delta=1e-6).rounds > 20
    True
    """
    target = Target.of(epsilon, delta)
    search = Search(target, lambda rounds: replace(setting, rounds=rounds))
    found = last_within(search.excess, 0, MOST_ROUNDS, geometric=True)
    if found > 0:  # from there downwards, until the epsilon agrees
        found = -last_within(lambda rounds: search.room(-rounds), -found - 1, -1) - 1
    if found == 0:
        one = search.certified(1)
        raise InvalidInput(
            f"one round already has epsilon = {one:g} at delta = {target.delta:g}, more than {target.epsilon:g}; "
            "scale the budgets down, take a larger batch, or raise epsilon"
        )
    return replace(_answer(search, found), capped=found == MOST_ROUNDS)


def calibrate_scale(setting: Setting, epsilon: float, delta: float) -> Calibration:
    """Largest factor for all local budgets with a certified central guarantee within (epsilon, delta).

    Parameters
    ----------
    setting : Setting
        The question; each epsilon0 is multiplied by the factor, up to 700; delta0 is not.
    epsilon : float
        Wanted central epsilon of every level, nats, positive.
    delta : float
        Wanted central delta, in (0, 1).

    Returns
    -------
    Calibration
        ``scale``, within 1e-6 relative of the largest, always on the safe side; ``setting.budgets`` are the
        scaled budgets. If no budget up to 700 is too much, the factor that brings the smallest one there; it is
        ``capped``.

    Raises
    ------
    InvalidInput
        If a value is out of range, every budget is 0, or no factor is small enough.

    Examples
    --------
    >>> setting = Setting(Budgets([0.5, 2.0], [900, 100]), "any", seen="levels", neighboring="replace-one")
    >>> calibrate_scale(setting, epsilon=1.0, delta=1e-6).scale < 1.0
    True
    """
    target = Target.of(epsilon, delta)
    budgets = setting.budgets
    largest = float(budgets.epsilons[-1])
    if largest == 0.0:
        raise InvalidInput("every budget is 0, so any factor serves; give the budgets to scale")
    # a pure local budget is safe by itself if all changed reports of all rounds together stay within epsilon, with
    # room for the ten digits to which a certified epsilon is rounded up
    safe = min(target.epsilon / (setting.changed_reports * setting.rounds) * (1 - 2e-9), MAX_EPSILON0) / largest
    top = MAX_EPSILON0 / float(budgets.epsilons[budgets.epsilons > 0.0][0])

    def scaled(step: int) -> Setting:
        factor = min(safe * math.exp(step * _GRID), top)
        epsilons = np.minimum(budgets.epsilons * factor, MAX_EPSILON0)
        return replace(setting, budgets=Budgets(epsilons, budgets.counts, budgets.deltas))

    last = max(math.ceil(math.log(top / safe) / _GRID), 0)
    search = Search(target, scaled)
    found = last_within(search.excess, -1, last, _STRIDE)
    if found >= 0:  # from there downwards, until the epsilon agrees
        found = -last_within(lambda step: search.room(-step), -found - 1, 0) - 1
    if found < 0:
        raise InvalidInput(
            f"no factor of the budgets brings epsilon to {target.epsilon:g} at delta = {target.delta:g}; "
            f"lower delta0 (the largest is {float(budgets.deltas.max()):g}) or raise delta"
        )
    return replace(_answer(search, found), scale=min(safe * math.exp(found * _GRID), top), capped=found == last)


def _answer(search: Search, number: int) -> Calibration:
    """Return the setting with its certificate."""
    setting, epsilon = search.at(number), search.certified(number)
    largest = float(setting.budgets.epsilons[-1])
    return Calibration(largest, setting.budgets.n, search.target.delta, epsilon, setting, setting.rounds)


def _whole(name: str, value: float, low: int) -> int:
    """Return a whole number of users from low to LARGEST_N, or raise InvalidInput."""
    try:
        found = int(value)
        good = found == value and not isinstance(value, bool)
    except (TypeError, ValueError, OverflowError):
        found, good = low, False
    if not good or not low <= found <= LARGEST_N:
        raise InvalidInput(f"{name} must be a whole number from {low} to 1e12; got {shown(value)}")
    return found
