"""Families whose report has two levels of likelihood: y is in the record's set A_x, or it is not.

    R(x)(y)/omega(y) = e^epsilon0 gamma on A_x, gamma elsewhere;  gamma = 1/(e^epsilon0 f + 1 - f),  f = omega(A_x).

R(x) is the law of the report y of record x, omega the blanket. f is the same for every record, so R(x) >= gamma omega
for every x whatever the sets are. A pair (x0, x1) has four cells: in A_x0 only, in A_x1 only (equal masses, as f is
common), in both, in neither. Randomized response, unary encoding, hashing, Hadamard response and subset selection are
of this kind (docs/theorems/randomizers.md).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.numerics.interval import FloatArray
from shuffledp.randomizers.base import PairBlanket, PairCounts, Triples
from shuffledp.randomizers.checks import one_budget


@dataclass(frozen=True, eq=False)
class TwoLevelLaw:
    """The report laws R(x0), R(x1) of a pair of inputs at each budget; every entry to a few ulps of itself.

    A_x is the set of reports that input x makes likely, omega the blanket.

    Parameters
    ----------
    gamma : ndarray
        Blanket mass; also R(x)/omega outside A_x.
    top : ndarray
        R(x)/omega on A_x: e^epsilon0 gamma.
    only, both, neither : ndarray
        omega-masses of the outputs in A_x0 but not in A_x1 (and of those in A_x1 but not in A_x0), in both, in
        neither: 2 only + both + neither = 1.
    """

    gamma: FloatArray
    top: FloatArray
    only: FloatArray
    both: FloatArray
    neither: FloatArray

    @classmethod
    def of(cls, epsilon0: FloatArray, only: ArrayLike, both: ArrayLike, neither: ArrayLike) -> TwoLevelLaw:
        """Return the law of a pair of inputs from the masses of its cells, in any common unit.

        Parameters
        ----------
        epsilon0 : ndarray
            Checked local budgets, nats.
        only, both, neither : array_like
            The cells' omega-masses in any common unit, each to a few ulps, at least 0; broadcast with epsilon0.
        """
        weights = (np.asarray(weight, dtype=np.float64) for weight in (only, both, neither))
        decay, one, two, none = np.broadcast_arrays(np.exp(-epsilon0), *weights)
        inside, outside = one + two, one + none
        # in e^-epsilon0, so that nothing overflows; sums of positive terms, so that nothing cancels
        whole = inside + outside
        top = whole / (inside + outside * decay)
        return cls(np.minimum(top * decay, 1.0), top, one / whole, two / whole, none / whole)


def _pair(law: TwoLevelLaw, epsilon0: float) -> PairBlanket:
    """Return the pair at one budget; cells without mass are left out.

    A mass that underflows is of a cell with loss 0, on which R0 - e^eps R1 <= 0: leaving it out costs nothing.
    """
    top, low = float(law.top), float(law.gamma)
    cells = np.array(
        [
            (float(law.only), top, low, epsilon0),
            (float(law.only), low, top, -epsilon0),
            (float(law.both), top, top, 0.0),
            (float(law.neither), low, low, 0.0),
        ]
    )
    masses, ratios0, ratios1, losses = cells[cells[:, 0] > 0.0].T.copy()
    return PairBlanket(low, masses, ratios0, ratios1, losses)


def third_record(epsilon0: float, weights: tuple[float, float, float, float]) -> PairBlanket:
    """Return the laws of two records x0, x1 relative to the report of a third record x2, with gamma = 1.

    R(x0)/R(x2) = e^(epsilon0 (1_A0 - 1_A2)), cell by cell, where 1_Ab says whether the report is in the set of x_b.

    Parameters
    ----------
    epsilon0 : float
        Local budget, nats, from 0 to 700.
    weights : tuple of float
        Masses of outputs in none, in a given one, two, all of three records' sets (`TwoLevelFamily.triple_weights`).
    """
    cells: dict[tuple[int, int], float] = {}
    for a0, a1, a2 in product((0, 1), repeat=3):
        mass = weights[a0 + a1 + a2] * math.exp(epsilon0 * (a2 - 1))  # R(x2), in units of e^epsilon0 gamma omega
        cells[a0 - a2, a1 - a2] = cells.get((a0 - a2, a1 - a2), 0.0) + mass
    steps = np.array([cell for cell, mass in cells.items() if mass > 0.0], dtype=np.float64)
    masses = np.array([mass for mass in cells.values() if mass > 0.0])
    with np.errstate(over="ignore"):
        ratios = np.exp(epsilon0 * steps)
    losses = epsilon0 * (steps[:, 0] - steps[:, 1])
    return PairBlanket(1.0, masses / math.fsum(masses.tolist()), ratios[:, 0], ratios[:, 1], losses)


class TwoLevelFamily(ABC):
    """A family with two levels of likelihood over k categories; a subclass states how the records' sets overlap."""

    k: int

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the family as the command line spells it."""

    @property
    @abstractmethod
    def mixture(self) -> bool:
        """Whether one privacy blanket serves every budget, that is, the sets A_x are the same at all budgets."""

    @property
    def two_point(self) -> bool:
        """Whether two records differ on two outcomes and no other exists: False unless a subclass states it."""
        return False

    @property
    def triples(self) -> Triples | None:
        """Overlap of any three records' sets of likely reports, one of `Triples`; None unless a subclass states it.

        With a statement an upper bound may be derived from triples, not only an attack.
        """
        return None

    @abstractmethod
    def law(self, epsilon0: ArrayLike) -> TwoLevelLaw:
        """Return the report laws of the worst pair of inputs, at each budget.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """

    def check_budgets(self, epsilon0: ArrayLike, delta0: ArrayLike) -> None:
        """Accept every local budget: reports are (epsilon0, 0)-LDP, which satisfies any delta0 as well."""
        del epsilon0, delta0

    def pair_blankets(self, epsilon0: float) -> tuple[PairBlanket, ...]:
        """Return the worst pair of inputs, which is its own mirror image, relative to the blanket omega.

        Parameters
        ----------
        epsilon0 : float
            Local budget, nats, from 0 to 700.

        Raises
        ------
        InvalidInput
            If the budget is not from 0 to 700.
        """
        budget = one_budget(epsilon0)
        return (_pair(self.law(budget), budget),)

    def blanket_mass(self, epsilon0: ArrayLike) -> FloatArray:
        """Return the blanket mass gamma at each budget: the chance of a report that is a draw of omega.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.

        Returns
        -------
        ndarray, shape of epsilon0
            Gamma, each entry to a few ulps.
        """
        return self.law(epsilon0).gamma

    def pair_counts(self, epsilon0: ArrayLike) -> PairCounts | None:
        """Return the chances of the two cells that separate x0 from x1, in A_x0 only and in A_x1 only.

        None for k = 2, as there is no third record.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        if self.k == 2:
            return None
        law = self.law(epsilon0)
        neither = law.both * law.top + law.neither * law.gamma
        return PairCounts(law.only * law.top, law.only * law.gamma, neither, self.third(law, epsilon0))

    @abstractmethod
    def triple_weights(self, epsilon0: float) -> tuple[float, float, float, float]:
        """Return the omega-masses of the outputs in none, in just a given one, two, and all three of A_x0, A_x1, A_x2.

        The masses are in any common unit, for three different records; which set or sets are given does not matter.
        """

    def witness_pairs(self, epsilon0: float) -> tuple[PairBlanket, PairBlanket] | None:
        """Return the attack on x0 and x1 among users who hold a third record, which certifies a lower bound.

        The pair is the same in both orders, by symmetry; None for k = 2.

        Parameters
        ----------
        epsilon0 : float
            Local budget, nats, from 0 to 700.
        """
        if self.k == 2:
            return None
        pair = self.triple(epsilon0)
        return pair, pair

    def triple(self, epsilon0: float) -> PairBlanket:
        """Return the laws of two records relative to the report of a third one, from `triple_weights`.

        Parameters
        ----------
        epsilon0 : float
            Local budget, nats, from 0 to 700.
        """
        budget = one_budget(epsilon0)
        return third_record(budget, self.triple_weights(budget))

    def share(self, epsilon0: float) -> float:
        """Return f = omega(A_x), the chance under the blanket of the reports that a record makes likely; in (0, 1).

        Parameters
        ----------
        epsilon0 : float
            Local budget, nats, from 0 to 700.
        """
        law = self.law(one_budget(epsilon0))
        return float(law.only + law.both)

    def third(self, law: TwoLevelLaw, epsilon0: ArrayLike) -> FloatArray:
        """Return P(report in A_x0 but not in A_x1 | x2) for a third record x2, at each budget.

        As under omega, since A_x2 is independent of that cell; a subclass where it is not overrides this.
        """
        del epsilon0
        return law.only
