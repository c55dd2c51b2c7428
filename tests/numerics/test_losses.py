"""Hockey-stick sums of losses against sums over all outcomes, in 40 digits."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import binomial, exp, log, mp, mpf

from shuffledp.numerics.losses import SMALLEST, LossLaw, LossSum, log_exp_gap, log_sum, needed_points

mp.dps = 40


def two_points(epsilon: float) -> LossLaw:
    """Randomized response's loss."""
    return LossLaw(np.array([epsilon, -epsilon]), -np.log1p(np.exp(np.array([-epsilon, epsilon]))), 0.0)


def two_points_sum(law: LossLaw, rounds: int, epsilon: float) -> mpf:
    """(H) of so many copies of a law with two atoms, by the binomial theorem."""
    (up, down), (p, q) = law.losses, [exp(mpf(float(x))) for x in law.log_masses]
    total = mpf(0)
    for k in range(rounds + 1):
        loss = k * mpf(float(up)) + (rounds - k) * mpf(float(down))
        if loss > epsilon:
            total += binomial(rounds, k) * p**k * q ** (rounds - k) * (1 - exp(mpf(epsilon) - loss))
    return total


def enumerated(laws: Sequence[LossLaw], counts: Sequence[int], epsilon: float) -> mpf:
    """(H) over every combination of atoms."""
    rounds = [law for law, count in zip(laws, counts, strict=True) for _ in range(count)]
    finite = mpf(1)
    for law in rounds:
        finite *= 1 - mpf(law.infinite)
    total = 1 - finite
    for atoms in itertools.product(*(range(law.losses.size) for law in rounds)):
        loss = mp.fsum(mpf(float(law.losses[k])) for law, k in zip(rounds, atoms, strict=True))
        if loss > epsilon:
            mass = exp(mp.fsum(mpf(float(law.log_masses[k])) for law, k in zip(rounds, atoms, strict=True)))
            total += mass * (1 - exp(mpf(epsilon) - loss))
    return total


def random_law(rng: np.random.Generator, atoms: int, infinite: float = 0.0) -> LossLaw:
    masses = rng.dirichlet(np.full(atoms, 0.5)) * (1.0 - infinite) + 1e-12
    return LossLaw(rng.normal(0.3, 1.0, atoms), np.log(masses), infinite)


@pytest.mark.costly("0.03-0.001-10000", "0.51-0.001-10000")
@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("epsilon", "rounds"), [(1.0, 2), (0.1, 16), (0.01, 1000), (0.001, 10_000), (2.0, 20), (8.0, 7), (1e-6, 100)]
)
@pytest.mark.parametrize("share", [0.0, 0.03, 0.07, 0.21, 0.51, 0.93])
def test_two_points_by_the_binomial_theorem(epsilon, rounds, share):
    law = two_points(epsilon)
    found = LossSum((law,), (rounds,)).divergence(share * epsilon * rounds)
    truth = two_points_sum(law, rounds, share * epsilon * rounds)
    assert found.lower <= truth <= found.upper
    if truth > 1e-290:
        assert found.width <= 0.08 * truth, (found, float(truth))
    else:
        assert found.upper <= 1.01 * SMALLEST


def test_depth_keeps_its_relative_width():
    law, rounds = two_points(0.01), 1000
    total = LossSum((law,), (rounds,))
    for epsilon in (0.5, 2.0, 5.0, 7.0):
        truth = two_points_sum(law, rounds, epsilon + 0.003)
        found = total.divergence(epsilon + 0.003)
        assert found.lower <= truth <= found.upper
        assert found.width <= 1e-2 * truth
        assert truth > 1e-200


@pytest.mark.costly
@given(seed=st.integers(0, 2**32 - 1), epsilon=st.floats(0.0, 6.0))
@settings(deadline=None, max_examples=25)
def test_different_laws_by_enumeration(seed, epsilon):
    rng = np.random.default_rng(seed)
    laws = (random_law(rng, 3), random_law(rng, 4, 1e-3), random_law(rng, 2))
    counts = (2, 1, 3)
    found = LossSum(laws, counts).divergence(epsilon)
    truth = enumerated(laws, counts, epsilon)
    assert found.lower <= truth <= found.upper
    assert found.width <= 0.03 * truth + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [5, 40])
def test_many_rounds_on_a_lattice_by_convolution(rounds):
    rng = np.random.default_rng(rounds)
    steps = np.array([-40, -7, -2, -1, 0, 1, 3, 4, 11, 60])
    law = LossLaw(steps * 0.0625, np.log(rng.dirichlet(np.geomspace(1.0, 0.05, steps.size))), 0.0)
    masses = [exp(mpf(float(x))) for x in law.log_masses]
    pmf = {0: mpf(1)}
    for _ in range(rounds):
        fresh: dict[int, mpf] = {}
        for at, mass in pmf.items():
            for step, own in zip(steps.tolist(), masses, strict=True):
                fresh[at + step] = fresh.get(at + step, mpf(0)) + mass * own
        pmf = fresh
    total = LossSum((law,), (rounds,))
    for epsilon in (0.0, 0.31, 2.03, 7.7, 0.0625 * 60 * rounds - 1.01):
        truth = mp.fsum(
            m * (1 - exp(mpf(epsilon) - at * mpf(0.0625))) for at, m in pmf.items() if at * 0.0625 > epsilon
        )
        found = total.divergence(epsilon)
        assert found.lower <= truth <= found.upper
        assert found.width <= 0.02 * truth + 1.01 * SMALLEST


def test_infinite_losses_alone():
    law = LossLaw(np.array([-1.0, 0.0]), np.log(np.array([0.3, 0.7 - 1e-7])), 1e-7)
    found = LossSum((law,), (1000,)).divergence(5.0)
    truth = 1 - (1 - mpf(1e-7)) ** 1000
    assert found.lower <= truth <= found.upper
    assert found.width <= 1e-12 * truth
    assert LossSum((LossLaw(np.array([1.0]), np.array([-50.0]), 1.0),), (3,)).divergence(0.5).upper >= 1.0


def test_near_one_the_complement_keeps_the_digits():
    law = two_points(2.0)
    truth = two_points_sum(law, 200, 3.0)
    found = LossSum((law,), (200,)).divergence(3.0)
    assert found.lower <= truth <= found.upper
    assert 1 - truth < 1e-12
    assert found.lower >= 1 - 1e-10


def test_a_tiny_extra_mass_is_felt():
    """A sum is bounded for the masses given: raising one of them must raise the upper end."""
    law = two_points(0.3)
    more = LossLaw(law.losses, law.log_masses + np.array([1e-3, 0.0]), 0.0)
    before, after = LossSum((law,), (50,)).divergence(4.01), LossSum((more,), (50,)).divergence(4.01)
    assert after.lower > before.upper * 1.03  # at least 32 of 50 are up


def test_cost_does_not_grow_with_the_rounds():
    law = two_points(1e-6)
    total = LossSum((law,), (10**12,))
    guess = total.guess(math.log(1e-6))
    gaussian = mp.ncdf(-guess + 0.5) - exp(guess) * mp.ncdf(-guess - 0.5)  # the limit: 1-GDP
    assert float(gaussian) == pytest.approx(1e-6, rel=0.2)
    found = total.divergence(guess)
    assert found.lower <= float(gaussian) * (1 + 1e-5)
    assert found.upper >= float(gaussian) * (1 - 1e-5)
    assert found.width <= 2e-2 * found.upper
    assert sum(line.y.size for line in total._lines) < 50_000


@pytest.mark.parametrize("u", [-1e4, -40.0, -3.0, -0.26, -0.24, -1e-8, 1e-9, 0.1, 0.249, 0.251, 0.99, 1.01, 5.0, 1e4])
def test_log_exp_gap(u):
    truth = log(mp.expm1(mpf(u)) - mpf(u)) if abs(u) > 1e-5 else log(mpf(u) ** 2 / 2 * (1 + mpf(u) / 3))
    assert float(log_exp_gap(np.array([u]))[0]) == pytest.approx(float(truth), rel=1e-14, abs=1e-14)


def test_log_sum_of_nothing():
    assert log_sum(np.array([[-np.inf, -np.inf], [0.0, -np.inf]])).tolist() == [-np.inf, 0.0]
    assert log_exp_gap(np.zeros(1))[0] == -np.inf


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    rounds=st.sampled_from([1, 20, 1000, 10**6, 10**9]),
    lattice=st.booleans(),
    reach=st.floats(0.1, 6.0),
)
def test_points_of_a_line_left_out_are_negligible(seed, rounds, lattice, reach):
    random = np.random.default_rng(seed)
    atoms = int(random.integers(2, 40))
    losses = random.normal(size=atoms) * 0.01
    if lattice:
        losses = 0.005 * np.round(losses / 0.005)
    losses[0] = 0.03
    masses = random.dirichlet(np.full(atoms, random.choice([0.1, 1.0])))
    total = LossSum((LossLaw(losses, np.log(np.maximum(masses, 1e-200)), 0.0),), (rounds,))
    spread = max(float(total.spread(np.zeros(1))[0]), 1e-6)
    theta, step, points = reach / spread, 0.4 / spread, 4000
    s = 0.01 / theta
    kept = needed_points(total, theta, step, points, s)
    assert 1 < kept <= points
    y = step * np.arange(points)
    exponent = total.laws[0].log_masses + theta * losses
    weight = np.exp(exponent - log_sum(exponent))
    chi = np.abs(np.exp(1j * np.outer(y, losses)) @ weight)
    with np.errstate(divide="ignore"):
        fall = -rounds * np.log(chi) + 0.5 * (s * y) ** 2
    assert (fall[kept:] >= 46.0 - 1e-6 - rounds * 1e-12).all()


def test_a_line_of_many_rounds_is_short():
    """Thousands of points of smoothing; the sum itself is done after some dozens."""
    random = np.random.default_rng(0)
    losses, masses = random.normal(size=60) * 0.01, random.dirichlet(np.full(60, 1.0))
    total = LossSum((LossLaw(losses, np.log(masses), 0.0),), (10_000,))
    theta = 4.0 / float(total.spread(np.zeros(1))[0])
    assert needed_points(total, theta, 0.1 * theta, 20_000, 0.01 / theta) < 400
