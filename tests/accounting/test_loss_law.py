"""The law of L = r_0 - e^eps r_1: atoms against balls, continuous laws against quadrature, in convex order."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from scipy.stats import norm

from shuffledp.accounting.theorems.blanket import pairs
from shuffledp.accounting.theorems.blanket.loss_laws import LossLaw, left_out, loss_law, upper_laws
from shuffledp.accounting.theorems.blanket.noise import Core, Noise, RecordPair
from shuffledp.accounting.theorems.blanket.pairs import OneBudgetProfile, OwnBudgetsProfile, composition_values
from shuffledp.numerics.counts import SuccessRange
from shuffledp.numerics.floats import EPS, FloatArray, Upper
from shuffledp.numerics.sums import IndependentSum, positive_parts
from shuffledp.randomizers import Channel, HadamardResponse, RandomizedResponse, SubsetSelection, UnaryEncoding
from shuffledp.randomizers.base import PairBlanket

NOISES = [
    ("laplace", 1.0, 1.0, 5.0),  # kind, victim's scale, core's scale, edge
    ("laplace", 0.2, 0.7, 2.0),
    ("laplace", 3.0, 0.4, 4.5),
    ("gaussian", 1.0, 1.0, 4.0),
    ("gaussian", 0.3, 0.5, 2.2),
    ("gaussian", 2.0, 0.6, 6.0),
]
RECORDS = [(0.0, 1.0), (0.3, 1.0), (0.2, 0.5), (0.02, 0.03), (0.9, 0.4)]


def above(law: LossLaw, k: float) -> float:
    """E(L - k)_+, the mass that no atom has lying at 0."""
    values, masses = law.one.values[0], law.one.probabilities[0]
    return float(masses @ np.maximum(values - k, 0.0)) + max(1.0 - float(masses.sum()), 0.0) * max(-k, 0.0)


def density(noise: Noise, u: FloatArray) -> FloatArray:
    if noise.kind == "gaussian":
        return norm.pdf(u, scale=noise.scale)
    return np.exp(-np.abs(u) / noise.scale) / (2.0 * noise.scale)


def exact_values(core: Core, victim: Noise, x0: float, x1: float, epsilon: float) -> tuple[FloatArray, FloatArray]:
    """Values of L and their omega-weights on a grid finer than any cell, straight from the densities."""
    kinks = np.unique(np.clip([1.0 - core.edge, 0.0, 0.5, 1.0, x0, x1, core.edge], 1.0 - core.edge, core.edge))
    parts = [np.linspace(a, b, 4001)[:-1] for a, b in itertools.pairwise(kinks.tolist())]
    ends = np.concatenate([*parts, kinks[-1:]])
    y, width = 0.5 * (ends[1:] + ends[:-1]), np.diff(ends)
    omega = density(core.noise, np.maximum(np.abs(y), np.abs(1.0 - y)))
    weights = omega * width / float(omega @ width)
    omega = omega / float(omega @ width)
    return (density(victim, y - x0) - math.exp(epsilon) * density(victim, y - x1)) / omega, weights


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("kind", "scale", "core_scale", "edge"), NOISES)
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.6])
def test_continuous_laws_lie_between_two_discrete_ones(kind, scale, core_scale, edge, epsilon):
    core, victim = Core(Noise(kind, core_scale), edge), Noise(kind, scale)
    for x0, x1 in RECORDS:
        pair = RecordPair(core, victim, x0, x1)
        upper, lower = loss_law(pair.blanket, epsilon), loss_law(pair.below, epsilon, above=False)
        values, weights = exact_values(core, victim, x0, x1, epsilon)
        size = float(weights @ np.abs(values))
        for k in (*np.quantile(values, [0.001, 0.1, 0.5, 0.9, 0.999]), 0.0, -size, size):
            truth = float(weights @ np.maximum(values - k, 0.0))
            assert above(upper, k) >= truth - 2e-7 * (size + abs(k)), (x0, x1, k)
            assert above(lower, k) <= truth + 2e-7 * (size + abs(k)), (x0, x1, k)
        mean = float(weights @ values)
        assert lower.one.means[0] - 2e-7 * size <= mean <= upper.one.means[0] + 2e-7 * size
        if core_scale >= scale:  # the two are close, too: nothing here is a bound by being trivial
            assert above(upper, 0.0) <= above(lower, 0.0) * 1.05 + 1e-6
            assert upper.one.means[0] == pytest.approx(mean, rel=1e-6, abs=2e-7 * size)


@pytest.mark.costly("gaussian-0.3-0.5-2.2", "gaussian-1.0-1.0-4.0", "gaussian-2.0-0.6-6.0")
@pytest.mark.parametrize(("kind", "scale", "core_scale", "edge"), NOISES)
def test_what_lies_beyond_the_edge_is_charged(kind, scale, core_scale, edge):
    victim, epsilon = Noise(kind, scale), 0.1
    core, y = Core(Noise(kind, core_scale), edge), np.linspace(0.0, 40.0 * scale, 400_001)
    for x0, x1 in RECORDS:
        pair = RecordPair(core, victim, x0, x1).blanket
        assert pair.spread is not None
        charge = float(left_out(pair.spread, epsilon))
        assert charge == loss_law(pair, epsilon).charge
        truth = 0.0
        for side in (edge + y, 1.0 - edge - y):
            excess = density(victim, side - x0) - math.exp(epsilon) * density(victim, side - x1)
            truth += float(np.trapezoid(np.maximum(excess, 0.0), y))
        assert charge >= truth * (1 - 1e-6)


@pytest.mark.parametrize(
    ("family", "epsilon0"),
    [
        (RandomizedResponse(7), 1e-9),
        (RandomizedResponse(7), 40.0),
        (RandomizedResponse(10**9), 300.0),
        (HadamardResponse(10), 3.0),
        (HadamardResponse(10), 330.0),
        (SubsetSelection(30, size=4), 12.0),
        (UnaryEncoding(6), 150.0),
        (UnaryEncoding(6, optimized=False), 0.1),
    ],
)
def test_atoms_are_as_good_as_stated(family, epsilon0):
    """|computed/exact - 1| <= doubt EPS; exponents up to 700 cost their own size in EPS, and no more."""
    ctx.prec = 300
    (pair,) = family.pair_blankets(epsilon0)
    gamma = arb(float(pair.gamma))  # the same in every atom: its own error is counted apart
    for epsilon in (0.0, 0.3 * epsilon0, 0.97 * epsilon0):
        one = loss_law(pair, epsilon).one
        for value, loss in zip(one.values[0], pair.losses, strict=True):
            choices = (gamma, gamma * arb(epsilon0).exp())
            ratio = choices[int(loss > 0)]
            if loss == 0.0:  # both ratios agree: E gamma on both sets, gamma on neither
                ratio = min(choices, key=lambda r: abs(float(r) * math.expm1(epsilon) + value))
            exact = ratio * (1 - (arb(epsilon) - arb(float(loss))).exp())
            error = abs(arb(float(value)) - exact)
            assert error <= abs(exact) * (one.doubt + 12.0) * EPS, (family.name, epsilon, loss)
        assert one.means[0] == pytest.approx(-math.expm1(epsilon), rel=4 * EPS)


def test_large_atoms_of_tiny_probability_count():
    # three reports with a chance of e^-340 each, worth e^340: their product was lost to underflow
    ctx.prec = 300
    n, epsilon0 = 48, 340.0
    (pair,) = UnaryEncoding(5).pair_blankets(epsilon0)
    epsilon = epsilon0 + math.log(2.5 / 48)
    found = composition_values(loss_law(pair, epsilon).one, np.array([n]))
    E, t = arb(epsilon0).exp(), arb(epsilon).exp()
    q = 1 / (1 + E)
    value = 3 * (0.5 / q - 0.5 * t / (1 - q)) + (n - 3) * (0.5 / (1 - q)) * (1 - t)
    least = math.comb(n, 3) * (q * (1 - q)) ** 3 * ((1 - q) ** 2) ** (n - 3) * value / n
    assert 1e-296 < float(least.mid()) < 1e-280
    assert arb(float(found.upper[0])) >= least.lower()


@pytest.mark.parametrize("above", [True, False])
def test_one_report_is_a_finite_sum_of_every_law(above, monkeypatch):
    """h(0) = E L_+: the sum over the atoms, which lies in what the transform encloses and costs no transform."""
    victim, core = Noise("laplace", 1.0), Core(Noise("laplace", 1.0), 5.0)
    records = RecordPair(core, victim)
    blanket = records.blanket if above else records.below
    law = loss_law(blanket, 0.3, above=above)
    exact = sum(
        max(Fraction(float(value)), Fraction(0)) * Fraction(float(mass))
        for value, mass in zip(law.one.values[0], law.one.probabilities[0], strict=True)
    )
    found = composition_values(law.one, np.array([1]))
    assert Fraction(float(found.lower[0])) <= exact <= Fraction(float(found.upper[0]))
    assert found.upper[0] / found.lower[0] - 1.0 < 2e-11
    wide = positive_parts(law.one, np.ones(1), 0.02)
    assert wide.lower[0] <= found.upper[0]
    assert found.lower[0] <= wide.upper[0]
    asked = []
    monkeypatch.setattr(pairs, "positive_parts", lambda one, copies, smoothing: asked.append(copies.min()))
    profile = OwnBudgetsProfile(9.0, blanket, SuccessRange.of(np.array([0.5]), np.array([0.0]), ulps=4), above)
    assert profile.delta(0.3).upper >= float(exact)
    assert not asked


def test_a_cell_that_no_report_falls_into_counts_nothing():
    law = IndependentSum(np.ones(1), np.array([[2.0, -1.0, 5.0]]), np.array([[0.25, 0.75, 0.0]]), np.array([-0.25]))
    found = composition_values(law, np.array([1, 2]))
    assert found.lower == pytest.approx([0.5, (0.0625 * 4.0 + 0.375 * 1.0) / 2.0], rel=2e-11)
    assert found.upper == pytest.approx(found.lower, rel=2e-11)


def test_a_report_alone_bounds_everything():
    rows = [[8, 16, 24, 16], [20, 20, 4, 20], [16, 8, 8, 32]]
    channel = Channel(np.array(rows) / 64)
    for pair in channel.pair_blankets(5.0):
        for epsilon in (0.0, 0.2, 1.0):
            law, profile = loss_law(pair, epsilon), OneBudgetProfile(9.0, pair, 3)
            assert profile.delta(epsilon).upper <= law.alone
    exact = [[Fraction(entry, 64) for entry in row] for row in rows]
    worst = max(sum(max(a - b, 0) for a, b in zip(p, q, strict=True)) for p in exact for q in exact)
    alone = max(loss_law(pair, 0.0).alone for pair in channel.pair_blankets(5.0))
    assert alone == pytest.approx(float(worst), rel=1e-11)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0, 50.0])
def test_outputs_that_some_record_never_gives(epsilon):
    """The charge is R(x0)'s share of them, whatever epsilon, and cells that are left keep their values."""
    channel = Channel(np.array([[32, 16, 16, 0], [16, 32, 12, 4], [16, 16, 32, 0]]) / 64)
    charges = sorted({loss_law(pair, epsilon).charge for pair in channel.pair_blankets(1.0)})
    assert charges[0] == 0.0
    assert charges[-1] == pytest.approx(4 / 64, rel=1e-11)
    for pair in channel.pair_blankets(1.0):
        truth = float(pair.masses @ np.maximum(pair.ratios0 - math.exp(epsilon) * pair.ratios1, 0.0))
        assert above(loss_law(pair, epsilon), 0.0) >= truth * (1 - 1e-12)


def test_fewer_blanket_reports_are_a_bound():
    """Z = L/gamma with probability gamma: a smaller gamma has the same mean and is larger in convex order."""
    (pair,) = HadamardResponse(10).pair_blankets(2.0)
    law = loss_law(pair, 0.3)
    for gamma in (0.4, 0.1):
        large, small = law.diluted(gamma), law.diluted(0.9 * gamma)
        assert small.one.means[0] == large.one.means[0] == law.one.means[0]
        for k in (-3.0, -0.1, 0.0, 0.2, 5.0):
            assert above(small, k) >= above(large, k) * (1 - 1e-12)


def test_a_law_beyond_double_range_is_trivial():
    pair = PairBlanket(0.5, np.array([1.0]), np.array([1e300]), np.array([1.0]), np.array([690.0]))
    law = loss_law(pair, 0.0)
    assert not law.finite
    assert law.alone == 1.0
    assert isinstance(law.one, IndependentSum)


@pytest.mark.parametrize(("kind", "scale", "core_scale", "edge"), NOISES)
def test_laws_at_many_epsilons_are_those_at_each(kind, scale, core_scale, edge):
    epsilons = [0.0, 0.05, 0.6, 3.0]
    for x0, x1 in RECORDS[:3]:
        pair = RecordPair(Core(Noise(kind, core_scale), edge), Noise(kind, scale), x0, x1).blanket
        assert pair.spread is not None
        laws = upper_laws(pair, pair.spread, np.array(epsilons))
        assert laws.usable.all()
        for k, epsilon in enumerate(epsilons):
            one = loss_law(pair, epsilon)
            some = laws.weights[k] > 0.0
            np.testing.assert_allclose(laws.values[k][some], one.one.values[0], rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(laws.weights[k][some], one.one.probabilities[0], rtol=1e-9, atol=1e-18)
            assert laws.charge[k] == pytest.approx(one.charge, rel=1e-14)
            assert laws.alone[k] == pytest.approx(one.alone, rel=1e-12)
            # rounding to nearest lost up to 7.4 EPS of the mass, so that no proof held far on the left
            masses = sum(map(Fraction, pair.masses.tolist()))
            assert masses <= sum(map(Fraction, laws.weights[k].tolist())) <= masses * (1 + Fraction(1e-11))


@pytest.mark.parametrize(("kind", "scale", "core_scale", "edge"), [*NOISES[:2], NOISES[3], ("gaussian", 1.0, 1.3, 4.0)])
@pytest.mark.parametrize("own", [True, False])
def test_values_found_in_one_pass_are_those_found_one_by_one(kind, scale, core_scale, edge, own):
    records = RecordPair(Core(Noise(kind, core_scale), edge), Noise(kind, scale))
    others = SuccessRange.of(np.array([0.4, 0.7]), np.array([9_000.0, 30_000.0]), ulps=4)

    def profile(pair: PairBlanket, *, above: bool) -> OwnBudgetsProfile | OneBudgetProfile:
        if own:
            return OwnBudgetsProfile(Upper(math.inf), pair, others, above, fineness=4.0)
        return OneBudgetProfile(Upper(math.inf), replace(pair, gamma=0.6), 40_000, above)

    together, apart = profile(records.blanket, above=True), profile(records.blanket, above=True)
    below = profile(records.below, above=False)
    guess = apart.guess_epsilon(1e-6)
    assert guess is not None
    epsilons = (guess * np.array([0.0, 0.1, 0.4, 0.8, 1.0, 1.2])).tolist()
    together.prepare(epsilons)
    assert all(together.knows(epsilon) for epsilon in epsilons)
    for epsilon in epsilons:
        found, known = together.delta(epsilon).upper, apart.delta(epsilon).upper
        assert known * (1.0 - 3e-3) < found <= known * (1.0 + 1e-6), (epsilon, found / known - 1.0)
        assert found > below.delta(epsilon).lower


def test_what_one_pass_does_not_tell_is_left_out():
    pair = RecordPair(Core(Noise("laplace", 1.0), 5.0), Noise("laplace", 1.0)).blanket
    few = OneBudgetProfile(Upper(1.0), replace(pair, gamma=0.6), 30)
    few.prepare([0.1, 0.2])
    below = OneBudgetProfile(Upper(1.0), replace(pair, gamma=0.6), 40_000, above=False)
    below.prepare([0.1, 0.2])
    discrete = RandomizedResponse(3).pair_blankets(1.0)[0]
    exact = OneBudgetProfile(Upper(1.0), discrete, 40_000)
    exact.prepare([0.1, 0.2])
    assert not any(profile.knows(epsilon) for profile in (few, below, exact) for epsilon in (0.1, 0.2))
