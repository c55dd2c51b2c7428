"""Small real releases to render."""

from __future__ import annotations

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.numerics.randomness import simulation_random

BUDGETS = np.repeat([0.5, 2.0], [500, 100])


@pytest.fixture(scope="session")
def mean_release():
    values = np.linspace(0.0, 10.0, BUDGETS.size)
    return sdp.estimate_mean(values, 0.0, 10.0, BUDGETS, seen="reports", delta=1e-5, random=simulation_random(1))


@pytest.fixture(scope="session")
def frequency_release():
    records = ["<b>yes</b>", "no", "perhaps & more"] * 200
    names = ["<b>yes</b>", "no", "perhaps & more"]
    return sdp.estimate_frequency(records, names, BUDGETS, seen="reports", delta=1e-5, random=sdp.secure_random())
