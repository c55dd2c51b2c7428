"""The mean of a number among those who answered, where whether a person answered is private, too.

Everybody reports. A record x of the range is rounded at random to an end, to the upper one with the chance
t = (x - low)/(high - low); a missing record is "no answer". Which of the three it is, low, high or no answer, is
reported by randomized response over three categories. So the guarantee is that of ``krr:3``: the law of a report is a
mixture of the laws of these three, and the hockey-stick divergence is jointly convex in the law of every person.

**The estimate.** With h and l the estimated shares of the two ends, the mean is low + (high - low) h/(h + l).

**Its interval** (Fieller 1954). The true mean t, as a fraction of the range, is where (1 - t) h - t l has the mean 0:
the values 1 - t, -t and 0 of the three categories. The interval holds every t for which that sum is no further from 0
than its half width. A report of slope s (the chance that it is the person's own category, less that of another one) has
for a person drawn at random a value v with

    E v = (1 - s) (1 - 2t)/3,    E v^2 = s a t(1 - t) + (1 - s) (t^2 + (1 - t)^2)/3,

a being the share who answered. The variance of the sum of all values is at most the sum of E v^2 - (E v)^2.

*Proof.* Let m_i be the mean value of person i's category, before noise: of mean 0 over the people, and of variance M.
If slopes s_1..s_n of mean S and variance D are dealt to people at random, the variance is that sum less n (S^2 + D) M
plus n D M n/(n - 1): less, if S^2 >= D/(n - 1), which holds as D <= S (1 - S) once the slopes add up to 2. QED

a is shrunk towards 1/2 as `shuffledp.questions.question` says. Where nobody can be told to have answered, every t is
in the interval: it is then the whole range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.in_words import SAYS_NOTHING, share
from shuffledp.numerics.floats import TINY
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.questions.crosstab import Responses
from shuffledp.questions.estimate import CountEstimate, CountLaw, Estimate, chance_of_a_miss
from shuffledp.questions.frequency import frequency_oracle, project_to_simplex
from shuffledp.questions.mean import POINT, Number
from shuffledp.questions.question import SMOOTHING, Task, effective_number
from shuffledp.questions.view import CONFIDENCE, Numbers, Shape, View
from shuffledp.records.columns import NO_ANSWER, Recode
from shuffledp.setting import Seen

_GRID = 2000
"""Number of steps of the range on which the ends of a ratio's interval are searched; both move outward by one step."""


@dataclass(frozen=True, eq=False)
class AnsweredMean(Estimate):
    """A mean among those who answered, with Fieller's interval.

    The mean t is where a sum over the shares of the answers is 0. The interval holds every t for which that sum is no
    further from 0 than its half width (Fieller 1954).

    Parameters
    ----------
    tried, apart, error : ndarray
        Values t of the range, ascending; the estimate of that sum at each; its standard error.
    wide : callable
        Function of the probability of a miss and of standard errors that returns half widths of the sum.
    """

    tried: FloatArray
    apart: FloatArray
    error: FloatArray
    wide: Callable[[float, FloatArray], FloatArray]

    inequality_name: ClassVar[str] = ""

    def confidence_interval(self, level: float = 0.95, simultaneous: bool = False) -> tuple[FloatArray, FloatArray]:
        """Return both ends of the interval, see the class; parameters as for `Estimate.confidence_interval`."""
        inside = np.flatnonzero(np.abs(self.apart) <= self.wide(chance_of_a_miss(level), self.error))
        if not inside.size:  # nothing in the range fits: the nearest value, as `Estimate` has it
            inside = np.array([np.abs(self.apart / self.error).argmin()])
        low, high = max(int(inside[0]) - 1, 0), min(int(inside[-1]) + 1, self.tried.size - 1)
        return np.asarray(self.tried[low]), np.asarray(self.tried[high])


def tried_values(width: float = 1.0) -> FloatArray:
    """Return the values from 0 to a width at which an interval of `AnsweredMean` is searched."""
    return np.linspace(0.0, width, _GRID + 1)


@dataclass(frozen=True, eq=False)
class AnsweredEstimate(AnsweredMean):
    """A mean among those who answered, with the share of the people who did.

    Parameters
    ----------
    answered : Estimate
        The share who answered, shape (1,).
    """

    answered: Estimate


@dataclass(frozen=True)
class MeanOfAnswered(Number):
    """The question what the mean of a number in a known range is among those who answered; see the module.

    ``Mean(low, high)`` with ``missing_as="no-answer"`` asks it.

    Parameters
    ----------
    low, high : float
        The range, finite, low < high. It is public: reading it off the values would leak.
    """

    name: ClassVar[str] = "mean"
    views: ClassVar[tuple[Seen, ...]] = ("reports",)
    mechanisms: ClassVar[tuple[str, ...]] = ("krr",)
    answers = "number"
    shape: ClassVar[Shape] = Shape(
        "Mean among those who answered",
        "What is the mean of {0}{1} among those who answered?",
        "mean",
        "number",
        picture=POINT,
    )

    def randomizer(self, mechanism: str, budgets: Budgets, seen: Seen) -> Any:
        """Return randomized response over low, high and no answer; see `Question.randomizer`."""
        del seen
        return frequency_oracle(mechanism, 3).for_budgets(budgets.epsilons, budgets.counts)

    def settled(self, recode: Recode) -> Recode:
        """Return ``recode`` after checking that missing records are no answer; see `Question.settled`."""
        super().settled(Recode(None, recode.other, recode.clip))
        if recode.missing_as not in (None, NO_ANSWER):
            raise InvalidInput(
                f"a mean among those who answered takes missing records as {NO_ANSWER}, and as no number"
            )
        return Recode(NO_ANSWER, None, recode.clip)

    def records(self, columns: Sequence[Any], recode: Recode, before: int) -> FloatArray:
        """Return the numbers as fractions of the range, NaN where there is no answer; see `Question.records`."""
        return (self.numbers(columns, recode, before) - self.low) / (self.high - self.low)

    def draw(
        self, randomizer: Any, records: NDArray[Any], epsilons: ArrayLike, deltas: ArrayLike, random: Randomness
    ) -> NDArray[Any]:
        """Round the records at random, and draw a report of each; see `Question.draw`.

        The guarantee does not depend on how records are rounded, so it may be done in floating point.
        """
        del deltas
        up = random.words(len(records)).astype(np.float64) / 2.0**64 < records
        codes = np.where(np.isnan(records), 2, up.astype(np.int64))
        return randomizer.randomize(codes, epsilons, random)

    def answer(self, found: Any, task: Task) -> AnsweredEstimate:
        """Return the estimated mean from the shares of low, high and no answer; see `Question.answer`."""
        stated = task.randomizer.support_law(task.budgets.epsilons)
        people, slopes = task.budgets.counts.astype(np.float64), stated.own - stated.other
        low, high = (float(each) for each in found.value[:2])
        whole = low + high
        near = min(max(high / whole, 0.0), 1.0) if whole > 0.0 else 0.5
        tried, total = tried_values(), float(people @ slopes)
        error = _errors(tried, found.value, people, slopes)
        unit, step = self.high - self.low, 1.0 / total  # the values of two categories are at most 1 apart
        bounded = Estimate(np.zeros(()), np.ones(()), step, (-1.0, 1.0), 0)
        deviation = float(np.interp(near, tried, error)) / max(whole, TINY)
        return AnsweredEstimate(
            value=np.asarray(self.low + unit * near),
            standard_error=np.asarray(unit * min(deviation, 1.0)),
            step=unit * step,
            support=(self.low, self.high),
            uninformative=found.uninformative,
            tried=self.low + unit * tried,
            apart=(1.0 - tried) * high - tried * low,
            error=error,
            wide=bounded.half_width,  # type: ignore[arg-type]
            answered=_answered(found.value, task.budgets, stated.own, slopes),
        )

    def view(
        self,
        found: AnsweredEstimate,
        records: int,
        *,
        level: float = CONFIDENCE,
        simultaneous: bool = False,
        simplex: bool = False,
    ) -> View:
        """Return the view of the mean, with the share who answered; see `Question.view`."""
        del simplex
        numbers = Numbers.of(found, level, simultaneous=simultaneous)
        value, error = float(found.answered.value[0]), float(found.answered.standard_error[0])
        low, high = (float(end[0]) for end in found.answered.confidence_interval(level))
        return self.number_view(
            numbers,
            found.support,
            records=records,
            simultaneous=simultaneous,
            more=_words(value, low, high, level),
            sentences=(
                "The mean is that of those who answered. Whether somebody did is private, too: a missing record is "
                "reported as no answer.",
            ),
            after={
                "answered_share": {"estimate": value, "standard_error": error, "confidence_interval": [low, high]},
            },
        )


def _words(value: float, low: float, high: float, level: float) -> str:
    """Return a sentence on the share who answered, given its estimate and interval."""
    if high - low >= 1.0:
        return f"Of the share of people who answered the reports {SAYS_NOTHING.replace('says', 'say')}."
    if not 0.0 <= value <= 1.0:  # noise has moved it out of the range
        end = f"at least {share(low)}" if value > 1.0 else f"at most {share(high)}"
        return f"Of the people {end} answered ({level:.0%} interval)."
    return f"Of the people {share(value)} answered ({level:.0%} interval {share(low)} to {share(high)})."


def _errors(tried: FloatArray, shares: FloatArray, people: FloatArray, slopes: FloatArray) -> FloatArray:
    """Return the standard error of (1 - t) h - t l at each t of ``tried``; see the module.

    Parameters
    ----------
    tried : ndarray
        Values of t.
    shares : ndarray, shape (3,)
        Estimated shares of low, high and no answer.
    people, slopes : ndarray
        Number of people of each level, and the slope of their reports.
    """
    total = float(people @ slopes)
    equal = effective_number(total, float(people @ slopes**2))
    answered = (float(project_to_simplex(shares)[:2].sum()) * equal + 0.5 * SMOOTHING) / (equal + SMOOTHING)
    squares = total * answered * tried * (1.0 - tried)
    squares += float(people @ (1.0 - slopes)) * (tried**2 + (1.0 - tried) ** 2) / 3.0
    squares -= float(people @ (1.0 - slopes) ** 2) * ((1.0 - 2.0 * tried) / 3.0) ** 2
    return np.sqrt(np.maximum(squares, TINY)) / total


def _answered(shares: FloatArray, budgets: Budgets, own: FloatArray, slopes: FloatArray) -> CountEstimate:
    """Return the estimated share of those who answered: whose reports are low or high, by the law of that count."""
    people = tuple(budgets.counts.tolist())
    one = CountLaw(people, tuple(own.tolist()), tuple((own - slopes).tolist()))
    counts = np.rint(shares * one.slope + one.mean(0.0)).astype(np.int64)
    reports = Responses((3, 1), tuple(zip(people, slopes.tolist(), strict=True)), one)
    return reports.margin(counts[:2].sum(keepdims=True), 2)
