"""What dummies cost: the formula against variances written out, and against estimates of simulated reports."""

from __future__ import annotations

import math

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.dummies import WHOLE
from shuffledp.planning.question import Moments

R5 = sdp.RandomizedResponse(5)


def people(n: int) -> sdp.Budgets:
    return sdp.Budgets([0.5, 1.0, 4.0], [round(0.54 * n), round(0.37 * n), n - round(0.54 * n) - round(0.37 * n)])


@pytest.mark.parametrize(("n", "factor"), [(242, 1.38), (1000, 1.10), (10_000, 1.011), (10**6, 1.000)])
def test_the_prices_of_the_theory(n, factor):
    """They are those of a category that nobody holds; at a share of .1 dummies cost less."""
    price = sdp.dummies_price(R5, people(n), sdp.Uniform(172))
    assert price.factor == pytest.approx(factor, abs=0.006 if n < 10_000 else 0.0006)
    tenth = sdp.dummies_price(R5, people(n), sdp.Uniform(172), Moments(0.1, 0.1, binary=True))
    assert 1.0 < tenth.factor < price.factor


def test_a_share_written_out():
    budgets, m = people(1000), 172
    price = sdp.dummies_price(R5, budgets, sdp.Uniform(m))
    variance, told = 0.0, 0.0
    for epsilon0, count in zip(budgets.epsilons.tolist(), budgets.counts.tolist(), strict=True):
        wrong = 1.0 / (math.exp(epsilon0) + 4.0)
        variance += count * wrong * (1.0 - wrong)
        told += count * (math.exp(epsilon0) - 1.0) * wrong
    assert price.without == pytest.approx(math.sqrt(variance) / told, rel=1e-9)
    assert price.total == pytest.approx(math.sqrt(variance + m * 0.2 * 0.8) / told, rel=1e-9)


def test_a_mean_written_out_and_the_laplace_law_is_cheaper():
    budgets, bit, law = sdp.Budgets([1.0], [500]), sdp.OneBit(0.0, 100.0), sdp.DiscreteLaplace(60, 1.5)
    truth = 1.0 / (1.0 + math.exp(-1.0))
    told, own = 500 * (2.0 * truth - 1.0), 500 * truth * (1.0 - truth)
    spread = sum((j - 30) ** 2 * weight for j, weight in enumerate(law.weights)) / WHOLE
    found = sdp.dummies_price(bit, budgets, law, width=100.0)
    assert found.without == pytest.approx(100.0 * math.sqrt(own) / told, rel=1e-6)
    assert found.total == pytest.approx(100.0 * math.sqrt(own + spread) / told, rel=1e-6)
    uniform = sdp.dummies_price(bit, budgets, sdp.Uniform(315), width=100.0)
    assert uniform.total == pytest.approx(100.0 * math.sqrt(own + 315 / 4) / told, rel=1e-6)
    stated = sdp.dummies_price(bit, budgets, sdp.OnesLaw(law.thresholds), width=100.0)
    assert stated.total == pytest.approx(found.total, rel=1e-12)


def test_the_error_of_simulated_shares():
    """2,000 estimates; the standard deviation is within 5 % of the prediction (3.2 of its standard errors)."""
    family, budgets, m = sdp.RandomizedResponse(4), sdp.Budgets([2.0], [300]), 100
    random = sdp.simulation_random(7)
    found = []
    for _ in range(2000):
        reports = family.randomize(np.full(300, 1), 2.0, random)
        fakes = family.randomize(np.zeros(m, dtype=np.int64), 0.0, random)
        own, other = (float(p) for p in family.support_law(2.0))
        ones = int((reports == 0).sum() + (fakes == 0).sum())
        found.append((ones - m / 4 - 300 * other) / (300 * (own - other)))
    price = sdp.dummies_price(family, budgets, sdp.Uniform(m))
    assert np.std(found) == pytest.approx(price.total, rel=0.05)
    assert abs(np.mean(found)) < 4.0 * price.total / math.sqrt(2000)


def test_refusals():
    with pytest.raises(sdp.InvalidInput, match="take uniform"):
        sdp.dummies_price(R5, people(100), sdp.DiscreteLaplace(60, 1.5))
    with pytest.raises(sdp.InvalidInput, match="no report carries information"):
        sdp.dummies_price(R5, sdp.Budgets([0.0], [10]), sdp.Uniform(5))
