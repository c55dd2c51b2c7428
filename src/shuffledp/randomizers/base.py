"""What every local randomizer states about itself, once: its law, and the blanket that hides it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from shuffledp.numerics.randomness import Randomness


@dataclass(frozen=True, eq=False)
class PairBlanket:
    """A randomizer's worst pair of inputs (x0, x1) seen against its common blanket omega.

    R(x)(y) >= gamma * omega(y) for every input x and output y; omega is the same for every budget of the
    family ("mixture family": R_eps(x) = gamma(eps) omega + (1 - gamma(eps)) mu_x), so users with
    different budgets hide each other. Outputs on which both ratios agree are merged into one cell.

    Parameters
    ----------
    gamma : float
        Blanket mass in [0, 1]; decreasing in epsilon0, computed to a few ulps.
    masses : ndarray, shape (cells,)
        omega-mass of each cell, summing to 1.
    ratios0, ratios1 : ndarray, shape (cells,)
        R(x0)/omega and R(x1)/omega on each cell.
    losses : ndarray, shape (cells,)
        log(R(x0)/R(x1)) on each cell, exactly: a difference of the ratios would lose small budgets.
    """

    gamma: float
    masses: NDArray[np.float64]
    ratios0: NDArray[np.float64]
    ratios1: NDArray[np.float64]
    losses: NDArray[np.float64]

    @property
    def two_point(self) -> bool:
        """Whether every output separates x0 from x1 into exactly two outcomes (binary: the clone pair, 2a)."""
        return self.masses.size == 2


@runtime_checkable
class LocalRandomizer(Protocol):
    """A family of local randomizers indexed by the personal budget epsilon0 (nats).

    `channel` is the one statement of the law; sampler, analyzer, accountant and tests agree with it.
    """

    @property
    def name(self) -> str:
        """The name the command line uses, such as ``"krr:10"``."""
        ...

    def channel(self, epsilon0: float) -> NDArray[np.float64]:
        """Row-stochastic matrix, shape (inputs, outputs): P(output | input) at that budget."""
        ...

    def pair_blanket(self, epsilon0: float) -> PairBlanket:
        """The worst pair of inputs against the family's common blanket."""
        ...

    def blanket_mass(self, epsilon0: ArrayLike) -> NDArray[np.float64]:
        """Gamma at each budget, shape of epsilon0; to a few ulps."""
        ...

    def randomize(self, records: ArrayLike, epsilon0: ArrayLike, random: Randomness) -> NDArray[np.int64]:
        """One report per record, shape (n,), each with its own budget (scalar or shape (n,))."""
        ...
