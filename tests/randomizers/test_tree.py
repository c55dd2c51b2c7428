from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from shuffledp import Budgets, Setting, certify
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import secure_random, simulation_random
from shuffledp.randomizers import HadamardResponse
from shuffledp.randomizers.base import RandomizerLaw
from shuffledp.randomizers.tree import RangeTree
from shuffledp.randomizers.wire import decode, encode
from tests.randomizers import laws

CHANCE = 1e-7  # false alarm of each statistical test; the seeds are fixed, so each has been seen to pass
TREES = [RangeTree(2), RangeTree(4, 2), RangeTree(6, 3), RangeTree(5, 2), RangeTree(7, 9)]


def sylvester(order):
    H = [[1]]
    while len(H) < order:
        H = [row + row for row in H] + [row + [-sign for sign in row] for row in H]
    return H


def table(tree, E):
    """P(level, column, sign | bin) from the definition."""
    widths = [tree.branching ** (tree.depth - 1 - level) for level in range(tree.depth)]
    rows = []
    for x in range(tree.bins):
        row = []
        for order, width in zip(tree.orders, widths, strict=True):
            signs = sylvester(order)[x // width]
            each = Fraction(1, tree.depth * order) / (E + 1)
            row += [E * each if s == sign else each for s in signs for sign in (1, -1)]
        rows.append(tuple(row))
    return tuple(rows)


def omega(tree):
    return [Fraction(1, tree.depth * 2 * order) for order in tree.orders for _ in range(2 * order)]


def top(tree, x):
    return x // tree.branching ** (tree.depth - 1)


@pytest.mark.parametrize("E", [Fraction(3, 2), Fraction(20)])
@pytest.mark.parametrize("tree", TREES, ids=lambda tree: tree.name)
def test_law_of_bins_that_differ_at_every_level_is_the_stated_pair(tree, E):
    rows = table(tree, E)
    laws.check_is_a_law(rows, E)
    (pair,) = tree.pair_blankets(math.log(E))
    apart = [x for x in range(tree.bins) if top(tree, x) != top(tree, 0)]
    for x in (apart[0], apart[-1]):
        laws.check_pair((rows[0], rows[x]), omega(tree), E, pair)


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: tree.name)
def test_bins_with_a_common_ancestor_overlap_more(tree):
    """The hypothesis of the convex-order argument: no pair has an overlap below 1/4."""
    rows, masses = table(tree, Fraction(3)), omega(tree)
    high = max(rows[0][i] / masses[i] for i in range(len(masses)))
    for x in range(tree.bins):
        for y in range(x):
            both = sum(m for m, a, b in zip(masses, rows[x], rows[y], strict=True) if a / m == high and b / m == high)
            assert both == Fraction(1, 4) if top(tree, x) != top(tree, y) else both > Fraction(1, 4)


@pytest.mark.costly("tree:4:2")
@pytest.mark.parametrize("tree", [RangeTree(3, 2), RangeTree(4, 2)], ids=lambda tree: tree.name)
def test_no_real_protocol_exceeds_the_bound(tree):
    for E in (Fraction(3, 2), Fraction(9)):
        rows = table(tree, E)
        few = (rows[0], rows[1], rows[-1])
        assert laws.check_never_exceeded([few] * 3, tree, [Fraction(0), Fraction(1, 3)]) > 0.3


def test_counts_of_three_bins_under_different_nodes():
    tree = RangeTree(9, 3)
    rows = table(tree, Fraction(5))
    laws.check_counts((rows[0], rows[4], rows[8]), tree.pair_counts(math.log(5)))
    assert RangeTree(4, 2).pair_counts(1.0) is None
    assert RangeTree(4, 2).witness_pairs(1.0) is None


@pytest.mark.parametrize("epsilon0", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("tree", TREES, ids=lambda tree: tree.name)
def test_sampler_follows_the_law(tree, epsilon0):
    n = 40_000
    rows = table(tree, Fraction(math.exp(epsilon0)))
    for x in {0, tree.bins - 1}:
        reports = tree.randomize(np.full(n, x), epsilon0, simulation_random(4))
        counts = np.bincount(tree.checked(reports), minlength=int(tree.offsets[-1]))
        expected = np.array([float(p) for p in rows[x]]) * n
        assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > CHANCE


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: tree.name)
def test_node_sums_are_unbiased_exactly(tree):
    E = Fraction(3)
    keep = Fraction(E - 1, E + 1)
    for x, row in enumerate(table(tree, E)):
        sums = tree.node_sums(np.array([float(p) for p in row]))
        for level, found in enumerate(sums):
            width = tree.branching ** (tree.depth - 1 - level)
            wanted = np.zeros(tree.nodes[level])
            wanted[x // width] = float(keep) / tree.depth
            assert found == pytest.approx(wanted, abs=1e-15)


def test_certificate_is_that_of_hadamard_response():
    budgets = Budgets.of([0.5] * 500 + [2.0] * 500)
    trees = [
        certify(Setting(budgets, family, seen="reports", neighboring="replace-one"), 1e-6).epsilon
        for family in (RangeTree(100), HadamardResponse(100))
    ]
    assert trees[0].upper == trees[1].upper
    assert trees[0].lower == trees[1].lower > 0.0


@settings(deadline=None, max_examples=30)
@given(
    st.integers(2, 300),
    st.integers(2, 20),
    st.lists(st.one_of(st.sampled_from([0.0, 700.0, 1e-12]), st.floats(0, 700)), min_size=1, max_size=6),
)
def test_every_shape_and_budget(bins, branching, budgets):
    tree = RangeTree(bins, branching)
    assert branching ** (tree.depth - 1) < bins <= branching**tree.depth
    assert tree.nodes[-1] == bins
    assert all(order >= nodes for order, nodes in zip(tree.orders, tree.nodes, strict=True))
    records = np.arange(len(budgets)) * 7 % bins
    reports = tree.randomize(records, budgets, secure_random())
    assert decode(encode(reports, tree), tree).tolist() == reports.tolist()
    assert tree.checked(reports).size == len(budgets)
    (pair,) = tree.pair_blankets(budgets[0])
    assert pair.masses.sum() == pytest.approx(1.0, rel=1e-14)


def test_without_noise_the_sign_is_the_ancestors():
    tree = RangeTree(50, 3)
    records = np.arange(50)
    reports = tree.randomize(records, 700.0, secure_random())
    level = np.searchsorted(tree.offsets, reports, side="right") - 1
    inside = reports - tree.offsets[level]
    node = records // np.array([27, 9, 3, 1])[level]
    signs = [sylvester(tree.orders[le])[v][j] for le, v, j in zip(level, node, inside >> 1, strict=True)]
    assert [1 - 2 * (r & 1) for r in inside.tolist()] == signs


def test_shape_names_and_protocol():
    tree = RangeTree(100)
    assert (tree.nodes, tree.orders, tree.depth, tree.k) == ((2, 7, 25, 100), (2, 8, 32, 128), 4, 2)
    assert tree.offsets.tolist() == [0, 4, 20, 84, 340]
    assert tree.name == "tree:100:4"
    assert repr(tree) == "RangeTree(bins=100, branching=4)"
    assert RangeTree(5, 2**22).depth == 1
    assert isinstance(tree, RandomizerLaw)
    assert tree.mixture
    assert not tree.two_point
    assert hash(tree) == hash(RangeTree(100, 4))


@pytest.mark.parametrize("epsilon0", laws.BUDGETS)
def test_a_few_ulps_at_every_budget(epsilon0):
    import mpmath

    with mpmath.workdps(400):
        E, quarter = mpmath.exp(mpmath.mpf(epsilon0)), mpmath.mpf(1) / 4
        laws.check_accuracy(RangeTree(20), epsilon0, [2 / (1 + E), 2 * E / (1 + E), quarter, quarter, quarter])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RangeTree(1), "whole number of bins from 2"),
        (lambda: RangeTree(2.0), "whole number of bins from 2"),
        (lambda: RangeTree(2**22 + 1), "whole number of bins from 2"),
        (lambda: RangeTree(10, 1), "whole branching from 2"),
        (lambda: RangeTree(10).randomize([10], 1.0, secure_random()), "record in row 1 is no category"),
        (lambda: RangeTree(10).randomize([1, 2], [1.0], secure_random()), "2 records need as many budgets"),
        (lambda: RangeTree(10).randomize([1], 701.0, secure_random()), "from 0 to 700"),
        (lambda: RangeTree(4).checked(np.array([0, 8])), "row 2 is 8"),
        (lambda: RangeTree(4).checked(np.array([0.5])), "whole numbers from 0 to 7"),
        (lambda: RangeTree(4).checked(np.array([-1])), "row 1 is -1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InvalidInput, match=message):
        call()
