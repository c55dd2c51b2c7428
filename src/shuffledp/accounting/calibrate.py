"""Inverse questions: how much budget, how many users, how many rounds a wanted central guarantee allows.

The answer is a number at which the guarantee was certified; it is re-evaluated as `certify` would, and moved to
the safe side until that agrees (see `search`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.bound import MANY_LEVELS, AmplificationBound, levels_to_check, weigh
from shuffledp.accounting.certify import certified_uppers, weigh_levels
from shuffledp.budgets import Budgets
from shuffledp.dummies import Dummies
from shuffledp.errors import MAX_EPSILON0, InvalidInput, Told, check_delta, shown, whole_number
from shuffledp.in_words import counted
from shuffledp.numerics.floats import Upper, few_digits_up, next_above
from shuffledp.randomizers.base import AnyLaw
from shuffledp.setting import Seen, Setting

# Whether a setting is certified to be within a wanted guarantee, and the search for the last one that is.
#
# A search asks one thing of a candidate: is the certified delta at the wanted epsilon within the wanted delta,
# whoever the victim is? Certified bounds are monotone in the numbers searched for, their computed values nearly so:
# nothing is claimed of a candidate that was not evaluated itself.

_MOST_SLOW = 3
"""Largest number of steps of a search in a row that leave more than half of what was left."""
_MOST_SHARE, _MOST_LOG = 1e6, 64.0
_NEAR = 0.2
"""Largest log(computed delta/wanted delta) at which the search takes the epsilon as within reach."""
_BEHIND = 0.5
"""Least lag, in log(computed delta/wanted delta), at which a search that only guides leaves a bound out."""
_QUICK_ROOM = 1.5
"""log(computed delta/wanted delta) of a quick value above which the value in full is not looked at."""
Quick = Literal["no", "first", "only"]
_PASSES: dict[Quick, tuple[bool, ...]] = {"no": (False,), "first": (True, False), "only": (True,)}
"""Whether values are quick, pass by pass over the bounds."""


@dataclass(frozen=True)
class Target:
    """The central guarantee that a calibration has to reach.

    Parameters
    ----------
    epsilon : float
        Central epsilon of the worst level, nats, positive.
    delta : float
        Central delta of the worst level, in (0, 1).
    """

    epsilon: float
    delta: float

    @classmethod
    def of(cls, epsilon: float, delta: float) -> Target:
        """Return the target, or raise InvalidInput if epsilon (nats) is not positive or delta is not in (0, 1)."""
        if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0.0 < epsilon < math.inf:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"epsilon must be a positive number of nats; got {shown(epsilon)}")
        return cls(float(epsilon), check_delta(delta))

    def excess(self, setting: Setting, last: dict[str, float] | None = None, *, quick: Quick = "no") -> float:
        """Return a number that is at most 0 if every level is certified to be within the target, else positive.

        A search uses its size to choose the next step. Usually it is log(certified delta/wanted delta) at the wanted
        epsilon, for the first level found to exceed the target. It is the certified epsilon minus the wanted one
        instead for noise added to records and for delta0 > 0, where the computed delta may rise with epsilon, and for
        more than 32 levels, which are certified together. With several budgets the computed delta may be coarser than
        the epsilon (docs/theorems/count.md): if delta exceeds the target by little, the smaller of the two numbers is
        returned.

        A search that need not be exact may pass one dict ``last``, by the bounds' keys, to all its calls: bounds are
        then asked in the order of their last numbers, and one that was far behind is not asked again. (A number of at
        most 0 is certified still; a positive one may be too large.) With ``quick`` "first" or "only", several rounds
        are composed from few values; if that exceeds the target by little, "first" composes them in full.
        """
        falling = setting.adds_noise is None and setting.budgets.is_pure
        if setting.budgets.levels > MANY_LEVELS or not falling:
            return self.certified(setting) - self.epsilon
        worst = -math.inf
        for level in levels_to_check(setting):
            own = float(setting.budgets.epsilons[level])
            worst = max(worst, min(self._log_ratios(setting, own, last, quick), default=math.inf))
            if worst > 0.0:
                break
        if setting.budgets.levels > 1 and 0.0 < worst < _NEAR:
            return min(worst, self.certified(setting) - self.epsilon)
        return worst

    def _log_ratios(
        self, setting: Setting, epsilon0: float, last: dict[str, float] | None, quick: Quick
    ) -> Iterator[float]:
        """log(certified delta/wanted delta) at the target epsilon, up to the first bound that is within."""
        chosen, log_ratios = certified_uppers(setting), dict[str, float]()
        if last is not None:
            chosen = sorted(chosen, key=lambda bound: last.get(bound.key, 0.0))
            chosen = [bound for bound in chosen if last.get(bound.key, 0.0) < math.inf]

        def value(bound: AmplificationBound, quickly: bool) -> float:
            profile = bound.profile(setting, epsilon0)
            return profile.deltas_quickly([self.epsilon])[0] if quickly else profile.delta(self.epsilon).upper

        for quickly in _PASSES[quick] if setting.rounds > 1 else _PASSES["no"]:
            near = sorted(chosen, key=lambda bound: log_ratios.get(bound.key, 0.0))
            near = [bound for bound in near if log_ratios.get(bound.key, 0.0) < _QUICK_ROOM]
            for answer in weigh(near, partial(value, quickly=quickly)):
                if answer.value is None:
                    log_ratios[answer.bound.key] = math.inf
                    continue
                log_ratios[answer.bound.key] = math.log(answer.value / self.delta) if answer.value > 0.0 else -math.inf
                if answer.value <= self.delta:
                    yield log_ratios[answer.bound.key]
                    return
        yield from log_ratios.values()
        if last is not None:  # nothing is within: a bound that would have to fall more than twice as fast is left out
            reach = 2.0 * min(log_ratios.values(), default=math.inf) + _BEHIND
            last.update({key: value if value <= reach else math.inf for key, value in log_ratios.items()})

    def certified(self, setting: Setting) -> Upper:
        """Return the certified central epsilon (nats) of the setting's worst level at the target's delta."""
        worst = 0.0
        for level in levels_to_check(setting):
            weighed = weigh_levels(setting, self.delta, np.array([level]), certified_uppers(setting), smallest=True)
            worst = max(worst, float(weighed.smallest[0]))
        return few_digits_up(worst)


@dataclass(frozen=True)
class Search:
    """A search over whole numbers, each of which stands for a setting; each setting is certified at most once.

    Parameters
    ----------
    target : Target
        The wanted guarantee.
    at : callable
        From a whole number to its setting, for instance the setting with that many users.
    """

    target: Target
    at: Callable[[int], Setting]
    _known: dict[int, Upper] = field(default_factory=dict[int, Upper])

    def excess(self, number: int) -> float:
        """Return a number that is at most 0 if the setting for ``number`` is within the target, else positive."""
        return self.target.excess(self.at(number), quick="first")

    def certified(self, number: int) -> Upper:
        """Return the certified central epsilon of the worst level of the setting for ``number``, in nats."""
        if number not in self._known:
            self._known[number] = self.target.certified(self.at(number))
        return self._known[number]

    def room(self, number: int) -> float:
        """Return a number that is positive if the certified epsilon for ``number`` is within the target."""
        return next_above(self.target.epsilon) - self.certified(number)


def last_within(
    value: Callable[[int], float], low: int, limit: int, stride: int = 1, *, geometric: bool = False
) -> int:
    """Return the last whole number at which a function that increases through 0 is at most 0.

    Parameters
    ----------
    value : callable
        The function, from a whole number to a float; may be infinite, never NaN. It is evaluated at the answer (unless
        that is ``low``) and at its successor (unless the answer is ``limit``), so that both signs are known and
        monotonicity is only a guide.
    low : int
        A number at which the function is at most 0; taken for granted.
    limit : int
        The largest possible answer.
    stride : int
        First step upwards; it quadruples until the value is positive.
    geometric : bool
        Whether the function is about linear in log(1 + x), x >= 0, rather than in x.

    Notes
    -----
    A secant through the two points with the smallest values, once these are small beside the values at both ends, and
    before through both ends: so few evaluations near the root are enough. Bisection where three steps have not halved
    what is left.
    """
    points: list[tuple[float, int, float]] = []  # size of a finite value, its place, the value

    def at(number: int) -> float:
        result = value(number)
        if math.isfinite(result):
            points.append((abs(result), number, result))
        return result

    at_low, at_high, high = math.nan, math.nan, low
    while not at_high > 0.0:
        low, at_low = high, at_high
        if low >= limit:
            return limit
        high = min(low + stride, limit)
        at_high, stride = at(high), 4 * stride
    slow = 0
    while (width := high - low) > 1:
        middle = (low + high) // 2
        if slow < _MOST_SLOW:
            smallest = [point[1:] for point in sorted(points)[:2]]
            expected = _crossing(*smallest, geometric=geometric) if len(smallest) == 2 else math.nan
            ends = math.isfinite(at_low) and math.isfinite(at_high)
            if ends and not (low <= expected <= high and 2.0 * abs(smallest[1][1]) < max(at_high, -at_low)):
                expected = _crossing((low, at_low), (high, at_high), geometric=geometric)
            if low <= expected <= high:
                middle = min(max(int(expected), low + 1), high - 1)
        at_middle = at(middle)
        if at_middle <= 0.0:
            low, at_low = middle, at_middle
        else:
            high, at_high = middle, at_middle
        slow = slow + 1 if 2 * (high - low) > width else 0
    return low


def _crossing(one: tuple[int, float], two: tuple[int, float], *, geometric: bool) -> float:
    """Return the whole number at or below the point where the line through two points is 0; NaN if it does not rise."""
    (at, first), (to, second) = one, two
    if not (second - first) * (to - at) > 0.0:
        return math.nan
    share = first / (first - second)
    if not geometric:
        return math.floor(at + share * (to - at)) if abs(share) < _MOST_SHARE else math.nan
    power = share * math.log((1.0 + to) / (1.0 + at))
    return math.floor((1.0 + at) * math.exp(power)) - 1.0 if power < _MOST_LOG else math.nan


def apportioned(budgets: Budgets, n: int) -> Budgets:
    """Return ``n`` users in the proportions of the population, by Adams's rule of apportionment.

    Each level has ceil(x count) users, for the largest x with at most n users in all; if several levels would grow at
    the same x, the largest budgets come first. So every level has a user, and a larger batch contains the smaller ones.

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


LARGEST_N = 10**12
MOST_ROUNDS = 10**12
_GRID = 5e-7
"""Factors of budgets are searched among the powers of 1 plus this number."""
_STRIDE = 1 << 17
"""Number of grid steps to the first factor tried, which is 7 % away."""


@dataclass(frozen=True, repr=False)
class Calibration(Told):
    """Answer to an inverse question: the number found, and the guarantee certified with it.

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
            f"local epsilon0 {self.epsilon0!r}, {counted(self.n, 'user')}, {rounds}, factor {self.scale!r}{capped}: "
            f"central epsilon at most {self.certified_epsilon!r} at delta = {self.delta!r}"
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
    """Return the largest common local budget whose certified central guarantee is within (epsilon, delta).

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
        Budgets([1.0], [_users("n", n, 1)], [delta0]),
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
    """Return the smallest batch in which a common local budget has a certified guarantee within (epsilon, delta).

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

    Returns
    -------
    Calibration
        ``n`` is the number of users; one user fewer is not certified.

    Raises
    ------
    InvalidInput
        If a value is out of range, or no batch up to 1e12 users suffices.

    Examples
    --------
    >>> calibrate_n(epsilon0=2.0, epsilon=1.0, delta=1e-6).n < 1000
    True
    """
    fewest = max(_users("colluding", colluding, 0) + 1, _users("group_size", group_size, 1))
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
    """Return the smallest batch, with the population's mix of levels, that is certified within (epsilon, delta).

    Parameters
    ----------
    setting : Setting
        The collection; only the proportions of its counts matter. Colluding users are counted in the batch.
    epsilon : float
        Wanted central epsilon of every level, nats, positive.
    delta : float
        Wanted central delta, in (0, 1).

    Returns
    -------
    Calibration
        ``setting.budgets.counts`` states how many users of each level the batch needs. Unless budgets belong to
        steps (``seen="users"``), more users of any level only improve privacy, so the batch may be released as soon as
        each level has that many. One user fewer, taken by the same rule, is not certified.

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
    """Return the largest number of rounds whose certified central guarantee is within (epsilon, delta).

    Parameters
    ----------
    setting : Setting
        One round of the collection; its own number of rounds is not used.
    epsilon : float
        Wanted central epsilon of every level over all rounds, nats, positive.
    delta : float
        Wanted central delta, in (0, 1).

    Returns
    -------
    Calibration
        ``rounds`` is the number; one round more is not certified. If ``capped``, the search ended at 1e12 rounds, and
        more may be possible.

    Raises
    ------
    InvalidInput
        If a value is out of range, or already one round exceeds the target.

    Examples
    --------
    >>> setting = Setting(Budgets([1.0], [1000]), "any", seen="reports", neighboring="replace-one")
    >>> calibrate_rounds(setting, epsilon=1.0, delta=1e-6).rounds > 20
    True
    """
    target = Target.of(epsilon, delta)
    search = Search(target, lambda rounds: replace(setting, rounds=rounds))
    largest = last_within(search.excess, 0, MOST_ROUNDS, geometric=True)
    if largest > 0:  # from there downwards, until the epsilon agrees
        largest = -last_within(lambda rounds: search.room(-rounds), -largest - 1, -1) - 1
    if largest == 0:
        one = search.certified(1)
        raise InvalidInput(
            f"one round already has epsilon = {one:g} at delta = {target.delta:g}, more than {target.epsilon:g}; "
            "scale the budgets down, take a larger batch, or raise epsilon"
        )
    return replace(_answer(search, largest), capped=largest == MOST_ROUNDS)


def calibrate_scale(setting: Setting, epsilon: float, delta: float) -> Calibration:
    """Return the largest factor for all local budgets with a certified central guarantee within (epsilon, delta).

    Parameters
    ----------
    setting : Setting
        The collection; each epsilon0 is multiplied by the factor, up to 700; delta0 is not changed.
    epsilon : float
        Wanted central epsilon of every level, nats, positive.
    delta : float
        Wanted central delta, in (0, 1).

    Returns
    -------
    Calibration
        ``scale`` is the factor, within 1e-6 relative of the largest, always on the safe side; ``setting.budgets`` are
        the scaled budgets. If even budgets of 700 are within the target, ``scale`` is the factor that brings the
        smallest positive budget to 700, and ``capped`` is True.

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
    best_step = last_within(search.excess, -1, last, _STRIDE)
    if best_step >= 0:  # from there downwards, until the epsilon agrees
        best_step = -last_within(lambda step: search.room(-step), -best_step - 1, 0) - 1
    if best_step < 0:
        raise InvalidInput(
            f"no factor of the budgets brings epsilon to {target.epsilon:g} at delta = {target.delta:g}; "
            f"lower delta0 (the largest is {float(budgets.deltas.max()):g}) or raise delta"
        )
    return replace(
        _answer(search, best_step), scale=min(safe * math.exp(best_step * _GRID), top), capped=best_step == last
    )


def _answer(search: Search, number: int) -> Calibration:
    """Return the setting with its certificate."""
    setting, epsilon = search.at(number), search.certified(number)
    largest = float(setting.budgets.epsilons[-1])
    return Calibration(largest, setting.budgets.n, search.target.delta, epsilon, setting, setting.rounds)


def _users(name: str, value: float, low: int) -> int:
    """Return a number of users from low to LARGEST_N, also if it was given as a float such as 1e6."""
    whole = int(value) if isinstance(value, float | np.floating) and value.is_integer() else value
    return whole_number(whole, name, low, LARGEST_N)
