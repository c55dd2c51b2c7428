"""Sensitivity: never exceeded, nearly attained, and refused where only the average is clipped."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shuffledp.errors import InvalidInput
from shuffledp.learning.messages import Clipping
from shuffledp.learning.network import Network
from shuffledp.numerics.randomness import simulation_random

NETWORK = Network((6, 5, 4))


@given(seed=st.integers(0, 10**6), m=st.integers(1, 12), order=st.sampled_from([1, 2]), spread=st.floats(0.0, 6.0))
@settings(deadline=None, max_examples=40)
def test_no_swap_of_one_example_moves_the_message_further(seed, m, order, spread):
    draw = np.random.default_rng(seed)
    weights = NETWORK.initial(simulation_random(seed)) * 3.0
    features = draw.normal(size=(m + 1, 6)) * np.exp(spread * draw.normal(size=(m + 1, 1)))
    labels = draw.integers(4, size=m + 1)
    clipping = Clipping("example", "examples", 0.7, order)
    first = clipping.message(NETWORK, weights, features[:m], labels[:m])
    swapped = np.r_[np.arange(m - 1), m]
    second = clipping.message(NETWORK, weights, features[swapped], labels[swapped])
    assert np.linalg.norm(first - second, ord=order) <= float(clipping.sensitivity(m, NETWORK.size))


@pytest.mark.parametrize("order", [1, 2])
def test_the_sensitivity_is_attained(order):
    """Softmax regression of two classes at zero weights: opposite labels give opposite gradients."""
    network, features = Network((1, 2)), np.array([[1e6], [1.0], [1.0]])
    clipping = Clipping("example", "examples", 0.5, order)
    sent = [clipping.message(network, np.zeros(4), features, np.array([label, 0, 1])) for label in (0, 1)]
    moved = float(np.linalg.norm(sent[0] - sent[1], ord=order))
    assert 0.999999 < moved / float(clipping.sensitivity(3, network.size)) <= 1.0


@pytest.mark.parametrize("clipped", ["message", "examples"])
def test_a_whole_client_moves_the_message_by_twice_the_bound_at_most(clipped):
    network = Network((1, 2))
    clipping = Clipping("client", clipped, 0.5, 2)
    features = np.full((4, 1), 1e3)
    sent = [clipping.message(network, np.zeros(4), features, np.full(4, label)) for label in (0, 1)]
    assert 0.999 < np.linalg.norm(sent[0] - sent[1]) / float(clipping.sensitivity(4, 4)) <= 1.0
    assert float(clipping.sensitivity(4, 4)) == pytest.approx(1.0, rel=1e-12)


def test_clipping_an_average_and_calling_it_private_for_examples_is_refused():
    with pytest.raises(InvalidInput, match=r"move by 4 when one example is replaced, not by 4/m"):
        Clipping("example", "message", 2.0, 2)


def test_rounding_is_counted():
    clipping = Clipping("example", "examples", 1.0, 2)
    slack = clipping.sensitivity(np.array([1, 600, 10**6]), 10**4) / (2.0 / np.array([1, 600, 10**6])) - 1.0
    assert (slack > 0.0).all()
    assert slack[1] < 1e-9
    assert slack[2] < 1e-3


@pytest.mark.parametrize("clip", [0.0, -1.0, float("nan"), float("inf"), "two"])
def test_a_bad_bound_is_refused(clip):
    with pytest.raises(InvalidInput, match="clip must be"):
        Clipping("client", "message", clip, 2)
