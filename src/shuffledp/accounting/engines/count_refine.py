"""Covers of all record vectors whose boxes are small only where the worst one may be."""

from __future__ import annotations

import math
from dataclasses import dataclass

from shuffledp.accounting.engines.count_cover import CountCover, Groups


@dataclass(frozen=True, eq=False)
class RefinedCover:
    """Boxes of several sizes: small ones where the worst record vector may be.

    Parameters
    ----------
    parts : tuple of CountCover
        At least one, each of boxes of one shape; together they cover all record vectors.
    """

    parts: tuple[CountCover, ...]

    @property
    def groups(self) -> Groups:
        """The users."""
        return self.parts[0].groups

    def towards(self, excess: float, goal: float, most: int) -> tuple[RefinedCover, float]:
        """Cut the boxes that are above a goal until none is, or so many new boxes were looked at.

        Parameters
        ----------
        excess : float
            As for `BitCrowds.best_thresholds`.
        goal : float
            The logarithm of psi(excess) that is hoped for.
        most : int
            Boxes.

        Returns
        -------
        refined, value
            The boxes, and what they prove of log psi(excess) of every record vector.
        """
        done, todo, value, seen = list[CountCover](), list(self.parts[::-1]), -math.inf, 0
        while todo:
            now = todo.pop()
            logs = now.box_logs(excess)
            above = logs > goal
            cut = now.only(above).halved() if above.any() else None
            if cut is None or (seen := seen + cut.first.shape[0]) > most:
                done.append(now)
                value = max(value, float(logs.max()))
                continue
            if not above.all():
                done.append(now.only(~above))
                value = max(value, float(logs[~above].max()))
            todo.append(cut)
        return RefinedCover(tuple(done)), value

    def log_psi_above(self, excess: float) -> float:
        """Bound log psi(excess) of every record vector from above; see `CountCover.log_psi_above`."""
        return max(part.log_psi_above(excess) for part in self.parts)
