"""Attacks on training: what a claimed sensitivity hides, and what a personal noise scale tells.

Both look at the private data or at private messages; what they return is for the auditor, not for publication.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InvalidInput, shown
from shuffledp.learning.network import Network
from shuffledp.numerics.floats import TINY, FloatArray, roundoff

_CHUNK = 1024

Message = Callable[[FloatArray, NDArray[np.int64]], FloatArray]
"""Function of the features and labels of one client that returns the vector it would send without noise."""


@dataclass(frozen=True)
class SensitivityAudit:
    """Result of a sensitivity audit: the claimed sensitivity and the largest distance that a message moved.

    Parameters
    ----------
    claimed : float
        The sensitivity that was claimed.
    measured : float
        The largest distance found: a lower bound on the true sensitivity.
    swaps : int
        Number of replacements tried.
    """

    claimed: float
    measured: float
    swaps: int

    @property
    def ratio(self) -> float:
        """Ratio measured/claimed of the sensitivities; above 1 the claim is false."""
        return self.measured / self.claimed

    @property
    def violated(self) -> bool:
        """True if the measured sensitivity exceeds the claimed one, which is then refuted."""
        return self.ratio > 1.0


def audit_example_swap(
    message: Message,
    features: FloatArray,
    labels: NDArray[np.int64],
    candidates: tuple[FloatArray, NDArray[np.int64]],
    *,
    claimed: float,
    order: int = 2,
    tried: int = 16,
    network: Network | None = None,
    weights: FloatArray | None = None,
) -> SensitivityAudit:
    """Replace one example of a client by other examples, and measure the largest distance its message moves.

    Parameters
    ----------
    message : callable
        The client's message without noise, as a function of its features and labels.
    features, labels : ndarray, shapes (m, inputs) and (m,)
        The client's examples.
    candidates : (ndarray, ndarray)
        Examples that may take the place of the first one.
    claimed : float
        Claimed sensitivity to one example, positive.
    order : {1, 2}
        Norm of the distance: 1 sums absolute values, 2 is Euclidean.
    tried : int
        How many candidates are tried: those of the largest gradients, if network and weights are given.
    network, weights : Network and ndarray, optional
        Where the model stands, to choose by; replaced are then the examples of the smallest and of the four largest
        gradients, otherwise the first example.

    Raises
    ------
    InvalidInput
        If the claim is not positive.
    """
    if not claimed > 0.0:
        raise InvalidInput(f"a claimed sensitivity must be positive; got {shown(claimed)}")
    others, names = candidates
    picked, places = np.arange(min(tried, names.size)), np.zeros(1, dtype=np.int64)
    if network is not None and weights is not None:
        picked = np.argsort(-_norms(network, weights, others, names, order), kind="stable")[:tried]
        rank = np.argsort(_norms(network, weights, features, labels, order), kind="stable")
        places = np.unique(np.concatenate((rank[:1], rank[-4:])))
    first, measured = message(features, labels), 0.0
    for place in places.tolist():
        for index in picked.tolist():
            changed_features, changed_labels = features.copy(), labels.copy()
            changed_features[place], changed_labels[place] = others[index], names[index]
            measured = max(
                measured, float(np.linalg.norm(message(changed_features, changed_labels) - first, ord=order))
            )
    return SensitivityAudit(claimed, measured, int(picked.size * places.size))


def audit_client_swap(
    message: Message, clients: list[tuple[FloatArray, NDArray[np.int64]]], *, claimed: float, order: int = 2
) -> SensitivityAudit:
    """Replace all data of one client by another's, for all pairs, and measure the largest distance a message moves.

    Parameters
    ----------
    message : callable
        The client's message without noise, as a function of its features and labels.
    clients : list of (features, labels)
        Two or more.
    claimed : float
        Claimed sensitivity to one client, positive.
    order : {1, 2}
        Norm of the distance: 1 sums absolute values, 2 is Euclidean.
    """
    if not claimed > 0.0 or len(clients) < 2:
        raise InvalidInput("a swap of clients needs a positive claim and two clients or more")
    sent = [message(*client) for client in clients]
    far = [float(np.linalg.norm(a - b, ord=order)) for i, a in enumerate(sent) for b in sent[:i]]
    return SensitivityAudit(claimed, max(far), len(far))


def _norms(
    network: Network, weights: FloatArray, features: FloatArray, labels: NDArray[np.int64], order: int
) -> FloatArray:
    parts = [
        network.gradient_norms(network.backward(weights, features[at : at + _CHUNK], labels[at : at + _CHUNK]), order)
        for at in range(0, labels.size, _CHUNK)
    ]
    return np.concatenate(parts)


@dataclass(frozen=True)
class LeakAudit:
    """Result of an audit that identifies senders from the noise scale of their messages.

    Parameters
    ----------
    named : float
        Share of messages, in [0, 1], whose sender was guessed right from the spread of the message alone.
    chance : float
        Share that blind guessing gets right.
    within : float
        Share of messages whose noise scale was estimated to within 2 %.
    """

    named: float
    chance: float
    within: float


def audit_budget_leak(messages: ArrayLike, senders: ArrayLike, scales: ArrayLike) -> LeakAudit:
    """Measure how often the sender of a message can be identified by its noise scale, which its budget fixes.

    The attacker knows who holds which budget, and takes the message's root mean square for the scale: in many numbers
    the gradient hardly shows beside the noise. Only clients of equal scale hide each other.

    Parameters
    ----------
    messages : array_like, shape (messages, numbers)
        As the server sees them, shuffled.
    senders : array_like of int, shape (messages,)
        Who really sent each: the answers.
    scales : array_like, shape (clients,)
        Noise scale of every client, in the messages' unit, positive.

    Raises
    ------
    InvalidInput
        If shapes do not match.

    Examples
    --------
    >>> audit_budget_leak([[9.0, -9.0], [1.0, 1.0]], [1, 0], [1.0, 10.0]).named
    1.0
    """
    seen, true, scale_of = (
        np.asarray(messages, dtype=np.float64),
        np.asarray(senders),
        np.asarray(scales, dtype=np.float64),
    )
    if seen.ndim != 2 or true.shape != (seen.shape[0],) or scale_of.ndim != 1 or not (scale_of > 0.0).all():
        raise InvalidInput("the audit needs a table of messages, one sender each, and positive scales of all clients")
    # median of |N(0, 1)| is 0.6745: a robust scale, hardly moved by the few large numbers of a gradient
    spread = np.median(np.abs(seen), axis=1) / 0.6744897501960817
    distance = np.abs(np.log(np.maximum(spread, TINY))[:, None] - np.log(scale_of)[None, :])
    nearest = distance.min(axis=1)
    tied = distance <= nearest[:, None] + roundoff(8192)
    right = tied[np.arange(true.size), true] / tied.sum(axis=1)  # among equals the attacker guesses
    off = np.abs(spread / scale_of[true] - 1.0)
    return LeakAudit(float(right.mean()), 1.0 / scale_of.size, float(np.mean(off <= 0.02)))
