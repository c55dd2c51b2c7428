"""Searching for frequent items: which prefixes are followed, which items are named, and which surely would be.

**Thresholds.** Of N prefixes that are tried at a level those are followed whose estimate is above the one that noise
alone exceeds with the chance kept/(2N), so that half of the places are left to what is real. Followed in vain a prefix
costs time, never truth: what is named is decided at the last level, by people who took no part in the search. An item
that nobody has, and whose cell is empty, is supported there by each report with the chance 1/g, independently: it is
named only if its estimate is above the one that noise alone exceeds with the chance false_positives/(items tried). So
any such item is named with the chance `false_positives` at most (Bonferroni).

**What is found.** An item of share f is found with a chance of 95 % if f is above each level's threshold by the normal
quantile of 5 % / levels: then all levels together miss it with a chance of 5 % at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Words
from shuffledp.numerics.special import betainccinv, betaincinv, ndtri
from shuffledp.protocol.estimate import Estimate
from shuffledp.randomizers.item_domain import END, ItemDomain, ListedItems, WordItems

POWER = 0.95
"""Chance with which an item that is said to be found is found."""
_HALVINGS = 16
"""Steps of iterations that come closer by a factor of ten or more at each, where there are a hundred reports."""


class Counted(NamedTuple):
    """What is known of the reports of one level, over coefficients b_i of the people's budgets.

    With a support's chance s_i = 1/g + (p_i - 1/g) f, the variance of an estimate at the share f is

        sum b_i^2 s_i (1 - s_i) / total^2 = none + linear f - square f^2.

    Parameters
    ----------
    total : float
        sum b_i (p_i - 1/g); 0 without reports.
    none, linear, square : float
        See above.
    step : float
        The most by which one report moves an estimate: max b_i / total.
    g : int
        Range of the hash.
    n : int
        Number of reports, if all b_i are 1; else 0.
    """

    total: float
    none: float
    linear: float
    square: float
    step: float
    g: int
    n: int = 0

    @classmethod
    def of(
        cls, total: float, squares: float, apart: float, apart_squares: float, largest: float, g: int, *, equal: bool
    ) -> Counted:
        """Return it from the sums of b (p - 1/g), b^2, b^2 (p - 1/g), b^2 (p - 1/g)^2, and the largest b."""
        if total <= 0.0:
            return cls(0.0, 1.0, 0.0, 0.0, 1.0, g)  # any share, off by less than 1
        q, unit = 1.0 / g, 1.0 / total**2
        known = (squares * q * (1.0 - q) * unit, apart * (1.0 - 2.0 * q) * unit, apart_squares * unit, largest / total)
        return cls(total, *known, g, round(squares) if equal else 0)

    @classmethod
    def of_equal(cls, n: float, apart: float, g: int) -> Counted:
        """Return it for n reports of equal weight, p - 1/g = apart in the mean."""
        return cls.of(n * apart, n, n * apart, n * apart**2, 1.0, g, equal=True)

    def error(self, share: FloatArray | float) -> FloatArray:
        """Return the standard error at shares; beyond the share of largest variance, that of the largest."""
        top = self.linear / (2.0 * self.square) if self.square > 0.0 else np.inf
        at = np.clip(share, 0.0, min(max(top, 0.0), 1.0))
        return np.sqrt(np.maximum(self.none + self.linear * at - self.square * at**2, self.none))

    def half_width(self, miss: FloatArray | float, share: FloatArray | float) -> FloatArray:
        """Return the half width of an interval that misses with that chance, if the share were this one."""
        return self._bounded.half_width(np.asarray(miss), self.error(share))

    def exceeded(self, chance: float, *, surely: bool = True) -> float:
        """Return an estimate that an empty cell's exceeds with at most that chance.

        Supports are binomial where all coefficients are equal: then it is the least such estimate. Else it is that of
        Bennett's inequality, or, if not `surely`, the normal quantile with its first correction for skewness.
        """
        if self.n:
            from scipy.stats import binom  # half a second, which only who searches items pays

            count = float(binom.isf(chance, self.n, 1.0 / self.g))
            return (count + 0.5 - self.n / self.g) / self.total
        error = float(self.error(0.0))
        if surely:
            return float(self._bounded.bounded_half_width(2.0 * chance, np.asarray(error)))
        z = float(-ndtri(chance))
        return error * (z + (1.0 - 2.0 / self.g) * self.step / error * (z * z - 1.0) / 6.0)

    def ends(self, value: FloatArray, below: FloatArray, above: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the ends of intervals around estimates, each end missing with its own chance.

        By Clopper and Pearson where all coefficients are equal, else by the half widths of `Estimate`.

        Parameters
        ----------
        value : ndarray
            Estimates.
        below, above : ndarray
            Chances with which the lower and the upper end miss.
        """
        if not self.n:
            share = np.clip(value, 0.0, 1.0)
            high = share
            for _ in range(_HALVINGS):
                high = np.minimum(share + self.half_width(2.0 * above, high), 1.0)
            return value - self.half_width(2.0 * below, share), high
        count = np.clip(np.rint(value * self.total + self.n / self.g), 0, self.n)
        q, apart = 1.0 / self.g, self.total / self.n
        low = np.where(count > 0, betaincinv(np.maximum(count, 1.0), self.n - count + 1.0, below), 0.0)
        high = np.where(count < self.n, betainccinv(count + 1.0, np.maximum(self.n - count, 1.0), above), 1.0)
        return (low - q) / apart, (high - q) / apart

    @property
    def _bounded(self) -> Estimate:
        shape = np.zeros(())
        return Estimate(shape, shape, self.step, (0.0, 1.0), 0)


class Found(NamedTuple):
    """What a search ends with.

    Parameters
    ----------
    words : tuple of str
        The words to be tried at the last level.
    codes : ndarray of uint32
        Their codes there.
    full : bool
        Whether some level had more prefixes above its threshold than are followed.
    """

    words: tuple[str, ...]
    codes: NDArray[np.uint32]
    full: bool


def search(domain: WordItems, cells: Sequence[FloatArray], levels: Sequence[Counted]) -> Found:
    """Follow frequent prefixes from level to level.

    Parameters
    ----------
    domain : WordItems
        The words that there are.
    cells : sequence of ndarray, shape (2^bits,)
        Estimated share of each code, of each level but the last.
    levels : sequence of Counted
        What is known of the reports of each level.
    """
    states, paths = domain.root(1), np.zeros((1, 0), dtype=np.uint64)
    ended, full = np.zeros(1, dtype=np.bool_), False
    for level, block in enumerate(domain.blocks):
        longer = domain.block_values(block)
        parents = np.concatenate((np.repeat(np.flatnonzero(~ended), longer.size), np.flatnonzero(ended)))
        values = np.concatenate((np.tile(longer, int((~ended).sum())), np.zeros(int(ended.sum()), dtype=np.uint64)))
        if level == 0:  # no record is empty
            keep = values >= np.uint64(domain.size ** (block - 1))
            parents, values = parents[keep], values[keep]
        tried = domain.extended(states[parents], values)
        estimates = cells[level][domain.code(tried, level)]
        cut = followed_above(levels[level], domain.kept, tried.size)
        above = np.flatnonzero(estimates >= cut)
        full |= above.size > domain.kept
        order = above[np.lexsort((tried[above], -estimates[above]))][: domain.kept]
        states, paths = tried[order], np.hstack((paths[parents[order]], values[order, None]))
        ended = values[order] % np.uint64(domain.size) == END
    return _last(domain, states, paths, full)


def _last(domain: WordItems, states: Words, paths: Words, full: bool) -> Found:
    """Keep the words that a record can be: those with one spelling, without white space at their ends."""
    from shuffledp.tables.spelling import one_spelling

    words = [domain.word(path) for path in paths]
    kept = [place for place, word in enumerate(words) if word is not None and one_spelling(word) == word]
    return Found(tuple(str(words[place]) for place in kept), domain.code(states[kept], domain.levels - 1), full)


def followed_above(level: Counted, kept: int, tried: int) -> float:
    """Return the estimate above which a prefix is followed; -inf if there is room for all that are tried."""
    return -np.inf if tried <= kept else level.exceeded(0.5 * kept / tried, surely=False)


def named_above(last: Counted, chance: float, tried: int) -> float:
    """Return the estimate above which an item is named, if none that nobody has is to be, but with that chance."""
    return last.exceeded(chance / max(tried, 1))


def smallest_found(
    domain: ItemDomain, levels: Sequence[Counted], chance: float, tried: Sequence[int] | None = None
) -> float:
    """Return the smallest share that is found with the chance `POWER`; above 1 if none is.

    Parameters
    ----------
    domain : ItemDomain
        The items that there are.
    levels : sequence of Counted
        What is known of the reports of each level.
    chance : float
        Chance that any item is named that nobody has.
    tried : sequence of int, optional
        How many prefixes were tried at each level; default: the most there can be.
    """
    z = float(-ndtri((1.0 - POWER) / len(levels)))
    most = most_tried(domain) if tried is None else tried
    kept = domain.kept if isinstance(domain, WordItems) else 1
    cuts = [followed_above(level, kept, count) for count, level in zip(most, levels, strict=False)]
    cuts = [*cuts[: len(levels) - 1], named_above(levels[-1], chance, most[-1])]
    found = 0.0
    for cut, level in zip(cuts, levels, strict=True):
        share = max(cut, 0.0)
        for _ in range(_HALVINGS):
            share = max(cut + z * float(level.error(share)), 0.0)
        found = max(found, share)
    return found


def most_tried(domain: ItemDomain) -> list[int]:
    """Return how many codes are tried at each level, at most."""
    if isinstance(domain, ListedItems):
        return [domain.count]
    assert isinstance(domain, WordItems)
    sizes = [domain.block_values(block).size for block in domain.blocks]
    return [sizes[0], *(domain.kept * size for size in sizes[1:]), domain.kept]
