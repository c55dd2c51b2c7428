"""A public rule that rounds budgets down, and what it promises."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.budgets import MAX_EPSILON0, Budgets
from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.interval import FloatArray
from shuffledp.planning.cells import level_of
from shuffledp.planning.error import Prediction
from shuffledp.planning.question import Family
from shuffledp.planning.target import Circumstances, Wish
from shuffledp.questions.task import Weights
from shuffledp.randomizers.bits import bytes_for
from shuffledp.randomizers.wire import WireFormat
from shuffledp.setting import Seen, Setting


@dataclass(frozen=True, eq=False)
class Bucketing:
    """A public rule that gives every user the budget her report is drawn with, and what it promises.

    Parameters
    ----------
    levels : ndarray or None
        Ascending levels; a user gets the largest one not above her budget. None: budgets stay as they are, up to
        the cap.
    cap : float
        Larger budgets are lowered to it; inf if none is.
    drop_below : float
        Users with a smaller budget take no part; 0: everybody does.
    dropped : int
        How many those are.
    budgets : Budgets
        The population after rounding.
    mechanism : str
        Name of the randomizer.
    family : FrequencyOracle or NumberRandomizer
        The randomizer that runs.
    seen : str
        As in `Setting`.
    weights : {"population", "precision"} or None
        How visible levels are combined; None where they are withheld.
    prediction : Prediction
        Of the error, after rounding.
    certified_epsilon : float
        Certified central epsilon of the worst level, after rounding, at `delta` (of more than 500 withheld levels:
        with budgets rounded up to about 500, so `certify` of `setting` may say a little less).
    delta : float
        Central delta.
    around : Circumstances
        What it covers.
    """

    levels: FloatArray | None
    cap: float
    drop_below: float
    dropped: int
    budgets: Budgets
    mechanism: str
    family: Family
    seen: Seen
    weights: Weights | None
    prediction: Prediction
    certified_epsilon: float
    delta: float
    around: Circumstances

    @property
    def setting(self) -> Setting:
        """The setting that was certified."""
        return Wish(math.inf, self.delta, self.around).setting(self.budgets, self.family, self.seen)

    @property
    def report_bytes(self) -> int:
        """Bytes of one report on the wire (docs/wire.md), without the header of the message."""
        return report_bytes(self.family)

    @property
    def rounds_budgets(self) -> bool:
        """Whether anybody's budget may become smaller."""
        return self.levels is not None or self.cap < math.inf

    def takes_part(self, epsilons: ArrayLike) -> NDArray[np.bool_]:
        """Tell who takes part, shape (n,) of bool: everybody, unless small budgets were to be dropped."""
        return _own_budgets(epsilons) >= self.drop_below

    def apply(self, epsilons: ArrayLike) -> FloatArray:
        """Give each user the budget her report is drawn with, at most her own.

        Parameters
        ----------
        epsilons : array_like, shape (n,)
            Own budgets of those who take part, nats, in [0, 700].

        Raises
        ------
        InvalidInput
            If a budget is not in range, below `drop_below`, or below the lowest level.
        """
        own = _own_budgets(epsilons)
        if own.size and own.min() < self.drop_below:
            row = int(np.argmin(own)) + 1
            raise InvalidInput(
                f"epsilon0 {own.min():g} (entry {row}) is below {self.drop_below:g}, so this user takes no part; "
                "leave those users out, as takes_part tells"
            )
        low = np.minimum(own, self.cap)
        if self.levels is None:
            return low
        at = level_of(low, self.levels)
        if own.size and at.min() < 0:
            row = int(np.argmin(at)) + 1
            raise InvalidInput(
                f"epsilon0 {own[row - 1]:g} (entry {row}) is below the lowest level {self.levels[0]:g}; choose the "
                "levels again for the users there are"
            )
        return self.levels[at]


def report_bytes(family: Family) -> int:
    """Return the bytes of one report on the wire, the same for all reports of a family with its shape fixed."""
    if not isinstance(family, WireFormat):
        raise InvalidInput(f"the reports of {shown(family)} have no wire format")
    return bytes_for(family.report_bits)


def _own_budgets(epsilons: ArrayLike) -> FloatArray:
    own = np.asarray(epsilons, dtype=np.float64)
    bad = np.flatnonzero(~((own >= 0.0) & (own <= MAX_EPSILON0)).ravel())
    if bad.size:
        raise InvalidInput(f"epsilon0 must be from 0 to 700; got {own.ravel()[bad[0]]} (entry {bad[0] + 1})")
    return own
