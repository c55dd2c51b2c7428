"""The trusted shuffler: it takes away who sent what, and, if levels are withheld, at which budget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.setting import Seen

SHUFFLED: tuple[Seen, ...] = ("reports", "levels", "sum")


@dataclass(frozen=True, eq=False)
class ShuffledReports:
    """What the analyzer receives, and all it receives.

    Parameters
    ----------
    reports : ndarray of int64, shape (n,)
        In uniformly random order; read-only.
    epsilons : ndarray, shape (n,)
        Local budgets (nats); read-only. Seen "levels": entry i is the budget of report i. Otherwise the
        budgets are in a random order of their own, so that they say what the budgets are, and not whose.
    seen : {"reports", "levels", "sum"}
        Who sees what. Under "sum" an analyzer uses nothing but the counts of the reports.
    """

    reports: NDArray[np.int64]
    epsilons: FloatArray
    seen: Seen

    def __post_init__(self) -> None:
        if self.seen not in SHUFFLED:
            raise InvalidInput(f"shuffled reports are seen as one of {', '.join(SHUFFLED)}; got {self.seen!r}")
        if self.reports.ndim != 1 or self.reports.shape != self.epsilons.shape:
            raise InvalidInput(
                f"reports need one budget each; got shapes {self.reports.shape} and {self.epsilons.shape}"
            )
        for name in ("reports", "epsilons"):
            locked = getattr(self, name).view()  # a view, so that the caller's own array stays writable
            locked.setflags(write=False)
            object.__setattr__(self, name, locked)

    @property
    def n(self) -> int:
        """Number of reports."""
        return self.reports.size


def shuffle_reports(reports: ArrayLike, epsilons: ArrayLike, *, seen: Seen, random: Randomness) -> ShuffledReports:
    """Permute the reports uniformly; the budgets with them, or separately.

    Parameters
    ----------
    reports : array_like of int, shape (n,)
        One report per user.
    epsilons : float or array_like, shape (n,)
        Local budgets, nats; one for all, or one each in the order of the reports.
    seen : {"reports", "levels", "sum"}
        "levels": budgets travel with their reports. "reports", "sum": budgets take a permutation of their
        own, independent of the reports' (GSPA Figure 1).
    random : Randomness
        Source of the permutations.

    Raises
    ------
    InvalidInput
        On an unknown `seen`, or different lengths.

    Examples
    --------
    >>> from shuffledp.numerics.randomness import secure_random
    >>> shuffled = shuffle_reports([0, 1, 1], [0.5, 1.0, 1.0], seen="reports", random=secure_random())
    >>> sorted(shuffled.reports.tolist()), sorted(shuffled.epsilons.tolist())
    ([0, 1, 1], [0.5, 1.0, 1.0])
    """
    sent = np.asarray(reports, dtype=np.int64)
    budgets = np.asarray(epsilons, dtype=np.float64)
    if sent.ndim != 1 or (budgets.ndim and budgets.shape != sent.shape):
        raise InvalidInput(f"each of {sent.size} reports needs a budget, or all the same; got {budgets.size} budgets")
    order = random.permutation(sent.size)
    shuffled = sent[order]
    if not budgets.ndim:
        return ShuffledReports(shuffled, np.broadcast_to(budgets, sent.shape), seen)
    if seen != "levels":
        order = random.permutation(sent.size)
    return ShuffledReports(shuffled, budgets[order], seen)
