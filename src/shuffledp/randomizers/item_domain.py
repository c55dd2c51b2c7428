"""Domains of items: what an item is, and which code stands for it at each level of a search.

Items of an unknown domain are words over a public alphabet. A word is cut into blocks of characters; level l of the
search stands for the first l blocks, and one more level stands for the whole word once more, under another hash. The
code of a level is a public hash of that prefix, so that the analyzer can count codes without a list of all words.

Privacy does not ask how codes come about: any function of the record will do (docs/theorems/randomizers.md).
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput, shown
from shuffledp.numerics.randomness import Words
from shuffledp.randomizers.checks import MAX_COUNTED, whole_number
from shuffledp.randomizers.vector import mix

Codes = NDArray[np.uint32]

BITS = 20
"""Bits of a code of a word: 2^20 cells are counted at each level, so that few words share one."""
MOST_KEPT = 256
"""Prefixes that are followed from one level to the next."""
LARGEST_BLOCK = 1 << 14
"""Extensions of a prefix at one level."""
MOST_LENGTH, MOST_LEVELS = 64, 32
UTF8 = "utf-8"
END = 0
"""The symbol after a word's last character."""

PRESETS = {
    "ascii": "".join(map(chr, range(32, 127))),
    "lower": string.ascii_lowercase,
    "upper": string.ascii_uppercase,
    "digits": string.digits,
    "letters": string.ascii_letters,
}
"""Alphabets by name; names joined with + are taken together."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class ItemDomain(Protocol):
    """What items there are, as the randomizer and the search see it; its `repr` names all its parameters."""

    @property
    def levels(self) -> int:
        """Levels of the search; the last one stands for whole items and estimates their shares."""
        ...

    @property
    def bits(self) -> int:
        """The number of bits of an item's code."""
        ...


@dataclass(frozen=True)
class ListedItems:
    """Items of a public list: the code of an item is its place, and there is one level.

    Parameters
    ----------
    count : int
        How many items are listed, from 2 to 2^24 - 1; the code `count` stands for none of them.
    digest : str
        Says which list it is, so that reports about different lists are never added up.

    Raises
    ------
    InvalidInput
        If there are too few or too many.

    Examples
    --------
    >>> ListedItems(1000).bits
    10
    """

    count: int
    digest: str = ""

    def __post_init__(self) -> None:
        what = "a list of candidates takes a whole number of different items"
        object.__setattr__(self, "count", whole_number(self.count, what, 2, MAX_COUNTED - 1))

    @property
    def levels(self) -> int:
        """See `ItemDomain.levels`."""
        return 1

    @property
    def bits(self) -> int:
        """See `ItemDomain.bits`; the codes are 0..count."""
        return self.count.bit_length()


@dataclass(frozen=True)
class WordItems:
    """Words of up to so many characters of a public alphabet.

    Parameters
    ----------
    alphabet : str
        A key of `PRESETS`, several of them joined with ``+``, ``"utf-8"`` (characters are then bytes), or the
        characters themselves, at least two, all different.
    length : int
        Most characters (bytes under ``"utf-8"``) of a word, from 1 to 64.
    salt : int
        Which of 2^64 public hashes is used; it must not depend on the records.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range, or the search would take more than 32 levels.

    Examples
    --------
    >>> words = WordItems("upper+digits", 6)
    >>> words.blocks, words.levels, words.bits
    ((3, 2, 1), 4, 20)
    """

    alphabet: str
    length: int
    salt: int = 0

    def __post_init__(self) -> None:
        length = whole_number(self.length, "items take a whole `max_length`", 1, MOST_LENGTH)
        object.__setattr__(self, "length", length)
        object.__setattr__(self, "salt", whole_number(self.salt, "items take a whole `salt`", 0, 2**64 - 1))
        known = self.characters
        if self.alphabet != UTF8 and (len(known) < 2 or len(set(known)) < len(known) or "\0" in known):
            raise InvalidInput(
                f"`alphabet` must be one of {', '.join((*PRESETS, UTF8))}, some of them joined with +, or at least two "
                f"different characters; got {shown(self.alphabet)}"
            )
        if self.levels > MOST_LEVELS:
            raise InvalidInput(
                f"items of {length} characters of {self.size - 1} take {self.levels} levels, above {MOST_LEVELS}, so "
                "that few people would answer for each; ask for a smaller `max_length`, or name a smaller `alphabet`"
            )

    @cached_property
    def characters(self) -> str:
        """The characters, by their symbol less 1; "" under ``"utf-8"``, where a symbol is a byte."""
        if self.alphabet == UTF8:
            return ""
        names = self.alphabet.split("+")
        if all(name in PRESETS for name in names):
            return "".join(sorted(set("".join(PRESETS[name] for name in names))))
        return self.alphabet

    @property
    def size(self) -> int:
        """Number of symbols: the characters, and `END`."""
        return 256 if self.alphabet == UTF8 else len(self.characters) + 1

    @cached_property
    def blocks(self) -> tuple[int, ...]:
        """Characters of each block: as many as can be tried, more in the first one, which extends a single prefix."""
        found = [min(self._largest(1 << BITS), self.length)]
        step = self._largest(LARGEST_BLOCK)
        while sum(found) < self.length:
            found.append(min(step, self.length - sum(found)))
        return tuple(found)

    @property
    def kept(self) -> int:
        """Prefixes that are followed from one level to the next, so that at most 2^20 are tried at each."""
        return min(MOST_KEPT, (1 << BITS) // self.size ** self._largest(LARGEST_BLOCK))

    @property
    def levels(self) -> int:
        """See `ItemDomain.levels`."""
        return len(self.blocks) + 1

    @property
    def bits(self) -> int:
        """See `ItemDomain.bits`."""
        return BITS

    def _largest(self, most: int) -> int:
        """Return how many characters have at most so many words; at least 1."""
        found = 1
        while self.size ** (found + 1) <= most:
            found += 1
        return found

    def codes(self, symbols: NDArray[np.uint8] | NDArray[np.uint32]) -> Codes:
        """Return the code of each word at each level.

        Parameters
        ----------
        symbols : ndarray of unsigned int, shape (n, length)
            Below `size`; `END` after a word's last character.

        Returns
        -------
        ndarray of uint32, shape (n, levels)
        """
        found = np.empty((symbols.shape[0], self.levels), dtype=np.uint32)
        state, start = self.root(symbols.shape[0]), 0
        for level, block in enumerate(self.blocks):
            value = np.zeros(symbols.shape[0], dtype=np.uint64)
            for place in range(start, start + block):
                value = value * np.uint64(self.size) + symbols[:, place]
            state, start = self.extended(state, value), start + block
            found[:, level] = self.code(state, level)
        found[:, -1] = self.code(state, self.levels - 1)
        return found

    def root(self, n: int) -> Words:
        """Return the state of the empty prefix, n times: what `extended` starts from."""
        return np.full(n, mix(np.array([self.salt], dtype=np.uint64) + _GOLDEN)[0], dtype=np.uint64)

    def extended(self, states: Words, values: Words) -> Words:
        """Return the state of prefixes longer by a block; 64 bits, so that no two prefixes are likely to share one.

        Parameters
        ----------
        states, values : ndarray of uint64
            Of the prefixes, and of the blocks (the number that the block's symbols are, the first one the highest);
            broadcast.
        """
        return mix(states + _GOLDEN * (values + np.uint64(1)))

    def code(self, states: Words, level: int) -> Codes:
        """Return the codes of prefixes at a level.

        Parameters
        ----------
        states : ndarray of uint64
            Of the prefixes of that level; the last two levels have the same.
        level : int
            From 0 to levels - 1.
        """
        key = mix(np.array([level + 1], dtype=np.uint64) * _GOLDEN)[0]
        return (mix(states ^ key) >> np.uint64(64 - self.bits)).astype(np.uint32)

    def block_values(self, block: int) -> Words:
        """Return the values of all blocks of so many characters in which nothing follows an `END`.

        Parameters
        ----------
        block : int
            Number of characters.
        """
        values = np.arange(self.size, dtype=np.uint64)
        for _ in range(block - 1):
            more = values[:, None] * np.uint64(self.size) + np.arange(self.size, dtype=np.uint64)
            ended = values % np.uint64(self.size) == END
            more[ended, 1:] = np.uint64(2**64 - 1)
            values = more[more != np.uint64(2**64 - 1)]
        return values

    def word(self, values: NDArray[np.uint64]) -> str | None:
        """Return the word whose blocks have these values; None if they are the bytes of no text."""
        symbols: list[int] = []
        for value, block in zip(values.tolist(), self.blocks, strict=True):
            symbols += [value // self.size**place % self.size for place in reversed(range(block))]
        kept = symbols[: symbols.index(END)] if END in symbols else symbols
        if self.alphabet != UTF8:
            return "".join(self.characters[symbol - 1] for symbol in kept)
        try:
            return bytes(kept).decode()
        except UnicodeDecodeError:
            return None
