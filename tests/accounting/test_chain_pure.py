"""The chain theorem for pure reports: against exact sums, against attacks, and its numbers."""

import itertools
import math
import warnings

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom, multinomial

from shuffledp import (
    Budgets,
    HadamardResponse,
    Hybrid,
    Laplace,
    LeveledHashing,
    LocalHashing,
    OutOfRegime,
    Piecewise,
    RandomizedResponse,
    RangeTree,
    Setting,
    SignedSketch,
    SubsetSelection,
    UnaryEncoding,
    bounds,
    certify,
)
from shuffledp.accounting.theorems.chain.bound import stated_law, two_level_kinds
from shuffledp.accounting.theorems.chain.normal import laplace_moments
from shuffledp.accounting.theorems.chain.pure import Averages, PureLinks
from shuffledp.randomizers.mixing import third_record
from tests.work import calls_of


def question(randomizer, epsilon0, n, **more):
    more = {"seen": "reports", "neighboring": "replace-one", **more}
    return Setting(Budgets([epsilon0], [n]), randomizer, **more)


def upper(key, *asked, delta=1e-6, **more):
    setting = question(*asked, **more)
    return bounds[key].profile(setting, asked[1]).epsilon(delta).upper


def lower(key, *asked, delta=1e-6):
    return bounds[key].profile(question(*asked), asked[1]).epsilon(delta).lower


NAMED = [
    # epsilon, 1e-6 of itself above what is found, and what blanket says
    (HadamardResponse(10), 1.0, 10_000, 0.02480164, 0.0298),
    (HadamardResponse(10), 2.0, 10_000, 0.06167251, 0.0790),
    (UnaryEncoding(10, optimized=False), 1.0, 10_000, 0.02696644, 0.0307),
    (UnaryEncoding(10, optimized=False), 2.0, 10_000, 0.07919410, 0.0876),
    (Laplace(0, 1), 0.5, 10_000, 0.01530652, 0.0168),
    (Laplace(0, 1), 1.0, 10_000, 0.03248962, 0.0379),
    (Laplace(0, 1), 2.0, 10_000, 0.07873493, 0.0947),
    (Laplace(0, 1), 1.0, 10**6, 0.002505312, 0.00307),
    (Laplace(0, 1), 4.0, 10**6, 0.01975016, 0.0277),
    (LocalHashing(10), 1.0, 10_000, 0.02721641, 0.0293),
    (LocalHashing(10), 2.0, 10**6, 0.006203803, 0.00658),
    (LeveledHashing(16, 4, 4), 1.0, 10**6, 0.002147067, 0.002357),
    (RangeTree(64, 4), 1.0, 10_000, 0.02500200, 0.0297),
    (RangeTree(64, 4), 1.0, 10**6, 0.001939093, 0.00239),
    (RangeTree(64, 4), 2.0, 10**6, 0.004808598, 0.0065),
    (Piecewise(0, 1), 1.0, 10**6, 0.002936649, 0.00337),
    (Piecewise(0, 1), 2.0, 10**6, 0.008506416, 0.00911),
    (Hybrid(0, 1), 1.0, 10_000, 0.03594340, 0.0422),
    (Hybrid(0, 1), 1.0, 10**6, 0.002789806, 0.00343),
    (Hybrid(0, 1), 2.0, 10**6, 0.007599365, 0.00920),
]


@pytest.mark.parametrize(("randomizer", "epsilon0", "n", "most", "before"), NAMED)
def test_numbers_promised(randomizer, epsilon0, n, most, before, monkeypatch):
    made = calls_of(monkeypatch, PureLinks, "divergence")
    found = upper("chain", randomizer, epsilon0, n)
    assert len(made) <= 30  # a millisecond each: they took a second in all
    assert found <= most < before
    assert found >= lower(
        "equal-crowd" if isinstance(randomizer, Laplace) else "reports-exact", randomizer, epsilon0, n
    )


@pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-8, 1e-12])
@pytest.mark.parametrize(
    "randomizer",
    [HadamardResponse(6), SubsetSelection(8, 3), Laplace(0, 1), LocalHashing(9), RangeTree(64, 4), Piecewise(0, 1)],
    ids=lambda r: r.name,
)
def test_never_below_an_attack(randomizer, delta):
    key = "equal-crowd" if isinstance(randomizer, Laplace) else "reports-exact"
    for epsilon0, n in ((0.3, 3_000), (1.5, 50_000)):
        assert lower(key, randomizer, epsilon0, n, delta=delta) <= upper("chain", randomizer, epsilon0, n, delta=delta)


def counted(places, count):
    """Values of a sum of so many L of one kind, with their chances: by counts of the cells."""
    masses, values = places
    cells = [c for c in itertools.product(range(count + 1), repeat=masses.size) if sum(c) == count]
    counts = np.array(cells)
    return counts @ values, multinomial(count, masses / masses.sum()).pmf(counts)


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.5])
@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, 2), (1, 2)])
def test_no_two_clusters_of_seats_leak_more(first, second, epsilon):
    """Half of A_1 at one record, half at another, weights drawn apart: all exact sums, no normal law."""
    family, epsilon0, copies, each = HadamardResponse(6), 1.0, 6, 8
    law = stated_law(family)(epsilon0)
    pair = family.pair_blankets(epsilon0)[0]
    weight, own = pair.masses * pair.ratios1, pair.ratios0 / pair.ratios1
    merged = {value: float(weight[own == value].sum()) for value in set(own.tolist())}
    ratio, mass = np.array(list(merged)), np.array(list(merged.values()))
    third = third_record(epsilon0, family.triple_weights(epsilon0))
    e = math.exp(epsilon)
    places = [(mass, ratio - e), (mass, 1.0 - e * ratio), (third.masses, third.ratios0 - e * third.ratios1)]
    zeta, chance = counted((mass, ratio / copies), copies)
    laws = []
    for index in (first, second):
        values = np.round(places[index][1], 12)
        distinct = np.unique(values)
        laws.append(counted((np.array([places[index][0][values == v].sum() for v in distinct]), distinct), each // 2))
    total = 0.0
    for (za, pa), (zb, pb) in itertools.product(zip(zeta, chance, strict=True), repeat=2):
        sums = za * laws[0][0][:, None] + zb * laws[1][0][None, :]
        total += pa * pb * float((np.maximum(sums, 0.0) * laws[0][1][:, None] * laws[1][1][None, :]).sum())
    for charge in (1e-8, 1e-3):
        found = PureLinks(law, np.array([float(each)]), np.array([copies]), np.array([charge]))
        assert total / each <= found.divergence(epsilon) + 1e-12
        assert total / each <= found.divergence(epsilon) < 1.0 or charge < 1e-4


def test_weights_are_averages_of_ratios():
    """s and l against the exact binomial law of two-point ratios."""
    found = Averages.of(1.0, 120, 1.0, 1e-6)
    zeta, mass, s, short = found.values, found.masses, found.excess, found.shortfall
    k = np.arange(121)
    exact = math.exp(-1.0) + (math.e - math.exp(-1.0)) * k / 120
    chance = binom.pmf(k, 120, 1.0 / (1.0 + math.e))
    assert chance @ np.maximum(exact - 1.0 - s, 0.0) <= 1e-6
    assert chance @ np.maximum(1.0 - short - exact, 0.0) <= 1e-6
    assert zeta @ mass == pytest.approx(1.0, rel=1e-6)
    assert mass.sum() == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("epsilon0", [0.2, 1.0, 3.0])
def test_no_three_numbers_have_larger_moments(epsilon0):
    """Laplace noise: the moments of random places by quadrature on a line."""
    rng, found = np.random.default_rng(3), laplace_moments(epsilon0)
    y = np.linspace(-14.0, epsilon0 + 14.0, 6_001)
    places = [np.array([0.0, epsilon0, 0.0]), *(rng.uniform(0.0, epsilon0, 3) for _ in range(40))]
    second = []
    for a, b, k in places:
        f = [0.5 * np.exp(-np.abs(y - x)) for x in (a, b, k)]
        d = (f[0] - f[1]) / f[2]
        second.append(np.trapezoid(d**2 * f[2], y))
        assert second[-1] <= found.second * (1 + 1e-4)
        assert np.trapezoid(np.abs(d) ** 3 * f[2], y) <= found.absolute
        assert np.trapezoid(d**4 * f[2], y) <= found.fourth
    assert max(second) == pytest.approx(found.second, rel=1e-3)


CONVEX = ((1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0), (0.0, 0.0, 0.0, 1.0), (0.5, 1 / 6, 0.0, 1 / 24))
CONVEX = (*CONVEX, (0.5, -1 / 6, 0.0, 1 / 24), (1.0, -1.2, 0.0, 0.6), (0.2, 0.2, 0.0, 0.3))
"""Factors of z^2, z^3, |z|^3 and z^4 of convex functions."""


def powers_of(loss):
    return np.array([loss**2, loss**3, np.abs(loss) ** 3, loss**4])


def means_of(rows, growth):
    """Means of the convex functions of L - E L for three rows of chances."""
    first, second, own = rows
    there = own > 0.0
    loss = first[there] / own[there] - 1.0 - (1.0 + growth) * (second[there] / own[there] - 1.0)
    return np.array(CONVEX) @ (powers_of(loss) @ own[there])


def worst_of(kinds):
    """What the kinds say that these means are at most."""
    assert (kinds.third + kinds.fallen <= 1e-8 * kinds.absolute.max()).all()
    return (np.array(CONVEX) @ np.array([kinds.second, kinds.third, kinds.absolute, kinds.fourth])).max(axis=1)


def likely(sets, epsilon0):
    """Rows of chances: reports of a record's set are e^epsilon0 times as likely as others."""
    weights = np.where(sets, math.exp(epsilon0), 1.0)
    return weights / weights.sum(axis=1, keepdims=True)


def tree_sets(nodes_of, orders):
    """For each record the reports (level, column, sign) with the true sign of its node."""
    found = []
    for nodes in nodes_of:
        signs = [np.bitwise_count(np.arange(order) & node) & 1 for node, order in zip(nodes, orders, strict=True)]
        # levels are equally likely: the columns of a level are repeated up to the largest order
        full = np.concatenate(
            [np.repeat(sign, max(orders) // order) for sign, order in zip(signs, orders, strict=True)]
        )
        found.append(np.concatenate((full == 0, full == 1)))
    return np.array(found)


@pytest.mark.parametrize("epsilon0", [0.5, 2.0])
def test_three_records_of_a_tree_mix_the_three_kinds(epsilon0):
    """All triples of the bins of a tree: no mean of a convex function is above the worst kind."""
    tree = RangeTree(8, 2)
    nodes_of = [[x >> (tree.depth - 1 - level) for level in range(tree.depth)] for x in range(8)]
    rows = likely(tree_sets(nodes_of, list(tree.orders)), epsilon0)
    law = stated_law(tree)(epsilon0)
    for growth in (0.0, 0.2):
        most = worst_of(law.kinds(growth))
        told = np.array([means_of(rows[list(t)], growth) for t in itertools.product(range(8), repeat=3)]).max(axis=0)
        assert (told <= most).all()
        assert told[0] >= most[0] * (1.0 - 1e-6)  # records below different topmost nodes attain it


@pytest.mark.parametrize("epsilon0", [0.5, 1.0, 2.5])
def test_no_three_windows_have_larger_moments(epsilon0):
    """Piecewise: all triples of windows of a small line, and the programme by another solver."""
    cells, window = 12, 4
    starts = np.arange(cells - window + 1)[:, None]
    rows = likely((np.arange(cells) >= starts) & (np.arange(cells) < starts + window), epsilon0)
    share, bits = window / cells, np.array(list(itertools.product((0.0, 1.0), repeat=3)))
    assert Piecewise(0, 1, cells, window).share(epsilon0) == pytest.approx(share, rel=1e-14)
    least = 1.0 / (1.0 + share * math.expm1(epsilon0))
    for growth in (0.0, 0.1, 0.9):
        most = worst_of(two_level_kinds(epsilon0, share, growth))
        for triple in itertools.product(range(len(rows)), repeat=3):
            assert (means_of(rows[list(triple)], growth) <= most).all()
        r0, r1, own = np.exp(epsilon0 * bits).T
        losses = r0 / own - 1.0 - (1.0 + growth) * (r1 / own - 1.0)
        for factors, mean in zip(CONVEX, most, strict=True):
            value = least * own * (factors @ powers_of(losses))
            rows_eq = [np.ones(8), *bits.T]
            exact = linprog(-value / value.max(), A_eq=rows_eq, b_eq=[1.0, share, share, share], method="highs")
            assert mean == pytest.approx(-exact.fun * value.max(), rel=1e-6)


@pytest.mark.costly("1600-0.5", "1600-1.0")
@pytest.mark.parametrize("active", [1.0, 0.5])
@pytest.mark.parametrize("copies", [40, 1_600])
def test_laws_of_averages_are_larger_in_convex_order(active, copies):
    """Counted, split on a line, or made of four quarters: never below the exact law, and barely above it."""
    found = Averages.of(1.0, copies, active, 1e-9)
    ratio = math.e
    up, down = active / (1.0 + ratio), active * ratio / (1.0 + ratio)
    i = np.arange(copies + 1)
    chance = binom.pmf(i, copies, up)
    for at in (0.9, 0.97, 1.0, 1.05, 1.2):
        exact = 0.0
        for k, p in zip(i[chance > 1e-20], chance[chance > 1e-20], strict=True):
            j = np.arange(copies - k + 1)
            value = 1.0 + (k * (ratio - 1.0) + j * (1.0 / ratio - 1.0)) / copies
            exact += p * (binom.pmf(j, copies - k, min(down / (1.0 - up), 1.0)) @ np.maximum(value - at, 0.0))
        told = found.masses @ np.maximum(found.values - at, 0.0)
        assert exact * (1.0 - 1e-9) <= told <= exact * 1.003 + 1e-12


def test_certify_takes_the_smallest():
    for randomizer, n in ((HadamardResponse(10), 10_000), (Laplace(0, 1), 1_000)):
        found = certify(question(randomizer, 1.0, n), 1e-6)
        told = {e.key: e.epsilon.upper for e in found.evidence if e.epsilon is not None}
        assert found.epsilon.upper == min(told[key] for key in ("blanket", "chain", "local"))
        assert (found.epsilon.upper == told["chain"]) == (n == 10_000)


def test_what_it_refuses():
    for setting, reason in (
        (question(RandomizedResponse(2), 1.0, 1000), "how any three"),
        (question(HadamardResponse(2), 1.0, 1000), "how any three"),
        (question(SignedSketch(16, 4), 1.0, 1000), "how any three"),
        (question(HadamardResponse(5), 6.0, 1000), "users of a budget"),
        (question(Laplace(0, 1), 1.0, 50), "users of a budget"),
    ):
        with pytest.raises(OutOfRegime, match=reason):
            bounds["chain"].profile(setting, float(setting.budgets.epsilons[0]))


def test_where_the_tail_leaves_double_range_nobody_is_warned():
    """hadamard:3 at budget 0.1 among 171, epsilon 0.05: an overflow was told to the user; the number is the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = bounds["chain"].profile(question(HadamardResponse(3), 0.1, 171), 0.1).delta(0.05)
    attacked = bounds["reports-exact"].profile(question(HadamardResponse(3), 0.1, 171), 0.1).delta(0.05)
    assert attacked.lower <= found.upper <= 4e-13


def test_groups_are_small_enough_for_a_law_of_two_counts():
    """Ten thousand million people took 9 CPU seconds and 850 MB: a law of 1e5 copies has 1e7 pairs of counts."""
    ways = bounds["chain"].profile(question(HadamardResponse(10), 1.0, 10**12), 1.0).ways
    assert set(zip(ways.copies.tolist(), ways.last.tolist(), strict=True)) == {(30_000, 10**12 - 30_001)}
    alike = bounds["chain"].profile(question(HadamardResponse(10), 1.0, 10**6), 1.0).ways
    assert len(set(alike.copies.tolist())) == 4
