"""What the chain theorem for normal vectors is computed from: three centres, averages of weights, positive parts."""

import itertools
import math
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from mpmath import erfc, exp, mp, mpf, quad, sqrt, workdps

from shuffledp.accounting.theorems.chain import normal
from shuffledp.accounting.theorems.chain.normal import (
    LARGEST_SHIFT,
    SMALLEST_SHIFT,
    LognormalMeans,
    RatioMoments,
    Weights,
    links,
    positive_part,
    ratio_moments,
)
from shuffledp.numerics.tails import normal_divergence

mp.dps = 30


def tail(z):
    return erfc(z / sqrt(2)) / 2


def call(mu, strike):
    """E(rho - strike)_+ for one log-normal rho with mean 1."""
    z = (mp.log(strike) + mu**2 / 2) / mu
    return tail(z - mu) - strike * tail(z)


@pytest.mark.parametrize("charge", [1e-5, 1e-10, 1e-30])
@pytest.mark.parametrize("mu", [0.01, 0.25, 1.0])
def test_one_weight_strays_no_more_than_said(mu, charge):
    means, one = LognormalMeans(mu, charge), np.array([1.0])
    s, short = mpf(float(means.excess(one)[0])), mpf(float(means.shortfall(one)[0]))
    assert call(mpf(mu), 1 + s) <= charge
    if short < 1:
        assert call(mpf(mu), 1 - short) - short <= charge  # put = call - 1 + strike


def test_the_average_of_two_weights_strays_no_more_than_said():
    mu, charge = 0.6, 1e-8
    means = LognormalMeans(mu, charge)
    s, short = (float(f(np.array([2.0]))[0]) for f in (means.excess, means.shortfall))

    def over(z):  # both weights are conditioned on the first one
        rho = exp(mu * z - mpf(mu) ** 2 / 2)
        rest = 2 * (1 + mpf(s)) - rho
        gain = call(mpf(mu), rest) if rest > 0 else 1 - rest
        return gain / 2 * exp(-z * z / 2) / sqrt(2 * mp.pi)

    def under(z):
        rho = exp(mu * z - mpf(mu) ** 2 / 2)
        rest = 2 * (1 - mpf(short)) - rho
        gain = call(mpf(mu), rest) - 1 + rest if rest > 0 else mpf(0)
        return gain / 2 * exp(-z * z / 2) / sqrt(2 * mp.pi)

    with workdps(15):
        assert 0 < quad(over, [-2, 4, 8, 12]) <= charge
        assert 0 < quad(under, [-12, -6, -3, 2]) <= charge


def test_averages_of_more_stray_less_and_as_a_normal_law_does_in_the_limit():
    means = LognormalMeans(0.3, 1e-9)
    copies = np.array([0.0, 30.0, 300.0, 3000.0, 1e6])
    s = means.excess(copies)
    assert math.isinf(s[0])
    assert np.all(np.diff(s) < 0)
    assert s[-1] == pytest.approx(5.0 * math.sqrt(math.expm1(0.09) / 1e6), rel=0.1)


def places(mu, rng, count):
    """Centres in a ball of diameter mu, many on its sphere, some antipodal or near each other."""
    g = rng.normal(size=(3, count, 3))
    g /= np.linalg.norm(g, axis=-1, keepdims=True)
    g *= 0.5 * mu * rng.choice([1.0, 1.0, 0.9, 0.4], size=(3, count, 1))
    half = count // 2
    g[1, :half] = -g[0, :half]
    g[2, : half // 2] = g[1, : half // 2] * 0.98 + 0.02 * g[2, : half // 2]
    return g


@pytest.mark.parametrize("mu", [0.05, 0.5, 1.0, 1.2])
def test_no_three_centres_have_larger_moments(mu):
    g = places(mu, np.random.default_rng(7), 40_000)
    a, b = g[0] - g[2], g[1] - g[2]
    aa, bb, ab = (a * a).sum(-1), (b * b).sum(-1), (a * b).sum(-1)
    found, m = ratio_moments(mu), mu * mu

    def mixed(i, j):
        return np.exp(i * (i - 1) / 2 * aa + j * (j - 1) / 2 * bb + i * j * ab)

    def moment(k):
        return sum(comb(k, i) * (-1) ** (k - i) * mixed(i, k - i) for i in range(k + 1))

    assert moment(2).max() <= found.second == pytest.approx(math.expm1(m), rel=1e-8)
    assert moment(3).max() <= found.third * (1 + 1e-9)
    assert moment(4).max() <= found.fourth
    assert moment(2).max() > 0.9 * found.second  # the search does reach the worst places
    assert found.fourth <= 1.03 * (np.exp(6 * m) - 4 * np.exp(3 * m) + 6 * np.exp(m) - 3)


@pytest.mark.parametrize("growth", [0.0, 0.02, 0.5])
def test_moments_at_larger_epsilons(growth):
    """L + e^eps - 1 for normal laws by quadrature over one line: centres 0.3, -0.3 and one end."""
    e, found = 1.0 + growth, ratio_moments(0.6).at(growth)
    z = np.linspace(-9, 12, 20001)
    for centre in (-0.3, 0.3, 0.1):
        ratio = [np.exp((x - centre) * z - 0.5 * (x - centre) ** 2) for x in (0.3, -0.3)]
        d = ratio[0] - e * ratio[1] + growth
        weight = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
        for k, bound in ((2, found.second), (3, found.third), (4, found.fourth)):
            assert np.trapezoid(d**k * weight, z) <= bound
        assert np.trapezoid(np.abs(d) ** 3 * weight, z) <= found.absolute


def two_points(p, high, low):
    """Exact moments of a variable that is high with probability p, else low; shifted to mean 0."""
    mean = p * high + (1 - p) * low
    central = [(p * abs(high - mean) ** k, (1 - p) * abs(low - mean) ** k) for k in range(5)]
    return mean, RatioMoments(
        float(sum(central[2])),
        max(float(central[3][0] - central[3][1]), 0.0),
        float(sum(central[3])),
        float(sum(central[4])),
    )


def exact_positive_part(groups, p, high, low):
    """E(sum w L)_+ for groups of (count, weight) of a two-point L, by sums over counts in exact fractions."""
    law = {Fraction(0): Fraction(1)}
    for count, weight in groups:
        step = {
            weight * (k * high + (count - k) * low): comb(count, k) * p**k * (1 - p) ** (count - k)
            for k in range(count + 1)
        }
        out: dict[Fraction, Fraction] = {}
        for a, x in law.items():
            for b, y in step.items():
                out[a + b] = out.get(a + b, Fraction(0)) + x * y
        law = out
    return float(sum(x * y for x, y in law.items() if x > 0))


@pytest.mark.parametrize("mean", [Fraction(0), Fraction(-1, 50), Fraction(-1, 10), Fraction(-1, 4)])
@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(1, 10), Fraction(9, 10)])
@pytest.mark.parametrize(
    "groups", [((40, Fraction(1)),), ((12, Fraction(2)), (16, Fraction(1)))], ids=["equal", "two weights"]
)
def test_no_sum_has_a_larger_positive_part(groups, p, mean):
    high, low = (1 - p) + mean, -p + mean
    m, moments = two_points(p, high, low)
    assert m == mean
    total = sum(count * weight for count, weight in groups)
    normal = [(count, weight / total) for count, weight in groups]
    weights = Weights(
        np.array([float(sum(c * w * w for c, w in normal))]),
        np.array([float(max(w for _, w in normal))]),
        np.array([float(max(high, Fraction(1, 1000)))]),
        np.zeros(1),
    )
    exact = exact_positive_part(normal, p, high, low)
    found = float(positive_part(float(-mean), weights, moments)[0])
    assert exact <= found


def test_the_bound_is_near_the_truth_for_many_terms():
    half = Fraction(1, 2)
    for mean, most in ((Fraction(0), 1.08), (Fraction(-1, 20), 1.6)):
        _, moments = two_points(half, half + mean, -half + mean)
        one = np.array([1 / 400])
        found = float(positive_part(float(-mean), Weights(one, one, np.array([1.0]), np.zeros(1)), moments)[0])
        exact = exact_positive_part([(400, Fraction(1, 400))], half, half + mean, -half + mean)
        assert exact <= found <= most * exact


def test_a_cut_is_charged():
    """A rare large value: cut below it the bound still holds, because what is cut off is added."""
    p, high = Fraction(1, 200), Fraction(20)
    low = -p * high / (1 - p) - Fraction(1, 20)
    mean, moments = two_points(p, high, low)
    exact = exact_positive_part([(60, Fraction(1, 60))], p, high, low)
    for cut in (2.0, 8.0, 20.0):
        lost = float(p) * max(20.0 - cut, 0.0)
        weights = Weights(np.array([1 / 60]), np.array([1 / 60]), np.array([cut]), np.array([lost]))
        assert exact <= float(positive_part(float(-mean), weights, moments)[0])


def transform_of(mu, centre, e, weight, step, size):
    """Fourier transform of weight L on a lattice, L of the ends +-mu/2 seen from the centre; means are kept."""
    z = np.linspace(-9.0, 9.0, 20_001)
    chance = np.exp(-0.5 * z * z)
    a, b = 0.5 * mu - centre, -0.5 * mu - centre
    at = weight * (np.exp(a * z - 0.5 * a * a) - e * np.exp(b * z - 0.5 * b * b)) / step
    low = np.floor(at)
    law, share = np.zeros(size), at - low
    np.add.at(law, low.astype(int) % size, chance * (1.0 - share))
    np.add.at(law, (low.astype(int) + 1) % size, chance * share)
    return np.fft.rfft(law / chance.sum())


@pytest.mark.parametrize("z", [0.0, 1.0, 3.0])
@pytest.mark.parametrize(("mu", "terms"), [(0.25, 40), (0.25, 400), (1.0, 400), (1.19, 3000)])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_no_mixed_crowd_of_normal_messages_has_a_larger_positive_part(mu, terms, z, share):
    """Half the seats weigh 1.6 times the others; the crowd stands at the two ends, so many at the first one."""
    half = terms // 2
    light = 1.0 / (2.6 * half)
    squares = half * light**2 * (1.0 + 1.6**2)
    e = math.exp(z * math.sqrt(math.expm1(mu * mu) * squares))
    size, whole = 1 << 14, 1.0
    step = 40.0 * math.sqrt(math.expm1(mu * mu) * squares) / size
    for weight in (light, 1.6 * light):
        for centre, count in ((0.5 * mu, round(share * half)), (-0.5 * mu, half - round(share * half))):
            whole = whole * transform_of(mu, centre, e, weight, step, size) ** count
    law = np.fft.irfft(whole, size)
    true = float(law[: size // 2] @ np.arange(size // 2)) * step
    logs = np.arange(1.0, 12.0, 0.25) * mu
    lost, one = np.asarray(normal_divergence(logs, mu).upper), np.ones(logs.size)
    weights = Weights(squares * one, 1.6 * light * one, np.exp(logs), lost)
    found = float(positive_part((e - 1.0) * (1 - 1e-12), weights, ratio_moments(mu).at(e - 1.0)).min())
    assert 1e-8 < true <= found
    assert z > 0.0 or found < 2.0 * true


def test_links_are_groups_of_the_company_and_their_curve_falls():
    found = links(0.5, 59_999)
    assert all(sum(sizes) <= 59_999 and 2 <= len(sizes) <= 4 for sizes in found.sizes)
    curve = [found.divergence(eps) for eps in np.linspace(0.0, 3.0, 60)]
    assert all(first >= second for first, second in itertools.pairwise(curve))
    assert links(0.5, 3).sizes == ()  # nobody to choose: the message's own divergence
    for mu in (0.5 * SMALLEST_SHIFT, 1.1 * LARGEST_SHIFT, math.nan):
        with pytest.raises(ValueError, match="chain theorem"):
            links(mu, 100)


def exhaustive_groups(mu, others, charge):
    """What `_groups` finds, with the ratio of every choice computed."""
    means = LognormalMeans(mu, charge / 4)
    sizes = np.unique(np.floor(np.geomspace(4.0, max(others / 2.0, 5.0), 30)))
    copies = np.floor(0.9 * sizes / normal._hub_height(mu, charge / 4) * (1.0 - 1e-9))
    chains, used, best = [(size,) for size in sizes.tolist()], sizes, None
    for _ in range(3):
        ratio, left = normal._ratio(means, copies), others - used
        there = (left >= 1) & np.isfinite(ratio)
        known = np.where(there, ratio, 1.0)
        value = np.where(there, (1.0 + (known - 1.0) ** 2 / (4.0 * known)) / np.maximum(left, 1.0), math.inf)
        if there.any() and (best is None or value.min() < best[0]):
            at = int(np.argmin(value))
            best = float(value[at]), (*chains[at], float(left[at])), float(ratio[at])
        front, least = [], math.inf
        for at in np.argsort(used, kind="stable").tolist():
            if ratio[at] < least:
                least = ratio[at]
                front.append(at)
        copies = np.floor(sizes[None, :] / ratio[front][:, None] * (1.0 - 1e-9)).ravel()
        chains = [(*chains[at], size) for at in front for size in sizes.tolist()]
        used = (used[front][:, None] + sizes[None, :]).ravel()
    return None if best is None else best[1:]


@pytest.mark.parametrize("charge", [1e-5, 1e-9, 1e-20])
@pytest.mark.parametrize(("mu", "others"), [(0.05, 90), (0.25, 999), (0.5, 59_999), (1.1, 500_000)])
def test_groups_are_those_of_a_search_that_computes_every_ratio(mu, others, charge):
    assert normal._groups(mu, others, charge) == exhaustive_groups(mu, others, charge)


def test_a_chain_of_groups_computes_few_ratios(monkeypatch):
    """Of the tens of thousands of choices most are seen to be worse by a table of 250 ratios for each charge."""
    computed, ratio = list[int](), normal._ratio

    def counted(means, copies):
        computed.append(copies.size)
        return ratio(means, copies)

    monkeypatch.setattr(normal, "_ratio", counted)
    links.cache_clear()
    assert links(0.5, 999_999).sizes
    assert sum(computed) < 9 * 2_000
