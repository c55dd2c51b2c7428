"""The question which items are frequent at all: of a long public list, or of an unknown domain."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.interval import FloatArray
from shuffledp.protocol.choices import check_choice
from shuffledp.protocol.columns import Recode, category_codes, read_labels
from shuffledp.protocol.questions import Question
from shuffledp.protocol.words import read_words, word_symbols
from shuffledp.randomizers.checks import numbers_within
from shuffledp.randomizers.hashing import best_range
from shuffledp.randomizers.item_domain import Codes, ItemDomain, ListedItems, WordItems
from shuffledp.randomizers.leveled import LARGEST_RANGE, LeveledHashing
from shuffledp.setting import Seen

_ROWS = 1 << 16
"""Words at a time, so that temporaries stay small."""


class _None:
    """The record of everybody whose item is not listed; no item of a list is equal to it."""

    def __repr__(self) -> str:
        return "\0none of the candidates"


NONE = _None()


@dataclass(frozen=True)
class FrequentItems(Question):
    """Which items are frequent among the people, and how frequent, where nobody can list all items or few of many are.

    Without `candidates` items are words over a public alphabet, and a search finds frequent ones letter by letter:
    each person answers at one level of the search only, drawn at random, and the last level, whose people took no part
    in the search, tells which of the words found are real, and estimates their shares. With `candidates` there is one
    level, and the items that are named are those of the list whose share is surely above 0.

    Parameters
    ----------
    candidates : iterable of hashable, optional
        A public list of items, from 2 to 2^24 - 1, all different. A record that is none of them counts as none of them,
        and so does a missing one if `missing_as` is none of them.
    max_length : int
        Without candidates: most characters of an item (bytes under ``"utf-8"``), from 1 to 64. It is public, and the
        shorter, the rarer the items that are found.
    alphabet : str
        Without candidates: ``"ascii"`` (printable), ``"lower"``, ``"upper"``, ``"digits"``, ``"letters"``, several of
        them joined with ``+``, ``"utf-8"``, or the characters themselves. The fewer there are, the rarer the items that
        are found.
    cut : bool
        Whether a longer item counts as its first `max_length` characters; else it is refused, or counts as `other`.
    false_positives : float
        Chance, in (0, 1), that any item is named that nobody has.
    salt : int
        Without candidates: which of 2^64 public hashes is used. It must not depend on the records.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range, or `candidates` are given with what only words have.

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
        """What the items are, for the randomizer and the search."""
        if self.candidates is None:
            return WordItems(self.alphabet, self.max_length, self.salt)
        names = "\n".join(map(repr, self.candidates)).encode("utf-8", "surrogatepass")
        return ListedItems(len(self.candidates), hashlib.sha256(names).hexdigest()[:16])

    def randomizer(self, mechanism: str, budgets: Budgets, seen: Seen) -> LeveledHashing:
        """See `Question.randomizer`; the range of the hash is the one of least variance for these budgets."""
        del seen
        check_choice("mechanism", mechanism, self.mechanisms)
        g = best_range(budgets.epsilons, budgets.counts, LARGEST_RANGE)
        return LeveledHashing(self.domain.bits, self.domain.levels, g, self.domain)

    def settled(self, recode: Recode) -> Recode:
        """See `Question.settled`: a word for missing or other records must be an item."""
        if recode.clip:
            raise InvalidInput("`clip` moves numbers into a range, and items have none; `cut` shortens long items")
        for parameter, label in (("missing_as", recode.missing_as), ("other", recode.other)):
            if label is None:
                continue
            if self.candidates is not None:
                known = label in self.candidates
                if not known and parameter == "other":
                    raise InvalidInput(
                        f"`other` must be one of the candidates; got {shown(label)}; leave it out, and a record that "
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
        """See `Question.records`: the codes of each record, shape (n, levels)."""
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
        found = np.empty((len(words), domain.levels), dtype=np.uint32)
        for start in range(0, len(words), _ROWS):
            part = words[start : start + _ROWS]
            symbols = word_symbols(part, domain, before + start, cut=self.cut, other=recode.other)
            found[start : start + _ROWS] = domain.codes(symbols)
        return found

    def finds(self, budgets: Budgets, people: int | None = None) -> float:
        """Return the smallest share of an item that is found with a chance of 95 %, as far as is known beforehand.

        Parameters
        ----------
        budgets : Budgets
            The population; levels are withheld, or there is one.
        people : int, optional
            How many there are, if not as many as `budgets` says.

        Examples
        --------
        >>> question = FrequentItems(max_length=6, alphabet="upper+digits")
        >>> round(question.finds(Budgets((2.0,), (100_000,))), 3)
        0.032
        """
        from shuffledp.protocol.item_search import Counted, smallest_found

        randomizer = self.randomizer("olh", budgets, "reports")
        law = randomizer.support_law(budgets.epsilons)
        counts: FloatArray = budgets.counts / budgets.n
        apart = float(np.sum(counts * (law.own - law.other)))
        each = (budgets.n if people is None else people) / randomizer.levels
        levels = [Counted.of_equal(each, apart, randomizer.g) for _ in range(randomizer.levels)]
        return smallest_found(self.domain, levels, self.false_positives)
