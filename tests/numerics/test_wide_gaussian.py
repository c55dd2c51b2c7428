"""Wide discrete normal noise: the table against exact sums, its layers against mpmath, the draws against the law."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from shuffledp.errors import InvalidInput
from shuffledp.numerics import discrete_noise as wide
from shuffledp.numerics.randomness import Randomness, Words, simulation_random

WHOLE = st.floats(wide.SMALLEST_WIDE, 2.0**44)


class Scripted(Randomness):
    """Gives the words it was told, then zeros."""

    private = False

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, n: int) -> Words:
        return np.array([self.left.pop(0) if self.left else 0 for _ in range(n)], dtype=np.uint64)


def distribution(x: int) -> mpmath.mpf:
    """P(X <= x) at the working precision, by adding up and by the theta function."""
    two_squares = mpmath.mpf(2 * wide.BASE**2)
    tail = mpmath.fsum(mpmath.exp(-(mpmath.mpf(y) ** 2) / two_squares) for y in range(-12_000, x + 1))
    return tail / mpmath.jtheta(3, 0, mpmath.exp(-1 / two_squares))


@pytest.mark.costly
@pytest.mark.parametrize("bits", [128, 192])
@pytest.mark.parametrize("x", [-2600, -1000, -1, 0, 300, 2400])
def test_distribution_function_is_enclosed(bits, x):
    found = wide.cumulative(bits)
    with mpmath.workdps(120):
        exact = distribution(x) * mpmath.mpf(2) ** bits
        lower, upper = (side[x - found.first] for side in (found.lower, found.upper))
        assert lower <= exact < upper
        assert upper - lower <= 4


@pytest.mark.costly
def test_table_holds_floors():
    first, ends, guide = wide._table()
    assert (np.diff(ends.astype(object)) >= 0).all()
    assert int(ends[-1]) == 2**64 - 1
    assert int(ends[0]) == 0
    with mpmath.workdps(60):
        for x in (-2300, -512, 0, 17, 1500):
            assert int(ends[x - first]) == int(mpmath.floor(distribution(x) * mpmath.mpf(2) ** 64))
    assert (guide == wide._OPEN).mean() < 0.04


@given(first_bits=st.integers(0, 2**16 - 1), rest=st.integers(0, 2**48 - 1))
@settings(deadline=None)
def test_first_bits_decide_as_all_bits_would(first_bits, rest):
    first, ends, guide = wide._table()
    word = first_bits << 48 | rest
    if guide[first_bits] != wide._OPEN:
        place = int(guide[first_bits]) - first
        assert int(ends[place - 1]) < word < int(ends[place])


@pytest.mark.parametrize("x", [-2000, -3, 0, 40, 2100])
def test_a_word_on_a_boundary_is_settled_by_further_bits(x):
    """v = floor(2^64 F(x)): below F(x) it is x, above it is x + 1."""
    first, ends, _ = wide._table()
    word = int(ends[x - first])
    bits = wide.cumulative(128)
    following = bits.lower[x - first + (first - bits.first)] & (2**64 - 1)  # the next 64 bits of F(x)
    script = [word >> 48, (word & (2**48 - 1)) << 16]
    assert 2 < following < 2**64 - 8
    assert int(wide._base(1, Scripted(*script, following - 2))[0]) == x
    assert int(wide._base(1, Scripted(*script, following + 6))[0]) == x + 1


@pytest.mark.costly
@pytest.mark.parametrize("word", [0, 2**64 - 1])
def test_far_tails_are_drawn_too(word):
    """64 zeros, then 64 more whose value is small, and their mirror image."""
    further = 2**20 if word == 0 else 2**64 - 2**20
    drawn = int(wide._base(1, Scripted(word >> 48, (word & (2**48 - 1)) << 16, further))[0])
    with mpmath.workdps(60):
        uniform = (mpmath.mpf(word) * 2**64 + further + mpmath.mpf("0.5")) / mpmath.mpf(2) ** 128
        assert distribution(drawn - 1) < uniform < distribution(drawn)
    assert abs(drawn) > 10 * wide.BASE


def test_layers_add_up_to_the_discrete_normal_law():
    """X + aY for the widest a allowed, by direct summation at 100 digits."""
    scale, factor = wide.BASE, math.isqrt(wide._REACH)
    with mpmath.workdps(100):
        two, both = mpmath.mpf(2 * scale**2), mpmath.mpf(2 * scale**2 * (1 + factor**2))
        seen = []
        for k in (0, 1, 1234, 40_000):
            near = round(k * factor / (1 + factor**2))  # where the summands are largest
            total = mpmath.fsum(
                mpmath.exp(-(mpmath.mpf(k - factor * y) ** 2 + y**2) / two) for y in range(near - 80, near + 81)
            )
            seen.append(total * mpmath.exp(mpmath.mpf(k) ** 2 / both))
        assert 0 <= max(seen) / min(seen) - 1 < mpmath.mpf("1e-76")


@pytest.mark.costly
@given(scale=WHOLE)
@settings(max_examples=300, deadline=None)
def test_layers_reach_the_scale_and_stay_even(scale):
    squares = 1
    factors = wide.layers(scale)
    assert factors[0] == 1
    assert len(factors) <= 8
    for factor in factors[1:]:
        assert 9 * (squares + factor**2) <= wide.BASE**2 * squares
        squares += factor**2
    reached = wide.BASE**2 * squares
    assert Fraction(scale) ** 2 <= reached <= Fraction(scale * (1.0 + wide.WIDENING)) ** 2


def test_narrow_draws_follow_the_table_s_law():
    """Chi-square over some 1,400 numbers, 400,000 draws; false alarm 1e-6."""
    drawn = wide._base(400_000, simulation_random(5)).astype(np.int64)
    values = np.arange(-700, 701)
    chance = np.exp(-(values**2) / (2.0 * wide.BASE**2)) / (math.sqrt(2.0 * math.pi) * wide.BASE)
    counts = np.bincount(np.clip(drawn + 701, 0, 1402), minlength=1403)
    outside = 1.0 - chance.sum()
    expected = 400_000 * np.concatenate(([outside / 2], chance, [outside / 2]))
    assert stats.chisquare(counts, expected).pvalue > 1e-6


@pytest.mark.parametrize("scale", [4e4, 3e6, 1e12])
def test_wide_draws_are_normal(scale):
    """Kolmogorov-Smirnov, 200,000 draws; false alarm 1e-6. Steps of 1 are invisible at these scales."""
    drawn = wide.wide_gaussian(scale, 200_000, simulation_random(7))
    real = wide.BASE * math.sqrt(sum(a * a for a in wide.layers(scale)))
    assert stats.kstest(drawn / real, "norm").pvalue > 1e-6
    parity = int((drawn & 1).sum())
    assert abs(parity - 100_000) < 5 * math.sqrt(200_000 / 4)


@pytest.mark.parametrize("scale", [1.0, 2.0**15 - 1, 2.0**44 * 1.001, math.inf, math.nan])
def test_scales_out_of_range_are_refused(scale):
    with pytest.raises(InvalidInput, match="scale of wide noise"):
        wide.layers(scale)
