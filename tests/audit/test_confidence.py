"""Limits of a chance against exact sums, and the event that is chosen."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shuffledp.audit.result import Cut, best_cut, epsilon_limit, lower_limit, upper_limit


def at_least(hits: int, trials: int, p: Fraction) -> Fraction:
    """P(X >= hits), X binomial, exactly."""
    return sum(
        (math.comb(trials, j) * p**j * (1 - p) ** (trials - j) for j in range(hits, trials + 1)), start=Fraction(0)
    )


@pytest.mark.parametrize("alpha", [0.3, 1e-3, 1e-7])
@pytest.mark.parametrize("trials", [1, 7, 30])
def test_limits_solve_the_exact_binomial_equation_on_the_safe_side(trials, alpha):
    """And tightly: two of the stated margins of 1e-9 further, they no longer do."""
    margin = 1 + Fraction(2, 10**9)
    for hits in range(trials + 1):
        low, high = float(lower_limit(hits, trials, alpha)), float(upper_limit(hits, trials, alpha))
        if hits:
            assert at_least(hits, trials, Fraction(low)) <= Fraction(alpha)
            assert at_least(hits, trials, Fraction(low) * margin) > Fraction(alpha)
        else:
            assert low == 0.0
        if hits < trials:
            assert 1 - at_least(hits + 1, trials, Fraction(high)) <= Fraction(alpha)
            assert 1 - at_least(hits + 1, trials, Fraction(high) / margin) > Fraction(alpha)
        else:
            assert high == 1.0


@pytest.mark.parametrize("p", [0.02, 0.5, 0.93])
def test_the_chance_that_a_limit_of_epsilon_is_too_large_is_at_most_alpha(p):
    """Exactly, over all outcomes of 25 trials of each world, for the true epsilon 0 and for a true epsilon of 0.7."""
    n, alpha = 25, 0.05
    for epsilon in (0.0, 0.7):
        q = p * math.exp(-epsilon)
        laws = [[math.comb(n, j) * c**j * (1 - c) ** (n - j) for j in range(n + 1)] for c in (p, q)]
        first, second = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
        wrong = epsilon_limit([first, second], (n, n), 0.0, alpha) > epsilon
        assert float(np.outer(*laws)[wrong].sum()) <= alpha


def test_delta_is_taken_from_the_larger_chance():
    low, high = lower_limit(40, 1000, 5e-4), upper_limit(10, 1000, 5e-4)
    expected = math.log((float(low) - 0.01) / float(high))
    assert float(epsilon_limit([40, 10], (1000, 1000), 0.01, 1e-3)) == pytest.approx(expected, abs=1e-9)
    assert float(epsilon_limit([5, 0], (1000, 1000), 0.01, 1e-3)) == -math.inf


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.integers(-3, 3), min_size=1, max_size=40),
    st.lists(st.integers(-3, 3), min_size=1, max_size=40),
    st.sampled_from([0.0, 0.05]),
)
def test_the_chosen_cut_is_the_best_of_all_cuts(first, second, delta):
    scores = np.array(first, dtype=float), np.array(second, dtype=float)
    cut, estimate = best_cut(scores, delta, 0.01)
    every = [
        Cut(float(t), above=above, likelier=likelier).limit(scores, delta, 0.01)[0]
        for t in range(-3, 4)
        for above in (True, False)
        for likelier in (0, 1)
    ]
    assert estimate == max(every)
    assert cut.limit(scores, delta, 0.01)[0] == estimate


def test_many_values_are_cut_far_into_the_tails():
    """A rare event that decides: 40 of 20,000 reports lie where the other record never reports."""
    random = np.random.default_rng(5)
    scores = random.random(20_000), np.append(random.random(19_960), np.full(40, 2.0))
    cut, estimate = best_cut(scores, 0.0, 1e-3)
    assert (cut.likelier, cut.above) == (1, True)
    assert estimate > 1.0
