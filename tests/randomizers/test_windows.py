"""Piecewise mechanism and hybrid against explicit tables of exact fractions, straight from their definitions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import chisquare

from shuffledp.accounting import certify
from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import secure_random, simulation_random
from shuffledp.randomizers import Channel
from shuffledp.randomizers.base import NumberRandomizer, RandomizerLaw
from shuffledp.randomizers.numeric import Hybrid, Piecewise
from shuffledp.randomizers.windows import WHOLE, worst_variance
from shuffledp.setting import Setting
from tests.randomizers import laws

FALSE_ALARM = 1e-5
"""Of each statistical test, over fresh seeds; all are seeded."""
SMALL = {
    "piecewise": Piecewise(0, 1, cells=8, window=3),
    "half": Piecewise(0, 1, cells=6, window=3),
    "wide": Piecewise(0, 1, cells=8, window=6),
    "narrow": Piecewise(0, 1, cells=10, window=1),
    "hybrid": Hybrid(0, 1, cells=8, fixed=(3, WHOLE * 3 // 5, 1)),
    "odd": Hybrid(0, 1, cells=6, fixed=(1, WHOLE // 5, 0)),
    "one-bit": Hybrid(0, 1, cells=4, fixed=(2, 0, 1)),
}
"""Members whose reports can be listed."""


def shape_of(family):
    window, share, inset = (int(part) for part in family.shape(1.0))
    return window, Fraction(share, WHOLE), inset


def row(family, t: Fraction, E: Fraction) -> list[Fraction]:
    """Chances of all 2K reports of a record t: each pair of window and bit has its own, mixed as t is rounded.

    Of the K + K reports those of a bit stand at its two readings.
    """
    cells = family.cells
    window, share, inset = shape_of(family)
    omega = [share / cells] * cells + [Fraction(0)] * cells
    omega[cells + inset] = omega[2 * cells - 1 - inset] = (1 - share) / 2
    place = t * (cells - window)
    start, up = math.floor(place), place - math.floor(place)
    total = [Fraction(0)] * (2 * cells)
    for s, chance in ((start, 1 - up), (start + 1, up)):
        for bit, odds in ((0, 1 - t), (1, t)):
            own = set(range(s, s + window)) | {cells + inset if bit == 0 else 2 * cells - 1 - inset}
            law = [m * (E if y in own else 1) for y, m in enumerate(omega)]
            total = [a + chance * odds * b / sum(law) for a, b in zip(total, law, strict=True)]
    return total


def table(family, E, grid=12):
    return tuple(tuple(row(family, Fraction(i, grid), E)) for i in range(grid + 1))


def used(rows):
    """Without reports that nobody sends."""
    keep = [y for y in range(len(rows[0])) if any(r[y] for r in rows)]
    return tuple(tuple(r[y] for y in keep) for r in rows)


@pytest.mark.parametrize("E", [Fraction(3, 2), Fraction(3), Fraction(20)])
@pytest.mark.parametrize("name", SMALL)
def test_law_is_the_table(name, E):
    family, epsilon0 = SMALL[name], math.log(E)
    rows = table(family, E)
    laws.check_is_a_law(used(rows), E)
    _, share, inset = shape_of(family)
    omega = [share / family.cells] * family.cells + [Fraction(0)] * family.cells
    omega[family.cells + inset] = omega[-1 - inset] = (1 - share) / 2
    keep = [y for y, m in enumerate(omega) if m]
    ends = tuple(tuple(rows[i][y] for y in keep) for i in (0, -1))
    (pair,) = family.pair_blankets(epsilon0)
    laws.check_pair(ends, [omega[y] for y in keep], E, pair)
    assert all(r[y] >= Fraction(pair.gamma) * (1 - Fraction(1, 10**14)) * omega[y] for r in rows for y in keep)
    counts = family.pair_counts(epsilon0)
    middle = tuple(row(family, Fraction(1, 2), E)[y] for y in keep)
    a = [y for y in range(len(keep)) if ends[0][y] > ends[1][y]]
    b = [y for y in range(len(keep)) if ends[0][y] < ends[1][y]]
    exact = [float(sum(r[y] for y in o)) for r, o in ((ends[0], a), (ends[0], b), (middle, a), (middle, b))]
    found = [float(counts.right), float(counts.wrong), float(counts.third), float(counts.third)]
    assert found == pytest.approx(exact, rel=1e-13)
    assert float(counts.neither) == pytest.approx(1 - exact[0] - exact[1], abs=1e-13)


def seen_against(rows):
    """Masses of the third law by the ratios of the first two to it, in fractions."""
    exact: dict[tuple[Fraction, Fraction], Fraction] = {}
    for p, q, other in zip(*rows, strict=True):
        if other:
            exact[p / other, q / other] = exact.get((p / other, q / other), Fraction(0)) + other
    return exact


def as_cells(pair):
    found: dict[tuple[float, float], float] = {}
    for one, two, mass in zip(pair.ratios0, pair.ratios1, pair.masses, strict=True):
        key = (round(float(one), 12), round(float(two), 12))
        found[key] = found.get(key, 0.0) + float(mass)
    return sorted((*key, mass) for key, mass in found.items())


@pytest.mark.costly("narrow-E0", "narrow-E1")
@pytest.mark.parametrize("E", [Fraction(3, 2), Fraction(20)])
@pytest.mark.parametrize("name", SMALL)
def test_attack_is_of_real_records(name, E):
    """Some three records on the grid of whole starts have the stated laws, and none has a larger chi-square."""
    family = SMALL[name]
    free = family.cells - shape_of(family)[0]
    rows = [row(family, Fraction(i, free), E) for i in range(free + 1)]
    first, second = family.witness_pairs(math.log(E))
    stated, most, fits = as_cells(first), Fraction(0), False
    for places in itertools.product(range(free + 1), repeat=3):
        exact = seen_against([rows[i] for i in places])
        most = max(most, sum(mass * (a - b) ** 2 for (a, b), mass in exact.items()))
        if not fits and len(exact) == len(stated):
            wanted = sorted((float(a), float(b), float(m)) for (a, b), m in exact.items())
            fits = np.array(stated) == pytest.approx(np.array(wanted), rel=1e-11)
    assert fits
    assert first.gamma == second.gamma == 1.0
    shown = float((first.masses * (first.ratios0 - first.ratios1) ** 2).sum())
    assert shown == pytest.approx(float(most), rel=1e-12)
    assert first.losses == pytest.approx(np.log(first.ratios0 / first.ratios1), abs=1e-13)
    assert np.array_equal(first.ratios0, second.ratios1)
    assert np.array_equal(first.ratios1, second.ratios0)
    assert np.array_equal(first.losses, -second.losses)


def _skew(z):
    """A convex function that sees the sign of the third moment."""
    return z**2 / 2.0 + z**3 / 6.0 + z**4 / 24.0


CONVEX = (
    lambda p, q, other, c: other * np.abs(p / other - c * q / other + c - 1.0) ** 2,
    lambda p, q, other, c: other * np.abs(p / other - c * q / other + c - 1.0) ** 4,
    lambda p, q, other, c: other * _skew((p / other - c * q / other + c - 1.0) / 10.0),
    lambda p, q, other, c: other * _skew((p / other - c * q / other + c - 1.0) / -10.0),
    lambda p, q, other, c: np.abs(c * p - q + 0.7 * (1.0 - c) * other),
    lambda p, q, other, c: np.maximum(np.maximum(c * p, q), 1.3 * other),
)


@pytest.mark.parametrize("E", [1.5, 7.0, 100.0])
@pytest.mark.parametrize("name", SMALL)
def test_no_three_records_exceed_the_listed_ones(name, E):
    """Random records, seeded, many at the ends or alike; six convex homogeneous functions."""
    family, rng = SMALL[name], np.random.default_rng(8)
    listed = family.worst_places(math.log(E))
    likely = 1.0 + (E - 1.0) * listed.likely / listed.whole
    assert listed.omega.sum(axis=1) == pytest.approx(1.0, rel=1e-14)
    assert (listed.omega[..., None] * listed.likely).sum(axis=1) / listed.whole == pytest.approx(
        family.share(math.log(E)), rel=1e-13
    )
    window, share, _ = (int(part) for part in family.shape(math.log(E)))
    cells, cell = family.cells, np.arange(family.cells)
    omega = np.append(np.full(cells, share / WHOLE / cells), np.full(2, (1.0 - share / WHOLE) / 2.0))

    def likelihoods(t):
        start = t * (cells - window)
        low = min(math.floor(start), cells - window)
        inside = [((cell >= s) & (cell < s + window)).astype(float) for s in (low, low + 1)]
        mixed = (1.0 - (start - low)) * inside[0] + (start - low) * inside[1]
        return 1.0 + (E - 1.0) * np.append(mixed, [1.0 - t, t])

    closest = 0.0
    for convex in CONVEX:
        for c in (1.0, 1.3):
            most = (listed.omega * convex(*np.moveaxis(likely, 2, 0), c)).sum(axis=1).max()
            for _ in range(40):
                t = rng.random(3)
                t[rng.random(3) < 0.3] = rng.integers(0, 2)
                t[2] = t[0] if rng.random() < 0.2 else t[2]
                value = (omega * convex(*(likelihoods(x) for x in t), c)).sum()
                closest = max(closest, value / most)
                assert value <= most * (1.0 + 1e-12)
    assert closest > 0.9  # the list is not merely a loose bound


@pytest.mark.costly(but=("half",))
@pytest.mark.parametrize("name", ["piecewise", "half", "wide", "hybrid", "odd"])
def test_the_ends_are_the_worst_pair(name):
    """A matrix of all windows and bits, which tries all pairs against its own blanket, is certified no worse."""
    family = SMALL[name]
    E = Fraction(3)
    cells = family.cells
    window, share, _ = shape_of(family)
    rows = []
    for start, bit in itertools.product(range(cells - window + 1), (0, 1) if share < 1 else (0,)):
        own = set(range(start, start + window)) | {cells + bit}
        law = [share / cells] * cells + [(1 - share) / 2] * (2 if share < 1 else 0)
        law = [m * (E if y in own else 1) for y, m in enumerate(law)]
        rows.append([float(m / sum(law)) for m in law])
    budgets = Budgets.of([math.log(3)] * 200)
    mine = certify(Setting(budgets, family, "reports", "replace-one"), 1e-6).epsilon
    theirs = certify(
        Setting(Budgets.of([math.log(3) * (1 + 1e-12)] * 200), Channel(rows), "reports", "replace-one"), 1e-6
    )
    assert theirs.epsilon.upper <= mine.upper * (1 + 1e-6)
    if 2 * window <= cells:  # no output is in everybody's window, so the blanket is the whole minimum
        assert theirs.epsilon.upper >= mine.upper * (1 - 1e-3)
    assert mine.lower <= theirs.epsilon.upper


@pytest.mark.costly("odd")
@pytest.mark.parametrize("name", ["narrow", "odd"])
def test_no_real_protocol_exceeds_the_bound(name):
    narrow, odd = Piecewise(0, 1, cells=4, window=1), Hybrid(0, 1, cells=4, fixed=(1, WHOLE // 3, 0))
    family = {"narrow": narrow, "odd": odd}[name]
    tables = [
        used([row(family, Fraction(i, 3), E) for i in range(4)]) for E in (Fraction(3, 2), Fraction(4), Fraction(9))
    ]
    shares = [Fraction(0), Fraction(1, 3), Fraction(9, 10)]
    assert laws.check_never_exceeded(tables, family, shares) > 0.4


@pytest.mark.parametrize("t", [Fraction(0), Fraction(3, 10), Fraction(1, 2), Fraction(1)])
@pytest.mark.parametrize("name", SMALL)
def test_samples_follow_the_table(name, t):
    family, E = SMALL[name], Fraction(3)
    n = 20_000
    epsilons = np.tile([math.log(3), 0.0], n)
    reports = family.randomize(np.full(2 * n, float(t)), epsilons, simulation_random(7))
    for place, ratio in ((0, E), (1, Fraction(1))):
        law = np.array([float(p) for p in row(family, t, ratio)])
        counts = np.bincount(reports[place::2], minlength=2 * family.cells)
        assert counts[law == 0].sum() == 0
        if (law > 0).sum() > 1:
            assert chisquare(counts[law > 0], law[law > 0] * n).pvalue > FALSE_ALARM


@pytest.mark.parametrize("t", [Fraction(0), Fraction(1, 7), Fraction(1, 2), Fraction(1)])
@pytest.mark.parametrize("name", SMALL)
def test_reading_is_unbiased_with_the_stated_variance(name, t):
    family, E = SMALL[name], Fraction(5)
    values = family.report_values(np.arange(2 * family.cells))
    chances = row(family, t, E)
    exact_mean = sum(p * int(v) for p, v in zip(chances, values, strict=True))
    exact_variance = float(sum(p * (int(v) - exact_mean) ** 2 for p, v in zip(chances, values, strict=True)))
    law = family.number_law(math.log(5))
    assert float(law.offset + law.slope * float(t)) == pytest.approx(float(exact_mean), rel=1e-12)
    stated = float(law.variance @ [1.0, float(t), float(t) ** 2])
    assert exact_variance * (1 - 1e-12) <= stated <= exact_variance + 0.25
    whole = (t * (family.cells - shape_of(family)[0])).denominator == 1
    if shape_of(family)[1] == 0:
        assert stated == pytest.approx(exact_variance, rel=1e-12)
    elif whole:
        assert stated > exact_variance
    spread = max(abs(int(v) - exact_mean) for p, v in zip(chances, values, strict=True) if p)
    assert float(spread) <= float(law.largest) * (1 + 1e-12)


@pytest.mark.parametrize("epsilon0", [0.05, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 40.0])
def test_the_window_has_the_least_worst_variance(epsilon0):
    best = int(Piecewise(0, 1, cells=512).shape(epsilon0).window)
    every = [float(worst_variance(Piecewise(0, 1, cells=512, window=w).number_law(epsilon0))) for w in range(1, 257)]
    assert every[best - 1] <= min(every) * (1 + 1e-12)


@pytest.mark.parametrize("epsilon0", [0.2, 0.65, 0.85, 1.3, 2.2, 3.6, 4.5, 7.0, 9.0, 11.5, 15.0])
def test_the_hybrid_is_within_one_percent_of_the_best(epsilon0):
    cells = 1 << 14

    def error(logits):
        window, share, inset = 1 / (1 + np.exp(-np.clip(logits, -30, 30)))
        fixed = (max(round(window * cells / 2), 1), round(share * WHOLE), round(inset * (cells // 2 - 1)))
        return math.log(float(worst_variance(Hybrid(0, 1, cells=cells, fixed=fixed).number_law(epsilon0))))

    starts = [(1.0, -1.0, 0.0), (0.0, 2.0, -1.0), (-2.0, 6.0, -2.0), (-4.0, 20.0, 0.0), (0.0, -20.0, 0.0)]
    options = {"xatol": 1e-4, "fatol": 1e-9, "maxiter": 300}
    best = min(minimize(error, start, method="Nelder-Mead", options=options).fun for start in starts)
    mine = float(worst_variance(Hybrid(0, 1, cells=cells).number_law(epsilon0)))
    assert mine <= math.exp(best) * 1.01


def test_the_hybrid_beats_its_parts():
    for epsilon0 in (0.7, 1.0, 2.0, 4.0):
        wang, steps = math.exp(epsilon0 / 2), 4095.0
        piecewise = (1 / (wang - 1) + (wang + 3) / (3 * (wang - 1) ** 2)) / 4  # Wang et al. 2019, worst case
        bit = ((math.exp(epsilon0) + 1) / (math.exp(epsilon0) - 1)) ** 2 / 4
        best = float(worst_variance(Hybrid(0, 1).number_law(epsilon0)))
        assert best < 0.99 * min(bit, piecewise)
        assert float(worst_variance(Piecewise(0, 1).number_law(epsilon0))) < 0.99 * piecewise + 1 / steps**2


@pytest.mark.parametrize("kind", [Piecewise, Hybrid])
def test_one_shape_for_a_population(kind):
    family = kind(0, 1)
    assert not family.mixture
    one = family.for_budgets([1.0], [5])
    assert one.mixture
    assert all(int(a[0]) == int(b) for a, b in zip(one.shape([3.0]), family.shape(1.0), strict=True))
    budgets, users = np.array([0.0, 0.3, 1.0, 4.0]), np.array([10, 700, 200, 100])
    several = family.for_budgets(budgets, users)
    assert several.for_budgets([2.0], [1]) is several

    def error(member):
        law = member.number_law(budgets)
        return (users * law.slope**2 * np.nan_to_num(worst_variance(law), posinf=0.0)).sum() / (
            users * law.slope
        ).sum() ** 2

    assert error(several) <= min(error(family.for_budgets([b], [1])) for b in (0.3, 1.0, 4.0)) * (1 + 1e-9)
    many = family.for_budgets(np.linspace(0.1, 3.0, 5000), np.ones(5000))
    assert many.mixture
    assert family.for_budgets([0.0], [3]).mixture


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 700)), min_size=1, max_size=8),
    st.sampled_from([Piecewise(2, 5), Hybrid(2, 5), Piecewise(2, 5, 10, 2), Hybrid(2, 5, 4, (1, 9, 1))]),
    st.floats(0, 1),
)
def test_any_budgets(epsilons, family, fraction):
    budgets = np.array(epsilons)
    reports = family.randomize(np.full(budgets.size, 2 + 3 * fraction), budgets, secure_random())
    assert ((reports >= 0) & (reports < 2 * family.cells)).all()
    assert np.array_equal(family.unpack(family.pack(reports)), reports)
    law = family.number_law(budgets)
    assert np.isfinite(law.variance).all()
    assert ((law.slope > 0.0) == (budgets > 0.0)).all()
    (pair,) = family.pair_blankets(epsilons[0])
    assert float(pair.masses.sum()) == pytest.approx(1.0)
    assert 0.0 < pair.gamma <= 1.0


@pytest.mark.parametrize("kind", [Piecewise, Hybrid])
def test_bad_input(kind):
    family = kind(0, 1)
    assert isinstance(family, NumberRandomizer)
    assert isinstance(family, RandomizerLaw)
    for value in (-0.1, 1.1, math.nan):
        with pytest.raises(InvalidInput, match="value in row 2"):
            family.randomize([0.5, value], 1.0, secure_random())
    with pytest.raises(InvalidInput, match="epsilon0 in row 2"):
        family.randomize([0.5, 0.5], [1.0, -1.0], secure_random())
    with pytest.raises(InvalidInput, match="whole number of cells from 4"):
        kind(0, 1, cells=3)
    with pytest.raises(InvalidInput, match="the range needs"):
        kind(1, 1)
    for window in (0, 4096, 1.5):
        with pytest.raises(InvalidInput, match="from 1 to 4,095"):
            Piecewise(0, 1, window=window) if kind is Piecewise else Hybrid(0, 1, fixed=(window, 0, 0))
    with pytest.raises(InvalidInput, match="a window, a share and an inset"):
        Hybrid(0, 1, fixed=(1, 2))
    with pytest.raises(InvalidInput, match="row 1 is"):
        family.unpack(np.full((1, 2), 255, dtype=np.uint8))


def test_names_say_the_shape():
    assert Piecewise(0, 1, cells=10, window=3).name == "piecewise:10:3"
    assert Piecewise(0, 1, cells=11).name == "piecewise:12"
    assert Hybrid(0, 1, fixed=(3, 4, 5)).name == "hybrid:4096:3:4:5"
