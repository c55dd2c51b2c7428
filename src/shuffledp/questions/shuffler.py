"""The trusted shuffler: it takes away who sent what, and, if levels are withheld, at which budget."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.budgets import Budgets, level_indices
from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.questions.task import SHUFFLED, Task, Weights
from shuffledp.setting import Seen


@dataclass(frozen=True, eq=False)
class ShuffledReports:
    """What the analyzer receives, and all it receives.

    Parameters
    ----------
    reports : ndarray of whole numbers or floats, first axis n
        In uniformly random order; read-only. One number a report, or one row (packed bits, a list, a vector).
    epsilons : ndarray, shape (n,)
        Local budgets (nats); read-only. Seen "levels": entry i is the budget of report i. Otherwise the
        budgets are in a random order of their own, so that they say what the budgets are, and not whose.
    seen : {"reports", "levels", "sum"}
        Who sees what. Under "sum" an analyzer uses nothing but the counts of the reports.
    deltas : ndarray, shape (n,), optional
        Local delta0, in the order of `epsilons`; None where all are 0.
    """

    reports: NDArray[Any]
    epsilons: FloatArray
    seen: Seen
    deltas: FloatArray | None = None

    def __post_init__(self) -> None:
        if self.seen not in SHUFFLED:
            raise InvalidInput(f"shuffled reports are seen as one of {', '.join(SHUFFLED)}; got {shown(self.seen)}")
        if self.reports.ndim == 0 or self.reports.shape[:1] != self.epsilons.shape:
            raise InvalidInput(
                f"reports need one budget each; got shapes {self.reports.shape} and {self.epsilons.shape}"
            )
        if self.deltas is not None and self.deltas.shape != self.epsilons.shape:
            raise InvalidInput(f"budgets need one delta0 each; got shapes {self.deltas.shape}, {self.epsilons.shape}")
        for name in ("reports", "epsilons") if self.deltas is None else ("reports", "epsilons", "deltas"):
            locked = getattr(self, name).view()  # a view, so that the caller's own array stays writable
            locked.setflags(write=False)
            object.__setattr__(self, name, locked)

    @property
    def n(self) -> int:
        """The number of reports."""
        return self.reports.shape[0]

    @cached_property
    def budgets(self) -> Budgets:
        """The budgets, counted."""
        if self.n and not self.epsilons.strides[0] and (self.deltas is None or not self.deltas.strides[0]):
            return Budgets(self.epsilons[:1], (self.n,), None if self.deltas is None else self.deltas[:1])
        return Budgets.of(self.epsilons, self.deltas)

    @property
    def levels(self) -> NDArray[np.int64] | None:
        """Which level of `budgets` each report has; None where that is not seen."""
        return level_indices(self.budgets, self.epsilons, self.deltas) if self.seen == "levels" else None

    def task(self, randomizer: Any, weights: Weights = "population") -> Task:
        """Return the task that these reports are all the reports of.

        Parameters
        ----------
        randomizer : FrequencyOracle, NumberRandomizer, TwoMoments, RangeTree or VectorRandomizer
            The member of the family that drew them.
        weights : {"population", "precision"}
            As for `frequency`.

        Raises
        ------
        InvalidInput
            If there are no reports, a budget is bad, or `weights` is unknown.
        """
        return Task(randomizer, self.budgets, self.seen, weights)


def shuffle_reports(
    reports: ArrayLike, epsilons: ArrayLike, *, seen: Seen, random: Randomness, deltas: ArrayLike | None = None
) -> ShuffledReports:
    """Permute the reports uniformly; the budgets with them, or separately.

    Parameters
    ----------
    reports : array_like, first axis n
        One report per user: a number or a row, of any numeric type, which is kept.
    epsilons : float or array_like, shape (n,)
        Local budgets, nats; one for all, or one each in the order of the reports.
    seen : {"reports", "levels", "sum"}
        "levels": budgets travel with their reports. "reports", "sum": budgets take a permutation of their
        own, independent of the reports' (GSPA Figure 1).
    random : Randomness
        Source of the permutations.
    deltas : float or array_like, shape (n,), optional
        Local delta0, which stay with their epsilon0; None: all are 0.

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
    sent = np.asarray(reports)
    budgets = np.asarray(epsilons, dtype=np.float64)
    if sent.ndim == 0 or (budgets.ndim and budgets.shape != sent.shape[:1]):
        n = sent.shape[0] if sent.ndim else 1
        raise InvalidInput(f"each of {n} reports needs a budget, or all the same; got {budgets.size} budgets")
    slack = None if deltas is None else np.broadcast_to(np.asarray(deltas, dtype=np.float64), sent.shape[:1])
    order = random.permutation(sent.shape[0])
    shuffled = sent[order]
    if not budgets.ndim:
        budgets = np.broadcast_to(budgets, sent.shape[:1])
        if slack is None or slack.strides == (0,):
            return ShuffledReports(shuffled, budgets, seen, slack)
    if seen != "levels":
        order = random.permutation(sent.shape[0])
    return ShuffledReports(shuffled, budgets[order], seen, None if slack is None else slack[order])
