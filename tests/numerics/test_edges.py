"""Edges of bins, against fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.numerics.functions import even_edges


def exact(low: float, high: float, count: int) -> list[float]:
    start, end = Fraction(repr(low)), Fraction(repr(high))
    return [float(start + (end - start) * i / count) for i in range(count + 1)]


@given(
    st.floats(-1e6, 1e6) | st.decimals(-99, 99, places=2).map(float),
    st.floats(1e-3, 1e6) | st.decimals("0.01", 99, places=2).map(float),
    st.integers(1, 300),
)
def test_every_edge_is_the_double_nearest_to_the_quotient(low, width, count):
    high = low + width
    edges = even_edges(low, high, count)
    assert edges.tolist() == exact(low, high, count)
    assert (edges[0], edges[-1]) == (low, high)


@pytest.mark.parametrize(
    ("low", "high", "count"),
    [
        (0.0, 1.0, 10), (0.0, 4.0, 40), (-0.3, 0.1, 4), (0.1, 0.9, 8), (-1.7e308, 1.7e308, 7), (0.0, 5e-324, 1),
        (0.0, 1e-300, 3), (1e16, 1e16 + 64, 16), (0.0, 9007199254740993.0, 3), (0.0, 4503599627370497.5, 1024),
        (-1e-5, 1e5, 999), (1.0, 1.0000000000000009, 4),
    ],
)  # fmt: skip
def test_edges_of_ends_that_are_hard(low, high, count):
    assert even_edges(low, high, count).tolist() == exact(low, high, count)


def test_millions_of_edges_take_no_time_and_are_the_same():
    count = 1 << 20
    edges = even_edges(-0.7, 12.3, count)
    places = np.random.default_rng(0).integers(0, count + 1, 2000).tolist()
    start, step = Fraction("-0.7"), Fraction(13, count)
    assert [float(start + step * place) for place in places] == edges[places].tolist()
