from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import secure_random, simulation_random
from shuffledp.randomizers import LocalRandomizer, OneBit, RandomizedResponse


def test_law_is_binary_randomized_response_on_the_end_points():
    one_bit, rr = OneBit(-1, 3), RandomizedResponse(2)
    assert np.array_equal(one_bit.channel(1.3), rr.channel(1.3))
    assert one_bit.pair_blankets(1.3)[0].gamma == rr.pair_blankets(1.3)[0].gamma
    assert one_bit.two_point
    assert one_bit.name == "one-bit"
    assert isinstance(one_bit, LocalRandomizer)


@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.5, 0.93, 1.0])
def test_bits_have_the_right_mean(fraction):
    # Seeded; each exact binomial test fails by chance once in 10,000 fresh seeds.
    one_bit, n = OneBit(20, 80), 40_000
    row = one_bit.channel(0.8)
    expected = (1 - fraction) * row[0, 1] + fraction * row[1, 1]
    values = np.full(n, 20 + 60 * fraction)
    ones = int(one_bit.randomize(values, 0.8, simulation_random(6)).sum())
    assert binomtest(ones, n, expected).pvalue > 1e-4


def test_end_points_are_certain_before_randomized_response():
    bits = OneBit(0.1, 0.3).randomize([0.1] * 500 + [0.3] * 500, 700.0, secure_random())
    assert bits.tolist() == [0] * 500 + [1] * 500


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300), st.floats(0, 1))
def test_any_range_works(one, other, fraction):
    low, high = min(one, other), max(one, other)
    if high - low < 1.1e-150:  # refused: its square would be 0
        return
    value = min(max(low + fraction * (high - low), low), high)
    assert OneBit(low, high).randomize([value], 1.0, secure_random())[0] in (0, 1)


@pytest.mark.parametrize(
    ("low", "high"), [(1, 1), (2, 1), (0, float("inf")), (float("nan"), 1), (-1.7e308, 1.7e308), ("a", 1)]
)
def test_bad_range(low, high):
    with pytest.raises(InvalidInput, match="range needs"):
        OneBit(low, high)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf")])
def test_value_outside(value):
    with pytest.raises(InvalidInput, match=r"value in row 2 is outside the range \[0.0, 1.0\]"):
        OneBit(0, 1).randomize([0.5, value], 1.0, secure_random())


def test_two_dimensional_values():
    with pytest.raises(InvalidInput, match="one-dimensional"):
        OneBit(0, 1).randomize([[0.5]], 1.0, secure_random())
