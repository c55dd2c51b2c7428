"""The largest of many bounds on psi at one excess after another: only those that may be the largest are evaluated.

A box's psi does not increase with the excess and is convex in it (docs/theorems/count.md). So what was found at the
next excesses below and above bounds it in between, by the chord, and a box whose chord is below another box's bound is
left alone.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shuffledp.numerics.floats import roundoff
from shuffledp.numerics.interval import FloatArray

_LIKELY = 24
"""Boxes evaluated first: those of the largest chords."""
_MOST_KEPT = 1 << 16
"""Bounds kept of one cover, in all."""


@dataclass(frozen=True, eq=False)
class LargestBox:
    """The largest bound over boxes.

    Parameters
    ----------
    boxes : int
        How many there are.
    evaluated : callable
        From an excess and the boxes asked for, all of them for None, to upper bounds on log psi there, finite.
    """

    boxes: int
    evaluated: Callable[[float, NDArray[np.int64] | None], FloatArray]
    _asked: list[float] = field(default_factory=list[float], repr=False)
    _bounds: list[FloatArray] = field(default_factory=list[FloatArray], repr=False)

    def at(self, excess: float) -> float:
        """Return an upper bound on log psi(excess) of every box: the largest of the evaluated ones.

        Parameters
        ----------
        excess : float
            At least 0, possibly inf, good to 8 roundoffs.
        """
        place = bisect.bisect_right(self._asked, excess)
        if place and self._asked[place - 1] == excess:
            return float(self._bounds[place - 1].max())
        if place and self.boxes > _LIKELY:
            found = self._narrowed(excess, chords(excess, self._asked[place - 1 :], self._bounds[place - 1 :]))
        else:
            found = self.evaluated(excess, None)
        if len(self._asked) < _MOST_KEPT // self.boxes:
            self._asked.insert(place, excess)
            self._bounds.insert(place, found)
        return float(found.max())

    def _narrowed(self, excess: float, found: FloatArray) -> FloatArray:
        """Evaluate boxes until no other one's known bound is above the largest value; return the bounds of all."""
        likely = np.argpartition(found, -_LIKELY)[-_LIKELY:]
        found[likely] = self.evaluated(excess, likely)
        above = found > found[likely].max()
        if above.any():  # none of the likely ones, whose largest this is
            found[above] = self.evaluated(excess, np.flatnonzero(above))
        return found


def chords(excess: float, ends: list[float], bounds: list[FloatArray]) -> FloatArray:
    """Return upper bounds on log psi(excess) of boxes from those at the next excesses below and, if known, above.

    Parameters
    ----------
    excess : float
        At least the first of ``ends``, below the second.
    ends : list of float
        Excesses, ascending, at least one; the first two count.
    bounds : list of ndarray, each of shape (boxes,)
        Upper bounds on log psi there.

    Notes
    -----
    Both weights of the chord are quotients of differences, each rounded once, so their sum with positive factors is
    good to a few roundoffs. A bound at an excess holds at all that lie up to 16 roundoffs below (numerics.bit_counts),
    in the same proportion for all three, so their being good to 8 changes nothing.
    """
    if len(ends) == 1 or not math.isfinite(ends[1]):
        return bounds[0].copy()
    (start, end), (low, high) = ends[:2], bounds[:2]
    far, near = (excess - start) / (end - start), (end - excess) / (end - start)
    log = low + np.log(near + far * np.exp(np.minimum(high - low, 0.0)))
    return np.minimum(log + roundoff(32, 1.0 + np.abs(low) + np.abs(high)), low)
