"""The normal divergence against Arb balls: 400 digits, so that nothing cancels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb, ctx

from shuffledp.numerics import tails
from shuffledp.numerics.floats import EPS
from shuffledp.numerics.tails import largest_shift, mills_ratio, normal_divergence
from tests.work import calls_of

BITS = 2600  # values down to 1e-320, of terms that cancel to that


@pytest.fixture(autouse=True)
def precise():
    before, ctx.prec = ctx.prec, BITS
    yield
    ctx.prec = before


def exact(epsilon: float, mu: float) -> arb:
    e, m, root = arb(epsilon), arb(mu), arb(2).sqrt()

    def below(z: arb) -> arb:
        return (-z / root).erfc() / 2

    return below(m / 2 - e / m) - e.exp() * below(-m / 2 - e / m)


def points() -> list[tuple[float, float]]:
    """Shifts from 1e-12 to 90, budgets around every regime: mean below, at and far beyond the threshold."""
    random = np.random.default_rng(5)
    found = []
    for mu in 10 ** random.uniform(-12, math.log10(90), 700):
        epsilon = random.choice(
            [0.0, 10 ** random.uniform(-12, 2.84), mu * random.uniform(0, 37), mu * mu * random.uniform(0, 1)]
        )
        if epsilon <= 700.0 and epsilon / mu - mu / 2 < 37.5:
            found.append((float(epsilon), float(mu)))
    return found


def test_encloses_and_is_narrow():
    asked = points()
    assert len(asked) > 400
    found = normal_divergence(*np.array(asked).T)
    for (epsilon, mu), low, high in zip(asked, found.lower, found.upper, strict=True):
        value = exact(epsilon, mu)
        assert arb(float(low)) <= value, (epsilon, mu)
        assert value <= arb(float(high)), (epsilon, mu)
        if high > 1e-300:
            assert high - low <= 6e-12 * high, (epsilon, mu)


@pytest.mark.parametrize("seam", [(0.5, 0.5), (2.0, 0.5), (12.0 * 0.3 + 0.045, 0.3), (1e-3, 2.0 + 1e-3)])
def test_no_gap_where_the_form_changes(seam):
    epsilon, mu = seam
    for factor in (1 - 1e-9, 1.0, 1 + 1e-9):
        found = normal_divergence(epsilon, mu * factor)
        assert arb(float(found.lower)) <= exact(epsilon, mu * factor) <= arb(float(found.upper))


def test_ends():
    found = normal_divergence([0.0, 1.0, 0.0, 1.0, 700.0, 1.0], [0.0, 0.0, math.inf, math.inf, 1e-300, 1e-3])
    assert found.lower.tolist() == [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]
    assert found.upper[:4].tolist() == [0.0, 0.0, 1.0, 1.0]
    assert (found.upper[4:] <= 1e-319).all()
    assert (found.upper[4:] > 0.0).all()


@pytest.mark.costly
def test_mills_ratio_to_its_word():
    worst = 0.0
    for t in np.concatenate((np.linspace(-1, 40, 800), np.geomspace(1e-12, 1e8, 200))):
        u = arb(float(t)) / arb(2).sqrt()
        value = (arb.pi() / 2).sqrt() * (u * u).exp() * u.erfc() if t < 40 else None
        if value is not None:
            worst = max(worst, float(abs((arb(float(mills_ratio(t))) - value) / value).mid()))
        else:
            assert 1 / t - 1 / t**3 <= float(mills_ratio(t)) * (1 + 8 * EPS) <= (1 / t) * (1 + 16 * EPS)
    assert worst < 12 * EPS  # 40 are charged


@pytest.mark.parametrize("delta", [1e-300, 1e-100, 1e-10, 0.3, 0.999])
@pytest.mark.parametrize("epsilon", [0.0, 1e-10, 1.0, 30.0, 700.0])
def test_largest_shift_is_on_the_safe_side_and_close(epsilon, delta):
    mu = float(largest_shift(epsilon, delta))
    assert exact(epsilon, mu) <= arb(delta)
    assert exact(epsilon, mu * (1 + 1e-10)) > arb(delta)


def test_largest_shift_of_nothing():
    assert largest_shift([0.0, 1.0], 0.0).tolist() == [0.0, 0.0]
    assert largest_shift(np.ones((2, 3)), 1e-6).shape == (2, 3)


@pytest.mark.parametrize("mu", [math.nan, -1.0, -math.inf])
def test_of_what_is_no_distance_nothing_is_known(mu):
    """It was told to cost nothing."""
    found = normal_divergence(1.0, mu)
    assert (float(found.lower), float(found.upper)) == (0.0, 1.0)


def test_the_largest_shift_is_that_of_a_plain_bisection(monkeypatch):
    """Newton's method only says where no look is needed: the double found is the same."""
    rng = np.random.default_rng(7)
    epsilon = np.concatenate((10.0 ** rng.uniform(-6.0, 2.5, 300), [0.0, 0.5, 700.0, 0.3]))
    delta = np.concatenate((10.0 ** rng.uniform(-300.0, -0.01, 150), 10.0 ** -rng.uniform(0.1, 12.0, 150)))
    delta = np.concatenate((delta, [1e-6, 0.0, 1e-9, 0.999]))
    found = largest_shift(epsilon, delta)
    evaluated = calls_of(monkeypatch, tails, "normal_divergence")
    assert largest_shift(1.0, 1e-8) > 0.0
    assert len(evaluated) <= 40  # 63 by bisection alone
    monkeypatch.setattr(tails, "_around_shift", lambda e, d: (np.zeros(e.shape), np.full(e.shape, np.inf)))
    assert (largest_shift(epsilon, delta) == found).all()
