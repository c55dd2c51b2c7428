"""Drawing and counting bits, transforms and hashes: exact, against enumeration."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from shuffledp.numerics.randomness import simulation_random
from shuffledp.randomizers.mixing import draw, uniform_below
from shuffledp.randomizers.seeded import AffineHash
from shuffledp.randomizers.subset import draw_subsets
from shuffledp.randomizers.walsh import walsh_hadamard
from shuffledp.randomizers.wire import bernoulli_bytes, column_counts, fair_bits, weighted_column_counts
from tests.randomizers.drawing import FALSE_ALARM, Scripted, affine_supports


@pytest.mark.parametrize("threshold", [0, 1, 2**63, 0xDEADBEEF12345678, 2**64 - 1])
def test_bits_are_decided_where_they_first_differ(threshold):
    # all places agree with the threshold in the first `first` bits and differ in the next one: 1 if its bit is 1
    width = 24
    for first in range(65):
        steps = []
        for step in range(min(first + 1, 64)):
            bit = threshold >> (63 - step) & 1
            steps.append([(2**64 - 1) * (bit ^ (step == first))] * (width // 8))
        steps += [[0] * (width // 8)] * max(7 - len(steps), 0)  # the first seven are compared in any case
        out = bernoulli_bytes(np.uint64(threshold), width, Scripted(*steps))
        wanted = 255 * (threshold >> (63 - first) & 1) if first < 64 else 0
        assert (out == wanted).all()


@pytest.mark.parametrize("share", [2.0**-40, 0.001, 0.25, 1 / 3, 0.5, 0.9])
def test_share_of_ones(share):
    # Seeded; a fresh seed fails each with probability 1e-6.
    thresholds = np.array([share, 1 - share, 0.5]) * 2.0**64
    thresholds = thresholds.astype(np.uint64)
    random, width = simulation_random(5), 40_000
    ones = np.bitwise_count(bernoulli_bytes(thresholds, width, random)).sum(axis=0)
    for count, threshold in zip(ones, thresholds, strict=True):
        law = binom(8 * width, int(threshold) / 2**64)
        assert law.ppf(FALSE_ALARM / 2) <= count <= law.isf(FALSE_ALARM / 2)
    assert 49_000 < fair_bits(100_000, random).sum() < 51_000


def test_neighbouring_places_are_independent():
    # Seeded; chance of a failure with a fresh seed 1e-6: pairs of places in a byte, and of bytes.
    bits = np.unpackbits(bernoulli_bytes(np.uint64(2**62), 80_000, simulation_random(6)), axis=1)
    law = binom(80_000, 1 / 16)
    for one, two in itertools.combinations(range(8), 2):
        both = np.count_nonzero(bits[:, one] & bits[:, two])
        assert law.ppf(FALSE_ALARM / 2) <= both <= law.isf(FALSE_ALARM / 2)
    both = np.count_nonzero(bits[1:, 0] & bits[:-1, 0])
    assert law.ppf(FALSE_ALARM / 2) <= both <= law.isf(FALSE_ALARM / 2)


@settings(deadline=None)
@given(st.integers(0, 700), st.integers(1, 40), st.integers(0, 2**32))
def test_column_counts(n, k, seed):
    data = np.random.default_rng(seed)
    bits = data.integers(2, size=(n, k), dtype=np.uint8)
    packed = np.packbits(bits, axis=1, bitorder="little")
    assert column_counts(packed, k).tolist() == bits.sum(axis=0).tolist()
    weights = data.normal(size=n)
    assert weighted_column_counts(packed, k, weights) == pytest.approx(weights @ bits, abs=1e-10)


@pytest.mark.parametrize("size", [1, 2, 8, 32])
def test_walsh_hadamard_is_its_matrix(size):
    values = np.random.default_rng(0).integers(-9, 9, size=size)
    matrix = [[(-1) ** (x & z).bit_count() for z in range(size)] for x in range(size)]
    assert walsh_hadamard(values).tolist() == (np.array(matrix) @ values).tolist()
    assert (walsh_hadamard(walsh_hadamard(values)) == size * values).all()


@pytest.mark.parametrize("shape", [(0,), (3,), (2, 2)])
def test_walsh_hadamard_wants_a_power_of_two(shape):
    with pytest.raises(ValueError, match="power of two"):
        walsh_hadamard(np.zeros(shape))


@pytest.mark.parametrize(("r", "u"), [(1, 2), (2, 2), (1, 3), (2, 3), (3, 2)])
def test_hashes_of_three_records_are_independent_and_uniform(r, u):
    """All matrices and shifts, all triples: each of the 8^r values of three hashes equally often."""
    matrices = np.array(list(itertools.product(range(2**u), repeat=r)))  # rows as numbers
    places = 1 << np.arange(r)
    values = {
        x: [
            int(sum(((row & x).bit_count() & 1) * p for row, p in zip(rows, places, strict=True)))
            for rows in matrices.tolist()
        ]
        for x in range(2**u)
    }
    for triple in itertools.combinations(range(2**u), 3):
        joint = Counter(tuple(values[x][a] ^ b for x in triple) for a in range(len(matrices)) for b in range(2**r))
        assert len(joint) == 8**r
        assert len(set(joint.values())) == 1


@pytest.mark.parametrize(("r", "u"), [(1, 1), (1, 3), (2, 2), (3, 2), (2, 4)])
def test_reports_with_their_record_are_uniform_among_those_that_support_it(r, u):
    hashes = AffineHash(r, u)
    words = np.arange(2**hashes.bits, dtype=np.uint64)
    for record in range(2**u):
        records, all_ = np.full(words.size, record), np.ones(words.size, dtype=np.bool_)
        out = Counter(hashes.include(words, records, all_).tolist())
        supporting = {word for word in range(2**hashes.bits) if affine_supports(word, record, r, u)}
        assert set(out) == supporting
        assert set(out.values()) == {2**r}
        assert (hashes.include(words, records, ~all_) == words).all()


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 2**32), st.data())
def test_counts_of_support_by_transform_and_by_trial(r, u, seed, data):
    hashes, k = AffineHash(r, u), data.draw(st.integers(1, 2**u))
    generator = np.random.default_rng(seed)
    reports = generator.integers(2**hashes.bits, size=50, dtype=np.uint64)
    supports = np.array([[affine_supports(int(word), x, r, u) for x in range(k)] for word in reports])
    weights = generator.normal(size=50)
    for way in (hashes._by_transform, hashes._by_trial):
        for own in (None, weights):
            total, cells = np.zeros(k), np.zeros(2 ** (u + 1))
            way(reports, own, total, cells)
            counts = total + walsh_hadamard(cells[: 2**u] - cells[2**u :])[:k] / 2**r
            wanted = supports.sum(axis=0) if own is None else weights @ supports
            assert counts == pytest.approx(wanted, abs=0 if own is None else 1e-12)
    assert (hashes.support_counts(reports, k, None) == supports.sum(axis=0)).all()


def test_one_word_serves_a_report_and_a_comparison():
    threshold = 0x0123456789ABCDEF
    upper, lower = threshold >> 32, threshold & (2**32 - 1)
    words = [(upper - 1) << 32 | 5, upper << 32 | 6, upper << 32 | 7, (upper + 1) << 32 | 2**32 - 1]
    ties = [(lower - 1) << 32, lower << 32]  # one below the lower half, one not
    drawn, below = draw(31, threshold, 4, Scripted(words, ties))
    assert drawn.tolist() == [5, 6, 7, 2**31 - 1]
    assert below.tolist() == [True, True, False, False]
    drawn, below = draw(33, threshold, 2, Scripted([2**64 - 1, 3], [threshold - 1, threshold]))
    assert (drawn.tolist(), below.tolist()) == ([2**33 - 1, 3], [True, False])


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 100, 1000, 65_537])
def test_whole_numbers_below_a_bound_are_uniform(bound):
    """Of the 2^32 halves each value is given by exactly floor(2^32/bound); the others are drawn again."""
    values = np.arange(bound)
    first = [-(-value * 2**32 // bound) for value in range(bound + 1)]
    halves = np.array(first[:-1], dtype=np.uint64)
    rejected = [half * bound % 2**32 < 2**32 % bound for half in first[:-1]]
    accepted = np.diff(first) - np.array(rejected)
    assert set(accepted.tolist()) == {2**32 // bound}
    redrawn = [bound - 1] * sum(rejected)  # what the source gives: 2^64 - 1 would be refused once more
    out = uniform_below(bound, halves, Scripted(*([redrawn] if redrawn else [[]])))
    assert out.tolist() == np.where(rejected, bound - 1, values).tolist()
    again = uniform_below(bound, halves + np.uint64(1), Scripted([])) if bound < 1000 else values
    assert again.tolist() == values.tolist()


def test_ties_at_the_edge_of_a_subset_are_drawn_again():
    # two categories tie for the last place: the row's keys are drawn anew; record 2 has the smallest key
    tied = [5, 5, 9, 1]
    clear = [7, 3, 9, 8]
    batches = [[low | high << 32 for low, high in zip(keys[::2], keys[1::2], strict=True)] for keys in (tied, clear)]
    members = draw_subsets(np.array([2]), np.array([False]), 4, 2, Scripted(*batches))
    assert members.tolist() == [[True, True, False, False]]
    members = draw_subsets(np.array([2]), np.array([True]), 4, 2, Scripted(batches[1]))
    assert members.tolist() == [[False, True, True, False]]
