"""One round of training: clients send clipped, noised messages; the server moves the model.

What a client does (clip, round to the grid, add noise) is in `Sender`; what the server does with what it sees is
post-processing, in `Server`.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput, NotConverged
from shuffledp.learning.accounting import Tier
from shuffledp.learning.inputs import Clients
from shuffledp.learning.messages import Clipping, Mechanism, shrink
from shuffledp.learning.network import LARGEST, Network
from shuffledp.numerics.floats import FloatArray, round_up
from shuffledp.numerics.randomness import Randomness, Words
from shuffledp.randomizers.categorical import RandomizedResponse
from shuffledp.randomizers.vector import seeded_words

_GRID_BITS = 12
"""Fineness of the grid of a message: rounding raises its sensitivity by at most one part in 2 to this power."""
_NUMBERS_AT_ONCE = 1 << 20  # of messages held in memory together


@dataclass(frozen=True, eq=False)
class SendPlan:
    """Public plan of all clients' messages: grid, gains, noise scales and weights, fixed before the first round.

    Parameters
    ----------
    grid : float
        Grid step, a power of two.
    gains : ndarray, shape (clients,)
        Factor of each client's clipped gradient before rounding and noise, in (0, 1].
    scales : ndarray, shape (clients,)
        Noise scale as drawn, in grid steps.
    weights : ndarray, shape (clients,)
        Factor by which the server multiplies each client's message, in (0, 1].
    tiers : tuple of Tier
        Different message laws.
    tier_of : ndarray of int64, shape (clients,)
        Position in ``tiers`` of each client's message law.
    """

    grid: float
    gains: FloatArray
    scales: FloatArray
    weights: FloatArray
    tiers: tuple[Tier, ...]
    tier_of: NDArray[np.int64]

    def messages(self, present: NDArray[np.int64]) -> list[int]:
        """Return the number of messages of each tier, in the order of `tiers`, if each client of ``present`` sends one.

        Parameters
        ----------
        present : ndarray of int64
            Indices of the clients that send.
        """
        return np.bincount(self.tier_of[present], minlength=len(self.tiers)).tolist()


def plan_messages(
    epsilon0: FloatArray,
    delta0: FloatArray,
    sizes: NDArray[np.int64],
    *,
    clipping: Clipping,
    mechanism: Mechanism,
    numbers: int,
    inverse_variance: bool,
    summed: bool,
) -> SendPlan:
    """Return the plan of all clients' messages: grid, noise scales and weights.

    Parameters
    ----------
    epsilon0, delta0 : ndarray, shape (clients,)
        Local budgets of one message; epsilon0 > 0.
    sizes : ndarray of int64, shape (clients,)
        Examples of each client.
    clipping : Clipping
        Gives the sensitivity.
    mechanism : Mechanism
        Gives the noise.
    numbers : int
        Numbers in a message.
    inverse_variance : bool
        Whether noisier clients weigh less: min(1, (reference/scale)^2), the reference variance being the harmonic
        mean of all.
    summed : bool
        Whether only sums are released: then clients weigh their messages themselves.
    """
    moved, multiples = clipping.sensitivity(sizes, numbers), mechanism.multiples(epsilon0, delta0)
    if clipping.unit == "client":
        moved = np.full_like(
            moved, moved.max()
        )  # rounding depends on sizes; one law for all, so that they hide each other
    noise = moved * multiples
    weights = np.ones_like(noise)
    if inverse_variance:
        # relative to the narrowest, so that no square overflows
        squares = (noise / noise.min()) ** -2.0
        weights = np.minimum(1.0, squares / squares.mean())
    gains = weights if summed else np.ones_like(weights)
    # rounding to the grid moves a message by half a step per number, in either world
    spread = math.sqrt(numbers) if mechanism.order == 2 else float(numbers)
    grid = 2.0 ** (math.floor(math.log2(float((moved * gains).min()) / spread)) - _GRID_BITS)
    steps = round_up(moved * gains / grid + spread, 8)
    drawn = mechanism.drawn_scale(steps, multiples)
    counted = mechanism.counted_scale(drawn)
    if float(drawn.max()) > 2.0**44:
        raise InvalidInput(
            f"the smallest budget, epsilon0 = {epsilon0[int(np.argmax(drawn))]:g}, asks for noise wider than the grid "
            "holds; leave such clients out by a budget of 0"
        )
    rows = np.stack((epsilon0, delta0, steps, counted), axis=1)
    laws, tier_of = np.unique(rows, axis=0, return_inverse=True)
    tiers = tuple(Tier(*(float(v) for v in law)) for law in laws)
    after = np.ones_like(weights) if summed else weights
    return SendPlan(grid, gains, drawn, after, tiers, tier_of.astype(np.int64).ravel())


@dataclass(frozen=True, eq=False)
class Clientele:
    """The clients of a training: their examples, their message plan and their gradients.

    Parameters
    ----------
    network : Network
        The model.
    clipping : Clipping
        Rule by which messages are clipped.
    plan : SendPlan
        Budgets, and how messages are made and weighed.
    clients : Clients
        Assignment of the examples to clients.
    features : ndarray, shape (examples, inputs)
        Features of all examples, of any number type.
    labels : ndarray of int64, shape (examples,)
        In 0..classes-1.
    random : Randomness
        Source of all draws.
    """

    network: Network
    clipping: Clipping
    plan: SendPlan
    clients: Clients
    features: NDArray[np.generic]
    labels: NDArray[np.int64]
    random: Randomness

    def gradient(self, client: int, weights: FloatArray) -> FloatArray:
        """Return the clipped average gradient of one client at these model weights, shape (size,).

        Parameters
        ----------
        client : int
            Index of the client.
        weights : ndarray, shape (size,)
            Weights of the model.
        """
        rows = self.clients.examples(client)
        features = self.features[rows].astype(np.float64, copy=False)
        return self.clipping.message(self.network, weights, features, self.labels[rows])

    def total(self, clients: NDArray[np.int64], weights: FloatArray) -> FloatArray:
        """Return the weighted sum of several clients' messages, in grid steps, shape (size,).

        Parameters
        ----------
        clients : ndarray of int64
            Indices of the clients. The factor of each in the sum is the plan's server weight.
        weights : ndarray, shape (size,)
            Weights of the model at which gradients are taken.
        """
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Sender(Clientele):
    """Clients that send their clipped gradient with noise on every number.

    Parameters
    ----------
    mechanism : Mechanism
        Noise mechanism of the messages.
    """

    mechanism: Mechanism

    def message(self, client: int, weights: FloatArray, law: int | None = None) -> NDArray[np.int64]:
        """Return the noisy message of one client, in grid steps, shape (size,).

        Parameters
        ----------
        client : int
            Number of the client.
        weights : ndarray
            Current weights of the model.
        law : int, optional
            Client whose gain and noise scale are used, if budgets belong to steps; default ``client``.
        """
        own = client if law is None else law
        return self.with_noise(self.gradient(client, weights), own, self.noise(own))

    def noise(self, law: int) -> NDArray[np.int64]:
        """Return the noise of one message, in grid steps, shape (size,); ``law`` is the client whose scale is used."""
        return self.mechanism.draw(float(self.plan.scales[law]), self.network.size, self.random)

    def with_noise(self, gradient: FloatArray, law: int, noise: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return one message in grid steps, shape (size,): the clipped gradient on the grid plus the noise.

        Parameters
        ----------
        gradient : ndarray, shape (size,)
            The clipped gradient.
        law : int
            Index of the client whose gain is used.
        noise : ndarray of int64, shape (size,)
            The noise, in grid steps; this array is overwritten and returned.
        """
        noise += np.rint(gradient * (self.plan.gains[law] / self.plan.grid)).astype(np.int64)
        return noise

    def messages(self, clients: NDArray[np.int64], weights: FloatArray) -> NDArray[np.int64]:
        """Return the noisy messages of several clients, in grid steps, shape (clients, size).

        Parameters
        ----------
        clients : ndarray of int64
            Indices of the clients.
        weights : ndarray, shape (size,)
            Weights of the model.
        """
        whole = self.rounded(clients, weights)
        scales, of_client = np.unique(self.plan.scales[clients], return_inverse=True)
        for which, scale in enumerate(scales.tolist()):
            rows = np.flatnonzero(of_client == which)
            noise = self.mechanism.draw(scale, rows.size * whole.shape[1], self.random)
            whole[rows] += noise.reshape(rows.size, -1)
        return whole

    def total(self, clients: NDArray[np.int64], weights: FloatArray) -> FloatArray:
        """Return the weighted sum of several clients' messages, in grid steps, shape (size,); see `Clientele.total`."""
        total, noise = np.zeros(self.network.size), self.noise_of_sum(clients)
        for start in range(0, clients.size, self.at_once):
            some = clients[start : start + self.at_once]
            sent = self.messages if noise is None else self.rounded
            total += self.plan.weights[some] @ sent(some, weights)
        return total if noise is None else total + self.plan.weights[clients[0]] * noise

    def rounded(self, clients: NDArray[np.int64], weights: FloatArray) -> NDArray[np.int64]:
        """Return several clients' messages before noise, in grid steps, shape (clients, size); see `messages`."""
        factors = self.plan.gains[clients] / self.plan.grid
        if (self.clients.sizes[clients] > 1).any():
            sent = np.stack([self.gradient(int(client), weights) for client in clients])
            return np.rint(sent * factors[:, None]).astype(np.int64)
        rows = self.clients.rows[self.clients.starts[clients]]
        passed = self.network.backward(weights, self.features[rows].astype(np.float64, copy=False), self.labels[rows])
        factors *= shrink(self.network.gradient_norms(passed, self.clipping.order), self.clipping.bound)
        return np.rint(self.network.each_gradient(passed, factors)).astype(np.int64)

    def noise_of_sum(self, clients: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return one draw of the sum of these clients' noise; None if no single draw has the distribution of the sum.

        The sum of discrete normal noises is discrete normal noise (`noise.UNEVENNESS`), so whoever only adds messages
        up need not draw each of them.

        Parameters
        ----------
        clients : ndarray of int64
            Indices of the clients.
        """
        # summed without a rounding that grows with the clients: `counted_scale` leaves room for a few, not for many
        scale = math.sqrt(math.fsum(np.square(self.plan.scales[clients])))
        even = np.ptp(self.plan.weights[clients]) == 0.0
        if self.mechanism.name != "gaussian" or not even or scale > 2.0**44:
            return None
        return self.mechanism.draw(scale, self.network.size, self.random)

    @property
    def at_once(self) -> int:
        """Largest number of clients whose messages are held in memory together."""
        return max(1, _NUMBERS_AT_ONCE // self.network.size)


@dataclass
class Server:
    """The server's model and its update from released messages; all of it is post-processing.

    Parameters
    ----------
    weights : ndarray, shape (size,)
        Weights of the model, updated in place.
    step : float
        Step length.
    momentum : float
        Share of the last direction that is kept, in [0, 1).
    velocity : ndarray, shape (size,)
        Direction of the last step.
    total : ndarray, shape (size,)
        Sum of the models that are averaged.
    averaged : int
        Number of models in ``total``.
    """

    weights: FloatArray
    step: float
    momentum: float
    velocity: FloatArray = field(init=False)
    total: FloatArray = field(init=False)
    averaged: int = 0

    def __post_init__(self) -> None:
        self.velocity = np.zeros_like(self.weights)
        self.total = np.zeros_like(self.weights)

    def move(self, direction: FloatArray, factor: float, *, average: bool) -> None:
        """Move the model one step against a direction.

        Parameters
        ----------
        direction : ndarray, shape (size,)
            A noisy gradient.
        factor : float
            Factor on the step length.
        average : bool
            Whether the model after the step enters the average.
        """
        if self.momentum:
            self.velocity *= self.momentum
            self.velocity += (1.0 - self.momentum) * direction
            direction = self.velocity
        self.weights -= (self.step * factor) * direction
        if average:
            self.total += self.weights
            self.averaged += 1

    def forget_average(self) -> None:
        """Empty the average of models, so that only later models enter it."""
        self.total = np.zeros_like(self.weights)
        self.averaged = 0

    @property
    def result(self) -> FloatArray:
        """Return the average of the averaged models, or the last model if none was averaged, shape (size,)."""
        return self.total / self.averaged if self.averaged else self.weights


def step_by_step(
    sender: Sender, server: Server, present: NDArray[np.int64], factor: float, *, swap: bool, average: bool
) -> None:
    """Run one round seen as "users": clients in a fresh random order, the model moved after every message.

    Parameters
    ----------
    sender, server : Sender, Server
        The clients and the server.
    present : ndarray of int64
        Numbers of the clients of this round.
    factor : float
        Factor on the step length.
    swap : bool
        Whether budgets belong to steps: the t-th client in the random order uses the t-th budget.
    average : bool
        Whether models of this round enter the average.
    """
    order = present[sender.random.permutation(present.size)]
    laws = present.tolist() if swap else order.tolist()
    with ThreadPoolExecutor(1) as other:  # draws the next message's noise meanwhile; one thread, so in a fixed order
        ahead = other.submit(sender.noise, laws[0])
        for step, (client, law) in enumerate(zip(order.tolist(), laws, strict=True)):
            noise = ahead
            if step + 1 < len(laws):
                ahead = other.submit(sender.noise, laws[step + 1])
            gradient = sender.gradient(client, server.weights)
            sent = sender.with_noise(gradient, law, noise.result()).astype(np.float64)
            sent *= sender.plan.grid
            server.move(sent, factor * float(sender.plan.weights[law]), average=average)


def all_at_once(
    clientele: Clientele, server: Server, present: NDArray[np.int64], factor: float, *, average: bool
) -> None:
    """Run one round seen as "reports", "levels" or "sum": all messages are computed at one model.

    The messages are shuffled, and the model moves one step against their weighted mean.

    Parameters
    ----------
    clientele : Clientele
        The clients.
    server : Server
        The model, which is changed.
    present : ndarray of int64
        Indices of the clients that send a message.
    factor : float
        Factor of this round on the step size.
    average : bool
        Whether the model after this round enters the average of models.
    """
    order = present[clientele.random.permutation(present.size)]
    total = clientele.total(order, server.weights)
    whole = float((clientele.plan.weights[present] * clientele.plan.gains[present]).sum())
    server.move(total * (clientele.plan.grid / whole), factor, average=average)


def finite(weights: FloatArray) -> FloatArray:
    """Return the model's weights if they are finite, or raise NotConverged.

    The error depends on released messages alone.
    """
    if not (np.abs(weights) <= LARGEST).all():
        raise NotConverged("training diverged: the model's weights left every range; take a smaller step or clip")
    return weights


# One bit a message: on which side of a random hyperplane the gradient lies, by randomized response.
#
# A client draws a public 64-bit seed, which stands for signs z in {-1, 1}^size, and sends (seed, bit). Before
# randomized response the bit is the sign of <z, g>, turned with chance (1 - |g|/C)/2, where g is its clipped
# gradient: so that
#
#     E(bit z) = keep c g / C,   keep = (e^epsilon0 - 1)/(e^epsilon0 + 1),   c = E|N(0, 1)| = sqrt(2/pi),            (S)
#
# for gradients whose weight is spread over many numbers (a sum of many signs is nearly normal; on a gradient with one
# number only c would be 1). Privacy does not rest on that: given the seed, which is drawn without looking at
# anything, the bit is a randomized-response bit, so the message is epsilon0-LDP exactly, whatever g is and however
# computed.
#
# The variance of such a message is size/keep^2 whatever the gradient, so small budgets cost little: with n clients
# one round of budget epsilon0 has error size C^2/(n keep^2 c^2) and, shuffled, a central budget of about 2 keep
# sqrt((1 + e^epsilon0)/n): many rounds at a small budget are worth more than few at a large one.

SLOPE = math.sqrt(2.0 / math.pi)
"""The constant c of (S)."""
_WORD = 64
_SIGNS = (
    2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(np.float32) - 1.0
)
"""The eight signs of each octet, lowest bit first."""
_RESPONSE = RandomizedResponse(2)
_SIGNS_AT_ONCE = 1 << 21  # of signs held in memory together


def signs(seeds: Words, size: int) -> NDArray[np.float32]:
    """Return the vectors of signs that are derived from public seeds.

    Parameters
    ----------
    seeds : ndarray of uint64, shape (n,)
        Public seed of each message.
    size : int
        Number of signs for each seed.

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
"""Weights of bits at the server: equal, proportional to keep, or proportional to 1/keep."""


def plan_sketches(epsilon0: FloatArray, clip: float, *, weighting: Weighting) -> SendPlan:
    """Return the plan of one-bit messages: the server adds weight times bit times the signs of the seed.

    Parameters
    ----------
    epsilon0 : ndarray, shape (clients,)
        Local budgets of one message in nats, positive; keep = tanh(epsilon0/2) is their randomized response's factor.
    clip : float
        Largest norm C of a client's gradient, positive.
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
    """Return a private bit for each gradient: on which side of a hyperplane it lies, by randomized response (S).

    Parameters
    ----------
    inner : ndarray, shape (n,)
        Inner product of each gradient with the signs of its hyperplane, times any positive number.
    lengths : ndarray, shape (n,)
        Norms of the clipped gradients divided by the clipping norm C, in [0, 1].
    epsilon0 : ndarray, shape (n,)
        Local budgets in nats, positive.
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
    """Return the sum over messages of the bit, read as -1 or 1, times the signs of its seed.

    Parameters
    ----------
    seeds : ndarray of uint64, shape (n,)
        Public seed of each message.
    bits : ndarray of int64, shape (n,)
        0 or 1.
    size : int
        Number of signs for each seed.

    Returns
    -------
    ndarray, shape (size,)
        Whole numbers.
    """
    total, at_once = np.zeros(size), max(1, _SIGNS_AT_ONCE // size)
    for start in range(0, seeds.size, at_once):
        some = slice(start, start + at_once)
        total += _added(bits[some], np.ones(1), signs(seeds[some], size))
    return total


def _added(bits: NDArray[np.int64], weights: FloatArray, z: NDArray[np.float32]) -> NDArray[np.float32]:
    """Sum of weight times bit, read as -1 or 1, times signs, shape (size,)."""
    return ((2.0 * bits - 1.0) * weights).astype(np.float32) @ z


@dataclass(frozen=True, eq=False)
class Sketcher(Clientele):
    """Clients that send a public seed and one private bit each.

    In the plan, `gains` are keep = (e^epsilon0 - 1)/(e^epsilon0 + 1), `grid` is C/c with the clipping bound C and c =
    sqrt(2/pi), and `tiers` hold the budgets: the bit times the signs has mean keep c gradient/C.
    """

    def total(self, clients: NDArray[np.int64], weights: FloatArray) -> FloatArray:
        """Return the weighted sum over clients of each one's private bit times its vector of signs, shape (size,).

        Parameters
        ----------
        clients : ndarray of int64
            Indices of the clients that take part.
        weights : ndarray, shape (size,)
            Weights of the model. The factor of each client in the sum is the plan's server weight.
        """
        total, at_once = np.zeros(self.network.size), max(1, _SIGNS_AT_ONCE // self.network.size)
        for start in range(0, clients.size, at_once):
            some = clients[start : start + at_once]
            z = signs(self.random.words(some.size), self.network.size)
            total += _added(self.bits(some, weights, z), self.plan.weights[some], z)
        return total

    def bits(self, clients: NDArray[np.int64], weights: FloatArray, z: NDArray[np.float32]) -> NDArray[np.int64]:
        """Return the private bits that clients send, shape (clients,).

        Parameters
        ----------
        clients : ndarray of int64
            Indices of the clients.
        weights : ndarray, shape (size,)
            Weights of the model.
        z : ndarray of float32, shape (clients, size)
            Each client's signs, -1 or 1.
        """
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
