"""Plans of a collection: randomizer, view and levels, number of users, predicted error and certified guarantee."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from shuffledp.accounting import calibrate_batch, certify
from shuffledp.budgets import Budgets
from shuffledp.dummies import Dummies
from shuffledp.errors import (
    MAX_EPSILON0,
    InvalidInput,
    NotConverged,
    Refused,
    Told,
    attempt,
    check_delta,
    choice,
    shown,
)
from shuffledp.numerics.floats import Interval
from shuffledp.planning.bucketing import (
    Goal,
    bucket_budgets,
    check_bytes,
    check_rounding,
    out_of_reach,
    task_of,
    who_stays,
)
from shuffledp.planning.question import (
    NO_GUESS,
    Guess,
    PlannedQuestion,
    Prediction,
    capped,
    rounded_down,
    some_values,
)
from shuffledp.planning.target import Bucketing, Circumstances, Wish, report_bytes, scaled, stand_in
from shuffledp.questions.frequency import Frequency
from shuffledp.questions.mean import Mean
from shuffledp.questions.question import Weights
from shuffledp.setting import Guarantee, Seen, Setting

# Error against central epsilon: one way of asking, at smaller and larger budgets.

FACTORS = tuple(float(factor) for factor in np.geomspace(1.0 / 8.0, 8.0, 13))


@dataclass(frozen=True)
class Point:
    """A point of the curve of error against epsilon.

    Parameters
    ----------
    factor : float
        Factor on every budget of the plan.
    epsilon : float
        Certified central epsilon of the worst level (for more than 64 levels: with budgets rounded up to 64 levels).
    standard_error : float
        Predicted standard error.
    """

    factor: float
    epsilon: float
    standard_error: float


def error_curve(
    rule: Bucketing, question: PlannedQuestion, wish: Wish, factors: tuple[float, ...] = FACTORS
) -> tuple[Point, ...]:
    """Return predicted error and certified epsilon of the rule's budgets times each factor, up to budgets of 700.

    Parameters
    ----------
    rule : Bucketing
        The rule of the plan.
    question : PlannedQuestion
        The question.
    wish : Wish
        Delta and circumstances of the guarantee.
    factors : tuple of float
        Positive, ascending.
    """
    points: list[Point] = []
    few = rule.budgets if rule.seen == "levels" else stand_in(rule.budgets, rule.family)

    def at(factor: float) -> Point:
        population = scaled(rule.budgets, factor)
        family = question.family(rule.mechanism, population, rule.seen)
        error = question.predict(family, population, rule.weights, wish.around.dummies).standard_error
        return Point(factor, wish.certified(scaled(few, factor), family, rule.seen), error)

    for factor in factors:
        point = attempt(lambda factor=factor: at(factor))
        if not isinstance(point, Refused):
            points.append(point)
    return tuple(points)


# What would meet a wanted error that is out of reach.

MOST_USERS = 10**12
MOST_FACTOR = 2**12
"""Largest factor on the budgets that is tried; it would bring any relevant budget to the largest allowed one."""
_FEW = 24
_STEPS = 7
_CLOSE = 1.02


@dataclass(frozen=True)
class Way:
    """A combination of randomizer, view and weights.

    Parameters
    ----------
    mechanism : str
        The randomizer.
    seen : {"reports", "levels"}
        Levels withheld or shown.
    weights : {"population", "precision"} or None
        How visible levels are combined; None where they are withheld.
    """

    mechanism: str
    seen: Seen
    weights: Weights | None


@dataclass(frozen=True)
class PlanInputs:
    """The parts of a plan that do not depend on the way of asking.

    Parameters
    ----------
    question : PlannedQuestion
        The question.
    wish : Wish
        The central target.
    levels : int or None
        As for `bucket_budgets`.
    drop_below : float
        As for `bucket_budgets`.
    max_bytes : int or None
        As for `bucket_budgets`.
    """

    question: PlannedQuestion
    wish: Wish
    levels: int | None
    drop_below: float
    max_bytes: int | None = None

    def bucket(self, budgets: Budgets, way: Way, at_most: float = math.inf) -> Bucketing:
        """Return the rounding of the budgets with the smallest error within the target, if asked in the given way.

        Parameters
        ----------
        budgets : Budgets
            The population.
        way : Way
            Randomizer, view and weights.
        at_most : float
            The largest standard error that is searched for; default: any.
        """
        return self._bucket(budgets, way, "error", self.wish.epsilon, math.inf, at_most)

    def out_of_reach(self, budgets: Budgets, way: Way, error: float) -> bool | None:
        """Return whether a way has no rounding within the target with so small an error; None if it cannot be asked.

        Parameters
        ----------
        budgets : Budgets
            The population.
        way : Way
            Randomizer, view and weights.
        error : float
            The standard error.
        """

        def answered() -> bool:
            task = task_of(
                budgets, self.question, way.mechanism, way.seen, self.wish.delta, self.levels,
                way.weights or "population", self.drop_below, self.wish.around, self.max_bytes,
            )  # fmt: skip
            return out_of_reach(task, self.wish, error)

        outcome = attempt(answered)
        return None if isinstance(outcome, Refused) else outcome

    def least(self, budgets: Budgets, way: Way, error: float, within: float) -> Bucketing:
        """Return the rounding of the budgets with the smallest certified epsilon among those that reach an error.

        Parameters
        ----------
        budgets : Budgets
            The population.
        way : Way
            Randomizer, view and weights.
        error : float
            The largest standard error that is accepted.
        within : float
            The largest central epsilon that is accepted, nats.
        """
        return self._bucket(budgets, way, "guarantee", error, within)

    def _bucket(
        self, budgets: Budgets, way: Way, goal: Goal, target: float, within: float, at_most: float = math.inf
    ) -> Bucketing:
        return bucket_budgets(
            budgets,
            self.question.question,
            guess=self.question.guess,
            mechanism=way.mechanism,
            seen=way.seen,
            delta=self.wish.delta,
            goal=goal,
            target=target,
            levels=self.levels,
            weights=way.weights or "population",
            drop_below=self.drop_below,
            around=self.wish.around,
            max_bytes=self.max_bytes,
            within=within,
            at_most=at_most,
        )

    def staying(self, budgets: Budgets) -> Budgets:
        """Return the budgets of those who take part."""
        return who_stays(budgets, self.drop_below)


@dataclass(frozen=True)
class Remedies:
    """Changes that would reach the wanted error within the same central target, each predicted and certified.

    For more than 24 different budgets, a first rounding down to about 24 is part of them.

    Parameters
    ----------
    users : int or None
        Number of users, in the same proportions, that meets the error, rounded for the larger population; within 2 %
        of the fewest. None if the error is met, or 1e12 do not suffice.
    budget_factor : float or None
        Multiplying every budget by this meets the error, within 2 % of the smallest such factor. None if the error
        is met, or no factor up to 4,096 does: then the central target itself is too small.
    """

    users: int | None = None
    budget_factor: float | None = None


def find_remedies(rule: Bucketing, budgets: Budgets, ask: PlanInputs, error: float | None) -> Remedies:
    """Return the changes that would reach the error.

    Parameters
    ----------
    rule : Bucketing
        The rule of the plan.
    budgets : Budgets
        The population as given.
    ask : Ask
        The question and its target.
    error : float or None
        The wanted standard error; None if none was stated.
    """
    if error is None or rule.prediction.standard_error <= error:
        return Remedies()
    small = budgets  # of very many budgets, a first rounding down is part of the remedy
    if budgets.levels > _FEW:
        small = rounded_down(ask.staying(budgets), some_values(ask.staying(budgets), _FEW))
    return Remedies(_users(rule, budgets, small, ask, error), _factor(rule, small, ask, error))


def _error_of(rule: Bucketing, budgets: Budgets, ask: PlanInputs) -> float:
    """Return the error of the same way for another population; inf if it cannot be asked."""
    way = Way(rule.mechanism, rule.seen, rule.weights)
    error = attempt(lambda: ask.bucket(budgets, way).prediction.standard_error)
    return math.inf if isinstance(error, Refused) else error


def _users(rule: Bucketing, budgets: Budgets, small: Budgets, ask: PlanInputs, error: float) -> int | None:
    """Return a number of users that meets the error: as many as at the present levels, or fewer with new levels."""
    high = (rule.prediction.standard_error / error) ** 2 * (1.0 + 1e-9)
    if high * budgets.n > MOST_USERS:
        return None
    low = 1.0
    if rule.rounds_budgets:
        for _ in range(_STEPS):
            if high <= low * _CLOSE:
                break
            middle = math.sqrt(low * high)
            low, high = (low, middle) if _error_of(rule, _more(small, middle), ask) <= error else (middle, high)
    return math.ceil(high * budgets.n)


def _more(budgets: Budgets, factor: float) -> Budgets:
    return Budgets(budgets.epsilons, np.ceil(budgets.counts * factor).astype(np.int64), budgets.deltas)


def _factor(rule: Bucketing, small: Budgets, ask: PlanInputs, error: float) -> float | None:
    """Return the smallest factor on the given budgets that meets the error, or None."""
    positive = small.epsilons[small.epsilons > 0.0]
    low, high = 1.0, 2.0
    top = MAX_EPSILON0 / float(positive[0])
    while _error_of(rule, scaled(small, high), ask) > error:
        if high >= min(top, MOST_FACTOR):
            return None
        low, high = high, min(high * 4.0, top)
    for _ in range(_STEPS):
        if high <= low * _CLOSE:
            break
        middle = math.sqrt(low * high)
        low, high = (low, middle) if _error_of(rule, scaled(small, middle), ask) <= error else (middle, high)
    return high


Limit = Literal["nothing", "privacy", "budgets"]
WAYS: tuple[tuple[Seen, Weights | None], ...] = (("reports", None), ("levels", "population"), ("levels", "precision"))
"""The views and weights compared: levels withheld, shown with equal weights, shown with weights of least noise."""
_HOPELESS, _HOPELESS_SHAPE = 1.05, 1.4
"""Ratios to the best plan's error above which a way, with everybody's whole budget, is not rounded.

The second holds where smaller budgets change the shape of reports: a cap may then reduce the error by up to 35 % (see
`shuffledp.planning.target`).
"""


@dataclass(frozen=True, eq=False, repr=False)
class Alternative(Told):
    """One way to ask (randomizer, view, weights) with its predictions and certificates.

    Parameters
    ----------
    mechanism : str
        The randomizer.
    seen : {"reports", "levels"}
        Levels withheld or shown.
    weights : {"population", "precision"} or None
        How visible levels are combined; None where they are withheld.
    needs_independence : bool
        Whether the estimate is right only if budgets do not depend on the records.
    given : Prediction or None
        Error if everybody uses the whole of their budget.
    given_epsilon : float or None
        Certified central epsilon then.
    given_bytes : int or None
        Bytes of one report on the wire then, without the message header.
    shaped : bool
        Whether smaller budgets change the shape of reports.
    bucketing : Bucketing or None
        The rounding of the smallest predicted error within the central target.
    refused : str or None
        Reason why there is no `bucketing`.
    least : Bucketing or None
        The rounding of the smallest certified epsilon with the wanted error, within the central target; None if no
        error was stated, this way does not reach it, or another way reaches it at a smaller epsilon.
    """

    mechanism: str
    seen: Seen
    weights: Weights | None
    needs_independence: bool
    given: Prediction | None
    given_epsilon: float | None
    given_bytes: int | None = None
    shaped: bool = False
    bucketing: Bucketing | None = None
    refused: str | None = None
    least: Bucketing | None = None

    def _told(self) -> str:
        rule = self.least or self.bucketing
        way = f"{self.mechanism}, seen = {self.seen}{'' if self.weights is None else f', weights = {self.weights}'}"
        if rule is None:
            return f"{way}: {self.refused or 'no rounding of budgets within the target'}"
        return (
            f"{way}: standard error {rule.prediction.standard_error:.4g}; certified epsilon {rule.certified_epsilon!r}"
        )

    @property
    def error(self) -> float:
        """Smallest standard error within the central target; inf if there is none."""
        return math.inf if self.bucketing is None else self.bucketing.prediction.standard_error

    @property
    def least_epsilon(self) -> float:
        """Smallest certified epsilon with the wanted error; inf if there is none."""
        return math.inf if self.least is None else self.least.certified_epsilon

    @property
    def report_bytes(self) -> int | None:
        """Bytes of one report on the wire, without the header of the message: as planned, or else as given."""
        rule = self.least or self.bucketing
        return self.given_bytes if rule is None else rule.report_bytes

    @property
    def way(self) -> Way:
        """The randomizer, view and weights."""
        return Way(self.mechanism, self.seen, self.weights)


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Told):
    """A plan of a collection, with its predicted error, its certified guarantee, and the alternatives.

    Parameters
    ----------
    question : PlannedQuestion
        The question.
    budgets : Budgets
        The population as given.
    target_epsilon, delta : float
        The wanted central guarantee.
    target_error : float or None
        The wanted standard error.
    chosen : Alternative
        If a wanted error can be met: the way with the smallest certified epsilon that meets it. Else the way with
        the smallest predicted error within the central target.
    most_accurate : Alternative
        The way with the smallest predicted error within the central target, with the rounding ``bucketing``.
    guarantee : Guarantee
        The guarantee certified for the whole population if the plan is carried out.
    batch : Budgets
        The smallest number of users at each level that may be released together within the target (for more than 64
        withheld levels: with budgets rounded up to 64 levels).
    limit : {"nothing", "privacy", "budgets"}
        What prevents a smaller error than the target: nothing, the central target, or the budgets and number of users
        even without a central target.
    remedies : Remedies
        Changes that would reach the error.
    alternatives : tuple of Alternative
        Every way that was compared, the chosen one first.

    Attributes
    ----------
    curve : tuple of Point
        Error and certified epsilon of the chosen way, all its budgets multiplied by one factor; computed when it is
        first read.
    """

    question: PlannedQuestion
    budgets: Budgets
    target_epsilon: float
    delta: float
    target_error: float | None
    chosen: Alternative
    most_accurate: Alternative
    guarantee: Guarantee
    batch: Budgets
    limit: Limit
    remedies: Remedies
    alternatives: tuple[Alternative, ...]

    @cached_property
    def curve(self) -> tuple[Point, ...]:
        """Error and certified epsilon of the chosen way, all its budgets multiplied by one factor."""
        wish = Wish(self.target_epsilon, self.delta, self.bucketing.around)
        return error_curve(self.bucketing, self.question, wish)

    @property
    def bucketing(self) -> Bucketing:
        """The rounding rule of the plan; for a wanted error that can be met, that of the smallest certified epsilon."""
        return _rule_of(self.chosen)

    @property
    def standard_error(self) -> float:
        """Predicted standard error if the plan is carried out."""
        return self.bucketing.prediction.standard_error

    def _told(self) -> str:
        wanted = (
            "" if self.target_error is None else f" (wanted {self.target_error!r}: {'' if self.met else 'NOT '}met)"
        )
        return (
            f"plan for a {self.question.kind}: {self.bucketing.setting.randomizer_name}, seen = {self.chosen.seen}; "
            f"standard error {self.standard_error:.4g}{wanted}; central epsilon at most "
            f"{self.guarantee.epsilon.upper!r} at delta = {self.delta!r} (wanted {self.target_epsilon!r})"
        )

    def _rows(self) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        pairs = ((row, row.bucketing) for row in self.alternatives)
        return ("mechanism", "seen", "standard error", "central epsilon at most"), (
            (row.mechanism, row.seen, *(("–", "–") if rule is None else (f"{row.error:.4g}", rule.certified_epsilon)))
            for row, rule in pairs
        )

    @property
    def met(self) -> bool:
        """Whether the error is at most the wanted one (or none was stated)."""
        return self.target_error is None or self.standard_error <= self.target_error


def plan(
    budgets: Budgets,
    question: Frequency | Mean,
    *,
    guess: Guess = NO_GUESS,
    target_epsilon: float,
    delta: float,
    target_error: float | None = None,
    mechanisms: Sequence[str] | None = None,
    seen: Seen | None = None,
    levels: int | None = None,
    correlated: bool = False,
    drop_below: float = 0.0,
    rounds: int = 1,
    max_bytes: int | None = None,
    colluding: int = 0,
    missing: float = 0.0,
    group_size: int = 1,
    dummies: Dummies | None = None,
) -> Plan:
    """Plan a collection: the smallest certified epsilon that meets a wanted error, or else the smallest error.

    Parameters
    ----------
    budgets : Budgets
        Everybody's own budget, public.
    question : Frequency or Mean
        The question, as for `release`; ``Frequency(range(k))`` stands for k categories of any names.
    guess : Guess
        Guess about the records, for the predicted error; default: the records with the largest error.
    target_epsilon, delta : float
        The central guarantee that must hold for every level: epsilon positive, delta in (0, 1).
    target_error : float, optional
        The wanted standard error, in the unit of the answer. If it can be met within the central guarantee, the plan
        is the one with the smallest certified epsilon among those that meet it. If left out or impossible: the one
        with the smallest predicted error.
    mechanisms : sequence of str, optional
        Randomizers to compare; default: all that can answer the question.
    seen : {"reports", "levels"}, optional
        Whether levels are withheld or shown; default: whichever is better.
    levels, drop_below, max_bytes
        As for `bucket_budgets`.
    rounds, colluding, missing, group_size, dummies
        As for `Setting`: the guarantee covers all rounds, and holds whichever users collude or stay away.
        The error is that of one round in which all report, the dummies' variance included; with dummies only ways with
        levels withheld are left.
    correlated : bool
        Whether budgets may depend on the records: then only ways that are unbiased nevertheless are compared. (The
        guarantee always requires that a person's budget does not depend on that person's own record.)

    Raises
    ------
    InvalidInput
        If a value is out of range, or no way reaches the central target.

    Examples
    --------
    >>> made = plan(Budgets([1.0], [10_000]), Mean(0, 1), target_epsilon=0.1, delta=1e-6)
    >>> made.bucketing.certified_epsilon <= 0.1, made.met
    (True, True)
    """
    around = Circumstances(rounds, colluding, missing, group_size, dummies)
    wish = _check(target_epsilon, delta, target_error, around, seen)
    Setting(  # refuses what no way of asking could have
        budgets, "any", "reports", "replace-one", rounds=rounds, colluding=colluding, missing=missing,
        group_size=group_size,
    )  # fmt: skip
    check_rounding(levels, drop_below)
    who_stays(budgets, drop_below)
    check_bytes(max_bytes)
    planned = PlannedQuestion(question, guess)
    ask = PlanInputs(planned, wish, levels, drop_below, max_bytes)
    named = planned.mechanisms if mechanisms is None else tuple(mechanisms)
    ways = [way for way in _ways(budgets, seen) if not (correlated and _needs_independence(way, budgets))]
    if not (named and ways):
        raise InvalidInput(
            "no way of asking is left to compare: name a mechanism, and with budgets that may depend on the records "
            "(correlated) show the levels"
        )
    every = [Way(choice(mechanism, "mechanism", planned.mechanisms), *way) for mechanism in named for way in ways]
    _refuse_what_tells_nothing(every, budgets, ask)
    rows = _rounded([_as_given(budgets, ask, way) for way in every], budgets, ask)
    accurate = rows[0]
    if accurate.bucketing is None:
        raise InvalidInput(f"no way of asking is certified at epsilon = {target_epsilon:g}: {accurate.refused}")
    limit: Limit = "nothing"
    if target_error is not None and accurate.error <= target_error:
        rows = _with_least(rows, budgets, ask, target_error)
        accurate = min(rows, key=lambda row: row.error)
    elif target_error is not None:
        best = min(row.given.standard_error for row in rows if row.given is not None)
        limit = "budgets" if best > target_error else "privacy"
    rule = _rule_of(rows[0])
    return Plan(
        planned,
        budgets,
        wish.epsilon,
        wish.delta,
        target_error,
        rows[0],
        accurate,
        _guarantee(rule),
        _batch(rule, wish),
        limit,
        find_remedies(rule, budgets, ask, target_error),
        tuple(rows),
    )


def _guarantee(rule: Bucketing) -> Guarantee:
    """Return the guarantee of the rule's setting, no larger than the rule's own certificate.

    Over several rounds the two may differ in the fifth digit, for they are composed from other values of each round.
    """
    guarantee, least = certify(rule.setting, rule.delta), rule.certified_epsilon
    levels = [
        replace(level, epsilon=Interval(level.epsilon.lower, min(level.epsilon.upper, least)))
        for level in guarantee.levels
    ]
    return replace(guarantee, levels=tuple(levels))


def _rule_of(row: Alternative) -> Bucketing:
    """Return the rounding with which a chosen way is carried out."""
    rule = row.least or row.bucketing
    if rule is None:
        raise NotConverged("the plan has no rule")  # never: only ways with a rule are chosen
    return rule


def _ways(budgets: Budgets, seen: Seen | None) -> list[tuple[Seen, Weights | None]]:
    """Return the views and weights to compare; with one level there is nothing to show."""
    if budgets.levels == 1 and seen is None:
        return [WAYS[0]]
    return [way for way in WAYS if seen in (None, way[0])]


def _refuse_what_tells_nothing(ways: list[Way], budgets: Budgets, ask: PlanInputs) -> None:
    """Refuse so many rounds that no way has an error within the whole range of the answer."""
    rounds, widest = ask.wish.around.rounds, ask.question.width
    useless = 0
    for way in ways if rounds > 1 else ():
        unreachable = ask.out_of_reach(budgets, way, widest)
        if unreachable is False:
            return
        useless += unreachable is True
    if useless:
        raise InvalidInput(
            f"over {rounds:,} rounds no way of asking tells anything at epsilon = {ask.wish.epsilon:g}, delta = "
            f"{ask.wish.delta:g}: the standard error of a round is above {widest:g}, the whole range; ask in fewer "
            "rounds, raise epsilon, or ask more users"
        )


def _needs_independence(way: tuple[Seen, Weights | None], budgets: Budgets) -> bool:
    return budgets.levels > 1 and way[1] != "population"


def _as_given(budgets: Budgets, ask: PlanInputs, way: Way) -> Alternative:
    """Return the prediction and certificate of a way for the budgets as they are."""
    needs = _needs_independence((way.seen, way.weights), budgets)
    row = Alternative(way.mechanism, way.seen, way.weights, needs, None, None)

    def answered() -> Alternative:
        own = ask.staying(budgets)
        family = ask.question.family(way.mechanism, own, way.seen)
        given = ask.question.predict(family, own, way.weights, ask.wish.around.dummies)
        epsilon = ask.wish.certified(own, family, way.seen)
        small = capped(own, min(ask.wish.safe, float(own.epsilons[-1])))
        shaped = ask.question.family(way.mechanism, small, way.seen) != family
        return replace(row, given=given, given_epsilon=epsilon, given_bytes=report_bytes(family), shaped=shaped)

    alternative = attempt(answered)
    return replace(row, refused=alternative.reason) if isinstance(alternative, Refused) else alternative


def _rounded(rows: list[Alternative], budgets: Budgets, ask: PlanInputs) -> list[Alternative]:
    """Return the ways with their roundings, the most promising first; hopeless ones are not rounded."""
    ways: list[Alternative] = []
    best = math.inf
    for row in sorted(rows, key=_error_as_given):
        if row.given is None:
            ways.append(row)
            continue
        if _hopeless(row, best):
            reason = "larger errors than the best plan's even with all of everybody's budget"
            ways.append(replace(row, refused=reason))
            continue
        # over several rounds certificates take long: a way that cannot come near the best one is not searched
        limit = best * _HOPELESS if ask.wish.around.rounds > 1 else math.inf
        bucketing = attempt(lambda row=row, limit=limit: ask.bucket(budgets, row.way, limit))
        if isinstance(bucketing, Refused):
            ways.append(replace(row, refused=bucketing.reason))
            continue
        ways.append(replace(row, bucketing=bucketing))
        best = min(best, ways[-1].error)
    return sorted(ways, key=lambda row: (row.error, _error_as_given(row), row.needs_independence))


def _hopeless(row: Alternative, error: float) -> bool:
    """Return whether no rounding brings a way down to an error, or its given budgets cannot be asked at all."""
    return _error_as_given(row) > error * (_HOPELESS_SHAPE if row.shaped else _HOPELESS)


def _with_least(rows: list[Alternative], budgets: Budgets, ask: PlanInputs, error: float) -> list[Alternative]:
    """Return the ways with the smallest certified epsilon that meets the error; the best one leads the list."""

    def expected(row: Alternative) -> float:  # epsilon falls about as the error rises
        return math.inf if row.given is None else (row.given_epsilon or 0.0) * row.given.standard_error

    ways: list[Alternative] = []
    within = ask.wish.epsilon
    for row in sorted(rows, key=expected):
        if _hopeless(row, error) or (row.bucketing is not None and row.error > error):
            ways.append(row)
            continue
        least = attempt(lambda row=row, within=within: ask.least(budgets, row.way, error, within))
        if isinstance(least, Refused):
            ways.append(row)
            continue
        ways.append(replace(row, least=least))
        within = min(within, ways[-1].least_epsilon)
    return sorted(ways, key=lambda row: (row.least_epsilon, row.error, _error_as_given(row), row.needs_independence))


def _error_as_given(row: Alternative) -> float:
    return math.inf if row.given is None else row.given.standard_error


def _batch(rule: Bucketing, wish: Wish) -> Budgets:
    """Return the smallest certified batch; the whole population is one."""
    few = rule.budgets if rule.seen == "levels" else stand_in(rule.budgets, rule.family)
    try:
        batch = calibrate_batch(wish.setting(few, rule.family, rule.seen), wish.epsilon, wish.delta).setting.budgets
    except InvalidInput:
        return rule.budgets
    return batch if batch.n <= rule.budgets.n else rule.budgets


def _check(epsilon: float, delta: float, error: float | None, around: Circumstances, seen: Seen | None) -> Wish:
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0.0 < epsilon < math.inf:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"target_epsilon must be a positive number of nats; got {shown(epsilon)}")
    if error is not None and not 0.0 < error < math.inf:
        raise InvalidInput(f"target_error must be a positive number; got {shown(error)}")
    if seen not in (None, "reports", "levels"):
        raise InvalidInput(f"seen must be reports or levels, or left out to compare both; got {shown(seen)}")
    return Wish(float(epsilon), check_delta(delta), around)
