# pyright: reportMissingImports=false, reportUnknownParameterType=false
"""The clients' side in Flower: a mod that lets out nothing but a clipped, noised update."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput, check_delta, choice, number, shown
from shuffledp.flower.terms import Terms
from shuffledp.in_words import up
from shuffledp.learning.inputs import whole_number
from shuffledp.numerics.floats import FloatArray, Interval
from shuffledp.numerics.randomness import Randomness, secure_random

# Flower's named arrays as one vector of doubles, and back.

BIT_KEY = "bit"
"""Name of the only array of a message of one bit: its seed's 64 bits as a whole number, and the bit."""


@dataclass(frozen=True)
class Layout:
    """Names, shapes and types of a model's arrays, in order.

    Parameters
    ----------
    names : tuple of str
        Keys of the record.
    shapes : tuple of tuple of int
        Shape of each array.
    kinds : tuple of str
        NumPy type codes of the arrays; all are floating types.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    kinds: tuple[str, ...]

    @staticmethod
    def of(record: ArrayRecord) -> Layout:
        """Return the layout of a model's arrays; raise InvalidInput if an array is not of a floating type."""
        arrays = {name: array.numpy() for name, array in record.items()}
        if not arrays:
            raise InvalidInput("the model has no array")
        for name, array in arrays.items():
            if array.dtype.kind != "f":
                raise InvalidInput(f"array {name} holds {array.dtype}, which cannot carry noise; send only floats")
        shapes = tuple(array.shape for array in arrays.values())
        return Layout(tuple(arrays), shapes, tuple(array.dtype.str for array in arrays.values()))

    @property
    def numbers(self) -> int:
        """Total number of entries of the model's arrays, and so of a message."""
        return sum(int(np.prod(shape, dtype=np.int64)) for shape in self.shapes)

    def flat(self, record: ArrayRecord) -> NDArray[np.generic]:
        """Return all entries of a record as one vector, shape (numbers,), after checking its names and shapes."""
        if tuple(record.keys()) != self.names:
            raise InvalidInput(f"a model with the arrays {', '.join(self.names)} is needed")
        parts = [array.numpy() for array in record.values()]
        if tuple(part.shape for part in parts) != self.shapes:
            raise InvalidInput("the arrays have other shapes than the model's")
        return np.concatenate([part.ravel() for part in parts])

    def model(self, numbers: FloatArray) -> ArrayRecord:
        """Return the record with the model's names, shapes and types that holds these numbers, shape (numbers,)."""
        return self._record(numbers, self.kinds)

    def message(self, whole: NDArray[np.int64]) -> ArrayRecord:
        """Return the record with the model's names and shapes that holds these whole numbers, shape (numbers,)."""
        return self._record(whole, ("<i8",) * len(self.names))

    def _record(self, numbers: NDArray[np.generic], kinds: tuple[str, ...]) -> ArrayRecord:
        sizes = [int(np.prod(shape, dtype=np.int64)) for shape in self.shapes]
        parts = np.split(numbers, np.cumsum(sizes)[:-1])
        rows = zip(self.names, parts, self.shapes, kinds, strict=True)
        return ArrayRecord({name: Array(part.reshape(shape).astype(kind)) for name, part, shape, kind in rows})


def bit_record(message: NDArray[np.int64]) -> ArrayRecord:
    """Return the record that carries a one-bit message: its seed and its bit, shape (2,)."""
    return ArrayRecord({BIT_KEY: Array(message.astype("<i8"))})


def bit_of(record: ArrayRecord) -> NDArray[np.int64]:
    """Return the seed and the bit that a record carries, shape (2,); raise ValueError if it has none."""
    if tuple(record.keys()) != (BIT_KEY,):
        raise ValueError("no bit")
    pair = record[BIT_KEY].numpy()
    if pair.dtype != np.int64 or pair.shape != (2,) or pair[1] not in (0, 1):
        raise ValueError("no bit")
    return pair.astype(np.int64)


# What a Flower client keeps in its own state: how many messages it has sent, under which terms, and the last one.
#
# The state is Flower's ``Context.state``: it stays on the client's node and outlasts a message; the server never sees
# it.

COUNT_KEY = "shuffledp-count"
REPLY_KEY = "shuffledp-reply"


@dataclass(frozen=True)
class Sent:
    """Count of the messages that a client has sent in a run, kept on the client's own node.

    Parameters
    ----------
    terms : str
        Fingerprint of the training's `Terms`, the same for all messages.
    level : str
        The client's level, the same in all messages.
    numbers : int
        Numbers in a message.
    messages : int
        Different messages that were sent, 0 before the first. An answer that was repeated is one message.
    round : int
        The server's number of the round of the last message; -1 if the server gave none.
    private : bool
        Whether the noise of all messages was secure.
    """

    terms: str
    level: str
    numbers: int
    messages: int = 0
    round: int = -1
    private: bool = True

    @staticmethod
    def of(context: Context) -> Sent | None:
        """Return the count stored in a client's Flower context; None before its first message."""
        if COUNT_KEY not in context.state:
            return None
        kept = context.state.config_records[COUNT_KEY]
        try:
            return Sent(
                str(kept["terms"]),
                str(kept["level"]),
                int(kept["numbers"]),  # type: ignore[arg-type]
                int(kept["messages"]),  # type: ignore[arg-type]
                int(kept["round"]),  # type: ignore[arg-type]
                kept["private"] is True,
            )
        except (KeyError, TypeError, ValueError):
            raise InvalidInput("this client's count of messages is damaged; nothing is sent") from None

    def one_more(self, terms: Terms, level: str, layout: Layout, server_round: int) -> Sent:
        """Return the count after one more message, which must have the same terms, level and size as before.

        Raises
        ------
        InvalidInput
            If terms, level or size of the message changed, or the round is older than the last one.
        """
        if (self.terms, self.level, self.numbers) != (terms.fingerprint, level, layout.numbers):
            raise InvalidInput(
                "terms, level and size of a message are fixed by a client's first message of a run, since its count "
                "is of messages of one kind; nothing is sent. Start another run"
            )
        if 0 <= server_round < self.round:
            raise InvalidInput(
                f"the server asks for round {server_round} after round {self.round}; nothing is sent again"
            )
        return replace(self, messages=self.messages + 1, round=server_round)

    def epsilon(self, terms: Terms, delta: float) -> Interval:
        """Return the client's certified epsilon against the server operator and all other clients, in nats.

        It is the plain composition of the client's own noise over all its messages; neither the noise of others nor a
        shuffle is relied on.

        Parameters
        ----------
        terms : Terms
            Public terms of the training under which the messages were sent.
        delta : float
            Delta at which epsilon is certified, in (0, 1).
        """
        if not self.messages:
            return Interval(0.0, 0.0)
        plan = terms.plan(self.numbers)
        tier = plan.tiers[int(plan.tier_of[terms.names.index(self.level)])]
        return Interval(0.0, terms.accountant((tier,), alone=self.messages).epsilon(delta))

    def keep(self, context: Context, reply: ArrayRecord) -> None:
        """Write the count and the message into the client's own Flower context, before the message leaves."""
        context.state[COUNT_KEY] = ConfigRecord(
            {
                "terms": self.terms,
                "level": self.level,
                "numbers": self.numbers,
                "messages": self.messages,
                "round": self.round,
                "private": self.private,
            }
        )
        context.state[REPLY_KEY] = reply


def repeated(sent: Sent | None, context: Context, server_round: int) -> ArrayRecord | None:
    """Return the message that this client already sent in the round ``server_round``; None if it sent none.

    Sending the same bytes again costs no privacy.
    """
    if sent is None or server_round < 0 or sent.round != server_round:
        return None
    state: RecordDict = context.state
    return state.array_records[REPLY_KEY]


@dataclass(frozen=True)
class ClientReport:
    """Statement of one client about the messages that it has sent in a run and their privacy cost.

    Parameters
    ----------
    level : str
        Its budget level; empty before the first message.
    messages : int
        Different messages that were sent.
    max_messages : int or None
        Limit on the number of messages; None without this limit.
    max_epsilon : float or None
        Limit on the client's own epsilon, nats; None without this limit.
    delta : float
        Delta of ``epsilon``, in (0, 1).
    epsilon : float
        Certified epsilon in nats against the server operator: plain composition of the client's own noise.
    private : bool
        False if noise came from a seeded generator: then nothing is guaranteed.
    """

    level: str
    messages: int
    max_messages: int | None
    max_epsilon: float | None
    delta: float
    epsilon: float
    private: bool

    def describe(self) -> str:
        """Return the report in sentences, one per line."""
        limits = [f"{self.max_messages} messages"] if self.max_messages is not None else []
        limits += [f"epsilon {self.max_epsilon:g}"] if self.max_epsilon is not None else []
        kept = (
            f"({up(self.epsilon)}, {self.delta:g})-differential privacy for all records of this client, against "
            "everybody including whoever runs the server"
            if self.private
            else "no privacy: the noise came from a seeded generator"
        )
        return "\n".join(
            (
                f"This client has sent {self.messages} messages in this run; its limit is {' and '.join(limits)}.",
                f"{kept[0].upper()}{kept[1:]}.",
            )
        )


TERMS_KEY = "shuffledp-terms"
"""Entry of the training configuration with which the server names its terms."""
MARK_KEY = "shuffledp"
"""Record of a message with which a client names its terms and its level."""
ROUND_KEY = "server-round"
"""Entry of the training configuration with which Flower's strategies number the rounds."""
UNUSABLE = ("noise", "refuse")

_log = logging.getLogger("shuffledp.flower")

ClientAppCallable = Callable[[Message, Context], Message]


@dataclass(frozen=True, eq=False)
class LocalRandomizer:
    """Flower client mod: clips the update, adds the noise of the client's budget, and drops everything else.

    Put it last but for the app: ``ClientApp(mods=[LocalRandomizer(terms, level="open")])``. The reply holds the noised
    update on a public grid (whole numbers), or a seed and one bit, and the terms' fingerprint and the level's name;
    numbers of examples, losses and other metrics never leave the client. The server needs `ShuffledStrategy` with the
    same terms.

    The client counts its own messages in Flower's ``Context.state``, which stays on its node, and stops answering
    beyond its own limit, whatever the server asks for. A round that is asked for again is answered with the same bytes.
    The count is of one run: `docs/flower.md` says what that means for a server that starts many.

    Only training passes. Evaluation and queries on private data are releases that no budget here pays for: refused.

    Parameters
    ----------
    terms : Terms
        Public terms of the training, the same as on the server.
    level : str or callable
        The client's budget level, or a function of Flower's Context that names it. It must not depend on the records.
    max_messages : int or None
        Largest number of different messages that the client sends in a run.
    max_epsilon : float or None
        The client sends a message only while its own epsilon at ``delta``, against whoever runs the server, stays
        within it. One of the two limits is needed.
    delta : float
        For ``max_epsilon`` and `report`, in (0, 1).
    unusable : {"noise", "refuse"}
        What is sent if the app fails, or its update is not finite: "noise" sends noise alone, so that nobody learns of
        it (the reason is logged on the client); "refuse" raises, which tells the server that this client's data made
        the app fail: use it to look for errors, not with records to be protected.
    random : Randomness, optional
        Source of the noise; default `secure_random()`. With another source nothing is private.

    Raises
    ------
    InvalidInput
        On an unknown level or choice, or without a limit.
    """

    terms: Terms
    level: str | Callable[[Context], str]
    max_messages: int | None = None
    max_epsilon: float | None = None
    delta: float = 1e-6
    unusable: str = "noise"
    random: Randomness | None = None

    def __post_init__(self) -> None:
        choice(self.unusable, "unusable", UNUSABLE)
        if isinstance(self.level, str):
            choice(self.level, "level", self.terms.names)
        check_delta(self.delta)
        if self.max_messages is None and self.max_epsilon is None:
            raise InvalidInput(
                "a client needs a limit of its own: say how many messages it sends at most with `max_messages`, or "
                "which epsilon it allows with `max_epsilon`"
            )
        if self.max_messages is not None:
            whole_number(self.max_messages, "max_messages", 1)
        if self.max_epsilon is not None:
            number(self.max_epsilon, "max_epsilon", 0.0, math.inf)

    def __call__(self, message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        """Answer one message of the server; see the class."""
        kind = message.metadata.message_type
        if kind.split(".")[0] != "train":
            raise InvalidInput(
                f"a reply to {shown(kind)} on private records is a release of its own, and no budget pays for it; "
                "evaluate on public data at the server (evaluate_fn), or in an app without LocalRandomizer"
            )
        agreed = [c[TERMS_KEY] for c in message.content.config_records.values() if TERMS_KEY in c]
        if agreed != [self.terms.fingerprint]:
            raise InvalidInput(
                "the server trains on other terms than this client's, or without ShuffledStrategy; nothing is sent. "
                "Give both sides the same Terms"
            )
        if len(message.content.array_records) != 1:
            raise InvalidInput("a training message needs exactly one ArrayRecord: the model")
        level = self.level if isinstance(self.level, str) else self.level(context)
        choice(level, "level", self.terms.names)
        key, model = next(iter(message.content.array_records.items()))
        layout = Layout.of(model)
        before = layout.flat(model).astype(np.float64)
        if not np.isfinite(before).all():
            raise InvalidInput("the server's model has numbers that are not finite; nothing is sent")
        server_round = _round_of(message)
        before_this = Sent.of(context)
        again = repeated(before_this, context, server_round)
        if again is None:
            count = (before_this or Sent(self.terms.fingerprint, level, layout.numbers)).one_more(
                self.terms, level, layout, server_round
            )
            self._within_limits(count)
            count = replace(count, private=count.private and self._private)
            update = self._update(message, context, call_next, layout, before)
            sent = self.terms.message(update, level, self.random or secure_random())
            again = bit_record(sent) if self.terms.bits else layout.message(sent)
            count.keep(context, again)  # after the app, which may write to its state
        else:
            level = before_this.level if before_this is not None else level
        mark = ConfigRecord({"terms": self.terms.fingerprint, "level": level, "private": self._private})
        return Message(RecordDict({key: again, MARK_KEY: mark}), reply_to=message)

    def report(self, context: Context) -> ClientReport:
        """Return the number of messages that this client has sent in the run, and their privacy cost.

        Parameters
        ----------
        context : Context
            The client's context, as Flower passes it to the app.
        """
        sent = Sent.of(context) or Sent(self.terms.fingerprint, "", 1)
        return ClientReport(
            sent.level,
            sent.messages,
            self.max_messages,
            self.max_epsilon,
            self.delta,
            sent.epsilon(self.terms, self.delta).upper,
            sent.private,
        )

    def _within_limits(self, count: Sent) -> None:
        """Refuse a message beyond the client's own limit, before the app sees the model."""
        if self.max_messages is not None and count.messages > self.max_messages:
            raise InvalidInput(
                f"this client sends at most {self.max_messages} messages in a run, and has sent them; nothing is sent"
            )
        if self.max_epsilon is not None and not count.epsilon(self.terms, self.delta).upper <= self.max_epsilon:
            raise InvalidInput(
                f"one more message would exceed this client's own epsilon of {self.max_epsilon:g} at delta "
                f"{self.delta:g}; nothing is sent"
            )

    @property
    def _private(self) -> bool:
        return self.random is None or self.random.private

    def _update(
        self, message: Message, context: Context, call_next: ClientAppCallable, layout: Layout, before: FloatArray
    ) -> FloatArray:
        """Run the app; its update, or zero if there is none that can be used."""
        reason = ""
        try:
            reply = call_next(message, context)
            (after,) = reply.content.array_records.values()
            with np.errstate(over="ignore", invalid="ignore"):
                update = layout.flat(after).astype(np.float64) - before
            if np.isfinite(update).all():
                return update
            reason = "its update is not finite"
        except Exception as problem:
            reason = f"{type(problem).__name__}: {problem}"
        if self.unusable == "refuse":
            raise InvalidInput("the app gave no update that can be used; nothing is sent")
        _log.error("the app gave no update that can be used (%s); noise alone is sent", reason)
        return np.zeros_like(before)


def _round_of(message: Message) -> int:
    """Return the server's number of the round; -1 if it gives none: then every message is a new one, and counts."""
    numbers = [c[ROUND_KEY] for c in message.content.config_records.values() if ROUND_KEY in c]
    return numbers[0] if len(numbers) == 1 and isinstance(numbers[0], int) and numbers[0] >= 0 else -1
