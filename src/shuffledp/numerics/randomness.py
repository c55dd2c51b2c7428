"""Random bits, and the draws made from them by comparing integers: exact, vectorised, secure by default.

No draw goes through a floating-point uniform: a Bernoulli draw compares a 64-bit word with an integer
threshold, a uniform integer rejects the words that would bias it, and a permutation sorts random keys and
redraws ties.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput, whole_number

Words = NDArray[np.uint64]

_ZEROS = bytes(1 << 20)
_SLACK = 15  # a cipher may write up to one block, less a byte, beyond what was asked

_SIMULATION = 0x73687566  # "shuf"
_PARTITION = 0x70617274  # "part"


class Randomness(ABC):
    """A source of independent uniform 64-bit words, with exact draws made from them.

    Attributes
    ----------
    private : bool
        True if nobody can predict or repeat the words; an output drawn from any other source is not private.

    Examples
    --------
    >>> secure_random().private, simulation_random(1).private
    (True, False)
    """

    private: bool

    @abstractmethod
    def words(self, n: int) -> Words:
        """Return n independent words, uniform on [0, 2^64).

        Parameters
        ----------
        n : int
            Number of words, at least 0.

        Returns
        -------
        ndarray of uint64, shape (n,)
            A fresh, writable array.
        """

    def another(self) -> Randomness:
        """Return a source for another thread: a new independent one if this source is private, else this source itself.

        A seeded source has one sequence of words, so threads that share it must take turns.
        """
        return self

    def bernoulli(self, thresholds: Words | int, n: int) -> NDArray[np.bool_]:
        """Draw n independent booleans, True with probability exactly ``thresholds / 2^64``.

        Parameters
        ----------
        thresholds : int, or ndarray of uint64 of shape (n,)
            In [0, 2^64): 0 gives False always, and probability 1 cannot be stated. A probability such as 0.9 is
            refused: its threshold is ``int(0.9 * 2**64)``.
        n : int
            Number of draws, at least 0.

        Raises
        ------
        InvalidInput
            If a threshold is not an unsigned 64-bit integer.

        Examples
        --------
        >>> bool(simulation_random(1).bernoulli(0, 1000).any())
        False
        """
        if not isinstance(thresholds, np.ndarray):
            # np.uint64 would cut a probability such as 0.9 to 0: always False, which keeps nobody's secret.
            what = "a Bernoulli threshold, the probability times 2^64, must be a whole number"
            return self.words(n) < np.uint64(whole_number(thresholds, what, 0, 2**64 - 1))
        if thresholds.dtype != np.uint64 or thresholds.shape != (n,):
            raise InvalidInput(
                f"Bernoulli thresholds must be {n} uint64; got {thresholds.dtype} of shape {thresholds.shape}"
            )
        return self.words(n) < thresholds

    def integers(self, bound: int, n: int) -> NDArray[np.int64]:
        """Draw n independent integers, exactly uniform on [0, bound), as an array of int64.

        Words at or above the largest multiple of ``bound`` are drawn again, so the remainder has no bias.

        Parameters
        ----------
        bound : int
            From 1 to 2^63.
        n : int
            Number of draws, at least 0.

        Raises
        ------
        InvalidInput
            If bound is out of range.

        Examples
        --------
        >>> simulation_random(1).integers(1, 3).tolist()
        [0, 0, 0]
        """
        bound = whole_number(bound, "the bound of a uniform integer must be a whole number", 1, 2**63)
        words = self.words(n)
        excess = 2**64 % bound
        if excess:
            accepted_below = np.uint64(2**64 - excess)
            redraw = np.flatnonzero(words >= accepted_below)
            while redraw.size:
                words[redraw] = self.words(redraw.size)
                redraw = redraw[words[redraw] >= accepted_below]
        words %= np.uint64(bound)
        return words.astype(np.int64)

    def permutation(self, n: int) -> NDArray[np.int64]:
        """Draw a permutation of 0..n-1, exactly uniform over all n! of them.

        Each row gets a random key, the high bits of a word whose low bits hold the row number, and the packed
        words are sorted: rows whose keys differ are in uniformly random order. Rows whose keys tie (expected
        number n^2 / 2^(64 - log2 n): about 50 at ten million) get fresh 64-bit keys, drawn again until all
        differ within a tie, so their order is uniform too and independent of the rest.

        Parameters
        ----------
        n : int
            At least 0, at most 2^40.

        Examples
        --------
        >>> sorted(simulation_random(1).permutation(4).tolist())
        [0, 1, 2, 3]
        """
        if not 0 <= n <= 2**40:
            raise InvalidInput(f"a permutation needs a length from 0 to 2^40; got {n}")
        row_bits = max(n - 1, 1).bit_length()
        row_mask = np.uint64(2**row_bits - 1)
        packed = self.words(n)
        packed &= ~row_mask
        packed |= np.arange(n, dtype=np.uint64)
        packed.sort()
        order = (packed & row_mask).astype(np.int64)
        packed >>= np.uint64(row_bits)
        same = packed[1:] == packed[:-1]
        if same.any():
            in_tie = np.zeros(n, dtype=np.bool_)
            in_tie[1:] |= same
            in_tie[:-1] |= same
            where = np.flatnonzero(in_tie)
            order[where] = order[where[self._order_within(packed[where])]]
        return order

    def _order_within(self, groups: Words) -> NDArray[np.intp]:
        """Return row numbers ordered by ``groups`` (ascending), in uniformly random order within each group."""
        while True:
            keys = self.words(groups.size)
            order = np.lexsort((keys, groups))
            keys, grouped = keys[order], groups[order]
            if not ((keys[1:] == keys[:-1]) & (grouped[1:] == grouped[:-1])).any():
                return order


class _Keystream:
    """AES-256 in counter mode under a random key of its own, used by one process only."""

    def __init__(self, key: bytes | None = None) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # who only asks draws nothing

        # A key is used for one object in one process, so a fixed first counter never repeats a keystream.
        self.process = _process()
        self.lock = threading.Lock()
        self.cipher = Cipher(
            algorithms.AES256(os.urandom(32) if key is None else key), modes.CTR(bytes(16))
        ).encryptor()

    def fill(self, view: memoryview, size: int) -> None:
        """Write the next `size` bytes of the stream into the view, which is `_SLACK` bytes longer."""
        with self.lock:
            for start in range(0, size, len(_ZEROS)):
                zeros = _ZEROS[: size - start]
                self.cipher.update_into(zeros, view[start : start + len(zeros) + _SLACK])


class _SecureRandom(Randomness):
    """Randomness from AES-256 in counter mode, with a key from the operating system for every object and process."""

    private = True

    def __init__(self) -> None:
        self._keystream = _Keystream()

    def words(self, n: int) -> Words:
        """Implement `Randomness.words`; after a fork the child process draws under a new key."""
        size = 8 * _count(n)
        out = np.empty(size + _SLACK, dtype=np.uint8)
        while True:
            keystream = self._own_keystream()
            keystream.fill(memoryview(out.data), size)
            if keystream.process == _process():
                return out[:size].view(np.uint64)
            # A signal handler forked while the words were drawn; the parent keeps them, so the child draws others.

    def _own_keystream(self) -> _Keystream:
        """Return the keystream of this process. Cipher, lock and process are replaced together, by one thread."""
        if self._keystream.process != _process():
            with _renewing:
                if self._keystream.process != _process():
                    self._keystream = _Keystream()
        return self._keystream

    def another(self) -> Randomness:
        """Return a new source under a key of its own; see `Randomness.another`."""
        return _SecureRandom()

    def __reduce__(self) -> NoReturn:
        raise InvalidInput(
            "secure randomness cannot be copied or pickled, or two owners would share one keystream; "
            "call secure_random() in each process"
        )


class _KeyedRandom(Randomness):
    """Randomness from AES-256 in counter mode under a given key, with which the words can be repeated."""

    private = True

    def __init__(self, key: bytes) -> None:
        self._keystream = _Keystream(key)

    def words(self, n: int) -> Words:
        """Implement `Randomness.words` by the next bytes of the keystream, read as little-endian words."""
        size = 8 * _count(n)
        out = np.empty(size + _SLACK, dtype=np.uint8)
        self._keystream.fill(memoryview(out.data), size)
        return out[:size].view("<u8").astype(np.uint64, copy=False)

    def __reduce__(self) -> NoReturn:
        raise InvalidInput("keyed randomness cannot be copied or pickled, or two owners would draw the same words")


class _SimulationRandom(Randomness):
    """Reproducible words of a PCG64 generator; whoever knows the seed can undo the privacy."""

    private = False

    def __init__(self, *seed: int) -> None:
        # a stream of its own: data drawn from default_rng(seed) must not share it
        self._bits = np.random.PCG64(np.random.SeedSequence([*seed]))

    def words(self, n: int) -> Words:
        """Implement `Randomness.words` by the next outputs of the generator."""
        return self._bits.random_raw(_count(n))

    def __reduce__(self) -> NoReturn:
        raise InvalidInput(
            "simulated randomness cannot be copied or pickled, or every copy would draw the same words; call "
            "simulation_random(seed) where it is used"
        )


def secure_random() -> Randomness:
    """Return randomness that nobody can predict: a cipher keystream keyed by the operating system.

    AES-256 in counter mode under 256 bits of `os.urandom`, a fresh key for every object. It cannot be seeded, copied or
    pickled, a forked child takes a new key before its first draw, and threads may share one object.

    Returns
    -------
    Randomness
        With ``private = True``.

    Examples
    --------
    >>> secure_random().words(2).dtype
    dtype('uint64')
    """
    return _SecureRandom()


def keyed_random(key: bytes) -> Randomness:
    """Return randomness that only holders of the key can predict, and that they can repeat on every machine.

    The keystream of AES-256 in counter mode under the key.

    Parameters
    ----------
    key : bytes
        32 secret bytes, used for one purpose only.

    Returns
    -------
    Randomness
        With ``private = True``, as long as the key is secret.

    Examples
    --------
    >>> [hex(word) for word in keyed_random(bytes(32)).words(1).tolist()]
    ['0x898940a278c095dc']
    """
    if len(key) != 32:
        raise InvalidInput(f"a key of randomness has 32 bytes; got {len(key)}")
    return _KeyedRandom(key)


def simulation_random(seed: int) -> Randomness:
    """Return reproducible randomness for simulations and tests: whatever is drawn from it is *not private*.

    Parameters
    ----------
    seed : int
        At least 0; the same seed gives the same words.

    Returns
    -------
    Randomness
        With ``private = False``.

    Raises
    ------
    InvalidInput
        If the seed is not a whole number of at least 0.

    Examples
    --------
    >>> bool(simulation_random(7).words(1) == simulation_random(7).words(1))
    True
    """
    return _SimulationRandom(whole_number(seed, "a simulation seed must be a whole number", 0), _SIMULATION)


def choose_random(simulation_seed: int | None) -> Randomness:
    """Return secure randomness, or seeded randomness if the seed of a simulation is given.

    Examples
    --------
    >>> choose_random(None).private, choose_random(1).private
    (True, False)
    """
    return secure_random() if simulation_seed is None else simulation_random(simulation_seed)


def simulation_of_partition(root: int, partition: int) -> Randomness:
    """Return reproducible randomness for one partition of a simulation: *not private*, independent between partitions.

    Parameters
    ----------
    root : int
        At least 0; a word that the run's own source of simulated randomness drew.
    partition : int
        The partition's number, at least 0.

    Returns
    -------
    Randomness
        With ``private = False``.

    Examples
    --------
    >>> first, second = simulation_of_partition(7, 0), simulation_of_partition(7, 1)
    >>> first.private, bool(first.words(1) == second.words(1))
    (False, False)
    """
    return _SimulationRandom(root, _PARTITION, partition)


def _count(n: int) -> int:
    if n < 0:
        raise InvalidInput(f"cannot draw {n} random words; ask for 0 or more")
    return n


_forks = 0
_renewing = threading.Lock()


def _after_fork() -> None:
    global _forks, _renewing
    _forks += 1
    _renewing = threading.Lock()  # another thread of the parent may have held the old one; it does not exist here


def _process() -> tuple[int, int]:
    # The process number alone could come back in a grandchild; the count of forks behind us cannot.
    return os.getpid(), _forks


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
