"""What every family of local randomizers states about itself: the law of its reports, and the blanket in it.

R(x) is the law of the report y of a record (input) x at local budget epsilon0. A *privacy blanket* of R is a law omega
of reports with a mass gamma such that R(x) >= gamma omega for every x: with chance gamma a report is a draw of omega,
which does not depend on the record, and such reports hide those of other users.
"""

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
    """Bounds on how a continuous law varies inside the cells of a `PairBlanket`, and on the outputs without a cell.

    R(x0) and R(x1) are the laws of the reports of two records, omega is the blanket.

    Parameters
    ----------
    ratio_low, ratio_high : ndarray, shape (cells,)
        Bounds on R(x0)/omega over each cell, positive.
    loss_low, loss_high : ndarray, shape (cells,)
        Bounds on log(R(x0)/R(x1)) over each cell.
    left_out_mass : ndarray, shape (parts,)
        Upper bounds on the R(x0)-masses of the outputs that no cell covers, grouped into parts.
    left_out_loss : ndarray, shape (parts,)
        Upper bounds (possibly inf) on log(R(x0)/R(x1)) on each of these parts.
    """

    ratio_low: NDArray[np.float64]
    ratio_high: NDArray[np.float64]
    loss_low: NDArray[np.float64]
    loss_high: NDArray[np.float64]
    left_out_mass: NDArray[np.float64]
    left_out_loss: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PairBlanket:
    """The report laws R(x0), R(x1) of two inputs of a randomizer, relative to a blanket omega, on cells of outputs.

    R(x)(y) >= gamma * omega(y) for every input x and output y. In a *mixture family*, R_eps(x) = gamma(eps) omega + (1
    - gamma(eps)) mu_x, omega is the same for every budget, so that users with different budgets hide each other.
    Outputs on which both ratios agree are merged into one cell.

    Parameters
    ----------
    gamma : float
        Blanket mass in [0, 1], correct to a few units in the last place (ulps).
    masses : ndarray, shape (cells,)
        omega-mass of each cell; together 1, or less if outputs were left out.
    ratios0, ratios1 : ndarray, shape (cells,)
        R(x0)/omega and R(x1)/omega on each cell (of a continuous law: their means under omega).
    losses : ndarray, shape (cells,)
        log(R(x0)/R(x1)) of each cell: a difference of the ratios would lose small budgets.
    spread : CellSpread, optional
        For a continuous law, how far it varies inside the cells; None for a discrete law.
    loss_ulps : int
        Error bound of the losses in units in the last place; 0 if they are whole multiples of the budget.
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
        """Upper bound on log(R(x0)/R(x1)) over all outputs, covered by a cell or left out; at least 0."""
        if self.spread is not None:
            return Upper(
                max(float(part.max(initial=0.0)) for part in (self.spread.loss_high, self.spread.left_out_loss))
            )
        top = float(self.losses.max(initial=0.0))
        return round_up(top, self.loss_ulps) if top > 0.0 and self.loss_ulps else Upper(top)


class PairCounts(NamedTuple):
    """Chances of the two outcomes that separate two records x0 and x1, arrays of the shape of the budgets.

    Let A be the outputs that are more likely under x0, and B those more likely under x1; exchanging x0 and x1 exchanges
    A and B.

    Parameters
    ----------
    right : ndarray
        P(A | x0) = P(B | x1) = e^epsilon0 * wrong.
    wrong : ndarray
        P(B | x0) = P(A | x1).
    neither : ndarray
        P(neither A nor B | x0), computed without a difference, as it may be tiny.
    third : ndarray
        P(A | x2) = P(B | x2) for a record x2 that other users may hold.
    """

    right: NDArray[np.float64]
    wrong: NDArray[np.float64]
    neither: NDArray[np.float64]
    third: NDArray[np.float64]


@runtime_checkable
class RandomizerLaw(Protocol):
    """The law of a family of discrete local randomizers, one member for each budget, as the accountant reads it.

    R(x), omega, gamma and the pairs of inputs are those of `PairBlanket`.
    """

    @property
    def name(self) -> str:
        """Name of the family as the command line spells it, such as ``"krr:10"``."""
        ...

    @property
    def mixture(self) -> bool:
        """Whether one blanket omega serves every budget, so that users of different budgets hide each other."""
        ...

    @property
    def two_point(self) -> bool:
        """Whether every two inputs differ on two outcomes only, as for binary randomized response."""
        ...

    def check_budgets(self, epsilon0: ArrayLike, delta0: ArrayLike) -> None:
        """Raise InvalidInput if the family cannot serve one of the budgets (epsilon0 in nats, delta0 in [0, 1))."""
        ...

    def pair_blankets(self, epsilon0: float) -> tuple[PairBlanket, ...]:
        """Return pairs of inputs relative to one blanket, the worst pair of inputs at this budget among them.

        epsilon0 is in nats. With a pair (x0, x1) the set has (x1, x0) as well, except for pairs that are their own
        mirror image.
        """
        ...

    def blanket_mass(self, epsilon0: ArrayLike) -> NDArray[np.float64]:
        """Return the blanket mass gamma at each budget epsilon0 (nats), in its shape, to a few ulps."""
        ...

    def pair_counts(self, epsilon0: ArrayLike) -> PairCounts | None:
        """Return the chances of the two outcomes that separate two records, at each budget epsilon0 (nats).

        None if the family states no third record that other users may hold.
        """
        ...

    def witness_pairs(self, epsilon0: float) -> tuple[PairBlanket, PairBlanket] | None:
        """Return an attack: the laws of inputs x0, x1 (then x1, x0) relative to the report of another user's record x2.

        The attack certifies a lower bound on epsilon. Here omega is R(x2) itself and gamma = 1, so it is no blanket.
        epsilon0 is in nats. None if no such attack is stronger than counting outcomes, as in families of two outcomes.
        """
        ...


class ReportSets(NamedTuple):
    """The sets A_x of reports that a record x makes likely, all reports of a set equally: their size and overlap.

    Parameters
    ----------
    one_in : int
        Number of possible reports divided by the size of A_x, at least 2; the same for every record x.
    disjoint : bool
        Whether the sets of two records are disjoint; otherwise a uniform report lies in one of them independently of
        whether it lies in the other.
    """

    one_in: int
    disjoint: bool


@runtime_checkable
class HiddenByFakes(Protocol):
    """A family whose report is uniform on a set A_x with some chance, and otherwise uniform on all possible reports.

    Dummies (fake reports, drawn by the shuffler) uniform on all possible reports are therefore indistinguishable from
    reports without information.
    """

    @property
    def name(self) -> str:
        """Name of the family as the command line spells it, such as ``"krr:10"``."""
        ...

    @property
    def report_sets(self) -> ReportSets:
        """Size and overlap of the sets A_x of likely reports; for a number, those of the two ends of its range."""
        ...


@runtime_checkable
class StatesBundles(Protocol):
    """A family that states the law of all reports of one user with one unchanging record over several rounds."""

    def together(self, rounds: int) -> RandomizerLaw:
        """Return the law of a user's reports of `rounds` rounds, taken together as one report.

        Raises OutOfRegime if such reports take too many different values.
        """
        ...


@runtime_checkable
class StatesChances(Protocol):
    """A channel matrix that all users share whatever their budget, with exactly known chances."""

    def exact_columns(self) -> list[list[tuple[int, int]]]:
        """Return the exact chances as (numerator, denominator): a list per output, with an entry per record."""
        ...


@runtime_checkable
class MadeFromMemo(Protocol):
    """A family whose reports are all made from one memo (a permanent noisy report), so that rounds do not compose."""

    @property
    def permanent(self) -> float:
        """Local budget of the memo, in nats; all reports of a user together are (permanent, 0)-LDP."""
        ...


@runtime_checkable
class NoiseLaw(Protocol):
    """A family that adds noise of a symmetric log-concave density to a number in a public range.

    Records are x in [0, 1] here (the range scaled to unit width); the report is x + scale * (standard noise).
    """

    @property
    def name(self) -> str:
        """Name of the family as the command line spells it, such as ``"laplace"``."""
        ...

    @property
    def noise(self) -> str:
        """Kind of the noise: ``"laplace"`` (density exp(-|u|)/2) or ``"gaussian"`` (standard normal)."""
        ...

    def check_budgets(self, epsilon0: ArrayLike, delta0: ArrayLike) -> None:
        """Raise InvalidInput if the family cannot serve one of the budgets (epsilon0 in nats, delta0 in [0, 1))."""
        ...

    def scale(self, epsilon0: ArrayLike, delta0: ArrayLike) -> NDArray[np.float64]:
        """Return the noise scale of each budget, in units of the range's width; inf where the budget is 0.

        epsilon0 is in nats, delta0 in [0, 1); they are broadcast.
        """
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
    """A family of two levels of likelihood over k records that may state how the report sets of any three overlap."""

    @property
    def k(self) -> int:
        """The number of records (categories)."""
        ...

    @property
    def triples(self) -> Triples | None:
        """How the sets of likely reports of any three records overlap: a word of `Triples`, or None."""
        ...

    def pair_blankets(self, epsilon0: float) -> tuple[PairBlanket, ...]:
        """Return pairs of inputs relative to one blanket, the worst pair among them (`RandomizerLaw.pair_blankets`)."""
        ...

    def triple(self, epsilon0: float) -> PairBlanket:
        """Return the laws of two records relative to the report of a third one; see `PairBlanket`.

        It is undefined where `triples` is "free". epsilon0 is in nats.
        """
        ...

    def share(self, epsilon0: float) -> float:
        """Return omega(A_x): the chance of the reports that a record makes likely, under the blanket; to a few ulps."""
        ...


class LikelyShares(NamedTuple):
    """Triples of records (x0, x1, x2), and how likely they make the parts into which all reports fall.

    For record b = 0, 1, 2 of a triple and a report y of a part: R(x_b)(y) = omega(y) gamma (1 + (e^epsilon0 - 1)
    likely/whole), with one gamma for all records.

    Parameters
    ----------
    omega : ndarray, shape (triples, parts)
        Masses of the parts under the blanket omega, to a few ulps.
    likely : ndarray of int64, shape (triples, parts, 3)
        Whole numbers from 0 to ``whole``, by triple, part and record.
    whole : int
        Denominator of ``likely``, from 1 to 2^20.
    """

    omega: NDArray[np.float64]
    likely: NDArray[np.int64]
    whole: int


@runtime_checkable
class ListsPlaces(Protocol):
    """A family over infinitely many records whose worst triples of records are a finite list."""

    def worst_places(self, epsilon0: float) -> LikelyShares:
        """Return a finite list of triples of records that contains the worst one, at epsilon0 (nats).

        For every convex homogeneous phi the largest sum of phi(R(x0), R(x1), R(x2)) over all reports is that of a
        listed triple.
        """
        ...


@runtime_checkable
class LocalRandomizer(RandomizerLaw, Protocol):
    """A family of local randomizers indexed by the personal budget epsilon0 (nats), which can be run.

    `channel` is the one statement of the law; sampler, analyzer, accountant and tests agree with it.
    """

    def channel(self, epsilon0: float) -> NDArray[np.float64]:
        """Return the row-stochastic matrix P(output | input) at one budget (nats), shape (inputs, outputs)."""
        ...

    def randomize(self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness) -> NDArray[np.int64]:
        """Return one report per record, shape (n,), each drawn with its own budget.

        Parameters
        ----------
        records : array_like, shape (n,)
            The records.
        epsilon0 : float or array_like, shape (n,)
            Local budgets, nats; one for all, or one each.
        random : Randomness
            Source of the noise.
        """
        ...


class SupportLaw(NamedTuple):
    """The chances that a report supports its own record's category, and another category, as actually drawn.

    A report *supports* the categories that it makes more likely; the chances include the sampler's rounding.

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
    """A family whose reports support categories, for frequency estimates ("pure" in Wang et al. 2017, Definition 2).

    Every category is supported with chance p if it is the record and with chance q if it is not, and pairs (p, q) are
    all an unbiased frequency estimate needs: (support counts - sum q) / (sum p - q).
    """

    @property
    def k(self) -> int:
        """Number of categories; records are the whole numbers 0, ..., k - 1."""
        ...

    def for_budgets(self, epsilon0: ArrayLike, counts: ArrayLike) -> FrequencyOracle:
        """Return the member of the family whose reports have one shape for all these budgets.

        epsilon0 are budgets in nats, counts the numbers of users with each. The family itself is returned if its
        reports have the same shape at every budget. Otherwise the shape (range of the hash, size of the subset) is
        fixed to that of least predicted variance over the population: a mixture family, whose users hide each other
        across budgets.
        """
        ...

    def randomize(self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness) -> NDArray[Any]:
        """Return one report per record, first axis n, each drawn with its own budget.

        Parameters
        ----------
        records : array_like of int, shape (n,)
            Categories, 0..k-1.
        epsilon0 : float or array_like, shape (n,)
            Local budgets, nats; one for all, or one each.
        random : Randomness
            Source of the noise.
        """
        ...

    def support_law(self, epsilon0: ArrayLike) -> SupportLaw:
        """Return the chances (p, q) of support as actually drawn, at each budget (nats)."""
        ...

    def support_counts(self, reports: NDArray[Any], weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return for each category the sum of the weights of the reports that support it, shape (k,).

        Without weights every report counts 1, and the counts are exact.
        """
        ...


@runtime_checkable
class SumsSupports(Protocol):
    """A family whose summed reports tell, for each record x, how many reports lie in the set A_x that x makes likely.

    `FrequencyOracle` has this property as well; `RandomizerLaw.pair_counts` is then about A_x0 and A_x1.
    """

    @property
    def sums_supports(self) -> str:
        """What the released sum counts, as words for a message."""
        ...


class NumberLaw(NamedTuple):
    """Mean and variance of a report's value given a number, as drawn: E(value | t) = offset + slope t.

    t = (x - low)/(high - low) in [0, 1] is the position of the number x in its range.

    Parameters
    ----------
    offset, slope : ndarray, shape of the budgets
        Intercept and slope of the mean; slope >= 0, and 0 where the report carries no information.
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
    """A family that randomizes a number in [low, high], and whose reports have a value linear in it in the mean."""

    @property
    def name(self) -> str:
        """Name of the family as the command line spells it, such as ``"one-bit"``."""
        ...

    @property
    def low(self) -> float:
        """Lower end of the public range of the numbers."""
        ...

    @property
    def high(self) -> float:
        """Upper end of the public range of the numbers."""
        ...

    def randomize(
        self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness, *, delta0: ArrayLike = 0.0
    ) -> NDArray[np.int64]:
        """Return one integer report per number, shape (n,), each drawn with its own local budget.

        Parameters
        ----------
        records : array_like of float, shape (n,)
            Numbers in [low, high].
        epsilon0, delta0 : float or array_like, shape (n,)
            Local budgets, epsilon0 in nats and delta0 in [0, 1); one for all, or one each.
        random : Randomness
            Source of the noise.
        """
        ...

    def report_values(self, reports: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the value of each report, shape (n,), read alike at all budgets; its mean is linear in the number."""
        ...

    def number_law(self, epsilon0: ArrayLike, delta0: ArrayLike = 0.0) -> NumberLaw:
        """Return mean and variance of a report's value given the number, as drawn, at each budget."""
        ...


AnyLaw = RandomizerLaw | NoiseLaw
"""Randomizers that `Setting` accepts besides "any"."""
