"""What the chain theorem for normal vectors is computed from: three centres, averages of weights, positive parts."""

import itertools
import math
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from mpmath import erfc, exp, mp, mpf, quad, sqrt, workdps

from shuffledp import UnaryEncoding
from shuffledp.accounting.theorems.chain import normal
from shuffledp.accounting.theorems.chain.bound import stated_law
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
from shuffledp.accounting.theorems.chain.pure import Averages, Kinds, PureLaw, PureLinks, _Scaled
from shuffledp.numerics.tails import mills_ratio, mills_slope, normal_divergence
from shuffledp.randomizers.mixing import third_record

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


# ------------------------------------------------------------------ pure reports


def skewed_kinds(rng, high):
    """Up to three laws of two to four losses, of all signs of skewness, losses at most ``high``: chances and losses."""
    kinds, cells = int(rng.integers(1, 4)), int(rng.integers(2, 5))
    masses = rng.dirichlet(np.ones(cells) * rng.choice([0.3, 1.0, 3.0]), size=kinds)
    losses = rng.uniform(-1.0, 1.0, size=(kinds, cells))
    losses -= (masses * losses).sum(axis=1, keepdims=True)
    losses *= high * rng.uniform(0.1, 1.0, size=(kinds, 1)) / np.abs(losses).max(axis=1, keepdims=True)
    return masses, losses * rng.choice([1.0, -1.0], size=(kinds, 1))


def weights_within(rng, ratio):
    """A few clusters of seats: their shares, and weights of mean 1 within the ratio."""
    shares = rng.dirichlet(np.ones(int(rng.integers(1, 5))))
    weights = np.exp(rng.uniform(0.0, math.log(ratio), size=shares.size))
    return shares, weights / (shares @ weights)


def exact_tilt(masses, losses, t):
    """Logarithm of the mass, mean and variance of t times one loss, tilted by t."""
    z = t * losses
    each = masses * np.exp(z)
    mean = each @ z / each.sum()
    return np.array([math.log(each.sum()), mean, each @ z**2 / each.sum() - mean**2])


def worst_at(masses, losses, power, pull, asked):
    """The exponent of one choice of kinds, by exact tilts: the three cases of the proof; and which case it was."""
    n, t, weights, shares, chosen, curve, spread, least = asked
    tilts = np.array([exact_tilt(masses[k], losses[k], t * x) for k, x in zip(chosen, weights, strict=True)])
    log, mean, variance = n * (shares @ tilts)
    moments = np.array(
        [[masses[k] @ (t * x * losses[k]) ** p for p in (2, 3)] for k, x in zip(chosen, weights, strict=True)]
    )
    low = n * float(shares @ moments.sum(axis=1)) - curve * float(shares @ weights**4)
    assert low <= variance + 1e-9
    pad = max(least * spread - low, 0.0)
    found = log + pad / 2.0 + pull * (mean + pad)
    if variance + pad >= spread:
        return found + pull**2 * (variance + pad - spread) / 2.0, 0
    return found + power * math.log(spread / (variance + pad)), 1 if pad == 0.0 else 2


@pytest.mark.costly(but=("4",))
@pytest.mark.parametrize("seed", range(6))
def test_no_crowd_has_a_larger_exponent(seed):
    """(Z): random kinds, weights apart, and the worst choice of a kind for every weight; exact tilts, no normal law."""
    rng, cases, closest = np.random.default_rng(seed), [0, 0, 0], -math.inf
    for _ in range(25):
        high = math.exp(rng.uniform(0.2, 3.0))
        masses, losses = skewed_kinds(rng, high)
        kinds = Kinds.of(masses, losses, 0.0 * losses)
        n, ratio = float(rng.choice([5, 20, 100, 1_000, 10_000])), 1.0 + 10.0 ** rng.uniform(-3.0, 0.8)
        theta = 10.0 ** rng.uniform(-0.3, 1.1) * math.sqrt(n / kinds.second.max())
        if theta / n * ratio * high >= 30.0:
            continue
        n_, theta_, ratio_ = (np.array([[each]]) for each in (n, theta, ratio))
        scaled = _Scaled.of(kinds, n_, theta_, ratio_, theta_ / n_ * ratio_ * high)
        spread = float(scaled.spread()[0, 0])
        x = np.array([math.sqrt(spread)])
        pull = float(((mills_ratio(x) - x * mills_slope(x)) / mills_slope(x) / x)[0])
        for power, own in ((0.5, pull), (1.5, 0.0)):
            falls = scaled.falls(power)
            least, fall, left = (float(each[0, 0]) for each in falls)
            variances = np.linspace(least * spread, spread, 50)
            assert fall <= 0.3
            assert (power * np.log(spread / variances) <= left + fall * (spread - variances) + 1e-12).all()
            constant, factor = scaled.exponents(
                np.array([[own]]), falls, ratio_, np.array([[10.0 ** rng.uniform(-2, 0)]])
            )
            for _ in range(4):
                shares, weights = weights_within(rng, ratio)
                if weights.max() > ratio or weights.min() < 1.0 / ratio:
                    continue
                chi = float(shares @ weights**2) - 1.0
                most = float(constant[0, 0] + factor[0, 0] * chi) - own**2 * spread / 2.0
                for chosen in itertools.product(range(len(masses)), repeat=len(shares)):
                    asked = (
                        n,
                        theta / n,
                        weights,
                        shares,
                        chosen,
                        float(scaled.curve[0, 0]),
                        spread,
                        float(falls[0][0, 0]),
                    )
                    exact, case = worst_at(masses, losses, power, own, asked)
                    cases[case] += 1
                    closest = max(closest, exact - most)
                    assert exact <= most + 1e-9 * (1.0 + abs(most))
    assert min(cases) > 5
    assert closest > -1e-3  # and some crowd nearly attains it


def test_the_normal_part_and_its_error_are_of_one_padded_sum():
    """One phi for both: each with its own gave .036646 at hadamard:10, epsilon0 1, n 1000, delta 1e-3, unproved."""
    masses, losses = np.array([[0.1, 0.9], [0.9, 0.1]]), np.array([[3.0, -1.0 / 3.0], [1.0 / 3.0, -3.0]])
    kinds = Kinds.of(masses, losses, 0.0 * losses)
    n, ratio = np.array([[1_000.0]]), np.array([[1.2]])
    theta = np.linspace(0.5, 4.0, 200)[None] * math.sqrt(1_000.0 / kinds.second.max())
    scaled = _Scaled.of(kinds, n, theta, ratio, theta / n * ratio * 3.0)
    (body, *_), (error, *_) = scaled.falls(0.5), scaled.falls(1.5)
    assert set(np.unique(body)) == {0.7, 1.0}
    assert (body == error).all()


@pytest.mark.parametrize("apart", [0.02, 0.1, 0.2])
def test_heavy_seats_may_be_of_another_kind_than_light_ones(apart):
    """(Z) where two kinds, skewed upwards and downwards, are about as bad: each weight is given its worse one."""
    n, theta, ratio = 1e7, 11_000.0, (1.0 + apart) / (1.0 - apart)
    n_, theta_, ratio_, weights = (
        np.array([[n]]),
        np.array([[theta]]),
        np.array([[ratio]]),
        np.array([1.0 + apart, 1.0 - apart]),
    )
    masses, plain = np.array([[0.1, 0.9], [0.9, 0.1]]), np.array([[3.0, -1.0 / 3.0], [1.0 / 3.0, -3.0]])
    closest = -math.inf
    for scale in np.linspace(1.0007, 1.0015, 101):
        losses = plain * np.array([[1.0], [scale]])
        scaled = _Scaled.of(Kinds.of(masses, losses, 0.0 * losses), n_, theta_, ratio_, theta_ / n_ * ratio_ * 3.0)
        spread = float(scaled.spread()[0, 0])
        for power, pull in ((0.5, 0.1), (1.5, 0.0)):
            falls = scaled.falls(power)
            constant, factor = scaled.exponents(np.array([[pull]]), falls, ratio_, np.array([[apart]]))
            most = float(constant[0, 0] + factor[0, 0] * apart**2) - pull**2 * spread / 2.0
            for chosen in itertools.product(range(2), repeat=2):
                rest = (np.array([0.5, 0.5]), chosen, float(scaled.curve[0, 0]), spread, float(falls[0][0, 0]))
                exact, _ = worst_at(masses, losses, power, pull, (n, theta / n, weights, *rest))
                closest = max(closest, exact - most)
                assert exact <= most
    assert closest > -0.05 * apart**2


def test_a_crowd_of_one_record_of_each_kind_of_unary_encoding():
    """Kinds skewed both ways: a branch took a third moment that was raised into the lower end of the variance."""
    family, growth, n, ratio = UnaryEncoding(10, optimized=False), math.expm1(0.118267), 800.0, np.array([[2.0]])
    found, pair = stated_law(family)(1.0).kinds(growth), family.pair_blankets(1.0)[0]
    assert found.third == pytest.approx([0.6253, -0.8916, -0.1764], abs=1e-4)
    assert found.fallen == pytest.approx(-found.third, abs=1e-7)
    third = third_record(1.0, family.triple_weights(1.0))
    own, one, e = pair.ratios0 / pair.ratios1, np.ones(pair.masses.size), 1.0 + growth
    places = [(pair.masses * pair.ratios1, own, one), (pair.masses * pair.ratios1, one, own)]
    places.append((third.masses, third.ratios0, third.ratios1))
    for x in (0.5, 2.0, 4.0, 8.0):
        theta = np.array([[x * math.sqrt(n / found.second.max())]])
        scaled = _Scaled.of(found, np.array([[n]]), theta, ratio, theta / n * ratio * (math.e + growth))
        spread = float(scaled.spread()[0, 0])
        for power, pull in ((0.5, 0.1), (1.5, 0.0)):
            falls = scaled.falls(power)
            constant, _ = scaled.exponents(np.array([[pull]]), falls, ratio, np.array([[0.1]]))
            rest = (np.ones(1), np.ones(1), (0,), float(scaled.curve[0, 0]), spread, float(falls[0][0, 0]))
            for masses, first, second in places:
                losses = first - 1.0 - e * (second - 1.0)
                exact, _ = worst_at([masses], [losses], power, pull, (n, float(theta[0, 0]) / n, *rest))
                assert exact <= float(constant[0, 0]) - pull**2 * spread / 2.0


def test_exponents_are_rounded_upwards():
    """(Z) and the moments at 40 digits by the same functions on numbers of mpmath."""
    rng = np.random.default_rng(11)
    with workdps(40):
        for _ in range(40):
            masses, losses = skewed_kinds(rng, 3.0)
            kinds = Kinds.of(masses, losses, 1e-14 * np.abs(losses))
            exact_losses = [[mpf(x) for x in row] for row in losses]
            for at, (chances, row) in enumerate(zip(masses, exact_losses, strict=True)):
                for told, power in ((kinds.second, 2), (kinds.third, 3), (kinds.fourth, 4)):
                    assert sum(mpf(p) * x**power for p, x in zip(chances, row, strict=True)) <= told[at]
                assert -sum(mpf(p) * x**3 for p, x in zip(chances, row, strict=True)) <= kinds.fallen[at]
                assert sum(mpf(p) * abs(x) ** 3 for p, x in zip(chances, row, strict=True)) <= kinds.absolute[at]
            n, theta, ratio = np.array([[1e4]]), np.array([[rng.uniform(50.0, 400.0)]]), np.array([[1.7]])
            scaled = _Scaled.of(kinds, n, theta, ratio, theta / n * ratio * 3.0)
            pull, typical = np.array([[0.1]]), np.array([[0.15]])
            told = scaled.exponents(pull, scaled.falls(0.5), ratio, typical)

            def exactly(each):
                if isinstance(each, tuple):
                    return tuple(exactly(one) for one in each)
                return np.vectorize(mpf, otypes=[object])(each)

            precise = _Scaled(*(exactly(each) for each in scaled))
            exact = precise.exponents(exactly(pull), exactly(scaled.falls(0.5)), exactly(ratio), exactly(typical))
            for one, other in zip(told, exact, strict=True):
                assert abs(mpf(float(one[0, 0])) - other[0, 0]) <= 1e-12 * (1 + abs(other[0, 0]))


LATTICE = [
    # chances and whole losses: skewed down, skewed up, three values
    ((0.9, 0.1), (1.0, -9.0)),
    ((0.1, 0.9), (9.0, -1.0)),
    ((0.2, 0.6, 0.2), (-5.0, 0.0, 5.0)),
    ((0.5, 0.5), (4.0, -4.0)),
]


def lattice_positive_part(clusters, growth):
    """E(sum of weight (D - growth))_+ for clusters (count, whole weight, kind), by transforms on a lattice."""
    size, whole = 1 << 13, 1.0
    for count, weight, kind in clusters:
        law = np.zeros(size)
        for chance, loss in zip(*LATTICE[kind], strict=True):
            law[int(weight * loss) % size] += chance
        whole = whole * np.fft.fft(law) ** count
    law = np.fft.ifft(whole).real
    at = np.arange(size)
    at = np.where(at < size // 2, at, at - size) - growth * sum(count * weight for count, weight, _ in clusters)
    return float(law @ np.maximum(at, 0.0)), float(sum(count * weight for count, weight, _ in clusters))


@pytest.mark.parametrize("kinds", [(0,), (1,), (0, 1), (0, 2), (1, 3), (0, 1, 2, 3)])
@pytest.mark.parametrize("n", [40, 400])
def test_no_crowd_has_a_larger_positive_part(kinds, n):
    """(T) given the weights, at every theta: half of the seats weigh twice the others, kinds at will."""
    masses, losses = (np.zeros((len(kinds), 3)) for _ in range(2))
    for row, kind in enumerate(kinds):
        chances, values = LATTICE[kind]
        masses[row, : len(chances)], losses[row, : len(values)] = chances, values
    found, epsilon0 = Kinds.of(masses, losses, 0.0 * losses), math.log(9.0)
    law = PureLaw(epsilon0, lambda growth: found, 1.0, ())
    links = PureLinks(law, np.array([float(n)]), np.array([100]), np.array([1e-6]))
    links.__dict__["_laws"] = [Averages(np.ones(1), np.ones(1), 1.0 / 3.0, 1.0 / 3.0)]  # weights within a ratio of 2
    spread, told = math.sqrt(found.second.max() / n), 0
    with np.errstate(over="ignore", invalid="ignore"):  # at a theta that is not good
        for z in (0.5, 2.0, 4.0):
            terms = links._terms(z * spread, found)
            assert terms is not None
            for heavy, light, weight in itertools.product(kinds, kinds, (1, 2)):
                true, total = lattice_positive_part([(n // 2, weight, heavy), (n // 2, 1, light)], z * spread)
                chi = n * (n / 2) * (weight**2 + 1.0) / total**2 - 1.0
                most = terms.body * np.exp(terms.bodys * chi) + terms.error * np.exp(terms.errors * chi)
                most = np.where(terms.good & np.isfinite(most), terms.factor * most, math.inf).min()
                assert true / total <= most + 1e-12
                told += true / total > 0.1 * most
    assert told > 0
