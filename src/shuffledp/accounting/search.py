"""Whether a setting is certified to be within a wanted guarantee, and the search for the last one that is.

A search asks one thing of a candidate: is the certified delta at the wanted epsilon within the wanted delta,
whoever the victim is? Certified bounds are monotone in the numbers searched for, their computed values nearly so:
nothing is claimed of a candidate that was not evaluated itself.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.answers import weigh
from shuffledp.accounting.bound import MANY_LEVELS, levels_to_check
from shuffledp.accounting.certify import certified_uppers
from shuffledp.accounting.profiles.profile import check_delta
from shuffledp.accounting.weighing import weigh_levels
from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.floats import few_digits_up, next_above
from shuffledp.setting import Setting

_NEAR = 0.2
"""The logarithm of how far above the wanted one a computed delta may be whose epsilon is within."""


@dataclass(frozen=True)
class Target:
    """The wanted guarantee.

    Parameters
    ----------
    epsilon, delta : float
        Central, for the worst level.
    """

    epsilon: float
    delta: float

    @classmethod
    def of(cls, epsilon: float, delta: float) -> Target:
        """Check the question of the search, and keep it."""
        if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0.0 < epsilon < math.inf:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"epsilon must be a positive number of nats; got {shown(epsilon)}")
        return cls(float(epsilon), check_delta(delta))

    def excess(self, setting: Setting) -> float:
        """At most 0 if every level is certified to be within the target; how far from 0 says how far to go on.

        One evaluation of delta per level and bound; but of added noise and of delta0 > 0 the computed delta may rise
        with epsilon, and many levels are certified together: they are asked for epsilons. The first level found to
        be outside decides. Of several budgets the computed delta may be a little coarser than the epsilon
        (docs/theorems/count.md): where it alone is above, and not far, `certify` is asked.
        """
        falling = setting.adds_noise is None and setting.budgets.is_pure
        if setting.budgets.levels > MANY_LEVELS or not falling:
            return self.certified(setting) - self.epsilon
        worst = -math.inf
        for level in levels_to_check(setting):
            worst = max(worst, min(self._log_ratios(setting, float(setting.budgets.epsilons[level])), default=math.inf))
            if worst > 0.0:
                break
        if setting.budgets.levels > 1 and 0.0 < worst < _NEAR:
            return min(worst, self.certified(setting) - self.epsilon)
        return worst

    def _log_ratios(self, setting: Setting, epsilon0: float) -> Iterator[float]:
        """log(certified delta/wanted delta) at the target epsilon, up to the first bound that is within."""
        for answer in weigh(
            certified_uppers(setting), lambda bound: bound.profile(setting, epsilon0).delta(self.epsilon)
        ):
            if answer.value is None:
                continue
            found = answer.value.upper
            yield math.log(found / self.delta) if found > 0.0 else -math.inf
            if found <= self.delta:
                return

    def certified(self, setting: Setting) -> float:
        """Certified epsilon of the worst level, as `certify` publishes it."""
        worst = 0.0
        for level in levels_to_check(setting):
            found = weigh_levels(setting, self.delta, np.array([level]), certified_uppers(setting))
            worst = max(worst, float(found.smallest[0]))
        return few_digits_up(worst)


@dataclass(frozen=True)
class Search:
    """Settings numbered by the whole number searched for; each is certified once.

    Parameters
    ----------
    target : Target
        The wanted guarantee.
    at : callable
        The setting for a number.
    """

    target: Target
    at: Callable[[int], Setting]
    _known: dict[int, float] = field(default_factory=dict[int, float])

    def excess(self, number: int) -> float:
        """Return how far the setting for this number is above the target; at most 0 if it is within."""
        return self.target.excess(self.at(number))

    def certified(self, number: int) -> float:
        """Certified epsilon of the worst level."""
        if number not in self._known:
            self._known[number] = self.target.certified(self.at(number))
        return self._known[number]

    def room(self, number: int) -> float:
        """At most 0 if the certified epsilon exceeds the target."""
        return next_above(self.target.epsilon) - self.certified(number)


def last_within(
    value: Callable[[int], float], low: int, limit: int, stride: int = 1, *, geometric: bool = False
) -> int:
    """Last whole number at which a value that increases through 0 is at most 0.

    Parameters
    ----------
    value : callable
        May be infinite, never NaN. Evaluated at the answer (unless that is ``low``) and at its successor (unless
        it is ``limit``), so that both signs are known and monotonicity is only a guide.
    low : int
        Where the value is at most 0; taken for granted.
    limit : int
        The largest answer.
    stride : int
        First step upwards; it quadruples until the value is positive.
    geometric : bool
        Whether the value is about linear in log(1 + x), x >= 0, rather than in x.

    Notes
    -----
    Regula falsi, in turns with a point beyond the expected root, so that both ends move, and now and then bisection.
    """
    at_low, at_high, high = math.nan, math.nan, low
    while not at_high > 0.0:
        low, at_low = high, at_high
        if low >= limit:
            return limit
        high = min(low + stride, limit)
        at_high, stride = value(high), 4 * stride
    for step in itertools.count():
        if high - low <= 1:
            break
        middle = (low + high) // 2
        if step % 4 != 3 and math.isfinite(at_low) and math.isfinite(at_high):
            expected = _between(low, high, at_low / (at_low - at_high), geometric=geometric)
            towards = 1 if high - expected > expected - low else -1
            lean = max((high - low) >> 7, 1) * towards if step % 2 else 0
            middle = min(max(expected + lean, low + 1), high - 1)
        found = value(middle)
        if found <= 0.0:
            low, at_low = middle, found
        else:
            high, at_high = middle, found
    return low


def _between(low: int, high: int, share: float, *, geometric: bool) -> int:
    if not geometric:
        return low + int(share * (high - low))
    return int((1.0 + low) * ((1.0 + high) / (1.0 + low)) ** share) - 1


def apportioned(budgets: Budgets, n: int) -> Budgets:
    """Return so many users in the proportions of the population, by Adams's rule of apportionment.

    Each level has ceil(x count) users, for the largest x with at most n users in all; if several levels are next in
    line, the largest budgets come first. So every level has a user, and a larger batch contains the smaller ones.

    Parameters
    ----------
    budgets : Budgets
        The population.
    n : int
        Users wanted, at least one for each level.
    """
    if budgets.levels == 1:
        return Budgets(budgets.epsilons, [n], budgets.deltas)
    low, high = 0.0, 1.0 + n / budgets.n
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if _rounded_up(budgets, middle).sum() <= n else (low, middle)
    counts = _rounded_up(budgets, low)
    # at `high` several levels grow at once; the largest budgets first
    growing = np.flatnonzero(_rounded_up(budgets, high) > counts)[::-1]
    counts[growing[: n - int(counts.sum())]] += 1
    return Budgets(budgets.epsilons, counts, budgets.deltas)


def _rounded_up(budgets: Budgets, factor: float) -> NDArray[np.int64]:
    return np.maximum(np.ceil(budgets.counts * factor), 1.0).astype(np.int64)
