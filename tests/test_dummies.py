"""The laws of dummies: whole numbers over 2^64, exactly symmetric and log-concave."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shuffledp as sdp
from shuffledp.dummies import WHOLE, is_log_concave, thresholds_of

pytestmark = pytest.mark.machine


@settings(max_examples=60, deadline=None)
@given(count=st.integers(0, 400), steepness=st.floats(0.0, 5.0))
def test_the_discrete_laplace_law_is_exact_symmetric_and_log_concave(count, steepness):
    law = sdp.DiscreteLaplace(count, math.exp(steepness))
    weights = law.weights
    assert len(weights) == count + 1
    assert sum(weights) == WHOLE
    assert weights == weights[::-1]
    assert is_log_concave(weights)
    assert sdp.OnesLaw(law.thresholds).weights == weights


def test_it_falls_by_its_ratio():
    weights = sdp.DiscreteLaplace(60, 1.5).weights
    for j in range(30):
        assert weights[j + 1] / weights[j] == pytest.approx(1.5, rel=1e-4)


def test_log_concavity_is_exact():
    assert is_log_concave((1, 2, 4, 2, 1))
    assert not is_log_concave((1, 2, 5, 2, 1))  # 2 * 2 < 1 * 5
    assert not is_log_concave((1, 0, 1))  # the law on {0, 2} that breaks (D2)
    assert is_log_concave((0, 3, 0))
    assert thresholds_of((1, 2, 4)) == (1, 3)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: sdp.Uniform(-1), "from 0 to 10,000,000"),
        (lambda: sdp.Uniform(True), "whole number"),
        (lambda: sdp.Uniform(1.5), "whole number"),
        (lambda: sdp.DiscreteLaplace(4, 0.9), "at least 1"),
        (lambda: sdp.DiscreteLaplace(4, math.inf), "at least 1"),
        (lambda: sdp.DiscreteLaplace(4, math.nan), "at least 1"),
        (lambda: sdp.DiscreteLaplace(10**6, 1.5), "from 0 to 20,000"),
        (lambda: sdp.OnesLaw((1, 2)), "symmetric"),
        (lambda: sdp.OnesLaw((2, 1)), "must not decrease"),
        (lambda: sdp.OnesLaw((WHOLE + 1,)), "must not decrease"),
        (lambda: sdp.OnesLaw((0.5,)), "whole numbers"),
    ],
)
def test_refusals(make, what):
    with pytest.raises(sdp.InvalidInput, match=what):
        make()


@pytest.mark.parametrize("count", [2000, 2001, 20_000])
@pytest.mark.parametrize("ratio", [1.0, 1.0001, 1.3, 50.0, 1e30])
def test_large_laws_are_as_exact(count, ratio):
    weights = sdp.DiscreteLaplace(count, ratio).weights
    assert sum(weights) == WHOLE
    assert weights == weights[::-1]
    assert is_log_concave(weights)
