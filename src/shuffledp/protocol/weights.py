"""How reports of different budgets are weighted, and for how many people of equal weight they stand then.

**A few people may carry an estimate.** With weights w_i of the people, which add up to 1, an estimate tells of the
people what a sample of 1/sum w_i^2 of them would (Kish 1965). Two loud people among a thousand quiet ones are a sample
of two, and what such a sample says of its own variance is worth little: where both are alike it says that there is
none. So before a share, a mean or a mean square of the people enters a variance, it is shrunk as if `SMOOTHING` more
people had come, half from each end of its range (Agresti and Coull 1998). For two people that is nearly the largest
variance there can be; for a thousand it is nothing.
"""

from __future__ import annotations

from typing import Literal

Weights = Literal["population", "precision"]
WEIGHTS: tuple[Weights, ...] = ("population", "precision")

SMOOTHING = 4.0
"""People added before an estimate enters its own variance."""


def effective_number(total: float, squares: float) -> float:
    """Return how many people of equal weight tell as much: (sum w)^2 / sum w^2, from 1 to their number.

    Parameters
    ----------
    total, squares : float
        Sum of weights that are not negative, and of their squares, positive.

    Examples
    --------
    >>> effective_number(3.0, 3.0), effective_number(1.0, 1.0)
    (3.0, 1.0)
    """
    return total**2 / squares
