"""Subset selection: report a random subset of the categories, which likely contains the record."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.numerics.interval import FloatArray
from shuffledp.randomizers.checks import MAX_SIZE, local_budgets, whole_number
from shuffledp.randomizers.two_level import TwoLevelFamily, TwoLevelLaw


@dataclass(frozen=True)
class SubsetSelection(TwoLevelFamily):
    """Subset selection over k categories: a subset of d categories, e^epsilon0 times likelier if it has the record.

    The record is in the subset with chance d e^epsilon0/(d e^epsilon0 + k - d); the other members are a uniformly
    random choice. Exactly epsilon0-LDP (Ye and Barg 2018). omega is uniform on the subsets of d categories, and
    A_x those that contain x: gamma omega is the least likely law of every subset, so nothing of the blanket is given
    away. d = 1 is k-ary randomized response.

    Parameters
    ----------
    k : int
        Number of categories, from 2 to 1e9.
    size : int, optional
        The size d of the subset, from 1 to k - 1, one for every budget: a mixture family. By default it is the
        best one for each budget, k/(e^epsilon0 + 1) rounded, at least 1; then the size tells the budget: no
        mixture family (unless k is 2 or 3, when it is always 1).

    Raises
    ------
    InvalidInput
        If a parameter is not a whole number in its range.

    Examples
    --------
    >>> SubsetSelection(100).subset_size([0.0, 1.0, 5.0]).tolist()
    [50, 27, 1]
    """

    k: int
    size: int | None = None

    def __post_init__(self) -> None:
        k = whole_number(self.k, "subset selection takes a whole number k", 2, MAX_SIZE)
        object.__setattr__(self, "k", k)
        if self.size is not None:
            what = "subset selection takes a whole size"
            object.__setattr__(self, "size", whole_number(self.size, what, 1, k - 1))

    @property
    def name(self) -> str:
        """``"subset:K"``, or ``"subset:K:D"`` with a fixed size."""
        return f"subset:{self.k}" if self.size is None else f"subset:{self.k}:{self.size}"

    @property
    def mixture(self) -> bool:
        """Whether the size is the same for every budget."""
        return self.size is not None or int(self.subset_size(0.0)) == 1

    @property
    def two_point(self) -> bool:
        """Whether there are two categories: then it is binary randomized response."""
        return self.k == 2

    def subset_size(self, epsilon0: ArrayLike) -> NDArray[np.int64]:
        """The size d of the subset at each budget.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        budgets = local_budgets(epsilon0)
        if self.size is not None:
            return np.full(budgets.shape, self.size, dtype=np.int64)
        decay = np.exp(-budgets)
        best = np.rint(self.k * (decay / (1.0 + decay)))
        return np.clip(best, 1, self.k // 2).astype(np.int64)

    def law(self, epsilon0: ArrayLike) -> TwoLevelLaw:
        """Return the law of any pair of inputs (a permutation of categories maps each onto every other).

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        # numbers of subsets, over C(k, d)/(k (k-1))
        d = self.subset_size(epsilon0).astype(np.float64)
        rest = self.k - d
        return TwoLevelLaw.of(local_budgets(epsilon0), d * rest, d * (d - 1.0), rest * (rest - 1.0))

    def triple_weights(self, epsilon0: float) -> tuple[float, float, float, float]:
        """Numbers of subsets with none, one, two, three of three given categories, over C(k, d)/(k (k-1) (k-2))."""
        d = float(self.subset_size(epsilon0))
        rest = self.k - d
        return (
            rest * (rest - 1.0) * (rest - 2.0),
            d * rest * (rest - 1.0),
            d * (d - 1.0) * rest,
            d * (d - 1.0) * (d - 2.0),
        )

    def third(self, law: TwoLevelLaw, epsilon0: ArrayLike) -> FloatArray:
        """P(x0 in, x1 not | x2): under omega x2 takes one of d - 1 places in, or k - d - 1 out, of k - 2."""
        d = self.subset_size(epsilon0)
        return law.only * (law.top * ((d - 1) / (self.k - 2)) + law.gamma * ((self.k - d - 1) / (self.k - 2)))
