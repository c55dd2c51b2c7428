"""Histograms and quantiles over ordered bins: the questions, and the estimates from reports on a tree of ranges."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.budgets import Budgets
from shuffledp.errors import MAX_COUNTED, Brief, InvalidInput, choice, real_range, shown, whole_number
from shuffledp.in_words import count, near
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.functions import even_edges, ndtri
from shuffledp.questions.estimate import Estimate, around, chance_of_a_miss
from shuffledp.questions.frequency import FREQUENCY_MECHANISMS, MAY_LEAVE, frequency_oracle, project_to_simplex
from shuffledp.questions.mean import Number
from shuffledp.questions.question import CONFIDENCE, Curve, Numbers, Picture, Shape, View, in_bins, reach
from shuffledp.questions.tally import LevelSums, Tally, Whole
from shuffledp.randomizers.tree import RangeTree
from shuffledp.records.columns import Recode
from shuffledp.setting import Seen

# Bins of equal width over a public range, and which quantiles are asked for.


@dataclass(frozen=True)
class Bins:
    """Bins of equal width over a public range; the last bin includes both edges, the others only the lower one.

    Edges are the exact quotients, correctly rounded (`shuffledp.numerics.floats`), so a value that equals an edge is
    in the bin that begins there. All code that puts values into bins uses this class.

    Parameters
    ----------
    low, high : float
        The range, finite, low < high.
    count : int
        Number of bins, from 2 to 2^24.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range, or the bins are too narrow for double precision.

    Examples
    --------
    >>> Bins(0.0, 10.0, 4).codes(np.array([0.0, 2.5, 9.9, 10.0])).tolist()
    [0, 1, 3, 3]
    """

    low: float
    high: float
    count: int

    def __post_init__(self) -> None:
        low, high = real_range(self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        object.__setattr__(
            self, "count", whole_number(self.count, "bins must be a whole number, such as 20,", 2, MAX_COUNTED)
        )
        _edges(low, high, self.count)

    @property
    def edges(self) -> FloatArray:
        """The public edges, ascending, shape (count + 1,)."""
        return _edges(self.low, self.high, self.count)

    def codes(self, numbers: FloatArray) -> NDArray[np.int64]:
        """Return the bin, 0..count-1, of each number in the range."""
        return np.searchsorted(self.edges[1:-1], numbers, side="right").astype(np.int64)


@lru_cache(maxsize=4)
def _edges(low: float, high: float, count: int) -> FloatArray:
    edges = even_edges(low, high, count)
    if not (np.diff(edges) > 0.0).all():
        raise InvalidInput(f"{count} bins over [{low}, {high}] are too narrow for double precision; take fewer")
    edges.flags.writeable = False
    return edges


def read_probabilities(probabilities: Any) -> FloatArray:
    """Return the probabilities of quantiles as an array.

    Raises
    ------
    InvalidInput
        If there is none, or one is not in (0, 1).
    """
    try:
        wanted = np.atleast_1d(np.asarray(probabilities, dtype=np.float64))
    except (TypeError, ValueError):
        raise InvalidInput(
            f"probabilities of quantiles must be numbers in (0, 1); got {shown(probabilities)}"
        ) from None
    inside = (wanted > 0.0) & (wanted < 1.0)
    if wanted.ndim != 1 or wanted.size == 0 or not inside.all():
        raise InvalidInput(f"probabilities of quantiles must be numbers in (0, 1); got {shown(probabilities)}")
    return wanted


# The questions about a number in a known range.


@dataclass(frozen=True)
class Histogram(Number):
    """The question which share of the people is in each bin of a known range.

    Parameters
    ----------
    low, high : float
        The range, finite, low < high. It is public: reading it off the values would leak.
    bins : int
        Number of bins of equal width, from 2 to 2^24. The last bin includes both its edges, the others the lower one.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range, or the bins are too narrow for double precision.

    Examples
    --------
    >>> Histogram(0, 100, bins=4).labels[-1]
    (75.0, 100.0)
    """

    bins: int

    name: ClassVar[str] = "histogram"
    mechanisms: ClassVar[tuple[str, ...]] = ("subset", *(m for m in FREQUENCY_MECHANISMS if m != "subset"))
    answers = "shares"
    words = (("low", "high", "bins"), ())
    shape: ClassVar[Shape] = Shape(
        "Histogram",
        "How is {0} distributed?",
        "share",
        "share",
        label="bin",
        keys=("low", "high"),
        key="frequency",
        amount="count",
        picture=Picture(
            "bins",
            (("bar", "share of each bin"), ("interval", "its {confidence} confidence interval, {each}")),
            each=("each bin by itself", "all bins together"),
        ),
        excerpt="spread",
        noun="bins",
        folded=True,
        read=(f"{MAY_LEAVE}.", f"{MAY_LEAVE}."),
        short=("share", "error"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        grid = Bins(self.low, self.high, self.bins)
        object.__setattr__(self, "bins", grid.count)

    @property
    def grid(self) -> Bins:
        """The bins of the range."""
        return Bins(self.low, self.high, self.bins)

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """The edges (lower, upper) of each bin."""
        return tuple(pairwise(self.grid.edges.tolist()))

    def randomizer(self, mechanism: str, budgets: Budgets, seen: Seen) -> Any:
        """Return the family of that name with the bins as categories; see `Question.randomizer`."""
        del seen
        return frequency_oracle(mechanism, self.bins).for_budgets(budgets.epsilons, budgets.counts)

    def records(self, columns: Sequence[Any], recode: Recode, before: int) -> NDArray[np.int64]:
        """Return the bin of each number, shape (n,); see `Question.records`."""
        return self.grid.codes(self.numbers(columns, recode, before))

    def view(
        self,
        estimate: Estimate,
        records: int,
        *,
        level: float = CONFIDENCE,
        simultaneous: bool = False,
        simplex: bool = False,
    ) -> View:
        """Return the view of the bins' estimated shares; see `Question.view`."""
        edges = self.grid.edges
        width = float(edges[-1] - edges[0]) / self.bins

        def name(low: float, high: float) -> str:
            return f"{in_bins(low, width)} to {in_bins(high, width)}"

        return View(
            self.shape,
            Numbers.of(estimate, level, simultaneous=simultaneous),
            list(pairwise(edges.tolist())),
            name,
            simultaneous=simultaneous,
            support=estimate.support,
            records=records,
            told=f", in {count(self.bins)} bins",
            before={"low": float(edges[0]), "high": float(edges[-1]), "bins": self.bins},
            after=reach(estimate),
            projected=project_to_simplex(estimate.value) if simplex else None,
        )


@dataclass(frozen=True, repr=False)
class Quantiles(Brief, Number):
    """The question what the quantiles, and the distribution function, of a number in a known range are.

    Parameters
    ----------
    low, high : float
        The range, finite, low < high. It is public: reading it off the values would leak.
    at : sequence of float
        Probabilities of the quantiles, each in (0, 1): 0.5 is the median.
    bins : int
        Number of bins of equal width, from 2 to 2^22; the resolution of a quantile is one bin.
    branching : int
        Number of children of a node of the tree of ranges, from 2 to bins.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> Quantiles(0, 100, at=[0.25, 0.5, 0.75]).bins
    256
    """

    at: tuple[float, ...] = (0.25, 0.5, 0.75)
    bins: int = 256
    branching: int = 4

    name: ClassVar[str] = "quantiles"
    mechanisms: ClassVar[tuple[str, ...]] = ("tree",)
    answers = "ranges"
    words = (("low", "high"), ("at",))
    shape: ClassVar[Shape] = Shape(
        "Quantiles",
        "What are the quantiles of {0}?",
        "value",
        "place",
        label="share below",
        keys=("probability",),
        key="quantile",
        picture=Picture(
            "distribution",
            (
                (
                    "line certified",
                    "the rising distribution function closest to the estimates; quantiles are read off it",
                ),
                ("line raw", "the unbiased estimates, which noise lets fall now and then"),
                ("bracket", "{confidence} band, each value by itself"),
                ("estimate", "quantile with its interval"),
            ),
            said="Share of the people below each value.",
        ),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "at", tuple(read_probabilities(self.at).tolist()))
        grid = Bins(self.low, self.high, self.bins)
        tree = RangeTree(grid.count, self.branching)
        object.__setattr__(self, "bins", tree.bins)
        object.__setattr__(self, "branching", tree.branching)

    @property
    def grid(self) -> Bins:
        """The bins, which are the leaves of the tree."""
        return Bins(self.low, self.high, self.bins)

    def randomizer(self, mechanism: str, budgets: Budgets, seen: Seen) -> RangeTree:
        """Return the tree of ranges over the bins; see `Question.randomizer`."""
        del budgets, seen
        choice(mechanism, "mechanism", self.mechanisms)
        return RangeTree(self.bins, self.branching)

    def records(self, columns: Sequence[Any], recode: Recode, before: int) -> NDArray[np.int64]:
        """Return the bin of each number, shape (n,); see `Question.records`."""
        return self.grid.codes(self.numbers(columns, recode, before))

    def view(
        self,
        estimate: RangeEstimate,
        records: int,
        *,
        level: float = CONFIDENCE,
        simultaneous: bool = False,
        simplex: bool = False,
    ) -> View:
        """Return the view of the quantiles and the distribution function; see `Question.view`."""
        del records, simplex
        edges, at = self.grid.edges, np.array(self.at)
        each = 1.0 - (1.0 - level) / at.size if simultaneous else level
        low, high = estimate.quantile_interval(at, edges, each)
        band = estimate.below_interval(level)
        return View(
            self.shape,
            Numbers(estimate.quantiles(at, edges), None, low, high),
            [(probability,) for probability in self.at],
            _below,
            simultaneous=simultaneous,
            width=float(edges[1] - edges[0]),
            told=f", told to one of {count(self.bins)} bins",
            before={"low": float(edges[0]), "high": float(edges[-1]), "bins": self.bins},
            curve=Curve(edges, estimate.below, estimate.below_error, *band, estimate.rising),
        )


def _below(probability: float) -> str:
    return f"{near(100 * probability, 6)}%"


# Ranges and quantiles of ordered bins from the shuffled reports of a tree of ranges.
#
# **Node estimates.** With coefficients a_i >= 0 and keep_i as drawn, level by level of the tree,
#
#     y_v = sum a_i sign_i H[v, column_i] / sum a_i keep_i      over the reports of v's level,                     (N)
#
# is unbiased for the fraction of records below v. sign H has square 1, and its products over two nodes of a level have
# mean 0 (rows are orthogonal), so the covariances of a level's estimates are at most sum a_i^2/(sum a_i keep_i)^2 times
# the identity: what is left out is - f f^T, f the true fractions. Levels are different users.
#
# **Consistent estimates.** Fractions of children add up to their parent's, and the whole is 1. The weighted least
# squares solution under these equations, weights inverse to the variances above (Hay, Rastogi, Miklau, Suciu 2010, here
# with any variances and unequal numbers of children), is one pass up and one down:
#
#     up:    1/u_v = 1/var_v + 1/U_v,   z_v = u_v (y_v/var_v + Z_v/U_v),    U_v, Z_v sums of u, z over the children
#     down:  x_c = z_c + (u_c/U_v) (x_v - Z_v),   x_root = 1.
#
# Given its parent's fraction a child has variance u_c - u_c^2/U_v, and two children - u_c u_d/U_v; that gives the
# variance of every sum of bins. All of it is linear in y: unbiased, and not confined to [0, 1].

_MANY = 100
"""Effective number of reports at every level from which sums are treated as normal; below it, Chebyshev's inequality.

The effective number is sum a^2 over the largest a^2, because a sum dominated by a few reports is not normal.
"""


@dataclass(frozen=True, eq=False, repr=False)
class RangeEstimate(Brief):
    """Consistent estimates of the fractions of records in ranges of bins.

    Parameters
    ----------
    fractions : tuple of ndarray
        For each level of the tree, from the top down, the estimated fraction of each node. Those of a level sum to 1,
        and those of children to that of their parent.
    variances : tuple of ndarray
        For each level, u of each node: the variance of its estimate from its own reports and those of its descendants.
    branching : int
        Number of children of a node.
    fewest : int
        Smallest effective number of reports of a level (in reports of the largest weight).
    uninformative : int
        Number of users whose report carries no information (epsilon0 = 0).
    """

    fractions: tuple[FloatArray, ...]
    variances: tuple[FloatArray, ...]
    branching: int
    fewest: int
    uninformative: int

    @property
    def bins(self) -> FloatArray:
        """Estimated fraction of each bin, shape (bins,)."""
        return self.fractions[-1]

    @property
    def below(self) -> FloatArray:
        """Estimated fraction below each edge, shape (bins + 1,), from 0 to 1; unbiased, so not always increasing."""
        cumulative = np.concatenate(([0.0], np.cumsum(self.bins)))
        cumulative[-1] = 1.0  # the equations say so; cumsum rounds
        return cumulative

    @property
    def rising(self) -> FloatArray:
        """The non-decreasing function closest to `below` (isotonic regression), shape (bins + 1,), from 0 to 1."""
        from scipy.optimize import isotonic_regression  # a tenth of a second, which only quantiles pay

        fitted = np.clip(isotonic_regression(self.below).x, 0.0, 1.0)
        fitted[0], fitted[-1] = 0.0, 1.0
        return fitted

    @property
    def below_error(self) -> FloatArray:
        """Standard error of `below`, shape (bins + 1,), 0 at both ends; it errs on the large side but for chance."""
        size = self.bins.size
        node = np.arange(size)  # the last bin below each edge but the first
        share, variance = np.ones(size), np.zeros(size)
        for u in reversed(self.variances):
            starts = node - node % self.branching
            total = np.add.reduceat(u, np.arange(0, u.size, self.branching))[node // self.branching]
            running = np.concatenate(([0.0], np.cumsum(u)))
            left = running[node] - running[starts]
            above = left + share * u[node]
            variance += np.maximum(left + share**2 * u[node] - above**2 / total, 0.0)
            share, node = above / total, node // self.branching
        variance[-1] = 0.0
        return np.concatenate(([0.0], np.sqrt(variance)))

    def range(self, first: int, last: int) -> tuple[float, float]:
        """Return the estimated fraction of records in bins first..last, and its standard error.

        Parameters
        ----------
        first, last : int
            Bins, 0 <= first <= last < number of bins.

        Raises
        ------
        InvalidInput
            If there is no such range.
        """
        if not 0 <= first <= last < self.bins.size:
            raise InvalidInput(f"a range of bins needs 0 <= first <= last < {self.bins.size}; got {first} to {last}")
        weights = np.zeros(self.bins.size)
        weights[first : last + 1] = 1.0
        value, variance = float(np.sum(self.bins[first : last + 1])), 0.0
        for u in reversed(self.variances):
            places = np.arange(0, u.size, self.branching)
            total, moved = np.add.reduceat(u, places), np.add.reduceat(weights * u, places)
            spread = np.add.reduceat(weights**2 * u, places) - moved**2 / total
            variance += float(np.sum(np.maximum(spread, 0.0)))
            weights = moved / total
        return value, float(np.sqrt(variance))

    def quantiles(self, probabilities: ArrayLike, edges: FloatArray) -> FloatArray:
        """Return estimated quantiles: the points where `rising`, linear inside each bin, reaches the probabilities.

        Parameters
        ----------
        probabilities : array_like
            In (0, 1).
        edges : ndarray, shape (bins + 1,)
            Edges of the bins.
        """
        rising = self.rising
        wanted = np.asarray(probabilities, dtype=np.float64)
        upper = np.clip(np.searchsorted(rising, wanted, side="left"), 1, rising.size - 1)
        low, high = rising[upper - 1], rising[upper]
        return edges[upper - 1] + (wanted - low) / (high - low) * (edges[upper] - edges[upper - 1])

    def below_interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Return confidence intervals for `below`, each by itself, in [0, 1]; see `shuffledp.questions.estimate`.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Raises
        ------
        InvalidInput
            If level is not in (0, 1).
        """
        half = self.factor(level) * self.below_error
        return around(self.below, half, half, (0.0, 1.0))

    def quantile_interval(
        self, probabilities: ArrayLike, edges: FloatArray, level: float, simultaneous: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Return confidence intervals for quantiles, made of whole bins, by inverting the test of `below` at one edge.

        The quantile lies in the bin whose edges have fractions below p, and at least p. The lower end is the last edge
        before `below` first comes within z standard errors of p, the upper end the first edge from which on it stays
        beyond them: either fails only if the estimate is off by as much at one given edge, the quantile's own.

        Parameters
        ----------
        probabilities : array_like
            In (0, 1).
        edges : ndarray, shape (bins + 1,)
            Edges of the bins.
        level : float
            Confidence level, in (0, 1).
        simultaneous : bool
            False: for each quantile by itself. True: all hold at once with that level, by Bonferroni's inequality.

        Raises
        ------
        InvalidInput
            If level is not in (0, 1).
        """
        wanted = np.asarray(probabilities, dtype=np.float64)
        half = self.factor(level, wanted.size if simultaneous else 1) * self.below_error
        surely_below = np.maximum.accumulate(self.below + half)  # an edge counts if all before it are sure
        surely_above = np.minimum.accumulate((self.below - half)[::-1])[::-1]
        first = np.searchsorted(surely_below, wanted, side="left") - 1
        last = np.searchsorted(surely_above, wanted, side="left")
        return edges[np.clip(first, 0, None)], edges[np.clip(last, None, edges.size - 1)]

    def factor(self, level: float, targets: int = 1) -> float:
        """Return the half width of an interval in standard errors.

        That of the normal law; by Chebyshev's inequality if a level has fewer than 100 effective reports.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).
        targets : int
            Number of intervals that hold together with that level.

        Raises
        ------
        InvalidInput
            If level is not in (0, 1).
        """
        miss = chance_of_a_miss(level, targets)
        return float(miss**-0.5 if self.fewest < _MANY else -ndtri(miss / 2.0))


class TreeTally(Tally):
    """Exact counts for estimates of ranges: how often each possible report has come so far.

    Parameters
    ----------
    task : Task
        Its randomizer is a `RangeTree`.

    Raises
    ------
    InvalidInput
        If there are too many reports at too many levels to be tallied exactly.

    Examples
    --------
    >>> from shuffledp.budgets import Budgets
    >>> from shuffledp.numerics.randomness import secure_random
    >>> from shuffledp.questions.question import Task
    >>> tree = RangeTree(8, 2)
    >>> tally = TreeTally(Task(tree, Budgets((700.0,), (4,)), "reports"))
    >>> tally.add(tree.randomize([1, 2, 3, 6], 700.0, secure_random()))
    >>> tally.estimate().bins.shape
    (8,)
    """

    def _layout(self) -> list[LevelSums]:
        def more(a: FloatArray, keep: FloatArray) -> tuple[FloatArray, ...]:
            return a * a, a * keep, np.ones_like(a)

        return [LevelSums(self._coefficients(4, more), int(self._tree.offsets[-1]), self.task.budgets.n)]

    @property
    def _tree(self) -> RangeTree:
        return self.task.randomizer

    def _take(self, reports: NDArray[Any], levels: Whole | None) -> list[NDArray[Any]]:
        return [self._tables[0].add_codes(self._tree.checked(reports), levels)]

    def _stated(self, rows: slice) -> FloatArray:
        return self._tree.sampled_law(self.task.budgets.epsilons[rows]).keep

    def _information(self, law: FloatArray) -> tuple[FloatArray, float]:
        return law, 1.0

    def _estimate(self, uninformative: int) -> RangeEstimate:
        """Return the consistent estimates of all ranges from the counts."""
        tree, (table,), (totals,) = self._tree, self._tables, self._sums
        counts, largest = table.read(totals, 0), float(table.coefficients[0].max())
        squares, kept, reports = (np.add.reduceat(table.read(totals, row), tree.offsets[:-1]) for row in (1, 2, 3))
        if not self.task.by_level:  # which budget sent which report is not known: their mean is
            kept = reports * (self._public(lambda rows: (self._law(rows),))[0] / self.n)
        nodes: list[FloatArray] = []
        variances: list[FloatArray] = []
        for sums, scale, square in zip(tree.node_sums(counts), kept, squares, strict=True):
            # a level without reports: equal fractions, each off by less than 1
            empty = scale <= 0.0
            nodes.append(np.full(sums.size, 1.0 / sums.size) if empty else sums / scale)
            variances.append(np.full(sums.size, 1.0 if empty else square / scale**2))
        fractions, pooled = consistent(nodes, variances, tree.branching)
        fewest = round(float(squares.min()) / largest**2)
        return RangeEstimate(fractions, pooled, tree.branching, fewest, uninformative)


def consistent(
    nodes: Sequence[FloatArray], variances: Sequence[FloatArray], branching: int
) -> tuple[tuple[FloatArray, ...], tuple[FloatArray, ...]]:
    """Return the weighted least squares fractions of a tree, and u of each node (see the module).

    Parameters
    ----------
    nodes, variances : sequence of ndarray
        For each level, from the top down, each node's own estimate and its variance. Node v of a level has the children
        v branching, ..., (v + 1) branching - 1 of the next level, as far as they exist.
    branching : int
        Number of children of a node.
    """
    z, u = [nodes[-1]], [variances[-1]]
    for own, variance in zip(reversed(nodes[:-1]), reversed(variances[:-1]), strict=True):
        places = np.arange(0, u[0].size, branching)
        total, value = np.add.reduceat(u[0], places), np.add.reduceat(z[0], places)
        pooled = 1.0 / (1.0 / variance + 1.0 / total)
        z.insert(0, pooled * (own / variance + value / total))
        u.insert(0, pooled)
    parent, fractions = np.ones(1), []
    for value, variance in zip(z, u, strict=True):
        family = np.arange(value.size) // branching
        places = np.arange(0, value.size, branching)
        missing = (parent - np.add.reduceat(value, places)) / np.add.reduceat(variance, places)
        parent = value + variance * missing[family]
        fractions.append(parent)
    return tuple(fractions), tuple(u)
