"""What clients and server agree on before training: how far an update is clipped, and the noise of each budget level.

Everything else follows: sensitivity is twice the clip, noise is what the level's budget asks for at that sensitivity,
and the accountant counts the same numbers. Nothing in it depends on a record.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import MAX_EPSILON0, InvalidInput, choice, number, shown
from shuffledp.in_words import up
from shuffledp.learning.accounting import Tier, TrainingAccountant, TrainingGuarantee
from shuffledp.learning.inputs import whole_number
from shuffledp.learning.keeping import Priced, admit, spending_by_level
from shuffledp.learning.messages import Clipping, Mechanism, mechanism_of, shrink
from shuffledp.learning.rounds import SendPlan, plan_messages, plan_sketches, randomized_bits, signs
from shuffledp.ledger import NewEntry, Spending
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.releases.run import Entering
from shuffledp.setting import Seen

Release = Literal["sum", "messages"]
SEEN: dict[str, Seen] = {"sum": "sum", "messages": "levels"}
"""What the server's model may depend on: only the sum of a round, or its shuffled messages with their levels."""
WEIGHTINGS = ("auto", "none", "inverse-variance")
MECHANISMS = ("gaussian", "laplace", "sketch")


@dataclass(frozen=True)
class Terms:
    """The public terms of one federated training; the same object, or an equal one, on clients and server.

    Parameters
    ----------
    clip : float
        Largest norm of a client's whole update, positive: Euclidean for Gaussian noise, sum of absolute values for
        Laplace noise. The sensitivity is derived from it: neighbours replace all records of one client, which moves
        a message by 2 clip at most.
    levels : mapping of str to (epsilon0, delta0)
        Local budgets of one message by the level's name; epsilon0 in (0, 700] nats; delta0 in (0, 1) for Gaussian
        noise, 0 for Laplace noise. Clients who want epsilon0 = 0 take no part.
    release : {"sum", "messages"}
        "sum": nothing but the sum of a round's messages reaches the wrapped strategy. "messages": all of them,
        shuffled, with their levels.
    mechanism : {"gaussian", "laplace", "sketch"}
        Noise on the whole numbers, drawn exactly; Gaussian noise is calibrated analytically (Balle and Wang 2018).
        "sketch": a message is a random seed and one bit by randomized response, for very many clients
        (`shuffledp.learning.rounds`); it needs release = "sum", which is then the mean of the round's bits.
    weighting : {"auto", "inverse-variance", "none"}
        Whether levels with more noise move the model less; "auto" does so. Bits all count the same, so that bits of
        all levels hide each other: with "sketch" only "auto" is accepted.

    Raises
    ------
    InvalidInput
        On a bad clip, budget or choice.

    Examples
    --------
    >>> terms = Terms(clip=1.0, levels={"strict": (0.5, 1e-8), "open": (4.0, 1e-8)}, release="sum")
    >>> terms.names
    ('open', 'strict')
    """

    clip: float
    levels: Mapping[str, tuple[float, float]]
    release: Release
    mechanism: str = "gaussian"
    weighting: str = "auto"

    def __post_init__(self) -> None:
        choice(self.release, "release", tuple(SEEN))
        choice(self.weighting, "weighting", WEIGHTINGS)
        choice(self.mechanism, "mechanism", MECHANISMS)
        if not self.levels:
            raise InvalidInput("terms need at least one budget level")
        checked: dict[str, tuple[float, float]] = {}
        for name, budget in self.levels.items():
            try:
                epsilon0, delta0 = budget
            except (TypeError, ValueError):
                raise InvalidInput(
                    f"level {shown(name)} needs the pair (epsilon0, delta0); got {shown(budget)}"
                ) from None
            epsilon = number(epsilon0, f"epsilon0 of level {name!r}", 0.0, MAX_EPSILON0)
            if epsilon == 0.0:
                raise InvalidInput(f"level {shown(name)} has epsilon0 = 0, which tells nothing: leave such clients out")
            checked[str(name)] = epsilon, number(delta0, f"delta0 of level {name!r}", 0.0, 1.0, below=True)
        if self.mechanism != "gaussian" and any(delta0 > 0.0 for _, delta0 in checked.values()):
            named = "Laplace noise is pure" if self.mechanism == "laplace" else "a bit is pure"
            raise InvalidInput(f"{named}: give every level delta0 = 0, or use `mechanism = 'gaussian'`")
        if self.bits and self.release != "sum":
            raise InvalidInput("one bit is no update by itself: `mechanism = 'sketch'` needs `release = 'sum'`")
        if self.bits and self.weighting != "auto":
            raise InvalidInput(
                f"`weighting = {shown(self.weighting)}` would need every bit's level, and bits hide among those of all "
                "levels; leave `weighting = 'auto'`"
            )
        object.__setattr__(self, "levels", dict(sorted(checked.items())))
        self.plan(1)  # clip and budgets are checked where they are used

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the budget levels in ascending order; a level's position here is its index elsewhere."""
        return tuple(self.levels)

    @property
    def bits(self) -> bool:
        """True if a message is a random seed and one bit (mechanism "sketch")."""
        return self.mechanism == "sketch"

    @property
    def noise(self) -> Mechanism:
        """Noise mechanism applied to every number of a message; unused placeholder for one-bit messages."""
        return mechanism_of("gaussian" if self.bits else self.mechanism)

    @property
    def seen(self) -> Seen:
        """The server's view as the accountant takes it: "reports", "levels" or "sum".

        For one-bit messages it is "reports": their released mean is a function of the shuffled bits.
        """
        return "reports" if self.bits else SEEN[self.release]

    @property
    def clipping(self) -> Clipping:
        """Clipping rule of these terms: the client's whole update is clipped to the norm ``clip``."""
        return Clipping("client", "message", self.clip, self.noise.order)

    def accountant(self, tiers: tuple[Tier, ...], *, alone: int = 0) -> TrainingAccountant:
        """Return an accountant for these terms: empty, or with the messages of one client alone.

        Parameters
        ----------
        tiers : tuple of Tier
            All message laws of the plan; exactly one if ``alone`` is positive.
        alone : int
            Number of messages already sent by one client of the only tier, which no other client hides; 0 for an empty
            count.
        """
        if not alone:
            return TrainingAccountant("client", self.seen, self.mechanism == "gaussian", tiers, bits=self.bits)
        return TrainingAccountant("client", "levels", self.mechanism == "gaussian", tiers, {(1,): alone})

    @property
    def fingerprint(self) -> str:
        """Public hash of the terms, 32 hexadecimal digits; equal terms have equal fingerprints."""
        whole = [float(self.clip), list(self.levels.items()), self.release, self.mechanism, self.weighting]
        return hashlib.sha256(json.dumps(whole).encode()).hexdigest()[:32]

    def plan(self, numbers: int) -> SendPlan:
        """Return grid step, gains and noise scales for messages of ``numbers`` entries, one entry per level."""
        return _plan(self.fingerprint, numbers, self)

    def message(self, update: FloatArray, level: str, random: Randomness) -> NDArray[np.int64]:
        """Return one client's private message: the clipped update on the grid plus noise, or a seed and one bit.

        Parameters
        ----------
        update : ndarray, shape (numbers,)
            The client's update; all entries are finite.
        level : str
            Name of the client's budget level.
        random : Randomness
            Source of the noise.

        Returns
        -------
        ndarray of int64, shape (numbers,) or (2,)
            In grid steps; of bits, the seed's 64 bits and the bit.
        """
        plan, at = self.plan(update.size), self.names.index(level)
        with np.errstate(all="ignore"):  # infinite, if its square is
            norm = np.array([float(np.linalg.norm(update, ord=self.noise.order))])
        if self.bits:
            seed, lengths = random.words(1), np.minimum(norm / self.clip, 1.0)
            with np.errstate(all="ignore"):  # a side that cannot be told is a fair bit
                inner = signs(seed, update.size) @ update
            return np.append(seed.view(np.int64), randomized_bits(inner, lengths, self._budgets[at : at + 1], random))
        factor = float(shrink(norm, self.clip)[0]) * float(plan.gains[at])
        whole = np.rint(update * factor / plan.grid).astype(np.int64)
        return whole + self.noise.draw(float(plan.scales[at]), update.size, random)

    @property
    def _budgets(self) -> FloatArray:
        return np.array([epsilon0 for epsilon0, _ in self.levels.values()])

    def __hash__(self) -> int:
        return hash(self.fingerprint)


@lru_cache(maxsize=64)
def _plan(fingerprint: str, numbers: int, terms: Terms) -> SendPlan:
    del fingerprint  # part of the key
    budgets = np.array(list(terms.levels.values()), dtype=np.float64)
    if terms.bits:
        return plan_sketches(budgets[:, 0], terms.clipping.bound, weighting="bits")
    return plan_messages(
        budgets[:, 0],
        budgets[:, 1],
        np.ones(budgets.shape[0], dtype=np.int64),
        clipping=terms.clipping,
        mechanism=terms.noise,
        numbers=numbers,
        inverse_variance=terms.weighting != "none",
        summed=terms.release == "sum",
    )


# What a federated training may claim, level by level, with and without a shuffler that one trusts.


@dataclass(frozen=True)
class LevelReport:
    """Certified privacy of the clients of one budget level in a federated training.

    Parameters
    ----------
    names : tuple of str
        The levels of the terms that have this budget.
    epsilon0, delta0 : float
        Local budget of one message; epsilon0 in nats.
    epsilon : float
        Certified central epsilon, nats, of a client of this level after all released rounds.
    method : str
        Key of the bound that gave it: the smallest of the valid ones.
    epsilon_operator : float
        Certified epsilon, nats, against a server operator who sees who sent what: composition of the client's own noise
        over all
        rounds in which clients were asked, released or not.
    """

    names: tuple[str, ...]
    epsilon0: float
    delta0: float
    epsilon: float
    method: str
    epsilon_operator: float


@dataclass(frozen=True)
class FederatedReport:
    """Privacy of a federated training so far.

    Parameters
    ----------
    guarantee : TrainingGuarantee
        Central guarantee of the released rounds; neighbours replace all records of one client.
    levels : tuple of LevelReport
        Report of each budget level of the terms.
    refused : tuple of (int, str)
        Rounds that were not released, and why.
    stopped : str
        Why no further round is asked for; empty while training goes on.
    """

    guarantee: TrainingGuarantee
    levels: tuple[LevelReport, ...]
    refused: tuple[tuple[int, str], ...]
    stopped: str

    def describe(self) -> str:
        """Return the report in sentences, one per line."""
        lines = [self.guarantee.describe()]
        for level in self.levels:
            lines.append(
                f"Level {', '.join(level.names)} (epsilon0 = {level.epsilon0:g}, delta0 = {level.delta0:g} a message): "
                f"epsilon {up(level.epsilon)} by {level.method}; {up(level.epsilon_operator)} against whoever runs "
                "the server."
            )
        lines += [f"Round {number} was not released: {why}." for number, why in self.refused]
        return "\n".join([*lines, f"Stopped: {self.stopped}."] if self.stopped else lines)


def level_reports(
    accountant: TrainingAccountant, names: tuple[tuple[str, ...], ...], delta: float, *, requested_rounds: int
) -> tuple[LevelReport, ...]:
    """Return the privacy report of each tier (clients with the same budget and message law).

    Parameters
    ----------
    accountant : TrainingAccountant
        Accountant with the released rounds of the training.
    names : tuple of tuple of str
        Names of the levels that form each tier.
    delta : float
        Central delta.
    requested_rounds : int
        Rounds in which clients were asked for messages, at least 1.
    """
    reports: list[LevelReport] = []
    for index, tier in enumerate(accountant.tiers):
        method, epsilon = "local", 0.0
        if any(messages[index] for messages in accountant.spent):
            method, epsilon, _ = accountant.tier_answer(index, delta)
        # one message a round, and nobody else's to hide among
        alone = TrainingAccountant(accountant.unit, "levels", accountant.gaussian, (tier,), {(1,): requested_rounds})
        reports.append(LevelReport(names[index], tier.epsilon0, tier.delta0, epsilon, method, alone.epsilon(delta)))
    return tuple(reports)


# A federated run in a ledger: all its rounds are entered before a client is asked for the first message.
#
# Who will answer is not known by then, so what is entered is the cost of the rounds with the fewest messages that are
# released at all. More messages only cost less: others' messages do not depend on the record, so what they add to a
# sum or to a shuffle is a post-processing. So a round with fewer messages than were entered must not be released.


def fewest_of(terms: Terms, least: Mapping[str, int] | None) -> tuple[int, ...]:
    """Return the fewest messages of each level in a round that is released, in the order of the terms' names.

    Parameters
    ----------
    terms : Terms
        Public terms of the training.
    least : mapping of str to int, or None
        Fewest messages by the level's name; levels that are left out, and None, mean 0.

    Raises
    ------
    InvalidInput
        If a level is unknown, or a number is not a whole number from 0 on.
    """
    fewest_by_name = dict(least or {})
    for name in fewest_by_name:
        if name not in terms.names:
            raise InvalidInput(f"`least` names the level {shown(name)}; the terms have {', '.join(terms.names)}")
    return tuple(
        whole_number(fewest_by_name.get(name, 0), f"least of level {name!r} must be a whole number", 0)
        for name in terms.names
    )


def spending_of_rounds(
    accountant: TrainingAccountant, fewest: Sequence[int], min_messages: int, rounds: int, delta: float
) -> Spending:
    """Return the privacy cost of ``rounds`` rounds that each have at least these numbers of messages.

    Parameters
    ----------
    accountant : TrainingAccountant
        Accountant of the run; it is not changed.
    fewest : sequence of int, one per tier
        The fewest messages of each tier.
    min_messages : int
        The fewest messages of all tiers together.
    rounds : int
        How many rounds; at least 1.
    delta : float
        Central delta, in (0, 1).
    """
    priced: list[Priced] = []
    summed = accountant.seen == "sum" and not accountant.bits
    narrowest = min(accountant.tiers, key=lambda tier: tier.scale)
    for index, tier in enumerate(accountant.tiers):
        counts = [max(count, int(place == index)) for place, count in enumerate(fewest)]
        # to a sum everybody adds no less than the narrowest noise; it stands apart, since it need not be of one level
        others = max(min_messages - sum(counts), 0) if summed else 0
        spent = {(*counts, others): rounds}
        alone = replace(accountant, tiers=(*accountant.tiers, narrowest), spent=spent, _profiles={}, _answers={})
        priced.append(Priced(tier, alone.tier_answer(index, delta)[1], alone.tier_profile(index)))
    return spending_by_level(priced, delta, max(min_messages, sum(fewest), 1))


def enter_federated(
    entering: Entering,
    terms: Terms,
    accountant: TrainingAccountant,
    tier_of: Sequence[int],
    *,
    fewest: Sequence[int],
    min_messages: int,
    rounds: int,
    delta: float,
) -> None:
    """Enter the privacy cost of all rounds of a run in the ledger, before the first message.

    Parameters
    ----------
    entering : Entering
        The ledger, and what the run is entered under.
    terms : Terms
        Of the run.
    accountant : TrainingAccountant
        Fresh.
    tier_of : sequence of int
        Tier of each level.
    fewest : sequence of int
        Fewest messages of each level in a round that is released.
    min_messages, rounds, delta
        As for `spending_of_rounds`.

    Raises
    ------
    InvalidInput
        If the limit has no room; the message says how many rounds would fit.
    """
    counts = [0] * len(accountant.tiers)
    for tier, count in zip(tier_of, fewest, strict=True):
        counts[tier] += count
    task = f"{terms.fingerprint}/{secrets.token_hex(8)}"

    def draft(some: int) -> NewEntry:
        words = f"unit client, {some} rounds, seen {terms.seen}, {terms.mechanism}, {min_messages} messages or more"
        cost = spending_of_rounds(accountant, counts, min_messages, some, delta)
        return NewEntry(f"federated training, {some} rounds", task, words, cost)

    admit(entering, draft, rounds)
