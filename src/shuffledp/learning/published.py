"""Training as the published experiments did it, so that their accuracies can be seen: nothing here is private.

The average gradient of a block is clipped, and noise of scale 2C/m is added as if that bounded one example's part
(Chen, Cao, Ge 2024, Algorithm 3; and their ICASSP 2024 paper, Algorithm 1, with Laplace noise). No guarantee follows:
`PublishedRun.guarantee` is None. See docs/learning.md for how far the claim is off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InvalidInput
from shuffledp.learning.inputs import whole_number
from shuffledp.learning.messages import Clipping
from shuffledp.learning.network import Network
from shuffledp.numerics.floats import TINY
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import simulation_random

ClippedNorm = Literal["average-l2", "average-l1", "average-column-sum", "examples-l1", "examples-l2", "none"]
CLIPPED_NORMS: tuple[ClippedNorm, ...] = (
    "average-l2", "average-l1", "average-column-sum", "examples-l1", "examples-l2", "none",
)  # fmt: skip


@dataclass(frozen=True)
class Reading:
    """One interpretation of the published pseudo-code for private training.

    Parameters
    ----------
    noise : {"gaussian", "laplace"}
        Gaussian: sigma = (2C/m) sqrt(2 ln(1.25/delta))/epsilon; Laplace: scale 2C/(m epsilon).
    clipped : str
        One of `CLIPPED_NORMS`. "average-column-sum" clips each weight matrix of the average by its largest column sum
        of absolute values (the induced 1-norm), and each bias by its sum, as the public script does.
    bound : float
        Clipping bound C, positive.
    divisor : int
        Number m in the noise scale.
    delta : float
        Delta in the formula of Gaussian noise.
    hidden : int
        Hidden units.
    step : float
        Step length.
    epochs : int
        Passes over the blocks, in one fixed order.
    """

    noise: Literal["gaussian", "laplace"]
    clipped: ClippedNorm
    bound: float
    divisor: int
    delta: float = 1e-5
    hidden: int = 1000
    step: float = 0.05
    epochs: int = 50


@dataclass(frozen=True, eq=False)
class PublishedRun:
    """Results of one run of a published training experiment.

    Parameters
    ----------
    accuracies : ndarray, shape (epochs,)
        Share of the test set predicted correctly after each epoch.
    train_accuracy : float
        Share of the training set predicted correctly at the end.
    weights : ndarray
        Of the last model.
    network : Network
        Its shape.
    guarantee : None
        Always: no theorem covers this.
    """

    accuracies: FloatArray
    train_accuracy: float
    weights: FloatArray
    network: Network
    guarantee: None = None


def train_as_published(
    features: FloatArray,
    labels: NDArray[np.int64],
    test: tuple[FloatArray, NDArray[np.int64]],
    epsilons: ArrayLike,
    reading: Reading,
    *,
    seed: int,
) -> PublishedRun:
    """Train as the papers' pseudo-code says, block i with budget epsilons[i], and return the results.

    Parameters
    ----------
    features, labels : ndarray, shapes (n, inputs) and (n,)
        Training data; spread over the blocks at random.
    test : (ndarray, ndarray)
        Test data.
    epsilons : array_like, shape (blocks,)
        Budget of each block in nats, positive, or inf for no noise.
    reading : Reading
        Interpretation of the pseudo-code.
    seed : int
        Seed of all random draws: this is a simulation.

    Raises
    ------
    InvalidInput
        If a budget is not positive, there are fewer examples than blocks, or the reading is unknown.
    """
    budgets = np.atleast_1d(np.asarray(epsilons, dtype=np.float64))
    whole_number("epochs", reading.epochs, 1)
    if reading.clipped not in CLIPPED_NORMS or reading.noise not in ("gaussian", "laplace"):
        raise InvalidInput(f"this reading is unknown: {reading}")
    if not (budgets > 0.0).all() or not budgets.size <= labels.size:
        raise InvalidInput("every block needs a positive budget and at least one example")
    draw = np.random.default_rng(seed)
    network = Network((features.shape[1], reading.hidden, int(max(labels.max(), test[1].max())) + 1))
    weights = network.initial(simulation_random(seed))
    order = draw.permutation(labels.size)
    blocks = [(features[rows], labels[rows]) for rows in np.array_split(order, budgets.size)]
    factor = math.sqrt(2.0 * math.log(1.25 / reading.delta)) if reading.noise == "gaussian" else 1.0
    scales = 2.0 * reading.bound / reading.divisor * factor / budgets
    found: list[float] = []
    for _ in range(reading.epochs):
        for (rows, known), scale in zip(blocks, scales.tolist(), strict=True):
            sent = _message(network, weights, rows, known, reading)
            if scale > 0.0:
                sent += (
                    draw.normal(0.0, scale, sent.size)
                    if reading.noise == "gaussian"
                    else draw.laplace(0.0, scale, sent.size)
                )
            weights -= reading.step * sent
        found.append(_share(network, weights, *test))
    return PublishedRun(np.array(found), _share(network, weights, features, labels), weights, network)


def _message(
    network: Network, weights: FloatArray, rows: FloatArray, labels: NDArray[np.int64], reading: Reading
) -> FloatArray:
    if reading.clipped.startswith("examples"):
        order: Literal[1, 2] = 1 if reading.clipped == "examples-l1" else 2
        return Clipping("example", "examples", reading.bound, order).message(network, weights, rows, labels)
    mean = network.weighted_sum(network.backward(weights, rows, labels)) / labels.size
    if reading.clipped == "average-column-sum":
        for matrix, bias in network.layers(mean):
            for part, norm in ((matrix, float(np.abs(matrix).sum(axis=0).max())), (bias, float(np.abs(bias).sum()))):
                part *= min(1.0, reading.bound / max(norm, TINY))
        return mean
    if reading.clipped != "none":
        norm = float(np.linalg.norm(mean, ord=1 if reading.clipped == "average-l1" else 2))
        mean *= min(1.0, reading.bound / max(norm, TINY))
    return mean


def _share(network: Network, weights: FloatArray, rows: FloatArray, labels: NDArray[np.int64]) -> float:
    return float(np.mean(network.scores(weights, rows).argmax(axis=1) == labels))
