"""Two-way tables of two columns of categories: the question, both margins, and a test that the columns are independent.

Everybody reports one cell of the table by k-ary randomized response, k the number of cells.

**A margin** of c of k cells is a share whose reports support it with the chances s + (1 - s) c/k and (1 - s) c/k, s the
slope of a report, so its interval inverts the exact law of a count (`shuffledp.questions.estimate`).

**Independence** of rows and columns is tested by simulation: the statistic is sum (f_ab - f_a f_b)^2 / v_ab, v_ab the
variance that sampling people, their local noise and the dummies give a cell. It is compared with that of tables drawn
under independence from the estimated margins, with the same people, levels and dummies; the p-value is (1 + number of
tables at least as far)/(1 + number of tables), so noise alone does not look like dependence.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from shuffledp.budgets import Budgets
from shuffledp.errors import Brief, InvalidInput, cut_at_commas, shown
from shuffledp.in_words import ENGLISH, Translation
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.functions import bdtr, ndtri
from shuffledp.numerics.randomness import Randomness, simulation_random
from shuffledp.questions.estimate import NOTHING, Added, CountEstimate, CountLaw, Estimate, chance_of_a_miss
from shuffledp.questions.frequency import MAY_LEAVE, frequency_oracle, project_to_simplex
from shuffledp.questions.question import CONFIDENCE, Numbers, Picture, Question, Shape, Task, View
from shuffledp.randomizers.categorical import MOST_CELLS
from shuffledp.records.columns import Recode, category_codes, read_labels
from shuffledp.setting import Seen

TIE = 2.0**-30
"""Tolerance within which two distances are equal, as mirrored tables and different machines differ in last digits."""
_TABLES = 999
"""Number of tables drawn for the test of independence."""
_ONE_BY_ONE, _FEW_LEVELS = 20_000, 16
"""Number of people and of levels up to which the reports of a simulated table are drawn one by one."""

# Margins and independence of a table whose reports are k-ary randomized responses; dummies may have been added.


@dataclass(frozen=True)
class Independence:
    """The result of a test of independence of a table's rows and columns.

    Parameters
    ----------
    statistic : float
        Distance from independence, in units of the noise.
    p_value : float
        The probability of at least that distance under independence.
    tables : int
        Number of simulated tables.
    """

    statistic: float
    p_value: float
    tables: int

    def sentence(self, words: Translation = ENGLISH) -> str:
        """Return a sentence with the p-value."""
        return words(
            "Rows and columns: p = {p} for independence, with all noise counted ({tables} simulated tables)",
            p=words.number(f"{self.p_value:.3g}"),
            tables=words.number(f"{self.tables}"),
        )


@dataclass(frozen=True, eq=False)
class Responses:
    """The public facts about k-ary randomized responses on the cells of a table.

    Parameters
    ----------
    shape : tuple of int
        Number of rows and of columns of the table; k is their product.
    people : tuple of (int, float)
        Number of people of each level, and the slope of its reports: the probability that a report is the person's
        own cell, less the probability of any other one.
    law : CountLaw
        The law of the number of reports of one cell, dummies included.
    dummies : callable, optional
        Function of a source of randomness that draws the number of dummies of each cell, shape (k,); None without.
    optional : bool
        Whether the last row and the last column mean "no answer".
    """

    shape: tuple[int, int]
    people: tuple[tuple[int, float], ...]
    law: CountLaw
    dummies: Callable[[Randomness], NDArray[Any]] | None = None
    optional: bool = False

    def margin(self, counts: NDArray[np.int64], cells: int, added: Added = NOTHING) -> CountEstimate:
        """Return estimates of shares that are sums over several cells each.

        Parameters
        ----------
        counts : ndarray of int
            Number of reports, dummies included, in the cells of each share.
        cells : int
            Number of cells of each share.
        added : Added
            The law of the number of dummies in the cells of one share.
        """
        share = cells / (self.shape[0] * self.shape[1])
        own = tuple(s + (1.0 - s) * share for _, s in self.people)
        other = tuple((1.0 - s) * share for _, s in self.people)
        law = CountLaw(tuple(count for count, _ in self.people), own, other, added)
        value = np.asarray((counts - law.mean(0.0)) / law.slope, dtype=np.float64)
        errors = [np.sqrt(law.variance(min(max(float(each), 0.0), 1.0))) / law.slope for each in value]
        return CountEstimate(value, np.array(errors), 1.0 / law.slope, (0.0, 1.0), 0, counts, law)

    def independence(self, shares: FloatArray, variance: float, random: Randomness) -> Independence:
        """Return the test of independence of rows and columns.

        Parameters
        ----------
        shares : ndarray, shape (k,)
            Estimated shares of the cells, row by row.
        variance : float
            Variance that local noise and dummies give a share of 1/k.
        random : Randomness
            Source of the simulated tables.
        """
        n = sum(count for count, _ in self.people)
        observed = shares.reshape(self.shape)
        expected = np.outer(*(project_to_simplex(observed.sum(axis=axis)) for axis in (1, 0)))
        if self.optional:  # whoever skips one part skips the other: that alone would look like dependence
            expected = _independent_answers(project_to_simplex(observed.ravel()).reshape(self.shape))
        spread = expected * (1.0 - expected) / n + variance
        statistic = self._distance(observed, spread)
        as_far = statistic * (1.0 - TIE)
        further = sum(self._distance(table, spread) >= as_far for table in self._drawn(expected, random))
        return Independence(statistic, (1 + further) / (1 + _TABLES), _TABLES)

    def _distance(self, shares: FloatArray, spread: FloatArray) -> float:
        """Return the distance from independence among those who answered both parts."""
        if not self.optional:
            return distance(shares, spread)
        answered = shares[:-1, :-1]
        return distance(answered, spread[:-1, :-1], max(float(answered.sum()), TIE))

    def _drawn(self, expected: FloatArray, random: Randomness) -> Iterator[FloatArray]:
        """Yield simulated estimates with people drawn from the shares ``expected``."""
        few = sum(count for count, _ in self.people) <= _ONE_BY_ONE and len(self.people) <= _FEW_LEVELS
        mean, slope = self.law.mean(0.0), self.law.slope
        for counts in (self._one_by_one if few else self._together)(expected.ravel(), random):
            added = counts if self.dummies is None else counts + self.dummies(random)
            yield np.asarray((added - mean) / slope, dtype=np.float64).reshape(expected.shape)

    def _one_by_one(self, expected: FloatArray, random: Randomness) -> Iterator[NDArray[np.int64]]:
        """Yield simulated counts of the reports of each cell, from a record and a report of every person."""
        k, steps = expected.size, np.cumsum(expected)
        for _ in range(_TABLES):
            counts = np.zeros(k, dtype=np.int64)
            for count, s in self.people:
                words = random.words(2 * count).astype(np.float64) / 2.0**64
                records = np.minimum(np.searchsorted(steps, words[:count], side="right"), k - 1)
                kept = words[count:] < s
                others = random.integers(k, count)
                counts += np.bincount(np.where(kept, records, others), minlength=k)
            yield counts

    def _together(self, expected: FloatArray, random: Randomness) -> Iterator[NDArray[np.int64]]:
        """Yield simulated counts drawn at once: so many reports keep their record, the others are uniform.

        Whether a report keeps its record does not depend on the record. Of many levels each person's is drawn, too,
        which gives the number of kept reports a larger variance than they have, never a smaller one.
        """
        n, k = sum(count for count, _ in self.people), expected.size
        total = sum(count * s for count, s in self.people)
        levels = self.people if len(self.people) <= _FEW_LEVELS else ((n, total / n),)
        kept = np.zeros(_TABLES, dtype=np.int64)
        for count, s in levels:
            kept += _binomial(np.full(_TABLES, count), s, random)
        yield from _multinomial(kept, expected, random) + _multinomial(n - kept, np.full(k, 1.0 / k), random)


def _multinomial(sizes: NDArray[np.int64], shares: FloatArray, random: Randomness) -> NDArray[np.int64]:
    """Return multinomial counts, shape (number of sizes, number of shares), one cell after the other."""
    left, rest = sizes.copy(), np.cumsum(shares[::-1])[::-1]
    counts = np.zeros((sizes.size, shares.size), dtype=np.int64)
    for place in range(shares.size - 1):
        chance = float(shares[place] / rest[place]) if rest[place] > 0.0 else 0.0
        counts[:, place] = _binomial(left, min(chance, 1.0), random)
        left -= counts[:, place]
    counts[:, -1] = left
    return counts


def _binomial(sizes: NDArray[np.int64], chance: float, random: Randomness) -> NDArray[np.int64]:
    """Return a binomial number for each size, the quantile of a uniform number, by bisection."""
    if not 0.0 < chance < 1.0:
        return sizes * int(chance >= 1.0)
    uniform = (random.words(sizes.size).astype(np.float64) + 0.5) / 2.0**64
    spread = np.sqrt(sizes * chance * (1.0 - chance))
    guess, near = sizes * chance + spread * ndtri(uniform), 4.0 + 0.01 * spread
    low, high = np.maximum(np.floor(guess - near), -1.0), np.minimum(np.ceil(guess + near), sizes)
    low = np.where(bdtr(low, sizes, chance) < uniform, low, -1.0)
    high = np.where(bdtr(high, sizes, chance) >= uniform, high, sizes)
    while (high - low > 1.0).any():  # the quantile lies in (low, high]
        middle = np.floor((low + high) / 2.0)
        above = bdtr(middle, sizes, chance) >= uniform
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return high.astype(np.int64)


def distance(shares: FloatArray, spread: FloatArray, whole: float = 1.0) -> float:
    """Return the distance of a table from independence: squared differences, each over its variance, summed.

    Parameters
    ----------
    shares : ndarray, shape (rows, columns)
        The shares of the cells, with sum `whole`.
    spread : ndarray, shape (rows, columns)
        Variance of each cell.
    whole : float
        Sum of the shares; default 1.
    """
    apart = shares - np.outer(shares.sum(axis=1), shares.sum(axis=0)) / whole
    return float((apart**2 / spread).sum())


def _independent_answers(shares: FloatArray) -> FloatArray:
    """Return a table whose answered part, all but the last row and column, is independent with the same margins."""
    table, answered = shares.copy(), shares[:-1, :-1]
    if answered.sum() > 0.0:
        table[:-1, :-1] = np.outer(answered.sum(axis=1), answered.sum(axis=0)) / answered.sum()
    return table


# The question of two columns of a table file.

_ALL = "all"
"""Name of the missing heading of a margin."""


@dataclass(frozen=True, eq=False, repr=False)
class CrosstabEstimate(CountEstimate):
    """The estimated shares of the cells of a two-way table, row by row, with both margins and the test.

    Parameters
    ----------
    responses : Responses
        Who reported, and how.
    seed : int
        Seed of the simulated tables; public, as it makes no noise of the release.
    """

    responses: Responses
    seed: int

    @cached_property
    def rows(self) -> CountEstimate:
        """The share of each row, over all columns."""
        counts = self.counts.reshape(self.responses.shape)
        return self.responses.margin(counts.sum(axis=1), counts.shape[1])

    @cached_property
    def columns(self) -> CountEstimate:
        """The share of each column, over all rows."""
        counts = self.counts.reshape(self.responses.shape)
        return self.responses.margin(counts.sum(axis=0), counts.shape[0])

    @cached_property
    def independence(self) -> Independence:
        """The test of independence of rows and columns, which counts the noise."""
        variance = self.law.variance(1.0 / self.value.size) / self.law.slope**2
        return self.responses.independence(self.value, variance, simulation_random(self.seed))

    def numbers(self, level: float, *, simultaneous: bool) -> Numbers:
        """Return all cells, then the rows, then the columns, with their errors and intervals.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).
        simultaneous : bool
            Whether the intervals of cells and margins hold all together, by Bonferroni's inequality.
        """
        parts: tuple[Estimate, ...] = (self, self.rows, self.columns)
        size = sum(part.value.size for part in parts) if simultaneous else 1
        ends = [part.confidence_interval(1.0 - chance_of_a_miss(level, size)) for part in parts]
        return Numbers(
            np.concatenate([part.value for part in parts]),
            np.concatenate([part.standard_error for part in parts]),
            *(np.concatenate(side) for side in zip(*ends, strict=True)),
        )


@dataclass(frozen=True, repr=False)
class Crosstab(Brief, Question):
    """The question which share of the people is in each cell of a two-way table: a cross-tabulation of two columns.

    Everybody reports one cell, so the guarantee is that of a frequency over as many categories as there are cells.

    Parameters
    ----------
    rows, columns : iterable of hashable
        All possible labels of the first and of the second column, at least two each, all different; at most 64 cells.
        They are public: reading them off the records would leak.

    Raises
    ------
    InvalidInput
        If either list is not allowed (as for `Frequency`), or there are too many cells.

    Examples
    --------
    >>> Crosstab(["north", "south"], ["yes", "no"]).labels[1]
    ('north', 'no')
    """

    rows: tuple[Hashable, ...]
    columns: tuple[Hashable, ...]

    name: ClassVar[str] = "crosstab"
    reads: ClassVar[Literal["texts", "numbers"]] = "texts"
    views: ClassVar[tuple[Seen, ...]] = ("reports",)
    mechanisms: ClassVar[tuple[str, ...]] = ("krr",)
    answers = "cells"
    words = (("rows", "columns"), ())
    shape: ClassVar[Shape] = Shape(
        "Two-way table",
        "How often does each pair of values of the columns {0} occur?",
        "share",
        "share",
        label="cell",
        keys=("row", "column"),
        key="frequency",
        amount="count",
        picture=Picture(
            "bars",
            (("bar", "estimate"), ("interval", "{confidence} confidence interval")),
            truth="true share, known here unlike in a real release",
        ),
        noun="cells and margins",
        folded=True,
        read=(f"{MAY_LEAVE}, and hold one by one: of many, some miss.", f"{MAY_LEAVE}, and hold all together."),
        short=("frequency", "standard error"),
    )

    def __init__(self, rows: Iterable[Hashable], columns: Iterable[Hashable]) -> None:
        for name, given in (("rows", rows), ("columns", columns)):
            object.__setattr__(self, name, read_labels(given))
        if len(self.rows) * len(self.columns) > MOST_CELLS:
            raise InvalidInput(
                f"a two-way table has at most {MOST_CELLS} cells; {len(self.rows)} rows and {len(self.columns)} "
                f"columns make {len(self.rows) * len(self.columns)}; merge categories with `other`, or ask each column "
                "by itself"
            )

    @property
    def labels(self) -> tuple[tuple[Hashable, Hashable], ...]:
        """The cells as (row, column), row by row, in the order of the entries of the estimate."""
        return tuple((row, column) for row in self.rows for column in self.columns)

    @property
    def column_count(self) -> int:
        """Two: the column of the rows, and that of the columns; see `Question.column_count`."""
        return 2

    def randomizer(self, mechanism: str, budgets: Budgets, seen: Seen) -> Any:
        """Return randomized response over the cells; see `Question.randomizer`."""
        del seen
        return frequency_oracle(mechanism, len(self.labels)).for_budgets(budgets.epsilons, budgets.counts)

    def settled(self, recode: Recode) -> Recode:
        """Return ``recode`` with a category for each of the two columns; see `Question.settled`.

        A pair, or a text with a comma, names a category for each column; where it names none, such records of that
        column are refused. A single word counts for every column that has it as a category.
        """
        return Recode(self._pair("missing_as", recode.missing_as), self._pair("other", recode.other), recode.clip)

    def _pair(self, name: str, given: Any) -> tuple[Hashable | None, Hashable | None] | None:
        """Return the category of each column that replaces a record; None for a column whose records are refused."""
        if given is None:
            return None
        lists = (self.rows, self.columns)
        if any(given in labels for labels in lists):
            return tuple(given if given in labels else None for labels in lists)  # type: ignore[return-value]
        words = cut_at_commas(given) if isinstance(given, str) else given
        pair = (
            [word.strip() if isinstance(word, str) else word for word in words]
            if isinstance(words, list | tuple)
            else [given]
        )
        if len(pair) == 2 and all(word in (None, "", *labels) for word, labels in zip(pair, lists, strict=True)):
            first, second = (None if isinstance(word, str) and not word else word for word in pair)
            return first, second
        listed = " and ".join(", ".join(map(str, labels[:5])) + ", ..." * (len(labels) > 5) for labels in lists)
        raise InvalidInput(
            f"`{name}` must be a category of the table, or one of each column with a comma between them (of {listed}); "
            f"got {shown(given)}"
        )

    def records(self, columns: Sequence[Any], recode: Recode, before: int) -> NDArray[np.int64]:
        """Return the index of each record's cell, shape (n,); see `Question.records`."""
        missing, other = ((None, None) if each is None else each for each in (recode.missing_as, recode.other))
        codes = [
            category_codes(column, labels, before, Recode(missing[place], other[place]))  # type: ignore[index]
            for place, (column, labels) in enumerate(zip(columns, (self.rows, self.columns), strict=True))
        ]
        return codes[0] * len(self.columns) + codes[1]

    def answer(self, estimate: Any, task: Task) -> CrosstabEstimate:
        """Return the estimated cells with what is needed for margins and the test; see `Question.answer`."""
        family, budgets = task.randomizer, task.budgets
        stated = family.support_law(budgets.epsilons)
        people, own, other = (tuple(column.tolist()) for column in (budgets.counts, stated.own, stated.other))
        law = CountLaw(people, own, other)
        slopes = tuple(zip(people, (stated.own - stated.other).tolist(), strict=True))
        return CrosstabEstimate(
            estimate.value,
            estimate.standard_error,
            estimate.step,
            estimate.support,
            estimate.uninformative,
            counts=np.rint(estimate.value * law.slope + law.mean(0.0)).astype(np.int64),
            law=law,
            responses=Responses((len(self.rows), len(self.columns)), slopes, law),
            seed=int.from_bytes(task.fingerprint()[:8], "little") >> 1,
        )

    def view(
        self,
        estimate: CrosstabEstimate,
        records: int,
        *,
        level: float = CONFIDENCE,
        simultaneous: bool = False,
        simplex: bool = False,
    ) -> View:
        """Return the view of cells and margins; see `Question.view`."""
        projected = None
        if simplex:
            cells = project_to_simplex(estimate.value).reshape(estimate.responses.shape)
            projected = np.concatenate([cells.ravel(), cells.sum(axis=1), cells.sum(axis=0)])
        return View(
            self.shape,
            estimate.numbers(level, simultaneous=simultaneous),
            self.entries,
            cell_name,
            simultaneous=simultaneous,
            support=estimate.support,
            records=records,
            more=f"{estimate.independence.sentence()}.",
            sentences=("A small p says that rows and columns go together by more than chance and noise.",),
            after={"independence": dict(vars(estimate.independence))},
            projected=projected,
        )

    @property
    def entries(self) -> list[tuple[str | None, str | None]]:
        """The labels of cells, rows and columns, in this order; of a margin the other heading is None."""
        rows, columns = ([str(label) for label in labels] for labels in (self.rows, self.columns))
        cells = [(row, column) for row in rows for column in columns]
        return [*cells, *((row, None) for row in rows), *((None, column) for column in columns)]


def cell_name(row: str | None, column: str | None) -> str:
    """Return the name of a cell or of a margin for people.

    Examples
    --------
    >>> cell_name("north", "yes"), cell_name("north", None)
    ('north / yes', 'north / all')
    """
    return f"{_ALL if row is None else row} / {_ALL if column is None else column}"
