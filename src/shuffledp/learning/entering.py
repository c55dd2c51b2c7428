"""A training run in a ledger: all its rounds are entered before the first message is computed."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shuffledp.accounting import SmallestProfile, StoredProfile
from shuffledp.errors import InvalidInput, OutOfRegime, Refused, attempt, shown
from shuffledp.learning.accounting import TrainingAccountant
from shuffledp.ledger import MOST_LEVELS, Draft, LevelSpending, Spending
from shuffledp.protocol.entering import Entering

MOST_TIERS = 32
"""With more tiers only what holds for everybody is kept: the worst (epsilon, delta), and plain composition."""

Rounds = dict[tuple[int, ...], int]
"""Messages per tier of a round, and how many such rounds."""


@dataclass(frozen=True)
class Mark:
    """What a checkpoint keeps of the ledger.

    Parameters
    ----------
    run : str
        Random name of the run, which its entries carry.
    entered : dict
        The rounds that are entered, as `TrainingAccountant.spent` counts them.
    """

    run: str
    entered: Rounds


@dataclass(frozen=True)
class Plan:
    """The rounds that are left of a run, settled before the first of them.

    Parameters
    ----------
    accountant : TrainingAccountant
        With what was sent before; it is not changed.
    ahead : sequence of (list of int) or None
        For each round that is left the messages of each tier; None for a round that is not released.
    affordable : callable
        Whether an accountant may have one more round with these messages.
    """

    accountant: TrainingAccountant
    ahead: Sequence[list[int] | None]
    affordable: Callable[[TrainingAccountant, list[int]], bool]

    def whole(self, rounds: int) -> Rounds:
        """Return what was sent, and what so many more rounds will send."""
        counted = replace(self.accountant, spent=dict(self.accountant.spent))  # it shares the profiles
        for counts in self.ahead[:rounds]:
            if counts is None:
                continue
            if not self.affordable(counted, counts):
                break
            counted.spend(counts)
        return counted.spent


def spending_of(accountant: TrainingAccountant, delta: float) -> Spending:
    """Return what the rounds in an accountant cost, tier by tier.

    Parameters
    ----------
    accountant : TrainingAccountant
        With one round at least.
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
    levels: dict[tuple[float, float], list[StoredProfile]] = {}
    for i in there:
        tier = accountant.tiers[i]
        levels.setdefault((tier.epsilon0, tier.delta0), []).append(StoredProfile.of(accountant.tier_profile(i)))
    kept = [LevelSpending(*level, StoredProfile.largest(found)) for level, found in sorted(levels.items())]
    worst = StoredProfile.largest([level.profile for level in kept])
    apart = len(kept) <= MOST_LEVELS and len({level.epsilon0 for level in kept}) == len(kept)
    return Spending(*told, worst, tuple(kept) if apart else ())


def enter_run(entering: Entering, mark: Mark | None, model: Mapping[str, Any], delta: float, plan: Plan) -> Mark:
    """Enter what is not entered yet of a run, and return what its checkpoint must keep.

    Parameters
    ----------
    entering : Entering
        The ledger, and what the run is entered under.
    mark : Mark or None
        Of the checkpoint that the run goes on from; None for a new run.
    model : mapping
        All that is public and settled beforehand, as JSON values.
    delta : float
        Central delta.
    plan : Plan
        The rounds. A round that was cut short is repeated, so it counts twice, and the second time is entered here.

    Raises
    ------
    InvalidInput
        If the limit has no room (the message says how many rounds would fit), or the ledger does not know the run.
    """
    run, before = (secrets.token_hex(8), Rounds()) if mark is None else (mark.run, mark.entered)
    fingerprint = hashlib.sha256(json.dumps(dict(model), sort_keys=True).encode()).hexdigest()
    task = f"{fingerprint}/{run}"
    if mark is not None and all(entry.task != task for entry in entering.ledger.entries()):
        raise InvalidInput(
            f"the run that the checkpoint keeps is not in the ledger {shown(entering.ledger.path.name)}; name the "
            "`ledger` that it was entered in"
        )

    def draft(rounds: int) -> Draft | None:
        new = Counter(plan.whole(rounds)) - Counter(before)
        if not new:
            return None
        counted = replace(plan.accountant, spent=dict(new))
        words = f"unit {counted.unit}, {counted.rounds} rounds, seen {counted.seen}, {model['mechanism']}"
        return Draft(f"training, {counted.rounds} rounds", task, words, spending_of(counted, delta))

    whole = draft(len(plan.ahead))
    if whole is not None:
        refused = entering.ledger.refusal([whole], entering.use)
        if refused is not None:
            most = _largest(len(plan.ahead), lambda rounds: _fits(entering, draft(rounds)))
            # what was sent before counts among the rounds that are asked for
            done = sum(plan.accountant.spent.values())
            fits = f"what would fit: `rounds = {done + most}`" if most else "not even one round would fit"
            raise InvalidInput(f"{refused}; {fits}; smaller budgets cost less")
        entering.ledger.enter([whole], entering.use)
    return Mark(run, dict(Counter(before) | Counter(plan.whole(len(plan.ahead)))))


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
