"""Every sampler against its stated law."""

from __future__ import annotations

import math
from collections import Counter

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, norm

from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import secure_random, simulation_random
from shuffledp.randomizers import (
    HadamardResponse,
    LocalHashing,
    RandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
)
from shuffledp.randomizers.base import FrequencyOracle
from shuffledp.randomizers.wire import decode, encode
from tests.randomizers.drawing import FALSE_ALARM, RUN, SMALL, report_keys, report_law

EDGES = [0.0, 1e-300, 1e-19, 1e-9, 1e-3, 0.1, 0.5493, 1.0, 3.0, 20.0, 43.0, 44.4, 45.0, 100.0, 700.0]
SHARES = [(LocalHashing(10, 2), 0.5), (LocalHashing(10, 64), 1 / 64), (HadamardResponse(10), 0.5)]
SHARES += [(SubsetSelection(10, d), d / 10) for d in (1, 3, 9)] + [(SubsetSelection(10**9, 3), 3e-9)]


def assert_mixture_private(family, share, epsilon0):
    """The drawn law, an exact fraction, has a blanket of at least gamma: it is epsilon0-LDP, and barely more."""
    keep = int(family.keep_thresholds(epsilon0))
    with mpmath.workdps(400):
        f = mpmath.mpf(1) / round(1 / share) if share in (0.5, 1 / 64) else mpmath.mpf(family.size) / family.k
        kept, blanket = mpmath.mpf(keep) / 2**64, mpmath.mpf(2**64 - keep) / 2**64
        assert kept / f + blanket <= mpmath.exp(mpmath.mpf(epsilon0)) * blanket
        gamma = 1 / (1 + f * mpmath.expm1(mpmath.mpf(epsilon0)))
        assert 0 <= blanket - gamma <= mpmath.mpf(2) ** -45 * min(gamma, 1 - gamma) + mpmath.mpf(2) ** -64
        law = family.support_law(epsilon0)
        assert float(law.own) == pytest.approx(float(kept + blanket * f), rel=1e-15)


@pytest.mark.parametrize("epsilon0", EDGES)
@pytest.mark.parametrize(("family", "share"), SHARES, ids=lambda value: getattr(value, "name", ""))
def test_drawn_mixtures_are_private_exactly(family, share, epsilon0):
    assert_mixture_private(family, share, epsilon0)


@settings(deadline=None)
@given(st.sampled_from(SHARES), st.floats(0, 700))
def test_drawn_mixtures_are_private_everywhere(case, epsilon0):
    assert_mixture_private(*case, epsilon0)


@settings(deadline=None)
@given(st.booleans(), st.one_of(st.sampled_from(EDGES), st.floats(0, 700)))
def test_drawn_bits_are_private_and_a_degradation_of_the_stated_ones(optimized, epsilon0):
    family = UnaryEncoding(10, optimized)
    flips = int(family.flip_thresholds(epsilon0))
    with mpmath.workdps(400):
        power = mpmath.exp(mpmath.mpf(epsilon0))
        drawn = mpmath.mpf(flips) / 2**64
        stated = 1 / (1 + (power if optimized else mpmath.sqrt(power)))
        assert 0 < drawn <= mpmath.mpf(1) / 2
        assert ((1 - drawn) / drawn) ** (1 if optimized else 2) <= power
        # a channel on each bit turns the stated chances (p, q) into the drawn ones: no likelihood ratio is larger
        p, own = (mpmath.mpf(1) / 2,) * 2 if optimized else (1 - stated, 1 - drawn)
        assert own / drawn <= p / stated
        assert (1 - own) / (1 - drawn) >= (1 - p) / (1 - stated)
        assert 0 <= drawn - stated <= stated * mpmath.mpf(2) ** -45 + mpmath.mpf(2) ** -64
        law = family.support_law(epsilon0)
        assert (float(law.own), float(law.other)) == pytest.approx((float(own), float(drawn)), rel=1e-15)


@pytest.mark.parametrize("family", RUN.values(), ids=RUN)
def test_zero_budget_says_nothing(family):
    law = family.support_law(0.0)
    assert law.own == law.other


@pytest.mark.costly(
    but=(
        "False-hadamard",
        "False-krr",
        "True-hadamard",
    )
)
@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("own_budgets", [False, True])
def test_reports_follow_the_stated_law(name, own_budgets):
    # Seeded chi-square over all reports: a fresh seed fails each with probability 1e-6.
    family, random, n = SMALL[name], simulation_random(len(name)), 60_000
    epsilons = (0.0, 1.0, 2.5)
    for record in (0, family.k - 1):
        budgets = np.repeat(epsilons, n)
        records = np.full(n, record)
        if own_budgets:
            mixed = np.random.default_rng(0).permutation(budgets)
            reports = family.randomize(np.full(3 * n, record), mixed, random)
            parts = [reports[mixed == epsilon0] for epsilon0 in epsilons]
        else:
            parts = [family.randomize(records, epsilon0, random) for epsilon0 in epsilons]
        for epsilon0, part in zip(epsilons, parts, strict=True):
            law = report_law(name, record, epsilon0)
            counts = Counter(report_keys(name, part))
            assert set(counts) <= set(law)
            observed = np.array([counts[key] for key in law])
            assert chisquare(observed, n * np.array(list(law.values()))).pvalue > FALSE_ALARM


@pytest.mark.parametrize("own_budgets", [False, True])
@pytest.mark.parametrize("family", RUN.values(), ids=RUN)
def test_counts_of_support_have_the_stated_mean_and_variance(family, own_budgets):
    # Seeded; 30 categories at once: the normal quantile is of 1e-6/30, both sides. Several chunks of rows.
    n, k = 70_000, family.k
    data = np.random.default_rng(1)
    records = np.minimum(data.geometric(0.3, n) - 1, k - 2)  # the last category is empty
    budgets = data.choice([0.2, 1.0, 4.0], n) if own_budgets else np.float64(1.3)
    reports = family.randomize(records, budgets, simulation_random(3))
    law = family.support_law(np.broadcast_to(budgets, (n,)))
    for weights in (None, law.own + 0.5):
        a = np.ones(n) if weights is None else weights
        counts = family.support_counts(reports, weights)
        mean = np.full(k, np.sum(a * law.other)) + np.bincount(records, a * (law.own - law.other), k)
        noise = a**2 * law.other * (1 - law.other)
        variance = np.sum(noise) + np.bincount(records, a**2 * law.own * (1 - law.own) - noise, k)
        z = (counts - mean) / np.sqrt(variance)
        assert np.abs(z).max() < norm.isf(FALSE_ALARM / 2 / k)
        assert np.sum(z**2) < 120  # loosely: chi-square with about 30 degrees of freedom exceeds 120 once in 1e12
    assert (family.support_counts(reports) % 1 == 0).all()


@pytest.mark.parametrize("family", RUN.values(), ids=RUN)
def test_weighted_counts_are_counts_of_repeated_reports(family):
    reports = family.randomize(np.arange(2000) % 30, 2.0, simulation_random(4))
    times = np.arange(2000) % 3
    repeated = family.support_counts(np.repeat(reports, times, axis=0))
    assert family.support_counts(reports, times.astype(float)) == pytest.approx(repeated, rel=1e-12)
    few = family.support_counts(reports[:5], np.ones(5))
    assert few == pytest.approx(family.support_counts(reports[:5]), rel=1e-12)


@pytest.mark.parametrize("family", [*RUN.values(), RandomizedResponse(2), HadamardResponse(2), LocalHashing(2, 8)])
def test_a_huge_budget_supports_the_record(family):
    if family.name.startswith("oue"):
        return  # its own bit is a fair one at every budget
    records = np.arange(300) % family.k
    reports = family.randomize(records, 700.0, secure_random())
    for row, record in enumerate(records[:40]):
        assert family.support_counts(reports[row : row + 1])[record] == 1


BUDGETS = st.sampled_from([0.0, 1e-9, 0.5, 1.0, 5.0, 40.0, 700.0])
MAKERS = [
    RandomizedResponse,
    UnaryEncoding,
    lambda k: UnaryEncoding(k, optimized=False),
    LocalHashing,
    HadamardResponse,
    SubsetSelection,
]


@pytest.mark.costly
@settings(deadline=None, max_examples=150)
@given(st.data())
def test_any_shape_and_any_budgets(data):
    maker, k = data.draw(st.sampled_from(MAKERS)), data.draw(st.integers(2, 70))
    n = data.draw(st.integers(0, 12))
    budgets = data.draw(st.one_of(BUDGETS, st.lists(BUDGETS, min_size=n, max_size=n)))
    users = np.ones(np.size(budgets)) if np.size(budgets) else 1.0
    family = maker(k).for_budgets(budgets if np.size(budgets) else 1.0, users)
    assert isinstance(family, FrequencyOracle)
    assert family.for_budgets(3.0, 1) == family
    reports = family.randomize(
        data.draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n)), budgets, secure_random()
    )
    assert reports.shape[0] == n
    counts = family.support_counts(reports)
    assert counts.shape == (k,)
    assert ((counts >= 0) & (counts <= n) & (counts % 1 == 0)).all()
    law = family.support_law(budgets)
    assert ((law.own >= law.other) & (law.other > 0) & (law.own <= 1)).all()
    again = decode(encode(reports, family), family)
    assert again.dtype == reports.dtype
    assert (again == reports).all()


@pytest.mark.parametrize("maker", MAKERS)
def test_a_million_categories(maker):
    k, records = 10**6, np.array([0, 999_999, 17])
    family = maker(k).for_budgets(3.0, 3)
    reports = family.randomize(records, [3.0, 1.0, 700.0], secure_random())
    counts = family.support_counts(reports)
    assert counts.shape == (k,)
    assert (decode(encode(reports, family), family) == reports).all()
    if not family.name.startswith("oue"):
        assert counts[17] >= 1


@pytest.mark.parametrize("family", [*RUN.values()], ids=RUN)
@pytest.mark.parametrize(
    ("records", "epsilon0", "message"),
    [
        ([0, 1, 30], 1.0, "record in row 3 is no category"),
        ([0, -1], 1.0, "record in row 2 is no category"),
        ([0.0, 1.0], 1.0, "whole numbers from 0 to 29"),
        ([[0, 1]], 1.0, "one-dimensional"),
        ([0, 1], [1.0], "2 records need as many budgets"),
        ([0, 1], [1.0, -1.0], "epsilon0 in row 2 .* got -1.0"),
        ([0, 1], math.nan, "epsilon0 must be a finite"),
    ],
)
def test_bad_records(family, records, epsilon0, message):
    with pytest.raises(InvalidInput, match=message):
        family.randomize(records, epsilon0, secure_random())


@pytest.mark.parametrize("family", RUN.values(), ids=RUN)
def test_reports_of_another_shape_are_refused(family):
    for reports in (np.zeros((3, 99), dtype=np.uint8), np.zeros(3), np.zeros((2, 2, 2), dtype=np.uint8)):
        with pytest.raises(InvalidInput, match="are they of this task"):
            family.support_counts(reports)


def test_too_many_to_count():
    for maker in (UnaryEncoding, lambda k: SubsetSelection(k, 3)):
        with pytest.raises(InvalidInput, match="up to 16777216 categories can be counted; got 1000000000"):
            maker(10**9).randomize([3], 1.0, secure_random())
    for family in (HadamardResponse(10**9), LocalHashing(10**9, 4), RandomizedResponse(10**9)):
        reports = family.randomize([3], 1.0, secure_random())
        with pytest.raises(InvalidInput, match="up to 16777216 categories can be counted"):
            family.support_counts(reports)


def test_shapes_that_budgets_would_choose():
    records, random = [1, 2], secure_random()
    assert LocalHashing(30).randomize(records, 1.0, random).dtype == np.uint64
    assert SubsetSelection(30).randomize(records, [1.0, 1.0], random).shape == (2, 4)
    for family, word in (
        (LocalHashing(30), "a range g of the hash from 2 to 16"),
        (SubsetSelection(30), "a size d of"),
    ):
        with pytest.raises(InvalidInput, match=f"would choose {word}.*for_budgets"):
            family.randomize(records, [0.1, 3.0], random)
        with pytest.raises(InvalidInput, match=r"for_budgets\(epsilon0, counts\)"):
            family.support_counts(np.zeros(2, dtype=np.uint64))
        with pytest.raises(InvalidInput, match="2 budgets need as many counts"):
            family.for_budgets([1.0, 2.0], [1, 2, 3])
        with pytest.raises(InvalidInput, match="not all 0"):
            family.for_budgets([1.0, 2.0], [0, 0])
    with pytest.raises(InvalidInput, match="power of two from 2 to 1024; got 5; leave g out"):
        LocalHashing(30, 5).randomize(records, 1.0, random)
    with pytest.raises(InvalidInput, match="power of two from 2 to 1024; got 2048"):
        LocalHashing(30, 2048).randomize(records, 1.0, random)


@pytest.mark.parametrize("maker", [LocalHashing, SubsetSelection])
def test_the_fixed_shape_predicts_the_least_variance(maker):
    epsilons, counts = np.array([0.3, 1.0, 3.5]), np.array([500, 300, 200])

    def variance(member):
        law = member.support_law(epsilons)
        return np.sum(counts * law.other * (1 - law.other)) / np.sum(counts * (law.own - law.other)) ** 2

    shapes = [2**r for r in range(1, 10)] if maker is LocalHashing else range(1, 60)
    chosen = maker(60).for_budgets(epsilons, counts)
    assert chosen.mixture
    assert variance(chosen) == pytest.approx(min(variance(maker(60, shape)) for shape in shapes), rel=1e-12)
    one = maker(60).for_budgets([1.0], [7])
    same = one.hash_range(1.0) == maker(60).hash_range(1.0) if maker is LocalHashing else one.size in (15, 16, 17)
    assert same
