"""What every local randomizer states about itself, once: its law, and the blanket that hides it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
        log(R(x0)/R(x1)) of each cell, exactly: a difference of the ratios would lose small budgets.
    spread : CellSpread, optional
        Of a continuous law, how far it varies inside the cells; None for a discrete one.
    """

    gamma: float
    masses: NDArray[np.float64]
    ratios0: NDArray[np.float64]
    ratios1: NDArray[np.float64]
    losses: NDArray[np.float64]
    spread: CellSpread | None = None


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


AnyLaw = RandomizerLaw | NoiseLaw
"""What `Setting` accepts besides "any"."""
