"""Few public levels for many budgets: everybody is rounded down, so that a level is company enough.

Where the analyzer sees levels (``seen="levels"``), only users of the own level hide a user, so a lonely budget is
hardly amplified. Where levels are withheld, all users hide each other, and a central target needs only a cap on the
largest budgets. Rounding down is always allowed: a user's report then uses less than the user's budget. Levels are
chosen from public budgets alone; a choice that looked at records would leak.

The reports of unary encoding, subset selection and local hashing have one shape for all levels of a question, which
follows the rounded budgets; and how many users a level needs depends on the shape. So where levels are shown they are
chosen for a shape, the shape for these levels, and so on until it stays the same; the choice that counts is certified
in the shape it will run in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting import LARGEST_N, last_within
from shuffledp.budgets import Budgets
from shuffledp.errors import MAX_EPSILON0, InvalidInput, NotConverged, check_delta, choice, shown, whole_number
from shuffledp.numerics.floats import JUST_BELOW, TINY, FloatArray
from shuffledp.planning import target as caps
from shuffledp.planning.question import (
    NO_GUESS,
    Family,
    Guess,
    PlannedQuestion,
    capped,
    common_delta,
    level_of,
    rounded_down,
    some_values,
)
from shuffledp.planning.target import (
    DEFAULT_LEVELS,
    ONCE,
    Bucketing,
    Caps,
    Circumstances,
    LevelChoice,
    Wish,
    error_unreachable,
    knots_of,
    needs_more_epsilon,
    ratio_of,
    steps_of,
    unreachable,
)
from shuffledp.questions.frequency import Frequency
from shuffledp.questions.mean import Mean
from shuffledp.questions.question import WEIGHTS, Weights
from shuffledp.randomizers.base import RandomizerLaw
from shuffledp.setting import Seen

_STEPS = 40
_TURNS = 5
"""Largest number of alternations between choosing shapes and levels, from each start."""
_MOST_STARTS = 6
_SLACKS = (0.0, 1e-6, 1e-4, 1e-2, 0.05, 0.2, 0.5)
"""Fractions by which the target epsilon is lowered in search of levels that stay certified in their own shape."""
_GUARANTEE_TOLERANCE = 1.01
_FIT_STEP = 0.002
"""Largest relative distance of a level to the largest one that is certified."""
_LEAST = 1e-9
_MOST_EXACT = 12
"""Largest number of different budgets for each of which the smallest number of users is searched separately."""
_USERS_TOLERANCE = 0.02
_SHARE = 1.0 / 6.0
"""Share of the users by the normal guess at which a search for the fewest starts: the best bounds need a sixth."""
_MOST_ON_A_SIDE = 3
"""Largest number of steps of that search in a row on one side of the answer before what is left is halved."""


def smallest_error(task: LevelChoice, wish: Wish) -> Bucketing:
    """Return the levels of local budgets with the smallest predicted error among those that meet the target.

    Parameters
    ----------
    task : Task
        A task whose levels are seen, or are revealed by the reports.
    wish : Wish
        The central epsilon and delta that every level must keep.

    Raises
    ------
    InvalidInput
        If no levels meet the target, or every report is longer than the task allows.
    NotConverged
        If the search found levels, but the certificate of each exceeds the target.
    """
    own = task.budgets
    if own.levels <= (task.most or DEFAULT_LEVELS):
        family = task.family(own)
        if task.fits(family) and wish.holds(wish.setting(own, family, "levels")):
            return task.finish(None, math.inf, own)
    tried: list[Bucketing] = []
    for slack in _SLACKS:
        narrower = Wish(wish.epsilon * (1.0 - slack), wish.delta, wish.around)
        tried.extend(_in_turns(task, narrower))
        good = [one for one in tried if one.certified_epsilon <= wish.epsilon and task.fits(one.family)]
        if good:
            return min(good, key=lambda one: one.prediction.standard_error)
    if not any(task.fits(one.family) for one in tried):
        raise task.too_long(tried[0].family)
    least = min(one.certified_epsilon for one in tried)
    raise NotConverged(
        f"no levels were found that are certified at epsilon = {wish.epsilon:g}; the best have {least:g}"
    )


def _in_turns(task: LevelChoice, wish: Wish) -> list[Bucketing]:
    """Return roundings from alternating choices of levels and shapes, started at several caps."""
    roundings: list[Bucketing] = []
    tried: list[tuple[Family, float]] = []
    for cap in _starts(task, wish):
        own = capped(task.budgets, cap)
        family, values = task.family(own), some_values(own)
        for _ in range(_TURNS):
            if (family, cap) in tried:
                break
            tried.append((family, cap))
            levels = _levels(replace(task, budgets=own), wish, family, values)
            if levels is None:
                break
            roundings.append(task.finish(levels, math.inf, rounded_down(own, levels)))
            family = roundings[-1].family
    if not roundings:
        raise unreachable(wish)
    return roundings


def _starts(task: LevelChoice, wish: Wish) -> list[float]:
    """Return the caps to start from: none and, if shapes depend on budgets, changes of shape below a common budget."""
    own = task.budgets
    top = float(own.epsilons[-1])
    if wish.epsilon == math.inf or task.family(capped(own, min(wish.safe, top))) == task.family(own):
        return [top]
    together = Budgets(own.epsilons[-1:], [own.n], own.deltas[-1:])
    try:
        most, _ = Caps.of(task, together).edge(wish)
    except InvalidInput:
        return [top]
    ends: dict[Family, float] = {}
    for one in Caps.of(task, own).around(most, min(wish.safe, most)):
        ends[one.family] = one.cap
    below = sorted(ends.values(), reverse=True)
    some = np.unique(np.rint(np.linspace(0, len(below) - 1, _MOST_STARTS)).astype(int))
    return [top, *(below[i] for i in some)]


def _levels(task: LevelChoice, wish: Wish, family: Family, values: FloatArray) -> FloatArray | None:
    """Return the levels chosen for one shape; None if none is allowed."""
    own = task.budgets
    if wish.epsilon < math.inf:
        values = np.union1d(values, steps_of(wish, float(values[-1])))
    company = _Company.of(wish, family, values, own)
    while True:
        chosen = task.levels_for(values, company.fewest(), own, family)
        if chosen is None or company.knew(chosen):
            break
    return None if chosen is None else _fitted(task, chosen, wish, family)


@dataclass(frozen=True, eq=False)
class _Company:
    """How many users a visible level needs, by its budget: searched at the knots that a choice of levels depends on.

    More users are needed for a larger budget. So elsewhere the number at the next smaller known knot is a lower bound,
    with which a choice of levels looks no worse than it is: one whose own knots are all known is the best.

    Parameters
    ----------
    wish : Wish
        The target.
    family : Family
        The randomizer.
    values : ndarray
        Ascending budgets.
    own : Budgets
        The users.
    idle : ndarray of bool
        Which values cannot be a level of the best choice.
    knots : ndarray
        Ascending budgets at which the number is computed; for all other budgets it is interpolated, so what is chosen
        must still be certified.
    needed : ndarray
        The number at each knot, or a lower bound; inf if no number suffices.
    known : ndarray of bool
        Where ``needed`` is the number.
    """

    wish: Wish
    family: Family
    values: FloatArray
    own: Budgets
    idle: NDArray[np.bool_]
    knots: FloatArray
    needed: FloatArray
    known: NDArray[np.bool_]

    @classmethod
    def of(cls, wish: Wish, family: Family, values: FloatArray, own: Budgets) -> _Company:
        """Return the company with no number known but where levels are too large for the users that there are.

        A level cannot have more users than have its budget or a larger one. A level between two budgets of users is
        not needed if the users of the larger budget alone suffice for a level there: it has the same users, and less
        noise. If the users' different budgets are few, they are knots.
        """
        idle = np.zeros(values.shape, dtype=bool)
        if wish.epsilon == math.inf:
            return cls(wish, family, values, own, idle, values, np.ones_like(values), ~idle)
        knots = knots_of(wish, float(values[-1]), ratio_of(family))
        if own.levels <= _MOST_EXACT:
            some = np.ones(knots.shape, dtype=bool)
            for below, i in pairwise((-1, *np.flatnonzero(own.epsilons > 0.0))):
                low, high = float(own.epsilons[below]) if below >= 0 else 0.0, float(own.epsilons[i])
                together = Budgets([high], [int(own.counts[i])], [common_delta(own)])
                if wish.holds(wish.setting(together, family, "levels")):
                    idle |= (low < values) & (values < high)
                    some &= (knots <= max(low, float(knots[0]))) | (high <= knots)
            knots = np.union1d(knots[some], own.epsilons[own.epsilons > 0.0])
        new = cls(wish, family, values, own, idle, knots, np.ones(knots.shape), np.zeros(knots.shape, dtype=bool))
        new._rule_out()
        return new

    def _rule_out(self) -> None:
        """Find the first knot at which all users together are too few; above it no level is allowed."""
        below, above = -1, self.knots.size
        while above - below > 1:
            middle = (below + above) // 2
            together = Budgets([self.knots[middle]], [self._most(middle)], [common_delta(self.own)])
            enough = self.wish.holds(self.wish.setting(together, self.family, "levels"))
            below, above = (middle, above) if enough else (below, middle)
        if above < self.knots.size:
            self.needed[above] = self._most(above) + 1.0
            self.needed[above + 1 :], self.known[above + 1 :] = math.inf, True

    def _most(self, at: int) -> int:
        """Return how many users have the budget of a knot or a larger one."""
        return int(self.own.counts[self.own.epsilons >= self.knots[at]].sum())

    def fewest(self) -> FloatArray:
        """Return about how many users a level needs at each value, or fewer; inf where it cannot be, or need not."""
        finite = np.isfinite(self.needed)
        if not finite.any():
            return np.full(self.values.shape, np.inf)
        least = np.where(self.known, self.needed, np.maximum.accumulate(self.needed))
        x, y = np.log(self.knots[finite]), np.log(least[finite])
        between = np.exp(np.interp(np.log(np.maximum(self.values, TINY)), x, y)) * JUST_BELOW
        allowed = ~self.idle & (self.values <= self.knots[finite][-1]) & (between <= self.own.n)
        return np.where(allowed, between, np.inf)

    def knew(self, levels: FloatArray) -> bool:
        """Return whether the number was known at each level, and compute it where it was not."""
        above = np.clip(np.searchsorted(self.knots, levels), 0, self.knots.size - 1)
        exact = self.knots[above] == levels
        around = np.union1d(above, np.where(exact | (above == 0), above, above - 1))
        missing = around[~self.known[around]]
        for at in missing:
            value, share = float(self.knots[at]), self._share(int(at))
            self.needed[at] = _fewest_users(self.wish, self.family, common_delta(self.own), value, share)
            self.known[at] = True
        return not missing.size

    def _share(self, at: int) -> float:
        """Return the share of the users by the normal guess at which the search at a knot starts: that of the nearest.

        Up to two digits, so that a search for another population with the same start is not made again.
        """
        some = np.flatnonzero(np.isfinite(self.needed) & (self.needed > 1.0))
        if not some.size:
            return _SHARE
        near = int(some[np.argmin(np.abs(some - at))])
        return float(f"{self.needed[near] / _normal_guess(self.wish, float(self.knots[near])):.2g}")


@lru_cache(maxsize=8192)
def _fewest_users(wish: Wish, family: Family, delta0: float, value: float, share: float = _SHARE) -> float:
    """Return about the fewest users of one budget who are certified to hide each other; inf if no number suffices.

    All have epsilon0 = ``value`` (nats) and ``delta0``. The number is certified; it is at most 2 % too large, unless a
    bound that was far behind another one (`Target.excess`) overtakes it nearer to the answer. The search starts at
    ``share`` of `_normal_guess` and takes secants: the excess over the target falls about linearly in the users.
    """
    last: dict[str, float] = {}

    def excess(users: int) -> float:
        if users < max(wish.around.colluding + 1, wish.around.group_size):
            return math.inf
        one = Budgets([value], [users], [delta0])
        return wish.target.excess(wish.setting(one, family, "levels"), last, quick="only")

    low, high, same = 1, math.inf, 0
    before = low, excess(low)
    if before[1] <= 0.0:
        return 1.0
    at = math.ceil(min(max(_normal_guess(wish, value) * share, 2.0), LARGEST_N))
    while True:
        now = at, excess(at)
        if now[1] > 0.0:
            if at >= LARGEST_N:
                return math.inf
            low, same = at, max(same, 0) + 1
        else:
            high, same = at, min(same, 0) - 1
        if high <= max(low * (1.0 + _USERS_TOLERANCE), low + 1):
            return float(high)
        at, before = _next_users(before, now, low, high, halve=abs(same) > _MOST_ON_A_SIDE), now


def _next_users(before: tuple[int, float], now: tuple[int, float], low: int, high: float, *, halve: bool) -> int:
    """Return the number of users to try next: just beyond the zero of the line through two (users, excess)."""
    (one, first), (two, second) = before, now
    falls = (first - second) / (two - one)
    zero = two + second / falls if 0.0 < falls < math.inf and math.isfinite(second) else math.nan
    beyond = 1.0 + _USERS_TOLERANCE / 2.0
    if math.isnan(zero):
        zero = 3.0 * two if second > 0.0 else two / 3.0
    wanted = min(max(zero, two / 3.0), 4.0 * two) * (beyond if second > 0.0 else 1.0 / beyond)
    if high < math.inf and (halve or not low < wanted < high):
        wanted = math.sqrt(low * high)
    return math.ceil(min(max(wanted, low + 1), high - 1, LARGEST_N))


def _normal_guess(wish: Wish, value: float) -> float:
    """Return about how many users of a budget hide each other, by a normal law of the clones at four deviations."""
    deviations = 4.0 * math.tanh(value / 2.0) / wish.epsilon
    return 2.0 * (1.0 + math.exp(value)) * deviations**2 * wish.around.reports


def _fitted(task: LevelChoice, levels: FloatArray, wish: Wish, family: Family) -> FloatArray:
    """Return the levels, each moved up while its users stay in it and it is certified, else down until it is."""
    own, delta0 = task.budgets, common_delta(task.budgets)
    fitted = levels.copy()
    at = level_of(own.epsilons, levels)
    for g in range(levels.size):
        members = at == g
        users = int(own.counts[members].sum())

        def excess(value: float, users: int = users) -> float:
            return wish.excess(wish.setting(Budgets([value], [users], [delta0]), family, "levels"))

        others = float(own.epsilons[at < g].max(initial=0.0))  # who is below must stay there
        low, high = float(levels[g]), float(own.epsilons[members][0])
        if not excess(low) <= 0.0:
            low, high = max(min(wish.safe, low), others * (1.0 + 1e-9), _LEAST), low
            if not excess(low) <= 0.0:
                continue  # the whole choice is certified again, and refused
        steps = max(math.ceil(math.log(high / low) / _FIT_STEP), 0) if low > 0.0 else 0

        def value(step: int, low: float = low, high: float = high, steps: int = steps) -> float:
            return high if step == steps else low * math.exp(step * _FIT_STEP)

        low = value(last_within(lambda step: excess(value(step)), 0, steps, max(steps, 1))) if steps else low
        fitted[g] = low
    return fitted


def smallest_guarantee(task: LevelChoice, error: float, within: float) -> Bucketing:
    """Return levels with the smallest certified epsilon among those with a predicted error of at most `error`.

    Parameters
    ----------
    task : Task
        A task whose levels are seen, or are revealed by the reports.
    error : float
        The wanted standard error.
    within : float
        Largest central epsilon that is accepted, nats; inf: any.

    Returns
    -------
    Bucketing
        Its epsilon is within about 1 % of the smallest target for which `smallest_error` reaches the error.

    Raises
    ------
    InvalidInput
        If no levels have that error within that epsilon.
    """
    best = smallest_error(task, task.wish(within))
    if not best.prediction.standard_error <= error:
        if within < math.inf:
            raise needs_more_epsilon(error, within)
        raise error_unreachable(error, best.prediction.standard_error)
    low, high = 0.0, best.certified_epsilon
    for _ in range(_STEPS):
        if high <= low * _GUARANTEE_TOLERANCE or high < 1e-12:
            break
        middle = math.sqrt(low * high) if low > 0.0 else high / 4.0
        try:
            candidate = smallest_error(task, task.wish(middle))
        except (InvalidInput, NotConverged):
            low = middle
            continue
        if candidate.prediction.standard_error <= error:
            best, high = candidate, min(candidate.certified_epsilon, middle)
        else:
            low = middle
    return best


Goal = Literal["error", "guarantee"]
PLANNED_SEEN: tuple[Seen, ...] = ("reports", "levels", "sum")
MOST_LEVELS = 64
_TARGET_SLACKS = (0.0, 1e-6, 1e-4, 1e-2)
"""Parts of the wanted epsilon given up where a search saw fewer different budgets than there are."""


def bucket_budgets(
    budgets: Budgets,
    question: Frequency | Mean,
    *,
    guess: Guess = NO_GUESS,
    mechanism: str,
    seen: Seen,
    delta: float,
    goal: Goal = "error",
    target: float = math.inf,
    levels: int | None = None,
    weights: Weights = "population",
    drop_below: float = 0.0,
    around: Circumstances = ONCE,
    max_bytes: int | None = None,
    within: float = math.inf,
    at_most: float = math.inf,
) -> Bucketing:
    """Choose public levels, and return the rule that rounds budgets down to them.

    Parameters
    ----------
    budgets : Budgets
        Everybody's own budget, public; one delta0 for all.
    question : Frequency or Mean
        The question, as for `release`.
    guess : Guess
        Guess about the records, for the predicted error; default: the records with the largest error.
    mechanism : str
        One of ``question.mechanisms`` but ``"rr"``: ``"krr"`` of two categories is the same.
    seen : {"reports", "levels", "sum"}
        What the analyzer will see.
    delta : float
        Central delta, in (0, 1).
    goal : {"error", "guarantee"}
        "error": the smallest predicted error with a certified central epsilon of at most `target`.
        "guarantee": the smallest certified central epsilon with a predicted error of at most `target`.
    target : float
        Target of the other quantity, positive; with goal "error" it may be inf.
    levels : int, optional
        Largest number of levels, from 1 to 64. Default: 8 where levels are visible; where they are withheld, budgets
        are only capped.
    weights : {"population", "precision"}
        How visible levels are combined.
    drop_below : float
        Users with a smaller budget take no part, so they do not hide the others either. Default 0: everybody takes
        part.
    around : Circumstances
        Rounds, and the users that the guarantee relies on; the error is that of one round in which all report, the
        dummies' variance included.
    max_bytes : int, optional
        Largest size of a report in bytes, at least 1; default: any.
    within : float
        With goal "guarantee": largest certified central epsilon. Default: any.
    at_most : float
        With goal "error": largest predicted error that is searched for; a larger one is refused at once. Default: any.

    Returns
    -------
    Bucketing
        Its guarantee is certified for the rounded population. Of the error, the choice is the best among levels
        at up to about 200 of the budgets (see `shuffledp.planning.question`), each with its certified company.

    Raises
    ------
    InvalidInput
        If a value is out of range, or the target cannot be met.

    Examples
    --------
    >>> own = Budgets.of([0.5] * 5000 + [0.9, 1.1, 4.0])
    >>> rule = bucket_budgets(own, Mean(0, 1), mechanism="one-bit", seen="levels", delta=1e-6, target=0.3)
    >>> rule.certified_epsilon <= 0.3
    True
    """
    _check(goal, target, levels, weights, seen, drop_below)
    check_bytes(max_bytes)
    planned = PlannedQuestion(question, guess)
    task = task_of(
        budgets, planned, mechanism, seen, check_delta(delta), levels, weights, drop_below, around, max_bytes
    )
    if goal == "error" and at_most < math.inf and out_of_reach(task, task.wish(target), at_most):
        raise InvalidInput("no rounding of the budgets within the central target comes near the best plan's error")
    candidates: list[Bucketing] = []
    refusals: list[Exception] = []
    for search in _searches(task):
        try:
            candidates.append(search(task, goal, float(target), float(within)))
        except (InvalidInput, NotConverged) as refusal:
            refusals.append(refusal)
    if not candidates:
        raise refusals[0]
    by_error = goal == "error"
    return min(candidates, key=lambda one: one.prediction.standard_error if by_error else one.certified_epsilon)


def task_of(
    budgets: Budgets,
    question: PlannedQuestion,
    mechanism: str,
    seen: Seen,
    delta: float,
    levels: int | None,
    weights: Weights,
    drop_below: float,
    around: Circumstances,
    max_bytes: int | None,
) -> LevelChoice:
    """Return the task of one choice of levels among those who take part; parameters as for `bucket_budgets`."""
    choice(mechanism, "mechanism", question.mechanisms)
    staying = who_stays(budgets, drop_below)
    common_delta(budgets)
    most = levels if levels is not None or seen != "levels" else DEFAULT_LEVELS
    visible_weights = weights if seen == "levels" else None
    dropped = budgets.n - staying.n
    return LevelChoice(
        staying, question, mechanism, seen, visible_weights, most, delta, around, drop_below, dropped, max_bytes
    )


def _searches(task: LevelChoice) -> list[Callable[[LevelChoice, Goal, float, float], Bucketing]]:
    """Return the searches, of whose results the best is chosen.

    With one level there is nothing to cut: only a cap is searched for, also where it is shown. Where reports reveal
    their sender's budget although levels are withheld (no mixture family), a level with few users needs others as if
    levels were shown, so both searches are used.
    """
    if task.budgets.levels == 1:
        return [_cap]
    if task.seen == "levels":
        return [_cut]
    family = task.family(task.budgets)
    alone = isinstance(family, RandomizerLaw) and not family.mixture
    return [_cap, _cut] if alone and task.seen == "reports" else [_cap]


def out_of_reach(task: LevelChoice, wish: Wish, error: float) -> bool:
    """Return whether no rounding has so small an error within the target, told by few certificates.

    Where a level may have to hide its users by itself, it hides them no better than all users would at its budget.

    Parameters
    ----------
    task : Task
        The task.
    wish : Wish
        The target.
    error : float
        The standard error.
    """
    own = task.budgets
    apart = task.seen == "levels" or len(_searches(task)) > 1
    hiding = Budgets(own.epsilons[-1:], [own.n], own.deltas[-1:]) if apart else own
    own_caps = Caps.of(task, own)
    return caps.no_cap_reaches(replace(own_caps, hiding=hiding) if apart else own_caps, wish, error)


def _cut(task: LevelChoice, goal: Goal, target: float, within: float) -> Bucketing:
    """Return the best rounding to levels each of which is certified by itself."""
    if goal == "error":
        return smallest_error(task, task.wish(target))
    return smallest_guarantee(task, target, within)


def _cap(task: LevelChoice, goal: Goal, target: float, within: float) -> Bucketing:
    """Return the best cap, lowered further where the certificate of the whole population requires it."""
    if goal == "guarantee":
        candidate = caps.smallest_guarantee(task, target, within)
        if candidate.certified_epsilon > within:
            raise needs_more_epsilon(target, within)
        return candidate
    tried: list[float] = []
    for slack in _TARGET_SLACKS:
        candidate = caps.smallest_error(task, task.wish(target * (1.0 - slack)))
        if candidate.certified_epsilon <= target:
            return candidate
        tried.append(candidate.certified_epsilon)
    raise NotConverged(f"no cap was found that is certified at epsilon = {target:g}; the best has {min(tried):g}")


def _check(goal: str, target: float, levels: int | None, weights: str, seen: str, drop_below: float) -> None:
    for what, value, valid in (
        ("goal", goal, ("error", "guarantee")),
        ("weights", weights, WEIGHTS),
        ("seen", seen, PLANNED_SEEN),
    ):
        choice(value, what, valid)
    if not target > 0.0 or (goal == "guarantee" and target == math.inf):
        raise InvalidInput(f"target must be a positive number; got {shown(target)}")
    check_rounding(levels, drop_below)


def check_bytes(max_bytes: int | None) -> None:
    """Refuse a largest size of reports that is not a positive whole number of bytes."""
    if max_bytes is not None:
        whole_number(max_bytes, "max_bytes must be a whole number of bytes", 1)


def check_rounding(levels: int | None, drop_below: float) -> None:
    """Refuse a number of levels, or a smallest budget, outside its range."""
    if levels is not None:
        whole_number(levels, "levels", 1, MOST_LEVELS)
    if not 0.0 <= drop_below <= MAX_EPSILON0:
        raise InvalidInput(f"drop_below must be a budget from 0 to {MAX_EPSILON0:g}; got {shown(drop_below)}")


def who_stays(budgets: Budgets, drop_below: float) -> Budgets:
    """Return the population without the users whose budget is below ``drop_below``, or refuse if nobody is left."""
    kept = budgets.epsilons >= drop_below
    if not kept.any():
        raise InvalidInput(
            f"drop_below must be at most the largest budget, {budgets.epsilons[-1]:g}, or nobody would take part; "
            f"got {drop_below:g}"
        )
    return Budgets(budgets.epsilons[kept], budgets.counts[kept], budgets.deltas[kept])
