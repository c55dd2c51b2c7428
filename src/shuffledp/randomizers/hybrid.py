"""The hybrid of piecewise mechanism and one bit, with the least variance in the worst case."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import InvalidInput
from shuffledp.randomizers.checks import local_budgets, population, whole_number
from shuffledp.randomizers.windows import WHOLE, Shape, WindowFamily, best_member

_BEST = np.array(
    [
        (0.61, 0.4349, 0.2754, 0.5112),
        (0.7, 0.4303, 0.314, 0.5144),
        (0.8, 0.425, 0.3558, 0.5183),
        (0.9, 0.4198, 0.3966, 0.5225),
        (1.0, 0.4144, 0.4361, 0.527),
        (1.2, 0.4036, 0.5109, 0.537),
        (1.4, 0.3926, 0.5795, 0.5481),
        (1.7, 0.3756, 0.6699, 0.5664),
        (2.0, 0.3582, 0.7448, 0.5864),
        (2.4, 0.3346, 0.8224, 0.6148),
        (2.8, 0.3107, 0.8783, 0.6443),
        (3.3, 0.281, 0.9252, 0.6813),
        (4.0, 0.2407, 0.9627, 0.731),
        (5.0, 0.1884, 0.9863, 0.7941),
        (6.0, 0.144, 0.995, 0.8456),
        (8.0, 0.0802, 0.9993, 0.9166),
        (10.0, 0.043, 0.9999, 0.9561),
        (13.0, 0.0163, 1.0, 1.0),
        (17.0, 0.00434, 1.0, 1.0),
        (21.0, 0.001148, 1.0, 1.0),
        (25.0, 0.000303, 1.0, 1.0),
    ]
)
"""Rows of budget, window over cells, share of the cells in omega, and distance of a bit's two readings over cells, with
the least worst-case variance at that budget. Between them one interpolates over the logarithm of the budget, the window
by its logarithm. Only the error depends on it; tests compare it with a fresh minimisation."""


@dataclass(frozen=True)
class Hybrid(WindowFamily):
    """Report a cell near the value, or one bit about it (Wang et al. 2019, with shares and widths of least variance).

    The report says which of the two it is. Omega gives a cell with chance beta, else a bit, and outputs that fit the
    value, of either kind, are e^epsilon0 times likelier than under omega to the same constant: so the hybrid is one
    family of two levels of likelihood, exactly epsilon0-LDP. Below epsilon0 = 0.6 it is the one-bit mechanism. Its
    worst variance is 0.5 % below the paper's at epsilon0 = 1, 6 % at 2, 29 % at 4.

    Parameters
    ----------
    low, high : float
        The range of the values, finite, low < high. It is public: choose it without looking at the records.
    cells : int
        K, from 4 to 2^20; an odd one is raised by one. Default 4096.
    fixed : tuple of int, optional
        Window (1 to K - 1 cells), share of the cells (0 to 65536, in units of 1/65536) and inset of a bit's readings
        (0 to K/2 - 1 cells), the same for every budget: a mixture family. By default the best ones for each budget.

    Raises
    ------
    InvalidInput
        If an end is not finite, low >= high, the width overflows, or a whole number is out of range.

    Examples
    --------
    >>> Hybrid(0, 10).shape([0.5, 2.0]).share.tolist()
    [0, 48810]
    """

    low: float
    high: float
    cells: int = 4096
    fixed: tuple[int, int, int] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fixed is None:
            return
        if len(self.fixed) != 3:
            raise InvalidInput(f"a fixed shape is a window, a share and an inset; got {self.fixed!r}")
        most = (("window", 1, self.cells - 1), ("share", 0, WHOLE), ("inset", 0, self.cells // 2 - 1))
        parts = zip(self.fixed, most, strict=True)
        checked = tuple(whole_number(part, f"the hybrid takes a whole {what}", *ends) for part, (what, *ends) in parts)
        object.__setattr__(self, "fixed", checked)

    @property
    def name(self) -> str:
        """``"hybrid:K"``, or ``"hybrid:K:W:B:C"`` with a fixed shape."""
        return f"hybrid:{self.cells}" + "".join(f":{part}" for part in self.fixed or ())

    @property
    def mixture(self) -> bool:
        """Whether the shape is the same for every budget."""
        return self.fixed is not None

    def shape(self, epsilon0: ArrayLike) -> Shape:
        """Return the shape of the reports at each budget.

        Parameters
        ----------
        epsilon0 : array_like
            Local budgets, nats, from 0 to 700.
        """
        budgets = local_budgets(epsilon0)
        if self.fixed is not None:
            return Shape(*(np.full(budgets.shape, part) for part in self.fixed))
        at, *columns = _BEST.T
        place = np.log(np.clip(budgets, at[0], at[-1]))
        columns[0] = np.log(columns[0])
        window, share, spread = (np.interp(place, np.log(at), column) for column in columns)
        cells = self.cells
        return Shape(
            np.clip(np.rint(np.exp(window) * cells), 1, cells // 2).astype(np.int64),
            np.where(budgets <= at[0], 0, np.rint(share * WHOLE)).astype(np.int64),
            np.clip(np.rint((1.0 - spread) * (cells - 1) / 2.0), 0, cells // 2 - 1).astype(np.int64),
        )

    def for_budgets(self, epsilon0: ArrayLike, counts: ArrayLike) -> Hybrid:
        """Return the member with one shape for all these budgets, of the least error in their mean.

        Parameters
        ----------
        epsilon0, counts : array_like, shape (levels,)
            Local budgets, nats from 0 to 700, and how many users have each.
        """
        if self.fixed is not None:
            return self
        budgets, users = population(epsilon0, counts)
        return replace(self, fixed=best_member(self.cells, self.shape, budgets, users))
