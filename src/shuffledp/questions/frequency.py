"""Frequencies of categories: the question, its mechanisms, and the estimate from shuffled reports."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.budgets import Budgets
from shuffledp.errors import Brief, InvalidInput, choice, counted, shown
from shuffledp.numerics.floats import FloatArray
from shuffledp.questions.estimate import MOST_LEVELS, CountEstimate, Estimate, law_of_reports
from shuffledp.questions.question import (
    CONFIDENCE,
    SHUFFLED,
    SMOOTHING,
    Numbers,
    Picture,
    Question,
    Shape,
    View,
    Weights,
    effective_number,
    reach,
)
from shuffledp.questions.tally import LevelSums, ShuffledReports, Tally, Whole
from shuffledp.randomizers.base import FrequencyOracle, SupportLaw
from shuffledp.randomizers.categorical import HadamardResponse, RandomizedResponse, UnaryEncoding
from shuffledp.randomizers.hashing import LocalHashing
from shuffledp.randomizers.subset import SubsetSelection
from shuffledp.records.columns import Recode, category_codes, read_labels
from shuffledp.setting import Seen

# Which family answers a question by which name.

FREQUENCY_MECHANISMS: Mapping[str, Callable[[int], FrequencyOracle]] = MappingProxyType(
    {
        "krr": RandomizedResponse,
        "rr": RandomizedResponse,
        "sue": partial(UnaryEncoding, optimized=False),
        "oue": UnaryEncoding,
        "olh": LocalHashing,
        "hadamard": HadamardResponse,
        "subset": SubsetSelection,
    }
)
"""Randomizer families over k categories, by the names that `estimate_frequency` and the command line use."""


def frequency_oracle(mechanism: str, k: int) -> FrequencyOracle:
    """Return the randomizer family of a name over k categories.

    Parameters
    ----------
    mechanism : str
        A key of `FREQUENCY_MECHANISMS`.
    k : int
        Number of categories, at least 2.

    Raises
    ------
    InvalidInput
        If there is no such family, or "rr" is asked for more than two categories.

    Examples
    --------
    >>> frequency_oracle("olh", 100).name
    'olh:100'
    """
    choice(mechanism, "mechanism", FREQUENCY_MECHANISMS)
    if mechanism == "rr" and k != 2:
        raise InvalidInput(f"mechanism 'rr' needs exactly two categories; got {k}; use 'krr'")
    return FREQUENCY_MECHANISMS[mechanism](k)


# The questions: what is asked of the records, which randomizers can answer it, and what a record becomes.
#
# A question is a public value. It never holds a record. `shuffledp.releases.run.release` asks it.

MAY_LEAVE = "Unbiased estimates may fall below 0; intervals keep to the range from 0 to 1"


@dataclass(frozen=True, repr=False)
class Frequency(Brief, Question):
    """The question which share of the people has each of several public categories.

    Parameters
    ----------
    categories : iterable of hashable, length k
        All possible labels, at least two, all different. They are public: reading them off the records would leak.

    Raises
    ------
    InvalidInput
        If there are fewer than two categories, or one of them is missing or given twice.

    Examples
    --------
    >>> Frequency(["yes", "no"]).labels
    ('yes', 'no')
    """

    categories: tuple[Hashable, ...]

    name: ClassVar[str] = "frequency"
    reads: ClassVar[Literal["texts", "numbers"]] = "texts"
    mechanisms: ClassVar[tuple[str, ...]] = tuple(FREQUENCY_MECHANISMS)
    answers = "shares"
    words = (("categories",), ())
    shape: ClassVar[Shape] = Shape(
        "Frequencies",
        "How often does each value of {0} occur?",
        "share",
        "share",
        label="category",
        keys=("category",),
        key="frequency",
        amount="count",
        picture=Picture(
            "bars",
            (("bar", "estimate"), ("interval", "{confidence} confidence interval")),
            truth="true share, known here unlike in a real release",
        ),
        excerpt="largest",
        noun="estimates",
        folded=True,
        read=(f"{MAY_LEAVE}, and hold one by one: of many, some miss.", f"{MAY_LEAVE}, and hold all together."),
        short=("frequency", "standard error"),
    )

    def __init__(self, categories: Iterable[Hashable]) -> None:
        object.__setattr__(self, "categories", read_labels(categories))

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """The categories, in the order of the entries of the estimate."""
        return self.categories

    def randomizer(self, mechanism: str, budgets: Budgets, seen: Seen) -> Any:
        """Return the family of that name with the report shape that is best for these budgets.

        See `Question.randomizer`.
        """
        del seen
        return frequency_oracle(mechanism, len(self.categories)).for_budgets(budgets.epsilons, budgets.counts)

    def settled(self, recode: Recode) -> Recode:
        """Return ``recode`` after checking that its words for missing and unlisted records are categories.

        See `Question.settled`.
        """
        for parameter, label in (("missing_as", recode.missing_as), ("other", recode.other)):
            if label is not None and label not in self.categories:
                examples = ", ".join(repr(category) for category in self.categories[:5])
                more = ", ..." if len(self.categories) > 5 else ""
                raise InvalidInput(f"`{parameter}` must be a category ({examples}{more}); got {shown(label)}")
        return recode

    def records(self, columns: Sequence[Any], recode: Recode, before: int) -> NDArray[np.int64]:
        """Return the index of each record's category, shape (n,); see `Question.records`."""
        return category_codes(columns[0], self.categories, before, recode)

    def view(
        self,
        estimate: Estimate,
        records: int,
        *,
        level: float = CONFIDENCE,
        simultaneous: bool = False,
        simplex: bool = False,
    ) -> View:
        """Return the view of estimated shares; see `Question.view`."""
        return View(
            self.shape,
            Numbers.of(estimate, level, simultaneous=simultaneous),
            [(str(category),) for category in self.categories],
            simultaneous=simultaneous,
            support=estimate.support,
            records=records,
            after=reach(estimate),
            projected=project_to_simplex(estimate.value) if simplex else None,
        )


# Frequencies from the shuffled reports alone, with standard errors and confidence intervals.
#
# Every estimate is one linear formula. With p_i, q_i the chances, as drawn, that report i supports its own record's
# category and that it supports another one, and coefficients a_i >= 0 with sum_i a_i (p_i - q_i) = 1,
#
#     f_j = sum_i a_i (1[report_i supports j] - q_i),  E f_j = sum_i w_i 1[record_i = j],  w_i = a_i (p_i - q_i)   (E)
#
# - a_i = 1 / sum (p - q): needs the counts of support and nothing else. GSPA Algorithm 2 for two categories, where
#   sum (p - q) = n - 2 sum s and sum q = sum s; w_i is proportional to p_i - q_i.
# - a_i = 1 / (n (p_i - q_i)): every user counts the same. Summed by level it is the stratified estimate with
#   weights n_g/n.
# - a_i proportional to (p_i - q_i)/(s_i (1 - s_i)), s_i = q_i + (p_i - q_i)/k: inverse-variance weights, exact where
#   every record is a fair draw over the categories (for randomized response s = 1/k: proportional to p_i - q_i).
#
# **What is random.** The records are a fixed data set, and its frequency is the target: only the randomizers are
# random, and, wherever the w_i differ, the assignment of budgets to users, taken to be independent of the records.
# The variance is, with f the target,
#
#     sum a_i^2 (q_i (1 - q_i) + (p_i - q_i) (1 - p_i - q_i) 1[record_i = j])
#         + f (1 - f) (sum w_i^2 - 1/n) n/(n-1)                                                                  (V)
#
# as p (1-p) - q (1-q) = (p - q)(1 - p - q). Records are replaced by the estimate (`seen="reports"`), or by the unbiased
# estimate level by level (`seen="levels"`). Where the estimate stands for them its own error counts: with kappa the
# factor of f in the first sum, the score interval of Wilson (1927) at two standard errors is centred at f_j + 2 kappa,
# and that value is put in; it adds 2 kappa^2, of order 1/n^2, and never takes away. In the second part f is shrunk
# towards 1/2 by the number of people whom the weights stand for (`shuffledp.questions.question`): the estimate of a
# share
# that two people carry is 0, 1/2 or 1, and f (1 - f) of it must not be 0. Bennett's inequality (`Estimate`) holds for
# the assignment, too: budgets dealt to records are negatively associated (Joag-Dev and Proschan 1983) and reports rise
# with their records, so the moment generating function is at most that of independent draws of the records, whose
# variance has sum w_i^2 in the place of (sum w_i^2 - 1/n) n/(n-1): the same but for 1/n. If budgets do depend on the
# records, (E) without levels is still unbiased, for the (p - q)-weighted frequency.


class Sums(NamedTuple):
    """The public sums in (E) and (V), over coefficients b_i that are the a_i up to a common factor: a_i = scale b_i.

    Parameters
    ----------
    wrong : float
        sum b_i q_i.
    drawn : float
        sum b_i^2 q_i (1 - q_i).
    own : float
        sum b_i^2 (p_i - q_i) (1 - p_i - q_i).
    weights_total, weights_squared : float
        Sums of b_i (p_i - q_i) and of its square.
    own_wrong, own_least, own_most : float
        With c_i = b_i^2 (1 - p_i - q_i) as rounded in the tally: sum c_i q_i, and the sums of the negative and of the
        positive c_i (p_i - q_i).
    """

    wrong: float
    drawn: float
    own: float
    weights_total: float
    weights_squared: float
    own_wrong: float
    own_least: float
    own_most: float


class FrequencyTally(Tally):
    """Exact sums for a frequency estimate: how many of the reports so far support each category.

    Where levels are seen, the sums are kept per level, or weighted by level (`shuffledp.questions.tally`). Under "sum"
    the summed terms are the reports' 0/1 vectors of supported categories.

    Parameters
    ----------
    task : Task
        Its randomizer is a `FrequencyOracle` with one shape of report (`for_budgets`).

    Raises
    ------
    InvalidInput
        If there are too many reports at too many levels to be tallied exactly.

    Examples
    --------
    >>> from shuffledp.budgets import Budgets
    >>> from shuffledp.questions.question import Task
    >>> from shuffledp.randomizers import RandomizedResponse
    >>> task = Task(RandomizedResponse(2), Budgets((700.0,), (4,)), "reports")
    >>> monday, tuesday = FrequencyTally(task), FrequencyTally(task)
    >>> monday.add(np.array([0, 1]))
    >>> tuesday.add(np.array([1, 1]))
    >>> monday.merge(tuesday)
    >>> monday.estimate().value.round(6).tolist()
    [0.25, 0.75]
    """

    serves = SHUFFLED

    def _layout(self) -> list[LevelSums]:
        def own(b: FloatArray, law: SupportLaw) -> tuple[FloatArray]:
            return (b * b * _balance(law),)

        k, n = counted(self.task.randomizer.k), self.task.budgets.n
        return [LevelSums(self._coefficients(2, own), k, n)]

    def _take(self, reports: NDArray[Any], levels: Whole | None) -> list[NDArray[Any]]:
        family, (table,) = self.task.randomizer, self._tables
        if levels is not None and isinstance(family, RandomizedResponse):
            return [table.add_codes(family.checked(reports), levels)]

        def count(some: NDArray[Any], weights: Whole | None) -> NDArray[Any]:
            return family.support_counts(some, None if weights is None else weights.astype(np.float64))

        return [table.add(reports, levels, count)]

    def _stated(self, rows: slice) -> SupportLaw:
        return self.task.randomizer.support_law(self.task.budgets.epsilons[rows])

    def _information(self, law: SupportLaw) -> tuple[FloatArray, FloatArray]:
        apart = law.own - law.other
        share = law.other + apart / self.task.randomizer.k
        return apart, share * (1.0 - share)

    def _estimate(self, uninformative: int) -> Estimate:
        """Return the estimated frequency of each category from the sums; see `frequency`."""
        (table,), (totals,), n = self._tables, self._sums, self.n
        sums = Sums(*self._public(self._terms))
        scale = 1.0 / sums.weights_total
        value = (table.read(totals, 0) - sums.wrong) * scale
        shares = np.clip(value, 0.0, 1.0)
        centring = 2.0 * sums.own * scale**2  # 2 kappa
        if self.task.by_level:
            own_counts = table.read(totals, 1) - sums.own_wrong
            own = np.clip(own_counts + centring * sums.own, sums.own_least, sums.own_most)
        else:
            own = sums.own * np.clip(shares + centring, 0.0, 1.0)
        uneven = max(sums.weights_squared * scale**2 - 1.0 / n, 0.0)
        people = effective_number(sums.weights_total, sums.weights_squared)
        drawn = (shares * people + 0.5 * SMOOTHING) / (people + SMOOTHING)
        assigned = drawn * (1.0 - drawn) * uneven * n / max(n - 1, 1)
        variance = (sums.drawn + own) * scale**2 + assigned
        step = float(table.coefficients[0].max()) * scale
        plain = Estimate(value, np.sqrt(variance), step, (0.0, 1.0), uninformative)
        return self.with_law(plain)

    def with_law(self, plain: Estimate) -> Estimate:
        """Return the estimate with the distribution of its counts, known where all reports have the same weight.

        See `Tally.with_law`.
        """
        budgets = self.task.budgets
        if self.task.by_level or budgets.levels > MOST_LEVELS:
            return plain
        sums = Sums(*self._public(self._terms))
        counts = plain.value * sums.weights_total + sums.wrong
        law = self._law(slice(None))
        people, own, other = (tuple(column.tolist()) for column in (budgets.counts, law.own, law.other))
        count_law = law_of_reports(people, own, other)
        return CountEstimate(**vars(plain), counts=np.rint(counts).astype(np.int64), law=count_law)

    def _terms(self, rows: slice) -> tuple[FloatArray, ...]:
        """Return each level's terms of the sums in `Sums`, in the order of its fields."""
        law, (table,) = self._law(rows), self._tables
        b, c = self._at(table, 0, rows), self._at(table, 1, rows)
        apart, other = law.own - law.other, law.other
        own = c * apart
        return (
            b * other,
            b * b * (other * (1.0 - other)),
            b * b * (apart * _balance(law)),
            b * apart,
            (b * apart) ** 2,
            c * other,
            np.minimum(own, 0.0),
            np.maximum(own, 0.0),
        )


def frequency(shuffled: ShuffledReports, randomizer: FrequencyOracle, *, weights: Weights = "population") -> Estimate:
    """Estimate the frequency of each category from shuffled reports.

    Parameters
    ----------
    shuffled : ShuffledReports
        Seen "reports" or "sum": the coefficients are all equal. Seen "levels": by `weights`.
    randomizer : FrequencyOracle
        The member of the family that drew the reports.
    weights : {"population", "precision"}
        Seen "levels" only. "population": every informative user has the same weight, which is unbiased even if budgets
        depend on the records; the noise of tiny budgets counts in full, so the standard error can be large.
        "precision": weights of least noise, unbiased only if budgets do not depend on the records. Either way users
        without information (p = q: epsilon0 = 0, or below about 1e-15) have weight 0: they are assumed to be like the
        others.

    Returns
    -------
    Estimate
        Shape (k,), support (0, 1). Its variance is (V).

    Raises
    ------
    InvalidInput
        If no report carries information, `weights` is unknown, or the reports are not the randomizer's.

    Examples
    --------
    >>> from shuffledp.randomizers import RandomizedResponse
    >>> shuffled = ShuffledReports(np.array([0, 1, 1, 1]), np.full(4, 700.0), seen="reports")
    >>> frequency(shuffled, RandomizedResponse(2)).value.round(6).tolist()
    [0.25, 0.75]
    """
    tally = FrequencyTally(shuffled.task(randomizer, weights))
    tally.add(shuffled.reports, shuffled.levels)
    return tally.estimate()


def _balance(law: SupportLaw) -> FloatArray:
    """Return 1 - p - q rounded up: p is a rounded number, which must not turn a tiny variance into 0."""
    return 1.0 - law.own - law.other + 2.0**-52


# Post-processing on request: the nearest frequencies that could be.


def project_to_simplex(frequencies: ArrayLike) -> FloatArray:
    """Return the vector nearest to ``frequencies`` (in Euclidean distance) whose entries are at least 0 and sum to 1.

    Post-processing, so it costs no privacy. The whole vector is nearer to the true frequencies than the estimate was,
    but it is no longer unbiased: small categories are overestimated on average, and the estimate's standard errors do
    not apply.

    Parameters
    ----------
    frequencies : array_like, shape (k,)
        An unbiased estimate; finite.

    Returns
    -------
    ndarray, shape (k,)
        max(frequencies - t, 0) for the t that makes the entries sum to 1 (Held, Wolfe, Crowder 1974).

    Raises
    ------
    InvalidInput
        If they are no list of finite numbers.

    Examples
    --------
    >>> project_to_simplex([0.7, 0.5, -0.1]).round(6).tolist()
    [0.6, 0.4, 0.0]
    """
    values = np.asarray(frequencies, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise InvalidInput(f"frequencies must be a list of finite numbers; got shape {values.shape}")
    centred = values - values.max()  # no overflow, and no cancellation where all are large
    descending = np.sort(centred)[::-1]
    shifts = (np.cumsum(descending) - 1.0) / np.arange(1, values.size + 1)
    kept = int(np.flatnonzero(descending > shifts)[-1])  # the largest one is always kept
    out = np.maximum(centred - shifts[kept], 0.0)
    return out / out.sum()
