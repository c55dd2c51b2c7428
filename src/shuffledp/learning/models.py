"""A trained model in a file: layers, labels, features and guarantee; written whole, read without pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InvalidInput, path_shown
from shuffledp.learning.features import Map, features_of
from shuffledp.learning.inputs import checked_features
from shuffledp.learning.network import Network
from shuffledp.numerics.interval import FloatArray

MODEL_FORMAT = 1
_CHUNK = 2048


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """Trained classifier, read from a file that ``shuffledp train --model-out`` wrote.

    Parameters
    ----------
    network : Network
        The network's layer widths.
    weights : ndarray, shape (network.size,)
        The network's weights.
    classes : tuple of str
        Names of the labels.
    features : Map
        Fixed map from a row (columns in the order of ``columns``, or points of a picture) to the network's inputs.
    about : mapping
        What the file says of training, the guarantee among it, as ``shuffledp train --json`` prints it.
    """

    network: Network
    weights: FloatArray
    classes: tuple[str, ...]
    features: Map
    about: Mapping[str, Any]

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the table columns that form a row, in order; None for pictures."""
        told = self.about["features_of_a_row"]
        return tuple(told["columns"]) if told["kind"] == "columns" else None

    @property
    def inputs(self) -> int:
        """Number of entries in a row: table columns, or points of a picture."""
        told = self.about["features_of_a_row"]
        return len(told["columns"]) if told["kind"] == "columns" else int(told["side"]) ** 2

    @property
    def epsilon(self) -> float:
        """Certified central epsilon of the training in nats, at `delta`; infinite if training was a simulation."""
        told = self.about["guarantee"]["epsilon"]["upper"]
        return float("inf") if told is None or self.about["private"] is not True else float(told)

    @property
    def delta(self) -> float:
        """Central delta at which the training's guarantee is certified, in (0, 1)."""
        return float(self.about["guarantee"]["delta"])

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the predicted probability of each class for each row.

        Parameters
        ----------
        X : array_like, shape (n, inputs)
            Rows as they were trained on, before features: columns in the order of ``columns``, or pictures.

        Returns
        -------
        ndarray, shape (n, classes)
            Probabilities; each row adds up to 1.

        Raises
        ------
        InvalidInput
            If the rows are not finite numbers of the right count.
        """
        rows = checked_features(X, inputs=self.inputs)
        parts = [self.features(rows[at : at + _CHUNK]) for at in range(0, rows.shape[0], _CHUNK)]
        return np.concatenate([self.network.probabilities(self.weights, part) for part in parts])

    def predict(self, X: ArrayLike) -> NDArray[np.str_]:
        """Return the name of the most likely class of each row, shape (n,).

        Parameters
        ----------
        X : array_like, shape (n, inputs)
            As for `predict_proba`.
        """
        return np.array(self.classes)[self.predict_proba(X).argmax(axis=1)]


def write_model(file: BinaryIO, network: Network, weights: FloatArray, classes: tuple[str, ...], about: str) -> None:
    """Write a model into an open file.

    Parameters
    ----------
    file : binary file
        Open for writing.
    network : Network
        The network's layer widths.
    weights : ndarray, shape (network.size,)
        The network's weights.
    classes : tuple of str
        Names of the labels.
    about : str
        A JSON object with ``format`` (`MODEL_FORMAT`), ``guarantee``, ``private``, and ``features_of_a_row``, which
        describes the features; see `shuffledp.learning.features.features_of`.
    """
    arrays: dict[str, Any] = {"classes": np.array(classes), "about": np.array(about)}
    for i, (matrix, bias) in enumerate(network.layers(weights)):
        arrays |= {f"matrix_{i}": matrix, f"bias_{i}": bias}
    np.savez(file, **arrays)


def load_model(path: str | Path) -> TrainedModel:
    """Return the model in a file that ``shuffledp train --model-out`` wrote.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    TrainedModel
        Predicts labels of new rows; ``about["guarantee"]`` is what may be claimed of its training.

    Raises
    ------
    InvalidInput
        If the file is missing, damaged, or of another format.

    Examples
    --------
    >>> load_model("no-such-model.npz")
    Traceback (most recent call last):
    ...
    shuffledp.errors.InvalidInput: there is no model file no-such-model.npz; shuffledp train --model-out writes one
    """
    where = Path(path)
    try:
        with where.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            about = json.loads(str(stored["about"]))
            known, classes = about["format"] == MODEL_FORMAT, tuple(str(name) for name in stored["classes"])
            count = sum(name.startswith("matrix_") for name in stored.files)
            layers = [(stored[f"matrix_{i}"], stored[f"bias_{i}"]) for i in range(count)]
        network = Network((int(layers[0][0].shape[0]), *(int(matrix.shape[1]) for matrix, _ in layers)))
        weights = np.concatenate([part.ravel() for layer in layers for part in layer]).astype(np.float64)
        found = TrainedModel(network, weights, classes, features_of(about["features_of_a_row"]), about)
        fits = weights.size == network.size and len(classes) == network.widths[-1] and bool(np.isfinite(weights).all())
        fits = fits and found.inputs > 0 and 0.0 < found.delta < 1.0 and found.epsilon >= 0.0
        fits = fits and found.features(np.zeros((1, found.inputs))).shape[1] == network.widths[0]
    except FileNotFoundError:
        raise InvalidInput(
            f"there is no model file {path_shown(where)}; shuffledp train --model-out writes one"
        ) from None
    except Exception:  # whatever a flipped bit makes zipfile, zlib, NumPy or json raise
        known, fits, found = True, False, None
    if not known:
        raise InvalidInput(f"{path_shown(where)} is a model of another format; this version reads {MODEL_FORMAT}")
    if not fits or found is None:
        raise InvalidInput(f"{path_shown(where)} is no model file of shuffledp, or is damaged; train it again")
    return found
