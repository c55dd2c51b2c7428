"""Budgets with delta0 > 0: formula (D) in 40 digits, and real protocols enumerated exactly."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mpmath import exp, mpf

from shuffledp import Budgets, OutOfRegime, Setting, bounds
from shuffledp.accounting.theorems.approximate import (
    ApproximateBound,
    ApproximateProfile,
    GaussianPointsProfile,
    LocalPoint,
)
from shuffledp.accounting.theorems.local import LocalProfile
from shuffledp.numerics.tails import normal_divergence
from shuffledp.randomizers.noise import Gaussian
from tests.oracles import Channel, ShuffledProtocol, clone_pair_delta

BOUND = ApproximateBound()


def setting(budgets, law="any", seen="reports", **situation):
    return Setting(budgets, law, seen, "replace-one", **situation)


def local_delta(channel: Channel, ratio: Fraction) -> Fraction:
    """The smallest delta0 at e^epsilon0 = ratio."""
    gaps = (
        sum(max(Fraction(0), p - ratio * q) for p, q in zip(a, b, strict=True)) for a, b in permutations(channel, 2)
    )
    return max(gaps)


def point_of(channel: Channel, ratio: Fraction, n: int) -> LocalPoint:
    delta0 = float(local_delta(channel, ratio))
    return LocalPoint(math.log(ratio) * (1 + 1e-15), delta0 * (1 + 1e-15), n)


def total_in_digits(point: LocalPoint, eps: float) -> mpf:
    """(D) as it is written on the theorem page."""
    big, t, n, small = exp(mpf(point.epsilon0)), exp(mpf(eps)), point.n, mpf(point.delta0)
    pair = clone_pair_delta(point.epsilon0, [point.epsilon0] * (n - 1), eps)
    others = (n - 1) * 2 * small / big
    h = min((big - t) / (1 + big), (n * pair + t - 1) / (n - 1) + others * (1 + t))
    return pair + (1 + t) * small / (1 + big) + others * (t - 1 + 2 * h)


@pytest.mark.costly("1.0-1e-09-40", "6.0-1e-12-60")
@pytest.mark.parametrize(
    ("epsilon0", "delta0", "n"), [(0.5, 1e-4, 2), (1.0, 1e-9, 40), (3.0, 1e-3, 7), (0.0, 1e-3, 5), (6.0, 1e-12, 60)]
)
def test_the_formula(epsilon0, delta0, n):
    point = LocalPoint(epsilon0, delta0, n)
    for share in (0.0, 0.1, 0.5, 0.95):
        eps = share * epsilon0
        truth = total_in_digits(point, eps) if eps < epsilon0 else mpf(delta0)
        found = point.total(eps)
        assert found.lower <= truth <= found.upper
        assert found.upper <= found.lower * 1.005 + 1e-290  # the clone pair's own width


def leaky(flip: Fraction, reveal: Fraction) -> Channel:
    """Randomized response, or, rarely, the record in clear: the worst that delta0 may stand for."""
    kept = 1 - reveal
    return (
        (kept * (1 - flip), kept * flip, reveal, Fraction(0)),
        (kept * flip, kept * (1 - flip), Fraction(0), reveal),
    )


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("reveal", [Fraction(1, 1000), Fraction(1, 20)])
def test_rare_disclosure(n, reveal):
    channel = leaky(Fraction(1, 4), reveal)  # e^epsilon0 = 3 of the rest
    protocol = ShuffledProtocol([channel] * n)
    point = point_of(channel, Fraction(3), n)
    for ratio in (Fraction(1), Fraction(5, 4), Fraction(2), Fraction(3), Fraction(4)):
        real = protocol.worst(0, ratio)
        assert real <= ApproximateProfile(point).delta(math.log(ratio)).upper
        assert real >= reveal * Fraction(9, 10)  # shuffling cannot heal a disclosure


@st.composite
def channels(draw):
    outputs = draw(st.integers(2, 4))
    rows = draw(st.lists(st.lists(st.integers(0, 20), min_size=outputs, max_size=outputs), min_size=2, max_size=3))
    assume(all(sum(row) for row in rows))
    return tuple(tuple(Fraction(x, sum(row)) for x in row) for row in rows)


@settings(max_examples=25, deadline=None)
@given(channels(), st.sampled_from([Fraction(11, 10), Fraction(2), Fraction(7)]), st.integers(2, 3))
def test_no_protocol_leaks_more(channel, ratio, n):
    point = point_of(channel, ratio, n)
    assume(point.delta0 < 1.0)
    protocol = ShuffledProtocol([channel] * n)
    for share in (0.0, 0.2, 0.6):
        eps = share * point.epsilon0
        # 2^-40 of slack in e^eps: the protocol is asked at a rational just below
        real = protocol.worst(0, Fraction(math.exp(eps)).limit_denominator(10**6))
        assert float(real) <= point.total(max(eps - 2e-6, 0.0)).upper * (1 + 1e-12)


def test_some_protocol_comes_close():
    # found by a random search: 2 users, e^epsilon0 = e^3
    rows = [[9299, 490, 211], [435, 5246, 4319], [5851, 271, 3878]]
    channel = tuple(tuple(Fraction(x, 10000) for x in row) for row in rows)
    ratio = Fraction(math.exp(3.0)).limit_denominator(1000)
    real = ShuffledProtocol([channel] * 2).worst(0, Fraction(1))
    found = point_of(channel, ratio, 2).total(0.0)
    assert 0.9 < float(real) / found.upper < 1.0


def test_vanishing_delta0_is_the_clone_pair():
    budgets = Budgets([1.0], [10_000], [1e-15])
    found = BOUND.profile(setting(budgets), 1.0).epsilon(1e-6)
    clones = bounds["clones"].profile(setting(Budgets([1.0], [10_000])), 1.0).epsilon(1e-6)
    assert clones.lower <= found.upper <= clones.upper * (1 + 1e-4)


def test_the_charge_for_many_users():
    # a factor e^eps - 1, not 1 + e^eps: at 1e-12 each, 10,000 users cost next to nothing
    profile = BOUND.profile(setting(Budgets([1.0], [10_000], [1e-12])), 1.0)
    assert profile.epsilon(1e-6).upper == pytest.approx(0.04321, rel=1e-3)
    assert profile.epsilon(1e-8).upper == pytest.approx(0.05656, rel=1e-3)
    assert profile.delta(0.2).upper < 1e-9


def test_a_bound_at_one_epsilon_serves_every_larger_one():
    profile = ApproximateProfile(LocalPoint(2.0, 1e-8, 5000))
    values = [profile.delta(eps).upper for eps in np.linspace(0.0, 3.0, 40)]
    assert all(later <= earlier * (1 + 1e-6) for earlier, later in pairwise(values))
    assert values[-1] == pytest.approx(1e-8, rel=1e-9)
    raw = [LocalPoint(2.0, 1e-8, 5000).total(eps).upper for eps in (0.2, 1.9)]
    assert raw[1] > raw[0] > profile.delta(1.9).upper * 0.99  # (D) itself grows


@pytest.mark.costly
@settings(max_examples=20, deadline=None)
@given(st.floats(0.01, 8.0), st.floats(-12.0, -1.0), st.integers(2, 10**7), st.floats(0.0, 1.2))
def test_never_above_the_local_profile(epsilon0, digits, n, share):
    found = ApproximateProfile(LocalPoint(epsilon0, 10.0**digits, n)).delta(share * epsilon0)
    assert found.upper <= LocalProfile(epsilon0, 10.0**digits).delta(share * epsilon0).upper
    assert found.lower <= found.upper


def test_no_epsilon_below_delta0():
    profile = BOUND.profile(setting(Budgets([1.0], [1000], [1e-5])), 1.0)
    assert profile.epsilon(1e-6).upper == math.inf
    assert profile.mass_at_infinity.upper <= 1e-5


@pytest.mark.costly
def test_gaussian_noise_chooses_its_own_point():
    law = Gaussian(0, 1, sigma=1.0)
    budgets = Budgets([4.9], [10_000], [1e-6])
    question = setting(budgets, law)
    found = BOUND.profile(question, 4.9).epsilon(1e-6)
    stated = ApproximateProfile(LocalPoint(4.9, 1e-6, 10_000)).epsilon(1e-6)
    assert found.upper == pytest.approx(1.552, rel=0.01)  # the local epsilon is 4.89
    assert stated.upper > 4.8
    # every point of the curve is a bound, and the best one is not far from the best of a fine grid
    epsilons = np.linspace(2.0, 12.0, 120)
    deltas = normal_divergence(epsilons, 1.0 + 1e-12).upper
    grid = min(LocalPoint(float(e), float(d), 10_000).total(1.0).upper for e, d in zip(epsilons, deltas, strict=True))
    assert BOUND.profile(question, 4.9).delta(1.0).upper <= grid * 1.05
    assert BOUND.profile(question, 4.9).delta(30.0).upper <= float(normal_divergence(30.0, 1.0 + 1e-12).upper)


def test_levels_that_share_an_epsilon0_get_the_worst_of_them():
    shared = Budgets([1.0, 1.0], [3, 1000], [1e-9, 1e-7])
    assert BOUND.profile(setting(shared), 1.0).delta(0.2) == ApproximateProfile(LocalPoint(1.0, 1e-7, 3)).delta(0.2)
    noisy = BOUND.profile(setting(shared, Gaussian(0, 1)), 1.0)
    assert isinstance(noisy, GaussianPointsProfile)
    assert noisy.sigma == pytest.approx(float(Gaussian(0, 1).scale(1.0, 1e-7)))
    assert noisy.n == 3


def test_only_the_own_level_hides_a_user():
    several = setting(Budgets([1.0, 2.0], [500, 100_000], [1e-9, 1e-9]), seen="levels")
    alone = setting(Budgets([1.0], [500], [1e-9]))
    assert BOUND.profile(several, 1.0).delta(0.3) == BOUND.profile(alone, 1.0).delta(0.3)
    colluding = setting(Budgets([1.0, 2.0], [600, 100_000], [1e-9, 1e-9]), seen="levels", colluding=100)
    assert BOUND.profile(colluding, 1.0).delta(0.3) == BOUND.profile(alone, 1.0).delta(0.3)
    assert isinstance(BOUND.profile(setting(Budgets([1.0], [1], [1e-9])), 1.0), LocalProfile)


def test_many_levels():
    epsilons = np.linspace(0.1, 1.0, 60)
    question = setting(Budgets(epsilons, [1, 2000] * 30, np.full(60, 1e-11)))
    found = BOUND.level_epsilons(question, 1e-6, np.array([0, 1, 59]))
    assert found.upper[0] == pytest.approx(0.1, abs=1e-5)
    assert found.upper[1] < 0.1 * float(epsilons[1])
    assert found.upper[2] == BOUND.profile(question, 1.0).epsilon(1e-6).upper
    with pytest.raises(OutOfRegime, match="100 levels"):
        BOUND.level_epsilons(
            setting(Budgets(np.linspace(0.1, 1.0, 101), [2] * 101, np.full(101, 1e-9))), 1e-6, np.arange(101)
        )


def test_refusals():
    with pytest.raises(OutOfRegime, match="delta0 > 0"):
        BOUND.profile(setting(Budgets([1.0], [10])), 1.0)
    with pytest.raises(OutOfRegime, match="seen = users"):
        BOUND.profile(setting(Budgets([1.0, 2.0], [10, 10], [1e-9, 1e-9]), seen="users"), 1.0)
