"""Binomial masses and tails against Arb balls: relative accuracy 1e-10 down to 1e-300, n to 1e12."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from flint import arb

from shuffledp.numerics import counts
from tests import arb_oracles

RELATIVE = 1e-10
SMALLEST = 1e-300


def points() -> list[tuple[int, int, float]]:
    """(a, n, p): corners, then random ones around the mean out to the deepest tails."""
    found = [
        (a, n, p)
        for n in (1, 2, 3, 1000, 10**12)
        for p in (1e-300, 1e-12, 0.5, 1 - 2.0**-53, 1 - 1e-9)
        for a in sorted({0, 1, 2, n // 2, n - 1, n, n + 1})
    ]
    rng = random.Random(20261120)
    for _ in range(100):
        n = int(10 ** rng.uniform(0, 12))
        p = rng.choice([rng.random(), 0.5, 10 ** rng.uniform(-12, -1), 1 - 10 ** rng.uniform(-12, -1)])
        spread = math.sqrt(n * p * (1 - p)) + 1
        a = round(n * p + rng.choice([-1, 1]) * spread * rng.choice([1, 6, 36]) * rng.random())
        found.append((min(max(a, 0), n + 1), n, p))
    # the middle of a skewed law: continued fractions and uniform expansions are weakest around the mean
    for n in (10**9, 10**10, 739 * 10**9, 10**12):
        for mean in (3e4, 1e6, 3e7, 1e9):
            for z in (-0.2, -0.01, 0.0, 0.03):
                p = mean / n * 1.0123
                if p < 0.2:
                    a = round(n * p + z * math.sqrt(n * p))
                    found += [(a, n, p), (n - a, n, 1 - p)]
    found += [(10**12 // 2 + shift, 10**12, 0.5) for shift in (-(10**7), -1, 0, 1, 18 * 10**6, 18_400_000)]
    return found


def wrong(value: float, ball: arb) -> bool:
    """Whether a double misses an enclosure by more than the promised relative error."""
    if ball < SMALLEST:  # below the promise: still never negative, never above what it should vanish under
        return not 0.0 <= value <= SMALLEST * (1 + RELATIVE)
    assert ball.rel_accuracy_bits() > 45, "the oracle itself is not sharp here"
    return not abs(arb(value) / ball - 1) < RELATIVE


POINTS = points()


@pytest.mark.costly
@pytest.mark.one_in(2)
@pytest.mark.parametrize(("name", "oracle"), [("sf", arb_oracles.sf), ("cdf", arb_oracles.cdf)])
def test_tail(name, oracle):
    a, n, p = (np.array(column, dtype=np.float64) for column in zip(*POINTS, strict=True))
    values = np.asarray(getattr(counts, name)(a, n, p))
    assert values.shape == a.shape
    assert np.all(np.isfinite(values))
    bad = [
        (point, float(value), oracle(*point).str(17))
        for point, value in zip(POINTS, values, strict=True)
        if wrong(float(value), oracle(*point))
    ]
    assert not bad, f"{len(bad)} of {len(POINTS)}: {bad[:5]}"


def test_log_pmf():
    inside = [point for point in POINTS if point[0] <= point[1]]
    k, n, p = (np.array(column, dtype=np.float64) for column in zip(*inside, strict=True))
    values = np.asarray(counts.log_pmf(k, n, p))
    bad = []
    for point, value in zip(inside, values, strict=True):
        ball = arb_oracles.pmf(*point)
        if ball < SMALLEST:
            right = value <= math.log(SMALLEST) * (1 - 1e-12)
        else:  # an absolute error in the logarithm is a relative error in the mass
            right = bool(abs(arb(float(value)).exp() / ball - 1) < RELATIVE)
        if not right:
            bad.append((point, float(value), ball.log().str(17)))
    assert not bad, f"{len(bad)} of {len(inside)}: {bad[:5]}"


def test_scalars_and_broadcasting():
    assert float(counts.sf(0.0, 10.0, 0.3)) == 1.0
    assert float(counts.sf(11.0, 10.0, 0.3)) == 0.0
    assert float(counts.cdf(10.0, 10.0, 0.3)) == 1.0
    grid = counts.sf(np.arange(5.0)[:, None], 10.0, np.array([0.1, 0.2]))
    assert np.asarray(grid).shape == (5, 2)


def test_power_series_and_logarithms_are_one_tail(monkeypatch):
    """Both ways of writing the integrand, on either side of where one gives way to the other."""
    rng = np.random.default_rng(3)
    n = np.floor(10.0 ** rng.uniform(1.5, 9.0, 400))
    p = 10.0 ** rng.uniform(-3.0, -0.001, 400)
    a = np.clip(np.floor(n * p + rng.uniform(0.0, 9.0, 400) * np.sqrt(n * p * (1.0 - p)) + 1.0), 1.0, n)
    c = np.floor(10.0 ** rng.uniform(0.0, 9.0, 400))
    failures = np.floor((c + 1.0) * rng.uniform(0.2, 0.5, 400))
    short = counts.sf(a, n, p), counts.fair_tail_ratio(failures, c)
    monkeypatch.setattr(counts, "_SHORT", 0.0)
    long = counts.sf(a, n, p), counts.fair_tail_ratio(failures, c)
    for one, other in zip(short, long, strict=True):
        assert np.allclose(one, other, rtol=2e-12, atol=0.0)
    assert not (short[0] == long[0]).all()
