# pyright: reportMissingImports=false, reportUnknownParameterType=false
"""What a Flower client keeps in its own state: how many messages it has sent, under which terms, and the last one.

The state is Flower's ``Context.state``: it stays on the client's node and outlasts a message; the server never sees it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from flwr.app import ArrayRecord, ConfigRecord, Context, RecordDict

from shuffledp.errors import InvalidInput
from shuffledp.flower.arrays import Layout
from shuffledp.flower.terms import Terms
from shuffledp.numerics.interval import Interval

COUNT_KEY = "shuffledp-count"
REPLY_KEY = "shuffledp-reply"


@dataclass(frozen=True)
class Sent:
    """What a client has sent so far.

    Parameters
    ----------
    terms : str
        Fingerprint of the terms of all messages.
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
        """Read the count of a client; None before its first message."""
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
        """Count one more message; refuse one that does not fit those sent before.

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
        """Certified epsilon of this client against whoever runs the server and all other clients.

        Plain composition of its own noise over all its messages: nobody else's noise, and no shuffle, is counted on.

        Parameters
        ----------
        terms : Terms
            Those of the messages.
        delta : float
            In (0, 1).
        """
        if not self.messages:
            return Interval(0.0, 0.0)
        plan = terms.plan(self.numbers)
        tier = plan.tiers[int(plan.tier_of[terms.names.index(self.level)])]
        return Interval(0.0, terms.accountant((tier,), alone=self.messages).epsilon(delta))

    def keep(self, context: Context, reply: ArrayRecord) -> None:
        """Write count and message into the client's own state, before the message leaves."""
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
    """Return the message that was sent in this round already, if there is one: the same bytes cost nothing more."""
    if sent is None or server_round < 0 or sent.round != server_round:
        return None
    state: RecordDict = context.state
    return state.array_records[REPLY_KEY]


@dataclass(frozen=True)
class ClientReport:
    """What a client itself may say about what it has sent in a run.

    Parameters
    ----------
    level : str
        Its budget level; empty before the first message.
    messages : int
        Different messages that were sent.
    max_messages : int or None
        How many it sends at most.
    max_epsilon : float or None
        The largest epsilon it allows.
    delta : float
        In (0, 1).
    epsilon : float
        Certified epsilon against whoever runs the server: plain composition of the client's own noise.
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
            f"({self.epsilon:.4g}, {self.delta:g})-differential privacy for all records of this client, against "
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
