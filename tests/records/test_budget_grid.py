"""Budgets rounded down to a public grid: never up, exactly alike everywhere, and what is certified is what is drawn."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.budgets import Budgets, rounded_down, steps_of
from shuffledp.errors import InvalidInput
from shuffledp.records.people import RowBudgets

ALL = np.concatenate([[0.0, 700.0, 1.0, np.nextafter(1.0, 0.0), 2.0**-10, 5e-324], np.geomspace(1e-6, 700.0, 5000)])


@pytest.mark.costly("1048576")
@pytest.mark.parametrize("levels", [21, 40, 41, 4096, 1 << 20])
def test_budgets_are_rounded_down_by_at_most_a_step_of_their_octave(levels):
    down = rounded_down(ALL, levels)
    assert (down <= ALL).all()
    assert (ALL - down < np.maximum(ALL / steps_of(levels), 2.0**-10)).all()
    assert (rounded_down(down, levels) == down).all()
    assert np.unique(rounded_down(np.linspace(0.0, 700.0, 1_000_000), levels)).size <= levels
    for budget, value in zip(ALL[::200].tolist(), down[::200].tolist(), strict=True):
        octave = max(k for k in range(-1100, 10) if Fraction(2) ** k <= Fraction(budget)) if budget else -1100
        unit = Fraction(2) ** octave / steps_of(levels)
        exact = Fraction(budget) // unit * unit if octave >= -10 else 0
        assert Fraction(value) == exact


@pytest.mark.costly
def test_what_is_certified_is_what_is_drawn_with():
    budgets = np.random.default_rng(2).uniform(0.0, 3.0, 3000)
    people = {"vote": ["yes", "no"] * 1500, "budget": budgets}
    who = RowBudgets("budget", levels=64)
    told = {"value": "vote", "seen": "levels", "delta": 1e-6}
    found = sdp.release(sdp.Frequency(["yes", "no"]), people, budgets=who, **told)
    rounded = sdp.release(
        sdp.Frequency(["yes", "no"]), {**people, "budget": rounded_down(budgets, 64)}, budgets="budget", **told
    )
    assert found.guarantee.epsilon == rounded.guarantee.epsilon
    assert found.fingerprint == rounded.fingerprint
    assert found.guarantee.epsilon.upper <= float(np.max(budgets))
    assert Budgets.of(rounded_down(budgets, 64)).levels <= 64


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"epsilon0": 1.0, "levels": 64}, "`levels` rounds a column of numbers down; leave it out"),
        ({"epsilon0": "c", "consent": {"yes": 1.0}, "levels": 64}, "`levels` rounds a column of numbers down"),
        ({"epsilon0": "b", "levels": 20}, "must be a whole number from 21 to 1,048,576; got 20"),
        ({"epsilon0": "b", "levels": 64.0}, "must be a whole number from 21 to 1,048,576; got 64.0"),
    ],
)
def test_misuse_is_one_line(told, message):
    with pytest.raises(InvalidInput, match=message):
        RowBudgets(**told)
