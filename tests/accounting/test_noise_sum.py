"""The sum of noisy reports, against high-precision laws of the noise that use no transform."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import binomial, erfc, exp, fprod, gamma, gammainc, inf, mp, mpf, sqrt

from shuffledp import Budgets, OutOfRegime, RandomizedResponse, Setting
from shuffledp.accounting.theorems.sum import GaussianSumProfile, SumBound, SumWitness
from shuffledp.numerics.laplace_sums import MAX_GROUPS, LaplaceSum
from shuffledp.randomizers.noise import Gaussian, Laplace

LAPLACE, GAUSSIAN = Laplace(0, 1), Gaussian(-3, 5)


def setting(budgets, law=LAPLACE, seen="sum", **situation):
    return Setting(budgets, law, seen, "replace-one", **situation)


def best_threshold(cdf, density, low, eps, shift):
    """Max_t F(t) - e^eps F(t - shift), F and f given exactly, by bisection on the density ratio."""
    high = mpf(shift) / 2
    for _ in range(170):
        middle = (low + high) / 2
        rising = density(middle) > exp(mpf(eps)) * density(middle - shift)
        low, high = (middle, high) if rising else (low, middle)
    return cdf(low) - exp(mpf(eps)) * cdf(low - shift)


def different_scales(scales, eps, shift=1):
    """Partial fractions: for different scales the law is a signed mixture of the Laplace laws themselves."""
    b = [mpf(s) for s in scales]
    weights = [fprod(x**2 / (x**2 - y**2) for j, y in enumerate(b) if j != i) for i, x in enumerate(b)]

    def left(t):
        return sum(w * exp(t / x) for w, x in zip(weights, b, strict=True)) / 2

    def density(t):
        return sum(w * exp(-abs(t) / x) / x for w, x in zip(weights, b, strict=True)) / 2

    return best_threshold(lambda t: left(t) if t < 0 else 1 - left(-t), density, -30000 * max(b), eps, shift)


def equal_scales(n, scale, eps, shift=1):
    """|N| for n equal scales is a mixture of Gamma laws: the sum is a difference of two Gamma(n) variables."""
    b = mpf(scale)
    weights = [binomial(n - 1 + k, k) * mpf(2) ** -(n + k) for k in range(n)]

    def left(t):
        return sum(w * gammainc(n - k, -t / b, inf, regularized=True) for k, w in enumerate(weights))

    def density(t):
        x = abs(t) / b
        return sum(w * x ** (n - k - 1) * exp(-x) / gamma(n - k) for k, w in enumerate(weights)) / b

    return best_threshold(lambda t: left(t) if t < 0 else 1 - left(-t), density, -4000 * n * b, eps, shift)


def encloses(found, truth, relative):
    assert found.lower <= truth <= found.upper
    assert found.upper - found.lower <= relative * found.upper


@pytest.mark.costly("scales8-0.0999-1e-05")
@pytest.mark.parametrize(
    ("scales", "eps", "relative"),
    [
        ((1, 0.5), 0.0, 1e-8),
        ((1, 0.5), 0.9, 1e-7),
        ((1, 0.5), 0.999, 1e-5),
        ((2, 0.01), 0.2, 1e-6),
        ((1, 0.9, 0.8, 0.7, 0.6), 0.9, 1e-6),
        ((100, 0.5, 0.4), 0.005, 1e-5),
        ((0.02, 0.01), 45.0, 1e-7),
        ((10, 9, 8, 7.5, 7, 6.5, 6, 5, 4, 3, 2, 1), 0.05, 1e-7),
        ((10, 9, 8, 7.5, 7, 6.5, 6, 5, 4, 3, 2, 1), 0.0999, 1e-5),
    ],
)
def test_different_scales(scales, eps, relative):
    with mp.workdps(60):
        truth = different_scales(scales, eps)
        found = LaplaceSum.of(np.array(scales, dtype=float), np.ones(len(scales))).shift_divergence(eps, 1.0)
        encloses(found, truth, relative)


@pytest.mark.costly("20-1.0-0.9-1e-05", "30-3.0-0.318-0.0001")
@pytest.mark.parametrize(
    ("n", "scale", "eps", "relative"),
    [(2, 2.0, 0.45, 1e-6), (5, 0.5, 1.2, 1e-7), (10, 1.0, 0.0, 1e-8), (20, 1.0, 0.9, 1e-5), (30, 3.0, 0.318, 1e-4)],
)
def test_equal_scales_down_to_the_far_tail(n, scale, eps, relative):
    with mp.workdps(40):
        truth = equal_scales(n, scale, eps)
        encloses(LaplaceSum.of(np.array([scale]), np.array([n])).shift_divergence(eps, 1.0), truth, relative)


@pytest.mark.costly
@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.floats(0.05, 20.0), min_size=2, max_size=6, unique_by=lambda x: round(math.log(x), 1)),
    st.floats(0.0, 0.98),
    st.sampled_from([1.0, 3.0]),
)
def test_random_scales_and_shifts(scales, share, shift):
    eps = share * shift / max(scales)
    if eps > 200.0:
        return
    with mp.workdps(50):
        truth = different_scales(scales, eps, shift)
        found = LaplaceSum.of(np.array(scales), np.ones(len(scales))).shift_divergence(eps, shift)
        encloses(found, truth, 1e-3)


def test_one_user_is_her_own_laplace_noise():
    found = SumBound().profile(setting(Budgets([1.5], [1])), 1.5)
    for eps in (0.0, 0.3, 1.4999):
        with mp.workdps(30):
            encloses(found.delta(eps), -mp.expm1((mpf(eps) - mpf(1.5)) / 2), 1e-9)
    assert found.delta(1.5 + 1e-12).upper == 0.0


def test_depth_and_size_are_no_obstacle():
    # at 1e9 users the Laplace sum is Gaussian up to 1e-3 even at 35 deviations, 1e-275
    mu = 1.0 / math.sqrt(2e9)
    noise = LaplaceSum.of(np.array([1.0]), np.array([1e9]))
    for z in (0.0, 1.0, 10.0, 35.0):
        found = noise.shift_divergence(z * mu, 1.0)
        limit = GaussianSumProfile(mu).delta(z * mu)
        assert found.upper - found.lower <= 1e-7 * found.upper
        assert found.upper == pytest.approx(limit.upper, rel=2e-3)
        assert found.lower > 0.0


@pytest.mark.parametrize(
    ("n", "sigma", "eps"), [(1, 1.0, 0.5), (1000, 2.0, 0.01), (10**9, 3.0, 1e-4), (10**6, 1.0, 0.033)]
)
def test_gaussian_noise(n, sigma, eps):
    law = Gaussian(0, 1, sigma=sigma)
    found = SumBound().profile(setting(Budgets([5.0], [n], [0.9]), law), 5.0).delta(eps)
    with mp.workdps(320):
        mu = 1 / (mpf(sigma) * sqrt(n))
        truth = (erfc((eps / mu - mu / 2) / sqrt(2)) - exp(mpf(eps)) * erfc((eps / mu + mu / 2) / sqrt(2))) / 2
        encloses(found, truth, 1e-9)
        if n == 10**6:
            assert 1e-250 < truth < 1e-200


def test_many_scales_are_grouped_within_the_enclosure():
    scales = 1.0 / np.random.default_rng(5).uniform(0.05, 1.0, 3000)
    square = np.sort((scales / scales.max()) ** 2)
    whole = LaplaceSum(square, np.ones(3000), square, square, np.zeros(3000), float(scales.max()))
    grouped = LaplaceSum.of(scales, np.ones(3000))
    assert grouped.squares.size <= MAX_GROUPS < whole.squares.size
    for eps in (0.0, 0.005, 0.02):
        exact, found = whole.shift_divergence(eps, 1.0), grouped.shift_divergence(eps, 1.0)
        assert found.lower <= exact.lower
        assert exact.upper <= found.upper
        assert found.upper - found.lower <= 0.01 * found.upper


def test_upper_bound_and_witness_meet_and_every_level_has_the_same():
    several = setting(Budgets([0.1, 1.0], [5000, 5000]))
    everyone = np.arange(2)
    upper, lower = (
        SumBound().level_epsilons(several, 1e-6, everyone),
        SumWitness().level_epsilons(several, 1e-6, everyone),
    )
    assert upper.upper[0] == upper.upper[1]
    assert np.all(lower.lower <= upper.upper)
    assert np.all(upper.upper <= lower.lower * (1 + 1e-5))
    assert SumBound().profile(several, 0.1).delta(0.001) == SumBound().profile(several, 1.0).delta(0.001)
    # far below what each level's users could promise among themselves without the others
    assert upper.upper[0] < 0.1 * SumBound().profile(setting(Budgets([1.0], [5000])), 1.0).epsilon(1e-6).upper


def test_one_more_noise_never_hurts():
    fewer, more = (SumBound().profile(setting(Budgets([0.5, 2.0], [1, n])), 2.0).delta(0.1) for n in (9, 10))
    assert more.lower <= fewer.upper
    assert more.upper < fewer.lower


def test_infinite_noise_hides_everything():
    silent = SumBound().profile(setting(Budgets([0.0, 2.0], [1, 5])), 2.0)
    assert silent.delta(0.0).upper == 0.0
    assert silent.epsilon(1e-9).upper == 0.0


def test_exposed_users_are_those_with_the_widest_noise():
    budgets = Budgets([0.1, 1.0], [3, 10])
    exposed = setting(budgets, colluding=4)
    assert SumBound().profile(exposed, 1.0).delta(0.2) == SumBound().profile(setting(Budgets([1.0], [9])), 1.0).delta(
        0.2
    )
    kept = SumBound().profile(exposed, 0.1).delta(0.05)
    assert kept == SumBound().profile(setting(Budgets([0.1, 1.0], [1, 8])), 0.1).delta(0.05)
    # Gaussian: a smaller epsilon0 need not mean more noise
    mixed = setting(Budgets([0.5, 1.0], [3, 3], [1e-2, 1e-9]), GAUSSIAN, colluding=3)
    wide = float(GAUSSIAN.scale(0.5, 1e-2))
    assert wide < float(GAUSSIAN.scale(1.0, 1e-9))
    left = SumBound().profile(mixed, 0.5)
    assert isinstance(left, GaussianSumProfile)
    assert left.mu == pytest.approx(1.0 / (wide * math.sqrt(3)), rel=1e-12)


def test_many_exposed_levels_are_on_the_safe_side():
    epsilons = np.linspace(0.1, 1.0, 40)
    question = setting(Budgets(epsilons, [3] * 40), colluding=7)
    levels = np.array([0, 1, 2, 3, 39])
    upper, lower = (
        SumBound().level_epsilons(question, 1e-4, levels),
        SumWitness().level_epsilons(question, 1e-4, levels),
    )
    exact = [SumBound().profile(question, float(epsilons[level])).epsilon(1e-4) for level in levels]
    for place, truth in enumerate(exact):
        assert truth.lower <= upper.upper[place]
        assert lower.lower[place] <= truth.upper
    assert upper.upper[-1] == pytest.approx(exact[-1].upper, rel=1e-9)


@pytest.mark.costly
def test_groups_repeated_reports_and_rounds():
    budgets = Budgets([0.5], [200], [1e-5])
    one = SumBound().profile(setting(budgets, GAUSSIAN), 0.5)
    assert isinstance(one, GaussianSumProfile)
    more = SumBound().profile(setting(budgets, GAUSSIAN, group_size=3, rounds=4), 0.5)
    assert isinstance(more, GaussianSumProfile)
    assert more.mu == pytest.approx(one.mu * 6.0, rel=1e-14)
    repeated = SumBound().profile(setting(budgets, GAUSSIAN, reports_per_user=4), 0.5)
    assert isinstance(repeated, GaussianSumProfile)
    assert repeated.mu == pytest.approx(one.mu * 2.0, rel=1e-14)
    laplace = SumBound().profile(setting(Budgets([1.0], [50]), group_size=2), 1.0)
    assert laplace.vanishes_at == pytest.approx(2.0)
    with mp.workdps(40):
        encloses(laplace.delta(0.3), equal_scales(50, 1.0, 0.3, 2), 1e-6)


@pytest.mark.parametrize("bound", [SumBound(), SumWitness()], ids=lambda bound: bound.key)
def test_refusals(bound):
    budgets = Budgets([1.0], [10])
    for seen in ("reports", "levels", "users"):
        with pytest.raises(OutOfRegime, match=f"seen = {seen}"):
            bound.profile(setting(budgets, seen=seen), 1.0)
    for law in ("any", RandomizedResponse(2)):
        with pytest.raises(OutOfRegime, match="additive noise"):
            bound.profile(setting(budgets, law), 1.0)
