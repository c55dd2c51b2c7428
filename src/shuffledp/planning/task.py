"""One rounding of budgets to be chosen: what is asked, of whom, and what every search over roundings needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain, pairwise

import numpy as np

from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray
from shuffledp.planning.error import Candidates, Prediction, best_levels, predict, user_terms
from shuffledp.planning.question import Family, PlannedQuestion, capped, common_delta, rounded_down, some_values
from shuffledp.planning.target import Bucketing, Circumstances, Wish, report_bytes, stand_in
from shuffledp.questions.task import Weights
from shuffledp.setting import Seen

DEFAULT_LEVELS = 8
"""Visible levels, if not stated."""


@dataclass(frozen=True, eq=False)
class Task:
    """One choice of levels; the parameters are those of `bucket_budgets`, checked.

    Parameters
    ----------
    budgets : Budgets
        Of those who take part.
    question, mechanism, seen, weights, drop_below, dropped
        As in `Bucketing`.
    most : int or None
        Levels at most; None: cap only.
    delta : float
        Central delta.
    around : Circumstances
        What the guarantee must hold for.
    max_bytes : int or None
        A report may have at most so many bytes; None: any number.
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
        """Return the wanted guarantee with this epsilon; inf: no wish."""
        return Wish(epsilon, self.delta, self.around)

    def family(self, budgets: Budgets) -> Family:
        """Return the randomizer that the pipeline runs for these budgets: its shape follows them."""
        return self.question.family(self.mechanism, budgets, self.seen)

    def predict(self, rounded: Budgets, family: Family) -> Prediction:
        """Predict the standard error for a rounded population."""
        return self.question.predict(family, rounded, self.weights, self.around.dummies)

    def fits(self, family: Family) -> bool:
        """Tell whether a report is short enough."""
        return self.max_bytes is None or report_bytes(family) <= self.max_bytes

    def too_long(self, family: Family) -> InvalidInput:
        """Return the refusal where no rounding makes reports short enough; the family is one that was tried."""
        return InvalidInput(
            f"a report of {self.mechanism} has {report_bytes(family)} bytes, more than the {self.max_bytes} allowed"
        )

    def levels_for(self, values: FloatArray, fewest: FloatArray, own: Budgets, family: Family) -> FloatArray | None:
        """Choose the levels of the smallest error among `values` (dynamic programme); None if none is allowed.

        Parameters
        ----------
        values : ndarray
            Ascending candidates.
        fewest : ndarray
            How many users a level at each candidate needs; inf: it is not allowed.
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
        """Predict and certify the population as it will be.

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
    """Return the refusal where even the smallest budgets are not certified."""
    return InvalidInput(
        f"no rounding of the budgets is certified at epsilon = {wish.epsilon:g}, delta = {wish.delta:g}; raise epsilon "
        "or delta, or lower delta0"
    )


def needs_more_epsilon(error: float, within: float) -> InvalidInput:
    """Return the refusal of a standard error that needs a larger central epsilon than allowed."""
    return InvalidInput(f"a standard error of {error:g} needs a central epsilon above {within:g} this way")


def error_unreachable(error: float, best: float) -> InvalidInput:
    """Return the refusal of a standard error that all of everybody's budget does not reach."""
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
"""Of neighbouring caps on the grid."""
_ABOVE, _BELOW = 6, 10
"""Grid steps that are tried beyond the first failure, and before it: a shape moves errors by less than that."""
_COARSE = 4
"""Further down, every fourth: there the error of a mixed population may have its minimum."""
_TOLERANCE = 1e-4
_SKETCH = 2048
"""Different budgets that the search looks at; more are rounded down, to this many."""
_LEAST = 1e-9


@dataclass(frozen=True, eq=False)
class Cut:
    """The population with everybody's budget lowered to a cap.

    Parameters
    ----------
    cap : float
        The cap.
    levels : ndarray or None
        Levels to which what is left is rounded down, if so few are wanted.
    rounded : Budgets
        The population then.
    family : Family
        The randomizer that runs.
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
    """All caps of one task; each is cut and predicted once.

    Parameters
    ----------
    task : Task
        What is asked.
    own : Budgets
        Its population, or a sketch of it.
    hiding : Budgets
        The population as certificates see it in a search: of many budgets rounded up to few levels.
    """

    task: Task
    own: Budgets
    hiding: Budgets
    _known: dict[float, Cut] = field(default_factory=dict[float, Cut])

    @classmethod
    def of(cls, task: Task, budgets: Budgets) -> Caps:
        """Return the caps of a population, for searches: many different budgets are brought down to fewer."""
        return cls(task, sketch(budgets), stand_in(budgets, task.family(sketch(budgets))))

    @property
    def top(self) -> float:
        """The largest cap, which lowers nobody's budget."""
        return float(self.own.epsilons[-1])

    def at(self, cap: float) -> Cut:
        """Return the population at a cap."""
        if cap not in self._known:
            self._known[cap] = cut(self.task, self.own, cap)
        return self._known[cap]

    def holds(self, wish: Wish, at: Cut) -> bool:
        """Tell whether the population at a cap is certified to be within the wish."""
        if wish.epsilon == math.inf:
            return True
        hiding = capped(self.hiding, at.cap) if at.levels is None else stand_in(at.rounded, at.family)
        return wish.holds(wish.setting(hiding, at.family, self.task.seen))

    def edge(self, wish: Wish) -> tuple[float, float]:
        """Find a cap that is certified and the next one on the grid, which is not; of no wish, the top twice.

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
        """Bisect grid steps from `first` to `last` (the top): `low` is good, the top is not."""
        below, above = first - 1, last
        while above - below > 1:
            middle = (below + above) // 2
            below, above = (middle, above) if good(_RATIO**middle) else (below, middle)
        return low if below < first else _RATIO**below, self.top if above == last else _RATIO**above

    def around(self, cap: float, least: float) -> list[Cut]:
        """Return the caps to try: on the grid around a cap, down to the least one, and the ends of shapes."""
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
        """Find caps on both sides of a change of shape."""
        family = self.at(low).family
        while high > low * (1.0 + _TOLERANCE):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self.at(middle).family == family else (low, middle)
        return low, high

    def moved(self, start: Cut, towards: float, good: Callable[[Cut], bool]) -> Cut:
        """Move from a cap that is good towards another as long as it stays good (bisection)."""
        if good(self.at(towards)):
            return self.at(towards)
        while not 1.0 / (1.0 + _TOLERANCE) <= towards / start.cap <= 1.0 + _TOLERANCE:
            middle = self.at(math.sqrt(start.cap * towards))
            if good(middle):
                start = middle
            else:
                towards = middle.cap
        return start


def smallest_error(task: Task, wish: Wish) -> Bucketing:
    """Find the cap of the smallest predicted error among those that are certified.

    Parameters
    ----------
    task : Task
        Levels are withheld, or there is one.
    wish : Wish
        What must hold.

    Returns
    -------
    Bucketing
        Of at most 64 different budgets it is within the wish; of more, see `Bucketing.certified_epsilon`.

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
    best = caps.moved(best, above, lambda one: one.error <= error and task.fits(one.family) and caps.holds(wish, one))
    return finished(task, best.cap)


def smallest_guarantee(task: Task, error: float, within: float) -> Bucketing:
    """Find the cap of the smallest certified epsilon among those with a predicted error of at most `error`.

    Parameters
    ----------
    task : Task
        Levels are withheld, or there is one.
    error : float
        The wanted standard error.
    within : float
        Epsilon at most; inf: any.

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
    found = finished(task, best.cap)
    while found.prediction.standard_error > error and found.cap < caps.top:  # of a sketch the error is a little less
        found = finished(task, min(found.cap * (1.0 + _TOLERANCE), caps.top))
    return found


def _least_epsilon(caps: Caps, found: list[Cut], within: float) -> Cut | None:
    """Return the cap with the smallest certified epsilon; caps ascend, and far above the first one none is better."""
    task = caps.task
    best, wish = None, task.wish(within)
    for one in found:
        if one.cap > (best or found[0]).cap * _RATIO**_ABOVE:
            break
        if caps.holds(wish, one):
            hiding = capped(caps.hiding, one.cap) if one.levels is None else one.rounded
            best, wish = one, task.wish(task.wish(math.inf).certified(hiding, one.family, task.seen))
    return best


def _enough(caps: Caps, error: float) -> float:
    """Find about the least cap with that error; the top, if it has a larger one."""
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
    """Return, per shape, the least cap that has the error; ascending."""
    found: list[Cut] = []
    for one in good:
        if any(one.family == other.family for other in found):
            continue
        below = max((other.cap for other in tried if other.cap < one.cap), default=one.cap)
        found.append(caps.moved(one, below, lambda cut, one=one: cut.family == one.family and cut.error <= error))
    least = found[0]
    below = max((other.cap for other in tried if other.cap < least.cap), default=least.cap)
    found.append(caps.moved(least, below, lambda cut: cut.error <= error and caps.task.fits(cut.family)))
    return sorted(found, key=lambda one: one.cap)


def cut(task: Task, budgets: Budgets, cap: float) -> Cut:
    """Lower budgets to a cap, and round what is left down to the task's number of levels, if it has one."""
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


def finished(task: Task, cap: float) -> Bucketing:
    """Predict and certify the whole population at a cap."""
    whole = cut(task, task.budgets, cap)
    return task.finish(whole.levels, cap if cap < task.budgets.epsilons[-1] else math.inf, whole.rounded)


def sketch(budgets: Budgets) -> Budgets:
    """Return a population of few enough levels to be cut a hundred times: budgets are rounded down."""
    if budgets.levels <= _SKETCH:
        return budgets
    return rounded_down(budgets, some_values(budgets, _SKETCH))


def _step_above(cap: float) -> int:
    """Return the first step of the grid above a cap."""
    return math.floor(math.log(cap) / math.log(_RATIO)) + 1
