"""A feed-forward ReLU network: its clipped sums of per-example gradients, and its file.

The loss is softmax cross-entropy. The gradient of one example in a dense layer is the outer product x d^T of the
layer's input and of the loss's slope d at its output. So |x d^T| = |x| |d| for the Euclidean norm and for the sum of
absolute values: norms of all examples come from two vectors each, and the sum of clipped gradients is one matrix
product of the inputs with rescaled slopes (Goodfellow 2015, "Efficient per-example gradient computations"). No gradient
of a single example is ever in memory.

The file of a trained model holds layers, labels, features and guarantee; it is written whole and read without pickle.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InvalidInput, path_shown
from shuffledp.learning.features import Map, features_of
from shuffledp.learning.inputs import checked_features
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.randomness import Randomness

LARGEST = 1e60
"""An example whose pass holds a larger number, or one that is not finite, has no gradient that can be clipped.

Up to here squares neither overflow nor lose precision where it matters: a slope whose square underflows is below
1e-153, and its product with such an input below 1e-93.
"""


@dataclass(frozen=True, eq=False)
class BackwardPass:
    """Intermediate values of one pass through the network, from which each example's gradient follows.

    Parameters
    ----------
    inputs : tuple of ndarray, shapes (n, width of the layer's input)
        Input of each layer.
    slopes : tuple of ndarray, shapes (n, width of the layer's output)
        Derivative of each example's own loss by the layer's output before its ReLU.
    losses : ndarray, shape (n,)
        Cross-entropy of each example, nats.
    """

    inputs: tuple[FloatArray, ...]
    slopes: tuple[FloatArray, ...]
    losses: FloatArray

    def without(self, some: NDArray[np.bool_]) -> BackwardPass:
        """Return the same pass with the gradients of the marked examples set to zero; marks have shape (n,)."""
        if not some.any():
            return self
        gone = some[:, None]
        return BackwardPass(
            tuple(np.where(gone, 0.0, x) for x in self.inputs),
            tuple(np.where(gone, 0.0, d) for d in self.slopes),
            np.where(some, 0.0, self.losses),
        )


@dataclass(frozen=True)
class Network:
    """Dense layers with ReLU between them and softmax at the end; all weights in one flat vector.

    Parameters
    ----------
    widths : tuple of int
        Features, hidden widths (possibly none: softmax regression), classes; each at least 1, at least 2 classes.

    Raises
    ------
    InvalidInput
        If a width is not a positive whole number, or there are fewer than two classes.

    Examples
    --------
    >>> Network((4, 3, 2)).size
    23
    """

    widths: tuple[int, ...]

    def __post_init__(self) -> None:
        whole = all(isinstance(w, int) and not isinstance(w, bool) and w >= 1 for w in self.widths)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not whole or len(self.widths) < 2:
            raise InvalidInput(f"layer widths must be positive whole numbers; got {self.widths}")
        if self.widths[-1] < 2:
            raise InvalidInput(f"a classifier needs at least two classes; got {self.widths[-1]}")

    @cached_property
    def size(self) -> int:
        """Number of weights, biases included."""
        return sum((a + 1) * b for a, b in zip(self.widths, self.widths[1:], strict=False))

    def layers(self, weights: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """Return (matrix, shape (in, out); bias, shape (out,)) of each layer, as views of a flat weight vector."""
        pairs: list[tuple[FloatArray, FloatArray]] = []
        at = 0
        for a, b in zip(self.widths, self.widths[1:], strict=False):
            pairs.append((weights[at : at + a * b].reshape(a, b), weights[at + a * b : at + (a + 1) * b]))
            at += (a + 1) * b
        return pairs

    def initial(self, random: Randomness) -> FloatArray:
        """Return random public first weights, uniform within sqrt(6/(in + out)) (Glorot and Bengio 2010); biases 0.

        Parameters
        ----------
        random : Randomness
            Source of the draw.
        """
        weights = np.zeros(self.size)
        for matrix, _ in self.layers(weights):
            unit = (random.words(matrix.size) >> np.uint64(11)) * 2.0**-52 - 1.0
            matrix[:] = unit.reshape(matrix.shape) * math.sqrt(6.0 / sum(matrix.shape))
        return weights

    def scores(self, weights: FloatArray, features: FloatArray) -> FloatArray:
        """Return the last layer's output (class scores before softmax) for each row, shape (n, classes).

        Parameters
        ----------
        weights : ndarray, shape (size,)
            All weights of the network.
        features : ndarray, shape (n, features)
            One row of inputs per example.
        """
        return self._forward(weights, features)[1]

    def probabilities(self, weights: FloatArray, features: FloatArray) -> FloatArray:
        """Return the softmax of the scores, shape (n, classes); rows add up to 1. Arguments are as for `scores`."""
        chances = np.exp(_shifted(self.scores(weights, features)))
        return chances / chances.sum(axis=1, keepdims=True)

    def backward(self, weights: FloatArray, features: FloatArray, labels: NDArray[np.int64]) -> BackwardPass:
        """Return the forward and backward pass of these examples, from which their gradients follow.

        Parameters
        ----------
        weights : ndarray, shape (size,)
            Current weights.
        features : ndarray, shape (n, features)
            An example's numbers that are not finite make its own part of the pass not finite, and nobody else's.
        labels : ndarray of int64, shape (n,)
            In 0..classes-1.
        """
        inputs, scores = self._forward(weights, features)
        shifted, rows = _shifted(scores), np.arange(labels.size)
        slope = np.exp(shifted)
        total = slope.sum(axis=1, keepdims=True)
        losses = np.log(total[:, 0]) - shifted[rows, labels]
        slope /= total
        slope[rows, labels] -= 1.0
        slopes = [slope]
        for (matrix, _), given in zip(self.layers(weights)[:0:-1], inputs[:0:-1], strict=True):
            slope = slope @ matrix.T
            slope *= given > 0.0
            slopes.append(slope)
        return BackwardPass(tuple(inputs), tuple(slopes[::-1]), losses)

    def gradient_norms(self, passed: BackwardPass, order: int) -> FloatArray:
        """Return the norm of each example's gradient, shape (n,); inf if its pass holds a number beyond `LARGEST`.

        Parameters
        ----------
        passed : BackwardPass
            Backward pass of the examples.
        order : {1, 2}
            1 sums absolute values, 2 is Euclidean.
        """
        powers, largest = (_absolutes, LARGEST) if order == 1 else (_squares, LARGEST**2)
        totals, fine = np.zeros(passed.losses.size), np.ones(passed.losses.size, dtype=np.bool_)
        for x, d in zip(passed.inputs, passed.slopes, strict=True):
            given, slope = powers(x), powers(d)
            fine &= (given <= largest) & (slope <= largest)  # False where one is not a number
            totals += (given + 1.0) * slope  # the bias is one more input, constant 1
        return np.where(fine, totals if order == 1 else np.sqrt(totals), np.inf)

    def weighted_sum(self, passed: BackwardPass, weights: FloatArray | None = None) -> FloatArray:
        """Return the sum over examples of weight times gradient, shape (size,); weight 0 leaves an example out.

        Parameters
        ----------
        passed : BackwardPass
            Backward pass of the examples.
        weights : ndarray, shape (n,), optional
            One per example; default 1.
        """
        passed = passed if weights is None else passed.without(weights == 0.0)
        total = np.empty(self.size)
        of_each = np.ones(passed.losses.size) if weights is None else weights
        for (matrix, bias), x, d in zip(self.layers(total), passed.inputs, passed.slopes, strict=True):
            np.matmul(of_each, d, out=bias)
            if weights is not None:  # whichever is narrower
                x, d = (x, d * weights[:, None]) if d.shape[1] < x.shape[1] else (x * weights[:, None], d)
            np.matmul(x.T, d, out=matrix)
        return total

    def each_gradient(self, passed: BackwardPass, weights: FloatArray) -> FloatArray:
        """Return weight times gradient of each example, shape (n, size), for examples that are messages.

        The gradient of an example of weight 0 is zero, also where it is not finite.

        Parameters
        ----------
        passed : BackwardPass
            Backward pass of the examples.
        weights : ndarray, shape (n,)
            One per example.
        """
        parts: list[FloatArray] = []
        passed = passed.without(weights == 0.0)
        for x, slope in zip(passed.inputs, passed.slopes, strict=True):
            d = slope * weights[:, None]
            parts += [np.einsum("ni,nj->nij", x, d).reshape(x.shape[0], -1), d]
        return np.concatenate(parts, axis=1)

    def along(self, passed: BackwardPass, directions: NDArray[np.float32]) -> FloatArray:
        """Return the inner product of each example's gradient with its direction, shape (n,); no gradient is formed.

        Parameters
        ----------
        passed : BackwardPass
            Backward pass of the examples.
        directions : ndarray of float32, shape (n, size)
            One per example.
        """
        n, at = directions.shape[0], 0
        total = np.zeros(n)
        for x, slope in zip(passed.inputs, passed.slopes, strict=True):
            rows, columns = x.shape[1], slope.shape[1]
            matrix = directions[:, at : at + rows * columns].reshape(n, rows, columns)
            bias = directions[:, at + rows * columns : at + rows * columns + columns]
            seen = np.matmul(x.astype(np.float32)[:, None, :], matrix)[:, 0, :] + bias
            total += np.einsum("nj,nj->n", seen, slope)
            at += rows * columns + columns
        return total

    def _forward(self, weights: FloatArray, features: FloatArray) -> tuple[list[FloatArray], FloatArray]:
        inputs: list[FloatArray] = []
        at = features
        for matrix, bias in self.layers(weights):
            if inputs:
                at = np.maximum(at, 0.0, out=at)
            inputs.append(at)
            at = at @ matrix
            at += bias
        return inputs, at


def _shifted(scores: FloatArray) -> FloatArray:
    return scores - scores.max(axis=1, keepdims=True)


def _squares(rows: FloatArray) -> FloatArray:
    return np.einsum("ij,ij->i", rows, rows)


def _absolutes(rows: FloatArray) -> FloatArray:
    return np.abs(rows).sum(axis=1)


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
        description = self.about["features_of_a_row"]
        return tuple(description["columns"]) if description["kind"] == "columns" else None

    @property
    def inputs(self) -> int:
        """Number of entries in a row: table columns, or points of a picture."""
        description = self.about["features_of_a_row"]
        return len(description["columns"]) if description["kind"] == "columns" else int(description["side"]) ** 2

    @property
    def epsilon(self) -> float:
        """Certified central epsilon of the training in nats, at `delta`; infinite if training was a simulation."""
        upper = self.about["guarantee"]["epsilon"]["upper"]
        return float("inf") if upper is None or self.about["private"] is not True else float(upper)

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
            same_format, classes = about["format"] == MODEL_FORMAT, tuple(str(name) for name in stored["classes"])
            count = sum(name.startswith("matrix_") for name in stored.files)
            layers = [(stored[f"matrix_{i}"], stored[f"bias_{i}"]) for i in range(count)]
        network = Network((int(layers[0][0].shape[0]), *(int(matrix.shape[1]) for matrix, _ in layers)))
        weights = np.concatenate([part.ravel() for layer in layers for part in layer]).astype(np.float64)
        model = TrainedModel(network, weights, classes, features_of(about["features_of_a_row"]), about)
        fits = weights.size == network.size and len(classes) == network.widths[-1] and bool(np.isfinite(weights).all())
        fits = fits and model.inputs > 0 and 0.0 < model.delta < 1.0 and model.epsilon >= 0.0
        fits = fits and model.features(np.zeros((1, model.inputs))).shape[1] == network.widths[0]
    except FileNotFoundError:
        raise InvalidInput(
            f"there is no model file {path_shown(where)}; shuffledp train --model-out writes one"
        ) from None
    except Exception:  # whatever a flipped bit makes zipfile, zlib, NumPy or json raise
        same_format, fits, model = True, False, None
    if not same_format:
        raise InvalidInput(f"{path_shown(where)} is a model of another format; this version reads {MODEL_FORMAT}")
    if not fits or model is None:
        raise InvalidInput(f"{path_shown(where)} is no model file of shuffledp, or is damaged; train it again")
    return model
