# pyright: reportMissingImports=false, reportUnknownParameterType=false
"""The clients' side in Flower: a mod that lets out nothing but a clipped, noised update."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from flwr.app import ConfigRecord, Context, Message, RecordDict

from shuffledp.errors import InvalidInput
from shuffledp.flower.arrays import Layout
from shuffledp.flower.terms import Terms
from shuffledp.learning.inputs import one_of
from shuffledp.numerics.interval import FloatArray
from shuffledp.numerics.randomness import Randomness, secure_random

TERMS_KEY = "shuffledp-terms"
"""Entry of the training configuration with which the server names its terms."""
MARK_KEY = "shuffledp"
"""Record of a message with which a client names its terms and its level."""
UNUSABLE = ("noise", "refuse")

_log = logging.getLogger("shuffledp.flower")

ClientAppCallable = Callable[[Message, Context], Message]


@dataclass(frozen=True, eq=False)
class LocalRandomizer:
    """Flower client mod: clips the update, adds the noise of the client's budget, and drops everything else.

    Put it last but for the app: ``ClientApp(mods=[LocalRandomizer(terms, level="open")])``. The reply holds the noised
    update on a public grid (whole numbers), the terms' fingerprint and the level's name; numbers of examples, losses
    and other metrics never leave the client. The server needs `ShuffledStrategy` with the same terms.

    Only training passes. Evaluation and queries on private data are releases that no budget here pays for: refused.

    Parameters
    ----------
    terms : Terms
        As agreed.
    level : str or callable
        The client's budget level, or a function of Flower's Context that names it. It must not depend on the records.
    unusable : {"noise", "refuse"}
        What is sent if the app fails, or its update is not finite: "noise" sends noise alone, so that nobody learns of
        it (the reason is logged on the client); "refuse" raises, which tells the server that this client's data made
        the app fail: use it to look for errors, not with records to be protected.
    random : Randomness, optional
        Source of the noise; default `secure_random()`. With another source nothing is private.

    Raises
    ------
    InvalidInput
        On an unknown level or choice.
    """

    terms: Terms
    level: str | Callable[[Context], str]
    unusable: str = "noise"
    random: Randomness | None = None

    def __post_init__(self) -> None:
        one_of("unusable", self.unusable, UNUSABLE)
        if isinstance(self.level, str):
            one_of("level", self.level, self.terms.names)

    def __call__(self, message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        """Answer one message of the server; see the class."""
        kind = message.metadata.message_type
        if kind.split(".")[0] != "train":
            raise InvalidInput(
                f"a reply to {kind!r} on private records is a release of its own, and no budget pays for it; "
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
        update = self._update(message, context, call_next, layout, before)
        sent = self.terms.message(update, level, self.random or secure_random())
        mark = ConfigRecord({"terms": self.terms.fingerprint, "level": level, "private": self._private})
        return Message(RecordDict({key: layout.message(sent), MARK_KEY: mark}), reply_to=message)

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
