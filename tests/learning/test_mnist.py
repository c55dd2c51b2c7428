"""Honest accuracy on all of MNIST; needs its idx files, and a minute."""

from __future__ import annotations

import os

import numpy as np
import pytest

from shuffledp.learning import OrientedGradients, ShuffledSGDClassifier, assign_clients, read_digits
from shuffledp.numerics.randomness import simulation_random
from shuffledp.numerics.tails import normal_divergence

MNIST = os.environ.get("SHUFFLEDP_MNIST")


@pytest.mark.slow
@pytest.mark.skipif(MNIST is None, reason="needs MNIST's idx files: set SHUFFLEDP_MNIST to their folder")
def test_constant_half_reaches_95_percent_at_epsilon_three():
    """100 clients of 600, textbook noise at 0.5 a round, 50 rounds, no shuffling counted on: (3.05, 1e-5)."""
    train, test = (read_digits(MNIST, part) for part in ("train", "test"))
    delta0 = float(normal_divergence(0.5, 0.5 / np.sqrt(2 * np.log(1.25e5))).upper)
    model = ShuffledSGDClassifier(
        unit="example", seen="users", epsilon0=0.5, delta0=delta0, delta=1e-5, clip=0.2, rounds=50, hidden=(),
        step=2.0, classes=10, features=OrientedGradients(28), random=simulation_random(0),
    )  # fmt: skip
    model.fit(train.images, train.labels, groups=assign_clients(60000, 100, simulation_random(0)))
    assert model.guarantee_.epsilon.upper == pytest.approx(3.05, abs=0.005)
    assert model.score(test.images, test.labels) > 0.95
