"""exp, expm1 and log against 300 digits: the nearest double, whoever decides it."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shuffledp.numerics import functions
from shuffledp.numerics.functions import (
    exp_lower,
    exp_rounded,
    expm1_rounded,
    interpolated,
    log_rounded,
    logs_rounded,
    steps_between,
)

pytestmark = pytest.mark.machine
LN2 = math.log(2.0)
EDGES = [0.0, -0.0, 5e-324, 1e-310, 1e-154, -1e-160, 2.0**-54, -(2.0**-53), 0.005415212348124573, 700.0, 709.0, 709.7]
EDGES += [-599.9, -600.1, -707.9, -708.5, -740.0, -745.1, *(step * LN2 / 128 for step in range(-40, 40))]


def nearest(function, x: float) -> float:
    """The double nearest to a value of 700 digits; a quotient of whole numbers is rounded once, small ones too."""
    with mpmath.workdps(700):
        value = function(mpmath.mpf(x))
        mantissa, exponent = mpmath.mpf(abs(value)).man_exp
        size = mantissa << exponent if exponent >= 0 else mantissa / (1 << -exponent)
        return math.copysign(size, value)


def spread() -> np.ndarray:
    rng = np.random.default_rng(29)
    sizes = 10.0 ** rng.uniform(-320, 0, 400)
    parts = [rng.uniform(0, 709, 800), rng.uniform(-700, 0, 400), rng.uniform(-0.02, 0.02, 800), sizes, -sizes]
    return np.concatenate([*parts, EDGES, np.nextafter(EDGES, 9.0)])


@pytest.mark.costly
@pytest.mark.parametrize(("ours", "theirs"), [(exp_rounded, mpmath.exp), (expm1_rounded, mpmath.expm1)])
def test_the_nearest_double_is_returned(ours, theirs):
    points = spread()
    assert points.size > functions._FEW
    expected = [nearest(theirs, x) for x in points.tolist()]
    assert ours(points).tolist() == expected


@given(st.floats(-600, 709))
@example(0.6552406941230733)
@example(1.0)
def test_a_number_alone_gets_the_same_double(x):
    """One is looked up in decimal, many are computed in pairs of doubles."""
    for function in (exp_rounded, expm1_rounded):
        assert float(function(x)) == function(np.full(9, x))[3]


@pytest.mark.costly("True")
@pytest.mark.parametrize("less_one", [False, True])
def test_the_pairs_are_good_to_less_than_is_charged(less_one):
    points = spread()
    points = points[(points >= functions._LEAST) & (points <= functions._MOST) & (np.abs(points) > 1e-140)]
    high, low = functions._pair(points, less_one)
    with mpmath.workdps(300):
        for x, one, two in zip(points.tolist(), high.tolist(), low.tolist(), strict=True):
            exact = (mpmath.expm1 if less_one else mpmath.exp)(mpmath.mpf(x))
            assert abs(mpmath.mpf(one) + mpmath.mpf(two) - exact) <= abs(exact) * functions._DOUBT / 16


@given(st.floats(5e-324, 1.7e308))
@example(1.0)
@example(math.nextafter(1.0, 0.0))
@example(math.nextafter(1.0, 2.0))
def test_log_is_the_nearest_double(x):
    assert log_rounded(x) == nearest(mpmath.log, x)


def test_ends_of_the_range():
    points = [0.0, 710.1, -746.1, 1e300, -1e300] * 2  # in pairs of doubles; below one by one, in decimal
    assert exp_rounded(points).tolist() == [1.0, math.inf, 0.0, math.inf, 0.0] * 2
    assert expm1_rounded(points).tolist() == [0.0, math.inf, -1.0, math.inf, -1.0] * 2
    assert [float(exp_rounded(x)) for x in (-1e300, 1e300)] == [0.0, math.inf]
    assert [float(expm1_rounded(x)) for x in (-1e300, 1e300)] == [-1.0, math.inf]
    assert exp_rounded(np.zeros((2, 0))).shape == (2, 0)
    assert exp_rounded(np.zeros((3, 5))).shape == (3, 5)


def test_more_numbers_than_fit_into_a_chunk():
    x = np.linspace(0.0, 5.0, 3 * functions._CHUNK + 7)
    whole = expm1_rounded(x)
    assert np.array_equal(whole, np.concatenate([expm1_rounded(x[:11]), expm1_rounded(x[11:])]))
    assert (np.diff(whole) > 0.0).all()


def test_steps_and_lines():
    steps = steps_between(2.0, 32.0, 5)
    assert steps.tolist() == pytest.approx([2.0, 4.0, 8.0, 16.0, 32.0], rel=1e-15)
    assert (steps[0], steps[-1]) == (2.0, 32.0)
    at, values = np.array([1.0, 2.0, 4.0]), logs_rounded([1.0, 3.0, 2.0])
    x = np.array([0.0, 1.0, 1.25, 2.0, 3.0, 4.0, 9.0])
    assert interpolated(x, at, values).tolist() == pytest.approx(np.interp(x, at, values).tolist(), rel=1e-15)


@pytest.mark.parametrize("x", [0.0, 1e-6, 0.1, 0.25, 1.0, 2.0, math.pi, 30.0, 699.9, 1000.0])
def test_the_lower_bound_of_the_exponential_is_one_and_is_close(x: float):
    found = exp_lower(Fraction(x))
    with mpmath.workdps(700):
        exact = mpmath.exp(mpmath.mpf(x))
        below = 1 - mpmath.mpf(found.numerator) / mpmath.mpf(found.denominator) / exact
        assert 0 <= below < mpmath.mpf(2) ** -200
    assert exp_lower(Fraction(0)) == 1
