"""A training run in a ledger: all its rounds are entered before the first message is computed."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shuffledp.accounting import PrivacyProfile, SmallestProfile, StoredProfile
from shuffledp.errors import InvalidInput, OutOfRegime, Refused, attempt
from shuffledp.learning.accounting import Tier, TrainingAccountant
from shuffledp.ledger import MOST_LEVELS, Draft, LevelSpending, Spending, Turn
from shuffledp.releases.entering import Entering

MOST_TIERS = 32
"""With more tiers only what holds for everybody is kept: the worst (epsilon, delta), and plain composition."""

Rounds = dict[tuple[int, ...], int]
"""Messages per tier of a round, and how many such rounds."""


@dataclass(frozen=True)
class Plan:
    """Remaining rounds of a training run, fixed before the first of them.

    Parameters
    ----------
    accountant : TrainingAccountant
        Accountant with the messages sent before; it is not changed.
    ahead : sequence of (list of int) or None
        Number of messages of each tier in each remaining round; None for a round that is not released.
    affordable : callable
        ``affordable(accountant, messages)`` is True if one more round with these messages stays within the limits.
    """

    accountant: TrainingAccountant
    ahead: Sequence[list[int] | None]
    affordable: Callable[[TrainingAccountant, list[int]], bool]

    def whole(self, rounds: int) -> Rounds:
        """Return the rounds already sent together with the next ``rounds`` planned ones.

        The value maps the messages of each tier in a round to the number of such rounds. It stops before a round that
        is not affordable.
        """
        counted = replace(self.accountant, spent=dict(self.accountant.spent))  # it shares the profiles
        for counts in self.ahead[:rounds]:
            if counts is None:
                continue
            if not self.affordable(counted, counts):
                break
            counted.spend(counts)
        return counted.spent


def spending_of(accountant: TrainingAccountant, delta: float) -> Spending:
    """Return the privacy cost of an accountant's rounds, tier by tier, as a ledger records it.

    Parameters
    ----------
    accountant : TrainingAccountant
        Accountant with at least one recorded round.
    delta : float
        Central delta, in (0, 1).
    """
    guarantee = accountant.guarantee(delta)
    people = max(sum(messages) for messages in accountant.spent)
    told = (guarantee.epsilon.upper, delta, people, guarantee.levels_total)
    there = [i for i in range(len(accountant.tiers)) if any(messages[i] for messages in accountant.spent)]
    if len(there) > MOST_TIERS:
        stated = StoredProfile.stated(guarantee.epsilon.upper, delta)
        local = attempt(accountant.widest_local, (OutOfRegime,))
        known = (stated,) if isinstance(local, Refused) else (stated, local)
        return Spending(*told, StoredProfile.of(SmallestProfile(known)))
    found = [Priced(accountant.tiers[i], told[0], accountant.tier_profile(i)) for i in there]
    return replace(spending_by_level(found, delta, people), levels_total=guarantee.levels_total)


@dataclass(frozen=True, eq=False)
class Priced:
    """Certified privacy cost of a run for the clients of one tier.

    Parameters
    ----------
    tier : Tier
        Budget and message law of these clients.
    epsilon : float
        Upper end of the central epsilon in nats, at the delta of the request.
    profile : PrivacyProfile
        Certified profile delta(epsilon).
    """

    tier: Tier
    epsilon: float
    profile: PrivacyProfile


def spending_by_level(tiers: Sequence[Priced], delta: float, people: int) -> Spending:
    """Return the privacy cost of rounds by budget level, as a ledger records it.

    Parameters
    ----------
    tiers : sequence of Priced
        All tiers that sent something.
    delta : float
        Central delta, in (0, 1).
    people : int
        Number of participants: the most messages of a round, or the fewest if only a lower limit is known.
    """
    levels: dict[tuple[float, float], list[StoredProfile]] = {}
    for each in tiers:
        budget = each.tier.epsilon0, each.tier.delta0
        levels.setdefault(budget, []).append(StoredProfile.of(each.profile))
    kept = [LevelSpending(*level, StoredProfile.largest(found)) for level, found in sorted(levels.items())]
    worst = StoredProfile.largest([level.profile for level in kept])
    apart = len(kept) <= MOST_LEVELS and len({level.epsilon0 for level in kept}) == len(kept)
    epsilon = max(each.epsilon for each in tiers)
    return Spending(epsilon, delta, people, len(kept), worst, tuple(kept) if apart else ())


def enter_run(
    entering: Entering,
    model: Mapping[str, Any],
    delta: float,
    plan: Plan,
    turn: Turn | None = None,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Enter the rounds of a training run that are not yet entered in the ledger.

    Parameters
    ----------
    entering : Entering
        The ledger, and what the run is entered under.
    model : mapping
        Public settings of the run, fixed beforehand, as JSON values.
    delta : float
        Central delta.
    plan : Plan
        Remaining rounds. An interrupted round is repeated, so it counts twice; its second time is entered here.
    turn : Turn, optional
        Next turn of a run with a checkpoint, recorded in the transaction that enters the rounds. None for a run without
        a checkpoint.
    ready : callable
        Called after the ledger's limit was found sufficient and before anything is entered; an error that it raises
        ends the run.

    Raises
    ------
    InvalidInput
        If the limit has no room (the message says how many rounds would fit), or the run has gone on past the turn.
    """
    run = secrets.token_hex(8) if turn is None else turn.run
    before = Counter[tuple[int, ...]]()
    for counts in [] if turn is None else entering.ledger.rounds_of(run):
        before.update({tuple(messages): times for messages, times in json.loads(counts)})
    fingerprint = hashlib.sha256(json.dumps(dict(model), sort_keys=True).encode()).hexdigest()
    known = (entry.task for entry in entering.ledger.entries() if entry.task.endswith(f"/{run}"))
    task = next(known, f"{fingerprint}/{run}")  # another machine's last digits would give another fingerprint

    def draft(rounds: int) -> Draft | None:
        new = Counter(plan.whole(rounds)) - before
        if not new:
            return None
        counted = replace(plan.accountant, spent=dict(new))
        words = f"unit {counted.unit}, {counted.rounds} rounds, seen {counted.seen}, {model['mechanism']}"
        title, cost, these = (
            f"training, {counted.rounds} rounds",
            spending_of(counted, delta),
            json.dumps(list(new.items())),
        )
        kept = {} if turn is None else {"training": run, "rounds": these}
        return Draft(title, task, words, cost, **kept)

    # what was sent before counts among the rounds that are asked for
    admit(entering, draft, len(plan.ahead), done=sum(plan.accountant.spent.values()), turn=turn, ready=ready)


def admit(
    entering: Entering,
    draft: Callable[[int], Draft | None],
    rounds: int,
    done: int = 0,
    turn: Turn | None = None,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Enter this number of rounds in the ledger, or raise an error that says how many would fit.

    Parameters
    ----------
    entering : Entering
        The ledger, and what the run is entered under.
    draft : callable
        ``draft(rounds)`` is the ledger entry for that many rounds; None if they cost nothing.
    rounds : int
        Number of remaining rounds.
    done : int
        Number of rounds sent before.
    turn, ready
        As for `enter_run`.

    Raises
    ------
    InvalidInput
        If the limit has no room.
    """
    whole = draft(rounds)
    refused = None if whole is None else entering.ledger.refusal([whole], entering.use)
    if refused is not None:
        most = _largest(rounds, lambda some: _fits(entering, draft(some)))
        fits = f"what would fit: `rounds = {done + most}`" if most else "not even one round would fit"
        raise InvalidInput(f"{refused}; {fits}; smaller budgets cost less")
    ready()
    if whole is not None:
        entering.ledger.enter([whole], entering.use, turn)
    elif turn is not None:
        entering.ledger.take(turn)


def _fits(entering: Entering, draft: Draft | None) -> bool:
    return draft is None or entering.ledger.refusal([draft], entering.use) is None


def _largest(high: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number of rounds below `high` that fits; 0 if none does."""
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low
