# pyright: reportMissingImports=false, reportUnknownParameterType=false
"""The clients' side in Flower: a mod that lets out nothing but a clipped, noised update."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from flwr.app import ConfigRecord, Context, Message, RecordDict

from shuffledp.accounting import check_delta
from shuffledp.errors import InvalidInput, shown
from shuffledp.flower.arrays import Layout, bit_record
from shuffledp.flower.count import ClientReport, Sent, repeated
from shuffledp.flower.terms import Terms
from shuffledp.learning.inputs import number_within, one_of, whole_number
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness, secure_random

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
        As agreed.
    level : str or callable
        The client's budget level, or a function of Flower's Context that names it. It must not depend on the records.
    max_messages : int or None
        The client sends at most so many different messages in a run.
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
        one_of("unusable", self.unusable, UNUSABLE)
        if isinstance(self.level, str):
            one_of("level", self.level, self.terms.names)
        check_delta(self.delta)
        if self.max_messages is None and self.max_epsilon is None:
            raise InvalidInput(
                "a client needs a limit of its own: say how many messages it sends at most with `max_messages`, or "
                "which epsilon it allows with `max_epsilon`"
            )
        if self.max_messages is not None:
            whole_number("max_messages", self.max_messages, 1)
        if self.max_epsilon is not None:
            number_within("max_epsilon", self.max_epsilon, 0.0, math.inf)

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
        one_of("level", level, self.terms.names)
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
        """Say what this client has sent in the run, and what that costs it.

        Parameters
        ----------
        context : Context
            The client's own, from Flower.
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
    told = [c[ROUND_KEY] for c in message.content.config_records.values() if ROUND_KEY in c]
    return told[0] if len(told) == 1 and isinstance(told[0], int) and told[0] >= 0 else -1
