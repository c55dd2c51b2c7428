"""Frequent items of a long list or an unknown domain: the question, the search, and intervals valid after selection."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.budgets import Budgets
from shuffledp.errors import Brief, InvalidInput, choice, numbers_within, shown
from shuffledp.in_words import count, percent, share
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.functions import betainccinv, betaincinv, ndtri
from shuffledp.numerics.randomness import Words
from shuffledp.questions.estimate import Estimate, chance_of_a_miss
from shuffledp.questions.question import CONFIDENCE, Numbers, Picture, Question, Shape, View, reach
from shuffledp.questions.tally import LevelSums, Tally, Whole
from shuffledp.randomizers.base import SupportLaw
from shuffledp.randomizers.hashing import LARGEST_RANGE, LeveledHashing, best_range
from shuffledp.randomizers.item_domain import END, Codes, ItemDomain, ListedItems, WordItems
from shuffledp.randomizers.walsh import walsh_hadamard
from shuffledp.records.columns import Recode, category_codes, read_labels, read_words, word_symbols
from shuffledp.setting import Seen

# Searching for frequent items: which prefixes are followed, which items are named, and which surely would be.
#
# **Thresholds.** Of N prefixes that are tried at a level those are followed whose estimate is above the one that noise
# alone exceeds with the chance kept/(2N), so that half of the places are left to what is real. Followed in vain a
# prefix costs time, never truth: what is named is decided at the last level, by people who took no part in the search.
# An item that nobody has, and whose cell is empty, is supported there by each report with the chance 1/g,
# independently: it is named only if its estimate is above the one that noise alone exceeds with the chance
# false_positives/(items tried). So any such item is named with the chance `false_positives` at most (Bonferroni).
#
# **What is found.** An item of share f is found with a chance of 95 % if f is above each level's threshold by the
# normal quantile of 5 % / levels: then all levels together miss it with a chance of 5 % at most.

POWER = 0.95
"""Probability of detection in every statement on the smallest share that is found."""


_HALVINGS = 16
"""Number of steps of an iteration whose error falls by a factor of ten or more per step from about 100 reports on."""


class Counted(NamedTuple):
    """Public sums over the reports of one level, over coefficients b_i that depend on the people's budgets.

    With a support's chance s_i = 1/g + (p_i - 1/g) f, the variance of an estimate at the share f is

        sum b_i^2 s_i (1 - s_i) / total^2 = none + linear f - square f^2.

    Parameters
    ----------
    total : float
        sum b_i (p_i - 1/g); 0 without reports.
    none, linear, square : float
        Coefficients of the variance above.
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
        """Return the record for given sums of b, b^2 and b^2 times powers of p - 1/g.

        Parameters
        ----------
        total, squares, apart, apart_squares : float
            Sums of b (p - 1/g), b^2, b^2 (p - 1/g) and b^2 (p - 1/g)^2.
        largest : float
            The largest b.
        g : int
            Range of the hash.
        equal : bool
            Whether all b are 1.
        """
        if total <= 0.0:
            return cls(0.0, 1.0, 0.0, 0.0, 1.0, g)  # any share, off by less than 1
        q, unit = 1.0 / g, 1.0 / total**2
        coefficients = (
            squares * q * (1.0 - q) * unit,
            apart * (1.0 - 2.0 * q) * unit,
            apart_squares * unit,
            largest / total,
        )
        return cls(total, *coefficients, g, round(squares) if equal else 0)

    @classmethod
    def of_equal(cls, n: float, apart: float, g: int) -> Counted:
        """Return the record for n reports of equal weight in a hash of range g, whose mean of p - 1/g is ``apart``."""
        return cls.of(n * apart, n, n * apart, n * apart**2, 1.0, g, equal=True)

    def error(self, share: FloatArray | float) -> FloatArray:
        """Return the standard error at each share; shares beyond the one of largest variance get the largest error."""
        top = self.linear / (2.0 * self.square) if self.square > 0.0 else np.inf
        at = np.clip(share, 0.0, min(max(top, 0.0), 1.0))
        return np.sqrt(np.maximum(self.none + self.linear * at - self.square * at**2, self.none))

    def half_width(self, miss: FloatArray | float, share: FloatArray | float) -> FloatArray:
        """Return the half width, at a true share, of an interval that misses with probability ``miss``."""
        return self._bounded.half_width(np.asarray(miss), self.error(share))

    def exceeded(self, chance: float, *, surely: bool = True) -> float:
        """Return a threshold that the estimate of an item nobody has exceeds with probability at most ``chance``.

        If all reports have equal weights, the number of those that support the item is binomial, and the threshold is
        the smallest possible. Otherwise it follows from Bennett's inequality or, if not `surely`, from the normal
        quantile with its first correction for skewness.
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
        """Return the ends of intervals around estimates, each end missing with a probability of its own.

        By Clopper and Pearson where all coefficients are equal, otherwise by the half widths of `Estimate`.

        Parameters
        ----------
        value : ndarray
            Estimates.
        below, above : ndarray
            Probabilities with which the lower and the upper end miss.
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


class SearchResult(NamedTuple):
    """The result of a search.

    Parameters
    ----------
    words : tuple of str
        The words to be tested at the last level.
    codes : ndarray of uint32
        Their codes at that level.
    full : bool
        Whether some level had more prefixes above its threshold than the search follows.
    """

    words: tuple[str, ...]
    codes: NDArray[np.uint32]
    full: bool


def search(domain: WordItems, cells: Sequence[FloatArray], levels: Sequence[Counted]) -> SearchResult:
    """Follow frequent prefixes from level to level; return the words that are left.

    Parameters
    ----------
    domain : WordItems
        The possible words.
    cells : sequence of ndarray, shape (2^bits,)
        Estimated share of each code at each level but the last.
    levels : sequence of Counted
        Public sums over the reports of each level.
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


def _last(domain: WordItems, states: Words, paths: Words, full: bool) -> SearchResult:
    """Return the paths whose words can be records: words with one spelling and without white space at their ends."""
    from shuffledp.tables.options import one_spelling

    words = [domain.word(path) for path in paths]
    kept = [place for place, word in enumerate(words) if word is not None and one_spelling(word) == word]
    return SearchResult(tuple(str(words[place]) for place in kept), domain.code(states[kept], domain.levels - 1), full)


def followed_above(level: Counted, kept: int, tried: int) -> float:
    """Return the estimate above which the search follows a prefix to the next level.

    Parameters
    ----------
    level : Counted
        The reports of the level.
    kept : int
        Largest number of prefixes to keep.
    tried : int
        Number of prefixes tried; if at most `kept`, all are followed, and the result is -inf.
    """
    return -np.inf if tried <= kept else level.exceeded(0.5 * kept / tried, surely=False)


def named_above(last: Counted, chance: float, tried: int) -> float:
    """Return the estimate above which an item is named as frequent.

    Parameters
    ----------
    last : Counted
        The reports of the last level.
    chance : float
        Probability, over all tried items together, that an item which nobody has is named.
    tried : int
        Number of items tried.
    """
    return last.exceeded(chance / max(tried, 1))


def smallest_found(
    domain: ItemDomain, levels: Sequence[Counted], chance: float, tried: Sequence[int] | None = None
) -> float:
    """Return the smallest share that is found with probability `POWER`; above 1 if no share is.

    Parameters
    ----------
    domain : ItemDomain
        The possible items.
    levels : sequence of Counted
        Public sums over the reports of each level.
    chance : float
        Probability that any item is named that nobody has.
    tried : sequence of int, optional
        Number of prefixes tried at each level; default: the largest possible numbers.
    """
    z = float(-ndtri((1.0 - POWER) / len(levels)))
    most = most_tried(domain) if tried is None else tried
    kept = domain.kept if isinstance(domain, WordItems) else 1
    cuts = [followed_above(level, kept, count) for count, level in zip(most, levels, strict=False)]
    cuts = [*cuts[: len(levels) - 1], named_above(levels[-1], chance, most[-1])]
    largest = 0.0
    for cut, level in zip(cuts, levels, strict=True):
        share = max(cut, 0.0)
        for _ in range(_HALVINGS):
            share = max(cut + z * float(level.error(share)), 0.0)
        largest = max(largest, share)
    return largest


def most_tried(domain: ItemDomain) -> list[int]:
    """Return, for each level of the search tree, the largest number of codes whose frequency may be estimated there.

    A list of items has one level. With words, level i tries every kept prefix with every value of the next block, and a
    last level estimates the kept words again.
    """
    if isinstance(domain, ListedItems):
        return [domain.count]
    assert isinstance(domain, WordItems)
    sizes = [domain.block_values(block).size for block in domain.blocks]
    return [sizes[0], *(domain.kept * size for size in sizes[1:]), domain.kept]


# The question which items are frequent at all: of a long public list, or of an unknown domain.

_ROWS = 1 << 16
"""Number of words per chunk, which keeps temporary arrays small."""


class _None:
    """Type of the record of everybody whose item is not listed; it differs from every item of a list."""

    def __repr__(self) -> str:
        return "\0none of the candidates"


NONE = _None()


@dataclass(frozen=True, repr=False)
class FrequentItems(Brief, Question):
    """The question which items are frequent and how frequent, for domains too large to list or mostly of rare items.

    Without `candidates` items are words over a public alphabet, and a search finds frequent ones letter by letter. Each
    person answers at one level of the search only, drawn at random. The people of the last level took no part in the
    search; their reports decide which of the found words are real, and estimate their shares. With `candidates` there
    is one level, and the items named are those of the list whose share is significantly above 0.

    Parameters
    ----------
    candidates : iterable of hashable, optional
        A public list of items, from 2 to 2^24 - 1, all different. A record that is not in the list counts as no item,
        and so does a missing one if `missing_as` is not in the list.
    max_length : int
        Without candidates: the largest number of characters of an item (bytes under ``"utf-8"``), from 1 to 64. It is
        public; shorter limits allow rarer items to be found.
    alphabet : str
        Without candidates: ``"ascii"`` (printable), ``"lower"``, ``"upper"``, ``"digits"``, ``"letters"``, several of
        them joined with ``+``, ``"utf-8"``, or the characters themselves. Fewer characters allow rarer items to be
        found.
    cut : bool
        True: a longer item counts as its first `max_length` characters. False: it is refused, or counts as `other`.
    false_positives : float
        Probability, in (0, 1), that any item is named that nobody has.
    salt : int
        Without candidates: selects one of 2^64 public hashes. It must not depend on the records.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range, or `candidates` are given together with a parameter that only words have.

    Examples
    --------
    >>> FrequentItems(max_length=6, alphabet="upper+digits").domain.levels
    4
    >>> FrequentItems(["a", "b", "c"]).domain.levels
    1
    """

    candidates: tuple[Hashable, ...] | None = None
    max_length: int = 16
    alphabet: str = "ascii"
    cut: bool = False
    false_positives: float = 0.05
    salt: int = 0

    name: ClassVar[str] = "frequent-items"
    reads: ClassVar[Literal["texts", "numbers"]] = "texts"
    mechanisms: ClassVar[tuple[str, ...]] = ("olh",)
    answers = "items"
    words = ((), ("max_length", "alphabet"))
    shape: ClassVar[Shape] = Shape(
        "Frequent items",
        "Which values of {0} are frequent?",
        "share",
        "share",
        label="item",
        keys=("item",),
        key="frequency",
        amount="count",
        picture=Picture(
            "bars",
            (("bar", "estimate"), ("interval", "{confidence} confidence interval; all of them hold together")),
            most=60,
        ),
        excerpt="largest",
        noun="items",
        chosen=True,
        nothing="No item is frequent enough to be named.",
    )

    def __init__(
        self,
        candidates: Iterable[Hashable] | None = None,
        *,
        max_length: int = 16,
        alphabet: str = "ascii",
        cut: bool = False,
        false_positives: float = 0.05,
        salt: int = 0,
    ) -> None:
        for name, value in (
            ("candidates", None if candidates is None else read_labels(candidates)),
            ("max_length", max_length),
            ("alphabet", str(alphabet)),
            ("cut", bool(cut)),
            ("false_positives", false_positives),
            ("salt", salt),
        ):
            object.__setattr__(self, name, value)
        chance = numbers_within(false_positives, "`false_positives`", "a chance in (0, 1)", 1.0, closed=False)
        if chance.ndim or chance == 0.0:
            raise InvalidInput(f"`false_positives` must be a chance in (0, 1); got {shown(false_positives)}")
        if self.candidates is not None and (max_length, alphabet, cut, salt) != (16, "ascii", False, 0):
            raise InvalidInput(
                f"`candidates` list the items, so {'`salt`' if salt else '`max_length`, `alphabet` and `cut`'} say "
                "nothing; leave them out"
            )
        self.domain  # noqa: B018 - checked here, before anything is read

    @cached_property
    def domain(self) -> ItemDomain:
        """The set of possible items, as the randomizer and the search use it."""
        if self.candidates is None:
            return WordItems(self.alphabet, self.max_length, self.salt)
        names = "\n".join(map(repr, self.candidates)).encode("utf-8", "surrogatepass")
        return ListedItems(len(self.candidates), hashlib.sha256(names).hexdigest()[:16])

    def randomizer(self, mechanism: str, budgets: Budgets, seen: Seen) -> LeveledHashing:
        """Return the hashing with the range of least variance for these budgets; see `Question.randomizer`."""
        del seen
        choice(mechanism, "mechanism", self.mechanisms)
        g = best_range(budgets.epsilons, budgets.counts, LARGEST_RANGE)
        return LeveledHashing(self.domain.bits, self.domain.levels, g, self.domain)

    def settled(self, recode: Recode) -> Recode:
        """Return ``recode`` after checking that its words for missing and other records are items.

        See `Question.settled`.
        """
        if recode.clip:
            raise InvalidInput("`clip` moves numbers into a range, and items have none; `cut` shortens long items")
        for parameter, label in (("missing_as", recode.missing_as), ("other", recode.other)):
            if label is None:
                continue
            if self.candidates is not None:
                listed = label in self.candidates
                if not listed and parameter == "other":
                    raise InvalidInput(
                        f"`other` must be a candidate; got {shown(label)}; leave it out, and a record that "
                        "is not listed counts as none of them"
                    )
                continue
            try:
                self._codes([label], 0, Recode())
            except InvalidInput:
                raise InvalidInput(
                    f"`{parameter}` must be an item of at most {self.max_length} characters of the alphabet "
                    f"{shown(self.alphabet)}; got {shown(label)}"
                ) from None
        return recode

    def records(self, columns: Sequence[Any], recode: Recode, before: int) -> NDArray[Any]:
        """Return the codes of each record, shape (n, levels); see `Question.records`."""
        return self._codes(columns[0], before, recode)

    def _codes(self, column: Any, before: int, recode: Recode) -> Codes | NDArray[np.int64]:
        if self.candidates is not None:
            other = NONE if recode.other is None else recode.other
            missing = recode.missing_as
            if missing is not None and missing not in self.candidates:
                missing = NONE
            labels = (*self.candidates, NONE)
            return category_codes(column, labels, before, Recode(missing, other))[:, None]
        words = read_words(column, before, recode)
        domain = self.domain
        assert isinstance(domain, WordItems)
        codes = np.empty((len(words), domain.levels), dtype=np.uint32)
        for start in range(0, len(words), _ROWS):
            part = words[start : start + _ROWS]
            symbols = word_symbols(part, domain, before + start, cut=self.cut, other=recode.other)
            codes[start : start + _ROWS] = domain.codes(symbols)
        return codes

    def view(
        self,
        estimate: ItemsEstimate,
        records: int,
        *,
        level: float = CONFIDENCE,
        simultaneous: bool = False,
        simplex: bool = False,
    ) -> View:
        """Return the view of the named items; intervals of selected items always hold together. See `Question.view`."""
        del simultaneous, simplex
        named, listed = estimate.named(self.false_positives), self.candidates
        items = [estimate.items[place] if listed is None else listed[place] for place in named]
        finds = estimate.finds(self.false_positives)
        return View(
            self.shape,
            Numbers.of(estimate.at(named), level, simultaneous=True),
            [(str(item),) for item in items],
            simultaneous=True,
            support=estimate.support,
            records=records,
            sentences=tuple(self._sentences(estimate, finds, level, any_named=bool(items))),
            after={"search": self._search(estimate, finds), **reach(estimate)},
        )

    def _sentences(self, estimate: ItemsEstimate, finds: float, level: float, *, any_named: bool) -> list[str]:
        """Return sentences on how items were searched for, which of them would be found, and what naming means."""
        domain = estimate.domain
        if isinstance(domain, ListedItems):
            sentences = [
                f"Items were looked for among {count(domain.count)} candidates; all others count as none of them."
            ]
        else:
            sentences = [
                f"Items were searched for letter by letter, at {domain.levels} levels, each answered by one in "
                f"{domain.levels} of the people, on average."
            ]
        if finds < 1.0:
            sentences.append(f"An item that at least {share(finds)} of the people have is found with a chance of 95 %.")
        else:
            sentences.append("With so few people at such budgets, no item would surely be found, however frequent.")
        chance = percent(self.false_positives)
        sentences.append(f"The chance that any item is named that nobody has is at most {chance}.")
        if any_named:
            sentences.append(
                f"The {level:.0%} intervals hold all together, although the data chose the items; one that begins at "
                "0 says that few may have the item."
            )
        if not isinstance(domain, ListedItems):
            sentences.append(
                "Names and shares are up to a public hash: a share is that of an item and of all words that fall into "
                f"the same one of {count(1 << domain.bits)} cells."
            )
        if estimate.full:
            sentences.append(
                "More beginnings of words were frequent than the search follows, so items may be missing; ask about "
                "shorter words, or with a smaller alphabet."
            )
        return sentences

    def _search(self, estimate: ItemsEstimate, finds: float) -> dict[str, Any]:
        """Return the facts on the search that machine-readable output holds."""
        return {
            "threshold": estimate.threshold(self.false_positives),
            "finds": finds,
            "false_positives": self.false_positives,
            "levels": estimate.domain.levels,
            "cells": 1 << estimate.domain.bits,
            "tried": len(estimate.items),
            "complete": not estimate.full,
        }

    def finds(self, budgets: Budgets, people: int | None = None) -> float:
        """Return the smallest share of an item that is found with probability 95 %, predicted before any report.

        Parameters
        ----------
        budgets : Budgets
            The population; levels are withheld, or there is one.
        people : int, optional
            Number of people; default: that of `budgets`.

        Examples
        --------
        >>> question = FrequentItems(max_length=6, alphabet="upper+digits")
        >>> round(question.finds(Budgets((2.0,), (100_000,))), 3)
        0.032
        """
        pass

        randomizer = self.randomizer("olh", budgets, "reports")
        law = randomizer.support_law(budgets.epsilons)
        counts: FloatArray = budgets.counts / budgets.n
        apart = float(np.sum(counts * (law.own - law.other)))
        each = (budgets.n if people is None else people) / randomizer.levels
        levels = [Counted.of_equal(each, apart, randomizer.g) for _ in range(randomizer.levels)]
        return smallest_found(self.domain, levels, self.false_positives)


# Frequent items from the shuffled reports alone: which are named, their shares, and intervals that stand selection.
#
# **Estimates.** At each level the estimate of a code's share is that of local hashing
# (`shuffledp.questions.frequency`), over the reports of the level: (supports - n/g) / sum (p - 1/g). The target is the
# share among all people: a level's people are a random part of them, so the supports among n reports have at most the
# variance n s (1 - s), s = 1/g + f (p - 1/g) in the mean, that of independent draws; and at most their moment
# generating function (Maclaurin's inequality on the elementary symmetric means of 1 + s_i (e^t - 1)), so the
# inequalities behind the intervals hold too.
#
# **Intervals that stand selection.** The items that are named are chosen by the data. Their intervals hold all together
# with the level 1 - a, however they were chosen: the interval of an item of share f misses with the chance a f, and the
# shares of all items add up to 1, so with the chance 1 - a none of the items that anybody has is missed. The upper end
# uses the chance a max(f, 1/n) at the estimate, which is the smallest for the shares above it; the lower end solves
# f = estimate - h(a f) from below.
#
# **What shares a cell.** Two words have the same code at the last level with the chance 2^-bits of a public hash. An
# estimate is of an item together with the words that share its cell: of the other people one in 2^bits in the mean.

_STEPS = 12
"""Number of steps of the iteration for the lower end of an interval, which increases to it and converges quickly."""


@dataclass(frozen=True, eq=False, repr=False)
class ItemsEstimate(Estimate):
    """Estimated shares of the items that were tested at the last level.

    Parameters
    ----------
    value, standard_error, step, support, uninformative
        As for `Estimate`, one entry for each item tested.
    items : tuple of hashable
        The words tested, or the indices in the list of candidates.
    levels : tuple of Counted
        Public sums over the reports of each level.
    domain : ItemDomain
        The possible items.
    people : int
        Number of reports over all levels.
    full : bool
        Whether the search had more frequent prefixes than it follows, so that items may be missing.
    """

    items: tuple[Hashable, ...]
    levels: tuple[Counted, ...]
    domain: ItemDomain
    people: int
    full: bool

    inequality_name: ClassVar[str] = ""

    def threshold(self, chance: float) -> float:
        """Return the estimate above which an item is named.

        Parameters
        ----------
        chance : float
            Probability that any item is named that nobody has.
        """
        return named_above(self.levels[-1], chance, len(self.items))

    def named(self, chance: float) -> NDArray[np.intp]:
        """Return the indices, among the items tested, of those that are named, the largest share first.

        ``chance`` is the probability that any item is named that nobody has.
        """
        above = np.flatnonzero(self.value > self.threshold(chance))
        return above[np.lexsort((above, -self.value[above]))]

    def at(self, places: NDArray[np.intp]) -> ItemsEstimate:
        """Return the estimates of the items at ``places``, for their intervals; its thresholds are not meaningful."""
        items = tuple(self.items[place] for place in places)
        return replace(self, items=items, value=self.value[places], standard_error=self.standard_error[places])

    def finds(self, chance: float) -> float:
        """Return the smallest share that is found with probability 95 %; see `shuffledp.questions.items`.

        ``chance`` is the probability that any item is named that nobody has.
        """
        return smallest_found(self.domain, self.levels, chance)

    def confidence_interval(self, level: float = 0.95, simultaneous: bool = True) -> tuple[FloatArray, FloatArray]:
        """Return both ends of confidence intervals that hold together, whichever items were selected; see the module.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).
        simultaneous : bool
            Ignored: the interval of a selected item does not hold by itself.

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
    """Exact sums for a search for frequent items: sums of hash signs, and the number of people, at each level.

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
    >>> from shuffledp.questions.question import Task
    >>> family = LeveledHashing(2, 1, 64, ListedItems(3))
    >>> tally = ItemTally(Task(family, Budgets((700.0,), (400,)), "reports"))
    >>> tally.add(family.randomize([1] * 400, 700.0, secure_random()))
    >>> [tally.estimate().items[place] for place in tally.estimate().named(1e-9)]
    [1]
    """

    def _layout(self) -> list[LevelSums]:
        """Return the layouts of two tables: hash signs with coefficients b, people with those in `Counted`."""
        family = self._family
        if family.domain is None:
            raise InvalidInput(
                f"items cannot be read from reports of {family.name} without their domain; give the domain to the "
                "randomizer"
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
        """Search for items, and return the estimated shares of those found; see the module."""
        family, (signs, people) = self._family, self._tables
        sign_sums, counts = self._sums
        sums = [people.read(counts, row) for row in range(4)]
        equal = not self.task.by_level
        largest = float(signs.coefficients[0].max())
        levels = tuple(
            Counted.of(total, squares, apart, apart_squares, largest, family.g, equal=equal)
            for total, squares, apart, apart_squares in np.stack(sums, axis=1).tolist()
        )
        added = signs.read(sign_sums, 0).reshape(family.levels, -1)

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
