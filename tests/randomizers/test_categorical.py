from __future__ import annotations

import itertools

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import secure_random, simulation_random
from shuffledp.randomizers import LocalRandomizer, RandomizedResponse

EPSILONS = [
    0.0,
    1e-300,
    1e-19,
    1e-9,
    1e-3,
    0.1,
    0.5,
    float(np.log(2)),
    0.6931471805599454,
    1.0,
    1.0986122886681098,
]
EPSILONS += [2.0, 5.0, 10.0, 30.0, 43.0, 44.0, 44.5, 45.0, 65.0, 100.0, 300.0, 700.0]
CATEGORIES = [2, 3, 4, 10, 1000, 10**9]


def assert_private(k: int, epsilon0: float) -> None:
    """The drawn law, an exact fraction, is epsilon0-LDP and as close to the formula as promised."""
    keep = int(RandomizedResponse(k).keep_thresholds(epsilon0))
    with mpmath.workdps(400):
        power = mpmath.exp(mpmath.mpf(epsilon0))
        kept, blanket = mpmath.mpf(keep) / 2**64, mpmath.mpf(2**64 - keep) / 2**64
        assert kept + blanket / k <= power * (blanket / k)  # right symbol against a wrong one
        gamma = k / (power + k - 1)
        assert 0 <= blanket - gamma <= mpmath.mpf(2) ** -45 * min(gamma, 1 - gamma) + mpmath.mpf(2) ** -64


@pytest.mark.parametrize(("k", "epsilon0"), list(itertools.product(CATEGORIES, EPSILONS)))
def test_drawn_law_is_private_exactly(k, epsilon0):
    assert_private(k, epsilon0)


@given(st.integers(2, 10**9), st.floats(0, 700))
def test_drawn_law_is_private_everywhere(k, epsilon0):
    assert_private(k, epsilon0)


@given(st.integers(2, 10**6))
def test_drawn_law_is_private_where_the_rounding_changes_side(k):
    # keep = 1/2 at e^epsilon0 = k + 1
    for epsilon0 in (np.log1p(k), np.nextafter(np.log1p(k), 0), np.nextafter(np.log1p(k), 99)):
        assert_private(k, float(epsilon0))


def test_zero_budget_never_keeps():
    assert int(RandomizedResponse(3).keep_thresholds(0.0)) == 0
    assert RandomizedResponse(3).sampled_law(0.0).blanket == 1.0


@given(st.integers(2, 10**9), st.floats(0, 700))
def test_sampled_law_is_the_threshold(k, epsilon0):
    rr = RandomizedResponse(k)
    law, threshold = rr.sampled_law(epsilon0), int(rr.keep_thresholds(epsilon0))
    assert float(law.keep) == pytest.approx(threshold / 2**64, rel=2**-52)
    assert float(law.blanket) == pytest.approx((2**64 - threshold) / 2**64, rel=2**-52)


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("epsilon0", [0.0, 0.3, 2.0, 700.0])
def test_channel_and_blanket_say_the_same(k, epsilon0):
    rr = RandomizedResponse(k)
    channel, pair = rr.channel(epsilon0), rr.pair_blankets(epsilon0)[0]
    assert channel.sum(axis=1) == pytest.approx(1.0, rel=1e-14)
    assert pair.masses.sum() == pytest.approx(1.0, rel=1e-15)
    assert pair.masses.size == min(k, 3)
    assert pair.gamma == pytest.approx(k * channel[0, 1], rel=1e-14)
    assert (pair.masses * pair.ratios0)[:2] == pytest.approx(channel[0, :2], rel=1e-14)
    assert (pair.masses * pair.ratios1)[:2] == pytest.approx(channel[1, :2], rel=1e-14)
    assert pair.masses @ pair.ratios0 == pytest.approx(1.0, rel=1e-14)
    assert channel[0, 0] / channel[0, 1] == pytest.approx(np.exp(epsilon0), rel=1e-12)


@pytest.mark.parametrize(("k", "epsilon0"), [(2, 0.0), (2, 0.7), (3, 1.0), (5, 2.0), (7, 0.1)])
def test_sampler_follows_the_channel(k, epsilon0):
    # Seeded; each chi-square fails by chance once in 10,000 fresh seeds.
    rr, random = RandomizedResponse(k), simulation_random(k)
    for record, law in enumerate(rr.channel(epsilon0)):
        reports = rr.randomize(np.full(40_000, record), epsilon0, random)
        assert chisquare(np.bincount(reports, minlength=k), 40_000 * law).pvalue > 1e-4


def test_every_user_has_their_own_budget():
    rr, random = RandomizedResponse(4), simulation_random(8)
    n = 400_000  # several chunks
    epsilons = np.tile([0.0, 1.0, 3.0, 700.0], n // 4)
    reports = rr.randomize(np.ones(n, dtype=np.int64), epsilons, random)
    for position, epsilon0 in enumerate((0.0, 1.0, 3.0)):
        counts = np.bincount(reports[position::4], minlength=4)
        assert chisquare(counts, n / 4 * rr.channel(epsilon0)[1]).pvalue > 1e-4
    assert (reports[3::4] == 1).all()


def test_records_are_not_changed():
    records = np.zeros(100, dtype=np.int64)
    RandomizedResponse(2).randomize(records, 0.0, secure_random())
    assert not records.any()


def test_empty_and_huge_domain():
    assert RandomizedResponse(2).randomize([], 1.0, secure_random()).shape == (0,)
    reports = RandomizedResponse(10**9).randomize([999_999_999] * 50, 0.0, secure_random())
    assert (reports < 10**9).all()
    with pytest.raises(InvalidInput, match="too large"):
        RandomizedResponse(10**9).channel(1.0)


def test_names_and_protocol():
    assert RandomizedResponse(2).name == "rr"
    assert RandomizedResponse(10).name == "krr:10"
    assert RandomizedResponse(k=3) == RandomizedResponse(np.int64(3))
    assert isinstance(RandomizedResponse(2), LocalRandomizer)


@pytest.mark.parametrize("k", [1, 0, -3, 10**9 + 1, 2.0, True, "3"])
def test_bad_k(k):
    with pytest.raises(InvalidInput, match="whole number k from 2"):
        RandomizedResponse(k)


@pytest.mark.parametrize(
    ("records", "epsilon0", "message"),
    [
        ([0, 1, 3], 1.0, "record in row 3 is no category"),
        ([0, -1], 1.0, "record in row 2 is no category"),
        ([0.0, 1.0], 1.0, "whole numbers from 0 to 2"),
        ([[0, 1]], 1.0, "one-dimensional"),
        ([0, 1], [1.0], "2 records need as many budgets"),
        ([0, 1], [1.0, -1.0], "epsilon0 in row 2 .* got -1.0"),
        ([0, 1], float("nan"), "epsilon0 must be a finite"),
        ([0, 1], float("inf"), "epsilon0 must be a finite"),
    ],
)
def test_bad_records(records, epsilon0, message):
    with pytest.raises(InvalidInput, match=message):
        RandomizedResponse(3).randomize(records, epsilon0, secure_random())
