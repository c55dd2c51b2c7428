"""What every local randomizer states about itself, once: its law, and the blanket that hides it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.numerics.floats import Upper, round_up

if TYPE_CHECKING:
    from shuffledp.numerics.randomness import Randomness


@dataclass(frozen=True, eq=False)
class CellSpread:
    """How far a continuous law varies inside the cells of a `PairBlanket`, and what was left out.

    Parameters
    ----------
    ratio_low, ratio_high : ndarray, shape (cells,)
        Bounds on R(x0)/omega over each cell, positive.
    loss_low, loss_high : ndarray, shape (cells,)
        Bounds on log(R(x0)/R(x1)) over each cell.
    left_out_mass : ndarray, shape (parts,)
        Upper bounds on the R(x0)-masses of the outputs that no cell covers.
    left_out_loss : ndarray, shape (parts,)
        Upper bounds (possibly inf) on log(R(x0)/R(x1)) there.
    """

    ratio_low: NDArray[np.float64]
    ratio_high: NDArray[np.float64]
    loss_low: NDArray[np.float64]
    loss_high: NDArray[np.float64]
    left_out_mass: NDArray[np.float64]
    left_out_loss: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PairBlanket:
    """A pair of inputs (x0, x1) of a randomizer seen against a blanket omega.

    R(x)(y) >= gamma * omega(y) for every input x and output y. In a *mixture family*, R_eps(x) = gamma(eps)
    omega + (1 - gamma(eps)) mu_x, omega is the same for every budget, so that users with different budgets hide
    each other. Outputs on which both ratios agree are merged into one cell.

    Parameters
    ----------
    gamma : float
        Blanket mass in [0, 1]; computed to a few ulps.
    masses : ndarray, shape (cells,)
        omega-mass of each cell; together 1, or less if outputs were left out.
    ratios0, ratios1 : ndarray, shape (cells,)
        R(x0)/omega and R(x1)/omega on each cell (of a continuous law: their means under omega).
    losses : ndarray, shape (cells,)
        log(R(x0)/R(x1)) of each cell: a difference of the ratios would lose small budgets.
    spread : CellSpread, optional
        Of a continuous law, how far it varies inside the cells; None for a discrete one.
    loss_ulps : int
        The losses are good to so many units in the last place; 0 where they are whole multiples of the budget.
    """

    gamma: float
    masses: NDArray[np.float64]
    ratios0: NDArray[np.float64]
    ratios1: NDArray[np.float64]
    losses: NDArray[np.float64]
    spread: CellSpread | None = None
    loss_ulps: int = 0

    @property
    def largest_loss(self) -> Upper:
        """Upper bound on log(R(x0)/R(x1)) of every output, covered by a cell or left out; 0 if all are negative."""
        if self.spread is not None:
            return Upper(
                max(float(part.max(initial=0.0)) for part in (self.spread.loss_high, self.spread.left_out_loss))
            )
        top = float(self.losses.max(initial=0.0))
        return round_up(top, self.loss_ulps) if top > 0.0 and self.loss_ulps else Upper(top)


class PairCounts(NamedTuple):
    """Chances of the two outcomes that separate x0 from x1, shapes of the budgets asked for.

    Let A be the outputs more likely under x0, and B those more likely under x1, exchanged when x0 and x1 are.

    Parameters
    ----------
    right : ndarray
        P(A | x0) = P(B | x1) = e^epsilon0 * wrong.
    wrong : ndarray
        P(B | x0) = P(A | x1).
    neither : ndarray
        P(neither A nor B | x0), not as a difference: it may be tiny.
    third : ndarray
        P(A | x2) = P(B | x2) for a record x2 that other users may hold.
    """

    right: NDArray[np.float64]
    wrong: NDArray[np.float64]
    neither: NDArray[np.float64]
    third: NDArray[np.float64]


@runtime_checkable
class RandomizerLaw(Protocol):
    """The law of a family of discrete local randomizers, as the accountant reads it."""

    @property
    def name(self) -> str:
        """The name the command line uses, such as ``"krr:10"``."""
        ...

    @property
    def mixture(self) -> bool:
        """Whether one blanket omega serves every budget (see `PairBlanket`)."""
        ...

    @property
    def two_point(self) -> bool:
        """Whether every pair of inputs has just two outcomes, the clone pair's."""
        ...

    def check_budgets(self, epsilon0: ArrayLike, delta0: ArrayLike) -> None:
        """Raise InvalidInput if the family cannot serve one of these budgets."""
        ...

    def pair_blankets(self, epsilon0: float) -> tuple[PairBlanket, ...]:
        """Return the pairs of inputs among which the worst one is, at that budget, against one blanket.

        The set is closed under exchanging x0 and x1, up to pairs that are their own mirror image.
        """
        ...

    def blanket_mass(self, epsilon0: ArrayLike) -> NDArray[np.float64]:
        """Gamma at each budget, shape of epsilon0; to a few ulps."""
        ...

    def pair_counts(self, epsilon0: ArrayLike) -> PairCounts | None:
        """Chances of the two separating outcomes at each budget; None if the family has no third record."""
        ...

    def witness_pairs(self, epsilon0: float) -> tuple[PairBlanket, PairBlanket] | None:
        """Return two real inputs x0, x1 (and x1, x0) against the report of another user's record x2.

        Here omega is R(x2) itself and gamma = 1: an attack, not a blanket. Both orders; None if there is none
        that is stronger than counting (two-outcome families).
        """
        ...


class ReportSets(NamedTuple):
    """Which reports a record's own part is drawn from: those of a set A_x, all of them alike.

    Parameters
    ----------
    one_in : int
        A_x holds one in so many of the possible reports, at least 2; the same for every record.
    disjoint : bool
        Whether the sets of two records are disjoint; otherwise a uniform report lies in them independently.
    """

    one_in: int
    disjoint: bool


@runtime_checkable
class HiddenByFakes(Protocol):
    """A family whose report is uniform on A_x with some chance, and otherwise uniform on all possible reports.

    So reports that nobody sent can be drawn beforehand, and no report tells that it is one of them.
    """

    @property
    def name(self) -> str:
        """The name the command line uses, such as ``"krr:10"``."""
        ...

    @property
    def report_sets(self) -> ReportSets:
        """The sets A_x; of a number, those of the two ends of its range."""
        ...


@runtime_checkable
class StatesBundles(Protocol):
    """A family that states the law of one user's reports of several rounds taken together, of one record."""

    def together(self, rounds: int) -> RandomizerLaw:
        """Return the reports of so many rounds as one report; OutOfRegime if there are too many kinds of them."""
        ...


@runtime_checkable
class StatesChances(Protocol):
    """A channel matrix that everybody uses as it is, whose chances are known exactly."""

    def exact_columns(self) -> list[list[tuple[int, int]]]:
        """Return the chance of each output for each record, as numerators and denominators."""
        ...


@runtime_checkable
class MadeFromMemo(Protocol):
    """A family whose reports are all made from one memo that is drawn once, so that its rounds do not compose."""

    @property
    def permanent(self) -> float:
        """Budget of the memo, nats; all reports together are (permanent)-LDP."""
        ...


@runtime_checkable
class NoiseLaw(Protocol):
    """A family that adds noise of a symmetric log-concave density to a number in a known range.

    Records are x in [0, 1] here (the range scaled to unit width); the report is x + scale * (standard noise).
    """

    @property
    def name(self) -> str:
        """The name the command line uses, such as ``"laplace"``."""
        ...

    @property
    def noise(self) -> str:
        """``"laplace"`` (density exp(-|u|)/2) or ``"gaussian"`` (standard normal)."""
        ...

    def check_budgets(self, epsilon0: ArrayLike, delta0: ArrayLike) -> None:
        """Raise InvalidInput if the family cannot serve one of these budgets."""
        ...

    def scale(self, epsilon0: ArrayLike, delta0: ArrayLike) -> NDArray[np.float64]:
        """Noise scale of each budget, in units of the range's width; inf where the budget is 0."""
        ...


Triples = Literal["alike", "alike by parts", "free", "listed"]
"""What a law of two likelihoods may state of any three different records.

"alike": every pair of records has the law of `pair_blankets`, every triple that of `triple`. "alike by parts": the same
once a part of the report is known that does not depend on the record, but for records that are one there. "free": all
records are likely on a share of the reports of one size, which may overlap in any way. "listed": a family that is
`ListsPlaces`.
"""


@runtime_checkable
class StatesTriples(Protocol):
    """A law of two likelihoods over k records that may state how any three of them lie to each other."""

    @property
    def k(self) -> int:
        """The number of records."""
        ...

    @property
    def triples(self) -> Triples | None:
        """What is stated; None if nothing is."""
        ...

    def pair_blankets(self, epsilon0: float) -> tuple[PairBlanket, ...]:
        """See `RandomizerLaw.pair_blankets`."""
        ...

    def triple(self, epsilon0: float) -> PairBlanket:
        """Two records against the report of a third one; undefined where triples are "free"."""
        ...

    def share(self, epsilon0: float) -> float:
        """How many of all reports, under the blanket's law, a record makes likely: a few ulps off."""
        ...


class LikelyShares(NamedTuple):
    """Triples of records (x0, x1, x2), and how likely they make the parts of all reports.

    R(x)(y) = omega(y) gamma (1 + (e^epsilon0 - 1) likely/whole), one gamma for all records.

    Parameters
    ----------
    omega : ndarray, shape (triples, parts)
        Masses of the parts, to a few ulps.
    likely : ndarray of int64, shape (triples, parts, 3)
        Whole numbers from 0 to ``whole``.
    whole : int
        Positive, at most 2^20.
    """

    omega: NDArray[np.float64]
    likely: NDArray[np.int64]
    whole: int


@runtime_checkable
class ListsPlaces(Protocol):
    """A family over infinitely many records whose worst triples of records are a finite list."""

    def worst_places(self, epsilon0: float) -> LikelyShares:
        """Return triples among which is the one with the largest sum of phi(R(x0), R(x1), R(x2)) over all reports.

        For every convex homogeneous phi.
        """
        ...


@runtime_checkable
class LocalRandomizer(RandomizerLaw, Protocol):
    """A family of local randomizers indexed by the personal budget epsilon0 (nats), which can be run.

    `channel` is the one statement of the law; sampler, analyzer, accountant and tests agree with it.
    """

    def channel(self, epsilon0: float) -> NDArray[np.float64]:
        """Row-stochastic matrix, shape (inputs, outputs): P(output | input) at that budget."""
        ...

    def randomize(self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness) -> NDArray[np.int64]:
        """One report per record, shape (n,), each with its own budget (scalar or shape (n,))."""
        ...


class SupportLaw(NamedTuple):
    """How likely a report supports its own record's category, and how likely any other one: as drawn.

    Parameters
    ----------
    own : ndarray, shape of the budgets
        p = P(report supports j | record j).
    other : ndarray, shape of the budgets
        q = P(report supports j | record not j) <= p; p = q at epsilon0 = 0.
    """

    own: NDArray[np.float64]
    other: NDArray[np.float64]


@runtime_checkable
class FrequencyOracle(RandomizerLaw, Protocol):
    """A family that can be run, and whose reports support categories ("pure" in Wang et al. 2017, Definition 2).

    Every category is supported with chance p if it is the record and with chance q if it is not, and pairs (p, q)
    are all an unbiased frequency estimate needs: (support counts - sum q) / (sum p - q).
    """

    @property
    def k(self) -> int:
        """Number of categories; records are 0..k-1."""
        ...

    def for_budgets(self, epsilon0: ArrayLike, counts: ArrayLike) -> FrequencyOracle:
        """Return the member of the family that serves all these budgets with one shape of report.

        Itself where the shape does not depend on the budget; else with the shape (range of the hash, size of the
        subset) of least predicted variance over the population fixed: a mixture family, whose users hide each
        other across budgets.
        """
        ...

    def randomize(self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness) -> NDArray[Any]:
        """One report per record: first axis n, each with its own budget (scalar or shape (n,))."""
        ...

    def support_law(self, epsilon0: ArrayLike) -> SupportLaw:
        """Return the chances (p, q) as drawn, at each budget."""
        ...

    def support_counts(self, reports: NDArray[Any], weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Sum of weights (default 1 each, then exact) over the reports that support each category, shape (k,)."""
        ...


@runtime_checkable
class SumsSupports(Protocol):
    """A family like `FrequencyOracle` in this: its reports' sum tells how many of them are in A_x, for each record x.

    A_x is the set of the reports that x makes likely; `RandomizerLaw.pair_counts` is then about A_x0 and A_x1.
    """

    @property
    def sums_supports(self) -> str:
        """What the sum counts, in words."""
        ...


class NumberLaw(NamedTuple):
    """What a report says about a number, as drawn: E(value of the report | t) = offset + slope t, t in [0, 1].

    Parameters
    ----------
    offset, slope : ndarray, shape of the budgets
        slope >= 0, 0 where the report carries no information; t = (x - low)/(high - low).
    variance : ndarray, shape (3,) + shape of the budgets
        Coefficients c0, c1, c2 with Var(value | t) <= c0 + c1 t + c2 t^2, with equality where stated by the family.
    largest : ndarray, shape of the budgets
        Bound on |value - its mean|; inf for unbounded noise.
    """

    offset: NDArray[np.float64]
    slope: NDArray[np.float64]
    variance: NDArray[np.float64]
    largest: NDArray[np.float64]


@runtime_checkable
class NumberRandomizer(Protocol):
    """A family that randomizes a number in [low, high], can be run, and whose reports have an unbiased reading."""

    @property
    def name(self) -> str:
        """The name the command line uses, such as ``"one-bit"``."""
        ...

    @property
    def low(self) -> float:
        """Lowest value, public."""
        ...

    @property
    def high(self) -> float:
        """Highest value, public."""
        ...

    def randomize(
        self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness, *, delta0: ArrayLike = 0.0
    ) -> NDArray[np.int64]:
        """One integer report per value, shape (n,), each with its own budget (scalars or shape (n,))."""
        ...

    def report_values(self, reports: NDArray[np.int64]) -> NDArray[np.float64]:
        """Value of each report, the same reading for every budget, shape (n,)."""
        ...

    def number_law(self, epsilon0: ArrayLike, delta0: ArrayLike = 0.0) -> NumberLaw:
        """Mean and variance of the value of a report, as drawn, at each budget."""
        ...


AnyLaw = RandomizerLaw | NoiseLaw
"""What `Setting` accepts besides "any"."""
