"""Tails of sums of steps of -1, 0, 1: against convolution in fractions, and the normal law."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from shuffledp.errors import NotConverged
from shuffledp.numerics.tails import StepSum

GROUPS = [
    [(0.25, 0.25, 0.5, 30)],
    [(0.5, 0.125, 0.375, 9), (0.0625, 0.25, 0.6875, 40)],
    [(0.5, 0.5, 0.0, 12)],  # never 0: on every second number only
    [(0.96875, 0.015625, 0.015625, 25)],
    [(0.25, 0.5, 0.25, 1)],
]


def law(groups):
    found = {0: Fraction(1)}
    for up, down, stay, count in groups:
        for _ in range(count):
            after = {}
            for s, mass in found.items():
                for step, chance in ((1, up), (-1, down), (0, stay)):
                    after[s + step] = after.get(s + step, Fraction(0)) + mass * Fraction(chance)
            found = after
    return found


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("theta", [0.0, 1e-3, 0.2, 1.0, 4.0])
def test_encloses_the_form_and_is_narrow(groups, theta):
    """Chances that doubles hold exactly, so that the enclosure is of that very law."""
    tilted = StepSum(*np.array(groups).T, 0.0).tilted(theta)
    exact = law(groups)
    thresholds = np.rint(tilted.mean) + np.arange(-4.0, 5.0)
    weights = np.array([(0.3, -0.2, -0.05), (1.0, 1.0, 1.0), (0.0, 1.0, 0.0)])
    found = tilted.forms(weights, thresholds)
    for row, (a, b, c) in enumerate(weights):
        for column, t in enumerate(thresholds):
            parts = (
                Fraction(a) * exact.get(int(t) - 1, 0),
                Fraction(b) * exact.get(int(t), 0),
                Fraction(c) * sum(mass for s, mass in exact.items() if s > t),
            )
            value, size = float(sum(parts)), float(sum(abs(part) for part in parts))
            assert found.lower[row, column] <= value <= found.upper[row, column]
            # errors are charged relative to the tilted law's mode: narrow where the threshold is at the mean
            if column == 4:
                most = max(float(exact.get(int(t) + s, 0)) for s in (-1, 0, 1))
                assert found.upper[row, column] - found.lower[row, column] <= 1e-10 * max(size, most) + 1e-299


def test_wrong_chances_would_be_seen():
    """The oracle tells a chance that is off by a part in a million from the right one."""
    theta, groups = 0.2, [(0.25, 0.25, 0.5, 30)]
    shifted = StepSum(np.array([0.25 * (1 + 1e-6)]), np.array([0.25]), np.array([0.5]), np.array([30.0]), 0.0)
    found = shifted.tilted(theta).forms(np.array([(1.0, 1.0, 1.0)]), np.array([3.0]))
    exact = float(sum(mass for s, mass in law(groups).items() if s >= 2))
    assert not found.lower[0, 0] <= exact <= found.upper[0, 0]


@pytest.mark.parametrize("n", [10_000, 10**8, 10**11])
def test_many_steps_follow_the_normal_law(n):
    steps = StepSum(np.array([0.25]), np.array([0.25]), np.array([0.5]), np.array([float(n)]), 0.0)
    deviation = math.sqrt(n / 2.0)
    theta = 3.0 / deviation
    tilted = steps.tilted(theta)
    t = float(np.rint(tilted.mean))
    found = tilted.forms(np.array([(1.0, 1.0, 1.0)]), np.array([t]))
    normal = 0.5 * math.erfc((t - 1.5) / deviation / math.sqrt(2.0))
    assert found.upper[0, 0] / found.lower[0, 0] <= 1.0 + 1e-7
    assert found.lower[0, 0] == pytest.approx(normal, rel=20.0 / math.sqrt(n) / 10.0 + 1e-6)


def test_too_many_steps_that_are_never_0_are_refused():
    steps = StepSum(np.array([0.5]), np.array([0.5]), np.array([0.0]), np.array([1e11]), 0.0)
    with pytest.raises(NotConverged, match="sum fewer steps"):
        steps.tilted(0.0).forms(np.array([(1.0, 1.0, 1.0)]), np.array([0.0]))


@pytest.mark.costly
def test_doubtful_chances_move_the_form_by_no_more_than_is_charged():
    """All chances of a group moved by their roundoffs, each to the worse side: (F) moves by at most `moved`."""
    rng, groups = np.random.default_rng(11), [(0.25, 0.25, 0.5, 30), (0.5, 0.125, 0.375, 9)]
    ulps = 2.0**33  # a relative error of 2^-20
    steps = StepSum(*np.array(groups).T, ulps)
    exact = law(groups)
    for _ in range(20):
        moved = []
        for up, down, stay, count in groups:
            u, d = (c * (1.0 + 2.0**-20 * rng.choice((-1, 1))) for c in (up, down))
            moved.append((u, d, 1.0 - u - d, count))
            assert abs(moved[-1][2] / stay - 1.0) <= 2.0**-19
        other = law(moved)
        for t in (0, 3, 8, 15):
            around = float(sum(exact.get(s, Fraction(0)) for s in range(t - 2, t + 2)))
            tail = float(sum(mass for s, mass in exact.items() if s >= t - 1))
            bound = float(steps.moved(np.array([around]), np.array([tail]))[0])
            for a, b, c in ((1.0, 0.5, 0.3), (0.2, 1.0, 1.0), (1.0, 1.0, 1.0)):  # jumps of at most 1
                change = [
                    a * float(masses.get(t - 1, 0)) + b * float(masses.get(t, 0))
                    + c * float(sum(mass for s, mass in masses.items() if s > t))
                    for masses in (exact, other)
                ]  # fmt: skip
                assert abs(change[1] - change[0]) <= bound
