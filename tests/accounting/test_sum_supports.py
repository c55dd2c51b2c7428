"""The difference of two counts in a released sum: against the protocol written out, and beside the upper ends."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from shuffledp import (
    Budgets,
    HadamardResponse,
    LocalHashing,
    OutOfRegime,
    RandomizedResponse,
    Setting,
    SubsetSelection,
    UnaryEncoding,
    certify,
    privacy_profile,
)
from shuffledp.accounting.certify import bounds
from shuffledp.cli.population import parse_randomizer
from tests import oracles
from tests.randomizers import laws

E = Fraction(3)
EPSILON0 = math.log(3)
RATIOS = (Fraction(1), Fraction(21, 20), Fraction(3, 2), Fraction(5, 2))
WITNESS = bounds["sum-exact"]


def setting(budgets, randomizer, **options):
    return Setting(budgets, randomizer, **{"seen": "sum", "neighboring": "replace-one"} | options)


def signs(order):
    rows = [[1]]
    while len(rows) < order:
        rows = [row + row for row in rows] + [row + [-s for s in row] for row in rows]
    return rows


def hadamard_supports():
    return [tuple(int(sign == signs(4)[x + 1][j]) for x in range(3)) for j in range(4) for sign in (1, -1)]


def hashing_supports():
    return [tuple(int(h[x] == y) for x in range(3)) for h in laws.all_hashes(3, 2) for y in range(2)]


def subset_supports():
    return [tuple(int(x in s) for x in range(4)) for s in itertools.combinations(range(4), 2)]


def one_of(k):
    return [tuple(int(x == y) for x in range(k)) for y in range(k)]


FAMILIES = {
    "krr": (RandomizedResponse(4), lambda e: oracles.krr_channel(4, e), one_of(4)),
    "unary": (
        UnaryEncoding(3),
        lambda e: laws.unary_table(3, Fraction(1, 2), 1 / (e + 1)),
        list(itertools.product((0, 1), repeat=3)),
    ),
    "hashing": (LocalHashing(3, 2), lambda e: laws.hashing_table(laws.all_hashes(3, 2), 2, e), hashing_supports()),
    "hadamard": (HadamardResponse(3), lambda e: laws.hadamard_table(3, 4, e), hadamard_supports()),
    "subset": (SubsetSelection(4, 2), lambda e: laws.subset_table(4, 2, e), subset_supports()),
}


def sum_law(rows, supports):
    """Law of the summed vectors of supports of independent reports, one per row of chances."""
    found = {(0,) * len(supports[0]): Fraction(1)}
    for row in rows:
        one = defaultdict(Fraction)
        for chance, support in zip(row, supports, strict=True):
            one[support] += chance
        after = defaultdict(Fraction)
        for total, mass in found.items():
            for support, chance in one.items():
                after[tuple(a + b for a, b in zip(total, support, strict=True))] += mass * chance
        found = dict(after)
    return found


def difference(law):
    """Law of (supports of 0) - (supports of 1)."""
    found = defaultdict(Fraction)
    for total, mass in law.items():
        found[total[0] - total[1]] += mass
    return found


def best_threshold(P, Q, ratio):
    return max(sum(P[d] - ratio * Q[d] for d in set(P) | set(Q) if d >= t) for t in range(-6, 8))


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("n", [1, 2, 4])
def test_is_attained_by_the_released_sum_and_by_a_threshold_on_two_counts(name, n):
    """Of all sums in fractions: some crowd's best threshold is the lower end, and the sum itself leaks no less."""
    family, table, supports = FAMILIES[name]
    rows = table(E)
    profile = WITNESS.profile(setting(Budgets([EPSILON0], [n]), family), EPSILON0)
    for ratio in RATIOS:
        shown = profile.delta_pair(math.log(ratio))
        crowds = []
        for x2 in (0, 2):
            worlds = [sum_law([rows[x], *[rows[x2]] * (n - 1)], supports) for x in (0, 1)]
            P, Q = (difference(world) for world in worlds)
            mirrored = tuple(defaultdict(Fraction, {-d: mass for d, mass in law.items()}) for law in (Q, P))
            full = (oracles.hockey_stick(*worlds, ratio), oracles.hockey_stick(*worlds[::-1], ratio))
            tests = (best_threshold(P, Q, ratio), best_threshold(*mirrored, ratio))
            crowds.append((full, tests))
        fits = [
            all(abs(one.lower - float(test)) <= 1e-11 for one, test in zip(shown, tests, strict=True))
            for _, tests in crowds
        ]
        assert any(fits)
        full = crowds[fits.index(True)][0]
        assert all(one.lower <= float(most) + 1e-15 for one, most in zip(shown, full, strict=True))
        assert all(0.0 <= one.upper - one.lower <= 1e-11 for one in shown)


@pytest.mark.costly("hashing", "unary")
@pytest.mark.parametrize("name", FAMILIES)
def test_several_levels_are_attained(name):
    """Levels at e^epsilon0 = 3, 2, 7: the others' terms have three laws; every victim."""
    family, table, supports = FAMILIES[name]
    ratios, counts = (Fraction(2), Fraction(3), Fraction(7)), (2, 1, 1)
    budgets = Budgets([math.log(e) for e in ratios], list(counts))
    for place, own in enumerate(ratios):
        epsilon0 = float(budgets.epsilons[place])
        profile = WITNESS.profile(setting(budgets, family), epsilon0)
        others = [e for e, c in zip(ratios, counts, strict=True) for _ in range(c)]
        others.remove(own)
        for ratio in (Fraction(1), Fraction(6, 5)):
            shown = profile.delta(math.log(ratio))
            found = []
            for x2 in (0, 2):
                P, Q = (difference(sum_law([table(own)[x], *(table(e)[x2] for e in others)], supports)) for x in (0, 1))
                back = tuple(defaultdict(Fraction, {-d: mass for d, mass in law.items()}) for law in (Q, P))
                found.append(max(best_threshold(P, Q, ratio), best_threshold(*back, ratio)))
            assert any(abs(shown.lower - float(value)) <= 1e-11 for value in found)


PINS = [
    ("hadamard:10", [1.0], [10_000], {}, 0.0226871104),
    ("tree:64", [2.0], [10_000], {}, 0.0440724842),
    ("olh:10", [1.0], [10_000], {}, 0.0241826470),
    ("subset:10", [2.0], [10_000], {}, 0.0797105797),
    ("olh:10:4", [0.5, 1.0, 2.0], [5400, 3700, 900], {}, 0.0523326097),
    ("sue:10", [1.0], [1000], {"rounds": 4}, 0.171096179),
    ("hadamard:10", [1.0], [1000], {"missing": 0.1}, 0.0836784269),
]


@pytest.mark.costly("sue:10-epsilons5-counts5-options5-0.171096179")
@pytest.mark.parametrize(("name", "epsilons", "counts", "options", "lower"), PINS)
def test_pins(name, epsilons, counts, options, lower):
    found = certify(setting(Budgets(epsilons, counts), parse_randomizer(name), **options), delta=1e-6).epsilon
    assert found.lower == pytest.approx(lower, rel=1e-6)
    assert found.lower <= found.upper


NAMES = (
    "krr:3", "krr:50", "sue:10", "oue:3", "olh:10", "olh:10:4", "hadamard:10", "subset:10", "subset:10:3", "tree:64",
    "items:20:4:8",
)  # fmt: skip


SITUATIONS = {
    "many people": (Budgets([1.0], [1_000_000]), {}),
    "colluding people and groups": (Budgets([4.0], [50]), {"colluding": 3, "group_size": 2}),
    "one person": (Budgets([0.3], [1]), {}),
    "missing people": (Budgets([0.5, 3.0], [2000, 10]), {"missing": 0.1}),
}
COSTLY_SITUATIONS = {
    "rounds": (Budgets([1.0], [5000]), {"rounds": 3}),
    "more than 32 levels": (Budgets(np.linspace(0.1, 4.0, 40), np.full(40, 100)), {}),
}


def is_a_bracket(name, budgets, options):
    found = certify(setting(budgets, parse_randomizer(name), **options), delta=1e-6)
    ordered = all(level.epsilon.lower <= level.epsilon.upper for level in found.levels)
    return ordered and 0.0 < found.epsilon.lower <= found.epsilon.upper


@pytest.mark.costly("krr:50", "olh:10", "oue:3", "sue:10")
@pytest.mark.parametrize("name", NAMES)
def test_no_lower_end_is_0_and_none_passes_the_upper_end(name):
    for situation, asked in SITUATIONS.items():
        assert is_a_bracket(name, *asked), situation


@pytest.mark.costly(but=("rounds-olh:10:4",))
@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("situation", COSTLY_SITUATIONS)
def test_nor_in_costly_situations(situation, name):
    assert is_a_bracket(name, *COSTLY_SITUATIONS[situation])


def test_the_sum_tells_no_more_than_the_reports():
    for name in ("hadamard:10", "olh:10", "subset:10"):
        family = parse_randomizer(name)
        budgets = Budgets([1.0], [2000])
        summed = privacy_profile(setting(budgets, family), 1.0).epsilon(1e-6)
        reports = privacy_profile(setting(budgets, family, seen="reports"), 1.0).epsilon(1e-6)
        assert summed.lower <= reports.upper


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("piecewise", {}, "additive noise"),
        ("krr:10", {"seen": "reports"}, "seen = reports"),
        ("olh:10:4:unknown", {}, "does not state"),
    ],
)
def test_refusals(name, options, said):
    budgets = Budgets([1.0], [10])
    family = LocalHashing(10, 4, "unknown") if name.endswith("unknown") else parse_randomizer(name)
    with pytest.raises(OutOfRegime, match=said):
        WITNESS.profile(setting(budgets, family, **options), 1.0)


def test_so_many_people_that_doubles_tell_nothing_show_nothing():
    """Chances are doubles: their roundoffs times 1e12 people are charged, and more is not claimed than is left."""
    few, many = (
        WITNESS.profile(setting(Budgets([0.1], [n]), parse_randomizer("hadamard:10")), 0.1).epsilon(1e-6).lower
        for n in (10**6, 10**12)
    )
    assert 0.0 <= many < few
