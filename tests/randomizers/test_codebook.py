from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from shuffledp.numerics.randomness import simulation_random
from shuffledp.randomizers.sketch import SignedSketch
from shuffledp.randomizers.vector import DirectionCodebook, cap_slope, mix, normals, seeded_words, topmost_slope
from tests.randomizers.errors import predicted_error

CHANCE = 1e-7  # false alarm of each statistical test; the seeds are fixed, so each has been seen to pass
SIGMAS = float(-stats.norm.ppf(CHANCE / 2))

FROZEN_DIRECT = [[-0.574248, -0.05959, -0.81651], [0.44874, -0.893355, 0.023439], [0.733561, -0.672291, 0.099561]]
FROZEN_FRAMED = [
    [-0.168241, 0.602481, 0.435827, -0.457253, 0.457916],
    [0.055961, -0.770549, -0.131516, 0.473309, 0.40225],
    [0.450799, 0.089059, 0.009722, -0.85883, -0.226196],
]
FROZEN_SKETCH = [[0, 0, 0, 0, 0, -1, 0, 0], [0, 0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, -1, 0, 0, 0]]


def priv_unit_2(d, epsilon0):
    """Error of PrivUnit2 at its best cap, from the formula of Bhowmick et al. 2018 (Algorithm 1, Lemma 4.1)."""
    alpha, best = (d - 1) / 2, math.inf
    for cap in np.linspace(0.0, 1.0, 4000, endpoint=False):
        tau = (1 + cap) / 2
        below = special.betainc(alpha, alpha, tau)  # chance of less than the cap
        above = special.betaincc(alpha, alpha, tau)
        if above < 1e-12:
            break
        p = above * math.exp(epsilon0) / (above * math.exp(epsilon0) + below)
        log_scale = (
            alpha * math.log1p(-(cap**2)) - (d - 2) * math.log(2) - math.log(d - 1) - special.betaln(alpha, alpha)
        )
        m = math.exp(log_scale) * (p / above - (1 - p) / below)
        best = min(best, m**-2 - 1)
    return best


@pytest.mark.parametrize("d", [10, 100, 1000])
@pytest.mark.parametrize("epsilon0", [0.5, 1.0, 2.0, 4.0, 6.0, 8.0])
def test_a_few_percent_from_priv_unit_2(d, epsilon0):
    family = DirectionCodebook.design(d, epsilon0)
    assert 0.999 < predicted_error(family, epsilon0) / priv_unit_2(d, epsilon0) < 1.031


def test_hemisphere_is_the_limit_of_small_budgets():
    """Duchi, Jordan, Wainwright 2018: for one direction the error is (1/slope)^2 - 1 with slope E|T| tanh(eps/2)."""
    family = DirectionCodebook(100, 2, 1)
    mean = math.exp(math.lgamma(50.0) - math.lgamma(50.5)) / math.sqrt(math.pi)
    assert float(family.report_slope(0.1)) == pytest.approx(mean * math.tanh(0.05), rel=1e-9)
    assert predicted_error(DirectionCodebook.design(100, 0.01, slack=0.1), 0.01) <= 1.1 * priv_unit_2(100, 0.01)


@pytest.mark.parametrize(("bases", "close"), [(1, 1), (4, 4), (6, 2), (50, 3), (2000, 1), (2000, 700)])
def test_order_statistics_on_the_sphere_of_three_dimensions(bases, close):
    """There |T| is uniform on [0, 1] (Archimedes), and the mean of the largest `close` of B is known."""
    assert topmost_slope(3, 3, bases, close) == pytest.approx(1 - (close + 1) / (2 * (bases + 1)), rel=1e-9)


@pytest.mark.parametrize("d", [1, 2, 5, 1000, 10**6])
def test_one_direction_in_any_dimension(d):
    mean = math.exp(special.gammaln(d / 2) - special.gammaln((d + 1) / 2)) / math.sqrt(math.pi)
    assert topmost_slope(d, d, 1, 1) == pytest.approx(mean, rel=1e-9)
    assert topmost_slope(d, d, 7, 7) == pytest.approx(mean, rel=1e-9)


@pytest.mark.costly("200-64-100-4")
@pytest.mark.parametrize(("d", "inner", "bases", "close"), [(4, 2, 3, 2), (30, 5, 40, 3), (200, 64, 100, 4)])
def test_directions_in_a_random_subspace(d, inner, bases, close):
    rng, n = np.random.default_rng(1), 1500
    a = rng.standard_normal((n, bases, inner))
    a /= np.linalg.norm(a, axis=2, keepdims=True)
    frame = rng.standard_normal((n, inner, d))
    near = np.argsort(-np.abs(np.einsum("nbi,ni->nb", a, frame[:, :, 0])), axis=1)[:, :close]
    directions = np.matmul(np.take_along_axis(a, near[:, :, None], axis=1), frame)
    along = np.abs(directions[:, :, 0]) / np.linalg.norm(directions, axis=2)
    found = along.mean(axis=1)
    assert abs(found.mean() - topmost_slope(d, inner, bases, close)) < SIGMAS * found.std() / math.sqrt(n)


def test_cap_slope_is_the_formula_of_priv_unit_2():
    for d, epsilon0 in [(2, 1.0), (10, 4.0), (1000, 8.0)]:
        slope, share = cap_slope(d, np.array([epsilon0]), np.array([5.0]))
        assert slope**-2 - 1 == pytest.approx(priv_unit_2(d, epsilon0), rel=1e-4)
        assert 0 < share <= 0.5


def test_mixer_is_frozen():
    """The first outputs of SplitMix64 from seed 0 and seed 1234567 (Vigna's reference values)."""
    golden = 0x9E3779B97F4A7C15
    states = np.array([golden, 2 * golden % 2**64, (1234567 + golden) % 2**64], dtype=np.uint64)
    assert mix(states).tolist() == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 6457827717110365317]
    words = seeded_words(np.array([0, 7], dtype=np.uint64), np.array([0, 9], dtype=np.uint64))
    keys = [int(mix(np.array([seed + golden], dtype=np.uint64))[0]) for seed in (0, 7)]
    places = [[(key + golden * (place + 1)) % 2**64 for place in (0, 9)] for key in keys]
    assert words.tolist() == mix(np.array(places, dtype=np.uint64)).tolist()


def test_a_codebook_is_frozen():
    """Reports of one version are read by another: these vectors may not change."""
    reports = np.array([0, 2**20 + 3, 2**60 + 5], dtype=np.int64)
    direct = DirectionCodebook(3, 8, 2).values(reports)
    framed = DirectionCodebook(5, 8, 2, inner=2).values(reports)
    assert direct.tolist() == [pytest.approx(row, abs=1e-5) for row in FROZEN_DIRECT]
    assert framed.tolist() == [pytest.approx(row, abs=1e-5) for row in FROZEN_FRAMED]
    assert SignedSketch(8, 4).values(reports).tolist() == FROZEN_SKETCH


def test_normals_are_normal():
    words = simulation_random(3).words(100_000).reshape(100, 1000)
    drawn = normals(words, 1999)
    assert drawn.shape == (100, 1999)
    assert np.abs(drawn).max() < 6.8
    assert stats.kstest(drawn.ravel(), "norm").pvalue > CHANCE
    assert abs(np.mean(drawn[:, :999] * drawn[:, 1000:])) < SIGMAS / math.sqrt(99_900)


@pytest.mark.parametrize("low", [2**32 - 1, 2**32 - 128, 2**32 - 129, 0])
def test_a_direction_is_never_zero(low):
    """In two dimensions the words from 2^32 - 128 on gave the zero vector, and its direction was not a number."""
    words = np.array([[low | (7 << 32)]], dtype=np.uint64)
    drawn = normals(words, 2)
    assert np.isfinite(drawn).all()
    assert float(np.sum(drawn * drawn)) > 0.0
