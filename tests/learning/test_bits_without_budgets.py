"""A server that sees bits without their budgets cannot weigh them by their budgets, and does not."""

from __future__ import annotations

import numpy as np
import pytest

from shuffledp.errors import InvalidInput
from shuffledp.learning import ShuffledSGDClassifier
from shuffledp.learning.settings import Settings
from shuffledp.learning.training import Run
from shuffledp.numerics.randomness import simulation_random

ROWS = np.random.default_rng(0).standard_normal((40, 6))
LABELS = np.random.default_rng(1).integers(0, 3, 40)
BUDGETS = np.where(np.arange(40) == 17, 2.0, 0.5)  # one open client among 39 cautious ones


def classifier(**changes) -> ShuffledSGDClassifier:
    asked = {
        "unit": "client", "seen": "reports", "mechanism": "sketch", "epsilon0": BUDGETS, "delta": 1e-6, "clip": 0.5,
        "rounds": 1, "classes": 3, "hidden": (16,), "random": simulation_random(3),
    } | changes  # fmt: skip
    return ShuffledSGDClassifier(**asked)


def total_and_reports(seen: str):
    """The sum that moves the model, and the (signs, bit) reports it was made of."""
    run = Run.of(Settings(**classifier(seen=seen).get_params()), ROWS, LABELS, None, None, None)
    told: list = []
    plain = type(run.sender).bits

    def bits(self, clients, weights, z):
        sent = plain(self, clients, weights, z)
        told.append((z, sent))
        return sent

    type(run.sender).bits = bits
    try:
        total = run.sender.total(np.arange(40), run.server.weights)
    finally:
        type(run.sender).bits = plain
    z, sent = told[0]
    return total, z.astype(np.float64), 2.0 * sent - 1.0


def test_the_step_is_a_function_of_the_reports_without_their_budgets():
    """It was not: solving for the weights named the open client's bit, though its certified epsilon was amplified."""
    total, z, sent = total_and_reports("reports")
    assert np.array_equal(total, sent @ z)  # whole numbers: exact
    weighed, z, sent = total_and_reports("levels")  # here the server sees the budgets anyway
    found = np.linalg.lstsq(z.T, weighed, rcond=None)[0] * sent  # 163 equations for 40 weights
    assert np.flatnonzero(found > 0.5).tolist() == [17]


def test_other_weights_need_budgets_that_are_seen():
    for weighting in ("none", "inverse-variance"):
        with pytest.raises(InvalidInput, match="needs the budget of every bit, which a server with `seen = 'reports'`"):
            classifier(weighting=weighting).fit(ROWS, LABELS)
        classifier(weighting=weighting, epsilon0=1.0).fit(ROWS, LABELS)  # one budget: nothing to weigh
        classifier(weighting=weighting, seen="levels").fit(ROWS, LABELS)


def test_clients_count_in_proportion_to_what_their_bits_tell():
    run = Run.of(Settings(**classifier().get_params()), ROWS, LABELS, None, None, None)
    plan = run.sender.plan
    assert np.ptp(plan.weights) == 0.0
    assert plan.gains == pytest.approx(np.tanh(0.5 * BUDGETS))
