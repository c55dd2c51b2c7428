"""The difference between two releases of one question, such as two waves or two groups.

**The difference of two counts.** Let C and C' be the counts behind two shares or means, independent and of known laws
(`shuffledp.questions.estimate`), h and h' their targets, and T = C'/slope' - C/slope. The pairs (h, h') at which both
P(T >= t) and P(T <= t) are above (miss - b)/2, and of which h lies in the interval of C and h' in that of C' that miss
with b/2 each, hold the true pair with probability 1 - miss at least, by the union bound (Berger and Boos 1994). The
interval holds the differences of all these pairs. It is taken where few reports decide; where many do, the normal one
is as short.

*Cells.* h and h' are taken in at most `_CELLS` cells each. T increases stochastically in h' and decreases in h, so both
tails of two cells are largest at known ends, and cells are left out only if all their members are.

*Means.* Within a group the data set in which everybody has the mean is again the worst. It gives every convex function
of T its largest expectation (Hoeffding 1956), so P(T >= t) <= E max(T - u, 0) / (t - u) for every u < t, which is
evaluated at a few u. Where both slopes are equal, C' - C is a sum of independent indicators less a constant, and the
proof for one count holds word for word: the tail itself is taken, from three reports beyond the mean of C' - C on.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting import StoredProfile
from shuffledp.errors import InvalidInput, Told, check_delta
from shuffledp.ledger import Spending, composed_epsilon
from shuffledp.numerics.floats import FloatArray
from shuffledp.questions.estimate import NEAR_MEAN, SLACK, CountEstimate, CountLaw, Estimate, chance_of_a_miss
from shuffledp.questions.question import MEANS, SHARES
from shuffledp.releases.release import Release
from shuffledp.setting import Setting


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two releases that are compared.

    Parameters
    ----------
    question : str
        Name of the question.
    labels : tuple of hashable or None
        Categories, bins, or the columns of coordinates; None for a single number, and where no columns are known.
    analysis : Estimate
        The answer.
    n : int
        Number of people.
    spending : Spending
        The privacy cost of the release.
    setting : Setting or None
        The setting of its guarantee; None where it is not fully known.
    unit : str
        What a record is: "people", "rows", or "reports".
    besides : int
        Number of other questions that the same people answered in the same run.
    """

    question: str
    labels: tuple[Hashable, ...] | None
    analysis: Estimate = field(repr=False)
    n: int
    spending: Spending = field(repr=False)
    setting: Setting | None = field(default=None, repr=False)
    unit: str = "rows"
    besides: int = 0

    @staticmethod
    def of(release: Release) -> Side:
        """Return the side that a release stands for.

        Parameters
        ----------
        release : Release
            A private release.

        Raises
        ------
        InvalidInput
            If it is a simulation, or its question has no difference.
        """
        from shuffledp.questions.vectors import coordinates

        if not release.private:
            raise InvalidInput("a simulation protects nobody, so no guarantee holds for a difference with it")
        shape = release.question.shape
        check_question(shape.title if release.question.name in MEANS and not shape.amount else release.question.name)
        cost, setting = Spending.of(release.guarantee), release.guarantee.setting
        labels = release.categories or tuple(coordinates(release.question, 0).get("column", ())) or None
        return Side(release.question.name, labels, release.analysis, release.n, cost, setting, release.unit)


@dataclass(frozen=True, eq=False, repr=False)
class Difference(Told):
    """The estimate of the second release minus the first, with the joint guarantee of both.

    Parameters
    ----------
    before, after : Side
        The two releases; the difference is `after` minus `before`.
    analysis : Estimate
        Estimate of the difference of the two targets.
    disjoint : bool
        Whether nobody is in both.
    epsilon, delta : float
        Certified central guarantee (epsilon in nats) of both releases together, for everybody in any of them.
    """

    before: Side
    after: Side
    analysis: Estimate = field(repr=False)
    disjoint: bool
    epsilon: float
    delta: float

    def _told(self) -> str:
        columns = [np.atleast_1d(each) for each in (self.estimate, *self.confidence_interval())]
        size = columns[0].size
        entries = [
            f"{value:.4g} ({low:.4g} to {high:.4g})" for value, low, high in np.column_stack(columns)[:3].tolist()
        ]
        return (
            f"the second release minus the first: {', '.join(entries)}{', ...' if size > 3 else ''}; 95% intervals; "
            f"both cost a central epsilon of at most {self.epsilon!r} at delta = {self.delta!r}"
        )

    @property
    def estimate(self) -> float | FloatArray:
        """The difference: a float, or one number for each label."""
        return _plain(self.analysis.value)

    @property
    def standard_error(self) -> float | FloatArray:
        """Standard error of `estimate`, in its shape: noise of both releases is independent, so variances add up."""
        return _plain(self.analysis.standard_error)

    def confidence_interval(
        self, level: float = 0.95, *, simultaneous: bool = False
    ) -> tuple[float | FloatArray, float | FloatArray]:
        """Return the lower and upper end of a confidence interval, each in the shape of `estimate`.

        Parameters
        ----------
        level, simultaneous
            As for `Release.confidence_interval`.
        """
        low, high = self.analysis.confidence_interval(level, simultaneous)
        return _plain(low), _plain(high)


def difference(before: Release, after: Release, *, delta: float, disjoint: bool = False) -> Difference:
    """Subtract one release from another of the same question, with interval and joint guarantee.

    Parameters
    ----------
    before, after : Release
        Of frequencies, a histogram, a mean or a mean vector; drawn with independent noise.
    delta : float
        Central delta of both releases together, in (0, 1).
    disjoint : bool
        Whether nobody is in both: then each person is in one of them, and the larger cost holds for everybody.
        Otherwise both costs are composed, which holds if both releases were fixed before the first answer was seen.
        Default False.

    Raises
    ------
    InvalidInput
        If the questions differ, or have no difference; if a release is a simulation.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> ask = dict(budgets=2.0, value="vote", seen="reports", delta=1e-6)
    >>> first, second = ({"vote": ["yes"] * yes + ["no"] * (900 - yes)} for yes in (300, 500))
    >>> question = sdp.Frequency(["yes", "no"])
    >>> change = sdp.difference(sdp.release(question, first, **ask), sdp.release(question, second, **ask), delta=1e-6)
    >>> change.estimate.shape, bool(change.epsilon > 0.0)
    ((2,), True)
    """
    return subtract(Side.of(before), Side.of(after), delta=delta, disjoint=disjoint)


def subtract(before: Side, after: Side, *, delta: float, disjoint: bool) -> Difference:
    """Return the difference `after` minus `before`; see `difference`.

    Parameters
    ----------
    before, after : Side
        The two releases.
    delta, disjoint
        As for `difference`.

    Raises
    ------
    InvalidInput
        If the questions differ.
    """
    check_delta(delta)
    if before.question != after.question:
        raise InvalidInput(
            f"only releases of one question have a difference; got a {before.question} and a {after.question}"
        )
    if None not in (before.labels, after.labels) and before.labels != after.labels:  # old files name no columns
        raise InvalidInput("both releases must have the same categories, bins or columns, in the same order")
    analysis = of_counts(before.analysis, after.analysis, shared=not disjoint) or after.analysis.minus(before.analysis)
    costs = [before.spending.worst, after.spending.worst]
    epsilon = composed_epsilon([StoredProfile.largest(costs)] if disjoint else costs, delta)
    if disjoint and delta >= max(before.spending.delta, after.spending.delta):
        # what each states at its own delta holds at a larger one; what is kept of a curve lies a little above it
        epsilon = min(epsilon, max(before.spending.epsilon, after.spending.epsilon))
    return Difference(before, after, analysis, disjoint, epsilon, delta)


def check_question(name: str) -> None:
    """Refuse questions whose intervals do not carry over to a difference.

    Parameters
    ----------
    name : str
        Name of the question.

    Raises
    ------
    InvalidInput
        If it is not about shares or means.
    """
    if name not in SHARES + MEANS:
        raise InvalidInput(f"shares and means have a difference here; got {name}")


def _plain(value: FloatArray) -> float | FloatArray:
    return float(value) if np.ndim(value) == 0 else value


# The joint law of two counts, see the module.

_CELLS = 128
"""Largest number of cells into which the plausible targets of one of two groups are divided."""


_ASIDE = 0.05
"""Part of the chance of a miss that is set aside for the plausible targets of two groups: b/miss of the module."""


_TURNS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
"""Distances t - u, in standard errors, at which the tail of a difference of means is bounded."""


_MOST_PAIRS = 128
"""Largest number of different pairs of counts for which the interval of a difference is inverted."""


_MOST_WINDOW = 1 << 13
"""Largest number of counts over which the law of one side of a difference is laid out."""


@dataclass(frozen=True, eq=False, repr=False)
class CountDifference(Estimate):
    """A difference of two estimates made of independent counts, whose intervals invert the joint law; see the module.

    Parameters
    ----------
    before, after : CountEstimate
        Both sides; the target is that of `after` minus that of `before`.
    """

    before: CountEstimate
    after: CountEstimate

    def confidence_interval(self, level: float = 0.95, simultaneous: bool = False) -> tuple[FloatArray, FloatArray]:
        """Return both ends of a two-sided confidence interval; see the module.

        Parameters
        ----------
        level, simultaneous
            As for `Estimate.confidence_interval`.
        """
        ends = np.stack(super().confidence_interval(level, simultaneous), axis=-1)
        miss, width = chance_of_a_miss(level, self.value.size if simultaneous else 1), self.support[1]
        possible = np.clip(self.value, -width, width)
        intervals = self._inverted(miss)
        for place in np.ndindex(self.value.shape):
            exact = intervals.get((int(self.before.counts[place]), int(self.after.counts[place])))
            if exact is not None and self.few(miss)[place]:
                ends[place] = min(width * exact[0], possible[place]), max(width * exact[1], possible[place])
        return ends[..., 0], ends[..., 1]

    def inequality(self, level: float = 0.95, simultaneous: bool = False) -> str:
        """Return the name of the inequality that some interval needs; "" where the joint law answers."""
        miss = chance_of_a_miss(level, self.value.size if simultaneous else 1)
        intervals, few = self._inverted(miss), np.ravel(self.few(miss))
        pairs = zip(np.ravel(self.before.counts).tolist(), np.ravel(self.after.counts).tolist(), strict=True)
        left = any(small and intervals.get(pair) is None for pair, small in zip(pairs, few, strict=True))
        return super().inequality(level, simultaneous) if left else ""

    def _inverted(self, miss: float) -> dict[tuple[int, int], tuple[float, float] | None]:
        """Return the interval of each pair of counts with few reports, as parts of the range; None where none is had.

        The dict is empty if there are too many pairs.
        """
        few = np.ravel(self.few(miss))
        counts = (np.ravel(side.counts)[few].tolist() for side in (self.before, self.after))
        pairs = set(zip(*counts, strict=True))
        return {
            pair: _apart(self.before.law, self.after.law, *pair, miss) for pair in pairs if len(pairs) <= _MOST_PAIRS
        }


@lru_cache(maxsize=512)
def _apart(before: CountLaw, after: CountLaw, first: int, second: int, miss: float) -> tuple[float, float] | None:
    """Return a confidence interval for the target of ``after`` minus that of ``before``, given both counts.

    None if no pair of targets makes the counts plausible, or if the laws are too long to be laid out.
    """
    aside = _ASIDE * miss
    ends = [_plausible(law, count, aside / 2.0) for law, count in ((before, first), (after, second))]
    (low, high), (least, most) = ends
    laid = [_Laid.of(before, low), _Laid.of(before, high), _Laid.of(after, least), _Laid.of(after, most)]
    if max(each.chances.shape[1] for each in laid) > _MOST_WINDOW:
        return None
    t = second / after.slope - first / before.slope
    above = laid[0].exceeded_by(laid[3], t)  # largest where `before` is low and `after` is high
    below = laid[2].exceeded_by(laid[1], -t).T
    fits = np.minimum(above, below) > (miss - aside) / 2.0 - SLACK
    if not fits.any():
        return None
    down = least[None, :] / after.steps - high[:, None] / before.steps
    up = most[None, :] / after.steps - low[:, None] / before.steps
    return float(down[fits].min()), float(up[fits].max())


def _plausible(law: CountLaw, count: int, miss: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first and the last step of each cell of the targets that a count leaves plausible."""
    low, high = (round(end * law.steps) for end in law.interval(count, miss))
    wide = -(-(high - low + 1) // _CELLS)
    first = np.arange(low, high + 1, wide)
    return first, np.minimum(first + (wide if wide > 1 else 0), high)  # shared ends: half as many laws


@dataclass(frozen=True, eq=False)
class _Laid:
    """The laws of a count at several steps of its target, over one window of counts."""

    law: CountLaw
    start: int
    chances: FloatArray
    means: FloatArray

    @staticmethod
    def of(law: CountLaw, steps: NDArray[np.int64]) -> _Laid:
        rows = [law.chances(step) for step in steps.tolist()]
        start = min(first for first, _ in rows)
        table = np.zeros((len(rows), max(first + row.size for first, row in rows) - start))
        for own, (first, row) in zip(table, rows, strict=True):
            own[first - start : first - start + row.size] = row
        return _Laid(law, start, table, np.array([law.mean(step / law.steps) for step in steps.tolist()]))

    def exceeded_by(self, other: _Laid, t: float) -> FloatArray:
        """Return the chance that C'/slope' of ``other`` exceeds C/slope of this by at least ``t``, or a bound on it.

        For each law of this and each of ``other``.
        """
        scale, width = other.law.slope, other.chances.shape[1]
        least = scale * (t + (self.start + np.arange(self.chances.shape[1])) / self.law.slope) - other.start
        tails = _tails(other.chances)
        # a count within 1e-6 below the threshold is taken as at it, which can only add to a tail
        tail = self.chances @ tails[:, np.clip(np.ceil(least - 1e-6), 0, width).astype(np.int64)].T
        if self.law.target == "share":
            return tail
        beyond = _tails(tails[:, 1:])  # E max(C' - j, 0) at the j-th place of the window
        error = np.sqrt(self.law.variance(0.5) / self.law.slope**2 + other.law.variance(0.5) / scale**2)
        bound = np.ones_like(tail)
        for turn in _TURNS:
            start = least - scale * turn * error
            place = np.clip(start, 0.0, width)
            left = np.minimum(place.astype(np.int64), width - 1)
            above = beyond[:, left] + (place - left) * (beyond[:, left + 1] - beyond[:, left]) + np.maximum(-start, 0.0)
            bound = np.minimum(bound, self.chances @ above.T / (scale * turn * error))
        if self.law.slope == scale:
            far = scale * t >= other.means[None, :] - self.means[:, None] + NEAR_MEAN
            bound = np.where(far, np.minimum(bound, tail), bound)
        return bound


def _tails(rows: FloatArray) -> FloatArray:
    """Return the sums over each row from each place on; the last, over nothing, is 0."""
    return np.concatenate((np.cumsum(rows[:, ::-1], axis=1)[:, ::-1], np.zeros((len(rows), 1))), axis=1)


def of_counts(before: Estimate, after: Estimate, *, shared: bool) -> CountDifference | None:
    """Return the difference with the joint law of both counts; None where it is not known.

    ``shared`` says that somebody may have answered both: levels are then dealt to records once, so that counts of
    several levels are not independent.
    """
    if not (isinstance(before, CountEstimate) and isinstance(after, CountEstimate)):
        return None
    laws = (before.law, after.law)
    if not all(law.affordable for law in laws) or (shared and any(len(law.levels) > 1 for law in laws)):
        return None
    return CountDifference(**vars(after.minus(before)), before=before, after=after)
