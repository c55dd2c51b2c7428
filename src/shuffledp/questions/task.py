"""What a tally needs to know before the first report: all of it public."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput, shown
from shuffledp.setting import Seen

SHUFFLED: tuple[Seen, ...] = ("reports", "levels", "sum")
"""What an analyzer may see of shuffled reports."""


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
        How levels are combined where they are seen; see `shuffledp.questions.frequency.frequency`.

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


# How reports of different budgets are weighted, and for how many people of equal weight they stand then.
#
# **A few people may carry an estimate.** With weights w_i of the people, which add up to 1, an estimate tells of the
# people what a sample of 1/sum w_i^2 of them would (Kish 1965). Two loud people among a thousand quiet ones are a
# sample of two, and what such a sample says of its own variance is worth little: where both are alike it says that
# there is none. So before a share, a mean or a mean square of the people enters a variance, it is shrunk as if
# `SMOOTHING` more people had come, half from each end of its range (Agresti and Coull 1998). For two people that is
# nearly the largest variance there can be; for a thousand it is nothing.

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
