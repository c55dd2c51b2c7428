"""Gradients against finite differences, clipped sums against sums of single clipped gradients."""

from __future__ import annotations

import numpy as np
import pytest

from shuffledp.errors import InvalidInput
from shuffledp.learning.messages import Clipping, shrink
from shuffledp.learning.network import Network
from shuffledp.numerics.randomness import simulation_random

NETWORKS = (Network((5, 3)), Network((5, 4, 3)), Network((5, 4, 6, 3)))


def some(network, n=7, seed=0):
    draw = np.random.default_rng(seed)
    features = draw.normal(size=(n, network.widths[0])) * draw.lognormal(size=(n, 1))
    return network.initial(simulation_random(seed)), features, draw.integers(network.widths[-1], size=n)


def loss(network, weights, row, label):
    chances = network.probabilities(weights, row[None, :])[0]
    return -np.log(chances[label])


@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_gradients_are_finite_differences(network):
    weights, features, labels = some(network)
    passed = network.backward(weights, features, labels)
    found = network.each_gradient(passed, np.ones(labels.size))
    for i in range(labels.size):
        for at in range(0, network.size, 3):
            moved = np.zeros(network.size)
            moved[at] = 1e-5
            up, down = (loss(network, weights + s * moved, features[i], labels[i]) for s in (1, -1))
            assert found[i, at] == pytest.approx((up - down) / 2e-5, abs=2e-8, rel=1e-5)
    assert np.allclose(passed.losses, [loss(network, weights, x, t) for x, t in zip(features, labels, strict=True)])


@pytest.mark.parametrize("network", NETWORKS, ids=str)
@pytest.mark.parametrize("order", [1, 2])
def test_norms_without_gradients_are_norms_of_gradients(network, order):
    weights, features, labels = some(network, n=20, seed=1)
    passed = network.backward(weights, features, labels)
    single = network.each_gradient(passed, np.ones(labels.size))
    assert np.allclose(network.gradient_norms(passed, order), np.linalg.norm(single, ord=order, axis=1), rtol=1e-13)
    chosen = np.random.default_rng(2).uniform(size=labels.size)
    assert np.allclose(network.weighted_sum(passed, chosen), chosen @ single, rtol=1e-12, atol=1e-13)
    assert np.allclose(network.weighted_sum(passed), single.sum(axis=0), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("order", [1, 2])
def test_a_large_client_is_clipped_as_a_small_one(order):
    """More examples than go through in one pass, against single gradients clipped one by one."""
    network = NETWORKS[1]
    weights, features, labels = some(network, n=2500, seed=3)
    single = network.each_gradient(network.backward(weights, features, labels), np.ones(labels.size))
    norms = np.linalg.norm(single, ord=order, axis=1)
    bound = float(np.median(norms))
    expected = (single * np.minimum(1.0, bound / norms)[:, None]).mean(axis=0)
    found = Clipping("example", "examples", bound, order).message(network, weights, features, labels)
    assert np.allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_probabilities_survive_huge_scores():
    network = Network((1, 3))
    weights = np.array([1e4, -1e4, 0.0, 0.0, 0.0, 0.0])
    assert network.probabilities(weights, np.array([[1.0], [-1.0]])).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


def test_what_is_not_finite_is_shrunk_to_nothing():
    assert shrink(np.array([np.inf, np.nan, 0.0, 4.0]), 2.0).tolist() == [0.0, 0.0, 1.0, 0.5]


@pytest.mark.parametrize("widths", [(3,), (3, 0, 2), (3, 1), (3, 2.5, 2), (True, 2)])
def test_bad_widths_are_refused(widths):
    with pytest.raises(InvalidInput):
        Network(widths)
