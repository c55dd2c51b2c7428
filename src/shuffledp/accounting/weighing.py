"""What several bounds together say of some levels: the smallest upper bound, the largest witness, and the evidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.answers import weigh
from shuffledp.accounting.bound import AmplificationBound
from shuffledp.accounting.theorems.floor.bound import FloorBound
from shuffledp.guarantee import Evidence, Kind
from shuffledp.numerics.interval import Enclosure, FloatArray, Interval
from shuffledp.progress import Progress
from shuffledp.setting import Setting

_FIRST_OVER_ROUNDS = {
    key: at for at, key in enumerate(("count", "linked", "approximate", "blanket", "clones"), start=1)
}
"""Bounds that are asked after the others, in this order: the earlier is the cheaper or usually the smaller one."""


@dataclass(frozen=True, eq=False)
class Weighed:
    """What several bounds together certify of some levels.

    Parameters
    ----------
    lower, upper : ndarray, shape (listed,)
        Per level the largest witness (0 if there is none) and the smallest upper bound (inf if there is none), that of
        the floor left out.
    floor : Enclosure, shape (listed,), or None
        What the dummies alone keep; None without dummies, or if the floor refused.
    evidence : tuple of Evidence
        One per bound that was asked.
    """

    lower: FloatArray
    upper: FloatArray
    floor: Enclosure | None
    evidence: tuple[Evidence, ...]

    @property
    def smallest(self) -> FloatArray:
        """The smallest upper bound of each level, the floor's among them."""
        return self.upper if self.floor is None else np.minimum(self.upper, self.floor.upper)


def weigh_levels(
    setting: Setting,
    delta: float,
    listed: NDArray[np.int64],
    chosen: Sequence[AmplificationBound],
    progress: Progress | None = None,
) -> Weighed:
    """Enclose the central epsilon of each listed level by several bounds.

    Parameters
    ----------
    setting : Setting
        The question.
    delta : float
        Central delta, in (0, 1).
    listed : ndarray of int, shape (listed,)
        Levels, by their position among the budgets.
    chosen : sequence of AmplificationBound
        The bounds; those that may not enter the certified interval are evidence alone.
    progress : callable, optional
        Called with the share of the bounds that were asked, from 0 to 1.
    """
    lower, upper = np.zeros(listed.size), np.full(listed.size, math.inf)
    floor: Enclosure | None = None
    evidence: list[Evidence] = []
    rivals = setting.rounds > 1  # in one round an answer costs less than to tell whether it is needed
    order = sorted(chosen, key=lambda bound: _FIRST_OVER_ROUNDS.get(bound.key, 0)) if rivals else chosen

    def ask(bound: AmplificationBound) -> Enclosure:
        ceilings = upper.copy() if rivals and bound.kind is Kind.CERTIFIED_UPPER else None
        return bound.level_epsilons(setting, delta, listed, ceilings)

    answers = weigh(order, ask)
    for asked, answer in enumerate(answers, start=1):
        bound, found = answer.bound, answer.value
        if progress is not None:
            progress(asked / len(chosen))
        if found is None:
            evidence.append(Evidence(bound.key, bound.kind, bound.reference, refused=answer.refused))
            continue
        worst = Interval(float(found.lower.max()), float(found.upper.max()))
        evidence.append(Evidence(bound.key, bound.kind, bound.reference, epsilon=worst))
        if not bound.enters_bracket:
            continue
        if bound.key == FloorBound.key:
            floor = found
        elif bound.kind is Kind.CERTIFIED_UPPER:
            upper = np.minimum(upper, found.upper)
        elif bound.kind is Kind.CERTIFIED_LOWER:
            lower = np.maximum(lower, found.lower)
    place = {bound.key: at for at, bound in enumerate(chosen)}
    return Weighed(lower, upper, floor, tuple(sorted(evidence, key=lambda one: place[one.key])))
