"""The certified limits that a central target sets on budgets and levels.

Certified bounds fall with the number of other users and rise with the victim's budget. So a limit found for fewer, or
for others with larger budgets, is valid. What is published is certified again at the end.

The choice of a rounding of budgets: its inputs, and what every search over roundings needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting import MANY_LEVELS, Target, certify, last_within
from shuffledp.budgets import Budgets
from shuffledp.dummies import Dummies
from shuffledp.errors import BUDGET_RULE, MAX_EPSILON0, InvalidInput, Told, shown
from shuffledp.numerics.floats import FloatArray
from shuffledp.planning.question import (
    MOST_HIDING,
    Candidates,
    Family,
    PlannedQuestion,
    Prediction,
    best_levels,
    capped,
    common_delta,
    level_of,
    predict,
    rounded_down,
    rounded_up,
    some_values,
    user_terms,
)
from shuffledp.questions.question import Weights
from shuffledp.randomizers.base import AnyLaw, NoiseLaw, RandomizerLaw
from shuffledp.randomizers.wire import WireFormat, bytes_for
from shuffledp.setting import Seen, Setting

SLACK = 1.0 - 1e-9
"""Factor on the target in searches, so that rounding in another certificate of the same setting does not fail it."""
MANY_WITHHELD = 500
"""Number of withheld levels that are certified one by one; rounding more up to it raises epsilon by 1 % at most."""
LEVELS_OF_NOISE = 12
"""The same number for added noise, whose certificates take long."""
_KNOT_RATIO = 1.35
"""Ratio of the grid on which it is searched for more budgets (for added noise, its square)."""
_STEP_RATIO = 1.03


@dataclass(frozen=True)
class Circumstances:
    """Rounds, dummies, and the users that the guarantee relies on; each as in `Setting`.

    Parameters
    ----------
    rounds, colluding, missing, group_size, dummies
        As in `Setting`.
    """

    rounds: int = 1
    colluding: int = 0
    missing: float = 0.0
    group_size: int = 1
    dummies: Dummies | None = None

    @property
    def reports(self) -> int:
        """Number of reports that one protected person, or group, may change."""
        return self.rounds * self.group_size


ONCE = Circumstances()
"""One round of honest, present users, each protected individually."""


@dataclass(frozen=True)
class Wish:
    """The central guarantee that is wanted.

    Parameters
    ----------
    epsilon, delta : float
        Target for the worst level; epsilon positive (inf: none), delta in (0, 1).
    around : Circumstances
        Rounds, colluders and missing users that it must cover.
    """

    epsilon: float
    delta: float
    around: Circumstances = ONCE

    @property
    def safe(self) -> float:
        """A pure local budget (nats) that is within the target without any other user."""
        return self.epsilon / self.around.reports * SLACK

    def setting(self, budgets: Budgets, family: Family, seen: Seen) -> Setting:
        """Return the setting with these budgets, randomizer and view."""
        around = self.around
        return Setting(
            budgets, accounted(family), seen=seen, neighboring="replace-one", rounds=around.rounds,
            colluding=around.colluding, missing=around.missing, group_size=around.group_size, dummies=around.dummies,
        )  # fmt: skip

    def certified(self, budgets: Budgets, family: Family, seen: Seen) -> float:
        """Return the certified central epsilon of the worst level; very many withheld levels are first rounded up."""
        few = budgets if seen == "levels" else rounded_up(budgets, LEVELS_OF_NOISE if noisy(family) else MANY_WITHHELD)
        return _certified(self.setting(few, family, seen), self.delta)

    def holds(self, setting: Setting) -> bool:
        """Return whether the setting is certified to be within the target."""
        return self.excess(setting) <= 0.0

    def excess(self, setting: Setting) -> float:
        """Return a number that is at most 0 if the setting is certified to be within the target; see `Target.excess`.

        Parameters
        ----------
        setting : Setting
            The setting.
        """
        return -math.inf if self.epsilon == math.inf else _excess(self.target, setting)

    @property
    def target(self) -> Target:
        """The target of a search, a little below the wanted epsilon."""
        return Target.of(self.epsilon * SLACK, self.delta)


# Ways that differ in their weights alone ask for the same certificates.


@lru_cache(maxsize=4096)
def _excess(target: Target, setting: Setting) -> float:
    return target.excess(setting, quick="first")


@lru_cache(maxsize=1024)
def _certified(setting: Setting, delta: float) -> float:
    if setting.budgets.levels <= MANY_LEVELS:
        return Target.of(1.0, delta).certified(setting)
    return certify(setting, delta, max_levels=2).epsilon.upper


def steps_of(wish: Wish, top: float) -> FloatArray:
    """Return a fixed, ascending grid of candidate budgets (nats), whose largest is ``top``.

    The smallest needs no other users to be within the target.
    """
    return knots_of(wish, top, _STEP_RATIO)


def knots_of(wish: Wish, top: float, ratio: float) -> FloatArray:
    """Return a fixed, ascending grid of budgets (nats) up to ``top``, neighbours at most a factor ``ratio`` apart.

    The smallest needs no other users to be within the target. The grid is fixed so that cached certificates can be used
    again.
    """
    safe = wish.epsilon / wish.around.reports * (1.0 - 1e-8)
    if safe >= top:
        return np.array([top])
    first = math.floor(math.log(safe) / math.log(ratio)) + 1
    inside = ratio ** np.arange(first, math.log(top) / math.log(ratio))
    return np.unique(np.concatenate([[safe], inside, [top]]))


def ratio_of(family: Family) -> float:
    """Return the ratio of two neighbouring budgets on the search grid (the knots)."""
    return _KNOT_RATIO**2 if noisy(family) else _KNOT_RATIO


def noisy(family: Family) -> bool:
    """Return whether the family adds noise."""
    return isinstance(family, NoiseLaw)


def stand_in(budgets: Budgets, family: Family) -> Budgets:
    """Return a population of few levels, by rounding budgets up, for use in searches; it hides a user no better."""
    return rounded_up(budgets, LEVELS_OF_NOISE if noisy(family) else MOST_HIDING)


def accounted(family: Family) -> AnyLaw | Literal["any"]:
    """Return the family as the accountant uses it: with its law, or else "any" randomizer within budget."""
    return family if isinstance(family, RandomizerLaw | NoiseLaw) else "any"


def scaled(budgets: Budgets, factor: float) -> Budgets:
    """Return the population with every epsilon0 multiplied by a factor, up to the largest allowed budget."""
    return Budgets(np.minimum(budgets.epsilons * factor, MAX_EPSILON0), budgets.counts, budgets.deltas)


# A public rule that rounds budgets down, and what it promises.


@dataclass(frozen=True, eq=False, repr=False)
class Bucketing(Told):
    """A public rule that rounds every user's budget, with the resulting error and guarantee.

    Parameters
    ----------
    levels : ndarray or None
        Ascending levels; a user gets the largest one not above the own budget. None: budgets stay as they are, up to
        the cap.
    cap : float
        Larger budgets are lowered to the cap; inf without a cap.
    drop_below : float
        Users with a smaller budget take no part; 0: everybody does.
    dropped : int
        Number of users who take no part.
    budgets : Budgets
        The population after rounding.
    mechanism : str
        Name of the randomizer.
    family : FrequencyOracle or NumberRandomizer
        The randomizer.
    seen : str
        As in `Setting`.
    weights : {"population", "precision"} or None
        How visible levels are combined; None where they are withheld.
    prediction : Prediction
        The predicted error, after rounding.
    certified_epsilon : float
        Certified central epsilon of the worst level, after rounding, at `delta` (for more than 500 withheld levels:
        with budgets rounded up to about 500, so `certify` of `setting` may give a little less).
    delta : float
        Central delta.
    around : Circumstances
        Rounds, colluders and missing users that the guarantee covers.
    """

    levels: FloatArray | None
    cap: float
    drop_below: float
    dropped: int
    budgets: Budgets
    mechanism: str
    family: Family
    seen: Seen
    weights: Weights | None
    prediction: Prediction
    certified_epsilon: float
    delta: float
    around: Circumstances

    def _told(self) -> str:
        levels = "as they are" if self.levels is None else f"rounded down to {len(self.levels)} levels"
        return (
            f"Bucketing for {self.mechanism}: budgets {levels}, cap {self.cap!r}, {self.dropped:,} people dropped; "
            f"certified epsilon {self.certified_epsilon!r} at delta {self.delta!r}"
        )

    @property
    def setting(self) -> Setting:
        """The setting (population, randomizer, view) for which the central guarantee was certified."""
        return Wish(math.inf, self.delta, self.around).setting(self.budgets, self.family, self.seen)

    @property
    def report_bytes(self) -> int:
        """Number of bytes of one report on the wire (docs/wire.md), without the message header."""
        return report_bytes(self.family)

    @property
    def rounds_budgets(self) -> bool:
        """Whether any budget may be lowered."""
        return self.levels is not None or self.cap < math.inf

    def takes_part(self, epsilons: ArrayLike) -> NDArray[np.bool_]:
        """Return who takes part, a bool array of shape (n,): everybody, unless small budgets are dropped."""
        return _own_budgets(epsilons) >= self.drop_below

    def apply(self, epsilons: ArrayLike) -> FloatArray:
        """Return the budget that each user's report is drawn with, at most the own one, shape (n,).

        Parameters
        ----------
        epsilons : array_like, shape (n,)
            Own budgets of those who take part, nats, in [0, 700].

        Raises
        ------
        InvalidInput
            If a budget is not in range, below `drop_below`, or below the lowest level.
        """
        own = _own_budgets(epsilons)
        if own.size and own.min() < self.drop_below:
            row = int(np.argmin(own)) + 1
            raise InvalidInput(
                f"epsilon0 {own.min():g} (entry {row}) is below {self.drop_below:g}, so this user takes no part; "
                "leave those users out, as takes_part tells"
            )
        low = np.minimum(own, self.cap)
        if self.levels is None:
            return low
        at = level_of(low, self.levels)
        if own.size and at.min() < 0:
            row = int(np.argmin(at)) + 1
            raise InvalidInput(
                f"epsilon0 {own[row - 1]:g} (entry {row}) is below the lowest level {self.levels[0]:g}; choose the "
                "levels again for the users there are"
            )
        return self.levels[at]


def report_bytes(family: Family) -> int:
    """Return the number of bytes of one report on the wire, the same for all reports of a family of fixed shape."""
    if not isinstance(family, WireFormat):
        raise InvalidInput(f"the reports of {shown(family)} have no wire format")
    return bytes_for(family.report_bits)


def _own_budgets(epsilons: ArrayLike) -> FloatArray:
    own = np.asarray(epsilons, dtype=np.float64)
    bad = np.flatnonzero(~((own >= 0.0) & (own <= MAX_EPSILON0)).ravel())
    if bad.size:
        first = int(bad[0])
        raise InvalidInput(f"epsilon0 must be {BUDGET_RULE}; got {own.ravel()[first]} (entry {first + 1})")
    return own


DEFAULT_LEVELS = 8
"""Default number of visible levels."""


@dataclass(frozen=True, eq=False)
class LevelChoice:
    """The checked inputs of one choice of levels, see `bucket_budgets`.

    Parameters
    ----------
    budgets : Budgets
        Budgets of those who take part.
    question, mechanism, seen, weights, drop_below, dropped
        As in `Bucketing`.
    most : int or None
        Largest number of levels; None: only a cap.
    delta : float
        Central delta.
    around : Circumstances
        Rounds, colluders and missing users that the guarantee must cover.
    max_bytes : int or None
        Largest size of a report in bytes; None: any.
    """

    budgets: Budgets
    question: PlannedQuestion
    mechanism: str
    seen: Seen
    weights: Weights | None
    most: int | None
    delta: float
    around: Circumstances
    drop_below: float
    dropped: int
    max_bytes: int | None = None

    def wish(self, epsilon: float) -> Wish:
        """Return the target with this epsilon; inf: none."""
        return Wish(epsilon, self.delta, self.around)

    def family(self, budgets: Budgets) -> Family:
        """Return the randomizer for these budgets, on which its shape depends."""
        return self.question.family(self.mechanism, budgets, self.seen)

    def predict(self, rounded: Budgets, family: Family) -> Prediction:
        """Return the predicted standard error for a rounded population."""
        return self.question.predict(family, rounded, self.weights, self.around.dummies)

    def fits(self, family: Family) -> bool:
        """Return whether a report of the family is at most as long as the task allows."""
        return self.max_bytes is None or report_bytes(family) <= self.max_bytes

    def too_long(self, family: Family) -> InvalidInput:
        """Return the error to raise if no rounding makes reports short enough; ``family`` is one that was tried."""
        return InvalidInput(
            f"a report of {self.mechanism} has {report_bytes(family)} bytes, more than the {self.max_bytes} allowed"
        )

    def levels_for(self, values: FloatArray, fewest: FloatArray, own: Budgets, family: Family) -> FloatArray | None:
        """Return the levels of the smallest error among `values` (dynamic programme); None if none is allowed.

        Parameters
        ----------
        values : ndarray
            Ascending candidates.
        fewest : ndarray
            Number of users that a level at each candidate needs; inf: it is not allowed.
        own : Budgets
            The population to be rounded.
        family : Family
            The randomizer.
        """
        at = predict(family, own, self.weights, self.question.moments)
        terms = user_terms(family, values, common_delta(own), self.weights, at)
        through = np.concatenate([[0], np.cumsum(own.counts)])
        below = through[np.append(np.searchsorted(own.epsilons, values, side="left"), own.levels)]
        chosen = best_levels(Candidates(values, below, fewest, terms), self.most or DEFAULT_LEVELS)
        return None if chosen is None else values[chosen]

    def finish(self, levels: FloatArray | None, cap: float, rounded: Budgets) -> Bucketing:
        """Return the rounding rule, with the rounded population's prediction and certificate.

        Parameters
        ----------
        levels, cap
            As in `Bucketing`.
        rounded : Budgets
            The population after rounding.
        """
        family = self.family(rounded)
        return Bucketing(
            levels, cap, self.drop_below, self.dropped, rounded, self.mechanism, family, self.seen, self.weights,
            self.predict(rounded, family), self.wish(math.inf).certified(rounded, family, self.seen), self.delta,
            self.around,
        )  # fmt: skip


def unreachable(wish: Wish) -> InvalidInput:
    """Return the error if even the smallest budgets are not certified."""
    return InvalidInput(
        f"no rounding of the budgets is certified at epsilon = {wish.epsilon:g}, delta = {wish.delta:g}; raise epsilon "
        "or delta, or lower delta0"
    )


def needs_more_epsilon(error: float, within: float) -> InvalidInput:
    """Return the error to raise if a standard error of ``error`` needs a larger central epsilon than ``within``."""
    return InvalidInput(f"a standard error of {error:g} needs a central epsilon above {within:g} this way")


def error_unreachable(error: float, best: float) -> InvalidInput:
    """Return the error to raise if everybody's whole budget gives the error ``best``, which is above ``error``."""
    return InvalidInput(
        f"the standard error cannot be brought to {error:g}: without any central target it is {best:g}; ask more "
        "users, larger budgets, or accept a larger error"
    )


# Where levels are withheld: the cap on everybody's budget, with the shape of reports chosen again at every cap.
#
# Subset selection, local hashing, piecewise and hybrid reports have one shape for all budgets (the size of the
# subset, the range of the hash), and the pipeline chooses it for the budgets it is given. So a cap decides the shape,
# too. Within one shape the certified epsilon rises with the cap and the predicted error falls. From one shape to the
# next either may jump, in either direction: the error of a frequent category, for one, is up to 35 % larger just
# above the budget at which local hashing doubles its range. So neither "the largest certified cap" nor a bisection
# finds the best cap. Here caps are tried on a fixed grid (powers of 1.05, whatever the budgets are) around the cap at
# which the certificate fails, together with the ends of every shape found there; and the best one is refined within
# its shape.

_RATIO = 1.05
"""Ratio of neighbouring caps on the grid."""
_ABOVE, _BELOW = 6, 10
"""Grid steps that are tried beyond the first failure, and before it: a shape changes errors by less than that."""
_COARSE = 4
"""Further below, every fourth step is tried, as the error of a mixed population may have its minimum there."""
_TOLERANCE = 1e-4
_SKETCH = 2048
"""Largest number of different budgets in the search; more are rounded down to this many."""
_LEAST = 1e-9


@dataclass(frozen=True, eq=False)
class Cut:
    """The population with every budget lowered to a cap, and rounded down to levels if these are few.

    Parameters
    ----------
    cap : float
        The cap.
    levels : ndarray or None
        Levels to which budgets are rounded down; None: no rounding.
    rounded : Budgets
        The resulting population.
    family : Family
        The randomizer for it.
    error : float
        Predicted standard error.
    """

    cap: float
    levels: FloatArray | None
    rounded: Budgets
    family: Family
    error: float


@dataclass(frozen=True, eq=False)
class Caps:
    """All caps of one task, each evaluated once.

    Parameters
    ----------
    task : Task
        The task.
    own : Budgets
        Its population, or a sketch of it.
    hiding : Budgets
        The population used in certificates during a search, with many budgets rounded up to few levels.
    """

    task: LevelChoice
    own: Budgets
    hiding: Budgets
    _known: dict[float, Cut] = field(default_factory=dict[float, Cut])

    @classmethod
    def of(cls, task: LevelChoice, budgets: Budgets) -> Caps:
        """Return the caps of a population for a search, with many different budgets reduced to fewer."""
        return cls(task, sketch(budgets), stand_in(budgets, task.family(sketch(budgets))))

    @property
    def top(self) -> float:
        """The largest cap, which lowers nobody's budget."""
        return float(self.own.epsilons[-1])

    def at(self, cap: float) -> Cut:
        """Return the population with all budgets lowered to ``cap`` (nats), its randomizer and its predicted error."""
        if cap not in self._known:
            self._known[cap] = cut(self.task, self.own, cap)
        return self._known[cap]

    def holds(self, wish: Wish, at: Cut) -> bool:
        """Return whether the population at a cap is certified to be within the target."""
        return self.excess(wish, at) <= 0.0

    def excess(self, wish: Wish, at: Cut) -> float:
        """Return a number that is at most 0 if the population at a cap is certified to be within the target."""
        hiding = capped(self.hiding, at.cap) if at.levels is None else stand_in(at.rounded, at.family)
        return wish.excess(wish.setting(hiding, at.family, self.task.seen))

    def edge(self, wish: Wish) -> tuple[float, float]:
        """Return two neighbouring caps of the grid: one that is certified, and the next larger one, which is not.

        If no target is set, both are the largest cap.

        Raises
        ------
        InvalidInput
            If no cap is certified.
        """
        top = self.top
        if self.holds(wish, self.at(top)):
            return top, top
        low = min(wish.safe, top)  # a pure local budget is safe by itself
        while not self.holds(wish, self.at(low)):
            low /= 8.0
            if low < _LEAST:
                raise unreachable(wish)
        first, last = _step_above(low), _step_above(top)
        return self._bisected(lambda cap: self.holds(wish, self.at(cap)), low, first, last)

    def _bisected(self, good: Callable[[float], bool], low: float, first: int, last: int) -> tuple[float, float]:
        """Return the last good cap and the next one, by bisection over grid steps from `first` to `last` (the top).

        ``low`` is good, the top is not.
        """
        below, above = first - 1, last
        while above - below > 1:
            middle = (below + above) // 2
            below, above = (middle, above) if good(_RATIO**middle) else (below, middle)
        return low if below < first else _RATIO**below, self.top if above == last else _RATIO**above

    def around(self, cap: float, least: float) -> list[Cut]:
        """Return the caps to try: those of the grid near ``cap``, and some down to ``least`` (nats).

        Caps at which the shape of reports changes are added.
        """
        step, last = _step_above(cap), _step_above(self.top)
        fine = range(max(step - _BELOW, _step_above(least)), min(step + _ABOVE, last))
        coarse = range(fine.start - _COARSE, _step_above(least) - 1, -_COARSE)
        ends = [self.top] if step + _ABOVE >= last else []
        steps = sorted({_RATIO**i for i in fine} | {cap, *ends})
        changes = [
            self._change(low, high) for low, high in pairwise(steps) if self.at(low).family != self.at(high).family
        ]
        every = {*steps, least, *(_RATIO**i for i in coarse), *chain.from_iterable(changes)}
        return [self.at(one) for one in sorted(every) if one <= self.top]

    def _change(self, low: float, high: float) -> tuple[float, float]:
        """Return caps on both sides of a change of shape."""
        family = self.at(low).family
        while high > low * (1.0 + _TOLERANCE):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self.at(middle).family == family else (low, middle)
        return low, high

    def moved(self, start: Cut, towards: float, good: Callable[[Cut], bool]) -> Cut:
        """Return the cap farthest from ``start`` towards ``towards`` (nats) that is still good, by bisection."""
        if good(self.at(towards)):
            return self.at(towards)
        while not 1.0 / (1.0 + _TOLERANCE) <= towards / start.cap <= 1.0 + _TOLERANCE:
            middle = self.at(math.sqrt(start.cap * towards))
            if good(middle):
                start = middle
            else:
                towards = middle.cap
        return start

    def raised(self, wish: Wish, start: Cut, above: float, allowed: Callable[[Cut], bool]) -> Cut:
        """Return the largest cap from ``start`` up to ``above`` (nats) that is allowed and certified, up to 1e-4.

        ``start`` is both. Whether a cap is allowed costs little, so that is searched first.
        """
        top = self.moved(start, above, allowed)
        steps = math.ceil(math.log(top.cap / start.cap) / _TOLERANCE)

        def at(step: int) -> Cut:
            return top if step == steps else self.at(start.cap * math.exp(step * _TOLERANCE))

        last_step = last_within(
            lambda step: self.excess(wish, at(step)) if allowed(at(step)) else math.inf, 0, steps, max(steps, 1)
        )
        return start if last_step == 0 else at(last_step)


def smallest_error(task: LevelChoice, wish: Wish) -> Bucketing:
    """Return the rounding rule of the cap (largest budget) with the smallest predicted error among certified ones.

    Parameters
    ----------
    task : Task
        A task with levels withheld, or a single level.
    wish : Wish
        The target.

    Returns
    -------
    Bucketing
        Within the target for at most 64 different budgets; for more, see `Bucketing.certified_epsilon`.

    Raises
    ------
    InvalidInput
        If no cap is certified, or no report is short enough.
    """
    caps = Caps.of(task, task.budgets)
    certified, _ = caps.edge(wish)
    least = min(wish.safe, certified) if wish.epsilon < math.inf else certified * 1e-3
    tried = caps.around(certified, least)
    fitting = sorted((one for one in tried if task.fits(one.family)), key=lambda one: (one.error, one.cap))
    best = next((one for one in fitting if caps.holds(wish, one)), None)
    if best is None:
        raise task.too_long(tried[0].family) if not fitting else unreachable(wish)
    error = best.error
    above = min((one.cap for one in tried if one.cap > best.cap), default=best.cap)
    best = caps.raised(wish, best, above, lambda one: one.error <= error and task.fits(one.family))
    return finished(task, best.cap)


def smallest_guarantee(task: LevelChoice, error: float, within: float) -> Bucketing:
    """Return the rounding rule of the cap with the smallest certified epsilon that has an error of at most `error`.

    Parameters
    ----------
    task : Task
        A task with levels withheld, or a single level.
    error : float
        The wanted standard error.
    within : float
        Largest epsilon; inf: any.

    Raises
    ------
    InvalidInput
        If no cap has that error within that epsilon, or no report is short enough.
    """
    caps = Caps.of(task, task.budgets)
    enough = _enough(caps, error)
    tried = caps.around(enough, enough * _RATIO**-_BELOW)
    good = [one for one in tried if one.error <= error and task.fits(one.family)]
    if not good:
        if any(one.error <= error for one in tried):
            raise task.too_long(tried[0].family)
        raise error_unreachable(error, min(one.error for one in tried))
    best = _least_epsilon(caps, _least_of_each_shape(caps, tried, good, error), within)
    if best is None:
        raise needs_more_epsilon(error, within)
    rule = finished(task, best.cap)
    while rule.prediction.standard_error > error and rule.cap < caps.top:  # of a sketch the error is a little less
        rule = finished(task, min(rule.cap * (1.0 + _TOLERANCE), caps.top))
    return rule


def no_cap_reaches(caps: Caps, wish: Wish, error: float) -> bool:
    """Return whether no cap with an error of at most ``error`` is certified to be within the target.

    Of each shape of the reports the smallest such cap is certified: larger ones of that shape reveal more.

    Parameters
    ----------
    caps : Caps
        The caps.
    wish : Wish
        The target.
    error : float
        The standard error.
    """
    enough = _enough(caps, error)
    tried = caps.around(enough, enough * _RATIO**-_BELOW)
    good = [one for one in tried if one.error <= error]
    return not (good and any(caps.holds(wish, one) for one in _least_of_each_shape(caps, tried, good, error)))


def _least_epsilon(caps: Caps, cuts: list[Cut], within: float) -> Cut | None:
    """Return the cap with the smallest certified epsilon; caps ascend, and none far above the first is better."""
    task = caps.task
    best, wish = None, task.wish(within)
    for one in cuts:
        if one.cap > (best or cuts[0]).cap * _RATIO**_ABOVE:
            break
        if caps.holds(wish, one):
            hiding = capped(caps.hiding, one.cap) if one.levels is None else one.rounded
            best, wish = one, task.wish(task.wish(math.inf).certified(hiding, one.family, task.seen))
    return best


def _enough(caps: Caps, error: float) -> float:
    """Return about the smallest cap with that error; the top, if its error is larger."""
    top = low = caps.top
    if caps.at(top).error > error:
        return top
    while low > _LEAST and caps.at(low).error <= error:
        low /= 8.0
    below, above = _step_above(low) - 1, _step_above(top)
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if caps.at(_RATIO**middle).error <= error else (middle, above)
    return min(_RATIO**above, top)


def _least_of_each_shape(caps: Caps, tried: list[Cut], good: list[Cut], error: float) -> list[Cut]:
    """Return, for each shape, the smallest cap with the error, ascending."""
    cuts: list[Cut] = []
    for one in good:
        if any(one.family == other.family for other in cuts):
            continue
        below = max((other.cap for other in tried if other.cap < one.cap), default=one.cap)
        cuts.append(caps.moved(one, below, lambda cut, one=one: cut.family == one.family and cut.error <= error))
    least = cuts[0]
    below = max((other.cap for other in tried if other.cap < least.cap), default=least.cap)
    cuts.append(caps.moved(least, below, lambda cut: cut.error <= error and caps.task.fits(cut.family)))
    return sorted(cuts, key=lambda one: one.cap)


def cut(task: LevelChoice, budgets: Budgets, cap: float) -> Cut:
    """Return the population with budgets lowered to a cap, and rounded down to the task's levels, if it has any."""
    lowered = capped(budgets, cap)
    if task.most is None or lowered.levels <= task.most or task.seen == "levels":
        family = task.family(lowered)
        return Cut(cap, None, lowered, family, task.predict(lowered, family).standard_error)
    values = some_values(lowered)
    levels = task.levels_for(values, np.ones_like(values), lowered, task.family(lowered))
    if levels is None:
        raise InvalidInput("no level carries information; give some users a budget above 0")
    rounded = rounded_down(lowered, levels)
    family = task.family(rounded)
    return Cut(cap, levels, rounded, family, task.predict(rounded, family).standard_error)


def finished(task: LevelChoice, cap: float) -> Bucketing:
    """Return the rounding rule of the whole population at a cap (nats), with its predicted error and certificate."""
    whole = cut(task, task.budgets, cap)
    return task.finish(whole.levels, cap if cap < task.budgets.epsilons[-1] else math.inf, whole.rounded)


def sketch(budgets: Budgets) -> Budgets:
    """Return the population with budgets rounded down to so few levels that many caps can be evaluated."""
    if budgets.levels <= _SKETCH:
        return budgets
    return rounded_down(budgets, some_values(budgets, _SKETCH))


def _step_above(cap: float) -> int:
    """Return the first step of the grid above a cap."""
    return math.floor(math.log(cap) / math.log(_RATIO)) + 1
