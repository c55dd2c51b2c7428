"""One bit a message: on which side of a random hyperplane the gradient lies, by randomized response.

A client draws a public 64-bit seed, which stands for signs z in {-1, 1}^size, and sends (seed, bit). Before randomized
response the bit is the sign of <z, g>, turned with chance (1 - |g|/C)/2, where g is its clipped gradient: so that

    E(bit z) = keep c g / C,   keep = (e^epsilon0 - 1)/(e^epsilon0 + 1),   c = E|N(0, 1)| = sqrt(2/pi),             (S)

for gradients whose weight is spread over many numbers (a sum of many signs is nearly normal; on a gradient with one
number only c would be 1). Privacy does not rest on that: given the seed, which is drawn without looking at anything,
the bit is a randomized-response bit, so the message is epsilon0-LDP exactly, whatever g is and however computed.

The variance of such a message is size/keep^2 whatever the gradient, so small budgets cost little: with n clients one
round of budget epsilon0 has error size C^2/(n keep^2 c^2) and, shuffled, a central budget of about 2 keep
sqrt((1 + e^epsilon0)/n): many rounds at a small budget are worth more than few at a large one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shuffledp.learning.clipping import shrink
from shuffledp.learning.guarantee import Tier
from shuffledp.learning.rounds import Clientele, SendPlan
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness, Words
from shuffledp.randomizers.categorical import RandomizedResponse
from shuffledp.randomizers.codebook import seeded_words

SLOPE = math.sqrt(2.0 / math.pi)
"""c of (S)."""
_WORD = 64
_SIGNS = (
    2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(np.float32) - 1.0
)
"""The eight signs of each octet, lowest bit first."""
_RESPONSE = RandomizedResponse(2)
_NUMBERS_AT_ONCE = 1 << 21  # of signs held in memory together


def signs(seeds: Words, size: int) -> NDArray[np.float32]:
    """Return the signs that public seeds stand for.

    Parameters
    ----------
    seeds : ndarray of uint64, shape (n,)
        One a message.
    size : int
        Signs of each.

    Returns
    -------
    ndarray of float32, shape (n, size)
        -1 or 1; the same for the same seed on every machine.

    Examples
    --------
    >>> signs(np.array([1, 1], dtype=np.uint64), 3).tolist()[0] == signs(np.array([1], dtype=np.uint64), 3).tolist()[0]
    True
    """
    words = seeded_words(seeds, np.arange(-(-size // _WORD), dtype=np.uint64))
    octets = words.astype("<u8").view(np.uint8).reshape(seeds.size, -1)[:, : -(-size // 8)]
    # mode="clip" spares NumPy the check that an octet is below 256: seven times as fast
    return np.take(_SIGNS, octets, axis=0, mode="clip").reshape(seeds.size, -1)[:, :size]


Weighting = Literal["bits", "precision", "people"]
"""How the server weighs bits: all the same, proportional to keep, or proportional to 1/keep."""


def plan_sketches(epsilon0: FloatArray, clip: float, *, weighting: Weighting) -> SendPlan:
    """Plan the messages: the server adds weight times bit times signs.

    Parameters
    ----------
    epsilon0 : ndarray, shape (clients,)
        Local budgets of one message; positive.
    clip : float
        Largest norm C.
    weighting : {"bits", "precision", "people"}
        "bits": all weights are 1, which is all that a server can do that does not see the budgets: a client counts in
        proportion to keep. "precision": weights proportional to keep, least variance. "people": to 1/keep, so that
        everybody counts the same. The last two are functions of the messages with their budgets.
    """
    keep = np.tanh(0.5 * epsilon0)
    weights = {"bits": np.ones_like(keep), "precision": keep, "people": keep.min() / keep}[weighting]
    laws, tier_of = np.unique(epsilon0, return_inverse=True)
    tiers = tuple(Tier(float(e), 0.0, float(e), 1.0) for e in laws)
    return SendPlan(clip / SLOPE, keep, np.ones_like(keep), weights, tiers, tier_of.astype(np.int64).ravel())


def randomized_bits(
    inner: FloatArray, lengths: FloatArray, epsilon0: FloatArray, random: Randomness
) -> NDArray[np.int64]:
    """Draw the bits of (S) for given signs.

    Parameters
    ----------
    inner : ndarray, shape (n,)
        Inner products of gradients and signs, each in any positive unit.
    lengths : ndarray, shape (n,)
        Norms of the clipped gradients over C, in [0, 1].
    epsilon0 : ndarray, shape (n,)
        Budgets, positive.
    random : Randomness
        Source of the bits.

    Returns
    -------
    ndarray of int64, shape (n,)
        0 or 1.
    """
    side = inner >= 0.0
    # a length of 1 keeps the side, none at all makes it a fair bit; so does a side that cannot be told
    turned = np.where(np.isfinite(inner), np.clip(0.5 - 0.5 * lengths, 0.0, 0.5), 0.5)
    truth = side ^ random.bernoulli((turned * 2.0**64).astype(np.uint64), inner.size)
    return _RESPONSE.randomize(truth.astype(np.int64), epsilon0, random)


def sum_of_bits(seeds: Words, bits: NDArray[np.int64], size: int) -> FloatArray:
    """Add up the bits, each read as -1 or 1 and times the signs of its seed.

    Parameters
    ----------
    seeds : ndarray of uint64, shape (n,)
        One a message.
    bits : ndarray of int64, shape (n,)
        0 or 1.
    size : int
        Signs of each.

    Returns
    -------
    ndarray, shape (size,)
        Whole numbers.
    """
    total, at_once = np.zeros(size), max(1, _NUMBERS_AT_ONCE // size)
    for start in range(0, seeds.size, at_once):
        some = slice(start, start + at_once)
        total += _added(bits[some], np.ones(1), signs(seeds[some], size))
    return total


def _added(bits: NDArray[np.int64], weights: FloatArray, z: NDArray[np.float32]) -> NDArray[np.float32]:
    """Sum of weight times bit, read as -1 or 1, times signs, shape (size,)."""
    return ((2.0 * bits - 1.0) * weights).astype(np.float32) @ z


@dataclass(frozen=True, eq=False)
class Sketcher(Clientele):
    """Clients that send one bit; the plan's gains are the keep of (S), its grid C/c, its tiers hold the budgets."""

    def total(self, clients: NDArray[np.int64], weights: FloatArray) -> FloatArray:
        """Sum of server weight times bit times signs over all these clients, shape (size,)."""
        total, at_once = np.zeros(self.network.size), max(1, _NUMBERS_AT_ONCE // self.network.size)
        for start in range(0, clients.size, at_once):
            some = clients[start : start + at_once]
            z = signs(self.random.words(some.size), self.network.size)
            total += _added(self.bits(some, weights, z), self.plan.weights[some], z)
        return total

    def bits(self, clients: NDArray[np.int64], weights: FloatArray, z: NDArray[np.float32]) -> NDArray[np.int64]:
        """Return the bits that these clients send for these signs, shape (clients,)."""
        inner, norms = self._projected(clients, weights, z)
        budgets = np.array([tier.epsilon0 for tier in self.plan.tiers])[self.plan.tier_of[clients]]
        return randomized_bits(inner, norms / self.clipping.bound, budgets, self.random)

    def _projected(
        self, clients: NDArray[np.int64], weights: FloatArray, z: NDArray[np.float32]
    ) -> tuple[FloatArray, FloatArray]:
        """Gradients along their signs, each in any positive unit, and their norms after clipping, shape (n,)."""
        if (self.clients.sizes[clients] > 1).any():
            sent = np.stack([self.gradient(int(client), weights) for client in clients])
            return np.einsum("ij,ij->i", z, sent), np.linalg.norm(sent, axis=1)
        rows = self.clients.rows[self.clients.starts[clients]]
        passed = self.network.backward(weights, self.features[rows].astype(np.float64, copy=False), self.labels[rows])
        norms = self.network.gradient_norms(passed, 2)
        passed, norms = passed.without(np.isinf(norms)), np.where(np.isinf(norms), 0.0, norms)
        return self.network.along(passed, z), norms * shrink(norms, self.clipping.bound)
