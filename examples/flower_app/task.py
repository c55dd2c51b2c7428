"""Model, data and terms that clients and server share: softmax regression on the bundled sample of digits."""

from __future__ import annotations

from functools import cache

import numpy as np
from flwr.app import Array, ArrayRecord
from numpy.typing import NDArray

from shuffledp.flower import Terms
from shuffledp.learning import cosine_projection, read_digits, sample_folder

CLIENTS = 1000
ROUNDS = 20
TERMS = Terms(clip=1.0, levels={"strict": (2.0, 1e-7), "open": (8.0, 1e-7)}, release="sum")
FEATURES = cosine_projection(28, 20, scale=1 / 255)  # made from no data


@cache
def digits(part: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Features and labels of the sample: "train" belongs to the clients, "test" is public."""
    sample = read_digits(sample_folder(), part)
    return FEATURES(sample.images), sample.labels


def first_model() -> ArrayRecord:
    """All zeros: made from no data."""
    return model(np.zeros((20, 10)), np.zeros(10))


def model(matrix: NDArray[np.float64], bias: NDArray[np.float64]) -> ArrayRecord:
    """Return the model as Flower sends it."""
    return ArrayRecord({"matrix": Array(matrix.astype(np.float32)), "bias": Array(bias.astype(np.float32))})


def scores(record: ArrayRecord, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores of the ten digits, shape (n, 10)."""
    return rows @ record["matrix"].numpy().astype(np.float64) + record["bias"].numpy()


def accuracy(record: ArrayRecord) -> float:
    """Share of the test digits that are recognised."""
    rows, labels = digits("test")
    return float(np.mean(scores(record, rows).argmax(axis=1) == labels))


def local_training(
    record: ArrayRecord, rows: NDArray[np.float64], labels: NDArray[np.int64], *, steps: int = 5, rate: float = 0.5
) -> ArrayRecord:
    """Take a few steps of gradient descent on one client's digits; not private by itself."""
    matrix, bias = record["matrix"].numpy().astype(np.float64), record["bias"].numpy().astype(np.float64)
    for _ in range(steps):
        found = rows @ matrix + bias
        slope = np.exp(found - found.max(axis=1, keepdims=True))
        slope /= slope.sum(axis=1, keepdims=True)
        slope[np.arange(labels.size), labels] -= 1.0
        slope *= rate / labels.size
        matrix, bias = matrix - rows.T @ slope, bias - slope.sum(axis=0)
    return model(matrix, bias)
