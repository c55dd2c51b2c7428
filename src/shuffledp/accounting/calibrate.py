"""Inverse questions: the largest local budget, the smallest batch, for a wanted central guarantee."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from shuffledp.accounting.certify import privacy_profile
from shuffledp.accounting.profile import check_delta
from shuffledp.budgets import MAX_EPSILON0, Budgets
from shuffledp.errors import InvalidInput
from shuffledp.randomizers.base import LocalRandomizer
from shuffledp.setting import Setting

LARGEST_N = 10**12


@dataclass(frozen=True)
class Calibration:
    """Answer to an inverse question.

    Parameters
    ----------
    epsilon0 : float
        Local budget, nats.
    n : int
        Number of users.
    delta : float
        Central delta.
    certified_epsilon : float
        Certified central epsilon at these values; at most the epsilon asked for.
    """

    epsilon0: float
    n: int
    delta: float
    certified_epsilon: float


def calibrate_epsilon0(
    *, n: int, epsilon: float, delta: float, randomizer: LocalRandomizer | Literal["any"] = "any"
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
    randomizer : LocalRandomizer or "any"
        As in `Setting`.

    Returns
    -------
    Calibration
        The budget, within 1e-6 relative of the largest, always on the safe side.

    Raises
    ------
    InvalidInput
        If a value is out of range.

    Examples
    --------
    >>> calibrate_epsilon0(n=10_000, epsilon=1.0, delta=1e-6).certified_epsilon <= 1.0
    True
    """
    wanted, target, users = _check_epsilon(epsilon), check_delta(delta), _check_n(n)

    def certified(epsilon0: float) -> float:
        return _certified(users, epsilon0, target, randomizer)

    # the local budget itself is always safe; grow from there
    low, high = min(wanted, MAX_EPSILON0), math.inf
    while math.isinf(high):
        trial = min(low * 1.5 + 0.1, MAX_EPSILON0)
        if certified(trial) <= wanted:
            if trial == MAX_EPSILON0:
                return Calibration(trial, users, target, certified(trial))
            low = trial
        else:
            high = trial
    while high - low > 1e-6 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if certified(middle) <= wanted else (low, middle)
    return Calibration(low, users, target, certified(low))


def calibrate_n(
    *, epsilon0: float, epsilon: float, delta: float, randomizer: LocalRandomizer | Literal["any"] = "any"
) -> Calibration:
    """Smallest batch in which a common local budget has a certified central guarantee within (epsilon, delta).

    Parameters
    ----------
    epsilon0 : float
        Local budget, nats, in (0, 700].
    epsilon : float
        Wanted central epsilon, nats, positive.
    delta : float
        Wanted central delta, in (0, 1).
    randomizer : LocalRandomizer or "any"
        As in `Setting`.

    Raises
    ------
    InvalidInput
        If a value is out of range, or no batch up to 1e12 users suffices.

    Examples
    --------
    >>> calibrate_n(epsilon0=2.0, epsilon=1.0, delta=1e-6).n < 1000
    True
    """
    wanted, target = _check_epsilon(epsilon), check_delta(delta)
    budget = float(Budgets([epsilon0], [1]).epsilons[0])

    def certified(n: int) -> float:
        return _certified(n, budget, target, randomizer)

    low, high = 0, 1
    while certified(high) > wanted:
        if high >= LARGEST_N:
            raise InvalidInput(
                f"no batch up to 1e12 users brings epsilon0 = {budget:g} to epsilon = {wanted:g} "
                f"at delta = {target:g}; lower epsilon0 or raise epsilon"
            )
        low, high = high, min(high * 4, LARGEST_N)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if certified(middle) <= wanted else (middle, high)
    return Calibration(budget, high, target, certified(high))


def _certified(n: int, epsilon0: float, delta: float, randomizer: LocalRandomizer | Literal["any"]) -> float:
    setting = Setting(Budgets([epsilon0], [n]), randomizer, seen="reports", neighboring="replace-one")
    return privacy_profile(setting, epsilon0).epsilon(delta).upper


def _check_epsilon(epsilon: float) -> float:
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0.0 < epsilon < math.inf:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"epsilon must be a positive number of nats; got {epsilon!r}")
    return float(epsilon)


def _check_n(n: int) -> int:
    if isinstance(n, bool) or int(n) != n or not 1 <= n <= LARGEST_N:
        raise InvalidInput(f"n must be a whole number from 1 to 1e12; got {n!r}")
    return int(n)
