# pyright: reportMissingImports=false, reportUnknownParameterType=false, reportUntypedBaseClass=false
"""The server's side in Flower: a strategy that wraps another, shuffles, counts, and refuses what may not be released.

A shuffle inside a strategy runs in the server's own process, which knows who sent what: it simulates a shuffler for
everybody who sees only the models that come out, and protects nobody from whoever runs the server.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput, NotConverged, check_delta, number
from shuffledp.flower.mod import MARK_KEY, TERMS_KEY, Layout, bit_of
from shuffledp.flower.terms import FederatedReport, Terms, enter_federated, fewest_of, level_reports
from shuffledp.learning.accounting import TrainingAccountant
from shuffledp.learning.inputs import whole_number
from shuffledp.learning.rounds import SendPlan, sum_of_bits
from shuffledp.ledger import EVERYBODY, Ledger
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.randomness import Randomness, secure_random
from shuffledp.releases.run import Entering

_log = logging.getLogger("shuffledp.flower")

NOTES = (
    "budgets, clipping, and who takes part in which round are public and do not depend on the records",
    "messages come from clients that run LocalRandomizer as agreed, at most one for each client and round",
    "the shuffle happens inside the strategy, which knows who sent what: it only simulates a shuffler, and whoever "
    "runs the server is held off by each client's own noise alone",
)


@dataclass(eq=False)
class _Training:
    """What is known once the first model is.

    Parameters
    ----------
    layout : Layout
        The model's arrays.
    plan : SendPlan
        One entry per level.
    accountant : TrainingAccountant
        Counts released rounds.
    model : ndarray, shape (numbers,)
        What the clients of this round start from.
    """

    layout: Layout
    plan: SendPlan
    accountant: TrainingAccountant
    model: FloatArray


@dataclass(frozen=True, eq=False)
class _Received:
    """Messages of one round that may be counted.

    Parameters
    ----------
    whole : list of ndarray of int64, shape (numbers,) or (2,)
        In grid steps; of bits, seed and bit.
    levels : ndarray of int64, shape (messages,)
        Place of each sender's level.
    """

    whole: list[NDArray[np.int64]]
    levels: NDArray[np.int64]


@dataclass
class ShuffledStrategy(Strategy):
    """Flower strategy that wraps another strategy and passes to it only what the terms release.

    Replies that do not come from `LocalRandomizer` with the same terms are dropped. Rounds with fewer than
    ``min_messages`` messages are not released: the model stays as it was. Training stops before the guarantee would
    exceed ``max_epsilon``. Clients are not asked to evaluate: that would be a release of its own.

    Parameters
    ----------
    strategy : Strategy
        Chooses clients and turns updates into the next model (FedAvg, FedAdam, ...). It must send one model to all.
    terms : Terms
        Public terms of the training, the same as on the clients.
    min_messages : int
        A round with fewer messages is not released.
    delta : float
        Central delta, in (0, 1).
    max_epsilon : float or None
        Largest central epsilon allowed for any level, nats; None for no limit.
    weight_key : str
        Name of the metric in which the wrapped strategy looks for the weight of a reply.
    random : Randomness or None
        Source of the shuffle; default `secure_random()`.
    rounds : int or None
        The most rounds that are released; needed with a ledger.
    least : mapping of str to int, or None
        Fewest messages of each level in a round that is released, by the level's name; default 0.
    ledger : Ledger, str or Path, optional
        Where all ``rounds`` are entered before a client is asked for the first message: at the cost of the fewest
        messages that are released, since nobody knows who will answer. So name ``least`` where levels are seen.
    population, fixed_in_advance, title
        As for `shuffledp.release`.

    Raises
    ------
    InvalidInput
        On a bad number; when the first round is asked for, if the ledger's limit has no room.
    """

    strategy: Strategy
    terms: Terms
    min_messages: int
    delta: float
    max_epsilon: float | None = None
    weight_key: str = "num-examples"
    random: Randomness | None = None
    rounds: int | None = None
    least: Mapping[str, int] | None = None
    ledger: Ledger | str | Path | None = None
    population: str = EVERYBODY
    fixed_in_advance: str | None = None
    title: str = ""
    stopped: str = field(default="", init=False)
    refused: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]], init=False)
    _training: _Training | None = field(default=None, init=False, repr=False)
    _last: list[int] | None = field(default=None, init=False, repr=False)
    _requested_rounds: int = field(default=0, init=False, repr=False)
    _private: bool = field(default=True, init=False, repr=False)

    def __post_init__(self) -> None:
        whole_number(self.min_messages, "min_messages", 1)
        check_delta(self.delta)
        if self.max_epsilon is not None:
            number(self.max_epsilon, "max_epsilon", 0.0, math.inf)
        self._random = self.random or secure_random()
        if self.rounds is not None:
            whole_number(self.rounds, "rounds", 1)
        self._fewest = fewest_of(self.terms, self.least)
        self._entering = Entering.into(self.ledger, self.population, self.fixed_in_advance, self.title)
        if self._entering is not None and self.rounds is None:
            raise InvalidInput(
                "with a `ledger`, say how many `rounds` are released at most: all are entered beforehand"
            )
        if self._entering is not None and not self._random.private:
            raise InvalidInput("a simulation is not private, so no `ledger` takes it; leave one of the two out")

    def summary(self) -> None:
        """Log the settings of this strategy and of the wrapped one."""
        _log.info(
            "ShuffledStrategy: release %s, at least %d messages a round, largest epsilon %s at delta %g; levels %s",
            self.terms.release,
            self.min_messages,
            self.max_epsilon,
            self.delta,
            dict(self.terms.levels),
        )
        self.strategy.summary()

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return the messages that ask clients for updates; see `flwr.serverapp.strategy.Strategy.configure_train`.

        There are none if one more round like the last would exceed the limits.
        """
        self._begin(arrays)
        if not self.stopped and self._last is not None and not self._affordable(self._last):
            self._stop()
        if self.stopped or self._finished():
            return []
        config[TERMS_KEY] = self.terms.fingerprint
        messages = list(self.strategy.configure_train(server_round, arrays, config, grid))
        nodes = [message.metadata.dst_node_id for message in messages]
        if len(set(nodes)) < len(nodes):
            raise InvalidInput("the wrapped strategy asks a client twice in a round; only one message is accounted for")
        for message in messages:
            sent = list(message.content.array_records.values())
            if len(sent) != 1 or not (sent[0] is arrays or sent[0] == arrays):
                raise InvalidInput("the wrapped strategy must send the same model to every client of a round")
        self._requested_rounds += bool(messages)
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Return the wrapped strategy's model and metrics for the released round; (None, None) if it is not released.

        Parameters
        ----------
        server_round : int
            Number of the round.
        replies : iterable of Message
            Replies of the clients.
        """
        training = self._training
        if training is None:
            raise InvalidInput("aggregate_train needs configure_train before it")
        if self.stopped or self._finished():
            return None, None
        received = self._received(replies, training)
        if len(received.whole) < self.min_messages:
            return self._refuse(server_round, f"{len(received.whole)} messages, fewer than {self.min_messages}")
        for place, (name, fewest) in enumerate(zip(self.terms.names, self._fewest, strict=True)):
            there = int((received.levels == place).sum())
            if there < fewest:
                return self._refuse(server_round, f"{there} messages of level {name}, fewer than {fewest}")
        counts = training.plan.messages(received.levels)
        self._last = counts
        if not self._affordable(counts):
            self._stop()
            return self._refuse(server_round, self.stopped)
        training.accountant.spend(counts)
        released = (self._sum if self.terms.release == "sum" else self._each)(received, training)
        return self.strategy.aggregate_train(server_round, released)

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return no messages: clients are never asked to evaluate. Evaluate with ``evaluate_fn`` on public data."""
        del server_round, arrays, config, grid
        return []

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Return None: replies to an evaluation are ignored, since none was requested."""
        del server_round, replies
        return None

    def report(self) -> FederatedReport:
        """Return the privacy report of the rounds so far: certified epsilon of each level, and the bound that gave it.

        Raises
        ------
        InvalidInput
            Before the first round.
        """
        if self._training is None:
            raise InvalidInput("there is nothing to report before the first round")
        plan, accountant = self._training.plan, self._training.accountant
        names = tuple(
            tuple(name for name, tier in zip(self.terms.names, plan.tier_of.tolist(), strict=True) if tier == index)
            for index in range(len(plan.tiers))
        )
        guarantee = accountant.guarantee(self.delta, notes=NOTES, private=self._private)
        levels = level_reports(accountant, names, self.delta, requested_rounds=max(self._requested_rounds, 1))
        return FederatedReport(guarantee, levels, tuple(self.refused), self.stopped)

    def _begin(self, arrays: ArrayRecord) -> None:
        layout = Layout.of(arrays)
        if self._training is None:
            plan = self.terms.plan(layout.numbers)
            accountant = self.terms.accountant(plan.tiers)
            self._training = _Training(layout, plan, accountant, np.zeros(layout.numbers))
            self._private = self._random.private
            self._enter(self._training)
        before = self._training.layout
        if (layout.names, layout.shapes) != (before.names, before.shapes):
            raise InvalidInput("the model changed its arrays during training; start another ShuffledStrategy")
        self._training.layout = layout  # some strategies turn floats into doubles
        self._training.model = layout.flat(arrays).astype(np.float64)

    def _finished(self) -> bool:
        """Whether all rounds that were asked for, and entered, are released."""
        if self._training is None or self._training.accountant.rounds != self.rounds:
            return False
        self.stopped = f"all {self.rounds} rounds are done"
        return True

    def _enter(self, training: _Training) -> None:
        """Enter all rounds, before a client is asked for anything."""
        if self._entering is None or self.rounds is None:
            return
        try:
            enter_federated(
                self._entering,
                self.terms,
                training.accountant,
                training.plan.tier_of.tolist(),
                fewest=self._fewest,
                min_messages=self.min_messages,
                rounds=self.rounds,
                delta=self.delta,
            )
        except BaseException:
            self._training = None  # nothing may be asked for before it is entered
            raise

    def _affordable(self, counts: list[int]) -> bool:
        if self.max_epsilon is None or self._training is None:
            return True
        most = self.max_epsilon
        return self._training.accountant.epsilon_after(counts, self.delta, enough=most) <= most

    def _stop(self) -> None:
        self.stopped = f"one more round would exceed epsilon = {self.max_epsilon:g}"
        _log.warning("training stops: %s", self.stopped)

    def _refuse(self, server_round: int, why: str) -> tuple[None, None]:
        self.refused.append((server_round, why))
        _log.warning("round %d is not released: %s", server_round, why)
        return None, None

    def _received(self, replies: Iterable[Message], training: _Training) -> _Received:
        """Take the messages that keep the terms, one of each client."""
        by_client: dict[int, tuple[NDArray[np.int64], int]] = {}
        dropped = 0
        for reply in replies:
            taken = self._read(reply, training.layout)
            if taken is None or reply.metadata.src_node_id in by_client:
                dropped += 1
                continue
            whole, level, private = taken
            by_client[reply.metadata.src_node_id] = whole, level
            self._private &= private
        if dropped:
            _log.warning("%d replies are dropped: not from LocalRandomizer with these terms", dropped)
        levels = np.array([level for _, level in by_client.values()], dtype=np.int64)
        return _Received([whole for whole, _ in by_client.values()], levels)

    def _read(self, reply: Message, layout: Layout) -> tuple[NDArray[np.int64], int, bool] | None:
        """Return a message, its level's place, and whether its noise was secure; None if it does not keep the terms."""
        try:
            mark = reply.content.config_records[MARK_KEY]
            (record,) = reply.content.array_records.values()
            whole = bit_of(record) if self.terms.bits else layout.flat(record)
            level = self.terms.names.index(str(mark["level"]))
        except (KeyError, ValueError):  # an error of the client, no mark, another model
            return None
        if mark.get("terms") != self.terms.fingerprint or whole.dtype != np.int64:
            return None
        return whole.astype(np.int64), level, mark.get("private") is True

    def _sum(self, received: _Received, training: _Training) -> list[Message]:
        """One reply: the mean that the sum of the messages gives. Clients have weighed their messages themselves."""
        share = training.plan.grid / float(training.plan.gains[received.levels].sum())
        if self.terms.bits:
            seeds, bits = np.ascontiguousarray(np.array(received.whole).T)
            mean = sum_of_bits(seeds.view(np.uint64), bits, training.layout.numbers)
            return [self._reply(mean * share, 1.0, training)]
        largest = max(int(np.abs(whole).max()) for whole in received.whole)
        if largest * len(received.whole) >= 2**62:
            raise NotConverged("the sum of the messages does not fit into 64 bits; use fewer clients a round")
        total = np.zeros(training.layout.numbers, dtype=np.int64)
        for whole in received.whole:
            total += whole
        return [self._reply(total.astype(np.float64) * share, 1.0, training)]

    def _each(self, received: _Received, training: _Training) -> list[Message]:
        """All messages in random order, without their senders, each with its level's weight."""
        order = self._random.permutation(len(received.whole))
        grid, weights = training.plan.grid, training.plan.weights[received.levels]
        return [
            self._reply(received.whole[at].astype(np.float64) * grid, float(weights[at]), training)
            for at in order.tolist()
        ]

    def _reply(self, update: FloatArray, weight: float, training: _Training) -> Message:
        content = RecordDict(
            {
                "arrays": training.layout.model(training.model + update),
                "metrics": MetricRecord({self.weight_key: weight}),
            }
        )
        return Message(content, dst_node_id=0, message_type=MessageType.TRAIN)
