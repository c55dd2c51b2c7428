"""The dynamic programme against every partition there is."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shuffledp.planning.question import Candidates, UserTerms, best_levels


def precision(candidates: Candidates, chosen: tuple[int, ...]) -> float:
    ends = (*chosen[1:], candidates.values.size)
    users = candidates.below[list(ends)] - candidates.below[list(chosen)]
    if (users < candidates.fewest[list(chosen)]).any() or (users == 0).any():
        return -1.0
    weight, noise = users @ candidates.terms.weight[list(chosen)], users @ candidates.terms.noise[list(chosen)]
    return float(weight**2 / noise)


def every(candidates: Candidates, most: int) -> float:
    m = candidates.values.size
    starts = [i for i in range(m) if candidates.below[i] == 0]
    return max(
        (
            precision(candidates, (start, *rest))
            for start in starts
            for size in range(most)
            for rest in itertools.combinations(range(start + 1, m), size)
        ),
        default=-1.0,
    )


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), m=st.integers(1, 8), most=st.integers(1, 5))
def test_no_other_choice_is_better(seed, m, most):
    rng = np.random.default_rng(seed)
    values = np.sort(rng.uniform(0.05, 3.0, m))
    below = np.concatenate([[0], np.cumsum(rng.integers(0, 40, m))])
    below[-1] += 1
    slope = np.tanh(values / 2)
    weight = [np.ones(m), slope, slope**2][seed % 3]  # population, withheld, precision
    noise = weight**2 / slope**2 * rng.uniform(0.9, 1.1, m)
    fewest = np.where(rng.random(m) < 0.3, rng.integers(1, 60, m), 1).astype(float)
    candidates = Candidates(values, below, fewest, UserTerms(weight, noise))
    chosen, best = best_levels(candidates, most), every(candidates, most)
    if best < 0.0:
        assert chosen is None
        return
    assert chosen is not None
    assert len(chosen) <= most
    assert precision(candidates, tuple(chosen)) == pytest.approx(best, rel=1e-9)


def test_nothing_allowed_is_none():
    one = UserTerms(np.ones(1), np.ones(1))
    assert best_levels(Candidates(np.array([1.0]), np.array([0, 5]), np.array([np.inf]), one), 3) is None
