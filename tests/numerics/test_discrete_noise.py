from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf
from scipy.stats import chisquare

from shuffledp.errors import InvalidInput
from shuffledp.numerics import discrete_noise
from shuffledp.numerics.discrete_noise import LazyUniform, exp_bounds, half_normal_accepts
from shuffledp.numerics.randomness import Randomness, secure_random, simulation_random

FALSE_ALARM = 1e-5
"""Of each statistical test, over fresh seeds; all are seeded."""
SAMPLES = 40_000


class Scripted(Randomness):
    """First the words of a number given to many digits, one word a draw, then seeded ones."""

    private = False

    def __init__(self, words):
        self.left = list(words)
        self.after = simulation_random(3)

    def words(self, n):
        head = [self.left.pop(0) for _ in range(min(n, len(self.left)))]
        return np.concatenate([np.array(head, dtype=np.uint64), self.after.words(n - len(head))])


def digits_of(value: mpf, first: int, rest: int = 4) -> list[int]:
    """Leading bits of a number in (0, 1): the first so many, then words of 64."""
    found = [int(mpmath.floor(value * mpf(2) ** first))]
    left = value * mpf(2) ** first - found[0]
    for _ in range(rest):
        found.append(int(mpmath.floor(left * mpf(2) ** 64)))
        left = left * mpf(2) ** 64 - found[-1]
    return found


@settings(max_examples=60, deadline=None)
@given(st.fractions(0, 200), st.integers(1, 400))
def test_exponential_is_enclosed(gamma, bits):
    lower, upper = exp_bounds(gamma, bits)
    with mpmath.workdps(400):
        exact = mpmath.exp(-mpf(gamma.numerator) / gamma.denominator) * mpf(2) ** bits
        assert lower <= exact <= upper
    assert upper - lower <= 2


@pytest.mark.parametrize("gamma", [Fraction(0), Fraction(10**30), Fraction(1, 10**30), Fraction(10**18 + 1, 3)])
def test_exponential_is_enclosed_far_out(gamma):
    lower, upper = exp_bounds(gamma, 128)
    with mpmath.workdps(100):
        assert lower <= mpmath.exp(-mpf(gamma.numerator) / gamma.denominator) * mpf(2) ** 128 <= upper
    assert upper - lower <= 2


@pytest.mark.parametrize("gamma", [Fraction(1, 7), Fraction(3), Fraction(40)])
@pytest.mark.parametrize("agree", [0, 1, 3])
@pytest.mark.parametrize("step", [-1, 1])
def test_a_number_that_agrees_for_many_bits_is_told_apart(gamma, agree, step):
    """U has the bits of exp(-gamma), and one unit more or less after 64 (1 + agree) bits."""
    with mpmath.workdps(200):
        words = digits_of(mpmath.exp(-mpf(gamma.numerator) / gamma.denominator), 64)[: agree + 2]
    words[-1] += step  # no carry: neither all zeros nor all ones for these numbers
    rest = iter([*words[1:], *[2**63] * 5])
    assert LazyUniform(words[0], 64, lambda: next(rest)).below_exp(gamma) == (step < 0)


@pytest.mark.parametrize("scale", [0.3, 1.0, 65536.0, 2.0**36 / 3.0, 2.0**44])
@pytest.mark.parametrize("offset", [0.0, 0.5])
@pytest.mark.parametrize("near", [-1, 0, 10**6])
def test_rounded_exponential_of_known_bits(scale, offset, near):
    for value in (mpf("0.9"), mpf("0.43"), mpf("1e-9"), mpf("1e-40")):
        with mpmath.workdps(120):
            expected = int(mpmath.floor(offset - mpf(scale) * mpmath.log(value)))
            words = digits_of(value, 63)
        rest = iter(words[1:])
        lazy = LazyUniform(words[0], 63, lambda: next(rest))  # noqa: B023
        assert lazy.floor_exponential(Fraction(scale), Fraction(offset), near) == expected


@pytest.mark.parametrize("scale", [0.7, 3.0, 65536.0, 1e9 / 7.0])
@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("after", [False, True])
def test_words_at_a_threshold_are_decided_by_further_words(scale, k, after):
    """The crafted word is where double precision cannot decide: U agrees with exp(-(k-1/2)/scale) to 190 bits."""
    with mpmath.workdps(200):
        words = digits_of(mpmath.exp(-(mpf(k) - mpf(1) / 2) / mpf(scale)), 63)[:3]
    words[2] += 1 if after else -1
    source = Scripted([words[0] << 1, *words[1:]])
    assert discrete_noise.rounded_laplace(scale, 1, source).tolist() == [k - 1 if after else k]
    assert source.left == []  # the further words were asked for


def test_half_normal_test_at_its_threshold():
    for above in (False, True):
        with mpmath.workdps(300):
            first = digits_of(mpf("0.2345"), 63, 6)
            excess = -mpmath.log(mpf("0.2345")) - 1
            second = digits_of(mpmath.exp(-excess * excess / 2), 64)[:3]
        second[2] += 1 if above else -1
        one, two = iter(first[1:]), iter([*second[1:], 5, 5, 5])
        lazy = LazyUniform(first[0], 63, lambda: next(one))  # noqa: B023
        assert half_normal_accepts(lazy, LazyUniform(second[0], 64, lambda: next(two))) is not above  # noqa: B023


def test_half_normal_test_near_its_peak_and_at_zero():
    rest = iter([1 << 60] * 9)
    near_one = int(math.exp(-1.0) * 2**63)
    assert half_normal_accepts(LazyUniform(near_one, 63, lambda: 7), LazyUniform(2**64 - 1, 64, lambda: next(rest)))
    assert not half_normal_accepts(LazyUniform(0, 63, lambda: 1), LazyUniform(2**40, 64, lambda: 1))


@pytest.mark.costly("1073741824.0-0.0", "1073741824.0-0.5", "300.0-0.0", "300.0-0.5")
@pytest.mark.parametrize("offset", [0.0, 0.5])
@pytest.mark.parametrize("scale", [0.05, 0.8, 300.0, 2.0**30])
def test_the_quick_way_is_the_exact_way(scale, offset):
    words = np.concatenate([simulation_random(4).words(300), simulation_random(5).words(60) >> np.uint64(12)])
    found = discrete_noise._magnitudes(np.full(words.size, scale), offset, Scripted(words.tolist()))[0]
    for word, magnitude in zip(words.tolist(), found.tolist(), strict=True):
        lazy = LazyUniform(word >> 1, 63, lambda: 2**63)
        assert lazy.floor_exponential(Fraction(scale), Fraction(offset), 0) == magnitude


def test_library_functions_are_as_good_as_supposed():
    """8 units of 2^-53 are charged; where exp underflows the absolute slack of 2^-64 covers it."""
    random = np.random.default_rng(1)
    u = np.concatenate([1 - random.random(1500) * 2.0 ** -random.integers(1, 50, 1500), random.random(1500)])
    u = np.concatenate([u, 2.0 ** -random.uniform(0, 63, 1500)])
    gamma = np.concatenate(
        [random.uniform(0, 1, 1500), random.uniform(0, 700, 1500), 2.0 ** -random.uniform(0, 60, 1500)]
    )
    with mpmath.workdps(40):
        for x, found in zip(u.tolist(), np.log(u).tolist(), strict=True):
            exact = mpmath.log(mpf(x))
            assert abs(found - exact) <= 3 * abs(exact) * mpf(2) ** -53
        for x, found in zip(gamma.tolist(), np.exp(-gamma).tolist(), strict=True):
            exact = mpmath.exp(-mpf(x))
            assert abs(found - exact) <= 3 * exact * mpf(2) ** -53


def check_law(draws, chances, first):
    """Chi-square against the stated chances of first, first + 1, ..., with both tails merged."""
    places = np.clip(draws - first, 0, len(chances) - 1)
    counts = np.bincount(places, minlength=len(chances))
    expected = np.array([float(c) for c in chances]) * draws.size
    keep = expected >= 8.0
    merged = np.append(counts[keep], counts[~keep].sum())
    wanted = np.append(expected[keep], draws.size - expected[keep].sum())
    if wanted[-1] < 1e-6:
        merged, wanted = merged[:-1], wanted[:-1]
    assert chisquare(merged, wanted * merged.sum() / wanted.sum()).pvalue > FALSE_ALARM


def tails(survival, span):
    """Chances of -span..span from P(X >= k) of a symmetric law."""
    up = [survival(k) for k in range(1, span + 2)]
    point = [up[k] - up[k + 1] for k in range(span)]
    return [*reversed(point), 1 - 2 * up[0], *point]


LAWS = {
    "discrete_laplace": lambda t: (
        lambda k: math.exp(-k / t) / (1 + math.exp(-1 / t))  # P(X >= k), sum of the two-sided geometric
    ),
    "rounded_laplace": lambda t: lambda k: math.exp(-(k - 0.5) / t) / 2,
    "rounded_gaussian": lambda t: lambda k: math.erfc((k - 0.5) / t / math.sqrt(2)) / 2,
    "discrete_gaussian": lambda t: (
        lambda k: (
            math.fsum(math.exp(-x * x / (2 * t * t)) for x in range(k, k + 200))
            / math.fsum(math.exp(-x * x / (2 * t * t)) for x in range(-300, 301))
        )
    ),
}


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.5, 9.0])
@pytest.mark.parametrize("name", LAWS)
def test_samples_follow_the_law(name, scale):
    draws = getattr(discrete_noise, name)(scale, SAMPLES, simulation_random(11))
    span = 60
    check_law(draws, tails(LAWS[name](scale), span), -span)


@pytest.mark.parametrize("name", LAWS)
def test_each_sample_has_its_own_scale(name):
    scales = np.tile([0.4, 3.0], SAMPLES // 2)
    draws = getattr(discrete_noise, name)(scales, SAMPLES, simulation_random(12))
    for place, scale in enumerate((0.4, 3.0)):
        check_law(draws[place::2], tails(LAWS[name](scale), 60), -60)


def test_geometric_law():
    draws = discrete_noise.geometric(1.7, SAMPLES, simulation_random(13))
    check_law(draws, [math.exp(-k / 1.7) - math.exp(-(k + 1) / 1.7) for k in range(60)], 0)


@pytest.mark.parametrize("name", ["rounded_laplace", "discrete_laplace", "rounded_gaussian", "discrete_gaussian"])
def test_large_scales_have_the_continuous_variance(name):
    scale = 2.0**40 / 3.0
    draws = getattr(discrete_noise, name)(scale, 4000, simulation_random(15)) / scale
    variance, kurtosis = (2.0, 6.0) if "laplace" in name else (1.0, 3.0)
    assert abs(np.mean(draws)) < 4.5 * math.sqrt(variance / 4000)
    assert abs(np.mean(draws**2) - variance) < 4.5 * variance * math.sqrt((kurtosis - 1) / 4000)


@settings(max_examples=30, deadline=None)
@given(st.floats(1e-12, 2.0**44), st.integers(0, 3))
def test_any_scale_any_number(scale, n):
    for name in ("geometric", *LAWS):
        assert getattr(discrete_noise, name)(scale, n, secure_random()).shape == (n,)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, 2.0**45])
def test_bad_scales_are_named(scale):
    for name in ("geometric", *LAWS):
        with pytest.raises(InvalidInput, match="in row 2"):
            getattr(discrete_noise, name)([1.0, scale], 2, secure_random())


def test_the_same_seed_gives_the_same_noise():
    for name in LAWS:
        first, second = (getattr(discrete_noise, name)(50.0, 500, simulation_random(1)) for _ in range(2))
        assert np.array_equal(first, second)
