from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from shuffledp import Budgets, Setting, certify
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import secure_random, simulation_random
from shuffledp.randomizers import LocalHashing
from shuffledp.randomizers.base import RandomizerLaw
from shuffledp.randomizers.hashing import LeveledHashing
from shuffledp.randomizers.item_domain import ListedItems
from shuffledp.randomizers.walsh import walsh_hadamard
from shuffledp.randomizers.wire import decode, decode_each, encode
from tests import oracles
from tests.randomizers import laws

CHANCE = 1e-7  # false alarm of each statistical test; the seeds are fixed, so each has been seen to pass
SMALL = LeveledHashing(2, 2, 2)
FOUR = LeveledHashing(2, 1, 4)


def parity(word):
    return word.bit_count() & 1


def hashes(family):
    """All matrices with their c, as the columns of a report: r rows of size + 1 bits."""
    return list(product(range(2 << family.size), repeat=family.rows))


def supports(family, report, code):
    """Whether A code = c, bit by bit from the definition."""
    return all(parity(row & code) == row >> family.size for row in report)


def outputs(family):
    return [(level, *report) for level in range(family.levels) for report in hashes(family)]


def table(family, records, E):
    """P(level, hash, value | codes): a uniform level and hash, and g-ary randomized response of the hashed code."""
    each = Fraction(1, family.levels * len(hashes(family))) * family.g / (E + family.g - 1)
    return tuple(
        tuple(each * (E if supports(family, report[1:], codes[report[0]]) else 1) for report in outputs(family))
        for codes in records
    )


APART = [(0, 3), (1, 2), (2, 0), (3, 1)]
"""Codes of four records that differ at both levels."""


@pytest.mark.parametrize("E", [Fraction(3, 2), Fraction(20)])
@pytest.mark.parametrize(
    ("family", "records"), [(SMALL, APART), (FOUR, [(0,), (1,), (3,)])], ids=["two levels", "one level"]
)
def test_law_of_records_that_differ_at_every_level_is_the_stated_pair(family, records, E):
    rows = table(family, records, E)
    laws.check_is_a_law(rows, E)
    omega = [Fraction(1, len(outputs(family)))] * len(outputs(family))
    (pair,) = family.pair_blankets(math.log(E))
    laws.check_pair(rows, omega, E, pair)
    laws.check_counts(rows[:3], family.pair_counts(math.log(E)))


def test_records_with_a_common_code_overlap_more():
    """The hypothesis of the convex-order argument: no pair of records has an overlap below 1/g^2."""
    codes = list(product(range(4), repeat=2))
    rows = table(SMALL, codes, Fraction(3))
    high = max(rows[0])
    for (x, row), (y, other) in product(zip(codes, rows, strict=True), repeat=2):
        if x < y:
            both = Fraction(sum(a == b == high for a, b in zip(row, other, strict=True)), len(row))
            differ = x[0] != y[0] and x[1] != y[1]
            assert both == Fraction(1, 4) if differ else both > Fraction(1, 4)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("E", [Fraction(9), Fraction(3, 2)])
def test_no_real_protocol_exceeds_the_bound(E):
    """Every multiset of three reports, the others' records whatever they are; codes shared at a level among them."""
    rows = table(SMALL, [(0, 3), (1, 2), (0, 0)], E)
    assert laws.check_never_exceeded([rows] * 3, SMALL, [Fraction(0), Fraction(1, 3)]) > 0.3


@pytest.mark.costly("2.0")
@pytest.mark.parametrize("epsilon0", [0.5, 2.0])
def test_the_certificate_holds_the_enumerated_channel(epsilon0):
    """The exact delta of two people's shuffled reports, at both ends of the certified interval of epsilon."""
    E, delta = Fraction(math.exp(epsilon0)), 0.05
    exact = oracles.ShuffledProtocol([table(SMALL, APART[:3], E)] * 2)
    found = certify(Setting(Budgets((epsilon0,), (2,)), SMALL, seen="reports", neighboring="replace-one"), delta)
    upper, lower = (Fraction(math.exp(end)) for end in (found.epsilon.upper, found.epsilon.lower))
    assert exact.worst(0, upper) <= Fraction(delta) * (1 + Fraction(1, 10**12))
    assert exact.worst(0, lower) >= Fraction(delta) * (1 - Fraction(1, 10**9))
    assert 0.0 < found.epsilon.lower <= found.epsilon.upper < epsilon0


def test_certificate_is_that_of_local_hashing():
    budgets = Budgets((2.0,), (300,))
    both = [
        certify(Setting(budgets, family, seen="reports", neighboring="replace-one"), 1e-4).epsilon
        for family in (LeveledHashing(20, 7, 8), LocalHashing(2**20, 8))
    ]
    assert both[0] == both[1]
    assert both[0].lower > 0.0


@pytest.mark.costly("items:2:1:4-0.0", "items:2:3:2-5.0")
@pytest.mark.parametrize("epsilon0", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("family", [SMALL, FOUR, LeveledHashing(2, 3, 2)], ids=lambda family: family.name)
def test_sampler_follows_the_law(family, epsilon0):
    n, codes = 40_000, (3, 1, 2)[: family.levels]
    expected = [float(p) for p in table(family, [codes], Fraction(math.exp(epsilon0)))[0]]
    reports = family.randomize(np.tile(codes, (n, 1)), epsilon0, simulation_random(4))
    place = {report: i for i, report in enumerate(outputs(family))}
    counts = np.bincount([place[tuple(report)] for report in family.checked(reports).tolist()], minlength=len(place))
    assert stats.chisquare(counts, np.array(expected) * n / sum(expected)).pvalue > CHANCE


def test_signs_count_the_supports_exactly():
    """Against A x = c of every report and every code, one by one, with weights and without."""
    family = LeveledHashing(4, 2, 8)
    reports = family.randomize(np.arange(60).reshape(30, 2) % 16, 1.0, simulation_random(2))
    for weights in (None, np.arange(30, dtype=np.uint64)):
        total = np.zeros(2 << 4, dtype=np.int64)
        family.add_signs(reports, total, weights)
        each = np.ones(30) if weights is None else weights
        for level in range(2):
            here = reports[:, 0] == level
            found = (walsh_hadamard(total[level << 4 :][: 1 << 4]) + each[here].sum()) / family.g
            wanted = [
                sum(w for row, w in zip(reports.tolist(), each, strict=True)
                    if row[0] == level and supports(family, row[1:], code))
                for code in range(16)
            ]  # fmt: skip
            assert found.tolist() == wanted


def test_without_noise_every_report_supports_its_code():
    family = LeveledHashing(20, 5, 64)
    codes = np.random.default_rng(1).integers(0, 1 << 20, (200, 5))
    reports = family.randomize(codes, 700.0, secure_random())
    assert set(reports[:, 0].tolist()) == {0, 1, 2, 3, 4}
    for row, own in zip(reports.tolist(), codes.tolist(), strict=True):
        assert supports(family, row[1:], own[row[0]])


def test_one_code_stands_for_all_levels():
    family = LeveledHashing(6, 3, 4)
    one = family.randomize([5, 9], 3.0, simulation_random(1))
    assert np.array_equal(one, family.randomize([[5] * 3, [9] * 3], 3.0, simulation_random(1)))


@pytest.mark.parametrize("family", [LeveledHashing(20, 9, 64), LeveledHashing(2, 1, 2), LeveledHashing(24, 32, 8)])
def test_reports_travel(family):
    codes = np.arange(50) % family.k
    reports = family.randomize(codes, np.linspace(0, 5, 50), secure_random())
    assert decode(encode(reports, family), family).tolist() == reports.tolist()
    assert family.pack(reports).shape[1] == -(-family.report_bits // 8)
    wrong = bytearray(encode(reports, family))
    wrong[-family.pack(reports).shape[1]] = 255  # the level of the last report
    with pytest.raises(InvalidInput, match="the report in row 50 is"):
        decode(bytes(wrong), family)
    kept, possible = decode_each(bytes(wrong), family)
    assert possible.tolist() == [True] * 49 + [False]
    assert kept.tolist() == reports[:49].tolist()


def test_shape_and_names():
    family = LeveledHashing(20, 4, 8)
    assert (family.name, family.k, family.rows) == ("items:20:4:8", 1 << 20, 3)
    assert repr(family) == "LeveledHashing(size=20, levels=4, g=8, domain=None)"
    assert isinstance(family, RandomizerLaw)
    assert family.mixture
    assert not family.two_point
    assert family.support_law(0.0).own == family.support_law(0.0).other == 0.125


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: LeveledHashing(1, 1, 2), "hashing of levels takes a whole size from 2 to 24; got 1"),
        (lambda: LeveledHashing(20, 0, 2), "a whole levels from 1 to 32; got 0"),
        (lambda: LeveledHashing(20, 1, 6), "a power of two from 2 to 64; got 6"),
        (lambda: LeveledHashing(20, 1, 128), "a whole g from 2 to 64; got 128"),
        (lambda: LeveledHashing(3, 1, 2, ListedItems(20)), "the domain has codes of 5 bits at 1 levels; got 3 bits"),
        (lambda: SMALL.randomize([[0, 4]], 1.0, secure_random()), "the record in row 1 has a code that is not below 4"),
        (lambda: SMALL.randomize([[0, 1, 2]], 1.0, secure_random()), "one for each of 2 levels"),
        (lambda: SMALL.randomize([[0.5, 1]], 1.0, secure_random()), "whole numbers"),
        (lambda: SMALL.randomize([[0, 1]], [1.0, 2.0], secure_random()), "1 records need as many budgets"),
        (lambda: SMALL.randomize([[0, 1]], -1.0, secure_random()), "epsilon0"),
        (lambda: SMALL.checked(np.array([[0, 1], [2, 1]])), r"the report in row 2 is \[2, 1\]"),
        (lambda: SMALL.checked(np.array([0, 1])), "level and hash"),
    ],
)
def test_bad_input(ask, message):
    with pytest.raises(InvalidInput, match=message):
        ask()
