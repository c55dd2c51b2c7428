"""Outward arithmetic against exact fractions and mpmath: no result leaves out a number it must contain."""

from __future__ import annotations

import itertools
import math
import random
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from shuffledp.numerics import floats
from shuffledp.numerics.floats import (
    SMALLEST,
    Enclosure,
    Interval,
    few_digits_down,
    few_digits_up,
    next_above,
    next_below,
    round_down,
    round_up,
)

ENDS = [
    *(sign * value for value in (0.1, 1.0, 3.0, 1e-17, 1e300, 1.7e308, 5e-324, 2.2e-308, math.pi) for sign in (1, -1)),
    0.0,
]
FAR = 10**320
"""More than any double: stands for an infinite end."""


def exactly(value: float) -> Fraction:
    return Fraction(value) if math.isfinite(value) else Fraction(math.copysign(FAR, value))


def contains(found: Interval, value: Fraction) -> bool:
    return (found.lower == -math.inf or exactly(found.lower) <= value) and (
        found.upper == math.inf or value <= exactly(found.upper)
    )


def intervals(seed: int, count: int) -> list[Interval]:
    rng = random.Random(seed)
    return [Interval(*sorted((rng.choice(ENDS), rng.choice(ENDS)))) for _ in range(count)]


@pytest.mark.parametrize("seed", range(4))
def test_the_four_operations_contain_every_exact_result(seed):
    for one, two in zip(intervals(seed, 150), intervals(100 + seed, 150), strict=True):
        found = {"+": one + two, "-": one - two, "*": one * two, "/": one / two}
        for a, b in itertools.product((one.lower, one.upper), (two.lower, two.upper)):
            x, y = Fraction(a), Fraction(b)
            exact = {"+": x + y, "-": x - y, "*": x * y}
            if y:
                exact["/"] = x / y
            for sign, value in exact.items():
                assert contains(found[sign], value), (sign, one, two)


def test_a_divisor_that_may_be_zero_leaves_everything_open():
    for divisor in (Interval(0.0, 1.0), Interval(-1.0, 0.0), Interval(-1.0, 1.0), Interval(0.0, 0.0)):
        assert Interval(1.0, 2.0) / divisor == Interval(-math.inf, math.inf)


def test_results_are_as_narrow_as_correct_rounding_allows():
    """One unit to each side, from either end; an exact 0 stays 0, and infinities stay."""
    third = Interval(1.0, 1.0) / 3.0
    assert third == Interval(next_below(1 / 3), next_above(1 / 3))
    assert Interval(0.0, 2.0) * 0.1 == Interval(0.0, next_above(0.2))
    assert Interval(0.0, math.inf) * Interval(0.0, 3.0) == Interval(0.0, math.inf)
    assert Interval(0.25, 0.5) + 0.0 == Interval(0.25, 0.5)
    assert (Interval(-math.inf, 1.0) + Interval(2.0, math.inf)) == Interval(-math.inf, math.inf)
    assert 1.0 - Interval(0.25, 0.5) == Interval(next_below(0.5), next_above(0.75))
    assert 2.0 * Interval(1.0, 1.0) == Interval(1.0, 1.0) * 2.0
    assert contains(1.0 / Interval(3.0, 3.0), Fraction(1, 3))


def test_an_overflow_is_above_the_largest_double_and_below_infinity():
    found = Interval(1.7e308, 1.7e308) * 10.0
    assert found.lower == 1.7976931348623157e308
    assert found.upper == math.inf
    assert (Interval(5e-324, 5e-324) * 0.1).upper > 0.0  # an underflow is no exact 0
    assert (Interval(5e-324, 5e-324) * 0.1).lower <= 0.0


FUNCTIONS = {
    "exp": (mpmath.exp, [-800.0, -745.0, -30.0, -1e-20, 0.0, 1e-300, 0.5, 1.0, 700.0, 720.0]),
    "expm1": (mpmath.expm1, [-800.0, -40.0, -1e-20, 0.0, 5e-324, 1e-9, 0.5, 700.0, 720.0]),
    "log": (mpmath.log, [5e-324, 1e-300, 0.1, 1.0 - 2.0**-53, 1.0, 1.0 + 2.0**-52, 7.0, 1e308]),
    "log1p": (mpmath.log1p, [-1.0 + 2.0**-53, -0.5, -1e-20, 0.0, 5e-324, 1e-9, 3.0, 1e308]),
}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_contain_what_mpmath_says(name):
    function, points = FUNCTIONS[name]
    points = points + [random.Random(7).uniform(0.0, 3.0) for _ in range(50)]
    with mpmath.workdps(60):
        for point in points:
            found, exact = getattr(Interval(point, point), name)(), function(mpmath.mpf(point))
            assert mpmath.mpf(found.lower) <= exact <= mpmath.mpf(found.upper)
            if math.isfinite(found.upper) and abs(exact) > 1e-300:
                assert mpmath.mpf(found.width) <= 2e-15 * abs(exact)
        low, high = sorted(points[:2])
        wide = getattr(Interval(low, high), name)()
        assert wide.lower <= function(mpmath.mpf(low)) <= function(mpmath.mpf(high)) <= wide.upper


def test_functions_at_the_ends_of_their_domains():
    assert Interval(-math.inf, math.inf).exp() == Interval(0.0, math.inf)
    assert Interval(-math.inf, math.inf).expm1() == Interval(-1.0, math.inf)
    assert Interval(0.0, 1.0).log() == Interval(-math.inf, 0.0)
    assert Interval(-3.0, 0.0).log1p() == Interval(-math.inf, 0.0)
    assert Interval(0.0, 0.0).exp() == Interval(1.0, 1.0)
    for wrong in (Interval(-1.0, 0.0).log, Interval(-2.0, -1.0).log1p):
        with pytest.raises(ValueError, match="log"):
            wrong()


def test_enclosures_contain_products_and_sums():
    rng = np.random.default_rng(3)
    ends = np.sort(rng.exponential(size=(2, 200, 2)) * (rng.random((2, 200, 2)) > 0.1), axis=2)
    one, two = (Enclosure(part[:, 0], part[:, 1]) for part in ends)
    for found, exact in ((one.times(two), Fraction.__mul__), (one.plus(two), Fraction.__add__)):
        for i in range(200):
            for a, b in ((one.lower[i], two.lower[i]), (one.upper[i], two.upper[i])):
                assert Fraction(found.lower[i]) <= exact(Fraction(a), Fraction(b)) <= Fraction(found.upper[i])
    rest = one.complement()
    assert all(Fraction(rest.lower[i]) <= 1 - Fraction(one.upper[i]) for i in range(200))
    assert all(Fraction(rest.upper[i]) >= 1 - Fraction(one.lower[i]) for i in range(200))


def test_clipping_and_inflation():
    assert Interval(-1.0, 3.0).clipped(0.0, 1.0) == Interval(0.0, 1.0)
    assert Interval(2.0, 3.0).clipped(0.0, 1.0) == Interval(1.0, 1.0)
    found = Interval(0.1, 0.1).inflated(8)
    assert Fraction(found.lower) <= Fraction(0.1) * (1 - Fraction(7, 2**53))
    assert Fraction(found.upper) >= Fraction(0.1) * (1 + Fraction(7, 2**53))
    assert Interval(0.0, 0.0).inflated(1000) == Interval(0.0, 0.0)


@pytest.mark.parametrize("seed", range(3))
def test_one_sided_rounding_of_fractions_and_roots(seed):
    rng = random.Random(seed)
    for _ in range(200):
        value = Fraction(rng.randrange(1, 10**20), rng.randrange(1, 10**20))
        low, high = floats.fraction_down(value), floats.fraction_up(value)
        assert Fraction(low) <= value <= Fraction(high)
        assert high in (low, next_above(low))
        below, above = floats.root_down(value), floats.root_up(value)
        assert Fraction(below) ** 2 <= value <= Fraction(above) ** 2
        assert above <= next_above(next_above(below))
    assert floats.root_up(Fraction(9, 4)) == floats.root_down(Fraction(9, 4)) == 1.5


def test_rounding_moves_by_more_than_it_says():
    for value in (0.0, SMALLEST, 1e-310, 0.1, -0.1, 1.0, -1e300):
        high, low = round_up(value, 3), round_down(value, 3)
        assert Fraction(high) > Fraction(value) > Fraction(low)
        if abs(value) > 1e-300:
            assert min(Fraction(high) - Fraction(value), Fraction(value) - Fraction(low)) >= 3 * Fraction(
                math.ulp(value)
            )
    assert math.nextafter(1.0, 0.0) == floats.LARGEST_BELOW_ONE
    assert floats.largest_below_one(np.float32) == np.nextafter(np.float32(1), np.float32(0))
    assert floats.roundoff(3, 2.0) == 6 * 2.0**-53
    assert floats.inflated(-1.0, 2) < -1.0 < floats.deflated(-1.0, 2)


def digits(value: float) -> int:
    """Significant digits of what is printed of a double."""
    return len(Decimal(repr(value)).normalize().as_tuple().digits)


def doubles() -> list[float]:
    rng = random.Random(7)
    some = [rng.uniform(0.5, 10.0) * 10.0 ** rng.randint(-300, 300) for _ in range(4000)]
    decimals = [float(f"{rng.randint(1, 10**10 - 1)}e{rng.randint(-40, 40)}") for _ in range(2000)]
    near = [
        f(value) for value in (0.1, 0.3, 0.9999999999, 1.0, 9.999999999, 9.9999999995) for f in (next_above, next_below)
    ]
    return [*some, *decimals, *near, 5e-324, 2.2e-308, 1.797693134e308, 0.0]


@pytest.mark.costly
def test_few_digits_are_outward_and_few():
    """Against exact rationals: at or above, at or below, at most ten digits, and less than a step away."""
    for size in doubles():
        for value in (size, -size):
            up, down = few_digits_up(value), few_digits_down(value)
            assert exactly(down) <= exactly(value) <= exactly(up)
            if math.isfinite(up) and math.isfinite(down):
                assert digits(up) <= 10
                assert digits(down) <= 10
                assert exactly(up) - exactly(down) <= abs(exactly(value)) * Fraction(11, 10**10) + Fraction(10) ** -323
            assert few_digits_up(up) == up
            assert few_digits_down(down) == down


def test_a_number_of_ten_digits_is_itself():
    for value in (0.1, 0.3, 0.5, 1.0, 0.1234567891, 123456.7891, 1e-6, 7e22, 0.0, math.inf):
        assert few_digits_up(value) == few_digits_down(value) == value


def test_a_number_beyond_the_largest_of_ten_digits_is_infinite():
    assert few_digits_up(1.7976931348623157e308) == math.inf
    assert few_digits_down(1.7976931348623157e308) == 1.797693134e308


def test_an_interval_is_published_outward():
    found = Interval(0.12345678912345, 0.12345678912346).published()
    assert (found.lower, found.upper) == (0.1234567891, 0.1234567892)
    assert found.published() == found
