"""One bit a message: its law, what the server reads from it, and what it costs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shuffledp.accounting import bounds
from shuffledp.budgets import Budgets
from shuffledp.errors import InvalidInput
from shuffledp.learning.features import cosine_projection
from shuffledp.learning.inputs import read_digits, sample_folder
from shuffledp.learning.network import Network
from shuffledp.learning.rounds import SLOPE, plan_sketches, signs
from shuffledp.learning.settings import Settings
from shuffledp.learning.training import Run, ShuffledSGDClassifier
from shuffledp.numerics.randomness import simulation_random
from shuffledp.setting import Setting

DIGITS = read_digits(sample_folder(), "train")
FEATURES = cosine_projection(28, 40, scale=1 / 255)


def classifier(**changes) -> ShuffledSGDClassifier:
    choices = {
        "unit": "client", "seen": "reports", "epsilon0": 4.0, "delta": 1e-6, "clip": 1.0, "rounds": 3, "hidden": (),
        "mechanism": "sketch", "classes": 10, "features": FEATURES, "random": simulation_random(1),
    } | changes  # fmt: skip
    return ShuffledSGDClassifier(**choices)


def run(epsilon0=2.0, clip=1.0, rows=500, groups=None, **changes) -> Run:
    settings = Settings(**classifier(epsilon0=epsilon0, clip=clip, **changes).get_params())
    return Run.of(settings, DIGITS.images[:rows], DIGITS.labels[:rows], groups, None, None)


def test_signs_are_fair_and_repeat():
    seeds = simulation_random(3).words(4000)
    z = signs(seeds, 130)
    assert z.shape == (4000, 130)
    assert set(np.unique(z)) == {-1.0, 1.0}
    assert np.array_equal(z[7], signs(seeds[7:8], 130)[0])
    assert np.array_equal(z[:, :64], signs(seeds, 64))
    # means and products of columns: normal with deviation 1/sqrt(4000); 130 + 8385 of them, alarm once in 1e6 runs
    moments = z.T @ z / 4000
    assert np.abs(z.mean(axis=0)).max() < 7 / math.sqrt(4000)
    assert np.abs(moments - np.eye(130)).max() < 7 / math.sqrt(4000)


def test_inner_products_need_no_gradients():
    network = Network((5, 4, 3))
    random = np.random.default_rng(2)
    weights = random.normal(size=network.size)
    passed = network.backward(weights, random.normal(size=(6, 5)), np.array([0, 1, 2, 0, 1, 2]))
    z = random.choice([-1.0, 1.0], size=(6, network.size)).astype(np.float32)
    each = network.each_gradient(passed, np.ones(6))
    assert network.along(passed, z) == pytest.approx(np.einsum("ij,ij->i", each, z), rel=1e-5, abs=1e-6)


@pytest.mark.costly("0.5")
@pytest.mark.parametrize("epsilon0", [0.5, 2.0])
def test_the_bit_is_a_randomized_response_bit(epsilon0):
    """A gradient of norm C or more: the side is told with chance 1/(1 + e^-epsilon0); six deviations, seeded."""
    job = run(epsilon0=epsilon0, clip=1e-3)
    clients = np.tile(np.arange(500), 40)
    z = signs(simulation_random(5).words(clients.size), job.sender.network.size)
    sent = job.sender.bits(clients, job.server.weights, z)
    gradients = np.stack([job.sender.gradient(int(c), job.server.weights) for c in range(500)])
    side = np.einsum("ij,ij->i", z, gradients[clients]) >= 0.0
    told = 1.0 / (1.0 + math.exp(-epsilon0))
    deviation = math.sqrt(told * (1.0 - told) / clients.size)
    assert abs((sent == side).mean() - told) < 6.0 * deviation + 1e-4  # float32 may see a side near 0 otherwise


def test_the_server_reads_the_mean_gradient():
    """The average over many rounds approaches the clipped mean gradient; six standard errors per number, seeded."""
    job = run(epsilon0=3.0, clip=2.0, rows=300)
    present, times = np.arange(300), 60
    plan = job.sender.plan
    whole = float((plan.weights * plan.gains).sum())
    reads = np.array([job.sender.total(present, job.server.weights) * plan.grid / whole for _ in range(times)])
    truth = np.stack([job.sender.gradient(int(c), job.server.weights) for c in present]).mean(axis=0)
    error = 2.0 / (SLOPE * math.tanh(1.5)) / math.sqrt(300 * times)
    assert np.abs(reads.mean(axis=0) - truth).max() < 6.0 * error
    assert reads.std(axis=0).mean() == pytest.approx(error * math.sqrt(times), rel=0.1)


@pytest.mark.costly
def test_it_costs_what_any_pure_randomizer_costs():
    model = classifier().fit(DIGITS.images[:800], DIGITS.labels[:800])
    asked = Setting(Budgets([4.0], [800]), "any", seen="reports", neighboring="replace-one", rounds=3)
    assert model.guarantee_.epsilon.upper == pytest.approx(
        bounds["clones"].profile(asked, 4.0).epsilon(1e-6).upper, rel=2e-3
    )
    assert model.guarantee_.method == "levels"
    assert not model.guarantee_.private


@pytest.mark.costly
def test_clients_of_several_examples_and_budgets():
    groups = np.arange(600) // 2
    budgets = np.where(np.arange(300) < 100, 1.0, 4.0)
    model = classifier(epsilon0=budgets, seen="levels").fit(DIGITS.images[:600], DIGITS.labels[:600], groups=groups)
    assert [level.count for level in model.guarantee_.levels] == [100, 200]
    plan = plan_sketches(np.array([1.0, 4.0]), 1.0, weighting="precision")
    assert (plan.weights == plan.gains).all()
    even = plan_sketches(np.array([1.0, 4.0]), 1.0, weighting="people")
    assert even.weights * even.gains == pytest.approx(even.gains.min())


def test_what_one_bit_cannot_do_is_refused():
    groups = np.arange(100) // 10
    for changes in ({"unit": "example"}, {"seen": "users"}, {"seen": "sum"}):
        with pytest.raises(InvalidInput, match=r"^`mechanism = 'sketch'` sends one bit a client"):
            classifier(**changes).fit(DIGITS.images[:100], DIGITS.labels[:100], groups=groups)
    with pytest.raises(InvalidInput, match=r"^`mechanism = 'sketch'` is pure: leave `delta0` out"):
        classifier(delta0=1e-5).fit(DIGITS.images[:100], DIGITS.labels[:100])


def test_it_learns():
    """2,000 clients of one digit each: far above the 10 % of guessing."""
    model = classifier(epsilon0=8.0, rounds=40, step=4.0, momentum=0.9).fit(DIGITS.images, DIGITS.labels)
    test = read_digits(sample_folder(), "test")
    assert model.score(test.images, test.labels) > 0.4
