"""Training runs behind the papers' training figures: as published, without guarantee, and honest, with one."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput
from shuffledp.learning.classifier import ShuffledSGDClassifier
from shuffledp.learning.features import OrientedGradients, public_projection
from shuffledp.learning.idx import read_digits, sample_folder
from shuffledp.learning.inputs import assign_clients
from shuffledp.learning.published import Reading, train_as_published
from shuffledp.learning.settings import RoundReport
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import simulation_random
from shuffledp.reproduce.base import Cell, Progress

K = TypeVar("K")
VARIABLE = "SHUFFLEDP_MNIST"
COMPONENTS = 60
DELTA = 1e-5
"""Central delta of honest runs, and the delta of the papers' noise."""


@dataclass(frozen=True, eq=False)
class Data:
    """Training and test digits as features for the networks, with their labels.

    Parameters
    ----------
    components, edges : (ndarray, ndarray)
        Features of training and test digits: 60 principal components of the training digits, as in the papers; and
        oriented gradients, which are made from no data.
    labels : (ndarray of int64, ndarray of int64)
        Of training and test digits.
    """

    components: tuple[FloatArray, FloatArray]
    edges: tuple[FloatArray, FloatArray]
    labels: tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class Curve:
    """Accuracy and privacy cost of one training run by epoch.

    Parameters
    ----------
    accuracies : tuple of float
        Share of the test digits predicted correctly, after each epoch.
    epsilons : tuple of float
        Largest certified central epsilon of a client after each epoch, nats; empty if nothing is guaranteed.
    training : float
        Share of the training digits predicted correctly at the end.
    """

    accuracies: tuple[float, ...]
    epsilons: tuple[float, ...]
    training: float


class Way(Protocol):
    """Interface of a way of training that can be repeated under several seeds."""

    def run(self, data: Data, seed: int) -> Curve:
        """Train one model and return its accuracy by epoch; ``seed`` determines all random draws."""
        ...


@dataclass(frozen=True)
class Published:
    """Training by the published pseudo-code, from which no guarantee follows.

    Parameters
    ----------
    reading : Reading
        Interpretation of the pseudo-code.
    budgets : tuple of float
        Local budget of each block in nats; inf for no noise.
    """

    reading: Reading
    budgets: tuple[float, ...]

    def run(self, data: Data, seed: int) -> Curve:
        """Train one model by the published pseudo-code and return its accuracy by epoch."""
        test = data.components[1], data.labels[1]
        found = train_as_published(data.components[0], data.labels[0], test, self.budgets, self.reading, seed=seed)
        return Curve(tuple(found.accuracies.tolist()), (), found.train_accuracy)


@dataclass(frozen=True)
class Honest:
    """Softmax regression on oriented gradients; every example's gradient is clipped, the server sees every message.

    Parameters
    ----------
    mechanism : {"gaussian", "laplace"}
        Noise of a message.
    budgets : tuple of float
        Local budget of each client's message, one per client.
    deltas : tuple of float
        delta0 of each client's message; empty for Laplace noise.
    rounds : int
        Messages of every client.
    clip, step : float
        Largest norm of one example's gradient, and the length of a step.
    """

    mechanism: str
    budgets: tuple[float, ...]
    deltas: tuple[float, ...]
    rounds: int
    clip: float
    step: float

    def run(self, data: Data, seed: int) -> Curve:
        """Train one model and return its accuracy and certified epsilon after every round."""
        told: list[RoundReport] = []
        model = ShuffledSGDClassifier(
            unit="example", seen="users", epsilon0=list(self.budgets), delta0=list(self.deltas) or None, delta=DELTA,
            clip=self.clip, rounds=self.rounds, hidden=(), step=self.step, mechanism=self.mechanism, classes=10,
            progress=told.append, random=simulation_random(seed),
        )  # fmt: skip
        known = data.labels[0]
        groups = assign_clients(known.size, len(self.budgets), simulation_random(seed))
        model.fit(data.edges[0], known, groups=groups, validation=(data.edges[1], data.labels[1]))
        return Curve(
            tuple(each.accuracy for each in told),
            tuple(each.epsilon for each in told),
            model.score(data.edges[0], known),
        )


@dataclass(frozen=True)
class Trained:
    """Accuracies and epsilons of one way of training under several seeds.

    Parameters
    ----------
    accuracies : ndarray, shape (seeds, epochs)
        Percent of the test digits.
    training : ndarray, shape (seeds,)
        Percent of the training digits at the end.
    epsilons : tuple of float
        Certified central epsilon after each epoch, nats; empty without a guarantee. Budgets are public and the same for
        all seeds, and so are these.
    """

    accuracies: FloatArray
    training: FloatArray
    epsilons: tuple[float, ...]

    @property
    def mean(self) -> FloatArray:
        """Mean accuracy over seeds after each epoch, in percent, shape (epochs,)."""
        return self.accuracies.mean(axis=0)

    @property
    def deviation(self) -> FloatArray:
        """Standard deviation of the accuracy over seeds after each epoch, in percent; 0 for one seed."""
        return self.accuracies.std(axis=0, ddof=1) if self.accuracies.shape[0] > 1 else np.zeros_like(self.mean)


@dataclass(frozen=True)
class Scale:
    """Size of a reproduction of training: data, epochs, rounds, seeds and clients.

    Parameters
    ----------
    folder : Path
        Folder of the idx files.
    epochs : int
        Epochs of the published training.
    rounds : int
        Of the honest training.
    seeds : int
        Number of runs of each way of training.
    clients : int or None
        Of the honest training; None for as many as the paper has blocks.
    note : str
        What the quick variant leaves out, for captions; empty for the full one.
    """

    folder: Path
    epochs: int
    rounds: int
    seeds: int
    clients: int | None = None
    note: str = ""

    @property
    def like_the_paper(self) -> bool:
        """True if the numbers may be compared with the paper's one by one."""
        return not self.note


def scale(quick: bool) -> Scale:
    """Return the size of a reproduction: the bundled sample of digits if ``quick``, else all of MNIST.

    Raises
    ------
    InvalidInput
        If the full variant is asked for, and SHUFFLEDP_MNIST does not name a folder.
    """
    if quick:
        return Scale(
            sample_folder(), 8, 20, 1, 20,
            "**Quick variant:** the bundled 2,000 training and 500 test digits instead of 60,000 and 10,000, fewer "
            "epochs, one seed, and 20 clients in the honest runs; there are as many blocks as in the full variant, so "
            "smaller ones, with the full variant's noise. Accuracies are not to be compared with the paper's one by "
            f"one; the full variant (without `--quick`, {VARIABLE} naming the folder of idx files) takes all of MNIST.",
        )  # fmt: skip
    folder = os.environ.get(VARIABLE)
    if not folder:
        raise InvalidInput(
            f"the full variant trains on MNIST: set the variable {VARIABLE} to the folder with its four idx files, "
            "or use the quick variant (--quick), which trains on the bundled sample"
        )
    return Scale(Path(folder), 50, 50, 3)


def trained(asked: Mapping[K, Way], how: Scale, progress: Progress) -> dict[K, Trained]:
    """Return the results of every way of training, each run once in this process and then reused.

    Parameters
    ----------
    asked : mapping of any name to Way
        Ways of training, in the order of the result.
    how : Scale
        Size of the reproduction: data, epochs and seeds.
    progress : callable
        Called with the completed part, from 0 to 1.
    """
    found: dict[K, Trained] = {}
    for done, (name, way) in enumerate(asked.items()):
        curves: list[Curve] = []
        for seed in range(how.seeds):
            curves.append(_once(how.folder, way, seed))
            progress((done + (seed + 1) / how.seeds) / len(asked))
        found[name] = Trained(
            np.array([[100.0 * share for share in curve.accuracies] for curve in curves]),
            np.array([100.0 * curve.training for curve in curves]),
            curves[0].epsilons,
        )
    return found


def shown_delta() -> str:
    """Return the delta at which honest runs are certified, as text for captions."""
    return f"{DELTA:g}".replace("e-0", "e-")


def shown_epsilon(epsilon: Cell) -> str:
    """Return a certified epsilon as text with two decimals, rounded up."""
    return f"{math.ceil(100.0 * float(epsilon)) / 100.0:.2f}"


def mean_inverse_square(budgets: Iterable[float]) -> float:
    """Return the mean of 1/epsilon^2: the noise variance of one pass, in units of that at epsilon = 1."""
    return float(np.mean([1.0 / each**2 for each in budgets]))


@lru_cache(maxsize=256)
def _once(folder: Path, way: Way, seed: int) -> Curve:
    return way.run(_data(folder), seed)


@lru_cache(maxsize=1)
def _data(folder: Path) -> Data:
    train, test = (read_digits(folder, part) for part in ("train", "test"))
    components = public_projection(train.images, COMPONENTS, public=True, scale=1.0 / 255.0)
    edges = OrientedGradients(28)
    return Data(
        (components(train.images), components(test.images)),
        (edges(train.images), edges(test.images)),
        (train.labels.astype(np.int64), test.labels.astype(np.int64)),
    )
