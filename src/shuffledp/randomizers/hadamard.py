"""Hadamard response: one random bit of the record's row of a Hadamard matrix, by randomized response."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from shuffledp.randomizers.checks import MAX_SIZE, local_budgets, whole_number
from shuffledp.randomizers.two_level import TwoLevelFamily, TwoLevelLaw


@dataclass(frozen=True)
class HadamardResponse(TwoLevelFamily):
    """Hadamard response over k categories: a random column j, and the sign there of the record's row.

    H is Sylvester's matrix of order K, the next power of two above k: H[a, j] = (-1)^(number of ones in a AND j).
    A record x has row x + 1 (row 0 is constant). The report is (j, b): j uniform on 0..K-1, and b the sign
    H[x+1, j] kept with chance e^epsilon0/(1 + e^epsilon0), else turned. Exactly epsilon0-LDP.

    omega is uniform on the 2K reports, A_x = {(j, H[x+1, j])}: one for every budget, a mixture family. Rows are
    orthogonal, so two records agree on exactly half of the columns: the law of hashing with g = 2.

    Parameters
    ----------
    k : int
        Number of categories, from 2 to 1e9.

    Raises
    ------
    InvalidInput
        If k is not a whole number in that range.

    Examples
    --------
    >>> HadamardResponse(4).order
    8
    """

    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole_number(self.k, "Hadamard response takes a whole number k", 2, MAX_SIZE))

    @property
    def name(self) -> str:
        """``"hadamard:K"``."""
        return f"hadamard:{self.k}"

    @property
    def mixture(self) -> bool:
        """One blanket, uniform on columns and signs, for every budget."""
        return True

    @property
    def order(self) -> int:
        """Number K of columns: the smallest power of two above k."""
        return 1 << self.k.bit_length()

    def law(self, epsilon0: ArrayLike) -> TwoLevelLaw:
        """Return the law of any pair of inputs.

        Rows form a group, so for a third record x2 the products H[x0] H[x1] and H[x0] H[x2] are two more rows,
        orthogonal: on the columns that separate x0 and x1, x2 sides with either on half of them.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        return TwoLevelLaw.of(local_budgets(epsilon0), 1.0, 1.0, 1.0)

    def triple_weights(self, epsilon0: float) -> tuple[float, float, float, float]:
        """Three rows and the sign: all eight patterns are alike, even if one row is the product of the others."""
        del epsilon0
        return 1.0, 1.0, 1.0, 1.0
