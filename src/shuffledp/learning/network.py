"""A feed-forward ReLU network with softmax cross-entropy, and clipped sums of its per-example gradients.

The gradient of one example in a dense layer is the outer product x d^T of the layer's input and of the loss's slope d
at its output. So |x d^T| = |x| |d| for the Euclidean norm and for the sum of absolute values: norms of all examples
come from two vectors each, and the sum of clipped gradients is one matrix product of the inputs with rescaled slopes
(Goodfellow 2015, "Efficient per-example gradient computations"). No gradient of a single example is ever in memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput
from shuffledp.numerics.interval import FloatArray
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
        found: list[tuple[FloatArray, FloatArray]] = []
        at = 0
        for a, b in zip(self.widths, self.widths[1:], strict=False):
            found.append((weights[at : at + a * b].reshape(a, b), weights[at + a * b : at + (a + 1) * b]))
            at += (a + 1) * b
        return found

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
        """Return the last layer's output (class scores before softmax) for each row, shape (n, classes)."""
        return self._forward(weights, features)[1]

    def probabilities(self, weights: FloatArray, features: FloatArray) -> FloatArray:
        """Return the softmax of the scores, shape (n, classes); rows add up to 1."""
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
        found, fine = np.zeros(passed.losses.size), np.ones(passed.losses.size, dtype=np.bool_)
        for x, d in zip(passed.inputs, passed.slopes, strict=True):
            given, slope = powers(x), powers(d)
            fine &= (given <= largest) & (slope <= largest)  # False where one is not a number
            found += (given + 1.0) * slope  # the bias is one more input, constant 1
        return np.where(fine, found if order == 1 else np.sqrt(found), np.inf)

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
