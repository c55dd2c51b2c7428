"""The mean of a number: the question, its families by name, and the estimate with its standard error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput, choice, real_range, shown
from shuffledp.in_words import SAYS_NOTHING, share
from shuffledp.numerics.floats import TINY, FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.questions.crosstab import Responses
from shuffledp.questions.estimate import (
    MOST_LEVELS,
    CountEstimate,
    CountLaw,
    Estimate,
    chance_of_a_miss,
    law_of_reports,
)
from shuffledp.questions.frequency import frequency_oracle, project_to_simplex
from shuffledp.questions.question import (
    CONFIDENCE,
    SHARES_SEEN,
    SHUFFLED,
    SMOOTHING,
    Numbers,
    Picture,
    Question,
    Shape,
    Task,
    View,
    Weights,
    effective_number,
    reach,
)
from shuffledp.questions.tally import LevelSums, ShuffledReports, Tally, Whole
from shuffledp.randomizers.base import NoiseLaw, NumberLaw, NumberRandomizer, RandomizerLaw
from shuffledp.randomizers.noise import Gaussian, Laplace
from shuffledp.randomizers.numeric import Hybrid, OneBit, Piecewise
from shuffledp.records.columns import NO_ANSWER, Recode, bounded_numbers
from shuffledp.setting import Seen

# Which family answers a question about a number by which name.

NUMBER_SEEN: tuple[Seen, ...] = ("reports", "levels", "sum")


class DiscreteNumbers(NumberRandomizer, RandomizerLaw, Protocol):
    """A randomizer of numbers with a discrete output distribution that it states to the accountant."""


class NoisyNumbers(NumberRandomizer, NoiseLaw, Protocol):
    """A randomizer of numbers that adds noise of a distribution that it states to the accountant."""


KnownNumbers = DiscreteNumbers | NoisyNumbers
"""A randomizer of numbers whose output distribution the accountant knows."""


Choose = Callable[[float, float, Budgets, Seen], KnownNumbers]


def _fixed(family: Callable[[float, float], KnownNumbers]) -> Choose:
    return lambda low, high, budgets, seen: family(low, high)


def _shaped(family: type[Piecewise] | type[Hybrid]) -> Choose:
    def choose(low: float, high: float, budgets: Budgets, seen: Seen) -> KnownNumbers:
        plain = family(low, high)
        return plain if seen == "levels" else plain.for_budgets(budgets.epsilons, budgets.counts)

    return choose


NUMBER_MECHANISMS: Mapping[str, Choose] = MappingProxyType(
    {
        "one-bit": _fixed(OneBit),
        "laplace": _fixed(Laplace),
        "gaussian": _fixed(Gaussian),
        "piecewise": _shaped(Piecewise),
        "hybrid": _shaped(Hybrid),
    }
)
"""Randomizer families over a range of numbers, by the names that `estimate_mean` and the command line use."""


ADDED_NOISE = ("laplace", "gaussian")


def number_randomizer(mechanism: str, low: float, high: float, budgets: Budgets, seen: Seen) -> KnownNumbers:
    """Return the randomizer family of a name, its shape chosen for the population.

    Parameters
    ----------
    mechanism : str
        A key of `NUMBER_MECHANISMS`.
    low, high : float
        The range.
    budgets : Budgets
        The population. Where levels are withheld, all reports have one shape, so that users hide each other across
        budgets.
    seen : {"reports", "levels", "sum"}
        What the analyzer sees.

    Raises
    ------
    InvalidInput
        If there is no such family, or the range is empty or not finite.

    Examples
    --------
    >>> number_randomizer("piecewise", 0.0, 1.0, Budgets.of([1.0, 1.0]), "reports").name
    'piecewise:4096:1790'
    """
    choice(mechanism, "mechanism", tuple(NUMBER_MECHANISMS))
    return NUMBER_MECHANISMS[mechanism](low, high, budgets, seen)


def check_seen(mechanism: str, seen: Seen) -> None:
    """Refuse the view "sum" for a mechanism that adds noise.

    The sum of added noises is certified for real-valued noise. The reports drawn are rounded one by one, and a sum of
    rounded numbers is no function of the sum of the numbers.
    """
    choice(mechanism, "mechanism", tuple(NUMBER_MECHANISMS))
    choice(seen, "seen", NUMBER_SEEN)
    if seen == "sum" and mechanism in ADDED_NOISE:
        raise InvalidInput(
            f"`seen = 'sum'` is not certified for {mechanism} noise as it is drawn, report by report in whole steps; "
            "say `seen = 'reports'`, which holds for the sum, too, or use one-bit, piecewise or hybrid"
        )


# What the questions about a number in a known range share.

POINT = Picture("point", (("estimate", "estimate with its interval"),), truth="true value")
"""The picture of an answer that is a single number."""


def _unnamed() -> str:
    return ""


@dataclass(frozen=True)
class Number(Question):
    """Base of the questions about a number in a known range.

    Parameters
    ----------
    low, high : float
        The range, finite, low < high. It is public: reading it off the values would leak.

    Raises
    ------
    InvalidInput
        If an end is not finite, or low is not below high.
    """

    low: float
    high: float

    reads: ClassVar[Literal["texts", "numbers"]] = "numbers"

    def __post_init__(self) -> None:
        low, high = real_range(self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def settled(self, recode: Recode) -> Recode:
        """Return ``recode`` after checking that its number for missing records lies in the range.

        See `Question.settled`.
        """
        if recode.other is not None:
            raise InvalidInput(
                f"`other` maps unlisted categories, and a {self.name} has none; `clip` moves numbers into the range"
            )
        if recode.missing_as is None:
            return recode
        try:
            value = float(recode.missing_as)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            value = np.nan
        if not self.low <= value <= self.high:
            raise InvalidInput(
                f"`missing_as` must be a number of the range [{self.low}, {self.high}]"
                f"{f' or {NO_ANSWER}' * (self.name == 'mean')}; got {recode.missing_as}"
            )
        return Recode(value, None, recode.clip)

    def number_view(self, numbers: Numbers, support: tuple[float, float], **besides: Any) -> View:
        """Return the view of an answer that is one number.

        Parameters
        ----------
        numbers : Numbers
            The answer.
        support : tuple of float
            The range of possible answers.
        besides
            Further parameters of `View`.
        """
        return View(self.shape, numbers, name=_unnamed, support=support, range=(self.low, self.high), **besides)

    def numbers(self, columns: Sequence[Any], recode: Recode, before: int) -> FloatArray:
        """Return the records as numbers in the range, shape (n,); arguments as for `Question.records`."""
        return bounded_numbers(columns[0], self.low, self.high, recode, before)


# The question of the mean.


@dataclass(frozen=True)
class Mean(Number):
    """The question what the mean of a number in a known range is.

    Parameters
    ----------
    low, high : float
        The range, finite, low < high. It is public: reading it off the values would leak.

    Examples
    --------
    >>> Mean(0, 100)
    Mean(low=0.0, high=100.0)
    """

    name: ClassVar[str] = "mean"
    views: ClassVar[tuple[Seen, ...]] = NUMBER_SEEN
    mechanisms: ClassVar[tuple[str, ...]] = tuple(NUMBER_MECHANISMS)
    answers = "number"
    words = (("low", "high"), ())
    shape: ClassVar[Shape] = Shape("Mean", "What is the mean of {0}{1}?", "mean", "number", amount="sum", picture=POINT)

    def views_of(self, mechanism: str) -> tuple[Seen, ...]:
        """Return the views of a mechanism, without "sum" for added noise: a sum of rounded noise is not certified.

        See `Question.views_of`.
        """
        return SHARES_SEEN if mechanism in ADDED_NOISE else self.views

    def randomizer(self, mechanism: str, budgets: Budgets, seen: Seen) -> Any:
        """Return the family of that name.

        Where levels are withheld all reports have one shape. See `Question.randomizer`.
        """
        check_seen(mechanism, seen)
        return number_randomizer(mechanism, self.low, self.high, budgets, seen)

    def records(self, columns: Sequence[Any], recode: Recode, before: int) -> FloatArray:
        """Return the numbers themselves, shape (n,); see `Question.records`."""
        return self.numbers(columns, recode, before)

    def draw(
        self, randomizer: Any, records: NDArray[Any], epsilons: ArrayLike, deltas: ArrayLike, random: Randomness
    ) -> NDArray[Any]:
        """Draw the reports, with the deltas that Gaussian noise needs; see `Question.draw`."""
        return randomizer.randomize(records, epsilons, random, delta0=deltas)

    def view(
        self,
        estimate: Estimate,
        records: int,
        *,
        level: float = CONFIDENCE,
        simultaneous: bool = False,
        simplex: bool = False,
    ) -> View:
        """Return the view of an estimated mean; see `Question.view`."""
        del simplex
        numbers = Numbers.of(estimate, level, simultaneous=simultaneous)
        after = reach(estimate)
        return self.number_view(numbers, estimate.support, records=records, simultaneous=simultaneous, after=after)


# The mean of a number from the shuffled reports alone, with its standard error.
#
# With value_i the reading of report i, E(value_i | t) = offset_i + slope_i t for a record t in [0, 1], and coefficients
# a_i >= 0 with sum_i a_i slope_i = 1,
#
#     m = sum_i a_i (value_i - offset_i),    E m = sum_i w_i t_i,    w_i = a_i slope_i                               (E)
#
# with a_i all equal where levels are withheld, proportional to 1/slope_i ("population") or to slope_i/Var_i(t = 1/2)
# ("precision") where they are seen: as for frequencies (`shuffledp.questions.frequency`, where is said what is
# random). With u = t - 1/2, Var_i = U_i + V_i u + C_i u^2, q the mean of u^2, and budgets assigned to users at random
# where the w_i differ, the variance of m is
#
#     sum a_i^2 U_i + mean(u) sum a_i^2 V_i + q (sum a_i^2 C_i + D) - D mean(u)^2,   D = (sum w_i^2 - 1/n) n/(n-1)   (N)
#
# Noise is in U_i, known beforehand. If the factor of q is negative (one bit: C_i = -slope_i^2), q is at least
# mean(u)^2, and more simply, with C_i <= -r slope_i^2 for all i, by Jensen and Cauchy-Schwarz and for any values,
#
#     variance <= sum a_i^2 U_i - r mean(u)^2/n                                                                      (M)
#
# which for one bit of one budget is the binomial variance of the count, and which covers the assignment of budgets too.
# Else q is read off the reports, if single reports are seen. With the centre c of the readings, d_i = centre_i - c,
# e_i = a_i^2 max(C_i, 0)/(C_i + slope_i^2) where levels are seen and 1 where they are withheld,
#
#   sum e_i ((value_i - c)^2 - U_i - d_i^2)  has the mean  sum e_i ((V_i + 2 d_i slope_i) u_i + (C_i + slope_i^2) u_i^2)
#
# of which the first part is taken off at the estimated mean(u), and q is what is left, over sum e_i (C_i + slope_i^2).
# Of every family here d_i = V_i = 0. Under "sum" nothing but sum value_i is kept, and q is put at its largest, 1/4. In
# (N) the mean is shrunk towards the middle, and q towards 1/4, by the number of people for whom the weights stand
# (`shuffledp.questions.question`).

_LIMB = 27


_CHUNK = 1 << 15
"""Number of reports per chunk, which keeps temporary arrays in cache."""


@dataclass(frozen=True, eq=False, repr=False)
class LongTailedEstimate(Estimate):
    """An estimate whose noise is unbounded, with tails no heavier than those of Laplace noise of scale `step`.

    Let v = standard_error^2, c = `step`, x = log(2/(1 - level)) and z the normal quantile. Up to v = 16 z^2 c^2 (few
    reports) the half width is sqrt(2 v x) + c x: Bernstein's inequality, which holds if the log-moment generating
    function is at most v s^2/(2 (1 - c s)), as for sums of Laplace noise of scale c. From twice that v on it is the
    normal one, and a mixture in between.
    """

    enough: ClassVar[float] = 16.0
    long_tailed: ClassVar[bool] = True
    inequality_name: ClassVar[str] = "Bernstein's"

    def _half_widths(
        self, standard_error: FloatArray, spread: FloatArray, z: float, x: float
    ) -> tuple[FloatArray, FloatArray]:
        return z * standard_error, standard_error * np.sqrt(2.0 * x) + self.step * x


class _Law:
    """A `NumberLaw` in coordinates around the middle of the range."""

    def __init__(self, law: NumberLaw) -> None:
        flat, tilt, self.curved = law.variance
        self.offset, self.slope = law.offset, law.slope
        self.centre = law.offset + law.slope / 2.0
        self.middle = flat + tilt / 2.0 + self.curved / 4.0
        self.tilted = tilt + self.curved
        self.around = np.maximum(self.curved + law.slope**2, 0.0)
        self.unbounded = ~np.isfinite(law.largest)
        # of unbounded noise: the scale of Laplace noise of that variance
        self.reach = np.where(self.unbounded, np.sqrt(np.maximum(self.middle, 0.0) / 2.0), law.largest)

    def square_share(self) -> FloatArray:
        """Return the share max(C, 0)/(C + slope^2) of the squared distance from the centre that enters e, per level."""
        return np.divide(
            np.maximum(self.curved, 0.0), self.around, out=np.zeros_like(self.slope), where=self.around > 0
        )

    def relief(self) -> FloatArray:
        """Return the largest r <= 1 of (M), per level."""
        informative = self.slope > 0.0
        square = np.where(informative, self.slope, 1.0) ** 2
        return np.where(informative, np.clip(-self.curved / square, 0.0, 1.0), 1.0)


class _Sums(NamedTuple):
    """The public sums in (E), (N), (M) over coefficients b_i, which are the a_i up to a factor: a_i = scale b_i."""

    offset: float  # sum b_i offset_i
    weights: float  # sum b_i slope_i
    weights_squared: float  # sum (b_i slope_i)^2
    middle: float  # sum b_i^2 U_i
    tilted: float  # sum b_i^2 V_i
    curved: float  # sum b_i^2 C_i
    apart: float  # sum e_i (U_i + d_i^2)
    leaning: float  # sum e_i (V_i + 2 d_i slope_i)
    around: float  # sum e_i (C_i + slope_i^2)


class MeanTally(Tally):
    """Exact sums for an estimate of a mean: of the reports' readings so far, and of their squares.

    Parameters
    ----------
    task : Task
        Its randomizer is a `NumberRandomizer` whose readings are whole numbers.

    Examples
    --------
    >>> from shuffledp.budgets import Budgets
    >>> from shuffledp.questions.question import Task
    >>> from shuffledp.randomizers import OneBit
    >>> task = Task(OneBit(0, 100), Budgets((700.0,), (4,)), "reports")
    >>> monday, tuesday = MeanTally(task), MeanTally(task)
    >>> monday.add(np.array([0, 1]))
    >>> tuesday.add(np.array([1, 1]))
    >>> monday.merge(tuesday)
    >>> float(monday.estimate().value)
    75.0
    """

    serves = SHUFFLED

    def _layout(self) -> list[LevelSums]:
        def squared(b: FloatArray, law: _Law) -> tuple[FloatArray]:
            return (b * b * law.square_share(),)

        centres = self._public(lambda rows: (self._law(rows).centre, 1.0))
        self._doubled = round(2.0 * centres[0] / centres[1])  # 2 c, the same for every family here
        coefficients = self._coefficients(2, squared)
        tables = [LevelSums(coefficients[:1], 1, 1)]  # sums of any size: 1 stands for their number
        if self.task.seen != "sum" and self._public(lambda rows: (self._law(rows).around,))[0] > 0.0:
            squares = coefficients[1:]
            return [*tables, LevelSums(squares, 1, 1)] if squares.any() else tables
        return tables

    def _empty(self, table: LevelSums) -> NDArray[Any]:
        return np.zeros(table.shape, dtype=object)

    def _take(self, reports: NDArray[Any], levels: Whole | None) -> list[NDArray[Any]]:
        if reports.ndim != 1:
            raise InvalidInput(f"reports of a number must be one-dimensional; got shape {reports.shape}")
        sums = [self._empty(table) for table in self._tables]
        for start in range(0, reports.size, _CHUNK):
            rows = slice(start, start + _CHUNK)
            self._take_chunk(sums, reports[rows], None if levels is None else levels[rows])
        return sums

    def _take_chunk(self, sums: list[NDArray[Any]], reports: NDArray[Any], levels: Whole | None) -> None:
        read = self.task.randomizer.report_values(reports)
        values = read.astype(np.int64)
        if not (values == read).all():
            raise InvalidInput(
                f"readings of {shown(self.task.randomizer)} must be whole numbers, so that sums are exact; scale them"
            )
        sums[0] += self._tables[0].add_numbers(values, levels)
        if len(sums) == 1:
            return
        away, table = np.abs(2 * values - self._doubled), self._tables[1]
        if away.max() < 1 << _LIMB:
            sums[1] += table.add_numbers(away * away, levels)
            return
        low, high = away & ((1 << _LIMB) - 1), away >> _LIMB
        for product, shift in ((low * low, 0), (2 * low * high, _LIMB), (high * high, 2 * _LIMB)):
            sums[1] += table.add_numbers(product, levels) << shift

    def _information(self, law: _Law) -> tuple[FloatArray, FloatArray]:
        return law.slope, law.middle

    def _stated(self, rows: slice) -> _Law:
        budgets = self.task.budgets
        return _Law(self.task.randomizer.number_law(budgets.epsilons[rows], budgets.deltas[rows]))

    def _estimate(self, uninformative: int) -> Estimate:
        """Return the estimated mean from the sums; see `mean`."""
        sums = _Sums(*self._public(self._terms))
        fraction, variance = self._fraction(sums)
        reach, bounded = 0.0, True
        for rows in self._chunks():
            law = self._law(rows)
            reach = max(reach, float((self._at(self._tables[0], 0, rows) * law.reach).max()))
            bounded &= not law.unbounded.any()
        family, scale = self.task.randomizer, 1.0 / sums.weights
        width = family.high - family.low
        estimate = (Estimate if bounded else LongTailedEstimate)(
            value=np.asarray(family.low + width * fraction),
            standard_error=np.asarray(width * np.sqrt(variance)),
            step=width * reach * scale,
            support=(family.low, family.high),
            uninformative=uninformative,
        )
        return self.with_law(estimate)

    def with_law(self, plain: Estimate) -> Estimate:
        """Return the estimate with the distribution of the number of ones, known of one bit; see `Tally.with_law`."""
        budgets, family = self.task.budgets, self.task.randomizer
        if not isinstance(family, OneBit) or self.task.by_level or budgets.levels > MOST_LEVELS:
            return plain
        law = self._law(slice(None))
        columns = (budgets.counts, law.offset + law.slope, law.offset)
        people, own, other = (tuple(column.tolist()) for column in columns)
        count_law = law_of_reports(people, own, other, "mean")
        low, high = plain.support  # a setting read from a file states the family on [0, 1]
        fraction = (float(plain.value) - low) / (high - low)
        ones = np.asarray(round(count_law.mean(0.0) + count_law.slope * fraction), dtype=np.int64)
        return CountEstimate(**vars(plain), counts=ones, law=count_law)

    def _fraction(self, sums: _Sums) -> tuple[float, float]:
        """Return m of (E), as a fraction of the range, and its variance by (N) or (M)."""
        n, scale = self.n, 1.0 / sums.weights
        fraction = (float(self._tables[0].read(self._sums[0], 0)[0]) - sums.offset) * scale
        off = min(max(fraction, 0.0), 1.0) - 0.5
        centred = off * n / (n + SMOOTHING)
        uneven = max(sums.weights_squared * scale**2 - 1.0 / n, 0.0) * n / max(n - 1, 1)
        variance = (sums.middle + off * sums.tilted) * scale**2
        factor = sums.curved * scale**2 + uneven
        if factor < 0.0:
            relief = min(float(self._law(rows).relief().min()) for rows in self._chunks())
            return fraction, variance - relief * centred**2 / n
        people = effective_number(sums.weights, sums.weights_squared)
        near = off * people / (people + SMOOTHING)
        return fraction, variance + factor * max(self._square(sums, off, people), centred**2) - uneven * near**2

    def _square(self, sums: _Sums, off: float, people: float) -> float:
        """Return an estimate of the mean of u^2, at most 1/4, from reports worth ``people`` people.

        1/4, the largest possible value, where the reports hold no information on it.
        """
        if len(self._tables) == 1 or not sums.around > 0.0:
            return 0.25
        excess = float(self._tables[1].read(self._sums[1], 0)[0]) / 4.0 - sums.apart - off * sums.leaning
        square = (excess / sums.around + 0.25 * SMOOTHING / people) / (1.0 + SMOOTHING / people)
        return min(square, 0.25)

    def _terms(self, rows: slice) -> tuple[FloatArray, ...]:
        """Return each level's terms of the sums in `_Sums`, in the order of its fields."""
        law, b = self._law(rows), self._at(self._tables[0], 0, rows)
        e = self._at(self._tables[-1], 0, rows)
        d = law.centre - self._doubled / 2.0
        return (
            b * law.offset,
            b * law.slope,
            (b * law.slope) ** 2,
            b * b * law.middle,
            b * b * law.tilted,
            b * b * law.curved,
            e * (law.middle + d * d),
            e * (law.tilted + 2.0 * d * law.slope),
            e * law.around,
        )


def mean(shuffled: ShuffledReports, randomizer: NumberRandomizer, *, weights: Weights = "population") -> Estimate:
    """Estimate the mean from shuffled reports about a number.

    Parameters
    ----------
    shuffled : ShuffledReports
        Seen "reports" or "sum": (sum value - sum offset)/sum slope, scaled to the range. Seen "levels": by `weights`.
    randomizer : NumberRandomizer
        The member of the family that drew the reports.
    weights : {"population", "precision"}
        As for `frequency`.

    Returns
    -------
    Estimate
        Shape (), support (low, high). Its variance is (N) or (M), in which the mean is shrunk towards the middle of the
        range, and the mean square towards its largest value, as if four more reports had come from the ends.

    Raises
    ------
    InvalidInput
        If no report carries information, or `weights` is unknown.

    Examples
    --------
    >>> from shuffledp.randomizers import OneBit
    >>> shuffled = ShuffledReports(np.array([0, 1, 1, 1]), np.full(4, 700.0), seen="sum")
    >>> float(mean(shuffled, OneBit(0, 100)).value)
    75.0
    """
    tally = MeanTally(shuffled.task(randomizer, weights))
    tally.add(shuffled.reports, shuffled.levels)
    return tally.estimate()


# The mean of a number among those who answered, where whether a person answered is private, too.
#
# Everybody reports. A record x of the range is rounded at random to an end, to the upper one with the chance
# t = (x - low)/(high - low); a missing record is "no answer". Which of the three it is, low, high or no answer, is
# reported by randomized response over three categories. So the guarantee is that of ``krr:3``: the law of a report is a
# mixture of the laws of these three, and the hockey-stick divergence is jointly convex in the law of every person.
#
# **The estimate.** With h and l the estimated shares of the two ends, the mean is low + (high - low) h/(h + l).
#
# **Its interval** (Fieller 1954). The true mean t, as a fraction of the range, is where (1 - t) h - t l has the mean 0:
# the values 1 - t, -t and 0 of the three categories. The interval holds every t for which that sum is no further from 0
# than its half width. A report of slope s (the chance that it is the person's own category, less that of another one)
# has for a person drawn at random a value v with
#
#     E v = (1 - s) (1 - 2t)/3,    E v^2 = s a t(1 - t) + (1 - s) (t^2 + (1 - t)^2)/3,
#
# a being the share who answered. The variance of the sum of all values is at most the sum of E v^2 - (E v)^2.
#
# *Proof.* Let m_i be the mean value of person i's category, before noise: of mean 0 over the people, and of variance M.
# If slopes s_1..s_n of mean S and variance D are dealt to people at random, the variance is that sum less n (S^2 + D) M
# plus n D M n/(n - 1): less, if S^2 >= D/(n - 1), which holds as D <= S (1 - S) once the slopes add up to 2. QED
#
# a is shrunk towards 1/2 as `shuffledp.questions.question` says. Where nobody can be told to have answered, every t is
# in the interval: it is then the whole range.


_GRID = 2000
"""Number of steps of the range on which the ends of a ratio's interval are searched; both move outward by one step."""


@dataclass(frozen=True, eq=False, repr=False)
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

    def answer(self, estimate: Any, task: Task) -> AnsweredEstimate:
        """Return the estimated mean from the shares of low, high and no answer; see `Question.answer`."""
        stated = task.randomizer.support_law(task.budgets.epsilons)
        people, slopes = task.budgets.counts.astype(np.float64), stated.own - stated.other
        low, high = (float(each) for each in estimate.value[:2])
        whole = low + high
        near = min(max(high / whole, 0.0), 1.0) if whole > 0.0 else 0.5
        tried, total = tried_values(), float(people @ slopes)
        error = _errors(tried, estimate.value, people, slopes)
        unit, step = self.high - self.low, 1.0 / total  # the values of two categories are at most 1 apart
        bounded = Estimate(np.zeros(()), np.ones(()), step, (-1.0, 1.0), 0)
        deviation = float(np.interp(near, tried, error)) / max(whole, TINY)
        return AnsweredEstimate(
            value=np.asarray(self.low + unit * near),
            standard_error=np.asarray(unit * min(deviation, 1.0)),
            step=unit * step,
            support=(self.low, self.high),
            uninformative=estimate.uninformative,
            tried=self.low + unit * tried,
            apart=(1.0 - tried) * high - tried * low,
            error=error,
            wide=bounded.half_width,  # type: ignore[arg-type]
            answered=_answered(estimate.value, task.budgets, stated.own, slopes),
        )

    def view(
        self,
        estimate: AnsweredEstimate,
        records: int,
        *,
        level: float = CONFIDENCE,
        simultaneous: bool = False,
        simplex: bool = False,
    ) -> View:
        """Return the view of the mean, with the share who answered; see `Question.view`."""
        del simplex
        numbers = Numbers.of(estimate, level, simultaneous=simultaneous)
        value, error = float(estimate.answered.value[0]), float(estimate.answered.standard_error[0])
        low, high = (float(end[0]) for end in estimate.answered.confidence_interval(level))
        return self.number_view(
            numbers,
            estimate.support,
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
