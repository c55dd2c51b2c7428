"""What a tally needs to know before the first report: all of it public."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput, shown
from shuffledp.protocol.weights import WEIGHTS, Weights
from shuffledp.setting import Seen

SHUFFLED: tuple[Seen, ...] = ("reports", "levels", "sum")
"""What an analyzer may see of shuffled reports."""
_FEW_LEVELS = 8
"""Levels up to which comparing with each is faster than searching."""
_MANY = 1 << 12


@dataclass(frozen=True)
class Task:
    """What reports are about, who sends them, and what is seen of them; public, and fixed before the first report.

    Parameters
    ----------
    randomizer : FrequencyOracle, NumberRandomizer, TwoMoments, RangeTree or VectorRandomizer
        The member of the family that draws the reports; their shape is fixed (`for_budgets`). Its `repr` names all
        its parameters.
    budgets : Budgets
        The local budgets of everybody whose report is tallied.
    seen : {"reports", "levels", "sum"}
        Whether the tally is told the reports alone, each report with its level, or the sum alone.
    weights : {"population", "precision"}
        How levels are combined where they are seen; see `shuffledp.protocol.frequencies.frequency`.

    Raises
    ------
    InvalidInput
        If `seen` or `weights` is unknown.

    Examples
    --------
    >>> from shuffledp.randomizers import RandomizedResponse
    >>> task = Task(RandomizedResponse(3), Budgets((0.5, 2.0), (900, 100)), "levels")
    >>> len(task.fingerprint())
    32
    """

    randomizer: Any
    budgets: Budgets
    seen: Seen
    weights: Weights = "population"

    def __post_init__(self) -> None:
        if self.seen not in SHUFFLED:
            raise InvalidInput(f"reports are tallied as one of {', '.join(SHUFFLED)}; got {shown(self.seen)}")
        if self.weights not in WEIGHTS:
            raise InvalidInput(f"weights must be one of {', '.join(WEIGHTS)}; got {shown(self.weights)}")

    @property
    def by_level(self) -> bool:
        """Whether reports come with their levels, and there are several."""
        return self.seen == "levels" and self.budgets.levels > 1

    def fingerprint(self) -> bytes:
        """Return the SHA-256 (32 bytes) of everything that defines the task.

        Hashed are the lines "shuffledp task 1", the randomizer's class and `repr`, `seen`, the weights if levels are
        seen (else an empty line), the number of levels, and then epsilon0, delta0 (doubles) and counts (64-bit whole
        numbers) of all levels, ascending, in little-endian order.
        """
        return self._digest

    @cached_property
    def _digest(self) -> bytes:
        kind = type(self.randomizer)
        shown = self.weights if self.seen == "levels" else ""
        lines = ("shuffledp task 1", kind.__qualname__, repr(self.randomizer), self.seen, shown, self.budgets.levels)
        digest = hashlib.sha256("".join(f"{line}\n" for line in lines).encode())
        for column, form in (
            (self.budgets.epsilons, "<f8"),
            (self.budgets.deltas, "<f8"),
            (self.budgets.counts, "<i8"),
        ):
            digest.update(np.ascontiguousarray(column, dtype=form).tobytes())
        return digest.digest()


def level_indices(budgets: Budgets, epsilons: ArrayLike, deltas: ArrayLike | None = None) -> NDArray[np.int64]:
    """Return which level of `budgets` each report has.

    Parameters
    ----------
    budgets : Budgets
        The population.
    epsilons, deltas : float or array_like, shape (n,)
        Local budget of each report, nats and probability; `deltas` None: 0. A single number is one level.

    Returns
    -------
    ndarray of int64, shape of epsilons (or of deltas)
        0 for the lowest level.

    Raises
    ------
    InvalidInput
        If one is not a level of the population (the first such row is named, counting from 1).

    Examples
    --------
    >>> level_indices(Budgets((0.5, 2.0), (900, 100)), [2.0, 0.5, 0.5]).tolist()
    [1, 0, 0]
    """
    columns = (epsilons, 0.0 if deltas is None else deltas)
    wanted, slack = np.broadcast_arrays(*(np.asarray(column, dtype=np.float64) for column in columns))
    one_slack = bool((budgets.deltas == budgets.deltas[0]).all())  # complex numbers are sorted as pairs, as budgets are
    known, asked = (
        (budgets.epsilons, wanted) if one_slack else (_pairs(budgets.epsilons, budgets.deltas), _pairs(wanted, slack))
    )
    if budgets.levels <= _FEW_LEVELS and one_slack:
        found = sum((wanted > level for level in known[:-1]), np.zeros(wanted.shape, dtype=np.int8)).astype(np.int64)
    elif budgets.levels > _MANY:  # neighbours are found in memory that was just read
        order = np.argsort(asked, axis=None)
        found = np.empty(asked.shape, dtype=np.int64)
        found.reshape(-1)[order] = np.searchsorted(known, asked.reshape(-1)[order])
    else:
        found = np.searchsorted(known, asked)
    found = np.minimum(found, budgets.levels - 1)
    wrong = budgets.epsilons[found] != wanted
    if not one_slack or np.ndim(columns[1]):
        wrong |= budgets.deltas[found] != slack
    elif budgets.deltas[0] != columns[1]:
        wrong |= True
    if wrong.any():
        row = int(np.argmax(wrong.ravel()))
        raise InvalidInput(
            f"the budget in row {row + 1}, epsilon0 {wanted.ravel()[row]:g} and delta0 {slack.ravel()[row]:g}, is none "
            "of the population's levels; count the same budgets that the reports were drawn with"
        )
    return np.asarray(found, dtype=np.int64)


def _pairs(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.complex128]:
    return first + 1j * second
