"""Expectations of positive parts against exact sums, and the bounds that tell which points of a line are needed."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shuffledp.numerics.floats import EPS
from shuffledp.numerics.sums import (
    FALL,
    IndependentSum,
    first_order,
    law_of_sum,
    positive_part,
    positive_parts,
    positive_parts_above,
)

SEEDS = st.integers(0, 2**32 - 1)


def random_sum(seed: int, groups: int, copies: float) -> IndependentSum:
    """Laws with a mean below 0, some of whose mass may rest at 0, some of them on a lattice."""
    random = np.random.default_rng(seed)
    atoms = int(random.integers(2, 6))
    values = random.normal(size=(1, atoms)) + 0.2 * random.normal(size=(groups, atoms))
    if random.random() < 0.3:
        values = np.round(2.0 * values) / 2.0
    values[:, 0] = values[:, 1:].max() + 0.5  # something must vary
    probabilities = 0.02 / atoms + 0.98 * random.dirichlet(np.full(atoms, random.choice([0.5, 5.0])), groups)
    probabilities *= random.choice([1.0, 0.5, 0.02])
    spread = np.sqrt((probabilities * values**2).sum(axis=1))
    values -= ((probabilities * values).sum(axis=1) / probabilities.sum(axis=1))[:, None]
    values -= (random.uniform(0.5, 4.0) * spread / math.sqrt(copies) / probabilities.sum(axis=1))[:, None]
    means = (probabilities * values).sum(axis=1)
    return IndependentSum(np.full(groups, copies), values, probabilities, means, 16.0)


def two_point_value(n: int, up: float, down: float, p: float) -> mpmath.mpf:
    """E (up X - down (n - X))_+, X ~ Bin(n, p), to 50 digits."""
    with mpmath.workdps(50):
        total = mpmath.mpf(0)
        for k in range(n + 1):
            value = mpmath.mpf(up) * k - mpmath.mpf(down) * (n - k)
            if value > 0:
                total += value * mpmath.binomial(n, k) * mpmath.mpf(p) ** k * (1 - mpmath.mpf(p)) ** (n - k)
        return total


@pytest.mark.costly("1500-1.0-0.75-0.375", "3000-3.0-1.0-0.125")
@pytest.mark.parametrize(
    ("n", "up", "down", "p"),
    [
        (60, 1.0, 1.0, 0.25),
        (400, 1.25, 1.0, 0.375),
        (400, 0.75, 0.25, 0.1875),
        (1500, 1.0, 0.75, 0.375),
        (3000, 3.0, 1.0, 0.125),
    ],
)
def test_encloses_sums_over_a_lattice(n, up, down, p):
    """A lattice law's transform comes back to 1 along the line: no point may be left out there."""
    law = IndependentSum(
        np.ones(1), np.array([[up, -down]]), np.array([[p, 1 - p]]), np.array([up * p - down * (1 - p)])
    )
    exact = two_point_value(n, up, down, p)
    found = positive_parts(law, np.array([float(n)]), 0.03)
    assert found.lower[0] <= exact <= found.upper[0]
    assert found.upper[0] <= float(exact) * (1 + 2e-2)


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, copies=st.sampled_from([3.0, 40.0, 1e3, 1e6, 1e9]), groups=st.integers(1, 3))
def test_points_left_out_are_negligible(seed, copies, groups):
    total = random_sum(seed, groups, copies)
    theta = np.random.default_rng(seed).uniform(0.5, 5.0) / math.sqrt(total.tilted(0.0).variance)
    tilted = total.tilted(theta)
    spread = math.sqrt(tilted.variance)
    step, points, s = 0.4 / spread, 3000, 0.01 / spread
    alive = tilted.alive(step, points, 1.0, s)
    assert (np.diff(alive) > 0).all()
    assert alive[0] == 0
    assert alive[-1] < points
    left = np.setdiff1d(np.arange(points), alive)
    y = step * left
    chi = (tilted.weights * np.exp(1j * (y[:, None, None] * tilted.values))).sum(axis=2) + tilted.rest
    with np.errstate(divide="ignore"):
        fall = -np.log(np.abs(chi)) @ total.counts + 0.5 * (s * y) ** 2
    assert (fall >= FALL - 1.0).all()


def test_few_points_are_needed_for_many_copies():
    """Else a sum would be no faster than its smoothing alone makes it."""
    total = random_sum(1, 1, 1e6)
    tilted = total.tilted(4.0 / math.sqrt(total.tilted(0.0).variance))
    assert tilted.alive(0.5 / math.sqrt(tilted.variance), 2000, 1.0, 0.0).size < 40


def test_points_are_all_needed_where_rounding_is_unknown():
    total = random_sum(2, 1, 1e6)
    vague = IndependentSum(total.counts, total.values, total.probabilities, total.means, 1e9)
    assert vague.tilted(0.01).alive(1.0, 500, 1.0, 1.0).size == 500


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, copies=st.sampled_from([3.0, 1e3, 1e9]))
@example(seed=196891239, copies=3.0)  # a law wholly below 0: its mgf, 6e-17, is smaller than the rounding of 1
def test_real_mgf_is_bounded_from_above(seed, copies):
    total = random_sum(seed, 1, copies)
    theta = np.array([0.1, 1.0, 5.0]) / math.sqrt(total.tilted(0.0).variance)
    found = total.log_mgf_above(theta)[:, 0]
    with mpmath.workdps(40):
        probabilities = [mpmath.mpf(p) for p in total.probabilities[0].tolist()]
        mass = max(mpmath.mpf(1), mpmath.fsum(probabilities))  # a law, where roundings add up to more than 1
        pairs = [(p / mass, v) for p, v in zip(probabilities, total.values[0].tolist(), strict=True)]
        rest = 1 - mpmath.fsum(p for p, _ in pairs)
        for t, above in zip(theta.tolist(), found.tolist(), strict=True):
            mgf = rest + mpmath.fsum(p * mpmath.exp(mpmath.mpf(t) * v) for p, v in pairs)
            exact = copies * mpmath.log(mgf)
            # the mgf is summed as 1 + E expm1(theta L): known to some hundred roundings of 1, not to digits of its own
            known = copies * mpmath.log(mgf + mpmath.mpf("1e-13"))
            assert exact <= above <= max(exact + 1e-9 + 1e-5 * abs(exact), known)


@pytest.mark.costly
@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, copies=st.sampled_from([5.0, 60.0, 1e3, 1e6]), groups=st.integers(1, 6))
def test_quick_bounds_are_above(seed, copies, groups):
    total = random_sum(seed, groups, copies)
    above = positive_parts_above(total)
    for g in range(groups):
        one = slice(g, g + 1)
        alone = IndependentSum(total.counts[one], total.values[one], total.probabilities[one], total.means[one], 16.0)
        assert above[g] >= positive_part(alone, 0.02).lower


def test_quick_bounds_are_sharp_for_laws_that_are_alike():
    total = random_sum(7, 5, 1e4)
    close = IndependentSum(
        total.counts,
        total.values[:1] * np.linspace(1.0, 0.97, 5)[:, None],
        total.probabilities[[0] * 5],
        total.means[0] * np.linspace(1.0, 0.97, 5),
        16.0,
    )
    above = positive_parts_above(close)
    for g in range(5):
        one = slice(g, g + 1)
        alone = IndependentSum(close.counts[one], close.values[one], close.probabilities[one], close.means[one], 16.0)
        assert above[g] <= 1.12 * positive_part(alone, 0.02).upper


def test_quick_bounds_say_nothing_out_of_range():
    huge = IndependentSum(
        np.ones(2), np.array([[1e200, -1e200], [1.0, -2.0]]), np.full((2, 2), 0.5), np.array([0.0, -0.5])
    )
    assert (positive_parts_above(huge) == np.inf).all()


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS)
def test_entries_that_share_a_line_agree_with_single_ones(seed):
    total = random_sum(seed, 1, 1.0)
    copies = np.array([150.0, 190.0, 260.0, 299.0, 700.0])
    shared = positive_parts(total, copies, 0.03)
    for index, m in enumerate(copies.tolist()):
        alone = positive_parts(total, np.array([m]), 0.03)
        assert shared.lower[index] <= alone.upper[0]
        assert alone.lower[0] <= shared.upper[index]


@pytest.mark.parametrize("times", [0, 1, 2, 3, 7, 12])
def test_the_law_of_a_sum_is_within_its_doubt(times: int):
    weights = [1, 50, 3_000, 77_777, 123_456, 2_000, 9]
    law = np.array([weight / sum(weights) for weight in weights])
    exact = [Fraction(1)]
    for _ in range(times):
        longer = [Fraction(0)] * (len(exact) + len(weights) - 1)
        for i, one in enumerate(exact):
            for j, weight in enumerate(weights):
                longer[i + j] += one * Fraction(weight, sum(weights))
        exact = longer
    found, doubt = law_of_sum(law, times)
    assert found.size == len(exact)
    assert doubt < 1e-13
    for chance, value in zip(found.tolist(), exact, strict=True):
        assert abs(Fraction(chance) - value) <= Fraction(doubt) * value


@pytest.mark.parametrize("copies", [3.0, 1e3, 1e9])
@pytest.mark.parametrize(("atoms", "heavy"), [(16, False), (96, False), (96, True)])
def test_a_whole_line_agrees_with_fifty_digits(atoms, heavy, copies):
    random = np.random.default_rng(7 * atoms + heavy)
    values = random.normal(size=atoms) * np.exp((2.0 if heavy else 0.3) * random.normal(size=atoms))
    probabilities = 0.9 * random.dirichlet(np.ones(atoms)) / (1.0 + np.abs(values))
    values -= probabilities @ values / probabilities.sum() + 0.01 / math.sqrt(copies)
    law = IndependentSum(
        np.array([copies]), values[None], probabilities[None], np.array([probabilities @ values]), 16.0
    )
    theta = min(3.0 / math.sqrt(copies * float(probabilities @ values**2)), 20.0 / float(np.abs(values).max()))
    places = np.concatenate((np.arange(80), np.arange(200, 400, 7)))
    z = np.asarray(theta + 1j * (0.05 * theta) * places, dtype=np.complex128)
    found, error = law.log_mgf_on_line(z, places)
    near = found.real > found.real[0] - FALL
    assert error[near].max() < 1e-7
    with mpmath.workdps(50):
        pairs = [(mpmath.mpf(v), mpmath.mpf(p)) for v, p in zip(values.tolist(), probabilities.tolist(), strict=True)]
        mean = sum(v * p for v, p in pairs)
        for at in (0, 1, 40, 79, 90, 108):
            point = mpmath.mpc(z[at])
            one = sum(p * (mpmath.exp(point * v) - 1) for v, p in pairs) + 1
            true = mpmath.mpf(copies) * (mpmath.log(one) - point * mean)
            turns = mpmath.nint((true.imag - found[at].imag) / (2 * mpmath.pi))  # a logarithm, up to whole turns
            gap = abs(true - 2j * mpmath.pi * turns - mpmath.mpc(found[at]))
            assert float(gap) <= error[at]


@pytest.mark.parametrize("copies", [1.0, 7.0])
@pytest.mark.parametrize("depth", [20.0, 25.0])
def test_a_small_mgf_on_a_line_keeps_its_digits(monkeypatch, depth, copies):
    """Far below 1 the mgf is 1 less nearly 1: 1 plus its second-order part has lost the digits."""
    random = np.random.default_rng(5)
    values = -np.abs(random.normal(size=96)) - 0.5
    values[:3] = 0.01, 0.02, 0.03
    probabilities = random.dirichlet(np.ones(96)) * 0.999
    probabilities[:3] = math.exp(-depth) * np.array([0.3, 0.2, 0.1])
    probabilities[3] += 1.0 - probabilities.sum()
    theta = 60.0
    law = IndependentSum(np.array([copies]), values[None], probabilities[None], np.array([probabilities @ values]), 4.0)
    monkeypatch.setattr(IndependentSum, "log_mgf_centered", lambda self, z: pytest.fail(f"{z.size} points one by one"))
    places = np.arange(500)
    z = np.asarray(theta + 1j * (0.02 * theta) * places, dtype=np.complex128)
    found, error = law.log_mgf_on_line(z, places)
    # the remaining probability is known to 4 EPS, of which the mgf is a multiple
    assert error[0] < 1e-13 * copies * math.exp(depth)
    with mpmath.workdps(50):
        pairs = [(mpmath.mpf(v), mpmath.mpf(p)) for v, p in zip(values.tolist(), probabilities.tolist(), strict=True)]
        mean = mpmath.mpf(law.means[0])
        rest = 1 - sum(p for _, p in pairs)
        for at in (0, 1, 17, 250, 499):
            point = mpmath.mpc(z[at])
            one = sum(p * mpmath.exp(point * v) for v, p in pairs) + rest
            true = mpmath.mpf(copies) * (mpmath.log(one) - point * mean)
            turns = mpmath.nint((true.imag - found[at].imag) / (2 * mpmath.pi))
            assert float(abs(true - 2j * mpmath.pi * turns - mpmath.mpc(found[at]))) <= error[at]


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e3])
def test_a_sum_of_positive_terms_is_within_its_error(scale):
    """The bound is tight enough to notice a relative error of 1e-11 where the sum is e^-25."""
    random = np.random.default_rng(7)
    values = scale * np.concatenate((-np.abs(random.normal(size=93)) - 0.5, [0.01, 0.02, 0.03]))
    probabilities = np.concatenate((random.dirichlet(np.ones(93)), math.exp(-25.0) * np.array([0.3, 0.2, 0.1])))
    probabilities[0] -= probabilities.sum() - 1.0
    places = np.unique(np.concatenate(([0], random.integers(0, 900, size=200))))
    z = np.asarray((60.0 + 1j * 1.2 * places) / scale, dtype=np.complex128)
    found, error = first_order(values, probabilities, z, places, 4.0)
    with mpmath.workdps(50):
        pairs = [(mpmath.mpf(v), mpmath.mpf(p)) for v, p in zip(values.tolist(), probabilities.tolist(), strict=True)]
        for at in (0, 1, 40, 100, places.size - 1):
            true = sum(p * mpmath.exp(mpmath.mpc(z[at]) * v) for v, p in pairs)
            assert float(abs(true - mpmath.mpc(found[at]))) <= error[at] * EPS
    assert error[0] * EPS < 1e-11 * abs(found[0])
    assert abs(found[0]) < math.exp(-20.0)
