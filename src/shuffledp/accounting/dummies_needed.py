"""How many dummies a promise needs: the least number whose floor keeps every level's promise.

More uniform dummies are a post-processing of fewer, so the floor falls with their number and bisection finds the
least one. For the discrete Laplace law the ratio is chosen anew for each number, which is then searched
downwards one by one. Ball dummies are one law for all questions, made by `BallDummies.of_promise`. Nothing is claimed
of a number that was not certified itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import chain
from typing import NoReturn

from shuffledp.accounting.theorems.floor.bound import (
    MOST_REPORTS,
    Floor,
    ball_floor,
    chance_kept,
    compose_floors,
    floor_profile,
)
from shuffledp.ball import BallDummies
from shuffledp.dummies import (
    LARGEST_CENTRE,
    MOST_BITS,
    MOST_DUMMIES,
    WHOLE,
    DiscreteLaplace,
    Dummies,
    NormalDummies,
    OwnDummies,
    Uniform,
    check_family,
    column_of,
    is_one_bit,
)
from shuffledp.errors import (
    MAX_EPSILON0,
    MOST_ROWS,
    InvalidInput,
    OutOfRegime,
    Told,
    attempt,
    check_delta,
    choice,
    shown,
    whole_number,
)
from shuffledp.numerics.floats import TINY, Interval
from shuffledp.randomizers.base import HiddenByFakes

MOST = 100_000
"""Default number of dummies of one question beyond which a search gives up."""
MOST_QUESTIONS = 32
DUMMIES_LAWS = ("uniform", "laplace", "ball", "normal")
_BACKED = (0.0, 1e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03)
"""Shares by which the ratio of a discrete Laplace law is backed off from the steepest one, in its logarithm."""
_SHARES = 16
"""Number of shares of the promises per factor of 2 among which a search divides them between questions."""
EMPTY = 16
"""Empty cells under a normal law may use at most one part of delta in this many."""

Promises = tuple[tuple[float, float], ...]


@dataclass(frozen=True, repr=False)
class DummiesNeeded(Told):
    """The dummies that keep every level's promise, even if all other participants collude, and for every batch size.

    Parameters
    ----------
    dummies : tuple of Dummies
        One for each question; or the one ball law of all questions.
    promises : tuple of (float, float)
        For each level its epsilon0 for one report and the promised central epsilon over all questions, nats.
    delta : float
        Central delta over all questions.
    floors : tuple of Interval
        For each level the certified central epsilon over all questions; at most the promise.
    """

    dummies: tuple[Dummies, ...]
    promises: Promises
    delta: float
    floors: tuple[Interval, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of dummies of each question, in the order of the questions."""
        rows = (each.rows if isinstance(each, BallDummies) else (each.count,) for each in self.dummies)
        return tuple(chain.from_iterable(rows))

    def _told(self) -> str:
        promises = f"{len(self.promises)} promise{'' if len(self.promises) == 1 else 's'}"
        numbers = ", ".join(map(str, self.counts[:MOST_ROWS])) + (", ..." if len(self.counts) > MOST_ROWS else "")
        return f"DummiesNeeded: {numbers} dummies for {promises} at delta {self.delta!r}"

    def _rows(self) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        rows = ((own, promise, floor.upper) for floor, (own, promise) in zip(self.floors, self.promises, strict=True))
        return ("epsilon0", "promise", "certified"), rows


def calibrate_dummies(
    promises: Mapping[float, float] | Sequence[tuple[float, float]],
    randomizer: HiddenByFakes | Sequence[HiddenByFakes],
    delta: float,
    questions: int = 1,
    *,
    law: str = "uniform",
    reports: int = 1,
    most: int = MOST,
) -> DummiesNeeded:
    """Return the least number of dummies with which every level's promised epsilon is certified from the dummies alone.

    Parameters
    ----------
    promises : mapping or sequence of pairs
        For each level its local budget epsilon0 for one report and the central epsilon it is promised over all
        questions, both positive, in nats.
    randomizer : RandomizedResponse, OneBit, HadamardResponse, or a sequence of them
        The family of every question; a sequence states one for each question.
    delta : float
        Central delta over all questions, in (0, 1).
    questions : int
        Number of questions of one family, from 1 to 32; with a sequence it is the sequence's length.
    law : {"uniform", "laplace", "ball", "normal"}
        Law of the dummies. "laplace" is for questions of one bit; questions of other families keep uniform dummies.
        "ball" is one law for all questions together, for rr, krr:K and one-bit, and adds the least error to an estimate
        for few questions or few answers; "normal" is a law of each of these questions, better for long questionnaires.
    reports : int
        Reports of one person to each question, from 1 to 64; default 1.
    most : int
        Largest number of dummies that is tried for a question; default 100,000. A discrete Laplace law has at most
        20,000.

    Returns
    -------
    DummiesNeeded
        The dummies, and the certified epsilon of each level. With one dummy fewer for any kind of question some promise
        is no longer certified.

    Raises
    ------
    InvalidInput
        If a value is out of range, or no number of dummies up to `most` keeps the promises.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> sdp.calibrate_dummies({0.5: 0.1, 1.0: 0.25, 4.0: 1.0}, sdp.RandomizedResponse(5), 1e-6).counts
    (172,)
    """
    kept, target = _promises(promises), check_delta(delta)
    kinds, order = _kinds(randomizer, questions)
    choice(law, "law", DUMMIES_LAWS)
    most = whole_number(most, "most", 0, MOST_DUMMIES)
    if law == "laplace" and not any(is_one_bit(kind) for kind in kinds):
        raise InvalidInput("a law of the number of ones is for questions of one bit (rr, one-bit); there is none")
    if law == "ball":
        return _ball([kinds[i] for i in order], kept, target, reports, most)
    if law == "normal":
        return _normal([kinds[i] for i in order], kept, target, reports, most)
    search = _Search(kinds, tuple(order.count(i) for i in range(len(kinds))), kept, target, law, reports, most)
    dummies = search.dummies()
    floors = [search.floor(epsilon0, dummies).epsilon(target) for epsilon0, _ in kept]
    return DummiesNeeded(tuple(dummies[i] for i in order), kept, target, tuple(floors))


def _ball(
    families: Sequence[HiddenByFakes], promises: Promises, delta: float, reports: int, most: int
) -> DummiesNeeded:
    """One ball law for all questions; a level whose promise local noise keeps by itself needs none."""
    reports = whole_number(reports, "reports", 1, MOST_REPORTS)
    columns = tuple(column_of(family) for family in families)
    law = BallDummies(columns, (WHOLE,), (0,) * len(columns))
    levels = list[tuple[float, tuple[Fraction, ...]]]()
    for epsilon0, promise in promises:
        kept = tuple(chance_kept(epsilon0, column.values) for column in columns)
        if ball_floor(law, epsilon0, reports=reports).epsilon(delta).upper > promise:  # not: promise < sum, rounded
            levels.append((promise, kept))
    if levels:
        law = BallDummies.of_promise(columns, levels, delta, reports, most)
    floors = list[Interval]()
    for epsilon0, promise in promises:  # each is kept: an inversion could end a digit above
        epsilon = ball_floor(law, epsilon0, reports=reports).epsilon(delta)
        floors.append(Interval(epsilon.lower, min(epsilon.upper, promise)))
    return DummiesNeeded((law,), promises, delta, tuple(floors))


def _normal(
    families: Sequence[HiddenByFakes], promises: Promises, delta: float, reports: int, most: int
) -> DummiesNeeded:
    """Return the least spread, common to all questions, up to 1 %; whose ends cost a small part of delta."""
    if reports != 1:
        raise InvalidInput(
            f"a floor of several reports is not known for normal dummies; got reports = {shown(reports)}"
        )
    sizes = [column_of(family).size for family in families]
    every = dict(zip(sizes, families, strict=True))

    def laws(step: int) -> dict[int, NormalDummies]:
        spread = float(f"{0.25 * 1.01**step:.4g}")
        return {size: NormalDummies.reaching(size, spread, delta / (EMPTY * len(sizes))) for size in every}

    def floor(epsilon0: float, by_size: Mapping[int, NormalDummies]) -> Floor:
        each = {size: floor_profile(every[size], epsilon0, law) for size, law in by_size.items()}
        return compose_floors([each[size] for size in sizes])

    def keeps(step: int) -> bool:
        by_size = laws(step)
        return all(floor(epsilon0, by_size).keeps(promise, delta) for epsilon0, promise in promises)

    low, high = -1, 64
    while not keeps(high):
        if any(law.count > most or law.centre == LARGEST_CENTRE for law in laws(high).values()):
            _refuse(promises, delta, f"normal law with up to {most} dummies a question")
        low, high = high, high + 64
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    chosen = laws(high)
    floors = tuple(floor(epsilon0, chosen).epsilon(delta) for epsilon0, _ in promises)
    return DummiesNeeded(tuple(chosen[size] for size in sizes), promises, delta, floors)


def _refuse(promises: Promises, delta: float, what: str) -> NoReturn:
    reductions = ", ".join(f"{e:g} to {promise:g}" for e, promise in promises)
    raise InvalidInput(
        f"no {what} is certified to bring {reductions} at delta = {delta:g}; promise a larger epsilon, "
        "ask fewer questions, or raise delta"
    )


@dataclass(frozen=True)
class _Search:
    """One search: kinds of questions, how many there are of each, and what must be kept."""

    kinds: tuple[HiddenByFakes, ...]
    times: tuple[int, ...]
    promises: Promises
    delta: float
    law: str
    reports: int
    most: int

    def dummies(self) -> tuple[OwnDummies, ...]:
        """Return the dummies of each kind."""
        if len(self.kinds) == 1 and not self._laplace(0):
            count = self._least(lambda m: self._keeps((Uniform(m),)))
            return (self._required(Uniform(count) if count is not None else None),)
        if len(self.kinds) == self.times[0] == 1:
            return (self._required(self._alone(0, 1.0)),)
        return self._shared()

    def floor(self, epsilon0: float, dummies: Sequence[OwnDummies]) -> Floor:
        """Return the floor of all questions together for one level."""
        floors = [
            floor_profile(kind, epsilon0, each, reports=self.reports)
            for kind, each in zip(self.kinds, dummies, strict=True)
        ]
        return compose_floors([floor for floor, n in zip(floors, self.times, strict=True) for _ in range(n)])

    def _keeps(self, dummies: Sequence[OwnDummies]) -> bool:
        """Whether every level's promise is certified."""

        def kept() -> bool:
            return all(self.floor(e, dummies).keeps(promise, self.delta) for e, promise in self.promises)

        return attempt(kept, (OutOfRegime,)) is True  # else there may be too many to be evaluated

    def _laplace(self, kind: int) -> bool:
        return self.law == "laplace" and is_one_bit(self.kinds[kind])

    def _required(self, dummies: OwnDummies | None) -> OwnDummies:
        if dummies is None:
            reductions = ", ".join(f"{e:g} to {promise:g}" for e, promise in self.promises)
            bits = any(self._laplace(kind) for kind in range(len(self.kinds)))
            end = f"{self.most} (of a law of ones: {MOST_BITS})" if bits and self.most > MOST_BITS else f"{self.most}"
            raise InvalidInput(
                f"no number of dummies up to {end}, where the search ends, is certified to bring {reductions} at "
                f"delta = {self.delta:g}; promise a larger epsilon, ask fewer questions, or raise delta"
            )
        return dummies

    def _least(self, keeps: Callable[[int], bool], start: int = 16) -> int | None:
        """Return the least number that keeps the promises, or None beyond ``most``.

        The condition must be one that more dummies only help.
        """
        if keeps(0):
            return 0
        low, high = 0, min(start, self.most)
        while not keeps(high):
            if high >= self.most:
                return None
            low, high = high, min(2 * high, self.most)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if keeps(middle) else (middle, high)
        return high

    def _alone(self, kind: int, share: float) -> OwnDummies | None:
        """Return the fewest dummies of a kind that one question needs.

        It keeps a share of every promise at its part of delta.
        """
        own_promises = tuple((epsilon0, promise * share) for epsilon0, promise in self.promises)
        delta = self.delta / sum(self.times)
        if self._laplace(kind):
            return _laplace_alone(self.kinds[kind], own_promises, delta, self.reports, self.most)
        one = _Search((self.kinds[kind],), (1,), own_promises, delta, "uniform", self.reports, self.most)
        count = self._least(lambda m: one._keeps((Uniform(m),)))
        return None if count is None else Uniform(count)

    def _shared(self) -> tuple[OwnDummies, ...]:
        """Give every question the same share of the promises, the largest that serves; then save what can be saved.

        1 of q questions may have the share 1/q, because budgets and deltas add up; a larger one usually serves.
        """
        last = math.ceil(_SHARES * math.log2(sum(self.times)))

        @cache
        def at(step: int) -> tuple[OwnDummies, ...]:
            share = 2.0 ** (-step / _SHARES)
            return tuple(self._required(self._alone(kind, share)) for kind in range(len(self.kinds)))

        low, high = -1, last
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._keeps(at(middle)) else (middle, high)
        dummies = list(at(high))
        if not self._keeps(dummies):
            self._required(None)
        for kind in range(len(self.kinds)):
            dummies[kind] = self._saved(dummies, kind)
        return tuple(dummies)

    def _saved(self, dummies: list[OwnDummies], kind: int) -> OwnDummies:
        """As few dummies of one kind as the others allow."""

        def with_count(count: int) -> OwnDummies:
            own = dummies[kind]
            return DiscreteLaplace(count, own.ratio) if isinstance(own, DiscreteLaplace) else Uniform(count)

        def keeps(count: int) -> bool:
            return self._keeps([*dummies[:kind], with_count(count), *dummies[kind + 1 :]])

        count, stride = dummies[kind].count, 1
        while count > 0 and keeps(max(count - stride, 0)):
            count, stride = max(count - stride, 0), 2 * stride
        while stride > 1:
            stride //= 2
            if count >= stride and keeps(count - stride):
                count -= stride
        return with_count(count)


def _laplace_alone(
    kind: HiddenByFakes, promises: Promises, delta: float, reports: int, most: int
) -> DiscreteLaplace | None:
    """Return the fewest dummies with a discrete Laplace number of ones, at the ratio that serves best."""
    ratio = math.inf
    for epsilon0, promise in promises:
        ratio = min(ratio, _steepest(epsilon0, promise / reports))
    if math.isinf(ratio):  # every promise is at least the local budget of all reports
        return DiscreteLaplace(0, 1.0)

    def best(count: int) -> DiscreteLaplace | None:
        for backed in _BACKED:
            law = DiscreteLaplace(count, max(float(f"{math.exp(math.log(ratio) * (1.0 - backed)):.8g}"), 1.0))
            floors = [(floor_profile(kind, e, law, reports=reports), promise) for e, promise in promises]
            if all(floor.keeps(promise, delta) for floor, promise in floors):
                return law
        return None

    most = min(most, MOST_BITS)
    high = min(16, most)
    while (fewest := best(high)) is None:
        if high >= most:
            return None
        high = min(2 * high, most)
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        better = best(middle)
        low, high, fewest = (middle, high, fewest) if better is None else (low, middle, better)
    for count in (high - 1, high - 2):  # odd and even numbers are two sequences
        if count >= 0 and (better := best(count)) is not None:
            fewest = better
    return fewest


def _steepest(epsilon0: float, promise: float) -> float:
    """Return the largest quotient of neighbouring chances at which one bit's loss stays within the promise.

    A bit that is true with chance w = 1/(1 + e^-epsilon0) makes the quotient (w r + 1 - w)/((1 - w) r + w) of r. Only a
    proposal: what is claimed is certified afterwards.
    """
    if promise >= epsilon0:
        return math.inf
    wrong = 1.0 / (1.0 + math.exp(epsilon0))
    growth = math.expm1(promise)
    return 1.0 + growth / max(1.0 - wrong * (2.0 + growth), TINY)


def _promises(given: object) -> Promises:
    """Check the levels and what each is promised; ascending."""
    rows = list(given.items()) if isinstance(given, Mapping) else list(given) if isinstance(given, Sequence) else []
    if not rows:
        raise InvalidInput(
            f"promises must state a central epsilon for each level, such as {{0.5: 0.1, 4.0: 1.0}}; got {shown(given)}"
        )
    checked: dict[float, float] = {}
    for row in rows:
        try:
            epsilon0, promise = (float(part) for part in row)
        except (TypeError, ValueError):
            raise InvalidInput(f"a promise is a pair of epsilon0 and central epsilon; got {shown(row)}") from None
        if not (0.0 < epsilon0 <= MAX_EPSILON0 and 0.0 < promise < math.inf):
            raise InvalidInput(
                f"a promise needs an epsilon0 above 0, at most {MAX_EPSILON0:g}, and an epsilon above 0; "
                f"got {shown(row)}"
            )
        if checked.get(epsilon0, promise) != promise:
            raise InvalidInput(f"two promises for epsilon0 = {epsilon0:g}: {checked[epsilon0]:g} and {promise:g}")
        checked[epsilon0] = promise
    return tuple(sorted(checked.items()))


def _kinds(
    randomizer: HiddenByFakes | Sequence[HiddenByFakes], questions: int
) -> tuple[tuple[HiddenByFakes, ...], list[int]]:
    """Return the different families, and which of them each question has."""
    questions = whole_number(questions, "questions", 1, MOST_QUESTIONS)
    listed = list(randomizer) if isinstance(randomizer, Sequence) else [randomizer] * questions
    if questions not in (1, len(listed)) or not 1 <= len(listed) <= MOST_QUESTIONS:
        raise InvalidInput(
            f"state one randomizer and the number of questions, or one randomizer for each of 1 to {MOST_QUESTIONS} "
            f"questions; got {len(listed)} randomizers for {questions} questions"
        )
    listed = [check_family(each) for each in listed]
    # families of one bit have one law, whatever their range
    keys = [(each.report_sets, each.name) for each in listed]
    different = list(dict.fromkeys(keys))
    return tuple(listed[keys.index(key)] for key in different), [different.index(key) for key in keys]
