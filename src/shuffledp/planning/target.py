"""How much budget a wanted central guarantee leaves: the certified limits that bucketing must respect.

Certified bounds fall with the company and rise with the victim's budget; so a limit found for fewer users, or for
others with larger budgets, serves. What is published is certified again at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from shuffledp.accounting import LARGEST_N, MANY_LEVELS, Target, certify, last_within
from shuffledp.budgets import MAX_EPSILON0, Budgets
from shuffledp.numerics.interval import FloatArray
from shuffledp.planning.cells import MOST_HIDING, capped, rounded_up
from shuffledp.planning.question import Family
from shuffledp.randomizers.base import AnyLaw, NoiseLaw, RandomizerLaw
from shuffledp.setting import Seen, Setting

_CAP_TOLERANCE = 1e-3
_SLACK = 1.0 - 1e-9
"""Searches aim this much below the target, so that rounding in another certificate of the same fact is no failure."""
MANY_WITHHELD = 500
"""Withheld levels that are certified one by one: so finely rounded up, epsilon rises by a percent at most."""
LEVELS_OF_NOISE = 12
"""The same for added noise, whose certificates take long."""
MOST_EXACT = 12
"""So many different budgets are given their own smallest company."""
_KNOT_RATIO = 1.2
"""Of more, it is known on a grid of this ratio (of added noise, whose certificates take long, its cube)."""
_USERS_RATIO = 1.02


@dataclass(frozen=True)
class Wish:
    """The central guarantee that is wanted, of so many rounds.

    Parameters
    ----------
    epsilon, delta : float
        For the worst level; epsilon positive (inf: no wish), delta in (0, 1).
    rounds : int
        As in `Setting`.
    """

    epsilon: float
    delta: float
    rounds: int = 1

    def setting(self, budgets: Budgets, family: Family, seen: Seen) -> Setting:
        """Return the question to the accountant."""
        return Setting(budgets, accounted(family), seen=seen, neighboring="replace-one", rounds=self.rounds)

    def certified(self, budgets: Budgets, family: Family, seen: Seen) -> float:
        """Certified central epsilon of the worst level; very many withheld levels are rounded up for it."""
        few = budgets if seen == "levels" else rounded_up(budgets, LEVELS_OF_NOISE if noisy(family) else MANY_WITHHELD)
        setting = self.setting(few, family, seen)
        if setting.budgets.levels <= MANY_LEVELS:
            return Target.of(1.0, self.delta).certified(setting)
        return certify(setting, self.delta, max_levels=2).epsilon.upper

    def holds(self, setting: Setting) -> bool:
        """Whether the setting is certified to be within the wish."""
        return self.epsilon == math.inf or Target.of(self.epsilon * _SLACK, self.delta).excess(setting) <= 0.0


def fewest_of(wish: Wish, family: Family, delta0: float, values: FloatArray, own: FloatArray, n: int) -> FloatArray:
    """Users that a visible level needs, by its budget; inf where n do not suffice.

    Parameters
    ----------
    wish : Wish
        What must hold.
    family : Family
        The randomizer.
    delta0 : float
        Approximate part of the budgets.
    values : ndarray
        Ascending budgets.
    own : ndarray
        Those among them that users have. If they are few, each gets its own number; else that of the next knot above.
    n : int
        Users there are.
    """
    if wish.epsilon == math.inf:
        return np.ones_like(values)
    knots = knots_of(wish, float(values[-1]), ratio_of(family))
    if own.size <= MOST_EXACT:
        knots = np.union1d(knots, own)
    needed = np.full(knots.shape, np.inf)
    for i, knot in enumerate(knots):
        found = fewest_users(wish, family, delta0, float(knot))
        if found > n:
            break
        needed[i] = found
    return needed[np.searchsorted(knots, values, side="left")]


def knots_of(wish: Wish, top: float, ratio: float) -> FloatArray:
    """Budgets from one that is safe by itself up to `top`: a fixed grid, so that certificates are found again."""
    safe = wish.epsilon / wish.rounds * (1.0 - 1e-8)
    if safe >= top:
        return np.array([top])
    first = math.floor(math.log(safe) / math.log(ratio)) + 1
    inside = ratio ** np.arange(first, math.log(top) / math.log(ratio))
    return np.unique(np.concatenate([[safe], inside, [top]]))


@lru_cache(maxsize=8192)
def fewest_users(wish: Wish, family: Family, delta0: float, value: float) -> float:
    """How many users of one budget are certified to hide each other well enough, within 2 % of the fewest; or inf."""

    @lru_cache
    def excess(step: int) -> float:
        one = Budgets([value], [math.ceil(_USERS_RATIO**step)], [delta0])
        return Target.of(wish.epsilon * _SLACK, wish.delta).excess(wish.setting(one, family, "levels"))

    if excess(0) <= 0.0:
        return 1.0
    # about where: a normal law of the clones' mean and variance, at four deviations
    guess = 2.0 * (1.0 + math.exp(value)) * (4.0 * math.tanh(value / 2.0) / wish.epsilon) ** 2 * wish.rounds
    last = math.floor(math.log(LARGEST_N) / math.log(_USERS_RATIO))
    high = min(max(round(math.log(guess) / math.log(_USERS_RATIO)), 1), last)
    low, stride = 0, 20
    while excess(high) > 0.0:
        if high == last:
            return math.inf
        low, high, stride = high, min(high + stride, last), 2 * stride
    while low == 0 and high > stride and excess(high - stride) <= 0.0:
        high, stride = high - stride, 2 * stride
    low = max(low, high - stride)
    high = last_within(lambda step: -excess(step), low, high, high - low) + 1 if high > low + 1 else high
    return float(math.ceil(_USERS_RATIO**high))


def ratio_of(family: Family) -> float:
    """Ratio of neighbouring knots."""
    return _KNOT_RATIO**3 if noisy(family) else _KNOT_RATIO


def noisy(family: Family) -> bool:
    """Whether the family adds noise."""
    return isinstance(family, NoiseLaw)


def stand_in(budgets: Budgets, family: Family) -> Budgets:
    """Return a population of few levels that hides a user no better, for searches."""
    return rounded_up(budgets, LEVELS_OF_NOISE if noisy(family) else MOST_HIDING)


def largest_cap(wish: Wish, budgets: Budgets, family: Family, seen: Seen) -> float:
    """Largest budget c such that, everybody above it lowered to it, the wish is certified; 0 if none is.

    Parameters
    ----------
    wish : Wish
        What must hold.
    budgets : Budgets
        The population.
    family : Family
        The randomizer.
    seen : str
        As in `Setting`.

    Returns
    -------
    float
        Within 0.1 % of the largest, from below; inf if no budget has to be lowered.
    """
    few = stand_in(budgets, family)

    def holds(cap: float) -> bool:
        return wish.holds(wish.setting(capped(few, cap), family, seen))

    high = float(few.epsilons[-1])
    if holds(high):
        return math.inf
    low = min(wish.epsilon / wish.rounds * _SLACK, high)  # a pure local budget is safe by itself
    while not holds(low):
        low /= 8.0
        if low < 1e-9:
            return 0.0
    while high > low * (1.0 + _CAP_TOLERANCE):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def accounted(family: Family) -> AnyLaw | Literal["any"]:
    """Return the family as the accountant reads it: by its law, or else as any randomizer within budget."""
    return family if isinstance(family, RandomizerLaw | NoiseLaw) else "any"


def scaled(budgets: Budgets, factor: float) -> Budgets:
    """Multiply every epsilon0, up to the largest budget there is."""
    return Budgets(np.minimum(budgets.epsilons * factor, MAX_EPSILON0), budgets.counts, budgets.deltas)
