"""The law of a task's dummies from version 2 on: searching, certifying, reading and drawing it.

It is a ball law, one joint law for all columns (docs/theorems/ball.md), or a normal law, drawn for each column by
itself with the same weights (docs/theorems/normal.md). A promise is kept or not by one comparison of rational numbers,
with the slack below; so every machine decides alike, and the survey page too (page/ball.js, page/normal.js).

**The shuffler's dummies** are reports of nobody, drawn from the task's public law and sealed like a person's. They
are drawn and sealed when the task closes, and stored before any batch is written: two batches of one task with
different dummies would expose all of them by intersection. And they follow from two keys, the one of the task, which is
deleted when it ends, and ``shuffler.key``: from a machine that was put back to a state before closing come the same
bytes.
"""

from __future__ import annotations

import hmac
import math
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting import (
    EMPTY,
    BallFloor,
    NormalFloor,
)
from shuffledp.ball import LARGEST_RADIUS, MOST_ROWS, BallDummies, Below, Column, below_of
from shuffledp.collection.asked import StatedDummies, SurveyQuestion, serves_normal
from shuffledp.collection.batch import seal_inner
from shuffledp.collection.draw import WHOLE, Family
from shuffledp.collection.sealing import Sealer
from shuffledp.collection.task import Draft, PostedTask
from shuffledp.dummies import LARGEST_CENTRE, NormalDummies, StatedCells, normal_side
from shuffledp.errors import MAX_EPSILON0, InvalidInput, Refused, attempt
from shuffledp.numerics.floats import UNBOUNDED, Upper, few_digits_up
from shuffledp.numerics.functions import ndtr
from shuffledp.numerics.randomness import Randomness, keyed_random

# By how much a number that one machine states may differ from the one that another machine certifies anew.
#
# The last digits of a certified number hang on processor and NumPy, and where a search takes another branch the
# results differ by the search's tolerance. Both numbers are proven, but not equal. So whoever states a number states
# it rounded outward; whoever drafts a task keeps so much room that every machine finds its promises kept; and whoever
# checks what another machine has stated allows the slack below, and no more.

FLOOR_SLACK = 1e-8
"""Relative tolerance on a floor: ten times that of the search for it."""
CROWD_SLACK = 1e-5
"""Relative tolerance on the epsilon of an honest crowd: ten times that of the search for it."""
_CROWD_DIGITS = 6


def published(certified: float, promise: float) -> float:
    """Return a certified number rounded outward, but not beyond a promise that it keeps.

    Parameters
    ----------
    certified : float
        The upper end.
    promise : float
        The promise to its level.
    """
    return min(few_digits_up(certified), promise) if certified <= promise else few_digits_up(certified)


def stated_crowd(certified: float) -> float:
    """Return the epsilon of an honest crowd as a draft states it: rounded up beyond what other machines certify."""
    return few_digits_up(certified * (1.0 + CROWD_SLACK), _CROWD_DIGITS)


def covers(claimed: float, certified: float, slack: float = FLOOR_SLACK) -> bool:
    """Return whether a number stated by another machine holds, given the number certified here.

    Parameters
    ----------
    claimed : float
        The number that was stated, or promised.
    certified : float
        The number certified here.
    slack : float
        `FLOOR_SLACK` or `CROWD_SLACK`.
    """
    return certified <= claimed * (1.0 + slack)


NEAR = 1e-9
"""Relative precision of the search for a certified epsilon."""
NEARLY = 1.1
"""Ratio to the ball law's variance above which a normal law, by its expected variance, is not searched for."""
_NEAR_MOST = 0.9
_HALVINGS = 50

JointFloor = BallFloor | NormalFloor
"""The certificate of several columns of a task of version 2, valid whatever other participants do."""


def column_of(family: Family) -> Column:
    """Return a task's column in the form that the law of its dummies uses."""
    if family.kind == "hadamard":
        raise InvalidInput(f"ball dummies are for choices and bits; {family.name} has neither: leave the family out")
    return Column("bits", family.pieces) if family.kind == "bits" else Column("choice", family.reports)


TaskLaw = BallDummies | tuple[StatedCells, ...]
"""The law of a task's dummies: a ball law, or one normal law for each column."""


def law_of_task(draft: Draft) -> TaskLaw:
    """Return the law of a task's dummies.

    Parameters
    ----------
    draft : Draft
        Draft of version 2.
    """
    if draft.columns[0].dummies.law == "normal":
        return tuple(cells_of(column.family, column.dummies) for column in draft.columns)
    columns = tuple(column_of(column.family) for column in draft.columns)
    centres = tuple(column.dummies.count // column.family.cells for column in draft.columns)
    return _ball(columns, draft.columns[0].dummies.draw, centres)


def draw_columns(draft: Draft, below: Below) -> Iterator[NDArray[np.int64]]:
    """Yield random numbers of dummies in every cell, column by column.

    Parameters
    ----------
    draft : Draft
        Draft of version 2.
    below : callable
        As for `BallDummies.draw`.
    """
    law = law_of_task(draft)
    yield from law.draw(below) if isinstance(law, BallDummies) else (cells.draw(below) for cells in law)


def written_law(law: TaskLaw) -> dict[str, object]:
    """Return a law as an object of a draft, which `asked.read_law` reads."""
    if isinstance(law, BallDummies):
        return {"law": "ball", "radius": [str(each) for each in law.radius], "centre": list(law.centre)}
    side = max((cells.side for cells in law), key=len)
    return {"law": "normal", "weights": [str(each) for each in side], "centre": [cells.middle for cells in law]}


def floor_of_columns(law: TaskLaw, keep: Sequence[int], reports: int, local: Upper) -> JointFloor:
    """Return the floor of the reports of one level, which draws by K/2^64, to some columns.

    Parameters
    ----------
    law : BallDummies or tuple of StatedCells
        Law of the columns' dummies.
    keep : sequence of int
        K of each column.
    reports : {1, 2}
        Number of reports that one person may send to each column.
    local : float
        Sum of the local budgets (nats) of all reports.
    """
    if isinstance(law, BallDummies):
        return BallFloor(law, tuple(Fraction(each, WHOLE) for each in keep), reports, local)
    return NormalFloor(law, tuple(keep), reports, local)


@lru_cache(maxsize=64)
def _ball(columns: tuple[Column, ...], radius: tuple[int, ...], centre: tuple[int, ...]) -> BallDummies:
    return BallDummies(columns, radius, centre)


def certified_epsilon(floor: JointFloor, delta: float, promise: float) -> float:
    """Return the smallest epsilon (nats) that is certified at a delta, up to `NEAR`; infinite beyond 700.

    Whether it is at most a promise, and whether at most `FLOOR_SLACK` above it, are comparisons of whole numbers, made
    first: so both agree with what another machine finds.

    Parameters
    ----------
    floor : BallFloor or NormalFloor
        Floor of one level.
    delta : float
        In (0, 1).
    promise : float
        The promise to the level (nats).
    """
    low, high, edge = 0.0, promise, promise * (1.0 + FLOOR_SLACK)
    while not floor.keeps(high, delta):
        low, high = high, edge if high < edge else 2.0 * high
        if high > MAX_EPSILON0:
            return math.inf
    while high - low > NEAR * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if floor.keeps(middle, delta) else (middle, high)
    return high


def needed_ball(
    levels: Sequence[tuple[float, float]], families: Sequence[Family], delta: float, reports: int = 1
) -> BallDummies:
    """Return the ball law that keeps every level's promise with the least variance, and few dummies.

    Parameters
    ----------
    levels : sequence of (float, float)
        Local budget of each report, and promise over all columns, of each level.
    families : sequence of Family
        One for each column.
    delta : float
        Central delta of the promises.
    reports : {1, 2}
        Number of reports that one person may send to each column.

    Raises
    ------
    InvalidInput
        If a promise is too small, or so small that `check_law_work` would refuse every law that keeps it.
    """
    columns = tuple(column_of(family) for family in families)
    wanted = [
        (promise, tuple(Fraction(each, WHOLE) for each in keep)) for promise, keep in _needy(levels, families, reports)
    ]
    if not wanted:
        return BallDummies(columns, (WHOLE,), (0,) * len(columns))
    sizes = set(map(_size, families))
    longest = bisect_right(range(LARGEST_RADIUS), MOST_LAW_WORK, key=lambda r: sum(_ball_work(k, r + 2) for k in sizes))
    return BallDummies.of_promise(columns, wanted, delta, reports, largest=longest)


def no_law(levels: Sequence[tuple[float, float]], families: Sequence[Family], delta: float) -> str:
    """Return words on promises that no law keeps, without a way out."""
    names = ", ".join(f"{times} of {name}" for name, times in Counter(family.name for family in families).items())
    promises = in_words_of_promises([promise for _, promise in levels])
    return (
        f"no law with up to {MOST_ROWS:,} dummies a column, certified in time by a browser, keeps {promises} for "
        f"{names} at delta = {delta:g}"
    )


def in_words_of_promises(promises: Sequence[float]) -> str:
    """Return the promises to the levels in words: one number if all have the same; "" for none.

    Examples
    --------
    >>> in_words_of_promises([0.5, 0.5]), in_words_of_promises([0.5, 1.0])
    ('promise 0.5', 'promise 0.5, 1')
    """
    numbers = ", ".join(f"{promise:g}" for promise in (promises if len(set(promises)) > 1 else promises[:1]))
    return f"promise {numbers}" if numbers else ""


MOST_LAW_WORK = 1 << 22
"""Largest work for the law of a task of version 2, about a second in a browser, which computes the same measure."""


def check_law_work(columns: Sequence[tuple[Family, StatedDummies]]) -> None:
    """Refuse a task of version 2 whose certification takes longer than anybody should wait for it.

    The measure is the number of radii of balls, and of pairs of cells of normal dummies.

    Parameters
    ----------
    columns : sequence of (Family, StatedDummies)
        The columns of a task of version 2.
    """
    work = _work([(_size(family), law) for family, law in columns])
    if work > MOST_LAW_WORK:
        raise InvalidInput(
            f"certifying this task sums over {work:,} terms, above the limit of {MOST_LAW_WORK:,}; promise a larger "
            "number, or ask questions with fewer answers"
        )


def _work(columns: Sequence[tuple[int, StatedDummies]]) -> int:
    return sum(_law_work(size, law) for size, law in set(columns))


def _law_work(size: int, law: StatedDummies) -> int:
    many = len(law.draw)
    return 4 * many * many + 32 * size * many if law.law == "normal" else _ball_work(size, many)


def _ball_work(size: int, radii: int) -> int:
    return radii * (size + radii // 8)


def _size(family: Family) -> int:
    return family.pieces if family.kind == "bits" else family.cells


def _in_time(law: TaskLaw, families: Sequence[Family]) -> bool:
    """Return whether `check_law_work` accepts a law."""
    return _work([(_size(family), own) for family, own in zip(families, parts_of(law), strict=True)]) <= MOST_LAW_WORK


@lru_cache(maxsize=64)
def law_if_any(
    levels: tuple[tuple[float, float], ...], families: tuple[Family, ...], delta: float, reports: int = 1
) -> TaskLaw | None:
    """Return the law that keeps every level's promise with the smaller mean variance of a cell's dummies.

    That is a ball law for a few questions, and a normal law for many; a normal law is for choices among at most 64
    answers alone. Equal questions have equal half-widths, so the smaller variance gives the smaller half-widths.

    Parameters
    ----------
    levels, families, delta, reports
        As for `needed_ball`.

    Returns
    -------
    TaskLaw or None
        None if a promise is too small for either, or so small that a browser would take too long to certify the law.
    """
    wanted = _needy(levels, families, reports)
    most = dict(sorted((promise, epsilon0) for epsilon0, promise in levels))  # the largest budget of each promise
    if len(most) < len(levels):  # its law is that of all levels, if it keeps the others, which are easier
        law = law_if_any(tuple((epsilon0, promise) for promise, epsilon0 in most.items()), families, delta, reports)
        if law is None or all(floor_of_columns(law, keep, reports, UNBOUNDED).keeps(p, delta) for p, keep in wanted):
            return law
    ball = attempt(lambda: needed_ball(levels, families, delta, reports), (InvalidInput,))
    ball = ball if isinstance(ball, BallDummies) and _in_time(ball, families) else None
    spent = math.inf
    if ball is not None:
        spent = _mean(ball.cell_variance(place) for place in range(len(families)))
    if spent > 0.0 and all(map(serves_normal, families)):
        search = NormalSearch(tuple(families), wanted, delta, reports)
        law = search.smallest_law() if search.about < NEARLY * spent else None
        if law is not None and _mean(cells.cell_variance for cells in law) < spent and _in_time(law, families):
            return law
    return ball


LARGEST_PROMISE = 1e3
"""Largest central epsilon that a level may promise."""
_MOST_TRIES = 6
_ENOUGH = 0.25
"""Share of the largest number of dummies, or radius, from which on a law is not slow to find, but a smaller one is."""


@lru_cache(maxsize=16)
def least_promises(
    levels: tuple[tuple[float, float], ...], families: tuple[Family, ...], delta: float, reports: int = 1
) -> tuple[float, ...]:
    """Return small promises for which there is a ball law, where no law keeps the given ones: the smallest are raised.

    The least one is rounded up to two digits, as it is printed, and the law was found for the rounded one. Radius and
    number of dummies are about inversely proportional to it, so one law predicts the limit of the next.

    Parameters
    ----------
    levels, families, delta, reports
        As for `law_if_any`, which has no law for them.

    Returns
    -------
    tuple of float
        One for each level; empty if there is no ball law for any up to `LARGEST_PROMISE`.
    """

    def promises(least: float) -> tuple[float, ...]:
        return tuple(max(promise, float(few_digits_up(least, 2))) for _, promise in levels)

    def ball(least: float) -> BallDummies | None:
        raised = [(epsilon0, promise) for (epsilon0, _), promise in zip(levels, promises(least), strict=True)]
        law = attempt(lambda: needed_ball(raised, families, delta, reports), (InvalidInput,))
        return None if isinstance(law, Refused) or not _in_time(law, families) else law

    low = min(promise for _, promise in levels)
    high = max(1.0, 4.0 * low)
    while (served := ball(high)) is None:
        low, high = high, 4.0 * high
        if high > LARGEST_PROMISE:
            return ()
    for _ in range(_MOST_TRIES):
        used = max(max(served.rows) / MOST_ROWS, served.largest / LARGEST_RADIUS)
        if used >= _ENOUGH:
            break
        middle = 1.2 * high * used
        middle = middle if low < middle < high else math.sqrt(low * high)
        if (candidate := ball(middle)) is None:
            low = middle
        else:
            high, served = middle, candidate
    return promises(high)


def _needy(
    levels: Sequence[tuple[float, float]], families: Sequence[Family], reports: int
) -> tuple[tuple[float, tuple[int, ...]], ...]:
    """Return promise and K of each column for the levels that need dummies.

    The promises are lowered by the tolerance between machines.
    """
    return tuple(
        (promise * (1.0 - FLOOR_SLACK), tuple(family.threshold(epsilon0) for family in families))
        for epsilon0, promise in levels
        if promise < epsilon0 * len(families) * reports
    )


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return math.fsum(listed) / len(listed)


@dataclass(frozen=True)
class NormalSearch:
    """The search for the least spread of normal dummies, up to 1 %, that keeps every level's promise.

    Parameters
    ----------
    families : tuple of Family
        One for each column; `serves_normal` is true of each.
    levels : tuple of (float, tuple of int)
        Promise and K of each column, of each level that needs dummies.
    delta : float
        Central delta.
    reports : {1, 2}
        Number of reports that one person may send to each column.
    """

    families: tuple[Family, ...]
    levels: tuple[tuple[float, tuple[int, ...]], ...]
    delta: float
    reports: int

    @cached_property
    def spread(self) -> float:
        """Estimate of the needed spread: that of normal noise with the same covariance."""
        needed = 0.25
        for promise, keep in self.levels:
            squares = sum((each / WHOLE) ** 2 for each in keep)
            share = self.delta / (1.0 + math.exp(promise / 2.0)) if self.reports == 2 else self.delta
            needed = max(needed, math.sqrt(2.0 * squares) / _normal_mu(promise / self.reports, share))
        return needed

    @property
    def about(self) -> float:
        """Estimate of the mean variance of a cell."""
        return self.spread**2 * _mean(1.0 - 1.0 / family.records for family in self.families)

    def law(self, step: int) -> tuple[StatedCells, ...]:
        """Return the law whose spread belongs to one step of the search."""
        spread, ends = float(f"{0.25 * 1.01**step:.4g}"), self.delta / (EMPTY * len(self.families))
        centres = {family.records: _centre(family.records, spread, ends) for family in self.families}
        most = max(centres.values())  # cells of one centre are summed once, whatever their number
        centres = {size: most if centre >= _NEAR_MOST * most else centre for size, centre in centres.items()}
        side = normal_side(spread, most)
        return tuple(StatedCells(family.records, side[: centres[family.records] + 1]) for family in self.families)

    def keeps(self, law: tuple[StatedCells, ...]) -> bool:
        """Return whether every level's promise is certified with a law."""
        return all(
            NormalFloor(law, keep, self.reports, UNBOUNDED).keeps(promise, self.delta) for promise, keep in self.levels
        )

    def smallest_law(self) -> tuple[StatedCells, ...] | None:
        """Return the law; None if cells would need more than 1,024 dummies in the mean."""
        start = max(math.ceil(math.log(self.spread / 0.25) / math.log(1.01)), 0)
        low, high, stride = -1, start, 1
        while not self.keeps(law := self.law(high)):
            if _is_widest(law):
                return None
            low, high, stride = high, high + stride, 2 * stride
        while low < 0 and high > 0 and self.keeps(self.law(max(high - stride, 0))):
            high, stride = max(high - stride, 0), 2 * stride
        low = max(low, high - stride, -1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.keeps(self.law(middle)) else (middle, high)
        law = self.law(high)
        return None if _is_widest(law) else law


@lru_cache(maxsize=4096)
def _centre(answers: int, spread: float, ends: float) -> int:
    return NormalDummies.reaching(answers, spread, ends).centre  # the same for every level


def _is_widest(law: tuple[StatedCells, ...]) -> bool:
    return max(cells.middle for cells in law) == LARGEST_CENTRE


def _normal_mu(epsilon: float, delta: float) -> float:
    """Return about the mu at which a Gaussian shift of mu standard deviations has the given epsilon at delta."""
    low, high = 0.0, 64.0
    for _ in range(_HALVINGS):
        mu = 0.5 * (low + high)
        growth = math.exp(min(epsilon, MAX_EPSILON0))
        spent = float(ndtr(mu / 2.0 - epsilon / mu) - growth * ndtr(-mu / 2.0 - epsilon / mu))
        low, high = (mu, high) if spent <= delta else (low, mu)
    return high


def parts_of(law: TaskLaw) -> tuple[StatedDummies, ...]:
    """Return the dummies of every column in the form that a task uses."""
    if isinstance(law, BallDummies):
        return tuple(StatedDummies("ball", rows, law.radius) for rows in law.rows)
    return tuple(StatedDummies("normal", cells.count, cells.side) for cells in law)


def cell_law_of(family: Family, dummies: StatedDummies) -> tuple[float, ...]:
    """Return the law of the number of dummies in one cell of a column of law "ball" or "normal".

    Parameters
    ----------
    family : Family
        Family of the column.
    dummies : StatedDummies
        Its dummies; those of other columns do not matter.
    """
    if dummies.law == "normal":
        return cells_of(family, dummies).cell_law
    return single_ball(family, dummies).cell_law(0)


def cell_variance_of(family: Family, dummies: StatedDummies) -> float:
    """Return the variance of the number of dummies in one cell; see `cell_law_of`."""
    if dummies.law == "normal":
        return cells_of(family, dummies).cell_variance
    return single_ball(family, dummies).cell_variance(0)


def draw_column(family: Family, dummies: StatedDummies, below: Below) -> NDArray[np.int64]:
    """Return a random number of dummies for every cell of one column, shape (cells,).

    Parameters
    ----------
    family : Family
        The column's randomizer.
    dummies : StatedDummies
        The column's dummies, of law "normal" or "ball".
    below : callable
        Function of a whole number m that returns a uniformly random whole number below m.
    """
    if dummies.law == "normal":
        return cells_of(family, dummies).draw(below)
    return single_ball(family, dummies).draw(below)[0]


def cells_of(family: Family, dummies: StatedDummies) -> StatedCells:
    """Return the law of the normal dummies of one column: the weights of a cell, given the fixed total."""
    return _cells(family.records, dummies.draw)


@lru_cache(maxsize=64)
def _cells(answers: int, side: tuple[int, ...]) -> StatedCells:
    return StatedCells(answers, side)


def single_ball(family: Family, dummies: StatedDummies) -> BallDummies:
    """Return the law of one column's dummies alone: radii with the task's weights, and the ball of this column."""
    return _ball((column_of(family),), dummies.draw, (dummies.count // family.cells,))


def chance_of_a_point(law: BallDummies) -> NDArray[np.float64]:
    """Return the chance of one point of gauge 0, 1, ... of the first column's ball.

    Parameters
    ----------
    law : BallDummies
        A law of one column.
    """
    points = law.columns[0].balls(law.largest)
    own = [weight / WHOLE / inside for weight, inside in zip(law.radius, points, strict=True)]
    return np.cumsum(own[::-1])[::-1]


def sum_of_cells(law: BallDummies, some: int) -> list[float]:
    """Return the law of the sum of some cells around its mean, by counting points: P(sum = s) = P(sum = -s), s = 0...

    The number of points of gauge r is the sum over p of those of the summed cells, of which the positive ones add up
    to p and the negative ones to s - p, times those of the other cells: r - p, and p - s - r.

    Parameters
    ----------
    law : BallDummies
        A law of one column.
    some : int
        Number of cells, from 1 to all but one.
    """
    cells, size = law.columns[0].cells, law.largest + 1
    if some in (1, cells - 1):
        return [each / 2.0**192 for each in law.cell_chances(0)]
    shift, at = np.ogrid[:size, :size]
    later, inside = (at + shift) % size, at + shift < size
    own = np.where(at >= shift, _ways(some, size)[at, at - shift], 0.0)
    rest = np.where(inside, _ways(cells - some, size)[at, later], 0.0)
    return (own * (rest @ np.where(inside, chance_of_a_point(law)[later], 0.0))).sum(axis=1).tolist()


def _ways(cells: int, size: int) -> NDArray[np.float64]:
    """Return how many vectors have positive cells that add up to p and other ones to -n, p and n below ``size``.

    k cells are positive: sum over k of C(cells, k) times the ways of k positive numbers to add up to p, times those of
    the other cells to add up to -n. A term for each k, so this is a product of two thin matrices.
    """
    positive, others = np.zeros((cells + 1, size)), np.zeros((cells + 1, size))
    positive[0, 0] = others[0, 0] = 1.0
    for k in range(1, cells + 1):
        positive[k, 1:] = np.cumsum(positive[k - 1, :-1])
        others[k] = np.cumsum(others[k - 1])
    chosen = np.array([math.comb(cells, k) for k in range(cells + 1)], dtype=np.float64)
    return (positive * chosen[:, None]).T @ others[::-1]


PIECE = 10_000
"""Number of dummies stored in one transaction, which is the longest delay of other tasks' reports."""
_TIMED = 50


def ones_law(dummies: StatedDummies) -> tuple[Fraction, ...]:
    """Return the distribution of the number of ones among dummies of one bit, D = 0..count, as exact fractions."""
    if dummies.law == "uniform":
        row = [1]
        for _ in range(dummies.count):
            row = [a + b for a, b in zip([0, *row], [*row, 0], strict=True)]
        return tuple(Fraction(ways, 2**dummies.count) for ways in row)
    steps = (0, *dummies.draw, WHOLE)
    return tuple(Fraction(two - one, WHOLE) for one, two in pairwise(steps))


def ones_moments(dummies: StatedDummies) -> tuple[Fraction, Fraction]:
    """Return the exact mean and variance of the number of ones among dummies of one bit."""
    if dummies.law == "uniform":
        return Fraction(dummies.count, 2), Fraction(dummies.count, 4)
    law = ones_law(dummies)
    mean = sum((j * p for j, p in enumerate(law)), Fraction(0))
    return mean, sum((j * j * p for j, p in enumerate(law)), Fraction(0)) - mean * mean


def draw_dummies(question: SurveyQuestion, random: Randomness) -> list[int]:
    """Return random reports of one question's dummies, in an order without information.

    Parameters
    ----------
    question : SurveyQuestion
        The question, with its family and its dummies.
    random : Randomness
        `secure_random()`.
    """
    dummies = question.dummies
    if dummies.law == "uniform":
        return random.integers(question.family.reports, dummies.count).tolist()
    word = int(random.words(1)[0])
    ones = sum(1 for threshold in dummies.draw if word >= threshold)
    return [1] * ones + [0] * (dummies.count - ones)


def chance_of(identity: bytes, task: PostedTask, key: bytes, *use: bytes) -> Randomness:
    """Return the randomness for one use in closing a task, a function of the keys and the use.

    Neither key alone determines it. So a thief of ``shuffler.key`` learns nothing about the dummies of a task that has
    ended, for the task's key is deleted then, and a copy of the store tells nothing without ``shuffler.key``.

    Parameters
    ----------
    identity : bytes
        The shuffler's private signing key, which lies outside the store.
    task : PostedTask
        The task.
    key : bytes
        The task's private HPKE key, which lies in the store.
    use : bytes
        Purpose, such as ``b"dummies"``; further ones of fixed length.
    """
    message = task.label("chance") + b"\0".join((task.digest, key, *use))
    return keyed_random(hmac.digest(identity, message, "sha256"))


def seal_dummies(task: PostedTask, random: Randomness, piece: int = PIECE) -> Iterator[tuple[int, list[bytes]]]:
    """Draw all dummies of a task, and yield them sealed, piece by piece.

    Parameters
    ----------
    task : PostedTask
        The task.
    random : Randomness
        From `chance_of`, so that it repeats after a restoration; ephemeral keys are drawn from it too.
    piece : int
        Largest number of dummies in a piece.

    Yields
    ------
    tuple of int and list of bytes
        Index of the column, from 0, and sealed reports of its dummies.
    """
    sealer = Sealer(task.draft.analyzer_key, lambda: random.words(4).tobytes())
    for place, reports in enumerate(drawn_columns(task.draft, random)):
        for start in range(0, len(reports), piece):
            yield place, [seal_inner(task, place, report, sealer) for report in reports[start : start + piece]]


def drawn_columns(draft: Draft, random: Randomness) -> Iterator[list[int]]:
    """Yield random dummies of every column, in the order of the columns; under a ball law they are drawn jointly.

    Parameters
    ----------
    draft : Draft
        The task's draft.
    random : Randomness
        `chance_of`.
    """
    if draft.version == 1:
        for question in draft.questions:
            yield draw_dummies(question, random)
        return
    for cells in draw_columns(draft, below_of(random)):
        yield [cell for cell, count in enumerate(cells.tolist()) for _ in range(count)]


def number_of_dummies(draft: Draft) -> int:
    """Return the number of dummies that closing adds, over all columns."""
    return sum(column.dummies.count for column in draft.columns)


def seconds_to_seal(draft: Draft) -> float:
    """Return the estimated seconds that this machine needs to draw and seal the dummies, from sealing a few of them."""
    sealer, start = Sealer(draft.analyzer_key), time.perf_counter()
    for _ in range(_TIMED):
        sealer.seal(b"\0", b"shuffledp: timing")
    return number_of_dummies(draft) * (time.perf_counter() - start) / _TIMED
