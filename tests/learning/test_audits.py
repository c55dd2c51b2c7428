"""Audits: they expose the clipped average and the personal noise scale, and let honest training pass."""

from __future__ import annotations

import os

import numpy as np
import pytest

from shuffledp.accounting import GaussianSumProfile
from shuffledp.errors import InvalidInput
from shuffledp.learning.audits import (
    audit_budget_leak,
    audit_client_swap,
    audit_example_swap,
)
from shuffledp.learning.features import public_projection
from shuffledp.learning.inputs import read_digits, sample_folder
from shuffledp.learning.messages import Clipping
from shuffledp.learning.network import Network
from shuffledp.numerics.randomness import simulation_random
from shuffledp.reproduce.training import PaperReading, train_as_published

MNIST = os.environ.get("SHUFFLEDP_MNIST")
DRAW = np.random.default_rng(0)


def digits(folder, components=60):
    train, test = (read_digits(folder, part) for part in ("train", "test"))
    project = public_projection(train.images, components, public=True, scale=1 / 255)
    return (project(train.images), train.labels.astype(np.int64)), (project(test.images), test.labels.astype(np.int64))


def average_clipped_message(network, weights, bound):
    """Clip only the *average* gradient to ``bound``: the published reading, not private at 2 bound/m per example."""

    def message(features, labels):
        mean = network.weighted_sum(network.backward(weights, features, labels)) / labels.size
        return mean * min(1.0, bound / np.linalg.norm(mean))

    return message


def real_epsilon(audit, sigma, delta):
    """Smallest epsilon that one message with normal noise can have, given how far it was seen to move."""
    return GaussianSumProfile(audit.measured / sigma).epsilon(delta).lower


def honest(network, weights, clipping):
    return lambda features, labels: clipping.message(network, weights, features, labels)


def audited(train, test, *, blocks, epochs, epsilon=0.5, hidden=1000, step=0.05):
    """Swap audit of the published reading and of honest clipping at the same model."""
    m = train[1].size // blocks
    reading = PaperReading("gaussian", "average-l2", 2.0, m, hidden=hidden, step=step, epochs=epochs)
    run = train_as_published(*train, test, np.full(blocks, epsilon), reading, seed=0)
    assert run.guarantee is None
    block = tuple(part[:m] for part in train)
    others = tuple(part[m:] for part in train)
    found = []
    for message in (
        average_clipped_message(run.network, run.weights, 2.0),
        honest(run.network, run.weights, Clipping("example", "examples", 2.0, 2)),
    ):
        found.append(
            audit_example_swap(
                message, *block, others, claimed=4.0 / m, tried=6, network=run.network, weights=run.weights
            )
        )
    return run, found


@pytest.mark.slow
def test_the_clipped_average_breaks_its_claim_and_clipped_examples_keep_it():
    """On the bundled sample: 20 blocks of 100, ten epochs of the published reading at epsilon = 8."""
    run, (published, kept) = audited(*digits(sample_folder()), blocks=20, epochs=10, epsilon=8.0, hidden=200)
    assert run.accuracies[-1] > 0.6
    assert published.violated
    assert published.ratio > 3.0
    assert not kept.violated
    assert kept.ratio > 0.6
    sigma = 4.0 / 100 * np.sqrt(2 * np.log(1.25e5)) / 0.5
    assert real_epsilon(published, sigma, 1e-5) > 1.0 > 0.5 > real_epsilon(kept, sigma, 1e-5)


@pytest.mark.slow
@pytest.mark.skipif(MNIST is None, reason="needs MNIST's idx files: set SHUFFLEDP_MNIST to their folder")
def test_on_mnist_one_swap_moves_the_message_seven_times_the_claim():
    """GSPA's reading after one epoch: 100 blocks of 600, 1000 hidden units."""
    train, test = digits(MNIST)
    order = np.random.default_rng(1).permutation(60000)
    _, (published, kept) = audited((train[0][order], train[1][order]), test, blocks=100, epochs=1)
    assert published.ratio > 7.0
    assert not kept.violated


def test_swapping_clients_moves_a_clipped_message_by_up_to_twice_the_bound():
    """One-digit clients: their averages point apart; 2C covers them, 2C/m does not."""
    (features, labels), _ = digits(sample_folder(), components=20)
    network = Network((20, 10))
    weights = np.zeros(network.size)
    clients = [(features[labels == d][:100], labels[labels == d][:100]) for d in range(10)]
    clipping = Clipping("client", "message", 0.1, 2)
    at_client_level = audit_client_swap(
        honest(network, weights, clipping), clients, claimed=float(clipping.sensitivity(100, network.size))
    )
    assert not at_client_level.violated
    assert at_client_level.ratio > 0.5
    assert audit_client_swap(honest(network, weights, clipping), clients, claimed=0.2 / 100).ratio > 50
    assert at_client_level.swaps == 45


def test_a_personal_noise_scale_names_its_client_and_levels_hide_it():
    """40 clients, budgets uniform on (0.5, 2), 20,000 numbers a message: the scale is known to about 1 %."""
    budgets = np.random.default_rng(1).uniform(0.5, 2.0, 40)
    personal = audit_leak(1.0 / budgets)
    assert personal.named > 10 * personal.chance
    assert personal.within > 0.9
    bucketed = audit_leak(1.0 / np.where(budgets < 1.0, 0.5, 1.0))
    counts = np.bincount((budgets >= 1.0).astype(int))
    # among its level every client is equally likely: levels/clients of the messages are named, whatever the attack
    assert bucketed.named == pytest.approx(counts.size / 40, abs=1e-12)


def audit_leak(scales):
    draw, n = np.random.default_rng(2), scales.size
    gradients = draw.normal(size=(n, 20_000)) * 0.01
    senders = draw.permutation(n)
    sent = gradients[senders] + scales[senders, None] * draw.normal(size=(n, 20_000))
    return audit_budget_leak(sent, senders, scales)


def test_audits_refuse_what_they_cannot_use():
    with pytest.raises(InvalidInput, match="must be positive"):
        audit_example_swap(lambda x, y: x[0], np.eye(2), np.arange(2), (np.eye(2), np.arange(2)), claimed=0.0)
    with pytest.raises(InvalidInput, match="two clients"):
        audit_client_swap(lambda x, y: x[0], [(np.eye(2), np.arange(2))], claimed=1.0)
    with pytest.raises(InvalidInput, match="positive scales"):
        audit_budget_leak(np.eye(2), [0, 1], [1.0, 0.0])


def test_the_published_training_refuses_unknown_readings():
    one = (np.eye(4), np.array([0, 1, 0, 1]))
    with pytest.raises(InvalidInput, match="reading is unknown"):
        train_as_published(*one, one, [1.0], PaperReading("gaussian", "maybe", 1.0, 2, hidden=2, epochs=1), seed=0)
    with pytest.raises(InvalidInput, match="positive budget"):
        train_as_published(*one, one, [0.0], PaperReading("gaussian", "none", 1.0, 2, hidden=2, epochs=1), seed=0)


@pytest.mark.parametrize("clipped", ["average-l2", "average-l1", "average-column-sum", "examples-l1", "examples-l2"])
def test_every_reading_bounds_what_it_says(clipped):
    """One block, one step of length 1 without noise: the move is the message."""
    from shuffledp.reproduce.training import CLIPPED_NORMS

    assert clipped in CLIPPED_NORMS
    features, labels = DRAW.normal(size=(30, 5)) * 20, DRAW.integers(3, size=30)
    reading = PaperReading("laplace", clipped, 0.1, 1, hidden=6, step=1.0, epochs=1)
    run = train_as_published(features, labels, (features, labels), [np.inf], reading, seed=4)
    moved = run.weights - run.network.initial(simulation_random(4))
    if clipped == "average-column-sum":
        parts = [np.abs(matrix).sum(axis=0).max() for matrix, _ in run.network.layers(moved)]
        parts += [np.abs(bias).sum() for _, bias in run.network.layers(moved)]
        assert max(parts) == pytest.approx(0.1, rel=1e-9)
    else:
        norm = np.linalg.norm(moved, ord=1 if clipped.endswith("l1") else 2)
        assert norm <= 0.1 * (1 + 1e-12)
        assert norm > (0.099999 if clipped.startswith("average") else 0.01)
