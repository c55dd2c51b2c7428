"""Local hashing: hash the record to a small range, then randomized response on the range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InvalidInput
from shuffledp.randomizers.base import PairBlanket, PairCounts
from shuffledp.randomizers.checks import MAX_SIZE, local_budgets, whole_number
from shuffledp.randomizers.two_level import TwoLevelFamily, TwoLevelLaw

_OVERFLOWS = 25.0  # e^25 > MAX_SIZE


@dataclass(frozen=True)
class LocalHashing(TwoLevelFamily):
    """Local hashing over k categories: each user draws a hash h to g values, and reports (h, y).

    y is h(record) with chance e^epsilon0 s, and each other value with chance s = 1/(e^epsilon0 + g - 1): g-ary
    randomized response of the hashed record. omega is a random hash and a uniform value, gamma = g s, and A_x the
    reports (h, h(x)). Exactly epsilon0-LDP if some hash separates two records.

    How private the shuffled reports are depends on how often two records collide. *The fewer collisions, the less
    private*: a "universal" family, whose collision probability is at most 1/g, is on the wrong side.

    Parameters
    ----------
    k : int
        Number of categories, from 2 to 1e9.
    g : int, optional
        Range of the hash, from 2 to 1e9, one for every budget: a mixture family. By default it is the best one
        for each budget, round(e^epsilon0) + 1 (OLH: Wang, Blocki, Li, Jha 2017), at most 1e9; then the range tells the
        budget: no mixture family.
    collision : {"exact", "unknown"}
        "exact" (default): each of the g^k functions is equally likely, so that hashes of different records are
        independent and uniform; any two collide with probability exactly 1/g. "unknown": any family of hashes
        whatever, drawn independently of the records; counted as if records never collided.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> LocalHashing(1000).hash_range([0.0, 1.0, 3.0]).tolist()
    [2, 4, 21]
    """

    k: int
    g: int | None = None
    collision: Literal["exact", "unknown"] = "exact"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole_number(self.k, "local hashing takes a whole number k", 2, MAX_SIZE))
        if self.g is not None:
            object.__setattr__(self, "g", whole_number(self.g, "local hashing takes a whole range g", 2, MAX_SIZE))
        if self.collision not in ("exact", "unknown"):
            raise InvalidInput(f"collision must be 'exact' or 'unknown'; got {self.collision!r}")

    @property
    def name(self) -> str:
        """``"olh:K"``, or ``"olh:K:G"`` with a fixed range; ``":unknown"`` is appended for unknown collisions."""
        fixed = "" if self.g is None else f":{self.g}"
        return f"olh:{self.k}{fixed}{':unknown' if self.collision == 'unknown' else ''}"

    @property
    def mixture(self) -> bool:
        """Whether the range is fixed."""
        return self.g is not None

    def hash_range(self, epsilon0: ArrayLike) -> NDArray[np.int64]:
        """The range g of the hash at each budget.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        budgets = local_budgets(epsilon0)
        if self.g is not None:
            return np.full(budgets.shape, self.g, dtype=np.int64)
        best = np.rint(np.exp(np.minimum(budgets, _OVERFLOWS))) + 1.0
        return np.minimum(best, MAX_SIZE).astype(np.int64)

    def law(self, epsilon0: ArrayLike) -> TwoLevelLaw:
        """Return the law of any pair of inputs; for unknown collisions, of a pair that never collides.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        others = self.hash_range(epsilon0) - 1.0
        if self.collision == "unknown":
            return TwoLevelLaw.of(local_budgets(epsilon0), 1.0, 0.0, others - 1.0)
        # per hash and value, times g^2: (h0, h1) differ with chance (g-1)/g, and y is h0 with chance 1/g
        return TwoLevelLaw.of(local_budgets(epsilon0), others, 1.0, others * others)

    def triple_weights(self, epsilon0: float) -> tuple[float, float, float, float]:
        """Of all functions, each of three records has the reported value with chance 1/g, independently."""
        others = float(self.hash_range(epsilon0)) - 1.0
        return others**3, others**2, others, 1.0

    def witness_pairs(self, epsilon0: float) -> tuple[PairBlanket, PairBlanket] | None:
        """As for every family of this kind; None if the hashes are unknown, whose chances are, too."""
        return None if self.collision == "unknown" else super().witness_pairs(epsilon0)

    def pair_counts(self, epsilon0: ArrayLike) -> PairCounts | None:
        """As for every family of this kind; None if the hashes are unknown, whose chances are, too."""
        return None if self.collision == "unknown" else super().pair_counts(epsilon0)
