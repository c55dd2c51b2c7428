from __future__ import annotations

import copy
import itertools
import os
import pickle
import threading
import time
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from shuffledp.errors import InvalidInput
from shuffledp.numerics import randomness
from shuffledp.numerics.randomness import Randomness, keyed_random, secure_random, simulation_random

# Every chi-square test below is seeded; with a fresh seed each would fail by chance once in 10,000 runs.
FALSE_ALARM = 1e-4


class Scripted(Randomness):
    """Replays the given first words, then continues from a seeded source."""

    private = False

    def __init__(self, *scripts: list[int]) -> None:
        self.scripts = [np.array(script, dtype=np.uint64) for script in scripts]
        self.rest = simulation_random(5)

    def words(self, n: int) -> np.ndarray:
        if self.scripts:
            script = self.scripts.pop(0)
            assert script.size == n
            return script
        return self.rest.words(n)


@pytest.mark.costly("131072", "131077")
@pytest.mark.parametrize("n", [0, 1, 3, 2**17, 2**17 + 5])
def test_words_have_the_asked_length_and_are_fresh(n):
    random = secure_random()
    first, second = random.words(n), random.words(n)
    assert first.shape == (n,)
    assert first.dtype == np.uint64
    assert not np.intersect1d(first, second).size  # 2^34 pairs of 2^64 values: chance 1e-9


def test_secure_words_are_uniform_bytes():
    # Unseeded: fails by chance once in 10^9 runs.
    counts = np.bincount(secure_random().words(200_000).view(np.uint8), minlength=256)
    assert chisquare(counts).pvalue > 1e-9


def test_two_secure_sources_share_nothing():
    assert not np.array_equal(secure_random().words(4), secure_random().words(4))


def test_private_flags():
    assert secure_random().private is True
    assert simulation_random(3).private is False


def test_simulation_repeats():
    assert np.array_equal(simulation_random(3).words(9), simulation_random(3).words(9))
    assert not np.array_equal(simulation_random(3).words(9), simulation_random(4).words(9))


@pytest.mark.parametrize("seed", [-1, 1.5, True, "7", None])
def test_bad_seed(seed):
    with pytest.raises(InvalidInput, match="simulation seed must be a whole number"):
        simulation_random(seed)


def test_keyed_words_are_the_cipher_s_and_repeat():
    """The first block of the zero key is AES-256 of zeros, a known value."""
    words = keyed_random(bytes(32)).words(2)
    assert words.astype("<u8").tobytes().hex() == "dc95c078a2408989ad48a21492842087"
    key = bytes(range(32))
    one, two = keyed_random(key), keyed_random(key)
    assert np.array_equal(np.concatenate([one.words(3), one.words(6)]), two.words(9))
    assert not np.array_equal(keyed_random(key).words(9), keyed_random(bytes(32)).words(9))
    assert keyed_random(key).permutation(50).tolist() == keyed_random(key).permutation(50).tolist()
    with pytest.raises(InvalidInput, match="32 bytes"):
        keyed_random(b"short")
    with pytest.raises(InvalidInput, match="copied"):
        pickle.dumps(keyed_random(key))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_secure_randomness_has_one_owner(duplicate):
    with pytest.raises(InvalidInput, match="cannot be copied or pickled"):
        duplicate(secure_random())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_children_draw_their_own_words():
    random = secure_random()
    random.words(1)
    drawn = []
    for _ in range(2):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write, random.words(8).tobytes())
            os._exit(0)
        os.waitpid(child, 0)
        drawn.append(os.read(read, 64))
        os.close(read)
        os.close(write)
    drawn.append(random.words(8).tobytes())
    assert len(set(drawn)) == 3
    assert all(len(words) == 64 for words in drawn)


def in_child(work) -> bytes:
    """Bytes that `work()` returns in a forked child; an exception's text if it raised."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = work()
        except BaseException as error:
            said = repr(error).encode()
        os.write(write, said)
        os._exit(0)
    os.waitpid(child, 0)
    found = os.read(read, 1 << 16)
    os.close(read)
    os.close(write)
    return found


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_threads_of_a_forked_child_share_a_source_from_their_first_draw():
    """Six threads draw at once from an inherited source, and each finds that it needs a new key.

    `os.urandom` answers them a millisecond apart, so that without a lock the key is replaced again and again while
    others draw: in version 0.1.0 that raised "Already borrowed".
    """
    random = secure_random()
    random.words(3)
    quick, asked = os.urandom, itertools.count()

    def urandom(n: int) -> bytes:
        time.sleep(0.02 + 0.001 * next(asked))
        return quick(n)

    def draw() -> bytes:
        os.urandom = urandom
        found, errors = [], []
        together = threading.Barrier(6)

        def one() -> None:
            together.wait()
            try:
                found.append(random.words(1 << 19))
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=one) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        words = np.sort(np.concatenate(found))
        repeated = np.count_nonzero(words[1:] == words[:-1])
        return f"{len(errors)} {words.size} {repeated} ".encode() + words[:4].tobytes()

    first, second = in_child(draw), in_child(draw)
    assert first.split(b" ", 3)[:3] == [b"0", b"3145728", b"0"]  # 2^42 pairs of 2^64 values: chance 3e-7
    assert first.split(b" ", 3)[3] != second.split(b" ", 3)[3]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_while_another_thread_draws_leaves_the_child_free_to_draw():
    """The parent's lock is held at the fork, by a thread that does not exist in the child."""
    random = secure_random()
    keystream = random._keystream
    with keystream.lock, randomness._renewing:
        drawn = in_child(lambda: random.words(8).tobytes())
    assert len(drawn) == 64
    assert drawn != random.words(8).tobytes()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_in_the_middle_of_a_draw_shares_no_word():
    """As a signal handler may do: parent and child both go on with the call of `words` that was under way."""
    random = secure_random()
    keystream = random._keystream
    fill = type(keystream).fill
    read, write = os.pipe()
    children = []

    def fill_and_fork(view: memoryview, size: int) -> None:
        fill(keystream, view, size)
        children.append(os.fork())

    keystream.fill = fill_and_fork
    mine = random.words(8).tobytes()
    if children[0] == 0:
        os.write(write, mine)
        os._exit(0)
    os.waitpid(children[0], 0)
    theirs = os.read(read, 64)
    os.close(read)
    os.close(write)
    assert len(theirs) == 64
    assert theirs != mine


def test_bernoulli_compares_integers():
    random = Scripted([4, 5, 6], [4, 5, 6])
    assert random.bernoulli(5, 3).tolist() == [True, False, False]
    assert random.bernoulli(np.array([5, 6, 6], dtype=np.uint64), 3).tolist() == [True, True, False]


@pytest.mark.parametrize("thresholds", [-1, 2**64, 0.88, True, np.array([0.5]), np.zeros(2, dtype=np.uint64)])
def test_bad_threshold(thresholds):
    with pytest.raises(InvalidInput, match="threshold"):
        simulation_random(1).bernoulli(thresholds, 1)


def test_integers_reject_the_biased_words():
    top = 2**64 - 1  # 2^64 = 1 modulo 3, so only the last word is drawn again
    random = Scripted([0, top, top - 1], [top], [7])
    assert random.integers(3, 3).tolist() == [0, 1, (top - 1) % 3]


@pytest.mark.parametrize("bound", [2, 3, 10, 100])
def test_integers_are_uniform(bound):
    counts = np.bincount(simulation_random(bound).integers(bound, 100_000), minlength=bound)
    assert counts.size == bound
    assert chisquare(counts).pvalue > FALSE_ALARM


@given(st.integers(1, 2**63), st.integers(0, 50), st.integers(0, 2**32))
def test_integers_stay_in_range(bound, n, seed):
    drawn = simulation_random(seed).integers(bound, n)
    assert drawn.shape == (n,)
    assert all(0 <= int(value) < bound for value in drawn)


@pytest.mark.parametrize("bound", [0, -1, 2**63 + 1])
def test_bad_bound(bound):
    with pytest.raises(InvalidInput, match="bound"):
        simulation_random(1).integers(bound, 1)


@given(st.integers(0, 300), st.integers(0, 2**32))
def test_permutation_is_one(n, seed):
    assert sorted(simulation_random(seed).permutation(n).tolist()) == list(range(n))


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_permutations_are_uniform(n):
    random = simulation_random(n)
    counts = Counter(tuple(random.permutation(n).tolist()) for _ in range(12_000))
    assert chisquare([counts[order] for order in permutations(range(n))]).pvalue > FALSE_ALARM


class CoarseFirst(Randomness):
    """Every other draw has only two different words, so that ties are the rule."""

    private = False

    def __init__(self) -> None:
        self.rest = simulation_random(11)
        self.draws = 0

    def words(self, n: int) -> np.ndarray:
        self.draws += 1
        words = self.rest.words(n)
        return words >> np.uint64(63) << np.uint64(63) if self.draws % 2 else words


def test_tied_keys_are_ordered_uniformly():
    random = CoarseFirst()
    counts: Counter[tuple[int, ...]] = Counter()
    for _ in range(12_000):
        random.draws = 0
        counts[tuple(random.permutation(4).tolist())] += 1
    assert chisquare([counts[order] for order in permutations(range(4))]).pvalue > FALSE_ALARM


def test_ties_within_a_tie_are_drawn_again():
    random = Scripted([0, 0, 0], [9, 9, 1], [3, 2, 1])
    assert random.permutation(3).tolist() == [2, 1, 0]


@pytest.mark.parametrize("n", [-1, 2**40 + 1])
def test_bad_permutation_length(n):
    with pytest.raises(InvalidInput, match="permutation needs a length"):
        simulation_random(1).permutation(n)


def test_negative_count():
    with pytest.raises(InvalidInput, match="random words"):
        secure_random().words(-1)
