"""The one-sided search: whatever the function, the point returned is on the side asked for; smooth ones are cheap."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shuffledp.accounting.profiles.profile import gaussian_delta, gaussian_epsilon, safe_side
from shuffledp.errors import NotConverged

TOLERANCE = 1e-4


class Counted:
    """A function that remembers where it was asked."""

    def __init__(self, function):
        self.function, self.asked = function, {}

    def __call__(self, epsilon):
        self.asked[epsilon] = self.function(epsilon)
        return self.asked[epsilon]


@settings(max_examples=80, deadline=None)
@given(
    log_mu=st.floats(-9.0, 1.5),
    log_target=st.floats(-60.0, -2.0),
    off=st.floats(-1.0, 1.0),
    bend=st.floats(0.0, 0.3),
    above=st.booleans(),
)
def test_profiles_that_are_nearly_gaussian_take_a_handful_of_values(log_mu, log_target, off, bend, above):
    mu, target = math.exp(log_mu), math.exp(log_target)
    usual = gaussian_epsilon(target, mu)

    def delta(epsilon):
        return gaussian_delta(epsilon, mu * (1.0 - bend * epsilon / (epsilon + usual))) if usual > 0.0 else 0.0

    counted = Counted(delta)
    point = safe_side(counted, target, 500.0, usual * math.exp(off), TOLERANCE, above=above)
    if point in (0.0, 500.0):
        assert usual < 1e-12 or usual > 499.0
        return
    assert (counted.asked[point] > target) == above
    assert (delta(point * (1.0 + (4.0 if above else -4.0) * TOLERANCE)) > target) != above
    assert len(counted.asked) <= 10


@settings(max_examples=60, deadline=None)
@given(
    at=st.floats(1e-6, 40.0),
    guess=st.floats(0.0, 60.0),
    height=st.floats(1e-5, 1.0),
    floor=st.sampled_from([0.0, 1e-12]),
    above=st.booleans(),
)
def test_steps_are_found_too(at, guess, height, floor, above):
    target = 1e-6
    counted = Counted(lambda e: height if e < at else floor)
    point = safe_side(counted, target, 50.0, guess, TOLERANCE, above=above)
    if point == 0.0:
        assert above
        assert at <= 1e-3  # low enough for nobody to care, but never beyond the step
    elif point == 50.0:
        assert not above
        assert at >= 50.0 * (1 - TOLERANCE)
    else:
        assert (counted.asked[point] > target) == above
        assert point == pytest.approx(at, rel=2 * TOLERANCE)


def test_ends():
    assert safe_side(lambda e: 0.0, 1e-6, 3.0, 1.0, TOLERANCE, above=False) == 0.0
    assert safe_side(lambda e: 0.0, 1e-6, 3.0, 1.0, TOLERANCE, above=True) == 0.0
    assert safe_side(lambda e: 0.5, 1e-6, 3.0, 1.0, TOLERANCE, above=False) == 3.0
    assert safe_side(lambda e: 0.5, 1e-6, 3.0, 1.0, TOLERANCE, above=True) > 3.0 * (1 - 2 * TOLERANCE)
    with pytest.raises(NotConverged, match="undefined"):
        safe_side(lambda e: math.nan, 1e-6, 3.0, 1.0, TOLERANCE, above=False)
