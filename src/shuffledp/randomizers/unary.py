"""Unary encoding: one bit per category, each reported with noise of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray
from shuffledp.randomizers.checks import MAX_SIZE, local_budgets, whole_number
from shuffledp.randomizers.two_level import TwoLevelFamily, TwoLevelLaw


class BitChances(NamedTuple):
    """Chances of a 1, shape of the budgets asked for, each to a few ulps.

    Parameters
    ----------
    own : ndarray
        p, for the record's own bit.
    other : ndarray
        q < p, for every other bit; e^epsilon0 = p (1-q) / (q (1-p)).
    """

    own: FloatArray
    other: FloatArray


@dataclass(frozen=True)
class UnaryEncoding(TwoLevelFamily):
    """Unary encoding over k categories: k independent bits, 1 with chance p on the record's place, else q.

    Symmetric (SUE, Google's basic RAPPOR): p = 1/(1 + e^{-epsilon0/2}), q = 1 - p. Optimized (OUE): p = 1/2,
    q = 1/(e^epsilon0 + 1), the least variance for frequencies (Wang, Blocki, Li, Jha 2017). Both are exactly
    epsilon0-LDP. The chances depend on the budget, so reports give their sender's level away: no mixture family.

    omega is k independent bits of chance q, A_x the vectors with a 1 on the place of x: gamma omega is the least
    likely law of every vector but the all-ones one, on which some blanket is given away. For k = 2 nothing is
    given away: omega is the smaller of the two laws, and A_x the vector with that bit only.

    Parameters
    ----------
    k : int
        Number of categories, from 2 to 1e9.
    optimized : bool
        OUE (default), or SUE.

    Raises
    ------
    InvalidInput
        If k is not a whole number in that range, or ``optimized`` not a bool.

    Examples
    --------
    >>> UnaryEncoding(10).name, UnaryEncoding(10, optimized=False).name
    ('oue:10', 'sue:10')
    >>> UnaryEncoding(10, optimized=False).chances(0.0).own.tolist()
    0.5
    """

    k: int
    optimized: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole_number(self.k, "unary encoding takes a whole number k", 2, MAX_SIZE))
        if self.optimized is not True and self.optimized is not False:
            raise InvalidInput(f"optimized must be True (OUE) or False (SUE); got {self.optimized!r}")

    @property
    def name(self) -> str:
        """``"oue:K"`` or ``"sue:K"``."""
        return f"{'oue' if self.optimized else 'sue'}:{self.k}"

    @property
    def mixture(self) -> bool:
        """False: the chances of other bits tell the budget."""
        return False

    def chances(self, epsilon0: ArrayLike) -> BitChances:
        """Chances of a 1 at each budget.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        odds = self._odds(local_budgets(epsilon0))
        other = odds / (1.0 + odds)
        return BitChances(np.full_like(other, 0.5) if self.optimized else 1.0 / (1.0 + odds), other)

    def law(self, epsilon0: ArrayLike) -> TwoLevelLaw:
        """Return the law of any pair of inputs (a permutation of places maps each onto every other).

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        budgets = local_budgets(epsilon0)
        odds = self._odds(budgets)
        if self.k == 2:
            # min(R0, R1) of the vectors 10, 01, and 11 and 00 together, over that of 00: odds, odds, E odds^2 + 1
            both = np.exp(-budgets) if self.optimized else np.ones_like(budgets)
            return TwoLevelLaw.of(budgets, odds, 0.0, 1.0 + both)
        return TwoLevelLaw.of(budgets, odds, odds * odds, 1.0)

    def triple_weights(self, epsilon0: float) -> tuple[float, float, float, float]:
        """Three independent bits of chance q each."""
        odds = float(self._odds(np.asarray(epsilon0)))
        return 1.0, odds, odds**2, odds**3

    def _odds(self, budgets: FloatArray) -> FloatArray:
        """q/(1 - q)."""
        return np.exp(-budgets if self.optimized else -0.5 * budgets)
