"""The difference between two releases of one question, such as two waves or two groups."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from shuffledp.accounting import StoredProfile
from shuffledp.checks import check_delta
from shuffledp.errors import InvalidInput, Told
from shuffledp.ledger import Spending, composed_epsilon
from shuffledp.numerics.interval import FloatArray
from shuffledp.questions.estimate import Estimate
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
        Categories, bins or coordinates; None for a single number.
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
        if not release.private:
            raise InvalidInput("a simulation protects nobody, so no guarantee holds for a difference with it")
        shape = release.question.shape
        check_question(shape.title if release.question.name in MEANS and not shape.amount else release.question.name)
        cost, setting = Spending.of(release.guarantee), release.guarantee.setting
        return Side(release.question.name, release.categories, release.analysis, release.n, cost, setting, release.unit)


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
        shown = [f"{value:.4g} ({low:.4g} to {high:.4g})" for value, low, high in np.column_stack(columns)[:3].tolist()]
        return (
            f"the second release minus the first: {', '.join(shown)}{', ...' if size > 3 else ''}; 95% intervals; both "
            f"cost a central epsilon of at most {self.epsilon!r} at delta = {self.delta!r}"
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
    >>> found = sdp.difference(sdp.release(question, first, **ask), sdp.release(question, second, **ask), delta=1e-6)
    >>> found.estimate.shape, bool(found.epsilon > 0.0)
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
    if before.labels != after.labels:
        raise InvalidInput("both releases must have the same categories or bins, in the same order")
    found = after.analysis.minus(before.analysis)
    costs = [before.spending.worst, after.spending.worst]
    epsilon = composed_epsilon([StoredProfile.largest(costs)] if disjoint else costs, delta)
    if disjoint and delta >= max(before.spending.delta, after.spending.delta):
        # what each states at its own delta holds at a larger one; what is kept of a curve lies a little above it
        epsilon = min(epsilon, max(before.spending.epsilon, after.spending.epsilon))
    return Difference(before, after, found, disjoint, epsilon, delta)


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
