"""The best threshold tests on counts of bits, against exact fractions and ball arithmetic."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

from shuffledp.accounting.theorems.count.cover import BitCrowds
from shuffledp.errors import NotConverged
from tests import arb_oracles


def exact_psi(chances: list[Fraction], excess: Fraction) -> Fraction:
    """max_m P(S = m) - excess P(S > m), every m tried."""
    pmf = [Fraction(1)]
    for p in chances:
        pmf = [a * (1 - p) + b * p for a, b in zip([*pmf, Fraction(0)], [Fraction(0), *pmf], strict=True)]
    return max(value - excess * sum(pmf[m + 1 :], Fraction(0)) for m, value in enumerate(pmf))


def log(value: Fraction) -> mpf:
    mp.dps = 40
    return mp.log(mpf(value.numerator) / mpf(value.denominator))


@pytest.mark.parametrize("seed", range(60))
def test_psi_is_enclosed(seed):
    rng = random.Random(seed)
    groups = rng.randint(1, 4)
    chances = np.array([math.exp(-rng.uniform(0.01, rng.choice([1, 8, 60]))) / 2 for _ in range(groups)])
    flipped = np.array([rng.random() < 0.5 for _ in range(groups)])
    counts = np.array([[float(rng.randint(0, 4)) for _ in range(groups)] for _ in range(3)])
    excess = rng.choice([0.0, math.exp(rng.uniform(-12, 3)), math.exp(rng.uniform(3, 40))])
    found = BitCrowds(chances, flipped, counts).best_thresholds(excess)
    for row, own in enumerate(counts):
        bits = [
            1 - Fraction(float(s)) if flip else Fraction(float(s))
            for s, flip, count in zip(chances, flipped, own, strict=True)
            for _ in range(int(count))
        ]
        truth = log(exact_psi(bits, Fraction(excess)))
        assert found.lower[row] <= truth <= found.upper[row]


@pytest.mark.costly("0.5-1000000-0.375", "0.5-1000000000000-0.25", "12.0-1000000-0.375", "4.0-1000000-0.375")
@pytest.mark.parametrize(("n", "p"), [(1000, 0.25), (10**6, 0.375), (10**6, 2.0**-12), (10**9, 0.25), (10**12, 0.25)])
@pytest.mark.parametrize("score", [0.5, 4.0, 12.0])
def test_large_binomials_against_balls(n, p, score):
    """One group: the threshold of the largest value among many about the mean, in ball arithmetic."""
    deviation = math.sqrt(n * p * (1 - p))
    excess = math.expm1(score / deviation)
    found = BitCrowds(np.array([p]), np.array([False]), np.array([[float(n)]])).best_thresholds(excess)
    theta = math.log1p(excess)
    mean = n * p * math.exp(theta) / (1 - p + p * math.exp(theta))
    best = max(
        (arb_oracles.pmf(m, n, p) - arb_oracles.sf(m + 1, n, p) * excess for m in range(int(mean) - 2, int(mean) + 4)),
        key=lambda value: float(value.mid()),
    )
    truth = float(best.log().mid())
    assert found.lower[0] <= truth + 1e-13 * abs(truth)
    assert found.upper[0] >= truth - 1e-13 * abs(truth)
    assert found.upper[0] - found.lower[0] < 1e-9 + 1e-11 * math.sqrt(n)


def test_crowds_are_evaluated_independently_of_their_company():
    """Chunks of unlike variance, and the order of the rows, change nothing but the last digits."""
    rng = np.random.default_rng(5)
    chances, flipped = np.array([0.25, 0.25, 0.5]), np.array([True, False, False])
    counts = np.floor(rng.uniform(0.0, 1.0, (300, 3)) ** 3 * 20_000.0)
    together = BitCrowds(chances, flipped, counts).best_thresholds(0.05)
    for row in range(0, 300, 37):
        alone = BitCrowds(chances, flipped, counts[row : row + 1]).best_thresholds(0.05)
        assert alone.lower[0] <= together.upper[row]
        assert together.lower[row] <= alone.upper[0]
        assert alone.upper[0] == pytest.approx(together.upper[row], abs=1e-8)


def test_nobody_hides_nothing():
    found = BitCrowds(np.array([0.25]), np.array([False]), np.zeros((1, 1))).best_thresholds(3.0)
    assert found.lower[0] <= 0.0 <= found.upper[0] < 1e-12


def test_more_bits_than_doubles_count_are_refused():
    crowd = BitCrowds(np.array([0.25]), np.array([False]), np.array([[2.0**52]]))
    with pytest.raises(NotConverged, match="fewer users"):
        crowd.best_thresholds(0.1)
