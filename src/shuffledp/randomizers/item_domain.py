"""Domains of items: what an item is, and which code stands for it at each level of a search for frequent items.

Items of an unknown domain are words over a public alphabet. A word is cut into blocks of characters; level l of the
search stands for the first l blocks, and one more level stands for the whole word once more, under another hash. The
code of a level is a public hash of that prefix, so that the analyzer can count codes without a list of all words.

Privacy does not depend on how codes are made: any function of the record will do (docs/theorems/randomizers.md).
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import MAX_COUNTED, InvalidInput, shown, whole_number
from shuffledp.numerics.randomness import Words
from shuffledp.randomizers.vector import mix

Codes = NDArray[np.uint32]

BITS = 20
"""Number of bits of a word's code: 2^20 cells are counted at each level, so that few words share one."""
MOST_KEPT = 256
"""Largest number of prefixes that are followed from one level to the next."""
LARGEST_BLOCK = 1 << 14
"""Largest number of extensions of a prefix at one level."""
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
"""Alphabets by name; names joined with + mean their union."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class ItemDomain(Protocol):
    """The possible items as the randomizer and the search see them; the `repr` of a domain names all its parameters."""

    @property
    def levels(self) -> int:
        """Number of levels of the search; the last one stands for whole items and estimates their shares."""
        ...

    @property
    def bits(self) -> int:
        """Number of bits of a code, the same at every level."""
        ...


@dataclass(frozen=True)
class ListedItems:
    """Items of a public list: the code of an item is its place in the list, and there is one level.

    Parameters
    ----------
    count : int
        How many items are listed, from 2 to 2^24 - 1; the code `count` stands for none of them.
    digest : str
        Digest of the list, so that reports about different lists are never added up.

    Raises
    ------
    InvalidInput
        If `count` is out of range.

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
        """Number of levels of the search: 1."""
        return 1

    @property
    def bits(self) -> int:
        """Number of bits of a code; codes are the whole numbers 0, ..., count."""
        return self.count.bit_length()


@dataclass(frozen=True)
class WordItems:
    """Words over a public alphabet, of up to `length` characters, for a search without a list of candidates.

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
        symbols = self.characters
        if self.alphabet != UTF8 and (len(symbols) < 2 or len(set(symbols)) < len(symbols) or "\0" in symbols):
            raise InvalidInput(
                f"`alphabet` must be {', '.join((*PRESETS, UTF8))}, several of them joined with +, or at least two "
                f"different characters; got {shown(self.alphabet)}"
            )
        if self.levels > MOST_LEVELS:
            raise InvalidInput(
                f"items of {length} characters of {self.size - 1} take {self.levels} levels, above {MOST_LEVELS}, so "
                "that few people would answer for each; ask for a smaller `max_length`, or name a smaller `alphabet`"
            )

    @cached_property
    def characters(self) -> str:
        """The alphabet as a text, sorted for presets; empty under ``"utf-8"``. Character i has the symbol i + 1."""
        if self.alphabet == UTF8:
            return ""
        names = self.alphabet.split("+")
        if all(name in PRESETS for name in names):
            return "".join(sorted(set("".join(PRESETS[name] for name in names))))
        return self.alphabet

    @property
    def size(self) -> int:
        """Number of symbols: one for each character, and `END` (0) after a word's last character."""
        return 256 if self.alphabet == UTF8 else len(self.characters) + 1

    @cached_property
    def blocks(self) -> tuple[int, ...]:
        """Number of characters of each block; the first one is longer, as the search extends a single prefix by it."""
        sizes = [min(self._largest(1 << BITS), self.length)]
        step = self._largest(LARGEST_BLOCK)
        while sum(sizes) < self.length:
            sizes.append(min(step, self.length - sum(sizes)))
        return tuple(sizes)

    @property
    def kept(self) -> int:
        """Number of prefixes kept from one level of the search to the next, so that a level tries at most 2^20."""
        return min(MOST_KEPT, (1 << BITS) // self.size ** self._largest(LARGEST_BLOCK))

    @property
    def levels(self) -> int:
        """Number of levels of the search: one for each block, and one for the whole word under another hash."""
        return len(self.blocks) + 1

    @property
    def bits(self) -> int:
        """Number of bits of a code: 20, at every level."""
        return BITS

    def _largest(self, most: int) -> int:
        """Return how many characters have at most so many words; at least 1."""
        characters = 1
        while self.size ** (characters + 1) <= most:
            characters += 1
        return characters

    def codes(self, symbols: NDArray[np.uint8] | NDArray[np.uint32]) -> Codes:
        """Return the code of each word at each level of the search.

        Parameters
        ----------
        symbols : ndarray of unsigned int, shape (n, length)
            Symbols of the words, below `size`; `END` after a word's last character.

        Returns
        -------
        ndarray of uint32, shape (n, levels)
            The codes, below 2^bits.
        """
        table = np.empty((symbols.shape[0], self.levels), dtype=np.uint32)
        state, start = self.root(symbols.shape[0]), 0
        for level, block in enumerate(self.blocks):
            value = np.zeros(symbols.shape[0], dtype=np.uint64)
            for place in range(start, start + block):
                value = value * np.uint64(self.size) + symbols[:, place]
            state, start = self.extended(state, value), start + block
            table[:, level] = self.code(state, level)
        table[:, -1] = self.code(state, self.levels - 1)
        return table

    def root(self, n: int) -> Words:
        """Return n copies of the 64-bit hash state of the empty prefix, from which `extended` starts."""
        return np.full(n, mix(np.array([self.salt], dtype=np.uint64) + _GOLDEN)[0], dtype=np.uint64)

    def extended(self, states: Words, values: Words) -> Words:
        """Return the 64-bit hash states of prefixes extended by one block each; two rarely share a state.

        Parameters
        ----------
        states, values : ndarray of uint64
            States of the prefixes, and values of the blocks: a block's symbols as digits in base `size`, the first the
            highest. Broadcast with each other.
        """
        return mix(states + _GOLDEN * (values + np.uint64(1)))

    def code(self, states: Words, level: int) -> Codes:
        """Return the codes (uint32, below 2^bits) of prefixes at a level, from their hash states.

        Parameters
        ----------
        states : ndarray of uint64
            Hash states of the prefixes of that level; the last two levels have the same states.
        level : int
            Level of the search, from 0 to levels - 1.
        """
        key = mix(np.array([level + 1], dtype=np.uint64) * _GOLDEN)[0]
        return (mix(states ^ key) >> np.uint64(64 - self.bits)).astype(np.uint32)

    def block_values(self, block: int) -> Words:
        """Return the values of all blocks of `block` characters, those in which only `END` follows an `END`.

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
        """Return the word whose blocks have the given values; None under ``"utf-8"`` if its bytes are no text."""
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
