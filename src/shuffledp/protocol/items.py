"""Frequent items from the shuffled reports alone: which are named, their shares, and intervals that stand selection.

**Estimates.** At each level the estimate of a code's share is that of local hashing (`shuffledp.protocol.frequencies`),
over the reports of the level: (supports - n/g) / sum (p - 1/g). The target is the share among all people: a level's
people are a random part of them, so the supports among n reports have at most the variance n s (1 - s),
s = 1/g + f (p - 1/g) in the mean, that of independent draws; and at most their moment generating function (Maclaurin's
inequality on the elementary symmetric means of 1 + s_i (e^t - 1)), so the inequalities behind the intervals hold too.

**Intervals that stand selection.** The items that are named are chosen by the data. Their intervals hold all together
with the level 1 - a, however they were chosen: the interval of an item of share f misses with the chance a f, and the
shares of all items add up to 1, so with the chance 1 - a none of the items that anybody has is missed. The upper end
uses the chance a max(f, 1/n) at the estimate, which is the smallest for the shares above it; the lower end solves
f = estimate - h(a f) from below.

**What shares a cell.** Two words have the same code at the last level with the chance 2^-bits of a public hash. An
estimate is of an item together with the words that share its cell: of the other people one in 2^bits in the mean.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray
from shuffledp.protocol.counting import Tally
from shuffledp.protocol.estimate import Estimate, chance_of_a_miss
from shuffledp.protocol.item_search import Counted, named_above, search, smallest_found
from shuffledp.protocol.sums import LevelSums, Whole
from shuffledp.randomizers.base import SupportLaw
from shuffledp.randomizers.item_domain import ItemDomain, ListedItems, WordItems
from shuffledp.randomizers.leveled import LeveledHashing
from shuffledp.randomizers.walsh import walsh_hadamard

_STEPS = 12
"""Steps of the iteration for the lower end of an interval; it rises to it, and converges in a few."""


@dataclass(frozen=True, eq=False)
class ItemsEstimate(Estimate):
    """Estimated shares of the items that were tried at the last level.

    Parameters
    ----------
    value, standard_error, step, support, uninformative
        As for `Estimate`, one entry for each item tried.
    items : tuple of hashable
        The words tried, or the places in the list of candidates.
    levels : tuple of Counted
        What is known of the reports of each level.
    domain : ItemDomain
        The items that there are.
    people : int
        Reports of all levels.
    full : bool
        Whether the search had more frequent prefixes than it follows, so that items may be missing.
    """

    items: tuple[Hashable, ...]
    levels: tuple[Counted, ...]
    domain: ItemDomain
    people: int
    full: bool

    def threshold(self, chance: float) -> float:
        """Return the estimate above which an item is named.

        Parameters
        ----------
        chance : float
            Chance that any item is named that nobody has.
        """
        return named_above(self.levels[-1], chance, len(self.items))

    def named(self, chance: float) -> NDArray[np.intp]:
        """Return the places, among those tried, of the items that are named, the largest share first."""
        above = np.flatnonzero(self.value > self.threshold(chance))
        return above[np.lexsort((above, -self.value[above]))]

    def at(self, places: NDArray[np.intp]) -> ItemsEstimate:
        """Return the estimates of some of the items tried, for their intervals; thresholds are not theirs."""
        items = tuple(self.items[place] for place in places)
        return replace(self, items=items, value=self.value[places], standard_error=self.standard_error[places])

    def finds(self, chance: float) -> float:
        """Return the smallest share that is found with a chance of 95 %; see `shuffledp.protocol.item_search`."""
        return smallest_found(self.domain, self.levels, chance)

    def confidence_interval(self, level: float = 0.95, simultaneous: bool = True) -> tuple[FloatArray, FloatArray]:
        """Both ends of confidence intervals that hold all together, whichever items were chosen; see the module.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).
        simultaneous : bool
            Not looked at: the interval of a chosen item does not hold by itself.

        Raises
        ------
        InvalidInput
            If level is not in (0, 1).
        """
        del simultaneous
        miss, least = 0.5 * chance_of_a_miss(level), 1.0 / max(self.people, 1)
        last, value = self.levels[-1], np.clip(self.value, 0.0, 1.0)
        above, low = miss * np.maximum(value, least), np.full(value.shape, least)
        for _ in range(_STEPS):
            low = np.maximum(last.ends(self.value, miss * low, above)[0], least)
        high = last.ends(self.value, miss * low, above)[1]
        return np.where(low <= least, 0.0, low), np.clip(high, value, 1.0)


class ItemTally(Tally):
    """All that a search for frequent items needs of the reports so far: signs of hashes, and people, of each level.

    Parameters
    ----------
    task : Task
        Its randomizer is a `LeveledHashing` with a domain.

    Raises
    ------
    InvalidInput
        If there is no domain, or there are too many reports at too many levels to be tallied exactly.

    Examples
    --------
    >>> from shuffledp.budgets import Budgets
    >>> from shuffledp.numerics.randomness import secure_random
    >>> from shuffledp.protocol.task import Task
    >>> family = LeveledHashing(2, 1, 64, ListedItems(3))
    >>> tally = ItemTally(Task(family, Budgets((700.0,), (400,)), "reports"))
    >>> tally.add(family.randomize([1] * 400, 700.0, secure_random()))
    >>> [tally.estimate().items[place] for place in tally.estimate().named(0.05)]
    [1]
    """

    def _layout(self) -> list[LevelSums]:
        """Signs, over the coefficients b; then people, over the coefficients in `Counted`."""
        family = self._family
        if family.domain is None:
            raise InvalidInput(
                f"reports of {family.name} tell no items without the domain they are of; make the randomizer with it"
            )
        n, bits = self.task.budgets.n, family.rows
        signs = LevelSums(self._coefficients(1), family.levels << family.size, n, bits)
        if self.task.by_level:
            parts = [self._rows(signs.coefficients[0, rows], self._apart(rows)) for rows in self._chunks()]
            return [signs, LevelSums(np.concatenate(parts, axis=1), family.levels, n)]
        # which budget sent which report is not known: the mean of p - q stands for it
        mean = self._public(lambda rows: (self._apart(rows),))[0] / n
        return [signs, LevelSums(self._rows(np.ones(1), np.array([mean])), family.levels, n)]

    @staticmethod
    def _rows(b: FloatArray, apart: FloatArray) -> FloatArray:
        return np.stack((b * apart, b * b, b * b * apart, (b * apart) ** 2))

    @property
    def _family(self) -> LeveledHashing:
        return self.task.randomizer

    def _take(self, reports: NDArray[Any], levels: Whole | None) -> list[NDArray[Any]]:
        family = self._family
        signs, people = self._tables
        checked = family.checked(reports)

        def count(some: NDArray[Any], weights: Whole | None) -> NDArray[np.int64]:
            total = np.zeros(family.levels << family.size, dtype=np.int64)
            family.add_signs(some, total, None if weights is None else weights.astype(np.uint64))
            return total

        return [signs.add(checked, levels, count), people.add_codes(checked[:, 0].astype(np.int64), levels)]

    def _stated(self, rows: slice) -> SupportLaw:
        return self._family.support_law(self.task.budgets.epsilons[rows])

    def _information(self, law: SupportLaw) -> tuple[FloatArray, FloatArray]:
        return law.own - law.other, law.other * (1.0 - law.other)

    def _apart(self, rows: slice) -> FloatArray:
        return self._information(self._law(rows))[0]

    def _estimate(self, uninformative: int) -> ItemsEstimate:
        """Search, and estimate the shares of what was found; see the module."""
        family, (signs, people) = self._family, self._tables
        found, counts = self._sums
        sums = [people.read(counts, row) for row in range(4)]
        equal = not self.task.by_level
        largest = float(signs.coefficients[0].max())
        levels = tuple(
            Counted.of(total, squares, apart, apart_squares, largest, family.g, equal=equal)
            for total, squares, apart, apart_squares in np.stack(sums, axis=1).tolist()
        )
        added = signs.read(found, 0).reshape(family.levels, -1)

        def shares(level: int) -> FloatArray:
            total = levels[level].total
            return walsh_hadamard(added[level]) * (1.0 / (family.g * total) if total > 0.0 else 0.0)

        domain, full = family.domain, False
        if isinstance(domain, WordItems):
            ended = search(domain, [shares(level) for level in range(family.levels - 1)], levels)
            items: tuple[Hashable, ...] = ended.words
            codes, full = ended.codes.astype(np.int64), ended.full
        else:
            assert isinstance(domain, ListedItems)
            codes = np.arange(domain.count)
            items = tuple(range(domain.count))
        value, last = shares(family.levels - 1)[codes], levels[-1]
        error = last.error(np.clip(value, 0.0, 1.0))
        return ItemsEstimate(value, error, last.step, (0.0, 1.0), uninformative, items, levels, domain, self.n, full)
