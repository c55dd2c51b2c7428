"""The hybrid of piecewise mechanism and one bit, with the least variance in the worst case."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.rounded import exp_rounded, interpolated, logs_rounded
from shuffledp.randomizers.checks import local_budgets, population, whole_number
from shuffledp.randomizers.windows import WHOLE, Shape, WindowFamily, best_member

_BEST = np.array(
    [
        (0.61, 0.4349, 0.7246, 0.4888),
        (0.8, 0.425, 0.6442, 0.4817),
        (1.0, 0.4144, 0.5639, 0.473),
        (1.25, 0.4009, 0.4713, 0.4603),
        (1.5, 0.387, 0.3886, 0.446),
        (2.0, 0.3582, 0.2552, 0.4136),
        (2.5, 0.3286, 0.1618, 0.3778),
        (3.0, 0.2987, 0.1003, 0.3409),
        (3.5, 0.2692, 0.06139, 0.3042),
        (4.0, 0.2407, 0.03731, 0.269),
        (5.0, 0.1884, 0.01368, 0.2059),
        (6.0, 0.144, 0.005005, 0.1544),
        (7.0, 0.1082, 0.001836, 0.1145),
        (8.0, 0.08023, 0.0006731, 0.08344),
        (9.0, 0.05892, 0.0002472, 0.06065),
        (10.0, 0.04297, 9.088e-05, 0.0439),
        (12.0, 0.02255, 1.229e-05, 0.0228),
        (14.0, 0.01171, 1.663e-06, 0.01178),
        (17.0, 0.00434, 8.28e-08, 0.004348),
        (20.0, 0.001601, 4.122e-09, 0.001596),
        (25.0, 0.0003028, 2.742e-11, 0.000319),
    ]
)
"""Rows of budget, window over cells, share of the bits in omega, and distance of a bit's readings from the ends over
cells (of both together), with the least worst-case variance at that budget. Between them the logarithms of the last
three are interpolated. Only the error depends on it; tests compare it with a fresh minimisation."""


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
        Window (1 to K - 1 cells), share of the cells (0 to 2^24, in units of 2^-24) and inset of a bit's readings
        (0 to K/2 - 1 cells), the same for every budget: a mixture family. By default the best ones for each budget.

    Raises
    ------
    InvalidInput
        If an end is not finite, low >= high, the width overflows, or a whole number is out of range.

    Examples
    --------
    >>> Hybrid(0, 10).shape([0.5, 2.0]).share.tolist()
    [0, 12495670]
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
            raise InvalidInput(f"a fixed shape is a window, a share and an inset; got {shown(self.fixed)}")
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
        at, cells = _BEST[:, 0], self.cells
        window, bits, inset = (exp_rounded(interpolated(budgets, at, logs)) for logs in logs_rounded(_BEST[:, 1:]).T)
        return Shape(
            np.clip(np.rint(window * cells), 1, cells // 2).astype(np.int64),
            np.where(budgets <= at[0], 0, np.rint((1.0 - bits) * WHOLE)).astype(np.int64),
            np.clip(np.rint(inset * (cells - 1) / 2.0), 0, cells // 2 - 1).astype(np.int64),
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
