"""The mean of a number: the question, its families by name, and the estimate with its standard error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.budgets import Budgets
from shuffledp.checks import choice, real_range
from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.questions.estimate import MOST_LEVELS, CountEstimate, Estimate, law_of_reports
from shuffledp.questions.question import SHARES_SEEN, SHUFFLED, SMOOTHING, Question, Weights, effective_number
from shuffledp.questions.tally import LevelSums, ShuffledReports, Tally, Whole
from shuffledp.questions.view import CONFIDENCE, Numbers, Picture, Shape, View, reach
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


# The questions about a number in a known range.

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


# The questions about a number in a known range.


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
        found: Estimate,
        records: int,
        *,
        level: float = CONFIDENCE,
        simultaneous: bool = False,
        simplex: bool = False,
    ) -> View:
        """Return the view of an estimated mean; see `Question.view`."""
        del simplex
        numbers = Numbers.of(found, level, simultaneous=simultaneous)
        after = reach(found)
        return self.number_view(numbers, found.support, records=records, simultaneous=simultaneous, after=after)


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


@dataclass(frozen=True, eq=False)
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

    def told(self) -> FloatArray:
        """Return the share max(C, 0)/(C + slope^2) of the squared distance from the centre that enters e, per level."""
        return np.divide(
            np.maximum(self.curved, 0.0), self.around, out=np.zeros_like(self.slope), where=self.around > 0
        )

    def relief(self) -> FloatArray:
        """Return the largest r <= 1 of (M), per level."""
        known = self.slope > 0.0
        square = np.where(known, self.slope, 1.0) ** 2
        return np.where(known, np.clip(-self.curved / square, 0.0, 1.0), 1.0)


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
        def told(b: FloatArray, law: _Law) -> tuple[FloatArray]:
            return (b * b * law.told(),)

        centres = self._public(lambda rows: (self._law(rows).centre, 1.0))
        self._doubled = round(2.0 * centres[0] / centres[1])  # 2 c, the same for every family here
        coefficients = self._coefficients(2, told)
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
        found = (Estimate if bounded else LongTailedEstimate)(
            value=np.asarray(family.low + width * fraction),
            standard_error=np.asarray(width * np.sqrt(variance)),
            step=width * reach * scale,
            support=(family.low, family.high),
            uninformative=uninformative,
        )
        return self.with_law(found)

    def with_law(self, plain: Estimate) -> Estimate:
        """Return the estimate with the distribution of the number of ones, known of one bit; see `Tally.with_law`."""
        budgets, family = self.task.budgets, self.task.randomizer
        if not isinstance(family, OneBit) or self.task.by_level or budgets.levels > MOST_LEVELS:
            return plain
        law = self._law(slice(None))
        columns = (budgets.counts, law.offset + law.slope, law.offset)
        people, own, other = (tuple(column.tolist()) for column in columns)
        known = law_of_reports(people, own, other, "mean")
        low, high = plain.support  # a setting read from a file states the family on [0, 1]
        fraction = (float(plain.value) - low) / (high - low)
        ones = np.asarray(round(known.mean(0.0) + known.slope * fraction), dtype=np.int64)
        return CountEstimate(**vars(plain), counts=ones, law=known)

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
        found = (excess / sums.around + 0.25 * SMOOTHING / people) / (1.0 + SMOOTHING / people)
        return min(found, 0.25)

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
