"""Record vectors by themselves: what a crowd that holds them gives away, and which of some gives away most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shuffledp.accounting.theorems.count.cover import EXACT_UP_TO, Groups
from shuffledp.numerics.interval import FloatArray

_SAMPLE = 33
_STEPS = (65, 9, 5, 3)
"""Shares of ones tried in each group, by the number of groups."""


@dataclass(frozen=True, eq=False)
class RecordVectors:
    """Some record vectors: how many users of each group hold 1.

    Parameters
    ----------
    groups : Groups
        Everybody but the victim; s rounded up.
    ones : ndarray, shape (vectors, groups)
        Whole numbers from 0 to the group's size.
    mirrored : bool
        Whether the vectors are closed under exchanging ones and zeros, so that one direction tells of both.
    """

    groups: Groups
    ones: FloatArray
    mirrored: bool = False

    @classmethod
    def likely_worst(cls, groups: Groups) -> RecordVectors:
        """Every number of ones of a single small group, else shares of the groups in which the worst usually lies."""
        n = groups.counts
        if n.size == 1 and n[0] <= EXACT_UP_TO:
            return cls(groups, np.arange(n[0] + 1.0)[:, None], mirrored=True)
        if n.size <= len(_STEPS):
            mesh = np.meshgrid(*([np.linspace(0.0, 1.0, _STEPS[n.size - 1])] * n.size), indexing="ij")
            shares = np.stack([axis.ravel() for axis in mesh], axis=1)
        else:
            shares = np.linspace(0.0, 1.0, 9)[:, None] * np.ones(n.size)
        return cls(groups, np.unique(np.rint(shares * n), axis=0))

    def log_psi(self, excess: float, *, zeros: bool = False) -> tuple[FloatArray, FloatArray]:
        """Bounds on log psi(excess) of each vector, ones counted, or zeros."""
        others = self.groups.counts - self.ones
        held = (others, self.ones) if zeros else (self.ones, others)
        found = self.groups.crowds(*held, np.zeros(self.ones.shape[0])).best_thresholds(excess)
        return found.lower, found.upper

    def log_psi_pair(self, excess: float) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
        """As `log_psi`, ones counted and zeros counted, in one evaluation."""
        others, size = self.groups.counts - self.ones, self.ones.shape[0]
        held = np.concatenate((self.ones, others)), np.concatenate((others, self.ones))
        found = self.groups.crowds(*held, np.zeros(2 * size)).best_thresholds(excess)
        return (found.lower[:size], found.upper[:size]), (found.lower[size:], found.upper[size:])

    def worst(self, excess: float) -> RecordVectors:
        """Return the one with the largest psi, of both directions, as far as doubles tell."""
        most = self.log_psi(excess)[0]
        if not self.mirrored:
            most = np.maximum(most, self.log_psi(excess, zeros=True)[0])
        return self._only(int(most.argmax()))

    def sample(self) -> RecordVectors:
        """Return a few of them, evenly spread."""
        few = np.unique(np.rint(np.linspace(0.0, self.ones.shape[0] - 1.0, _SAMPLE)).astype(np.int64))
        return RecordVectors(self.groups, self.ones[few])

    def _only(self, index: int) -> RecordVectors:
        return RecordVectors(self.groups, self.ones[index : index + 1])

    def climbed(self, excess: float) -> RecordVectors:
        """Return the worst one, made worse group by group.

        At one threshold psi rises, then falls in each count of ones.
        """
        best, n = self.worst(excess), self.groups.counts
        if self.mirrored or n.size > len(_STEPS):
            return best
        for width in (1.0, 1.0 / _SAMPLE, _SAMPLE**-2.0):
            for group in range(n.size):
                shift = np.linspace(-width, width, 2 * _SAMPLE + 1) * n[group]
                held = np.unique(np.clip(np.rint(best.ones[0, group] + shift), 0.0, n[group]))
                tried = np.repeat(best.ones, held.size, axis=0)
                tried[:, group] = held
                best = RecordVectors(self.groups, tried).worst(excess)
        return best
