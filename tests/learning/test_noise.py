"""Noise on the grid: what is counted on is what is drawn."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from shuffledp.learning.messages import SMALLEST_DRAWN, UNEVENNESS, Clipping, mechanism_of
from shuffledp.learning.rounds import plan_messages
from shuffledp.numerics.randomness import simulation_random
from shuffledp.numerics.tails import normal_divergence


def test_a_lattice_of_scale_three_is_even():
    """The sum of exp(-(k - z)^2/18) over whole k, for several z, at 120 digits."""
    with mpmath.workdps(120):
        whole = mpmath.sqrt(18 * mpmath.pi)
        for z in ("0", "0.25", "0.5", "0.713"):
            total = mpmath.fsum(mpmath.exp(-((k - mpmath.mpf(z)) ** 2) / 18) for k in range(-75, 77))
            assert abs(total / whole - 1) < UNEVENNESS / 4


def test_sums_of_discrete_normal_noise_are_discrete_normal():
    """Convolution of scales 4.5 and 5 by direct summation; the lattice left over has scale 3.34."""
    with mpmath.workdps(120):
        a, b = mpmath.mpf("4.5"), mpmath.mpf(5)
        square, shown = a**2 + b**2, []
        for k in (0, 1, 7, 20):
            total = mpmath.fsum(mpmath.exp(-(j**2) / (2 * a**2) - (k - j) ** 2 / (2 * b**2)) for j in range(-140, 141))
            shown.append(total * mpmath.exp(k**2 / (2 * square)))
        assert max(shown) / min(shown) - 1 < UNEVENNESS
    assert SMALLEST_DRAWN**2 / np.sqrt(2 * SMALLEST_DRAWN**2) > 3.0


@pytest.mark.parametrize(("epsilon0", "delta0"), [(0.01, 1e-5), (0.5, 1e-5), (8.0, 1e-10), (0.5, 1e-12)])
def test_gaussian_noise_just_serves_its_budget(epsilon0, delta0):
    multiple = float(mechanism_of("gaussian").multiples(epsilon0, delta0))
    assert normal_divergence(epsilon0, 1.0 / multiple).upper <= delta0 * (1 + 1e-9)
    assert normal_divergence(epsilon0, 1.0 / multiple * 1.0001).lower > delta0


def test_what_is_counted_is_less_than_what_is_drawn():
    gaussian, laplace = mechanism_of("gaussian"), mechanism_of("laplace")
    moved = np.array([10.0, 1e4, 1e6])
    drawn = gaussian.drawn_scale(moved, np.array([1.0, 7.0, 0.1]))
    counted = gaussian.counted_scale(drawn)
    assert (counted >= moved * np.array([1.0, 7.0, 0.1])).all()
    assert np.allclose(counted**2 + 9.0, drawn**2, rtol=1e-12)
    assert (laplace.drawn_scale(moved, np.ones(3)) > moved).all()


@pytest.mark.parametrize("name", ["gaussian", "laplace"])
def test_draws_have_the_scale_asked_for(name):
    """20,000 draws of variance v: the sample variance is within 8 % with chance above 1 - 1e-6 (Laplace kurtosis 6)."""
    draws = mechanism_of(name).draw(1000.0, 20_000, simulation_random(5)).astype(float)
    variance = 1e6 if name == "gaussian" else 2e6
    assert draws.var() == pytest.approx(variance, rel=0.08)
    assert abs(draws.mean()) < 5.0 * np.sqrt(variance / 20_000)


@pytest.mark.parametrize("name", ["gaussian", "laplace"])
def test_the_plan_counts_the_grid(name):
    """Sensitivity in grid steps covers the real one and half a step per number in either world."""
    mechanism = mechanism_of(name)
    clipping = Clipping("example", "examples", 0.2, mechanism.order)
    numbers, sizes = 400, np.array([100, 600])
    plan = plan_messages(
        np.array([0.5, 2.0]),
        np.array([1e-5, 1e-5]),
        sizes,
        clipping=clipping,
        mechanism=mechanism,
        numbers=numbers,
        inverse_variance=False,
        summed=False,
    )
    real = clipping.sensitivity(sizes, numbers) / plan.grid
    spread = np.sqrt(numbers) if name == "gaussian" else numbers
    for client in range(2):
        tier = plan.tiers[plan.tier_of[client]]
        assert real[client] + spread <= tier.sensitivity <= real[client] * (1 + 2.0**-11)
        assert tier.scale <= plan.scales[client]
        asked = float(mechanism.multiples(tier.epsilon0, tier.delta0))
        assert tier.ratio * asked == pytest.approx(1.0, rel=1e-12)
        assert tier.ratio * asked <= 1.0 + 1e-14
